/* Farthest point sampling. Points lie in buckets along a Morton curve; a bucket knows its box and its farthest point. A new sample only concerns
 * buckets whose box is nearer to it than their farthest point is to the samples so far; rounding is monotonic, so the box's squared distance, computed
 * in the same order, is never above that of a point inside. Exact; O(n log n + k n / 128 + the points of the buckets concerned). */
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "geom/point_sampling_impl.h"
#include "grove/core.h"
#include "grove/point_sampling.h"

enum { BUCKET = 128 };

typedef struct item {
    double x[3];
    double distance2; /* to the samples so far; -1 for samples */
    int64_t number;
} item;

typedef struct bucket {
    double lower[3], upper[3];
    double distance2; /* of its farthest item */
    int64_t farthest; /* item */
} bucket;

typedef struct keyed {
    uint64_t key;
    int64_t number;
} keyed;

typedef struct farthest_call {
    int64_t n, n_buckets;
    item *items;
    bucket *buckets;
    double sample[3];
    int64_t *best; /* [n_threads] bucket */
} farthest_call;

static int compare_keyed(const void *a, const void *b)
{
    const keyed *const p = a, *const q = b;
    if (p->key != q->key) return p->key < q->key ? -1 : 1;
    return (p->number > q->number) - (p->number < q->number);
}

/* Twenty bits of each axis, from the highest. */
static uint64_t morton(const double x[3], const double lower[3], double scale)
{
    uint64_t key = 0, place[3];
    for (int k = 0; k < 3; k++) place[k] = scale > 0 ? (uint64_t)((x[k] - lower[k]) * scale) : 0;
    for (int bit = 19; bit >= 0; bit--)
        for (int k = 0; k < 3; k++) key = key << 1 | (place[k] >> bit & 1);
    return key;
}

static grv_status fill_items(farthest_call *call, const void *points, bool is_double)
{
    double lower[3] = {(double)INFINITY, (double)INFINITY, (double)INFINITY},
           upper[3] = {-lower[0], -lower[0], -lower[0]}, extent = 0;
    for (int64_t i = 0; i < 3 * call->n; i++) {
        const double x = grvi_real_get(points, is_double, i);
        GRV_CHECK(isfinite(x), GRV_E_ARG, "point %lld: finite coordinates expected, %g found",
                  (long long)(i / 3), x);
        lower[i % 3] = fmin(lower[i % 3], x);
        upper[i % 3] = fmax(upper[i % 3], x);
    }
    for (int k = 0; k < 3; k++) extent = fmax(extent, upper[k] - lower[k]);
    const double scale = extent > 0 && isfinite(extent) ? 1048575.0 / extent : 0;
    keyed *order = NULL;
    GRV_TRY(GRVI_ALLOC(&order, call->n));
    for (int64_t i = 0; i < call->n; i++) {
        double x[3];
        for (int k = 0; k < 3; k++) x[k] = grvi_real_get(points, is_double, 3 * i + k);
        order[i] = (keyed){morton(x, lower, scale), i};
    }
    qsort(order, (size_t)call->n, sizeof *order, compare_keyed);
    for (int64_t i = 0; i < call->n; i++) {
        item *const it = &call->items[i];
        it->number = order[i].number;
        it->distance2 = (double)INFINITY;
        for (int k = 0; k < 3; k++) it->x[k] = grvi_real_get(points, is_double, 3 * it->number + k);
    }
    grv_free(order);
    return GRV_OK;
}

static bool is_farther(const farthest_call *call, double d2, int64_t i, double other_d2,
                       int64_t other)
{
    return d2 > other_d2 || (d2 == other_d2 && call->items[i].number < call->items[other].number);
}

/* Counts the sample in, for the items of a bucket. */
static void update_bucket(const farthest_call *call, bucket *b, int64_t first, int64_t end)
{
    b->distance2 = -2;
    for (int64_t i = first; i < end; i++) {
        item *const it = &call->items[i];
        const double dx = it->x[0] - call->sample[0], dy = it->x[1] - call->sample[1],
                     dz = it->x[2] - call->sample[2];
        const double d2 = dx * dx + dy * dy + dz * dz;
        if (d2 < it->distance2) it->distance2 = d2;
        if (b->distance2 < -1 || is_farther(call, it->distance2, i, b->distance2, b->farthest)) {
            b->distance2 = it->distance2;
            b->farthest = i;
        }
    }
}

