/* Copies with another layout hold the same elements, stay in memory, go on after a kill, and refuse what does not fit. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <time.h>

#include "grove/store_tools.h"
#include "store_support.h"

enum { N0 = 37, N1 = 50, N2 = 23, N_ALL = N0 * N1 * N2 };

static const int64_t shape[] = {N0, N1, N2}, zero[] = {0, 0, 0, 0};
static int32_t values[N_ALL], found[N_ALL];

static int32_t value_of(int i)
{
    /* a corner of nothing but fill */
    return i < N_ALL / 4 ? 0 : (int32_t)(grv_random_bits(3, 0, (uint64_t)i) % 1000);
}

static grv_array_desc layout_of(const int64_t *chunk, const int64_t *inner)
{
    return desc_of(GRV_STORE_I32, 3, shape, chunk, inner);
}

static void make_source(const char *location, const grv_array_desc *desc)
{
    grv_store *store = open_writable(location, 2);
    grv_array *array = NULL;
    grv_array_desc named = *desc;
    for (int i = 0; i < N_ALL; i++) values[i] = value_of(i);
    named.dimension_names[0] = "z";
    named.dimension_names[1] = "y";
    named.dimension_names[2] = "x";
    named.attributes = "{\"unit\": \"m/s\", \"unknown\": {\"deep\": [1, null, 2.5]}}";
    assert_ok(grv_group_create(store, "", "{\"title\": \"t\"}"));
    assert_ok(grv_array_create(store, "g/u", &named, &array));
    assert_ok(grv_array_write(array, zero, shape, values, NULL));
    grv_array_close(&array);
    grv_store_close(&store);
}

static int n_threads = 2; /* 1 in children: threads do not live through a fork */

static grv_status copy(const char *from, const char *path, const char *to,
                       const grv_copy_params *params, grv_copy_report *report,
                       grv_store_counters *counters)
{
    grv_store *source = NULL, *target = open_writable(to, n_threads);
    grv_store_params read_params = grv_store_params_default();
    read_params.n_threads = n_threads;
    assert_ok(grv_store_open(from, &read_params, &source));
    const grv_status status = grv_store_copy(source, path, target, "", params, report);
    if (counters != NULL) *counters = grv_store_counters_get(source);
    grv_store_close(&source);
    grv_store_close(&target);
    return status;
}

static void check_copy(const char *location, const char *path)
{
    grv_store *store = NULL;
    grv_array *array = NULL;
    grv_check_report report;
    char *attributes = NULL;
    assert_ok(grv_store_open(location, NULL, &store));
    assert_ok(grv_array_open(store, path, &array));
    memset(found, 1, sizeof found);
    assert_ok(grv_array_read(array, zero, shape, found, NULL));
    assert_memory_equal(found, values, sizeof values);
    assert_string_equal(grv_array_get_desc(array)->dimension_names[1], "y");
    assert_ok(grv_attributes_get(store, path, &attributes));
    assert_non_null(strstr(attributes, "\"deep\":[1,null,2.5]"));
    assert_ok(grv_store_check(store, "", NULL, &report));
    assert_int_equal(report.n_problems, 0);
    grv_check_report_fini(&report);
    grv_free(attributes);
    grv_array_close(&array);
    grv_store_close(&store);
}

static void set_shape(int *rank, int64_t *out, const int64_t *lengths)
{
    *rank = lengths != NULL ? 3 : 0;
    for (int i = 0; i < *rank; i++) out[i] = lengths[i];
}

