/* Program tasks: a command in a folder of its own. */
#define _GNU_SOURCE /* posix_spawn_file_actions_addchdir_np */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/worker_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

extern char **environ;

enum { MAX_LAUNCHER = 5 };

grv_status grvi_spawn_and_wait(grvi_worker *w, char *const *argv, const char *folder, int output, int *exit_code)
{
    pid_t pid = 0;
    sigset_t ignored;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_init(&files);
    (void)sigemptyset(&ignored); /* here, not by the program */
    (void)sigaddset(&ignored, SIGTERM);
    (void)sigaddset(&ignored, SIGINT);
    (void)posix_spawnattr_setsigdefault(&attributes, &ignored);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, output, 1);
    (void)posix_spawn_file_actions_adddup2(&files, output, 2);
    (void)posix_spawn_file_actions_addchdir_np(&files, folder);
    const int error = posix_spawnp(&pid, argv[0], &files, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    GRV_CHECK(error == 0, GRV_E_NOT_FOUND, "run %s: %s", argv[0], strerror(error));
    atomic_store(&w->page->program, pid);
    while (waitpid(pid, exit_code, 0) < 0 && errno == EINTR) {}
    (void)kill(-pid, SIGKILL); /* what it left behind in its group */
    atomic_store(&w->page->program, 0);
    return GRV_OK;
}

/* {0}, {1}, ... in a template; {{ is a brace. */
static grv_status substitute(const char *template, int n_args, char *const *texts, char **out)
{
    grvi_text text = {0};
    grv_status status = GRV_OK;
    grvi_text_append(&text, "");
    for (const char *p = template; *p != '\0';) {
        char *end = NULL;
        if (p[0] == '{' && p[1] == '{') {
            grvi_text_append(&text, "{");
            p += 2;
            continue;
        }
        const long i = p[0] == '{' && p[1] >= '0' && p[1] <= '9' ? strtol(p + 1, &end, 10) : -1;
        if (end != NULL && *end == '}') {
            GRV_CHECK_GOTO(i < n_args, GRV_E_ARG, "'%s' asks for argument %ld, the call has %d, {0} first", template, i, n_args);
            grvi_text_append(&text, texts[i]);
            p = end + 1;
        } else {
            grvi_text_append_n(&text, p++, 1);
        }
    }
    GRV_TRY_GOTO(grvi_text_status(&text));
    *out = text.data;
    return GRV_OK;
done:
    grvi_text_fini(&text);
    return status;
}

/* An argument as text; files are copied into the folder. */
static grv_status argument_text(grvi_worker *w, const grvi_wire_value *v, int number, const char *folder, char **out)
{
    const void *data = NULL;
    grvi_text text = {0};
    char *path = NULL;
    grv_status status = GRV_OK;
    switch (v->kind) {
    case GRV_BATCH_I64: grvi_text_printf(&text, "%lld", (long long)v->i64); break;
    case GRV_BATCH_F64:
        if (isfinite(v->f64)) grvi_text_append_double(&text, v->f64);
        else grvi_text_printf(&text, "%g", v->f64);
        break;
    case GRV_BATCH_STRING:
        GRV_TRY_GOTO(grvi_argument_content(w, v, &data));
        grvi_text_append(&text, data);
        break;
    case GRV_BATCH_FILE:
        GRV_TRY_GOTO(grvi_argument_content(w, v, &data));
        /* by number, so that two files of one name both have their place */
        grvi_text_printf(&text, "%d", number);
        GRV_TRY_GOTO(grvi_text_status(&text));
        GRV_TRY_GOTO(grvi_fs_join(folder, text.data, &path));
        GRV_TRY_GOTO(grvi_fs_make_directory(path));
        grvi_text_printf(&text, "/%s", v->text);
        GRV_TRY_GOTO(grvi_text_status(&text));
        grv_free(path);
        path = NULL;
        GRV_TRY_GOTO(grvi_fs_join(folder, text.data, &path));
        GRV_TRY_GOTO(grvi_fs_write_atomic(path, data, v->n_bytes, false));
        break;
    default: GRV_FAIL_GOTO(GRV_E_ARG, "argument %d: a program takes numbers, strings and files", number);
    }
    GRV_TRY_GOTO(grvi_text_status(&text));
    *out = text.data;
    text = (grvi_text){0};
done:
    grv_free(path);
    grvi_text_fini(&text);
    return status;
}

static grv_status take_output(grvi_worker *w, const char *folder, const char *name, grvi_text *values)
{
    char *path = NULL, *owned = NULL;
    grvi_wire_value wire;
    GRV_TRY(grvi_fs_join(folder, name, &path));
    const grv_batch_value value = grv_batch_file(path);
    grv_status status = grvi_value_pack(w->blobs, &value, false, &wire, &owned);
    if (status == GRV_E_NOT_FOUND) status = grvi_fail(GRV_E_NOT_FOUND, __FILE__, __LINE__, __func__, "it made no file '%s'", name);
    if (status == GRV_OK) grvi_put_value(values, &wire);
    grv_free(owned);
    grv_free(path);
    return status;
}

