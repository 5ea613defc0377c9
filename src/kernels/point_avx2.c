/* Point kernels on 8 lanes of AVX2. A stub where the compiler lacks them. */
#include "kernels/point_kernels.h"

#if defined(__AVX2__) && defined(__FMA__)
#include "kernels/point_loops.h"

bool grvi_point_kernels_fill_avx2(grvi_point_kernels *kernels)
{
    fill(kernels);
    return true;
}
#else
bool grvi_point_kernels_fill_avx2(grvi_point_kernels *kernels)
{
    (void)kernels;
    return false;
}
#endif
