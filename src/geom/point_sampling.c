/* Uniform points on surfaces (by cumulative areas, binary search), in boxes, and inside surfaces (by rejection). */
#include "grove/point_sampling.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "geom/point_sampling_impl.h"
#include "geom/surface_impl.h"
#include "grove/core.h"

enum { MAX_ATTEMPTS = 20000 };

/* ---- surfaces ---- */

struct grv_surface_sampler {
    const void *vertices;
    bool is_double;
    const int32_t *triangles;
    int64_t n_triangles;
    double *area_up_to; /* [n_triangles] with the triangle's own */
};

/* Corners of a triangle and its normal times twice its area. */
static void triangle_get(const grv_surface_sampler *s, int64_t t, double corner[3][3],
                         double normal[3])
{
    for (int j = 0; j < 3; j++)
        for (int k = 0; k < 3; k++)
            corner[j][k] =
                grvi_real_get(s->vertices, s->is_double, 3 * (int64_t)s->triangles[3 * t + j] + k);
    for (int k = 0; k < 3; k++) {
        const int l = (k + 1) % 3, m = (k + 2) % 3;
        normal[k] = (corner[1][l] - corner[0][l]) * (corner[2][m] - corner[0][m]) -
                    (corner[1][m] - corner[0][m]) * (corner[2][l] - corner[0][l]);
    }
}

static double length_of(const double x[3])
{
    return sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
}

static grv_status sum_areas(grv_surface_sampler *s, int64_t n_vertices)
{
    double sum = 0;
    for (int64_t t = 0; t < s->n_triangles; t++) {
        double corner[3][3], normal[3];
        for (int j = 0; j < 3; j++) {
            const int32_t v = s->triangles[3 * t + j];
            GRV_CHECK(v >= 0 && v < n_vertices, GRV_E_ARG, "triangle %lld: vertex %d of %lld",
                      (long long)t, (int)v, (long long)n_vertices);
        }
        triangle_get(s, t, corner, normal);
        sum += 0.5 * length_of(normal);
        GRV_CHECK(isfinite(sum), GRV_E_ARG,
                  "triangle %lld: its area, or that of all up to it, is not finite", (long long)t);
        s->area_up_to[t] = sum;
    }
    GRV_CHECK(sum > 0, GRV_E_ARG, "%lld triangles without area: nothing to sample",
              (long long)s->n_triangles);
    return GRV_OK;
}

static grv_status create(const grv_surface_sampler *desc, int64_t n_vertices,
                         grv_surface_sampler **out)
{
    grv_status status = GRV_OK;
    grv_surface_sampler *s = NULL;
    *out = NULL;
    GRV_TRY(GRVI_ALLOC(&s, 1));
    *s = *desc;
    GRV_TRY_GOTO(GRVI_ALLOC(&s->area_up_to, s->n_triangles));
    GRV_TRY_GOTO(sum_areas(s, n_vertices));
    *out = s;
    s = NULL;
done:
    grv_surface_sampler_destroy(&s);
    return status;
}

grv_status grv_surface_sampler_create_f64(int64_t n_vertices, const double *vertices,
                                          int64_t n_triangles, const int32_t *triangles,
                                          grv_surface_sampler **sampler)
{
    GRV_TRY(create(&(grv_surface_sampler){vertices, true, triangles, n_triangles, NULL}, n_vertices,
                   sampler));
    return GRV_OK;
}

grv_status grv_surface_sampler_create_f32(int64_t n_vertices, const float *vertices,
                                          int64_t n_triangles, const int32_t *triangles,
                                          grv_surface_sampler **sampler)
{
    GRV_TRY(create(&(grv_surface_sampler){vertices, false, triangles, n_triangles, NULL},
                   n_vertices, sampler));
    return GRV_OK;
}

void grv_surface_sampler_destroy(grv_surface_sampler **sampler)
{
    if (sampler == NULL || *sampler == NULL) return;
    grv_free((*sampler)->area_up_to);
    grv_free(*sampler);
    *sampler = NULL;
}

double grv_surface_sampler_area(const grv_surface_sampler *sampler)
{
    return sampler->area_up_to[sampler->n_triangles - 1];
}

/* The first triangle whose sum exceeds the area: never one without area of its own. */
static int64_t triangle_at(const grv_surface_sampler *s, double area)
{
    int64_t below = -1, above = s->n_triangles - 1;
    while (above - below > 1) {
        const int64_t middle = below + (above - below) / 2;
        if (s->area_up_to[middle] > area)
            above = middle;
        else
            below = middle;
    }
    return above;
}

