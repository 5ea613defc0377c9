/* Geometric multigrid for the pressure equation with a coefficient on every face. Internal to src/sim.
 *
 * Solves  sum over faces of L (x_neighbour - x) = rhs  with no flow through walls, so that x is fixed up to a constant.
 * One cycle: residual, summed over the children down all levels, coarsest level by conjugate gradients, then up: correction
 * by linear interpolation and red-black Gauss-Seidel half sweeps. A direction is halved where its number of cells is even, unless its
 * cells are longer than those of another direction already: point smoothers do not see errors along weakly coupled directions.
 * Correction, half sweeps and residual of a level run through memory once, as a wavefront over planes (wavefront.h).
 * Results do not depend on the number of threads: half sweeps have no order, sums are taken per plane and added in order, in double. */
#ifndef GRVI_SIM_MULTIGRID_H
#define GRVI_SIM_MULTIGRID_H

#include "grove/status.h"
#include "kernels/flow_kernels.h"

enum { GRVI_MULTIGRID_LEVELS = 32, GRVI_MULTIGRID_MAX_HALF_SWEEPS = 16 };

typedef struct grvi_multigrid_options {
    bool is_double;
    int n_threads;
    int half_sweeps; /* a level and cycle, 1 to GRVI_MULTIGRID_MAX_HALF_SWEEPS */
    int max_cycles;
    int fixed_cycles; /* exactly that many, without looking at the residual, where positive */
    double tolerance; /* ||residual|| <= tolerance ||rhs|| */
} grvi_multigrid_options;

typedef struct grvi_multigrid_result {
    int cycles;
    double rhs_norm, residual_norm;
    bool stagnated; /* stopped because rounding lets the residual fall no further */
} grvi_multigrid_result;

typedef struct grvi_multigrid {
    grvi_multigrid_options options;
    const grvi_flow_kernels *kernels;
    int n_levels;
    int64_t n_open_cells; /* of the finest level: cells that are not inside a body */
    grvi_flow_level level[GRVI_MULTIGRID_LEVELS];
    void *fields;            /* the memory of all levels */
    grvi_flow_range *ranges; /* level[].open */
    grvi_flow_sums *sums;    /* [planes of the finest level] */
    double *coarsest;        /* work space of the coarsest level */
} grvi_multigrid;

/* The number of cells of the next level in each direction; false if no direction is halved.
 * @param width  cells of the finest level that one cell of this level is wide */
bool grvi_multigrid_coarsen(const int64_t n[3], const int64_t width[3], int64_t coarse[3]);

/* Bytes that grvi_multigrid_init takes. */
int64_t grvi_multigrid_bytes(const int64_t n[3], const bool periodic[3],
                             const grvi_multigrid_options *options);

/* Takes the memory of all levels. level[0].face[] is then the caller's to fill, grvi_multigrid_update to be called after.
 * Errors: GRV_E_NOMEM. grvi_multigrid_fini is allowed on a zeroed object. */
grv_status grvi_multigrid_init(grvi_multigrid *mg, const int64_t n[3], const bool periodic[3],
                               grvi_isa isa, const grvi_multigrid_options *options) GRV_MUST_CHECK;
void grvi_multigrid_fini(grvi_multigrid *mg);

/* Derives everything from level[0].face: closes walls and directions of one cell, coarse coefficients, diagonals. */
void grvi_multigrid_update(grvi_multigrid *mg);

/* Improves level[0].x, of which scale x is the first guess.
 * @param velocity  rhs is its divergence (ghosts filled); NULL: rhs is what level[0].rhs holds
 * @param noise  residual of one cell, root mean square, that cannot be told from rounding; 0 if not known
 * Errors: GRV_E_NUMERIC when a number is not finite. */
grv_status grvi_multigrid_solve(grvi_multigrid *mg, const void *const *velocity, double scale,
                                double noise, grvi_multigrid_result *result) GRV_MUST_CHECK;

#endif
