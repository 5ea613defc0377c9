/* Truncated real transforms with fused ends, for one instruction set (see simd.h).
 *
 * Fold. With e_j = v_j + v_{n-j} and o_j = v_j - v_{n-j} (e_j = v_j where j has no partner: 0, and n/2 of even n)
 *   C_k = sum_{j=0..p-1} e_j cos(2 pi k j/n),   S_k = sum_{j=1..q} o_j sin(2 pi k j/n),
 * half the multiply-adds of the plain product. Backwards c_j = sum_k C_k cos, s_j = sum_k S_k sin, v_j = c_j + s_j, v_{n-j} = c_j - s_j.
 *
 * Register tiles. Columns go in strips of two vectors. A forward tile holds TILE_ROWS x 2 accumulators of C or S; the first tile
 * of a strip also folds and leaves e and o, packed, in scratch (the folding adds run beside its fma, and the strip's rows, whose
 * stride may map them all to one cache set, are read once). An inverse tile holds TILE_PAIRS x (c, s) x 2; the first
 * tile of a strip packs the rows it loads for the same reason. A last strip that is not full goes through zero-padded copies.
 * Row counts of tiles differ by at most one, and TILE_ROWS x 2 >= 8 fma in flight hide the latency.
 *
 * Order of the local axes. d = 4: per y, first z with the long columns (t, c), then runs of c floats are transposed,
 * (z rows, t, c) -> (t, z rows, c), so that t has long columns too and leaves a row of the slab in Q order. (t first costs
 * n_2 f(t) + r_3 f(z) columns instead of n_3 f(z) + r_2 f(t): equal within 4 % for 64 x 16 with 25 and 11 rows.) d = 3: groups of y
 * rows are transposed (y, t, c) -> (t, y, c), t, and back into the slab. Then y, on the slab, a block of Q at a time into A.
 * Synthesis does the same backwards; the last axis' output stays in first-level cache for skip product, bias and activation.
 *
 * Accumulation: float fma, over j (forward) or k (inverse) upwards; skip product over input channels upwards from transformed + bias. */
#include <string.h>

#include "core/alloc.h"
#include "kernels/activation_simd.h"
#include "kernels/spectral_transform.h"

enum {
    STRIP = 2 * GRVI_LANES,
    TILE_ROWS = GRVI_REGISTERS == 32 ? 13 : 6,
    TILE_PAIRS = GRVI_REGISTERS == 32 ? 6 : 3,
    CHUNK_FLOATS = 5120,  /* of transformed values that wait for the next step in first-level cache: 20 KiB */
    PANEL_PAD = STRIP,    /* floats that may be read or rewritten behind a buffer */
};

#define UNROLL _Pragma("GCC unroll 16")

/* Rows base, base + first, base + first + step, base + first + 2 step, ...: the cosine rows of an axis are 0, 1, 3, 5, ...
 * and its sine rows 2, 4, 6, ... */
typedef struct rows {
    float *base;
    int64_t first, step;
} rows;

static rows cos_rows(float *base, int64_t stride) { return (rows){base, stride, 2 * stride}; }
static rows sin_rows(float *base, int64_t stride) { return (rows){base + 2 * stride, 2 * stride, 2 * stride}; }

GRVI_INLINE float *row_at(rows r, int64_t i) { return i == 0 ? r.base : r.base + r.first + (i - 1) * r.step; }

/* ---- forward ---- */

/* What a strip of columns needs on its way: the caller's rows and the packed folded rows. */
typedef struct forward_strip {
    const float *in;   /* [n] rows of STRIP floats, in_stride apart */
    int64_t in_stride;
    const float *next; /* the strip that follows: its rows are prefetched */
    float *folded;     /* [n][STRIP]: e_0 .. e_{p-1}, o_1 .. o_q */
} forward_strip;

GRVI_INLINE void store_tile(const int n_rows, vf acc[][2], rows out, int64_t first_row)
{
    UNROLL
    for (int r = 0; r < n_rows; r++) {
        float *const p = row_at(out, first_row + r);
        vf_store(p, acc[r][0]);
        vf_store(p + GRVI_LANES, acc[r][1]);
    }
}

GRVI_INLINE void multiply_add(const int n_rows, vf acc[][2], const float *coefficients, vf x0, vf x1)
{
    UNROLL
    for (int r = 0; r < n_rows; r++) {
        const vf t = vf_set1(coefficients[r]);
        acc[r][0] = vf_fma(t, x0, acc[r][0]);
        acc[r][1] = vf_fma(t, x1, acc[r][1]);
    }
}

/* out[r] = sum_j table[j][r] in[j], j < n, in packed; table rows are table_stride apart. */
GRVI_INLINE void product_tile(const int n_rows, const float *table, int64_t table_stride, int64_t n, const float *in, rows out,
                              int64_t first_row)
{
    vf acc[TILE_ROWS][2];
    UNROLL
    for (int r = 0; r < n_rows; r++) acc[r][0] = acc[r][1] = vf_zero();
    for (int64_t j = 0; j < n; j++) {
        multiply_add(n_rows, acc, table, vf_load(in), vf_load(in + GRVI_LANES));
        table += table_stride;
        in += STRIP;
    }
    store_tile(n_rows, acc, out, first_row);
}

