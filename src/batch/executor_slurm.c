/* Workers in allocations of Slurm. An allocation is a Slurm job that starts several workers and ends when they have left.
 *
 * Its handle holds the name of the Slurm job, which is made up before sbatch is called and is in the journal by then: whatever happens to the driver, a
 * later one finds the job by its name, or does not find it and knows that its workers are no more. sbatch and squeue run beside the driver; one squeue tells
 * about all allocations, and a job that it does not list has ended. */
#define _DEFAULT_SOURCE /* getentropy */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "batch/batch_impl.h"
#include "batch/command.h"
#include "batch/grove_program.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

/* seconds: most for an answer, after a failure, between two failures that are waited for, until failures without any success count, for scancel */
static const double answer_s = 60, pause_least_s = 1, pause_most_s = 60, hopeless_s = 120,
                    cancel_s = 20;
static const char handle_prefix[] = "slurm ";
enum { FAILED_STARTS_MOST = 3 };

/* $0 is a copy that Slurm made. Nothing of a job's name stands in the text: all comes as arguments. With several nodes srun starts a process on each; its
 * own session keeps signals to the batch script away from it, the processes get them directly. */
static const char script[] =
    "#!/bin/sh\n"
    "# One allocation of a job of grove: starts its workers. Arguments: the job's folder, the log, "
    "the program grove, seconds,\n"
    "# nodes, cores of a node, first worker, workers, workers of a node.\n"
    "umask 077\n"
    "if [ \"${SLURM_RESTART_COUNT:-0}\" -gt 0 ]; then exit 1; fi\n" /* its workers have been given up */
    "job=$1 log=$2 program=$3 seconds=$4 nodes=$5 cores=$6 first=$7 workers=$8 each=$9\n"
    "exec </dev/null >>\"$log\" 2>&1\n"
    "end=$(($(date +%s) + seconds))\n"
    "if [ \"${SLURM_JOB_END_TIME:-$end}\" -lt \"$end\" ]; then end=$SLURM_JOB_END_TIME; fi\n"
    "set -- \"$program\" batch node \"$job\" \"$first\" \"$workers\" \"$each\" \"$end\"\n"
    "if [ \"$nodes\" -eq 1 ]; then exec \"$@\"; fi\n"
    "trap : TERM\n"
    "setsid srun --nodes=\"$nodes\" --ntasks=\"$nodes\" --ntasks-per-node=1 "
    "--cpus-per-task=\"$cores\" --kill-on-bad-exit=1 --wait=0 \"$@\" &\n"
    "while kill -0 $! 2>/dev/null; do wait $!; done\n";

typedef enum allocation_state {
    NEW,       /* sbatch has not been called */
    SUBMITTED, /* it has; or an earlier driver called it: no list has shown the job yet */
    QUEUED,
    RUNNING,
    ENDED
} allocation_state;

typedef struct allocation {
    char *name;  /* of the Slurm job */
    char *words; /* the scheduler's: number, state and reason */
    allocation_state state;
    int first, n;   /* workers */
    double known_s; /* lists that were asked for before this say nothing about it */
    bool was_listed;
    bool has_begun;  /* a worker said hello */
    bool is_excused; /* that none did says nothing */
} allocation;

typedef struct executor_slurm {
    grvi_executor base;
    char *folder, *program, *label;
    grv_log *log;
    grv_batch_params params; /* numbers */
    char **options;          /* [n_options] of sbatch, the same for all allocations */
    int n_options;
    int n, submitting; /* submitting: of `sbatch` */
    allocation *allocations;
    grvi_command sbatch, squeue;
    double submit_s, list_s;             /* clock: not before */
    double listed_s;                     /* when the running squeue was called */
    double submit_pause_s, list_pause_s; /* after failures */
    double first_failure_s;              /* of sbatch since it last worked; 0: none */
    char *trouble;                       /* what the last call that failed said */
    bool has_news;                       /* for the file `scheduler` */
} executor_slurm;

/* ---- allocations ---- */

static bool is_open(const allocation *a)
{
    return a->state != ENDED;
}

static allocation *find_allocation(executor_slurm *e, const char *handle)
{
    const char *const name = handle + sizeof handle_prefix - 1;
    for (int i = e->n - 1; i >= 0; i--)
        if (strcmp(e->allocations[i].name, name) == 0) return &e->allocations[i];
    return NULL;
}

