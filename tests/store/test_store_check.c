/* What a check finds: every chunk that was damaged, every name that does not belong, and nothing in a store that is right. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "grove/store_tools.h"
#include "store_support.h"

enum { N = 16 };

static const int64_t shape[] = {N, N}, zero[] = {0, 0}, chunk[] = {4, 16}, inner[] = {4, 4};

static void make_array(grv_store *store, const char *path, bool sharded, grv_compressor compressor)
{
    int32_t data[N * N];
    grv_array *array = NULL;
    grv_array_desc desc = desc_of(GRV_STORE_I32, 2, shape, chunk, sharded ? inner : NULL);
    desc.compressor = compressor;
    desc.checksum = true;
    for (int i = 0; i < N * N; i++) data[i] = i + 1;
    assert_ok(grv_array_create(store, path, &desc, &array));
    assert_ok(grv_array_write(array, zero, shape, data, NULL));
    grv_array_close(&array);
}

static void make_store(const char *name)
{
    grv_store *store = open_writable(in_folder(name), 1);
    make_array(store, "a", false, GRV_COMPRESSOR_ZSTD);
    make_array(store, "g/s", true, GRV_COMPRESSOR_NONE);
    grv_store_close(&store);
}

static void check(const char *name, grv_check_report *report)
{
    grv_store *store = NULL;
    grv_store_params params = grv_store_params_default();
    params.n_threads = 2;
    assert_ok(grv_store_open(in_folder(name), &params, &store));
    assert_ok(grv_store_check(store, "", NULL, report));
    grv_store_close(&store);
}

/* the list holds a problem of this node and object, whose reason holds the text */
static void assert_problem(const grv_check_report *report, const char *node, const char *object,
                           const char *text)
{
    for (int64_t i = 0; i < report->n_kept; i++) {
        const grv_store_problem *const p = &report->problems[i];
        if (strcmp(p->node, node) == 0 && strcmp(p->object, object) == 0 &&
            strstr(p->reason, text) != NULL)
            return;
    }
    for (int64_t i = 0; i < report->n_kept; i++)
        print_message("%s %s: %s\n", report->problems[i].node, report->problems[i].object,
                      report->problems[i].reason);
    fail_msg("no problem of '%s' '%s' with '%s'", node, object, text);
}

static void change_file(const char *path, int64_t offset, uint8_t mask, int64_t n_kept)
{
    uint8_t data[4096];
    const size_t n = read_file(path, data, sizeof data);
    data[offset < 0 ? (int64_t)n + offset : offset] ^= mask;
    write_file(path, data, n_kept < 0 ? n : (size_t)n_kept);
}

static void test_right_store(void **state)
{
    grv_check_report report;
    (void)state;
    make_store("right");
    check("right", &report);
    assert_int_equal(report.n_problems, 0);
    assert_int_equal(report.n_groups, 2);
    assert_int_equal(report.n_arrays, 2);
    assert_int_equal(report.n_objects, 8);
    assert_int_equal(report.n_decoded_bytes, 2 * N * N * 4);
    assert_true(report.n_bytes > N * N * 4);
    grv_check_report_fini(&report);
}

static void test_damaged_chunks(void **state)
{
    grv_check_report report;
    (void)state;
    make_store("dam");
    change_file(in_folder("dam/a/c/0/0"), 20, 1, -1);
    change_file(in_folder("dam/a/c/2/0"), 0, 0, 10);
    /* two of the four inner chunks of one shard; the index of another; a third is cut off */
    change_file(in_folder("dam/g/s/c/1/0"), 3, 0x40, -1);
    change_file(in_folder("dam/g/s/c/1/0"), 2 * 68 + 5, 0x10, -1);
    change_file(in_folder("dam/g/s/c/2/0"), -10, 1, -1);
    change_file(in_folder("dam/g/s/c/3/0"), 0, 0, 7);
    check("dam", &report);
    assert_int_equal(report.n_problems, 6);
    assert_problem(&report, "a", "c/0/0", "crc32c");
    assert_problem(&report, "a", "c/2/0", "");
    assert_problem(&report, "g/s", "c/1/0", "inner chunk (0,0), 68 bytes at byte 0");
    assert_problem(&report, "g/s", "c/1/0", "inner chunk (0,2), 68 bytes at byte 136");
    assert_problem(&report, "g/s", "c/2/0", "shard index");
    assert_problem(&report, "g/s", "c/3/0", "shard index");
    assert_int_equal(report.n_objects, 8);
    grv_check_report_fini(&report);
}

