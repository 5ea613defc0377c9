/* The mode mix on float32, compiled once per instruction set (simd.h).
 *
 * Per group: gather the rows of every sample and combine them into complex modes by butterflies
 * in registers, channels in the lanes; one pass over the weights of each mode for all samples;
 * butterflies back, scatter. A group is gathered entirely before anything of it is scattered, so
 * that input and output may be the same.
 *
 * A complex vector of channels is a slot [re c | im c] + padding in scratch. Vectors over
 * columns overlap at the end instead of having a tail: the shared lanes get the same numbers
 * twice. Where c is less than a vector ("short"), rows of P are masked; real parts in a slot run
 * into the imaginary ones, which are stored after them; rows of weights run into what follows
 * them, except near the end of a mode. Rows and modes that do not exist are a row of zeros, a
 * row to throw away and slots of zeros.
 *
 * The pass is bound by reading the weights, which are prefetched PREFETCH floats ahead, and by
 * writing dW; with several samples also by their rows of P, too many streams for the hardware. */
#include <string.h>

#include "kernels/mode_mix_impl.h"
#include "kernels/simd.h"

enum {
    LANES = GRVI_LANES,
    LINE = 16,                  /* floats of a cache line */
    MAX_VECTORS = 4,            /* of columns at once: 8 accumulators and their operands */
    PREFETCH = 2048,            /* floats; 1024 to 4096 are alike, without it w8 takes 1.5 times */
    PAST_CACHE_BYTES = 1 << 24, /* of dW: about what a core's share of the last cache holds */
};

/* ---- what simd.h does not have ---- */

GRVI_INLINE float sum_lanes4(__m128 a)
{
    a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps(a, a, 1)));
}
GRVI_INLINE float sum_lanes8(__m256 a)
{
    return sum_lanes4(_mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)));
}
#ifdef GRVI_AVX512
GRVI_INLINE float sum_lanes(vf a)
{
    return sum_lanes8(_mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)));
}
GRVI_INLINE void store_short(float *p, vf a, int64_t n)
{
    vf_store_n(p, a, n);
}
GRVI_INLINE __m256 half_lanes(vf a, bool high)
{
    return high ? _mm512_extractf32x8_ps(a, 1) : _mm512_castps512_ps256(a);
}
#else
/* The first n < 8 lanes in pieces: masked stores of AVX2 take a dozen cycles on some processors. */
GRVI_INLINE void store_short(float *p, vf a, int64_t n)
{
    __m128 rest = _mm256_castps256_ps128(a);
    if (n & 4) {
        _mm_storeu_ps(p, rest);
        rest = _mm256_extractf128_ps(a, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)p, rest);
        rest = _mm_movehl_ps(rest, rest);
        p += 2;
    }
    if (n & 1) _mm_store_ss(p, rest);
}
GRVI_INLINE float sum_lanes(vf a)
{
    return sum_lanes8(a);
}
GRVI_INLINE __m256 half_lanes(vf a, bool high)
{
    return high ? _mm256_setzero_ps() : a;
}
#endif
/* The first n lanes past the cache, in pieces of 8 or 4 floats, of which n is a multiple and to
 * which p is aligned. */
GRVI_INLINE void stream(float *p, vf a, int64_t n, int64_t piece)
{
    for (int64_t at = 0; at < LANES; at += 8) {
        const __m256 half = half_lanes(a, at > 0);
        if (at + 8 <= n && piece == 8) {
            _mm256_stream_ps(p + at, half);
            continue;
        }
        if (at + 4 <= n) _mm_stream_ps(p + at, _mm256_castps256_ps128(half));
        if (at + 8 <= n) _mm_stream_ps(p + at + 4, _mm256_extractf128_ps(half, 1));
    }
}

