/* The fused spectral operations of an FNO block (docs/spectral.md), in slab and mode order, single precision.
 *   spectral_analysis(v) -> A: all axes but axis 0, plane by plane
 *   spectral_analysis_gradient(dy, pre) -> A, g: the same of g = dy act'(pre), which is kept for the weight gradients
 *   first_axis_analyse(A) -> P, first_axis_synthesise(P) -> A: along axis 0, which is whole
 *   spectral_synthesis(A, u, W, b) -> y (, pre): y = act(inverse transforms + u W + b); u, W, b may be missing; in the backward pass W is
 *     used transposed, so that the same operation adds both gradients of a block's input */
#include "core/alloc.h"
#include "kernels/spectral_transform.h"
#include "ops/op_support.h"

typedef struct spectral_object {
    grvi_transform_tables *tables;
    const grvi_spectral_kernels *kernels;
    float *transposed; /* W^T, or NULL */
} spectral_object;

static grvi_split_rule split_axis1(const grvi_node *node) { return (void)node, GRVI_SPLIT_AXIS1; }

static grv_status spectral_init(grvi_step_context *c)
{
    spectral_object *object = NULL;
    GRV_TRY(GRVI_CALLOC(&object, 1));
    c->object = object;
    object->kernels = grvi_spectral_kernels_for(grvi_isa_chosen());
    GRV_TRY(grvi_transform_tables_create(&c->node->attributes.layout, &object->tables));
    const int64_t channels = c->node->attributes.layout.channels;
    if (c->node->attributes.transposed) GRV_TRY(GRVI_ALLOC(&object->transposed, channels * channels));
    return GRV_OK;
}

static void spectral_fini(grvi_step_context *c)
{
    spectral_object *const object = c->object;
    grvi_transform_tables_destroy(&object->tables);
    grv_free(object->transposed);
    grv_free(object);
}

static size_t spectral_scratch(const grvi_step_context *c)
{
    const grvi_transform_tables sizes = {.layout = c->node->attributes.layout}; /* the sizes are all that is looked at */
    return (size_t)grvi_spectral_kernels_for(grvi_isa_chosen())->scratch_bytes(&sizes);
}

/* products of the folded transform along an axis, for `columns` columns */
static double transform_flops(const grvi_axis_modes *axis, double columns)
{
    const double p = (double)(axis->n / 2 + 1), q = (double)((axis->n + 1) / 2 - 1);
    return 2 * columns * ((double)axis->n_cos * p + (double)axis->n_sin * q);
}

/* all local axes of the planes of a field; the order is the one of the kernels: axis d-2 first, then d-1, then outward */
static double planes_flops(const grvi_step_context *c, const grvi_placed *physical)
{
    const grvi_spectral_layout *const l = &c->node->attributes.layout;
    const int d = l->n_axes;
    double flops = 0, columns = grvi_local_count(physical);
    for (int i = 0; i < d - 1; i++) {
        const int a = d == 2 ? 1 : i == 0 ? d - 2 : i == 1 ? d - 1 : d - 1 - i;
        columns /= (double)l->axis[a].n;
        flops += transform_flops(&l->axis[a], columns);
        columns *= (double)l->axis[a].n_rows;
    }
    return flops;
}

/* --- analysis --- */

static grvi_slab_plane slab_plane(const grvi_step_context *c, const grvi_placed *slab, void *data, int64_t sample, int64_t x)
{
    const grvi_spectral_layout *const l = &c->node->attributes.layout;
    const int64_t n_x = slab->n_local[0], n_r1 = l->n_axes > 1 ? slab->n_local[1] : 1;
    const int64_t stride_qb = n_x * l->block, stride_r1 = l->n_blocks * stride_qb;
    return (grvi_slab_plane){.data = (float *)data + sample * n_r1 * stride_r1 + x * l->block, .stride_r1 = stride_r1, .stride_qb = stride_qb};
}

