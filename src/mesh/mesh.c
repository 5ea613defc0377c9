/* The mesh in memory: made, looked up, extended, destroyed. Format of a file by its content and name. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/mesh_impl.h"

static const int64_t max_extent = (int64_t)1
                                  << 40; /* points along an axis; keeps sums of indices in range */

int64_t grvi_mesh_item_bytes(grv_store_type type)
{
    switch (type) {
    case GRV_STORE_I8:
    case GRV_STORE_U8: return 1;
    case GRV_STORE_I16:
    case GRV_STORE_U16: return 2;
    case GRV_STORE_I32:
    case GRV_STORE_U32:
    case GRV_STORE_F32: return 4;
    case GRV_STORE_I64:
    case GRV_STORE_U64:
    case GRV_STORE_F64: return 8;
    default: return 0;
    }
}

/* ---- arrays ---- */

void grvi_mesh_array_fini(grv_mesh_array *array)
{
    grv_free(array->name);
    grv_free(array->data);
    *array = (grv_mesh_array){0};
}

grv_status grvi_mesh_array_init(const char *name, int64_t n_name, grv_store_type type,
                                int n_components, int64_t n_tuples, grv_mesh_array *array)
{
    grv_status status = GRV_OK;
    int64_t n_values = 0;
    const int64_t item_bytes = grvi_mesh_item_bytes(type);
    *array = (grv_mesh_array){.type = type, .n_components = n_components, .n_tuples = n_tuples};
    GRV_CHECK(item_bytes > 0, GRV_E_ARG, "array '%.*s': meshes have no type %s",
              (int)grvi_min_i64(n_name, 80), name, grv_store_type_name(type));
    GRV_CHECK(n_components >= 1 && n_tuples >= 0 &&
                  grvi_mul_i64(n_tuples, n_components, &n_values) &&
                  grvi_mul_i64(n_values, item_bytes, &array->n_bytes),
              GRV_E_ARG, "array '%.*s': %lld tuples of %d components",
              (int)grvi_min_i64(n_name, 80), name, (long long)n_tuples, n_components);
    GRV_TRY_GOTO(GRVI_ALLOC(&array->name, n_name + 1));
    memcpy(array->name, name, (size_t)n_name);
    array->name[n_name] = '\0';
    GRV_TRY_GOTO(grvi_alloc(array->n_bytes, 1, &array->data));
done:
    if (status != GRV_OK) grvi_mesh_array_fini(array);
    return status;
}

/* Room for one more; the length is left as it is. */
static grv_status grow(grv_mesh_arrays *list)
{
    /* sizes are powers of two: it is full when n is one */
    if (list->items != NULL && (list->n & (list->n - 1)) != 0) return GRV_OK;
    return GRVI_REALLOC(&list->items, list->n == 0 ? 1 : 2 * list->n);
}

grv_status grvi_mesh_arrays_add(grv_mesh_arrays *list, const char *name, int64_t n_name,
                                grv_store_type type, int n_components, int64_t n_tuples,
                                grv_mesh_array **added)
{
    GRV_TRY(grow(list));
    GRV_TRY(
        grvi_mesh_array_init(name, n_name, type, n_components, n_tuples, &list->items[list->n]));
    *added = &list->items[list->n++];
    return GRV_OK;
}

static void arrays_fini(grv_mesh_arrays *list)
{
    for (int64_t i = 0; i < list->n; i++) grvi_mesh_array_fini(&list->items[i]);
    grv_free(list->items);
    *list = (grv_mesh_arrays){0};
}

grv_status grv_mesh_add_array(grv_mesh_arrays *list, const char *name, grv_store_type type,
                              int n_components, int64_t n_tuples, const void *data,
                              grv_mesh_array **added)
{
    grv_mesh_array *array = NULL;
    GRV_TRY(grvi_mesh_arrays_add(list, name, (int64_t)strlen(name), type, n_components, n_tuples,
                                 &array));
    if (data != NULL)
        memcpy(array->data, data, (size_t)array->n_bytes);
    else
        memset(array->data, 0, (size_t)array->n_bytes);
    if (added != NULL) *added = array;
    return GRV_OK;
}

grv_status grv_mesh_add_texts(grv_mesh_arrays *list, const char *name, int64_t n, const char *texts,
                              int64_t n_bytes)
{
    grv_mesh_array *array = NULL;
    int64_t n_ends = 0;
    for (int64_t i = 0; i < n_bytes; i++) n_ends += texts[i] == '\0';
    GRV_CHECK(n_ends == n && (n_bytes == 0 || texts[n_bytes - 1] == '\0'), GRV_E_ARG,
              "array '%.80s': %lld texts with a final NUL expected, %lld found", name, (long long)n,
              (long long)n_ends);
    GRV_TRY(grv_mesh_add_array(list, name, GRV_STORE_U8, 1, n_bytes, texts, &array));
    array->is_text = true;
    array->n_tuples = n;
    return GRV_OK;
}

