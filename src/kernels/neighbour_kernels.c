/* Choice among the variants of the neighbour searches. */
#include <stddef.h>

#include "kernels/neighbour_candidates.h"
#include "kernels/neighbour_kernels.h"

int64_t grvi_nearest_scratch_bytes(int64_t k)
{
    return grvi_candidates_capacity(k) * (int64_t)sizeof(candidate_f64);
}

const grvi_neighbour_kernels *grvi_neighbour_kernels_for(grvi_isa isa, bool is_double)
{
    if (!grvi_isa_usable(isa)) return NULL;
    const grvi_neighbour_kernels *table = NULL;
    if (isa == GRVI_ISA_AVX512) table = grvi_neighbour_kernels_avx512(is_double);
    if (table == NULL && isa >= GRVI_ISA_AVX2) table = grvi_neighbour_kernels_avx2(is_double);
    return table != NULL ? table : grvi_neighbour_kernels_ref(is_double);
}
