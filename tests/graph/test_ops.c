/* Every operation by itself, in double: its backward pass against difference quotients of a loss behind it. The operation reads a linear map of the
 * input, so that the gradient of the map's weights is what flows back through the operation; for linear operations that is its adjoint. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#include <cmocka.h>

#include "grove/core.h"
#include "grove/plan.h"

static void ok(grv_status status)
{
    if (status != GRV_OK) fail_msg("%s", grv_error_trace());
}

enum { C_IN = 2, WIDTH = 3, SAMPLES = 2 };
static const int64_t extent[] = {5, 1, 6, 4};

typedef grv_value make_op(grv_graph *g, grv_value x);

static grv_value op_identity(grv_graph *g, grv_value x)
{
    return (void)g, x;
}
static const char *const axis_names[] = {"x", "y", "z", "t"};

static grv_value op_linear(grv_graph *g, grv_value x)
{
    return grv_graph_linear(g, x, "other", 2, true);
}
static grv_value op_relu(grv_graph *g, grv_value x)
{
    return grv_graph_activation(g, x, GRV_ACTIVATION_RELU);
}
static grv_value op_gelu(grv_graph *g, grv_value x)
{
    return grv_graph_activation(g, x, GRV_ACTIVATION_GELU);
}
static grv_value op_add(grv_graph *g, grv_value x)
{
    return grv_graph_add(g, x, grv_graph_add(g, x, op_gelu(g, x)));
}
static grv_value op_repeat(grv_graph *g, grv_value x)
{
    return grv_graph_repeat(g, x, "y", 3);
}
static grv_value op_grow(grv_graph *g, grv_value x)
{
    return grv_graph_resize(g, x, (const int64_t[]){7, 2, 9, 5});
}
static grv_value op_shrink(grv_graph *g, grv_value x)
{
    return grv_graph_resize(g, x, (const int64_t[]){3, 1, 2, 4});
}
static grv_value op_mixed(grv_graph *g, grv_value x)
{
    return grv_graph_resize(g, x, (const int64_t[]){3, 2, 6, 1});
}

static grv_value op_spectral(grv_graph *g, grv_value x)
{
    static const int64_t modes[] = {2, 1, 3, 3}; /* 2m = n and n/2 + 1 among them */
    x = grv_graph_resize(g, x, (const int64_t[]){5, 2, 6, 4});
    for (int a = 3; a >= 0; a--) x = grv_graph_analyse(g, x, axis_names[a], modes[a]);
    return x;
}

static grv_value op_analyse_one(grv_graph *g, grv_value x)
{
    return grv_graph_analyse(g, x, "z", 3);
}
static grv_value op_synthesise(grv_graph *g, grv_value x)
{
    return grv_graph_synthesise(g, op_analyse_one(g, x), "z");
}

static grv_value op_mode_mix(grv_graph *g, grv_value x)
{
    x = grv_graph_mode_mix(g, op_spectral(g, x), "mix");
    for (int a = 0; a < 4; a++) x = grv_graph_synthesise(g, x, axis_names[a]);
    return x;
}

static const struct {
    const char *name;
    make_op *make;
    int64_t n[4],
        channels; /* of the result, where it is physical; 0: nothing to compare with, see below */
} ops[] = {
    {"identity", op_identity, {5, 1, 6, 4}, WIDTH},
    {"linear", op_linear, {5, 1, 6, 4}, 2},
    {"relu", op_relu, {5, 1, 6, 4}, WIDTH},
    {"gelu", op_gelu, {5, 1, 6, 4}, WIDTH},
    {"add", op_add, {5, 1, 6, 4}, WIDTH},
    {"repeat", op_repeat, {5, 3, 6, 4}, WIDTH},
    {"grow", op_grow, {7, 2, 9, 5}, WIDTH},
    {"shrink", op_shrink, {3, 1, 2, 4}, WIDTH},
    {"grow and shrink", op_mixed, {3, 2, 6, 1}, WIDTH},
    {"analyse, synthesise", op_synthesise, {5, 1, 6, 4}, WIDTH},
    {"mode mix", op_mode_mix, {5, 2, 6, 4}, WIDTH},
};

static grv_value input_field(grv_graph *g, const char *name, const int64_t *n, int64_t channels)
{
    grv_axis axes[4];
    for (int a = 0; a < 4; a++) axes[a] = (grv_axis){axis_names[a], n[a]};
    return grv_graph_input(g, name, 4, axes, channels);
}

