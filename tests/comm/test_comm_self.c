/* A communicator of one: every collective is a copy or nothing, and MPI is never started. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grove/comm.h"
#include "grove/core.h"

static void test_collectives_of_one(void **state)
{
    (void)state;
    grv_comm *self = NULL, *part = NULL;
    assert_int_equal(grv_comm_create_self(&self), GRV_OK);
    assert_int_equal(grv_comm_rank(self), 0);
    assert_int_equal(grv_comm_size(self), 1);
    char data[4] = "abc", copy[4] = "";
    const int64_t bytes = 4;
    int64_t number = -5;
    double value = 2.5;
    assert_int_equal(grv_comm_barrier(self), GRV_OK);
    assert_int_equal(grv_comm_broadcast(self, 0, data, 4), GRV_OK);
    assert_int_equal(grv_comm_gather(self, 0, data, &bytes, copy), GRV_OK);
    assert_string_equal(copy, "abc");
    memset(copy, 0, sizeof copy);
    assert_int_equal(grv_comm_all_gather(self, data, &bytes, copy), GRV_OK);
    assert_string_equal(copy, "abc");
    assert_int_equal(grv_comm_all_reduce_i64(self, GRV_REDUCE_SUM, 1, &number), GRV_OK);
    assert_int_equal(grv_comm_all_max_f64(self, 1, &value), GRV_OK);
    assert_true(number == -5 && value == 2.5);
    assert_int_equal(grv_comm_agree(self, GRV_E_IO), GRV_E_IO);
    assert_int_equal(grv_comm_split(self, 3, 1, &part), GRV_OK);
    assert_int_equal(grv_comm_size(part), 1);
    grv_comm_destroy(&part);
    assert_int_equal(grv_comm_split(self, -1, 0, &part), GRV_OK);
    assert_null(part);
    grv_comm_destroy(&self);
    assert_null(self);
    grv_comm_destroy(&self);
    grv_comm_destroy(NULL);
}

static void test_world_needs_mpi(void **state)
{
    (void)state;
    grv_comm *world = NULL;
    assert_int_equal(grv_comm_create_world(&world), GRV_E_COMM);
    assert_null(world);
    assert_int_equal(grv_comm_create_from_fortran(0, &world), GRV_E_COMM);
    grv_mpi_stop(); /* does nothing */
}

static void test_launch_is_told_from_the_environment(void **state)
{
    (void)state;
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE",
                                        "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < 5; i++) (void)unsetenv(names[i]);
    assert_false(grv_mpi_launched());
    for (size_t i = 0; i < 5; i++) {
        (void)setenv(names[i], "2", 1);
        assert_true(grv_mpi_launched());
        (void)unsetenv(names[i]);
    }
    (void)setenv("SLURM_STEP_NUM_TASKS", "1", 1); /* a batch task, not an MPI job */
    assert_false(grv_mpi_launched());
    (void)unsetenv("SLURM_STEP_NUM_TASKS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_collectives_of_one),
                                       cmocka_unit_test(test_world_needs_mpi),
                                       cmocka_unit_test(test_launch_is_told_from_the_environment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
