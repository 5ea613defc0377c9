/* Bounding volume hierarchy over triangles (layout: kernels/surface_kernels.h). Internal. */
#ifndef GRVI_GEOM_SURFACE_TREE_H
#define GRVI_GEOM_SURFACE_TREE_H

#include "core/check.h"
#include "kernels/surface_kernels.h"

/* Builds the tree. It depends on vertices and triangles only, not on the number of threads.
 * vertices [..][3] with |x| <= 1, triangles [n_triangles][3] into them, 1 <= n_triangles < 2^31: both borrowed by the tree. */
grv_status grvi_surface_tree_build(const double *vertices, const int32_t *triangles,
                                   int64_t n_triangles, int n_threads,
                                   grvi_surface_tree *tree) GRV_MUST_CHECK;
/* Adds moments and corners, for winding numbers. */
grv_status grvi_surface_tree_add_moments(grvi_surface_tree *tree, int n_threads) GRV_MUST_CHECK;
/* Releases what the two made. */
void grvi_surface_tree_fini(grvi_surface_tree *tree);

/* Turns the boxes of parts of the surface that are small enough to be nearly flat. count [n_nodes]: scratch. */
void grvi_surface_tree_turn_boxes(grvi_surface_tree *tree, int n_threads, int32_t *count);

/* Frame of a triangle, as place i of a block. */
void grvi_surface_block_set(grvi_surface_block *block, int i, const double *vertices,
                            const int32_t triangle[3], int32_t number);

#endif
