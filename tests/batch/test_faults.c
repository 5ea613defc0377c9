/* The batch engine on local workers: whatever crashes, hangs, is killed, finds no room or talks nonsense. The same on Slurm: slurm_test.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "batch_fixture.h"

/* Each task's result is its own number, and there is one. */
static void expect_numbers(grv_batch *batch, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        grv_batch_value value;
        ok(grv_batch_fetch(batch, first + i, 0, &value));
        assert_int_equal(value.i64, first + i);
    }
    assert_int_equal(grv_batch_counts_get(batch).n[GRV_BATCH_DONE], n);
}

static int attempts_of(grv_batch *batch, int64_t task)
{
    grv_batch_task info;
    ok(grv_batch_task_get(batch, task, &info));
    return info.attempts;
}

static void test_crashes(void **state)
{
    (void)state;
    grv_batch *batch = open_job(fresh_folder(), NULL);
    const grv_batch_function fragile = function_of(batch, "fragile"),
                             square = function_of(batch, "square");
    int64_t healed[4], dead = 0, after = 0, other = 0;
    grv_batch_value value;
    for (int64_t way = 0; way < 4; way++) {
        const grv_batch_value args[] = {grv_batch_i64(7 + way), grv_batch_i64(2),
                                        grv_batch_i64(way)};
        ok(grv_batch_exec(batch, fragile, args, 3, &healed[way]));
    }
    const grv_batch_value args[] = {grv_batch_i64(1), grv_batch_i64(99), grv_batch_i64(0)},
                          nine = grv_batch_f64(9);
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

/* A worker is killed: the program that it ran ends with it, so that nobody writes beside the next attempt. */
static void test_program_of_killed_worker(void **state)
{
    (void)state;
    char script[768], note[128];
    long program = 0, worker = 0;
    grv_batch_params params = quick();
    params.max_attempts = 1;
    (void)snprintf(note, sizeof note, "%s/note", root);
    (void)snprintf(script, sizeof script,
                   "echo on its way; read -r a b c d e f rest < /proc/self/stat; echo $$ $f > "
                   "'%s.new'; mv '%s.new' '%s'; sleep 60",
                   note, note, note);
    const char *const argv[] = {"sh", "-c", script};
    grv_batch *batch = open_job(fresh_folder(), &params);
    grv_batch_function shell = 0;
    int64_t task = 0;
    ok(grv_batch_program(batch, argv, 3, NULL, 0, &shell));
    ok(grv_batch_exec(batch, shell, NULL, 0, &task));
    const double begin = grv_clock_seconds();
    while (access(note, F_OK) != 0) {
        assert_int_equal(grv_batch_wait(batch, 0.05), GRV_AGAIN);
        assert_true(grv_clock_seconds() - begin < 20);
    }
    FILE *const file = fopen(note, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &program, &worker), 2);
    assert_int_equal(fclose(file), 0);
    assert_true(program > 1 && worker > 1 && program != worker && worker != getsid(0));
    assert_int_equal(kill((pid_t)worker, SIGKILL), 0);
    expect_reason(batch, task, "its worker 0 vanished (signal 9, Killed)");
    char *log = NULL;
    ok(grv_batch_log(batch, task, &log));
    assert_non_null(strstr(log, "on its way\n"));
    grv_free(log);
    while (kill((pid_t)program, 0) == 0) { /* until init has taken it */
        char path[64], text[256] = "";
        (void)snprintf(path, sizeof path, "/proc/%ld/stat", program);
        FILE *const stat = fopen(path, "r");
        if (stat != NULL && fgets(text, sizeof text, stat) != NULL && strstr(text, ") Z ") != NULL)
            program = 0;
        if (stat != NULL) (void)fclose(stat);
        if (program == 0) break;
        assert_true(grv_clock_seconds() - begin < 40);
        (void)nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
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
    for (int i = 0; i < N; i++) seconds[i] = grv_batch_f64(i % 10 == 0 ? 0.02 : 0.001);
    const int64_t first = map_one(batch, "nap", seconds, N);
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
        const struct timespec pause = {
            0, 20000000 + (long)(grv_random_bits(1, 2, (uint64_t)round) % 150000000)};
        (void)nanosleep(&pause, NULL);
        (void)kill(driver, SIGKILL);
        (void)waitpid(driver, NULL, 0);
    }
    batch = open_job(folder, NULL);
    ok(grv_batch_wait(batch, 60));
    expect_numbers(batch, first, N);
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
    char command[256];
    for (int i = 0; i < N; i++) seconds[i] = grv_batch_f64(0.02);
    const int64_t first = map_one(batch, "nap", seconds, N);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(grv_batch_wait(batch, 0.15), GRV_AGAIN);
        (void)snprintf(command, sizeof command, "pkill -KILL -f 'batch worker %s %d$'", folder,
                       2 * round);
        assert_int_equal(system(command) & 0x7f, 0);
    }
    ok(grv_batch_wait(batch, 60));
    expect_numbers(batch, first, N);
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
    char path[256];
    for (int i = 0; i < N; i++) seconds[i] = grv_batch_f64(0.02);
    const int64_t first = map_one(batch, "nap", seconds, N);
    assert_int_equal(grv_batch_wait(batch, 0.2), GRV_AGAIN);
    (void)snprintf(path, sizeof path, "%s/workers/0/outbox", folder);
    FILE *const outbox = fopen(path, "r+b");
    assert_non_null(outbox);
    /* a record of its own making, over the first ones and behind the last one */
    static const unsigned char record[] = {16, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0,
                                           0,  0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    (void)fseek(outbox, 0, SEEK_END);
    (void)fwrite(record, 1, sizeof record, outbox);
    (void)fclose(outbox);
    ok(grv_batch_wait(batch, 60));
    expect_numbers(batch, first, N);
    grv_batch_close(&batch);
}

