/** @file flow_mesh.h
 * Bodies of any shape in the flow solver: the inside of a triangle surface, from a file or from arrays.
 *
 * A shape is a surface without size and place, read and repaired once. A mesh is a shape at a size and an angle, prepared for distances;
 * grv_flow_params says where in the domain it is. Both are not changed after they are made, and several flows and threads may use them.
 * Inside is where the magnitude of the winding number exceeds 1/2: triangles may be turned either way, overlap, or leave holes, which
 * the winding number closes smoothly. Nothing here is collective.
 */
#ifndef GROVE_FLOW_MESH_H
#define GROVE_FLOW_MESH_H

#include "grove/flow.h"
#include "grove/triangles.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A surface, welded, without degenerate and duplicate triangles; its origin is the centre of the box around it, half the longest side of
 * that box is 1. */
typedef struct grv_flow_shape grv_flow_shape;

/** Makes a shape from triangles. Triangles that disagree with their neighbours are turned over, and closed parts so that they face outward: a cavity, which no
 * flow reaches, is filled.
 * @param name  for messages, copied: the file's
 * @param triangles  copied
 * @param shape  owned by the caller: grv_flow_shape_destroy; NULL on failure
 * @errors GRV_E_ARG without triangles that have an area, and for a surface that encloses nothing: half of its area or more does not part an inside from an
 *         outside. GRV_E_NOMEM */
GRV_API grv_status grv_flow_shape_create(const char *name, const grv_triangles *triangles,
                                         grv_flow_shape **shape) GRV_MUST_CHECK;

/** Makes a shape from a mesh file: whatever grv_mesh_read opens. Errors as that and grv_flow_shape_create. */
GRV_API grv_status grv_flow_shape_read(const char *path, grv_flow_shape **shape) GRV_MUST_CHECK;

/** Releases a shape; NULL and a pointer to NULL are allowed. */
GRV_API void grv_flow_shape_destroy(grv_flow_shape **shape);

/** Size and angle of a shape. */
typedef struct grv_flow_pose {
    double
        half_length; /**< cells, > 0: half the longest side of the box around the shape, before it is turned */
    double rotation
        [3]; /**< degrees, about x, then y, then z, axes that stay; the shape turns about the centre of that box */
} grv_flow_pose;

/** Box around a shape in a pose, relative to its centre, in cells. */
GRV_API void grv_flow_shape_box(const grv_flow_shape *shape, const grv_flow_pose *pose,
                                double lower[3], double upper[3]);

/** Prepares a shape in a pose.
 * @param mesh  owned by the caller: grv_flow_mesh_destroy; NULL on failure
 * @errors GRV_E_ARG for a pose that is not finite or has no size, GRV_E_NOMEM */
GRV_API grv_status grv_flow_mesh_create(const grv_flow_shape *shape, const grv_flow_pose *pose,
                                        int n_threads, grv_flow_mesh **mesh) GRV_MUST_CHECK;

/** Releases a mesh; NULL and a pointer to NULL are allowed. */
GRV_API void grv_flow_mesh_destroy(grv_flow_mesh **mesh);

/** Facts about a mesh; lengths in cells, relative to its centre. */
typedef struct grv_flow_mesh_info {
    int64_t n_triangles;
    int64_t n_open_edges; /**< where as many triangles run one way as the other do not; 0: closed */
    double lower[3];      /**< box around it */
    double upper[3];      /**< its other corner */
    double area;          /**< of the surface */
    double
        volume; /**< enclosed, >= 0: what several parts enclose counts several times; of an open surface that of the cones to its centre */
    uint32_t checksum; /**< CRC-32C of the shape, whatever its pose: tells two shapes apart */
} grv_flow_mesh_info;

/** Facts about a mesh. */
GRV_API grv_flow_mesh_info grv_flow_mesh_info_get(const grv_flow_mesh *mesh);

/** Bodies are smoothed over one cell to each side of their surface: parts thinner than this many cells are nowhere quite closed, and leak. */
#define GRV_FLOW_THIN_CELLS 2.0

/** Parts of a body that are thinner than GRV_FLOW_THIN_CELLS. Thickness is measured from points spread evenly over the surface along the
 * inward normal to where the body ends, in steps of at least 1/20 cell; it counts where the surface there faces the other way within 60 degrees, so that
 * edges of less than 60 degrees are thin, and others are not. */
typedef struct grv_flow_thin {
    double share;    /**< of the surface's area, in [0, 1] */
    int64_t n_parts; /**< pieces, thin places in neighbouring cells being one */
    double thinnest; /**< cells; GRV_FLOW_THIN_CELLS where no part is thin */
} grv_flow_thin;

/** Looks for thin parts; about as much work as measuring the body on the grid.
 * @errors GRV_E_NOMEM */
GRV_API grv_status grv_flow_mesh_thin_get(const grv_flow_mesh *mesh, int n_threads,
                                          grv_flow_thin *thin) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
