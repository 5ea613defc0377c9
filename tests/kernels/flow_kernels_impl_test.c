/* Flow kernels against the equations written cell by cell in double, and every instruction set against the plain one, bit by bit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grove/core.h"
#include "kernels/flow_kernels.h"

static double epsilon_of(bool is_double)
{
    return is_double ? 2.3e-16 : 1.2e-7;
}

/* A field of random numbers, ghosts included. */
static void *random_field(const grvi_flow_grid *grid, bool is_double, uint64_t stream, double low,
                          double high)
{
    char *const block =
        calloc((size_t)grid->n_elements, is_double ? sizeof(double) : sizeof(float));
    assert_non_null(block);
    for (int64_t i = 0; i < grid->n_elements; i++)
        grvi_flow_store(block, is_double, i,
                        low + (high - low) * grv_random_uniform(5, stream, (uint64_t)i));
    return grvi_flow_offset(block, is_double, grid->origin);
}

static void free_field(const grvi_flow_grid *grid, bool is_double, void *field)
{
    free(grvi_flow_offset(field, is_double, -grid->origin));
}

static int64_t at_cell(const grvi_flow_grid *g, int64_t i, int64_t j, int64_t k)
{
    return i * g->stride[0] + j * g->stride[1] + k;
}

/* Compares the cells of the domain: with the plain kernels bit by bit. */
static void assert_same_cells(const grvi_flow_grid *g, bool is_double, const void *a, const void *b)
{
    for (int64_t i = 0; i < g->n[0]; i++)
        for (int64_t j = 0; j < g->n[1]; j++) {
            const size_t bytes = (size_t)g->n[2] * (is_double ? sizeof(double) : sizeof(float));
            const int64_t row =
                at_cell(g, i, j, 0) * (int64_t)(is_double ? sizeof(double) : sizeof(float));
            assert_memory_equal((const char *)a + row, (const char *)b + row, bytes);
        }
}

/* ---- convection ---- */

