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
    STRIPS_FLOATS = 2048, /* of rows that go through all tiles before the next ones: 8 KiB */
    CACHE_LINE = 16,      /* floats */
    PANEL_PAD = STRIP,    /* floats that may be read or rewritten behind a buffer */
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

GRVI_INLINE void prefetch(const float *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
GRVI_INLINE void prefetch_far(const float *p) { _mm_prefetch((const char *)p, _MM_HINT_T1); } /* into the second level */

GRVI_INLINE void multiply_add(const int n_rows, vf acc[][2], const float *coefficients, vf x0, vf x1)
{
    UNROLL
    for (int r = 0; r < n_rows; r++) {
        const vf t = vf_set1(coefficients[r]);
        acc[r][0] = vf_fma(t, x0, acc[r][0]);
        acc[r][1] = vf_fma(t, x1, acc[r][1]);
    }
}

/* Calls TILE(n) with the constant n == count, 1 <= count <= 13; TILE tests the constant against the largest tile. */
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

/* n_rows rows in tiles of nearly equal size, larger ones first: where tile i of n_tiles starts. */
GRVI_INLINE int64_t tile_start(int64_t n_rows, int64_t n_tiles, int64_t i) { return (n_rows * i + n_tiles - 1) / n_tiles; }

/* ---- forward ---- */

typedef enum row_kind { FIRST_COSINES, COSINES, SINES } row_kind; /* FIRST_COSINES: from k = 0 on */

/* Rows [first, first + n_rows) of the cosines (from k = 0) or of the sines (from k = 1). */
GRVI_INLINE void forward_tile(const int n_rows, const row_kind kind, const transform_axis *axis, const strips *in, int64_t first,
                              float *out, int64_t out_stride)
{
    const grvi_axis_tables *const t = axis->tables;
    const int64_t n = axis->modes->n, stride = in->stride, n_pairs = t->n_pairs;
    const bool has_middle = t->n_cos_points > n_pairs + 1; /* j = n/2 has no partner */
    const int64_t table_stride = kind == SINES ? axis->modes->n_sin : axis->modes->n_cos;
    const float *const table_1 = kind == SINES ? t->forward_sin + first : t->forward_cos + table_stride + first; /* of j = 1 */
    out += (2 * first + (kind == SINES ? 2 : -1)) * out_stride;
    for (int64_t q = 0; q < in->count * STRIP; q += STRIP) {
        const float *up = in->data + q, *down = up + n * stride, *ahead = in->next + q, *ahead_down = ahead + n * stride;
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
            const vf u0 = vf_load(up), u1 = vf_load(up + GRVI_LANES), d0 = vf_load(down), d1 = vf_load(down + GRVI_LANES);
            if (kind == SINES)
                multiply_add(n_rows, acc, table, vf_sub(u0, d0), vf_sub(u1, d1));
            else
                multiply_add(n_rows, acc, table, vf_add(u0, d0), vf_add(u1, d1));
            table += table_stride;
        }
        if (kind != SINES && has_middle)
            multiply_add(n_rows, acc, table, vf_load(up + stride), vf_load(up + stride + GRVI_LANES));
        UNROLL
        for (int r = 0; r < n_rows; r++) {
            float *const row = out + q + (kind == FIRST_COSINES && r == 0 ? 1 : 2 * r) * out_stride;
            vf_store(row, acc[r][0]);
            vf_store(row + GRVI_LANES, acc[r][1]);
        }
    }
}

static void forward_rows(int64_t n_rows, row_kind kind, const transform_axis *axis, const strips *in, int64_t first, float *out,
                         int64_t out_stride)
{
#define TILE(count)                                                                                \
    if ((count) <= TILE_ROWS) {                                                                    \
        if (kind == FIRST_COSINES)                                                                 \
            forward_tile(count, FIRST_COSINES, axis, in, first, out, out_stride);                  \
        else if (kind == COSINES)                                                                  \
            forward_tile(count, COSINES, axis, in, first, out, out_stride);                        \
        else                                                                                       \
            forward_tile(count, SINES, axis, in, first, out, out_stride);                          \
    }
    WITH_CONSTANT(n_rows, TILE)
#undef TILE
}

