/* Products on tiles of points, for the loop file of the point kernels; compiled once per instruction set.
 *
 * A tile holds GRVI_TILE_POINTS points as [channel][points], so that every operation is on whole vectors of points for any number of
 * channels: weights are broadcast, activations need no tails, and points beyond the end are zeros, which add nothing to any sum.
 * tile_load and tile_store transpose from and to channels-last memory; the transpose costs about 2 instructions a vector.
 *
 * Both products keep 12 (AVX2) or 24 (AVX-512) accumulators in registers: product_block 1 to 4 output channels by as many vectors as
 * fit, sums_block up to 4 x 3 or 8 x 3 pairs of channels. */
#ifndef GRVI_KERNELS_POINT_TILE_H
#define GRVI_KERNELS_POINT_TILE_H

#include <string.h>

#include "kernels/activation_simd.h"
#include "kernels/point_sizes.h"
#include "kernels/simd.h"

enum { T = GRVI_TILE_POINTS, TILE_VECTORS = T / GRVI_LANES, ACCUMULATORS = GRVI_REGISTERS * 3 / 4 };

/* ---- prefetch ---- */

/* Addresses of what the next tile reads and this one writes at its end. Without asking for them during the products, memory idles
 * while a tile computes and the tile waits while memory works. 12 lines go with every T/8 x 4 x 3 products: as many as a linear map
 * of equal channels needs. Addresses past the end are harmless. */
typedef struct upcoming {
    uintptr_t next, end, then, then_end;
} upcoming;

/* The tile of x [c_x] that begins at point p, then the tile of y [c_y] at point q; y may be NULL. */
static upcoming upcoming_tiles(const void *x, int64_t c_x, int64_t p, const void *y, int64_t c_y,
                               int64_t q)
{
    const int64_t size = sizeof(float);
    const uintptr_t first = (uintptr_t)x + (uintptr_t)(p * c_x * size),
                    second = (uintptr_t)y + (uintptr_t)(q * c_y * size);
    return (upcoming){first, first + (uintptr_t)(T * c_x * size), second,
                      second + (uintptr_t)(y == NULL ? 0 : T * c_y * size)};
}

/* The address of the next n_lines lines. */
GRVI_INLINE uintptr_t upcoming_take(upcoming *ahead, int n_lines)
{
    if (ahead->next >= ahead->end) {
        ahead->next = ahead->then;
        ahead->end = ahead->then = ahead->then_end;
    }
    const uintptr_t taken = ahead->next;
    ahead->next += (uintptr_t)n_lines * 64;
    return taken;
}

GRVI_INLINE void prefetch_line(uintptr_t address)
{
    _mm_prefetch((const char *)address, _MM_HINT_T0);
}

/* ---- transposes ---- */

/* 4 x 4 floats in each half of four registers, rows to columns. */
GRVI_INLINE void transpose4(__m256 r[4])
{
    const __m256 a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 c = _mm256_unpacklo_ps(r[2], r[3]), d = _mm256_unpackhi_ps(r[2], r[3]);
    r[0] = _mm256_shuffle_ps(a, c, 0x44);
    r[1] = _mm256_shuffle_ps(a, c, 0xee);
    r[2] = _mm256_shuffle_ps(b, d, 0x44);
    r[3] = _mm256_shuffle_ps(b, d, 0xee);
}

/* tile[c][T] = x[n][c]; points n .. T-1 become zero. */
static void tile_load(int64_t n, int64_t c, const float *restrict x, float *restrict tile)
{
    const int64_t n_whole = c < 4 ? 0 : n / 8 * 8;
    for (int64_t p = 0; p < n_whole; p += 8) {
        for (int64_t i = 0; i < c; i += 4) {
            const int64_t first =
                i + 4 <= c ? i : c - 4; /* the last four overlap the ones before */
            const float *const from = x + p * c + first;
            __m256 r[4];
            for (int j = 0; j < 4; j++) {
                r[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + j * c)),
                                            _mm_loadu_ps(from + (j + 4) * c), 1);
            }
            transpose4(r);
            for (int j = 0; j < 4; j++) _mm256_storeu_ps(tile + (first + j) * T + p, r[j]);
        }
    }
    for (int64_t i = 0; i < c; i++) {
        for (int64_t p = n_whole; p < n; p++) tile[i * T + p] = x[p * c + i];
        for (int64_t p = n; p < T; p++) tile[i * T + p] = 0;
    }
}

