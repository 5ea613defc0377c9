/* Repair and measure: against figures known by formula, surfaces broken on purpose, and brute force. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mesh_support.h"

static const double far_away[3] = {1e6, -2e6, 3e6};

/* A cube of side 2 around a centre as a soup: every triangle has its own points. */
static grv_triangles *make_cube(grv_store_type type, const double centre[3])
{
    static const int8_t quads[6][4] = {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4},
                                       {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
    static const int8_t corners[2][3] = {{0, 1, 2}, {0, 2, 3}};
    double points[108];
    float floats[108];
    int32_t ids[36];
    for (int k = 0; k < 36; k++) {
        const int corner = quads[k / 6][corners[k / 3 % 2][k % 3]];
        for (int axis = 0; axis < 3; axis++)
            points[3 * k + axis] = centre[axis] + (corner >> axis & 1 ? 1 : -1);
        ids[k] = k;
    }
    for (int i = 0; i < 108; i++) floats[i] = (float)points[i];
    grv_triangles *t = NULL;
    assert_ok(grv_triangles_create(
        type, 36, type == GRV_STORE_F32 ? (const void *)floats : (const void *)points, 12, ids,
        &t));
    return t;
}

static grv_triangles_measure measure(const grv_triangles *t)
{
    grv_triangles_measure m;
    assert_ok(grv_triangles_measure_get(t, &m));
    return m;
}

static void test_cube(void **state)
{
    static const double origin[3] = {0, 0, 0};
    (void)state;
    for (int variant = 0; variant < 3; variant++) {
        const double *const centre = variant == 2 ? far_away : origin;
        grv_triangles *t = make_cube(variant == 0 ? GRV_STORE_F32 : GRV_STORE_F64, centre);
        int64_t n_joined = 0;
        grv_triangles_measure m = measure(t);
        assert_false(m.is_watertight);
        assert_int_equal(m.n_boundary_edges, 36);
        assert_ok(grv_triangles_weld(t, 0, &n_joined));
        assert_int_equal(n_joined, 28);
        assert_int_equal(t->n_points, 8);
        m = measure(t);
        assert_true(m.is_watertight);
        assert_int_equal(m.n_edges, 18);
        assert_true(m.area == 24 && m.volume == 8); /* all numbers on the way are exact */
        for (int i = 0; i < 3; i++) {
            assert_true(m.lower[i] == centre[i] - 1 && m.upper[i] == centre[i] + 1);
            assert_true(m.centre[i] == centre[i] && m.volume_centre[i] == centre[i]);
        }
        grv_triangles_destroy(&t);
    }
}

/* A ball of many triangles: area and volume between those of the inscribed polyhedron and the sphere, and its centre. */
static void test_ball(void **state)
{
    enum { N = 60, M = 120 };
    static double points[(N + 1) * M][3];
    static int32_t ids[2 * N * M][3];
    (void)state;
    for (int i = 0; i <= N; i++)
        for (int j = 0; j < M; j++) {
            const double theta = M_PI * i / N, phi = 2 * M_PI * j / M;
            const double ring = i == 0 || i == N ? 0 : sin(theta);
            points[i * M + j][0] = 5 + 2 * ring * cos(phi);
            points[i * M + j][1] = 2 * ring * sin(phi);
            points[i * M + j][2] = 2 * (i == N ? -1 : cos(theta));
        }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            const int32_t a = i * M + j, b = (i + 1) * M + j, c = i * M + (j + 1) % M,
                          d = (i + 1) * M + (j + 1) % M;
            const int32_t two[2][3] = {{a, b, d}, {a, d, c}};
            memcpy(ids[2 * (i * M + j)], two, sizeof two);
        }
    grv_triangles *t = NULL;
    grv_triangles_cleaned cleaned;
    grv_triangles_oriented oriented;
    assert_ok(grv_triangles_create(GRV_STORE_F64, (N + 1) * M, points, 2 * N * M, ids[0], &t));
    assert_ok(grv_triangles_weld(t, 0, NULL));
    assert_ok(grv_triangles_clean(t, &cleaned));
    assert_int_equal(cleaned.n_degenerate, 2 * M); /* at the poles */
    assert_int_equal(cleaned.n_duplicate, 0);
    grv_triangles_measure m = measure(t);
    assert_true(m.is_watertight);
    const double area = 4 * M_PI * 4, volume = 4 * M_PI * 8 / 3;
    assert_true(m.area < area && m.area > 0.997 * area);
    assert_true(m.volume < volume && m.volume > 0.996 * volume);
    assert_true(fabs(m.volume_centre[0] - 5) < 1e-12 && fabs(m.volume_centre[2]) < 1e-12 &&
                fabs(m.centre[1]) < 1e-12);
    /* a third of the triangles turned over, and back */
    for (int64_t i = 0; i < t->n_triangles; i += 3) {
        const int32_t kept = t->triangles[3 * i];
        t->triangles[3 * i] = t->triangles[3 * i + 1];
        t->triangles[3 * i + 1] = kept;
    }
    assert_true(measure(t).n_opposed_edges > 0);
    assert_ok(grv_triangles_orient(t, false, &oriented));
    assert_int_equal(oriented.n_flipped, (t->n_triangles + 2) / 3);
    assert_int_equal(oriented.n_components, 1);
    assert_int_equal(oriented.n_conflicts, 0);
    assert_true(measure(t).is_watertight && fabs(measure(t).volume - m.volume) < 1e-12 * volume);
    grv_triangles_destroy(&t);
}

