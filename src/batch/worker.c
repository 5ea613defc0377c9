/* The supervisor of a worker. */
#define _GNU_SOURCE /* sched_setaffinity, prctl */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/worker_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

static const double look_s = 0.05;
enum { BROKEN_MOST = 3 };

grv_status grvi_worker_tell(const grvi_worker *w, const grvi_outcome_record *record, const void *values, int64_t n_bytes)
{
    grvi_text out = {0};
    const int64_t begin = grvi_record_begin(&out, GRVI_R_OUTCOME);
    grvi_put_outcome(&out, record, values, n_bytes);
    grvi_record_end(&out, begin);
    const grv_status status = grvi_records_write(w->outbox, "the worker's outbox", &out);
    grvi_text_fini(&out);
    return status;
}

/* As the scheduler calls it, if one does. */
static void put_node_name(grvi_text *out)
{
    char host[256] = "";
    const char *const node = getenv("SLURMD_NODENAME");
    if (gethostname(host, sizeof host) != 0) host[0] = '\0';
    host[sizeof host - 1] = '\0';
    grvi_put_string(out, node != NULL && node[0] != '\0' ? node : host);
}

static grv_status tell_word(const grvi_worker *w, int64_t kind)
{
    grvi_text out = {0};
    const int64_t begin = grvi_record_begin(&out, kind);
    if (kind == GRVI_R_HELLO) grvi_put_i64(&out, getpid());
    if (kind != GRVI_R_BYE) grvi_put_f64(&out, grvi_unix_time());
    if (kind == GRVI_R_HELLO) grvi_put_f64(&out, w->end_s);
    if (kind == GRVI_R_HELLO) put_node_name(&out);
    grvi_record_end(&out, begin);
    const grv_status status = grvi_records_write(w->outbox, "the worker's outbox", &out);
    grvi_text_fini(&out);
    return status;
}

static grv_status open_for_appending(const grvi_worker *w, const char *name, int *fd)
{
    char *path = NULL;
    grv_status status = GRV_OK;
    GRV_TRY_GOTO(grvi_worker_path(w->folder, w->number, name, &path));
    *fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    GRV_CHECK_GOTO(*fd >= 0, GRV_E_IO, "open %s: %s", path, strerror(errno));
done:
    grv_free(path);
    return status;
}

/* Cores number * cores .. of those that this process may use, in turn. */
static void pin(const grvi_worker *w)
{
    cpu_set_t may, set;
    if (w->settings.cores == 0 || sched_getaffinity(0, sizeof may, &may) != 0) return;
    const int n_may = CPU_COUNT(&may), n_slots = n_may / w->settings.cores;
    if (n_slots < 1) return;
    const int first = (w->number % n_slots) * w->settings.cores;
    CPU_ZERO(&set);
    for (int cpu = 0, i = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &may)) continue;
        if (i >= first && i < first + w->settings.cores) CPU_SET(cpu, &set);
        i++;
    }
    (void)sched_setaffinity(0, sizeof set, &set);
}

static int64_t read_small(const char *path, char *text, int64_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, (size_t)size - 1) : 0;
    if (fd >= 0) (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

/* Bytes that a process and those that it started hold in memory. */
static int64_t resident_bytes(pid_t pid, int depth)
{
    enum { DEEPEST = 16 };
    char path[64], text[4096], *end = text;
    long long total = 0, resident = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
    (void)read_small(path, text, sizeof text);
    if (sscanf(text, "%lld %lld", &total, &resident) != 2) return 0;
    int64_t bytes = resident * (int64_t)sysconf(_SC_PAGESIZE);
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)pid, (long)pid);
    (void)read_small(path, text, sizeof text);
    for (char *at = text; depth < DEEPEST; at = end) {
        const long child = strtol(at, &end, 10);
        if (end == at || child <= 1) break;
        bytes += resident_bytes((pid_t)child, depth + 1);
    }
    return bytes;
}

/* Was the running task cancelled? The file of cancellations is short and is read anew. */
static bool is_cancelled(const grvi_worker *w, int64_t task)
{
    bool found = false;
    char path[4096];
    grvi_record_reader reader;
    grvi_fields fields;
    int64_t kind = 0, offset = 0;
    if (snprintf(path, sizeof path, "%s/workers/%d/cancel", w->folder, w->number) >= (int)sizeof path) return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    grvi_record_reader_init(&reader, fd, 0);
    while (!found && grvi_record_next(&reader, &kind, &fields, &offset) == GRV_OK) found = kind == GRVI_R_CANCEL && grvi_get_i64(&fields) == task;
    grvi_record_reader_fini(&reader);
    return found;
}