/* Any layout into any other; with little memory as with much. */
static void test_layouts(void **state)
{
    static const int64_t planes[] = {1, N1, N2}, cubes[] = {8, 8, 8}, whole[] = {N0, N1, N2},
                         shard[] = {16, 24, 23}, inner[] = {8, 12, 23}, pencils[] = {N0, 4, 4};
    static const struct {
        const int64_t *chunk, *shard;
    } layouts[] = {{planes, NULL}, {cubes, NULL}, {whole, NULL}, {inner, shard}, {pencils, NULL}};
    enum { N = sizeof layouts / sizeof layouts[0] };
    char from[64], to[64];
    (void)state;
    for (int i = 0; i < N; i++) {
        const int64_t *const object =
            layouts[i].shard != NULL ? layouts[i].shard : layouts[i].chunk;
        grv_array_desc desc = layout_of(object, layouts[i].shard != NULL ? layouts[i].chunk : NULL);
        (void)snprintf(from, sizeof from, "layout%d", i);
        make_source(in_folder(from), &desc);
        for (int k = 0; k < 2 * N; k++) {
            grv_copy_params params = grv_copy_params_default();
            grv_copy_report report;
            const int j = k % N;
            set_shape(&params.layout.chunk_rank, params.layout.chunk, layouts[j].chunk);
            set_shape(&params.layout.shard_rank, params.layout.shard, layouts[j].shard);
            params.layout.unshard = layouts[j].shard == NULL;
            params.layout.checksum = j % 2 == 0;
            if (k >= N) params.memory_bytes = (int64_t)10 << 20;
            (void)snprintf(to, sizeof to, "layout%d-%d", i, k);
            assert_ok(copy(in_folder(from), "g/u", in_folder(to), &params, &report, NULL));
            assert_int_equal(report.n_arrays, 1);
            assert_int_equal(report.n_bytes, N_ALL * 4);
            check_copy(in_folder(to), "");
        }
    }
}

/* A whole tree, as it is: same bytes, nothing decoded; with verify decoded. */
static void test_tree_as_it_is(void **state)
{
    static const int64_t shard[] = {16, 24, 23}, inner[] = {8, 12, 23};
    const grv_array_desc desc = layout_of(shard, inner);
    grv_copy_params params = grv_copy_params_default();
    grv_copy_report report;
    grv_store_counters counters;
    (void)state;
    make_source(in_folder("tree"), &desc);
    assert_ok(copy(in_folder("tree"), "", in_folder("tree2"), &params, &report, &counters));
    assert_int_equal(report.n_groups, 2);
    assert_int_equal(report.n_arrays, 1);
    assert_int_equal(report.n_byte_copied, 1);
    assert_int_equal(counters.bytes_decoded, 0);
    check_copy(in_folder("tree2"), "g/u");
    params.verify = true;
    assert_ok(copy(in_folder("tree"), "", in_folder("tree3"), &params, &report, &counters));
    assert_true(counters.bytes_decoded > N_ALL * 2);
    check_copy(in_folder("tree3"), "g/u");
    assert_fails(copy(in_folder("tree"), "", in_folder("tree3"), &params, NULL, NULL), GRV_E_EXISTS,
                 "is there already");
    assert_fails(copy(in_folder("tree"), "no", in_folder("tree4"), &params, NULL, NULL),
                 GRV_E_NOT_FOUND, "no group or array");
}

/* Members of the metadata that grove does not know stay in a group. */
static void test_unknown_members(void **state)
{
    static const char document[] =
        "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"a\":1},"
        "\"their_own\":{\"must_understand\":false,\"x\":[1]},\"consolidated_metadata\":null}";
    char text[1024] = "";
    (void)state;
    assert_int_equal(mkdir(in_folder("unknown"), 0777), 0);
    write_file(in_folder("unknown/zarr.json"), document, sizeof document - 1);
    assert_ok(copy(in_folder("unknown"), "", in_folder("unknown2"), NULL, NULL, NULL));
    (void)read_file(in_folder("unknown2/zarr.json"), text, sizeof text - 1);
    assert_non_null(strstr(text, "their_own"));
    assert_null(strstr(text, "consolidated"));
}

