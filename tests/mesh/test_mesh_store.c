/* Meshes as groups of arrays: every array is there with its values, names become good ones, what does not fit is refused. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mesh_support.h"

static grv_store *open_store(void)
{
    grv_store_params params = grv_store_params_default();
    grv_store *store = NULL;
    params.writable = true;
    assert_ok(grv_store_open(in_folder("s"), &params, &store));
    return store;
}

/* The array is there, with this type, shape and these bytes. */
static void check_array(grv_store *store, const char *path, grv_store_type type, int rank,
                        const int64_t *shape, const void *data)
{
    static const int64_t origin[GRV_STORE_MAX_RANK] = {0};
    grv_array *array = NULL;
    assert_ok(grv_array_open(store, path, &array));
    const grv_array_desc *const desc = grv_array_get_desc(array);
    assert_int_equal(desc->type, type);
    assert_int_equal(desc->rank, rank);
    int64_t n_bytes = grv_store_type_bytes(type);
    for (int i = 0; i < rank; i++) {
        assert_int_equal(desc->shape[i], shape[i]);
        n_bytes *= shape[i];
    }
    uint8_t *const bytes = malloc((size_t)n_bytes + 1);
    assert_non_null(bytes);
    assert_ok(grv_array_read(array, origin, shape, bytes, NULL));
    assert_memory_equal(bytes, data, (size_t)n_bytes);
    free(bytes);
    grv_array_close(&array);
}

static void check_attributes(grv_store *store, const char *path, const char *part)
{
    char *attributes = NULL;
    assert_ok(grv_attributes_get(store, path, &attributes));
    if (strstr(attributes, part) == NULL) fail_msg("%s expected in %s", part, attributes);
    grv_free(attributes);
}

static bool is_there(grv_store *store, const char *path)
{
    grv_node_kind kind = GRV_NODE_NONE;
    assert_ok(grv_store_node(store, path, &kind));
    return kind != GRV_NODE_NONE;
}

static void test_cells(void **state)
{
    (void)state;
    grv_mesh *mesh = make_grid();
    grv_store *store = open_store();
    assert_ok(grv_mesh_store(mesh, store, "a/grid"));
    const int64_t points[] = {9, 3}, n_cells[] = {7}, n_offsets[] = {8}, n_ids[] = {26},
                  n_faces[] = {17}, zeros[] = {7, 2};
    check_array(store, "a/grid/points", GRV_STORE_F64, 2, points, mesh->points.data);
    check_array(store, "a/grid/offsets", GRV_STORE_I64, 1, n_offsets, mesh->offsets);
    check_array(store, "a/grid/connectivity", GRV_STORE_I64, 1, n_ids, mesh->connectivity);
    check_array(store, "a/grid/types", GRV_STORE_U8, 1, n_cells, mesh->types);
    check_array(store, "a/grid/face_offsets", GRV_STORE_I64, 1, n_offsets, mesh->face_offsets);
    check_array(store, "a/grid/faces", GRV_STORE_I64, 1, n_faces, mesh->faces);
    check_array(store, "a/grid/point_data/U", GRV_STORE_F32, 2, points,
                grv_mesh_find(&mesh->point_data, "U")->data);
    check_array(store, "a/grid/point_data/small <&> \"x\"", GRV_STORE_I8, 1, points,
                mesh->point_data.items[0].data);
    check_array(store, "a/grid/cell_data/large", GRV_STORE_U64, 1, n_cells,
                grv_mesh_find(&mesh->cell_data, "large")->data);
    check_array(store, "a/grid/cell_data/zeros", GRV_STORE_F64, 2, zeros,
                grv_mesh_find(&mesh->cell_data, "zeros")->data);
    check_attributes(store, "a/grid", "\"kind\":\"cells\"");
    check_attributes(store, "a/grid", "\"time\":2.25");
    check_attributes(store, "a/grid", "\"names\":[\"one\",\"\",\"drei\xc3\xa9\"]");
    assert_false(is_there(store, "a/grid/field_data/names"));
    assert_fails(grv_mesh_store(mesh, store, "a/grid"), GRV_E_EXISTS, "a/grid");
    /* an array that does not fit the mesh: nothing is made */
    assert_ok(grv_mesh_add_array(&mesh->cell_data, "short", GRV_STORE_I8, 1, 6, NULL, NULL));
    assert_fails(grv_mesh_store(mesh, store, "other"), GRV_E_SHAPE,
                 "'short': 7 tuples expected, 6");
    assert_false(is_there(store, "other"));
    grv_store_close(&store);
    grv_mesh_destroy(&mesh);
}

