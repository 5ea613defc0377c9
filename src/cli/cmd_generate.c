/* grove generate: a simulation campaign, or one sample of it. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/batch_pool.h"
#include "cli/cli.h"
#include "core/alloc.h"
#include "core/json.h"
#include "grove/campaign.h"
#include "grove/core.h"
#include "grove/dataset.h"

typedef struct generate_config {
    grv_campaign_config campaign;
    bool retry_failed, begin;
    int64_t sample;
    char *folder;
    grvc_pool pool;
} generate_config;

#define AT(field)      offsetof(generate_config, field)
#define AT_POOL(field) AT(pool.field)
/* behind those of the campaign */
static const grv_option own_options[] = {
    {.key = "retry_failed",
     .type = GRV_OPTION_BOOL,
     .offset = AT(retry_failed),
     .fallback = "false",
     .help = "makes samples again that are marked failed"},
    {.key = "sample",
     .type = GRV_OPTION_I64,
     .offset = AT(sample),
     .fallback = "-1",
     .min = -1,
     .max = 1e9,
     .help = "only this one, in this process: to see why it fails"},
    {.key = "begin",
     .type = GRV_OPTION_BOOL,
     .offset = AT(begin),
     .fallback = "true",
     .help = "of one sample: makes the data set if there is none; workers do not"},
    {.key = "folder",
     .type = GRV_OPTION_STRING,
     .offset = AT(folder),
     .fallback = "",
     .help = "where that one runs; empty: sample-NUMBER"},
    GRVC_POOL_OPTIONS(AT_POOL, "local", "local or slurm"),
};
enum { N_OWN = sizeof own_options / sizeof *own_options, MOST_OPTIONS = 96 };

static bool stop(void *argument)
{
    (void)argument;
    return grvc_interrupted();
}

/* The reasons of the first few. */
static grv_status print_failures(const generate_config *c, const grv_campaign_result *r)
{
    enum { MOST = 10 };
    grv_dataset *data = NULL;
    int64_t *samples = NULL, n = 0;
    if (r->n_failed == 0) return GRV_OK;
    GRV_TRY(grv_dataset_open(c->campaign.output, NULL, &data));
    grv_status status = GRVI_ALLOC(&samples, r->n_samples);
    if (status == GRV_OK) status = grv_dataset_list(data, GRV_SAMPLE_FAILED, samples, &n);
    for (int64_t i = 0; i < n && i < MOST && status == GRV_OK; i++) {
        char *reason = NULL;
        status = grv_dataset_reason(data, samples[i], &reason);
        (void)fprintf(stderr, "sample %lld failed: %s\n", (long long)samples[i],
                      reason != NULL ? reason : "no reason was kept");
        grv_free(reason);
    }
    if (n > MOST)
        (void)fprintf(stderr, "... and %lld more: %s/status/reasons/\n", (long long)(n - MOST),
                      c->campaign.output);
    grv_free(samples);
    grv_dataset_close(&data);
    return status;
}

static grv_status print_json(const generate_config *c, const grv_campaign_result *r)
{
    grvi_text out = {0};
    grvi_json_writer w = {.out = &out};
    const struct {
        const char *key;
        int64_t n;
    } numbers[] = {{"samples", r->n_samples},
                   {"done", r->n_done},
                   {"made", r->n_made},
                   {"failed", r->n_failed},
                   {"missing", r->n_missing}};
    grvi_json_begin_object(&w);
    grvi_json_key(&w, "output");
    grvi_json_string(&w, c->campaign.output);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        grvi_json_key(&w, numbers[i].key);
        grvi_json_i64(&w, numbers[i].n);
    }
    grvi_json_key(&w, "seconds");
    grvi_json_double(&w, r->seconds);
    grvi_json_key(&w, "seconds_per_sample");
    grvi_json_double(&w, r->seconds_per_sample);
    grv_status status = grvc_json_attribute(&w, c->campaign.output, "body");
    grvi_json_end_object(&w);
    if (status == GRV_OK) status = grvi_text_status(&out);
    if (status == GRV_OK) (void)printf("%s\n", grvi_text_get(&out));
    grvi_text_fini(&out);
    return status;
}