/* The first cosine rows of a strip, folding on the way. */
GRVI_INLINE void folding_tile(const int n_rows, const grvi_axis_tables *t, int64_t n, int64_t table_stride, const forward_strip *s,
                              rows out)
{
    const float *table = t->forward_cos, *up = s->in, *down = s->in + n * s->in_stride, *ahead_up = s->next,
                *ahead_down = s->next + n * s->in_stride;
    float *e = s->folded, *o = s->folded + t->n_cos_points * STRIP;
    vf acc[TILE_ROWS][2];
    const vf v0 = vf_load(up), v1 = vf_load(up + GRVI_LANES);
    vf_store(e, v0);
    vf_store(e + GRVI_LANES, v1);
    UNROLL
    for (int r = 0; r < n_rows; r++) { /* cos 0 = 1 */
        acc[r][0] = v0;
        acc[r][1] = v1;
    }
    _mm_prefetch((const char *)ahead_up, _MM_HINT_T0);
    for (int64_t j = 0; j < t->n_pairs; j++) {
        up += s->in_stride;
        down -= s->in_stride;
        ahead_up += s->in_stride;
        ahead_down -= s->in_stride;
        table += table_stride;
        e += STRIP;
        _mm_prefetch((const char *)ahead_up, _MM_HINT_T0);
        _mm_prefetch((const char *)ahead_down, _MM_HINT_T0);
        const vf u0 = vf_load(up), u1 = vf_load(up + GRVI_LANES), d0 = vf_load(down), d1 = vf_load(down + GRVI_LANES);
        const vf e0 = vf_add(u0, d0), e1 = vf_add(u1, d1);
        vf_store(e, e0);
        vf_store(e + GRVI_LANES, e1);
        vf_store(o, vf_sub(u0, d0));
        vf_store(o + GRVI_LANES, vf_sub(u1, d1));
        o += STRIP;
        multiply_add(n_rows, acc, table, e0, e1);
    }
    if (t->n_cos_points > t->n_pairs + 1) { /* j = n/2 has no partner */
        up += s->in_stride;
        e += STRIP;
        const vf u0 = vf_load(up), u1 = vf_load(up + GRVI_LANES);
        vf_store(e, u0);
        vf_store(e + GRVI_LANES, u1);
        _mm_prefetch((const char *)(ahead_up + s->in_stride), _MM_HINT_T0);
        multiply_add(n_rows, acc, table + table_stride, u0, u1);
    }
    store_tile(n_rows, acc, out, 0);
}

/* Calls TILE(n) with the constant n == count, 1 <= count <= 13. Cases above the largest tile are never reached; the
 * compiler drops them where TILE tests the constant. */
#define WITH_CONSTANT(count, TILE)                                                                 \
    switch (count) {                                                                               \
    case 1: TILE(1); break;                                                                        \
    case 2: TILE(2); break;                                                                        \
    case 3: TILE(3); break;                                                                        \
    case 4: TILE(4); break;                                                                        \
    case 5: TILE(5); break;                                                                        \
    case 6: TILE(6); break;                                                                        \
    case 7: TILE(7); break;                                                                        \
    case 8: TILE(8); break;                                                                        \
    case 9: TILE(9); break;                                                                        \
    case 10: TILE(10); break;                                                                      \
    case 11: TILE(11); break;                                                                      \
    case 12: TILE(12); break;                                                                      \
    default: TILE(13); break;                                                                      \
    }

static void product_rows(int64_t n_rows, const float *table, int64_t table_stride, int64_t n, const float *in, rows out,
                         int64_t first_row)
{
#define TILE(count)                                                                                \
    if ((count) <= TILE_ROWS) product_tile(count, table, table_stride, n, in, out, first_row)
    WITH_CONSTANT(n_rows, TILE)
#undef TILE
}

static void folding_rows(int64_t n_rows, const grvi_axis_tables *t, int64_t n, int64_t table_stride, const forward_strip *s, rows out)
{
#define TILE(count)                                                                                \
    if ((count) <= TILE_ROWS) folding_tile(count, t, n, table_stride, s, out)
    WITH_CONSTANT(n_rows, TILE)
#undef TILE
}

/* Rows [0, n_rows) in tiles of nearly equal size: where tile i of n_tiles starts. */
static int64_t tile_start(int64_t n_rows, int64_t n_tiles, int64_t i) { return n_rows * i / n_tiles; }

