/* Distances to surfaces: analytic shapes, brute force in double, the published check vector, odd input, grids, threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "grove/core.h"
#include "grove/surface_distance.h"
#include "surface_oracle.h"

static grv_surface *make(const test_surface *s, const grv_surface_params *params)
{
    grv_surface *surface = NULL;
    assert_int_equal(grv_surface_create_f64(s->n_vertices, s->vertices, s->n_triangles,
                                            s->triangles, params, &surface),
                     GRV_OK);
    return surface;
}

static grv_surface *make_signed(const test_surface *s, grv_surface_sign sign)
{
    grv_surface_params params = grv_surface_params_default();
    params.sign = sign;
    params.n_threads = 2;
    return make(s, &params);
}

/* One point, all results. */
typedef struct answer {
    double distance, closest[3], weight[3], winding;
    int32_t triangle;
} answer;

static answer ask(const grv_surface *surface, double x, double y, double z)
{
    answer a;
    const double point[3] = {x, y, z};
    const grv_surface_result_f64 result = {.distance = &a.distance,
                                           .closest = a.closest,
                                           .triangle = &a.triangle,
                                           .barycentric = a.weight};
    assert_int_equal(grv_surface_points_f64(surface, 1, point, NULL, &result), GRV_OK);
    return a;
}

/* ---- known answers ---- */

