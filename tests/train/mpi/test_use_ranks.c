/* Evaluating a run and predicting with it: the same numbers, files and pictures on any number of
 * ranks; an error on one rank, lack of memory among them, ends all with the same message. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "grove/use.h"
#include "mpi_test.h"
#include "store_support.h"
#include "train_fixture.h"

enum { N_SAMPLES = 9, N_POINTS = 100 };

static grv_comm *world;

static bool is_root(void)
{
    return grv_comm_rank(world) == 0;
}
static void wait_for_all(void)
{
    assert_ok(grv_comm_barrier(world));
}

static int make_run(void **state)
{
    const int64_t in_test[] = {8, 0, 1, 1, 1, 0};
    if (is_root()) {
        assert_int_equal(make_folder(state), 0);
        make_train_data(in_folder("data"), N_SAMPLES, N_SAMPLES);
        make_train_data(in_folder("part"), N_SAMPLES, N_SAMPLES - 1);
        make_train_data(in_folder("nan"), N_SAMPLES, N_SAMPLES);
        spoil_value(in_folder("nan"), "target", in_test, NAN);
        grv_train_config config = tiny_config(in_folder("data"), in_folder("run"));
        grv_train_result result;
        set_key(&config, "samples.test", "1");
        assert_ok(grv_train(&config, NULL, NULL, NULL, NULL, &result));
        free_config(&config);
    }
    assert_ok(grv_comm_broadcast(world, 0, test_folder, sizeof test_folder));
    return 0;
}

static int remove_run(void **state)
{
    wait_for_all();
    return is_root() ? remove_folder(state) : 0;
}

static void set(const grv_option_table *table, void *config, const char *key, const char *value)
{
    char text[1200];
    (void)snprintf(text, sizeof text, "%s=%s", key, value);
    assert_ok(grv_config_set(table, config, text));
}

static grv_evaluate_config evaluate_config(void)
{
    grv_evaluate_config config = {0};
    assert_ok(grv_config_defaults(grv_evaluate_options(), &config));
    set(grv_evaluate_options(), &config, "run", in_folder("run"));
    set(grv_evaluate_options(), &config, "threads", "1");
    return config;
}

static grv_predict_config predict_config(const char *output)
{
    grv_predict_config config = {0};
    assert_ok(grv_config_defaults(grv_predict_options(), &config));
    set(grv_predict_options(), &config, "checkpoint", in_folder("run/best"));
    set(grv_predict_options(), &config, "input", in_folder("data"));
    set(grv_predict_options(), &config, "output", in_folder(output));
    set(grv_predict_options(), &config, "threads", "1");
    set(grv_predict_options(), &config, "first", "5");
    set(grv_predict_options(), &config, "count", "3");
    return config;
}

/* --- the same on any number of ranks --- */

static const char *const written[] = {"sample_6.png", "sample_7.png", "test_losses.csv",
                                      "loss.png"};
enum { N_WRITTEN = sizeof written / sizeof *written };

static void test_evaluate(void **state)
{
    (void)state;
    grv_evaluate_config config = evaluate_config();
    grv_evaluate_result alone = {.simulator_seconds = 0}, together;
    set(grv_evaluate_options(), &config, "split", "validation");
    if (is_root()) {
        assert_ok(grv_evaluate_run(&config, NULL, NULL, &alone));
        for (int i = 0; i < N_WRITTEN; i++)
            assert_int_equal(rename(in_run("run", written[i]), in_folder(written[i])), 0);
    }
    wait_for_all();
    assert_ok(grv_evaluate_run(&config, world, NULL, &together));
    assert_ok(grv_comm_broadcast(world, 0, &alone, sizeof alone));
    const grv_evaluation *const a = &alone.evaluation, *const b = &together.evaluation;
    assert_int_equal(b->n_samples, 2);
    assert_memory_equal(&b->relative_l2, &a->relative_l2, sizeof(double));
    assert_memory_equal(&b->relative_l2_mean_field, &a->relative_l2_mean_field, sizeof(double));
    assert_true(b->relative_l2 > 0 && b->relative_l2_mean_field > 0 && b->relative_l2_zero == 1.0);
    assert_true(isnan(together.simulator_seconds)); /* no simulator made this data set */
    wait_for_all();
    for (int i = 0; is_root() && i < N_WRITTEN; i++)
        assert_same_files(in_run("run", written[i]), in_folder(written[i]));
    grv_config_fini(grv_evaluate_options(), &config);
    wait_for_all();
}

static void test_predict(void **state)
{
    static float input[2][TRAIN_INPUT], target[2][TRAIN_TARGET];
    int64_t n = 0;
    double seconds = 0;
    (void)state;
    grv_predict_config config = predict_config("alone");
    if (is_root()) assert_ok(grv_predict(&config, NULL, NULL, &n, &seconds));
    grv_config_fini(grv_predict_options(), &config);
    config = predict_config("together");
    wait_for_all();
    assert_ok(grv_predict(&config, world, NULL, &n, &seconds));
    grv_config_fini(grv_predict_options(), &config);
    assert_int_equal(n, 3);
    assert_true(seconds > 0);
    wait_for_all();
    grv_dataset *data[2] = {NULL, NULL};
    assert_ok(grv_dataset_open(in_folder("alone"), NULL, &data[0]));
    assert_ok(grv_dataset_open(in_folder("together"), NULL, &data[1]));
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++)
            assert_ok(grv_dataset_read(data[k], i, 0, TRAIN_NX, input[k], target[k]));
        assert_memory_equal(target[0], target[1], sizeof target[0]);
        train_sample(5 + i, input[0], target[0]);
        assert_memory_equal(input[0], input[1], sizeof input[0]);
    }
    grv_dataset_close(&data[0]);
    grv_dataset_close(&data[1]);
    wait_for_all();
}

