/** @file batch.h
 * The batch engine: a function or a program, run many times by workers that nobody has to manage.
 *
 * A *job* is a folder. It holds an append-only journal (the functions, the tasks, their results), the content-addressed blobs
 * that tasks share, and a mailbox per worker. The program that opens the folder is its *driver*; at most one drives a job at a
 * time, but it may end or be killed at any moment: the next one that opens the folder goes on where it was. Workers are
 * processes that read tasks from their mailbox, run them one at a time, and leave by themselves when there is nothing to do.
 *
 *     grv_batch *batch;
 *     grv_batch_function area;
 *     grv_batch_value radius[100], answer;
 *     int64_t first;
 *     grv_batch_open("runs/areas", NULL, &batch);
 *     grv_batch_source(batch, "area", (const char *const[]){"area.c"}, 1, NULL, &area);
 *     for (int i = 0; i < 100; i++) radius[i] = grv_batch_f64(0.1 * i);
 *     grv_batch_map(batch, area, 100, &(grv_batch_column){radius, true}, 1, &first);
 *     grv_batch_wait(batch, HUGE_VAL);
 *     grv_batch_fetch(batch, first + 7, 0, &answer);
 *
 * with area.c:
 *
 *     #include <grove/task.h>
 *     GRV_TASK(area) { const double r = grv_task_f64(task, 0); grv_task_return_f64(task, 3.14159265358979 * r * r); }
 *
 * A job makes progress while its driver is inside grv_batch_wait, _fetch, _next or _poll; what workers were given they go on with
 * meanwhile. Not thread-safe: one thread uses a grv_batch at a time. Nothing here is collective.
 */
#ifndef GROVE_BATCH_H
#define GROVE_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/log.h"
#include "grove/status.h"
#include "grove/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most arguments, and most results, of a task. */
#define GRV_BATCH_MAX_VALUES 16
/** Most axes of a tensor value. */
#define GRV_BATCH_MAX_RANK 8

/** An open job. */
typedef struct grv_batch grv_batch;
/** A function of a job: an index. */
typedef int grv_batch_function;

/** How workers are had from Slurm: in allocations that each run many tasks. The job's folder must be seen from all nodes by the same path. */
typedef struct grv_batch_slurm {
    const char *partition;      /**< NULL: the site's default. Copied */
    const char *account;        /**< NULL: the user's default. Copied */
    double allocation_s;        /**< time limit of an allocation; tasks that cannot end in what is left of it are not started there */
    int max_allocations;        /**< at once, queued ones included */
    int max_queued;             /**< of these, how many may be queued */
    int workers_per_allocation; /**< tasks at once in an allocation */
    int nodes_per_allocation;   /**< that its workers are spread over */
    double submit_interval_s;   /**< between two calls of sbatch, at least */
    double poll_interval_s;     /**< between two calls of squeue */
    const char *const *sbatch_args; /**< [n_sbatch_args] further arguments of sbatch, such as "--qos=short". Copied */
    int n_sbatch_args;          /**< number of further arguments */
} grv_batch_slurm;

/** What runs the tasks, and within which limits. Start from grv_batch_params_default. */
typedef struct grv_batch_params {
    const char *executor; /**< "local": processes of this machine; "slurm"; NULL: what the job had last. Copied */
    int n_workers;        /**< tasks that run at once; 0: cores of this process / cores_per_task, or what the allocations hold */
    int cores_per_task;   /**< cores that a worker is pinned to; 0: not pinned, one core each is counted */
    int64_t memory_per_task; /**< bytes that a task may hold; 0: no limit */
    double time_limit_s;  /**< of a task; 0: none */
    int max_attempts;     /**< runs of a task before it counts as failed, at least 1 */
    double idle_s;        /**< a worker without work leaves after so long */
    double price_per_hour; /**< of a worker, for the statistics */
    const char *worker_program; /**< the program `grove` for the workers; NULL: the variable GROVE_PROGRAM, this program if it is grove, beside it, or on PATH. Copied */
    int nodes_per_task;   /**< of a program started by srun over so many nodes, Slurm only; 0: a task has a part of one node */
    int ranks_per_task;   /**< MPI ranks of such a program, each with cores_per_task cores; 0: one a node */
    grv_batch_slurm slurm; /**< for "slurm" */
    grv_log *log;         /**< messages; borrowed, may be NULL */
} grv_batch_params;

/** Local, one core a task, no limits, 3 attempts, leaving after 10 s. Slurm: allocations of one worker for an hour, 8 at once and 2 of them
 * queued, sbatch every 0.3 s and squeue every 5 s at most. */
GRV_API grv_batch_params grv_batch_params_default(void);

