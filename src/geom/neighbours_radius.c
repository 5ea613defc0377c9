/* Searches within radii: rows of a fixed number of places, nearest first or in the order of the hash grid, and lists of all. */
#include <math.h>
#include <stdatomic.h>

#include "core/alloc.h"
#include "geom/hash_grid.h"
#include "geom/neighbours_impl.h"
#include "grove/core.h"

/* The largest squared distance within a radius, in the type of the points. */
static double bound_of(const grv_neighbours *neighbours, double radius)
{
    const float r = (float)radius;
    return neighbours->is_double ? radius * radius : (double)(r * r);
}

static grv_status check_search(int64_t n_queries, int n_radii)
{
    GRV_CHECK(n_queries >= 0, GRV_E_ARG, "a number of queries >= 0 expected, found %lld",
              (long long)n_queries);
    GRV_CHECK(n_radii >= 0, GRV_E_ARG, "a number of radii >= 0 expected, found %d", n_radii);
    return GRV_OK;
}

static grv_status check_radius(int number, double radius)
{
    GRV_CHECK(radius >= 0, GRV_E_ARG, "radius %d: a number >= 0 expected, found %g", number,
              radius);
    return GRV_OK;
}

/* ---- rows of max_points places ---- */

grv_radius_params grv_radius_params_default(void)
{
    return (grv_radius_params){
        .order = GRV_RADIUS_NEAREST, .cell_width_factor = 0.5, .n_threads = 1};
}

typedef struct rows_job {
    const grv_neighbours *neighbours;
    const grv_radius_params *params;
    const grv_radius_rows *rows; /* [n_radii] */
    int n_radii;
    grvi_hash_grid *grids; /* [n_radii], in grid order */
    int64_t squared_at;    /* in the scratch: squared distances, if none are wanted */
} rows_job;

static void search_rows(const void *argument, const void *query, int64_t index, void *scratch)
{
    const rows_job *const job = argument;
    const grv_neighbours *const neighbours = job->neighbours;
    for (int r = 0; r < job->n_radii; r++) {
        const grv_radius_rows *const rows = &job->rows[r];
        const int64_t places = rows->max_points, first = index * places;
        int32_t *const indices = rows->indices + first;
        void *const distances =
            grvi_row_of(neighbours, rows->distances, first, (char *)scratch + job->squared_at);
        int64_t n = 0;
        if (places > 0 && job->params->order == GRV_RADIUS_GRID_ORDER)
            n = grvi_hash_grid_first(&job->grids[r], neighbours->kernels, query, rows->radius,
                                     places, indices, distances);
        else if (places > 0)
            n = neighbours->kernels->nearest(&neighbours->storage.tree, query, places,
                                             bound_of(neighbours, rows->radius), -1, scratch,
                                             indices, distances);
        for (int64_t j = n; j < places; j++) indices[j] = 0;
        if (rows->counts != NULL) rows->counts[index] = (int32_t)n;
        if (rows->distances != NULL)
            grvi_rows_finish(neighbours->is_double, job->params->squared, n, places, 0, distances);
        if (rows->points != NULL)
            grvi_rows_gather(
                neighbours->is_double, neighbours->dimension, job->params->source_points, indices,
                n, places,
                grvi_row_of(neighbours, rows->points, first * neighbours->dimension, NULL));
    }
}

/* Width of a radius's cells. A radius of 0 has no natural one. */
static double width_of(const grv_neighbours *neighbours, const grv_radius_params *params,
                       double radius)
{
    if (!(radius > 0)) return 1;
    return neighbours->is_double ? radius * params->cell_width_factor
                                 : (double)((float)radius * (float)params->cell_width_factor);
}

