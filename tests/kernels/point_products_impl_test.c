/* Linear maps and perceptrons of the point kernels: against the reference for every instruction set, finite differences and
 * adjoint identities of the reference in double, same bits for any alignment, nothing written outside.
 *
 * Tolerances. Inputs and weights are uniform in [-1, 1]. A float sum of K products has a relative error of about eps sqrt(K) / 2
 * against the sum of magnitudes K/4 that bounds it; the tests allow 4 eps sqrt(K) sqrt(K/9 + 1), several deviations of what
 * happens, per layer. GELU adds 4e-7 (activation_simd.h). Gradients of weights must be within 1e-6 of their norm; within 2e-6
 * where they also pass the derivative of a GELU at the output (4e-7 of values around 1/2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "guarded.h"
#include "kernels/point_kernels.h"

static double sum_tolerance(int64_t terms)
{
    const double k = (double)terms + 1;
    return 4 * (double)FLT_EPSILON * sqrt(k) * sqrt(k / 9 + 1);
}

/* ---- one linear map, all three kernels ---- */

typedef struct linear_results {
    guarded y, pre, dx, dw, db;
} linear_results;

static linear_results run_linear(const grvi_point_kernels *kernels, const grvi_linear *linear,
                                 int64_t n, int64_t misalign)
{
    const int64_t c_in = linear->c_in, c_out = linear->c_out, f = (int64_t)sizeof(float),
                  d = (int64_t)sizeof(double);
    guarded x = guarded_create(n * c_in * f, misalign), g = guarded_create(n * c_out * f, misalign);
    guarded w = guarded_create(c_in * c_out * f, misalign), b = guarded_create(c_out * f, misalign);
    guarded scratch = guarded_create(grvi_linear_scratch_bytes(linear), 0);
    fill_f32(x.data, n * c_in, 1, 1);
    fill_f32(g.data, n * c_out, 2, 1);
    fill_f32(w.data, c_in * c_out, 3, 1);
    fill_f32(b.data, c_out, 4, 1);
    grvi_linear with = *linear;
    with.weight = w.data;
    with.bias = linear->bias == NULL ? NULL : b.data;
    linear_results r = {guarded_create(n * c_out * f, misalign),
                        guarded_create(n * c_out * f, misalign),
                        guarded_create(n * c_in * f, misalign), guarded_create(c_in * c_out * d, 0),
                        guarded_create(c_out * d, 0)};
    fill_f64(r.dw.data, c_in * c_out, 5, 1); /* gradients are added to what is there */
    fill_f64(r.db.data, c_out, 6, 1);
    kernels->linear_forward(&with, n, x.data, r.y.data, r.pre.data, scratch.data);
    kernels->linear_input_gradient(&with, n, g.data, r.dx.data, scratch.data);
    kernels->linear_weight_gradient(&with, n, x.data, g.data, r.dw.data, r.db.data, scratch.data);
    guarded_destroy(&x);
    guarded_destroy(&g);
    guarded_destroy(&w);
    guarded_destroy(&b);
    guarded_destroy(&scratch);
    return r;
}

static void destroy_linear(linear_results *r)
{
    guarded *const all[] = {&r->y, &r->pre, &r->dx, &r->dw, &r->db};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) guarded_destroy(all[i]);
}

static void expect_close_f32(const char *what, const guarded *found, const guarded *expected,
                             double tolerance)
{
    const float *const a = found->data, *const b = expected->data;
    for (int64_t i = 0; i < found->bytes / (int64_t)sizeof(float); i++) {
        const double error = fabs((double)a[i] - (double)b[i]);
        if (!(error <= tolerance)) {
            fail_msg("%s[%lld]: %.9g expected, %.9g found, tolerance %.2g", what, (long long)i,
                     (double)b[i], (double)a[i], tolerance);
        }
    }
}

/* Double sums: relative to the norm, plus the rounding of n products of size 1 where the norm is small by chance. */
static void expect_sums(const char *what, const guarded *found, const guarded *expected,
                        int64_t n_points, double relative)
{
    const double *const a = found->data, *const b = expected->data;
    double error2 = 0, norm2 = 0;
    const int64_t n = found->bytes / (int64_t)sizeof(double);
    for (int64_t i = 0; i < n; i++) {
        error2 += (a[i] - b[i]) * (a[i] - b[i]);
        norm2 += b[i] * b[i];
    }
    const double allowed = relative * sqrt(norm2 + (double)(n * n_points) / 9);
    if (!(sqrt(error2) <= allowed))
        fail_msg("%s: error %.3g, allowed %.3g", what, sqrt(error2), allowed);
}

