/* What every reader does to cells out of a file. Internal. */
#ifndef GRVI_MESH_CELLS_CHECK_H
#define GRVI_MESH_CELLS_CHECK_H

#include "core/check.h"

/* First i in [0, n) with ends[i] below its predecessor (before the first: 0), or above `most`; -1: there is none. */
int64_t grvi_find_bad_end(const int64_t *ends, int64_t n, int64_t most);
/* First i in [0, n) with ids[i] outside [0, n_points); -1: there is none. Then adds `base` to all of them. */
int64_t grvi_find_bad_id(int64_t *ids, int64_t n, int64_t n_points, int64_t base);
/* Is the part of a face stream that belongs to one polyhedron whole: number of faces, then of each number of points and points in [0, n_points)? Then adds `base` to
 * the points. */
bool grvi_check_polyhedron(int64_t *faces, int64_t n, int64_t n_points, int64_t base);

#endif
