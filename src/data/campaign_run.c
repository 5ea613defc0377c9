/* Driving a campaign: a task of the batch engine for each sample that is to be made. The task is this same command for one sample,
 *     grove generate --config <job>/campaign.yaml sample={0} folder=. -- {srun}
 * in a process of its own, so that a crash costs that sample. What is done is said by the data set; the job only says what is on its way. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "batch/grove_program.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "data/campaign_impl.h"
#include "grove/core.h"

/* what the worker puts the words of srun in place of, if there are nodes for a task */
static const char *const srun = "{srun}";

typedef struct campaign_run {
    grvi_campaign campaign;
    grv_batch *batch;
    grv_log *log;
    bool retry_failed;
    char *folder, *file; /* of the job; the configuration in it */
    uint8_t *states;     /* [samples] of the data set, as this run knows them */
    int64_t *last;       /* [samples] the task that was submitted last, or -1 */
    int64_t *samples;    /* [n_tasks] */
    int64_t n_tasks;
    int64_t n_before; /* tasks that had ended before this run */
    int64_t n_taken;  /* ended tasks that were looked at */
    int64_t n_failed; /* during this run */
    int64_t n_timed;
    double seconds; /* of n_timed samples */
} campaign_run;

/* ---- the job ---- */

/* A job of another configuration is of no use: its data set was deleted. Its workers must not write into this one. */
static grv_status open_job(campaign_run *r, const grv_batch_params *pool)
{
    char *text = NULL, *found = NULL;
    int64_t n = 0;
    grv_status status = GRV_OK;
    GRV_TRY_GOTO(grv_config_to_yaml(grv_campaign_options(), &r->campaign.config, &text));
    if (grvi_fs_exists(r->file)) GRV_TRY_GOTO(grvi_fs_read(r->file, (int64_t)1 << 24, &found, &n));
    if (found != NULL && strcmp(found, text) != 0) {
        grv_log_message(r->log, GRV_LOG_WARN, "%s is of another configuration and is replaced",
                        r->folder);
        GRV_TRY_GOTO(grv_batch_clean(r->folder));
    }
    GRV_TRY_GOTO(grv_batch_open(r->folder, pool, &r->batch));
    GRV_TRY_GOTO(grvi_fs_write_atomic(r->file, text, (int64_t)strlen(text), false));
done:
    grv_free(found);
    grv_free(text);
    return status;
}

/* Which samples the tasks of an earlier run are. */
static grv_status read_tasks(campaign_run *r)
{
    const grv_batch_counts counts = grv_batch_counts_get(r->batch);
    GRV_TRY(GRVI_ALLOC(&r->samples, counts.n_tasks));
    for (r->n_tasks = 0; r->n_tasks < counts.n_tasks; r->n_tasks++) {
        grv_batch_value value;
        GRV_TRY(grv_batch_argument(r->batch, r->n_tasks, 0, &value));
        const int64_t sample = value.kind == GRV_BATCH_I64 ? value.i64 : -1;
        grv_batch_value_fini(&value);
        GRV_CHECK(sample >= 0 && sample < r->campaign.config.samples, GRV_E_FORMAT,
                  "%s is not the job of this campaign", r->folder);
        r->samples[r->n_tasks] = sample;
        r->last[sample] = r->n_tasks;
    }
    r->n_before =
        counts.n[GRV_BATCH_DONE] + counts.n[GRV_BATCH_FAILED] + counts.n[GRV_BATCH_CANCELLED];
    return GRV_OK;
}

/* Is a task to be submitted for this sample? */
static grv_status is_wanted(campaign_run *r, int64_t sample, bool *wanted)
{
    grv_batch_task task;
    *wanted = r->states[sample] == GRV_SAMPLE_MISSING ||
              (r->states[sample] == GRV_SAMPLE_FAILED && r->retry_failed);
    if (!*wanted || r->last[sample] < 0) return GRV_OK;
    GRV_TRY(grv_batch_task_get(r->batch, r->last[sample], &task));
    const bool has_ended = task.state == GRV_BATCH_DONE || task.state == GRV_BATCH_FAILED ||
                           task.state == GRV_BATCH_CANCELLED;
    /* one that failed and is not marked yet is only marked */
    *wanted = has_ended && (task.state != GRV_BATCH_FAILED || r->retry_failed);
    return GRV_OK;
}

static grv_status register_program(const campaign_run *r, const grv_batch_params *pool,
                                   grv_batch_function *function)
{
    char *program = NULL;
    grv_status status = grvi_find_program(pool->worker_program, &program);
    if (status == GRV_OK) status = grvi_campaign_make_absolute("the program grove", &program);
    const char *const words[] = {program,      "generate", "--config", "{1}",
                                 "sample={0}", "begin=false", "folder=.", "--", srun};
    if (status == GRV_OK)
        status =
            grv_batch_program(r->batch, words, sizeof words / sizeof *words, NULL, 0, function);
    grv_free(program);
    return status;
}