static int64_t plane_count(const grvi_step_context *c)
{
    const grvi_spectral_layout *const l = &c->node->attributes.layout;
    return l->n_points / l->axis[0].n * l->channels;
}

static void analysis_range(void *argument, int thread, int64_t begin, int64_t end)
{
    const grvi_step_context *const c = argument;
    const spectral_object *const object = c->object;
    const int64_t n = plane_count(c), n_x = c->in[0]->n_local[0];
    void *const scratch = grvi_context_scratch(c, thread);
    for (int64_t i = begin; i < end; i++) {
        const grvi_slab_plane a = slab_plane(c, c->out[0], c->out_data[0], i / n_x, i % n_x);
        const float *const v = (const float *)c->in_data[0] + i * n;
        if (c->node->n_in == 1) object->kernels->analyse_plane(object->tables, v, a, scratch);
        else
            object->kernels->analyse_gradient_plane(object->tables, v, (const float *)c->in_data[1] + i * n,
                                                    (grvi_activation)c->node->attributes.activation, (float *)c->out_data[1] + i * n, a, scratch);
    }
}

static grv_status analysis_run(const grvi_step_context *c)
{
    grv_parallel_for(c->n_threads, c->in[0]->n_samples * c->in[0]->n_local[0], analysis_range, (void *)(uintptr_t)c);
    return GRV_OK;
}

static void analysis_cost(const grvi_step_context *c, grvi_cost *cost)
{
    cost->flops = planes_flops(c, c->in[0]);
    cost->read_bytes = grvi_local_bytes(c, c->in[0]);
    cost->written_bytes = grvi_local_bytes(c, c->out[0]);
    if (c->node->n_in == 1) return;
    cost->flops += (c->node->attributes.activation == GRV_ACTIVATION_GELU ? 24 : 1) * grvi_local_count(c->in[0]);
    cost->read_bytes += grvi_local_bytes(c, c->in[1]);
    cost->written_bytes += grvi_local_bytes(c, c->out[1]);
}

static void analysis_backward(grv_graph *graph, int index, grv_value gradient, grv_value *accumulated)
{
    const grvi_node node = graph->nodes[index];
    if (!graph->values[node.in[0]].needs_gradient) return;
    const grvi_attributes attributes = {.layout = node.attributes.layout};
    const grv_value in[] = {gradient, GRV_NO_VALUE, GRV_NO_VALUE, GRV_NO_VALUE};
    grvi_graph_accumulate(graph, accumulated, node.in[0],
                          grvi_graph_emit(graph, &grvi_op_synthesis, 4, in, &attributes, &graph->values[node.in[0]]));
}

const grvi_op_class grvi_op_analysis = {.name = "spectral_analysis", .split = grvi_split_axis0, .backward = analysis_backward, .f32_only = true,
                                        .scratch = spectral_scratch, .init = spectral_init, .fini = spectral_fini, .cost = analysis_cost,
                                        .run = analysis_run};
const grvi_op_class grvi_op_analysis_gradient = {.name = "spectral_analysis_gradient", .split = grvi_split_axis0, .f32_only = true,
                                                 .scratch = spectral_scratch, .init = spectral_init, .fini = spectral_fini,
                                                 .cost = analysis_cost, .run = analysis_run};

/* --- synthesis --- */

static void synthesis_range(void *argument, int thread, int64_t begin, int64_t end)
{
    const grvi_step_context *const c = argument;
    const spectral_object *const object = c->object;
    const int64_t n = plane_count(c), n_x = c->out[0]->n_local[0];
    const float *const u = c->in_data[1];
    float *const pre = c->node->n_out > 1 ? c->out_data[1] : NULL;
    for (int64_t i = begin; i < end; i++) {
        const grvi_slab_plane a = slab_plane(c, c->in[0], (void *)(uintptr_t)c->in_data[0], i / n_x, i % n_x);
        const grvi_slab_plane_const in = {.data = a.data, .stride_r1 = a.stride_r1, .stride_qb = a.stride_qb};
        const grvi_synthesis_end tail = {.skip_input = u == NULL ? NULL : u + i * n,
                                         .weight = object->transposed != NULL ? object->transposed : c->in_data[2],
                                         .bias = c->in_data[3],
                                         .activation = (grvi_activation)c->node->attributes.activation};
        object->kernels->synthesise_plane(object->tables, in, &tail, (float *)c->out_data[0] + i * n, pre == NULL ? NULL : pre + i * n,
                                          grvi_context_scratch(c, thread));
    }
}

