/* Memory that runs out at every allocation, disks that are full after any byte: one clear message, no leak, no half array, and the
 * same call works afterwards. write and pwrite are replaced by functions of this file, which the static library then calls. */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/syscall.h>

#include "core/alloc.h"
#include "grove/store_tools.h"
#include "store_support.h"

enum { ROWS = 60, WIDTH = 4 };

static int64_t write_budget = -1; /* bytes until the disk is full; -1: no limit */

static size_t allowed(size_t n)
{
    if (write_budget >= 0 && (int64_t)n > write_budget) n = (size_t)write_budget;
    if (write_budget >= 0) write_budget -= (int64_t)n;
    return n;
}

ssize_t write(int fd, const void *data, size_t n)
{
    const size_t fit = allowed(n);
    if (n > 0 && fit == 0) errno = ENOSPC;
    return n > 0 && fit == 0 ? -1 : (ssize_t)syscall(SYS_write, fd, data, fit);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset)
{
    const size_t fit = allowed(n);
    if (n > 0 && fit == 0) errno = ENOSPC;
    return n > 0 && fit == 0 ? -1 : (ssize_t)syscall(SYS_pwrite64, fd, data, fit, offset);
}

static const int64_t shape[] = {ROWS, WIDTH}, zero[] = {0, 0}, chunk[] = {16, 4}, inner[] = {8, 4};

static void make_source(const char *name)
{
    int32_t data[ROWS * WIDTH];
    grv_store *store = open_writable(in_folder(name), 1);
    grv_array *array = NULL;
    for (int i = 0; i < ROWS * WIDTH; i++) data[i] = i;
    for (int sharded = 0; sharded < 2; sharded++) {
        const grv_array_desc desc =
            desc_of(GRV_STORE_I32, 2, shape, chunk, sharded != 0 ? inner : NULL);
        assert_ok(grv_array_create(store, sharded != 0 ? "s" : "a", &desc, &array));
        assert_ok(grv_array_write(array, zero, shape, data, NULL));
        grv_array_close(&array);
    }
    grv_store_close(&store);
}

/* One operation of a store on another. */
typedef grv_status operation(grv_store *source, grv_store *target);

static grv_status convert(grv_store *source, grv_store *target)
{
    grv_copy_params params = grv_copy_params_default();
    params.layout.chunk_rank = 2;
    params.layout.chunk[0] = 5;
    params.layout.chunk[1] = 3;
    return grv_store_copy(source, "", target, "", &params, NULL);
}

static grv_status copy(grv_store *source, grv_store *target)
{
    return grv_store_copy(source, "", target, "", NULL, NULL);
}

static grv_status shuffle(grv_store *source, grv_store *target)
{
    return grv_store_shuffle(source, "", target, "", NULL);
}

static grv_status check(grv_store *source, grv_store *target)
{
    grv_check_report report;
    (void)target;
    GRV_TRY(grv_store_check(source, "", NULL, &report));
    const int64_t n = report.n_problems;
    grv_check_report_fini(&report);
    GRV_CHECK(n == 0, GRV_E_FORMAT, "%lld problems", (long long)n);
    return GRV_OK;
}

static grv_status window(grv_store *source, grv_store *target)
{
    const grv_window_params params = {1, 1, 50, 7, true};
    int32_t rows[2][7 * WIDTH];
    void *const out[] = {rows[0], rows[1]};
    grv_array *arrays[2] = {NULL, NULL};
    (void)target;
    grv_status status = grv_array_open(source, "a", &arrays[0]);
    if (status == GRV_OK) status = grv_array_open(source, "s", &arrays[1]);
    if (status == GRV_OK) status = grv_read_window(arrays, 2, &params, out, NULL);
    grv_array_close(&arrays[0]);
    grv_array_close(&arrays[1]);
    return status;
}

static grv_status run(operation *run_it, const char *from, const char *to)
{
    grv_store *source = NULL, *target = open_writable(in_folder(to), 1);
    assert_ok(grv_store_open(in_folder(from), NULL, &source));
    const grv_status status = run_it(source, target);
    grv_store_close(&source);
    grv_store_close(&target);
    return status;
}

/* The rows of both arrays of the result belong together, and all are there. */
static void check_result(const char *name)
{
    int32_t data[2][ROWS * WIDTH];
    bool seen[ROWS] = {false};
    grv_check_report report;
    grv_store *store = NULL;
    grv_array *array = NULL;
    assert_ok(grv_store_open(in_folder(name), NULL, &store));
    for (int i = 0; i < 2; i++) {
        assert_ok(grv_array_open(store, i == 0 ? "a" : "s", &array));
        assert_ok(grv_array_read(array, zero, shape, data[i], NULL));
        grv_array_close(&array);
    }
    assert_memory_equal(data[0], data[1], sizeof data[0]);
    for (int i = 0; i < ROWS; i++) {
        const int row = data[0][i * WIDTH] / WIDTH;
        assert_true(row >= 0 && row < ROWS && !seen[row]);
        seen[row] = true;
        for (int c = 0; c < WIDTH; c++) assert_int_equal(data[0][i * WIDTH + c], row * WIDTH + c);
    }
    assert_ok(grv_store_check(store, "", NULL, &report));
    assert_int_equal(report.n_problems, 0);
    grv_check_report_fini(&report);
    grv_store_close(&store);
}

/* Copies go on with what is there; the others start afresh. */
static void test_out_of_memory(void **state)
{
    static operation *const operations[] = {convert, copy, shuffle, check, window};
    char to[32];
    (void)state;
    make_source("mem");
    for (int i = 0; i < 5; i++) {
        int64_t countdown = 0;
        int n_failed = 0;
        for (grv_status status = GRV_E_NOMEM; status != GRV_OK; countdown++) {
            (void)snprintf(to, sizeof to, "mem-%d-%d", i, i < 2 ? 0 : (int)countdown);
            grv_store *source = NULL, *target = open_writable(in_folder(to), 1);
            assert_ok(grv_store_open(in_folder("mem"), NULL, &source));
            grvi_alloc_fail_after(countdown);
            status = operations[i](source, target);
            grvi_alloc_fail_after(-1);
            if (status != GRV_OK && status != GRV_E_NOMEM)
                fail_msg("operation %d, allocation %d: %s", i, (int)countdown, grv_error_trace());
            n_failed += status != GRV_OK;
            grv_store_close(&source);
            grv_store_close(&target);
            assert_true(countdown < 3000);
        }
        assert_true(n_failed > 5);
        if (i < 3) check_result(to);
    }
}

static void test_disk_full(void **state)
{
    static operation *const operations[] = {convert, copy, shuffle};
    char to[32];
    (void)state;
    make_source("full");
    for (int i = 0; i < 3; i++) {
        int64_t budget = 0;
        int n_failed = 0;
        for (grv_status status = GRV_E_IO; status != GRV_OK; budget += 61) {
            (void)snprintf(to, sizeof to, "full-%d-%d", i, i < 2 ? 0 : (int)budget);
            write_budget = budget;
            status = run(operations[i], "full", to);
            write_budget = -1;
            if (status == GRV_OK) break;
            assert_int_equal(status, GRV_E_IO);
            assert_non_null(strstr(grv_error_message(), "No space left"));
            n_failed++;
            /* what was being made is not there, and the next try works in its place */
            if (i == 2 && budget > 500 && budget % 7 == 0) {
                assert_ok(run(operations[i], "full", to));
                check_result(to);
            }
        }
        assert_true(n_failed > 3);
        check_result(to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_out_of_memory),
                                       cmocka_unit_test(test_disk_full)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
