/* Tree sum with all ranks played in one process: the same bits for every split of the planes, equal to the recursion
 * that defines it; bounds on what is exchanged; runs that do not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "dist/tree_sum.h"
#include "grove/core.h"
#include "tree_oracle.h"

enum { MAX_PLANES = 140, MAX_NODES = 600, MAX_N = 3 };

static int64_t ceil_log2(int64_t n)
{
    int64_t level = 0;
    while ((int64_t)1 << level < n) level++;
    return level;
}

/* Plays n_ranks ranks and checks the result. */
static void check_split(const grv_tree_sum_params *params, int n_ranks)
{
    static double planes[MAX_PLANES * MAX_N], nodes[MAX_NODES * MAX_N];
    const int64_t n = params->n;
    int64_t n_gathered = 0;
    for (int rank = 0; rank < n_ranks; rank++) {
        grv_tree_sum *plan = NULL;
        assert_int_equal(grvi_tree_sum_create_dry(n_ranks, rank, params, &plan), GRV_OK);
        int64_t local = 0, n_runs = 0;
        grv_range run;
        for (; params->run_of(params->argument, rank, n_runs, &run); n_runs++)
            for (int64_t p = run.start; p < run.start + run.count; p++, local++)
                for (int64_t i = 0; i < n; i++) planes[local * n + i] = oracle_value(p, i);
        assert_int_equal(grv_tree_sum_local_planes(plan), local);
        const int64_t n_own = grvi_tree_sum_own_nodes(plan);
        assert_true(n_own <= 2 * n_runs * (ceil_log2(params->n_planes) + 1) && n_own <= local);
        grvi_tree_sum_reduce(plan, planes);
        memcpy(nodes + n_gathered * n, planes, (size_t)(n_own * n) * sizeof *nodes);
        n_gathered += n_own;
        if (rank == n_ranks - 1) {
            double result[MAX_N];
            assert_int_equal(grvi_tree_sum_all_nodes(plan), n_gathered);
            grvi_tree_sum_finish(plan, n, nodes, result);
            for (int64_t i = 0; i < n; i++) {
                const double expected = oracle_sum(params->n_planes, i);
                assert_memory_equal(&result[i], &expected, sizeof expected);
            }
        }
        grv_tree_sum_destroy(&plan);
        assert_null(plan);
    }
}

static void test_balanced_splits(void **state)
{
    (void)state;
    for (int64_t n_planes = 1; n_planes <= 70; n_planes++)
        for (int n_ranks = 1; n_ranks <= 9; n_ranks++) {
            grv_plane_layout layout = {
                .n_samples = 1, .n_planes = n_planes, .n_data = 1, .n_domain = n_ranks};
            check_split(&(grv_tree_sum_params){.n_planes = n_planes,
                                               .n = MAX_N,
                                               .run_of = grv_plane_layout_run,
                                               .argument = &layout},
                        n_ranks);
        }
}

static void test_process_meshes(void **state)
{
    (void)state;
    for (int64_t n_samples = 1; n_samples <= 5; n_samples++)
        for (int n_data = 1; n_data <= 3; n_data++)
            for (int n_domain = 1; n_domain <= 4; n_domain++) {
                grv_plane_layout layout = {
                    .n_samples = n_samples, .n_planes = 13, .n_data = n_data, .n_domain = n_domain};
                check_split(&(grv_tree_sum_params){.n_planes = 13 * n_samples,
                                                   .n = 2,
                                                   .run_of = grv_plane_layout_run,
                                                   .argument = &layout,
                                                   .n_threads = 2},
                            n_data * n_domain);
            }
}

/* planes dealt at random: runs of every length on every rank, in any order of ranks */
typedef struct deal {
    int64_t n_planes;
    int n_ranks;
    uint64_t seed;
} deal;

static int owner(const deal *d, int64_t plane)
{
    return (int)(grv_random_bits(d->seed, 1, (uint64_t)plane / (1 + d->seed % 7)) %
                 (uint64_t)d->n_ranks);
}

static bool dealt_run(void *argument, int rank, int64_t i, grv_range *run)
{
    const deal *const d = argument;
    for (int64_t p = 0; p < d->n_planes; p++) {
        if (owner(d, p) != rank || (p > 0 && owner(d, p - 1) == rank)) continue;
        if (i-- > 0) continue;
        *run = (grv_range){.start = p, .count = 0};
        while (p < d->n_planes && owner(d, p) == rank) p++, run->count++;
        return true;
    }
    return false;
}

