/* safetensors: round trips with pieces in any order, partial reads, hostile headers, lack of memory and of a directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"
#include "grove/safetensors.h"

static char directory[] = "safetensors-test-XXXXXX", path[64];

static int make_directory(void **state)
{
    (void)state;
    if (mkdtemp(directory) == NULL) return -1;
    (void)snprintf(path, sizeof path, "%s/a.safetensors", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    return grvi_fs_remove_tree(directory) == GRV_OK && grv_memory_get().bytes == 0 ? 0 : -1;
}

enum { N_WEIGHT = 3 * 5 * 7 };

static grv_status write_example(void)
{
    static float weight[N_WEIGHT];
    static const double statistics[2] = {1e300, -0.1};
    static const int64_t step = INT64_MIN + 7;
    static const unsigned char flags[3] = {0, 1, 255};
    for (int i = 0; i < N_WEIGHT; i++) weight[i] = (float)i / 7;
    grv_safetensors_writer *w = NULL;
    int64_t i_flags = -1, i_weight = -1, i_step = -1, i_statistics = -1, i_empty = -1;
    grv_status status = GRV_OK;
    GRV_TRY_GOTO(grv_safetensors_writer_create(path, &w));
    GRV_TRY_GOTO(grv_safetensors_writer_set_metadata(w, "format", "pt"));
    GRV_TRY_GOTO(
        grv_safetensors_writer_set_metadata(w, "note", "line one\n\"line\" two \\ \303\274"));
    GRV_TRY_GOTO(grv_safetensors_writer_declare(w, "flags", GRV_SAFETENSORS_U8, 1,
                                                (const int64_t[]){3}, &i_flags));
    GRV_TRY_GOTO(grv_safetensors_writer_declare(w, "block.0/weight", GRV_SAFETENSORS_F32, 3,
                                                (const int64_t[]){3, 5, 7}, &i_weight));
    GRV_TRY_GOTO(grv_safetensors_writer_declare(w, "step", GRV_SAFETENSORS_I64, 0, NULL, &i_step));
    GRV_TRY_GOTO(grv_safetensors_writer_declare(w, "statistics", GRV_SAFETENSORS_F64, 1,
                                                (const int64_t[]){2}, &i_statistics));
    GRV_TRY_GOTO(grv_safetensors_writer_declare(w, "empty", GRV_SAFETENSORS_F32, 2,
                                                (const int64_t[]){0, 4}, &i_empty));
    GRV_TRY_GOTO(grv_safetensors_writer_write(w, i_weight, 200, sizeof weight - 200, weight + 50));
    GRV_TRY_GOTO(grv_safetensors_writer_write(w, i_step, 0, 8, &step));
    GRV_TRY_GOTO(grv_safetensors_writer_write(w, i_flags, 0, 3, flags));
    GRV_TRY_GOTO(grv_safetensors_writer_write(w, i_statistics, 8, 8, statistics + 1));
    GRV_TRY_GOTO(grv_safetensors_writer_write(w, i_statistics, 0, 8, statistics));
    GRV_TRY_GOTO(grv_safetensors_writer_write(w, i_weight, 0, 200, weight));
    GRV_TRY_GOTO(grv_safetensors_writer_publish(w, true));
done:
    grv_safetensors_writer_destroy(&w);
    return status;
}

static void check_example(void)
{
    grv_safetensors *f = NULL;
    static const char *const names[] = {"block.0/weight", "empty", "flags", "statistics", "step"};
    assert_int_equal(grv_safetensors_open(path, &f), GRV_OK);
    assert_int_equal(grv_safetensors_count(f), 5);
    for (int i = 0; i < 5; i++) {
        const grv_safetensors_tensor *const t = grv_safetensors_get(f, i);
        assert_string_equal(t->name, names[i]);
        assert_ptr_equal(grv_safetensors_find(f, names[i]), t);
        assert_int_equal(t->file_offset % grv_safetensors_dtype_bytes(t->dtype), 0); /* aligned */
    }
    assert_null(grv_safetensors_find(f, "weight"));
    assert_string_equal(grv_safetensors_metadata(f, "format"), "pt");
    assert_string_equal(grv_safetensors_metadata(f, "note"), "line one\n\"line\" two \\ \303\274");
    assert_null(grv_safetensors_metadata(f, "absent"));
    const grv_safetensors_tensor *t = grv_safetensors_find(f, "block.0/weight");
    assert_true(t->dtype == GRV_SAFETENSORS_F32 && t->n_dims == 3 && t->shape[0] == 3 &&
                t->shape[1] == 5 && t->shape[2] == 7);
    float weight[N_WEIGHT + 1];
    for (int first = 0; first < N_WEIGHT; first += 13)
        for (int n = 0; first + n <= N_WEIGHT; n += 9) {
            weight[n] = -3;
            assert_int_equal(grv_safetensors_read(f, t, 4 * first, 4 * n, weight), GRV_OK);
            for (int i = 0; i < n; i++) assert_true(weight[i] == (float)(first + i) / 7);
            assert_true(weight[n] == -3);
        }
    assert_int_equal(grv_safetensors_read(f, t, 4, t->bytes, weight), GRV_E_ARG);
    assert_int_equal(grv_safetensors_read(f, t, -1, 1, weight), GRV_E_ARG);
    int64_t step = 0;
    double statistics[2];
    t = grv_safetensors_find(f, "step");
    assert_true(t->dtype == GRV_SAFETENSORS_I64 && t->n_dims == 0 && t->bytes == 8);
    assert_int_equal(grv_safetensors_read(f, t, 0, 8, &step), GRV_OK);
    assert_int_equal(
        grv_safetensors_read(f, grv_safetensors_find(f, "statistics"), 0, 16, statistics), GRV_OK);
    assert_true(step == INT64_MIN + 7 && statistics[0] == 1e300 && statistics[1] == -0.1);
    assert_int_equal(grv_safetensors_find(f, "empty")->bytes, 0);
    grv_safetensors_close(&f);
    assert_null(f);
    grv_safetensors_close(&f);
}

