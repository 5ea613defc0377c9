/* Zip stores: archives of others (shared/data/zarr beside the project) give the bytes that the folders beside them hold, or are refused
 * by name; archives made here byte by byte, good ones and hostile ones; a store of grove's own, zipped. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "store/kv.h"
#include "store_support.h"
#include "zip_maker.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))
enum { MOST = 1 << 20 };

static zip_bytes zip; /* too large for the stack */

static const char *write_zip(const char *name)
{
    const char *const path = in_folder(name);
    write_file(path, zip.bytes, zip.n);
    return path;
}

static grvi_kv *open_zip(const char *path, const char *inner)
{
    grvi_kv *kv = NULL;
    assert_ok(grvi_kv_zip_create(path, inner, MOST, &kv));
    return kv;
}

/* The key's value is these bytes, read whole and in every way in two parts. */
static void check_value(grvi_kv *kv, const char *key, const void *expected, int64_t n)
{
    char *data = NULL;
    int64_t n_data = 0;
    grvi_object object;
    bool found = false;
    assert_ok(grvi_kv_get(kv, key, MOST, &data, &n_data));
    if (data == NULL) fail_msg("no '%s'", key);
    assert_int_equal(n_data, n);
    assert_memory_equal(data, expected, (size_t)n);
    memset(data, 0, (size_t)n);
    assert_ok(kv->class->open_object(kv, key, &object, &found));
    assert_true(found && object.n_bytes == n);
    for (int64_t cut = 0; cut <= n; cut += 1 + n / 5) {
        assert_ok(kv->class->read_object(kv, &object, key, cut, n - cut, data + cut));
        assert_ok(kv->class->read_object(kv, &object, key, 0, cut, data));
        assert_memory_equal(data, expected, (size_t)n);
    }
    assert_fails(kv->class->read_object(kv, &object, key, 1, n, data), GRV_E_IO, key);
    kv->class->close_object(kv, &object);
    grv_free(data);
}

static void check_absent(grvi_kv *kv, const char *key)
{
    bool exists = true;
    assert_ok(grvi_kv_exists(kv, key, &exists));
    assert_false(exists);
}

/* ---- archives of others ---- */

static const char *shared_folder(void)
{
    static char path[1024];
    const char *const shared = getenv("GRVI_TEST_SHARED_DIR");
    (void)snprintf(path, sizeof path, "%s/data/zarr",
                   shared != NULL ? shared : GRVI_TEST_SHARED_DIR);
    if (access(path, R_OK) != 0) {
        print_message("skipped: no %s\n", path);
        skip();
    }
    return path;
}

typedef struct real_entry {
    const char *archive, *key;
    int64_t n_bytes;
    const char *text;    /* NULL: the CRC-32 suffices, which reading checks */
    const char *refused; /* part of the message */
} real_entry;

static const real_entry real_entries[] = {
    {"zip_edge_cases/data_descriptor_store_compression.zip", "test_file", 11, "hello_world", NULL},
    {"zip_edge_cases/infozip_unicode_path.zip", "utf8_name.txt", 14, "Hello Unicode!", NULL},
    {"zip_edge_cases/zip64_one_empty_file.zip", "-", 2, "a\n", NULL},
    {"zip_edge_cases/zip_deflate.zip", "firstsecond", 19, "firstpartsecondpart", NULL},
    {"zip_edge_cases/zip_test2.zip", "test", 5, "test\n", NULL},
    {"zip_edge_cases/zip_test2.zip", "testdir/test2", 5, "test\n", NULL},
    {"zip_edge_cases/zip_bzip2.zip", "abac-repeat.txt", 0, NULL, "method 12 (bzip2)"},
    {"zip_edge_cases/zip_xz.zip", "abac-repeat.txt", 0, NULL, "method 95 (xz)"},
    {"zip_edge_cases/zip_zstd.zip", "abac-repeat.txt", 0, NULL, "method 93 (zstd)"},
    {"zarr_python_2_13/zipstore.zip", "a/b/0.0.0", 1551, NULL, NULL},
    {"netcdf_c/ref_byte.zarr.zip", ".zgroup", 23, NULL, NULL},
    {"netcdf_c/ref_byte_fill_value_null.zarr.zip", "byt/0.0", 400, NULL, NULL},
    {"netcdf_c/ref_oldformat.zip", "g1/pos/0.0", 320, NULL, NULL},
    {"netcdf_c/ref_quotes_orig.zip", "fractional_snow_cover/.zattrs", 866, NULL, NULL},
    {"netcdf_c/ref_noshape.file.zip", "v/.zarray", 131, NULL, NULL},
    /* its root has metadata of its own */
    {"netcdf_c/ref_power_901_constants_orig.zip", "ref_power_901_constants/FRLAND/.zarray", 341,
     NULL, NULL},
};