static void forward_full_strip(const grvi_axis_modes *axis, const grvi_axis_tables *t, const forward_strip *s, float *out,
                               int64_t out_stride)
{
    const int64_t cos_tiles = grvi_ceil_div(axis->n_cos, TILE_ROWS), sin_tiles = grvi_ceil_div(axis->n_sin, TILE_ROWS);
    const rows cosines = cos_rows(out, out_stride), sines = sin_rows(out, out_stride);
    folding_rows(tile_start(axis->n_cos, cos_tiles, 1), t, axis->n, axis->n_cos, s, cosines);
    for (int64_t i = 1; i < cos_tiles; i++) {
        const int64_t r = tile_start(axis->n_cos, cos_tiles, i);
        product_rows(tile_start(axis->n_cos, cos_tiles, i + 1) - r, t->forward_cos + r, axis->n_cos, t->n_cos_points, s->folded,
                     cosines, r);
    }
    for (int64_t i = 0; i < sin_tiles; i++) {
        const int64_t r = tile_start(axis->n_sin, sin_tiles, i);
        product_rows(tile_start(axis->n_sin, sin_tiles, i + 1) - r, t->forward_sin + r, axis->n_sin, t->n_pairs,
                     s->folded + t->n_cos_points * STRIP, sines, r);
    }
}

/* ---- inverse ---- */

typedef struct inverse_strip {
    const float *in; /* [n_rows] rows of STRIP floats, in_stride apart, in the order C_0, C_1, S_1, ... */
    int64_t in_stride;
    const float *next; /* the strip that follows: its rows are prefetched by the tile that packs */
    float *packed;     /* where that tile leaves the rows, STRIP apart */
} inverse_strip;

/* Points j = first .. first + n_points - 1 and their partners. pack: read s->in and fill s->packed; else read s->packed. */
GRVI_INLINE void inverse_tile(const int n_points, const bool pack, const grvi_axis_modes *axis, const grvi_axis_tables *t,
                              const inverse_strip *s, float *out, int64_t out_stride, int64_t first)
{
    const int64_t stride = pack ? s->in_stride : STRIP;
    const float *in = pack ? s->in : s->packed, *ahead = s->next;
    float *packed = s->packed;
    const float *cos_table = t->inverse_cos + first, *sin_table = t->inverse_sin + first;
    vf c[TILE_PAIRS][2], sn[TILE_PAIRS][2];
    const vf c0 = vf_load(in), c1 = vf_load(in + GRVI_LANES);
    if (pack) {
        vf_store(packed, c0);
        vf_store(packed + GRVI_LANES, c1);
        _mm_prefetch((const char *)ahead, _MM_HINT_T0);
    }
    UNROLL
    for (int r = 0; r < n_points; r++) {
        c[r][0] = c0;
        c[r][1] = c1;
        sn[r][0] = sn[r][1] = vf_zero();
    }
    for (int64_t k = 0; k < axis->n_sin; k++) {
        in += 2 * stride;
        cos_table += t->n_cos_points;
        const vf x0 = vf_load(in - stride), x1 = vf_load(in - stride + GRVI_LANES), y0 = vf_load(in), y1 = vf_load(in + GRVI_LANES);
        if (pack) {
            vf_store(packed + STRIP, x0);
            vf_store(packed + STRIP + GRVI_LANES, x1);
            packed += 2 * STRIP;
            vf_store(packed, y0);
            vf_store(packed + GRVI_LANES, y1);
            ahead += 2 * stride;
            _mm_prefetch((const char *)(ahead - stride), _MM_HINT_T0);
            _mm_prefetch((const char *)ahead, _MM_HINT_T0);
        }
        multiply_add(n_points, c, cos_table, x0, x1);
        multiply_add(n_points, sn, sin_table, y0, y1);
        sin_table += t->n_cos_points;
    }
    if (axis->n_cos > axis->n_sin + 1) { /* the cosine at n/2 */
        cos_table += t->n_cos_points;
        in += stride;
        const vf x0 = vf_load(in), x1 = vf_load(in + GRVI_LANES);
        if (pack) {
            vf_store(packed + STRIP, x0);
            vf_store(packed + STRIP + GRVI_LANES, x1);
        }
        multiply_add(n_points, c, cos_table, x0, x1);
    }
    UNROLL
    for (int r = 0; r < n_points; r++) {
        const int64_t j = first + r;
        float *const up = out + j * out_stride;
        vf_store(up, vf_add(c[r][0], sn[r][0]));
        vf_store(up + GRVI_LANES, vf_add(c[r][1], sn[r][1]));
        if (j >= 1 && j <= t->n_pairs) {
            float *const down = out + (axis->n - j) * out_stride;
            vf_store(down, vf_sub(c[r][0], sn[r][0]));
            vf_store(down + GRVI_LANES, vf_sub(c[r][1], sn[r][1]));
        }
    }
}

static void inverse_points(int64_t n_points, bool pack, const grvi_axis_modes *axis, const grvi_axis_tables *t, const inverse_strip *s,
                           float *out, int64_t out_stride, int64_t first)
{
#define TILE(count)                                                                                \
    if ((count) <= TILE_PAIRS) {                                                                   \
        if (pack)                                                                                  \
            inverse_tile(count, true, axis, t, s, out, out_stride, first);                         \
        else                                                                                       \
            inverse_tile(count, false, axis, t, s, out, out_stride, first);                        \
    }
    WITH_CONSTANT(n_points, TILE)
#undef TILE
}

