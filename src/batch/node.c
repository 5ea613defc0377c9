/* The process that starts the workers of one node of an allocation and notes how they ended. */
#define _GNU_SOURCE /* POSIX_SPAWN_SETSID */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/batch_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

extern char **environ;

static const double look_s = 0.05;

static volatile sig_atomic_t has_to_go;
static void note_signal(int signal)
{
    (void)signal;
    has_to_go = 1;
}

static grv_status worker_path(const char *folder, int number, const char *name, char **path)
{
    grvi_text text = {0};
    grvi_text_printf(&text, "%s/workers/%d/%s", folder, number, name);
    *path = text.data;
    return grvi_text_status(&text);
}

/* In a session of its own: a signal to this process' group reaches it once, by this process. */
static grv_status start_worker(char *const *argv, const char *log, pid_t *pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    (void)posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)posix_spawn_file_actions_adddup2(&files, 1, 2);
    const int error = posix_spawn(pid, "/proc/self/exe", &files, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    GRV_CHECK(error == 0, GRV_E_IO, "start a worker: %s", strerror(error));
    return GRV_OK;
}

static grv_status start_workers(char *folder, int first, int n, double end_s, pid_t *pids)
{
    char program[] = "grove", batch[] = "batch", worker[] = "worker", number[16], end[32];
    char *const argv[] = {program, batch, worker, folder, number, end, NULL};
    grv_status status = GRV_OK;
    (void)snprintf(end, sizeof end, "%.0f", end_s);
    for (int i = 0; i < n && status == GRV_OK; i++) {
        char *log = NULL;
        (void)snprintf(number, sizeof number, "%d", first + i);
        status = worker_path(folder, first + i, "worker.log", &log);
        if (status == GRV_OK) status = start_worker(argv, log, &pids[i]);
        grv_free(log);
    }
    return status;
}

/* A worker that leaves tells so itself; the driver hears of the others by the file `ended`. */
static grv_status note_end(const char *folder, int number, int ended)
{
    char reason[128], *path = NULL;
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return GRV_OK;
    if (WIFSIGNALED(ended))
        (void)snprintf(reason, sizeof reason, "signal %d, %s", WTERMSIG(ended),
                       strsignal(WTERMSIG(ended)));
    else
        (void)snprintf(reason, sizeof reason, "exit code %d", WEXITSTATUS(ended));
    GRV_TRY(worker_path(folder, number, "ended", &path));
    const grv_status status = grvi_fs_write_atomic(path, reason, (int64_t)strlen(reason), false);
    grv_free(path);
    return status;
}

/* Until all have ended. SIGTERM is passed on to them. */
static grv_status reap(const char *folder, int first, int n, pid_t *pids)
{
    grv_status status = GRV_OK;
    bool was_told = false;
    for (;;) {
        int ended = 0;
        const bool tells = has_to_go && !was_told;
        const pid_t pid = waitpid(-1, &ended, WNOHANG);
        if (pid < 0 && errno == ECHILD) return status;
        for (int i = 0; i < n; i++) {
            if (tells && pids[i] > 0) (void)kill(pids[i], SIGTERM);
            if (pid <= 0 || pids[i] != pid) continue;
            pids[i] = 0;
            const grv_status noted = note_end(folder, first + i, ended);
            if (status == GRV_OK) status = noted;
        }
        was_told = was_told || tells;
        if (pid <= 0) grvi_sleep(look_s);
    }
}

grv_status grv_batch_node(const char *folder, int first, int n, double end_s)
{
    pid_t *pids = NULL;
    char *job = NULL;
    const struct sigaction action = {.sa_handler = note_signal};
    GRV_CHECK(n >= 1 && first >= 0, GRV_E_ARG, "at least one worker expected, %d found", n);
    GRV_TRY(grvi_strdup(folder, &job));
    grv_status status = GRVI_CALLOC(&pids, n);
    (void)sigaction(SIGTERM, &action, NULL);
    if (status == GRV_OK) status = start_workers(job, first, n, end_s, pids);
    if (pids != NULL) {
        const grv_status reaped = reap(folder, first, n, pids);
        if (status == GRV_OK) status = reaped;
    }
    grv_free(pids);
    grv_free(job);
    return status;
}