/* A compiler that crashes fails the task with what is known about it. */
static void test_compiler_crash(void **state)
{
    (void)state;
    char path[128];
    grv_batch_params params = quick();
    params.max_attempts = 1;
    write_script("crashing-cc", "echo out of ideas >&2\nkill -SEGV $$", path, sizeof path);
    (void)setenv("CC", path, 1);
    grv_batch *batch = open_job(fresh_folder(), &params);
    int64_t task = 0;
    ok(grv_batch_exec(batch, function_of(batch, "nothing"), NULL, 0, &task));
    expect_reason(batch, task, "could not compile 'nothing' (signal 11): out of ideas");
    grv_batch_close(&batch);
    (void)unsetenv("CC");
}

/* A crash costs nobody else an attempt, and what has crashed runs again in a process that runs nothing else. */
/* What does not compile is compiled once by each worker, not by each task and attempt. */
static void test_bad_code_of_many(void **state)
{
    enum { N = 200 };
    (void)state;
    char path[128], source[128], calls[160], line[16];
    int n = 0;
    int64_t first = 0;
    grv_batch_function function = -1;
    (void)snprintf(calls, sizeof calls, "echo x >> '%s/calls'; echo no luck; exit 1", root);
    write_script("unhappy", calls, path, sizeof path);
    write_script("unhappy.c", "", source, sizeof source);
    assert_int_equal(setenv("CC", path, 1), 0);
    grv_batch *batch = open_job(fresh_folder(), NULL);
    ok(grv_batch_source(batch, "unhappy", (const char *const[]){source}, 1, NULL, &function));
    ok(grv_batch_map(batch, function, N, NULL, 0, &first));
    ok(grv_batch_wait(batch, 60));
    assert_int_equal(unsetenv("CC"), 0);
    assert_int_equal(grv_batch_counts_get(batch).n[GRV_BATCH_FAILED], N);
    expect_reason(batch, first + N - 1, "could not compile 'unhappy' (exit code 1): no luck");
    grv_batch_close(&batch);
    (void)snprintf(calls, sizeof calls, "%s/calls", root);
    FILE *const file = fopen(calls, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) n++;
    (void)fclose(file);
    assert_in_range(n, 1, 2);
}

