/** @file reader.h
 * Reading ahead: threads fill items in advance of the one who consumes them, in a bounded number of slots.
 *
 * What an item is, and where its data lie, is the caller's: a callback fills item i into slot s. Items arrive in their
 * order, 0, 1, 2, ...; the memory of a slot is the consumer's from grv_reader_next to the next call. On a slow store a loop
 * over items then takes the larger of reading and computing, not the sum.
 *
 *     static grv_status fill(void *context, int64_t item, int slot)
 *     {
 *         my_data *d = context;                      // d->plans[slot], d->points[slot]: one of each per slot
 *         grv_read_request requests[] = {...};       // of this item, into d->points[slot], ...
 *         grv_status status = grv_read_plan_set(d->plans[slot], requests, 2);
 *         return status == GRV_OK ? grv_read_plan_run(d->plans[slot]) : status;
 *     }
 *     static void cancel(void *context, int slot) { grv_read_plan_cancel(((my_data *)context)->plans[slot]); }
 *
 * None of these calls is collective: each process reads for itself.
 */
#ifndef GROVE_READER_H
#define GROVE_READER_H

#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a reader reads; the context is borrowed and must outlive it. */
typedef struct grv_reader_source {
    void *context;
    /** Fills an item into a slot; called by the reader's threads, by several at a time for different slots if it has more
     * than one. An error belongs to the item. */
    grv_status (*fill)(void *context, int64_t item, int slot);
    /** Bytes that an item takes in its slot, for max_bytes. Called under the reader's lock: it must be quick and must not call
     * the reader. NULL: items are not weighed */
    int64_t (*n_bytes)(void *context, int64_t item);
    /** Makes the fill that is under way in a slot end soon, with whatever status. Called by grv_reader_stop under the reader's lock,
     * again and again until the fill has ended, so that one that comes too early or too late does no harm. NULL: fills are
     * waited for */
    void (*cancel)(void *context, int slot);
} grv_reader_source;

/** How far ahead a reader goes. */
typedef struct grv_reader_params {
    int n_ahead; /**< items that are ready or being filled beside the one that the consumer has, >= 1. Default 2 */
    int n_threads; /**< items that are filled at a time, 1 to n_ahead. Default 1 */
    int64_t
        max_bytes; /**< most bytes of items in slots, the consumer's included; an item that is larger is filled when it is
                            alone. Default INT64_MAX */
} grv_reader_params;

/** The defaults above. */
GRV_API grv_reader_params grv_reader_params_default(void);

/** Threads that read ahead, and the state of their slots. One thread consumes. */
typedef struct grv_reader grv_reader;

/** Starts the threads; they do nothing before grv_reader_begin.
 * @param source  copied, its context is borrowed
 * @param params  NULL for the defaults. The slots are numbered 0 to n_ahead
 * Not collective. @errors GRV_E_ARG, GRV_E_NOMEM */
GRV_API grv_status grv_reader_create(const grv_reader_source *source,
                                     const grv_reader_params *params,
                                     grv_reader **reader) GRV_MUST_CHECK;

/** Number of slots: n_ahead + 1. Not collective. */
GRV_API int grv_reader_slots(const grv_reader *reader);

/** Gives up the items of the sequence that is under way: fills are cancelled and waited for, none is under way afterwards, so
 * that the context may change. Not collective. */
GRV_API void grv_reader_stop(grv_reader *reader);

/** Begins a sequence of n items; stops the one that is under way first. Not collective. */
GRV_API void grv_reader_begin(grv_reader *reader, int64_t n);

/** Waits for the next item of the sequence.
 * @param slot  that holds it, until the next call of this function or of grv_reader_stop; -1 on anything but success
 * @return GRV_END after the last item; an item's error in its place: it stays until the next sequence. Not collective. */
GRV_API grv_status grv_reader_next(grv_reader *reader, int *slot) GRV_MUST_CHECK;

/** What a reader has done since it was made. */
typedef struct grv_reader_stats {
    int64_t n_items;  /**< handed to the consumer */
    double waited_s;  /**< seconds that the consumer spent in grv_reader_next */
    double filling_s; /**< seconds that threads spent filling, added over threads */
} grv_reader_stats;

/** Of the reader, up to now. Not collective. */
GRV_API grv_reader_stats grv_reader_get_stats(grv_reader *reader);

/** Stops it, ends its threads and frees it; NULL is allowed. Not collective. */
GRV_API void grv_reader_destroy(grv_reader **reader);

#ifdef __cplusplus
}
#endif
#endif