static grv_status add_allocation(executor_slurm *e, const char *name, allocation_state state,
                                 int first, int n)
{
    GRV_TRY(GRVI_REALLOC(&e->allocations, e->n + 1));
    e->allocations[e->n] =
        (allocation){.state = state, .first = first, .n = n, .known_s = grv_clock_seconds()};
    GRV_TRY(grvi_strdup(name, &e->allocations[e->n].name));
    e->n++;
    e->has_news = true;
    return GRV_OK;
}

static void set_text(char **text, const char *new)
{
    char *copy = NULL;
    if (*text != NULL && strcmp(*text, new) == 0) return;
    if (grvi_strdup(new, &copy) != GRV_OK) return; /* words for people: the old ones stay */
    grv_free(*text);
    *text = copy;
}

static void set_state(executor_slurm *e, allocation *a, allocation_state state, const char *words)
{
    e->has_news =
        e->has_news || a->state != state || a->words == NULL || strcmp(a->words, words) != 0;
    a->state = state;
    set_text(&a->words, words);
}

static grv_status log_path(const executor_slurm *e, const char *name, char **path)
{
    grvi_text text = {0};
    grvi_text_printf(&text, "%s/allocations/%s.log", e->folder, name);
    *path = text.data;
    return grvi_text_status(&text);
}

/* What `grove batch explain` shows: the scheduler's own words on what is open, and the last trouble. */
static grv_status write_news(executor_slurm *e)
{
    char *path = NULL;
    grvi_text out = {0};
    char when[32] = "";
    struct tm parts;
    const time_t now = time(NULL);
    if (!e->has_news) return GRV_OK;
    e->has_news = false;
    if (gmtime_r(&now, &parts) != NULL)
        (void)strftime(when, sizeof when, "%Y-%m-%d %H:%M:%SZ", &parts);
    for (int i = 0; i < e->n; i++) {
        const allocation *const a = &e->allocations[i];
        if (!is_open(a)) continue;
        grvi_text_printf(&out, "Slurm at %s: allocation %s", when, a->name);
        if (a->n > 0) grvi_text_printf(&out, " (workers %d to %d)", a->first, a->first + a->n - 1);
        grvi_text_printf(&out, ": %s\n",
                         a->words != NULL  ? a->words
                         : a->state == NEW ? "not submitted yet"
                                           : "submitted");
    }
    if (e->trouble != NULL && e->trouble[0] != '\0')
        grvi_text_printf(&out, "Slurm at %s: %s\n", when, e->trouble);
    grv_status status = grvi_text_status(&out);
    if (status == GRV_OK) status = grvi_fs_join(e->folder, "scheduler", &path);
    if (status == GRV_OK) status = grvi_fs_write_atomic(path, grvi_text_get(&out), out.n, false);
    grv_free(path);
    grvi_text_fini(&out);
    return status;
}

/* Why it is no more: the end of its log, too, where the nodes say that the program cannot be run there. */
static void append_end(const executor_slurm *e, const allocation *a, grvi_text *out)
{
    enum { MOST = 400 };
    char *path = NULL, *text = NULL;
    int64_t n = 0;
    grvi_text_append(out, a->words != NULL ? a->words : "its allocation has ended");
    if (log_path(e, a->name, &path) == GRV_OK && !grvi_fs_exists(path))
        grvi_text_append(out, "; it left no log: it never ran, or its node does not see the job's "
                              "folder by this path");
    else if (path != NULL && grvi_fs_read(path, (int64_t)16 << 20, &text, &n) == GRV_OK) {
        while (n > 0 && isspace((unsigned char)text[n - 1])) n--;
        if (n > 0) grvi_text_append(out, "; its log ends: ");
        if (n > 0) grvi_text_append_n(out, text + (n > MOST ? n - MOST : 0), n > MOST ? MOST : n);
    }
    grv_free(text);
    grv_free(path);
}

/* ---- sbatch ---- */

static bool is_one_task(const executor_slurm *e)
{
    return e->params.nodes_per_task > 0;
}
static int cores_of(const executor_slurm *e)
{
    return e->params.cores_per_task > 0 ? e->params.cores_per_task : 1;
}