static void test_alone(void **state)
{
    enum { N = 9, BAD = 3 };
    (void)state;
    grv_batch_params params = quick();
    params.n_workers = 1;
    grv_batch *batch = open_job(fresh_folder(), &params);
    grv_batch_value crashes[N + 1];
    int64_t process[N + 1];
    for (int i = 0; i < N; i++) crashes[i] = grv_batch_i64(i == BAD);
    const int64_t first = map_one(batch, "process", crashes, N);
    crashes[N] = grv_batch_future(first + BAD, 0); /* runs after it */
    assert_int_equal(map_one(batch, "process", crashes + N, 1), first + N);
    for (int i = 0; i <= N; i++) {
        grv_batch_value value;
        ok(grv_batch_fetch(batch, first + i, 0, &value));
        process[i] = value.i64;
        assert_int_equal(attempts_of(batch, first + i), i == BAD ? 2 : 1);
    }
    for (int i = 0; i <= N; i++)
        if (i != BAD) assert_int_not_equal(process[i], process[BAD]);
    assert_int_equal(process[0], process[1]); /* while nothing crashes, one process runs them all */
    grv_batch_close(&batch);
}

/* A worker that is stopped cannot keep its tasks' time limit: its driver does. */
static void test_hanging_worker(void **state)
{
    (void)state;
    grv_batch_params params = quick();
    params.time_limit_s = 0.5;
    grv_batch *batch = open_job(fresh_folder(), &params);
    const grv_batch_value hangs[] = {grv_batch_i64(0), grv_batch_i64(1), grv_batch_i64(0)};
    const int64_t first = map_one(batch, "stop_worker", hangs, 3);
    ok(grv_batch_wait(batch, 60));
    expect_numbers(batch, first, 3);
    assert_int_equal(attempts_of(batch, first), 1);
    assert_int_equal(attempts_of(batch, first + 1), 2);
    char *log = NULL;
    ok(grv_batch_log(batch, first + 1, &log));
    assert_non_null(strstr(log, "it told nothing until long after its task's time limit"));
    grv_free(log);
    grv_batch_close(&batch);
}

/* On a node of an allocation, whose process starts a worker anew that is killed: the worker goes on, with the task that ran in its second attempt. */
static void test_worker_started_anew(void **state)
{
    enum { N = 12 };
    (void)state;
    char path[128], outbox[256], command[256];
    grv_batch_params params = quick();
    params.n_workers = 1;
    write_script("node", "exec \"$GROVE_PROGRAM\" batch node \"$3\" \"$4\" 1 1 0", path,
                 sizeof path);
    params.worker_program = path;
    const char *const folder = fresh_folder();
    grv_batch *batch = open_job(folder, &params);
    grv_batch_value seconds[N];
    for (int i = 0; i < N; i++) seconds[i] = grv_batch_f64(0.1);
    const int64_t first = map_one(batch, "nap", seconds, N);
    (void)snprintf(outbox, sizeof outbox, "%s/workers/0/outbox", folder);
    (void)snprintf(command, sizeof command, "pkill -KILL -o -f 'batch worker %s 0 '", folder);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(grv_batch_wait(batch, 0.35), GRV_AGAIN);
        FILE *const file =
            round == 0 ? fopen(outbox, "ab") : NULL; /* it may be killed while it tells something */
        if (file != NULL) (void)fwrite("\0\377\0\0part of a rec", 1, 16, file);
        if (file != NULL) (void)fclose(file);
        assert_int_equal(system(command), 0);
    }
    ok(grv_batch_wait(batch, 60));
    expect_numbers(batch, first, N);
    int n_again = 0;
    for (int i = 0; i < N; i++) {
        grv_batch_task info;
        ok(grv_batch_task_get(batch, first + i, &info));
        assert_int_equal(info.worker, 0);
        assert_in_range(info.attempts, 1, 3);
        n_again += info.attempts - 1;
    }
    assert_in_range(n_again, 1, 2);
    grv_batch_close(&batch);
}

/* Files of workers may not grow beyond some kilobytes while the mark is there (RLIMIT_FSIZE): what a full disk does, and its owner only makes room later.
 * Compiled code is there before. */