static void test_real_entries(void **state)
{
    char path[2048];
    (void)state;
    const char *const folder = shared_folder();
    for (size_t i = 0; i < N_OF(real_entries); i++) {
        const real_entry *const e = &real_entries[i];
        grvi_kv *kv = NULL;
        char *data = NULL;
        int64_t n = 0;
        (void)snprintf(path, sizeof path, "%s/%s", folder, e->archive);
        kv = open_zip(path, "");
        if (e->refused != NULL) {
            assert_fails(grvi_kv_get(kv, e->key, MOST, &data, &n), GRV_E_UNSUPPORTED, e->refused);
        } else if (e->text != NULL) {
            check_value(kv, e->key, e->text, e->n_bytes);
        } else {
            assert_ok(grvi_kv_get(kv, e->key, MOST, &data, &n));
            if (n != e->n_bytes) fail_msg("%s: %s: %lld bytes", e->archive, e->key, (long long)n);
            grv_free(data);
        }
        grvi_kv_destroy(&kv);
    }
}

static grvi_kv *compared;
static size_t n_root, n_compared;

static int compare_file(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    static char bytes[1 << 16];
    (void)walk;
    if (type != FTW_F) return 0;
    const size_t n = read_file(path, bytes, sizeof bytes);
    assert_int_equal(n, info->st_size);
    check_value(compared, path + n_root, bytes, (int64_t)n);
    n_compared++;
    return 0;
}

/* Every file of the folder is in the archive, with the same bytes. */
static void test_real_stores(void **state)
{
    static const char *const archives[][2] = {
        {"zarrita_v2/data.zarr", "zarrita_v2/data.zipped_from_parent.zarr.zip"},
        {"zarrita_v2/data.zarr", "zarrita_v2/data.zipped_from_within.zarr.zip"},
        {"zarrita_v3/data.zarr", "zarrita_v3/data.zipped_from_parent.zarr.zip"},
        {"zarrita_v3/data.zarr", "zarrita_v3/data.zipped_from_within.zarr.zip"},
        {"zarrita_v3/data.zarr", "zarrita_v3/data.uncompressed.zarr.zip"},
    };
    char path[2048];
    (void)state;
    const char *const folder = shared_folder();
    for (size_t i = 0; i < N_OF(archives); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, archives[i][1]);
        compared = open_zip(path, "");
        (void)snprintf(path, sizeof path, "%s/%s", folder, archives[i][0]);
        n_root = strlen(path) + 1;
        n_compared = 0;
        assert_int_equal(nftw(path, compare_file, 16, FTW_PHYS), 0);
        assert_true(n_compared > 100);
        grvi_kv_destroy(&compared);
    }
}

/* ---- archives made here ---- */

static uint8_t large[3000]; /* compresses well, and has no two equal windows */

static const zip_item usual[] = {
    {"zarr.json", "{}", 2},
    {"a/zarr.json", "{\"a\":1}", 7, 8},
    {"a/c/0", large, sizeof large, 8},
    {"a/c/1", large, sizeof large, 0, 8},        /* data descriptor */
    {"a/c/2", large, sizeof large, 8, 8 | 2048}, /* and a name in UTF-8 */
    {"a/c/empty", "", 0},
    {"a/c/nothing", "", 0, 8},
    {"a/c/padded", large, sizeof large, 0, 0, 77},
    {"a/c/wide", large, sizeof large, 0, 0, 5, 1},
    {"a/c/wide8", large, sizeof large, 8, 0, 0, 1},
    {"a-b", "between", 7},
    {"b", "old", 3},
    {"b", "newest", 6},
    {"folder/", "", 0},
    {"folder/.hidden", "h", 1},
    {"folder/x/y", "y", 1},
    {"\xc3\xbc/\xe4", "bytes above 127", 15, 0, 0},
};