/* spec/domino.md 7.3 */
static void test_published_tetrahedron(void **state)
{
    (void)state;
    const float vertices[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    const int32_t triangles[12] = {0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3};
    const float points[6] = {1, 1, 1, 0.05F, 0.1F, 0.1F};
    const float third = 1.0F / 3.0F, expected[6] = {third, third, third, 0, 0.1F, 0.1F};
    for (int sign = GRV_SURFACE_WINDING; sign <= GRV_SURFACE_PSEUDONORMAL; sign++) {
        grv_surface_params params = grv_surface_params_default();
        params.sign = (grv_surface_sign)sign;
        grv_surface *surface = NULL;
        assert_int_equal(grv_surface_create_f32(4, vertices, 4, triangles, &params, &surface),
                         GRV_OK);
        float distance[2], closest[6];
        int32_t triangle[2];
        const grv_surface_result_f32 result = {
            .distance = distance, .closest = closest, .triangle = triangle};
        assert_int_equal(grv_surface_points_f32(surface, 2, points, NULL, &result), GRV_OK);
        assert_true(fabs((double)distance[0] - 1.1547005) < 1e-6 &&
                    fabs((double)distance[1] + 0.05) < 1e-6);
        for (int i = 0; i < 6; i++) assert_true(fabs((double)(closest[i] - expected[i])) < 1e-6);
        assert_int_equal(triangle[0], 3);
        assert_int_equal(triangle[1], 2);
        assert_int_equal(grv_surface_info_get(surface).n_open_edges, 0);
        grv_surface_destroy(&surface);
        assert_null(surface);
    }
}

/* Signed distance to the box [lower, upper]. */
static double box_distance(const double lower[3], const double upper[3], const double x[3])
{
    double outside = 0, inside = -INFINITY;
    for (int k = 0; k < 3; k++) {
        const double d = fmax(lower[k] - x[k], x[k] - upper[k]);
        outside += pow(fmax(d, 0), 2);
        inside = fmax(inside, d);
    }
    return outside > 0 ? sqrt(outside) : inside;
}

static void test_box_exact(void **state)
{
    (void)state;
    const double lower[3] = {-1, -0.25, 3}, upper[3] = {2, 0.75, 3.5};
    test_surface box = surface_box(lower, upper);
    for (int sign = GRV_SURFACE_WINDING; sign <= GRV_SURFACE_PSEUDONORMAL; sign++) {
        grv_surface *surface = make_signed(&box, (grv_surface_sign)sign);
        for (int i = 0; i < 20000; i++) {
            double x[3];
            for (int k = 0; k < 3; k++)
                x[k] = lower[k] + (upper[k] - lower[k]) *
                                      (3 * grv_random_uniform(1, 1, (uint64_t)(3 * i + k)) - 1);
            const answer a = ask(surface, x[0], x[1], x[2]);
            assert_true(fabs(a.distance - box_distance(lower, upper, x)) < 1e-14);
        }
        grv_surface_destroy(&surface);
    }
    surface_free(&box);
}

/* A chord of length h of a circle of radius r leaves it by h^2 / 8 r. */
static void test_sphere_and_torus(void **state)
{
    (void)state;
    test_surface shapes[2] = {surface_sphere(63, 128, 2), surface_torus(160, 80, 2, 0.5)};
    for (int shape = 0; shape < 2; shape++) {
        const double chord = 2 * 3.1416 * (shape == 0 ? 2.0 : 2.5) / (shape == 0 ? 128 : 160),
                     radius = shape == 0 ? 2 : 0.5;
        const double bound = 2 * chord * chord / (8 * radius);
        for (int sign = GRV_SURFACE_WINDING; sign <= GRV_SURFACE_PSEUDONORMAL; sign++) {
            grv_surface *surface = make_signed(&shapes[shape], (grv_surface_sign)sign);
            for (int i = 0; i < 5000; i++) {
                double x[3];
                for (int k = 0; k < 3; k++)
                    x[k] = 6 * grv_random_uniform(2, 1, (uint64_t)(3 * i + k)) - 3;
                const double ring = sqrt(x[0] * x[0] + x[1] * x[1]);
                const double exact =
                    shape == 0 ? sqrt(ring * ring + x[2] * x[2]) - 2 : hypot(ring - 2, x[2]) - 0.5;
                const answer a = ask(surface, x[0], x[1], x[2]);
                assert_true(fabs(a.distance - exact) < bound);
            }
            grv_surface_destroy(&surface);
        }
    }
    surface_free(&shapes[0]);
    surface_free(&shapes[1]);
}

/* ---- brute force ---- */

/* Distances of n points, checked with the other results: against each other and against the oracle. */
static void check_brute_force(const test_surface *s, const grv_surface *surface, int64_t n,
                              const double *points, double tolerance)
{
    double *const distance = malloc((size_t)n * 7 * sizeof *distance),
                  *const closest = distance + n, *const weight = distance + 4 * n;
    int32_t *const triangle = malloc((size_t)n * sizeof *triangle);
    const grv_surface_result_f64 result = {
        .distance = distance, .closest = closest, .triangle = triangle, .barycentric = weight};
    assert_int_equal(grv_surface_points_f64(surface, n, points, NULL, &result), GRV_OK);
    for (int64_t i = 0; i < n; i++) {
        const double expected = oracle_distance(s, &points[3 * i]);
        assert_true(fabs(fabs(distance[i]) - expected) <= tolerance);
        assert_true(fabs(oracle_one(s, triangle[i], &points[3 * i]) - expected) <= tolerance);
        double d2 = 0, sum = 0;
        for (int k = 0; k < 3; k++) {
            double x = 0;
            for (int j = 0; j < 3; j++)
                x += weight[3 * i + j] *
                     s->vertices[3 * (int64_t)s->triangles[3 * (int64_t)triangle[i] + j] + k];
            assert_true(fabs(x - closest[3 * i + k]) <= tolerance && weight[3 * i + k] >= 0 &&
                        weight[3 * i + k] <= 1);
            d2 += pow(points[3 * i + k] - closest[3 * i + k], 2);
            sum += weight[3 * i + k];
        }
        assert_true(fabs(sqrt(d2) - expected) <= tolerance && fabs(sum - 1) < 1e-12);
    }
    free(distance);
    free(triangle);
}

static void test_brute_force_soup(void **state)
{
    (void)state;
    const double sizes[3] = {2, 0.2, 0.02};
    for (int i = 0; i < 3; i++) {
        test_surface soup = surface_soup((uint64_t)i, 3000, sizes[i]);
        grv_surface *surface = make_signed(&soup, GRV_SURFACE_UNSIGNED);
        double *points = surface_points(&soup, 5, 600, 1.3);
        check_brute_force(
            &soup, surface, 600, points,
            1e-7 *
                surface_diagonal(&soup)); /* thin triangles count as edges: 1e-7 of their length */
        free(points);
        points = surface_points(&soup, 6, 100, 3000); /* beyond what float boxes tell apart */
        check_brute_force(&soup, surface, 100, points, 1e-6 * surface_diagonal(&soup));
        free(points);
        grv_surface_destroy(&surface);
        surface_free(&soup);
    }
}

/* Any number of triangles up to a few blocks. */
static void test_few_triangles(void **state)
{
    (void)state;
    for (int n = 1; n < 40; n++) {
        test_surface soup = surface_soup((uint64_t)n, n, 1);
        grv_surface *surface =
            make_signed(&soup, n % 2 == 0 ? GRV_SURFACE_UNSIGNED : GRV_SURFACE_WINDING);
        double *const points = surface_points(&soup, 7, 60, 2);
        check_brute_force(&soup, surface, 60, points, 2e-7 * surface_diagonal(&soup) + 1e-12);
        free(points);
        grv_surface_destroy(&surface);
        surface_free(&soup);
    }
}

/* 10^7 away from the origin, and in units of 1e-30 and 1e30. */
static void test_offset_and_units(void **state)
{
    (void)state;
    test_surface torus = surface_torus(40, 20, 2, 0.5);
    grv_surface *surface = make_signed(&torus, GRV_SURFACE_WINDING);
    const double offsets[3] = {1e7, 0, 0}, units[3] = {1, 1e-30, 1e30};
    for (int c = 0; c < 3; c++) {
        test_surface moved = surface_torus(40, 20, 2, 0.5);
        for (int64_t i = 0; i < 3 * moved.n_vertices; i++)
            moved.vertices[i] = (moved.vertices[i] + offsets[c]) * units[c];
        grv_surface *other = make_signed(&moved, GRV_SURFACE_WINDING);
        for (int i = 0; i < 2000; i++) {
            double x[3], y[3];
            for (int k = 0; k < 3; k++) {
                x[k] = 6 * grv_random_uniform(3, 1, (uint64_t)(3 * i + k)) - 3;
                y[k] = (x[k] + offsets[c]) * units[c];
            }
            const answer a = ask(surface, x[0], x[1], x[2]), b = ask(other, y[0], y[1], y[2]);
            assert_true(fabs(a.distance - b.distance / units[c]) < (offsets[c] > 0 ? 5e-9 : 1e-14));
        }
        grv_surface_destroy(&other);
        surface_free(&moved);
    }
    grv_surface_destroy(&surface);
    surface_free(&torus);
}

/* ---- odd surfaces and points ---- */

static void test_empty_surface(void **state)
{
    (void)state;
    grv_surface *surface = NULL;
    assert_int_equal(grv_surface_create_f64(0, NULL, 0, NULL, NULL, &surface), GRV_OK);
    const answer a = ask(surface, 1, 2, 3);
    assert_true(isnan(a.distance) && isnan(a.closest[0]) && isnan(a.weight[2]) && a.triangle == -1);
    assert_int_equal(grv_surface_info_get(surface).n_triangles, 0);
    double distance[8];
    const grv_surface_grid grid = {{2, 2, 2}, {0, 0, 0}, {1, 1, 1}};
    grv_surface_query query = grv_surface_query_default();
    query.band = 2;
    assert_int_equal(grv_surface_grid_f64(surface, &grid, &query,
                                          &(grv_surface_result_f64){.distance = distance}),
                     GRV_OK);
    for (int i = 0; i < 8; i++) assert_true(isnan(distance[i]));
    grv_surface_destroy(&surface);
    grv_surface_destroy(&surface);
    grv_surface_destroy(NULL);
}

static void test_one_point_surface(void **state)
{
    (void)state;
    const double vertex[3] = {1, 2, 3};
    const int32_t triangle[3] = {0, 0, 0};
    for (int sign = GRV_SURFACE_UNSIGNED; sign <= GRV_SURFACE_PSEUDONORMAL; sign++) {
        grv_surface_params params = grv_surface_params_default();
        params.sign = (grv_surface_sign)sign;
        grv_surface *surface = NULL;
        assert_int_equal(grv_surface_create_f64(1, vertex, 1, triangle, &params, &surface), GRV_OK);
        assert_true(ask(surface, 1, 2, 5).distance == 2);
        assert_true(ask(surface, 1, 2, 3).distance == 0);
        grv_surface_destroy(&surface);
    }
}

static void test_points_not_finite_or_far(void **state)
{
    (void)state;
    test_surface torus = surface_torus(20, 10, 2, 0.5);
    grv_surface *surface = make_signed(&torus, GRV_SURFACE_WINDING);
    const double bad[4] = {NAN, INFINITY, -INFINITY, 1e300};
    for (int i = 0; i < 4; i++) {
        const answer a = ask(surface, 0, bad[i], 0);
        assert_true(isnan(a.distance) && a.triangle == -1);
    }
    for (double far = 10; far < 1e140; far *= 7.3)
        assert_true(fabs(ask(surface, 0, 0, far).distance / far - 1) < 0.06 || far < 100);
    /* between others, in every order */
    double points[9 * 3], distance[9];
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < 3; k++) points[3 * i + k] = i % 2 == 0 ? bad[i % 4] : 0.1 * i;
    assert_int_equal(grv_surface_points_f64(surface, 9, points, NULL,
                                            &(grv_surface_result_f64){.distance = distance}),
                     GRV_OK);
    for (int i = 0; i < 9; i++)
        assert_true(i % 2 == 0 ? isnan(distance[i])
                               : distance[i] == ask(surface, 0.1 * i, 0.1 * i, 0.1 * i).distance);
    grv_surface_destroy(&surface);
    surface_free(&torus);
}

