/* Waiting for files to change. */
#include "batch/watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "grove/core.h"

struct grvi_watch {
    int fd; /* -1: inotify is not to be had */
};

grv_status grvi_watch_create(grvi_watch **watch)
{
    GRV_TRY(GRVI_CALLOC(watch, 1));
    (*watch)->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    return GRV_OK;
}

void grvi_watch_destroy(grvi_watch **watch)
{
    if (watch == NULL || *watch == NULL) return;
    if ((*watch)->fd >= 0) (void)close((*watch)->fd);
    grv_free(*watch);
    *watch = NULL;
}

void grvi_watch_add(grvi_watch *watch, const char *path)
{
    if (watch->fd >= 0) (void)inotify_add_watch(watch->fd, path, IN_MODIFY);
}

void grvi_watch_wait(grvi_watch *watch, double timeout_s)
{
    char events[4096];
    struct pollfd one = {.fd = watch->fd, .events = POLLIN};
    const int timeout_ms = timeout_s >= 1e6 ? 1000000000 : timeout_s <= 0 ? 0 : (int)(timeout_s * 1e3) + 1;
    if (poll(&one, watch->fd >= 0, timeout_ms) <= 0) return;
    while (read(watch->fd, events, sizeof events) > 0) {}
}

void grvi_sleep(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    (void)nanosleep(&time, NULL);
}