static grv_status make_grids(const grv_neighbours *neighbours, const grv_radius_params *params,
                             const grv_radius_rows *rows, int n_radii, grvi_hash_grid *grids)
{
    const double largest = neighbours->is_double
                               ? 1e300
                               : 1e37; /* neither the width nor its inverse is 0 or infinity */
    GRV_CHECK(params->source_points != NULL || neighbours->n == 0, GRV_E_ARG,
              "grid order: source_points expected");
    GRV_CHECK(params->cell_width_factor > 0, GRV_E_ARG,
              "a cell_width_factor > 0 expected, found %g", params->cell_width_factor);
    for (int r = 0; r < n_radii; r++) {
        const double width = width_of(neighbours, params, rows[r].radius);
        GRV_CHECK(width < largest && width > 1 / largest, GRV_E_ARG,
                  "radius %d: cells between %g and %g wide expected, found %g", r, 1 / largest,
                  largest, width);
        GRV_TRY(grvi_hash_grid_build(params->source_points, neighbours->n, neighbours->dimension,
                                     neighbours->is_double, width, &grids[r]));
    }
    return GRV_OK;
}

static grv_status check_rows(const grv_neighbours *neighbours, const grv_radius_params *params,
                             const grv_radius_rows *rows, int n_radii)
{
    GRV_CHECK(params->order == GRV_RADIUS_NEAREST || params->order == GRV_RADIUS_GRID_ORDER,
              GRV_E_ARG, "order %d: GRV_RADIUS_NEAREST or GRV_RADIUS_GRID_ORDER expected",
              (int)params->order);
    for (int r = 0; r < n_radii; r++) {
        GRV_TRY(check_radius(r, rows[r].radius));
        GRV_CHECK(rows[r].max_points >= 0 && rows[r].max_points <= GRVI_MAX_PLACES, GRV_E_ARG,
                  "radius %d: max_points of 0 to %d expected, found %lld", r, GRVI_MAX_PLACES,
                  (long long)rows[r].max_points);
        GRV_CHECK(rows[r].points == NULL || params->source_points != NULL || neighbours->n == 0,
                  GRV_E_ARG, "radius %d: source_points expected, to gather points from", r);
    }
    return GRV_OK;
}

grv_status grv_neighbours_within(const grv_neighbours *neighbours, const void *queries,
                                 int64_t n_queries, const grv_radius_params *params,
                                 const grv_radius_rows *rows, int n_radii)
{
    grv_status status = GRV_OK;
    const grv_radius_params standard = grv_radius_params_default();
    if (params == NULL) params = &standard;
    rows_job job = {neighbours, params, rows, n_radii, NULL, 0};
    GRV_TRY(check_search(n_queries, n_radii));
    GRV_TRY(check_rows(neighbours, params, rows, n_radii));
    int64_t most = 0;
    for (int r = 0; r < n_radii; r++) most = grvi_max_i64(most, rows[r].max_points);
    GRV_TRY(GRVI_CALLOC(&job.grids, n_radii));
    if (params->order == GRV_RADIUS_GRID_ORDER)
        GRV_TRY_GOTO(make_grids(neighbours, params, rows, n_radii, job.grids));
    job.squared_at = grvi_nearest_scratch_bytes(most);
    grvi_query_loop loop = grvi_loop_over(neighbours, queries, n_queries, params->n_threads);
    loop.scratch_bytes = job.squared_at + most * grvi_real_bytes(neighbours);
    loop.body = search_rows;
    loop.job = &job;
    GRV_TRY_GOTO(grvi_query_loop_run(&loop));
done:
    for (int r = 0; r < n_radii; r++) grvi_hash_grid_fini(&job.grids[r]);
    grv_free(job.grids);
    return status;
}

/* ---- lists of all ---- */

typedef struct count_job {
    const grv_neighbours *neighbours;
    const double *radii;
    int n_radii;
    int64_t n_queries, *offsets; /* [n_radii][n_queries + 1] */
} count_job;

static void count_row(const void *argument, const void *query, int64_t index, void *scratch)
{
    const count_job *const job = argument;
    (void)scratch;
    for (int r = 0; r < job->n_radii; r++)
        job->offsets[r * (job->n_queries + 1) + index + 1] = job->neighbours->kernels->within(
            &job->neighbours->storage.tree, query, bound_of(job->neighbours, job->radii[r]), 0,
            NULL, NULL);
}