static grv_status refuse_words(const grvc_session *session)
{
    GRV_FAIL(GRV_E_ARG,
             "no further words expected, '%.80s' found: a file with keys is given by --config, "
             "words that start a program only go with sample=NUMBER",
             session->words[0]);
}

static grv_status run_all(const grvc_session *session, const generate_config *c)
{
    grv_campaign_result r;
    const grv_batch_params pool = grvc_pool_params(&c->pool, session->log);
    grvc_interrupt_install();
    GRV_TRY(grv_campaign_run(&c->campaign, &pool, c->retry_failed, stop, NULL, &r));
    if (session->json)
        GRV_TRY(print_json(c, &r));
    else
        (void)printf("%s: %lld of %lld samples done, %lld made now in %.1f s, %lld failed; %.3g s "
                     "a sample\n",
                     c->campaign.output, (long long)r.n_done, (long long)r.n_samples,
                     (long long)r.n_made, r.seconds, (long long)r.n_failed, r.seconds_per_sample);
    GRV_TRY(print_failures(c, &r));
    GRV_CHECK(r.n_failed == 0, GRV_E_NUMERIC,
              "%lld of %lld samples failed; retry_failed=true tries them again, sample=NUMBER one "
              "of them here",
              (long long)r.n_failed, (long long)r.n_samples);
    GRV_CHECK(r.n_missing == 0, GRV_E_INTERRUPTED,
              "%lld of %lld samples are missing; the same command goes on", (long long)r.n_missing,
              (long long)r.n_samples);
    return GRV_OK;
}

static grv_status run_one(const grvc_session *session, const generate_config *c)
{
    char name[64];
    (void)snprintf(name, sizeof name, "sample-%lld", (long long)c->sample);
    GRV_TRY(grv_campaign_sample(&c->campaign, c->sample, c->begin,
                                c->folder[0] != '\0' ? c->folder : name,
                                (const char *const *)session->words, session->n_words,
                                session->log));
    (void)printf("%s: sample %lld done\n", c->campaign.output, (long long)c->sample);
    return GRV_OK;
}

int grvc_generate(int argc, char **argv)
{
    generate_config config = {.sample = -1};
    grv_option options[MOST_OPTIONS];
    const grv_option_table *const campaign =
        grv_campaign_options(); /* its fields are the first of generate_config */
    GRV_ASSERT(campaign->n + N_OWN <= MOST_OPTIONS && AT(campaign) == 0);
    memcpy(options, campaign->options, sizeof *options * (size_t)campaign->n);
    memcpy(options + campaign->n, own_options, sizeof own_options);
    const grv_option_table table = {options, campaign->n + N_OWN};
    grvc_session session = {
        .name = "grove generate",
        .about = "Runs a simulator for many samples of its parameters and stores what it makes as "
                 "a data set; each\n"
                 "sample is a task of the batch engine. What is there already is not made again, "
                 "so an interrupted\n"
                 "call is simply repeated. docs/campaigns.md tells what a program or a C function "
                 "has to do; to begin:\n"
                 "  grove generate --config heat.yaml output=heat           see examples/heat\n"
                 "  grove generate --config heat.yaml output=heat sample=9  that one only, here; its "
                 "folder stays\n"
                 "  ... sample=9 -- mpirun -n 4                             its program started by "
                 "these words",
        .words_usage = "[-- LAUNCHER...]",
        .max_words = argc,
        .table = &table,
        .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    if (config.sample >= 0) return grvc_end(&session, run_one(&session, &config));
    if (session.n_words == 0) return grvc_end(&session, run_all(&session, &config));
    (void)grvc_end(&session, refuse_words(&session));
    return GRVC_EXIT_USAGE;
}