static void check_op(int k, grv_loss loss, int n_threads)
{
    grv_graph *g = NULL;
    grv_plan *plan = NULL;
    grv_exec *exec = NULL;
    ok(grv_graph_create(SAMPLES, &g));
    const grv_value input = input_field(g, "input", extent, C_IN),
                    target = input_field(g, "target", ops[k].n, ops[k].channels);
    (void)grv_graph_loss(g, ops[k].make(g, grv_graph_linear(g, input, "first", WIDTH, true)),
                         target, loss);
    ok(grv_graph_status(g));
    ok(grv_graph_differentiate(g));
    grv_plan_params params = grv_plan_params_default();
    params.dtype = GRV_F64;
    params.gradients = true;
    params.n_threads = n_threads;
    ok(grv_plan_create(g, &params, &plan));
    ok(grv_exec_create(plan, NULL, &exec));
    const int64_t n_params = grv_plan_summarise(plan).param_count,
                  n_input = grv_plan_field_count(plan, input),
                  n_target = grv_plan_field_count(plan, target);
    double *const p = malloc(sizeof *p * (size_t)n_params),
                  *const dp = malloc(sizeof *p * (size_t)n_params),
                  *const kept = malloc(sizeof *p * (size_t)n_params),
                  *const x = malloc(sizeof *p * (size_t)n_input),
                  *const y = malloc(sizeof *p * (size_t)n_target);
    for (int64_t i = 0; i < n_params; i++) p[i] = grv_random_normal(1, 1, (uint64_t)i);
    for (int64_t i = 0; i < n_input; i++) x[i] = grv_random_normal(1, 2, (uint64_t)i);
    for (int64_t i = 0; i < n_target; i++) y[i] = grv_random_normal(1, 3, (uint64_t)i);
    const void *const fields[] = {x, y};
    const grv_bindings bindings = {
        .params = p, .gradients = dp, .fields = fields};
    ok(grv_exec_run(exec, &bindings));
    for (int64_t i = 0; i < n_params; i++) kept[i] = dp[i];
    const int64_t step = 1 + n_params / 150; /* not each of a mode mix */
    for (int64_t i = 0; i < n_params; i += step) {
        const double e = 1e-6, at = p[i];
        double above = 0, below = 0;
        p[i] = at + e;
        ok(grv_exec_run(exec, &bindings));
        above = grv_exec_loss(exec);
        p[i] = at - e;
        ok(grv_exec_run(exec, &bindings));
        below = grv_exec_loss(exec);
        p[i] = at;
        const double numeric = (above - below) / (2 * e);
        /* rounding eps L / e, truncation e^2 */
        if (fabs(numeric - kept[i]) > 2e-8 * (1 + fabs(kept[i])))
            fail_msg("%s, parameter %lld: gradient %.12g, difference quotient %.12g", ops[k].name,
                     (long long)i, kept[i], numeric);
    }
    free(p);
    free(dp);
    free(kept);
    free(x);
    free(y);
    grv_exec_destroy(&exec);
    grv_plan_destroy(&plan);
    grv_graph_destroy(&g);
}

static void test_gradients(void **state)
{
    (void)state;
    for (int k = 0; k < (int)(sizeof ops / sizeof *ops); k++) {
        check_op(k, GRV_LOSS_MSE, 1);
        check_op(k, GRV_LOSS_RELATIVE_L2, 2);
    }
}

/* builder calls that cannot be: the first failure is kept, later calls do nothing */
static void test_errors(void **state)
{
    (void)state;
    grv_graph *g = NULL;
    ok(grv_graph_create(1, &g));
    const grv_value x = input_field(g, "x", extent, 2);
    assert_int_equal(grv_graph_mode_mix(g, x, "mix"), GRV_NO_VALUE);
    assert_int_equal(grv_graph_linear(g, x, "linear", 2, true), GRV_NO_VALUE);
    assert_int_equal(grv_graph_status(g), GRV_E_SHAPE);
    grv_graph_destroy(&g);
    ok(grv_graph_create(1, &g));
    const grv_value a = input_field(g, "a", extent, 2),
                    b = input_field(g, "b", extent, 3);
    assert_int_equal(grv_graph_add(g, a, b), GRV_NO_VALUE);
    assert_int_equal(grv_graph_differentiate(g), GRV_E_SHAPE);
    grv_graph_destroy(&g);
    assert_int_equal(grv_graph_create(0, &g), GRV_E_ARG);
}

/* axes are found by name, and fields of other axes do not join */
static void test_axis_names(void **state)
{
    (void)state;
    const grv_axis good[] = {{"time", 4}, {"height", 6}}, swapped[] = {{"height", 4}, {"time", 6}}, twice[] = {{"x", 4}, {"x", 6}},
                   unnamed[] = {{"", 4}};
    const struct {
        const char *message;
        int n_axes;
        const grv_axis *axes;
        const char *analysed;
        int64_t modes;
        const grv_axis *other;
    } cases[] = {{NULL, 2, good, "height", 3, good},
                 {"'depth'", 2, good, "depth", 3, good},
                 {"axis 'height' of 6 points: 1 to 4 modes", 2, good, "height", 5, good},
                 {"axis 'time' of 4 points: 1 to 2 modes", 2, good, "time", 3, good},
                 {"same axes", 2, good, "height", 3, swapped},
                 {"two axes are named 'x'", 2, twice, "x", 1, good},
                 {"a name of 1 to 31 bytes", 1, unnamed, "x", 1, good}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grv_graph *g = NULL;
        ok(grv_graph_create(1, &g));
        const grv_value x = grv_graph_input(g, "x", cases[i].n_axes, cases[i].axes, 2);
        const grv_value y = grv_graph_input(g, "y", 2, cases[i].other, 2);
        (void)grv_graph_analyse(g, x, cases[i].analysed, cases[i].modes);
        (void)grv_graph_add(g, x, y);
        if (cases[i].message == NULL) {
            ok(grv_graph_status(g));
            assert_int_equal(grv_graph_n_inputs(g), 2);
        } else {
            assert_int_not_equal(grv_graph_status(g), GRV_OK);
            assert_non_null(strstr(grv_error_message(), cases[i].message));
        }
        grv_graph_destroy(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients),
                                       cmocka_unit_test(test_errors), cmocka_unit_test(test_axis_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
