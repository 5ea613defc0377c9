/* The fast point kernels, compiled once per instruction set (simd.h); float32. Tiles of points: point_tile.h.
 * Sums of gradients run in float over GRVI_TILES_PER_SUM tiles, lane by lane, then go to the caller's doubles. Sums over single
 * numbers (losses, norms) run in double: number i belongs to partial sum i mod 16, for every instruction set.
 * Loops without vf are written so that the compiler vectorises them; fmaf and fma are one instruction here. */
#ifndef GRVI_KERNELS_POINT_LOOPS_H
#define GRVI_KERNELS_POINT_LOOPS_H

#include <math.h>

#include "kernels/point_kernels.h"
#include "kernels/point_tile.h"

/* Takes n floats, a multiple of 16, from scratch. */
static float *take(float **scratch, int64_t n)
{
    float *const taken = *scratch;
    *scratch += n;
    return taken;
}

static int64_t points_of_tile(int64_t n_points, int64_t first)
{
    return n_points - first < T ? n_points - first : T;
}

/* ---- activations ---- */

GRVI_INLINE void act_forward_loop(const grvi_activation kind, int64_t n, const float *x, float *y)
{
    int64_t i = 0;
    for (; kind == GRVI_ACT_GELU && i + GROUP * GRVI_LANES <= n; i += GROUP * GRVI_LANES) {
        vf v[GROUP];
#pragma GCC unroll 3
        for (int j = 0; j < GROUP; j++) v[j] = vf_load(x + i + j * GRVI_LANES);
        vf_gelu_n(GROUP, v, v, NULL);
#pragma GCC unroll 3
        for (int j = 0; j < GROUP; j++) vf_store(y + i + j * GRVI_LANES, v[j]);
    }
    for (; i + GRVI_LANES <= n; i += GRVI_LANES)
        vf_store(y + i, vf_activation(kind, vf_load(x + i)));
    if (i < n) vf_store_n(y + i, vf_activation(kind, vf_load_n(x + i, n - i)), n - i);
}

static void act_forward(grvi_activation kind, int64_t n, const void *x, void *y)
{
    switch (kind) {
    case GRVI_ACT_GELU: act_forward_loop(GRVI_ACT_GELU, n, x, y); break;
    case GRVI_ACT_RELU: act_forward_loop(GRVI_ACT_RELU, n, x, y); break;
    default: act_forward_loop(GRVI_ACT_NONE, n, x, y); break;
    }
}

GRVI_INLINE void act_gradient_loop(const grvi_activation kind, int64_t n, const float *dy,
                                   const float *pre, float *g)
{
    int64_t i = 0;
    for (; kind == GRVI_ACT_GELU && i + GROUP * GRVI_LANES <= n; i += GROUP * GRVI_LANES) {
        vf v[GROUP], slope[GROUP];
#pragma GCC unroll 3
        for (int j = 0; j < GROUP; j++) v[j] = vf_load(pre + i + j * GRVI_LANES);
        vf_gelu_derivative_n(GROUP, v, slope);
#pragma GCC unroll 3
        for (int j = 0; j < GROUP; j++)
            vf_store(g + i + j * GRVI_LANES, vf_mul(vf_load(dy + i + j * GRVI_LANES), slope[j]));
    }
    for (; i + GRVI_LANES <= n; i += GRVI_LANES) {
        vf_store(g + i, vf_mul(vf_load(dy + i), vf_activation_derivative(kind, vf_load(pre + i))));
    }
    if (i < n)
        vf_store_n(g + i,
                   vf_mul(vf_load_n(dy + i, n - i),
                          vf_activation_derivative(kind, vf_load_n(pre + i, n - i))),
                   n - i);
}

static void act_gradient(grvi_activation kind, int64_t n, const void *dy, const void *pre, void *g)
{
    switch (kind) {
    case GRVI_ACT_GELU: act_gradient_loop(GRVI_ACT_GELU, n, dy, pre, g); break;
    case GRVI_ACT_RELU: act_gradient_loop(GRVI_ACT_RELU, n, dy, pre, g); break;
    default: act_gradient_loop(GRVI_ACT_NONE, n, dy, pre, g); break;
    }
}

/* ---- linear maps ---- */

