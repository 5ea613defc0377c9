/* The order of the hash grid against a grid that is written out cell by cell, as spec and public header tell it; the adjoint against the serial sum. */
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

/* Cells in the arithmetic of the type; the oracle keeps the bucket of every point. */
static int64_t cell_f32(float x, float inverse)
{
    return (int64_t)floorf(x * inverse);
}
static int64_t cell_f64(double x, double inverse)
{
    return (int64_t)floor(x * inverse);
}

typedef struct oracle {
    bool is_double;
    int dimension;
    int64_t n;
    const void *points;
    double radius, factor;
    int64_t *buckets; /* [n] */
} oracle;

static int64_t bucket_of(int64_t x, int64_t y, int64_t z)
{
    const int64_t origin = 1 << 20;
    assert_true(x >= -origin && y >= -origin && z >= -origin);
    return (z + origin) % 128 * 128 * 128 + (y + origin) % 128 * 128 + (x + origin) % 128;
}

/* Cell of coordinate + offset; a missing third coordinate is 0. */
static int64_t cell_of(const oracle *o, const void *array, int64_t row, int d, int sign)
{
    if (o->is_double) {
        const double x = d < o->dimension ? ((const double *)array)[row * o->dimension + d] : 0;
        return cell_f64(x + sign * o->radius, 1 / (o->radius * o->factor));
    }
    const float x = d < o->dimension ? ((const float *)array)[row * o->dimension + d] : 0,
                r = (float)o->radius;
    return cell_f32(sign == 0 ? x : sign < 0 ? x - r : x + r, 1 / (r * (float)o->factor));
}

static bool is_within(const oracle *o, const void *queries, int64_t q, int64_t point,
                      double *squared)
{
    const float r = (float)o->radius;
    *squared =
        o->is_double
            ? brute_f64((const double *)queries + q * o->dimension,
                        (const double *)o->points + point * o->dimension, o->dimension)
            : (double)brute_f32((const float *)queries + q * o->dimension,
                                (const float *)o->points + point * o->dimension, o->dimension);
    return *squared <= (o->is_double ? o->radius * o->radius : (double)(r * r));
}

typedef struct visit {
    int64_t cell; /* in the order in which the query comes by */
    brute_neighbour neighbour;
} visit;

static int compare_visit(const void *a, const void *b)
{
    const visit *const x = a, *const y = b;
    if (x->cell != y->cell) return x->cell < y->cell ? -1 : 1;
    return (x->neighbour.index > y->neighbour.index) - (x->neighbour.index < y->neighbour.index);
}

/* All in the order of the grid; returns their number. */
static int64_t oracle_search(const oracle *o, const void *queries, int64_t q, visit *found)
{
    int64_t begin[3], end[3], n = 0;
    for (int d = 0; d < 3; d++) {
        begin[d] = cell_of(o, queries, q, d, -1);
        end[d] = cell_of(o, queries, q, d, 1);
        if (end[d] > begin[d] + 127) end[d] = begin[d] + 127;
    }
    for (int64_t i = 0; i < o->n; i++) {
        /* steps from the first cell of the query to that of the point, around the grid; each bucket is visited once at most */
        const int64_t place[3] = {o->buckets[i] % 128, o->buckets[i] / 128 % 128,
                                  o->buckets[i] / (128 * 128)};
        int64_t step[3];
        double squared = 0;
        bool is_visited = true;
        for (int d = 0; d < 3; d++) {
            step[d] = (place[d] - begin[d] % 128 + 256) % 128;
            is_visited = is_visited && step[d] <= end[d] - begin[d];
        }
        if (is_visited && is_within(o, queries, q, i, &squared))
            found[n++] = (visit){(step[2] * 128 + step[1]) * 128 + step[0], {squared, (int32_t)i}};
    }
    qsort(found, (size_t)n, sizeof *found, compare_visit);
    return n;
}

