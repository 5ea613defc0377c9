/* One training sample: the flow past a sphere, or a shape (spec 7.1). */
#include <math.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/flow_sample.h"

grv_flow_sample_params grv_flow_sample_params_default(void)
{
    return (grv_flow_sample_params){.n = {32, 32, 32},
                                    .radius = 3,
                                    .centre = {8, 16, 16},
                                    .velocity = {1, 0.5, 0},
                                    .viscosity = 3.0 / 200,
                                    .n_snapshots = 16,
                                    .interval = 1,
                                    .clip = 0.3,
                                    .scale = 0.3,
                                    .tolerance = 1e-3,
                                    .n_threads = 1};
}

static double speed_of(const grv_flow_sample_params *p)
{
    return sqrt(p->velocity[0] * p->velocity[0] + p->velocity[1] * p->velocity[1] +
                p->velocity[2] * p->velocity[2]);
}

static grv_flow_pose pose_of(const grv_flow_sample_params *p)
{
    return (grv_flow_pose){p->radius, {p->rotation[0], p->rotation[1], p->rotation[2]}};
}

static grv_status check_place(const grv_flow_sample_params *p)
{
    double lower[3], upper[3];
    const grv_flow_pose pose = pose_of(p);
    for (int d = 0; d < 3; d++) {
        lower[d] = -p->radius;
        upper[d] = p->radius;
    }
    if (p->shape != NULL) grv_flow_shape_box(p->shape, &pose, lower, upper);
    for (int d = 0; d < 3; d++)
        GRV_CHECK(p->centre[d] + lower[d] >= 1 && p->centre[d] + upper[d] <= (double)p->n[d] - 1,
                  GRV_E_ARG,
                  "a body of radius %g at centre[%d] = %g reaches from %g to %g there, it must lie "
                  "within 1..%lld",
                  p->radius, d, p->centre[d], p->centre[d] + lower[d], p->centre[d] + upper[d],
                  (long long)p->n[d] - 1);
    return GRV_OK;
}

static grv_status check_params(const grv_flow_sample_params *p,
                               const grv_flow_sample_arrays *arrays)
{
    GRV_CHECK(arrays->input != NULL && arrays->target != NULL, GRV_E_ARG,
              "arrays input and target must not be NULL");
    GRV_CHECK(p->radius > 0 && isfinite(p->radius), GRV_E_ARG, "radius must be > 0, got %g",
              p->radius);
    GRV_TRY(check_place(p));
    GRV_CHECK(speed_of(p) > 0, GRV_E_ARG, "velocity must not be zero");
    GRV_CHECK(!p->has_exit || p->velocity[0] > 0, GRV_E_ARG,
              "velocity[0] must be > 0 where the upper x face is the exit, got %g", p->velocity[0]);
    GRV_CHECK(p->n_snapshots >= 1, GRV_E_ARG, "n_snapshots must be >= 1, got %lld",
              (long long)p->n_snapshots);
    GRV_CHECK(p->interval > 0 && isfinite(p->interval), GRV_E_ARG, "interval must be > 0, got %g",
              p->interval);
    GRV_CHECK(p->clip > 0 && isfinite(p->clip), GRV_E_ARG, "clip must be > 0, got %g", p->clip);
    GRV_CHECK(p->scale > 0 && isfinite(p->scale), GRV_E_ARG, "scale must be > 0, got %g", p->scale);
    return GRV_OK;
}

/* A flow and its body. */
typedef struct sample {
    grv_flow_sphere sphere;
    grv_flow_mesh *mesh;
    grv_flow *flow;
} sample;

static grv_status create_flow(const grv_flow_sample_params *p, sample *s)
{
    grv_flow_params params = grv_flow_params_default();
    const grv_flow_pose pose = pose_of(p);
    s->sphere.radius = p->radius;
    for (int d = 0; d < 3; d++) {
        params.n[d] = p->n[d];
        params.velocity[d] = p->velocity[d];
        params.mesh_centre[d] = s->sphere.centre[d] = p->centre[d];
    }
    if (p->shape != NULL) {
        GRV_TRY(grv_flow_mesh_create(p->shape, &pose, p->n_threads, &s->mesh));
        params.mesh = s->mesh;
    } else {
        params.distance = grv_flow_sphere_distance;
        params.body = &s->sphere;
    }
    params.viscosity = p->viscosity;
    params.has_exit = p->has_exit;
    params.scheme = p->scheme;
    params.precision = p->precision;
    params.n_threads = p->n_threads;
    params.tolerance = p->tolerance;
    GRV_TRY(grv_flow_create(&params, &s->flow));
    return GRV_OK;
}

