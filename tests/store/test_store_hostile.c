/* Broken and hostile files: truncated and flipped chunks and indices, absurd metadata. Clear errors, bounded memory, no crash. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_support.h"

enum { ROWS = 6, COLUMNS = 8, MAX_FILE = 4096 };

static const int64_t shape[] = {ROWS, COLUMNS}, zero[] = {0, 0};

static void make_array(const char *location, const grv_array_desc *desc)
{
    int32_t data[ROWS * COLUMNS];
    grv_store *store = open_writable(location, 1);
    grv_array *array = NULL;
    for (int i = 0; i < ROWS * COLUMNS; i++) data[i] = 3 * i + 1;
    assert_ok(grv_array_create(store, "a", desc, &array));
    assert_ok(grv_array_write(array, zero, shape, data, NULL));
    grv_array_close(&array);
    grv_store_close(&store);
}

static grv_status read_array(const char *location, int32_t *data)
{
    grv_store *store = NULL;
    grv_array *array = NULL;
    assert_ok(grv_store_open(location, NULL, &store));
    assert_ok(grv_array_open(store, "a", &array));
    const grv_status status = grv_array_read(array, zero, shape, data, NULL);
    grv_array_close(&array);
    grv_store_close(&store);
    return status;
}

/* Every truncation and every flipped bit of one stored object: an error where something sums the bytes, no crash anywhere. */
static void damage(const char *name, const grv_array_desc *desc, const char *key, bool is_protected)
{
    static uint8_t whole[MAX_FILE], broken[MAX_FILE];
    int32_t data[ROWS * COLUMNS];
    char location[256], path[512];
    (void)snprintf(location, sizeof location, "%s", in_folder(name));
    (void)snprintf(path, sizeof path, "%s/a/%s", location, key);
    make_array(location, desc);
    const size_t n = read_file(path, whole, sizeof whole);
    assert_true(n > 8 && n < MAX_FILE);
    for (size_t k = 0; k < n; k++) {
        write_file(path, whole, k);
        const grv_status status = read_array(location, data);
        if (status != GRV_E_FORMAT &&
            !(status == GRV_OK && !is_protected && desc->compressor == GRV_COMPRESSOR_GZIP))
            fail_msg("%s: %zu of %zu bytes: status %d %s", name, k, n, (int)status,
                     grv_error_message());
        assert_non_null(strstr(grv_error_message(), "of 'a'"));
    }
    for (size_t bit = 0; bit < 8 * n; bit++) {
        memcpy(broken, whole, n);
        broken[bit / 8] = (uint8_t)(broken[bit / 8] ^ (1U << (bit % 8)));
        write_file(path, broken, n);
        const grv_status status = read_array(location, data);
        if (status != GRV_E_FORMAT && !(status == GRV_OK && !is_protected))
            fail_msg("%s: bit %zu of %zu: status %d %s", name, bit, 8 * n, (int)status,
                     grv_error_message());
    }
    write_file(path, whole, n);
    assert_ok(read_array(location, data));
}

static void test_damaged_chunks(void **state)
{
    static const int64_t chunk[] = {3, 8};
    char name[32];
    (void)state;
    for (int codec = GRV_COMPRESSOR_NONE; codec <= GRV_COMPRESSOR_GZIP; codec++) {
        for (int checksum = 0; checksum < 2; checksum++) {
            grv_array_desc desc = desc_of(GRV_STORE_I32, 2, shape, chunk, NULL);
            desc.compressor = (grv_compressor)codec;
            desc.checksum = checksum != 0;
            (void)snprintf(name, sizeof name, "chunk%d-%d", codec, checksum);
            damage(name, &desc, "c/1/0", checksum != 0);
        }
    }
}

static void test_damaged_shards(void **state)
{
    static const int64_t shard[] = {6, 8}, inner[] = {2, 4};
    char name[32];
    (void)state;
    for (int codec = GRV_COMPRESSOR_NONE; codec <= GRV_COMPRESSOR_BLOSC_LZ4; codec++) {
        for (int checksum = 0; checksum < 2; checksum++) {
            grv_array_desc desc = desc_of(GRV_STORE_I32, 2, shape, shard, inner);
            desc.compressor = (grv_compressor)codec;
            desc.checksum = checksum != 0;
            (void)snprintf(name, sizeof name, "shard%d-%d", codec, checksum);
            damage(name, &desc, "c/0/0", checksum != 0);
        }
    }
}