static void test_random_deals(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        deal d = {.n_planes = 1 + (int64_t)(grv_random_bits(seed, 9, 0) % 99),
                  .n_ranks = 1 + (int)(seed % 6),
                  .seed = seed};
        check_split(
            &(grv_tree_sum_params){
                .n_planes = d.n_planes, .n = 1, .run_of = dealt_run, .argument = &d},
            d.n_ranks);
    }
}

/* one rank, no planes left over: the sum is there without scratch */
static void test_one_rank(void **state)
{
    (void)state;
    enum { PLANES = 37, N = 2000 };
    grv_comm *self = NULL;
    grv_tree_sum *plan = NULL;
    grv_plane_layout layout = {.n_samples = 1, .n_planes = PLANES, .n_data = 1, .n_domain = 1};
    const grv_tree_sum_params params = {.n_planes = PLANES,
                                        .n = N,
                                        .run_of = grv_plane_layout_run,
                                        .argument = &layout,
                                        .n_threads = 2};
    static double planes[PLANES * N], result[N];
    for (int64_t p = 0; p < PLANES; p++)
        for (int64_t i = 0; i < N; i++) planes[p * N + i] = oracle_value(p, i);
    assert_int_equal(grv_comm_create_self(&self), GRV_OK);
    assert_int_equal(grv_tree_sum_create(self, &params, &plan), GRV_OK);
    assert_int_equal(grv_tree_sum_scratch_bytes(plan), 0);
    const int64_t n_allocations = grv_memory_get().n_allocations;
    assert_int_equal(grv_tree_sum_run(plan, planes, result, NULL), GRV_OK);
    assert_int_equal(grv_memory_get().n_allocations, n_allocations);
    for (int64_t i = 0; i < N; i++) assert_true(result[i] == oracle_sum(PLANES, i));
    grv_tree_sum_destroy(&plan);
    grv_comm_destroy(&self);
}

typedef struct listed {
    int n;
    grv_range runs[4][2]; /* [rank][i] */
} listed;

static bool listed_run(void *argument, int rank, int64_t i, grv_range *run)
{
    const listed *const l = argument;
    if (i >= 2) return false;
    *run = l->runs[rank][i];
    return true;
}

static void expect_failure(const listed *runs, grv_status status, const char *text)
{
    listed copy = *runs;
    grv_tree_sum *plan = NULL;
    const grv_tree_sum_params params = {
        .n_planes = 10, .n = 1, .run_of = listed_run, .argument = &copy};
    assert_int_equal(grvi_tree_sum_create_dry(runs->n, 0, &params, &plan), status);
    assert_non_null(strstr(grv_error_message(), text));
    assert_null(plan);
}

static void test_errors(void **state)
{
    (void)state;
    expect_failure(&(listed){.n = 2, .runs = {{{0, 5}}, {{5, 4}}}}, GRV_E_SHAPE,
                   "10 planes expected on the ranks together, 9 found");
    expect_failure(&(listed){.n = 2, .runs = {{{0, 5}}, {{4, 5}}}}, GRV_E_SHAPE,
                   "plane 5 is held by");
    expect_failure(&(listed){.n = 1, .runs = {{{5, 5}, {0, 5}}}}, GRV_E_ARG, "ascending runs");
    expect_failure(&(listed){.n = 1, .runs = {{{0, 11}}}}, GRV_E_ARG, "[0, 11) found");
    expect_failure(&(listed){.n = 1, .runs = {{{0, -1}}}}, GRV_E_ARG, "run 0 of rank 0");
    grv_tree_sum *plan = NULL;
    listed good = {.n = 1, .runs = {{{0, 10}}}};
    grv_tree_sum_params params = {.n_planes = 10, .n = 1, .run_of = listed_run, .argument = &good};
    for (int64_t countdown = 0; countdown < 6; countdown++) {
        grvi_alloc_fail_after(countdown);
        assert_int_equal(grvi_tree_sum_create_dry(1, 0, &params, &plan), GRV_E_NOMEM);
        assert_null(plan);
    }
    grvi_alloc_fail_after(-1);
    assert_int_equal(grvi_tree_sum_create_dry(1, 0, &params, &plan), GRV_OK);
    double planes[10], result;
    assert_int_equal(grv_tree_sum_run(plan, planes, &result, NULL), GRV_E_ARG);
    grv_tree_sum_destroy(&plan);
    params.n_planes = 0;
    assert_int_equal(grvi_tree_sum_create_dry(1, 0, &params, &plan), GRV_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_balanced_splits), cmocka_unit_test(test_process_meshes),
        cmocka_unit_test(test_random_deals), cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