static void test_duplicate_faces(void **state)
{
    (void)state;
    const double zero[3] = {0, 0, 0}, one[3] = {1, 1, 1};
    test_surface box = surface_box(zero, one);
    test_surface twice = surface_alloc(8, 1200); /* each face a hundred times */
    memcpy(twice.vertices, box.vertices, 24 * sizeof(double));
    for (int i = 0; i < 100; i++)
        memcpy(twice.triangles + 36 * i, box.triangles, 36 * sizeof(int32_t));
    grv_surface *surface = make_signed(&twice, GRV_SURFACE_WINDING);
    assert_int_equal(grv_surface_info_get(surface).n_open_edges, 0);
    for (int i = 0; i < 1000; i++) {
        double x[3];
        for (int k = 0; k < 3; k++)
            x[k] = 2 * grv_random_uniform(4, 1, (uint64_t)(3 * i + k)) - 0.5;
        const answer a = ask(surface, x[0], x[1], x[2]);
        assert_true(a.triangle < 12 && fabs(a.distance - box_distance(zero, one, x)) < 1e-14);
    }
    grv_surface_destroy(&surface);
    surface_free(&box);
    surface_free(&twice);
}

/* An open surface, a flipped one, two that overlap. */
static void test_winding_of_odd_surfaces(void **state)
{
    (void)state;
    const double zero[3] = {0, 0, 0}, one[3] = {1, 1, 1};
    test_surface box = surface_box(zero, one);
    box.n_triangles = 10; /* a side is missing */
    grv_surface *surface = make_signed(&box, GRV_SURFACE_WINDING);
    assert_int_equal(grv_surface_info_get(surface).n_open_edges, 4);
    assert_true(fabs(ask(surface, 0.3, 0.5, 0.5).distance + 0.3) < 1e-15);
    assert_true(ask(surface, 1.3, 0.5, 0.5).distance > 0);
    double winding = 0;
    const double middle[3] = {0.5, 0.5, 0.5};
    assert_int_equal(grv_surface_points_f64(surface, 1, middle, NULL,
                                            &(grv_surface_result_f64){.winding = &winding}),
                     GRV_OK);
    assert_true(fabs(winding - 5.0 / 6) < 1e-6);
    grv_surface_destroy(&surface);
    box.n_triangles = 12;
    for (int t = 0; t < 12; t++) {
        const int32_t swap = box.triangles[3 * t];
        box.triangles[3 * t] = box.triangles[3 * t + 1];
        box.triangles[3 * t + 1] = swap;
    }
    grv_surface_params params = grv_surface_params_default();
    surface = make(&box, &params);
    assert_true(ask(surface, 0.5, 0.5, 0.5).distance == 0.5);
    grv_surface_destroy(&surface);
    params.either_orientation = true;
    surface = make(&box, &params);
    assert_true(ask(surface, 0.5, 0.5, 0.5).distance == -0.5 &&
                ask(surface, 0.5, 0.5, 1.5).distance == 0.5);
    grv_surface_destroy(&surface);
    surface_free(&box);
}

