/* The hash grid whose order grv_neighbours_within(GRV_RADIUS_GRID_ORDER) promises. Internal. */
#ifndef GRVI_GEOM_HASH_GRID_H
#define GRVI_GEOM_HASH_GRID_H

#include "core/check.h"
#include "kernels/neighbour_kernels.h"

typedef struct grvi_hash_grid {
    bool is_double;
    double width_inverse;
    void *coordinates[3]; /* [n + 15] by bucket */
    int32_t *indices;     /* [n] by bucket, ascending within one */
    int32_t *starts;      /* [128^3 + 1] first place of each bucket */
} grvi_hash_grid;

/* points [n][dimension], finite, n < 2^31; cells `width` wide. GRV_E_NOMEM; *grid is empty after an error. */
grv_status grvi_hash_grid_build(const void *points, int64_t n, int dimension, bool is_double,
                                double width, grvi_hash_grid *grid) GRV_MUST_CHECK;
void grvi_hash_grid_fini(grvi_hash_grid *grid);

/* The first `limit` points within the radius in the order of the grid; returns their number. query [3]; indices and squared written */
int64_t grvi_hash_grid_first(const grvi_hash_grid *grid, const grvi_neighbour_kernels *kernels,
                             const void *query, double radius, int64_t limit, int32_t *indices,
                             void *squared);

#endif
