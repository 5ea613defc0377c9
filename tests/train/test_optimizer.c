/* Adam and AdamW on a whole network against the formulas in double; clipping, its norm, the count. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "grove/optimizer.h"
#include "store_support.h"

static grv_network *make_network(bool gradients)
{
    grv_network_params p = {.fno = grv_fno_params_default(),
                            .batch = 1,
                            .n_data = 1,
                            .n_domain = 1,
                            .n_threads = 2,
                            .gradients = gradients,
                            .loss = true};
    p.fno.n_axes = 2;
    p.fno.n[0] = 7;
    p.fno.n[1] = 6;
    p.fno.modes[0] = p.fno.modes[1] = 2;
    p.fno.width = 3;
    p.fno.n_blocks = 2;
    p.fno.static_input = false;
    grv_network *network = NULL;
    assert_ok(grv_network_create(&p, NULL, NULL, &network));
    assert_ok(grv_network_initialise(network, 3));
    return network;
}

static int64_t n_parameters(const grv_network *n)
{
    return grv_plan_summarise(grv_network_plan(n)).param_count;
}

/* gradients of very different sizes, zero among them; returns their norm over all tensors */
static double draw_gradients(grv_network *n, int64_t step)
{
    double sum = 0;
    const int64_t count = n_parameters(n);
    float *const g = grv_network_gradients(n);
    for (int64_t i = 0; i < count; i++)
        g[i] = i % 17 == 0 ? 0
                           : (float)(grv_random_normal(4, (uint64_t)step, (uint64_t)i) *
                                     pow(10, (double)(i % 5) - 3));
    for (int t = 0; t < grv_graph_n_params(grv_network_graph(n)); t++) {
        const grv_param_slice slice = grv_plan_param(grv_network_plan(n), t);
        for (int64_t i = slice.offset; i < slice.offset + slice.count; i++)
            sum += (double)g[i] * (double)g[i];
    }
    return sqrt(sum);
}

/* One step in double on w, m, v: PyTorch's formulas. */
static void reference_step(const grv_optimizer_params *p, int64_t count, double rate, double scale,
                           int64_t n, const float *g, double *w, double *m, double *v)
{
    const double correction1 = 1 - pow(p->beta1, (double)count),
                 correction2 = 1 - pow(p->beta2, (double)count);
    for (int64_t i = 0; i < n; i++) {
        double gradient = (double)g[i] * scale;
        if (p->kind == GRV_OPTIMIZER_ADAMW)
            w[i] -= rate * p->weight_decay * w[i];
        else
            gradient += p->weight_decay * w[i];
        m[i] = p->beta1 * m[i] + (1 - p->beta1) * gradient;
        v[i] = p->beta2 * v[i] + (1 - p->beta2) * gradient * gradient;
        w[i] -= rate * (m[i] / correction1) / (sqrt(v[i] / correction2) + p->epsilon);
    }
}

