/* Graph, plan, executor and parameter block of a network on one rank. */
#include "grove/network.h"

#include "core/alloc.h"
#include "grove/core.h"
#include "train/network_impl.h"

static grv_status build_graph(grv_network *n)
{
    grv_graph *primitive = NULL;
    GRV_TRY(grv_fno_build(&n->params.fno, n->params.batch, n->params.loss, &primitive));
    grv_status status = grv_graph_fuse(primitive, &n->graph);
    grv_graph_destroy(&primitive);
    GRV_TRY(status);
    if (n->params.gradients) GRV_TRY(grv_graph_differentiate(n->graph));
    n->input = grv_graph_find_input(n->graph, "input");
    n->output = grv_graph_find_output(n->graph, "output");
    return GRV_OK;
}

static grv_status build(grv_network *n)
{
    GRV_CHECK(n->params.loss || !n->params.gradients, GRV_E_ARG, "network: gradients need a loss");
    GRV_TRY(build_graph(n));
    grv_plan_params plan = grv_plan_params_default();
    plan.n_threads = n->params.n_threads;
    plan.n_data = n->params.n_data;
    plan.n_domain = n->params.n_domain;
    plan.rank = n->comm == NULL ? 0 : grv_comm_rank(n->comm);
    plan.gradients = n->params.gradients;
    GRV_TRY(grv_plan_create(n->graph, &plan, &n->plan));
    const int64_t count = grv_plan_summarise(n->plan).param_count;
    if (n->block == NULL) {
        GRV_TRY(GRVI_CALLOC(&n->own_block, count));
        n->block = n->own_block;
    }
    if (n->params.gradients) GRV_TRY(GRVI_CALLOC(&n->gradients, count));
    return GRV_OK;
}

grv_status grv_network_create(const grv_network_params *params, grv_comm *comm, grv_network *shared, grv_network **out)
{
    *out = NULL;
    const bool alone = comm == NULL || grv_comm_size(comm) == 1;
    grv_network *n = NULL;
    grv_status status = GRVI_CALLOC(&n, 1);
    if (status == GRV_OK) {
        n->params = *params;
        n->comm = alone ? NULL : comm;
        n->block = shared == NULL ? NULL : shared->block;
        status = build(n);
    }
    if (!alone) status = grv_comm_agree(comm, status);
    if (status == GRV_OK) status = grv_exec_create(n->plan, n->comm, &n->exec);
    if (status != GRV_OK) {
        grv_network_destroy(&n);
        return status;
    }
    *out = n;
    return GRV_OK;
}

void grv_network_destroy(grv_network **network)
{
    if (network == NULL || *network == NULL) return;
    grv_exec_destroy(&(*network)->exec);
    grv_plan_destroy(&(*network)->plan);
    grv_graph_destroy(&(*network)->graph);
    grv_free((*network)->own_block);
    grv_free((*network)->gradients);
    grv_free(*network);
    *network = NULL;
}

const grv_plan *grv_network_plan(const grv_network *n) { return n->plan; }
const grv_exec *grv_network_exec(const grv_network *n) { return n->exec; }
const grv_graph *grv_network_graph(const grv_network *n) { return n->graph; }
float *grv_network_parameters(grv_network *n) { return n->block; }
float *grv_network_gradients(grv_network *n) { return n->gradients; }
grv_range grv_network_planes(const grv_network *n) { return grv_plan_planes(n->plan, n->input); }
const float *grv_network_output(const grv_network *n) { return grv_exec_output(n->exec, n->output); }

static int64_t count_per_sample(const grv_network *n, grv_value value)
{
    return grv_plan_field_count(n->plan, value) / grv_plan_samples(n->plan).count;
}

int64_t grv_network_input_count(const grv_network *n) { return count_per_sample(n, n->input); }
int64_t grv_network_output_count(const grv_network *n) { return count_per_sample(n, n->output); }

grv_status grv_network_run(grv_network *n, const float *input, const float *target)
{
    const void *const fields[] = {input, target};
    const grv_bindings bindings = {.params = n->block, .gradients = n->gradients, .fields = fields};
    return grv_exec_run(n->exec, &bindings);
}
