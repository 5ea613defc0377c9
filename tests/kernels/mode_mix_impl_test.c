/* The mode mix: the double reference against complex Fourier sums, its gradients against finite
 * differences, and every instruction set against the reference, on all axis counts, with odd
 * lengths, Nyquist rows and short and long channel rows. */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grove/core.h"
#include "kernels/mode_mix.h"

typedef struct network {
    int d;
    int64_t n[GRVI_MAX_AXES], modes[GRVI_MAX_AXES];
} network;

static const network networks[] = {
    {1, {1}, {1}},
    {1, {9}, {5}},
    {1, {8}, {5}},       /* with the Nyquist frequency of the last axis */
    {2, {8, 7}, {4, 3}}, /* with the Nyquist frequency of axis 0 */
    {2, {5, 8}, {2, 5}},
    {2, {2, 1}, {1, 1}},
    {3, {6, 7, 10}, {2, 3, 6}},
    {3, {5, 4, 6}, {1, 2, 4}},
    {4, {6, 5, 4, 6}, {3, 2, 2, 4}},
    {4, {4, 7, 6, 5}, {1, 3, 2, 2}},
    {4, {2, 3, 5, 1}, {1, 1, 2, 1}},
};
enum { N_NETWORKS = sizeof networks / sizeof networks[0] };
static const double pi = 3.14159265358979323846;

static void *take(int64_t n, size_t size)
{
    void *const p = calloc((size_t)(n > 0 ? n : 1), size);
    assert_non_null(p);
    return p;
}

static double *random_f64(uint64_t seed, int64_t n)
{
    double *const p = take(n, sizeof *p);
    for (int64_t i = 0; i < n; i++) p[i] = 2 * grv_random_uniform(seed, 0, (uint64_t)i) - 1;
    return p;
}

static float *random_f32(uint64_t seed, int64_t n)
{
    float *const p = take(n, sizeof *p);
    for (int64_t i = 0; i < n; i++)
        p[i] = (float)(2 * grv_random_uniform(seed, 0, (uint64_t)i) - 1);
    return p;
}

static double *widened(const float *x, int64_t n)
{
    double *const p = take(n, sizeof *p);
    for (int64_t i = 0; i < n; i++) p[i] = (double)x[i];
    return p;
}

/* scratch full of NaN: whatever a kernel reads must have been written by it */
static void *poisoned_scratch(const grvi_mode_mix *mix, int64_t n_samples)
{
    const size_t bytes = grvi_mode_mix_scratch_bytes(mix, n_samples);
    void *const p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(p);
    memset(p, 0xff, bytes);
    return p;
}

static grvi_mode_mix whole_mix(const network *net, int64_t channels)
{
    grvi_spectral_layout layout;
    grvi_mode_mix mix;
    assert_int_equal(grvi_spectral_layout_init(&layout, net->d, net->n, net->modes, channels),
                     GRV_OK);
    const int64_t count = grvi_axis_magnitudes(&layout.axis[net->d > 1]);
    assert_int_equal(grvi_mode_mix_init(&mix, &layout, 0, count), GRV_OK);
    assert_true(mix.n_modes == layout.n_modes);
    return mix;
}

static int64_t n_weights(const grvi_mode_mix *mix)
{
    return mix->n_modes * 2 * mix->layout.channels * mix->layout.channels;
}

/* ---- oracle ---- */

static double basis(const grvi_axis_modes *axis, int64_t row, int64_t j)
{
    const int64_t k = (row + 1) / 2;
    const double angle = 2 * pi * (double)(k * j % axis->n) / (double)axis->n;
    return row % 2 == 1 || row == 0 ? cos(angle) : sin(angle);
}

/* the next index in [0, extent[a]), last axis fastest; false at the end */
static bool advance(int d, const int64_t *extent, int64_t *index)
{
    for (int a = d - 1; a >= 0; a--) {
        if (++index[a] < extent[a]) return true;
        index[a] = 0;
    }
    return false;
}

