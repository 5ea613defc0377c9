/* Waiting for files to change: inotify, and a time-out for changes that it does not see (network file systems). Internal. */
#ifndef GRVI_BATCH_WATCH_H
#define GRVI_BATCH_WATCH_H

#include "core/check.h"

typedef struct grvi_watch grvi_watch;

grv_status grvi_watch_create(grvi_watch **watch) GRV_MUST_CHECK;
void grvi_watch_destroy(grvi_watch **watch);
/* From now on changes of this file wake. Where the system has no watch left, only the time-out does. */
void grvi_watch_add(grvi_watch *watch, const char *path);
/* Returns after a change, a signal, or timeout_s seconds. */
void grvi_watch_wait(grvi_watch *watch, double timeout_s);
/* Sleeps for seconds, whatever happens. */
void grvi_sleep(double seconds);

#endif
