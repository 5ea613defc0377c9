/* mode_mix: every complex mode times its own channel matrix (spec 4.3 steps 5-6; docs/mode_mix.md).
 *   mode_mix(x, W) -> y;  mode_mix_gradient(x, dy, W) -> dx, dW.
 * Works on mode order (the fused network); plain order (the primitive one) is brought into it and back in scratch. */
#include <string.h>

#include "core/alloc.h"
#include "kernels/mode_mix.h"
#include "ops/op_support.h"

static bool is_plain(const grvi_step_context *c) { return grvi_context_value(c, c->node->in[0])->order == GRVI_ORDER_PLAIN; }

/* fused fields use the fast kernels, primitive ones the reference */
static const grvi_mode_mix_kernels *kernels_of(const grvi_step_context *c)
{
    return grvi_mode_mix_kernels_for(is_plain(c) ? GRVI_ISA_REF : grvi_isa_chosen());
}

static void mix_of(const grvi_step_context *c, grvi_mode_mix *mix)
{
    const grvi_spectral_layout *const layout = &c->node->attributes.layout;
    const grv_value weight = c->node->in[c->node->n_in - 1];
    const grv_range magnitudes = c->plan->slices[grvi_context_value(c, weight)->param].magnitudes;
    const grv_status status = grvi_mode_mix_init(mix, layout, magnitudes.start, magnitudes.count);
    GRV_ASSERT(status == GRV_OK); /* the slice was made from the same layout */
    (void)status;
}

static grv_status mode_mix_init(grvi_step_context *c)
{
    grvi_mode_mix *mix = NULL;
    GRV_TRY(GRVI_ALLOC(&mix, 1));
    mix_of(c, mix);
    c->object = mix;
    return GRV_OK;
}

static void mode_mix_fini(grvi_step_context *c) { grv_free(c->object); }

/* bytes of one field in mode order, all samples */
static size_t modes_bytes(const grvi_step_context *c, const grvi_mode_mix *mix)
{
    return (size_t)grvi_round_up(mix->n_values * c->in[0]->n_samples * (int64_t)grvi_dtype_bytes(c->plan->params.dtype), 64);
}

static int n_fields(const grvi_step_context *c) { return c->node->op == &grvi_op_mode_mix ? 1 : 2; }

static size_t mode_mix_scratch(const grvi_step_context *c)
{
    grvi_mode_mix mix;
    mix_of(c, &mix);
    const size_t fields = is_plain(c) ? (size_t)n_fields(c) * modes_bytes(c, &mix) : 0;
    return fields + grvi_mode_mix_scratch_bytes(&mix, c->in[0]->n_samples);
}

/* Copies between plain order [sample][r_0][r_1][r_2][r_3][c] and mode order [sample][r_1][r_0][[r_3][r_2][c] padded]. */
static void reorder(const grvi_step_context *c, const grvi_mode_mix *mix, char *plain, char *modes, bool to_modes)
{
    const size_t size = grvi_dtype_bytes(c->plan->params.dtype), run = (size_t)mix->layout.channels * size;
    const int64_t *const n_local = c->in[0]->n_local;
    int64_t n[4] = {1, 1, 1, 1};
    for (int a = 0; a < mix->layout.n_axes; a++) n[a] = n_local[a];
    const int64_t columns = mix->layout.n_blocks * mix->layout.block;
    for (int64_t s = 0; s < c->in[0]->n_samples; s++)
        for (int64_t i = 0; i < n[0] * n[1] * n[2] * n[3]; i++, plain += run) {
            const int64_t r3 = i % n[3], r2 = i / n[3] % n[2], r1 = i / (n[3] * n[2]) % n[1], r0 = i / (n[3] * n[2] * n[1]);
            char *const at = modes + ((size_t)(s * mix->n_values + (r1 * n[0] + r0) * columns + (r3 * n[2] + r2) * mix->layout.channels)) * size;
            if (to_modes) memcpy(at, plain, run);
            else memcpy(plain, at, run);
        }
}

