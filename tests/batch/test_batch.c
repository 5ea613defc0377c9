/* The batch engine on local workers: values, dependencies, failures, drivers that come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "grove/batch.h"
#include "grove/core.h"

static char root[64];
static int n_folders;

static void ok(grv_status status)
{
    if (status != GRV_OK) fail_msg("%s", grv_error_trace());
}

static const char *fresh_folder(void)
{
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/job %d", root, n_folders++);
    return path;
}

static grv_batch_params quick(void)
{
    grv_batch_params p = grv_batch_params_default();
    p.n_workers = 2;
    p.idle_s = 1;
    return p;
}

static grv_batch *open_job(const char *folder, const grv_batch_params *params)
{
    grv_batch *batch = NULL;
    const grv_batch_params p = quick();
    ok(grv_batch_open(folder, params != NULL ? params : &p, &batch));
    return batch;
}

static grv_batch_function function_of(grv_batch *batch, const char *name)
{
    const char *const sources[] = {GRVI_TEST_SOURCE_DIR "/tests/batch/tasks.c"};
    grv_batch_function function = -1;
    ok(grv_batch_source(batch, name, sources, 1, "-O1", &function));
    return function;
}

static double fetch_f64(grv_batch *batch, int64_t task)
{
    grv_batch_value value;
    ok(grv_batch_fetch(batch, task, 0, &value));
    assert_int_equal(value.kind, GRV_BATCH_F64);
    return value.f64;
}

static void test_map_and_reduce(void **state)
{
    enum { N = 1000 };
    static grv_batch_value x[N];
    (void)state;
    int64_t first = 0, total = 0, task = 0, n_seen = 0;
    grv_batch *batch = open_job(fresh_folder(), NULL);
    const grv_batch_function square = function_of(batch, "square"), add = function_of(batch, "add");
    assert_int_equal(function_of(batch, "square"), square);
    for (int i = 0; i < N; i++) x[i] = grv_batch_f64(i);
    const grv_batch_column column = {x, true};
    ok(grv_batch_map(batch, square, N, &column, 1, &first));
    ok(grv_batch_reduce(batch, add, first, N, &total));
    assert_true(fabs(fetch_f64(batch, total) - 332833500.0) < 1e-3);
    ok(grv_batch_wait(batch, 60));
    for (int i = 0; i < N; i += 37) assert_true(fabs(fetch_f64(batch, first + i) - (double)i * i) < 1e-9);
    while (grv_batch_next(batch, &task) == GRV_OK) n_seen++;
    const grv_batch_counts counts = grv_batch_counts_get(batch);
    assert_int_equal(n_seen, counts.n_tasks);
    assert_int_equal(counts.n[GRV_BATCH_DONE], 2 * N - 1);
    char *log = NULL;
    ok(grv_batch_log(batch, first + 3, &log));
    assert_non_null(strstr(log, "squaring 3\n"));
    assert_null(strstr(log, "squaring 4\n"));
    grv_free(log);
    grv_batch_close(&batch);
}

static void test_values(void **state)
{
    (void)state;
    static float field[100000];
    char path[256];
    grv_batch_value shared, value;
    int64_t task = 0;
    const int64_t shape[] = {100, 1000};
    const char *const folder = fresh_folder();
    grv_batch *batch = open_job(folder, NULL);
    const grv_batch_function echo = function_of(batch, "echo");
    for (int i = 0; i < 100000; i++) field[i] = (float)i;
    (void)snprintf(path, sizeof path, "%s/a 'file'\nof two lines", root);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("content", file);
    (void)fclose(file);
    const grv_batch_value tensor = grv_batch_tensor(GRV_STORE_F32, 2, shape, field);
    ok(grv_batch_broadcast(batch, &tensor, &shared));
    const grv_batch_value args[] = {grv_batch_i64(INT64_MIN), grv_batch_f64(-0.0), grv_batch_string("a \"b\" $c\n'd' \\"), shared,
                                    grv_batch_file(path)};
    ok(grv_batch_exec(batch, echo, args, 5, &task));
    ok(grv_batch_fetch(batch, task, 0, &value));
    assert_int_equal(value.i64, INT64_MIN);
    ok(grv_batch_fetch(batch, task, 1, &value));
    assert_true(signbit(value.f64));
    ok(grv_batch_fetch(batch, task, 2, &value));
    assert_string_equal(value.text, args[2].text);
    grv_batch_value_fini(&value);
    ok(grv_batch_fetch(batch, task, 3, &value));
    assert_int_equal(value.rank, 2);
    assert_int_equal(value.shape[1], 1000);
    assert_memory_equal(value.data, field, sizeof field);
    grv_batch_value_fini(&value);
    ok(grv_batch_fetch(batch, task, 4, &value));
    assert_string_equal(value.text, "a 'file'\nof two lines");
    assert_int_equal(value.n_bytes, 7);
    assert_memory_equal(value.data, "content", 7);
    grv_batch_value_fini(&value);
    assert_int_equal(grv_batch_fetch(batch, task, 5, &value), GRV_E_ARG);
    /* wrong arguments fail the task with a message */
    ok(grv_batch_exec(batch, echo, args + 2, 3, &task));
    assert_int_equal(grv_batch_fetch(batch, task, 0, &value), GRV_E_NOT_FOUND);
    assert_non_null(strstr(grv_error_message(), "argument 0 is a string, a whole number is asked for"));
    struct stat info;
    assert_int_equal(stat(folder, &info), 0);
    assert_int_equal(info.st_mode & 077, 0);
    grv_batch_close(&batch);
}

