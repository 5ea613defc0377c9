/* Inside of a job: what its driver knows. Internal to src/batch.
 *
 * The journal is the truth: the driver appends to it and replays it; memory holds an index. Kinds of records and their fields (wire.h): */
#ifndef GRVI_BATCH_IMPL_H
#define GRVI_BATCH_IMPL_H

#include "batch/blobs.h"
#include "batch/watch.h"

/* Records of the journal, and of mailboxes (J: journal, I: inbox, O: outbox). */
enum grvi_record_kind {
    GRVI_R_JOB = 1,  /* J: i64 version */
    GRVI_R_FUNCTION, /* J, I: i64 number, i64 kind, name, flags, i64 n_files {name, hash, i64 bytes}, i64 n_argv {text}, i64 n_outputs {text} */
    GRVI_R_SUBMIT,   /* J: i64 following (tasks of the same call in the next records), f64 time, i64 function, i64 first, i64 n, i64 n_args, n_args x i64 varies, values of the fixed ones, then per task of the others */
    GRVI_R_WORKER,   /* J: i64 worker, f64 time, handle of the executor */
    GRVI_R_OUTCOME,  /* J, O: i64 task, i64 attempt, i64 worker, i64 outcome, f64 start, f64 end, i64 log begin, i64 log end,
                      i64 is final, reason, i64 n, n values */
    GRVI_R_GONE,     /* J: i64 worker, f64 time */
    GRVI_R_CANCEL,   /* J, I: i64 task, -1 for all */
    GRVI_R_RETRY,    /* J: i64 task, i64 attempts begun */
    GRVI_R_TASK,     /* I: i64 task, i64 attempt, i64 how often it ran before, i64 function, i64 alone, i64 n_args, values */
    GRVI_R_RECALL,   /* in `cancel`: i64 bytes of the inbox whose tasks are given back, those that have begun excepted */
    GRVI_R_HELLO,    /* O: i64 process, f64 time, f64 when its place ends or 0, name of its node; J: i64 worker, the same from time on */
    GRVI_R_BYE,      /* O: nothing follows, whatever stands in the inbox */
    GRVI_R_LEAVE,    /* I: nothing more will come */
    GRVI_R_LEAVING   /* O: f64 time; it was told to go (SIGTERM) and takes no more tasks */
};

/* How an attempt ended. FAILED, CRASHED, TIMEOUT, MEMORY and LOST count against the task's attempts. */
typedef enum grvi_outcome {
    GRVI_OUTCOME_OK,
    GRVI_OUTCOME_FAILED,   /* the task says so */
    GRVI_OUTCOME_CRASHED,  /* its process ended */
    GRVI_OUTCOME_TIMEOUT,
    GRVI_OUTCOME_MEMORY,
    GRVI_OUTCOME_CANCELLED,
    GRVI_OUTCOME_LOST,     /* its worker vanished while it ran */
    GRVI_OUTCOME_REQUEUED, /* its worker vanished or left before it ran */
    GRVI_OUTCOME_RETURNED, /* given back by its worker: others have nothing to do, or the worker has to go */
    GRVI_OUTCOME_COUNT
} grvi_outcome;

typedef enum grvi_function_kind { GRVI_FUNCTION_SOURCE, GRVI_FUNCTION_OBJECT, GRVI_FUNCTION_PROGRAM } grvi_function_kind;

typedef struct grvi_named_blob {
    char *name;
    grvi_blob blob;
} grvi_named_blob;

typedef struct grvi_function {
    grvi_function_kind kind;
    char *name, *flags;
    int n_files, n_argv, n_outputs;
    grvi_named_blob *files; /* sources, or the object */
    char **argv, **outputs; /* of programs */
    double longest_s;       /* of its tasks that went well so far */
} grvi_function;

void grvi_put_function(grvi_text *out, int64_t number, const grvi_function *function);
/* An owned copy of the fields; GRV_E_FORMAT if they make no sense. */
grv_status grvi_get_function(grvi_fields *in, int64_t *number, grvi_function *function) GRV_MUST_CHECK;
void grvi_function_fini(grvi_function *function);

