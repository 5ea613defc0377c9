/* Instruction sets: which exist, which this machine runs, which is used. Internal.
 * Each kernel family (point_kernels.h, spectral_transform.h, flow_kernels.h) is a struct of typed function pointers with a
 * grvi_<family>_kernels_for(isa); every table starts from a copy of the one before it and overrides what it improves. */
#ifndef GRVI_KERNELS_ISA_H
#define GRVI_KERNELS_ISA_H

#include <stdbool.h>

typedef enum grvi_isa {
    GRVI_ISA_REF,    /* plain C, computes in double: the oracle */
    GRVI_ISA_AVX2,   /* x86-64 with AVX2 and FMA, 8 lanes of float */
    GRVI_ISA_AVX512, /* AVX-512 F, VL, DQ, BW, 16 lanes of float */
    GRVI_ISA_COUNT
} grvi_isa;

/* Name as in GROVE_ISA: "ref", "avx2", "avx512". */
const char *grvi_isa_name(grvi_isa isa);
/* Compiled in and supported by processor and operating system. */
bool grvi_isa_usable(grvi_isa isa);
/* The best usable one, or what the environment variable GROVE_ISA forces (read once); an unusable forced one falls back to the best. */
grvi_isa grvi_isa_chosen(void);

#endif