/* Names that stores cannot have, long ones, and one name twice. */
static void test_names(void **state)
{
    static const char *const given[] = {"p",       "p",   "p",       "rho/U",     "",   "..",
                                        ".zarray", "__x", "a\\b\tc", "zarr.json", "p_2"};
    static const char *const expected[] = {"p",        "p_2",  "p_3",   "rho_U",      "x",    "x..",
                                           "x.zarray", "x__x", "a_b_c", "xzarr.json", "p_2_2"};
    enum { N = sizeof given / sizeof *given };
    const int64_t one[] = {1};
    char longest[301];
    (void)state;
    grv_mesh *mesh = NULL;
    grv_store *store = open_store();
    assert_ok(grv_mesh_create(GRV_MESH_SURFACE, &mesh));
    for (int32_t i = 0; i < N; i++)
        assert_ok(grv_mesh_add_array(&mesh->field_data, given[i], GRV_STORE_I32, 1, 1, &i, NULL));
    for (int i = 0; i < 300; i += 2)
        memcpy(longest + i, "\xc3\xa9", 2); /* cut between characters */
    longest[0] = 'y', longest[1] = 'y', longest[2] = 'y', longest[3] = 0x7f, longest[300] = '\0';
    for (int i = 5; i < 299; i += 2) memcpy(longest + i, "\xc3\xa9", 2);
    longest[4] = 'z', longest[299] = 'z';
    assert_ok(grv_mesh_add_array(&mesh->field_data, longest, GRV_STORE_I32, 1, 1, one, NULL));
    assert_ok(grv_mesh_store(mesh, store, "names"));
    for (int32_t i = 0; i < N; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "names/field_data/%s", expected[i]);
        check_array(store, path, GRV_STORE_I32, 1, one, &i);
    }
    char path[256] = "names/field_data/";
    strncat(path, longest, 119);
    path[strlen("names/field_data/") + 3] = '_';
    assert_true(is_there(store, path));
    grv_store_close(&store);
    grv_mesh_destroy(&mesh);
}

static void test_grids(void **state)
{
    (void)state;
    grv_mesh *mesh = NULL;
    grv_mesh_array *array = NULL;
    grv_store *store = open_store();
    assert_ok(grv_mesh_create(GRV_MESH_IMAGE, &mesh));
    static const int64_t extent[6] = {1, 4, 0, 2, 5, 5};
    const int64_t points[] = {1, 3, 4, 3}, cells[] = {1, 2, 3};
    memcpy(mesh->extent, extent, sizeof extent);
    mesh->spacing[1] = 0.25;
    assert_ok(grv_mesh_add_array(&mesh->point_data, "U", GRV_STORE_F64, 3, 12, NULL, &array));
    for (int i = 0; i < 36; i++) ((double *)array->data)[i] = i;
    assert_ok(grv_mesh_add_array(&mesh->cell_data, "c", GRV_STORE_U16, 1, 6, NULL, NULL));
    assert_ok(grv_mesh_store(mesh, store, "image"));
    check_array(store, "image/point_data/U", GRV_STORE_F64, 4, points,
                mesh->point_data.items[0].data);
    check_array(store, "image/cell_data/c", GRV_STORE_U16, 3, cells, mesh->cell_data.items[0].data);
    check_attributes(store, "image", "\"extent\":[1,4,0,2,5,5]");
    check_attributes(store, "image", "\"spacing\":[1.0,0.25,1.0]");
    assert_false(is_there(store, "image/points") || is_there(store, "image/types"));
    grv_mesh_destroy(&mesh);

    static const char text[] =
        "# vtk DataFile Version 3.0\nx\nASCII\nDATASET RECTILINEAR_GRID\nDIMENSIONS 2 1 3\n"
        "X_COORDINATES 2 float\n0 1\nY_COORDINATES 1 double\n7\nZ_COORDINATES 3 float\n0 1 4\n";
    static const float z[] = {0, 1, 4};
    static const double y[] = {7};
    const int64_t three[] = {3}, one[] = {1};
    write_file(in_folder("r.vtk"), text, sizeof text - 1);
    assert_ok(grv_mesh_read(in_folder("r.vtk"), NULL, &mesh));
    assert_string_equal(mesh->format, "VTK legacy");
    assert_ok(grv_mesh_store(mesh, store, "rectilinear"));
    check_array(store, "rectilinear/z", GRV_STORE_F32, 1, three, z);
    check_array(store, "rectilinear/y", GRV_STORE_F64, 1, one, y);
    grv_mesh_destroy(&mesh);
    grv_store_close(&store);
}

/* Triangles alone become a table; an empty mesh stays readable. */
static void test_triangles(void **state)
{
    static const float points[][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 1}};
    static const int32_t ids[] = {0, 1, 2, 3, 2, 1};
    const int64_t shape[] = {2, 3}, wide[] = {0, 1, 2, 3, 2, 1}, none[] = {0};
    (void)state;
    grv_triangles *t = NULL;
    grv_mesh *mesh = NULL;
    grv_store *store = open_store();
    assert_ok(grv_triangles_create(GRV_STORE_F32, 4, points, 2, ids, &t));
    assert_ok(grv_triangles_to_mesh(t, &mesh));
    assert_ok(grv_mesh_store(mesh, store, "triangles"));
    check_array(store, "triangles/triangles", GRV_STORE_I64, 2, shape, wide);
    assert_false(is_there(store, "triangles/offsets"));
    grv_mesh_destroy(&mesh);
    grv_triangles_destroy(&t);
    assert_ok(grv_mesh_create(GRV_MESH_SURFACE, &mesh));
    assert_ok(grv_mesh_store(mesh, store, "empty"));
    check_array(store, "empty/types", GRV_STORE_U8, 1, none, "");
    check_attributes(store, "empty", "\"kind\":\"surface\"");
    grv_mesh_destroy(&mesh);
    grv_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells), cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_grids),
                                       cmocka_unit_test(test_triangles)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
