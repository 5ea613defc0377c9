/* Neighbour searches of every instruction set against brute force, bit by bit: trees of all shapes, bounds on and beside distances, excluded points,
 * limits, runs that begin anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "geom/point_tree.h"
#include "grove/core.h"
#include "guarded.h"
#include "kernels/neighbour_kernels.h"
#include "point_clouds.h"

enum { MAX_POINTS = 1200, N_QUERIES = 25 };

typedef struct kernel_case {
    const grvi_neighbour_kernels *kernels;
    bool is_double;
    int64_t n;
    void *points, *queries;
    grvi_tree_storage storage;
    brute_neighbour *sorted;
    void *scratch;
} kernel_case;

static const void *query_of(const kernel_case *c, int64_t q)
{
    return (const char *)c->queries +
           3 * q * (int64_t)(c->is_double ? sizeof(double) : sizeof(float));
}

static int64_t first_beyond(const kernel_case *c, double bound)
{
    int64_t n = 0;
    while (n < c->n && c->sorted[n].squared <= bound) n++;
    return n;
}

static void check_nearest(const kernel_case *c, int64_t q, int64_t k, double bound,
                          int32_t excluded)
{
    guarded indices = guarded_create(k * (int64_t)sizeof(int32_t), 4),
            squared = guarded_create(k * 8, 8);
    const int64_t found = c->kernels->nearest(&c->storage.tree, query_of(c, q), k, bound, excluded,
                                              c->scratch, indices.data, squared.data);
    int64_t from = 0, expected = 0;
    const int64_t within = first_beyond(c, bound);
    for (; from < within && expected < k; from++) {
        if (c->sorted[from].index == excluded) continue;
        assert_true(expected < found);
        assert_int_equal(((const int32_t *)indices.data)[expected], c->sorted[from].index);
        assert_true(real_at(squared.data, expected, c->is_double) == c->sorted[from].squared);
        expected++;
    }
    assert_int_equal(found, expected);
    guarded_destroy(&indices);
    guarded_destroy(&squared);
}

static int compare_index(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void check_within(const kernel_case *c, double bound)
{
    const int64_t n = first_beyond(c, bound);
    guarded indices = guarded_create(n * (int64_t)sizeof(int32_t), 0),
            squared = guarded_create(n * 8, 0);
    int32_t *const expected = malloc((size_t)(n + 1) * sizeof *expected);
    const void *const query = query_of(c, 0);
    brute_sort(c->points, c->n, c->queries, 0, 3, c->is_double, c->sorted);
    for (int64_t j = 0; j < n; j++) expected[j] = c->sorted[j].index;
    assert_int_equal(c->kernels->within(&c->storage.tree, query, bound, 0, NULL, NULL), n);
    assert_int_equal(
        c->kernels->within(&c->storage.tree, query, bound, n, indices.data, squared.data), n);
    for (int64_t j = 0; j < n; j++) {
        const int32_t index = ((const int32_t *)indices.data)[j];
        const double d = c->is_double
                             ? brute_f64(query, (const double *)c->points + 3 * index, 3)
                             : (double)brute_f32(query, (const float *)c->points + 3 * index, 3);
        assert_true(real_at(squared.data, j, c->is_double) == d);
    }
    qsort(indices.data, (size_t)n, sizeof(int32_t), compare_index);
    qsort(expected, (size_t)n, sizeof(int32_t), compare_index);
    assert_memory_equal(indices.data, expected, (size_t)n * sizeof(int32_t));
    guarded_destroy(&indices);
    guarded_destroy(&squared);
    /* fewer places than points: guards stay whole, the number is right */
    for (int64_t limit = 0; limit < n && limit < 40; limit += 7) {
        guarded few = guarded_create(limit * (int64_t)sizeof(int32_t), 4),
                few_squared = guarded_create(limit * (c->is_double ? 8 : 4), 8);
        assert_int_equal(
            c->kernels->within(&c->storage.tree, query, bound, limit, few.data, few_squared.data),
            n);
        guarded_destroy(&few);
        guarded_destroy(&few_squared);
    }
    free(expected);
}