/* place of row r_0..r_{d-1} in P, as spectral_layout.h has it */
static int64_t place(const grvi_spectral_layout *layout, const int64_t *r)
{
    int64_t column = 0;
    for (int a = layout->n_axes - 1; a >= 2; a--) column = column * layout->axis[a].n_rows + r[a];
    const int64_t outer = layout->n_axes > 1 ? r[1] * layout->axis[0].n_rows + r[0] : r[0];
    return outer * layout->n_blocks * layout->block + column * layout->channels;
}

/* real analysis of v [points][c] to P, or synthesis of P to v */
static void real_transform(const grvi_spectral_layout *layout, bool synthesis, double *v, double *p)
{
    int64_t n[GRVI_MAX_AXES], rows[GRVI_MAX_AXES], r[GRVI_MAX_AXES] = {0};
    const int d = layout->n_axes;
    for (int a = 0; a < d; a++) n[a] = layout->axis[a].n, rows[a] = layout->axis[a].n_rows;
    do {
        int64_t j[GRVI_MAX_AXES] = {0};
        double *const row = p + place(layout, r), *point = v;
        do {
            double factor = 1;
            for (int a = 0; a < d; a++) factor *= basis(&layout->axis[a], r[a], j[a]);
            for (int64_t i = 0; i < layout->channels; i++)
                if (synthesis)
                    point[i] += factor * row[i];
                else
                    row[i] += factor * point[i];
            point += layout->channels;
        } while (advance(d, n, j));
    } while (advance(d, rows, r));
}

/* out += Re sum_f s(f) W(f) X(f) exp(+...), X the complex Fourier sums of v */
static void complex_layer(const grvi_spectral_layout *layout, const double *v,
                          const double *weights, double *out)
{
    const int d = layout->n_axes;
    const int64_t c = layout->channels;
    int64_t n[GRVI_MAX_AXES], kept[GRVI_MAX_AXES], index[GRVI_MAX_AXES] = {0};
    for (int a = 0; a < d; a++)
        n[a] = layout->axis[a].n,
        kept[a] = layout->axis[a].modes * (layout->axis[a].two_sided ? 2 : 1);
    double complex *const wave = take(layout->n_points, sizeof *wave),
                          *const x = take(2 * c, sizeof *x), *const y = x + c;
    do {
        int64_t f[GRVI_MAX_AXES], j[GRVI_MAX_AXES] = {0}, at = 0;
        for (int a = 0; a < d; a++)
            f[a] = index[a] - (layout->axis[a].two_sided ? layout->axis[a].modes : 0);
        do {
            double angle = 0;
            for (int a = 0; a < d; a++)
                angle += 2 * pi * (double)(f[a] * j[a] % n[a]) / (double)n[a];
            wave[at++] = cexp((double complex)I * angle);
        } while (advance(d, n, j));
        memset(x, 0, (size_t)(2 * c) * sizeof *x);
        for (int64_t point = 0; point < layout->n_points; point++)
            for (int64_t i = 0; i < c; i++) x[i] += conj(wave[point]) * v[point * c + i];
        const double *const w = weights + grvi_spectral_mode_position(layout, f) * 2 * c * c;
        for (int64_t i = 0; i < c; i++)
            for (int64_t o = 0; o < c; o++)
                y[o] += x[i] * (w[2 * c * i + o] + (double complex)I * w[2 * c * i + c + o]);
        const double scale =
            (f[d - 1] == 0 || 2 * f[d - 1] == n[d - 1] ? 1 : 2) / (double)layout->n_points;
        for (int64_t point = 0; point < layout->n_points; point++)
            for (int64_t o = 0; o < c; o++) out[point * c + o] += scale * creal(y[o] * wave[point]);
    } while (advance(d, kept, index));
    free(wave);
    free(x);
}