static double median(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

static double face_value(grvi_flow_scheme scheme, double u, double c, double d)
{
    if (scheme == GRVI_FLOW_CENTRAL) return (c + d) / 2;
    if (scheme == GRVI_FLOW_VAN_LEER)
        return (c - u) * (d - c) > 0 ? c + (d - c) * (c - u) / (d - u) : c;
    return median((5 * c + 2 * d - u) / 6, c, median(10 * c - 9 * u, c, d));
}

/* Flux of component c through the lower d-face of its control volume at `at` (spec 7.4). */
static double flux(const grvi_flow_advection *a, bool is_double, int c, int d, int64_t at)
{
    const int64_t s = a->grid.stride[d];
    const double speed = (grvi_flow_load(a->velocity[d], is_double, at) +
                          grvi_flow_load(a->velocity[d], is_double, at - a->grid.stride[c])) /
                         2;
    double q[4];
    for (int m = 0; m < 4; m++) q[m] = grvi_flow_load(a->velocity[c], is_double, at + (m - 2) * s);
    const double value = speed > 0 ? face_value(a->scheme, q[0], q[1], q[2])
                                   : face_value(a->scheme, q[3], q[2], q[1]);
    return speed * value - a->viscosity * (q[2] - q[1]);
}

static void check_advection(const int64_t n[3], bool is_double, grvi_flow_scheme scheme)
{
    grvi_flow_advection a = {.scheme = scheme,
                             .dt = 0.3,
                             .viscosity = 0.07,
                             .acceleration = {0.1, 0.2, -0.3},
                             .weight = 0.5};
    assert_true(grvi_flow_grid_init(&a.grid, n, (bool[]){true, true, true}, is_double));
    void *velocity[3], *base[3], *reference[3] = {NULL};
    for (int c = 0; c < 3; c++) {
        a.velocity[c] = velocity[c] = random_field(&a.grid, is_double, (uint64_t)c, -1, 1);
        base[c] = random_field(&a.grid, is_double, (uint64_t)c + 3, -1, 1);
        a.base[c] = base[c];
    }
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        if (!grvi_isa_usable((grvi_isa)isa)) continue;
        const grvi_flow_kernels *const kernels = grvi_flow_kernels_for((grvi_isa)isa, is_double);
        void *const scratch = calloc((size_t)kernels->advect_scratch(&a.grid), sizeof(double));
        assert_non_null(scratch);
        void *output[3];
        for (int c = 0; c < 3; c++)
            a.output[c] = output[c] = random_field(&a.grid, is_double, 99, -1, 1);
        const int64_t cut = n[0] / 2; /* two pieces, as two threads would */
        kernels->advect(&a, 0, cut, scratch);
        kernels->advect(&a, cut, n[0], scratch);
        for (int c = 0; c < 3 && isa == 0; c++)
            for (int64_t i = 0; i < n[0]; i++)
                for (int64_t j = 0; j < n[1]; j++)
                    for (int64_t k = 0; k < n[2]; k++) {
                        const int64_t at = at_cell(&a.grid, i, j, k);
                        double rate = a.acceleration[c];
                        for (int d = 0; d < 3; d++)
                            rate += flux(&a, is_double, c, d, at) -
                                    flux(&a, is_double, c, d, at + a.grid.stride[d]);
                        const double expected =
                            0.5 * grvi_flow_load(velocity[c], is_double, at) +
                            0.5 * (grvi_flow_load(base[c], is_double, at) + a.dt * rate);
                        /* at most 19 in the limiter, six fluxes, times dt */
                        assert_true(fabs(grvi_flow_load(output[c], is_double, at) - expected) <
                                    60 * epsilon_of(is_double));
                    }
        for (int c = 0; c < 3; c++) {
            if (isa == 0)
                reference[c] = output[c];
            else {
                assert_same_cells(&a.grid, is_double, output[c], reference[c]);
                free_field(&a.grid, is_double, output[c]);
            }
        }
        free(scratch);
    }
    for (int c = 0; c < 3; c++) {
        free_field(&a.grid, is_double, velocity[c]);
        free_field(&a.grid, is_double, base[c]);
        free_field(&a.grid, is_double, reference[c]);
    }
}

static void test_advection(void **state)
{
    (void)state;
    const int64_t lengths[] = {1, 2, 7, 8, 15, 17, 33, 67};
    for (size_t m = 0; m < sizeof lengths / sizeof *lengths; m++)
        for (int is_double = 0; is_double < 2; is_double++)
            for (int scheme = 0; scheme < 3; scheme++)
                check_advection((int64_t[]){3, 4, lengths[m]}, is_double != 0,
                                (grvi_flow_scheme)scheme);
}

/* ---- pressure ---- */

typedef struct pressure_case {
    grvi_flow_level level;
    bool is_double;
    grvi_flow_range *open;
    void *velocity[3];
} pressure_case;