static void check_cloud(grvi_isa isa, int kind, bool is_double, int64_t n)
{
    static const int64_t ks[] = {1, 3, 8, 10, 16, 17, 60, MAX_POINTS};
    kernel_case c = {
        .kernels = grvi_neighbour_kernels_for(isa, is_double), .is_double = is_double, .n = n};
    c.points = cloud_make(kind, 3, n, 3, is_double);
    c.queries = cloud_make(kind, 4, N_QUERIES, 3, is_double);
    c.sorted = malloc((size_t)(n + 1) * sizeof *c.sorted);
    assert_int_equal(grvi_alloc(grvi_nearest_scratch_bytes(MAX_POINTS), 1, &c.scratch), GRV_OK);
    assert_int_equal(grvi_point_tree_build(c.points, n, 3, is_double, 1, &c.storage), GRV_OK);
    for (int64_t q = 0; q < N_QUERIES; q++) {
        brute_sort(c.points, n, c.queries, q, 3, is_double, c.sorted);
        const int64_t k = ks[q % 8];
        check_nearest(&c, q, k, (double)INFINITY, -1);
        if (n == 0) continue;
        check_nearest(&c, q, k, (double)INFINITY, c.sorted[q % 3 % n].index);
        check_nearest(&c, q, k, c.sorted[n / 2].squared, -1); /* ties on the bound count */
        check_nearest(&c, q, k, 0, -1);
    }
    brute_sort(c.points, n, c.queries, 0, 3, is_double, c.sorted);
    check_within(&c, 0);
    check_within(&c, (double)INFINITY);
    if (n > 0) check_within(&c, c.sorted[n / 3].squared);
    grvi_point_tree_fini(&c.storage);
    grv_free(c.scratch);
    free(c.points);
    free(c.queries);
    free(c.sorted);
}

static void test_trees(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 16, 17, 40, 256, 257, MAX_POINTS};
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        if (grvi_neighbour_kernels_for((grvi_isa)isa, false) == NULL) continue;
        for (int kind = 0; kind < CLOUD_COUNT; kind++) {
            for (int which = 0; which < 2; which++) {
                check_cloud((grvi_isa)isa, kind, which == 1, sizes[kind % 8]);
                check_cloud((grvi_isa)isa, kind, which == 1, 300);
            }
        }
    }
}

/* Runs of every length from every start, with fewer and more places than points. */
static void check_run(const grvi_neighbour_kernels *kernels, bool is_double, int64_t begin,
                      int64_t end, int64_t limit)
{
    enum { N = 80 };
    void *const rows =
        cloud_make(CLOUD_LATTICE, 5, 3 * (N + 15), 2, is_double); /* any numbers: three arrays */
    const int64_t size = is_double ? 8 : 4;
    const void *const points[3] = {rows, (char *)rows + (N + 15) * size,
                                   (char *)rows + 2 * (N + 15) * size};
    const double query64[3] = {1, 0, -1};
    const float query32[3] = {1, 0, -1};
    guarded positions = guarded_create(limit * (int64_t)sizeof(int32_t), 4),
            squared = guarded_create(limit * size, 8);
    const int64_t found =
        kernels->run(points, begin, end, is_double ? (const void *)query64 : query32, 6, limit,
                     positions.data, squared.data);
    int64_t expected = 0;
    for (int64_t i = begin; i < end && expected < limit; i++) {
        double sum = 0;
        for (int d = 0; d < 3; d++)
            sum += (query64[d] - real_at(points[d], i, is_double)) *
                   (query64[d] - real_at(points[d], i, is_double)); /* integers */
        if (sum > 6) continue;
        assert_true(expected < found);
        assert_int_equal(((const int32_t *)positions.data)[expected], i);
        assert_true(real_at(squared.data, expected, is_double) == sum);
        expected++;
    }
    assert_int_equal(found, expected);
    guarded_destroy(&positions);
    guarded_destroy(&squared);
    free(rows);
}

