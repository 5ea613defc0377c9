/* The k nearest and the points within radii are those of brute force with the documented expression, index by index and bit by bit, on clouds with
 * ties, twins, lines, lattices, far from the origin and beyond the range of a float's square; for any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grove/core.h"
#include "grove/neighbours.h"
#include "guarded.h"
#include "point_clouds.h"

typedef struct cloud_case {
    int kind, dimension;
    bool is_double;
    int64_t n, n_queries;
    void *points, *queries;
    grv_neighbours *neighbours;
    brute_neighbour *all;    /* [n_queries][n] as brute force sorts them */
    brute_neighbour *sorted; /* [n] of the query at hand, for tests to reorder */
} cloud_case;

static cloud_case case_create(int kind, int dimension, bool is_double, int64_t n, int64_t n_queries,
                              int n_threads)
{
    cloud_case c = {kind, dimension, is_double, n, n_queries, NULL, NULL, NULL, NULL, NULL};
    c.points = cloud_make(kind, 10, n, dimension, is_double);
    c.queries = cloud_make(kind, 20, n_queries, dimension, is_double);
    /* every third query is a point */
    const size_t bytes = (size_t)dimension * (is_double ? sizeof(double) : sizeof(float));
    for (int64_t q = 0; q < n_queries && n > 0; q += 3)
        memcpy((char *)c.queries + (size_t)q * bytes,
               (const char *)c.points + (size_t)(q * 7 % n) * bytes, bytes);
    c.sorted = malloc((size_t)(n + 1) * sizeof *c.sorted);
    c.all = malloc((size_t)(n_queries * n + 1) * sizeof *c.all);
    for (int64_t q = 0; q < n_queries; q++)
        brute_sort(c.points, n, c.queries, q, dimension, is_double, c.all + q * n);
    assert_int_equal(grv_neighbours_create(c.points, n, dimension,
                                           is_double ? GRV_NEIGHBOURS_F64 : GRV_NEIGHBOURS_F32,
                                           n_threads, &c.neighbours),
                     GRV_OK);
    assert_true(n == 0 || grv_neighbours_bytes(c.neighbours) >= n * (int64_t)bytes);
    return c;
}

static void case_destroy(cloud_case *c)
{
    grv_neighbours_destroy(&c->neighbours);
    assert_null(c->neighbours);
    free(c->points);
    free(c->queries);
    free(c->sorted);
    free(c->all);
}

static void take_sorted(const cloud_case *c, int64_t q)
{
    memcpy(c->sorted, c->all + q * c->n, (size_t)c->n * sizeof *c->sorted);
}

static size_t real_size(const cloud_case *c)
{
    return c->is_double ? sizeof(double) : sizeof(float);
}

static void check_nearest(const cloud_case *c, int64_t k, bool squared, const int32_t *excluded,
                          int n_threads)
{
    grv_nearest_params params = grv_nearest_params_default();
    params.k = k;
    params.squared = squared;
    params.excluded = excluded;
    params.pad_index = -7;
    params.pad_distance = 3;
    params.n_threads = n_threads;
    guarded indices = guarded_create(c->n_queries * k * (int64_t)sizeof(int32_t), 4);
    guarded distances = guarded_create(c->n_queries * k * (int64_t)real_size(c), 8);
    assert_int_equal(grv_neighbours_nearest(c->neighbours, c->queries, c->n_queries, &params,
                                            indices.data, distances.data),
                     GRV_OK);
    for (int64_t q = 0; q < c->n_queries; q++) {
        take_sorted(c, q);
        for (int64_t j = 0, from = 0; j < k; j++, from++) {
            if (excluded != NULL && from < c->n && c->sorted[from].index == excluded[q]) from++;
            const int32_t index = ((const int32_t *)indices.data)[q * k + j];
            const double distance = real_at(distances.data, q * k + j, c->is_double);
            if (from >= c->n) {
                assert_int_equal(index, -7);
                assert_true(distance == 3);
                continue;
            }
            assert_int_equal(index, c->sorted[from].index);
            assert_true(distance == brute_distance(c->sorted[from].squared, squared, c->is_double));
        }
    }
    /* without distances the same */
    int32_t *const again = malloc((size_t)(c->n_queries * k + 1) * sizeof *again);
    assert_int_equal(
        grv_neighbours_nearest(c->neighbours, c->queries, c->n_queries, &params, again, NULL),
        GRV_OK);
    assert_memory_equal(again, indices.data, (size_t)(c->n_queries * k) * sizeof *again);
    free(again);
    guarded_destroy(&indices);
    guarded_destroy(&distances);
}

