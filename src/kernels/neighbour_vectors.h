/* Vectors of points for the neighbour searches: what neighbour_steps.h and neighbour_split_loops.h need, for AVX2 or AVX-512, float and double.
 * A minimum or maximum is its second operand where one is NaN, and no comparison holds for NaN. Masks have one bit a lane. Internal to src/kernels. */
#ifndef GRVI_KERNELS_NEIGHBOUR_VECTORS_H
#define GRVI_KERNELS_NEIGHBOUR_VECTORS_H

#include <immintrin.h>

#include "kernels/neighbour_candidates.h"
#include "kernels/neighbour_kernels.h"

/* clang-format off */
#ifdef GRVI_AVX512

/* ---- float ---- */

enum { LANES_f32 = 16 };
typedef __m512 vec_f32;

GRVI_STEP vec_f32 vec_set1_f32(float a) { return _mm512_set1_ps(a); }
GRVI_STEP vec_f32 vec_load_f32(const float *p) { return _mm512_loadu_ps(p); }
GRVI_STEP void vec_store_f32(float *p, vec_f32 a) { _mm512_storeu_ps(p, a); }
GRVI_STEP vec_f32 vec_add_f32(vec_f32 a, vec_f32 b) { return _mm512_add_ps(a, b); }
GRVI_STEP vec_f32 vec_sub_f32(vec_f32 a, vec_f32 b) { return _mm512_sub_ps(a, b); }
GRVI_STEP vec_f32 vec_mul_f32(vec_f32 a, vec_f32 b) { return _mm512_mul_ps(a, b); }
GRVI_STEP vec_f32 vec_min_f32(vec_f32 a, vec_f32 b) { return _mm512_min_ps(a, b); }
GRVI_STEP vec_f32 vec_max_f32(vec_f32 a, vec_f32 b) { return _mm512_max_ps(a, b); }
GRVI_STEP unsigned vec_less_f32(vec_f32 a, vec_f32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
GRVI_STEP unsigned vec_up_to_f32(vec_f32 a, vec_f32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
GRVI_STEP vec_f32 vec_choose_less_f32(vec_f32 a, vec_f32 b, vec_f32 yes, vec_f32 no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
GRVI_STEP void vec_store_keys_f32(int32_t *keys, vec_f32 a, int first)
{
    const __m512i lane = _mm512_add_epi32(
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_epi32(first));
    _mm512_storeu_si512(keys, _mm512_or_si512(_mm512_andnot_si512(_mm512_set1_epi32(GRVI_TREE_WIDTH - 1),
                                                                  _mm512_castps_si512(a)),
                                              lane));
}
GRVI_STEP int32_t smallest_key_f32(const int32_t *keys)
{
    return _mm512_reduce_min_epi32(_mm512_loadu_si512(keys));
}
GRVI_STEP void vec_part_f32(const float *from, unsigned mask, float *front, float *back)
{
    const __m512 a = _mm512_loadu_ps(from);
    const int n_front = __builtin_popcount(mask);
    _mm512_storeu_ps(front, _mm512_maskz_compress_ps((__mmask16)mask, a));
    _mm512_mask_storeu_ps(back - 16 + n_front, (__mmask16)(0xffffU >> n_front),
                          _mm512_maskz_compress_ps((__mmask16)~mask, a));
}
GRVI_STEP void part_indices_f32(const int32_t *from, unsigned mask, int32_t *front, int32_t *back)
{
    vec_part_f32((const float *)(const void *)from, mask, (float *)(void *)front, (float *)(void *)back);
}
/* All places at once: one takes what was before it if the new one belongs further up, else the new one if that is smaller. Nothing is before the first. */
GRVI_STEP void insert_few_f32(candidate_f32 *list, unsigned mask, const float *squared, const int32_t *indices)
{
    __m512i places = _mm512_load_si512(list);
    for (; mask != 0; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        const __m512i c =
            _mm512_set1_epi64((int64_t)candidate_make_f32(squared[lane], indices[lane]));
        const __m512i before = _mm512_alignr_epi64(places, _mm512_setzero_si512(), 7);
        places = _mm512_max_epi64(before, _mm512_min_epi64(places, c));
    }
    _mm512_store_si512(list, places);
}

/* ---- double ---- */

enum { LANES_f64 = 8 };
typedef __m512d vec_f64;

GRVI_STEP vec_f64 vec_set1_f64(double a) { return _mm512_set1_pd(a); }
GRVI_STEP vec_f64 vec_load_f64(const double *p) { return _mm512_loadu_pd(p); }
GRVI_STEP void vec_store_f64(double *p, vec_f64 a) { _mm512_storeu_pd(p, a); }
GRVI_STEP vec_f64 vec_add_f64(vec_f64 a, vec_f64 b) { return _mm512_add_pd(a, b); }
GRVI_STEP vec_f64 vec_sub_f64(vec_f64 a, vec_f64 b) { return _mm512_sub_pd(a, b); }
GRVI_STEP vec_f64 vec_mul_f64(vec_f64 a, vec_f64 b) { return _mm512_mul_pd(a, b); }
GRVI_STEP vec_f64 vec_min_f64(vec_f64 a, vec_f64 b) { return _mm512_min_pd(a, b); }
GRVI_STEP vec_f64 vec_max_f64(vec_f64 a, vec_f64 b) { return _mm512_max_pd(a, b); }
GRVI_STEP unsigned vec_less_f64(vec_f64 a, vec_f64 b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
GRVI_STEP unsigned vec_up_to_f64(vec_f64 a, vec_f64 b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
GRVI_STEP vec_f64 vec_choose_less_f64(vec_f64 a, vec_f64 b, vec_f64 yes, vec_f64 no)
{
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ), no, yes);
}
GRVI_STEP void vec_store_keys_f64(int64_t *keys, vec_f64 a, int first)
{
    const __m512i lane =
        _mm512_add_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(first));
    _mm512_storeu_si512(keys, _mm512_or_si512(_mm512_andnot_si512(_mm512_set1_epi64(GRVI_TREE_WIDTH - 1),
                                                                  _mm512_castpd_si512(a)),
                                              lane));
}
GRVI_STEP int64_t smallest_key_f64(const int64_t *keys)
{
    return _mm512_reduce_min_epi64(
        _mm512_min_epi64(_mm512_loadu_si512(keys), _mm512_loadu_si512(keys + 8)));
}
GRVI_STEP void vec_part_f64(const double *from, unsigned mask, double *front, double *back)
{
    const __m512d a = _mm512_loadu_pd(from);
    const int n_front = __builtin_popcount(mask);
    _mm512_storeu_pd(front, _mm512_maskz_compress_pd((__mmask8)mask, a));
    _mm512_mask_storeu_pd(back - 8 + n_front, (__mmask8)(0xffU >> n_front),
                          _mm512_maskz_compress_pd((__mmask8)~mask, a));
}
GRVI_STEP void part_indices_f64(const int32_t *from, unsigned mask, int32_t *front, int32_t *back)
{
    const __m256i a = _mm256_loadu_si256((const __m256i *)from);
    const int n_front = __builtin_popcount(mask);
    _mm256_storeu_si256((__m256i *)front, _mm256_maskz_compress_epi32((__mmask8)mask, a));
    _mm256_mask_storeu_epi32(back - 8 + n_front, (__mmask8)(0xffU >> n_front),
                             _mm256_maskz_compress_epi32((__mmask8)~mask, a));
}

#else

/* For every mask of eight lanes the marked ones' numbers in order, then the others', in eight bytes: a permutation that parts a vector. */
#define BELOW(m, i) __builtin_popcount((m) & ((1U << (i)) - 1U))
#define PLACE(m, i) (((m) >> (i) & 1U) != 0 ? BELOW(m, i) : BELOW(m, 8) + BELOW(~(m), i))
#define LANE(m, i)  ((uint64_t)(i) << (8 * PLACE(m, i)))
#define PARTED(m) \
    LANE(m, 0) | LANE(m, 1) | LANE(m, 2) | LANE(m, 3) | LANE(m, 4) | LANE(m, 5) | LANE(m, 6) | LANE(m, 7)
#define PARTED_4(m)  PARTED(m), PARTED(m + 1U), PARTED(m + 2U), PARTED(m + 3U)
#define PARTED_16(m) PARTED_4(m), PARTED_4(m + 4U), PARTED_4(m + 8U), PARTED_4(m + 12U)
#define PARTED_64(m) PARTED_16(m), PARTED_16(m + 16U), PARTED_16(m + 32U), PARTED_16(m + 48U)
static const uint64_t parted_lanes[256] = {PARTED_64(0U), PARTED_64(64U), PARTED_64(128U), PARTED_64(192U)};

GRVI_STEP __m256i part_vector(__m256i a, unsigned mask)
{
    const __m128i lanes = _mm_loadl_epi64((const __m128i *)(const void *)(parted_lanes + mask));
    return _mm256_permutevar8x32_epi32(a, _mm256_cvtepu8_epi32(lanes));
}

/* ---- float ---- */

enum { LANES_f32 = 8 };
typedef __m256 vec_f32;

GRVI_STEP vec_f32 vec_set1_f32(float a) { return _mm256_set1_ps(a); }
GRVI_STEP vec_f32 vec_load_f32(const float *p) { return _mm256_loadu_ps(p); }
GRVI_STEP void vec_store_f32(float *p, vec_f32 a) { _mm256_storeu_ps(p, a); }
GRVI_STEP vec_f32 vec_add_f32(vec_f32 a, vec_f32 b) { return _mm256_add_ps(a, b); }
GRVI_STEP vec_f32 vec_sub_f32(vec_f32 a, vec_f32 b) { return _mm256_sub_ps(a, b); }
GRVI_STEP vec_f32 vec_mul_f32(vec_f32 a, vec_f32 b) { return _mm256_mul_ps(a, b); }
GRVI_STEP vec_f32 vec_min_f32(vec_f32 a, vec_f32 b) { return _mm256_min_ps(a, b); }
GRVI_STEP vec_f32 vec_max_f32(vec_f32 a, vec_f32 b) { return _mm256_max_ps(a, b); }
GRVI_STEP unsigned vec_less_f32(vec_f32 a, vec_f32 b)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
GRVI_STEP unsigned vec_up_to_f32(vec_f32 a, vec_f32 b)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ));
}
GRVI_STEP vec_f32 vec_choose_less_f32(vec_f32 a, vec_f32 b, vec_f32 yes, vec_f32 no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
GRVI_STEP void vec_store_keys_f32(int32_t *keys, vec_f32 a, int first)
{
    const __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
    const __m256i bits = _mm256_andnot_si256(_mm256_set1_epi32(GRVI_TREE_WIDTH - 1), _mm256_castps_si256(a));
    _mm256_storeu_si256((__m256i *)keys, _mm256_or_si256(bits, lane));
}
GRVI_STEP int32_t smallest_key_f32(const int32_t *keys)
{
    const __m256i v = _mm256_min_epi32(_mm256_load_si256((const __m256i *)keys),
                                       _mm256_load_si256((const __m256i *)(keys + 8)));
    __m128i s = _mm_min_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_min_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_min_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtsi128_si32(s);
}
GRVI_STEP void part_indices_f32(const int32_t *from, unsigned mask, int32_t *front, int32_t *back)
{
    const __m256i a = part_vector(_mm256_loadu_si256((const __m256i *)from), mask);
    _mm256_storeu_si256((__m256i *)front, a);
    _mm256_storeu_si256((__m256i *)(back - 8), a);
}
GRVI_STEP void vec_part_f32(const float *from, unsigned mask, float *front, float *back)
{
    part_indices_f32((const int32_t *)(const void *)from, mask, (int32_t *)(void *)front,
                     (int32_t *)(void *)back);
}
/* A place takes what was before it if the new one belongs further up, else the new one if that is smaller, else nothing. */
GRVI_STEP __m256i insert_vector(__m256i kept, __m256i before, __m256i c)
{
    const __m256i smaller = _mm256_blendv_epi8(kept, c, _mm256_cmpgt_epi64(kept, c));
    return _mm256_blendv_epi8(smaller, before, _mm256_cmpgt_epi64(before, c));
}
/* the list stays in two registers: candidates are integers below 2^63, and nothing is before the first */
GRVI_STEP void insert_few_f32(candidate_f32 *list, unsigned mask, const float *squared, const int32_t *indices)
{
    __m256i *const places = (__m256i *)list;
    __m256i low = _mm256_load_si256(places), high = _mm256_load_si256(places + 1);
    for (; mask != 0; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        const __m256i c =
            _mm256_set1_epi64x((int64_t)candidate_make_f32(squared[lane], indices[lane]));
        const __m256i up = _mm256_permute4x64_epi64(low, 0x93); /* 3 0 1 2 */
        const __m256i before_low = _mm256_blend_epi32(up, _mm256_setzero_si256(), 0x03);
        const __m256i before_high =
            _mm256_blend_epi32(_mm256_permute4x64_epi64(high, 0x90), up, 0x03);
        low = insert_vector(low, before_low, c);
        high = insert_vector(high, before_high, c);
    }
    _mm256_store_si256(places, low);
    _mm256_store_si256(places + 1, high);
}

/* ---- double ---- */

enum { LANES_f64 = 4 };
typedef __m256d vec_f64;

GRVI_STEP vec_f64 vec_set1_f64(double a) { return _mm256_set1_pd(a); }
GRVI_STEP vec_f64 vec_load_f64(const double *p) { return _mm256_loadu_pd(p); }
GRVI_STEP void vec_store_f64(double *p, vec_f64 a) { _mm256_storeu_pd(p, a); }
GRVI_STEP vec_f64 vec_add_f64(vec_f64 a, vec_f64 b) { return _mm256_add_pd(a, b); }
GRVI_STEP vec_f64 vec_sub_f64(vec_f64 a, vec_f64 b) { return _mm256_sub_pd(a, b); }
GRVI_STEP vec_f64 vec_mul_f64(vec_f64 a, vec_f64 b) { return _mm256_mul_pd(a, b); }
GRVI_STEP vec_f64 vec_min_f64(vec_f64 a, vec_f64 b) { return _mm256_min_pd(a, b); }
GRVI_STEP vec_f64 vec_max_f64(vec_f64 a, vec_f64 b) { return _mm256_max_pd(a, b); }
GRVI_STEP unsigned vec_less_f64(vec_f64 a, vec_f64 b)
{
    return (unsigned)_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ));
}
GRVI_STEP unsigned vec_up_to_f64(vec_f64 a, vec_f64 b)
{
    return (unsigned)_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LE_OQ));
}
GRVI_STEP vec_f64 vec_choose_less_f64(vec_f64 a, vec_f64 b, vec_f64 yes, vec_f64 no)
{
    return _mm256_blendv_pd(no, yes, _mm256_cmp_pd(a, b, _CMP_LT_OQ));
}
GRVI_STEP void vec_store_keys_f64(int64_t *keys, vec_f64 a, int first)
{
    const __m256i lane = _mm256_add_epi64(_mm256_setr_epi64x(0, 1, 2, 3), _mm256_set1_epi64x(first));
    const __m256i bits = _mm256_andnot_si256(_mm256_set1_epi64x(GRVI_TREE_WIDTH - 1), _mm256_castpd_si256(a));
    _mm256_storeu_si256((__m256i *)keys, _mm256_or_si256(bits, lane));
}
GRVI_STEP __m256i smaller_i64(__m256i a, __m256i b)
{
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
}
GRVI_STEP int64_t smallest_key_f64(const int64_t *keys)
{
    const __m256i *const v = (const __m256i *)keys;
    __m256i s = smaller_i64(smaller_i64(_mm256_load_si256(v), _mm256_load_si256(v + 1)),
                            smaller_i64(_mm256_load_si256(v + 2), _mm256_load_si256(v + 3)));
    s = smaller_i64(s, _mm256_permute4x64_epi64(s, 0x4e));
    s = smaller_i64(s, _mm256_permute4x64_epi64(s, 0xb1));
    return _mm256_extract_epi64(s, 0);
}
/* a double is two lanes of 32 bits */
GRVI_STEP void vec_part_f64(const double *from, unsigned mask, double *front, double *back)
{
    unsigned pairs = (mask | mask << 2) & 0x33U;
    pairs = (pairs | pairs << 1) & 0x55U;
    const __m256i a = part_vector(_mm256_loadu_si256((const __m256i *)(const void *)from), pairs * 3);
    _mm256_storeu_pd(front, _mm256_castsi256_pd(a));
    _mm256_storeu_pd(back - 4, _mm256_castsi256_pd(a));
}
/* the upper four lanes stay where they are, behind those that are not marked */
GRVI_STEP void part_indices_f64(const int32_t *from, unsigned mask, int32_t *front, int32_t *back)
{
    const __m256i four = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)from));
    const __m128i a = _mm256_castsi256_si128(part_vector(four, mask));
    _mm_storeu_si128((__m128i *)front, a);
    _mm_storeu_si128((__m128i *)(back - 4), a);
}

#endif

/* a candidate of a double is two numbers: a pass over the list */
#define insert_few_f64(list, mask, squared, indices) \
    insert_marked_f64(list, GRVI_FEW, mask, squared, indices)
/* clang-format on */

#endif
