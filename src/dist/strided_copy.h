/* Copies of boxes between two strided memories, reduced to as few and as long contiguous runs as they have. Internal. */
#ifndef GRVI_DIST_STRIDED_COPY_H
#define GRVI_DIST_STRIDED_COPY_H

#include "core/check.h"
#include "grove/dist.h"

/* One box. A row is count[last] runs; rows are numbered over the other dimensions. All strides are bytes. */
typedef struct grvi_strided_copy {
    int n_dims; /* >= 1 */
    int64_t count[GRV_BOX_MAX_DIMS], from_stride[GRV_BOX_MAX_DIMS], to_stride[GRV_BOX_MAX_DIMS];
    int64_t from_offset, to_offset; /* bytes to the first element */
    int64_t run_bytes;              /* contiguous on both sides */
} grvi_strided_copy;

/* Describes the copy of a box of count[n_dims] elements; strides in elements, offsets in bytes. No count is 0. */
grvi_strided_copy grvi_strided_copy_make(int n_dims, int64_t element_bytes, const int64_t *count,
                                         const int64_t *from_stride, int64_t from_offset,
                                         const int64_t *to_stride, int64_t to_offset);
/* Whether the box is one run on both sides. */
bool grvi_strided_copy_is_contiguous(const grvi_strided_copy *copy);

/* Several copies that run together, their rows shared among threads. */
typedef struct grvi_copy_list {
    int64_t n;
    grvi_strided_copy *copies; /* [capacity given to init] */
    int64_t *first_row;        /* [capacity + 1]: rows of all copies before this one */
    int64_t bytes;
    int n_threads;
} grvi_copy_list;

grv_status grvi_copy_list_init(grvi_copy_list *list, int64_t capacity,
                               int n_threads) GRV_MUST_CHECK;
void grvi_copy_list_fini(grvi_copy_list *list);
void grvi_copy_list_add(grvi_copy_list *list, const grvi_strided_copy *copy);
/* No element that is written overlaps one that is read. */
void grvi_copy_list_run(const grvi_copy_list *list, const void *from, void *to);

#endif
