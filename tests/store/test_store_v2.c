/* Version 2: trees of one version, attributes and dimension names, nested chunks without a word about them, and metadata that must be
 * refused or tolerated. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_support.h"

static const int64_t shape[] = {4, 3}, chunk[] = {2, 3}, zero[] = {0, 0};

static grv_array_desc v2_desc(void)
{
    grv_array_desc desc = desc_of(GRV_STORE_I32, 2, shape, chunk, NULL);
    desc.zarr_format = 2;
    return desc;
}

static void test_trees(void **state)
{
    (void)state;
    grv_store *store = open_writable(in_folder("tree"), 1);
    grv_array_desc desc = v2_desc();
    grv_array *array = NULL;
    /* the first array decides for the groups above it */
    assert_ok(grv_array_create(store, "g/a", &desc, NULL));
    assert_int_equal(access(in_folder("tree/.zgroup"), F_OK), 0);
    assert_int_equal(access(in_folder("tree/g/.zgroup"), F_OK), 0);
    assert_int_equal(access(in_folder("tree/g/a/.zarray"), F_OK), 0);
    /* and they for all below */
    assert_ok(grv_group_create(store, "h", "{\"x\": 1}"));
    assert_int_equal(access(in_folder("tree/h/.zattrs"), F_OK), 0);
    desc.zarr_format = 3;
    assert_fails(grv_array_create(store, "h/b", &desc, NULL), GRV_E_UNSUPPORTED,
                 "'/' is a group of Zarr version 2");
    assert_fails(grv_array_create(store, "g/a", &desc, NULL), GRV_E_EXISTS, "array 'g/a'");
    assert_fails(grv_group_create(store, "g/a/below", NULL), GRV_E_EXISTS, "'g/a' is an array");
    assert_fails(grv_array_create(store, "h/.zattrs", &desc, NULL), GRV_E_ARG, "reserved");
    grv_store_close(&store);
    store = open_writable(in_folder("tree3"), 1);
    assert_ok(grv_group_create(store, "g", NULL));
    desc.zarr_format = 2;
    assert_fails(grv_array_create(store, "g/a", &desc, NULL), GRV_E_UNSUPPORTED,
                 "'/' is a group of Zarr version 3");
    desc.zarr_format = 1;
    assert_fails(grv_array_create(store, "g/a", &desc, &array), GRV_E_ARG,
                 "Zarr version 2 or 3 expected, 1 asked for");
    assert_null(array);
    grv_store_close(&store);
}

static void check_names(grv_store *store, bool present)
{
    grv_array *array = NULL;
    assert_ok(grv_array_open(store, "a", &array));
    const grv_array_desc *const desc = grv_array_get_desc(array);
    for (int i = 0; i < 2; i++) {
        if (present)
            assert_string_equal(desc->dimension_names[i], i == 0 ? "y" : "x");
        else
            assert_null(desc->dimension_names[i]);
    }
    grv_array_close(&array);
}

static void test_attributes(void **state)
{
    char text[512], *attributes = NULL;
    (void)state;
    grv_store *store = open_writable(in_folder("attributes"), 1);
    grv_array_desc desc = v2_desc();
    desc.dimension_names[0] = "y";
    assert_fails(grv_array_create(store, "a", &desc, NULL), GRV_E_UNSUPPORTED,
                 "names for all dimensions or for none");
    desc.dimension_names[1] = "x";
    desc.attributes = "{\"unit\": \"m\"}";
    assert_ok(grv_array_create(store, "a", &desc, NULL));
    check_names(store, true);
    assert_ok(grv_attributes_set(store, "a", "{\"unit\": \"s\", \"_FillValue\": NaN}"));
    check_names(store, true);
    assert_ok(grv_attributes_get(store, "a", &attributes));
    assert_string_equal(attributes, "{\"unit\":\"s\",\"_FillValue\":NaN}");
    grv_free(attributes);
    text[read_file(in_folder("attributes/a/.zattrs"), text, sizeof text - 1)] = '\0';
    assert_non_null(strstr(text, "_ARRAY_DIMENSIONS"));
    assert_fails(grv_attributes_set(store, "a", "[]"), GRV_E_FORMAT, "must be a JSON object");
    /* of another length they are an attribute like others */
    assert_ok(grv_attributes_set(store, "a", "{\"_ARRAY_DIMENSIONS\": [\"only\"]}"));
    check_names(store, false);
    assert_ok(grv_attributes_get(store, "a", &attributes));
    assert_string_equal(attributes, "{\"_ARRAY_DIMENSIONS\":[\"only\"]}");
    grv_free(attributes);
    assert_ok(grv_attributes_get(store, "", &attributes));
    assert_string_equal(attributes, "{}");
    grv_free(attributes);
    grv_store_close(&store);
}

