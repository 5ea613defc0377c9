/* The reference mode mix on double data, for gradient checks. */
#define REAL double
#include "kernels/mode_mix_ref_loops.h"

const grvi_mode_mix_kernels_f64 *grvi_mode_mix_kernels_f64_ref(void)
{
    static const grvi_mode_mix_kernels_f64 kernels = {.forward = forward, .backward = backward};
    return &kernels;
}
