/** @file network.h
 * A network ready to run: graph, plan, executor and parameters of one rank in one object.
 */
#ifndef GROVE_NETWORK_H
#define GROVE_NETWORK_H

#include "grove/fno.h"
#include "grove/plan.h"
#include "grove/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What to make. */
typedef struct grv_network_params {
    grv_fno_params fno; /**< the network */
    int64_t batch;      /**< samples of a run over all ranks */
    int n_data;         /**< ranks that share the samples */
    int n_domain;       /**< ranks that share each sample */
    int n_threads;      /**< of each rank */
    bool gradients;     /**< for training */
    bool loss;          /**< with a target: for training and evaluation */
} grv_network_params;

/** A network on one rank. */
typedef struct grv_network grv_network;

/** Builds, fuses, differentiates, plans, and takes memory. Parameters start at zero: initialise or load them.
 * @param comm  of n_data*n_domain ranks, borrowed; NULL for a single rank
 * @param shared  another network over the same ranks and with the same fno: its parameter block is used, and must outlive this one; NULL:
 *                 a block of its own
 * Collective on comm. @errors as grv_fno_build, grv_plan_create; GRV_E_NOMEM; on every rank */
GRV_API grv_status grv_network_create(const grv_network_params *params, grv_comm *comm, grv_network *shared, grv_network **out) GRV_MUST_CHECK;
/** Frees it and sets *network to NULL; NULL is allowed. Collective on its communicator. */
GRV_API void grv_network_destroy(grv_network **network);

/** The plan, borrowed. Not collective. */
GRV_API const grv_plan *grv_network_plan(const grv_network *network);
/** The executor, for losses and times; borrowed. Not collective. */
GRV_API const grv_exec *grv_network_exec(const grv_network *network);
/** The graph, borrowed. Not collective. */
GRV_API const grv_graph *grv_network_graph(const grv_network *network);
/** Parameter block of this rank, grv_plan_summary.param_count floats; borrowed. Not collective. */
GRV_API float *grv_network_parameters(grv_network *network);
/** Gradient block of the last run, as large; NULL without gradients; borrowed. Not collective. */
GRV_API float *grv_network_gradients(grv_network *network);
/** Planes of the input that this rank works on, the same as those of target and output. Not collective. */
GRV_API grv_range grv_network_planes(const grv_network *network);
/** Numbers of this rank's part of one sample's input. Not collective. */
GRV_API int64_t grv_network_input_count(const grv_network *network);
/** Likewise of its output. Not collective. */
GRV_API int64_t grv_network_output_count(const grv_network *network);

/** Draws all parameters from their distributions; number i of tensor p depends on (seed, p, i) only, i in canonical order. Not collective. */
GRV_API grv_status grv_network_initialise(grv_network *network, uint64_t seed) GRV_MUST_CHECK;
/** One run: the output is computed, with a target also the loss, with gradients those too. Collective on its communicator.
 * @param input  [samples of this rank][planes]..[channel]; @param target  likewise; NULL if the network has no loss
 * @errors GRV_E_COMM */
GRV_API grv_status grv_network_run(grv_network *network, const float *input, const float *target) GRV_MUST_CHECK;
/** Output of the last run, layout as the target's; borrowed until the next run. Not collective. */
GRV_API const float *grv_network_output(const grv_network *network);

/** Declares all tensors with global shapes as <prefix><name> in a file that rank 0 writes. On other ranks writer is NULL.
 * @param first  index of the first tensor declared
 * Not collective. */
GRV_API grv_status grv_network_declare(const grv_network *network, const char *prefix, grv_safetensors_writer *writer, int64_t *first) GRV_MUST_CHECK;
/** Writes a block laid out like the parameters (parameters, moments) to the tensors declared at `first`, in canonical order: rank 0 gathers one
 * tensor at a time. Collective on its communicator. @errors on every rank */
GRV_API grv_status grv_network_write(grv_network *network, const float *block, grv_safetensors_writer *writer, int64_t first) GRV_MUST_CHECK;
/** Reads this rank's part of such a block from a file that any number of ranks wrote. Not collective.
 * @errors GRV_E_NOT_FOUND, GRV_E_SHAPE naming the tensor, what is expected and what was found */
GRV_API grv_status grv_network_read(const grv_network *network, const grv_safetensors *file, const char *prefix, float *block) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
