/* The surface object, and the lookup of one point. Internal.
 * "Tree coordinates" are (x' - centre) * to_tree, x' the mapped coordinates of the caller: within the unit ball for the surface itself. */
#ifndef GRVI_GEOM_SURFACE_IMPL_H
#define GRVI_GEOM_SURFACE_IMPL_H

#include "geom/surface_topology.h"
#include "geom/surface_tree.h"
#include "grove/surface_distance.h"

struct grv_surface {
    grv_surface_params params;
    double centre[3], to_tree; /* to_tree: a power of two */
    double lower[3], upper[3]; /* mapped */
    int64_t n_vertices, n_triangles;
    double *vertices;   /* [n_vertices][3], tree coordinates */
    int32_t *triangles; /* [n_triangles][3] */
    grvi_surface_tree tree;
    grvi_surface_topology topology; /* not for unsigned surfaces */
    const grvi_surface_kernels *kernels;
};

/* The point found for x, in tree coordinates. */
typedef struct grvi_surface_found {
    int32_t triangle; /* -1: none, and the rest is NaN */
    double distance;  /* >= 0 */
    double closest[3], weight[3], winding;
    int sign; /* -1 inside, 1 outside, 0 on the surface */
} grvi_surface_found;

/* What a thread remembers of the last point, to bound the next one. All zero: nothing. */
typedef struct grvi_surface_memory {
    bool is_set;
    double x[3], closest[3], distance;
    int sign; /* 0: not known */
} grvi_surface_memory;

/* Looks up x; max_distance in tree coordinates. The result does not depend on the memory. */
void grvi_surface_find(const grv_surface *surface, const double x[3], double max_distance,
                       bool with_winding, grvi_surface_memory *memory, grvi_surface_found *found);

/* Sign of a point at that distance (> 0) by its winding number. */
int grvi_surface_winding_sign(const grv_surface *surface, const double x[3], double distance);

/* Arrays of the caller, float or double; NULL where not wanted. */
typedef struct grvi_surface_sink {
    bool is_double;
    void *distance, *closest, *barycentric, *winding;
    int32_t *triangle;
    uint8_t *exact;
} grvi_surface_sink;

/* Writes point number i, as exact. */
void grvi_surface_put(const grv_surface *surface, const grvi_surface_sink *sink, int64_t i,
                      const grvi_surface_found *found);

/* Writes point number i as swept: the distance (tree coordinates) and the sign to the closest point of point number `source`, written before. */
void grvi_surface_put_swept(const grv_surface *surface, const grvi_surface_sink *sink, int64_t i,
                            int64_t source, double distance, int sign);

grv_status grvi_surface_query_check(const grv_surface *surface, const grv_surface_query *query,
                                    const grvi_surface_sink *sink) GRV_MUST_CHECK;

/* Tree coordinates of a point of the caller. */
static inline void grvi_surface_to_tree(const grv_surface *surface, const double point[3],
                                        double x[3])
{
    for (int k = 0; k < 3; k++)
        x[k] = ((point[k] - surface->params.origin[k]) * surface->params.scale[k] -
                surface->centre[k]) *
               surface->to_tree;
}

#endif
