/* Writers lose nothing, be they of different stored objects or of parts of the same, threads or processes; readers see each
 * object whole, and never an older one after a newer. */
#define _XOPEN_SOURCE 700
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>

#include "store_support.h"

enum { N_SHARDS = 12, SHARD = 60, N_WRITERS = 3, N_READERS = 2, N_VERSIONS = 30 };

static const int64_t shape[] = {N_SHARDS, SHARD}, shard[] = {1, SHARD}, inner[] = {1, 7 + 5};

static void make_array(const char *location, bool sharded)
{
    grv_store *store = open_writable(location, 1);
    const grv_array_desc desc = desc_of(GRV_STORE_I32, 2, shape, shard, sharded ? inner : NULL);
    assert_ok(grv_array_create(store, "a", &desc, NULL));
    grv_store_close(&store);
}

static grv_status write_shard(grv_array *array, int64_t number, int32_t value)
{
    int32_t data[SHARD];
    const int64_t start[] = {number, 0}, count[] = {1, SHARD};
    for (int i = 0; i < SHARD; i++) data[i] = value;
    return grv_array_write(array, start, count, data, NULL);
}

typedef struct shared_work {
    grv_array *array;
    int first;
    atomic_int *n_bad;
    atomic_bool *done;
} shared_work;

static void *writer_main(void *argument)
{
    const shared_work *const work = argument;
    for (int32_t version = 1; version <= N_VERSIONS; version++) {
        for (int64_t i = work->first; i < N_SHARDS; i += N_WRITERS) {
            if (write_shard(work->array, i, version) != GRV_OK)
                (void)atomic_fetch_add(work->n_bad, 1);
        }
    }
    return NULL;
}

static void *reader_main(void *argument)
{
    const shared_work *const work = argument;
    int32_t data[N_SHARDS * SHARD], newest[N_SHARDS] = {0};
    const int64_t zero[] = {0, 0};
    while (!atomic_load(work->done)) {
        if (grv_array_read(work->array, zero, shape, data, NULL) != GRV_OK)
            (void)atomic_fetch_add(work->n_bad, 1);
        for (int i = 0; i < N_SHARDS; i++) {
            if (data[i * SHARD] < newest[i]) (void)atomic_fetch_add(work->n_bad, 1);
            newest[i] = data[i * SHARD];
            for (int j = 1; j < SHARD; j++) {
                if (data[i * SHARD + j] != data[i * SHARD]) (void)atomic_fetch_add(work->n_bad, 1);
            }
        }
    }
    return NULL;
}

static void check_all(const char *location, int32_t value)
{
    int32_t data[N_SHARDS * SHARD];
    const int64_t zero[] = {0, 0};
    grv_store *store = NULL;
    grv_array *array = NULL;
    assert_ok(grv_store_open(location, NULL, &store));
    assert_ok(grv_array_open(store, "a", &array));
    assert_ok(grv_array_read(array, zero, shape, data, NULL));
    for (int i = 0; i < N_SHARDS * SHARD; i++) assert_int_equal(data[i], value);
    grv_array_close(&array);
    grv_store_close(&store);
}

static void test_threads(void **state)
{
    (void)state;
    for (int sharded = 0; sharded < 2; sharded++) {
        const char *const location = in_folder(sharded ? "threads-s" : "threads");
        pthread_t writers[N_WRITERS], readers[N_READERS];
        shared_work works[N_WRITERS + 1];
        atomic_int n_bad = 0;
        atomic_bool done = false;
        grv_array *array = NULL;
        make_array(location, sharded != 0);
        grv_store *store = open_writable(location, 2);
        assert_ok(grv_array_open(store, "a", &array));
        for (int i = 0; i <= N_WRITERS; i++) works[i] = (shared_work){array, i, &n_bad, &done};
        for (int i = 0; i < N_WRITERS; i++)
            assert_int_equal(pthread_create(&writers[i], NULL, writer_main, &works[i]), 0);
        for (int i = 0; i < N_READERS; i++)
            assert_int_equal(pthread_create(&readers[i], NULL, reader_main, &works[N_WRITERS]), 0);
        for (int i = 0; i < N_WRITERS; i++) assert_int_equal(pthread_join(writers[i], NULL), 0);
        atomic_store(&done, true);
        for (int i = 0; i < N_READERS; i++) assert_int_equal(pthread_join(readers[i], NULL), 0);
        assert_int_equal(atomic_load(&n_bad), 0);
        grv_array_close(&array);
        grv_store_close(&store);
        check_all(location, N_VERSIONS);
    }
}

