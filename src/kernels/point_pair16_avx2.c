/* Point kernels on 16 lanes made of two AVX2 registers: tests the code of AVX-512 where that is missing. A stub where the compiler lacks them. */
#include "kernels/point_kernels.h"

#if defined(__AVX2__) && defined(__FMA__)
#define GRVI_SIMD_PAIR
#include "kernels/point_loops.h"

bool grvi_point_kernels_fill_pair16(grvi_point_kernels *kernels)
{
    fill(kernels);
    return true;
}
#else
bool grvi_point_kernels_fill_pair16(grvi_point_kernels *kernels)
{
    (void)kernels;
    return false;
}
#endif