/* Random coefficients on a third of the rows; the others have an open middle. */
static void init_case(pressure_case *p, const int64_t n[3], const bool periodic[3], bool is_double)
{
    grvi_flow_level *const level = &p->level;
    *p = (pressure_case){.is_double = is_double, .level.uniform = {1, 2, 0.5}};
    assert_true(grvi_flow_grid_init(&level->grid, n, periodic, is_double));
    const grvi_flow_grid *const g = &level->grid;
    level->x = random_field(g, is_double, 10, -1, 1);
    level->rhs = random_field(g, is_double, 11, -1, 1);
    level->residual = random_field(g, is_double, 12, -1, 1);
    level->inverse_diagonal = random_field(g, is_double, 13, 0, 0);
    for (int d = 0; d < 3; d++) {
        level->face[d] = random_field(g, is_double, 14 + (uint64_t)d, 0, 1);
        p->velocity[d] = random_field(g, is_double, 20 + (uint64_t)d, -1, 1);
    }
    p->open = calloc((size_t)(n[0] * n[1]), sizeof *p->open);
    assert_non_null(p->open);
    level->open = p->open;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++) {
            const bool has_middle = (i + j) % 3 != 0 && n[2] > 2;
            grvi_flow_range *const open = &p->open[i * n[1] + j];
            if (has_middle) *open = (grvi_flow_range){1, (int32_t)n[2] - 1};
            for (int64_t k = open->begin; k < open->end; k++)
                for (int d = 0; d < 3; d++) {
                    grvi_flow_store(level->face[d], is_double, at_cell(g, i, j, k),
                                    level->uniform[d]);
                    grvi_flow_store(level->face[d], is_double, at_cell(g, i, j, k) + g->stride[d],
                                    level->uniform[d]);
                }
        }
    for (int64_t i = 0; i < n[0]; i++) /* neighbours of open rows may have been changed after */
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++) {
                double sum = 0;
                const int64_t at = at_cell(g, i, j, k);
                for (int d = 0; d < 3; d++)
                    sum += grvi_flow_load(level->face[d], is_double, at) +
                           grvi_flow_load(level->face[d], is_double, at + g->stride[d]);
                const bool is_open =
                    k >= p->open[i * n[1] + j].begin && k < p->open[i * n[1] + j].end;
                const bool is_closed = !is_open && (i + 2 * j + 3 * k) % 7 == 0;
                grvi_flow_store(level->inverse_diagonal, is_double, at, is_closed ? 0 : 1 / sum);
            }
}

static void fini_case(pressure_case *p)
{
    const grvi_flow_grid *const g = &p->level.grid;
    free_field(g, p->is_double, p->level.x);
    free_field(g, p->is_double, p->level.rhs);
    free_field(g, p->is_double, p->level.residual);
    free_field(g, p->is_double, p->level.inverse_diagonal);
    for (int d = 0; d < 3; d++) {
        free_field(g, p->is_double, p->level.face[d]);
        free_field(g, p->is_double, p->velocity[d]);
    }
    free(p->open);
}

/* x across the six faces of a cell; the end of a row is what its ghosts say. */
static double neighbour(const pressure_case *p, int d, int64_t i, int64_t j, int64_t k, bool above)
{
    const grvi_flow_grid *const g = &p->level.grid;
    int64_t at[3] = {i, j, k};
    if (d == 2)
        at[2] += above ? 1 : -1;
    else
        at[d] = above ? grvi_flow_above(g, d, at[d]) : grvi_flow_below(g, d, at[d]);
    return grvi_flow_load(p->level.x, p->is_double, at_cell(g, at[0], at[1], at[2]));
}

static double divergence(const pressure_case *p, int64_t at)
{
    double sum = 0;
    for (int d = 0; d < 3; d++)
        sum += grvi_flow_load(p->velocity[d], p->is_double, at + p->level.grid.stride[d]) -
               grvi_flow_load(p->velocity[d], p->is_double, at);
    return sum;
}

/* sum of L (x_neighbour - weight x) */
static double laplacian(const pressure_case *p, int64_t i, int64_t j, int64_t k, double weight)
{
    const int64_t at = at_cell(&p->level.grid, i, j, k);
    const double x = weight * grvi_flow_load(p->level.x, p->is_double, at);
    double sum = 0;
    for (int d = 0; d < 3; d++) {
        sum += grvi_flow_load(p->level.face[d], p->is_double, at) *
               (neighbour(p, d, i, j, k, false) - x);
        sum += grvi_flow_load(p->level.face[d], p->is_double, at + p->level.grid.stride[d]) *
               (neighbour(p, d, i, j, k, true) - x);
    }
    return sum;
}

