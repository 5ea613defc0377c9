/* The mode mix, 8 lanes. */
#include "kernels/mode_mix_impl.h"

#ifdef __AVX2__
#include "kernels/mode_mix_loops.h"

const grvi_mode_mix_kernels *grvi_mode_mix_kernels_avx2(void)
{
    static const grvi_mode_mix_kernels kernels = {.forward = forward, .backward = backward};
    return &kernels;
}
#else
const grvi_mode_mix_kernels *grvi_mode_mix_kernels_avx2(void)
{
    return NULL;
}
#endif
