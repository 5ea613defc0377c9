/* Flow with bodies: hydrostatics, added mass, moving with the flow, blocked channels, forces by two methods. */
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
    return flow;
}

/* A plane flow in directions 0 and 2 around a circle. */
static grv_flow_params circle_params(int64_t n0, int64_t n2, grv_flow_circle *circle)
{
    grv_flow_params p = grv_flow_params_default();
    circle->axis = 1;
    p.n[0] = n0, p.n[1] = 1, p.n[2] = n2;
    p.periodic[1] = true;
    p.distance = grv_flow_circle_distance;
    p.body = circle;
    return p;
}

static void test_distances(void **state)
{
    (void)state;
    double v[3] = {0};
    grv_flow_sphere sphere = {.centre = {1, 2, 3}, .radius = 2, .velocity = {0, 1, 0}};
    assert_true(fabs(grv_flow_sphere_distance(&sphere, (double[]){1, 2, 8}, 0, v) - 3) < 1e-12);
    assert_true(fabs(grv_flow_sphere_distance(&sphere, (double[]){1, 5, 3}, 3, v) + 2) < 1e-12);
    assert_true(fabs(v[1] - 1) < 1e-12);
    grv_flow_box box = {.centre = {0, 0, 0}, .half_size = {1, 2, 3}};
    assert_true(fabs(grv_flow_box_distance(&box, (double[]){4, 6, 0}, 0, v) - 5) < 1e-12);
    assert_true(fabs(grv_flow_box_distance(&box, (double[]){0.5, 0, 0}, 0, v) + 0.5) < 1e-12);
    grv_flow_circle circle = {.centre = {0, 9, 0}, .radius = 1, .axis = 1};
    assert_true(fabs(grv_flow_circle_distance(&circle, (double[]){3, -5, 4}, 0, v) - 4) < 1e-12);
}

static void down(void *user, double time, double value[3])
{
    (void)user, (void)time;
    value[0] = 0;
    value[1] = 0;
    value[2] = -1;
}

/* A fluid at rest under its weight, p = -z, presses on a circle with the weight of what it displaces. mu0 on a surface is 1/2. */
static void test_hydrostatics(void **state)
{
    (void)state;
    grv_flow_circle circle = {.centre = {16, 0, 16}, .radius = 8};
    grv_flow_params p = circle_params(32, 32, &circle);
    p.velocity[0] = 0;
    p.force_of = down;
    p.precision = GRV_FLOW_FLOAT64;
    p.tolerance = 1e-8;
    grv_flow *flow = create(&p);
    for (int s = 0; s < 2; s++) assert_int_equal(grv_flow_step(flow), GRV_OK);
    double pressure[3], viscous[3], open[32 * 32], velocity[32 * 32];
    grv_flow_surface_force(flow, pressure, viscous);
    assert_true(fabs(pressure[2] / (pi * 64) - 1) < 2e-3 && fabs(pressure[0]) < 1e-3);
    assert_true(fabs(viscous[0]) < 1e-6 && fabs(viscous[2]) < 1e-6);
    grv_flow_values(flow, GRV_FLOW_VELOCITY, 2, velocity);
    for (int i = 0; i < 32 * 32; i++) assert_true(fabs(velocity[i]) < 1e-6);
    grv_flow_values(flow, GRV_FLOW_FACE_OPEN, 0, open);
    /* the lower x face of cell (8, 16) is at (8, 16.5): just inside; walls are closed; far away all is open */
    const double distance = sqrt(64 + 0.25) - 8, s = distance;
    assert_true(fabs(open[8 * 32 + 16] - (1 + s + sin(pi * s) / pi) / 2) < 1e-4);
    assert_true(open[0] <= 0 && open[16 * 32 + 16] <= 0 && open[2 * 32 + 2] >= 1);
    grv_flow_destroy(&flow);
}

static void linear_velocity(void *user, double time, double value[3])
{
    (void)user;
    value[0] = time;
    value[1] = value[2] = 0;
}

/* Added mass of a circle: the pressure resists the acceleration of the fluid around it by the mass of the displaced fluid. */
static void test_added_mass(void **state)
{
    (void)state;
    const double radius = 32;
    const int64_t n = 1024;
    grv_flow_circle circle = {.centre = {512, 0, 512}, .radius = radius};
    grv_flow_params p = circle_params(n, n, &circle);
    p.velocity_of = linear_velocity;
    p.viscosity = 0;
    grv_flow *flow = create(&p);
    assert_int_equal(grv_flow_step(flow), GRV_OK);
    const grv_flow_state now = grv_flow_state_get(flow);
    double pressure[3], viscous[3], largest = 0;
    grv_flow_surface_force(flow, pressure, viscous);
    assert_true(fabs(pressure[0] / (pi * radius * radius) - 1) < 0.04);
    assert_true(fabs(pressure[2] / (pi * radius * radius)) < 0.01);
    double *const u = malloc((size_t)(n * n) * sizeof *u);
    assert_non_null(u);
    grv_flow_values(flow, GRV_FLOW_VELOCITY, 0, u);
    for (int64_t i = 0; i < n * n; i++) largest = fmax(largest, u[i]);
    assert_true(largest > 1.91 * now.time && largest < 2.02 * now.time);
    free(u);
    grv_flow_destroy(&flow);
}