/* Kills the runner and a program that it started. */
static void stop_runner(const grvi_worker *w, pid_t runner)
{
    const int64_t program = atomic_load(&w->page->program);
    (void)kill(runner, SIGKILL);
    if (program > 1) (void)kill(-(pid_t)program, SIGKILL);
}

/* Watches a runner until it ends; why: what it was stopped for, if it was. Returns the status of wait(2). */
static int watch_runner(const grvi_worker *w, pid_t runner, grvi_outcome *why)
{
    int ended = 0;
    double looked = 0;
    *why = GRVI_OUTCOME_CRASHED;
    for (;;) {
        if (atomic_load(&w->page->has_to_go) == 1 && tell_word(w, GRVI_R_LEAVING) == GRV_OK) atomic_store(&w->page->has_to_go, 2);
        const pid_t got = waitpid(runner, &ended, WNOHANG);
        if (got == runner) return ended;
        const int64_t task = atomic_load(&w->page->task), program = atomic_load(&w->page->program);
        if (task >= 0 && *why == GRVI_OUTCOME_CRASHED) {
            const double seconds = grvi_unix_time() - atomic_load(&w->page->start);
            if (w->settings.time_limit_s > 0 && seconds > w->settings.time_limit_s) *why = GRVI_OUTCOME_TIMEOUT;
            else if (w->settings.memory > 0 && !atomic_load(&w->page->in_group) &&
                     resident_bytes(program > 1 ? (pid_t)program : runner, 0) > w->settings.memory) *why = GRVI_OUTCOME_MEMORY;
            else if (grv_clock_seconds() - looked > 4 * look_s && is_cancelled(w, task)) *why = GRVI_OUTCOME_CANCELLED;
            if (grv_clock_seconds() - looked > 4 * look_s) looked = grv_clock_seconds();
            if (*why != GRVI_OUTCOME_CRASHED) stop_runner(w, runner);
        }
        grvi_sleep(look_s);
    }
}

bool grvi_worker_was_over_memory(const grvi_worker *w)
{
    const int64_t n = grvi_memory_group_kills(&w->memory);
    return n > atomic_exchange(&w->page->memory_kills, n);
}

/* Tells how the task ended that the runner died with. */
static grv_status tell_death(const grvi_worker *w, int ended, grvi_outcome why)
{
    char reason[256];
    if (why == GRVI_OUTCOME_CRASHED && atomic_load(&w->page->has_to_go) != 0) why = GRVI_OUTCOME_RETURNED;
    const int64_t task = atomic_load(&w->page->task), program = atomic_load(&w->page->program);
    if (program > 1) (void)kill(-(pid_t)program, SIGKILL);
    if (task < 0) return GRV_OK;
    const bool by_kernel = why == GRVI_OUTCOME_CRASHED && grvi_worker_was_over_memory(w);
    if (by_kernel) why = GRVI_OUTCOME_MEMORY;
    if (why == GRVI_OUTCOME_TIMEOUT) (void)snprintf(reason, sizeof reason, "it ran longer than its limit of %g s", w->settings.time_limit_s);
    else if (why == GRVI_OUTCOME_MEMORY)
        (void)snprintf(reason, sizeof reason, "it held more than its limit of %lld bytes (%s)", (long long)w->settings.memory,
                       by_kernel ? "control group" : "resident memory, watched");
    else if (why == GRVI_OUTCOME_CANCELLED) (void)snprintf(reason, sizeof reason, "it was cancelled");
    else if (WIFSIGNALED(ended)) (void)snprintf(reason, sizeof reason, "it crashed: signal %d, %s", WTERMSIG(ended), strsignal(WTERMSIG(ended)));
    else (void)snprintf(reason, sizeof reason, "it ended its process with exit code %d", WEXITSTATUS(ended));
    const grvi_outcome_record r = {.task = task, .attempt = atomic_load(&w->page->attempt), .worker = w->number, .outcome = why,
                                   .start = atomic_load(&w->page->start), .end = grvi_unix_time(), .log_begin = atomic_load(&w->page->log_begin),
                                   .log_end = lseek(w->output, 0, SEEK_END), .reason = reason};
    atomic_store(&w->page->task, -1);
    return grvi_worker_tell(w, &r, NULL, 0);
}

