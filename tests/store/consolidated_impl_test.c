/* Consolidated metadata of both versions: made, dropped when something below changes, and used where a back end cannot list. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "store/store_impl.h"
#include "store_support.h"

static grvi_kv_class class_without_lists;

static grv_status refuse_list(grvi_kv *kv, const char *prefix, grvi_kv_visit *visit, void *argument)
{
    (void)kv;
    (void)prefix;
    (void)visit;
    (void)argument;
    GRV_FAIL(GRV_E_UNSUPPORTED, "no lists here");
}

/* A store through a back end like HTTP's. */
static grv_store *open_without_lists(const char *location)
{
    grv_store *store = NULL;
    assert_ok(grv_store_open(location, NULL, &store));
    assert_true(store->has_lists);
    class_without_lists = *store->kv->class;
    class_without_lists.put = NULL;
    class_without_lists.list = refuse_list;
    store->kv->class = &class_without_lists;
    assert_ok(grvi_store_find_lists(store));
    assert_false(store->has_lists);
    return store;
}

static void make_tree(const char *location, int zarr_format, int32_t value)
{
    static const int64_t two[] = {2}, zero[] = {0};
    const int32_t data[] = {value, value + 1};
    grv_store_params params = grv_store_params_default();
    grv_store *store = NULL;
    grv_array *array = NULL;
    grv_array_desc desc = desc_of(GRV_STORE_I32, 1, two, two, NULL);
    params.writable = true;
    params.zarr_format = zarr_format;
    desc.zarr_format = zarr_format;
    desc.dimension_names[0] = "t";
    desc.attributes = "{\"unit\": \"m\"}";
    assert_ok(grv_store_open(location, &params, &store));
    assert_ok(grv_group_create(store, "", "{\"title\": \"top\"}"));
    assert_ok(grv_group_create(store, "g/deep", NULL));
    assert_ok(grv_array_create(store, "g/a", &desc, &array));
    assert_ok(grv_array_write(array, zero, two, data, NULL));
    grv_array_close(&array);
    assert_ok(grv_array_create(store, "b", &desc, NULL));
    assert_ok(grv_store_consolidate(store, ""));
    grv_store_close(&store);
}

static void check_list(grv_store *store, const char *path, const char *names)
{
    grv_store_child *children = NULL;
    int64_t n = 0;
    char found[64] = "";
    assert_ok(grv_store_list(store, path, &children, &n));
    for (int64_t i = 0; i < n; i++) {
        (void)strcat(found, children[i].name);
        (void)strcat(found, children[i].kind == GRV_NODE_GROUP ? "/ " : " ");
    }
    assert_string_equal(found, names);
    grv_store_children_free(children, n);
}

static void test_reading(void **state)
{
    static const int64_t two[] = {2}, zero[] = {0};
    static const char *const documents[] = {"g/zarr.json", "g/a/zarr.json", "g/.zgroup",
                                            "g/a/.zarray", "g/a/.zattrs"};
    (void)state;
    for (int version = 2; version <= 3; version++) {
        char name[32], path[64], *attributes = NULL;
        grv_array *array = NULL;
        grv_node_kind kind = GRV_NODE_NONE;
        int32_t data[2] = {0};
        (void)snprintf(name, sizeof name, "read%d", version);
        make_tree(in_folder(name), version, 5);
        /* the copy is enough */
        for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
            (void)snprintf(path, sizeof path, "%s/%s", name, documents[i]);
            (void)remove(in_folder(path));
        }
        grv_store *store = open_without_lists(in_folder(name));
        check_list(store, "", "b g/ ");
        check_list(store, "g", "a deep/ ");
        check_list(store, "g/deep", "");
        assert_ok(grv_store_node(store, "g", &kind));
        assert_int_equal(kind, GRV_NODE_GROUP);
        assert_ok(grv_store_node(store, "g/none", &kind));
        assert_int_equal(kind, GRV_NODE_NONE);
        assert_ok(grv_array_open(store, "g/a", &array));
        assert_string_equal(grv_array_get_desc(array)->dimension_names[0], "t");
        assert_ok(grv_array_read(array, zero, two, data, NULL));
        assert_int_equal(data[1], 6);
        grv_array_close(&array);
        assert_ok(grv_attributes_get(store, "g/a", &attributes));
        assert_string_equal(attributes, "{\"unit\":\"m\"}");
        grv_free(attributes);
        grv_store_close(&store);
    }
}

