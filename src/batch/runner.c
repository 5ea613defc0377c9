/* The runner of a worker: tasks out of the inbox, one at a time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "batch/worker_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"
#include "grove/task.h"

_Static_assert(GRV_TASK_I32 == (int)GRV_STORE_I32 && GRV_TASK_I64 == (int)GRV_STORE_I64 && GRV_TASK_F32 == (int)GRV_STORE_F32 &&
                   GRV_TASK_F64 == (int)GRV_STORE_F64,
               "task.h names the store's types by number");

/* shared arguments that are kept in memory for the next task */
static const int64_t kept_bytes = (int64_t)1 << 30;
enum { MAX_KEPT = 64 };
/* after tasks longer than this the driver is asked whether it wants the rest back */
static const double look_after_s = 0.01;

typedef struct kept_blob {
    char hash[GRVI_HASH_BYTES];
    grvi_blob_view view;
    int64_t used; /* n_tasks_begun when it was last asked for */
} kept_blob;

/* A task that runs: what the calls of task.h work on. */
typedef struct running {
    grv_task base;
    grvi_worker *worker;
    int64_t task, attempt, n_before;
    grvi_wire_value args[GRV_BATCH_MAX_VALUES];
    char *paths[GRV_BATCH_MAX_VALUES]; /* of file arguments */
    int n_args;
    grvi_text values; /* of results */
    int64_t n_values;
    bool failed;
    char reason[1024];
} running;

typedef struct loaded_function {
    bool is_known;
    grvi_function function;
    void (*call)(struct grv_task *);
    char *fault; /* what is wrong with its code, told once: no task of this process tries it again */
} loaded_function;

typedef struct task_runner {
    grvi_worker *worker;
    grvi_record_reader inbox;
    int n_functions;
    loaded_function *functions;
    bool ran_any, ran_alone; /* alone: a task that has crashed before; nothing else runs in this process */
    double last_s;           /* seconds of the last task */
    int64_t recall_end;      /* tasks before this byte of the inbox are given back */
    running now; /* buffers are kept from task to task */
} task_runner;

/* one runner a process */
static kept_blob kept[MAX_KEPT];
static int n_kept;
static int64_t n_tasks_begun;

static kept_blob *find_kept(const char *hash)
{
    for (int i = 0; i < n_kept; i++)
        if (strcmp(kept[i].hash, hash) == 0) return &kept[i];
    return NULL;
}

/* Lets go of those that were not used for longest, but of none that the running task was given, which are at most MAX_VALUES. */
static void make_room(grvi_kv *blobs, int64_t n_bytes)
{
    for (;;) {
        int64_t total = n_bytes;
        kept_blob *oldest = NULL;
        for (kept_blob *k = kept; k < kept + n_kept; k++) {
            total += k->view.n_bytes;
            if (k->used < n_tasks_begun && (oldest == NULL || k->used < oldest->used)) oldest = k;
        }
        if (oldest == NULL || (n_kept < MAX_KEPT && total <= kept_bytes)) return;
        grvi_blob_view_close(blobs, &oldest->view);
        *oldest = kept[--n_kept];
    }
}

grv_status grvi_argument_content(grvi_worker *w, const grvi_wire_value *value, const void **data)
{
    *data = value->data;
    if (value->blob.hash[0] == '\0') return GRV_OK;
    kept_blob *k = find_kept(value->blob.hash);
    if (k == NULL) {
        make_room(w->blobs, value->n_bytes);
        k = &kept[n_kept];
        GRV_TRY(grvi_blob_view_open(w->blobs, &value->blob, &k->view));
        memcpy(k->hash, value->blob.hash, sizeof k->hash);
        n_kept++;
    }
    k->used = n_tasks_begun;
    *data = k->view.data;
    return GRV_OK;
}

/* ---- the calls of task.h ---- */

static void fail(running *r, const char *text)
{
    if (!r->failed) (void)snprintf(r->reason, sizeof r->reason, "%s", text);
    r->failed = true;
}