/** Opens the job in a folder as its driver; makes the folder (readable by its owner only) if it is absent. Takes in what workers
 * have finished since the last driver left.
 * @param params  NULL for the defaults
 * @param batch  on success; close with grv_batch_close
 * @errors GRV_E_EXISTS if another driver has it open, GRV_E_FORMAT if the folder holds something else or the journal is damaged, GRV_E_UNSUPPORTED a job of
 * another version, GRV_E_IO */
GRV_API grv_status grv_batch_open(const char *folder, const grv_batch_params *params, grv_batch **batch) GRV_MUST_CHECK;

/** Opens a job to look at it only (status, results, logs), also beside its driver. Calls that change it fail with GRV_E_ARG.
 * @errors GRV_E_NOT_FOUND, GRV_E_FORMAT, GRV_E_IO */
GRV_API grv_status grv_batch_look(const char *folder, grv_batch **batch) GRV_MUST_CHECK;

/** Closes the job. Workers finish what they were given and leave; their results are taken in by the next grv_batch_open. NULL is allowed. */
GRV_API void grv_batch_close(grv_batch **batch);

/** Kinds of values. */
typedef enum grv_batch_kind {
    GRV_BATCH_NONE,
    GRV_BATCH_I64,
    GRV_BATCH_F64,
    GRV_BATCH_STRING,
    GRV_BATCH_TENSOR,
    GRV_BATCH_FILE,   /**< a file by its content and name */
    GRV_BATCH_FUTURE, /**< a result of another task, which need not exist yet */
    GRV_BATCH_SHARED  /**< a value that grv_batch_broadcast stored once */
} grv_batch_kind;

/** An argument or a result. Made by the functions below; what they point to is borrowed until the call that takes the value returns.
 * Values that grv_batch_fetch hands out own their memory: free with grv_batch_value_fini. */
typedef struct grv_batch_value {
    grv_batch_kind kind;
    int64_t i64;         /**< GRV_BATCH_I64; the task of a GRV_BATCH_FUTURE */
    double f64;          /**< GRV_BATCH_F64 */
    const char *text;    /**< GRV_BATCH_STRING; of a GRV_BATCH_FILE: its path as an argument, its name as a result */
    const void *data;    /**< GRV_BATCH_TENSOR: elements, dense, last axis fastest; GRV_BATCH_FILE as a result: content */
    int64_t n_bytes;     /**< of data */
    grv_store_type type; /**< GRV_BATCH_TENSOR: of the elements */
    int rank;            /**< GRV_BATCH_TENSOR: 0 to GRV_BATCH_MAX_RANK */
    int64_t shape[GRV_BATCH_MAX_RANK]; /**< GRV_BATCH_TENSOR */
    int output;          /**< GRV_BATCH_FUTURE: which result */
    void *owned;         /**< of fetched values */
} grv_batch_value;

/** A whole number. */
static inline grv_batch_value grv_batch_i64(int64_t x)
{
    grv_batch_value v = {GRV_BATCH_I64, 0, 0, 0, 0, 0, GRV_STORE_BOOL, 0, {0}, 0, 0};
    v.i64 = x;
    return v;
}
/** A real number. */
static inline grv_batch_value grv_batch_f64(double x)
{
    grv_batch_value v = {GRV_BATCH_F64, 0, 0, 0, 0, 0, GRV_STORE_BOOL, 0, {0}, 0, 0};
    v.f64 = x;
    return v;
}
/** A text. */
static inline grv_batch_value grv_batch_string(const char *text)
{
    grv_batch_value v = {GRV_BATCH_STRING, 0, 0, 0, 0, 0, GRV_STORE_BOOL, 0, {0}, 0, 0};
    v.text = text;
    return v;
}
/** A file of this machine; its content travels. */
static inline grv_batch_value grv_batch_file(const char *path)
{
    grv_batch_value v = {GRV_BATCH_FILE, 0, 0, 0, 0, 0, GRV_STORE_BOOL, 0, {0}, 0, 0};
    v.text = path;
    return v;
}
/** Result number `output` of a task of the same job: the new task waits for it; if that task fails for good, so does the new one. */
static inline grv_batch_value grv_batch_future(int64_t task, int output)
{
    grv_batch_value v = {GRV_BATCH_FUTURE, 0, 0, 0, 0, 0, GRV_STORE_BOOL, 0, {0}, 0, 0};
    v.i64 = task;
    v.output = output;
    return v;
}
/** A dense tensor. @param shape  [rank] */
GRV_API grv_batch_value grv_batch_tensor(grv_store_type type, int rank, const int64_t *shape, const void *data);
/** Frees what a fetched value owns. */
GRV_API void grv_batch_value_fini(grv_batch_value *value);

/** A C function in source files: each worker compiles them once for its own processor with its system's compiler, and keeps the result.
 * @param name  of the function, as in GRV_TASK(name)
 * @param sources  [n] paths of .c files, and of headers that they include by name; stored by content
 * @param flags  for the compiler, separated by blanks, such as "-O3 -lfftw3"; NULL: "-O2 -march=native"
 * @errors GRV_E_NOT_FOUND, GRV_E_ARG for a name that is no C identifier, GRV_E_IO */
