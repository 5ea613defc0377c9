/* Adam and AdamW: settings, clipping and threads around the kernel that does the arithmetic. */
#include "grove/optimiser.h"

#include <math.h>

#include "core/check.h"
#include "grove/core.h"
#include "kernels/point_kernels.h"

static const double clip_epsilon = 1e-6; /* as torch.nn.utils.clip_grad_norm_ */

grv_optimiser grv_optimiser_default(void)
{
    return (grv_optimiser){
        .kind = GRV_OPTIMISER_ADAM, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
}

grv_status grv_optimiser_check(const grv_optimiser *o)
{
    /* written so that NaN fails */
    GRV_CHECK(o->kind == GRV_OPTIMISER_ADAM || o->kind == GRV_OPTIMISER_ADAMW, GRV_E_CONFIG,
              "unknown optimiser %d", (int)o->kind);
    GRV_CHECK(o->beta1 >= 0 && o->beta1 < 1, GRV_E_CONFIG, "beta1 in [0, 1) expected, %g found",
              o->beta1);
    GRV_CHECK(o->beta2 >= 0 && o->beta2 < 1, GRV_E_CONFIG, "beta2 in [0, 1) expected, %g found",
              o->beta2);
    GRV_CHECK(o->epsilon > 0 && o->epsilon < (double)INFINITY, GRV_E_CONFIG,
              "epsilon > 0 expected, %g found", o->epsilon);
    GRV_CHECK(o->weight_decay >= 0 && o->weight_decay < (double)INFINITY, GRV_E_CONFIG,
              "weight decay >= 0 expected, %g found", o->weight_decay);
    GRV_CHECK(o->max_gradient_norm >= 0, GRV_E_CONFIG,
              "largest gradient norm >= 0 expected, %g found", o->max_gradient_norm);
    return GRV_OK;
}

static grvi_adam kernel_step(const grv_optimiser *o, const grv_optimiser_step *step)
{
    grvi_adam adam = {.learning_rate = step->rate,
                      .beta1 = o->beta1,
                      .beta2 = o->beta2,
                      .epsilon = o->epsilon,
                      .weight_decay = o->weight_decay,
                      .correction1 = 1 - pow(o->beta1, (double)step->number),
                      .correction2 = 1 - pow(o->beta2, (double)step->number),
                      .gradient_scale = 1,
                      .decoupled = o->kind == GRV_OPTIMISER_ADAMW};
    if (o->max_gradient_norm > 0)
        adam.gradient_scale = fmin(1, o->max_gradient_norm / (step->gradient_norm + clip_epsilon));
    return adam;
}

typedef struct update {
    const grvi_point_kernels *kernels;
    const grv_optimiser_block *block;
    grvi_adam adam;
} update;

/* [begin, end) are pieces of GRVI_SUM_BLOCK elements, so that where vectors end does not depend on the number of threads */
static void update_pieces(void *argument, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const update *const u = argument;
    const grv_optimiser_block *const b = u->block;
    const int64_t first = begin * GRVI_SUM_BLOCK,
                  n = grvi_min_i64(end * GRVI_SUM_BLOCK, b->n) - first;
    const int64_t offset = first * (int64_t)(b->dtype == GRV_F64 ? sizeof(double) : sizeof(float));
    u->kernels->adam(&u->adam, n, (const char *)b->gradient + offset,
                     (char *)b->parameters + offset, (char *)b->mean + offset,
                     (char *)b->mean_square + offset);
}

void grv_optimiser_update(const grv_optimiser *optimiser, const grv_optimiser_step *step,
                          const grv_optimiser_block *block)
{
    GRV_ASSERT(step->number >= 1 && block->n >= 0);
    update u = {.kernels = block->dtype == GRV_F64 ? grvi_point_kernels_f64()
                                                   : grvi_point_kernels_for(grvi_isa_chosen()),
                .block = block,
                .adam = kernel_step(optimiser, step)};
    grv_parallel_for(step->n_threads, grvi_ceil_div(block->n, GRVI_SUM_BLOCK), update_pieces, &u);
}
