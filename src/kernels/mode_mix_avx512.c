/* The mode mix, 16 lanes. */
#include "kernels/mode_mix_impl.h"

#ifdef GRVI_AVX512
#include "kernels/mode_mix_loops.h"

const grvi_mode_mix_kernels *grvi_mode_mix_kernels_avx512(void)
{
    static const grvi_mode_mix_kernels kernels = {.forward = forward, .backward = backward};
    return &kernels;
}
#else
const grvi_mode_mix_kernels *grvi_mode_mix_kernels_avx512(void)
{
    return NULL;
}
#endif
