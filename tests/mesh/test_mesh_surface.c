/* The outer surface of cells: closed, looking outward, with the volume of the cells; data follow; what is no volume is left out. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "grove/core.h"
#include "mesh_support.h"

/* Cells of one type that fill the unit cube [0, 1]^3, corners as numbers with bits x, y, z. */
typedef struct filling {
    uint8_t type;
    int n_points, n_cells;
    int8_t cells[6][8];
} filling;

static const filling fillings[] = {
    {GRV_CELL_VOXEL, 8, 1, {{0, 1, 2, 3, 4, 5, 6, 7}}},
    {GRV_CELL_HEXAHEDRON, 8, 1, {{0, 1, 3, 2, 4, 5, 7, 6}}},
    {GRV_CELL_HEXAHEDRON, 8, 1, {{4, 5, 7, 6, 0, 1, 3, 2}}},          /* left-handed */
    {GRV_CELL_WEDGE, 6, 2, {{0, 1, 3, 4, 5, 7}, {4, 7, 6, 0, 3, 2}}}, /* one of each hand */
    {GRV_CELL_TETRA,
     4,
     6,
     {{0, 1, 3, 7}, {0, 1, 5, 7}, {0, 2, 3, 7}, {0, 2, 6, 7}, {0, 4, 5, 7}, {0, 4, 6, 7}}},
};

enum { N = 3, SIDE = N + 1, N_POINTS = SIDE * SIDE * SIDE, N_CUBES = N * N * N };

/* N^3 cubes of side 1/2, each cut as the filling says, in float or double; point and cell data are their numbers. A vertex, a line and a triangle come first. */
static grv_mesh *make_cubes(const filling *f, grv_store_type type)
{
    static int64_t ids[6 + N_CUBES * 48], offsets[4 + N_CUBES * 6];
    static uint8_t types[3 + N_CUBES * 6];
    double points[N_POINTS][3];
    float narrow[N_POINTS][3];
    int64_t numbers[3 + N_CUBES * 6];
    int32_t names[N_POINTS];
    static const double time[] = {2.5};
    grv_mesh *mesh = NULL;
    for (int i = 0; i < N_POINTS; i++)
        for (int k = 0; k < 3; k++) {
            const int at[3] = {i % SIDE, i / SIDE % SIDE, i / SIDE / SIDE};
            narrow[i][k] = (float)(points[i][k] = 0.5 * at[k]);
            names[i] = i;
        }
    int64_t n = 0, n_ids = 0;
    for (n = 0; n < 3; n++) {
        static const uint8_t flat[] = {GRV_CELL_VERTEX, GRV_CELL_LINE, GRV_CELL_TRIANGLE};
        for (int64_t k = 0; k <= n; k++) ids[n_ids++] = k;
        types[n] = flat[n];
        offsets[n + 1] = n_ids;
    }
    for (int cube = 0; cube < N_CUBES; cube++)
        for (int cell = 0; cell < f->n_cells; cell++) {
            const int first = cube % N + SIDE * (cube / N % N) + SIDE * SIDE * (cube / N / N);
            for (int k = 0; k < f->n_points; k++) {
                const int corner = f->cells[cell][k];
                ids[n_ids++] =
                    first + (corner & 1) + SIDE * (corner >> 1 & 1) + SIDE * SIDE * (corner >> 2);
            }
            types[n] = f->type;
            offsets[++n] = n_ids;
        }
    for (int64_t i = 0; i < n; i++) numbers[i] = i;
    assert_ok(grv_mesh_create(GRV_MESH_CELLS, &mesh));
    assert_ok(grv_mesh_set_points(mesh, type, N_POINTS,
                                  type == GRV_STORE_F32 ? (void *)narrow : (void *)points));
    assert_ok(grv_mesh_set_cells(mesh, n, offsets, ids, types));
    assert_ok(grv_mesh_add_array(&mesh->cell_data, "cell", GRV_STORE_I64, 1, n, numbers, NULL));
    assert_ok(
        grv_mesh_add_array(&mesh->point_data, "point", GRV_STORE_I32, 1, N_POINTS, names, NULL));
    assert_ok(grv_mesh_add_array(&mesh->field_data, "TimeValue", GRV_STORE_F64, 1, 1, time, NULL));
    assert_ok(grv_mesh_add_texts(&mesh->field_data, "names", 1, "x", 2));
    mesh->has_time = true;
    mesh->time = time[0];
    return mesh;
}

