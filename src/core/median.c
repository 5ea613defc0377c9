/* Median of measurements. */
#include "core/median.h"

#include <stdlib.h>

#include "core/check.h"

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double grvi_median(int64_t n, double *values)
{
    GRV_ASSERT(n >= 1);
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return values[n / 2];
}