/* --- errors --- */

static void evaluate_fails(const char *key, const char *value, grv_status expected,
                           const char *text)
{
    grv_evaluate_config config = evaluate_config();
    grv_evaluate_result result;
    set(grv_evaluate_options(), &config, key, value);
    assert_fails(grv_evaluate_run(&config, world, NULL, &result), expected, text);
    grv_config_fini(grv_evaluate_options(), &config);
    wait_for_all();
}

static void predict_fails(const char *key, const char *value, grv_status expected, const char *text)
{
    grv_predict_config config = predict_config("not_made");
    int64_t n = 0;
    double seconds = 0;
    set(grv_predict_options(), &config, key, value);
    assert_fails(grv_predict(&config, world, NULL, &n, &seconds), expected, text);
    grv_config_fini(grv_predict_options(), &config);
    wait_for_all();
}

static void test_errors(void **state)
{
    (void)state;
    evaluate_fails("run", in_folder("nowhere"), GRV_E_NOT_FOUND, "nowhere/config.yaml");
    evaluate_fails("data", in_folder("nowhere"), GRV_E_NOT_FOUND, "nowhere");
    evaluate_fails("data", in_folder("part"), GRV_E_NOT_FOUND,
                   "sample 8 of the data set is missing");
    /* on the first rank only */
    evaluate_fails("data", in_folder("nan"), GRV_E_NUMERIC, "sample 8 of 'target': NaN at x 0");
    if (grv_comm_size(world) > 1)
        evaluate_fails("data", in_folder("nan"), GRV_E_NUMERIC, "rank 0: ");
    predict_fails("checkpoint", in_folder("run/worst"), GRV_E_NOT_FOUND, "run/worst");
    predict_fails("input", in_folder("nowhere"), GRV_E_NOT_FOUND, "nowhere");
    predict_fails("first", "9", GRV_E_CONFIG, "samples 9 to 12");
    predict_fails("count", "5", GRV_E_CONFIG, "samples 5 to 10");
    if (is_root()) assert_false(is_there(in_folder("not_made")));
    predict_fails("output", in_folder("alone"), GRV_E_EXISTS, "alone");
}

static bool evaluate_without_memory(int rank, int64_t n)
{
    grv_evaluate_config config = evaluate_config();
    grv_evaluate_result result;
    const int64_t held = grv_memory_get().bytes;
    wait_for_all();
    grv_error_clear();
    if (grv_comm_rank(world) == rank) grvi_alloc_fail_after(n);
    const grv_status status = grv_evaluate_run(&config, world, NULL, &result);
    grvi_alloc_fail_after(-1);
    if (status != GRV_OK && status != GRV_E_NOMEM)
        fail_msg("allocation %lld of rank %d: %s", (long long)n, rank, grv_error_trace());
    assert_int_equal(grv_memory_get().bytes, held);
    grv_config_fini(grv_evaluate_options(), &config);
    wait_for_all();
    return status != GRV_OK;
}

static bool predict_without_memory(int rank, int64_t n)
{
    grv_predict_config config = predict_config("without");
    int64_t n_done = 0;
    double seconds = 0;
    if (is_root()) assert_ok(grvi_fs_remove_tree(config.output));
    const int64_t held = grv_memory_get().bytes;
    wait_for_all();
    grv_error_clear();
    if (grv_comm_rank(world) == rank) grvi_alloc_fail_after(n);
    const grv_status status = grv_predict(&config, world, NULL, &n_done, &seconds);
    grvi_alloc_fail_after(-1);
    if (status != GRV_OK && status != GRV_E_NOMEM)
        fail_msg("allocation %lld of rank %d: %s", (long long)n, rank, grv_error_trace());
    assert_int_equal(grv_memory_get().bytes, held);
    grv_config_fini(grv_predict_options(), &config);
    wait_for_all();
    return status != GRV_OK;
}

/* a spread of the allocations of the first and of the last rank */
static void check_without_memory(bool (*run)(int rank, int64_t n))
{
    int n_failed = 0;
    const int64_t before = grv_memory_get().n_allocations;
    assert_false(run(-1, 0));
    int64_t n = grv_memory_get().n_allocations - before;
    assert_ok(grv_comm_all_reduce_i64(world, GRV_REDUCE_MIN, 1, &n));
    for (int64_t i = 0; i < N_POINTS; i++)
        n_failed += run(i % 2 == 0 ? 0 : grv_comm_size(world) - 1, i * n / N_POINTS);
    assert_true(n_failed > N_POINTS / 2);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    check_without_memory(evaluate_without_memory);
    check_without_memory(predict_without_memory);
}

int main(void)
{
    world = mpi_test_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evaluate), cmocka_unit_test(test_predict),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_out_of_memory)};
    const int failed = cmocka_run_group_tests(tests, make_run, remove_run);
    return mpi_test_end(&world, failed);
}
