/* Choice of the kernels for distances to surfaces. */
#include "kernels/surface_kernels.h"

#include <stddef.h>

const grvi_surface_kernels *grvi_surface_kernels_for(grvi_isa isa)
{
    if (!grvi_isa_usable(isa)) return NULL;
    const grvi_surface_kernels *const simd =
        isa >= GRVI_ISA_AVX2 ? grvi_surface_kernels_avx2() : NULL;
    return simd != NULL ? simd : grvi_surface_kernels_ref();
}
