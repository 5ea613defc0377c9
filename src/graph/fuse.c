/* Rewrites: sub-graphs become fused operations. A list, not a general fuser:
 *   spectral layer  analyse (all axes, axis 0 last), mode_mix, synthesise (axis 0 first, all axes) [, add of linear(u)] [, act]
 *                   -> spectral_analysis, first_axis_analyse, mode_mix, first_axis_synthesise, spectral_synthesis
 *   mlp_stream      linear [, act], linear [, act] -> mlp
 *   (after differentiation, in place) add(spectral_synthesis without skip, linear transposed) -> spectral_synthesis with skip
 * An intermediate value that anything else reads, or that is a marked output, stops a rewrite. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/graph_impl.h"
#include "grove/core.h"

enum { MAX_CHAIN = 2 * GRV_MAX_AXES + 4 };

typedef enum rewrite_kind { REWRITE_SPECTRAL, REWRITE_MLP } rewrite_kind;

/* A match: the nodes it replaces, in order; the last one is where the fused operations are put. */
typedef struct rewrite {
    rewrite_kind kind;
    int n_nodes;
    int nodes[MAX_CHAIN];
    /* spectral: the layer's input, the mix, and what is added */
    grv_value input;
    int mix, linear; /* node numbers; linear -1: none */
    grv_activation activation, hidden_activation;
} rewrite;

typedef struct uses {
    int *count; /* [n_values] readers, and one more for an output */
    int *last;  /* [n_values] the last reader */
} uses;

static grv_status count_uses(const grv_graph *g, uses *u)
{
    *u = (uses){0};
    GRV_TRY(GRVI_CALLOC(&u->count, g->n_values));
    grv_status status = GRVI_CALLOC(&u->last, g->n_values);
    if (status != GRV_OK) {
        grv_free(u->count);
        return status;
    }
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_in; k++) {
            const grv_value v = g->nodes[i].in[k];
            if (v == GRV_NO_VALUE) continue;
            u->count[v]++;
            u->last[v] = i;
        }
    for (int v = 0; v < g->n_values; v++) u->count[v] += g->values[v].is_output;
    return GRV_OK;
}

/* the only reader of a value, or -1 */
static int only_reader(const uses *u, const grv_graph *g, grv_value v)
{
    return u->count[v] == 1 && !g->values[v].is_output ? u->last[v] : -1;
}

static const grvi_node *producer(const grv_graph *g, grv_value v)
{
    return v == GRV_NO_VALUE || g->values[v].producer < 0 ? NULL : &g->nodes[g->values[v].producer];
}

/* appends act if it is the only reader of v; returns the value after it */
static grv_value take_activation(const grv_graph *g, const uses *u, grv_value v, rewrite *r, grv_activation *activation)
{
    const int reader = only_reader(u, g, v);
    *activation = GRV_ACTIVATION_NONE;
    if (reader < 0 || g->nodes[reader].op != &grvi_op_act) return v;
    r->nodes[r->n_nodes++] = reader;
    *activation = g->nodes[reader].attributes.activation;
    return g->nodes[reader].out[0];
}

