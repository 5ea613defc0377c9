/* The loops of the flow solver, included once per type (REAL, NAME) and compiled once per instruction set. Internal to src/kernels.
 *
 * The loops are written so that GCC 12 and Clang 14 vectorise them: an in-place stencil goes through a block of results, since
 * compilers do not vectorise a loop that reads the neighbours of what it writes; maxima and sums have LANES partial results.
 * Equations: spec 7.4 (advect), 7.3 (immerse), 7.7 (pressure); see docs/flow.md.
 */

#ifndef GRVI_KERNELS_FLOW_LOOPS_H
#define GRVI_KERNELS_FLOW_LOOPS_H

#include <string.h>

#include "kernels/flow_kernels.h"

#define INLINE static inline __attribute__((always_inline))
/* The iterations of the next loop do not depend on each other, although its pointers may be equal. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop that stays scalar is slower, not wrong */
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

enum { LANES = 8, BLOCK = 256 };

/* Fixed tree over partial sums. */
INLINE double sum_of_lanes(const double *s)
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* Fluxes are computed for whole vectors: rows are padded, so that what lies beyond their end may be read and is not used. */
INLINE int64_t whole_lanes(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

INLINE int64_t row_offset(const grvi_flow_grid *grid, int64_t i, int64_t j)
{
    return i * grid->stride[0] + j * grid->stride[1];
}

#endif

/* ---- convection and diffusion ---- */

INLINE REAL NAME(smaller)(REAL a, REAL b)
{
    return a < b ? a : b;
}
INLINE REAL NAME(larger)(REAL a, REAL b)
{
    return a > b ? a : b;
}
INLINE REAL NAME(median)(REAL a, REAL b, REAL c)
{
    return NAME(larger)(NAME(smaller)(a, b), NAME(smaller)(NAME(larger)(a, b), c));
}

/* Value at a face from the points far upwind, upwind and downwind of it. */
INLINE REAL NAME(face_value)(grvi_flow_scheme scheme, REAL far, REAL up, REAL down)
{
    if (scheme == GRVI_FLOW_CENTRAL) return (REAL)0.5 * (up + down);
    if (scheme == GRVI_FLOW_VAN_LEER) {
        const REAL rise = down - far, part = up - far, product = part * (down - up);
        /* strictly between exactly where the product is positive; the denominator is then not zero */
        const REAL safe = product > 0 ? rise : (REAL)1;
        return up + (product > 0 ? product / safe : (REAL)0);
    }
    const REAL third = (5 * up + 2 * down - far) * (REAL)(1.0 / 6);
    return NAME(median)(third, up, NAME(median)(10 * up - 9 * far, up, down));
}

/* flux[k] through the faces between the cells k-s and k of a row of q; the speed there is the mean of a0 and a1 */
INLINE void NAME(flux_row)(grvi_flow_scheme scheme, const REAL *a0, const REAL *a1, const REAL *q,
                           int64_t s, REAL viscosity, int64_t n, REAL *restrict flux)
{
    INDEPENDENT
    for (int64_t k = 0; k < n; k++) {
        const REAL speed = (REAL)0.5 * (a0[k] + a1[k]);
        const REAL low = q[k - s], high = q[k];
        /* loads stay outside the selection, which then vectorises */
        const REAL lower = q[k - 2 * s], upper = q[k + s];
        const REAL far = speed > 0 ? lower : upper, up = speed > 0 ? low : high,
                   down = speed > 0 ? high : low;
        flux[k] = speed * NAME(face_value)(scheme, far, up, down) - viscosity * (high - low);
    }
}

static int64_t NAME(advect_scratch)(const grvi_flow_grid *grid)
{
    return (3 * grid->n[1] + 5) * grid->stride[1];
}

/* One row: the fluxes through its upper faces, which replace those through its lower ones, then the update. Each flux is computed
 * once: flux0 belongs to a scratch plane, so that the next plane finds it, flux1 to a scratch row for the next row. */
INLINE void NAME(advect_row)(grvi_flow_scheme scheme, const grvi_flow_advection *call, int c,
                             int64_t at, REAL *restrict flux0, REAL *restrict flux1,
                             REAL *restrict rate, REAL *restrict flux2)
{
    const grvi_flow_grid *const g = &call->grid;
    const int64_t n = g->n[2], s0 = g->stride[0], s1 = g->stride[1], back = g->stride[c];
    const REAL nu = (REAL)call->viscosity, dt = (REAL)call->dt, force = (REAL)call->acceleration[c];
    const REAL new_weight = (REAL)call->weight, old_weight = (REAL)(1 - call->weight);
    const REAL *const q = (const REAL *)call->velocity[c] + at;
    const REAL *const base = (const REAL *)call->base[c] + at;
    const REAL *const a0 = (const REAL *)call->velocity[0] + at + s0;
    const REAL *const a1 = (const REAL *)call->velocity[1] + at + s1;
    const REAL *const a2 = (const REAL *)call->velocity[2] + at;
    REAL *const out = (REAL *)call->output[c] + at;
    NAME(flux_row)(scheme, a2, a2 - back, q, 1, nu, whole_lanes(n + 1), flux2);
    for (int64_t k = 0; k < n; k++)
        rate[k] = ((flux0[k] + flux1[k]) + (flux2[k] - flux2[k + 1])) + force;
    NAME(flux_row)(scheme, a1, a1 - back, q + s1, s1, nu, whole_lanes(n), flux1);
    NAME(flux_row)(scheme, a0, a0 - back, q + s0, s0, nu, whole_lanes(n), flux0);
    INDEPENDENT
    for (int64_t k = 0; k < n; k++)
        out[k] =
            old_weight * q[k] + new_weight * (base[k] + dt * ((rate[k] - flux1[k]) - flux0[k]));
}

INLINE void NAME(advect_planes)(grvi_flow_scheme scheme, const grvi_flow_advection *call,
                                int64_t begin, int64_t end, REAL *scratch)
{
    const grvi_flow_grid *const g = &call->grid;
    const int64_t row = g->stride[1];
    REAL *const rate = scratch + 3 * row;
    REAL *const flux2 = scratch + 4 * row;
    REAL *const planes = scratch + 5 * row;
    for (int64_t i = begin; i < end; i++) {
        for (int64_t j = 0; j < g->n[1]; j++) {
            for (int c = 0; c < 3; c++) {
                REAL *const flux0 = planes + (c * g->n[1] + j) * row;
                REAL *const flux1 = scratch + c * row;
                const int64_t at = row_offset(g, i, j), back = g->stride[c];
                const REAL *const q = (const REAL *)call->velocity[c] + at;
                const REAL *const a0 = (const REAL *)call->velocity[0] + at;
                const REAL *const a1 = (const REAL *)call->velocity[1] + at;
                const REAL nu = (REAL)call->viscosity;
                if (i == begin)
                    NAME(flux_row)(scheme, a0, a0 - back, q, g->stride[0], nu, g->n[2], flux0);
                if (j == 0) NAME(flux_row)(scheme, a1, a1 - back, q, row, nu, g->n[2], flux1);
                NAME(advect_row)(scheme, call, c, at, flux0, flux1, rate, flux2);
            }
        }
    }
}

static void NAME(advect)(const grvi_flow_advection *call, int64_t begin, int64_t end, void *scratch)
{
    /* three copies of the loops, each with its scheme known to the compiler */
    switch (call->scheme) {
    case GRVI_FLOW_LIMITED:
        NAME(advect_planes)(GRVI_FLOW_LIMITED, call, begin, end, scratch);
        break;
    case GRVI_FLOW_CENTRAL:
        NAME(advect_planes)(GRVI_FLOW_CENTRAL, call, begin, end, scratch);
        break;
    case GRVI_FLOW_VAN_LEER:
        NAME(advect_planes)(GRVI_FLOW_VAN_LEER, call, begin, end, scratch);
        break;
    }
}

static void NAME(immerse)(const grvi_flow_grid *grid, const grvi_flow_body_face *faces,
                          int64_t n_faces, const void *first, double first_weight,
                          const void *second, double second_weight, double *result)
{
    const REAL *const a = first, *const b = second;
    for (int64_t m = 0; m < n_faces; m++) {
        const grvi_flow_body_face *const face = &faces[m];
        double sum_a = face->mu0 * (double)a[face->at], sum_b = face->mu0 * (double)b[face->at];
        for (int d = 0; d < 3; d++) {
            const int64_t high = face->at + grid->stride[d], low = face->at - grid->stride[d];
            sum_a += face->half_mu1[d] * ((double)a[high] - (double)a[low]);
            sum_b += face->half_mu1[d] * ((double)b[high] - (double)b[low]);
        }
        result[m] = face->constant + first_weight * sum_a + second_weight * sum_b;
    }
}

/* ---- pressure ---- */

/* One row of a level and its four neighbouring rows. */
typedef struct NAME(pressure_row) {
    int64_t n;
    const REAL *x, *below0, *above0, *below1, *above1;
    const REAL *l0, *h0, *l1, *h1, *l2; /* coefficients of the lower and upper faces */
    const REAL *inverse_diagonal;
    grvi_flow_range open;
    REAL c0, c1, c2, inverse; /* of the open range */
} NAME(pressure_row);

INLINE NAME(pressure_row) NAME(pressure_row_of)(const grvi_flow_level *level, int64_t i, int64_t j)
{
    const grvi_flow_grid *const g = &level->grid;
    const int64_t at = row_offset(g, i, j);
    const REAL *const x = level->x;
    const REAL *const l0 = level->face[0];
    const REAL *const l1 = level->face[1];
    const REAL *const l2 = level->face[2];
    const REAL *const inverse_diagonal = level->inverse_diagonal;
    const double *const u = level->uniform;
    return (NAME(pressure_row)){.n = g->n[2],
                                .x = x + at,
                                .below0 = x + row_offset(g, grvi_flow_below(g, 0, i), j),
                                .above0 = x + row_offset(g, grvi_flow_above(g, 0, i), j),
                                .below1 = x + row_offset(g, i, grvi_flow_below(g, 1, j)),
                                .above1 = x + row_offset(g, i, grvi_flow_above(g, 1, j)),
                                .l0 = l0 + at,
                                .h0 = l0 + at + g->stride[0],
                                .l1 = l1 + at,
                                .h1 = l1 + at + g->stride[1],
                                .l2 = l2 + at,
                                .inverse_diagonal = inverse_diagonal + at,
                                .open = level->open[i * g->n[1] + j],
                                .c0 = (REAL)u[0],
                                .c1 = (REAL)u[1],
                                .c2 = (REAL)u[2],
                                .inverse = (REAL)(1 / (2 * (u[0] + u[1] + u[2])))};
}

/* The ends of a row of x, read by the first and last cell; across walls their coefficients are 0, so any number will do. */
INLINE void NAME(close_row)(const grvi_flow_grid *grid, REAL *x)
{
    const int64_t n = grid->n[2];
    x[-1] = grid->periodic[2] ? x[n - 1] : x[0];
    x[n] = grid->periodic[2] ? x[0] : x[n - 1];
}

/* residual = rhs - scale A x on the cells [begin, end) */
INLINE void NAME(residual_open)(const NAME(pressure_row) * r, const REAL *rhs, REAL scale,
                                int64_t begin, int64_t end, REAL *residual)
{
    const REAL *const x = r->x, *const x_low = r->x - 1, *const x_high = r->x + 1;
    const REAL *const b0 = r->below0;
    const REAL *const a0 = r->above0;
    const REAL *const b1 = r->below1;
    const REAL *const a1 = r->above1;
    const REAL c0 = scale * r->c0, c1 = scale * r->c1, c2 = scale * r->c2,
               centre = 2 * (c0 + c1 + c2);
    INDEPENDENT
    for (int64_t k = begin; k < end; k++)
        residual[k] = (rhs[k] + centre * x[k]) -
                      ((c0 * (b0[k] + a0[k]) + c1 * (b1[k] + a1[k])) + c2 * (x_low[k] + x_high[k]));
}

INLINE void NAME(residual_any)(const NAME(pressure_row) * r, const REAL *rhs, REAL scale,
                               int64_t begin, int64_t end, REAL *residual)
{
    const REAL *const x = r->x;
    const REAL *const x_low = r->x - 1;
    const REAL *const x_high = r->x + 1;
    const REAL *const l2 = r->l2;
    const REAL *const h2 = r->l2 + 1;
    const REAL *const b0 = r->below0;
    const REAL *const a0 = r->above0;
    const REAL *const b1 = r->below1;
    const REAL *const a1 = r->above1;
    const REAL *const l0 = r->l0;
    const REAL *const h0 = r->h0;
    const REAL *const l1 = r->l1;
    const REAL *const h1 = r->h1;
    const REAL *const inverse = r->inverse_diagonal;
    INDEPENDENT
    for (int64_t k = begin; k < end; k++) {
        const REAL flow = ((l0[k] * (b0[k] - x[k]) + h0[k] * (a0[k] - x[k])) +
                           (l1[k] * (b1[k] - x[k]) + h1[k] * (a1[k] - x[k]))) +
                          (l2[k] * (x_low[k] - x[k]) + h2[k] * (x_high[k] - x[k]));
        const REAL value = rhs[k] - scale * flow;
        residual[k] = inverse[k] > 0 ? value : (REAL)0;
    }
}

INLINE double NAME(row_squares)(const REAL *row, int64_t n)
{
    double sums[LANES] = {0};
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++) sums[l] += (double)row[k + l] * (double)row[k + l];
    for (; k < n; k++) sums[k % LANES] += (double)row[k] * (double)row[k];
    return sum_of_lanes(sums);
}