static void test_reference_is_the_fourier_layer(void **state)
{
    (void)state;
    for (int i = 0; i < N_NETWORKS; i++)
        for (int64_t c = 1; c <= 3; c += 2) {
            const grvi_mode_mix mix = whole_mix(&networks[i], c);
            const int64_t size = mix.layout.n_points * c;
            double *const v = random_f64(1, size), *const w = random_f64(2, n_weights(&mix));
            double *const p = take(mix.n_values, sizeof *p), *const out = take(size, sizeof *out);
            double *const expected = take(size, sizeof *expected);
            void *const scratch = poisoned_scratch(&mix, 1);
            real_transform(&mix.layout, false, v, p);
            const grvi_mode_mix_work work = {0, mix.n_groups, 1, mix.n_values};
            grvi_mode_mix_kernels_f64_ref()->forward(&mix, &work, w, p, p, scratch);
            real_transform(&mix.layout, true, out, p);
            complex_layer(&mix.layout, v, w, expected);
            double largest = 0;
            for (int64_t k = 0; k < size; k++) largest = fmax(largest, fabs(expected[k]));
            assert_true(largest > 1e-3);
            for (int64_t k = 0; k < size; k++)
                assert_true(fabs(out[k] - expected[k]) <= 1e-12 * largest);
            free(v), free(w), free(p), free(out), free(expected), free(scratch);
        }
}

/* ---- gradients of the double reference ---- */

/* L = sum of out^2/2 over rows and columns that exist: padding is zero in and stays zero */
static double loss(const grvi_mode_mix *mix, const grvi_mode_mix_work *work, const double *w,
                   const double *p, double *out)
{
    void *const scratch = poisoned_scratch(mix, work->n_samples);
    grvi_mode_mix_kernels_f64_ref()->forward(mix, work, w, p, out, scratch);
    free(scratch);
    double sum = 0;
    for (int64_t i = 0; i < work->n_samples * work->sample_stride; i++) sum += out[i] * out[i] / 2;
    return sum;
}

/* the loss is quadratic in any one number: central differences are exact but for rounding */
static void check_gradient(const grvi_mode_mix *mix, const grvi_mode_mix_work *work, double *w,
                           double *p, double *changed, int64_t n, const double *gradient)
{
    double *const out = take(work->n_samples * work->sample_stride, sizeof *out);
    const double scale = 1 + loss(mix, work, w, p, out), h = 0.25;
    for (int64_t i = 0; i < n; i++) {
        const double kept = changed[i];
        changed[i] = kept + h;
        const double above = loss(mix, work, w, p, out);
        changed[i] = kept - h;
        const double below = loss(mix, work, w, p, out);
        changed[i] = kept;
        assert_true(fabs((above - below) / (2 * h) - gradient[i]) <= 1e-12 * scale);
    }
    free(out);
}

static void test_gradients_by_finite_differences(void **state)
{
    (void)state;
    for (int i = 0; i < N_NETWORKS; i++) {
        if (networks[i].d == 4 && networks[i].n[3] != 1)
            continue; /* too many numbers to change one by one */
        const grvi_mode_mix mix = whole_mix(&networks[i], 2);
        const grvi_mode_mix_work work = {0, mix.n_groups, 3, mix.n_values};
        const int64_t size = work.n_samples * mix.n_values;
        double *const w = random_f64(3, n_weights(&mix)), *const p = random_f64(4, size);
        double *const g = take(size, sizeof *g), *const dw = random_f64(5, n_weights(&mix));
        void *const scratch = poisoned_scratch(&mix, work.n_samples);
        (void)loss(&mix, &work, w, p, g); /* also the gradient of the loss by out */
        double *const dp = take(size, sizeof *dp);
        grvi_mode_mix_kernels_f64_ref()->backward(&mix, &work, w, p, g, dp, dw, scratch);
        check_gradient(&mix, &work, w, p, p, size, dp);
        check_gradient(&mix, &work, w, p, w, n_weights(&mix), dw);
        free(w), free(p), free(g), free(dp), free(dw), free(scratch);
    }
}

/* ---- the instruction sets against the reference ---- */

typedef struct
    buffers { /* float data of one problem, misaligned, with guard cells around what is written */
    int64_t n_values, n_weights;
    float *weights, *in, *grad_out;
} buffers;

enum { GUARD = 19 };
static const float sentinel = -12345;

static buffers buffers_make(const grvi_mode_mix *mix, int64_t n_samples, uint64_t seed)
{
    buffers b = {.n_values = mix->n_values, .n_weights = n_weights(mix)};
    b.weights = random_f32(seed, b.n_weights + 1);
    b.in = random_f32(seed + 1, n_samples * b.n_values + 1);
    b.grad_out = random_f32(seed + 2, n_samples * b.n_values + 1);
    return b;
}