static void call_kernels(const grvi_step_context *c, const grvi_mode_mix *mix, int64_t begin, int64_t end, const void *x, const void *dy,
                         void *out, void *scratch)
{
    const grvi_mode_mix_work work = {.begin = begin, .end = end, .n_samples = c->in[0]->n_samples, .sample_stride = mix->n_values};
    const void *const weights = c->in_data[c->node->n_in - 1];
    const bool f64 = c->plan->params.dtype == GRV_F64;
    if (c->node->op == &grvi_op_mode_mix) {
        if (f64) grvi_mode_mix_kernels_f64_ref()->forward(mix, &work, weights, x, out, scratch);
        else kernels_of(c)->forward(mix, &work, weights, x, out, scratch);
    } else {
        if (f64) grvi_mode_mix_kernels_f64_ref()->backward(mix, &work, weights, x, dy, out, c->out_data[1], scratch);
        else kernels_of(c)->backward(mix, &work, weights, x, dy, out, c->out_data[1], scratch);
    }
}

static void modes_range(void *argument, int thread, int64_t begin, int64_t end)
{
    const grvi_step_context *const c = argument;
    const void *const dy = n_fields(c) == 2 ? c->in_data[1] : NULL;
    call_kernels(c, c->object, begin, end, c->in_data[0], dy, c->out_data[0], grvi_context_scratch(c, thread));
}

static void run_plain(const grvi_step_context *c)
{
    const grvi_mode_mix *const mix = c->object;
    char *const x = grvi_context_scratch(c, 0), *const dy = x + modes_bytes(c, mix);
    char *const rest = x + (size_t)n_fields(c) * modes_bytes(c, mix);
    reorder(c, mix, (char *)(uintptr_t)c->in_data[0], x, true);
    if (n_fields(c) == 2) reorder(c, mix, (char *)(uintptr_t)c->in_data[1], dy, true);
    char *const out = n_fields(c) == 2 ? dy : x; /* both kernels may work in place */
    call_kernels(c, mix, 0, mix->n_groups, x, dy, out, rest);
    reorder(c, mix, c->out_data[0], out, false);
}

static grv_status mode_mix_run(const grvi_step_context *c)
{
    const grvi_mode_mix *const mix = c->object;
    if (is_plain(c)) run_plain(c);
    else grv_parallel_for(c->n_threads, mix->n_groups, modes_range, (void *)(uintptr_t)c);
    return GRV_OK;
}

static void mode_mix_cost(const grvi_step_context *c, grvi_cost *cost)
{
    grvi_mode_mix mix;
    mix_of(c, &mix);
    const double channels = (double)mix.layout.channels, weights = (double)mix.n_modes * channels * channels;
    const double passes = n_fields(c), size = (double)grvi_dtype_bytes(c->plan->params.dtype);
    cost->flops = 8 * weights * (double)c->in[0]->n_samples * passes;
    cost->read_bytes = 2 * weights * size + grvi_local_bytes(c, c->in[0]) * passes;
    cost->written_bytes = grvi_local_bytes(c, c->out[0]) + (passes > 1 ? 2 * weights * size : 0);
}

static void mode_mix_backward(grv_graph *graph, int index, grv_value gradient, grv_value *accumulated)
{
    const grvi_node node = graph->nodes[index];
    const grv_value x = node.in[0];
    const grv_value dx = grvi_graph_new_value(graph, &graph->values[x]);
    const grv_value dw = grvi_graph_param_gradient(graph, node.in[1]);
    grvi_node *const back = grvi_graph_new_node(graph, &grvi_op_mode_mix_gradient);
    if (back == NULL) return;
    back->n_in = 3;
    back->in[0] = x;
    back->in[1] = gradient;
    back->in[2] = node.in[1];
    back->n_out = 2;
    back->out[0] = dx;
    back->out[1] = dw;
    back->attributes = node.attributes;
    graph->values[dx].producer = graph->n_nodes - 1;
    graph->values[dx].needs_gradient = true;
    grvi_graph_accumulate(graph, accumulated, x, dx);
}

/* in plain order axis 0 is brought whole by the transform before it; with one axis nothing is split */
const grvi_op_class grvi_op_mode_mix = {.name = "mode_mix", .split = grvi_split_any, .backward = mode_mix_backward, .scratch = mode_mix_scratch,
                                        .init = mode_mix_init, .fini = mode_mix_fini, .cost = mode_mix_cost, .run = mode_mix_run};
const grvi_op_class grvi_op_mode_mix_gradient = {.name = "mode_mix_gradient", .split = grvi_split_any, .scratch = mode_mix_scratch,
                                                 .init = mode_mix_init, .fini = mode_mix_fini, .cost = mode_mix_cost, .run = mode_mix_run};