/* The fixed fields of an outcome; the values follow in `values`. */
typedef struct grvi_outcome_record {
    int64_t task, attempt, worker, log_begin, log_end, n_values;
    bool is_final; /* decided by the driver: no further attempt */
    grvi_outcome outcome;
    double start, end;
    grvi_fields values;
    const char *reason;
    int64_t bytes; /* of the values */
} grvi_outcome_record;

void grvi_put_outcome(grvi_text *out, const grvi_outcome_record *record, const void *values, int64_t n_values_bytes);
/* Checks all of it, values included: outcomes come from workers. */
bool grvi_get_outcome(grvi_fields *in, grvi_outcome_record *record);

typedef struct grvi_submission {
    double time;
    int function, n_args;
    int64_t first, n, offset; /* of the record in the journal */
} grvi_submission;

typedef struct grvi_task {
    int64_t args;    /* offset of its own arguments in the record of its submission */
    int64_t outcome; /* offset of the last outcome in the journal, -1: none */
    int32_t submission, first_edge; /* edge: the first task that waits for this one, -1: none */
    int32_t n_missing;              /* results that it waits for */
    int32_t worker;
    uint16_t attempt;  /* handed out so many times */
    uint8_t failures;  /* attempts that count */
    uint8_t begun;     /* attempts that ran, whatever came of them */
    uint8_t state;     /* grv_batch_state */
    bool alone;        /* crashed before: gets a fresh process */
} grvi_task;

/* "task waits for another", in the other's list */
typedef struct grvi_edge {
    int32_t task, next;
} grvi_edge;

/* What a worker needs to know about its place: the same while it lives, in its file `settings`. */
typedef struct grvi_worker_settings {
    int cores, nodes, ranks; /* nodes > 0: programs are started by srun, over so many */
    int64_t memory;
    double time_limit_s, idle_s;
} grvi_worker_settings;

typedef struct grvi_handed {
    int64_t task, attempt;
} grvi_handed;

typedef enum grvi_executor_kind { GRVI_EXECUTOR_LOCAL, GRVI_EXECUTOR_SLURM, GRVI_N_EXECUTORS } grvi_executor_kind;

typedef struct grvi_batch_worker {
    bool is_alive, said_hello, said_bye, is_adopted; /* adopted: started by an earlier driver */
    bool is_dismissed;        /* was told that nothing more will come */
    bool has_to_go;           /* takes no more tasks: whoever gave it its place wants that back */
    bool was_cut_short;       /* ... and before the time that was agreed: no fault of the task that runs */
    grvi_executor_kind executor;
    double end_s;             /* Unix time when its place ends; 0: nobody says */
    char *handle;             /* of the executor; NULL when gone */
    char *node;               /* name of the machine it runs on; NULL: it has not said so */
    double time_limit_s;      /* of a task, that it keeps; 0: none */
    int inbox;                /* descriptor, -1 when gone */
    grvi_record_reader outbox;
    int64_t outcomes_to_skip; /* after a restart: taken in by the driver before */
    grvi_handed *handed;      /* [first, end) of a ring of handed_capacity */
    int64_t first, end, handed_capacity;
    grvi_handed last;         /* whose outcome was taken last */
    int64_t log_end;          /* bytes of its output before the task that runs */
    uint8_t *has_function;    /* [n_functions then] */
    int n_has_function;
    double mean_s;            /* of its tasks, running mean; 0: unknown */
    int64_t inbox_bytes;      /* written by this driver and those before */
    double damaged_s;         /* clock since when what stands next in the outbox is no record; 0: all is well */
    double told_s;            /* clock when it last told an outcome, said hello, or was given the first task */
    bool is_recalled;
    double started_s;
} grvi_batch_worker;

