/* mlp_stream: two linear layers with activations at every point; the hidden layer is never stored.
 *   mlp(x, W1, b1, W2, b2) -> y;  replaces linear, act, linear, act
 *   mlp_gradient(x, dy, W1, b1, W2, b2) -> dx (or none), dW1, db1, dW2, db2; recomputes the hidden layer */
#include "ops/op_support.h"

static int64_t weight_shape(const grvi_step_context *c, grv_value weight, int d)
{
    return c->plan->graph.params[grvi_context_value(c, weight)->param].info.shape[d];
}

/* first: operand index of W1 */
static grvi_mlp mlp_of(const grvi_step_context *c, int first)
{
    const grvi_node *const node = c->node;
    return (grvi_mlp){.c_in = weight_shape(c, node->in[first], 0),
                      .c_hidden = weight_shape(c, node->in[first], 1),
                      .c_out = weight_shape(c, node->in[first + 2], 1),
                      .weight1 = c->in_data[first],
                      .bias1 = c->in_data[first + 1],
                      .weight2 = c->in_data[first + 2],
                      .bias2 = c->in_data[first + 3],
                      .activation1 = (grvi_activation)node->attributes.hidden_activation,
                      .activation2 = (grvi_activation)node->attributes.activation};
}

static void run_piece(const grvi_step_context *c, const grvi_piece *piece, void *scratch)
{
    const grvi_mlp mlp = mlp_of(c, 1);
    grvi_context_points(c)->mlp_forward(&mlp, piece->n_points, grvi_at(c, c->in_data[0], piece->first_point * mlp.c_in),
                                        grvi_at_mut(c, c->out_data[0], piece->first_point * mlp.c_out), scratch);
}

static grv_status mlp_run(const grvi_step_context *c)
{
    grvi_pieces_run(c, c->in[0], run_piece);
    return GRV_OK;
}

static size_t mlp_scratch(const grvi_step_context *c)
{
    const grvi_mlp mlp = mlp_of(c, 1);
    return (size_t)grvi_mlp_scratch_bytes(&mlp);
}

static double activation_flops(grvi_activation activation)
{
    return activation == GRVI_ACT_GELU ? 18 : 1;
}

static double forward_flops_per_point(const grvi_mlp *m)
{
    return 2 * (double)m->c_hidden * (double)(m->c_in + m->c_out) + activation_flops(m->activation1) * (double)m->c_hidden +
           activation_flops(m->activation2) * (double)m->c_out;
}

static void mlp_cost(const grvi_step_context *c, grvi_cost *cost)
{
    const grvi_mlp mlp = mlp_of(c, 1);
    cost->flops = forward_flops_per_point(&mlp) * grvi_local_count(c->in[0]) / (double)mlp.c_in;
    cost->read_bytes = grvi_local_bytes(c, c->in[0]);
    cost->written_bytes = grvi_local_bytes(c, c->out[0]);
}

static void mlp_backward(grv_graph *graph, int index, grv_value gradient, grv_value *accumulated)
{
    const grvi_node node = graph->nodes[index];
    const grv_value x = node.in[0];
    const bool wants_input = graph->values[x].needs_gradient;
    const grv_value dx = wants_input ? grvi_graph_new_value(graph, &graph->values[x]) : GRV_NO_VALUE;
    grv_value out[GRVI_MAX_OUTPUTS] = {dx};
    for (int k = 1; k < 5; k++) out[k] = node.in[k] == GRV_NO_VALUE ? GRV_NO_VALUE : grvi_graph_param_gradient(graph, node.in[k]);
    grvi_node *const back = grvi_graph_new_node(graph, &grvi_op_mlp_gradient);
    if (back == NULL) return;
    back->n_in = 6;
    back->in[0] = x;
    back->in[1] = gradient;
    for (int k = 1; k < 5; k++) back->in[k + 1] = node.in[k];
    back->n_out = 5;
    for (int k = 0; k < 5; k++) back->out[k] = out[k];
    back->attributes = node.attributes;
    if (!wants_input) return;
    graph->values[dx].producer = graph->n_nodes - 1;
    grvi_graph_accumulate(graph, accumulated, x, dx);
}

const grvi_op_class grvi_op_mlp = {.name = "mlp_stream", .split = grvi_split_axis0, .backward = mlp_backward, .scratch = mlp_scratch,
                                   .cost = mlp_cost, .run = mlp_run};

static void gradient_unit(const grvi_step_context *c, int64_t sample, int64_t plane, void *scratch, double *sums)
{
    const grvi_mlp mlp = mlp_of(c, 2);
    const int64_t n = grvi_plane_points(c, c->in[0]);
    const int64_t first = (sample * c->step->units.planes.count + plane) * n;
    for (int64_t i = 0; i < c->step->n_sums; i++) sums[i] = 0;
    const int64_t counts[] = {mlp.c_in * mlp.c_hidden, mlp.c_hidden, mlp.c_hidden * mlp.c_out, mlp.c_out};
    double *pieces[4], *next = sums;
    for (int k = 0; k < 4; k++) {
        pieces[k] = c->node->out[k + 1] == GRV_NO_VALUE ? NULL : next;
        if (pieces[k] != NULL) next += counts[k];
    }
    const grvi_mlp_gradients gradients = {.weight1 = pieces[0], .bias1 = pieces[1], .weight2 = pieces[2], .bias2 = pieces[3]};
    void *const dx = c->out[0] == NULL ? NULL : grvi_at_mut(c, c->out_data[0], first * mlp.c_in);
    grvi_context_points(c)->mlp_backward(&mlp, n, grvi_at(c, c->in_data[0], first * mlp.c_in), grvi_at(c, c->in_data[1], first * mlp.c_out),
                                         dx, &gradients, scratch);
}

static grv_status gradient_run(const grvi_step_context *c)
{
    grvi_units_run(c, gradient_unit);
    return GRV_OK;
}

static size_t gradient_scratch(const grvi_step_context *c)
{
    const grvi_mlp mlp = mlp_of(c, 2);
    return (size_t)grvi_mlp_scratch_bytes(&mlp);
}

static void gradient_cost(const grvi_step_context *c, grvi_cost *cost)
{
    const grvi_mlp mlp = mlp_of(c, 2);
    const double points = grvi_local_count(c->in[0]) / (double)mlp.c_in;
    /* forward again, gradients of both weights, of the hidden layer and, if wanted, of the input */
    const double products = 2 * (double)mlp.c_hidden * (double)(mlp.c_in + 2 * mlp.c_out + (c->out[0] != NULL ? mlp.c_in : 0));
    cost->flops = (forward_flops_per_point(&mlp) + products + 24 * (double)mlp.c_hidden) * points;
    cost->read_bytes = grvi_local_bytes(c, c->in[0]) + grvi_local_bytes(c, c->in[1]);
    cost->written_bytes = grvi_local_bytes(c, c->out[0]);
}

const grvi_op_class grvi_op_mlp_gradient = {.name = "mlp_stream_gradient", .split = grvi_split_axis0, .scratch = gradient_scratch,
                                            .cost = gradient_cost, .run = gradient_run};
