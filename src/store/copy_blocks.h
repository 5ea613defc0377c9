/* In which blocks an array is copied into another layout. Internal. */
#ifndef GRVI_STORE_COPY_BLOCKS_H
#define GRVI_STORE_COPY_BLOCKS_H

#include "core/check.h"
#include "store/region.h"

/* An array of `shape`, read in units of `unit` (source chunks) and written in objects of `object`. Lengths in elements. */
typedef struct grvi_copy_shapes {
    int rank;
    int64_t item_bytes;
    const int64_t *shape, *unit, *object;
} grvi_copy_shapes;

/* Chooses the block that is read and written at once: a multiple of the object along each axis, of at most `budget` bytes, so
 * that source chunks are decoded as seldom as possible, and otherwise just large enough to keep threads busy.
 * GRV_E_ARG if not even one object fits; the message tells what is needed. */
grv_status grvi_copy_choose_block(const grvi_copy_shapes *shapes, int64_t budget,
                                  int64_t *block) GRV_MUST_CHECK;

/* Decodings of all blocks together over the number of source chunks: 1 where each is decoded once. */
double grvi_copy_rereads(const grvi_copy_shapes *shapes, const int64_t *block);

#endif
