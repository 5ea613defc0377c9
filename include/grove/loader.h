/** @file loader.h
 * Batches of a data set, read ahead by a thread of their own in bounded memory. Each rank reads its planes only.
 */
#ifndef GROVE_LOADER_H
#define GROVE_LOADER_H

#include "grove/dataset.h"
#include "grove/dist.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What to read. */
typedef struct grv_loader_params {
    grv_range planes; /**< of every sample, along the split axis */
    int64_t batch;    /**< samples of this rank in a batch */
    int n_ahead;      /**< batches that may wait for the consumer, >= 1; memory: n_ahead + 1 batches */
} grv_loader_params;

/** A reader of batches with a thread of its own. */
typedef struct grv_loader grv_loader;

/** Takes the buffers and starts the thread.
 * @param dataset  borrowed, must outlive the loader
 * Not collective. @errors GRV_E_ARG, GRV_E_NOMEM */
GRV_API grv_status grv_loader_create(grv_dataset *dataset, const grv_loader_params *params, grv_loader **out) GRV_MUST_CHECK;
/** Stops the thread and frees it; NULL is allowed. Not collective. */
GRV_API void grv_loader_destroy(grv_loader **loader);
/** Starts reading a sequence; one that is under way is given up.
 * @param samples  [n], copied: numbers of this rank's samples in the order of batches; n is a multiple of the batch
 * Not collective. @errors GRV_E_ARG, GRV_E_NOMEM */
GRV_API grv_status grv_loader_begin(grv_loader *loader, const int64_t *samples, int64_t n) GRV_MUST_CHECK;
/** Waits for the next batch of the sequence.
 * @param input  [batch][planes]..[channel], borrowed until the next call; @param target  likewise
 * @return GRV_END after the last batch; the error of the sample that could not be read (its message names it). Not collective. */
GRV_API grv_status grv_loader_next(grv_loader *loader, const float **input, const float **target) GRV_MUST_CHECK;
/** Seconds that grv_loader_next waited since the start. Not collective. */
GRV_API double grv_loader_waited(const grv_loader *loader);

#ifdef __cplusplus
}
#endif
#endif