static void test_messages(void **state)
{
    static const int64_t chunk[] = {3, 4}, shard[] = {6, 8}, inner[] = {2, 4};
    static uint8_t file[MAX_FILE];
    int32_t data[ROWS * COLUMNS];
    (void)state;
    grv_array_desc desc = desc_of(GRV_STORE_I32, 2, shape, chunk, NULL);
    desc.compressor = GRV_COMPRESSOR_NONE;
    make_array(in_folder("message"), &desc);
    write_file(in_folder("message/a/c/1/0"), file, 40);
    assert_fails(read_array(in_folder("message"), data), GRV_E_FORMAT,
                 "chunk (1,0) of 'a': 48 bytes expected, 40 read");
    desc = desc_of(GRV_STORE_I32, 2, shape, shard, inner);
    desc.compressor = GRV_COMPRESSOR_NONE;
    make_array(in_folder("message-s"), &desc);
    write_file(in_folder("message-s/a/c/0/0"), file, 40);
    assert_fails(read_array(in_folder("message-s"), data), GRV_E_FORMAT,
                 "shard (0,0) of 'a': shard index: 100 bytes expected, the whole shard has 40");
    desc.checksum = true;
    make_array(in_folder("message-c"), &desc);
    const size_t n = read_file(in_folder("message-c/a/c/0/0"), file, sizeof file);
    file[36 + 5] ^= 1;
    write_file(in_folder("message-c/a/c/0/0"), file, n);
    assert_fails(read_array(in_folder("message-c"), data), GRV_E_FORMAT,
                 "inner chunk (0,1) of shard (0,0) of 'a', 36 bytes at byte 36: crc32c: the 32 "
                 "bytes sum to");
}

/* An index without a checksum, so that its entries must be checked by themselves. */
static void test_hostile_index(void **state)
{
    static const int64_t chunk[] = {6, 8};
    static const uint64_t entries[][2] = {
        {0, 1000},           {1000, 1},       {UINT64_MAX - 7, 8}, {8, UINT64_MAX - 7},
        {UINT64_MAX - 1, 0}, {UINT64_MAX, 1}, {150, 96},           {1, UINT64_MAX}};
    uint8_t file[192 + 32];
    int32_t data[ROWS * COLUMNS];
    (void)state;
    grv_array_desc desc = desc_of(GRV_STORE_I32, 2, shape, chunk, NULL);
    desc.codecs = "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[3,8],"
                  "\"codecs\":[{\"name\":\"bytes\",\"configuration\":"
                  "{\"endian\":\"little\"}}],\"index_codecs\":[{\"name\":\"bytes\","
                  "\"configuration\":{\"endian\":\"little\"}}]}}]";
    make_array(in_folder("index"), &desc);
    assert_int_equal(read_file(in_folder("index/a/c/0/0"), file, sizeof file), sizeof file);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        memcpy(file + 192 + 16, entries[i], 16);
        write_file(in_folder("index/a/c/0/0"), file, sizeof file);
        assert_fails(read_array(in_folder("index"), data), GRV_E_FORMAT,
                     "shard (0,0) of 'a': shard index: entry 1 is");
    }
    /* empty is no error */
    memset(file + 192 + 16, 0xff, 16);
    write_file(in_folder("index/a/c/0/0"), file, sizeof file);
    assert_ok(read_array(in_folder("index"), data));
    assert_int_equal(data[3 * COLUMNS], 0);
    assert_int_equal(data[3 * COLUMNS - 1], 3 * (3 * COLUMNS - 1) + 1);
}

/* A small file that decodes to far more than the chunk: refused, and memory stays small. */
static void test_decompression_bombs(void **state)
{
    static const int64_t big[] = {1, 4 << 20}, chunk[] = {6, 8};
    static uint8_t file[1 << 18];
    int32_t data[ROWS * COLUMNS];
    char name[32], from[64], to[64];
    (void)state;
    for (int codec = GRV_COMPRESSOR_ZSTD; codec <= GRV_COMPRESSOR_GZIP; codec++) {
        grv_store *store = NULL;
        grv_array *array = NULL;
        int32_t *const zeros = calloc((size_t)big[1], sizeof *zeros);
        (void)snprintf(name, sizeof name, "bomb%d", codec);
        (void)snprintf(from, sizeof from, "%s/big/c/0/0", name);
        (void)snprintf(to, sizeof to, "%s/a/c/0/0", name);
        grv_array_desc desc = desc_of(GRV_STORE_I32, 2, shape, chunk, NULL);
        desc.compressor = (grv_compressor)codec;
        make_array(in_folder(name), &desc);
        desc = desc_of(GRV_STORE_I32, 2, big, big, NULL);
        desc.compressor = (grv_compressor)codec;
        desc.fill = 1; /* so that zeros are stored */
        store = open_writable(in_folder(name), 1);
        assert_ok(grv_array_create(store, "big", &desc, &array));
        assert_ok(grv_array_write(array, zero, big, zeros, NULL));
        grv_array_close(&array);
        grv_store_close(&store);
        free(zeros);
        const size_t n = read_file(in_folder(from), file, sizeof file);
        assert_true(n < sizeof file);
        write_file(in_folder(to), file, n);
        assert_fails(read_array(in_folder(name), data), GRV_E_FORMAT, "chunk (0,0) of 'a': ");
    }
}

