/* The blocks of a copy: the count of decodings is that of walking all blocks, they fit, and more memory never costs decodings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "grove/core.h"
#include "store/copy_blocks.h"

enum { MAX_TRIES = 3000 };

static int64_t draw(uint64_t stream, int64_t i, int64_t low, int64_t high)
{
    return low + (int64_t)(grv_random_bits(1, stream, (uint64_t)i) % (uint64_t)(high - low + 1));
}

/* touches of source chunks along one axis, block by block */
static int64_t walk(int64_t n, int64_t unit, int64_t block)
{
    int64_t sum = 0;
    for (int64_t first = 0; first < n; first += block) {
        const int64_t last = (first + block < n ? first + block : n) - 1;
        sum += last / unit - first / unit + 1;
    }
    return sum;
}

static void test_rereads_are_counted(void **state)
{
    (void)state;
    for (int64_t i = 0; i < MAX_TRIES; i++) {
        const int64_t n = draw(0, i, 1, 60), unit = draw(1, i, 1, 70), object = draw(2, i, 1, 20),
                      block = object * draw(3, i, 1, 5);
        const grvi_copy_shapes shapes = {1, 4, &n, &unit, &object};
        const double expected = (double)walk(n, unit, block) / (double)((n + unit - 1) / unit);
        assert_true(fabs(grvi_copy_rereads(&shapes, &block) - expected) < 1e-12);
    }
}

static void test_blocks_fit(void **state)
{
    (void)state;
    for (int64_t i = 0; i < MAX_TRIES; i++) {
        int64_t shape[3], unit[3], object[3], block[3], larger[3], bytes = 4, least = 4;
        for (int a = 0; a < 3; a++) {
            shape[a] = draw((uint64_t)(10 + a), i, 1, 40);
            unit[a] = draw((uint64_t)(20 + a), i, 1, 45);
            object[a] = draw((uint64_t)(30 + a), i, 1, 45);
            least *= object[a] < shape[a] ? object[a] : shape[a];
        }
        const int64_t budget = least + draw(40, i, 0, 100000);
        const grvi_copy_shapes shapes = {3, 4, shape, unit, object};
        assert_int_equal(grvi_copy_choose_block(&shapes, budget, block), GRV_OK);
        for (int a = 0; a < 3; a++) {
            assert_int_equal(block[a] % object[a], 0);
            assert_true(block[a] < shape[a] + object[a]);
            bytes *= block[a] < shape[a] ? block[a] : shape[a];
        }
        assert_true(bytes <= budget);
        assert_int_equal(grvi_copy_choose_block(&shapes, (int64_t)1 << 40, larger), GRV_OK);
        assert_true(grvi_copy_rereads(&shapes, larger) < 1 + 1e-12);
        assert_int_equal(grvi_copy_choose_block(&shapes, least - 1, block), GRV_E_ARG);
    }
}

/* 1024 planes of 1024^2 into pencils along the first axis: with room for 1/16 of it, each plane is read at most 16 times */
static void test_planes_to_pencils(void **state)
{
    const int64_t shape[] = {1024, 1024, 1024}, unit[] = {1, 1024, 1024}, object[] = {1024, 1, 64};
    int64_t block[3];
    const grvi_copy_shapes shapes = {3, 4, shape, unit, object};
    (void)state;
    assert_int_equal(grvi_copy_choose_block(&shapes, (int64_t)1 << 28, block), GRV_OK);
    assert_true(grvi_copy_rereads(&shapes, block) <= 16 + 1e-9);
}

/* lengths whose common multiple overflows */
static void test_absurd_lengths(void **state)
{
    const int64_t shape[] = {1000}, unit[] = {((int64_t)1 << 60) - 1}, object[] = {999};
    int64_t block[1];
    const grvi_copy_shapes shapes = {1, 8, shape, unit, object};
    (void)state;
    assert_int_equal(grvi_copy_choose_block(&shapes, 8000, block), GRV_OK);
    assert_int_equal(block[0], 1998);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rereads_are_counted), cmocka_unit_test(test_blocks_fit),
        cmocka_unit_test(test_planes_to_pencils), cmocka_unit_test(test_absurd_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
