/* The keys of what runs tasks, for every command that drives a job. Internal to src/cli. */
#ifndef GRVC_BATCH_POOL_H
#define GRVC_BATCH_POOL_H

#include <math.h>

#include "grove/batch.h"
#include "grove/config.h"

typedef struct grvc_pool {
    char *executor;
    int64_t memory; /* MiB */
    int workers, cores, attempts;
    double time_limit, idle, price;
} grvc_pool;

/* For an option table: at(field) is the offset of a field of grvc_pool. */
#define GRVC_POOL_OPTIONS(at) \
    {.key = "executor", .type = GRV_OPTION_STRING, .offset = at(executor), .fallback = "local", .help = "what starts the workers: local, processes of this machine"}, \
    {.key = "workers", .type = GRV_OPTION_INT, .offset = at(workers), .fallback = "0", .max = 100000, .help = "tasks at once; 0: one per core"}, \
    {.key = "cores", .type = GRV_OPTION_INT, .offset = at(cores), .fallback = "0", .max = 4096, .help = "that a task is pinned to; 0: none"}, \
    {.key = "memory", .type = GRV_OPTION_I64, .offset = at(memory), .fallback = "0", .max = 1e9, .unit = "MiB", .help = "most of a task; 0: no limit"}, \
    {.key = "time_limit", .type = GRV_OPTION_F64, .offset = at(time_limit), .fallback = "0", .max = HUGE_VAL, .unit = "s", .help = "of a task; 0: none"}, \
    {.key = "attempts", .type = GRV_OPTION_INT, .offset = at(attempts), .fallback = "3", .min = 1, .max = 100, .help = "of a task before it counts as failed"}, \
    {.key = "idle", .type = GRV_OPTION_F64, .offset = at(idle), .fallback = "10", .min = 0, .max = HUGE_VAL, .above_min = true, .unit = "s", .help = "after which a worker leaves"}, \
    {.key = "price", .type = GRV_OPTION_F64, .offset = at(price), .fallback = "0", .max = HUGE_VAL, .unit = "per worker hour", .help = "for the cost so far"}

/* The pool of these keys; its executor is borrowed. */
static inline grv_batch_params grvc_pool_params(const grvc_pool *pool, grv_log *log)
{
    grv_batch_params p = grv_batch_params_default();
    p.executor = pool->executor;
    p.n_workers = pool->workers;
    p.cores_per_task = pool->cores;
    p.memory_per_task = pool->memory << 20;
    p.time_limit_s = pool->time_limit;
    p.max_attempts = pool->attempts;
    p.idle_s = pool->idle;
    p.price_per_hour = pool->price;
    p.log = log;
    return p;
}

#endif
