/* Starting MPI for commands with ranks, only where a launcher started several processes: a single one starts half a second faster. */
#include "cli/cli.h"

grv_status grvc_ranks_begin(grvc_session *session, grv_comm **comm)
{
    *comm = NULL;
    if (!grv_mpi_launched()) return grv_comm_create_self(comm);
    grv_status status = grv_mpi_start();
    if (status == GRV_OK) status = grv_comm_create_world(comm);
    if (status == GRV_OK) status = grvc_set_rank(session, grv_comm_rank(*comm));
    return status;
}

void grvc_ranks_end(grv_comm **comm)
{
    grv_comm_destroy(comm);
    grv_mpi_stop();
}
