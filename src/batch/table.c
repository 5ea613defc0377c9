/* The index of a job's tasks, kept by replaying records. Memory per task is one grvi_task; arguments and results stay in the journal. */
#include <string.h>

#include "batch/batch_impl.h"
#include "core/alloc.h"
#include "grove/core.h"

static grv_status grow(void **items, int64_t n, int64_t *capacity, size_t size)
{
    if (n < *capacity) return GRV_OK;
    const int64_t larger = *capacity == 0 ? 64 : *capacity + *capacity / 2;
    GRV_TRY(grvi_realloc(grvi_max_i64(larger, n + 1), size, items));
    *capacity = grvi_max_i64(larger, n + 1);
    return GRV_OK;
}

static bool has_ended(const grvi_task *task)
{
    return task->state == GRV_BATCH_DONE || task->state == GRV_BATCH_FAILED || task->state == GRV_BATCH_CANCELLED;
}

void grvi_table_set_state(grv_batch *b, int64_t task, grv_batch_state state)
{
    b->n_state[b->tasks[task].state]--;
    b->n_state[state]++;
    b->tasks[task].state = (uint8_t)state;
}

grv_status grvi_table_make_ready(grv_batch *b, int64_t task)
{
    grvi_table_set_state(b, task, GRV_BATCH_READY);
    if (b->ready_end - b->ready_first == b->ready_capacity) {
        /* unroll the ring into a larger one */
        const int64_t n = b->ready_end - b->ready_first, larger = grvi_max_i64(1024, 2 * b->ready_capacity);
        int32_t *ring = NULL;
        GRV_TRY(GRVI_ALLOC(&ring, larger));
        for (int64_t i = 0; i < n; i++) ring[i] = b->ready[(b->ready_first + i) % b->ready_capacity];
        grv_free(b->ready);
        b->ready = ring;
        b->ready_capacity = larger;
        b->ready_first = 0;
        b->ready_end = n;
    }
    b->ready[b->ready_end++ % b->ready_capacity] = (int32_t)task;
    return GRV_OK;
}

int64_t grvi_table_next_ready(grv_batch *b)
{
    for (; b->ready_first < b->ready_end; b->ready_first++) {
        const int64_t task = b->ready[b->ready_first % b->ready_capacity];
        if (b->tasks[task].state == GRV_BATCH_READY) return task; /* others ended, or stand further behind again */
    }
    return -1;
}

void grvi_table_take_ready(grv_batch *b) { b->ready_first++; }

static grv_status note_ended(grv_batch *b, int64_t task)
{
    GRV_TRY(grow((void **)&b->ended, b->n_ended, &b->ended_capacity, sizeof *b->ended));
    b->ended[b->n_ended++] = (int32_t)task;
    return GRV_OK;
}

/* The task will have no result: neither will those that need one. Iterative: chains are as long as the user makes them. */
static grv_status end_without_result(grv_batch *b, int64_t task, grv_batch_state state)
{
    int64_t *stack = NULL, n = 0, capacity = 0;
    grv_status status = grow((void **)&stack, 0, &capacity, sizeof *stack);
    if (status == GRV_OK) stack[n++] = task;
    while (status == GRV_OK && n > 0) {
        const int64_t t = stack[--n];
        if (has_ended(&b->tasks[t])) continue;
        grvi_table_set_state(b, t, state);
        status = note_ended(b, t);
        for (int32_t e = b->tasks[t].first_edge; e >= 0 && status == GRV_OK; e = b->edges[e].next) {
            status = grow((void **)&stack, n, &capacity, sizeof *stack);
            if (status == GRV_OK) stack[n++] = b->edges[e].task;
        }
    }
    grv_free(stack);
    return status;
}

static grv_status end_with_result(grv_batch *b, int64_t task)
{
    grvi_table_set_state(b, task, GRV_BATCH_DONE);
    GRV_TRY(note_ended(b, task));
    for (int32_t e = b->tasks[task].first_edge; e >= 0; e = b->edges[e].next) {
        grvi_task *const waiting = &b->tasks[b->edges[e].task];
        waiting->n_missing--;
        if (waiting->n_missing == 0 && waiting->state == GRV_BATCH_WAITING) GRV_TRY(grvi_table_make_ready(b, b->edges[e].task));
    }
    return GRV_OK;
}