GRV_API grv_status grv_batch_source(grv_batch *batch, const char *name, const char *const *sources, int n, const char *flags,
                                    grv_batch_function *function) GRV_MUST_CHECK;

/** A function in a shared object that was built before, for the same kind of machine as the workers'. */
GRV_API grv_status grv_batch_object(grv_batch *batch, const char *name, const char *path, grv_batch_function *function) GRV_MUST_CHECK;

/** A program, run in an empty folder of its own, without a shell. Its arguments may contain {0}, {1}, ...: the task's arguments as text; a file
 * argument stands for the path of a copy in that folder. Results: the exit must be 0, then the output files become values in
 * the order given; a missing one fails the task. What it prints goes to the task's log.
 * @param argv  [n] program and arguments; the program is looked for on the worker's PATH. With nodes_per_task, the words of srun come first, or where an
 *        argument is "{srun}", for a program that starts the ranks itself
 * @param outputs  [n_outputs] paths relative to that folder; {0} ... as above */
GRV_API grv_status grv_batch_program(grv_batch *batch, const char *const *argv, int n, const char *const *outputs, int n_outputs,
                                     grv_batch_function *function) GRV_MUST_CHECK;

/** Stores a large value once, by content, for use in any number of tasks; the workers of a machine share one copy in memory.
 * @param shared  written; needs no release */
GRV_API grv_status grv_batch_broadcast(grv_batch *batch, const grv_batch_value *value, grv_batch_value *shared) GRV_MUST_CHECK;

/** One call of a function. @param args  [n_args] @param task  its number, written */
GRV_API grv_status grv_batch_exec(grv_batch *batch, grv_batch_function function, const grv_batch_value *args, int n_args,
                                  int64_t *task) GRV_MUST_CHECK;

/** One argument of many tasks. */
typedef struct grv_batch_column {
    const grv_batch_value *values; /**< [n_tasks], or one value for all */
    bool varies;                   /**< one value per task */
} grv_batch_column;

/** One call per element; all of them are in the job, or none after an error or if the driver is killed meanwhile. @param columns  [n_args] @param first  number of the first task; the others follow */
GRV_API grv_status grv_batch_map(grv_batch *batch, grv_batch_function function, int64_t n_tasks, const grv_batch_column *columns,
                                 int n_args, int64_t *first) GRV_MUST_CHECK;

/** Reduces result 0 of n tasks first, first + 1, ... on the workers, in a tree of pairs of neighbours: function(a, b) gives one result of
 * the same kind; the tree depends on n only. @param task  the last one, whose result 0 is the reduction */
GRV_API grv_status grv_batch_reduce(grv_batch *batch, grv_batch_function function, int64_t first, int64_t n, int64_t *task) GRV_MUST_CHECK;

/** States of a task. */
typedef enum grv_batch_state {
    GRV_BATCH_WAITING,  /**< for results of other tasks */
    GRV_BATCH_READY,    /**< for a worker */
    GRV_BATCH_RUNNING,  /**< with a worker: running, or next in its mailbox */
    GRV_BATCH_DONE,
    GRV_BATCH_FAILED,   /**< for good, see grv_batch_task.reason */
    GRV_BATCH_CANCELLED,
    GRV_BATCH_N_STATES
} grv_batch_state;
/** "waiting", "ready", ... A constant. */
GRV_API const char *grv_batch_state_name(grv_batch_state state);

/** Drives the job until every task has ended, or for timeout_s seconds.
 * @return GRV_OK; GRV_AGAIN after the timeout; GRV_E_INTERRUPTED once grv_batch_stop was called; GRV_E_IO, GRV_E_NOMEM.
 * Failed tasks are no error here: see grv_batch_counts_get. */
GRV_API grv_status grv_batch_wait(grv_batch *batch, double timeout_s) GRV_MUST_CHECK;
/** Makes the calls that drive the job return GRV_E_INTERRUPTED soon. The only call that another thread or a signal handler may make. */
GRV_API void grv_batch_stop(grv_batch *batch);

/** Waits for a task and hands out one of its results, as often as asked.
 * @errors GRV_E_ARG no such task or result; GRV_E_NOT_FOUND naming reason and log of a task that failed or was cancelled; as grv_batch_wait */
GRV_API grv_status grv_batch_fetch(grv_batch *batch, int64_t task, int output, grv_batch_value *value) GRV_MUST_CHECK;

/** The next task that has ended and was not handed out by this call before, in order of completion, waiting for it.
 * @return GRV_END when all tasks have been handed out */
