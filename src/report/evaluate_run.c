/* `grove evaluate`: a run's error on samples it never saw, against trivial predictors, with pictures. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/json.h"
#include "grove/core.h"
#include "grove/report.h"
#include "grove/use.h"

static const char *const weights_words[] = {"best", "latest", NULL};
static const char *const split_words[] = {"test", "validation", "train", NULL};

#define AT(field) offsetof(grv_evaluate_config, field)
static const grv_option options[] = {
    {.key = "run", .type = GRV_OPTION_STRING, .offset = AT(run), .help = "run directory that `grove train` made"},
    {.key = "data", .type = GRV_OPTION_STRING, .offset = AT(data), .fallback = "", .help = "another data set than the run's"},
    {.key = "weights", .type = GRV_OPTION_CHOICE, .offset = AT(weights), .fallback = "best", .choices = weights_words, .help = "which ones"},
    {.key = "split", .type = GRV_OPTION_CHOICE, .offset = AT(split), .fallback = "test", .choices = split_words, .help = "which samples"},
    {.key = "threads", .type = GRV_OPTION_INT, .offset = AT(threads), .fallback = "0", .min = 0, .max = 1024, .help = "of each rank; 0: shared"},
    {.key = "pictures", .type = GRV_OPTION_I64, .offset = AT(pictures), .fallback = "3", .min = 0, .max = 1000, .unit = "samples",
     .help = "to draw"},
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

const grv_option_table *grv_evaluate_options(void) { return &table; }

typedef struct evaluator {
    const grv_evaluate_config *config;
    grv_comm *comm; /* NULL on a single rank */
    grv_log *log;
    grv_train_config train;
    grv_dataset *data;
    grv_network *network;
    grv_split split;
    grv_range samples;
    float *mean_field;
    double *losses; /* [samples] */
    grv_train_state state;
} evaluator;

static bool is_root(const evaluator *e) { return e->comm == NULL || grv_comm_rank(e->comm) == 0; }
static grv_status agree(const evaluator *e, grv_status status) { return e->comm == NULL ? status : grv_comm_agree(e->comm, status); }

static grv_status path_in_run(const evaluator *e, const char *name, char **path) { return grvi_fs_join(e->config->run, name, path); }

/* --- opening --- */

static grv_status open_run(evaluator *e)
{
    char *path = NULL;
    GRV_TRY(grv_config_defaults(grv_train_options(), &e->train));
    GRV_TRY(path_in_run(e, "config.yaml", &path));
    grv_status status = grv_config_load(grv_train_options(), &e->train, path);
    grv_free(path);
    GRV_TRY(status);
    GRV_TRY(grv_dataset_open(e->config->data[0] != '\0' ? e->config->data : e->train.data, NULL, &e->data));
    GRV_TRY(grv_train_split(&e->train, grv_dataset_get_desc(e->data)->n_samples, &e->split));
    e->samples = e->config->split == 0 ? e->split.test : e->config->split == 1 ? e->split.validation : e->split.train;
    GRV_CHECK(e->samples.count > 0, GRV_E_CONFIG, "split: the run has no %s samples", split_words[e->config->split]);
    return GRVI_CALLOC(&e->losses, e->samples.count);
}

static grv_status open_network(evaluator *e)
{
    const int n_ranks = e->comm == NULL ? 1 : grv_comm_size(e->comm);
    grv_network_params p = {.batch = 1, .n_data = 1, .n_domain = n_ranks, .n_threads = e->config->threads, .loss = true};
    if (p.n_threads == 0) p.n_threads = (int)grvi_max_i64(1, grv_threads_available() / n_ranks);
    char *path = NULL;
    grv_status status = path_in_run(e, e->config->weights == 0 ? "best" : "checkpoint", &path);
    if (status == GRV_OK) status = grv_checkpoint_model(path, &p.fno, NULL);
    status = agree(e, status);
    p.fno.loss = GRV_LOSS_RELATIVE_L2; /* what is reported, whatever was trained on */
    if (status == GRV_OK) status = grv_network_create(&p, e->comm, NULL, &e->network);
    if (status == GRV_OK) status = grv_checkpoint_load(path, e->network, NULL, &e->state, e->comm);
    grv_free(path);
    GRV_TRY(status);
    status = GRVI_ALLOC(&e->mean_field, grv_network_output_count(e->network));
    if (status == GRV_OK) status = grv_mean_field(e->network, e->data, e->split.train, e->mean_field);
    return agree(e, status);
}

