/* Frame of the tests that run on several ranks. Include after cmocka.h. */
#ifndef GRVT_MPI_TEST_H
#define GRVT_MPI_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "grove/comm.h"
#include "grove/core.h"

/* All ranks of the test. A failed assertion aborts, so that mpirun ends the ranks that would wait for this one. */
static inline grv_comm *mpi_test_begin(void)
{
    grv_comm *world = NULL;
    (void)setenv("CMOCKA_TEST_ABORT", "1", 0);
    if (grv_mpi_start() != GRV_OK || grv_comm_create_world(&world) != GRV_OK) {
        (void)fprintf(stderr, "%s\n", grv_error_trace());
        exit(1);
    }
    return world;
}

/* Exit status of the test: also wrong when something of grove's was not given back (MPI's own leaks hide it from sanitizers). */
static inline int mpi_test_end(grv_comm **world, int n_failed)
{
    grv_comm_destroy(world);
    grv_mpi_stop();
    const long long leaked = (long long)grv_memory_get().bytes;
    if (leaked != 0) (void)fprintf(stderr, "%lld bytes were not given back\n", leaked);
    return n_failed != 0 || leaked != 0;
}

#endif
