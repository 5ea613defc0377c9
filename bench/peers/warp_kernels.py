"""Warp's side of neighbours.py and surface.py: what its users write for a radius search in a hash grid and for the closest point of a mesh."""
import warp as wp

wp.config.quiet = True


@wp.kernel
def count_within(grid: wp.uint64, points: wp.array(dtype=wp.vec3), queries: wp.array(dtype=wp.vec3), radius: float, counts: wp.array(dtype=int)):
    i = wp.tid()
    n = int(0)
    for j in wp.hash_grid_query(grid, queries[i], radius):
        if wp.length_sq(queries[i] - points[j]) <= radius * radius:
            n += 1
    counts[i] = n


@wp.kernel
def fill_within(grid: wp.uint64, points: wp.array(dtype=wp.vec3), queries: wp.array(dtype=wp.vec3), radius: float, begin: wp.array(dtype=int),
                indices: wp.array(dtype=int), squared: wp.array(dtype=float)):
    i = wp.tid()
    at = int(begin[i])
    for j in wp.hash_grid_query(grid, queries[i], radius):
        distance = wp.length_sq(queries[i] - points[j])
        if distance <= radius * radius:
            indices[at] = j
            squared[at] = distance
            at += 1


@wp.kernel
def closest(mesh: wp.uint64, points: wp.array(dtype=wp.vec3), farthest: float, distances: wp.array(dtype=float)):
    i = wp.tid()
    found = wp.mesh_query_point_no_sign(mesh, points[i], farthest)
    if found.result:
        distances[i] = wp.length(points[i] - wp.mesh_eval_position(mesh, found.face, found.u, found.v))

