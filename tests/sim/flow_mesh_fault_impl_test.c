/* Bodies from triangles when memory runs out at any allocation: an error, nothing leaked, nothing half made. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "grove/flow_mesh.h"
#include "store_support.h"
#include "surface_oracle.h"

static grv_status make_flow(const grv_flow_mesh *mesh)
{
    grv_flow *flow = NULL;
    grv_flow_params p = grv_flow_params_default();
    for (int d = 0; d < 3; d++) {
        p.n[d] = 12;
        p.mesh_centre[d] = 6;
    }
    p.mesh = mesh;
    const grv_status status = grv_flow_create(&p, &flow);
    assert_true((flow != NULL) == (status == GRV_OK));
    grv_flow_destroy(&flow);
    return status;
}

static grv_status make_all(const char *path)
{
    grv_flow_shape *shape = NULL;
    grv_flow_mesh *mesh = NULL;
    grv_flow_thin thin;
    grv_status status = grv_flow_shape_read(path, &shape);
    assert_true((shape != NULL) == (status == GRV_OK));
    if (status == GRV_OK)
        status = grv_flow_mesh_create(shape, &(grv_flow_pose){4, {0, 0, 30}}, 1, &mesh);
    assert_true((mesh != NULL) == (status == GRV_OK));
    if (status == GRV_OK) status = make_flow(mesh);
    if (status == GRV_OK) status = grv_flow_mesh_thin_get(mesh, 1, &thin);
    grv_flow_mesh_destroy(&mesh);
    grv_flow_shape_destroy(&shape);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    const double half[2][3] = {{-4, -3, -0.4}, {4, 3, 0.4}};
    test_surface box = surface_box(half[0], half[1]);
    grv_triangles *triangles = NULL;
    grv_mesh *mesh = NULL;
    /* ten of twelve triangles: holes take a way of their own */
    assert_ok(grv_triangles_create(GRV_STORE_F64, 8, box.vertices, 10, box.triangles, &triangles));
    assert_ok(grv_triangles_to_mesh(triangles, &mesh));
    assert_ok(grv_mesh_write(mesh, in_folder("box.stl"), NULL));
    grv_mesh_destroy(&mesh);
    grv_triangles_destroy(&triangles);
    surface_free(&box);
    const int64_t held = grv_memory_get().bytes;
    int n_failed = 0;
    for (grv_status status = GRV_E_NOMEM; status != GRV_OK; n_failed++) {
        grvi_alloc_fail_after(n_failed);
        status = make_all(in_folder("box.stl"));
        grvi_alloc_fail_after(-1);
        assert_int_equal(grv_memory_get().bytes, held);
        assert_true(status == GRV_OK || status == GRV_E_NOMEM);
        assert_true(n_failed < 1000);
    }
    assert_true(n_failed > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