static void test_runs(void **state)
{
    (void)state;
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        for (int which = 0; which < 2; which++) {
            const grvi_neighbour_kernels *const kernels =
                grvi_neighbour_kernels_for((grvi_isa)isa, which == 1);
            if (kernels == NULL) continue;
            for (int64_t begin = 0; begin < 20; begin += 3) {
                for (int64_t length = 0; length <= 60; length++)
                    check_run(kernels, which == 1, begin, begin + length,
                              length % 3 == 0 ? 5 : 100);
            }
            check_run(kernels, which == 1, 0, 80, 80);
        }
    }
}

static void test_short_rows(void **state)
{
    (void)state;
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        for (int which = 0; which < 2; which++) {
            const grvi_neighbour_kernels *const kernels =
                grvi_neighbour_kernels_for((grvi_isa)isa, which == 1);
            if (kernels == NULL) continue;
            for (int64_t n = 0; n <= GRVI_SHORT_ROW; n++) {
                guarded indices = guarded_create(n * (int64_t)sizeof(int32_t), 4),
                        squared = guarded_create(n * (which == 1 ? 8 : 4), 8);
                for (int64_t i = 0; i < n; i++) {
                    const int64_t place = (i * 89 + 5) % 97; /* a permutation of part of 0 .. 96 */
                    ((int32_t *)indices.data)[i] = (int32_t)(7 * place);
                    if (which == 1)
                        ((double *)squared.data)[i] = (double)place;
                    else
                        ((float *)squared.data)[i] = (float)place;
                }
                kernels->sort_short(n, indices.data, squared.data);
                for (int64_t i = 0; i < n; i++) {
                    const int32_t index = ((const int32_t *)indices.data)[i];
                    assert_true(i == 0 || ((const int32_t *)indices.data)[i - 1] < index);
                    assert_true(real_at(squared.data, i, which == 1) * 7 == index);
                }
                guarded_destroy(&indices);
                guarded_destroy(&squared);
            }
        }
    }
}

/* Arrays of n points, each in guard cells; elements that nobody may touch are recognised by their bits. */
typedef struct guarded_arrays {
    guarded x[3], indices;
    grvi_point_arrays arrays;
} guarded_arrays;

static guarded_arrays guarded_arrays_create(int64_t n, bool is_double)
{
    guarded_arrays a;
    for (int d = 0; d < 3; d++) {
        a.x[d] = guarded_create(n * (is_double ? 8 : 4), 8);
        memset(a.x[d].data, 0x5a, (size_t)(n * (is_double ? 8 : 4)));
        a.arrays.x[d] = a.x[d].data;
    }
    a.indices = guarded_create(n * (int64_t)sizeof(int32_t), 8);
    memset(a.indices.data, 0x5a, (size_t)n * sizeof(int32_t));
    a.arrays.indices = a.indices.data;
    return a;
}

static void guarded_arrays_destroy(guarded_arrays *a)
{
    for (int d = 0; d < 3; d++) guarded_destroy(&a->x[d]);
    guarded_destroy(&a->indices);
}

/* Puts point i of the cloud at element `begin` + i; what is missing to whole leaves is NaN. */
static void put_points(const guarded_arrays *a, const void *cloud, int64_t n, int64_t n_padded,
                       int64_t begin, bool is_double)
{
    for (int64_t i = 0; i < n_padded; i++) {
        a->arrays.indices[begin + i] = i < n ? (int32_t)i : GRVI_NO_POINT;
        for (int d = 0; d < 3; d++) {
            const double value = i < n ? real_at(cloud, 3 * i + d, is_double) : (double)NAN;
            if (is_double)
                ((double *)a->arrays.x[d])[begin + i] = value;
            else
                ((float *)a->arrays.x[d])[begin + i] = (float)value;
        }
    }
}

static void assert_untouched(const guarded_arrays *a, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) assert_int_equal(a->arrays.indices[i], 0x5a5a5a5a);
}

