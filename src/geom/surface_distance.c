/* Surfaces prepared for queries: vertices are mapped, moved to their centre and scaled by a power of two into the unit ball, in double. */
#include "grove/surface_distance.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "geom/surface_impl.h"
#include "grove/core.h"

grv_surface_params grv_surface_params_default(void)
{
    return (grv_surface_params){
        .sign = GRV_SURFACE_WINDING, .opening = 2, .scale = {1, 1, 1}, .n_threads = 1};
}

void grv_surface_params_normalize(grv_surface_params *params, const double lower[3],
                                  const double upper[3])
{
    for (int k = 0; k < 3; k++) {
        params->origin[k] = lower[k] + 0.5 * (upper[k] - lower[k]);
        params->scale[k] = 2 / (upper[k] - lower[k]);
    }
}

/* Vertices as the caller has them. */
typedef struct vertex_source {
    int64_t n;
    const void *values;
    bool is_double;
} vertex_source;

static grv_status check_params(const grv_surface_params *params)
{
    GRV_CHECK(params->sign >= GRV_SURFACE_UNSIGNED && params->sign <= GRV_SURFACE_PSEUDONORMAL,
              GRV_E_ARG, "sign: %d is none", (int)params->sign);
    GRV_CHECK(params->opening >= 1, GRV_E_ARG, "opening: at least 1 expected, %g found",
              params->opening);
    for (int k = 0; k < 3; k++) {
        GRV_CHECK(isfinite(params->origin[k]), GRV_E_ARG,
                  "origin[%d]: a finite number expected, %g found", k, params->origin[k]);
        GRV_CHECK(isfinite(params->scale[k]) && params->scale[k] > 0, GRV_E_ARG,
                  "scale[%d]: a positive number expected, %g found", k, params->scale[k]);
    }
    return GRV_OK;
}

static grv_status check_triangles(int64_t n_vertices, int64_t n_triangles, const int32_t *triangles)
{
    GRV_CHECK(n_vertices >= 0 && n_vertices < INT32_MAX, GRV_E_ARG,
              "vertices: 0 to 2^31 - 2 expected, %lld found", (long long)n_vertices);
    GRV_CHECK(n_triangles >= 0 && n_triangles < INT32_MAX, GRV_E_ARG,
              "triangles: 0 to 2^31 - 2 expected, %lld found", (long long)n_triangles);
    for (int64_t i = 0; i < 3 * n_triangles; i++) {
        GRV_CHECK(triangles[i] >= 0 && triangles[i] < n_vertices, GRV_E_ARG,
                  "triangle %lld: vertex %d of %lld", (long long)(i / 3), (int)triangles[i],
                  (long long)n_vertices);
    }
    return GRV_OK;
}

/* Mapped vertices, and the box of those that triangles use. */
static grv_status map_vertices(grv_surface *surface, const vertex_source *source)
{
    for (int64_t v = 0; v < source->n; v++) {
        for (int k = 0; k < 3; k++) {
            const double x = source->is_double ? ((const double *)source->values)[3 * v + k]
                                               : (double)((const float *)source->values)[3 * v + k];
            surface->vertices[3 * v + k] =
                (x - surface->params.origin[k]) * surface->params.scale[k];
        }
    }
    for (int k = 0; k < 3; k++) {
        surface->lower[k] = surface->n_triangles > 0 ? (double)INFINITY : 0;
        surface->upper[k] = -surface->lower[k];
    }
    for (int64_t i = 0; i < 3 * surface->n_triangles; i++) {
        const double *const x = &surface->vertices[3 * (int64_t)surface->triangles[i]];
        for (int k = 0; k < 3; k++) {
            GRV_CHECK(fabs(x[k]) < 1e150, GRV_E_ARG,
                      "triangle %lld: vertex %d is at %g on axis %d; finite coordinates below "
                      "1e150 expected",
                      (long long)(i / 3), (int)surface->triangles[i], x[k], k);
            surface->lower[k] = grvi_min_f64(surface->lower[k], x[k]);
            surface->upper[k] = grvi_max_f64(surface->upper[k], x[k]);
        }
    }
    return GRV_OK;
}

static void centre_vertices(grv_surface *surface)
{
    double radius2 = 0;
    for (int k = 0; k < 3; k++) {
        surface->centre[k] = surface->lower[k] + 0.5 * (surface->upper[k] - surface->lower[k]);
        radius2 += pow(0.5 * (surface->upper[k] - surface->lower[k]), 2);
    }
    int exponent = 0;
    (void)frexp(sqrt(radius2), &exponent);
    surface->to_tree = radius2 > 0 ? ldexp(1, exponent > -1000 ? -exponent : 1000) : 1;
    for (int64_t v = 0; v < surface->n_vertices; v++)
        for (int k = 0; k < 3; k++)
            surface->vertices[3 * v + k] =
                (surface->vertices[3 * v + k] - surface->centre[k]) * surface->to_tree;
}