static void check_residual(const int64_t n[3], const bool periodic[3], bool is_double)
{
    pressure_case p, first;
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        if (!grvi_isa_usable((grvi_isa)isa)) continue;
        const grvi_flow_kernels *const kernels = grvi_flow_kernels_for((grvi_isa)isa, is_double);
        init_case(&p, n, periodic, is_double);
        double rhs_squares = 0, rhs_sum = 0, squares = 0, far = 0;
        grvi_flow_sums total = {0};
        for (int64_t i = 0; i < n[0]; i++) {
            grvi_flow_sums sums = {0};
            kernels->residual(&p.level, (const void *const *)p.velocity, 0.7, i, &sums);
            total.rhs_squares += sums.rhs_squares;
            total.rhs_sum += sums.rhs_sum;
            total.residual_squares += sums.residual_squares;
        }
        for (int64_t i = 0; i < n[0]; i++)
            for (int64_t j = 0; j < n[1]; j++)
                for (int64_t k = 0; k < n[2]; k++) {
                    const int64_t at = at_cell(&p.level.grid, i, j, k);
                    const bool is_closed =
                        !(grvi_flow_load(p.level.inverse_diagonal, is_double, at) > 0);
                    const double rhs = is_closed ? 0 : divergence(&p, at);
                    const double r = is_closed ? 0 : rhs - 0.7 * laplacian(&p, i, j, k, 1);
                    far = fmax(far, fabs(grvi_flow_load(p.level.rhs, is_double, at) - rhs));
                    far = fmax(far, fabs(grvi_flow_load(p.level.residual, is_double, at) - r));
                    rhs_squares += rhs * rhs, rhs_sum += rhs, squares += r * r;
                }
        const double cells = (double)(n[0] * n[1] * n[2]);
        assert_true(far < 40 * epsilon_of(is_double));
        assert_true(fabs(total.rhs_squares - rhs_squares) < 100 * epsilon_of(is_double) * cells);
        assert_true(fabs(total.rhs_sum - rhs_sum) < 40 * epsilon_of(is_double) * cells);
        assert_true(fabs(total.residual_squares - squares) < 400 * epsilon_of(is_double) * cells);
        if (isa == 0)
            first = p;
        else {
            assert_same_cells(&p.level.grid, is_double, p.level.residual, first.level.residual);
            assert_same_cells(&p.level.grid, is_double, p.level.rhs, first.level.rhs);
            fini_case(&p);
        }
    }
    fini_case(&first);
}

static void check_half_sweep(const int64_t n[3], const bool periodic[3], bool is_double, int colour)
{
    pressure_case before, p, first;
    init_case(&before, n, periodic, is_double);
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        if (!grvi_isa_usable((grvi_isa)isa)) continue;
        const grvi_flow_kernels *const kernels = grvi_flow_kernels_for((grvi_isa)isa, is_double);
        init_case(&p, n, periodic, is_double);
        for (int64_t i = 0; i < n[0]; i++) kernels->half_sweep(&p.level, colour, i);
        for (int64_t i = 0; i < n[0]; i++)
            for (int64_t j = 0; j < n[1]; j++) {
                for (int64_t k = 0; k < n[2]; k++) {
                    const int64_t at = at_cell(&p.level.grid, i, j, k);
                    const double sum = laplacian(&before, i, j, k, 0) -
                                       grvi_flow_load(before.level.rhs, is_double, at);
                    const double old = grvi_flow_load(before.level.x, is_double, at);
                    const double relaxed =
                        sum * grvi_flow_load(before.level.inverse_diagonal, is_double, at);
                    const double expected = (i + j + k) % 2 == colour ? relaxed : old;
                    const double scale = 1 + fabs(relaxed);
                    assert_true(fabs(grvi_flow_load(p.level.x, is_double, at) - expected) <
                                40 * epsilon_of(is_double) * scale);
                }
                const int64_t row = at_cell(&p.level.grid, i, j, 0);
                const double low = grvi_flow_load(p.level.x, is_double, row),
                             high = grvi_flow_load(p.level.x, is_double, row + n[2] - 1);
                assert_true(fabs(grvi_flow_load(p.level.x, is_double, row - 1) -
                                 (periodic[2] ? high : low)) <= 0);
                assert_true(fabs(grvi_flow_load(p.level.x, is_double, row + n[2]) -
                                 (periodic[2] ? low : high)) <= 0);
            }
        if (isa == 0)
            first = p;
        else {
            assert_same_cells(&p.level.grid, is_double, p.level.x, first.level.x);
            fini_case(&p);
        }
    }
    fini_case(&first);
    fini_case(&before);
}

