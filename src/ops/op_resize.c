/* Shape changes: resize (zeros appended or points dropped at the high end of axes; its adjoint is the resize back), repeat of an axis
 * of one point and its adjoint (the sum), coordinate channels. */
#include <string.h>

#include "ops/op_support.h"

/* resize of axis 0 needs axis 0 whole */
static grvi_split_rule resize_split(const grvi_node *node) { return node->attributes.axis == 0 ? GRVI_SPLIT_AXIS1 : GRVI_SPLIT_AXIS0; }

/* Copies axes a.. of the smaller extent, zeroes the rest. Sizes in elements of `size` bytes. */
static void resize_axes(const int64_t *n_in, const int64_t *n_out, int a, int n_axes, size_t unit, const char *in, char *out)
{
    size_t in_stride = unit, out_stride = unit;
    for (int b = a + 1; b < n_axes; b++) in_stride *= (size_t)n_in[b], out_stride *= (size_t)n_out[b];
    const int64_t common = grvi_min_i64(n_in[a], n_out[a]);
    bool same_inside = true;
    for (int b = a + 1; b < n_axes; b++) same_inside = same_inside && n_in[b] == n_out[b];
    if (same_inside) memcpy(out, in, (size_t)common * in_stride);
    else
        for (int64_t i = 0; i < common; i++)
            resize_axes(n_in, n_out, a + 1, n_axes, unit, in + (size_t)i * in_stride, out + (size_t)i * out_stride);
    memset(out + (size_t)common * out_stride, 0, (size_t)(n_out[a] - common) * out_stride);
}

typedef struct resize_call {
    const grvi_step_context *context;
    int first_axis; /* axes before it are equal and run over by the loop */
} resize_call;

static void resize_range(void *argument, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const resize_call *const call = argument;
    const grvi_step_context *const c = call->context;
    const grvi_value *const v = grvi_context_value(c, c->node->out[0]);
    size_t in_bytes = grvi_dtype_bytes(c->plan->params.dtype) * (size_t)v->channels, out_bytes = in_bytes;
    const size_t unit = in_bytes;
    for (int a = call->first_axis; a < v->n_axes; a++) in_bytes *= (size_t)c->in[0]->n_local[a], out_bytes *= (size_t)c->out[0]->n_local[a];
    for (int64_t i = begin; i < end; i++)
        resize_axes(c->in[0]->n_local, c->out[0]->n_local, call->first_axis, v->n_axes, unit, (const char *)c->in_data[0] + (size_t)i * in_bytes,
                    (char *)c->out_data[0] + (size_t)i * out_bytes);
}

static grv_status resize_run(const grvi_step_context *c)
{
    const bool planes = c->in[0]->n_local[0] == c->out[0]->n_local[0] && grvi_context_value(c, c->node->out[0])->n_axes > 1;
    resize_call call = {.context = c, .first_axis = planes ? 1 : 0};
    grv_parallel_for(c->n_threads, c->in[0]->n_samples * (planes ? c->in[0]->n_local[0] : 1), resize_range, &call);
    return GRV_OK;
}

static void copy_cost(const grvi_step_context *c, grvi_cost *cost)
{
    cost->read_bytes = grvi_local_bytes(c, c->in[0]);
    cost->written_bytes = grvi_local_bytes(c, c->out[0]);
}

static void resize_backward(grv_graph *graph, int index, grv_value gradient, grv_value *accumulated)
{
    const grvi_node node = graph->nodes[index];
    grvi_graph_accumulate(graph, accumulated, node.in[0],
                          grvi_graph_emit(graph, &grvi_op_resize, 1, &gradient, &node.attributes, &graph->values[node.in[0]]));
}

const grvi_op_class grvi_op_resize = {.name = "resize", .split = resize_split, .backward = resize_backward, .cost = copy_cost,
                                      .run = resize_run};

/* --- repeat --- */

/* [outer][1 or n][inner] */
static void repeat_sizes(const grvi_step_context *c, const grvi_placed *repeated, int64_t *n, int64_t *inner)
{
    const grvi_value *const v = grvi_context_value(c, repeated->value);
    const int axis = c->node->attributes.axis;
    *n = repeated->n_local[axis];
    *inner = v->channels;
    for (int a = axis + 1; a < v->n_axes; a++) *inner *= repeated->n_local[a];
}

static void repeat_piece(const grvi_step_context *c, const grvi_piece *piece, void *scratch)
{
    (void)scratch;
    int64_t n = 0, inner = 0;
    repeat_sizes(c, c->out[0], &n, &inner);
    const int64_t channels = grvi_context_value(c, c->node->in[0])->channels;
    const size_t bytes = (size_t)inner * grvi_dtype_bytes(c->plan->params.dtype);
    const char *in = grvi_at(c, c->in_data[0], piece->first_point * channels);
    char *out = grvi_at_mut(c, c->out_data[0], piece->first_point * channels * n);
    for (int64_t o = 0; o < piece->n_points * channels / inner; o++, in += bytes)
        for (int64_t i = 0; i < n; i++, out += bytes) memcpy(out, in, bytes);
}

