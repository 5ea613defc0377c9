/* The flow solver against literature: steady drag of a sphere and shedding behind a circle, both at Reynolds number 100 (spec 7.9). */
#include <math.h>
#include <stdio.h>

#include "core/check.h"
#include "grove/bench.h"
#include "grove/core.h"
#include "grove/flow.h"

static const double reynolds = 100;
/* literature */
static const double sphere_drag = 1.09, circle_drag = 1.34, circle_strouhal = 0.165;
static const double drag_bound = 0.10, strouhal_bound = 0.05;
/* convective times diameter / velocity */
static const double sphere_time = 30, sphere_averaged = 5, circle_time = 140, circle_averaged = 60;

/* Domain and control volume in diameters; direction 1 of the circle has one cell. */
typedef struct body_case {
    const char *name;
    double size[3], centre[3], low[3], high[3];
    bool is_plane;
    double time, averaged;
    double
        area; /* drag and lift are divided by area diameter^2 / 2 (sphere) or diameter / 2 (circle) */
} body_case;

static const body_case sphere_case = {.name = "sphere",
                                      .size = {12, 6, 6},
                                      .centre = {4, 3, 3},
                                      .low = {2.5, 1.5, 1.5},
                                      .high = {6.5, 4.5, 4.5},
                                      .time = sphere_time,
                                      .averaged = sphere_averaged,
                                      .area = 3.14159265358979323846 / 4};
static const body_case circle_case = {.name = "circle",
                                      .size = {28, 0, 22},
                                      .centre = {9, 0, 11},
                                      .low = {7, 0, 9},
                                      .high = {13, 0, 13},
                                      .is_plane = true,
                                      .time = circle_time,
                                      .averaged = circle_averaged,
                                      .area = 1};

/* Running means, and the lift's zero crossings. */
typedef struct force_record {
    double time, surface_drag, balance_drag,
        balance_lift_squares; /* integrals over the averaged time */
    double last_lift, last_time, first_crossing, last_crossing;
    int n_crossings; /* upward */
} force_record;

typedef struct teller {
    grv_bench_progress *progress;
    void *user;
    double before, part; /* of the whole run */
} teller;

/* Stirs the wake, so that the circle's shedding starts soon. */
static double stirred(void *user, int component, const double position[3])
{
    const double *const centre_and_diameter = user, diameter = centre_and_diameter[3];
    if (component == 0) return 1;
    if (component == 1) return 0;
    const double x = (position[0] - centre_and_diameter[0]) / diameter - 1.5,
                 z = (position[2] - centre_and_diameter[2]) / diameter;
    return 0.5 * exp(-(x * x + z * z));
}

static grv_status create_case(const body_case *c, double diameter, int n_threads,
                              grv_flow_sphere *sphere, grv_flow_circle *circle, grv_flow **flow)
{
    grv_flow_params params = grv_flow_params_default();
    int64_t low[3], high[3];
    for (int d = 0; d < 3; d++) {
        const bool is_flat = c->is_plane && d == 1;
        params.n[d] = is_flat ? 1 : llround(c->size[d] * diameter);
        params.periodic[d] = is_flat;
        sphere->centre[d] = circle->centre[d] = c->centre[d] * diameter;
        low[d] = is_flat ? 0 : llround(c->low[d] * diameter);
        high[d] = is_flat ? 1 : llround(c->high[d] * diameter);
    }
    sphere->radius = circle->radius = diameter / 2;
    circle->axis = 1;
    params.viscosity = diameter / reynolds;
    params.has_exit = true;
    params.n_threads = n_threads;
    params.distance = c->is_plane ? grv_flow_circle_distance : grv_flow_sphere_distance;
    params.body = c->is_plane ? (void *)circle : (void *)sphere;
    GRV_TRY(grv_flow_create(&params, flow));
    double stir[4] = {circle->centre[0], circle->centre[1], circle->centre[2], diameter};
    if (c->is_plane) grv_flow_velocity_set(*flow, stirred, stir);
    GRV_TRY(grv_flow_control_volume_set(*flow, low, high));
    return GRV_OK;
}

static void record_lift(force_record *r, double time, double lift)
{
    if (r->last_lift < 0 && lift >= 0) {
        const double crossing =
            r->last_time + (time - r->last_time) * r->last_lift / (r->last_lift - lift);
        if (r->n_crossings++ == 0) r->first_crossing = crossing;
        r->last_crossing = crossing;
    }
    r->last_lift = lift;
    r->last_time = time;
}

