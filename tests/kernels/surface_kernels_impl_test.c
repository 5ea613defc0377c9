/* Distances to surfaces: all instruction sets find the same triangle and the same bits as the reference tried on every triangle; winding numbers by any
 * opening against the sum over all triangles. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "geom/surface_tree.h"
#include "grove/core.h"
#include "surface_oracle.h"

/* Into the unit ball, as trees want them. */
static void shrink(test_surface *s, double factor)
{
    for (int64_t i = 0; i < 3 * s->n_vertices; i++) s->vertices[i] *= factor;
}

/* Every triangle in a tree of its own: no box hides it. */
static grvi_surface_hit by_force(const test_surface *s, const double x[3])
{
    grvi_surface_hit best = {.distance2 = 1e9, .triangle = -1};
    for (int64_t t = 0; t < s->n_triangles; t++) {
        grvi_surface_block block = {.count = 1};
        grvi_surface_node node = {0};
        grvi_surface_block_set(&block, 0, s->vertices, &s->triangles[3 * t], (int32_t)t);
        for (int i = 0; i < GRVI_SURFACE_WIDTH; i++)
            node.child[i] = i == 0 ? ~0 : GRVI_SURFACE_EMPTY;
        for (int k = 0; k < 3; k++) {
            node.lo[k][0] = -INFINITY;
            node.hi[k][0] = INFINITY;
        }
        const grvi_surface_tree tree = {
            .n_nodes = 1, .n_blocks = 1, .nodes = &node, .blocks = &block};
        grvi_surface_hit hit = {.distance2 = 1e9, .triangle = -1};
        grvi_surface_kernels_ref()->closest(&tree, x, &hit);
        if (hit.distance2 < best.distance2) best = hit;
    }
    return best;
}

static void test_closest(void **state)
{
    (void)state;
    for (int c = 0; c < 4; c++) {
        test_surface s = c == 3
                             ? surface_torus(24, 20, 2, 0.5)
                             : surface_soup((uint64_t)c + 1, c == 0 ? 5 : 300, c == 1 ? 1 : 0.05);
        shrink(&s, 0.4);
        grvi_surface_tree tree;
        assert_int_equal(grvi_surface_tree_build(s.vertices, s.triangles, s.n_triangles, 2, &tree),
                         GRV_OK);
        const int64_t n = 40;
        for (double reach = 1; reach < 200; reach *= 10) {
            double *const points = surface_points(&s, 4, n, reach);
            for (int64_t i = 0; i < n; i++) {
                const grvi_surface_hit expected = by_force(&s, &points[3 * i]);
                for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
                    const grvi_surface_kernels *const kernels =
                        grvi_surface_kernels_for((grvi_isa)isa);
                    if (kernels == NULL) continue;
                    grvi_surface_hit hit = {.distance2 = 1e6, .triangle = -1};
                    kernels->closest(&tree, &points[3 * i], &hit);
                    assert_true(hit.distance2 == expected.distance2);
                    assert_int_equal(hit.triangle, expected.triangle);
                    assert_int_equal(tree.blocks[hit.block].triangle[hit.place], hit.triangle);
                    /* a first bound that is just met, and one that is just missed */
                    hit = (grvi_surface_hit){.distance2 = expected.distance2, .triangle = -1};
                    kernels->closest(&tree, &points[3 * i], &hit);
                    assert_int_equal(hit.triangle, expected.triangle);
                    hit = (grvi_surface_hit){.distance2 = nextafter(expected.distance2, 0),
                                             .triangle = -1};
                    kernels->closest(&tree, &points[3 * i], &hit);
                    assert_int_equal(hit.triangle, -1);
                }
            }
            free(points);
        }
        grvi_surface_tree_fini(&tree);
        surface_free(&s);
    }
}