static void test_wrong_arguments(void **state)
{
    (void)state;
    const double vertices[9] = {0, 0, 0, 1, 0, 0, 0, 1, NAN};
    const int32_t good[3] = {0, 1, 1}, outside[3] = {0, 1, 3}, not_finite[3] = {0, 1, 2};
    grv_surface *surface = NULL;
    assert_int_equal(grv_surface_create_f64(3, vertices, 1, outside, NULL, &surface), GRV_E_ARG);
    assert_non_null(strstr(grv_error_message(), "vertex 3 of 3"));
    assert_int_equal(grv_surface_create_f64(3, vertices, 1, not_finite, NULL, &surface), GRV_E_ARG);
    assert_non_null(strstr(grv_error_message(), "triangle 0: vertex 2"));
    assert_int_equal(grv_surface_create_f64(3, vertices, -1, good, NULL, &surface), GRV_E_ARG);
    assert_int_equal(grv_surface_create_f64((int64_t)1 << 31, vertices, 1, good, NULL, &surface),
                     GRV_E_ARG);
    grv_surface_params params = grv_surface_params_default();
    params.opening = 0.5;
    assert_int_equal(grv_surface_create_f64(3, vertices, 1, good, &params, &surface), GRV_E_ARG);
    params = grv_surface_params_default();
    params.scale[1] = 0;
    assert_int_equal(grv_surface_create_f64(3, vertices, 1, good, &params, &surface), GRV_E_ARG);
    assert_null(surface);
    params.scale[1] = 1;
    params.sign = GRV_SURFACE_UNSIGNED;
    assert_int_equal(grv_surface_create_f64(3, vertices, 1, good, &params, &surface),
                     GRV_OK); /* the third vertex is not used */
    double out[8];
    assert_int_equal(grv_surface_points_f64(surface, 1, vertices, NULL,
                                            &(grv_surface_result_f64){.winding = out}),
                     GRV_E_ARG);
    grv_surface_query query = grv_surface_query_default();
    query.max_distance = NAN;
    assert_int_equal(grv_surface_points_f64(surface, 1, vertices, &query,
                                            &(grv_surface_result_f64){.distance = out}),
                     GRV_E_ARG);
    query = grv_surface_query_default();
    query.band = 0.5;
    grv_surface_grid grid = {{2, 2, 2}, {0, 0, 0}, {1, 1, 1}};
    assert_int_equal(
        grv_surface_grid_f64(surface, &grid, &query, &(grv_surface_result_f64){.distance = out}),
        GRV_E_ARG);
    grid.spacing[2] = 0;
    assert_int_equal(
        grv_surface_grid_f64(surface, &grid, NULL, &(grv_surface_result_f64){.distance = out}),
        GRV_E_ARG);
    grid = (grv_surface_grid){{(int64_t)1 << 40, (int64_t)1 << 40, 2}, {0, 0, 0}, {1, 1, 1}};
    assert_int_equal(
        grv_surface_grid_f64(surface, &grid, NULL, &(grv_surface_result_f64){.distance = out}),
        GRV_E_ARG);
    grid.n[0] = 0;
    grid.n[1] = 1;
    assert_int_equal(
        grv_surface_grid_f64(surface, &grid, NULL, &(grv_surface_result_f64){.distance = out}),
        GRV_OK);
    grv_surface_destroy(&surface);
}

