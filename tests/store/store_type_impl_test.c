/* Half precision: every value there and back, and rounding to nearest even half way between neighbours. CRC-32C: published vectors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/crc32c.h"
#include "store/store_type.h"

static void test_half(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        const double value = grvi_half_to_double((uint16_t)bits);
        if (isnan(value)) {
            assert_true((bits & 0x7fff) > 0x7c00);
            continue;
        }
        assert_int_equal(grvi_half_from_double(value), bits);
        if ((bits & 0x7fff) >= 0x7bff) continue; /* no finite neighbour above */
        const double next = grvi_half_to_double((uint16_t)(bits + 1)),
                     middle = 0.5 * (value + next);
        assert_int_equal(grvi_half_from_double(middle),
                         bits + (bits & 1)); /* the even one of the two */
        assert_int_equal(grvi_half_from_double(middle + (next - value) * 0.01), bits + 1);
        assert_int_equal(grvi_half_from_double(middle - (next - value) * 0.01), bits);
    }
    assert_int_equal(grvi_half_from_double(65519.99), 0x7bff);
    assert_int_equal(grvi_half_from_double(65520), 0x7c00);
    assert_int_equal(grvi_half_from_double(-1e300), 0xfc00);
    assert_int_equal(grvi_half_from_double((double)NAN), 0x7e00);
}

/* RFC 3720 B.4, and "123456789"; every usable variant over awkward lengths and alignments */
static void test_crc32c(void **state)
{
    uint8_t data[200];
    (void)state;
    for (int isa = GRVI_ISA_REF; isa < GRVI_ISA_COUNT; isa++) {
        if (!grvi_isa_usable((grvi_isa)isa)) continue;
        grvi_crc32c_function *const crc32c = grvi_crc32c_for((grvi_isa)isa);
        assert_true(crc32c("123456789", 9) == 0xe3069283U);
        memset(data, 0, sizeof data);
        assert_true(crc32c(data, 32) == 0x8a9136aaU);
        memset(data, 0xff, sizeof data);
        assert_true(crc32c(data, 32) == 0x62a8ab43U);
        for (int i = 0; i < 200; i++) data[i] = (uint8_t)i;
        assert_true(crc32c(data, 32) == 0x46dd794eU);
        assert_true(crc32c(data, 0) == 0);
        for (int start = 0; start < 9; start++) {
            for (int n = 0; n < 150; n++)
                assert_true(crc32c(data + start, n) == grvi_crc32c_ref(data + start, n));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_half), cmocka_unit_test(test_crc32c)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