INLINE double NAME(row_sum)(const REAL *row, int64_t n)
{
    double sums[LANES] = {0};
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++) sums[l] += (double)row[k + l];
    for (; k < n; k++) sums[k % LANES] += (double)row[k];
    return sum_of_lanes(sums);
}

INLINE void NAME(divergence_row)(const grvi_flow_level *level, const void *const *velocity,
                                 int64_t at, REAL *restrict rhs)
{
    const grvi_flow_grid *const g = &level->grid;
    const REAL *const u0 = (const REAL *)velocity[0] + at;
    const REAL *const u1 = (const REAL *)velocity[1] + at;
    const REAL *const u2 = (const REAL *)velocity[2] + at;
    const REAL *const v0 = u0 + g->stride[0], *const v1 = u1 + g->stride[1], *const v2 = u2 + 1;
    for (int64_t k = 0; k < g->n[2]; k++)
        rhs[k] = ((v0[k] - u0[k]) + (v1[k] - u1[k])) + (v2[k] - u2[k]);
}

/* rows outside the open range: what flows in a closed cell is no business of the pressure */
INLINE void NAME(clear_closed)(const NAME(pressure_row) * r, REAL *restrict rhs)
{
    const REAL *const inverse = r->inverse_diagonal;
    for (int64_t k = 0; k < r->open.begin; k++) rhs[k] = inverse[k] > 0 ? rhs[k] : (REAL)0;
    for (int64_t k = r->open.end; k < r->n; k++) rhs[k] = inverse[k] > 0 ? rhs[k] : (REAL)0;
}

