/* Neighbour searches in plain C: vectors of one lane. */
#include "kernels/neighbour_kernels.h"

#define REAL    float
#define KEY     int32_t
#define KEY_MAX INT32_MAX
#define NAME(x) x##_f32
#include "kernels/neighbour_ref_vectors.h"

#include "kernels/neighbour_loops.h"
#undef REAL
#undef KEY
#undef KEY_MAX
#undef NAME
#define REAL    double
#define KEY     int64_t
#define KEY_MAX INT64_MAX
#define NAME(x) x##_f64
#include "kernels/neighbour_ref_vectors.h"

#include "kernels/neighbour_loops.h"

const grvi_neighbour_kernels *grvi_neighbour_kernels_ref(bool is_double)
{
    return is_double ? &table_f64 : &table_f32;
}
