/* One element of an array as text and JSON. Internal to src/cli. */
#ifndef GRVC_STORE_ELEMENT_H
#define GRVC_STORE_ELEMENT_H

#include "store/store_type.h"

/* For people: numbers in the shortest form that reads back to the same, complex ones as "1.0-2.0j", characters in quotes, raw bytes as
 * "0x...". Appended. */
void grvc_element_text(grvi_text *out, grvi_item item, const uint8_t *element);
/* For programs: numbers; those that JSON has not as "NaN", "Infinity", "-Infinity"; complex ones as [1.0, -2.0]; the rest as strings. */
void grvc_element_json(grvi_json_writer *w, grvi_item item, const uint8_t *element);

#endif
