/* A C function as simulator: GRV_TASK of include/grove/task.h, compiled and loaded as the batch engine does it. It runs in a child process, so that a crash,
 * an exit, what it prints and the folder that it stands in are its own; the two fields come back through memory that both processes see. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "batch/task_here.h"
#include "core/alloc.h"
#include "core/text.h"
#include "data/campaign_impl.h"
#include "grove/core.h"
#include "grove/task.h"
#include "store/npy.h"

enum { N_FIELDS = 2 };
static const char *const field_names[N_FIELDS] = {"input", "target"};

/* What both processes see, before the fields. */
typedef struct outcome {
    bool has_returned, failed;
    int n_returned;
    char reason[1024];
} outcome;

/* A call of the function: what the calls of task.h work on. */
typedef struct running {
    grv_task base;
    const grvi_campaign *campaign;
    int64_t sample;
    char (*texts)[GRV_SAMPLING_TEXT_BYTES]; /* [values of the sample] */
    outcome *outcome;
    void *fields[N_FIELDS];
} running;

/* ---- the calls of task.h ---- */

static void fail(running *r, const char *text)
{
    outcome *const o = r->outcome;
    if (!o->failed) (void)snprintf(o->reason, sizeof o->reason, "%s", text);
    o->failed = true;
}

static int n_arguments(grv_task *task)
{
    return grv_sampling_n_parameters(((running *)task)->campaign->sampling);
}

static int find(grv_task *task, const char *name)
{
    running *const r = (running *)task;
    char text[256];
    const char *nearest = NULL;
    const int i = grvi_sample_find_value(r->campaign, name != NULL ? name : "", &nearest);
    if (i >= 0) return i;
    (void)snprintf(text, sizeof text, "'%.80s' is no parameter%s%s%s", name != NULL ? name : "",
                   nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                   nearest != NULL ? "'?" : "");
    fail(r, text);
    return -1;
}

static const char *get_string(grv_task *task, int i)
{
    running *const r = (running *)task;
    char text[128];
    if (i >= 0 && i < grvi_sample_n_values(r->campaign)) return r->texts[i];
    (void)snprintf(text, sizeof text, "parameter %d is asked for, the campaign has %d", i,
                   n_arguments(task));
    fail(r, text);
    return "";
}

static void fail_kind(grv_task *task, int i, const char *wanted)
{
    running *const r = (running *)task;
    char text[GRV_SAMPLING_TEXT_BYTES + 128];
    const char *const found = get_string(task, i); /* fails if there is none */
    if (r->outcome->failed) return;
    (void)snprintf(text, sizeof text, "parameter '%s' is '%s', %s is asked for",
                   grvi_sample_value_name(r->campaign, i), found, wanted);
    fail(r, text);
}

static double get_f64(grv_task *task, int i)
{
    char *end = NULL;
    const char *const text = get_string(task, i);
    const double x = strtod(text, &end);
    if (end != text && *end == '\0') return x;
    fail_kind(task, i, "a number");
    return 0;
}

static int64_t get_i64(grv_task *task, int i)
{
    char *end = NULL;
    const char *const text = get_string(task, i);
    errno = 0;
    const long long whole = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0) return whole;
    const double x = strtod(text, &end); /* as 1e6 */
    if (end != text && *end == '\0' && fabs(x) < 0x1p53 && !(floor(x) < x)) return (int64_t)x;
    fail_kind(task, i, "a whole number");
    return 0;
}

static const char *get_file(grv_task *task, int i)
{
    fail_kind(task, i, "a file");
    return "";
}

static const void *get_tensor(grv_task *task, int i, int type, int *rank, const int64_t **shape)
{
    static const int64_t no_shape[1];
    (void)type;
    if (rank != NULL) *rank = 0;
    if (shape != NULL) *shape = no_shape;
    fail_kind(task, i, "a tensor");
    return NULL;
}

static void return_tensor(grv_task *task, int type, int rank, const int64_t *shape,
                          const void *data)
{
    running *const r = (running *)task;
    int64_t wanted[GRV_DATASET_MAX_AXES + 1];
    grvi_npy found = {.type = (grv_store_type)type, .rank = rank};
    const int i = r->outcome->n_returned++;
    if (i >= N_FIELDS) return; /* told when it has ended, with their number */
    if (type != GRV_TASK_F32 && type != GRV_TASK_F64) {
        char text[128];
        (void)snprintf(text, sizeof text,
                       "%s: GRV_TASK_F32 or GRV_TASK_F64 expected, type %d found", field_names[i],
                       type);
        fail(r, text);
        return;
    }
    if (rank < 0 || rank > GRVI_NPY_MAX_RANK || data == NULL) {
        fail(r, "a tensor is returned without data, or with a number of axes that cannot be");
        return;
    }
    memcpy(found.shape, shape, sizeof *shape * (size_t)rank);
    const grv_campaign_config *const config = &r->campaign->config;
    const int n = grvi_simulator_shape(i == 0 ? &config->input : &config->target, wanted);
    if (grvi_array_take(field_names[i], &found, data, n, wanted,
                        grv_dataset_get_desc(r->campaign->data)->type, r->fields[i]) != GRV_OK)
        fail(r, grv_error_message());
}

static void return_other(running *r)
{
    fail(r, "a simulator returns tensors: its input, then its target (grv_task_return_tensor)");
}

static void return_i64(grv_task *task, int64_t x)
{
    (void)x;
    return_other((running *)task);
}

