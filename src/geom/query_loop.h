/* Runs a body for every query: checked, in an order that keeps caches warm, by threads that take blocks of queries as they get free. Internal. */
#ifndef GRVI_GEOM_QUERY_LOOP_H
#define GRVI_GEOM_QUERY_LOOP_H

#include "core/check.h"

/* Threads that are used at most. */
enum { GRVI_MAX_SEARCH_THREADS = 256 };

/* query [3] of the queries' type; index: the query's number; scratch of this thread */
typedef void grvi_query_body(const void *job, const void *query, int64_t index, void *scratch);

typedef struct grvi_query_loop {
    const void *queries; /* [n][dimension] */
    int64_t n;
    int dimension;
    bool is_double, accepts_not_finite;
    int n_threads;
    int64_t scratch_bytes; /* for each thread, zero at first */
    grvi_query_body *body;
    const void *job;
} grvi_query_loop;

/* GRV_E_ARG for the first query that is not finite, before any body runs, unless those are accepted; GRV_E_NOMEM. */
grv_status grvi_query_loop_run(const grvi_query_loop *loop) GRV_MUST_CHECK;

#endif
