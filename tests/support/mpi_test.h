/* Frame of the tests that run on several ranks. Include after cmocka.h. */
#ifndef GRVT_MPI_TEST_H
#define GRVT_MPI_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "grove/comm.h"

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

static inline int mpi_test_end(grv_comm **world, int n_failed)
{
    grv_comm_destroy(world);
    grv_mpi_stop();
    return n_failed;
}

#endif
