/* Arrays against a brute-force copy in memory: types, codecs, shards, edge chunks, fill, any region, any strides. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_support.h"

enum { MAX_ELEMENTS = 4096, MAX_ITEM = 16, N_STEPS = 8 };

static uint64_t draw(uint64_t *counter, uint64_t below)
{
    return grv_random_bits(11, 5, (*counter)++) % below;
}

/* Row-major position of an element of a region within the array. */
static int64_t place(const grv_array_desc *desc, const int64_t *start, const int64_t *count,
                     int64_t number)
{
    int64_t position = 0, stride = 1;
    for (int i = desc->rank - 1; i >= 0; i--) {
        position += (start[i] + number % count[i]) * stride;
        number /= count[i];
        stride *= desc->shape[i];
    }
    return position;
}

static void draw_region(const grv_array_desc *desc, uint64_t *counter, int64_t *start,
                        int64_t *count, int64_t *n)
{
    *n = 1;
    for (int i = 0; i < desc->rank; i++) {
        start[i] = (int64_t)draw(counter, (uint64_t)desc->shape[i]);
        count[i] = 1 + (int64_t)draw(counter, (uint64_t)(desc->shape[i] - start[i]));
        *n *= count[i];
    }
}

/* Random writes, each followed by a random read that must equal the copy; at the end the whole array, through a new store. */
static void exercise(const char *location, const grv_array_desc *desc, int n_threads, uint64_t seed)
{
    static uint8_t copy[MAX_ELEMENTS * MAX_ITEM], buffer[MAX_ELEMENTS * MAX_ITEM];
    const int64_t fixed = grv_store_type_bytes(desc->type);
    const size_t item = (size_t)(fixed > 0 ? fixed : desc->item_bytes);
    const uint64_t modulus = desc->type == GRV_STORE_BOOL ? 2 : 200;
    uint8_t fill[MAX_ITEM] = {0};
    memcpy(fill, &desc->fill, sizeof desc->fill);
    if (desc->fill_bytes != NULL) memcpy(fill, desc->fill_bytes, item);
    uint64_t counter = seed * 100000;
    int64_t total = 1, start[GRV_STORE_MAX_RANK] = {0}, count[GRV_STORE_MAX_RANK] = {0}, n = 0;
    grv_store *store = open_writable(location, n_threads);
    grv_array *array = NULL;
    assert_ok(grv_array_create(store, "a", desc, &array));
    for (int i = 0; i < desc->rank; i++) total *= desc->shape[i];
    assert_true(total <= MAX_ELEMENTS);
    for (int64_t i = 0; i < total; i++) memcpy(copy + (size_t)i * item, fill, item);
    for (int step = 0; step < N_STEPS; step++) {
        draw_region(desc, &counter, start, count, &n);
        for (int64_t i = 0; i < n; i++) {
            uint8_t value[MAX_ITEM] = {0};
            value[0] = (uint8_t)draw(&counter, modulus);
            value[item - 1] = (uint8_t)(item > 1 ? draw(&counter, 100) : value[0]);
            if (step % 4 == 3) memcpy(value, fill, item); /* chunks become empty again */
            memcpy(buffer + (size_t)i * item, value, item);
            memcpy(copy + (size_t)place(desc, start, count, i) * item, value, item);
        }
        assert_ok(grv_array_write(array, start, count, buffer, NULL));
        draw_region(desc, &counter, start, count, &n);
        memset(buffer, 0xaa, sizeof buffer);
        assert_ok(grv_array_read(array, start, count, buffer, NULL));
        for (int64_t i = 0; i < n; i++)
            assert_memory_equal(buffer + (size_t)i * item,
                                copy + (size_t)place(desc, start, count, i) * item, item);
        assert_int_equal(buffer[(size_t)n * item], 0xaa);
    }
    grv_array_close(&array);
    grv_store_close(&store);
    assert_ok(grv_store_open(location, NULL, &store));
    assert_ok(grv_array_open(store, "a", &array));
    for (int i = 0; i < desc->rank; i++) start[i] = 0;
    assert_ok(grv_array_read(array, start, desc->shape, buffer, NULL));
    assert_memory_equal(buffer, copy, (size_t)total * item);
    const grv_array_desc *const opened = grv_array_get_desc(array);
    assert_int_equal(opened->fill, desc->fill);
    assert_int_equal(opened->item_bytes, item);
    assert_int_equal(opened->zarr_format, desc->zarr_format);
    if (desc->fill_bytes != NULL) assert_memory_equal(opened->fill_bytes, fill, item);
    grv_array_close(&array);
    grv_store_close(&store);
}

