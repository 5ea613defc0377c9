/* Collectives against values that each rank can compute itself, with messages whole and cut into pieces. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <mpi.h>

#include "comm/comm_limits.h"
#include "grove/comm.h"
#include "mpi_test.h"

enum { MAX_RANKS = 4, MAX_BYTES = 100 };
static grv_comm *world;
static int rank, size;

static unsigned char byte_of(int r, int64_t i)
{
    return (unsigned char)(37 * r + 11 * (int)i + 5);
}

static void test_broadcast(void **state)
{
    (void)state;
    for (int root = 0; root < size; root++)
        for (int64_t n = 0; n < MAX_BYTES; n += 33) {
            unsigned char data[MAX_BYTES + 1];
            for (int64_t i = 0; i < n; i++) data[i] = rank == root ? byte_of(root, i) : 0;
            data[n] = 0xEE;
            assert_int_equal(grv_comm_broadcast(world, root, data, n), GRV_OK);
            for (int64_t i = 0; i < n; i++) assert_int_equal(data[i], byte_of(root, i));
            assert_int_equal(data[n], 0xEE);
        }
}

/* rank r contributes 13 r mod 31 bytes: unequal, and none from rank 0 */
static void test_gather(void **state)
{
    (void)state;
    int64_t bytes[MAX_RANKS], sum = 0;
    unsigned char mine[MAX_BYTES], all[MAX_RANKS * MAX_BYTES];
    for (int r = 0; r < size; r++) sum += bytes[r] = 13 * r % 31;
    for (int64_t i = 0; i < bytes[rank]; i++) mine[i] = byte_of(rank, i);
    for (int root = -1; root < size; root++) { /* -1: to all */
        memset(all, 0xEE, sizeof all);
        assert_int_equal(root < 0 ? grv_comm_all_gather(world, mine, bytes, all)
                                  : grv_comm_gather(world, root, mine, bytes, all),
                         GRV_OK);
        const unsigned char *next = all;
        for (int r = 0; r < size; r++)
            for (int64_t i = 0; i < bytes[r]; i++)
                assert_int_equal(*next++, root < 0 || root == rank ? byte_of(r, i) : 0xEE);
        assert_int_equal(all[sum], 0xEE);
    }
}

static void test_reduce(void **state)
{
    (void)state;
    const int64_t big = (int64_t)1 << 60;
    int64_t max[3] = {rank, -rank, big + rank}, min[3] = {rank, -rank, big + rank},
            sum[3] = {rank, -1, big / 8};
    assert_int_equal(grv_comm_all_reduce_i64(world, GRV_REDUCE_MAX, 3, max), GRV_OK);
    assert_int_equal(grv_comm_all_reduce_i64(world, GRV_REDUCE_MIN, 3, min), GRV_OK);
    assert_int_equal(grv_comm_all_reduce_i64(world, GRV_REDUCE_SUM, 3, sum), GRV_OK);
    assert_true(max[0] == size - 1 && max[1] == 0 && max[2] == big + size - 1);
    assert_true(min[0] == 0 && min[1] == 1 - size && min[2] == big);
    assert_true(sum[0] == size * (size - 1) / 2 && sum[1] == -size && sum[2] == size * (big / 8));
}

static void test_max_f64(void **state)
{
    (void)state;
    enum { N = 150 };
    double values[N];
    for (int i = 0; i < N; i++) values[i] = -1.5 * (i + 1) / (rank + 1); /* all negative */
    values[7] = rank == size - 1 ? -(double)NAN : (double)INFINITY;
    values[8] = rank == 0 ? -(double)INFINITY : -1e300;
    values[9] = rank == size - 1 ? 0.0 : -0.0;
    assert_int_equal(grv_comm_all_max_f64(world, N, values), GRV_OK);
    for (int i = 0; i < N; i++) {
        if (i == 7)
            assert_true(isnan(values[i]));
        else if (i == 8)
            assert_true(values[i] == (size == 1 ? -(double)INFINITY : -1e300));
        else if (i == 9)
            assert_true(values[i] == 0 && !signbit(values[i]));
        else
            assert_true(values[i] == -1.5 * (i + 1) / size);
    }
}

static void test_split(void **state)
{
    (void)state;
    grv_comm *part = NULL;
    /* odd and even ranks, in reverse order */
    assert_int_equal(grv_comm_split(world, rank % 2, -rank, &part), GRV_OK);
    const int n = (size + 1 - rank % 2) / 2;
    assert_int_equal(grv_comm_size(part), n);
    assert_int_equal(grv_comm_rank(part), n - 1 - rank / 2);
    int64_t sum = rank;
    assert_int_equal(grv_comm_all_reduce_i64(part, GRV_REDUCE_SUM, 1, &sum), GRV_OK);
    assert_int_equal(sum, n * (n - 1) + n * (rank % 2));
    grv_comm_destroy(&part);
    assert_null(part);
    /* only rank 0 stays */
    assert_int_equal(grv_comm_split(world, rank == 0 ? 0 : -1, 0, &part), GRV_OK);
    assert_true((part != NULL) == (rank == 0));
    grv_comm_destroy(&part);
}

static void test_from_fortran(void **state)
{
    (void)state;
    grv_comm *copy = NULL;
    assert_int_equal(grv_comm_create_from_fortran((int)MPI_Comm_c2f(MPI_COMM_WORLD), &copy),
                     GRV_OK);
    assert_true(grv_comm_rank(copy) == rank && grv_comm_size(copy) == size);
    assert_int_equal(grv_comm_barrier(copy), GRV_OK);
    grv_comm_destroy(&copy);
    assert_int_equal(grv_comm_create_from_fortran((int)MPI_Comm_c2f(MPI_COMM_NULL), &copy),
                     GRV_E_ARG);
    assert_null(copy);
}

static void test_launch(void **state)
{
    (void)state;
    assert_true(grv_mpi_launched());
    assert_int_equal(grv_mpi_start(), GRV_E_COMM); /* once only */
}

#ifdef GRVI_DEBUG
static void test_disagreement_is_found(void **state)
{
    (void)state;
    if (size == 1) return;
    char data[8] = {0};
    assert_int_equal(grv_comm_broadcast(world, 0, data, rank == 1 ? 4 : 8), GRV_E_COMM);
    assert_non_null(strstr(grv_error_message(), rank == 1 ? "broadcast(0, 4)" : "broadcast(0, 8)"));
    assert_int_equal(rank == 0 ? grv_comm_barrier(world) : grv_comm_broadcast(world, 0, data, 8),
                     GRV_E_COMM);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_max_f64),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_from_fortran),
        cmocka_unit_test(test_launch),
#ifdef GRVI_DEBUG
        cmocka_unit_test(test_disagreement_is_found),
#endif
    };
    world = mpi_test_begin();
    rank = grv_comm_rank(world);
    size = grv_comm_size(world);
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    grvi_comm_set_max_bytes(world, 8);
    n_failed += cmocka_run_group_tests_name("messages cut at 8 bytes", tests, NULL, NULL);
    return mpi_test_end(&world, n_failed);
}
