/* Which triangles of a surface meet: open edges, and angle-weighted normals. Internal. */
#ifndef GRVI_GEOM_SURFACE_TOPOLOGY_H
#define GRVI_GEOM_SURFACE_TOPOLOGY_H

#include "core/check.h"

/* Vertices at exactly the same place are one corner. */
typedef struct grvi_surface_topology {
    int64_t n_corners, n_edges, n_open_edges;
    int32_t *corner; /* [n_vertices] corner of a vertex */
    int32_t *
        edge; /* [n_triangles][3] edge from vertex j to the next one; -1 where both are one corner */
    float *corner_normal; /* [n_corners][3] angle-weighted sums; NULL unless asked for */
    float *edge_normal;   /* [n_edges][3] sums of the faces' unit normals; NULL unless asked for */
} grvi_surface_topology;

/* vertices [n_vertices][3], finite; triangles [n_triangles][3]. */
grv_status grvi_surface_topology_build(int64_t n_vertices, const double *vertices,
                                       int64_t n_triangles, const int32_t *triangles,
                                       bool with_normals, int n_threads,
                                       grvi_surface_topology *topology) GRV_MUST_CHECK;
void grvi_surface_topology_fini(grvi_surface_topology *topology);

#endif