typedef struct program_call {
    char *folder, **argv, *texts[GRV_BATCH_MAX_VALUES], *outputs[GRV_BATCH_MAX_VALUES];
} program_call;

/* Before a program of several ranks, or where it says {srun}: what starts it on the nodes of this worker's allocation. */
static grv_status launcher(const grvi_worker_settings *s, char **argv, int *n)
{
    const struct {
        const char *option;
        int value;
    } options[] = {{"--nodes", s->nodes}, {"--ntasks", s->ranks}, {"--cpus-per-task", s->cores > 0 ? s->cores : 1}};
    if (s->nodes == 0) return GRV_OK;
    GRV_TRY(grvi_strdup("srun", &argv[(*n)++]));
    GRV_TRY(grvi_strdup("--quiet", &argv[(*n)++])); /* what it says about waiting is not the task's */
    for (int i = 0; i < 3; i++) {
        grvi_text text = {0};
        grvi_text_printf(&text, "%s=%d", options[i].option, options[i].value);
        GRV_TRY(grvi_text_status(&text));
        argv[(*n)++] = text.data;
    }
    return GRV_OK;
}

static grv_status prepare(grvi_worker *w, const grvi_function *f, int64_t task, int64_t attempt, const grvi_wire_value *args, int n_args,
                          program_call *call)
{
    grvi_text folder = {0};
    int n = 0, place = 0;
    grvi_text_printf(&folder, "%s/workers/%d/scratch/%lld.%lld", w->folder, w->number, (long long)task, (long long)attempt);
    GRV_TRY(grvi_text_status(&folder));
    call->folder = folder.data;
    GRV_TRY(grvi_fs_make_directory(call->folder));
    for (int i = 0; i < n_args; i++) GRV_TRY(argument_text(w, &args[i], i, call->folder, &call->texts[i]));
    GRV_TRY(GRVI_CALLOC(&call->argv, MAX_LAUNCHER + f->n_argv + 1));
    while (place < f->n_argv && strcmp(f->argv[place], "{srun}") != 0) place++;
    const bool has_place = place < f->n_argv;
    for (int i = 0; i < f->n_argv; i++) {
        if (i == (has_place ? place : 0)) GRV_TRY(launcher(&w->settings, call->argv, &n));
        if (!has_place || i != place) GRV_TRY(substitute(f->argv[i], n_args, call->texts, &call->argv[n++]));
    }
    for (int i = 0; i < f->n_outputs; i++) {
        GRV_TRY(substitute(f->outputs[i], n_args, call->texts, &call->outputs[i]));
        GRV_TRY(grvi_kv_check_key(call->outputs[i]));
    }
    return GRV_OK;
}

static void finish(const grvi_function *f, program_call *call)
{
    for (int i = 0; i < MAX_LAUNCHER + f->n_argv && call->argv != NULL; i++) grv_free(call->argv[i]);
    for (int i = 0; i < GRV_BATCH_MAX_VALUES; i++) {
        grv_free(call->texts[i]);
        grv_free(call->outputs[i]);
    }
    if (call->folder != NULL && grvi_fs_remove_tree(call->folder) != GRV_OK) (void)fprintf(stderr, "%s\n", grv_error_message());
    grv_free(call->argv);
    grv_free(call->folder);
}

/* How it ended, if not well, with the last that it printed. */
static grv_status check_end(const grvi_worker *w, const char *program, int code, int64_t output_begin)
{
    char line[512];
    grvi_fs_last_line(w->output, output_begin, line, sizeof line);
    const char *const colon = line[0] != '\0' ? ": " : "";
    GRV_CHECK(!grvi_worker_was_over_memory(w), GRV_E_NOMEM, "%s held more than its limit of %lld bytes (control group)", program,
              (long long)w->settings.memory);
    GRV_CHECK(!WIFSIGNALED(code), GRV_E_ARG, "%s crashed: signal %d, %s%s%s", program, WTERMSIG(code), strsignal(WTERMSIG(code)), colon, line);
    GRV_CHECK(WEXITSTATUS(code) == 0, GRV_E_ARG, "%s ended with exit code %d%s%s", program, WEXITSTATUS(code), colon, line);
    return GRV_OK;
}

grv_status grvi_task_program_run(grvi_worker *w, const grvi_function *f, int64_t task, int64_t attempt, const grvi_wire_value *args, int n_args,
                                 grvi_text *values, int64_t *n_values)
{
    int code = 0;
    program_call call = {0};
    const int64_t output_begin = lseek(w->output, 0, SEEK_END);
    grv_status status = prepare(w, f, task, attempt, args, n_args, &call);
    if (status == GRV_OK) status = grvi_spawn_and_wait(w, call.argv, call.folder, w->output, &code);
    if (status == GRV_OK && WIFSIGNALED(code) && WTERMSIG(code) == SIGTERM) grvi_sleep(0.2); /* the supervisor may be told to go, too */
    if (status == GRV_OK) status = check_end(w, call.argv[0], code, output_begin);
    for (int i = 0; i < f->n_outputs && status == GRV_OK; i++) {
        status = take_output(w, call.folder, call.outputs[i], values);
        (*n_values)++;
    }
    finish(f, &call);
    return status;
}
