/* What a read costs: a slab of a shard reads the index once and its own planes, in one call, and allocates nothing when warm. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_support.h"

enum {
    N_SAMPLES = 3,
    N_PLANES = 16,
    PLANE = 64,
    PER_CHUNK = 2,
    CHUNK_BYTES = PER_CHUNK * PLANE * 4,
    N_CHUNKS = N_PLANES / PER_CHUNK
};
enum { INDEX_BYTES = 16 * N_CHUNKS + 4 };

static const int64_t shape[] = {N_SAMPLES, N_PLANES, 8, 8}, shard[] = {1, N_PLANES, 8, 8},
                     inner[] = {1, PER_CHUNK, 8, 8};

static void make_array(const char *location, grv_compressor compressor)
{
    static float data[N_SAMPLES * N_PLANES * PLANE];
    const int64_t zero[] = {0, 0, 0, 0};
    grv_store *store = open_writable(location, 2);
    grv_array *array = NULL;
    grv_array_desc desc = desc_of(GRV_STORE_F32, 4, shape, shard, inner);
    desc.compressor = compressor;
    for (int i = 0; i < N_SAMPLES * N_PLANES * PLANE; i++) data[i] = (float)(i % 1000);
    assert_ok(grv_array_create(store, "u", &desc, &array));
    assert_ok(grv_array_write(array, zero, shape, data, NULL));
    grv_array_close(&array);
    grv_store_close(&store);
}

static grv_store_counters difference(grv_store_counters a, grv_store_counters b)
{
    return (grv_store_counters){b.bytes_read - a.bytes_read, b.bytes_decoded - a.bytes_decoded,
                                b.objects_opened - a.objects_opened, b.read_calls - a.read_calls,
                                b.bytes_written - a.bytes_written};
}

/* reads planes [first, first + n) of a sample, checks them, and tells what that took */
static grv_store_counters read_planes(grv_store *store, grv_array *array, int64_t sample,
                                      int64_t first, int64_t n)
{
    static float out[N_PLANES * PLANE];
    const int64_t start[] = {sample, first, 0, 0}, count[] = {1, n, 8, 8};
    const grv_store_counters before = grv_store_counters_get(store);
    assert_ok(grv_array_read(array, start, count, out, NULL));
    for (int64_t i = 0; i < n * PLANE; i++)
        assert_int_equal((int)out[i], (int)(((sample * N_PLANES + first) * PLANE + i) % 1000));
    return difference(before, grv_store_counters_get(store));
}

static void test_slab_reads_its_planes(void **state)
{
    grv_store *store = NULL;
    grv_array *array = NULL;
    (void)state;
    make_array(in_folder("raw"), GRV_COMPRESSOR_NONE);
    assert_ok(grv_store_open(in_folder("raw"), NULL, &store));
    assert_ok(grv_array_open(store, "u", &array));
    grv_store_counters c = read_planes(store, array, 1, 4, 4);
    assert_int_equal(c.bytes_read, INDEX_BYTES + 2 * CHUNK_BYTES);
    assert_int_equal(c.bytes_decoded, 2 * CHUNK_BYTES);
    assert_int_equal(c.objects_opened, 1);
    assert_int_equal(c.read_calls, 2);
    /* the index is cached; planes 5..8 are all of one chunk and halves of two */
    c = read_planes(store, array, 1, 5, 4);
    assert_int_equal(c.bytes_read, 2 * CHUNK_BYTES);
    assert_int_equal(c.bytes_decoded, 2 * CHUNK_BYTES);
    assert_int_equal(c.read_calls, 1);
    c = read_planes(store, array, 2, 0, N_PLANES);
    assert_int_equal(c.bytes_read, INDEX_BYTES + N_CHUNKS * CHUNK_BYTES);
    grv_array_close(&array);
    grv_store_close(&store);
}