/* Memory of the whole copy stays below the limit, for arrays that are larger than it. */
static void test_bounded_memory(void **state)
{
    enum { N = 256, PLANE = N * N };
    static const int64_t big[] = {N, N, N}, planes[] = {4, N, N}, pencils[] = {N, 16, 32},
                         shards[] = {64, 64, N}, inner[] = {16, 16, 64};
    static int32_t plane[4 * PLANE];
    const int64_t limit = (int64_t)32 << 20; /* of 64 MiB */
    grv_store *store = open_writable(in_folder("big"), 2);
    grv_array *array = NULL;
    grv_array_desc desc = desc_of(GRV_STORE_I32, 3, big, planes, NULL);
    (void)state;
    assert_ok(grv_array_create(store, "", &desc, &array));
    for (int64_t z = 0; z < N; z += 4) {
        const int64_t start[] = {z, 0, 0};
        for (int i = 0; i < 4 * PLANE; i++)
            plane[i] = (int32_t)grv_random_bits(5, (uint64_t)z, (uint64_t)i);
        assert_ok(grv_array_write(array, start, planes, plane, NULL));
    }
    grv_array_close(&array);
    grv_store_close(&store);
    for (int sharded = 0; sharded < 2; sharded++) {
        grv_copy_params params = grv_copy_params_default();
        grv_store_counters counters;
        params.memory_bytes = limit;
        set_shape(&params.layout.chunk_rank, params.layout.chunk, sharded ? inner : pencils);
        set_shape(&params.layout.shard_rank, params.layout.shard, sharded ? shards : NULL);
        const pid_t child = fork(); /* the peak of a process of its own */
        assert_true(child >= 0);
        if (child == 0) {
            const int64_t before = grv_memory_get().bytes;
            grv_store *from = NULL, *to = NULL;
            grv_store_params p = grv_store_params_default();
            if (grv_store_open(in_folder("big"), &p, &from) != GRV_OK) _exit(2);
            p.writable = true;
            if (grv_store_open(in_folder(sharded ? "big-s" : "big-p"), &p, &to) != GRV_OK) _exit(3);
            if (grv_store_copy(from, "", to, "", &params, NULL) != GRV_OK) _exit(4);
            counters = grv_store_counters_get(from);
            /* one read of the whole is 64 MiB; memory for a third of it: at most five reads */
            if (counters.bytes_decoded > (int64_t)5 * N * PLANE * 4) _exit(5);
            _exit(grv_memory_get().peak_bytes - before <= limit ? 0 : 1);
        }
        int result = 0;
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result));
        assert_int_equal(WEXITSTATUS(result), 0);
    }
    grv_copy_params params = grv_copy_params_default();
    params.memory_bytes = (int64_t)2 << 20;
    set_shape(&params.layout.chunk_rank, params.layout.chunk, pencils);
    assert_fails(copy(in_folder("big"), "", in_folder("big-n"), &params, NULL, NULL), GRV_E_ARG,
                 "MB of memory or more");
}

typedef struct stopper {
    int64_t until; /* bytes after which it stops */
    int64_t last;
} stopper;

static bool stop_after(void *argument, int64_t done, int64_t total)
{
    stopper *const s = argument;
    assert_true(done >= s->last && done <= total);
    s->last = done;
    return done < s->until;
}

