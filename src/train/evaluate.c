/* Evaluation on samples of a data set, one per data rank at a time. */
#include <math.h>

#include "core/alloc.h"
#include "core/median.h"
#include "grove/core.h"
#include "grove/train.h"
#include "kernels/point_kernels.h"
#include "train/network_impl.h"

/* the samples that this rank reads: every n_data-th, the last one again where they do not come out even */
static grv_status rank_samples(const grv_network *n, grv_range samples, int64_t **out, int64_t *n_runs)
{
    const int n_data = n->params.n_data, data_index = (n->comm == NULL ? 0 : grv_comm_rank(n->comm)) / n->params.n_domain;
    *n_runs = grvi_ceil_div(samples.count, n_data);
    GRV_TRY(GRVI_ALLOC(out, *n_runs));
    for (int64_t i = 0; i < *n_runs; i++) (*out)[i] = samples.start + grvi_min_i64(i * n_data + data_index, samples.count - 1);
    return GRV_OK;
}

typedef struct evaluation_state {
    grv_loader *loader;
    int64_t *samples, n_runs;
    double *seconds;     /* [n_runs] */
    double *mean_sums;   /* [n_runs][planes of this rank][2]: sums of (mean - y)^2 and y^2 */
    double *all_sums;    /* of all ranks */
    int64_t *bytes;      /* [ranks] of mean_sums */
    int64_t n_planes;    /* of all domain ranks */
} evaluation_state;

static void state_fini(evaluation_state *s)
{
    grv_loader_destroy(&s->loader);
    grv_free(s->samples);
    grv_free(s->seconds);
    grv_free(s->mean_sums);
    grv_free(s->all_sums);
    grv_free(s->bytes);
}

static grv_status state_init(evaluation_state *s, const grv_network *n, grv_dataset *data, grv_range samples)
{
    const int n_ranks = n->params.n_data * n->params.n_domain;
    const grv_loader_params loader = {.planes = grv_network_planes(n), .batch = 1, .n_ahead = 2};
    *s = (evaluation_state){0};
    GRV_CHECK(n->params.loss && n->params.batch == n->params.n_data, GRV_E_ARG, "evaluate: a network with loss and one sample per data rank expected");
    GRV_TRY(rank_samples(n, samples, &s->samples, &s->n_runs));
    GRV_TRY(GRVI_CALLOC(&s->seconds, s->n_runs));
    s->n_planes = n->params.fno.n[0];
    GRV_TRY(GRVI_CALLOC(&s->mean_sums, 2 * s->n_runs * loader.planes.count));
    GRV_TRY(GRVI_CALLOC(&s->all_sums, 2 * s->n_runs * s->n_planes * n->params.n_data));
    GRV_TRY(GRVI_CALLOC(&s->bytes, n_ranks));
    for (int r = 0; r < n_ranks; r++)
        s->bytes[r] = 2 * s->n_runs * grv_partition_range(s->n_planes, n->params.n_domain, r % n->params.n_domain).count * (int64_t)sizeof(double);
    GRV_TRY(grv_loader_create(data, &loader, &s->loader));
    return grv_loader_begin(s->loader, s->samples, s->n_runs);
}

/* (mean - y)^2 and y^2 of run i, summed over each of this rank's planes */
static void add_mean_sums(evaluation_state *s, const grv_network *n, int64_t i, const float *mean_field, const float *target)
{
    const grvi_point_kernels *const kernels = grvi_point_kernels_for(grvi_isa_chosen());
    const int64_t n_planes = grv_network_planes(n).count, plane = grv_network_output_count(n) / n_planes;
    for (int64_t x = 0; x < n_planes; x++) {
        const grvi_loss_sums sums = kernels->loss_sums(plane, mean_field + x * plane, target + x * plane);
        s->mean_sums[2 * (i * n_planes + x)] = sums.error2;
        s->mean_sums[2 * (i * n_planes + x) + 1] = sums.target2;
    }
}

