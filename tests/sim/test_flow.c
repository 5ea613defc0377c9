/* Flow without bodies: exact solutions, order of accuracy, time step limit, threads, precision, errors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grove/flow.h"

static const double pi = 3.14159265358979323846;

static grv_flow *create(const grv_flow_params *params)
{
    grv_flow *flow = NULL;
    assert_int_equal(grv_flow_create(params, &flow), GRV_OK);
    assert_non_null(flow);
    return flow;
}

static double *values_of(const grv_flow *flow, const grv_flow_params *params,
                         grv_flow_quantity quantity, int component)
{
    double *const values =
        malloc((size_t)(params->n[0] * params->n[1] * params->n[2]) * sizeof *values);
    assert_non_null(values);
    grv_flow_values(flow, quantity, component, values);
    return values;
}

static int64_t cells_of(const grv_flow_params *params)
{
    return params->n[0] * params->n[1] * params->n[2];
}

static grv_flow_params plane_params(int64_t n0, int64_t n2)
{
    grv_flow_params p = grv_flow_params_default();
    p.n[0] = n0;
    p.n[1] = 1;
    p.n[2] = n2;
    p.periodic[1] = true;
    return p;
}

/* ---- exact solutions ---- */

static double at_rest(void *user, int component, const double position[3])
{
    (void)user, (void)component, (void)position;
    return 0;
}

/* Fluid at rest in a box whose boundary starts to move: the first pressure makes it move as one. */
static void test_impulsive_box(void **state)
{
    (void)state;
    for (int precision = 0; precision < 2; precision++) {
        grv_flow_params p = plane_params(16, 16);
        p.velocity[0] = 2.0 / 3;
        p.velocity[2] = -1.0 / 3;
        p.precision = (grv_flow_precision)precision;
        p.tolerance = 1e-4;
        grv_flow *flow = create(&p);
        grv_flow_velocity_set(flow, at_rest, NULL);
        assert_int_equal(grv_flow_step(flow), GRV_OK);
        for (int c = 0; c < 3; c++) {
            double *const u = values_of(flow, &p, GRV_FLOW_VELOCITY, c), squares = 0;
            for (int64_t i = 0; i < cells_of(&p); i++)
                squares += (u[i] - p.velocity[c]) * (u[i] - p.velocity[c]);
            assert_true(squares < 2e-5);
            free(u);
        }
        grv_flow_destroy(&flow);
        assert_null(flow);
    }
}

typedef struct vortex_case {
    int64_t n;
    int across; /* direction of the single cell */
} vortex_case;

static double vortex(void *user, int component, const double position[3])
{
    const vortex_case *const v = user;
    const int a = (v->across + 1) % 3, b = (v->across + 2) % 3;
    const double k = 2 * pi / (double)v->n, x = k * position[a], y = k * position[b];
    if (component == a) return -sin(x) * cos(y);
    return component == b ? cos(x) * sin(y) : 0;
}

/* Root-mean-square error of a Taylor-Green vortex after a tenth of a turn; the length of the domain is n, the Reynolds number fixed. */
static double vortex_error(int64_t n, int across, grv_flow_scheme scheme)
{
    vortex_case v = {n, across};
    grv_flow_params p = grv_flow_params_default();
    for (int d = 0; d < 3; d++) {
        p.n[d] = d == across ? 1 : n;
        p.periodic[d] = true;
        p.velocity[d] = 0;
    }
    p.viscosity = 1e-2 * (double)n / (2 * pi);
    p.precision = GRV_FLOW_FLOAT64;
    p.scheme = scheme;
    p.tolerance = 1e-6;
    p.max_dt = p.first_dt = 0.2;
    grv_flow *flow = create(&p);
    grv_flow_velocity_set(flow, vortex, &v);
    const double time = 0.1 * (double)n, k = 2 * pi / (double)n,
                 decay = exp(-2 * p.viscosity * k * k * time);
    assert_int_equal(grv_flow_run_until(flow, time), GRV_OK);
    assert_true(fabs(grv_flow_state_get(flow).time - time) < 1e-9);
    double squares = 0;
    for (int c = 0; c < 3; c++) {
        double *const u = values_of(flow, &p, GRV_FLOW_VELOCITY, c);
        int64_t at = 0;
        for (int64_t i = 0; i < p.n[0]; i++)
            for (int64_t j = 0; j < p.n[1]; j++)
                for (int64_t l = 0; l < p.n[2]; l++, at++) {
                    const double x[3] = {(double)i + (c == 0 ? 0 : 0.5),
                                         (double)j + (c == 1 ? 0 : 0.5),
                                         (double)l + (c == 2 ? 0 : 0.5)};
                    const double error = u[at] - decay * vortex(&v, c, x);
                    squares += error * error;
                }
        free(u);
    }
    grv_flow_destroy(&flow);
    return sqrt(squares / (double)cells_of(&p));
}