static void test_round_trip(void **state)
{
    (void)state;
    assert_int_equal(write_example(), GRV_OK);
    check_example();
    assert_int_equal(write_example(), GRV_OK); /* replaces the file */
    check_example();
}

static void test_writer_errors(void **state)
{
    (void)state;
    grv_safetensors_writer *w = NULL;
    const int64_t shape[] = {2, -1}, large[] = {INT64_MAX / 4, 2};
    int64_t a = -1, b = -1;
    (void)unlink(path);
    assert_int_equal(grv_safetensors_writer_create(path, &w), GRV_OK);
    assert_int_equal(grv_safetensors_writer_declare(w, "a", GRV_SAFETENSORS_F32, 1, shape, &a),
                     GRV_OK);
    assert_int_equal(grv_safetensors_writer_declare(w, "a", GRV_SAFETENSORS_F32, 1, shape, &b),
                     GRV_E_ARG);
    assert_int_equal(grv_safetensors_writer_declare(w, "b", GRV_SAFETENSORS_F32, 2, shape, &b),
                     GRV_E_ARG);
    assert_int_equal(grv_safetensors_writer_declare(w, "b", GRV_SAFETENSORS_F32, 2, large, &b),
                     GRV_E_ARG);
    assert_int_equal(grv_safetensors_writer_declare(w, "b", GRV_SAFETENSORS_U8, 2, large, &b),
                     GRV_E_ARG);
    assert_int_equal(grv_safetensors_writer_declare(w, "b", GRV_SAFETENSORS_F32, 9, shape, &b),
                     GRV_E_ARG);
    assert_int_equal(
        grv_safetensors_writer_declare(w, "__metadata__", GRV_SAFETENSORS_F32, 1, shape, &b),
        GRV_E_ARG);
    assert_int_equal(grv_safetensors_writer_set_metadata(w, "k", "1"), GRV_OK);
    assert_int_equal(grv_safetensors_writer_set_metadata(w, "k", "2"), GRV_E_ARG);
    assert_int_equal(grv_safetensors_writer_write(w, a, 4, 8, shape), GRV_E_ARG);
    assert_int_equal(grv_safetensors_writer_write(w, a + 1, 0, 4, shape), GRV_E_ARG);
    assert_int_equal(grv_safetensors_writer_write(w, a, 4, 4, shape), GRV_OK);
    assert_int_equal(grv_safetensors_writer_declare(w, "late", GRV_SAFETENSORS_F32, 1, shape, &b),
                     GRV_E_ARG);
    assert_int_equal(grv_safetensors_writer_set_metadata(w, "late", "1"), GRV_E_ARG);
    assert_int_equal(grv_safetensors_writer_publish(w, false), GRV_E_ARG);
    assert_non_null(strstr(grv_error_message(), "tensor 'a': 8 bytes expected, 4 written"));
    grv_safetensors_writer_destroy(&w);
    assert_null(w);
    assert_false(grvi_fs_exists(path));
    assert_int_equal(rmdir(directory), 0); /* and nothing else was left either */
    assert_int_equal(grv_safetensors_writer_create(path, &w), GRV_OK);
    assert_int_equal(grv_safetensors_writer_publish(w, false), GRV_E_IO); /* no directory */
    assert_int_equal(mkdir(directory, 0777), 0);
    assert_int_equal(grv_safetensors_writer_publish(w, false), GRV_OK); /* now it works */
    assert_int_equal(grv_safetensors_writer_publish(w, false), GRV_E_ARG);
    grv_safetensors_writer_destroy(&w);
    grv_safetensors *f = NULL;
    assert_int_equal(grv_safetensors_open(path, &f), GRV_OK); /* a file without tensors */
    assert_int_equal(grv_safetensors_count(f), 0);
    grv_safetensors_close(&f);
}

