/* Process meshes: places, communicators along both sides, a wrong number of ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "grove/dist.h"
#include "mpi_test.h"

static grv_comm *world;
static int rank, size;

static void test_places(void **state)
{
    (void)state;
    for (int n_domain = 1; n_domain <= size; n_domain++) {
        grv_process_mesh *mesh = NULL;
        if (size % n_domain != 0) {
            assert_int_equal(grv_process_mesh_create(world, n_domain, &mesh), GRV_E_ARG);
            assert_null(mesh);
            continue;
        }
        assert_int_equal(grv_process_mesh_create(world, n_domain, &mesh), GRV_OK);
        assert_int_equal(mesh->data * n_domain + mesh->domain, rank);
        assert_int_equal(grv_comm_size(mesh->domain_comm), n_domain);
        assert_int_equal(grv_comm_rank(mesh->domain_comm), mesh->domain);
        assert_int_equal(grv_comm_size(mesh->data_comm), mesh->n_data);
        assert_int_equal(grv_comm_rank(mesh->data_comm), mesh->data);
        /* the lowest rank of a group is its first; along the other side it is the domain index */
        int64_t lowest = rank;
        assert_int_equal(grv_comm_all_reduce_i64(mesh->domain_comm, GRV_REDUCE_MIN, 1, &lowest),
                         GRV_OK);
        assert_int_equal(lowest, mesh->data * n_domain);
        lowest = rank;
        assert_int_equal(grv_comm_all_reduce_i64(mesh->data_comm, GRV_REDUCE_MIN, 1, &lowest),
                         GRV_OK);
        assert_int_equal(lowest, mesh->domain);
        grv_process_mesh_destroy(&mesh);
        assert_null(mesh);
    }
    grv_process_mesh *mesh = NULL;
    assert_int_equal(grv_process_mesh_create(world, 0, &mesh), GRV_E_ARG);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    for (int64_t countdown = 0; countdown < 7; countdown++) {
        grv_process_mesh *mesh = NULL;
        grvi_alloc_fail_after(rank == 0 ? countdown : -1);
        assert_int_equal(grv_process_mesh_create(world, size, &mesh), GRV_E_NOMEM);
        assert_null(mesh);
    }
    grvi_alloc_fail_after(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_out_of_memory)};
    world = mpi_test_begin();
    rank = grv_comm_rank(world);
    size = grv_comm_size(world);
    return mpi_test_end(&world, cmocka_run_group_tests(tests, NULL, NULL));
}