static void NAME(residual)(const grvi_flow_level *level, const void *const *velocity, double scale,
                           int64_t plane, grvi_flow_sums *sums)
{
    const grvi_flow_grid *const g = &level->grid;
    grvi_flow_sums s = {0};
    for (int64_t j = 0; j < g->n[1]; j++) {
        const NAME(pressure_row) r = NAME(pressure_row_of)(level, plane, j);
        const int64_t at = row_offset(g, plane, j);
        REAL *const rhs = (REAL *)level->rhs + at, *const residual = (REAL *)level->residual + at;
        if (velocity != NULL) {
            NAME(divergence_row)(level, velocity, at, rhs);
            NAME(clear_closed)(&r, rhs);
        }
        NAME(residual_any)(&r, rhs, (REAL)scale, 0, r.open.begin, residual);
        NAME(residual_open)(&r, rhs, (REAL)scale, r.open.begin, r.open.end, residual);
        NAME(residual_any)(&r, rhs, (REAL)scale, r.open.end, r.n, residual);
        if (sums == NULL) continue;
        s.residual_squares += NAME(row_squares)(residual, r.n);
        s.rhs_squares += NAME(row_squares)(rhs, r.n);
        s.rhs_sum += NAME(row_sum)(rhs, r.n);
    }
    if (sums != NULL) *sums = s;
}