static void set_type(grv_array_desc *desc, grv_store_type type)
{
    static const uint32_t text[] = {0x1f333, 0xe4, 0}; /* a tree and an umlaut */
    static const double pair[] = {1.5, -2.5};
    desc->type = type;
    desc->fill = type == GRV_STORE_BOOL ? 1 : 7;
    desc->item_bytes = type == GRV_STORE_RAW ? 3 : type == GRV_STORE_BYTES ? 7 : 12;
    if (type == GRV_STORE_UCS4) desc->fill_bytes = text;
    if (type == GRV_STORE_C128) desc->fill_bytes = pair;
    if (desc->fill_bytes != NULL) memcpy(&desc->fill, desc->fill_bytes, sizeof desc->fill);
}

static void test_types_and_codecs(void **state)
{
    static const int64_t shape[] = {7, 10, 6}, chunk[] = {3, 4, 6}, shard[] = {4, 6, 6},
                         inner[] = {2, 3, 6};
    char name[64];
    uint64_t seed = 1;
    (void)state;
    for (int type = GRV_STORE_BOOL; type <= GRV_STORE_UCS4; type++) {
        for (int codec = GRV_COMPRESSOR_NONE; codec <= GRV_COMPRESSOR_GZIP; codec++) {
            for (int sharded = -1; sharded < 2; sharded++) { /* -1: version 2 */
                grv_array_desc desc = desc_of(GRV_STORE_F32, 3, shape, sharded > 0 ? shard : chunk,
                                              sharded > 0 ? inner : NULL);
                set_type(&desc, (grv_store_type)type);
                desc.zarr_format = sharded < 0 ? 2 : 3;
                if (codec % 2 == 1) desc.key_separator = sharded < 0 ? '/' : '.';
                desc.compressor = (grv_compressor)codec;
                desc.checksum = (type + codec) % 2 == 0;
                desc.big_endian = type % 3 == 0 && (type != GRV_STORE_BF16 || sharded >= 0);
                desc.keys_v2 = codec % 2 == 0;
                (void)snprintf(name, sizeof name, "m%d-%d-%d", type, codec, sharded);
                exercise(in_folder(name), &desc, 1, seed++);
            }
        }
    }
}

static void test_ranks(void **state)
{
    static const int64_t shape[] = {5, 3, 4, 2, 3, 2}, chunk[] = {2, 2, 4, 1, 3, 2},
                         inner[] = {1, 2, 2, 1, 3, 1};
    char name[64];
    (void)state;
    for (int rank = 0; rank <= 6; rank++) {
        for (int sharded = 0; sharded < 2; sharded++) {
            const grv_array_desc desc =
                desc_of(GRV_STORE_I32, rank, shape, chunk, sharded ? inner : NULL);
            (void)snprintf(name, sizeof name, "r%d-%d", rank, sharded);
            exercise(in_folder(name), &desc, 2, (uint64_t)(1000 + 2 * rank + sharded));
        }
    }
}

