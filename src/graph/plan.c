/* Planning: placement of every value on the mesh, repartitions between placements, life times, offsets in the arena, sums.
 * Everything is arithmetic on the graph; one rank's plan is made without asking another. */
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "graph/plan_impl.h"
#include "grove/core.h"

enum { ALIGNMENT = 64 };

grv_plan_params grv_plan_params_default(void)
{
    return (grv_plan_params){.dtype = GRV_F32, .n_threads = 1, .n_data = 1, .n_domain = 1};
}

static int domain_index(const grv_plan *plan) { return plan->params.rank % plan->params.n_domain; }
static int data_index(const grv_plan *plan) { return plan->params.rank / plan->params.n_domain; }

grv_range grvi_magnitudes(const grv_plan *plan, const grvi_axis_modes *axis, int index)
{
    return grv_partition_range(grvi_axis_magnitudes(axis), plan->params.n_domain, index);
}

static grv_range split_range(const grv_plan *plan, const grvi_axis_modes *axis, int index)
{
    if (axis->n_rows == 0) return grv_partition_range(axis->n, plan->params.n_domain, index);
    const grv_range m = grvi_magnitudes(plan, axis, index);
    const int64_t first = grvi_axis_first_row(axis, m.start);
    return (grv_range){.start = first, .count = grvi_axis_first_row(axis, m.start + m.count) - first};
}

void grvi_placed_init(grvi_placed *placed, const grv_plan *plan, grv_value value, int split, int index)
{
    const grvi_value *const v = &plan->graph.values[value];
    *placed = (grvi_placed){.value = value, .split = split, .n_samples = plan->samples.count, .offset = -1, .last_step = -1};
    int64_t points = 1;
    for (int a = 0; a < v->n_axes; a++) {
        placed->n_local[a] = v->axis[a].n_rows != 0 ? v->axis[a].n_rows : v->axis[a].n;
        if (a != split) continue;
        placed->range = split_range(plan, &v->axis[a], index);
        placed->n_local[a] = placed->range.count;
    }
    if (split < 0) placed->range = (grv_range){0, placed->n_local[0]};
    int64_t per_point = v->channels;
    if (v->order == GRVI_ORDER_PLAIN) {
        for (int a = 0; a < v->n_axes; a++) points *= placed->n_local[a];
    } else {
        /* axes 2.. are inside the padded columns */
        grvi_spectral_layout layout;
        grvi_spectral_columns(&layout, v->n_axes, v->axis, v->channels);
        per_point = layout.n_blocks * layout.block;
        points = placed->n_local[0] * (v->n_axes > 1 ? placed->n_local[1] : 1);
    }
    placed->count = placed->n_samples * points * per_point;
}

static grv_status new_placed(grv_plan *plan, grv_value value, int split, int *out)
{
    if (plan->n_placed == plan->placed_capacity) {
        const int larger = 2 * plan->placed_capacity + 32;
        GRV_TRY(GRVI_REALLOC(&plan->placed, larger));
        plan->placed_capacity = larger;
    }
    *out = plan->n_placed;
    grvi_placed_init(&plan->placed[plan->n_placed++], plan, value, split, domain_index(plan));
    return GRV_OK;
}

static grv_status new_step(grv_plan *plan, grvi_step **out)
{
    if (plan->n_steps == plan->step_capacity) {
        const int larger = 2 * plan->step_capacity + 32;
        GRV_TRY(GRVI_REALLOC(&plan->steps, larger));
        plan->step_capacity = larger;
    }
    *out = &plan->steps[plan->n_steps++];
    memset(*out, 0, sizeof **out);
    for (int i = 0; i < GRVI_MAX_INPUTS; i++) (*out)->in[i] = -1;
    for (int i = 0; i < GRVI_MAX_OUTPUTS; i++) (*out)->out[i] = -1;
    return GRV_OK;
}

/* current[value][split + 1] = placed, or -1 */
typedef int placements[3];

static grv_status place_operand(grv_plan *plan, placements *current, grv_value value, int split, int *placed)
{
    *placed = current[value][split + 1];
    if (*placed >= 0) return GRV_OK;
    int from = -1;
    for (int s = 0; s < 3 && from < 0; s++) from = current[value][s];
    GRV_ASSERT(from >= 0);
    const grvi_axis_modes *const axis = &plan->graph.values[value].axis[split];
    const int64_t most = axis->n_rows == 0 ? axis->n : grvi_axis_magnitudes(axis);
    GRV_CHECK(most >= plan->params.n_domain, GRV_E_ARG,
              "%d domain ranks leave some without %s of axis '%s', which has %lld: at most %lld domain ranks", plan->params.n_domain,
              axis->n_rows == 0 ? "planes" : "modes", plan->graph.values[value].axis_name[split], (long long)most, (long long)most);
    GRV_TRY(new_placed(plan, value, split, placed));
    current[value][split + 1] = *placed;
    grvi_step *step = NULL;
    GRV_TRY(new_step(plan, &step));
    step->node = (grvi_node){.op = &grvi_op_repartition, .n_in = 1, .n_out = 1, .in = {value}, .out = {value}};
    step->in[0] = from;
    step->out[0] = *placed;
    return GRV_OK;
}

