/* Searches by several threads give the bits of one thread: small enough for the thread sanitizer, which ./check runs on this program. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "grove/core.h"
#include "grove/neighbours.h"
#include "grove/surface_distance.h"
#include "surface_oracle.h"

enum { THREADS = 4, N = 6000, K = 5 };

/* Distances, triangles and signs of a surface that is open at places: scattered points, then a grid with a band. */
typedef struct looked_up {
    double distance[2 * N], closest[6 * N], winding[N];
    int32_t triangle[2 * N];
} looked_up;

static void look_up(const test_surface *s, const double *points, int n_threads, looked_up *out)
{
    grv_surface_params params = grv_surface_params_default();
    params.sign = GRV_SURFACE_WINDING;
    params.n_threads = n_threads;
    grv_surface *surface = NULL;
    assert_int_equal(grv_surface_create_f64(s->n_vertices, s->vertices, s->n_triangles,
                                            s->triangles, &params, &surface),
                     GRV_OK);
    grv_surface_query query = grv_surface_query_default();
    query.n_threads = n_threads;
    const grv_surface_result_f64 scattered = {.distance = out->distance,
                                              .closest = out->closest,
                                              .triangle = out->triangle,
                                              .winding = out->winding};
    assert_int_equal(grv_surface_points_f64(surface, N, points, &query, &scattered), GRV_OK);
    const grv_surface_grid grid = {{30, 20, 10}, {-2.5, -2.5, -0.8}, {0.17, 0.26, 0.17}};
    query.band = 0.4;
    const grv_surface_result_f64 gridded = {.distance = out->distance + N,
                                            .closest = out->closest + 3 * N,
                                            .triangle = out->triangle + N};
    assert_int_equal(grv_surface_grid_f64(surface, &grid, &query, &gridded), GRV_OK);
    grv_surface_destroy(&surface);
}

static void test_surface_threads(void **state)
{
    (void)state;
    static looked_up one, several;
    test_surface s = surface_torus(50, 30, 2, 0.5);
    s.n_triangles -= 40; /* with a hole */
    double *const points = surface_points(&s, 1, N, 1.5);
    look_up(&s, points, 1, &one);
    look_up(&s, points, THREADS, &several);
    assert_memory_equal(&one, &several, sizeof one);
    free(points);
    surface_free(&s);
}

typedef struct found {
    int32_t indices[N * K], list[64 * N];
    float distances[N * K];
    int64_t offsets[N + 1];
} found;

static void find(const float *points, const float *queries, int n_threads, found *out)
{
    grv_neighbours *neighbours = NULL;
    assert_int_equal(
        grv_neighbours_create(points, N, 3, GRV_NEIGHBOURS_F32, n_threads, &neighbours), GRV_OK);
    grv_nearest_params nearest = grv_nearest_params_default();
    nearest.k = K;
    nearest.n_threads = n_threads;
    assert_int_equal(
        grv_neighbours_nearest(neighbours, queries, N, &nearest, out->indices, out->distances),
        GRV_OK);
    const double radius = 0.06;
    grv_radius_params params = grv_radius_params_default();
    params.n_threads = n_threads;
    assert_int_equal(
        grv_neighbours_count(neighbours, queries, N, &radius, 1, n_threads, out->offsets), GRV_OK);
    assert_true(out->offsets[N] > N && out->offsets[N] <= 64 * N);
    const grv_radius_lists lists = {
        .radius = radius, .offsets = out->offsets, .indices = out->list};
    assert_int_equal(grv_neighbours_fill(neighbours, queries, N, &params, &lists, 1), GRV_OK);
    grv_neighbours_destroy(&neighbours);
}

static void test_neighbour_threads(void **state)
{
    (void)state;
    static float points[3 * N], queries[3 * N];
    static found one, several;
    for (int64_t i = 0; i < 3 * N; i++) {
        points[i] = (float)grv_random_uniform(1, 1, (uint64_t)i);
        queries[i] = (float)grv_random_uniform(1, 2, (uint64_t)i);
    }
    find(points, queries, 1, &one);
    find(points, queries, THREADS, &several);
    assert_memory_equal(&one, &several, sizeof one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_surface_threads),
                                       cmocka_unit_test(test_neighbour_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
