/* Cancelling and retrying while another program drives the job: records in the file `requests`, which the driver takes away whole. */
#define _DEFAULT_SOURCE /* flock */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "batch/batch_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

/* Opens and locks the file that the path names now; *fd = -1 if it is absent and not to be made. */
static grv_status open_locked(const char *path, int flags, int *fd)
{
    for (;;) {
        struct stat opened, named;
        *fd = open(path, flags | O_CLOEXEC, 0600);
        if (*fd < 0 && errno == ENOENT) return GRV_OK;
        GRV_CHECK(*fd >= 0, GRV_E_IO, "open %s: %s", path, strerror(errno));
        if (flock(*fd, LOCK_EX) == 0 && fstat(*fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino) return GRV_OK;
        (void)close(*fd); /* it was taken away in between */
    }
}

static grv_status append_request(const char *path, bool retry, int64_t task)
{
    int fd = -1;
    grvi_text record = {0};
    const int64_t begin = grvi_record_begin(&record, retry ? GRVI_R_RETRY : GRVI_R_CANCEL);
    grvi_put_i64(&record, task);
    grvi_record_end(&record, begin);
    grv_status status = open_locked(path, O_WRONLY | O_CREAT | O_APPEND, &fd);
    if (status == GRV_OK) status = grvi_records_write(fd, path, &record);
    if (fd >= 0) (void)close(fd);
    grvi_text_fini(&record);
    return status;
}

static grv_status check_exists(const char *folder, int64_t task)
{
    grv_batch *b = NULL;
    GRV_TRY(grv_batch_look(folder, &b));
    const int64_t n = b->n_tasks;
    grv_batch_close(&b);
    GRV_CHECK(task >= -1 && task < n, GRV_E_ARG, "task %lld: there are %lld, from 0 on", (long long)task, (long long)n);
    return GRV_OK;
}

grv_status grv_batch_ask(const char *folder, bool retry, int64_t task, int64_t *n)
{
    grv_batch *b = NULL;
    char *path = NULL;
    int64_t n_changed = -1;
    GRV_TRY(check_exists(folder, task));
    grv_status status = grv_batch_open(folder, NULL, &b);
    if (status == GRV_E_EXISTS) { /* another program drives it */
        GRV_TRY(grvi_fs_join(folder, "requests", &path));
        status = append_request(path, retry, task);
        grv_free(path);
    } else if (status == GRV_OK) {
        const int64_t before = b->n_state[GRV_BATCH_CANCELLED];
        status = retry ? grv_batch_retry(b, task, &n_changed) : grv_batch_cancel(b, task);
        if (!retry) n_changed = b->n_state[GRV_BATCH_CANCELLED] - before;
    }
    grv_batch_close(&b);
    if (n != NULL) *n = n_changed;
    return status;
}

static grv_status do_requests(grv_batch *b, int fd)
{
    grvi_record_reader reader;
    grvi_fields fields;
    int64_t kind = 0, offset = 0, n = 0;
    grv_status status = GRV_OK;
    grvi_record_reader_init(&reader, fd, 0);
    while (status == GRV_OK && (status = grvi_record_next(&reader, &kind, &fields, &offset)) == GRV_OK) {
        const int64_t task = grvi_get_i64(&fields);
        if (fields.failed || task < -1 || task >= b->n_tasks) continue;
        if (kind == GRVI_R_CANCEL) status = grv_batch_cancel(b, task);
        else if (kind == GRVI_R_RETRY) status = grv_batch_retry(b, task, &n);
    }
    grvi_record_reader_fini(&reader);
    return status == GRV_AGAIN ? GRV_OK : status;
}

grv_status grvi_requests_take(grv_batch *b)
{
    char *path = NULL;
    int fd = -1;
    GRV_TRY(grvi_fs_join(b->folder, "requests", &path));
    grv_status status = GRV_OK;
    if (grvi_fs_exists(path)) status = open_locked(path, O_RDONLY, &fd);
    if (status == GRV_OK && fd >= 0) {
        /* done before the file goes: a driver that is killed in between does them twice, which changes nothing */
        const int kept = dup(fd);
        status = kept >= 0 ? do_requests(b, kept) : grvi_fail(GRV_E_IO, __FILE__, __LINE__, __func__, "dup: %s", strerror(errno));
        if (unlink(path) != 0 && status == GRV_OK) status = grvi_fail(GRV_E_IO, __FILE__, __LINE__, __func__, "remove %s: %s", path, strerror(errno));
        (void)close(fd);
    }
    grv_free(path);
    return status;
}
