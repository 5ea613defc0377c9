/* Distances to surfaces and winding numbers for AVX2; the loops are in surface_loops.h. */
#include <stddef.h>

#include "kernels/surface_kernels.h"

#if defined(__AVX2__) && defined(__FMA__)
#include "kernels/surface_loops.h"

const grvi_surface_kernels *grvi_surface_kernels_avx2(void)
{
    static const grvi_surface_kernels table = {"avx2", closest, winding};
    return &table;
}
#else
const grvi_surface_kernels *grvi_surface_kernels_avx2(void)
{
    return NULL;
}
#endif
