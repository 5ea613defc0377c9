/* Benchmark of campaigns: samples of a simulator that sleeps, all the way from the configuration to the data set. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "batch/batch_bench.h"
#include "core/fs.h"
#include "grove/bench.h"
#include "grove/campaign.h"

static const char source[] =
    "#include <grove/task.h>\n"
    "#include <time.h>\n"
    "GRV_TASK(nap)\n"
    "{\n"
    "    const double s = grv_task_f64(task, 0);\n"
    "    const struct timespec time = {(time_t)s, (long)(1e9 * (s - (double)(time_t)s))};\n"
    "    const int64_t shape[] = {1};\n"
    "    nanosleep(&time, 0);\n"
    "    for (int i = 0; i < 2; i++) grv_task_return_tensor(task, GRV_TASK_F64, 1, shape, &s);\n"
    "}\n";

static grv_status set(grv_campaign_config *config, const char *key, const char *value)
{
    char assignment[PATH_MAX + 64];
    (void)snprintf(assignment, sizeof assignment, "%s=%s", key, value);
    return grv_config_set(grv_campaign_options(), config, assignment);
}

static grv_status fill_config(const grvi_batch_problem *p, const char *root,
                              grv_campaign_config *config)
{
    static const char *const constant[][2] = {{"function", "nap"},  {"flags", "-O1"},
                                              {"input.axes", "x"},  {"input.shape", "1"},
                                              {"target.axes", "x"}, {"target.shape", "1"}};
    char path[PATH_MAX + 16], number[32];
    GRV_TRY(grv_config_defaults(grv_campaign_options(), config));
    (void)snprintf(path, sizeof path, "%s/nap.c", root);
    GRV_TRY(grvi_fs_write_atomic(path, source, (int64_t)sizeof source - 1, false));
    GRV_TRY(set(config, "simulator", path));
    (void)snprintf(path, sizeof path, "%s/data", root);
    GRV_TRY(set(config, "output", path));
    (void)snprintf(path, sizeof path, "seconds list %g", p->seconds);
    GRV_TRY(set(config, "parameters", path));
    (void)snprintf(number, sizeof number, "%lld", (long long)p->n_tasks);
    GRV_TRY(set(config, "samples", number));
    for (size_t i = 0; i < sizeof constant / sizeof *constant; i++)
        GRV_TRY(set(config, constant[i][0], constant[i][1]));
    return GRV_OK;
}

grv_status grv_bench_campaign(const char *problem, const char *folder, grv_bench_result *result)
{
    grvi_batch_problem p;
    char root[PATH_MAX - 64];
    grv_campaign_config config = {0};
    grv_batch_params pool = grv_batch_params_default();
    grv_campaign_result made = {0};
    GRV_TRY(grvi_batch_problem_read(problem, &p, result));
    GRV_CHECK(p.kind == GRVI_BATCH_CAMPAIGN, GRV_E_ARG,
              "batch:campaign:<samples> expected, '%.80s' found", problem);
    pool.n_workers = p.n_workers;
    pool.idle_s = 2;
    GRV_TRY(grvi_bench_make_folder(folder, root, sizeof root));
    grv_status status = fill_config(&p, root, &config);
    if (status == GRV_OK) status = grv_campaign_run(&config, &pool, false, NULL, NULL, &made);
    const double busy_s = (double)p.n_tasks * p.seconds;
    result->median_seconds = made.seconds;
    result->floor_seconds = busy_s / p.n_workers;
    result->floor_ratio = made.seconds / result->floor_seconds;
    result->correct = made.n_done == p.n_tasks;
    grv_bench_result_add(result, "efficiency", busy_s / (made.seconds * p.n_workers));
    grv_bench_result_add(result, "seconds_per_sample", made.seconds_per_sample);
    grv_config_fini(grv_campaign_options(), &config);
    const grv_status removed = grvi_fs_remove_tree(root);
    return status != GRV_OK ? status : removed;
}
