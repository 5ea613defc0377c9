/** @file dist.h
 * Distribution as data: balanced partitions, boxes, process meshes, repartition plans.
 *
 * Who owns what is computed, never communicated: every rank can tell any rank's box. Plans can therefore be made for any
 * rank of any number of ranks without a communicator ("dry"), to see messages and bytes before anything runs.
 */
#ifndef GROVE_DIST_H
#define GROVE_DIST_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/comm.h"
#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A contiguous range of indices. */
typedef struct grv_range {
    int64_t start; /**< first index */
    int64_t count; /**< how many; may be 0 */
} grv_range;

/** Balanced split of [0, n) into `parts`: part i gets floor(n/parts) + (i < n mod parts) indices, in order.
 * Preconditions: n >= 0, parts >= 1, 0 <= part < parts. Not collective. */
GRV_API grv_range grv_partition_range(int64_t n, int parts, int part);

/** The part that owns index i under grv_partition_range. Not collective. */
GRV_API int grv_partition_owner(int64_t n, int parts, int64_t i);

/** Most dimensions of a box. */
enum { GRV_BOX_MAX_DIMS = 8 };

/** A block of a global index space; empty when a count is 0. */
typedef struct grv_box {
    int n_dims;                      /**< 1 .. GRV_BOX_MAX_DIMS */
    int64_t start[GRV_BOX_MAX_DIMS]; /**< first global index in each dimension */
    int64_t count[GRV_BOX_MAX_DIMS]; /**< how many; >= 0 */
} grv_box;

/** Number of elements. Not collective. */
GRV_API int64_t grv_box_size(const grv_box *box);
/** The part that both have; all counts are 0 when there is none. Returns whether there is one.
 * a and b have equal n_dims; out may be a or b. Not collective. */
GRV_API bool grv_box_intersect(const grv_box *a, const grv_box *b, grv_box *out);
/** The block of `box` that part `part` of `parts` owns when dimension `dim` is split in a balanced way. Not collective. */
GRV_API grv_box grv_box_split(const grv_box *box, int dim, int parts, int part);

/** Ranks in a rectangle: `data` groups of `domain` ranks. Rank = data index * n_domain + domain index, so that the ranks
 * that share a sample are neighbours. */
typedef struct grv_process_mesh {
    int n_data;            /**< groups, each with samples of its own */
    int n_domain;          /**< ranks of a group, which share the domain of a sample */
    int data;              /**< this rank's group */
    int domain;            /**< this rank's place in the group */
    grv_comm *all;         /**< the whole rectangle; borrowed */
    grv_comm *data_comm;   /**< ranks with the same domain index, ordered by group */
    grv_comm *domain_comm; /**< ranks of the same group, ordered by domain index */
} grv_process_mesh;

/** Arranges the ranks of comm. Free with grv_process_mesh_destroy.
 * @param comm  borrowed, must outlive the mesh
 * @param n_domain  divides the number of ranks
 * Collective on comm. @errors GRV_E_ARG, GRV_E_NOMEM, on every rank */
GRV_API grv_status grv_process_mesh_create(grv_comm *comm, int n_domain,
                                           grv_process_mesh **mesh) GRV_MUST_CHECK;
/** Frees it and sets *mesh to NULL; NULL is allowed. Collective on its communicator. */
GRV_API void grv_process_mesh_destroy(grv_process_mesh **mesh);

/** Tells the box of a rank; called for any rank at plan time, only. n_dims is preset. */
typedef void grv_box_of(void *argument, int rank, grv_box *box);

/** One side of a repartition: who holds what, and how this rank's part lies in memory. */
typedef struct grv_layout {
    grv_box_of *box_of; /**< the box of each rank; may be empty */
    void *argument;     /**< passed to box_of; borrowed during the call that makes the plan */
    int64_t stride
        [GRV_BOX_MAX_DIMS]; /**< elements between neighbours in each dimension, in this rank's memory */
} grv_layout;

