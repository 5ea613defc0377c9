/* The batch engine on local workers: values, dependencies, programs, limits. Faults are in test_faults.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "batch_fixture.h"

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
    ok(grv_batch_exec(batch, function_of(batch, "named"), args + 1, 1, &task));
    expect_reason(batch, task, "argument 'x' is asked for, arguments have names in a campaign only");
    struct stat info;
    assert_int_equal(stat(folder, &info), 0);
    assert_int_equal(info.st_mode & 077, 0);
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

/* The reason tells the last that a program printed; what a program starts counts as its memory. */
static void test_program_failures(void **state)
{
    (void)state;
    grv_batch_params params = quick();
    params.max_attempts = 1;
    params.memory_per_task = (int64_t)64 << 20;
    grv_batch *batch = open_job(fresh_folder(), &params);
    grv_batch_function shell = 0;
    grv_batch_value value;
    int64_t talks = 0, grows = 0;
    const char *const argv[] = {"sh", "-c", "{0}"};
    ok(grv_batch_program(batch, argv, 3, NULL, 0, &shell));
    const grv_batch_value talk = grv_batch_string("echo first; echo no convergence >&2; echo; exit 4");
    const grv_batch_value grow = grv_batch_string("head -c 400000000 /dev/zero | tail -c 400000000 | { sleep 1; wc -c; }; true");
    ok(grv_batch_exec(batch, shell, &talk, 1, &talks));
    ok(grv_batch_exec(batch, shell, &grow, 1, &grows));
    assert_int_equal(grv_batch_fetch(batch, talks, 0, &value), GRV_E_NOT_FOUND);
    assert_non_null(strstr(grv_error_message(), "sh ended with exit code 4: no convergence"));
    assert_int_equal(grv_batch_fetch(batch, grows, 0, &value), GRV_E_NOT_FOUND);
    if (strstr(grv_error_message(), "more than its limit") == NULL) fail_msg("%s", grv_error_message());
    ok(grv_batch_argument(batch, talks, 0, &value));
    assert_string_equal(value.text, talk.text);
    grv_batch_value_fini(&value);
    assert_int_equal(grv_batch_argument(batch, talks, 1, &value), GRV_E_ARG);
    assert_int_equal(grv_batch_argument(batch, 2, 0, &value), GRV_E_ARG);
    grv_batch_close(&batch);
}

/* Tasks that turn out long after a thousand short ones: nobody sits idle while another has many before it. */
static void test_balance(void **state)
{
    enum { N = 40 };
    (void)state;
    const char *const folder = fresh_folder();
    grv_batch *batch = open_job(folder, NULL);
    const grv_batch_function nap = function_of(batch, "nap");
    grv_batch_value nothing = grv_batch_f64(0), long_one = grv_batch_f64(0.05);
    int64_t first = 0;
    ok(grv_batch_map(batch, nap, 1000, &(grv_batch_column){&nothing, false}, 1, &first));
    ok(grv_batch_wait(batch, 60));
    ok(grv_batch_map(batch, nap, N, &(grv_batch_column){&long_one, false}, 1, &first));
    ok(grv_batch_wait(batch, 60));
    int n_of[2] = {0, 0};
    char host[256] = "";
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    for (int64_t i = 0; i < N; i++) {
        grv_batch_task info;
        ok(grv_batch_task_get(batch, first + i, &info));
        assert_int_equal(info.state, GRV_BATCH_DONE);
        n_of[info.worker % 2]++;
        assert_string_equal(info.node, host); /* of a worker that told an outcome it is known */
    }
    assert_in_range(n_of[0], N / 4, 3 * N / 4);
    grv_batch_close(&batch);
    grv_batch_task info;
    ok(grv_batch_look(folder, &batch)); /* the journal has it */
    ok(grv_batch_task_get(batch, first, &info));
    assert_string_equal(info.node, host);
    grv_batch_close(&batch);
}