/* Grows a NULL-terminated list. */
__attribute__((format(printf, 3, 4))) static grv_status add_argument(char ***list, int *n,
                                                                     const char *format, ...)
{
    va_list arguments;
    int length = 0;
    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    GRV_TRY(GRVI_REALLOC(list, *n + 2));
    (*list)[*n] = (*list)[*n + 1] = NULL;
    GRV_TRY(GRVI_ALLOC(&(*list)[*n], length + 1));
    va_start(arguments, format);
    (void)vsnprintf((*list)[*n], (size_t)length + 1, format, arguments);
    va_end(arguments);
    (*n)++;
    return GRV_OK;
}

static void free_list(char **list, int n)
{
    for (int i = 0; i < n; i++) grv_free(list[i]);
    grv_free(list);
}

static grv_status make_options(executor_slurm *e, const grv_batch_slurm *s)
{
    const int64_t seconds = (int64_t)ceil(s->allocation_s);
    static const char *const fixed[] = {"sbatch", "--parsable", "--no-requeue",
                                        "--output=/dev/null"};
    for (int i = 0; i < 4; i++) GRV_TRY(add_argument(&e->options, &e->n_options, "%s", fixed[i]));
    GRV_TRY(add_argument(&e->options, &e->n_options, "--time=%lld:%02lld",
                         (long long)(seconds / 60), (long long)(seconds % 60)));
    if (s->partition != NULL && s->partition[0] != '\0')
        GRV_TRY(add_argument(&e->options, &e->n_options, "--partition=%s", s->partition));
    if (s->account != NULL && s->account[0] != '\0')
        GRV_TRY(add_argument(&e->options, &e->n_options, "--account=%s", s->account));
    for (int i = 0; i < s->n_sbatch_args; i++)
        GRV_TRY(add_argument(&e->options, &e->n_options, "%s", s->sbatch_args[i]));
    return GRV_OK;
}

/* Nodes that n workers are spread over, and how many of them a node has. */
static void spread(const executor_slurm *e, int n, int *nodes, int *each)
{
    const grv_batch_slurm *const s = &e->params.slurm;
    *each = (int)grvi_ceil_div(s->workers_per_allocation, s->nodes_per_allocation);
    *nodes = (int)grvi_ceil_div(n, *each);
    if (*nodes == 1) *each = n;
}

static grv_status add_size(const executor_slurm *e, const allocation *a, char ***argv, int *argc)
{
    /* the worker itself needs little; what the site does not enforce, the worker watches */
    const int64_t mib = grvi_ceil_div(e->params.memory_per_task, (int64_t)1 << 20) + 64;
    int nodes = 1, each = 1;
    spread(e, a->n, &nodes, &each);
    if (is_one_task(e)) {
        GRV_TRY(add_argument(argv, argc, "--nodes=%d", e->params.nodes_per_task));
        GRV_TRY(add_argument(argv, argc, "--ntasks=%d", e->params.ranks_per_task));
        return add_argument(argv, argc, "--cpus-per-task=%d", cores_of(e));
    }
    GRV_TRY(add_argument(argv, argc, "--nodes=%d", nodes));
    GRV_TRY(add_argument(argv, argc, "--ntasks-per-node=1"));
    GRV_TRY(add_argument(argv, argc, "--cpus-per-task=%d", each * cores_of(e)));
    if (e->params.memory_per_task > 0)
        GRV_TRY(add_argument(argv, argc, "--mem=%lldM", (long long)(each * mib)));
    return GRV_OK;
}