static const char *const good =
    "{\"zarr_format\":2,\"shape\":[4,3],\"chunks\":[2,3],\"dtype\":\"<i4\",\"compressor\":null,"
    "\"fill_value\":7,\"filters\":null,\"order\":\"C\"}";

/* The good document with the first `from` replaced. */
static void write_zarray(const char *from, const char *to)
{
    char text[2048];
    const char *const at = strstr(good, from);
    assert_non_null(at);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    write_file(in_folder("meta/a/.zarray"), text, strlen(text));
}

static void test_refused(void **state)
{
    static const struct {
        const char *from, *to, *text;
        grv_status status;
    } cases[] = {
        {"\"zarr_format\":2", "\"zarr_format\":1", "zarr_format 2 expected in .zarray, found 1",
         GRV_E_UNSUPPORTED},
        {"\"shape\":[4,3],", "", "shape is missing", GRV_E_FORMAT},
        {"\"shape\":[4,3]", "\"shape\":[4,-3]", "shape[1] must be an integer", GRV_E_FORMAT},
        {"\"chunks\":[2,3]", "\"chunks\":[2]", "chunk_shape must be a list of 2", GRV_E_FORMAT},
        {"\"chunks\":[2,3]", "\"chunks\":true", "chunks is missing or no list", GRV_E_FORMAT},
        {"\"chunks\":[2,3]", "\"chunks\":[2,0]", "chunk_shape[1] must be", GRV_E_FORMAT},
        {"\"chunks\":[2,3]", "\"chunks\":[2,3],\"chunks\":[4,3]", "the key 'chunks' is there twice",
         GRV_E_FORMAT},
        {"\"<i4\"", "\"|O\"", "data type '|O' is not supported", GRV_E_UNSUPPORTED},
        {"\"<i4\"", "\"<M8[ns]\"", "data type '<M8[ns]' is not supported", GRV_E_UNSUPPORTED},
        {"\"<i4\"", "[[\"x\",\"<f4\"]]", "structured types are not supported", GRV_E_UNSUPPORTED},
        {"\"<i4\"", "\"|i4\"", "data type '|i4' has no byte order", GRV_E_FORMAT},
        {"\"<i4\"", "\"<i3\"", "data type '<i3' is not supported", GRV_E_UNSUPPORTED},
        {"\"<i4\"", "\"|S0\"", "an element must have 1 to", GRV_E_UNSUPPORTED},
        {"\"<i4\"", "\"|V999999999\"", "an element must have 1 to", GRV_E_UNSUPPORTED},
        {"\"<i4\"", "\"<U99999999999999999999\"", "is not supported", GRV_E_UNSUPPORTED},
        {"\"dtype\":\"<i4\",", "", "dtype is missing", GRV_E_FORMAT},
        {"\"compressor\":null,", "", "compressor is missing", GRV_E_FORMAT},
        {"\"compressor\":null", "\"compressor\":{\"id\":\"lzma\"}",
         "codec 'numcodecs.lzma' is not supported", GRV_E_UNSUPPORTED},
        {"\"compressor\":null", "\"compressor\":{\"level\":1}", "without an id", GRV_E_FORMAT},
        {"\"compressor\":null", "\"compressor\":{\"id\":\"blosc\",\"shuffle\":3}",
         "shuffle must be an integer from -1 to 2", GRV_E_FORMAT},
        {"\"compressor\":null", "\"compressor\":{\"id\":\"zlib\",\"level\":10}",
         "codec 'numcodecs.zlib': level must be", GRV_E_FORMAT},
        {"\"fill_value\":7,", "", "fill_value is missing", GRV_E_FORMAT},
        {"\"fill_value\":7", "\"fill_value\":\"AAAA\"", "fill_value of a int32 expected",
         GRV_E_FORMAT},
        {"\"filters\":null", "\"filters\":{}", "filters is neither a list nor null", GRV_E_FORMAT},
        {"\"filters\":null",
         "\"filters\":[{\"id\":\"shuffle\"},{\"id\":\"delta\",\"dtype\":\"<i4\"}]",
         "filter 'numcodecs.delta' after a codec of bytes", GRV_E_UNSUPPORTED},
        {"\"filters\":null", "\"filters\":[{\"id\":\"delta\",\"dtype\":\"<i8\"}]",
         "dtype is int64, the elements are int32", GRV_E_FORMAT},
        {"\"filters\":null", "\"filters\":[{\"id\":\"delta\",\"dtype\":\">i4\"}]",
         "takes another byte order", GRV_E_UNSUPPORTED},
        {"\"filters\":null", "\"filters\":[{\"id\":\"delta\",\"dtype\":\"<c8\"}]",
         "must be a numeric type", GRV_E_UNSUPPORTED},
        {"\"filters\":null",
         "\"filters\":[{\"id\":\"fixedscaleoffset\",\"dtype\":\"<i4\",\"scale\":2}]",
         "offset must be a number", GRV_E_FORMAT},
        {"\"filters\":null", "\"filters\":[{\"id\":\"astype\",\"decode_dtype\":\"<i4\"}]",
         "without encode_dtype", GRV_E_FORMAT},
        {"\"filters\":null", "\"filters\":[{\"id\":\"vlen-utf8\"}]",
         "codec 'numcodecs.vlen-utf8' is not supported", GRV_E_UNSUPPORTED},
        {"\"order\":\"C\"", "\"order\":\"A\"", "order must be C or F, found 'A'", GRV_E_FORMAT},
        {"\"order\":\"C\"", "\"order\":\"C\",\"dimension_separator\":\"-\"", "separator must be",
         GRV_E_FORMAT},
        {"\"order\":\"C\"}", "\"order\":\"C\"", "JSON broken at byte", GRV_E_FORMAT},
    };
    (void)state;
    grv_store *store = open_writable(in_folder("meta"), 1);
    grv_array_desc desc = v2_desc();
    assert_ok(grv_array_create(store, "a", &desc, NULL));
    const grv_memory before = grv_memory_get();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        grv_array *array = NULL;
        write_zarray(cases[i].from, cases[i].to);
        const grv_status status = grv_array_open(store, "a", &array);
        if (status != cases[i].status || strstr(grv_error_message(), cases[i].text) == NULL)
            fail_msg("%s -> %s: status %d, \"%s\"; expected \"%s\"", cases[i].from, cases[i].to,
                     (int)status, grv_error_message(), cases[i].text);
        assert_null(array);
    }
    write_zarray("2", "2");
    write_file(in_folder("meta/a/.zattrs"), "[]", 2);
    grv_array *array = NULL;
    assert_fails(grv_array_open(store, "a", &array), GRV_E_FORMAT, ".zattrs is no JSON object");
    assert_int_equal(remove(in_folder("meta/a/.zattrs")), 0);
    assert_int_equal(grv_memory_get().bytes, before.bytes);
    grv_store_close(&store);
}

