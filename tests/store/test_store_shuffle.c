/* Shuffles follow the keys and nothing else; windows of them read what they need and nothing else. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>

#include "grove/store_tools.h"
#include "store_support.h"

enum { N = 20011, WIDTH = 3 };

static const int64_t zero[] = {0, 0};
static int64_t order[N]; /* row of the source that comes k-th */

static int64_t id_of(int64_t row)
{
    return 3 * row + 1;
}

static float value_of(int64_t row, int column)
{
    return (float)(row * 7 + column);
}

static void make_source(const char *name, int64_t n)
{
    const int64_t shape[] = {n, WIDTH}, chunk[] = {1000, 2}, id_chunk[] = {768}, id_inner[] = {64};
    grv_store *store = open_writable(in_folder(name), 1);
    grv_array *ids = NULL, *values = NULL;
    int64_t *const id = malloc((size_t)n * sizeof *id);
    float *const value = malloc((size_t)n * WIDTH * sizeof *value);
    assert_true(id != NULL && value != NULL);
    for (int64_t i = 0; i < n; i++) {
        id[i] = id_of(i);
        for (int c = 0; c < WIDTH; c++) value[i * WIDTH + c] = value_of(i, c);
    }
    grv_array_desc desc = desc_of(GRV_STORE_I64, 1, shape, id_chunk, id_inner);
    assert_ok(grv_group_create(store, "", "{\"case\": 7}"));
    assert_ok(grv_array_create(store, "id", &desc, &ids));
    assert_ok(grv_array_write(ids, zero, shape, id, NULL));
    desc = desc_of(GRV_STORE_F32, 2, shape, chunk, NULL);
    desc.attributes = "{\"unit\": \"m\"}";
    assert_ok(grv_array_create(store, "value", &desc, &values));
    assert_ok(grv_array_write(values, zero, shape, value, NULL));
    grv_array_close(&ids);
    grv_array_close(&values);
    grv_store_close(&store);
    free(id);
    free(value);
}

static grv_status shuffle(const char *from, const char *from_path, const char *to,
                          const grv_shuffle_params *params, int n_threads)
{
    grv_store *source = NULL, *target = open_writable(in_folder(to), n_threads);
    grv_store_params read_params = grv_store_params_default();
    read_params.n_threads = n_threads;
    assert_ok(grv_store_open(in_folder(from), &read_params, &source));
    const grv_status status = grv_store_shuffle(source, from_path, target, "", params);
    grv_store_close(&source);
    grv_store_close(&target);
    return status;
}

static void check_order(const char *name)
{
    static int64_t id[N];
    static float value[N * WIDTH];
    const int64_t shape[] = {N, WIDTH};
    grv_store *store = NULL;
    grv_array *array = NULL;
    assert_ok(grv_store_open(in_folder(name), NULL, &store));
    assert_ok(grv_array_open(store, "id", &array));
    assert_ok(grv_array_read(array, zero, shape, id, NULL));
    grv_array_close(&array);
    assert_ok(grv_array_open(store, "value", &array));
    assert_ok(grv_array_read(array, zero, shape, value, NULL));
    grv_array_close(&array);
    for (int64_t k = 0; k < N; k++) {
        assert_int_equal(id[k], id_of(order[k]));
        for (int c = 0; c < WIDTH; c++) assert_true(value[k * WIDTH + c] == value_of(order[k], c));
    }
    grv_store_close(&store);
}