typedef struct grvi_executor grvi_executor;
/* Where workers come from. Handles are short texts that mean the same to a later driver; a handle is in the journal before anything begins under it. */
typedef struct grvi_executor_class {
    const char *name;
    /* Workers begin when somebody else lets them: nothing is handed to one that has not said hello. */
    bool is_queued;
    /* How many of the wanted workers may be started now, together; 0: none, ask again later. */
    int (*room)(grvi_executor *executor, int wanted);
    /* Starts workers first .. first + n - 1, or notes that poll is to; their messages go to workers/<number>/worker.log. One handle for all of them. */
    grv_status (*start)(grvi_executor *executor, int first, int n, char **handle);
    /* What has to be done again and again; may be NULL. Fails if no worker can be had. */
    grv_status (*poll)(grvi_executor *executor);
    /* Is the worker still there, or will be? One that is gone tells why, as far as known. */
    bool (*is_alive)(grvi_executor *executor, const char *handle, int number, grvi_text *why);
    /* It said hello. May be NULL. */
    void (*has_begun)(grvi_executor *executor, const char *handle);
    /* Kills the worker; those that were started with it may go, too. */
    void (*kill)(grvi_executor *executor, const char *handle);
    /* No task is left: workers that have not begun are not wanted. May be NULL. */
    void (*release)(grvi_executor *executor);
    void (*destroy)(grvi_executor *executor);
} grvi_executor_class;
struct grvi_executor {
    const grvi_executor_class *class;
    double late_s; /* what a worker writes is seen by then, unless it hangs */
};
grv_status grvi_executor_local_create(const char *folder, const grv_batch_params *params, grvi_executor **executor) GRV_MUST_CHECK;
grv_status grvi_executor_slurm_create(const char *folder, const grv_batch_params *params, grvi_executor **executor) GRV_MUST_CHECK;

struct grv_batch {
    char *folder;
    grv_batch_params params;
    char *executor_name, *worker_program; /* the strings of params */
    bool is_driver;
    volatile int stop;
    int lock, journal;       /* descriptors */
    int64_t journal_size;
    grvi_text pending;       /* records not yet written */
    double uncommitted_since; /* of the oldest record that fsync has not covered; 0: none */
    grvi_text record;        /* of the journal, read again: the submission `cached` (-1: none) */
    int cached;
    grvi_text message;       /* texts that were handed out */
    grvi_kv *blobs;
    grvi_executor_kind executor;               /* of new workers */
    grvi_executor *executors[GRVI_N_EXECUTORS]; /* of all that are alive; NULL: not needed */
    grvi_watch *watch;
    int n_functions, n_submissions, n_workers, n_edges, edge_capacity, submission_capacity;
    grvi_function *functions;
    grvi_submission *submissions;
    int64_t n_tasks, task_capacity;
    grvi_task *tasks;
    grvi_edge *edges;
    grvi_batch_worker *workers;
    int32_t *ready;          /* ring of ready tasks */
    int64_t ready_first, ready_end, ready_capacity;
    int32_t *ended;          /* in order of completion */
    int64_t n_ended, ended_capacity, n_handed_out; /* by grv_batch_next */
    int64_t n_state[GRV_BATCH_N_STATES];
    double busy_s, first_start_s, last_end_s, worker_s;
    int first_alive;         /* no worker before this one lives */
    double looked_s;         /* when liveness was last looked at */
    int start_failures;      /* workers in a row that ended before they said anything */
    char **shared;           /* strings of broadcasts */
    int n_shared;
};

enum { GRVI_FORMAT_VERSION = 3, GRVI_SUBMIT_MOST = 4096 /* tasks of one record: they may take no bytes in it */ };

/* ---- table.c: the index of tasks ---- */

/* Replays one record of the journal at an offset into the index. */
grv_status grvi_table_apply(grv_batch *batch, int64_t kind, grvi_fields *fields, int64_t offset) GRV_MUST_CHECK;
/* Results that are there, or states, changed: queues what became ready. */
void grvi_table_set_state(grv_batch *batch, int64_t task, grv_batch_state state);
grv_status grvi_table_make_ready(grv_batch *batch, int64_t task) GRV_MUST_CHECK;
int64_t grvi_table_next_ready(grv_batch *batch); /* -1: none */
void grvi_table_take_ready(grv_batch *batch);    /* the next one leaves the queue */
/* Arguments of a task one after the other; each may be a future. */
grv_status grvi_table_arguments(grv_batch *batch, int64_t task, grvi_wire_value *args, int *n) GRV_MUST_CHECK;
/* The last outcome of a task, borrowed from batch->record. GRV_E_NOT_FOUND if it has none. */
grv_status grvi_table_outcome(grv_batch *batch, int64_t task, grvi_text *buffer, grvi_outcome_record *record) GRV_MUST_CHECK;

