/* Vectors of float for the loop files that are compiled once per instruction set. Internal to src/kernels.
 * A loop file <family>_loops.h is included by <family>_avx2.c and <family>_avx512.c; it sees vf (GRVI_LANES floats) and the operations below, and defines static functions only.
 * fma(a,b,c) = a*b + c in one rounding, so that all lane counts give the same numbers wherever the order of operations is the same. */
#ifndef GRVI_KERNELS_SIMD_H
#define GRVI_KERNELS_SIMD_H

#include <immintrin.h>
#include <stdint.h>

#define GRVI_INLINE static inline __attribute__((always_inline, unused))

#ifdef GRVI_AVX512
#define GRVI_LANES 16
#define GRVI_REGISTERS 32
typedef __m512 vf;
GRVI_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
GRVI_INLINE void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
GRVI_INLINE vf vf_set1(float a) { return _mm512_set1_ps(a); }
GRVI_INLINE vf vf_zero(void) { return _mm512_setzero_ps(); }
GRVI_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
GRVI_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
GRVI_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
GRVI_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
GRVI_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
GRVI_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
GRVI_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
GRVI_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a*b */
/* a > 0 ? b : c */
GRVI_INLINE vf vf_select_positive(vf a, vf b, vf c) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_GT_OQ), c, b); }
/* the first n lanes, the others 0; n in [0, GRVI_LANES] */
GRVI_INLINE vf vf_load_n(const float *p, int64_t n) { return _mm512_maskz_loadu_ps((__mmask16)((1U << n) - 1U), p); }
GRVI_INLINE void vf_store_n(float *p, vf a, int64_t n) { _mm512_mask_storeu_ps(p, (__mmask16)((1U << n) - 1U), a); }
/* GRVI_LANES / 4 quads of floats, `stride` floats apart */
GRVI_INLINE vf vf_load_quads(const float *p, int64_t stride)
{
    const __m512 a = _mm512_insertf32x4(_mm512_castps128_ps512(_mm_loadu_ps(p)), _mm_loadu_ps(p + stride), 1);
    return _mm512_insertf32x4(_mm512_insertf32x4(a, _mm_loadu_ps(p + 2 * stride), 2), _mm_loadu_ps(p + 3 * stride), 3);
}
GRVI_INLINE void vf_store_quads(float *p, int64_t stride, vf a)
{
    _mm_storeu_ps(p, _mm512_castps512_ps128(a));
    _mm_storeu_ps(p + stride, _mm512_extractf32x4_ps(a, 1));
    _mm_storeu_ps(p + 2 * stride, _mm512_extractf32x4_ps(a, 2));
    _mm_storeu_ps(p + 3 * stride, _mm512_extractf32x4_ps(a, 3));
}
GRVI_INLINE vf vf_repeat_quad(const float *p) { return _mm512_broadcast_f32x4(_mm_loadu_ps(p)); }
/* lane i (a constant, 0 .. 3) of every quad, in all four lanes of that quad */
GRVI_INLINE vf vf_spread_quad(vf a, int i)
{
    return i == 0 ? _mm512_permute_ps(a, 0x00) : i == 1 ? _mm512_permute_ps(a, 0x55) : i == 2 ? _mm512_permute_ps(a, 0xaa) : _mm512_permute_ps(a, 0xff);
}
#elif defined(__AVX2__)
GRVI_INLINE __m256i grvi_mask8(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
GRVI_INLINE __m256 grvi_load_quads8(const float *p, int64_t stride)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + stride), 1);
}
GRVI_INLINE void grvi_store_quads8(float *p, int64_t stride, __m256 a)
{
    _mm_storeu_ps(p, _mm256_castps256_ps128(a));
    _mm_storeu_ps(p + stride, _mm256_extractf128_ps(a, 1));
}
GRVI_INLINE __m256 grvi_repeat_quad8(const float *p) { const __m128 a = _mm_loadu_ps(p); return _mm256_insertf128_ps(_mm256_castps128_ps256(a), a, 1); }
GRVI_INLINE __m256 grvi_spread_quad8(__m256 a, int i)
{
    return i == 0 ? _mm256_permute_ps(a, 0x00) : i == 1 ? _mm256_permute_ps(a, 0x55) : i == 2 ? _mm256_permute_ps(a, 0xaa) : _mm256_permute_ps(a, 0xff);
}
#define GRVI_LANES 8
#define GRVI_REGISTERS 16
typedef __m256 vf;
GRVI_INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
GRVI_INLINE void vf_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
GRVI_INLINE vf vf_set1(float a) { return _mm256_set1_ps(a); }
GRVI_INLINE vf vf_zero(void) { return _mm256_setzero_ps(); }
GRVI_INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
GRVI_INLINE vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
GRVI_INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
GRVI_INLINE vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
GRVI_INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
GRVI_INLINE vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
GRVI_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
GRVI_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
GRVI_INLINE vf vf_select_positive(vf a, vf b, vf c) { return _mm256_blendv_ps(c, b, _mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_GT_OQ)); }
GRVI_INLINE vf vf_load_n(const float *p, int64_t n) { return _mm256_maskload_ps(p, grvi_mask8(n)); }
GRVI_INLINE void vf_store_n(float *p, vf a, int64_t n) { _mm256_maskstore_ps(p, grvi_mask8(n), a); }
GRVI_INLINE vf vf_load_quads(const float *p, int64_t stride) { return grvi_load_quads8(p, stride); }
GRVI_INLINE void vf_store_quads(float *p, int64_t stride, vf a) { grvi_store_quads8(p, stride, a); }
GRVI_INLINE vf vf_repeat_quad(const float *p) { return grvi_repeat_quad8(p); }
GRVI_INLINE vf vf_spread_quad(vf a, int i) { return grvi_spread_quad8(a, i); }
#endif

#endif
