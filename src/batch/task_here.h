/* A function of a task for a process that is no worker: what runs it defines the calls of grove/task.h. Internal. */
#ifndef GRVI_BATCH_TASK_HERE_H
#define GRVI_BATCH_TASK_HERE_H

#include "core/check.h"

struct grv_task; /* grove/task.h */

/* Compiles C sources (or takes the one .so) and loads the function, as a worker does: the result is kept in the user's cache, where workers find it, too.
 * Stays loaded while the process lives.
 * name: of the function; paths: [n]; flags: for the compiler, separated by blanks
 * GRV_E_NOT_FOUND: no such file; GRV_E_ARG: a wrong name, sources that do not compile, with the compiler's words, or that do not hold the function */
grv_status grvi_task_here_load(const char *name, const char *const *paths, int n, const char *flags,
                               void (**call)(struct grv_task *)) GRV_MUST_CHECK;

#endif
