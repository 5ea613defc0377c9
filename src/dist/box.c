/* Blocks of an index space. */
#include "core/check.h"
#include "grove/dist.h"

int64_t grv_box_size(const grv_box *box)
{
    int64_t size = 1;
    for (int d = 0; d < box->n_dims; d++) size *= box->count[d];
    return size;
}

bool grv_box_intersect(const grv_box *a, const grv_box *b, grv_box *out)
{
    GRV_ASSERT(a->n_dims == b->n_dims);
    grv_box both = {.n_dims = a->n_dims};
    bool empty = false;
    for (int d = 0; d < both.n_dims; d++) {
        const int64_t end = grvi_min_i64(a->start[d] + a->count[d], b->start[d] + b->count[d]);
        both.start[d] = grvi_max_i64(a->start[d], b->start[d]);
        both.count[d] = end - both.start[d];
        empty = empty || both.count[d] <= 0;
    }
    for (int d = 0; empty && d < both.n_dims; d++) both.count[d] = 0;
    *out = both;
    return !empty;
}

grv_box grv_box_split(const grv_box *box, int dim, int parts, int part)
{
    GRV_ASSERT(dim >= 0 && dim < box->n_dims);
    const grv_range range = grv_partition_range(box->count[dim], parts, part);
    grv_box out = *box;
    out.start[dim] += range.start;
    out.count[dim] = range.count;
    return out;
}
