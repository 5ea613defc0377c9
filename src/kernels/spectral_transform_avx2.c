/* Spectral transforms: AVX2 and FMA, 8 lanes. */
#include "kernels/spectral_transform.h"

#if defined(__AVX2__)
#include "kernels/spectral_transform_loops.h"

const grvi_spectral_kernels *grvi_spectral_kernels_avx2(void)
{
    return &kernels;
}
#else
const grvi_spectral_kernels *grvi_spectral_kernels_avx2(void)
{
    return NULL;
}
#endif
