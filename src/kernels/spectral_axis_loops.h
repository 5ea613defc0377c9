/* Transforms along one axis and the transposition of runs, for one instruction set (see simd.h).
 *
 * Fold. With e_j = v_j + v_{n-j} and o_j = v_j - v_{n-j} (e_j = v_j where j has no partner: 0, and n/2 of even n)
 *   C_k = sum_{j=0..p-1} e_j cos(2 pi k j/n),   S_k = sum_{j=1..q} o_j sin(2 pi k j/n),
 * half the multiply-adds of the plain product. Backwards c_j = sum_k C_k cos, s_j = sum_k S_k sin, v_j = c_j + s_j, v_{n-j} = c_j - s_j.
 *
 * Register tiles. Columns go in strips of two vectors. A forward tile holds up to TILE_ROWS x 2 accumulators of C or S and folds as it
 * loads: the additions run beside the fma, and storing e and o for the next tiles costs more than adding again (measured).
 * An inverse tile holds TILE_PAIRS x (c, s) x 2. Tile sizes differ by at most one, so that 8 fma in flight hide the latency.
 *
 * Accumulation: float fma, over j (forward) or k (inverse) upwards. */
#ifndef GRVI_KERNELS_SPECTRAL_AXIS_LOOPS_H
#define GRVI_KERNELS_SPECTRAL_AXIS_LOOPS_H

#include <string.h>

#include "kernels/simd.h"
#include "kernels/spectral_transform.h"

enum {
    STRIP = 2 * GRVI_LANES,
    TILE_ROWS = GRVI_REGISTERS == 32 ? 13 : 6,
    TILE_PAIRS = GRVI_REGISTERS == 32 ? 6 : 3,
    STRIPS_FLOATS = 2048, /* of rows that go through all tiles before the next ones: 8 KiB */
};

#define UNROLL _Pragma("GCC unroll 16")

/* Some strips of columns side by side on their way along an axis: rows of count * STRIP floats, `stride` floats apart, and
 * what follows, whose rows the first tile prefetches. */
typedef struct strips {
    const float *data, *next;
    int64_t stride, count;
} strips;

/* What a tile needs to know of its axis. */
typedef struct transform_axis {
    const grvi_axis_modes *modes;
    const grvi_axis_tables *tables;
    float *strip_in, *strip_out; /* scratch: [n][STRIP] each */
} transform_axis;

GRVI_INLINE void prefetch(const float *p)
{
    _mm_prefetch((const char *)p, _MM_HINT_T0);
}
GRVI_INLINE void prefetch_far(const float *p)
{
    _mm_prefetch((const char *)p, _MM_HINT_T1);
} /* into the second level */

GRVI_INLINE void multiply_add(const int n_rows, vf acc[][2], const float *coefficients, vf x0,
                              vf x1)
{
    UNROLL
    for (int r = 0; r < n_rows; r++) {
        const vf t = vf_set1(coefficients[r]);
        acc[r][0] = vf_fma(t, x0, acc[r][0]);
        acc[r][1] = vf_fma(t, x1, acc[r][1]);
    }
}

/* Calls TILE(n) with the constant n == count, 1 <= count <= 13; TILE tests the constant against the largest tile. */
#define WITH_CONSTANT(count, TILE) \
    switch (count) {               \
    case 1: TILE(1); break;        \
    case 2: TILE(2); break;        \
    case 3: TILE(3); break;        \
    case 4: TILE(4); break;        \
    case 5: TILE(5); break;        \
    case 6: TILE(6); break;        \
    case 7: TILE(7); break;        \
    case 8: TILE(8); break;        \
    case 9: TILE(9); break;        \
    case 10: TILE(10); break;      \
    case 11: TILE(11); break;      \
    case 12: TILE(12); break;      \
    default: TILE(13); break;      \
    }

/* n_rows rows in tiles of nearly equal size, larger ones first: where tile i of n_tiles starts. */
GRVI_INLINE int64_t tile_start(int64_t n_rows, int64_t n_tiles, int64_t i)
{
    return (n_rows * i + n_tiles - 1) / n_tiles;
}

/* ---- forward ---- */