static void check_usual(grvi_kv *kv)
{
    check_value(kv, "zarr.json", "{}", 2);
    check_value(kv, "a/zarr.json", "{\"a\":1}", 7);
    check_value(kv, "a/c/0", large, sizeof large);
    check_value(kv, "a/c/1", large, sizeof large);
    check_value(kv, "a/c/2", large, sizeof large);
    check_value(kv, "a/c/empty", "", 0);
    check_value(kv, "a/c/nothing", "", 0);
    check_value(kv, "a/c/padded", large, sizeof large);
    check_value(kv, "a/c/wide", large, sizeof large);
    check_value(kv, "a/c/wide8", large, sizeof large);
    check_value(kv, "a-b", "between", 7);
    check_value(kv, "b", "newest", 6); /* the last of two */
    check_value(kv, "\xc3\xbc/\xe4", "bytes above 127", 15);
    check_absent(kv, "a");
    check_absent(kv, "a/c");
    check_absent(kv, "a/c/3");
    check_absent(kv, "folder");
    check_absent(kv, "z");
    check_absent(kv, "0");
}

static grv_status add_name(void *argument, const char *name, bool is_prefix)
{
    char *const list = argument;
    (void)snprintf(list + strlen(list), 256 - strlen(list), "%s%s ", name, is_prefix ? "/" : "");
    return GRV_OK;
}

static void check_list(grvi_kv *kv, const char *prefix, const char *expected)
{
    char list[256] = "";
    assert_ok(kv->class->list(kv, prefix, add_name, list));
    assert_string_equal(list, expected);
}

static void test_made(void **state)
{
    (void)state;
    for (int zip64 = 0; zip64 < 2; zip64++) {
        make_zip(&zip, usual, N_OF(usual), zip64, zip64 ? "a comment PK\5\6 with a trap" : "");
        grvi_kv *kv = open_zip(write_zip("usual.zip"), "");
        check_usual(kv);
        check_list(kv, "", "a-b a/ b folder/ zarr.json \xc3\xbc/ ");
        check_list(kv, "a", "c/ zarr.json ");
        check_list(kv, "a/c", "0 1 2 empty nothing padded wide wide8 ");
        check_list(kv, "folder", "x/ "); /* names with a dot in front are left out */
        check_list(kv, "absent", "");
        check_list(kv, "b", "");
        grvi_kv_destroy(&kv);
        kv = open_zip(in_folder("usual.zip"), "a/c/");
        check_value(kv, "1", large, sizeof large);
        check_absent(kv, "zarr.json");
        check_list(kv, "", "0 1 2 empty nothing padded wide wide8 ");
        grvi_kv_destroy(&kv);
        assert_fails(grvi_kv_zip_create(in_folder("usual.zip"), "d", MOST, &kv), GRV_E_NOT_FOUND,
                     "no folder 'd' in the archive");
    }
}

static void test_top_folder(void **state)
{
    static const zip_item parent[] = {
        {"__MACOSX/x/.zarray", "", 0}, {"notes.txt", "n", 1},         {"s.zarr/", "", 0},
        {"s.zarr/.zgroup", "{}", 2},   {"s.zarr/a/.zarray", "[]", 2}, {"s.zarr.bak/a", "", 0}};
    static const zip_item two[] = {{"s/zarr.json", "{}", 2}, {"t/zarr.json", "{}", 2}};
    (void)state;
    make_zip(&zip, parent, N_OF(parent), 0, "");
    grvi_kv *kv = open_zip(write_zip("parent.zip"), "");
    check_value(kv, ".zgroup", "{}", 2);
    check_value(kv, "a/.zarray", "[]", 2);
    check_absent(kv, "notes.txt");
    check_list(kv, "", "a/ ");
    grvi_kv_destroy(&kv);
    kv = open_zip(in_folder("parent.zip"), "a"); /* below the store, as for a folder */
    check_value(kv, ".zarray", "[]", 2);
    grvi_kv_destroy(&kv);
    make_zip(&zip, two, N_OF(two), 0, "");
    kv = open_zip(write_zip("two.zip"), "");
    check_list(kv, "", "s/ t/ ");
    grvi_kv_destroy(&kv);
    make_zip(&zip, two, 0, 0, "");
    kv = open_zip(write_zip("empty.zip"), "");
    check_absent(kv, "zarr.json");
    check_list(kv, "", "");
    grvi_kv_destroy(&kv);
}

