/* Reference of the real truncated transform along one axis, for float and double data, computing in double. Internal.
 * in [outer][n][inner] -> out [outer][n_rows][inner], rows as in spectral_layout.h; the adjoint goes back. Cost n n_rows each. */
#ifndef GRVI_KERNELS_AXIS_TRANSFORM_H
#define GRVI_KERNELS_AXIS_TRANSFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/spectral_layout.h"

/* table [n_rows][n]: cosines and sines, exact to rounding for any n (the angle is reduced in integers). */
void grvi_axis_table(const grvi_axis_modes *axis, double *table);
/* out[r] = sum over c of T[r][c] in[c] for one outer index and result rows [begin, end);
 * T = table, or its transpose (then there are n results of n_rows terms). */
void grvi_axis_transform_f32(const grvi_axis_modes *axis, const double *table, bool transposed, int64_t begin, int64_t end, int64_t inner,
                             const float *in, float *out);
void grvi_axis_transform_f64(const grvi_axis_modes *axis, const double *table, bool transposed, int64_t begin, int64_t end, int64_t inner,
                             const double *in, double *out);

#endif
