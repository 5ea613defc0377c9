/* What neighbour_vectors.h has, in plain C with one lane; included once per type with REAL, KEY and NAME. */
#include "kernels/neighbour_candidates.h"
#include "kernels/neighbour_kernels.h"

/* clang-format off */
enum { NAME(LANES) = 1 };
typedef REAL NAME(vec);

GRVI_STEP REAL NAME(vec_set1)(REAL a) { return a; }
GRVI_STEP REAL NAME(vec_load)(const REAL *p) { return *p; }
GRVI_STEP void NAME(vec_store)(REAL *p, REAL a) { *p = a; }
GRVI_STEP REAL NAME(vec_add)(REAL a, REAL b) { return a + b; }
GRVI_STEP REAL NAME(vec_sub)(REAL a, REAL b) { return a - b; }
GRVI_STEP REAL NAME(vec_mul)(REAL a, REAL b) { return a * b; }
GRVI_STEP REAL NAME(vec_min)(REAL a, REAL b) { return a < b ? a : b; }
GRVI_STEP REAL NAME(vec_max)(REAL a, REAL b) { return a > b ? a : b; }
GRVI_STEP unsigned NAME(vec_less)(REAL a, REAL b) { return a < b; }
GRVI_STEP unsigned NAME(vec_up_to)(REAL a, REAL b) { return a <= b; }
GRVI_STEP REAL NAME(vec_choose_less)(REAL a, REAL b, REAL yes, REAL no) { return a < b ? yes : no; }
GRVI_STEP void NAME(vec_store_keys)(KEY *keys, REAL a, int first)
{
    *keys = (NAME(bits)(a) & ~(KEY)(GRVI_TREE_WIDTH - 1)) | first;
}
GRVI_STEP KEY NAME(smallest_key)(const KEY *keys)
{
    KEY smallest = keys[0];
    for (int i = 1; i < GRVI_TREE_WIDTH; i++) smallest = keys[i] < smallest ? keys[i] : smallest;
    return smallest;
}
GRVI_STEP void NAME(vec_part)(const REAL *from, unsigned mask, REAL *front, REAL *back)
{
    const REAL a = *from;
    *(mask != 0 ? front : back - 1) = a;
}
GRVI_STEP void NAME(part_indices)(const int32_t *from, unsigned mask, int32_t *front, int32_t *back)
{
    const int32_t a = *from;
    *(mask != 0 ? front : back - 1) = a;
}
GRVI_STEP void NAME(insert_marked)(NAME(candidate) * list, int slots, unsigned mask,
                              const REAL *squared, const int32_t *indices);
GRVI_STEP void NAME(insert_few)(NAME(candidate) * list, unsigned mask, const REAL *squared,
                           const int32_t *indices)
{
    NAME(insert_marked)(list, GRVI_FEW, mask, squared, indices);
}
/* clang-format on */
