/* The reference mode mix on float data. */
#define REAL float
#include "kernels/mode_mix_ref_loops.h"

const grvi_mode_mix_kernels *grvi_mode_mix_kernels_ref(void)
{
    static const grvi_mode_mix_kernels kernels = {.forward = forward, .backward = backward};
    return &kernels;
}
