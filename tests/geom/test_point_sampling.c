/* Samplers: distributions (chi-square with fixed seeds), numbers that depend on the seed and the sample only, exact farthest points, odd input. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "grove/core.h"
#include "grove/point_sampling.h"
#include "surface_oracle.h"

/* Chi-square of counts against equal expectations lies below this once in 1e6: mean d, deviation sqrt(2 d), Wilson and Hilferty. */
static double chi_square_limit(int degrees)
{
    return degrees * pow(1 - 2.0 / (9 * degrees) + 4.75 * sqrt(2.0 / (9 * degrees)), 3);
}

static double chi_square(int n, const double *count, const double *expected)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += pow(count[i] - expected[i], 2) / expected[i];
    return sum;
}

/* ---- surfaces ---- */

static void test_surface_by_area(void **state)
{
    (void)state;
    enum { N = 200000, T = 100 };
    test_surface soup = surface_soup(3, T, 1);
    static double points[3 * N], weight[3 * N], normals[3 * N];
    static int32_t triangles[N];
    grv_surface_sampler *sampler = NULL;
    assert_int_equal(
        grv_surface_sampler_create_f64(soup.n_vertices, soup.vertices, T, soup.triangles, &sampler),
        GRV_OK);
    const grv_surface_samples_f64 samples = {points, normals, weight, triangles};
    assert_int_equal(grv_surface_sampler_draw_f64(sampler, 1, 0, N, 2, &samples), GRV_OK);
    double count[T] = {0}, expected[T], in[T], of[T];
    int large = 0;
    for (int i = 0; i < N; i++) {
        count[triangles[i]]++;
        double sum = 0, length2 = 0;
        for (int k = 0; k < 3; k++) {
            double x = 0;
            for (int j = 0; j < 3; j++)
                x += weight[3 * i + j] *
                     soup.vertices[3 * (int64_t)soup.triangles[3 * (int64_t)triangles[i] + j] + k];
            assert_true(fabs(x - points[3 * i + k]) < 1e-14 && weight[3 * i + k] >= 0);
            sum += weight[3 * i + k];
            length2 += pow(normals[3 * i + k], 2);
        }
        assert_true(fabs(sum - 1) < 1e-14 && fabs(length2 - 1) < 1e-12);
    }
    for (int t = 0; t < T; t++) {
        const double *const v = &soup.vertices[9 * t];
        double n2 = 0;
        for (int k = 0; k < 3; k++) {
            const int l = (k + 1) % 3, m = (k + 2) % 3;
            n2 += pow((v[3 + l] - v[l]) * (v[6 + m] - v[m]) - (v[3 + m] - v[m]) * (v[6 + l] - v[l]),
                      2);
        }
        expected[t] = N * 0.5 * sqrt(n2) / grv_surface_sampler_area(sampler);
        if (!(n2 > 0)) assert_true(count[t] == 0);
        if (expected[t] < 10) continue; /* too few for chi-square */
        in[large] = count[t];
        of[large++] = expected[t];
    }
    assert_in_range(large, 20, T);
    assert_true(chi_square(large, in, of) < chi_square_limit(large - 1));
    grv_surface_sampler_destroy(&sampler);
    grv_surface_sampler_destroy(&sampler);
    surface_free(&soup);
}

/* Uniform within a triangle: sixteen similar parts of equal area. */
static void test_surface_within_triangle(void **state)
{
    (void)state;
    enum { N = 100000, PARTS = 16 };
    const float vertices[9] = {0, 0, 0, 3, 0, 0, 1, 2, 5};
    const int32_t triangle[3] = {0, 1, 2};
    static float weight[3 * N];
    grv_surface_sampler *sampler = NULL;
    assert_int_equal(grv_surface_sampler_create_f32(3, vertices, 1, triangle, &sampler), GRV_OK);
    assert_int_equal(grv_surface_sampler_draw_f32(
                         sampler, 2, 0, N, 1, &(grv_surface_samples_f32){.barycentric = weight}),
                     GRV_OK);
    double count[PARTS] = {0}, expected[PARTS];
    for (int i = 0; i < N; i++) {
        const double u = 4 * (double)weight[3 * i + 1], v = 4 * (double)weight[3 * i + 2];
        const int row = (int)fmin(v, 3), column = (int)fmin(u, 3 - row),
                  upper = u - column + v - row > 1;
        count[row * (8 - row) + 2 * column + upper]++; /* rows of 7, 5, 3 and 1 */
    }
    for (int i = 0; i < PARTS; i++) expected[i] = (double)N / PARTS;
    assert_true(chi_square(PARTS, count, expected) < chi_square_limit(PARTS - 1));
    grv_surface_sampler_destroy(&sampler);
}

