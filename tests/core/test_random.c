/* Counter-based random numbers: published vector, range, moments, permutation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "grove/core.h"

/* Known-answer test of Random123 (philox4x32-10, counter and key zero): 6627e8d5 e169c58d bc57ac4c 9b00dbd8 */
static void test_known_answer(void **state)
{
    (void)state;
    assert_true(grv_random_bits(0, 0, 0) == 0xe169c58d6627e8d5U);
    assert_true(grv_random_bits(UINT64_MAX, UINT64_MAX, UINT64_MAX) == 0x41c83b0e408f276dU);
}

static void test_moments(void **state)
{
    (void)state;
    const int n = 200000;
    double mean_u = 0, mean_n = 0, var_n = 0;
    for (int i = 0; i < n; i++) {
        const double u = grv_random_uniform(7, 1, (uint64_t)i), z = grv_random_normal(7, 2, (uint64_t)i);
        assert_true(u >= 0 && u < 1 && isfinite(z));
        mean_u += u / n;
        mean_n += z / n;
        var_n += z * z / n;
    }
    /* five standard deviations of each estimate */
    assert_true(fabs(mean_u - 0.5) < 5 * 0.2887 / sqrt(n));
    assert_true(fabs(mean_n) < 5 / sqrt(n));
    assert_true(fabs(var_n - 1) < 5 * sqrt(2.0 / n));
}

static void test_permutation(void **state)
{
    (void)state;
    enum { N = 1000 };
    int64_t a[N], b[N];
    int seen[N] = {0}, fixed = 0;
    assert_int_equal(grv_random_permutation(3, 9, N, a), GRV_OK);
    assert_int_equal(grv_random_permutation(3, 9, N, b), GRV_OK);
    for (int i = 0; i < N; i++) {
        assert_true(a[i] >= 0 && a[i] < N && a[i] == b[i]);
        seen[a[i]]++;
        fixed += a[i] == i;
    }
    for (int i = 0; i < N; i++) assert_int_equal(seen[i], 1);
    assert_true(fixed < 20); /* expectation 1 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_answer), cmocka_unit_test(test_moments),
                                       cmocka_unit_test(test_permutation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
