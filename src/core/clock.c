/* Monotonic clock and build facts. */
#include <time.h>

#include "grove/core.h"
#include "grove_build_info.h"

double grv_clock_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *grv_version(void) { return GRVI_VERSION_STRING; }
const char *grv_git_hash(void) { return GRVI_GIT_HASH; }
const char *grv_compiler(void) { return GRVI_COMPILER; }
const char *grv_build_type(void) { return GRVI_BUILD_TYPE; }

const grv_library *grv_libraries(int *n)
{
    static const grv_library libraries[] = {GRVI_LIBRARIES};
    *n = (int)(sizeof libraries / sizeof *libraries);
    return libraries;
}
