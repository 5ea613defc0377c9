/* The loop over queries. Batches bound the memory of the ordering; blocks are handed out by a counter, because queries differ in cost. */
#include <stdatomic.h>

#include "core/alloc.h"
#include "geom/point_tree.h"
#include "geom/query_loop.h"
#include "geom/query_order.h"
#include "grove/core.h"

/* Queries of one block; fewest that are worth ordering; how far ahead those out of order are fetched. */
enum { BLOCK_QUERIES = 256, ORDERED_QUERIES = 64, AHEAD = 12 };

typedef struct query_batch {
    const grvi_query_loop *loop;
    int64_t first, n;
    const uint64_t *order; /* [n] or NULL for as they come */
    char *scratch;         /* [n_threads][scratch_bytes] */
    int64_t scratch_stride;
    _Atomic int64_t next_block;
} query_batch;

/* A query with three coordinates. */
static void read_query(const grvi_query_loop *loop, int64_t index, double *query)
{
    if (loop->is_double) {
        const double *const q = (const double *)loop->queries + index * loop->dimension;
        for (int d = 0; d < loop->dimension; d++) query[d] = q[d];
    } else {
        const float *const q = (const float *)loop->queries + index * loop->dimension;
        for (int d = 0; d < loop->dimension; d++) ((float *)(void *)query)[d] = q[d];
    }
}

static int64_t number_of(const query_batch *batch, int64_t i)
{
    return batch->first + (batch->order != NULL ? (int64_t)batch->order[i] : i);
}

static void run_blocks(void *argument, int thread, int64_t begin, int64_t end)
{
    query_batch *const batch = argument;
    void *const scratch = batch->scratch + thread * batch->scratch_stride;
    const int64_t query_bytes =
        batch->loop->dimension * (int64_t)(batch->loop->is_double ? sizeof(double) : sizeof(float));
    double query[3] = {0}; /* three floats, if the queries are */
    (void)begin;
    (void)end;
    for (;;) {
        const int64_t first =
            BLOCK_QUERIES * atomic_fetch_add_explicit(&batch->next_block, 1, memory_order_relaxed);
        const int64_t last = grvi_min_i64(first + BLOCK_QUERIES, batch->n);
        if (first >= last) return;
        for (int64_t i = first; i < last; i++) {
            const int64_t index = number_of(batch, i);
            __builtin_prefetch((const char *)batch->loop->queries +
                               number_of(batch, grvi_min_i64(i + AHEAD, last - 1)) * query_bytes);
            read_query(batch->loop, index, query);
            batch->loop->body(batch->loop->job, query, index, scratch);
        }
    }
}

grv_status grvi_query_loop_run(const grvi_query_loop *loop)
{
    grv_status status = GRV_OK;
    const int n_threads = loop->n_threads < 1                         ? 1
                          : loop->n_threads > GRVI_MAX_SEARCH_THREADS ? GRVI_MAX_SEARCH_THREADS
                                                                      : loop->n_threads;
    const int64_t largest = grvi_min_i64(loop->n, GRVI_QUERY_BATCH);
    uint64_t *order = NULL;
    query_batch batch = {.loop = loop, .scratch_stride = grvi_round_up(loop->scratch_bytes, 64)};
    if (!loop->accepts_not_finite)
        GRV_TRY(grvi_points_check_finite("queries", loop->queries, loop->n, loop->dimension,
                                         loop->is_double, n_threads));
    if (largest >= ORDERED_QUERIES)
        GRV_TRY_GOTO(GRVI_ALLOC(&order, grvi_query_order_words(largest, n_threads)));
    GRV_TRY_GOTO(grvi_calloc(n_threads, (size_t)batch.scratch_stride, (void **)&batch.scratch));
    for (batch.first = 0; batch.first < loop->n; batch.first += batch.n) {
        batch.n = grvi_min_i64(loop->n - batch.first, GRVI_QUERY_BATCH);
        batch.order = batch.n >= ORDERED_QUERIES ? order : NULL;
        if (batch.order != NULL) {
            const int64_t at = batch.first * loop->dimension *
                               (int64_t)(loop->is_double ? sizeof(double) : sizeof(float));
            grvi_query_order((const char *)loop->queries + at, batch.n, loop->dimension,
                             loop->is_double, n_threads, order);
        }
        atomic_store(&batch.next_block, 0);
        grv_parallel_for(n_threads, n_threads, run_blocks, &batch);
    }
done:
    grv_free(order);
    grv_free(batch.scratch);
    return status;
}
