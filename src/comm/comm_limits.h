/* What tests of other modules may ask of a communicator. Internal. */
#ifndef GRVI_COMM_COMM_LIMITS_H
#define GRVI_COMM_COMM_LIMITS_H

#include "grove/comm.h"

/* Cuts messages longer than max_bytes (>= 8), as those beyond MPI's int counts are, so that tests need no gigabytes.
 * Equal on all ranks; before exchanges are created. */
void grvi_comm_set_max_bytes(grv_comm *comm, int64_t max_bytes);

#endif
