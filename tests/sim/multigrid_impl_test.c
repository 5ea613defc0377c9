/* Multigrid: coarsening, coefficients, known solutions, convergence on awkward grids, stagnation, threads, out of memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/flow.h"
#include "sim/multigrid.h"
#include "sim/wavefront.h"

static const grvi_multigrid_options usual = {
    .is_double = true, .n_threads = 1, .half_sweeps = 4, .max_cycles = 32, .tolerance = 1e-6};

static int64_t at_cell(const grvi_multigrid *mg, int64_t i, int64_t j, int64_t k)
{
    const int64_t *const s = mg->level[0].grid.stride;
    return i * s[0] + j * s[1] + k;
}

/* Fills the faces with 1, or with 0 inside a ball. */
static void init(grvi_multigrid *mg, const int64_t n[3], const bool periodic[3],
                 const grvi_multigrid_options *options, double radius)
{
    assert_int_equal(grvi_multigrid_init(mg, n, periodic, grvi_isa_chosen(), options), GRV_OK);
    for (int d = 0; d < 3; d++)
        for (int64_t i = 0; i < n[0]; i++)
            for (int64_t j = 0; j < n[1]; j++)
                for (int64_t k = 0; k < n[2]; k++) {
                    double squares = 0;
                    const double x[3] = {(double)i, (double)j, (double)k};
                    for (int e = 0; e < 3; e++) {
                        const double distance =
                            n[e] == 1 ? 0 : x[e] + (d == e ? 0 : 0.5) - (double)n[e] / 2;
                        squares += distance * distance;
                    }
                    const double open = fmin(1, fmax(0, sqrt(squares) - radius + 0.5));
                    grvi_flow_store(mg->level[0].face[d], options->is_double, at_cell(mg, i, j, k),
                                    open);
                }
    grvi_multigrid_update(mg);
}

/* rhs = A x of a chosen x, so that x is the solution up to a constant. */
static void set_solution(grvi_multigrid *mg, double (*solution)(int64_t, int64_t, int64_t))
{
    grvi_flow_level *const level = &mg->level[0];
    const int64_t *const n = level->grid.n;
    const bool is_double = mg->options.is_double;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++) {
                const int64_t cell[3] = {i, j, k};
                double sum = 0;
                for (int d = 0; d < 3; d++)
                    for (int side = 0; side < 2; side++) {
                        int64_t other[3] = {i, j, k};
                        other[d] = side ? grvi_flow_above(&level->grid, d, cell[d])
                                        : grvi_flow_below(&level->grid, d, cell[d]);
                        const double face =
                            grvi_flow_load(level->face[d], is_double,
                                           at_cell(mg, i, j, k) + side * level->grid.stride[d]);
                        sum += face * (solution(other[0], other[1], other[2]) - solution(i, j, k));
                    }
                grvi_flow_store(level->rhs, is_double, at_cell(mg, i, j, k), sum);
            }
}

/* Squares of the error over the squares of the solution, both about their means over open cells. */
static double relative_error(const grvi_multigrid *mg,
                             double (*solution)(int64_t, int64_t, int64_t))
{
    const grvi_flow_level *const level = &mg->level[0];
    const int64_t *const n = level->grid.n;
    double sum[2] = {0}, squares[2] = {0}, cells = 0;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++) {
                if (!(grvi_flow_load(level->inverse_diagonal, mg->options.is_double,
                                     at_cell(mg, i, j, k)) > 0))
                    continue;
                const double exact = solution(i, j, k);
                const double value[2] = {
                    grvi_flow_load(level->x, mg->options.is_double, at_cell(mg, i, j, k)) - exact,
                    exact};
                for (int m = 0; m < 2; m++) sum[m] += value[m], squares[m] += value[m] * value[m];
                cells += 1;
            }
    return (squares[0] - sum[0] * sum[0] / cells) / (squares[1] - sum[1] * sum[1] / cells);
}

static double slope(int64_t i, int64_t j, int64_t k)
{
    (void)j, (void)k;
    return (double)i;
}

static double waves(int64_t i, int64_t j, int64_t k)
{
    return sin(0.3 * (double)i) + cos(0.7 * (double)j + 0.2 * (double)k) +
           grv_random_normal(1, 2, (uint64_t)(i * 10007 + j * 101 + k));
}

/* ---- structure ---- */