/* ---- job.c ---- */

/* a journal record of tasks is closed at this size */
#define GRVI_SUBMIT_BYTES ((int64_t)1 << 20)
/* seconds of results that a killed driver may have to take in again */
#define GRVI_COMMIT_S 0.05

/* May this one change the job? */
grv_status grvi_job_check_driver(const grv_batch *batch) GRV_MUST_CHECK;
/* Is there such a task? */
grv_status grvi_job_check_task(const grv_batch *batch, int64_t task) GRV_MUST_CHECK;

/* Appends the record that begins at `begin` of batch->pending to the journal and applies it; durable is made by grvi_job_commit. */
grv_status grvi_job_append(grv_batch *batch, int64_t begin) GRV_MUST_CHECK;
/* The same for all records from `begin` on, which have been ended. */
grv_status grvi_job_append_all(grv_batch *batch, int64_t begin) GRV_MUST_CHECK;
/* fsync, if anything is not covered yet and it is time (or now). */
grv_status grvi_job_commit(grv_batch *batch, bool now) GRV_MUST_CHECK;
/* Tells a worker at once: the inbox is read in order, so this has a file of its own, `cancel`. */
grv_status grvi_job_tell_worker(grv_batch *batch, int worker, int64_t kind, int64_t value) GRV_MUST_CHECK;
grv_status grvi_job_path(const grv_batch *batch, const char *format, int number, char **path) GRV_MUST_CHECK;
double grvi_unix_time(void);

/* ---- submit.c ---- */

/* Fills in name, flags and files of a C function, whose contents are put into the blobs. After an error grvi_function_fini is still to be called. */
grv_status grvi_function_read(grvi_kv *blobs, const char *name, const char *flags, const char *const *paths, int n, grvi_function *function) GRV_MUST_CHECK;

/* ---- worker_files.c ---- */

/* Path of a file of a worker. */
grv_status grvi_worker_path(const char *folder, int worker, const char *name, char **path) GRV_MUST_CHECK;
grv_status grvi_settings_write(const char *folder, int worker, const grvi_worker_settings *settings) GRV_MUST_CHECK;
grv_status grvi_settings_read(const char *folder, int worker, grvi_worker_settings *settings) GRV_MUST_CHECK;

/* ---- session.c ---- */

/* Kills what the leader of a session started, and itself: workers lead sessions, and programs have groups of their own in them. Returns how many there
 * were: 0 once all have ended. */
int grvi_session_kill(long leader);

/* ---- requests.c ---- */

/* Does what others have asked for since. */
grv_status grvi_requests_take(grv_batch *batch) GRV_MUST_CHECK;

/* ---- executors.c ---- */

/* Checks the pool and fills in what follows from the rest. */
grv_status grvi_executors_check(grv_batch_params *params) GRV_MUST_CHECK;
/* Makes the executors of the workers that live and of those to come. */
grv_status grvi_executors_open(grv_batch *batch) GRV_MUST_CHECK;
void grvi_executors_close(grv_batch *batch);
grvi_executor_kind grvi_executor_kind_of(const char *handle);
grvi_executor *grvi_executor_of(const grv_batch *batch, int worker);
grv_status grvi_executors_poll(grv_batch *batch) GRV_MUST_CHECK;
/* Gives back at once the places that cost, if no task is left. */
grv_status grvi_executors_release(grv_batch *batch) GRV_MUST_CHECK;
/* What the scheduler of an executor said last, for people: the file `scheduler`. */
grv_status grvi_executors_words(const grv_batch *batch, grvi_text *out) GRV_MUST_CHECK;

/* ---- drive.c ---- */

/* One round: takes in outcomes, starts workers, hands out tasks, commits. *progressed: anything happened. */
grv_status grvi_drive(grv_batch *batch, bool *progressed) GRV_MUST_CHECK;
/* Takes up the workers of an earlier driver. */
grv_status grvi_drive_adopt(grv_batch *batch) GRV_MUST_CHECK;
/* Tells a worker that nothing more will come after what it was given. */
grv_status grvi_drive_dismiss(grv_batch *batch, int worker) GRV_MUST_CHECK;
void grvi_worker_fini(grvi_batch_worker *worker);

#endif