static void check_grid_order(int kind, int dimension, bool is_double, double radius, double factor,
                             int n_threads)
{
    enum { N = 150, M = 12, PLACES = 10 };
    oracle o = {is_double, dimension, N,   cloud_make(kind, 1, N, dimension, is_double),
                radius,    factor,    NULL};
    void *const queries = cloud_make(kind, 2, M, dimension, is_double);
    int32_t indices[M * PLACES], counts[M];
    double distances[M * PLACES];
    visit found[N];
    int64_t buckets[N];
    grv_neighbours *neighbours = NULL;
    o.buckets = buckets;
    for (int64_t i = 0; i < N; i++)
        buckets[i] = bucket_of(cell_of(&o, o.points, i, 0, 0), cell_of(&o, o.points, i, 1, 0),
                               cell_of(&o, o.points, i, 2, 0));
    assert_int_equal(grv_neighbours_create(o.points, N, dimension,
                                           is_double ? GRV_NEIGHBOURS_F64 : GRV_NEIGHBOURS_F32, 1,
                                           &neighbours),
                     GRV_OK);
    grv_radius_params params = grv_radius_params_default();
    params.order = GRV_RADIUS_GRID_ORDER;
    params.cell_width_factor = factor;
    params.source_points = o.points;
    params.n_threads = n_threads;
    const grv_radius_rows rows = {.radius = radius,
                                  .max_points = PLACES,
                                  .indices = indices,
                                  .distances = distances,
                                  .counts = counts};
    assert_int_equal(grv_neighbours_within(neighbours, queries, M, &params, &rows, 1), GRV_OK);
    for (int64_t q = 0; q < M; q++) {
        int64_t n = oracle_search(&o, queries, q, found);
        n = n < PLACES ? n : PLACES;
        assert_int_equal(counts[q], n);
        for (int64_t j = 0; j < PLACES; j++) {
            assert_int_equal(indices[q * PLACES + j], j < n ? found[j].neighbour.index : 0);
            assert_true(real_at(distances, q * PLACES + j, is_double) ==
                        (j < n ? brute_distance(found[j].neighbour.squared, false, is_double) : 0));
        }
    }
    grv_neighbours_destroy(&neighbours);
    free((void *)(uintptr_t)o.points);
    free(queries);
}

static void test_grid_order(void **state)
{
    (void)state;
    /* wide and narrow cells; 0.004: clouds of extent 2 wrap around the 128 buckets; far points lie at cells that a float cannot tell apart */
    static const double radii[] = {0.9, 0.25, 0.004};
    for (int which = 0; which < 4; which++) {
        for (size_t r = 0; r < 3; r++) {
            check_grid_order(CLOUD_UNIFORM, 2 + which % 2, which / 2 == 1, radii[r], 0.5,
                             1 + (int)r);
            check_grid_order(CLOUD_CLUSTERS, 2 + which % 2, which / 2 == 1, radii[r], 1, 1);
            check_grid_order(CLOUD_TWINS, 2 + which % 2, which / 2 == 1, radii[r], 0.5, 1);
        }
        check_grid_order(CLOUD_LATTICE, 2 + which % 2, which / 2 == 1, 2, 0.5,
                         4); /* points on the sphere and on borders of cells */
        check_grid_order(CLOUD_FAR, 2 + which % 2, which / 2 == 1, 3, 0.5, 1);
    }
}

/* More cells than buckets along an axis: each bucket is visited once, and what the distance leaves is all. */
static void test_tiny_cells(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        check_grid_order(CLOUD_LATTICE, 2, which == 1, 3, 0.01, 1);
        check_grid_order(CLOUD_UNIFORM, 2, which == 1, 1, 0.01, 1);
    }
}

/* ---- the adjoint ---- */

static void test_scatter(void **state)
{
    (void)state;
    enum { N = 50, M = 400, K = 9, D = 3 };
    int32_t indices[M * K], counts[M];
    int64_t offsets[M + 1];
    float gradients[M * K * D], expected[N * D], sums[N * D];
    for (int i = 0; i < M * K; i++) indices[i] = (int32_t)((test_number(1, i) + 1) * 0.5 * N);
    fill_f32(gradients, M * K * D, 2, 3);
    for (int mode = 0; mode < 3; mode++) { /* all places, counts, lists */
        fill_f32(expected, N * D, 3, 1);
        offsets[0] = 0;
        for (int q = 0; q < M; q++) {
            counts[q] = q % (K + 1);
            offsets[q + 1] = offsets[q] + counts[q];
            const int64_t first = mode == 2 ? offsets[q] : q * K, n = mode == 0 ? K : counts[q];
            for (int64_t e = first; e < first + n; e++)
                for (int d = 0; d < D; d++) expected[indices[e] * D + d] += gradients[e * D + d];
        }
        const grv_gathered_gradients gathered = {.type = GRV_NEIGHBOURS_F32,
                                                 .dimension = D,
                                                 .n_points = N,
                                                 .n_rows = M,
                                                 .row_length = K,
                                                 .counts = mode == 1 ? counts : NULL,
                                                 .offsets = mode == 2 ? offsets : NULL,
                                                 .indices = indices,
                                                 .gradients = gradients};
        for (int threads = 1; threads <= 4; threads++) {
            fill_f32(sums, N * D, 3, 1);
            assert_int_equal(grv_neighbours_scatter(&gathered, threads, sums), GRV_OK);
            assert_memory_equal(sums, expected, sizeof sums);
        }
    }
}