static void forward_strips(const transform_axis *axis, const strips *in, float *out, int64_t out_stride)
{
    const int64_t n_cos = axis->modes->n_cos, n_sin = axis->modes->n_sin;
    const int64_t cos_tiles = grvi_ceil_div(n_cos, TILE_ROWS), sin_tiles = grvi_ceil_div(n_sin, TILE_ROWS);
    for (int64_t i = 0; i < cos_tiles; i++) {
        const int64_t first = tile_start(n_cos, cos_tiles, i), end = tile_start(n_cos, cos_tiles, i + 1);
        forward_rows(end - first, i == 0 ? FIRST_COSINES : COSINES, axis, in, first, out, out_stride);
    }
    for (int64_t i = 0; i < sin_tiles; i++) {
        const int64_t first = tile_start(n_sin, sin_tiles, i), end = tile_start(n_sin, sin_tiles, i + 1);
        forward_rows(end - first, SINES, axis, in, first, out, out_stride);
    }
}

/* ---- inverse ---- */

/* Points j = first .. first + n_points - 1 and their partners. */
GRVI_INLINE void inverse_tile(const int n_points, const bool fetch, const transform_axis *axis, const strips *in, int64_t first,
                              float *out, int64_t out_stride)
{
    const grvi_axis_tables *const t = axis->tables;
    const int64_t n = axis->modes->n, n_sin = axis->modes->n_sin, stride = in->stride, table_stride = t->n_cos_points;
    const bool has_middle = axis->modes->n_cos > n_sin + 1; /* the cosine at n/2 */
    for (int64_t q = 0; q < in->count * STRIP; q += STRIP) {
        const float *x = in->data + q, *ahead = in->next + q, *cos_table = t->inverse_cos + first, *sin_table = t->inverse_sin + first;
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
            multiply_add(n_points, c, cos_table, vf_load(x - stride), vf_load(x - stride + GRVI_LANES));
            multiply_add(n_points, s, sin_table, vf_load(x), vf_load(x + GRVI_LANES));
            sin_table += table_stride;
        }
        if (has_middle) multiply_add(n_points, c, cos_table + table_stride, vf_load(x + stride), vf_load(x + stride + GRVI_LANES));
        UNROLL
        for (int r = 0; r < n_points; r++) {
            const int64_t j = first + r;
            float *const up = out + j * out_stride + q, *const down = out + (n - j) * out_stride + q;
            vf_store(up, vf_add(c[r][0], s[r][0]));
            vf_store(up + GRVI_LANES, vf_add(c[r][1], s[r][1]));
            if (j >= 1 && j <= t->n_pairs) {
                vf_store(down, vf_sub(c[r][0], s[r][0]));
                vf_store(down + GRVI_LANES, vf_sub(c[r][1], s[r][1]));
            }
        }
    }
}

static void inverse_points(int64_t n_points, bool fetch, const transform_axis *axis, const strips *in, int64_t first, float *out,
                           int64_t out_stride)
{
#define TILE(count)                                                                                \
    if ((count) <= TILE_PAIRS) {                                                                   \
        if (fetch)                                                                                 \
            inverse_tile(count, true, axis, in, first, out, out_stride);                           \
        else                                                                                       \
            inverse_tile(count, false, axis, in, first, out, out_stride);                          \
    }
    WITH_CONSTANT(n_points, TILE)
#undef TILE
}

