/* Repartition: a generalised all-to-all between two sets of boxes (spec sciai4industry 5.1, DistDL).
 * This rank's source box is intersected with every rank's destination box, which gives the messages to send, and its
 * destination box with every rank's source box, which gives those to receive. A message holds its elements in the order of
 * the global index, the last dimension fastest. A message that lies in one piece in memory is sent from, or received to,
 * where it lies; the others are packed in scratch. Planning costs one call of each callback and rank, and memory by neighbour. */
#include "core/alloc.h"
#include "dist/strided_copy.h"
#include "grove/core.h"
#include "grove/dist.h"

enum {
    BUFFER_ARRAY,
    BUFFER_SCRATCH,
    N_BUFFERS
}; /* where a message lies: in the caller's array or packed */
enum { SCRATCH_ALIGNMENT = 64 };

struct grv_repartition {
    grv_exchange *exchange; /* NULL in a dry plan */
    grvi_copy_list pack, keep, unpack;
    grv_traffic traffic;
    void *destination, *scratch; /* of the run in progress */
};

/* What planning passes around. */
typedef struct planner {
    const grv_repartition_params *params;
    int n_ranks, rank;
    int64_t n_sends, n_receives;
    grv_message *sends, *receives;
} planner;

static grv_status get_box(const planner *p, const grv_layout *layout, int rank, grv_box *box)
{
    *box = (grv_box){.n_dims = p->params->n_dims};
    layout->box_of(layout->argument, rank, box);
    int64_t bytes = p->params->element_bytes;
    bool fits = box->n_dims == p->params->n_dims;
    for (int d = 0; fits && d < box->n_dims; d++)
        fits = box->count[d] >= 0 && grvi_mul_i64(bytes, grvi_max_i64(box->count[d], 1), &bytes);
    GRV_CHECK(fits, GRV_E_ARG,
              "box of rank %d: %d dimensions and counts >= 0 within 64 bits expected", rank,
              p->params->n_dims);
    return GRV_OK;
}

static int64_t local_offset(const planner *p, const grv_layout *layout, const grv_box *mine,
                            const grv_box *part)
{
    int64_t offset = 0;
    for (int d = 0; d < mine->n_dims; d++)
        offset += (part->start[d] - mine->start[d]) * layout->stride[d];
    return offset * p->params->element_bytes;
}

/* Plans the message of `part`, which lies in this rank's box `mine`; to_scratch tells packing from unpacking. */
static void plan_message(const planner *p, const grv_layout *layout, const grv_box *mine,
                         const grv_box *part, int peer, bool packing, grvi_copy_list *copies,
                         grv_message *message, int64_t *scratch_bytes)
{
    const grv_repartition_params *const params = p->params;
    int64_t packed_stride[GRV_BOX_MAX_DIMS], stride = 1;
    for (int d = part->n_dims - 1; d >= 0; d--) {
        packed_stride[d] = stride;
        stride *= part->count[d];
    }
    const int64_t offset = local_offset(p, layout, mine, part);
    const grvi_strided_copy copy =
        packing ? grvi_strided_copy_make(params->n_dims, params->element_bytes, part->count,
                                         layout->stride, offset, packed_stride, *scratch_bytes)
                : grvi_strided_copy_make(params->n_dims, params->element_bytes, part->count,
                                         packed_stride, *scratch_bytes, layout->stride, offset);
    *message = (grv_message){.peer = peer, .bytes = stride * params->element_bytes};
    if (grvi_strided_copy_is_contiguous(&copy)) {
        message->buffer = BUFFER_ARRAY;
        message->offset = offset;
        return;
    }
    message->buffer = BUFFER_SCRATCH;
    message->offset = *scratch_bytes;
    grvi_copy_list_add(copies, &copy);
    *scratch_bytes = grvi_round_up(*scratch_bytes + message->bytes, SCRATCH_ALIGNMENT);
}

