/* Neighbour searches for AVX2: the vector steps, and the loops around them from neighbour_loops.h. */
#include <stddef.h>

#include "kernels/neighbour_kernels.h"

#ifdef __AVX2__
#include <immintrin.h>

#define REAL    float
#define NAME(x) x##_f32
#include "kernels/neighbour_insert.h"
#undef REAL
#undef NAME
#define REAL    double
#define NAME(x) x##_f64
#include "kernels/neighbour_insert.h"
#undef REAL
#undef NAME

#define STEP static inline __attribute__((always_inline))

/* ---- float: two vectors of eight ---- */

STEP __m256 sum_of_squares_f32(__m256 x, __m256 y, __m256 z)
{
    return _mm256_add_ps(_mm256_add_ps(_mm256_mul_ps(x, x), _mm256_mul_ps(y, y)),
                         _mm256_mul_ps(z, z));
}

STEP unsigned mask_f32(__m256 squared, __m256 bound)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(squared, bound, _CMP_LE_OQ));
}

STEP unsigned block_distances_f32(const float *q, const float *x, const float *y, const float *z,
                                  float bound, float *squared)
{
    const __m256 qx = _mm256_set1_ps(q[0]), qy = _mm256_set1_ps(q[1]), qz = _mm256_set1_ps(q[2]),
                 limit = _mm256_set1_ps(bound);
    unsigned mask = 0;
#pragma GCC unroll 2
    for (int i = 0; i < GRVI_TREE_WIDTH; i += 8) {
        const __m256 s = sum_of_squares_f32(_mm256_sub_ps(qx, _mm256_loadu_ps(x + i)),
                                            _mm256_sub_ps(qy, _mm256_loadu_ps(y + i)),
                                            _mm256_sub_ps(qz, _mm256_loadu_ps(z + i)));
        _mm256_store_ps(squared + i, s);
        mask |= mask_f32(s, limit) << i;
    }
    return mask;
}

/* the second operand of a maximum comes out where one is NaN: missing children stay NaN */
STEP __m256 gap_f32(__m256 q, const float *lower, const float *upper)
{
    return _mm256_max_ps(_mm256_setzero_ps(),
                         _mm256_max_ps(_mm256_sub_ps(_mm256_loadu_ps(lower), q),
                                       _mm256_sub_ps(q, _mm256_loadu_ps(upper))));
}

STEP unsigned block_bounds_f32(const float *q, const float *box, float bound, int32_t *keys)
{
    const __m256 qx = _mm256_set1_ps(q[0]), qy = _mm256_set1_ps(q[1]), qz = _mm256_set1_ps(q[2]),
                 limit = _mm256_set1_ps(bound);
    const __m256i low = _mm256_set1_epi32(GRVI_TREE_WIDTH - 1),
                  lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    unsigned mask = 0;
#pragma GCC unroll 2
    for (int i = 0; i < GRVI_TREE_WIDTH; i += 8) {
        const float *const b = box + i;
        const __m256 s =
            sum_of_squares_f32(gap_f32(qx, b, b + 3 * GRVI_TREE_WIDTH),
                               gap_f32(qy, b + GRVI_TREE_WIDTH, b + 4 * GRVI_TREE_WIDTH),
                               gap_f32(qz, b + 2 * GRVI_TREE_WIDTH, b + 5 * GRVI_TREE_WIDTH));
        const __m256i number = _mm256_add_epi32(lane, _mm256_set1_epi32(i));
        _mm256_store_si256(
            (__m256i *)(keys + i),
            _mm256_or_si256(_mm256_andnot_si256(low, _mm256_castps_si256(s)), number));
        mask |= mask_f32(s, limit) << i;
    }
    return mask;
}

STEP int32_t smallest_key_f32(const int32_t *keys)
{
    const __m256i v = _mm256_min_epi32(_mm256_load_si256((const __m256i *)keys),
                                       _mm256_load_si256((const __m256i *)(keys + 8)));
    __m128i s = _mm_min_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_min_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_min_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtsi128_si32(s);
}