/* One call. */
typedef struct mixer {
    int64_t c;         /* channels */
    int64_t n_vectors; /* over c columns */
    int64_t slot;      /* floats of a complex vector */
    int64_t sample;    /* floats of a group's modes of one sample: n_signs slots */
    int n_two_sided;   /* axes with butterflies */
    int n_signs;       /* 2^n_two_sided */
    int64_t ahead;     /* floats of P to the rows of the second next group */
    float *first;      /* [n_samples][n_signs] slots */
    float *second;     /* as first */
    float *zeros;      /* read for rows that do not exist */
    float *waste;      /* written for rows that do not exist */
    float *turned;     /* [n_samples] slots */
} mixer;

static mixer mixer_make(const grvi_mode_mix *mix, int64_t n_samples, float *scratch)
{
    mixer m = {.c = mix->layout.channels, .n_two_sided = mix->layout.n_axes - 1};
    m.n_vectors = grvi_ceil_div(m.c, LANES);
    m.slot = grvi_round_up(2 * m.c + LANES, 16);
    m.n_signs = 1 << m.n_two_sided;
    m.ahead = 4 * mix->stride[mix->order[m.n_two_sided]]; /* cos and sin of two magnitudes */
    m.sample = m.n_signs * m.slot;
    m.first = scratch;
    m.second = m.first + n_samples * m.sample;
    m.zeros = m.second + n_samples * m.sample;
    m.waste = m.zeros + m.slot;
    m.turned = m.waste + m.slot;
    memset(m.zeros, 0, (size_t)m.slot * sizeof *m.zeros);
    return m;
}

/* ---- rows to modes and back; the bodies get constants for n_two_sided and is_short ---- */

/* x[s] = scale * sum of the rows with their factors: C - iS for +k, C + iS for -k, axis by axis. */
GRVI_INLINE void gather_body(const mixer *m, const float *const *row, float scale, float *x,
                             int n_two_sided, bool is_short)
{
    const int n = 1 << n_two_sided;
    const int64_t c = m->c, n_vectors = is_short ? 1 : grvi_ceil_div(c, LANES);
    const vf plus = vf_set1(scale), minus = vf_set1(-scale);
    for (int64_t v = 0; v < n_vectors; v++) {
        const int64_t at = is_short ? 0 : grvi_min_i64(v * LANES, c - LANES);
        vf re[GRVI_MAX_SIGNS], im[GRVI_MAX_SIGNS];
#pragma GCC unroll 8
        for (int s = 0; s < n; s++) {
            re[s] = vf_mul(plus, is_short ? vf_load_n(row[s], c) : vf_load(row[s] + at));
            im[s] = vf_mul(minus, is_short ? vf_load_n(row[s + n], c) : vf_load(row[s + n] + at));
        }
#pragma GCC unroll 3
        for (int a = 0; a < n_two_sided; a++)
#pragma GCC unroll 8
            for (int s = 0; s < n; s++) {
                if (s >> a & 1) continue;
                const int t = s | 1 << a;
                const vf cos_re = re[s], cos_im = im[s], sin_re = re[t], sin_im = im[t];
                re[s] = vf_add(cos_re, sin_im);
                im[s] = vf_sub(cos_im, sin_re);
                re[t] = vf_sub(cos_re, sin_im);
                im[t] = vf_add(cos_im, sin_re);
            }
#pragma GCC unroll 8
        for (int s = 0; s < n; s++) { /* in this order: see short above */
            vf_store(x + s * m->slot + at, re[s]);
            vf_store(x + s * m->slot + c + at, im[s]);
        }
    }
}

/* The transpose: cos row = Y+ + Y-, sin row = i (Y+ - Y-) per axis, then the real part for the
 * last cosine, minus the imaginary part for the last sine. */
