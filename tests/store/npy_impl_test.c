/* Arrays out of .npy and bare float32 files: what NumPy writes is taken, everything else is refused with what to do about it. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/npy.h"
#include "store_support.h"

enum { MOST = 4096 };

/* A file with this head, padded as NumPy does, and n_bytes of data; its length. */
static size_t file_of(int version, const char *head, const void *data, size_t n_bytes,
                      char bytes[MOST])
{
    const size_t head_at = version == 1 ? 10 : 12,
                 n_head = (strlen(head) + head_at + 1 + 63) / 64 * 64 - head_at;
    memcpy(bytes, "\x93NUMPY\0\0\0\0\0\0", 12);
    bytes[6] = (char)version;
    bytes[8] = (char)(n_head & 255);
    bytes[9] = (char)(n_head >> 8);
    memset(bytes + head_at, ' ', n_head);
    memcpy(bytes + head_at, head, strlen(head));
    bytes[head_at + n_head - 1] = '\n';
    if (n_bytes > 0) memcpy(bytes + head_at + n_head, data, n_bytes);
    return head_at + n_head + n_bytes;
}

static void test_heads(void **state)
{
    static const struct {
        int version;
        const char *head;
        size_t n_bytes;
        grv_status status;
        const char *message; /* or the shape */
    } cases[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24, GRV_OK, "2 3"},
        {2, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", 16, GRV_OK, "2"},
        {3, "{\"shape\": (), \"fortran_order\": False, \"descr\": \"<f8\"}", 8, GRV_OK, ""},
        {1, "{'descr':'<f4','fortran_order':False,'shape':(4,0,2)}", 0, GRV_OK, "4 0 2"},
        {4, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8, GRV_E_UNSUPPORTED,
         "version 1 to 3"},
        {1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8, GRV_E_UNSUPPORTED,
         "'>f4' found; in Python: a.astype('float32')"},
        {1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", 16, GRV_E_UNSUPPORTED,
         "'<i8' found"},
        {1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8,
         GRV_E_UNSUPPORTED, "records found"},
        {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16, GRV_E_UNSUPPORTED,
         "numpy.ascontiguousarray"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 20, GRV_E_FORMAT,
         "6 elements of 4 bytes expected behind the head, 20 bytes found"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 28, GRV_E_FORMAT,
         "28 bytes found"},
        {1, "{'descr': '<f4', 'fortran_order': False, }", 8, GRV_E_FORMAT, "lacks"},
        {1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8,
         GRV_E_FORMAT, "'descr' found"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", 8, GRV_E_FORMAT,
         "'more' found"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 8, GRV_E_FORMAT,
         "shape of at most"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}", 24, GRV_E_FORMAT,
         "does not end"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 8,
         GRV_E_FORMAT, "too large"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 8,
         GRV_E_FORMAT, "shape of at most"},
        {1, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}", 8, GRV_E_FORMAT,
         "True or False"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", 8, GRV_E_FORMAT,
         "behind its end"},
        {1, "{'descr': '<f4", 8, GRV_E_FORMAT, "does not end"},
        {1, "nothing", 8, GRV_E_FORMAT, "no dictionary"},
    };
    static char bytes[MOST];
    static const char zeros[64];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grvi_npy npy;
        const size_t n = file_of(cases[i].version, cases[i].head, zeros, cases[i].n_bytes, bytes);
        char *const exact = malloc(n); /* a read behind the end is seen */
        assert_non_null(exact);
        memcpy(exact, bytes, n);
        const grv_status status = grvi_npy_parse(exact, (int64_t)n, "a.npy", &npy);
        if (status != cases[i].status)
            fail_msg("%s: %s", cases[i].head, status == GRV_OK ? "taken" : grv_error_message());
        char shape[128] = "";
        for (int a = 0; a < npy.rank && status == GRV_OK; a++)
            (void)snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld",
                           a > 0 ? " " : "", (long long)npy.shape[a]);
        if (status == GRV_OK)
            assert_string_equal(shape, cases[i].message);
        else if (strstr(grv_error_message(), cases[i].message) == NULL)
            fail_msg("%s: %s", cases[i].head, grv_error_message());
        /* cut anywhere: refused */
        for (size_t k = 0; k < n && status == GRV_OK; k++)
            assert_int_equal(grvi_npy_parse(exact, (int64_t)k, "a.npy", &npy), GRV_E_FORMAT);
        free(exact);
    }
}

static void test_files(void **state)
{
    static const float f32[] = {1, 2, 3, 4, 5, 6};
    static const double f64[] = {1, 2, 3, 4, 5, 0.1};
    static const int64_t shape[] = {2, 3, 1}, turned[] = {3, 2, 1};
    static char bytes[MOST];
    float narrow[6];
    double wide[6];
    (void)state;
    const char *const base = in_folder("a");
    char path[600];
    (void)snprintf(path, sizeof path, "%s.npy", base);
    assert_int_equal(grvi_array_file_read(base, 3, shape, GRV_STORE_F32, narrow), GRV_E_NOT_FOUND);
    write_file(path, bytes,
               file_of(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", f64,
                       sizeof f64, bytes));
    assert_ok(grvi_array_file_read(base, 3, shape, GRV_STORE_F64, wide));
    assert_memory_equal(wide, f64, sizeof wide);
    assert_ok(grvi_array_file_read(base, 3, shape, GRV_STORE_F32, narrow));
    assert_true(narrow[4] == 5 && narrow[5] == (float)0.1);
    assert_int_equal(grvi_array_file_read(base, 3, turned, GRV_STORE_F32, narrow), GRV_E_SHAPE);
    assert_non_null(strstr(grv_error_message(), "a.npy: shape (3, 2, 1) expected"));
    assert_non_null(strstr(grv_error_message(), "(2, 3) found"));
    assert_int_equal(grvi_array_file_read(base, 1, shape, GRV_STORE_F32, narrow), GRV_E_SHAPE);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s.raw", base);
    write_file(path, f32, sizeof f32);
    assert_ok(grvi_array_file_read(base, 3, shape, GRV_STORE_F64, wide));
    assert_true(wide[0] == 1 && wide[5] == 6);
    write_file(path, f32, sizeof f32 - 4);
    assert_int_equal(grvi_array_file_read(base, 3, shape, GRV_STORE_F32, narrow), GRV_E_SHAPE);
    assert_non_null(
        strstr(grv_error_message(), "6 float32 values of 4 bytes expected, 20 bytes found"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_heads), cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
