/** @file surface_distance.h
 * Closest points on triangle surfaces, signed distances, winding numbers; at scattered points and on regular grids.
 *
 * All computation is in double, relative to the centre of the surface: the closest triangle is the one with the smallest squared distance, ties by
 * number, exactly as trying all triangles would find it. Results do not depend on the order of the points, on threads or on the instruction set
 * (winding numbers: on the instruction set in the last digits, see grv_surface_params.opening).
 * Nothing here is collective. Queries of one surface from several threads are safe.
 */
#ifndef GROVE_SURFACE_DISTANCE_H
#define GROVE_SURFACE_DISTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A triangle surface prepared for queries. */
typedef struct grv_surface grv_surface;

/** How inside (negative distances) and outside are told apart. */
typedef enum grv_surface_sign {
    GRV_SURFACE_UNSIGNED, /**< not at all: distances are >= 0 */
    GRV_SURFACE_WINDING, /**< inside is where the generalised winding number exceeds 1/2: for any surface, with holes, overlaps or duplicates */
    GRV_SURFACE_PSEUDONORMAL, /**< by the angle-weighted normal at the closest point (Baerentzen and Aanaes 2005): cheaper, for closed, consistently
                                 oriented surfaces that do not cross themselves */
} grv_surface_sign;

/** How a surface is prepared. */
typedef struct grv_surface_params {
    grv_surface_sign sign; /**< default: winding number */
    /** winding number: inside is where its magnitude exceeds 1/2, so that surfaces with normals inwards count; default false */
    bool either_orientation;
    /** winding number: parts of the surface farther from a point than this times their radius are summed by their moments (up to
                         the second order), in float; >= 1, or INFINITY for the sum over all triangles in double. Default 2. Values within 0.1 of 1/2 are
                         computed again with larger ones, at last exactly, before they decide a sign. The error as a function of it: docs/geometry.md */
    double opening;
    double origin
        [3]; /**< x' = (x - origin) * scale maps vertices and points before anything else; distances and closest points are those of x'. */
    double scale
        [3]; /**< > 0; default 1. DoMINO normalises each axis of its boxes to [-1, 1] in this way: grv_surface_params_normalize */
    int n_threads; /**< for the preparation; default 1 */
} grv_surface_params;

/** Defaults: winding number, opening 2, no mapping, 1 thread. */
GRV_API grv_surface_params grv_surface_params_default(void);

/** Sets origin and scale so that the box [lower, upper] becomes [-1, 1] on each axis: 2 (x - lower) / (upper - lower) - 1.
 * @param lower,upper [3], lower < upper */
GRV_API void grv_surface_params_normalize(grv_surface_params *params, const double lower[3],
                                          const double upper[3]);

/** Prepares a surface from vertices in double. Degenerate triangles count as the edge or point that they are; duplicates are kept, the lowest number wins.
 * A surface without triangles is allowed: nothing is ever found. Coordinates, mapped, must be below 1e150 in magnitude.
 * @param vertices [n_vertices][3], copied
 * @param triangles [n_triangles][3] vertex numbers, counter-clockwise seen from outside, copied
 * @param surface  owned by the caller: grv_surface_destroy
 * @errors GRV_E_ARG (parameters, vertex numbers, vertices of a triangle that are not finite), GRV_E_NOMEM */
GRV_API grv_status grv_surface_create_f64(int64_t n_vertices, const double *vertices,
                                          int64_t n_triangles, const int32_t *triangles,
                                          const grv_surface_params *params,
                                          grv_surface **surface) GRV_MUST_CHECK;

/** The same from vertices in float. */
GRV_API grv_status grv_surface_create_f32(int64_t n_vertices, const float *vertices,
                                          int64_t n_triangles, const int32_t *triangles,
                                          const grv_surface_params *params,
                                          grv_surface **surface) GRV_MUST_CHECK;

/** Releases a surface; NULL and a pointer to NULL are allowed. */
GRV_API void grv_surface_destroy(grv_surface **surface);

