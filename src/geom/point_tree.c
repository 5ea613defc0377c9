/* A tree of point blocks, built by splitting at an order statistic along the widest axis.
 * Points and their indices are moved as records; a range of leaves is split where its left part is full, by selection (Floyd and Rivest's
 * sample, partition without branches), until ranges are single leaves. Boxes of leaves and nodes are then taken bottom up. n log(n / 16)
 * steps; the first levels go one range a thread, then each thread takes whole ranges. Layout: neighbour_kernels.h. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "geom/point_tree.h"
#include "grove/core.h"

enum { MAX_RANGES = 2048, MAX_SAMPLE = 63 };

typedef struct leaf_range {
    int64_t begin, end;
} leaf_range;

typedef struct finite_check {
    const void *points;
    int dimension;
    _Atomic int64_t first; /* row that is not finite; n if none is known */
} finite_check;

/* Where the arrays of a tree lie in its block, in bytes. */
typedef struct tree_layout {
    int n_levels;
    int64_t n_leaves, n_nodes[GRVI_TREE_MAX_LEVELS];
    int64_t boxes_at[GRVI_TREE_MAX_LEVELS], indices_at, n_bytes; /* leaves are at 0 */
} tree_layout;

/* What building needs, whatever the type. */
typedef struct build_input {
    const void *points; /* [n][dimension] */
    int dimension;
    int64_t n;
    const tree_layout *layout;
    void *block;        /* of the tree, written */
    void *records;      /* [n] */
    leaf_range *ranges; /* [2 * MAX_RANGES] */
    int n_threads;
} build_input;

static tree_layout lay_out(int64_t n, bool is_double)
{
    tree_layout layout = {.n_leaves = grvi_ceil_div(n, GRVI_TREE_WIDTH)};
    const int64_t block_bytes =
        GRVI_TREE_WIDTH * (int64_t)(is_double ? sizeof(double) : sizeof(float));
    int64_t at = 3 * layout.n_leaves * block_bytes, nodes = layout.n_leaves;
    do {
        nodes = grvi_ceil_div(nodes, GRVI_TREE_WIDTH);
        layout.n_nodes[layout.n_levels] = nodes;
        layout.boxes_at[layout.n_levels++] = at;
        at += 6 * nodes * block_bytes;
    } while (nodes > 1);
    layout.indices_at = at;
    layout.n_bytes = at + layout.n_leaves * GRVI_TREE_WIDTH * (int64_t)sizeof(int32_t);
    return layout;
}

static grvi_point_tree tree_of(const tree_layout *layout, const void *block)
{
    const char *const base = block;
    grvi_point_tree tree = {.n_levels = layout->n_levels, .leaves = block};
    for (int l = 0; l < layout->n_levels; l++) tree.boxes[l] = base + layout->boxes_at[l];
    tree.indices = (const void *)(base + layout->indices_at);
    return tree;
}

#define REAL    float
#define NAME(x) x##_f32
#include "geom/point_tree_loops.h"
#undef REAL
#undef NAME
#define REAL    double
#define NAME(x) x##_f64
#include "geom/point_tree_loops.h"

grv_status grvi_points_check_finite(const char *what, const void *points, int64_t n, int dimension,
                                    bool is_double, int n_threads)
{
    finite_check check = {.points = points, .dimension = dimension};
    atomic_init(&check.first, n);
    grv_parallel_for(n_threads, n, is_double ? find_not_finite_f64 : find_not_finite_f32, &check);
    const int64_t first = atomic_load(&check.first);
    GRV_CHECK(first == n, GRV_E_ARG,
              "finite coordinates expected, NaN or infinity found in row %lld of %s",
              (long long)first, what);
    return GRV_OK;
}

grv_status grvi_point_tree_build(const void *points, int64_t n, int dimension, bool is_double,
                                 int n_threads, grvi_tree_storage *storage)
{
    grv_status status = GRV_OK;
    void *records = NULL;
    leaf_range *ranges = NULL;
    *storage = (grvi_tree_storage){0};
    if (n == 0) return GRV_OK;
    GRV_TRY(grvi_points_check_finite("points", points, n, dimension, is_double, n_threads));
    const tree_layout layout = lay_out(n, is_double);
    GRV_TRY_GOTO(grvi_alloc(layout.n_bytes, 1, &storage->block));
    GRV_TRY_GOTO(grvi_alloc(n, is_double ? sizeof(record_f64) : sizeof(record_f32), &records));
    GRV_TRY_GOTO(GRVI_ALLOC(&ranges, 2 * MAX_RANGES));
    const build_input input = {points,         dimension, n,      &layout,
                               storage->block, records,   ranges, n_threads};
    if (is_double)
        build_tree_f64(&input);
    else
        build_tree_f32(&input);
    storage->tree = tree_of(&layout, storage->block);
    storage->n_bytes = layout.n_bytes;
done:
    grv_free(records);
    grv_free(ranges);
    if (status != GRV_OK) grvi_point_tree_fini(storage);
    return status;
}

void grvi_point_tree_fini(grvi_tree_storage *storage)
{
    grv_free(storage->block);
    *storage = (grvi_tree_storage){0};
}