/* The permutation is that of grv_random_permutation, for any memory, threads and chunks. */
static void test_order(void **state)
{
    static const int64_t memory[] = {(int64_t)1 << 30, (int64_t)36 << 20, 0};
    char name[32];
    int64_t least = 0;
    (void)state;
    make_source("order", N);
    assert_ok(grv_random_permutation(11, GRV_SHUFFLE_STREAM, N, order));
    grv_shuffle_params params = grv_shuffle_params_default();
    params.seed = 11;
    params.source_name = "order";
    /* the least memory, from the message */
    params.memory_bytes = 1;
    assert_fails(shuffle("order", "", "order-least", &params, 1), GRV_E_ARG, "are not enough");
    const char *const at = strstr(grv_error_message(), "coding take ");
    assert_non_null(at);
    least = (int64_t)(atof(at + strlen("coding take ")) * 1e6);
    for (int i = 0; i < 6; i++) {
        const int n_threads = 1 + 2 * (i % 2);
        params.memory_bytes = memory[i / 2];
        if (memory[i / 2] == 0)
            params.memory_bytes = n_threads * least + 40000; /* dozens of buckets */
        params.layout.chunk_rank = i % 2;
        params.layout.chunk[0] = 128;
        (void)snprintf(name, sizeof name, "order%d", i);
        assert_ok(shuffle("order", "", name, &params, n_threads));
        check_order(name);
    }
    /* one array alone, with the same seed, in the same order */
    params.layout.chunk_rank = 0;
    assert_ok(shuffle("order", "value", "order-alone", &params, 2));
    grv_store *store = NULL;
    grv_array *array = NULL;
    char *attributes = NULL;
    float row[WIDTH];
    const int64_t start[] = {N - 1, 0}, count[] = {1, WIDTH};
    assert_ok(grv_store_open(in_folder("order-alone"), NULL, &store));
    assert_ok(grv_array_open(store, "", &array));
    assert_ok(grv_array_read(array, start, count, row, NULL));
    assert_true(row[0] == value_of(order[N - 1], 0));
    assert_ok(grv_attributes_get(store, "", &attributes));
    assert_string_equal(
        attributes,
        "{\"unit\":\"m\",\"grove_shuffled\":{\"seed\":11,\"rows\":20011,\"source\":\"order\"}}");
    grv_free(attributes);
    grv_array_close(&array);
    grv_store_close(&store);
}

/* Few rows, as samples of a data set are: each number of them. */
static void test_few_rows(void **state)
{
    char from[32], to[32];
    (void)state;
    for (int64_t n = 1; n <= 12; n++) {
        int64_t few[12], id[12];
        grv_shuffle_params params = grv_shuffle_params_default();
        params.seed = (uint64_t)n;
        (void)snprintf(from, sizeof from, "few%d", (int)n);
        (void)snprintf(to, sizeof to, "few%d-2", (int)n);
        make_source(from, n);
        assert_ok(shuffle(from, "id", to, &params, 1 + (int)n % 3));
        assert_ok(grv_random_permutation(params.seed, GRV_SHUFFLE_STREAM, n, few));
        grv_store *store = NULL;
        grv_array *array = NULL;
        assert_ok(grv_store_open(in_folder(to), NULL, &store));
        assert_ok(grv_array_open(store, "", &array));
        assert_ok(grv_array_read(array, zero, &n, id, NULL));
        for (int64_t k = 0; k < n; k++) assert_int_equal(id[k], id_of(few[k]));
        grv_array_close(&array);
        grv_store_close(&store);
    }
}

/* Memory stays below the limit; nothing but the arrays is left. */
static void test_bounded_memory(void **state)
{
    enum { ROWS = 1000000 };
    (void)state;
    make_source("mem", ROWS); /* 20 MB */
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        grv_shuffle_params params = grv_shuffle_params_default();
        params.memory_bytes = (int64_t)12 << 20;
        const int64_t before = grv_memory_get().bytes;
        grv_store *source = NULL, *target = NULL;
        grv_store_params p = grv_store_params_default();
        if (grv_store_open(in_folder("mem"), &p, &source) != GRV_OK) _exit(2);
        p.writable = true;
        if (grv_store_open(in_folder("mem2"), &p, &target) != GRV_OK) _exit(3);
        if (grv_store_shuffle(source, "", target, "", &params) != GRV_OK) _exit(4);
        grv_store_close(&source);
        grv_store_close(&target);
        _exit(grv_memory_get().peak_bytes - before <= params.memory_bytes ? 0 : 1);
    }
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
    grv_check_report report;
    grv_store *store = NULL;
    assert_ok(grv_store_open(in_folder("mem2"), NULL, &store));
    assert_ok(grv_store_check(store, "", NULL, &report));
    assert_int_equal(report.n_problems, 0);
    assert_int_equal(report.n_arrays, 2);
    grv_check_report_fini(&report);
    grv_store_close(&store);
}

static bool stop_late(void *argument, int64_t done, int64_t total)
{
    (void)argument;
    return done < total / 10 * 8;
}