static void test_nearest(void **state)
{
    (void)state;
    static const int64_t ks[] = {0, 1, 2, 7, 8, 9, 16, 17, 40, 233};
    for (int kind = 0; kind < CLOUD_COUNT; kind++) {
        for (int which = 0; which < 4; which++) {
            cloud_case c =
                case_create(kind, 2 + which % 2, which / 2 == 1, 200 + kind, 70, 1 + kind % 4);
            for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
                check_nearest(&c, ks[i], i % 2 == 0, NULL, 1 + (int)i % 4);
            case_destroy(&c);
        }
    }
}

/* Every shape of tree: one point, one leaf, full and not full leaves and nodes, several levels. */
static void test_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0,   1,   2,   15,  16,  17,   31,   32,   33,  255,
                                    256, 257, 271, 272, 273, 4095, 4096, 4097, 5000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int threads = 1; threads <= 4; threads += 3) {
            cloud_case c = case_create(i % 2 == 0 ? CLOUD_UNIFORM : CLOUD_TWINS, 3, i % 3 == 0,
                                       sizes[i], 23, threads);
            check_nearest(&c, 5, true, NULL, threads);
            check_nearest(&c, 20, false, NULL, threads);
            case_destroy(&c);
        }
    }
}

static void test_threads_and_excluded(void **state)
{
    (void)state;
    enum { N = 1500, M = 300 };
    int32_t excluded[M];
    for (int q = 0; q < M; q++) excluded[q] = q % 4 == 0 ? -1 : q * 7 % N;
    for (int threads = 1; threads <= 4; threads++) {
        cloud_case c = case_create(CLOUD_TWINS, 3, threads % 2 == 0, N, M, threads);
        check_nearest(&c, 6, false, excluded, threads);
        check_nearest(&c, 30, false, excluded, threads);
        case_destroy(&c);
    }
}

static void test_exclude_self(void **state)
{
    (void)state;
    enum { N = 400, K = 3 };
    float *const points = cloud_make(CLOUD_TWINS, 10, N, 3, false);
    int32_t own[N], by_flag[N * K], by_list[N * K];
    grv_neighbours *neighbours = NULL;
    grv_nearest_params params = grv_nearest_params_default();
    assert_int_equal(grv_neighbours_create(points, N, 3, GRV_NEIGHBOURS_F32, 1, &neighbours),
                     GRV_OK);
    for (int32_t i = 0; i < N; i++) own[i] = i;
    params.k = K;
    params.exclude_self = true;
    assert_int_equal(grv_neighbours_nearest(neighbours, points, N, &params, by_flag, NULL), GRV_OK);
    params.exclude_self = false;
    params.excluded = own;
    assert_int_equal(grv_neighbours_nearest(neighbours, points, N, &params, by_list, NULL), GRV_OK);
    assert_memory_equal(by_flag, by_list, sizeof by_flag);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < K; j++)
            assert_true(by_flag[i * K + j] != i &&
                        by_flag[i * K + j] / 5 == i / 5); /* twins stay */
    }
    params.exclude_self = true;
    assert_int_equal(grv_neighbours_nearest(neighbours, points, N, &params, by_list, NULL),
                     GRV_E_ARG);
    params.excluded = NULL;
    assert_int_equal(grv_neighbours_nearest(neighbours, points, N - 1, &params, by_list, NULL),
                     GRV_E_ARG);
    grv_neighbours_destroy(&neighbours);
    free(points);
}

/* ---- within radii ---- */

/* Radii at which ties lie exactly on the sphere, and the ends of the range. */
static double radius_of(const cloud_case *c, int which)
{
    switch (which) {
    case 0: return 0;
    case 1: take_sorted(c, 0); return sqrt(c->sorted[c->n / 3].squared);
    case 2: return 1;
    default: return (double)INFINITY;
    }
}

static double square_of(double radius, bool is_double)
{
    const float r = (float)radius;
    return is_double ? radius * radius : (double)(r * r);
}

static int64_t count_within(const cloud_case *c, double radius)
{
    int64_t n = 0;
    while (n < c->n && c->sorted[n].squared <= square_of(radius, c->is_double)) n++;
    return n;
}