static grv_status repeat_run(const grvi_step_context *c)
{
    grvi_pieces_run(c, c->in[0], repeat_piece);
    return GRV_OK;
}

static void repeat_backward(grv_graph *graph, int index, grv_value gradient, grv_value *accumulated)
{
    const grvi_node node = graph->nodes[index];
    if (!graph->values[node.in[0]].needs_gradient) return;
    grvi_graph_accumulate(graph, accumulated, node.in[0],
                          grvi_graph_emit(graph, &grvi_op_repeat_adjoint, 1, &gradient, &node.attributes, &graph->values[node.in[0]]));
}

const grvi_op_class grvi_op_repeat = {.name = "repeat", .split = grvi_split_axis0, .backward = repeat_backward, .cost = copy_cost,
                                      .run = repeat_run};

#define GRVI_SUM_REPEATS(type)                                                                     \
    do {                                                                                           \
        const type *const x = in;                                                                  \
        type *const y = out;                                                                       \
        for (int64_t k = 0; k < inner; k++) {                                                      \
            double sum = 0;                                                                        \
            for (int64_t i = 0; i < n; i++) sum += (double)x[i * inner + k];                       \
            y[k] = (type)sum;                                                                      \
        }                                                                                          \
    } while (0)

static void repeat_adjoint_piece(const grvi_step_context *c, const grvi_piece *piece, void *scratch)
{
    (void)scratch;
    int64_t n = 0, inner = 0;
    repeat_sizes(c, c->in[0], &n, &inner);
    const int64_t channels = grvi_context_value(c, c->node->out[0])->channels;
    for (int64_t o = 0; o < piece->n_points * channels / inner; o++) {
        const int64_t at = piece->first_point * channels + o * inner;
        const void *const in = grvi_at(c, c->in_data[0], at * n);
        void *const out = grvi_at_mut(c, c->out_data[0], at);
        if (c->plan->params.dtype == GRV_F64) GRVI_SUM_REPEATS(double);
        else GRVI_SUM_REPEATS(float);
    }
}

static grv_status repeat_adjoint_run(const grvi_step_context *c)
{
    grvi_pieces_run(c, c->out[0], repeat_adjoint_piece);
    return GRV_OK;
}

const grvi_op_class grvi_op_repeat_adjoint = {.name = "repeat_adjoint", .split = grvi_split_axis0, .cost = copy_cost,
                                              .run = repeat_adjoint_run};

/* --- coordinates --- */

#define GRVI_APPEND_COORDINATES(type)                                                              \
    do {                                                                                           \
        const type *const x = grvi_at(c, c->in_data[0], p * channels);                             \
        type *const y = grvi_at_mut(c, c->out_data[0], p * (channels + d));                        \
        memcpy(y, x, sizeof *x * (size_t)channels);                                                \
        for (int a = 0; a < d; a++) y[channels + a] = (type)((double)index[a] / length[a]); \
    } while (0)

static void coordinates_piece(const grvi_step_context *c, const grvi_piece *piece, void *scratch)
{
    (void)scratch;
    const grvi_value *const v = grvi_context_value(c, c->node->in[0]);
    const int64_t channels = v->channels;
    const int d = v->n_axes;
    double length[GRV_MAX_AXES];
    for (int a = 0; a < d; a++) {
        const int64_t n = v->axis[a].n - (c->node->attributes.coordinates == GRV_COORDINATES_INCLUSIVE);
        length[a] = n > 0 ? (double)n : 1;
    }
    for (int64_t p = piece->first_point; p < piece->first_point + piece->n_points; p++) {
        int64_t index[GRV_MAX_AXES], rest = p;
        for (int a = d - 1; a >= 0; a--) {
            index[a] = rest % c->in[0]->n_local[a];
            rest /= c->in[0]->n_local[a];
        }
        index[0] += c->in[0]->range.start;
        if (c->plan->params.dtype == GRV_F64) GRVI_APPEND_COORDINATES(double);
        else GRVI_APPEND_COORDINATES(float);
    }
}

static grv_status coordinates_run(const grvi_step_context *c)
{
    grvi_pieces_run(c, c->in[0], coordinates_piece);
    return GRV_OK;
}

const grvi_op_class grvi_op_coordinates = {.name = "coordinates", .split = grvi_split_axis0, .cost = copy_cost, .run = coordinates_run};
