/* Ending all processes of a session. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch/batch_impl.h"

/* A number that names a session is not used again while anybody is in it. */
int grvi_session_kill(long leader)
{
    int n_killed = 0;
    DIR *const directory = opendir("/proc");
    const struct dirent *entry = NULL;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char path[300], text[1024];
        char state = 'Z';
        long session = 0;
        const long pid = strtol(entry->d_name, NULL, 10);
        if (pid <= 1) continue;
        (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        const ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
        if (fd >= 0) (void)close(fd);
        text[n > 0 ? n : 0] = '\0';
        const char *const at = strrchr(text, ')'); /* the name before it may hold anything */
        if (at == NULL || sscanf(at + 1, " %c %*d %*d %ld", &state, &session) != 2 ||
            session != leader || state == 'Z')
            continue;
        n_killed += kill((pid_t)pid, SIGKILL) == 0;
    }
    if (directory != NULL) (void)closedir(directory);
    return n_killed;
}
