/* Where the program grove is. */
#include "batch/grove_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0 && !grvi_fs_is_directory(path);
}

grv_status grvi_find_program(const char *asked, char **out)
{
    char self[4096], beside[4200];
    const char *const named = asked != NULL ? asked : getenv("GROVE_PROGRAM");
    if (named != NULL && named[0] != '\0') {
        GRV_CHECK(is_program(named), GRV_E_NOT_FOUND, "the workers' program %s cannot be run",
                  named);
        return grvi_strdup(named, out);
    }
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *const slash = strrchr(self, '/');
    if (slash != NULL && strcmp(slash + 1, "grove") == 0) return grvi_strdup(self, out);
    if (slash != NULL) {
        *slash = '\0';
        (void)snprintf(beside, sizeof beside, "%s/grove", self);
        if (is_program(beside)) return grvi_strdup(beside, out);
    }
    const char *path = getenv("PATH");
    while (path != NULL && path[0] != '\0') {
        const size_t length = strcspn(path, ":");
        (void)snprintf(beside, sizeof beside, "%.*s/grove", (int)length, path);
        if (length > 0 && is_program(beside)) return grvi_strdup(beside, out);
        path += length + (path[length] == ':');
    }
    GRV_FAIL(GRV_E_NOT_FOUND, "the program grove, which workers run, is neither beside this "
                              "program nor on PATH: set GROVE_PROGRAM");
}