static void inverse_strips(const transform_axis *axis, const strips *in, float *out, int64_t out_stride)
{
    const int64_t n_points = axis->tables->n_cos_points, n_tiles = grvi_ceil_div(n_points, TILE_PAIRS);
    for (int64_t i = 0; i < n_tiles; i++) {
        const int64_t first = tile_start(n_points, n_tiles, i), end = tile_start(n_points, n_tiles, i + 1);
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
    for (int64_t r = 0; r < n_rows; r++) memcpy(out + r * out_stride, in + r * STRIP, (size_t)n * sizeof(float));
}

/* [n_in] rows of n_columns floats -> [n_out] rows. next: what the caller will transform afterwards, in rows like in's; prefetched, so
 * that it may point anywhere. Strips go through all tiles side by side while their rows fit the first-level cache. Strips that are
 * not full, and those whose rows fall into few sets of that cache and would push each other out between tiles (strides of 1 KiB
 * multiples), are copied first. */
GRVI_INLINE void transform_columns(const bool forward, const transform_axis *axis, const float *in, int64_t in_stride, const float *next,
                                   int64_t n_columns, float *out, int64_t out_stride)
{
    const int64_t n_in = forward ? axis->modes->n : axis->modes->n_rows, n_out = forward ? axis->modes->n_rows : axis->modes->n;
    const bool collides = in_stride % 256 == 0 && n_in > 32;
    const int64_t most = collides ? 1 : grvi_max_i64(1, STRIPS_FLOATS / (n_in * STRIP));
    for (int64_t q = 0; q < n_columns;) {
        const int64_t width = grvi_min_i64(STRIP, n_columns - q), count = width < STRIP ? 1 : grvi_min_i64(most, (n_columns - q) / STRIP);
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

static void forward_columns(const transform_axis *axis, const float *in, int64_t in_stride, const float *next, int64_t n_columns,
                            float *out, int64_t out_stride)
{
    transform_columns(true, axis, in, in_stride, next, n_columns, out, out_stride);
}

static void inverse_columns(const transform_axis *axis, const float *in, int64_t in_stride, const float *next, int64_t n_columns,
                            float *out, int64_t out_stride)
{
    transform_columns(false, axis, in, in_stride, next, n_columns, out, out_stride);
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
GRVI_INLINE void skip_tile(const int n_points, const int n_full, const int n_quads, const pointwise_end *end, const float *u,
                           int64_t first, float *values)
{
    const int n_groups = n_points / QUAD_POINTS, step = n_quads > 0 ? 4 : 1;
    const int64_t c = end->channels, first_quad = first + n_full * GRVI_LANES;
    const float *weight = end->weight + first, *quad_weight = end->weight + first_quad;
    vf acc[MAX_POINTS][GROUP_VECTORS], quad_acc[MAX_POINTS / QUAD_POINTS][QUAD_POINTS];
    values += first;
    UNROLL
    for (int p = 0; p < n_points; p++)
        UNROLL
        for (int v = 0; v < n_full; v++)
            acc[p][v] = vf_add(vf_load(values + p * c + v * GRVI_LANES), vf_load(end->bias + first + v * GRVI_LANES));
    UNROLL
    for (int g = 0; g < n_groups; g++)
        UNROLL
        for (int v = 0; v < n_quads; v++)
            quad_acc[g][v] = vf_add(vf_load_quads(values + n_full * GRVI_LANES + g * QUAD_POINTS * c + 4 * v, c),
                                    vf_repeat_quad(end->bias + first_quad + 4 * v));
    for (int64_t i = 0; i < end->n_inputs; i += step) {
        vf x_quad[MAX_POINTS / QUAD_POINTS];
        UNROLL
        for (int g = 0; g < n_groups && n_quads > 0; g++) x_quad[g] = vf_load_quads(u + g * QUAD_POINTS * c + i, c);
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
                for (int g = 0; g < n_groups; g++) quad_acc[g][v] = vf_fma(vf_spread_quad(x_quad[g], l), quad, quad_acc[g][v]);
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
    for (int g = 0; g < n_groups; g++)
        UNROLL
        for (int v = 0; v < n_quads; v++)
            vf_store_quads(values + n_full * GRVI_LANES + g * QUAD_POINTS * c + 4 * v, c, quad_acc[g][v]);
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
GRVI_INLINE void skip_group(const int n_full, const int n_quads, const pointwise_end *end, const point_rows *rows, const float *u_plane,
                            int64_t first)
{
    const int large = n_full == 0 && GRVI_REGISTERS == 32 ? 16 : n_full <= 1 || GRVI_REGISTERS == 32 ? 8 : 4;
    const int small = n_quads > 0 ? QUAD_POINTS : 1, padded = n_full < GROUP_VECTORS ? n_full + 1 : GROUP_VECTORS;
    const int64_t c = end->channels, n = rows->n_points;
    for (int64_t r = 0; r < rows->n_rows; r++) {
        const float *u = u_plane ? u_plane + rows->offset + r * rows->plane_stride : NULL;
        float *values = rows->values + r * rows->values_stride;
        for (int64_t i = 0; i < n * c && u && first == 0; i += CACHE_LINE) prefetch_far(u + rows->ahead + i);
        int64_t p = 0;
        for (; p + large <= n; p += large) skip_tile(large, n_full, n_quads, end, u + p * c, first, values + p * c);
        for (; p + 4 <= n; p += 4) skip_tile(4, n_full, n_quads, end, u + p * c, first, values + p * c);
        for (; p + small <= n; p += small) skip_tile(small, n_full, n_quads, end, u + p * c, first, values + p * c);
        for (; n_quads > 0 && p < n; p++) skip_tile(1, padded, 0, end, u + p * c, first, values + p * c);
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
#define GROUP(full)                                                                                \
    switch (end->n_quads) {                                                                        \
    case 0:                                                                                        \
        if ((full) > 0) skip_group(full, 0, end, rows, u, first);                      \
        break;                                                                                     \
    case 1: skip_group(full, 1, end, rows, u, first); break;                           \
    case 2:                                                                                        \
        if (QUAD_POINTS > 2) skip_group(full, 2, end, rows, u, first);                 \
        break;                                                                                     \
    default:                                                                                       \
        if (QUAD_POINTS > 2) skip_group(full, 3, end, rows, u, first);                 \
        break;                                                                                     \
    }
    switch (n_full) {
    case 0: GROUP(0) break;
    case 1: GROUP(1) break;
    default: GROUP(2) break;
    }
#undef GROUP
}

GRVI_INLINE void activate(const grvi_activation activation, int64_t n, const float *values, float *y, float *pre)
{
    int64_t i = 0;
    for (; i + STRIP <= n; i += STRIP) { /* two at a time hide the latency of GELU's division */
        const vf x0 = vf_load(values + i), x1 = vf_load(values + i + GRVI_LANES);
        if (pre) {
            vf_store(pre + i, x0);
            vf_store(pre + i + GRVI_LANES, x1);
        }
        const vf y0 = vf_activation(activation, x0), y1 = vf_activation(activation, x1);
        vf_store(y + i, y0);
        vf_store(y + i + GRVI_LANES, y1);
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
    float *const strip_in = take(&w, base, n_longest * STRIP), *const strip_out = take(&w, base, n_longest * STRIP);
    for (int a = 0; a < d; a++) w.axis[a] = (transform_axis){&l->axis[a], &tables->axis[a], strip_in, strip_out};
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

static pointwise_end pack_end(const workspace *w, int64_t c, const grvi_synthesis_end *end)
{
    const int64_t stride = grvi_round_up(c, GRVI_LANES), rest = c % GRVI_LANES;
    const bool has_skip = end->skip_input != NULL, quads = c % 4 == 0;
    memset(w->bias, 0, (size_t)stride * sizeof(float));
    if (end->bias) memcpy(w->bias, end->bias, (size_t)c * sizeof(float));
    memset(w->weight, 0, (size_t)(c * stride) * sizeof(float));
    for (int64_t i = 0; i < c && has_skip; i++) memcpy(w->weight + i * stride, end->weight + i * c, (size_t)c * sizeof(float));
    return (pointwise_end){.channels = c,
                           .n_full = quads ? c / GRVI_LANES : stride / GRVI_LANES,
                           .n_quads = quads ? rest / 4 : 0,
                           .weight_stride = stride,
                           .n_inputs = has_skip ? c : 0,
                           .changes = has_skip || end->bias,
                           .weight = w->weight,
                           .bias = w->bias,
                           .activation = end->activation};
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
        const int64_t row = t->n * c, ahead = it + n < t->n ? n * c : z->n * row - it * c;
        finish_rows(end, &(point_rows){z->n, n, w->chunk, w->chunk_stride, offset + it * c, row, ahead}, planes);
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
    const int64_t row = t->n * c;
    finish_rows(end, &(point_rows){n_y, t->n, w->chunk, w->chunk_stride, offset, row, n_y * row}, planes);
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
    case 2: finish_rows(&packed, &(point_rows){1, l->axis[1].n, w.slab, 0, 0, 0, 0}, &planes); break;
    default:
        for (int64_t qb = 0; qb < l->n_blocks; qb++)
            memcpy(w.chunk + qb * l->block, a.data + qb * a.stride_qb, (size_t)block_columns(l, qb) * sizeof(float));
        finish_rows(&packed, &(point_rows){1, 1, w.chunk, 0, 0, 0, 0}, &planes);
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
