/* Activations and sums of fields.
 *   act(x) -> y;  act_gradient(dy, pre) -> dy * act'(pre);  add(a, b) -> a + b */
#include "ops/op_support.h"

static int64_t piece_offset(const grvi_step_context *c, const grvi_piece *piece)
{
    return piece->first_point * grvi_context_value(c, c->node->in[0])->channels;
}

static int64_t piece_count(const grvi_step_context *c, const grvi_piece *piece)
{
    return piece->n_points * grvi_context_value(c, c->node->in[0])->channels;
}

static void elementwise_cost(const grvi_step_context *c, grvi_cost *cost)
{
    static const double flops[] = {[GRV_ACTIVATION_NONE] = 1, [GRV_ACTIVATION_RELU] = 1, [GRV_ACTIVATION_GELU] = 18};
    cost->flops = flops[c->node->attributes.activation] * grvi_local_count(c->out[0]);
    cost->read_bytes = grvi_local_bytes(c, c->in[0]) + (c->node->n_in > 1 ? grvi_local_bytes(c, c->in[1]) : 0);
    cost->written_bytes = grvi_local_bytes(c, c->out[0]);
}

static void act_piece(const grvi_step_context *c, const grvi_piece *piece, void *scratch)
{
    (void)scratch;
    const int64_t at = piece_offset(c, piece);
    grvi_context_points(c)->act_forward((grvi_activation)c->node->attributes.activation, piece_count(c, piece), grvi_at(c, c->in_data[0], at),
                                        grvi_at_mut(c, c->out_data[0], at));
}

static grv_status act_run(const grvi_step_context *c)
{
    grvi_pieces_run(c, c->in[0], act_piece);
    return GRV_OK;
}

static void act_backward(grv_graph *graph, int index, grv_value gradient, grv_value *accumulated)
{
    const grvi_node node = graph->nodes[index];
    const grv_value in[] = {gradient, node.in[0]};
    if (gradient == GRV_NO_VALUE) return;
    grvi_graph_accumulate(graph, accumulated, node.in[0],
                          grvi_graph_emit(graph, &grvi_op_act_gradient, 2, in, &node.attributes, &graph->values[node.in[0]]));
}

const grvi_op_class grvi_op_act = {.name = "act", .split = grvi_split_axis0, .backward = act_backward, .cost = elementwise_cost,
                                   .run = act_run};

static void act_gradient_piece(const grvi_step_context *c, const grvi_piece *piece, void *scratch)
{
    (void)scratch;
    const int64_t at = piece_offset(c, piece);
    grvi_context_points(c)->act_gradient((grvi_activation)c->node->attributes.activation, piece_count(c, piece), grvi_at(c, c->in_data[0], at),
                                         grvi_at(c, c->in_data[1], at), grvi_at_mut(c, c->out_data[0], at));
}

static grv_status act_gradient_run(const grvi_step_context *c)
{
    grvi_pieces_run(c, c->in[0], act_gradient_piece);
    return GRV_OK;
}

const grvi_op_class grvi_op_act_gradient = {.name = "act_gradient", .split = grvi_split_axis0, .cost = elementwise_cost,
                                            .run = act_gradient_run};

static void add_piece(const grvi_step_context *c, const grvi_piece *piece, void *scratch)
{
    (void)scratch;
    const int64_t at = piece_offset(c, piece);
    grvi_context_points(c)->add(piece_count(c, piece), grvi_at(c, c->in_data[0], at), grvi_at(c, c->in_data[1], at),
                                grvi_at_mut(c, c->out_data[0], at));
}

static grv_status add_run(const grvi_step_context *c)
{
    grvi_pieces_run(c, c->in[0], add_piece);
    return GRV_OK;
}

static void add_backward(grv_graph *graph, int index, grv_value gradient, grv_value *accumulated)
{
    const grvi_node node = graph->nodes[index];
    for (int k = 0; k < 2; k++)
        if (graph->values[node.in[k]].needs_gradient) grvi_graph_accumulate(graph, accumulated, node.in[k], gradient);
}

const grvi_op_class grvi_op_add = {.name = "add", .split = grvi_split_axis0, .backward = add_backward, .cost = elementwise_cost,
                                   .run = add_run};