/* Many readers of one deflated entry, by one opened object and by their own: one inflates, all see the bytes. */
typedef struct shared_read {
    grvi_kv *kv;
    const grvi_object *object;
    _Atomic int n_wrong;
} shared_read;

static void read_shared(void *argument, int thread, int64_t begin, int64_t end)
{
    shared_read *const shared = argument;
    for (int64_t i = begin; i < end; i++) {
        uint8_t part[64];
        char *data = NULL;
        int64_t n = 0;
        const int64_t at = (i * 37) % ((int64_t)sizeof large - 64);
        bool good = shared->kv->class->read_object(shared->kv, shared->object, "", at, 64, part) ==
                        GRV_OK &&
                    memcmp(part, large + at, 64) == 0;
        const char *const key = thread % 2 == 0 ? "a/c/2" : "a/c/padded";
        good = grvi_kv_get(shared->kv, key, MOST, &data, &n) == GRV_OK && n == sizeof large &&
               memcmp(data, large, sizeof large) == 0 && good;
        grv_free(data);
        shared->n_wrong += !good;
    }
}

static void test_threads(void **state)
{
    grvi_object object;
    bool found = false;
    (void)state;
    make_zip(&zip, usual, N_OF(usual), 0, "");
    shared_read shared = {.kv = open_zip(write_zip("shared.zip"), ""), .object = &object};
    assert_ok(shared.kv->class->open_object(shared.kv, "a/c/0", &object, &found));
    grv_parallel_for(4, 400, read_shared, &shared);
    assert_int_equal(shared.n_wrong, 0);
    shared.kv->class->close_object(shared.kv, &object);
    grvi_kv_destroy(&shared.kv);
}

static void test_changed_archive(void **state)
{
    grvi_object object;
    bool found = false;
    (void)state;
    make_zip(&zip, usual, N_OF(usual), 0, "");
    grvi_kv *kv = open_zip(write_zip("changing.zip"), "");
    assert_ok(kv->class->open_object(kv, "b", &object, &found));
    kv->class->close_object(kv, &object);
    make_zip(&zip, usual, 3, 0, "");
    (void)write_zip("changing.zip");
    assert_fails(kv->class->open_object(kv, "b", &object, &found), GRV_E_IO,
                 "has changed since it was opened");
    grvi_kv_destroy(&kv);
}

/* ---- hostile archives ---- */

static void assert_refused(grv_status expected, const char *text)
{
    grvi_kv *kv = NULL;
    assert_fails(grvi_kv_zip_create(write_zip("hostile.zip"), "", MOST, &kv), expected, text);
    assert_null(kv);
}

static void assert_entry_refused(const char *key, grv_status expected, const char *text)
{
    char *data = NULL;
    int64_t n = 0;
    grvi_kv *kv = open_zip(write_zip("hostile.zip"), "");
    assert_fails(grvi_kv_get(kv, key, MOST, &data, &n), expected, text);
    assert_null(data);
    grvi_kv_destroy(&kv);
}

static void test_truncated(void **state)
{
    (void)state;
    make_zip(&zip, usual, 4, 1, "");
    const size_t n = zip.n;
    for (zip.n = 0; zip.n < n; zip.n++) assert_refused(GRV_E_FORMAT, "is no zip archive");
    zip.n = n;
    put_bytes(&zip, "trailing", 8);
    assert_refused(GRV_E_FORMAT, "no end record");
    make_zip(&zip, usual, 4, 0, "");
    memmove(zip.bytes, zip.bytes + 10, zip.n -= 10); /* cut at its front */
    assert_refused(GRV_E_FORMAT, "does not end at its end record");
}

static void test_names(void **state)
{
    static const char *const bad[][2] = {{"../x", "nothing but dots"},
                                         {"a/../../x", "nothing but dots"},
                                         {"/etc/passwd", "empty part"},
                                         {"a//b", "empty part"},
                                         {"a\\b", "0x5c"},
                                         {"a\nb", "0x0a"},
                                         {"./a", "nothing but dots"},
                                         {"", "empty part"},
                                         {"/", "empty part"},
                                         {"../", "nothing but dots"}};
    (void)state;
    for (size_t i = 0; i < N_OF(bad); i++) {
        const zip_item items[] = {{"zarr.json", "{}", 2},
                                  {bad[i][0], "x", bad[i][0][0] == '/' ? 0 : 1}};
        make_zip(&zip, items, 2, 0, "");
        assert_refused(GRV_E_FORMAT, bad[i][1]);
    }
    make_zip(&zip, usual, 2, 0, "");
    zip.bytes[zip_header(&zip, 1) + 46 + 3] = '\0';
    assert_refused(GRV_E_FORMAT, "zero byte");
}

