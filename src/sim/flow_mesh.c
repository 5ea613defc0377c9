/* Meshes of bodies: a shape in a pose, prepared for distances, and measured on the grid of a flow.
 * On the grid, distances are taken in the box around the body only, at the four places of the solver's cells one after the other, each by a search in
 * a band of one cell and sweeps beyond (surface_distance.h): the band is what the smoothed surface touches, farther away the sign is
 * enough. The normal is the direction to the closest point. 32 bytes a place and cell of the box, and 45 of scratch. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "sim/flow_mesh_impl.h"

static const double band = 1;   /* cells: beyond, a body changes nothing */
static const double margin = 2; /* cells around the body's box, more than its effect reaches */
static const double on_surface =
    1e-6; /* cells: so near, the direction to the closest point is rounding */

/* ---- preparing ---- */

static grv_status check_pose(const grv_flow_pose *pose)
{
    GRV_CHECK(isfinite(pose->half_length) && pose->half_length > 0, GRV_E_ARG,
              "half_length of a body: above 0 expected, %g found", pose->half_length);
    for (int d = 0; d < 3; d++)
        GRV_CHECK(isfinite(pose->rotation[d]), GRV_E_ARG,
                  "rotation[%d] of a body: a finite angle expected, %g found", d,
                  pose->rotation[d]);
    return GRV_OK;
}

static grv_status place(grv_flow_mesh *mesh, const grv_flow_shape *shape, const grv_flow_pose *pose,
                        int n_threads)
{
    const grv_triangles *const t = shape->surface;
    const double h = pose->half_length;
    grv_surface_params params = grv_surface_params_default();
    params.either_orientation = true;
    params.n_threads = n_threads;
    GRV_TRY(grv_triangles_create(GRV_STORE_F64, t->n_points, t->points, t->n_triangles,
                                 t->triangles, &mesh->triangles));
    double *const points = mesh->triangles->points;
    grvi_flow_shape_place(shape, pose, points, mesh->info.lower, mesh->info.upper);
    GRV_TRY(grv_surface_create_f64(t->n_points, points, t->n_triangles, t->triangles, &params,
                                   &mesh->surface));
    GRV_TRY(grv_surface_sampler_create_f64(t->n_points, points, t->n_triangles,
                                           mesh->triangles->triangles, &mesh->sampler));
    mesh->outward = shape->outward;
    mesh->info.n_triangles = t->n_triangles;
    mesh->info.n_open_edges = grv_surface_info_get(mesh->surface).n_open_edges;
    mesh->info.checksum = shape->checksum;
    mesh->info.area = shape->area * h * h;
    mesh->info.volume = shape->volume * h * h * h;
    return GRV_OK;
}

grv_status grv_flow_mesh_create(const grv_flow_shape *shape, const grv_flow_pose *pose,
                                int n_threads, grv_flow_mesh **mesh)
{
    *mesh = NULL;
    GRV_TRY(check_pose(pose));
    GRV_TRY(GRVI_CALLOC(mesh, 1));
    const grv_status status = place(*mesh, shape, pose, n_threads);
    if (status != GRV_OK) grv_flow_mesh_destroy(mesh);
    return status;
}

void grv_flow_mesh_destroy(grv_flow_mesh **mesh)
{
    if (mesh == NULL || *mesh == NULL) return;
    grv_surface_sampler_destroy(&(*mesh)->sampler);
    grv_surface_destroy(&(*mesh)->surface);
    grv_triangles_destroy(&(*mesh)->triangles);
    grv_free(*mesh);
    *mesh = NULL;
}

grv_flow_mesh_info grv_flow_mesh_info_get(const grv_flow_mesh *mesh)
{
    return mesh->info;
}

/* ---- on the grid ---- */

void grvi_flow_mesh_normal(const grv_flow_mesh *mesh, int32_t triangle, double normal[3])
{
    const int32_t *const v = &mesh->triangles->triangles[3 * (int64_t)triangle];
    const double *const x = mesh->triangles->points;
    double a[3], b[3], squares = 0;
    for (int d = 0; d < 3; d++) {
        a[d] = x[3 * (int64_t)v[1] + d] - x[3 * (int64_t)v[0] + d];
        b[d] = x[3 * (int64_t)v[2] + d] - x[3 * (int64_t)v[0] + d];
    }
    for (int d = 0; d < 3; d++) {
        const int e = (d + 1) % 3, f = (d + 2) % 3;
        normal[d] = a[e] * b[f] - a[f] * b[e];
        squares += normal[d] * normal[d];
    }
    for (int d = 0; d < 3; d++) normal[d] *= mesh->outward / sqrt(squares);
}

