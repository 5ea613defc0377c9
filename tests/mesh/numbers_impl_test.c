/* Numbers in text: the same bits as strtod, whatever the number of digits; what is no number; limits of integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grove/core.h"
#include "mesh/numbers.h"

static void check(const char *text)
{
    const char *at = text, *const end = text + strlen(text);
    double value = 0;
    const double expected = strtod(text, NULL);
    assert_true(grvi_parse_double(&at, end, &value));
    if (at != end || memcmp(&value, &expected, sizeof value) != 0)
        fail_msg("'%s': %.17g, strtod says %.17g", text, value, expected);
}

static void test_doubles(void **state)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "+1",
        ".5",
        "5.",
        "-.25e-3",
        "1e22",
        "1e23",
        "9007199254740993",
        "9007199254740993e5",
        "1e-400",
        "1e400",
        "-1E+05",
        "4.9e-324",
        "2.2250738585072011e-308",
        "0.1000000000000000055511151231257827021181583404541015625",
        "123456789012345678901234567890e-10",
        "000000000000000000000000000000001.5",
        "1e0000000005",
        "0.00000000000000000000000000000000000000000000012345678901234567890"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) check(texts[i]);
    for (uint64_t i = 0; i < 200000; i++) {
        static const char *const formats[] = {"%.17g", "%.9g", "%.3f", "%.12e"};
        char text[512];
        const uint64_t bits = grv_random_bits(1, 5, i);
        double value = 0;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        if (i % 4 >= 2) value = fmod(value, 1e6);
        (void)snprintf(text, sizeof text, formats[i % 4], value);
        check(text);
    }
    /* far more digits than a double has */
    char text[3000] = "0.";
    for (int i = 2; i < 2900; i++) text[i] = (char)('0' + i * 7 % 10);
    check(text);
    strcat(text, "e-12");
    check(text);
}

/* Text and how much of it is the number; -1: it is none. */
static void test_others(void **state)
{
    static const struct {
        const char *text;
        double value;
        int n;
    } cases[] = {{"1D3", 1000, 3},       {"1,5x", 1.5, 3}, {"1,", 1, 1},
                 {"1e", 1, 1},           {"1e+", 1, 1},    {"infinity", HUGE_VAL, 8},
                 {"-INF", -HUGE_VAL, 4}, {"", 0, -1},      {"-", 0, -1},
                 {".", 0, -1},           {"e5", 0, -1},    {"x", 0, -1},
                 {"+-1", 0, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = cases[i].text;
        double value = 0;
        assert_int_equal(grvi_parse_double(&at, cases[i].text + strlen(cases[i].text), &value),
                         cases[i].n >= 0);
        assert_true(value == cases[i].value);
        assert_int_equal(at - cases[i].text, cases[i].n < 0 ? 0 : cases[i].n);
    }
    const char *nan = "-nan";
    double value = 0;
    assert_true(grvi_parse_double(&nan, nan + 4, &value) && isnan(value));
}

static void test_integers(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
        bool good;
    } cases[] = {{"9223372036854775807", INT64_MAX, true},
                 {"-9223372036854775808", INT64_MIN, true},
                 {"9223372036854775808", 0, false},
                 {"-9223372036854775809", 0, false},
                 {"99999999999999999999", 0, false},
                 {"-5", -5, true},
                 {"+5", 5, true},
                 {"-+5", 0, false},
                 {"5.0", 0, false},
                 {"5e3", 0, false},
                 {"", 0, false},
                 {"-", 0, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = cases[i].text;
        int64_t value = 0;
        assert_int_equal(grvi_parse_i64(&at, at + strlen(at), &value), cases[i].good);
        assert_int_equal(value, cases[i].value);
    }
    uint8_t byte = 0;
    const char *at = "256";
    assert_false(grvi_parse_value(GRV_STORE_U8, &at, at + 3, &byte, 0));
    at = "-61"; /* VTK's strings in text */
    assert_true(grvi_parse_value(GRV_STORE_U8, &at, at + 3, &byte, 0) && byte == 195);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_doubles),
                                       cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_integers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
