/* Choice of the flow kernels, and the memory layout of their fields. */
#include "kernels/flow_kernels.h"

#include "core/check.h"
#include "kernels/flow_variants.h"

const grvi_flow_kernels *grvi_flow_kernels_for(grvi_isa isa, bool is_double)
{
    const grvi_flow_kernels *table = NULL;
    if (isa == GRVI_ISA_AVX512) table = grvi_flow_kernels_avx512(is_double);
    if (table == NULL && isa >= GRVI_ISA_AVX2) table = grvi_flow_kernels_avx2(is_double);
    return table != NULL ? table : grvi_flow_kernels_generic(is_double);
}

bool grvi_flow_grid_init(grvi_flow_grid *grid, const int64_t n[3], const bool periodic[3],
                         bool is_double)
{
    /* The row's own end ghosts lie in the line before the next row, whose last two elements are that row's first ghosts. */
    const int64_t line = 64 / (int64_t)(is_double ? sizeof(double) : sizeof(float));
    const int64_t row = grvi_round_up(n[2], line) + line;
    int64_t plane = 0, all = 0;
    if (!grvi_mul_i64(n[1] + 2 * GRVI_FLOW_GHOSTS, row, &plane)) return false;
    if (!grvi_mul_i64(n[0] + 2 * GRVI_FLOW_GHOSTS, plane, &all) || all > INT64_MAX / 64)
        return false;
    for (int d = 0; d < 3; d++) {
        grid->n[d] = n[d];
        grid->periodic[d] = periodic[d];
    }
    grid->stride[0] = plane;
    grid->stride[1] = row;
    grid->stride[2] = 1;
    grid->origin = GRVI_FLOW_GHOSTS * (plane + row) + line;
    grid->n_elements = all + line;
    return true;
}
