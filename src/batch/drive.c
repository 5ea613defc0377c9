/* Driving a job: outcomes out of the workers' mailboxes, tasks into them, workers as many as are wanted.
 * A worker runs the tasks of its inbox in order, one at a time, and tells an outcome for each in the same order; so the first task without outcome
 * is the one that runs, and those behind it have not begun. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "batch/batch_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

/* work that a worker has before it, so that it need not wait for the driver: seconds, and tasks */
static const double window_s = 0.25;
enum { WINDOW_MOST = 4096, WINDOW_LEAST = 2, FEW_OUTCOMES = 64, START_FAILURES_MOST = 3 };
static const double liveness_s = 0.2, fine_pause_s = 0.0005, damage_s = 2;
/* with tasks longer than this, nobody gets a second one while others have none */
static const double long_task_s = 0.05;

/* ---- the list of what a worker was given ---- */

static int64_t n_handed(const grvi_batch_worker *w) { return w->end - w->first; }
static grvi_handed *first_handed(const grvi_batch_worker *w) { return &w->handed[w->first % w->handed_capacity]; }

static grv_status push_handed(grvi_batch_worker *w, int64_t task, int64_t attempt)
{
    if (n_handed(w) == w->handed_capacity) {
        const int64_t n = n_handed(w), larger = grvi_max_i64(64, 2 * n);
        grvi_handed *ring = NULL;
        GRV_TRY(GRVI_ALLOC(&ring, larger));
        for (int64_t i = 0; i < n; i++) ring[i] = w->handed[(w->first + i) % w->handed_capacity];
        grv_free(w->handed);
        w->handed = ring;
        w->handed_capacity = larger;
        w->first = 0;
        w->end = n;
    }
    w->handed[w->end++ % w->handed_capacity] = (grvi_handed){task, attempt};
    return GRV_OK;
}

/* Of one that is no more, what it was is kept. */
static void close_mailbox(grvi_batch_worker *w)
{
    if (w->inbox >= 0) (void)close(w->inbox);
    w->inbox = -1;
    grvi_record_reader_fini(&w->outbox);
    grv_free(w->handle);
    grv_free(w->handed);
    grv_free(w->has_function);
    w->handle = NULL;
    w->handed = NULL;
    w->has_function = NULL;
    w->handed_capacity = w->first = w->end = 0;
}

void grvi_worker_fini(grvi_batch_worker *w)
{
    close_mailbox(w);
    grv_free(w->node);
    w->node = NULL;
}

/* Is this still the attempt whose outcome counts? */
static bool is_current(const grv_batch *b, int worker, const grvi_handed *h)
{
    const grvi_task *const t = &b->tasks[h->task];
    return t->state == GRV_BATCH_RUNNING && t->worker == worker && t->attempt == h->attempt;
}

/* ---- outcomes ---- */

static grv_status append_outcome(grv_batch *b, grvi_outcome_record *r, const void *values, int64_t n_bytes)
{
    const grvi_task *const t = &b->tasks[r->task];
    const bool counts = r->outcome == GRVI_OUTCOME_FAILED || r->outcome == GRVI_OUTCOME_CRASHED || r->outcome == GRVI_OUTCOME_TIMEOUT ||
                        r->outcome == GRVI_OUTCOME_MEMORY || r->outcome == GRVI_OUTCOME_LOST;
    r->is_final = counts && t->failures + 1 >= b->params.max_attempts;
    const int64_t begin = grvi_record_begin(&b->pending, GRVI_R_OUTCOME);
    grvi_put_outcome(&b->pending, r, values, n_bytes);
    return grvi_job_append(b, begin);
}

static int64_t output_bytes(const grv_batch *b, int worker)
{
    char *path = NULL;
    struct stat info;
    const bool is_there = grvi_worker_path(b->folder, worker, "output", &path) == GRV_OK && stat(path, &info) == 0;
    grv_free(path);
    return is_there ? (int64_t)info.st_size : 0;
}

