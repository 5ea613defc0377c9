/* grove batch run, resume and worker: driving a job. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "batch/task_here.h"
#include "cli/batch_cli.h"
#include "cli/batch_pool.h"
#include "core/fs.h"
#include "grove/core.h"

typedef struct run_config {
    char *job, *function, *args, *flags, *results;
    grv_string_list outputs;
    int64_t repeat;
    grvc_pool pool;
} run_config;

#define AT(field) offsetof(run_config, field)
#define AT_POOL(field) AT(pool.field)
#define RESULTS_OPTION \
    {.key = "results", .type = GRV_OPTION_STRING, .offset = AT(results), .fallback = "", .help = "CSV file for state, seconds and results of the tasks"}

static const grv_option run_options[] = {
    {.key = "job", .type = GRV_OPTION_STRING, .offset = AT(job), .help = "folder of the job; must not hold one yet"},
    {.key = "function", .type = GRV_OPTION_STRING, .offset = AT(function), .fallback = "", .help = "GRV_TASK(name) in the files; empty: the words are a program"},
    {.key = "flags", .type = GRV_OPTION_STRING, .offset = AT(flags), .fallback = "-O2 -march=native", .help = "for the workers' C compiler"},
    {.key = "args", .type = GRV_OPTION_STRING, .offset = AT(args), .fallback = "", .help = "CSV table: the first row names the columns, each other row is a task"},
    {.key = "repeat", .type = GRV_OPTION_I64, .offset = AT(repeat), .fallback = "1", .min = 1, .max = 1e9, .help = "tasks without a table"},
    {.key = "outputs", .type = GRV_OPTION_STRING_LIST, .offset = AT(outputs), .fallback = "[]", .help = "files that a program makes: its results"},
    GRVC_POOL_OPTIONS(AT_POOL, "local", "local or slurm"), RESULTS_OPTION};
static const grv_option resume_options[] = {GRVC_POOL_OPTIONS(AT_POOL, "", "local or slurm; empty: what the job had last"), RESULTS_OPTION};
static const grv_option_table run_table = {run_options, sizeof run_options / sizeof *run_options};
static const grv_option_table resume_table = {resume_options, sizeof resume_options / sizeof *resume_options};

/* ---- what is done with the results ---- */

