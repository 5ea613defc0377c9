/* Benchmark of the batch engine as HyperQueue measures itself: many tasks without work, and tasks that only sleep. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/median.h"
#include "grove/batch.h"
#include "grove/bench.h"
#include "grove/core.h"

static const char source[] = "#include <grove/task.h>\n"
                             "#include <time.h>\n"
                             "GRV_TASK(number) { grv_task_return_i64(task, grv_task_number(task)); }\n"
                             "GRV_TASK(nap)\n"
                             "{\n"
                             "    const double s = grv_task_f64(task, 0);\n"
                             "    const struct timespec time = {(time_t)s, (long)(1e9 * (s - (double)(time_t)s))};\n"
                             "    nanosleep(&time, 0);\n"
                             "    grv_task_return_i64(task, grv_task_number(task));\n"
                             "}\n";

typedef enum batch_kind { KIND_CALL, KIND_PROGRAM, KIND_SLEEP } batch_kind;
enum { MAX_REPEATS = 32 };

typedef struct batch_problem {
    batch_kind kind;
    int64_t n_tasks;
    int n_workers, n_repeats;
    double seconds; /* of a sleep */
} batch_problem;

static grv_status parse_problem(const char *text, batch_problem *p)
{
    static const char *const kinds[] = {"call", "program", "sleep"};
    char *end = NULL;
    const char *at = strncmp(text, "batch:", 6) == 0 ? text + 6 : text;
    bool is_known = false;
    *p = (batch_problem){.n_workers = grv_threads_available(), .n_repeats = 3, .seconds = 2};
    for (int k = 0; k < 3 && !is_known; k++) {
        const size_t n = strlen(kinds[k]);
        if (strncmp(at, kinds[k], n) != 0 || at[n] != ':') continue;
        p->kind = (batch_kind)k;
        at += n + 1;
        is_known = true;
    }
    if (is_known) p->n_tasks = strtoll(at, &end, 10);
    is_known = is_known && end != at && p->n_tasks >= 1 && p->n_tasks <= 100000000;
    for (at = end; is_known && *at != '\0'; at = end) {
        const char option = *at == ':' ? *++at : '\0';
        const double number = option != '\0' ? strtod(at + 1, &end) : 0;
        is_known = option != '\0' && end != at + 1 && number > 0 && number <= 1e6;
        if (option == 'w') p->n_workers = (int)number;
        else if (option == 'r') p->n_repeats = (int)number;
        else if (option == 's') p->seconds = number;
        else is_known = false;
    }
    GRV_CHECK(is_known && p->n_repeats <= MAX_REPEATS && p->n_workers >= 1, GRV_E_ARG,
              "batch problem '%s': call|program|sleep:<tasks>[:w<workers>][:r<repetitions>][:s<seconds of a sleep>] expected", text);
    return GRV_OK;
}

static grv_status function_of(grv_batch *batch, const batch_problem *p, const char *path, grv_batch_function *function)
{
    const char *const program[] = {"true"};
    if (p->kind == KIND_PROGRAM) return grv_batch_program(batch, program, 1, NULL, 0, function);
    return grv_batch_source(batch, p->kind == KIND_CALL ? "number" : "nap", &path, 1, "-O1", function);
}

static grv_status check_results(grv_batch *batch, const batch_problem *p, int64_t first, bool *correct)
{
    const int64_t step = p->n_tasks / 1000 + 1;
    *correct = *correct && grv_batch_counts_get(batch).n[GRV_BATCH_DONE] >= p->n_tasks;
    for (int64_t i = 0; i < p->n_tasks && p->kind != KIND_PROGRAM && *correct; i += step) {
        grv_batch_value value;
        GRV_TRY(grv_batch_fetch(batch, first + i, 0, &value));
        *correct = *correct && value.i64 == first + i;
    }
    return GRV_OK;
}

typedef struct batch_times {
    double submit_s, run_s, efficiency;
} batch_times;

