/* Building and differentiating graphs. Nodes are appended in an order in which they can run; values are numbered likewise. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "graph/graph_impl.h"
#include "grove/core.h"

grv_status grv_graph_create(int64_t n_samples, grv_graph **out)
{
    *out = NULL;
    GRV_CHECK(n_samples >= 1, GRV_E_ARG, "at least 1 sample expected, %lld found", (long long)n_samples);
    GRV_TRY(GRVI_CALLOC(out, 1));
    (*out)->n_samples = n_samples;
    (*out)->loss = GRV_NO_VALUE;
    return GRV_OK;
}

void grv_graph_destroy(grv_graph **graph)
{
    if (graph == NULL || *graph == NULL) return;
    grv_free((*graph)->values);
    grv_free((*graph)->nodes);
    grv_free((*graph)->params);
    grv_free(*graph);
    *graph = NULL;
}

grv_status grv_graph_status(const grv_graph *graph)
{
    return graph->status == GRV_OK ? GRV_OK : grvi_fail_from(graph->status, graph->message);
}

grv_value grvi_graph_failed(grv_graph *graph, grv_status status)
{
    if (graph->status == GRV_OK && status != GRV_OK) {
        graph->status = status;
        (void)snprintf(graph->message, sizeof graph->message, "%s", grv_error_message());
    }
    return GRV_NO_VALUE;
}

#define BUILD_CHECK(graph, cond, ...)                                                              \
    do {                                                                                           \
        if ((graph)->status != GRV_OK) return GRV_NO_VALUE;                                        \
        if (!(cond))                                                                               \
            return grvi_graph_failed((graph), grvi_fail(GRV_E_SHAPE, __FILE__, __LINE__, __func__, __VA_ARGS__)); \
    } while (0)

grvi_value *grvi_graph_value(grv_graph *graph, grv_value value)
{
    GRV_ASSERT(value >= 0 && value < graph->n_values);
    return &graph->values[value];
}

const grvi_value *grvi_graph_value_const(const grv_graph *graph, grv_value value)
{
    GRV_ASSERT(value >= 0 && value < graph->n_values);
    return &graph->values[value];
}

bool grvi_graph_same_shape(const grvi_value *a, const grvi_value *b)
{
    if (a->n_axes != b->n_axes || a->channels != b->channels || a->order != b->order) return false;
    for (int i = 0; i < a->n_axes; i++)
        if (a->axis[i].n != b->axis[i].n || a->axis[i].n_rows != b->axis[i].n_rows || strcmp(a->axis_name[i], b->axis_name[i]) != 0) return false;
    return true;
}

static bool is_field(const grv_graph *graph, grv_value value)
{
    return value >= 0 && value < graph->n_values && graph->values[value].kind == GRVI_FIELD;
}

/* Its number, or -1. */
static int find_axis(const grvi_value *field, const char *name)
{
    for (int a = 0; a < field->n_axes; a++)
        if (strcmp(field->axis_name[a], name) == 0) return a;
    return -1;
}

static bool is_physical(const grvi_value *field)
{
    for (int a = 0; a < field->n_axes; a++)
        if (field->axis[a].n_rows != 0) return false;
    return true;
}

static grv_status grow(void **items, int n, int *capacity, size_t size)
{
    if (n < *capacity) return GRV_OK;
    const int larger = *capacity == 0 ? 32 : 2 * *capacity;
    GRV_TRY(grvi_realloc(larger, size, items));
    *capacity = larger;
    return GRV_OK;
}

grv_value grvi_graph_new_value(grv_graph *graph, const grvi_value *like)
{
    if (graph->status != GRV_OK) return GRV_NO_VALUE;
    const grvi_value copy = *like; /* `like` may be inside the array that grows */
    const grv_status status = grow((void **)&graph->values, graph->n_values, &graph->value_capacity, sizeof *graph->values);
    if (status != GRV_OK) return grvi_graph_failed(graph, status);
    grvi_value *const value = &graph->values[graph->n_values];
    *value = copy;
    value->producer = -1;
    value->is_output = false;
    value->name[0] = '\0';
    return graph->n_values++;
}

grvi_node *grvi_graph_new_node(grv_graph *graph, const grvi_op_class *op)
{
    if (graph->status != GRV_OK) return NULL;
    const grv_status status = grow((void **)&graph->nodes, graph->n_nodes, &graph->node_capacity, sizeof *graph->nodes);
    if (status != GRV_OK) {
        (void)grvi_graph_failed(graph, status);
        return NULL;
    }
    grvi_node *const node = &graph->nodes[graph->n_nodes++];
    *node = (grvi_node){.op = op};
    for (int i = 0; i < GRVI_MAX_INPUTS; i++) node->in[i] = GRV_NO_VALUE;
    for (int i = 0; i < GRVI_MAX_OUTPUTS; i++) node->out[i] = GRV_NO_VALUE;
    return node;
}