/* What the driver itself tells about a task that its worker will tell nothing about. Of one that is lost, the log is what its worker printed at last. */
static grv_status tell(grv_batch *b, int worker, const grvi_handed *h, grvi_outcome outcome, const char *reason)
{
    const double now = grvi_unix_time();
    grvi_outcome_record r = {.task = h->task, .attempt = h->attempt, .worker = worker, .outcome = outcome, .reason = reason, .start = now, .end = now};
    if (outcome == GRVI_OUTCOME_LOST) r.log_begin = b->workers[worker].log_end;
    if (outcome == GRVI_OUTCOME_LOST) r.log_end = output_bytes(b, worker);
    return is_current(b, worker, h) ? append_outcome(b, &r, NULL, 0) : GRV_OK;
}

/* Why a worker gave up, if it said so: the end of its log. */
static grv_status append_last_words(const grv_batch *b, int number, grvi_text *out)
{
    char *path = NULL, tail[512];
    GRV_TRY(grvi_worker_path(b->folder, number, "worker.log", &path));
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    grv_free(path);
    if (fd < 0) return GRV_OK;
    const off_t size = lseek(fd, 0, SEEK_END);
    ssize_t n = pread(fd, tail, sizeof tail, size > (off_t)sizeof tail ? size - (off_t)sizeof tail : 0);
    (void)close(fd);
    while (n > 0 && (tail[n - 1] == '\n' || tail[n - 1] == ' ')) n--;
    for (ssize_t i = 0; i < n; i++)
        if (tail[i] == '\n') tail[i] = ' ';
    if (n > 0) grvi_text_append(out, ": ");
    if (n > 0) grvi_text_append_n(out, tail, n);
    return GRV_OK;
}

/* The worker is no more: what it ran is lost, what stood behind it goes back. */
static grv_status end_worker(grv_batch *b, int number, const char *why)
{
    grvi_batch_worker *const w = &b->workers[number];
    grvi_text reason = {0}, lost = {0};
    grv_status status = GRV_OK;
    if (!w->said_hello && !w->said_bye) {
        b->start_failures += !grvi_executor_of(b, number)->class->is_queued; /* a queue has reasons of its own */
        grvi_text_printf(&reason, "worker %d ended before it began (%s)", number, why);
        GRV_TRY_GOTO(append_last_words(b, number, &reason));
        grv_log_message(b->params.log, GRV_LOG_WARN, "%s", grvi_text_get(&reason));
    }
    if (n_handed(w) > 0 && w->said_hello && !w->said_bye && !w->was_cut_short) {
        grvi_text_printf(&lost, "its worker %d vanished%s (%s)", number,
                         w->end_s > 0 && grvi_unix_time() > w->end_s - 1 ? " at the end of its allocation's time" : "", why);
        GRV_TRY_GOTO(append_last_words(b, number, &lost));
        GRV_TRY_GOTO(tell(b, number, first_handed(w), GRVI_OUTCOME_LOST, grvi_text_get(&lost)));
        w->first++;
    }
    for (; n_handed(w) > 0; w->first++) GRV_TRY_GOTO(tell(b, number, first_handed(w), GRVI_OUTCOME_REQUEUED, "")); /* these had not begun */
    const int64_t begin = grvi_record_begin(&b->pending, GRVI_R_GONE);
    grvi_put_i64(&b->pending, number);
    grvi_put_f64(&b->pending, grvi_unix_time());
    GRV_TRY_GOTO(grvi_job_append(b, begin));
    close_mailbox(w);
    GRV_CHECK_GOTO(b->start_failures < START_FAILURES_MOST, GRV_E_IO, "%d workers in a row could not begin; the last: %s", b->start_failures,
                   grvi_text_get(&reason));
done:
    grvi_text_fini(&reason);
    grvi_text_fini(&lost);
    return status;
}

/* By the runner, and again by the supervisor of a runner that was killed right then? */
static bool is_told_twice(const grvi_batch_worker *w, const grvi_outcome_record *r)
{
    return w->last.attempt > 0 && r->task == w->last.task && r->attempt == w->last.attempt;
}

