/* What is read out of a job: counts, states with their reasons, results, logs; and waiting for them. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "batch/batch_impl.h"
#include "core/alloc.h"
#include "grove/core.h"

static int64_t n_ended(const grv_batch *b)
{
    return b->n_state[GRV_BATCH_DONE] + b->n_state[GRV_BATCH_FAILED] + b->n_state[GRV_BATCH_CANCELLED];
}

grv_batch_counts grv_batch_counts_get(const grv_batch *b)
{
    grv_batch_counts counts = {.n_tasks = b->n_tasks, .busy_s = b->busy_s, .first_start_s = b->first_start_s, .last_end_s = b->last_end_s};
    double worker_s = b->worker_s;
    memcpy(counts.n, b->n_state, sizeof counts.n);
    for (int i = 0; i < b->n_workers; i++) {
        if (!b->workers[i].is_alive) continue;
        counts.n_workers++;
        if (b->workers[i].said_hello) worker_s += fmax(0, grvi_unix_time() - b->workers[i].started_s);
    }
    counts.cost = worker_s / 3600 * b->params.price_per_hour;
    return counts;
}

void grv_batch_counts_text(const grv_batch_counts *counts, char *text, int64_t size)
{
    grvi_text out = {0};
    for (int s = 0; s < GRV_BATCH_N_STATES; s++)
        if (counts->n[s] > 0)
            grvi_text_printf(&out, "%s%lld %s", out.n > 0 ? ", " : "", (long long)counts->n[s], grv_batch_state_name((grv_batch_state)s));
    (void)snprintf(text, (size_t)size, "%s", grvi_text_get(&out));
    grvi_text_fini(&out);
}

void grv_batch_show(const grv_batch *b, grv_progress *progress)
{
    char states[160], text[200];
    const grv_batch_counts counts = grv_batch_counts_get(b);
    grv_batch_counts_text(&counts, states, sizeof states);
    if (counts.cost > 0) (void)snprintf(text, sizeof text, "%s, cost %.2f", states, counts.cost);
    grv_progress_describe(progress, counts.cost > 0 ? text : states);
    grv_progress_update(progress, n_ended(b));
}

static grv_status explain_waiting(grv_batch *b, int64_t task, const char *verb)
{
    grvi_wire_value args[GRV_BATCH_MAX_VALUES];
    int n_args = 0;
    GRV_TRY(grvi_table_arguments(b, task, args, &n_args));
    for (int a = 0; a < n_args; a++) {
        if (args[a].kind != GRV_BATCH_FUTURE || b->tasks[args[a].i64].state == GRV_BATCH_DONE) continue;
        grvi_text_printf(&b->message, "%s result %lld of task %lld, which is %s", verb, (long long)args[a].output, (long long)args[a].i64,
                         grv_batch_state_name((grv_batch_state)b->tasks[args[a].i64].state));
        break;
    }
    return GRV_OK;
}

static grv_status explain(grv_batch *b, int64_t task, const grvi_outcome_record *last)
{
    const grvi_task *const t = &b->tasks[task];
    int n_begun = 0;
    const bool has_failed_before = t->failures > 0 && last->reason[0] != '\0';
    switch ((grv_batch_state)t->state) {
    case GRV_BATCH_WAITING: return explain_waiting(b, task, "waits for");
    case GRV_BATCH_FAILED:
        if (t->failures == 0) return explain_waiting(b, task, "needs");
        grvi_text_append(&b->message, last->reason);
        break;
    case GRV_BATCH_READY:
        for (int i = 0; i < b->n_workers; i++) n_begun += b->workers[i].is_alive && b->workers[i].said_hello;
        grvi_text_printf(&b->message, n_begun == 0 ? "ready; no worker has begun: does a driver run?" : "ready; %d workers have other tasks before it", n_begun);
        GRV_TRY(grvi_executors_words(b, &b->message));
        break;
    case GRV_BATCH_RUNNING:
        grvi_text_printf(&b->message, "attempt %d is with worker %d%s", t->begun + 1, t->worker,
                         t->worker < b->n_workers && b->workers[t->worker].first < b->workers[t->worker].end &&
                                 b->workers[t->worker].handed[b->workers[t->worker].first % b->workers[t->worker].handed_capacity].task != task
                             ? ", behind others"
                             : "");
        break;
    default: break;
    }
    if (t->state != GRV_BATCH_FAILED && t->state != GRV_BATCH_DONE && has_failed_before)
        grvi_text_printf(&b->message, "; the last attempt: %s", last->reason);
    return GRV_OK;
}

grv_status grv_batch_task_get(grv_batch *b, int64_t task, grv_batch_task *info)
{
    grvi_outcome_record last = {.reason = ""};
    grvi_text buffer = {0};
    GRV_TRY(grvi_job_check_task(b, task));
    const grvi_task *const t = &b->tasks[task];
    const grvi_submission *const s = &b->submissions[t->submission];
    *info = (grv_batch_task){.task = task, .function = b->functions[s->function].name, .state = (grv_batch_state)t->state, .attempts = t->begun + (t->state == GRV_BATCH_RUNNING),
                             .worker = t->worker, .node = "", .submitted_s = s->time};
    if (t->worker >= 0 && t->worker < b->n_workers && b->workers[t->worker].node != NULL) info->node = b->workers[t->worker].node;
    grv_status status = b->is_driver ? grvi_job_commit(b, false) : GRV_OK;
    if (status == GRV_OK && t->outcome >= 0) status = grvi_table_outcome(b, task, &buffer, &last);
    if (status == GRV_OK && t->outcome >= 0) {
        info->started_s = last.start;
        info->ended_s = last.end;
        info->bytes = last.bytes;
        info->n_results = t->state == GRV_BATCH_DONE ? (int)last.n_values : 0;
    }
    b->message.n = 0;
    if (status == GRV_OK) status = explain(b, task, &last);
    if (status == GRV_OK) status = grvi_text_status(&b->message);
    info->reason = b->message.n > 0 ? grvi_text_get(&b->message) : "";
    grvi_text_fini(&buffer);
    return status;
}

static grv_status unpack_result(grv_batch *b, int64_t task, int output, grv_batch_value *value)
{
    grvi_outcome_record r;
    grvi_text buffer = {0};
    grvi_wire_value wire = {.kind = GRV_BATCH_NONE};
    grv_status status = GRV_OK;
    GRV_TRY_GOTO(grvi_table_outcome(b, task, &buffer, &r));
    GRV_CHECK_GOTO(output >= 0 && output < r.n_values, GRV_E_ARG, "result %d of task %lld: it has %lld, from 0 on", output, (long long)task,
                   (long long)r.n_values);
    for (int i = 0; i <= output; i++) grvi_get_value(&r.values, &wire);
    GRV_TRY_GOTO(grvi_value_unpack(b->blobs, &wire, value));
done:
    grvi_text_fini(&buffer);
    return status;
}

grv_status grv_batch_argument(grv_batch *b, int64_t task, int argument, grv_batch_value *value)
{
    grvi_wire_value args[GRV_BATCH_MAX_VALUES];
    int n_args = 0;
    *value = (grv_batch_value){.kind = GRV_BATCH_NONE};
    GRV_TRY(grvi_job_check_task(b, task));
    if (b->is_driver) GRV_TRY(grvi_job_commit(b, false)); /* it is read out of the journal */
    GRV_TRY(grvi_table_arguments(b, task, args, &n_args));
    GRV_CHECK(argument >= 0 && argument < n_args, GRV_E_ARG, "argument %d of task %lld: it has %d, from 0 on", argument, (long long)task, n_args);
    return grvi_value_unpack(b->blobs, &args[argument], value);
}