static void write_file(uint64_t header_bytes, const char *header, int64_t n_header, int64_t n_data)
{
    char bytes[2048] = "";
    for (int i = 0; i < 8; i++) bytes[i] = (char)(header_bytes >> (8 * i) & 0xFF);
    assert_true(8 + n_header + n_data <= (int64_t)sizeof bytes);
    if (n_header > 0) memcpy(bytes + 8, header, (size_t)n_header);
    assert_int_equal(grvi_fs_write_atomic(path, bytes, 8 + n_header + n_data, false), GRV_OK);
}

static void expect(const char *header, int64_t n_data, grv_status status, const char *text)
{
    grv_safetensors *f = NULL;
    write_file(strlen(header), header, (int64_t)strlen(header), n_data);
    assert_int_equal(grv_safetensors_open(path, &f), status);
    if (status != GRV_OK) assert_null(f);
    if (status != GRV_OK && strstr(grv_error_message(), text) == NULL)
        fail_msg("%s: %s", header, grv_error_message());
    grv_safetensors_close(&f);
}

#define F32_2(name, begin, end) \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" begin "," end "]}"

static void test_hostile_headers(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int64_t n_data;
        grv_status status;
        const char *text;
    } cases[] = {
        {"{" F32_2("a", "0", "8") "}", 8, GRV_OK, ""},
        {"{" F32_2("b", "8", "16") "," F32_2("a", "0", "8") "}   ", 16, GRV_OK, ""},
        {"{\"__metadata__\":{}}", 0, GRV_OK, ""},
        {"", 0, GRV_E_FORMAT, "byte 8: '{' expected"},
        {"[]", 0, GRV_E_FORMAT, "byte 8: '{' expected"},
        {"{" F32_2("a", "0", "8"), 8, GRV_E_FORMAT, "JSON broken at byte"},
        {"{" F32_2("a", "0", "8") "} x", 8, GRV_E_FORMAT, "JSON broken at byte"},
        {"{" F32_2("a", "0", "8") "," F32_2("b", "0", "8") "}", 8, GRV_E_FORMAT,
         "inside another that ends at byte"},
        {"{" F32_2("a", "0", "8") "," F32_2("b", "4", "12") "}", 12, GRV_E_FORMAT,
         "inside another that ends at byte"},
        {"{" F32_2("a", "4", "12") "}", 12, GRV_E_FORMAT, "behind a hole from byte"},
        {"{" F32_2("a", "0", "8") "}", 9, GRV_E_FORMAT, "bytes expected"},
        {"{" F32_2("a", "0", "8") "}", 7, GRV_E_FORMAT,
         "'a' is at data bytes [0, 8), 7 data bytes are in the file"},
        {"{" F32_2("a", "8", "0") "}", 8, GRV_E_FORMAT, "[8, 0)"},
        {"{" F32_2("a", "-8", "0") "}", 8, GRV_E_FORMAT, "[-8, 0)"},
        {"{" F32_2("a", "0", "4") "}", 4, GRV_E_FORMAT, "8 bytes expected by its shape, 4 found"},
        {"{" F32_2("a", "0", "99999999999999999999") "}", 8, GRV_E_FORMAT, "data_offsets"},
        {"{" F32_2("a", "0", "8") "," F32_2("a", "0", "8") "}", 8, GRV_E_FORMAT,
         "byte 63: 'a' is in the header twice"},
        {"{" F32_2("a", "0", "8") "," F32_2("a", "8", "16") "}", 16, GRV_E_FORMAT, "twice"},
        {"{" F32_2("a", "0", "8") "," F32_2("\\u0061", "8", "16") "}", 16, GRV_E_FORMAT,
         "repeats a name"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
         GRV_E_FORMAT, "repeats a name"},
        {"{" F32_2("a\\u0000b", "0", "8") "}", 8, GRV_E_FORMAT, "zero character"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, GRV_E_UNSUPPORTED,
         "'a' has elements of type 'F4'"},
        {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, GRV_E_FORMAT, "no dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, GRV_E_FORMAT, "no shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, GRV_E_FORMAT, "no data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.5],\"data_offsets\":[0,8]}}", 8, GRV_E_FORMAT,
         "shape[0]"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, GRV_E_FORMAT,
         "shape[0]"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}", 8,
         GRV_E_FORMAT, "shape[1]"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
         GRV_E_UNSUPPORTED, "9 found"},
        {"{\"a\":[1]}", 0, GRV_E_FORMAT, "'a' is no object"},
        {"{\"__metadata__\":{\"k\":1}}", 0, GRV_E_FORMAT, "metadata 'k'"},
        {"{\"__metadata__\":\"k\"}", 0, GRV_E_FORMAT, "__metadata__ is no object"},
        {"{'a\"':1, 'b':\"", 0, GRV_E_FORMAT, ""},
        {"{'a\"':{}}", 0, GRV_E_FORMAT, ""}, /* json-c takes single quotes */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(cases[i].header, cases[i].n_data, cases[i].status, cases[i].text);
}

