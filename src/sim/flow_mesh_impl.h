/* Shapes and meshes of bodies, and what the solver asks of them. Internal to src/sim. */
#ifndef GRVI_SIM_FLOW_MESH_IMPL_H
#define GRVI_SIM_FLOW_MESH_IMPL_H

#include "grove/flow_mesh.h"
#include "grove/point_sampling.h"
#include "grove/surface_distance.h"

struct grv_flow_shape {
    char *name;
    grv_triangles *surface; /* points in double */
    double area, volume;    /* >= 0 */
    double outward;         /* 1 where the triangles' normals point outward, else -1 */
    uint32_t checksum;      /* of the surface */
};

/* Points [n][3] of a shape in a pose, in cells (NULL: not wanted), and their box. */
void grvi_flow_shape_place(const grv_flow_shape *shape, const grv_flow_pose *pose, double *points,
                           double lower[3], double upper[3]);

struct grv_flow_mesh {
    grv_triangles *triangles; /* points in double, cells, relative to the centre */
    grv_surface *surface;     /* the same, for distances */
    grv_surface_sampler *sampler;
    double outward; /* as of the shape */
    grv_flow_mesh_info info;
};

/* Unit outward normal of a triangle. */
void grvi_flow_mesh_normal(const grv_flow_mesh *mesh, int32_t triangle, double normal[3]);

/* Where a body is looked at: the middle of the lower face of a cell along 0, 1, 2, or the middle of the cell. */
enum { GRVI_FLOW_CENTRE = 3, GRVI_FLOW_PLACES = 4 };

/* A mesh on the grid of a flow: distances and normals in the cells of a box, all that it may touch. */
typedef struct grvi_flow_mesh_samples {
    int64_t low[3], n[3]; /* the box */
    double *distance
        [GRVI_FLOW_PLACES]; /* [n0][n1][n2], exact within one cell of the surface; NULL: the box is empty */
    double *normal[GRVI_FLOW_PLACES]; /* [n0][n1][n2][3] */
} grvi_flow_mesh_samples;

/* Measures a mesh whose centre is at `centre` on a grid of n cells. Errors: GRV_E_NOMEM, and then nothing is to be released */
grv_status grvi_flow_mesh_sample(const grv_flow_mesh *mesh, const double centre[3],
                                 const int64_t n[3], int n_threads,
                                 grvi_flow_mesh_samples *samples) GRV_MUST_CHECK;
void grvi_flow_mesh_samples_fini(grvi_flow_mesh_samples *samples);
/* The distance at a place of a cell, INFINITY outside of the box, and the unit normal. */
double grvi_flow_mesh_samples_get(const grvi_flow_mesh_samples *samples, const int64_t cell[3],
                                  int place, double normal[3]);

#endif
