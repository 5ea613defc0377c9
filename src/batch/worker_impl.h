/* Inside of a worker. Internal to src/batch.
 * Two processes: a supervisor, which loads nothing of the user's, and its child, the runner, which reads the inbox and runs the tasks. The runner tells
 * how tasks end; when it dies instead, the supervisor tells, and forks another that goes on behind that task. What both
 * know is a page of shared memory. */
#ifndef GRVI_BATCH_WORKER_IMPL_H
#define GRVI_BATCH_WORKER_IMPL_H

#include <stdatomic.h>

#include "batch/batch_impl.h"
#include "batch/memory_group.h"

/* Why a runner ended on its own. */
enum { GRVI_EXIT_IDLE = 40, GRVI_EXIT_FRESH = 41, GRVI_EXIT_BROKEN = 42 };

/* The shared page: written by the runner, read by the supervisor. A task that writes into it by mistake can spoil its own worker only. */
typedef struct grvi_shared_page {
    _Atomic int64_t inbox_offset; /* of the next record to read */
    _Atomic int64_t task, attempt; /* running; task -1: none */
    _Atomic int64_t log_begin;
    _Atomic bool in_group;        /* the kernel keeps the memory limit */
    _Atomic int64_t memory_kills; /* as last looked at */
    _Atomic int64_t program;      /* process group of a running program, 0: none */
    _Atomic double start;         /* Unix time */
    _Atomic int has_to_go;        /* the supervisor got SIGTERM: 1, and told so: 2 */
} grvi_shared_page;

typedef struct grvi_worker {
    const char *folder;
    int number;
    double end_s; /* Unix time when its place ends; 0: nobody says */
    grvi_worker_settings settings;
    int outbox, output; /* descriptors, for appending */
    grvi_kv *blobs;
    grvi_shared_page *page;
    grvi_memory_group memory; /* without path: memory is watched */
} grvi_worker;

/* ---- resume.c ---- */

/* Takes the place of a process of this worker that was killed: the task that it ran has crashed, and the runner begins behind that.
 * before: how it ended. */
grv_status grvi_worker_resume(grvi_worker *worker, const char *before) GRV_MUST_CHECK;

/* Has the kernel killed anything of the running task for its memory? */
bool grvi_worker_was_over_memory(const grvi_worker *worker);
/* The runner: reads the inbox from page->inbox_offset on; returns an exit code. */
int grvi_run_tasks(grvi_worker *worker);
grv_status grvi_worker_tell(const grvi_worker *worker, const grvi_outcome_record *record, const void *values, int64_t n_bytes) GRV_MUST_CHECK;

struct grv_task; /* grove/task.h */

/* ---- task_code.c ---- */

/* The function of a source or an object, compiled and loaded. */
grv_status grvi_task_code_load(grvi_worker *worker, const grvi_function *function, void (**call)(struct grv_task *)) GRV_MUST_CHECK;

/* ---- task_program.c ---- */

/* Runs a program task. Results are appended to `values`. */
grv_status grvi_task_program_run(grvi_worker *worker, const grvi_function *function, int64_t task, int64_t attempt, const grvi_wire_value *args,
                                 int n_args, grvi_text *values, int64_t *n_values) GRV_MUST_CHECK;
/* Runs argv[0] (found on PATH) in a folder, its output appended to the descriptor; *exit_code as of wait(2). Its process group is noted in the page. */
grv_status grvi_spawn_and_wait(grvi_worker *worker, char *const *argv, const char *folder, int output, int *exit_code) GRV_MUST_CHECK;

/* Reads an argument's content: in the record, or out of the blobs (a few are kept). */
grv_status grvi_argument_content(grvi_worker *worker, const grvi_wire_value *value, const void **data) GRV_MUST_CHECK;

#endif
