/* Shapes of bodies: a surface is repaired and brought to one size about one centre. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "sim/flow_mesh_impl.h"

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

/* Origin to the centre of the box, half its longest side to 1. */
static grv_status normalize(grv_flow_shape *shape)
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
    shape->volume = m.volume;
    return GRV_OK;
}

static grv_status fill(grv_flow_shape *shape, const char *name, const grv_triangles *triangles)
{
    GRV_TRY(grvi_strdup(name, &shape->name));
    GRV_TRY(copy_in_double(triangles, &shape->surface));
    GRV_TRY(grv_triangles_weld(shape->surface, 0, NULL));
    GRV_TRY(grv_triangles_clean(shape->surface, NULL));
    GRV_CHECK(shape->surface->n_triangles > 0, GRV_E_ARG,
              "body %s: triangles with an area expected, none of %lld has one", name,
              (long long)triangles->n_triangles);
    GRV_TRY(grv_triangles_orient(shape->surface, false, NULL));
    return normalize(shape);
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