/* Chains that the description has no words for: transposition inside and outside of shards, index first, big-endian index. */
static void test_codec_lists(void **state)
{
    static const char *const lists[] = {
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,2,0]}},{\"name\":\"bytes\","
        "\"configuration\":{\"endian\":\"big\"}},\"crc32c\"]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,2,0]}},{\"name\":\"transpose\","
        "\"configuration\":{\"order\":[0,2,1]}},"
        "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":\"zstd\","
        "\"configuration\":{\"level\":3,\"checksum\":true}}]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,2,0]}},{\"name\":\"sharding_"
        "indexed\",\"configuration\":{\"chunk_shape\":[3,3,2],"
        "\"codecs\":[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},{\"name\":"
        "\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
        "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}],\"index_codecs\":[{\"name\":"
        "\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
        "{\"name\":\"crc32c\"},{\"name\":\"crc32c\"}],\"index_location\":\"start\"}}]",
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":\"blosc\","
        "\"configuration\":{\"cname\":\"zlib\",\"clevel\":1,"
        "\"shuffle\":\"bitshuffle\",\"typesize\":2,\"blocksize\":64}},{\"name\":\"zstd\","
        "\"configuration\":{}},{\"name\":\"gzip\"},{\"name\":\"crc32c\"}]",
    };
    static const int64_t shape[] = {7, 10, 6}, chunk[] = {4, 6, 6};
    char name[64];
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        grv_array_desc desc = desc_of(GRV_STORE_I16, 3, shape, chunk, NULL);
        desc.codecs = lists[i];
        (void)snprintf(name, sizeof name, "l%zu", i);
        exercise(in_folder(name), &desc, 2, 2000 + i);
    }
}

/* Filters and the codecs of numcodecs, in both versions; stored axes reversed or not. */
static void test_filters(void **state)
{
#define FILTER(name, configuration) \
    "{\"name\":\"numcodecs." name "\",\"configuration\":{" configuration "}},"
#define BYTES(endian) "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"" endian "\"}}"
#define CODEC(name, configuration) \
    ",{\"name\":\"numcodecs." name "\",\"configuration\":{" configuration "}}"
    static const char *const lists[] = {
        FILTER("delta", "\"dtype\":\"<i2\"") BYTES("little") CODEC("zlib", "\"level\":3"),
        FILTER("delta", "\"dtype\":\"<i2\",\"astype\":\"<i8\"") BYTES("big")
            CODEC("shuffle", "\"elementsize\":8") CODEC("lz4", "\"acceleration\":2"),
        FILTER("astype", "\"encode_dtype\":\"<f8\",\"decode_dtype\":\"<i2\"")
            FILTER("delta", "\"dtype\":\"<f8\"") BYTES("little") CODEC("bz2", "\"level\":9"),
        FILTER("fixedscaleoffset", "\"offset\":-3,\"scale\":2,\"dtype\":\"<i2\",\"astype\":\"<i4\"")
            FILTER("astype", "\"encode_dtype\":\"<f4\",\"decode_dtype\":\"<i4\"")
                FILTER("bitround", "\"keepbits\":23") BYTES("big") CODEC("crc32", ""),
        BYTES("little") CODEC("adler32", "\"location\":\"end\"") CODEC("fletcher32", "")
            CODEC("crc32c", "") CODEC("zstd", "\"level\":2"),
        BYTES("big") CODEC("blosc", "\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":2,\"blocksize\":0"),
    };
    static const char reversed[] =
        "{\"name\":\"transpose\",\"configuration\":{\"order\":[2,1,0]}},";
    static const int64_t shape[] = {7, 10, 6}, chunk[] = {4, 6, 6};
    char name[64], codecs[1024];
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        for (int version = 2; version <= 3; version++) {
            for (int order = 0; order < 2; order++) {
                grv_array_desc desc = desc_of(GRV_STORE_I16, 3, shape, chunk, NULL);
                (void)snprintf(codecs, sizeof codecs, "[%s%s]", order != 0 ? reversed : "",
                               lists[i]);
                desc.codecs = codecs;
                desc.zarr_format = version;
                (void)snprintf(name, sizeof name, "filter%zu-%d-%d", i, version, order);
                exercise(in_folder(name), &desc, 2, 5000 + i);
            }
        }
    }
}

