/* The sample runner: contents of its arrays, symmetry, scaling, report, stopping, bad parameters. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grove/bench.h"
#include "grove/flow_sample.h"

enum { N = 16, CELLS = N * N * N, FRAMES = 3 };

typedef struct sample {
    float input[CELLS][3], target[CELLS][FRAMES], vorticity[CELLS][FRAMES], pressure[CELLS][FRAMES];
} sample;

static grv_flow_sample_params small_params(void)
{
    grv_flow_sample_params p = grv_flow_sample_params_default();
    for (int d = 0; d < 3; d++) {
        p.n[d] = N;
        p.centre[d] = N / 2;
    }
    p.centre[0] = 5;
    p.radius = 2;
    p.viscosity = 0.02;
    p.n_snapshots = FRAMES;
    return p;
}

static grv_status run(const grv_flow_sample_params *p, sample *s, grv_flow_sample_report *report)
{
    const grv_flow_sample_arrays arrays = {&s->input[0][0], &s->target[0][0], &s->vorticity[0][0],
                                           &s->pressure[0][0]};
    return grv_flow_sample_run(p, &arrays, NULL, NULL, report);
}

static int at(int i, int j, int k)
{
    return (i * N + j) * N + k;
}

static void test_contents(void **state)
{
    (void)state;
    sample *const s = malloc(sizeof *s);
    assert_non_null(s);
    memset(s, 0xff, sizeof *s); /* not a number, wherever nothing is written */
    grv_flow_sample_params p = small_params();
    grv_flow_sample_report report;
    assert_int_equal(run(&p, s, &report), GRV_OK);
    int n_clipped = 0, n_closed = 0;
    for (int i = 0; i < CELLS; i++) {
        for (int c = 0; c < 3; c++) assert_true(s->input[i][c] >= 0 && s->input[i][c] <= 1);
        n_closed += s->input[i][0] <= 0;
        for (int t = 0; t < FRAMES; t++) {
            assert_true(isfinite(s->vorticity[i][t]) && isfinite(s->pressure[i][t]));
            const double expected = fmin(0.3, fmax(-0.3, (double)s->vorticity[i][t])) / 0.3;
            assert_true(fabs((double)s->target[i][t] - expected) < 1e-6);
            n_clipped += fabs((double)s->vorticity[i][t]) > 0.3;
        }
    }
    assert_true(n_clipped > 20 && n_clipped < CELLS);
    assert_true(n_closed > N * N &&
                n_closed < N * N + 40); /* the wall and the inside of the sphere */
    /* flow in the x-y plane past a sphere at half height: the vorticity about z is symmetric in z, the wake is downstream */
    double wake = 0, upstream = 0, asymmetry = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++) {
                const double w = (double)s->vorticity[at(i, j, k)][FRAMES - 1];
                asymmetry = fmax(asymmetry,
                                 fabs(w - (double)s->vorticity[at(i, j, N - 1 - k)][FRAMES - 1]));
                *(i >= 5 ? &wake : &upstream) += w * w;
            }
    assert_true(wake > 1.5 * upstream && upstream > 0);
    assert_true(asymmetry < 0.02);
    /* the body slows the fluid: the early frame differs from the late one */
    assert_true(memcmp(s->target[at(9, 8, 8)], s->target[at(9, 9, 8)], sizeof s->target[0]) != 0);
    assert_true(report.n_steps >= FRAMES && report.n_solves == 2 * report.n_steps &&
                report.n_cycles >= report.n_solves);
    assert_true(report.largest_residual_ratio > 0 && report.largest_residual_ratio <= p.tolerance &&
                report.n_stagnated == 0);
    assert_true(report.seconds > 0);
    free(s);
}

