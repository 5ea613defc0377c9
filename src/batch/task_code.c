/* C functions of tasks: compiled once per content, flags, compiler and processor, and loaded. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/task_header.h"
#include "batch/worker_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

static const char *compiler(void)
{
    const char *const cc = getenv("CC");
    return cc != NULL && cc[0] != '\0' && strchr(cc, ' ') == NULL ? cc : "cc";
}

/* The processor, as far as a compiler may tell it apart. */
static void append_processor(grvi_text *out)
{
    const int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    char head[8192];
    const ssize_t got = fd >= 0 ? read(fd, head, sizeof head - 1) : 0;
    if (fd >= 0) (void)close(fd);
    head[got > 0 ? got : 0] = '\0';
    for (const char *const *key = (const char *const[]){"model name", "flags", NULL}; *key != NULL; key++) {
        const char *const line = strstr(head, *key);
        if (line != NULL) grvi_text_append_n(out, line, (int64_t)strcspn(line, "\n"));
    }
}

/* Folder for compiled code, which is made: the user's cache; else, or where that cannot be written (as homes on compute nodes), the job's. */
static grv_status make_cache(const grvi_worker *w, grvi_text *out)
{
    const char *const cache = getenv("XDG_CACHE_HOME"), *const home = getenv("HOME");
    if (cache != NULL && cache[0] == '/') grvi_text_printf(out, "%s/grove/tasks", cache);
    else if (home != NULL && home[0] == '/') grvi_text_printf(out, "%s/.cache/grove/tasks", home);
    GRV_TRY(grvi_text_status(out));
    if (out->n > 0 && grvi_fs_make_directory(out->data) == GRV_OK && access(out->data, W_OK) == 0) return GRV_OK;
    grv_error_clear();
    out->n = 0;
    grvi_text_printf(out, "%s/cache", w->folder);
    GRV_TRY(grvi_text_status(out));
    return grvi_fs_make_directory(out->data);
}

static grv_status write_in(const char *folder, const char *name, const void *data, int64_t n)
{
    char *path = NULL;
    GRV_TRY(grvi_fs_join(folder, name, &path));
    const grv_status status = grvi_fs_write_atomic(path, data, n, false);
    grv_free(path);
    return status;
}

static grv_status write_sources(const grvi_worker *w, const grvi_function *f, const char *folder)
{
    char *include = NULL;
    GRV_TRY(grvi_fs_join(folder, "grove", &include));
    grv_status status = grvi_fs_make_directory(include);
    if (status == GRV_OK) status = write_in(include, "task.h", grvi_task_header, grvi_task_header_bytes);
    grv_free(include);
    for (int i = 0; i < f->n_files && status == GRV_OK; i++) {
        char *data = NULL;
        status = grvi_blob_get(w->blobs, &f->files[i].blob, &data);
        if (status == GRV_OK) status = write_in(folder, f->files[i].name, data, f->files[i].blob.n_bytes);
        grv_free(data);
    }
    return status;
}

/* Splits flags at blanks; the compiler is started without a shell. */
static grv_status compile_in(grvi_worker *w, const grvi_function *f, const char *folder)
{
    enum { MAX_ARGUMENTS = 1200 };
    char *flags = NULL, **argv = NULL, *rest = NULL, *log = NULL;
    char cc[256];
    int n = 0, code = 0, log_fd = -1;
    grv_status status = GRV_OK;
    static char fixed[][32] = {"-std=gnu11", "-fPIC", "-shared", "-I.", "-o", "task.so"}, tail[][8] = {"-lm"};
    (void)snprintf(cc, sizeof cc, "%s", compiler());
    GRV_TRY_GOTO(grvi_strdup(f->flags, &flags));
    GRV_TRY_GOTO(GRVI_CALLOC(&argv, MAX_ARGUMENTS + 1));
    argv[n++] = cc;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) argv[n++] = fixed[i];
    for (int i = 0; i < f->n_files; i++) {
        const size_t length = strlen(f->files[i].name);
        if (length > 2 && strcmp(f->files[i].name + length - 2, ".c") == 0 && n < MAX_ARGUMENTS) argv[n++] = f->files[i].name;
    }
    for (char *flag = strtok_r(flags, " \t\n", &rest); flag != NULL && n < MAX_ARGUMENTS; flag = strtok_r(NULL, " \t\n", &rest)) argv[n++] = flag;
    for (size_t i = 0; i < sizeof tail / sizeof *tail; i++) argv[n++] = tail[i];
    GRV_TRY_GOTO(grvi_fs_join(folder, "compiler.log", &log));
    log_fd = open(log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    GRV_CHECK_GOTO(log_fd >= 0, GRV_E_IO, "open %s: %s", log, strerror(errno));
    GRV_TRY_GOTO(grvi_spawn_and_wait(w, argv, folder, log_fd, &code));
    if (code != 0) {
        char text[800];
        const ssize_t got = pread(log_fd, text, sizeof text - 1, 0);
        text[got > 0 ? got : 0] = '\0';
        for (char *p = text; *p != '\0'; p++)
            if (*p == '\n') *p = ' ';
        /* a compiler that crashes may do better next time */
        GRV_FAIL_GOTO(WIFSIGNALED(code) ? GRV_E_IO : GRV_E_ARG, "%s could not compile '%s' (%s %d): %s", cc, f->name, WIFSIGNALED(code) ? "signal" : "exit code",
                      WIFSIGNALED(code) ? WTERMSIG(code) : WEXITSTATUS(code), text);
    }
done:
    if (log_fd >= 0) (void)close(log_fd);
    grv_free(log);
    grv_free(argv);
    grv_free(flags);
    return status;
}

