/* Neighbour searches for AVX2; the loops are in neighbour_loops.h. */
#include <stddef.h>

#include "kernels/neighbour_kernels.h"

#ifdef __AVX2__
#include "kernels/neighbour_vectors.h"

#define REAL    float
#define KEY     int32_t
#define KEY_MAX INT32_MAX
#define NAME(x) x##_f32
#include "kernels/neighbour_loops.h"
#undef REAL
#undef KEY
#undef KEY_MAX
#undef NAME
#define REAL    double
#define KEY     int64_t
#define KEY_MAX INT64_MAX
#define NAME(x) x##_f64
#include "kernels/neighbour_loops.h"

const grvi_neighbour_kernels *grvi_neighbour_kernels_avx2(bool is_double)
{
    return is_double ? &table_f64 : &table_f32;
}
#else
const grvi_neighbour_kernels *grvi_neighbour_kernels_avx2(bool is_double)
{
    (void)is_double;
    return NULL;
}
#endif
