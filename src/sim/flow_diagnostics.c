/* Fields and integrals for the user (spec 7.8); one thread, sums in double. */
#include <math.h>

#include "core/check.h"
#include "sim/flow_impl.h"

static double velocity_at(const grv_flow *flow, int component, int64_t at)
{
    return grvi_flow_load(flow->velocity[component], flow->is_double, at);
}

static double pressure_at(const grv_flow *flow, int64_t at)
{
    return flow->pressure_factor * grvi_flow_load(flow->multigrid.level[0].x, flow->is_double, at);
}

static int64_t offset_of(const grv_flow *flow, int64_t i, int64_t j, int64_t k)
{
    return i * flow->grid.stride[0] + j * flow->grid.stride[1] + k;
}

static double divergence_at(const grv_flow *flow, int64_t at)
{
    double sum = 0;
    for (int d = 0; d < 3; d++)
        sum += velocity_at(flow, d, at + flow->grid.stride[d]) - velocity_at(flow, d, at);
    return sum;
}

static double vorticity_at(const grv_flow *flow, int component, int64_t at)
{
    const int a = (component + 1) % 3, b = (component + 2) % 3;
    const int64_t *const s = flow->grid.stride;
    return (velocity_at(flow, b, at) - velocity_at(flow, b, at - s[a])) -
           (velocity_at(flow, a, at) - velocity_at(flow, a, at - s[b]));
}

static double value_at(const grv_flow *flow, grv_flow_quantity quantity, int component, int64_t at)
{
    switch (quantity) {
    case GRV_FLOW_VELOCITY: return velocity_at(flow, component, at);
    case GRV_FLOW_VORTICITY: return vorticity_at(flow, component, at);
    case GRV_FLOW_FACE_OPEN:
        return grvi_flow_load(flow->multigrid.level[0].face[component], flow->is_double, at);
    case GRV_FLOW_PRESSURE: return pressure_at(flow, at);
    case GRV_FLOW_DIVERGENCE: return divergence_at(flow, at);
    }
    return (double)NAN;
}

void grv_flow_values(const grv_flow *flow, grv_flow_quantity quantity, int component,
                     double *values)
{
    const int64_t *const n = flow->grid.n;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++)
                *values++ = value_at(flow, quantity, component, offset_of(flow, i, j, k));
}

double grv_flow_kinetic_energy(const grv_flow *flow)
{
    const int64_t *const n = flow->grid.n;
    double sum = 0;
    for (int64_t i = 0; i < n[0]; i++) {
        double plane = 0;
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++)
                for (int d = 0; d < 3; d++) {
                    const int64_t at = offset_of(flow, i, j, k);
                    const double low = velocity_at(flow, d, at),
                                 high = velocity_at(flow, d, at + flow->grid.stride[d]);
                    plane += (low * low + high * high) / 4;
                }
        sum += plane;
    }
    return sum;
}

double grv_flow_divergence(const grv_flow *flow, double *largest)
{
    const int64_t *const n = flow->grid.n;
    double squares = 0, most = 0;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++) {
                const int64_t at = offset_of(flow, i, j, k);
                if (!(grvi_flow_load(flow->multigrid.level[0].inverse_diagonal, flow->is_double,
                                     at) > 0))
                    continue;
                const double value = divergence_at(flow, at);
                squares += value * value;
                most = fmax(most, fabs(value));
            }
    if (largest != NULL) *largest = most;
    return sqrt(squares / (double)grvi_max_i64(1, flow->multigrid.n_open_cells));
}

/* ---- forces ---- */

/* Derivative of component c along d at the centre of a cell. */
static double gradient_at(const grv_flow *flow, int c, int d, int64_t at)
{
    const int64_t along = flow->grid.stride[d], own = flow->grid.stride[c];
    if (c == d) return velocity_at(flow, c, at + own) - velocity_at(flow, c, at);
    return (velocity_at(flow, c, at + along) + velocity_at(flow, c, at + along + own) -
            velocity_at(flow, c, at - along) - velocity_at(flow, c, at - along + own)) /
           4;
}

void grv_flow_surface_force(const grv_flow *flow, double pressure[3], double viscous[3])
{
    for (int c = 0; c < 3; c++) pressure[c] = viscous[c] = 0;
    for (int64_t m = 0; m < flow->n_surface; m++) {
        const grvi_flow_surface_cell *const s = &flow->surface[m];
        const int64_t at = offset_of(flow, s->cell[0], s->cell[1], s->cell[2]);
        const double p = pressure_at(flow, at);
        for (int c = 0; c < 3; c++) {
            pressure[c] -= p * s->area[c];
            for (int d = 0; d < 3; d++)
                viscous[c] += flow->params.viscosity *
                              (gradient_at(flow, c, d, at) + gradient_at(flow, d, c, at)) *
                              s->area[d];
        }
    }
}

