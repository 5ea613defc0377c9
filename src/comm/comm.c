/* Life of communicators, and of MPI where nobody else starts it. */
#include <stdlib.h>
#include <string.h>

#include "comm/comm_impl.h"
#include "comm/comm_limits.h"
#include "core/alloc.h"
#include "grove/core.h"

static const int64_t default_max_bytes = (int64_t)1 << 30; /* fits MPI's int counts */

grv_status grvi_mpi_check(int code, const char *call)
{
    if (code == MPI_SUCCESS) return GRV_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    (void)MPI_Error_string(code, text, &n);
    GRV_FAIL(GRV_E_COMM, "%.60s: %s", call, text);
}

/* Tasks of the Slurm job step that this process belongs to, 1 outside of one. */
static long slurm_tasks(void)
{
    const char *const text = getenv("SLURM_STEP_NUM_TASKS");
    return text != NULL ? strtol(text, NULL, 10) : 1;
}

bool grv_mpi_launched(void)
{
    /* Open MPI, PMIx (srun --mpi=pmix), PMI-1 and PMI-2 (MPICH, Intel MPI, srun --mpi=pmi2) */
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK",
                                        "PMI_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]) != NULL) return true;
    return slurm_tasks() > 1;
}

static grv_status require_running(void)
{
    int started = 0, ended = 0;
    (void)MPI_Initialized(&started);
    (void)MPI_Finalized(&ended);
    GRV_CHECK(started && !ended, GRV_E_COMM,
              "MPI does not run: call grv_mpi_start or MPI_Init_thread first");
    return GRV_OK;
}

grv_status grv_mpi_start(void)
{
    int started = 0, level = 0, size = 0;
    (void)MPI_Initialized(&started);
    GRV_CHECK(!started, GRV_E_COMM, "MPI was started before; only its owner starts it, and once");
    GRVI_MPI_TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level));
    GRV_CHECK(level >= MPI_THREAD_FUNNELED, GRV_E_COMM, "MPI thread level %d expected, %d offered",
              MPI_THREAD_FUNNELED, level);
    GRVI_MPI_TRY(MPI_Comm_size(MPI_COMM_WORLD, &size));
    GRV_CHECK(size > 1 || slurm_tasks() <= 1, GRV_E_COMM,
              "srun started %ld tasks, but MPI sees one process: use mpirun, or srun --mpi=pmix",
              slurm_tasks());
    return GRV_OK;
}

void grv_mpi_stop(void)
{
    if (require_running() == GRV_OK) (void)MPI_Finalize();
}

static grv_status create_empty(int size, grv_comm **comm)
{
    grv_status status = GRV_OK;
    GRV_TRY(GRVI_CALLOC(comm, 1));
    **comm = (grv_comm){.mpi = MPI_COMM_NULL, .size = size, .max_bytes = default_max_bytes};
    GRV_TRY_GOTO(GRVI_CALLOC(&(*comm)->counts, size));
    GRV_TRY_GOTO(GRVI_CALLOC(&(*comm)->displacements, size));
done:
    if (status != GRV_OK) grv_comm_destroy(comm);
    return status;
}

grv_status grv_comm_create_self(grv_comm **comm)
{
    return create_empty(1, comm);
}

static grv_status create_duplicate(MPI_Comm host, grv_comm **comm)
{
    *comm = NULL;
    int size = 0;
    GRVI_MPI_TRY(MPI_Comm_size(host, &size));
    GRV_TRY(create_empty(size, comm));
    grv_status status = grvi_mpi_check(MPI_Comm_dup(host, &(*comm)->mpi), "MPI_Comm_dup");
    if (status == GRV_OK)
        status = grvi_mpi_check(MPI_Comm_rank(host, &(*comm)->rank), "MPI_Comm_rank");
    if (status != GRV_OK) grv_comm_destroy(comm);
    return status;
}

grv_status grv_comm_create_world(grv_comm **comm)
{
    *comm = NULL;
    GRV_TRY(require_running());
    return create_duplicate(MPI_COMM_WORLD, comm);
}

grv_status grv_comm_create_from_fortran(int handle, grv_comm **comm)
{
    *comm = NULL;
    GRV_TRY(require_running());
    const MPI_Comm host = MPI_Comm_f2c(handle);
    GRV_CHECK(host != MPI_COMM_NULL, GRV_E_ARG, "Fortran handle %d is no communicator", handle);
    return create_duplicate(host, comm);
}

grv_status grv_comm_split(grv_comm *comm, int color, int key, grv_comm **out)
{
    *out = NULL;
    if (comm->mpi == MPI_COMM_NULL) return color >= 0 ? grv_comm_create_self(out) : GRV_OK;
    MPI_Comm part = MPI_COMM_NULL;
    int size = 1;
    GRVI_MPI_TRY(MPI_Comm_split(comm->mpi, color >= 0 ? color : MPI_UNDEFINED, key, &part));
    grv_status status = GRV_OK;
    if (part != MPI_COMM_NULL) {
        (void)MPI_Comm_size(part, &size);
        status = create_empty(size, out);
    }
    status = grv_comm_agree(comm, status);
    if (status == GRV_OK && *out != NULL) {
        (*out)->mpi = part;
        (*out)->max_bytes = comm->max_bytes;
        return grvi_mpi_check(MPI_Comm_rank(part, &(*out)->rank), "MPI_Comm_rank");
    }
    if (part != MPI_COMM_NULL) (void)MPI_Comm_free(&part);
    grv_comm_destroy(out);
    return status;
}

void grv_comm_destroy(grv_comm **comm)
{
    if (comm == NULL || *comm == NULL) return;
    int ended = 1;
    if ((*comm)->mpi != MPI_COMM_NULL) (void)MPI_Finalized(&ended);
    if (!ended) (void)MPI_Comm_free(&(*comm)->mpi);
    grv_free((*comm)->counts);
    grv_free((*comm)->displacements);
    grv_free(*comm);
    *comm = NULL;
}

int grv_comm_rank(const grv_comm *comm)
{
    return comm->rank;
}

int grv_comm_size(const grv_comm *comm)
{
    return comm->size;
}

void grvi_comm_set_max_bytes(grv_comm *comm, int64_t max_bytes)
{
    comm->max_bytes = max_bytes;
}
