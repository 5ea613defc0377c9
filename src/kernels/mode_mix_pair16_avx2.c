/* The mode mix, 16 lanes on pairs of AVX2 registers: tests the AVX-512 code where AVX-512 is
 * missing. */
#include "kernels/mode_mix_impl.h"

#ifdef __AVX2__
#define GRVI_SIMD_PAIR
#include "kernels/mode_mix_loops.h"

const grvi_mode_mix_kernels *grvi_mode_mix_kernels_pair16(void)
{
    static const grvi_mode_mix_kernels kernels = {.forward = forward, .backward = backward};
    return &kernels;
}
#else
const grvi_mode_mix_kernels *grvi_mode_mix_kernels_pair16(void)
{
    return NULL;
}
#endif