static void test_crashes(void **state)
{
    (void)state;
    grv_batch *batch = open_job(fresh_folder(), NULL);
    const grv_batch_function fragile = function_of(batch, "fragile"), square = function_of(batch, "square");
    int64_t healed[4], dead = 0, after = 0, other = 0;
    grv_batch_value value;
    for (int64_t way = 0; way < 4; way++) {
        const grv_batch_value args[] = {grv_batch_i64(7 + way), grv_batch_i64(2), grv_batch_i64(way)};
        ok(grv_batch_exec(batch, fragile, args, 3, &healed[way]));
    }
    const grv_batch_value args[] = {grv_batch_i64(1), grv_batch_i64(99), grv_batch_i64(0)}, nine = grv_batch_f64(9);
    ok(grv_batch_exec(batch, fragile, args, 3, &dead));
    const grv_batch_value future = grv_batch_future(dead, 0);
    ok(grv_batch_exec(batch, square, &future, 1, &after));
    ok(grv_batch_exec(batch, square, &nine, 1, &other));
    ok(grv_batch_wait(batch, 60));
    for (int64_t way = 0; way < 4; way++) {
        ok(grv_batch_fetch(batch, healed[way], 0, &value));
        assert_int_equal(value.i64, 7 + way);
    }
    assert_true(fabs(fetch_f64(batch, other) - 81) < 1e-12);
    assert_int_equal(grv_batch_fetch(batch, dead, 0, &value), GRV_E_NOT_FOUND);
    assert_non_null(strstr(grv_error_message(), "signal 11"));
    assert_int_equal(grv_batch_fetch(batch, after, 0, &value), GRV_E_NOT_FOUND);
    assert_non_null(strstr(grv_error_message(), "needs result 0 of task 4, which is failed"));
    grv_batch_task info;
    ok(grv_batch_task_get(batch, dead, &info));
    assert_int_equal(info.attempts, 3);
    char *log = NULL;
    ok(grv_batch_log(batch, dead, &log));
    assert_non_null(strstr(log, "-- attempt 3"));
    assert_non_null(strstr(log, "about to crash"));
    grv_free(log);
    /* given back its attempts it fails again, and its dependant with it */
    int64_t n = 0;
    ok(grv_batch_retry(batch, after, &n));
    assert_int_equal(n, 2);
    ok(grv_batch_wait(batch, 60));
    ok(grv_batch_task_get(batch, dead, &info));
    assert_int_equal(info.attempts, 6);
    assert_int_equal(grv_batch_counts_get(batch).n[GRV_BATCH_FAILED], 2);
    grv_batch_close(&batch);
}

static void test_limits_and_cancel(void **state)
{
    (void)state;
    grv_batch_params params = quick();
    params.memory_per_task = (int64_t)200 << 20;
    params.max_attempts = 1;
    grv_batch *batch = open_job(fresh_folder(), &params);
    int64_t slow = 0, large = 0, cancelled[20];
    grv_batch_value value, seconds = grv_batch_f64(30), bytes = grv_batch_i64((int64_t)400 << 20), little = grv_batch_f64(0.3);
    ok(grv_batch_exec(batch, function_of(batch, "eat"), &bytes, 1, &large));
    ok(grv_batch_wait(batch, 60));
    assert_int_equal(grv_batch_fetch(batch, large, 0, &value), GRV_E_NOT_FOUND);
    assert_non_null(strstr(grv_error_message(), "more than its limit of 209715200 bytes"));
    grv_batch_close(&batch);
    params.memory_per_task = 0;
    params.time_limit_s = 1;
    batch = open_job(fresh_folder(), &params);
    ok(grv_batch_exec(batch, function_of(batch, "nap"), &seconds, 1, &slow));
    ok(grv_batch_wait(batch, 60));
    assert_int_equal(grv_batch_fetch(batch, slow, 0, &value), GRV_E_NOT_FOUND);
    assert_non_null(strstr(grv_error_message(), "longer than its limit of 1 s"));
    for (int i = 0; i < 20; i++) ok(grv_batch_exec(batch, function_of(batch, "nap"), &little, 1, &cancelled[i]));
    assert_int_equal(grv_batch_wait(batch, 0.1), GRV_AGAIN);
    ok(grv_batch_cancel(batch, -1));
    ok(grv_batch_wait(batch, 5));
    assert_int_equal(grv_batch_counts_get(batch).n[GRV_BATCH_CANCELLED], 20);
    int64_t n = 0;
    ok(grv_batch_retry(batch, cancelled[3], &n));
    ok(grv_batch_fetch(batch, cancelled[3], 0, &value));
    assert_int_equal(value.i64, cancelled[3]);
    grv_batch_close(&batch);
}

