/* A job: its folder and journal, what is put into it and read out of it. Progress is drive.c's. */
#define _DEFAULT_SOURCE /* flock */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "batch/batch_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

/* a journal record of tasks is closed at this size */
static const int64_t submit_bytes = (int64_t)1 << 20;
/* results that a killed driver may have to take in again */
static const double commit_s = 0.05;

grv_batch_params grv_batch_params_default(void)
{
    const grv_batch_slurm slurm = {.allocation_s = 3600, .max_allocations = 8, .max_queued = 2, .workers_per_allocation = 1, .nodes_per_allocation = 1,
                                   .submit_interval_s = 0.3, .poll_interval_s = 5};
    return (grv_batch_params){.executor = "local", .max_attempts = 3, .idle_s = 10, .slurm = slurm};
}

double grvi_unix_time(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *grv_batch_state_name(grv_batch_state state)
{
    static const char *const names[] = {"waiting", "ready", "running", "done", "failed", "cancelled"};
    return (int)state >= 0 && state < GRV_BATCH_N_STATES ? names[state] : "unknown";
}

grv_status grvi_job_path(const grv_batch *b, const char *format, int number, char **path)
{
    char name[128];
    (void)snprintf(name, sizeof name, format, number);
    return grvi_fs_join(b->folder, name, path);
}

/* ---- the journal ---- */

static grv_status flush(grv_batch *b)
{
    if (b->pending.n == 0) return GRV_OK;
    const grv_status status = grvi_records_write(b->journal, "the job's journal", &b->pending);
    if (status != GRV_OK) { /* what is there of it must not stand between whole records */
        (void)ftruncate(b->journal, b->journal_size);
        b->is_driver = false;
        return status;
    }
    b->journal_size += b->pending.n;
    b->pending.n = 0;
    if (b->uncommitted_since <= 0) b->uncommitted_since = grv_clock_seconds();
    return GRV_OK;
}

grv_status grvi_job_append(grv_batch *b, int64_t begin)
{
    int64_t kind = 0;
    grvi_record_end(&b->pending, begin);
    GRV_TRY(grvi_text_status(&b->pending));
    grvi_fields fields = {(const uint8_t *)b->pending.data + begin + GRVI_RECORD_HEAD, (const uint8_t *)b->pending.data + b->pending.n, false};
    kind = grvi_get_i64(&fields);
    GRV_TRY(grvi_table_apply(b, kind, &fields, b->journal_size + begin));
    return b->pending.n > submit_bytes ? flush(b) : GRV_OK;
}

grv_status grvi_job_commit(grv_batch *b, bool now)
{
    GRV_TRY(flush(b));
    if (b->uncommitted_since <= 0 || (!now && grv_clock_seconds() - b->uncommitted_since < commit_s)) return GRV_OK;
    GRV_CHECK(fdatasync(b->journal) == 0, GRV_E_IO, "fdatasync %s/journal: %s", b->folder, strerror(errno));
    b->uncommitted_since = 0;
    return GRV_OK;
}

static grv_status replay(grv_batch *b)
{
    grv_status status = GRV_OK;
    grvi_record_reader reader;
    grvi_fields fields;
    int64_t kind = 0, offset = 0;
    struct stat info;
    const int fd = dup(b->journal);
    GRV_CHECK(fd >= 0, GRV_E_IO, "dup: %s", strerror(errno));
    grvi_record_reader_init(&reader, fd, 0);
    for (;;) {
        status = grvi_record_next(&reader, &kind, &fields, &offset);
        if (status != GRV_OK) break;
        GRV_CHECK_GOTO(offset > 0 || kind == GRVI_R_JOB, GRV_E_FORMAT, "%s/journal is not the journal of a batch job", b->folder);
        GRV_TRY_GOTO(grvi_table_apply(b, kind, &fields, offset));
    }
    if (status != GRV_AGAIN) goto done;
    b->journal_size = reader.offset;
    GRV_CHECK_GOTO(fstat(b->journal, &info) == 0, GRV_E_IO, "stat %s/journal: %s", b->folder, strerror(errno));
    status = GRV_OK;
    GRV_CHECK_GOTO(reader.offset > 0 || info.st_size == 0 || b->is_driver, GRV_E_FORMAT, "%s/journal is not the journal of a batch job", b->folder);
    if (info.st_size == reader.offset || !b->is_driver) goto done;
    /* a driver that was killed while it wrote leaves a part of a record at the end, and nothing behind it */
    grv_log_message(b->params.log, GRV_LOG_WARN, "%s/journal: %lld bytes at its end are no whole record and are dropped", b->folder,
                    (long long)(info.st_size - reader.offset));
    GRV_CHECK_GOTO(ftruncate(b->journal, reader.offset) == 0, GRV_E_IO, "truncate %s/journal: %s", b->folder, strerror(errno));
done:
    grvi_record_reader_fini(&reader);
    return status;
}

static grv_status begin_journal(grv_batch *b)
{
    if (b->journal_size > 0) return GRV_OK;
    const int64_t begin = grvi_record_begin(&b->pending, GRVI_R_JOB);
    grvi_put_i64(&b->pending, GRVI_FORMAT_VERSION);
    GRV_TRY(grvi_job_append(b, begin));
    return grvi_job_commit(b, true);
}

/* ---- opening ---- */

static grv_status copy_params(grv_batch *b, const grv_batch_params *params)
{
    b->params = params != NULL ? *params : grv_batch_params_default();
    if (params == NULL) b->params.executor = NULL;
    if (b->params.executor != NULL) GRV_TRY(grvi_strdup(b->params.executor, &b->executor_name));
    if (b->params.worker_program != NULL) GRV_TRY(grvi_strdup(b->params.worker_program, &b->worker_program));
    b->params.executor = b->executor_name;
    b->params.worker_program = b->worker_program;
    return GRV_OK;
}

static grv_status open_files(grv_batch *b)
{
    char *path = NULL;
    grv_status status = GRV_OK;
    if (b->is_driver) {
        GRV_CHECK(mkdir(b->folder, 0700) == 0 || errno == EEXIST || errno == ENOENT, GRV_E_IO, "make %s: %s", b->folder, strerror(errno));
        if (!grvi_fs_exists(b->folder)) {
            GRV_TRY(grvi_fs_make_directory(b->folder));
            GRV_CHECK(chmod(b->folder, 0700) == 0, GRV_E_IO, "chmod %s: %s", b->folder, strerror(errno));
        }
    }
    GRV_TRY_GOTO(grvi_fs_join(b->folder, "journal", &path));
    GRV_CHECK_GOTO(b->is_driver || grvi_fs_exists(path), GRV_E_NOT_FOUND, "no batch job in %s", b->folder);
    if (b->is_driver) {
        char *lock = NULL;
        GRV_TRY_GOTO(grvi_fs_join(b->folder, "lock", &lock));
        b->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        grv_free(lock);
        GRV_CHECK_GOTO(b->lock >= 0, GRV_E_IO, "open %s/lock: %s", b->folder, strerror(errno));
        GRV_CHECK_GOTO(flock(b->lock, LOCK_EX | LOCK_NB) == 0, GRV_E_EXISTS, "another program drives the job in %s", b->folder);
    }
    b->journal = open(path, b->is_driver ? O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0600);
    GRV_CHECK_GOTO(b->journal >= 0, GRV_E_IO, "open %s: %s", path, strerror(errno));
    grv_free(path);
    path = NULL;
    GRV_TRY_GOTO(grvi_fs_join(b->folder, "blobs", &path));
    GRV_TRY_GOTO(grvi_kv_fs_create(path, b->is_driver, GRV_STORE_SYNC_NONE, &b->blobs));
done:
    grv_free(path);
    return status;
}

static grv_status make_absolute(char **path)
{
    char whole[PATH_MAX];
    GRV_CHECK(realpath(*path, whole) != NULL, GRV_E_IO, "%s: %s", *path, strerror(errno));
    grv_free(*path);
    *path = NULL;
    return grvi_strdup(whole, path);
}

static grv_status open_job(const char *folder, const grv_batch_params *params, bool is_driver, grv_batch **out)
{
    grv_status status = GRV_OK;
    grv_batch *b = NULL;
    *out = NULL;
    GRV_CHECK(folder != NULL && folder[0] != '\0', GRV_E_ARG, "no folder for the job given");
    GRV_TRY(GRVI_CALLOC(&b, 1));
    b->lock = b->journal = b->cached = -1;
    b->is_driver = is_driver;
    GRV_TRY_GOTO(copy_params(b, params));
    GRV_TRY_GOTO(grvi_strdup(folder, &b->folder));
    GRV_TRY_GOTO(open_files(b));
    GRV_TRY_GOTO(make_absolute(&b->folder)); /* tasks may change their directory */
    GRV_TRY_GOTO(replay(b));
    GRV_TRY_GOTO(grvi_watch_create(&b->watch));
    if (is_driver) {
        GRV_TRY_GOTO(begin_journal(b));
        GRV_TRY_GOTO(grvi_executors_open(b));
    }
    GRV_TRY_GOTO(grvi_drive_adopt(b));
    *out = b;
done:
    if (status != GRV_OK) grv_batch_close(&b);
    return status;
}

grv_status grv_batch_open(const char *folder, const grv_batch_params *params, grv_batch **batch)
{
    return open_job(folder, params, true, batch);
}

grv_status grv_batch_look(const char *folder, grv_batch **batch) { return open_job(folder, NULL, false, batch); }

void grv_batch_close(grv_batch **batch)
{
    if (batch == NULL || *batch == NULL) return;
    grv_batch *const b = *batch;
    if (b->is_driver && b->journal >= 0 && (grvi_executors_release(b) != GRV_OK || grvi_job_commit(b, true) != GRV_OK))
        grv_log_message(b->params.log, GRV_LOG_ERROR, "%s", grv_error_message());
    for (int i = 0; i < b->n_workers; i++) grvi_worker_fini(&b->workers[i]);
    for (int i = 0; i < b->n_functions; i++) grvi_function_fini(&b->functions[i]);
    for (int i = 0; i < b->n_shared; i++) grv_free(b->shared[i]);
    grvi_executors_close(b);
    grvi_watch_destroy(&b->watch);
    grvi_kv_destroy(&b->blobs);
    if (b->journal >= 0) (void)close(b->journal);
    if (b->lock >= 0) (void)close(b->lock);
    grvi_text_fini(&b->pending);
    grvi_text_fini(&b->record);
    grvi_text_fini(&b->message);
    grv_free(b->executor_name);
    grv_free(b->worker_program);
    grv_free(b->workers);
    grv_free(b->functions);
    grv_free(b->submissions);
    grv_free(b->tasks);
    grv_free(b->edges);
    grv_free(b->ready);
    grv_free(b->ended);
    grv_free(b->shared);
    grv_free(b->folder);
    grv_free(b);
    *batch = NULL;
}

grv_status grv_batch_clean(const char *folder)
{
    grv_batch *b = NULL;
    char *journal = NULL;
    GRV_TRY(grvi_fs_join(folder, "journal", &journal));
    const bool is_job = grvi_fs_exists(journal);
    grv_free(journal);
    GRV_CHECK(is_job, grvi_fs_exists(folder) ? GRV_E_FORMAT : GRV_E_NOT_FOUND, "no batch job in %s", folder);
    GRV_TRY(grv_batch_open(folder, NULL, &b)); /* nobody else drives it, and it is a job */
    for (int i = 0; i < b->n_workers; i++)
        if (b->workers[i].is_alive) grvi_executor_of(b, i)->class->kill(grvi_executor_of(b, i), b->workers[i].handle);
    grv_status status = GRV_OK;
    if (b->pending.n == 0) status = grvi_fs_remove_tree(b->folder);
    grv_batch_close(&b);
    return status;
}

/* ---- what is put in ---- */

static grv_status check_driver(const grv_batch *b)
{
    GRV_CHECK(b->is_driver, GRV_E_ARG, "the job in %s was opened for looking only, or its journal could not be written", b->folder);
    return GRV_OK;
}

static bool is_identifier(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return name[0] != '\0' && strspn(name, letters) == strlen(name) && !(name[0] >= '0' && name[0] <= '9') && strlen(name) < 128;
}

static grv_status add_file(grv_batch *b, grvi_function *f, const char *path)
{
    char *data = NULL;
    int64_t n = 0;
    const char *const slash = strrchr(path, '/'), *const name = slash != NULL ? slash + 1 : path;
    GRV_TRY(grvi_fs_read(path, INT64_MAX / 2, &data, &n));
    grvi_named_blob *const file = &f->files[f->n_files];
    grv_status status = grvi_blob_put(b->blobs, data, n, &file->blob);
    if (status == GRV_OK) status = grvi_strdup(name, &file->name);
    if (status == GRV_OK) f->n_files++;
    grv_free(data);
    return status;
}

static grv_status copy_list(const char *const *texts, int n, int *n_copied, char ***copies)
{
    GRV_TRY(GRVI_CALLOC(copies, n));
    for (int i = 0; i < n; i++) {
        GRV_CHECK(texts[i] != NULL, GRV_E_ARG, "a text is missing at %d", i);
        GRV_TRY(grvi_strdup(texts[i], &(*copies)[i]));
        *n_copied = i + 1;
    }
    return GRV_OK;
}

static bool same_list(int n, char *const *a, int m, char *const *b)
{
    if (n != m) return false;
    for (int i = 0; i < n; i++)
        if (strcmp(a[i], b[i]) != 0) return false;
    return true;
}

static bool same_function(const grvi_function *f, const grvi_function *g)
{
    if (f->kind != g->kind || strcmp(f->name, g->name) != 0 || strcmp(f->flags, g->flags) != 0 || f->n_files != g->n_files) return false;
    for (int i = 0; i < f->n_files; i++)
        if (strcmp(f->files[i].name, g->files[i].name) != 0 || strcmp(f->files[i].blob.hash, g->files[i].blob.hash) != 0) return false;
    return same_list(f->n_argv, f->argv, g->n_argv, g->argv) && same_list(f->n_outputs, f->outputs, g->n_outputs, g->outputs);
}

/* The number of a function: of an equal one that is there already, so that a driver that runs again adds nothing. Ends the argument. */
static grv_status register_function(grv_batch *b, grvi_function *f, grv_status status, grv_batch_function *number)
{
    for (int i = 0; i < b->n_functions && status == GRV_OK; i++) {
        if (!same_function(f, &b->functions[i])) continue;
        *number = i;
        grvi_function_fini(f);
        return GRV_OK;
    }
    if (status == GRV_OK) {
        const int64_t begin = grvi_record_begin(&b->pending, GRVI_R_FUNCTION);
        *number = b->n_functions;
        grvi_put_function(&b->pending, b->n_functions, f);
        status = grvi_job_append(b, begin);
    }
    grvi_function_fini(f);
    return status;
}

static grv_status fill_code(grv_batch *b, grvi_function *f, const char *name, const char *flags, const char *const *paths, int n)
{
    GRV_CHECK(name != NULL && is_identifier(name), GRV_E_ARG, "the name of a C function expected, '%.80s' found", name != NULL ? name : "");
    GRV_CHECK(n >= 1 && n <= 1000, GRV_E_ARG, "function '%s': 1 to 1000 files expected, %d found", name, n);
    GRV_TRY(grvi_strdup(name, &f->name));
    GRV_TRY(grvi_strdup(flags, &f->flags));
    GRV_TRY(GRVI_CALLOC(&f->files, n));
    for (int i = 0; i < n; i++) GRV_TRY(add_file(b, f, paths[i]));
    return GRV_OK;
}

grv_status grv_batch_source(grv_batch *b, const char *name, const char *const *sources, int n, const char *flags, grv_batch_function *function)
{
    GRV_TRY(check_driver(b));
    grvi_function f = {.kind = GRVI_FUNCTION_SOURCE};
    const grv_status status = fill_code(b, &f, name, flags != NULL ? flags : "-O2 -march=native", sources, n);
    return register_function(b, &f, status, function);
}

grv_status grv_batch_object(grv_batch *b, const char *name, const char *path, grv_batch_function *function)
{
    GRV_TRY(check_driver(b));
    grvi_function f = {.kind = GRVI_FUNCTION_OBJECT};
    const grv_status status = fill_code(b, &f, name, "", &path, 1);
    return register_function(b, &f, status, function);
}

static grv_status fill_program(grvi_function *f, const char *const *argv, int n, const char *const *outputs, int n_outputs)
{
    GRV_CHECK(n >= 1 && argv[0] != NULL && argv[0][0] != '\0', GRV_E_ARG, "a program and its arguments expected");
    GRV_CHECK(n_outputs >= 0 && n_outputs <= GRV_BATCH_MAX_VALUES, GRV_E_ARG, "program '%.80s': 0 to %d output files expected, %d found", argv[0],
              GRV_BATCH_MAX_VALUES, n_outputs);
    GRV_TRY(grvi_strdup(argv[0], &f->name));
    GRV_TRY(grvi_strdup("", &f->flags));
    GRV_TRY(copy_list(argv, n, &f->n_argv, &f->argv));
    for (int i = 0; i < n_outputs; i++)
        GRV_CHECK(outputs[i][0] != '/' && grvi_kv_check_key(outputs[i]) == GRV_OK, GRV_E_ARG,
                  "output '%.80s': a path below the task's folder expected", outputs[i]);
    return copy_list(outputs, n_outputs, &f->n_outputs, &f->outputs);
}

grv_status grv_batch_program(grv_batch *b, const char *const *argv, int n, const char *const *outputs, int n_outputs, grv_batch_function *function)
{
    GRV_TRY(check_driver(b));
    grvi_function f = {.kind = GRVI_FUNCTION_PROGRAM};
    const grv_status status = fill_program(&f, argv, n, outputs, n_outputs);
    return register_function(b, &f, status, function);
}

grv_status grv_batch_broadcast(grv_batch *b, const grv_batch_value *value, grv_batch_value *shared)
{
    grvi_wire_value wire;
    char *owned = NULL, *kept = NULL;
    GRV_TRY(check_driver(b));
    GRV_CHECK(value->kind == GRV_BATCH_STRING || value->kind == GRV_BATCH_TENSOR || value->kind == GRV_BATCH_FILE, GRV_E_ARG,
              "broadcast: a string, a tensor or a file expected");
    grv_status status = grvi_value_pack(b->blobs, value, true, &wire, &owned);
    const char *const name = wire.kind == GRV_BATCH_FILE ? wire.text : "";
    if (status == GRV_OK) status = GRVI_ALLOC(&kept, GRVI_HASH_BYTES + (int64_t)strlen(name) + 1);
    if (status == GRV_OK) status = GRVI_REALLOC(&b->shared, b->n_shared + 1);
    if (status == GRV_OK) {
        memcpy(kept, wire.blob.hash, GRVI_HASH_BYTES);
        memcpy(kept + GRVI_HASH_BYTES, name, strlen(name) + 1);
        b->shared[b->n_shared++] = kept;
        *shared = *value;
        shared->kind = GRV_BATCH_SHARED;
        shared->i64 = (int64_t)value->kind;
        shared->text = kept;
        shared->data = kept + GRVI_HASH_BYTES;
        shared->n_bytes = wire.n_bytes;
        shared->owned = NULL;
        kept = NULL;
    }
    grv_free(kept);
    grv_free(owned);
    return status;
}

static grv_status put_packed(grv_batch *b, const grv_batch_value *value)
{
    grvi_wire_value wire;
    char *owned = NULL;
    if (value->kind == GRV_BATCH_FUTURE)
        GRV_CHECK(value->i64 >= 0 && value->i64 < b->n_tasks && value->output >= 0 && value->output < GRV_BATCH_MAX_VALUES, GRV_E_ARG,
                  "a result %d of task %lld is wanted, there are %lld tasks", value->output, (long long)value->i64, (long long)b->n_tasks);
    const grv_status status = grvi_value_pack(b->blobs, value, false, &wire, &owned);
    if (status == GRV_OK) grvi_put_value(&b->pending, &wire);
    grv_free(owned);
    return status;
}

/* One record of tasks from `from` on, as many as it holds; *n of them. After a failure the record is taken back. */
static grv_status put_submission(grv_batch *b, grv_batch_function function, int64_t from, int64_t most, const grv_batch_column *columns, int n_args,
                                 int64_t *n)
{
    grv_status status = GRV_OK;
    const int64_t begin = grvi_record_begin(&b->pending, GRVI_R_SUBMIT);
    grvi_put_f64(&b->pending, grvi_unix_time());
    grvi_put_i64(&b->pending, function);
    grvi_put_i64(&b->pending, b->n_tasks);
    const int64_t count_at = b->pending.n;
    grvi_put_i64(&b->pending, 0);
    grvi_put_i64(&b->pending, n_args);
    for (int a = 0; a < n_args; a++) grvi_put_i64(&b->pending, columns[a].varies);
    for (int a = 0; a < n_args; a++)
        if (!columns[a].varies) GRV_TRY_GOTO(put_packed(b, &columns[a].values[0]));
    for (*n = 0; *n < grvi_min_i64(most, GRVI_SUBMIT_MOST) && b->pending.n - begin < submit_bytes; (*n)++)
        for (int a = 0; a < n_args; a++)
            if (columns[a].varies) GRV_TRY_GOTO(put_packed(b, &columns[a].values[from + *n]));
    GRV_TRY_GOTO(grvi_text_status(&b->pending));
    memcpy(b->pending.data + count_at, n, sizeof *n);
    return grvi_job_append(b, begin);
done:
    b->pending.n = begin;
    return status;
}

grv_status grv_batch_map(grv_batch *b, grv_batch_function function, int64_t n_tasks, const grv_batch_column *columns, int n_args, int64_t *first)
{
    GRV_TRY(check_driver(b));
    GRV_CHECK(function >= 0 && function < b->n_functions, GRV_E_ARG, "function %d of %d", function, b->n_functions);
    GRV_CHECK(n_args >= 0 && n_args <= GRV_BATCH_MAX_VALUES, GRV_E_ARG, "0 to %d arguments expected, %d found", GRV_BATCH_MAX_VALUES, n_args);
    GRV_CHECK(n_tasks >= 0, GRV_E_ARG, "%lld tasks", (long long)n_tasks);
    *first = b->n_tasks;
    for (int64_t done = 0, n = 0; done < n_tasks; done += n)
        GRV_TRY(put_submission(b, function, done, n_tasks - done, columns, n_args, &n));
    return grvi_job_commit(b, false);
}

grv_status grv_batch_exec(grv_batch *b, grv_batch_function function, const grv_batch_value *args, int n_args, int64_t *task)
{
    grv_batch_column columns[GRV_BATCH_MAX_VALUES];
    for (int a = 0; a < n_args && a < GRV_BATCH_MAX_VALUES; a++) columns[a] = (grv_batch_column){.values = &args[a]};
    return grv_batch_map(b, function, 1, columns, n_args, task);
}

grv_status grv_batch_reduce(grv_batch *b, grv_batch_function function, int64_t first, int64_t n, int64_t *task)
{
    grv_status status = GRV_OK;
    int64_t *level = NULL;
    GRV_CHECK(n >= 1 && first >= 0 && first <= b->n_tasks - n, GRV_E_ARG, "reduce: tasks %lld to %lld of %lld", (long long)first,
              (long long)(first + n), (long long)b->n_tasks);
    GRV_TRY(GRVI_ALLOC(&level, n));
    for (int64_t i = 0; i < n; i++) level[i] = first + i;
    for (; n > 1; n = grvi_ceil_div(n, 2)) {
        for (int64_t i = 0; i + 1 < n; i += 2) {
            const grv_batch_value pair[] = {grv_batch_future(level[i], 0), grv_batch_future(level[i + 1], 0)};
            GRV_TRY_GOTO(grv_batch_exec(b, function, pair, 2, &level[i / 2]));
        }
        if (n % 2 == 1) level[n / 2] = level[n - 1];
    }
    *task = level[0];
done:
    grv_free(level);
    return status;
}

static grv_status put_task_record(grv_batch *b, int64_t kind, int64_t task)
{
    const int64_t begin = grvi_record_begin(&b->pending, kind);
    grvi_put_i64(&b->pending, task);
    if (kind == GRVI_R_RETRY) grvi_put_i64(&b->pending, b->tasks[task].attempt);
    return grvi_job_append(b, begin);
}

static grv_status check_task(const grv_batch *b, int64_t task)
{
    GRV_CHECK(task >= 0 && task < b->n_tasks, GRV_E_ARG, "task %lld: there are %lld, from 0 on", (long long)task, (long long)b->n_tasks);
    return GRV_OK;
}

grv_status grvi_job_tell_worker(grv_batch *b, int worker, int64_t kind, int64_t value)
{
    char *path = NULL;
    grvi_text record = {0};
    if (worker < 0 || worker >= b->n_workers || !b->workers[worker].is_alive) return GRV_OK;
    const int64_t begin = grvi_record_begin(&record, kind);
    grvi_put_i64(&record, value);
    grvi_record_end(&record, begin);
    grv_status status = grvi_text_status(&record);
    if (status == GRV_OK) status = grvi_job_path(b, "workers/%d/cancel", worker, &path);
    if (status == GRV_OK) status = grvi_fs_append(path, record.data, record.n);
    grv_free(path);
    grvi_text_fini(&record);
    return status;
}

grv_status grv_batch_cancel(grv_batch *b, int64_t task)
{
    GRV_TRY(check_driver(b));
    if (task >= 0) GRV_TRY(check_task(b, task));
    for (int64_t t = task < 0 ? 0 : task; t < (task < 0 ? b->n_tasks : task + 1); t++)
        if (b->tasks[t].state == GRV_BATCH_RUNNING) GRV_TRY(grvi_job_tell_worker(b, b->tasks[t].worker, GRVI_R_CANCEL, t));
    GRV_TRY(put_task_record(b, GRVI_R_CANCEL, task));
    return grvi_job_commit(b, true);
}

static bool is_retried(const grv_batch *b, int64_t task)
{
    return b->tasks[task].state == GRV_BATCH_FAILED || b->tasks[task].state == GRV_BATCH_CANCELLED;
}

/* A task and those whose missing results it needs, the needed ones first. */
static grv_status retry_with_needed(grv_batch *b, int64_t task, int64_t *n)
{
    grvi_wire_value args[GRV_BATCH_MAX_VALUES];
    int64_t needed[GRV_BATCH_MAX_VALUES];
    int n_args = 0, n_needed = 0;
    if (!is_retried(b, task)) return GRV_OK;
    GRV_TRY(put_task_record(b, GRVI_R_RETRY, task));
    (*n)++;
    if (b->tasks[task].n_missing == 0) return GRV_OK;
    GRV_TRY(grvi_job_commit(b, false));
    GRV_TRY(grvi_table_arguments(b, task, args, &n_args));
    for (int a = 0; a < n_args; a++)
        if (args[a].kind == GRV_BATCH_FUTURE) needed[n_needed++] = args[a].i64;
    for (int i = 0; i < n_needed; i++) GRV_TRY(retry_with_needed(b, needed[i], n));
    return GRV_OK;
}

grv_status grv_batch_retry(grv_batch *b, int64_t task, int64_t *n)
{
    GRV_TRY(check_driver(b));
    *n = 0;
    if (task >= 0) {
        GRV_TRY(check_task(b, task));
        GRV_TRY(retry_with_needed(b, task, n));
    } else {
        for (int64_t t = 0; t < b->n_tasks; t++) {
            if (!is_retried(b, t)) continue;
            GRV_TRY(put_task_record(b, GRVI_R_RETRY, t));
            (*n)++;
        }
    }
    return grvi_job_commit(b, true);
}

/* ---- what is read out ---- */

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
    GRV_TRY(check_task(b, task));
    const grvi_task *const t = &b->tasks[task];
    const grvi_submission *const s = &b->submissions[t->submission];
    *info = (grv_batch_task){.task = task, .function = b->functions[s->function].name, .state = (grv_batch_state)t->state, .attempts = t->begun + (t->state == GRV_BATCH_RUNNING),
                             .worker = t->worker, .submitted_s = s->time};
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
    GRV_TRY(check_task(b, task));
    if (b->is_driver) GRV_TRY(grvi_job_commit(b, false)); /* it is read out of the journal */
    GRV_TRY(grvi_table_arguments(b, task, args, &n_args));
    GRV_CHECK(argument >= 0 && argument < n_args, GRV_E_ARG, "argument %d of task %lld: it has %d, from 0 on", argument, (long long)task, n_args);
    return grvi_value_unpack(b->blobs, &args[argument], value);
}