GRVI_INLINE void scatter_body(const mixer *m, const float *y, float *const *row, int n_two_sided,
                              bool is_short)
{
    const int n = 1 << n_two_sided;
    const int64_t c = m->c, n_vectors = is_short ? 1 : grvi_ceil_div(c, LANES);
    for (int64_t v = 0; v < n_vectors; v++) {
        const int64_t at = is_short ? 0 : grvi_min_i64(v * LANES, c - LANES);
        vf re[GRVI_MAX_SIGNS], im[GRVI_MAX_SIGNS];
#pragma GCC unroll 8
        for (int s = 0; s < n; s++) {
            re[s] = vf_load(y + s * m->slot + at);
            im[s] = vf_load(y + s * m->slot + c + at);
        }
#pragma GCC unroll 3
        for (int a = 0; a < n_two_sided; a++)
#pragma GCC unroll 8
            for (int s = 0; s < n; s++) {
                if (s >> a & 1) continue;
                const int t = s | 1 << a;
                const vf plus_re = re[s], plus_im = im[s], minus_re = re[t], minus_im = im[t];
                re[s] = vf_add(plus_re, minus_re);
                im[s] = vf_add(plus_im, minus_im);
                re[t] = vf_sub(minus_im, plus_im);
                im[t] = vf_sub(plus_re, minus_re);
            }
#pragma GCC unroll 8
        for (int s = 0; s < n; s++) {
            const vf sine = vf_sub(vf_zero(), im[s]);
            if (is_short) {
                store_short(row[s], re[s], c);
                store_short(row[s + n], sine, c);
            } else {
                vf_store(row[s] + at, re[s]);
                vf_store(row[s + n] + at, sine);
            }
        }
    }
}

static void gather(const mixer *m, const grvi_mode_group *group, float scale, const float *p,
                   float *x)
{
    const float *row[GRVI_MAX_GROUP_ROWS];
    for (int t = 0; t < 2 * m->n_signs; t++) {
        row[t] = group->row[t] < 0 ? m->zeros : p + group->row[t];
        __builtin_prefetch(row[t] + m->ahead, 0, 3);
    }
    const bool is_short = m->c < LANES;
    switch (2 * m->n_two_sided + is_short) {
    case 0: gather_body(m, row, scale, x, 0, false); break;
    case 1: gather_body(m, row, scale, x, 0, true); break;
    case 2: gather_body(m, row, scale, x, 1, false); break;
    case 3: gather_body(m, row, scale, x, 1, true); break;
    case 4: gather_body(m, row, scale, x, 2, false); break;
    case 5: gather_body(m, row, scale, x, 2, true); break;
    case 6: gather_body(m, row, scale, x, 3, false); break;
    default: gather_body(m, row, scale, x, 3, true); break;
    }
}

static void scatter(const mixer *m, const grvi_mode_group *group, float *y, float *p)
{
    float *row[GRVI_MAX_GROUP_ROWS];
    for (int t = 0; t < 2 * m->n_signs; t++)
        row[t] = group->row[t] < 0 ? m->waste : p + group->row[t];
    for (int s = 0; s < m->n_signs; s++)
        if (!(group->signs >> s & 1)) memset(y + s * m->slot, 0, (size_t)m->slot * sizeof *y);
    const bool is_short = m->c < LANES;
    switch (2 * m->n_two_sided + is_short) {
    case 0: scatter_body(m, y, row, 0, false); break;
    case 1: scatter_body(m, y, row, 0, true); break;
    case 2: scatter_body(m, y, row, 1, false); break;
    case 3: scatter_body(m, y, row, 1, true); break;
    case 4: scatter_body(m, y, row, 2, false); break;
    case 5: scatter_body(m, y, row, 2, true); break;
    case 6: scatter_body(m, y, row, 3, false); break;
    default: scatter_body(m, y, row, 3, true); break;
    }
}

/* ---- products with the weights of one mode, rows [re c | im c] ---- */

/* V <= MAX_VECTORS vectors over columns; the bodies get constants for V and is_short (V = 1). */
typedef struct chunk {
    int64_t first, last; /* columns where the first and the last vector start */
    int64_t n_repeated;  /* lanes of the last vector that an earlier one holds */
} chunk;

static chunk chunk_make(const mixer *m, int64_t begin, int64_t end)
{
    const int64_t last = grvi_max_i64(0, grvi_min_i64((end - 1) * LANES, m->c - LANES));
    return (chunk){begin * LANES, last, (end - 1) * LANES - last};
}