static void test_bad_code(void **state)
{
    (void)state;
    char path[128];
    grv_batch_params params = quick();
    params.max_attempts = 1;
    grv_batch *batch = open_job(fresh_folder(), &params);
    grv_batch_function function = 0;
    grv_batch_value value;
    int64_t task = 0;
    (void)snprintf(path, sizeof path, "%s/broken.c", root);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("#include <grove/task.h>\nGRV_TASK(broken) { return undeclared; }\n", file);
    (void)fclose(file);
    const char *const sources[] = {path};
    ok(grv_batch_source(batch, "broken", sources, 1, NULL, &function));
    ok(grv_batch_exec(batch, function, NULL, 0, &task));
    assert_int_equal(grv_batch_fetch(batch, task, 0, &value), GRV_E_NOT_FOUND);
    assert_non_null(strstr(grv_error_message(), "undeclared"));
    ok(grv_batch_exec(batch, function_of(batch, "missing"), NULL, 0, &task));
    assert_int_equal(grv_batch_fetch(batch, task, 0, &value), GRV_E_NOT_FOUND);
    assert_non_null(strstr(grv_error_message(), "no function 'missing'"));
    assert_int_equal(grv_batch_source(batch, "no name", sources, 1, NULL, &function), GRV_E_ARG);
    const char *const absent[] = {"nowhere.c"};
    assert_int_equal(grv_batch_source(batch, "f", absent, 1, NULL, &function), GRV_E_NOT_FOUND);
    grv_batch_close(&batch);
}

static void test_programs(void **state)
{
    (void)state;
    grv_batch_params params = quick();
    params.max_attempts = 2;
    grv_batch *batch = open_job(fresh_folder(), &params);
    grv_batch_function copy = 0, failing = 0;
    grv_batch_value value;
    int64_t task = 0, chained = 0, failed = 0;
    const char *const script = "printf '%s|%s|%s' \"$1\" \"$2\" \"$(cat \"$3\")\" > 'out put'; echo said", *const outputs[] = {"out put"};
    const char *const argv[] = {"sh", "-c", script, "sh", "{0}", "{1}", "{2}"}, *const none[] = {"false"};
    ok(grv_batch_program(batch, argv, 7, outputs, 1, &copy));
    ok(grv_batch_program(batch, none, 1, NULL, 0, &failing));
    const grv_batch_value args[] = {grv_batch_i64(-5), grv_batch_string("it's; $HOME \"x\"\n{0}"), grv_batch_file(GRVI_TEST_SOURCE_DIR "/LICENSE")};
    ok(grv_batch_exec(batch, copy, args, 3, &task));
    const grv_batch_value next[] = {grv_batch_f64(0.5), grv_batch_string(""), grv_batch_future(task, 0)};
    ok(grv_batch_exec(batch, copy, next, 3, &chained));
    ok(grv_batch_exec(batch, failing, NULL, 0, &failed));
    ok(grv_batch_fetch(batch, task, 0, &value));
    assert_string_equal(value.text, "out put");
    assert_memory_equal(value.data, "-5|it's; $HOME \"x\"\n{0}|", 23);
    grv_batch_value_fini(&value);
    ok(grv_batch_fetch(batch, chained, 0, &value));
    assert_memory_equal(value.data, "0.5||-5|it's", 12);
    grv_batch_value_fini(&value);
    assert_int_equal(grv_batch_fetch(batch, failed, 0, &value), GRV_E_NOT_FOUND);
    assert_non_null(strstr(grv_error_message(), "false ended with exit code 1"));
    grv_batch_close(&batch);
}

