/* Triangle surfaces: from arrays, from meshes and to meshes. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/mesh_impl.h"
#include "mesh/triangles_impl.h"

grv_status grvi_triangles_alloc(grv_store_type type, int64_t n_points, int64_t n_triangles,
                                grv_triangles **out)
{
    grv_status status = GRV_OK;
    *out = NULL;
    GRV_CHECK(type == GRV_STORE_F32 || type == GRV_STORE_F64, GRV_E_ARG,
              "points are float32 or float64, not %s", grv_store_type_name(type));
    GRV_CHECK(n_points >= 0 && n_points <= INT32_MAX && n_triangles >= 0 &&
                  n_triangles <= INT32_MAX,
              GRV_E_ARG, "at most %d points and triangles expected, got %lld and %lld", INT32_MAX,
              (long long)n_points, (long long)n_triangles);
    GRV_TRY(GRVI_CALLOC(out, 1));
    grv_triangles *const t = *out;
    *t = (grv_triangles){.n_points = n_points, .n_triangles = n_triangles, .type = type};
    GRV_TRY_GOTO(grvi_alloc(n_points, (size_t)grvi_point_bytes(t), &t->points));
    GRV_TRY_GOTO(GRVI_ALLOC(&t->triangles, 3 * n_triangles));
    GRV_TRY_GOTO(GRVI_ALLOC(&t->faces, n_triangles));
done:
    if (status != GRV_OK) grv_triangles_destroy(out);
    return status;
}

void grv_triangles_destroy(grv_triangles **triangles)
{
    if (triangles == NULL || *triangles == NULL) return;
    grv_free((*triangles)->points);
    grv_free((*triangles)->triangles);
    grv_free((*triangles)->faces);
    grv_free(*triangles);
    *triangles = NULL;
}

grv_status grv_triangles_create(grv_store_type type, int64_t n_points, const void *points,
                                int64_t n_triangles, const int32_t *triangles, grv_triangles **out)
{
    *out = NULL;
    for (int64_t i = 0; i < 3 * n_triangles; i++)
        GRV_CHECK(triangles[i] >= 0 && triangles[i] < n_points, GRV_E_ARG,
                  "triangle %lld has point %d, there are %lld", (long long)(i / 3), triangles[i],
                  (long long)n_points);
    GRV_TRY(grvi_triangles_alloc(type, n_points, n_triangles, out));
    memcpy((*out)->points, points, (size_t)(n_points * grvi_point_bytes(*out)));
    memcpy((*out)->triangles, triangles, (size_t)n_triangles * 3 * sizeof *triangles);
    for (int64_t i = 0; i < n_triangles; i++) (*out)->faces[i] = (int32_t)i;
    return GRV_OK;
}

/* ---- meshes ---- */

/* Triangles that a cell of n points gives. */
static int64_t triangles_of(uint8_t type, int64_t n)
{
    switch (type) {
    case GRV_CELL_TRIANGLE:
    case GRV_CELL_TRIANGLE_STRIP:
    case GRV_CELL_POLYGON:
    case GRV_CELL_PIXEL:
    case GRV_CELL_QUAD: return n < 3 ? 0 : n - 2;
    default: return 0;
    }
}

/* Corners of triangle k of a cell, as places in its list of points. */
static void corners_of(uint8_t type, int64_t k, int64_t corners[3])
{
    if (type == GRV_CELL_TRIANGLE_STRIP) {
        /* every other triangle is turned */
        corners[0] = k;
        corners[1] = k + 1 + (k & 1);
        corners[2] = k + 2 - (k & 1);
    } else if (type == GRV_CELL_PIXEL) {
        /* points run along x first: 0 1 3 2 is the way around */
        static const int8_t pixel[2][3] = {{0, 1, 3}, {0, 3, 2}};
        for (int i = 0; i < 3; i++) corners[i] = pixel[k & 1][i];
    } else {
        corners[0] = 0;
        corners[1] = k + 1;
        corners[2] = k + 2;
    }
}