typedef enum row_kind { FIRST_COSINES, COSINES, SINES } row_kind; /* FIRST_COSINES: from k = 0 on */

/* Rows [first, first + n_rows) of the cosines (from k = 0) or of the sines (from k = 1). */
GRVI_INLINE void forward_tile(const int n_rows, const row_kind kind, const transform_axis *axis,
                              const strips *in, int64_t first, float *out, int64_t out_stride)
{
    const grvi_axis_tables *const t = axis->tables;
    const int64_t n = axis->modes->n, stride = in->stride, n_pairs = t->n_pairs;
    const bool has_middle = t->n_cos_points > n_pairs + 1; /* j = n/2 has no partner */
    const int64_t table_stride = kind == SINES ? axis->modes->n_sin : axis->modes->n_cos;
    const float *const table_1 = kind == SINES
                                     ? t->forward_sin + first
                                     : t->forward_cos + table_stride + first; /* of j = 1 */
    out += (2 * first + (kind == SINES ? 2 : -1)) * out_stride;
    for (int64_t q = 0; q < in->count * STRIP; q += STRIP) {
        const float *up = in->data + q, *down = up + n * stride, *ahead = in->next + q,
                    *ahead_down = ahead + n * stride;
        const float *table = table_1;
        vf acc[TILE_ROWS][2];
        const vf v0 = vf_load(up), v1 = vf_load(up + GRVI_LANES);
        UNROLL
        for (int r = 0; r < n_rows; r++) { /* j = 0: cos 0 = 1, sin 0 = 0 */
            acc[r][0] = kind == SINES ? vf_zero() : v0;
            acc[r][1] = kind == SINES ? vf_zero() : v1;
        }
        if (kind == FIRST_COSINES) prefetch(ahead);
        for (int64_t j = 0; j < n_pairs; j++) {
            up += stride;
            down -= stride;
            if (kind == FIRST_COSINES) {
                ahead += stride;
                ahead_down -= stride;
                prefetch(ahead);
                prefetch(ahead_down);
            }
            const vf u0 = vf_load(up), u1 = vf_load(up + GRVI_LANES), d0 = vf_load(down),
                     d1 = vf_load(down + GRVI_LANES);
            if (kind == SINES)
                multiply_add(n_rows, acc, table, vf_sub(u0, d0), vf_sub(u1, d1));
            else
                multiply_add(n_rows, acc, table, vf_add(u0, d0), vf_add(u1, d1));
            table += table_stride;
        }
        if (kind != SINES && has_middle)
            multiply_add(n_rows, acc, table, vf_load(up + stride),
                         vf_load(up + stride + GRVI_LANES));
        UNROLL
        for (int r = 0; r < n_rows; r++) {
            float *const row = out + q + (kind == FIRST_COSINES && r == 0 ? 1 : 2 * r) * out_stride;
            vf_store(row, acc[r][0]);
            vf_store(row + GRVI_LANES, acc[r][1]);
        }
    }
}

static void forward_rows(int64_t n_rows, row_kind kind, const transform_axis *axis,
                         const strips *in, int64_t first, float *out, int64_t out_stride)
{
#define TILE(count)                                                               \
    if ((count) <= TILE_ROWS) {                                                   \
        if (kind == FIRST_COSINES)                                                \
            forward_tile(count, FIRST_COSINES, axis, in, first, out, out_stride); \
        else if (kind == COSINES)                                                 \
            forward_tile(count, COSINES, axis, in, first, out, out_stride);       \
        else                                                                      \
            forward_tile(count, SINES, axis, in, first, out, out_stride);         \
    }
    WITH_CONSTANT(n_rows, TILE)
#undef TILE
}

static void forward_strips(const transform_axis *axis, const strips *in, float *out,
                           int64_t out_stride)
{
    const int64_t n_cos = axis->modes->n_cos, n_sin = axis->modes->n_sin;
    const int64_t cos_tiles = grvi_ceil_div(n_cos, TILE_ROWS),
                  sin_tiles = grvi_ceil_div(n_sin, TILE_ROWS);
    for (int64_t i = 0; i < cos_tiles; i++) {
        const int64_t first = tile_start(n_cos, cos_tiles, i),
                      end = tile_start(n_cos, cos_tiles, i + 1);
        forward_rows(end - first, i == 0 ? FIRST_COSINES : COSINES, axis, in, first, out,
                     out_stride);
    }
    for (int64_t i = 0; i < sin_tiles; i++) {
        const int64_t first = tile_start(n_sin, sin_tiles, i),
                      end = tile_start(n_sin, sin_tiles, i + 1);
        forward_rows(end - first, SINES, axis, in, first, out, out_stride);
    }
}