static grv_status place_node(grv_plan *plan, placements *current, const grvi_node *node)
{
    const grv_graph *const graph = &plan->graph;
    int split = -1;
    if (plan->params.n_domain > 1) {
        const grvi_split_rule rule = node->op->split(node);
        split = rule == GRVI_SPLIT_AXIS1;
        if (rule == GRVI_SPLIT_ANY)
            for (int s = 0; s < 2; s++)
                if (current[node->in[0]][s + 1] >= 0) split = s;
    }
    int in[GRVI_MAX_INPUTS], n_axes = 0;
    for (int i = 0; i < node->n_in; i++) {
        in[i] = -1;
        if (node->in[i] == GRV_NO_VALUE || graph->values[node->in[i]].kind != GRVI_FIELD) continue;
        n_axes = graph->values[node->in[i]].n_axes;
        GRV_CHECK(split != 1 || n_axes > 1, GRV_E_ARG,
                  "a network over one axis cannot be split over %d domain ranks: use 1, and data ranks", plan->params.n_domain);
        GRV_TRY(place_operand(plan, current, node->in[i], split, &in[i]));
    }
    grvi_step *step = NULL;
    GRV_TRY(new_step(plan, &step));
    step->node = *node;
    memcpy(step->in, in, sizeof(int) * (size_t)node->n_in);
    const int index = plan->n_steps - 1;
    for (int o = 0; o < node->n_out; o++) {
        if (node->out[o] == GRV_NO_VALUE || graph->values[node->out[o]].kind != GRVI_FIELD) continue;
        int placed = -1;
        GRV_TRY(new_placed(plan, node->out[o], split, &placed));
        current[node->out[o]][split + 1] = placed;
        plan->steps[index].out[o] = placed;
    }
    return GRV_OK;
}

static grv_status place_all(grv_plan *plan)
{
    const grv_graph *const graph = &plan->graph;
    const int home = plan->params.n_domain > 1 ? 0 : -1; /* how the caller's fields are split */
    grv_status status = GRV_OK;
    placements *current = NULL;
    GRV_TRY(GRVI_ALLOC(&current, graph->n_values));
    for (int v = 0; v < graph->n_values; v++) {
        for (int s = 0; s < 3; s++) current[v][s] = -1;
        const grvi_value *const value = &graph->values[v];
        if (!grvi_is_input(value)) continue;
        GRV_CHECK_GOTO(value->axis[0].n >= plan->params.n_domain, GRV_E_ARG,
                       "%d domain ranks leave some without planes of '%s', which has %lld: at most %lld domain ranks",
                       plan->params.n_domain, value->name, (long long)value->axis[0].n, (long long)value->axis[0].n);
        GRV_TRY_GOTO(new_placed(plan, v, home, &current[v][home + 1]));
    }
    for (int i = 0; i < graph->n_nodes; i++) GRV_TRY_GOTO(place_node(plan, current, &graph->nodes[i]));
    for (int v = 0; v < graph->n_values; v++) {
        int placed = -1;
        if (graph->values[v].is_output) GRV_TRY_GOTO(place_operand(plan, current, v, home, &placed));
    }
done:
    grv_free(current);
    return status;
}

/* replicated parameters first, then the owned ones */
static grv_status place_params(grv_plan *plan)
{
    const grv_graph *const graph = &plan->graph;
    GRV_TRY(GRVI_CALLOC(&plan->slices, graph->n_params));
    for (int owned = 0; owned < 2; owned++) {
        if (owned) plan->owned_offset = plan->param_count;
        for (int i = 0; i < graph->n_params; i++) {
            const grvi_param *const param = &graph->params[i];
            if (param->info.owned != (bool)owned) continue;
            grv_param_slice *const slice = &plan->slices[i];
            slice->offset = plan->param_count;
            slice->count = param->info.count;
            if (owned) {
                const grvi_spectral_layout *const layout = &param->layout;
                slice->magnitudes = grvi_magnitudes(plan, &layout->axis[layout->n_axes > 1], domain_index(plan));
                const int64_t first = slice->magnitudes.start, end = first + slice->magnitudes.count;
                slice->count = (grvi_spectral_modes_before(layout, end) - grvi_spectral_modes_before(layout, first)) * 2 *
                               layout->channels * layout->channels;
            }
            plan->param_count += slice->count;
        }
    }
    return GRV_OK;
}

