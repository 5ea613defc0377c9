/* Flows around spheres, several at a time, each written by the thread that made it. */
#include "grove/generate.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "grove/core.h"
#include "grove/dataset.h"

enum { PLACE_STREAM = 1 };

static const char *const precisions[] = {"float32", "float64", NULL};

#define AT(field) offsetof(grv_generate_config, field)
static const grv_option options[] = {
    {.key = "output", .type = GRV_OPTION_STRING, .offset = AT(output), .help = "data set to make or to complete"},
    {.key = "samples", .type = GRV_OPTION_I64, .offset = AT(samples), .fallback = "96", .min = 1, .max = 1e9, .unit = "flows", .help = "how many"},
    {.key = "seed", .type = GRV_OPTION_I64, .offset = AT(seed), .fallback = "1", .min = 0, .max = 9e15, .help = "of the places of the sphere"},
    {.key = "grid", .type = GRV_OPTION_I64_LIST, .offset = AT(grid), .fallback = "[32, 32, 32]", .min = 8, .max = 1e5, .min_items = 3,
     .max_items = 3, .unit = "cells", .help = "in x, y, z"},
    {.key = "radius", .type = GRV_OPTION_F64, .offset = AT(radius), .fallback = "3", .min = 0.5, .max = 1e5, .unit = "cells", .help = "of the sphere"},
    {.key = "velocity", .type = GRV_OPTION_F64_LIST, .offset = AT(velocity), .fallback = "[1, 0.5, 0]", .min = -10, .max = 10, .min_items = 3,
     .max_items = 3, .help = "on the whole boundary"},
    {.key = "reynolds", .type = GRV_OPTION_F64, .offset = AT(reynolds), .fallback = "200", .min = 0.01, .max = 1e7,
     .help = "radius / viscosity: of unit velocity"},
    {.key = "centre.min", .type = GRV_OPTION_F64_LIST, .offset = AT(centre_min), .fallback = "[0.15, 0.15, 0.15]", .min = 0, .max = 1,
     .min_items = 3, .max_items = 3, .help = "lowest place, as a fraction of the grid"},
    {.key = "centre.max", .type = GRV_OPTION_F64_LIST, .offset = AT(centre_max), .fallback = "[0.4, 0.85, 0.85]", .min = 0, .max = 1,
     .min_items = 3, .max_items = 3, .help = "highest place"},
    {.key = "snapshots", .type = GRV_OPTION_I64, .offset = AT(snapshots), .fallback = "16", .min = 1, .max = 1e6, .help = "times stored"},
    {.key = "interval", .type = GRV_OPTION_F64, .offset = AT(interval), .fallback = "1", .min = 0, .max = 1e6, .above_min = true,
     .unit = "radius/|velocity|", .help = "between two of them"},
    {.key = "clip", .type = GRV_OPTION_F64, .offset = AT(clip), .fallback = "0.3", .min = 0, .max = 1e6, .above_min = true,
     .help = "vorticity is clipped to +-clip and divided by it"},
    {.key = "tolerance", .type = GRV_OPTION_F64, .offset = AT(tolerance), .fallback = "1e-3", .min = 0, .max = 0.5, .above_min = true,
     .help = "of the pressure: divergence after / before"},
    {.key = "precision", .type = GRV_OPTION_CHOICE, .offset = AT(precision), .fallback = "float32", .choices = precisions, .help = "of the solver"},
    {.key = "threads", .type = GRV_OPTION_INT, .offset = AT(threads), .fallback = "0", .min = 0, .max = 1024, .unit = "flows",
     .help = "at a time, one thread each; 0: as many as the machine has"},
    {.key = "planes_per_chunk", .type = GRV_OPTION_INT, .offset = AT(planes_per_chunk), .fallback = "1", .min = 1, .max = 1024, .unit = "planes",
     .help = "thickness of the stored pieces"},
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
    int64_t range[3], first[3]; /* places on the grid of cells */
    int64_t *places;            /* [samples] numbers of places, all different where there are enough */
    _Atomic int64_t next, n_finished, n_made, n_failed;
    _Atomic bool stopped;
    pthread_mutex_t lock;       /* seconds, status */
    double seconds;
    grv_status status;          /* the first error that ends the run */
    char message[512];
    grv_progress progress;
} generator;

/* --- places --- */

static grv_status draw_places(generator *g)
{
    const grv_generate_config *const c = g->config;
    int64_t n_places = 1, *order = NULL;
    for (int a = 0; a < 3; a++) {
        const double low = c->centre_min.at[a] * (double)c->grid.at[a], high = c->centre_max.at[a] * (double)c->grid.at[a];
        /* a cell to spare on both sides */
        g->first[a] = (int64_t)ceil(fmax(low, c->radius + 1));
        g->range[a] = (int64_t)floor(fmin(high, (double)c->grid.at[a] - c->radius - 1)) - g->first[a] + 1;
        GRV_CHECK(g->range[a] >= 1, GRV_E_CONFIG, "a sphere of radius %g has no place between %g and %g of %lld cells (axis %d)", c->radius, low, high,
                  (long long)c->grid.at[a], a);
        n_places *= g->range[a];
    }
    GRV_TRY(GRVI_ALLOC(&order, n_places));
    grv_status status = grv_random_permutation((uint64_t)c->seed, PLACE_STREAM, n_places, order);
    if (status == GRV_OK) status = GRVI_ALLOC(&g->places, c->samples);
    for (int64_t i = 0; status == GRV_OK && i < c->samples; i++) g->places[i] = order[i % n_places];
    grv_free(order);
    if (status == GRV_OK && c->samples > n_places)
        grv_log_message(g->log, GRV_LOG_WARN, "only %lld places for %lld flows: some repeat", (long long)n_places, (long long)c->samples);
    return status;
}