grv_value grvi_graph_emit(grv_graph *graph, const grvi_op_class *op, int n_in, const grv_value *in, const grvi_attributes *attributes,
                          const grvi_value *like)
{
    const grv_value out = grvi_graph_new_value(graph, like);
    grvi_node *const node = grvi_graph_new_node(graph, op);
    if (node == NULL) return GRV_NO_VALUE;
    node->n_in = n_in;
    bool needs_gradient = false;
    for (int i = 0; i < n_in; i++) {
        node->in[i] = in[i];
        if (in[i] == GRV_NO_VALUE) continue;
        needs_gradient = needs_gradient || graph->values[in[i]].kind == GRVI_PARAM || graph->values[in[i]].needs_gradient;
    }
    node->n_out = 1;
    node->out[0] = out;
    if (attributes != NULL) node->attributes = *attributes;
    graph->values[out].producer = graph->n_nodes - 1;
    graph->values[out].needs_gradient = needs_gradient;
    return out;
}

static grv_value new_param(grv_graph *graph, const char *name, const char *suffix, const grv_param_info *info,
                           const grvi_spectral_layout *layout)
{
    grv_status status = grow((void **)&graph->params, graph->n_params, &graph->param_capacity, sizeof *graph->params);
    if (status != GRV_OK) return grvi_graph_failed(graph, status);
    grvi_param param = {.info = *info, .value = GRV_NO_VALUE, .gradient = GRV_NO_VALUE};
    const int n = snprintf(param.name, sizeof param.name, "%s.%s", name, suffix);
    BUILD_CHECK(graph, n > 0 && n < (int)sizeof param.name, "parameter name '%s.%s' is longer than %zu bytes", name, suffix,
                sizeof param.name - 1);
    for (int i = 0; i < graph->n_params; i++)
        BUILD_CHECK(graph, strcmp(graph->params[i].name, param.name) != 0, "parameter '%s' exists already", param.name);
    if (layout != NULL) param.layout = *layout;
    param.info.count = 1;
    for (int d = 0; d < param.info.n_dims; d++)
        BUILD_CHECK(graph, grvi_mul_i64(param.info.count, param.info.shape[d], &param.info.count), "parameter '%s' is too large", param.name);
    const int index = graph->n_params++;
    graph->params[index] = param;
    const grvi_value value = {.kind = GRVI_PARAM, .param = index, .producer = -1};
    graph->params[index].value = grvi_graph_new_value(graph, &value);
    return graph->params[index].value;
}

grv_value grvi_graph_param_gradient(grv_graph *graph, grv_value param)
{
    if (graph->status != GRV_OK) return GRV_NO_VALUE;
    const int index = graph->values[param].param;
    const grvi_value value = {.kind = GRVI_PARAM_GRADIENT, .param = index, .producer = -1};
    GRV_ASSERT(graph->params[index].gradient == GRV_NO_VALUE); /* each parameter is used once */
    const grv_value gradient = grvi_graph_new_value(graph, &value);
    graph->params[index].gradient = gradient;
    return gradient;
}

grv_value grv_graph_input(grv_graph *graph, const char *name, int n_axes, const grv_axis *axes, int64_t channels)
{
    BUILD_CHECK(graph, n_axes >= 1 && n_axes <= GRV_MAX_AXES, "input '%s': 1 to %d axes expected, %d found", name, GRV_MAX_AXES, n_axes);
    BUILD_CHECK(graph, channels >= 1, "input '%s': at least 1 channel expected, %lld found", name, (long long)channels);
    BUILD_CHECK(graph, strlen(name) < GRVI_NAME_BYTES && name[0] != '\0', "input name '%s' is empty or too long", name);
    grvi_value value = {.kind = GRVI_FIELD, .n_axes = n_axes, .channels = channels, .producer = -1};
    int64_t count = channels;
    for (int a = 0; a < n_axes; a++) {
        const size_t n_name = strlen(axes[a].name);
        BUILD_CHECK(graph, n_name > 0 && n_name < GRV_AXIS_NAME_BYTES, "input '%s', axis %d: a name of 1 to %d bytes expected, '%s' found", name,
                    a, GRV_AXIS_NAME_BYTES - 1, axes[a].name);
        BUILD_CHECK(graph, find_axis(&value, axes[a].name) < 0, "input '%s': two axes are named '%s'", name, axes[a].name);
        BUILD_CHECK(graph, axes[a].n >= 1 && grvi_mul_i64(count, axes[a].n, &count) && count < INT64_MAX / 64,
                    "input '%s', axis '%s': %lld points", name, axes[a].name, (long long)axes[a].n);
        value.axis[a] = (grvi_axis_modes){.n = axes[a].n};
        memcpy(value.axis_name[a], axes[a].name, n_name + 1);
    }
    const grv_value out = grvi_graph_new_value(graph, &value);
    if (out == GRV_NO_VALUE) return out;
    (void)snprintf(graph->values[out].name, GRVI_NAME_BYTES, "%s", name);
    graph->values[out].input = graph->n_inputs++;
    return out;
}