/** What a repartition moves. */
typedef struct grv_repartition_params {
    int n_dims;            /**< 1 .. GRV_BOX_MAX_DIMS */
    int64_t element_bytes; /**< bytes of an element */
    grv_layout source; /**< boxes that do not overlap and hold all that the destinations ask for */
    grv_layout destination; /**< boxes; may overlap (then data are copied to several ranks) */
    int n_threads;          /**< threads that pack and unpack; < 1 counts as 1 */
} grv_repartition_params;

/** What a plan will do on one rank. */
typedef struct grv_traffic {
    int64_t n_messages_sent;     /**< to other ranks */
    int64_t n_messages_received; /**< from other ranks */
    int64_t bytes_sent;          /**< to other ranks */
    int64_t bytes_received;      /**< from other ranks */
    int64_t bytes_kept;          /**< copied inside this rank */
    int64_t scratch_bytes;       /**< packed messages; those that lie in one piece are not packed */
} grv_traffic;

/** A redistribution of an array from one set of boxes to another: a generalised all-to-all, made once and run many times.
 * It copies bytes, so it is exact. Between boxes that do not overlap its adjoint is the same with source and destination
 * exchanged (grv_repartition_adjoint). */
typedef struct grv_repartition grv_repartition;

/** The parameters of the adjoint: source and destination exchanged. Not collective. */
GRV_API grv_repartition_params grv_repartition_adjoint(const grv_repartition_params *params);
/** Plans a repartition: intersects this rank's boxes with those of all ranks. Free with grv_repartition_destroy.
 * @param comm  borrowed, must outlive the plan
 * @param params  read during the call only; all but the strides are equal on all ranks
 * Collective on comm. @errors GRV_E_ARG, GRV_E_SHAPE when the sources do not hold every element of a destination exactly
 * once, GRV_E_NOMEM; on every rank */
GRV_API grv_status grv_repartition_create(grv_comm *comm, const grv_repartition_params *params,
                                          grv_repartition **plan) GRV_MUST_CHECK;
/** Plans what `rank` of `n_ranks` would do, to look at its traffic; such a plan cannot run. Not collective. */
GRV_API grv_status grv_repartition_create_dry(int n_ranks, int rank,
                                              const grv_repartition_params *params,
                                              grv_repartition **plan) GRV_MUST_CHECK;
/** Frees it and sets *plan to NULL; NULL is allowed. It must not be running. Not collective. */
GRV_API void grv_repartition_destroy(grv_repartition **plan);
/** Messages and bytes of this rank. Not collective. */
GRV_API grv_traffic grv_repartition_traffic(const grv_repartition *plan);

/** Redistributes: grv_repartition_begin, then grv_repartition_end. No allocation. Collective on the plan's communicator.
 * @errors GRV_E_ARG for a dry plan, GRV_E_COMM */
GRV_API grv_status grv_repartition_run(grv_repartition *plan, const void *source, void *destination,
                                       void *scratch) GRV_MUST_CHECK;
/** Packs and posts all messages and copies what stays on this rank. Collective on the plan's communicator.
 * @param source  first element of this rank's source box; stays unchanged until grv_repartition_end
 * @param destination  first element of this rank's destination box; must not overlap source
 * @param scratch  grv_traffic.scratch_bytes bytes, 64-byte aligned; used until grv_repartition_end */
GRV_API grv_status grv_repartition_begin(grv_repartition *plan, const void *source,
                                         void *destination, void *scratch) GRV_MUST_CHECK;
/** Makes progress between two pieces of work; GRV_OK when all messages are there, else GRV_AGAIN. Not collective. */
GRV_API grv_status grv_repartition_poll(grv_repartition *plan) GRV_MUST_CHECK;
/** Waits for the messages and unpacks them: the destination is complete. Not collective. */
GRV_API grv_status grv_repartition_end(grv_repartition *plan) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