static bool match_spectral(const grv_graph *g, const uses *u, int mix, rewrite *r)
{
    const int d = g->nodes[mix].attributes.layout.n_axes;
    *r = (rewrite){.kind = REWRITE_SPECTRAL, .mix = mix, .linear = -1};
    int chain[GRV_MAX_AXES], axes = 0;
    grv_value v = g->nodes[mix].in[0];
    for (int i = 0; i < d; i++) {
        const grvi_node *const node = producer(g, v);
        if (node == NULL || node->op != &grvi_op_analyse || u->count[v] != 1 || (i == 0 && node->attributes.axis != 0)) return false;
        chain[d - 1 - i] = g->values[v].producer;
        axes |= 1 << node->attributes.axis;
        v = node->in[0];
    }
    if (axes != (1 << d) - 1) return false;
    r->input = v;
    for (int i = 0; i < d; i++) r->nodes[r->n_nodes++] = chain[i];
    r->nodes[r->n_nodes++] = mix;
    v = g->nodes[mix].out[0];
    axes = 0;
    for (int i = 0; i < d; i++) {
        const int reader = only_reader(u, g, v);
        if (reader < 0 || g->nodes[reader].op != &grvi_op_synthesise || (i == 0 && g->nodes[reader].attributes.axis != 0)) return false;
        axes |= 1 << g->nodes[reader].attributes.axis;
        r->nodes[r->n_nodes++] = reader;
        v = g->nodes[reader].out[0];
    }
    if (axes != (1 << d) - 1) return false;
    const int add = only_reader(u, g, v);
    if (add < 0 || g->nodes[add].op != &grvi_op_add) return true;
    const grv_value other = g->nodes[add].in[0] == v ? g->nodes[add].in[1] : g->nodes[add].in[0];
    const grvi_node *const linear = producer(g, other);
    if (linear == NULL || linear->op != &grvi_op_linear || u->count[other] != 1 || linear->attributes.transposed ||
        g->values[linear->in[0]].channels != g->values[other].channels)
        return true;
    r->linear = g->values[other].producer;
    r->nodes[r->n_nodes++] = r->linear;
    r->nodes[r->n_nodes++] = add;
    (void)take_activation(g, u, g->nodes[add].out[0], r, &r->activation);
    return true;
}

static bool match_mlp(const grv_graph *g, const uses *u, int first, rewrite *r)
{
    *r = (rewrite){.kind = REWRITE_MLP, .linear = first};
    r->nodes[r->n_nodes++] = first;
    const grv_value hidden = take_activation(g, u, g->nodes[first].out[0], r, &r->hidden_activation);
    const int second = only_reader(u, g, hidden);
    if (second < 0 || g->nodes[second].op != &grvi_op_linear || g->nodes[second].in[0] != hidden) return false;
    r->nodes[r->n_nodes++] = second;
    r->mix = second;
    (void)take_activation(g, u, g->nodes[second].out[0], r, &r->activation);
    return true;
}

static grv_value last_output(const grv_graph *g, const rewrite *r) { return g->nodes[r->nodes[r->n_nodes - 1]].out[0]; }

static grv_value emit_spectral(const grv_graph *g, const rewrite *r, const grv_value *map, grv_graph *to)
{
    const grvi_node *const mix = &g->nodes[r->mix];
    const grvi_attributes attributes = {.layout = mix->attributes.layout};
    const grv_value v = map[r->input];
    if (to->status != GRV_OK) return GRV_NO_VALUE;
    grvi_value slab = g->values[mix->in[0]], modes = slab;
    modes.order = GRVI_ORDER_MODES;
    slab.order = GRVI_ORDER_SLAB;
    slab.axis[0] = (grvi_axis_modes){.n = slab.axis[0].n};
    grv_value x = grvi_graph_emit(to, &grvi_op_analysis, 1, &v, &attributes, &slab);
    x = grvi_graph_emit(to, &grvi_op_first_axis_analyse, 1, &x, &attributes, &modes);
    const grv_value operands[] = {x, map[mix->in[1]]};
    x = grvi_graph_emit(to, &grvi_op_mode_mix, 2, operands, &attributes, &modes);
    x = grvi_graph_emit(to, &grvi_op_first_axis_synthesise, 1, &x, &attributes, &slab);
    grv_value in[] = {x, GRV_NO_VALUE, GRV_NO_VALUE, GRV_NO_VALUE};
    if (r->linear >= 0)
        for (int k = 0; k < 3; k++) {
            const grv_value operand = g->nodes[r->linear].in[k];
            if (operand != GRV_NO_VALUE) in[k + 1] = map[operand];
        }
    const grvi_attributes end = {.layout = mix->attributes.layout, .activation = r->activation};
    return grvi_graph_emit(to, &grvi_op_synthesis, 4, in, &end, &g->values[last_output(g, r)]);
}

