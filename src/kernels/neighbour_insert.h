/* Keeping a short sorted list; included once per type with REAL and NAME. */
#include "kernels/neighbour_candidates.h"

/* Inserts the marked points of a block into a sorted list: one pass a point, without branches, whose largest drops out at the end. */
GRVI_STEP void NAME(insert_marked)(NAME(candidate) * list, int slots, unsigned mask,
                                   const REAL *squared, const int32_t *indices)
{
    for (; mask != 0; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        NAME(candidate) c = NAME(candidate_make)(squared[lane], indices[lane]);
#pragma GCC unroll 16
        for (int j = 0; j < slots; j++) {
            const NAME(candidate) kept = list[j];
            const _Bool before = NAME(candidate_less)(kept, c);
            list[j] = before ? kept : c;
            c = before ? c : kept;
        }
    }
}