GRVI_INLINE int64_t column(const chunk *k, int v, int V)
{
    return v < V - 1 ? k->first + v * LANES : k->last;
}

/* Short rows: a whole vector from the imaginary part of row i on would leave the mode. */
GRVI_INLINE bool near_end(int64_t c, int64_t i)
{
    return (c - i) * 2 * c < c + LANES;
}

/* This chunk's share of the row that starts `ahead` floats after w. */
GRVI_INLINE void prefetch_row(const chunk *k, const float *w, int64_t ahead, int V)
{
    if (ahead == 0) return;
#pragma GCC unroll 8
    for (int i = 0; i < 2 * V * LANES; i += LINE)
        __builtin_prefetch(w + 2 * k->first + i + ahead, 0, 3);
}

/* y_o = sum_i x_i w_io for S samples */
GRVI_INLINE void multiply_body(const mixer *m, const chunk *k, const float *w, const float *x,
                               int64_t ahead, float *y, int S, int V, bool is_short)
{
    const int64_t c = m->c;
    vf re[2][MAX_VECTORS], im[2][MAX_VECTORS];
#pragma GCC unroll 2
    for (int n = 0; n < S; n++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) re[n][v] = im[n][v] = vf_zero();
    for (int64_t i = 0; i < c; i++, w += 2 * c) {
        const bool masked = is_short && near_end(c, i);
        prefetch_row(k, w, ahead, V);
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) {
            const float *const at = w + column(k, v, V);
            const vf w_re = masked ? vf_load_n(at, c) : vf_load(at);
            const vf w_im = masked ? vf_load_n(at + c, c) : vf_load(at + c);
#pragma GCC unroll 2
            for (int n = 0; n < S; n++) {
                const vf x_re = vf_set1(x[n * m->sample + i]),
                         x_im = vf_set1(x[n * m->sample + c + i]);
                re[n][v] = vf_fnma(x_im, w_im, vf_fma(x_re, w_re, re[n][v]));
                im[n][v] = vf_fma(x_im, w_re, vf_fma(x_re, w_im, im[n][v]));
            }
        }
    }
#pragma GCC unroll 2
    for (int n = 0; n < S; n++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) { /* short: re before im */
            vf_store(y + n * m->sample + column(k, v, V), re[n][v]);
            vf_store(y + n * m->sample + c + column(k, v, V), im[n][v]);
        }
}

/* y_i = sum_o conj(w_io) q_o over the columns of the chunk, added to y after the first chunk */
GRVI_INLINE void adjoint_body(const mixer *m, const chunk *k, const float *w, const float *q,
                              int64_t ahead, float *y, int S, int V, bool is_short)
{
    static const float step[32] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const vf is_new = vf_load(step + 16 - (is_short ? 0 : k->n_repeated));
    const int64_t c = m->c;
    vf q_re[2][MAX_VECTORS], q_im[2][MAX_VECTORS];
#pragma GCC unroll 2
    for (int n = 0; n < S; n++) {
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) {
            const float *const at = q + n * m->sample + column(k, v, V);
            q_re[n][v] = is_short ? vf_load_n(at, c) : vf_load(at);
            q_im[n][v] = is_short ? vf_load_n(at + c, c) : vf_load(at + c);
        }
        q_re[n][V - 1] = vf_select_positive(is_new, q_re[n][V - 1], vf_zero());
        q_im[n][V - 1] = vf_select_positive(is_new, q_im[n][V - 1], vf_zero());
    }
    for (int64_t i = 0; i < c; i++, w += 2 * c) {
        const bool masked = is_short && near_end(c, i);
        vf re[2] = {vf_zero(), vf_zero()}, im[2] = {vf_zero(), vf_zero()};
        prefetch_row(k, w, ahead, V);
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) {
            const float *const at = w + column(k, v, V);
            const vf w_re = masked ? vf_load_n(at, c) : vf_load(at);
            const vf w_im = masked ? vf_load_n(at + c, c) : vf_load(at + c);
#pragma GCC unroll 2
            for (int n = 0; n < S; n++) {
                re[n] = vf_fma(w_im, q_im[n][v], vf_fma(w_re, q_re[n][v], re[n]));
                im[n] = vf_fnma(w_im, q_re[n][v], vf_fma(w_re, q_im[n][v], im[n]));
            }
        }