static void check_row(const cloud_case *c, const grv_radius_rows *rows, int64_t q, int64_t n)
{
    const int64_t places = rows->max_points;
    n = n < places ? n : places;
    assert_int_equal(rows->counts[q], n);
    for (int64_t j = 0; j < places; j++) {
        assert_int_equal(rows->indices[q * places + j], j < n ? c->sorted[j].index : 0);
        assert_true(real_at(rows->distances, q * places + j, c->is_double) ==
                    (j < n ? brute_distance(c->sorted[j].squared, false, c->is_double) : 0));
        for (int d = 0; d < c->dimension; d++)
            assert_true(real_at(rows->points, (q * places + j) * c->dimension + d, c->is_double) ==
                        (j < n ? real_at(c->points, (int64_t)c->sorted[j].index * c->dimension + d,
                                         c->is_double)
                               : 0));
    }
}

static void check_within(const cloud_case *c, int n_threads)
{
    enum { N_RADII = 4 };
    static const int64_t places[N_RADII] = {3, 9, 40, 16};
    grv_radius_rows rows[N_RADII];
    grv_radius_params params = grv_radius_params_default();
    params.source_points = c->points;
    params.n_threads = n_threads;
    for (int r = 0; r < N_RADII; r++) {
        const size_t total = (size_t)(c->n_queries * places[r]);
        rows[r] = (grv_radius_rows){radius_of(c, r),
                                    places[r],
                                    malloc(total * sizeof(int32_t)),
                                    malloc(total * real_size(c)),
                                    malloc(total * real_size(c) * 3),
                                    malloc((size_t)c->n_queries * sizeof(int32_t))};
    }
    assert_int_equal(
        grv_neighbours_within(c->neighbours, c->queries, c->n_queries, &params, rows, N_RADII),
        GRV_OK);
    for (int64_t q = 0; q < c->n_queries; q++) {
        take_sorted(c, q);
        for (int r = 0; r < N_RADII; r++)
            check_row(c, &rows[r], q, count_within(c, rows[r].radius));
    }
    for (int r = 0; r < N_RADII; r++) {
        free(rows[r].indices);
        free(rows[r].distances);
        free(rows[r].points);
        free(rows[r].counts);
    }
}

static int compare_index(const void *a, const void *b)
{
    const brute_neighbour *const x = a, *const y = b;
    return (x->index > y->index) - (x->index < y->index);
}

static void check_lists(const cloud_case *c, int n_threads)
{
    enum { N_RADII = 4 };
    double radii[N_RADII];
    grv_radius_lists lists[N_RADII];
    grv_radius_params params = grv_radius_params_default();
    const int64_t m = c->n_queries;
    int64_t *const offsets = malloc((size_t)(N_RADII * (m + 1)) * sizeof *offsets);
    for (int r = 0; r < N_RADII; r++) radii[r] = radius_of(c, r);
    params.source_points = c->points;
    params.n_threads = n_threads;
    params.squared = true;
    assert_int_equal(
        grv_neighbours_count(c->neighbours, c->queries, m, radii, N_RADII, n_threads, offsets),
        GRV_OK);
    for (int r = 0; r < N_RADII; r++) {
        const size_t total = (size_t)offsets[r * (m + 1) + m];
        lists[r] = (grv_radius_lists){
            radii[r], offsets + r * (m + 1), malloc((total + 1) * sizeof(int32_t)),
            malloc((total + 1) * real_size(c)), malloc((total + 1) * real_size(c) * 3)};
    }
    assert_int_equal(grv_neighbours_fill(c->neighbours, c->queries, m, &params, lists, N_RADII),
                     GRV_OK);
    for (int64_t q = 0; q < m; q++) {
        for (int r = 0; r < N_RADII; r++) {
            take_sorted(c, q);
            const int64_t n = count_within(c, radii[r]), first = lists[r].offsets[q];
            assert_int_equal(lists[r].offsets[q + 1] - first, n);
            qsort(c->sorted, (size_t)n, sizeof *c->sorted, compare_index);
            for (int64_t j = 0; j < n; j++) {
                assert_int_equal(lists[r].indices[first + j], c->sorted[j].index);
                assert_true(real_at(lists[r].distances, first + j, c->is_double) ==
                            c->sorted[j].squared);
                for (int d = 0; d < c->dimension; d++)
                    assert_true(
                        real_at(lists[r].points, (first + j) * c->dimension + d, c->is_double) ==
                        real_at(c->points, (int64_t)c->sorted[j].index * c->dimension + d,
                                c->is_double));
            }
        }
    }
    for (int r = 0; r < N_RADII; r++) {
        free(lists[r].indices);
        free(lists[r].distances);
        free(lists[r].points);
    }
    free(offsets);
}

