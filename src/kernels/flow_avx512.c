/* Flow kernels for AVX-512; the loops are in flow_loops.h. */
#include "kernels/flow_variants.h"

#ifdef GRVI_AVX512
#define REAL    float
#define NAME(x) x##_f32
#include "kernels/flow_loops.h"
#undef REAL
#undef NAME
#define REAL    double
#define NAME(x) x##_f64
#include "kernels/flow_loops.h"

const grvi_flow_kernels *grvi_flow_kernels_avx512(bool is_double)
{
    return is_double ? &table_f64 : &table_f32;
}
#else
const grvi_flow_kernels *grvi_flow_kernels_avx512(bool is_double)
{
    (void)is_double;
    return NULL;
}
#endif