static grv_flow_sample_params sample_params(const generator *g, int64_t sample)
{
    const grv_generate_config *const c = g->config;
    grv_flow_sample_params p = grv_flow_sample_params_default();
    int64_t place = g->places[sample];
    for (int a = 2; a >= 0; a--) {
        p.n[a] = c->grid.at[a];
        p.velocity[a] = c->velocity.at[a];
        p.centre[a] = (double)(g->first[a] + place % g->range[a]);
        place /= g->range[a];
    }
    p.radius = c->radius;
    p.viscosity = c->radius / c->reynolds;
    p.n_snapshots = c->snapshots;
    p.interval = c->interval;
    p.clip = p.scale = c->clip;
    p.tolerance = c->tolerance;
    p.precision = (grv_flow_precision)c->precision;
    p.n_threads = 1;
    return p;
}

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
    const grv_flow_sample_params p = sample_params(g, sample);
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
    static const char *const input_names[] = {"mu0_x", "mu0_y", "mu0_z"}, *const target_names[] = {"vorticity_z"};
    static const char *const axes[] = {"x", "y", "z", "t"};
    const grv_generate_config *const c = g->config;
    grv_dataset_desc desc = grv_dataset_desc_default();
    grv_generate_config shown = *c;
    char *json = NULL, one[] = "", normalization[96];
    desc.n_samples = c->samples;
    desc.input = (grv_dataset_field){.n_axes = 3, .n_channels = 3, .channel_names = input_names};
    desc.target = (grv_dataset_field){.n_axes = 4, .n_channels = 1, .channel_names = target_names};
    for (int a = 0; a < 4; a++) {
        desc.target.axis_names[a] = axes[a];
        desc.target.shape[a] = a < 3 ? c->grid.at[a] : c->snapshots;
        if (a == 3) break;
        desc.input.axis_names[a] = axes[a];
        desc.input.shape[a] = c->grid.at[a];
    }
    desc.planes_per_chunk = c->planes_per_chunk;
    desc.seed = (uint64_t)c->seed;
    desc.units = "{\"x\": \"cells\", \"y\": \"cells\", \"z\": \"cells\", \"t\": \"radius/|velocity|\", \"vorticity_z\": \"clip\"}";
    (void)snprintf(normalization, sizeof normalization, "{\"vorticity_z\": {\"clip\": %.17g, \"scale\": %.17g}}", c->clip, c->clip);
    desc.normalization = normalization;
    /* where it lies and how many threads made it is not what it is */
    shown.output = one;
    shown.threads = 0;
    GRV_TRY(grv_config_to_json(&table, &shown, &json));
    desc.generator = json;
    const grv_status status = grv_dataset_resume(c->output, &desc, NULL, &g->data);
    grv_free(json);
    return status;
}

/* mean seconds of a simulation, kept with the number of simulations it is the mean of */
static grv_status note_seconds(generator *g, double *mean)
{
    char *text = NULL;
    double seconds = g->seconds, old_mean = 0;
    int64_t n = atomic_load(&g->n_made), old_n = 0;
    GRV_TRY(grv_dataset_get_attribute(g->data, "simulation", &text));
    if (text != NULL) {
        grvi_json *root = NULL;
        const grv_status status = grvi_json_parse(text, (int64_t)strlen(text), "attribute 'simulation'", &root);
        if (status == GRV_OK && grvi_json_as_i64(grvi_json_get(root, "flows"), &old_n) &&
            grvi_json_as_double(grvi_json_get(root, "seconds_per_flow"), &old_mean) && old_n > 0) {
            seconds += (double)old_n * old_mean;
            n += old_n;
        }
        grvi_json_free(root);
        grv_free(text);
        GRV_TRY(status);
    }
    *mean = n > 0 ? seconds / (double)n : 0;
    if (atomic_load(&g->n_made) == 0) return GRV_OK;
    char attribute[128];
    (void)snprintf(attribute, sizeof attribute, "{\"flows\": %lld, \"seconds_per_flow\": %.6g, \"threads\": 1}", (long long)n, *mean);
    return grv_dataset_set_attribute(g->data, "simulation", attribute);
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
    GRV_TRY(draw_places(g));
    GRV_TRY(open_data(g));
    GRV_TRY(list_todo(g));
    if (g->n_todo < g->config->samples)
        grv_log_message(g->log, GRV_LOG_INFO, "%lld of %lld flows are there already", (long long)(g->config->samples - g->n_todo),
                        (long long)g->config->samples);
    grv_progress_begin(&g->progress, g->log, "simulate", "flows", g->n_todo);
    /* one range a thread: the ranges do not matter, each worker takes the next flow */
    const int n_workers = (int)grvi_min_i64(threads, g->n_todo);
    grv_parallel_for(n_workers, n_workers, run_worker, g);
    grv_progress_update(&g->progress, atomic_load(&g->n_finished));
    grv_progress_end(&g->progress);
    if (g->status != GRV_OK) return grvi_fail_from(g->status, g->message);
    GRV_TRY(note_seconds(g, &result->seconds_per_sample));
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
    grv_free(g.places);
    return status;
}
