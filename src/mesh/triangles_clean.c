/* Dropping triangles without area, copies of triangles, and points that nothing uses. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/triangles_impl.h"

static bool is_degenerate(const grv_triangles *t, const int32_t *ids)
{
    double p[3][3];
    bool has_area = false;
    if (ids[0] == ids[1] || ids[1] == ids[2] || ids[2] == ids[0]) return true;
    for (int k = 0; k < 3; k++) {
        grvi_point_get(t, ids[k], p[k]);
        if (!isfinite(p[k][0]) || !isfinite(p[k][1]) || !isfinite(p[k][2])) return true;
    }
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        has_area |=
            (p[1][j] - p[0][j]) * (p[2][k] - p[0][k]) - (p[1][k] - p[0][k]) * (p[2][j] - p[0][j]) !=
            0;
    }
    return !has_area;
}

static void sorted(const int32_t *ids, int32_t out[3])
{
    const int32_t low = ids[0] < ids[1] ? ids[0] : ids[1], high = ids[0] < ids[1] ? ids[1] : ids[0];
    out[0] = low < ids[2] ? low : ids[2];
    out[2] = high > ids[2] ? high : ids[2];
    out[1] = (int32_t)((int64_t)ids[0] + ids[1] + ids[2] - out[0] - out[2]);
}

static int64_t bucket_of(const int32_t key[3], int64_t n_heads)
{
    uint64_t hash = (uint64_t)key[0] * 0x9e3779b97f4a7c15U;
    hash = (hash ^ hash >> 32 ^ (uint64_t)key[1]) * 0xc2b2ae3d27d4eb4fU;
    hash = (hash ^ hash >> 29 ^ (uint64_t)key[2]) * 0x165667b19e3779f9U;
    return (int64_t)((hash ^ hash >> 32) & (uint64_t)(n_heads - 1));
}

/* Moves what stays to the front; heads and next are a table of those. */
static void drop_triangles(grv_triangles *t, int32_t *heads, int64_t n_heads, int32_t *next,
                           grv_triangles_cleaned *cleaned)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n_triangles; i++) {
        int32_t key[3], other[3];
        if (is_degenerate(t, t->triangles + 3 * i)) {
            cleaned->n_degenerate++;
            continue;
        }
        sorted(t->triangles + 3 * i, key);
        const int64_t bucket = bucket_of(key, n_heads);
        int32_t k = heads[bucket];
        for (; k >= 0; k = next[k]) {
            sorted(t->triangles + 3 * (int64_t)k, other);
            if (memcmp(key, other, sizeof key) == 0) break;
        }
        if (k >= 0) {
            cleaned->n_duplicate++;
            continue;
        }
        next[n] = heads[bucket];
        heads[bucket] = (int32_t)n;
        memmove(t->triangles + 3 * n, t->triangles + 3 * i, sizeof key);
        t->faces[n++] = t->faces[i];
    }
    t->n_triangles = n;
}

static void drop_points(grv_triangles *t, int32_t *numbers, grv_triangles_cleaned *cleaned)
{
    const size_t n_bytes = (size_t)grvi_point_bytes(t);
    uint8_t *const points = t->points;
    int64_t n = 0;
    memset(numbers, 0xff, (size_t)t->n_points * sizeof *numbers);
    for (int64_t i = 0; i < 3 * t->n_triangles; i++) numbers[t->triangles[i]] = 0;
    for (int64_t i = 0; i < t->n_points; i++) {
        if (numbers[i] < 0) continue;
        memmove(points + (size_t)n * n_bytes, points + (size_t)i * n_bytes, n_bytes);
        numbers[i] = (int32_t)n++;
    }
    for (int64_t i = 0; i < 3 * t->n_triangles; i++) t->triangles[i] = numbers[t->triangles[i]];
    cleaned->n_unused = t->n_points - n;
    t->n_points = n;
}

grv_status grv_triangles_clean(grv_triangles *t, grv_triangles_cleaned *cleaned)
{
    grv_status status = GRV_OK;
    grv_triangles_cleaned counts = {0};
    int32_t *heads = NULL, *next = NULL, *numbers = NULL;
    int64_t n_heads = 16;
    while (n_heads < 2 * t->n_triangles) n_heads *= 2;
    GRV_TRY_GOTO(GRVI_ALLOC(&heads, n_heads));
    GRV_TRY_GOTO(GRVI_ALLOC(&next, t->n_triangles));
    GRV_TRY_GOTO(GRVI_ALLOC(&numbers, t->n_points));
    memset(heads, 0xff, (size_t)n_heads * sizeof *heads);
    drop_triangles(t, heads, n_heads, next, &counts);
    drop_points(t, numbers, &counts);
    if (cleaned != NULL) *cleaned = counts;
done:
    grv_free(heads);
    grv_free(next);
    grv_free(numbers);
    return status;
}
