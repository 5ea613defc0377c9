/* Choice of the kernels for distances to surfaces. */
#include "kernels/surface_kernels.h"

#include <stddef.h>

const grvi_surface_kernels *grvi_surface_kernels_for(grvi_isa isa)
{
    if (!grvi_isa_usable(isa)) return NULL;
    const grvi_surface_kernels *table = NULL;
    if (isa == GRVI_ISA_AVX512) table = grvi_surface_kernels_avx512();
    if (table == NULL && isa >= GRVI_ISA_AVX2) table = grvi_surface_kernels_avx2();
    return table != NULL ? table : grvi_surface_kernels_ref();
}
