/** @file flow_sample.h
 * Training data of the flow surrogate: one simulation of the flow past a sphere or another body, written to the caller's arrays.
 *
 * The set-up is that of the SciAI4Industry paper at any size: a box whose whole boundary has one velocity, a sphere in it, the
 * z component of the vorticity on cell edges at equal intervals, clipped and scaled. Memory order of all arrays as in files: the last
 * axis is the fastest.
 */
#ifndef GROVE_FLOW_SAMPLE_H
#define GROVE_FLOW_SAMPLE_H

#include "grove/flow_mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One sample. Start from grv_flow_sample_params_default. */
typedef struct grv_flow_sample_params {
    int64_t n[3];     /**< cells */
    double radius;    /**< of the sphere, cells; L of the convective unit */
    double centre[3]; /**< cells; the body must lie inside the box with a cell to spare */
    const grv_flow_shape *
        shape; /**< instead of the sphere: radius is half its longest side, see grv_flow_pose. NULL: a sphere */
    double rotation[3]; /**< of the shape, degrees; grv_flow_pose */
    double velocity[3]; /**< on the boundary and at the start, cells per time; not zero */
    bool has_exit;      /**< the upper x face lets the flow out; needs velocity[0] > 0 */
    double viscosity;   /**< cells^2 per time; Re = |velocity component scale| radius / viscosity */
    int64_t n_snapshots; /**< >= 1 */
    double
        interval; /**< between snapshots, in convective units radius / |velocity|; the first is after one interval */
    double clip;      /**< vorticity is clipped to +-clip, > 0 */
    double scale;     /**< and divided by scale, > 0 */
    double tolerance; /**< of the pressure, see grv_flow_params */
    grv_flow_scheme scheme;
    grv_flow_precision precision;
    int n_threads;
} grv_flow_sample_params;

/** Where one sample is written. */
typedef struct grv_flow_sample_arrays {
    float *input; /**< [x][y][z][3]: mu0 of the lower x, y and z faces of the cells */
    float *
        target; /**< [x][y][z][t]: vorticity about z, clipped and scaled; boundary cells use the boundary conditions */
    float *vorticity; /**< [x][y][z][t], as computed; may be NULL */
    float *pressure;  /**< [x][y][z][t], up to a constant; may be NULL */
} grv_flow_sample_arrays;

/** What it took. */
typedef struct grv_flow_sample_report {
    int64_t n_steps;
    int64_t n_cycles; /**< multigrid cycles of all pressure solves */
    int64_t n_solves;
    int64_t n_stagnated; /**< solves that ended above the tolerance */
    double
        largest_residual_ratio; /**< divergence after / before projection, the worst of all solves */
    double body_volume;         /**< as the grid has it, cells^3: grv_flow_body_volume */
    double set_up_seconds; /**< of `seconds`, until the first step: mostly distances to the body */
    double seconds;        /**< wall time */
} grv_flow_sample_report;

/** Called after every step.
 * @param done  part of the simulated time, in [0, 1]
 * @return false to stop */
typedef bool grv_flow_sample_progress(void *user, double done);

/** The paper's run at a quarter of its size: 32^3 cells, radius 3 at (8, 16, 16), velocity (1, 0.5, 0), radius / viscosity = 200,
 * 16 snapshots one convective unit apart, clip and scale 0.3, tolerance 1e-3, limited scheme, float, 1 thread. */
GRV_API grv_flow_sample_params grv_flow_sample_params_default(void);

/** Runs one simulation. Different samples may run in different threads. Not collective.
 * @param arrays  written; input and target must not be NULL. After an error their content is undefined
 * @param progress  may be NULL
 * @param[out] report  may be NULL
 * @errors GRV_E_ARG (parameter named, or the shape encloses nothing), GRV_E_NOMEM, GRV_E_NUMERIC (step named), GRV_E_INTERRUPTED when progress said so */
GRV_API grv_status grv_flow_sample_run(const grv_flow_sample_params *params,
                                       const grv_flow_sample_arrays *arrays,
                                       grv_flow_sample_progress *progress, void *user,
                                       grv_flow_sample_report *report) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