/* two rows a vector, two vectors at a time */
static void enclose_f32(int64_t n, const void *rows, void *lower, void *upper)
{
    const float *const x = rows;
    const __m256 first = _mm256_broadcast_ps((const __m128 *)rows);
    __m256 low0 = first, low1 = first, high0 = first, high1 = first;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const __m256 a = _mm256_loadu_ps(x + 4 * i), b = _mm256_loadu_ps(x + 4 * i + 8);
        low0 = _mm256_min_ps(low0, a);
        low1 = _mm256_min_ps(low1, b);
        high0 = _mm256_max_ps(high0, a);
        high1 = _mm256_max_ps(high1, b);
    }
    low0 = _mm256_min_ps(low0, low1);
    high0 = _mm256_max_ps(high0, high1);
    __m128 low = _mm_min_ps(_mm256_castps256_ps128(low0), _mm256_extractf128_ps(low0, 1));
    __m128 high = _mm_max_ps(_mm256_castps256_ps128(high0), _mm256_extractf128_ps(high0, 1));
    for (; i < n; i++) {
        low = _mm_min_ps(low, _mm_loadu_ps(x + 4 * i));
        high = _mm_max_ps(high, _mm_loadu_ps(x + 4 * i));
    }
    _mm_storeu_ps(lower, low);
    _mm_storeu_ps(upper, high);
}

/* A place takes what was before it if the new one belongs further up, else the new one if that is smaller, else nothing. */
STEP __m256i insert_vector(__m256i kept, __m256i before, __m256i c)
{
    const __m256i smaller = _mm256_blendv_epi8(kept, c, _mm256_cmpgt_epi64(kept, c));
    return _mm256_blendv_epi8(smaller, before, _mm256_cmpgt_epi64(before, c));
}

/* the list stays in two registers: candidates are integers below 2^63, and nothing is before the first */
STEP void insert_few_f32(candidate_f32 *list, unsigned mask, const float *squared,
                         const int32_t *indices)
{
    __m256i *const places = (__m256i *)list;
    __m256i low = _mm256_load_si256(places), high = _mm256_load_si256(places + 1);
    for (; mask != 0; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        const __m256i c =
            _mm256_set1_epi64x((int64_t)candidate_make_f32(squared[lane], indices[lane]));
        const __m256i before_low =
            _mm256_blend_epi32(_mm256_permute4x64_epi64(low, 0x90), _mm256_setzero_si256(), 0x03);
        const __m256i before_high = _mm256_blend_epi32(_mm256_permute4x64_epi64(high, 0x90),
                                                       _mm256_permute4x64_epi64(low, 0xff), 0x03);
        low = insert_vector(low, before_low, c);
        high = insert_vector(high, before_high, c);
    }
    _mm256_store_si256(places, low);
    _mm256_store_si256(places + 1, high);
}

/* ---- double: four vectors of four ---- */

STEP __m256d sum_of_squares_f64(__m256d x, __m256d y, __m256d z)
{
    return _mm256_add_pd(_mm256_add_pd(_mm256_mul_pd(x, x), _mm256_mul_pd(y, y)),
                         _mm256_mul_pd(z, z));
}

STEP unsigned mask_f64(__m256d squared, __m256d bound)
{
    return (unsigned)_mm256_movemask_pd(_mm256_cmp_pd(squared, bound, _CMP_LE_OQ));
}

STEP unsigned block_distances_f64(const double *q, const double *x, const double *y,
                                  const double *z, double bound, double *squared)
{
    const __m256d qx = _mm256_set1_pd(q[0]), qy = _mm256_set1_pd(q[1]), qz = _mm256_set1_pd(q[2]),
                  limit = _mm256_set1_pd(bound);
    unsigned mask = 0;
#pragma GCC unroll 4
    for (int i = 0; i < GRVI_TREE_WIDTH; i += 4) {
        const __m256d s = sum_of_squares_f64(_mm256_sub_pd(qx, _mm256_loadu_pd(x + i)),
                                             _mm256_sub_pd(qy, _mm256_loadu_pd(y + i)),
                                             _mm256_sub_pd(qz, _mm256_loadu_pd(z + i)));
        _mm256_store_pd(squared + i, s);
        mask |= mask_f64(s, limit) << i;
    }
    return mask;
}