static void check_linear(const grvi_point_kernels *kernels, grvi_linear linear, int64_t n,
                         int64_t misalign)
{
    char what[128];
    snprintf(what, sizeof what, "%s %lld->%lld n %lld", kernels->name, (long long)linear.c_in,
             (long long)linear.c_out, (long long)n);
    linear_results expected = run_linear(grvi_point_kernels_for(GRVI_ISA_REF), &linear, n, 0);
    linear_results found = run_linear(kernels, &linear, n, misalign);
    expect_close_f32(what, &found.pre, &expected.pre, sum_tolerance(linear.c_in));
    expect_close_f32(what, &found.y, &expected.y, 1.2 * sum_tolerance(linear.c_in) + 4e-7);
    expect_close_f32(what, &found.dx, &expected.dx, sum_tolerance(linear.c_out));
    expect_sums(what, &found.dw, &expected.dw, n, 1e-6);
    expect_sums(what, &found.db, &expected.db, n, 1e-6);
    destroy_linear(&expected);
    destroy_linear(&found);
}

static const float some_bias = 0; /* any address: run_linear and run_mlp put their own numbers */

/* Calls `check` for every instruction set that this machine runs, the reference included. */
static void for_each_isa(void (*check)(const grvi_point_kernels *))
{
    int n_checked = 0;
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        const grvi_point_kernels *const kernels = grvi_point_kernels_for((grvi_isa)isa);
        if (kernels == NULL) continue;
        assert_string_equal(kernels->name, grvi_isa_name((grvi_isa)isa));
        check(kernels);
        n_checked++;
    }
    assert_true(n_checked >= 1);
}

static void linear_sizes(const grvi_point_kernels *kernels)
{
    for (int64_t n = 0; n <= 67; n++) {
        check_linear(
            kernels,
            (grvi_linear){.c_in = 5, .c_out = 7, .bias = &some_bias, .activation = GRVI_ACT_RELU},
            n, n % 16 * 4);
    }
    for (int64_t c_in = 1; c_in <= 33; c_in++) {
        for (int64_t c_out = 1; c_out <= 33; c_out++) {
            const int64_t seed = 33 * c_in + c_out;
            check_linear(kernels,
                         (grvi_linear){.c_in = c_in,
                                       .c_out = c_out,
                                       .bias = seed % 2 ? &some_bias : NULL,
                                       .activation = (grvi_activation)(seed % GRVI_ACT_COUNT)},
                         seed % 131, seed % 16 * 4);
        }
    }
    check_linear(
        kernels,
        (grvi_linear){.c_in = 20, .c_out = 20, .bias = &some_bias, .activation = GRVI_ACT_GELU},
        2501, 4);
    check_linear(
        kernels,
        (grvi_linear){.c_in = 300, .c_out = 130, .bias = &some_bias, .activation = GRVI_ACT_NONE},
        200, 4);
}

static void test_linear(void **state)
{
    (void)state;
    for_each_isa(linear_sizes);
}

/* ---- one perceptron, both kernels ---- */

typedef struct mlp_results {
    guarded y, dx, gradients[4];
} mlp_results;

