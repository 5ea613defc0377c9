/* Boundary conditions of the velocity (spec 7.6). */
#include "grove/core.h"
#include "sim/flow_impl.h"

typedef struct ghost_call {
    const grv_flow *flow;
    void *const *velocity;
} ghost_call;

static void ghost_planes(void *argument, int thread, int64_t begin, int64_t end)
{
    const ghost_call *const call = argument;
    const grv_flow *const flow = call->flow;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        for (int c = 0; c < 3; c++)
            flow->kernels->ghosts_in_plane(&flow->grid, c, flow->boundary[c], call->velocity[c], i);
}

/* Ghosts of direction 2 first, then 1, then 0, each with the ghosts before it, so that edges and corners are filled. */
void grvi_flow_boundary_apply(const grv_flow *flow, void *const *velocity)
{
    ghost_call call = {flow, velocity};
    grv_parallel_for(flow->params.n_threads, flow->grid.n[0], ghost_planes, &call);
    if (flow->params.has_exit) /* the exit face takes part in the ghosts of its plane */
        flow->kernels->ghosts_in_plane(&flow->grid, 0, flow->boundary[0], velocity[0],
                                       flow->grid.n[0]);
    for (int c = 0; c < 3; c++)
        flow->kernels->ghosts_across(&flow->grid, c, flow->boundary[c], flow->params.has_exit,
                                     velocity[c]);
}

void grvi_flow_exit_convect(const grv_flow *flow, const void *old, double dt, void *next)
{
    const grvi_flow_grid *const g = &flow->grid;
    const double speed = flow->boundary[0] * dt, cells = (double)(g->n[1] * g->n[2]);
    double sum = 0;
    for (int pass = 0; pass < 2; pass++) { /* second pass: what leaves is what comes in */
        for (int64_t j = 0; j < g->n[1]; j++)
            for (int64_t k = 0; k < g->n[2]; k++) {
                const int64_t at = g->n[0] * g->stride[0] + j * g->stride[1] + k;
                const double here = grvi_flow_load(old, flow->is_double, at);
                const double value =
                    here - speed * (here - grvi_flow_load(old, flow->is_double, at - g->stride[0]));
                if (pass == 0)
                    sum += value;
                else
                    grvi_flow_store(next, flow->is_double, at,
                                    value - sum / cells + flow->boundary[0]);
            }
    }
}

void grvi_flow_exit_copy(const grv_flow *flow, const void *from, void *to)
{
    const grvi_flow_grid *const g = &flow->grid;
    for (int64_t j = 0; j < g->n[1]; j++)
        for (int64_t k = 0; k < g->n[2]; k++) {
            const int64_t at = g->n[0] * g->stride[0] + j * g->stride[1] + k;
            grvi_flow_store(to, flow->is_double, at, grvi_flow_load(from, flow->is_double, at));
        }
}
