/* Tables of the instruction-set variants; index 0 float, 1 double. NULL where the compiler lacks the instruction set. Internal. */
#ifndef GRVI_KERNELS_FLOW_VARIANTS_H
#define GRVI_KERNELS_FLOW_VARIANTS_H

#include "kernels/flow_kernels.h"

const grvi_flow_kernels *grvi_flow_kernels_generic(bool is_double);
const grvi_flow_kernels *grvi_flow_kernels_avx2(bool is_double);
const grvi_flow_kernels *grvi_flow_kernels_avx512(bool is_double);

#endif