typedef struct draw_call {
    const grv_surface_sampler *sampler;
    uint64_t seed;
    int64_t first;
    bool is_double;
    void *points, *normals, *barycentric;
    int32_t *triangles;
} draw_call;

static void draw_range(void *argument, int thread, int64_t begin, int64_t end)
{
    const draw_call *const call = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const uint64_t number = 3 * (uint64_t)(call->first + i);
        const double area = grv_surface_sampler_area(call->sampler);
        /* the product may round up to the whole area */
        const double at = fmin(area * grv_random_uniform(call->seed, GRVI_STREAM_SURFACE, number),
                               nextafter(area, 0));
        const double root = sqrt(grv_random_uniform(call->seed, GRVI_STREAM_SURFACE, number + 1));
        const double share = grv_random_uniform(call->seed, GRVI_STREAM_SURFACE, number + 2);
        const double weight[3] = {1 - root, (1 - share) * root, share * root};
        const int64_t t = triangle_at(call->sampler, at);
        double corner[3][3], normal[3];
        triangle_get(call->sampler, t, corner, normal);
        const double length = length_of(normal);
        for (int k = 0; k < 3; k++) {
            const double x =
                weight[0] * corner[0][k] + weight[1] * corner[1][k] + weight[2] * corner[2][k];
            if (call->points != NULL) grvi_real_set(call->points, call->is_double, 3 * i + k, x);
            if (call->normals != NULL)
                grvi_real_set(call->normals, call->is_double, 3 * i + k, normal[k] / length);
            if (call->barycentric != NULL)
                grvi_real_set(call->barycentric, call->is_double, 3 * i + k, weight[k]);
        }
        if (call->triangles != NULL) call->triangles[i] = (int32_t)t;
    }
}

static grv_status check_range(int64_t first, int64_t n)
{
    GRV_CHECK(first >= 0 && n >= 0 && first <= INT64_MAX / 4 - n, GRV_E_ARG,
              "samples %lld to %lld + %lld", (long long)first, (long long)first, (long long)n);
    return GRV_OK;
}

grv_status grv_surface_sampler_draw_f64(const grv_surface_sampler *sampler, uint64_t seed,
                                        int64_t first, int64_t n, int n_threads,
                                        const grv_surface_samples_f64 *samples)
{
    draw_call call = {sampler,
                      seed,
                      first,
                      true,
                      samples->points,
                      samples->normals,
                      samples->barycentric,
                      samples->triangles};
    GRV_TRY(check_range(first, n));
    grv_parallel_for(n_threads, n, draw_range, &call);
    return GRV_OK;
}

grv_status grv_surface_sampler_draw_f32(const grv_surface_sampler *sampler, uint64_t seed,
                                        int64_t first, int64_t n, int n_threads,
                                        const grv_surface_samples_f32 *samples)
{
    draw_call call = {sampler,
                      seed,
                      first,
                      false,
                      samples->points,
                      samples->normals,
                      samples->barycentric,
                      samples->triangles};
    GRV_TRY(check_range(first, n));
    grv_parallel_for(n_threads, n, draw_range, &call);
    return GRV_OK;
}

/* ---- boxes ---- */

static double in_range(double lower, double upper, double u)
{
    return fmin(lower + (upper - lower) * u, nextafter(upper, lower));
}

static grv_status fill_box(const double lower[3], const double upper[3], uint64_t seed,
                           int64_t first, int64_t n, void *points, bool is_double)
{
    GRV_TRY(check_range(first, n));
    for (int k = 0; k < 3; k++)
        GRV_CHECK(isfinite(upper[k] - lower[k]) && lower[k] < upper[k], GRV_E_ARG,
                  "box: axis %d runs from %g to %g", k, lower[k], upper[k]);
    for (int64_t i = 0; i < 3 * n; i++) {
        const int k = (int)(i % 3);
        const double x =
            in_range(lower[k], upper[k],
                     grv_random_uniform(seed, GRVI_STREAM_BOX, (uint64_t)(3 * first + i)));
        /* rounding to float must not leave the box upwards */
        if (is_double || (double)(float)x < upper[k])
            grvi_real_set(points, is_double, i, x);
        else
            ((float *)points)[i] = nextafterf((float)x, -INFINITY);
    }
    return GRV_OK;
}

grv_status grv_sample_box_f64(const double lower[3], const double upper[3], uint64_t seed,
                              int64_t first, int64_t n, double *points)
{
    GRV_TRY(fill_box(lower, upper, seed, first, n, points, true));
    return GRV_OK;
}

