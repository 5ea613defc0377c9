/* What happens to a row of results behind the search: roots, fill, gathered points, order by index. */
#include <math.h>
#include <string.h>

#include "geom/neighbours_impl.h"

static float square_root_f32(float a)
{
    return sqrtf(a);
}
static double square_root_f64(double a)
{
    return sqrt(a);
}

#define REAL    float
#define NAME(x) x##_f32
#include "geom/neighbour_rows_loops.h"
#undef REAL
#undef NAME
#define REAL    double
#define NAME(x) x##_f64
#include "geom/neighbour_rows_loops.h"

void grvi_rows_finish(bool is_double, bool keep_squared, int64_t n, int64_t n_places, double pad,
                      void *distances)
{
    if (is_double)
        finish_f64(keep_squared, n, n_places, pad, distances);
    else
        finish_f32(keep_squared, n, n_places, (float)pad, distances);
}

void grvi_rows_gather(bool is_double, int dimension, const void *points, const int32_t *indices,
                      int64_t n, int64_t n_places, void *out)
{
    const size_t point_bytes = (size_t)dimension * (is_double ? sizeof(double) : sizeof(float));
    char *const to = out;
    for (int64_t j = 0; j < n; j++)
        memcpy(to + (size_t)j * point_bytes,
               (const char *)points + (size_t)indices[j] * point_bytes, point_bytes);
    memset(to + (size_t)n * point_bytes, 0, (size_t)(n_places - n) * point_bytes);
}

/* Bottom-up merge sort: without branches on the data, a few steps a word. Returns where the sorted words are: a or b. */
static uint64_t *sort_words(int64_t n, uint64_t *a, uint64_t *b)
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            int64_t i = begin, j = grvi_min_i64(begin + width, n), out = begin;
            const int64_t i_end = j, j_end = grvi_min_i64(begin + 2 * width, n);
            while (i < i_end && j < j_end) {
                const uint64_t x = a[i], y = a[j];
                const bool first = x < y;
                b[out++] = first ? x : y;
                i += first;
                j += !first;
            }
            while (i < i_end) b[out++] = a[i++];
            while (j < j_end) b[out++] = a[j++];
        }
        uint64_t *const sorted = b;
        b = a;
        a = sorted;
    }
    return a;
}

int64_t grvi_rows_sort_bytes(int64_t n)
{
    return 3 * n * (int64_t)sizeof(uint64_t);
}

void grvi_rows_sort(const grv_neighbours *neighbours, int64_t n, int32_t *indices, void *squared,
                    void *scratch)
{
    if (n <= GRVI_SHORT_ROW) {
        neighbours->kernels->sort_short(n, indices, squared);
        return;
    }
    uint64_t *const words = scratch;
    for (int64_t j = 0; j < n; j++) words[j] = (uint64_t)indices[j] << 32 | (uint64_t)j;
    const uint64_t *const sorted = sort_words(n, words, words + n);
    for (int64_t j = 0; j < n; j++) indices[j] = (int32_t)(sorted[j] >> 32);
    if (neighbours->is_double)
        permute_f64(n, sorted, squared, (double *)(void *)(words + 2 * n));
    else
        permute_f32(n, sorted, squared, (float *)(void *)(words + 2 * n));
}