/* y[n][c] = tile[c][T] */
static void tile_store(int64_t n, int64_t c, const float *restrict tile, float *restrict y)
{
    const int64_t n_whole = c < 4 ? 0 : n / 8 * 8;
    for (int64_t p = 0; p < n_whole; p += 8) {
        for (int64_t i = 0; i < c; i += 4) {
            const int64_t first = i + 4 <= c ? i : c - 4;
            float *const to = y + p * c + first;
            __m256 r[4];
            for (int j = 0; j < 4; j++) r[j] = _mm256_loadu_ps(tile + (first + j) * T + p);
            transpose4(r);
            for (int j = 0; j < 4; j++) {
                _mm_storeu_ps(to + j * c, _mm256_castps256_ps128(r[j]));
                _mm_storeu_ps(to + (j + 4) * c, _mm256_extractf128_ps(r[j], 1));
            }
        }
    }
    for (int64_t p = n_whole; p < n; p++) {
        for (int64_t i = 0; i < c; i++) y[p * c + i] = tile[i * T + p];
    }
}

/* ---- out[o][T] = bias[o] + sum_k w[k][o] in[k][T] ---- */

/* Weights of a product in the order of use: blocks of 4 outputs (the last may have fewer), each [n_in][outputs of the block]. */
typedef struct packed_weights {
    int64_t n_in, n_out;
    const float *weight;
    const float *bias; /* zeros if there is none */
} packed_weights;

/* Packs w[k * stride_in + o * stride_out] and bias (or NULL) to *scratch, which moves on. */
static packed_weights pack_weights(int64_t n_in, int64_t n_out, const float *w, int64_t stride_in,
                                   int64_t stride_out, const float *bias, float **scratch)
{
    float *const packed = *scratch, *const packed_bias = packed + grvi_padded_floats(n_in * n_out);
    float *to = packed;
    for (int64_t first = 0; first < n_out; first += 4) {
        const int64_t end = first + 4 < n_out ? first + 4 : n_out;
        for (int64_t k = 0; k < n_in; k++) {
            for (int64_t o = first; o < end; o++) *to++ = w[k * stride_in + o * stride_out];
        }
    }
    for (int64_t o = 0; o < n_out; o++) packed_bias[o] = bias == NULL ? 0 : bias[o];
    *scratch = packed_bias + grvi_padded_floats(n_out);
    return (packed_weights){n_in, n_out, packed, packed_bias};
}

/* n_out output channels; w [n_in][n_out]; without bias, adds to out. */
GRVI_INLINE void product_block(const int n_out, int64_t n_in, const float *w, const float *bias,
                               const float *in, float *out, upcoming *ahead)
{
    const int n_vectors = ACCUMULATORS / n_out < TILE_VECTORS ? ACCUMULATORS / n_out : TILE_VECTORS;
    for (int first = 0; first < T; first += n_vectors * GRVI_LANES) {
        const int n_lines = n_vectors * GRVI_LANES / 2;
        const uintptr_t line = upcoming_take(ahead, n_lines);
        for (int l = 0; l < n_lines; l++) prefetch_line(line + (uintptr_t)l * 64);
        vf sum[4][TILE_VECTORS];
#pragma GCC unroll 4
        for (int o = 0; o < n_out; o++) {
#pragma GCC unroll 12
            for (int v = 0; v < n_vectors; v++) {
                sum[o][v] =
                    bias != NULL ? vf_set1(bias[o]) : vf_load(out + o * T + first + v * GRVI_LANES);
            }
        }
        const float *from = in + first;
        for (int64_t k = 0; k < n_in; k++, from += T) {
#pragma GCC unroll 4
            for (int o = 0; o < n_out; o++) {
                const vf weight = vf_set1(w[k * n_out + o]);
#pragma GCC unroll 12
                for (int v = 0; v < n_vectors; v++)
                    sum[o][v] = vf_fma(weight, vf_load(from + v * GRVI_LANES), sum[o][v]);
            }
        }
#pragma GCC unroll 4
        for (int o = 0; o < n_out; o++) {
#pragma GCC unroll 12
            for (int v = 0; v < n_vectors; v++)
                vf_store(out + o * T + first + v * GRVI_LANES, sum[o][v]);
        }
    }
}

