/* Conjugate gradients, preconditioned by the diagonal. The matrix is -A (positive semi-definite); its null space, the constant, is
 * taken out of the right side. */
#include "sim/coarsest.h"

#include <math.h>

enum { MAX_ITERATIONS = 400, VECTORS = 8 };
static const double reduction =
    1e-3; /* of the residual: what is left does not slow the outer cycles */

int64_t grvi_coarsest_work(const grvi_flow_grid *grid)
{
    return VECTORS * grid->n[0] * grid->n[1] * grid->n[2];
}

typedef struct system_of_cells {
    const grvi_flow_grid *grid;
    int64_t cells;
    double *face[3], *inverse; /* lower faces; inverse diagonal, 0 in closed cells */
} system_of_cells;

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* y = -A x */
static void multiply(const system_of_cells *s, const double *x, double *y)
{
    const int64_t *const n = s->grid->n, step[3] = {n[1] * n[2], n[2], 1};
    for (int64_t i = 0; i < s->cells; i++) y[i] = 0;
    for (int d = 0; d < 3; d++) {
        for (int64_t i = 0; i < s->cells; i++) {
            const int64_t at = i / step[d] % n[d];
            const int64_t below = i + (grvi_flow_below(s->grid, d, at) - at) * step[d];
            const double flow = s->face[d][i] * (x[i] - x[below]);
            y[i] += flow;
            y[below] -= flow;
        }
    }
}

static void remove_mean(const system_of_cells *s, double *r)
{
    double sum = 0, open = 0;
    for (int64_t i = 0; i < s->cells; i++) {
        if (s->inverse[i] > 0)
            sum += r[i], open += 1;
        else
            r[i] = 0;
    }
    for (int64_t i = 0; i < s->cells; i++)
        if (s->inverse[i] > 0) r[i] -= sum / open;
}

/* r holds the right side on entry */
static void conjugate_gradients(const system_of_cells *s, double *x, double *r, double *p,
                                double *q)
{
    const int64_t n = s->cells;
    remove_mean(s, r);
    double rho = 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] = 0;
        p[i] = s->inverse[i] * r[i];
        rho += p[i] * r[i];
    }
    const double goal = reduction * reduction * rho;
    for (int iteration = 0; iteration < MAX_ITERATIONS && rho > goal && isfinite(rho);
         iteration++) {
        multiply(s, p, q);
        const double curvature = dot(p, q, n);
        if (!(curvature > 0)) break;
        const double alpha = rho / curvature;
        double next = 0;
        for (int64_t i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            next += r[i] * s->inverse[i] * r[i];
        }
        for (int64_t i = 0; i < n; i++) p[i] = s->inverse[i] * r[i] + next / rho * p[i];
        rho = next;
    }
}

void grvi_coarsest_solve(const grvi_flow_level *level, bool is_double, const void *rhs,
                         double scale, double *work)
{
    const grvi_flow_grid *const g = &level->grid;
    const int64_t cells = g->n[0] * g->n[1] * g->n[2];
    system_of_cells s = {.grid = g,
                         .cells = cells,
                         .face = {work, work + cells, work + 2 * cells},
                         .inverse = work + 3 * cells};
    double *const x = work + 4 * cells;
    double *const r = work + 5 * cells;
    double *const p = work + 6 * cells;
    double *const q = work + 7 * cells;
    int64_t m = 0;
    for (int64_t i = 0; i < g->n[0]; i++)
        for (int64_t j = 0; j < g->n[1]; j++)
            for (int64_t k = 0; k < g->n[2]; k++, m++) {
                const int64_t at = i * g->stride[0] + j * g->stride[1] + k;
                for (int d = 0; d < 3; d++)
                    s.face[d][m] = grvi_flow_load(level->face[d], is_double, at);
                s.inverse[m] = grvi_flow_load(level->inverse_diagonal, is_double, at);
                r[m] = -grvi_flow_load(rhs, is_double, at);
            }
    conjugate_gradients(&s, x, r, p, q);
    m = 0;
    for (int64_t i = 0; i < g->n[0]; i++)
        for (int64_t j = 0; j < g->n[1]; j++)
            for (int64_t k = 0; k < g->n[2]; k++, m++) {
                const int64_t at = i * g->stride[0] + j * g->stride[1] + k;
                const double old =
                    scale > 0 || scale < 0 ? scale * grvi_flow_load(level->x, is_double, at) : 0;
                grvi_flow_store(level->x, is_double, at, old + x[m]);
            }
    for (int64_t i = 0; i < g->n[0]; i++) /* the ends of the rows, which the kernels read */
        for (int64_t j = 0; j < g->n[1]; j++) {
            const int64_t row = i * g->stride[0] + j * g->stride[1], n = g->n[2];
            const double first = grvi_flow_load(level->x, is_double, row),
                         last = grvi_flow_load(level->x, is_double, row + n - 1);
            grvi_flow_store(level->x, is_double, row - 1, g->periodic[2] ? last : first);
            grvi_flow_store(level->x, is_double, row + n, g->periodic[2] ? first : last);
        }
}