/* ---- submissions ---- */

static grv_status add_edge(grv_batch *b, int64_t needed, int64_t task, bool *is_hopeless)
{
    int64_t capacity = b->edge_capacity;
    GRV_CHECK(needed >= 0 && needed < task, GRV_E_FORMAT, "task %lld needs a result of task %lld, which does not come before it",
              (long long)task, (long long)needed);
    GRV_CHECK(b->n_edges < INT32_MAX, GRV_E_UNSUPPORTED, "more than 2^31 dependencies");
    GRV_TRY(grow((void **)&b->edges, b->n_edges, &capacity, sizeof *b->edges));
    b->edge_capacity = (int)capacity;
    grvi_task *const other = &b->tasks[needed];
    b->edges[b->n_edges] = (grvi_edge){.task = (int32_t)task, .next = other->first_edge};
    other->first_edge = b->n_edges++;
    if (other->state != GRV_BATCH_DONE) b->tasks[task].n_missing++;
    if (other->state == GRV_BATCH_FAILED || other->state == GRV_BATCH_CANCELLED) *is_hopeless = true;
    return GRV_OK;
}

typedef struct submission_head {
    grvi_submission s;
    bool varies[GRV_BATCH_MAX_VALUES];
    int64_t fixed_futures[GRV_BATCH_MAX_VALUES];
    int n_fixed_futures;
} submission_head;

static grv_status read_submission(grvi_fields *in, submission_head *head)
{
    (void)grvi_get_i64(in); /* how many tasks follow: for the reader of the journal */
    *head = (submission_head){.s = {.time = grvi_get_f64(in)}};
    const int64_t function = grvi_get_i64(in);
    head->s.first = grvi_get_i64(in);
    head->s.n = grvi_get_i64(in);
    const int64_t n_args = grvi_get_i64(in);
    GRV_CHECK(!in->failed && function >= 0 && function < INT_MAX && n_args >= 0 && n_args <= GRV_BATCH_MAX_VALUES && head->s.n >= 0 &&
                  head->s.n <= GRVI_SUBMIT_MOST,
              GRV_E_FORMAT, "a broken record of tasks");
    head->s.function = (int)function;
    head->s.n_args = (int)n_args;
    for (int a = 0; a < head->s.n_args; a++) head->varies[a] = grvi_get_i64(in) != 0;
    for (int a = 0; a < head->s.n_args; a++) {
        grvi_wire_value value;
        if (head->varies[a]) continue;
        grvi_get_value(in, &value);
        if (value.kind == GRV_BATCH_FUTURE) head->fixed_futures[head->n_fixed_futures++] = value.i64;
    }
    GRV_CHECK(!in->failed, GRV_E_FORMAT, "a broken record of tasks");
    return GRV_OK;
}

static grv_status add_task(grv_batch *b, const submission_head *head, grvi_fields *in, const uint8_t *record)
{
    bool is_hopeless = false;
    const int64_t task = b->n_tasks;
    GRV_CHECK(task < INT32_MAX, GRV_E_UNSUPPORTED, "more than 2^31 tasks in one job");
    GRV_TRY(grow((void **)&b->tasks, task, &b->task_capacity, sizeof *b->tasks));
    b->tasks[task] = (grvi_task){.args = in->at - record, .outcome = -1, .submission = b->n_submissions - 1, .first_edge = -1, .worker = -1,
                                 .state = GRV_BATCH_WAITING};
    b->n_tasks++;
    b->n_state[GRV_BATCH_WAITING]++;
    for (int i = 0; i < head->n_fixed_futures; i++) GRV_TRY(add_edge(b, head->fixed_futures[i], task, &is_hopeless));
    for (int a = 0; a < head->s.n_args; a++) {
        grvi_wire_value value;
        if (!head->varies[a]) continue;
        grvi_get_value(in, &value);
        GRV_CHECK(!in->failed, GRV_E_FORMAT, "task %lld: a broken argument", (long long)task);
        if (value.kind == GRV_BATCH_FUTURE) GRV_TRY(add_edge(b, value.i64, task, &is_hopeless));
    }
    if (is_hopeless) return end_without_result(b, task, GRV_BATCH_FAILED);
    return b->tasks[task].n_missing == 0 ? grvi_table_make_ready(b, task) : GRV_OK;
}