static void test_hostile_lengths(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {3, 100000001, (uint64_t)1 << 32, (uint64_t)INT64_MAX,
                                       UINT64_MAX};
    grv_safetensors *f = NULL;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        write_file(lengths[i], "{}", 2, 0);
        assert_int_equal(grv_safetensors_open(path, &f), GRV_E_FORMAT);
        assert_non_null(strstr(grv_error_message(), "byte 0: header of at most 2 bytes expected"));
    }
    assert_int_equal(grvi_fs_write_atomic(path, "\2\0\0", 3, false), GRV_OK);
    assert_int_equal(grv_safetensors_open(path, &f), GRV_E_FORMAT);
    assert_int_equal(grvi_fs_write_atomic(path, "", 0, false), GRV_OK);
    assert_int_equal(grv_safetensors_open(path, &f), GRV_E_FORMAT);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(grv_safetensors_open(path, &f), GRV_E_NOT_FOUND);
    assert_int_equal(grv_safetensors_open(directory, &f), GRV_E_IO);
    assert_null(f);
}

/* truncated anywhere it is an error; with any byte of the header changed, an error or a file that reads well; sanitizers look on */
static void test_damaged_files(void **state)
{
    (void)state;
    char *good = NULL;
    int64_t n = 0;
    assert_int_equal(write_example(), GRV_OK);
    assert_int_equal(grvi_fs_read(path, 1 << 20, &good, &n), GRV_OK);
    for (int64_t k = 0; k < n; k += 3) {
        grv_safetensors *f = NULL;
        assert_int_equal(grvi_fs_write_atomic(path, good, k, false), GRV_OK);
        assert_int_equal(grv_safetensors_open(path, &f), GRV_E_FORMAT);
    }
    const int64_t n_header = 8 + (unsigned char)good[0] + 256 * (int64_t)(unsigned char)good[1];
    for (int64_t k = 0; k < n_header; k++) {
        grv_safetensors *f = NULL;
        const char kept = good[k];
        good[k] = (char)grv_random_bits(1, 1, (uint64_t)k);
        assert_int_equal(grvi_fs_write_atomic(path, good, n, false), GRV_OK);
        if (grv_safetensors_open(path, &f) == GRV_OK) {
            char data[1024];
            for (int64_t i = 0; i < grv_safetensors_count(f); i++) {
                const grv_safetensors_tensor *const t = grv_safetensors_get(f, i);
                assert_true(t->bytes <= (int64_t)sizeof data);
                assert_int_equal(grv_safetensors_read(f, t, 0, t->bytes, data), GRV_OK);
            }
        }
        grv_safetensors_close(&f);
        good[k] = kept;
    }
    grv_free(good);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    (void)unlink(path);
    grv_status status = GRV_E_NOMEM;
    int64_t countdown = 0;
    for (; status == GRV_E_NOMEM; countdown++) {
        grvi_alloc_fail_after(countdown);
        status = write_example();
        grvi_alloc_fail_after(-1);
        if (status == GRV_E_NOMEM) assert_false(grvi_fs_exists(path));
    }
    assert_int_equal(status, GRV_OK);
    assert_true(countdown > 15);
    status = GRV_E_NOMEM;
    for (countdown = 0; status == GRV_E_NOMEM; countdown++) {
        grv_safetensors *f = NULL;
        grvi_alloc_fail_after(countdown);
        status = grv_safetensors_open(path, &f);
        grvi_alloc_fail_after(-1);
        assert_true((f == NULL) == (status != GRV_OK));
        grv_safetensors_close(&f);
    }
    assert_int_equal(status, GRV_OK);
    assert_true(countdown > 4);
    check_example();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_writer_errors),
        cmocka_unit_test(test_hostile_headers), cmocka_unit_test(test_hostile_lengths),
        cmocka_unit_test(test_damaged_files),   cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
