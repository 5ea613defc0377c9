/* The flow object and what its files share. Internal to src/sim. */
#ifndef GRVI_SIM_FLOW_IMPL_H
#define GRVI_SIM_FLOW_IMPL_H

#include "grove/flow.h"
#include "sim/multigrid.h"

/* Faces whose velocity the body changes; see grvi_flow_body_face. */
typedef struct grvi_flow_faces {
    grvi_flow_body_face *face;
    int64_t n, capacity;
} grvi_flow_faces;

/* A cell within one cell of the surface: its weight in the surface integral times the normal. */
typedef struct grvi_flow_surface_cell {
    int64_t cell[3];
    double area[3];
} grvi_flow_surface_cell;

typedef struct grvi_flow_control_volume {
    bool is_set, has_force;
    int64_t low[3], high[3];
    double momentum[3], inflow[3]; /* at the end of the last step */
    double force[3];
} grvi_flow_control_volume;

struct grv_flow {
    grv_flow_params params;
    const grvi_flow_kernels *kernels;
    bool is_double;
    grvi_flow_grid grid;
    grvi_multigrid
        multigrid; /* holds the face coefficients mu0 and, in level 0's x, the scaled pressure */
    double pressure_factor; /* pressure = pressure_factor x */
    void *fields;           /* memory of the six velocity fields */
    void *velocity[3];      /* at the present time; during a step u0, then the result */
    void *predicted[3];
    void *scratch;            /* of the convection kernel, per thread */
    double *plane_value;      /* [n0] one number a plane */
    grvi_flow_faces faces[3]; /* near the body, per component */
    double *immersed;         /* [largest of faces[].n] */
    grvi_flow_surface_cell *surface;
    int64_t n_surface, surface_capacity;
    double boundary[3]; /* boundary velocity at the present time */
    grvi_flow_control_volume control;
    grv_flow_state state;
};

/* flow_body.c: measures the body at a time and updates coefficients. Errors: GRV_E_NOMEM, GRV_E_NUMERIC (distance not finite) */
grv_status grvi_flow_measure(grv_flow *flow, double time) GRV_MUST_CHECK;
/* u = BDIM of the body with f = first_weight first + second_weight second, component by component; result in `first`. */
void grvi_flow_immerse(const grv_flow *flow, void *const *first, double first_weight,
                       void *const *second, double second_weight);

/* flow_boundary.c: ghosts and boundary faces of a velocity. exit_is_set: the exit face holds its values already. */
void grvi_flow_boundary_apply(const grv_flow *flow, void *const *velocity);
/* Convects the exit plane of `old` (a velocity with filled ghosts) by dt and writes it to the exit face of `next`. */
void grvi_flow_exit_convect(const grv_flow *flow, const void *old, double dt, void *next);
/* Copies the exit plane. */
void grvi_flow_exit_copy(const grv_flow *flow, const void *from, void *to);

/* flow_diagnostics.c: takes the balance of the control volume after a step of length dt (0: only starts it). */
void grvi_flow_control_volume_update(grv_flow *flow, double dt);

#endif
