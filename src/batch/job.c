/* A job: its folder, its journal, who drives it. submit.c puts into it, results.c reads out of it, drive.c makes progress. */
#define _DEFAULT_SOURCE /* flock */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

enum { PENDING_KEPT = 4 << 20 /* bytes of the buffer: a large map makes it larger for once */ };

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
    if (b->pending.capacity > PENDING_KEPT) grvi_text_fini(&b->pending);
    if (b->uncommitted_since <= 0) b->uncommitted_since = grv_clock_seconds();
    return GRV_OK;
}

grv_status grvi_job_append_all(grv_batch *b, int64_t begin)
{
    GRV_TRY(grvi_text_status(&b->pending));
    for (int64_t at = begin; at < b->pending.n;) {
        const uint8_t *const record = (const uint8_t *)b->pending.data + at;
        uint32_t n = 0;
        memcpy(&n, record, sizeof n);
        grvi_fields fields = {record + GRVI_RECORD_HEAD, record + GRVI_RECORD_HEAD + n, false};
        const int64_t kind = grvi_get_i64(&fields);
        const grv_status status = grvi_table_apply(b, kind, &fields, b->journal_size + at);
        if (status != GRV_OK) { /* the index holds a part of it: it is no image of the journal any more */
            b->is_driver = false;
            return status;
        }
        at += GRVI_RECORD_HEAD + n;
    }
    return b->pending.n > GRVI_SUBMIT_BYTES ? flush(b) : GRV_OK;
}

grv_status grvi_job_append(grv_batch *b, int64_t begin)
{
    grvi_record_end(&b->pending, begin);
    return grvi_job_append_all(b, begin);
}

grv_status grvi_job_commit(grv_batch *b, bool now)
{
    GRV_TRY(flush(b));
    if (b->uncommitted_since <= 0 || (!now && grv_clock_seconds() - b->uncommitted_since < GRVI_COMMIT_S)) return GRV_OK;
    GRV_CHECK(fdatasync(b->journal) == 0, GRV_E_IO, "fdatasync %s/journal: %s", b->folder, strerror(errno));
    b->uncommitted_since = 0;
    return GRV_OK;
}

/* The record that every journal begins with. */
static void put_first(grvi_text *out)
{
    const int64_t begin = grvi_record_begin(out, GRVI_R_JOB);
    grvi_put_i64(out, GRVI_FORMAT_VERSION);
    grvi_record_end(out, begin);
}

/* A journal without one whole record: empty, or cut off in its first one, or the file of somebody else, which is not touched. */
static grv_status check_first(const grv_batch *b, int64_t size)
{
    char found[64];
    grvi_text first = {0};
    put_first(&first);
    const bool fits = grvi_text_status(&first) == GRV_OK && size < first.n && pread(b->journal, found, (size_t)size, 0) == size;
    const bool is_part = size == 0 || (fits && memcmp(found, first.data, (size_t)size) == 0);
    grvi_text_fini(&first);
    GRV_CHECK(is_part, GRV_E_FORMAT, "%s/journal is not the journal of a batch job", b->folder);
    return GRV_OK;
}

/* The records of one call from one offset up to another, which were passed over until all of them were known to be there. */
static grv_status apply_held(grv_batch *b, int64_t from, int64_t to)
{
    grvi_record_reader reader;
    grvi_fields fields;
    int64_t kind = 0, offset = 0;
    grv_status status = GRV_OK;
    const int fd = dup(b->journal);
    GRV_CHECK(fd >= 0, GRV_E_IO, "dup: %s", strerror(errno));
    grvi_record_reader_init(&reader, fd, from);
    while (reader.offset < to && status == GRV_OK) {
        status = grvi_record_next(&reader, &kind, &fields, &offset);
        if (status == GRV_OK) status = grvi_table_apply(b, kind, &fields, offset);
    }
    grvi_record_reader_fini(&reader);
    return status;
}

