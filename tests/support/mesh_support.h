/* What the tests of mesh share: values of arrays, comparison of meshes; a folder and checks come from store_support.h. */
#ifndef GRVI_TEST_MESH_SUPPORT_H
#define GRVI_TEST_MESH_SUPPORT_H

#include <math.h>

#include "grove/mesh.h"
#include "grove/triangles.h"
#include "store_support.h"

/* Value i (counting components) in double; integers beyond 2^53 are rounded. */
static inline double value_of(const grv_mesh_array *a, int64_t i)
{
    switch (a->type) {
    case GRV_STORE_I8: return ((const int8_t *)a->data)[i];
    case GRV_STORE_U8: return ((const uint8_t *)a->data)[i];
    case GRV_STORE_I16: return ((const int16_t *)a->data)[i];
    case GRV_STORE_U16: return ((const uint16_t *)a->data)[i];
    case GRV_STORE_I32: return ((const int32_t *)a->data)[i];
    case GRV_STORE_U32: return ((const uint32_t *)a->data)[i];
    case GRV_STORE_I64: return (double)((const int64_t *)a->data)[i];
    case GRV_STORE_U64: return (double)((const uint64_t *)a->data)[i];
    case GRV_STORE_F32: return (double)((const float *)a->data)[i];
    default: return ((const double *)a->data)[i];
    }
}

/* The same in 64 bits; 0 for reals */
static inline int64_t integer_of(const grv_mesh_array *a, int64_t i)
{
    if (a->type == GRV_STORE_I64 || a->type == GRV_STORE_U64) return ((const int64_t *)a->data)[i];
    return a->type == GRV_STORE_F32 || a->type == GRV_STORE_F64 ? 0 : (int64_t)value_of(a, i);
}

static inline void assert_same_array(const grv_mesh_array *a, const grv_mesh_array *b)
{
    if (a->type != b->type || a->n_components != b->n_components || a->n_tuples != b->n_tuples ||
        a->is_text != b->is_text || a->n_bytes != b->n_bytes)
        fail_msg("array '%s': type %d, [%lld, %d]; expected '%s': type %d, [%lld, %d]", a->name,
                 (int)a->type, (long long)a->n_tuples, a->n_components, b->name, (int)b->type,
                 (long long)b->n_tuples, b->n_components);
    assert_string_equal(a->name != NULL ? a->name : "", b->name != NULL ? b->name : "");
    if (a->n_bytes > 0) assert_memory_equal(a->data, b->data, a->n_bytes);
}

static inline void assert_same_list(const grv_mesh_arrays *a, const grv_mesh_arrays *b)
{
    assert_int_equal(a->n, b->n);
    for (int64_t i = 0; i < a->n; i++) assert_same_array(&a->items[i], &b->items[i]);
}

/* All that both have is the same, bit by bit. */
static inline void assert_same_mesh(const grv_mesh *a, const grv_mesh *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->points.n_tuples, b->points.n_tuples);
    if (a->points.n_tuples > 0) assert_same_array(&a->points, &b->points);
    assert_int_equal(a->n_cells, b->n_cells);
    if (a->n_cells > 0) {
        assert_memory_equal(a->offsets, b->offsets, (size_t)(a->n_cells + 1) * sizeof *a->offsets);
        assert_memory_equal(a->types, b->types, (size_t)a->n_cells);
        if (a->offsets[a->n_cells] > 0)
            assert_memory_equal(a->connectivity, b->connectivity,
                                (size_t)a->offsets[a->n_cells] * sizeof *a->connectivity);
    }
    assert_int_equal(a->face_offsets != NULL, b->face_offsets != NULL);
    if (a->face_offsets != NULL) {
        assert_memory_equal(a->face_offsets, b->face_offsets,
                            (size_t)(a->n_cells + 1) * sizeof *a->face_offsets);
        assert_memory_equal(a->faces, b->faces,
                            (size_t)a->face_offsets[a->n_cells] * sizeof *a->faces);
    }
    assert_memory_equal(a->extent, b->extent, sizeof a->extent);
    assert_memory_equal(a->origin, b->origin, sizeof a->origin);
    assert_memory_equal(a->spacing, b->spacing, sizeof a->spacing);
    assert_memory_equal(a->direction, b->direction, sizeof a->direction);
    assert_same_list(&a->point_data, &b->point_data);
    assert_same_list(&a->cell_data, &b->cell_data);
    assert_same_list(&a->field_data, &b->field_data);
    assert_int_equal(a->has_time, b->has_time);
    assert_true(a->time == b->time);
}