static void inverse_full_strip(const grvi_axis_modes *axis, const grvi_axis_tables *t, const inverse_strip *s, float *out,
                               int64_t out_stride)
{
    const int64_t n_tiles = grvi_ceil_div(t->n_cos_points, TILE_PAIRS);
    for (int64_t i = 0; i < n_tiles; i++) {
        const int64_t j = tile_start(t->n_cos_points, n_tiles, i);
        inverse_points(tile_start(t->n_cos_points, n_tiles, i + 1) - j, i == 0, axis, t, s, out, out_stride, j);
    }
}

/* ---- any number of columns ---- */

/* Copies n_rows rows of n <= STRIP floats; fills up to STRIP with zeros on the way into a strip. */
static void copy_in(const float *in, int64_t in_stride, int64_t n_rows, int64_t n, float *strip)
{
    const int64_t low = grvi_min_i64(n, GRVI_LANES);
    for (int64_t r = 0; r < n_rows; r++) {
        vf_store(strip + r * STRIP, vf_load_n(in + r * in_stride, low));
        vf_store(strip + r * STRIP + GRVI_LANES, vf_load_n(in + r * in_stride + low, n - low));
    }
}

static void copy_out(const float *strip, int64_t n_rows, int64_t n, float *out, int64_t out_stride)
{
    for (int64_t r = 0; r < n_rows; r++) memcpy(out + r * out_stride, strip + r * STRIP, (size_t)n * sizeof(float));
}

/* Scratch of a product along one axis: three strips of the longest axis. */
typedef struct strip_scratch {
    float *folded, *tail_in, *tail_out;
} strip_scratch;

typedef struct transform_axis {
    const grvi_axis_modes *modes;
    const grvi_axis_tables *tables;
    strip_scratch scratch;
} transform_axis;

/* [n] rows of n_columns floats -> [n_rows] rows. next: what the caller will transform afterwards (prefetched; may be in itself). */
static void forward_columns(const transform_axis *axis, const float *in, int64_t in_stride, const float *next, int64_t n_columns,
                            float *out, int64_t out_stride)
{
    const grvi_axis_modes *const m = axis->modes;
    int64_t q = 0;
    for (; q + STRIP <= n_columns; q += STRIP) {
        const float *const ahead = q + 2 * STRIP <= n_columns ? in + q + STRIP : next;
        forward_full_strip(m, axis->tables, &(forward_strip){in + q, in_stride, ahead, axis->scratch.folded}, out + q, out_stride);
    }
    if (q == n_columns) return;
    float *const tail_in = axis->scratch.tail_in, *const tail_out = axis->scratch.tail_out;
    copy_in(in + q, in_stride, m->n, n_columns - q, tail_in);
    forward_full_strip(m, axis->tables, &(forward_strip){tail_in, STRIP, tail_in, axis->scratch.folded}, tail_out, STRIP);
    copy_out(tail_out, m->n_rows, n_columns - q, out + q, out_stride);
}

/* [n_rows] rows of n_columns floats -> [n] rows. */
static void inverse_columns(const transform_axis *axis, const float *in, int64_t in_stride, const float *next, int64_t n_columns,
                            float *out, int64_t out_stride)
{
    const grvi_axis_modes *const m = axis->modes;
    int64_t q = 0;
    for (; q + STRIP <= n_columns; q += STRIP) {
        const float *const ahead = q + 2 * STRIP <= n_columns ? in + q + STRIP : next;
        inverse_full_strip(m, axis->tables, &(inverse_strip){in + q, in_stride, ahead, axis->scratch.folded}, out + q, out_stride);
    }
    if (q == n_columns) return;
    float *const tail_in = axis->scratch.tail_in, *const tail_out = axis->scratch.tail_out;
    copy_in(in + q, in_stride, m->n_rows, n_columns - q, tail_in);
    inverse_full_strip(m, axis->tables, &(inverse_strip){tail_in, STRIP, tail_in, axis->scratch.folded}, tail_out, STRIP);
    copy_out(tail_out, m->n, n_columns - q, out + q, out_stride);
}

/* in [n_a][n_b][run] -> out [n_b][n_a][run]; rows of in are in_stride apart, rows of out out_stride >= n_a * run.
 * Rows are written upwards with whole vectors: up to GRVI_LANES - 1 zeros land behind the last row. */
static void transpose_runs(int64_t n_a, int64_t n_b, int64_t run, const float *in, int64_t in_stride, float *out, int64_t out_stride)
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

/* ---- the pointwise end ---- */

/* The skip product in the form that the tiles read: padded with zeros to whole vectors, so that the lanes behind a point's last channel,
 * which belong to the next point, keep their values. */
typedef struct pointwise_end {
    int64_t channels, n_vectors;
    int64_t n_inputs; /* channels, or 0 without skip product */
    bool changes;     /* false: neither skip product nor bias */
    float *weight;    /* [channels][n_vectors * GRVI_LANES] */
    float *bias;      /* [n_vectors * GRVI_LANES] */
    grvi_activation activation;
} pointwise_end;

enum { GROUP_VECTORS = 3 }; /* output vectors of a skip tile: one weight row of them is in registers */

