/* Elementwise kernels, sums and the optimiser: against double arithmetic for every instruction set and dtype of the reference, lengths 0
 * to 67 and longer, any alignment, in place, with guards; Adam against closed formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "guarded.h"
#include "kernels/point_kernels.h"

static const int64_t long_lengths[] = {127, 128, 1000, 1023, 1024, 1025, 5003};
enum { N_LENGTHS = 68 + sizeof long_lengths / sizeof *long_lengths };

static int64_t length_number(int64_t i)
{
    return i < 68 ? i : long_lengths[i - 68];
}

/* Runs `check` for every usable instruction set, length and one of sixteen alignments. */
static void for_each_case(void (*check)(const grvi_point_kernels *, int64_t n, int64_t misalign))
{
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        const grvi_point_kernels *const kernels = grvi_point_kernels_for((grvi_isa)isa);
        if (kernels == NULL) continue;
        for (int64_t i = 0; i < N_LENGTHS; i++) check(kernels, length_number(i), i % 16 * 4);
    }
}

static guarded numbers(int64_t n, int64_t misalign, int64_t stream, double size)
{
    const guarded g = guarded_create(n * (int64_t)sizeof(float), misalign);
    fill_f32(g.data, n, stream, size);
    return g;
}

static void expect_near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("%.12g expected, %.12g found, tolerance %.2g", expected, found, tolerance);
}

/* ---- elementwise ---- */

static void check_activations(const grvi_point_kernels *kernels, int64_t n, int64_t misalign)
{
    for (int kind = 0; kind < GRVI_ACT_COUNT; kind++) {
        guarded x = numbers(n, misalign, 1, 7), dy = numbers(n, misalign, 2, 1),
                y = numbers(n, misalign, 3, 1);
        float *const x_data = x.data, *const dy_data = dy.data, *const y_data = y.data;
        if (n > 3) x_data[3] = 0;
        const double tolerance = kind == GRVI_ACT_GELU ? 4e-7 : 0,
                     rounding = kind == GRVI_ACT_GELU ? (double)FLT_EPSILON : 0;
        kernels->act_forward((grvi_activation)kind, n, x_data, y_data);
        for (int64_t i = 0; i < n; i++) {
            const double expected = grvi_activation_value((grvi_activation)kind, (double)x_data[i]);
            expect_near((double)y_data[i], expected, tolerance + rounding * fabs(expected));
        }
        kernels->act_gradient((grvi_activation)kind, n, dy_data, x_data, y_data);
        for (int64_t i = 0; i < n; i++) {
            const double slope =
                grvi_activation_derivative((grvi_activation)kind, (double)x_data[i]);
            expect_near((double)y_data[i], (double)dy_data[i] * slope, tolerance + rounding);
        }
        /* in place: the same numbers */
        kernels->act_gradient((grvi_activation)kind, n, dy_data, x_data, dy_data);
        assert_memory_equal(dy_data, y_data, (size_t)n * sizeof(float));
        kernels->act_forward((grvi_activation)kind, n, x_data, y_data);
        kernels->act_forward((grvi_activation)kind, n, x_data, x_data);
        assert_memory_equal(x_data, y_data, (size_t)n * sizeof(float));
        guarded_destroy(&x);
        guarded_destroy(&dy);
        guarded_destroy(&y);
    }
}

static void test_activations(void **state)
{
    (void)state;
    for_each_case(check_activations);
}

static void check_elementwise(const grvi_point_kernels *kernels, int64_t n, int64_t misalign)
{
    const double eps = (double)FLT_EPSILON;
    guarded a = numbers(n, misalign, 1, 1), b = numbers(n, misalign, 2, 1),
            y = numbers(n, misalign, 3, 1), old = numbers(n, 0, 3, 1);
    const float *const a_data = a.data, *const b_data = b.data, *const old_data = old.data;
    float *const y_data = y.data;
    kernels->axpby(n, 0.7, a_data, -1.3, y_data);
    for (int64_t i = 0; i < n; i++)
        expect_near((double)y_data[i], 0.7 * (double)a_data[i] - 1.3 * (double)old_data[i],
                    3 * eps);
    kernels->add(n, a_data, b_data, y_data);
    for (int64_t i = 0; i < n; i++)
        expect_near((double)y_data[i], (double)(a_data[i] + b_data[i]), 0);
    kernels->loss_gradient(n, 0.01, a_data, b_data, y_data);
    for (int64_t i = 0; i < n; i++)
        expect_near((double)y_data[i], 0.01 * ((double)a_data[i] - (double)b_data[i]), 0.04 * eps);
    kernels->add(n, a_data, b_data, a.data);
    kernels->scale(n, 0.25, a.data);
    fill_f32(y_data, n, 1, 1);
    for (int64_t i = 0; i < n; i++)
        expect_near((double)a_data[i], (double)(0.25f * (y_data[i] + b_data[i])), 0);
    guarded_destroy(&a);
    guarded_destroy(&b);
    guarded_destroy(&y);
    guarded_destroy(&old);
}