/* ---- inverse ---- */

/* Points j = first .. first + n_points - 1 and their partners. */
GRVI_INLINE void inverse_tile(const int n_points, const bool fetch, const transform_axis *axis,
                              const strips *in, int64_t first, float *out, int64_t out_stride)
{
    const grvi_axis_tables *const t = axis->tables;
    const int64_t n = axis->modes->n, n_sin = axis->modes->n_sin, stride = in->stride,
                  table_stride = t->n_cos_points;
    const bool has_middle = axis->modes->n_cos > n_sin + 1; /* the cosine at n/2 */
    for (int64_t q = 0; q < in->count * STRIP; q += STRIP) {
        const float *x = in->data + q, *ahead = in->next + q, *cos_table = t->inverse_cos + first,
                    *sin_table = t->inverse_sin + first;
        vf c[TILE_PAIRS][2], s[TILE_PAIRS][2];
        UNROLL
        for (int r = 0; r < n_points; r++) { /* k = 0 */
            c[r][0] = vf_load(x);
            c[r][1] = vf_load(x + GRVI_LANES);
            s[r][0] = s[r][1] = vf_zero();
        }
        if (fetch) prefetch(ahead);
        for (int64_t k = 0; k < n_sin; k++) {
            x += 2 * stride;
            cos_table += table_stride;
            if (fetch) {
                ahead += 2 * stride;
                prefetch(ahead - stride);
                prefetch(ahead);
            }
            multiply_add(n_points, c, cos_table, vf_load(x - stride),
                         vf_load(x - stride + GRVI_LANES));
            multiply_add(n_points, s, sin_table, vf_load(x), vf_load(x + GRVI_LANES));
            sin_table += table_stride;
        }
        if (has_middle)
            multiply_add(n_points, c, cos_table + table_stride, vf_load(x + stride),
                         vf_load(x + stride + GRVI_LANES));
        UNROLL
        for (int r = 0; r < n_points; r++) {
            const int64_t j = first + r;
            float *const up = out + j * out_stride + q, *const down =
                                                            out + (n - j) * out_stride + q;
            vf_store(up, vf_add(c[r][0], s[r][0]));
            vf_store(up + GRVI_LANES, vf_add(c[r][1], s[r][1]));
            if (j >= 1 && j <= t->n_pairs) {
                vf_store(down, vf_sub(c[r][0], s[r][0]));
                vf_store(down + GRVI_LANES, vf_sub(c[r][1], s[r][1]));
            }
        }
    }
}

static void inverse_points(int64_t n_points, bool fetch, const transform_axis *axis,
                           const strips *in, int64_t first, float *out, int64_t out_stride)
{
#define TILE(count)                                                       \
    if ((count) <= TILE_PAIRS) {                                          \
        if (fetch)                                                        \
            inverse_tile(count, true, axis, in, first, out, out_stride);  \
        else                                                              \
            inverse_tile(count, false, axis, in, first, out, out_stride); \
    }
    WITH_CONSTANT(n_points, TILE)
#undef TILE
}

static void inverse_strips(const transform_axis *axis, const strips *in, float *out,
                           int64_t out_stride)
{
    const int64_t n_points = axis->tables->n_cos_points,
                  n_tiles = grvi_ceil_div(n_points, TILE_PAIRS);
    for (int64_t i = 0; i < n_tiles; i++) {
        const int64_t first = tile_start(n_points, n_tiles, i),
                      end = tile_start(n_points, n_tiles, i + 1);
        inverse_points(end - first, i == 0, axis, in, first, out, out_stride);
    }
}

/* ---- any number of columns, any stride ---- */

