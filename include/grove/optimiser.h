/** @file optimiser.h
 * Adam and AdamW on blocks of parameters, as PyTorch computes them. State is two blocks of the size of the parameters.
 */
#ifndef GROVE_OPTIMISER_H
#define GROVE_OPTIMISER_H

#include <stdint.h>

#include "grove/graph.h"
#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How weight decay enters. */
typedef enum grv_optimiser_kind {
    GRV_OPTIMISER_ADAM, /**< decay is added to the gradient (Kingma & Ba 2015) */
    GRV_OPTIMISER_ADAMW /**< decay shrinks the parameters directly (Loshchilov & Hutter 2019) */
} grv_optimiser_kind;

/** An optimiser's settings. Complex parameters are pairs of independent reals. */
typedef struct grv_optimiser {
    grv_optimiser_kind kind;  /**< where weight_decay enters */
    double beta1;             /**< decay of the mean gradient, 0 <= beta1 < 1 */
    double beta2;             /**< decay of the mean squared gradient, 0 <= beta2 < 1 */
    double epsilon;           /**< added to the root of the mean squared gradient, > 0 */
    double weight_decay;      /**< >= 0 */
    double max_gradient_norm; /**< longer gradients are scaled down to this norm; 0 for no limit */
} grv_optimiser;

/** Adam, (0.9, 0.999), 1e-8, no decay, no limit. Not collective. */
GRV_API grv_optimiser grv_optimiser_default(void);
/** Checks the ranges given above. Not collective. @errors GRV_E_CONFIG naming the field */
GRV_API grv_status grv_optimiser_check(const grv_optimiser *optimiser) GRV_MUST_CHECK;

/** One step of the optimiser. */
typedef struct grv_optimiser_step {
    int64_t
        number; /**< of the step since the start of training, from 1 (the bias correction depends on it) */
    double rate; /**< learning rate, see grv_schedule_rate */
    double
        gradient_norm; /**< of the whole gradient on all ranks; looked at only where max_gradient_norm > 0 */
    int n_threads; /**< < 1 counts as 1; the result does not depend on it */
} grv_optimiser_step;

/** A block of parameters and what belongs to it: all [n] of one element type. */
typedef struct grv_optimiser_block {
    grv_dtype dtype;      /**< of all four arrays */
    int64_t n;            /**< elements */
    const void *gradient; /**< [n] */
    void *parameters;     /**< [n], updated */
    void *mean;           /**< [n], running mean of the gradient, updated; zero before step 1 */
    void *mean_square;    /**< [n], running mean of its square, updated; zero before step 1 */
} grv_optimiser_block;

/** Does one step on one block; arrays do not overlap. The bits of a parameter depend on its own history only, not on the block
 * it lies in or on threads. NaN or Inf in the gradient spreads to the parameter: check the loss first.
 * Precondition: grv_optimiser_check passes, step->number >= 1. Not collective: each rank updates what it holds. */
GRV_API void grv_optimiser_update(const grv_optimiser *optimiser, const grv_optimiser_step *step,
                                  const grv_optimiser_block *block);

#ifdef __cplusplus
}
#endif
#endif
