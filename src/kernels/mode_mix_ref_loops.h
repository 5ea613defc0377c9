/* The mode mix straight from its definition, in double; the oracle. Included once per type of
 * the data (REAL). */
#include <string.h>

#include "kernels/mode_mix_impl.h"

/* X_s = sum over rows t of prod over axes a in t of (-i for a non-negative frequency, +i for a
 * negative one) * row t: complex vectors [re c | im c], one per sign number. */
static void to_modes(const grvi_mode_mix *mix, const grvi_mode_group *group, double scale,
                     const REAL *p, double *x)
{
    const int64_t c = mix->layout.channels;
    const int d = mix->layout.n_axes, n_rows = 1 << d, n_signs = n_rows / 2;
    memset(x, 0, (size_t)(n_signs * 2 * c) * sizeof *x);
    for (int s = 0; s < n_signs; s++, x += 2 * c)
        for (int t = 0; t < n_rows; t++) {
            if (group->row[t] < 0) continue;
            double re = scale, im = 0;
            for (int a = 0; a < d; a++) {
                if (!(t >> a & 1)) continue;
                const double sign = s >> a & 1 ? 1 : -1, old = re;
                re = -sign * im;
                im = sign * old;
            }
            for (int64_t i = 0; i < c; i++) {
                x[i] += re * (double)p[group->row[t] + i];
                x[c + i] += im * (double)p[group->row[t] + i];
            }
        }
}

/* The transpose: row t = Re sum over the modes s of prod over a in t of (+i or -i) * Y_s. */
static void from_modes(const grvi_mode_mix *mix, const grvi_mode_group *group, const double *y,
                       REAL *p)
{
    const int64_t c = mix->layout.channels;
    const int d = mix->layout.n_axes, n_rows = 1 << d, n_signs = n_rows / 2;
    for (int t = 0; t < n_rows; t++) {
        if (group->row[t] < 0) continue;
        for (int64_t o = 0; o < c; o++) {
            double sum = 0;
            for (int s = 0; s < n_signs; s++) {
                if (!(group->signs >> s & 1)) continue;
                double re = y[2 * c * s + o], im = y[2 * c * s + c + o];
                for (int a = 0; a < d; a++) {
                    if (!(t >> a & 1)) continue;
                    const double sign = s >> a & 1 ? -1 : 1, old = re;
                    re = -sign * im;
                    im = sign * old;
                }
                sum += re;
            }
            p[group->row[t] + o] = (REAL)sum;
        }
    }
}

/* y_o = sum_i x_i w_io */
static void multiply(int64_t c, const REAL *w, const double *x, double *y)
{
    memset(y, 0, (size_t)(2 * c) * sizeof *y);
    for (int64_t i = 0; i < c; i++, w += 2 * c)
        for (int64_t o = 0; o < c; o++) {
            y[o] += x[i] * (double)w[o] - x[c + i] * (double)w[c + o];
            y[c + o] += x[i] * (double)w[c + o] + x[c + i] * (double)w[o];
        }
}

/* y_i = sum_o conj(w_io) q_o */
static void multiply_adjoint(int64_t c, const REAL *w, const double *q, double *y)
{
    memset(y, 0, (size_t)(2 * c) * sizeof *y);
    for (int64_t i = 0; i < c; i++, w += 2 * c)
        for (int64_t o = 0; o < c; o++) {
            y[i] += (double)w[o] * q[o] + (double)w[c + o] * q[c + o];
            y[c + i] += (double)w[o] * q[c + o] - (double)w[c + o] * q[o];
        }
}

/* One number of dW, summed over the samples [first, first + n) as the header's tree; x, q of a
 * sample are `stride` apart. */