/* A circle that moves with the flow does not disturb it. */
static void test_moving_with_the_flow(void **state)
{
    (void)state;
    grv_flow_circle circle = {.centre = {10, 0, 16}, .radius = 6, .velocity = {1, 0, 0}};
    grv_flow_params p = circle_params(32, 32, &circle);
    p.body_moves = true;
    grv_flow *flow = create(&p);
    assert_int_equal(grv_flow_run_until(flow, 4), GRV_OK);
    double u[32 * 32];
    grv_flow_values(flow, GRV_FLOW_VELOCITY, 0, u);
    for (int i = 0; i < 32 * 32; i++) assert_true(fabs(u[i] - 1) < 1e-4);
    grv_flow_values(flow, GRV_FLOW_FACE_OPEN, 0, u);
    assert_true(u[14 * 32 + 16] <= 0 && u[6 * 32 + 16] >= 1);
    grv_flow_destroy(&flow);
}

static void test_blocked_channels(void **state)
{
    (void)state;
    grv_flow_circle circle = {.centre = {32, 0, 8}, .radius = 4};
    grv_flow_params p = circle_params(128, 16, &circle);
    grv_flow *flow = create(&p);
    for (int s = 0; s < 20; s++) {
        assert_int_equal(grv_flow_step(flow), GRV_OK);
        assert_true(grv_flow_state_get(flow).last_cycles <= 10);
    }
    assert_true(grv_flow_state_get(flow).largest_residual_ratio <= p.tolerance);
    grv_flow_destroy(&flow);

    grv_flow_sphere sphere = {.centre = {32, 8, 8}, .radius = 5.6};
    p = grv_flow_params_default();
    p.n[0] = 128, p.n[1] = 16, p.n[2] = 16;
    p.distance = grv_flow_sphere_distance;
    p.body = &sphere;
    p.has_exit = true;
    flow = create(&p);
    for (int s = 0; s < 10; s++) {
        assert_int_equal(grv_flow_step(flow), GRV_OK);
        assert_true(grv_flow_state_get(flow).last_cycles <= 12);
    }
    assert_true(grv_flow_state_get(flow).largest_residual_ratio <= p.tolerance);
    grv_flow_destroy(&flow);
}

/* Steady drag at Re 20 in a channel by the surface integral and by the momentum balance around it. */
static void test_two_ways_to_the_force(void **state)
{
    (void)state;
    grv_flow_circle circle = {.centre = {20, 0, 24.3}, .radius = 6};
    grv_flow_params p = circle_params(72, 48, &circle);
    p.viscosity = 12.0 / 20;
    p.has_exit = true;
    grv_flow *flow = create(&p);
    const int64_t low[3] = {8, 0, 8}, high[3] = {36, 1, 40};
    assert_int_equal(grv_flow_control_volume_set(flow, low, high), GRV_OK);
    assert_int_equal(grv_flow_run_until(flow, 240), GRV_OK);
    double pressure[3], viscous[3], balance[3];
    grv_flow_surface_force(flow, pressure, viscous);
    assert_int_equal(grv_flow_control_volume_force(flow, balance), GRV_OK);
    const double drag = pressure[0] + viscous[0];
    /* the smoothed surface integral is low on coarse bodies (docs/flow.md) */
    assert_true(drag > 0 && drag < balance[0] && drag > 0.8 * balance[0]);
    assert_true(fabs(balance[2]) < 0.03 * balance[0]);
    /* moving the control surface must not change the balance */
    const int64_t low2[3] = {4, 0, 4}, high2[3] = {50, 1, 44};
    assert_int_equal(grv_flow_control_volume_set(flow, low2, high2), GRV_OK);
    assert_int_equal(grv_flow_step(flow), GRV_OK);
    double balance2[3];
    assert_int_equal(grv_flow_control_volume_force(flow, balance2), GRV_OK);
    assert_true(fabs(balance2[0] / balance[0] - 1) < 0.02);
    grv_flow_destroy(&flow);
}

static double nowhere(void *body, const double position[3], double time, double velocity[3])
{
    (void)body, (void)time, (void)velocity;
    return position[0] > 5 ? NAN : 1;
}

static void test_distance_that_is_not_a_number(void **state)
{
    (void)state;
    grv_flow_params p = grv_flow_params_default();
    grv_flow *flow = NULL;
    p.distance = nowhere;
    assert_int_equal(grv_flow_create(&p, &flow), GRV_E_NUMERIC);
    assert_null(flow);
    assert_non_null(strstr(grv_error_message(), "distance"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distances),
                                       cmocka_unit_test(test_hydrostatics),
                                       cmocka_unit_test(test_added_mass),
                                       cmocka_unit_test(test_moving_with_the_flow),
                                       cmocka_unit_test(test_blocked_channels),
                                       cmocka_unit_test(test_two_ways_to_the_force),
                                       cmocka_unit_test(test_distance_that_is_not_a_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
