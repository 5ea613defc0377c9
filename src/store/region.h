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

/* The value of what was never written. */
typedef struct grvi_fill {
    uint64_t bits;        /* items of at most 8 bytes: the pattern in the low bytes */
    const uint8_t *bytes; /* longer items: [item_bytes] as in memory. Borrowed */
} grvi_fill;

/* out[...] = in[...]; the boxes must not overlap. swap_bytes: length of the words of an item whose bytes are reversed (half
 * a complex number, one character), divides item_bytes; 0 or 1: none. */
void grvi_region_copy(int rank, const int64_t *count, int64_t item_bytes, int64_t swap_bytes,
                      const uint8_t *in, const int64_t *in_strides, uint8_t *out,
                      const int64_t *out_strides);
/* out[...] = fill */
void grvi_region_fill(int rank, const int64_t *count, int64_t item_bytes, grvi_fill fill,
                      uint8_t *out, const int64_t *strides);
/* are all n dense elements equal to the fill value, bit by bit? */
bool grvi_is_all_fill(const uint8_t *data, int64_t n, int64_t item_bytes, grvi_fill fill);
/* reverses the bytes of n dense words of 2, 4 or 8 bytes */
void grvi_swap_in_place(uint8_t *data, int64_t n, int64_t word_bytes);

/* A box of a dense row-major array. All borrowed. */
typedef struct grvi_part {
    int rank;
    int64_t item_bytes;
    const int64_t *shape, *start, *count; /* count > 0 */
} grvi_part;

/* Does the part hold any of the array's bytes from begin to end? */
bool grvi_part_touches(const grvi_part *part, int64_t begin, int64_t end);

/* Next multi-index of [0, count) in row-major order; false after the last. */
bool grvi_next_index(int rank, const int64_t *count, int64_t *index);

#endif
