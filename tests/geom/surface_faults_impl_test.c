/* Every allocation of the surface and sampling functions fails once: an error, nothing leaked, nothing half made. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/point_sampling.h"
#include "surface_oracle.h"

typedef grv_status attempt(const test_surface *s);

/* Runs an attempt with the first, second, ... allocation failing until it succeeds. */
static void fail_each(attempt *run, const test_surface *s)
{
    const int64_t before = grv_memory_get().bytes;
    int n_failed = 0;
    for (;; n_failed++) {
        grvi_alloc_fail_after(n_failed);
        const grv_status status = run(s);
        grvi_alloc_fail_after(-1);
        assert_int_equal(grv_memory_get().bytes, before);
        if (status == GRV_OK) break;
        assert_int_equal(status, GRV_E_NOMEM);
        assert_true(n_failed < 1000);
    }
    assert_true(n_failed > 0);
}

static grv_status create_with(const test_surface *s, grv_surface_sign sign)
{
    grv_surface_params params = grv_surface_params_default();
    params.sign = sign;
    grv_surface *surface = NULL;
    const grv_status status = grv_surface_create_f64(s->n_vertices, s->vertices, s->n_triangles,
                                                     s->triangles, &params, &surface);
    assert_true((surface != NULL) == (status == GRV_OK));
    grv_surface_destroy(&surface);
    return status;
}

static grv_status create_winding(const test_surface *s)
{
    return create_with(s, GRV_SURFACE_WINDING);
}
static grv_status create_normals(const test_surface *s)
{
    return create_with(s, GRV_SURFACE_PSEUDONORMAL);
}

static grv_surface *shared_surface; /* made once, looked up with failing allocations */

static grv_status look_up(const test_surface *s)
{
    double distance[64];
    return grv_surface_points_f64(shared_surface, 50, s->vertices, NULL,
                                  &(grv_surface_result_f64){.distance = distance});
}

static grv_status look_up_band(const test_surface *s)
{
    (void)s;
    double distance[64];
    grv_surface_query query = grv_surface_query_default();
    query.band = 2;
    return grv_surface_grid_f64(shared_surface,
                                &(grv_surface_grid){{4, 4, 4}, {0, 0, 0}, {1, 1, 1}}, &query,
                                &(grv_surface_result_f64){.distance = distance});
}

static grv_status inside(const test_surface *s)
{
    (void)s;
    double points[30];
    return grv_sample_inside_f64(shared_surface, 1, 0, 10, 1, points);
}

static grv_status sampler(const test_surface *s)
{
    grv_surface_sampler *made = NULL;
    const grv_status status = grv_surface_sampler_create_f64(s->n_vertices, s->vertices,
                                                             s->n_triangles, s->triangles, &made);
    assert_true((made != NULL) == (status == GRV_OK));
    grv_surface_sampler_destroy(&made);
    return status;
}

static grv_status subset(const test_surface *s)
{
    (void)s;
    int64_t out[8];
    return grv_sample_subset(1, 1, 100, 8, out);
}

static grv_status subset_weighted(const test_surface *s)
{
    (void)s;
    const double weights[4] = {1, 2, 3, 4};
    int64_t out[2];
    return grv_sample_subset_weighted(1, 1, 4, weights, 2, out);
}

static grv_status farthest(const test_surface *s)
{
    int64_t out[8];
    return grv_sample_farthest_f64(s->n_vertices, s->vertices, 0, 8, 2, out, NULL);
}

static void test_every_allocation(void **state)
{
    (void)state;
    test_surface torus = surface_torus(64, 32, 2, 0.5);
    attempt *const attempts[] = {create_winding, create_normals,  look_up,
                                 look_up_band,   inside,          sampler,
                                 subset,         subset_weighted, farthest};
    assert_int_equal(grv_surface_create_f64(torus.n_vertices, torus.vertices, torus.n_triangles,
                                            torus.triangles, NULL, &shared_surface),
                     GRV_OK);
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
        fail_each(attempts[i], &torus);
    grv_surface_destroy(&shared_surface);
    surface_free(&torus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