static void test_radii(void **state)
{
    (void)state;
    for (int kind = 0; kind < CLOUD_COUNT; kind++) {
        for (int which = 0; which < 4; which++) {
            cloud_case c = case_create(kind, 2 + which % 2, which / 2 == 1, 200, 66, 1);
            check_within(&c, 1 + kind % 4);
            check_lists(&c, 1 + kind % 3);
            case_destroy(&c);
        }
    }
}

/* ---- what is refused, what is empty ---- */

static void test_not_finite(void **state)
{
    (void)state;
    enum { N = 500 };
    for (int is_double = 0; is_double < 2; is_double++) {
        for (int bad = 0; bad < 2; bad++) {
            void *const points = cloud_make(CLOUD_UNIFORM, 10, N, 3, is_double == 1);
            const grv_neighbours_type type = is_double ? GRV_NEIGHBOURS_F64 : GRV_NEIGHBOURS_F32;
            grv_neighbours *neighbours = NULL;
            int32_t indices[N];
            assert_int_equal(grv_neighbours_create(points, N, 3, type, 3, &neighbours), GRV_OK);
            for (int row = 123; row < N; row += 300) {
                if (is_double)
                    ((double *)points)[3 * row + 2] = bad == 0 ? (double)NAN : (double)-INFINITY;
                else
                    ((float *)points)[3 * row + 2] = bad == 0 ? NAN : -INFINITY;
            }
            memset(indices, 0x55, sizeof indices);
            assert_int_equal(grv_neighbours_nearest(neighbours, points, N, NULL, indices, NULL),
                             GRV_E_ARG);
            assert_non_null(strstr(grv_error_message(), "row 123 of queries"));
            for (int i = 0; i < N; i++) assert_int_equal(indices[i], 0x55555555);
            grv_neighbours_destroy(&neighbours);
            for (int threads = 1; threads <= 4; threads++) {
                assert_int_equal(grv_neighbours_create(points, N, 3, type, threads, &neighbours),
                                 GRV_E_ARG);
                assert_null(neighbours);
                assert_non_null(strstr(grv_error_message(), "row 123 of points"));
            }
            free(points);
        }
    }
}

