/* What is put into a job: functions, tasks, cancellations, retries. */
#include <string.h>

#include "batch/batch_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

static bool is_identifier(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return name[0] != '\0' && strspn(name, letters) == strlen(name) && !(name[0] >= '0' && name[0] <= '9') && strlen(name) < 128;
}

static grv_status add_file(grvi_kv *blobs, grvi_function *f, const char *path)
{
    char *data = NULL;
    int64_t n = 0;
    GRV_TRY(grvi_fs_read(path, INT64_MAX / 2, &data, &n));
    grvi_named_blob *const file = &f->files[f->n_files];
    grv_status status = grvi_blob_put(blobs, data, n, &file->blob);
    if (status == GRV_OK) status = grvi_strdup(grvi_fs_base_name(path), &file->name);
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

grv_status grvi_function_read(grvi_kv *blobs, const char *name, const char *flags, const char *const *paths, int n, grvi_function *f)
{
    GRV_CHECK(name != NULL && is_identifier(name), GRV_E_ARG, "the name of a C function expected, '%.80s' found", name != NULL ? name : "");
    GRV_CHECK(n >= 1 && n <= 1000, GRV_E_ARG, "function '%s': 1 to 1000 files expected, %d found", name, n);
    GRV_TRY(grvi_strdup(name, &f->name));
    GRV_TRY(grvi_strdup(flags, &f->flags));
    GRV_TRY(GRVI_CALLOC(&f->files, n));
    for (int i = 0; i < n; i++) {
        GRV_CHECK(grvi_fs_base_name(paths[i])[0] != '-', GRV_E_ARG, "file '%s': a compiler takes this name for an option", paths[i]);
        GRV_TRY(add_file(blobs, f, paths[i]));
    }
    return GRV_OK;
}

grv_status grv_batch_source(grv_batch *b, const char *name, const char *const *sources, int n, const char *flags, grv_batch_function *function)
{
    GRV_TRY(grvi_job_check_driver(b));
    grvi_function f = {.kind = GRVI_FUNCTION_SOURCE};
    const grv_status status = grvi_function_read(b->blobs, name, flags != NULL ? flags : "-O2 -march=native", sources, n, &f);
    return register_function(b, &f, status, function);
}

grv_status grv_batch_object(grv_batch *b, const char *name, const char *path, grv_batch_function *function)
{
    GRV_TRY(grvi_job_check_driver(b));
    grvi_function f = {.kind = GRVI_FUNCTION_OBJECT};
    const grv_status status = grvi_function_read(b->blobs, name, "", &path, 1, &f);
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
    GRV_TRY(grvi_job_check_driver(b));
    grvi_function f = {.kind = GRVI_FUNCTION_PROGRAM};
    const grv_status status = fill_program(&f, argv, n, outputs, n_outputs);
    return register_function(b, &f, status, function);
}

grv_status grv_batch_broadcast(grv_batch *b, const grv_batch_value *value, grv_batch_value *shared)
{
    grvi_wire_value wire;
    char *owned = NULL, *kept = NULL;
    GRV_TRY(grvi_job_check_driver(b));
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

/* One record of the tasks from `from` on, of n_tasks, as many as it holds; *n of them. */
static grv_status put_submission(grv_batch *b, grv_batch_function function, int64_t from, int64_t n_tasks, const grv_batch_column *columns, int n_args,
                                 int64_t *n)
{
    const int64_t begin = grvi_record_begin(&b->pending, GRVI_R_SUBMIT), following_at = b->pending.n;
    grvi_put_i64(&b->pending, 0);
    grvi_put_f64(&b->pending, grvi_unix_time());
    grvi_put_i64(&b->pending, function);
    grvi_put_i64(&b->pending, b->n_tasks + from);
    const int64_t count_at = b->pending.n;
    grvi_put_i64(&b->pending, 0);
    grvi_put_i64(&b->pending, n_args);
    for (int a = 0; a < n_args; a++) grvi_put_i64(&b->pending, columns[a].varies);
    for (int a = 0; a < n_args; a++)
        if (!columns[a].varies) GRV_TRY(put_packed(b, &columns[a].values[0]));
    for (*n = 0; *n < grvi_min_i64(n_tasks - from, GRVI_SUBMIT_MOST) && b->pending.n - begin < GRVI_SUBMIT_BYTES; (*n)++)
        for (int a = 0; a < n_args; a++)
            if (columns[a].varies) GRV_TRY(put_packed(b, &columns[a].values[from + *n]));
    GRV_TRY(grvi_text_status(&b->pending));
    const int64_t following = n_tasks - from - *n;
    memcpy(b->pending.data + following_at, &following, sizeof following);
    memcpy(b->pending.data + count_at, n, sizeof *n);
    grvi_record_end(&b->pending, begin);
    return grvi_text_status(&b->pending);
}

grv_status grv_batch_map(grv_batch *b, grv_batch_function function, int64_t n_tasks, const grv_batch_column *columns, int n_args, int64_t *first)
{
    GRV_TRY(grvi_job_check_driver(b));
    GRV_CHECK(function >= 0 && function < b->n_functions, GRV_E_ARG, "function %d of %d", function, b->n_functions);
    GRV_CHECK(n_args >= 0 && n_args <= GRV_BATCH_MAX_VALUES, GRV_E_ARG, "0 to %d arguments expected, %d found", GRV_BATCH_MAX_VALUES, n_args);
    GRV_CHECK(n_tasks >= 0, GRV_E_ARG, "%lld tasks", (long long)n_tasks);
    const int64_t begin = b->pending.n;
    grv_status status = GRV_OK;
    *first = b->n_tasks;
    for (int64_t done = 0, n = 0; done < n_tasks && status == GRV_OK; done += n)
        status = put_submission(b, function, done, n_tasks, columns, n_args, &n);
    if (status != GRV_OK) { /* all or none */
        b->pending.n = begin;
        return status;
    }
    GRV_TRY(grvi_job_append_all(b, begin));
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
    GRV_TRY(grvi_job_check_driver(b));
    if (task >= 0) GRV_TRY(grvi_job_check_task(b, task));
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
    GRV_TRY(grvi_job_check_driver(b));
    *n = 0;
    if (task >= 0) {
        GRV_TRY(grvi_job_check_task(b, task));
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
