/* Point kernels on 16 lanes of AVX-512. A stub where the compiler lacks them. */
#include "kernels/point_kernels.h"

#ifdef GRVI_AVX512
#include "kernels/point_loops.h"

bool grvi_point_kernels_fill_avx512(grvi_point_kernels *kernels)
{
    fill(kernels);
    return true;
}
#else
bool grvi_point_kernels_fill_avx512(grvi_point_kernels *kernels)
{
    (void)kernels;
    return false;
}
#endif