static void check_close(const float *found, const double *expected, int64_t n, double tolerance,
                        const char *what)
{
    double error = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)found[i] - expected[i]) * ((double)found[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    if (!(sqrt(error) <= tolerance * sqrt(norm)) || norm == 0)
        fail_msg("%s: relative error %.3g", what, sqrt(error / norm));
}

static void check_steps(const grv_optimizer_params *p)
{
    grv_network *network = make_network(true);
    grv_optimizer *optimizer = NULL;
    const int64_t n = n_parameters(network);
    double *const numbers = calloc((size_t)(3 * n), sizeof *numbers), *const w = numbers,
                  *const m = numbers + n, *const v = numbers + 2 * n;
    assert_ok(grv_optimizer_create(p, network, NULL, &optimizer));
    assert_int_equal(grv_optimizer_count(optimizer), 0);
    for (int64_t i = 0; i < n; i++) w[i] = (double)grv_network_parameters(network)[i];
    for (int64_t step = 1; step <= 6; step++) {
        const double rate = 0.01 / (double)step, norm = draw_gradients(network, step);
        const bool clips = p->clip_norm > 0 && norm > p->clip_norm;
        double found = -1;
        assert_ok(grv_optimizer_step(optimizer, rate, &found));
        assert_true(fabs(found - (p->clip_norm > 0 ? norm : 0)) <= 1e-12 * norm);
        assert_int_equal(grv_optimizer_count(optimizer), step);
        reference_step(p, step, rate, clips ? p->clip_norm / norm : 1, n,
                       grv_network_gradients(network), w, m, v);
        check_close(grv_network_parameters(network), w, n, 1e-6, "parameters");
        check_close(grv_optimizer_moments(optimizer, 0), m, n, 1e-6, "first moment");
        check_close(grv_optimizer_moments(optimizer, 1), v, n, 1e-6, "second moment");
    }
    free(numbers);
    grv_optimizer_destroy(&optimizer);
    assert_null(optimizer);
    grv_network_destroy(&network);
}

static void test_adam(void **state)
{
    (void)state;
    grv_optimizer_params p = grv_optimizer_params_default();
    check_steps(&p);
    p.weight_decay = 0.1;
    p.beta1 = 0.5;
    p.beta2 = 0.75;
    p.epsilon = 1e-3;
    check_steps(&p);
}

static void test_adamw(void **state)
{
    (void)state;
    grv_optimizer_params p = grv_optimizer_params_default();
    p.kind = GRV_OPTIMIZER_ADAMW;
    p.weight_decay = 0.3;
    check_steps(&p);
}

static void test_clipping(void **state)
{
    (void)state;
    grv_optimizer_params p = grv_optimizer_params_default();
    p.clip_norm = 0.5; /* far below the norm */
    p.weight_decay = 0.1;
    check_steps(&p);
    p.clip_norm = 1e6; /* never reached: nothing is scaled */
    check_steps(&p);
}

/* moments and count are all that a step remembers */
static void test_count_resumes(void **state)
{
    (void)state;
    const grv_optimizer_params p = grv_optimizer_params_default();
    grv_network *networks[2] = {make_network(true), make_network(true)};
    grv_optimizer *optimizers[2] = {NULL, NULL};
    const size_t bytes = (size_t)n_parameters(networks[0]) * sizeof(float);
    for (int k = 0; k < 2; k++)
        assert_ok(grv_optimizer_create(&p, networks[k], NULL, &optimizers[k]));
    (void)draw_gradients(networks[0], 1);
    assert_ok(grv_optimizer_step(optimizers[0], 0.1, NULL));
    memcpy(grv_network_parameters(networks[1]), grv_network_parameters(networks[0]), bytes);
    for (int k = 0; k < 2; k++)
        memcpy(grv_optimizer_moments(optimizers[1], k), grv_optimizer_moments(optimizers[0], k),
               bytes);
    grv_optimizer_set_count(optimizers[1], 1);
    for (int k = 0; k < 2; k++) {
        (void)draw_gradients(networks[k], 2);
        assert_ok(grv_optimizer_step(optimizers[k], 0.1, NULL));
    }
    assert_int_equal(grv_optimizer_count(optimizers[1]), 2);
    assert_memory_equal(grv_network_parameters(networks[1]), grv_network_parameters(networks[0]),
                        bytes);
    for (int k = 0; k < 2; k++) {
        grv_optimizer_destroy(&optimizers[k]);
        grv_network_destroy(&networks[k]);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    grv_optimizer_params p = grv_optimizer_params_default();
    grv_network *without = make_network(false), *with = make_network(true);
    grv_optimizer *optimizer = NULL;
    assert_fails(grv_optimizer_create(&p, without, NULL, &optimizer), GRV_E_ARG,
                 "a network with gradients expected");
    p.beta2 = 1;
    assert_fails(grv_optimizer_create(&p, with, NULL, &optimizer), GRV_E_ARG, "betas in [0, 1)");
    p = grv_optimizer_params_default();
    p.epsilon = NAN;
    assert_fails(grv_optimizer_create(&p, with, NULL, &optimizer), GRV_E_ARG, "epsilon > 0");
    assert_null(optimizer);
    grv_optimizer_destroy(NULL);
    grv_network_destroy(&without);
    grv_network_destroy(&with);
}

static void test_memory_given_back(void **state)
{
    (void)state;
    assert_int_equal(grv_memory_get().bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adam),     cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_clipping), cmocka_unit_test(test_count_resumes),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_memory_given_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
