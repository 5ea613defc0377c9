/** @file plan.h
 * How a graph is computed on one rank: placement, order, exchanges, memory. A plan is pure arithmetic (nothing is
 * allocated but itself, no other rank is asked), so it can be made for any number of ranks on any machine; an executor
 * (grv_exec) makes it real.
 *
 * Placement: ranks form a mesh data x domain; rank = data index * n_domain + domain index. Samples are split over `data`,
 * every field along its first axis (or, around transforms along that axis, its second) over `domain`.
 */
#ifndef GROVE_PLAN_H
#define GROVE_PLAN_H

#include "grove/comm.h"
#include "grove/dist.h"
#include "grove/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a plan is made for. */
typedef struct grv_plan_params {
    grv_dtype dtype; /**< element type of fields and parameters */
    int n_threads;   /**< compute threads of the rank, >= 1 */
    int n_data;      /**< ranks that share the samples, >= 1; must divide the number of samples */
    int n_domain;    /**< ranks that share each sample, >= 1 */
    int rank;        /**< 0 .. n_data*n_domain - 1 */
    bool gradients;  /**< the graph was differentiated and gradients are wanted */
} grv_plan_params;

/** One rank, one thread, float. */
GRV_API grv_plan_params grv_plan_params_default(void);

/** Sizes and costs of a plan on its rank. Bytes are exact. */
typedef struct grv_plan_summary {
    int64_t arena_bytes;     /**< fields, reused over time */
    int64_t scratch_bytes;   /**< of all threads together */
    int64_t buffer_bytes;    /**< messages and partial sums */
    int64_t param_bytes;     /**< the parameter block; the gradient block is as large, the optimiser's twice */
    int64_t param_count;     /**< real numbers in the block of this rank */
    int64_t n_steps;         /**< operations, exchanges included */
    int64_t n_messages;      /**< sent per run */
    int64_t sent_bytes;      /**< sent per run */
    double flops;            /**< per run: floating-point operations that the problem needs (docs/spectral.md) */
    double read_bytes;       /**< per run, each field counted once per pass */
    double written_bytes;    /**< likewise */
} grv_plan_summary;

/** A parameter on this rank. */
typedef struct grv_param_slice {
    int64_t offset;      /**< of its first number in the parameter block */
    int64_t count;       /**< numbers of it in this block */
    grv_range magnitudes; /**< owned parameters: the |k_1| held (|k_0| with one axis); count 0 for replicated ones */
} grv_param_slice;

/** A plan; nothing of it changes after it is made. */
typedef struct grv_plan grv_plan;

/** Plans the graph for one rank of the mesh. Not collective.
 * @errors GRV_E_ARG for a mesh that leaves a rank without planes or modes (the largest that works is named). */
GRV_API grv_status grv_plan_create(const grv_graph *graph, const grv_plan_params *params, grv_plan **out) GRV_MUST_CHECK;
/** Frees it; NULL is allowed. Executors made from it must be gone. */
GRV_API void grv_plan_destroy(grv_plan **plan);
/** Sizes and costs. */
GRV_API grv_plan_summary grv_plan_summarise(const grv_plan *plan);
/** Where parameter i (grv_graph_param) lies on this rank. */
GRV_API grv_param_slice grv_plan_param(const grv_plan *plan, int i);
/** The samples of this rank. */
GRV_API grv_range grv_plan_samples(const grv_plan *plan);
/** The planes (indices of axis 0) of an input or output field on this rank. */
GRV_API grv_range grv_plan_planes(const grv_plan *plan, grv_value value);
/** Numbers of an input or output field on this rank: samples x planes x the other axes x channels. */
GRV_API int64_t grv_plan_field_count(const grv_plan *plan, grv_value value);
/** One line per step: name, result, split, bytes, flops; owned by the caller, free with grv_free. NULL when out of memory. */
GRV_API char *grv_plan_text(const grv_plan *plan);

/** Memory, tables and communicators of a plan. */
typedef struct grv_exec grv_exec;

/** Makes a plan real: takes all memory that runs need. The plan is borrowed and must outlive the executor.
 * @param comm  of n_data*n_domain ranks, this one being params.rank; borrowed; NULL for a single rank
 * Collective on comm. */
GRV_API grv_status grv_exec_create(const grv_plan *plan, grv_comm *comm, grv_exec **out) GRV_MUST_CHECK;
/** Frees it; NULL is allowed. Collective on comm. */
GRV_API void grv_exec_destroy(grv_exec **exec);

/** What a run works on; all pointers are borrowed for the run. */
typedef struct grv_bindings {
    const void *params;        /**< the parameter block, plan order */
    void *gradients;           /**< the gradient block, written; NULL when the plan has none */
    const void *const *fields; /**< [grv_graph_n_inputs] the inputs in order of making: [sample][axis 0]..[channel] of this rank, contiguous, dtype of
                                    the plan */
} grv_bindings;

/** One run. Allocates nothing, looks nothing up. Collective on comm. @errors GRV_E_COMM */
GRV_API grv_status grv_exec_run(grv_exec *exec, const grv_bindings *bindings) GRV_MUST_CHECK;
/** Data of a marked output after a run, layout as of inputs; borrowed until the next run. Not collective. */
GRV_API const void *grv_exec_output(const grv_exec *exec, grv_value value);
/** Loss of the last run; the same on every rank. 0 for a graph without a loss. Not collective. */
GRV_API double grv_exec_loss(const grv_exec *exec);
/** The terms of the loss of the last run, one per sample of the global batch ([n_samples]); borrowed until the next run. Not collective. */
GRV_API const double *grv_exec_sample_losses(const grv_exec *exec);
/** Seconds that step i of the last run took (grv_plan_summary.n_steps of them), and its name. Not collective. */
GRV_API double grv_exec_step_seconds(const grv_exec *exec, int64_t i, const char **name);
/** When step i of the last run began (grv_clock_seconds). Not collective. */
GRV_API double grv_exec_step_begin(const grv_exec *exec, int64_t i);
/** Bytes that the executor holds beside arena, scratch and buffers of the plan: tables of transforms, the order of partial sums, other ranks'
 * partial sums. Not collective. */
GRV_API int64_t grv_exec_table_bytes(const grv_exec *exec);

#ifdef __cplusplus
}
#endif
#endif
