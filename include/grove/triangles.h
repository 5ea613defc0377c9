/** @file triangles.h
 * Triangle surfaces as plain arrays: taken from meshes, repaired, measured.
 *
 * Every repair keeps the order of what stays, and the result depends on the arrays only. A NaN coordinate never compares equal with a tolerance, but
 * the same bits are welded. Nothing here is collective.
 */
#ifndef GROVE_TRIANGLES_H
#define GROVE_TRIANGLES_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/mesh.h"
#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A triangle surface; all arrays are owned by it. */
typedef struct grv_triangles {
    int64_t n_points;    /**< at most INT32_MAX */
    int64_t n_triangles; /**< at most INT32_MAX */
    grv_store_type type; /**< of the points: GRV_STORE_F32 or GRV_STORE_F64 */
    void *points;        /**< [n_points, 3] */
    int32_t *
        triangles; /**< [n_triangles, 3], each in [0, n_points), counter-clockwise seen from outside */
    int32_t *
        faces; /**< [n_triangles]: the cell of the mesh, or facet of the file, that the triangle is from */
} grv_triangles;

/** Copies triangles from plain arrays; faces are numbered from 0.
 * @param type  GRV_STORE_F32 or GRV_STORE_F64
 * @param points  [n_points, 3]
 * @param triangles  [n_triangles, 3]
 * @param out  owned by the caller, released by grv_triangles_destroy; NULL on failure
 * @errors GRV_E_ARG for an index out of range or too many, GRV_E_NOMEM */
GRV_API grv_status grv_triangles_create(grv_store_type type, int64_t n_points, const void *points,
                                        int64_t n_triangles, const int32_t *triangles,
                                        grv_triangles **out) GRV_MUST_CHECK;
/** Triangles of a mesh: polygons, quadrilaterals and pixels are fanned from their first point (right for convex ones; of a concave one the area may be
 * wrong, its boundary and the enclosed volume are not), strips are taken apart; vertices, lines and cells with a volume are left out. Points are copied.
 * @errors GRV_E_ARG for an image or structured grid, or if more than INT32_MAX points or triangles result, GRV_E_NOMEM */
GRV_API grv_status grv_triangles_from_mesh(const grv_mesh *mesh,
                                           grv_triangles **out) GRV_MUST_CHECK;
/** A SURFACE mesh with these points and triangles, for writing; it owns copies.
 * @errors GRV_E_NOMEM */
GRV_API grv_status grv_triangles_to_mesh(const grv_triangles *triangles,
                                         grv_mesh **out) GRV_MUST_CHECK;
/** Gives a mesh made by grv_triangles_to_mesh the data of the mesh that the triangles were taken from: cell data row by row as `faces` says, field data and time; point
 * data only if all points are still there (nothing was welded or dropped).
 * @param from  of grv_triangles_from_mesh
 * @param to  of grv_triangles_to_mesh; its data are added to
 * @errors GRV_E_ARG if a face or the points do not belong to these meshes, GRV_E_NOMEM */
GRV_API grv_status grv_triangles_carry_data(const grv_triangles *triangles, const grv_mesh *from,
                                            grv_mesh *to) GRV_MUST_CHECK;
/** Bounding box of the points that triangles use; NaN without triangles, and on an axis with a NaN coordinate. */
GRV_API void grv_triangles_box(const grv_triangles *triangles, double lower[3], double upper[3]);
/** Releases the triangles; *triangles may be NULL. */
GRV_API void grv_triangles_destroy(grv_triangles **triangles);

/** Joins points: those with the same bits (-0 counts as 0), then, with a tolerance > 0, each point in order to the lowest-numbered one that was kept within that
 * distance of it. The first of each keeps its coordinates; points that no triangle uses stay. Expected O(n).
 * @param tolerance  in the unit of the points, >= 0 and finite
 * @param n_joined  points that are gone; may be NULL
 * @errors GRV_E_ARG, GRV_E_NOMEM; the triangles are unchanged then */
GRV_API grv_status grv_triangles_weld(grv_triangles *triangles, double tolerance,
                                      int64_t *n_joined) GRV_MUST_CHECK;

/** What grv_triangles_clean took out. */
typedef struct grv_triangles_cleaned {
    int64_t
        n_degenerate; /**< triangles with two equal indices, no area (cross product of the edges exactly 0) or a coordinate that is not finite */
    int64_t
        n_duplicate;  /**< triangles with the same three points as an earlier one, in any order */
    int64_t n_unused; /**< points that no triangle uses (any more) */
} grv_triangles_cleaned;

/** Drops degenerate triangles, duplicates, and then points that are not used. Weld first.
 * @param cleaned  may be NULL
 * @errors GRV_E_NOMEM; the triangles are unchanged then */
GRV_API grv_status grv_triangles_clean(grv_triangles *triangles,
                                       grv_triangles_cleaned *cleaned) GRV_MUST_CHECK;

/** What grv_triangles_orient found and did. */
typedef struct grv_triangles_oriented {
    int64_t n_components; /**< parts that hang together by edges of exactly two triangles */
    int64_t n_flipped;    /**< triangles that were turned over */
    int64_t
        n_conflicts; /**< edges whose two triangles cannot agree (a Moebius band has one or more) */
} grv_triangles_oriented;

/** Turns triangles over until neighbours agree, component by component; of the two ways, the one that turns fewer (a tie leaves the first triangle alone).
 * Weld first.
 * @param outward  then turn closed components whose volume is negative as a whole, so that normals point outward. Not for surfaces with cavities,
 *                 whose inner shells have a negative volume rightly
 * @param oriented  may be NULL
 * @errors GRV_E_NOMEM; the triangles are unchanged then */
GRV_API grv_status grv_triangles_orient(grv_triangles *triangles, bool outward,
                                        grv_triangles_oriented *oriented) GRV_MUST_CHECK;

/** Figures of a surface; computed in double. */
typedef struct grv_triangles_measure {
    double area; /**< sum over the triangles */
    double
        volume; /**< enclosed, with sign: positive if normals point outward; means something for closed surfaces only */
    double centre
        [3]; /**< centre of mass of the surface: triangle centres weighted by area; NaN without area */
    double volume_centre[3]; /**< centre of mass of the enclosed volume; NaN if the volume is 0 */
    double lower[3],
        upper[3];    /**< bounding box of the points that triangles use; NaN without triangles */
    int64_t n_edges; /**< different pairs of points that are joined */
    int64_t n_boundary_edges; /**< used by one triangle */
    int64_t n_crowded_edges;  /**< used by more than two */
    int64_t n_opposed_edges;  /**< used by two triangles that are turned differently */
    bool
        is_watertight; /**< there are triangles, and every edge is used by exactly two, in opposite directions */
} grv_triangles_measure;

/** Measures a surface; weld first, or every edge is a boundary. A coordinate that is not finite makes what depends on it NaN.
 * @errors GRV_E_NOMEM */
GRV_API grv_status grv_triangles_measure_get(const grv_triangles *triangles,
                                             grv_triangles_measure *measure) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