/* Fields of the directory and the end record that lie. */
static void test_lies(void **state)
{
    (void)state;
    make_zip(&zip, usual, N_OF(usual), 0, "");
    set16(&zip, zip.end + 8, N_OF(usual) + 1);
    set16(&zip, zip.end + 10, N_OF(usual) + 1);
    assert_refused(GRV_E_FORMAT, "directory is damaged");
    set16(&zip, zip.end + 8, 3);
    set16(&zip, zip.end + 10, 3);
    assert_refused(GRV_E_FORMAT, "3 entries fill");
    set16(&zip, zip.end + 8, 65535);
    set16(&zip, zip.end + 10, 65535);
    assert_refused(GRV_E_FORMAT, "65535 entries in a directory of");
    make_zip(&zip, usual, 4, 0, "");
    set16(&zip, zip.end + 4, 1);
    assert_refused(GRV_E_UNSUPPORTED, "archives in several parts");
    make_zip(&zip, usual, 4, 0, "");
    set16(&zip, zip_header(&zip, 2) + 34, 1);
    assert_refused(GRV_E_UNSUPPORTED, "archives in several parts");
    make_zip(&zip, usual, 4, 0, "");
    set32(&zip, zip.end + 16, (uint32_t)zip.directory + 1);
    assert_refused(GRV_E_FORMAT, "does not end at its end record");
    set32(&zip, zip.end + 12, UINT32_MAX);
    assert_refused(GRV_E_FORMAT, "does not end at its end record");
    make_zip(&zip, usual, 4, 0, "");
    set32(&zip, zip_header(&zip, 2) + 42, (uint32_t)zip.directory - 10);
    assert_refused(GRV_E_FORMAT, "lie outside the archive's data");
    make_zip(&zip, usual, 4, 0, "");
    set32(&zip, zip_header(&zip, 2) + 20, UINT32_MAX - 1);
    assert_refused(GRV_E_FORMAT, "lie outside the archive's data");
    make_zip(&zip, usual, 4, 0, "");
    set32(&zip, zip_header(&zip, 1) + 42, 0); /* where entry 0 is */
    assert_refused(GRV_E_FORMAT, "overlap");
    make_zip(&zip, usual, 1, 0, "");
    set32(&zip, zip_header(&zip, 0) + 24, 3);
    assert_refused(GRV_E_FORMAT, "is stored as it is, but 2 bytes would become 3");
}

static void test_zip64_lies(void **state)
{
    (void)state;
    make_zip(&zip, usual, 4, 1, "");
    const size_t locator = zip.end - 20, record = locator - 56;
    memset(zip.bytes + locator + 8, 0xff, 8);
    assert_refused(GRV_E_FORMAT, "outside the archive");
    make_zip(&zip, usual, 4, 1, "");
    set32(&zip, locator + 8, (uint32_t)record - 2);
    assert_refused(GRV_E_FORMAT, "no zip64 end record at byte");
    make_zip(&zip, usual, 4, 1, "");
    zip.bytes[locator + 16] = 3;
    assert_refused(GRV_E_UNSUPPORTED, "several parts");
    for (int i = 0; i < 2; i++) { /* counts and sizes of 2^64 - 1 */
        make_zip(&zip, usual, 4, 1, "");
        memset(zip.bytes + record + 24, 0xff, 16);
        if (i == 1) memset(zip.bytes + record + 40, 0xff, 16);
        assert_refused(GRV_E_FORMAT, i == 0 ? "18446744073709551615 entries" : "does not end at");
    }
    make_zip(&zip, usual, 4, 1, "");
    set16(&zip, zip.end + 8, 3);
    set16(&zip, zip.end + 10, 3);
    assert_refused(GRV_E_FORMAT, "contradict each other");
    static const zip_item wide[] = {{"wide", "1234", 4, 0, 0, 0, 1}};
    make_zip(&zip, wide, 1, 0, "");
    memset(zip.bytes + zip_header(&zip, 0) + 46 + 4 + 4, 0xff, 8); /* size */
    assert_refused(GRV_E_FORMAT, "claims 18446744073709551615 bytes");
    make_zip(&zip, wide, 1, 0, "");
    memset(zip.bytes + zip_header(&zip, 0) + 46 + 4 + 12, 0xff, 8); /* stored size */
    assert_refused(GRV_E_FORMAT, "lie outside");
    make_zip(&zip, wide, 1, 0, "");
    set16(&zip, zip_header(&zip, 0) + 46 + 4 + 2, 12);
    assert_refused(GRV_E_FORMAT, "zip64 field of 'wide' is too short");
}