static const char *kind_name(grv_batch_kind kind)
{
    switch (kind) {
    case GRV_BATCH_I64: return "a whole number";
    case GRV_BATCH_F64: return "a real number";
    case GRV_BATCH_STRING: return "a string";
    case GRV_BATCH_TENSOR: return "a tensor";
    case GRV_BATCH_FILE: return "a file";
    default: return "nothing";
    }
}

static grvi_wire_value *argument(running *r, int i, grv_batch_kind wanted)
{
    char text[256];
    if (i >= 0 && i < r->n_args && (r->args[i].kind == wanted || (wanted == GRV_BATCH_F64 && r->args[i].kind == GRV_BATCH_I64))) return &r->args[i];
    if (i < 0 || i >= r->n_args)
        (void)snprintf(text, sizeof text, "argument %d is asked for, the call has %d", i, r->n_args);
    else
        (void)snprintf(text, sizeof text, "argument %d is %s, %s is asked for", i, kind_name(r->args[i].kind), kind_name(wanted));
    fail(r, text);
    return NULL;
}

static int n_arguments(grv_task *task) { return ((running *)task)->n_args; }

static int64_t get_i64(grv_task *task, int i)
{
    const grvi_wire_value *const v = argument((running *)task, i, GRV_BATCH_I64);
    return v != NULL ? v->i64 : 0;
}

static double get_f64(grv_task *task, int i)
{
    const grvi_wire_value *const v = argument((running *)task, i, GRV_BATCH_F64);
    return v == NULL ? 0 : v->kind == GRV_BATCH_I64 ? (double)v->i64 : v->f64;
}

static const void *content_of(running *r, const grvi_wire_value *v)
{
    const void *data = NULL;
    if (grvi_argument_content(r->worker, v, &data) == GRV_OK) return data;
    fail(r, grv_error_message());
    return NULL;
}

static const char *get_string(grv_task *task, int i)
{
    const grvi_wire_value *const v = argument((running *)task, i, GRV_BATCH_STRING);
    const char *const text = v != NULL ? content_of((running *)task, v) : NULL;
    return text != NULL ? text : "";
}

/* Files are written once per content, and stay while the worker lives. */
static grv_status file_path(running *r, const grvi_wire_value *v, char **path)
{
    char hash[GRVI_HASH_BYTES];
    const void *data = NULL;
    grvi_text folder = {0};
    GRV_TRY(grvi_argument_content(r->worker, v, &data));
    grvi_hash(data, v->n_bytes, hash);
    grvi_text_printf(&folder, "%s/workers/%d/files/%s", r->worker->folder, r->worker->number, hash);
    grv_status status = grvi_text_status(&folder);
    if (status == GRV_OK) status = grvi_fs_make_directory(folder.data);
    if (status == GRV_OK) status = grvi_fs_join(folder.data, v->text, path);
    if (status == GRV_OK && !grvi_fs_exists(*path)) status = grvi_fs_write_atomic(*path, data, v->n_bytes, false);
    grvi_text_fini(&folder);
    return status;
}

static const char *get_file(grv_task *task, int i)
{
    running *const r = (running *)task;
    const grvi_wire_value *const v = argument(r, i, GRV_BATCH_FILE);
    if (v == NULL) return "";
    if (r->paths[i] == NULL && file_path(r, v, &r->paths[i]) != GRV_OK) {
        fail(r, grv_error_message());
        return "";
    }
    return r->paths[i];
}

static const void *get_tensor(grv_task *task, int i, int type, int *rank, const int64_t **shape)
{
    running *const r = (running *)task;
    const grvi_wire_value *const v = argument(r, i, GRV_BATCH_TENSOR);
    static const int64_t no_shape[GRV_BATCH_MAX_RANK];
    if (rank != NULL) *rank = v != NULL ? v->rank : 0;
    if (shape != NULL) *shape = v != NULL ? v->shape : no_shape;
    if (v == NULL) return NULL;
    if ((int)v->type != type) {
        char text[160];
        (void)snprintf(text, sizeof text, "argument %d is a tensor of %s, %s is asked for", i, grv_store_type_name(v->type),
                       grv_store_type_name((grv_store_type)type));
        fail(r, text);
        return NULL;
    }
    return content_of(r, v);
}