static void NAME(shift_rhs)(const grvi_flow_level *level, double shift, int64_t plane)
{
    const grvi_flow_grid *const g = &level->grid;
    for (int64_t j = 0; j < g->n[1]; j++) {
        const int64_t at = row_offset(g, plane, j);
        REAL *const restrict rhs = (REAL *)level->rhs + at;
        const REAL *const inverse = (const REAL *)level->inverse_diagonal + at;
        for (int64_t k = 0; k < g->n[2]; k++) rhs[k] -= inverse[k] > 0 ? (REAL)shift : (REAL)0;
    }
}

static void NAME(restrict_sum)(const grvi_flow_level *fine, const void *values,
                               const grvi_flow_level *coarse, int64_t coarse_plane)
{
    const grvi_flow_grid *const f = &fine->grid, *const c = &coarse->grid;
    const int64_t f0 = f->n[0] / c->n[0], f1 = f->n[1] / c->n[1], f2 = f->n[2] / c->n[2];
    for (int64_t j = 0; j < c->n[1]; j++) {
        const REAL *const first = (const REAL *)values + row_offset(f, f0 * coarse_plane, f1 * j);
        REAL *const out = (REAL *)coarse->rhs + row_offset(c, coarse_plane, j);
        for (int64_t start = 0; start < f->n[2]; start += BLOCK) {
            const int64_t m = f->n[2] - start < BLOCK ? f->n[2] - start : BLOCK;
            REAL sum[BLOCK];
            memcpy(sum, first + start, (size_t)m * sizeof(REAL));
            for (int64_t child = 1; child < f0 * f1; child++) {
                const REAL *const next = first + start + row_offset(f, child / f1, child % f1);
                for (int64_t k = 0; k < m; k++) sum[k] += next[k];
            }
            if (f2 == 2)
                for (int64_t k = 0; k < m / 2; k++)
                    out[start / 2 + k] = sum[2 * k] + sum[2 * k + 1];
            else
                memcpy(out + start, sum, (size_t)m * sizeof(REAL));
        }
    }
}

