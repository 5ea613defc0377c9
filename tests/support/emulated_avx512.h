/* AVX-512 intrinsics out of SIMDe's portable ones (MIT; Debian's libsimde-dev), so that the AVX-512 kernels run in tests on any machine
 * (preset emulate). Included before everything else, in the *_avx512.c files only. Never part of a release. */
#ifndef GROVE_TESTS_EMULATED_AVX512_H
#define GROVE_TESTS_EMULATED_AVX512_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

/* what SIMDe 0.7.4 lacks */
static inline simde__m512 emulated_permute_ps(simde__m512 a, int control)
{
    simde__m512_private in = simde__m512_to_private(a), out;
    for (int i = 0; i < 16; i++) out.f32[i] = in.f32[(i & ~3) + ((control >> (2 * (i & 3))) & 3)];
    return simde__m512_from_private(out);
}

static inline simde__m512 emulated_maskz_loadu_ps(unsigned mask, const float *p)
{
    simde__m512_private out;
    for (int i = 0; i < 16; i++) out.f32[i] = (mask >> i & 1) != 0 ? p[i] : 0;
    return simde__m512_from_private(out);
}

static inline void emulated_mask_storeu_ps(float *p, unsigned mask, simde__m512 a)
{
    const simde__m512_private in = simde__m512_to_private(a);
    for (int i = 0; i < 16; i++)
        if ((mask >> i & 1) != 0) p[i] = in.f32[i];
}

static inline simde__m256 emulated_extractf32x8_ps(simde__m512 a, int half)
{
    return simde__m512_to_private(a).m256[half];
}

static inline void emulated_mask_storeu_pd(double *p, unsigned mask, simde__m512d a)
{
    const simde__m512d_private in = simde__m512d_to_private(a);
    for (int i = 0; i < 8; i++)
        if ((mask >> i & 1) != 0) p[i] = in.f64[i];
}

static inline void emulated_mask_storeu_epi32_256(int32_t *p, unsigned mask, simde__m256i a)
{
    const simde__m256i_private in = simde__m256i_to_private(a);
    for (int i = 0; i < 8; i++)
        if ((mask >> i & 1) != 0) p[i] = in.i32[i];
}

static inline simde__m512i emulated_alignr_epi64(simde__m512i a, simde__m512i b, int shift)
{
    const simde__m512i_private high = simde__m512i_to_private(a), low = simde__m512i_to_private(b);
    simde__m512i_private out;
    for (int i = 0; i < 8; i++)
        out.i64[i] = i + shift < 8 ? low.i64[i + shift] : high.i64[i + shift - 8];
    return simde__m512i_from_private(out);
}

static inline int32_t emulated_reduce_min_epi32(simde__m512i a)
{
    const simde__m512i_private in = simde__m512i_to_private(a);
    int32_t least = in.i32[0];
    for (int i = 1; i < 16; i++) least = in.i32[i] < least ? in.i32[i] : least;
    return least;
}

static inline int64_t emulated_reduce_min_epi64(simde__m512i a)
{
    const simde__m512i_private in = simde__m512i_to_private(a);
    int64_t least = in.i64[0];
    for (int i = 1; i < 8; i++) least = in.i64[i] < least ? in.i64[i] : least;
    return least;
}

#undef _mm512_mask_storeu_pd
#undef _mm256_mask_storeu_epi32
#undef _mm512_alignr_epi64
#undef _mm512_reduce_min_epi32
#undef _mm512_reduce_min_epi64
#undef _mm512_permute_ps
#undef _mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#undef _mm512_extractf32x8_ps
#define _mm512_permute_ps(a, control)        emulated_permute_ps(a, control)
#define _mm512_maskz_loadu_ps(mask, p)       emulated_maskz_loadu_ps(mask, p)
#define _mm512_mask_storeu_ps(p, mask, a)    emulated_mask_storeu_ps(p, mask, a)
#define _mm512_extractf32x8_ps(a, half)      emulated_extractf32x8_ps(a, half)
#define _mm512_mask_storeu_pd(p, mask, a)    emulated_mask_storeu_pd(p, mask, a)
#define _mm256_mask_storeu_epi32(p, mask, a) emulated_mask_storeu_epi32_256(p, mask, a)
#define _mm512_alignr_epi64(a, b, shift)     emulated_alignr_epi64(a, b, shift)
#define _mm512_reduce_min_epi32(a)           emulated_reduce_min_epi32(a)
#define _mm512_reduce_min_epi64(a)           emulated_reduce_min_epi64(a)

#endif