static void buffers_free(buffers *b)
{
    free(b->weights);
    free(b->in);
    free(b->grad_out);
}

static float *guarded(int64_t n)
{
    float *const p = take(n + 2 * GUARD, sizeof *p);
    for (int64_t i = 0; i < n + 2 * GUARD; i++) p[i] = sentinel;
    return p + GUARD;
}

static void guarded_free(float *p, int64_t n)
{
    for (int64_t i = 0; i < GUARD; i++) assert_true(p[-1 - i] == sentinel && p[n + i] == sentinel);
    free(p - GUARD);
}

static bool is_padding(const grvi_mode_mix *mix, int64_t i)
{
    return i % (mix->layout.n_blocks * mix->layout.block) >= mix->layout.n_columns;
}

/* |x - expected| <= tolerance everywhere; padding of P (if any) still as it was */
static void check_close(const grvi_mode_mix *mix, const float *x, const double *expected, int64_t n,
                        bool has_padding, double tolerance)
{
    for (int64_t i = 0; i < n; i++) {
        if (has_padding && is_padding(mix, i))
            assert_true(x[i] == sentinel);
        else if (!(fabs((double)x[i] - expected[i]) <= tolerance))
            fail_msg("%lld of %lld: %.9g expected, %.9g found, tolerance %.3g", (long long)i,
                     (long long)n, expected[i], (double)x[i], tolerance);
    }
}

static void check_against_reference(grvi_isa isa, const grvi_mode_mix *mix, const buffers *b,
                                    int64_t n_samples)
{
    const grvi_mode_mix_kernels *const kernels = grvi_mode_mix_kernels_for(isa);
    const grvi_mode_mix_kernels_f64 *const oracle = grvi_mode_mix_kernels_f64_ref();
    const grvi_mode_mix_work work = {0, mix->n_groups, n_samples, mix->n_values};
    const int64_t size = n_samples * mix->n_values;
    double *const w = widened(b->weights + 1, b->n_weights), *const p = widened(b->in + 1, size);
    double *const g = widened(b->grad_out + 1, size), *const expected =
                                                          take(size, sizeof *expected);
    double *const expected_dw = take(b->n_weights, sizeof *expected_dw);
    float *const out = guarded(size), *const dp = guarded(size), *const dw = guarded(b->n_weights);
    void *const scratch = poisoned_scratch(mix, n_samples);
    /* products of c terms after sums of up to 16, times s; then sums of up to 8 modes */
    const double c = (double)mix->layout.channels, scale = 2 / (double)mix->layout.n_points;
    const double tolerance = 8 * (double)FLT_EPSILON * scale * sqrt(c) * 32;

    oracle->forward(mix, &work, w, p, expected, scratch);
    memset(scratch, 0xff, grvi_mode_mix_scratch_bytes(mix, n_samples));
    kernels->forward(mix, &work, b->weights + 1, b->in + 1, out, scratch);
    check_close(mix, out, expected, size, true, tolerance);

    oracle->backward(mix, &work, w, p, g, expected, expected_dw, scratch);
    memset(scratch, 0xff, grvi_mode_mix_scratch_bytes(mix, n_samples));
    kernels->backward(mix, &work, b->weights + 1, b->in + 1, b->grad_out + 1, dp, dw, scratch);
    check_close(mix, dp, expected, size, true, tolerance);
    check_close(mix, dw, expected_dw, b->n_weights, false, 4 * tolerance);

    free(w), free(p), free(g), free(expected), free(expected_dw), free(scratch);
    guarded_free(out, size), guarded_free(dp, size), guarded_free(dw, b->n_weights);
}

static void test_all_instruction_sets(void **state)
{
    (void)state;
    static const int64_t channels[] = {1, 2, 3, 4, 5, 7, 8, 10, 12, 13, 16, 20, 32, 50};
    for (size_t j = 0; j < sizeof channels / sizeof channels[0]; j++)
        for (int i = 0; i < N_NETWORKS; i++) {
            if (channels[j] > 12 && networks[i].d == 4 && i != 8 + (int)j % 2) continue;
            const grvi_mode_mix mix = whole_mix(&networks[i], channels[j]);
            const int64_t n_samples = 1 + (i + (int64_t)j) % 5;
            buffers b = buffers_make(&mix, n_samples, 10);
            for (int isa = 0; isa < GRVI_ISA_COUNT; isa++)
                if (grvi_isa_usable((grvi_isa)isa))
                    check_against_reference((grvi_isa)isa, &mix, &b, n_samples);
            buffers_free(&b);
        }
}