/* One row of fine cells from its parent row and the rows beside the parent that are nearer to the fine row (the parent itself in
 * directions that are not halved), for parents [begin, end). t0, t1: coefficients of the coarse faces in between, t2: of the lower
 * faces along the row; all divided by the uniform ones by the factors w, so that nothing is interpolated across a body. */
INLINE void NAME(prolong_range)(const REAL *parent, const REAL *beside0, const REAL *beside1,
                                const REAL *t0, const REAL *t1, const REAL *t2, const REAL *w,
                                bool is_open, int64_t ratio, int64_t begin, int64_t end,
                                REAL factor, REAL *restrict x)
{
    const REAL quarter = (REAL)0.25;
    for (int64_t k = begin; k < end; k++) {
        const REAL own = parent[k];
        const REAL slope0 = (is_open ? quarter : w[0] * t0[k]) * (beside0[k] - own);
        const REAL slope1 = (is_open ? quarter : w[1] * t1[k]) * (beside1[k] - own);
        const REAL base = own + (slope0 + slope1);
        if (ratio == 2) {
            const REAL low = (is_open ? quarter : w[2] * t2[k]) * (parent[k - 1] - own);
            const REAL high = (is_open ? quarter : w[2] * t2[k + 1]) * (parent[k + 1] - own);
            x[2 * k] = factor * x[2 * k] + (base + low);
            x[2 * k + 1] = factor * x[2 * k + 1] + (base + high);
        } else {
            x[k] = factor * x[k] + base;
        }
    }
}

