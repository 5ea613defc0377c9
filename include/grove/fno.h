/** @file fno.h
 * Fourier neural operators over 1 to 4 axes: the parallel FNO of Witte et al. (arXiv 2211.12709; spec 4.2, 4.3) and, by options, the
 * networks of Li et al. (arXiv 2010.08895).
 *
 *   x [sample, axes, c_in] -> (coordinate channels) -> lift -> pad -> n_blocks x act( spectral(v) + v W + b ) -> crop -> projection
 */
#ifndef GROVE_FNO_H
#define GROVE_FNO_H

#include "grove/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Conventions of the transforms' scales, as other libraries name them: the forward and the inverse scale multiply to 1/N in each. A spectral
 * layer's result has the grid of its operand, so that weights and results are the same under all three: the convention is kept with
 * the network for other programs to read, and changes no number. */
typedef enum grv_norm {
    GRV_NORM_BACKWARD, /**< 1 and 1/N: the paper, PyTorch's default */
    GRV_NORM_FORWARD,  /**< 1/N and 1: neuraloperator's default */
    GRV_NORM_ORTHO     /**< 1/sqrt(N) each */
} grv_norm;

/** A network. */
typedef struct grv_fno_params {
    int n_axes;                     /**< 1 .. 4 */
    char axis_names[GRV_MAX_AXES][GRV_AXIS_NAME_BYTES]; /**< unique; an empty first one stands for x, y, z, t */
    int64_t n[GRV_MAX_AXES];        /**< points of each axis, without padding */
    int64_t modes[GRV_MAX_AXES];    /**< kept per sign on all axes but the last (frequencies -m..m-1); 0..k-1 on the last */
    int64_t padding[GRV_MAX_AXES];  /**< zeros appended at the high end of each axis, in points */
    double padding_fraction[GRV_MAX_AXES]; /**< the same as a fraction of n, rounded up; added to padding */
    int64_t width;                  /**< channels inside */
    int64_t c_in, c_out;            /**< channels of input and target */
    int64_t lift_hidden;            /**< > 0: two layers with activations, c_in -> lift_hidden -> width; 0: one linear layer without */
    int64_t projection_hidden;      /**< width -> projection_hidden -> c_out with one activation between; 0: one linear layer */
    int n_blocks;                   /**< spectral blocks */
    grv_activation activation;      /**< everywhere */
    bool activation_after_last;     /**< also after the last block */
    grv_coordinates coordinates;    /**< channels appended to the input */
    bool static_input;              /**< the input has one point on the last axis (it does not change in time) and is repeated */
    grv_norm norm;                  /**< kept with the network */
    grv_loss loss;                  /**< for training and evaluation */
} grv_fno_params;

/** The paper's network with its small configuration (spec 13): 34^3 x 16, width 8, modes 5,5,5,3, 4 padded steps, ReLU. */
GRV_API grv_fno_params grv_fno_params_default(void);

/** Name of an axis. Borrowed from params. Not collective. */
GRV_API const char *grv_fno_axis_name(const grv_fno_params *params, int axis);

/** Builds the network from primitive operations: inputs "input" and, with_loss, "target"; output "output".
 * A static input is [axes.., 1, c_in]. @errors GRV_E_ARG, GRV_E_SHAPE naming the axis; *out is NULL then. Not collective. */
GRV_API grv_status grv_fno_build(const grv_fno_params *params, int64_t n_samples, bool with_loss, grv_graph **out) GRV_MUST_CHECK;

/** The network as JSON text (for metadata of files); owned by the caller, free with grv_free. Not collective. */
GRV_API grv_status grv_fno_to_json(const grv_fno_params *params, char **json) GRV_MUST_CHECK;
/** And back. `what` names the source in messages. Not collective. @errors GRV_E_FORMAT naming the key */
GRV_API grv_status grv_fno_from_json(const char *json, const char *what, grv_fno_params *params) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