static void test_residual(void **state)
{
    (void)state;
    const int64_t lengths[] = {1, 2, 5, 9, 16, 31, 67, 300}; /* 300: more than one block */
    for (size_t m = 0; m < sizeof lengths / sizeof *lengths; m++)
        for (int is_double = 0; is_double < 2; is_double++) {
            check_residual((int64_t[]){3, 4, lengths[m]}, (bool[]){false, true, false},
                           is_double != 0);
            check_residual((int64_t[]){4, 3, lengths[m]}, (bool[]){true, false, true},
                           is_double != 0);
        }
}

static void test_half_sweep(void **state)
{
    (void)state;
    /* even sizes where a direction is periodic: there the order of cells does not matter, so that one oracle holds */
    const int64_t lengths[] = {2, 4, 8, 10, 16, 32, 66, 300};
    for (size_t m = 0; m < sizeof lengths / sizeof *lengths; m++)
        for (int is_double = 0; is_double < 2; is_double++)
            for (int colour = 0; colour < 2; colour++) {
                check_half_sweep((int64_t[]){3, 4, lengths[m] - 1}, (bool[]){false, true, false},
                                 is_double != 0, colour);
                check_half_sweep((int64_t[]){4, 3, lengths[m]}, (bool[]){true, false, true},
                                 is_double != 0, colour);
            }
}

/* ---- grid transfer ---- */

/* Interpolation is exact for linear functions inside, and never reaches across closed faces; restriction keeps sums. */
static void check_transfer(const int64_t n[3], const int64_t coarse_n[3], bool is_double)
{
    const bool walls[3] = {false, false, false};
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        if (!grvi_isa_usable((grvi_isa)isa)) continue;
        const grvi_flow_kernels *const kernels = grvi_flow_kernels_for((grvi_isa)isa, is_double);
        pressure_case fine, coarse;
        init_case(&fine, n, walls, is_double);
        init_case(&coarse, coarse_n, walls, is_double);
        const grvi_flow_grid *const f = &fine.level.grid, *const c = &coarse.level.grid;
        double ratio[3], fine_sum = 0, coarse_sum = 0, slope[3] = {1, -2, 0.5};
        for (int d = 0; d < 3; d++) ratio[d] = (double)(n[d] / coarse_n[d]);
        for (int64_t i = 0; i < coarse_n[0]; i++)
            kernels->restrict_sum(&fine.level, fine.level.residual, &coarse.level, i);
        for (int64_t i = 0; i < n[0]; i++)
            for (int64_t j = 0; j < n[1]; j++)
                for (int64_t k = 0; k < n[2]; k++)
                    fine_sum += grvi_flow_load(fine.level.residual, is_double, at_cell(f, i, j, k));
        for (int64_t i = 0; i < coarse_n[0]; i++)
            for (int64_t j = 0; j < coarse_n[1]; j++)
                for (int64_t k = -1; k <= coarse_n[2]; k++) {
                    const int64_t at = at_cell(c, i, j, k);
                    if (k >= 0 && k < coarse_n[2])
                        coarse_sum += grvi_flow_load(coarse.level.rhs, is_double, at);
                    const double x[3] = {((double)i + 0.5) * ratio[0], ((double)j + 0.5) * ratio[1],
                                         ((double)k + 0.5) * ratio[2]};
                    grvi_flow_store(coarse.level.x, is_double, at,
                                    slope[0] * x[0] + slope[1] * x[1] + slope[2] * x[2]);
                    for (int d = 0; d < 3; d++)
                        grvi_flow_store(coarse.level.face[d], is_double, at,
                                        coarse.level.uniform[d]);
                }
        assert_true(fabs(fine_sum - coarse_sum) <
                    10 * epsilon_of(is_double) * sqrt((double)(n[0] * n[1] * n[2])));
        for (int64_t i = 0; i < n[0]; i++) kernels->prolong(&fine.level, &coarse.level, 0, i);
        for (int64_t i = 1; i < n[0] - 1; i++)
            for (int64_t j = 1; j < n[1] - 1; j++)
                for (int64_t k = 1; k < n[2] - 1; k++) {
                    const double expected = slope[0] * ((double)i + 0.5) +
                                            slope[1] * ((double)j + 0.5) +
                                            slope[2] * ((double)k + 0.5);
                    const double found =
                        grvi_flow_load(fine.level.x, is_double, at_cell(f, i, j, k));
                    assert_true(fabs(found - expected) <
                                20 * epsilon_of(is_double) * (double)(n[0] + n[1] + n[2]));
                }
        fini_case(&fine);
        fini_case(&coarse);
    }
}