/* Nested shards read and write; a codec after sharding_indexed can be read (test_real_files) but not written. */
static void test_nested_shards(void **state)
{
    static const char *const format =
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,6,3],\"codecs\":[{"
        "\"name\":\"sharding_indexed\",\"configuration\":"
        "{\"chunk_shape\":[1,3,3],\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":"
        "\"little\"}},{\"name\":\"crc32c\"}],"
        "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}],\"index_"
        "location\":\"start\"}}%s],"
        "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{"
        "\"name\":\"crc32c\"}]}}]";
    static const int64_t shape[] = {7, 10, 6}, chunk[] = {4, 6, 6}, zero[] = {0, 0, 0},
                         one[] = {1, 1, 1};
    char codecs[1024];
    (void)state;
    grv_array_desc desc = desc_of(GRV_STORE_I16, 3, shape, chunk, NULL);
    desc.codecs = codecs;
    (void)snprintf(codecs, sizeof codecs, format, "");
    exercise(in_folder("nested"), &desc, 2, 3000);
    (void)snprintf(codecs, sizeof codecs, format, ",\"crc32c\"");
    grv_store *store = open_writable(in_folder("nested2"), 1);
    grv_array *array = NULL;
    const int16_t value = 5;
    assert_ok(grv_array_create(store, "a", &desc, &array));
    assert_fails(grv_array_write(array, zero, one, &value, NULL), GRV_E_UNSUPPORTED, "'crc32c'");
    grv_array_close(&array);
    grv_store_close(&store);
}

/* Strides: transposed, padded and reversed memory. */
static void test_strides(void **state)
{
    static const int64_t shape[] = {6, 5}, chunk[] = {4, 2}, start[] = {1, 1}, count[] = {4, 3};
    const int64_t transposed[] = {1, 4}, reversed[] = {-3, -1}, padded[] = {10, 2};
    int32_t in[30], out[64];
    (void)state;
    grv_array_desc desc = desc_of(GRV_STORE_I32, 2, shape, chunk, NULL);
    grv_store *store = open_writable(in_folder("strides"), 1);
    grv_array *array = NULL;
    const int64_t zero[] = {0, 0};
    for (int i = 0; i < 30; i++) in[i] = 100 * (i / 5) + i % 5;
    assert_ok(grv_array_create(store, "a", &desc, &array));
    assert_ok(grv_array_write(array, zero, shape, in, NULL));
    assert_ok(grv_array_read(array, start, count, out, transposed));
    for (int i = 0; i < 12; i++) assert_int_equal(out[i], 100 * (1 + i % 4) + 1 + i / 4);
    assert_ok(grv_array_read(array, start, count, out + 11, reversed));
    for (int i = 0; i < 12; i++) assert_int_equal(out[i], 100 * (4 - i / 3) + 3 - i % 3);
    for (int i = 0; i < 64; i++) out[i] = -1;
    assert_ok(grv_array_read(array, start, count, out, padded));
    for (int i = 0; i < 40; i++)
        assert_int_equal(out[i],
                         i % 10 % 2 == 0 && i % 10 < 6 ? 100 * (1 + i / 10) + 1 + i % 10 / 2 : -1);
    /* written from transposed memory */
    for (int i = 0; i < 12; i++) out[i] = 1000 + i;
    assert_ok(grv_array_write(array, start, count, out, transposed));
    assert_ok(grv_array_read(array, zero, shape, in, NULL));
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 3; j++) assert_int_equal(in[5 * (1 + i) + 1 + j], 1000 + i + 4 * j);
    }
    assert_int_equal(in[0], 0);
    grv_array_close(&array);
    grv_store_close(&store);
}