static void append_field(grvi_text *out, const char *text)
{
    grvi_text_append(out, ",\"");
    for (; *text != '\0'; text++) grvi_text_append_n(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    grvi_text_append(out, "\"");
}

static void append_value(grvi_text *out, const grv_batch_value *v)
{
    char text[96];
    switch (v->kind) {
    case GRV_BATCH_I64: grvi_text_printf(out, ",%lld", (long long)v->i64); break;
    case GRV_BATCH_F64:
        grvi_text_append(out, ",");
        if (isfinite(v->f64)) grvi_text_append_double(out, v->f64);
        else grvi_text_append(out, isnan(v->f64) ? "nan" : v->f64 > 0 ? "inf" : "-inf");
        break;
    case GRV_BATCH_STRING: append_field(out, v->text); break;
    case GRV_BATCH_FILE: append_field(out, v->text); break;
    default:
        (void)snprintf(text, sizeof text, "tensor of %lld bytes", (long long)v->n_bytes);
        append_field(out, text);
    }
}

static grv_status append_row(grv_batch *batch, int64_t task, grvi_text *out)
{
    grv_batch_task info;
    GRV_TRY(grv_batch_task_get(batch, task, &info));
    const int n_results = info.n_results;
    grvi_text_printf(out, "%lld,%s,%d,%.6g", (long long)task, grv_batch_state_name(info.state), info.attempts,
                     info.ended_s > 0 ? info.ended_s - info.started_s : 0);
    append_field(out, info.state == GRV_BATCH_DONE ? "" : info.reason);
    for (int i = 0; i < n_results; i++) {
        grv_batch_value value;
        GRV_TRY(grv_batch_fetch(batch, task, i, &value));
        append_value(out, &value);
        grv_batch_value_fini(&value);
    }
    grvi_text_append(out, "\n");
    return grvi_text_status(out);
}

static grv_status write_results(grv_batch *batch, const char *path)
{
    grvi_text out = {0};
    grv_status status = GRV_OK;
    const int64_t n = grv_batch_counts_get(batch).n_tasks;
    grvi_text_append(&out, "task,state,attempts,seconds,reason,results\n");
    for (int64_t t = 0; t < n && status == GRV_OK; t++) status = append_row(batch, t, &out);
    if (status == GRV_OK) status = grvi_fs_write_atomic(path, out.data, out.n, false);
    grvi_text_fini(&out);
    return status;
}

static grv_status print_failures(grv_batch *batch)
{
    enum { MOST = 5 };
    int n = 0;
    const grv_batch_counts counts = grv_batch_counts_get(batch);
    for (int64_t t = 0; t < counts.n_tasks && n < MOST; t++) {
        grv_batch_task info;
        GRV_TRY(grv_batch_task_get(batch, t, &info));
        if (info.state != GRV_BATCH_FAILED) continue;
        (void)fprintf(stderr, "task %lld failed after %d attempt%s: %s\n", (long long)t, info.attempts, info.attempts == 1 ? "" : "s", info.reason);
        n++;
    }
    if (counts.n[GRV_BATCH_FAILED] > n) (void)fprintf(stderr, "... and %lld more\n", (long long)(counts.n[GRV_BATCH_FAILED] - n));
    return GRV_OK;
}

/* A driver has two files open for each worker. */
static void allow_many_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

/* Drives to the end, or until Ctrl-C; the job stays. */
static grv_status drive(const grvc_session *session, grv_batch *batch, const char *folder, const run_config *config)
{
    grv_status status = GRV_AGAIN;
    grv_progress progress;
    grv_batch_counts counts = grv_batch_counts_get(batch);
    allow_many_files();
    grvc_interrupt_install();
    grv_progress_begin(&progress, session->log, "batch", "tasks", counts.n_tasks);
    grv_progress_skip(&progress, counts.n[GRV_BATCH_DONE] + counts.n[GRV_BATCH_FAILED] + counts.n[GRV_BATCH_CANCELLED]);
    while (status == GRV_AGAIN && !grvc_interrupted()) {
        status = grv_batch_wait(batch, 0.2);
        grv_batch_show(batch, &progress);
    }
    counts = grv_batch_counts_get(batch);
    grv_progress_end(&progress);
    GRV_CHECK(status != GRV_AGAIN, GRV_E_INTERRUPTED, "`grove batch resume %s` goes on", folder);
    GRV_TRY(status);
    if (config->results[0] != '\0') GRV_TRY(write_results(batch, config->results));
    if (session->json) {
        grvi_text text = {0};
        grvi_json_writer w = {.out = &text, .pretty = true};
        grvi_json_begin_object(&w);
        grvc_batch_json_counts(&w, &counts);
        grvi_json_end_object(&w);
        (void)printf("%s\n", grvi_text_get(&text));
        status = grvi_text_status(&text);
        grvi_text_fini(&text);
    } else {
        grvc_batch_print_counts(&counts);
    }
    GRV_TRY(status);
    GRV_TRY(print_failures(batch));
    GRV_CHECK(counts.n[GRV_BATCH_FAILED] == 0, GRV_E_NUMERIC, "%lld of %lld tasks failed; `grove batch logs %s TASK` shows what they printed",
              (long long)counts.n[GRV_BATCH_FAILED], (long long)counts.n_tasks, folder);
    return GRV_OK;
}

static bool has_suffix(const char *name, const char *suffix)
{
    const size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcmp(name + n - m, suffix) == 0;
}

static bool is_object(const grvc_session *session) { return session->n_words == 1 && has_suffix(session->words[0], ".so"); }

/* A program with a slash in its name is taken from here: tasks run in folders of their own. */
static grv_status make_program(const grvc_session *session, const run_config *c, grv_batch *batch, grv_batch_function *function)
{
    char whole[PATH_MAX];
    char *const given = session->words[0];
    if (given[0] != '/' && strchr(given, '/') != NULL) {
        GRV_CHECK(realpath(given, whole) != NULL && access(whole, X_OK) == 0, GRV_E_NOT_FOUND, "program %s: %s", given, strerror(errno));
        session->words[0] = whole;
    }
    const grv_status status = grv_batch_program(batch, (const char *const *)session->words, session->n_words, (const char *const *)c->outputs.at,
                                                c->outputs.n, function);
    session->words[0] = given;
    return status;
}

/* Workers of this machine compile as this process does: what does not compile is told before anything is begun. */
static grv_status check_code(const grvc_session *session, const run_config *c)
{
    void (*call)(struct grv_task *) = NULL;
    if (strcmp(c->pool.executor, "local") != 0) return GRV_OK;
    return grvi_task_here_load(c->function, (const char *const *)session->words, session->n_words, c->flags, &call);
}

static grv_status make_function(const grvc_session *session, const run_config *c, grv_batch *batch, grv_batch_function *function)
{
    const char *const *const words = (const char *const *)session->words;
    if (c->function[0] == '\0') {
        GRV_CHECK(!has_suffix(words[0], ".c"), GRV_E_CONFIG, "function: the name of a GRV_TASK in %s expected", words[0]);
        return make_program(session, c, batch, function);
    }
    GRV_CHECK(c->outputs.n == 0, GRV_E_CONFIG, "outputs: of a program only; a function returns its results");
    GRV_TRY(check_code(session, c));
    if (is_object(session)) return grv_batch_object(batch, c->function, words[0], function);
    return grv_batch_source(batch, c->function, words, session->n_words, c->flags, function);
}

static grv_status submit(const grvc_session *session, const run_config *c, grv_batch *batch)
{
    grvc_batch_table table = {0};
    grv_batch_column columns[GRV_BATCH_MAX_VALUES];
    grv_batch_function function = 0;
    int64_t first = 0;
    grv_status status = GRV_OK;
    GRV_CHECK_GOTO(grv_batch_counts_get(batch).n_tasks == 0, GRV_E_EXISTS,
                   "%s holds a job already: `grove batch resume %s` goes on with it, `grove batch clean %s` deletes it", c->job, c->job, c->job);
    if (c->args[0] != '\0') GRV_TRY_GOTO(grvc_batch_table_read(c->args, c->function[0] != '\0', &table));
    GRV_TRY_GOTO(make_function(session, c, batch, &function));
    for (int i = 0; i < table.n_columns; i++) columns[i] = (grv_batch_column){table.columns + i * table.n_rows, true};
    GRV_TRY_GOTO(grv_batch_map(batch, function, table.n_columns > 0 ? table.n_rows : c->repeat, columns, table.n_columns, &first));
done:
    grvc_batch_table_fini(&table);
    return status;
}

/* Told before the tasks run, not after. */
static grv_status check_results_path(const char *path)
{
    char folder[PATH_MAX];
    const int n = (int)(grvi_fs_base_name(path) - path);
    (void)snprintf(folder, sizeof folder, "%.*s", n > 0 ? n : 2, n > 0 ? path : "./");
    GRV_CHECK(path[0] == '\0' || access(folder, W_OK) == 0, GRV_E_CONFIG, "results=%s: %s", path, strerror(errno));
    GRV_CHECK(!grvi_fs_is_directory(path), GRV_E_CONFIG, "results=%s: a file expected, it is a folder", path);
    return GRV_OK;
}

static grv_status run(const grvc_session *session, const run_config *c)
{
    grv_batch *batch = NULL;
    const grv_batch_params params = grvc_pool_params(&c->pool, session->log);
    GRV_TRY(check_results_path(c->results));
    GRV_TRY(grv_batch_open(c->job, &params, &batch));
    grv_status status = submit(session, c, batch);
    if (status == GRV_OK) status = drive(session, batch, c->job, c);
    grv_batch_close(&batch);
    return status;
}

int grvc_batch_run(int argc, char **argv)
{
    run_config config = {0};
    grvc_session session = {.name = "grove batch run",
                            .about = "Runs a task for each row of a table and waits for all.\n"
                                     "  grove batch run area.c function=area args=radii.csv job=runs/areas\n"
                                     "  grove batch run args=cases.csv outputs=out.txt job=runs/cases -- solver --case {0} --out out.txt\n"
                                     "Fields of the table are numbers, text, or file:PATH; a program gets them as they are written. Ctrl-C leaves a job that can be resumed.",
                            .words_usage = "FILE... | [--] PROGRAM [ARGUMENT]...",
                            .min_words = 1,
                            .max_words = 1000,
                            .table = &run_table,
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session, &config));
}