static mlp_results run_mlp(const grvi_point_kernels *kernels, const grvi_mlp *mlp, int64_t n,
                           int64_t misalign)
{
    const int64_t f = (int64_t)sizeof(float), c_in = mlp->c_in, c_hidden = mlp->c_hidden,
                  c_out = mlp->c_out;
    const int64_t sizes[4] = {c_in * c_hidden, c_hidden, c_hidden * c_out, c_out};
    guarded x = guarded_create(n * c_in * f, misalign),
            dy = guarded_create(n * c_out * f, misalign), weights[4];
    guarded scratch = guarded_create(grvi_mlp_scratch_bytes(mlp), 0);
    fill_f32(x.data, n * c_in, 1, 1);
    fill_f32(dy.data, n * c_out, 2, 1);
    mlp_results r = {.y = guarded_create(n * c_out * f, misalign),
                     .dx = guarded_create(n * c_in * f, misalign)};
    for (int i = 0; i < 4; i++) {
        weights[i] = guarded_create(sizes[i] * f, misalign);
        fill_f32(weights[i].data, sizes[i], 10 + i,
                 i % 2 ? 1 : sqrt(3.0 / (double)(i == 0 ? c_in : c_hidden)));
        r.gradients[i] = guarded_create(sizes[i] * (int64_t)sizeof(double), 0);
        fill_f64(r.gradients[i].data, sizes[i], 20 + i, 1);
    }
    grvi_mlp with = *mlp;
    with.weight1 = weights[0].data;
    with.bias1 = mlp->bias1 == NULL ? NULL : weights[1].data;
    with.weight2 = weights[2].data;
    with.bias2 = mlp->bias2 == NULL ? NULL : weights[3].data;
    const grvi_mlp_gradients gradients = {r.gradients[0].data, r.gradients[1].data,
                                          r.gradients[2].data, r.gradients[3].data};
    kernels->mlp_forward(&with, n, x.data, r.y.data, scratch.data);
    kernels->mlp_backward(&with, n, x.data, dy.data, r.dx.data, &gradients, scratch.data);
    for (int i = 0; i < 4; i++) guarded_destroy(&weights[i]);
    guarded_destroy(&x);
    guarded_destroy(&dy);
    guarded_destroy(&scratch);
    return r;
}

static void destroy_mlp(mlp_results *r)
{
    guarded_destroy(&r->y);
    guarded_destroy(&r->dx);
    for (int i = 0; i < 4; i++) guarded_destroy(&r->gradients[i]);
}

static void check_mlp(const grvi_point_kernels *kernels, grvi_mlp mlp, int64_t n, int64_t misalign)
{
    char what[128];
    snprintf(what, sizeof what, "%s %lld->%lld->%lld act %d %d n %lld", kernels->name,
             (long long)mlp.c_in, (long long)mlp.c_hidden, (long long)mlp.c_out,
             (int)mlp.activation1, (int)mlp.activation2, (long long)n);
    mlp_results expected = run_mlp(grvi_point_kernels_for(GRVI_ISA_REF), &mlp, n, 0);
    mlp_results found = run_mlp(kernels, &mlp, n, misalign);
    /* weights of variance 1/c keep every layer of size 1, so the errors of the layers add: 30 eps at most */
    const double tolerance = 30 * (double)FLT_EPSILON,
                 scale_dx =
                     sqrt((double)(mlp.c_out * mlp.c_hidden) / (double)(mlp.c_in * mlp.c_hidden)) +
                     1;
    expect_close_f32(what, &found.y, &expected.y, tolerance);
    expect_close_f32(what, &found.dx, &expected.dx, tolerance * scale_dx);
    for (int i = 0; i < 4; i++)
        expect_sums(what, &found.gradients[i], &expected.gradients[i], n,
                    mlp.activation2 == GRVI_ACT_GELU ? 2e-6 : 1e-6);
    destroy_mlp(&expected);
    destroy_mlp(&found);
}

