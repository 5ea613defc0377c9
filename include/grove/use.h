/** @file use.h
 * Using a trained network: `grove evaluate` (numbers and pictures of a run) and `grove predict`.
 */
#ifndef GROVE_USE_H
#define GROVE_USE_H

#include "grove/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What to evaluate; keys in grv_evaluate_options. */
typedef struct grv_evaluate_config {
    char *run;           /**< run directory: its config.yaml says data set, samples and network */
    char *data;          /**< another data set; "": that of the run */
    int weights;         /**< 0 best, 1 latest */
    int split;           /**< 0 test, 1 validation, 2 train */
    int threads;         /**< of each rank; 0: the machine's, divided by its ranks */
    int64_t pictures;    /**< samples to draw */
} grv_evaluate_config;

/** Keys, defaults, ranges and help of grv_evaluate_config. A constant. Not collective. */
GRV_API const grv_option_table *grv_evaluate_options(void);

/** Numbers of an evaluation. */
typedef struct grv_evaluate_result {
    grv_evaluation evaluation;
    double simulator_seconds; /**< of one sample by the generator of the data set; NaN if it does not say */
    double surrogate_seconds; /**< of one answer on these ranks */
} grv_evaluate_result;

/** Evaluates a run on its ranks (domain decomposition over all of them); rank 0 writes into the run directory: metrics.json, test_losses.csv,
 * loss.png and, for networks over at least two axes, sample_<i>.png: slices of simulation, prediction and error.
 * Collective on comm (NULL: one rank). @errors as grv_evaluate, grv_checkpoint_load; on every rank */
GRV_API grv_status grv_evaluate_run(const grv_evaluate_config *config, grv_comm *comm, grv_log *log, grv_evaluate_result *result) GRV_MUST_CHECK;

/** What to predict; keys in grv_predict_options. */
typedef struct grv_predict_config {
    char *checkpoint;  /**< folder with weights: a run's best or checkpoint */
    char *input;       /**< data set whose inputs are taken */
    char *output;      /**< data set to make: the same inputs, predictions as targets */
    int64_t first;     /**< first sample */
    int64_t count;     /**< samples; 0: all from the first on */
    int threads;       /**< of each rank; 0: the machine's, divided by its ranks */
} grv_predict_config;

/** Keys, defaults, ranges and help of grv_predict_config. A constant. Not collective. */
GRV_API const grv_option_table *grv_predict_options(void);

/** Predicts samples and stores them as a data set. Collective on comm (NULL: one rank).
 * @param n_done, seconds  samples predicted and median time of one answer, written
 * @errors GRV_E_EXISTS if the output is there, GRV_E_CONFIG if data and network do not fit; on every rank */
GRV_API grv_status grv_predict(const grv_predict_config *config, grv_comm *comm, grv_log *log, int64_t *n_done, double *seconds) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