/* What must be accepted although it looks odd, and the element that is then read where nothing was written. */
static void test_tolerated(void **state)
{
    static const struct {
        const char *from, *to;
        int32_t value;
    } cases[] = {
        {"\"fill_value\":7", "\"fill_value\":null", 0},
        {"\"fill_value\":7", "\"fill_value\":7.0,\"unknown\":{\"a\":1}", 7},
        {"\"filters\":null", "\"filters\":[]", 7},
        {"\"compressor\":null", "\"compressor\":{\"id\":\"blosc\",\"shuffle\":-1,\"numThreads\":4}",
         7},
        {"\"compressor\":null", "\"compressor\":{\"id\":\"gzip\",\"level\":-1}", 7},
        {"\"dtype\":\"<i4\"", "\"dtype\":\"<u1\"", 0x07070707},
        {"<i4\",\"compressor\":null,\"fill_value\":7", "|b1\",\"compressor\":null,\"fill_value\":1",
         0x01010101},
        {"\"shape\":[4,3],\"chunks\":[2,3]", "\"shape\":[4,3],\"chunks\":[9,9]", 7},
        {"\"order\":\"C\"", "\"order\":\"F\",\"dimension_separator\":null", 7},
    };
    (void)state;
    grv_store *store = NULL;
    assert_ok(grv_store_open(in_folder("meta"), NULL, &store));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        grv_array *array = NULL;
        int32_t data[12] = {-1};
        write_zarray(cases[i].from, cases[i].to);
        assert_ok(grv_array_open(store, "a", &array));
        assert_ok(grv_array_read(array, zero, shape, data, NULL));
        assert_int_equal(data[0], cases[i].value);
        grv_array_close(&array);
    }
    grv_store_close(&store);
}