/* The first job of a folder compiles the function, by a task that is not timed. */
static grv_status run_once(const batch_problem *p, const char *folder, const char *path, batch_times *t, bool *correct)
{
    grv_status status = GRV_OK;
    grv_batch *batch = NULL;
    grv_batch_params params = grv_batch_params_default();
    grv_batch_function function = 0;
    grv_batch_value seconds = grv_batch_f64(0.001);
    const grv_batch_column column = {.values = &seconds};
    const int n_args = p->kind == KIND_SLEEP;
    int64_t first = 0;
    params.n_workers = p->n_workers;
    params.idle_s = 2;
    GRV_TRY_GOTO(grv_batch_open(folder, &params, &batch));
    GRV_TRY_GOTO(function_of(batch, p, path, &function));
    GRV_TRY_GOTO(grv_batch_map(batch, function, p->n_workers, &column, n_args, &first));
    GRV_TRY_GOTO(grv_batch_wait(batch, HUGE_VAL));
    const double busy = grv_batch_counts_get(batch).busy_s, begin = grv_clock_seconds();
    seconds = grv_batch_f64(p->seconds);
    GRV_TRY_GOTO(grv_batch_map(batch, function, p->n_tasks, &column, n_args, &first));
    t->submit_s = grv_clock_seconds() - begin;
    GRV_TRY_GOTO(grv_batch_wait(batch, HUGE_VAL));
    t->run_s = grv_clock_seconds() - begin;
    t->efficiency = p->kind == KIND_SLEEP ? p->seconds * (double)p->n_tasks / (t->run_s * p->n_workers)
                                          : (grv_batch_counts_get(batch).busy_s - busy) / (t->run_s * p->n_workers);
    GRV_TRY_GOTO(check_results(batch, p, first, correct));
done:
    grv_batch_close(&batch);
    return status;
}

grv_status grv_bench_batch(const char *problem, grv_bench_result *result)
{
    static const char *const kinds[] = {"call", "program", "sleep"};
    batch_problem p;
    char root[] = "/tmp/grove-bench-XXXXXX", path[64], folder[64];
    double submit[MAX_REPEATS], run[MAX_REPEATS], efficiency[MAX_REPEATS];
    grv_status status = GRV_OK;
    GRV_TRY(parse_problem(problem, &p));
    *result = (grv_bench_result){.correct = true};
    (void)snprintf(result->problem, sizeof result->problem, "batch:%s:%lld:w%d:r%d:s%g", kinds[p.kind], (long long)p.n_tasks, p.n_workers,
                   p.n_repeats, p.seconds);
    GRV_CHECK(mkdtemp(root) != NULL, GRV_E_IO, "make %s: %s", root, strerror(errno));
    (void)snprintf(path, sizeof path, "%s/bench.c", root);
    GRV_TRY_GOTO(grvi_fs_write_atomic(path, source, (int64_t)sizeof source - 1, false));
    for (int i = 0; i < p.n_repeats; i++) {
        batch_times t;
        (void)snprintf(folder, sizeof folder, "%s/job%d", root, i);
        GRV_TRY_GOTO(run_once(&p, folder, path, &t, &result->correct));
        submit[i] = t.submit_s;
        run[i] = t.run_s;
        efficiency[i] = t.efficiency;
    }
    result->median_seconds = grvi_median(p.n_repeats, run);
    grv_bench_result_add(result, "submit_seconds", grvi_median(p.n_repeats, submit));
    grv_bench_result_add(result, "milliseconds_per_task", 1e3 * result->median_seconds / (double)p.n_tasks);
    grv_bench_result_add(result, "tasks_per_second", (double)p.n_tasks / result->median_seconds);
    grv_bench_result_add(result, "efficiency", grvi_median(p.n_repeats, efficiency));
    grv_bench_result_add(result, "driver_peak_bytes", (double)grv_memory_get().peak_bytes);
done:
    if (grvi_fs_exists(root)) {
        const grv_status removed = grvi_fs_remove_tree(root);
        if (status == GRV_OK) status = removed;
    }
    return status;
}