static grv_status build(grvi_worker *w, const grvi_function *f, const char *final)
{
    grvi_text aside = {0};
    grvi_text_printf(&aside, "%s.partial-%ld-%d", final, (long)getpid(), w->number);
    GRV_TRY(grvi_text_status(&aside));
    grv_status status = grvi_fs_make_directory(aside.data);
    if (status == GRV_OK) status = write_sources(w, f, aside.data);
    if (status == GRV_OK && f->kind == GRVI_FUNCTION_SOURCE) status = compile_in(w, f, aside.data);
    /* another worker may have been faster: then its result stands */
    if (status == GRV_OK && rename(aside.data, final) != 0 && errno != EEXIST && errno != ENOTEMPTY)
        status = grvi_fail(GRV_E_IO, __FILE__, __LINE__, __func__, "rename %s: %s", aside.data, strerror(errno));
    if (grvi_fs_exists(aside.data)) {
        const grv_status removed = grvi_fs_remove_tree(aside.data);
        (void)removed; /* it only takes room */
    }
    grvi_text_fini(&aside);
    return status;
}

static void make_key(const grvi_function *f, grvi_text *out)
{
    grvi_text_printf(out, "%d\n%s\n%s\n", (int)f->kind, f->flags, compiler());
    grvi_text_append_n(out, grvi_task_header, grvi_task_header_bytes);
    for (int i = 0; i < f->n_files; i++) grvi_text_printf(out, "%s %s\n", f->files[i].name, f->files[i].blob.hash);
    append_processor(out);
}

grv_status grvi_task_code_load(grvi_worker *w, const grvi_function *f, void (**call)(struct grv_task *))
{
    grv_status status = GRV_OK;
    grvi_text key = {0}, folder = {0};
    char hash[GRVI_HASH_BYTES], *object = NULL;
    make_key(f, &key);
    GRV_TRY_GOTO(grvi_text_status(&key));
    grvi_hash(key.data, key.n, hash);
    GRV_TRY_GOTO(make_cache(w, &folder));
    grvi_text_printf(&folder, "/%s", hash);
    GRV_TRY_GOTO(grvi_text_status(&folder));
    GRV_TRY_GOTO(grvi_fs_join(folder.data, f->kind == GRVI_FUNCTION_SOURCE ? "task.so" : f->files[0].name, &object));
    if (!grvi_fs_exists(object)) GRV_TRY_GOTO(build(w, f, folder.data));
    void *const handle = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    GRV_CHECK_GOTO(handle != NULL, GRV_E_ARG, "load '%s': %s", f->name, dlerror());
    void *const symbol = dlsym(handle, f->name);
    GRV_CHECK_GOTO(symbol != NULL, GRV_E_ARG, "no function '%s' in %s: is it defined by GRV_TASK(%s)?", f->name, f->files[0].name, f->name);
    memcpy((void *)call, &symbol, sizeof symbol);
done:
    grv_free(object);
    grvi_text_fini(&key);
    grvi_text_fini(&folder);
    return status;
}
