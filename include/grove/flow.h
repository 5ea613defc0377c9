/** @file flow.h
 * Incompressible flow around bodies in a box.
 *
 * Navier-Stokes equations of density 1 on a staggered grid of cells of length 1, in two or three dimensions; bodies given by their signed
 * distance are immersed in the grid (boundary data immersion). A two-dimensional problem is one whose third direction is periodic
 * and has one cell. Equations, conventions and validation: docs/flow.md.
 *
 * The domain is [0, n0] x [0, n1] x [0, n2]; the centre of cell (i,j,k) is at (i+1/2, j+1/2, k+1/2). Lengths are in cells; the
 * user's scales follow from the Reynolds number. Arrays are row-major, [x][y][z], z fastest.
 *
 * A flow may be used by one thread at a time; it uses n_threads threads itself. Results are bit-identical for any number
 * of threads. Not collective.
 */
#ifndef GROVE_FLOW_H
#define GROVE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A simulation in progress. */
typedef struct grv_flow grv_flow;

/** How the convected value at a face is found from the points around it. */
typedef enum grv_flow_scheme {
    GRV_FLOW_LIMITED = 0, /**< third-order upwind, limited: robust; the default */
    GRV_FLOW_CENTRAL = 1, /**< mean of both sides: no numerical diffusion, may oscillate */
    GRV_FLOW_VAN_LEER = 2 /**< second-order upwind with the limiter of van Leer */
} grv_flow_scheme;

/** Type in which the fields are held. Sums are always taken in double. */
typedef enum grv_flow_precision { GRV_FLOW_FLOAT32 = 0, GRV_FLOW_FLOAT64 = 1 } grv_flow_precision;

/** Signed distance of a position from a body: positive in the fluid, gradient of length about 1 near the surface.
 * Several bodies: the smallest distance. Called by one thread at a time.
 * @param body  of the caller
 * @param position [3]  in cells
 * @param time
 * @param velocity [3]  of the body at that position; zero on entry */
typedef double grv_flow_distance(void *body, const double position[3], double time,
                                 double velocity[3]);

/** A vector that depends on time, e.g. a boundary velocity.
 * @param value [3]  written */
typedef void grv_flow_vector(void *user, double time, double value[3]);

/** A velocity field.
 * @return component `component` (0, 1, 2) at the position, in cells */
typedef double grv_flow_field(void *user, int component, const double position[3]);

/** Built-in bodies; their addresses are the `body` of the distance functions below. All of them can move steadily. */
typedef struct grv_flow_sphere {
    double centre[3]; /**< at time 0, cells */
    double radius;    /**< cells */
    double velocity[3];
} grv_flow_sphere;

/** A box with sharp edges along the axes. */
typedef struct grv_flow_box {
    double centre[3];    /**< at time 0, cells */
    double half_size[3]; /**< cells */
    double velocity[3];
} grv_flow_box;

/** An infinite circular cylinder: a circle in the plane across its axis. */
typedef struct grv_flow_circle {
    double centre[3]; /**< at time 0, cells; the component along the axis does not matter */
    double radius;    /**< cells */
    int axis;         /**< 0, 1 or 2 */
    double velocity[3];
} grv_flow_circle;

/** Signed distance of a grv_flow_sphere. Thread-safe. */
GRV_API double grv_flow_sphere_distance(void *sphere, const double position[3], double time,
                                        double velocity[3]);
/** Signed distance of a grv_flow_box. Thread-safe. */
GRV_API double grv_flow_box_distance(void *box, const double position[3], double time,
                                     double velocity[3]);
/** Signed distance of a grv_flow_circle. Thread-safe. */
GRV_API double grv_flow_circle_distance(void *circle, const double position[3], double time,
                                        double velocity[3]);

/** A body inside a triangle surface: flow_mesh.h. */
typedef struct grv_flow_mesh grv_flow_mesh;

/** What is simulated and how. Start from grv_flow_params_default. */
typedef struct grv_flow_params {
    int64_t n[3];     /**< cells; powers of two times a small number are fastest */
    bool periodic[3]; /**< otherwise both faces of the direction have the boundary velocity */
    bool has_exit; /**< the upper x face lets the flow out by convection; needs periodic[0] false */
    double velocity[3]; /**< boundary velocity, and initial velocity everywhere; cells per time */
    grv_flow_vector *
        velocity_of; /**< replaces `velocity` where not NULL. The whole fluid is accelerated by its derivative, as seen from
                                        an accelerated frame, so that the pressure shows what bodies do only */
    grv_flow_vector *force_of;   /**< acceleration of the fluid by a body force; NULL: none */
    void *user;                  /**< argument of velocity_of and force_of */
    double viscosity;            /**< kinematic, cells^2 per time, >= 0 */
    grv_flow_distance *distance; /**< NULL: no body */
    void *body;                  /**< argument of distance; borrowed as long as the flow lives */
    bool body_moves;             /**< the body is measured again at every step */
    const grv_flow_mesh *
        mesh; /**< instead of distance: a body at rest; borrowed as long as the flow lives. NULL: none */
    double mesh_centre[3]; /**< cells: where the mesh's centre is */
    grv_flow_scheme scheme;
    grv_flow_precision precision;
    int n_threads;   /**< >= 1 */
    double first_dt; /**< length of the first step, > 0; later ones follow the limit of stability */
    double max_dt;   /**< > 0 */
    double tolerance; /**< of the pressure: norm of the divergence after / before, in (0, 1) */
    int max_cycles;   /**< multigrid cycles a solve at most, >= 1 */
    int fixed_cycles; /**< where positive: exactly that many, whatever the residual (benchmarks) */
    int half_sweeps;  /**< red-black Gauss-Seidel half sweeps a level and cycle, 1 to 16 */
} grv_flow_params;