static void limit_files(const char *mark, grv_batch_params *params, char *path, size_t size)
{
    char text[256];
    (void)snprintf(
        text, sizeof text,
        "if [ -e '%s' ]; then trap '' XFSZ; ulimit -f 64; fi\nexec \"$GROVE_PROGRAM\" \"$@\"",
        mark);
    write_script("limited", text, path, size);
    params->worker_program = path;
    grv_batch *batch = open_job(fresh_folder(), params);
    int64_t task = 0;
    ok(grv_batch_exec(batch, function_of(batch, "nothing"), NULL, 0, &task));
    ok(grv_batch_wait(batch, 60));
    grv_batch_close(&batch);
    FILE *const file = fopen(mark, "w");
    assert_non_null(file);
    (void)fclose(file);
}

static void test_full_disk(void **state)
{
    enum { N = 20, FITS = 12000, TOO_LONG = 300000 };
    (void)state;
    char mark[128], path[128];
    grv_batch_params params = quick();
    params.idle_s = 0.2;
    params.max_attempts = 8;
    (void)snprintf(mark, sizeof mark, "%s/full", root);
    limit_files(mark, &params, path, sizeof path);
    grv_batch *batch = open_job(fresh_folder(), &params);
    grv_batch_value bytes[N];
    for (int i = 0; i < N; i++) bytes[i] = grv_batch_i64(FITS + i);
    /* a few results fill the outbox: the one that finds no room, and its worker with it, are not lost */
    const int64_t first = map_one(batch, "text", bytes, N);
    ok(grv_batch_wait(batch, 60));
    int n_again = 0;
    for (int i = 0; i < N; i++) {
        grv_batch_value value;
        ok(grv_batch_fetch(batch, first + i, 0, &value));
        assert_int_equal(strlen(value.text), FITS + i);
        grv_batch_value_fini(&value);
        n_again += attempts_of(batch, first + i) > 1;
    }
    assert_in_range(n_again, 1, N - 1);
    grv_batch_close(&batch);
    /* a value that needs a file of its own, and a program's folder: the reason is told, and with room again both go well */
    params.max_attempts = 2;
    const char *const folder = fresh_folder(), *const argv[] = {"cat", "{0}"};
    grv_batch_function cat = 0;
    int64_t copy = 0, n = 0;
    batch = open_job(folder, &params);
    const grv_batch_value too_long = grv_batch_i64(TOO_LONG),
                          program = grv_batch_file(getenv("GROVE_PROGRAM"));
    const int64_t value_task = map_one(batch, "text", &too_long, 1);
    ok(grv_batch_program(batch, argv, 2, NULL, 0, &cat));
    ok(grv_batch_exec(batch, cat, &program, 1, &copy));
    expect_reason(batch, value_task, "File too large");
    expect_reason(batch, copy, "File too large");
    assert_int_equal(attempts_of(batch, value_task), 2);
    char *log = NULL;
    ok(grv_batch_log(batch, value_task, &log));
    assert_non_null(strstr(log, "xxxxxxxx")); /* as far as there was room */
    grv_free(log);
    grv_batch_close(&batch);
    assert_int_equal(unlink(mark), 0);
    (void)nanosleep(&(struct timespec){0, 600000000}, NULL); /* until the limited ones have left */
    batch = open_job(folder, &params);
    ok(grv_batch_retry(batch, -1, &n));
    assert_int_equal(n, 2);
    ok(grv_batch_wait(batch, 60));
    assert_int_equal(grv_batch_counts_get(batch).n[GRV_BATCH_DONE], 2);
    grv_batch_close(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_crashes),
                                       cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_bad_code_of_many),
                                       cmocka_unit_test(test_program_of_killed_worker),
                                       cmocka_unit_test(test_killed_drivers),
                                       cmocka_unit_test(test_killed_workers),
                                       cmocka_unit_test(test_worker_started_anew),
                                       cmocka_unit_test(test_hanging_worker),
                                       cmocka_unit_test(test_garbage),
                                       cmocka_unit_test(test_compiler_crash),
                                       cmocka_unit_test(test_full_disk)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