static void update_range(void *argument, int thread, int64_t begin, int64_t end)
{
    const farthest_call *const call = argument;
    int64_t best = begin;
    for (int64_t i = begin; i < end; i++) {
        bucket *const b = &call->buckets[i];
        double d[3];
        for (int k = 0; k < 3; k++)
            d[k] = fmax(fmax(b->lower[k] - call->sample[k], call->sample[k] - b->upper[k]), 0);
        if (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] < b->distance2)
            update_bucket(call, b, i * BUCKET, grvi_min_i64((i + 1) * BUCKET, call->n));
        const bucket *const other = &call->buckets[best];
        if (is_farther(call, b->distance2, b->farthest, other->distance2, other->farthest))
            best = i;
    }
    call->best[thread] = best;
}

static void fill_buckets(farthest_call *call)
{
    for (int64_t i = 0; i < call->n_buckets; i++) {
        bucket *const b = &call->buckets[i];
        *b = (bucket){.distance2 = (double)INFINITY, .farthest = i * BUCKET};
        for (int k = 0; k < 3; k++) {
            b->lower[k] = (double)INFINITY;
            b->upper[k] = -b->lower[k];
            for (int64_t j = i * BUCKET; j < grvi_min_i64((i + 1) * BUCKET, call->n); j++) {
                b->lower[k] = fmin(b->lower[k], call->items[j].x[k]);
                b->upper[k] = fmax(b->upper[k], call->items[j].x[k]);
            }
        }
    }
}

/* Marks an item as a sample; its bucket is looked at next, whatever its box. */
static void take(farthest_call *call, int64_t i)
{
    call->items[i].distance2 = -1;
    call->buckets[i / BUCKET].distance2 = (double)INFINITY;
    for (int k = 0; k < 3; k++) call->sample[k] = call->items[i].x[k];
}

static void choose(farthest_call *call, int64_t start, int64_t k, int n_threads, int64_t *order,
                   double *distance)
{
    int64_t at = 0;
    while (call->items[at].number != start) at++;
    for (int64_t i = 0; i < k; i++) {
        order[i] = call->items[at].number;
        if (distance != NULL) distance[i] = sqrt(call->items[at].distance2);
        take(call, at);
        for (int t = 0; t < n_threads; t++) call->best[t] = -1;
        grv_parallel_for(n_threads, call->n_buckets, update_range, call);
        const bucket *best = &call->buckets[call->best[0]];
        for (int t = 1; t < n_threads && call->best[t] >= 0; t++) {
            const bucket *const other = &call->buckets[call->best[t]];
            if (is_farther(call, other->distance2, other->farthest, best->distance2,
                           best->farthest))
                best = other;
        }
        at = best->farthest;
    }
}

static grv_status sample(int64_t n, const void *points, bool is_double, int64_t start, int64_t k,
                         int n_threads, int64_t *order, double *distance)
{
    grv_status status = GRV_OK;
    if (n_threads < 1) n_threads = 1;
    farthest_call call = {.n = n, .n_buckets = n / BUCKET + (n % BUCKET != 0)};
    GRV_CHECK(k >= 1 && k <= n, GRV_E_ARG,
              "%lld of %lld points: at least one and at most all expected", (long long)k,
              (long long)n);
    GRV_CHECK(start >= 0 && start < n, GRV_E_ARG,
              "start: a point of 0 to %lld expected, %lld found", (long long)(n - 1),
              (long long)start);
    GRV_TRY_GOTO(GRVI_ALLOC(&call.items, n));
    GRV_TRY_GOTO(GRVI_ALLOC(&call.buckets, call.n_buckets));
    GRV_TRY_GOTO(GRVI_ALLOC(&call.best, (int64_t)n_threads));
    GRV_TRY_GOTO(fill_items(&call, points, is_double));
    fill_buckets(&call);
    choose(&call, start, k, n_threads, order, distance);
done:
    grv_free(call.items);
    grv_free(call.buckets);
    grv_free(call.best);
    return status;
}

grv_status grv_sample_farthest_f64(int64_t n, const double *points, int64_t start, int64_t k,
                                   int n_threads, int64_t *order, double *distance)
{
    GRV_TRY(sample(n, points, true, start, k, n_threads, order, distance));
    return GRV_OK;
}

grv_status grv_sample_farthest_f32(int64_t n, const float *points, int64_t start, int64_t k,
                                   int n_threads, int64_t *order, double *distance)
{
    GRV_TRY(sample(n, points, false, start, k, n_threads, order, distance));
    return GRV_OK;
}