static void mlp_sizes(const grvi_point_kernels *kernels)
{
    for (int64_t n = 0; n <= 67; n++) {
        check_mlp(kernels,
                  (grvi_mlp){.c_in = 3,
                             .c_hidden = 6,
                             .c_out = 12,
                             .bias1 = &some_bias,
                             .bias2 = &some_bias,
                             .activation1 = GRVI_ACT_RELU,
                             .activation2 = GRVI_ACT_GELU},
                  n, n % 16 * 4);
    }
    for (int64_t c_in = 1; c_in <= 33; c_in++) {
        for (int64_t c_out = 1; c_out <= 33; c_out += 4) {
            const int64_t seed = 33 * c_in + c_out;
            /* no ReLU: a value within rounding of the kink may take either derivative */
            check_mlp(kernels,
                      (grvi_mlp){.c_in = c_in,
                                 .c_hidden = 1 + (5 * c_in + 3 * c_out) % 61,
                                 .c_out = c_out,
                                 .bias1 = seed % 2 ? &some_bias : NULL,
                                 .bias2 = seed % 3 ? &some_bias : NULL,
                                 .activation1 = seed % 4 ? GRVI_ACT_GELU : GRVI_ACT_NONE,
                                 .activation2 = seed % 5 ? GRVI_ACT_NONE : GRVI_ACT_GELU},
                      seed % 131, seed % 16 * 4);
        }
    }
    check_mlp(kernels,
              (grvi_mlp){.c_in = 20,
                         .c_hidden = 128,
                         .c_out = 1,
                         .bias1 = &some_bias,
                         .bias2 = &some_bias,
                         .activation1 = GRVI_ACT_GELU,
                         .activation2 = GRVI_ACT_NONE},
              1003, 4);
    check_mlp(kernels,
              (grvi_mlp){.c_in = 12,
                         .c_hidden = 32,
                         .c_out = 1,
                         .bias1 = &some_bias,
                         .bias2 = &some_bias,
                         .activation1 = GRVI_ACT_RELU,
                         .activation2 = GRVI_ACT_NONE},
              1003, 4);
    check_mlp(kernels,
              (grvi_mlp){.c_in = 3,
                         .c_hidden = 6,
                         .c_out = 12,
                         .bias1 = &some_bias,
                         .bias2 = &some_bias,
                         .activation1 = GRVI_ACT_RELU,
                         .activation2 = GRVI_ACT_RELU},
              1003, 4);
}

static void test_mlp(void **state)
{
    (void)state;
    for_each_isa(mlp_sizes);
}

/* ---- optional arguments ---- */

static void optional_arguments(const grvi_point_kernels *kernels)
{
    enum { N = 100, IN = 3, HIDDEN = 30, OUT = 2 };
    float x[N * IN], dy[N * OUT], dx[N * IN], y[N * OUT], w1[IN * HIDDEN], w2[HIDDEN * OUT],
        w[IN * OUT];
    fill_f32(x, N * IN, 1, 1);
    fill_f32(dy, N * OUT, 2, 1);
    fill_f32(w1, IN * HIDDEN, 3, 1);
    fill_f32(w2, HIDDEN * OUT, 4, 1);
    fill_f32(w, IN * OUT, 5, 1);
    const grvi_mlp mlp = {.c_in = IN,
                          .c_hidden = HIDDEN,
                          .c_out = OUT,
                          .weight1 = w1,
                          .weight2 = w2,
                          .activation1 = GRVI_ACT_GELU};
    const grvi_linear linear = {.c_in = IN, .c_out = OUT, .weight = w};
    guarded scratch = guarded_create(grvi_mlp_scratch_bytes(&mlp), 0);
    double all[IN * HIDDEN] = {0}, alone[IN * HIDDEN] = {0}, rest[3][HIDDEN * OUT] = {{0}};
    kernels->mlp_backward(&mlp, N, x, dy, dx, &(grvi_mlp_gradients){all, rest[0], rest[1], rest[2]},
                          scratch.data);
    kernels->mlp_backward(&mlp, N, x, dy, NULL, &(grvi_mlp_gradients){.weight1 = alone},
                          scratch.data);
    assert_memory_equal(all, alone, sizeof all);
    double dw[IN * OUT] = {0}, dw_alone[IN * OUT] = {0}, db[OUT] = {0};
    kernels->linear_forward(&linear, N, x, y, NULL, scratch.data);
    kernels->linear_weight_gradient(&linear, N, x, dy, dw, db, scratch.data);
    kernels->linear_weight_gradient(&linear, N, x, dy, dw_alone, NULL, scratch.data);
    assert_memory_equal(dw, dw_alone, sizeof dw);
    guarded_destroy(&scratch);
}

static void test_optional_arguments(void **state)
{
    (void)state;
    for_each_isa(optional_arguments);
}

/* ---- determinism ---- */

static void expect_same_bits(const guarded *a, const guarded *b)
{
    assert_memory_equal(a->data, b->data, (size_t)a->bytes);
}

