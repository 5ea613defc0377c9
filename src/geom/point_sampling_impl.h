/* What the samplers share: streams of random numbers, arrays of float or double. Internal. */
#ifndef GRVI_GEOM_POINT_SAMPLING_IMPL_H
#define GRVI_GEOM_POINT_SAMPLING_IMPL_H

#include <stdbool.h>
#include <stdint.h>

/* Streams of grv_random_*; those of the caller are used as they are. */
enum {
    GRVI_STREAM_SURFACE = 0x67656f01,
    GRVI_STREAM_BOX = 0x67656f02,
    GRVI_STREAM_INSIDE = 0x67656f03
};

/* Numbers of the caller, float or double. */
static inline double grvi_real_get(const void *array, bool is_double, int64_t i)
{
    return is_double ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static inline void grvi_real_set(void *array, bool is_double, int64_t i, double value)
{
    if (is_double)
        ((double *)array)[i] = value;
    else
        ((float *)array)[i] = (float)value;
}

#endif