static const char *const good_document =
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[6,8],\"data_type\":\"int32\",\"chunk_"
    "grid\":{\"name\":\"regular\",\"configuration\":"
    "{\"chunk_shape\":[3,8]}},\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,"
    "\"codecs\":[{\"name\":\"bytes\","
    "\"configuration\":{\"endian\":\"little\"}}]}";

/* good_document with one part replaced */
static void write_document(const char *from, const char *to)
{
    char text[8192];
    const char *const at = strstr(good_document, from);
    assert_non_null(at);
    const int n = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good_document), good_document,
                           to, at + strlen(from));
    write_file(in_folder("meta/a/zarr.json"), text, (size_t)n);
}

static void test_metadata(void **state)
{
    static const struct {
        const char *from, *to, *text;
        grv_status status;
    } cases[] = {
        {"{\"zarr", "[{\"zarr", "zarr.json: JSON broken at byte", GRV_E_FORMAT},
        {"\"zarr_format\":3", "\"zarr_format\":4", "zarr_format 3 expected, found 4",
         GRV_E_UNSUPPORTED},
        {"\"array\"", "\"table\"", "node_type must be array or group, found 'table'", GRV_E_FORMAT},
        {"\"shape\":[6,8]", "\"shape\":[6,-8]", "shape[1] must be an integer from 0", GRV_E_FORMAT},
        {"\"shape\":[6,8]", "\"shape\":[6,9223372036854775807]",
         "shape[1] must be an integer from 0 to 2^60", GRV_E_FORMAT},
        {"\"shape\":[6,8]", "\"shape\":[6,99999999999999999999999]", "shape[1] must be",
         GRV_E_FORMAT},
        {"\"shape\":[6,8]", "\"shape\":[6,1.5]", "shape[1] must be", GRV_E_FORMAT},
        {"\"shape\":[6,8]", "\"shape\":[6]", "chunk_shape must be a list of 1 lengths",
         GRV_E_FORMAT},
        {"\"shape\":[6,8]", "\"shape\":\"6\"", "shape is missing or no list", GRV_E_FORMAT},
        {"\"shape\":[6,8]", "\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "17 axes; at most 16",
         GRV_E_UNSUPPORTED},
        {"\"int32\"", "\"complex256\"", "data type 'complex256' is not supported", GRV_E_UNSUPPORTED},
        {"\"int32\"", "{\"name\":\"numpy.datetime64\"}", "data type 'numpy.datetime64'",
         GRV_E_UNSUPPORTED},
        {"\"int32\"", "7", "data_type is missing", GRV_E_FORMAT},
        {"\"regular\"", "\"rectilinear\"", "chunk grid 'rectilinear'", GRV_E_UNSUPPORTED},
        {"[3,8]", "[3,0]", "chunk_shape[1] must be an integer from 1", GRV_E_FORMAT},
        {"[3,8]", "[1099511627776,8]", "a chunk has more than 2147483647 bytes", GRV_E_UNSUPPORTED},
        {"[3,8]", "[1152921504606846976,1152921504606846976]", "a chunk has more than",
         GRV_E_UNSUPPORTED},
        {"\"name\":\"default\"", "\"name\":\"fancy\"", "chunk key encoding 'fancy'",
         GRV_E_UNSUPPORTED},
        {"{\"name\":\"default\"}", "{\"name\":\"default\",\"configuration\":{\"separator\":\"-\"}}",
         "separator must be", GRV_E_FORMAT},
        {"\"fill_value\":0,", "", "fill_value is missing", GRV_E_FORMAT},
        {"\"fill_value\":0", "\"fill_value\":2147483648",
         "fill_value of a int32 expected, 2147483648 found", GRV_E_FORMAT},
        {"\"fill_value\":0", "\"fill_value\":\"NaN\"", "fill_value of a int32 expected",
         GRV_E_FORMAT},
        {"\"fill_value\":0", "\"fill_value\":null", "fill_value of a int32 expected, null found",
         GRV_E_FORMAT},
        {"\"fill_value\":0", "\"fill_value\":0.5", "fill_value of a int32 expected", GRV_E_FORMAT},
        {"\"fill_value\":0", "\"fill_value\":0,\"surprise\":{}",
         "metadata member 'surprise' is not supported", GRV_E_UNSUPPORTED},
        {"\"fill_value\":0", "\"fill_value\":0,\"storage_transformers\":[{\"name\":\"x\"}]",
         "'storage_transformers'", GRV_E_UNSUPPORTED},
        {"\"fill_value\":0", "\"fill_value\":0,\"dimension_names\":[\"x\"]",
         "dimension_names must be a list of 2", GRV_E_FORMAT},
        {"[{\"name\":\"bytes\"", "[{\"name\":\"zfpy\"},{\"name\":\"bytes\"",
         "codec 'zfpy' is not supported", GRV_E_UNSUPPORTED},
        {"[{\"name\":\"bytes\"", "[{\"name\":\"gzip\"},{\"name\":\"bytes\"",
         "codec 'gzip' is out of order", GRV_E_FORMAT},
        {"[{\"name\":\"bytes\"",
         "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},{\"name\":\"bytes\"",
         "'bytes' is out of order", GRV_E_FORMAT},
        {"\"little\"", "\"middle\"", "endian must be little or big, found 'middle'", GRV_E_FORMAT},
        {",\"configuration\":{\"endian\":\"little\"}", "", "no byte order", GRV_E_FORMAT},
        {"[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]", "[]",
         "codecs is missing, empty", GRV_E_FORMAT},
        {"[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]",
         "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}]",
         "neither 'bytes' nor 'sharding_indexed'", GRV_E_FORMAT},
        {"[{\"name\":\"bytes\"",
         "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,1]}},{\"name\":\"bytes\"",
         "no permutation", GRV_E_FORMAT},
        {"[{\"name\":\"bytes\"", "[{\"configuration\":{}},{\"name\":\"bytes\"",
         "a codec without a name", GRV_E_FORMAT},
        {"little\"}}", "little\"}},{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lzma\"}}",
         "cname 'lzma' is not known", GRV_E_UNSUPPORTED},
        {"little\"}}",
         "little\"}},{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"shuffle\":"
         "\"magic\"}}",
         "shuffle must be", GRV_E_FORMAT},
        {"little\"}}", "little\"}},{\"name\":\"zstd\",\"configuration\":{\"level\":99}}",
         "codec 'zstd': level must be", GRV_E_FORMAT},
    };
    grv_store *store = open_writable(in_folder("meta"), 1);
    (void)state;
    assert_ok(grv_group_create(store, "a", NULL));
    const grv_memory before = grv_memory_get();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        grv_array *array = NULL;
        write_document(cases[i].from, cases[i].to);
        const grv_status status = grv_array_open(store, "a", &array);
        if (status != cases[i].status || strstr(grv_error_message(), cases[i].text) == NULL)
            fail_msg("%s -> %s: status %d, \"%s\"; expected \"%s\"", cases[i].from, cases[i].to,
                     (int)status, grv_error_message(), cases[i].text);
        assert_null(array);
    }
    assert_int_equal(grv_memory_get().bytes, before.bytes);
    assert_true(grv_memory_get().peak_bytes <= before.peak_bytes + (1 << 20));
    grv_store_close(&store);
}