/* One round, and a pause if nothing happened. */
static grv_status drive_or_pause(grv_batch *b, double most_s)
{
    bool progressed = false;
    GRV_CHECK(!b->stop, GRV_E_INTERRUPTED, "the job in %s goes on when it is opened again", b->folder);
    GRV_TRY(grvi_drive(b, &progressed));
    if (progressed) return GRV_OK;
    GRV_TRY(grvi_job_commit(b, true));
    grvi_watch_wait(b->watch, fmin(most_s, GRVI_COMMIT_S));
    return GRV_OK;
}

grv_status grv_batch_fetch(grv_batch *b, int64_t task, int output, grv_batch_value *value)
{
    *value = (grv_batch_value){.kind = GRV_BATCH_NONE};
    GRV_TRY(grvi_job_check_task(b, task));
    for (;;) {
        const grv_batch_state state = (grv_batch_state)b->tasks[task].state;
        if (state == GRV_BATCH_DONE) break;
        if (state == GRV_BATCH_FAILED || state == GRV_BATCH_CANCELLED) {
            grv_batch_task info;
            GRV_TRY(grv_batch_task_get(b, task, &info));
            GRV_FAIL(GRV_E_NOT_FOUND, "task %lld (%s) has no result: %s%s%s", (long long)task, info.function, grv_batch_state_name(state),
                     info.reason[0] != '\0' ? ": " : "", info.reason);
        }
        GRV_CHECK(b->is_driver, GRV_E_NOT_FOUND, "task %lld is %s", (long long)task, grv_batch_state_name(state));
        GRV_TRY(drive_or_pause(b, GRVI_COMMIT_S));
    }
    if (b->is_driver) GRV_TRY(grvi_job_commit(b, false));
    return unpack_result(b, task, output, value);
}

