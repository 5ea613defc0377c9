/* Reading ahead. One thread fills a ring of batch buffers; the consumer holds one of them at a time.
 * Lock order: there is one lock. ring positions only grow: batch b uses buffer b % n_buffers; the reader may fill batch b while
 * b - consumed < n_buffers, where consumed counts the batches that the consumer has given back. */
#include "grove/loader.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"

struct grv_loader {
    grv_dataset *dataset;
    grv_loader_params params;
    int64_t n_input, n_target; /* floats of a sample on this rank */
    int n_buffers;
    float **inputs, **targets; /* [n_buffers] */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    bool stop, reading; /* the reader is inside a read */
    int64_t *samples;
    int64_t n_batches, filled, consumed;
    bool holds_one;          /* the consumer has a buffer */
    grv_status status;       /* of the batch `filled` */
    char message[512];
    double waited;
};

static int64_t field_plane(const grv_dataset_field *field)
{
    int64_t n = field->n_channels;
    for (int a = 1; a < field->n_axes; a++) n *= field->shape[a];
    return n;
}

/* reads one batch; called without the lock */
static grv_status read_batch(const grv_loader *l, const int64_t *samples, float *input, float *target)
{
    for (int64_t i = 0; i < l->params.batch; i++)
        GRV_TRY(grv_dataset_read(l->dataset, samples[i], l->params.planes.start, l->params.planes.count, input + i * l->n_input,
                                 target + i * l->n_target));
    return GRV_OK;
}

static bool has_work(const grv_loader *l)
{
    return l->status == GRV_OK && l->filled < l->n_batches && l->filled - l->consumed < l->n_buffers;
}

static void *reader_main(void *argument)
{
    grv_loader *const l = argument;
    (void)pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        if (!has_work(l)) {
            (void)pthread_cond_wait(&l->changed, &l->lock);
            continue;
        }
        const int64_t b = l->filled;
        const int buffer = (int)(b % l->n_buffers);
        l->reading = true; /* keeps l->samples alive */
        (void)pthread_mutex_unlock(&l->lock);
        const grv_status status = read_batch(l, l->samples + b * l->params.batch, l->inputs[buffer], l->targets[buffer]);
        (void)pthread_mutex_lock(&l->lock);
        l->reading = false;
        l->status = status;
        if (status == GRV_OK) l->filled++;
        else (void)snprintf(l->message, sizeof l->message, "%s", grv_error_message());
        (void)pthread_cond_broadcast(&l->changed);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return NULL;
}

static grv_status take_buffers(grv_loader *l)
{
    GRV_TRY(GRVI_CALLOC(&l->inputs, l->n_buffers));
    GRV_TRY(GRVI_CALLOC(&l->targets, l->n_buffers));
    for (int i = 0; i < l->n_buffers; i++) {
        GRV_TRY(GRVI_CALLOC(&l->inputs[i], l->params.batch * l->n_input));
        GRV_TRY(GRVI_CALLOC(&l->targets[i], l->params.batch * l->n_target));
    }
    return GRV_OK;
}

grv_status grv_loader_create(grv_dataset *dataset, const grv_loader_params *params, grv_loader **out)
{
    *out = NULL;
    const grv_dataset_desc *const desc = grv_dataset_get_desc(dataset);
    GRV_CHECK(params->batch >= 1 && params->n_ahead >= 1, GRV_E_ARG, "loader: a batch of at least 1 sample and 1 batch ahead expected");
    GRV_CHECK(params->planes.start >= 0 && params->planes.count >= 1 && params->planes.start + params->planes.count <= desc->target.shape[0],
              GRV_E_ARG, "loader: planes %lld to %lld of %lld", (long long)params->planes.start,
              (long long)(params->planes.start + params->planes.count), (long long)desc->target.shape[0]);
    grv_loader *l = NULL;
    GRV_TRY(GRVI_CALLOC(&l, 1));
    l->dataset = dataset;
    l->params = *params;
    l->n_buffers = params->n_ahead + 1;
    l->n_input = params->planes.count * field_plane(&desc->input);
    l->n_target = params->planes.count * field_plane(&desc->target);
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)pthread_cond_init(&l->changed, NULL);
    grv_status status = take_buffers(l);
    if (status == GRV_OK) {
        l->has_thread = pthread_create(&l->thread, NULL, reader_main, l) == 0;
        if (!l->has_thread) status = grvi_fail(GRV_E_NOMEM, __FILE__, __LINE__, __func__, "loader: no thread to be had");
    }
    if (status != GRV_OK) {
        grv_loader_destroy(&l);
        return status;
    }
    *out = l;
    return GRV_OK;
}

void grv_loader_destroy(grv_loader **loader)
{
    if (loader == NULL || *loader == NULL) return;
    grv_loader *const l = *loader;
    (void)pthread_mutex_lock(&l->lock);
    l->stop = true;
    (void)pthread_cond_broadcast(&l->changed);
    (void)pthread_mutex_unlock(&l->lock);
    if (l->has_thread) (void)pthread_join(l->thread, NULL);
    (void)pthread_cond_destroy(&l->changed);
    (void)pthread_mutex_destroy(&l->lock);
    for (int i = 0; i < l->n_buffers; i++) {
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
    GRV_CHECK(n >= 0 && n % l->params.batch == 0, GRV_E_ARG, "loader: whole batches of %lld samples expected, %lld samples found",
              (long long)l->params.batch, (long long)n);
    int64_t *copy = NULL;
    GRV_TRY(GRVI_ALLOC(&copy, n));
    if (n > 0) memcpy(copy, samples, sizeof *copy * (size_t)n);
    (void)pthread_mutex_lock(&l->lock);
    l->n_batches = 0; /* no other read begins; the result of the one under way is forgotten below */
    while (l->reading) (void)pthread_cond_wait(&l->changed, &l->lock);
    grv_free(l->samples);
    l->samples = copy;
    l->n_batches = n / l->params.batch;
    l->filled = l->consumed = 0;
    l->holds_one = false;
    l->status = GRV_OK;
    (void)pthread_cond_broadcast(&l->changed);
    (void)pthread_mutex_unlock(&l->lock);
    return GRV_OK;
}

grv_status grv_loader_next(grv_loader *l, const float **input, const float **target)
{
    const double begin = grv_clock_seconds();
    grv_status status = GRV_OK;
    *input = *target = NULL;
    (void)pthread_mutex_lock(&l->lock);
    if (l->holds_one) {
        l->consumed++;
        l->holds_one = false;
        (void)pthread_cond_broadcast(&l->changed);
    }
    while (l->consumed < l->n_batches && l->filled == l->consumed && l->status == GRV_OK) (void)pthread_cond_wait(&l->changed, &l->lock);
    if (l->consumed == l->n_batches) {
        status = GRV_END;
    } else if (l->filled > l->consumed) {
        const int buffer = (int)(l->consumed % l->n_buffers);
        *input = l->inputs[buffer];
        *target = l->targets[buffer];
        l->holds_one = true;
    } else {
        status = grvi_fail_from(l->status, l->message);
    }
    (void)pthread_mutex_unlock(&l->lock);
    l->waited += grv_clock_seconds() - begin;
    return status;
}

double grv_loader_waited(const grv_loader *l) { return l->waited; }