static grv_status submit(executor_slurm *e, int number)
{
    allocation *const a = &e->allocations[number];
    char **argv = NULL, *path = NULL, *log = NULL;
    int argc = 0, nodes = 1, each = 1;
    grv_status status = GRV_OK;
    spread(e, a->n, &nodes, &each);
    for (int i = 0; i < e->n_options; i++)
        GRV_TRY_GOTO(add_argument(&argv, &argc, "%s", e->options[i]));
    GRV_TRY_GOTO(add_size(e, a, &argv, &argc));
    GRV_TRY_GOTO(add_argument(&argv, &argc, "--job-name=%s", a->name));
    GRV_TRY_GOTO(grvi_fs_join(e->folder, "allocations/run.sh", &path));
    GRV_TRY_GOTO(log_path(e, a->name, &log));
    const char *const words[] = {path, e->folder, log, e->program};
    for (int i = 0; i < 4; i++) GRV_TRY_GOTO(add_argument(&argv, &argc, "%s", words[i]));
    const long long numbers[] = {(long long)ceil(e->params.slurm.allocation_s),
                                 nodes,
                                 (long long)each * cores_of(e),
                                 a->first,
                                 a->n,
                                 each};
    for (int i = 0; i < 6; i++) GRV_TRY_GOTO(add_argument(&argv, &argc, "%lld", numbers[i]));
    a->state = SUBMITTED;
    e->submitting = number;
    e->submit_s = grv_clock_seconds() + e->params.slurm.submit_interval_s;
    GRV_TRY_GOTO(grvi_command_start(&e->sbatch, argv));
done:
    if (status != GRV_OK) a->state = NEW;
    free_list(argv, argc);
    grv_free(path);
    grv_free(log);
    return status;
}

static bool has_one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strstr(text, *words) != NULL) return true;
    return false;
}

/* The answer is missing: Slurm may have the job. */
static bool is_doubtful(const char *messages)
{
    static const char *const words[] = {"timed out", "no answer in", "Zero Bytes were",
                                        "Connection reset", NULL};
    return has_one_of(messages, words);
}

/* Failures that may pass; what a site refuses, it will refuse again. */
static bool may_pass(const char *messages)
{
    static const char *const words[] = {"Unable to contact", "temporarily",  "Connection refused",
                                        "try again",         "ommunication", NULL};
    return is_doubtful(messages) || has_one_of(messages, words);
}

/* sbatch has failed: tried again later while there is hope, or while other allocations run (a site may allow no more of them now). */
static grv_status take_refusal(executor_slurm *e, allocation *a)
{
    const double now = grv_clock_seconds();
    int n_others = 0;
    set_text(&e->trouble, grvi_command_messages(&e->sbatch));
    /* never submitted twice, as the workers of both would have the same numbers: the next list tells whether it is there */
    a->is_excused = is_doubtful(e->trouble);
    a->state = a->is_excused ? SUBMITTED : NEW;
    e->has_news = true;
    if (e->first_failure_s <= 0) e->first_failure_s = now;
    e->submit_pause_s = fmin(pause_most_s, fmax(pause_least_s, 2 * e->submit_pause_s));
    e->submit_s = now + e->submit_pause_s;
    for (int i = 0; i < e->n; i++)
        n_others += e->allocations[i].state == RUNNING || e->allocations[i].state == QUEUED;
    grv_log_message(e->log, GRV_LOG_WARN, "sbatch failed: %s", e->trouble);
    if (n_others > 0 || (may_pass(e->trouble) && now - e->first_failure_s < hopeless_s))
        return GRV_OK;
    GRV_TRY(write_news(e));
    GRV_FAIL(GRV_E_IO, "Slurm takes no allocation: %s", e->trouble);
}

static grv_status take_submission(executor_slurm *e)
{
    char words[64];
    allocation *const a = &e->allocations[e->submitting];
    if (e->sbatch.pid == 0 || !grvi_command_has_ended(&e->sbatch, answer_s)) return GRV_OK;
    const char *const id = grvi_text_get(&e->sbatch.text[0]); /* NUMBER or NUMBER;CLUSTER */
    a->known_s = grv_clock_seconds();
    if (e->sbatch.code != 0) return take_refusal(e, a);
    (void)snprintf(words, sizeof words, "%.*s submitted", (int)strspn(id, "0123456789"), id);
    set_state(e, a, a->state == SUBMITTED ? QUEUED : a->state, words);
    e->submit_pause_s = e->first_failure_s = 0;
    set_text(&e->trouble, "");
    return GRV_OK;
}

static grv_status submit_next(executor_slurm *e)
{
    if (e->sbatch.pid > 0 || grv_clock_seconds() < e->submit_s) return GRV_OK;
    for (int i = 0; i < e->n; i++)
        if (e->allocations[i].state == NEW) return submit(e, i);
    return GRV_OK;
}

/* ---- squeue ---- */

