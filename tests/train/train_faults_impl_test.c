/* Training when memory runs out at any of its allocations, or a file cannot be written; the trace is JSON. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/json.h"
#include "grove/loader.h"
#include "store_support.h"
#include "train_fixture.h"

enum { N_POINTS = 150 };

static int make_data(void **state)
{
    if (make_folder(state) != 0) return 1;
    make_train_data(in_folder("data"), 9, 9);
    return 0;
}

/* what is under its final name is whole, and nothing else is there */
static void check_published(const char *run)
{
    static const char *const names[] = {"checkpoint", "best"};
    for (int i = 0; i < 2; i++) {
        char partial[64];
        (void)snprintf(partial, sizeof partial, "%s.partial", names[i]);
        assert_false(is_there(in_run(run, partial)));
        if (!grv_checkpoint_exists(in_run(run, names[i]))) continue;
        grv_train_state found = grv_train_state_init();
        grv_fno_params model;
        assert_ok(grv_checkpoint_state(in_run(run, names[i]), &found));
        assert_ok(grv_checkpoint_model(in_run(run, names[i]), &model, NULL));
        assert_true(found.epoch >= 1 && found.epoch <= 2);
        grv_train_state_fini(&found);
    }
}

/* Allocation number n of a run fails: the run says so, gives everything back, and the next one finishes what it left. */
static bool check_failure(grv_train_config *config, int64_t n)
{
    grv_train_result result;
    assert_ok(grvi_fs_remove_tree(config->run));
    const int64_t held = grv_memory_get().bytes;
    grv_error_clear();
    grvi_alloc_fail_after(n);
    const grv_status status = grv_train(config, NULL, NULL, NULL, NULL, &result);
    grvi_alloc_fail_after(-1);
    assert_int_equal(grv_memory_get().bytes, held);
    if (status == GRV_OK) return false;
    if (status != GRV_E_NOMEM || strstr(grv_error_message(), "out of memory") == NULL)
        fail_msg("allocation %lld: status %d, \"%s\"", (long long)n, (int)status,
                 grv_error_message());
    check_published("faults");
    return true;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    grv_train_config config = tiny_config(in_folder("data"), in_folder("faults"));
    grv_train_result result;
    const int64_t before = grv_memory_get().n_allocations;
    assert_ok(grv_train(&config, NULL, NULL, NULL, NULL, &result));
    const int64_t n = grv_memory_get().n_allocations - before;
    int n_failed = 0;
    for (int64_t i = 0; i < N_POINTS; i++) n_failed += check_failure(&config, i * n / N_POINTS);
    /* a few at the end may be spared: threads do not always take the same number */
    assert_true(n_failed > N_POINTS * 9 / 10);
    /* after the last failure */
    assert_ok(grv_train(&config, NULL, NULL, NULL, NULL, &result));
    free_config(&config);
    config = tiny_config(in_folder("data"), in_folder("good"));
    assert_ok(grv_train(&config, NULL, NULL, NULL, NULL, &result));
    free_config(&config);
    assert_same_runs("good", "faults");
}

static void test_loader_out_of_memory(void **state)
{
    (void)state;
    grv_dataset *data = NULL;
    assert_ok(grv_dataset_open(in_folder("data"), NULL, &data));
    const grv_loader_params params = {.planes = {0, TRAIN_NX}, .batch = 1, .n_ahead = 1};
    const int64_t held = grv_memory_get().bytes, before = grv_memory_get().n_allocations;
    grv_loader *loader = NULL;
    assert_ok(grv_loader_create(data, &params, &loader));
    const int64_t n = grv_memory_get().n_allocations - before;
    grv_loader_destroy(&loader);
    for (int64_t i = 0; i < n; i++) {
        grvi_alloc_fail_after(i);
        assert_fails(grv_loader_create(data, &params, &loader), GRV_E_NOMEM, "out of memory");
        grvi_alloc_fail_after(-1);
        assert_null(loader);
        assert_int_equal(grv_memory_get().bytes, held);
    }
    grv_dataset_close(&data);
}

/* a file where the run directory, or a checkpoint's folder, should be */
static void test_cannot_write(void **state)
{
    (void)state;
    grv_train_result result;
    write_file(in_folder("file"), "x", 1);
    grv_train_config config = tiny_config(in_folder("data"), in_folder("file"));
    assert_fails(grv_train(&config, NULL, NULL, NULL, NULL, &result), GRV_E_IO, "file");
    free_config(&config);
    config = tiny_config(in_folder("data"), in_folder("file/run"));
    assert_fails(grv_train(&config, NULL, NULL, NULL, NULL, &result), GRV_E_IO,
                 "file: File exists");
    free_config(&config);
}

/* what Perfetto expects: complete events with times in microseconds, one after the other */
static void test_trace_is_json(void **state)
{
    (void)state;
    grv_train_config config = tiny_config(in_folder("data"), in_folder("traced"));
    grv_train_result result;
    assert_ok(grv_train(&config, NULL, NULL, NULL, NULL, &result));
    free_config(&config);
    char *text = NULL;
    int64_t n_bytes = 0;
    grvi_json *root = NULL;
    assert_ok(grvi_fs_read(in_run("traced", "trace.json"), 1 << 24, &text, &n_bytes));
    assert_ok(grvi_json_parse(text, n_bytes, "trace.json", &root));
    const grvi_json *const events = grvi_json_get(root, "traceEvents");
    assert_true(grvi_json_length(events) >= 10);
    double end = 0;
    bool has_spectral = false;
    for (int64_t i = 0; i < grvi_json_length(events); i++) {
        const grvi_json *const event = grvi_json_at(events, i);
        double at = -1, duration = -1;
        assert_string_equal(grvi_json_as_string(grvi_json_get(event, "ph")), "X");
        has_spectral = has_spectral || strstr(grvi_json_as_string(grvi_json_get(event, "name")),
                                              "spectral") != NULL;
        assert_true(grvi_json_as_double(grvi_json_get(event, "ts"), &at) &&
                    grvi_json_as_double(grvi_json_get(event, "dur"), &duration));
        assert_true(at >= end - 1 && duration >= 0);
        end = at + duration;
    }
    assert_true(has_spectral);
    grvi_json_free(root);
    grv_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_loader_out_of_memory),
        cmocka_unit_test(test_cannot_write), cmocka_unit_test(test_trace_is_json)};
    return cmocka_run_group_tests(tests, make_data, remove_folder);
}