static void test_processes(void **state)
{
    const char *const location = in_folder("processes");
    pid_t children[N_WRITERS];
    (void)state;
    make_array(location, true);
    for (int c = 0; c < N_WRITERS; c++) {
        children[c] = fork();
        assert_true(children[c] >= 0);
        if (children[c] > 0) continue;
        grv_store *store = NULL;
        grv_array *array = NULL;
        grv_store_params params = grv_store_params_default();
        params.writable = true;
        bool good = grv_store_open(location, &params, &store) == GRV_OK &&
                    grv_array_open(store, "a", &array) == GRV_OK;
        for (int32_t version = 1; version <= 5 && good; version++) {
            for (int64_t i = c; i < N_SHARDS && good; i += N_WRITERS)
                good = write_shard(array, i, version) == GRV_OK;
        }
        _exit(good ? 0 : 1);
    }
    for (int c = 0; c < N_WRITERS; c++) {
        int result = -1;
        assert_int_equal(waitpid(children[c], &result, 0), children[c]);
        assert_int_equal(result, 0);
    }
    check_all(location, 5);
}

/* ---- writers of one object ---- */

/* Element `own` of the one shard goes up by one at a time; every write reads, changes and publishes the whole shard. */
static bool count_up(grv_array *array, int64_t own)
{
    const int64_t start[] = {0, own}, count[] = {1, 1};
    bool good = true;
    for (int32_t version = 1; version <= N_VERSIONS && good; version++)
        good = grv_array_write(array, start, count, &version, NULL) == GRV_OK;
    return good;
}

static void check_counts(const char *location, int64_t n)
{
    int32_t data[SHARD];
    const int64_t zero[] = {0, 0};
    grv_store *store = NULL;
    grv_array *array = NULL;
    assert_ok(grv_store_open(location, NULL, &store));
    assert_ok(grv_array_open(store, "a", &array));
    assert_ok(grv_array_read(array, zero, shard, data, NULL));
    for (int64_t i = 0; i < SHARD; i++) assert_int_equal(data[i], i < n ? N_VERSIONS : 0);
    grv_array_close(&array);
    grv_store_close(&store);
}

static void *counter_main(void *argument)
{
    const shared_work *const work = argument;
    if (!count_up(work->array, work->first)) (void)atomic_fetch_add(work->n_bad, 1);
    return NULL;
}

static void test_threads_share_a_shard(void **state)
{
    (void)state;
    for (int sharded = 0; sharded < 2; sharded++) {
        const char *const location = in_folder(sharded ? "shared-s" : "shared");
        pthread_t threads[N_WRITERS];
        shared_work works[N_WRITERS];
        atomic_int n_bad = 0;
        grv_array *array = NULL;
        make_array(location, sharded != 0);
        grv_store *store = open_writable(location, 1);
        assert_ok(grv_array_open(store, "a", &array));
        for (int i = 0; i < N_WRITERS; i++) {
            works[i] = (shared_work){array, i, &n_bad, NULL};
            assert_int_equal(pthread_create(&threads[i], NULL, counter_main, &works[i]), 0);
        }
        for (int i = 0; i < N_WRITERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(atomic_load(&n_bad), 0);
        grv_array_close(&array);
        grv_store_close(&store);
        check_counts(location, N_WRITERS);
    }
}

/* also when one of them has opened the store further down */
static void test_processes_share_a_shard(void **state)
{
    const char *const location = in_folder("shared-p"), *const below = in_folder("shared-p/a");
    pid_t children[N_WRITERS];
    (void)state;
    make_array(location, true);
    for (int c = 0; c < N_WRITERS; c++) {
        children[c] = fork();
        assert_true(children[c] >= 0);
        if (children[c] > 0) continue;
        grv_store *store = NULL;
        grv_array *array = NULL;
        grv_store_params params = grv_store_params_default();
        params.writable = true;
        const bool good = grv_store_open(c == 0 ? below : location, &params, &store) == GRV_OK &&
                          grv_array_open(store, c == 0 ? "" : "a", &array) == GRV_OK &&
                          count_up(array, c);
        _exit(good ? 0 : 1);
    }
    for (int c = 0; c < N_WRITERS; c++) {
        int result = -1;
        assert_int_equal(waitpid(children[c], &result, 0), children[c]);
        assert_int_equal(result, 0);
    }
    check_counts(location, N_WRITERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes), cmocka_unit_test(test_processes_share_a_shard),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_threads_share_a_shard)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
