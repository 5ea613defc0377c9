/* Flows around bodies, several at a time, each written by the thread that made it. */
#include "grove/generate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "data/flow_set.h"
#include "grove/dataset.h"

#define AT(field) offsetof(grv_generate_config, field)
static const grv_option options[] = {
    {.key = "output", .type = GRV_OPTION_STRING, .offset = AT(output), .help = "data set to make or to complete"},
    {.key = "samples", .type = GRV_OPTION_I64, .offset = AT(samples), .fallback = "96", .min = 1, .max = 1e9, .unit = "flows", .help = "how many"},
    {.key = "seed", .type = GRV_OPTION_I64, .offset = AT(seed), .fallback = "1", .min = 0, .max = 9e15, .help = "of the places of the body"},
    GRVI_FLOW_OPTIONS("", AT),
    {.key = "threads", .type = GRV_OPTION_INT, .offset = AT(threads), .fallback = "0", .min = 0, .max = 1024, .unit = "flows",
     .help = "at a time, one thread each; 0: as many as the machine has"},
    {.key = "planes_per_chunk", .type = GRV_OPTION_INT, .offset = AT(planes_per_chunk), .fallback = "1", .min = 1, .max = 1024, .unit = "planes",
     .help = "thickness of the stored pieces"},
    {.key = "picture", .type = GRV_OPTION_STRING, .offset = AT(picture), .fallback = "", .help = "PNG to draw of the first flow; empty: none"},
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

const grv_option_table *grv_generate_options(void) { return &table; }

typedef struct generator {
    const grv_generate_config *config;
    grv_log *log;
    grv_generate_stop *stop;
    void *stop_argument;
    grv_dataset *data;
    int64_t *todo, n_todo;
    grvi_flow_set flows;
    _Atomic int64_t next, n_finished, n_made, n_failed;
    _Atomic bool stopped;
    pthread_mutex_t lock;       /* seconds, status */
    double seconds;
    grv_status status;          /* the first error that ends the run */
    char message[512];
    grv_progress progress;
} generator;

/* --- one worker --- */

static void fail(generator *g, grv_status status)
{
    (void)pthread_mutex_lock(&g->lock);
    if (g->status == GRV_OK) {
        g->status = status;
        (void)strncpy(g->message, grv_error_message(), sizeof g->message - 1);
    }
    (void)pthread_mutex_unlock(&g->lock);
    atomic_store(&g->stopped, true);
}

typedef struct worker {
    generator *generator;
    int thread;
} worker;

static bool flow_progress(void *user, double done)
{
    const worker *const w = user;
    generator *const g = w->generator;
    (void)done;
    if (g->stop != NULL && g->stop(g->stop_argument)) atomic_store(&g->stopped, true);
    if (w->thread == 0) grv_progress_update(&g->progress, atomic_load(&g->n_finished));
    return true; /* a flow that runs is finished: it takes seconds */
}

/* GRV_E_NUMERIC and the like concern the sample; failing to write concerns the run */
static grv_status make_sample(worker *w, int64_t sample, float *input, float *target)
{
    generator *const g = w->generator;
    const grv_flow_sample_params p = grvi_flow_set_sample(&g->flows, sample);
    const grv_flow_sample_arrays arrays = {.input = input, .target = target};
    grv_flow_sample_report report;
    const grv_status status = grv_flow_sample_run(&p, &arrays, flow_progress, w, &report);
    if (status == GRV_E_NOMEM) return status;
    if (status != GRV_OK) {
        atomic_fetch_add(&g->n_failed, 1);
        grv_log_message(g->log, GRV_LOG_WARN, "sample %lld failed: %s", (long long)sample, grv_error_message());
        return grv_dataset_mark_failed(g->data, sample, grv_error_message());
    }
    GRV_TRY(grv_dataset_write_sample(g->data, sample, input, target));
    atomic_fetch_add(&g->n_made, 1);
    (void)pthread_mutex_lock(&g->lock);
    g->seconds += report.seconds;
    (void)pthread_mutex_unlock(&g->lock);
    return GRV_OK;
}

static void run_worker(void *argument, int thread, int64_t begin, int64_t end)
{
    (void)begin;
    (void)end;
    generator *const g = argument;
    worker w = {g, thread};
    const grv_generate_config *const c = g->config;
    const int64_t cells = c->grid.at[0] * c->grid.at[1] * c->grid.at[2];
    float *input = NULL, *target = NULL;
    grv_status status = GRVI_ALLOC(&input, 3 * cells);
    if (status == GRV_OK) status = GRVI_ALLOC(&target, c->snapshots * cells);
    while (status == GRV_OK && !atomic_load(&g->stopped)) {
        const int64_t i = atomic_fetch_add(&g->next, 1);
        if (i >= g->n_todo) break;
        status = make_sample(&w, g->todo[i], input, target);
        atomic_fetch_add(&g->n_finished, 1);
    }
    if (status != GRV_OK) fail(g, status);
    grv_free(input);
    grv_free(target);
}

/* --- the data set --- */

static grv_status open_data(generator *g)
{
    grvi_flow_description d;
    grv_status status = grvi_flow_describe(g->config, &d);
    if (status == GRV_OK) status = grv_dataset_resume(g->config->output, &d.desc, NULL, &g->data);
    grvi_flow_description_fini(&d);
    return status;
}

/* missing samples, and failed ones once more */
static grv_status list_todo(generator *g)
{
    const int64_t n = g->config->samples;
    int64_t n_failed = 0;
    GRV_TRY(GRVI_ALLOC(&g->todo, 2 * n));
    GRV_TRY(grv_dataset_list(g->data, GRV_SAMPLE_MISSING, g->todo, &g->n_todo));
    GRV_TRY(grv_dataset_list(g->data, GRV_SAMPLE_FAILED, g->todo + g->n_todo, &n_failed));
    g->n_todo += n_failed;
    return GRV_OK;
}

static grv_status generate(generator *g, grv_generate_result *result)
{
    const int threads = g->config->threads > 0 ? g->config->threads : grv_threads_available();
    GRV_TRY(grvi_flow_set_init(g->config, g->log, &g->flows));
    GRV_TRY(open_data(g));
    GRV_TRY(list_todo(g));
    if (g->n_todo < g->config->samples)
        grv_log_message(g->log, GRV_LOG_INFO, "%lld of %lld flows are there already", (long long)(g->config->samples - g->n_todo),
                        (long long)g->config->samples);
    if (g->n_todo > 0) GRV_TRY(grvi_flow_set_inspect(&g->flows, g->config->radius, threads, g->log, g->data));
    grv_progress_begin(&g->progress, g->log, "simulate", "flows", g->n_todo);
    /* one range a thread: the ranges do not matter, each worker takes the next flow */
    const int n_workers = (int)grvi_min_i64(threads, g->n_todo);
    grv_parallel_for(n_workers, n_workers, run_worker, g);
    grv_progress_update(&g->progress, atomic_load(&g->n_finished));
    grv_progress_end(&g->progress);
    if (g->status != GRV_OK) return grvi_fail_from(g->status, g->message);
    GRV_TRY(grvi_simulation_seconds_add(g->data, atomic_load(&g->n_made), g->seconds, &result->seconds_per_sample));
    grv_dataset_counts counts;
    GRV_TRY(grv_dataset_count(g->data, &counts));
    result->n_made = atomic_load(&g->n_made);
    result->n_failed = atomic_load(&g->n_failed);
    result->n_done = counts.n_done;
    GRV_CHECK(atomic_load(&g->n_finished) == g->n_todo, GRV_E_INTERRUPTED, "stopped with %lld of %lld flows; run it again to go on", (long long)counts.n_done,
              (long long)g->config->samples);
    return GRV_OK;
}

grv_status grv_generate(const grv_generate_config *config, grv_log *log, grv_generate_stop *stop, void *stop_argument, grv_generate_result *result)
{
    const double begin = grv_clock_seconds();
    generator g = {.config = config, .log = log, .stop = stop, .stop_argument = stop_argument};
    *result = (grv_generate_result){0};
    (void)pthread_mutex_init(&g.lock, NULL);
    const grv_status status = generate(&g, result);
    result->seconds = grv_clock_seconds() - begin;
    grv_dataset_close(&g.data);
    (void)pthread_mutex_destroy(&g.lock);
    grv_free(g.todo);
    grvi_flow_set_fini(&g.flows);
    return status;
}
