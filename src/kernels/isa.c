/* Run-time choice of the instruction set. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/isa.h"

static const char *const names[GRVI_ISA_COUNT] = {"ref", "avx2", "avx512"};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static grvi_isa chosen = GRVI_ISA_REF;

const char *grvi_isa_name(grvi_isa isa) { return names[isa]; }

bool grvi_isa_usable(grvi_isa isa)
{
    switch (isa) {
    case GRVI_ISA_REF: return true;
#if defined(__x86_64__) && defined(__GNUC__)
    /* the builtins check the operating system's support (XGETBV) as well */
    case GRVI_ISA_AVX2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case GRVI_ISA_AVX512:
#ifdef GRVI_EMULATE_AVX512
        return true;
#endif
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
#endif
    default: return false;
    }
}

static void choose(void)
{
    const char *const forced = getenv("GROVE_ISA");
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        if (!grvi_isa_usable((grvi_isa)isa)) continue;
        if (forced != NULL && strcmp(forced, names[isa]) == 0) {
            chosen = (grvi_isa)isa;
            return;
        }
        chosen = (grvi_isa)isa;
    }
}

grvi_isa grvi_isa_chosen(void)
{
    (void)pthread_once(&once, choose);
    return chosen;
}