static grv_status submit(campaign_run *r, const grv_batch_params *pool)
{
    const int64_t n_samples = r->campaign.config.samples;
    grv_batch_value *numbers = NULL;
    const grv_batch_value file = grv_batch_string(r->file);
    const int64_t n_old = r->n_tasks;
    int64_t first = 0;
    grv_batch_function function = 0;
    grv_status status = GRV_OK;
    GRV_TRY_GOTO(register_program(r, pool, &function));
    GRV_TRY_GOTO(GRVI_ALLOC(&numbers, n_samples));
    GRV_TRY_GOTO(GRVI_REALLOC(&r->samples, n_old + n_samples));
    for (int64_t i = 0; i < n_samples; i++) {
        bool wanted = false;
        GRV_TRY_GOTO(is_wanted(r, i, &wanted));
        if (!wanted) continue;
        numbers[r->n_tasks - n_old] = grv_batch_i64(i);
        r->last[i] = r->n_tasks;
        r->samples[r->n_tasks++] = i;
    }
    const grv_batch_column columns[] = {{numbers, true}, {&file, false}};
    GRV_TRY_GOTO(grv_batch_map(r->batch, function, r->n_tasks - n_old, columns, 2, &first));
done:
    grv_free(numbers);
    return status;
}

/* ---- what has ended ---- */

/* What the task's own message says, without the names of programs around it. */
static const char *reason_of(const grv_batch_task *task)
{
    static const char own[] = "grove generate: ";
    const char *const at = strstr(task->reason, own);
    return at != NULL ? at + sizeof own - 1 : task->reason;
}

static grv_status take_ended(campaign_run *r, int64_t number)
{
    const int64_t sample = r->samples[number];
    const bool is_old = r->n_taken++ < r->n_before;
    grv_batch_task task;
    if (r->last[sample] != number) return GRV_OK;
    GRV_TRY(grv_batch_task_get(r->batch, number, &task));
    if (task.state == GRV_BATCH_DONE && !is_old) {
        r->n_timed++;
        r->seconds += task.ended_s - task.started_s;
    }
    if (task.state != GRV_BATCH_FAILED || (is_old && r->states[sample] != GRV_SAMPLE_MISSING))
        return GRV_OK;
    /* the first one early, so that a campaign that cannot work is seen; all of them are in the data set */
    grv_log_message(r->log, r->n_failed++ == 0 ? GRV_LOG_WARN : GRV_LOG_DEBUG,
                    "sample %lld failed: %s", (long long)sample, reason_of(&task));
    r->states[sample] = GRV_SAMPLE_FAILED;
    return grv_dataset_mark_failed(r->campaign.data, sample, reason_of(&task));
}

static int64_t n_ended(const grv_batch_counts *c)
{
    return c->n[GRV_BATCH_DONE] + c->n[GRV_BATCH_FAILED] + c->n[GRV_BATCH_CANCELLED];
}

/* Looks at the tasks that have ended since; the last time at all of them. */
static grv_status take_all_ended(campaign_run *r, bool is_last)
{
    for (;;) {
        int64_t number = 0;
        const grv_batch_counts counts = grv_batch_counts_get(r->batch);
        if (!is_last && r->n_taken >= n_ended(&counts)) return GRV_OK;
        const grv_status status = grv_batch_next(r->batch, &number);
        if (status == GRV_END) return GRV_OK;
        GRV_TRY(status);
        GRV_TRY(take_ended(r, number));
    }
}

static grv_status drive(campaign_run *r, grv_generate_stop *stop, void *stop_argument)
{
    grv_status status = GRV_AGAIN;
    bool stopped = false;
    grv_progress progress;
    grv_progress_begin(&progress, r->log, "generate", "samples",
                       grv_batch_counts_get(r->batch).n_tasks);
    grv_progress_skip(&progress, r->n_before);
    while (status == GRV_AGAIN && !stopped) {
        status = grv_batch_wait(r->batch, 0.2);
        grv_batch_show(r->batch, &progress);
        if (status != GRV_AGAIN && status != GRV_OK) break;
        const grv_status taken = take_all_ended(r, status == GRV_OK);
        if (taken != GRV_OK) status = taken;
        stopped = stop != NULL && stop(stop_argument);
    }
    grv_progress_end(&progress);
    GRV_CHECK(status != GRV_AGAIN, GRV_E_INTERRUPTED,
              "stopped; workers finish what they were given, and the same command goes on");
    return status;
}

