/** @file comm.h
 * Communicators, typed collectives, agreement on errors, neighbour exchange. One process is a communicator of one.
 *
 * Collective functions are called by every rank of the communicator in the same order, with the arguments that are said
 * to be equal; debug builds verify that and fail with GRV_E_COMM instead of hanging. Only the main thread of a process
 * communicates (MPI_THREAD_FUNNELED). Counts are bytes or elements in 64 bits; large messages are cut inside.
 *
 * A rank that fails alone tells the others at the next grv_comm_agree. A rank that dies, or exits without grv_mpi_stop,
 * makes mpirun or srun end the whole job: nobody waits for it. MPI's own failures end the job as well
 * (MPI_ERRORS_ARE_FATAL) unless the host program chose another handler; then they are GRV_E_COMM.
 */
#ifndef GROVE_COMM_H
#define GROVE_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A group of ranks that communicate without being disturbed by others. */
typedef struct grv_comm grv_comm;

/** Whether an MPI launcher (mpirun, mpiexec, srun) started this process, told from the environment without MPI.
 * Programs that also run alone start MPI only then: it costs half a second. Not collective. */
GRV_API bool grv_mpi_launched(void);

/** Starts MPI for a program that has no other user of it (the command line). Collective on all processes of the job.
 * @errors GRV_E_COMM if MPI runs already, offers no MPI_THREAD_FUNNELED, or sees one process where srun started several. */
GRV_API grv_status grv_mpi_start(void) GRV_MUST_CHECK;
/** Ends MPI if it runs; communicators are destroyed before. Collective on all processes of the job. */
GRV_API void grv_mpi_stop(void);

/** A communicator of this process alone, which never touches MPI. Free with grv_comm_destroy. Not collective.
 * @errors GRV_E_NOMEM */
GRV_API grv_status grv_comm_create_self(grv_comm **comm) GRV_MUST_CHECK;
/** All processes of the job: a duplicate of MPI_COMM_WORLD. MPI must run. Collective on MPI_COMM_WORLD.
 * @errors GRV_E_COMM, GRV_E_NOMEM (on the rank concerned) */
GRV_API grv_status grv_comm_create_world(grv_comm **comm) GRV_MUST_CHECK;
/** A duplicate of the host's communicator, given as its Fortran handle (MPI_Comm_c2f), so that this header needs no mpi.h.
 * Collective on that communicator.
 * @errors GRV_E_COMM, GRV_E_NOMEM (on the rank concerned) */
GRV_API grv_status grv_comm_create_from_fortran(int handle, grv_comm **comm) GRV_MUST_CHECK;
/** Ranks of equal color form one communicator, ordered by key, then by their rank here.
 * @param color  >= 0; a rank with a negative color gets *out = NULL
 * Collective on comm. @errors GRV_E_NOMEM, on every rank */
GRV_API grv_status grv_comm_split(grv_comm *comm, int color, int key,
                                  grv_comm **out) GRV_MUST_CHECK;
/** Frees it and sets *comm to NULL; NULL is allowed. Collective on comm. */
GRV_API void grv_comm_destroy(grv_comm **comm);

/** This process's number, 0 .. size - 1. Not collective. */
GRV_API int grv_comm_rank(const grv_comm *comm);
/** Number of ranks. Not collective. */
GRV_API int grv_comm_size(const grv_comm *comm);

/** Returns when every rank has called it. Collective on comm. */
GRV_API grv_status grv_comm_barrier(grv_comm *comm) GRV_MUST_CHECK;
/** Copies root's `bytes` bytes to every rank. root and bytes are equal on all ranks. Collective on comm. */
GRV_API grv_status grv_comm_broadcast(grv_comm *comm, int root, void *data,
                                      int64_t bytes) GRV_MUST_CHECK;
/** Rank r's send [bytes[r]] goes to root's receive [sum of bytes], in the order of ranks.
 * @param bytes  [size], equal on all ranks
 * @param receive  looked at on root only; does not overlap send
 * Collective on comm. */
GRV_API grv_status grv_comm_gather(grv_comm *comm, int root, const void *send, const int64_t *bytes,
                                   void *receive) GRV_MUST_CHECK;
