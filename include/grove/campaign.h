/** @file campaign.h
 * Simulation campaigns: a simulator, once for each of many samples of its parameters, into one data set.
 *
 * Each sample is a task of the batch engine (batch.h), and written by the worker that made it. What is there already is not made again: a
 * campaign that was stopped, or whose driver was killed, is simply run again. Sample i depends on the configuration and i only.
 *
 * The simulator is `flow`, the flow past a sphere that grove has itself, any program, or a C function. Each sample of the latter two has an empty folder
 * of its own, and ends with two arrays, the input and the target, whose shape is that of the axes, then the channels, which may be left out where
 * there is one; float or double, the last axis the fastest.
 *
 * A program runs there without a shell; {NAME} in its words stands for a parameter's value, {sample} for the sample's number, {seed} for a random
 * number of its own. It leaves two files, input.npy and target.npy (or .raw: bare little-endian float32).
 *
 * A function, GRV_TASK(name) of task.h, runs there in a process of its own. Its arguments are the parameters, in their order or by name
 * (grv_task_find); grv_task_f64 takes numbers, _i64 whole ones, _string each of them, as text. It returns two tensors, input and target.
 *
 * Nothing here is collective.
 */
#ifndef GROVE_CAMPAIGN_H
#define GROVE_CAMPAIGN_H

#include "grove/batch.h"
#include "grove/config.h"
#include "grove/generate.h"
#include "grove/log.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One side of the pairs that a program or a function makes. */
typedef struct grv_campaign_field {
    grv_string_list axes;     /**< their names, the split axis first */
    grv_i64_list shape;       /**< elements along each of them */
    grv_string_list channels; /**< names; none: one channel without a name */
} grv_campaign_field;

/** What to make; the keys are in grv_campaign_options. */
typedef struct grv_campaign_config {
    char *output;               /**< path of the data set; the job is in the folder <output>.job */
    grv_string_list simulator;  /**< "flow", or a program and its words, or C sources or one .so */
    char *function;             /**< GRV_TASK in these sources; "": they are no sources */
    char *flags;                /**< of the compiler, separated by blanks */
    int64_t samples;            /**< 0: as many as a grid has combinations */
    int64_t seed;               /**< of the parameters */
    int sampling;               /**< grv_sampling_method */
    grv_string_list parameters; /**< lines, see sampling.h */
    grv_generate_config
        flow; /**< of the simulator flow; output, samples, seed, threads and planes_per_chunk are not used */
    grv_string_list files;     /**< that it needs: linked into its folder */
    grv_campaign_field input;  /**< what it leaves */
    grv_campaign_field target; /**< what it leaves */
    int type;                  /**< of the stored values: 0 float32, 1 float64 */
    int planes_per_chunk;      /**< thickness of the stored pieces */
} grv_campaign_config;

/** Keys, defaults, ranges and help of grv_campaign_config. A constant. */
GRV_API const grv_option_table *grv_campaign_options(void);

/** What was made. */
typedef struct grv_campaign_result {
    int64_t n_samples;         /**< in all */
    int64_t n_done;            /**< in the data set now */
    int64_t n_made;            /**< of them during this call */
    int64_t n_failed;          /**< marked failed in the data set now */
    int64_t n_missing;         /**< neither: cancelled, or not reached */
    double seconds;            /**< wall time of this call */
    double seconds_per_sample; /**< mean of one sample on its worker */
} grv_campaign_result;

/** Makes what is missing. A sample that fails for good is marked in the data set with the reason, and the others go on.
 * @param pool  what runs the tasks, and within which limits; NULL: the defaults. With nodes_per_task, a program as simulator is started by
 *        srun over so many. Its log is used for all messages
 * @param retry_failed  makes samples again that are marked failed
 * @param stop  asked several times a second; may be NULL
 * @param result  written in any case
 * @errors GRV_E_CONFIG (also when the data set there was made otherwise), GRV_E_EXISTS if another program drives this campaign,
 *         GRV_E_INTERRUPTED (workers finish what they were given), GRV_E_IO. Failed samples are no error: see the result */
GRV_API grv_status grv_campaign_run(const grv_campaign_config *config, const grv_batch_params *pool,
                                    bool retry_failed, grv_generate_stop *stop, void *stop_argument,
                                    grv_campaign_result *result) GRV_MUST_CHECK;

/** Makes one sample, in this process, and writes it into the data set: what the workers do, and what helps to see why one fails.
 * @param begins  makes the data set if there is none. Workers do not: somebody deleted it while they were on their way
 * @param folder  for the program or function: made if absent, must be empty; stays
 * @param launcher  [n_launcher] words that start a program, such as mpirun -n 4, before its own; NULL: none
 * @param log  may be NULL
 * @errors GRV_E_CONFIG; GRV_E_NOT_FOUND without a data set; whatever the simulator fails with */
GRV_API grv_status grv_campaign_sample(const grv_campaign_config *config, int64_t sample, bool begins,
                                       const char *folder, const char *const *launcher,
                                       int n_launcher, grv_log *log) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
