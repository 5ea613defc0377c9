/* The mode mix on float32, compiled once per instruction set (simd.h).
 *
 * Per group: gather the rows of every sample and combine them into complex modes by butterflies in registers, channels in
 * the lanes; one pass over the weights of each mode for all samples; butterflies back, scatter. Gathering is done for the
 * whole group before anything is scattered, so that input and output may be the same.
 *
 * A complex vector of channels is a slot [re c | im c] + padding in scratch. Vectors over a row of c or 2c floats overlap
 * at the end instead of having a tail (the overlapped lanes get the same numbers twice); rows shorter than a vector are
 * masked. Rows and modes that do not exist are a row of zeros, a row to throw away and slots of zeros.
 * The pass is bound by reading (backward: and writing) the weights, which are prefetched PREFETCH floats ahead. */
#include <string.h>

#include "kernels/mode_mix_impl.h"
#include "kernels/simd.h"

enum { LANES = GRVI_LANES, MAX_VECTORS = 6, PREFETCH = 2048, LINE = 16 };

/* Sum of the lanes: halves are added until one number is left. */
GRVI_INLINE float sum4(__m128 a)
{
    a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps(a, a, 1)));
}
GRVI_INLINE float sum8(__m256 a) { return sum4(_mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1))); }
#if defined(__AVX512F__)
GRVI_INLINE float vf_sum(vf a) { return sum8(_mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1))); }
#elif defined(GRVI_SIMD_PAIR)
GRVI_INLINE float vf_sum(vf a) { return sum8(_mm256_add_ps(a.low, a.high)); }
#else
GRVI_INLINE float vf_sum(vf a) { return sum8(a); }
#endif

/* One call. */
typedef struct mixer {
    int64_t c;          /* channels */
    int n_two_sided;    /* axes with butterflies */
    int n_signs;        /* 2^n_two_sided */
    int64_t slot;       /* floats of a complex vector */
    int64_t sample;     /* floats of a group's modes of one sample: n_signs slots */
    int64_t n_vectors;  /* over 2c floats */
    float *first;       /* [n_samples][n_signs] slots */
    float *second;      /* as first */
    float *turned;      /* [n_samples] slots */
    float *work_a, *work_b, *zeros, *waste; /* slots */
} mixer;

static mixer mixer_make(const grvi_mode_mix *mix, int64_t n_samples, float *scratch)
{
    const int64_t c = mix->layout.channels;
    mixer m = {.c = c, .n_two_sided = mix->layout.n_axes - 1, .n_vectors = grvi_ceil_div(2 * c, LANES)};
    m.n_signs = 1 << m.n_two_sided;
    m.slot = grvi_round_up(2 * c + 16, 16);
    m.sample = m.n_signs * m.slot;
    m.first = scratch;
    m.second = m.first + n_samples * m.sample;
    m.turned = m.second + n_samples * m.sample;
    m.work_a = m.turned + n_samples * m.slot;
    m.work_b = m.work_a + m.slot;
    m.zeros = m.work_b + m.slot;
    m.waste = m.zeros + m.slot;
    memset(m.zeros, 0, (size_t)m.slot * sizeof *m.zeros);
    return m;
}

/* Start of vector v of a row of n >= LANES floats. */
GRVI_INLINE int64_t vector_start(int64_t v, int64_t n) { return grvi_min_i64(v * LANES, n - LANES); }

/* ---- rows to modes and back; always_inline bodies get constants for n_two_sided and is_short (c < LANES) ---- */

/* x[s] = scale * sum of the rows with their factors: C - iS for +k, C + iS for -k, axis by axis. */
GRVI_INLINE void gather_body(const mixer *m, const float *const *row, float scale, float *x, int n_two_sided, bool is_short)
{
    const int n = 1 << n_two_sided;
    const int64_t c = m->c, n_vectors = is_short ? 1 : grvi_ceil_div(c, LANES);
    const vf plus = vf_set1(scale), minus = vf_set1(-scale);
    for (int64_t v = 0; v < n_vectors; v++) {
        const int64_t at = is_short ? 0 : vector_start(v, c);
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
        for (int s = 0; s < n; s++) { /* a short re runs into im, which is stored after it */
            vf_store(x + s * m->slot + at, re[s]);
            vf_store(x + s * m->slot + c + at, im[s]);
        }
    }
}

/* The transpose: cos row = Y+ + Y-, sin row = i (Y+ - Y-) per axis, then the real part for the last cosine, minus the
 * imaginary part for the last sine. */