static void test_orient(void **state)
{
    (void)state;
    /* two cubes, one inside out: each agrees with itself; outward turns the second */
    static const double origin[3] = {0, 0, 0};
    grv_triangles *one = make_cube(GRV_STORE_F64, origin), *two = NULL;
    double points[72][3];
    int32_t ids[24][3];
    grv_triangles_oriented oriented;
    for (int i = 0; i < 36; i++)
        for (int axis = 0; axis < 3; axis++) {
            points[i][axis] = ((const double *)one->points)[3 * i + axis];
            points[36 + i][axis] = points[i][axis] + 10;
        }
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < 3; k++) {
            ids[i][k] = 3 * i + k;
            ids[12 + i][k] = 36 + 3 * i + (3 - k) % 3;
        }
    assert_ok(grv_triangles_create(GRV_STORE_F64, 72, points, 24, ids[0], &two));
    assert_ok(grv_triangles_weld(two, 0, NULL));
    assert_true(measure(two).volume == 0);
    assert_ok(grv_triangles_orient(two, false, &oriented));
    assert_int_equal(oriented.n_components, 2);
    assert_int_equal(oriented.n_flipped, 0);
    assert_ok(grv_triangles_orient(two, true, &oriented));
    assert_int_equal(oriented.n_flipped, 12);
    assert_true(measure(two).volume == 16 && measure(two).is_watertight);
    grv_triangles_destroy(&one);
    grv_triangles_destroy(&two);
    /* a Moebius band of five squares cannot agree */
    enum { N = 5 };
    double band[2 * N][3];
    int32_t strip[2 * N][3];
    for (int i = 0; i < N; i++) {
        const double phi = 2 * M_PI * i / N;
        for (int side = 0; side < 2; side++) {
            const double r = 2 + (side ? 0.5 : -0.5) * cos(phi / 2);
            band[2 * i + side][0] = r * cos(phi);
            band[2 * i + side][1] = r * sin(phi);
            band[2 * i + side][2] = (side ? 0.5 : -0.5) * sin(phi / 2);
        }
        const int next = (i + 1) % N, swap = i == N - 1;
        const int32_t a = 2 * i, b = 2 * i + 1, c = 2 * next + swap, d = 2 * next + 1 - swap;
        const int32_t pair[2][3] = {{a, b, d}, {a, d, c}};
        memcpy(strip[2 * i], pair, sizeof pair);
    }
    assert_ok(grv_triangles_create(GRV_STORE_F64, 2 * N, band, 2 * N, strip[0], &two));
    assert_ok(grv_triangles_orient(two, true, &oriented));
    assert_int_equal(oriented.n_components, 1);
    assert_true(oriented.n_conflicts >= 1);
    assert_false(measure(two).is_watertight);
    grv_triangles_destroy(&two);
}

