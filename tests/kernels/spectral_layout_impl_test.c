/* Packed mode positions are a bijection in the documented order; sizes and limits of the truncated spectrum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/spectral_layout.h"

static int64_t lowest(const grvi_axis_modes *axis) { return axis->two_sided ? -axis->modes : 0; }
static int64_t highest(const grvi_axis_modes *axis) { return axis->modes - 1; }

static void check_bijection(int d, const int64_t *n, const int64_t *modes)
{
    grvi_spectral_layout layout;
    assert_int_equal(grvi_spectral_layout_init(&layout, d, n, modes, 3), GRV_OK);
    char *const seen = calloc((size_t)layout.n_modes, 1);
    int64_t f[4] = {0}, count = 0;
    for (int a = 0; a < d; a++) f[a] = lowest(&layout.axis[a]);
    for (;;) {
        const int64_t p = grvi_spectral_mode_position(&layout, f);
        assert_true(p >= 0 && p < layout.n_modes && !seen[p]);
        seen[p] = 1;
        count++;
        const int split = d > 1;
        const int64_t k = llabs(f[split]);
        assert_true(p >= grvi_spectral_modes_before(&layout, k) && p < grvi_spectral_modes_before(&layout, k + 1));
        int a = 0;
        while (a < d && f[a] == highest(&layout.axis[a])) f[a] = lowest(&layout.axis[a]), a++;
        if (a == d) break;
        f[a]++;
    }
    assert_true(count == layout.n_modes);
    free(seen);
}

static void test_positions(void **state)
{
    (void)state;
    check_bijection(1, (int64_t[]){9}, (int64_t[]){5});
    check_bijection(2, (int64_t[]){8, 7}, (int64_t[]){4, 3});
    check_bijection(3, (int64_t[]){6, 7, 10}, (int64_t[]){2, 3, 6});
    check_bijection(4, (int64_t[]){10, 9, 8, 6}, (int64_t[]){2, 2, 4, 4});
    check_bijection(4, (int64_t[]){2, 3, 5, 1}, (int64_t[]){1, 1, 2, 1});
}

static void test_rows(void **state)
{
    (void)state;
    grvi_spectral_layout layout;
    assert_int_equal(grvi_spectral_layout_init(&layout, 4, (int64_t[]){64, 64, 64, 16}, (int64_t[]){12, 12, 12, 6}, 20), GRV_OK);
    assert_true(layout.axis[0].n_rows == 25 && layout.axis[3].n_rows == 11);
    assert_true(layout.n_columns == 11 * 25 * 20 && layout.block == 64 && layout.n_blocks == 86);
    assert_true(layout.n_modes == 82944);
    /* 2m == n: the Nyquist sine does not exist; one-sided up to n/2+1 likewise */
    assert_int_equal(grvi_spectral_layout_init(&layout, 2, (int64_t[]){8, 6}, (int64_t[]){4, 4}, 2), GRV_OK);
    assert_true(layout.axis[0].n_cos == 5 && layout.axis[0].n_sin == 3);
    assert_true(layout.axis[1].n_cos == 4 && layout.axis[1].n_sin == 2);
    assert_int_equal(grvi_spectral_layout_init(&layout, 2, (int64_t[]){8, 6}, (int64_t[]){5, 2}, 2), GRV_E_ARG);
    assert_int_equal(grvi_spectral_layout_init(&layout, 2, (int64_t[]){8, 6}, (int64_t[]){2, 5}, 2), GRV_E_ARG);
    assert_int_equal(grvi_spectral_layout_init(&layout, 2, (int64_t[]){8, 6}, (int64_t[]){0, 2}, 2), GRV_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_positions), cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