static void test_coarsening(void **state)
{
    (void)state;
    int64_t c[3];
    const int64_t one[3] = {1, 1, 1};
    assert_true(grvi_multigrid_coarsen((int64_t[]){16, 16, 4}, one, c) && c[0] == 8 && c[1] == 8 &&
                c[2] == 2);
    assert_true(grvi_multigrid_coarsen((int64_t[]){16, 16, 2}, one, c) && c[0] == 8 && c[1] == 8 &&
                c[2] == 1);
    assert_true(grvi_multigrid_coarsen((int64_t[]){16, 15, 4}, one, c) && c[0] == 8 && c[1] == 15 &&
                c[2] == 2);
    assert_true(grvi_multigrid_coarsen((int64_t[]){8, 1, 1}, (int64_t[]){4, 1, 1}, c) &&
                c[0] == 4 && c[1] == 1);
    /* cells that are twice as long already wait */
    assert_true(grvi_multigrid_coarsen((int64_t[]){8, 5, 6}, (int64_t[]){2, 1, 1}, c) &&
                c[0] == 8 && c[1] == 5 && c[2] == 3);
    assert_false(grvi_multigrid_coarsen((int64_t[]){8, 5, 3}, (int64_t[]){2, 1, 1}, c));
    assert_false(grvi_multigrid_coarsen((int64_t[]){15, 5, 1}, one, c));
}

static void test_diagonal(void **state)
{
    (void)state;
    grvi_multigrid mg;
    init(&mg, (int64_t[]){3, 3, 1}, (bool[]){false, false, true}, &usual, 0);
    for (int64_t i = 0; i < 3; i++)
        for (int64_t j = 0; j < 3; j++) {
            const double expected = 4 - (i != 1) - (j != 1);
            assert_true(
                fabs(1 / grvi_flow_load(mg.level[0].inverse_diagonal, true, at_cell(&mg, i, j, 0)) -
                     expected) < 1e-12);
        }
    assert_true(mg.n_open_cells == 9 && mg.n_levels == 1);
    grvi_multigrid_fini(&mg);
    init(&mg, (int64_t[]){16, 16, 16}, (bool[]){false, true, false}, &usual, 4);
    assert_true(mg.n_levels == 5);
    /* coefficients of open coarse faces: area over distance */
    const grvi_flow_level *const coarse = &mg.level[1];
    assert_true(fabs(grvi_flow_load(coarse->face[0], true, coarse->grid.stride[0]) - 2) < 1e-12);
    assert_true(fabs(coarse->uniform[0] - 2) < 1e-12 && fabs(mg.level[2].uniform[2] - 4) < 1e-12);
    assert_true(grvi_flow_load(mg.level[0].inverse_diagonal, true, at_cell(&mg, 8, 8, 8)) <= 0);
    assert_true(mg.n_open_cells < 16 * 16 * 16);
    grvi_multigrid_fini(&mg);
}

static void test_bytes(void **state)
{
    (void)state;
    const int64_t n[3] = {20, 12, 33};
    const bool periodic[3] = {false, true, false};
    grvi_multigrid mg;
    const int64_t before = grv_memory_get().bytes;
    assert_int_equal(grvi_multigrid_init(&mg, n, periodic, grvi_isa_chosen(), &usual), GRV_OK);
    assert_true(grv_memory_get().bytes - before == grvi_multigrid_bytes(n, periodic, &usual));
    grvi_multigrid_fini(&mg);
    assert_true(grv_memory_get().bytes == before);

    grv_flow_params params = grv_flow_params_default();
    grv_flow *flow = NULL;
    params.n_threads = 2;
    assert_int_equal(grv_flow_create(&params, &flow), GRV_OK);
    const int64_t held = grv_memory_get().bytes - before, told = grv_flow_bytes(&params);
    assert_true(held >= told && held <= told + 64); /* a body's own lists come on top */
    grv_flow_destroy(&flow);
    assert_true(grv_memory_get().bytes == before);
}

/* ---- solutions ---- */

/* The problem of the specification: exact x = i. */
static void test_slope(void **state)
{
    (void)state;
    const int64_t sizes[2][3] = {{64, 1, 64}, {16, 16, 16}};
    for (int m = 0; m < 2; m++) {
        grvi_multigrid_options options = usual;
        options.is_double = false;
        options.tolerance = 1e-4;
        grvi_multigrid mg;
        grvi_multigrid_result result;
        init(&mg, sizes[m], (bool[]){false, sizes[m][1] == 1, false}, &options, 0);
        set_solution(&mg, slope);
        assert_int_equal(grvi_multigrid_solve(&mg, NULL, 0, 0, &result), GRV_OK);
        assert_true(relative_error(&mg, slope) < 1e-6);
        assert_true(result.cycles <= 7);
        grvi_multigrid_fini(&mg);
    }
}

