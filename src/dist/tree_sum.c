/* Sum over planes in a fixed binary tree.
 * Each run of planes is cut greedily into the largest subtrees that it holds completely: at most 2 log2(n_planes) of them.
 * All ranks know all runs, so they know all subtrees ("nodes") and the additions that are left after exchanging their sums.
 * Short vectors: every rank gathers all nodes and finishes alone (one message round). Long vectors: every rank finishes a
 * slice of the vector, then the slices are gathered, so that traffic does not grow with the number of ranks.
 * Sums are in double; the loops run over pieces of the vector that stay in cache. */
#include "dist/tree_sum.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/check.h"
#include "grove/core.h"

enum { PIECE = 512 }; /* doubles of a vector that are taken through the tree together: 4 KiB */
static const int64_t min_bytes_for_slices = 64 << 10;

typedef struct tree_node {
    int64_t start; /* first plane */
    int level;
    int64_t slot; /* place among the nodes of all ranks */
} tree_node;

typedef struct subtree {
    int64_t first; /* local number of its first plane */
    int64_t count; /* planes */
} subtree;

typedef struct addition {
    int64_t to, from; /* slots: to += from */
} addition;

struct grv_tree_sum {
    grv_comm *comm; /* NULL in a dry plan */
    int n_ranks, rank, n_threads;
    int64_t n;
    int64_t n_local_planes;
    int64_t n_own, n_nodes, n_additions;
    subtree *own;         /* [n_own] */
    addition *additions;  /* [n_additions]; the last one, if any, writes the root */
    int64_t *node_counts; /* [n_ranks] */
    int64_t *bytes;       /* [n_ranks] of the gather: nodes, or slices of the result */
    bool sliced;
    grv_exchange *exchange; /* nodes to slices; NULL unless sliced */
};

/* Level of the largest subtree that starts at plane a and lies in [a, b). */
static int largest_level(int64_t a, int64_t b, int64_t n_planes)
{
    int level = 0;
    for (int64_t width = 2;
         a % width == 0 && grvi_min_i64(a + width, n_planes) <= b && width < 2 * n_planes;
         width *= 2)
        level++;
    return level;
}

/* Walks over the subtrees of a rank; runs that touch are one. */
typedef struct node_walk {
    const grv_tree_sum_params *params;
    int rank;
    int64_t i;          /* next run to ask for */
    int64_t at, end;    /* what is left of the current run */
    int64_t next_local; /* local number of plane `at` */
} node_walk;

/* GRV_END after the last one. */
static grv_status next_node(node_walk *w, tree_node *node, subtree *local)
{
    const int64_t n_planes = w->params->n_planes;
    grv_range run;
    while (w->at == w->end) {
        if (!w->params->run_of(w->params->argument, w->rank, w->i, &run)) return GRV_END;
        w->i++;
        GRV_CHECK(run.count >= 0 && run.start >= (run.count > 0 ? w->end : 0) &&
                      run.start + run.count <= n_planes,
                  GRV_E_ARG,
                  "run %lld of rank %d: ascending runs within %lld planes expected, [%lld, %lld) "
                  "found after %lld",
                  (long long)w->i - 1, w->rank, (long long)n_planes, (long long)run.start,
                  (long long)(run.start + run.count), (long long)w->end);
        if (run.count == 0) continue;
        w->at = run.start;
        w->end = run.start + run.count;
        /* the runs that continue this one */
        while (w->params->run_of(w->params->argument, w->rank, w->i, &run) && run.start == w->end &&
               run.count > 0 && run.start + run.count <= n_planes) {
            w->end += run.count;
            w->i++;
        }
    }
    const int level = largest_level(w->at, w->end, n_planes);
    const int64_t stop = grvi_min_i64(w->at + ((int64_t)1 << level), n_planes);
    *node = (tree_node){.start = w->at, .level = level};
    *local = (subtree){.first = w->next_local, .count = stop - w->at};
    w->next_local += stop - w->at;
    w->at = stop;
    return GRV_OK;
}