static void test_elementwise(void **state)
{
    (void)state;
    for_each_case(check_elementwise);
}

static void test_copy_rows(void **state)
{
    (void)state;
    int grid[4][7], inner[2][3] = {{0}};
    for (int i = 0; i < 28; i++) grid[i / 7][i % 7] = i;
    grvi_copy_rows(2, sizeof inner[0], &grid[1][2], sizeof grid[0], inner, sizeof inner[0]);
    for (int i = 0; i < 6; i++) assert_int_equal(inner[i / 3][i % 3], 7 * (1 + i / 3) + 2 + i % 3);
    grvi_copy_rows(0, sizeof inner[0], grid, 4, inner, 4);
    assert_int_equal(inner[0][0], 9);
}

/* ---- sums ---- */

static void check_sums(const grvi_point_kernels *kernels, int64_t n, int64_t misalign)
{
    guarded p = numbers(n, misalign, 1, 3), y = numbers(n, misalign, 2, 3),
            moved_p = numbers(n, 0, 1, 3), moved_y = numbers(n, 20, 2, 3);
    const float *const p_data = p.data, *const y_data = y.data;
    long double error2 = 0, target2 = 0;
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const double error = (double)p_data[i] - (double)y_data[i];
        error2 += (long double)error * error;
        target2 += (long double)y_data[i] * y_data[i];
        largest = fmax(largest, fabs(error));
    }
    const grvi_loss_sums sums = kernels->loss_sums(n, p_data, y_data),
                         again = kernels->loss_sums(n, moved_p.data, moved_y.data);
    /* double sums of n positive terms: n eps at worst */
    const double tolerance = DBL_EPSILON * (double)(n + 1);
    expect_near(sums.error2, (double)error2, tolerance * (double)error2);
    expect_near(sums.target2, (double)target2, tolerance * (double)target2);
    expect_near(sums.max_abs_error, largest, 0);
    expect_near(kernels->sum_squares(n, y_data), (double)target2, tolerance * (double)target2);
    assert_memory_equal(&sums, &again, sizeof sums);
    guarded_destroy(&p);
    guarded_destroy(&y);
    guarded_destroy(&moved_p);
    guarded_destroy(&moved_y);
}

static void test_sums(void **state)
{
    (void)state;
    for_each_case(check_sums);
}

/* Every fast table adds in the same order. */
static void test_sums_agree_between_instruction_sets(void **state)
{
    (void)state;
    guarded p = numbers(5003, 4, 1, 3), y = numbers(5003, 8, 2, 3);
    grvi_loss_sums first = {0};
    for (int isa = GRVI_ISA_REF + 1, n_seen = 0; isa < GRVI_ISA_COUNT; isa++) {
        const grvi_point_kernels *const kernels = grvi_point_kernels_for((grvi_isa)isa);
        if (kernels == NULL) continue;
        const grvi_loss_sums sums = kernels->loss_sums(5003, p.data, y.data);
        if (n_seen++ == 0) first = sums;
        assert_memory_equal(&sums, &first, sizeof sums);
    }
    guarded_destroy(&p);
    guarded_destroy(&y);
}

static void check_finite(const grvi_point_kernels *kernels, int64_t n, int64_t misalign)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    guarded x = numbers(n, misalign, 1, 1), y = numbers(n, misalign, 2, 1);
    float *const x_data = x.data;
    if (n > 0) x_data[0] = FLT_MAX;
    assert_true(kernels->first_nonfinite(n, x_data) == n);
    assert_true(isfinite(kernels->loss_sums(n, x_data, y.data).error2));
    for (int64_t i = 0; i < n; i += 1 + n / 13) {
        const float old = x_data[i], last = x_data[n - 1];
        x_data[n - 1] = NAN;
        x_data[i] = bad[i % 3];
        assert_true(kernels->first_nonfinite(n, x_data) == i);
        assert_false(isfinite(kernels->loss_sums(n, x_data, y.data).error2));
        assert_false(isfinite(kernels->loss_sums(n, y.data, x_data).target2));
        assert_false(isfinite(kernels->sum_squares(n, x_data)));
        x_data[n - 1] = last;
        x_data[i] = old;
    }
    guarded_destroy(&x);
    guarded_destroy(&y);
}

