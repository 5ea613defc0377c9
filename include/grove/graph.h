/** @file graph.h
 * What is computed: operations on fields with global shapes and named axes. A graph knows no ranks and no memory.
 *
 * A field has the axes [sample, axis 0, ..., axis d-1, channel], d = 1 to 4. Axes between sample and channel have names, given with
 * the inputs; operations find them by name and join fields of the same axes only. Builder functions append one operation and return
 * its value; after a failure they return GRV_NO_VALUE, do nothing more, and grv_graph_status tells the first error, so that a
 * model is written without a check on every line. Nothing here is collective; a graph is used by one thread at a time.
 */
#ifndef GROVE_GRAPH_H
#define GROVE_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most axes between sample and channel. */
#define GRV_MAX_AXES 4
/** Most bytes of an axis name, its end included. */
#define GRV_AXIS_NAME_BYTES 32
/** Most dimensions of a parameter tensor. */
#define GRV_MAX_PARAM_DIMS 8

/** Element types of plans. */
typedef enum grv_dtype {
    GRV_F32, /**< float */
    GRV_F64  /**< double: primitive operations only, the reference */
} grv_dtype;

/** Activations. */
typedef enum grv_activation {
    GRV_ACTIVATION_NONE,
    GRV_ACTIVATION_RELU,
    GRV_ACTIVATION_GELU /**< x (1 + erf(x/sqrt 2))/2 */
} grv_activation;

/** Losses. */
typedef enum grv_loss {
    GRV_LOSS_RELATIVE_L2, /**< mean over samples of ||p - y|| / ||y||, norms over all else (spec 4.7); a zero target is an error */
    GRV_LOSS_MSE          /**< mean over everything of (p - y)^2 */
} grv_loss;

/** How a parameter is initialised. */
typedef enum grv_init {
    GRV_INIT_ZERO,
    GRV_INIT_UNIFORM_SIGNED, /**< uniform in (-scale, scale) */
    GRV_INIT_UNIFORM         /**< uniform in [0, scale) */
} grv_init;

/** Coordinate channels. */
typedef enum grv_coordinates {
    GRV_COORDINATES_NONE,
    GRV_COORDINATES_PERIODIC, /**< i/n: independent of the resolution on periodic axes */
    GRV_COORDINATES_INCLUSIVE /**< i/(n-1), both ends included, as the FNO paper's scripts do; 0 where n is 1 */
} grv_coordinates;

/** An axis of an input. */
typedef struct grv_axis {
    const char *name; /**< unique within a field, such as "x"; shorter than GRV_AXIS_NAME_BYTES; copied */
    int64_t n;        /**< points, >= 1 */
} grv_axis;

/** A value of a graph: an index. */
typedef int grv_value;
/** No value: an optional operand left out, or the result of a failed builder call. */
#define GRV_NO_VALUE (-1)

/** A graph. */
typedef struct grv_graph grv_graph;

/** A parameter tensor, as checkpoints name and shape it. */
typedef struct grv_param_info {
    const char *name;                 /**< borrowed from the graph */
    int n_dims;                       /**< of shape */
    int64_t shape[GRV_MAX_PARAM_DIMS]; /**< 1x1 layers [in][out] and [out]; spectral weights [2m_0]..[k_last][in][out][re, im] */
    int64_t count;                    /**< real numbers in all */
    bool owned;                       /**< spread over the domain ranks with its modes; otherwise every rank has all of it */
    grv_init init;                    /**< distribution of the initial values */
    double init_scale;                /**< its scale */
} grv_param_info;

/** An empty graph over `n_samples` samples (the global batch). *out: destroy with grv_graph_destroy. */
GRV_API grv_status grv_graph_create(int64_t n_samples, grv_graph **out) GRV_MUST_CHECK;
/** Frees the graph; NULL and *graph == NULL are allowed. Plans made from it do not need it any more. */
GRV_API void grv_graph_destroy(grv_graph **graph);
/** GRV_OK, or the first failure of a builder call, with its message as the calling thread's record. */
GRV_API grv_status grv_graph_status(const grv_graph *graph) GRV_MUST_CHECK;

/** A field that the caller binds when the plan runs; inputs are numbered in the order of making (grv_bindings).
 * @param axes  [n_axes] in memory order, slowest first
 * @param channels  >= 1 */