static void fill_context(grvi_step_context *context, const grv_plan *plan, const grvi_step *step)
{
    *context = (grvi_step_context){.plan = plan, .step = step, .node = &step->node, .n_threads = plan->params.n_threads};
    for (int i = 0; i < step->node.n_in; i++) context->in[i] = step->in[i] < 0 ? NULL : &plan->placed[step->in[i]];
    for (int o = 0; o < step->node.n_out; o++) context->out[o] = step->out[o] < 0 ? NULL : &plan->placed[step->out[o]];
}

/* How deep a thread's stack gets and how many nodes the rank hands on: the sums are followed without numbers. */
static grv_status plan_sums(grv_plan *plan, grvi_step *step)
{
    const grv_graph *const graph = &plan->graph;
    int first_field = -1;
    for (int o = 0; o < step->node.n_out; o++) {
        const grv_value v = step->node.out[o];
        if (v == GRV_NO_VALUE || graph->values[v].kind != GRVI_PARAM_GRADIENT) continue;
        const grvi_param *const param = &graph->params[graph->values[v].param];
        if (!param->info.owned) step->n_sums += param->info.count;
    }
    if (step->n_sums == 0) return GRV_OK;
    for (int i = 0; i < step->node.n_in && first_field < 0; i++) first_field = step->in[i];
    const grvi_placed *const placed = &plan->placed[first_field];
    const grvi_value *const v = &graph->values[placed->value];
    step->units = (grvi_units){.n_planes = v->n_axes > 1 ? v->axis[0].n : 1, .samples = plan->samples};
    step->units.planes = v->n_axes > 1 ? placed->range : (grv_range){0, 1};
    grv_status status = GRV_OK;
    grvi_tree_stack stack = {0};
    const int64_t n_units = step->units.samples.count * step->units.planes.count;
    /* a contiguous run leaves at most 2 log2 nodes; runs of different samples can stay apart */
    const int64_t capacity = grvi_min_i64(n_units + 1, 128 * step->units.samples.count + 2);
    int n_capacity = 0;
    GRV_TRY(grvi_to_int(capacity, &n_capacity));
    GRV_TRY(GRVI_ALLOC(&stack.nodes, capacity));
    stack.capacity = n_capacity;
    for (int64_t s = 0; s < step->units.samples.count; s++)
        for (int64_t p = 0; p < step->units.planes.count; p++) {
            const int64_t unit = (step->units.samples.start + s) * step->units.n_planes + step->units.planes.start + p;
            grvi_tree_push(&stack, (grvi_tree_node){.first = unit});
        }
    step->n_nodes = stack.n;
    /* a thread's run starts anywhere, which may double the nodes at its left end */
    step->stack_capacity = (int)grvi_min_i64(2 * stack.most + 2, capacity);
    grv_free(stack.nodes);
    step->bucket_offset = plan->bucket_count;
    plan->bucket_count += step->n_nodes * step->n_sums;
    const int64_t stack_bytes = step->stack_capacity * (step->n_sums * (int64_t)sizeof(double) + (int64_t)sizeof(grvi_tree_node));
    step->scratch_per_thread += (size_t)grvi_round_up(stack_bytes, ALIGNMENT);
    return status;
}

static grv_status plan_steps(grv_plan *plan)
{
    for (int i = 0; i < plan->n_steps; i++) {
        grvi_step *const step = &plan->steps[i];
        grvi_step_context context;
        fill_context(&context, plan, step);
        if (step->node.op->scratch != NULL)
            step->scratch_per_thread = (size_t)grvi_round_up((int64_t)step->node.op->scratch(&context), ALIGNMENT);
        GRV_TRY(plan_sums(plan, step));
        if (step->node.op == &grvi_op_repartition) {
            grv_traffic traffic;
            GRV_TRY(grvi_repartition_plan(&context, &traffic));
            step->n_messages = traffic.n_messages_sent;
            step->sent_bytes = traffic.bytes_sent;
            plan->message_bytes = grvi_max_i64(plan->message_bytes, traffic.scratch_bytes);
        }
        if (step->node.op->cost != NULL) step->node.op->cost(&context, &step->cost);
        plan->scratch_per_thread = grvi_max_i64(plan->scratch_per_thread, (int64_t)step->scratch_per_thread);
        for (int k = 0; k < step->node.n_in; k++)
            if (step->in[k] >= 0) plan->placed[step->in[k]].last_step = i;
        for (int o = 0; o < step->node.n_out; o++)
            if (step->out[o] >= 0) plan->placed[step->out[o]].first_step = i, plan->placed[step->out[o]].last_step = i;
    }
    return GRV_OK;
}

