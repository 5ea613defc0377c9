/* Slow and failing back ends, made by replacing functions of a store's key-value class: prefetching hides reading behind computing,
 * threads beyond the cores wait together, a plan's holdings are bounded, it can be cancelled, and its first error ends it. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <time.h>

#include "core/alloc.h"
#include "grove/reader.h"
#include "store/read_plan_impl.h"
#include "store_support.h"

enum { N = 48, ROW = 512 }; /* rows, each a stored object of its own */

static const int64_t shape[] = {N, ROW}, chunk[] = {1, ROW}, zero[] = {0, 0};

/* What the replaced functions do, and what they have seen. */
static struct {
    const grvi_kv_class *real;
    long sleep_ms;
    _Atomic int n_open, most_open, n_reading, most_reading, n_reads;
    _Atomic int fail_at; /* number of the read that fails, -1: none */
} slow;

static void sleep_ms(long n)
{
    const struct timespec time = {.tv_sec = n / 1000, .tv_nsec = n % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

static void raise_most(_Atomic int *most, int n)
{
    int seen = atomic_load(most);
    while (n > seen && !atomic_compare_exchange_weak(most, &seen, n)) {
    }
}

static grv_status slow_open(grvi_kv *kv, const char *key, grvi_object *object, bool *found)
{
    GRV_TRY(slow.real->open_object(kv, key, object, found));
    if (*found) raise_most(&slow.most_open, atomic_fetch_add(&slow.n_open, 1) + 1);
    return GRV_OK;
}

static void slow_close(grvi_kv *kv, grvi_object *object)
{
    (void)atomic_fetch_sub(&slow.n_open, 1);
    slow.real->close_object(kv, object);
}

static grv_status slow_read(grvi_kv *kv, const grvi_object *object, const char *key, int64_t offset,
                            int64_t n, void *out)
{
    raise_most(&slow.most_reading, atomic_fetch_add(&slow.n_reading, 1) + 1);
    const int number = atomic_fetch_add(&slow.n_reads, 1);
    if (slow.sleep_ms > 0) sleep_ms(slow.sleep_ms);
    (void)atomic_fetch_sub(&slow.n_reading, 1);
    GRV_CHECK(number != atomic_load(&slow.fail_at), GRV_E_IO, "read %s: the wire was cut", key);
    return slow.real->read_object(kv, object, key, offset, n, out);
}

static grv_store *open_slow(const char *name, long ms)
{
    static grvi_kv_class class;
    grv_store *store = NULL;
    assert_ok(grv_store_open(in_folder(name), NULL, &store));
    slow.real = store->kv->class;
    class = *slow.real;
    class.open_object = slow_open;
    class.read_object = slow_read;
    class.close_object = slow_close;
    slow.sleep_ms = ms;
    slow.n_open = slow.most_open = slow.n_reading = slow.most_reading = slow.n_reads = 0;
    slow.fail_at = -1;
    store->kv->class = &class;
    return store;
}

static int make_arrays(void **state)
{
    static int32_t data[N * ROW];
    const int64_t half[] = {1, ROW / 2};
    if (make_folder(state) != 0) return 1;
    grv_store *store = open_writable(in_folder("store"), 1);
    for (int i = 0; i < N * ROW; i++) data[i] = i;
    for (int k = 0; k < 3; k++) {
        static const char *const names[] = {"sharded", "plain", "raw"};
        grv_array *array = NULL;
        grv_array_desc desc = desc_of(GRV_STORE_I32, 2, shape, chunk, k == 0 ? half : NULL);
        if (k == 2) desc.compressor = GRV_COMPRESSOR_NONE;
        assert_ok(grv_array_create(store, names[k], &desc, &array));
        assert_ok(grv_array_write(array, zero, shape, data, NULL));
        grv_array_close(&array);
    }
    grv_store_close(&store);
    return 0;
}

static void check_values(const int32_t *out, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++) assert_int_equal(out[i], first + i);
}

/* ---- plans ---- */

static grv_status run_all(grv_array *array, const grv_read_plan_params *params, int32_t *out)
{
    const grv_read_request request = {array, zero, shape, NULL, 0, out, NULL};
    grv_read_plan *plan = NULL;
    GRV_TRY(grv_read_plan_create(&request, 1, params, &plan));
    const grv_status status = grv_read_plan_run(plan);
    grv_read_plan_destroy(&plan);
    return status;
}

static void test_opened_objects_are_bounded(void **state)
{
    static int32_t out[N * ROW];
    static const char *const names[] = {"sharded", "plain", "raw"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        grv_store *store = open_slow("store", 0);
        grv_array *array = NULL;
        grv_read_plan_params params = grv_read_plan_params_default();
        params.max_open = 5;
        params.n_threads = 2;
        assert_ok(grv_array_open(store, names[k], &array));
        memset(out, 0xff, sizeof out);
        assert_ok(run_all(array, &params, out));
        check_values(out, 0, N * ROW);
        assert_in_range(atomic_load(&slow.most_open), 1, 5);
        assert_int_equal(atomic_load(&slow.n_open), 0);
        grv_array_close(&array);
        grv_store_close(&store);
    }
}

/* n_io threads wait beside those that decode; where memory is short, fewer run */
static void test_more_threads_wait_than_decode(void **state)
{
    static int32_t out[N * ROW];
    grv_store *store = open_slow("store", 4);
    grv_array *array = NULL;
    grv_read_plan_params params = grv_read_plan_params_default();
    (void)state;
    assert_ok(grv_array_open(store, "plain", &array));
    params.n_threads = 1;
    params.n_io = 7;
    const double begin = grv_clock_seconds();
    assert_ok(run_all(array, &params, out));
    const double seconds = grv_clock_seconds() - begin;
    check_values(out, 0, N * ROW);
    assert_true(atomic_load(&slow.most_reading) > 2 && atomic_load(&slow.most_reading) <= 8);
    assert_true(seconds < 0.75 * N * 0.004);
    params.memory_bytes = 1;
    atomic_store(&slow.most_reading, 0);
    slow.sleep_ms = 0;
    assert_ok(run_all(array, &params, out));
    assert_int_equal(atomic_load(&slow.most_reading), 1);
    grv_array_close(&array);
    grv_store_close(&store);
}

static void *run_plan(void *argument)
{
    const grv_status status = grv_read_plan_run(argument);
    return status == GRV_E_CANCELLED ? argument : NULL;
}

static void test_cancel(void **state)
{
    static int32_t out[N * ROW];
    grv_store *store = open_slow("store", 20);
    grv_array *array = NULL;
    grv_read_plan *plan = NULL;
    pthread_t thread;
    void *result = NULL;
    (void)state;
    assert_ok(grv_array_open(store, "sharded", &array));
    const grv_read_request request = {array, zero, shape, NULL, 0, out, NULL};
    assert_ok(grv_read_plan_create(&request, 1, NULL, &plan));
    grv_read_plan_cancel(plan); /* nothing is under way: the run below does not notice */
    assert_int_equal(pthread_create(&thread, NULL, run_plan, plan), 0);
    while (atomic_load(&slow.n_reads) < 2) sleep_ms(1);
    grv_read_plan_cancel(plan);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, plan);
    assert_true(atomic_load(&slow.n_reads) < 2 + N / 2);
    assert_int_equal(atomic_load(&slow.n_open), 0);
    slow.sleep_ms = 0;
    assert_ok(grv_read_plan_run(plan));
    check_values(out, 0, N * ROW);
    grv_read_plan_destroy(&plan);
    grv_array_close(&array);
    grv_store_close(&store);
}

