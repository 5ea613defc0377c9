/* Stores written by others (shared/data/zarr beside the project): each array reads to the values that its writer meant, or is
 * refused by name. The table is made by make_real_files_table.py with zarr-python. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/crc32c.h"
#include "store_support.h"

typedef struct real_array {
    const char *path;
    uint32_t crc;
    const char *refused; /* part of the message, NULL if it must be read */
} real_array;

static const real_array table[] = {
#include "real_files_table.inc"
};

static const char *folder(void)
{
    static char path[1024];
    const char *const shared = getenv("GRVI_TEST_SHARED_DIR");
    (void)snprintf(path, sizeof path, "%s/data/zarr",
                   shared != NULL ? shared : GRVI_TEST_SHARED_DIR);
    return path;
}

static void skip_without_files(void)
{
    if (access(folder(), R_OK) == 0) return;
    print_message("skipped: no %s\n", folder());
    skip();
}

static void test_arrays(void **state)
{
    (void)state;
    skip_without_files();
    grv_store *store = NULL;
    assert_ok(grv_store_open(folder(), NULL, &store));
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        grv_array *array = NULL;
        const grv_status status = grv_array_open(store, table[i].path, &array);
        if (table[i].refused != NULL) {
            if (status != GRV_E_UNSUPPORTED ||
                strstr(grv_error_message(), table[i].refused) == NULL)
                fail_msg("%s: status %d, \"%s\"; expected to be refused for %s", table[i].path,
                         (int)status, grv_error_message(), table[i].refused);
            continue;
        }
        if (status != GRV_OK) fail_msg("%s: %s", table[i].path, grv_error_message());
        const grv_array_desc *const desc = grv_array_get_desc(array);
        const int64_t zero[GRV_STORE_MAX_RANK] = {0};
        int64_t n_bytes = desc->item_bytes;
        for (int axis = 0; axis < desc->rank; axis++) n_bytes *= desc->shape[axis];
        uint8_t *const data = malloc((size_t)n_bytes);
        assert_non_null(data);
        if (grv_array_read(array, zero, desc->shape, data, NULL) != GRV_OK)
            fail_msg("%s: %s", table[i].path, grv_error_message());
        if (grvi_crc32c(data, n_bytes) != table[i].crc)
            fail_msg("%s: other values than zarr-python reads", table[i].path);
        free(data);
        grv_array_close(&array);
    }
    grv_store_close(&store);
}

static void test_groups(void **state)
{
    (void)state;
    skip_without_files();
    grv_store *store = NULL;
    grv_store_child *children = NULL;
    grv_node_kind kind = GRV_NODE_NONE;
    char *attributes = NULL;
    int64_t n = 0;
    assert_ok(grv_store_open(folder(), NULL, &store));
    assert_ok(grv_store_list(store, "zarrs/hierarchy.zarr/a", &children, &n));
    assert_int_equal(n, 2);
    assert_string_equal(children[0].name, "baz");
    assert_int_equal(children[1].kind, GRV_NODE_ARRAY);
    grv_store_children_free(children, n);
    assert_ok(grv_store_list(store, "zarrita_v3/data.zarr", &children, &n));
    assert_true(n > 40);
    grv_store_children_free(children, n);
    assert_ok(grv_attributes_get(store, "zarrs/hierarchy.zarr/a", &attributes));
    assert_string_equal(attributes, "{}");
    grv_free(attributes);
    assert_ok(grv_attributes_get(store, "zarrs/hierarchy.zarr/a/foo", &attributes));
    assert_true(attributes[0] == '{' && strlen(attributes) > 2);
    grv_free(attributes);
    assert_ok(grv_store_node(store, "zarrita_v2/data.zarr", &kind));
    assert_int_equal(kind, GRV_NODE_GROUP);
    assert_ok(grv_store_list(store, "zarrita_v2/data.zarr", &children, &n));
    assert_true(n > 25);
    grv_store_children_free(children, n);
    /* dimension names of xarray are not among the attributes */
    grv_array *array = NULL;
    static const char xarray_like[] = "zarr_python_2_13/filters_order.zarr/xarray_like";
    assert_ok(grv_attributes_get(store, xarray_like, &attributes));
    assert_null(strstr(attributes, "_ARRAY_DIMENSIONS"));
    assert_non_null(strstr(attributes, "_FillValue"));
    grv_free(attributes);
    assert_ok(grv_array_open(store, xarray_like, &array));
    assert_string_equal(grv_array_get_desc(array)->dimension_names[0], "time");
    grv_array_close(&array);
    grv_store_close(&store);
    assert_fails(grv_store_open(in_folder("absent"), NULL, &store), GRV_E_NOT_FOUND,
                 "no such folder");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arrays),
                                       cmocka_unit_test(test_groups)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
