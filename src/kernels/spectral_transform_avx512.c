/* Spectral transforms: AVX-512, 16 lanes. */
#include "kernels/spectral_transform.h"

#ifdef GRVI_AVX512
#include "kernels/spectral_transform_loops.h"

const grvi_spectral_kernels *grvi_spectral_kernels_avx512(void)
{
    return &kernels;
}
#else
const grvi_spectral_kernels *grvi_spectral_kernels_avx512(void)
{
    return NULL;
}
#endif
