/* Neighbour searches in plain C, a lane at a time. */
#include <stdint.h>

#define REAL    float
#define KEY     int32_t
#define KEY_MAX INT32_MAX
#define NAME(x) x##_f32
#include "kernels/neighbour_insert.h"
#include "kernels/neighbour_ref_steps.h"

#include "kernels/neighbour_loops.h"
#undef REAL
#undef KEY
#undef KEY_MAX
#undef NAME
#define REAL    double
#define KEY     int64_t
#define KEY_MAX INT64_MAX
#define NAME(x) x##_f64
#include "kernels/neighbour_insert.h"
#include "kernels/neighbour_ref_steps.h"

#include "kernels/neighbour_loops.h"

const grvi_neighbour_kernels *grvi_neighbour_kernels_ref(bool is_double)
{
    static const grvi_neighbour_kernels table_f32 = {"ref",   nearest_f32,    within_f32,
                                                     run_f32, sort_short_f32, enclose_f32};
    static const grvi_neighbour_kernels table_f64 = {"ref",   nearest_f64,    within_f64,
                                                     run_f64, sort_short_f64, enclose_f64};
    return is_double ? &table_f64 : &table_f32;
}