static void check_convergence(const int64_t n[3], const bool periodic[3], double radius,
                              int most_cycles)
{
    grvi_multigrid mg;
    grvi_multigrid_result result;
    init(&mg, n, periodic, &usual, radius);
    set_solution(&mg, waves);
    assert_int_equal(grvi_multigrid_solve(&mg, NULL, 0, 0, &result), GRV_OK);
    assert_true(!result.stagnated && result.residual_norm <= usual.tolerance * result.rhs_norm);
    if (result.cycles > most_cycles)
        print_message("%lld x %lld x %lld: %d cycles\n", (long long)n[0], (long long)n[1],
                      (long long)n[2], result.cycles);
    assert_true(result.cycles <= most_cycles);
    assert_true(relative_error(&mg, waves) <
                1e-5); /* both sides of a narrow gap differ by a constant that is seen last */
    grvi_multigrid_fini(&mg);
}

static void test_convergence(void **state)
{
    (void)state;
    const bool walls[3] = {false, false, false}, ring[3] = {true, true, true},
               mixed[3] = {true, false, false};
    check_convergence((int64_t[]){32, 32, 32}, walls, 0, 11);
    check_convergence((int64_t[]){32, 32, 32}, ring, 0, 11);
    check_convergence((int64_t[]){32, 32, 32}, walls, 7, 12);
    check_convergence((int64_t[]){64, 1, 64}, (bool[]){false, true, false}, 9, 11);
    check_convergence((int64_t[]){128, 8, 8}, walls, 3,
                      22); /* three quarters of the width blocked */
    check_convergence((int64_t[]){8, 8, 100}, mixed, 0, 12);
    check_convergence((int64_t[]){13, 1, 1}, (bool[]){false, true, true}, 0, 3);
    check_convergence((int64_t[]){25, 17, 11}, walls, 4, 4);
    check_convergence((int64_t[]){15, 9, 21}, ring, 0, 4);
    check_convergence((int64_t[]){40, 24, 10}, mixed, 3, 12);
}

/* A right side with a mean has no solution; the rest of it is solved for. */
static void test_mean_is_taken_out(void **state)
{
    (void)state;
    grvi_multigrid mg;
    grvi_multigrid_result result;
    init(&mg, (int64_t[]){16, 12, 8}, (bool[]){false, false, false}, &usual, 2);
    set_solution(&mg, waves);
    for (int64_t i = 0; i < 16; i++)
        for (int64_t j = 0; j < 12; j++)
            for (int64_t k = 0; k < 8; k++) {
                const int64_t at = at_cell(&mg, i, j, k);
                const double open =
                    grvi_flow_load(mg.level[0].inverse_diagonal, true, at) > 0 ? 1 : 0;
                grvi_flow_store(mg.level[0].rhs, true, at,
                                grvi_flow_load(mg.level[0].rhs, true, at) + 0.5 * open);
            }
    assert_int_equal(grvi_multigrid_solve(&mg, NULL, 0, 0, &result), GRV_OK);
    assert_true(result.residual_norm <= usual.tolerance * result.rhs_norm);
    assert_true(relative_error(&mg, waves) < 1e-6);
    grvi_multigrid_fini(&mg);
}

static void test_fixed_cycles_and_guess(void **state)
{
    (void)state;
    grvi_multigrid_options options = usual;
    options.fixed_cycles = 3;
    grvi_multigrid mg;
    grvi_multigrid_result first, second;
    init(&mg, (int64_t[]){16, 16, 16}, (bool[]){true, true, true}, &options, 0);
    set_solution(&mg, waves);
    assert_int_equal(grvi_multigrid_solve(&mg, NULL, 0, 0, &first), GRV_OK);
    assert_int_equal(first.cycles, 3);
    assert_int_equal(grvi_multigrid_solve(&mg, NULL, 1, 0, &second),
                     GRV_OK); /* goes on where the first ended */
    assert_true(second.residual_norm < 0.1 * first.residual_norm);
    /* a guess that is half as large, and told so */
    for (int64_t i = 0; i < mg.level[0].grid.n[0]; i++)
        for (int64_t j = 0; j < 16; j++)
            for (int64_t k = -1; k < 17; k++) {
                const int64_t at = at_cell(&mg, i, j, k);
                grvi_flow_store(mg.level[0].x, true, at,
                                grvi_flow_load(mg.level[0].x, true, at) / 2);
            }
    assert_int_equal(grvi_multigrid_solve(&mg, NULL, 2, 0, &first), GRV_OK);
    assert_true(first.residual_norm < 0.1 * second.residual_norm);
    grvi_multigrid_fini(&mg);
}