grv_status grv_sample_box_f32(const double lower[3], const double upper[3], uint64_t seed,
                              int64_t first, int64_t n, float *points)
{
    GRV_TRY(fill_box(lower, upper, seed, first, n, points, false));
    return GRV_OK;
}

/* ---- insides ---- */

/* What is still missing, and the candidates of this attempt. */
typedef struct rejection {
    int64_t n_missing;
    int64_t *missing;   /* numbers of the samples, from 0 */
    double *candidates; /* [n_missing][3] */
    double *distance;   /* [n_missing] */
    double lower[3], upper[3];
} rejection;

/* Attempt number a of every missing sample; those inside are written. */
static grv_status attempt(const grv_surface *surface, uint64_t seed, int64_t first, int64_t a,
                          int n_threads, rejection *r, void *points, bool is_double)
{
    for (int64_t i = 0; i < r->n_missing; i++) {
        for (int k = 0; k < 3; k++) {
            const uint64_t number = (uint64_t)(3 * (first + r->missing[i]) + k);
            double x = in_range(
                r->lower[k], r->upper[k],
                grv_random_uniform(seed, GRVI_STREAM_INSIDE + ((uint64_t)a << 32), number));
            if (!is_double) x = (double)(float)x;
            r->candidates[3 * i + k] = x;
        }
    }
    grv_surface_query query = grv_surface_query_default();
    query.n_threads = n_threads;
    GRV_TRY(grv_surface_points_f64(surface, r->n_missing, r->candidates, &query,
                                   &(grv_surface_result_f64){.distance = r->distance}));
    int64_t n_left = 0;
    for (int64_t i = 0; i < r->n_missing; i++) {
        if (!(r->distance[i] < 0)) {
            r->missing[n_left++] = r->missing[i];
            continue;
        }
        for (int k = 0; k < 3; k++)
            grvi_real_set(points, is_double, 3 * r->missing[i] + k, r->candidates[3 * i + k]);
    }
    r->n_missing = n_left;
    return GRV_OK;
}

static grv_status fill_inside(const grv_surface *surface, uint64_t seed, int64_t first, int64_t n,
                              int n_threads, void *points, bool is_double)
{
    grv_status status = GRV_OK;
    rejection r = {.n_missing = n};
    GRV_TRY(check_range(first, n));
    GRV_CHECK(surface->params.sign != GRV_SURFACE_UNSIGNED, GRV_E_ARG,
              "a surface without signs has no inside");
    for (int k = 0; k < 3; k++) {
        r.lower[k] = surface->lower[k] / surface->params.scale[k] + surface->params.origin[k];
        r.upper[k] = surface->upper[k] / surface->params.scale[k] + surface->params.origin[k];
        GRV_CHECK(r.lower[k] < r.upper[k], GRV_E_ARG,
                  "the surface is flat on axis %d and has no inside", k);
    }
    GRV_TRY_GOTO(GRVI_ALLOC(&r.missing, n));
    GRV_TRY_GOTO(GRVI_ALLOC(&r.candidates, 3 * n));
    GRV_TRY_GOTO(GRVI_ALLOC(&r.distance, n));
    for (int64_t i = 0; i < n; i++) r.missing[i] = i;
    for (int64_t a = 0; r.n_missing > 0; a++) {
        GRV_CHECK_GOTO(a < MAX_ATTEMPTS, GRV_E_NUMERIC,
                       "%lld of %lld points found no place inside the surface in %d attempts: its "
                       "inside is too small a "
                       "part of its box",
                       (long long)r.n_missing, (long long)n, (int)MAX_ATTEMPTS);
        GRV_TRY_GOTO(attempt(surface, seed, first, a, n_threads, &r, points, is_double));
    }
done:
    grv_free(r.missing);
    grv_free(r.candidates);
    grv_free(r.distance);
    return status;
}

grv_status grv_sample_inside_f64(const grv_surface *surface, uint64_t seed, int64_t first,
                                 int64_t n, int n_threads, double *points)
{
    GRV_TRY(fill_inside(surface, seed, first, n, n_threads, points, true));
    return GRV_OK;
}

grv_status grv_sample_inside_f32(const grv_surface *surface, uint64_t seed, int64_t first,
                                 int64_t n, int n_threads, float *points)
{
    GRV_TRY(fill_inside(surface, seed, first, n, n_threads, points, false));
    return GRV_OK;
}