static void test_transfer(void **state)
{
    (void)state;
    for (int is_double = 0; is_double < 2; is_double++) {
        check_transfer((int64_t[]){8, 6, 34}, (int64_t[]){4, 3, 17}, is_double != 0);
        check_transfer((int64_t[]){5, 8, 18}, (int64_t[]){5, 4, 9}, is_double != 0);
        check_transfer((int64_t[]){6, 7, 9}, (int64_t[]){3, 7, 9}, is_double != 0);
        check_transfer((int64_t[]){4, 4, 600}, (int64_t[]){2, 2, 300}, is_double != 0);
    }
}

/* ---- velocity ---- */

static void test_correction_and_limit(void **state)
{
    (void)state;
    for (int is_double = 0; is_double < 2; is_double++) {
        const int64_t n[3] = {4, 3, 21};
        pressure_case p, before;
        init_case(&p, n, (bool[]){true, false, true}, is_double != 0);
        init_case(&before, n, (bool[]){true, false, true}, is_double != 0);
        const grvi_flow_kernels *const kernels =
            grvi_flow_kernels_for(grvi_isa_chosen(), is_double != 0);
        double largest = 0, found = 0;
        for (int64_t i = 0; i < n[0]; i++) {
            found =
                fmax(found, kernels->courant(&p.level.grid, (const void *const *)p.velocity, i));
            kernels->correct(&p.level, p.velocity, i);
        }
        for (int64_t i = 0; i < n[0]; i++)
            for (int64_t j = 0; j < n[1]; j++)
                for (int64_t k = 0; k < n[2]; k++) {
                    const int64_t at = at_cell(&p.level.grid, i, j, k);
                    double out = 0;
                    for (int d = 0; d < 3; d++) {
                        const double u = grvi_flow_load(before.velocity[d], is_double, at);
                        const double slope = grvi_flow_load(p.level.x, is_double, at) -
                                             neighbour(&p, d, i, j, k, false);
                        const double expected =
                            u - grvi_flow_load(p.level.face[d], is_double, at) * slope;
                        assert_true(fabs(grvi_flow_load(p.velocity[d], is_double, at) - expected) <
                                    10 * epsilon_of(is_double));
                        out += fmax(0, grvi_flow_load(before.velocity[d], is_double,
                                                      at + p.level.grid.stride[d])) +
                               fmax(0, -u);
                    }
                    largest = fmax(largest, out);
                }
        /* `found` saw planes whose lower neighbour was corrected; only upper faces of the plane before the first are shared */
        assert_true(fabs(found - largest) < 1e-5);
        fini_case(&p);
        fini_case(&before);
    }
}