/* One line of the list: number, state, name, reason. */
static void take_line(executor_slurm *e, char *line)
{
    char *rest = line, *fields[3], words[256];
    for (int i = 0; i < 3; i++) {
        fields[i] = rest + strspn(rest, " ");
        rest = fields[i] + strcspn(fields[i], " ");
        if (*rest == '\0') return;
        *rest++ = '\0';
    }
    for (int i = 0; i < e->n; i++) {
        allocation *const a = &e->allocations[i];
        if (!is_open(a) || strcmp(a->name, fields[2]) != 0) continue;
        const bool is_queued =
            strcmp(fields[1], "PENDING") == 0 || strcmp(fields[1], "CONFIGURING") == 0;
        (void)snprintf(words, sizeof words, "%s %s, %s", fields[0], fields[1],
                       rest + strspn(rest, " "));
        set_state(e, a, is_queued && a->state != RUNNING ? QUEUED : RUNNING, words);
        a->was_listed = true;
    }
}

static void take_list(executor_slurm *e)
{
    char *rest = e->squeue.text[0].data;
    for (int i = 0; i < e->n; i++) e->allocations[i].was_listed = false;
    while (rest != NULL && *rest != '\0') {
        char *const line = rest;
        rest += strcspn(rest, "\n");
        if (*rest != '\0') *rest++ = '\0';
        take_line(e, line);
    }
    for (int i = 0; i < e->n; i++) {
        allocation *const a = &e->allocations[i];
        if (a->state != NEW && is_open(a) && !a->was_listed && a->known_s < e->listed_s &&
            (e->sbatch.pid == 0 || e->submitting != i))
            set_state(e, a, ENDED, "Slurm lists its allocation no longer");
    }
}

/* What runs is not disturbed by a scheduler that does not answer: it is asked again, less and less often. */
static void note_list_failure(executor_slurm *e, const char *messages)
{
    if (e->list_pause_s <= 0) grv_log_message(e->log, GRV_LOG_WARN, "squeue failed: %s", messages);
    set_text(&e->trouble, messages);
    e->has_news = true;
    e->list_pause_s = fmin(pause_most_s, fmax(pause_least_s, 2 * e->list_pause_s));
    e->list_s = grv_clock_seconds() + fmax(e->params.slurm.poll_interval_s, e->list_pause_s);
}

static void poll_list(executor_slurm *e)
{
    char user[32], squeue[] = "squeue", no_header[] = "--noheader",
                   format[] = "--format=%i %T %j %r";
    char *const argv[] = {squeue, no_header, user, format, NULL};
    const double now = grv_clock_seconds();
    bool is_wanted = false;
    if (e->squeue.pid > 0) {
        if (!grvi_command_has_ended(&e->squeue, answer_s)) return;
        if (e->squeue.code == 0) {
            take_list(e);
            if (e->list_pause_s > 0) set_text(&e->trouble, "");
            e->list_pause_s = 0;
            e->list_s = now + e->params.slurm.poll_interval_s;
        } else {
            note_list_failure(e, grvi_command_messages(&e->squeue));
        }
    }
    for (int i = 0; i < e->n; i++)
        is_wanted = is_wanted || (is_open(&e->allocations[i]) && e->allocations[i].state != NEW);
    if (!is_wanted || now < e->list_s) return;
    (void)snprintf(user, sizeof user, "--user=%ld", (long)getuid());
    e->listed_s = now;
    if (grvi_command_start(&e->squeue, argv) != GRV_OK) note_list_failure(e, grv_error_message());
}

/* Allocations in a row that ended before a worker began: the next one would, too. */
static grv_status check_starts(executor_slurm *e)
{
    int n_failed = 0;
    allocation *last = NULL;
    grvi_text why = {0};
    for (int i = e->n - 1; i >= 0 && !e->allocations[i].has_begun; i--) {
        if (is_open(&e->allocations[i]) || e->allocations[i].is_excused) continue;
        if (last == NULL) last = &e->allocations[i];
        n_failed++;
    }
    if (n_failed < FAILED_STARTS_MOST) return GRV_OK;
    for (int i = 0; i < e->n; i++) e->allocations[i].is_excused = true; /* told now */
    append_end(e, last, &why);
    const grv_status status =
        grvi_fail(GRV_E_IO, __FILE__, __LINE__, __func__,
                  "%d allocations in a row ended before a worker began; the last, %s: %s", n_failed,
                  last->name, grvi_text_get(&why));
    grvi_text_fini(&why);
    return status;
}

