/** @file schedule.h
 * Learning-rate schedules: pure functions of the step, so that a resumed run continues exactly.
 */
#ifndef GROVE_SCHEDULE_H
#define GROVE_SCHEDULE_H

#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Shape of the learning rate after the warm-up. */
typedef enum grv_schedule_kind {
    GRV_SCHEDULE_CONSTANT, /**< rate */
    GRV_SCHEDULE_STEP,     /**< rate * factor^floor(epoch / period_epochs) */
    GRV_SCHEDULE_COSINE /**< from rate down to min_rate over the steps after the warm-up: half a cosine; min_rate afterwards */
} grv_schedule_kind;

/** A schedule. */
typedef struct grv_schedule {
    grv_schedule_kind kind; /**< shape */
    double rate;            /**< learning rate at the start, after warm-up; >= 0 */
    double factor;          /**< GRV_SCHEDULE_STEP; > 0 */
    int64_t period_epochs;  /**< GRV_SCHEDULE_STEP; >= 1 */
    double min_rate;        /**< GRV_SCHEDULE_COSINE; 0 .. rate */
    int64_t
        total_steps; /**< GRV_SCHEDULE_COSINE: steps of the run, warm-up included; > warmup_steps */
    int64_t
        warmup_steps; /**< the first steps, in which the rate grows linearly: (step + 1) / warmup_steps of it; 0 for none */
} grv_schedule;

/** Constant 1e-3 without warm-up; factor 0.5 every 100 epochs and min_rate 0 for the other kinds. Not collective. */
GRV_API grv_schedule grv_schedule_default(void);
/** Checks the ranges given above. Not collective. @errors GRV_E_CONFIG naming the field */
GRV_API grv_status grv_schedule_check(const grv_schedule *schedule) GRV_MUST_CHECK;
/** Learning rate of an optimiser step.
 * @param step  number of the step since the start of training, from 0
 * @param epoch  number of the epoch, from 0
 * Precondition: grv_schedule_check passes, step >= 0, epoch >= 0. Not collective. */
GRV_API double grv_schedule_rate(const grv_schedule *schedule, int64_t step, int64_t epoch);

#ifdef __cplusplus
}
#endif
#endif