/* Interrupted, then resumed: what was done is not done again, and it ends as an undisturbed copy. Also what differs is refused. */
static void test_interrupted(void **state)
{
    static const int64_t planes[] = {1, N1, N2}, other[] = {3, 3, 23};
    const grv_array_desc desc = layout_of(planes, NULL);
    (void)state;
    make_source(in_folder("int"), &desc);
    for (int verify = 0; verify < 2; verify++) {
        const char *const name = verify ? "int-v" : "int-b";
        stopper stop = {N_ALL * 2, 0};
        grv_copy_params params = grv_copy_params_default();
        grv_copy_report report;
        grv_store_counters counters;
        params.verify = verify != 0;
        params.memory_bytes = ((int64_t)24 << 20) + N_ALL; /* blocks of about a quarter */
        params.hooks = (grv_tool_hooks){stop_after, &stop};
        params.source_name = "int";
        assert_fails(copy(in_folder("int"), "g/u", in_folder(name), &params, NULL, NULL),
                     GRV_E_INTERRUPTED, "stopped after");
        /* no array is seen yet */
        grv_store *store = NULL;
        grv_node_kind kind = GRV_NODE_ARRAY;
        assert_ok(grv_store_open(in_folder(name), NULL, &store));
        assert_ok(grv_store_node(store, "", &kind));
        assert_int_equal(kind, GRV_NODE_NONE);
        grv_store_close(&store);
        params.hooks.progress = NULL;
        grv_copy_params wrong = params;
        set_shape(&wrong.layout.chunk_rank, wrong.layout.chunk, other);
        assert_fails(copy(in_folder("int"), "g/u", in_folder(name), &wrong, NULL, NULL),
                     GRV_E_EXISTS, "its chunk is [1,50,23], this copy's is [3,3,23]");
        wrong = params;
        wrong.source_name = "elsewhere";
        assert_fails(copy(in_folder("int"), "g/u", in_folder(name), &wrong, NULL, NULL),
                     GRV_E_EXISTS, "unfinished copy of 'int'");
        wrong = params;
        wrong.resume = false;
        assert_fails(copy(in_folder("int"), "g/u", in_folder(name), &wrong, NULL, NULL),
                     GRV_E_EXISTS, "unfinished copy");
        assert_ok(copy(in_folder("int"), "g/u", in_folder(name), &params, &report, &counters));
        assert_true(report.n_bytes_skipped >= N_ALL * 2);
        assert_true(counters.objects_opened <= N0 / 2 + 1);
        check_copy(in_folder(name), "");
    }
}

static int same_files(const char *a, const char *b)
{
    char command[2200];
    (void)snprintf(command, sizeof command, "diff -r %s %s", a, b);
    return system(command) == 0;
}

/* Killed at random moments, then run to the end: the same files as an undisturbed copy, and nothing beside them. */
static void test_killed(void **state)
{
    static const int64_t shard[] = {16, 24, 23}, inner[] = {8, 12, 23}, chunk[] = {5, 6, 7};
    const grv_array_desc desc = layout_of(shard, inner);
    char name[32];
    (void)state;
    make_source(in_folder("kill"), &desc);
    for (int as_bytes = 0; as_bytes < 2; as_bytes++) {
        grv_copy_params params = grv_copy_params_default();
        params.memory_bytes = ((int64_t)24 << 20) + N_ALL / 2;
        if (!as_bytes) {
            set_shape(&params.layout.chunk_rank, params.layout.chunk, chunk);
            params.layout.unshard = true;
        }
        const char *const whole = as_bytes ? "kill-wb" : "kill-w";
        assert_ok(copy(in_folder("kill"), "", in_folder(whole), &params, NULL, NULL));
        int n_killed = 0;
        for (int i = 0; i < 32; i++) {
            (void)snprintf(name, sizeof name, "kill-%d-%d", as_bytes, i % 4);
            const pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                n_threads = 1;
                _exit(copy(in_folder("kill"), "", in_folder(name), &params, NULL, NULL) != GRV_OK);
            }
            const struct timespec pause = {
                0, (long)(grv_random_bits(9, (uint64_t)as_bytes, (uint64_t)i) % 20000000)};
            (void)nanosleep(&pause, NULL);
            (void)kill(child, SIGKILL);
            int result = 0;
            assert_int_equal(waitpid(child, &result, 0), child);
            n_killed += WIFSIGNALED(result);
        }
        assert_true(n_killed > 0);
        for (int i = 0; i < 4; i++) {
            (void)snprintf(name, sizeof name, "kill-%d-%d", as_bytes, i);
            const grv_status status =
                copy(in_folder("kill"), "", in_folder(name), &params, NULL, NULL);
            assert_true(status == GRV_OK ||
                        status == GRV_E_EXISTS); /* some ended before the kill */
            assert_true(same_files(in_folder(whole), in_folder(name)));
            check_copy(in_folder(name), "g/u");
        }
    }
}

