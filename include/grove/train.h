/** @file train.h
 * Training: from a data set and a configuration to a run directory (design: data contracts).
 *
 *   config.yaml   resolved configuration     metrics.csv  a row an epoch      log.jsonl   every event
 *   checkpoint/   the latest state           best/        the weights with the smallest validation loss
 *   trace.json    steps of the first batches, for Perfetto                    plan.txt    what each step of the plan does
 */
#ifndef GROVE_TRAIN_H
#define GROVE_TRAIN_H

#include "grove/checkpoint.h"
#include "grove/config.h"
#include "grove/loader.h"
#include "grove/log.h"
#include "grove/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Everything that decides a training run; the keys of its configuration are in grv_train_options. */
typedef struct grv_train_config {
    char *data;                   /**< path of the data set */
    char *run;                    /**< run directory */
    int64_t n_train, n_validation; /**< samples, from the first on; 0 training samples: all but those of validation and test */
    int64_t n_test;               /**< samples at the end that training never sees */
    int64_t batch;                /**< samples a step, over all ranks */
    int64_t epochs;
    int64_t seed;
    bool shuffle;                 /**< a new order every epoch */
    int n_data, n_domain;         /**< mesh; n_domain 0: all ranks that n_data leaves */
    int threads;                  /**< of each rank; 0: those of the machine shared by its ranks */
    int loss;                     /**< grv_loss */
    grv_i64_list modes;
    grv_i64_list padding;
    grv_f64_list padding_fraction;
    int64_t width, lift_hidden, projection_hidden;
    int blocks;
    int activation, coordinates, norm;  /**< grv_activation, grv_coordinates, grv_norm */
    bool activation_after_last;
    int optimizer;                /**< grv_optimizer_kind */
    double lr, beta1, beta2, epsilon, weight_decay, clip_norm;
    int schedule;                 /**< grv_schedule_kind */
    double schedule_factor, schedule_min_lr;
    int64_t schedule_period, warmup_steps;
    int64_t checkpoint_epochs;    /**< a checkpoint every so many epochs, and at the end */
    int64_t patience;             /**< epochs without a better validation loss before the run ends early; 0: off */
    bool resume;                  /**< go on from the run directory's checkpoint if there is one */
} grv_train_config;

/** Keys, defaults, ranges and help of grv_train_config. A constant. Not collective. */
GRV_API const grv_option_table *grv_train_options(void);

/** Says whether the run is to stop at the next step with a checkpoint; called on every rank, may differ between them. */
typedef bool grv_stop_asked(void *argument);

/** What a run gave. */
typedef struct grv_train_result {
    int64_t epochs;          /**< finished in all */
    double train_loss;       /**< of the last epoch */
    double validation_loss;  /**< of the last epoch; NaN without validation */
    double best_loss;        /**< smallest validation loss (train loss without validation) */
    int64_t best_epoch;      /**< its epoch */
    double seconds;          /**< of this call */
    bool stopped_early;      /**< patience ran out */
} grv_train_result;

/** Trains. Losses and weights are the same bits for every mesh, thread count and interruption (with one instruction set).
 * @param comm  of n_data*n_domain ranks; NULL: one rank
 * @param log  may be NULL
 * @param stop_asked  may be NULL
 * Collective on comm.
 * @errors GRV_E_CONFIG, GRV_E_NOT_FOUND (data set, sample), GRV_E_NUMERIC (NaN in data or loss: step and sample named, or in weights; the last checkpoint is
 * kept), GRV_E_INTERRUPTED (a checkpoint was written), GRV_E_IO; on every rank */
GRV_API grv_status grv_train(const grv_train_config *config, grv_comm *comm, grv_log *log, grv_stop_asked *stop_asked, void *stop_argument,
                             grv_train_result *result) GRV_MUST_CHECK;

/** The network of a configuration for a data set. Not collective. @errors GRV_E_CONFIG naming the key */
GRV_API grv_status grv_train_network(const grv_train_config *config, const grv_dataset_desc *data, grv_fno_params *out) GRV_MUST_CHECK;

/** Which samples of a data set are for what. */
typedef struct grv_split {
    grv_range train, validation, test; /**< sample numbers */
} grv_split;

/** Splits n_samples as the configuration says: training first, then validation, test at the end. Not collective. @errors GRV_E_CONFIG */
GRV_API grv_status grv_train_split(const grv_train_config *config, int64_t n_samples, grv_split *out) GRV_MUST_CHECK;

/** How good a network is on samples that it may never have seen. */
typedef struct grv_evaluation {
    int64_t n_samples;
    double relative_l2;            /**< mean over samples of ||p - y|| / ||y|| */
    double relative_l2_mean_field; /**< of the predictor that always answers the mean training field; NaN if it was not given */
    double relative_l2_zero;       /**< of the predictor that answers zero: 1 */
    double seconds_per_sample;     /**< median time of one answer */
} grv_evaluation;

/** Runs the network over samples of a data set.
 * @param network  with loss, batch = n_data
 * @param mean_field  this rank's part of the mean target, grv_network_output_count numbers; NULL: not compared
 * @param sample_losses  [samples.count] written, may be NULL
 * Collective on comm. @errors GRV_E_NOT_FOUND, GRV_E_NUMERIC, GRV_E_IO; on every rank */
GRV_API grv_status grv_evaluate(grv_network *network, grv_dataset *data, grv_range samples, const float *mean_field, grv_comm *comm,
                                grv_log *log, double *sample_losses, grv_evaluation *out) GRV_MUST_CHECK;

/** Mean target over samples, this rank's planes: grv_network_output_count numbers. Not collective. */
GRV_API grv_status grv_mean_field(const grv_network *network, grv_dataset *data, grv_range samples, float *mean) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
