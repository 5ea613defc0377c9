/* Inside of a graph: values, nodes, operation classes. Internal to graph, ops and plan. */
#ifndef GRVI_GRAPH_IMPL_H
#define GRVI_GRAPH_IMPL_H

#include "core/check.h"
#include "grove/graph.h"
#include "kernels/spectral_layout.h"

enum { GRVI_MAX_INPUTS = 6, GRVI_MAX_OUTPUTS = 5, GRVI_NAME_BYTES = 64 };

typedef struct grvi_op_class grvi_op_class;
struct grvi_step_context; /* src/graph/plan_impl.h */
struct grvi_cost;

typedef enum grvi_value_kind {
    GRVI_FIELD,
    GRVI_PARAM,
    GRVI_PARAM_GRADIENT, /* of the parameter `param` */
    GRVI_SCALARS         /* [n_samples][2] doubles per rank and one loss: sums of the loss */
} grvi_value_kind;

/* Memory order of a field on a rank. */
typedef enum grvi_order {
    GRVI_ORDER_PLAIN, /* [sample][axis 0]..[channel] */
    GRVI_ORDER_SLAB,  /* per sample: A of spectral_layout.h */
    GRVI_ORDER_MODES  /* per sample: P of spectral_layout.h */
} grvi_order;

typedef struct grvi_value {
    grvi_value_kind kind;
    /* fields */
    int n_axes;
    grvi_axis_modes axis[GRV_MAX_AXES]; /* a physical axis has n only (n_rows == 0) */
    char axis_name[GRV_MAX_AXES][GRV_AXIS_NAME_BYTES];
    int64_t channels;
    grvi_order order;
    bool needs_gradient; /* depends on a parameter */
    /* parameters and their gradients */
    int param; /* index into params */
    /* inputs and outputs */
    char name[GRVI_NAME_BYTES];
    int input; /* number of an input, in order of making */
    bool is_output;
    int producer; /* node, -1 for inputs and parameters */
} grvi_value;

/* Everything that any operation is told apart from its operands. */
typedef struct grvi_attributes {
    grv_activation activation;        /* act, and of fused operations the last one */
    grv_activation hidden_activation; /* mlp */
    int axis;                         /* analyse, synthesise, repeat */
    bool has_bias;
    bool transposed;                  /* the weight operand is used transposed (backward of a linear map) */
    grv_loss loss;
    grv_coordinates coordinates;
    grvi_spectral_layout layout;      /* spectral operations */
} grvi_attributes;

typedef struct grvi_node {
    const grvi_op_class *op;
    int n_in, n_out;
    grv_value in[GRVI_MAX_INPUTS]; /* GRV_NO_VALUE for an optional operand left out */
    grv_value out[GRVI_MAX_OUTPUTS];
    grvi_attributes attributes;
} grvi_node;

typedef struct grvi_param {
    char name[GRVI_NAME_BYTES];
    grv_param_info info;
    grvi_spectral_layout layout; /* of owned parameters */
    grv_value value, gradient;   /* GRV_NO_VALUE until made */
} grvi_param;

struct grv_graph {
    int64_t n_samples;
    int n_values, n_nodes, n_params, n_inputs;
    int value_capacity, node_capacity, param_capacity;
    grvi_value *values;
    grvi_node *nodes;
    grvi_param *params;
    grv_value loss;  /* scalars value, or GRV_NO_VALUE */
    bool closed;
    grv_status status;
    char message[512];
};

/* Where the planner may split a field: along axis 0, along axis 1, or wherever the operand is split already. */
typedef enum grvi_split_rule { GRVI_SPLIT_AXIS0, GRVI_SPLIT_AXIS1, GRVI_SPLIT_ANY } grvi_split_rule;

/* An operation: one file of src/ops defines one or a few of these. */
struct grvi_op_class {
    const char *name;
    /* The split that all field operands need; results are split alike. */
    grvi_split_rule (*split)(const grvi_node *node);
    /* Appends the nodes that compute the operands' gradients from `gradient`, that of the first result, and calls
     * grvi_graph_accumulate for each operand that needs one. The node list may move: copy the node first. NULL: nothing flows back. */
    void (*backward)(grv_graph *graph, int node, grv_value gradient, grv_value *accumulated);
    /* Operations that only exist for GRV_F32. */
    bool f32_only;
    /* Per-thread scratch bytes of a step; NULL: none. */
    size_t (*scratch)(const struct grvi_step_context *context);
    /* Objects that the run needs (tables, plans); made once in a real plan, NULL: none. Freed by fini. */
    grv_status (*init)(struct grvi_step_context *context);
    void (*fini)(struct grvi_step_context *context);
    void (*cost)(const struct grvi_step_context *context, struct grvi_cost *cost);
    /* Runs the step. Allocates nothing. */
    grv_status (*run)(const struct grvi_step_context *context);
};

/* Building, for ops and rewrites. All of them do nothing after a failure. */
grvi_value *grvi_graph_value(grv_graph *graph, grv_value value);
const grvi_value *grvi_graph_value_const(const grv_graph *graph, grv_value value);
grv_value grvi_graph_new_value(grv_graph *graph, const grvi_value *like);
grvi_node *grvi_graph_new_node(grv_graph *graph, const grvi_op_class *op);
/* A node with one result shaped as `like`; returns the result. in: n_in operands. */
grv_value grvi_graph_emit(grv_graph *graph, const grvi_op_class *op, int n_in, const grv_value *in, const grvi_attributes *attributes,
                          const grvi_value *like);
grv_value grvi_graph_param_gradient(grv_graph *graph, grv_value param);
/* accumulated[value] += gradient (an add node where there is one already). */
void grvi_graph_accumulate(grv_graph *graph, grv_value *accumulated, grv_value value, grv_value gradient);
/* Records the first failure; always returns GRV_NO_VALUE. */
grv_value grvi_graph_failed(grv_graph *graph, grv_status status);
/* The node that sums dW and db of y = x W + b over points; gradient is that of y. */
void grvi_graph_emit_weight_gradient(grv_graph *graph, grv_value x, grv_value gradient, grv_value weight, grv_value bias);
bool grvi_graph_same_shape(const grvi_value *a, const grvi_value *b);
/* Is this value an input? */
static inline bool grvi_is_input(const grvi_value *value) { return value->kind == GRVI_FIELD && value->producer < 0; }

/* The rewrites of gradients, in place; part of grv_graph_differentiate. */
grv_status grvi_graph_fuse_gradients(grv_graph *graph) GRV_MUST_CHECK;

/* The operations. */
extern const grvi_op_class grvi_op_linear, grvi_op_linear_weight_gradient, grvi_op_act, grvi_op_act_gradient, grvi_op_add, grvi_op_resize,
    grvi_op_repeat, grvi_op_repeat_adjoint, grvi_op_coordinates, grvi_op_analyse, grvi_op_synthesise, grvi_op_mode_mix,
    grvi_op_mode_mix_gradient, grvi_op_loss, grvi_op_loss_gradient, grvi_op_mlp, grvi_op_mlp_gradient,
    grvi_op_analysis, grvi_op_analysis_gradient, grvi_op_synthesis, grvi_op_first_axis_analyse, grvi_op_first_axis_synthesise;

#endif