static grv_status resume(const grvc_session *session, const run_config *c)
{
    grv_batch *batch = NULL;
    const grv_batch_params params = grvc_pool_params(&c->pool, session->log);
    GRV_TRY(check_results_path(c->results));
    GRV_TRY(grv_batch_look(session->words[0], &batch)); /* it must be there */
    const int64_t n_tasks = grv_batch_counts_get(batch).n_tasks;
    grv_batch_close(&batch);
    GRV_CHECK(n_tasks > 0, GRV_E_NOT_FOUND, "no tasks in %s: what was to put them there was stopped before it had; call it again", session->words[0]);
    GRV_TRY(grv_batch_open(session->words[0], &params, &batch));
    const grv_status status = drive(session, batch, session->words[0], c);
    grv_batch_close(&batch);
    return status;
}

int grvc_batch_resume(int argc, char **argv)
{
    run_config config = {0};
    grvc_session session = {.name = "grove batch resume",
                            .about = "Goes on with a job until all of its tasks have ended.",
                            .words_usage = "JOB",
                            .min_words = 1,
                            .max_words = 1,
                            .table = &resume_table,
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, resume(&session, &config));
}

/* ---- for the engine itself ---- */

static bool parse_number(const char *word, long *number)
{
    char *end = NULL;
    errno = 0;
    *number = strtol(word, &end, 10);
    return errno == 0 && end != word && *end == '\0' && *number >= 0;
}