/* the page of the worker that this process is */
static grvi_shared_page *own_page;

static void note_sigterm(int signal)
{
    int never = 0;
    (void)signal;
    (void)atomic_compare_exchange_strong(&own_page->has_to_go, &never, 1);
}

static void listen_to_sigterm(grvi_shared_page *page)
{
    const struct sigaction action = {.sa_handler = note_sigterm, .sa_flags = SA_RESTART};
    own_page = page;
    (void)sigaction(SIGTERM, &action, NULL);
}

static grv_status supervise(grvi_worker *w)
{
    int n_broken = 0;
    for (;;) {
        grvi_outcome why = GRVI_OUTCOME_CRASHED;
        atomic_store(&w->page->task, -1);
        atomic_store(&w->page->program, 0);
        const pid_t supervisor = getpid(), runner = fork();
        GRV_CHECK(runner >= 0, GRV_E_NOMEM, "fork: %s", strerror(errno));
        if (runner == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)signal(SIGTERM, SIG_IGN); /* the task goes on; a scheduler may signal all processes */
            atomic_store(&w->page->in_group, grvi_memory_group_join(&w->memory)); /* if not, it is watched */
            if (getppid() != supervisor) _exit(GRVI_EXIT_BROKEN);
            (void)dup2(w->output, 1);
            (void)dup2(w->output, 2);
            const struct rlimit no_core = {0, 0};
            (void)setrlimit(RLIMIT_CORE, &no_core);
            _exit(grvi_run_tasks(w));
        }
        const int ended = watch_runner(w, runner, &why);
        if (WIFEXITED(ended) && atomic_load(&w->page->task) < 0) {
            if (WEXITSTATUS(ended) == GRVI_EXIT_IDLE) return tell_word(w, GRVI_R_BYE);
            if (WEXITSTATUS(ended) == GRVI_EXIT_FRESH) continue;
            if (++n_broken >= BROKEN_MOST) return tell_word(w, GRVI_R_BYE);
        }
        GRV_TRY(tell_death(w, ended, why));
    }
}

grv_status grv_batch_worker(const char *folder, int number, double end_s, const char *before)
{
    grv_status status = GRV_OK;
    grvi_text path = {0};
    grvi_worker w = {.folder = folder, .number = number, .end_s = end_s, .outbox = -1, .output = -1};
    GRV_TRY_GOTO(grvi_settings_read(folder, number, &w.settings));
    GRV_TRY_GOTO(open_for_appending(&w, "outbox", &w.outbox));
    GRV_TRY_GOTO(open_for_appending(&w, "output", &w.output));
    grvi_text_printf(&path, "%s/blobs", folder);
    GRV_TRY_GOTO(grvi_text_status(&path));
    GRV_TRY_GOTO(grvi_kv_fs_create(path.data, true, GRV_STORE_SYNC_NONE, &w.blobs));
    w.page = mmap(NULL, sizeof *w.page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    GRV_CHECK_GOTO(w.page != MAP_FAILED, GRV_E_NOMEM, "a shared page: %s", strerror(errno));
    listen_to_sigterm(w.page);
    pin(&w);
    if (w.settings.memory > 0) grvi_memory_group_create(w.settings.memory, &w.memory);
    if (before != NULL) GRV_TRY_GOTO(grvi_worker_resume(&w, before));
    GRV_TRY_GOTO(tell_word(&w, GRVI_R_HELLO));
    /* what srun started for the process before ends with the allocation only */
    GRV_TRY_GOTO(before != NULL && w.settings.nodes > 0 ? tell_word(&w, GRVI_R_BYE) : supervise(&w));
done:
    if (w.page != NULL && w.page != MAP_FAILED) (void)munmap(w.page, sizeof *w.page);
    grvi_memory_group_remove(&w.memory);
    grvi_kv_destroy(&w.blobs);
    if (w.outbox >= 0) (void)close(w.outbox);
    if (w.output >= 0) (void)close(w.output);
    grvi_text_fini(&path);
    return status;
}