static void assert_closed(const grv_mesh *surface, double area, double volume)
{
    grv_triangles *t = NULL;
    grv_triangles_measure m;
    assert_ok(grv_triangles_from_mesh(surface, &t));
    assert_ok(grv_triangles_measure_get(t, &m));
    assert_true(m.is_watertight);
    assert_true(fabs(m.area - area) < 1e-12 && fabs(m.volume - volume) < 1e-12);
    grv_triangles_destroy(&t);
}

/* Data are those of the same point, and of a cell that has the points of the face; faces follow the order of the cells. */
static void assert_data(const grv_mesh *surface, const grv_mesh *mesh)
{
    const int32_t *const names = grv_mesh_find(&surface->point_data, "point")->data;
    const int64_t *const cells = grv_mesh_find(&surface->cell_data, "cell")->data;
    for (int64_t k = 0; k < 3 * surface->points.n_tuples; k++)
        assert_true(value_of(&surface->points, k) ==
                    value_of(&mesh->points, 3 * (int64_t)names[k / 3] + k % 3));
    for (int64_t k = 0; k < surface->n_cells; k++) {
        assert_true(k == 0 || cells[k] >= cells[k - 1]);
        for (int64_t j = surface->offsets[k]; j < surface->offsets[k + 1]; j++) {
            int64_t at = mesh->offsets[cells[k]];
            while (at < mesh->offsets[cells[k] + 1] &&
                   mesh->connectivity[at] != names[surface->connectivity[j]])
                at++;
            assert_true(at < mesh->offsets[cells[k] + 1]);
        }
    }
    assert_true(surface->has_time && surface->time == 2.5);
    assert_same_list(&surface->field_data, &mesh->field_data);
}

static void test_fillings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof fillings / sizeof fillings[0]; i++)
        for (int wide = 0; wide < 2; wide++) {
            grv_mesh *mesh = make_cubes(&fillings[i], wide != 0 ? GRV_STORE_F64 : GRV_STORE_F32);
            grv_mesh *surface = NULL;
            int64_t n_left_out = 0;
            assert_ok(grv_mesh_extract_surface(mesh, &surface, &n_left_out));
            assert_int_equal(n_left_out, 3);
            assert_int_equal(surface->kind, GRV_MESH_SURFACE);
            assert_int_equal(surface->points.n_tuples, N_POINTS - (N - 1) * (N - 1) * (N - 1));
            assert_closed(surface, 6 * (0.5 * N) * (0.5 * N), pow(0.5 * N, 3));
            if (fillings[i].n_points == 8) assert_int_equal(surface->n_cells, 6 * N * N);
            assert_data(surface, mesh);
            grv_mesh_destroy(&surface);
            grv_mesh_destroy(&mesh);
        }
}

