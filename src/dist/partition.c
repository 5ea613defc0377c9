/* Balanced partition of an index range. */
#include "core/check.h"
#include "grove/dist.h"

grv_range grv_partition_range(int64_t n, int parts, int part)
{
    GRV_ASSERT(n >= 0 && parts >= 1 && part >= 0 && part < parts);
    const int64_t base = n / parts, rest = n % parts;
    return (grv_range){.start = part * base + grvi_min_i64(part, rest), .count = base + (part < rest)};
}

int grv_partition_owner(int64_t n, int parts, int64_t i)
{
    GRV_ASSERT(i >= 0 && i < n && parts >= 1);
    const int64_t base = n / parts, rest = n % parts, n_long = rest * (base + 1);
    return (int)(i < n_long ? i / (base + 1) : rest + (i - n_long) / base);
}