GRV_API grv_status grv_batch_next(grv_batch *batch, int64_t *task) GRV_MUST_CHECK;

/** Cancels a task that has not ended; tasks that need its results are cancelled with it. A running one is killed.
 * @param task  -1: all */
GRV_API grv_status grv_batch_cancel(grv_batch *batch, int64_t task) GRV_MUST_CHECK;
/** Gives failed and cancelled tasks their attempts back. @param task  -1: all of them @param n  number of tasks, written */
GRV_API grv_status grv_batch_retry(grv_batch *batch, int64_t task, int64_t *n) GRV_MUST_CHECK;

/** Cancels or retries as the two calls above, also while another program drives the job: then its driver is asked, and does it within a second.
 * @param retry  false: cancel
 * @param task  -1: all
 * @param n  tasks changed, or -1 if a driver was asked; NULL is allowed
 * @errors GRV_E_NOT_FOUND, GRV_E_ARG no such task, GRV_E_IO */
GRV_API grv_status grv_batch_ask(const char *folder, bool retry, int64_t task, int64_t *n) GRV_MUST_CHECK;

/** Numbers over all tasks. */
typedef struct grv_batch_counts {
    int64_t n_tasks;                 /**< in all */
    int64_t n[GRV_BATCH_N_STATES]; /**< by state */
    int n_workers;                 /**< alive now, or queued */
    double busy_s;                 /**< seconds of all ended attempts together */
    double first_start_s, last_end_s; /**< clock time (Unix) of the first start and the last end; 0: none */
    double cost;                   /**< worker hours so far, without those in a queue, times price_per_hour */
} grv_batch_counts;
/** The counts now, without driving the job. */
GRV_API grv_batch_counts grv_batch_counts_get(const grv_batch *batch);
/** "3 ready, 2 running, 95 done": the states that any task is in. @param text  [size] written; cut if it is longer */
GRV_API void grv_batch_counts_text(const grv_batch_counts *counts, char *text, int64_t size);
/** Shows the job as progress: these counts, the cost where there is one, the time left by the tasks that have ended since the step began.
 * @param progress  of a step of all of the job's tasks */
GRV_API void grv_batch_show(const grv_batch *batch, grv_progress *progress);

/** A task. Strings are borrowed until the next call on the job. */
typedef struct grv_batch_task {
    int64_t task;         /**< its number */
    const char *function; /**< name of its function or program */
    grv_batch_state state;
    int attempts;       /**< begun so far */
    int worker;         /**< of the last attempt, or -1 */
    const char *node;   /**< name of the machine which that worker runs on; "" until the driver heard it */
    double submitted_s; /**< Unix time */
    double started_s, ended_s; /**< of the last attempt that ended; 0: none */
    int64_t bytes;      /**< of its results */
    int n_results;      /**< 0 until it is done */
    const char *reason; /**< why it failed, or waits; "" otherwise */
} grv_batch_task;
/** State of one task. @errors GRV_E_ARG no such task */
GRV_API grv_status grv_batch_task_get(grv_batch *batch, int64_t task, grv_batch_task *info) GRV_MUST_CHECK;

/** An argument that a task was submitted with. @param value  free with grv_batch_value_fini @errors GRV_E_ARG no such task or argument */
GRV_API grv_status grv_batch_argument(grv_batch *batch, int64_t task, int argument, grv_batch_value *value) GRV_MUST_CHECK;

/** What a task's attempts printed, oldest first, each after a line that names it. @param text  owned by the caller, free with grv_free */
GRV_API grv_status grv_batch_log(grv_batch *batch, int64_t task, char **text) GRV_MUST_CHECK;

/** Deletes a job's folder. @errors GRV_E_EXISTS while a driver has it open; GRV_E_FORMAT if the folder is no job */
GRV_API grv_status grv_batch_clean(const char *folder) GRV_MUST_CHECK;

/** The process of a worker: what `grove batch worker FOLDER NUMBER [END [BEFORE]]` runs. Returns when the worker leaves. After SIGTERM it finishes the
 * task that runs, gives back the others and leaves.
 * @param end_s  Unix time when its place ends; 0: nobody says
 * @param before  how the process ended whose place it takes, under the same number: the task that this one ran has crashed; NULL: it is the first
 * @errors GRV_E_IO, GRV_E_FORMAT */
GRV_API grv_status grv_batch_worker(const char *folder, int number, double end_s, const char *before) GRV_MUST_CHECK;

/** The process that starts workers first, first + 1, ..., first + n - 1 on a node, as `grove batch worker`: what `grove batch node` runs. One that is
 * killed is started anew, unless it ends at once three times in a row: then it is noted how. SIGTERM is passed on. Returns when all have ended.
 * @errors GRV_E_ARG, GRV_E_NOMEM */
GRV_API grv_status grv_batch_node(const char *folder, int first, int n, double end_s) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
