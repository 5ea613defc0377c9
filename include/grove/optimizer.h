/** @file optimizer.h
 * Adam and AdamW on the parameter block of a network, with clipping of the gradient's norm.
 */
#ifndef GROVE_OPTIMIZER_H
#define GROVE_OPTIMIZER_H

#include "grove/network.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Rules. */
typedef enum grv_optimizer_kind {
    GRV_OPTIMIZER_ADAM, /**< weight decay is added to the gradient */
    GRV_OPTIMIZER_ADAMW /**< weight decay is decoupled */
} grv_optimizer_kind;

/** Settings; names and formulas as in PyTorch. Complex weights are pairs of independent numbers. */
typedef struct grv_optimizer_params {
    grv_optimizer_kind kind;
    double beta1, beta2; /**< in [0, 1) */
    double epsilon;      /**< > 0 */
    double weight_decay; /**< >= 0 */
    double clip_norm;    /**< > 0: the gradient is scaled down to this norm over all parameters of all ranks; 0: off */
} grv_optimizer_params;

/** Adam, 0.9, 0.999, 1e-8, no decay, no clipping. Not collective. */
GRV_API grv_optimizer_params grv_optimizer_params_default(void);

/** Moments and step count of one network's parameters on one rank. */
typedef struct grv_optimizer grv_optimizer;

/** Takes the moments' memory: twice the parameter block, zero.
 * @param network  with gradients; borrowed, must outlive the optimizer
 * Not collective. @errors GRV_E_NOMEM, GRV_E_ARG */
GRV_API grv_status grv_optimizer_create(const grv_optimizer_params *params, grv_network *network, grv_comm *comm, grv_optimizer **out) GRV_MUST_CHECK;
/** Frees it; NULL is allowed. Not collective. */
GRV_API void grv_optimizer_destroy(grv_optimizer **optimizer);
/** Updates the parameters with the gradients of the network's last run. The same bits on any number of ranks and threads.
 * @param rate  learning rate of this step
 * @param norm  of the gradient before clipping over all ranks, written if clipping is on, else 0; may be NULL
 * Collective on comm when clipping is on. @errors GRV_E_COMM */
GRV_API grv_status grv_optimizer_step(grv_optimizer *optimizer, double rate, double *norm) GRV_MUST_CHECK;
/** Steps made. Not collective. */
GRV_API int64_t grv_optimizer_count(const grv_optimizer *optimizer);
/** Sets the number of steps made, when a run is resumed. Not collective. */
GRV_API void grv_optimizer_set_count(grv_optimizer *optimizer, int64_t count);
/** First (0) or second (1) moments, laid out like the parameters; borrowed. Not collective. */
GRV_API float *grv_optimizer_moments(grv_optimizer *optimizer, int which);

#ifdef __cplusplus
}
#endif
#endif
