/* Many points at once: scattered ones in pieces, each sorted along a Morton curve, so that the closest point of one bounds the search of the next. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "geom/surface_impl.h"
#include "grove/core.h"

enum {
    MAX_PIECE = 1 << 18,
    MIN_PIECE = 1 << 12,
    PIECES_PER_THREAD = 4,
    DIGIT_BITS = 10,
    DIGITS = 1 << DIGIT_BITS
};

grv_surface_query grv_surface_query_default(void)
{
    return (grv_surface_query){
        .max_distance = (double)INFINITY, .band = (double)INFINITY, .n_threads = 1};
}

grv_status grvi_surface_query_check(const grv_surface *surface, const grv_surface_query *query,
                                    const grvi_surface_sink *sink)
{
    GRV_CHECK(query->max_distance >= 0, GRV_E_ARG, "max_distance: at least 0 expected, %g found",
              query->max_distance);
    GRV_CHECK(query->band > 0, GRV_E_ARG, "band: a positive number expected, %g found",
              query->band);
    GRV_CHECK(sink->winding == NULL || surface->params.sign == GRV_SURFACE_WINDING, GRV_E_ARG,
              "winding numbers asked of a surface that was not prepared for them");
    return GRV_OK;
}

static void put(void *array, bool is_double, int64_t i, double value)
{
    if (array == NULL) return;
    if (is_double)
        ((double *)array)[i] = value;
    else
        ((float *)array)[i] = (float)value;
}

void grvi_surface_put(const grv_surface *surface, const grvi_surface_sink *sink, int64_t i,
                      const grvi_surface_found *found)
{
    put(sink->distance, sink->is_double, i,
        found->triangle < 0 ? found->distance : found->sign * (found->distance / surface->to_tree));
    put(sink->winding, sink->is_double, i, found->winding);
    for (int k = 0; k < 3; k++) {
        put(sink->closest, sink->is_double, 3 * i + k,
            surface->centre[k] + found->closest[k] / surface->to_tree);
        put(sink->barycentric, sink->is_double, 3 * i + k, found->weight[k]);
    }
    if (sink->triangle != NULL) sink->triangle[i] = found->triangle;
    if (sink->exact != NULL) sink->exact[i] = 1;
}

static void copy(void *array, bool is_double, int64_t i, int64_t source, int64_t n)
{
    const size_t size = is_double ? sizeof(double) : sizeof(float);
    if (array != NULL)
        memcpy((char *)array + (size_t)(i * n) * size, (char *)array + (size_t)(source * n) * size,
               (size_t)n * size);
}

void grvi_surface_put_swept(const grv_surface *surface, const grvi_surface_sink *sink, int64_t i,
                            int64_t source, double distance, int sign)
{
    put(sink->distance, sink->is_double, i, sign * (distance / surface->to_tree));
    copy(sink->closest, sink->is_double, i, source, 3);
    copy(sink->barycentric, sink->is_double, i, source, 3);
    if (sink->triangle != NULL) sink->triangle[i] = sink->triangle[source];
    if (sink->exact != NULL) sink->exact[i] = 0;
}

/* ---- scattered points ---- */

typedef struct point_call {
    const grv_surface *surface;
    const grvi_surface_sink *sink;
    int64_t n, piece;
    const void *points;
    double max_distance; /* tree coordinates */
    uint64_t *scratch;   /* [n_threads][2][piece] */
    atomic_llong next;
} point_call;

static void point_get(const point_call *call, int64_t i, double x[3])
{
    double point[3];
    for (int k = 0; k < 3; k++)
        point[k] = call->sink->is_double ? ((const double *)call->points)[3 * i + k]
                                         : (double)((const float *)call->points)[3 * i + k];
    grvi_surface_to_tree(call->surface, point, x);
}

/* Ten bits, with two zeros before each. */
static uint64_t spread(uint64_t bits)
{
    bits = (bits | bits << 16) & 0x030000ffU;
    bits = (bits | bits << 8) & 0x0300f00fU;
    bits = (bits | bits << 4) & 0x030c30c3U;
    return (bits | bits << 2) & 0x09249249U;
}

/* Sorts by the high 32 bits, of which 30 are used; three passes, so that the result stands in the second array. */
static uint64_t *sort_keys(int64_t n, uint64_t *keys, uint64_t *other)
{
    for (int pass = 0; pass < 3; pass++) {
        int64_t begin[DIGITS + 1] = {0};
        const int shift = 32 + pass * DIGIT_BITS;
        for (int64_t i = 0; i < n; i++) begin[(keys[i] >> shift & (DIGITS - 1)) + 1]++;
        for (int d = 0; d < DIGITS; d++) begin[d + 1] += begin[d];
        for (int64_t i = 0; i < n; i++) other[begin[keys[i] >> shift & (DIGITS - 1)]++] = keys[i];
        uint64_t *const swap = keys;
        keys = other;
        other = swap;
    }
    return keys;
}