#pragma GCC unroll 2
        for (int n = 0; n < S; n++) {
            float *const at = y + n * m->sample + i;
            at[0] = sum_lanes(re[n]) + (k->first > 0 ? at[0] : 0);
            at[c] = sum_lanes(im[n]) + (k->first > 0 ? at[c] : 0);
        }
    }
}

GRVI_INLINE void product_body(const mixer *m, bool is_adjoint, const chunk *k, const float *w,
                              const float *x, int64_t ahead, float *y, int S, int V, bool is_short)
{
    if (is_adjoint)
        adjoint_body(m, k, w, x, ahead, y, S, V, is_short);
    else
        multiply_body(m, k, w, x, ahead, y, S, V, is_short);
}

/* S samples of y_o = sum_i x_i w_io, or of y_i = sum_o conj(w_io) x_o */
GRVI_INLINE void product_samples(const mixer *m, bool is_adjoint, const float *w, const float *x,
                                 int64_t ahead, float *y, int S)
{
    for (int64_t begin = 0; begin < m->n_vectors; begin += MAX_VECTORS) {
        const int64_t end = grvi_min_i64(begin + MAX_VECTORS, m->n_vectors);
        const chunk k = chunk_make(m, begin, end);
        if (m->c < LANES)
            product_body(m, is_adjoint, &k, w, x, ahead, y, S, 1, true);
        else if (end - begin == 1)
            product_body(m, is_adjoint, &k, w, x, ahead, y, S, 1, false);
        else if (end - begin == 2)
            product_body(m, is_adjoint, &k, w, x, ahead, y, S, 2, false);
        else if (end - begin == 3)
            product_body(m, is_adjoint, &k, w, x, ahead, y, S, 3, false);
        else if (4 * 4 + 4 <= GRVI_REGISTERS || S == 1) /* sums and operands in registers */
            product_body(m, is_adjoint, &k, w, x, ahead, y, S, 4, false);
        else {
            product_body(m, is_adjoint, &k, w, x, ahead, y, 1, 4, false);
            product_body(m, is_adjoint, &k, w, x + m->sample, 0, y + m->sample, 1, 4, false);
        }
    }
}

/* All samples, two at a time; the first ones fetch the weights that follow. */
GRVI_INLINE void product(const mixer *m, bool is_adjoint, const float *w, const float *x,
                         int64_t n_samples, float *y)
{
    int64_t n = 0;
    for (; n + 2 <= n_samples; n += 2)
        product_samples(m, is_adjoint, w, x + n * m->sample, n == 0 ? PREFETCH : 0,
                        y + n * m->sample, 2);
    if (n < n_samples)
        product_samples(m, is_adjoint, w, x + n * m->sample, n == 0 ? PREFETCH : 0,
                        y + n * m->sample, 1);
}

static void multiply(const mixer *m, const float *w, const float *x, int64_t n_samples, float *y)
{
    product(m, false, w, x, n_samples, y);
}

static void multiply_adjoint(const mixer *m, const float *w, const float *q, int64_t n_samples,
                             float *y)
{
    product(m, true, w, q, n_samples, y);
}

/* ---- dW: row i is re(x_i) [qr | qi] + im(x_i) [qi | -qr] ---- */

/* [re | im] to [im | -re] */
static void turn(int64_t c, const float *q, float *turned)
{
    for (int64_t o = 0; o < c; o++) {
        turned[o] = q[c + o];
        turned[c + o] = -q[o];
    }
}

/* One input channel of up to 4 samples, each in all lanes. */
typedef struct spread {
    vf re[4], im[4];
} spread;

