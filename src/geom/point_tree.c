/* A tree of point blocks, built by splitting at an order statistic along the widest axis.
 * Points stand in arrays of their own; a range of leaves is split where its left part is full (kernels' `split`), until ranges are single
 * leaves. Boxes of leaves and nodes are then taken bottom up. n log(n / 16) steps; the first levels go one range a thread, then each thread takes whole
 * ranges. Layout: neighbour_kernels.h. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "geom/point_tree.h"
#include "grove/core.h"

enum { MAX_RANGES = 2048 };

typedef struct leaf_range {
    int64_t begin, end;
} leaf_range;

typedef struct finite_check {
    const void *points;
    int dimension;
    _Atomic int64_t first; /* row that is not finite; n if none is known */
} finite_check;

/* Where the arrays of a tree lie in its block, in bytes: boxes first, then coordinates and indices. */
typedef struct tree_layout {
    int n_levels;
    int64_t n_leaves, n_nodes[GRVI_TREE_MAX_LEVELS];
    int64_t boxes_at[GRVI_TREE_MAX_LEVELS], points_at, n_bytes;
} tree_layout;

/* What building needs, whatever the type. */
typedef struct build_input {
    const void *points; /* [n][dimension] */
    int dimension;
    int64_t n;
    const tree_layout *layout;
    grvi_point_arrays sorted; /* of the tree, [n_leaves * 16] */
    grvi_point_arrays scratch;
    void *block;        /* of the tree, written */
    leaf_range *ranges; /* [2 * MAX_RANGES] */
    int n_threads;
} build_input;

static int64_t arrays_bytes(int64_t n, bool is_double)
{
    return n *
           (3 * (int64_t)(is_double ? sizeof(double) : sizeof(float)) + (int64_t)sizeof(int32_t));
}

static grvi_point_arrays arrays_of(void *block, int64_t n, bool is_double)
{
    char *const x = block;
    const int64_t bytes = n * (int64_t)(is_double ? sizeof(double) : sizeof(float));
    return (grvi_point_arrays){{x, x + bytes, x + 2 * bytes}, (void *)(x + 3 * bytes)};
}

static tree_layout lay_out(int64_t n, bool is_double)
{
    tree_layout layout = {.n_leaves = grvi_ceil_div(n, GRVI_TREE_WIDTH)};
    const int64_t block_bytes =
        GRVI_TREE_WIDTH * (int64_t)(is_double ? sizeof(double) : sizeof(float));
    int64_t at = 0, nodes = layout.n_leaves;
    do {
        nodes = grvi_ceil_div(nodes, GRVI_TREE_WIDTH);
        layout.n_nodes[layout.n_levels] = nodes;
        layout.boxes_at[layout.n_levels++] = at;
        at += 6 * nodes * block_bytes;
    } while (nodes > 1);
    layout.points_at = at;
    layout.n_bytes = at + arrays_bytes(layout.n_leaves * GRVI_TREE_WIDTH, is_double);
    return layout;
}

static grvi_point_tree tree_of(const tree_layout *layout, void *block, bool is_double)
{
    char *const base = block;
    grvi_point_tree tree = {.n_levels = layout->n_levels};
    for (int l = 0; l < layout->n_levels; l++) tree.boxes[l] = base + layout->boxes_at[l];
    tree.points =
        arrays_of(base + layout->points_at, layout->n_leaves * GRVI_TREE_WIDTH, is_double);
    return tree;
}

/* Scratch for splitting: each thread moves the latter parts of its ranges through the place between half their bounds, thread * SLACK further on. */
enum { SLACK = 2 * GRVI_TREE_WIDTH };

static int64_t scratch_size(const tree_layout *layout, int n_threads)
{
    return layout->n_leaves * GRVI_TREE_WIDTH / 2 + SLACK * (int64_t)(n_threads + 1);
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
    void *scratch = NULL;
    leaf_range *ranges = NULL;
    *storage = (grvi_tree_storage){0};
    if (n == 0) return GRV_OK;
    GRV_TRY(grvi_points_check_finite("points", points, n, dimension, is_double, n_threads));
    const tree_layout layout = lay_out(n, is_double);
    const int threads = n_threads < 1 ? 1 : n_threads;
    const int64_t n_scratch = scratch_size(&layout, threads);
    GRV_TRY_GOTO(grvi_alloc(layout.n_bytes, 1, &storage->block));
    GRV_TRY_GOTO(grvi_alloc(arrays_bytes(n_scratch, is_double), 1, &scratch));
    GRV_TRY_GOTO(GRVI_ALLOC(&ranges, 2 * MAX_RANGES));
    storage->tree = tree_of(&layout, storage->block, is_double);
    storage->n_bytes = layout.n_bytes;
    const build_input input = {.points = points,
                               .dimension = dimension,
                               .n = n,
                               .layout = &layout,
                               .sorted = storage->tree.points,
                               .scratch = arrays_of(scratch, n_scratch, is_double),
                               .block = storage->block,
                               .ranges = ranges,
                               .n_threads = threads};
    if (is_double)
        build_tree_f64(&input);
    else
        build_tree_f32(&input);
done:
    grv_free(scratch);
    grv_free(ranges);
    if (status != GRV_OK) grvi_point_tree_fini(storage);
    return status;
}

void grvi_point_tree_fini(grvi_tree_storage *storage)
{
    grv_free(storage->block);
    *storage = (grvi_tree_storage){0};
}