static grv_status synthesis_run(const grvi_step_context *c)
{
    const spectral_object *const object = c->object;
    const int64_t channels = c->node->attributes.layout.channels;
    const float *const weight = c->in_data[2];
    if (object->transposed != NULL)
        for (int64_t i = 0; i < channels; i++)
            for (int64_t o = 0; o < channels; o++) object->transposed[o * channels + i] = weight[i * channels + o];
    grv_parallel_for(c->n_threads, c->out[0]->n_samples * c->out[0]->n_local[0], synthesis_range, (void *)(uintptr_t)c);
    return GRV_OK;
}

static void synthesis_cost(const grvi_step_context *c, grvi_cost *cost)
{
    const double count = grvi_local_count(c->out[0]);
    cost->flops = planes_flops(c, c->out[0]);
    if (c->in[1] != NULL) cost->flops += 2 * count * (double)c->node->attributes.layout.channels;
    cost->flops += (c->node->attributes.activation == GRV_ACTIVATION_GELU  ? 18
                    : c->node->attributes.activation == GRV_ACTIVATION_RELU ? 1
                                                                            : 0) * count;
    cost->read_bytes = grvi_local_bytes(c, c->in[0]) + grvi_local_bytes(c, c->in[1]);
    cost->written_bytes = grvi_local_bytes(c, c->out[0]) + (c->node->n_out > 1 ? grvi_local_bytes(c, c->out[1]) : 0);
}

/* what act' is taken of: y itself tells the sign for ReLU, GELU needs the value before it */
static grv_value value_before_activation(grv_graph *graph, int index)
{
    const grvi_node node = graph->nodes[index];
    if (node.attributes.activation != GRV_ACTIVATION_GELU) return node.out[0];
    const grv_value pre = grvi_graph_new_value(graph, &graph->values[node.out[0]]);
    if (pre == GRV_NO_VALUE) return pre;
    graph->values[pre].producer = index;
    graph->nodes[index].out[1] = pre;
    graph->nodes[index].n_out = 2;
    return pre;
}

static void synthesis_backward(grv_graph *graph, int index, grv_value gradient, grv_value *accumulated)
{
    const grvi_node node = graph->nodes[index];
    const grvi_attributes attributes = {.layout = node.attributes.layout, .activation = node.attributes.activation};
    grv_value g = gradient, slab_gradient = GRV_NO_VALUE;
    if (node.attributes.activation == GRV_ACTIVATION_NONE) {
        slab_gradient = grvi_graph_emit(graph, &grvi_op_analysis, 1, &gradient, &attributes, &graph->values[node.in[0]]);
    } else {
        const grv_value in[] = {gradient, value_before_activation(graph, index)};
        if (graph->status != GRV_OK) return;
        slab_gradient = grvi_graph_emit(graph, &grvi_op_analysis_gradient, 2, in, &attributes, &graph->values[node.in[0]]);
        g = grvi_graph_new_value(graph, &graph->values[node.out[0]]);
        if (graph->status != GRV_OK) return;
        graph->values[g].producer = graph->n_nodes - 1;
        graph->nodes[graph->n_nodes - 1].out[1] = g;
        graph->nodes[graph->n_nodes - 1].n_out = 2;
    }
    grvi_graph_accumulate(graph, accumulated, node.in[0], slab_gradient);
    const grv_value u = node.in[1];
    if (u == GRV_NO_VALUE) return;
    grvi_graph_emit_weight_gradient(graph, u, g, node.in[2], node.in[3]);
    if (graph->status != GRV_OK || !graph->values[u].needs_gradient) return;
    const grvi_attributes transposed = {.transposed = true};
    const grv_value in[] = {g, node.in[2], GRV_NO_VALUE};
    grvi_graph_accumulate(graph, accumulated, u, grvi_graph_emit(graph, &grvi_op_linear, 3, in, &transposed, &graph->values[u]));
}