static void test_first_error_ends_it(void **state)
{
    static int32_t out[N * ROW];
    /* all indices of the shards come first */
    static const struct {
        const char *name;
        int fail_at;
        const char *text;
    } cases[] = {
        {"sharded", 10, "shard (10,0) of 'sharded': read shard index: the wire was cut"},
        {"sharded", N + 5, "inner chunk (0,0) of shard (5,0) of 'sharded', "},
        {"plain", 10, "chunk (10,0) of 'plain': read chunk: the wire was cut"},
        {"raw", 10, "chunk (10,0) of 'raw', 2048 bytes at byte 0: read chunk: the wire was cut"},
    };
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        grv_store *store = open_slow("store", 0);
        grv_array *array = NULL;
        grv_read_plan_params params = grv_read_plan_params_default();
        params.n_threads = 1;
        assert_ok(grv_array_open(store, cases[c].name, &array));
        atomic_store(&slow.n_reads, 0); /* metadata were read */
        atomic_store(&slow.fail_at, cases[c].fail_at);
        assert_fails(run_all(array, &params, out), GRV_E_IO, cases[c].text);
        assert_int_equal(atomic_load(&slow.n_reads), cases[c].fail_at + 1);
        assert_int_equal(atomic_load(&slow.n_open), 0);
        grv_array_close(&array);
        grv_store_close(&store);
    }
}