static void test_compressed_slab(void **state)
{
    grv_store *store = NULL;
    grv_array *array = NULL;
    struct stat info;
    (void)state;
    make_array(in_folder("zstd"), GRV_COMPRESSOR_ZSTD);
    assert_int_equal(stat(in_folder("zstd/u/c/1/0/0/0"), &info), 0);
    assert_ok(grv_store_open(in_folder("zstd"), NULL, &store));
    assert_ok(grv_array_open(store, "u", &array));
    const grv_store_counters c = read_planes(store, array, 1, 4, 4);
    assert_int_equal(c.bytes_decoded, 2 * CHUNK_BYTES);
    assert_int_equal(c.read_calls, 2);
    assert_true(c.bytes_read - INDEX_BYTES <=
                (info.st_size - INDEX_BYTES) / 3); /* two of eight chunks of about equal size */
    grv_array_close(&array);
    grv_store_close(&store);
}

/* The cached index is not used for a shard that another store object replaced. */
static void test_index_is_validated(void **state)
{
    static float data[N_PLANES * PLANE], out[N_PLANES * PLANE];
    const int64_t start[] = {1, 0, 0, 0}, count[] = {1, N_PLANES, 8, 8},
                  empty_count[] = {1, 3, 8, 8};
    grv_store *store = NULL;
    grv_array *array = NULL, *writer = NULL;
    (void)state;
    make_array(in_folder("valid"), GRV_COMPRESSOR_ZSTD);
    assert_ok(grv_store_open(in_folder("valid"), NULL, &store));
    assert_ok(grv_array_open(store, "u", &array));
    (void)read_planes(store, array, 1, 0, N_PLANES);
    grv_store *other = open_writable(in_folder("valid"), 1);
    assert_ok(grv_array_open(other, "u", &writer));
    for (int i = 0; i < N_PLANES * PLANE; i++) data[i] = (float)(i % 7);
    assert_ok(grv_array_write(writer, start, count, data, NULL));
    assert_ok(grv_array_read(array, start, count, out, NULL));
    assert_memory_equal(out, data, sizeof data);
    /* inner chunks that become fill: chunk 0 whole, the first plane of chunk 1 */
    memset(data, 0, sizeof data);
    assert_ok(grv_array_write(writer, start, empty_count, data, NULL));
    assert_ok(grv_array_read(array, start, count, out, NULL));
    for (int i = 0; i < N_PLANES * PLANE; i++)
        assert_int_equal((int)out[i], i < 3 * PLANE ? 0 : i % 7);
    grv_array_close(&writer);
    grv_store_close(&other);
    grv_array_close(&array);
    grv_store_close(&store);
}

static void test_warm_reads_allocate_nothing(void **state)
{
    grv_store *store = NULL;
    grv_array *array = NULL;
    int64_t n_allocations = 0;
    (void)state;
    make_array(in_folder("warm"), GRV_COMPRESSOR_BLOSC_LZ4);
    assert_ok(grv_store_open(in_folder("warm"), NULL, &store));
    assert_ok(grv_array_open(store, "u", &array));
    for (int pass = 0; pass < 4; pass++) {
        if (pass == 1) n_allocations = grv_memory_get().n_allocations;
        for (int64_t i = 0; i < N_SAMPLES; i++) {
            (void)read_planes(store, array, i, 3, 5);
            (void)read_planes(store, array, i, 0, N_PLANES);
        }
    }
    assert_int_equal(grv_memory_get().n_allocations, n_allocations);
    grv_array_close(&array);
    grv_store_close(&store);
}

/* A cache too small for two indices still gives right answers, and says by its counters that it reads them again. */
static void test_bounded_cache(void **state)
{
    grv_store *store = NULL;
    grv_array *array = NULL;
    grv_store_params params = grv_store_params_default();
    params.index_cache_bytes = 400;
    (void)state;
    make_array(in_folder("bounded"), GRV_COMPRESSOR_NONE);
    assert_ok(grv_store_open(in_folder("bounded"), &params, &store));
    assert_ok(grv_array_open(store, "u", &array));
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < N_SAMPLES; i++)
            assert_int_equal(read_planes(store, array, i, 0, 2).bytes_read,
                             INDEX_BYTES + CHUNK_BYTES);
    }
    assert_int_equal(read_planes(store, array, N_SAMPLES - 1, 0, 2).bytes_read, CHUNK_BYTES);
    grv_array_close(&array);
    grv_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slab_reads_its_planes), cmocka_unit_test(test_compressed_slab),
        cmocka_unit_test(test_index_is_validated),
        cmocka_unit_test(test_warm_reads_allocate_nothing), cmocka_unit_test(test_bounded_cache)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