grv_value grv_graph_linear(grv_graph *graph, grv_value x, const char *name, int64_t c_out, bool bias)
{
    BUILD_CHECK(graph, is_field(graph, x) && is_physical(&graph->values[x]), "linear '%s': a physical field expected", name);
    BUILD_CHECK(graph, c_out >= 1, "linear '%s': at least 1 channel expected, %lld found", name, (long long)c_out);
    grvi_value out = graph->values[x];
    const grv_param_info weight = {.n_dims = 2, .shape = {out.channels, c_out}, .init = GRV_INIT_UNIFORM_SIGNED,
                                   .init_scale = 1 / sqrt((double)c_out)};
    const grv_param_info offset = {.n_dims = 1, .shape = {c_out}, .init = GRV_INIT_ZERO};
    const grv_value in[] = {x, new_param(graph, name, "weight", &weight, NULL),
                            bias ? new_param(graph, name, "bias", &offset, NULL) : GRV_NO_VALUE};
    out.channels = c_out;
    return grvi_graph_emit(graph, &grvi_op_linear, 3, in, NULL, &out);
}

grv_value grv_graph_activation(grv_graph *graph, grv_value x, grv_activation activation)
{
    BUILD_CHECK(graph, is_field(graph, x), "activation: a field expected");
    if (activation == GRV_ACTIVATION_NONE) return x;
    const grvi_attributes attributes = {.activation = activation};
    return grvi_graph_emit(graph, &grvi_op_act, 1, &x, &attributes, &graph->values[x]);
}

grv_value grv_graph_add(grv_graph *graph, grv_value a, grv_value b)
{
    BUILD_CHECK(graph, is_field(graph, a) && is_field(graph, b) && grvi_graph_same_shape(&graph->values[a], &graph->values[b]),
                "add: two fields of one shape, with the same axes, expected");
    const grv_value in[] = {a, b};
    return grvi_graph_emit(graph, &grvi_op_add, 2, in, NULL, &graph->values[a]);
}

/* axis 0 in a node of its own: it needs another placement */
static grv_value resize_some(grv_graph *graph, grv_value x, const int64_t *n, int first, int end)
{
    if (graph->status != GRV_OK) return GRV_NO_VALUE;
    grvi_value out = graph->values[x];
    bool changed = false;
    for (int a = first; a < end; a++) {
        changed = changed || out.axis[a].n != n[a];
        out.axis[a].n = n[a];
    }
    const grvi_attributes attributes = {.axis = first};
    return changed ? grvi_graph_emit(graph, &grvi_op_resize, 1, &x, &attributes, &out) : x;
}

grv_value grv_graph_resize(grv_graph *graph, grv_value x, const int64_t *n)
{
    BUILD_CHECK(graph, is_field(graph, x) && is_physical(&graph->values[x]), "resize: a physical field expected");
    const int n_axes = graph->values[x].n_axes;
    for (int a = 0; a < n_axes; a++)
        BUILD_CHECK(graph, n[a] >= 1, "resize: axis '%s': at least 1 point expected, %lld found", graph->values[x].axis_name[a],
                    (long long)n[a]);
    return resize_some(graph, resize_some(graph, x, n, 1, n_axes), n, 0, 1);
}

grv_value grv_graph_repeat(grv_graph *graph, grv_value x, const char *name, int64_t n)
{
    BUILD_CHECK(graph, is_field(graph, x) && is_physical(&graph->values[x]), "repeat: a physical field expected");
    grvi_value out = graph->values[x];
    const int axis = find_axis(&out, name);
    BUILD_CHECK(graph, axis >= 1 && out.axis[axis].n == 1 && n >= 1, "repeat: an axis '%s' of 1 point expected, and not the first", name);
    if (n == 1) return x;
    out.axis[axis].n = n;
    const grvi_attributes attributes = {.axis = axis};
    return grvi_graph_emit(graph, &grvi_op_repeat, 1, &x, &attributes, &out);
}

