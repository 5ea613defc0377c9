/* Median of measurements. Internal. */
#ifndef GRVI_CORE_MEDIAN_H
#define GRVI_CORE_MEDIAN_H

#include <stdint.h>

/* The upper median of n >= 1 numbers, which are sorted by the call; no NaN. */
double grvi_median(int64_t n, double *values);

#endif
