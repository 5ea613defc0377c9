/* The communicator's fields and what the files of this folder share. The only header that includes mpi.h. Internal. */
#ifndef GRVI_COMM_COMM_IMPL_H
#define GRVI_COMM_COMM_IMPL_H

#include <mpi.h>

#include "core/check.h"
#include "grove/comm.h"

/* Tags of all point-to-point messages. */
enum grvi_tag { GRVI_TAG_EXCHANGE = 1, GRVI_TAG_GATHER };

struct grv_comm {
    MPI_Comm mpi; /* our duplicate; MPI_COMM_NULL for one process without MPI */
    int rank, size;
    int64_t max_bytes;           /* longest single message given to MPI */
    int *counts, *displacements; /* [size], scratch of the gathers, so that they do not allocate */
};

/* Turns a failing MPI call into GRV_E_COMM with MPI's text. */
grv_status grvi_mpi_check(int code, const char *call) GRV_MUST_CHECK;
#define GRVI_MPI_TRY(call) GRV_TRY(grvi_mpi_check((call), #call))

/* Fails with GRV_E_COMM on every rank unless all ranks pass equal values. Does nothing in release builds. Collective. */
grv_status grvi_comm_verify(grv_comm *comm, const char *call, int64_t a, int64_t b) GRV_MUST_CHECK;

#endif