/* After a failure nothing is left that looks like an array, and the same call works. */
static void test_interrupted(void **state)
{
    grv_shuffle_params params = grv_shuffle_params_default();
    grv_store *store = NULL;
    grv_store_child *children = NULL;
    grv_node_kind kind = GRV_NODE_GROUP;
    (void)state;
    make_source("stop", N);
    params.seed = 11;
    params.memory_bytes = (int64_t)13 << 20;
    params.hooks.progress = stop_late;
    assert_fails(shuffle("stop", "", "stop2", &params, 1), GRV_E_INTERRUPTED, "stopped after");
    assert_ok(grv_store_open(in_folder("stop2"), NULL, &store));
    assert_ok(grv_store_node(store, "", &kind));
    assert_int_equal(kind, GRV_NODE_NONE);
    assert_null(children);
    grv_store_close(&store);
    params.hooks.progress = NULL;
    assert_ok(shuffle("stop", "", "stop2", &params, 1));
    assert_ok(grv_random_permutation(11, GRV_SHUFFLE_STREAM, N, order));
    check_order("stop2");
    assert_fails(shuffle("stop", "", "stop2", &params, 1), GRV_E_EXISTS, "is there already");
    write_file(in_folder("loose"), "x", 1);
    assert_int_equal(mkdir(in_folder("stop3"), 0777), 0);
    write_file(in_folder("stop3/file"), "x", 1);
    assert_fails(shuffle("stop", "", "stop3", &params, 1), GRV_E_EXISTS, "'file' is there");
}

static void test_unequal_rows(void **state)
{
    static const int64_t shape[] = {5}, chunk[] = {5};
    static const char *const names[] = {"id", "value"}, *const wrong[] = {"id", "no"};
    grv_shuffle_params params = grv_shuffle_params_default();
    (void)state;
    make_source("rows", 50);
    grv_store *store = open_writable(in_folder("rows"), 1);
    const grv_array_desc desc = desc_of(GRV_STORE_F32, 1, shape, chunk, NULL);
    assert_ok(grv_array_create(store, "z", &desc, NULL));
    const grv_array_desc scalar = desc_of(GRV_STORE_F32, 0, shape, chunk, NULL);
    assert_ok(grv_array_create(store, "s/scalar", &scalar, NULL));
    const int64_t none[] = {0};
    const grv_array_desc empty = desc_of(GRV_STORE_F32, 1, none, chunk, NULL);
    assert_ok(grv_array_create(store, "e/empty", &empty, NULL));
    grv_store_close(&store);
    assert_fails(shuffle("rows", "", "rows2", &params, 1), GRV_E_SHAPE,
                 "'id' has 50 rows, 'z' has 5");
    params.arrays = names;
    params.n_arrays = 2;
    assert_ok(shuffle("rows", "", "rows2", &params, 1));
    params.arrays = wrong;
    assert_fails(shuffle("rows", "", "rows3", &params, 1), GRV_E_NOT_FOUND, "no array 'no'");
    params.n_arrays = 0;
    assert_fails(shuffle("rows", "s", "rows3", &params, 1), GRV_E_SHAPE, "scalar");
    assert_ok(shuffle("rows", "e", "rows4", &params, 1));
}

/* ---- windows ---- */

typedef struct window_case {
    grv_store *store;
    grv_array *arrays[2];
    int64_t id[N];
    float value[N * WIDTH];
    void *out[2];
} window_case;

static void open_case(window_case *w, const char *name)
{
    assert_ok(grv_store_open(in_folder(name), NULL, &w->store));
    assert_ok(grv_array_open(w->store, "id", &w->arrays[0]));
    assert_ok(grv_array_open(w->store, "value", &w->arrays[1]));
    w->out[0] = w->id;
    w->out[1] = w->value;
}

static void close_case(window_case *w)
{
    grv_array_close(&w->arrays[0]);
    grv_array_close(&w->arrays[1]);
    grv_store_close(&w->store);
}

/* position in the shuffled arrays of the row that an id names */
static int64_t place_of(int64_t id)
{
    static int64_t places[N];
    static bool is_made;
    if (!is_made) {
        for (int64_t k = 0; k < N; k++) places[order[k]] = k;
        is_made = true;
    }
    return places[(id - 1) / 3];
}

static void test_windows(void **state)
{
    static window_case w;
    static const int64_t picks[][2] = {{N, N},       {5000, 5000}, {5000, 17},
                                       {5000, 4999}, {1, 1},       {N, 3000}};
    grv_shuffle_params params = grv_shuffle_params_default();
    bool wrapped = false;
    (void)state;
    make_source("win", N);
    params.seed = 11;
    assert_ok(shuffle("win", "", "win2", &params, 2));
    assert_ok(grv_random_permutation(11, GRV_SHUFFLE_STREAM, N, order));
    open_case(&w, "win2");
    for (uint64_t sample = 0; sample < 60; sample++) {
        const int64_t *const pick = picks[sample % 6];
        const grv_window_params p = {4, sample, pick[0], pick[1], false};
        int64_t first = -1, before = -1;
        memset(w.id, 0, sizeof w.id);
        assert_ok(grv_read_window(w.arrays, 2, &p, w.out, &first));
        assert_true(first >= 0 && first < N);
        wrapped = wrapped || first + pick[0] > N;
        for (int64_t k = 0; k < pick[1]; k++) {
            /* one row of each equal part, in order, the same of both arrays */
            const int64_t step = (place_of(w.id[k]) - first + N) % N;
            assert_true(step > before && step >= k * pick[0] / pick[1] &&
                        step < (k + 1) * pick[0] / pick[1] + 1);
            before = step;
            for (int c = 0; c < WIDTH; c++)
                assert_true(w.value[k * WIDTH + c] == value_of((w.id[k] - 1) / 3, c));
        }
        /* the same again */
        int64_t again = -1;
        assert_ok(grv_read_window(w.arrays, 2, &p, w.out, &again));
        assert_int_equal(again, first);
    }
    assert_true(wrapped);
    close_case(&w);
}