static void test_clean(void **state)
{
    static const float points[][3] = {{0, 0, 0},   {1, 0, 0}, {0, 1, 0}, {2, 0, 0},
                                      {NAN, 0, 0}, {9, 9, 9}, {0, 0, 1}};
    static const int32_t ids[][3] = {{0, 1, 2}, {0, 0, 1}, {0, 1, 3}, {2, 1, 0},
                                     {1, 2, 4}, {6, 1, 2}, {1, 2, 0}};
    (void)state;
    grv_triangles *t = NULL;
    grv_triangles_cleaned cleaned;
    assert_ok(grv_triangles_create(GRV_STORE_F32, 7, points, 7, ids[0], &t));
    assert_ok(grv_triangles_clean(t, &cleaned));
    assert_int_equal(cleaned.n_degenerate, 3);
    assert_int_equal(cleaned.n_duplicate, 2);
    assert_int_equal(cleaned.n_unused, 3);
    assert_int_equal(t->n_triangles, 2);
    assert_int_equal(t->n_points, 4);
    assert_int_equal(t->faces[0], 0);
    assert_int_equal(t->faces[1], 5);
    static const int32_t expected[] = {0, 1, 2, 3, 1, 2};
    assert_memory_equal(t->triangles, expected, sizeof expected);
    assert_true(((const float *)t->points)[11] == 1);
    grv_triangles_destroy(&t);
    assert_fails(grv_triangles_create(GRV_STORE_F32, 6, points, 7, ids[0], &t), GRV_E_ARG,
                 "triangle 5 has point 6");
    assert_null(t);
}

/* Welding against all pairs: each point to the first kept one within the tolerance. */
static void test_weld(void **state)
{
    enum { N = 700 };
    static const double tolerances[] = {0, 1e-9, 0.02, 0.3, 10};
    (void)state;
    for (int variant = 0; variant < 10; variant++) {
        const double tolerance = tolerances[variant % 5], shift = variant < 5 ? 0 : 1e5;
        static double points[N][3];
        int32_t expected[N], n_kept = 0;
        double kept[N][3];
        for (int i = 0; i < N; i++)
            for (int axis = 0; axis < 3; axis++) {
                const double random =
                    grv_random_uniform(3, (uint64_t)variant, (uint64_t)(3 * i + axis));
                /* a lattice with copies and signed zeros, and points between */
                points[i][axis] =
                    i % 2 ? shift + random
                          : shift + floor(4 * random) / 4 * (shift == 0 && i % 4 == 0 ? -1 : 1);
            }
        /* equal ones first, the first of them standing for all */
        static double distinct[N][3];
        int n_distinct = 0, of[N];
        for (int i = 0; i < N; i++) {
            int k = 0;
            while (k < n_distinct &&
                   !(points[i][0] == distinct[k][0] && points[i][1] == distinct[k][1] &&
                     points[i][2] == distinct[k][2]))
                k++;
            if (k == n_distinct) memcpy(distinct[n_distinct++], points[i], sizeof points[i]);
            of[i] = k;
        }
        int32_t joined[N];
        for (int i = 0; i < n_distinct; i++) {
            int k = 0;
            for (; k < n_kept && tolerance > 0; k++) {
                const double x = distinct[i][0] - kept[k][0], y = distinct[i][1] - kept[k][1],
                             z = distinct[i][2] - kept[k][2];
                if (x * x + y * y + z * z <= tolerance * tolerance) break;
            }
            if (tolerance == 0) k = n_kept;
            if (k == n_kept) memcpy(kept[n_kept++], distinct[i], sizeof kept[0]);
            joined[i] = k;
        }
        int32_t ids[N][3];
        for (int i = 0; i < N; i++) {
            expected[i] = joined[of[i]];
            for (int k = 0; k < 3; k++) ids[i][k] = (i + k) % N;
        }
        grv_triangles *t = NULL;
        int64_t n_joined = 0;
        assert_ok(grv_triangles_create(GRV_STORE_F64, N, points, N, ids[0], &t));
        assert_ok(grv_triangles_weld(t, tolerance, &n_joined));
        assert_int_equal(n_joined, N - n_kept);
        for (int i = 0; i < N; i++) assert_int_equal(t->triangles[3 * i], expected[i]);
        for (int i = 0; i < n_kept; i++)
            for (int axis = 0; axis < 3; axis++)
                assert_true(((const double *)t->points)[3 * i + axis] == kept[i][axis]);
        grv_triangles_destroy(&t);
    }
    grv_triangles *t = make_cube(GRV_STORE_F32, far_away);
    assert_fails(grv_triangles_weld(t, -1, NULL), GRV_E_ARG, "tolerance");
    assert_fails(grv_triangles_weld(t, NAN, NULL), GRV_E_ARG, "tolerance");
    ((float *)t->points)[0] = NAN;
    assert_ok(grv_triangles_weld(t, 1e-3, NULL));
    assert_int_equal(t->n_points, 9);
    grv_triangles_destroy(&t);
}

