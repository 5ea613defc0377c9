/* Morton order: the leading bits of the coordinates, scaled to the queries' box, interleaved; a radix sort of these keys, stable, by threads that
 * each count and place their own part. 30 bits in three passes. */
#include <string.h>

#include "core/alloc.h"
#include "geom/query_order.h"
#include "grove/core.h"

enum { DIGIT_BITS = 10, N_DIGITS = 1 << DIGIT_BITS, N_PASSES = 3, KEY_SHIFT = 32 };

typedef struct query_sort {
    const void *queries;
    int64_t n;
    int dimension, shift;
    bool is_double;
    double origin[3], scale[3];
    uint64_t *from, *to; /* [n] key << 32 | query */
    int64_t *places;     /* [n_threads][N_DIGITS] counts, then where the next goes */
    double *boxes;       /* [n_threads][6] */
} query_sort;

static double coordinate(const query_sort *s, int64_t i, int d)
{
    const int64_t at = i * s->dimension + d;
    return s->is_double ? ((const double *)s->queries)[at]
                        : (double)((const float *)s->queries)[at];
}

static void enclose(void *argument, int thread, int64_t begin, int64_t end)
{
    const query_sort *const s = argument;
    double *const box = s->boxes + 6 * thread;
    for (int d = 0; d < s->dimension; d++) {
        double low = coordinate(s, begin, d), high = low;
        for (int64_t i = begin + 1; i < end; i++) {
            const double x = coordinate(s, i, d);
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        box[d] = low;
        box[3 + d] = high;
    }
}

/* Puts two zero bits between each of the low ten. */
static uint32_t spread_three(uint32_t a)
{
    a = (a | a << 16) & 0x030000ffU;
    a = (a | a << 8) & 0x0300f00fU;
    a = (a | a << 4) & 0x030c30c3U;
    return (a | a << 2) & 0x09249249U;
}

/* Puts a zero bit between each of the low fifteen. */
static uint32_t spread_two(uint32_t a)
{
    a = (a | a << 8) & 0x00ff00ffU;
    a = (a | a << 4) & 0x0f0f0f0fU;
    a = (a | a << 2) & 0x33333333U;
    return (a | a << 1) & 0x55555555U;
}

static void make_keys(void *argument, int thread, int64_t begin, int64_t end)
{
    const query_sort *const s = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        uint32_t cell[3] = {0};
        for (int d = 0; d < s->dimension; d++)
            cell[d] = (uint32_t)((coordinate(s, i, d) - s->origin[d]) * s->scale[d]);
        const uint32_t key =
            s->dimension == 3
                ? spread_three(cell[0]) | spread_three(cell[1]) << 1 | spread_three(cell[2]) << 2
                : spread_two(cell[0]) | spread_two(cell[1]) << 1;
        s->from[i] = (uint64_t)key << KEY_SHIFT | (uint64_t)i;
    }
}

static int digit(const query_sort *s, uint64_t word)
{
    return (int)(word >> s->shift) & (N_DIGITS - 1);
}

static void count_digits(void *argument, int thread, int64_t begin, int64_t end)
{
    const query_sort *const s = argument;
    int64_t *const count = s->places + (int64_t)thread * N_DIGITS;
    for (int64_t i = begin; i < end; i++) count[digit(s, s->from[i])]++;
}

static void place_words(void *argument, int thread, int64_t begin, int64_t end)
{
    const query_sort *const s = argument;
    int64_t *const place = s->places + (int64_t)thread * N_DIGITS;
    for (int64_t i = begin; i < end; i++) s->to[place[digit(s, s->from[i])]++] = s->from[i];
}

static void drop_keys(void *argument, int thread, int64_t begin, int64_t end)
{
    const query_sort *const s = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) s->to[i] = s->from[i] & UINT32_MAX;
}

/* Box of the queries; a scale that takes it to [0, 2^bits), halved first because extents may overflow. */
static void set_scale(query_sort *s, int n_threads)
{
    grv_parallel_for(n_threads, s->n, enclose, s);
    const double cells = s->dimension == 3 ? 1 << 10 : 1 << 15;
    for (int d = 0; d < s->dimension; d++) {
        double low = s->boxes[d], high = s->boxes[3 + d];
        for (int t = 1; t < n_threads; t++) {
            low = s->boxes[6 * t + d] < low ? s->boxes[6 * t + d] : low;
            high = s->boxes[6 * t + 3 + d] > high ? s->boxes[6 * t + 3 + d] : high;
        }
        /* just below the number of cells; extents that over- or underflow leave the axis out of the order */
        const double scale = (cells - 0.5) / (high - low);
        s->origin[d] = low;
        s->scale[d] = high - low <= 1e300 && scale <= 1e300 ? scale : 0;
    }
}

static int threads_for(int64_t n, int n_threads)
{
    return n_threads < 1 ? 1 : n < n_threads ? (int)n : n_threads;
}

int64_t grvi_query_order_words(int64_t n, int n_threads)
{
    return 2 * n + (int64_t)threads_for(n, n_threads) * (N_DIGITS + 6);
}

void grvi_query_order(const void *queries, int64_t n, int dimension, bool is_double, int n_threads,
                      uint64_t *scratch)
{
    const int threads = threads_for(n, n_threads);
    query_sort s = {.queries = queries,
                    .n = n,
                    .dimension = dimension,
                    .is_double = is_double,
                    .from = scratch + n,
                    .to = scratch};
    s.places = (int64_t *)(scratch + 2 * n);
    s.boxes = (double *)(void *)(s.places + (int64_t)threads * N_DIGITS);
    if (n == 0) return;
    set_scale(&s, threads);
    grv_parallel_for(threads, n, make_keys, &s);
    for (int pass = 0; pass < N_PASSES; pass++) {
        s.shift = KEY_SHIFT + pass * DIGIT_BITS;
        memset(s.places, 0, (size_t)threads * N_DIGITS * sizeof *s.places);
        grv_parallel_for(threads, n, count_digits, &s);
        int64_t total = 0;
        for (int64_t d = 0; d < N_DIGITS; d++) {
            for (int64_t t = 0; t < threads; t++) {
                const int64_t count = s.places[t * N_DIGITS + d];
                s.places[t * N_DIGITS + d] = total;
                total += count;
            }
        }
        grv_parallel_for(threads, n, place_words, &s);
        uint64_t *const sorted = s.to;
        s.to = s.from;
        s.from = sorted;
    }
    /* an odd number of passes: the sorted words are in the first half already */
    s.to = scratch;
    grv_parallel_for(threads, n, drop_keys, &s);
}
