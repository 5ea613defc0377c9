/* Reading ahead: order of batches, own planes only, errors that name the sample, a new sequence in the middle of one, bounded memory. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <time.h>

#include "grove/loader.h"
#include "store_support.h"

enum { N_SAMPLES = 12, MISSING = 10, BROKEN = 11, NX = 6, NY = 5, NZ = 4 };
enum { INPUT_PLANE = NY * 2, TARGET_PLANE = NY * NZ }; /* the input does not have the last axis */

static grv_dataset *data;

static float value_of(int64_t sample, int64_t i)
{
    return (float)(1000 * sample + i);
}

static int make_data(void **state)
{
    float input[NX * INPUT_PLANE], target[NX * TARGET_PLANE];
    grv_dataset_desc desc = grv_dataset_desc_default();
    if (make_folder(state) != 0) return 1;
    desc.n_samples = N_SAMPLES;
    desc.input = (grv_dataset_field){
        .n_axes = 2, .axis_names = {"x", "y"}, .shape = {NX, NY}, .n_channels = 2};
    desc.target = (grv_dataset_field){
        .n_axes = 3, .axis_names = {"x", "y", "z"}, .shape = {NX, NY, NZ}, .n_channels = 1};
    assert_ok(grv_dataset_create(in_folder("data"), &desc, NULL, &data));
    for (int64_t s = 0; s < N_SAMPLES; s++) {
        if (s == MISSING) continue;
        for (int64_t i = 0; i < NX * INPUT_PLANE; i++) input[i] = value_of(s, i);
        for (int64_t i = 0; i < NX * TARGET_PLANE; i++) target[i] = -value_of(s, i);
        assert_ok(grv_dataset_write_sample(data, s, input, target));
    }
    grv_dataset_close(&data);
    const char *const shard = in_folder("data/target/c/11/0/0/0/0");
    assert_int_equal(truncate(shard, 40), 0);
    assert_ok(grv_dataset_open(in_folder("data"), NULL, &data));
    return 0;
}

static int remove_data(void **state)
{
    grv_dataset_close(&data);
    const bool leaked = grv_memory_get().bytes != 0;
    return remove_folder(state) != 0 || leaked;
}

static grv_loader *open_loader(int64_t first_plane, int64_t n_planes, int64_t batch, int n_ahead)
{
    const grv_loader_params params = {
        .planes = {first_plane, n_planes}, .batch = batch, .n_ahead = n_ahead};
    grv_loader *loader = NULL;
    assert_ok(grv_loader_create(data, &params, &loader));
    return loader;
}

/* the next batch holds these samples, planes [first, first + n) of each */
static void expect_batch(grv_loader *loader, const int64_t *samples, int64_t batch, int64_t first,
                         int64_t n)
{
    const float *input = NULL, *target = NULL;
    assert_ok(grv_loader_next(loader, &input, &target));
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t i = 0; i < n * INPUT_PLANE; i++)
            assert_true(input[b * n * INPUT_PLANE + i] ==
                        value_of(samples[b], first * INPUT_PLANE + i));
        for (int64_t i = 0; i < n * TARGET_PLANE; i++)
            assert_true(target[b * n * TARGET_PLANE + i] ==
                        -value_of(samples[b], first * TARGET_PLANE + i));
    }
}

static void expect_end(grv_loader *loader)
{
    const float *input = NULL, *target = NULL;
    assert_int_equal(grv_loader_next(loader, &input, &target), GRV_END);
    assert_null(input);
}

static void test_order(void **state)
{
    static const int64_t samples[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 8, 0};
    (void)state;
    for (int n_ahead = 1; n_ahead <= 5; n_ahead += 2) {
        for (int64_t batch = 1; batch <= 4; batch++) {
            grv_loader *loader = open_loader(2, 3, batch, n_ahead);
            for (int epoch = 0; epoch < 2; epoch++) {
                assert_ok(grv_loader_begin(loader, samples, 12));
                for (int64_t i = 0; i < 12; i += batch)
                    expect_batch(loader, samples + i, batch, 2, 3);
                expect_end(loader);
                expect_end(loader);
            }
            assert_ok(grv_loader_begin(loader, NULL, 0));
            expect_end(loader);
            grv_loader_destroy(&loader);
            assert_null(loader);
        }
    }
}

/* before the first sequence there is nothing; destroying in the middle of one is allowed */
static void test_idle_and_abandoned(void **state)
{
    int64_t samples[40];
    (void)state;
    for (int64_t i = 0; i < 40; i++) samples[i] = i % 10;
    grv_loader *loader = open_loader(0, NX, 1, 1);
    expect_end(loader);
    grv_loader_destroy(&loader);
    for (int i = 0; i < 20; i++) {
        loader = open_loader(0, NX, 1, 3);
        assert_ok(grv_loader_begin(loader, samples, 40));
        if (i % 2 == 0) expect_batch(loader, samples, 1, 0, NX);
        grv_loader_destroy(&loader);
    }
}

/* what was read ahead of an abandoned sequence never shows up in the next one, wherever the reader was */
static void test_begin_again(void **state)
{
    int64_t samples[20];
    (void)state;
    grv_loader *loader = open_loader(1, 2, 2, 2);
    for (int64_t round = 0; round < 60; round++) {
        for (int64_t i = 0; i < 20; i++) samples[i] = (round + i) % 10;
        assert_ok(grv_loader_begin(loader, samples, 20));
        memset(samples + 2 * (round % 4), 0xff,
               sizeof *samples * (size_t)(20 - 2 * (round % 4))); /* it has a copy */
        for (int64_t i = 0; i < 20; i++) samples[i] = (round + i) % 10;
        for (int64_t i = 0; i < round % 4; i++) expect_batch(loader, samples + 2 * i, 2, 1, 2);
    }
    grv_loader_destroy(&loader);
}

