/* Ranks in a rectangle data x domain, with a communicator along each side. */
#include "core/alloc.h"
#include "grove/core.h"
#include "grove/dist.h"

grv_status grv_process_mesh_create(grv_comm *comm, int n_domain, grv_process_mesh **mesh)
{
    *mesh = NULL;
    const int size = grv_comm_size(comm), rank = grv_comm_rank(comm);
    GRV_CHECK(n_domain >= 1 && size % n_domain == 0, GRV_E_ARG,
              "%d ranks per sample expected to divide the number of ranks, %d", n_domain, size);
    grv_status status = grv_comm_agree(comm, GRVI_CALLOC(mesh, 1));
    if (status != GRV_OK) {
        grv_free(*mesh);
        *mesh = NULL;
        return status;
    }
    **mesh = (grv_process_mesh){.n_data = size / n_domain,
                                .n_domain = n_domain,
                                .data = rank / n_domain,
                                .domain = rank % n_domain,
                                .all = comm};
    status = grv_comm_split(comm, (*mesh)->domain, rank, &(*mesh)->data_comm);
    if (status == GRV_OK) status = grv_comm_split(comm, (*mesh)->data, rank, &(*mesh)->domain_comm);
    if (status != GRV_OK) grv_process_mesh_destroy(mesh);
    return status;
}

void grv_process_mesh_destroy(grv_process_mesh **mesh)
{
    if (mesh == NULL || *mesh == NULL) return;
    grv_comm_destroy(&(*mesh)->data_comm);
    grv_comm_destroy(&(*mesh)->domain_comm);
    grv_free(*mesh);
    *mesh = NULL;
}
