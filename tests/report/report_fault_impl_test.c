/* Figures out of memory; ticks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"
#include "report/report_impl.h"

static char folder[] = "/tmp/grove-report-XXXXXX";
static char path[64];

static int enter_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int leave_folder(void **state)
{
    (void)state;
    (void)unlink(path);
    assert_int_equal(rmdir(folder), 0);
    return 0;
}

static grv_status draw_all(void)
{
    float field[4] = {0, 1, 2, 3};
    const double x[] = {1, 2}, y[] = {1, 0.5};
    const grv_slice_panel panel = {.field = field, .y_stride = 2, .x_stride = 1};
    const grv_slices slices = {.panels = &panel, .n_panels = 1, .ny = 2, .nx = 2};
    const grv_curve curve = {"loss", x, y, 2};
    const grv_curves curves = {.curves = &curve, .n_curves = 1};
    GRV_TRY(grv_report_slices(&slices, path));
    GRV_TRY(grv_report_curves(&curves, path));
    return GRV_OK;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    int64_t n = 0;
    grv_status status = GRV_E_NOMEM;
    for (; status != GRV_OK; n++) {
        (void)unlink(path);
        grvi_alloc_fail_after(n);
        status = draw_all();
        grvi_alloc_fail_after(-1);
        assert_true(status == GRV_OK || status == GRV_E_NOMEM);
        assert_true(grv_memory_get().bytes == 0);
    }
    assert_true(n > 10);
}

static void assert_labels(const grvi_ticks *ticks, const char *expected)
{
    grvi_text all = {0};
    for (int i = 0; i < ticks->n; i++)
        grvi_text_printf(&all, "%s%s", i > 0 ? " " : "", ticks->label[i]);
    assert_string_equal(grvi_text_get(&all), expected);
    grvi_text_fini(&all);
}

static void test_ticks(void **state)
{
    (void)state;
    grvi_ticks t;
    grvi_ticks_linear(&t, 0, 1, 5);
    assert_labels(&t, "0 0.2 0.4 0.6 0.8 1.0");
    grvi_ticks_linear(&t, -8, 8, 8);
    assert_labels(&t, "-8 -6 -4 -2 0 2 4 6 8");
    grvi_ticks_linear(&t, 0.37, 98.2, 5);
    assert_labels(&t, "20 40 60 80");
    grvi_ticks_linear(&t, -2.5e-6, 2.5e-6, 5);
    assert_labels(&t, "-2x10^{-6} -10^{-6} 0 10^{-6} 2x10^{-6}");
    grvi_ticks_linear(&t, 0, 3e6, 3);
    assert_labels(&t, "0 10^{6} 2x10^{6} 3x10^{6}");
    grvi_ticks_linear(&t, 1e6, 2e6, 2);
    assert_labels(&t, "10^{6} 1.5x10^{6} 2.0x10^{6}");
    grvi_ticks_linear(&t, -0.495, 0.495, 3);
    assert_labels(&t, "-0.4 -0.2 0 0.2 0.4");
    grvi_ticks_logarithmic(&t, 1e-9, 1e3, 6);
    assert_labels(&t, "10^{-9} 10^{-6} 10^{-3} 1 1000");
    grvi_ticks_logarithmic(&t, 0.03, 0.4, 6);
    assert_labels(&t, "0.05 0.1 0.2");
    for (int k = 0; k < 2000; k++) { /* any range: some ticks, inside, in order, not too many */
        const double width = pow(10, 40 * grv_random_uniform(1, 1, (uint64_t)k) - 20);
        const double min =
            width * (grv_random_uniform(1, 2, (uint64_t)k) - 0.5) * (k % 2 ? 10 : 1e4);
        const int wanted = 2 + k % 9;
        grvi_ticks_linear(&t, min, min + width, wanted);
        assert_true(t.n >= 3 && t.n <= (wanted > 6 ? wanted : 6) + 1);
        for (int i = 0; i < t.n; i++) {
            assert_true(t.at[i] >= min - 1e-6 * width && t.at[i] <= min + 1.000001 * width &&
                        (i == 0 || t.at[i] > t.at[i - 1]));
            for (int j = 0; j < i; j++) assert_string_not_equal(t.label[i], t.label[j]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_out_of_memory),
                                       cmocka_unit_test(test_ticks)};
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