static grv_status count_nodes(grv_tree_sum *plan, const grv_tree_sum_params *params)
{
    int64_t n_held = 0;
    for (int r = 0; r < plan->n_ranks; r++) {
        node_walk w = {.params = params, .rank = r};
        tree_node node;
        subtree local;
        grv_status status = GRV_OK;
        while ((status = next_node(&w, &node, &local)) == GRV_OK) plan->node_counts[r]++;
        if (status != GRV_END) return status;
        plan->n_nodes += plan->node_counts[r];
        n_held += w.next_local;
        if (r == plan->rank) plan->n_local_planes = w.next_local;
    }
    GRV_CHECK(n_held == params->n_planes, GRV_E_SHAPE,
              "%lld planes expected on the ranks together, %lld found", (long long)params->n_planes,
              (long long)n_held);
    plan->n_own = plan->node_counts[plan->rank];
    return GRV_OK;
}

static int by_start(const void *a, const void *b)
{
    const int64_t x = ((const tree_node *)a)->start, y = ((const tree_node *)b)->start;
    return (x > y) - (x < y);
}

static grv_status list_nodes(grv_tree_sum *plan, const grv_tree_sum_params *params,
                             tree_node *nodes)
{
    int64_t slot = 0, next_plane = 0;
    for (int r = 0; r < plan->n_ranks; r++) {
        node_walk w = {.params = params, .rank = r};
        subtree local;
        for (int64_t k = 0; k < plan->node_counts[r]; k++) {
            if (next_node(&w, &nodes[slot], &local) != GRV_OK)
                break; /* counted before: cannot happen */
            nodes[slot].slot = slot;
            if (r == plan->rank) plan->own[k] = local;
            slot++;
        }
    }
    qsort(nodes, (size_t)plan->n_nodes, sizeof *nodes, by_start);
    for (int64_t k = 0; k < plan->n_nodes; k++) {
        GRV_CHECK(nodes[k].start == next_plane, GRV_E_SHAPE, "plane %lld is held by %s rank",
                  (long long)next_plane, nodes[k].start > next_plane ? "no" : "more than one");
        next_plane =
            grvi_min_i64(nodes[k].start + ((int64_t)1 << nodes[k].level), params->n_planes);
    }
    return GRV_OK;
}

/* The additions above the nodes, which come in the order of planes: two siblings at the top of a stack become their parent.
 * What is left at the end lies at the right border, where a node without a sibling stands for its parent. The stack grows
 * at the front of nodes, which has been read. */
static void list_additions(grv_tree_sum *plan, tree_node *nodes)
{
    int64_t n_stack = 0;
    for (int64_t k = 0; k < plan->n_nodes; k++) {
        nodes[n_stack++] = nodes[k];
        const bool last = k == plan->n_nodes - 1;
        while (n_stack >= 2) {
            tree_node *const left = &nodes[n_stack - 2], *const right = &nodes[n_stack - 1];
            if (right->level != left->level && !last) break;
            const int64_t width = (int64_t)1 << left->level;
            if (left->start / width % 2 != 0 || right->start != left->start + width) break;
            plan->additions[plan->n_additions++] =
                (addition){.to = left->slot, .from = right->slot};
            left->level++;
            n_stack--;
        }
    }
    GRV_ASSERT(n_stack == 1);
}

static grv_range slice_of(const grv_tree_sum *plan, int rank)
{
    return grv_partition_range(plan->n, plan->n_ranks, rank);
}