static void test_surface_numbering(void **state)
{
    (void)state;
    test_surface torus = surface_torus(30, 20, 2, 0.5);
    float vertices[1800];
    for (int i = 0; i < 1800; i++) vertices[i] = (float)torus.vertices[i];
    grv_surface_sampler *sampler = NULL, *single = NULL;
    assert_int_equal(
        grv_surface_sampler_create_f64(600, torus.vertices, 1200, torus.triangles, &sampler),
        GRV_OK);
    assert_int_equal(grv_surface_sampler_create_f32(600, vertices, 1200, torus.triangles, &single),
                     GRV_OK);
    static double all[3000], part[3000];
    static float as_float[3000];
    assert_int_equal(grv_surface_sampler_draw_f64(sampler, 9, 0, 1000, 1,
                                                  &(grv_surface_samples_f64){.points = all}),
                     GRV_OK);
    assert_int_equal(grv_surface_sampler_draw_f64(sampler, 9, 300, 700, 3,
                                                  &(grv_surface_samples_f64){.points = part}),
                     GRV_OK);
    assert_memory_equal(all + 900, part, 2100 * sizeof(double));
    assert_int_equal(grv_surface_sampler_draw_f32(single, 9, 0, 1000, 2,
                                                  &(grv_surface_samples_f32){.points = as_float}),
                     GRV_OK);
    for (int i = 0; i < 3000; i++) assert_true(fabs((double)as_float[i] - all[i]) < 1e-5);
    assert_int_equal(grv_surface_sampler_draw_f64(sampler, 10, 0, 1000, 1,
                                                  &(grv_surface_samples_f64){.points = part}),
                     GRV_OK);
    assert_memory_not_equal(all, part, sizeof all);
    assert_int_equal(grv_surface_sampler_draw_f64(sampler, 10, -1, 10, 1,
                                                  &(grv_surface_samples_f64){.points = part}),
                     GRV_E_ARG);
    grv_surface_sampler_destroy(&sampler);
    grv_surface_sampler_destroy(&single);
    surface_free(&torus);
}

static void test_surface_errors(void **state)
{
    (void)state;
    const double vertices[9] = {0, 0, 0, 1, 0, 0, 2, 0, 0},
                 infinite[9] = {0, 0, 0, 1, 0, 0, 0, INFINITY, 0};
    const int32_t triangle[3] = {0, 1, 2}, outside[3] = {0, 1, 3};
    grv_surface_sampler *sampler = NULL;
    assert_int_equal(grv_surface_sampler_create_f64(3, vertices, 1, triangle, &sampler), GRV_E_ARG);
    assert_int_equal(grv_surface_sampler_create_f64(3, vertices, 0, NULL, &sampler), GRV_E_ARG);
    assert_int_equal(grv_surface_sampler_create_f64(3, vertices, 1, outside, &sampler), GRV_E_ARG);
    assert_int_equal(grv_surface_sampler_create_f64(3, infinite, 1, triangle, &sampler), GRV_E_ARG);
    assert_null(sampler);
}

/* ---- boxes and insides ---- */

