/* Shapes of bodies: a surface is repaired and brought to one size about one centre. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "kernels/crc32c.h"
#include "sim/flow_mesh_impl.h"

enum { N_PROBES = 2048 };
static const double probe_depth = 1e-5;  /* half lengths: from the surface to both sides */
static const double least_volume = 1e-9; /* of the area, half lengths: less is flat */
static const double pi = 3.14159265358979323846;

static grv_status copy_in_double(const grv_triangles *from, grv_triangles **to)
{
    double *points = NULL;
    grv_status status = GRVI_ALLOC(&points, 3 * from->n_points);
    for (int64_t i = 0; status == GRV_OK && i < 3 * from->n_points; i++)
        points[i] = from->type == GRV_STORE_F64 ? ((const double *)from->points)[i]
                                                : (double)((const float *)from->points)[i];
    if (status == GRV_OK)
        status = grv_triangles_create(GRV_STORE_F64, from->n_points, points, from->n_triangles,
                                      from->triangles, to);
    grv_free(points);
    return status;
}

/* Origin to the centre of the box, half its longest side to 1; then measures it. */
static grv_status normalize(grv_flow_shape *shape, bool *is_closed)
{
    grv_triangles_measure m;
    double half = 0;
    double *const points = shape->surface->points;
    GRV_TRY(grv_triangles_measure_get(shape->surface, &m));
    for (int d = 0; d < 3; d++) half = fmax(half, m.upper[d] / 2 - m.lower[d] / 2);
    for (int64_t i = 0; i < 3 * shape->surface->n_points; i++)
        points[i] = (points[i] - (m.lower[i % 3] / 2 + m.upper[i % 3] / 2)) / half;
    GRV_TRY(grv_triangles_measure_get(shape->surface, &m));
    shape->area = m.area;
    shape->volume = fabs(m.volume);
    shape->outward = m.volume > 0 ? 1 : -1;
    *is_closed = m.is_watertight && shape->volume > least_volume * m.area;
    return GRV_OK;
}

/* ---- surfaces with holes ---- */

/* Signs of the distance on both sides of points of the surface: [N_PROBES] behind, [N_PROBES] in front. */
static grv_status probe_sides(const grv_flow_shape *shape, const grv_surface *surface,
                              double *distance)
{
    grv_status status = GRV_OK;
    const grv_triangles *const t = shape->surface;
    grv_surface_sampler *sampler = NULL;
    double *points = NULL, *normals = NULL;
    GRV_TRY_GOTO(GRVI_ALLOC(&points, 2 * 3 * N_PROBES));
    GRV_TRY_GOTO(GRVI_ALLOC(&normals, 3 * N_PROBES));
    GRV_TRY_GOTO(grv_surface_sampler_create_f64(t->n_points, t->points, t->n_triangles,
                                                t->triangles, &sampler));
    const grv_surface_samples_f64 samples = {.points = points, .normals = normals};
    GRV_TRY_GOTO(grv_surface_sampler_draw_f64(sampler, 0, 0, N_PROBES, 1, &samples));
    for (int64_t i = 0; i < 3 * N_PROBES; i++) {
        points[3 * N_PROBES + i] = points[i] + probe_depth * normals[i];
        points[i] -= probe_depth * normals[i];
    }
    const grv_surface_result_f64 result = {.distance = distance};
    GRV_TRY_GOTO(grv_surface_points_f64(surface, 2 * N_PROBES, points, NULL, &result));
done:
    grv_surface_sampler_destroy(&sampler);
    grv_free(points);
    grv_free(normals);
    return status;
}

/* Where is the inside? Fails where mostly none is. */
static grv_status find_inside(grv_flow_shape *shape)
{
    grv_status status = GRV_OK;
    const grv_triangles *const t = shape->surface;
    grv_surface_params params = grv_surface_params_default();
    grv_surface *surface = NULL;
    double *distance = NULL;
    int64_t n_inward = 0, n_outward = 0;
    params.either_orientation = true;
    GRV_TRY_GOTO(grv_surface_create_f64(t->n_points, t->points, t->n_triangles, t->triangles,
                                        &params, &surface));
    GRV_TRY_GOTO(GRVI_ALLOC(&distance, 2 * N_PROBES));
    GRV_TRY_GOTO(probe_sides(shape, surface, distance));
    for (int64_t i = 0; i < N_PROBES; i++) {
        const bool behind = distance[i] < 0, before = distance[N_PROBES + i] < 0;
        n_inward += before && !behind;
        n_outward += behind && !before;
    }
    shape->outward = n_outward >= n_inward ? 1 : -1;
    GRV_CHECK_GOTO(2 * (n_inward + n_outward) > N_PROBES, GRV_E_ARG,
                   "body %s: it encloses no volume: %.0f %% of its surface do not part an inside "
                   "from an outside (%lld of its edges are open)",
                   shape->name, 100 * (1 - (double)(n_inward + n_outward) / N_PROBES),
                   (long long)grv_surface_info_get(surface).n_open_edges);
done:
    grv_surface_destroy(&surface);
    grv_free(distance);
    return status;
}