/* ---- many at once ---- */

static void test_max_distance(void **state)
{
    (void)state;
    test_surface torus = surface_torus(40, 20, 2, 0.5);
    grv_surface *surface = make_signed(&torus, GRV_SURFACE_WINDING);
    enum { N = 3000 };
    static double all[N], near[N];
    double *const points = surface_points(&torus, 8, N, 1.5);
    grv_surface_query query = grv_surface_query_default();
    query.max_distance = 0.3;
    assert_int_equal(grv_surface_points_f64(surface, N, points, NULL,
                                            &(grv_surface_result_f64){.distance = all}),
                     GRV_OK);
    assert_int_equal(grv_surface_points_f64(surface, N, points, &query,
                                            &(grv_surface_result_f64){.distance = near}),
                     GRV_OK);
    int n_far = 0;
    for (int i = 0; i < N; i++) {
        assert_true(fabs(all[i]) <= 0.3 ? near[i] == all[i] : isnan(near[i]));
        n_far += isnan(near[i]);
    }
    assert_in_range(n_far, N / 10, N - N / 10);
    free(points);
    grv_surface_destroy(&surface);
    surface_free(&torus);
}

/* The same bits in any order, on any number of threads, alone or together. */
static void test_order_and_threads(void **state)
{
    (void)state;
    test_surface soup = surface_soup(9, 8000, 0.1);
    enum { N = 8000 };
    static double first[N], other[N], turned[3 * N];
    static int32_t first_triangle[N], other_triangle[N];
    double *const points = surface_points(&soup, 9, N, 1.2);
    for (int i = 0; i < N; i++)
        memcpy(&turned[3 * i], &points[3 * (N - 1 - i)], 3 * sizeof(double));
    grv_surface_params params = grv_surface_params_default();
    for (int threads = 1; threads <= 3; threads++) {
        params.n_threads = threads;
        grv_surface *surface = make(&soup, &params);
        grv_surface_query query = grv_surface_query_default();
        query.n_threads = threads;
        const grv_surface_result_f64 result = {.distance = threads == 1 ? first : other,
                                               .triangle =
                                                   threads == 1 ? first_triangle : other_triangle};
        assert_int_equal(grv_surface_points_f64(surface, N, points, &query, &result), GRV_OK);
        if (threads > 1) assert_memory_equal(first, other, sizeof first);
        if (threads > 1) assert_memory_equal(first_triangle, other_triangle, sizeof first_triangle);
        assert_int_equal(grv_surface_points_f64(surface, N, turned, &query,
                                                &(grv_surface_result_f64){.distance = other}),
                         GRV_OK);
        for (int i = 0; i < N; i++) assert_true(other[N - 1 - i] == first[i]);
        for (int i = 0; i < N; i += 97)
            assert_true(
                ask(surface, points[3 * i], points[3 * i + 1], points[3 * i + 2]).distance ==
                first[i]);
        grv_surface_destroy(&surface);
    }
    free(points);
    surface_free(&soup);
}