/* One outcome out of a mailbox; false: it is not what this worker can have to tell. */
static bool take_outcome(grv_batch *b, int number, grvi_fields *fields, grv_status *status)
{
    grvi_batch_worker *const w = &b->workers[number];
    grvi_outcome_record r;
    if (!grvi_get_outcome(fields, &r) || r.worker != number) return false;
    if (is_told_twice(w, &r)) return true;
    if (n_handed(w) == 0 || r.task != first_handed(w)->task || r.attempt != first_handed(w)->attempt) return false;
    w->last = *first_handed(w);
    w->first++;
    const double seconds = fmax(1e-7, r.end - r.start);
    if (r.outcome != GRVI_OUTCOME_RETURNED && r.outcome != GRVI_OUTCOME_CRASHED) w->mean_s = w->mean_s > 0 ? 0.8 * w->mean_s + 0.2 * seconds : seconds;
    w->told_s = grv_clock_seconds();
    w->log_end = r.log_end;
    w->is_recalled = w->is_recalled && n_handed(w) > 0;
    /* also what no longer counts is noted: a later driver skips as many */
    *status = append_outcome(b, &r, r.values.at, fields->at - r.values.at);
    return true;
}

/* Bytes behind the last record that stay no record: half a record is written in far less time. */
static bool is_damaged(grvi_batch_worker *w)
{
    struct stat info;
    const double now = grv_clock_seconds();
    if (fstat(w->outbox.fd, &info) != 0 || info.st_size <= w->outbox.offset) w->damaged_s = 0;
    else if (w->damaged_s <= 0) w->damaged_s = now;
    return w->damaged_s > 0 && now - w->damaged_s > damage_s;
}

static grv_status put_away(grv_batch *b, int number, const char *why)
{
    grvi_executor *const executor = grvi_executor_of(b, number);
    executor->class->kill(executor, b->workers[number].handle);
    return end_worker(b, number, why);
}

/* A worker keeps its tasks' time limit by itself: one that tells nothing long after it hangs, or its node does. */
static bool hangs(const grv_batch *b, int number)
{
    const grvi_batch_worker *const w = &b->workers[number];
    const double limit = w->time_limit_s, late = grvi_executor_of(b, number)->late_s;
    return limit > 0 && w->said_hello && n_handed(w) > 0 && grv_clock_seconds() - w->told_s > limit + fmax(limit, late);
}

static grv_status take_hello(grv_batch *b, int number, grvi_fields *fields)
{
    grvi_executor *const executor = grvi_executor_of(b, number);
    grvi_batch_worker *const w = &b->workers[number];
    (void)grvi_get_i64(fields);
    const double time = grvi_get_f64(fields), end = grvi_get_f64(fields);
    const char *const node = grvi_get_string(fields);
    if (fields->failed) return GRV_OK;
    b->start_failures = 0;
    w->told_s = grv_clock_seconds();
    if (executor->class->has_begun != NULL) executor->class->has_begun(executor, w->handle);
    if (w->said_hello) return GRV_OK; /* an earlier driver heard it, or it was started anew */
    const int64_t begin = grvi_record_begin(&b->pending, GRVI_R_HELLO);
    grvi_put_i64(&b->pending, number);
    grvi_put_f64(&b->pending, time);
    grvi_put_f64(&b->pending, end);
    grvi_put_string(&b->pending, node);
    return grvi_job_append(b, begin);
}

static void take_leaving(grvi_batch_worker *w, grvi_fields *fields)
{
    w->has_to_go = true;
    w->was_cut_short = grvi_get_f64(fields) < w->end_s - 1;
}

