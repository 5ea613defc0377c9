/* Many points at once: scattered ones along a curve, so that the closest point of one bounds the search of the next. */
#include <math.h>
#include <string.h>

#include "geom/query_loop.h"
#include "geom/surface_impl.h"

grv_surface_query grv_surface_query_default(void)
{
    return (grv_surface_query){
        .max_distance = (double)INFINITY, .band = (double)INFINITY, .n_threads = 1};
}

grv_status grvi_surface_query_check(const grv_surface *surface, const grv_surface_query *query,
                                    const grvi_surface_sink *sink)
{
    GRV_CHECK(query->max_distance >= 0, GRV_E_ARG, "max_distance: at least 0 expected, %g found",
              query->max_distance);
    GRV_CHECK(query->band > 0, GRV_E_ARG, "band: a positive number expected, %g found",
              query->band);
    GRV_CHECK(sink->winding == NULL || surface->params.sign == GRV_SURFACE_WINDING, GRV_E_ARG,
              "winding numbers asked of a surface that was not prepared for them");
    return GRV_OK;
}

static void put(void *array, bool is_double, int64_t i, double value)
{
    if (array == NULL) return;
    if (is_double)
        ((double *)array)[i] = value;
    else
        ((float *)array)[i] = (float)value;
}

void grvi_surface_put(const grv_surface *surface, const grvi_surface_sink *sink, int64_t i,
                      const grvi_surface_found *found)
{
    put(sink->distance, sink->is_double, i,
        found->triangle < 0 ? found->distance : found->sign * (found->distance / surface->to_tree));
    put(sink->winding, sink->is_double, i, found->winding);
    for (int k = 0; k < 3; k++) {
        put(sink->closest, sink->is_double, 3 * i + k,
            surface->centre[k] + found->closest[k] / surface->to_tree);
        put(sink->barycentric, sink->is_double, 3 * i + k, found->weight[k]);
    }
    if (sink->triangle != NULL) sink->triangle[i] = found->triangle;
    if (sink->exact != NULL) sink->exact[i] = 1;
}

static void copy(void *array, bool is_double, int64_t i, int64_t source, int64_t n)
{
    const size_t size = is_double ? sizeof(double) : sizeof(float);
    if (array != NULL)
        memcpy((char *)array + (size_t)(i * n) * size, (char *)array + (size_t)(source * n) * size,
               (size_t)n * size);
}

void grvi_surface_put_swept(const grv_surface *surface, const grvi_surface_sink *sink, int64_t i,
                            int64_t source, double distance, int sign)
{
    put(sink->distance, sink->is_double, i, sign * (distance / surface->to_tree));
    copy(sink->closest, sink->is_double, i, source, 3);
    copy(sink->barycentric, sink->is_double, i, source, 3);
    if (sink->triangle != NULL) sink->triangle[i] = sink->triangle[source];
    if (sink->exact != NULL) sink->exact[i] = 0;
}

/* ---- scattered points ---- */

typedef struct point_job {
    const grv_surface *surface;
    const grvi_surface_sink *sink;
    double max_distance; /* tree coordinates */
} point_job;

/* scratch: what the thread remembers of its last point */
static void find_point(const void *argument, const void *query, int64_t index, void *scratch)
{
    const point_job *const job = argument;
    double point[3], x[3];
    for (int k = 0; k < 3; k++)
        point[k] =
            job->sink->is_double ? ((const double *)query)[k] : (double)((const float *)query)[k];
    grvi_surface_to_tree(job->surface, point, x);
    grvi_surface_found found;
    grvi_surface_find(job->surface, x, job->max_distance, job->sink->winding != NULL, scratch,
                      &found);
    grvi_surface_put(job->surface, job->sink, index, &found);
}

static grv_status find_points(const grv_surface *surface, int64_t n, const void *points,
                              const grv_surface_query *query, const grvi_surface_sink *sink)
{
    const grv_surface_query defaults = grv_surface_query_default();
    if (query == NULL) query = &defaults;
    GRV_CHECK(n >= 0, GRV_E_ARG, "points: at least 0 expected, %lld found", (long long)n);
    GRV_TRY(grvi_surface_query_check(surface, query, sink));
    const point_job job = {surface, sink, query->max_distance * surface->to_tree};
    const grvi_query_loop loop = {.queries = points,
                                  .n = n,
                                  .dimension = 3,
                                  .is_double = sink->is_double,
                                  .accepts_not_finite = true,
                                  .n_threads = query->n_threads,
                                  .scratch_bytes = (int64_t)sizeof(grvi_surface_memory),
                                  .body = find_point,
                                  .job = &job};
    GRV_TRY(grvi_query_loop_run(&loop));
    return GRV_OK;
}

grv_status grv_surface_points_f64(const grv_surface *surface, int64_t n, const double *points,
                                  const grv_surface_query *query,
                                  const grv_surface_result_f64 *result)
{
    const grvi_surface_sink sink = {true,
                                    result->distance,
                                    result->closest,
                                    result->barycentric,
                                    result->winding,
                                    result->triangle,
                                    result->exact};
    GRV_TRY(find_points(surface, n, points, query, &sink));
    return GRV_OK;
}

grv_status grv_surface_points_f32(const grv_surface *surface, int64_t n, const float *points,
                                  const grv_surface_query *query,
                                  const grv_surface_result_f32 *result)
{
    const grvi_surface_sink sink = {
        false,           result->distance, result->closest, result->barycentric,
        result->winding, result->triangle, result->exact};
    GRV_TRY(find_points(surface, n, points, query, &sink));
    return GRV_OK;
}
