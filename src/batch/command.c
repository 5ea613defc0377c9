/* Another program, run beside the driver. */
#define _GNU_SOURCE /* POSIX_SPAWN_SETSID, pipe2 */
#include "batch/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/watch.h"
#include "grove/core.h"

extern char **environ;

static const int64_t most_bytes = (int64_t)64 << 20;

static void close_pipes(int pipes[2])
{
    for (int i = 0; i < 2; i++) {
        if (pipes[i] >= 0) (void)close(pipes[i]);
        pipes[i] = -1;
    }
}

static int spawn(pid_t *pid, char *const *argv, const int ends[2])
{
    sigset_t none;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_init(&files);
    (void)sigemptyset(&none);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    for (int i = 0; i < 2; i++) (void)posix_spawn_file_actions_adddup2(&files, ends[i], i + 1);
    const int error = posix_spawnp(pid, argv[0], &files, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    return error;
}

grv_status grvi_command_start(grvi_command *c, char *const *argv)
{
    int ends[2] = {-1, -1}, pair[2];
    grv_status status = GRV_OK;
    GRV_ASSERT(c->pid == 0);
    c->pipes[0] = c->pipes[1] = -1;
    for (int i = 0; i < 2; i++) {
        c->text[i].n = 0;
        GRV_CHECK_GOTO(pipe2(pair, O_CLOEXEC) == 0, GRV_E_IO, "a pipe to %s: %s", argv[0],
                       strerror(errno));
        c->pipes[i] = pair[0];
        ends[i] = pair[1];
        (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    }
    c->code = -1;
    c->begun_s = grv_clock_seconds();
    const int error = spawn(&c->pid, argv, ends);
    GRV_CHECK_GOTO(error == 0, GRV_E_NOT_FOUND, "%s cannot be run: %s", argv[0], strerror(error));
done:
    close_pipes(ends);
    if (status != GRV_OK) {
        c->pid = 0;
        close_pipes(c->pipes);
    }
    return status;
}

static void take_output(grvi_command *c)
{
    char part[4096];
    for (int i = 0; i < 2; i++)
        for (ssize_t n = 0; c->pipes[i] >= 0 && (n = read(c->pipes[i], part, sizeof part)) > 0;)
            if (c->text[i].n < most_bytes) grvi_text_append_n(&c->text[i], part, n);
}

bool grvi_command_has_ended(grvi_command *c, double timeout_s)
{
    int ended = 0;
    if (c->pid == 0) return true;
    take_output(c);
    const bool is_late = grv_clock_seconds() - c->begun_s > timeout_s;
    if (is_late) (void)kill(-c->pid, SIGKILL);
    const pid_t got = waitpid(c->pid, &ended, is_late ? 0 : WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) return false;
    take_output(c);
    close_pipes(c->pipes);
    c->code = got == c->pid && WIFEXITED(ended) && !is_late ? WEXITSTATUS(ended) : -1;
    if (is_late) grvi_text_printf(&c->text[1], "no answer in %g s", timeout_s);
    c->pid = 0;
    return true;
}

const char *grvi_command_messages(grvi_command *c)
{
    grvi_text *const t = &c->text[1];
    while (t->n > 0 && (t->data[t->n - 1] == '\n' || t->data[t->n - 1] == ' '))
        t->data[--t->n] = '\0';
    for (int64_t i = 0; i < t->n; i++)
        if (t->data[i] == '\n') t->data[i] = ' ';
    return t->n > 0 ? grvi_text_get(t) : "";
}

grv_status grvi_command_run(char *const *argv, double timeout_s)
{
    grvi_command c = {0};
    GRV_TRY(grvi_command_start(&c, argv));
    while (!grvi_command_has_ended(&c, timeout_s)) grvi_sleep(0.005);
    const grv_status status =
        c.code == 0 ? GRV_OK
                    : grvi_fail(GRV_E_IO, __FILE__, __LINE__, __func__, "%s: exit code %d: %s",
                                argv[0], c.code, grvi_command_messages(&c));
    grvi_command_fini(&c);
    return status;
}

void grvi_command_fini(grvi_command *c)
{
    if (c->pid > 0) (void)grvi_command_has_ended(c, -1);
    for (int i = 0; i < 2; i++) grvi_text_fini(&c->text[i]);
}
