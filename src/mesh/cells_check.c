/* Offsets and indices of untrusted cells. The loops have no exits, so that they are vectorised; a second pass looks for the place. */
#include "mesh/cells_check.h"

int64_t grvi_find_bad_end(const int64_t *ends, int64_t n, int64_t most)
{
    int64_t bad = 0, last = 0;
    for (int64_t i = 0; i < n; i++) {
        bad |= ends[i] < last;
        last = ends[i];
    }
    if (bad == 0 && last <= most) return -1;
    last = 0;
    for (int64_t i = 0; i < n; i++) {
        if (ends[i] < last || ends[i] > most) return i;
        last = ends[i];
    }
    return -1;
}

int64_t grvi_find_bad_id(int64_t *ids, int64_t n, int64_t n_points, int64_t base)
{
    /* the upper bit of an id that is negative, or of what is left to the last point for one that is too large */
    uint64_t bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad |= (uint64_t)ids[i] | ((uint64_t)n_points - 1 - (uint64_t)ids[i]);
    if (bad >> 63 == 0) {
        if (base != 0)
            for (int64_t i = 0; i < n; i++) ids[i] += base;
        return -1;
    }
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= n_points) return i;
    return -1;
}

bool grvi_check_polyhedron(int64_t *faces, int64_t n, int64_t n_points, int64_t base)
{
    int64_t at = 1;
    if (n < 1 || faces[0] < 0) return false;
    for (int64_t face = 0; face < faces[0]; face++) {
        if (at >= n || faces[at] < 0 || faces[at] > n - at - 1) return false;
        if (grvi_find_bad_id(faces + at + 1, faces[at], n_points, base) >= 0) return false;
        at += 1 + faces[at];
    }
    return at == n;
}
