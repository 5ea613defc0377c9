/* Control groups for memory. Whatever is not allowed or not there makes the group absent; nothing here fails. */
#include "batch/memory_group.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file's beginning as text; false if it cannot be read. */
static bool read_text(const char *path, char *text, size_t n)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t got = read(fd, text, n - 1);
    (void)close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static bool write_text(const char *folder, const char *name, const char *text)
{
    char path[GRVI_GROUP_PATH_BYTES + 64];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool is_written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    (void)close(fd);
    return is_written;
}

/* Folder of this process's own group: after "0::" in version 2, after ":memory:" in version 1. */
static bool own_group(const char *mark, const char *root, char *path)
{
    char text[4096];
    if (!read_text("/proc/self/cgroup", text, sizeof text)) return false;
    const char *at = strstr(text, mark);
    if (at == NULL) return false;
    at += strlen(mark);
    return snprintf(path, GRVI_GROUP_PATH_BYTES - 64, "%s%.*s", root, (int)strcspn(at, "\n"), at) < GRVI_GROUP_PATH_BYTES - 64;
}

static bool make_group(const char *parent, const char *limit_name, int64_t bytes, grvi_memory_group *group)
{
    char limit[32];
    (void)snprintf(limit, sizeof limit, "%lld", (long long)bytes);
    const int n = snprintf(group->path, sizeof group->path, "%s/grove-%ld", parent, (long)getpid());
    if (n < (int)sizeof group->path && mkdir(group->path, 0700) == 0) {
        if (write_text(group->path, limit_name, limit)) return true;
        (void)rmdir(group->path);
    }
    group->path[0] = '\0';
    return false;
}

void grvi_memory_group_create(int64_t bytes, grvi_memory_group *group)
{
    char parent[GRVI_GROUP_PATH_BYTES], controllers[1024];
    *group = (grvi_memory_group){.is_version_2 = true};
    if (read_text("/sys/fs/cgroup/cgroup.controllers", controllers, sizeof controllers) && strstr(controllers, "memory") != NULL &&
        own_group("0::", "/sys/fs/cgroup", parent)) {
        /* allowed only where the parent itself holds no processes; otherwise the group below has no limit to set */
        (void)write_text(parent, "cgroup.subtree_control", "+memory");
        if (make_group(parent, "memory.max", bytes, group)) return;
    }
    group->is_version_2 = false;
    if (own_group(":memory:", "/sys/fs/cgroup/memory", parent)) (void)make_group(parent, "memory.limit_in_bytes", bytes, group);
}

bool grvi_memory_group_join(const grvi_memory_group *group)
{
    return group->path[0] != '\0' && write_text(group->path, "cgroup.procs", "0");
}

int64_t grvi_memory_group_kills(const grvi_memory_group *group)
{
    char path[GRVI_GROUP_PATH_BYTES + 64], text[1024];
    if (group->path[0] == '\0') return 0;
    (void)snprintf(path, sizeof path, "%s/%s", group->path, group->is_version_2 ? "memory.events" : "memory.oom_control");
    const char *at = read_text(path, text, sizeof text) ? strstr(text, "oom_kill ") : NULL;
    return at != NULL ? strtoll(at + strlen("oom_kill "), NULL, 10) : 0;
}

void grvi_memory_group_remove(grvi_memory_group *group)
{
    if (group->path[0] != '\0') (void)rmdir(group->path);
    group->path[0] = '\0';
}