static void linear_forward(const grvi_linear *linear, int64_t n_points, const void *x, void *y,
                           void *pre, void *scratch)
{
    const int64_t c_in = linear->c_in, c_out = linear->c_out;
    float *room = scratch;
    const packed_weights weights =
        pack_weights(c_in, c_out, linear->weight, c_out, 1, linear->bias, &room);
    float *const x_tile = take(&room, c_in * T), *const y_tile = take(&room, c_out * T);
    for (int64_t p = 0; p < n_points; p += T) {
        const int64_t n = points_of_tile(n_points, p);
        upcoming ahead = upcoming_tiles(x, c_in, p + T, y, c_out, p);
        tile_load(n, c_in, (const float *)x + p * c_in, x_tile);
        product(&weights, 0, c_in, 0, c_out, x_tile, y_tile, &ahead);
        if (pre != NULL) tile_store(n, c_out, y_tile, (float *)pre + p * c_out);
        act_forward(linear->activation, c_out * T, y_tile, y_tile);
        tile_store(n, c_out, y_tile, (float *)y + p * c_out);
    }
}

static void linear_input_gradient(const grvi_linear *linear, int64_t n_points, const void *g,
                                  void *dx, void *scratch)
{
    const int64_t c_in = linear->c_in, c_out = linear->c_out;
    float *room = scratch;
    const packed_weights weights = pack_weights(c_out, c_in, linear->weight, 1, c_out, NULL, &room);
    float *const g_tile = take(&room, c_out * T), *const dx_tile = take(&room, c_in * T);
    for (int64_t p = 0; p < n_points; p += T) {
        const int64_t n = points_of_tile(n_points, p);
        upcoming ahead = upcoming_tiles(g, c_out, p + T, dx, c_in, p);
        tile_load(n, c_out, (const float *)g + p * c_out, g_tile);
        product(&weights, 0, c_out, 0, c_in, g_tile, dx_tile, &ahead);
        tile_store(n, c_in, dx_tile, (float *)dx + p * c_in);
    }
}

static void linear_weight_gradient(const grvi_linear *linear, int64_t n_points, const void *x,
                                   const void *g, double *dw, double *db, void *scratch)
{
    const int64_t c_in = linear->c_in, c_out = linear->c_out;
    float *room = scratch;
    float *const x_tile = take(&room, c_in * T), *const g_tile = take(&room, c_out * T);
    float *const dw_sums = take(&room, c_in * c_out * GRVI_LANES), *const db_sums = take(
                                                                       &room, c_out * GRVI_LANES);
    flush_sums(c_in + 1, c_out, dw_sums, NULL, 0);
    int tiles = 0;
    for (int64_t p = 0; p < n_points; p += T) {
        const int64_t n = points_of_tile(n_points, p);
        upcoming ahead = upcoming_tiles(x, c_in, p + T, g, c_out, p + T);
        tile_load(n, c_in, (const float *)x + p * c_in, x_tile);
        tile_load(n, c_out, (const float *)g + p * c_out, g_tile);
        add_products(c_in, x_tile, c_out, g_tile, dw_sums, &ahead);
        add_rows(c_out, g_tile, db_sums);
        if (++tiles < GRVI_TILES_PER_SUM && p + T < n_points) continue;
        flush_sums(c_in, c_out, dw_sums, dw, c_out);
        flush_sums(1, c_out, db_sums, db, c_out);
        tiles = 0;
    }
}

/* ---- perceptrons ---- */

static int64_t channels_of_block(int64_t c_hidden, int64_t first)
{
    return c_hidden - first < GRVI_HIDDEN_BLOCK ? c_hidden - first : GRVI_HIDDEN_BLOCK;
}

/* The forward pass of one tile up to activation2: y_tile [c_out][T]. hidden [GRVI_HIDDEN_BLOCK][T] is scratch. */
static void mlp_tile(const grvi_mlp *mlp, const packed_weights *layer1,
                     const packed_weights *layer2, const float *x_tile, float *hidden,
                     float *y_tile, upcoming *ahead)
{
    for (int64_t h = 0; h < mlp->c_hidden; h += GRVI_HIDDEN_BLOCK) {
        const int64_t n_hidden = channels_of_block(mlp->c_hidden, h);
        product(layer1, 0, mlp->c_in, h, n_hidden, x_tile, hidden, ahead);
        act_forward(mlp->activation1, n_hidden * T, hidden, hidden);
        product(layer2, h, n_hidden, 0, mlp->c_out, hidden, y_tile, ahead);
    }
}