grv_value grv_graph_coordinates(grv_graph *graph, grv_value x, grv_coordinates coordinates)
{
    BUILD_CHECK(graph, is_field(graph, x) && is_physical(&graph->values[x]), "coordinates: a physical field expected");
    BUILD_CHECK(graph, !graph->values[x].needs_gradient, "coordinates: are appended before anything is learned");
    grvi_value out = graph->values[x];
    if (coordinates == GRV_COORDINATES_NONE) return x;
    out.channels += out.n_axes;
    const grvi_attributes attributes = {.coordinates = coordinates};
    return grvi_graph_emit(graph, &grvi_op_coordinates, 1, &x, &attributes, &out);
}

grv_value grv_graph_analyse(grv_graph *graph, grv_value x, const char *name, int64_t modes)
{
    const int axis = is_field(graph, x) ? find_axis(&graph->values[x], name) : -1;
    BUILD_CHECK(graph, axis >= 0 && graph->values[x].axis[axis].n_rows == 0, "analyse: a field with a physical axis '%s' expected", name);
    grvi_value out = graph->values[x];
    const grv_status status = grvi_axis_modes_init(&out.axis[axis], name, axis < out.n_axes - 1, out.axis[axis].n, modes);
    if (status != GRV_OK) return grvi_graph_failed(graph, status);
    const grvi_attributes attributes = {.axis = axis};
    return grvi_graph_emit(graph, &grvi_op_analyse, 1, &x, &attributes, &out);
}

grv_value grv_graph_synthesise(grv_graph *graph, grv_value x, const char *name)
{
    const int axis = is_field(graph, x) ? find_axis(&graph->values[x], name) : -1;
    BUILD_CHECK(graph, axis >= 0 && graph->values[x].axis[axis].n_rows != 0, "synthesise: a field with a spectral axis '%s' expected", name);
    grvi_value out = graph->values[x];
    out.axis[axis] = (grvi_axis_modes){.n = out.axis[axis].n};
    const grvi_attributes attributes = {.axis = axis};
    return grvi_graph_emit(graph, &grvi_op_synthesise, 1, &x, &attributes, &out);
}

grv_value grv_graph_mode_mix(grv_graph *graph, grv_value x, const char *name)
{
    BUILD_CHECK(graph, is_field(graph, x), "mode mix '%s': a field expected", name);
    const grvi_value out = graph->values[x];
    grv_param_info weight = {.n_dims = out.n_axes + 3, .owned = true, .init = GRV_INIT_UNIFORM,
                             .init_scale = 1 / ((double)out.channels * (double)out.channels)};
    int64_t n[GRV_MAX_AXES], modes[GRV_MAX_AXES];
    for (int a = 0; a < out.n_axes; a++) {
        BUILD_CHECK(graph, out.axis[a].n_rows != 0, "mode mix '%s': axis '%s' is not spectral", name, out.axis_name[a]);
        n[a] = out.axis[a].n;
        modes[a] = out.axis[a].modes;
        weight.shape[a] = out.axis[a].two_sided ? 2 * modes[a] : modes[a];
    }
    weight.shape[out.n_axes] = weight.shape[out.n_axes + 1] = out.channels;
    weight.shape[out.n_axes + 2] = 2;
    grvi_attributes attributes = {0};
    const grv_status status = grvi_spectral_layout_init(&attributes.layout, out.n_axes, n, modes, out.channels);
    if (status != GRV_OK) return grvi_graph_failed(graph, status);
    const grv_value in[] = {x, new_param(graph, name, "weight", &weight, &attributes.layout)};
    return grvi_graph_emit(graph, &grvi_op_mode_mix, 2, in, &attributes, &out);
}

grv_value grv_graph_loss(grv_graph *graph, grv_value prediction, grv_value target, grv_loss loss)
{
    BUILD_CHECK(graph, is_field(graph, prediction) && is_field(graph, target) &&
                    grvi_graph_same_shape(&graph->values[prediction], &graph->values[target]),
                "loss: prediction and target of one shape, with the same axes, expected");
    BUILD_CHECK(graph, graph->loss == GRV_NO_VALUE, "loss: the graph has one already");
    const grvi_value scalars = {.kind = GRVI_SCALARS, .producer = -1};
    const grvi_attributes attributes = {.loss = loss};
    const grv_value in[] = {prediction, target};
    graph->loss = grvi_graph_emit(graph, &grvi_op_loss, 2, in, &attributes, &scalars);
    return graph->loss;
}

