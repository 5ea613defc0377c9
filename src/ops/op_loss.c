/* Losses. loss(p, y) -> sums per sample (in the executor) and the scalar; loss_gradient(p, y, sums) -> dL/dp. */
#include "graph/exec_impl.h"
#include "ops/op_support.h"

static void loss_planes(void *argument, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const grvi_step_context *const c = argument;
    const int64_t n = grvi_plane_points(c, c->in[0]) * grvi_context_value(c, c->node->in[0])->channels;
    for (int64_t i = begin; i < end; i++) {
        const grvi_loss_sums sums = grvi_context_points(c)->loss_sums(n, grvi_at(c, c->in_data[0], i * n), grvi_at(c, c->in_data[1], i * n));
        c->exec->loss_planes[2 * i] = sums.error2;
        c->exec->loss_planes[2 * i + 1] = sums.target2;
    }
}

static grv_status loss_run(const grvi_step_context *c)
{
    const grvi_value *const v = grvi_context_value(c, c->node->in[0]);
    const int64_t planes = c->in[0]->n_samples * (v->n_axes == 1 ? 1 : c->in[0]->n_local[0]);
    grv_parallel_for(c->n_threads, planes, loss_planes, (void *)(uintptr_t)c);
    return grvi_exec_reduce_loss(c);
}

static void loss_cost(const grvi_step_context *c, grvi_cost *cost)
{
    cost->flops = 5 * grvi_local_count(c->in[0]);
    cost->read_bytes = 2 * grvi_local_bytes(c, c->in[0]);
}

static void loss_backward(grv_graph *graph, int index, grv_value gradient, grv_value *accumulated)
{
    (void)gradient; /* of a scalar by itself: 1 */
    const grvi_node node = graph->nodes[index];
    const grv_value in[] = {node.in[0], node.in[1], node.out[0]};
    if (!graph->values[node.in[0]].needs_gradient) return;
    grvi_graph_accumulate(graph, accumulated, node.in[0],
                          grvi_graph_emit(graph, &grvi_op_loss_gradient, 3, in, &node.attributes, &graph->values[node.in[0]]));
}

const grvi_op_class grvi_op_loss = {.name = "loss", .split = grvi_split_axis0, .backward = loss_backward, .cost = loss_cost, .run = loss_run};

static void gradient_piece(const grvi_step_context *c, const grvi_piece *piece, void *scratch)
{
    (void)scratch;
    const int64_t channels = grvi_context_value(c, c->node->in[0])->channels, at = piece->first_point * channels;
    grvi_context_points(c)->loss_gradient(piece->n_points * channels, grvi_exec_loss_scale(c, piece->sample), grvi_at(c, c->in_data[0], at),
                                          grvi_at(c, c->in_data[1], at), grvi_at_mut(c, c->out_data[0], at));
}

static grv_status gradient_run(const grvi_step_context *c)
{
    grvi_pieces_run(c, c->in[0], gradient_piece);
    return GRV_OK;
}

static void gradient_cost(const grvi_step_context *c, grvi_cost *cost)
{
    cost->flops = 2 * grvi_local_count(c->in[0]);
    cost->read_bytes = 2 * grvi_local_bytes(c, c->in[0]);
    cost->written_bytes = grvi_local_bytes(c, c->out[0]);
}

const grvi_op_class grvi_op_loss_gradient = {.name = "loss_gradient", .split = grvi_split_axis0, .cost = gradient_cost, .run = gradient_run};
