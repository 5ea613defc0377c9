/* Benchmarks of the batch engine: as HyperQueue measures itself, many tasks without work, and tasks that only sleep; a large value for many tasks; and
 * what a job of many tasks costs Slurm. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "batch/batch_bench.h"
#include "batch/batch_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "core/median.h"
#include "grove/core.h"

static const char source[] = "#include <grove/task.h>\n"
                             "#include <stdio.h>\n"
                             "#include <time.h>\n"
                             "#include <unistd.h>\n"
                             "GRV_TASK(number) { grv_task_return_i64(task, grv_task_number(task)); }\n"
                             "GRV_TASK(nap)\n"
                             "{\n"
                             "    const double s = grv_task_f64(task, 0);\n"
                             "    const struct timespec time = {(time_t)s, (long)(1e9 * (s - (double)(time_t)s))};\n"
                             "    nanosleep(&time, 0);\n"
                             "    grv_task_return_i64(task, grv_task_number(task));\n"
                             "}\n"
                             /* the sum of a tensor; bytes that this process has read, and holds for itself */
                             "GRV_TASK(take)\n"
                             "{\n"
                             "    const int64_t *shape = 0;\n"
                             "    const int64_t *const x = grv_task_tensor(task, 0, GRV_TASK_I64, 0, &shape);\n"
                             "    int64_t sum = 0;\n"
                             "    long long n_read = 0, resident = 0, shared = 0;\n"
                             "    FILE *const io = fopen(\"/proc/self/io\", \"r\");\n"
                             "    FILE *const memory = fopen(\"/proc/self/statm\", \"r\");\n"
                             "    for (int64_t i = 0; x != 0 && i < shape[0]; i++) sum += x[i];\n"
                             "    if (io != 0 && fscanf(io, \"rchar: %lld\", &n_read) != 1) n_read = 0;\n"
                             "    if (memory != 0 && fscanf(memory, \"%*d %lld %lld\", &resident, &shared) != 2) resident = shared = 0;\n"
                             "    if (io != 0) fclose(io);\n"
                             "    if (memory != 0) fclose(memory);\n"
                             "    grv_task_return_i64(task, sum);\n"
                             "    grv_task_return_i64(task, n_read);\n"
                             "    grv_task_return_i64(task, (resident - shared) * sysconf(_SC_PAGESIZE));\n"
                             "}\n";

static const char *const kinds[GRVI_BATCH_N_KINDS] = {"call", "program", "sleep", "broadcast", "slurm", "campaign"};

grv_status grvi_batch_problem_read(const char *text, grvi_batch_problem *p, grv_bench_result *result)
{
    char *end = NULL;
    const char *at = strncmp(text, "batch:", 6) == 0 ? text + 6 : text;
    bool is_known = false;
    *p = (grvi_batch_problem){.n_workers = grv_threads_available(), .n_repeats = 3, .seconds = 2, .mebibytes = 1024};
    for (int k = 0; k < GRVI_BATCH_N_KINDS && !is_known; k++) {
        const size_t n = strlen(kinds[k]);
        if (strncmp(at, kinds[k], n) != 0 || at[n] != ':') continue;
        p->kind = (grvi_batch_kind)k;
        at += n + 1;
        is_known = true;
    }
    if (p->kind >= GRVI_BATCH_BROADCAST) p->n_repeats = 1; /* long, or others wait in that queue, too */
    if (is_known) p->n_tasks = strtoll(at, &end, 10);
    is_known = is_known && end != at && p->n_tasks >= 1 && p->n_tasks <= 100000000;
    for (at = end; is_known && *at != '\0'; at = end) {
        const char option = *at == ':' ? *++at : '\0';
        const double number = option != '\0' ? strtod(at + 1, &end) : 0;
        is_known = option != '\0' && end != at + 1 && number > 0 && number <= 1e6;
        if (option == 'w') p->n_workers = (int)number;
        else if (option == 'r') p->n_repeats = (int)number;
        else if (option == 's') p->seconds = number;
        else if (option == 'm') p->mebibytes = (int64_t)number;
        else is_known = false;
    }
    GRV_CHECK(is_known && p->n_repeats >= 1 && p->n_repeats <= GRVI_BATCH_MAX_REPEATS && p->n_workers >= 1 && p->mebibytes >= 1, GRV_E_ARG,
              "batch problem '%s': call|program|sleep|broadcast|slurm|campaign:<tasks>[:w<workers>][:r<repetitions>][:s<seconds of a sleep>]"
              "[:m<MiB of a broadcast>] expected",
              text);
    GRV_CHECK(p->n_repeats == 1 || p->kind < GRVI_BATCH_BROADCAST, GRV_E_ARG, "batch problem '%s': %s is measured once, r%d found", text, kinds[p->kind],
              p->n_repeats);
    *result = (grv_bench_result){.correct = true};
    const int n = snprintf(result->problem, sizeof result->problem, "batch:%s:%lld:w%d:r%d", kinds[p->kind], (long long)p->n_tasks, p->n_workers,
                           p->n_repeats);
    char *const rest = result->problem + n;
    const size_t n_rest = sizeof result->problem - (size_t)n;
    if (p->kind == GRVI_BATCH_SLEEP || p->kind == GRVI_BATCH_CAMPAIGN) (void)snprintf(rest, n_rest, ":s%g", p->seconds);
    if (p->kind == GRVI_BATCH_BROADCAST) (void)snprintf(rest, n_rest, ":m%lld", (long long)p->mebibytes);
    return GRV_OK;
}

