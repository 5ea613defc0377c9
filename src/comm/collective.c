/* Collectives. A communicator of one short-cuts all of them; counts beyond an int are cut into several calls. */
#include <math.h>
#include <string.h>

#include "comm/comm_impl.h"

#ifdef GRVI_DEBUG
grv_status grvi_comm_verify(grv_comm *comm, const char *call, int64_t a, int64_t b)
{
    if (comm->size == 1) return GRV_OK;
    uint64_t hash = 1469598103934665603U; /* FNV-1a over the name, then over both numbers */
    for (const char *c = call; *c != '\0'; c++)
        hash = (hash ^ (uint64_t)(unsigned char)*c) * 1099511628211U;
    hash = (hash ^ (uint64_t)a) * 1099511628211U;
    hash = ((hash ^ (uint64_t)b) * 1099511628211U) >> 1; /* positive, so that it can be negated */
    int64_t extremes[2] = {(int64_t)hash, -(int64_t)hash};
    GRVI_MPI_TRY(MPI_Allreduce(MPI_IN_PLACE, extremes, 2, MPI_INT64_T, MPI_MAX, comm->mpi));
    GRV_CHECK(extremes[0] == -extremes[1], GRV_E_COMM,
              "ranks disagree in a collective call; rank %d of %d: %s(%lld, %lld)", comm->rank,
              comm->size, call, (long long)a, (long long)b);
    return GRV_OK;
}
#else
grv_status grvi_comm_verify(grv_comm *comm, const char *call, int64_t a, int64_t b)
{
    (void)comm, (void)call, (void)a, (void)b;
    return GRV_OK;
}
#endif

static int64_t sum_of(const grv_comm *comm, const int64_t *bytes)
{
    int64_t sum = 0;
    for (int r = 0; r < comm->size; r++) sum += bytes[r];
    return sum;
}

static void copy_bytes(void *to, const void *from, int64_t n)
{
    if (n > 0) memcpy(to, from, (size_t)n);
}

grv_status grv_comm_barrier(grv_comm *comm)
{
    GRV_TRY(grvi_comm_verify(comm, "barrier", 0, 0));
    if (comm->size > 1) GRVI_MPI_TRY(MPI_Barrier(comm->mpi));
    return GRV_OK;
}

grv_status grv_comm_broadcast(grv_comm *comm, int root, void *data, int64_t bytes)
{
    GRV_TRY(grvi_comm_verify(comm, "broadcast", root, bytes));
    if (comm->size == 1) return GRV_OK;
    for (int64_t done = 0; done < bytes; done += comm->max_bytes) {
        const int n = (int)grvi_min_i64(bytes - done, comm->max_bytes);
        GRVI_MPI_TRY(MPI_Bcast((char *)data + done, n, MPI_BYTE, root, comm->mpi));
    }
    return GRV_OK;
}

/* Counts and displacements for MPI's calls; only where the sum fits. */
static void fill_layout(grv_comm *comm, const int64_t *bytes)
{
    int64_t sum = 0;
    for (int r = 0; r < comm->size; r++) {
        comm->counts[r] = (int)bytes[r];
        comm->displacements[r] = (int)sum;
        sum += bytes[r];
    }
}

static grv_status gather_large(grv_comm *comm, int root, const void *send, const int64_t *bytes,
                               void *receive)
{
    char *to = receive;
    for (int r = 0; r < comm->size; r++) {
        if (r == root && comm->rank == root) copy_bytes(to, send, bytes[r]);
        for (int64_t done = 0; r != root && done < bytes[r]; done += comm->max_bytes) {
            const int n = (int)grvi_min_i64(bytes[r] - done, comm->max_bytes);
            if (comm->rank == r)
                GRVI_MPI_TRY(MPI_Send((const char *)send + done, n, MPI_BYTE, root, GRVI_TAG_GATHER,
                                      comm->mpi));
            if (comm->rank == root)
                GRVI_MPI_TRY(MPI_Recv(to + done, n, MPI_BYTE, r, GRVI_TAG_GATHER, comm->mpi,
                                      MPI_STATUS_IGNORE));
        }
        if (comm->rank == root) to += bytes[r];
    }
    return GRV_OK;
}