grv_status grvi_mesh_copy_rows(const grv_mesh_array *from, const int64_t *rows, int64_t n,
                               grv_mesh_arrays *to)
{
    grv_mesh_array *added = NULL;
    if (from->is_text)
        return grv_mesh_add_texts(to, from->name, from->n_tuples, from->data, from->n_bytes);
    if (rows == NULL)
        return grv_mesh_add_array(to, from->name, from->type, from->n_components, n, from->data,
                                  NULL);
    GRV_TRY(grvi_mesh_arrays_add(to, from->name, (int64_t)strlen(from->name), from->type,
                                 from->n_components, n, &added));
    const size_t n_bytes = (size_t)(from->n_components * grvi_mesh_item_bytes(from->type));
    for (int64_t i = 0; i < n; i++)
        memcpy((uint8_t *)added->data + (size_t)i * n_bytes,
               (const uint8_t *)from->data + (size_t)rows[i] * n_bytes, n_bytes);
    return GRV_OK;
}

grv_status grvi_mesh_copy_all_rows(const grv_mesh_arrays *from, grv_mesh_arrays *to)
{
    for (int64_t k = 0; k < from->n; k++)
        GRV_TRY(grvi_mesh_copy_rows(&from->items[k], NULL, from->items[k].n_tuples, to));
    return GRV_OK;
}

const grv_mesh_array *grv_mesh_find(const grv_mesh_arrays *list, const char *name)
{
    for (int64_t i = 0; i < list->n; i++) {
        if (strcmp(list->items[i].name, name) == 0) return &list->items[i];
    }
    return NULL;
}

double grvi_mesh_value(const grv_mesh_array *array, int64_t index)
{
    switch (array->type) {
    case GRV_STORE_I8: return ((const int8_t *)array->data)[index];
    case GRV_STORE_U8: return ((const uint8_t *)array->data)[index];
    case GRV_STORE_I16: return ((const int16_t *)array->data)[index];
    case GRV_STORE_U16: return ((const uint16_t *)array->data)[index];
    case GRV_STORE_I32: return ((const int32_t *)array->data)[index];
    case GRV_STORE_U32: return ((const uint32_t *)array->data)[index];
    case GRV_STORE_I64: return (double)((const int64_t *)array->data)[index];
    case GRV_STORE_U64: return (double)((const uint64_t *)array->data)[index];
    case GRV_STORE_F32: return (double)((const float *)array->data)[index];
    default: return ((const double *)array->data)[index];
    }
}

grv_status grvi_mesh_points_to_real(grv_mesh_array *points)
{
    if (points->type == GRV_STORE_F32 || points->type == GRV_STORE_F64) return GRV_OK;
    double *real = NULL;
    const int64_t n = points->n_tuples * points->n_components;
    GRV_TRY(GRVI_ALLOC(&real, n));
    for (int64_t i = 0; i < n; i++) real[i] = grvi_mesh_value(points, i);
    grv_free(points->data);
    points->data = real;
    points->type = GRV_STORE_F64;
    points->n_bytes = n * (int64_t)sizeof *real;
    return GRV_OK;
}

/* ---- meshes ---- */

grv_status grv_mesh_create(grv_mesh_kind kind, grv_mesh **mesh)
{
    GRV_TRY(GRVI_CALLOC(mesh, 1));
    (*mesh)->kind = kind;
    (*mesh)->points = (grv_mesh_array){.type = GRV_STORE_F32, .n_components = 3};
    for (int i = 0; i < 3; i++) {
        (*mesh)->spacing[i] = 1;
        (*mesh)->direction[4 * i] = 1;
    }
    return GRV_OK;
}

void grv_mesh_destroy(grv_mesh **mesh)
{
    if (mesh == NULL || *mesh == NULL) return;
    grv_mesh *const m = *mesh;
    grvi_mesh_array_fini(&m->points);
    for (int i = 0; i < 3; i++) grvi_mesh_array_fini(&m->coordinates[i]);
    grv_free(m->offsets);
    grv_free(m->connectivity);
    grv_free(m->types);
    grv_free(m->face_offsets);
    grv_free(m->faces);
    arrays_fini(&m->point_data);
    arrays_fini(&m->cell_data);
    arrays_fini(&m->field_data);
    grv_free(m);
    *mesh = NULL;
}

bool grvi_mesh_extent_counts(const int64_t extent[6], int64_t *n_points, int64_t *n_cells)
{
    *n_points = *n_cells = 1;
    for (int i = 0; i < 3; i++) {
        const int64_t low = extent[2 * i], high = extent[2 * i + 1];
        if (low < -max_extent || high > max_extent || high < low - 1) return false;
        if (!grvi_mul_i64(*n_points, high - low + 1, n_points)) return false;
        if (!grvi_mul_i64(*n_cells, grvi_max_i64(high - low, 1), n_cells)) return false;
    }
    if (*n_points == 0) *n_cells = 0;
    return true;
}