/* What must be accepted although it looks odd. */
static void test_tolerated_metadata(void **state)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"{\"name\":\"default\"}", "\"default\""},
        {"\"fill_value\":0", "\"fill_value\":0,\"surprise\":{\"must_understand\":false}"},
        {"\"fill_value\":0",
         "\"fill_value\":0,\"storage_transformers\":null,\"dimension_names\":null"},
        {"\"fill_value\":0", "\"fill_value\":\"0\",\"storage_transformers\":[]"},
        {"\"fill_value\":0", "\"fill_value\":0.0,\"attributes\":{\"x\":NaN}"},
        {"\"name\":\"bytes\"", "\"name\":\"endian\""},
        {"[{\"name\":\"bytes\"",
         "[{\"name\":\"annotate\",\"must_understand\":false},{\"name\":\"bytes\""},
        {"little\"}}", "little\"}},\"crc32c\""},
    };
    grv_store *store = NULL;
    (void)state;
    assert_ok(grv_store_open(in_folder("meta"), NULL, &store));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        grv_array *array = NULL;
        int32_t data[ROWS * COLUMNS];
        write_document(cases[i].from, cases[i].to);
        assert_ok(grv_array_open(store, "a", &array));
        assert_ok(grv_array_read(array, zero, shape, data, NULL));
        assert_int_equal(data[ROWS * COLUMNS - 1], 0);
        grv_array_close(&array);
    }
    grv_store_close(&store);
}