void grvi_graph_accumulate(grv_graph *graph, grv_value *accumulated, grv_value value, grv_value gradient)
{
    if (graph->status != GRV_OK || value == GRV_NO_VALUE || gradient == GRV_NO_VALUE) return;
    accumulated[value] = accumulated[value] == GRV_NO_VALUE ? gradient : grv_graph_add(graph, accumulated[value], gradient);
}

grv_status grv_graph_differentiate(grv_graph *graph)
{
    GRV_TRY(grv_graph_status(graph));
    GRV_CHECK(graph->loss != GRV_NO_VALUE, GRV_E_ARG, "differentiate: the graph has no loss");
    GRV_CHECK(!graph->closed, GRV_E_ARG, "differentiate: the graph is closed already");
    const int n_values = graph->n_values, n_nodes = graph->n_nodes;
    grv_value *accumulated = NULL;
    GRV_TRY(GRVI_ALLOC(&accumulated, n_values));
    for (int v = 0; v < n_values; v++) accumulated[v] = GRV_NO_VALUE;
    for (int i = n_nodes - 1; i >= 0; i--) {
        const grvi_node node = graph->nodes[i];
        const bool is_loss = node.out[0] == graph->loss;
        const bool wanted = is_loss || (accumulated[node.out[0]] != GRV_NO_VALUE && graph->values[node.out[0]].needs_gradient);
        if (wanted && node.op->backward != NULL) node.op->backward(graph, i, accumulated[node.out[0]], accumulated);
    }
    grv_free(accumulated);
    GRV_TRY(grv_graph_status(graph));
    for (int i = 0; i < graph->n_params; i++)
        GRV_CHECK(graph->params[i].gradient != GRV_NO_VALUE, GRV_E_ARG, "differentiate: the loss does not depend on '%s'", graph->params[i].name);
    GRV_TRY(grvi_graph_fuse_gradients(graph));
    graph->closed = true;
    return GRV_OK;
}

int grv_graph_n_params(const grv_graph *graph) { return graph->n_params; }

grv_param_info grv_graph_param(const grv_graph *graph, int i)
{
    GRV_ASSERT(i >= 0 && i < graph->n_params);
    grv_param_info info = graph->params[i].info;
    info.name = graph->params[i].name;
    return info;
}

int64_t grv_graph_param_count(const grv_graph *graph)
{
    int64_t count = 0;
    for (int i = 0; i < graph->n_params; i++) count += graph->params[i].info.count;
    return count;
}

int grv_graph_n_inputs(const grv_graph *graph) { return graph->n_inputs; }

grv_value grv_graph_find_input(const grv_graph *graph, const char *name)
{
    for (int v = 0; v < graph->n_values; v++)
        if (grvi_is_input(&graph->values[v]) && strcmp(graph->values[v].name, name) == 0) return v;
    return GRV_NO_VALUE;
}

grv_value grv_graph_find_output(const grv_graph *graph, const char *name)
{
    for (int v = 0; v < graph->n_values; v++)
        if (graph->values[v].is_output && strcmp(graph->values[v].name, name) == 0) return v;
    return GRV_NO_VALUE;
}

void grv_graph_mark_output(grv_graph *graph, grv_value value, const char *name)
{
    if (!is_field(graph, value)) return;
    graph->values[value].is_output = true;
    (void)snprintf(graph->values[value].name, GRVI_NAME_BYTES, "%.*s", GRVI_NAME_BYTES - 1, name);
}

char *grv_graph_text(const grv_graph *graph)
{
    grvi_text text = {0};
    for (int i = 0; i < graph->n_nodes; i++) {
        const grvi_node *const node = &graph->nodes[i];
        for (int o = 0; o < node->n_out; o++) grvi_text_printf(&text, "%s%%%d", o > 0 ? ", " : "", node->out[o]);
        grvi_text_printf(&text, " = %s(", node->op->name);
        for (int k = 0; k < node->n_in; k++) {
            const char *const comma = k > 0 ? ", " : "";
            if (node->in[k] == GRV_NO_VALUE) {
                grvi_text_printf(&text, "%s-", comma);
                continue;
            }
            const grvi_value *const in = &graph->values[node->in[k]];
            if (in->kind == GRVI_PARAM) grvi_text_printf(&text, "%s%s", comma, graph->params[in->param].name);
            else if (in->producer < 0) grvi_text_printf(&text, "%s%s", comma, in->name);
            else grvi_text_printf(&text, "%s%%%d", comma, node->in[k]);
        }
        grvi_text_append(&text, ")\n");
    }
    if (grvi_text_status(&text) != GRV_OK) grvi_text_fini(&text);
    return text.data;
}