static grv_status read_outbox(grv_batch *b, int number, int64_t *n_outcomes)
{
    static const char nonsense[] = "what it told made no sense";
    grvi_batch_worker *const w = &b->workers[number];
    grvi_fields fields;
    int64_t kind = 0, offset = 0;
    grv_status status = GRV_OK;
    while (status == GRV_OK && w->is_alive) {
        status = grvi_record_next(&w->outbox, &kind, &fields, &offset);
        if (status != GRV_OK) break;
        bool is_good = true;
        if (kind == GRVI_R_HELLO) {
            status = take_hello(b, number, &fields);
            is_good = !fields.failed;
        } else if (kind == GRVI_R_LEAVING) {
            take_leaving(w, &fields);
        } else if (kind == GRVI_R_BYE) {
            w->said_bye = true;
            return end_worker(b, number, "it left");
        } else if (kind == GRVI_R_OUTCOME) {
            is_good = take_outcome(b, number, &fields, &status);
            (*n_outcomes)++;
        } else {
            is_good = false;
        }
        if (!is_good) return put_away(b, number, nonsense);
        w->damaged_s = 0;
    }
    if (status == GRV_AGAIN && is_damaged(w)) return put_away(b, number, nonsense);
    return status == GRV_AGAIN ? GRV_OK : status;
}

static grv_status check_liveness(grv_batch *b, int number, int64_t *n_outcomes)
{
    grvi_text why = {0};
    grv_status status = GRV_OK;
    grvi_batch_worker *const w = &b->workers[number];
    if (!grvi_executor_of(b, number)->class->is_alive(grvi_executor_of(b, number), w->handle, number, &why)) {
        status = read_outbox(b, number, n_outcomes); /* what it told at last */
        if (status == GRV_OK && w->is_alive) status = end_worker(b, number, why.n > 0 ? grvi_text_get(&why) : "no reason is known");
    } else if (hangs(b, number)) {
        status = put_away(b, number, "it told nothing until long after its task's time limit");
    }
    grvi_text_fini(&why);
    return status;
}

/* ---- workers ---- */

