/* Spectral transforms: the 16-lane code on pairs of AVX2 registers: tests the AVX-512 build where that cannot run. */
#include "kernels/spectral_transform.h"

#if defined(__AVX2__)
#define GRVI_SIMD_PAIR
#include "kernels/spectral_transform_loops.h"

const grvi_spectral_kernels *grvi_spectral_kernels_pair16(void)
{
    return &kernels;
}
#else
const grvi_spectral_kernels *grvi_spectral_kernels_pair16(void)
{
    return NULL;
}
#endif
