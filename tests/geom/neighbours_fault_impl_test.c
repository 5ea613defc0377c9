/* Every allocation of building and searching fails once: GRV_E_NOMEM, nothing leaks, and the structure still searches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/neighbours.h"
#include "guarded.h"
#include "point_clouds.h"

enum { N = 700, M = 100, K = 20 };

typedef struct fault_case {
    float *points, *queries;
    grv_neighbours *neighbours;
    int32_t indices[M * K];
    float distances[M * K];
    int64_t offsets[M + 1];
    int32_t list[M * N];
} fault_case;

static grv_status nearest(fault_case *c)
{
    grv_nearest_params params = grv_nearest_params_default();
    params.k = K;
    return grv_neighbours_nearest(c->neighbours, c->queries, M, &params, c->indices, NULL);
}

static grv_status within(fault_case *c, grv_radius_order order)
{
    grv_radius_params params = grv_radius_params_default();
    params.order = order;
    params.source_points = c->points;
    const grv_radius_rows rows[2] = {{.radius = 0.5, .max_points = K, .indices = c->indices},
                                     {.radius = 0.2, .max_points = K, .indices = c->indices}};
    return grv_neighbours_within(c->neighbours, c->queries, M, &params, rows, 2);
}

static grv_status lists(fault_case *c)
{
    const double radius = 0.5;
    const grv_radius_lists list = {.radius = radius, .offsets = c->offsets, .indices = c->list};
    GRV_TRY(grv_neighbours_count(c->neighbours, c->queries, M, &radius, 1, 2, c->offsets));
    return grv_neighbours_fill(c->neighbours, c->queries, M, NULL, &list, 1);
}

static grv_status run(fault_case *c, int which)
{
    switch (which) {
    case 0:
        grv_neighbours_destroy(&c->neighbours);
        return grv_neighbours_create(c->points, N, 3, GRV_NEIGHBOURS_F32, 2, &c->neighbours);
    case 1: return nearest(c);
    case 2: return within(c, GRV_RADIUS_NEAREST);
    case 3: return within(c, GRV_RADIUS_GRID_ORDER);
    default: return lists(c);
    }
}

static void test_out_of_memory(void **state)
{
    (void)state;
    fault_case *const c = calloc(1, sizeof *c);
    c->points = cloud_make(CLOUD_UNIFORM, 1, N, 3, false);
    c->queries = cloud_make(CLOUD_UNIFORM, 2, M, 3, false);
    const int64_t empty = grv_memory_get().bytes;
    for (int which = 0; which < 5; which++) {
        int64_t n_failed = 0;
        for (;; n_failed++) {
            const int64_t before = which == 0 ? empty : grv_memory_get().bytes;
            grvi_alloc_fail_after(n_failed);
            const grv_status status = run(c, which);
            grvi_alloc_fail_after(-1);
            if (status == GRV_OK) break;
            assert_int_equal(status, GRV_E_NOMEM);
            assert_true(grv_memory_get().bytes == before);
            assert_true((c->neighbours == NULL) == (which == 0));
        }
        assert_true(n_failed >= 2);
    }
    grv_neighbours_destroy(&c->neighbours);
    assert_true(grv_memory_get().bytes == empty);
    free(c->points);
    free(c->queries);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