static void test_winding(void **state)
{
    (void)state;
    static const double openings[5] = {1.5, 2, 4, 8, INFINITY},
                        bounds[5] = {4e-2, 1e-2, 8e-4, 8e-5, 4e-5}; /* float: 1e-5 */
    for (int c = 0; c < 2; c++) {
        test_surface s = c == 0 ? surface_torus(60, 40, 2, 0.5) : surface_soup(1, 3000, 0.1);
        shrink(&s, 0.4);
        grvi_surface_tree tree;
        assert_int_equal(grvi_surface_tree_build(s.vertices, s.triangles, s.n_triangles, 1, &tree),
                         GRV_OK);
        assert_int_equal(grvi_surface_tree_add_moments(&tree, 2), GRV_OK);
        double *const points = surface_points(&s, 4, 600, 1.5);
        double expected[600];
        for (int i = 0; i < 600; i++) /* too near: float corners */
            expected[i] = oracle_distance(&s, &points[3 * i]) < 1e-4
                              ? (double)NAN
                              : oracle_winding(&s, &points[3 * i]);
        for (int o = 0; o < 5; o++) {
            for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
                const grvi_surface_kernels *const kernels = grvi_surface_kernels_for((grvi_isa)isa);
                if (kernels == NULL) continue;
                double worst = 0;
                for (int i = 0; i < 600; i++) {
                    if (isnan(expected[i])) continue;
                    worst = fmax(worst, fabs(kernels->winding(&tree, &points[3 * i], openings[o]) -
                                             expected[i]));
                }
                print_message("surface %d, opening %g, %s: error %.2g\n", c, openings[o],
                              kernels->name, worst);
                assert_true(worst < bounds[o]);
                if (isa == GRVI_ISA_REF && isinf(openings[o])) assert_true(worst < 1e-12);
            }
        }
        free(points);
        grvi_surface_tree_fini(&tree);
        surface_free(&s);
    }
}

/* Boxes hold their triangles, every triangle is in one place, children stand behind their parents; the same tree on any number of threads. */
static void test_tree(void **state)
{
    (void)state;
    test_surface s = surface_soup(5, 30000, 0.05);
    shrink(&s, 0.4);
    grvi_surface_tree tree, other;
    assert_int_equal(grvi_surface_tree_build(s.vertices, s.triangles, s.n_triangles, 1, &tree),
                     GRV_OK);
    assert_int_equal(grvi_surface_tree_build(s.vertices, s.triangles, s.n_triangles, 3, &other),
                     GRV_OK);
    assert_int_equal(tree.n_nodes, other.n_nodes);
    assert_memory_equal(tree.nodes, other.nodes, (size_t)tree.n_nodes * sizeof *tree.nodes);
    int *const seen = calloc((size_t)s.n_triangles, sizeof *seen);
    for (int64_t n = 0; n < tree.n_nodes; n++) {
        for (int i = 0; i < GRVI_SURFACE_WIDTH; i++) {
            const int32_t child = tree.nodes[n].child[i];
            if (child == GRVI_SURFACE_EMPTY) continue;
            assert_true(child < 0 || child > n);
            if (child >= 0) continue;
            const grvi_surface_block *const block = &tree.blocks[~child];
            assert_in_range(block->count, 1, GRVI_SURFACE_WIDTH);
            for (int t = 0; t < block->count; t++) {
                seen[block->triangle[t]]++;
                for (int j = 0; j < 9; j++) {
                    const double *const x =
                        &s.vertices[3 *
                                    (int64_t)s.triangles[3 * (int64_t)block->triangle[t] + j / 3]];
                    double y = 0;
                    for (int k = 0; k < 3; k++) y += (double)tree.nodes[n].axis[j % 3][k][i] * x[k];
                    assert_true((double)tree.nodes[n].lo[j % 3][i] <= y &&
                                (double)tree.nodes[n].hi[j % 3][i] >= y);
                }
            }
        }
    }
    for (int64_t t = 0; t < s.n_triangles; t++) assert_int_equal(seen[t], 1);
    free(seen);
    grvi_surface_tree_fini(&tree);
    grvi_surface_tree_fini(&other);
    surface_free(&s);
}

/* Triangles at the same place, and sizes that halve forever: binning alone would not end. */
static void test_deep_trees(void **state)
{
    (void)state;
    for (int c = 0; c < 2; c++) {
        test_surface s = surface_alloc(3 * 5000, 5000);
        for (int64_t i = 0; i < 15000; i++) {
            const double size = c == 0 ? 0.5 : ldexp(0.5, -(int)(i / 3 % 140));
            s.vertices[3 * i] = size * (i % 3 == 0), s.vertices[3 * i + 1] = size * (i % 3 == 1),
                           s.vertices[3 * i + 2] = size * (i % 3 == 2);
            s.triangles[i] = (int32_t)i;
        }
        grvi_surface_tree tree;
        assert_int_equal(grvi_surface_tree_build(s.vertices, s.triangles, s.n_triangles, 1, &tree),
                         GRV_OK);
        const double x[3] = {0.1, 0.2, 0.3};
        const grvi_surface_hit expected = by_force(&s, x);
        grvi_surface_hit hit = {.distance2 = 10, .triangle = -1};
        grvi_surface_kernels_for(grvi_isa_chosen())->closest(&tree, x, &hit);
        assert_true(hit.distance2 == expected.distance2 && hit.triangle == expected.triangle);
        grvi_surface_tree_fini(&tree);
        surface_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_closest),
                                       cmocka_unit_test(test_winding), cmocka_unit_test(test_tree),
                                       cmocka_unit_test(test_deep_trees)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