/* Linear interpolation along each direction: parent + 1/4 of the difference to the parent's neighbour on the child's side. */
static void NAME(prolong)(const grvi_flow_level *fine, const grvi_flow_level *coarse, double scale,
                          int64_t plane)
{
    const grvi_flow_grid *const f = &fine->grid, *const c = &coarse->grid;
    const int64_t f0 = f->n[0] / c->n[0], f1 = f->n[1] / c->n[1], f2 = f->n[2] / c->n[2],
                  i = plane / f0;
    const int64_t beside_i = f0 == 1          ? i
                             : plane % 2 == 0 ? grvi_flow_below(c, 0, i)
                                              : grvi_flow_above(c, 0, i);
    REAL w[3];
    for (int d = 0; d < 3; d++)
        w[d] = coarse->uniform[d] > 0 ? (REAL)(0.25 / coarse->uniform[d]) : (REAL)0;
    for (int64_t row = 0; row < f->n[1]; row++) {
        const int64_t j = row / f1, at = row_offset(c, i, j);
        const int64_t beside_j = f1 == 1        ? j
                                 : row % 2 == 0 ? grvi_flow_below(c, 1, j)
                                                : grvi_flow_above(c, 1, j);
        const REAL *const all = (const REAL *)coarse->x, *const parent = all + at;
        const REAL *const beside0 = all + row_offset(c, beside_i, j);
        const REAL *const beside1 = all + row_offset(c, i, beside_j);
        const REAL *const t0 = (const REAL *)coarse->face[0] + at + (plane % f0) * c->stride[0];
        const REAL *const t1 = (const REAL *)coarse->face[1] + at + (row % f1) * c->stride[1];
        const REAL *const t2 = (const REAL *)coarse->face[2] + at;
        REAL *const x = (REAL *)fine->x + row_offset(f, plane, row);
        const grvi_flow_range open = coarse->open[i * c->n[1] + j];
        const REAL factor = (REAL)scale;
        NAME(prolong_range)
        (parent, beside0, beside1, t0, t1, t2, w, false, f2, 0, open.begin, factor, x);
        NAME(prolong_range)
        (parent, beside0, beside1, t0, t1, t2, w, true, f2, open.begin, open.end, factor, x);
        NAME(prolong_range)
        (parent, beside0, beside1, t0, t1, t2, w, false, f2, open.end, c->n[2], factor, x);
        NAME(close_row)(f, x);
    }
}

INLINE void NAME(relax_open)(const NAME(pressure_row) * r, const REAL *rhs, int odd, int64_t begin,
                             int64_t end, REAL *restrict result)
{
    const REAL *const x = r->x + begin;
    const REAL *const x_low = x - 1;
    const REAL *const x_high = x + 1;
    const REAL *const z = rhs + begin;
    const REAL *const b0 = r->below0 + begin;
    const REAL *const a0 = r->above0 + begin;
    const REAL *const b1 = r->below1 + begin;
    const REAL *const a1 = r->above1 + begin;
    const REAL c0 = r->c0 * r->inverse, c1 = r->c1 * r->inverse, c2 = r->c2 * r->inverse,
               inverse = r->inverse;
    const int n = (int)(end - begin);
    for (int k = 0; k < n; k++) {
        const REAL value =
            ((c0 * (b0[k] + a0[k]) + c1 * (b1[k] + a1[k])) + c2 * (x_low[k] + x_high[k])) -
            inverse * z[k];
        const REAL old = x[k];
        result[k] = (k & 1) == odd ? value : old;
    }
}

INLINE void NAME(relax_any)(const NAME(pressure_row) * r, const REAL *rhs, int odd, int64_t begin,
                            int64_t end, REAL *restrict result)
{
    const REAL *const x = r->x + begin;
    const REAL *const x_low = x - 1;
    const REAL *const x_high = x + 1;
    const REAL *const z = rhs + begin;
    const REAL *const b0 = r->below0 + begin;
    const REAL *const a0 = r->above0 + begin;
    const REAL *const b1 = r->below1 + begin;
    const REAL *const a1 = r->above1 + begin;
    const REAL *const l0 = r->l0 + begin;
    const REAL *const h0 = r->h0 + begin;
    const REAL *const l1 = r->l1 + begin;
    const REAL *const h1 = r->h1 + begin;
    const REAL *const l2 = r->l2 + begin;
    const REAL *const h2 = l2 + 1;
    const REAL *const inverse = r->inverse_diagonal + begin;
    const int n = (int)(end - begin);
    for (int k = 0; k < n; k++) {
        const REAL sum = ((l0[k] * b0[k] + h0[k] * a0[k]) + (l1[k] * b1[k] + h1[k] * a1[k])) +
                         (l2[k] * x_low[k] + h2[k] * x_high[k]);
        const REAL value = (sum - z[k]) * inverse[k], old = x[k];
        result[k] = (k & 1) == odd ? value : old;
    }
}

/* One range of a row, block by block through a buffer: within a half sweep no cell reads another that changes, so that the
 * block before may be stored already. `first` is the parity of the cells to change, counted from the row's start. */
