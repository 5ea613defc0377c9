/* Hash grid of 128^3 buckets: points in the order in which Warp's hash grid gives them out (the public header has the rule).
 * A counting sort, stable, two passes over the points. A query reads its cells row by row: along x they follow each other in memory. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "geom/hash_grid.h"
#include "grove/core.h"

enum { GRID_SIDE = 128, N_BUCKETS = GRID_SIDE * GRID_SIDE * GRID_SIDE, FAR_CELL = 1 << 30 };

/* Along an axis: modulo 128, also below 0 (Warp adds 2^20 first, a multiple of 128, and is undefined where that is not enough). */
static int64_t wrap(int64_t cell)
{
    return cell & (GRID_SIDE - 1);
}

static int64_t bucket(int64_t x, int64_t y, int64_t z)
{
    return (wrap(z) * GRID_SIDE + wrap(y)) * GRID_SIDE + wrap(x);
}

#define REAL    float
#define NAME(x) x##_f32
#include "geom/hash_grid_loops.h"
#undef REAL
#undef NAME
#define REAL    double
#define NAME(x) x##_f64
#include "geom/hash_grid_loops.h"

grv_status grvi_hash_grid_build(const void *points, int64_t n, int dimension, bool is_double,
                                double width, grvi_hash_grid *grid)
{
    grv_status status = GRV_OK;
    const size_t size = is_double ? sizeof(double) : sizeof(float);
    *grid = (grvi_hash_grid){.is_double = is_double,
                             .width_inverse = is_double ? 1 / width : (double)(1 / (float)width)};
    for (int d = 0; d < 3; d++)
        GRV_TRY_GOTO(grvi_alloc(n + GRVI_TREE_WIDTH - 1, size, &grid->coordinates[d]));
    GRV_TRY_GOTO(GRVI_ALLOC(&grid->indices, n));
    GRV_TRY_GOTO(GRVI_ALLOC(&grid->starts, N_BUCKETS + 1));
    if (is_double)
        fill_grid_f64(points, n, dimension, grid);
    else
        fill_grid_f32(points, n, dimension, grid);
done:
    if (status != GRV_OK) grvi_hash_grid_fini(grid);
    return status;
}

void grvi_hash_grid_fini(grvi_hash_grid *grid)
{
    for (int d = 0; d < 3; d++) grv_free(grid->coordinates[d]);
    grv_free(grid->indices);
    grv_free(grid->starts);
    *grid = (grvi_hash_grid){0};
}

int64_t grvi_hash_grid_first(const grvi_hash_grid *grid, const grvi_neighbour_kernels *kernels,
                             const void *query, double radius, int64_t limit, int32_t *indices,
                             void *squared)
{
    if (grid->is_double)
        return first_of_grid_f64(grid, kernels, query, radius, limit, indices, squared);
    return first_of_grid_f32(grid, kernels, query, (float)radius, limit, indices, squared);
}