static void give_back(running *r, const grv_batch_value *value)
{
    grvi_wire_value wire;
    char *owned = NULL;
    if (r->n_values == GRV_BATCH_MAX_VALUES) {
        fail(r, "more results than a task can have");
        return;
    }
    if (grvi_value_pack(r->worker->blobs, value, false, &wire, &owned) != GRV_OK) {
        fail(r, grv_error_message());
    } else {
        grvi_put_value(&r->values, &wire);
        r->n_values++;
    }
    grv_free(owned);
}

static void return_i64(grv_task *task, int64_t x)
{
    const grv_batch_value value = grv_batch_i64(x);
    give_back((running *)task, &value);
}

static void return_f64(grv_task *task, double x)
{
    const grv_batch_value value = grv_batch_f64(x);
    give_back((running *)task, &value);
}

static void return_string(grv_task *task, const char *text)
{
    const grv_batch_value value = grv_batch_string(text);
    give_back((running *)task, &value);
}

static void return_file(grv_task *task, const char *path)
{
    const grv_batch_value value = grv_batch_file(path);
    give_back((running *)task, &value);
}

static void return_tensor(grv_task *task, int type, int rank, const int64_t *shape, const void *data)
{
    const grv_batch_value value = grv_batch_tensor((grv_store_type)type, rank, shape, data);
    give_back((running *)task, &value);
}

static void fail_task(grv_task *task, const char *message) { fail((running *)task, message != NULL ? message : "it failed"); }
static int64_t number(grv_task *task) { return ((running *)task)->task; }
static int attempt(grv_task *task) { return (int)((running *)task)->n_before + 1; }

static int find(grv_task *task, const char *name)
{
    char text[256];
    (void)snprintf(text, sizeof text, "argument '%.100s' is asked for, arguments have names in a campaign only: give its number", name != NULL ? name : "");
    fail((running *)task, text);
    return -1;
}

static const grv_task_calls calls = {2,          n_arguments, get_i64,       get_f64,     get_string,    get_file,  get_tensor, return_i64,
                                     return_f64, return_string, return_file, return_tensor, fail_task, number,    attempt, find};

/* ---- one task ---- */

static grv_status load(task_runner *runner, loaded_function *f)
{
    if (f->call != NULL) return GRV_OK;
    if (f->fault != NULL) return grvi_fail_from(GRV_E_ARG, f->fault);
    const grv_status status = grvi_task_code_load(runner->worker, &f->function, &f->call);
    if (status == GRV_E_ARG) GRV_TRY(grvi_strdup(grv_error_message(), &f->fault));
    return status;
}

static grv_status run_function(task_runner *runner, loaded_function *f)
{
    running *const r = &runner->now;
    GRV_CHECK(f->function.kind == GRVI_FUNCTION_PROGRAM || runner->worker->settings.nodes == 0, GRV_E_UNSUPPORTED,
              "tasks of several ranks: a program expected, a C function found");
    if (f->function.kind == GRVI_FUNCTION_PROGRAM)
        return grvi_task_program_run(runner->worker, &f->function, r->task, r->attempt, r->args, r->n_args, &r->values, &r->n_values);
    GRV_TRY(load(runner, f));
    f->call(&r->base);
    return GRV_OK;
}

static grv_status read_task(task_runner *runner, grvi_fields *fields, int64_t *function, bool *alone)
{
    running *const r = &runner->now;
    n_tasks_begun++;
    for (int i = 0; i < r->n_args; i++) grv_free(r->paths[i]);
    memset(r->paths, 0, sizeof r->paths);
    r->values.n = 0;
    r->n_values = 0;
    r->failed = false;
    r->task = grvi_get_i64(fields);
    r->attempt = grvi_get_i64(fields);
    r->n_before = grvi_get_i64(fields);
    *function = grvi_get_i64(fields);
    *alone = grvi_get_i64(fields) != 0;
    const int64_t n = grvi_get_i64(fields);
    GRV_CHECK(!fields->failed && n >= 0 && n <= GRV_BATCH_MAX_VALUES && *function >= 0 && *function < runner->n_functions &&
                  runner->functions[*function].is_known,
              GRV_E_FORMAT, "the inbox holds a broken task");
    r->n_args = (int)n;
    for (int i = 0; i < r->n_args; i++) grvi_get_value(fields, &r->args[i]);
    GRV_CHECK(!fields->failed, GRV_E_FORMAT, "the inbox holds a broken task");
    return GRV_OK;
}