/* Copies a quantity of the flow into one slot of an array with `slots` values a cell. */
static void put(const grv_flow *flow, grv_flow_quantity quantity, int component, double *values,
                int64_t cells, int64_t slots, int64_t slot, float *array)
{
    grv_flow_values(flow, quantity, component, values);
    for (int64_t i = 0; i < cells; i++) array[i * slots + slot] = (float)values[i];
}

static void take_snapshot(const grv_flow_sample_params *p, const grv_flow *flow, int64_t cells,
                          int64_t slot, double *values, const grv_flow_sample_arrays *arrays)
{
    grv_flow_values(flow, GRV_FLOW_VORTICITY, 2, values);
    for (int64_t i = 0; i < cells; i++) {
        const int64_t at = i * p->n_snapshots + slot;
        arrays->target[at] = (float)(fmin(p->clip, fmax(-p->clip, values[i])) / p->scale);
        if (arrays->vorticity != NULL) arrays->vorticity[at] = (float)values[i];
    }
    if (arrays->pressure != NULL)
        put(flow, GRV_FLOW_PRESSURE, 0, values, cells, p->n_snapshots, slot, arrays->pressure);
}

/* Steps to `time`, telling about each step. */
static grv_status advance(grv_flow *flow, double time, double end,
                          grv_flow_sample_progress *progress, void *user)
{
    for (bool is_there = false; !is_there;) {
        GRV_TRY(grv_flow_step_towards(flow, time, &is_there));
        GRV_CHECK(progress == NULL || progress(user, grv_flow_state_get(flow).time / end),
                  GRV_E_INTERRUPTED, "flow sample stopped at time %g of %g",
                  grv_flow_state_get(flow).time, end);
    }
    return GRV_OK;
}

static void fill_report(const grv_flow *flow, double set_up_seconds, double seconds,
                        grv_flow_sample_report *report)
{
    const grv_flow_state state = grv_flow_state_get(flow);
    *report = (grv_flow_sample_report){.n_steps = state.n_steps,
                                       .n_cycles = state.n_cycles,
                                       .n_solves = state.n_solves,
                                       .n_stagnated = state.n_stagnated,
                                       .largest_residual_ratio = state.largest_residual_ratio,
                                       .body_volume = grv_flow_body_volume(flow),
                                       .set_up_seconds = set_up_seconds,
                                       .seconds = seconds};
}

grv_status grv_flow_sample_run(const grv_flow_sample_params *params,
                               const grv_flow_sample_arrays *arrays,
                               grv_flow_sample_progress *progress, void *user,
                               grv_flow_sample_report *report)
{
    grv_status status = GRV_OK;
    sample s = {.flow = NULL};
    double *values = NULL;
    const double start = grv_clock_seconds();
    GRV_TRY(check_params(params, arrays));
    GRV_TRY_GOTO(create_flow(params, &s));
    const double set_up_seconds = grv_clock_seconds() - start;
    const int64_t cells = params->n[0] * params->n[1] * params->n[2];
    const double unit = params->interval * params->radius / speed_of(params),
                 end = unit * (double)params->n_snapshots;
    GRV_TRY_GOTO(GRVI_ALLOC(&values, cells));
    for (int c = 0; c < 3; c++)
        put(s.flow, GRV_FLOW_FACE_OPEN, c, values, cells, 3, c, arrays->input);
    for (int64_t slot = 0; slot < params->n_snapshots; slot++) {
        GRV_TRY_GOTO(advance(s.flow, unit * (double)(slot + 1), end, progress, user));
        take_snapshot(params, s.flow, cells, slot, values, arrays);
    }
    if (report != NULL) fill_report(s.flow, set_up_seconds, grv_clock_seconds() - start, report);
done:
    grv_free(values);
    grv_flow_destroy(&s.flow);
    grv_flow_mesh_destroy(&s.mesh);
    return status;
}