static void test_vortex_decays_at_second_order(void **state)
{
    (void)state;
    for (int across = 0; across < 3; across++) {
        const double coarse = vortex_error(16, across, GRV_FLOW_CENTRAL),
                     fine = vortex_error(32, across, GRV_FLOW_CENTRAL);
        assert_true(fine < 2e-3);
        assert_true(log2(coarse / fine) > 1.85 && log2(coarse / fine) < 2.3);
    }
    /* the limiter acts at the extrema only, which are fewer on finer grids */
    for (int scheme = 0; scheme < 3; scheme++) {
        const double coarse = vortex_error(32, 1, (grv_flow_scheme)scheme),
                     fine = vortex_error(64, 1, (grv_flow_scheme)scheme);
        assert_true(fine < 2e-3);
        assert_true(log2(coarse / fine) > 1.6);
    }
}

static void growing_force(void *user, double time, double value[3])
{
    const double *const jerk = user;
    for (int d = 0; d < 3; d++) value[d] = jerk[d] * time;
}

/* A force that grows as jerk t in a periodic box: the velocity is jerk t^2 / 2, exactly, for two-stage steps. */
static void test_body_force(void **state)
{
    (void)state;
    double jerk[3] = {0.01, -0.02, 0.005};
    grv_flow_params p = grv_flow_params_default();
    for (int d = 0; d < 3; d++) {
        p.n[d] = 8;
        p.periodic[d] = true;
        p.velocity[d] = 0;
    }
    p.force_of = growing_force;
    p.user = jerk;
    p.max_dt = 0.5;
    grv_flow *flow = create(&p);
    assert_int_equal(grv_flow_run_until(flow, 5), GRV_OK);
    for (int c = 0; c < 3; c++) {
        double *const u = values_of(flow, &p, GRV_FLOW_VELOCITY, c);
        for (int64_t i = 0; i < cells_of(&p); i++) assert_true(fabs(u[i] - jerk[c] * 12.5) < 1e-5);
        free(u);
    }
    grv_flow_destroy(&flow);
}

static double shear(void *user, int component, const double position[3])
{
    (void)user;
    return component == 0   ? 3 * position[1] - position[2]
           : component == 1 ? 2 * position[0]
                            : 0.5 * position[1];
}

static void test_vorticity_of_linear_field(void **state)
{
    (void)state;
    grv_flow_params p = grv_flow_params_default();
    p.n[0] = 6, p.n[1] = 7, p.n[2] = 9;
    p.precision = GRV_FLOW_FLOAT64;
    grv_flow *flow = create(&p);
    grv_flow_velocity_set(flow, shear, NULL);
    const double expected[3] = {0.5, -1, -1};
    for (int c = 0; c < 3; c++) {
        double *const w = values_of(flow, &p, GRV_FLOW_VORTICITY, c);
        for (int64_t i = 2; i < 5; i++)
            for (int64_t j = 2; j < 6; j++)
                for (int64_t k = 2; k < 8; k++)
                    assert_true(fabs(w[(i * 7 + j) * 9 + k] - expected[c]) < 1e-12);
        for (int64_t i = 0; i < cells_of(&p); i++) assert_true(isfinite(w[i]));
        free(w);
    }
    grv_flow_destroy(&flow);
}

/* ---- robustness ---- */

static double rough(void *user, int component, const double position[3])
{
    (void)user;
    const double s = 37 * position[0] + 91 * position[1] + 53 * position[2] + 11 * component;
    return sin(s * s);
}

static void test_all_schemes_stay_finite(void **state)
{
    (void)state;
    for (int scheme = 0; scheme < 3; scheme++) {
        for (int is_periodic = 0; is_periodic < 2; is_periodic++) {
            grv_flow_params p = grv_flow_params_default();
            for (int d = 0; d < 3; d++) {
                p.n[d] = 16;
                p.periodic[d] = is_periodic != 0;
            }
            p.scheme = (grv_flow_scheme)scheme;
            p.viscosity = 0;
            grv_flow *flow = create(&p);
            grv_flow_velocity_set(flow, rough, NULL);
            const double start = grv_flow_kinetic_energy(flow);
            for (int i = 0; i < 60; i++) assert_int_equal(grv_flow_step(flow), GRV_OK);
            const double energy = grv_flow_kinetic_energy(flow);
            /* the central scheme has no diffusion of its own, and Heun's method grows a little without */
            assert_true(isfinite(energy) && energy < (scheme == GRV_FLOW_CENTRAL ? 30 : 1) * start);
            grv_flow_destroy(&flow);
        }
    }
}