static bool has_extent(const grv_mesh *mesh)
{
    return mesh->kind != GRV_MESH_SURFACE && mesh->kind != GRV_MESH_CELLS;
}

int64_t grv_mesh_n_points(const grv_mesh *mesh)
{
    int64_t n_points = 0, n_cells = 0;
    if (!has_extent(mesh)) return mesh->points.n_tuples;
    return grvi_mesh_extent_counts(mesh->extent, &n_points, &n_cells) ? n_points : 0;
}

int64_t grv_mesh_n_cells(const grv_mesh *mesh)
{
    int64_t n_points = 0, n_cells = 0;
    if (!has_extent(mesh)) return mesh->n_cells;
    return grvi_mesh_extent_counts(mesh->extent, &n_points, &n_cells) ? n_cells : 0;
}

grv_status grv_mesh_set_points(grv_mesh *mesh, grv_store_type type, int64_t n_points,
                               const void *points)
{
    static const char name[] = "Points";
    grv_mesh_array array;
    GRV_CHECK(type == GRV_STORE_F32 || type == GRV_STORE_F64, GRV_E_ARG,
              "points are float32 or float64, not %s", grv_store_type_name(type));
    GRV_TRY(grvi_mesh_array_init(name, sizeof name - 1, type, 3, n_points, &array));
    memcpy(array.data, points, (size_t)array.n_bytes);
    grvi_mesh_array_fini(&mesh->points);
    mesh->points = array;
    return GRV_OK;
}

grv_status grvi_mesh_alloc_cells(grv_mesh *mesh, int64_t n_cells, int64_t n_connectivity)
{
    GRV_ASSERT(mesh->offsets == NULL);
    GRV_TRY(GRVI_ALLOC(&mesh->offsets, n_cells + 1));
    GRV_TRY(GRVI_ALLOC(&mesh->connectivity, n_connectivity));
    GRV_TRY(GRVI_ALLOC(&mesh->types, n_cells));
    mesh->n_cells = n_cells;
    mesh->offsets[0] = 0;
    return GRV_OK;
}

static grv_status check_cells(const grv_mesh *mesh, int64_t n_cells, const int64_t *offsets,
                              const int64_t *connectivity)
{
    GRV_CHECK(!has_extent(mesh), GRV_E_ARG,
              "cells of an image or structured grid are those of its extent");
    GRV_CHECK(n_cells >= 0 && offsets[0] == 0, GRV_E_ARG, "offsets must start at 0, %lld found",
              (long long)offsets[0]);
    for (int64_t i = 0; i < n_cells; i++)
        GRV_CHECK(offsets[i + 1] >= offsets[i], GRV_E_ARG, "offsets of cell %lld: %lld after %lld",
                  (long long)i, (long long)offsets[i + 1], (long long)offsets[i]);
    for (int64_t i = 0; i < offsets[n_cells]; i++)
        GRV_CHECK(connectivity[i] >= 0 && connectivity[i] < mesh->points.n_tuples, GRV_E_ARG,
                  "connectivity[%lld] is %lld, there are %lld points", (long long)i,
                  (long long)connectivity[i], (long long)mesh->points.n_tuples);
    return GRV_OK;
}

grv_status grv_mesh_set_cells(grv_mesh *mesh, int64_t n_cells, const int64_t *offsets,
                              const int64_t *connectivity, const uint8_t *types)
{
    GRV_TRY(check_cells(mesh, n_cells, offsets, connectivity));
    grv_mesh fresh = {0}, old = *mesh;
    const grv_status status = grvi_mesh_alloc_cells(&fresh, n_cells, offsets[n_cells]);
    if (status == GRV_OK) {
        memcpy(fresh.offsets, offsets, (size_t)(n_cells + 1) * sizeof *offsets);
        memcpy(fresh.connectivity, connectivity, (size_t)offsets[n_cells] * sizeof *connectivity);
        memcpy(fresh.types, types, (size_t)n_cells);
        mesh->n_cells = n_cells;
        mesh->offsets = fresh.offsets;
        mesh->connectivity = fresh.connectivity;
        mesh->types = fresh.types;
        mesh->face_offsets = mesh->faces = NULL;
        fresh = (grv_mesh){.offsets = old.offsets,
                           .connectivity = old.connectivity,
                           .types = old.types,
                           .face_offsets = old.face_offsets,
                           .faces = old.faces};
    }
    grv_free(fresh.offsets);
    grv_free(fresh.connectivity);
    grv_free(fresh.types);
    grv_free(fresh.face_offsets);
    grv_free(fresh.faces);
    return status;
}

void grvi_mesh_find_time(grv_mesh *mesh)
{
    static const char *const names[] = {"TimeValue", "TIME"};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !mesh->has_time; i++) {
        const grv_mesh_array *const array = grv_mesh_find(&mesh->field_data, names[i]);
        if (array == NULL || array->is_text || array->n_tuples < 1) continue;
        mesh->time = grvi_mesh_value(array, 0);
        mesh->has_time = true;
    }
}