/* Between the versions: same elements, names and attributes; bytes are copied where the codecs say the same. */
static void test_versions(void **state)
{
    static const int64_t cubes[] = {8, 8, 8}, planes[] = {1, N1, N2};
    grv_array_desc desc = layout_of(cubes, NULL);
    grv_copy_params params = grv_copy_params_default();
    grv_copy_report report;
    grv_store *store = NULL;
    grv_array *array = NULL;
    char *attributes = NULL;
    (void)state;
    make_source(in_folder("v3"), &desc);
    params.layout.zarr_format = 2;
    assert_ok(copy(in_folder("v3"), "", in_folder("v2"), &params, &report, NULL));
    assert_int_equal(report.n_byte_copied, 1);
    assert_int_equal(access(in_folder("v2/.zgroup"), F_OK), 0);
    assert_int_equal(access(in_folder("v2/g/u/.zarray"), F_OK), 0);
    assert_int_equal(access(in_folder("v2/g/u/0.0.0"), F_OK), -1); /* fill */
    assert_int_equal(access(in_folder("v2/g/u/4.6.2"), F_OK), 0);
    check_copy(in_folder("v2"), "g/u");
    /* a version 2 store as it is, and back to 3 with other chunks */
    params.layout.zarr_format = 0;
    assert_ok(copy(in_folder("v2"), "", in_folder("v2-2"), &params, &report, NULL));
    assert_int_equal(report.n_byte_copied, 1);
    check_copy(in_folder("v2-2"), "g/u");
    params.layout.zarr_format = 3;
    for (int rechunk = 0; rechunk < 2; rechunk++) {
        const char *const name = rechunk ? "v3-r" : "v3-b";
        if (rechunk) set_shape(&params.layout.chunk_rank, params.layout.chunk, planes);
        assert_ok(copy(in_folder("v2"), "", in_folder(name), &params, &report, NULL));
        assert_int_equal(report.n_byte_copied, !rechunk);
        check_copy(in_folder(name), "g/u");
        assert_ok(grv_store_open(in_folder(name), NULL, &store));
        assert_ok(grv_array_open(store, "g/u", &array));
        assert_int_equal(grv_array_get_desc(array)->zarr_format, 3);
        assert_false(grv_array_get_desc(array)->keys_v2);
        assert_ok(grv_attributes_get(store, "", &attributes));
        assert_string_equal(attributes, "{\"title\":\"t\"}");
        grv_free(attributes);
        grv_array_close(&array);
        grv_store_close(&store);
    }
    /* an array does not go into a group of another version; that is told before anything is written */
    grv_store *from = NULL, *to = open_writable(in_folder("v2"), 1);
    assert_ok(grv_store_open(in_folder("v3"), NULL, &from));
    assert_fails(grv_store_copy(from, "g/u", to, "w", NULL, NULL), GRV_E_UNSUPPORTED,
                 "is a group of Zarr version 2");
    assert_int_equal(access(in_folder("v2/w"), F_OK), -1);
    grv_store_close(&from);
    grv_store_close(&to);
}

/* A group of which one array is finished goes on as the same copy only. */
static void test_finished_array_is_compared(void **state)
{
    static const int64_t planes[] = {1, N1, N2};
    const grv_array_desc desc = layout_of(planes, NULL);
    grv_copy_params params = grv_copy_params_default();
    grv_copy_report report;
    stopper stop = {N_ALL * 4 + 1, 0};
    (void)state;
    make_source(in_folder("two"), &desc);
    grv_store *store = open_writable(in_folder("two"), 1);
    grv_array *array = NULL;
    assert_ok(grv_array_create(store, "g/v", &desc, &array));
    assert_ok(grv_array_write(array, zero, shape, values, NULL));
    grv_array_close(&array);
    grv_store_close(&store);
    params.layout.recode = true;
    params.layout.compressor = GRV_COMPRESSOR_GZIP;
    params.layout.level = 1;
    params.hooks = (grv_tool_hooks){stop_after, &stop};
    assert_fails(copy(in_folder("two"), "", in_folder("two2"), &params, NULL, NULL),
                 GRV_E_INTERRUPTED, "stopped");
    params.hooks.progress = NULL;
    params.layout.level = 2;
    assert_fails(copy(in_folder("two"), "", in_folder("two2"), &params, NULL, NULL), GRV_E_EXISTS,
                 "'g/u' is of another copy: its codecs is");
    params.layout.level = 1;
    assert_ok(copy(in_folder("two"), "", in_folder("two2"), &params, &report, NULL));
    assert_true(report.n_bytes_skipped >= N_ALL * 4);
    check_copy(in_folder("two2"), "g/u");
}

