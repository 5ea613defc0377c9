/* Workers as processes of this machine, in sessions of their own, so that they outlive their driver. */
#define _GNU_SOURCE /* POSIX_SPAWN_SETSID */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/batch_impl.h"
#include "batch/grove_program.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

extern char **environ;

typedef struct executor_local {
    grvi_executor base;
    char *folder, *program;
} executor_local;

/* A process is one of ours if it began when the handle says: numbers are used again. */
static unsigned long long start_time_of(long pid)
{
    char path[64], text[1024];
    unsigned long long start = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strrchr(text, ')'); /* the name before it may hold anything */
    if (at == NULL || at[1] == '\0' || at[2] == 'Z') return 0;
    for (int field = 2; field < 22 && at != NULL; field++) at = strchr(at + 1, ' ');
    if (at != NULL) start = strtoull(at, NULL, 10);
    return start;
}

static int local_room(grvi_executor *executor, int wanted)
{
    (void)executor;
    return wanted > 0;
}

static grv_status local_start(grvi_executor *executor, int number, int n, char **handle)
{
    GRV_ASSERT(n == 1);
    const executor_local *const e = (const executor_local *)executor;
    char name[32], *log = NULL;
    pid_t pid = 0;
    grvi_text text = {0};
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    sigset_t none;
    (void)snprintf(name, sizeof name, "%d", number);
    char batch[] = "batch", worker[] = "worker";
    char *const argv[] = {e->program, batch, worker, e->folder, name, NULL};
    grvi_text_printf(&text, "%s/workers/%d/worker.log", e->folder, number);
    grv_status status = grvi_text_status(&text);
    if (status == GRV_OK) status = grvi_strdup(text.data, &log);
    grvi_text_fini(&text);
    if (status != GRV_OK) return status;
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_init(&files);
    (void)sigemptyset(&none);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)posix_spawn_file_actions_adddup2(&files, 1, 2);
    const int error = posix_spawn(&pid, e->program, &files, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    grv_free(log);
    GRV_CHECK(error == 0, GRV_E_IO, "start a worker, %s: %s", e->program, strerror(error));
    grvi_text_printf(&text, "%ld %llu", (long)pid, start_time_of(pid));
    status = grvi_text_status(&text);
    *handle = text.data;
    return status;
}

static bool parse(const char *handle, long *pid, unsigned long long *start)
{
    return sscanf(handle, "%ld %llu", pid, start) == 2 && *pid > 1;
}

static bool local_is_alive(grvi_executor *executor, const char *handle, int number, grvi_text *why)
{
    long pid = 0;
    unsigned long long start = 0;
    int ended = 0;
    (void)executor;
    (void)number;
    if (!parse(handle, &pid, &start)) return false;
    const pid_t reaped = waitpid((pid_t)pid, &ended, WNOHANG);
    if (reaped == pid) {
        if (WIFSIGNALED(ended)) grvi_text_printf(why, "signal %d, %s", WTERMSIG(ended), strsignal(WTERMSIG(ended)));
        else grvi_text_printf(why, "exit code %d", WEXITSTATUS(ended));
        (void)grvi_session_kill(pid);
        return false;
    }
    const unsigned long long found = start_time_of(pid);
    if (found == 0) (void)grvi_session_kill(pid); /* a worker of an earlier driver that was killed */
    return found == start && start != 0;
}

static void local_kill(grvi_executor *executor, const char *handle)
{
    long pid = 0;
    unsigned long long start = 0;
    (void)executor;
    if (parse(handle, &pid, &start) && start_time_of(pid) == start && start != 0) (void)grvi_session_kill(pid);
}

static void local_destroy(grvi_executor *executor)
{
    executor_local *const e = (executor_local *)executor;
    grv_free(e->folder);
    grv_free(e->program);
    grv_free(e);
}

static const grvi_executor_class local_class = {.name = "local", .room = local_room, .start = local_start, .is_alive = local_is_alive,
                                               .kill = local_kill, .destroy = local_destroy};

grv_status grvi_executor_local_create(const char *folder, const grv_batch_params *params, grvi_executor **executor)
{
    grv_status status = GRV_OK;
    executor_local *e = NULL;
    GRV_TRY(GRVI_CALLOC(&e, 1));
    e->base = (grvi_executor){.class = &local_class, .late_s = 3};
    GRV_TRY_GOTO(grvi_strdup(folder, &e->folder));
    GRV_TRY_GOTO(grvi_find_program(params->worker_program, &e->program));
    *executor = &e->base;
done:
    if (status != GRV_OK) local_destroy(&e->base);
    return status;
}