/* Drivers that are killed at any moment: the next one goes on, and in the end every task ran and has its one result. */
static void test_killed_drivers(void **state)
{
    enum { N = 400 };
    (void)state;
    const char *const folder = fresh_folder();
    grv_batch *batch = open_job(folder, NULL);
    static grv_batch_value seconds[N];
    int64_t first = 0;
    for (int i = 0; i < N; i++) seconds[i] = grv_batch_f64(i % 10 == 0 ? 0.02 : 0.001);
    const grv_batch_column column = {seconds, true};
    ok(grv_batch_map(batch, function_of(batch, "nap"), N, &column, 1, &first));
    grv_batch_close(&batch);
    for (int round = 0; round < 8; round++) {
        const pid_t driver = fork();
        assert_true(driver >= 0);
        if (driver == 0) {
            grv_batch *mine = NULL;
            const grv_batch_params p = quick();
            if (grv_batch_open(folder, &p, &mine) != GRV_OK) _exit(1);
            _exit(grv_batch_wait(mine, 60) == GRV_OK ? 0 : 2);
        }
        const struct timespec pause = {0, 20000000 + (long)(grv_random_bits(1, 2, (uint64_t)round) % 150000000)};
        (void)nanosleep(&pause, NULL);
        (void)kill(driver, SIGKILL);
        (void)waitpid(driver, NULL, 0);
    }
    batch = open_job(folder, NULL);
    ok(grv_batch_wait(batch, 60));
    for (int64_t i = 0; i < N; i++) {
        grv_batch_value value;
        ok(grv_batch_fetch(batch, first + i, 0, &value));
        assert_int_equal(value.i64, first + i);
    }
    grv_batch_close(&batch);
    ok(grv_batch_look(folder, &batch));
    assert_int_equal(grv_batch_counts_get(batch).n[GRV_BATCH_DONE], N);
    grv_batch_close(&batch);
}

/* Workers that are killed: what they ran runs again, what they had not begun is not counted against anybody. */
static void test_killed_workers(void **state)
{
    enum { N = 60 };
    (void)state;
    const char *const folder = fresh_folder();
    grv_batch *batch = open_job(folder, NULL);
    static grv_batch_value seconds[N];
    int64_t first = 0;
    char command[256];
    for (int i = 0; i < N; i++) seconds[i] = grv_batch_f64(0.02);
    const grv_batch_column column = {seconds, true};
    ok(grv_batch_map(batch, function_of(batch, "nap"), N, &column, 1, &first));
    for (int round = 0; round < 3; round++) {
        assert_int_equal(grv_batch_wait(batch, 0.15), GRV_AGAIN);
        (void)snprintf(command, sizeof command, "pkill -KILL -f 'batch worker %s %d$'", folder, 2 * round);
        assert_int_equal(system(command) & 0x7f, 0);
    }
    ok(grv_batch_wait(batch, 60));
    for (int64_t i = 0; i < N; i++) {
        grv_batch_value value;
        ok(grv_batch_fetch(batch, first + i, 0, &value));
        assert_int_equal(value.i64, first + i);
    }
    grv_batch_close(&batch);
}

/* Tasks that turn out long after a thousand short ones: nobody sits idle while another has many before it. */
static void test_balance(void **state)
{
    enum { N = 40 };
    (void)state;
    grv_batch *batch = open_job(fresh_folder(), NULL);
    const grv_batch_function nap = function_of(batch, "nap");
    grv_batch_value nothing = grv_batch_f64(0), long_one = grv_batch_f64(0.05);
    int64_t first = 0;
    ok(grv_batch_map(batch, nap, 1000, &(grv_batch_column){&nothing, false}, 1, &first));
    ok(grv_batch_wait(batch, 60));
    ok(grv_batch_map(batch, nap, N, &(grv_batch_column){&long_one, false}, 1, &first));
    ok(grv_batch_wait(batch, 60));
    int n_of[2] = {0, 0};
    for (int64_t i = 0; i < N; i++) {
        grv_batch_task info;
        ok(grv_batch_task_get(batch, first + i, &info));
        assert_int_equal(info.state, GRV_BATCH_DONE);
        n_of[info.worker % 2]++;
    }
    assert_in_range(n_of[0], N / 4, 3 * N / 4);
    grv_batch_close(&batch);
}

