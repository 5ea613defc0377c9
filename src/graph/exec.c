/* Running a plan: memory is taken once, contexts and slots are resolved once, a run only puts the caller's pointers into the slots. */
#include <string.h>

#include "core/alloc.h"
#include "graph/exec_impl.h"
#include "grove/core.h"

static void resolve_context(grv_exec *exec, int i)
{
    const grv_plan *const plan = exec->plan;
    const grvi_step *const step = &plan->steps[i];
    grvi_step_context *const c = &exec->contexts[i];
    *c = (grvi_step_context){.plan = plan, .step = step, .node = &step->node, .exec = exec, .n_threads = plan->params.n_threads,
                             .scratch = exec->scratch, .scratch_stride = (size_t)plan->scratch_per_thread};
    c->bucket = step->n_sums > 0 ? exec->bucket + step->bucket_offset : NULL;
    for (int k = 0; k < step->node.n_in; k++) {
        if (step->in[k] < 0) continue;
        c->in[k] = &plan->placed[step->in[k]];
        c->in_data[k] = c->in[k]->offset < 0 ? NULL : exec->arena + c->in[k]->offset;
    }
    for (int k = 0; k < step->node.n_out; k++) {
        if (step->out[k] < 0) continue;
        c->out[k] = &plan->placed[step->out[k]];
        c->out_data[k] = exec->arena + c->out[k]->offset;
    }
}

/* The slots of a step's operands in the caller's memory; counts them only while there is no list. */
static void resolve_slots(grv_exec *exec, int i)
{
    const grv_plan *const plan = exec->plan;
    const int64_t size = (int64_t)grvi_dtype_bytes(plan->params.dtype);
    grvi_step_context *const c = &exec->contexts[i];
    for (int k = 0; k < c->node->n_in; k++) {
        const grv_value v = c->node->in[k];
        if (v == GRV_NO_VALUE) continue;
        const grvi_value *const value = &plan->graph.values[v];
        const bool is_param = value->kind == GRVI_PARAM;
        if (!is_param && (c->in[k] == NULL || c->in[k]->offset >= 0)) continue;
        if (exec->slots != NULL)
            exec->slots[exec->n_slots] = (grvi_slot){.source = is_param ? GRVI_SLOT_PARAM : GRVI_SLOT_INPUT, .in = &c->in_data[k],
                                                     .at = is_param ? plan->slices[value->param].offset * size : value->input};
        exec->n_slots++;
    }
    for (int k = 0; k < c->node->n_out; k++) {
        const grv_value v = c->node->out[k];
        if (v == GRV_NO_VALUE || plan->graph.values[v].kind != GRVI_PARAM_GRADIENT) continue;
        if (exec->slots != NULL)
            exec->slots[exec->n_slots] = (grvi_slot){.source = GRVI_SLOT_GRADIENT, .out = &c->out_data[k],
                                                     .at = plan->slices[plan->graph.values[v].param].offset * size};
        exec->n_slots++;
    }
}

static grv_status make_slots(grv_exec *exec)
{
    for (int i = 0; i < exec->plan->n_steps; i++) resolve_slots(exec, i);
    GRV_TRY(GRVI_CALLOC(&exec->slots, exec->n_slots));
    exec->n_slots = 0;
    for (int i = 0; i < exec->plan->n_steps; i++) resolve_slots(exec, i);
    return GRV_OK;
}

static grv_status take_memory(grv_exec *exec)
{
    const grv_plan *const plan = exec->plan;
    GRV_TRY(GRVI_CALLOC(&exec->contexts, plan->n_steps));
    GRV_TRY(GRVI_CALLOC(&exec->begin, plan->n_steps));
    GRV_TRY(GRVI_CALLOC(&exec->seconds, plan->n_steps));
    GRV_TRY(GRVI_CALLOC(&exec->arena, plan->arena_bytes));
    GRV_TRY(GRVI_CALLOC(&exec->scratch, plan->scratch_per_thread * plan->params.n_threads));
    GRV_TRY(GRVI_CALLOC(&exec->bucket, plan->bucket_count));
    GRV_TRY(GRVI_CALLOC(&exec->messages, plan->message_bytes));
    for (int i = 0; i < plan->n_steps; i++) resolve_context(exec, i);
    return make_slots(exec);
}

