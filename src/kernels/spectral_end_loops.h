/* The pointwise end of synthesis (skip product, bias, activation) and the derivative that starts its backward pass, for one
 * instruction set (see simd.h). */
#ifndef GRVI_KERNELS_SPECTRAL_END_LOOPS_H
#define GRVI_KERNELS_SPECTRAL_END_LOOPS_H

#include "kernels/activation_simd.h"
#include "kernels/spectral_axis_loops.h"

enum { CACHE_LINE = 16 }; /* floats */

/* The skip product in the form that the tiles read. Output channels are whole vectors, then quads: a quad vector holds four
 * channels of QUAD_POINTS points, so that the channels left over by whole vectors (4 of 20) do not cost one. Channels that are
 * no multiple of 4 are padded to whole vectors instead; the weights of the padding are zero, so that the lanes behind a
 * point's last channel, which belong to the next point, keep their values. */
typedef struct pointwise_end {
    int64_t channels, n_full, n_quads;
    int64_t weight_stride; /* channels rounded up to a vector */
    int64_t n_inputs;      /* channels, or 0 without skip product */
    bool changes;          /* false: neither skip product nor bias */
    float *weight;         /* [channels][weight_stride] */
    float *bias;           /* [weight_stride] */
    grvi_activation activation;
} pointwise_end;

enum { QUAD_POINTS = GRVI_LANES / 4, GROUP_VECTORS = 3, MAX_POINTS = 16 };

/* values[p] += bias + u[p] W for n_points points, output channels from `first` on: n_full vectors, then n_quads quads. */
GRVI_INLINE void skip_tile(const int n_points, const int n_full, const int n_quads,
                           const pointwise_end *end, const float *u, int64_t first, float *values)
{
    const int n_groups = n_points / QUAD_POINTS, step = n_quads > 0 ? 4 : 1;
    const int64_t c = end->channels, first_quad = first + n_full * GRVI_LANES;
    const float *weight = end->weight + first, *quad_weight = end->weight + first_quad;
    vf acc[MAX_POINTS][GROUP_VECTORS], quad_acc[MAX_POINTS / QUAD_POINTS][QUAD_POINTS];
    values += first;
    UNROLL
    for (int p = 0; p < n_points; p++) UNROLL
    for (int v = 0; v < n_full; v++)
        acc[p][v] = vf_add(vf_load(values + p * c + v * GRVI_LANES),
                           vf_load(end->bias + first + v * GRVI_LANES));
    UNROLL
    for (int g = 0; g < n_groups; g++) UNROLL
    for (int v = 0; v < n_quads; v++)
        quad_acc[g][v] =
            vf_add(vf_load_quads(values + n_full * GRVI_LANES + g * QUAD_POINTS * c + 4 * v, c),
                   vf_repeat_quad(end->bias + first_quad + 4 * v));
    for (int64_t i = 0; i < end->n_inputs; i += step) {
        vf x_quad[MAX_POINTS / QUAD_POINTS];
        UNROLL
        for (int g = 0; g < n_groups && n_quads > 0; g++)
            x_quad[g] = vf_load_quads(u + g * QUAD_POINTS * c + i, c);
        UNROLL
        for (int l = 0; l < step; l++) {
            vf w[GROUP_VECTORS];
            UNROLL
            for (int v = 0; v < n_full; v++) w[v] = vf_load(weight + v * GRVI_LANES);
            UNROLL
            for (int p = 0; p < n_points; p++) {
                const vf x = vf_set1(u[p * c + i + l]);
                UNROLL
                for (int v = 0; v < n_full; v++) acc[p][v] = vf_fma(x, w[v], acc[p][v]);
            }
            UNROLL
            for (int v = 0; v < n_quads; v++) {
                const vf quad = vf_repeat_quad(quad_weight + 4 * v);
                UNROLL
                for (int g = 0; g < n_groups; g++)
                    quad_acc[g][v] = vf_fma(vf_spread_quad(x_quad[g], l), quad, quad_acc[g][v]);
            }
            weight += end->weight_stride;
            quad_weight += end->weight_stride;
        }
    }
    UNROLL
    for (int p = 0; p < n_points; p++) /* upwards: see pointwise_end */
        UNROLL
    for (int v = 0; v < n_full; v++) vf_store(values + p * c + v * GRVI_LANES, acc[p][v]);
    UNROLL
    for (int g = 0; g < n_groups; g++) UNROLL
    for (int v = 0; v < n_quads; v++)
        vf_store_quads(values + n_full * GRVI_LANES + g * QUAD_POINTS * c + 4 * v, c,
                       quad_acc[g][v]);
}

/* Rows of points: row r lies at values + r * values_stride (scratch, overwritten; GRVI_LANES floats behind a row are rewritten) and at
 * offset + r * plane_stride of the planes. The same rows `ahead` floats further on in the planes are fetched. */
typedef struct point_rows {
    int64_t n_rows, n_points; /* points of a row */
    float *values;
    int64_t values_stride, offset, plane_stride, ahead;
} point_rows;

/* The planes that synthesis ends in; u and pre may be NULL. */
typedef struct end_planes {
    const float *u;
    float *y, *pre;
} end_planes;