/* the mean predictor's error of each sample, plane by plane in the order of one rank, whoever had the plane */
static grv_status mean_field_error(evaluation_state *s, const grv_network *n, grv_comm *comm, grv_range samples, double *out)
{
    const double *sums = s->mean_sums;
    if (n->comm != NULL) {
        GRV_TRY(grv_comm_all_gather(comm, s->mean_sums, s->bytes, s->all_sums));
        sums = s->all_sums;
    }
    *out = 0;
    for (int64_t i = 0; i < samples.count; i++) {
        double error = 0, norm = 0;
        const int64_t run = i / n->params.n_data;
        const double *rank_sums = sums + 2 * s->n_runs * s->n_planes * (i % n->params.n_data);
        for (int m = 0; m < n->params.n_domain; m++) {
            const int64_t n_planes = grv_partition_range(s->n_planes, n->params.n_domain, m).count;
            for (int64_t x = run * n_planes; x < (run + 1) * n_planes; x++) {
                error += rank_sums[2 * x];
                norm += rank_sums[2 * x + 1];
            }
            rank_sums += 2 * s->n_runs * n_planes;
        }
        *out += sqrt(error / norm) / (double)samples.count;
    }
    return GRV_OK;
}

/* losses are the same on every rank, and so is this error */
static grv_status check_loss(double loss, int64_t sample)
{
    GRV_CHECK(isfinite(loss), GRV_E_NUMERIC, "sample %lld: the error of the prediction is not finite", (long long)sample);
    return GRV_OK;
}

static grv_status run_samples(evaluation_state *s, grv_network *n, const float *mean_field, grv_range samples, grv_comm *comm, grv_log *log,
                              double *losses, grv_evaluation *out)
{
    grv_progress progress;
    grv_status status = GRV_OK;
    grv_progress_begin(&progress, log, "evaluate", "samples", samples.count);
    for (int64_t i = 0; i < s->n_runs; i++) {
        const float *input = NULL, *target = NULL;
        status = grv_loader_next(s->loader, &input, &target);
        if (n->comm != NULL) status = grv_comm_agree(comm, status);
        if (status != GRV_OK) break;
        const double begin = grv_clock_seconds();
        status = grv_network_run(n, input, target);
        if (status != GRV_OK) break;
        s->seconds[i] = grv_clock_seconds() - begin;
        if (mean_field != NULL) add_mean_sums(s, n, i, mean_field, target);
        for (int64_t k = 0; status == GRV_OK && k < n->params.n_data && i * n->params.n_data + k < samples.count; k++) {
            const double loss = grv_exec_sample_losses(n->exec)[k];
            status = check_loss(loss, samples.start + i * n->params.n_data + k);
            out->relative_l2 += loss / (double)samples.count;
            if (losses != NULL) losses[i * n->params.n_data + k] = loss;
        }
        if (status != GRV_OK) break;
        grv_progress_update(&progress, grvi_min_i64((i + 1) * n->params.n_data, samples.count));
    }
    grv_progress_end(&progress);
    return status;
}

grv_status grv_evaluate(grv_network *n, grv_dataset *data, grv_range samples, const float *mean_field, grv_comm *comm, grv_log *log,
                        double *sample_losses, grv_evaluation *out)
{
    *out = (grv_evaluation){.n_samples = samples.count, .relative_l2_zero = 1, .relative_l2_mean_field = (double)NAN};
    evaluation_state s;
    if (samples.count == 0) {
        out->relative_l2 = (double)NAN;
        return GRV_OK;
    }
    grv_status status = state_init(&s, n, data, samples);
    if (n->comm != NULL) status = grv_comm_agree(comm, status);
    if (status == GRV_OK) status = run_samples(&s, n, mean_field, samples, comm, log, sample_losses, out);
    if (status == GRV_OK && mean_field != NULL) status = mean_field_error(&s, n, comm, samples, &out->relative_l2_mean_field);
    if (status == GRV_OK) {
        out->seconds_per_sample = grvi_median(s.n_runs, s.seconds);
    }
    state_fini(&s);
    return status;
}

grv_status grv_mean_field(const grv_network *n, grv_dataset *data, grv_range samples, float *mean)
{
    const int64_t count = grv_network_output_count(n);
    const grv_range planes = grv_network_planes(n);
    double *sum = NULL;
    float *target = NULL;
    grv_status status = GRVI_CALLOC(&sum, count);
    if (status == GRV_OK) status = GRVI_ALLOC(&target, count);
    for (int64_t i = 0; status == GRV_OK && i < samples.count; i++) {
        status = grv_dataset_read(data, samples.start + i, planes.start, planes.count, NULL, target);
        for (int64_t k = 0; status == GRV_OK && k < count; k++) sum[k] += (double)target[k];
    }
    for (int64_t k = 0; status == GRV_OK && k < count; k++) mean[k] = (float)(sum[k] / (double)samples.count);
    grv_free(sum);
    grv_free(target);
    return status;
}
