/* Boxes of elements in memory: strided copy, fill and comparison. Internal.
 * Strides are in bytes. Axes are merged where both sides allow it, so that the inner loop is as long as it can be. */
#ifndef GRVI_STORE_REGION_H
#define GRVI_STORE_REGION_H

#include "core/check.h"
#include "grove/store.h"

enum { GRVI_MAX_RANK = GRV_STORE_MAX_RANK };

/* strides of a dense row-major box */
void grvi_dense_strides(int rank, const int64_t *shape, int64_t item_bytes, int64_t *strides);
/* do these strides describe a dense row-major box? (axes of one element do not matter) */
bool grvi_is_dense(int rank, const int64_t *shape, int64_t item_bytes, const int64_t *strides);
/* number of elements, false on overflow */
bool grvi_count_elements(int rank, const int64_t *shape, int64_t *n);

/* out[...] = in[...], each element byte-reversed if swap; the boxes must not overlap. Item of 1, 2, 4 or 8 bytes. */
void grvi_region_copy(int rank, const int64_t *count, int64_t item_bytes, bool swap,
                      const uint8_t *in, const int64_t *in_strides, uint8_t *out,
                      const int64_t *out_strides);
/* out[...] = the pattern in the low bytes of fill */
void grvi_region_fill(int rank, const int64_t *count, int64_t item_bytes, uint64_t fill,
                      uint8_t *out, const int64_t *strides);
/* are all n dense elements equal to the pattern, bit by bit? */
bool grvi_is_all_fill(const uint8_t *data, int64_t n, int64_t item_bytes, uint64_t fill);
/* byte-reverses n dense elements */
void grvi_swap_in_place(uint8_t *data, int64_t n, int64_t item_bytes);

/* Next multi-index of [0, count) in row-major order; false after the last. */
bool grvi_next_index(int rank, const int64_t *count, int64_t *index);

#endif