typedef struct normals_call {
    const grv_flow_mesh *mesh;
    const grv_surface_grid *grid;
    const double *distance;
    const int32_t *triangle;
    double *normal; /* holds the closest points, which the normals replace */
} normals_call;

static void find_normals(void *argument, int thread, int64_t begin, int64_t end)
{
    const normals_call *const c = argument;
    const int64_t *const n = c->grid->n;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t at[3] = {i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]};
        double *const normal = c->normal + 3 * i;
        if (fabs(c->distance[i]) < on_surface) {
            grvi_flow_mesh_normal(c->mesh, c->triangle[i], normal);
            continue;
        }
        for (int d = 0; d < 3; d++)
            normal[d] = (c->grid->origin[d] + (double)at[d] - normal[d]) / c->distance[i];
    }
}

static grv_status sample_place(const grv_flow_mesh *mesh, const grv_surface_grid *grid,
                               int n_threads, int32_t *triangle, double *distance, double *normal)
{
    const grv_surface_query query = {
        .max_distance = (double)INFINITY, .band = band, .n_threads = n_threads};
    const grv_surface_result_f64 result = {
        .distance = distance, .closest = normal, .triangle = triangle};
    GRV_TRY(grv_surface_grid_f64(mesh->surface, grid, &query, &result));
    normals_call call = {mesh, grid, distance, triangle, normal};
    grv_parallel_for(n_threads, grid->n[0] * grid->n[1] * grid->n[2], find_normals, &call);
    return GRV_OK;
}

grv_status grvi_flow_mesh_sample(const grv_flow_mesh *mesh, const double centre[3],
                                 const int64_t n[3], int n_threads, grvi_flow_mesh_samples *samples)
{
    grv_status status = GRV_OK;
    int32_t *triangle = NULL;
    int64_t n_cells = 1;
    *samples = (grvi_flow_mesh_samples){.n = {0, 0, 0}};
    for (int d = 0; d < 3; d++) {
        const double low = fmax(0, floor(centre[d] + mesh->info.lower[d] - margin)),
                     high = fmin((double)n[d], ceil(centre[d] + mesh->info.upper[d] + margin));
        if (!(low < high)) return GRV_OK;
        samples->low[d] = (int64_t)low;
        samples->n[d] = (int64_t)(high - low);
        n_cells *= samples->n[d];
    }
    GRV_TRY_GOTO(GRVI_ALLOC(&triangle, n_cells));
    for (int p = 0; p < GRVI_FLOW_PLACES; p++) {
        grv_surface_grid grid = {.spacing = {1, 1, 1}};
        for (int d = 0; d < 3; d++) {
            grid.n[d] = samples->n[d];
            grid.origin[d] = (double)samples->low[d] + (d == p ? 0 : 0.5) - centre[d];
        }
        GRV_TRY_GOTO(GRVI_ALLOC(&samples->distance[p], n_cells));
        GRV_TRY_GOTO(GRVI_ALLOC(&samples->normal[p], 3 * n_cells));
        GRV_TRY_GOTO(sample_place(mesh, &grid, n_threads, triangle, samples->distance[p],
                                  samples->normal[p]));
    }
done:
    grv_free(triangle);
    if (status != GRV_OK) grvi_flow_mesh_samples_fini(samples);
    return status;
}

void grvi_flow_mesh_samples_fini(grvi_flow_mesh_samples *samples)
{
    for (int p = 0; p < GRVI_FLOW_PLACES; p++) {
        grv_free(samples->distance[p]);
        grv_free(samples->normal[p]);
    }
    *samples = (grvi_flow_mesh_samples){.n = {0, 0, 0}};
}

double grvi_flow_mesh_samples_get(const grvi_flow_mesh_samples *samples, const int64_t cell[3],
                                  int place, double normal[3])
{
    int64_t at = 0;
    for (int d = 0; d < 3; d++) {
        const int64_t i = cell[d] - samples->low[d];
        normal[d] = 0;
        if (i < 0 || i >= samples->n[d]) return (double)INFINITY;
        at = at * samples->n[d] + i;
    }
    memcpy(normal, &samples->normal[place][3 * at], 3 * sizeof *normal);
    return samples->distance[place][at];
}
