/* Builds the tree of neighbour_kernels.h over points. Internal. */
#ifndef GRVI_GEOM_POINT_TREE_H
#define GRVI_GEOM_POINT_TREE_H

#include "core/check.h"
#include "kernels/neighbour_kernels.h"

typedef struct grvi_tree_storage {
    grvi_point_tree tree; /* points into blocks */
    void *block;          /* the only allocation */
    int64_t n_bytes;
} grvi_tree_storage;

/* points [n][dimension] float or double, all finite, dimension 2 or 3, 0 <= n < 2^31. The tree is the same for any number of threads.
 * GRV_E_NOMEM; GRV_E_ARG names the first point that is not finite. *storage is empty after an error. */
grv_status grvi_point_tree_build(const void *points, int64_t n, int dimension, bool is_double,
                                 int n_threads, grvi_tree_storage *storage) GRV_MUST_CHECK;
void grvi_point_tree_fini(grvi_tree_storage *storage);

/* GRV_E_ARG with the first row of points [n][dimension] that is not finite; `what` names the array in the message. */
grv_status grvi_points_check_finite(const char *what, const void *points, int64_t n, int dimension,
                                    bool is_double, int n_threads) GRV_MUST_CHECK;

#endif