static void test_box(void **state)
{
    (void)state;
    enum { N = 50000, SIDE = 4, CELLS = 64 };
    const double lower[3] = {-1, 100, 1e-3}, upper[3] = {3, 100.5, 2e-3};
    static double points[3 * N];
    static float as_float[3 * N];
    assert_int_equal(grv_sample_box_f64(lower, upper, 4, 0, N, points), GRV_OK);
    assert_int_equal(grv_sample_box_f32(lower, upper, 4, 0, N, as_float), GRV_OK);
    double count[CELLS] = {0}, expected[CELLS];
    for (int i = 0; i < N; i++) {
        int cell = 0;
        for (int k = 0; k < 3; k++) {
            const double u = (points[3 * i + k] - lower[k]) / (upper[k] - lower[k]);
            assert_true(u >= 0 && u < 1 && (double)as_float[3 * i + k] < upper[k]);
            cell = cell * SIDE + (int)(u * SIDE);
        }
        count[cell]++;
    }
    for (int i = 0; i < CELLS; i++) expected[i] = (double)N / CELLS;
    assert_true(chi_square(CELLS, count, expected) < chi_square_limit(CELLS - 1));
    assert_int_equal(grv_sample_box_f64(lower, lower, 4, 0, 1, points), GRV_E_ARG);
    double other[30];
    assert_int_equal(grv_sample_box_f64(lower, upper, 4, 20, 10, other), GRV_OK);
    assert_memory_equal(other, points + 60, sizeof other);
}

static void test_inside(void **state)
{
    (void)state;
    enum { N = 20000, SECTORS = 24, RINGS = 4 };
    test_surface torus = surface_torus(96, 64, 2, 0.5);
    grv_surface_params params = grv_surface_params_default();
    params.scale[0] = 0.25; /* a mapping must not show */
    params.origin[1] = 7;
    grv_surface *surface = NULL;
    assert_int_equal(grv_surface_create_f64(torus.n_vertices, torus.vertices, torus.n_triangles,
                                            torus.triangles, &params, &surface),
                     GRV_OK);
    static double points[3 * N], again[3 * N];
    static float as_float[300];
    assert_int_equal(grv_sample_inside_f64(surface, 11, 0, N, 1, points), GRV_OK);
    assert_int_equal(grv_sample_inside_f64(surface, 11, 100, N - 100, 2, again), GRV_OK);
    assert_memory_equal(points + 300, again, (3 * N - 300) * sizeof(double));
    assert_int_equal(grv_sample_inside_f32(surface, 11, 0, 100, 1, as_float), GRV_OK);
    for (int i = 0; i < 300; i++) assert_true(fabs((double)as_float[i] - points[i]) < 1e-6);
    double count[SECTORS] = {0}, expected[SECTORS], second_moment = 0;
    for (int i = 0; i < N; i++) {
        const double *const x = &points[3 * i];
        const double r = hypot(hypot(x[0], x[1]) - 2, x[2]);
        assert_true(r < 0.503); /* chords of the inner circle leave the torus by 2e-3 */
        second_moment += x[2] * x[2] / N;
        count[(int)((atan2(x[1], x[0]) / 6.283185307179586 + 0.5) * SECTORS) % SECTORS]++;
    }
    for (int i = 0; i < SECTORS; i++) expected[i] = (double)N / SECTORS;
    assert_true(chi_square(SECTORS, count, expected) < chi_square_limit(SECTORS - 1));
    assert_true(fabs(second_moment / (0.25 / 4) - 1) <
                0.03); /* of a disc: r^2 / 4; polygon and five deviations */
    grv_surface_destroy(&surface);
    params = grv_surface_params_default();
    params.sign = GRV_SURFACE_UNSIGNED;
    assert_int_equal(grv_surface_create_f64(torus.n_vertices, torus.vertices, torus.n_triangles,
                                            torus.triangles, &params, &surface),
                     GRV_OK);
    assert_int_equal(grv_sample_inside_f64(surface, 11, 0, 1, 1, points), GRV_E_ARG);
    grv_surface_destroy(&surface);
    /* a single triangle encloses nothing */
    const double corner[9] = {0, 0, 0, 1, 0, 1, 0, 1, 0};
    const int32_t one[3] = {0, 1, 2};
    assert_int_equal(grv_surface_create_f64(3, corner, 1, one, NULL, &surface), GRV_OK);
    assert_int_equal(grv_sample_inside_f64(surface, 11, 0, 1, 1, points), GRV_E_NUMERIC);
    assert_non_null(strstr(grv_error_message(), "1 of 1 points found no place"));
    grv_surface_destroy(&surface);
    surface_free(&torus);
}