static void test_immersion(void **state)
{
    (void)state;
    grvi_flow_grid grid;
    assert_true(
        grvi_flow_grid_init(&grid, (int64_t[]){3, 3, 3}, (bool[]){false, false, false}, true));
    double *const a = random_field(&grid, true, 1, -1, 1),
                  *const b = random_field(&grid, true, 2, -1, 1), result = 0;
    const int64_t at = at_cell(&grid, 1, 1, 1), *const s = grid.stride;
    const grvi_flow_body_face face = {
        .at = at, .constant = 0.3, .mu0 = 0.6, .half_mu1 = {0.1, -0.2, 0.05}};
    grvi_flow_kernels_for(grvi_isa_chosen(), true)->immerse(&grid, &face, 1, a, 2, b, -1, &result);
    double expected = 0.3;
    expected += 0.6 * (2 * a[at] - b[at]);
    for (int d = 0; d < 3; d++)
        expected += face.half_mu1[d] *
                    ((2 * a[at + s[d]] - b[at + s[d]]) - (2 * a[at - s[d]] - b[at - s[d]]));
    assert_true(fabs(result - expected) < 1e-14);
    free_field(&grid, true, a);
    free_field(&grid, true, b);
}

/* Ghosts by direction: periodic copies, straight lines through a given normal velocity, no gradient of the others. */
static void test_ghosts(void **state)
{
    (void)state;
    for (int is_double = 0; is_double < 2; is_double++) {
        const int64_t n[3] = {5, 4, 6};
        grvi_flow_grid g;
        const grvi_flow_kernels *const kernels =
            grvi_flow_kernels_for(grvi_isa_chosen(), is_double != 0);
        for (int is_periodic = 0; is_periodic < 2; is_periodic++)
            for (int c = 0; c < 3; c++) {
                const bool periodic[3] = {is_periodic != 0, is_periodic != 0, is_periodic != 0};
                assert_true(grvi_flow_grid_init(&g, n, periodic, is_double != 0));
                void *const u = random_field(&g, is_double != 0, 3, -1, 1);
                for (int64_t i = 0; i < n[0]; i++) kernels->ghosts_in_plane(&g, c, 0.25, u, i);
                kernels->ghosts_across(&g, c, 0.25, false, u);
                for (int d = 0; d < 3; d++) {
                    const int64_t first = at_cell(&g, 2, 2, 2) - 2 * g.stride[d], s = g.stride[d];
                    double q[16];
                    for (int64_t m = -2; m < n[d] + 2; m++)
                        q[m + 2] = grvi_flow_load(u, is_double, first + m * s);
                    const double *const low = q + 2, *const high = q + 2 + n[d];
                    if (is_periodic) {
                        assert_true(fabs(low[-1] - high[-1]) <= 0 && fabs(low[-2] - high[-2]) <= 0);
                        assert_true(fabs(high[0] - low[0]) <= 0 && fabs(high[1] - low[1]) <= 0);
                    } else if (c == d) {
                        assert_true(fabs(low[0] - 0.25) <= 0 && fabs(high[0] - 0.25) <= 0);
                        assert_true(fabs(low[-1] - (0.5 - low[1])) < 1e-6 &&
                                    fabs(high[1] - (0.5 - high[-1])) < 1e-6);
                    } else {
                        assert_true(fabs(low[-1] - low[0]) <= 0 && fabs(low[-2] - low[0]) <= 0);
                        assert_true(fabs(high[0] - high[-1]) <= 0 && fabs(high[1] - high[-1]) <= 0);
                    }
                }
                const int64_t corner = at_cell(&g, -1, -1, -1);
                assert_true(fabs(grvi_flow_load(u, is_double, corner)) <
                            1.6); /* filled from filled ghosts */
                free_field(&g, is_double != 0, u);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_advection),
                                       cmocka_unit_test(test_residual),
                                       cmocka_unit_test(test_half_sweep),
                                       cmocka_unit_test(test_transfer),
                                       cmocka_unit_test(test_correction_and_limit),
                                       cmocka_unit_test(test_immersion),
                                       cmocka_unit_test(test_ghosts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
