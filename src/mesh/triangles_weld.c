/* Joining points: by equal bits with one hash table, by distance with one over cells as wide as the tolerance, where all candidates lie in 27 cells around.
 * Both number points in their order, so that results do not depend on the table. Expected O(n); points that crowd in one cell are compared with all that were kept
 * there, which are at most a few since they are further apart than the tolerance. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/triangles_impl.h"

typedef struct weld_table {
    int32_t *heads; /* [n_heads], a power of two: first kept point of a bucket, -1: none */
    int32_t *next;  /* [n_points]: the next kept point of the bucket */
    int64_t n_heads;
    int32_t *joined; /* [n_points]: number of the kept point that each becomes */
    int32_t *kept;   /* [n_points]: the kept points, in order */
    int64_t n_kept;
} weld_table;

static grv_status table_init(weld_table *w, int64_t n)
{
    *w = (weld_table){.n_heads = 16};
    while (w->n_heads < 2 * n) w->n_heads *= 2;
    GRV_TRY(GRVI_ALLOC(&w->heads, w->n_heads));
    GRV_TRY(GRVI_ALLOC(&w->next, n));
    GRV_TRY(GRVI_ALLOC(&w->joined, n));
    GRV_TRY(GRVI_ALLOC(&w->kept, n));
    memset(w->heads, 0xff, (size_t)w->n_heads * sizeof *w->heads);
    return GRV_OK;
}

static void table_fini(weld_table *w)
{
    grv_free(w->heads);
    grv_free(w->next);
    grv_free(w->joined);
    grv_free(w->kept);
}

static int64_t bucket_of(const weld_table *w, const uint64_t key[3])
{
    uint64_t hash = key[0] * 0x9e3779b97f4a7c15U;
    hash = (hash ^ hash >> 32 ^ key[1]) * 0xc2b2ae3d27d4eb4fU;
    hash = (hash ^ hash >> 29 ^ key[2]) * 0x165667b19e3779f9U;
    return (int64_t)((hash ^ hash >> 32) & (uint64_t)(w->n_heads - 1));
}

/* Point i is kept and stands in a bucket, in front. */
static void keep(weld_table *w, int64_t i, int64_t bucket)
{
    w->next[w->n_kept] = w->heads[bucket];
    w->heads[bucket] = (int32_t)w->n_kept;
    w->kept[w->n_kept] = (int32_t)i;
    w->joined[i] = (int32_t)w->n_kept++;
}

/* ---- equal bits ---- */

/* Bits of the coordinates with -0 as 0. */
static void bits_of(const grv_triangles *t, int64_t i, uint64_t key[3])
{
    for (int axis = 0; axis < 3; axis++) {
        if (t->type == GRV_STORE_F32) {
            const float value = ((const float *)t->points)[3 * i + axis] + 0.0F;
            uint32_t bits = 0;
            memcpy(&bits, &value, sizeof bits);
            key[axis] = bits;
        } else {
            const double value = ((const double *)t->points)[3 * i + axis] + 0.0;
            memcpy(&key[axis], &value, sizeof key[axis]);
        }
    }
}

static void join_equal(const grv_triangles *t, weld_table *w)
{
    for (int64_t i = 0; i < t->n_points; i++) {
        uint64_t key[3], other[3];
        bits_of(t, i, key);
        const int64_t bucket = bucket_of(w, key);
        int32_t k = w->heads[bucket];
        for (; k >= 0; k = w->next[k]) {
            bits_of(t, w->kept[k], other);
            if (memcmp(key, other, sizeof key) == 0) break;
        }
        if (k >= 0)
            w->joined[i] = k;
        else
            keep(w, i, bucket);
    }
}

/* ---- near ones ---- */

/* Cell of a point; false where it has none: NaN, infinite, or so far out that cells cannot be told apart (then the tolerance is below its precision). */
static bool cell_of(const double point[3], double tolerance, int64_t cell[3])
{
    static const double most = 4503599627370496.0; /* 2^52 */
    for (int axis = 0; axis < 3; axis++) {
        const double place = floor(point[axis] / tolerance);
        if (!(place > -most && place < most)) return false;
        cell[axis] = (int64_t)place;
    }
    return true;
}

static bool is_near(const double a[3], const double b[3], double tolerance)
{
    const double x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
    return x * x + y * y + z * z <= tolerance * tolerance;
}

/* Lowest-numbered kept point within the tolerance, -1: none. */
static int32_t find_near(const grv_triangles *t, const weld_table *w, const double point[3],
                         const int64_t cell[3], double tolerance)
{
    int32_t best = -1;
    for (int i = 0; i < 27; i++) {
        const uint64_t key[3] = {(uint64_t)(cell[0] + i % 3 - 1),
                                 (uint64_t)(cell[1] + i / 3 % 3 - 1),
                                 (uint64_t)(cell[2] + i / 9 - 1)};
        for (int32_t k = w->heads[bucket_of(w, key)]; k >= 0; k = w->next[k]) {
            double other[3];
            if (best >= 0 && k >= best) continue;
            grvi_point_get(t, w->kept[k], other);
            if (is_near(point, other, tolerance)) best = k;
        }
    }
    return best;
}

static void join_near(const grv_triangles *t, double tolerance, weld_table *w)
{
    for (int64_t i = 0; i < t->n_points; i++) {
        double point[3];
        int64_t cell[3] = {0, 0, 0};
        grvi_point_get(t, i, point);
        if (!cell_of(point, tolerance, cell)) {
            /* it is kept, and in no bucket */
            w->kept[w->n_kept] = (int32_t)i;
            w->joined[i] = (int32_t)w->n_kept++;
            continue;
        }
        const uint64_t key[3] = {(uint64_t)cell[0], (uint64_t)cell[1], (uint64_t)cell[2]};
        const int32_t near = find_near(t, w, point, cell, tolerance);
        if (near >= 0)
            w->joined[i] = near;
        else
            keep(w, i, bucket_of(w, key));
    }
}

/* ---- both ---- */

static void apply(grv_triangles *t, const weld_table *w)
{
    const size_t n_bytes = (size_t)grvi_point_bytes(t);
    uint8_t *const points = t->points;
    /* kept points ascend and never stand before their new place */
    for (int64_t k = 0; k < w->n_kept; k++)
        memmove(points + (size_t)k * n_bytes, points + (size_t)w->kept[k] * n_bytes, n_bytes);
    for (int64_t i = 0; i < 3 * t->n_triangles; i++) t->triangles[i] = w->joined[t->triangles[i]];
    t->n_points = w->n_kept;
}

grv_status grv_triangles_weld(grv_triangles *t, double tolerance, int64_t *n_joined)
{
    weld_table w = {0}, near = {0};
    grv_status status = GRV_OK;
    const int64_t n_before = t->n_points;
    GRV_CHECK(tolerance >= 0 && isfinite(tolerance), GRV_E_ARG,
              "the tolerance must be >= 0 and finite, got %g", tolerance);
    GRV_TRY_GOTO(table_init(&w, t->n_points));
    if (tolerance > 0) GRV_TRY_GOTO(table_init(&near, t->n_points)); /* before anything changes */
    join_equal(t, &w);
    apply(t, &w);
    if (tolerance > 0) {
        join_near(t, tolerance, &near);
        apply(t, &near);
    }
    if (n_joined != NULL) *n_joined = n_before - t->n_points;
done:
    table_fini(&w);
    table_fini(&near);
    return status;
}
