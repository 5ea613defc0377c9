/** @file dist.h
 * Distribution as data: balanced partitions, boxes, process meshes, repartition plans, reduction trees.
 */
#ifndef GROVE_DIST_H
#define GROVE_DIST_H

#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A contiguous range of indices. */
typedef struct grv_range {
    int64_t start; /**< first index */
    int64_t count; /**< how many; may be 0 */
} grv_range;

/** Balanced split of [0, n) into `parts`: part i gets floor(n/parts) + (i < n mod parts) indices, in order.
 * Preconditions: n >= 0, parts >= 1, 0 <= part < parts. Not collective. */
GRV_API grv_range grv_partition_range(int64_t n, int parts, int part);

/** The part that owns index i under grv_partition_range. Not collective. */
GRV_API int grv_partition_owner(int64_t n, int parts, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