grv_status grv_batch_wait(grv_batch *b, double timeout_s)
{
    const double begin = grv_clock_seconds();
    grv_status status = grvi_job_check_driver(b);
    if (status != GRV_OK) return status;
    while (status == GRV_OK && n_ended(b) < b->n_tasks) {
        const double left = timeout_s - (grv_clock_seconds() - begin);
        if (left <= 0) {
            status = GRV_AGAIN;
            break;
        }
        status = drive_or_pause(b, left);
    }
    const grv_status committed = b->is_driver ? grvi_job_commit(b, true) : GRV_OK;
    return status == GRV_OK || status == GRV_AGAIN ? (committed != GRV_OK ? committed : status) : status;
}

void grv_batch_stop(grv_batch *b) { b->stop = 1; }

grv_status grv_batch_next(grv_batch *b, int64_t *task)
{
    while (b->n_handed_out == b->n_ended) {
        if (n_ended(b) == b->n_tasks) return GRV_END;
        GRV_TRY(grvi_job_check_driver(b));
        GRV_TRY(drive_or_pause(b, GRVI_COMMIT_S));
    }
    *task = b->ended[b->n_handed_out++];
    return GRV_OK;
}

/* ---- logs ---- */

static grv_status append_part(const grv_batch *b, const grvi_outcome_record *r, grvi_text *out)
{
    char *path = NULL, *data = NULL;
    grv_status status = grvi_job_path(b, "workers/%d/output", (int)r->worker, &path);
    if (status != GRV_OK) return status;
    const int64_t n = grvi_min_i64(r->log_end - r->log_begin, (int64_t)16 << 20);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && n > 0 && r->log_begin >= 0) {
        status = GRVI_ALLOC(&data, n);
        const ssize_t got = status == GRV_OK ? pread(fd, data, (size_t)n, r->log_begin) : 0;
        if (got > 0) grvi_text_append_n(out, data, got);
        if (got > 0 && data[got - 1] != '\n') grvi_text_append(out, "\n");
    }
    if (fd >= 0) (void)close(fd);
    grv_free(data);
    grv_free(path);
    return status;
}

grv_status grv_batch_log(grv_batch *b, int64_t task, char **text)
{
    grv_status status = GRV_OK;
    grvi_text out = {0};
    grvi_record_reader reader;
    grvi_fields fields;
    int64_t kind = 0, offset = 0;
    *text = NULL;
    GRV_TRY(grvi_job_check_task(b, task));
    if (b->is_driver) GRV_TRY(grvi_job_commit(b, false));
    const int fd = dup(b->journal);
    GRV_CHECK(fd >= 0, GRV_E_IO, "dup: %s", strerror(errno));
    grvi_record_reader_init(&reader, fd, b->submissions[b->tasks[task].submission].offset);
    while ((status = grvi_record_next(&reader, &kind, &fields, &offset)) == GRV_OK) {
        grvi_outcome_record r;
        if (kind != GRVI_R_OUTCOME || !grvi_get_outcome(&fields, &r) || r.task != task || r.outcome == GRVI_OUTCOME_REQUEUED) continue;
        grvi_text_printf(&out, "-- attempt %lld on worker %lld, %.3f s: %s\n", (long long)r.attempt, (long long)r.worker, r.end - r.start,
                         r.outcome == GRVI_OUTCOME_OK ? "done" : r.reason);
        GRV_TRY_GOTO(append_part(b, &r, &out));
    }
    if (status == GRV_AGAIN) status = grvi_text_status(&out);
done:
    grvi_record_reader_fini(&reader);
    if (status == GRV_OK && out.data == NULL) status = grvi_strdup("", &out.data);
    if (status != GRV_OK) grvi_text_fini(&out);
    *text = out.data;
    return status;
}