static void check_same(const float *a, const float *b, int64_t n)
{
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
}

/* one gradient at a time, and in place, give what the combined call gives */
static void check_forms(const grvi_mode_mix_kernels *kernels, const grvi_mode_mix *mix,
                        const buffers *b, const grvi_mode_mix_work *work, void *scratch)
{
    const int64_t size = work->n_samples * work->sample_stride;
    const size_t bytes = (size_t)size * sizeof(float);
    float *const once = take(size, sizeof(float)), *const again = take(size, sizeof(float));
    float *const dw_once = take(b->n_weights, sizeof(float)), *const dw_again =
                                                                  take(b->n_weights, sizeof(float));
    memcpy(once, b->in, bytes),
        memcpy(again, b->in, bytes); /* the padding is that of the input in place */
    kernels->forward(mix, work, b->weights, b->in, once, scratch);
    kernels->forward(mix, work, b->weights, again, again, scratch);
    check_same(once, again, size);
    memcpy(once, b->grad_out, bytes), memcpy(again, b->grad_out, bytes);
    kernels->backward(mix, work, b->weights, b->in, b->grad_out, once, dw_once, scratch);
    kernels->backward(mix, work, NULL, b->in, b->grad_out, NULL, dw_again, scratch);
    check_same(dw_once, dw_again, b->n_weights);
    kernels->backward(mix, work, b->weights, NULL, again, again, NULL, scratch);
    check_same(once, again, size);
    free(once), free(again), free(dw_once), free(dw_again);
}

/* the owned ranges of |k_1| that `first_of` lists, each in pieces of groups, give the bits of
 * the whole */
static void check_split(const grvi_mode_mix_kernels *kernels, const grvi_mode_mix *mix,
                        const buffers *b, const grvi_mode_mix_work *all, int n_ranges,
                        int64_t n_pieces, void *scratch)
{
    const int64_t size = all->n_samples * all->sample_stride, c = mix->layout.channels;
    float *whole[3], *parts[3];
    const int64_t sizes[3] = {size, size, b->n_weights};
    for (int i = 0; i < 3; i++)
        whole[i] = take(sizes[i], sizeof(float)), parts[i] = take(sizes[i], sizeof(float));
    kernels->forward(mix, all, b->weights, b->in, whole[0], scratch);
    kernels->backward(mix, all, b->weights, b->in, b->grad_out, whole[1], whole[2], scratch);
    const grvi_axis_modes *const axis = &mix->layout.axis[mix->layout.n_axes > 1];
    const int64_t row = mix->stride[mix->layout.n_axes > 1];
    for (int i = 0; i < n_ranges; i++) {
        const int64_t first = mix->count * i / n_ranges, end = mix->count * (i + 1) / n_ranges;
        grvi_mode_mix part;
        assert_int_equal(grvi_mode_mix_init(&part, &mix->layout, first, end - first), GRV_OK);
        const int64_t p = grvi_axis_first_row(axis, first) * row;
        const int64_t w = grvi_spectral_modes_before(&mix->layout, first) * 2 * c * c;
        for (int64_t j = 0; j < n_pieces; j++) {
            const grvi_mode_mix_work work = {part.n_groups * j / n_pieces,
                                             part.n_groups * (j + 1) / n_pieces, all->n_samples,
                                             all->sample_stride};
            kernels->forward(&part, &work, b->weights + w, b->in + p, parts[0] + p, scratch);
            kernels->backward(&part, &work, b->weights + w, b->in + p, b->grad_out + p,
                              parts[1] + p, parts[2] + w, scratch);
        }
    }
    for (int i = 0; i < 3; i++)
        check_same(whole[i], parts[i], sizes[i]), free(whole[i]), free(parts[i]);
}

