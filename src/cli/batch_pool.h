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
    char *partition, *account; /* this and the rest: of Slurm */
    grv_string_list sbatch;
    int max_allocations, max_queued, workers_per_allocation, nodes_per_allocation, nodes_per_task, ranks_per_task;
    double allocation_time, submit_interval, poll_interval;
} grvc_pool;

/* For an option table: at(field) is the offset of a field of grvc_pool; default and help of the executor. */
#define GRVC_POOL_OPTIONS(at, executor_fallback, executor_help) \
    {.key = "executor", .type = GRV_OPTION_STRING, .offset = at(executor), .fallback = executor_fallback, .help = executor_help}, \
    {.key = "workers", .type = GRV_OPTION_INT, .offset = at(workers), .fallback = "0", .max = 100000, .help = "tasks at once; 0: one per core"}, \
    {.key = "cores", .type = GRV_OPTION_INT, .offset = at(cores), .fallback = "0", .max = 4096, .help = "that a task is pinned to; 0: none"}, \
    {.key = "memory", .type = GRV_OPTION_I64, .offset = at(memory), .fallback = "0", .max = 1e9, .unit = "MiB", .help = "most of a task; 0: no limit"}, \
    {.key = "time_limit", .type = GRV_OPTION_F64, .offset = at(time_limit), .fallback = "0", .max = HUGE_VAL, .unit = "s", .help = "of a task; 0: none"}, \
    {.key = "attempts", .type = GRV_OPTION_INT, .offset = at(attempts), .fallback = "3", .min = 1, .max = 100, .help = "of a task before it counts as failed"}, \
    {.key = "idle", .type = GRV_OPTION_F64, .offset = at(idle), .fallback = "10", .min = 0, .max = HUGE_VAL, .above_min = true, .unit = "s", .help = "after which a worker leaves"}, \
    {.key = "price", .type = GRV_OPTION_F64, .offset = at(price), .fallback = "0", .max = HUGE_VAL, .unit = "per worker hour", .help = "for the cost so far"}, \
    {.key = "partition", .type = GRV_OPTION_STRING, .offset = at(partition), .fallback = "", .help = "slurm: empty: the site's default"}, \
    {.key = "account", .type = GRV_OPTION_STRING, .offset = at(account), .fallback = "", .help = "slurm: empty: the user's default"}, \
    {.key = "allocation_time", .type = GRV_OPTION_F64, .offset = at(allocation_time), .fallback = "3600", .min = 1, .max = 1e8, .unit = "s", .help = "slurm: limit of an allocation, which runs many tasks"}, \
    {.key = "max_allocations", .type = GRV_OPTION_INT, .offset = at(max_allocations), .fallback = "8", .min = 1, .max = 10000, .help = "slurm: at once, queued ones included"}, \
    {.key = "max_queued", .type = GRV_OPTION_INT, .offset = at(max_queued), .fallback = "2", .min = 1, .max = 10000, .help = "slurm: allocations in the queue"}, \
    {.key = "workers_per_allocation", .type = GRV_OPTION_INT, .offset = at(workers_per_allocation), .fallback = "1", .min = 1, .max = 100000, .help = "slurm: tasks at once in an allocation"}, \
    {.key = "nodes_per_allocation", .type = GRV_OPTION_INT, .offset = at(nodes_per_allocation), .fallback = "1", .min = 1, .max = 100000, .help = "slurm: that its workers are spread over"}, \
    {.key = "nodes_per_task", .type = GRV_OPTION_INT, .offset = at(nodes_per_task), .fallback = "0", .max = 100000, .help = "slurm: a program started by srun over so many; 0: a part of a node"}, \
    {.key = "ranks_per_task", .type = GRV_OPTION_INT, .offset = at(ranks_per_task), .fallback = "0", .max = 10000000, .help = "slurm: of such a program; 0: one a node"}, \
    {.key = "sbatch", .type = GRV_OPTION_STRING_LIST, .offset = at(sbatch), .fallback = "[]", .help = "slurm: further arguments, such as [--qos=short]"}, \
    {.key = "submit_interval", .type = GRV_OPTION_F64, .offset = at(submit_interval), .fallback = "0.3", .max = HUGE_VAL, .unit = "s", .help = "slurm: between two calls of sbatch"}, \
    {.key = "poll_interval", .type = GRV_OPTION_F64, .offset = at(poll_interval), .fallback = "5", .max = HUGE_VAL, .above_min = true, .unit = "s", .help = "slurm: between two calls of squeue"}

/* The pool of these keys; its strings are borrowed. */
static inline grv_batch_params grvc_pool_params(const grvc_pool *pool, grv_log *log)
{
    grv_batch_params p = grv_batch_params_default();
    p.executor = pool->executor[0] != '\0' ? pool->executor : NULL;
    p.n_workers = pool->workers;
    p.cores_per_task = pool->cores;
    p.memory_per_task = pool->memory << 20;
    p.time_limit_s = pool->time_limit;
    p.max_attempts = pool->attempts;
    p.idle_s = pool->idle;
    p.price_per_hour = pool->price;
    p.nodes_per_task = pool->nodes_per_task;
    p.ranks_per_task = pool->ranks_per_task;
    p.slurm = (grv_batch_slurm){.partition = pool->partition, .account = pool->account, .allocation_s = pool->allocation_time,
                                .max_allocations = pool->max_allocations, .max_queued = pool->max_queued,
                                .workers_per_allocation = pool->workers_per_allocation, .nodes_per_allocation = pool->nodes_per_allocation,
                                .submit_interval_s = pool->submit_interval, .poll_interval_s = pool->poll_interval,
                                .sbatch_args = (const char *const *)pool->sbatch.at, .n_sbatch_args = pool->sbatch.n};
    p.log = log;
    return p;
}

#endif