static void mlp_forward(const grvi_mlp *mlp, int64_t n_points, const void *x, void *y,
                        void *scratch)
{
    const int64_t c_in = mlp->c_in, c_hidden = mlp->c_hidden, c_out = mlp->c_out;
    float *room = scratch;
    const packed_weights layer1 =
        pack_weights(c_in, c_hidden, mlp->weight1, c_hidden, 1, mlp->bias1, &room);
    const packed_weights layer2 =
        pack_weights(c_hidden, c_out, mlp->weight2, c_out, 1, mlp->bias2, &room);
    float *const x_tile = take(&room, c_in * T), *const y_tile = take(&room, c_out * T);
    float *const hidden = take(&room, GRVI_HIDDEN_BLOCK * T);
    for (int64_t p = 0; p < n_points; p += T) {
        const int64_t n = points_of_tile(n_points, p);
        upcoming ahead = upcoming_tiles(x, c_in, p + T, y, c_out, p);
        tile_load(n, c_in, (const float *)x + p * c_in, x_tile);
        mlp_tile(mlp, &layer1, &layer2, x_tile, hidden, y_tile, &ahead);
        act_forward(mlp->activation2, c_out * T, y_tile, y_tile);
        tile_store(n, c_out, y_tile, (float *)y + p * c_out);
    }
}

/* Scratch of mlp_backward. layer1_back and layer2_back are the transposed weights without bias. */
typedef struct mlp_workspace {
    packed_weights layer1, layer2, layer1_back, layer2_back;
    float *x, *dx;                  /* [c_in][T] */
    float *y, *g2;                  /* [c_out][T] */
    float *value, *g1;              /* [GRVI_HIDDEN_BLOCK][T] */
    float *weight1_sums;            /* [hidden block][c_in][channels of the block][GRVI_LANES] */
    float *weight2_sums;            /* [c_hidden][c_out][GRVI_LANES] */
    float *bias1_sums, *bias2_sums; /* [channels][GRVI_LANES] */
} mlp_workspace;

static mlp_workspace mlp_workspace_init(const grvi_mlp *mlp, float *room)
{
    const int64_t c_in = mlp->c_in, c_hidden = mlp->c_hidden, c_out = mlp->c_out;
    mlp_workspace work;
    work.layer1 = pack_weights(c_in, c_hidden, mlp->weight1, c_hidden, 1, mlp->bias1, &room);
    work.layer2 = pack_weights(c_hidden, c_out, mlp->weight2, c_out, 1, mlp->bias2, &room);
    work.layer1_back = pack_weights(c_hidden, c_in, mlp->weight1, 1, c_hidden, NULL, &room);
    work.layer2_back = pack_weights(c_out, c_hidden, mlp->weight2, 1, c_out, NULL, &room);
    work.x = take(&room, c_in * T);
    work.dx = take(&room, c_in * T);
    work.value = take(&room, GRVI_HIDDEN_BLOCK * T);
    work.g1 = take(&room, GRVI_HIDDEN_BLOCK * T);
    work.y = take(&room, c_out * T);
    work.g2 = take(&room, c_out * T);
    work.weight1_sums = take(&room, c_in * c_hidden * GRVI_LANES);
    work.bias1_sums = take(&room, c_hidden * GRVI_LANES);
    work.weight2_sums = take(&room, c_hidden * c_out * GRVI_LANES);
    work.bias2_sums = take(&room, c_out * GRVI_LANES);
    return work;
}

/* Adds the float sums to *gradients and clears them. */
static void mlp_flush(const grvi_mlp *mlp, const mlp_workspace *work,
                      const grvi_mlp_gradients *gradients)
{
    const int64_t c_in = mlp->c_in, c_hidden = mlp->c_hidden, c_out = mlp->c_out;
    for (int64_t h = 0; h < c_hidden; h += GRVI_HIDDEN_BLOCK) {
        double *const total = gradients->weight1 == NULL ? NULL : gradients->weight1 + h;
        flush_sums(c_in, channels_of_block(c_hidden, h), work->weight1_sums + h * c_in * GRVI_LANES,
                   total, c_hidden);
    }
    flush_sums(1, c_hidden, work->bias1_sums, gradients->bias1, c_hidden);
    flush_sums(c_hidden, c_out, work->weight2_sums, gradients->weight2, c_out);
    flush_sums(1, c_out, work->bias2_sums, gradients->bias2, c_out);
}