static grv_status replay(grv_batch *b)
{
    bool is_damaged = false;
    int64_t held = -1; /* where the records of a call begin whose last one has not come yet */
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
        grvi_fields ahead = fields;
        const bool is_more = kind == GRVI_R_SUBMIT && grvi_get_i64(&ahead) > 0;
        GRV_CHECK_GOTO(held < 0 || kind == GRVI_R_SUBMIT, GRV_E_FORMAT, "%s/journal: more tasks expected at byte %lld", b->folder, (long long)offset);
        if (is_more && held < 0) held = offset;
        if (is_more) continue;
        if (held >= 0) GRV_TRY_GOTO(apply_held(b, held, offset));
        held = -1;
        GRV_TRY_GOTO(grvi_table_apply(b, kind, &fields, offset));
    }
    if (status != GRV_AGAIN) goto done;
    b->journal_size = held >= 0 ? held : reader.offset;
    GRV_CHECK_GOTO(fstat(b->journal, &info) == 0, GRV_E_IO, "stat %s/journal: %s", b->folder, strerror(errno));
    status = GRV_OK;
    if (reader.offset == 0) GRV_TRY_GOTO(check_first(b, info.st_size));
    if (info.st_size == b->journal_size || !b->is_driver) goto done;
    GRV_TRY_GOTO(grvi_record_is_behind(b->journal, "the job's journal", reader.offset, &is_damaged));
    GRV_CHECK_GOTO(!is_damaged, GRV_E_FORMAT, "%s/journal: damaged at byte %lld, with whole records behind it; to go on without those: truncate -s %lld '%s/journal'",
                   b->folder, (long long)reader.offset, (long long)reader.offset, b->folder);
    /* a driver that was killed while it wrote leaves a part of a record, or of the tasks of one call, at the end, and nothing behind it */
    grv_log_message(b->params.log, GRV_LOG_WARN, "%s/journal: %lld bytes at its end are of a write that was cut off, and are dropped", b->folder,
                    (long long)(info.st_size - b->journal_size));
    GRV_CHECK_GOTO(ftruncate(b->journal, b->journal_size) == 0, GRV_E_IO, "truncate %s/journal: %s", b->folder, strerror(errno));
done:
    grvi_record_reader_fini(&reader);
    return status;
}

static grv_status begin_journal(grv_batch *b)
{
    if (b->journal_size > 0) return GRV_OK;
    put_first(&b->pending);
    GRV_TRY(grvi_job_append_all(b, 0));
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

/* A folder that holds no job yet must be empty, or `clean` would delete what somebody else has in it; and is private from now on. */
static grv_status take_folder(const char *folder)
{
    grv_status status = GRV_OK;
    DIR *const directory = opendir(folder);
    GRV_CHECK(directory != NULL, GRV_E_IO, "%s: %s", folder, strerror(errno));
    for (const struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        const char *const name = entry->d_name;
        const bool is_ours = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "lock") == 0;
        GRV_CHECK_GOTO(is_ours, GRV_E_FORMAT, "%s: a job or an empty folder expected, '%s' found in it", folder, name);
    }
    GRV_CHECK_GOTO(chmod(folder, 0700) == 0, GRV_E_IO, "chmod %s: %s", folder, strerror(errno));
done:
    (void)closedir(directory);
    return status;
}

static grv_status open_files(grv_batch *b)
{
    char *path = NULL;
    grv_status status = GRV_OK;
    if (b->is_driver) {
        GRV_CHECK(mkdir(b->folder, 0700) == 0 || errno == EEXIST || errno == ENOENT, GRV_E_IO, "make %s: %s", b->folder, strerror(errno));
        if (!grvi_fs_exists(b->folder)) GRV_TRY(grvi_fs_make_directory(b->folder));
    }
    GRV_TRY_GOTO(grvi_fs_join(b->folder, "journal", &path));
    if (b->is_driver && !grvi_fs_exists(path)) GRV_TRY_GOTO(take_folder(b->folder));
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

/* ---- for the files beside ---- */

grv_status grvi_job_check_driver(const grv_batch *b)
{
    GRV_CHECK(b->is_driver, GRV_E_ARG, "the job in %s was opened for looking only, or its journal could not be written", b->folder);
    return GRV_OK;
}

grv_status grvi_job_check_task(const grv_batch *b, int64_t task)
{
    GRV_CHECK(task >= 0 && task < b->n_tasks, GRV_E_ARG, "task %lld: there are %lld, from 0 on", (long long)task, (long long)b->n_tasks);
    return GRV_OK;
}