/* ---- life ---- */

static grv_status fill(grv_flow_shape *shape, const char *name, const grv_triangles *triangles)
{
    bool is_closed = false;
    GRV_TRY(grvi_strdup(name, &shape->name));
    GRV_TRY(copy_in_double(triangles, &shape->surface));
    GRV_TRY(grv_triangles_weld(shape->surface, 0, NULL));
    GRV_TRY(grv_triangles_clean(shape->surface, NULL));
    GRV_CHECK(shape->surface->n_triangles > 0, GRV_E_ARG,
              "body %s: triangles with an area expected, none of %lld has one", name,
              (long long)triangles->n_triangles);
    GRV_TRY(grv_triangles_orient(shape->surface, true, NULL));
    GRV_TRY(normalize(shape, &is_closed));
    const grv_triangles *const t = shape->surface;
    shape->checksum = grvi_crc32c(t->points, 3 * t->n_points * (int64_t)sizeof(double)) ^
                      grvi_crc32c(t->triangles, 3 * t->n_triangles * (int64_t)sizeof *t->triangles);
    return is_closed ? GRV_OK : find_inside(shape);
}

grv_status grv_flow_shape_create(const char *name, const grv_triangles *triangles,
                                 grv_flow_shape **shape)
{
    *shape = NULL;
    GRV_TRY(GRVI_CALLOC(shape, 1));
    const grv_status status = fill(*shape, name, triangles);
    if (status != GRV_OK) grv_flow_shape_destroy(shape);
    return status;
}

grv_status grv_flow_shape_read(const char *path, grv_flow_shape **shape)
{
    grv_mesh *mesh = NULL;
    grv_triangles *triangles = NULL;
    *shape = NULL;
    grv_status status = grv_mesh_read(path, NULL, &mesh);
    if (status == GRV_OK) status = grv_triangles_from_mesh(mesh, &triangles);
    grv_mesh_destroy(&mesh);
    if (status == GRV_OK) status = grv_flow_shape_create(path, triangles, shape);
    grv_triangles_destroy(&triangles);
    return status;
}

void grv_flow_shape_destroy(grv_flow_shape **shape)
{
    if (shape == NULL || *shape == NULL) return;
    grv_free((*shape)->name);
    grv_triangles_destroy(&(*shape)->surface);
    grv_free(*shape);
    *shape = NULL;
}

/* Turns about x, then y, then z, and scales. */
static void pose_matrix(const grv_flow_pose *pose, double matrix[3][3])
{
    double c[3], s[3];
    for (int d = 0; d < 3; d++) {
        c[d] = cos(pose->rotation[d] * pi / 180);
        s[d] = sin(pose->rotation[d] * pi / 180);
    }
    const double turned[3][3] = {
        {c[2] * c[1], c[2] * s[1] * s[0] - s[2] * c[0], c[2] * s[1] * c[0] + s[2] * s[0]},
        {s[2] * c[1], s[2] * s[1] * s[0] + c[2] * c[0], s[2] * s[1] * c[0] - c[2] * s[0]},
        {-s[1], c[1] * s[0], c[1] * c[0]}};
    for (int d = 0; d < 9; d++) matrix[d / 3][d % 3] = pose->half_length * turned[d / 3][d % 3];
}

void grvi_flow_shape_place(const grv_flow_shape *shape, const grv_flow_pose *pose, double *points,
                           double lower[3], double upper[3])
{
    double matrix[3][3];
    pose_matrix(pose, matrix);
    for (int64_t i = 0; i < shape->surface->n_points; i++) {
        const double *const p = (const double *)shape->surface->points + 3 * i;
        for (int d = 0; d < 3; d++) {
            const double x = matrix[d][0] * p[0] + matrix[d][1] * p[1] + matrix[d][2] * p[2];
            lower[d] = i == 0 ? x : fmin(lower[d], x);
            upper[d] = i == 0 ? x : fmax(upper[d], x);
            if (points != NULL) points[3 * i + d] = x;
        }
    }
}

void grv_flow_shape_box(const grv_flow_shape *shape, const grv_flow_pose *pose, double lower[3],
                        double upper[3])
{
    grvi_flow_shape_place(shape, pose, NULL, lower, upper);
}
