/* `grove predict`: inputs of one data set, predictions as targets of another. */
#include <stddef.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/median.h"
#include "grove/core.h"
#include "grove/use.h"

#define AT(field) offsetof(grv_predict_config, field)
static const grv_option options[] = {
    {.key = "checkpoint", .type = GRV_OPTION_STRING, .offset = AT(checkpoint), .help = "weights: RUN/best or RUN/checkpoint"},
    {.key = "input", .type = GRV_OPTION_STRING, .offset = AT(input), .help = "data set whose inputs are taken"},
    {.key = "output", .type = GRV_OPTION_STRING, .offset = AT(output), .help = "data set to make, with predictions as targets"},
    {.key = "first", .type = GRV_OPTION_I64, .offset = AT(first), .fallback = "0", .min = 0, .max = 9e15, .help = "first sample"},
    {.key = "count", .type = GRV_OPTION_I64, .offset = AT(count), .fallback = "0", .min = 0, .max = 9e15, .unit = "samples",
     .help = "how many; 0: all from the first on"},
    {.key = "threads", .type = GRV_OPTION_INT, .offset = AT(threads), .fallback = "0", .min = 0, .max = 1024, .help = "of each rank; 0: shared"},
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

const grv_option_table *grv_predict_options(void) { return &table; }

typedef struct predictor {
    const grv_predict_config *config;
    grv_comm *comm; /* NULL on a single rank */
    grv_dataset *input, *output; /* output on rank 0 only */
    grv_network *network;
    int64_t first, count;
    float *input_part, *input_whole, *output_whole; /* whole ones on rank 0 */
    int64_t *bytes;  /* [ranks] */
    double *seconds; /* [count] */
} predictor;

static bool is_root(const predictor *p) { return p->comm == NULL || grv_comm_rank(p->comm) == 0; }
static grv_status agree(const predictor *p, grv_status status) { return p->comm == NULL ? status : grv_comm_agree(p->comm, status); }

static grv_status check_data(const predictor *p, const grv_fno_params *fno)
{
    const grv_dataset_field *const in = &grv_dataset_get_desc(p->input)->input;
    const int n_axes = fno->static_input ? fno->n_axes - 1 : fno->n_axes;
    GRV_CHECK(in->n_axes == n_axes && in->n_channels == fno->c_in, GRV_E_CONFIG,
              "the network takes inputs of %d axes and %lld channels, '%s' has %d and %lld", n_axes, (long long)fno->c_in, p->config->input,
              in->n_axes, (long long)in->n_channels);
    for (int a = 0; a < n_axes; a++) {
        const char *const name = grv_fno_axis_name(fno, a);
        GRV_CHECK(in->axis_names[a] == NULL || strcmp(in->axis_names[a], name) == 0, GRV_E_CONFIG,
                  "axis %d of the network is '%s', that of the inputs of '%s' is '%s'", a, name, p->config->input, in->axis_names[a]);
        GRV_CHECK(in->shape[a] == fno->n[a], GRV_E_CONFIG, "the network takes %lld points along axis '%s', '%s' has %lld", (long long)fno->n[a],
                  name, p->config->input, (long long)in->shape[a]);
    }
    return GRV_OK;
}

static grv_status open_all(predictor *p, grv_network_params *network)
{
    GRV_TRY(grv_checkpoint_model(p->config->checkpoint, &network->fno, NULL));
    GRV_TRY(grv_dataset_open(p->config->input, NULL, &p->input));
    GRV_TRY(check_data(p, &network->fno));
    const int64_t n = grv_dataset_get_desc(p->input)->n_samples;
    p->first = p->config->first;
    GRV_CHECK(p->first < n && p->config->count <= n - p->first, GRV_E_CONFIG, "samples %lld to %lld: '%s' has %lld", (long long)p->first,
              (long long)(p->first + p->config->count), p->config->input, (long long)n);
    p->count = p->config->count > 0 ? p->config->count : n - p->first;
    return GRVI_CALLOC(&p->seconds, p->count);
}

static grv_status create_output(predictor *p, const grv_fno_params *fno)
{
    const grv_dataset_desc *const in = grv_dataset_get_desc(p->input);
    grv_dataset_desc desc = grv_dataset_desc_default();
    desc.n_samples = p->count;
    desc.input = in->input;
    desc.target = (grv_dataset_field){.n_axes = fno->n_axes, .n_channels = fno->c_out};
    for (int a = 0; a < fno->n_axes; a++) {
        desc.target.axis_names[a] = grv_fno_axis_name(fno, a);
        desc.target.shape[a] = fno->n[a];
    }
    return grv_dataset_create(p->config->output, &desc, NULL, &p->output);
}

static grv_status take_buffers(predictor *p, const grv_fno_params *fno)
{
    const int64_t n_ranks = p->comm == NULL ? 1 : grv_comm_size(p->comm);
    const int64_t in = grv_network_input_count(p->network), out = grv_network_output_count(p->network);
    const int64_t planes = grv_network_planes(p->network).count;
    GRV_TRY(GRVI_ALLOC(&p->input_part, in));
    GRV_TRY(GRVI_ALLOC(&p->bytes, n_ranks));
    for (int r = 0; r < n_ranks; r++)
        p->bytes[r] = grv_partition_range(fno->n[0], (int)n_ranks, r).count * (out / planes) * (int64_t)sizeof(float);
    if (!is_root(p)) return GRV_OK;
    GRV_TRY(GRVI_ALLOC(&p->input_whole, in / planes * fno->n[0]));
    GRV_TRY(GRVI_ALLOC(&p->output_whole, out / planes * fno->n[0]));
    return create_output(p, fno);
}

static grv_status predict_sample(predictor *p, int64_t i, int64_t n_planes)
{
    const grv_range planes = grv_network_planes(p->network);
    const int64_t sample = p->first + i;
    GRV_TRY(agree(p, grv_dataset_read(p->input, sample, planes.start, planes.count, p->input_part, NULL)));
    const double begin = grv_clock_seconds();
    GRV_TRY(grv_network_run(p->network, p->input_part, NULL));
    p->seconds[i] = grv_clock_seconds() - begin;
    const float *whole = grv_network_output(p->network);
    if (p->comm != NULL) {
        GRV_TRY(grv_comm_gather(p->comm, 0, whole, p->bytes, p->output_whole));
        whole = p->output_whole;
    }
    grv_status status = GRV_OK;
    if (is_root(p)) {
        status = grv_dataset_read(p->input, sample, 0, n_planes, p->input_whole, NULL);
        if (status == GRV_OK) status = grv_dataset_write_sample(p->output, i, p->input_whole, whole);
    }
    return agree(p, status);
}

static grv_status predict(predictor *p, grv_log *log)
{
    const int n_ranks = p->comm == NULL ? 1 : grv_comm_size(p->comm);
    grv_network_params network = {.batch = 1, .n_data = 1, .n_domain = n_ranks, .n_threads = p->config->threads};
    if (network.n_threads == 0) network.n_threads = (int)grvi_max_i64(1, grv_threads_available() / n_ranks);
    GRV_TRY(agree(p, open_all(p, &network)));
    GRV_TRY(grv_network_create(&network, p->comm, NULL, &p->network));
    GRV_TRY(grv_checkpoint_load(p->config->checkpoint, p->network, NULL, NULL, p->comm));
    GRV_TRY(agree(p, take_buffers(p, &network.fno)));
    grv_progress progress;
    grv_status status = GRV_OK;
    grv_progress_begin(&progress, log, "predict", "samples", p->count);
    for (int64_t i = 0; status == GRV_OK && i < p->count; i++) {
        status = predict_sample(p, i, network.fno.n[0]);
        grv_progress_update(&progress, i + 1);
    }
    grv_progress_end(&progress);
    return status;
}

grv_status grv_predict(const grv_predict_config *config, grv_comm *comm, grv_log *log, int64_t *n_done, double *seconds)
{
    predictor p = {.config = config, .comm = comm != NULL && grv_comm_size(comm) > 1 ? comm : NULL};
    const grv_status status = predict(&p, log);
    if (status == GRV_OK) {
        *n_done = p.count;
        *seconds = grvi_median(p.count, p.seconds);
    }
    grv_network_destroy(&p.network);
    grv_dataset_close(&p.input);
    grv_dataset_close(&p.output);
    grv_free(p.input_part);
    grv_free(p.input_whole);
    grv_free(p.output_whole);
    grv_free(p.bytes);
    grv_free(p.seconds);
    return status;
}