/* What flows and presses through the lower d-face of the cell at `at` in its direction, for momentum component c. */
static double momentum_flux(const grv_flow *flow, int c, int d, int64_t at)
{
    const int64_t across = flow->grid.stride[d], own = flow->grid.stride[c];
    const double speed = velocity_at(flow, d, at), nu = flow->params.viscosity;
    if (c == d) {
        const double slope =
            (velocity_at(flow, d, at + across) - velocity_at(flow, d, at - across)) / 2;
        return speed * speed - nu * slope +
               (pressure_at(flow, at) + pressure_at(flow, at - across)) / 2;
    }
    const double high = (velocity_at(flow, c, at) + velocity_at(flow, c, at + own)) / 2;
    const double low =
        (velocity_at(flow, c, at - across) + velocity_at(flow, c, at - across + own)) / 2;
    return speed * (high + low) / 2 - nu * (high - low);
}

/* Momentum inside the box and what comes in through its faces, both per component. */
static void balance(const grv_flow *flow, double momentum[3], double inflow[3])
{
    const grvi_flow_control_volume *const v = &flow->control;
    const int64_t *const s = flow->grid.stride;
    for (int c = 0; c < 3; c++) {
        momentum[c] = inflow[c] = 0;
        for (int64_t i = v->low[0]; i < v->high[0]; i++)
            for (int64_t j = v->low[1]; j < v->high[1]; j++)
                for (int64_t k = v->low[2]; k < v->high[2]; k++) {
                    const int64_t at = offset_of(flow, i, j, k);
                    momentum[c] += (velocity_at(flow, c, at) + velocity_at(flow, c, at + s[c])) / 2;
                }
        for (int d = 0; d < 3; d++) {
            const int e = (d + 1) % 3, f = (d + 2) % 3;
            if (flow->grid.periodic[d] && v->high[d] - v->low[d] == flow->grid.n[d])
                continue; /* it is its own neighbour */
            for (int64_t p = v->low[e]; p < v->high[e]; p++)
                for (int64_t q = v->low[f]; q < v->high[f]; q++) {
                    const int64_t row = p * s[e] + q * s[f];
                    inflow[c] += momentum_flux(flow, c, d, row + v->low[d] * s[d]) -
                                 momentum_flux(flow, c, d, row + v->high[d] * s[d]);
                }
        }
    }
}

void grvi_flow_control_volume_update(grv_flow *flow, double dt)
{
    grvi_flow_control_volume *const v = &flow->control;
    double momentum[3], inflow[3];
    balance(flow, momentum, inflow);
    for (int c = 0; c < 3; c++) {
        if (dt > 0)
            v->force[c] = (inflow[c] + v->inflow[c]) / 2 - (momentum[c] - v->momentum[c]) / dt;
        v->momentum[c] = momentum[c];
        v->inflow[c] = inflow[c];
    }
    v->has_force = dt > 0;
}

grv_status grv_flow_control_volume_set(grv_flow *flow, const int64_t low[3], const int64_t high[3])
{
    for (int d = 0; d < 3; d++) {
        const int64_t n = flow->grid.n[d];
        const bool is_whole = flow->grid.periodic[d] && low[d] == 0 && high[d] == n;
        GRV_CHECK(is_whole || (low[d] >= 1 && low[d] < high[d] && high[d] <= n - 1), GRV_E_ARG,
                  "control volume: direction %d must be within 1..%lld (or whole where periodic), "
                  "got %lld..%lld",
                  d, (long long)n - 1, (long long)low[d], (long long)high[d]);
    }
    grvi_flow_control_volume *const v = &flow->control;
    *v = (grvi_flow_control_volume){.is_set = true};
    for (int d = 0; d < 3; d++) {
        v->low[d] = low[d];
        v->high[d] = high[d];
    }
    grvi_flow_control_volume_update(flow, 0);
    return GRV_OK;
}

grv_status grv_flow_control_volume_force(const grv_flow *flow, double force[3])
{
    GRV_CHECK(flow->control.has_force, GRV_E_ARG,
              "no control volume was set, or no step was made since it was");
    for (int c = 0; c < 3; c++) force[c] = flow->control.force[c];
    return GRV_OK;
}