/* --- numbers --- */

static double simulator_seconds(evaluator *e)
{
    char *text = NULL;
    grvi_json *root = NULL;
    double seconds = (double)NAN;
    if (grv_dataset_get_attribute(e->data, "simulation", &text) == GRV_OK && text != NULL &&
        grvi_json_parse(text, (int64_t)strlen(text), "attribute 'simulation'", &root) == GRV_OK) {
        if (!grvi_json_as_double(grvi_json_get(root, "seconds_per_flow"), &seconds)) seconds = (double)NAN;
        grvi_json_free(root);
    }
    grv_free(text);
    return seconds;
}

static void number(grvi_json_writer *w, const char *key, double value)
{
    grvi_json_key(w, key);
    if (isfinite(value)) grvi_json_double(w, value);
    else grvi_json_null(w);
}

static grv_status write_file(const evaluator *e, const char *name, grvi_text *text)
{
    char *path = NULL;
    grv_status status = grvi_text_status(text);
    if (status == GRV_OK) status = path_in_run(e, name, &path);
    if (status == GRV_OK) status = grvi_fs_write_atomic(path, text->data, text->n, false);
    grv_free(path);
    grvi_text_fini(text);
    return status;
}

static grv_status write_metrics(const evaluator *e, const grv_evaluate_result *r)
{
    grvi_text text = {0}, losses = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    number(&w, "relative_l2", r->evaluation.relative_l2);
    number(&w, "relative_l2_mean_field", r->evaluation.relative_l2_mean_field);
    number(&w, "relative_l2_zero", r->evaluation.relative_l2_zero);
    number(&w, "simulator_seconds", r->simulator_seconds);
    number(&w, "surrogate_seconds", r->surrogate_seconds);
    grvi_json_key(&w, "samples");
    grvi_json_i64(&w, r->evaluation.n_samples);
    grvi_json_key(&w, "split");
    grvi_json_string(&w, split_words[e->config->split]);
    grvi_json_key(&w, "weights");
    grvi_json_string(&w, weights_words[e->config->weights]);
    grvi_json_key(&w, "ranks");
    grvi_json_i64(&w, e->comm == NULL ? 1 : grv_comm_size(e->comm));
    grvi_json_end_object(&w);
    grvi_text_append(&text, "\n");
    GRV_TRY(write_file(e, "metrics.json", &text));
    grvi_text_append(&losses, "sample,relative_l2\n");
    for (int64_t i = 0; i < e->samples.count; i++) grvi_text_printf(&losses, "%lld,%.9g\n", (long long)(e->samples.start + i), e->losses[i]);
    return write_file(e, "test_losses.csv", &losses);
}

/* --- pictures --- */

/* Which plane across axes 0 and 1 is drawn: the last point of the last axis (time), and of axis 2, where there is one before the last, the
 * plane in which most happens. Offset in numbers within the block of one (x, y), and its length. Collective. */
static grv_status choose_slice(const evaluator *e, const float *target, int64_t *offset, int64_t *inner)
{
    const grv_dataset_field *const f = &grv_dataset_get_desc(e->data)->target;
    const int64_t n_points = grv_network_planes(e->network).count * f->shape[1];
    const int64_t n_last = f->n_axes > 2 ? f->shape[f->n_axes - 1] : 1, n_planes = f->n_axes > 3 ? f->shape[2] : 1;
    double best[2] = {-1, 0};
    *inner = n_planes * n_last * f->n_channels;
    for (int64_t p = 0; p < n_planes; p++) {
        const int64_t at = (p * n_last + n_last - 1) * f->n_channels;
        double energy = 0;
        for (int64_t i = 0; i < n_points; i++) energy += (double)target[i * *inner + at] * (double)target[i * *inner + at];
        if (energy > best[0]) best[0] = energy, best[1] = (double)at;
    }
    /* the rank in whose part most happens decides */
    double most = best[0];
    int64_t at[1] = {0};
    if (e->comm != NULL) GRV_TRY(grv_comm_all_max_f64(e->comm, 1, &most));
    if (!(best[0] < most)) at[0] = (int64_t)best[1];
    if (e->comm != NULL) GRV_TRY(grv_comm_all_reduce_i64(e->comm, GRV_REDUCE_MAX, 1, at));
    *offset = at[0];
    return GRV_OK;
}

