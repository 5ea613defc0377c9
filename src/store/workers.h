/* The store's bounded pool of threads: they sleep when there is nothing to do, are started when first needed and joined with
 * the pool. Any thread may bring a job, several at once; the one that brings it works on it too, so that a job always gets
 * done, with however many helpers there are. (grv_parallel_for is for computing: its threads spin between loops, which takes
 * the cores from the training that a reader runs beside.) Internal. */
#ifndef GRVI_STORE_WORKERS_H
#define GRVI_STORE_WORKERS_H

#include <pthread.h>
#include <stdbool.h>

enum { GRVI_MAX_WORKERS = 256 };

/* Works until there is nothing left to take; the job's threads share the work by a counter of their own. */
typedef void grvi_worker_body(void *argument);

typedef struct grvi_worker_job {
    grvi_worker_body *body;
    void *argument;
    int n_open;   /* helpers that may still join */
    int n_active; /* helpers at work */
    struct grvi_worker_job *next;
} grvi_worker_job;

typedef struct grvi_workers {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    grvi_worker_job *jobs; /* with places open, oldest first */
    int n_threads, n_idle;
    bool stop;
    pthread_t threads[GRVI_MAX_WORKERS];
} grvi_workers;

void grvi_workers_init(grvi_workers *workers);
/* No job may be under way. */
void grvi_workers_fini(grvi_workers *workers);
/* Runs body on the calling thread and on up to n_threads - 1 helpers at the same time; returns when all have returned. */
void grvi_workers_run(grvi_workers *workers, int n_threads, grvi_worker_body *body, void *argument);

/* Lets at most n threads through at a time. */
typedef struct grvi_gate {
    pthread_mutex_t lock;
    pthread_cond_t left;
    int n_free;
} grvi_gate;

void grvi_gate_init(grvi_gate *gate);
void grvi_gate_fini(grvi_gate *gate);
/* With no thread inside: how many may be. */
void grvi_gate_set(grvi_gate *gate, int n);
void grvi_gate_enter(grvi_gate *gate);
void grvi_gate_leave(grvi_gate *gate);

#endif
