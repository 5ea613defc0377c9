/* Reference transform along one axis. */
#include <math.h>

#include "kernels/axis_transform.h"

void grvi_axis_table(const grvi_axis_modes *axis, double *table)
{
    static const double two_pi = 6.283185307179586476925;
    for (int64_t j = 0; j < axis->n; j++)
        for (int64_t k = 0; k < axis->n_cos; k++) {
            const double angle = two_pi * (double)(j * k % axis->n) / (double)axis->n;
            table[grvi_row_cos(k) * axis->n + j] = cos(angle);
            if (k >= 1 && k <= axis->n_sin) table[grvi_row_sin(k) * axis->n + j] = sin(angle);
        }
}

enum { COLUMNS = 32 };

#define GRVI_AXIS_TRANSFORM(type)                                                                  \
    do {                                                                                           \
        const int64_t n_terms = transposed ? axis->n_rows : axis->n;                               \
        const int64_t row_stride = transposed ? 1 : axis->n, term_stride = transposed ? axis->n : 1; \
        for (int64_t first = 0; first < inner; first += COLUMNS) {                                 \
            const int64_t width = grvi_min_i64(COLUMNS, inner - first);                            \
            for (int64_t r = begin; r < end; r++) {                                                \
                double sum[COLUMNS] = {0};                                                         \
                for (int64_t c = 0; c < n_terms; c++) {                                            \
                    const double factor = table[r * row_stride + c * term_stride];                 \
                    const type *const x = in + c * inner + first;                                  \
                    for (int64_t i = 0; i < width; i++) sum[i] += factor * (double)x[i];           \
                }                                                                                  \
                for (int64_t i = 0; i < width; i++) out[r * inner + first + i] = (type)sum[i];     \
            }                                                                                      \
        }                                                                                          \
    } while (0)

void grvi_axis_transform_f32(const grvi_axis_modes *axis, const double *table, bool transposed, int64_t begin, int64_t end, int64_t inner,
                             const float *in, float *out)
{
    GRVI_AXIS_TRANSFORM(float);
}

void grvi_axis_transform_f64(const grvi_axis_modes *axis, const double *table, bool transposed, int64_t begin, int64_t end, int64_t inner,
                             const double *in, double *out)
{
    GRVI_AXIS_TRANSFORM(double);
}