/* ---- subsets ---- */

/* All 4 * 3 * 2 ordered triples of four are as likely. */
static void test_subset(void **state)
{
    (void)state;
    enum { N = 48000 };
    double count[64] = {0}, in[24], expected[24];
    int64_t subset[64];
    for (uint64_t i = 0; i < N; i++) {
        assert_int_equal(grv_sample_subset(5, i, 4, 3, subset), GRV_OK);
        assert_true(subset[0] != subset[1] && subset[1] != subset[2] && subset[0] != subset[2]);
        count[16 * subset[0] + 4 * subset[1] + subset[2]]++;
    }
    int n = 0;
    for (int i = 0; i < 64; i++)
        if (count[i] > 0) in[n++] = count[i];
    assert_int_equal(n, 24);
    for (int i = 0; i < 24; i++) expected[i] = N / 24.0;
    assert_true(chi_square(24, in, expected) < chi_square_limit(23));

    enum { M = 5000 };
    static int64_t all[M], some[M];
    static int seen[M];
    assert_int_equal(grv_sample_subset(6, 1, M, M, all), GRV_OK);
    for (int i = 0; i < M; i++) {
        assert_true(all[i] >= 0 && all[i] < M);
        assert_int_equal(seen[all[i]]++, 0);
    }
    assert_int_equal(grv_sample_subset(6, 1, M, 77, some), GRV_OK);
    assert_memory_equal(all, some, 77 * sizeof *all);
    const int64_t huge = INT64_MAX;
    assert_int_equal(grv_sample_subset(6, 1, huge, 1000, some), GRV_OK);
    double mean = 0;
    for (int i = 0; i < 1000; i++) mean += (double)some[i] / (double)huge / 1000;
    assert_true(fabs(mean - 0.5) < 5 * 0.2887 / sqrt(1000));
    assert_int_equal(grv_sample_subset(6, 1, 0, 0, NULL), GRV_OK);
    assert_int_equal(grv_sample_subset(6, 1, 5, 6, some), GRV_E_ARG);
}

/* Weighted: the first by weight, the second by weight among the rest. */
static void test_subset_weighted(void **state)
{
    (void)state;
    enum { N = 60000 };
    const double weights[5] = {1, 0, 2, 4, 0.5};
    double count[25] = {0}, in[12], expected[12];
    int64_t subset[8];
    for (uint64_t i = 0; i < N; i++) {
        assert_int_equal(grv_sample_subset_weighted(5, i, 5, weights, 2, subset), GRV_OK);
        count[5 * subset[0] + subset[1]]++;
    }
    int n = 0;
    for (int a = 0; a < 5; a++) {
        for (int b = 0; b < 5; b++) {
            if (a == b || weights[a] == 0 || weights[b] == 0) {
                assert_true(count[5 * a + b] == 0);
                continue;
            }
            in[n] = count[5 * a + b];
            expected[n++] = N * weights[a] / 7.5 * weights[b] / (7.5 - weights[a]);
        }
    }
    assert_true(chi_square(12, in, expected) < chi_square_limit(11));
    enum { M = 3000 };
    static double many[M];
    static int64_t all[M], some[M];
    for (int i = 0; i < M; i++) many[i] = grv_random_uniform(1, 1, (uint64_t)i);
    assert_int_equal(grv_sample_subset_weighted(7, 1, M, many, M, all), GRV_OK);
    for (int k = 0; k < 400; k += 57) {
        assert_int_equal(grv_sample_subset_weighted(7, 1, M, many, k, some), GRV_OK);
        assert_memory_equal(all, some, (size_t)k * sizeof *all);
    }
    assert_int_equal(grv_sample_subset_weighted(7, 1, 5, weights, 5, subset), GRV_E_ARG);
    assert_non_null(strstr(grv_error_message(), "5 of 4 with a positive weight"));
    const double bad[2] = {1, NAN};
    assert_int_equal(grv_sample_subset_weighted(7, 1, 2, bad, 1, subset), GRV_E_ARG);
}

