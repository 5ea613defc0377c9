/* The search structure and the k nearest: arguments checked, rows written from what the kernels find. Data and idea: neighbour_kernels.h,
 * point_tree.c. */
#include <math.h>

#include "core/alloc.h"
#include "geom/neighbours_impl.h"
#include "grove/core.h"

grv_status grv_neighbours_create(const void *points, int64_t n, int dimension,
                                 grv_neighbours_type type, int n_threads, grv_neighbours **out)
{
    *out = NULL;
    GRV_CHECK(n >= 0 && n < INT32_MAX, GRV_E_ARG,
              "0 to %d points expected, found %lld: indices are 32-bit", INT32_MAX - 1,
              (long long)n);
    GRV_CHECK(dimension == 2 || dimension == 3, GRV_E_ARG,
              "points of dimension 2 or 3 expected, found %d", dimension);
    GRV_CHECK(type == GRV_NEIGHBOURS_F32 || type == GRV_NEIGHBOURS_F64, GRV_E_ARG,
              "type %d: GRV_NEIGHBOURS_F32 or _F64 expected", (int)type);
    grv_neighbours *neighbours = NULL;
    GRV_TRY(GRVI_CALLOC(&neighbours, 1));
    neighbours->n = n;
    neighbours->dimension = dimension;
    neighbours->is_double = type == GRV_NEIGHBOURS_F64;
    neighbours->kernels = grvi_neighbour_kernels_for(grvi_isa_chosen(), neighbours->is_double);
    const grv_status status = grvi_point_tree_build(points, n, dimension, neighbours->is_double,
                                                    n_threads, &neighbours->storage);
    if (status == GRV_OK)
        *out = neighbours;
    else
        grv_neighbours_destroy(&neighbours);
    return status;
}

void grv_neighbours_destroy(grv_neighbours **neighbours)
{
    if (neighbours == NULL || *neighbours == NULL) return;
    grvi_point_tree_fini(&(*neighbours)->storage);
    grv_free(*neighbours);
    *neighbours = NULL;
}

int64_t grv_neighbours_bytes(const grv_neighbours *neighbours)
{
    return neighbours->storage.n_bytes + (int64_t)sizeof *neighbours;
}

/* ---- the k nearest ---- */

grv_nearest_params grv_nearest_params_default(void)
{
    return (grv_nearest_params){.k = 1, .pad_index = -1, .pad_distance = INFINITY, .n_threads = 1};
}

typedef struct nearest_job {
    const grv_neighbours *neighbours;
    const grv_nearest_params *params;
    int32_t *indices;
    void *distances;
    int64_t squared_at; /* in the scratch: squared distances, if none are wanted */
} nearest_job;

static void search_nearest(const void *argument, const void *query, int64_t index, void *scratch)
{
    const nearest_job *const job = argument;
    const grv_nearest_params *const params = job->params;
    const int64_t k = params->k;
    if (k == 0) return;
    const int32_t excluded = params->exclude_self       ? (int32_t)index
                             : params->excluded != NULL ? params->excluded[index]
                                                        : -1;
    int32_t *const indices = job->indices + index * k;
    void *const distances =
        grvi_row_of(job->neighbours, job->distances, index * k, (char *)scratch + job->squared_at);
    const int64_t n =
        job->neighbours->kernels->nearest(&job->neighbours->storage.tree, query, k,
                                          (double)INFINITY, excluded, scratch, indices, distances);
    for (int64_t j = n; j < k; j++) indices[j] = params->pad_index;
    if (job->distances == NULL) return;
    grvi_rows_finish(job->neighbours->is_double, params->squared, n, k, params->pad_distance,
                     distances);
}

grv_status grv_neighbours_nearest(const grv_neighbours *neighbours, const void *queries,
                                  int64_t n_queries, const grv_nearest_params *params,
                                  int32_t *indices, void *distances)
{
    const grv_nearest_params standard = grv_nearest_params_default();
    if (params == NULL) params = &standard;
    GRV_CHECK(n_queries >= 0, GRV_E_ARG, "a number of queries >= 0 expected, found %lld",
              (long long)n_queries);
    GRV_CHECK(params->k >= 0 && params->k <= GRVI_MAX_PLACES, GRV_E_ARG,
              "k of 0 to %d expected, found %lld", GRVI_MAX_PLACES, (long long)params->k);
    GRV_CHECK(!params->exclude_self || (n_queries == neighbours->n && params->excluded == NULL),
              GRV_E_ARG,
              "exclude_self: the %lld points themselves as queries and no `excluded` expected, "
              "%lld queries found",
              (long long)neighbours->n, (long long)n_queries);
    const nearest_job job = {neighbours, params, indices, distances,
                             grvi_nearest_scratch_bytes(params->k)};
    grvi_query_loop loop = grvi_loop_over(neighbours, queries, n_queries, params->n_threads);
    loop.scratch_bytes = job.squared_at + params->k * grvi_real_bytes(neighbours);
    loop.body = search_nearest;
    loop.job = &job;
    return grvi_query_loop_run(&loop);
}