static void cut_slice(const evaluator *e, const float *field, int64_t offset, int64_t inner, float *slice)
{
    const int64_t n_points = grv_network_planes(e->network).count * grv_dataset_get_desc(e->data)->target.shape[1];
    for (int64_t i = 0; i < n_points; i++) slice[i] = field[i * inner + offset];
}

static grv_status gather_slice(const evaluator *e, const float *part, float *whole)
{
    const grv_dataset_field *const f = &grv_dataset_get_desc(e->data)->target;
    if (e->comm == NULL) {
        memcpy(whole, part, sizeof *part * (size_t)(f->shape[0] * f->shape[1]));
        return GRV_OK;
    }
    const int n_ranks = grv_comm_size(e->comm);
    int64_t *bytes = NULL;
    grv_status status = agree(e, GRVI_ALLOC(&bytes, n_ranks));
    for (int r = 0; status == GRV_OK && r < n_ranks; r++)
        bytes[r] = grv_partition_range(f->shape[0], n_ranks, r).count * f->shape[1] * (int64_t)sizeof(float);
    if (status == GRV_OK) status = grv_comm_gather(e->comm, 0, part, bytes, whole);
    grv_free(bytes);
    return status;
}

static grv_status draw_sample(const evaluator *e, int64_t i, const float *target, const float *prediction, float *error)
{
    const grv_dataset_field *const f = &grv_dataset_get_desc(e->data)->target;
    const int64_t n = f->shape[0] * f->shape[1];
    char title[160], name[64], *path = NULL;
    for (int64_t k = 0; k < n; k++) error[k] = prediction[k] - target[k];
    /* axis 0 to the right, axis 1 upwards */
    const grv_slice_panel panels[] = {
        {.title = "simulation", .field = target, .x_stride = f->shape[1], .y_stride = 1, .scale = 0, .is_diverging = true},
        {.title = "prediction", .field = prediction, .x_stride = f->shape[1], .y_stride = 1, .scale = 0, .is_diverging = true},
        {.title = "prediction - simulation", .field = error, .x_stride = f->shape[1], .y_stride = 1, .scale = 0, .is_diverging = true}};
    (void)snprintf(title, sizeof title, "sample %lld, never seen in training: the busiest plane at the last time; relative error %.3f",
                   (long long)(e->samples.start + i), e->losses[i]);
    if (e->config->split != 0) (void)snprintf(title, sizeof title, "sample %lld (%s): relative error %.3f", (long long)(e->samples.start + i),
                                              split_words[e->config->split], e->losses[i]);
    (void)snprintf(name, sizeof name, "sample_%lld.png", (long long)(e->samples.start + i));
    const grv_slices slices = {.title = title, .panels = panels, .n_panels = 3, .ny = f->shape[1], .nx = f->shape[0], .is_smooth = true};
    GRV_TRY(path_in_run(e, name, &path));
    const grv_status status = grv_report_slices(&slices, path);
    grv_free(path);
    return status;
}

typedef struct picture_buffers {
    float *input, *target, *part, *target_slice, *prediction_slice, *error_slice;
} picture_buffers;

static grv_status take_buffers(const evaluator *e, picture_buffers *b)
{
    const grv_dataset_field *const f = &grv_dataset_get_desc(e->data)->target;
    const int64_t n = f->shape[0] * f->shape[1];
    GRV_TRY(GRVI_ALLOC(&b->input, grv_network_input_count(e->network)));
    GRV_TRY(GRVI_ALLOC(&b->target, grv_network_output_count(e->network)));
    GRV_TRY(GRVI_ALLOC(&b->part, n));
    GRV_TRY(GRVI_ALLOC(&b->target_slice, n));
    GRV_TRY(GRVI_ALLOC(&b->prediction_slice, n));
    return GRVI_ALLOC(&b->error_slice, n);
}