/* An unstructured grid of every common cell, a polyhedron, data of all types, a name that needs escaping, strings and a time. */
static inline grv_mesh *make_grid(void)
{
    static const double points[][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1},        {1, 1, 0},
                                       {1, 0, 1}, {0, 1, 1}, {1, 1, 1}, {2, 0.1, -1e-300}};
    static const int64_t offsets[] = {0, 1, 3, 6, 10, 14, 22, 26},
                         ids[] = {8, 0, 1, 0, 1, 2, 0, 1, 4, 2, 0, 1, 2,
                                  3, 0, 1, 4, 2, 3, 5, 7, 6, 0, 1, 2, 3};
    static const uint8_t types[] = {GRV_CELL_VERTEX,    GRV_CELL_LINE,  GRV_CELL_TRIANGLE,
                                    GRV_CELL_QUAD,      GRV_CELL_TETRA, GRV_CELL_HEXAHEDRON,
                                    GRV_CELL_POLYHEDRON};
    static const int64_t face_offsets[] = {0, 0, 0, 0, 0, 0, 0, 17},
                         faces[] = {4, 3, 0, 1, 2, 3, 0, 1, 3, 3, 0, 2, 3, 3, 1, 2, 3};
    static const int8_t i8[] = {-128, 127, 0, 1, 2, 3, 4, 5, 6};
    static const uint64_t u64[] = {UINT64_MAX, 1, 2, 3, 4, 5, 6};
    static const float vector[27] = {1.5F, -0.0F, 3e38F};
    static const double time[] = {2.25};
    grv_mesh *mesh = NULL;
    assert_ok(grv_mesh_create(GRV_MESH_CELLS, &mesh));
    assert_ok(grv_mesh_set_points(mesh, GRV_STORE_F64, 9, points));
    assert_ok(grv_mesh_set_cells(mesh, 7, offsets, ids, types));
    mesh->face_offsets = NULL;
    grv_mesh_array *box = NULL;
    grv_mesh_arrays holder = {0};
    /* the faces are arrays of grove's own memory like all others */
    assert_ok(grv_mesh_add_array(&holder, "face_offsets", GRV_STORE_I64, 1, 8, face_offsets, &box));
    mesh->face_offsets = box->data;
    box->data = NULL;
    assert_ok(grv_mesh_add_array(&holder, "faces", GRV_STORE_I64, 1, 17, faces, &box));
    mesh->faces = box->data;
    box->data = NULL;
    for (int64_t i = 0; i < holder.n; i++) grv_free(holder.items[i].name);
    grv_free(holder.items);
    assert_ok(
        grv_mesh_add_array(&mesh->point_data, "small <&> \"x\"", GRV_STORE_I8, 1, 9, i8, NULL));
    assert_ok(grv_mesh_add_array(&mesh->point_data, "U", GRV_STORE_F32, 3, 9, vector, NULL));
    assert_ok(grv_mesh_add_array(&mesh->cell_data, "large", GRV_STORE_U64, 1, 7, u64, NULL));
    assert_ok(grv_mesh_add_array(&mesh->cell_data, "zeros", GRV_STORE_F64, 2, 7, NULL, NULL));
    assert_ok(grv_mesh_add_array(&mesh->field_data, "TimeValue", GRV_STORE_F64, 1, 1, time, NULL));
    assert_ok(grv_mesh_add_texts(&mesh->field_data, "names", 3, "one\0\0drei\xc3\xa9", 12));
    mesh->has_time = true;
    mesh->time = time[0];
    return mesh;
}

#endif