/* One tile: from work->x and work->g2 = dy to work->dx and the sums. */
static void mlp_backward_tile(const grvi_mlp *mlp, const mlp_workspace *work, upcoming *ahead)
{
    const int64_t c_in = mlp->c_in, c_hidden = mlp->c_hidden, c_out = mlp->c_out;
    if (mlp->activation2 != GRVI_ACT_NONE) {
        mlp_tile(mlp, &work->layer1, &work->layer2, work->x, work->value, work->y, ahead);
        act_gradient(mlp->activation2, c_out * T, work->g2, work->y, work->g2);
    }
    add_rows(c_out, work->g2, work->bias2_sums);
    for (int64_t h = 0; h < c_hidden; h += GRVI_HIDDEN_BLOCK) {
        const int64_t n_hidden = channels_of_block(c_hidden, h);
        product(&work->layer1, 0, c_in, h, n_hidden, work->x, work->g1, ahead);
        tile_activate_with_slope(mlp->activation1, n_hidden, work->g1, work->value);
        add_products(n_hidden, work->value, c_out, work->g2,
                     work->weight2_sums + h * c_out * GRVI_LANES, ahead);
        product(&work->layer2_back, 0, c_out, h, n_hidden, work->g2, work->value, ahead);
        tile_multiply(n_hidden, work->value, work->g1);
        add_rows(n_hidden, work->g1, work->bias1_sums + h * GRVI_LANES);
        add_products(c_in, work->x, n_hidden, work->g1, work->weight1_sums + h * c_in * GRVI_LANES,
                     ahead);
        product(&work->layer1_back, h, n_hidden, 0, c_in, work->g1, work->dx, ahead);
    }
}

static void mlp_backward(const grvi_mlp *mlp, int64_t n_points, const void *x, const void *dy,
                         void *dx, const grvi_mlp_gradients *gradients, void *scratch)
{
    const int64_t c_in = mlp->c_in, c_out = mlp->c_out;
    const mlp_workspace work = mlp_workspace_init(mlp, scratch);
    mlp_flush(mlp, &work, &(grvi_mlp_gradients){0});
    int tiles = 0;
    for (int64_t p = 0; p < n_points; p += T) {
        const int64_t n = points_of_tile(n_points, p);
        upcoming ahead = upcoming_tiles(x, c_in, p + T, dx, c_in, p);
        tile_load(n, c_in, (const float *)x + p * c_in, work.x);
        tile_load(n, c_out, (const float *)dy + p * c_out, work.g2);
        mlp_backward_tile(mlp, &work, &ahead);
        if (dx != NULL) tile_store(n, c_in, work.dx, (float *)dx + p * c_in);
        if (++tiles < GRVI_TILES_PER_SUM && p + T < n_points) continue;
        mlp_flush(mlp, &work, gradients);
        tiles = 0;
    }
}

/* ---- elementwise; ivdep: arrays are the same or apart ---- */

static void add(int64_t n, const void *a_data, const void *b_data, void *y_data)
{
    const float *const a = a_data, *const b = b_data;
    float *const y = y_data;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void axpby(int64_t n, double alpha, const void *x_data, double beta, void *y_data)
{
    const float a = (float)alpha, b = (float)beta, *const x = x_data;
    float *const y = y_data;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) y[i] = fmaf(a, x[i], b * y[i]);
}

static void scale(int64_t n, double alpha, void *x_data)
{
    const float a = (float)alpha;
    float *const x = x_data;
    for (int64_t i = 0; i < n; i++) x[i] *= a;
}

static void loss_gradient(int64_t n, double factor, const void *prediction, const void *target,
                          void *g_data)
{
    const float a = (float)factor, *const p = prediction, *const y = target;
    float *const g = g_data;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) g[i] = a * (p[i] - y[i]);
}

/* ---- sums over single numbers ---- */

enum { PARTIALS = 16 };

/* Adds 16 partial sums pairwise. */
static double add_partials(double *partial)
{
    for (int half = PARTIALS / 2; half > 0; half /= 2) {
        for (int j = 0; j < half; j++) partial[j] += partial[j + half];
    }
    return partial[0];
}

static grvi_loss_sums loss_sums(int64_t n, const void *prediction, const void *target)
{
    const float *const p = prediction, *const y = target;
    double error2[PARTIALS] = {0}, target2[PARTIALS] = {0}, largest[PARTIALS] = {0};
    int64_t i = 0;
    for (; i + PARTIALS <= n; i += PARTIALS) {
        for (int j = 0; j < PARTIALS; j++) {
            const double y_i = (double)y[i + j], error = (double)p[i + j] - y_i, size = fabs(error);
            error2[j] = fma(error, error, error2[j]);
            target2[j] = fma(y_i, y_i, target2[j]);
            largest[j] = size > largest[j] ? size : largest[j];
        }
    }
    for (int j = 0; i < n; i++, j++) {
        const double y_i = (double)y[i], error = (double)p[i] - y_i;
        error2[j] = fma(error, error, error2[j]);
        target2[j] = fma(y_i, y_i, target2[j]);
        largest[j] = fmax(largest[j], fabs(error));
    }
    for (int j = 1; j < PARTIALS; j++) largest[0] = fmax(largest[0], largest[j]);
    return (grvi_loss_sums){add_partials(error2), add_partials(target2), largest[0]};
}

