/* Writers that are killed, disks that are full, memory that runs out: the old object or the new one, one clear message, no leak.
 * rename, write and fsync are replaced by functions of this file, which the static library then calls. */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
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

static bool kill_at_rename;
static int64_t write_budget = -1; /* bytes until the disk is full; -1: no limit */
static int n_fsyncs;

int rename(const char *from, const char *to)
{
    if (kill_at_rename) (void)raise(SIGKILL);
    return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

ssize_t write(int fd, const void *data, size_t n)
{
    if (write_budget >= 0 && (int64_t)n > write_budget) {
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
    n_fsyncs++;
    return 0;
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

static void test_killed_before_rename(void **state)
{
    (void)state;
    for (int sharded = 0; sharded < 2; sharded++) {
        int result = 0;
        int64_t n_objects = 0, n_bytes = 0;
        grv_store *store = open_writable(in_folder(sharded ? "kill-s" : "kill"), 1);
        grv_array *array = make_array(store, sharded != 0);
        assert_ok(write_value(array, 1, N));
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            kill_at_rename = true;
            _exit(write_value(array, 2, N) == GRV_OK ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
        check_value(array, 1);
        /* what the killed writer left aside is no object */
        assert_ok(grv_array_stored(array, &n_objects, &n_bytes));
        assert_int_equal(n_objects, 1);
        assert_ok(write_value(array, 3, N));
        check_value(array, 3);
        grv_array_close(&array);
        grv_store_close(&store);
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
        n_fsyncs = 0;
        assert_ok(write_value(array, 1, N));
        assert_int_equal(n_fsyncs,
                         policy == GRV_STORE_SYNC_EACH ? 2 : 0); /* the file, then its folder */
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
        cmocka_unit_test(test_killed_before_rename), cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_sync_policies), cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