static void test_refused(void **state)
{
    (void)state;
    const float points[6] = {0, 0, 0, 1, 1, 1};
    int32_t indices[4] = {0};
    int64_t offsets[3] = {0};
    grv_neighbours *neighbours = NULL;
    assert_int_equal(grv_neighbours_create(points, -1, 3, GRV_NEIGHBOURS_F32, 1, &neighbours),
                     GRV_E_ARG);
    assert_int_equal(
        grv_neighbours_create(points, (int64_t)1 << 31, 3, GRV_NEIGHBOURS_F32, 1, &neighbours),
        GRV_E_ARG);
    assert_int_equal(grv_neighbours_create(points, 2, 4, GRV_NEIGHBOURS_F32, 1, &neighbours),
                     GRV_E_ARG);
    assert_int_equal(grv_neighbours_create(points, 2, 3, (grv_neighbours_type)2, 1, &neighbours),
                     GRV_E_ARG);
    assert_int_equal(grv_neighbours_create(points, 2, 3, GRV_NEIGHBOURS_F32, 0, &neighbours),
                     GRV_OK);
    grv_nearest_params nearest = grv_nearest_params_default();
    nearest.k = -1;
    assert_int_equal(grv_neighbours_nearest(neighbours, points, 2, &nearest, indices, NULL),
                     GRV_E_ARG);
    assert_int_equal(grv_neighbours_nearest(neighbours, points, -2, NULL, indices, NULL),
                     GRV_E_ARG);
    grv_radius_rows rows = {.radius = -1, .max_points = 1, .indices = indices};
    assert_int_equal(grv_neighbours_within(neighbours, points, 2, NULL, &rows, 1), GRV_E_ARG);
    rows.radius = (double)NAN;
    assert_int_equal(grv_neighbours_within(neighbours, points, 2, NULL, &rows, 1), GRV_E_ARG);
    assert_int_equal(grv_neighbours_count(neighbours, points, 2, &rows.radius, 1, 1, offsets),
                     GRV_E_ARG);
    rows.radius = 1;
    rows.max_points = -1;
    assert_int_equal(grv_neighbours_within(neighbours, points, 2, NULL, &rows, 1), GRV_E_ARG);
    rows.max_points = 1;
    rows.points = indices; /* no source */
    assert_int_equal(grv_neighbours_within(neighbours, points, 2, NULL, &rows, 1), GRV_E_ARG);
    rows.points = NULL;
    grv_radius_params params = grv_radius_params_default();
    params.order = GRV_RADIUS_GRID_ORDER; /* no source either */
    assert_int_equal(grv_neighbours_within(neighbours, points, 2, &params, &rows, 1), GRV_E_ARG);
    params.source_points = points;
    rows.radius = (double)INFINITY;
    assert_int_equal(grv_neighbours_within(neighbours, points, 2, &params, &rows, 1), GRV_E_ARG);
    rows.radius = 1;
    params.cell_width_factor = 0;
    assert_int_equal(grv_neighbours_within(neighbours, points, 2, &params, &rows, 1), GRV_E_ARG);
    /* offsets of other queries: too many, then too few places */
    float distances[4];
    const grv_radius_lists more = {.radius = 0.5,
                                   .offsets = (const int64_t[]){0, 2, 3},
                                   .indices = indices,
                                   .distances = distances};
    assert_int_equal(grv_neighbours_fill(neighbours, points, 2, NULL, &more, 1), GRV_E_ARG);
    const grv_radius_lists fewer = {.radius = 9,
                                    .offsets = (const int64_t[]){0, 1, 2},
                                    .indices = indices,
                                    .distances = distances};
    assert_int_equal(grv_neighbours_fill(neighbours, points, 2, NULL, &fewer, 1), GRV_E_ARG);
    const grv_radius_lists descending = {.radius = 9,
                                         .offsets = (const int64_t[]){2, 0, 2},
                                         .indices = indices,
                                         .distances = distances};
    assert_int_equal(grv_neighbours_fill(neighbours, points, 2, NULL, &descending, 1), GRV_E_ARG);
    grv_neighbours_destroy(&neighbours);
    grv_neighbours_destroy(&neighbours);
    grv_neighbours_destroy(NULL);
}

static void test_empty(void **state)
{
    (void)state;
    const double query[3] = {1, 2, 3};
    int32_t index = 5, count = 5;
    double distance = 5;
    int64_t offsets[2] = {7, 7};
    grv_neighbours *neighbours = NULL;
    assert_int_equal(grv_neighbours_create(NULL, 0, 3, GRV_NEIGHBOURS_F64, 2, &neighbours), GRV_OK);
    assert_int_equal(grv_neighbours_nearest(neighbours, query, 1, NULL, &index, &distance), GRV_OK);
    assert_true(index == -1 && isinf(distance));
    assert_int_equal(grv_neighbours_nearest(neighbours, NULL, 0, NULL, NULL, NULL), GRV_OK);
    const grv_radius_rows rows = {
        .radius = 1, .max_points = 1, .indices = &index, .distances = &distance, .counts = &count};
    grv_radius_params params = grv_radius_params_default();
    for (int order = 0; order < 2; order++) {
        params.order = order == 0 ? GRV_RADIUS_NEAREST : GRV_RADIUS_GRID_ORDER;
        index = count = 5;
        assert_int_equal(grv_neighbours_within(neighbours, query, 1, &params, &rows, 1), GRV_OK);
        assert_true(index == 0 && count == 0 && distance == 0);
    }
    assert_int_equal(grv_neighbours_count(neighbours, query, 1, (const double[]){1}, 1, 1, offsets),
                     GRV_OK);
    assert_true(offsets[0] == 0 && offsets[1] == 0);
    assert_int_equal(grv_neighbours_count(neighbours, NULL, 0, (const double[]){1}, 1, 1, offsets),
                     GRV_OK);
    grv_neighbours_destroy(&neighbours);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_threads_and_excluded),
        cmocka_unit_test(test_exclude_self),
        cmocka_unit_test(test_radii),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
