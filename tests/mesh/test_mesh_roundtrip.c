/* What is written reads back to the same bits; what a format does not hold is refused, and no file is left. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mesh_support.h"

static grv_mesh *read_back(const char *path, int n_threads)
{
    const grv_mesh_read_params params = {.n_threads = n_threads};
    grv_mesh *mesh = NULL;
    assert_ok(grv_mesh_read(path, &params, &mesh));
    return mesh;
}

/* Every encoding of VTK files, one and three threads. */
static void check_vtk(const grv_mesh *mesh, const char *name)
{
    for (int encoding = GRV_MESH_BINARY; encoding <= GRV_MESH_BASE64; encoding++)
        for (int level = 0; level <= 6; level += 3)
            for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
                const grv_mesh_write_params params = {
                    .encoding = encoding, .zlib_level = level, .n_threads = n_threads};
                assert_ok(grv_mesh_write(mesh, in_folder(name), &params));
                grv_mesh *back = read_back(in_folder(name), n_threads);
                assert_same_mesh(back, mesh);
                grv_mesh_destroy(&back);
            }
}

static grv_mesh *make_surface(void)
{
    static const float points[][3] = {{0, 0, 0}, {1, 0, 0},       {0, 1, 0},
                                      {1, 1, 0}, {NAN, 2, -0.0F}, {2, 2, INFINITY}};
    static const int64_t offsets[] = {0, 1, 3, 5, 9, 12, 17, 21},
                         ids[] = {5, 0, 1, 1, 2, 0, 1, 3, 2, 0, 1, 2, 0, 1, 3, 5, 2, 0, 1, 2, 3};
    static const uint8_t types[] = {GRV_CELL_VERTEX,        GRV_CELL_LINE,     GRV_CELL_LINE,
                                    GRV_CELL_QUAD,          GRV_CELL_TRIANGLE, GRV_CELL_POLYGON,
                                    GRV_CELL_TRIANGLE_STRIP};
    static const int16_t region[] = {0, 1, 2, 3, -4, 5, 6};
    grv_mesh *mesh = NULL;
    assert_ok(grv_mesh_create(GRV_MESH_SURFACE, &mesh));
    assert_ok(grv_mesh_set_points(mesh, GRV_STORE_F32, 6, points));
    assert_ok(grv_mesh_set_cells(mesh, 7, offsets, ids, types));
    assert_ok(grv_mesh_add_array(&mesh->cell_data, "region", GRV_STORE_I16, 1, 7, region, NULL));
    return mesh;
}

static void test_vtk(void **state)
{
    (void)state;
    grv_mesh *grid = make_grid(), *surface = make_surface(), *empty = NULL;
    check_vtk(grid, "grid.vtu");
    check_vtk(surface, "surface.vtp");
    grv_mesh_destroy(&grid);
    grv_mesh_destroy(&surface);
    assert_ok(grv_mesh_create(GRV_MESH_SURFACE, &empty));
    check_vtk(empty, "empty.vtp");
    grv_mesh_destroy(&empty);
    assert_ok(grv_mesh_create(GRV_MESH_CELLS, &empty));
    check_vtk(empty, "empty.VTU");
    grv_mesh_destroy(&empty);
}

static void test_image(void **state)
{
    enum { N = 40000 };
    (void)state;
    grv_mesh *mesh = NULL;
    grv_mesh_array *array = NULL;
    assert_ok(grv_mesh_create(GRV_MESH_IMAGE, &mesh));
    static const int64_t extent[6] = {-2, 97, 3, 42, 5, 14};
    memcpy(mesh->extent, extent, sizeof extent);
    mesh->origin[1] = 1.0 / 3;
    mesh->spacing[2] = 1e-3;
    mesh->direction[1] = -0.5;
    assert_int_equal(grv_mesh_n_points(mesh), N);
    assert_int_equal(grv_mesh_n_cells(mesh), 99 * 39 * 9);
    assert_ok(grv_mesh_add_array(&mesh->point_data, "velocity", GRV_STORE_F32, 3, N, NULL, &array));
    for (int64_t i = 0; i < 3 * N; i++)
        ((float *)array->data)[i] = (float)grv_random_uniform(1, 2, (uint64_t)i / 5);
    check_vtk(mesh, "image.vti");
    assert_fails(grv_mesh_write(mesh, in_folder("image.vtu"), NULL), GRV_E_ARG,
                 "not this kind of mesh");
    mesh->extent[1]++;
    assert_fails(grv_mesh_write(mesh, in_folder("other.vti"), NULL), GRV_E_SHAPE,
                 "'velocity': 40400 tuples expected, 40000 found");
    assert_int_equal(access(in_folder("other.vti"), F_OK), -1);
    grv_mesh_destroy(&mesh);
}

/* Two solids, one facet of the second without area. */
static const char two_solids[] =
    "solid Inlet of it\n facet normal 0 0 1\n outer loop\n vertex 0 0 0\n vertex 1 0 0\n vertex 0 "
    "1 0.1\n endloop\n endfacet\nendsolid Inlet of it\n"
    "solid\nfacet normal nan nan nan\nouter loop\nvertex 1 1 1\nvertex 2 2 2\nvertex 3 3 "
    "3e0\nendloop\nendfacet\nendsolid\n";