/* Ranks other than this one whose boxes meet `mine`. */
static grv_status count_peers(const planner *p, const grv_layout *theirs, const grv_box *mine,
                              int64_t *n)
{
    grv_box box;
    *n = 0;
    for (int r = 0; r < p->n_ranks; r++) {
        GRV_TRY(get_box(p, theirs, r, &box));
        *n += r != p->rank && grv_box_intersect(mine, &box, &box);
    }
    return GRV_OK;
}

/* Messages with all other ranks, beginning with the next one, so that not all ranks turn to rank 0 first. */
static grv_status plan_messages(const planner *p, bool packing, const grv_box *mine,
                                grvi_copy_list *copies, grv_message *messages,
                                int64_t *scratch_bytes, int64_t *bytes)
{
    const grv_layout *const layout = packing ? &p->params->source : &p->params->destination;
    const grv_layout *const theirs = packing ? &p->params->destination : &p->params->source;
    grv_box part;
    for (int k = 1; k < p->n_ranks; k++) {
        const int peer = (int)(((int64_t)p->rank + k) % p->n_ranks);
        GRV_TRY(get_box(p, theirs, peer, &part));
        if (!grv_box_intersect(mine, &part, &part)) continue;
        plan_message(p, layout, mine, &part, peer, packing, copies, messages, scratch_bytes);
        *bytes += messages->bytes;
        messages++;
    }
    return GRV_OK;
}

static grv_status plan_kept(const planner *p, const grv_box *source, const grv_box *destination,
                            grv_repartition *plan)
{
    const grv_repartition_params *const params = p->params;
    grv_box part;
    GRV_TRY(grvi_copy_list_init(&plan->keep, 1, params->n_threads));
    if (!grv_box_intersect(source, destination, &part)) return GRV_OK;
    const grvi_strided_copy copy = grvi_strided_copy_make(
        params->n_dims, params->element_bytes, part.count, params->source.stride,
        local_offset(p, &params->source, source, &part), params->destination.stride,
        local_offset(p, &params->destination, destination, &part));
    grvi_copy_list_add(&plan->keep, &copy);
    plan->traffic.bytes_kept = plan->keep.bytes;
    return GRV_OK;
}

static grv_status plan_local(planner *p, grv_repartition *plan)
{
    const grv_repartition_params *const params = p->params;
    grv_traffic *const t = &plan->traffic;
    grv_box source, destination;
    GRV_CHECK(params->n_dims >= 1 && params->n_dims <= GRV_BOX_MAX_DIMS &&
                  params->element_bytes >= 1,
              GRV_E_ARG,
              "repartition of 1 to %d dimensions expected, %d found, with elements of %lld bytes",
              GRV_BOX_MAX_DIMS, params->n_dims, (long long)params->element_bytes);
    GRV_TRY(get_box(p, &params->source, p->rank, &source));
    GRV_TRY(get_box(p, &params->destination, p->rank, &destination));
    GRV_TRY(count_peers(p, &params->destination, &source, &p->n_sends));
    GRV_TRY(count_peers(p, &params->source, &destination, &p->n_receives));
    GRV_TRY(GRVI_ALLOC(&p->sends, p->n_sends));
    GRV_TRY(GRVI_ALLOC(&p->receives, p->n_receives));
    GRV_TRY(grvi_copy_list_init(&plan->pack, p->n_sends, params->n_threads));
    GRV_TRY(grvi_copy_list_init(&plan->unpack, p->n_receives, params->n_threads));
    GRV_TRY(
        plan_messages(p, true, &source, &plan->pack, p->sends, &t->scratch_bytes, &t->bytes_sent));
    GRV_TRY(plan_messages(p, false, &destination, &plan->unpack, p->receives, &t->scratch_bytes,
                          &t->bytes_received));
    GRV_TRY(plan_kept(p, &source, &destination, plan));
    t->n_messages_sent = p->n_sends;
    t->n_messages_received = p->n_receives;
    const int64_t expected = grv_box_size(&destination) * params->element_bytes,
                  found = t->bytes_received + t->bytes_kept;
    GRV_CHECK(found == expected, GRV_E_SHAPE,
              "destination box of rank %d: %lld bytes expected from the sources, %lld found",
              p->rank, (long long)expected, (long long)found);
    return GRV_OK;
}

