/** @file neighbours.h
 * Exact nearest neighbours and radius search in two and three dimensions: built once over points, asked with many queries.
 *
 * Squared distance of a query q and a point p, everywhere:
 *     ((q0 - p0)^2 + (q1 - p1)^2) + (q2 - p2)^2
 * each operation rounded to the type of the points, no fused multiply-add; in two dimensions without the last term. A distance is the square root
 * of that, rounded. "Nearest" orders by (squared distance, index); "within r" is squared distance <= r * r, with r rounded to the type and
 * its square rounded too; infinity is a radius. Brute force with this expression gives the same indices and the same bits, for any points: results
 * do not depend on threads, on the instruction set or on the order of queries. Squares of huge coordinates overflow to infinity, which is a
 * distance like others, ordered by index.
 *
 * Points and queries are float or double (both the same), [n][dimension], contiguous, and must be finite: GRV_E_ARG names the first row that is
 * not. No points, no queries and k = 0 are fine. Fewer than 2^31 - 1 points; any number of queries. Indices are int32_t.
 * n_threads < 1 counts as 1. Nothing here is collective. Searches are const: one structure may be searched from several threads.
 * Searches take scratch for 2^22 queries at most (16 bytes each) and for the neighbours of one query a thread.
 */
#ifndef GROVE_NEIGHBOURS_H
#define GROVE_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Type of points, queries and distances. */
typedef enum grv_neighbours_type {
    GRV_NEIGHBOURS_F32 = 0, /**< float */
    GRV_NEIGHBOURS_F64 = 1  /**< double */
} grv_neighbours_type;

/** Points ordered for searching. */
typedef struct grv_neighbours grv_neighbours;

/** Builds the structure; the points are copied and may go afterwards.
 * Holds 16 bytes a point and about 2 of boxes (float; double 28 and 3), and while it is built 16 (32) more.
 * @param points  [n][dimension]
 * @param n  0 <= n < 2^31 - 1
 * @param dimension  2 or 3
 * @param out  owned by the caller, released with grv_neighbours_destroy; NULL on failure
 * @errors GRV_E_ARG for a point that is not finite, or arguments out of range; GRV_E_NOMEM */
GRV_API grv_status grv_neighbours_create(const void *points, int64_t n, int dimension,
                                         grv_neighbours_type type, int n_threads,
                                         grv_neighbours **out) GRV_MUST_CHECK;

/** Releases it; NULL is allowed. */
GRV_API void grv_neighbours_destroy(grv_neighbours **neighbours);

/** Bytes that the structure holds. */
GRV_API int64_t grv_neighbours_bytes(const grv_neighbours *neighbours);

/** How to search for the k nearest. */
typedef struct grv_nearest_params {
    int64_t k;    /**< neighbours of each query, >= 0, <= 2^24 */
    bool squared; /**< distances are squared ones */
    bool
        exclude_self; /**< query i is point i, which is left out (by its number: a twin at the same place stays); needs n queries */
    const int32_t *
        excluded; /**< [n_queries] number of a point that is left out, or -1; or NULL. Not together with exclude_self */
    int32_t pad_index;   /**< of the places for which there is no point; default -1 */
    double pad_distance; /**< default infinity */
    int n_threads;       /**< default 1 */
} grv_nearest_params;

/** k = 1 and the defaults. */
GRV_API grv_nearest_params grv_nearest_params_default(void);

/** The k nearest points of each query, sorted by (squared distance, index).
 * @param queries  [n_queries][dimension], in any order: they are searched along a curve through space, results come in the given order
 * @param params  NULL for the defaults
 * @param indices  [n_queries][k], written
 * @param distances  [n_queries][k] of the points' type, written; NULL if not wanted
 * @errors GRV_E_ARG, also for a query that is not finite (nothing is written); GRV_E_NOMEM */
GRV_API grv_status grv_neighbours_nearest(const grv_neighbours *neighbours, const void *queries,
                                          int64_t n_queries, const grv_nearest_params *params,
                                          int32_t *indices, void *distances) GRV_MUST_CHECK;

/** Which of the points within a radius, if there are more than places. */
typedef enum grv_radius_order {
    GRV_RADIUS_NEAREST = 0,   /**< the nearest, sorted by (squared distance, index) */
    GRV_RADIUS_GRID_ORDER = 1 /**< the first ones in the order of a hash grid (below) */
} grv_radius_order;