/* <gather(x), g> = <x, scatter(g)>, in double. */
static void test_scatter_is_the_adjoint(void **state)
{
    (void)state;
    enum { N = 300, M = 40, K = 12, D = 2 };
    double *const points = cloud_make(CLOUD_UNIFORM, 1, N, D, true), *const queries =
                                                                         cloud_make(CLOUD_UNIFORM,
                                                                                    2, M, D, true);
    double gathered_points[M * K * D], gradients[M * K * D], sums[N * D] = {0}, left = 0, right = 0;
    int32_t indices[M * K], counts[M];
    grv_neighbours *neighbours = NULL;
    assert_int_equal(grv_neighbours_create(points, N, D, GRV_NEIGHBOURS_F64, 1, &neighbours),
                     GRV_OK);
    grv_radius_params params = grv_radius_params_default();
    params.source_points = points;
    const grv_radius_rows rows = {.radius = 0.3,
                                  .max_points = K,
                                  .indices = indices,
                                  .points = gathered_points,
                                  .counts = counts};
    assert_int_equal(grv_neighbours_within(neighbours, queries, M, &params, &rows, 1), GRV_OK);
    fill_f64(gradients, M * K * D, 5, 1);
    const grv_gathered_gradients gathered = {.type = GRV_NEIGHBOURS_F64,
                                             .dimension = D,
                                             .n_points = N,
                                             .n_rows = M,
                                             .row_length = K,
                                             .counts = counts,
                                             .indices = indices,
                                             .gradients = gradients};
    assert_int_equal(grv_neighbours_scatter(&gathered, 3, sums), GRV_OK);
    for (int i = 0; i < M * K * D; i++)
        left += gathered_points[i] * gradients[i]; /* places without a neighbour hold 0 */
    for (int i = 0; i < N * D; i++) right += points[i] * sums[i];
    assert_true(fabs(left - right) < 1e-12 * M * K && fabs(left) > 1e-3);
    grv_neighbours_destroy(&neighbours);
    free(points);
    free(queries);
}

static void test_scatter_refuses(void **state)
{
    (void)state;
    int32_t indices[4] = {0, 1, 2, 1}, counts[2] = {2, 2};
    const float gradients[4] = {1, 1, 1, 1};
    const int64_t descending[3] = {0, 2, 1};
    float sums[3] = {0};
    grv_gathered_gradients g = {.type = GRV_NEIGHBOURS_F32,
                                .dimension = 1,
                                .n_points = 3,
                                .n_rows = 2,
                                .row_length = 2,
                                .indices = indices,
                                .gradients = gradients};
    assert_int_equal(grv_neighbours_scatter(&g, 1, sums), GRV_OK);
    indices[2] = 3;
    assert_int_equal(grv_neighbours_scatter(&g, 1, sums), GRV_E_ARG);
    indices[2] = -1;
    assert_int_equal(grv_neighbours_scatter(&g, 1, sums), GRV_E_ARG);
    indices[2] = 2;
    counts[1] = 3;
    g.counts = counts;
    assert_int_equal(grv_neighbours_scatter(&g, 1, sums), GRV_E_ARG);
    g.offsets = descending;
    assert_int_equal(grv_neighbours_scatter(&g, 1, sums), GRV_E_ARG);
    g.type = (grv_neighbours_type)9;
    assert_int_equal(grv_neighbours_scatter(&g, 1, sums), GRV_E_ARG);
    assert_true(sums[0] == 1 && sums[1] == 2 && sums[2] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid_order), cmocka_unit_test(test_tiny_cells),
        cmocka_unit_test(test_scatter), cmocka_unit_test(test_scatter_is_the_adjoint),
        cmocka_unit_test(test_scatter_refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
