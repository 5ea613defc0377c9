/* Batches of a data set, read ahead: a reader whose items are batches, with a pair of buffers for each of its slots. */
#include "grove/loader.h"

#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/reader.h"

struct grv_loader {
    grv_dataset *dataset;
    grv_loader_params params;
    int64_t n_input, n_target; /* floats of a sample on this rank */
    int n_slots;
    float **inputs, **targets; /* [n_slots] */
    int64_t *samples;          /* of the sequence; changed only while the reader is stopped */
    grv_reader *reader;
    _Atomic bool given_up; /* the sequence is: what is being read is of no use */
};

static int64_t field_plane(const grv_dataset_field *field)
{
    int64_t n = field->n_channels;
    for (int a = 1; a < field->n_axes; a++) n *= field->shape[a];
    return n;
}

/* a grv_reader_source's fill: one batch */
static grv_status fill_batch(void *context, int64_t item, int slot)
{
    grv_loader *const l = context;
    const int64_t *const samples = l->samples + item * l->params.batch;
    for (int64_t i = 0; i < l->params.batch; i++) {
        GRV_CHECK(!atomic_load(&l->given_up), GRV_E_CANCELLED, "the sequence was given up");
        GRV_TRY(grv_dataset_read(l->dataset, samples[i], l->params.planes.start,
                                 l->params.planes.count, l->inputs[slot] + i * l->n_input,
                                 l->targets[slot] + i * l->n_target));
    }
    return GRV_OK;
}

static void give_up(void *context, int slot)
{
    (void)slot;
    atomic_store(&((grv_loader *)context)->given_up, true);
}

static grv_status take_buffers(grv_loader *l)
{
    GRV_TRY(GRVI_CALLOC(&l->inputs, l->n_slots));
    GRV_TRY(GRVI_CALLOC(&l->targets, l->n_slots));
    for (int i = 0; i < l->n_slots; i++) {
        GRV_TRY(GRVI_CALLOC(&l->inputs[i], l->params.batch * l->n_input));
        GRV_TRY(GRVI_CALLOC(&l->targets[i], l->params.batch * l->n_target));
    }
    return GRV_OK;
}

static grv_status open_reader(grv_loader *l)
{
    const grv_reader_source source = {.context = l, .fill = fill_batch, .cancel = give_up};
    grv_reader_params params = grv_reader_params_default();
    params.n_ahead = l->params.n_ahead;
    GRV_TRY(grv_reader_create(&source, &params, &l->reader));
    l->n_slots = grv_reader_slots(l->reader);
    return take_buffers(l);
}

grv_status grv_loader_create(grv_dataset *dataset, const grv_loader_params *params,
                             grv_loader **out)
{
    *out = NULL;
    const grv_dataset_desc *const desc = grv_dataset_get_desc(dataset);
    GRV_CHECK(params->batch >= 1 && params->n_ahead >= 1, GRV_E_ARG,
              "loader: a batch of at least 1 sample and 1 batch ahead expected");
    GRV_CHECK(params->planes.start >= 0 && params->planes.count >= 1 &&
                  params->planes.start + params->planes.count <= desc->target.shape[0],
              GRV_E_ARG, "loader: planes %lld to %lld of %lld", (long long)params->planes.start,
              (long long)(params->planes.start + params->planes.count),
              (long long)desc->target.shape[0]);
    grv_loader *l = NULL;
    GRV_TRY(GRVI_CALLOC(&l, 1));
    l->dataset = dataset;
    l->params = *params;
    l->n_input = params->planes.count * field_plane(&desc->input);
    l->n_target = params->planes.count * field_plane(&desc->target);
    const grv_status status = open_reader(l);
    if (status != GRV_OK) grv_loader_destroy(&l);
    *out = l;
    return status;
}

void grv_loader_destroy(grv_loader **loader)
{
    if (loader == NULL || *loader == NULL) return;
    grv_loader *const l = *loader;
    grv_reader_destroy(&l->reader);
    for (int i = 0; i < l->n_slots; i++) {
        if (l->inputs != NULL) grv_free(l->inputs[i]);
        if (l->targets != NULL) grv_free(l->targets[i]);
    }
    grv_free(l->inputs);
    grv_free(l->targets);
    grv_free(l->samples);
    grv_free(l);
    *loader = NULL;
}

grv_status grv_loader_begin(grv_loader *l, const int64_t *samples, int64_t n)
{
    GRV_CHECK(n >= 0 && n % l->params.batch == 0, GRV_E_ARG,
              "loader: whole batches of %lld samples expected, %lld samples found",
              (long long)l->params.batch, (long long)n);
    int64_t *copy = NULL;
    GRV_TRY(GRVI_ALLOC(&copy, n));
    if (n > 0) memcpy(copy, samples, sizeof *copy * (size_t)n);
    grv_reader_stop(l->reader);
    grv_free(l->samples);
    l->samples = copy;
    atomic_store(&l->given_up, false);
    grv_reader_begin(l->reader, n / l->params.batch);
    return GRV_OK;
}

grv_status grv_loader_next(grv_loader *l, const float **input, const float **target)
{
    int slot = -1;
    *input = *target = NULL;
    const grv_status status = grv_reader_next(l->reader, &slot);
    if (status != GRV_OK) return status;
    *input = l->inputs[slot];
    *target = l->targets[slot];
    return GRV_OK;
}

double grv_loader_waited(const grv_loader *l)
{
    return grv_reader_get_stats(l->reader).waited_s;
}