const grvi_op_class grvi_op_synthesis = {.name = "spectral_synthesis", .split = grvi_split_axis0, .backward = synthesis_backward,
                                         .f32_only = true, .scratch = spectral_scratch, .init = spectral_init, .fini = spectral_fini,
                                         .cost = synthesis_cost, .run = synthesis_run};

/* --- axis 0 --- */

static void first_axis_range(void *argument, int thread, int64_t begin, int64_t end)
{
    const grvi_step_context *const c = argument;
    const spectral_object *const object = c->object;
    const grvi_spectral_layout *const l = &c->node->attributes.layout;
    const int64_t row = l->n_blocks * l->block, slab = row * l->axis[0].n, modes = row * l->axis[0].n_rows;
    const bool forward = c->node->op == &grvi_op_first_axis_analyse;
    void *const scratch = grvi_context_scratch(c, thread);
    for (int64_t i = begin; i < end; i++) {
        const int64_t r1 = i / l->n_blocks, block = i % l->n_blocks; /* r1 counts on over samples */
        if (forward)
            object->kernels->first_axis_forward(object->tables, (const float *)c->in_data[0] + r1 * slab, (float *)c->out_data[0] + r1 * modes,
                                                block, block + 1, scratch);
        else
            object->kernels->first_axis_inverse(object->tables, (const float *)c->in_data[0] + r1 * modes, (float *)c->out_data[0] + r1 * slab,
                                                block, block + 1, scratch);
    }
}

static grv_status first_axis_run(const grvi_step_context *c)
{
    const grvi_spectral_layout *const l = &c->node->attributes.layout;
    const int64_t n_r1 = l->n_axes > 1 ? c->in[0]->n_local[1] : 1;
    grv_parallel_for(c->n_threads, c->in[0]->n_samples * n_r1 * l->n_blocks, first_axis_range, (void *)(uintptr_t)c);
    return GRV_OK;
}

static void first_axis_cost(const grvi_step_context *c, grvi_cost *cost)
{
    const grvi_spectral_layout *const l = &c->node->attributes.layout;
    const int64_t n_r1 = l->n_axes > 1 ? c->in[0]->n_local[1] : 1;
    cost->flops = transform_flops(&l->axis[0], (double)(c->in[0]->n_samples * n_r1 * l->n_columns));
    cost->read_bytes = grvi_local_bytes(c, c->in[0]);
    cost->written_bytes = grvi_local_bytes(c, c->out[0]);
}

static void first_axis_backward(grv_graph *graph, int index, grv_value gradient, grv_value *accumulated)
{
    const grvi_node node = graph->nodes[index];
    const grvi_op_class *const adjoint = node.op == &grvi_op_first_axis_analyse ? &grvi_op_first_axis_synthesise : &grvi_op_first_axis_analyse;
    grvi_graph_accumulate(graph, accumulated, node.in[0],
                          grvi_graph_emit(graph, adjoint, 1, &gradient, &node.attributes, &graph->values[node.in[0]]));
}

const grvi_op_class grvi_op_first_axis_analyse = {.name = "first_axis_analyse", .split = split_axis1, .backward = first_axis_backward,
                                                  .f32_only = true, .scratch = spectral_scratch, .init = spectral_init,
                                                  .fini = spectral_fini, .cost = first_axis_cost, .run = first_axis_run};
const grvi_op_class grvi_op_first_axis_synthesise = {.name = "first_axis_synthesise", .split = split_axis1, .backward = first_axis_backward,
                                                     .f32_only = true, .scratch = spectral_scratch, .init = spectral_init,
                                                     .fini = spectral_fini, .cost = first_axis_cost, .run = first_axis_run};