/* Every row is as likely as any other: the mean of many first rows is the middle. */
static void test_windows_are_uniform(void **state)
{
    static window_case w;
    enum { DRAWS = 4000 };
    double sum = 0;
    (void)state;
    open_case(&w, "win2");
    for (uint64_t sample = 0; sample < DRAWS; sample++) {
        const grv_window_params p = {8, sample, 1, 1, false};
        int64_t first = -1;
        assert_ok(grv_read_window(w.arrays, 1, &p, w.out, &first));
        sum += (double)first;
    }
    /* standard deviation of the mean: N / sqrt(12 DRAWS) */
    assert_true(fabs(sum / DRAWS - N / 2.0) < 4 * N / sqrt(12.0 * DRAWS));
    close_case(&w);
}

/* A window of 1/150 of the rows reads at most 1.1 % of the bytes; a subsample reads its chunks only. */
static void test_window_reads_its_bytes(void **state)
{
    enum { ROWS = 150000, WINDOW = 1000, CHUNK = 250 };
    static float out[WINDOW * WIDTH];
    static void *const outs[] = {out};
    const int64_t shape[] = {ROWS, WIDTH}, chunk[] = {CHUNK, WIDTH};
    grv_store *store = open_writable(in_folder("bytes"), 1);
    grv_array *array = NULL;
    float *const value = malloc(sizeof *value * ROWS * WIDTH);
    grv_array_desc desc = desc_of(GRV_STORE_F32, 2, shape, chunk, NULL);
    (void)state;
    assert_non_null(value);
    for (int i = 0; i < ROWS * WIDTH; i++) value[i] = (float)i;
    desc.compressor = GRV_COMPRESSOR_NONE;
    assert_ok(grv_array_create(store, "", &desc, &array));
    assert_ok(grv_array_write(array, zero, shape, value, NULL));
    for (uint64_t sample = 0; sample < 20; sample++) {
        grv_window_params p = {1, sample, WINDOW, WINDOW, true};
        int64_t first = 0;
        const int64_t before = grv_store_counters_get(store).bytes_read;
        assert_ok(grv_read_window(&array, 1, &p, outs, &first));
        const int64_t read = grv_store_counters_get(store).bytes_read - before;
        assert_true(read <= (int64_t)ROWS * WIDTH * 4 * 11 / 1000);
        assert_true(out[0] == (float)(first * WIDTH));
        p.n_rows = 1;
        const int64_t between = grv_store_counters_get(store).bytes_read;
        assert_ok(grv_read_window(&array, 1, &p, outs, &first));
        assert_true(grv_store_counters_get(store).bytes_read - between <= CHUNK * WIDTH * 4);
    }
    grv_window_params p = {1, 0, WINDOW, WINDOW, false};
    assert_fails(grv_read_window(&array, 1, &p, outs, NULL), GRV_E_ARG, "is not shuffled");
    p.unshuffled = true;
    p.window_rows = ROWS + 1;
    assert_fails(grv_read_window(&array, 1, &p, outs, NULL), GRV_E_ARG, "1 to 150000");
    p.window_rows = 5;
    p.n_rows = 6;
    assert_fails(grv_read_window(&array, 1, &p, outs, NULL), GRV_E_ARG, "6 rows of a window of 5");
    grv_array_close(&array);
    grv_store_close(&store);
    free(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_few_rows),
                                       cmocka_unit_test(test_bounded_memory),
                                       cmocka_unit_test(test_interrupted),
                                       cmocka_unit_test(test_unequal_rows),
                                       cmocka_unit_test(test_windows),
                                       cmocka_unit_test(test_windows_are_uniform),
                                       cmocka_unit_test(test_window_reads_its_bytes)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