static void test_threads_and_precision(void **state)
{
    (void)state;
    sample *const one = malloc(sizeof *one), *const two = malloc(sizeof *two);
    assert_true(one != NULL && two != NULL);
    grv_flow_sample_params p = small_params();
    p.tolerance = 1e-5;
    assert_int_equal(run(&p, one, NULL), GRV_OK);
    p.n_threads = 2;
    assert_int_equal(run(&p, two, NULL), GRV_OK);
    assert_memory_equal(one->target, two->target, sizeof one->target);
    assert_memory_equal(one->pressure, two->pressure, sizeof one->pressure);
    p.precision = GRV_FLOW_FLOAT64;
    assert_int_equal(run(&p, two, NULL), GRV_OK);
    double far = 0;
    for (int i = 0; i < CELLS; i++)
        for (int t = 0; t < FRAMES; t++)
            far = fmax(far, fabs((double)one->target[i][t] - (double)two->target[i][t]));
    assert_true(far > 0 && far < 0.005); /* of values up to 1: rounding, as it grows in a wake */
    free(one);
    free(two);
}

static bool stop_half_way(void *user, double done)
{
    *(double *)user = done;
    return done < 0.5;
}

static void test_stopping(void **state)
{
    (void)state;
    sample *const s = malloc(sizeof *s);
    assert_non_null(s);
    const grv_flow_sample_params p = small_params();
    const grv_flow_sample_arrays arrays = {.input = &s->input[0][0], .target = &s->target[0][0]};
    double done = 0;
    assert_int_equal(grv_flow_sample_run(&p, &arrays, stop_half_way, &done, NULL),
                     GRV_E_INTERRUPTED);
    assert_true(done >= 0.5 && done < 0.8);
    free(s);
}

static void expect_bad(grv_flow_sample_params p, const char *name)
{
    sample *const s = malloc(sizeof *s);
    assert_non_null(s);
    assert_int_equal(run(&p, s, NULL), GRV_E_ARG);
    assert_non_null(strstr(grv_error_message(), name));
    free(s);
}

static void test_bad_parameters(void **state)
{
    (void)state;
    const grv_flow_sample_params good = small_params();
    grv_flow_sample_params p = good;
    p.radius = 0, expect_bad(p, "radius"), p = good;
    p.centre[1] = 1, expect_bad(p, "centre[1]"), p = good;
    p.n[2] = 9, expect_bad(p, "centre[2]"), p = good;
    p.velocity[0] = p.velocity[1] = 0, expect_bad(p, "velocity"), p = good;
    p.n_snapshots = 0, expect_bad(p, "n_snapshots"), p = good;
    p.interval = NAN, expect_bad(p, "interval"), p = good;
    p.clip = -1, expect_bad(p, "clip"), p = good;
    p.scale = 0, expect_bad(p, "scale"), p = good;
    p.tolerance = 0, expect_bad(p, "tolerance"), p = good;
    float input = 0;
    const grv_flow_sample_arrays arrays = {.input = &input};
    assert_int_equal(grv_flow_sample_run(&good, &arrays, NULL, NULL, NULL), GRV_E_ARG);
}

/* The benchmark's problem language, and that it checks its answer. */
static void test_bench(void **state)
{
    (void)state;
    grv_bench_result result;
    assert_int_equal(grv_bench_flow("flow:tgv32dt2v3h2r5", &result), GRV_OK);
    assert_string_equal(result.problem, "flow:tgv32dt2v3h2r5");
    assert_true(result.correct && result.median_seconds > 0 && result.floor_seconds > 0 &&
                result.floor_ratio > 0);
    int n_found = 0;
    for (int i = 0; i < result.n_values; i++) {
        if (strcmp(result.values[i].name, "cycles_per_solve") == 0) {
            assert_true(fabs(result.values[i].value - 3) < 1e-12);
            n_found++;
        }
        if (strcmp(result.values[i].name, "bytes_per_cell") == 0) {
            assert_true(fabs(result.values[i].value - 2 * (230 + 450)) < 1e-12);
            n_found++;
        }
    }
    assert_int_equal(n_found, 2);
    const char *const bad[] = {"flow:",  "tgv",     "tgv0",  "tgv-3", "tgv32x",
                               "tgv32t", "tgv32t0", "box32", "",      "tgv32 t2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(grv_bench_flow(bad[i], &result), GRV_E_ARG);
    assert_int_equal(grv_flow_validate(4, 1, NULL, NULL, &result), GRV_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contents), cmocka_unit_test(test_threads_and_precision),
        cmocka_unit_test(test_stopping), cmocka_unit_test(test_bad_parameters),
        cmocka_unit_test(test_bench)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