static void test_divergence_is_under_the_tolerance(void **state)
{
    (void)state;
    grv_flow_params p = grv_flow_params_default();
    p.n[0] = 24, p.n[1] = 20, p.n[2] = 18;
    p.precision = GRV_FLOW_FLOAT64;
    double before = 0;
    for (int i = 0; i < 2; i++) {
        p.tolerance = i == 0 ? 1e-2 : 1e-6;
        grv_flow *flow = create(&p);
        grv_flow_velocity_set(flow, rough, NULL);
        for (int s = 0; s < 3; s++) assert_int_equal(grv_flow_step(flow), GRV_OK);
        const grv_flow_state now = grv_flow_state_get(flow);
        assert_true(now.largest_residual_ratio > 0 && now.largest_residual_ratio <= p.tolerance);
        assert_true(now.n_stagnated == 0 && now.n_solves == 6 && now.n_steps == 3);
        double largest = 0;
        const double divergence = grv_flow_divergence(flow, &largest);
        assert_true(largest >= divergence);
        if (i == 1) assert_true(divergence < 1e-3 * before);
        before = divergence;
        grv_flow_destroy(&flow);
    }
}

/* A tolerance that float cannot reach ends by itself, without the cycle limit. */
static void test_rounding_is_noticed(void **state)
{
    (void)state;
    grv_flow_params p = grv_flow_params_default();
    for (int d = 0; d < 3; d++) p.n[d] = 16;
    p.tolerance = 1e-12;
    p.max_cycles = 1000;
    grv_flow *flow = create(&p);
    grv_flow_velocity_set(flow, rough, NULL);
    for (int s = 0; s < 3; s++) assert_int_equal(grv_flow_step(flow), GRV_OK);
    const grv_flow_state now = grv_flow_state_get(flow);
    assert_true(now.n_cycles < 6 * 20);
    assert_true(now.last_residual_ratio < 1e-5);
    grv_flow_destroy(&flow);
}

/* ---- independence ---- */

static void compare_threads(const grv_flow_params *params)
{
    grv_flow_params p = *params;
    double *reference[4] = {NULL};
    for (int threads = 1; threads <= 3; threads++) {
        p.n_threads = threads;
        grv_flow *flow = create(&p);
        grv_flow_velocity_set(flow, rough, NULL);
        for (int s = 0; s < 3; s++) assert_int_equal(grv_flow_step(flow), GRV_OK);
        for (int c = 0; c < 4; c++) {
            double *const u =
                values_of(flow, &p, c < 3 ? GRV_FLOW_VELOCITY : GRV_FLOW_PRESSURE, c % 3);
            if (threads == 1)
                reference[c] = u;
            else {
                assert_memory_equal(u, reference[c], (size_t)cells_of(&p) * sizeof *u);
                free(u);
            }
        }
        grv_flow_destroy(&flow);
    }
    for (int c = 0; c < 4; c++) free(reference[c]);
}

static void test_threads_do_not_matter(void **state)
{
    (void)state;
    grv_flow_params p = grv_flow_params_default();
    grv_flow_sphere sphere = {.centre = {14, 12, 15}, .radius = 4};
    p.n[0] = 48, p.n[1] = 24, p.n[2] = 30;
    p.distance = grv_flow_sphere_distance;
    p.body = &sphere;
    compare_threads(&p);
    p.has_exit = true;
    p.precision = GRV_FLOW_FLOAT64;
    compare_threads(&p);
    p.has_exit = false;
    for (int d = 0; d < 3; d++) p.periodic[d] = true;
    compare_threads(&p);
    p.n[0] = 45, p.n[1] = 23, p.n[2] = 31; /* odd rings: red meets red across the end */
    compare_threads(&p);
}