static void test_empty_and_scalar(void **state)
{
    static const int64_t shape[] = {0, 5}, chunk[] = {3, 5}, zero[] = {0, 0};
    int64_t count[] = {0, 5};
    const double value = 2.5;
    double got = 0;
    (void)state;
    grv_store *store = open_writable(in_folder("empty"), 1);
    grv_array *array = NULL;
    grv_array_desc desc = desc_of(GRV_STORE_F32, 2, shape, chunk, NULL);
    assert_ok(grv_array_create(store, "none", &desc, &array));
    assert_ok(grv_array_read(array, zero, count, NULL, NULL));
    assert_ok(grv_array_write(array, zero, count, NULL, NULL));
    count[0] = 1;
    assert_fails(grv_array_read(array, zero, count, &got, NULL), GRV_E_ARG,
                 "axis 0: elements 0 to 1 asked for, there are 0");
    grv_array_close(&array);
    desc = desc_of(GRV_STORE_F64, 0, NULL, NULL, NULL);
    assert_ok(grv_array_create(store, "scalar", &desc, &array));
    assert_ok(grv_array_write(array, zero, zero, &value, NULL));
    assert_ok(grv_array_read(array, zero, zero, &got, NULL));
    assert_true(got >= 2.5 && got <= 2.5);
    grv_array_close(&array);
    grv_store_close(&store);
}

/* Fill values in all their encodings survive the document, bit by bit. */
static void test_fill_values(void **state)
{
    static const struct {
        grv_store_type type;
        uint64_t fill;
        const char *text;
    } cases[] = {
        {GRV_STORE_U64, UINT64_MAX, "18446744073709551615"},
        {GRV_STORE_I64, (uint64_t)INT64_MIN, "-9223372036854775808"},
        {GRV_STORE_I8, 0x80, "-128"},
        {GRV_STORE_F32, 0x7fc00000, "\"NaN\""},
        {GRV_STORE_F32, 0xffc00001, "\"0xffc00001\""},
        {GRV_STORE_F32, 0x7f800000, "\"Infinity\""},
        {GRV_STORE_F64, 0xfff0000000000000, "\"-Infinity\""},
        {GRV_STORE_F64, 0x7ff8000000000000, "\"NaN\""},
        {GRV_STORE_F64, 0x3fb999999999999a, "0.1"},
        {GRV_STORE_F32, 0x80000000, "-0.0"},
        {GRV_STORE_F16, 0x3c01, "1.0009765625"},
        {GRV_STORE_F16, 0x0001, "5.96046"},
        {GRV_STORE_F16, 0x0000, "0.0"},
        {GRV_STORE_F16, 0x8000, "-0.0"},
        {GRV_STORE_F16, 0x7e01, "\"0x7e01\""},
        {GRV_STORE_BOOL, 1, "true"},
    };
    char name[32], document[4096], path[64], wanted[64];
    (void)state;
    grv_store *store = open_writable(in_folder("fill"), 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t shape[] = {3}, zero[] = {0};
        uint64_t got[3] = {0};
        grv_array *array = NULL;
        grv_array_desc desc = desc_of(cases[i].type, 1, shape, shape, NULL);
        desc.fill = cases[i].fill;
        (void)snprintf(name, sizeof name, "f%zu", i);
        assert_ok(grv_array_create(store, name, &desc, NULL));
        assert_ok(grv_array_open(store, name, &array));
        assert_true(grv_array_get_desc(array)->fill == cases[i].fill);
        assert_ok(grv_array_read(array, zero, shape, got, NULL));
        assert_memory_equal(got, &cases[i].fill, (size_t)grv_store_type_bytes(cases[i].type));
        grv_array_close(&array);
        (void)snprintf(path, sizeof path, "fill/f%zu/zarr.json", i);
        document[read_file(in_folder(path), document, sizeof document - 1)] = '\0';
        (void)snprintf(wanted, sizeof wanted, "\"fill_value\": %s", cases[i].text);
        if (strstr(document, wanted) == NULL) fail_msg("%s not in %s", wanted, document);
    }
    grv_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_codecs), cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_codec_lists),      cmocka_unit_test(test_filters),
        cmocka_unit_test(test_nested_shards),    cmocka_unit_test(test_strides),
        cmocka_unit_test(test_empty_and_scalar), cmocka_unit_test(test_fill_values)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