static grv_status slurm_poll(grvi_executor *executor)
{
    executor_slurm *const e = (executor_slurm *)executor;
    GRV_TRY(check_starts(e)); /* before a new list: what the workers of ended ones said is read by now */
    GRV_TRY(take_submission(e));
    GRV_TRY(submit_next(e));
    poll_list(e);
    return write_news(e);
}

/* ---- what the driver asks for ---- */

static int slurm_room(grvi_executor *executor, int wanted)
{
    const executor_slurm *const e = (const executor_slurm *)executor;
    int n_open = 0, n_queued = 0;
    for (int i = 0; i < e->n; i++) {
        n_open += is_open(&e->allocations[i]);
        n_queued += is_open(&e->allocations[i]) && e->allocations[i].state != RUNNING;
    }
    if (n_open >= e->params.slurm.max_allocations || n_queued >= e->params.slurm.max_queued)
        return 0;
    return (int)grvi_min_i64(wanted, e->params.slurm.workers_per_allocation);
}

/* The job is submitted by the next poll: then the journal knows of it. */
static grv_status slurm_start(grvi_executor *executor, int first, int n, char **handle)
{
    executor_slurm *const e = (executor_slurm *)executor;
    uint64_t bits = 0;
    grvi_text text = {0};
    GRV_CHECK(getentropy(&bits, sizeof bits) == 0, GRV_E_IO, "random bits: %s", strerror(errno));
    grvi_text_printf(&text, "%sgrove.%s.%016llx", handle_prefix, e->label,
                     (unsigned long long)bits);
    grv_status status = grvi_text_status(&text);
    if (status == GRV_OK)
        status = add_allocation(e, text.data + sizeof handle_prefix - 1, NEW, first, n);
    if (status == GRV_OK)
        *handle = text.data;
    else
        grvi_text_fini(&text);
    return status;
}

static bool slurm_is_alive(grvi_executor *executor, const char *handle, int number, grvi_text *why)
{
    executor_slurm *const e = (executor_slurm *)executor;
    allocation *const a = find_allocation(e, handle);
    char *path = NULL, *text = NULL;
    grvi_text name = {0};
    int64_t n = 0;
    bool has_ended = false;
    if (a == NULL) { /* of an earlier driver: the next list tells */
        if (add_allocation(e, handle + sizeof handle_prefix - 1, SUBMITTED, number, 0) == GRV_OK)
            e->allocations[e->n - 1].is_excused = true;
        return true;
    }
    if (!is_open(a)) {
        append_end(e, a, why);
        return false;
    }
    grvi_text_printf(&name, "workers/%d/ended", number);
    if (grvi_text_status(&name) == GRV_OK && grvi_fs_join(e->folder, name.data, &path) == GRV_OK &&
        access(path, F_OK) == 0)
        has_ended = grvi_fs_read(path, 4096, &text, &n) == GRV_OK;
    if (has_ended) grvi_text_append(why, text);
    grv_free(text);
    grv_free(path);
    grvi_text_fini(&name);
    return !has_ended;
}

static void slurm_has_begun(grvi_executor *executor, const char *handle)
{
    executor_slurm *const e = (executor_slurm *)executor;
    allocation *const a = find_allocation(e, handle);
    if (a != NULL) a->has_begun = true;
    if (a != NULL && is_open(a) && a->state != RUNNING)
        set_state(e, a, RUNNING, a->words != NULL ? a->words : "running");
}

/* scancel, for jobs of one name; with up to two options. */
static void cancel(executor_slurm *e, const allocation *a, const char *first, const char *second)
{
    char **argv = NULL;
    int n = 0;
    grv_status status = add_argument(&argv, &n, "scancel");
    if (status == GRV_OK) status = add_argument(&argv, &n, "--user=%ld", (long)getuid());
    if (status == GRV_OK) status = add_argument(&argv, &n, "--name=%s", a->name);
    if (status == GRV_OK && first != NULL) status = add_argument(&argv, &n, "%s", first);
    if (status == GRV_OK && second != NULL) status = add_argument(&argv, &n, "%s", second);
    if (status == GRV_OK) status = grvi_command_run(argv, cancel_s);
    if (status != GRV_OK) grv_log_message(e->log, GRV_LOG_WARN, "%s", grv_error_message());
    free_list(argv, n);
}

