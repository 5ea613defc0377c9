/* The steps of neighbour_loops.h in plain C; included once per type with REAL, KEY and NAME. `a > b ? a : b` is what the vector maximum does:
 * the second operand where one is NaN. */
#include "kernels/neighbour_candidates.h"
#include "kernels/neighbour_kernels.h"

/* Squared distances of 16 points; the mask of those <= bound. */
static unsigned NAME(block_distances)(const REAL *q, const REAL *x, const REAL *y, const REAL *z,
                                      REAL bound, REAL *squared)
{
    unsigned mask = 0;
    for (int i = 0; i < GRVI_TREE_WIDTH; i++) {
        const REAL dx = q[0] - x[i], dy = q[1] - y[i], dz = q[2] - z[i];
        squared[i] = dx * dx + dy * dy + dz * dz;
        mask |= (unsigned)(squared[i] <= bound) << i;
    }
    return mask;
}

/* Distance of a coordinate to an interval; NaN for missing children. */
static REAL NAME(gap)(REAL q, REAL lower, REAL upper)
{
    const REAL below = lower - q, above = q - upper;
    const REAL outside = below > above ? below : above;
    return 0 > outside ? 0 : outside;
}

/* Keys of 16 boxes; the mask of those whose bound is <= bound. */
static unsigned NAME(block_bounds)(const REAL *q, const REAL *box, REAL bound, KEY *keys)
{
    unsigned mask = 0;
    for (int i = 0; i < GRVI_TREE_WIDTH; i++) {
        const REAL *const b = box + i;
        const REAL dx = NAME(gap)(q[0], b[0], b[3 * GRVI_TREE_WIDTH]);
        const REAL dy = NAME(gap)(q[1], b[GRVI_TREE_WIDTH], b[4 * GRVI_TREE_WIDTH]);
        const REAL dz = NAME(gap)(q[2], b[2 * GRVI_TREE_WIDTH], b[5 * GRVI_TREE_WIDTH]);
        const REAL squared = dx * dx + dy * dy + dz * dz;
        keys[i] = (NAME(bits)(squared) & ~(KEY)(GRVI_TREE_WIDTH - 1)) | i;
        mask |= (unsigned)(squared <= bound) << i;
    }
    return mask;
}

static KEY NAME(smallest_key)(const KEY *keys)
{
    KEY smallest = keys[0];
    for (int i = 1; i < GRVI_TREE_WIDTH; i++) smallest = keys[i] < smallest ? keys[i] : smallest;
    return smallest;
}

/* Inserts the marked points of a block into the GRVI_FEW of a sorted list. */
static void NAME(insert_few)(NAME(candidate) * list, unsigned mask, const REAL *squared,
                             const int32_t *indices)
{
    NAME(insert_marked)(list, GRVI_FEW, mask, squared, indices);
}

/* Smallest and largest of each column of n >= 1 rows of four. */
static void NAME(enclose)(int64_t n, const void *rows, void *lower, void *upper)
{
    const REAL *const x = rows;
    REAL *const low = lower, *const high = upper;
    for (int d = 0; d < 4; d++) {
        low[d] = high[d] = x[d];
        for (int64_t i = 1; i < n; i++) {
            low[d] = x[4 * i + d] < low[d] ? x[4 * i + d] : low[d];
            high[d] = x[4 * i + d] > high[d] ? x[4 * i + d] : high[d];
        }
    }
}