/* Nested chunks of stores from before `dimension_separator`, with and without the first chunk. */
static void test_nested_chunks(void **state)
{
    static const char *const keys[] = {"meta/a/0/0", "meta/a/1/0", "meta/a/0.0"};
    int32_t data[12], values[6] = {1, 2, 3, 4, 5, 6};
    (void)state;
    grv_store *store = NULL;
    assert_ok(grv_store_open(in_folder("meta"), NULL, &store));
    write_zarray("2", "2");
    for (int i = 0; i < 3; i++) {
        grv_array *array = NULL;
        const int folder = i == 1 ? 1 : 0;
        if (i < 2)
            assert_int_equal(mkdir(in_folder(folder != 0 ? "meta/a/1" : "meta/a/0"), 0700), 0);
        write_file(in_folder(keys[i]), values, sizeof values);
        assert_ok(grv_array_open(store, "a", &array));
        assert_int_equal(grv_array_get_desc(array)->key_separator, i < 2 ? '/' : '.');
        assert_ok(grv_array_read(array, zero, shape, data, NULL));
        assert_int_equal(data[i == 1 ? 11 : 5], 6);
        assert_int_equal(data[i == 1 ? 5 : 11], 7);
        grv_array_close(&array);
        assert_int_equal(remove(in_folder(keys[i])), 0);
        if (i < 2) assert_int_equal(remove(in_folder(folder != 0 ? "meta/a/1" : "meta/a/0")), 0);
    }
    grv_store_close(&store);
}

/* What version 2 has no words for. */
static void test_not_writable(void **state)
{
    static const struct {
        const char *codecs, *text;
    } cases[] = {
        {"[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},"
         "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[3,2],\"codecs\":["
         "\"bytes\"],"
         "\"index_codecs\":[\"bytes\"]}}]",
         "Zarr version 2 has no codec 'sharding_indexed'"},
        {"[{\"name\":\"zfpy\"},\"bytes\"]", "no codec 'zfpy'"},
    };
    static const int64_t cube[] = {4, 3, 2};
    (void)state;
    grv_store *store = open_writable(in_folder("unwritable"), 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        grv_array_desc desc = v2_desc();
        desc.codecs = cases[i].codecs;
        assert_fails(grv_array_create(store, "a", &desc, NULL), GRV_E_UNSUPPORTED, cases[i].text);
    }
    grv_array_desc desc = desc_of(GRV_STORE_BF16, 3, cube, cube, NULL);
    desc.zarr_format = 2;
    desc.codecs = "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,2,0]}},"
                  "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]";
    assert_fails(grv_array_create(store, "a", &desc, NULL), GRV_E_UNSUPPORTED,
                 "axes as they are or reversed");
    desc.codecs = NULL;
    desc.big_endian = true;
    assert_fails(grv_array_create(store, "a", &desc, NULL), GRV_E_UNSUPPORTED,
                 "bfloat16 in Zarr version 2 is little-endian");
    assert_int_not_equal(access(in_folder("unwritable/a"), F_OK), 0);
    grv_store_close(&store);
}

/* From version 2 to version 3 by the description alone. */
static void test_conversion(void **state)
{
    static const char *const codecs =
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},"
        "{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i4\",\"astype\":\"<i4\"}},"
        "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
        "{\"name\":\"zstd\",\"configuration\":{\"level\":3}}]";
    const int32_t values[12] = {5, -3, 8, 1000000, 0, 7, 7, 7, 2, 1, 9, -9};
    int32_t data[12];
    (void)state;
    grv_store *old = open_writable(in_folder("from"), 1), *new = open_writable(in_folder("to"), 1);
    grv_array *from = NULL, *to = NULL;
    grv_array_desc desc = v2_desc();
    desc.codecs = codecs;
    desc.key_separator = '/';
    assert_ok(grv_array_create(old, "a", &desc, NULL));
    assert_ok(grv_array_open(old, "a", &from));
    assert_ok(grv_array_write(from, zero, shape, values, NULL));
    /* an opened description makes the same array in the other version */
    desc = *grv_array_get_desc(from);
    assert_string_equal(desc.codecs, codecs);
    desc.zarr_format = 3;
    assert_ok(grv_array_create(new, "a", &desc, &to));
    assert_ok(grv_array_read(from, zero, shape, data, NULL));
    assert_memory_equal(data, values, sizeof values);
    assert_ok(grv_array_write(to, zero, shape, data, NULL));
    assert_int_equal(access(in_folder("to/a/1/0"), F_OK), 0);
    grv_array_close(&to);
    assert_ok(grv_array_open(new, "a", &to));
    memset(data, 0, sizeof data);
    assert_ok(grv_array_read(to, zero, shape, data, NULL));
    assert_memory_equal(data, values, sizeof values);
    grv_array_close(&to);
    grv_array_close(&from);
    grv_store_close(&new);
    grv_store_close(&old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees),         cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_tolerated),
        cmocka_unit_test(test_nested_chunks), cmocka_unit_test(test_not_writable),
        cmocka_unit_test(test_conversion)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