/* Layouts that cannot be. */
static void test_bad_layouts(void **state)
{
    static const int64_t planes[] = {1, N1, N2}, shard[] = {3, N1, N2}, chunk[] = {2, N1, N2};
    const grv_array_desc desc = layout_of(planes, NULL);
    grv_copy_params params = grv_copy_params_default();
    (void)state;
    make_source(in_folder("bad"), &desc);
    params.layout.chunk_rank = 2;
    assert_fails(copy(in_folder("bad"), "g/u", in_folder("bad2"), &params, NULL, NULL), GRV_E_ARG,
                 "chunk: 2 lengths given, 'g/u' has 3 axes");
    set_shape(&params.layout.chunk_rank, params.layout.chunk, chunk);
    set_shape(&params.layout.shard_rank, params.layout.shard, shard);
    assert_fails(copy(in_folder("bad"), "g/u", in_folder("bad2"), &params, NULL, NULL), GRV_E_ARG,
                 "axis 0: shards of 3 are no multiple of chunks of 2");
    params.layout.unshard = true;
    assert_fails(copy(in_folder("bad"), "g/u", in_folder("bad2"), &params, NULL, NULL), GRV_E_ARG,
                 "exclude each other");
}

/* Scalars, empty arrays, an unreadable child. */
static void test_small_ones(void **state)
{
    static const int64_t empty[] = {0, 3}, chunk[] = {2, 3};
    grv_store *store = open_writable(in_folder("small"), 1);
    grv_array *array = NULL;
    grv_copy_params params = grv_copy_params_default();
    const double pi = 3.25;
    double back = 0;
    (void)state;
    grv_array_desc desc = desc_of(GRV_STORE_F64, 0, NULL, NULL, NULL);
    assert_ok(grv_array_create(store, "scalar", &desc, &array));
    assert_ok(grv_array_write(array, zero, zero, &pi, NULL));
    grv_array_close(&array);
    desc = desc_of(GRV_STORE_F64, 2, empty, chunk, NULL);
    assert_ok(grv_array_create(store, "empty", &desc, NULL));
    grv_store_close(&store);
    params.verify = true;
    assert_ok(copy(in_folder("small"), "", in_folder("small2"), &params, NULL, NULL));
    assert_ok(grv_store_open(in_folder("small2"), NULL, &store));
    assert_ok(grv_array_open(store, "scalar", &array));
    assert_ok(grv_array_read(array, zero, zero, &back, NULL));
    assert_true(back == pi);
    grv_array_close(&array);
    assert_ok(grv_array_open(store, "empty", &array));
    grv_array_close(&array);
    grv_store_close(&store);
    assert_int_equal(mkdir(in_folder("small/broken"), 0777), 0);
    write_file(in_folder("small/broken/zarr.json"), "{", 1);
    assert_fails(copy(in_folder("small"), "", in_folder("small3"), &params, NULL, NULL),
                 GRV_E_FORMAT, "broken");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),         cmocka_unit_test(test_tree_as_it_is),
        cmocka_unit_test(test_unknown_members), cmocka_unit_test(test_bounded_memory),
        cmocka_unit_test(test_interrupted),     cmocka_unit_test(test_killed),
        cmocka_unit_test(test_versions),        cmocka_unit_test(test_finished_array_is_compared),
        cmocka_unit_test(test_bad_layouts),     cmocka_unit_test(test_small_ones)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
