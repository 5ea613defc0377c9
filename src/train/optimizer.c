/* Adam over a block, cut at borders that do not depend on threads; the norm is a sum over pieces that do not depend on ranks. */
#include "grove/optimizer.h"

#include <math.h>

#include "core/alloc.h"
#include "graph/plan_impl.h"
#include "grove/core.h"
#include "kernels/point_kernels.h"
#include "train/network_impl.h"

struct grv_optimizer {
    grv_optimizer_params params;
    grv_network *network;
    grv_comm *comm;
    const grvi_point_kernels *kernels;
    float *moments[2];
    int64_t count;
    /* sums of squares: one per replicated tensor, then one per owned tensor and |k_1| */
    int64_t n_local, n_total;
    double *local, *total;
    int64_t *bytes; /* [ranks] */
};

grv_optimizer_params grv_optimizer_params_default(void)
{
    return (grv_optimizer_params){.kind = GRV_OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
}

static int n_ranks_of(const grv_network *n) { return n->params.n_data * n->params.n_domain; }

/* |k_1| of parameter i on a domain rank; 0 for a replicated one */
static int64_t magnitudes_of(const grv_network *n, int i, int domain_index)
{
    if (!n->graph->params[i].info.owned) return 0;
    const grvi_spectral_layout *const layout = &n->graph->params[i].layout;
    return grv_partition_range(grvi_axis_magnitudes(&layout->axis[layout->n_axes > 1]), n->params.n_domain, domain_index).count;
}

/* of all earlier parameters */
static int64_t magnitudes_before(const grv_network *n, int i, int domain_index)
{
    int64_t count = 0;
    for (int j = 0; j < i; j++) count += magnitudes_of(n, j, domain_index);
    return count;
}

static grv_status prepare_norm(grv_optimizer *o)
{
    const grv_network *const n = o->network;
    GRV_TRY(GRVI_CALLOC(&o->bytes, n_ranks_of(n)));
    /* every group of ranks that shares samples has all pieces: the first one is enough */
    for (int r = 0; r < n->params.n_domain; r++) {
        o->bytes[r] = magnitudes_before(n, n->graph->n_params, r) * (int64_t)sizeof(double);
        o->n_total += magnitudes_before(n, n->graph->n_params, r);
    }
    o->n_local = magnitudes_before(n, n->graph->n_params, o->comm == NULL ? 0 : grv_comm_rank(o->comm) % n->params.n_domain);
    GRV_TRY(GRVI_CALLOC(&o->local, o->n_local));
    return GRVI_CALLOC(&o->total, o->n_total);
}

grv_status grv_optimizer_create(const grv_optimizer_params *p, grv_network *network, grv_comm *comm, grv_optimizer **out)
{
    *out = NULL;
    GRV_CHECK(network->gradients != NULL, GRV_E_ARG, "optimizer: a network with gradients expected");
    GRV_CHECK(p->beta1 >= 0 && p->beta1 < 1 && p->beta2 >= 0 && p->beta2 < 1 && p->epsilon > 0 && p->weight_decay >= 0 && p->clip_norm >= 0,
              GRV_E_ARG, "optimizer: betas in [0, 1), epsilon > 0, weight decay and clip norm >= 0 expected");
    grv_optimizer *o = NULL;
    GRV_TRY(GRVI_CALLOC(&o, 1));
    o->params = *p;
    o->network = network;
    o->comm = network->comm == NULL ? NULL : comm;
    o->kernels = grvi_point_kernels_for(grvi_isa_chosen());
    const int64_t count = grv_plan_summarise(network->plan).param_count;
    grv_status status = GRVI_CALLOC(&o->moments[0], count);
    if (status == GRV_OK) status = GRVI_CALLOC(&o->moments[1], count);
    if (status == GRV_OK) status = prepare_norm(o);
    if (status != GRV_OK) {
        grv_optimizer_destroy(&o);
        return status;
    }
    *out = o;
    return GRV_OK;
}

void grv_optimizer_destroy(grv_optimizer **optimizer)
{
    if (optimizer == NULL || *optimizer == NULL) return;
    grv_free((*optimizer)->moments[0]);
    grv_free((*optimizer)->moments[1]);
    grv_free((*optimizer)->local);
    grv_free((*optimizer)->total);
    grv_free((*optimizer)->bytes);
    grv_free(*optimizer);
    *optimizer = NULL;
}

/* numbers of one |k_1| of an owned tensor are one piece of the block */
static void sum_pieces(void *argument, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    grv_optimizer *const o = argument;
    const grv_network *const n = o->network;
    int64_t piece = 0;
    for (int i = 0; i < n->graph->n_params; i++) {
        const grv_param_slice slice = n->plan->slices[i];
        const grvi_spectral_layout *const layout = &n->graph->params[i].layout;
        if (!n->graph->params[i].info.owned) continue;
        const int64_t mode = 2 * layout->channels * layout->channels, first = grvi_spectral_modes_before(layout, slice.magnitudes.start);
        for (int64_t k = 0; k < slice.magnitudes.count; k++, piece++) {
            if (piece < begin || piece >= end) continue;
            const int64_t from = grvi_spectral_modes_before(layout, slice.magnitudes.start + k) - first;
            const int64_t to = grvi_spectral_modes_before(layout, slice.magnitudes.start + k + 1) - first;
            o->local[piece] = o->kernels->sum_squares((to - from) * mode, n->gradients + slice.offset + from * mode);
        }
    }
}

static grv_status gradient_norm(grv_optimizer *o, double *norm)
{
    const grv_network *const n = o->network;
    double sum = 0;
    for (int i = 0; i < n->graph->n_params; i++)
        if (!n->graph->params[i].info.owned)
            sum += o->kernels->sum_squares(n->plan->slices[i].count, n->gradients + n->plan->slices[i].offset);
    grv_parallel_for(n->params.n_threads, o->n_local, sum_pieces, o);
    const double *pieces = o->local;
    if (o->comm != NULL) {
        GRV_TRY(grv_comm_all_gather(o->comm, o->local, o->bytes, o->total));
        pieces = o->total;
    }
    /* by tensor, then by |k_1|: the order of one rank, whoever had the piece */
    for (int i = 0; i < n->graph->n_params; i++) {
        const double *rank_list = pieces;
        for (int r = 0; r < n->params.n_domain; r++) {
            const int64_t count = magnitudes_of(n, i, r);
            for (int64_t k = 0; k < count; k++) sum += rank_list[magnitudes_before(n, i, r) + k];
            rank_list += o->bytes[r] / (int64_t)sizeof(double);
        }
    }
    *norm = sqrt(sum);
    return GRV_OK;
}

typedef struct adam_call {
    const grv_optimizer *optimizer;
    grvi_adam step;
    int64_t n;
} adam_call;

static void adam_range(void *argument, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const adam_call *const call = argument;
    const grv_optimizer *const o = call->optimizer;
    const int64_t first = begin * GRVI_SUM_BLOCK, n = grvi_min_i64(end * GRVI_SUM_BLOCK, call->n) - first;
    o->kernels->adam(&call->step, n, o->network->gradients + first, o->network->block + first, o->moments[0] + first, o->moments[1] + first);
}

grv_status grv_optimizer_step(grv_optimizer *o, double rate, double *norm)
{
    const grv_optimizer_params *const p = &o->params;
    double found = 0, scale = 1;
    if (p->clip_norm > 0) {
        GRV_TRY(gradient_norm(o, &found));
        if (found > p->clip_norm) scale = p->clip_norm / found;
    }
    if (norm != NULL) *norm = found;
    o->count++;
    adam_call call = {.optimizer = o, .n = grv_plan_summarise(o->network->plan).param_count};
    call.step = (grvi_adam){.learning_rate = rate, .beta1 = p->beta1, .beta2 = p->beta2, .epsilon = p->epsilon, .weight_decay = p->weight_decay,
                            .correction1 = 1 - pow(p->beta1, (double)o->count), .correction2 = 1 - pow(p->beta2, (double)o->count),
                            .gradient_scale = scale, .decoupled = p->kind == GRV_OPTIMIZER_ADAMW};
    grv_parallel_for(o->network->params.n_threads, grvi_ceil_div(call.n, GRVI_SUM_BLOCK), adam_range, &call);
    return GRV_OK;
}

int64_t grv_optimizer_count(const grv_optimizer *o) { return o->count; }
void grv_optimizer_set_count(grv_optimizer *o, int64_t count) { o->count = count; }
float *grv_optimizer_moments(grv_optimizer *o, int which) { return o->moments[which]; }