static bool parse_numbers(char **words, int n, long *numbers)
{
    for (int i = 0; i < n; i++)
        if (!parse_number(words[i], &numbers[i])) return false;
    return true;
}

int grvc_batch_worker(int argc, char **argv)
{
    long numbers[2] = {0, 0};
    if (argc < 3 || argc > 5 || !parse_numbers(argv + 2, argc > 3 ? 2 : 1, numbers) || numbers[0] > INT_MAX) {
        (void)fprintf(stderr, "usage: grove batch worker JOB NUMBER [END [BEFORE]] (the engine starts workers itself)\n");
        return GRVC_EXIT_USAGE;
    }
    (void)signal(SIGINT, SIG_IGN);
    if (grv_batch_worker(argv[1], (int)numbers[0], (double)numbers[1], argc == 5 ? argv[4] : NULL) == GRV_OK) return GRVC_EXIT_OK;
    grvc_print_error("grove batch worker", false);
    return GRVC_EXIT_FAILED;
}

/* Of `count` workers from `first` on, each node has `each`; which node this is, Slurm says. */
int grvc_batch_node(int argc, char **argv)
{
    long n[4], node = 0;
    const char *const which = getenv("SLURM_PROCID");
    if (argc != 6 || !parse_numbers(argv + 2, 4, n) || n[0] > INT_MAX || n[1] > INT_MAX || (which != NULL && !parse_number(which, &node))) {
        (void)fprintf(stderr, "usage: grove batch node JOB FIRST COUNT EACH END (the engine starts workers itself)\n");
        return GRVC_EXIT_USAGE;
    }
    const long skipped = node * n[2], left = n[1] - skipped;
    if (left <= 0) return GRVC_EXIT_OK;
    if (grv_batch_node(argv[1], (int)(n[0] + skipped), (int)(left < n[2] ? left : n[2]), (double)n[3]) == GRV_OK) return GRVC_EXIT_OK;
    grvc_print_error("grove batch node", false);
    return GRVC_EXIT_FAILED;
}