static void test_finite(void **state)
{
    (void)state;
    for_each_case(check_finite);
}

/* ---- Adam ---- */

static grvi_adam adam_step(int t, double weight_decay, bool decoupled)
{
    return (grvi_adam){.learning_rate = 1e-2,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .epsilon = 1e-3,
                       .weight_decay = weight_decay,
                       .correction1 = 1 - pow(0.9, t),
                       .correction2 = 1 - pow(0.999, t),
                       .gradient_scale = 1,
                       .decoupled = decoupled};
}

/* Under a constant gradient both corrected moments are exact, so every step is learning_rate g / (|g| + epsilon); decoupled decay
 * multiplies by (1 - learning_rate weight_decay) before it: a geometric sum. */
static void check_adam_closed_form(const grvi_point_kernels *kernels, int64_t n, int64_t misalign)
{
    enum { STEPS = 10 };
    guarded g = numbers(n, misalign, 1, 1), p = numbers(n, misalign, 2, 1),
            start = numbers(n, 0, 2, 1);
    guarded m = numbers(n, misalign, 3, 0), v = numbers(n, misalign, 4, 0);
    const float *const g_data = g.data, *const p_data = p.data, *const start_data = start.data;
    for (int decay = 0; decay < 2; decay++) {
        fill_f32(p.data, n, 2, 1);
        fill_f32(m.data, n, 3, 0);
        fill_f32(v.data, n, 4, 0);
        for (int t = 1; t <= STEPS; t++) {
            const grvi_adam step = adam_step(t, decay ? 0.5 : 0, decay == 1);
            kernels->adam(&step, n, g_data, p.data, m.data, v.data);
        }
        const double keep = decay ? 1 - 1e-2 * 0.5 : 1;
        const double geometric = decay ? (1 - pow(keep, STEPS)) / (1 - keep) : STEPS;
        for (int64_t i = 0; i < n; i++) {
            const double g_i = (double)g_data[i], push = 1e-2 * g_i / (fabs(g_i) + 1e-3);
            expect_near((double)p_data[i],
                        pow(keep, STEPS) * (double)start_data[i] - geometric * push,
                        STEPS * (double)FLT_EPSILON);
        }
    }
    guarded_destroy(&g);
    guarded_destroy(&p);
    guarded_destroy(&start);
    guarded_destroy(&m);
    guarded_destroy(&v);
}

static void test_adam_closed_form(void **state)
{
    (void)state;
    for_each_case(check_adam_closed_form);
}

/* torch.optim.Adam and AdamW written out (torch/optim/adam.py, single tensor), in double. */
static void torch_adam(int t, double scale, double weight_decay, bool decoupled, double grad,
                       double *param, double *exp_avg, double *exp_avg_sq)
{
    const double lr = 1e-2, beta1 = 0.9, beta2 = 0.999, eps = 1e-3;
    grad *= scale;
    if (decoupled) {
        *param *= 1 - lr * weight_decay;
    } else {
        grad = grad + *param * weight_decay;
    }
    *exp_avg = *exp_avg * beta1 + grad * (1 - beta1);
    *exp_avg_sq = *exp_avg_sq * beta2 + grad * grad * (1 - beta2);
    const double step_size = lr / (1 - pow(beta1, t)),
                 denom = sqrt(*exp_avg_sq) / sqrt(1 - pow(beta2, t)) + eps;
    *param -= step_size * (*exp_avg / denom);
}