static void test_splits_and_forms_keep_the_bits(void **state)
{
    (void)state;
    for (int i = 0; i < N_NETWORKS; i++)
        for (int64_t c = 3; c <= 20; c += 17) {
            const grvi_mode_mix mix = whole_mix(&networks[i], c);
            buffers b = buffers_make(&mix, 2, 20);
            const grvi_mode_mix_work work = {0, mix.n_groups, 2, mix.n_values};
            void *const scratch = poisoned_scratch(&mix, work.n_samples);
            for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
                if (!grvi_isa_usable((grvi_isa)isa)) continue;
                const grvi_mode_mix_kernels *const kernels =
                    grvi_mode_mix_kernels_for((grvi_isa)isa);
                check_forms(kernels, &mix, &b, &work, scratch);
                check_split(kernels, &mix, &b, &work, 3, 1, scratch);
                check_split(kernels, &mix, &b, &work, 2, 7, scratch);
            }
            free(scratch);
            buffers_free(&b);
        }
}

/* dW of n samples = dW of the first 2^j + dW of the others, bit for bit */
static void test_sample_sums_are_a_tree(void **state)
{
    (void)state;
    const grvi_mode_mix mix = whole_mix(&networks[6], 5);
    const int64_t most = 21;
    buffers b = buffers_make(&mix, most, 30);
    float *const whole = take(b.n_weights, sizeof(float));
    float *const left = take(b.n_weights, sizeof(float));
    float *const right = take(b.n_weights, sizeof(float));
    void *const scratch = poisoned_scratch(&mix, most);
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++)
        for (int64_t n = 2; grvi_isa_usable((grvi_isa)isa) && n <= most; n++) {
            const grvi_mode_mix_kernels *const kernels = grvi_mode_mix_kernels_for((grvi_isa)isa);
            int64_t half = 1;
            while (2 * half < n) half *= 2;
            const int64_t at = half * mix.n_values;
            grvi_mode_mix_work work = {0, mix.n_groups, n, mix.n_values};
            kernels->backward(&mix, &work, NULL, b.in, b.grad_out, NULL, whole, scratch);
            work.n_samples = half;
            kernels->backward(&mix, &work, NULL, b.in, b.grad_out, NULL, left, scratch);
            work.n_samples = n - half;
            kernels->backward(&mix, &work, NULL, b.in + at, b.grad_out + at, NULL, right, scratch);
            for (int64_t i = 0; i < b.n_weights; i++) left[i] += right[i];
            check_same(whole, left, b.n_weights);
        }
    free(whole), free(left), free(right), free(scratch);
    buffers_free(&b);
}

/* a dW large enough to be written past the cache is the one that is written through it, where it
 * is misaligned */
static void test_large_gradients(void **state)
{
    (void)state;
    static const network nets[] = {{4, {11, 12, 10, 13}, {5, 5, 5, 6}},
                                   {4, {16, 17, 16, 11}, {8, 8, 8, 6}}};
    for (int i = 0; i < 4; i++) {
        const grvi_mode_mix mix = whole_mix(&nets[i / 2], i < 2 ? 20 : 10);
        buffers b = buffers_make(&mix, 2, 40);
        const grvi_mode_mix_work work = {0, mix.n_groups, 1 + i % 2, mix.n_values};
        float *const through = guarded(b.n_weights);
        float *const past = aligned_alloc(64, ((size_t)b.n_weights * sizeof(float) + 63) / 64 * 64);
        assert_true(past != NULL && (uintptr_t)through % 16 != 0);
        void *const scratch = poisoned_scratch(&mix, 2);
        for (int isa = GRVI_ISA_AVX2; isa < GRVI_ISA_COUNT; isa++) {
            if (!grvi_isa_usable((grvi_isa)isa)) continue;
            const grvi_mode_mix_kernels *const kernels = grvi_mode_mix_kernels_for((grvi_isa)isa);
            kernels->backward(&mix, &work, NULL, b.in, b.grad_out, NULL, through, scratch);
            memset(past, 0xff, (size_t)b.n_weights * sizeof(float));
            kernels->backward(&mix, &work, NULL, b.in, b.grad_out, NULL, past, scratch);
            check_same(through, past, b.n_weights);
        }
        guarded_free(through, b.n_weights), free(past), free(scratch);
        buffers_free(&b);
    }
}

