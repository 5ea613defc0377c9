/* Making flows when memory runs out at any allocation: a clean error, nothing half-made, and the same call finishes the data set. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "grove/dataset.h"
#include "grove/generate.h"
#include "store_support.h"

enum { N_POINTS = 40 };

static grv_generate_config config_of(const char *name)
{
    static const char *const settings[] = {"samples=2",
                                           "grid=8,8,8",
                                           "radius=1",
                                           "snapshots=1",
                                           "interval=0.2",
                                           "threads=2",
                                           "centre.min=0.3,0.3,0.3",
                                           "centre.max=0.7,0.7,0.7"};
    grv_generate_config config = {0};
    char output[600];
    assert_ok(grv_config_defaults(grv_generate_options(), &config));
    (void)snprintf(output, sizeof output, "output=%s", in_folder(name));
    assert_ok(grv_config_set(grv_generate_options(), &config, output));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        assert_ok(grv_config_set(grv_generate_options(), &config, settings[i]));
    return config;
}

/* every sample that is marked done can be read */
static void check_samples(const char *path)
{
    static float input[3 * 512], target[512];
    uint8_t states[2];
    grv_dataset *data = NULL;
    if (access(path, F_OK) != 0) return;
    assert_ok(grv_dataset_open(path, NULL, &data));
    assert_ok(grv_dataset_status(data, states));
    for (int64_t i = 0; i < 2; i++)
        if (states[i] == GRV_SAMPLE_DONE) assert_ok(grv_dataset_read(data, i, 0, 8, input, target));
    grv_dataset_close(&data);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    grv_generate_config config = config_of("data");
    grv_generate_result result;
    const int64_t held = grv_memory_get().bytes, before = grv_memory_get().n_allocations;
    assert_ok(grv_generate(&config, NULL, NULL, NULL, &result));
    const int64_t n = grv_memory_get().n_allocations - before;
    int n_failed = 0;
    for (int64_t i = 0; i < N_POINTS; i++) {
        assert_ok(grvi_fs_remove_tree(config.output));
        grv_error_clear();
        grvi_alloc_fail_after(i * n / N_POINTS);
        const grv_status status = grv_generate(&config, NULL, NULL, NULL, &result);
        grvi_alloc_fail_after(-1);
        n_failed += status != GRV_OK;
        if (status != GRV_OK &&
            (status != GRV_E_NOMEM || strstr(grv_error_message(), "out of memory") == NULL))
            fail_msg("allocation %lld: status %d, \"%s\"", (long long)(i * n / N_POINTS),
                     (int)status, grv_error_message());
        assert_int_equal(grv_memory_get().bytes, held);
        check_samples(config.output);
        assert_ok(grv_generate(&config, NULL, NULL, NULL, &result));
        assert_int_equal(result.n_done, 2);
    }
    /* two threads do not always take the same number */
    assert_true(n_failed > N_POINTS * 3 / 4);
    grv_config_fini(grv_generate_options(), &config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
