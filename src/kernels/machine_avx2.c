/* machine_loops.h for avx2. */
#include "kernels/machine_kernels.h"

#ifdef __AVX2__
#include "kernels/machine_loops.h"
const grvi_machine_kernels *grvi_machine_kernels_avx2(void) { return &machine_table; }
#else
#include <stddef.h>
const grvi_machine_kernels *grvi_machine_kernels_avx2(void) { return NULL; }
#endif
