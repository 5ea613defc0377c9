/* y = x W + b over channels at every point, and its gradients.
 *   linear(x [.., c_in], W [c_in][c_out], b [c_out] or none) -> y [.., c_out]
 *   linear transposed(g [.., c_out], W, none) -> dx [.., c_in] = g W^T
 *   linear_weight_gradient(x, g) -> dW, db: summed over planes by the tree of src/dist/tree.h */
#include "ops/op_support.h"

static grvi_linear linear_of(const grvi_step_context *c)
{
    const grv_value w = c->node->in[1];
    const grvi_value *const weight = grvi_context_value(c, w);
    const int64_t *const shape = c->plan->graph.params[weight->param].info.shape;
    return (grvi_linear){.c_in = shape[0], .c_out = shape[1], .weight = c->in_data[1], .bias = c->in_data[2]};
}

static void run_piece(const grvi_step_context *c, const grvi_piece *piece, void *scratch)
{
    const grvi_linear linear = linear_of(c);
    const grvi_point_kernels *const k = grvi_context_points(c);
    if (c->node->attributes.transposed)
        k->linear_input_gradient(&linear, piece->n_points, grvi_at(c, c->in_data[0], piece->first_point * linear.c_out),
                                 grvi_at_mut(c, c->out_data[0], piece->first_point * linear.c_in), scratch);
    else
        k->linear_forward(&linear, piece->n_points, grvi_at(c, c->in_data[0], piece->first_point * linear.c_in),
                          grvi_at_mut(c, c->out_data[0], piece->first_point * linear.c_out), NULL, scratch);
}

static grv_status linear_run(const grvi_step_context *c)
{
    grvi_pieces_run(c, c->in[0], run_piece);
    return GRV_OK;
}

static size_t linear_scratch(const grvi_step_context *c)
{
    const grvi_linear linear = linear_of(c);
    return (size_t)grvi_linear_scratch_bytes(&linear);
}

static void linear_cost(const grvi_step_context *c, grvi_cost *cost)
{
    const grvi_linear linear = linear_of(c);
    cost->flops = 2 * grvi_local_count(c->in[0]) * (double)(c->node->attributes.transposed ? linear.c_in : linear.c_out);
    cost->read_bytes = grvi_local_bytes(c, c->in[0]);
    cost->written_bytes = grvi_local_bytes(c, c->out[0]);
}

static void linear_backward(grv_graph *graph, int index, grv_value gradient, grv_value *accumulated)
{
    const grvi_node node = graph->nodes[index];
    const grv_value x = node.in[0];
    grvi_graph_emit_weight_gradient(graph, x, gradient, node.in[1], node.in[2]);
    if (graph->status != GRV_OK || !graph->values[x].needs_gradient) return;
    const grvi_attributes attributes = {.transposed = true};
    const grv_value in[] = {gradient, node.in[1], GRV_NO_VALUE};
    grvi_graph_accumulate(graph, accumulated, x, grvi_graph_emit(graph, &grvi_op_linear, 3, in, &attributes, &graph->values[x]));
}

const grvi_op_class grvi_op_linear = {.name = "linear", .split = grvi_split_axis0, .backward = linear_backward,
                                      .scratch = linear_scratch, .cost = linear_cost, .run = linear_run};

/* --- weight gradient --- */

void grvi_graph_emit_weight_gradient(grv_graph *graph, grv_value x, grv_value gradient, grv_value weight, grv_value bias)
{
    const grv_value dw = grvi_graph_param_gradient(graph, weight);
    const grv_value db = bias == GRV_NO_VALUE ? GRV_NO_VALUE : grvi_graph_param_gradient(graph, bias);
    grvi_node *const node = grvi_graph_new_node(graph, &grvi_op_linear_weight_gradient);
    if (node == NULL) return;
    node->n_in = 2;
    node->in[0] = x;
    node->in[1] = gradient;
    node->n_out = 2;
    node->out[0] = dw;
    node->out[1] = db;
}

static grvi_linear sizes_of(const grvi_step_context *c)
{
    return (grvi_linear){.c_in = grvi_context_value(c, c->node->in[0])->channels, .c_out = grvi_context_value(c, c->node->in[1])->channels};
}

static void gradient_unit(const grvi_step_context *c, int64_t sample, int64_t plane, void *scratch, double *sums)
{
    const grvi_linear linear = sizes_of(c);
    const int64_t n = grvi_plane_points(c, c->in[0]);
    const int64_t first = (sample * c->step->units.planes.count + plane) * n;
    for (int64_t i = 0; i < c->step->n_sums; i++) sums[i] = 0;
    double *const db = c->node->out[1] == GRV_NO_VALUE ? NULL : sums + linear.c_in * linear.c_out;
    grvi_context_points(c)->linear_weight_gradient(&linear, n, grvi_at(c, c->in_data[0], first * linear.c_in),
                                                   grvi_at(c, c->in_data[1], first * linear.c_out), sums, db, scratch);
}

static grv_status gradient_run(const grvi_step_context *c)
{
    grvi_units_run(c, gradient_unit);
    return GRV_OK;
}

static size_t gradient_scratch(const grvi_step_context *c)
{
    const grvi_linear linear = sizes_of(c);
    return (size_t)grvi_linear_scratch_bytes(&linear);
}

static void gradient_cost(const grvi_step_context *c, grvi_cost *cost)
{
    cost->flops = 2 * grvi_local_count(c->in[0]) * (double)sizes_of(c).c_out;
    cost->read_bytes = grvi_local_bytes(c, c->in[0]) + grvi_local_bytes(c, c->in[1]);
}

const grvi_op_class grvi_op_linear_weight_gradient = {.name = "linear_weight_gradient", .split = grvi_split_axis0,
                                                      .scratch = gradient_scratch, .cost = gradient_cost, .run = gradient_run};