static grv_value emit_mlp(const grv_graph *g, const rewrite *r, const grv_value *map, grv_graph *to)
{
    const grvi_node *const first = &g->nodes[r->linear], *const second = &g->nodes[r->mix];
    const grv_value old[] = {first->in[0], first->in[1], first->in[2], second->in[1], second->in[2]};
    grv_value in[5];
    for (int k = 0; k < 5; k++) in[k] = old[k] == GRV_NO_VALUE ? GRV_NO_VALUE : map[old[k]];
    const grvi_attributes attributes = {.activation = r->activation, .hidden_activation = r->hidden_activation};
    return grvi_graph_emit(to, &grvi_op_mlp, 5, in, &attributes, &g->values[last_output(g, r)]);
}

/* inputs, parameters and their values, in the old order, so that parameters keep their numbers */
static grv_status copy_leaves(const grv_graph *g, grv_value *map, grv_graph *to)
{
    GRV_TRY(GRVI_ALLOC(&to->params, g->n_params));
    memcpy(to->params, g->params, sizeof *to->params * (size_t)g->n_params);
    to->n_params = to->param_capacity = g->n_params;
    for (int v = 0; v < g->n_values; v++) {
        map[v] = GRV_NO_VALUE;
        if (g->values[v].producer >= 0) continue;
        map[v] = grvi_graph_new_value(to, &g->values[v]);
        if (map[v] == GRV_NO_VALUE) return grv_graph_status(to);
        memcpy(to->values[map[v]].name, g->values[v].name, GRVI_NAME_BYTES);
        if (grvi_is_input(&g->values[v])) to->n_inputs++;
        if (g->values[v].kind == GRVI_PARAM) to->params[g->values[v].param].value = map[v];
    }
    return GRV_OK;
}

static void carry_output_mark(const grv_graph *g, grv_value from, grv_graph *to, grv_value value)
{
    if (g->values[from].is_output) grv_graph_mark_output(to, value, g->values[from].name);
}

static void copy_node(const grv_graph *g, int i, grv_value *map, grv_graph *to)
{
    const grvi_node *const node = &g->nodes[i];
    grv_value in[GRVI_MAX_INPUTS];
    for (int k = 0; k < node->n_in; k++) in[k] = node->in[k] == GRV_NO_VALUE ? GRV_NO_VALUE : map[node->in[k]];
    map[node->out[0]] = grvi_graph_emit(to, node->op, node->n_in, in, &node->attributes, &g->values[node->out[0]]);
    if (to->status != GRV_OK) return;
    if (node->out[0] == g->loss) to->loss = map[node->out[0]];
    carry_output_mark(g, node->out[0], to, map[node->out[0]]);
}

static grv_status find_rewrites(const grv_graph *g, rewrite *rewrites, int *n_rewrites, int *absorbed_by)
{
    uses u;
    GRV_TRY(count_uses(g, &u));
    for (int i = 0; i < g->n_nodes; i++) absorbed_by[i] = -1;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < g->n_nodes; i++) {
            rewrite *const r = &rewrites[*n_rewrites];
            if (absorbed_by[i] >= 0) continue;
            if (pass == 0 && (g->nodes[i].op != &grvi_op_mode_mix || !match_spectral(g, &u, i, r))) continue;
            if (pass == 1 && (g->nodes[i].op != &grvi_op_linear || !match_mlp(g, &u, i, r))) continue;
            bool taken = false;
            for (int k = 0; k < r->n_nodes; k++) taken = taken || absorbed_by[r->nodes[k]] >= 0;
            if (taken) continue;
            for (int k = 0; k < r->n_nodes; k++) absorbed_by[r->nodes[k]] = *n_rewrites;
            (*n_rewrites)++;
        }
    grv_free(u.count);
    grv_free(u.last);
    return GRV_OK;
}