static void test_damaged_entries(void **state)
{
    static uint8_t zeros[100000];
    static const zip_item bomb[] = {{"zarr.json", zeros, sizeof zeros, 8}};
    (void)state;
    make_zip(&zip, usual, 4, 0, "");
    zip.bytes[30 + 9] ^= 1; /* the first entry's first byte */
    assert_entry_refused("zarr.json", GRV_E_FORMAT, "CRC-32");
    make_zip(&zip, usual, 4, 0, "");
    zip.bytes[0] = 'Q';
    assert_entry_refused("zarr.json", GRV_E_FORMAT, "no entry 'zarr.json' at byte 0");
    make_zip(&zip, usual, 1, 0, "");
    set16(&zip, 28, 60000); /* extra field of the local header */
    assert_entry_refused("zarr.json", GRV_E_FORMAT, "lie outside the archive's data");
    make_zip(&zip, usual, 4, 0, "");
    set16(&zip, zip_header(&zip, 1) + 8, 1);
    assert_entry_refused("a/zarr.json", GRV_E_UNSUPPORTED, "encrypted");
    for (int change = -1; change <= 1; change += 2) { /* one byte more or less than there is */
        make_zip(&zip, bomb, 1, 0, "");
        set32(&zip, zip_header(&zip, 0) + 24, (uint32_t)((int)sizeof zeros + change));
        assert_entry_refused("zarr.json", GRV_E_FORMAT, "deflated bytes are to become");
    }
    make_zip(&zip, bomb, 1, 0, "");
    set32(&zip, zip_header(&zip, 0) + 24, 0xfffffffe);
    assert_entry_refused("zarr.json", GRV_E_FORMAT, "claims 4294967294 bytes");
    make_zip(&zip, bomb, 1, 0, "");
    memset(zip.bytes + 30 + 9, 0xff, 4);
    assert_entry_refused("zarr.json", GRV_E_FORMAT, "deflated bytes are to become");
    make_zip(&zip, bomb, 1, 0, "");
    grvi_kv *kv = NULL;
    grvi_object object;
    bool found = false;
    assert_ok(grvi_kv_zip_create(write_zip("bomb.zip"), "", sizeof zeros - 1, &kv));
    assert_fails(kv->class->open_object(kv, "zarr.json", &object, &found), GRV_E_UNSUPPORTED,
                 "more than 99999; store it uncompressed");
    grvi_kv_destroy(&kv);
}

static void test_no_memory(void **state)
{
    (void)state;
    make_zip(&zip, usual, N_OF(usual), 1, "");
    const char *const path = write_zip("memory.zip");
    const int64_t held = grv_memory_get().bytes;
    int n_failures = 0;
    for (grv_status status = GRV_E_NOMEM; status != GRV_OK; n_failures++) {
        grvi_kv *kv = NULL;
        grvi_object object = {0};
        bool found = false;
        char part[10];
        grvi_alloc_fail_after(n_failures);
        status = grvi_kv_zip_create(path, "", MOST, &kv);
        if (status == GRV_OK) status = kv->class->open_object(kv, "a/c/0", &object, &found);
        if (status == GRV_OK) status = kv->class->read_object(kv, &object, "", 5, 10, part);
        grvi_alloc_fail_after(-1);
        if (found) kv->class->close_object(kv, &object);
        grvi_kv_destroy(&kv);
        if (status != GRV_OK) assert_int_equal(status, GRV_E_NOMEM);
        assert_int_equal(grv_memory_get().bytes, held);
    }
    assert_true(n_failures > 5);
}

/* ---- a store of grove's own ---- */

static zip_item packed[64];
static size_t n_packed;