static grv_status apply_submit(grv_batch *b, grvi_fields *in, int64_t offset)
{
    submission_head head;
    const uint8_t *const record = in->at - 8 - GRVI_RECORD_HEAD;
    int64_t capacity = b->submission_capacity;
    GRV_TRY(read_submission(in, &head));
    GRV_CHECK(head.s.first == b->n_tasks && head.s.function < b->n_functions, GRV_E_FORMAT, "tasks from %lld on, of function %d, after %lld tasks and %d functions",
              (long long)head.s.first, head.s.function, (long long)b->n_tasks, b->n_functions);
    GRV_TRY(grow((void **)&b->submissions, b->n_submissions, &capacity, sizeof *b->submissions));
    b->submission_capacity = (int)capacity;
    head.s.offset = offset;
    b->submissions[b->n_submissions++] = head.s;
    for (int64_t i = 0; i < head.s.n; i++) GRV_TRY(add_task(b, &head, in, record));
    return GRV_OK;
}

grv_status grvi_table_arguments(grv_batch *b, int64_t task, grvi_wire_value *args, int *n)
{
    const grvi_task *const t = &b->tasks[task];
    const grvi_submission *const s = &b->submissions[t->submission];
    submission_head head;
    grvi_fields fixed, own;
    int64_t kind = 0;
    if (b->cached != t->submission) {
        b->cached = -1;
        GRV_TRY(grvi_record_at(b->journal, "journal", s->offset, &b->record, &kind, &fixed));
        GRV_CHECK(kind == GRVI_R_SUBMIT, GRV_E_FORMAT, "journal: tasks expected at byte %lld", (long long)s->offset);
        b->cached = t->submission;
    }
    const uint8_t *const record = (const uint8_t *)b->record.data, *const end = record + b->record.n;
    GRV_CHECK(t->args <= b->record.n, GRV_E_FORMAT, "journal: the record of task %lld is too short", (long long)task);
    fixed = (grvi_fields){record + GRVI_RECORD_HEAD + 8 + 8 * 6, end, false};
    own = (grvi_fields){record + t->args, end, false};
    for (int a = 0; a < s->n_args; a++) head.varies[a] = grvi_get_i64(&fixed) != 0;
    for (int a = 0; a < s->n_args; a++) grvi_get_value(head.varies[a] ? &own : &fixed, &args[a]);
    GRV_CHECK(!fixed.failed && !own.failed, GRV_E_FORMAT, "journal: the arguments of task %lld are broken", (long long)task);
    *n = s->n_args;
    return GRV_OK;
}

/* ---- outcomes ---- */