static void test_grid_is_points(void **state)
{
    (void)state;
    test_surface torus = surface_torus(40, 20, 2, 0.5);
    const grv_surface_grid grid = {{19, 8, 21}, {-3, -2, -1}, {0.3, 0.5, 0.1}};
    enum { N = 19 * 8 * 21 };
    static double points[3 * N], by_points[N], by_grid[N];
    static float by_grid_f32[N];
    int64_t i = 0;
    for (int a = 0; a < 19; a++)
        for (int b = 0; b < 8; b++)
            for (int c = 0; c < 21; c++, i += 3)
                points[i] = -3 + a * 0.3, points[i + 1] = -2 + b * 0.5,
                points[i + 2] = -1 + c * 0.1;
    for (int sign = GRV_SURFACE_UNSIGNED; sign <= GRV_SURFACE_PSEUDONORMAL; sign++) {
        grv_surface *surface = make_signed(&torus, (grv_surface_sign)sign);
        grv_surface_query query = grv_surface_query_default();
        query.n_threads = 2;
        assert_int_equal(grv_surface_points_f64(surface, N, points, NULL,
                                                &(grv_surface_result_f64){.distance = by_points}),
                         GRV_OK);
        assert_int_equal(grv_surface_grid_f64(surface, &grid, &query,
                                              &(grv_surface_result_f64){.distance = by_grid}),
                         GRV_OK);
        assert_int_equal(grv_surface_grid_f32(surface, &grid, &query,
                                              &(grv_surface_result_f32){.distance = by_grid_f32}),
                         GRV_OK);
        assert_memory_equal(by_points, by_grid, sizeof by_points);
        for (int j = 0; j < N; j++) assert_true(by_grid_f32[j] == (float)by_grid[j]);
        grv_surface_destroy(&surface);
    }
    surface_free(&torus);
}

