/* Element types: names, sizes, and fill values between JSON and bit patterns. Internal. */
#ifndef GRVI_STORE_TYPE_H
#define GRVI_STORE_TYPE_H

#include "core/check.h"
#include "core/json.h"
#include "grove/store.h"

/* false if no such type is known */
bool grvi_store_type_from_name(const char *name, grv_store_type *type);
/* Fill value of a JSON node (NULL: JSON null) as a bit pattern. Accepts the encodings of the specification, and what is
 * met in the wild and has one meaning: quoted numbers, whole floats for integers, null as NaN. `what` names the array. */
grv_status grvi_fill_from_json(const grvi_json *node, grv_store_type type, const char *what,
                               uint64_t *fill) GRV_MUST_CHECK;
/* Writes the fill value in the encoding of the specification; NaNs other than the canonical one as "0x...". */
void grvi_fill_to_json(grvi_json_writer *writer, grv_store_type type, uint64_t fill);

/* IEEE 754 binary16 of a double, round to nearest even, and back. */
uint16_t grvi_half_from_double(double value);
double grvi_half_to_double(uint16_t bits);

#endif