/* values[p] += bias + u[p] W for n_points points and n_vectors vectors of output channels. */
GRVI_INLINE void skip_tile(const int n_points, const int n_vectors, const pointwise_end *end, const float *u, int64_t first_channel,
                           float *values)
{
    const int64_t c = end->channels, weight_stride = end->n_vectors * GRVI_LANES;
    const float *weight = end->weight + first_channel;
    vf acc[8][GROUP_VECTORS];
    UNROLL
    for (int p = 0; p < n_points; p++)
        UNROLL
        for (int v = 0; v < n_vectors; v++)
            acc[p][v] = vf_add(vf_load(values + p * c + v * GRVI_LANES), vf_load(end->bias + first_channel + v * GRVI_LANES));
    for (int64_t i = 0; i < end->n_inputs; i++) {
        vf w[GROUP_VECTORS];
        UNROLL
        for (int v = 0; v < n_vectors; v++) w[v] = vf_load(weight + v * GRVI_LANES);
        UNROLL
        for (int p = 0; p < n_points; p++) {
            const vf x = vf_set1(u[p * c + i]);
            UNROLL
            for (int v = 0; v < n_vectors; v++) acc[p][v] = vf_fma(x, w[v], acc[p][v]);
        }
        weight += weight_stride;
    }
    UNROLL
    for (int p = 0; p < n_points; p++) /* upwards: see pointwise_end */
        UNROLL
        for (int v = 0; v < n_vectors; v++) vf_store(values + p * c + v * GRVI_LANES, acc[p][v]);
}

GRVI_INLINE void skip_group(const int n_vectors, const pointwise_end *end, int64_t n_points, const float *u, int64_t first_channel,
                            float *values)
{
    const int64_t c = end->channels;
    int64_t p = 0;
    values += first_channel;
    if (n_vectors == 1 || GRVI_REGISTERS == 32)
        for (; p + 8 <= n_points; p += 8) skip_tile(8, n_vectors, end, u + p * c, first_channel, values + p * c);
    for (; p + 4 <= n_points; p += 4) skip_tile(4, n_vectors, end, u + p * c, first_channel, values + p * c);
    for (; p < n_points; p++) skip_tile(1, n_vectors, end, u + p * c, first_channel, values + p * c);
}

static void add_skip(const pointwise_end *end, int64_t n_points, const float *u, float *values)
{
    for (int64_t v = 0; v < end->n_vectors; v += GROUP_VECTORS) {
        const int64_t first = v * GRVI_LANES, n = grvi_min_i64(GROUP_VECTORS, end->n_vectors - v);
        if (n == 3)
            skip_group(3, end, n_points, u, first, values);
        else if (n == 2)
            skip_group(2, end, n_points, u, first, values);
        else
            skip_group(1, end, n_points, u, first, values);
    }
}

GRVI_INLINE void activate(const grvi_activation activation, int64_t n, const float *values, float *y, float *pre)
{
    int64_t i = 0;
    for (; i + GRVI_LANES <= n; i += GRVI_LANES) {
        const vf x = vf_load(values + i);
        if (pre) vf_store(pre + i, x);
        vf_store(y + i, vf_activation(activation, x));
    }
    if (i == n) return;
    const vf x = vf_load_n(values + i, n - i);
    if (pre) vf_store_n(pre + i, x, n - i);
    vf_store_n(y + i, vf_activation(activation, x), n - i);
}

/* values: n_points transformed points in scratch, overwritten; GRVI_LANES floats behind them are rewritten. u, y, pre: the same points;
 * u and pre may be NULL. */
static void finish_points(const pointwise_end *end, int64_t n_points, float *values, const float *u, float *y, float *pre)
{
    const int64_t n = n_points * end->channels;
    if (end->changes) add_skip(end, n_points, u, values);
    switch (end->activation) {
    case GRVI_ACT_NONE: activate(GRVI_ACT_NONE, n, values, y, pre); break;
    case GRVI_ACT_RELU: activate(GRVI_ACT_RELU, n, values, y, pre); break;
    case GRVI_ACT_GELU: activate(GRVI_ACT_GELU, n, values, y, pre); break;
    }
}

GRVI_INLINE void multiply_derivative(const grvi_activation activation, int64_t n, const float *dy, const float *pre, float *g)
{
    int64_t i = 0;
    for (; i + GRVI_LANES <= n; i += GRVI_LANES)
        vf_store(g + i, vf_mul(vf_load(dy + i), vf_activation_derivative(activation, vf_load(pre + i))));
    if (i == n) return;
    const vf derivative = vf_activation_derivative(activation, vf_load_n(pre + i, n - i));
    vf_store_n(g + i, vf_mul(vf_load_n(dy + i, n - i), derivative), n - i);
}

/* What analysis transforms: v itself, or g = dy * act'(pre), made panel by panel just before it is read. */
typedef struct analysis_input {
    const float *v;  /* the plane to transform; equals g for the gradient */
    const float *dy; /* NULL: v is ready */
    const float *pre;
    float *g;
    grvi_activation activation;
} analysis_input;