grv_status grv_comm_gather(grv_comm *comm, int root, const void *send, const int64_t *bytes,
                           void *receive)
{
    const int64_t sum = sum_of(comm, bytes);
    GRV_TRY(grvi_comm_verify(comm, "gather", root, sum));
    if (comm->size == 1) {
        copy_bytes(receive, send, sum);
        return GRV_OK;
    }
    if (sum > comm->max_bytes) return gather_large(comm, root, send, bytes, receive);
    fill_layout(comm, bytes);
    GRVI_MPI_TRY(MPI_Gatherv(send, comm->counts[comm->rank], MPI_BYTE, receive, comm->counts,
                             comm->displacements, MPI_BYTE, root, comm->mpi));
    return GRV_OK;
}

static grv_status all_gather_large(grv_comm *comm, const void *send, const int64_t *bytes,
                                   void *receive)
{
    char *to = receive;
    for (int r = 0; r < comm->size; r++) {
        if (r == comm->rank) copy_bytes(to, send, bytes[r]);
        GRV_TRY(grv_comm_broadcast(comm, r, to, bytes[r]));
        to += bytes[r];
    }
    return GRV_OK;
}

grv_status grv_comm_all_gather(grv_comm *comm, const void *send, const int64_t *bytes,
                               void *receive)
{
    const int64_t sum = sum_of(comm, bytes);
    GRV_TRY(grvi_comm_verify(comm, "all_gather", 0, sum));
    if (comm->size == 1) {
        copy_bytes(receive, send, sum);
        return GRV_OK;
    }
    if (sum > comm->max_bytes) return all_gather_large(comm, send, bytes, receive);
    fill_layout(comm, bytes);
    GRVI_MPI_TRY(MPI_Allgatherv(send, comm->counts[comm->rank], MPI_BYTE, receive, comm->counts,
                                comm->displacements, MPI_BYTE, comm->mpi));
    return GRV_OK;
}

grv_status grv_comm_all_reduce_i64(grv_comm *comm, grv_reduce_op op, int64_t n, int64_t *values)
{
    GRV_TRY(grvi_comm_verify(comm, "all_reduce_i64", (int64_t)op, n));
    if (comm->size == 1) return GRV_OK;
    const MPI_Op mpi_op = op == GRV_REDUCE_MAX ? MPI_MAX : op == GRV_REDUCE_MIN ? MPI_MIN : MPI_SUM;
    const int64_t max_count = comm->max_bytes / (int64_t)sizeof *values;
    for (int64_t done = 0; done < n; done += max_count) {
        const int count = (int)grvi_min_i64(n - done, max_count);
        GRVI_MPI_TRY(
            MPI_Allreduce(MPI_IN_PLACE, values + done, count, MPI_INT64_T, mpi_op, comm->mpi));
    }
    return GRV_OK;
}

/* Integers in the order of the numbers: -inf < ... < -0 < +0 < ... < inf < NaN. Its own inverse on the bits. */
static int64_t flip_order(int64_t bits)
{
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

static int64_t order_key(double value)
{
    int64_t bits = 0;
    /* the sign of a NaN is arbitrary, and a negative one would sort below -inf */
    if (isnan(value)) value = fabs((double)NAN);
    memcpy(&bits, &value, sizeof bits);
    return flip_order(bits);
}

grv_status grv_comm_all_max_f64(grv_comm *comm, int64_t n, double *values)
{
    enum { PIECE = 64 };
    int64_t keys[PIECE];
    for (int64_t done = 0; done < n; done += PIECE) {
        const int64_t count = grvi_min_i64(n - done, PIECE);
        for (int64_t i = 0; i < count; i++) keys[i] = order_key(values[done + i]);
        GRV_TRY(grv_comm_all_reduce_i64(comm, GRV_REDUCE_MAX, count, keys));
        for (int64_t i = 0; i < count; i++) {
            const int64_t bits = flip_order(keys[i]);
            memcpy(&values[done + i], &bits, sizeof bits);
        }
    }
    return GRV_OK;
}