GRV_API grv_value grv_graph_input(grv_graph *graph, const char *name, int n_axes, const grv_axis *axes, int64_t channels);
/** y = x W + b over channels, at every point. Makes the parameters <name>.weight [c_in][c_out], uniform in +-1/sqrt(c_out)
 * (spec 4.2), and, if bias, <name>.bias [c_out], zero. */
GRV_API grv_value grv_graph_linear(grv_graph *graph, grv_value x, const char *name, int64_t c_out, bool bias);
/** y = act(x); GRV_ACTIVATION_NONE returns x itself. */
GRV_API grv_value grv_graph_activation(grv_graph *graph, grv_value x, grv_activation activation);
/** a + b, of one shape and the same axes. */
GRV_API grv_value grv_graph_add(grv_graph *graph, grv_value a, grv_value b);
/** Changes the extent of axes: more zeros at the high end, or fewer points of it. @param n  [n_axes] extents wanted, in memory order */
GRV_API grv_value grv_graph_resize(grv_graph *graph, grv_value x, const int64_t *n);
/** Repeats an axis of one point n times; not the first axis. */
GRV_API grv_value grv_graph_repeat(grv_graph *graph, grv_value x, const char *axis, int64_t n);
/** Appends one channel per axis with its coordinate, in axis order. GRV_COORDINATES_NONE returns x itself. Not differentiated. */
GRV_API grv_value grv_graph_coordinates(grv_graph *graph, grv_value x, grv_coordinates coordinates);
/** Real truncated spectrum along one axis: rows C_0, C_1, S_1, C_2, S_2, ... (see docs/spectral.md). The last axis is one-sided and
 * keeps frequencies 0..modes-1, every other -modes..modes-1. */
GRV_API grv_value grv_graph_analyse(grv_graph *graph, grv_value x, const char *axis, int64_t modes);
/** Its adjoint: the plain sum of the basis functions along one axis. */
GRV_API grv_value grv_graph_synthesise(grv_graph *graph, grv_value x, const char *axis);
/** Multiplies each complex mode by its own c x c matrix and scales so that synthesis gives the inverse transform (spec 4.3). All axes of x
 * must be spectral. Makes the owned parameter <name>.weight [2m_0]..[k_last][c][c][2], uniform in [0, 1/c^2). */
GRV_API grv_value grv_graph_mode_mix(grv_graph *graph, grv_value x, const char *name);
/** Scalar loss of a prediction; at most one in a graph. */
GRV_API grv_value grv_graph_loss(grv_graph *graph, grv_value prediction, grv_value target, grv_loss loss);

/** Replaces sub-graphs by the fused operations that have kernels of their own (spectral_analysis, spectral_synthesis, mlp_stream).
 * The result computes the same to rounding. *out is a new graph. */
GRV_API grv_status grv_graph_fuse(const grv_graph *graph, grv_graph **out) GRV_MUST_CHECK;
/** Appends the operations that compute the gradient of the loss with respect to every parameter. Afterwards the graph is closed. */
GRV_API grv_status grv_graph_differentiate(grv_graph *graph) GRV_MUST_CHECK;

/** Number of parameter tensors. */
GRV_API int grv_graph_n_params(const grv_graph *graph);
/** Parameter i, in order of making. The name is borrowed. */
GRV_API grv_param_info grv_graph_param(const grv_graph *graph, int i);
/** Real numbers of all parameters together. */
GRV_API int64_t grv_graph_param_count(const grv_graph *graph);
/** Number of inputs. */
GRV_API int grv_graph_n_inputs(const grv_graph *graph);
/** Value of the input with this name, or GRV_NO_VALUE. */
GRV_API grv_value grv_graph_find_input(const grv_graph *graph, const char *name);
/** Value of the output with this name (grv_graph_mark_output), or GRV_NO_VALUE. */
GRV_API grv_value grv_graph_find_output(const grv_graph *graph, const char *name);
/** Marks a field as a result: its memory stays valid after a run (grv_exec_output). It keeps its mark when the graph is fused. */
GRV_API void grv_graph_mark_output(grv_graph *graph, grv_value value, const char *name);
/** Readable list of the operations, one per line, for debugging; owned by the caller, free with grv_free. NULL when out of memory. */
GRV_API char *grv_graph_text(const grv_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