/* Numbers of a piece's points, from its first, along the curve in the low halves. Points that are not finite come first. */
static const uint64_t *order_piece(const point_call *call, int64_t first, int64_t n,
                                   uint64_t *scratch)
{
    double low[3] = {(double)INFINITY, (double)INFINITY, (double)INFINITY},
           high[3] = {-low[0], -low[0], -low[0]}, x[3];
    for (int64_t i = 0; i < n; i++) {
        point_get(call, first + i, x);
        for (int k = 0; k < 3; k++) {
            if (!(fabs(x[k]) < 1e150)) continue;
            low[k] = fmin(low[k], x[k]);
            high[k] = fmax(high[k], x[k]);
        }
    }
    double extent = 0;
    for (int k = 0; k < 3; k++) extent = fmax(extent, high[k] - low[k]);
    const double scale = extent > 0 ? 1023.999 / extent : 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = 0;
        point_get(call, first + i, x);
        for (int k = 0; k < 3; k++) {
            const double place = (x[k] - low[k]) * scale;
            if (place >= 0 && place < 1024) key |= spread((uint64_t)place) << k;
        }
        scratch[i] = key << 32 | (uint64_t)i;
    }
    return sort_keys(n, scratch, scratch + call->piece);
}

static void find_pieces(void *argument, int thread, int64_t begin, int64_t end)
{
    point_call *const call = argument;
    uint64_t *const scratch = call->scratch + 2 * thread * call->piece;
    grvi_surface_memory memory = {0};
    grvi_surface_found found;
    (void)begin;
    (void)end;
    for (int64_t first = atomic_fetch_add(&call->next, call->piece); first < call->n;
         first = atomic_fetch_add(&call->next, call->piece)) {
        const int64_t n = grvi_min_i64(call->piece, call->n - first);
        const uint64_t *const order = order_piece(call, first, n, scratch);
        for (int64_t i = 0; i < n; i++) {
            const int64_t number = first + (int64_t)(order[i] & UINT32_MAX);
            double x[3];
            point_get(call, number, x);
            grvi_surface_find(call->surface, x, call->max_distance, call->sink->winding != NULL,
                              &memory, &found);
            grvi_surface_put(call->surface, call->sink, number, &found);
        }
    }
}

static grv_status find_points(const grv_surface *surface, int64_t n, const void *points,
                              const grv_surface_query *query, const grvi_surface_sink *sink)
{
    const grv_surface_query defaults = grv_surface_query_default();
    if (query == NULL) query = &defaults;
    GRV_CHECK(n >= 0, GRV_E_ARG, "points: at least 0 expected, %lld found", (long long)n);
    GRV_TRY(grvi_surface_query_check(surface, query, sink));
    if (n == 0) return GRV_OK;
    const int n_threads = query->n_threads < 1 ? 1 : query->n_threads;
    const int64_t share =
        grvi_ceil_div(n, n_threads == 1 ? 1 : (int64_t)n_threads * PIECES_PER_THREAD);
    point_call call = {.surface = surface,
                       .sink = sink,
                       .n = n,
                       .points = points,
                       .max_distance = query->max_distance * surface->to_tree};
    call.piece = grvi_min_i64(grvi_max_i64(share, MIN_PIECE), MAX_PIECE);
    GRV_TRY(GRVI_ALLOC(&call.scratch, 2 * n_threads * call.piece));
    grv_parallel_for(n_threads, n_threads, find_pieces, &call);
    grv_free(call.scratch);
    return GRV_OK;
}

grv_status grv_surface_points_f64(const grv_surface *surface, int64_t n, const double *points,
                                  const grv_surface_query *query,
                                  const grv_surface_result_f64 *result)
{
    const grvi_surface_sink sink = {true,
                                    result->distance,
                                    result->closest,
                                    result->barycentric,
                                    result->winding,
                                    result->triangle,
                                    result->exact};
    GRV_TRY(find_points(surface, n, points, query, &sink));
    return GRV_OK;
}

grv_status grv_surface_points_f32(const grv_surface *surface, int64_t n, const float *points,
                                  const grv_surface_query *query,
                                  const grv_surface_result_f32 *result)
{
    const grvi_surface_sink sink = {
        false,           result->distance, result->closest, result->barycentric,
        result->winding, result->triangle, result->exact};
    GRV_TRY(find_points(surface, n, points, query, &sink));
    return GRV_OK;
}
