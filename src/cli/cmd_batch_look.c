/* grove batch status, explain, logs, stats, retry, cancel, clean: looking at a job, and what is done from outside. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/batch_cli.h"
#include "grove/core.h"

grv_status grvc_batch_task_number(const char *word, int64_t *task)
{
    char *end = NULL;
    errno = 0;
    *task = strtoll(word, &end, 10);
    GRV_CHECK(errno == 0 && end != word && *end == '\0' && *task >= 0, GRV_E_ARG, "the number of a task expected, '%.80s' found", word);
    return GRV_OK;
}

void grvc_batch_json_counts(grvi_json_writer *w, const grv_batch_counts *counts)
{
    grvi_json_key(w, "tasks");
    grvi_json_i64(w, counts->n_tasks);
    for (int s = 0; s < GRV_BATCH_N_STATES; s++) {
        grvi_json_key(w, grv_batch_state_name((grv_batch_state)s));
        grvi_json_i64(w, counts->n[s]);
    }
    grvi_json_key(w, "workers");
    grvi_json_i64(w, counts->n_workers);
    grvi_json_key(w, "busy_seconds");
    grvi_json_double(w, counts->busy_s);
    grvi_json_key(w, "seconds");
    grvi_json_double(w, counts->last_end_s > counts->first_start_s ? counts->last_end_s - counts->first_start_s : 0);
    grvi_json_key(w, "cost");
    grvi_json_double(w, counts->cost);
}

void grvc_batch_print_counts(const grv_batch_counts *counts)
{
    char states[160];
    grv_batch_counts_text(counts, states, sizeof states);
    (void)printf("%lld tasks%s%s", (long long)counts->n_tasks, counts->n_tasks > 0 ? ": " : "", states);
    if (counts->last_end_s > counts->first_start_s)
        (void)printf("; %.1f s of work in %.1f s", counts->busy_s, counts->last_end_s - counts->first_start_s);
    if (counts->n_workers > 0) (void)printf("; %d workers", counts->n_workers);
    if (counts->cost > 0) (void)printf("; cost %.2f", counts->cost);
    (void)printf("\n");
}

static grv_status print_json(grvi_text *text)
{
    const grv_status status = grvi_text_status(text);
    if (status == GRV_OK) (void)printf("%s\n", grvi_text_get(text));
    grvi_text_fini(text);
    return status;
}

/* ---- status ---- */

static grv_status status_of(const grvc_session *session, grv_batch *batch)
{
    const grv_batch_counts counts = grv_batch_counts_get(batch);
    if (!session->json) {
        grvc_batch_print_counts(&counts);
        return GRV_OK;
    }
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    grvc_batch_json_counts(&w, &counts);
    grvi_json_end_object(&w);
    return print_json(&text);
}

/* ---- explain, stats ---- */

static void write_task(grvi_json_writer *w, const grv_batch_task *t)
{
    grvi_json_begin_object(w);
    grvi_json_key(w, "task");
    grvi_json_i64(w, t->task);
    grvi_json_key(w, "function");
    grvi_json_string(w, t->function);
    grvi_json_key(w, "state");
    grvi_json_string(w, grv_batch_state_name(t->state));
    grvi_json_key(w, "attempts");
    grvi_json_i64(w, t->attempts);
    grvi_json_key(w, "worker");
    grvi_json_i64(w, t->worker);
    grvi_json_key(w, "node");
    grvi_json_string(w, t->node);
    grvi_json_key(w, "submitted");
    grvi_json_double(w, t->submitted_s);
    grvi_json_key(w, "started");
    grvi_json_double(w, t->started_s);
    grvi_json_key(w, "ended");
    grvi_json_double(w, t->ended_s);
    grvi_json_key(w, "bytes");
    grvi_json_i64(w, t->bytes);
    grvi_json_key(w, "results");
    grvi_json_i64(w, t->n_results);
    grvi_json_key(w, "reason");
    grvi_json_string(w, t->reason);
    grvi_json_end_object(w);
}

static grv_status explain(const grvc_session *session, grv_batch *batch)
{
    int64_t task = 0;
    grv_batch_task info;
    GRV_TRY(grvc_batch_task_number(session->words[1], &task));
    GRV_TRY(grv_batch_task_get(batch, task, &info));
    if (session->json) {
        grvi_text text = {0};
        grvi_json_writer w = {.out = &text, .pretty = true};
        write_task(&w, &info);
        return print_json(&text);
    }
    (void)printf("task %lld (%s): %s", (long long)task, info.function, grv_batch_state_name(info.state));
    if (info.attempts > 0) (void)printf(", attempt %d on worker %d", info.attempts, info.worker);
    if (info.attempts > 0 && info.node[0] != '\0') (void)printf(" (%s)", info.node);
    if (info.ended_s > 0) (void)printf(", %.3f s", info.ended_s - info.started_s);
    (void)printf(info.reason[0] != '\0' ? "\n%s\n" : "\n", info.reason);
    if (info.state != GRV_BATCH_FAILED) return GRV_OK;
    char *log = NULL;
    GRV_TRY(grv_batch_log(batch, task, &log));
    (void)printf("%s", log);
    grv_free(log);
    return GRV_OK;
}

