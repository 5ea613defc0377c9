/* Adam and AdamW against the published recurrences, written down in double; clipping; threads and blocks do not matter. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grove/core.h"
#include "grove/optimiser.h"

enum { N = 37, STEPS = 25 };

static double gradient_of(int64_t i, int64_t step)
{
    return grv_random_normal(3, (uint64_t)step, (uint64_t)i) * (i % 5 == 0 ? 1e-6 : 1);
}

/* Algorithm 1 of Kingma & Ba with the decay of either paper, element by element; PyTorch's placement of epsilon */
static void reference_step(const grv_optimiser *o, double rate, double scale, int64_t t, double g,
                           double *p, double *m, double *v)
{
    g *= scale;
    if (o->kind == GRV_OPTIMISER_ADAM)
        g += o->weight_decay * *p;
    else
        *p -= rate * o->weight_decay * *p;
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * g * g;
    const double m_hat = *m / (1 - pow(o->beta1, (double)t)),
                 v_hat = *v / (1 - pow(o->beta2, (double)t));
    *p -= rate * m_hat / (sqrt(v_hat) + o->epsilon);
}

static void check_against_reference(const grv_optimiser *o, double norm, double scale)
{
    double p[N], m[N] = {0}, v[N] = {0}, p64[N], m64[N] = {0}, v64[N] = {0}, g64[N];
    float p32[N], m32[N] = {0}, v32[N] = {0}, g32[N];
    assert_int_equal(grv_optimiser_check(o), GRV_OK);
    for (int i = 0; i < N; i++)
        p32[i] = (float)(p64[i] = p[i] = (double)(float)grv_random_normal(4, 0, (uint64_t)i));
    for (int64_t t = 1; t <= STEPS; t++) {
        const grv_optimiser_step step = {
            .number = t, .rate = 1e-2 / (double)t, .gradient_norm = norm};
        for (int i = 0; i < N; i++) {
            g32[i] = (float)gradient_of(i, t);
            g64[i] = (double)g32[i];
            reference_step(o, step.rate, scale, t, g64[i], &p[i], &m[i], &v[i]);
        }
        grv_optimiser_update(o, &step,
                             &(grv_optimiser_block){.dtype = GRV_F64,
                                                    .n = N,
                                                    .gradient = g64,
                                                    .parameters = p64,
                                                    .mean = m64,
                                                    .mean_square = v64});
        grv_optimiser_update(o, &step,
                             &(grv_optimiser_block){.dtype = GRV_F32,
                                                    .n = N,
                                                    .gradient = g32,
                                                    .parameters = p32,
                                                    .mean = m32,
                                                    .mean_square = v32});
    }
    for (int i = 0; i < N; i++) {
        /* each step rounds a few times relative to p and to an update of at most about rate */
        assert_true(fabs(p64[i] - p[i]) <= STEPS * 4 * 2.2e-16 * (fabs(p[i]) + 1));
        assert_true(fabs((double)p32[i] - p[i]) <= STEPS * 4 * 1.2e-7 * (fabs(p[i]) + 1e-2));
    }
}

static void test_recurrences(void **state)
{
    (void)state;
    grv_optimiser o = grv_optimiser_default();
    check_against_reference(&o, 100, 1);
    o.weight_decay = 0.1;
    check_against_reference(&o, 100, 1);
    o.kind = GRV_OPTIMISER_ADAMW;
    check_against_reference(&o, 100, 1);
    o = (grv_optimiser){.kind = GRV_OPTIMISER_ADAM, .beta1 = 0.5, .beta2 = 0.9, .epsilon = 1e-3};
    check_against_reference(&o, 100, 1);
}