/* The local part of planning; p->sends and p->receives are the caller's to free. */
static grv_status create(planner *p, grv_repartition **plan)
{
    GRV_TRY(GRVI_CALLOC(plan, 1));
    const grv_status status = plan_local(p, *plan);
    if (status != GRV_OK) grv_repartition_destroy(plan);
    return status;
}

static void free_messages(planner *p)
{
    grv_free(p->sends);
    grv_free(p->receives);
}

grv_status grv_repartition_create(grv_comm *comm, const grv_repartition_params *params,
                                  grv_repartition **plan)
{
    *plan = NULL;
    planner p = {.params = params, .n_ranks = grv_comm_size(comm), .rank = grv_comm_rank(comm)};
    grv_status status = grv_comm_agree(comm, create(&p, plan));
    if (status == GRV_OK)
        status = grv_exchange_create(comm, p.n_sends, p.sends, p.n_receives, p.receives,
                                     &(*plan)->exchange);
    if (status != GRV_OK) grv_repartition_destroy(plan);
    free_messages(&p);
    return status;
}

grv_status grv_repartition_create_dry(int n_ranks, int rank, const grv_repartition_params *params,
                                      grv_repartition **plan)
{
    *plan = NULL;
    GRV_CHECK(n_ranks >= 1 && rank >= 0 && rank < n_ranks, GRV_E_ARG, "rank %d of %d", rank,
              n_ranks);
    planner p = {.params = params, .n_ranks = n_ranks, .rank = rank};
    const grv_status status = create(&p, plan);
    free_messages(&p);
    return status;
}

grv_repartition_params grv_repartition_adjoint(const grv_repartition_params *params)
{
    grv_repartition_params adjoint = *params;
    adjoint.source = params->destination;
    adjoint.destination = params->source;
    return adjoint;
}

void grv_repartition_destroy(grv_repartition **plan)
{
    if (plan == NULL || *plan == NULL) return;
    grv_exchange_destroy(&(*plan)->exchange);
    grvi_copy_list_fini(&(*plan)->pack);
    grvi_copy_list_fini(&(*plan)->keep);
    grvi_copy_list_fini(&(*plan)->unpack);
    grv_free(*plan);
    *plan = NULL;
}

grv_traffic grv_repartition_traffic(const grv_repartition *plan)
{
    return plan->traffic;
}

grv_status grv_repartition_begin(grv_repartition *plan, const void *source, void *destination,
                                 void *scratch)
{
    GRV_CHECK(plan->exchange != NULL, GRV_E_ARG, "a dry repartition plan cannot run");
    grvi_copy_list_run(&plan->pack, source, scratch);
    GRV_TRY(grv_exchange_begin(plan->exchange, (const void *const[N_BUFFERS]){source, scratch},
                               (void *const[N_BUFFERS]){destination, scratch}));
    plan->destination = destination;
    plan->scratch = scratch;
    grvi_copy_list_run(&plan->keep, source, destination);
    return GRV_OK;
}

grv_status grv_repartition_poll(grv_repartition *plan)
{
    GRV_CHECK(plan->exchange != NULL, GRV_E_ARG, "a dry repartition plan cannot run");
    return grv_exchange_poll(plan->exchange);
}

grv_status grv_repartition_end(grv_repartition *plan)
{
    GRV_CHECK(plan->exchange != NULL, GRV_E_ARG, "a dry repartition plan cannot run");
    GRV_TRY(grv_exchange_end(plan->exchange));
    grvi_copy_list_run(&plan->unpack, plan->scratch, plan->destination);
    return GRV_OK;
}

grv_status grv_repartition_run(grv_repartition *plan, const void *source, void *destination,
                               void *scratch)
{
    GRV_TRY(grv_repartition_begin(plan, source, destination, scratch));
    GRV_TRY(grv_repartition_end(plan));
    return GRV_OK;
}