static grv_status fill(grv_tree_sum *plan, const grv_tree_sum_params *params)
{
    tree_node *nodes = NULL;
    grv_status status = GRV_OK;
    GRV_CHECK(params->n_planes >= 1 && params->n_planes < INT64_MAX / 4 && params->n >= 0,
              GRV_E_ARG, "tree sum over %lld planes of %lld doubles", (long long)params->n_planes,
              (long long)params->n);
    GRV_TRY(GRVI_CALLOC(&plan->node_counts, plan->n_ranks));
    GRV_TRY(GRVI_CALLOC(&plan->bytes, plan->n_ranks));
    GRV_TRY(count_nodes(plan, params));
    GRV_TRY(GRVI_ALLOC(&plan->own, plan->n_own));
    GRV_TRY(GRVI_ALLOC(&plan->additions, plan->n_nodes));
    GRV_TRY(GRVI_ALLOC(&nodes, plan->n_nodes));
    status = list_nodes(plan, params, nodes);
    if (status == GRV_OK) list_additions(plan, nodes);
    grv_free(nodes);
    plan->sliced = plan->n_ranks > 1 &&
                   plan->n_nodes * plan->n * (int64_t)sizeof(double) >= min_bytes_for_slices;
    for (int r = 0; r < plan->n_ranks; r++)
        plan->bytes[r] = (plan->sliced ? slice_of(plan, r).count : plan->node_counts[r] * plan->n) *
                         (int64_t)sizeof(double);
    return status;
}

grv_status grvi_tree_sum_create_dry(int n_ranks, int rank, const grv_tree_sum_params *params,
                                    grv_tree_sum **plan)
{
    GRV_TRY(GRVI_CALLOC(plan, 1));
    **plan = (grv_tree_sum){
        .n_ranks = n_ranks, .rank = rank, .n_threads = params->n_threads, .n = params->n};
    const grv_status status = fill(*plan, params);
    if (status != GRV_OK) grv_tree_sum_destroy(plan);
    return status;
}

/* Every own node's slice r goes to rank r; slots of this rank's slice come from everybody. */
static grv_status create_exchange(grv_tree_sum *plan)
{
    const int64_t word = (int64_t)sizeof(double),
                  slice_bytes = slice_of(plan, plan->rank).count * word;
    const int64_t n_sends = plan->n_own * plan->n_ranks;
    grv_message *sends = NULL, *receives = NULL;
    grv_status status = GRVI_ALLOC(&sends, n_sends);
    if (status == GRV_OK) status = GRVI_ALLOC(&receives, plan->n_nodes);
    GRV_TRY_GOTO(grv_comm_agree(plan->comm, status));
    for (int64_t i = 0; i < n_sends; i++) {
        const int peer =
            (int)((plan->rank + 1 + i / plan->n_own) % plan->n_ranks); /* not all to rank 0 first */
        const grv_range slice = slice_of(plan, peer);
        sends[i] = (grv_message){.peer = peer,
                                 .offset = (i % plan->n_own * plan->n + slice.start) * word,
                                 .bytes = slice.count * word};
    }
    int64_t slot = 0;
    for (int r = 0; r < plan->n_ranks; r++)
        for (int64_t k = 0; k < plan->node_counts[r]; k++, slot++)
            receives[slot] =
                (grv_message){.peer = r, .offset = slot * slice_bytes, .bytes = slice_bytes};
    status =
        grv_exchange_create(plan->comm, n_sends, sends, plan->n_nodes, receives, &plan->exchange);
done:
    grv_free(sends);
    grv_free(receives);
    return status;
}

grv_status grv_tree_sum_create(grv_comm *comm, const grv_tree_sum_params *params,
                               grv_tree_sum **plan)
{
    *plan = NULL;
    grv_status status =
        grvi_tree_sum_create_dry(grv_comm_size(comm), grv_comm_rank(comm), params, plan);
    status = grv_comm_agree(comm, status);
    if (status == GRV_OK) {
        (*plan)->comm = comm;
        if ((*plan)->sliced) status = create_exchange(*plan);
    }
    if (status != GRV_OK) grv_tree_sum_destroy(plan);
    return status;
}

void grv_tree_sum_destroy(grv_tree_sum **plan)
{
    if (plan == NULL || *plan == NULL) return;
    grv_exchange_destroy(&(*plan)->exchange);
    grv_free((*plan)->own);
    grv_free((*plan)->additions);
    grv_free((*plan)->node_counts);
    grv_free((*plan)->bytes);
    grv_free(*plan);
    *plan = NULL;
}

