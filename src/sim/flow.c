/* The time step: predictor and corrector, each convection-diffusion, body, boundaries and pressure projection (spec 7.5).
 * Two velocities are held: the predictor reads `velocity` (u0) and writes `predicted`; the corrector, which needs u0 only cell by cell,
 * overwrites it with the mean of the projected predictor and of an Euler step with the predictor's slope.
 * Bytes and time per cell and step: docs/flow.md. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/flow_mesh.h"
#include "sim/flow_impl.h"

grv_flow_params grv_flow_params_default(void)
{
    return (grv_flow_params){.n = {32, 32, 32},
                             .velocity = {1, 0, 0},
                             .viscosity = 0.04,
                             .n_threads = 1,
                             .first_dt = 0.25,
                             .max_dt = 10,
                             .tolerance = 1e-3,
                             .max_cycles = 32,
                             .half_sweeps = 4};
}

static grv_status check_grid(const grv_flow_params *p)
{
    for (int d = 0; d < 3; d++) {
        GRV_CHECK(p->n[d] >= 1 && p->n[d] <= INT32_MAX / 4, GRV_E_ARG,
                  "n[%d] must be in 1..%d, got %lld", d, INT32_MAX / 4, (long long)p->n[d]);
        GRV_CHECK(p->periodic[d] || p->n[d] >= 3, GRV_E_ARG,
                  "n[%d] must be at least 3 where the direction is not periodic, got %lld", d,
                  (long long)p->n[d]);
        GRV_CHECK(isfinite(p->velocity[d]), GRV_E_ARG, "velocity[%d] must be finite, got %g", d,
                  p->velocity[d]);
    }
    GRV_CHECK(!(p->has_exit && p->periodic[0]), GRV_E_ARG,
              "has_exit needs periodic[0] to be false");
    return GRV_OK;
}

static grv_status check_mesh(const grv_flow_params *p)
{
    if (p->mesh == NULL) return GRV_OK;
    const grv_flow_mesh_info info = grv_flow_mesh_info_get(p->mesh);
    GRV_CHECK(p->distance == NULL, GRV_E_ARG, "a body is either a distance or a mesh, got both");
    for (int d = 0; d < 3; d++) {
        const double low = p->mesh_centre[d] + info.lower[d],
                     high = p->mesh_centre[d] + info.upper[d];
        const long long n = p->n[d];
        GRV_CHECK(high > 0 && low < (double)n, GRV_E_ARG,
                  "the mesh reaches from %g to %g along %c, outside of the domain, 0..%lld", low,
                  high, "xyz"[d], n);
    }
    return GRV_OK;
}

static grv_status check_params(const grv_flow_params *p)
{
    GRV_TRY(check_grid(p));
    GRV_TRY(check_mesh(p));
    GRV_CHECK(p->viscosity >= 0 && isfinite(p->viscosity), GRV_E_ARG,
              "viscosity must be >= 0, got %g", p->viscosity);
    GRV_CHECK(p->scheme >= GRV_FLOW_LIMITED && p->scheme <= GRV_FLOW_VAN_LEER, GRV_E_ARG,
              "scheme must be 0..2, got %d", (int)p->scheme);
    GRV_CHECK(p->precision == GRV_FLOW_FLOAT32 || p->precision == GRV_FLOW_FLOAT64, GRV_E_ARG,
              "precision must be 0 or 1, got %d", (int)p->precision);
    GRV_CHECK(p->n_threads >= 1, GRV_E_ARG, "n_threads must be >= 1, got %d", p->n_threads);
    GRV_CHECK(p->first_dt > 0 && isfinite(p->first_dt), GRV_E_ARG, "first_dt must be > 0, got %g",
              p->first_dt);
    GRV_CHECK(p->max_dt > 0 && isfinite(p->max_dt), GRV_E_ARG, "max_dt must be > 0, got %g",
              p->max_dt);
    GRV_CHECK(p->tolerance > 0 && p->tolerance < 1, GRV_E_ARG,
              "tolerance must be in (0, 1), got %g", p->tolerance);
    GRV_CHECK(p->max_cycles >= 1, GRV_E_ARG, "max_cycles must be >= 1, got %d", p->max_cycles);
    GRV_CHECK(p->fixed_cycles >= 0, GRV_E_ARG, "fixed_cycles must be >= 0, got %d",
              p->fixed_cycles);
    GRV_CHECK(p->half_sweeps >= 1 && p->half_sweeps <= GRVI_MULTIGRID_MAX_HALF_SWEEPS, GRV_E_ARG,
              "half_sweeps must be in 1..%d, got %d", (int)GRVI_MULTIGRID_MAX_HALF_SWEEPS,
              p->half_sweeps);
    return GRV_OK;
}

static size_t real_bytes(bool is_double)
{
    return is_double ? sizeof(double) : sizeof(float);
}

static grvi_multigrid_options multigrid_options(const grv_flow_params *p)
{
    return (grvi_multigrid_options){.is_double = p->precision == GRV_FLOW_FLOAT64,
                                    .n_threads = p->n_threads,
                                    .half_sweeps = p->half_sweeps,
                                    .max_cycles = p->max_cycles,
                                    .fixed_cycles = p->fixed_cycles,
                                    .tolerance = p->tolerance};
}

int64_t grv_flow_bytes(const grv_flow_params *params)
{
    grvi_flow_grid grid;
    const bool is_double = params->precision == GRV_FLOW_FLOAT64;
    const grvi_multigrid_options options = multigrid_options(params);
    if (check_params(params) != GRV_OK ||
        !grvi_flow_grid_init(&grid, params->n, params->periodic, is_double))
        return 0;
    const grvi_flow_kernels *const kernels = grvi_flow_kernels_for(grvi_isa_chosen(), is_double);
    const int64_t elements =
        6 * grid.n_elements + params->n_threads * kernels->advect_scratch(&grid);
    return elements * (int64_t)real_bytes(is_double) + params->n[0] * (int64_t)sizeof(double) +
           (int64_t)sizeof(grv_flow) + grvi_multigrid_bytes(params->n, params->periodic, &options);
}

/* ---- life ---- */