/* ---- all together ---- */

static grv_status run_job(campaign_run *r, const grv_batch_params *pool, grv_generate_stop *stop,
                          void *stop_argument)
{
    GRV_TRY(open_job(r, pool));
    GRV_TRY(read_tasks(r));
    GRV_TRY(submit(r, pool));
    return drive(r, stop, stop_argument);
}

static grv_status count(campaign_run *r, grv_campaign_result *result, int64_t n_done_before)
{
    grv_dataset_counts counts;
    GRV_TRY(grv_dataset_count(r->campaign.data, &counts));
    result->n_done = counts.n_done;
    result->n_failed = counts.n_failed;
    result->n_missing = counts.n_missing;
    result->n_made = counts.n_done - n_done_before;
    return GRV_OK;
}

static grv_status begin(campaign_run *r, const grv_campaign_config *config,
                        grv_campaign_result *result, int64_t *n_todo)
{
    grvi_text text = {0};
    GRV_TRY(grvi_campaign_open(config, r->log, &r->campaign));
    const int64_t n = r->campaign.config.samples;
    result->n_samples = n;
    grvi_text_printf(&text, "%s.job", r->campaign.config.output);
    r->folder = text.data; /* released with the run, also if it is not whole */
    GRV_TRY(grvi_text_status(&text));
    GRV_TRY(grvi_fs_join(r->folder, "campaign.yaml", &r->file));
    GRV_TRY(GRVI_ALLOC(&r->states, n));
    GRV_TRY(GRVI_ALLOC(&r->last, n));
    GRV_TRY(grv_dataset_status(r->campaign.data, r->states));
    *n_todo = 0;
    for (int64_t i = 0; i < n; i++) {
        r->last[i] = -1;
        result->n_done += r->states[i] == GRV_SAMPLE_DONE;
        *n_todo += r->states[i] == GRV_SAMPLE_MISSING ||
                   (r->retry_failed && r->states[i] == GRV_SAMPLE_FAILED);
    }
    if (result->n_done > 0)
        grv_log_message(r->log, GRV_LOG_INFO, "%lld of %lld samples are there already",
                        (long long)result->n_done, (long long)n);
    return GRV_OK;
}

static grv_status run_campaign(campaign_run *r, const grv_campaign_config *config,
                               const grv_batch_params *pool, grv_generate_stop *stop,
                               void *stop_argument, grv_campaign_result *result)
{
    int64_t n_todo = 0;
    GRV_TRY(begin(r, config, result, &n_todo));
    const int64_t n_done_before = result->n_done;
    if (n_todo > 0 && r->campaign.simulator->inspect != NULL)
        GRV_TRY(r->campaign.simulator->inspect(&r->campaign, r->log));
    grv_status status = n_todo > 0 ? run_job(r, pool, stop, stop_argument) : GRV_OK;
    grv_batch_close(&r->batch);
    if (status != GRV_OK) { /* what is there is told all the same */
        char *message = NULL;
        const bool is_kept = grvi_strdup(grv_error_message(), &message) == GRV_OK;
        (void)count(r, result, n_done_before);
        if (is_kept) status = grvi_fail_from(status, message);
        grv_free(message);
        return status;
    }
    GRV_TRY(count(r, result, n_done_before));
    GRV_TRY(grvi_simulation_seconds_add(r->campaign.data, r->n_timed, r->seconds,
                                        &result->seconds_per_sample));
    /* with failed samples it stays, for their logs */
    if (result->n_done == result->n_samples && grvi_fs_exists(r->file))
        GRV_TRY(grv_batch_clean(r->folder));
    return GRV_OK;
}

grv_status grv_campaign_run(const grv_campaign_config *config, const grv_batch_params *pool,
                            bool retry_failed, grv_generate_stop *stop, void *stop_argument,
                            grv_campaign_result *result)
{
    const double begin_s = grv_clock_seconds();
    const grv_batch_params defaults = grv_batch_params_default();
    if (pool == NULL) pool = &defaults;
    campaign_run r = {
        .campaign = {.launcher = &srun,
                     .n_launcher = pool->nodes_per_task > 0 || pool->ranks_per_task > 0},
        .log = pool->log,
        .retry_failed = retry_failed};
    *result = (grv_campaign_result){0};
    const grv_status status = run_campaign(&r, config, pool, stop, stop_argument, result);
    result->seconds = grv_clock_seconds() - begin_s;
    grvi_campaign_close(&r.campaign);
    grv_free(r.folder);
    grv_free(r.file);
    grv_free(r.states);
    grv_free(r.last);
    grv_free(r.samples);
    return status;
}