STEP __m256d gap_f64(__m256d q, const double *lower, const double *upper)
{
    return _mm256_max_pd(_mm256_setzero_pd(),
                         _mm256_max_pd(_mm256_sub_pd(_mm256_loadu_pd(lower), q),
                                       _mm256_sub_pd(q, _mm256_loadu_pd(upper))));
}

STEP unsigned block_bounds_f64(const double *q, const double *box, double bound, int64_t *keys)
{
    const __m256d qx = _mm256_set1_pd(q[0]), qy = _mm256_set1_pd(q[1]), qz = _mm256_set1_pd(q[2]),
                  limit = _mm256_set1_pd(bound);
    const __m256i low = _mm256_set1_epi64x(GRVI_TREE_WIDTH - 1),
                  lane = _mm256_setr_epi64x(0, 1, 2, 3);
    unsigned mask = 0;
#pragma GCC unroll 4
    for (int i = 0; i < GRVI_TREE_WIDTH; i += 4) {
        const double *const b = box + i;
        const __m256d s =
            sum_of_squares_f64(gap_f64(qx, b, b + 3 * GRVI_TREE_WIDTH),
                               gap_f64(qy, b + GRVI_TREE_WIDTH, b + 4 * GRVI_TREE_WIDTH),
                               gap_f64(qz, b + 2 * GRVI_TREE_WIDTH, b + 5 * GRVI_TREE_WIDTH));
        const __m256i number = _mm256_add_epi64(lane, _mm256_set1_epi64x(i));
        _mm256_store_si256(
            (__m256i *)(keys + i),
            _mm256_or_si256(_mm256_andnot_si256(low, _mm256_castpd_si256(s)), number));
        mask |= mask_f64(s, limit) << i;
    }
    return mask;
}

STEP __m256i smaller_i64(__m256i a, __m256i b)
{
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
}

STEP int64_t smallest_key_f64(const int64_t *keys)
{
    const __m256i *const v = (const __m256i *)keys;
    __m256i s = smaller_i64(smaller_i64(_mm256_load_si256(v), _mm256_load_si256(v + 1)),
                            smaller_i64(_mm256_load_si256(v + 2), _mm256_load_si256(v + 3)));
    s = smaller_i64(s, _mm256_permute4x64_epi64(s, 0x4e));
    s = smaller_i64(s, _mm256_permute4x64_epi64(s, 0xb1));
    return _mm256_extract_epi64(s, 0);
}

static void enclose_f64(int64_t n, const void *rows, void *lower, void *upper)
{
    const double *const x = rows;
    __m256d low = _mm256_loadu_pd(x), high = low;
    for (int64_t i = 1; i < n; i++) {
        low = _mm256_min_pd(low, _mm256_loadu_pd(x + 4 * i));
        high = _mm256_max_pd(high, _mm256_loadu_pd(x + 4 * i));
    }
    _mm256_storeu_pd(lower, low);
    _mm256_storeu_pd(upper, high);
}

STEP void insert_few_f64(candidate_f64 *list, unsigned mask, const double *squared,
                         const int32_t *indices)
{
    insert_marked_f64(list, GRVI_FEW, mask, squared, indices);
}

#define REAL    float
#define KEY     int32_t
#define KEY_MAX INT32_MAX
#define NAME(x) x##_f32
#include "kernels/neighbour_loops.h"
#undef REAL
#undef KEY
#undef KEY_MAX
#undef NAME
#define REAL    double
#define KEY     int64_t
#define KEY_MAX INT64_MAX
#define NAME(x) x##_f64
#include "kernels/neighbour_loops.h"

const grvi_neighbour_kernels *grvi_neighbour_kernels_avx2(bool is_double)
{
    static const grvi_neighbour_kernels table_f32 = {"avx2",  nearest_f32,    within_f32,
                                                     run_f32, sort_short_f32, enclose_f32};
    static const grvi_neighbour_kernels table_f64 = {"avx2",  nearest_f64,    within_f64,
                                                     run_f64, sort_short_f64, enclose_f64};
    return is_double ? &table_f64 : &table_f32;
}
#else
const grvi_neighbour_kernels *grvi_neighbour_kernels_avx2(bool is_double)
{
    (void)is_double;
    return NULL;
}
#endif
