/* The stack that follows the tree of sums: fed plane by plane, and with the nodes that several holders hand on, it gives the bits
 * of the recursion that defines the sum, and stays as low as promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dist/tree.h"
#include "grove/dist.h"
#include "tree_oracle.h"

enum { MAX_PLANES = 90, MAX_HOLDERS = 6, CAPACITY = 120, N = 3 };

typedef struct stack_storage {
    grvi_tree_node nodes[CAPACITY];
    double vectors[CAPACITY * N];
} stack_storage;

static grvi_tree_stack start(stack_storage *storage)
{
    return (grvi_tree_stack){
        .capacity = CAPACITY, .n_values = N, .nodes = storage->nodes, .vectors = storage->vectors};
}

static void push_plane(grvi_tree_stack *stack, int64_t plane)
{
    double *const top = grvi_tree_top(stack);
    for (int64_t i = 0; i < N; i++) top[i] = oracle_value(plane, i);
    grvi_tree_push(stack, (grvi_tree_node){.first = plane});
}

/* adds the nodes of one stack to another */
static void hand_on(const grvi_tree_stack *from, grvi_tree_stack *to)
{
    for (int k = 0; k < from->n; k++) {
        memcpy(grvi_tree_top(to), from->vectors + k * N, N * sizeof *from->vectors);
        grvi_tree_push(to, from->nodes[k]);
    }
}

static void check_sum(grvi_tree_stack *stack, int64_t n_planes)
{
    grvi_tree_finish(stack);
    assert_int_equal(stack->n, 1);
    for (int64_t i = 0; i < N; i++) {
        const double expected = oracle_sum(n_planes, i);
        assert_memory_equal(&stack->vectors[i], &expected, sizeof expected);
    }
}

/* the planes of each holder go through a stack of its own, what is left through a last one */
static void test_holders(void **state)
{
    (void)state;
    static stack_storage own, all;
    for (int64_t n_planes = 1; n_planes <= MAX_PLANES; n_planes++)
        for (int n_holders = 1; n_holders <= MAX_HOLDERS; n_holders++) {
            grvi_tree_stack last = start(&all);
            for (int holder = 0; holder < n_holders; holder++) {
                const grv_range planes = grv_partition_range(n_planes, n_holders, holder);
                grvi_tree_stack stack = start(&own);
                for (int64_t p = 0; p < planes.count; p++) push_plane(&stack, planes.start + p);
                /* 2 log2(128) nodes of one run, and the fresh top */
                assert_true(stack.most <= 2 * 7 + 1);
                hand_on(&stack, &last);
            }
            check_sum(&last, n_planes);
        }
}

/* one stack, holes that others fill: a holder of every third plane keeps them all apart */
static void test_interleaved_holders(void **state)
{
    (void)state;
    static stack_storage own, all;
    for (int64_t n_planes = 1; n_planes <= 40; n_planes++) {
        grvi_tree_stack last = start(&all), thirds = start(&own);
        for (int64_t p = 0; p < n_planes; p += 3) push_plane(&thirds, p);
        assert_int_equal(thirds.n, (n_planes + 2) / 3);
        for (int k = 0; k < thirds.n; k++) {
            const grvi_tree_stack one = {
                .n = 1, .nodes = thirds.nodes + k, .vectors = thirds.vectors + k * N};
            hand_on(&one, &last);
            for (int64_t p = 3 * k + 1; p < 3 * k + 3 && p < n_planes; p++) push_plane(&last, p);
        }
        check_sum(&last, n_planes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_holders),
                                       cmocka_unit_test(test_interleaved_holders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