/* A call of many tasks puts in all of them or none, whether a value of it is bad or its driver was killed while it wrote. */
static void test_all_or_none(void **state)
{
    enum { N = 10000 }; /* more than a record of the journal holds */
    static grv_batch_value x[N];
    (void)state;
    char journal[256];
    struct stat before, after;
    int64_t first = 0;
    const char *const folder = fresh_folder();
    const grv_batch_column column = {x, true};
    (void)snprintf(journal, sizeof journal, "%s/journal", folder);
    for (int i = 0; i < N; i++) x[i] = grv_batch_i64(i);
    grv_batch *batch = open_job(folder, NULL);
    const grv_batch_function square = function_of(batch, "square");
    x[N - 1] = grv_batch_file("/no such file");
    assert_int_equal(grv_batch_map(batch, square, N, &column, 1, &first), GRV_E_NOT_FOUND);
    assert_int_equal(grv_batch_counts_get(batch).n_tasks, 0);
    x[N - 1] = grv_batch_i64(N - 1);
    ok(grv_batch_map(batch, square, 1, &column, 1, &first));
    grv_batch_close(&batch);
    assert_int_equal(stat(journal, &before), 0);
    batch = open_job(folder, NULL);
    ok(grv_batch_map(batch, square, N, &column, 1, &first));
    grv_batch_close(&batch);
    assert_int_equal(stat(journal, &after), 0);
    batch = open_job(folder, NULL);
    assert_int_equal(grv_batch_counts_get(batch).n_tasks, N + 1);
    grv_batch_value value;
    ok(grv_batch_argument(batch, N, 0, &value));
    assert_int_equal(value.i64, N - 1);
    grv_batch_close(&batch);
    /* without the last record, or with a part of one */
    for (int64_t cut = after.st_size - 8; cut > before.st_size; cut -= (after.st_size - before.st_size) / 4) {
        assert_int_equal(truncate(journal, cut), 0);
        ok(grv_batch_look(folder, &batch));
        assert_int_equal(grv_batch_counts_get(batch).n_tasks, 1);
        grv_batch_close(&batch);
    }
    batch = open_job(folder, NULL);
    assert_int_equal(grv_batch_counts_get(batch).n_tasks, 1);
    ok(grv_batch_map(batch, square, N, &column, 1, &first));
    assert_int_equal(first, 1);
    grv_batch_close(&batch);
    ok(grv_batch_look(folder, &batch));
    assert_int_equal(grv_batch_counts_get(batch).n_tasks, N + 1);
    grv_batch_close(&batch);
}

static void put_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* What is no job is neither taken for one nor deleted; a damaged journal is not cut off. */
static void test_not_a_job(void **state)
{
    (void)state;
    char path[256];
    grv_batch *batch = NULL;
    struct stat info;
    int64_t task = 0;
    const char *const folder = fresh_folder();
    assert_int_equal(mkdir(folder, 0755), 0);
    put_file(folder, "thesis", "all of it");
    assert_int_equal(grv_batch_open(folder, NULL, &batch), GRV_E_FORMAT);
    assert_non_null(strstr(grv_error_message(), "an empty folder expected, 'thesis' found in it"));
    (void)snprintf(path, sizeof path, "%s/thesis", folder);
    assert_int_equal(unlink(path), 0);
    put_file(folder, "journal", "Dear journal");
    (void)snprintf(path, sizeof path, "%s/journal", folder);
    assert_int_equal(grv_batch_open(folder, NULL, &batch), GRV_E_FORMAT);
    assert_int_equal(grv_batch_clean(folder), GRV_E_FORMAT);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 12);
    (void)snprintf(path, sizeof path, "rm -rf '%s'", folder);
    assert_int_equal(system(path), 0);
    assert_int_equal(mkdir(folder, 0755), 0);
    batch = open_job(folder, NULL);
    assert_int_equal(stat(folder, &info), 0);
    assert_int_equal(info.st_mode & 077, 0);
    const grv_batch_value one = grv_batch_f64(1);
    ok(grv_batch_exec(batch, function_of(batch, "square"), &one, 1, &task));
    ok(grv_batch_exec(batch, function_of(batch, "square"), &one, 1, &task));
    grv_batch_close(&batch);
    (void)snprintf(path, sizeof path, "%s/journal", folder);
    FILE *const file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 50, SEEK_SET), 0);
    assert_int_equal(fputc('!', file), '!');
    assert_int_equal(fclose(file), 0);
    assert_int_equal(stat(path, &info), 0);
    const int64_t size = info.st_size;
    assert_int_equal(grv_batch_open(folder, NULL, &batch), GRV_E_FORMAT);
    assert_non_null(strstr(grv_error_message(), "damaged at byte 24"));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, size);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_map_and_reduce),   cmocka_unit_test(test_values),   cmocka_unit_test(test_limits_and_cancel),
                                       cmocka_unit_test(test_bad_code),         cmocka_unit_test(test_programs), cmocka_unit_test(test_program_failures),
                                       cmocka_unit_test(test_balance),          cmocka_unit_test(test_all_or_none), cmocka_unit_test(test_not_a_job), cmocka_unit_test(test_misuse)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