static void same_bits(const grvi_point_kernels *kernels)
{
    const grvi_linear linear = {
        .c_in = 20, .c_out = 13, .bias = &some_bias, .activation = GRVI_ACT_GELU};
    const grvi_mlp mlp = {.c_in = 7,
                          .c_hidden = 50,
                          .c_out = 3,
                          .bias1 = &some_bias,
                          .activation1 = GRVI_ACT_GELU,
                          .activation2 = GRVI_ACT_RELU};
    linear_results first = run_linear(kernels, &linear, 1500, 0);
    mlp_results mlp_first = run_mlp(kernels, &mlp, 1500, 0);
    for (int64_t misalign = 4; misalign < 64; misalign += 12) {
        linear_results again = run_linear(kernels, &linear, 1500, misalign);
        expect_same_bits(&first.y, &again.y);
        expect_same_bits(&first.dx, &again.dx);
        expect_same_bits(&first.dw, &again.dw);
        expect_same_bits(&first.db, &again.db);
        destroy_linear(&again);
        mlp_results mlp_again = run_mlp(kernels, &mlp, 1500, misalign);
        expect_same_bits(&mlp_first.y, &mlp_again.y);
        expect_same_bits(&mlp_first.dx, &mlp_again.dx);
        for (int i = 0; i < 4; i++)
            expect_same_bits(&mlp_first.gradients[i], &mlp_again.gradients[i]);
        destroy_mlp(&mlp_again);
    }
    destroy_linear(&first);
    destroy_mlp(&mlp_first);
}

static void test_same_bits(void **state)
{
    (void)state;
    for_each_isa(same_bits);
}

/* A point's outputs depend on that point only, NaN included, wherever the point is. */
static void points_are_independent(const grvi_point_kernels *kernels)
{
    enum { N = 203, IN = 6, HIDDEN = 31, OUT = 5 };
    float x[N * IN], y[N * OUT], y_one[OUT], w1[IN * HIDDEN], w2[HIDDEN * OUT];
    fill_f32(x, N * IN, 1, 1);
    fill_f32(w1, IN * HIDDEN, 3, 1);
    fill_f32(w2, HIDDEN * OUT, 4, 1);
    x[77 * IN + 2] = NAN;
    const grvi_mlp mlp = {.c_in = IN,
                          .c_hidden = HIDDEN,
                          .c_out = OUT,
                          .weight1 = w1,
                          .weight2 = w2,
                          .activation1 = GRVI_ACT_RELU,
                          .activation2 = GRVI_ACT_GELU};
    guarded scratch = guarded_create(grvi_mlp_scratch_bytes(&mlp), 0);
    kernels->mlp_forward(&mlp, N, x, y, scratch.data);
    for (int64_t p = 0; p < N; p++) {
        kernels->mlp_forward(&mlp, 1, x + p * IN, y_one, scratch.data);
        for (int o = 0; o < OUT; o++) assert_int_equal(isnan(y[p * OUT + o]) != 0, p == 77);
        if (p != 77) assert_memory_equal(y_one, y + p * OUT, sizeof y_one);
    }
    guarded_destroy(&scratch);
}

static void test_points_are_independent(void **state)
{
    (void)state;
    for_each_isa(points_are_independent);
}

/* ---- the reference itself, in double ---- */

enum { FD_POINTS = 5, FD_IN = 3, FD_HIDDEN = 7, FD_OUT = 2 };

/* sum of dy * y */
static double mlp_objective(const grvi_mlp *mlp, const double *x, const double *dy, void *scratch)
{
    double y[FD_POINTS * FD_OUT], sum = 0;
    grvi_point_kernels_f64()->mlp_forward(mlp, FD_POINTS, x, y, scratch);
    for (int i = 0; i < FD_POINTS * FD_OUT; i++) sum += y[i] * dy[i];
    return sum;
}

static void check_differences(const grvi_mlp *mlp, const double *x, const double *dy, void *scratch,
                              double *parameter, int n, const double *gradient)
{
    const double h = 1e-6;
    for (int i = 0; i < n; i++) {
        const double old = parameter[i];
        parameter[i] = old + h;
        const double above = mlp_objective(mlp, x, dy, scratch);
        parameter[i] = old - h;
        const double below = mlp_objective(mlp, x, dy, scratch);
        parameter[i] = old;
        /* rounding 1e-16 * 10 / h and h^2: about 1e-9 */
        assert_true(fabs((above - below) / (2 * h) - gradient[i]) < 1e-8);
    }
}