grv_status grv_triangles_from_mesh(const grv_mesh *mesh, grv_triangles **out)
{
    int64_t n = 0;
    *out = NULL;
    GRV_CHECK(mesh->kind == GRV_MESH_SURFACE || mesh->kind == GRV_MESH_CELLS, GRV_E_ARG,
              "a mesh with a list of cells expected, this one is a grid");
    GRV_CHECK(mesh->n_cells <= INT32_MAX, GRV_E_ARG, "at most %d cells expected, got %lld",
              INT32_MAX, (long long)mesh->n_cells);
    for (int64_t i = 0; i < mesh->n_cells; i++)
        n += triangles_of(mesh->types[i], mesh->offsets[i + 1] - mesh->offsets[i]);
    GRV_TRY(grvi_triangles_alloc(mesh->points.type, mesh->points.n_tuples, n, out));
    grv_triangles *const t = *out;
    if (t->n_points > 0)
        memcpy(t->points, mesh->points.data, (size_t)(t->n_points * grvi_point_bytes(t)));
    n = 0;
    for (int64_t i = 0; i < mesh->n_cells; i++) {
        const int64_t *const ids = mesh->connectivity + mesh->offsets[i];
        const int64_t n_here =
            triangles_of(mesh->types[i], mesh->offsets[i + 1] - mesh->offsets[i]);
        for (int64_t k = 0; k < n_here; k++, n++) {
            int64_t corners[3];
            corners_of(mesh->types[i], k, corners);
            for (int j = 0; j < 3; j++) t->triangles[3 * n + j] = (int32_t)ids[corners[j]];
            t->faces[n] = (int32_t)i;
        }
    }
    return GRV_OK;
}

grv_status grv_triangles_to_mesh(const grv_triangles *t, grv_mesh **out)
{
    grv_status status = GRV_OK;
    GRV_TRY(grv_mesh_create(GRV_MESH_SURFACE, out));
    grv_mesh *const mesh = *out;
    GRV_TRY_GOTO(grv_mesh_set_points(mesh, t->type, t->n_points, t->points));
    GRV_TRY_GOTO(GRVI_ALLOC(&mesh->offsets, t->n_triangles + 1));
    GRV_TRY_GOTO(GRVI_ALLOC(&mesh->connectivity, 3 * t->n_triangles));
    GRV_TRY_GOTO(GRVI_ALLOC(&mesh->types, t->n_triangles));
    mesh->n_cells = t->n_triangles;
    for (int64_t i = 0; i <= t->n_triangles; i++) mesh->offsets[i] = 3 * i;
    for (int64_t i = 0; i < 3 * t->n_triangles; i++) mesh->connectivity[i] = t->triangles[i];
    memset(mesh->types, GRV_CELL_TRIANGLE, (size_t)t->n_triangles);
done:
    if (status != GRV_OK) grv_mesh_destroy(out);
    return status;
}

grv_status grv_triangles_carry_data(const grv_triangles *t, const grv_mesh *from, grv_mesh *to)
{
    GRV_CHECK(to->n_cells == t->n_triangles && to->points.n_tuples == t->n_points, GRV_E_ARG,
              "the mesh has %lld cells and %lld points, the triangles are %lld of %lld points",
              (long long)to->n_cells, (long long)to->points.n_tuples, (long long)t->n_triangles,
              (long long)t->n_points);
    for (int64_t i = 0; i < t->n_triangles; i++)
        GRV_CHECK(t->faces[i] >= 0 && t->faces[i] < from->n_cells, GRV_E_ARG,
                  "triangle %lld is from cell %d, there are %lld", (long long)i, t->faces[i],
                  (long long)from->n_cells);
    grv_status status = GRV_OK;
    int64_t *rows = NULL;
    GRV_TRY(GRVI_ALLOC(&rows, t->n_triangles));
    for (int64_t i = 0; i < t->n_triangles; i++) rows[i] = t->faces[i];
    for (int64_t k = 0; k < from->cell_data.n; k++)
        GRV_TRY_GOTO(
            grvi_mesh_copy_rows(&from->cell_data.items[k], rows, t->n_triangles, &to->cell_data));
    for (int64_t k = 0; k < from->point_data.n && t->n_points == from->points.n_tuples; k++)
        GRV_TRY_GOTO(
            grvi_mesh_copy_rows(&from->point_data.items[k], NULL, t->n_points, &to->point_data));
    GRV_TRY_GOTO(grvi_mesh_copy_all_rows(&from->field_data, &to->field_data));
    to->has_time = from->has_time;
    to->time = from->time;
done:
    grv_free(rows);
    return status;
}