/* Exact within the band and where it says so; elsewhere not below, and hardly above. */
static void test_band(void **state)
{
    (void)state;
    enum { A = 40, B = 33, C = 28, N = A * B * C };
    static double exact[N], swept[N], again[N], closest[3 * N];
    static uint8_t is_exact[N];
    for (int open = 0; open < 2; open++) {
        test_surface torus = surface_torus(60, 30, 2, 0.5);
        if (open) torus.n_triangles -= 200;
        const grv_surface_grid grid = {{A, B, C}, {-3, -3, -1.5}, {0.15, 0.18, 0.11}};
        grv_surface *surface = make_signed(&torus, GRV_SURFACE_WINDING);
        assert_int_equal(grv_surface_info_get(surface).n_open_edges > 0, open);
        assert_int_equal(grv_surface_grid_f64(surface, &grid, NULL,
                                              &(grv_surface_result_f64){.distance = exact}),
                         GRV_OK);
        grv_surface_query query = grv_surface_query_default();
        query.band = 0.2;
        assert_int_equal(grv_surface_grid_f64(surface, &grid, &query,
                                              &(grv_surface_result_f64){.distance = again}),
                         GRV_OK);
        query.n_threads = 3;
        const grv_surface_result_f64 result = {
            .distance = swept, .exact = is_exact, .closest = closest};
        assert_int_equal(grv_surface_grid_f64(surface, &grid, &query, &result), GRV_OK);
        assert_memory_equal(swept, again, sizeof swept);
        int n_exact = 0;
        double worst = 0;
        for (int i = 0; i < N; i++) {
            assert_int_equal(is_exact[i], fabs(exact[i]) <= 0.2);
            n_exact += is_exact[i];
            if (is_exact[i]) assert_true(swept[i] == exact[i]);
            assert_true(fabs(swept[i]) >= fabs(exact[i]) - 1e-14 &&
                        (swept[i] < 0) == (exact[i] < 0));
            worst = fmax(worst, fabs(swept[i]) - fabs(exact[i]));
            const double x[3] = {-3 + i / (B * C) * 0.15, -3 + i / C % B * 0.18,
                                 -1.5 + i % C * 0.11};
            double d2 = 0;
            for (int k = 0; k < 3; k++) d2 += pow(x[k] - closest[3 * i + k], 2);
            assert_true(fabs(sqrt(d2) - fabs(swept[i])) < 1e-13);
        }
        assert_in_range(n_exact, N / 20, N / 2);
        assert_true(worst < 0.5 * 0.18); /* of the longest spacing */
        query.band = 1e-3 + 0.18;
        const grv_surface_grid away = {
            {3, 4, 5},
            {30, 30, 30},
            {0.15, 0.18, 0.11}}; /* no point in the band: all are computed */
        assert_int_equal(grv_surface_grid_f64(surface, &away, &query, &result), GRV_OK);
        for (int i = 0; i < 60; i++) assert_true(is_exact[i] == 1 && swept[i] > 45);
        grv_surface_destroy(&surface);
        surface_free(&torus);
    }
}

/* Distances in a box's own coordinates, as DoMINO takes them. */
static void test_normalized(void **state)
{
    (void)state;
    test_surface torus = surface_torus(40, 20, 2, 0.5), mapped = surface_torus(40, 20, 2, 0.5);
    const double lower[3] = {-3.5, -2.25, -0.32}, upper[3] = {8.5, 2.25, 3};
    for (int64_t i = 0; i < 3 * mapped.n_vertices; i++)
        mapped.vertices[i] =
            2 * (mapped.vertices[i] - lower[i % 3]) / (upper[i % 3] - lower[i % 3]) - 1;
    grv_surface_params params = grv_surface_params_default();
    grv_surface_params_normalize(&params, lower, upper);
    grv_surface *surface = make(&torus, &params);
    for (int i = 0; i < 500; i++) {
        double x[3], y[3];
        for (int k = 0; k < 3; k++) {
            x[k] =
                lower[k] + (upper[k] - lower[k]) * grv_random_uniform(5, 1, (uint64_t)(3 * i + k));
            y[k] = 2 * (x[k] - lower[k]) / (upper[k] - lower[k]) - 1;
        }
        const answer a = ask(surface, x[0], x[1], x[2]);
        assert_true(fabs(fabs(a.distance) - oracle_distance(&mapped, y)) < 1e-14);
        assert_true((a.distance < 0) == (oracle_winding(&mapped, y) > 0.5));
    }
    grv_surface_destroy(&surface);
    surface_free(&torus);
    surface_free(&mapped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_tetrahedron),
        cmocka_unit_test(test_box_exact),
        cmocka_unit_test(test_sphere_and_torus),
        cmocka_unit_test(test_brute_force_soup),
        cmocka_unit_test(test_few_triangles),
        cmocka_unit_test(test_offset_and_units),
        cmocka_unit_test(test_empty_surface),
        cmocka_unit_test(test_one_point_surface),
        cmocka_unit_test(test_points_not_finite_or_far),
        cmocka_unit_test(test_duplicate_faces),
        cmocka_unit_test(test_winding_of_odd_surfaces),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_max_distance),
        cmocka_unit_test(test_order_and_threads),
        cmocka_unit_test(test_grid_is_points),
        cmocka_unit_test(test_band),
        cmocka_unit_test(test_normalized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