static grv_status apply_outcome(grv_batch *b, grvi_fields *in, int64_t offset)
{
    grvi_outcome_record r;
    GRV_CHECK(grvi_get_outcome(in, &r) && r.task >= 0 && r.task < b->n_tasks, GRV_E_FORMAT, "a broken outcome");
    grvi_task *const t = &b->tasks[r.task];
    if (r.end > r.start && r.start > 0) {
        b->busy_s += r.end - r.start;
        if (b->first_start_s <= 0 || r.start < b->first_start_s) b->first_start_s = r.start;
        if (r.end > b->last_end_s) b->last_end_s = r.end;
    }
    /* a task has one result: of the attempt that was handed out last, before it ended or was cancelled */
    if (has_ended(t) || (t->state == GRV_BATCH_RUNNING ? r.attempt != t->attempt : r.attempt <= t->attempt)) return GRV_OK;
    t->attempt = (uint16_t)grvi_min_i64(r.attempt, UINT16_MAX);
    t->worker = (int32_t)r.worker;
    /* killed because it was cancelled, then wanted again */
    if (r.outcome == GRVI_OUTCOME_CANCELLED && t->state != GRV_BATCH_RUNNING) return GRV_OK;
    if (r.outcome == GRVI_OUTCOME_REQUEUED || r.outcome == GRVI_OUTCOME_RETURNED || r.outcome == GRVI_OUTCOME_CANCELLED) return grvi_table_make_ready(b, r.task);
    t->outcome = offset;
    t->begun = (uint8_t)grvi_min_i64(t->begun + 1, UINT8_MAX);
    if (r.outcome == GRVI_OUTCOME_OK) {
        grvi_function *const f = &b->functions[b->submissions[t->submission].function];
        if (r.end - r.start > f->longest_s) f->longest_s = r.end - r.start;
        return end_with_result(b, r.task);
    }
    t->failures++;
    t->alone = t->alone || r.outcome != GRVI_OUTCOME_FAILED;
    return r.is_final ? end_without_result(b, r.task, GRV_BATCH_FAILED) : grvi_table_make_ready(b, r.task);
}

grv_status grvi_table_outcome(grv_batch *b, int64_t task, grvi_text *buffer, grvi_outcome_record *record)
{
    int64_t kind = 0;
    grvi_fields fields;
    GRV_CHECK(b->tasks[task].outcome >= 0, GRV_E_NOT_FOUND, "task %lld has no outcome", (long long)task);
    GRV_TRY(grvi_record_at(b->journal, "journal", b->tasks[task].outcome, buffer, &kind, &fields));
    GRV_CHECK(kind == GRVI_R_OUTCOME && grvi_get_outcome(&fields, record) && record->task == task, GRV_E_FORMAT,
              "journal: the outcome of task %lld is broken", (long long)task);
    return GRV_OK;
}

static grv_status apply_cancel(grv_batch *b, int64_t task)
{
    if (task >= 0) {
        GRV_CHECK(task < b->n_tasks, GRV_E_FORMAT, "a task %lld is cancelled, there are %lld", (long long)task, (long long)b->n_tasks);
        return end_without_result(b, task, GRV_BATCH_CANCELLED);
    }
    for (int64_t t = 0; t < b->n_tasks; t++) GRV_TRY(end_without_result(b, t, GRV_BATCH_CANCELLED));
    return GRV_OK;
}

static grv_status apply_retry(grv_batch *b, int64_t task, int64_t attempt)
{
    GRV_CHECK(task >= 0 && task < b->n_tasks, GRV_E_FORMAT, "a task %lld is retried, there are %lld", (long long)task, (long long)b->n_tasks);
    grvi_task *const t = &b->tasks[task];
    if (t->state != GRV_BATCH_FAILED && t->state != GRV_BATCH_CANCELLED) return GRV_OK;
    t->failures = 0;
    t->attempt = (uint16_t)grvi_max_i64(t->attempt, attempt); /* what was handed out before the cancellation is stale */
    if (t->n_missing == 0) return grvi_table_make_ready(b, task);
    grvi_table_set_state(b, task, GRV_BATCH_WAITING);
    return GRV_OK;
}

static grv_status apply_function(grv_batch *b, grvi_fields *in)
{
    int64_t number = 0;
    grvi_function function;
    GRV_TRY(grvi_get_function(in, &number, &function));
    grv_status status = GRV_OK;
    GRV_CHECK_GOTO(number == b->n_functions, GRV_E_FORMAT, "function %lld after %d functions", (long long)number, b->n_functions);
    GRV_TRY_GOTO(GRVI_REALLOC(&b->functions, b->n_functions + 1));
    b->functions[b->n_functions++] = function;
    return GRV_OK;
done:
    grvi_function_fini(&function);
    return status;
}

