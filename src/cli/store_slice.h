/* Slices of an array as people write them: '3', '-1', '2:5', ':', '...', one for each axis, joined by commas. Internal to src/cli. */
#ifndef GRVC_STORE_SLICE_H
#define GRVC_STORE_SLICE_H

#include "core/check.h"
#include "grove/store.h"

/* A region, and which of its axes are shown: a single index drops its axis. */
typedef struct grvc_slice {
    int rank;
    int64_t start[GRV_STORE_MAX_RANK], count[GRV_STORE_MAX_RANK];
    bool is_dropped[GRV_STORE_MAX_RANK];
} grvc_slice;

/* Reads slices with the rules of NumPy: negative numbers count from the end, ranges are cut at the ends, axes that are left out at the
 * end are whole; steps other than 1 are refused. text may be NULL: everything.
 * GRV_E_ARG tells what is wrong, and what the array's shape is. */
grv_status grvc_slice_parse(const char *text, int rank, const int64_t *shape,
                            grvc_slice *slice) GRV_MUST_CHECK;

#endif