static void prepare_input(const analysis_input *input, int64_t begin, int64_t n)
{
    if (!input->dy) return;
    const float *const dy = input->dy + begin, *const pre = input->pre + begin;
    float *const g = input->g + begin;
    switch (input->activation) {
    case GRVI_ACT_NONE: memcpy(g, dy, (size_t)n * sizeof(float)); break;
    case GRVI_ACT_RELU: multiply_derivative(GRVI_ACT_RELU, n, dy, pre, g); break;
    case GRVI_ACT_GELU: multiply_derivative(GRVI_ACT_GELU, n, dy, pre, g); break;
    }
}

/* ---- scratch memory ---- */

/* The sizes of one plane and the pieces of scratch. "Panel" = what the inner axes work on at a time: one y of a 4-d
 * plane, a group of y of a 3-d one. */
typedef struct workspace {
    transform_axis axis[GRVI_MAX_AXES];
    int64_t group; /* d = 3: rows y of a panel; d = 4: last-axis points that are finished at a time */
    int64_t slab_stride, wide_stride, long_stride, chunk_stride;
    float *slab;      /* [n_1][slab_stride]: rows in Q order (d >= 3); [n_1][c] (d = 2) */
    float *wide;      /* d = 4: [r_2][n_3 c]                       d = 3: [r_2][group c] */
    float *longer;    /* d = 4: [n_3][r_2 c]                       d = 3: [n_2][group c] */
    float *chunk;     /* d = 4: [n_2][group c]                     d = 3: [group][n_2 c]       d = 1: [c] */
    float *weight, *bias;
    int64_t n_floats; /* of all of them */
} workspace;

/* Rows that are no multiple of 4 KiB apart, so that a column of them does not fall into one cache set; with room for PANEL_PAD. */
static int64_t padded_stride(int64_t n) { return grvi_round_up(n, 16) / 16 % 2 ? grvi_round_up(n, 16) + 32 : grvi_round_up(n, 16) + 16; }

static float *take(workspace *w, float *base, int64_t n)
{
    float *const piece = base ? base + w->n_floats : NULL;
    w->n_floats += grvi_round_up(n + PANEL_PAD, 16);
    return piece;
}

/* Points of c channels whose columns fill whole strips where that is possible, of n_rows rows about CHUNK_FLOATS, at most n. */
static int64_t group_points(int64_t n, int64_t c, int64_t n_rows)
{
    int64_t unit = STRIP;
    while (unit > 1 && c * (unit / 2) % STRIP == 0) unit /= 2;
    return grvi_min_i64(n, grvi_max_i64(1, CHUNK_FLOATS / (n_rows * c * unit)) * unit);
}

/* base == NULL: measures only. */
static workspace lay_out(const grvi_transform_tables *tables, float *base)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const int d = l->n_axes;
    const int64_t c = l->channels, padded_c = grvi_round_up(c, GRVI_LANES);
    workspace w = {.group = 1};
    int64_t n_longest = 1;
    for (int a = 0; a < d; a++) n_longest = grvi_max_i64(n_longest, l->axis[a].n);
    strip_scratch strips;
    strips.folded = take(&w, base, n_longest * STRIP);
    strips.tail_in = take(&w, base, n_longest * STRIP);
    strips.tail_out = take(&w, base, n_longest * STRIP);
    for (int a = 0; a < d; a++) w.axis[a] = (transform_axis){&l->axis[a], &tables->axis[a], strips};
    if (d == 4) {
        w.group = group_points(l->axis[3].n, c, l->axis[2].n);
        w.wide_stride = padded_stride(l->axis[3].n * c);
        w.long_stride = padded_stride(l->axis[2].n_rows * c);
        w.chunk_stride = padded_stride(w.group * c);
        w.wide = take(&w, base, l->axis[2].n_rows * w.wide_stride);
        w.longer = take(&w, base, l->axis[3].n * w.long_stride);
        w.chunk = take(&w, base, l->axis[2].n * w.chunk_stride);
    } else if (d == 3) {
        w.group = group_points(l->axis[1].n, c, l->axis[2].n);
        w.wide_stride = w.long_stride = padded_stride(w.group * c);
        w.chunk_stride = l->axis[2].n * c;
        w.wide = take(&w, base, l->axis[2].n_rows * w.wide_stride);
        w.longer = take(&w, base, l->axis[2].n * w.long_stride);
        w.chunk = take(&w, base, w.group * w.chunk_stride);
    } else {
        w.chunk = take(&w, base, c);
    }
    w.slab_stride = d >= 3 ? padded_stride(l->n_columns) : c;
    if (d >= 2) w.slab = take(&w, base, l->axis[1].n * w.slab_stride);
    w.weight = take(&w, base, c * padded_c);
    w.bias = take(&w, base, padded_c);
    return w;
}

static int64_t scratch_bytes(const grvi_transform_tables *tables)
{
    return lay_out(tables, NULL).n_floats * (int64_t)sizeof(float);
}

/* Columns of block qb that are not padding. */
static int64_t block_columns(const grvi_spectral_layout *l, int64_t qb) { return grvi_min_i64(l->block, l->n_columns - qb * l->block); }

/* ---- analysis ---- */