static grv_status apply_worker(grv_batch *b, grvi_fields *in)
{
    const int64_t number = grvi_get_i64(in);
    const double time = grvi_get_f64(in);
    const char *const handle = grvi_get_string(in);
    GRV_CHECK(!in->failed && number == b->n_workers, GRV_E_FORMAT, "worker %lld after %d workers", (long long)number, b->n_workers);
    GRV_TRY(GRVI_REALLOC(&b->workers, b->n_workers + 1));
    grvi_batch_worker *const w = &b->workers[b->n_workers];
    *w = (grvi_batch_worker){.inbox = -1, .outbox = {.fd = -1}, .executor = grvi_executor_kind_of(handle), .started_s = time};
    GRV_TRY(grvi_strdup(handle, &w->handle));
    w->is_alive = w->is_adopted = true;
    b->n_workers++;
    return GRV_OK;
}

/* From now on it costs: time in a queue does not. */
static grv_status apply_hello(grv_batch *b, grvi_fields *in)
{
    const int64_t number = grvi_get_i64(in);
    const double time = grvi_get_f64(in), end = grvi_get_f64(in);
    const char *const node = grvi_get_string(in);
    GRV_CHECK(!in->failed && number >= 0 && number < b->n_workers, GRV_E_FORMAT, "worker %lld begins, there are %d", (long long)number, b->n_workers);
    grvi_batch_worker *const w = &b->workers[number];
    w->said_hello = true;
    w->started_s = time;
    w->end_s = end;
    grv_free(w->node);
    w->node = NULL;
    return grvi_strdup(node, &w->node);
}

static grv_status apply_gone(grv_batch *b, grvi_fields *in)
{
    const int64_t number = grvi_get_i64(in);
    const double time = grvi_get_f64(in);
    GRV_CHECK(!in->failed && number >= 0 && number < b->n_workers, GRV_E_FORMAT, "worker %lld is gone, there are %d", (long long)number, b->n_workers);
    grvi_batch_worker *const w = &b->workers[number];
    if (w->is_alive && w->said_hello && time > w->started_s) b->worker_s += time - w->started_s;
    w->is_alive = false;
    return GRV_OK;
}

/* Outcomes that a worker's own mailbox told, for a later driver to skip there. */
static void count_told(grv_batch *b, grvi_fields in)
{
    (void)grvi_get_i64(&in);
    (void)grvi_get_i64(&in);
    const int64_t worker = grvi_get_i64(&in), outcome = grvi_get_i64(&in);
    if (worker >= 0 && worker < b->n_workers && outcome != GRVI_OUTCOME_LOST && outcome != GRVI_OUTCOME_REQUEUED)
        b->workers[worker].outcomes_to_skip++;
}

static grv_status check_version(const grv_batch *b, int64_t found)
{
    GRV_CHECK(found == GRVI_FORMAT_VERSION, GRV_E_UNSUPPORTED,
              "%s: a job of format %d expected, %lld found: another version of grove made it, which goes on with it; or delete the folder", b->folder,
              GRVI_FORMAT_VERSION, (long long)found);
    return GRV_OK;
}

grv_status grvi_table_apply(grv_batch *b, int64_t kind, grvi_fields *in, int64_t offset)
{
    switch (kind) {
    case GRVI_R_JOB:
        return check_version(b, grvi_get_i64(in));
    case GRVI_R_FUNCTION: return apply_function(b, in);
    case GRVI_R_SUBMIT: return apply_submit(b, in, offset);
    case GRVI_R_WORKER: return apply_worker(b, in);
    case GRVI_R_OUTCOME: count_told(b, *in); return apply_outcome(b, in, offset);
    case GRVI_R_HELLO: return apply_hello(b, in);
    case GRVI_R_GONE: return apply_gone(b, in);
    case GRVI_R_CANCEL: return apply_cancel(b, grvi_get_i64(in));
    case GRVI_R_RETRY: {
        const int64_t task = grvi_get_i64(in);
        return apply_retry(b, task, grvi_get_i64(in));
    }
    default: GRV_FAIL(GRV_E_FORMAT, "a record of unknown kind %lld", (long long)kind);
    }
}