grv_status grv_graph_fuse(const grv_graph *graph, grv_graph **out)
{
    *out = NULL;
    GRV_TRY(grv_graph_status(graph));
    GRV_CHECK(!graph->closed, GRV_E_ARG, "fuse: before differentiation only");
    grv_status status = GRV_OK;
    grv_graph *to = NULL;
    rewrite *rewrites = NULL;
    int *absorbed_by = NULL, n_rewrites = 0;
    grv_value *map = NULL;
    GRV_TRY(grv_graph_create(graph->n_samples, &to));
    GRV_TRY_GOTO(GRVI_ALLOC(&rewrites, graph->n_nodes + 1));
    GRV_TRY_GOTO(GRVI_ALLOC(&absorbed_by, graph->n_nodes));
    GRV_TRY_GOTO(GRVI_ALLOC(&map, graph->n_values));
    GRV_TRY_GOTO(find_rewrites(graph, rewrites, &n_rewrites, absorbed_by));
    GRV_TRY_GOTO(copy_leaves(graph, map, to));
    for (int i = 0; i < graph->n_nodes; i++) {
        if (absorbed_by[i] < 0) {
            copy_node(graph, i, map, to);
            continue;
        }
        const rewrite *const r = &rewrites[absorbed_by[i]];
        if (i != r->nodes[r->n_nodes - 1]) continue;
        const grv_value old = last_output(graph, r);
        map[old] = r->kind == REWRITE_SPECTRAL ? emit_spectral(graph, r, map, to) : emit_mlp(graph, r, map, to);
        carry_output_mark(graph, old, to, map[old]);
    }
    status = grv_graph_status(to);
done:
    grv_free(rewrites);
    grv_free(absorbed_by);
    grv_free(map);
    if (status != GRV_OK) grv_graph_destroy(&to);
    *out = to;
    return status;
}

/* --- after differentiation --- */

static void remove_nodes(grv_graph *g, const bool *dead)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        if (dead[i]) continue;
        for (int o = 0; o < g->nodes[i].n_out; o++)
            if (g->nodes[i].out[o] != GRV_NO_VALUE) g->values[g->nodes[i].out[o]].producer = n;
        g->nodes[n++] = g->nodes[i];
    }
    g->n_nodes = n;
}

static bool is_bare_synthesis(const grvi_node *node)
{
    return node != NULL && node->op == &grvi_op_synthesis && node->in[1] == GRV_NO_VALUE && node->n_out == 1 &&
           node->attributes.activation == GRV_ACTIVATION_NONE;
}

grv_status grvi_graph_fuse_gradients(grv_graph *g)
{
    uses u;
    bool *dead = NULL;
    GRV_TRY(GRVI_CALLOC(&dead, g->n_nodes));
    const grv_status status = count_uses(g, &u);
    if (status != GRV_OK) {
        grv_free(dead);
        return status;
    }
    for (int i = 0; i < g->n_nodes; i++) {
        grvi_node *const add = &g->nodes[i];
        if (add->op != &grvi_op_add) continue;
        for (int side = 0; side < 2; side++) {
            const grv_value s = add->in[side], l = add->in[1 - side];
            const grvi_node *const synthesis = producer(g, s), *const linear = producer(g, l);
            if (!is_bare_synthesis(synthesis) || u.count[s] != 1 || linear == NULL || linear->op != &grvi_op_linear || u.count[l] != 1 ||
                !linear->attributes.transposed || g->values[linear->in[0]].channels != g->values[l].channels)
                continue;
            dead[g->values[s].producer] = dead[g->values[l].producer] = true;
            const grvi_node fused = {.op = &grvi_op_synthesis, .n_in = 4, .in = {synthesis->in[0], linear->in[0], linear->in[1], GRV_NO_VALUE},
                                     .n_out = 1, .out = {add->out[0]},
                                     .attributes = {.layout = synthesis->attributes.layout, .transposed = true}};
            *add = fused;
            break;
        }
    }
    remove_nodes(g, dead);
    grv_free(u.count);
    grv_free(u.last);
    grv_free(dead);
    return GRV_OK;
}