static void check_adam_against_torch(const grvi_point_kernels *kernels, int64_t n, int64_t misalign)
{
    enum { STEPS = 6 };
    for (int variant = 0; variant < 4; variant++) {
        const bool decoupled = variant % 2 == 1;
        const double decay = 0.1, gain = variant < 2 ? 1 : 0.3;
        guarded g = numbers(n, misalign, 1, 1), p = numbers(n, misalign, 2, 1),
                m = numbers(n, misalign, 3, 0), v = numbers(n, misalign, 4, 0);
        guarded state = guarded_create(3 * n * (int64_t)sizeof(double), 0);
        double *const param = state.data, *const exp_avg = param + n,
                      *const exp_avg_sq = exp_avg + n;
        for (int64_t i = 0; i < n; i++)
            param[i] = (double)((float *)p.data)[i], exp_avg[i] = exp_avg_sq[i] = 0;
        for (int t = 1; t <= STEPS; t++) {
            fill_f32(g.data, n, 100 + t, t == 3 ? 1e-3 : 1);
            grvi_adam step = adam_step(t, decay, decoupled);
            step.gradient_scale = gain;
            kernels->adam(&step, n, g.data, p.data, m.data, v.data);
            for (int64_t i = 0; i < n; i++) {
                torch_adam(t, gain, decay, decoupled, (double)((float *)g.data)[i], &param[i],
                           &exp_avg[i], &exp_avg_sq[i]);
            }
        }
        for (int64_t i = 0; i < n; i++) {
            expect_near((double)((float *)p.data)[i], param[i], STEPS * 2 * (double)FLT_EPSILON);
            expect_near((double)((float *)m.data)[i], exp_avg[i], 4 * (double)FLT_EPSILON);
            expect_near((double)((float *)v.data)[i], exp_avg_sq[i],
                        4 * (double)FLT_EPSILON * exp_avg_sq[i]);
        }
        guarded_destroy(&g);
        guarded_destroy(&p);
        guarded_destroy(&m);
        guarded_destroy(&v);
        guarded_destroy(&state);
    }
}

static void test_adam_against_torch(void **state)
{
    (void)state;
    for_each_case(check_adam_against_torch);
}

/* The double table: exact to double rounding. */
static void test_adam_f64(void **state)
{
    (void)state;
    double g[3] = {0.5, -2, 1e-4}, p[3] = {1, 2, 3}, m[3] = {0}, v[3] = {0}, param[3] = {1, 2, 3},
           exp_avg[3] = {0}, exp_avg_sq[3] = {0};
    for (int t = 1; t <= 20; t++) {
        const grvi_adam step = adam_step(t, 0.01, false);
        grvi_point_kernels_f64()->adam(&step, 3, g, p, m, v);
        for (int i = 0; i < 3; i++)
            torch_adam(t, 1, 0.01, false, g[i], &param[i], &exp_avg[i], &exp_avg_sq[i]);
    }
    for (int i = 0; i < 3; i++) expect_near(p[i], param[i], 1e-14);
}

/* Pieces of a parameter block give the bits of the whole. */
static void check_adam_pieces(const grvi_point_kernels *kernels, int64_t n, int64_t misalign)
{
    guarded g = numbers(n, misalign, 1, 1), whole = numbers(n, 0, 2, 1),
            pieces = numbers(n, misalign, 2, 1);
    guarded m[2] = {numbers(n, 0, 3, 0.1), numbers(n, misalign, 3, 0.1)},
            v[2] = {numbers(n, 0, 4, 0), numbers(n, misalign, 4, 0)};
    const grvi_adam step = adam_step(3, 0.1, false);
    kernels->adam(&step, n, g.data, whole.data, m[0].data, v[0].data);
    for (int64_t first = 0; first < n; first += 37) {
        const int64_t length = n - first < 37 ? n - first : 37;
        kernels->adam(&step, length, (float *)g.data + first, (float *)pieces.data + first,
                      (float *)m[1].data + first, (float *)v[1].data + first);
    }
    assert_memory_equal(whole.data, pieces.data, (size_t)whole.bytes);
    assert_memory_equal(v[0].data, v[1].data, (size_t)whole.bytes);
    guarded_destroy(&g);
    guarded_destroy(&whole);
    guarded_destroy(&pieces);
    for (int i = 0; i < 2; i++) {
        guarded_destroy(&m[i]);
        guarded_destroy(&v[i]);
    }
}

static void test_adam_pieces(void **state)
{
    (void)state;
    for_each_case(check_adam_pieces);
}

static void test_peak_loop(void **state)
{
    (void)state;
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        const grvi_point_kernels *const kernels = grvi_point_kernels_for((grvi_isa)isa);
        if (kernels == NULL) continue;
        const int64_t flops = kernels->peak_loop(100);
        assert_true(flops > 0 && kernels->peak_loop(200) == 2 * flops);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_elementwise),
        cmocka_unit_test(test_copy_rows),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_sums_agree_between_instruction_sets),
        cmocka_unit_test(test_finite),
        cmocka_unit_test(test_adam_closed_form),
        cmocka_unit_test(test_adam_against_torch),
        cmocka_unit_test(test_adam_f64),
        cmocka_unit_test(test_adam_pieces),
        cmocka_unit_test(test_peak_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
