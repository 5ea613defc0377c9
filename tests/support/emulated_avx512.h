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

#undef _mm512_permute_ps
#undef _mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#undef _mm512_extractf32x8_ps
#define _mm512_permute_ps(a, control)       emulated_permute_ps(a, control)
#define _mm512_maskz_loadu_ps(mask, p)      emulated_maskz_loadu_ps(mask, p)
#define _mm512_mask_storeu_ps(p, mask, a)   emulated_mask_storeu_ps(p, mask, a)
#define _mm512_extractf32x8_ps(a, half)     emulated_extractf32x8_ps(a, half)

#endif
