/* The search structure, and what its searches share. Internal to src/geom. */
#ifndef GRVI_GEOM_NEIGHBOURS_IMPL_H
#define GRVI_GEOM_NEIGHBOURS_IMPL_H

#include "geom/point_tree.h"
#include "geom/query_loop.h"
#include "grove/neighbours.h"

/* Places of a row: keeps sizes far from overflow. */
enum { GRVI_MAX_PLACES = 1 << 24 };

struct grv_neighbours {
    int64_t n;
    int dimension;
    bool is_double;
    grvi_tree_storage storage;
    const grvi_neighbour_kernels *kernels;
};

static inline int64_t grvi_real_bytes(const grv_neighbours *neighbours)
{
    return neighbours->is_double ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
}

/* Place number `place` of an array of reals, or `instead` where there is no array. */
static inline void *grvi_row_of(const grv_neighbours *neighbours, void *array, int64_t place,
                                void *instead)
{
    return array == NULL ? instead : (char *)array + place * grvi_real_bytes(neighbours);
}

static inline grvi_query_loop grvi_loop_over(const grv_neighbours *neighbours, const void *queries,
                                             int64_t n_queries, int n_threads)
{
    return (grvi_query_loop){.queries = queries,
                             .n = n_queries,
                             .dimension = neighbours->dimension,
                             .is_double = neighbours->is_double,
                             .n_threads = n_threads};
}

/* Makes distances of the first n squared ones, unless these are wanted, and fills up to n_places. */
void grvi_rows_finish(bool is_double, bool keep_squared, int64_t n, int64_t n_places, double pad,
                      void *distances);

/* Copies points of [..][dimension] to out [n][dimension] and sets the rest up to n_places to zero. */
void grvi_rows_gather(bool is_double, int dimension, const void *points, const int32_t *indices,
                      int64_t n, int64_t n_places, void *out);

/* Bytes of scratch for sorting n neighbours. */
int64_t grvi_rows_sort_bytes(int64_t n);
/* Sorts a row by index, squared distances along. scratch: 8-byte aligned */
void grvi_rows_sort(const grv_neighbours *neighbours, int64_t n, int32_t *indices, void *squared,
                    void *scratch);

#endif