grv_status grv_neighbours_count(const grv_neighbours *neighbours, const void *queries,
                                int64_t n_queries, const double *radii, int n_radii, int n_threads,
                                int64_t *offsets)
{
    const count_job job = {neighbours, radii, n_radii, n_queries, offsets};
    GRV_TRY(check_search(n_queries, n_radii));
    for (int r = 0; r < n_radii; r++) GRV_TRY(check_radius(r, radii[r]));
    grvi_query_loop loop = grvi_loop_over(neighbours, queries, n_queries, n_threads);
    loop.body = count_row;
    loop.job = &job;
    GRV_TRY(grvi_query_loop_run(&loop));
    for (int r = 0; r < n_radii; r++) {
        int64_t *const of_radius = offsets + r * (n_queries + 1);
        of_radius[0] = 0;
        for (int64_t q = 0; q < n_queries; q++) of_radius[q + 1] += of_radius[q];
    }
    return GRV_OK;
}

typedef struct lists_job {
    const grv_neighbours *neighbours;
    const grv_radius_params *params;
    const grv_radius_lists *lists; /* [n_radii] */
    int n_radii;
    int64_t squared_at;        /* in the scratch: squared distances, if none are wanted */
    _Atomic int64_t *mismatch; /* number of a query whose offsets do not fit, or -1 */
} lists_job;

static void fill_row(const void *argument, const void *query, int64_t index, void *scratch)
{
    const lists_job *const job = argument;
    const grv_neighbours *const neighbours = job->neighbours;
    for (int r = 0; r < job->n_radii; r++) {
        const grv_radius_lists *const list = &job->lists[r];
        const int64_t first = list->offsets[index], places = list->offsets[index + 1] - first;
        int32_t *const indices = list->indices + first;
        void *const distances =
            grvi_row_of(neighbours, list->distances, first, (char *)scratch + job->squared_at);
        const int64_t n = neighbours->kernels->within(&neighbours->storage.tree, query,
                                                      bound_of(neighbours, list->radius), places,
                                                      indices, distances);
        if (n != places) {
            atomic_store(job->mismatch, index);
            return;
        }
        grvi_rows_sort(neighbours, n, indices, distances, scratch);
        if (list->distances != NULL)
            grvi_rows_finish(neighbours->is_double, job->params->squared, n, n, 0, distances);
        if (list->points != NULL)
            grvi_rows_gather(
                neighbours->is_double, neighbours->dimension, job->params->source_points, indices,
                n, n, grvi_row_of(neighbours, list->points, first * neighbours->dimension, NULL));
    }
}

grv_status grv_neighbours_fill(const grv_neighbours *neighbours, const void *queries,
                               int64_t n_queries, const grv_radius_params *params,
                               const grv_radius_lists *lists, int n_radii)
{
    const grv_radius_params standard = grv_radius_params_default();
    _Atomic int64_t mismatch = -1;
    int64_t most = 0;
    if (params == NULL) params = &standard;
    GRV_TRY(check_search(n_queries, n_radii));
    for (int r = 0; r < n_radii; r++) {
        GRV_TRY(check_radius(r, lists[r].radius));
        GRV_CHECK(lists[r].points == NULL || params->source_points != NULL || neighbours->n == 0,
                  GRV_E_ARG, "radius %d: source_points expected, to gather points from", r);
        for (int64_t q = 0; q < n_queries; q++) {
            const int64_t places = lists[r].offsets[q + 1] - lists[r].offsets[q];
            GRV_CHECK(places >= 0 && places <= neighbours->n, GRV_E_ARG,
                      "radius %d: the offsets of these queries expected, %lld neighbours found at "
                      "query %lld",
                      r, (long long)places, (long long)q);
            most = grvi_max_i64(most, places);
        }
    }
    const lists_job job = {neighbours, params, lists, n_radii, grvi_rows_sort_bytes(most),
                           &mismatch};
    grvi_query_loop loop = grvi_loop_over(neighbours, queries, n_queries, params->n_threads);
    loop.scratch_bytes = job.squared_at + most * grvi_real_bytes(neighbours);
    loop.body = fill_row;
    loop.job = &job;
    GRV_TRY(grvi_query_loop_run(&loop));
    const int64_t query = atomic_load(&mismatch);
    GRV_CHECK(query < 0, GRV_E_ARG,
              "the offsets of these queries and radii expected, query %lld has another number of "
              "neighbours",
              (long long)query);
    return GRV_OK;
}
