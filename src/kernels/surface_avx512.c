/* Distances to surfaces and winding numbers for AVX-512; the loops are in surface_loops.h. */
#include <stddef.h>

#include "kernels/surface_kernels.h"

#ifdef GRVI_AVX512
/* of simd.h the vectors of eight */
#undef GRVI_AVX512
#define GRVI_SURFACE_DOUBLES_512
#include "kernels/surface_loops.h"

const grvi_surface_kernels *grvi_surface_kernels_avx512(void)
{
    static const grvi_surface_kernels table = {"avx512", closest, winding};
    return &table;
}
#else
const grvi_surface_kernels *grvi_surface_kernels_avx512(void)
{
    return NULL;
}
#endif
