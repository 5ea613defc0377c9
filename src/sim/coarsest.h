/* The coarsest level of the pressure equation: conjugate gradients in double on plain arrays. Internal to src/sim.
 * Usually a few cells; where the size of the finest grid is odd it may be many, which costs time and not the answer. */
#ifndef GRVI_SIM_COARSEST_H
#define GRVI_SIM_COARSEST_H

#include "kernels/flow_kernels.h"

/* Doubles of work space. */
int64_t grvi_coarsest_work(const grvi_flow_grid *grid);
/* x = scale x + (solution for the right side rhs, up to a small part of its norm). One thread. */
void grvi_coarsest_solve(const grvi_flow_level *level, bool is_double, const void *rhs,
                         double scale, double *work);

#endif