static void test_mlp_finite_differences(void **state)
{
    (void)state;
    double x[FD_POINTS * FD_IN], dy[FD_POINTS * FD_OUT], dx[FD_POINTS * FD_IN];
    double w1[FD_IN * FD_HIDDEN], b1[FD_HIDDEN], w2[FD_HIDDEN * FD_OUT], b2[FD_OUT];
    fill_f64(x, FD_POINTS * FD_IN, 1, 1);
    fill_f64(dy, FD_POINTS * FD_OUT, 2, 1);
    fill_f64(w1, FD_IN * FD_HIDDEN, 3, 1);
    fill_f64(b1, FD_HIDDEN, 4, 1);
    fill_f64(w2, FD_HIDDEN * FD_OUT, 5, 1);
    fill_f64(b2, FD_OUT, 6, 1);
    for (int act1 = 0; act1 < GRVI_ACT_COUNT; act1++) {
        for (int act2 = 0; act2 < GRVI_ACT_COUNT; act2++) {
            const grvi_mlp mlp = {FD_IN,
                                  FD_HIDDEN,
                                  FD_OUT,
                                  w1,
                                  b1,
                                  w2,
                                  b2,
                                  (grvi_activation)act1,
                                  (grvi_activation)act2};
            double g1[FD_IN * FD_HIDDEN] = {0}, gb1[FD_HIDDEN] = {0}, g2[FD_HIDDEN * FD_OUT] = {0},
                              gb2[FD_OUT] = {0};
            guarded scratch = guarded_create(grvi_mlp_scratch_bytes(&mlp), 0);
            grvi_point_kernels_f64()->mlp_backward(
                &mlp, FD_POINTS, x, dy, dx, &(grvi_mlp_gradients){g1, gb1, g2, gb2}, scratch.data);
            check_differences(&mlp, x, dy, scratch.data, w1, FD_IN * FD_HIDDEN, g1);
            check_differences(&mlp, x, dy, scratch.data, b1, FD_HIDDEN, gb1);
            check_differences(&mlp, x, dy, scratch.data, w2, FD_HIDDEN * FD_OUT, g2);
            check_differences(&mlp, x, dy, scratch.data, b2, FD_OUT, gb2);
            check_differences(&mlp, x, dy, scratch.data, x, FD_POINTS * FD_IN, dx);
            guarded_destroy(&scratch);
        }
    }
}

/* <g, x W> = <g W^T, x> = <dW, W>, and a perceptron with the identity in between is the product of its layers. */
static void test_linear_adjoint(void **state)
{
    (void)state;
    enum { N = 9, IN = 4, OUT = 6 };
    double x[N * IN], g[N * OUT], w[IN * OUT], y[N * OUT], dx[N * IN], dw[IN * OUT] = {0},
                                                                               db[OUT] = {0};
    fill_f64(x, N * IN, 1, 1);
    fill_f64(g, N * OUT, 2, 1);
    fill_f64(w, IN * OUT, 3, 1);
    const grvi_linear linear = {.c_in = IN, .c_out = OUT, .weight = w};
    const grvi_point_kernels *const f64 = grvi_point_kernels_f64();
    f64->linear_forward(&linear, N, x, y, NULL, NULL);
    f64->linear_input_gradient(&linear, N, g, dx, NULL);
    f64->linear_weight_gradient(&linear, N, x, g, dw, db, NULL);
    double by_output = 0, by_input = 0, by_weight = 0, by_bias = 0, sum_g = 0;
    for (int i = 0; i < N * OUT; i++) by_output += g[i] * y[i], sum_g += g[i];
    for (int i = 0; i < N * IN; i++) by_input += dx[i] * x[i];
    for (int i = 0; i < IN * OUT; i++) by_weight += dw[i] * w[i];
    for (int o = 0; o < OUT; o++) by_bias += db[o];
    assert_true(fabs(by_output) > 0.1);
    assert_true(fabs(by_input - by_output) < 1e-13 && fabs(by_weight - by_output) < 1e-13 &&
                fabs(by_bias - sum_g) < 1e-13);
    double hand = 0; /* one output by hand */
    for (int i = 0; i < IN; i++) hand += x[2 * IN + i] * w[i * OUT + 3];
    assert_true(fabs(y[2 * OUT + 3] - hand) < 1e-15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear_adjoint),
        cmocka_unit_test(test_mlp_finite_differences),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_mlp),
        cmocka_unit_test(test_optional_arguments),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_points_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