static int64_t n_ended(const grv_batch *b)
{
    return b->n_state[GRV_BATCH_DONE] + b->n_state[GRV_BATCH_FAILED] + b->n_state[GRV_BATCH_CANCELLED];
}

/* One round, and a pause if nothing happened. */
static grv_status drive_or_pause(grv_batch *b, double most_s)
{
    bool progressed = false;
    GRV_CHECK(!b->stop, GRV_E_INTERRUPTED, "the job in %s goes on when it is opened again", b->folder);
    GRV_TRY(grvi_drive(b, &progressed));
    if (progressed) return GRV_OK;
    GRV_TRY(grvi_job_commit(b, true));
    grvi_watch_wait(b->watch, fmin(most_s, commit_s));
    return GRV_OK;
}

grv_status grv_batch_fetch(grv_batch *b, int64_t task, int output, grv_batch_value *value)
{
    *value = (grv_batch_value){.kind = GRV_BATCH_NONE};
    GRV_TRY(check_task(b, task));
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
        GRV_TRY(drive_or_pause(b, commit_s));
    }
    if (b->is_driver) GRV_TRY(grvi_job_commit(b, false));
    return unpack_result(b, task, output, value);
}

grv_status grv_batch_wait(grv_batch *b, double timeout_s)
{
    const double begin = grv_clock_seconds();
    grv_status status = check_driver(b);
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
        GRV_TRY(check_driver(b));
        GRV_TRY(drive_or_pause(b, commit_s));
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
    GRV_TRY(check_task(b, task));
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
