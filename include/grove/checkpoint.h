/** @file checkpoint.h
 * The state of a training run in one folder, renamed as a whole (docs/formats/checkpoint.md):
 *   weights.safetensors    parameters with global shapes; metadata "model" describes the network
 *   optimizer.safetensors  moments as m.<name> and v.<name>
 *   state.json             position in the data, history of the epochs
 * It loads on any number of ranks.
 */
#ifndef GROVE_CHECKPOINT_H
#define GROVE_CHECKPOINT_H

#include "grove/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What one epoch gave. */
typedef struct grv_epoch {
    int64_t epoch;          /**< from 0 */
    int64_t step;           /**< optimiser steps made by its end */
    double learning_rate;   /**< of its last step */
    double train_loss;      /**< mean over its steps */
    double validation_loss; /**< NaN without validation samples */
    double seconds;         /**< wall time */
    double wait_seconds;    /**< of it, waited for data */
} grv_epoch;

/** Where a run stands. */
typedef struct grv_train_state {
    int64_t epoch;              /**< epochs finished */
    int64_t step_in_epoch;      /**< steps made of the next one */
    double loss_sum;            /**< of those steps */
    double best_loss;           /**< smallest validation loss (train loss without validation); infinite before the first epoch */
    int64_t best_epoch;         /**< its epoch; -1 before */
    int64_t n_history;          /**< epochs in history */
    grv_epoch *history;         /**< [n_history], owned: grv_train_state_fini */
} grv_train_state;

/** An empty state. Not collective. */
GRV_API grv_train_state grv_train_state_init(void);
/** Frees the history. Not collective. */
GRV_API void grv_train_state_fini(grv_train_state *state);
/** Appends an epoch to the history. Not collective. @errors GRV_E_NOMEM */
GRV_API grv_status grv_train_state_append(grv_train_state *state, const grv_epoch *epoch) GRV_MUST_CHECK;

/** Writes the folder aside and renames it; an older one of that path is replaced, and is there until then.
 * @param optimizer  NULL: weights only
 * @param extra  JSON object stored as metadata "data" of the weights (what a prediction needs to know), or NULL
 * Collective on comm (NULL: one rank). @errors on every rank */
GRV_API grv_status grv_checkpoint_save(const char *path, grv_network *network, grv_optimizer *optimizer, const grv_train_state *state,
                                       const char *extra, grv_comm *comm) GRV_MUST_CHECK;
/** Reads a folder into network, optimizer (may be NULL) and state (may be NULL; an initialised one).
 * Collective on comm (NULL: one rank). @errors on every rank */
GRV_API grv_status grv_checkpoint_load(const char *path, grv_network *network, grv_optimizer *optimizer, grv_train_state *state,
                                       grv_comm *comm) GRV_MUST_CHECK;
/** The network that a checkpoint holds. Not collective.
 * @param extra  what grv_checkpoint_save was given, or NULL; owned by the caller, free with grv_free; may be NULL itself */
GRV_API grv_status grv_checkpoint_model(const char *path, grv_fno_params *params, char **extra) GRV_MUST_CHECK;
/** Position and history of a checkpoint alone. Not collective. @param state  an initialised one, replaced */
GRV_API grv_status grv_checkpoint_state(const char *path, grv_train_state *state) GRV_MUST_CHECK;
/** Whether a folder of that path, or the older one that a killed run left behind, is there. Not collective. */
GRV_API bool grv_checkpoint_exists(const char *path);

#ifdef __cplusplus
}
#endif
#endif
