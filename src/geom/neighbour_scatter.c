/* Adjoint of gathering neighbours: each thread adds what belongs to its own range of points, in the order of the rows, so that every sum is
 * the serial one. No scratch; the indices are read by every thread, the gradients once. */
#include "core/check.h"
#include "grove/core.h"
#include "grove/neighbours.h"

/* First and last place of a row that are in use. */
static int64_t row_begin(const grv_gathered_gradients *g, int64_t row)
{
    return g->offsets != NULL ? g->offsets[row] : row * g->row_length;
}

static int64_t row_end(const grv_gathered_gradients *g, int64_t row)
{
    if (g->offsets != NULL) return g->offsets[row + 1];
    return row_begin(g, row) + (g->counts != NULL ? g->counts[row] : g->row_length);
}

typedef struct scatter {
    const grv_gathered_gradients *gathered;
    void *sums;
} scatter;

#define REAL    float
#define NAME(x) x##_f32
#include "geom/neighbour_scatter_loops.h"
#undef REAL
#undef NAME
#define REAL    double
#define NAME(x) x##_f64
#include "geom/neighbour_scatter_loops.h"

static grv_status check_rows(const grv_gathered_gradients *g)
{
    for (int64_t row = 0; row < g->n_rows; row++) {
        if (g->offsets != NULL)
            GRV_CHECK(g->offsets[row] >= 0 && g->offsets[row] <= g->offsets[row + 1], GRV_E_ARG,
                      "offsets that ascend from 0 expected, row %lld: %lld to %lld", (long long)row,
                      (long long)g->offsets[row], (long long)g->offsets[row + 1]);
        else if (g->counts != NULL)
            GRV_CHECK(g->counts[row] >= 0 && g->counts[row] <= g->row_length, GRV_E_ARG,
                      "row %lld: a count of 0 to %lld expected, found %d", (long long)row,
                      (long long)g->row_length, (int)g->counts[row]);
        for (int64_t e = row_begin(g, row); e < row_end(g, row); e++)
            GRV_CHECK(g->indices[e] >= 0 && g->indices[e] < g->n_points, GRV_E_ARG,
                      "row %lld: an index of 0 to %lld expected, found %d", (long long)row,
                      (long long)g->n_points - 1, (int)g->indices[e]);
    }
    return GRV_OK;
}

grv_status grv_neighbours_scatter(const grv_gathered_gradients *gathered, int n_threads, void *sums)
{
    const grv_gathered_gradients *const g = gathered;
    GRV_CHECK(g->type == GRV_NEIGHBOURS_F32 || g->type == GRV_NEIGHBOURS_F64, GRV_E_ARG,
              "type %d: GRV_NEIGHBOURS_F32 or _F64 expected", (int)g->type);
    GRV_CHECK(g->dimension >= 1 && g->n_points >= 0 && g->n_rows >= 0 && g->row_length >= 0,
              GRV_E_ARG,
              "dimension %d >= 1, n_points %lld, n_rows %lld and row_length %lld >= 0 expected",
              g->dimension, (long long)g->n_points, (long long)g->n_rows, (long long)g->row_length);
    GRV_TRY(check_rows(g));
    scatter call = {gathered, sums};
    grv_parallel_for(n_threads, g->n_points,
                     g->type == GRV_NEIGHBOURS_F64 ? add_range_f64 : add_range_f32, &call);
    return GRV_OK;
}