static grv_status prepare(grv_surface *surface, const vertex_source *source,
                          const int32_t *triangles)
{
    const int n_threads = surface->params.n_threads;
    GRV_TRY(GRVI_ALLOC(&surface->vertices, 3 * source->n));
    GRV_TRY(GRVI_ALLOC(&surface->triangles, 3 * surface->n_triangles));
    if (surface->n_triangles > 0)
        memcpy(surface->triangles, triangles,
               (size_t)(3 * surface->n_triangles) * sizeof *triangles);
    GRV_TRY(map_vertices(surface, source));
    centre_vertices(surface);
    if (surface->n_triangles == 0) return GRV_OK;
    GRV_TRY(grvi_surface_tree_build(surface->vertices, surface->triangles, surface->n_triangles,
                                    n_threads, &surface->tree));
    if (surface->params.sign == GRV_SURFACE_WINDING)
        GRV_TRY(grvi_surface_tree_add_moments(&surface->tree, n_threads));
    if (surface->params.sign != GRV_SURFACE_UNSIGNED) {
        GRV_TRY(grvi_surface_topology_build(
            source->n, surface->vertices, surface->n_triangles, surface->triangles,
            surface->params.sign == GRV_SURFACE_PSEUDONORMAL, n_threads, &surface->topology));
    }
    return GRV_OK;
}

static grv_status create(const vertex_source *source, int64_t n_triangles, const int32_t *triangles,
                         const grv_surface_params *params, grv_surface **out)
{
    *out = NULL;
    const grv_surface_params defaults = grv_surface_params_default();
    if (params == NULL) params = &defaults;
    GRV_TRY(check_params(params));
    GRV_TRY(check_triangles(source->n, n_triangles, triangles));
    grv_surface *surface = NULL;
    GRV_TRY(GRVI_CALLOC(&surface, 1));
    surface->params = *params;
    if (surface->params.n_threads < 1) surface->params.n_threads = 1;
    surface->n_vertices = source->n;
    surface->n_triangles = n_triangles;
    surface->kernels = grvi_surface_kernels_for(grvi_isa_chosen());
    const grv_status status = prepare(surface, source, triangles);
    if (status != GRV_OK) {
        grv_surface_destroy(&surface);
        grvi_frame(__FILE__, __LINE__, __func__);
        return status;
    }
    *out = surface;
    return GRV_OK;
}

grv_status grv_surface_create_f64(int64_t n_vertices, const double *vertices, int64_t n_triangles,
                                  const int32_t *triangles, const grv_surface_params *params,
                                  grv_surface **surface)
{
    const vertex_source source = {n_vertices, vertices, true};
    GRV_TRY(create(&source, n_triangles, triangles, params, surface));
    return GRV_OK;
}

grv_status grv_surface_create_f32(int64_t n_vertices, const float *vertices, int64_t n_triangles,
                                  const int32_t *triangles, const grv_surface_params *params,
                                  grv_surface **surface)
{
    const vertex_source source = {n_vertices, vertices, false};
    GRV_TRY(create(&source, n_triangles, triangles, params, surface));
    return GRV_OK;
}

void grv_surface_destroy(grv_surface **surface)
{
    if (surface == NULL || *surface == NULL) return;
    grvi_surface_tree_fini(&(*surface)->tree);
    grvi_surface_topology_fini(&(*surface)->topology);
    grv_free((*surface)->vertices);
    grv_free((*surface)->triangles);
    grv_free(*surface);
    *surface = NULL;
}

static int64_t tree_bytes(const grvi_surface_tree *tree)
{
    int64_t bytes = tree->n_nodes * (int64_t)sizeof *tree->nodes +
                    tree->n_blocks * (int64_t)sizeof *tree->blocks;
    if (tree->moments != NULL)
        bytes += tree->n_nodes * (int64_t)sizeof *tree->moments +
                 tree->n_blocks * (int64_t)sizeof *tree->corners;
    return bytes;
}

grv_surface_info grv_surface_info_get(const grv_surface *surface)
{
    const grvi_surface_topology *const t = &surface->topology;
    grv_surface_info info = {.n_triangles = surface->n_triangles, .n_open_edges = t->n_open_edges};
    if (surface->params.sign == GRV_SURFACE_UNSIGNED) info.n_open_edges = -1;
    memcpy(info.lower, surface->lower, sizeof info.lower);
    memcpy(info.upper, surface->upper, sizeof info.upper);
    info.bytes = (int64_t)sizeof *surface + 24 * surface->n_vertices + 12 * surface->n_triangles +
                 tree_bytes(&surface->tree);
    if (t->corner != NULL) info.bytes += 4 * surface->n_vertices + 12 * surface->n_triangles;
    if (t->corner_normal != NULL) info.bytes += 12 * (t->n_corners + t->n_edges);
    return info;
}