/** 32^3 cells, boundary velocity (1, 0, 0), viscosity 0.04, no body, limited scheme, float, one thread, first_dt 0.25, max_dt 10,
 * tolerance 1e-3, at most 32 cycles of 4 half sweeps. */
GRV_API grv_flow_params grv_flow_params_default(void);

/** Where a simulation stands. */
typedef struct grv_flow_state {
    double time;
    double dt;      /**< of the last step */
    double next_dt; /**< that the limit of stability allows */
    int64_t n_steps;
    int64_t n_solves; /**< pressure solves, two a step */
    int64_t n_cycles; /**< multigrid cycles of all solves */
    int last_cycles;  /**< of the last solve */
    double
        last_residual_ratio; /**< ||residual|| / ||divergence before|| of the last solve; 0 if there was no divergence */
    double largest_residual_ratio; /**< of all solves that did not end at the level of rounding */
    int64_t n_stagnated; /**< solves that rounding or the cycle limit ended above the tolerance */
} grv_flow_state;

/** Takes all memory, measures the body, and starts from the boundary velocity everywhere.
 * @param[out] flow  to be destroyed with grv_flow_destroy; NULL on failure
 * @errors GRV_E_ARG with the name of the parameter, GRV_E_NOMEM */
GRV_API grv_status grv_flow_create(const grv_flow_params *params, grv_flow **flow) GRV_MUST_CHECK;

/** Releases a flow and sets the pointer to NULL. NULL is allowed. */
GRV_API void grv_flow_destroy(grv_flow **flow);

/** Sets the velocity from a function, evaluated at the middle of every face, and applies the boundary conditions.
 * The field need not be free of divergence: the first step projects it. */
GRV_API void grv_flow_velocity_set(grv_flow *flow, grv_flow_field *field, void *user);

/** One step as long as stability allows (state.next_dt).
 * @errors GRV_E_NUMERIC when a number is no longer finite, naming the step; the flow may then only be destroyed */
GRV_API grv_status grv_flow_step(grv_flow *flow) GRV_MUST_CHECK;

/** One step, shortened where needed so that `time` is met exactly: the last two steps before it share what is left.
 * @param[out] is_there  whether the flow is at `time` (or past it: then nothing is done)
 * @errors as grv_flow_step */
GRV_API grv_status grv_flow_step_towards(grv_flow *flow, double time,
                                         bool *is_there) GRV_MUST_CHECK;

/** Steps until exactly `time`; the last two steps are shortened to meet it. Does nothing if time has passed.
 * @errors as grv_flow_step */
GRV_API grv_status grv_flow_run_until(grv_flow *flow, double time) GRV_MUST_CHECK;

/** Where the simulation stands. */
GRV_API grv_flow_state grv_flow_state_get(const grv_flow *flow);

/** Memory that a flow of these parameters takes, in bytes; 0 if the parameters are not valid. Nothing is allocated. While a mesh is measured, up to
 * 173 bytes for each cell of the box around it come on top. */
GRV_API int64_t grv_flow_bytes(const grv_flow_params *params);

/** What grv_flow_values copies out, one value a cell. */
typedef enum grv_flow_quantity {
    GRV_FLOW_VELOCITY,  /**< component d on the lower d-face of the cell */
    GRV_FLOW_VORTICITY, /**< component d on the lower edge of the cell that runs along d; boundary edges use the ghost values */
    GRV_FLOW_FACE_OPEN, /**< mu0 of the lower d-face: 1 in the fluid, 0 inside the body and on walls, smooth between */
    GRV_FLOW_PRESSURE,  /**< at the centre, up to a constant; d is not used */
    GRV_FLOW_DIVERGENCE /**< of the cell; d is not used */
} grv_flow_quantity;

/** Copies a quantity to the caller.
 * @param component  0, 1, 2
 * @param[out] values  double [n0][n1][n2] */
GRV_API void grv_flow_values(const grv_flow *flow, grv_flow_quantity quantity, int component,
                             double *values);

/** Kinetic energy of the domain: half the sum of the squared face velocities, averaged to the cells. */
GRV_API double grv_flow_kinetic_energy(const grv_flow *flow);

/** Root of the mean square, and the largest absolute value, of the divergence over cells that are not inside a body.
 * @param[out] largest  may be NULL */
GRV_API double grv_flow_divergence(const grv_flow *flow, double *largest);

/** Volume of the body as the grid has it, in cells^3: the mean over the three directions of the sum of 1 - mu0. */
GRV_API double grv_flow_body_volume(const grv_flow *flow);

/** Force of the fluid on the body as the surface integral of pressure and viscous stress, smoothed over one cell to each side.
 * It converges from below; see grv_flow_control_volume_force.
 * @param[out] pressure [3]  part of the pressure
 * @param[out] viscous [3]  part of the viscosity */
GRV_API void grv_flow_surface_force(const grv_flow *flow, double pressure[3], double viscous[3]);

/** Watches the momentum balance of the cells low <= cell < high, which must hold the body and lie inside the domain, from the
 * next step on. Costs a pass over these cells a step.
 * @errors GRV_E_ARG for a box that is empty or reaches out of the domain */
GRV_API grv_status grv_flow_control_volume_set(grv_flow *flow, const int64_t low[3],
                                               const int64_t high[3]) GRV_MUST_CHECK;

/** Force of the fluid on what is inside the control volume, mean over the last step: what flows in, plus stress on the
 * surface, less what the momentum inside grew by. Forces in accelerated frames and body forces are not taken out.
 * @param[out] force [3]
 * @errors GRV_E_ARG if no control volume was set or no step was made since */
GRV_API grv_status grv_flow_control_volume_force(const grv_flow *flow,
                                                 double force[3]) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