static bool lives_together(const grvi_placed *a, const grvi_placed *b)
{
    return a->first_step <= b->last_step && b->first_step <= a->last_step;
}

static int64_t placed_bytes(const grv_plan *plan, const grvi_placed *placed)
{
    return grvi_round_up(placed->count * (int64_t)grvi_dtype_bytes(plan->params.dtype), ALIGNMENT);
}

/* Largest first, each at the lowest offset that is free during its life. */
static grv_status assign_offsets(grv_plan *plan)
{
    int *order = NULL, n = 0;
    GRV_TRY(GRVI_ALLOC(&order, plan->n_placed));
    for (int i = 0; i < plan->n_placed; i++) {
        grvi_placed *const placed = &plan->placed[i];
        const grvi_value *const value = &plan->graph.values[placed->value];
        if (value->producer < 0 && placed->first_step == 0 && placed->split == (plan->params.n_domain > 1 ? 0 : -1)) continue; /* bound */
        if (value->is_output) placed->last_step = plan->n_steps;
        int k = n++;
        for (; k > 0 && placed_bytes(plan, &plan->placed[order[k - 1]]) < placed_bytes(plan, placed); k--) order[k] = order[k - 1];
        order[k] = i;
    }
    for (int k = 0; k < n; k++) {
        grvi_placed *const placed = &plan->placed[order[k]];
        const int64_t bytes = placed_bytes(plan, placed);
        int64_t offset = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (int j = 0; j < k; j++) {
                const grvi_placed *const other = &plan->placed[order[j]];
                const int64_t end = other->offset + placed_bytes(plan, other);
                if (!lives_together(placed, other) || offset >= end || offset + bytes <= other->offset) continue;
                offset = end;
                moved = true;
            }
        }
        placed->offset = offset;
        plan->arena_bytes = grvi_max_i64(plan->arena_bytes, offset + bytes);
    }
    grv_free(order);
    return GRV_OK;
}

static grv_status copy_graph(const grv_graph *from, grv_graph *to)
{
    *to = *from;
    to->values = NULL;
    to->nodes = NULL;
    to->params = NULL;
    to->value_capacity = from->n_values;
    to->node_capacity = from->n_nodes;
    to->param_capacity = from->n_params;
    GRV_TRY(GRVI_ALLOC(&to->values, from->n_values));
    GRV_TRY(GRVI_ALLOC(&to->nodes, from->n_nodes));
    GRV_TRY(GRVI_ALLOC(&to->params, from->n_params));
    memcpy(to->values, from->values, sizeof *to->values * (size_t)from->n_values);
    memcpy(to->nodes, from->nodes, sizeof *to->nodes * (size_t)from->n_nodes);
    memcpy(to->params, from->params, sizeof *to->params * (size_t)from->n_params);
    return GRV_OK;
}

static grv_status check_params(const grv_graph *graph, const grv_plan_params *params)
{
    GRV_TRY(grv_graph_status(graph));
    GRV_CHECK(params->n_threads >= 1 && params->n_data >= 1 && params->n_domain >= 1, GRV_E_ARG,
              "at least 1 thread, data rank and domain rank expected, %d, %d, %d found", params->n_threads, params->n_data, params->n_domain);
    GRV_CHECK(params->rank >= 0 && params->rank < (int64_t)params->n_data * params->n_domain, GRV_E_ARG,
              "rank 0 to %lld expected, %d found", (long long)params->n_data * params->n_domain - 1, params->rank);
    GRV_CHECK(graph->n_samples % params->n_data == 0, GRV_E_ARG, "%d data ranks cannot share a batch of %lld samples equally",
              params->n_data, (long long)graph->n_samples);
    GRV_CHECK(!params->gradients || graph->closed, GRV_E_ARG, "gradients are wanted of a graph that was not differentiated");
    for (int i = 0; i < graph->n_nodes && params->dtype == GRV_F64; i++)
        GRV_CHECK(!graph->nodes[i].op->f32_only, GRV_E_UNSUPPORTED, "operation '%s' exists in single precision only: use the graph before fusion",
                  graph->nodes[i].op->name);
    return GRV_OK;
}