/* Every kind of flat cell, as triangles and back. */
static void test_from_mesh(void **state)
{
    static const double points[][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0},
                                       {1, 1, 0}, {0, 2, 0}, {1, 2, 0}};
    static const int64_t offsets[] = {0, 3, 7, 11, 17, 23, 25, 29},
                         ids[] = {0, 1, 2, 0, 1, 3, 2, 0, 1, 2, 3, 0, 1, 3, 5,
                                  4, 2, 0, 1, 2, 3, 4, 5, 0, 1, 0, 1, 2, 3};
    static const uint8_t types[] = {GRV_CELL_TRIANGLE, GRV_CELL_QUAD,           GRV_CELL_PIXEL,
                                    GRV_CELL_POLYGON,  GRV_CELL_TRIANGLE_STRIP, GRV_CELL_LINE,
                                    GRV_CELL_TETRA};
    static const int32_t faces[] = {0, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4};
    static const double areas[] = {0.5, 1, 1, 2, 2};
    grv_mesh *mesh = NULL, *back = NULL;
    grv_triangles *t = NULL;
    (void)state;
    assert_ok(grv_mesh_create(GRV_MESH_CELLS, &mesh));
    assert_ok(grv_mesh_set_points(mesh, GRV_STORE_F64, 6, points));
    assert_ok(grv_mesh_set_cells(mesh, 7, offsets, ids, types));
    assert_ok(grv_triangles_from_mesh(mesh, &t));
    assert_int_equal(t->n_triangles, 13);
    assert_memory_equal(t->faces, faces, sizeof faces);
    double area[5] = {0};
    for (int i = 0; i < 13; i++) {
        const int32_t *const c = t->triangles + 3 * i;
        const double twice =
            (points[c[1]][0] - points[c[0]][0]) * (points[c[2]][1] - points[c[0]][1]) -
            (points[c[1]][1] - points[c[0]][1]) * (points[c[2]][0] - points[c[0]][0]);
        assert_true(twice >= 0); /* all are turned the same way; one has no area */
        area[faces[i]] += twice / 2;
    }
    for (int i = 0; i < 5; i++) assert_true(area[i] == areas[i]);
    assert_ok(grv_triangles_to_mesh(t, &back));
    assert_int_equal(back->n_cells, 13);
    for (int i = 0; i < 39; i++) assert_int_equal(back->connectivity[i], t->triangles[i]);
    double lower[3], upper[3];
    grv_triangles_box(t, lower, upper);
    assert_true(lower[0] == 0 && upper[0] == 1 && lower[2] == 0 && upper[1] == 2);
    grv_triangles_destroy(&t);
    grv_mesh_destroy(&back);
    grv_mesh_destroy(&mesh);
    assert_ok(grv_mesh_create(GRV_MESH_IMAGE, &mesh));
    assert_fails(grv_triangles_from_mesh(mesh, &t), GRV_E_ARG, "is a grid");
    grv_mesh_destroy(&mesh);
}