static double sum_squares(int64_t n, const void *x_data)
{
    const float *const x = x_data;
    double partial[PARTIALS] = {0};
    int64_t i = 0;
    for (; i + PARTIALS <= n; i += PARTIALS) {
        for (int j = 0; j < PARTIALS; j++)
            partial[j] = fma((double)x[i + j], (double)x[i + j], partial[j]);
    }
    for (int j = 0; i < n; i++, j++) partial[j] = fma((double)x[i], (double)x[i], partial[j]);
    return add_partials(partial);
}

static int64_t first_nonfinite(int64_t n, const void *x_data)
{
    enum { BLOCK = 1024 };
    const float *const x = x_data;
    int64_t first = 0;
    for (; first + BLOCK <= n; first += BLOCK) {
        float zero[PARTIALS] = {0}; /* 0 * x is NaN for NaN and infinity */
        for (int64_t i = first; i < first + BLOCK; i += PARTIALS) {
            for (int j = 0; j < PARTIALS; j++) zero[j] = fmaf(0.0f, x[i + j], zero[j]);
        }
        bool finite = true;
        for (int j = 0; j < PARTIALS; j++) finite = finite && isfinite(zero[j]);
        if (!finite) break;
    }
    while (first < n && isfinite(x[first])) first++;
    return first;
}

/* ---- optimiser ---- */

static void adam(const grvi_adam *step, int64_t n, const void *g_data, void *p_data, void *m_data,
                 void *v_data)
{
    const float *const gradient = g_data;
    float *const p = p_data, *const m = m_data, *const v = v_data;
    const float gain = (float)step->gradient_scale,
                l2 = step->decoupled ? 0.0f : (float)step->weight_decay;
    const float decay = step->decoupled ? (float)(step->learning_rate * step->weight_decay) : 0.0f;
    const float new1 = (float)(1 - step->beta1), old2 = (float)step->beta2,
                new2 = (float)(1 - step->beta2);
    const float rate = (float)(step->learning_rate / step->correction1),
                epsilon = (float)step->epsilon;
    const float inverse_root2 = (float)(1 / sqrt(step->correction2));
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
        const float g = fmaf(l2, p[i], gain * gradient[i]);
        const float m_i = fmaf(new1, g - m[i], m[i]), v_i = fmaf(new2 * g, g, old2 * v[i]);
        m[i] = m_i;
        v[i] = v_i;
        p[i] = fmaf(-decay, p[i], p[i]) - rate * m_i / fmaf(sqrtf(v_i), inverse_root2, epsilon);
    }
}

/* ---- the machine ---- */

static int64_t peak_loop(int64_t n)
{
    vf sum[12];
    for (int j = 0; j < 12; j++) sum[j] = vf_set1((float)(n + j));
    const vf a = vf_set1(0.999f), b = vf_set1((float)(n % 3));
    for (int64_t i = 0; i < n; i++) {
#pragma GCC unroll 12
        for (int j = 0; j < 12; j++) sum[j] = vf_fma(sum[j], a, b);
    }
    float result[GRVI_LANES];
    for (int j = 1; j < 12; j++) sum[0] = vf_add(sum[0], sum[j]);
    vf_store(result, sum[0]);
    /* the result decides nothing, but the compiler cannot know that it is finite */
    return result[0] < 0 ? 0 : n * 12 * GRVI_LANES * 2;
}

static void fill(grvi_point_kernels *kernels)
{
    *kernels = (grvi_point_kernels){
        .linear_forward = linear_forward,
        .linear_input_gradient = linear_input_gradient,
        .linear_weight_gradient = linear_weight_gradient,
        .mlp_forward = mlp_forward,
        .mlp_backward = mlp_backward,
        .act_forward = act_forward,
        .act_gradient = act_gradient,
        .add = add,
        .axpby = axpby,
        .scale = scale,
        .loss_gradient = loss_gradient,
        .loss_sums = loss_sums,
        .sum_squares = sum_squares,
        .first_nonfinite = first_nonfinite,
        .adam = adam,
        .peak_loop = peak_loop,
    };
}

#endif
