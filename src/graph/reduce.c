/* The communication at the end of a step: partial sums of replicated parameters (one all-gather of every rank's tree nodes, then
 * the same additions on every rank), owned gradients over data ranks, and the loss. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/exec_impl.h"
#include "grove/core.h"

/* owned gradients are summed over data ranks in pieces of this many numbers, so that the buffer stays small */
enum { DATA_CHUNK = 1 << 18 };

static int n_ranks_of(const grv_plan *plan) { return plan->params.n_data * plan->params.n_domain; }

/* the units of a step on another rank */
static grvi_units units_on_rank(const grv_plan *plan, const grvi_step *step, int rank)
{
    grvi_units units = step->units;
    units.samples = grv_partition_range(plan->graph.n_samples, plan->params.n_data, rank / plan->params.n_domain);
    if (plan->params.n_domain > 1) units.planes = grv_partition_range(units.n_planes, plan->params.n_domain, rank % plan->params.n_domain);
    return units;
}

/* the nodes that a rank hands on */
static void follow_units(const grvi_units *units, grvi_tree_stack *stack)
{
    stack->n = 0;
    for (int64_t s = 0; s < units->samples.count; s++)
        for (int64_t p = 0; p < units->planes.count; p++)
            grvi_tree_push(stack, (grvi_tree_node){.first = (units->samples.start + s) * units->n_planes + units->planes.start + p});
}

static int compare_nodes(const void *a, const void *b)
{
    const grvi_arriving_node *const p = a, *const q = b;
    return (p->node.first > q->node.first) - (p->node.first < q->node.first);
}

static grv_status append_nodes(grvi_reduction *r, const grvi_tree_stack *stack, int64_t offset, int64_t n_sums)
{
    GRV_TRY(GRVI_REALLOC(&r->nodes, r->n_nodes + stack->n));
    for (int i = 0; i < stack->n; i++)
        r->nodes[r->n_nodes + i] = (grvi_arriving_node){.node = stack->nodes[i], .offset = offset + i * n_sums};
    r->n_nodes += stack->n;
    return GRV_OK;
}

static grv_status create_reductions(grv_exec *exec)
{
    const grv_plan *const plan = exec->plan;
    const int n_ranks = n_ranks_of(plan);
    int64_t n_final = 0, gathered = 0;
    int depth = 1;
    grv_status status = GRV_OK;
    grvi_tree_stack stack = {0};
    for (int i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].n_sums == 0) continue;
        exec->n_reductions++;
        n_final = grvi_max_i64(n_final, plan->steps[i].n_sums);
        stack.capacity = (int)grvi_max_i64(stack.capacity, plan->graph.n_samples * 130 + 4);
    }
    GRV_TRY(GRVI_ALLOC(&stack.nodes, stack.capacity));
    GRV_TRY_GOTO(GRVI_CALLOC(&exec->reductions, exec->n_reductions));
    GRV_TRY_GOTO(GRVI_CALLOC(&exec->gathered_bytes, n_ranks));
    for (int rank = 0; rank < n_ranks; rank++) {
        int k = 0;
        const int64_t before = gathered;
        for (int i = 0; i < plan->n_steps; i++) {
            const grvi_step *const step = &plan->steps[i];
            if (step->n_sums == 0) continue;
            const grvi_units units = units_on_rank(plan, step, rank);
            follow_units(&units, &stack);
            exec->reductions[k].step = i;
            GRV_TRY_GOTO(append_nodes(&exec->reductions[k++], &stack, gathered, step->n_sums));
            gathered += stack.n * step->n_sums;
        }
        exec->gathered_bytes[rank] = (gathered - before) * (int64_t)sizeof(double);
    }
    for (int k = 0; k < exec->n_reductions; k++) {
        grvi_reduction *const r = &exec->reductions[k];
        qsort(r->nodes, (size_t)r->n_nodes, sizeof *r->nodes, compare_nodes);
        stack.n = 0;
        stack.most = 0;
        for (int i = 0; i < r->n_nodes; i++) grvi_tree_push(&stack, r->nodes[i].node);
        if (stack.most > depth) depth = stack.most;
    }
    exec->final = (grvi_tree_stack){.capacity = depth + 1};
    GRV_TRY_GOTO(GRVI_ALLOC(&exec->final.nodes, depth + 1));
    GRV_TRY_GOTO(GRVI_ALLOC(&exec->final.vectors, (depth + 1) * n_final));
    if (n_ranks > 1) GRV_TRY_GOTO(GRVI_ALLOC(&exec->gathered, gathered));
done:
    grv_free(stack.nodes);
    return status;
}

