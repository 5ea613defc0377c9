/* The system's page cache under a folder, for benchmarks: dropping it, and seeing whether that worked. Internal. */
#ifndef GRVI_STORE_PAGE_CACHE_H
#define GRVI_STORE_PAGE_CACHE_H

#include "core/check.h"

/* Pages of the regular files below a folder. */
typedef struct grvi_page_count {
    int64_t total, resident;
} grvi_page_count;

/* Writes back the files below a folder, asks the system to forget their pages, and counts those that stayed.
 * Not every file system listens: look at *left. */
grv_status grvi_page_cache_drop(const char *folder, grvi_page_count *left) GRV_MUST_CHECK;

/* Waits until what was written before is on the disk, and not in the way of what is timed next. */
void grvi_page_cache_settle(void);

#endif
