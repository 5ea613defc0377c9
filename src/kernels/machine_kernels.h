/* What the memory can do: loops whose speed is that of reading and writing it. For floors of benchmarks; the peak of multiply-adds is
 * peak_loop of point_kernels.h. Internal. */
#ifndef GRVI_KERNELS_MACHINE_KERNELS_H
#define GRVI_KERNELS_MACHINE_KERNELS_H

#include <stdint.h>

#include "kernels/isa.h"

typedef struct grvi_machine_kernels {
    /* Sum of n floats, several streams at a time. */
    float (*read)(int64_t n, const float *x);
    /* Sets n floats. */
    void (*write)(int64_t n, float value, float *x);
} grvi_machine_kernels;

/* Loops of an instruction set; the plain ones where it is not compiled in. */
const grvi_machine_kernels *grvi_machine_kernels_for(grvi_isa isa);

/* NULL where the compiler lacks the instruction set. Use grvi_machine_kernels_for. */
const grvi_machine_kernels *grvi_machine_kernels_avx2(void);
const grvi_machine_kernels *grvi_machine_kernels_avx512(void);

#endif