/* One worker is not to be had alone; the others of its allocation lose their task, which runs again. */
static void slurm_kill(grvi_executor *executor, const char *handle)
{
    executor_slurm *const e = (executor_slurm *)executor;
    allocation *const a = find_allocation(e, handle);
    if (a == NULL || !is_open(a)) return;
    if (a->state != NEW) {
        cancel(e, a, "--full", "--signal=KILL");
        cancel(e, a, NULL, NULL); /* one in the queue knows no signals */
    }
    set_state(e, a, ENDED, "its allocation was cancelled");
}

static void slurm_release(grvi_executor *executor)
{
    executor_slurm *const e = (executor_slurm *)executor;
    while (e->sbatch.pid > 0 && !grvi_command_has_ended(&e->sbatch, answer_s)) grvi_sleep(0.002);
    for (int i = 0; i < e->n; i++) {
        allocation *const a = &e->allocations[i];
        if (a->state == SUBMITTED || a->state == QUEUED) cancel(e, a, "--state=PENDING", NULL);
        if (a->state == NEW) a->state = ENDED;
    }
}

/* A job that is being submitted has its workers in the journal: sbatch may finish. */
static void slurm_destroy(grvi_executor *executor)
{
    executor_slurm *const e = (executor_slurm *)executor;
    while (e->sbatch.pid > 0 && !grvi_command_has_ended(&e->sbatch, answer_s)) grvi_sleep(0.002);
    grvi_command_fini(&e->sbatch);
    grvi_command_fini(&e->squeue);
    for (int i = 0; i < e->n; i++) {
        grv_free(e->allocations[i].name);
        grv_free(e->allocations[i].words);
    }
    free_list(e->options, e->n_options);
    grv_free(e->allocations);
    grv_free(e->trouble);
    grv_free(e->folder);
    grv_free(e->program);
    grv_free(e->label);
    grv_free(e);
}

static const grvi_executor_class slurm_class = {.name = "slurm",
                                                .is_queued = true,
                                                .room = slurm_room,
                                                .start = slurm_start,
                                                .poll = slurm_poll,
                                                .is_alive = slurm_is_alive,
                                                .has_begun = slurm_has_begun,
                                                .kill = slurm_kill,
                                                .release = slurm_release,
                                                .destroy = slurm_destroy};

/* What stands in the queue's list for people: letters and digits of the folder's name. */
static grv_status make_label(executor_slurm *e)
{
    enum { MOST = 24 };
    const char *const slash = strrchr(e->folder, '/');
    GRV_TRY(grvi_strdup(slash != NULL ? slash + 1 : e->folder, &e->label));
    if (strlen(e->label) > MOST) e->label[MOST] = '\0';
    for (char *c = e->label; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) || (unsigned char)*c > 126) *c = '_';
    return GRV_OK;
}

grv_status grvi_executor_slurm_create(const char *folder, const grv_batch_params *params,
                                      grvi_executor **executor)
{
    grv_status status = GRV_OK;
    executor_slurm *e = NULL;
    char *path = NULL;
    GRV_TRY(GRVI_CALLOC(&e, 1));
    /* the file systems of clusters show changes late: a minute by default */
    e->base = (grvi_executor){.class = &slurm_class, .late_s = 12 * params->slurm.poll_interval_s};
    e->log = params->log;
    e->params = *params;
    GRV_TRY_GOTO(grvi_strdup(folder, &e->folder));
    GRV_TRY_GOTO(make_label(e));
    GRV_TRY_GOTO(grvi_find_program(params->worker_program, &e->program));
    GRV_TRY_GOTO(make_options(e, &params->slurm));
    GRV_TRY_GOTO(grvi_fs_join(folder, "allocations", &path));
    GRV_TRY_GOTO(grvi_fs_make_directory(path));
    grv_free(path);
    path = NULL;
    GRV_TRY_GOTO(grvi_fs_join(folder, "allocations/run.sh", &path));
    GRV_TRY_GOTO(grvi_fs_write_atomic(path, script, sizeof script - 1, false));
    *executor = &e->base;
done:
    grv_free(path);
    if (status != GRV_OK) slurm_destroy(&e->base);
    return status;
}