/* first step: every parameter moves by rate * sign(gradient), whatever its size */
static void test_first_step(void **state)
{
    (void)state;
    const grv_optimiser o = grv_optimiser_default();
    double g[3] = {1e-3, -7, 1e5}, p[3] = {1, 1, 1}, m[3] = {0}, v[3] = {0};
    grv_optimiser_update(
        &o, &(grv_optimiser_step){.number = 1, .rate = 0.25},
        &(grv_optimiser_block){
            .dtype = GRV_F64, .n = 3, .gradient = g, .parameters = p, .mean = m, .mean_square = v});
    for (int i = 0; i < 3; i++) assert_true(fabs(p[i] - (g[i] > 0 ? 0.75 : 1.25)) < 1e-5);
}

static void test_clipping(void **state)
{
    (void)state;
    grv_optimiser o = grv_optimiser_default();
    o.epsilon = 1e-2; /* so that the scale of gradients matters */
    o.max_gradient_norm = 2;
    check_against_reference(&o, 1.5, 1);            /* short enough */
    check_against_reference(&o, 8, 2 / (8 + 1e-6)); /* scaled to a norm of 2, as PyTorch does */
}

/* the bits are those of each element alone */
static void test_threads_and_blocks(void **state)
{
    (void)state;
    enum { LARGE = 3 * 65536 + 1001 };
    float *const arrays = calloc(8 * (size_t)LARGE, sizeof *arrays);
    assert_non_null(arrays);
    float *const p1 = arrays, *const m1 = p1 + LARGE, *const v1 = m1 + LARGE,
                 *const p2 = v1 + LARGE, *const m2 = p2 + LARGE, *const v2 = m2 + LARGE,
                 *const g = v2 + LARGE;
    const grv_optimiser o = grv_optimiser_default();
    for (int i = 0; i < LARGE; i++) p1[i] = p2[i] = (float)(i % 977) / 977;
    for (int64_t t = 1; t <= 3; t++) {
        for (int i = 0; i < LARGE; i++)
            g[i] = (float)grv_random_uniform(1, (uint64_t)t, (uint64_t)i) - 0.5F;
        const grv_optimiser_step serial = {.number = t, .rate = 1e-3, .n_threads = 1},
                                 threads = {.number = t, .rate = 1e-3, .n_threads = 3};
        grv_optimiser_update(
            &o, &serial,
            &(grv_optimiser_block){
                .n = LARGE, .gradient = g, .parameters = p1, .mean = m1, .mean_square = v1});
        for (int64_t first = 0, n = 100003; first < LARGE; first += n) {
            if (n > LARGE - first) n = LARGE - first;
            grv_optimiser_update(&o, &threads,
                                 &(grv_optimiser_block){.n = n,
                                                        .gradient = g + first,
                                                        .parameters = p2 + first,
                                                        .mean = m2 + first,
                                                        .mean_square = v2 + first});
        }
    }
    assert_memory_equal(p1, p2, 3 * LARGE * sizeof *p1);
    free(arrays);
}

static void expect_failure(grv_optimiser o, const char *text)
{
    assert_int_equal(grv_optimiser_check(&o), GRV_E_CONFIG);
    assert_non_null(strstr(grv_error_message(), text));
}

static void test_ranges(void **state)
{
    (void)state;
    grv_optimiser o = grv_optimiser_default();
    o.beta1 = 1, expect_failure(o, "beta1"), o = grv_optimiser_default();
    o.beta2 = -0.1, expect_failure(o, "beta2"), o = grv_optimiser_default();
    o.epsilon = 0, expect_failure(o, "epsilon"), o = grv_optimiser_default();
    o.weight_decay = (double)NAN, expect_failure(o, "weight decay"), o = grv_optimiser_default();
    o.max_gradient_norm = -1, expect_failure(o, "gradient norm"), o = grv_optimiser_default();
    o.kind = (grv_optimiser_kind)5, expect_failure(o, "unknown optimiser 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recurrences), cmocka_unit_test(test_first_step),
        cmocka_unit_test(test_clipping), cmocka_unit_test(test_threads_and_blocks),
        cmocka_unit_test(test_ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
