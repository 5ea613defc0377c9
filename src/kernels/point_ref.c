/* The reference of the point kernels: plain C that computes in double and loads and stores float or double.
 * point_ref_loops.h is the one source, included once per type. */
#include <string.h>

#include "kernels/point_kernels.h"

#define REAL        float
#define NAMED(name) name##_f32
#include "kernels/point_ref_loops.h"
#undef REAL
#undef NAMED

#define REAL        double
#define NAMED(name) name##_f64
#include "kernels/point_ref_loops.h"
#undef REAL
#undef NAMED

void grvi_point_kernels_fill_ref(grvi_point_kernels *f32, grvi_point_kernels *f64)
{
    fill_f32(f32);
    fill_f64(f64);
}
