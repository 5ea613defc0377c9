/* What the instruction sets of the mode mix share: the walk over groups. Internal to
 * mode_mix*.c. */
#ifndef GRVI_KERNELS_MODE_MIX_IMPL_H
#define GRVI_KERNELS_MODE_MIX_IMPL_H

#include "kernels/mode_mix.h"

enum { GRVI_MAX_SIGNS = 1 << (GRVI_MAX_AXES - 1), GRVI_MAX_GROUP_ROWS = 1 << GRVI_MAX_AXES };

/* One group. Bit a of a row number is set for the sine of axis a, bit a of a sign number for the
 * negative frequency of two-sided axis a; the last axis has the highest bit of the row number
 * and none of the sign number. */
typedef struct grvi_mode_group {
    int64_t k[GRVI_MAX_AXES];         /* magnitudes */
    int64_t row[GRVI_MAX_GROUP_ROWS]; /* offset in the local P, -1 if the row does not exist */
    unsigned signs;                   /* bit s: the mode with sign number s exists */
    double scale;                     /* s(f) */
} grvi_mode_group;

/* Group number `index`, in [0, n_groups). */
void grvi_mode_group_begin(const grvi_mode_mix *mix, int64_t index, grvi_mode_group *group);
/* The one after it; after the last one the content means nothing. */
void grvi_mode_group_next(const grvi_mode_mix *mix, grvi_mode_group *group);

/* The tables of the single files; NULL where the compiler does not know the instruction set. */
const grvi_mode_mix_kernels *grvi_mode_mix_kernels_ref(void);
const grvi_mode_mix_kernels *grvi_mode_mix_kernels_avx2(void);
const grvi_mode_mix_kernels *grvi_mode_mix_kernels_avx512(void);

#endif