static void test_names(void **state)
{
    static const char *const bad[] = {"../a", "a/../b",   "/a",          "a/",   "a//b",
                                      ".",    "__hidden", "a/zarr.json", "a\\b", "a\nb"};
    static const int64_t one[] = {1};
    grv_store *store = open_writable(in_folder("names"), 1);
    const grv_array_desc desc = desc_of(GRV_STORE_U8, 1, one, one, NULL);
    grv_store *reader = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_fails(grv_array_create(store, bad[i], &desc, NULL), GRV_E_ARG, "name '");
    assert_fails(grv_store_put(store, "../x", "1", 1), GRV_E_ARG, "name '../x'");
    assert_ok(grv_array_create(store, "a/b", &desc, NULL));
    assert_fails(grv_array_create(store, "a/b", &desc, NULL), GRV_E_EXISTS, "array 'a/b'");
    assert_fails(grv_group_create(store, "a", NULL), GRV_E_EXISTS, "group 'a'");
    assert_fails(grv_array_create(store, "a/b/c", &desc, NULL), GRV_E_EXISTS,
                 "'a/b' is an array and cannot have children");
    assert_ok(grv_store_open(in_folder("names"), NULL, &reader));
    assert_fails(grv_array_create(reader, "q", &desc, NULL), GRV_E_ARG, "reading only");
    grv_store_close(&reader);
    grv_store_close(&store);
}

/* Attributes are replaced, everything else is kept, a consolidated copy that would be stale is dropped. */
static void test_attributes(void **state)
{
    static const char *const group = "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{"
                                     "\"a\":1},\"consolidated_metadata\":"
                                     "{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{"
                                     "}},\"other\":{\"must_understand\":false}}";
    static const int64_t one[] = {1};
    char text[1024], *attributes = NULL;
    grv_store *store = open_writable(in_folder("attributes"), 1);
    const grv_array_desc desc = desc_of(GRV_STORE_U8, 1, one, one, NULL);
    (void)state;
    write_file(in_folder("attributes/zarr.json"), group, strlen(group));
    assert_ok(grv_array_create(store, "x", &desc, NULL));
    text[read_file(in_folder("attributes/zarr.json"), text, sizeof text - 1)] = '\0';
    assert_null(strstr(text, "consolidated_metadata"));
    assert_non_null(strstr(text, "\"other\""));
    assert_ok(grv_attributes_set(store, "", "{\"b\": [1, 2.5, \"\\u00e4\"]}"));
    assert_ok(grv_attributes_get(store, "", &attributes));
    assert_string_equal(attributes, "{\"b\":[1,2.5,\"\xc3\xa4\"]}");
    grv_free(attributes);
    text[read_file(in_folder("attributes/zarr.json"), text, sizeof text - 1)] = '\0';
    assert_non_null(strstr(text, "\"other\""));
    assert_fails(grv_attributes_set(store, "", "[1]"), GRV_E_FORMAT, "must be a JSON object");
    assert_fails(grv_attributes_set(store, "", "{\"b\": "), GRV_E_FORMAT,
                 "attributes: JSON broken at byte");
    assert_fails(grv_attributes_set(store, "y", "{}"), GRV_E_NOT_FOUND, "no group or array 'y'");
    assert_ok(grv_attributes_set(store, "x", "{\"unit\": \"m\"}"));
    assert_ok(grv_attributes_get(store, "x", &attributes));
    assert_string_equal(attributes, "{\"unit\":\"m\"}");
    grv_free(attributes);
    grv_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged_chunks),
                                       cmocka_unit_test(test_damaged_shards),
                                       cmocka_unit_test(test_messages),
                                       cmocka_unit_test(test_hostile_index),
                                       cmocka_unit_test(test_decompression_bombs),
                                       cmocka_unit_test(test_metadata),
                                       cmocka_unit_test(test_tolerated_metadata),
                                       cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_attributes)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
