/* Tree sum on 1 to 4 ranks, short vectors (gathered) and long ones (by slices): the bits of the defining recursion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/dist.h"
#include "mpi_test.h"
#include "tree_oracle.h"

static grv_comm *world;
static int rank, size;

static void check(grv_plane_layout layout, int64_t n, int n_threads)
{
    const grv_tree_sum_params params = {.n_planes = layout.n_samples * layout.n_planes,
                                        .n = n,
                                        .run_of = grv_plane_layout_run,
                                        .argument = &layout,
                                        .n_threads = n_threads};
    grv_tree_sum *plan = NULL;
    double *planes = NULL, *result = NULL;
    void *scratch = NULL;
    assert_int_equal(grv_tree_sum_create(world, &params, &plan), GRV_OK);
    assert_int_equal(GRVI_ALLOC(&planes, grv_tree_sum_local_planes(plan) * n), GRV_OK);
    assert_int_equal(GRVI_ALLOC(&result, n), GRV_OK);
    assert_int_equal(grvi_alloc(grv_tree_sum_scratch_bytes(plan), 1, &scratch), GRV_OK);
    for (int repeat = 0; repeat < 2; repeat++) {
        int64_t local = 0;
        grv_range run;
        for (int64_t r = 0; grv_plane_layout_run(&layout, rank, r, &run); r++)
            for (int64_t p = run.start; p < run.start + run.count; p++, local++)
                for (int64_t i = 0; i < n; i++) planes[local * n + i] = oracle_value(p, i);
        memset(result, 0, (size_t)n * sizeof *result);
        const int64_t n_allocations = grv_memory_get().n_allocations;
        assert_int_equal(grv_tree_sum_run(plan, planes, result, scratch), GRV_OK);
        assert_int_equal(grv_memory_get().n_allocations, n_allocations);
        for (int64_t i = 0; i < n; i++) {
            const double expected = oracle_sum(params.n_planes, i);
            assert_memory_equal(&result[i], &expected, sizeof expected);
        }
    }
    grv_free(planes);
    grv_free(result);
    grv_free(scratch);
    grv_tree_sum_destroy(&plan);
}

static void test_bits(void **state)
{
    (void)state;
    static const int64_t lengths[] = {0, 1, 5, 1031, 6007};
    for (int l = 0; l < 5; l++)
        for (int n_domain = 1; n_domain <= size; n_domain++) {
            if (size % n_domain != 0) continue;
            const grv_plane_layout layout = {
                .n_samples = 3, .n_planes = 7, .n_data = size / n_domain, .n_domain = n_domain};
            check(layout, lengths[l], 1 + l % 2);
            /* fewer planes than ranks: some ranks have none */
            check(
                (grv_plane_layout){
                    .n_samples = 1, .n_planes = 2, .n_data = layout.n_data, .n_domain = n_domain},
                lengths[l], 1);
        }
}

/* what one rank cannot take, none gets; long vectors, whose plan allocates most */
static void test_out_of_memory(void **state)
{
    (void)state;
    grv_plane_layout layout = {.n_samples = 1, .n_planes = 9, .n_data = 1, .n_domain = size};
    const grv_tree_sum_params params = {
        .n_planes = 9, .n = 9000, .run_of = grv_plane_layout_run, .argument = &layout};
    for (int64_t countdown = 0; countdown < (size > 1 ? 14 : 6); countdown++) {
        grv_tree_sum *plan = NULL;
        grvi_alloc_fail_after(rank == size - 1 ? countdown : -1);
        assert_int_equal(grv_tree_sum_create(world, &params, &plan), GRV_E_NOMEM);
        assert_null(plan);
    }
    grvi_alloc_fail_after(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits),
                                       cmocka_unit_test(test_out_of_memory)};
    world = mpi_test_begin();
    rank = grv_comm_rank(world);
    size = grv_comm_size(world);
    return mpi_test_end(&world, cmocka_run_group_tests(tests, NULL, NULL));
}
