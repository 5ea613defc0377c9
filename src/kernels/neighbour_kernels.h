/* Searches of one query in a tree of point blocks, and along a run of points. Internal.
 *
 * The squared distance of a query q to a point p is, everywhere and in every instruction set,
 *     ((q0 - p0)^2 + (q1 - p1)^2) + (q2 - p2)^2
 * with each operation rounded to the type of the points (no fused multiply-add); two-dimensional points have 0 as third coordinate,
 * which changes no bit. Rounding is monotone, so the same expression on the distance to a box is a lower bound, in floating point and not
 * just nearly, for every point in it: branches are cut only where that bound is larger than what is kept.
 *
 * The tree has GRVI_TREE_WIDTH points a leaf and GRVI_TREE_WIDTH children a node; all leaves but the last are full, nodes are numbered along
 * the leaves, node j of a level has the children 16 j .. 16 j + 15 of the level below. Missing points and children are NaN, which no comparison
 * accepts. `void` data have the type of the table. Coordinates of points and queries are finite. */
#ifndef GRVI_KERNELS_NEIGHBOUR_KERNELS_H
#define GRVI_KERNELS_NEIGHBOUR_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/isa.h"

enum {
    GRVI_TREE_WIDTH = 16,
    GRVI_SHORT_ROW =
        96, /* so many steps a neighbour are still fewer than those of a sort by n log n */
    GRVI_TREE_MAX_LEVELS = 8 /* 16^7 leaves of 16 points are more than 2^31 points */
};

/* No point has this index: larger than all. */
#define GRVI_NO_POINT INT32_MAX

/* Points as arrays: coordinates [3] of one type, numbers. */
typedef struct grvi_point_arrays {
    void *x[3];
    int32_t *indices;
} grvi_point_arrays;

typedef struct grvi_point_tree {
    int n_levels;             /* of nodes, the root included; 0 without points */
    grvi_point_arrays points; /* leaf j: 16 j to 16 j + 15 */
    const void *boxes
        [GRVI_TREE_MAX_LEVELS]; /* [n_nodes][6][16] children's lower x, y, z, upper x, y, z; level 0: boxes of leaves */
} grvi_point_tree;

/* Bytes of scratch for nearest() with so many results. */
int64_t grvi_nearest_scratch_bytes(int64_t k);

typedef struct grvi_neighbour_kernels {
    /* The k >= 1 points first by (squared distance, index) among those with squared distance <= bound and index != excluded.
     * query [3]; scratch, 64-byte aligned; indices [k] and squared [k] written up to the count that is returned */
    int64_t (*nearest)(const grvi_point_tree *tree, const void *query, int64_t k, double bound,
                       int32_t excluded, void *scratch, int32_t *indices, void *squared);
    /* Number of points with squared distance <= bound. indices and squared [limit]: written, in the tree's order, as long as whole leaves fit. */
    int64_t (*within)(const grvi_point_tree *tree, const void *query, double bound, int64_t limit,
                      int32_t *indices, void *squared);
    /* The first `limit` of the points [begin, end) with squared distance <= bound; returns their number.
     * points: [3] pointers to coordinates, readable 15 beyond end; positions and squared written */
    int64_t (*run)(const void *const *points, int64_t begin, int64_t end, const void *query,
                   double bound, int64_t limit, int32_t *positions, void *squared);
    /* Sorts 0 <= n <= GRVI_SHORT_ROW neighbours by index, squared along; no two indices are equal. */
    void (*sort_short)(int64_t n, int32_t *indices, void *squared);
    /* Reorders points [begin, end) so that along the axis on which they extend most (of more than 1024: of at least 500 evenly spaced ones) none of the first
     * n_first is larger than any of the others.
     * end - begin and n_first: multiples of GRVI_TREE_WIDTH, 0 < n_first < end - begin; NaN, fewer than GRVI_TREE_WIDTH of them, are larger than all.
     * scratch: the others are moved through elements [scratch_end - (end - begin - n_first) - GRVI_TREE_WIDTH, scratch_end) */
    void (*split)(const grvi_point_arrays *points, int64_t begin, int64_t end, int64_t n_first,
                  const grvi_point_arrays *scratch, int64_t scratch_end);
} grvi_neighbour_kernels;

/* Table for float or double points; NULL if the instruction set is not usable. */
const grvi_neighbour_kernels *grvi_neighbour_kernels_for(grvi_isa isa, bool is_double);

/* NULL where the compiler lacks the instruction set. Use grvi_neighbour_kernels_for. */
const grvi_neighbour_kernels *grvi_neighbour_kernels_ref(bool is_double);
const grvi_neighbour_kernels *grvi_neighbour_kernels_avx2(bool is_double);
const grvi_neighbour_kernels *grvi_neighbour_kernels_avx512(bool is_double);

#endif
