/* Subsets without replacement: a Fisher-Yates shuffle whose array exists only where it differs from the identity; weighted ones by exponential keys. */
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/point_sampling.h"

/* Array elements that are not their own number: open addressing, key -1 empty. */
typedef struct sparse_array {
    int64_t *key, *value;
    uint64_t mask;
} sparse_array;

static uint64_t place_of(const sparse_array *array, int64_t key)
{
    uint64_t at = ((uint64_t)key * 0x9e3779b97f4a7c15U >> 20) & array->mask;
    while (array->key[at] >= 0 && array->key[at] != key) at = (at + 1) & array->mask;
    return at;
}

static int64_t sparse_get(const sparse_array *array, int64_t key)
{
    const uint64_t at = place_of(array, key);
    return array->key[at] == key ? array->value[at] : key;
}

static void sparse_set(sparse_array *array, int64_t key, int64_t value)
{
    const uint64_t at = place_of(array, key);
    array->key[at] = key;
    array->value[at] = value;
}

/* Uniform in [0, n): the high half of a 128-bit product; its bias is below n / 2^64. */
static int64_t below(uint64_t bits, int64_t n)
{
    const uint64_t high = bits >> 32, low = bits & UINT32_MAX, n_high = (uint64_t)n >> 32,
                   n_low = (uint64_t)n & UINT32_MAX;
    const uint64_t middle = high * n_low + (low * n_low >> 32),
                   middle2 = low * n_high + (middle & UINT32_MAX);
    return (int64_t)(high * n_high + (middle >> 32) + (middle2 >> 32));
}

grv_status grv_sample_subset(uint64_t seed, uint64_t stream, int64_t n, int64_t k, int64_t *subset)
{
    grv_status status = GRV_OK;
    sparse_array array = {0};
    int64_t room = 16;
    GRV_CHECK(k >= 0 && k <= n, GRV_E_ARG, "%lld of %lld: at most all expected", (long long)k,
              (long long)n);
    GRV_CHECK(k <= INT64_MAX / 64, GRV_E_NOMEM, "a subset of %lld", (long long)k);
    while (room < 2 * k) room *= 2;
    GRV_TRY_GOTO(GRVI_ALLOC(&array.key, room));
    GRV_TRY_GOTO(GRVI_ALLOC(&array.value, room));
    array.mask = (uint64_t)room - 1;
    for (int64_t i = 0; i < room; i++) array.key[i] = -1;
    for (int64_t i = 0; i < k; i++) {
        const int64_t j = i + below(grv_random_bits(seed, stream, (uint64_t)i), n - i);
        subset[i] = sparse_get(&array, j);
        if (j != i) sparse_set(&array, j, sparse_get(&array, i));
    }
done:
    grv_free(array.key);
    grv_free(array.value);
    return status;
}

/* ---- weighted ---- */

typedef struct keyed {
    double key;
    int64_t index;
} keyed;

static int compare_keyed(const void *a, const void *b)
{
    const keyed *const p = a, *const q = b;
    if (p->key != q->key) return p->key < q->key ? -1 : 1;
    return (p->index > q->index) - (p->index < q->index);
}

/* Moves the k smallest to the front (Hoare's selection; the pivots are random in effect, because keys are). */
static void select_smallest(keyed *items, int64_t n, int64_t k)
{
    int64_t begin = 0, end = n;
    while (end - begin > 1 && k > begin && k < end) {
        const keyed pivot = items[begin + (end - begin) / 2];
        int64_t i = begin, j = end - 1;
        while (i <= j) {
            while (compare_keyed(&items[i], &pivot) < 0) i++;
            while (compare_keyed(&items[j], &pivot) > 0) j--;
            if (i > j) break;
            const keyed swap = items[i];
            items[i++] = items[j];
            items[j--] = swap;
        }
        if (k <= j + 1)
            end = j + 1;
        else if (k >= i)
            begin = i;
        else
            return;
    }
}

grv_status grv_sample_subset_weighted(uint64_t seed, uint64_t stream, int64_t n,
                                      const double *weights, int64_t k, int64_t *subset)
{
    grv_status status = GRV_OK;
    keyed *items = NULL;
    int64_t n_positive = 0;
    GRV_CHECK(n >= 0 && k >= 0, GRV_E_ARG, "%lld of %lld", (long long)k, (long long)n);
    GRV_TRY(GRVI_ALLOC(&items, n));
    for (int64_t i = 0; i < n; i++) {
        GRV_CHECK_GOTO(isfinite(weights[i]) && weights[i] >= 0, GRV_E_ARG,
                       "weight %lld: a finite number >= 0 expected, %g found", (long long)i,
                       weights[i]);
        /* 1 - u is in (0, 1] */
        if (weights[i] > 0)
            items[n_positive++] =
                (keyed){-log(1 - grv_random_uniform(seed, stream, (uint64_t)i)) / weights[i], i};
    }
    GRV_CHECK_GOTO(k <= n_positive, GRV_E_ARG,
                   "%lld of %lld with a positive weight: at most all expected", (long long)k,
                   (long long)n_positive);
    select_smallest(items, n_positive, k);
    qsort(items, (size_t)k, sizeof *items, compare_keyed);
    for (int64_t i = 0; i < k; i++) subset[i] = items[i].index;
done:
    grv_free(items);
    return status;
}