int64_t grv_tree_sum_local_planes(const grv_tree_sum *plan)
{
    return plan->n_local_planes;
}

int64_t grv_tree_sum_scratch_bytes(const grv_tree_sum *plan)
{
    if (plan->n_ranks == 1) return 0;
    return plan->n_nodes * (plan->sliced ? slice_of(plan, plan->rank).count : plan->n) *
           (int64_t)sizeof(double);
}

int64_t grvi_tree_sum_own_nodes(const grv_tree_sum *plan)
{
    return plan->n_own;
}

int64_t grvi_tree_sum_all_nodes(const grv_tree_sum *plan)
{
    return plan->n_nodes;
}

static void add(int64_t n, const double *restrict from, double *restrict to)
{
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

typedef struct sum_run {
    const grv_tree_sum *plan;
    double *vectors; /* planes or nodes */
    int64_t length;  /* of a vector */
} sum_run;

static void reduce_piece(void *argument, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const sum_run *const run = argument;
    const int64_t length = run->length;
    for (int64_t a = begin; a < end; a += PIECE) {
        const int64_t n = grvi_min_i64(end - a, PIECE);
        for (int64_t k = 0; k < run->plan->n_own; k++) {
            const subtree *const own = &run->plan->own[k];
            double *const v = run->vectors + own->first * length + a;
            for (int64_t step = 1; step < own->count; step *= 2)
                for (int64_t i = 0; i + step < own->count; i += 2 * step)
                    add(n, v + (i + step) * length, v + i * length);
            double *const packed =
                run->vectors + k * length + a; /* own->first >= k: it was read already */
            if (packed != v) memcpy(packed, v, (size_t)n * sizeof *v);
        }
    }
}

void grvi_tree_sum_reduce(const grv_tree_sum *plan, double *planes)
{
    sum_run run = {.plan = plan, .vectors = planes, .length = plan->n};
    grv_parallel_for(plan->n_threads, plan->n, reduce_piece, &run);
}

static void finish_piece(void *argument, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const sum_run *const run = argument;
    for (int64_t a = begin; a < end; a += PIECE) {
        const int64_t n = grvi_min_i64(end - a, PIECE);
        for (int64_t k = 0; k < run->plan->n_additions; k++) {
            const addition *const step = &run->plan->additions[k];
            add(n, run->vectors + step->from * run->length + a,
                run->vectors + step->to * run->length + a);
        }
    }
}

void grvi_tree_sum_finish(const grv_tree_sum *plan, int64_t length, double *nodes, double *result)
{
    sum_run run = {.plan = plan, .vectors = nodes, .length = length};
    const int64_t root = plan->n_additions > 0 ? plan->additions[plan->n_additions - 1].to : 0;
    grv_parallel_for(plan->n_threads, length, finish_piece, &run);
    if (length > 0) memmove(result, nodes + root * length, (size_t)length * sizeof *result);
}

grv_status grv_tree_sum_run(grv_tree_sum *plan, double *planes, double *result, void *scratch)
{
    GRV_CHECK(plan->comm != NULL, GRV_E_ARG, "a dry tree sum cannot run");
    double *const nodes = scratch;
    grvi_tree_sum_reduce(plan, planes);
    if (plan->n_ranks == 1) {
        grvi_tree_sum_finish(plan, plan->n, planes, result);
    } else if (!plan->sliced) {
        GRV_TRY(grv_comm_all_gather(plan->comm, planes, plan->bytes, nodes));
        grvi_tree_sum_finish(plan, plan->n, nodes, result);
    } else {
        const grv_range slice = slice_of(plan, plan->rank);
        GRV_TRY(grv_exchange_begin(plan->exchange, (const void *const[]){planes},
                                   (void *const[]){nodes}));
        GRV_TRY(grv_exchange_end(plan->exchange));
        grvi_tree_sum_finish(plan, slice.count, nodes, nodes);
        GRV_TRY(grv_comm_all_gather(plan->comm, nodes, plan->bytes, result));
    }
    return GRV_OK;
}