/* ---- farthest points ---- */

static void farthest_by_force(int n, const double *points, int64_t start, int k, int64_t *order,
                              double *distance)
{
    double *const d2 = malloc((size_t)n * sizeof *d2);
    for (int i = 0; i < n; i++) d2[i] = INFINITY;
    for (int64_t step = 0, at = start; step < k; step++) {
        order[step] = at;
        distance[step] = sqrt(d2[at]);
        d2[at] = -1;
        int64_t best = 0;
        for (int i = 0; i < n; i++) {
            const double dx = points[3 * i] - points[3 * at],
                         dy = points[3 * i + 1] - points[3 * at + 1],
                         dz = points[3 * i + 2] - points[3 * at + 2];
            d2[i] = fmin(d2[i], dx * dx + dy * dy + dz * dz);
            if (d2[i] > d2[best]) best = i;
        }
        at = best;
    }
    free(d2);
}

static void test_farthest(void **state)
{
    (void)state;
    enum { N = 3000, K = 400 };
    static double points[3 * N], distance[N], expected_distance[N];
    static float as_float[3 * N];
    static int64_t order[N], expected[N];
    for (int shape = 0; shape < 4; shape++) {
        for (int i = 0; i < 3 * N; i++) {
            const double u = grv_random_uniform(8, (uint64_t)shape, (uint64_t)i);
            points[i] = shape == 0   ? u            /* a cube */
                        : shape == 1 ? floor(8 * u) /* a lattice: ties, duplicates */
                        : shape == 2 ? (i % 3 == 0) * u * 1e-3 + 1e7 /* a line, far away */
                                     : u * u * u * u;                /* a cluster */
            as_float[i] = (float)points[i];
        }
        for (int threads = 1; threads <= 3; threads++) {
            const int k = shape == 1 ? N : K;
            farthest_by_force(N, points, 17, k, expected, expected_distance);
            assert_int_equal(grv_sample_farthest_f64(N, points, 17, k, threads, order, distance),
                             GRV_OK);
            assert_memory_equal(order, expected, (size_t)k * sizeof *order);
            assert_memory_equal(distance, expected_distance, (size_t)k * sizeof *distance);
        }
        for (int i = 0; i < 3 * N; i++) points[i] = (double)as_float[i];
        farthest_by_force(N, points, 0, K, expected, expected_distance);
        assert_int_equal(grv_sample_farthest_f32(N, as_float, 0, K, 2, order, NULL), GRV_OK);
        assert_memory_equal(order, expected, K * sizeof *order);
    }
    assert_int_equal(grv_sample_farthest_f64(1, points, 0, 1, 4, order, distance), GRV_OK);
    assert_true(order[0] == 0 && isinf(distance[0]));
    assert_int_equal(grv_sample_farthest_f64(3, points, 0, 4, 1, order, distance), GRV_E_ARG);
    assert_int_equal(grv_sample_farthest_f64(3, points, 3, 1, 1, order, distance), GRV_E_ARG);
    points[4] = NAN;
    assert_int_equal(grv_sample_farthest_f64(3, points, 0, 2, 1, order, distance), GRV_E_ARG);
    assert_non_null(strstr(grv_error_message(), "point 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_surface_by_area),
        cmocka_unit_test(test_surface_within_triangle),
        cmocka_unit_test(test_surface_numbering),
        cmocka_unit_test(test_surface_errors),
        cmocka_unit_test(test_box),
        cmocka_unit_test(test_inside),
        cmocka_unit_test(test_subset),
        cmocka_unit_test(test_subset_weighted),
        cmocka_unit_test(test_farthest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