/* An index that lets two inner chunks share their bytes, with a right checksum: it comes from a shard without one. */
static void test_overlapping_entries(void **state)
{
    static const int64_t one[] = {4}, half[] = {2};
    static const uint64_t words[] = {0x0002000200020002, 0, 4, 2, 4}; /* 4 int16, two entries */
    grv_check_report report;
    grv_store *store = open_writable(in_folder("lap"), 1);
    grv_array_desc desc = desc_of(GRV_STORE_I16, 1, one, one, half);
    (void)state;
    desc.codecs =
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],\"codecs\":[{"
        "\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}],\"index_codecs\":[{"
        "\"name\":"
        "\"bytes\",\"configuration\":{\"endian\":\"little\"}}]}}]";
    assert_ok(grv_array_create(store, "a", &desc, NULL));
    grv_store_close(&store);
    assert_int_equal(mkdir(in_folder("lap/a/c"), 0777), 0);
    write_file(in_folder("lap/a/c/0"), words, sizeof words);
    check("lap", &report);
    assert_int_equal(report.n_problems, 1);
    assert_problem(&report, "a", "c/0", "overlaps");
    grv_check_report_fini(&report);
}

static void test_names(void **state)
{
    static const char *const strays[] = {"names/a/c/4/0", "names/a/c/0/1", "names/a/c/00/0",
                                         "names/a/c/x", "names/a/c/3/0.old"};
    grv_check_report report;
    (void)state;
    make_store("names");
    assert_int_equal(mkdir(in_folder("names/a/c/4"), 0777), 0);
    assert_int_equal(mkdir(in_folder("names/a/c/00"), 0777), 0);
    for (size_t i = 0; i < sizeof strays / sizeof strays[0]; i++)
        write_file(in_folder(strays[i]), "x", 1);
    write_file(in_folder("names/a/c/2/0.partial-12-3"), "x", 1);
    write_file(in_folder("names/zarr.json.partial-12-3"), "x", 1);
    write_file(in_folder("names/a/notes.txt"), "their own", 9); /* allowed */
    check("names", &report);
    assert_int_equal(report.n_problems, 7);
    for (size_t i = 0; i < sizeof strays / sizeof strays[0]; i++)
        assert_problem(&report, "a", strays[i] + strlen("names/a/"), "no key of a chunk");
    assert_problem(&report, "a", "c/2/0.partial-12-3", "killed");
    assert_problem(&report, "/", "zarr.json.partial-12-3", "killed");
    grv_check_report_fini(&report);
}

static void test_broken_metadata(void **state)
{
    grv_check_report report;
    grv_store *store = NULL;
    (void)state;
    make_store("meta");
    write_file(in_folder("meta/a/zarr.json"), "{\"zarr_format\": 3}", 18);
    check("meta", &report);
    assert_int_equal(report.n_problems, 1);
    assert_problem(&report, "a", "", "node_type");
    assert_int_equal(report.n_arrays, 1);
    grv_check_report_fini(&report);
    write_file(in_folder("meta/zarr.json"), "{", 1);
    check("meta", &report);
    assert_int_equal(report.n_problems, 1);
    assert_problem(&report, "/", "", "");
    grv_check_report_fini(&report);
    assert_ok(grv_store_open(in_folder("meta"), NULL, &store));
    assert_fails(grv_store_check(store, "nowhere", NULL, &report), GRV_E_NOT_FOUND, "nowhere");
    grv_store_close(&store);
}

/* Many problems are all counted, and a part of them is listed. */
static void test_many_problems(void **state)
{
    static const int64_t many[] = {1200}, one[] = {1};
    grv_store *store = open_writable(in_folder("many"), 1);
    grv_check_report report;
    char path[64];
    (void)state;
    const grv_array_desc desc = desc_of(GRV_STORE_I32, 1, many, one, NULL);
    assert_ok(grv_array_create(store, "a", &desc, NULL));
    grv_store_close(&store);
    assert_int_equal(mkdir(in_folder("many/a/c"), 0777), 0);
    for (int i = 0; i < 1200; i++) {
        (void)snprintf(path, sizeof path, "many/a/c/%d", i);
        write_file(in_folder(path), "x", 1);
    }
    check("many", &report);
    assert_int_equal(report.n_problems, 1200);
    assert_int_equal(report.n_kept, 1000);
    grv_check_report_fini(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_store),         cmocka_unit_test(test_damaged_chunks),
        cmocka_unit_test(test_overlapping_entries), cmocka_unit_test(test_names),
        cmocka_unit_test(test_broken_metadata),     cmocka_unit_test(test_many_problems)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