static void test_precisions_agree(void **state)
{
    (void)state;
    double *u[2];
    grv_flow_params p = grv_flow_params_default();
    grv_flow_sphere sphere = {.centre = {8, 8, 8}, .radius = 3};
    for (int d = 0; d < 3; d++) p.n[d] = 16;
    p.distance = grv_flow_sphere_distance;
    p.body = &sphere;
    p.tolerance = 1e-5;
    p.max_dt = 0.3;
    for (int precision = 0; precision < 2; precision++) {
        p.precision = (grv_flow_precision)precision;
        grv_flow *flow = create(&p);
        for (int s = 0; s < 10; s++) assert_int_equal(grv_flow_step(flow), GRV_OK);
        u[precision] = values_of(flow, &p, GRV_FLOW_VELOCITY, 0);
        grv_flow_destroy(&flow);
    }
    for (int64_t i = 0; i < cells_of(&p); i++) assert_true(fabs(u[0][i] - u[1][i]) < 2e-4);
    free(u[0]);
    free(u[1]);
}

/* ---- errors ---- */

static void expect_bad(grv_flow_params params, const char *name)
{
    grv_flow *flow = NULL;
    assert_int_equal(grv_flow_create(&params, &flow), GRV_E_ARG);
    assert_null(flow);
    assert_non_null(strstr(grv_error_message(), name));
    assert_true(grv_flow_bytes(&params) == 0);
}

static void test_bad_parameters(void **state)
{
    (void)state;
    const grv_flow_params good = grv_flow_params_default();
    grv_flow_params p = good;
    p.n[1] = 0, expect_bad(p, "n[1]"), p = good;
    p.n[2] = 2, expect_bad(p, "n[2]"), p = good;
    p.viscosity = -1, expect_bad(p, "viscosity"), p = good;
    p.viscosity = NAN, expect_bad(p, "viscosity"), p = good;
    p.velocity[2] = INFINITY, expect_bad(p, "velocity[2]"), p = good;
    p.scheme = (grv_flow_scheme)7, expect_bad(p, "scheme"), p = good;
    p.precision = (grv_flow_precision)2, expect_bad(p, "precision"), p = good;
    p.n_threads = 0, expect_bad(p, "n_threads"), p = good;
    p.first_dt = 0, expect_bad(p, "first_dt"), p = good;
    p.max_dt = -1, expect_bad(p, "max_dt"), p = good;
    p.tolerance = 1, expect_bad(p, "tolerance"), p = good;
    p.max_cycles = 0, expect_bad(p, "max_cycles"), p = good;
    p.fixed_cycles = -1, expect_bad(p, "fixed_cycles"), p = good;
    p.half_sweeps = 17, expect_bad(p, "half_sweeps"), p = good;
    p.periodic[0] = p.has_exit = true, expect_bad(p, "has_exit"), p = good;
    grv_flow *flow = create(&p);
    assert_int_equal(grv_flow_control_volume_set(flow, (int64_t[]){0, 1, 1}, (int64_t[]){4, 4, 4}),
                     GRV_E_ARG);
    assert_int_equal(grv_flow_control_volume_set(flow, (int64_t[]){1, 5, 1}, (int64_t[]){4, 4, 4}),
                     GRV_E_ARG);
    assert_int_equal(grv_flow_control_volume_force(flow, (double[3]){0}), GRV_E_ARG);
    grv_flow_destroy(&flow);
    grv_flow_destroy(&flow);
    grv_flow_destroy(NULL);
}

static double broken(void *user, int component, const double position[3])
{
    (void)user;
    return component == 1 && position[0] < 3 && position[0] > 2 ? NAN : 0;
}

static void test_nan_names_the_step(void **state)
{
    (void)state;
    for (int precision = 0; precision < 2; precision++) {
        grv_flow_params p = grv_flow_params_default();
        for (int d = 0; d < 3; d++) p.n[d] = 8;
        p.precision = (grv_flow_precision)precision;
        grv_flow *flow = create(&p);
        assert_int_equal(grv_flow_step(flow), GRV_OK);
        grv_flow_velocity_set(flow, broken, NULL);
        assert_int_equal(grv_flow_step(flow), GRV_E_NUMERIC);
        assert_non_null(strstr(grv_error_message(), "step 2"));
        grv_flow_destroy(&flow);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_impulsive_box),
                                       cmocka_unit_test(test_vortex_decays_at_second_order),
                                       cmocka_unit_test(test_body_force),
                                       cmocka_unit_test(test_vorticity_of_linear_field),
                                       cmocka_unit_test(test_all_schemes_stay_finite),
                                       cmocka_unit_test(test_divergence_is_under_the_tolerance),
                                       cmocka_unit_test(test_rounding_is_noticed),
                                       cmocka_unit_test(test_threads_do_not_matter),
                                       cmocka_unit_test(test_precisions_agree),
                                       cmocka_unit_test(test_bad_parameters),
                                       cmocka_unit_test(test_nan_names_the_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
