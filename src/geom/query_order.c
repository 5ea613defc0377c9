/* Morton order: the leading bits of the coordinates, scaled to the queries' longest extent, interleaved; a radix sort of these keys, stable, by
 * threads that each count and place their own part. 33 bits in three passes. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "geom/query_order.h"
#include "grove/core.h"

enum { DIGIT_BITS = 11, N_DIGITS = 1 << DIGIT_BITS, N_PASSES = 3, KEY_SHIFT = 31 };

typedef struct query_sort {
    const void *queries;
    int64_t n;
    int dimension, shift;
    bool is_double;
    double origin[3], scale, n_cells; /* cells along the longest extent */
    uint64_t *from, *to;              /* [n] key << 31 | query */
    int64_t *places;                  /* [n_threads][N_DIGITS] counts, then where the next goes */
    double *boxes;                    /* [n_threads][6] */
} query_sort;

static double coordinate(const query_sort *s, int64_t i, int d)
{
    const int64_t at = i * s->dimension + d;
    return s->is_double ? ((const double *)s->queries)[at]
                        : (double)((const float *)s->queries)[at];
}

/* Coordinates that are not finite, or so large that their differences may not be, are left out of the box. */
static void enclose(void *argument, int thread, int64_t begin, int64_t end)
{
    const query_sort *const s = argument;
    double *const box = s->boxes + 6 * thread;
    for (int d = 0; d < s->dimension; d++) {
        double low = (double)INFINITY, high = -low;
        for (int64_t i = begin; i < end; i++) {
            const double x = coordinate(s, i, d);
            if (!(fabs(x) < 1e150)) continue;
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        box[d] = low;
        box[3 + d] = high;
    }
}

/* Puts two zero bits between each of the low eleven. */
static uint64_t spread_three(uint64_t a)
{
    a = (a | a << 16) & 0xff0000ffU;
    a = (a | a << 8) & 0x0f00f00fU;
    a = (a | a << 4) & 0xc30c30c3U;
    return (a | a << 2) & 0x49249249U;
}

/* Puts a zero bit between each of the low sixteen. */
static uint64_t spread_two(uint64_t a)
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
        uint64_t cell[3] = {0};
        for (int d = 0; d < s->dimension; d++) {
            const double place = (coordinate(s, i, d) - s->origin[d]) * s->scale;
            if (place >= 0 && place < s->n_cells) cell[d] = (uint64_t)place;
        }
        const uint64_t key =
            s->dimension == 3
                ? spread_three(cell[0]) | spread_three(cell[1]) << 1 | spread_three(cell[2]) << 2
                : spread_two(cell[0]) | spread_two(cell[1]) << 1;
        s->from[i] = key << KEY_SHIFT | (uint64_t)i;
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
    for (int64_t i = begin; i < end; i++) s->to[i] = s->from[i] & ((1U << KEY_SHIFT) - 1);
}

/* Cells are cubes: the longest extent of the queries' box has n_cells of them. */
static void set_scale(query_sort *s, int n_threads)
{
    double extent = 0;
    grv_parallel_for(n_threads, s->n, enclose, s);
    s->n_cells = s->dimension == 3 ? 1 << 11 : 1 << 16;
    for (int d = 0; d < s->dimension; d++) {
        double low = s->boxes[d], high = s->boxes[3 + d];
        for (int t = 1; t < n_threads; t++) {
            low = fmin(low, s->boxes[6 * t + d]);
            high = fmax(high, s->boxes[6 * t + 3 + d]);
        }
        s->origin[d] = low;
        extent = fmax(extent, high - low);
    }
    s->scale = (s->n_cells - 0.5) / extent; /* infinite without extent: all in the first cell */
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
