/* A worker's process that takes the place of one that was killed: the mailbox tells how far that came. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "batch/worker_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

/* What the process before told last. Half a record at the end of what it told is cut off. */
static grv_status read_last(const grvi_worker *w, grvi_outcome_record *last)
{
    grvi_record_reader reader;
    grvi_fields fields;
    int64_t kind = 0, offset = 0;
    grv_status status = GRV_OK;
    const int fd = dup(w->outbox);
    *last = (grvi_outcome_record){.task = -1};
    GRV_CHECK(fd >= 0, GRV_E_IO, "dup: %s", strerror(errno));
    grvi_record_reader_init(&reader, fd, 0);
    while ((status = grvi_record_next(&reader, &kind, &fields, &offset)) == GRV_OK) {
        grvi_outcome_record r;
        if (kind == GRVI_R_OUTCOME && grvi_get_outcome(&fields, &r)) *last = r;
    }
    if (status == GRV_AGAIN && ftruncate(fd, reader.offset) == 0) status = GRV_OK;
    GRV_CHECK_GOTO(status != GRV_AGAIN, GRV_E_IO, "truncate the worker's outbox: %s",
                   strerror(errno));
done:
    grvi_record_reader_fini(&reader);
    return status;
}

/* The first task of the inbox behind the last whose outcome was told: `running`, its task -1 if there is none; and where to go on. */
static grv_status find_running(const grvi_worker *w, const grvi_outcome_record *last,
                               grvi_handed *running)
{
    grvi_record_reader reader;
    grvi_fields fields;
    int64_t kind = 0, offset = 0;
    bool is_behind = last->task < 0;
    char *path = NULL;
    grv_status status = grvi_worker_path(w->folder, w->number, "inbox", &path);
    const int fd = status == GRV_OK ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    grv_free(path);
    *running = (grvi_handed){.task = -1};
    if (fd < 0) return status; /* nothing was handed out */
    grvi_record_reader_init(&reader, fd, 0);
    while (running->task < 0 &&
           (status = grvi_record_next(&reader, &kind, &fields, &offset)) == GRV_OK) {
        if (kind != GRVI_R_TASK) continue;
        const int64_t task = grvi_get_i64(&fields), attempt = grvi_get_i64(&fields);
        if (is_behind) *running = (grvi_handed){task, attempt};
        is_behind = is_behind || (task == last->task && attempt == last->attempt);
        if (is_behind) atomic_store(&w->page->inbox_offset, reader.offset);
    }
    grvi_record_reader_fini(&reader);
    return status == GRV_AGAIN ? GRV_OK : status;
}

static grv_status remove_scratch(const grvi_worker *w)
{
    char *path = NULL;
    grv_status status = grvi_worker_path(w->folder, w->number, "scratch", &path);
    if (status == GRV_OK) status = grvi_fs_remove_tree(path);
    grv_free(path);
    return status;
}

grv_status grvi_worker_resume(grvi_worker *w, const char *before)
{
    char reason[256];
    grvi_outcome_record last;
    grvi_handed running;
    GRV_TRY(read_last(w, &last));
    GRV_TRY(find_running(w, &last, &running));
    GRV_TRY(remove_scratch(w));
    if (running.task < 0) return GRV_OK;
    const double now = grvi_unix_time();
    (void)snprintf(reason, sizeof reason, "its worker %d was killed (%s)", w->number, before);
    const grvi_outcome_record r = {.task = running.task,
                                   .attempt = running.attempt,
                                   .worker = w->number,
                                   .outcome = GRVI_OUTCOME_CRASHED,
                                   .start = now,
                                   .end = now,
                                   .log_begin = last.log_end,
                                   .log_end = lseek(w->output, 0, SEEK_END),
                                   .reason = reason};
    return grvi_worker_tell(w, &r, NULL, 0);
}