/* rows and regions of two arrays; every allocation fails once in turn */
static grv_status plan_without_memory(void)
{
    static int32_t out[N * ROW], rows_out[5 * ROW];
    const int64_t rows[] = {7, 3, 3, 40, 4};
    grv_status status = GRV_OK;
    grv_store *store = NULL;
    grv_array *sharded = NULL, *plain = NULL;
    grv_read_plan *plan = NULL;
    GRV_TRY_GOTO(grv_store_open(in_folder("store"), NULL, &store));
    GRV_TRY_GOTO(grv_array_open(store, "sharded", &sharded));
    GRV_TRY_GOTO(grv_array_open(store, "plain", &plain));
    const grv_read_request requests[] = {{sharded, zero, shape, rows, 5, rows_out, NULL},
                                         {plain, zero, shape, NULL, 0, out, NULL}};
    GRV_TRY_GOTO(grv_read_plan_create(requests, 2, NULL, &plan));
    GRV_TRY_GOTO(grv_read_plan_run(plan));
    check_values(out, 0, N * ROW);
    for (int i = 0; i < 5; i++) check_values(rows_out + i * ROW, rows[i] * ROW, ROW);
done:
    grvi_alloc_fail_after(-1);
    grv_read_plan_destroy(&plan);
    grv_array_close(&sharded);
    grv_array_close(&plain);
    grv_store_close(&store);
    return status;
}

static void test_out_of_memory(void **state)
{
    const int64_t held = grv_memory_get().bytes;
    int64_t countdown = 0;
    grv_status status = GRV_E_NOMEM;
    (void)state;
    for (; status != GRV_OK; countdown++) {
        grvi_alloc_fail_after(countdown);
        status = plan_without_memory();
        assert_true(status == GRV_OK || status == GRV_E_NOMEM);
        assert_int_equal(grv_memory_get().bytes, held);
    }
    assert_true(countdown > 20);
}

/* ---- the reader ---- */

/* Items of a reader: row `item` of an array; ROW values. */
typedef struct row_items {
    grv_array *array;
    grv_read_plan *plans[8];
    int32_t rows[8][ROW];
    int64_t weight, bad_item;
    _Atomic int n_begun;
} row_items;

static grv_status fill_row(void *context, int64_t item, int slot)
{
    row_items *const items = context;
    const int64_t start[] = {item % N, 0};
    const grv_read_request request = {items->array, start, chunk, NULL, 0, items->rows[slot], NULL};
    (void)atomic_fetch_add(&items->n_begun, 1);
    GRV_CHECK(item != items->bad_item, GRV_E_FORMAT, "item %lld is bad", (long long)item);
    GRV_TRY(grv_read_plan_set(items->plans[slot], &request, 1));
    return grv_read_plan_run(items->plans[slot]);
}

static void cancel_row(void *context, int slot)
{
    grv_read_plan_cancel(((row_items *)context)->plans[slot]);
}

static int64_t weigh_row(void *context, int64_t item)
{
    (void)item;
    return ((row_items *)context)->weight;
}

static grv_reader *open_reader(row_items *items, grv_store *store, const grv_reader_params *params)
{
    const grv_reader_source source = {items, fill_row, weigh_row, cancel_row};
    grv_reader *reader = NULL;
    memset(items, 0, sizeof *items);
    items->bad_item = -1;
    assert_ok(grv_array_open(store, "plain", &items->array));
    for (int i = 0; i < 8; i++) assert_ok(grv_read_plan_create(NULL, 0, NULL, &items->plans[i]));
    assert_ok(grv_reader_create(&source, params, &reader));
    assert_int_equal(grv_reader_slots(reader), params->n_ahead + 1);
    return reader;
}

static void close_reader(row_items *items, grv_store **store, grv_reader **reader)
{
    grv_reader_destroy(reader);
    assert_null(*reader);
    for (int i = 0; i < 8; i++) grv_read_plan_destroy(&items->plans[i]);
    grv_array_close(&items->array);
    grv_store_close(store);
}