/* All points of all rows, in tiles of 8 to 28 accumulators. Points that do not fill a quad vector are padded to whole vectors. */
GRVI_INLINE void skip_group(const int n_full, const int n_quads, const pointwise_end *end,
                            const point_rows *rows, const float *u_plane, int64_t first)
{
    const int large = n_full == 0 && GRVI_REGISTERS == 32   ? 16
                      : n_full <= 1 || GRVI_REGISTERS == 32 ? 8
                                                            : 4;
    const int small = n_quads > 0 ? QUAD_POINTS : 1,
              padded = n_full < GROUP_VECTORS ? n_full + 1 : GROUP_VECTORS;
    const int64_t c = end->channels, n = rows->n_points;
    for (int64_t r = 0; r < rows->n_rows; r++) {
        float *const values = rows->values + r * rows->values_stride;
        const float *u = values; /* not read where there is no skip product */
        if (u_plane) {
            u = u_plane + rows->offset + r * rows->plane_stride;
            for (int64_t i = 0; i < n * c && first == 0; i += CACHE_LINE)
                prefetch_far(u + rows->ahead + i);
        }
        int64_t p = 0;
        for (; p + large <= n; p += large)
            skip_tile(large, n_full, n_quads, end, u + p * c, first, values + p * c);
        for (; p + 4 <= n; p += 4)
            skip_tile(4, n_full, n_quads, end, u + p * c, first, values + p * c);
        for (; p + small <= n; p += small)
            skip_tile(small, n_full, n_quads, end, u + p * c, first, values + p * c);
        for (; n_quads > 0 && p < n; p++)
            skip_tile(1, padded, 0, end, u + p * c, first, values + p * c);
    }
}

/* Groups of output channels: three vectors at a time, then at most two with the quads. */
static void add_skip(const pointwise_end *end, const point_rows *rows, const float *u)
{
    int64_t first = 0, n_full = end->n_full;
    for (; n_full >= GROUP_VECTORS; n_full -= GROUP_VECTORS) {
        skip_group(3, 0, end, rows, u, first);
        first += 3 * GRVI_LANES;
    }
#define GROUP(full)                                                    \
    switch (end->n_quads) {                                            \
    case 0:                                                            \
        if ((full) > 0) skip_group(full, 0, end, rows, u, first);      \
        break;                                                         \
    case 1: skip_group(full, 1, end, rows, u, first); break;           \
    case 2:                                                            \
        if (QUAD_POINTS > 2) skip_group(full, 2, end, rows, u, first); \
        break;                                                         \
    default:                                                           \
        if (QUAD_POINTS > 2) skip_group(full, 3, end, rows, u, first); \
        break;                                                         \
    }
    switch (n_full) {
    case 0: GROUP(0) break;
    case 1: GROUP(1) break;
    default: GROUP(2) break;
    }
#undef GROUP
}

GRVI_INLINE void activate(const grvi_activation activation, int64_t n, const float *values,
                          float *y, float *pre)
{
    int64_t i = 0;
    for (; i + GRVI_ACTIVATION_GROUP * GRVI_LANES <= n; i += GRVI_ACTIVATION_GROUP * GRVI_LANES) {
        vf x[GRVI_ACTIVATION_GROUP], out[GRVI_ACTIVATION_GROUP];
        UNROLL
        for (int k = 0; k < GRVI_ACTIVATION_GROUP; k++) x[k] = vf_load(values + i + k * GRVI_LANES);
        UNROLL
        for (int k = 0; k < GRVI_ACTIVATION_GROUP && pre; k++) vf_store(pre + i + k * GRVI_LANES, x[k]);
        vf_activation_n(activation, GRVI_ACTIVATION_GROUP, x, out);
        UNROLL
        for (int k = 0; k < GRVI_ACTIVATION_GROUP; k++) vf_store(y + i + k * GRVI_LANES, out[k]);
    }
    for (; i < n; i += GRVI_LANES) {
        const int64_t rest = grvi_min_i64(GRVI_LANES, n - i);
        const vf x = vf_load_n(values + i, rest);
        if (pre) vf_store_n(pre + i, x, rest);
        vf_store_n(y + i, vf_activation(activation, x), rest);
    }
}

static void finish_rows(const pointwise_end *end, const point_rows *rows, const end_planes *planes)
{
    const int64_t n = rows->n_points * end->channels;
    if (end->changes) add_skip(end, rows, planes->u);
    for (int64_t r = 0; r < rows->n_rows; r++) {
        const int64_t at = rows->offset + r * rows->plane_stride;
        const float *const values = rows->values + r * rows->values_stride;
        float *const y = planes->y + at, *const pre = planes->pre ? planes->pre + at : NULL;
        switch (end->activation) {
        case GRVI_ACT_NONE: activate(GRVI_ACT_NONE, n, values, y, pre); break;
        case GRVI_ACT_RELU: activate(GRVI_ACT_RELU, n, values, y, pre); break;
        case GRVI_ACT_GELU: activate(GRVI_ACT_GELU, n, values, y, pre); break;
        }
    }
}

GRVI_INLINE void multiply_derivative(const grvi_activation activation, int64_t n, const float *dy,
                                     const float *pre, float *g)
{
    int64_t i = 0;
    for (; i + GRVI_ACTIVATION_GROUP * GRVI_LANES <= n; i += GRVI_ACTIVATION_GROUP * GRVI_LANES) {
        vf x[GRVI_ACTIVATION_GROUP], slope[GRVI_ACTIVATION_GROUP];
        UNROLL
        for (int k = 0; k < GRVI_ACTIVATION_GROUP; k++) x[k] = vf_load(pre + i + k * GRVI_LANES);
        vf_activation_derivative_n(activation, GRVI_ACTIVATION_GROUP, x, slope);
        UNROLL
        for (int k = 0; k < GRVI_ACTIVATION_GROUP; k++)
            vf_store(g + i + k * GRVI_LANES, vf_mul(vf_load(dy + i + k * GRVI_LANES), slope[k]));
    }
    for (; i < n; i += GRVI_LANES) {
        const int64_t rest = grvi_min_i64(GRVI_LANES, n - i);
        const vf derivative = vf_activation_derivative(activation, vf_load_n(pre + i, rest));
        vf_store_n(g + i, vf_mul(vf_load_n(dy + i, rest), derivative), rest);
    }
}

#endif
