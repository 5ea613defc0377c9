/* What the machine can do: loops whose speed is the peak of multiply-adds and of reading and writing memory. For floors of benchmarks. Internal. */
#ifndef GRVI_KERNELS_MACHINE_KERNELS_H
#define GRVI_KERNELS_MACHINE_KERNELS_H

#include <stdint.h>

#include "kernels/isa.h"

typedef struct grvi_machine_kernels {
    /* n rounds of independent multiply-adds in registers; returns a number that depends on all of them, and their flops in *flops. */
    float (*multiply_add)(int64_t n, double *flops);
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