static grv_status open_mailbox(grv_batch *b, int number)
{
    grvi_batch_worker *const w = &b->workers[number];
    grv_status status = GRV_OK;
    char *inbox = NULL, *outbox = NULL;
    GRV_TRY_GOTO(grvi_job_path(b, "workers/%d/inbox", number, &inbox));
    GRV_TRY_GOTO(grvi_job_path(b, "workers/%d/outbox", number, &outbox));
    if (b->is_driver) {
        w->inbox = open(inbox, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        GRV_CHECK_GOTO(w->inbox >= 0, GRV_E_IO, "open %s: %s", inbox, strerror(errno));
    }
    const int fd = open(outbox, (b->is_driver ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0600);
    GRV_CHECK_GOTO(fd >= 0 || !b->is_driver, GRV_E_IO, "open %s: %s", outbox, strerror(errno));
    grvi_record_reader_init(&w->outbox, fd, 0);
    grvi_watch_add(b->watch, outbox);
done:
    grv_free(inbox);
    grv_free(outbox);
    return status;
}

static grv_status write_settings(const grv_batch *b, int number)
{
    const grv_batch_params *const p = &b->params;
    const grvi_worker_settings settings = {.cores = p->cores_per_task, .nodes = p->nodes_per_task, .ranks = p->ranks_per_task, .memory = p->memory_per_task,
                                           .time_limit_s = p->time_limit_s, .idle_s = p->idle_s};
    return grvi_settings_write(b->folder, number, &settings);
}

static grv_status prepare_worker(grv_batch *b, int number)
{
    char *path = NULL;
    grv_status status = grvi_job_path(b, "workers/%d", number, &path);
    if (status == GRV_OK) status = grvi_fs_remove_tree(path); /* of a driver that was killed before it wrote about this one */
    if (status == GRV_OK) status = grvi_fs_make_directory(path);
    if (status == GRV_OK) status = write_settings(b, number);
    grv_free(path);
    return status;
}

static grv_status start_workers(grv_batch *b, int n)
{
    const int first = b->n_workers;
    grvi_executor *const executor = b->executors[b->executor];
    char *handle = NULL;
    grv_status status = GRV_OK;
    for (int i = first; i < first + n; i++) GRV_TRY_GOTO(prepare_worker(b, i));
    GRV_TRY_GOTO(executor->class->start(executor, first, n, &handle));
    for (int i = first; i < first + n; i++) {
        const int64_t begin = grvi_record_begin(&b->pending, GRVI_R_WORKER);
        grvi_put_i64(&b->pending, i);
        grvi_put_f64(&b->pending, grvi_unix_time());
        grvi_put_string(&b->pending, handle);
        GRV_TRY_GOTO(grvi_job_append(b, begin));
        b->workers[i].is_adopted = false;
        b->workers[i].time_limit_s = b->params.time_limit_s;
    }
    GRV_TRY_GOTO(grvi_job_commit(b, true)); /* a later driver must know them */
    for (int i = first; i < first + n; i++) GRV_TRY_GOTO(open_mailbox(b, i));
done:
    grv_free(handle);
    return status;
}

static grv_status start_missing_workers(grv_batch *b)
{
    grvi_executor *const executor = b->executors[b->executor];
    for (;;) {
        int64_t wanted = grvi_min_i64(b->params.n_workers, b->n_state[GRV_BATCH_READY] + b->n_state[GRV_BATCH_RUNNING]);
        for (int i = b->first_alive; i < b->n_workers; i++)
            wanted -= b->workers[i].is_alive && !b->workers[i].is_dismissed && !b->workers[i].has_to_go;
        const int n = wanted > 0 ? executor->class->room(executor, (int)wanted) : 0;
        if (n == 0) return GRV_OK;
        GRV_TRY(start_workers(b, n));
    }
}

/* ---- handing out ---- */

static grv_status put_function_once(grv_batch *b, grvi_batch_worker *w, int function, grvi_text *out)
{
    if (w->n_has_function < b->n_functions) {
        GRV_TRY(GRVI_REALLOC(&w->has_function, b->n_functions));
        memset(w->has_function + w->n_has_function, 0, (size_t)(b->n_functions - w->n_has_function));
        w->n_has_function = b->n_functions;
    }
    if (w->has_function[function]) return GRV_OK;
    w->has_function[function] = 1;
    const int64_t begin = grvi_record_begin(out, GRVI_R_FUNCTION);
    grvi_put_function(out, function, &b->functions[function]);
    grvi_record_end(out, begin);
    return GRV_OK;
}

/* Writes an argument, a future's result in its place. */
static grv_status put_argument(grv_batch *b, const grvi_wire_value *value, grvi_text *out)
{
    grvi_outcome_record r;
    grvi_text buffer = {0};
    grvi_wire_value result = {.kind = GRV_BATCH_NONE};
    grv_status status = GRV_OK;
    if (value->kind != GRV_BATCH_FUTURE) {
        grvi_put_value(out, value);
        return GRV_OK;
    }
    GRV_TRY_GOTO(grvi_table_outcome(b, value->i64, &buffer, &r));
    GRV_CHECK_GOTO(value->output < r.n_values, GRV_E_ARG, "result %lld of task %lld is wanted, it has %lld", (long long)value->output,
                   (long long)value->i64, (long long)r.n_values);
    for (int64_t i = 0; i <= value->output; i++) grvi_get_value(&r.values, &result);
    grvi_put_value(out, &result);
done:
    grvi_text_fini(&buffer);
    return status;
}

static grv_status put_task(grv_batch *b, int number, int64_t task, grvi_text *out)
{
    grvi_wire_value args[GRV_BATCH_MAX_VALUES];
    int n_args = 0;
    grvi_task *const t = &b->tasks[task];
    const int function = b->submissions[t->submission].function;
    const int64_t kept = out->n;
    GRV_TRY(put_function_once(b, &b->workers[number], function, out));
    const int64_t begin = grvi_record_begin(out, GRVI_R_TASK);
    grvi_put_i64(out, task);
    grvi_put_i64(out, t->attempt + 1);
    grvi_put_i64(out, t->begun);
    grvi_put_i64(out, function);
    grvi_put_i64(out, t->alone);
    GRV_TRY(grvi_table_arguments(b, task, args, &n_args));
    grvi_put_i64(out, n_args);
    for (int a = 0; a < n_args; a++) {
        const grv_status status = put_argument(b, &args[a], out);
        if (status == GRV_OK) continue;
        out->n = kept;
        b->workers[number].has_function[function] = 0;
        return status;
    }
    grvi_record_end(out, begin);
    t->attempt++;
    t->worker = number;
    grvi_table_set_state(b, task, GRV_BATCH_RUNNING);
    return push_handed(&b->workers[number], task, t->attempt);
}

/* A task that cannot be handed out (a result that it wants does not exist): it fails as if it had run. */
static grv_status fail_task(grv_batch *b, int64_t task)
{
    grvi_task *const t = &b->tasks[task];
    const double now = grvi_unix_time();
    grvi_outcome_record r = {.task = task, .attempt = t->attempt + 1, .worker = -1, .outcome = GRVI_OUTCOME_FAILED, .start = now, .end = now,
                             .reason = grv_error_message()};
    t->failures = (uint8_t)(b->params.max_attempts - 1);
    return append_outcome(b, &r, NULL, 0);
}

static int64_t window_of(const grvi_batch_worker *w)
{
    if (w->mean_s <= 0) return WINDOW_LEAST;
    return (int64_t)fmin(WINDOW_MOST, fmax(WINDOW_LEAST, ceil(window_s / w->mean_s)));
}

/* ---- places that end ---- */

/* May it be given tasks? */
static bool takes_tasks(const grv_batch *b, int number)
{
    const grvi_batch_worker *const w = &b->workers[number];
    return w->is_alive && !w->is_dismissed && !w->has_to_go && (w->said_hello || !grvi_executor_of(b, number)->class->is_queued);
}

/* By its limit, or else by what tasks of its function took so far. */
static double expected_s(const grv_batch *b, int64_t task)
{
    return b->params.time_limit_s > 0 ? b->params.time_limit_s : b->functions[b->submissions[b->tasks[task].submission].function].longest_s;
}

/* Does a task end before the worker's place does, after before_s seconds of others? No place has more time than a new one: that takes anything. */
static bool fits(const grv_batch *b, const grvi_batch_worker *w, int64_t task, double before_s)
{
    if (w->end_s <= 0) return true;
    const double span = w->end_s - w->started_s, left = w->end_s - grvi_unix_time(), reserve = fmin(30, fmax(1, 0.02 * span));
    return (before_s <= 0 && left > 0.9 * span) || before_s + expected_s(b, task) < left - reserve;
}

static double handed_s(const grv_batch *b, const grvi_batch_worker *w)
{
    double sum = 0;
    if (w->end_s <= 0) return 0;
    for (int64_t i = w->first; i < w->end; i++) sum += expected_s(b, w->handed[i % w->handed_capacity].task);
    return sum;
}

grv_status grvi_drive_dismiss(grv_batch *b, int number)
{
    grvi_batch_worker *const w = &b->workers[number];
    grvi_text out = {0};
    if (w->is_dismissed || w->inbox < 0) return GRV_OK;
    w->is_dismissed = true;
    const int64_t begin = grvi_record_begin(&out, GRVI_R_LEAVE);
    grvi_record_end(&out, begin);
    const grv_status status = grvi_records_write(w->inbox, "a worker's inbox", &out);
    w->inbox_bytes += out.n;
    grvi_text_fini(&out);
    return status;
}

/* Workers that have no time left for what is next go as soon as they are done, and make room for new ones. */
static grv_status dismiss_drained(grv_batch *b)
{
    const int64_t task = grvi_table_next_ready(b);
    for (int i = b->first_alive; i < b->n_workers && task >= 0; i++)
        if (b->workers[i].end_s > 0 && takes_tasks(b, i) && !fits(b, &b->workers[i], task, 0)) GRV_TRY(grvi_drive_dismiss(b, i));
    return GRV_OK;
}

/* ---- handing out, in rounds ---- */

static grv_status hand_to(grv_batch *b, int number, int64_t most, int64_t *n)
{
    grvi_batch_worker *const w = &b->workers[number];
    grvi_text out = {0};
    grv_status status = GRV_OK;
    *n = 0;
    if (most <= 0) return GRV_OK;
    double before_s = handed_s(b, w);
    for (; *n < most && status == GRV_OK;) {
        const int64_t task = grvi_table_next_ready(b);
        if (task < 0 || !fits(b, w, task, before_s)) break;
        grvi_table_take_ready(b);
        before_s += w->end_s > 0 ? expected_s(b, task) : 0;
        status = put_task(b, number, task, &out);
        if (status == GRV_E_ARG) status = fail_task(b, task);
        else (*n)++;
    }
    if (status == GRV_OK && *n > 0) status = grvi_records_write(w->inbox, "a worker's inbox", &out);
    w->inbox_bytes += out.n;
    if (n_handed(w) == *n) w->told_s = grv_clock_seconds();
    grvi_text_fini(&out);
    return status;
}

/* Durations were taken for shorter than they are: a worker has many tasks before it while another has none. It gives back those it has not begun. */
static grv_status recall(grv_batch *b)
{
    int idle = 0, fullest = -1;
    for (int i = b->first_alive; i < b->n_workers; i++) {
        const grvi_batch_worker *const w = &b->workers[i];
        if (!takes_tasks(b, i)) continue;
        idle += n_handed(w) == 0;
        if (n_handed(w) > 1 && !w->is_recalled && (fullest < 0 || n_handed(w) > n_handed(&b->workers[fullest]))) fullest = i;
    }
    if (idle == 0 || fullest < 0 || b->n_state[GRV_BATCH_READY] > 0) return GRV_OK;
    grvi_batch_worker *const w = &b->workers[fullest];
    if (grv_clock_seconds() - w->told_s < window_s && w->mean_s * (double)n_handed(w) < window_s) return GRV_OK;
    w->is_recalled = true;
    return grvi_job_tell_worker(b, fullest, GRVI_R_RECALL, w->inbox_bytes);
}

static grv_status hand_out(grv_batch *b, int64_t *n_given)
{
    int n_takers = 0;
    GRV_TRY(dismiss_drained(b));
    for (int i = b->first_alive; i < b->n_workers; i++) n_takers += takes_tasks(b, i);
    GRV_TRY(grvi_job_commit(b, false)); /* nothing is handed out that the journal does not know */
    /* first a task for everyone who has none, then more */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < b->n_workers && b->n_state[GRV_BATCH_READY] > 0; i++) {
            grvi_batch_worker *const w = &b->workers[i];
            int64_t n = 0;
            if (!takes_tasks(b, i) || (pass == 0 && n_handed(w) > 0)) continue;
            if (pass == 1 && (w->mean_s <= 0 || w->mean_s > long_task_s) && b->n_state[GRV_BATCH_READY] < n_takers) continue;
            const int64_t share = grvi_ceil_div(b->n_state[GRV_BATCH_READY] + b->n_state[GRV_BATCH_RUNNING], n_takers);
            GRV_TRY(hand_to(b, i, pass == 0 ? 1 : grvi_min_i64(window_of(w), share) - n_handed(w), &n));
            *n_given += n;
        }
    return GRV_OK;
}

/* ---- a round ---- */

grv_status grvi_drive(grv_batch *b, bool *progressed)
{
    int64_t n_outcomes = 0, n_given = 0;
    const double now = grv_clock_seconds();
    const bool looks = now - b->looked_s > liveness_s;
    if (looks) b->looked_s = now;
    if (looks) GRV_TRY(grvi_requests_take(b));
    GRV_TRY(grvi_executors_poll(b));
    for (int i = b->first_alive; i < b->n_workers; i++) {
        if (b->workers[i].is_alive) GRV_TRY(read_outbox(b, i, &n_outcomes));
        if (looks && b->workers[i].is_alive) GRV_TRY(check_liveness(b, i, &n_outcomes));
    }
    while (b->first_alive < b->n_workers && !b->workers[b->first_alive].is_alive) b->first_alive++;
    GRV_TRY(start_missing_workers(b));
    GRV_TRY(hand_out(b, &n_given));
    GRV_TRY(recall(b));
    GRV_TRY(grvi_job_commit(b, false));
    *progressed = n_outcomes > 0 || n_given > 0;
    /* let small outcomes gather: the workers need the cores more than the driver */
    if (*progressed && n_outcomes < FEW_OUTCOMES) grvi_sleep(fine_pause_s);
    return GRV_OK;
}

/* ---- after another driver ---- */

/* What stands in a worker's inbox was handed out; the first ones of it may have ended. */
static grv_status read_inbox(grv_batch *b, int number)
{
    grvi_batch_worker *const w = &b->workers[number];
    grvi_record_reader reader;
    grvi_fields fields;
    int64_t kind = 0, offset = 0, n_ended = w->outcomes_to_skip;
    char *path = NULL;
    GRV_TRY(grvi_job_path(b, "workers/%d/inbox", number, &path));
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    grv_free(path);
    if (fd < 0) return GRV_OK; /* nothing was handed out */
    grvi_record_reader_init(&reader, fd, 0);
    grv_status status = GRV_OK;
    while (status == GRV_OK && (status = grvi_record_next(&reader, &kind, &fields, &offset)) == GRV_OK) {
        w->inbox_bytes = reader.offset;
        w->is_dismissed = w->is_dismissed || kind == GRVI_R_LEAVE;
        if (kind != GRVI_R_TASK) continue;
        const int64_t task = grvi_get_i64(&fields), attempt = grvi_get_i64(&fields);
        if (fields.failed || task < 0 || task >= b->n_tasks) continue;
        if (n_ended-- > 0) {
            w->last = (grvi_handed){task, attempt};
            continue;
        }
        grvi_task *const t = &b->tasks[task];
        status = push_handed(w, task, attempt);
        if (t->state != GRV_BATCH_READY || attempt <= t->attempt) continue;
        t->attempt = (uint16_t)attempt;
        t->worker = number;
        grvi_table_set_state(b, task, GRV_BATCH_RUNNING);
    }
    grvi_record_reader_fini(&reader);
    return status == GRV_AGAIN ? GRV_OK : status;
}

/* Reads over the outcomes that an earlier driver took in. */
static grv_status skip_told(grv_batch *b, int number)
{
    grvi_batch_worker *const w = &b->workers[number];
    grvi_fields fields;
    int64_t kind = 0, offset = 0;
    grv_status status = GRV_OK;
    const grvi_handed last = w->last; /* of all of them, from the inbox */
    w->last = (grvi_handed){0};
    for (int64_t n = w->outcomes_to_skip; n > 0 && status == GRV_OK;) {
        grvi_outcome_record r;
        status = grvi_record_next(&w->outbox, &kind, &fields, &offset);
        if (status != GRV_OK) break;
        if (kind == GRVI_R_LEAVING) take_leaving(w, &fields);
        if (kind != GRVI_R_OUTCOME || !grvi_get_outcome(&fields, &r)) continue;
        n -= !is_told_twice(w, &r);
        w->last = (grvi_handed){r.task, r.attempt};
        w->log_end = r.log_end;
    }
    w->last = last;
    return status == GRV_AGAIN ? GRV_OK : status;
}

/* What it keeps by itself was said by the driver that started it. */
static grv_status learn_time_limit(grv_batch *b, int number)
{
    grvi_worker_settings settings;
    GRV_TRY(grvi_settings_read(b->folder, number, &settings));
    b->workers[number].time_limit_s = settings.time_limit_s;
    b->workers[number].told_s = grv_clock_seconds();
    return GRV_OK;
}

grv_status grvi_drive_adopt(grv_batch *b)
{
    for (int i = 0; i < b->n_workers; i++) {
        if (!b->workers[i].is_alive) continue;
        GRV_TRY(read_inbox(b, i));
        if (!b->is_driver) continue;
        GRV_TRY(learn_time_limit(b, i));
        GRV_TRY(open_mailbox(b, i));
        GRV_TRY(skip_told(b, i));
        int64_t n_outcomes = 0;
        GRV_TRY(read_outbox(b, i, &n_outcomes));
        if (b->workers[i].is_alive) GRV_TRY(check_liveness(b, i, &n_outcomes));
    }
    return b->is_driver ? grvi_job_commit(b, true) : GRV_OK;
}
