/* Sizes and memory orders of the truncated real spectrum of an FNO layer. Internal; pure arithmetic, no memory of its own.
 *
 * Transforms are real products: along an axis of n points, row C_k = sum_j v_j cos(2 pi k j/n), S_k = sum_j v_j sin(2 pi k j/n),
 * kept in the order C_0, C_1, S_1, C_2, S_2, ... so that a range of |k| is a range of rows. The complex coefficient is
 * X(+k) = C_k - i S_k, X(-k) = C_k + i S_k; complex numbers exist only inside the mode mix.
 *   Two-sided axes (all but the last) keep the frequencies -m .. m-1: cosines 0..m, sines 1..m (1..m-1 if 2m == n: S_m = 0).
 *   The last axis is one-sided and keeps 0 .. k-1: cosines 0..k-1, sines 1..k-1 (without S_{n/2}).
 *
 * d axes (1 to 4), c channels. r_a = rows of axis a.
 *   v   physical, one sample:  [n_0][n_1]...[n_{d-1}][c]
 *   Q   the columns of one (r_1, x): [r_{d-1}][r_{d-2}]..[r_2][c] (only [c] for d <= 2), n_columns floats, padded with zeros to
 *       n_blocks * block floats; block = min(64, n_columns rounded up to 16)
 *   A   "slab order", all axes but axis 0 transformed: [r_1][n_blocks][x][block]   ([n_blocks][x][block] for d = 1)
 *   P   "mode order", all axes transformed:            [r_1][r_0][n_blocks * block] ([r_0][...] for d = 1)
 * x is split over ranks in v and A; |k_1| (rows of axis 1) is split over ranks in P.
 *
 * Weights of one mode: [in][re, im][out], 2 c c floats. Modes are packed, innermost last, as
 *   |k_1|, |k_0|, k_{d-1}, |k_{d-2}|, ..., |k_2|, then the sign combinations that exist, numbered with bit (a) set for a negative
 *   frequency of two-sided axis a, in increasing number (axis 0 is bit 0),
 * so that the weights of a range of |k_1| are one contiguous piece. For d = 1: k_0. For d = 2 axis 1 is the one-sided one. */
#ifndef GRVI_KERNELS_SPECTRAL_LAYOUT_H
#define GRVI_KERNELS_SPECTRAL_LAYOUT_H

#include "core/check.h"

enum { GRVI_MAX_AXES = 4 };

/* One axis. */
typedef struct grvi_axis_modes {
    int64_t n;       /* points */
    int64_t modes;   /* m (two-sided) or k (one-sided) as configured */
    bool two_sided;
    int64_t n_cos;   /* cosine rows, k = 0 .. n_cos-1 */
    int64_t n_sin;   /* sine rows, k = 1 .. n_sin */
    int64_t n_rows;  /* n_cos + n_sin */
} grvi_axis_modes;

typedef struct grvi_spectral_layout {
    int n_axes;
    int64_t channels;
    grvi_axis_modes axis[GRVI_MAX_AXES];
    int64_t n_points;  /* product of n over the axes */
    int64_t n_columns; /* Q */
    int64_t block;     /* floats of a column block */
    int64_t n_blocks;
    int64_t n_modes;   /* complex modes kept: product of 2m over two-sided axes times k */
} grvi_spectral_layout;

/* Row of cosine k and of sine k (k >= 1). */
static inline int64_t grvi_row_cos(int64_t k) { return k == 0 ? 0 : 2 * k - 1; }
static inline int64_t grvi_row_sin(int64_t k) { return 2 * k; }

/* One axis: checks 1 <= modes, and 2 modes <= n (two-sided) or modes <= n/2+1 (one-sided); the name is for messages. */
grv_status grvi_axis_modes_init(grvi_axis_modes *axis, const char *name, bool two_sided, int64_t n, int64_t modes) GRV_MUST_CHECK;
/* Checks the sizes (two-sided 1 <= m, 2m <= n; one-sided 1 <= k <= n/2+1; channels >= 1) and fills *layout.
 * GRV_E_ARG names the axis, what was asked for and what is possible. */
grv_status grvi_spectral_layout_init(grvi_spectral_layout *layout, int n_axes, const int64_t *n, const int64_t *modes,
                                     int64_t channels) GRV_MUST_CHECK;

/* Fills n_columns, block, n_blocks of a layout from its axes 2.. and channels. */
void grvi_spectral_columns(grvi_spectral_layout *layout, int n_axes, const grvi_axis_modes *axis, int64_t channels);
/* How many |k| an axis keeps (0 .. count-1): m+1 for two-sided, k for one-sided. Axis 1 (axis 0 if d = 1) is split by these. */
int64_t grvi_axis_magnitudes(const grvi_axis_modes *axis);
/* Signs that exist for magnitude k of an axis: bit 0 = the non-negative frequency, bit 1 = the negative one.
 * Two-sided: 1 for k = 0, 3 for 0 < k < m, 2 for k = m. One-sided: 1. */
int grvi_axis_signs(const grvi_axis_modes *axis, int64_t k);
/* First row of magnitude k; k = grvi_axis_magnitudes gives n_rows. */
int64_t grvi_axis_first_row(const grvi_axis_modes *axis, int64_t k);
/* Complex modes with |k_1| < k (k_0 < k for d = 1): the packed position of the first mode of |k_1| = k. */
int64_t grvi_spectral_modes_before(const grvi_spectral_layout *layout, int64_t k);
/* Packed position of the mode with signed frequencies f[0..d-1] (f[d-1] >= 0), each of them kept. */
int64_t grvi_spectral_mode_position(const grvi_spectral_layout *layout, const int64_t *f);

#endif