/* ---- plan and canonical order ---- */

static void test_canonical_order(void **state)
{
    (void)state;
    for (int i = 0; i < N_NETWORKS; i++) {
        const grvi_mode_mix whole = whole_mix(&networks[i], 3);
        const grvi_spectral_layout *const layout = &whole.layout;
        const int d = layout->n_axes;
        int64_t *const canonical = take(whole.n_modes, sizeof *canonical), at = 0;
        for (int64_t k = 0; k < whole.count; k++) { /* one |k_1| after the other */
            grvi_mode_mix mix;
            assert_int_equal(grvi_mode_mix_init(&mix, layout, k, 1), GRV_OK);
            grvi_mode_mix_canonical(&mix, canonical + at);
            assert_true(grvi_mode_mix_first_mode(&mix, mix.n_groups) == mix.n_modes);
            at += mix.n_modes;
        }
        assert_true(at == whole.n_modes);
        int64_t length[GRVI_MAX_AXES], index[GRVI_MAX_AXES] = {0}, expected = 0;
        for (int a = 0; a < d; a++)
            length[a] = networks[i].modes[a] * (layout->axis[a].two_sided ? 2 : 1);
        do {
            int64_t f[GRVI_MAX_AXES]; /* FFT order */
            for (int a = 0; a < d; a++)
                f[a] = index[a] < networks[i].modes[a] ? index[a] : index[a] - length[a];
            assert_true(canonical[grvi_spectral_mode_position(layout, f)] == expected++);
        } while (advance(d, length, index));
        free(canonical);
    }
}

static void test_weight_order(void **state)
{
    (void)state;
    enum { C = 3, SIZE = 2 * C * C };
    float packed[SIZE], canonical[SIZE], back[SIZE];
    for (int i = 0; i < SIZE; i++) packed[i] = (float)i;
    grvi_mode_weights_unpack(C, packed, canonical);
    for (int in = 0; in < C; in++)
        for (int out = 0; out < C; out++)
            for (int part = 0; part < 2; part++)
                assert_true(canonical[(in * C + out) * 2 + part] ==
                            packed[(in * 2 + part) * C + out]);
    grvi_mode_weights_pack(C, canonical, back);
    check_same(packed, back, SIZE);
}

static void test_ranges(void **state)
{
    (void)state;
    const grvi_mode_mix mix = whole_mix(&networks[8], 2);
    grvi_mode_mix part;
    assert_int_equal(grvi_mode_mix_init(&part, &mix.layout, 0, mix.count + 1), GRV_E_ARG);
    assert_int_equal(grvi_mode_mix_init(&part, &mix.layout, mix.count, 1), GRV_E_ARG);
    assert_int_equal(grvi_mode_mix_init(&part, &mix.layout, -1, 1), GRV_E_ARG);
    assert_int_equal(grvi_mode_mix_init(&part, &mix.layout, 1, -1), GRV_E_ARG);
    assert_int_equal(grvi_mode_mix_init(&part, &mix.layout, mix.count, 0), GRV_OK);
    assert_true(part.n_groups == 0 && part.n_modes == 0 && part.n_values == 0);
    const grvi_mode_mix_work nothing = {0, 0, 1, 0};
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++)
        if (grvi_isa_usable((grvi_isa)isa))
            grvi_mode_mix_kernels_for((grvi_isa)isa)
                ->forward(&part, &nothing, NULL, NULL, NULL, NULL);
    int64_t before = -1;
    for (int64_t g = 0; g <= mix.n_groups; g++) {
        const int64_t mode = grvi_mode_mix_first_mode(&mix, g);
        assert_true(g == 0 ? mode == 0 : mode > before && mode - before <= 8);
        before = mode;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_is_the_fourier_layer),
        cmocka_unit_test(test_gradients_by_finite_differences),
        cmocka_unit_test(test_all_instruction_sets),
        cmocka_unit_test(test_splits_and_forms_keep_the_bits),
        cmocka_unit_test(test_sample_sums_are_a_tree),
        cmocka_unit_test(test_large_gradients),
        cmocka_unit_test(test_canonical_order),
        cmocka_unit_test(test_weight_order),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