static grv_status create_loss(grv_exec *exec)
{
    const grv_plan *const plan = exec->plan;
    const int n_ranks = n_ranks_of(plan);
    for (int i = 0; i < plan->n_steps; i++) {
        const grvi_step *const step = &plan->steps[i];
        if (step->node.op != &grvi_op_loss) continue;
        const grvi_value *const prediction = &plan->graph.values[step->node.in[0]];
        exec->loss_n_planes = prediction->n_axes > 1 ? prediction->axis[0].n : 1;
        GRV_TRY(GRVI_CALLOC(&exec->loss_bytes, n_ranks));
        int64_t total = 0;
        for (int rank = 0; rank < n_ranks; rank++) {
            const grv_range s = grv_partition_range(plan->graph.n_samples, plan->params.n_data, rank / plan->params.n_domain);
            const grv_range p = grv_partition_range(exec->loss_n_planes, plan->params.n_domain, rank % plan->params.n_domain);
            exec->loss_bytes[rank] = s.count * p.count * 2 * (int64_t)sizeof(double);
            total += s.count * p.count * 2;
        }
        GRV_TRY(GRVI_CALLOC(&exec->loss_planes, exec->loss_bytes[plan->params.rank] / (int64_t)sizeof(double)));
        if (n_ranks > 1) GRV_TRY(GRVI_CALLOC(&exec->loss_gathered, total));
        GRV_TRY(GRVI_CALLOC(&exec->loss_ordered, total));
        GRV_TRY(GRVI_CALLOC(&exec->loss_sums, 2 * plan->graph.n_samples));
        GRV_TRY(GRVI_CALLOC(&exec->sample_losses, plan->graph.n_samples));
    }
    return GRV_OK;
}

grv_status grvi_reduce_create(grv_exec *exec)
{
    const grv_plan *const plan = exec->plan;
    GRV_TRY(create_reductions(exec));
    GRV_TRY(create_loss(exec));
    if (plan->params.n_data > 1 && plan->params.gradients)
        GRV_TRY(grvi_alloc(plan->params.n_data * (int64_t)DATA_CHUNK, grvi_dtype_bytes(plan->params.dtype), &exec->data_chunk));
    return GRV_OK;
}

void grvi_reduce_destroy(grv_exec *exec)
{
    for (int k = 0; exec->reductions != NULL && k < exec->n_reductions; k++) grv_free(exec->reductions[k].nodes);
    grv_free(exec->reductions);
    grv_free(exec->gathered_bytes);
    grv_free(exec->gathered);
    grv_free(exec->final.nodes);
    grv_free(exec->final.vectors);
    grv_free(exec->data_chunk);
    grv_free(exec->loss_planes);
    grv_free(exec->loss_gathered);
    grv_free(exec->loss_ordered);
    grv_free(exec->loss_bytes);
    grv_free(exec->loss_sums);
    grv_free(exec->sample_losses);
}

static void store_sums(const grv_exec *exec, const grvi_step *step, const double *sums, void *gradients)
{
    const grv_plan *const plan = exec->plan;
    int64_t at = 0;
    for (int o = 0; o < step->node.n_out; o++) {
        const grv_value v = step->node.out[o];
        if (v == GRV_NO_VALUE || plan->graph.values[v].kind != GRVI_PARAM_GRADIENT) continue;
        const grv_param_slice *const slice = &plan->slices[plan->graph.values[v].param];
        for (int64_t i = 0; i < slice->count; i++) {
            if (plan->params.dtype == GRV_F64) ((double *)gradients)[slice->offset + i] = sums[at + i];
            else ((float *)gradients)[slice->offset + i] = (float)sums[at + i];
        }
        at += slice->count;
    }
}

static void finish_sums(grv_exec *exec, const double *numbers, void *gradients)
{
    for (int k = 0; k < exec->n_reductions; k++) {
        const grvi_reduction *const r = &exec->reductions[k];
        const grvi_step *const step = &exec->plan->steps[r->step];
        grvi_tree_stack *const stack = &exec->final;
        stack->n = 0;
        stack->n_values = step->n_sums;
        for (int i = 0; i < r->n_nodes; i++) {
            memcpy(grvi_tree_top(stack), numbers + r->nodes[i].offset, sizeof(double) * (size_t)step->n_sums);
            grvi_tree_push(stack, r->nodes[i].node);
        }
        grvi_tree_finish(stack);
        store_sums(exec, step, stack->vectors, gradients);
    }
}

#define GRVI_ADD_RANKS(type)                                                                       \
    do {                                                                                           \
        type *const x = chunk;                                                                     \
        for (int stride = 1; stride < n_data; stride *= 2)                                         \
            for (int r = 0; r + stride < n_data; r += 2 * stride)                                  \
                for (int64_t i = 0; i < n; i++) x[r * n + i] += x[(r + stride) * n + i];           \
    } while (0)

/* pairwise over the data ranks in the order of their samples: the tree of the mode mix goes on */
static void add_ranks(void *chunk, grv_dtype dtype, int n_data, int64_t n)
{
    if (dtype == GRV_F64) GRVI_ADD_RANKS(double);
    else GRVI_ADD_RANKS(float);
}