static grv_status make_tables(grv_exec *exec)
{
    grv_status first = GRV_OK;
    for (int i = 0; i < exec->plan->n_steps; i++) {
        const grvi_op_class *const op = exec->plan->steps[i].node.op;
        if (op->init == NULL) continue;
        /* all of them also after a failure: some are collective, and the other ranks wait there */
        const grv_status status = op->init(&exec->contexts[i]);
        if (first == GRV_OK) first = status;
    }
    return first;
}

grv_status grv_exec_create(const grv_plan *plan, grv_comm *comm, grv_exec **out)
{
    *out = NULL;
    const int n_ranks = plan->params.n_data * plan->params.n_domain;
    GRV_CHECK((comm == NULL ? 1 : grv_comm_size(comm)) == n_ranks, GRV_E_ARG, "plan for %d ranks, communicator of %d", n_ranks,
              comm == NULL ? 1 : grv_comm_size(comm));
    GRV_CHECK(comm == NULL || grv_comm_rank(comm) == plan->params.rank, GRV_E_ARG, "plan for rank %d, used on rank %d",
              plan->params.rank, comm == NULL ? 0 : grv_comm_rank(comm));
    grv_exec *exec = NULL;
    const int64_t before = grv_memory_get().bytes;
    grv_status status = GRVI_CALLOC(&exec, 1);
    if (status == GRV_OK) {
        exec->plan = plan;
        exec->comm = n_ranks > 1 ? comm : NULL;
        status = take_memory(exec);
    }
    if (n_ranks > 1) status = grv_comm_agree(comm, status);
    if (status == GRV_OK && exec->comm != NULL) status = grv_process_mesh_create(exec->comm, plan->params.n_domain, &exec->mesh);
    if (status == GRV_OK) status = make_tables(exec);
    if (status == GRV_OK) status = grvi_reduce_create(exec);
    if (n_ranks > 1) status = grv_comm_agree(comm, status);
    if (status != GRV_OK) {
        grv_exec_destroy(&exec);
        return status;
    }
    const grv_plan_summary planned = grv_plan_summarise(plan);
    exec->table_bytes = grv_memory_get().bytes - before - planned.arena_bytes - planned.scratch_bytes - planned.buffer_bytes;
    *out = exec;
    return GRV_OK;
}

void grv_exec_destroy(grv_exec **exec_pointer)
{
    if (exec_pointer == NULL || *exec_pointer == NULL) return;
    grv_exec *const exec = *exec_pointer;
    for (int i = 0; exec->contexts != NULL && i < exec->plan->n_steps; i++) {
        const grvi_op_class *const op = exec->plan->steps[i].node.op;
        if (op->fini != NULL && exec->contexts[i].object != NULL) op->fini(&exec->contexts[i]);
    }
    grvi_reduce_destroy(exec);
    grv_process_mesh_destroy(&exec->mesh);
    grv_free(exec->contexts);
    grv_free(exec->slots);
    grv_free(exec->begin);
    grv_free(exec->seconds);
    grv_free(exec->arena);
    grv_free(exec->scratch);
    grv_free(exec->bucket);
    grv_free(exec->messages);
    grv_free(exec);
    *exec_pointer = NULL;
}

static void bind(const grv_exec *exec, const grv_bindings *bindings)
{
    for (int i = 0; i < exec->n_slots; i++) {
        const grvi_slot *const slot = &exec->slots[i];
        switch (slot->source) {
        case GRVI_SLOT_PARAM: *slot->in = (const char *)bindings->params + slot->at; break;
        case GRVI_SLOT_GRADIENT: *slot->out = (char *)bindings->gradients + slot->at; break;
        case GRVI_SLOT_INPUT: *slot->in = bindings->fields[slot->at]; break;
        }
    }
}

static const char *input_name(const grv_graph *graph, int number)
{
    for (int v = 0; v < graph->n_values; v++)
        if (grvi_is_input(&graph->values[v]) && graph->values[v].input == number) return graph->values[v].name;
    return "?";
}

static grv_status check_bindings(const grv_exec *exec, const grv_bindings *bindings)
{
    const grv_graph *const graph = &exec->plan->graph;
    GRV_CHECK(graph->n_params == 0 || bindings->params != NULL, GRV_E_ARG, "run: the parameter block is missing");
    GRV_CHECK(!exec->plan->params.gradients || bindings->gradients != NULL, GRV_E_ARG, "run: the gradient block is missing");
    for (int i = 0; i < graph->n_inputs; i++)
        GRV_CHECK(bindings->fields[i] != NULL, GRV_E_ARG, "run: input '%s' is not bound", input_name(graph, i));
    return GRV_OK;
}

