/* Element types: names, sizes, and fill values between JSON and bit patterns. Internal. */
#ifndef GRVI_STORE_TYPE_H
#define GRVI_STORE_TYPE_H

#include "core/check.h"
#include "core/json.h"
#include "grove/store.h"

/* Longest element of the types of variable size. */
#define GRVI_MAX_ITEM_BYTES ((int64_t)1 << 20)

/* What the elements are. */
typedef struct grvi_item {
    grv_store_type type;
    int64_t n_bytes;
} grvi_item;

/* Is there such a type, and may its elements have this size? */
bool grvi_item_is_good(grvi_item item);
/* Length of the words of an element that have a byte order: half a complex number, one character; 1: no byte order. */
int64_t grvi_item_swap_bytes(grvi_item item);

/* Reads `data_type` of version 3: a name, or an object with name and configuration. `what` names the array. */
grv_status grvi_item_from_json(const grvi_json *node, const char *what,
                               grvi_item *item) GRV_MUST_CHECK;
void grvi_item_to_json(grvi_json_writer *writer, grvi_item item);
/* The same for version 2 and for filters: NumPy's type strings such as "<f4", "|S7". */
grv_status grvi_item_from_numpy(const char *text, const char *what, grvi_item *item,
                                bool *big_endian) GRV_MUST_CHECK;
enum { GRVI_NUMPY_TEXT = 24 };
void grvi_item_to_numpy(grvi_item item, bool big_endian, char text[GRVI_NUMPY_TEXT]);

/* Fill value of a JSON node (NULL: JSON null) as it lies in memory, fill [item.n_bytes]. Accepts the encodings of both
 * versions, and what is met in the wild and has one meaning: quoted numbers, whole floats for integers, null as NaN.
 * `what` names the array. */
grv_status grvi_fill_from_json(const grvi_json *node, grvi_item item, const char *what,
                               uint8_t *fill) GRV_MUST_CHECK;
/* Writes a fill value in the encoding of version 3, or that of version 2 where it differs (bytes are base64); NaNs other than
 * the canonical one as "0x...". */
grv_status grvi_fill_to_json(grvi_json_writer *writer, grvi_item item, const uint8_t *fill,
                             int zarr_format) GRV_MUST_CHECK;
/* The fill value of a description, [item_bytes]; the description must have been opened. */
const uint8_t *grvi_fill_of(const grv_array_desc *desc);

/* IEEE 754 binary16 and bfloat16 of a double, round to nearest even, and back. */
uint16_t grvi_half_from_double(double value);
double grvi_half_to_double(uint16_t bits);
uint16_t grvi_bfloat_from_double(double value);
double grvi_bfloat_to_double(uint16_t bits);

#endif
