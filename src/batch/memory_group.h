/* A memory limit that the kernel keeps: a control group (version 2 or 1) for the processes of a task. Internal. */
#ifndef GRVI_BATCH_MEMORY_GROUP_H
#define GRVI_BATCH_MEMORY_GROUP_H

#include <sys/types.h>

#include "core/check.h"

enum { GRVI_GROUP_PATH_BYTES = 512 };

typedef struct grvi_memory_group {
    char path[GRVI_GROUP_PATH_BYTES]; /* "" if none could be made */
    bool is_version_2;
    int64_t n_killed; /* when last looked at */
} grvi_memory_group;

/* Makes a group below this process's own with a limit; where that is not allowed, *group has no path: the caller watches instead. */
void grvi_memory_group_create(int64_t bytes, grvi_memory_group *group);
/* The calling process, and what it starts from now on, belongs to the group. false: it does not. */
bool grvi_memory_group_join(const grvi_memory_group *group);
/* Has the kernel killed anything in the group for its memory since the last call? */
bool grvi_memory_group_has_killed(grvi_memory_group *group);
/* Removes the group; its processes are gone. */
void grvi_memory_group_remove(grvi_memory_group *group);

#endif
