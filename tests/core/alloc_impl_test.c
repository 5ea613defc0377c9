/* Memory: alignment, accounting, zeroes, and freed blocks that are kept for later ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "grove/core.h"

enum { MIB = 1 << 20 };

static char *take(int64_t n_bytes)
{
    char *block = NULL;
    assert_int_equal(GRVI_ALLOC(&block, n_bytes), GRV_OK);
    assert_int_equal((uintptr_t)block % 64, 0);
    return block;
}

static void test_accounting(void **state)
{
    (void)state;
    const grv_memory before = grv_memory_get();
    char *const small = take(100), *const large = take(3 * MIB), *const none = take(0);
    memset(large, 1, 3 * MIB);
    assert_true(grv_memory_get().bytes == before.bytes + 100 + 3 * MIB);
    assert_true(grv_memory_get().n_allocations == before.n_allocations + 3);
    grv_free(small);
    grv_free(large);
    grv_free(none);
    assert_true(grv_memory_get().bytes == before.bytes);
    assert_true(grv_memory_get().peak_bytes >= before.bytes + 100 + 3 * MIB);
    assert_true(grv_memory_get().kept_bytes == 0); /* unless somebody asks for it */
    char *block = NULL;
    assert_int_equal(grvi_alloc(INT64_MAX, 8, (void **)&block), GRV_E_NOMEM);
    assert_null(block);
}

/* A block is used again for sizes that fill half of it, and only while the limit allows to keep it. */
static void test_kept_blocks(void **state)
{
    (void)state;
    grv_memory_keep(40 * MIB);
    char *const first = take(20 * MIB);
    memset(first, 7, 20 * MIB);
    grv_free(first);
    const int64_t kept = grv_memory_get().kept_bytes;
    assert_true(kept >= 20 * MIB && kept <= 26 * MIB);
    char *const small = take(6 * MIB); /* far too small for it */
    assert_ptr_not_equal(small, first);
    assert_true(grv_memory_get().kept_bytes == kept);
    char *again = NULL;
    assert_int_equal(GRVI_CALLOC(&again, 18 * MIB), GRV_OK);
    assert_ptr_equal(again, first);
    for (int64_t i = 0; i < 18 * MIB; i++)
        if (again[i] != 0) fail_msg("byte %lld is %d", (long long)i, again[i]);
    assert_true(grv_memory_get().kept_bytes == 0);
    /* two of them are too many: the one that was freed first goes */
    char *const second = take(20 * MIB);
    grv_free(again);
    grv_free(second);
    assert_true(grv_memory_get().kept_bytes == kept);
    char *const third = take(20 * MIB);
    assert_ptr_equal(third, second);
    grv_free(third);
    grv_free(small);
    grv_memory_keep(0);
    assert_true(grv_memory_get().kept_bytes == 0);
    grv_free(take(20 * MIB));
    assert_true(grv_memory_get().kept_bytes == 0);
}

static void take_and_free(void *argument, int thread, int64_t begin, int64_t end)
{
    (void)argument;
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = (2 + i % 5) * MIB;
        char *const block = take(n);
        memset(block, thread, 4096);
        memset(block + n - 4096, thread, 4096);
        for (int k = 0; k < 4096; k++)
            if (block[k] != thread || block[n - 4096 + k] != thread) fail();
        grv_free(block);
    }
}

static void test_threads(void **state)
{
    (void)state;
    const int64_t before = grv_memory_get().bytes;
    grv_memory_keep(16 * MIB);
    grv_parallel_for(4, 400, take_and_free, NULL);
    assert_true(grv_memory_get().bytes == before);
    assert_true(grv_memory_get().kept_bytes <= 16 * MIB);
    grv_memory_keep(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_accounting), cmocka_unit_test(test_kept_blocks),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