static grv_status record(const grv_flow *flow, force_record *r, double unit)
{
    const grv_flow_state state = grv_flow_state_get(flow);
    double pressure[3], viscous[3], balance[3];
    grv_flow_surface_force(flow, pressure, viscous);
    GRV_TRY(grv_flow_control_volume_force(flow, balance));
    r->time += state.dt;
    r->surface_drag += state.dt * (pressure[0] + viscous[0]) / unit;
    r->balance_drag += state.dt * balance[0] / unit;
    r->balance_lift_squares += state.dt * (balance[2] / unit) * (balance[2] / unit);
    record_lift(r, state.time, (pressure[2] + viscous[2]) / unit);
    return GRV_OK;
}

static grv_status run_case(const body_case *c, double diameter, int n_threads, const teller *tell,
                           force_record *r)
{
    grv_status status = GRV_OK;
    grv_flow *flow = NULL;
    grv_flow_sphere sphere = {.radius = 0};
    grv_flow_circle circle = {.radius = 0};
    const double unit = 0.5 * c->area * (c->is_plane ? diameter : diameter * diameter);
    *r = (force_record){0};
    GRV_TRY(create_case(c, diameter, n_threads, &sphere, &circle, &flow));
    for (double time = 0; time < c->time * diameter;) {
        GRV_TRY_GOTO(grv_flow_step(flow));
        const grv_flow_state state = grv_flow_state_get(flow);
        time = state.time;
        if (time > (c->time - c->averaged) * diameter) GRV_TRY_GOTO(record(flow, r, unit));
        if (tell->progress == NULL || state.n_steps % 10 != 0) continue;
        char line[96];
        const double done = fmin(1, time / (c->time * diameter));
        (void)snprintf(line, sizeof line, "%s at Re 100: time %.1f of %.0f, %.2f cycles a solve",
                       c->name, time / diameter, c->time,
                       (double)state.n_cycles / (double)state.n_solves);
        GRV_CHECK_GOTO(tell->progress(tell->user, tell->before + tell->part * done, line),
                       GRV_E_INTERRUPTED, "validation stopped at time %g", time);
    }
done:
    grv_flow_destroy(&flow);
    return status;
}

static bool is_within(double value, double expected, double bound)
{
    return fabs(value / expected - 1) < bound;
}

grv_status grv_flow_validate(int cells_per_diameter, int n_threads, grv_bench_progress *progress,
                             void *user, grv_bench_result *result)
{
    *result = (grv_bench_result){0};
    GRV_CHECK(cells_per_diameter >= 8 && cells_per_diameter <= 64, GRV_E_ARG,
              "cells_per_diameter must be in 8..64, got %d", cells_per_diameter);
    GRV_CHECK(n_threads >= 1, GRV_E_ARG, "n_threads must be >= 1, got %d", n_threads);
    const double diameter = cells_per_diameter, start = grv_clock_seconds();
    force_record sphere, circle;
    const teller first = {progress, user, 0, 0.5}, second = {progress, user, 0.5, 0.5};
    GRV_TRY(run_case(&circle_case, diameter, n_threads, &first, &circle));
    GRV_TRY(run_case(&sphere_case, diameter, n_threads, &second, &sphere));
    const double shedding =
        (circle.n_crossings - 1) / (circle.last_crossing - circle.first_crossing) * diameter;
    const double strouhal = circle.n_crossings > 1 ? shedding : 0;
    (void)snprintf(result->problem, sizeof result->problem, "flow:validate D%d t%d",
                   cells_per_diameter, n_threads);
    result->median_seconds = grv_clock_seconds() - start;
    grv_bench_result_add(result, "sphere_drag_balance", sphere.balance_drag / sphere.time);
    grv_bench_result_add(result, "sphere_drag_surface", sphere.surface_drag / sphere.time);
    grv_bench_result_add(result, "sphere_drag_literature", sphere_drag);
    grv_bench_result_add(result, "circle_drag_balance", circle.balance_drag / circle.time);
    grv_bench_result_add(result, "circle_drag_surface", circle.surface_drag / circle.time);
    grv_bench_result_add(result, "circle_drag_literature", circle_drag);
    grv_bench_result_add(result, "circle_lift_amplitude",
                         sqrt(2 * circle.balance_lift_squares / circle.time));
    grv_bench_result_add(result, "circle_strouhal", strouhal);
    grv_bench_result_add(result, "circle_strouhal_literature", circle_strouhal);
    result->correct = is_within(sphere.balance_drag / sphere.time, sphere_drag, drag_bound) &&
                      is_within(circle.balance_drag / circle.time, circle_drag, drag_bound) &&
                      is_within(strouhal, circle_strouhal, strouhal_bound);
    return GRV_OK;
}