static REAL outer_sum(int64_t n, int64_t stride, int64_t c, int64_t i, int64_t o, bool imaginary,
                      const double *x, const double *q)
{
    if (n == 1)
        return (REAL)(imaginary ? x[i] * q[c + o] - x[c + i] * q[o]
                                : x[i] * q[o] + x[c + i] * q[c + o]);
    int64_t left = 1;
    while (2 * left < n) left *= 2;
    const REAL a = outer_sum(left, stride, c, i, o, imaginary, x, q);
    const REAL b =
        outer_sum(n - left, stride, c, i, o, imaginary, x + left * stride, q + left * stride);
    return a + b;
}

static void forward(const grvi_mode_mix *mix, const grvi_mode_mix_work *work, const REAL *weights,
                    const REAL *in, REAL *out, void *scratch)
{
    const int64_t c = mix->layout.channels, sample = 2 * c << (mix->layout.n_axes - 1);
    double *const x = scratch, *const y = x + work->n_samples * sample;
    grvi_mode_group group;
    if (work->begin >= work->end) return;
    grvi_mode_group_begin(mix, work->begin, &group);
    const REAL *w = weights + grvi_mode_mix_first_mode(mix, work->begin) * 2 * c * c;
    for (int64_t g = work->begin; g < work->end; g++, grvi_mode_group_next(mix, &group)) {
        for (int64_t n = 0; n < work->n_samples; n++)
            to_modes(mix, &group, group.scale, in + n * work->sample_stride, x + n * sample);
        for (int s = 0; s < GRVI_MAX_SIGNS; s++) {
            if (!(group.signs >> s & 1)) continue;
            for (int64_t n = 0; n < work->n_samples; n++)
                multiply(c, w, x + n * sample + 2 * c * s, y + n * sample + 2 * c * s);
            w += 2 * c * c;
        }
        for (int64_t n = 0; n < work->n_samples; n++)
            from_modes(mix, &group, y + n * sample, out + n * work->sample_stride);
    }
}

static void backward(const grvi_mode_mix *mix, const grvi_mode_mix_work *work, const REAL *weights,
                     const REAL *in, const REAL *grad_out, REAL *grad_in, REAL *grad_weights,
                     void *scratch)
{
    const int64_t c = mix->layout.channels, sample = 2 * c << (mix->layout.n_axes - 1),
                  n_samples = work->n_samples;
    double *const x = scratch, *const q = x + n_samples * sample;
    grvi_mode_group group;
    if (work->begin >= work->end) return;
    grvi_mode_group_begin(mix, work->begin, &group);
    int64_t mode = grvi_mode_mix_first_mode(mix, work->begin);
    for (int64_t g = work->begin; g < work->end; g++, grvi_mode_group_next(mix, &group)) {
        for (int64_t n = 0; n < n_samples; n++) {
            to_modes(mix, &group, group.scale, grad_out + n * work->sample_stride, q + n * sample);
            if (grad_weights != NULL)
                to_modes(mix, &group, 1, in + n * work->sample_stride, x + n * sample);
        }
        for (int s = 0; s < GRVI_MAX_SIGNS; s++) {
            if (!(group.signs >> s & 1)) continue;
            double *const xs = x + 2 * c * s;
            const double *const qs = q + 2 * c * s;
            if (grad_weights != NULL) {
                REAL *const dw = grad_weights + mode * 2 * c * c;
                for (int64_t i = 0; i < c; i++)
                    for (int64_t o = 0; o < 2 * c; o++)
                        dw[2 * c * i + o] =
                            outer_sum(n_samples, sample, c, i, o % c, o >= c, xs, qs);
            }
            if (grad_in != NULL) /* X is no longer needed: its place takes dX */
                for (int64_t n = 0; n < n_samples; n++)
                    multiply_adjoint(c, weights + mode * 2 * c * c, qs + n * sample,
                                     xs + n * sample);
            mode++;
        }
        if (grad_in == NULL) continue;
        for (int64_t n = 0; n < n_samples; n++)
            from_modes(mix, &group, x + n * sample, grad_in + n * work->sample_stride);
    }
}