static void vector_at(const grv_flow *flow, grv_flow_vector *function, double time, double value[3])
{
    for (int d = 0; d < 3; d++) value[d] = 0;
    if (function != NULL) function(flow->params.user, time, value);
}

static void boundary_at(const grv_flow *flow, double time, double value[3])
{
    if (flow->params.velocity_of != NULL)
        vector_at(flow, flow->params.velocity_of, time, value);
    else
        memcpy(value, flow->params.velocity, sizeof flow->params.velocity);
}

static void limit_planes(void *argument, int thread, int64_t begin, int64_t end)
{
    grv_flow *const flow = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        flow->plane_value[i] =
            flow->kernels->courant(&flow->grid, (const void *const *)flow->velocity, i);
}

/* Largest sum of outflow speeds of a cell (spec 7.5). */
static double outflow_speed(grv_flow *flow)
{
    double largest = 0;
    grv_parallel_for(flow->params.n_threads, flow->grid.n[0], limit_planes, flow);
    for (int64_t i = 0; i < flow->grid.n[0]; i++) largest = fmax(largest, flow->plane_value[i]);
    return largest;
}

static double stable_dt(grv_flow *flow)
{
    return fmin(flow->params.max_dt, 1 / (outflow_speed(flow) + 5 * flow->params.viscosity));
}

static double boundary_field(void *user, int component, const double position[3])
{
    (void)position;
    return ((const grv_flow *)user)->boundary[component];
}

static grv_status allocate(grv_flow *flow)
{
    const grv_flow_params *const p = &flow->params;
    const grvi_multigrid_options options = multigrid_options(p);
    GRV_TRY(grvi_multigrid_init(&flow->multigrid, p->n, p->periodic, grvi_isa_chosen(), &options));
    flow->grid = flow->multigrid.level[0].grid;
    const int64_t n = flow->grid.n_elements;
    GRV_TRY(grvi_calloc(6 * n, real_bytes(flow->is_double), &flow->fields));
    GRV_TRY(grvi_calloc(p->n_threads * flow->kernels->advect_scratch(&flow->grid),
                        real_bytes(flow->is_double), &flow->scratch));
    GRV_TRY(GRVI_CALLOC(&flow->plane_value, p->n[0]));
    for (int d = 0; d < 3; d++) {
        flow->velocity[d] =
            grvi_flow_offset(flow->fields, flow->is_double, d * n + flow->grid.origin);
        flow->predicted[d] =
            grvi_flow_offset(flow->fields, flow->is_double, (3 + d) * n + flow->grid.origin);
    }
    return GRV_OK;
}