static void test_not_a_number(void **state)
{
    (void)state;
    grvi_multigrid mg;
    grvi_multigrid_result result;
    init(&mg, (int64_t[]){8, 8, 8}, (bool[]){false, false, false}, &usual, 0);
    grvi_flow_store(mg.level[0].rhs, true, at_cell(&mg, 3, 3, 3), NAN);
    assert_int_equal(grvi_multigrid_solve(&mg, NULL, 0, 0, &result), GRV_E_NUMERIC);
    grvi_multigrid_fini(&mg);
}

/* Every allocation of a flow fails once; nothing is lost. */
static void test_out_of_memory(void **state)
{
    (void)state;
    grv_flow_sphere sphere = {.centre = {8, 8, 8}, .radius = 3};
    grv_flow_params params = grv_flow_params_default();
    for (int d = 0; d < 3; d++) params.n[d] = 16;
    params.distance = grv_flow_sphere_distance;
    params.body = &sphere;
    const int64_t before = grv_memory_get().bytes;
    int failures = 0;
    for (grv_status status = GRV_E_NOMEM; status != GRV_OK; failures++) {
        grv_flow *flow = NULL;
        grvi_alloc_fail_after(failures);
        status = grv_flow_create(&params, &flow);
        grvi_alloc_fail_after(-1);
        assert_true(status == GRV_OK || status == GRV_E_NOMEM);
        assert_true((flow != NULL) == (status == GRV_OK));
        grv_flow_destroy(&flow);
        assert_true(grv_memory_get().bytes == before);
    }
    assert_true(failures > 8);
}

/* ---- wavefront ---- */

enum { MOST_PLANES = 64 };
typedef struct progress {
    int64_t n_planes;
    bool is_ring, is_ok;
    int done[MOST_PLANES]; /* stages that a plane has been through */
} progress;

static void check_stage(void *argument, int stage, int64_t plane)
{
    progress *const p = argument;
    if (p->done[plane] != stage) p->is_ok = false;
    for (int side = -1; side <= 1; side += 2) {
        const int64_t other =
            p->is_ring ? (plane + side + p->n_planes) % p->n_planes : plane + side;
        if (other < 0 || other >= p->n_planes) continue;
        if (p->done[other] != stage && p->done[other] != stage + 1 && p->n_planes > 1)
            p->is_ok = false;
    }
    p->done[plane] = stage + 1;
}

/* With one thread at work, whatever n_threads: chunks run one after the other in every order that matters. */
static void test_wavefront_order(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= MOST_PLANES; n++)
        for (int is_ring = 0; is_ring < 2; is_ring++)
            for (int stages = 1; stages <= 7; stages++) {
                progress p = {.n_planes = n, .is_ring = is_ring != 0, .is_ok = true};
                grvi_wavefront_run(1, n, is_ring != 0, stages, check_stage, &p);
                assert_true(p.is_ok);
                for (int64_t i = 0; i < n; i++) assert_int_equal(p.done[i], stages);
            }
}

static void count_stage(void *argument, int stage, int64_t plane)
{
    int *const done = argument;
    if (done[plane] == stage) done[plane] = stage + 1;
}

static void test_wavefront_threads_do_everything_once(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= MOST_PLANES; n++)
        for (int is_ring = 0; is_ring < 2; is_ring++)
            for (int threads = 2; threads <= 4; threads++) {
                int done[MOST_PLANES] = {0};
                grvi_wavefront_run(threads, n, is_ring != 0, 6, count_stage, done);
                for (int64_t i = 0; i < n; i++) assert_int_equal(done[i], 6);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_coarsening),
                                       cmocka_unit_test(test_diagonal),
                                       cmocka_unit_test(test_bytes),
                                       cmocka_unit_test(test_slope),
                                       cmocka_unit_test(test_convergence),
                                       cmocka_unit_test(test_mean_is_taken_out),
                                       cmocka_unit_test(test_fixed_cycles_and_guess),
                                       cmocka_unit_test(test_not_a_number),
                                       cmocka_unit_test(test_out_of_memory),
                                       cmocka_unit_test(test_wavefront_order),
                                       cmocka_unit_test(test_wavefront_threads_do_everything_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