static bool has_to_go(const grvi_worker *w) { return atomic_load(&w->page->has_to_go) != 0; }

static grv_status run_task(task_runner *runner, grvi_fields *fields, int64_t offset, bool *wants_fresh)
{
    running *const r = &runner->now;
    grvi_shared_page *const page = runner->worker->page;
    int64_t function = 0;
    bool alone = false;
    GRV_TRY(read_task(runner, fields, &function, &alone));
    *wants_fresh = alone && runner->ran_any;
    if (*wants_fresh) {
        atomic_store(&page->inbox_offset, offset);
        return GRV_OK;
    }
    runner->ran_any = true;
    runner->ran_alone = alone;
    grvi_outcome_record record = {.task = r->task, .attempt = r->attempt, .worker = runner->worker->number, .reason = "", .start = grvi_unix_time(),
                                  .log_begin = lseek(runner->worker->output, 0, SEEK_END)};
    atomic_store(&page->inbox_offset, runner->inbox.offset);
    atomic_store(&page->attempt, r->attempt);
    atomic_store(&page->log_begin, record.log_begin);
    atomic_store(&page->start, record.start);
    atomic_store(&page->task, r->task);
    const grv_status status = run_function(runner, &runner->functions[function]);
    (void)fflush(stdout);
    (void)fflush(stderr);
    if (status != GRV_OK) fail(r, grv_error_message());
    if (!r->failed && grvi_text_status(&r->values) != GRV_OK) fail(r, grv_error_message());
    record.end = grvi_unix_time();
    record.log_end = lseek(runner->worker->output, 0, SEEK_END);
    record.outcome = r->failed ? GRVI_OUTCOME_FAILED : GRVI_OUTCOME_OK;
    if (r->failed && has_to_go(runner->worker)) record.outcome = GRVI_OUTCOME_RETURNED; /* the signal that told so may have reached it, too */
    if (r->failed) record.reason = r->reason;
    else record.n_values = r->n_values;
    const grv_status told = grvi_worker_tell(runner->worker, &record, r->values.data, r->failed ? 0 : r->values.n);
    if (told == GRV_OK) atomic_store(&page->task, -1);
    runner->last_s = record.end - record.start;
    return told;
}

/* Does the driver want back what has not begun? Looked at after tasks that took a while. */
static void look_for_recall(task_runner *runner)
{
    char path[PATH_MAX];
    grvi_record_reader reader;
    grvi_fields fields;
    int64_t kind = 0, offset = 0;
    const grvi_worker *const w = runner->worker;
    if (snprintf(path, sizeof path, "%s/workers/%d/cancel", w->folder, w->number) >= (int)sizeof path) return;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    grvi_record_reader_init(&reader, fd, 0);
    while (grvi_record_next(&reader, &kind, &fields, &offset) == GRV_OK)
        if (kind == GRVI_R_RECALL) runner->recall_end = grvi_max_i64(runner->recall_end, grvi_get_i64(&fields));
    grvi_record_reader_fini(&reader);
}

static grv_status give_back_task(task_runner *runner, grvi_fields *fields)
{
    const int64_t task = grvi_get_i64(fields), attempt_of = grvi_get_i64(fields);
    const double now = grvi_unix_time();
    const grvi_outcome_record record = {.task = task, .attempt = attempt_of, .worker = runner->worker->number, .reason = "", .start = now, .end = now,
                                        .outcome = GRVI_OUTCOME_RETURNED};
    atomic_store(&runner->worker->page->inbox_offset, runner->inbox.offset);
    return grvi_worker_tell(runner->worker, &record, NULL, 0);
}

/* ---- the inbox ---- */

