/** @file read_plan.h
 * Reading many regions, or rows, of many arrays at once.
 *
 * A plan turns its requests into the stored objects that they touch, those into inner chunks and byte ranges, joins
 * neighbouring ranges, and has a bounded pool of threads read and decode them straight into the caller's memory. A chunk
 * that several requests or rows want is read and decoded once. What a run holds is bounded, whatever the plan's size:
 * opened objects, encoded bytes and working memory; a larger plan runs in waves.
 *
 * None of these calls is collective: each process acts for itself.
 */
#ifndef GROVE_READ_PLAN_H
#define GROVE_READ_PLAN_H

#include "grove/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One region, or a list of rows, of one array, and where it goes. */
typedef struct grv_read_request {
    grv_array *array;     /**< borrowed; must stay open as long as the plan lives */
    const int64_t *start; /**< [rank] first element along each axis; copied */
    const int64_t *count; /**< [rank] number of elements along each axis, may be 0; copied */
    const int64_t
        *rows;      /**< [n_rows] numbers along axis 0, in any order, repeats allowed; they take
                               the place of start[0] and count[0], which are not looked at. Copied. NULL: no list */
    int64_t n_rows; /**< length of rows, may be 0 */
    void *
        out; /**< elements of the array's type in the machine's byte order; row i of a list goes to place i
                               along axis 0. Borrowed until the plan has run; requests must not overlap in it */
    const int64_t *
        strides; /**< [rank] distance between neighbours along each axis of out, in elements; copied.
                               NULL: dense, last axis fastest */
} grv_read_request;

/** How a plan runs. */
typedef struct grv_read_plan_params {
    int n_threads; /**< threads that decode at a time; 0 (default): as the first request's store says */
    int n_io; /**< threads beside those, so that n_threads + n_io may wait for the back end at a time: for slow
                        stores; -1 (default): as the first request's store says */
    int64_t
        gap_bytes; /**< ranges with at most so much between them are read as one; -1 (default): as suits the first
                               request's back end, 4096 for files */
    int64_t
        run_bytes; /**< joined ranges get no longer than this; 0 (default): as suits the back end, 2 MiB for files */
    int64_t
        memory_bytes; /**< most working memory of all threads together (encoded bytes, decoded chunks on their way);
                               fewer threads run where it is short, at least one. Default 256 MiB */
    int max_open; /**< most stored objects that are open at a time. Default 64 */
} grv_read_plan_params;

/** The defaults above. */
GRV_API grv_read_plan_params grv_read_plan_params_default(void);

/** A set of requests, prepared. One thread may use a plan at a time, but for grv_read_plan_cancel. */
typedef struct grv_read_plan grv_read_plan;

/** Prepares requests; nothing is opened or read yet. Not collective.
 * @param requests  [n], n may be 0
 * @param params  NULL for the defaults. Copied
 * @param plan  destroy with grv_read_plan_destroy, before the arrays are closed
 * @errors GRV_E_ARG for regions or rows outside an array, GRV_E_NOMEM */
GRV_API grv_status grv_read_plan_create(const grv_read_request *requests, int64_t n,
                                        const grv_read_plan_params *params,
                                        grv_read_plan **plan) GRV_MUST_CHECK;

/** Gives the plan other requests; its memory is used again. After an error it has none. Not collective.
 * @errors as grv_read_plan_create */
GRV_API grv_status grv_read_plan_set(grv_read_plan *plan, const grv_read_request *requests,
                                     int64_t n) GRV_MUST_CHECK;

/** Changes where a request goes; strides stay. Not collective.
 * @param request  its number
 * @errors GRV_E_ARG if there is no such request */
GRV_API grv_status grv_read_plan_set_out(grv_read_plan *plan, int64_t request,
                                         void *out) GRV_MUST_CHECK;

/** Reads everything; may be called again, and allocates nothing once it is warm. Not collective.
 * What was never written reads as the fill value. Each object is seen as it was before a writer replaced it, or as it is
 * after. At the first error the rest is given up; memory of the requests is then partly written.
 * @errors GRV_E_CANCELLED, GRV_E_IO, GRV_E_FORMAT (naming array, chunk and byte offset), GRV_E_NOMEM */
GRV_API grv_status grv_read_plan_run(grv_read_plan *plan) GRV_MUST_CHECK;

/** Makes the run that is under way return GRV_E_CANCELLED soon: what is being read or decoded is finished, nothing more is
 * begun. If none is under way, nothing happens. From any thread. Not collective. */
GRV_API void grv_read_plan_cancel(grv_read_plan *plan);

/** What a plan is, and what its last run did. */
typedef struct grv_read_plan_info {
    int64_t n_requests;
    int64_t n_objects;    /**< different stored objects that the requests touch */
    int64_t bytes_wanted; /**< that a run delivers */
    int64_t n_chunks;     /**< last run: chunks (inner chunks of shards) that were decoded */
    int64_t n_reads;    /**< last run: range reads of chunk data (shard indices are not counted) */
    int64_t bytes_read; /**< last run: by those */
    int64_t bytes_decoded; /**< last run: produced by decoding */
    int n_threads;         /**< that run it, those that wait for the back end included */
} grv_read_plan_info;

/** What the plan is. Not collective. */
GRV_API grv_read_plan_info grv_read_plan_get_info(const grv_read_plan *plan);

/** Frees a plan; NULL is allowed. Not collective. */
GRV_API void grv_read_plan_destroy(grv_read_plan **plan);

#ifdef __cplusplus
}
#endif
#endif