/* One y of a 4-d plane: v [z][t][c] -> row [t rows][z rows][c] of the slab. */
static void analyse_panel_4d(const workspace *w, int64_t c, const float *v, const float *next, float *slab_row)
{
    const grvi_axis_modes *const z = w->axis[2].modes, *const t = w->axis[3].modes;
    forward_columns(&w->axis[2], v, t->n * c, next, t->n * c, w->wide, w->wide_stride);
    transpose_runs(z->n_rows, t->n, c, w->wide, w->wide_stride, w->longer, w->long_stride);
    forward_columns(&w->axis[3], w->longer, w->long_stride, w->longer, z->n_rows * c, slab_row, z->n_rows * c);
}

/* n_y rows of a 3-d plane: v [y][t][c] -> slab rows [y][t rows][c]. */
static void analyse_panel_3d(const workspace *w, int64_t c, int64_t n_y, const float *v, float *slab_rows)
{
    const grvi_axis_modes *const t = w->axis[2].modes;
    transpose_runs(n_y, t->n, c, v, t->n * c, w->longer, w->long_stride);
    forward_columns(&w->axis[2], w->longer, w->long_stride, w->longer, n_y * c, w->wide, w->wide_stride);
    transpose_runs(t->n_rows, n_y, c, w->wide, w->wide_stride, slab_rows, w->slab_stride);
}

/* slab [n_1][Q] -> a. */
static void analyse_slab(const grvi_spectral_layout *l, const workspace *w, const float *slab, grvi_slab_plane a)
{
    for (int64_t qb = 0; qb < l->n_blocks; qb++) {
        const float *const in = slab + qb * l->block;
        float *const out = a.data + qb * a.stride_qb;
        const int64_t n = block_columns(l, qb);
        forward_columns(&w->axis[1], in, w->slab_stride, in + l->block, n, out, a.stride_r1);
        for (int64_t r = 0; r < w->axis[1].modes->n_rows && n < l->block; r++)
            memset(out + r * a.stride_r1 + n, 0, (size_t)(l->block - n) * sizeof(float));
    }
}

static void analyse(const grvi_transform_tables *tables, const analysis_input *input, grvi_slab_plane a, void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const workspace w = lay_out(tables, scratch);
    const int64_t c = l->channels, n_plane = l->n_points / l->axis[0].n * c;
    if (l->n_axes < 4) prepare_input(input, 0, n_plane);
    switch (l->n_axes) {
    case 4: {
        const int64_t n_y = l->axis[1].n, panel = n_plane / n_y;
        for (int64_t y = 0; y < n_y; y++) {
            prepare_input(input, y * panel, panel);
            const float *const v = input->v + y * panel, *const next = y + 1 < n_y && !input->dy ? v + panel : v;
            analyse_panel_4d(&w, c, v, next, w.slab + y * w.slab_stride);
        }
        analyse_slab(l, &w, w.slab, a);
        break;
    }
    case 3: {
        const int64_t n_y = l->axis[1].n, row = n_plane / n_y;
        for (int64_t y = 0; y < n_y; y += w.group)
            analyse_panel_3d(&w, c, grvi_min_i64(w.group, n_y - y), input->v + y * row, w.slab + y * w.slab_stride);
        analyse_slab(l, &w, w.slab, a);
        break;
    }
    case 2: analyse_slab(l, &w, input->v, a); break;
    default:
        for (int64_t qb = 0; qb < l->n_blocks; qb++) {
            const int64_t n = block_columns(l, qb);
            memcpy(a.data + qb * a.stride_qb, input->v + qb * l->block, (size_t)n * sizeof(float));
            memset(a.data + qb * a.stride_qb + n, 0, (size_t)(l->block - n) * sizeof(float));
        }
    }
}

static void analyse_plane(const grvi_transform_tables *tables, const float *v, grvi_slab_plane a, void *scratch)
{
    analyse(tables, &(analysis_input){.v = v}, a, scratch);
}

static void analyse_gradient_plane(const grvi_transform_tables *tables, const float *dy, const float *pre, grvi_activation activation,
                                   float *g, grvi_slab_plane a, void *scratch)
{
    analyse(tables, &(analysis_input){g, dy, pre, g, activation}, a, scratch);
}

/* ---- synthesis ---- */

/* The planes that synthesis ends in; u and pre may be NULL. */
typedef struct end_planes {
    const float *u;
    float *y, *pre;
} end_planes;

static void finish_at(const pointwise_end *end, int64_t n_points, float *values, const end_planes *planes, int64_t offset)
{
    finish_points(end, n_points, values, planes->u ? planes->u + offset : NULL, planes->y + offset,
                  planes->pre ? planes->pre + offset : NULL);
}

static pointwise_end pack_end(const workspace *w, int64_t c, const grvi_synthesis_end *end)
{
    const int64_t n_vectors = grvi_ceil_div(c, GRVI_LANES), stride = n_vectors * GRVI_LANES;
    const bool has_skip = end->skip_input != NULL;
    memset(w->bias, 0, (size_t)stride * sizeof(float));
    if (end->bias) memcpy(w->bias, end->bias, (size_t)c * sizeof(float));
    memset(w->weight, 0, (size_t)(c * stride) * sizeof(float));
    for (int64_t i = 0; i < c && has_skip; i++) memcpy(w->weight + i * stride, end->weight + i * c, (size_t)c * sizeof(float));
    return (pointwise_end){c, n_vectors, has_skip ? c : 0, has_skip || end->bias, w->weight, w->bias, end->activation};
}

