/* Truncated real transform along one axis and its adjoint, the plain sum of basis functions. Primitive: any element type, computed in
 * double, plain order. The fused operations of op_spectral.c replace chains of these.
 *   analyse(x) -> rows;  synthesise(rows) -> x;  each is the other's backward */
#include "core/alloc.h"
#include "kernels/axis_transform.h"
#include "ops/op_support.h"

/* a transform along axis 0 needs it whole, any other needs axis 0 split */
static grvi_split_rule transform_split(const grvi_node *node) { return node->attributes.axis == 0 ? GRVI_SPLIT_AXIS1 : GRVI_SPLIT_AXIS0; }

static bool is_synthesis(const grvi_step_context *c) { return c->node->op == &grvi_op_synthesise; }

static const grvi_axis_modes *spectral_axis(const grvi_step_context *c)
{
    return &grvi_context_value(c, is_synthesis(c) ? c->node->in[0] : c->node->out[0])->axis[c->node->attributes.axis];
}

static grv_status transform_init(grvi_step_context *c)
{
    const grvi_axis_modes *const axis = spectral_axis(c);
    double *table = NULL;
    GRV_TRY(GRVI_ALLOC(&table, axis->n_rows * axis->n));
    grvi_axis_table(axis, table);
    c->object = table;
    return GRV_OK;
}

static void transform_fini(grvi_step_context *c) { grv_free(c->object); }

/* one outer index and result row after the other: each depends on nothing but itself */
static void transform_range(void *argument, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const grvi_step_context *const c = argument;
    const int a = c->node->attributes.axis;
    const grvi_value *const v = grvi_context_value(c, c->node->in[0]);
    int64_t inner = v->channels;
    for (int b = a + 1; b < v->n_axes; b++) inner *= c->in[0]->n_local[b];
    const int64_t n_in = c->in[0]->n_local[a], n_out = c->out[0]->n_local[a];
    for (int64_t i = begin; i < end; i++) {
        const int64_t outer = i / n_out, row = i % n_out;
        const void *const in = grvi_at(c, c->in_data[0], outer * n_in * inner);
        void *const out = grvi_at_mut(c, c->out_data[0], outer * n_out * inner);
        if (c->plan->params.dtype == GRV_F64)
            grvi_axis_transform_f64(spectral_axis(c), c->object, is_synthesis(c), row, row + 1, inner, in, out);
        else
            grvi_axis_transform_f32(spectral_axis(c), c->object, is_synthesis(c), row, row + 1, inner, in, out);
    }
}

static grv_status transform_run(const grvi_step_context *c)
{
    int64_t outer = c->in[0]->n_samples;
    for (int b = 0; b < c->node->attributes.axis; b++) outer *= c->in[0]->n_local[b];
    grv_parallel_for(c->n_threads, outer * c->out[0]->n_local[c->node->attributes.axis], transform_range, (void *)(uintptr_t)c);
    return GRV_OK;
}

static void transform_cost(const grvi_step_context *c, grvi_cost *cost)
{
    /* folded: with p cosine and q sine points, (rows of cosines) p + (rows of sines) q products a column */
    const grvi_axis_modes *const axis = spectral_axis(c);
    const double p = (double)(axis->n / 2 + 1), q = (double)((axis->n + 1) / 2 - 1);
    const grvi_placed *const physical = is_synthesis(c) ? c->out[0] : c->in[0];
    cost->flops = 2 * grvi_local_count(physical) / (double)axis->n * ((double)axis->n_cos * p + (double)axis->n_sin * q);
    cost->read_bytes = grvi_local_bytes(c, c->in[0]);
    cost->written_bytes = grvi_local_bytes(c, c->out[0]);
}

static void transform_backward(grv_graph *graph, int index, grv_value gradient, grv_value *accumulated)
{
    const grvi_node node = graph->nodes[index];
    if (!graph->values[node.in[0]].needs_gradient) return;
    const grvi_op_class *const adjoint = node.op == &grvi_op_analyse ? &grvi_op_synthesise : &grvi_op_analyse;
    grvi_graph_accumulate(graph, accumulated, node.in[0],
                          grvi_graph_emit(graph, adjoint, 1, &gradient, &node.attributes, &graph->values[node.in[0]]));
}

const grvi_op_class grvi_op_analyse = {.name = "analyse", .split = transform_split, .backward = transform_backward, .init = transform_init,
                                       .fini = transform_fini, .cost = transform_cost, .run = transform_run};
const grvi_op_class grvi_op_synthesise = {.name = "synthesise", .split = transform_split, .backward = transform_backward,
                                          .init = transform_init, .fini = transform_fini, .cost = transform_cost, .run = transform_run};