grv_status grvi_bench_make_folder(const char *folder, char *path, int64_t size)
{
    if (folder != NULL) GRV_TRY(grvi_fs_make_directory(folder));
    GRV_CHECK(snprintf(path, (size_t)size, "%s/grove-bench-XXXXXX", folder != NULL ? folder : "/tmp") < size, GRV_E_ARG, "%s: too long", folder);
    GRV_CHECK(mkdtemp(path) != NULL, GRV_E_IO, "make %s: %s", path, strerror(errno));
    return GRV_OK;
}

static grv_status function_of(grv_batch *batch, const grvi_batch_problem *p, const char *path, grv_batch_function *function)
{
    const char *const program[] = {"true"};
    if (p->kind == GRVI_BATCH_PROGRAM) return grv_batch_program(batch, program, 1, NULL, 0, function);
    return grv_batch_source(batch, p->kind == GRVI_BATCH_CALL ? "number" : "nap", &path, 1, "-O1", function);
}

static grv_status check_results(grv_batch *batch, const grvi_batch_problem *p, int64_t first, bool *correct)
{
    const int64_t step = p->n_tasks / 1000 + 1;
    *correct = *correct && grv_batch_counts_get(batch).n[GRV_BATCH_DONE] >= p->n_tasks;
    for (int64_t i = 0; i < p->n_tasks && p->kind != GRVI_BATCH_PROGRAM && *correct; i += step) {
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
static grv_status run_once(const grvi_batch_problem *p, const char *root, int repeat, const char *path, batch_times *t, bool *correct)
{
    char folder[PATH_MAX];
    grv_status status = GRV_OK;
    grv_batch *batch = NULL;
    grv_batch_params params = grv_batch_params_default();
    grv_batch_function function = 0;
    grv_batch_value seconds = grv_batch_f64(0.001);
    const grv_batch_column column = {.values = &seconds};
    const int n_args = p->kind == GRVI_BATCH_SLEEP;
    int64_t first = 0;
    params.n_workers = p->n_workers;
    params.idle_s = 2;
    (void)snprintf(folder, sizeof folder, "%s/job%d", root, repeat);
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
    t->efficiency = p->kind == GRVI_BATCH_SLEEP ? p->seconds * (double)p->n_tasks / (t->run_s * p->n_workers)
                                          : (grv_batch_counts_get(batch).busy_s - busy) / (t->run_s * p->n_workers);
    GRV_TRY_GOTO(check_results(batch, p, first, correct));
done:
    grv_batch_close(&batch);
    return status;
}

static grv_status bench_tasks(const grvi_batch_problem *p, const char *root, const char *path, grv_bench_result *result)
{
    double submit[GRVI_BATCH_MAX_REPEATS], run[GRVI_BATCH_MAX_REPEATS], efficiency[GRVI_BATCH_MAX_REPEATS];
    for (int i = 0; i < p->n_repeats; i++) {
        batch_times t;
        GRV_TRY(run_once(p, root, i, path, &t, &result->correct));
        submit[i] = t.submit_s;
        run[i] = t.run_s;
        efficiency[i] = t.efficiency;
    }
    result->median_seconds = grvi_median(p->n_repeats, run);
    grv_bench_result_add(result, "submit_seconds", grvi_median(p->n_repeats, submit));
    grv_bench_result_add(result, "milliseconds_per_task", 1e3 * result->median_seconds / (double)p->n_tasks);
    grv_bench_result_add(result, "tasks_per_second", (double)p->n_tasks / result->median_seconds);
    grv_bench_result_add(result, "efficiency", grvi_median(p->n_repeats, efficiency));
    grv_bench_result_add(result, "driver_peak_bytes", (double)grv_memory_get().peak_bytes);
    return GRV_OK;
}

/* ---- a broadcast ---- */

static int64_t bytes_below(const char *folder)
{
    int64_t n = 0;
    struct stat info;
    const struct dirent *entry = NULL;
    DIR *const directory = opendir(folder);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char *path = NULL;
        if (entry->d_name[0] == '.' || grvi_fs_join(folder, entry->d_name, &path) != GRV_OK) continue;
        if (lstat(path, &info) == 0) n += S_ISDIR(info.st_mode) ? bytes_below(path) : (int64_t)info.st_size;
        grv_free(path);
    }
    if (directory != NULL) (void)closedir(directory);
    return n;
}

typedef struct broadcast_figures {
    double store_s, again_s, run_s;
    int64_t stored, n_read, n_held; /* bytes: in the blobs; most that a worker read, and held for itself */
} broadcast_figures;

static grv_status take_sums(grv_batch *batch, int64_t first, int64_t n, int64_t sum, broadcast_figures *f, bool *correct)
{
    for (int64_t i = 0; i < n; i++) {
        grv_batch_value values[3];
        for (int k = 0; k < 3; k++) GRV_TRY(grv_batch_fetch(batch, first + i, k, &values[k])); /* numbers own nothing */
        *correct = *correct && values[0].i64 == sum;
        f->n_read = grvi_max_i64(f->n_read, values[1].i64);
        f->n_held = grvi_max_i64(f->n_held, values[2].i64);
    }
    return GRV_OK;
}

/* Twice the same value: the second time nothing is to be stored. */
static grv_status broadcast(const grvi_batch_problem *p, const char *root, const char *path, const grv_batch_value *value, int64_t sum,
                            broadcast_figures *f, bool *correct)
{
    grv_status status = GRV_OK;
    grv_batch *batch = NULL;
    grv_batch_params params = grv_batch_params_default();
    grv_batch_function function = 0;
    grv_batch_value shared[2];
    char folder[PATH_MAX];
    int64_t first = 0;
    params.n_workers = p->n_workers;
    (void)snprintf(folder, sizeof folder, "%s/job", root);
    GRV_TRY_GOTO(grv_batch_open(folder, &params, &batch));
    GRV_TRY_GOTO(grv_batch_source(batch, "take", &path, 1, "-O2", &function));
    const double begin = grv_clock_seconds();
    GRV_TRY_GOTO(grv_batch_broadcast(batch, value, &shared[0]));
    f->store_s = grv_clock_seconds() - begin;
    GRV_TRY_GOTO(grv_batch_broadcast(batch, value, &shared[1]));
    f->again_s = grv_clock_seconds() - begin - f->store_s;
    const grv_batch_column column = {.values = &shared[1]};
    const double mapped = grv_clock_seconds();
    GRV_TRY_GOTO(grv_batch_map(batch, function, p->n_tasks, &column, 1, &first));
    GRV_TRY_GOTO(grv_batch_wait(batch, HUGE_VAL));
    f->run_s = grv_clock_seconds() - mapped;
    GRV_TRY_GOTO(take_sums(batch, first, p->n_tasks, sum, f, correct));
    (void)snprintf(folder, sizeof folder, "%s/job/blobs", root);
    f->stored = bytes_below(folder);
done:
    grv_batch_close(&batch);
    return status;
}

static grv_status bench_broadcast(const grvi_batch_problem *p, const char *root, const char *path, grv_bench_result *result)
{
    const int64_t n = p->mebibytes << 17;
    int64_t *x = NULL, sum = 0;
    broadcast_figures f = {0};
    GRV_TRY(GRVI_ALLOC(&x, n));
    for (int64_t i = 0; i < n; i++) sum += x[i] = (int64_t)(grv_random_bits(1, 0, (uint64_t)i) >> 32);
    const grv_batch_value value = grv_batch_tensor(GRV_STORE_I64, 1, &n, x);
    const grv_status status = broadcast(p, root, path, &value, sum, &f, &result->correct);
    grv_free(x);
    GRV_TRY(status);
    /* once, but for the source and the little that a store adds */
    result->correct = result->correct && f.stored < 8 * n + (1 << 20);
    result->median_seconds = f.store_s;
    grv_bench_result_add(result, "again_seconds", f.again_s);
    grv_bench_result_add(result, "tasks_seconds", f.run_s);
    grv_bench_result_add(result, "value_bytes", (double)(8 * n));
    grv_bench_result_add(result, "stored_bytes", (double)f.stored);
    grv_bench_result_add(result, "read_bytes_per_worker", (double)f.n_read);
    grv_bench_result_add(result, "private_bytes_per_worker", (double)f.n_held);
    grv_bench_result_add(result, "driver_peak_bytes", (double)grv_memory_get().peak_bytes);
    return GRV_OK;
}

/* ---- Slurm ---- */

/* Does an allocation have a number of Slurm's already? What a ready task waits for says so. */
static grv_status is_accepted(grv_batch *batch, int64_t task, bool *accepted)
{
    grv_batch_task info;
    GRV_TRY(grv_batch_task_get(batch, task, &info));
    const char *const words = strstr(info.reason, "): ");
    *accepted = info.state != GRV_BATCH_READY || (words != NULL && words[3] >= '0' && words[3] <= '9');
    return GRV_OK;
}

static grv_status bench_slurm(const grvi_batch_problem *p, const char *root, const char *path, grv_bench_result *result)
{
    grv_status status = GRV_AGAIN;
    grv_batch *batch = NULL;
    grv_batch_params params = grv_batch_params_default();
    grv_batch_function function = 0;
    char folder[PATH_MAX];
    int64_t first = 0;
    double accepted_s = 0;
    params.executor = "slurm";
    params.slurm.workers_per_allocation = p->n_workers;
    params.slurm.max_allocations = 2;
    params.slurm.allocation_s = 600;
    params.slurm.poll_interval_s = 0.5;
    params.idle_s = 2;
    (void)snprintf(folder, sizeof folder, "%s/job", root);
    GRV_TRY_GOTO(grv_batch_open(folder, &params, &batch));
    GRV_TRY_GOTO(grv_batch_source(batch, "number", &path, 1, "-O1", &function));
    const double begin = grv_clock_seconds(), begin_unix = grvi_unix_time();
    GRV_TRY_GOTO(grv_batch_map(batch, function, p->n_tasks, NULL, 0, &first));
    const double submit_s = grv_clock_seconds() - begin;
    for (status = GRV_AGAIN; status == GRV_AGAIN;) {
        bool accepted = accepted_s > 0;
        status = grv_batch_wait(batch, accepted ? 1 : 0.005);
        if (status != GRV_OK && status != GRV_AGAIN) goto done;
        if (!accepted && is_accepted(batch, first + p->n_tasks - 1, &accepted) == GRV_OK && accepted) accepted_s = grv_clock_seconds() - begin;
    }
    result->median_seconds = accepted_s;
    grv_bench_result_add(result, "submit_seconds", submit_s);
    grv_bench_result_add(result, "first_task_seconds", grv_batch_counts_get(batch).first_start_s - begin_unix);
    grv_bench_result_add(result, "all_tasks_seconds", grv_clock_seconds() - begin);
    status = check_results(batch, p, first, &result->correct);
done:
    grv_batch_close(&batch);
    return status;
}

/* ---- all together ---- */

grv_status grv_bench_batch(const char *problem, const char *folder, grv_bench_result *result)
{
    grvi_batch_problem p;
    char root[PATH_MAX - 64], path[PATH_MAX];
    GRV_TRY(grvi_batch_problem_read(problem, &p, result));
    GRV_CHECK(p.kind != GRVI_BATCH_CAMPAIGN, GRV_E_ARG, "batch:campaign: grv_bench_campaign measures it");
    GRV_CHECK(p.kind != GRVI_BATCH_SLURM || folder != NULL, GRV_E_ARG, "a folder that all nodes see expected after '%.80s'", problem);
    GRV_TRY(grvi_bench_make_folder(folder, root, sizeof root));
    (void)snprintf(path, sizeof path, "%s/bench.c", root);
    grv_status status = grvi_fs_write_atomic(path, source, (int64_t)sizeof source - 1, false);
    if (status == GRV_OK)
        status = p.kind == GRVI_BATCH_BROADCAST ? bench_broadcast(&p, root, path, result)
                 : p.kind == GRVI_BATCH_SLURM   ? bench_slurm(&p, root, path, result)
                                                : bench_tasks(&p, root, path, result);
    const grv_status removed = grvi_fs_remove_tree(root);
    return status != GRV_OK ? status : removed;
}
