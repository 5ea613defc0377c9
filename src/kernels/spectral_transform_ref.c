/* Spectral transforms: the reference. Plain C, one channel at a time, the sums of spectral_layout.h as they stand, in double; only
 * loads and stores are float. Cost n * n_rows multiply-adds per column. */
#include <string.h>

#include "kernels/spectral_transform.h"

/* Which basis function row r of an axis is. */
static const double *row_function(const grvi_axis_tables *t, int64_t r, int64_t *k)
{
    *k = (r + 1) / 2;
    return r == 0 || r % 2 == 1 ? t->unit_cos : t->unit_sin;
}

/* in [outer][n][inner] -> out [outer][n_rows][inner] (forward), or back (inverse). */
static void transform_axis(const grvi_axis_modes *axis, const grvi_axis_tables *t, bool forward,
                           int64_t outer, int64_t inner, const double *in, double *out)
{
    const int64_t n_in = forward ? axis->n : axis->n_rows, n_out = forward ? axis->n_rows : axis->n;
    memset(out, 0, (size_t)(outer * n_out * inner) * sizeof(double));
    for (int64_t o = 0; o < outer; o++)
        for (int64_t r = 0; r < axis->n_rows; r++)
            for (int64_t j = 0; j < axis->n; j++) {
                int64_t k;
                const double *const function = row_function(t, r, &k);
                const double f = function[k * j % axis->n];
                const double *const from = in + (o * n_in + (forward ? j : r)) * inner;
                double *const to = out + (o * n_out + (forward ? r : j)) * inner;
                for (int64_t i = 0; i < inner; i++) to[i] += f * from[i];
            }
}

/* Scratch: two buffers of one channel of a plane (or of one line of axis 0); rows never outnumber points. */
static int64_t buffer_doubles(const grvi_spectral_layout *l)
{
    return grvi_max_i64(l->n_points / l->axis[0].n, l->axis[0].n);
}

static int64_t scratch_bytes(const grvi_transform_tables *tables)
{
    return 2 * buffer_doubles(&tables->layout) * (int64_t)sizeof(double);
}

/* Applies the local axes, 1 .. d-1 upwards, to `values`; returns where the result is. */
static double *transform_local(const grvi_transform_tables *tables, bool forward, double *values,
                               double *other)
{
    const grvi_spectral_layout *const l = &tables->layout;
    for (int a = 1; a < l->n_axes; a++) {
        int64_t outer = 1, inner = 1;
        for (int b = 1; b < a; b++) outer *= forward ? l->axis[b].n_rows : l->axis[b].n;
        for (int b = a + 1; b < l->n_axes; b++) inner *= forward ? l->axis[b].n : l->axis[b].n_rows;
        transform_axis(&l->axis[a], &tables->axis[a], forward, outer, inner, values, other);
        double *const swap = values;
        values = other;
        other = swap;
    }
    return values;
}

/* Calls of `visit` for the coefficients of one channel: position in [r_1][r_2]..[r_{d-1}] order, row r_1 and column of Q. */
typedef void coefficient_visitor(void *argument, int64_t position, int64_t r1, int64_t column);

static void visit_coefficients(const grvi_spectral_layout *l, int64_t channel,
                               coefficient_visitor *visit, void *argument)
{
    const int64_t n_r1 = l->n_axes > 1 ? l->axis[1].n_rows : 1,
                  n2 = l->n_axes > 2 ? l->axis[2].n_rows : 1,
                  n3 = l->n_axes > 3 ? l->axis[3].n_rows : 1;
    for (int64_t r1 = 0; r1 < n_r1; r1++)
        for (int64_t r2 = 0; r2 < n2; r2++)
            for (int64_t r3 = 0; r3 < n3; r3++)
                visit(argument, (r1 * n2 + r2) * n3 + r3, r1,
                      (r3 * n2 + r2) * l->channels + channel);
}

typedef struct plane_copy {
    int64_t block;
    double *values;
    grvi_slab_plane out;
    grvi_slab_plane_const in;
} plane_copy;

static void put_coefficient(void *argument, int64_t position, int64_t r1, int64_t column)
{
    const plane_copy *const c = argument;
    c->out.data[r1 * c->out.stride_r1 + column / c->block * c->out.stride_qb + column % c->block] =
        (float)c->values[position];
}

static void get_coefficient(void *argument, int64_t position, int64_t r1, int64_t column)
{
    const plane_copy *const c = argument;
    c->values[position] =
        (double)c->in
            .data[r1 * c->in.stride_r1 + column / c->block * c->in.stride_qb + column % c->block];
}