static void expect_row(row_items *items, grv_reader *reader, int64_t item)
{
    int slot = -1;
    assert_ok(grv_reader_next(reader, &slot));
    check_values(items->rows[slot], item % N * ROW, ROW);
}

/* Reading takes 4 ms an item, computing as long: together they take as long as one of them, if reading goes ahead. */
static void test_prefetch_hides_reading(void **state)
{
    enum { ITEMS = 60 };
    row_items items;
    grv_reader_params params = grv_reader_params_default();
    grv_store *store = open_slow("store", 4);
    grv_reader *reader = open_reader(&items, store, &params);
    (void)state;
    /* what each takes by itself, on this machine now */
    double begin = grv_clock_seconds();
    for (int i = 0; i < ITEMS; i++) assert_ok(fill_row(&items, i, 0));
    const double reading = grv_clock_seconds() - begin;
    begin = grv_clock_seconds();
    for (int i = 0; i < ITEMS; i++) sleep_ms(4);
    const double computing = grv_clock_seconds() - begin;
    begin = grv_clock_seconds();
    grv_reader_begin(reader, ITEMS);
    for (int i = 0; i < ITEMS; i++) {
        expect_row(&items, reader, i);
        sleep_ms(4);
    }
    const double both = grv_clock_seconds() - begin;
    int slot = 0;
    assert_int_equal(grv_reader_next(reader, &slot), GRV_END);
    assert_int_equal(slot, -1);
    assert_true(both < 0.75 * (reading + computing));
    const grv_reader_stats stats = grv_reader_get_stats(reader);
    assert_int_equal(stats.n_items, ITEMS);
    assert_true(stats.filling_s >= 0.004 * ITEMS);
    assert_true(stats.waited_s > 0 && stats.waited_s < 0.75 * reading);
    close_reader(&items, &store, &reader);
}

/* Several threads fill several items at a time; they arrive in order all the same. */
static void test_items_arrive_in_order(void **state)
{
    (void)state;
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        row_items items;
        const grv_reader_params params = {
            .n_ahead = 4, .n_threads = n_threads, .max_bytes = INT64_MAX};
        grv_store *store = open_slow("store", 1);
        grv_reader *reader = open_reader(&items, store, &params);
        for (int sequence = 0; sequence < 2; sequence++) {
            grv_reader_begin(reader, 40);
            for (int i = 0; i < 40; i++) expect_row(&items, reader, i);
        }
        assert_in_range(atomic_load(&slow.most_reading), 1, n_threads);
        if (n_threads > 2) assert_true(atomic_load(&slow.most_reading) > 1);
        close_reader(&items, &store, &reader);
    }
}

/* The weight of items bounds how far ahead it reads; one that is too heavy is read by itself. */
static void test_memory_is_bounded(void **state)
{
    static const struct {
        int64_t weight, max_bytes;
        int most; /* begun while the consumer has taken none */
    } cases[] = {{10, 1000, 6}, {10, 35, 3}, {10, 20, 2}, {10, 9, 1}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        row_items items;
        const grv_reader_params params = {
            .n_ahead = 5, .n_threads = 2, .max_bytes = cases[c].max_bytes};
        grv_store *store = open_slow("store", 0);
        grv_reader *reader = open_reader(&items, store, &params);
        items.weight = cases[c].weight;
        grv_reader_begin(reader, 30);
        for (int i = 0; i < 30; i++) {
            /* the consumer holds item i - 1 */
            const int most = i == 0 ? cases[c].most : i - 1 + cases[c].most;
            for (int tries = 0;
                 atomic_load(&items.n_begun) < (most < 30 ? most : 30) && tries < 2000; tries++)
                sleep_ms(1);
            sleep_ms(2);
            assert_int_equal(atomic_load(&items.n_begun), most < 30 ? most : 30);
            expect_row(&items, reader, i);
        }
        close_reader(&items, &store, &reader);
    }
}