static grv_status picture(const evaluator *e, const picture_buffers *b, int64_t i)
{
    const grv_range planes = grv_network_planes(e->network);
    int64_t offset = 0, inner = 0;
    GRV_TRY(agree(e, grv_dataset_read(e->data, e->samples.start + i, planes.start, planes.count, b->input, b->target)));
    GRV_TRY(grv_network_run(e->network, b->input, b->target));
    GRV_TRY(choose_slice(e, b->target, &offset, &inner));
    cut_slice(e, b->target, offset, inner, b->part);
    GRV_TRY(gather_slice(e, b->part, b->target_slice));
    cut_slice(e, grv_network_output(e->network), offset, inner, b->part);
    GRV_TRY(gather_slice(e, b->part, b->prediction_slice));
    return agree(e, is_root(e) ? draw_sample(e, i, b->target_slice, b->prediction_slice, b->error_slice) : GRV_OK);
}

static grv_status draw_pictures(const evaluator *e)
{
    picture_buffers b = {0};
    if (grv_dataset_get_desc(e->data)->target.n_axes < 2 || e->config->pictures == 0) return GRV_OK;
    grv_status status = agree(e, take_buffers(e, &b));
    for (int64_t i = 0; status == GRV_OK && i < grvi_min_i64(e->config->pictures, e->samples.count); i++) status = picture(e, &b, i);
    grv_free(b.input);
    grv_free(b.target);
    grv_free(b.part);
    grv_free(b.target_slice);
    grv_free(b.prediction_slice);
    grv_free(b.error_slice);
    return status;
}

static grv_status draw_losses(const evaluator *e)
{
    const int64_t n = e->state.n_history;
    double *numbers = NULL;
    char *path = NULL;
    if (n == 0) return GRV_OK;
    GRV_TRY(GRVI_ALLOC(&numbers, 3 * n));
    bool has_validation = false;
    for (int64_t i = 0; i < n; i++) {
        numbers[i] = (double)(e->state.history[i].epoch + 1);
        numbers[n + i] = e->state.history[i].train_loss;
        numbers[2 * n + i] = e->state.history[i].validation_loss;
        has_validation = has_validation || isfinite(numbers[2 * n + i]);
    }
    const grv_curve curves[] = {{.name = "training", .x = numbers, .y = numbers + n, .n = n},
                                {.name = "validation", .x = numbers, .y = numbers + 2 * n, .n = n}};
    const grv_curves figure = {.title = "loss", .x_label = "epoch", .y_label = e->train.loss == GRV_LOSS_MSE ? "loss" : "relative L2 error",
                               .curves = curves, .n_curves = has_validation ? 2 : 1, .is_y_logarithmic = true};
    grv_status status = path_in_run(e, "loss.png", &path);
    if (status == GRV_OK) status = grv_report_curves(&figure, path);
    grv_free(path);
    grv_free(numbers);
    return status;
}

/* the loss curve is that of the whole run, also where the best weights are older */
static grv_status load_history(evaluator *e)
{
    char *path = NULL;
    GRV_TRY(path_in_run(e, "checkpoint", &path));
    grv_train_state latest = grv_train_state_init();
    if (grv_checkpoint_state(path, &latest) == GRV_OK) {
        grv_train_state_fini(&e->state);
        e->state = latest;
    }
    grv_free(path);
    return GRV_OK;
}

static grv_status evaluate(evaluator *e, grv_evaluate_result *r)
{
    GRV_TRY(agree(e, open_run(e)));
    GRV_TRY(open_network(e));
    GRV_TRY(grv_evaluate(e->network, e->data, e->samples, e->mean_field, e->comm, e->log, e->losses, &r->evaluation));
    r->surrogate_seconds = r->evaluation.seconds_per_sample;
    r->simulator_seconds = simulator_seconds(e);
    GRV_TRY(draw_pictures(e));
    grv_status status = is_root(e) ? load_history(e) : GRV_OK;
    if (status == GRV_OK && is_root(e)) status = write_metrics(e, r);
    if (status == GRV_OK && is_root(e)) status = draw_losses(e);
    return agree(e, status);
}

grv_status grv_evaluate_run(const grv_evaluate_config *config, grv_comm *comm, grv_log *log, grv_evaluate_result *result)
{
    evaluator e = {.config = config, .comm = comm != NULL && grv_comm_size(comm) > 1 ? comm : NULL, .log = log, .state = grv_train_state_init()};
    const grv_status status = evaluate(&e, result);
    grv_network_destroy(&e.network);
    grv_dataset_close(&e.data);
    grv_config_fini(grv_train_options(), &e.train);
    grv_train_state_fini(&e.state);
    grv_free(e.mean_field);
    grv_free(e.losses);
    return status;
}