/** The same, to every rank. Collective on comm. */
GRV_API grv_status grv_comm_all_gather(grv_comm *comm, const void *send, const int64_t *bytes,
                                       void *receive) GRV_MUST_CHECK;

/** What grv_comm_all_reduce_i64 does. There is no sum of floating-point numbers, whose result would depend on the ranks:
 * see src/dist/tree.h. */
typedef enum grv_reduce_op {
    GRV_REDUCE_MAX,
    GRV_REDUCE_MIN,
    GRV_REDUCE_SUM /**< the caller excludes overflow */
} grv_reduce_op;

/** Reduces element by element over the ranks; every rank gets the result in place.
 * @param values  [n]; n and op are equal on all ranks
 * Collective on comm. */
GRV_API grv_status grv_comm_all_reduce_i64(grv_comm *comm, grv_reduce_op op, int64_t n,
                                           int64_t *values) GRV_MUST_CHECK;
/** Maximum element by element over the ranks, in place. A NaN on any rank gives NaN; -0 is less than +0.
 * @param values  [n]; n is equal on all ranks
 * Collective on comm. */
GRV_API grv_status grv_comm_all_max_f64(grv_comm *comm, int64_t n, double *values) GRV_MUST_CHECK;

/** Makes the ranks agree on the outcome of something that each did alone.
 * If any rank passes an error, every rank returns the status of the lowest failing rank and finds its message, headed by
 * "rank r: " (once, also when agreed upon again, and not on a communicator of one), in the error record.
 * Otherwise every rank returns the largest status passed, so GRV_END on one rank is GRV_END on all. Collective on comm. */
GRV_API grv_status grv_comm_agree(grv_comm *comm, grv_status status) GRV_MUST_CHECK;

/** One message of an exchange. */
typedef struct grv_message {
    int peer;       /**< the other rank; may be this one, then the message is a copy */
    int buffer;     /**< which of the buffers given to grv_exchange_begin */
    int64_t offset; /**< first byte in that buffer */
    int64_t bytes;  /**< length; 0 is allowed and costs nothing */
} grv_message;

/** A fixed set of messages between neighbours, made once and run many times without allocation. */
typedef struct grv_exchange grv_exchange;

/** Prepares an exchange. Between two ranks the k-th message sent and the k-th received must be of equal length.
 * @param comm  borrowed, must outlive the exchange
 * @param sends  [n_sends], copied
 * @param receives  [n_receives], copied
 * Collective on comm. @errors GRV_E_ARG, GRV_E_NOMEM, in debug builds GRV_E_COMM if lengths differ; on every rank */
GRV_API grv_status grv_exchange_create(grv_comm *comm, int64_t n_sends, const grv_message *sends,
                                       int64_t n_receives, const grv_message *receives,
                                       grv_exchange **exchange) GRV_MUST_CHECK;
/** Frees it and sets *exchange to NULL; NULL is allowed. It must not be running. Not collective. */
GRV_API void grv_exchange_destroy(grv_exchange **exchange);
/** Posts all receives, then all sends; the buffers must stay until grv_exchange_end. Several exchanges may run at a time
 * when every rank begins them in the same order.
 * @param send_buffers  as many pointers as the largest grv_message.buffer says
 * @param receive_buffers  likewise; no received byte overlaps a sent or another received one
 * Collective on the ranks that exchange. @errors GRV_E_ARG if it runs already, GRV_E_COMM */
GRV_API grv_status grv_exchange_begin(grv_exchange *exchange, const void *const *send_buffers,
                                      void *const *receive_buffers) GRV_MUST_CHECK;
/** Lets messages make progress between two pieces of work: GRV_OK when all are done, else GRV_AGAIN.
 * grv_exchange_end is still called afterwards. Not collective. */
GRV_API grv_status grv_exchange_poll(grv_exchange *exchange) GRV_MUST_CHECK;
/** Waits for all messages: what was received is there, what was sent may be overwritten. Not collective. */
GRV_API grv_status grv_exchange_end(grv_exchange *exchange) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