INLINE void NAME(relax_range)(const NAME(pressure_row) * r, const REAL *rhs, int first,
                              bool is_open, int64_t begin, int64_t end, REAL *x)
{
    for (int64_t start = begin; start < end; start += BLOCK) {
        const int64_t stop = end - start < BLOCK ? end : start + BLOCK;
        const int odd = (int)((first + start) & 1);
        REAL result[BLOCK];
        if (is_open)
            NAME(relax_open)(r, rhs, odd, start, stop, result);
        else
            NAME(relax_any)(r, rhs, odd, start, stop, result);
        memcpy(x + start, result, (size_t)(stop - start) * sizeof(REAL));
    }
}

static void NAME(half_sweep)(const grvi_flow_level *level, int colour, int64_t plane)
{
    const grvi_flow_grid *const g = &level->grid;
    for (int64_t j = 0; j < g->n[1]; j++) {
        const NAME(pressure_row) r = NAME(pressure_row_of)(level, plane, j);
        const int64_t at = row_offset(g, plane, j);
        const REAL *const rhs = (const REAL *)level->rhs + at;
        REAL *const x = (REAL *)level->x + at;
        const int first = (int)((plane + j + colour) & 1);
        NAME(relax_range)(&r, rhs, first, false, 0, r.open.begin, x);
        NAME(relax_range)(&r, rhs, first, true, r.open.begin, r.open.end, x);
        NAME(relax_range)(&r, rhs, first, false, r.open.end, r.n, x);
        NAME(close_row)(g, x);
    }
}

INLINE void NAME(correct_range)(const NAME(pressure_row) * r, bool is_open, int64_t begin,
                                int64_t end, REAL *restrict u0, REAL *restrict u1,
                                REAL *restrict u2)
{
    const REAL *const x = r->x;
    const REAL *const x_low = r->x - 1;
    const REAL *const b0 = r->below0;
    const REAL *const b1 = r->below1;
    const REAL *const l0 = r->l0, *const l1 = r->l1, *const l2 = r->l2;
    const REAL c0 = r->c0, c1 = r->c1, c2 = r->c2;
    for (int64_t k = begin; k < end; k++) {
        u0[k] -= (is_open ? c0 : l0[k]) * (x[k] - b0[k]);
        u1[k] -= (is_open ? c1 : l1[k]) * (x[k] - b1[k]);
        u2[k] -= (is_open ? c2 : l2[k]) * (x[k] - x_low[k]);
    }
}

static void NAME(correct)(const grvi_flow_level *level, void *const *velocity, int64_t plane)
{
    const grvi_flow_grid *const g = &level->grid;
    for (int64_t j = 0; j < g->n[1]; j++) {
        const NAME(pressure_row) r = NAME(pressure_row_of)(level, plane, j);
        const int64_t at = row_offset(g, plane, j);
        REAL *const u0 = (REAL *)velocity[0] + at;
        REAL *const u1 = (REAL *)velocity[1] + at;
        REAL *const u2 = (REAL *)velocity[2] + at;
        NAME(correct_range)(&r, false, 0, r.open.begin, u0, u1, u2);
        NAME(correct_range)(&r, true, r.open.begin, r.open.end, u0, u1, u2);
        NAME(correct_range)(&r, false, r.open.end, r.n, u0, u1, u2);
    }
}

/* ---- time step limit and boundaries ---- */