static grv_status stats(const grvc_session *session, grv_batch *batch)
{
    const int64_t n = grv_batch_counts_get(batch).n_tasks;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = false};
    grv_status status = GRV_OK;
    if (session->json) grvi_json_begin_array(&w);
    else (void)printf("task,function,state,attempts,worker,node,waited,seconds,bytes\n");
    for (int64_t t = 0; t < n && status == GRV_OK; t++) {
        grv_batch_task info;
        status = grv_batch_task_get(batch, t, &info);
        if (status != GRV_OK) break;
        if (session->json)
            write_task(&w, &info);
        else
            (void)printf("%lld,%s,%s,%d,%d,%s,%.6f,%.6f,%lld\n", (long long)t, info.function, grv_batch_state_name(info.state), info.attempts, info.worker,
                         info.node, info.started_s > 0 ? info.started_s - info.submitted_s : 0, info.ended_s > 0 ? info.ended_s - info.started_s : 0,
                         (long long)info.bytes);
    }
    if (status == GRV_OK && session->json) {
        grvi_json_end_array(&w);
        return print_json(&text);
    }
    grvi_text_fini(&text);
    return status;
}

static grv_status logs(const grvc_session *session, grv_batch *batch)
{
    int64_t task = 0;
    char *log = NULL;
    GRV_TRY(grvc_batch_task_number(session->words[1], &task));
    GRV_TRY(grv_batch_log(batch, task, &log));
    if (session->json) {
        grvi_text text = {0};
        grvi_json_writer w = {.out = &text, .pretty = true};
        grvi_json_string(&w, log);
        grv_free(log);
        return print_json(&text);
    }
    (void)printf("%s", log);
    grv_free(log);
    return GRV_OK;
}

/* ---- the commands ---- */

int grvc_batch_look_at(grvc_session *session, int argc, char **argv, grvc_batch_look_body *body)
{
    grv_batch *batch = NULL;
    const int code = grvc_begin(session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    grv_status status = grv_batch_look(session->words[0], &batch);
    if (status == GRV_OK) status = body(session, batch);
    grv_batch_close(&batch);
    return grvc_end(session, status);
}

int grvc_batch_status(int argc, char **argv)
{
    grvc_session session = {.name = "grove batch status", .about = "Tells how many tasks of a job are in which state.", .words_usage = "JOB", .min_words = 1,
                            .max_words = 1};
    return grvc_batch_look_at(&session, argc, argv, status_of);
}

int grvc_batch_explain(int argc, char **argv)
{
    grvc_session session = {.name = "grove batch explain", .about = "Tells why a task waits, or why it failed, with what it printed.",
                            .words_usage = "JOB TASK", .min_words = 2, .max_words = 2};
    return grvc_batch_look_at(&session, argc, argv, explain);
}

int grvc_batch_logs(int argc, char **argv)
{
    grvc_session session = {.name = "grove batch logs", .about = "Prints what the attempts of a task printed, oldest first.", .words_usage = "JOB TASK",
                            .min_words = 2, .max_words = 2};
    return grvc_batch_look_at(&session, argc, argv, logs);
}

int grvc_batch_stats(int argc, char **argv)
{
    grvc_session session = {.name = "grove batch stats", .about = "Prints a table of all tasks as CSV (or JSON): attempts, worker and its node, seconds, bytes of results.",
                            .words_usage = "JOB", .min_words = 1, .max_words = 1};
    return grvc_batch_look_at(&session, argc, argv, stats);
}

static void print_asked(const grvc_session *session, bool retry, int64_t n)
{
    if (session->json && n < 0) (void)printf("{\"asked\": true}\n");
    else if (session->json) (void)printf("{\"%s\": %lld}\n", retry ? "to_retry" : "cancelled", (long long)n);
    else if (n < 0) (void)printf("the program that drives the job was asked to do it\n");
    else if (!retry) (void)printf("%lld cancelled\n", (long long)n);
    else (void)printf(n > 0 ? "%lld will run again: `grove batch resume %s`\n" : "%lld to retry in %s\n", (long long)n, session->words[0]);
}

static int ask(grvc_session *session, int argc, char **argv, bool retry)
{
    int64_t task = -1, n = 0;
    const int code = grvc_begin(session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    grv_status status = session->n_words == 2 ? grvc_batch_task_number(session->words[1], &task) : GRV_OK;
    if (status == GRV_OK) status = grv_batch_ask(session->words[0], retry, task, &n);
    if (status == GRV_OK) print_asked(session, retry, n);
    return grvc_end(session, status);
}

int grvc_batch_retry(int argc, char **argv)
{
    grvc_session session = {.name = "grove batch retry", .about = "Gives a failed or cancelled task its attempts back; without TASK, all of them.",
                            .words_usage = "JOB [TASK]", .min_words = 1, .max_words = 2};
    return ask(&session, argc, argv, true);
}

int grvc_batch_cancel(int argc, char **argv)
{
    grvc_session session = {.name = "grove batch cancel",
                            .about = "Cancels a task that has not ended, and those that need its results; without TASK, all.",
                            .words_usage = "JOB [TASK]", .min_words = 1, .max_words = 2};
    return ask(&session, argc, argv, false);
}

int grvc_batch_clean(int argc, char **argv)
{
    grvc_session session = {.name = "grove batch clean", .about = "Deletes a job: its journal, results, logs. Its workers are stopped.", .words_usage = "JOB",
                            .min_words = 1, .max_words = 1};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, grv_batch_clean(session.words[0]));
}
