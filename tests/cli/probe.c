/* A command over the helpers of src/cli: prints its resolved keys, its words and messages of each level, or fails, or waits. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "core/check.h"
#include "grove/core.h"

typedef struct probe_params {
    char *data;
    int steps;
    double lr;
    grv_i64_list grid;
} probe_params;

static const grv_option options[] = {
    {"data", GRV_OPTION_STRING, offsetof(probe_params, data), NULL, .help = "what to read"},
    {"steps", GRV_OPTION_INT, offsetof(probe_params, steps), "10", .min = 0, .max = 100,
     .help = "how often"},
    {"optimizer.lr", GRV_OPTION_F64, offsetof(probe_params, lr), "1e-3", .min = 0, .max = 1,
     .help = "step size"},
    {"grid", GRV_OPTION_I64_LIST, offsetof(probe_params, grid), "[32, 32]", .min = 1,
     .max = HUGE_VAL, .unit = "cells", .help = "cells per direction"},
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

static grv_status print_parameters(const grvc_session *s)
{
    char *text = NULL;
    GRV_TRY(s->json ? grv_config_to_json(&table, s->params, &text)
                    : grv_config_to_yaml(&table, s->params, &text));
    (void)fputs(text, stdout);
    grv_free(text);
    for (int i = 0; i < s->n_words; i++) (void)printf("word %s\n", s->words[i]);
    return GRV_OK;
}

/* At most ten seconds, so that a lost signal fails the test instead of hanging it. */
static grv_status wait_for_signal(grv_log *log)
{
    grvc_interrupt_install();
    grv_log_message(log, GRV_LOG_INFO, "waiting");
    const double start = grv_clock_seconds();
    while (!grvc_interrupted() && grv_clock_seconds() - start < 10)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    GRV_CHECK(!grvc_interrupted(), GRV_E_INTERRUPTED, "the wait was cut short");
    return GRV_OK;
}

/* Goes on after the first signal: only a second one ends it. */
static grv_status ignore_signal(void)
{
    grvc_interrupt_install();
    const double start = grv_clock_seconds();
    while (grv_clock_seconds() - start < 10)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return GRV_OK;
}

static grv_status run(const grvc_session *s)
{
    const char *const word = s->n_words > 0 ? s->words[0] : "";
    if (strcmp(word, "wait") == 0) return wait_for_signal(s->log);
    if (strcmp(word, "ignore") == 0) return ignore_signal();
    GRV_CHECK(strcmp(word, "fail") != 0, GRV_E_NUMERIC, "step 3: finite loss expected,\nNaN found");
    if (strcmp(word, "save") == 0) return grvc_write_config(s, ".");
    grv_log_message(s->log, GRV_LOG_DEBUG, "a detail");
    grv_log_event(s->log, GRV_LOG_INFO, "start",
                  (grv_log_field[]){grv_log_i64("steps", 10), grv_log_text("data", "set")}, 2);
    grv_log_message(s->log, GRV_LOG_WARN, "something odd");
    return print_parameters(s);
}

int main(int argc, char **argv)
{
    probe_params params = {0};
    grvc_session session = {.name = "probe",
                            .about = "Prints what it was given.",
                            .words_usage = "[wait|fail|save|WORD]",
                            .max_words = 1,
                            .table = &table,
                            .params = &params};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session));
}