static void test_stl(void **state)
{
    (void)state;
    write_file(in_folder("two.stl"), two_solids, sizeof two_solids - 1);
    grv_mesh *mesh = read_back(in_folder("two.stl"), 1);
    const grv_mesh_array *const names = grv_mesh_find(&mesh->field_data, "part_names"),
                                *part = grv_mesh_find(&mesh->cell_data, "part");
    assert_int_equal(names->n_tuples, 2);
    assert_memory_equal(names->data, "Inlet of it\0", 13);
    assert_int_equal(integer_of(part, 0), 0);
    assert_int_equal(integer_of(part, 1), 1);
    assert_true(mesh->points.type == GRV_STORE_F64 && value_of(&mesh->points, 8) == 0.1);
    const grv_mesh_write_params text = {.encoding = GRV_MESH_ASCII, .n_threads = 1};
    assert_ok(grv_mesh_write(mesh, in_folder("again.stl"), &text));
    grv_mesh *again = read_back(in_folder("again.stl"), 1);
    assert_same_mesh(again, mesh);
    grv_mesh_destroy(&again);
    assert_ok(grv_mesh_write(mesh, in_folder("binary.stl"), NULL));
    again = read_back(in_folder("binary.stl"), 1);
    assert_int_equal(again->n_cells, 2);
    assert_int_equal(again->points.type, GRV_STORE_F32);
    for (int64_t i = 0; i < 18; i++)
        assert_true(value_of(&again->points, i) == (double)(float)value_of(&mesh->points, i));
    grv_mesh_destroy(&again);
    /* the normals of a binary file */
    uint8_t bytes[184];
    float normal[3];
    assert_int_equal(read_file(in_folder("binary.stl"), bytes, sizeof bytes), sizeof bytes);
    memcpy(normal, bytes + 84, sizeof normal);
    assert_true(fabsf(normal[1] + 0.0995037F) < 1e-6F && fabsf(normal[2] - 0.995037F) < 1e-6F);
    memcpy(normal, bytes + 134, sizeof normal);
    assert_true(normal[0] == 0 && normal[1] == 0 && normal[2] == 0);
    grv_mesh_destroy(&mesh);
}

static void test_refused(void **state)
{
    (void)state;
    grv_mesh *mesh = make_grid();
    const grv_mesh_write_params text = {.encoding = GRV_MESH_ASCII, .n_threads = 1},
                                no_threads = {0}, strong = {.n_threads = 1, .zlib_level = 10};
    assert_fails(grv_mesh_write(mesh, in_folder("x.stl"), NULL), GRV_E_ARG,
                 "not this kind of mesh");
    assert_fails(grv_mesh_write(mesh, in_folder("x.vtp"), NULL), GRV_E_ARG,
                 "not this kind of mesh");
    assert_fails(grv_mesh_write(mesh, in_folder("x.obj"), NULL), GRV_E_ARG,
                 ".stl, .vtp, .vtu or .vti expected");
    assert_fails(grv_mesh_write(mesh, in_folder("x.vtu"), &text), GRV_E_ARG, "binary or base64");
    assert_fails(grv_mesh_write(mesh, in_folder("x.vtu"), &no_threads), GRV_E_ARG, "n_threads");
    assert_fails(grv_mesh_write(mesh, in_folder("x.vtu"), &strong), GRV_E_ARG, "zlib_level");
    assert_fails(grv_mesh_write(mesh, in_folder("absent/x.vtu"), NULL), GRV_E_IO, "No such file");
    grv_mesh_destroy(&mesh);
    /* a .vtp file has its lists in a fixed order */
    mesh = make_surface();
    mesh->types[0] = GRV_CELL_LINE;
    mesh->types[1] = GRV_CELL_VERTEX;
    assert_fails(grv_mesh_write(mesh, in_folder("x.vtp"), NULL), GRV_E_ARG, "vertices, then lines");
    assert_ok(grv_mesh_write(mesh, in_folder("x.vtu"), NULL));
    assert_int_equal(access(in_folder("x.vtp"), F_OK), -1);
    grv_mesh_destroy(&mesh);
}

static void test_building(void **state)
{
    (void)state;
    static const int64_t good[] = {0, 2}, down[] = {0, 2, 1}, ids[] = {0, 1}, far_ids[] = {0, 2};
    static const uint8_t types[] = {GRV_CELL_LINE, GRV_CELL_LINE};
    static const double points[] = {0, 0, 0, 1, 1, 1};
    grv_mesh *mesh = NULL;
    assert_ok(grv_mesh_create(GRV_MESH_SURFACE, &mesh));
    assert_fails(grv_mesh_set_points(mesh, GRV_STORE_I32, 2, points), GRV_E_ARG,
                 "float32 or float64");
    assert_ok(grv_mesh_set_points(mesh, GRV_STORE_F64, 2, points));
    assert_fails(grv_mesh_set_cells(mesh, 2, down, ids, types), GRV_E_ARG,
                 "offsets of cell 1: 1 after 2");
    assert_fails(grv_mesh_set_cells(mesh, 1, good, far_ids, types), GRV_E_ARG,
                 "connectivity[1] is 2");
    assert_ok(grv_mesh_set_cells(mesh, 1, good, ids, types));
    assert_ok(grv_mesh_set_cells(mesh, 1, good, ids, types));
    assert_fails(grv_mesh_add_array(&mesh->cell_data, "c", GRV_STORE_C64, 1, 1, NULL, NULL),
                 GRV_E_ARG, "no type complex64");
    assert_fails(grv_mesh_add_texts(&mesh->field_data, "t", 2, "a\0b", 3), GRV_E_ARG, "2 texts");
    assert_null(grv_mesh_find(&mesh->cell_data, "c"));
    grv_mesh_destroy(&mesh);
    grv_mesh_destroy(&mesh);
    assert_fails(grv_mesh_read(in_folder("absent.vtu"), NULL, &mesh), GRV_E_NOT_FOUND,
                 "absent.vtu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vtk), cmocka_unit_test(test_image),
                                       cmocka_unit_test(test_stl), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_building)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