/* Copies rows of n <= STRIP floats into a strip and fills it up with zeros. */
static void copy_in(const float *in, int64_t in_stride, int64_t n_rows, int64_t n, float *out)
{
    const int64_t low = grvi_min_i64(n, GRVI_LANES);
    for (int64_t r = 0; r < n_rows; r++) {
        vf_store(out + r * STRIP, vf_load_n(in + r * in_stride, low));
        vf_store(out + r * STRIP + GRVI_LANES, vf_load_n(in + r * in_stride + low, n - low));
    }
}

static void copy_out(const float *in, int64_t n_rows, int64_t n, float *out, int64_t out_stride)
{
    for (int64_t r = 0; r < n_rows; r++)
        memcpy(out + r * out_stride, in + r * STRIP, (size_t)n * sizeof(float));
}

/* [n_in] rows of n_columns floats -> [n_out] rows. next: what the caller will transform afterwards, in rows like in's; prefetched, so
 * that it may point anywhere. Strips go through all tiles side by side while their rows fit the first-level cache. Strips that are
 * not full, and those whose rows fall into few sets of that cache and would push each other out between tiles (strides of 1 KiB
 * multiples), are copied first. */
GRVI_INLINE void transform_columns(const bool forward, const transform_axis *axis, const float *in,
                                   int64_t in_stride, const float *next, int64_t n_columns,
                                   float *out, int64_t out_stride)
{
    const int64_t n_in = forward ? axis->modes->n : axis->modes->n_rows,
                  n_out = forward ? axis->modes->n_rows : axis->modes->n;
    const bool collides = in_stride % 256 == 0 && n_in > 32;
    const int64_t most = collides ? 1 : grvi_max_i64(1, STRIPS_FLOATS / (n_in * STRIP));
    for (int64_t q = 0; q < n_columns;) {
        const int64_t width = grvi_min_i64(STRIP, n_columns - q),
                      count = width < STRIP ? 1 : grvi_min_i64(most, (n_columns - q) / STRIP);
        const bool full = width == STRIP, copied = collides || !full;
        const int64_t end = q + count * STRIP;
        strips from = {in + q, end + STRIP <= n_columns ? in + end : next, in_stride, count};
        if (copied) {
            copy_in(in + q, in_stride, n_in, width, axis->strip_in);
            from = (strips){axis->strip_in, axis->strip_in, STRIP, 1};
        }
        float *const to = full ? out + q : axis->strip_out;
        const int64_t to_stride = full ? out_stride : STRIP;
        if (forward)
            forward_strips(axis, &from, to, to_stride);
        else
            inverse_strips(axis, &from, to, to_stride);
        if (!full) copy_out(axis->strip_out, n_out, width, out + q, out_stride);
        q = end;
    }
}

static void forward_columns(const transform_axis *axis, const float *in, int64_t in_stride,
                            const float *next, int64_t n_columns, float *out, int64_t out_stride)
{
    transform_columns(true, axis, in, in_stride, next, n_columns, out, out_stride);
}

static void inverse_columns(const transform_axis *axis, const float *in, int64_t in_stride,
                            const float *next, int64_t n_columns, float *out, int64_t out_stride)
{
    transform_columns(false, axis, in, in_stride, next, n_columns, out, out_stride);
}

/* in [n_a][n_b][run] -> out [n_b][n_a][run]; rows of in are in_stride apart, rows of out out_stride >= n_a * run.
 * Rows are written upwards with whole vectors: up to GRVI_LANES - 1 zeros land behind the last row. */
static void transpose_runs(int64_t n_a, int64_t n_b, int64_t run, const float *in,
                           int64_t in_stride, float *out, int64_t out_stride)
{
    const int64_t whole = run / GRVI_LANES * GRVI_LANES, rest = run - whole;
    for (int64_t b = 0; b < n_b; b++)
        for (int64_t a = 0; a < n_a; a++) {
            const float *const from = in + a * in_stride + b * run;
            float *const to = out + b * out_stride + a * run;
            for (int64_t i = 0; i < whole; i += GRVI_LANES) vf_store(to + i, vf_load(from + i));
            if (rest) vf_store(to + whole, vf_load_n(from + whole, rest));
        }
}

#endif
