/* Consistent orientation: a walk over edges of exactly two triangles, component by component; neighbours agree when they run along their edge in opposite
 * directions. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/triangles_impl.h"

enum { UNSEEN = -1, KEPT = 0, TURNED = 1 };

typedef struct orientation {
    grv_triangles *t;
    int32_t *neighbours; /* [3 * n_triangles]: across side k; -1: none, or many */
    bool *agrees;        /* [3 * n_triangles]: with the neighbour, as the file has them */
    int8_t *state;       /* [n_triangles] */
    int32_t *queue;      /* [n_triangles]: of all components, one after the other */
} orientation;

static void fini(orientation *o)
{
    grv_free(o->neighbours);
    grv_free(o->agrees);
    grv_free(o->state);
    grv_free(o->queue);
}

static void find_neighbours(orientation *o, const grvi_sides *s)
{
    memset(o->neighbours, 0xff, (size_t)o->t->n_triangles * 3 * sizeof *o->neighbours);
    for (int64_t p = 0; p < o->t->n_points; p++) {
        for (int64_t at = s->begins[p]; at < s->begins[p + 1];) {
            const int64_t n = grvi_sides_equal(s, p, at);
            const grvi_side *const a = &s->sides[at], *const b = a + 1;
            if (n == 2 && a->triangle != b->triangle) {
                const int64_t i = 3 * (int64_t)a->triangle + a->corner,
                              j = 3 * (int64_t)b->triangle + b->corner;
                o->neighbours[i] = b->triangle;
                o->neighbours[j] = a->triangle;
                o->agrees[i] = o->agrees[j] = a->ascends != b->ascends;
            }
            at += n;
        }
    }
}

/* Visits the component of a triangle; its triangles stand in queue[begin, end). */
static int64_t walk(orientation *o, int32_t first, int64_t begin, int64_t *n_conflicts)
{
    int64_t end = begin;
    o->queue[end++] = first;
    o->state[first] = KEPT;
    for (int64_t at = begin; at < end; at++) {
        const int32_t i = o->queue[at];
        for (int k = 0; k < 3; k++) {
            const int32_t j = o->neighbours[3 * (int64_t)i + k];
            if (j < 0) continue;
            const int8_t wanted =
                o->agrees[3 * (int64_t)i + k] ? o->state[i] : (int8_t)(1 - o->state[i]);
            if (o->state[j] == UNSEEN) {
                o->state[j] = wanted;
                o->queue[end++] = j;
            } else if (o->state[j] != wanted) {
                ++*n_conflicts; /* seen from both sides: twice */
            }
        }
    }
    return end;
}

static double volume_of(const orientation *o, int64_t begin, int64_t end, bool *is_closed)
{
    double volume = 0, origin[3];
    *is_closed = true;
    grvi_point_get(o->t, o->t->triangles[3 * (int64_t)o->queue[begin]], origin);
    for (int64_t at = begin; at < end; at++) {
        const int64_t i = o->queue[at];
        double p[3][3];
        for (int k = 0; k < 3; k++) {
            if (o->neighbours[3 * i + k] < 0) *is_closed = false;
            grvi_point_get(o->t, o->t->triangles[3 * i + k], p[k]);
            for (int axis = 0; axis < 3; axis++) p[k][axis] -= origin[axis];
        }
        const double six = p[0][0] * (p[1][1] * p[2][2] - p[1][2] * p[2][1]) +
                           p[0][1] * (p[1][2] * p[2][0] - p[1][0] * p[2][2]) +
                           p[0][2] * (p[1][0] * p[2][1] - p[1][1] * p[2][0]);
        volume += o->state[i] == TURNED ? -six : six;
    }
    return volume;
}

static void turn_component(orientation *o, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at < end; at++)
        o->state[o->queue[at]] = (int8_t)(1 - o->state[o->queue[at]]);
}

static void settle_component(orientation *o, int64_t begin, int64_t end, bool outward)
{
    int64_t n_turned = 0;
    bool is_closed = false;
    for (int64_t at = begin; at < end; at++) n_turned += o->state[o->queue[at]];
    if (2 * n_turned > end - begin) turn_component(o, begin, end);
    if (outward && volume_of(o, begin, end, &is_closed) < 0 && is_closed)
        turn_component(o, begin, end);
}

static void apply(orientation *o, int64_t *n_flipped)
{
    for (int64_t i = 0; i < o->t->n_triangles; i++) {
        if (o->state[i] != TURNED) continue;
        int32_t *const ids = o->t->triangles + 3 * i;
        const int32_t second = ids[1];
        ids[1] = ids[2];
        ids[2] = second;
        ++*n_flipped;
    }
}

grv_status grv_triangles_orient(grv_triangles *t, bool outward, grv_triangles_oriented *oriented)
{
    grv_status status = GRV_OK;
    grv_triangles_oriented counts = {0};
    grvi_sides sides = {0};
    orientation o = {.t = t};
    int64_t at = 0;
    GRV_TRY_GOTO(grvi_sides_create(t, &sides));
    GRV_TRY_GOTO(GRVI_ALLOC(&o.neighbours, 3 * t->n_triangles));
    GRV_TRY_GOTO(GRVI_ALLOC(&o.agrees, 3 * t->n_triangles));
    GRV_TRY_GOTO(GRVI_ALLOC(&o.state, t->n_triangles));
    GRV_TRY_GOTO(GRVI_ALLOC(&o.queue, t->n_triangles));
    find_neighbours(&o, &sides);
    memset(o.state, UNSEEN, (size_t)t->n_triangles);
    for (int64_t i = 0; i < t->n_triangles; i++) {
        if (o.state[i] != UNSEEN) continue;
        const int64_t end = walk(&o, (int32_t)i, at, &counts.n_conflicts);
        settle_component(&o, at, end, outward);
        counts.n_components++;
        at = end;
    }
    counts.n_conflicts /= 2;
    apply(&o, &counts.n_flipped);
    if (oriented != NULL) *oriented = counts;
done:
    grvi_sides_fini(&sides);
    fini(&o);
    return status;
}
