/* Balanced partitions, boxes and plane layouts: the examples of the paper's settings, then properties for all small sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "grove/dist.h"

/* 8 ranks: 130 -> 17,17,16 x 6; 118 -> 15 x 6, 14 x 2; 36 -> 5 x 4, 4 x 4; 32 -> 4 each */
static void test_published_examples(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        int n_long, long_count;
    } cases[] = {{130, 2, 17}, {118, 6, 15}, {36, 4, 5}, {32, 8, 4}};
    for (int c = 0; c < 4; c++)
        for (int part = 0; part < 8; part++)
            assert_int_equal(grv_partition_range(cases[c].n, 8, part).count,
                             cases[c].long_count - (part >= cases[c].n_long));
}

static void test_partition_properties(void **state)
{
    (void)state;
    for (int64_t n = 0; n <= 20; n++)
        for (int parts = 1; parts <= 23; parts++) {
            int64_t next = 0;
            for (int part = 0; part < parts; part++) {
                const grv_range range = grv_partition_range(n, parts, part);
                assert_int_equal(range.start, next);
                assert_true(range.count == n / parts || range.count == n / parts + 1);
                for (int64_t i = range.start; i < range.start + range.count; i++)
                    assert_int_equal(grv_partition_owner(n, parts, i), part);
                next += range.count;
            }
            assert_int_equal(next, n);
        }
    const int64_t large = ((int64_t)1 << 40) + 1;
    assert_int_equal(
        grv_partition_range(large, 3, 2).start + grv_partition_range(large, 3, 2).count, large);
    assert_int_equal(grv_partition_owner(large, 3, large - 1), 2);
}

static void test_boxes(void **state)
{
    (void)state;
    const grv_box a = {.n_dims = 3, .start = {0, 5, -2}, .count = {4, 3, 10}};
    const grv_box b = {.n_dims = 3, .start = {2, 0, 0}, .count = {9, 6, 1}};
    grv_box both;
    assert_int_equal(grv_box_size(&a), 120);
    assert_true(grv_box_intersect(&a, &b, &both));
    const int64_t start[] = {2, 5, 0}, count[] = {2, 1, 1};
    for (int d = 0; d < 3; d++) assert_true(both.start[d] == start[d] && both.count[d] == count[d]);
    const grv_box beside = {.n_dims = 3, .start = {4, 5, -2}, .count = {1, 3, 10}};
    assert_false(grv_box_intersect(&a, &beside, &both));
    assert_int_equal(grv_box_size(&both), 0);
    for (int d = 0; d < 3; d++) assert_int_equal(both.count[d], 0);
    const grv_box slab = grv_box_split(&a, 2, 4, 1);
    assert_true(slab.start[2] == 1 && slab.count[2] == 3 && slab.start[1] == 5 &&
                slab.count[0] == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_examples), cmocka_unit_test(test_partition_properties),
        cmocka_unit_test(test_boxes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