GRVI_INLINE spread spread_make(const mixer *m, const float *x, int64_t i, int64_t n_samples)
{
    spread s;
#pragma GCC unroll 4
    for (int n = 0; n < 4; n++) {
        s.re[n] = n < n_samples ? vf_set1(x[n * m->sample + i]) : vf_zero();
        s.im[n] = n < n_samples ? vf_set1(x[n * m->sample + m->c + i]) : vf_zero();
    }
    return s;
}

/* Columns from `at` on of a row, summed over 1 to 4 samples. */
GRVI_INLINE vf outer_block(const mixer *m, const spread *x, const float *q, const float *turned,
                           int64_t at, int64_t n_samples)
{
    vf term[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
#pragma GCC unroll 4
    for (int n = 0; n < n_samples; n++) {
        term[n] = vf_mul(x->im[n], vf_load(turned + n * m->slot + at));
        term[n] = vf_fma(x->re[n], vf_load(q + n * m->sample + at), term[n]);
    }
    if (n_samples == 1) return term[0];
    const vf left = vf_add(term[0], term[1]);
    if (n_samples == 2) return left;
    return vf_add(left, n_samples == 3 ? term[2] : vf_add(term[2], term[3]));
}

/* The same for more samples, as mode_mix.h says: `open` holds complete subtrees of 4 2^j samples,
 * each at least twice as large as the next. */
GRVI_INLINE vf outer_many(const mixer *m, const float *x, const float *q, int64_t i, int64_t at,
                          int64_t n_samples)
{
    vf open[64], sum = vf_zero();
    int depth = 0;
    const float *turned = m->turned;
    for (int64_t n = 0; n < n_samples; n += 4) {
        const int64_t n_block = grvi_min_i64(4, n_samples - n);
        const spread s = spread_make(m, x, i, n_block);
        sum = outer_block(m, &s, q, turned, at, n_block);
        for (int64_t rest = n / 4; rest & 1 && n_block == 4; rest >>= 1)
            sum = vf_add(open[--depth], sum);
        open[depth++] = sum;
        x += 4 * m->sample, q += 4 * m->sample, turned += 4 * m->slot;
    }
    for (depth--; depth > 0; depth--) sum = vf_add(open[depth - 1], sum);
    return sum;
}

/* Fast where n_samples is a constant up to 4. */
GRVI_INLINE void outer_body(const mixer *m, const float *x, const float *q, int64_t n_samples,
                            int64_t piece, float *dw)
{
    const int64_t c = m->c, row = 2 * c;
    for (int64_t i = 0; i < c; i++, dw += row) {
        const spread s = spread_make(m, x, i, grvi_min_i64(4, n_samples));
        for (int64_t v = 0; v < row; v += LANES) {
            const int64_t rest = grvi_min_i64(LANES, row - v);
            /* a short end is written in pieces, or overlaps, or is all there is */
            const int64_t at = piece > 0 || row < LANES ? v : grvi_min_i64(v, row - LANES);
            const vf sum = n_samples <= 4 ? outer_block(m, &s, q, m->turned, at, n_samples)
                                          : outer_many(m, x, q, i, at, n_samples);
            if (piece > 0)
                stream(dw + at, sum, rest, piece);
            else if (row < LANES)
                store_short(dw, sum, rest);
            else
                vf_store(dw + at, sum);
        }
    }
}

/* dw_io = sum over samples of conj(x_i) q_o; x and q are the slots of the first sample */
static void outer(const mixer *m, const float *x, const float *q, int64_t n_samples, int64_t piece,
                  float *dw)
{
    for (int64_t n = 0; n < n_samples; n++) turn(m->c, q + n * m->sample, m->turned + n * m->slot);
    switch (n_samples) {
    case 1: outer_body(m, x, q, 1, piece, dw); break;
    case 2: outer_body(m, x, q, 2, piece, dw); break;
    case 3: outer_body(m, x, q, 3, piece, dw); break;
    case 4: outer_body(m, x, q, 4, piece, dw); break;
    default: outer_body(m, x, q, n_samples, piece, dw); break;
    }
}

/* Floats that can be written past the cache at once, 0 for ordinary stores: where the gradient
 * of the owned weights is too small to gain from it, or its rows are not whole pieces. */
static int64_t stream_piece(const grvi_mode_mix *mix, const float *grad_weights)
{
    const int64_t row = 2 * mix->layout.channels,
                  n_bytes = mix->n_modes * row * row / 2 * (int64_t)sizeof(float);
    if (n_bytes < PAST_CACHE_BYTES) return 0;
    if (row % 8 == 0 && (uintptr_t)grad_weights % 32 == 0) return 8;
    return row % 4 == 0 && (uintptr_t)grad_weights % 16 == 0 ? 4 : 0;
}

/* ---- the calls ---- */

static void forward(const grvi_mode_mix *mix, const grvi_mode_mix_work *work, const float *weights,
                    const float *in, float *out, void *scratch)
{
    if (work->begin >= work->end) return;
    const mixer m = mixer_make(mix, work->n_samples, scratch);
    const int64_t n_samples = work->n_samples, stride = work->sample_stride,
                  mode_size = 2 * m.c * m.c;
    grvi_mode_group group;
    grvi_mode_group_begin(mix, work->begin, &group);
    const float *w = weights + grvi_mode_mix_first_mode(mix, work->begin) * mode_size;
    for (int64_t g = work->begin; g < work->end; g++, grvi_mode_group_next(mix, &group)) {
        const float scale = (float)group.scale;
        for (int64_t n = 0; n < n_samples; n++)
            gather(&m, &group, scale, in + n * stride, m.first + n * m.sample);
        for (int s = 0; s < m.n_signs; s++) {
            if (!(group.signs >> s & 1)) continue;
            const float *const x = m.first + s * m.slot;
            float *const y = m.second + s * m.slot;
            multiply(&m, w, x, n_samples, y);
            w += mode_size;
        }
        for (int64_t n = 0; n < n_samples; n++)
            scatter(&m, &group, m.second + n * m.sample, out + n * stride);
    }
}

static void backward(const grvi_mode_mix *mix, const grvi_mode_mix_work *work, const float *weights,
                     const float *in, const float *grad_out, float *grad_in, float *grad_weights,
                     void *scratch)
{
    if (work->begin >= work->end) return;
    const mixer m = mixer_make(mix, work->n_samples, scratch);
    const int64_t n_samples = work->n_samples, stride = work->sample_stride,
                  mode_size = 2 * m.c * m.c;
    grvi_mode_group group;
    grvi_mode_group_begin(mix, work->begin, &group);
    int64_t at = grvi_mode_mix_first_mode(mix, work->begin) * mode_size;
    const int64_t piece = stream_piece(mix, grad_weights);
    for (int64_t g = work->begin; g < work->end; g++, grvi_mode_group_next(mix, &group)) {
        const float scale = (float)group.scale;
        for (int64_t n = 0; n < n_samples; n++) {
            gather(&m, &group, scale, grad_out + n * stride, m.second + n * m.sample);
            if (grad_weights != NULL)
                gather(&m, &group, 1, in + n * stride, m.first + n * m.sample);
        }
        for (int s = 0; s < m.n_signs; s++) {
            if (!(group.signs >> s & 1)) continue;
            float *const x = m.first + s * m.slot;
            const float *const q = m.second + s * m.slot;
            if (grad_weights != NULL) outer(&m, x, q, n_samples, piece, grad_weights + at);
            if (grad_in != NULL) /* dX takes the place of X */
                multiply_adjoint(&m, weights + at, q, n_samples, x);
            at += mode_size;
        }
        for (int64_t n = 0; n < n_samples && grad_in != NULL; n++)
            scatter(&m, &group, m.first + n * m.sample, grad_in + n * stride);
    }
    _mm_sfence(); /* before other threads see dW */
}