/** Facts about a prepared surface, in mapped coordinates. */
typedef struct grv_surface_info {
    int64_t n_triangles; /**< as given */
    double lower[3];     /**< bounding box of the triangles; 0 without triangles */
    double upper[3];     /**< its other corner */
    /** edges (vertices at one place count as one) where as many triangles run one way as the other do not; -1 for unsigned
                             surfaces. 0: the winding number is whole everywhere, and neighbouring points share its evaluation */
    int64_t n_open_edges;
    int64_t bytes;    /**< memory that the surface holds */
} grv_surface_info;

/** Facts about a surface. */
GRV_API grv_surface_info grv_surface_info_get(const grv_surface *surface);

/** How points are looked up. */
typedef struct grv_surface_query {
    /** what is farther is not found; default INFINITY. Small values save time */
    double max_distance;
    /** grids only. Finite: points within this distance of the surface are computed; the others get the distance to the closest
                            point of a neighbour, swept over the grid: never too small, but up to half a spacing too large. At least the longest
                            spacing. Default INFINITY: every point is computed */
    double band;
    int n_threads; /**< default 1 */
} grv_surface_query;

/** Defaults: everything, 1 thread. */
GRV_API grv_surface_query grv_surface_query_default(void);

/** What a query writes for each of n points, in mapped coordinates; arrays that are NULL are not written. Where nothing was found (max_distance, no
 * triangles, or a point that is not finite or farther than 1e150 half diagonals): distance, closest point and coordinates NaN, triangle -1. */
typedef struct grv_surface_result_f64 {
    double *distance;    /**< [n] signed as the surface says; 0 on the surface */
    double *closest;     /**< [n][3] closest point of the surface */
    int32_t *triangle;   /**< [n] its triangle */
    double *barycentric; /**< [n][3] its weights on the triangle's vertices, >= 0, sum 1 */
    double *
        winding; /**< [n] winding number as it was computed first; the surface must have been prepared for it */
    uint8_t *exact; /**< [n] grids: 1 where the distance was computed, 0 where it was swept */
} grv_surface_result_f64;

/** The same in float; computed in double and rounded once. */
typedef struct grv_surface_result_f32 {
    float *distance;    /**< [n] */
    float *closest;     /**< [n][3] */
    int32_t *triangle;  /**< [n] */
    float *barycentric; /**< [n][3] */
    float *winding;     /**< [n] */
    uint8_t *exact;     /**< [n] */
} grv_surface_result_f32;

/** Looks up scattered points, in any order (they are visited along a space-filling curve).
 * @param points [n][3], not mapped
 * @param query  NULL for the defaults
 * @errors GRV_E_ARG, GRV_E_NOMEM */
GRV_API grv_status grv_surface_points_f64(const grv_surface *surface, int64_t n,
                                          const double *points, const grv_surface_query *query,
                                          const grv_surface_result_f64 *result) GRV_MUST_CHECK;

/** The same in float. */
GRV_API grv_status grv_surface_points_f32(const grv_surface *surface, int64_t n,
                                          const float *points, const grv_surface_query *query,
                                          const grv_surface_result_f32 *result) GRV_MUST_CHECK;

/** A regular grid: point (i, j, k) is at origin + (i, j, k) * spacing (before mapping), its number (i * n[1] + j) * n[2] + k. */
typedef struct grv_surface_grid {
    int64_t n[3];      /**< points per axis */
    double origin[3];  /**< of point (0, 0, 0) */
    double spacing[3]; /**< > 0 */
} grv_surface_grid;

/** Looks up the points of a grid.
 * @param result  arrays of n[0]*n[1]*n[2] points
 * @errors GRV_E_ARG, GRV_E_NOMEM */
GRV_API grv_status grv_surface_grid_f64(const grv_surface *surface, const grv_surface_grid *grid,
                                        const grv_surface_query *query,
                                        const grv_surface_result_f64 *result) GRV_MUST_CHECK;

/** The same in float. */
GRV_API grv_status grv_surface_grid_f32(const grv_surface *surface, const grv_surface_grid *grid,
                                        const grv_surface_query *query,
                                        const grv_surface_result_f32 *result) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
