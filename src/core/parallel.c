/* The one owner of compute threads: OpenMP, pthreads (for the thread sanitizer and hosts without OpenMP), or serial. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#include <stdlib.h>

#include "core/check.h"
#include "grove/core.h"
#include "grove_build_info.h"

#if GRVI_THREADS == 1
#include <omp.h>
#elif GRVI_THREADS == 2
#include <pthread.h>
#endif

static void range_of(int64_t n, int parts, int part, int64_t *begin, int64_t *end)
{
    const int64_t base = n / parts, rest = n % parts;
    *begin = part * base + grvi_min_i64(part, rest);
    *end = *begin + base + (part < rest);
}

static void run_part(int64_t n, int parts, int part, grv_range_body *body, void *argument)
{
    int64_t begin = 0, end = 0;
    range_of(n, parts, part, &begin, &end);
    body(argument, part, begin, end);
}

#if GRVI_THREADS == 2
enum { MAX_PTHREADS = 256 };

typedef struct worker_call {
    int64_t n;
    int parts, part;
    grv_range_body *body;
    void *argument;
} worker_call;

static void *worker_main(void *argument)
{
    const worker_call *const call = argument;
    run_part(call->n, call->parts, call->part, call->body, call->argument);
    return NULL;
}

static void run_threads(int64_t n, int parts, grv_range_body *body, void *argument)
{
    pthread_t threads[MAX_PTHREADS];
    worker_call calls[MAX_PTHREADS];
    bool started[MAX_PTHREADS];
    for (int i = 1; i < parts; i++) {
        calls[i] = (worker_call){n, parts, i, body, argument};
        started[i] = pthread_create(&threads[i], NULL, worker_main, &calls[i]) == 0;
    }
    run_part(n, parts, 0, body, argument);
    for (int i = 1; i < parts; i++) {
        if (started[i]) (void)pthread_join(threads[i], NULL);
        else run_part(n, parts, i, body, argument); /* no thread to be had: the work is done all the same */
    }
}
#endif

void grv_parallel_for(int n_threads, int64_t n, grv_range_body *body, void *argument)
{
    if (n <= 0) return;
    int parts = n_threads < 1 ? 1 : n_threads;
    if (parts > n) parts = (int)n;
    if (parts == 1) {
        body(argument, 0, 0, n);
        return;
    }
#if GRVI_THREADS == 1
#pragma omp parallel num_threads(parts)
    {
        /* fewer threads than asked for may come: each takes every n-th part */
        for (int part = omp_get_thread_num(); part < parts; part += omp_get_num_threads())
            run_part(n, parts, part, body, argument);
    }
#elif GRVI_THREADS == 2
    if (parts > MAX_PTHREADS) parts = MAX_PTHREADS;
    run_threads(n, parts, body, argument);
#else
    for (int part = 0; part < parts; part++) run_part(n, parts, part, body, argument);
#endif
}

int grv_threads_available(void)
{
#if GRVI_THREADS == 0
    return 1;
#else
    cpu_set_t set;
    int n = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
#if GRVI_THREADS == 1
    if (omp_get_max_threads() < n) n = omp_get_max_threads();
#endif
    return n < 1 ? 1 : n;
#endif
}