static double NAME(courant)(const grvi_flow_grid *grid, const void *const *velocity, int64_t plane)
{
    const int64_t n = grid->n[2];
    REAL largest[LANES] = {0};
    for (int64_t j = 0; j < grid->n[1]; j++) {
        const int64_t at = row_offset(grid, plane, j);
        const REAL *const u0 = (const REAL *)velocity[0] + at;
        const REAL *const u1 = (const REAL *)velocity[1] + at;
        const REAL *const u2 = (const REAL *)velocity[2] + at;
        const REAL *const v0 = u0 + grid->stride[0];
        const REAL *const v1 = u1 + grid->stride[1];
        const REAL *const v2 = u2 + 1;
        for (int64_t start = 0; start < n; start += BLOCK) {
            const int m = (int)(n - start < BLOCK ? n - start : BLOCK);
            REAL out[BLOCK];
            for (int k = 0; k < m; k++) {
                const int64_t at_k = start + k;
                out[k] = ((NAME(larger)(v0[at_k], 0) + NAME(larger)(-u0[at_k], 0)) +
                          (NAME(larger)(v1[at_k], 0) + NAME(larger)(-u1[at_k], 0))) +
                         (NAME(larger)(v2[at_k], 0) + NAME(larger)(-u2[at_k], 0));
            }
            int k = 0;
            for (; k + LANES <= m; k += LANES)
                for (int l = 0; l < LANES; l++) largest[l] = NAME(larger)(out[k + l], largest[l]);
            for (; k < m; k++) largest[0] = NAME(larger)(out[k], largest[0]);
        }
    }
    REAL result = 0;
    for (int l = 0; l < LANES; l++) result = NAME(larger)(largest[l], result);
    return (double)result;
}

/* Ghosts and boundary values along one direction: `count` neighbouring lines at once, whose cells are `step` elements apart.
 * Across walls: no gradient of the tangential components; the normal one is given on the wall and goes on in a straight line,
 * which makes the limited scheme take the plain mean on the first face inside where the flow comes in (spec 7.4). */
INLINE void NAME(ghost_lines)(REAL *q, int64_t step, int64_t n, int64_t count, bool periodic,
                              bool is_normal, bool keep_exit, REAL wall_velocity)
{
    REAL *const end = q + n * step;
    INDEPENDENT
    for (int64_t k = 0; k < count; k++) {
        if (periodic) {
            q[k - step] = end[k - step];
            q[k - 2 * step] = q[k + (n > 1 ? n - 2 : 0) * step];
            end[k] = q[k];
            end[k + step] = q[k + (n > 1 ? step : 0)];
        } else if (is_normal) {
            const REAL exit = keep_exit ? end[k] : wall_velocity;
            q[k] = wall_velocity;
            end[k] = exit;
            q[k - step] = q[k - 2 * step] = 2 * wall_velocity - q[k + step];
            end[k + step] = 2 * exit - end[k - step];
        } else {
            q[k - step] = q[k - 2 * step] = q[k];
            end[k] = end[k + step] = end[k - step];
        }
    }
}

static void NAME(ghosts_in_plane)(const grvi_flow_grid *grid, int component, double wall_velocity,
                                  void *field, int64_t plane)
{
    const int64_t n1 = grid->n[1], n2 = grid->n[2];
    for (int64_t j = 0; j < n1; j++) NAME(ghost_lines)
    ((REAL *)field + row_offset(grid, plane, j), 1, n2, 1, grid->periodic[2], component == 2, false,
     (REAL)wall_velocity);
    NAME(ghost_lines)
    ((REAL *)field + row_offset(grid, plane, 0) - GRVI_FLOW_GHOSTS, grid->stride[1], n1,
     n2 + 2 * GRVI_FLOW_GHOSTS, grid->periodic[1], component == 1, false, (REAL)wall_velocity);
}

static void NAME(ghosts_across)(const grvi_flow_grid *grid, int component, double wall_velocity,
                                bool keep_exit, void *field)
{
    for (int64_t j = -GRVI_FLOW_GHOSTS; j < grid->n[1] + GRVI_FLOW_GHOSTS; j++) NAME(ghost_lines)
    ((REAL *)field + row_offset(grid, 0, j) - GRVI_FLOW_GHOSTS, grid->stride[0], grid->n[0],
     grid->n[2] + 2 * GRVI_FLOW_GHOSTS, grid->periodic[0], component == 0, keep_exit,
     (REAL)wall_velocity);
}

static const grvi_flow_kernels NAME(table) = {.advect_scratch = NAME(advect_scratch),
                                              .advect = NAME(advect),
                                              .immerse = NAME(immerse),
                                              .residual = NAME(residual),
                                              .shift_rhs = NAME(shift_rhs),
                                              .restrict_sum = NAME(restrict_sum),
                                              .prolong = NAME(prolong),
                                              .half_sweep = NAME(half_sweep),
                                              .correct = NAME(correct),
                                              .courant = NAME(courant),
                                              .ghosts_in_plane = NAME(ghosts_in_plane),
                                              .ghosts_across = NAME(ghosts_across)};