static void test_dropped(void **state)
{
    static const int64_t two[] = {2};
    char text[4096];
    (void)state;
    make_tree(in_folder("drop2"), 2, 0);
    make_tree(in_folder("drop3"), 3, 0);
    assert_int_equal(access(in_folder("drop2/.zmetadata"), F_OK), 0);
    text[read_file(in_folder("drop3/zarr.json"), text, sizeof text - 1)] = '\0';
    assert_non_null(strstr(text, "\"consolidated_metadata\""));
    assert_non_null(strstr(text, "\"g/a\""));
    assert_non_null(strstr(text, "\"title\""));
    for (int version = 2; version <= 3; version++) {
        grv_store *store = open_writable(in_folder(version == 2 ? "drop2" : "drop3"), 1);
        grv_array_desc desc = desc_of(GRV_STORE_I32, 1, two, two, NULL);
        desc.zarr_format = version;
        if (version == 2)
            assert_ok(grv_attributes_set(store, "g/a", "{}"));
        else
            assert_ok(grv_array_create(store, "g/new", &desc, NULL));
        grv_store_close(&store);
    }
    assert_int_not_equal(access(in_folder("drop2/.zmetadata"), F_OK), 0);
    text[read_file(in_folder("drop3/zarr.json"), text, sizeof text - 1)] = '\0';
    assert_null(strstr(text, "\"consolidated_metadata\""));
    assert_non_null(strstr(text, "\"title\""));
}

static void test_refused(void **state)
{
    grv_store_child *children = NULL;
    int64_t n = 0;
    (void)state;
    make_tree(in_folder("refused"), 2, 0);
    grv_store *writer = open_writable(in_folder("refused"), 1);
    assert_fails(grv_store_consolidate(writer, "b"), GRV_E_NOT_FOUND, "no group 'b'");
    write_file(in_folder("refused/g/a/.zarray"), "{}", 2);
    assert_fails(grv_store_consolidate(writer, ""), GRV_E_FORMAT,
                 "'g/a' has metadata that are broken or not supported");
    grv_store_close(&writer);
    assert_int_equal(remove(in_folder("refused/.zmetadata")), 0);
    grv_store *store = open_without_lists(in_folder("refused"));
    assert_fails(grv_store_list(store, "", &children, &n), GRV_E_UNSUPPORTED, "no lists here");
    assert_fails(grv_store_consolidate(store, ""), GRV_E_ARG, "reading only");
    grv_store_close(&store);
}

/* Everything once, in a tree of version 2 with filters: the first failing allocation is reported. */
static grv_status work(const char *location, const char *path)
{
    static const int64_t shape[] = {40}, zero[] = {0}, some[] = {7};
    static const double fill[2] = {1, 2};
    grv_status status = GRV_OK;
    grv_store *store = NULL, *reader = NULL;
    grv_array *array = NULL;
    grv_store_child *children = NULL;
    int64_t n = 0;
    int16_t data[40] = {5};
    grv_store_params params = grv_store_params_default();
    grv_array_desc desc = desc_of(GRV_STORE_I16, 1, shape, shape, NULL),
                   wide = desc_of(GRV_STORE_C128, 1, shape, shape, NULL);
    params.writable = true;
    desc.zarr_format = wide.zarr_format = 2;
    wide.fill_bytes = fill;
    desc.codecs = "[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i2\",\"astype\":"
                  "\"<i4\"}},{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
                  "{\"name\":\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":4}},"
                  "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"zstd\",\"clevel\":1,"
                  "\"shuffle\":\"shuffle\",\"typesize\":4,\"blocksize\":0}}]";
    desc.attributes = "{\"a\": 1}";
    desc.dimension_names[0] = "x";
    GRV_TRY_GOTO(grv_store_open(location, &params, &store));
    GRV_TRY_GOTO(grv_array_create(store, path, &desc, &array));
    GRV_TRY_GOTO(grv_array_write(array, zero, shape, data, NULL));
    GRV_TRY_GOTO(grv_array_write(array, some, some, data, NULL));
    GRV_TRY_GOTO(grv_array_read(array, some, some, data, NULL));
    grv_array_close(&array);
    GRV_TRY_GOTO(grv_array_create(store, "wide", &wide, &array));
    GRV_TRY_GOTO(grv_attributes_set(store, path, "{\"b\": 2}"));
    GRV_TRY_GOTO(grv_store_consolidate(store, ""));
    GRV_TRY_GOTO(grv_store_open(location, NULL, &reader));
    reader->has_lists = false;
    GRV_TRY_GOTO(grv_store_list(reader, "", &children, &n));
done:
    grvi_alloc_fail_after(-1);
    grv_store_children_free(children, n);
    grv_array_close(&array);
    grv_store_close(&reader);
    grv_store_close(&store);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    const int64_t held = grv_memory_get().bytes;
    int64_t countdown = 0;
    for (;; countdown++) {
        char name[32];
        (void)snprintf(name, sizeof name, "memory%lld", (long long)countdown);
        assert_int_equal(mkdir(in_folder(name), 0700), 0);
        grvi_alloc_fail_after(countdown);
        const grv_status status = work(in_folder(name), "g/a");
        assert_int_equal(grv_memory_get().bytes, held);
        if (status == GRV_OK) break;
        if (status != GRV_E_NOMEM) fail_msg("%lld: %s", (long long)countdown, grv_error_trace());
    }
    assert_true(countdown > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reading), cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
