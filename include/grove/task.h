/** @file task.h
 * What a task's C source includes. Self-contained: it needs no library; the worker that loads the task provides the calls.
 *
 *     #include <grove/task.h>
 *     GRV_TASK(name)
 *     {
 *         const double x = grv_task_f64(task, 0);
 *         if (x < 0) { grv_task_fail(task, "x must not be negative"); return; }
 *         grv_task_return_f64(task, x);
 *     }
 *
 * A wrong number or kind of argument fails the task with a message; the call then returns 0, NULL or "". What is printed to stdout and stderr
 * goes to the task's log. Crashes and exits are caught: they cost this task an attempt and nothing else.
 */
#ifndef GROVE_TASK_H
#define GROVE_TASK_H

#include <stdint.h>

/** A running task. */
typedef struct grv_task grv_task;

/** Element types of tensors; the numbers are those of grv_store_type. */
enum grv_task_type {
    GRV_TASK_I32 = 3, /**< int32_t */
    GRV_TASK_I64 = 4, /**< int64_t */
    GRV_TASK_F32 = 10, /**< float */
    GRV_TASK_F64 = 11 /**< double */
};

/** The worker's side of the calls below; a worker only ever appends members. */
typedef struct grv_task_calls {
    int version; /**< 2; 1 had no find */
    int (*n_arguments)(grv_task *task);
    int64_t (*get_i64)(grv_task *task, int i);
    double (*get_f64)(grv_task *task, int i);
    const char *(*get_string)(grv_task *task, int i);
    const char *(*get_file)(grv_task *task, int i);
    const void *(*get_tensor)(grv_task *task, int i, int type, int *rank, const int64_t **shape);
    void (*return_i64)(grv_task *task, int64_t x);
    void (*return_f64)(grv_task *task, double x);
    void (*return_string)(grv_task *task, const char *text);
    void (*return_file)(grv_task *task, const char *path);
    void (*return_tensor)(grv_task *task, int type, int rank, const int64_t *shape, const void *data);
    void (*fail)(grv_task *task, const char *message);
    int64_t (*number)(grv_task *task);
    int (*attempt)(grv_task *task);
    int (*find)(grv_task *task, const char *name);
} grv_task_calls;

/** Only the first member is for tasks. */
struct grv_task {
    const grv_task_calls *calls; /**< used by the functions below */
};

#ifdef __GNUC__
/** Makes a function of the task's source visible to the worker. */
#define GRV_TASK_EXPORT __attribute__((visibility("default"), used))
#else
/** Makes a function of the task's source visible to the worker. */
#define GRV_TASK_EXPORT
#endif
/** Defines the function of a task: its body follows and sees `task`. */
#define GRV_TASK(name)                                                                             \
    GRV_TASK_EXPORT void name(grv_task *task);                                                     \
    GRV_TASK_EXPORT void name(grv_task *task)

/** Number of arguments. */
static inline int grv_task_n_arguments(grv_task *task) { return task->calls->n_arguments(task); }
/** Number of the argument with a name, for the calls below: in a campaign (grove generate), whose parameters have names; elsewhere, and for a name that
 * is none, the task fails and -1 is returned. Besides the parameters, "seed" is a random number of the sample's own, that fits an int. */
static inline int grv_task_find(grv_task *task, const char *name)
{
    if (task->calls->version >= 2) return task->calls->find(task, name);
    task->calls->fail(task, "this grove is too old for arguments with names");
    return -1;
}
/** Argument i as a whole number. */
static inline int64_t grv_task_i64(grv_task *task, int i) { return task->calls->get_i64(task, i); }
/** Argument i as a real number; whole numbers are taken too. */
static inline double grv_task_f64(grv_task *task, int i) { return task->calls->get_f64(task, i); }
/** Argument i as a text; valid until the task ends. */
static inline const char *grv_task_string(grv_task *task, int i) { return task->calls->get_string(task, i); }
/** Path of a file argument's copy, for reading only; valid until the task ends. */
static inline const char *grv_task_file(grv_task *task, int i) { return task->calls->get_file(task, i); }
/** Elements of a tensor argument, dense, last axis fastest, 8-byte aligned, for reading; valid until the task ends.
 * @param type  expected (enum grv_task_type)
 * @param rank, shape  written; either may be NULL */
static inline const void *grv_task_tensor(grv_task *task, int i, int type, int *rank, const int64_t **shape)
{
    return task->calls->get_tensor(task, i, type, rank, shape);
}
/** Appends a result. */
static inline void grv_task_return_i64(grv_task *task, int64_t x) { task->calls->return_i64(task, x); }
/** Appends a result. */
static inline void grv_task_return_f64(grv_task *task, double x) { task->calls->return_f64(task, x); }
/** Appends a result; the text is copied. */
static inline void grv_task_return_string(grv_task *task, const char *text) { task->calls->return_string(task, text); }
/** Appends the content of a file, which is read now. */
static inline void grv_task_return_file(grv_task *task, const char *path) { task->calls->return_file(task, path); }
/** Appends a tensor; shape [rank] and data are copied. */
static inline void grv_task_return_tensor(grv_task *task, int type, int rank, const int64_t *shape, const void *data)
{
    task->calls->return_tensor(task, type, rank, shape, data);
}
/** Fails the task with a message; return from the task afterwards. */
static inline void grv_task_fail(grv_task *task, const char *message) { task->calls->fail(task, message); }
/** Number of the task in its job; in a campaign, of the sample. */
static inline int64_t grv_task_number(grv_task *task) { return task->calls->number(task); }
/** 1 for the first attempt. */
static inline int grv_task_attempt(grv_task *task) { return task->calls->attempt(task); }

#endif
