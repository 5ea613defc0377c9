/* Sobol sequences against SciPy's (tests/golden/sobol.py), and the property that makes them what they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/sobol.h"

static void test_same_as_scipy(void **state)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    (void)state;
    for (uint32_t i = 0; i < 4096; i++)
        for (int d = 0; d < GRVI_SOBOL_DIMENSIONS; d++)
            hash = (hash ^ grvi_sobol(d, i)) * UINT64_C(0x100000001b3);
    assert_true(hash == UINT64_C(0xa407cb6a464a2325));
}

/* Of the first 2^k points, and of every block of as many behind them, each of 2^k ranges holds one. */
static void test_even(void **state)
{
    (void)state;
    for (int d = 0; d < GRVI_SOBOL_DIMENSIONS; d++) {
        for (int k = 0; k <= 10; k += 5) {
            for (uint32_t block = 0; block < 3; block++) {
                uint8_t seen[1024] = {0};
                for (uint32_t i = block << k; i < (block + 1) << k; i++) {
                    const uint32_t range = k > 0 ? grvi_sobol(d, i) >> (32 - k) : 0;
                    assert_int_equal(seen[range]++, 0);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_as_scipy),
                                       cmocka_unit_test(test_even)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
