/* Learning-rate schedules against their closed formulas and end points; ranges of the settings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "grove/schedule.h"

static const double two_roundings = 4.5e-16;

static void assert_close(double value, double expected)
{
    assert_true(fabs(value - expected) <= two_roundings * fabs(expected));
}

static void test_constant(void **state)
{
    (void)state;
    const grv_schedule s = grv_schedule_default();
    assert_int_equal(grv_schedule_check(&s), GRV_OK);
    for (int64_t step = 0; step < 100; step++)
        assert_true(grv_schedule_rate(&s, step, step / 10) == 1e-3);
}

static void test_step(void **state)
{
    (void)state;
    const grv_schedule s = {
        .kind = GRV_SCHEDULE_STEP, .rate = 0.3, .factor = 0.5, .period_epochs = 4};
    assert_int_equal(grv_schedule_check(&s), GRV_OK);
    double expected = 0.3;
    for (int64_t epoch = 0; epoch < 40; epoch++) {
        if (epoch > 0 && epoch % 4 == 0) expected *= 0.5; /* exact in binary */
        assert_true(grv_schedule_rate(&s, 17 * epoch, epoch) == expected);
    }
}

static void test_cosine(void **state)
{
    (void)state;
    const grv_schedule s = {
        .kind = GRV_SCHEDULE_COSINE, .rate = 0.1, .min_rate = 0.02, .total_steps = 12};
    assert_int_equal(grv_schedule_check(&s), GRV_OK);
    assert_close(grv_schedule_rate(&s, 0, 0), 0.1);
    assert_close(grv_schedule_rate(&s, 4, 0), 0.02 + 0.08 * 0.75); /* cos 60 degrees */
    assert_close(grv_schedule_rate(&s, 6, 0), 0.06);
    assert_close(grv_schedule_rate(&s, 8, 0), 0.02 + 0.08 * 0.25);
    for (int64_t step = 1; step < 12; step++) /* symmetric about the middle, and falling */
        assert_true(fabs(grv_schedule_rate(&s, step, 0) + grv_schedule_rate(&s, 12 - step, 0) -
                         0.12) < 1e-16 &&
                    grv_schedule_rate(&s, step, 0) < grv_schedule_rate(&s, step - 1, 0));
    assert_true(grv_schedule_rate(&s, 12, 0) == 0.02 && grv_schedule_rate(&s, 1000, 0) == 0.02);
}

static void test_warmup(void **state)
{
    (void)state;
    for (int kind = GRV_SCHEDULE_CONSTANT; kind <= GRV_SCHEDULE_COSINE; kind++) {
        const grv_schedule s = {.kind = (grv_schedule_kind)kind,
                                .rate = 0.1,
                                .factor = 0.5,
                                .period_epochs = 3,
                                .total_steps = 13,
                                .warmup_steps = 5};
        assert_int_equal(grv_schedule_check(&s), GRV_OK);
        for (int64_t step = 0; step < 5; step++)
            assert_close(grv_schedule_rate(&s, step, 0), 0.1 * (double)(step + 1) / 5);
        assert_close(grv_schedule_rate(&s, 5, 0), 0.1); /* the cosine starts here */
    }
    const grv_schedule s = {
        .kind = GRV_SCHEDULE_COSINE, .rate = 0.1, .total_steps = 13, .warmup_steps = 5};
    assert_close(grv_schedule_rate(&s, 9, 0), 0.05);
    assert_true(grv_schedule_rate(&s, 13, 0) == 0);
}

static void expect_failure(grv_schedule s, const char *text)
{
    assert_int_equal(grv_schedule_check(&s), GRV_E_CONFIG);
    assert_non_null(strstr(grv_error_message(), text));
}

static void test_ranges(void **state)
{
    (void)state;
    expect_failure((grv_schedule){.rate = -1}, "learning rate");
    expect_failure((grv_schedule){.rate = (double)NAN}, "learning rate");
    expect_failure((grv_schedule){.rate = 1, .warmup_steps = -1}, "warm-up");
    expect_failure((grv_schedule){.kind = GRV_SCHEDULE_STEP, .rate = 1, .period_epochs = 1},
                   "factor");
    expect_failure((grv_schedule){.kind = GRV_SCHEDULE_STEP, .rate = 1, .factor = 1}, "period");
    expect_failure(
        (grv_schedule){.kind = GRV_SCHEDULE_COSINE, .rate = 1, .min_rate = 2, .total_steps = 3},
        "lowest");
    expect_failure(
        (grv_schedule){.kind = GRV_SCHEDULE_COSINE, .rate = 1, .total_steps = 3, .warmup_steps = 3},
        "more than 3 steps");
    expect_failure((grv_schedule){.kind = (grv_schedule_kind)7, .rate = 1}, "unknown schedule 7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_constant), cmocka_unit_test(test_step),
                                       cmocka_unit_test(test_cosine), cmocka_unit_test(test_warmup),
                                       cmocka_unit_test(test_ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
