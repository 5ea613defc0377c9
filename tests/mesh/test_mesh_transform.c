/* Meshes scaled and moved, every kind of them; ranges of arrays. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mesh_support.h"

static const double scale[3] = {2, 0.5, 4}, translate[3] = {1, -1, 1e6}, same[3] = {3, 3, 3},
                    nowhere[3] = {0, 0, 0};

static void test_points(void **state)
{
    static const float points[][3] = {{1, 2, 3}, {-0.1F, NAN, 1e30F}};
    (void)state;
    grv_mesh *mesh = NULL;
    assert_ok(grv_mesh_create(GRV_MESH_SURFACE, &mesh));
    assert_ok(grv_mesh_transform(mesh, scale, translate)); /* without points */
    assert_ok(grv_mesh_set_points(mesh, GRV_STORE_F32, 2, points));
    assert_ok(grv_mesh_transform(mesh, scale, translate));
    const float *const p = mesh->points.data;
    assert_true(p[0] == 3 && p[1] == 0 && p[2] == 1000012);
    assert_true(p[3] == (float)((double)-0.1F * 2 + 1) && isnan(p[4]) && p[5] == 4e30F);
    grv_mesh_destroy(&mesh);
    mesh = make_grid();
    assert_ok(grv_mesh_transform(mesh, same, translate));
    assert_true(value_of(&mesh->points, 25) == 0.1 * 3 - 1);
    grv_mesh_destroy(&mesh);
}

static void test_grids(void **state)
{
    static const double quarter_turn[9] = {0, -1, 0, 1, 0, 0, 0, 0, 1};
    static const char text[] =
        "# vtk DataFile Version 3.0\nx\nASCII\nDATASET RECTILINEAR_GRID\nDIMENSIONS 2 1 2\n"
        "X_COORDINATES 2 int\n0 1\nY_COORDINATES 1 double\n7\nZ_COORDINATES 2 float\n0 1\n";
    (void)state;
    grv_mesh *mesh = NULL;
    assert_ok(grv_mesh_create(GRV_MESH_IMAGE, &mesh));
    mesh->origin[0] = 5;
    mesh->spacing[2] = 0.1;
    assert_ok(grv_mesh_transform(mesh, scale, translate));
    assert_true(mesh->origin[0] == 11 && mesh->origin[1] == -1 && mesh->spacing[0] == 2 &&
                mesh->spacing[2] == 0.4);
    memcpy(mesh->direction, quarter_turn, sizeof quarter_turn);
    assert_fails(grv_mesh_transform(mesh, scale, translate), GRV_E_ARG, "turned");
    assert_true(mesh->origin[0] == 11 && mesh->spacing[0] == 2);
    assert_ok(grv_mesh_transform(mesh, same, nowhere));
    assert_true(mesh->origin[0] == 33 && mesh->spacing[0] == 6 && mesh->direction[1] == -1);
    grv_mesh_destroy(&mesh);
    write_file(in_folder("r.vtk"), text, sizeof text - 1);
    assert_ok(grv_mesh_read(in_folder("r.vtk"), NULL, &mesh));
    assert_ok(grv_mesh_transform(mesh, scale, translate));
    assert_true(value_of(&mesh->coordinates[0], 1) == 3 &&
                value_of(&mesh->coordinates[1], 0) == 2.5 &&
                value_of(&mesh->coordinates[2], 1) == 1000004);
    grv_mesh_destroy(&mesh);
}

static void test_refused(void **state)
{
    static const double zero[3] = {1, 0, 1}, infinite[3] = {1, 1, INFINITY}, lost[3] = {0, NAN, 0};
    (void)state;
    grv_mesh *mesh = make_grid(), *before = make_grid();
    assert_fails(grv_mesh_transform(mesh, zero, nowhere), GRV_E_ARG, "scale > 0");
    assert_fails(grv_mesh_transform(mesh, infinite, nowhere), GRV_E_ARG, "finite");
    assert_fails(grv_mesh_transform(mesh, same, lost), GRV_E_ARG, "nan");
    assert_same_mesh(mesh, before);
    grv_mesh_destroy(&mesh);
    grv_mesh_destroy(&before);
}

static void test_range(void **state)
{
    static const float values[] = {1, NAN, -2, 5, INFINITY, NAN, 7, -3};
    static const uint64_t large[] = {UINT64_MAX, 3};
    (void)state;
    grv_mesh *mesh = NULL;
    double min = 0, max = 0;
    int64_t n = -1;
    assert_ok(grv_mesh_create(GRV_MESH_SURFACE, &mesh));
    grv_mesh_arrays *const list = &mesh->field_data;
    assert_ok(grv_mesh_add_array(list, "f", GRV_STORE_F32, 2, 4, values, NULL));
    assert_ok(grv_mesh_add_array(list, "u", GRV_STORE_U64, 1, 2, large, NULL));
    assert_ok(grv_mesh_add_array(list, "none", GRV_STORE_I8, 3, 0, NULL, NULL));
    assert_ok(grv_mesh_add_texts(list, "text", 1, "abc", 4));
    grv_mesh_array_range(&list->items[0], 0, &min, &max, &n);
    assert_true(min == -2 && max == 7 && n == 1);
    grv_mesh_array_range(&list->items[0], 1, &min, &max, &n);
    assert_true(min == -3 && max == 5 && n == 2);
    grv_mesh_array_range(&list->items[1], 0, &min, &max, NULL);
    assert_true(min == 3 && max == (double)UINT64_MAX);
    for (int i = 2; i < 4; i++) {
        grv_mesh_array_range(&list->items[i], 0, &min, &max, &n);
        assert_true(isnan(min) && isnan(max) && n == 0);
    }
    grv_mesh_destroy(&mesh);
}

static void test_centres(void **state)
{
    static const float points[][3] = {{0, 0, 0}, {1, 0, 0}, {0, 3, 0}, {1e8F, 0, 0}};
    static const int64_t offsets[] = {0, 3, 5, 5, 6}, ids[] = {0, 1, 2, 3, 1, 2};
    static const uint8_t types[] = {GRV_CELL_TRIANGLE, GRV_CELL_LINE, GRV_CELL_POLYGON,
                                    GRV_CELL_VERTEX};
    (void)state;
    float centres[4][3];
    double wide[7][3];
    grv_mesh *mesh = NULL;
    assert_ok(grv_mesh_create(GRV_MESH_CELLS, &mesh));
    assert_ok(grv_mesh_set_points(mesh, GRV_STORE_F32, 4, points));
    assert_ok(grv_mesh_set_cells(mesh, 4, offsets, ids, types));
    assert_ok(grv_mesh_cell_centres(mesh, centres));
    assert_true(centres[0][0] == 1 / 3.0F && centres[0][1] == 1 && centres[0][2] == 0);
    assert_true(centres[1][0] == (float)((1e8 + 1) / 2) && isnan(centres[2][1]) &&
                centres[3][1] == 3);
    grv_mesh_destroy(&mesh);
    mesh = make_grid();
    assert_ok(grv_mesh_cell_centres(mesh, wide));
    for (int axis = 0; axis < 3; axis++) assert_true(wide[5][axis] == 0.5); /* a hexahedron */
    mesh->kind = GRV_MESH_STRUCTURED;
    assert_fails(grv_mesh_cell_centres(mesh, wide), GRV_E_ARG, "a grid");
    mesh->kind = GRV_MESH_CELLS;
    grv_mesh_destroy(&mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_points), cmocka_unit_test(test_grids),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_range),
                                       cmocka_unit_test(test_centres)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