grv_status grv_flow_create(const grv_flow_params *params, grv_flow **out)
{
    grv_status status = GRV_OK;
    grv_flow *flow = NULL;
    *out = NULL;
    GRV_TRY(check_params(params));
    GRV_TRY(GRVI_CALLOC(&flow, 1));
    flow->params = *params;
    flow->is_double = params->precision == GRV_FLOW_FLOAT64;
    flow->kernels = grvi_flow_kernels_for(grvi_isa_chosen(), flow->is_double);
    GRV_TRY_GOTO(allocate(flow));
    GRV_TRY_GOTO(grvi_flow_measure(flow, 0));
    boundary_at(flow, 0, flow->boundary);
    grv_flow_velocity_set(flow, boundary_field, flow);
    *out = flow;
done:
    if (status != GRV_OK) grv_flow_destroy(&flow);
    return status;
}

void grv_flow_destroy(grv_flow **flow)
{
    if (flow == NULL || *flow == NULL) return;
    grv_flow *const f = *flow;
    grvi_multigrid_fini(&f->multigrid);
    for (int d = 0; d < 3; d++) grv_free(f->faces[d].face);
    grv_free(f->immersed);
    grv_free(f->surface);
    grv_free(f->plane_value);
    grv_free(f->scratch);
    grv_free(f->fields);
    grv_free(f);
    *flow = NULL;
}

void grv_flow_velocity_set(grv_flow *flow, grv_flow_field *field, void *user)
{
    const grvi_flow_grid *const g = &flow->grid;
    for (int c = 0; c < 3; c++)
        for (int64_t i = 0; i < g->n[0] + (c == 0); i++) /* the exit face keeps what it gets here */
            for (int64_t j = 0; j < g->n[1]; j++)
                for (int64_t k = 0; k < g->n[2]; k++) {
                    const double position[3] = {(double)i + (c == 0 ? 0 : 0.5),
                                                (double)j + (c == 1 ? 0 : 0.5),
                                                (double)k + (c == 2 ? 0 : 0.5)};
                    grvi_flow_store(flow->velocity[c], flow->is_double,
                                    i * g->stride[0] + j * g->stride[1] + k,
                                    field(user, c, position));
                }
    grvi_flow_boundary_apply(flow, flow->velocity);
    const double limit = stable_dt(flow);
    flow->state.next_dt = flow->state.n_steps == 0 ? fmin(flow->params.first_dt, limit) : limit;
}

grv_flow_state grv_flow_state_get(const grv_flow *flow)
{
    return flow->state;
}

/* ---- the step ---- */

typedef struct advect_call {
    const grv_flow *flow;
    grvi_flow_advection advection;
} advect_call;

static void advect_planes(void *argument, int thread, int64_t begin, int64_t end)
{
    const advect_call *const call = argument;
    const grv_flow *const flow = call->flow;
    const int64_t elements = flow->kernels->advect_scratch(&flow->grid);
    flow->kernels->advect(&call->advection, begin, end,
                          grvi_flow_offset(flow->scratch, flow->is_double, thread * elements));
}

/* output = (1-weight) velocity + weight (velocity at the start of the step + dt (rate(velocity) + force at `time`)) */
static void advance(grv_flow *flow, void *const *velocity, void *const *output, double weight,
                    double dt, double time, const double frame[3])
{
    advect_call call = {.flow = flow,
                        .advection = {.grid = flow->grid,
                                      .scheme = (grvi_flow_scheme)flow->params.scheme,
                                      .dt = dt,
                                      .viscosity = flow->params.viscosity,
                                      .weight = weight}};
    double force[3];
    vector_at(flow, flow->params.force_of, time, force);
    for (int d = 0; d < 3; d++) {
        call.advection.acceleration[d] = force[d] + frame[d];
        call.advection.velocity[d] = velocity[d];
        call.advection.base[d] = flow->velocity[d];
        call.advection.output[d] = output[d];
    }
    grv_parallel_for(flow->params.n_threads, flow->grid.n[0], advect_planes, &call);
}

typedef struct correct_call {
    const grv_flow *flow;
    void *const *velocity;
} correct_call;

static void correct_planes(void *argument, int thread, int64_t begin, int64_t end)
{
    const correct_call *const call = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        call->flow->kernels->correct(&call->flow->multigrid.level[0], call->velocity, i);
}

static void count_solve(grv_flow *flow, const grvi_multigrid_result *result, double noise)
{
    grv_flow_state *const s = &flow->state;
    const double ratio = result->rhs_norm > 0 ? result->residual_norm / result->rhs_norm : 0;
    const bool is_noise =
        result->residual_norm <= noise * sqrt((double)flow->multigrid.n_open_cells);
    s->n_solves++;
    s->n_cycles += result->cycles;
    s->last_cycles = result->cycles;
    s->last_residual_ratio = ratio;
    if (is_noise) return;
    s->largest_residual_ratio = fmax(s->largest_residual_ratio, ratio);
    if (flow->params.fixed_cycles == 0 && ratio > flow->params.tolerance) s->n_stagnated++;
}