/* Data of cells go where the cells go; data of points only if all points are there. */
static void test_carry_data(void **state)
{
    static const float points[][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 0}};
    static const int64_t offsets[] = {0, 2, 6, 9}, ids[] = {0, 1, 0, 1, 2, 3, 4, 1, 1};
    static const uint8_t types[] = {GRV_CELL_LINE, GRV_CELL_QUAD, GRV_CELL_TRIANGLE};
    static const int16_t pairs[] = {1, 2, 30, 40, 500, 600};
    static const double heights[] = {5, 6, 7, 8, 9};
    (void)state;
    grv_mesh *mesh = NULL, *back = NULL;
    grv_triangles *t = NULL;
    assert_ok(grv_mesh_create(GRV_MESH_SURFACE, &mesh));
    assert_ok(grv_mesh_set_points(mesh, GRV_STORE_F32, 5, points));
    assert_ok(grv_mesh_set_cells(mesh, 3, offsets, ids, types));
    assert_ok(grv_mesh_add_array(&mesh->cell_data, "pair", GRV_STORE_I16, 2, 3, pairs, NULL));
    assert_ok(grv_mesh_add_array(&mesh->point_data, "height", GRV_STORE_F64, 1, 5, heights, NULL));
    assert_ok(grv_mesh_add_texts(&mesh->field_data, "names", 1, "wing", 5));
    mesh->has_time = true;
    mesh->time = 4;
    assert_ok(grv_triangles_from_mesh(mesh, &t));
    assert_ok(grv_triangles_to_mesh(t, &back));
    assert_ok(grv_triangles_carry_data(t, mesh, back));
    static const int16_t carried[] = {30, 40, 30, 40, 500, 600};
    assert_memory_equal(grv_mesh_find(&back->cell_data, "pair")->data, carried, sizeof carried);
    assert_memory_equal(grv_mesh_find(&back->point_data, "height")->data, heights, sizeof heights);
    assert_string_equal((const char *)grv_mesh_find(&back->field_data, "names")->data, "wing");
    assert_true(back->has_time && back->time == 4);
    grv_mesh_destroy(&back);
    assert_ok(grv_triangles_weld(t, 0, NULL));
    assert_ok(grv_triangles_clean(t, NULL));
    assert_int_equal(t->n_triangles, 2);
    assert_ok(grv_triangles_to_mesh(t, &back));
    assert_ok(grv_triangles_carry_data(t, mesh, back));
    assert_memory_equal(grv_mesh_find(&back->cell_data, "pair")->data, carried,
                        4 * sizeof *carried);
    assert_null(grv_mesh_find(&back->point_data, "height"));
    /* of other meshes */
    assert_fails(grv_triangles_carry_data(t, mesh, mesh), GRV_E_ARG, "3 cells and 5 points");
    t->faces[1] = 3;
    assert_fails(grv_triangles_carry_data(t, mesh, back), GRV_E_ARG, "from cell 3, there are 3");
    grv_triangles_destroy(&t);
    grv_mesh_destroy(&back);
    grv_mesh_destroy(&mesh);
}

static void test_empty(void **state)
{
    (void)state;
    grv_triangles *t = NULL;
    grv_triangles_cleaned cleaned;
    grv_triangles_oriented oriented;
    assert_ok(
        grv_triangles_create(GRV_STORE_F32, 0, "", 0, (const int32_t *)(const void *)"\0\0\0", &t));
    assert_ok(grv_triangles_weld(t, 1, NULL));
    assert_ok(grv_triangles_clean(t, &cleaned));
    assert_ok(grv_triangles_orient(t, true, &oriented));
    const grv_triangles_measure m = measure(t);
    assert_true(m.area == 0 && m.volume == 0 && isnan(m.lower[0]) && isnan(m.centre[0]) &&
                !m.is_watertight);
    assert_int_equal(cleaned.n_unused + oriented.n_components, 0);
    grv_triangles_destroy(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cube),       cmocka_unit_test(test_ball),
        cmocka_unit_test(test_orient),     cmocka_unit_test(test_clean),
        cmocka_unit_test(test_weld),       cmocka_unit_test(test_from_mesh),
        cmocka_unit_test(test_carry_data), cmocka_unit_test(test_empty)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