static grv_status learn_function(task_runner *runner, grvi_fields *fields)
{
    int64_t number_of = 0;
    grvi_function function;
    GRV_TRY(grvi_get_function(fields, &number_of, &function));
    grv_status status = GRV_OK;
    GRV_CHECK_GOTO(number_of < 1 << 20, GRV_E_FORMAT, "function %lld", (long long)number_of);
    if (number_of >= runner->n_functions) {
        GRV_TRY_GOTO(GRVI_REALLOC(&runner->functions, number_of + 1));
        memset(runner->functions + runner->n_functions, 0, sizeof *runner->functions * (size_t)(number_of + 1 - runner->n_functions));
        runner->n_functions = (int)number_of + 1;
    }
    if (runner->functions[number_of].is_known) goto done;
    runner->functions[number_of] = (loaded_function){.is_known = true, .function = function};
    return GRV_OK;
done:
    grvi_function_fini(&function);
    return status;
}

static grv_status open_inbox(task_runner *runner, grvi_watch *watch)
{
    grvi_text path = {0};
    grvi_text_printf(&path, "%s/workers/%d/inbox", runner->worker->folder, runner->worker->number);
    grv_status status = grvi_text_status(&path);
    const int fd = status == GRV_OK ? open(path.data, O_RDONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (status == GRV_OK && fd < 0) status = grvi_fail(GRV_E_IO, __FILE__, __LINE__, __func__, "open %s: %s", path.data, strerror(errno));
    if (status == GRV_OK) grvi_watch_add(watch, path.data);
    grvi_record_reader_init(&runner->inbox, fd, 0);
    grvi_text_fini(&path);
    return status;
}

static bool is_job_there(const grvi_worker *w)
{
    struct stat info;
    return fstat(w->outbox, &info) == 0 && info.st_nlink > 0;
}

static grv_status run_inbox(task_runner *runner, grvi_watch *watch, int *code)
{
    const int64_t begin = atomic_load(&runner->worker->page->inbox_offset);
    double idle_since = grv_clock_seconds();
    *code = GRVI_EXIT_IDLE;
    for (;;) {
        grvi_fields fields;
        int64_t kind = 0, offset = 0;
        bool wants_fresh = false;
        const grv_status status = grvi_record_next(&runner->inbox, &kind, &fields, &offset);
        if (status == GRV_AGAIN) {
            const double idle = grv_clock_seconds() - idle_since;
            if (idle > runner->worker->settings.idle_s || has_to_go(runner->worker) || !is_job_there(runner->worker)) return GRV_OK;
            grvi_watch_wait(watch, idle < 0.05 ? 0.001 : 0.05);
            continue;
        }
        GRV_TRY(status);
        if (kind == GRVI_R_LEAVE) return GRV_OK;
        if (kind == GRVI_R_TASK && offset >= begin && runner->last_s > look_after_s) look_for_recall(runner);
        if (kind == GRVI_R_FUNCTION) GRV_TRY(learn_function(runner, &fields));
        else if (kind == GRVI_R_TASK && offset >= begin && (offset < runner->recall_end || has_to_go(runner->worker))) GRV_TRY(give_back_task(runner, &fields));
        else if (kind == GRVI_R_TASK && offset >= begin) GRV_TRY(run_task(runner, &fields, offset, &wants_fresh));
        if (wants_fresh || runner->ran_alone) {
            *code = GRVI_EXIT_FRESH;
            return GRV_OK;
        }
        idle_since = grv_clock_seconds();
    }
}

int grvi_run_tasks(grvi_worker *worker)
{
    int code = GRVI_EXIT_BROKEN;
    grvi_watch *watch = NULL;
    task_runner *runner = NULL;
    grv_status status = GRVI_CALLOC(&runner, 1);
    if (status == GRV_OK) {
        runner->worker = worker;
        runner->now.base.calls = &calls;
        runner->now.worker = worker;
        runner->inbox.fd = -1;
        status = grvi_watch_create(&watch);
    }
    if (status == GRV_OK) status = open_inbox(runner, watch);
    if (status == GRV_OK) status = run_inbox(runner, watch, &code);
    if (status != GRV_OK) {
        (void)fprintf(stderr, "grove batch worker %d: %s\n", worker->number, grv_error_message());
        code = GRVI_EXIT_BROKEN;
    }
    /* the process ends: what is loaded and kept goes with it */
    return code;
}