/* A worker that tells nonsense is put away; what it had runs elsewhere. */
static void test_garbage(void **state)
{
    enum { N = 40 };
    (void)state;
    const char *const folder = fresh_folder();
    grv_batch *batch = open_job(folder, NULL);
    static grv_batch_value seconds[N];
    int64_t first = 0;
    char path[256];
    for (int i = 0; i < N; i++) seconds[i] = grv_batch_f64(0.02);
    const grv_batch_column column = {seconds, true};
    ok(grv_batch_map(batch, function_of(batch, "nap"), N, &column, 1, &first));
    assert_int_equal(grv_batch_wait(batch, 0.2), GRV_AGAIN);
    (void)snprintf(path, sizeof path, "%s/workers/0/outbox", folder);
    FILE *const outbox = fopen(path, "r+b");
    assert_non_null(outbox);
    /* a record of its own making, over the first ones and behind the last one */
    static const unsigned char record[] = {16, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    (void)fseek(outbox, 0, SEEK_END);
    (void)fwrite(record, 1, sizeof record, outbox);
    (void)fclose(outbox);
    ok(grv_batch_wait(batch, 60));
    for (int64_t i = 0; i < N; i++) {
        grv_batch_value value;
        ok(grv_batch_fetch(batch, first + i, 0, &value));
        assert_int_equal(value.i64, first + i);
    }
    grv_batch_close(&batch);
}

/* A compiler that crashes fails the task with what is known about it. */
static void test_compiler_crash(void **state)
{
    (void)state;
    char path[128];
    grv_batch_params params = quick();
    params.max_attempts = 1;
    (void)snprintf(path, sizeof path, "%s/crashing-cc", root);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("#!/bin/sh\necho out of ideas >&2\nkill -SEGV $$\n", file);
    (void)fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
    (void)setenv("CC", path, 1);
    grv_batch *batch = open_job(fresh_folder(), &params);
    grv_batch_value value;
    int64_t task = 0;
    ok(grv_batch_exec(batch, function_of(batch, "nothing"), NULL, 0, &task));
    assert_int_equal(grv_batch_fetch(batch, task, 0, &value), GRV_E_NOT_FOUND);
    assert_non_null(strstr(grv_error_message(), "could not compile 'nothing' (signal 11): out of ideas"));
    grv_batch_close(&batch);
    (void)unsetenv("CC");
}

static void test_misuse(void **state)
{
    (void)state;
    const char *const folder = fresh_folder();
    grv_batch *batch = NULL, *second = NULL;
    int64_t task = 0;
    assert_int_equal(grv_batch_look(folder, &batch), GRV_E_NOT_FOUND);
    batch = open_job(folder, NULL);
    assert_int_equal(grv_batch_open(folder, NULL, &second), GRV_E_EXISTS);
    ok(grv_batch_look(folder, &second));
    assert_int_equal(grv_batch_exec(second, 0, NULL, 0, &task), GRV_E_ARG);
    grv_batch_close(&second);
    assert_int_equal(grv_batch_exec(batch, 0, NULL, 0, &task), GRV_E_ARG);
    assert_int_equal(grv_batch_clean(folder), GRV_E_EXISTS);
    const grv_batch_value future = grv_batch_future(0, 0);
    assert_int_equal(grv_batch_exec(batch, function_of(batch, "square"), &future, 1, &task), GRV_E_ARG);
    grv_batch_close(&batch);
    ok(grv_batch_clean(folder));
    assert_int_equal(access(folder, F_OK), -1);
    assert_int_equal(grv_batch_clean(folder), GRV_E_NOT_FOUND);
    assert_int_equal(grv_batch_clean(root), GRV_E_FORMAT);
    grv_batch_params params = quick();
    params.worker_program = "/bin/false";
    batch = open_job(folder, &params);
    const grv_batch_value one = grv_batch_f64(1);
    ok(grv_batch_exec(batch, function_of(batch, "square"), &one, 1, &task));
    assert_int_equal(grv_batch_wait(batch, 30), GRV_E_IO);
    assert_non_null(strstr(grv_error_message(), "could not begin"));
    grv_batch_close(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_and_reduce), cmocka_unit_test(test_values),         cmocka_unit_test(test_crashes),
        cmocka_unit_test(test_limits_and_cancel), cmocka_unit_test(test_bad_code),    cmocka_unit_test(test_programs),
        cmocka_unit_test(test_balance), cmocka_unit_test(test_garbage), cmocka_unit_test(test_compiler_crash), cmocka_unit_test(test_killed_drivers), cmocka_unit_test(test_killed_workers), cmocka_unit_test(test_misuse)};
    (void)snprintf(root, sizeof root, "/tmp/grove-batch-XXXXXX");
    if (mkdtemp(root) == NULL) return 1;
    (void)setenv("XDG_CACHE_HOME", root, 1);
    (void)setenv("ASAN_OPTIONS", "handle_segv=0:handle_abort=0", 1); /* of the workers: crashes are wanted */
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command) != 0 ? 1 : n_failed;
}