/* Every point is there once with its own coordinates. */
static void check_same_points(const guarded_arrays *a, const void *cloud, int64_t n,
                              int64_t n_padded, int64_t begin, bool is_double)
{
    bool *const seen = calloc((size_t)n + 1, sizeof *seen);
    for (int64_t i = begin; i < begin + n_padded; i++) {
        const int32_t index = a->arrays.indices[i];
        if (index == GRVI_NO_POINT) continue;
        assert_true(index >= 0 && index < n && !seen[index]);
        seen[index] = true;
        for (int d = 0; d < 3; d++)
            assert_true(real_at(a->arrays.x[d], i, is_double) ==
                        real_at(cloud, 3 * (int64_t)index + d, is_double));
    }
    for (int64_t i = 0; i < n; i++) assert_true(seen[i]);
    free(seen);
}

/* An axis of the largest extent separates the parts. */
static void check_order(const guarded_arrays *a, int64_t begin, int64_t end, int64_t n_first,
                        bool is_double)
{
    double extent[3], widest = -1;
    bool separates[3], is_right = false;
    for (int d = 0; d < 3; d++) {
        double low = (double)INFINITY, high = -low, last = -low, first = low;
        for (int64_t i = begin; i < end; i++) {
            const double x = real_at(a->arrays.x[d], i, is_double);
            assert_true(i >= begin + n_first || !isnan(x));
            if (isnan(x)) continue;
            low = fmin(low, x);
            high = fmax(high, x);
            if (i < begin + n_first)
                last = fmax(last, x);
            else
                first = fmin(first, x);
        }
        extent[d] = high / 2 - low / 2;
        if (!is_double) extent[d] = (double)((float)high / 2 - (float)low / 2);
        widest = fmax(widest, extent[d]);
        separates[d] = last <= first;
    }
    for (int d = 0; d < 3; d++) is_right = is_right || (separates[d] && extent[d] >= widest);
    assert_true(is_right);
}

/* Leaves 2 .. 2 + n_leaves of some, the last with a few points missing, are halved; nothing else is touched. */
static void check_split(grvi_isa isa, int kind, bool is_double, int64_t n, int64_t n_first)
{
    enum { W = GRVI_TREE_WIDTH };
    const int64_t n_padded = (n + W - 1) / W * W, n_other = n_padded - n_first;
    const int64_t begin = 2 * W, end = begin + n_padded, scratch_end = n_other + 3 * W;
    void *const cloud = cloud_make(kind, 6, n, 3, is_double);
    guarded_arrays points = guarded_arrays_create(end + W, is_double),
                   scratch = guarded_arrays_create(scratch_end + W, is_double);
    put_points(&points, cloud, n, n_padded, begin, is_double);
    grvi_neighbour_kernels_for(isa, is_double)
        ->split(&points.arrays, begin, end, n_first, &scratch.arrays, scratch_end);
    check_same_points(&points, cloud, n, n_padded, begin, is_double);
    check_order(&points, begin, end, n_first, is_double);
    assert_untouched(&points, 0, begin);
    assert_untouched(&points, end, end + W);
    assert_untouched(&scratch, 0, scratch_end - n_other - W);
    assert_untouched(&scratch, scratch_end, scratch_end + W);
    guarded_arrays_destroy(&points);
    guarded_arrays_destroy(&scratch);
    free(cloud);
}

static void test_splits(void **state)
{
    (void)state;
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        if (grvi_neighbour_kernels_for((grvi_isa)isa, false) == NULL) continue;
        for (int kind = 0; kind < CLOUD_COUNT; kind++) {
            for (int64_t n = 17; n <= 1000; n += n < 100 ? 5 : 181) {
                for (int which = 0; which < 2; which++) {
                    check_split((grvi_isa)isa, kind, which == 1, n, GRVI_TREE_WIDTH);
                    check_split((grvi_isa)isa, kind, which == 1, n,
                                (n + 15) / 32 * GRVI_TREE_WIDTH);
                    check_split((grvi_isa)isa, kind, which == 1, n,
                                (n - 1) / GRVI_TREE_WIDTH * GRVI_TREE_WIDTH);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trees), cmocka_unit_test(test_runs),
                                       cmocka_unit_test(test_short_rows),
                                       cmocka_unit_test(test_splits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
