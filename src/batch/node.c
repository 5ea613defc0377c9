/* The process that starts the workers of one node of an allocation, anew where they are killed, and notes how those ended that cannot go on. */
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

static const double look_s = 0.05, short_s = 1;
enum { SHORT_MOST = 3 };

static volatile sig_atomic_t has_to_go;
static void note_signal(int signal)
{
    (void)signal;
    has_to_go = 1;
}

typedef struct node_worker {
    int number;
    pid_t pid;      /* of its process, or the last one; 0: none yet */
    bool is_up;     /* that runs */
    bool is_over;   /* none will be started again */
    bool is_noted;  /* ... and the driver hears of it */
    int n_short;    /* processes in a row that ended at once */
    double begun_s; /* clock */
    char why[128];  /* how the last process ended */
} node_worker;

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

static grv_status start(char *folder, double end_s, node_worker *w)
{
    char program[] = "grove", batch[] = "batch", worker[] = "worker", number[16], end[32],
         *log = NULL;
    char *const argv[] = {
        program, batch, worker, folder, number, end, w->why[0] != '\0' ? w->why : NULL, NULL};
    (void)snprintf(number, sizeof number, "%d", w->number);
    (void)snprintf(end, sizeof end, "%.0f", end_s);
    grv_status status = grvi_worker_path(folder, w->number, "worker.log", &log);
    if (status == GRV_OK) status = start_worker(argv, log, &w->pid);
    w->begun_s = grv_clock_seconds();
    w->is_up = status == GRV_OK;
    grv_free(log);
    return status;
}

/* One that leaves tells so itself. */
static void take_end(node_worker *w, int ended)
{
    if (WIFSIGNALED(ended))
        (void)snprintf(w->why, sizeof w->why, "signal %d, %s", WTERMSIG(ended),
                       strsignal(WTERMSIG(ended)));
    else
        (void)snprintf(w->why, sizeof w->why, "exit code %d", WEXITSTATUS(ended));
    w->n_short = grv_clock_seconds() - w->begun_s < short_s ? w->n_short + 1 : 0;
    w->is_over = w->is_noted = WIFEXITED(ended) && WEXITSTATUS(ended) == 0;
    w->is_up = false;
}

/* Starts it, once nothing of its last process is left. If it is not to be, the driver hears so by the file `ended`; on a full disk it does later,
 * at the latest by the end of the allocation. */
static void bring_up(char *folder, double end_s, node_worker *w)
{
    char *path = NULL;
    if (w->pid > 0 && grvi_session_kill(w->pid) > 0) return;
    if (!w->is_over && !has_to_go && w->n_short < SHORT_MOST) {
        if (start(folder, end_s, w) == GRV_OK) return;
        (void)snprintf(w->why, sizeof w->why, "%s", grv_error_message());
    }
    w->is_over = true;
    w->is_noted = grvi_worker_path(folder, w->number, "ended", &path) == GRV_OK &&
                  grvi_fs_write_atomic(path, w->why, (int64_t)strlen(w->why), false) == GRV_OK;
    grv_free(path);
}

/* Until all have ended. SIGTERM is passed on to them. */
static void run_workers(char *folder, double end_s, node_worker *workers, int n)
{
    bool was_told = false;
    for (;;) {
        int ended = 0, n_left = 0;
        const bool tells = has_to_go && !was_told;
        const pid_t pid = waitpid(-1, &ended, WNOHANG);
        for (int i = 0; i < n; i++) {
            node_worker *const w = &workers[i];
            if (tells && w->is_up) (void)kill(w->pid, SIGTERM);
            if (w->is_up && w->pid == pid) take_end(w, ended);
            if (!w->is_up && !w->is_noted) bring_up(folder, end_s, w);
            n_left += !w->is_over;
        }
        was_told = was_told || tells;
        if (n_left == 0) return;
        if (pid <= 0) grvi_sleep(look_s);
    }
}

grv_status grv_batch_node(const char *folder, int first, int n, double end_s)
{
    node_worker *workers = NULL;
    char *job = NULL;
    const struct sigaction action = {.sa_handler = note_signal};
    grv_status status = GRV_OK;
    GRV_CHECK(n >= 1 && first >= 0, GRV_E_ARG, "at least one worker expected, %d found", n);
    GRV_TRY_GOTO(grvi_strdup(folder, &job));
    GRV_TRY_GOTO(GRVI_CALLOC(&workers, n));
    (void)sigaction(SIGTERM, &action, NULL);
    for (int i = 0; i < n; i++) workers[i].number = first + i;
    run_workers(job, end_s, workers, n);
done:
    grv_free(workers);
    grv_free(job);
    return status;
}
