/* The executors of a job: which ones it needs, and what concerns all of them. */
#include <string.h>

#include "batch/batch_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

static const char *const names[GRVI_N_EXECUTORS] = {"local", "slurm"};

typedef grv_status create_function(const char *folder, const grv_batch_params *params,
                                   grvi_executor **executor);
static create_function *const creators[GRVI_N_EXECUTORS] = {grvi_executor_local_create,
                                                            grvi_executor_slurm_create};

grvi_executor_kind grvi_executor_kind_of(const char *handle)
{
    return strncmp(handle, "slurm ", 6) == 0 ? GRVI_EXECUTOR_SLURM : GRVI_EXECUTOR_LOCAL;
}

static grv_status check_slurm(grv_batch_params *p)
{
    grv_batch_slurm *const s = &p->slurm;
    GRV_CHECK(s->allocation_s >= 1 && s->max_allocations >= 1 && s->max_queued >= 1 &&
                  s->workers_per_allocation >= 1 && s->nodes_per_allocation >= 1 &&
                  s->submit_interval_s >= 0 && s->poll_interval_s > 0 && s->n_sbatch_args >= 0,
              GRV_E_ARG,
              "slurm: allocations of at least 1 s, 1 worker and 1 node, and at least 1 of them and "
              "1 in the queue expected");
    GRV_CHECK(s->nodes_per_allocation <= s->workers_per_allocation, GRV_E_ARG,
              "slurm: at most one node for each of %d workers expected, %d found",
              s->workers_per_allocation, s->nodes_per_allocation);
    if (p->nodes_per_task > 0 || p->ranks_per_task > 0) {
        if (p->nodes_per_task == 0) p->nodes_per_task = 1;
        if (p->ranks_per_task == 0) p->ranks_per_task = p->nodes_per_task;
        GRV_CHECK(s->workers_per_allocation == 1, GRV_E_ARG,
                  "slurm: tasks of several ranks have an allocation for themselves; "
                  "workers_per_allocation: 1 expected, %d found",
                  s->workers_per_allocation);
        GRV_CHECK(p->ranks_per_task >= p->nodes_per_task, GRV_E_ARG,
                  "ranks_per_task: at least one for each of %d nodes expected, %d found",
                  p->nodes_per_task, p->ranks_per_task);
    }
    GRV_CHECK(
        p->time_limit_s <= 0.9 * s->allocation_s, GRV_E_ARG,
        "a task's limit of %g s does not fit into an allocation of %g s, of which a tenth is kept",
        p->time_limit_s, s->allocation_s);
    if (p->n_workers == 0) p->n_workers = s->max_allocations * s->workers_per_allocation;
    return GRV_OK;
}

grv_status grvi_executors_check(grv_batch_params *p)
{
    GRV_CHECK(p->max_attempts >= 1 && p->max_attempts <= 100, GRV_E_ARG,
              "max_attempts: 1 to 100 expected, %d found", p->max_attempts);
    GRV_CHECK(p->n_workers >= 0 && p->cores_per_task >= 0 && p->memory_per_task >= 0 &&
                  p->time_limit_s >= 0 && p->idle_s > 0 && p->nodes_per_task >= 0 &&
                  p->ranks_per_task >= 0,
              GRV_E_ARG, "a pool of no negative sizes, and an idle time above 0, expected");
    if (strcmp(p->executor, "slurm") == 0) return check_slurm(p);
    GRV_CHECK(strcmp(p->executor, "local") == 0, GRV_E_ARG,
              "executor: 'local' or 'slurm' expected, '%s' found", p->executor);
    GRV_CHECK(p->nodes_per_task == 0 && p->ranks_per_task == 0, GRV_E_UNSUPPORTED,
              "tasks over several nodes or ranks: executor 'slurm' expected, 'local' found");
    if (p->n_workers == 0)
        p->n_workers =
            (int)grvi_max_i64(1, grv_threads_available() / (int)grvi_max_i64(1, p->cores_per_task));
    return GRV_OK;
}

grv_status grvi_executors_open(grv_batch *b)
{
    bool is_needed[GRVI_N_EXECUTORS] = {false};
    if (b->params.executor == NULL)
        b->params.executor =
            names[b->n_workers > 0 ? b->workers[b->n_workers - 1].executor : GRVI_EXECUTOR_LOCAL];
    GRV_TRY(grvi_executors_check(&b->params));
    b->executor = strcmp(b->params.executor, names[GRVI_EXECUTOR_SLURM]) == 0 ? GRVI_EXECUTOR_SLURM
                                                                              : GRVI_EXECUTOR_LOCAL;
    is_needed[b->executor] = true;
    for (int i = 0; i < b->n_workers; i++)
        if (b->workers[i].is_alive) is_needed[b->workers[i].executor] = true;
    for (int k = 0; k < GRVI_N_EXECUTORS; k++)
        if (is_needed[k]) GRV_TRY(creators[k](b->folder, &b->params, &b->executors[k]));
    b->params.slurm = (grv_batch_slurm){0}; /* its strings are the caller's */
    return GRV_OK;
}

void grvi_executors_close(grv_batch *b)
{
    for (int k = 0; k < GRVI_N_EXECUTORS; k++) {
        if (b->executors[k] != NULL) b->executors[k]->class->destroy(b->executors[k]);
        b->executors[k] = NULL;
    }
}

grvi_executor *grvi_executor_of(const grv_batch *b, int worker)
{
    return b->executors[b->workers[worker].executor];
}

grv_status grvi_executors_poll(grv_batch *b)
{
    for (int k = 0; k < GRVI_N_EXECUTORS; k++)
        if (b->executors[k] != NULL && b->executors[k]->class->poll != NULL)
            GRV_TRY(b->executors[k]->class->poll(b->executors[k]));
    return GRV_OK;
}

grv_status grvi_executors_release(grv_batch *b)
{
    if (b->n_state[GRV_BATCH_WAITING] + b->n_state[GRV_BATCH_READY] +
            b->n_state[GRV_BATCH_RUNNING] >
        0)
        return GRV_OK;
    for (int i = 0; i < b->n_workers; i++)
        if (b->workers[i].is_alive && grvi_executor_of(b, i) != NULL &&
            grvi_executor_of(b, i)->class->is_queued)
            GRV_TRY(grvi_drive_dismiss(b, i));
    for (int k = 0; k < GRVI_N_EXECUTORS; k++)
        if (b->executors[k] != NULL && b->executors[k]->class->release != NULL)
            b->executors[k]->class->release(b->executors[k]);
    return GRV_OK;
}

grv_status grvi_executors_words(const grv_batch *b, grvi_text *out)
{
    char *path = NULL, *text = NULL;
    int64_t n = 0;
    GRV_TRY(grvi_fs_join(b->folder, "scheduler", &path));
    const grv_status status =
        grvi_fs_exists(path) ? grvi_fs_read(path, (int64_t)1 << 20, &text, &n) : GRV_OK;
    while (n > 0 && text[n - 1] == '\n') n--;
    if (n > 0) {
        grvi_text_append(out, "; ");
        grvi_text_append_n(out, text, n);
    }
    grv_free(text);
    grv_free(path);
    return status;
}