/* Inputs first_in .. first_in+n_in-1 (rows 0 .. of `in`) to outputs first_out .. first_out+n_out-1 (rows 0 .. of `out`; first_out a
 * multiple of 4). Starts from the bias, or adds to out where the earlier inputs have been summed. */
static void product(const packed_weights *weights, int64_t first_in, int64_t n_in,
                    int64_t first_out, int64_t n_out, const float *in, float *out, upcoming *ahead)
{
    for (int64_t o = 0; o < n_out; o += 4, out += 4 * T) {
        const int64_t left = weights->n_out - first_out - o, block = left < 4 ? left : 4;
        const float *const w = weights->weight + (first_out + o) * weights->n_in + first_in * block;
        const float *const bias = first_in == 0 ? weights->bias + first_out + o : NULL;
        switch (block) {
        case 1: product_block(1, n_in, w, bias, in, out, ahead); break;
        case 2: product_block(2, n_in, w, bias, in, out, ahead); break;
        case 3: product_block(3, n_in, w, bias, in, out, ahead); break;
        default: product_block(4, n_in, w, bias, in, out, ahead); break;
        }
    }
}

/* ---- sums[a][b][lanes] += sum over points of in[a] out[b]: gradients of weights ---- */

GRVI_INLINE void sums_block(const int n_a, const int n_b, const float *a, const float *b,
                            int64_t stride, float *sums, upcoming *ahead)
{
    vf sum[8][3];
#pragma GCC unroll 8
    for (int i = 0; i < n_a; i++) {
#pragma GCC unroll 3
        for (int j = 0; j < n_b; j++) sum[i][j] = vf_load(sums + (i * stride + j) * GRVI_LANES);
    }
    const uintptr_t line = upcoming_take(ahead, T / 8);
    for (int v = 0; v < T; v += GRVI_LANES) {
        for (int l = 0; l < GRVI_LANES; l += 8) prefetch_line(line + (uintptr_t)(v + l) * 8);
        vf b_v[3];
#pragma GCC unroll 3
        for (int j = 0; j < n_b; j++) b_v[j] = vf_load(b + j * T + v);
#pragma GCC unroll 8
        for (int i = 0; i < n_a; i++) {
            const vf a_v = vf_load(a + i * T + v);
#pragma GCC unroll 3
            for (int j = 0; j < n_b; j++) sum[i][j] = vf_fma(a_v, b_v[j], sum[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < n_a; i++) {
#pragma GCC unroll 3
        for (int j = 0; j < n_b; j++) vf_store(sums + (i * stride + j) * GRVI_LANES, sum[i][j]);
    }
}

/* All n_a rows of a with n_b <= 3 rows of b: 8, 4, 2 or 1 rows of a at a time, as many as registers allow. */
GRVI_INLINE void sums_columns(const int n_b, int64_t n_a, const float *a, const float *b,
                              int64_t stride, float *sums, upcoming *ahead)
{
    int64_t i = 0;
    if (8 * n_b <= ACCUMULATORS) {
        for (; i + 8 <= n_a; i += 8)
            sums_block(8, n_b, a + i * T, b, stride, sums + i * stride * GRVI_LANES, ahead);
    }
    for (; i + 4 <= n_a; i += 4)
        sums_block(4, n_b, a + i * T, b, stride, sums + i * stride * GRVI_LANES, ahead);
    if (i + 2 <= n_a) {
        sums_block(2, n_b, a + i * T, b, stride, sums + i * stride * GRVI_LANES, ahead);
        i += 2;
    }
    if (i < n_a) sums_block(1, n_b, a + i * T, b, stride, sums + i * stride * GRVI_LANES, ahead);
}

/* All rows of both tiles; sums [n_a][n_b][GRVI_LANES]. */
static void add_products(int64_t n_a, const float *a, int64_t n_b, const float *b, float *sums,
                         upcoming *ahead)
{
    int64_t j = 0;
    for (; j + 3 <= n_b; j += 3)
        sums_columns(3, n_a, a, b + j * T, n_b, sums + j * GRVI_LANES, ahead);
    if (n_b - j == 2) sums_columns(2, n_a, a, b + j * T, n_b, sums + j * GRVI_LANES, ahead);
    if (n_b - j == 1) sums_columns(1, n_a, a, b + j * T, n_b, sums + j * GRVI_LANES, ahead);
}

/* sums[j] over the rows of one tile: gradients of biases. */
static void add_rows(int64_t n, const float *tile, float *sums)
{
    for (int64_t j = 0; j < n; j++, tile += T) {
        vf even = vf_load(sums + j * GRVI_LANES), odd = vf_zero();
        for (int v = 0; v < T; v += 2 * GRVI_LANES) {
            even = vf_add(even, vf_load(tile + v));
            odd = vf_add(odd, vf_load(tile + v + GRVI_LANES));
        }
        vf_store(sums + j * GRVI_LANES, vf_add(even, odd));
    }
}

/* total[row * stride + i] += the lanes of sums[row][i], pairwise in double; sums become zero. total may be NULL. */
static void flush_sums(int64_t n_rows, int64_t n, float *sums, double *total, int64_t stride)
{
    for (int64_t row = 0; row < n_rows && total != NULL; row++) {
        for (int64_t i = 0; i < n; i++) {
            double part[GRVI_LANES];
            for (int l = 0; l < GRVI_LANES; l++)
                part[l] = (double)sums[(row * n + i) * GRVI_LANES + l];
#pragma GCC unroll 4
            for (int half = GRVI_LANES / 2; half > 0; half /= 2) {
                for (int l = 0; l < half; l++) part[l] += part[l + half];
            }
            total[row * stride + i] += part[0];
        }
    }
    memset(sums, 0, (size_t)(n_rows * n * GRVI_LANES) * sizeof(float));
}

/* ---- activations on n channels of a tile ---- */

enum { GROUP = GRVI_ACTIVATION_GROUP };
_Static_assert(TILE_VECTORS % GRVI_ACTIVATION_GROUP == 0,
               "a channel of a tile is a whole number of groups");

GRVI_INLINE void activate_with_slope(const grvi_activation kind, int64_t n, float *restrict x,
                                     float *restrict value)
{
    for (int64_t i = 0; i < n * T; i += GROUP * GRVI_LANES) {
        vf old[GROUP], new[GROUP], slope[GROUP];
#pragma GCC unroll 3
        for (int j = 0; j < GROUP; j++) old[j] = vf_load(x + i + j * GRVI_LANES);
        if (kind == GRVI_ACT_GELU) vf_gelu_n(GROUP, old, new, slope);
#pragma GCC unroll 3
        for (int j = 0; j < GROUP; j++) {
            vf_store(value + i + j * GRVI_LANES,
                     kind == GRVI_ACT_GELU ? new[j] : vf_activation(kind, old[j]));
            vf_store(x + i + j * GRVI_LANES,
                     kind == GRVI_ACT_GELU ? slope[j] : vf_activation_derivative(kind, old[j]));
        }
    }
}

/* value = activation(x), x = activation'(x) */
static void tile_activate_with_slope(grvi_activation kind, int64_t n, float *restrict x,
                                     float *restrict value)
{
    switch (kind) {
    case GRVI_ACT_GELU: activate_with_slope(GRVI_ACT_GELU, n, x, value); break;
    case GRVI_ACT_RELU: activate_with_slope(GRVI_ACT_RELU, n, x, value); break;
    default: activate_with_slope(GRVI_ACT_NONE, n, x, value); break;
    }
}

/* x *= factor */
static void tile_multiply(int64_t n, const float *restrict factor, float *restrict x)
{
    for (int64_t i = 0; i < n * T; i += GRVI_LANES)
        vf_store(x + i, vf_mul(vf_load(factor + i), vf_load(x + i)));
}

#endif