/* Takes the divergence out of a velocity whose boundaries are set. weight: of this stage's slope in the step (spec 7.5). */
static grv_status project(grv_flow *flow, void *const *velocity, double weight, double dt)
{
    /* rounding of the velocity: what one cell's divergence cannot be told from */
    const double epsilon = flow->is_double ? DBL_EPSILON : (double)FLT_EPSILON;
    const double noise = epsilon / flow->state.next_dt;
    grvi_multigrid_result result;
    GRV_TRY(grvi_multigrid_solve(&flow->multigrid, (const void *const *)velocity,
                                 flow->pressure_factor * weight * dt, noise, &result));
    flow->pressure_factor = 1 / (weight * dt);
    correct_call call = {flow, velocity};
    grv_parallel_for(flow->params.n_threads, flow->grid.n[0], correct_planes, &call);
    grvi_flow_boundary_apply(flow, velocity);
    count_solve(flow, &result, noise);
    return GRV_OK;
}

/* Body, boundaries, pressure of one stage whose result so far is `velocity`. */
static grv_status finish_stage(grv_flow *flow, void *const *velocity, double weight, double dt)
{
    if (flow->params.distance != NULL || flow->params.mesh != NULL) {
        grvi_flow_boundary_apply(flow, velocity);
        grvi_flow_immerse(flow, velocity, 1 / weight, flow->predicted, 1 - 1 / weight);
    }
    grvi_flow_boundary_apply(flow, velocity);
    GRV_TRY(project(flow, velocity, weight, dt));
    return GRV_OK;
}

static grv_status step_by(grv_flow *flow, double dt)
{
    grv_flow_state *const s = &flow->state;
    const double start = s->time, end = start + dt;
    double boundary[3], frame[3];
    boundary_at(flow, end, boundary);
    for (int d = 0; d < 3; d++) frame[d] = (boundary[d] - flow->boundary[d]) / dt;
    if (flow->params.body_moves && flow->params.distance != NULL)
        GRV_TRY(grvi_flow_measure(flow, end));

    advance(flow, flow->velocity, flow->predicted, 1, dt, start, frame);
    memcpy(flow->boundary, boundary, sizeof boundary);
    if (flow->params.has_exit)
        grvi_flow_exit_convect(flow, flow->velocity[0], dt, flow->predicted[0]);
    GRV_TRY(finish_stage(flow, flow->predicted, 1, dt));

    advance(flow, flow->predicted, flow->velocity, 0.5, dt, end, frame);
    if (flow->params.has_exit) grvi_flow_exit_copy(flow, flow->predicted[0], flow->velocity[0]);
    GRV_TRY(finish_stage(flow, flow->velocity, 0.5, dt));

    s->time = end;
    s->dt = dt;
    s->n_steps++;
    s->next_dt = stable_dt(flow);
    if (flow->control.is_set) grvi_flow_control_volume_update(flow, dt);
    return GRV_OK;
}

static grv_status checked_step(grv_flow *flow, double dt)
{
    const grv_status status = step_by(flow, dt);
    if (status != GRV_E_NUMERIC) return status;
    GRV_FAIL(GRV_E_NUMERIC, "step %lld at time %g with dt %g: the flow is no longer finite (%s)",
             (long long)flow->state.n_steps + 1, flow->state.time, dt, grv_error_message());
}

grv_status grv_flow_step(grv_flow *flow)
{
    GRV_TRY(checked_step(flow, flow->state.next_dt));
    return GRV_OK;
}

grv_status grv_flow_step_towards(grv_flow *flow, double time, bool *is_there)
{
    const double left = time - flow->state.time, dt = flow->state.next_dt;
    *is_there = left <= dt;
    if (left <= 0) return GRV_OK;
    GRV_TRY(checked_step(flow, left <= dt ? left : left < 2 * dt ? left / 2 : dt));
    if (*is_there) flow->state.time = time; /* without the rounding of the sum */
    return GRV_OK;
}

grv_status grv_flow_run_until(grv_flow *flow, double time)
{
    for (bool is_there = false; !is_there;) GRV_TRY(grv_flow_step_towards(flow, time, &is_there));
    return GRV_OK;
}
