/* machine_loops.h for avx512. */
#include "kernels/machine_kernels.h"

#ifdef GRVI_AVX512
#include "kernels/machine_loops.h"
const grvi_machine_kernels *grvi_machine_kernels_avx512(void) { return &machine_table; }
#else
#include <stddef.h>
const grvi_machine_kernels *grvi_machine_kernels_avx512(void) { return NULL; }
#endif