/* An error arrives at its item, whatever thread met it when, and stays until the next sequence. */
static void test_error_at_its_item(void **state)
{
    (void)state;
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        row_items items;
        const grv_reader_params params = {
            .n_ahead = 4, .n_threads = n_threads, .max_bytes = INT64_MAX};
        grv_store *store = open_slow("store", 1);
        grv_reader *reader = open_reader(&items, store, &params);
        int slot = 0;
        items.bad_item = 9;
        grv_reader_begin(reader, 20);
        for (int i = 0; i < 9; i++) expect_row(&items, reader, i);
        for (int i = 0; i < 2; i++) {
            grv_error_clear();
            assert_fails(grv_reader_next(reader, &slot), GRV_E_FORMAT, "item 9 is bad");
        }
        assert_true(atomic_load(&items.n_begun) < 9 + 1 + 4);
        grv_reader_stop(reader);
        items.bad_item = -1;
        assert_int_equal(grv_reader_next(reader, &slot), GRV_END);
        grv_reader_begin(reader, 3);
        for (int i = 0; i < 3; i++) expect_row(&items, reader, i);
        close_reader(&items, &store, &reader);
    }
}

static grv_status fill_all_rows(void *context, int64_t item, int slot)
{
    static int32_t all[N * ROW];
    row_items *const items = context;
    const grv_read_request request = {items->array, zero, shape, NULL, 0, all, NULL};
    (void)item;
    (void)atomic_fetch_add(&items->n_begun, 1);
    GRV_TRY(grv_read_plan_set(items->plans[slot], &request, 1));
    return grv_read_plan_run(items->plans[slot]);
}

/* Stopping does not wait until a slow item is read to its end; plans are the caller's afterwards. */
static void test_stop_cancels(void **state)
{
    row_items items;
    const grv_reader_params params = {.n_ahead = 1, .n_threads = 1, .max_bytes = INT64_MAX};
    grv_store *store = open_slow("store", 20);
    grv_reader *reader = open_reader(&items, store, &params), *slow_reader = NULL;
    const grv_reader_source source = {&items, fill_all_rows, NULL, cancel_row};
    (void)state;
    assert_ok(grv_reader_create(&source, &params, &slow_reader));
    for (int i = 0; i < 3; i++) {
        atomic_store(&items.n_begun, 0);
        grv_reader_begin(slow_reader, 2);
        while (i > 0 && atomic_load(&items.n_begun) == 0) sleep_ms(1);
        if (i > 1) sleep_ms(50);
        const double begin = grv_clock_seconds();
        grv_reader_stop(slow_reader);
        assert_true(grv_clock_seconds() - begin < 0.5 * N * 0.020);
        assert_ok(fill_row(&items, i, 0));
        check_values(items.rows[0], i * ROW, ROW);
    }
    grv_reader_destroy(&slow_reader);
    close_reader(&items, &store, &reader);
}

static void test_refusals(void **state)
{
    grv_reader *reader = NULL;
    grv_reader_source source = {NULL, NULL, NULL, NULL};
    grv_reader_params params = grv_reader_params_default();
    (void)state;
    assert_fails(grv_reader_create(&source, NULL, &reader), GRV_E_ARG, "no function");
    source.fill = fill_row;
    params.n_ahead = 0;
    assert_fails(grv_reader_create(&source, &params, &reader), GRV_E_ARG, "at least 1 item");
    params.n_ahead = 3;
    params.n_threads = 4;
    assert_fails(grv_reader_create(&source, &params, &reader), GRV_E_ARG, "1 to 3 threads");
    assert_null(reader);
    grv_reader_destroy(&reader);
    for (int64_t countdown = 0; countdown < 3; countdown++) {
        grvi_alloc_fail_after(countdown);
        assert_int_equal(grv_reader_create(&source, NULL, &reader), GRV_E_NOMEM);
        assert_null(reader);
    }
    grvi_alloc_fail_after(-1);
    assert_int_equal(grv_memory_get().bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_opened_objects_are_bounded),
                                       cmocka_unit_test(test_more_threads_wait_than_decode),
                                       cmocka_unit_test(test_cancel),
                                       cmocka_unit_test(test_first_error_ends_it),
                                       cmocka_unit_test(test_out_of_memory),
                                       cmocka_unit_test(test_prefetch_hides_reading),
                                       cmocka_unit_test(test_items_arrive_in_order),
                                       cmocka_unit_test(test_memory_is_bounded),
                                       cmocka_unit_test(test_error_at_its_item),
                                       cmocka_unit_test(test_stop_cancels),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, make_arrays, remove_folder);
}