static grv_status sum_owned_over_data(grv_exec *exec, void *gradients)
{
    const grv_plan *const plan = exec->plan;
    const int n_data = plan->params.n_data;
    const size_t size = grvi_dtype_bytes(plan->params.dtype);
    int64_t bytes[1024];
    GRV_CHECK(n_data <= 1024, GRV_E_UNSUPPORTED, "at most 1024 data ranks, %d found", n_data);
    for (int64_t at = plan->owned_offset; at < plan->param_count; at += DATA_CHUNK) {
        const int64_t n = grvi_min_i64(DATA_CHUNK, plan->param_count - at);
        for (int r = 0; r < n_data; r++) bytes[r] = n * (int64_t)size;
        char *const piece = (char *)gradients + (size_t)at * size;
        GRV_TRY(grv_comm_all_gather(exec->mesh->data_comm, piece, bytes, exec->data_chunk));
        add_ranks(exec->data_chunk, plan->params.dtype, n_data, n);
        memcpy(piece, exec->data_chunk, (size_t)n * size);
    }
    return GRV_OK;
}

static bool has_data_ranks(const grv_exec *exec) { return exec->plan->params.n_data > 1; }

grv_status grvi_reduce_gradients(grv_exec *exec, void *gradients)
{
    const double *numbers = exec->bucket;
    if (exec->comm != NULL) {
        GRV_TRY(grv_comm_all_gather(exec->comm, exec->bucket, exec->gathered_bytes, exec->gathered));
        numbers = exec->gathered;
    }
    finish_sums(exec, numbers, gradients);
    if (has_data_ranks(exec)) GRV_TRY(sum_owned_over_data(exec, gradients));
    return GRV_OK;
}

/* --- loss ------------------------------------------------------------------------------------------------------ */

/* sums of every sample by the tree over its planes; the stack is small and local */
static void sum_sample_planes(const double *planes, int64_t n_planes, double out[2])
{
    double vectors[2 * 66];
    grvi_tree_node nodes[66];
    grvi_tree_stack stack = {.capacity = 66, .n_values = 2, .nodes = nodes, .vectors = vectors};
    for (int64_t p = 0; p < n_planes; p++) {
        memcpy(grvi_tree_top(&stack), planes + 2 * p, sizeof(double) * 2);
        grvi_tree_push(&stack, (grvi_tree_node){.first = p});
    }
    grvi_tree_finish(&stack);
    out[0] = vectors[0];
    out[1] = vectors[1];
}

/* from rank order to [sample][plane], then the sums */
static void sum_samples(grv_exec *exec, const double *numbers)
{
    const grv_plan *const plan = exec->plan;
    const int n_domain = plan->params.n_domain;
    const double *from = numbers;
    double *const ordered = exec->loss_ordered;
    for (int rank = 0; rank < n_ranks_of(plan); rank++) {
        const grv_range s = grv_partition_range(plan->graph.n_samples, plan->params.n_data, rank / n_domain);
        const grv_range p = grv_partition_range(exec->loss_n_planes, n_domain, rank % n_domain);
        for (int64_t i = 0; i < s.count; i++, from += 2 * p.count)
            memcpy(ordered + 2 * ((s.start + i) * exec->loss_n_planes + p.start), from, sizeof(double) * 2 * (size_t)p.count);
    }
    for (int64_t i = 0; i < plan->graph.n_samples; i++)
        sum_sample_planes(ordered + 2 * i * exec->loss_n_planes, exec->loss_n_planes, exec->loss_sums + 2 * i);
}

static double field_points(const grv_plan *plan, grv_value value)
{
    const grvi_value *const v = &plan->graph.values[value];
    double n = (double)v->channels;
    for (int a = 0; a < v->n_axes; a++) n *= (double)v->axis[a].n;
    return n;
}

grv_status grvi_exec_reduce_loss(const grvi_step_context *c)
{
    grv_exec *const exec = c->exec;
    const grv_plan *const plan = exec->plan;
    const int64_t n = plan->graph.n_samples;
    if (exec->comm != NULL) {
        GRV_TRY(grv_comm_all_gather(exec->comm, exec->loss_planes, exec->loss_bytes, exec->loss_gathered));
        sum_samples(exec, exec->loss_gathered);
    } else {
        sum_samples(exec, exec->loss_planes);
    }
    exec->loss = 0;
    for (int64_t i = 0; i < n; i++) {
        const double error = exec->loss_sums[2 * i], norm = exec->loss_sums[2 * i + 1];
        exec->sample_losses[i] = c->node->attributes.loss == GRV_LOSS_MSE ? error / field_points(plan, c->node->in[0]) : sqrt(error / norm);
        exec->loss += exec->sample_losses[i] / (double)n;
    }
    return GRV_OK;
}

double grvi_exec_loss_scale(const grvi_step_context *c, int64_t local_sample)
{
    const grv_exec *const exec = c->exec;
    const double *const sums = exec->loss_sums + 2 * (c->plan->samples.start + local_sample);
    const double n = (double)c->plan->graph.n_samples;
    if (c->node->attributes.loss == GRV_LOSS_MSE) return 2 / (n * field_points(c->plan, c->node->in[0]));
    /* d/dp of ||p-y||/||y|| / n; at a perfect prediction the gradient is taken as zero */
    return sums[0] > 0 ? 1 / (n * sqrt(sums[0]) * sqrt(sums[1])) : 0;
}
