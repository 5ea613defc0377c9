/* Elements of an array as text, JSON and .npy files. Internal to src/cli. */
#ifndef GRVC_STORE_PRINT_H
#define GRVC_STORE_PRINT_H

#include <stdio.h>

#include "cli/store_slice.h"
#include "core/json.h"

/* Prints a region for people, nested as its axes, in columns; if there are more elements than a screen takes and not `all`, the first
 * and last along each axis, and only those are read. */
grv_status grvc_print_text(grv_array *array, const grvc_slice *slice, bool all) GRV_MUST_CHECK;
/* Writes a region as nested JSON lists; a scalar as a value. */
grv_status grvc_print_json(grvi_json_writer *w, grv_array *array,
                           const grvc_slice *slice) GRV_MUST_CHECK;
/* Writes the elements of a region, dense, in the machine's byte order, a bounded part at a time. name: for messages. */
grv_status grvc_write_raw(FILE *file, const char *name, grv_array *array,
                          const grvc_slice *slice) GRV_MUST_CHECK;
/* The header of NumPy's .npy format (version 1.0) for elements of a type and a region's shape. */
grv_status grvc_write_npy_header(FILE *file, const char *name, const grv_array_desc *desc,
                                 const grvc_slice *slice) GRV_MUST_CHECK;
/* The region's elements with that header before them, published at the path when complete. */
grv_status grvc_write_npy(const char *path, grv_array *array,
                          const grvc_slice *slice) GRV_MUST_CHECK;

#endif
