/* Plain loops for machines without a better table, and the choice. */
#include "kernels/machine_kernels.h"

#include <stddef.h>

enum { LANES = 16 };

static float read_memory(int64_t n, const float *x)
{
    float a[LANES] = {0}, sum = 0;
    for (int64_t k = 0; k + LANES <= n; k += LANES)
        for (int i = 0; i < LANES; i++) a[i] += x[k + i];
    for (int i = 0; i < LANES; i++) sum += a[i];
    return sum;
}

static void write_memory(int64_t n, float value, float *x)
{
    for (int64_t k = 0; k < n; k++) x[k] = value;
}

const grvi_machine_kernels *grvi_machine_kernels_for(grvi_isa isa)
{
    static const grvi_machine_kernels plain = {read_memory, write_memory};
    const grvi_machine_kernels *found = NULL;
    if (!grvi_isa_usable(isa)) return &plain;
    if (isa == GRVI_ISA_AVX512) found = grvi_machine_kernels_avx512();
    if (isa == GRVI_ISA_AVX2) found = grvi_machine_kernels_avx2();
    return found == NULL ? &plain : found;
}