static grv_status build(grv_plan *plan)
{
    GRV_TRY(place_params(plan));
    GRV_TRY(place_all(plan));
    GRV_TRY(plan_steps(plan));
    GRV_TRY(assign_offsets(plan));
    for (int i = 0; i < plan->graph.n_params; i++)
        GRV_CHECK(plan->slices[i].count > 0, GRV_E_ARG, "%d domain ranks leave some without modes of '%s': at most %lld domain ranks",
                  plan->params.n_domain, plan->graph.params[i].name,
                  (long long)grvi_axis_magnitudes(&plan->graph.params[i].layout.axis[plan->graph.params[i].layout.n_axes > 1]));
    return GRV_OK;
}

grv_status grv_plan_create(const grv_graph *graph, const grv_plan_params *params, grv_plan **out)
{
    *out = NULL;
    GRV_TRY(check_params(graph, params));
    grv_plan *plan = NULL;
    GRV_TRY(GRVI_CALLOC(&plan, 1));
    plan->params = *params;
    plan->samples = grv_partition_range(graph->n_samples, params->n_data, data_index(plan));
    grv_status status = copy_graph(graph, &plan->graph);
    if (status == GRV_OK) status = build(plan);
    if (status != GRV_OK) {
        grv_plan_destroy(&plan);
        return status;
    }
    *out = plan;
    return GRV_OK;
}

void grv_plan_destroy(grv_plan **plan)
{
    if (plan == NULL || *plan == NULL) return;
    grv_free((*plan)->graph.values);
    grv_free((*plan)->graph.nodes);
    grv_free((*plan)->graph.params);
    grv_free((*plan)->placed);
    grv_free((*plan)->steps);
    grv_free((*plan)->slices);
    grv_free(*plan);
    *plan = NULL;
}

grv_plan_summary grv_plan_summarise(const grv_plan *plan)
{
    grv_plan_summary s = {.arena_bytes = plan->arena_bytes,
                          .scratch_bytes = plan->scratch_per_thread * plan->params.n_threads,
                          .param_count = plan->param_count,
                          .param_bytes = plan->param_count * (int64_t)grvi_dtype_bytes(plan->params.dtype),
                          .n_steps = plan->n_steps,
                          .buffer_bytes = plan->message_bytes + plan->bucket_count * (int64_t)sizeof(double)};
    for (int i = 0; i < plan->n_steps; i++) {
        const grvi_step *const step = &plan->steps[i];
        s.flops += step->cost.flops;
        s.read_bytes += step->cost.read_bytes;
        s.written_bytes += step->cost.written_bytes;
        s.n_messages += step->n_messages;
        s.sent_bytes += step->sent_bytes;
    }
    return s;
}

grv_param_slice grv_plan_param(const grv_plan *plan, int i)
{
    GRV_ASSERT(i >= 0 && i < plan->graph.n_params);
    return plan->slices[i];
}

grv_range grv_plan_samples(const grv_plan *plan) { return plan->samples; }

static const grvi_placed *home_of(const grv_plan *plan, grv_value value)
{
    for (int i = 0; i < plan->n_placed; i++)
        if (plan->placed[i].value == value && plan->placed[i].split == (plan->params.n_domain > 1 ? 0 : -1)) return &plan->placed[i];
    return NULL;
}

grv_range grv_plan_planes(const grv_plan *plan, grv_value value)
{
    const grvi_placed *const placed = home_of(plan, value);
    return placed == NULL ? (grv_range){0, 0} : placed->range;
}

int64_t grv_plan_field_count(const grv_plan *plan, grv_value value)
{
    const grvi_placed *const placed = home_of(plan, value);
    return placed == NULL ? 0 : placed->count;
}

char *grv_plan_text(const grv_plan *plan)
{
    grvi_text text = {0};
    for (int i = 0; i < plan->n_steps; i++) {
        const grvi_step *const step = &plan->steps[i];
        grvi_text_printf(&text, "%3d %-24s", i, step->node.op->name);
        if (step->out[0] >= 0) {
            const grvi_placed *const out = &plan->placed[step->out[0]];
            grvi_text_printf(&text, " split %2d  %9.3f MB at %9.3f", out->split, 1e-6 * (double)placed_bytes(plan, out), 1e-6 * (double)out->offset);
        } else {
            grvi_text_printf(&text, " %-34s", "");
        }
        grvi_text_printf(&text, "  %8.3f GF  %8.3f MB read  %8.3f MB written\n", 1e-9 * step->cost.flops, 1e-6 * step->cost.read_bytes,
                         1e-6 * step->cost.written_bytes);
    }
    if (grvi_text_status(&text) != GRV_OK) grvi_text_fini(&text);
    return text.data;
}
