/* Inner loops of the flow solver: one table per precision and instruction set. Internal.
 *
 * A field is a block of reals with two ghost cells below and above in every direction; its pointer is that of cell (0,0,0).
 * Cell (i,j,k) is at i*stride[0] + j*stride[1] + k. Every row of cells starts on a 64-byte border.
 * velocity[d] holds the normal velocity of the lower d-face of each cell; face n of direction d is in the ghost cell n.
 *
 * All loops work on whole planes of the slowest direction, so that callers cut the work between threads as they like.
 * No operation is contracted or reordered and sums have a fixed number of lanes: the numbers do not depend on the instruction set.
 */
#ifndef GRVI_KERNELS_FLOW_KERNELS_H
#define GRVI_KERNELS_FLOW_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/isa.h"

enum { GRVI_FLOW_GHOSTS = 2 };

/* Shape and memory of the fields of one grid. */
typedef struct grvi_flow_grid {
    int64_t n[3];       /* cells inside the domain */
    int64_t stride[3];  /* elements from one cell to the next; stride[2] is 1 */
    int64_t origin;     /* elements from the start of a field's block to cell (0,0,0) */
    int64_t n_elements; /* of a field's block */
    bool periodic[3];
} grvi_flow_grid;

/* Sets strides and sizes from n and periodic; false if a size overflows. */
bool grvi_flow_grid_init(grvi_flow_grid *grid, const int64_t n[3], const bool periodic[3],
                         bool is_double);

typedef enum grvi_flow_scheme { /* the values of grv_flow_scheme */
                                GRVI_FLOW_LIMITED,
                                GRVI_FLOW_CENTRAL,
                                GRVI_FLOW_VAN_LEER
} grvi_flow_scheme;

/* Cells [begin, end) of a row. */
typedef struct grvi_flow_range {
    int32_t begin, end;
} grvi_flow_range;

/* One level of the pressure equation  sum over faces of L (x_neighbour - x) = rhs. */
typedef struct grvi_flow_level {
    grvi_flow_grid grid;
    void *x, *rhs, *residual;
    void
        *face[3]; /* coefficient L of the lower faces; entry n is the upper face of the last cell */
    void *inverse_diagonal; /* 1 / sum of the six coefficients; 0 where that is 0 (inside a body) */
    const grvi_flow_range
        *open; /* [n0*n1] where all six coefficients of the cells of a row equal `uniform` */
    double uniform[3];
} grvi_flow_level;

/* Sums over one plane, in double. */
typedef struct grvi_flow_sums {
    double rhs_squares, rhs_sum, residual_squares;
} grvi_flow_sums;

/* One convection-diffusion and Euler step. */
typedef struct grvi_flow_advection {
    grvi_flow_grid grid;
    grvi_flow_scheme scheme;
    double dt, viscosity, acceleration[3];
    double weight;           /* output = (1-weight) velocity + weight (base + dt rate(velocity)) */
    const void *velocity[3]; /* ghosts filled */
    const void *base[3];
    void *output[3]; /* may be base; must not be velocity */
} grvi_flow_advection;

/* u[at] = constant + mu0 f[at] + sum over d of half_mu1[d] (f[at + stride d] - f[at - stride d]) for one face near a body */
typedef struct grvi_flow_body_face {
    int64_t at;
    double constant, mu0, half_mu1[3];
} grvi_flow_body_face;

typedef struct grvi_flow_kernels {
    /* elements of scratch that one thread of `advect` needs */
    int64_t (*advect_scratch)(const grvi_flow_grid *grid);
    /* planes [begin, end) of all three components */
    void (*advect)(const grvi_flow_advection *call, int64_t begin, int64_t end, void *scratch);
    /* result[i] = the formula of grvi_flow_body_face with f = first_weight first + second_weight second */
    void (*immerse)(const grvi_flow_grid *grid, const grvi_flow_body_face *faces, int64_t n_faces,
                    const void *first, double first_weight, const void *second,
                    double second_weight, double *result);
    /* rhs = divergence of velocity (kept as it is where velocity is NULL), residual = rhs - scale A x; 0 inside bodies */
    void (*residual)(const grvi_flow_level *level, const void *const *velocity, double scale,
                     int64_t plane, grvi_flow_sums *sums);
    /* rhs -= shift outside bodies */
    void (*shift_rhs)(const grvi_flow_level *level, double shift, int64_t plane);
    /* coarse rhs = sum of the children's `values` (the residual or the rhs of the fine level) */
    void (*restrict_sum)(const grvi_flow_level *fine, const void *values,
                         const grvi_flow_level *coarse, int64_t coarse_plane);
    /* x = scale x + coarse x of the parent */
    void (*prolong)(const grvi_flow_level *fine, const grvi_flow_level *coarse, double scale,
                    int64_t plane);
    /* Gauss-Seidel on the cells with (i + j + k) % 2 == colour */
    void (*half_sweep)(const grvi_flow_level *level, int colour, int64_t plane);
    /* velocity[d] -= L_d (x - x below) on the lower faces of the plane's cells */
    void (*correct)(const grvi_flow_level *level, void *const *velocity, int64_t plane);
    /* largest sum of the outflow speeds over the faces of a cell; NaN does not survive the maximum */
    double (*courant)(const grvi_flow_grid *grid, const void *const *velocity, int64_t plane);
    /* Ghosts (and, across walls, boundary faces) of component `component` in the directions 1 and 2 of one plane inside the domain */
    void (*ghosts_in_plane)(const grvi_flow_grid *grid, int component, double wall_velocity,
                            void *field, int64_t plane);
    /* ghost planes of direction 0; keeps the last face of component 0 where keep_exit */
    void (*ghosts_across)(const grvi_flow_grid *grid, int component, double wall_velocity,
                          bool keep_exit, void *field);
} grvi_flow_kernels;

/* The table for float (is_double false) or double. An instruction set without a variant of its own gets the best one below it. */
const grvi_flow_kernels *grvi_flow_kernels_for(grvi_isa isa, bool is_double);

/* One element as double; for what is not worth a kernel. */
static inline double grvi_flow_load(const void *field, bool is_double, int64_t at)
{
    return is_double ? ((const double *)field)[at] : (double)((const float *)field)[at];
}
static inline void grvi_flow_store(void *field, bool is_double, int64_t at, double value)
{
    if (is_double)
        ((double *)field)[at] = value;
    else
        ((float *)field)[at] = (float)value;
}
/* The pointer `n` elements further. */
static inline void *grvi_flow_offset(void *field, bool is_double, int64_t n)
{
    return (char *)field + n * (int64_t)(is_double ? sizeof(double) : sizeof(float));
}

/* Index of the plane or row below and above, around the end in periodic directions, itself beside a wall. */
static inline int64_t grvi_flow_below(const grvi_flow_grid *grid, int direction, int64_t i)
{
    return i > 0 ? i - 1 : grid->periodic[direction] ? grid->n[direction] - 1 : 0;
}
static inline int64_t grvi_flow_above(const grvi_flow_grid *grid, int direction, int64_t i)
{
    return i + 1 < grid->n[direction] ? i + 1 : grid->periodic[direction] ? 0 : i;
}

#endif