/* a -> slab [n_1][slab_stride]. */
static void synthesise_slab(const grvi_spectral_layout *l, const workspace *w, grvi_slab_plane_const a)
{
    for (int64_t qb = 0; qb < l->n_blocks; qb++) {
        const float *const in = a.data + qb * a.stride_qb;
        inverse_columns(&w->axis[1], in, a.stride_r1, in + a.stride_qb, block_columns(l, qb), w->slab + qb * l->block,
                        w->slab_stride);
    }
}

static void synthesise_panel_4d(const workspace *w, const pointwise_end *end, const float *slab_row, const end_planes *planes,
                                int64_t offset)
{
    const grvi_axis_modes *const z = w->axis[2].modes, *const t = w->axis[3].modes;
    const int64_t c = end->channels;
    inverse_columns(&w->axis[3], slab_row, z->n_rows * c, slab_row + w->slab_stride, z->n_rows * c, w->longer, w->long_stride);
    transpose_runs(t->n, z->n_rows, c, w->longer, w->long_stride, w->wide, w->wide_stride);
    for (int64_t it = 0; it < t->n; it += w->group) {
        const int64_t n = grvi_min_i64(w->group, t->n - it);
        const float *const in = w->wide + it * c;
        inverse_columns(&w->axis[2], in, w->wide_stride, in, n * c, w->chunk, w->chunk_stride);
        for (int64_t iz = 0; iz < z->n; iz++)
            finish_at(end, n, w->chunk + iz * w->chunk_stride, planes, offset + (iz * t->n + it) * c);
    }
}

static void synthesise_panel_3d(const workspace *w, const pointwise_end *end, int64_t n_y, const float *slab_rows,
                                const end_planes *planes, int64_t offset)
{
    const grvi_axis_modes *const t = w->axis[2].modes;
    const int64_t c = end->channels;
    transpose_runs(n_y, t->n_rows, c, slab_rows, w->slab_stride, w->wide, w->wide_stride);
    inverse_columns(&w->axis[2], w->wide, w->wide_stride, w->wide, n_y * c, w->longer, w->long_stride);
    transpose_runs(t->n, n_y, c, w->longer, w->long_stride, w->chunk, w->chunk_stride);
    finish_at(end, n_y * t->n, w->chunk, planes, offset);
}

static void synthesise_plane(const grvi_transform_tables *tables, grvi_slab_plane_const a, const grvi_synthesis_end *end, float *y,
                             float *pre, void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const workspace w = lay_out(tables, scratch);
    const int64_t c = l->channels, n_plane = l->n_points / l->axis[0].n * c;
    const pointwise_end packed = pack_end(&w, c, end);
    const end_planes planes = {end->skip_input, y, pre};
    if (l->n_axes >= 2) synthesise_slab(l, &w, a);
    switch (l->n_axes) {
    case 4:
        for (int64_t iy = 0; iy < l->axis[1].n; iy++)
            synthesise_panel_4d(&w, &packed, w.slab + iy * w.slab_stride, &planes, iy * (n_plane / l->axis[1].n));
        break;
    case 3:
        for (int64_t iy = 0; iy < l->axis[1].n; iy += w.group)
            synthesise_panel_3d(&w, &packed, grvi_min_i64(w.group, l->axis[1].n - iy), w.slab + iy * w.slab_stride, &planes,
                                iy * (n_plane / l->axis[1].n));
        break;
    case 2: finish_at(&packed, l->axis[1].n, w.slab, &planes, 0); break;
    default:
        for (int64_t qb = 0; qb < l->n_blocks; qb++)
            memcpy(w.chunk + qb * l->block, a.data + qb * a.stride_qb, (size_t)block_columns(l, qb) * sizeof(float));
        finish_at(&packed, 1, w.chunk, &planes, 0);
    }
}

/* ---- the first axis ---- */

static void first_axis_forward(const grvi_transform_tables *tables, const float *a, float *p, int64_t block_begin, int64_t block_end,
                               void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const workspace w = lay_out(tables, scratch);
    for (int64_t qb = block_begin; qb < block_end; qb++) {
        const float *const in = a + qb * l->axis[0].n * l->block;
        forward_columns(&w.axis[0], in, l->block, in + l->axis[0].n * l->block, l->block, p + qb * l->block, l->n_blocks * l->block);
    }
}

static void first_axis_inverse(const grvi_transform_tables *tables, const float *p, float *a, int64_t block_begin, int64_t block_end,
                               void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const workspace w = lay_out(tables, scratch);
    for (int64_t qb = block_begin; qb < block_end; qb++) {
        const float *const in = p + qb * l->block;
        inverse_columns(&w.axis[0], in, l->n_blocks * l->block, in + l->block, l->block, a + qb * l->axis[0].n * l->block, l->block);
    }
}

static const grvi_spectral_kernels kernels = {scratch_bytes,    analyse_plane,      analyse_gradient_plane,
                                              synthesise_plane, first_axis_forward, first_axis_inverse};
