/* Writers that are killed, disks that are full, memory that runs out: the old object or the new one, one clear message, no leak.
 * rename, write, fsync, syncfs and unlink are replaced by functions of this file, which the static library then calls. */
#define _GNU_SOURCE /* syncfs */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/alloc.h"
#include "store_support.h"

enum { N = 40 };

static int kill_at = -1; /* number of the step that kills the process; -1: none */
static int n_steps;
static int64_t write_budget = -1; /* bytes until the disk is full; -1: no limit */
static int n_fsyncs, n_fsyncs_at_rename;

/* a moment at which a writer may be killed */
static void step(void)
{
    if (kill_at >= 0 && n_steps++ == kill_at) (void)raise(SIGKILL);
}

int rename(const char *from, const char *to)
{
    step();
    n_fsyncs_at_rename = n_fsyncs;
    const int result = (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    step();
    return result;
}

ssize_t write(int fd, const void *data, size_t n)
{
    step();
    if (kill_at >= 0) { /* half of it, so that the rest is another step */
        n = (n + 1) / 2;
    } else if (write_budget >= 0 && (int64_t)n > write_budget) {
        n = (size_t)write_budget;
        if (n == 0) {
            errno = ENOSPC;
            return -1;
        }
    }
    if (write_budget >= 0) write_budget -= (int64_t)n;
    return (ssize_t)syscall(SYS_write, fd, data, n);
}

int fsync(int fd)
{
    (void)fd;
    step();
    n_fsyncs++;
    return 0;
}

int syncfs(int fd)
{
    (void)fd;
    step();
    return 0;
}

int unlink(const char *path)
{
    step();
    const int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    step();
    return result;
}

static const int64_t shape[] = {N}, zero[] = {0};

static grv_array *make_array(grv_store *store, bool sharded)
{
    const int64_t inner[] = {8};
    grv_array *array = NULL;
    const grv_array_desc desc = desc_of(GRV_STORE_I32, 1, shape, shape, sharded ? inner : NULL);
    assert_ok(grv_array_create(store, "a", &desc, &array));
    return array;
}

static grv_status write_value(grv_array *array, int32_t value, int64_t n)
{
    int32_t data[N];
    for (int i = 0; i < N; i++) data[i] = value;
    return grv_array_write(array, zero, &n, data, NULL);
}

static void check_value(grv_array *array, int32_t value)
{
    int32_t data[N];
    assert_ok(grv_array_read(array, zero, shape, data, NULL));
    for (int i = 0; i < N; i++) assert_int_equal(data[i], value);
}

/* ---- killed at every moment ---- */

/* Something that is published, and what may be found afterwards; all elements of the array are 1 before. */
typedef struct publication {
    grv_status (*publish)(grv_store *store, grv_array *array);
    /* is it as it was before, or as it is after? nothing else is allowed */
    bool (*is_new)(grv_store *store, grv_array *array);
} publication;

/* Value of the n first elements; the others must be 1. */
static int32_t first_value(grv_array *array, int64_t n)
{
    int32_t data[N];
    assert_ok(grv_array_read(array, zero, shape, data, NULL));
    for (int i = 0; i < N; i++) assert_int_equal(data[i], i < n ? data[0] : 1);
    return data[0];
}

static grv_status publish_whole(grv_store *store, grv_array *array)
{
    (void)store;
    return write_value(array, 2, N);
}

static bool is_whole_new(grv_store *store, grv_array *array)
{
    (void)store;
    const int32_t value = first_value(array, N);
    assert_in_range(value, 1, 2);
    return value == 2;
}

static grv_status publish_part(grv_store *store, grv_array *array)
{
    (void)store;
    return write_value(array, 3, N - 3);
}

static bool is_part_new(grv_store *store, grv_array *array)
{
    (void)store;
    const int32_t value = first_value(array, N - 3);
    assert_true(value == 1 || value == 3);
    return value == 3;
}

/* an object of nothing but the fill value is removed */
static grv_status publish_fill(grv_store *store, grv_array *array)
{
    (void)store;
    return write_value(array, 0, N);
}

static bool is_fill_new(grv_store *store, grv_array *array)
{
    (void)store;
    const int32_t value = first_value(array, N);
    assert_in_range(value, 0, 1);
    return value == 0;
}

static grv_status publish_array(grv_store *store, grv_array *array)
{
    const grv_array_desc desc = desc_of(GRV_STORE_I32, 1, shape, shape, NULL);
    (void)array;
    return grv_array_create(store, "g/b", &desc, NULL);
}

static bool is_array_new(grv_store *store, grv_array *array)
{
    grv_node_kind kind = GRV_NODE_NONE;
    (void)array;
    assert_ok(grv_store_node(store, "g/b", &kind));
    assert_true(kind == GRV_NODE_NONE || kind == GRV_NODE_ARRAY);
    return kind == GRV_NODE_ARRAY;
}

static grv_status publish_attributes(grv_store *store, grv_array *array)
{
    (void)array;
    return grv_attributes_set(store, "a", "{\"now\":2}");
}

static bool is_attribute_new(grv_store *store, grv_array *array)
{
    char *attributes = NULL;
    (void)array;
    assert_ok(grv_attributes_get(store, "a", &attributes));
    const bool is_new = strcmp(attributes, "{\"now\":2}") == 0;
    assert_true(is_new || strcmp(attributes, "{}") == 0);
    grv_free(attributes);
    return is_new;
}

/* In a child: publishes and commits, killed at a step; true if it came to its end. */
static bool publish_killed(grv_store *store, grv_array *array, const publication *p, int number)
{
    int result = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        kill_at = number;
        _exit(p->publish(store, array) == GRV_OK && grv_store_commit(store) == GRV_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    if (WIFEXITED(result)) {
        assert_int_equal(WEXITSTATUS(result), 0);
        return true;
    }
    assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
    return false;
}

/* Kills at step 0, 1, 2, ... until it is done before; each time in a store of its own. Returns the number of steps. */
static int kill_at_every_step(const publication *p, bool sharded, grv_store_sync sync)
{
    static int n_stores;
    bool was_new = false;
    for (int number = 0;; number++) {
        char name[32];
        int64_t n_objects = 0, n_bytes = 0;
        grv_store *store = NULL;
        grv_store_params params = grv_store_params_default();
        params.writable = true;
        params.sync = sync;
        (void)snprintf(name, sizeof name, "kill%d", n_stores++);
        assert_ok(grv_store_open(in_folder(name), &params, &store));
        grv_array *array = make_array(store, sharded);
        assert_ok(write_value(array, 1, N));
        const bool done = publish_killed(store, array, p, number);
        const bool is_new = p->is_new(store, array);
        assert_true(is_new || !was_new); /* what was published at a step is so at all later ones */
        was_new = is_new;
        /* what a killed writer left aside is no object, and the next writer is not held up */
        assert_ok(grv_array_stored(array, &n_objects, &n_bytes));
        assert_true(n_objects <= 1);
        if (p->publish(store, array) != GRV_OK) assert_true(is_new && p->publish == publish_array);
        assert_true(p->is_new(store, array));
        grv_array_close(&array);
        grv_store_close(&store);
        if (!done) continue;
        assert_true(is_new);
        return number;
    }
}

static void test_killed_at_every_step(void **state)
{
    static const publication publications[] = {{publish_whole, is_whole_new},
                                               {publish_part, is_part_new},
                                               {publish_fill, is_fill_new},
                                               {publish_array, is_array_new},
                                               {publish_attributes, is_attribute_new}};
    (void)state;
    for (size_t i = 0; i < sizeof publications / sizeof *publications; i++) {
        for (int sharded = 0; sharded < (i < 3 ? 2 : 1); sharded++) {
            for (int sync = GRV_STORE_SYNC_NONE; sync <= GRV_STORE_SYNC_EACH; sync++) {
                const int n = kill_at_every_step(&publications[i], sharded != 0, sync);
                /* removal: before and after; else some writes, the rename before and after */
                assert_true(n >= (publications[i].publish == publish_fill ? 2 : 4));
            }
        }
    }
}

static void test_disk_full(void **state)
{
    grv_store *store = open_writable(in_folder("full"), 1);
    grv_array *array = make_array(store, true);
    int64_t budget = 0;
    grv_status status = GRV_E_IO;
    (void)state;
    assert_ok(write_value(array, 1, N));
    for (; status != GRV_OK; budget += 5) {
        write_budget = budget;
        status = write_value(array, 2, N - 1);
        write_budget = -1;
        if (status == GRV_OK) break;
        assert_int_equal(status, GRV_E_IO);
        assert_non_null(strstr(grv_error_message(), "writing shard (0) of 'a': write"));
        assert_non_null(strstr(grv_error_message(), strerror(ENOSPC)));
        check_value(array, 1);
    }
    assert_true(budget > 50); /* index and data: several budgets were too small */
    grv_array_close(&array);
    grv_store_close(&store);
}

static void test_sync_policies(void **state)
{
    (void)state;
    for (int policy = GRV_STORE_SYNC_NONE; policy <= GRV_STORE_SYNC_EACH; policy++) {
        grv_store *store = NULL;
        grv_store_params params = grv_store_params_default();
        params.writable = true;
        params.sync = (grv_store_sync)policy;
        char name[16];
        (void)snprintf(name, sizeof name, "sync%d", policy);
        assert_ok(grv_store_open(in_folder(name), &params, &store));
        grv_array *array = make_array(store, false);
        const bool each = policy == GRV_STORE_SYNC_EACH;
        for (int pass = 0; pass < 2; pass++) {
            n_fsyncs = 0;
            assert_ok(write_value(array, 1, N));
            /* the file, then its folder; the first time, that folder is new in the array's, and that perhaps in the root */
            assert_int_equal(n_fsyncs, each ? (pass == 0 ? 4 : 2) : 0);
            assert_int_equal(n_fsyncs_at_rename, each ? 1 : 0);
        }
        assert_ok(grv_store_commit(store));
        grv_array_close(&array);
        grv_store_close(&store);
    }
}

/* Opens, reads and changes an array; every allocation fails once in turn. */
static grv_status work(const char *location)
{
    grv_status status = GRV_OK;
    grv_store *store = NULL;
    grv_array *array = NULL;
    grv_store_child *children = NULL;
    char *attributes = NULL;
    int64_t n = 0;
    int32_t data[N];
    grv_store_params params = grv_store_params_default();
    params.writable = true;
    GRV_TRY_GOTO(grv_store_open(location, &params, &store));
    GRV_TRY_GOTO(grv_store_list(store, "", &children, &n));
    GRV_TRY_GOTO(grv_attributes_get(store, "a", &attributes));
    GRV_TRY_GOTO(grv_array_open(store, "a", &array));
    GRV_TRY_GOTO(grv_array_read(array, zero, shape, data, NULL));
    GRV_TRY_GOTO(write_value(array, 9, 3));
    GRV_TRY_GOTO(write_value(array, 1, N));
done:
    grvi_alloc_fail_after(-1);
    grv_store_children_free(children, n);
    grv_free(attributes);
    grv_array_close(&array);
    grv_store_close(&store);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    for (int sharded = 0; sharded < 2; sharded++) {
        const char *const location = in_folder(sharded ? "memory-s" : "memory");
        grv_store *store = open_writable(location, 1);
        grv_array *array = make_array(store, sharded != 0);
        assert_ok(write_value(array, 1, N));
        grv_array_close(&array);
        grv_store_close(&store);
        const int64_t held = grv_memory_get().bytes;
        int64_t countdown = 0;
        for (;; countdown++) {
            grvi_alloc_fail_after(countdown);
            const grv_status status = work(location);
            assert_int_equal(grv_memory_get().bytes, held);
            if (status == GRV_OK) break;
            assert_int_equal(status, GRV_E_NOMEM);
        }
        assert_true(countdown > 15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_at_every_step), cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_sync_policies), cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