/** One radius of a search and where its results go: rows of max_points places, those behind the last neighbour filled with zero. */
typedef struct grv_radius_rows {
    double radius;      /**< >= 0 */
    int64_t max_points; /**< places of a row, >= 0, <= 2^24 */
    int32_t *indices;   /**< [n_queries][max_points], written */
    void *distances;    /**< [n_queries][max_points] of the points' type, written; or NULL */
    void *
        points; /**< [n_queries][max_points][dimension]: the neighbours' coordinates, written; or NULL */
    int32_t *counts; /**< [n_queries]: neighbours in each row, written; or NULL */
} grv_radius_rows;

/** How to search within radii. */
typedef struct grv_radius_params {
    grv_radius_order order; /**< default nearest */
    bool squared;           /**< distances are squared ones */
    double
        cell_width_factor; /**< grid order: width of a cell over the radius; default 0.5, DoMINO up to 25.06 used 1 */
    const void *
        source_points; /**< the points of grv_neighbours_create: needed for grid order and for rows with `points`; else NULL */
    int n_threads;     /**< default 1 */
} grv_radius_params;

/** The defaults. */
GRV_API grv_radius_params grv_radius_params_default(void);

/** Up to max_points points within each of several radii, in one pass over the queries.
 *
 * Grid order is the order in which DoMINO's neighbours come out of Warp's hash grid, so that networks trained on them see the same ones:
 * 128^3 buckets; the cell of a point is floor(coordinate * (1 / width)) per axis, plus 2^20 (at least 0), modulo 128; points of a bucket ascend by
 * index; a query visits the cells from floor((q - r) * (1 / width)) to floor((q + r) * (1 / width)), at most 128 an axis, z outermost, then y, x
 * innermost, and keeps the first max_points within the radius. All in the type of the points. A grid is made for each radius and call.
 * @param rows  [n_radii]
 * @errors GRV_E_ARG, also for a query that is not finite (nothing is written); GRV_E_NOMEM */
GRV_API grv_status grv_neighbours_within(const grv_neighbours *neighbours, const void *queries,
                                         int64_t n_queries, const grv_radius_params *params,
                                         const grv_radius_rows *rows, int n_radii) GRV_MUST_CHECK;

/** All points within radii, first pass: how many.
 * @param radii  [n_radii], each >= 0
 * @param offsets  [n_radii][n_queries + 1], written: row q of radius r holds neighbours offsets[r][q] to offsets[r][q + 1] - 1
 * @errors GRV_E_ARG, GRV_E_NOMEM */
GRV_API grv_status grv_neighbours_count(const grv_neighbours *neighbours, const void *queries,
                                        int64_t n_queries, const double *radii, int n_radii,
                                        int n_threads, int64_t *offsets) GRV_MUST_CHECK;

/** Where the second pass puts all points within one radius. */
typedef struct grv_radius_lists {
    double radius;          /**< as in the first pass */
    const int64_t *offsets; /**< [n_queries + 1] of the first pass */
    int32_t *indices;       /**< [offsets[n_queries]], each row ascending; written */
    void *distances;        /**< [offsets[n_queries]] of the points' type, written; or NULL */
    void *points;           /**< [offsets[n_queries]][dimension], written; or NULL */
} grv_radius_lists;

/** All points within radii, second pass. Of params, `order` and `cell_width_factor` are not used.
 * @param lists  [n_radii], for the same queries in the same order
 * @errors GRV_E_ARG, also if the offsets are not those of these queries (the rows until then are written); GRV_E_NOMEM */
GRV_API grv_status grv_neighbours_fill(const grv_neighbours *neighbours, const void *queries,
                                       int64_t n_queries, const grv_radius_params *params,
                                       const grv_radius_lists *lists, int n_radii) GRV_MUST_CHECK;

/** Gradients of gathered points. */
typedef struct grv_gathered_gradients {
    grv_neighbours_type type; /**< of gradients and sums */
    int dimension;            /**< values of a point, >= 1 */
    int64_t n_points;         /**< points that were gathered from */
    int64_t n_rows;           /**< queries */
    int64_t row_length;       /**< places of a row; not used with offsets */
    const int32_t
        *counts; /**< [n_rows] places in use of each row; NULL for all. Not used with offsets */
    const int64_t *offsets; /**< [n_rows + 1] of a list; NULL for rows of row_length */
    const int32_t *indices; /**< of the gathered points, as a search gave them */
    const void *gradients;  /**< with respect to each gathered point, [...indices][dimension] */
} grv_gathered_gradients;

/** The adjoint of gathering points: sums[indices[e]] += gradients[e] for all e in ascending order, each sum in the type of the gradients; the same bits
 * for any number of threads. Each thread owns a range of points and reads all indices.
 * @param sums  [n_points][dimension], added to
 * @errors GRV_E_ARG for an index out of range (nothing is added) */
GRV_API grv_status grv_neighbours_scatter(const grv_gathered_gradients *gathered, int n_threads,
                                          void *sums) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