static int pack_file(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)walk;
    if (type != FTW_F) return 0;
    char *const bytes = malloc((size_t)info->st_size + 1), *const name = malloc(256);
    assert_non_null(bytes);
    assert_non_null(name);
    (void)snprintf(name, 256, "top/%s", path + n_root);
    packed[n_packed] = (zip_item){name, bytes, read_file(path, bytes, (size_t)info->st_size + 1)};
    packed[n_packed].method = n_packed % 2 == 0 ? 8 : 0;
    n_packed++;
    return 0;
}

static void test_own_store(void **state)
{
    static const int64_t shape[] = {20, 30}, chunk[] = {8, 12}, inner[] = {4, 4}, zero[] = {0, 0},
                         start[] = {3, 5}, count[] = {10, 20};
    static float values[600], part[600], expected[600];
    (void)state;
    grv_store *store = open_writable(in_folder("own"), 1);
    assert_ok(grv_group_create(store, "", "{\"title\":\"zipped\"}"));
    for (int i = 0; i < 600; i++) values[i] = (float)i;
    for (int sharded = 0; sharded < 2; sharded++) {
        const grv_array_desc desc = desc_of(GRV_STORE_F32, 2, shape, chunk, sharded ? inner : NULL);
        grv_array *array = NULL;
        assert_ok(grv_array_create(store, sharded ? "shards" : "chunks", &desc, &array));
        assert_ok(grv_array_write(array, zero, shape, values, NULL));
        assert_ok(grv_array_read(array, start, count, expected, NULL));
        grv_array_close(&array);
    }
    grv_store_close(&store);
    n_root = strlen(in_folder("own")) + 1;
    assert_int_equal(nftw(in_folder("own"), pack_file, 16, FTW_PHYS), 0);
    make_zip(&zip, packed, n_packed, 1, "");
    assert_ok(grv_store_open(write_zip("own.zip"), NULL, &store));
    for (int sharded = 0; sharded < 2; sharded++) {
        grv_array *array = NULL;
        int64_t n_objects = 0, n_bytes = 0;
        assert_ok(grv_array_open(store, sharded ? "shards" : "chunks", &array));
        memset(part, 0, sizeof part);
        assert_ok(grv_array_read(array, start, count, part, NULL));
        assert_memory_equal(part, expected, 200 * sizeof part[0]);
        assert_ok(grv_array_stored(array, &n_objects, &n_bytes));
        assert_int_equal(n_objects, 9);
        grv_array_close(&array);
    }
    grv_store_child *children = NULL;
    int64_t n = 0;
    assert_ok(grv_store_list(store, "", &children, &n));
    assert_int_equal(n, 2);
    grv_store_children_free(children, n);
    grv_store_close(&store);
    char inside[1024]; /* a location in the archive */
    (void)snprintf(inside, sizeof inside, "%s/chunks", in_folder("own.zip"));
    grv_node_kind kind = GRV_NODE_NONE;
    assert_ok(grv_store_open(inside, NULL, &store));
    assert_ok(grv_store_node(store, "", &kind));
    assert_int_equal(kind, GRV_NODE_ARRAY);
    assert_ok(grv_store_commit(store));
    grv_store_close(&store);
    /* known by its first bytes; and not to be written */
    assert_int_equal(rename(in_folder("own.zip"), in_folder("own.bin")), 0);
    assert_ok(grv_store_open(in_folder("own.bin"), NULL, &store));
    grv_store_close(&store);
    grv_store_params params = grv_store_params_default();
    params.writable = true;
    assert_fails(grv_store_open(in_folder("own.bin"), &params, &store), GRV_E_UNSUPPORTED,
                 "a zip archive can be read only, not written");
    for (size_t i = 0; i < n_packed; i++) {
        free((void *)(uintptr_t)packed[i].name);
        free((void *)(uintptr_t)packed[i].data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_real_entries),
                                       cmocka_unit_test(test_real_stores),
                                       cmocka_unit_test(test_made),
                                       cmocka_unit_test(test_top_folder),
                                       cmocka_unit_test(test_threads),
                                       cmocka_unit_test(test_changed_archive),
                                       cmocka_unit_test(test_truncated),
                                       cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_lies),
                                       cmocka_unit_test(test_zip64_lies),
                                       cmocka_unit_test(test_damaged_entries),
                                       cmocka_unit_test(test_no_memory),
                                       cmocka_unit_test(test_own_store)};
    for (size_t i = 0; i < sizeof large; i++) large[i] = (uint8_t)((i * i / 64) % 251);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