/* A pyramid on a cube, and a polyhedron on its other side whose faces are turned any way: different types meet in one face. */
static void test_mixed(void **state)
{
    static const double points[][3] = {{0, 0, 0},     {1, 0, 0},      {1, 1, 0}, {0, 1, 0},
                                       {0, 0, 1},     {1, 0, 1},      {1, 1, 1}, {0, 1, 1},
                                       {0.5, 0.5, 2}, {0.5, 0.5, -1}, {7, 7, 7}};
    static const int64_t offsets[] = {0, 8, 13, 18},
                         ids[] = {0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 8, 0, 1, 2, 3, 9};
    static const uint8_t types[] = {GRV_CELL_HEXAHEDRON, GRV_CELL_PYRAMID, GRV_CELL_POLYHEDRON};
    static const int64_t face_offsets[] = {0, 0, 0, 22},
                         faces[] = {5, 4, 2, 3, 0, 1, 3, 0, 1, 9, 3,
                                    9, 1, 2, 3, 2, 9, 3, 3, 0, 3, 9};
    (void)state;
    grv_mesh *mesh = NULL, *surface = NULL;
    grv_mesh_array *array = NULL;
    grv_mesh_arrays holder = {0};
    int64_t n_left_out = -1;
    assert_ok(grv_mesh_create(GRV_MESH_CELLS, &mesh));
    assert_ok(grv_mesh_set_points(mesh, GRV_STORE_F64, 11, points));
    assert_ok(grv_mesh_set_cells(mesh, 3, offsets, ids, types));
    assert_ok(grv_mesh_extract_surface(mesh, &surface, &n_left_out));
    assert_int_equal(n_left_out, 1); /* a polyhedron without faces */
    assert_int_equal(surface->n_cells, 9);
    grv_mesh_destroy(&surface);
    assert_ok(
        grv_mesh_add_array(&holder, "face_offsets", GRV_STORE_I64, 1, 4, face_offsets, &array));
    mesh->face_offsets = array->data;
    array->data = NULL;
    assert_ok(grv_mesh_add_array(&holder, "faces", GRV_STORE_I64, 1, 22, faces, &array));
    mesh->faces = array->data;
    array->data = NULL;
    for (int64_t i = 0; i < holder.n; i++) grv_free(holder.items[i].name);
    grv_free(holder.items);
    assert_ok(grv_mesh_extract_surface(mesh, &surface, &n_left_out));
    assert_int_equal(n_left_out, 0);
    assert_int_equal(surface->n_cells, 12);
    assert_int_equal(surface->points.n_tuples, 10);
    assert_closed(surface, 4 + 8 * 0.5 * sqrt(1.25), 1 + 2.0 / 3);
    grv_mesh_destroy(&surface);
    grv_mesh_destroy(&mesh);
}

/* Copies of a cell have no face of their own; a cell with a wrong number of points, one that is collapsed, and nothing at all. */
static void test_odd(void **state)
{
    static const float points[][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    static const int64_t offsets[] = {0, 4, 8, 12, 15, 19},
                         ids[] = {0, 1, 2, 3, 3, 2, 1, 0, 0, 1, 2, 3, 0, 1, 2, 0, 0, 1, 1};
    static const uint8_t types[] = {GRV_CELL_TETRA, GRV_CELL_TETRA, GRV_CELL_TETRA, GRV_CELL_TETRA,
                                    GRV_CELL_TETRA};
    (void)state;
    grv_mesh *mesh = NULL, *surface = NULL;
    int64_t n_left_out = 0;
    assert_ok(grv_mesh_create(GRV_MESH_CELLS, &mesh));
    assert_ok(grv_mesh_extract_surface(mesh, &surface, NULL));
    assert_true(surface->n_cells == 0 && surface->points.n_tuples == 0);
    grv_mesh_destroy(&surface);
    assert_ok(grv_mesh_set_points(mesh, GRV_STORE_F32, 4, points));
    assert_ok(grv_mesh_set_cells(mesh, 5, offsets, ids, types));
    assert_ok(grv_mesh_extract_surface(mesh, &surface, &n_left_out));
    assert_true(surface->n_cells == 0 && n_left_out == 1);
    grv_mesh_destroy(&surface);
    grv_mesh_destroy(&mesh);
    assert_ok(grv_mesh_create(GRV_MESH_SURFACE, &mesh));
    assert_fails(grv_mesh_extract_surface(mesh, &surface, NULL), GRV_E_ARG, "mesh of cells");
    assert_null(surface);
    grv_mesh_destroy(&mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fillings),
                                       cmocka_unit_test(test_mixed), cmocka_unit_test(test_odd)};
    return cmocka_run_group_tests_name("mesh surface", tests, NULL, NULL);
}