static void analyse_plane(const grvi_transform_tables *tables, const float *v, grvi_slab_plane a,
                          void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const int64_t n_points = l->n_points / l->axis[0].n,
                  n_r1 = l->n_axes > 1 ? l->axis[1].n_rows : 1;
    double *const buffer = scratch;
    for (int64_t channel = 0; channel < l->channels; channel++) {
        for (int64_t i = 0; i < n_points; i++) buffer[i] = (double)v[i * l->channels + channel];
        plane_copy copy = {.block = l->block, .out = a};
        copy.values = transform_local(tables, true, buffer, buffer + buffer_doubles(l));
        visit_coefficients(l, channel, put_coefficient, &copy);
    }
    for (int64_t r1 = 0; r1 < n_r1; r1++)
        for (int64_t q = l->n_columns; q < l->n_blocks * l->block; q++)
            a.data[r1 * a.stride_r1 + q / l->block * a.stride_qb + q % l->block] = 0;
}

static void analyse_gradient_plane(const grvi_transform_tables *tables, const float *dy,
                                   const float *pre, grvi_activation activation, float *g,
                                   grvi_slab_plane a, void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const int64_t n = l->n_points / l->axis[0].n * l->channels;
    for (int64_t i = 0; i < n; i++)
        g[i] = (float)((double)dy[i] * grvi_activation_derivative(activation, (double)pre[i]));
    analyse_plane(tables, g, a, scratch);
}

static double end_value(const grvi_synthesis_end *end, int64_t n_channels, int64_t point,
                        int64_t channel, double transformed)
{
    double value = transformed + (end->bias ? (double)end->bias[channel] : 0);
    if (end->skip_input)
        for (int64_t i = 0; i < n_channels; i++)
            value += (double)end->skip_input[point * n_channels + i] *
                     (double)end->weight[i * n_channels + channel];
    return value;
}

static void synthesise_plane(const grvi_transform_tables *tables, grvi_slab_plane_const a,
                             const grvi_synthesis_end *end, float *y, float *pre, void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const int64_t n_points = l->n_points / l->axis[0].n;
    for (int64_t channel = 0; channel < l->channels; channel++) {
        plane_copy copy = {.block = l->block, .in = a, .values = scratch};
        visit_coefficients(l, channel, get_coefficient, &copy);
        const double *const values =
            transform_local(tables, false, copy.values, copy.values + buffer_doubles(l));
        for (int64_t i = 0; i < n_points; i++) {
            const double value = end_value(end, l->channels, i, channel, values[i]);
            if (pre) pre[i * l->channels + channel] = (float)value;
            y[i * l->channels + channel] = (float)grvi_activation_value(end->activation, value);
        }
    }
}

/* Along axis 0: column q of a, [n_0][block] per block, <-> column q of p, [n_0 rows][n_blocks * block]. */
static void first_axis_forward(const grvi_transform_tables *tables, const float *a, float *p,
                               int64_t block_begin, int64_t block_end, void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const grvi_axis_modes *const x = &l->axis[0];
    double *const in = scratch, *const out = in + buffer_doubles(l);
    for (int64_t q = block_begin * l->block; q < block_end * l->block; q++) {
        const int64_t first = q / l->block * x->n * l->block + q % l->block;
        for (int64_t j = 0; j < x->n; j++) in[j] = (double)a[first + j * l->block];
        transform_axis(x, &tables->axis[0], true, 1, 1, in, out);
        for (int64_t r = 0; r < x->n_rows; r++) p[r * l->n_blocks * l->block + q] = (float)out[r];
    }
}

static void first_axis_inverse(const grvi_transform_tables *tables, const float *p, float *a,
                               int64_t block_begin, int64_t block_end, void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const grvi_axis_modes *const x = &l->axis[0];
    double *const in = scratch, *const out = in + buffer_doubles(l);
    for (int64_t q = block_begin * l->block; q < block_end * l->block; q++) {
        const int64_t first = q / l->block * x->n * l->block + q % l->block;
        for (int64_t r = 0; r < x->n_rows; r++) in[r] = (double)p[r * l->n_blocks * l->block + q];
        transform_axis(x, &tables->axis[0], false, 1, 1, in, out);
        for (int64_t j = 0; j < x->n; j++) a[first + j * l->block] = (float)out[j];
    }
}

static const grvi_spectral_kernels kernels = {scratch_bytes,          analyse_plane,
                                              analyse_gradient_plane, synthesise_plane,
                                              first_axis_forward,     first_axis_inverse};

const grvi_spectral_kernels *grvi_spectral_kernels_ref(void)
{
    return &kernels;
}
