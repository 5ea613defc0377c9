/* What the files about triangles share: the surface, and its edges. Internal. */
#ifndef GRVI_MESH_TRIANGLES_IMPL_H
#define GRVI_MESH_TRIANGLES_IMPL_H

#include "core/check.h"
#include "grove/triangles.h"

/* Uninitialised arrays. */
grv_status grvi_triangles_alloc(grv_store_type type, int64_t n_points, int64_t n_triangles,
                                grv_triangles **out) GRV_MUST_CHECK;

static inline int64_t grvi_point_bytes(const grv_triangles *t)
{
    return t->type == GRV_STORE_F32 ? 12 : 24;
}

/* Point number i in double. */
static inline void grvi_point_get(const grv_triangles *t, int64_t i, double out[3])
{
    for (int axis = 0; axis < 3; axis++)
        out[axis] = t->type == GRV_STORE_F32 ? (double)((const float *)t->points)[3 * i + axis]
                                             : ((const double *)t->points)[3 * i + axis];
}

/* One side of a triangle: from corner k to corner (k + 1) % 3. */
typedef struct grvi_side {
    int32_t high; /* the larger of its two points; the smaller is the bucket's */
    int32_t triangle;
    int8_t corner;
    bool ascends; /* does it run from the smaller point to the larger one */
} grvi_side;

/* Sides by their points: those of smaller point p are sides[begins[p]] to sides[begins[p + 1] - 1], sorted by the larger one, then by triangle. Sides with equal points
 * are left out. */
typedef struct grvi_sides {
    grvi_side *sides; /* owned */
    int64_t *begins;  /* [n_points + 1]; owned */
    int64_t n;
} grvi_sides;

grv_status grvi_sides_create(const grv_triangles *t, grvi_sides *sides) GRV_MUST_CHECK;
void grvi_sides_fini(grvi_sides *sides);
/* Number of sides from `at` on that join the same two points; p is the smaller. */
static inline int64_t grvi_sides_equal(const grvi_sides *s, int64_t p, int64_t at)
{
    int64_t n = 1;
    while (at + n < s->begins[p + 1] && s->sides[at + n].high == s->sides[at].high) n++;
    return n;
}

#endif