/* batches before the bad one arrive; the error stays until a new sequence */
static void check_error(int64_t bad, const char *text)
{
    const int64_t samples[] = {0, 1, 2, 3, bad, 4, 5, 6}, good[] = {7, 8};
    const float *input = NULL, *target = NULL;
    grv_loader *loader = open_loader(0, NX, 2, 2);
    assert_ok(grv_loader_begin(loader, samples, 8));
    expect_batch(loader, samples, 2, 0, NX);
    expect_batch(loader, samples + 2, 2, 0, NX);
    for (int i = 0; i < 2; i++) {
        grv_error_clear();
        assert_true(grv_loader_next(loader, &input, &target) < 0);
        if (strstr(grv_error_message(), text) == NULL)
            fail_msg("\"%s\" does not hold \"%s\"", grv_error_message(), text);
    }
    assert_ok(grv_loader_begin(loader, good, 2));
    expect_batch(loader, good, 2, 0, NX);
    expect_end(loader);
    grv_loader_destroy(&loader);
}

static void test_errors_name_the_sample(void **state)
{
    (void)state;
    check_error(MISSING, "sample 10 of the data set is missing");
    check_error(BROKEN, "sample 11");
    check_error(N_SAMPLES, "sample 12 asked for, the data set has 12");
}

static void test_refusals(void **state)
{
    const int64_t samples[] = {0, 1, 2};
    grv_loader *loader = NULL;
    (void)state;
    grv_loader_params params = {.planes = {4, 3}, .batch = 2, .n_ahead = 1};
    assert_fails(grv_loader_create(data, &params, &loader), GRV_E_ARG, "planes 4 to 7 of 6");
    params.planes = (grv_range){0, 0};
    assert_fails(grv_loader_create(data, &params, &loader), GRV_E_ARG, "planes 0 to 0");
    params = (grv_loader_params){.planes = {0, 1}, .batch = 0, .n_ahead = 1};
    assert_fails(grv_loader_create(data, &params, &loader), GRV_E_ARG,
                 "a batch of at least 1 sample");
    params = (grv_loader_params){.planes = {0, 1}, .batch = 1, .n_ahead = 0};
    assert_fails(grv_loader_create(data, &params, &loader), GRV_E_ARG, "1 batch ahead");
    assert_null(loader);
    loader = open_loader(0, 1, 2, 1);
    assert_fails(grv_loader_begin(loader, samples, 3), GRV_E_ARG,
                 "whole batches of 2 samples expected, 3 samples found");
    grv_loader_destroy(&loader);
    grv_loader_destroy(NULL);
}

static void sleep_milliseconds(long n)
{
    const struct timespec time = {.tv_sec = 0, .tv_nsec = n * 1000000};
    (void)nanosleep(&time, NULL);
}

static int64_t batches_read(int64_t before)
{
    return (grv_store_counters_get(grv_dataset_get_store(data)).bytes_decoded - before) /
           (4 * NX * (INPUT_PLANE + TARGET_PLANE));
}

/* however slow the consumer: n_ahead batches wait beside the one that it holds, and nothing is allocated for more */
static void test_back_pressure(void **state)
{
    enum { AHEAD = 2 };
    int64_t samples[30];
    (void)state;
    for (int64_t i = 0; i < 30; i++) samples[i] = i % 10;
    const int64_t held = grv_memory_get().bytes;
    grv_loader *loader = open_loader(0, NX, 1, AHEAD);
    const int64_t buffers =
        (int64_t)sizeof(float) * (AHEAD + 1) * NX * (INPUT_PLANE + TARGET_PLANE);
    assert_in_range(grv_memory_get().bytes - held, buffers, buffers + 2048);
    const int64_t before = grv_store_counters_get(grv_dataset_get_store(data)).bytes_decoded;
    assert_ok(grv_loader_begin(loader, samples, 30));
    for (int64_t taken = 0; taken < 5; taken++) {
        /* the batch that the consumer holds is one of the buffers: the first one taken makes no room */
        const int64_t most = AHEAD + 1 + (taken > 0 ? taken - 1 : 0);
        for (int tries = 0; batches_read(before) < most && tries < 2000; tries++)
            sleep_milliseconds(1);
        sleep_milliseconds(10);
        assert_int_equal(batches_read(before), most);
        expect_batch(loader, samples + taken, 1, 0, NX);
    }
    assert_in_range(grv_memory_get().bytes - held, buffers, buffers + 65536);
    grv_loader_destroy(&loader);
}

static void test_waits_counted(void **state)
{
    int64_t samples[10];
    (void)state;
    for (int64_t i = 0; i < 10; i++) samples[i] = i;
    const double begin = grv_clock_seconds();
    grv_loader *loader = open_loader(0, NX, 1, 1);
    assert_true(grv_loader_waited(loader) <= 0);
    assert_ok(grv_loader_begin(loader, samples, 10));
    double waited = 0;
    for (int64_t i = 0; i < 10; i++) {
        expect_batch(loader, samples + i, 1, 0, NX);
        assert_true(grv_loader_waited(loader) > waited);
        waited = grv_loader_waited(loader);
    }
    assert_true(waited <= grv_clock_seconds() - begin);
    /* a consumer that is slower than the reader does not wait */
    sleep_milliseconds(30);
    assert_true(grv_loader_waited(loader) <= waited);
    grv_loader_destroy(&loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),        cmocka_unit_test(test_idle_and_abandoned),
        cmocka_unit_test(test_begin_again),  cmocka_unit_test(test_errors_name_the_sample),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_back_pressure),
        cmocka_unit_test(test_waits_counted)};
    return cmocka_run_group_tests(tests, make_data, remove_data);
}