GRVI_INLINE void scatter_body(const mixer *m, const float *y, float *const *row, int n_two_sided, bool is_short)
{
    const int n = 1 << n_two_sided;
    const int64_t c = m->c, n_vectors = is_short ? 1 : grvi_ceil_div(c, LANES);
    for (int64_t v = 0; v < n_vectors; v++) {
        const int64_t at = is_short ? 0 : vector_start(v, c);
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
                vf_store_n(row[s], re[s], c);
                vf_store_n(row[s + n], sine, c);
            } else {
                vf_store(row[s] + at, re[s]);
                vf_store(row[s + n] + at, sine);
            }
        }
    }
}

static void gather(const mixer *m, const grvi_mode_group *group, float scale, const float *p, float *x)
{
    const float *row[GRVI_MAX_GROUP_ROWS];
    for (int t = 0; t < 2 * m->n_signs; t++) row[t] = group->row[t] < 0 ? m->zeros : p + group->row[t];
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
    for (int t = 0; t < 2 * m->n_signs; t++) row[t] = group->row[t] < 0 ? m->waste : p + group->row[t];
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

/* ---- products with the weights of one mode, in chunks of at most MAX_VECTORS vectors of the 2c columns ---- */

typedef struct chunk {
    int n_vectors;
    int64_t first, last; /* columns where the first and the last vector start */
    int64_t n_repeated;  /* lanes of the last vector that an earlier one holds already */
    int64_t n_masked;    /* 2c if that is less than a vector, otherwise 0 */
} chunk;

/* Chunk number `index`; false after the last one. */
static bool chunk_get(const mixer *m, int64_t index, chunk *k)
{
    const int64_t per_chunk = grvi_ceil_div(m->n_vectors, grvi_ceil_div(m->n_vectors, MAX_VECTORS)), begin = index * per_chunk;
    if (begin >= m->n_vectors) return false;
    const int64_t end = grvi_min_i64(begin + per_chunk, m->n_vectors);
    const bool is_short = 2 * m->c < LANES;
    k->n_vectors = (int)(end - begin);
    k->first = begin * LANES;
    k->last = is_short ? 0 : vector_start(end - 1, 2 * m->c);
    k->n_repeated = is_short ? 0 : (end - 1) * LANES - k->last;
    k->n_masked = is_short ? 2 * m->c : 0;
    return true;
}

GRVI_INLINE int64_t chunk_column(const chunk *k, int v, int n_vectors)
{
    return v < n_vectors - 1 ? k->first + v * LANES : k->last;
}

GRVI_INLINE vf chunk_load(const chunk *k, const float *row, int v, int n_vectors)
{
    const float *const at = row + chunk_column(k, v, n_vectors);
    return k->n_masked ? vf_load_n(at, k->n_masked) : vf_load(at);
}

/* a = sum_i re(x_i) w_i, b = sum_i im(x_i) w_i over the rows w_i = [re c | im c] */
GRVI_INLINE void accumulate_body(int64_t c, const chunk *k, const float *w, const float *x, int64_t ahead, float *a,
                                 float *b, int n_vectors)
{
    vf sum_a[MAX_VECTORS], sum_b[MAX_VECTORS];
#pragma GCC unroll 6
    for (int v = 0; v < n_vectors; v++) sum_a[v] = sum_b[v] = vf_zero();
    for (int64_t i = 0; i < c; i++, w += 2 * c) {
        const vf re = vf_set1(x[i]), im = vf_set1(x[c + i]);
#pragma GCC unroll 6
        for (int v = 0; v < n_vectors; v++) {
            if (v * LANES % LINE == 0) __builtin_prefetch(w + k->first + v * LANES + ahead, 0, 3);
            const vf row = chunk_load(k, w, v, n_vectors);
            sum_a[v] = vf_fma(re, row, sum_a[v]);
            sum_b[v] = vf_fma(im, row, sum_b[v]);
        }
    }
#pragma GCC unroll 6
    for (int v = 0; v < n_vectors; v++) {
        vf_store(a + chunk_column(k, v, n_vectors), sum_a[v]);
        vf_store(b + chunk_column(k, v, n_vectors), sum_b[v]);
    }
}

static void accumulate(int64_t c, const chunk *k, const float *w, const float *x, int64_t ahead, float *a, float *b)
{
    switch (k->n_vectors) {
    case 1: accumulate_body(c, k, w, x, ahead, a, b, 1); break;
    case 2: accumulate_body(c, k, w, x, ahead, a, b, 2); break;
    case 3: accumulate_body(c, k, w, x, ahead, a, b, 3); break;
    case 4: accumulate_body(c, k, w, x, ahead, a, b, 4); break;
    case 5: accumulate_body(c, k, w, x, ahead, a, b, 5); break;
    default: accumulate_body(c, k, w, x, ahead, a, b, 6); break;
    }
}

/* y_o = sum_i x_i w_io */
static void multiply(const mixer *m, const float *w, const float *x, int64_t ahead, float *y)
{
    const int64_t c = m->c;
    float *const a = m->work_a, *const b = m->work_b;
    chunk k;
    for (int64_t i = 0; chunk_get(m, i, &k); i++) accumulate(c, &k, w, x, ahead, a, b);
    for (int64_t o = 0; o < c; o++) {
        y[o] = a[o] - b[c + o];
        y[c + o] = a[c + o] + b[o];
    }
}

/* y_i = (w_i . q, w_i . turned) over the columns of the chunk, added to y if is_next */
GRVI_INLINE void dot_body(int64_t c, const chunk *k, const float *w, const float *q, const float *turned, int64_t ahead,
                          bool is_next, float *y, int n_vectors)
{
    static const float step[32] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const vf is_new = vf_load(step + 16 - k->n_repeated);
    vf vq[MAX_VECTORS], vt[MAX_VECTORS];
#pragma GCC unroll 6
    for (int v = 0; v < n_vectors; v++) {
        vq[v] = chunk_load(k, q, v, n_vectors);
        vt[v] = chunk_load(k, turned, v, n_vectors);
    }
    vq[n_vectors - 1] = vf_select_positive(is_new, vq[n_vectors - 1], vf_zero());
    vt[n_vectors - 1] = vf_select_positive(is_new, vt[n_vectors - 1], vf_zero());
    for (int64_t i = 0; i < c; i++, w += 2 * c) {
        vf re = vf_zero(), im = vf_zero();
#pragma GCC unroll 6
        for (int v = 0; v < n_vectors; v++) {
            if (v * LANES % LINE == 0) __builtin_prefetch(w + k->first + v * LANES + ahead, 0, 3);
            const vf row = chunk_load(k, w, v, n_vectors);
            re = vf_fma(row, vq[v], re);
            im = vf_fma(row, vt[v], im);
        }
        y[i] = vf_sum(re) + (is_next ? y[i] : 0);
        y[c + i] = vf_sum(im) + (is_next ? y[c + i] : 0);
    }
}

/* y_i = sum_o conj(w_io) q_o with q = [re | im], turned = [im | -re] */
static void multiply_adjoint(const mixer *m, const float *w, const float *q, const float *turned, int64_t ahead, float *y)
{
    const int64_t c = m->c;
    chunk k;
    for (int64_t i = 0; chunk_get(m, i, &k); i++) switch (k.n_vectors) {
        case 1: dot_body(c, &k, w, q, turned, ahead, i > 0, y, 1); break;
        case 2: dot_body(c, &k, w, q, turned, ahead, i > 0, y, 2); break;
        case 3: dot_body(c, &k, w, q, turned, ahead, i > 0, y, 3); break;
        case 4: dot_body(c, &k, w, q, turned, ahead, i > 0, y, 4); break;
        case 5: dot_body(c, &k, w, q, turned, ahead, i > 0, y, 5); break;
        default: dot_body(c, &k, w, q, turned, ahead, i > 0, y, 6); break;
        }
}

/* Vector at column `at` of row i of dW = conj(x_i) q_o = re(x_i) [qr | qi] + im(x_i) [qi | -qr], summed over the samples as
 * mode_mix.h says: `open` holds the complete subtrees, each at least twice the next. */
GRVI_INLINE vf outer_sum(const mixer *m, const float *x, const float *q, int64_t i, int64_t at, int64_t n_samples)
{
    vf open[64];
    int depth = 0;
    for (int64_t n = 0; n < n_samples; n++, x += m->sample, q += m->sample) {
        const vf turned = vf_load(m->turned + n * m->slot + at);
        vf sum = vf_fma(vf_set1(x[i]), vf_load(q + at), vf_mul(vf_set1(x[m->c + i]), turned));
        for (int64_t rest = n; rest & 1; rest >>= 1) sum = vf_add(open[--depth], sum);
        open[depth++] = sum;
    }
    vf sum = open[--depth];
    while (depth > 0) sum = vf_add(open[--depth], sum);
    return sum;
}

GRVI_INLINE void outer_body(const mixer *m, const float *x, const float *q, int64_t n_samples, float *dw)
{
    const int64_t c = m->c, row = 2 * c;
    if (row < LANES) {
        for (int64_t i = 0; i < c; i++, dw += row) vf_store_n(dw, outer_sum(m, x, q, i, 0, n_samples), row);
        return;
    }
    for (int64_t i = 0; i < c; i++, dw += row)
        for (int64_t v = 0; v < m->n_vectors; v++) {
            const int64_t at = vector_start(v, row);
            vf_store(dw + at, outer_sum(m, x, q, i, at, n_samples));
        }
}

/* dw_io = sum over samples of conj(x_i) q_o; x and q are the slots of the first sample */
static void outer(const mixer *m, const float *x, const float *q, int64_t n_samples, float *dw)
{
    if (n_samples == 1) outer_body(m, x, q, 1, dw);
    else if (n_samples == 2) outer_body(m, x, q, 2, dw);
    else outer_body(m, x, q, n_samples, dw);
}

/* ---- the calls ---- */

static void forward(const grvi_mode_mix *mix, const grvi_mode_mix_work *work, const float *weights, const float *in,
                    float *out, void *scratch)
{
    if (work->begin >= work->end) return;
    const mixer m = mixer_make(mix, work->n_samples, scratch);
    const int64_t n_samples = work->n_samples, stride = work->sample_stride, mode_size = 2 * m.c * m.c;
    grvi_mode_group group;
    grvi_mode_group_begin(mix, work->begin, &group);
    const float *w = weights + grvi_mode_mix_first_mode(mix, work->begin) * mode_size;
    for (int64_t g = work->begin; g < work->end; g++, grvi_mode_group_next(mix, &group)) {
        const float scale = (float)group.scale;
        for (int64_t n = 0; n < n_samples; n++) gather(&m, &group, scale, in + n * stride, m.first + n * m.sample);
        for (int s = 0; s < m.n_signs; s++) {
            if (!(group.signs >> s & 1)) continue;
            const float *const x = m.first + s * m.slot;
            float *const y = m.second + s * m.slot;
            for (int64_t n = 0; n < n_samples; n++)
                multiply(&m, w, x + n * m.sample, n == 0 ? PREFETCH : 0, y + n * m.sample);
            w += mode_size;
        }
        for (int64_t n = 0; n < n_samples; n++) scatter(&m, &group, m.second + n * m.sample, out + n * stride);
    }
}

/* [re | im] to [im | -re] */
static void turn(int64_t c, const float *q, float *turned)
{
    for (int64_t o = 0; o < c; o++) {
        turned[o] = q[c + o];
        turned[c + o] = -q[o];
    }
}

static void backward(const grvi_mode_mix *mix, const grvi_mode_mix_work *work, const float *weights, const float *in,
                     const float *grad_out, float *grad_in, float *grad_weights, void *scratch)
{
    if (work->begin >= work->end) return;
    const mixer m = mixer_make(mix, work->n_samples, scratch);
    const int64_t n_samples = work->n_samples, stride = work->sample_stride, mode_size = 2 * m.c * m.c;
    grvi_mode_group group;
    grvi_mode_group_begin(mix, work->begin, &group);
    int64_t at = grvi_mode_mix_first_mode(mix, work->begin) * mode_size;
    for (int64_t g = work->begin; g < work->end; g++, grvi_mode_group_next(mix, &group)) {
        const float scale = (float)group.scale;
        for (int64_t n = 0; n < n_samples; n++) {
            gather(&m, &group, scale, grad_out + n * stride, m.second + n * m.sample);
            if (grad_weights != NULL) gather(&m, &group, 1, in + n * stride, m.first + n * m.sample);
        }
        for (int s = 0; s < m.n_signs; s++) {
            if (!(group.signs >> s & 1)) continue;
            float *const x = m.first + s * m.slot;
            const float *const q = m.second + s * m.slot;
            for (int64_t n = 0; n < n_samples; n++) turn(m.c, q + n * m.sample, m.turned + n * m.slot);
            if (grad_weights != NULL) outer(&m, x, q, n_samples, grad_weights + at);
            for (int64_t n = 0; n < n_samples && grad_in != NULL; n++) /* dX takes the place of X */
                multiply_adjoint(&m, weights + at, q + n * m.sample, m.turned + n * m.slot, n == 0 ? PREFETCH : 0,
                                 x + n * m.sample);
            at += mode_size;
        }
        for (int64_t n = 0; n < n_samples && grad_in != NULL; n++)
            scatter(&m, &group, m.first + n * m.sample, grad_in + n * stride);
    }
}