static void return_f64(grv_task *task, double x)
{
    (void)x;
    return_other((running *)task);
}

static void return_text(grv_task *task, const char *text)
{
    (void)text;
    return_other((running *)task);
}

static void fail_task(grv_task *task, const char *message)
{
    fail((running *)task, message != NULL ? message : "it failed");
}

static int64_t number(grv_task *task)
{
    return ((running *)task)->sample;
}

/* Whoever runs samples again does not say so. */
static int attempt(grv_task *task)
{
    (void)task;
    return 1;
}

static const grv_task_calls calls = {
    .version = 2,
    .n_arguments = n_arguments,
    .get_i64 = get_i64,
    .get_f64 = get_f64,
    .get_string = get_string,
    .get_file = get_file,
    .get_tensor = get_tensor,
    .return_i64 = return_i64,
    .return_f64 = return_f64,
    .return_string = return_text,
    .return_file = return_text,
    .return_tensor = return_tensor,
    .fail = fail_task,
    .number = number,
    .attempt = attempt,
    .find = find,
};

/* ---- one sample ---- */

/* In the child process. */
static void call(running *r, const char *folder)
{
    const int nothing = open("/dev/null", O_RDONLY);
    for (int i = 1; i < NSIG; i++) (void)signal(i, SIG_DFL); /* as in a program of its own */
    /* results of grove go to stdout, what this prints does not */
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(2, 1) < 0 || chdir(folder) != 0) {
        (void)fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        _exit(EXIT_FAILURE);
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* what was printed is there after a crash, too */
    r->campaign->function(&r->base);
    (void)fflush(NULL);
    r->outcome->has_returned = true;
    _exit(EXIT_SUCCESS);
}

static grv_status run(running *r, const char *folder)
{
    const char *const name = r->campaign->config.function;
    const outcome *const o = r->outcome;
    (void)fflush(NULL);
    const int64_t printed = grvi_simulator_printed();
    const pid_t pid = fork();
    if (pid == 0) call(r, folder);
    GRV_CHECK(pid > 0, GRV_E_NOMEM, "fork: %s", strerror(errno));
    GRV_TRY(grvi_simulator_wait(name, pid, printed));
    GRV_CHECK(o->has_returned, GRV_E_NUMERIC, "%s ended its process with exit code 0", name);
    GRV_CHECK(!o->failed, GRV_E_NUMERIC, "%s: %s", name, o->reason);
    GRV_CHECK(o->n_returned == N_FIELDS, GRV_E_NUMERIC,
              "%s: two tensors expected, the input and then the target; it returned %d", name,
              o->n_returned);
    return GRV_OK;
}

static int64_t bytes_of(const grvi_campaign *c, const grv_campaign_field *field)
{
    int64_t shape[GRV_DATASET_MAX_AXES + 1];
    const int rank = grvi_simulator_shape(field, shape);
    int64_t n = grv_store_type_bytes(grv_dataset_get_desc(c->data)->type);
    for (int i = 0; i < rank; i++) n *= shape[i]; /* it is in memory already */
    return n;
}

static grv_status make(grvi_campaign *c, int64_t sample, const char *folder, void *input,
                       void *target)
{
    grv_status status = GRV_OK;
    const int64_t n_outcome = grvi_round_up((int64_t)sizeof(outcome), 64),
                  n_input = grvi_round_up(bytes_of(c, &c->config.input), 64),
                  n = n_outcome + n_input + bytes_of(c, &c->config.target);
    running r = {.base.calls = &calls, .campaign = c, .sample = sample};
    char *const shared =
        mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    GRV_CHECK(shared != MAP_FAILED, GRV_E_NOMEM, "%lld bytes for a sample: %s", (long long)n,
              strerror(errno));
    r.outcome = (outcome *)(void *)shared;
    r.fields[0] = shared + n_outcome;
    r.fields[1] = shared + n_outcome + n_input;
    GRV_TRY_GOTO(GRVI_ALLOC(&r.texts, grvi_sample_n_values(c)));
    for (int i = 0; i < grvi_sample_n_values(c); i++) grvi_sample_value(c, sample, i, r.texts[i]);
    GRV_TRY_GOTO(grvi_simulator_link_files(c, folder));
    GRV_TRY_GOTO(run(&r, folder));
    memcpy(input, r.fields[0], (size_t)bytes_of(c, &c->config.input));
    memcpy(target, r.fields[1], (size_t)bytes_of(c, &c->config.target));
done:
    grv_free(r.texts);
    (void)munmap(shared, (size_t)n);
    return status;
}

/* ---- checks ---- */

/* Compiles it here too: what does not compile is told before anything is begun. */
static grv_status check(grvi_campaign *c, grv_log *log)
{
    grv_string_list *const sources = &c->config.simulator;
    GRV_TRY(grvi_simulator_check(c));
    for (int i = 0; i < sources->n; i++)
        GRV_TRY(grvi_campaign_make_absolute("simulator", &sources->at[i]));
    const double begin = grv_clock_seconds();
    GRV_TRY(grvi_task_here_load(c->config.function, (const char *const *)sources->at, sources->n,
                                c->config.flags, &c->function));
    grv_log_message(log, GRV_LOG_DEBUG, "function '%s' loaded in %.3f s", c->config.function,
                    grv_clock_seconds() - begin);
    return GRV_OK;
}

const grvi_simulator grvi_simulator_function = {check, grvi_simulator_describe, NULL, make};
