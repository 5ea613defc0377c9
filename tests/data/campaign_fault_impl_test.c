/* Parameters, and one sample of a campaign, when memory runs out at any allocation: a clean error, nothing held, and the same call works afterwards. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "grove/campaign.h"
#include "grove/sampling.h"
#include "store_support.h"

enum { N_POINTS = 60 };

static void assert_out_of_memory(grv_status status, int64_t point)
{
    if (status != GRV_E_NOMEM || strstr(grv_error_message(), "out of memory") == NULL)
        fail_msg("allocation %lld: status %d, \"%s\"", (long long)point, (int)status,
                 grv_error_message());
}

static void test_sampling(void **state)
{
    static const char *const lines[] = {"u uniform 0 1", "w list a b c", "g grid 0 1 3"};
    (void)state;
    grv_sampling *s = NULL;
    const int64_t held = grv_memory_get().bytes, before = grv_memory_get().n_allocations;
    assert_ok(grv_sampling_create(lines, 3, GRV_SAMPLING_SOBOL, 1, 0, &s));
    const int64_t n = grv_memory_get().n_allocations - before;
    grv_sampling_destroy(&s);
    for (int64_t i = 0; i < n; i++) {
        grvi_alloc_fail_after(i);
        const grv_status status = grv_sampling_create(lines, 3, GRV_SAMPLING_SOBOL, 1, 0, &s);
        grvi_alloc_fail_after(-1);
        assert_out_of_memory(status, i);
        assert_null(s);
        assert_int_equal(grv_memory_get().bytes, held);
    }
}

static void set(grv_campaign_config *config, const char *assignment)
{
    assert_ok(grv_config_set(grv_campaign_options(), config, assignment));
}

static void remove_made(const grv_campaign_config *config, const char *folder)
{
    assert_ok(grvi_fs_remove_tree(config->output));
    assert_ok(grvi_fs_remove_tree(folder));
}

/* One sample of a simulator, with memory that ends at N_POINTS allocations of those that it makes. */
static void check_sample(const char *name, const char *const *settings, int n_settings)
{
    char assignment[600], folder[600];
    grv_campaign_config config = {0};
    grv_error_clear();
    const int64_t bare = grv_memory_get().bytes;
    assert_ok(grv_config_defaults(grv_campaign_options(), &config));
    (void)snprintf(assignment, sizeof assignment, "output=%s", in_folder(name));
    (void)snprintf(folder, sizeof folder, "%s.work", in_folder(name));
    set(&config, assignment);
    for (int i = 0; i < n_settings; i++) set(&config, settings[i]);
    set(&config, "parameters=u uniform 0 1");
    set(&config, "samples=2");
    set(&config, "input.axes=x");
    set(&config, "input.shape=1");
    set(&config, "target.axes=x");
    set(&config, "target.shape=1");
    assert_ok(
        grv_campaign_sample(&config, 0, true, folder, NULL, 0, NULL)); /* a function is compiled now */
    remove_made(&config, folder);
    const int64_t held = grv_memory_get().bytes, before = grv_memory_get().n_allocations;
    assert_ok(grv_campaign_sample(&config, 0, true, folder, NULL, 0, NULL));
    const int64_t n = grv_memory_get().n_allocations - before;
    for (int64_t i = 0; i < N_POINTS; i++) {
        remove_made(&config, folder);
        grv_error_clear();
        grvi_alloc_fail_after(i * n / N_POINTS);
        const grv_status status = grv_campaign_sample(&config, 0, true, folder, NULL, 0, NULL);
        grvi_alloc_fail_after(-1);
        assert_out_of_memory(status, i * n / N_POINTS);
        assert_int_equal(grv_memory_get().bytes, held);
    }
    remove_made(&config, folder);
    assert_ok(grv_campaign_sample(&config, 0, true, folder, NULL, 0, NULL));
    grv_config_fini(grv_campaign_options(), &config);
    assert_int_equal(grv_memory_get().bytes, bare);
}

static void test_program(void **state)
{
    static const char *const settings[] = {
        "simulator=[sh, -c, 'printf 1234 > input.raw; printf 1234 > target.raw', '{u}']"};
    (void)state;
    check_sample("program", settings, 1);
}

static void test_function(void **state)
{
    static const char source[] = "#include <grove/task.h>\n"
                                 "GRV_TASK(one)\n"
                                 "{\n"
                                 "    const int64_t shape[] = {1};\n"
                                 "    const double x = grv_task_f64(task, 0);\n"
                                 "    grv_task_return_tensor(task, GRV_TASK_F64, 1, shape, &x);\n"
                                 "    grv_task_return_tensor(task, GRV_TASK_F64, 1, shape, &x);\n"
                                 "}\n";
    char simulator[600];
    (void)state;
    assert_int_equal(setenv("XDG_CACHE_HOME", test_folder, 1), 0);
    write_file(in_folder("one.c"), source, sizeof source - 1);
    (void)snprintf(simulator, sizeof simulator, "simulator=%s", in_folder("one.c"));
    const char *const settings[] = {simulator, "function=one", "flags=-O1"};
    check_sample("function", settings, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sampling),
                                       cmocka_unit_test(test_program),
                                       cmocka_unit_test(test_function)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
