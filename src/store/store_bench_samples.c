/* Small samples with prefetch: a reader fills slots ahead of a consumer that is busy for a fixed time on each sample, as a training
 * step is. Fresh: each sample gets memory that nobody touched, freed when it is consumed. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/read_plan.h"
#include "grove/reader.h"
#include "store/store_bench.h"

enum { N_SAMPLES = 64, N_AHEAD = 8, N_SLOTS = N_AHEAD + 1 };
static const double compute_seconds = 1e-3;

typedef struct sample_context {
    const grvi_store_problem *problem;
    grv_array *array;
    int64_t n_bytes; /* of a sample */
    grv_read_plan *plans[N_SLOTS];
    void *out[N_SLOTS];
} sample_context;

static grv_status make_room(sample_context *context, int slot)
{
    if (!context->problem->fresh && context->out[slot] != NULL) return GRV_OK;
    grv_free(context->out[slot]);
    context->out[slot] = NULL;
    GRV_TRY(grvi_alloc(context->n_bytes, 1, &context->out[slot]));
    if (!context->problem->fresh) memset(context->out[slot], 0, (size_t)context->n_bytes);
    return GRV_OK;
}

static void place_sample(const sample_context *context, int64_t item, int64_t *start,
                         int64_t *count)
{
    const grv_array_desc *const desc = grv_array_get_desc(context->array);
    for (int i = 0; i < desc->rank; i++) {
        start[i] = 0;
        count[i] = desc->shape[i];
    }
    count[0] = context->problem->points ? GRVI_SAMPLE_ROWS : 1;
    start[0] = grvi_store_problem_place(item, count[0], desc->shape[0], GRVI_PLACE_FACTOR);
    if (context->problem->points) return;
    count[1] = GRVI_SAMPLE_PLANES;
    start[1] = grvi_store_problem_place(item, count[1], desc->shape[1], GRVI_PLANE_FACTOR);
}

static grv_status fill_slot(void *argument, int64_t item, int slot)
{
    sample_context *const context = argument;
    int64_t start[GRV_STORE_MAX_RANK], count[GRV_STORE_MAX_RANK];
    place_sample(context, item, start, count);
    GRV_TRY(make_room(context, slot));
    const grv_read_request request = {
        .array = context->array, .start = start, .count = count, .out = context->out[slot]};
    GRV_TRY(grv_read_plan_set(context->plans[slot], &request, 1));
    return grv_read_plan_run(context->plans[slot]);
}

static void compute(void)
{
    const double end = grv_clock_seconds() + compute_seconds;
    while (grv_clock_seconds() < end) {
    }
}

static grv_status consume(grv_reader *reader, double *seconds, double *waited)
{
    const double start = grv_clock_seconds(), waited_before = grv_reader_get_stats(reader).waited_s;
    grv_reader_begin(reader, N_SAMPLES);
    for (int i = 0; i < N_SAMPLES; i++) {
        int slot = -1;
        GRV_TRY(grv_reader_next(reader, &slot));
        compute();
    }
    *seconds = grv_clock_seconds() - start;
    *waited = grv_reader_get_stats(reader).waited_s - waited_before;
    return GRV_OK;
}

grv_status grvi_store_samples(const grvi_store_problem *problem, grv_array *array, double *seconds,
                              double *waited)
{
    grv_status status = GRV_OK;
    sample_context context = {.problem = problem, .array = array};
    grv_read_plan_params plan_params = grv_read_plan_params_default();
    grv_reader_params params = grv_reader_params_default();
    grv_reader *reader = NULL;
    const grv_reader_source source = {.context = &context, .fill = fill_slot};
    int64_t start[GRV_STORE_MAX_RANK], count[GRV_STORE_MAX_RANK];
    place_sample(&context, 0, start, count);
    context.n_bytes = (int64_t)sizeof(float);
    for (int i = 0; i < grv_array_get_desc(array)->rank; i++) context.n_bytes *= count[i];
    plan_params.n_threads = 1; /* samples side by side rather than parts of one */
    params.n_ahead = N_AHEAD;
    params.n_threads = problem->n_threads;
    for (int i = 0; i < N_SLOTS; i++) {
        GRV_TRY_GOTO(grv_read_plan_create(NULL, 0, &plan_params, &context.plans[i]));
        GRV_TRY_GOTO(make_room(&context, i));
    }
    GRV_TRY_GOTO(grv_reader_create(&source, &params, &reader));
    GRV_TRY_GOTO(consume(reader, seconds, waited));
done:
    grv_reader_destroy(&reader);
    for (int i = 0; i < N_SLOTS; i++) {
        grv_read_plan_destroy(&context.plans[i]);
        grv_free(context.out[i]);
    }
    return status;
}