grv_status grv_exec_run(grv_exec *exec, const grv_bindings *bindings)
{
    GRV_TRY(check_bindings(exec, bindings));
    bind(exec, bindings);
    for (int i = 0; i < exec->plan->n_steps; i++) {
        grvi_step_context *const c = &exec->contexts[i];
        exec->begin[i] = grv_clock_seconds();
        GRV_TRY(c->node->op->run(c));
        exec->seconds[i] = grv_clock_seconds() - exec->begin[i];
    }
    if (exec->plan->params.gradients) GRV_TRY(grvi_reduce_gradients(exec, bindings->gradients));
    return GRV_OK;
}

const void *grv_exec_output(const grv_exec *exec, grv_value value)
{
    const grv_plan *const plan = exec->plan;
    for (int i = 0; i < plan->n_placed; i++)
        if (plan->placed[i].value == value && plan->placed[i].split == (plan->params.n_domain > 1 ? 0 : -1))
            return plan->placed[i].offset < 0 ? NULL : exec->arena + plan->placed[i].offset;
    return NULL;
}

double grv_exec_loss(const grv_exec *exec) { return exec->loss; }
const double *grv_exec_sample_losses(const grv_exec *exec) { return exec->sample_losses; }
double grv_exec_step_begin(const grv_exec *exec, int64_t i) { return exec->begin[i]; }
int64_t grv_exec_table_bytes(const grv_exec *exec) { return exec->table_bytes; }

double grv_exec_step_seconds(const grv_exec *exec, int64_t i, const char **name)
{
    if (name != NULL) *name = exec->plan->steps[i].node.op->name;
    return exec->seconds[i];
}

/* --- sums over units ------------------------------------------------------------------------------------------ */

static grvi_tree_stack thread_stack(const grvi_step_context *c, int thread)
{
    const grvi_step *const step = c->step;
    const int64_t bytes = step->stack_capacity * (step->n_sums * (int64_t)sizeof(double) + (int64_t)sizeof(grvi_tree_node));
    char *const end = (char *)grvi_context_scratch(c, thread) + step->scratch_per_thread;
    grvi_tree_stack stack = {.capacity = step->stack_capacity, .n_values = step->n_sums};
    stack.vectors = (double *)(void *)(end - grvi_round_up(bytes, 64));
    stack.nodes = (grvi_tree_node *)(void *)(stack.vectors + step->stack_capacity * step->n_sums);
    return stack;
}

typedef struct units_call {
    const grvi_step_context *context;
    grvi_unit_body *body;
    int *n_nodes; /* [threads] */
} units_call;

static void run_units(void *argument, int thread, int64_t begin, int64_t end)
{
    const units_call *const call = argument;
    const grvi_step_context *const c = call->context;
    const grvi_units *const units = &c->step->units;
    grvi_tree_stack stack = thread_stack(c, thread);
    for (int64_t u = begin; u < end; u++) {
        const int64_t sample = u / units->planes.count, plane = u % units->planes.count;
        call->body(c, sample, plane, grvi_context_scratch(c, thread), grvi_tree_top(&stack));
        grvi_tree_push(&stack, (grvi_tree_node){.first = (units->samples.start + sample) * units->n_planes + units->planes.start + plane});
    }
    call->n_nodes[thread] = stack.n;
}

enum { MAX_THREADS = 1024 };

void grvi_units_run(const grvi_step_context *c, grvi_unit_body *body)
{
    const grvi_units *const units = &c->step->units;
    int n_nodes[MAX_THREADS] = {0};
    const int n_threads = c->n_threads < MAX_THREADS ? c->n_threads : MAX_THREADS;
    units_call call = {.context = c, .body = body, .n_nodes = n_nodes};
    grv_parallel_for(n_threads, units->samples.count * units->planes.count, run_units, &call);
    /* the other threads' nodes go onto the first one's stack, in order */
    grvi_tree_stack stack = thread_stack(c, 0);
    stack.n = n_nodes[0];
    for (int t = 1; t < n_threads; t++) {
        const grvi_tree_stack other = thread_stack(c, t);
        for (int i = 0; i < n_nodes[t]; i++) {
            memcpy(grvi_tree_top(&stack), other.vectors + i * other.n_values, sizeof(double) * (size_t)other.n_values);
            grvi_tree_push(&stack, other.nodes[i]);
        }
    }
    GRV_ASSERT(stack.n == c->step->n_nodes);
    memcpy(c->bucket, stack.vectors, sizeof(double) * (size_t)(stack.n * stack.n_values));
}
