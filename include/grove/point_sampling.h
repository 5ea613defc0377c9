/** @file point_sampling.h
 * Random points on surfaces, inside surfaces and in boxes; subsets without replacement; farthest points.
 *
 * Random numbers are counter-based (grv_random_bits): sample number i depends on the seed and i only, so that any thread, call or rank can make any
 * part of a sequence. Nothing here is collective.
 */
#ifndef GROVE_POINT_SAMPLING_H
#define GROVE_POINT_SAMPLING_H

#include <stdint.h>

#include "grove/status.h"
#include "grove/surface_distance.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Draws points of a triangle surface, each uniform over its area, with replacement. */
typedef struct grv_surface_sampler grv_surface_sampler;

/** Prepares a sampler: 8 bytes a triangle beside the arrays. Triangles without area are never drawn.
 * @param vertices [..][3], borrowed: must outlive the sampler
 * @param triangles [n_triangles][3], borrowed
 * @param sampler  owned by the caller: grv_surface_sampler_destroy
 * @errors GRV_E_ARG (vertex numbers, no area, an area that is not finite), GRV_E_NOMEM */
GRV_API grv_status grv_surface_sampler_create_f64(int64_t n_vertices, const double *vertices,
                                                  int64_t n_triangles, const int32_t *triangles,
                                                  grv_surface_sampler **sampler) GRV_MUST_CHECK;

/** The same from vertices in float; areas are computed in double. */
GRV_API grv_status grv_surface_sampler_create_f32(int64_t n_vertices, const float *vertices,
                                                  int64_t n_triangles, const int32_t *triangles,
                                                  grv_surface_sampler **sampler) GRV_MUST_CHECK;

/** Releases a sampler; NULL and a pointer to NULL are allowed. */
GRV_API void grv_surface_sampler_destroy(grv_surface_sampler **sampler);

/** Area of the whole surface. */
GRV_API double grv_surface_sampler_area(const grv_surface_sampler *sampler);

/** What is written for each sample; arrays that are NULL are not written. */
typedef struct grv_surface_samples_f64 {
    double *points;  /**< [n][3] */
    double *normals; /**< [n][3] unit normal of the triangle, by the right-hand rule */
    double *
        barycentric; /**< [n][3] weights on the triangle's vertices: 1 - sqrt r, (1 - s) sqrt r, s sqrt r for uniform r, s */
    int32_t *triangles; /**< [n] */
} grv_surface_samples_f64;

/** The same in float. */
typedef struct grv_surface_samples_f32 {
    float *points;      /**< [n][3] */
    float *normals;     /**< [n][3] */
    float *barycentric; /**< [n][3] */
    int32_t *triangles; /**< [n] */
} grv_surface_samples_f32;

/** Draws samples number first .. first + n - 1 of a seed. Same samples for f32 and f64, up to rounding.
 * @errors GRV_E_ARG */
GRV_API grv_status grv_surface_sampler_draw_f64(
    const grv_surface_sampler *sampler, uint64_t seed, int64_t first, int64_t n, int n_threads,
    const grv_surface_samples_f64 *samples) GRV_MUST_CHECK;

/** The same in float. */
GRV_API grv_status grv_surface_sampler_draw_f32(
    const grv_surface_sampler *sampler, uint64_t seed, int64_t first, int64_t n, int n_threads,
    const grv_surface_samples_f32 *samples) GRV_MUST_CHECK;

/** Points number first .. first + n - 1 of a seed, uniform in the box [lower, upper).
 * @param points [n][3], written
 * @errors GRV_E_ARG (a box that is empty or not finite) */
GRV_API grv_status grv_sample_box_f64(const double lower[3], const double upper[3], uint64_t seed,
                                      int64_t first, int64_t n, double *points) GRV_MUST_CHECK;

/** The same in float. */
GRV_API grv_status grv_sample_box_f32(const double lower[3], const double upper[3], uint64_t seed,
                                      int64_t first, int64_t n, float *points) GRV_MUST_CHECK;

/** Points number first .. first + n - 1 of a seed, uniform in the inside of a surface (where its distance is negative), by rejection in its box.
 * @param surface  with a sign
 * @param points [n][3], written, in the coordinates of the caller (not mapped)
 * @errors GRV_E_ARG, GRV_E_NOMEM, GRV_E_NUMERIC where the inside is less than about a thousandth of the box */
GRV_API grv_status grv_sample_inside_f64(const grv_surface *surface, uint64_t seed, int64_t first,
                                         int64_t n, int n_threads, double *points) GRV_MUST_CHECK;

/** The same in float. */
GRV_API grv_status grv_sample_inside_f32(const grv_surface *surface, uint64_t seed, int64_t first,
                                         int64_t n, int n_threads, float *points) GRV_MUST_CHECK;

/** k different numbers of 0 .. n-1 in random order, every ordered subset as likely as any other (a Fisher-Yates shuffle that stops after k steps):
 * the first j of k are the same for every k. O(k) time and memory.
 * @param stream  as in grv_random_bits
 * @param subset [k], written
 * @errors GRV_E_ARG (k > n), GRV_E_NOMEM */
GRV_API grv_status grv_sample_subset(uint64_t seed, uint64_t stream, int64_t n, int64_t k,
                                     int64_t *subset) GRV_MUST_CHECK;

/** k different numbers of 0 .. n-1, one after the other with probability proportional to their weights among those that are left: the k smallest of
 * n exponential variables of rate weights[i] (Efraimidis and Spirakis 2006), in that order. O(n + k log k).
 * @param weights [n] finite and >= 0; 0 is never drawn
 * @param subset [k], written
 * @errors GRV_E_ARG (weights, more than there are positive ones), GRV_E_NOMEM */
GRV_API grv_status grv_sample_subset_weighted(uint64_t seed, uint64_t stream, int64_t n,
                                              const double *weights, int64_t k,
                                              int64_t *subset) GRV_MUST_CHECK;

/** Farthest point sampling: starts with point `start`; each next point is the one whose distance to those chosen is largest, ties by number. Exact, and
 * independent of threads. Squared distances are dx*dx + dy*dy + dz*dz in double. Points are kept in buckets, and only those that a new point
 * may concern are looked at.
 * @param points [n][3] finite
 * @param k  1 <= k <= n
 * @param order [k], written: numbers of the points
 * @param distance [k], written unless NULL: distance of each to those before it; infinite for the first
 * @errors GRV_E_ARG, GRV_E_NOMEM */
GRV_API grv_status grv_sample_farthest_f64(int64_t n, const double *points, int64_t start,
                                           int64_t k, int n_threads, int64_t *order,
                                           double *distance) GRV_MUST_CHECK;

/** The same from points in float. */
GRV_API grv_status grv_sample_farthest_f32(int64_t n, const float *points, int64_t start, int64_t k,
                                           int n_threads, int64_t *order,
                                           double *distance) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
