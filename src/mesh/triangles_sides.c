/* Sides of triangles by the points they join: one counting sort by the smaller point, then each bucket by the larger one. O(n) where no point has very many
 * neighbours, O(n log n) always. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/triangles_impl.h"

enum { SMALL_BUCKET = 24 };

static int compare(const grvi_side *a, const grvi_side *b)
{
    if (a->high != b->high) return a->high < b->high ? -1 : 1;
    if (a->triangle != b->triangle) return a->triangle < b->triangle ? -1 : 1;
    return (a->corner > b->corner) - (a->corner < b->corner);
}

static int compare_any(const void *a, const void *b)
{
    return compare(a, b);
}

static void sort_bucket(grvi_side *sides, int64_t n)
{
    if (n > SMALL_BUCKET) {
        qsort(sides, (size_t)n, sizeof *sides, compare_any);
        return;
    }
    for (int64_t i = 1; i < n; i++) {
        const grvi_side side = sides[i];
        int64_t j = i;
        for (; j > 0 && compare(&side, &sides[j - 1]) < 0; j--) sides[j] = sides[j - 1];
        sides[j] = side;
    }
}

/* Points of a side; false if it is none */
static bool side_of(const grv_triangles *t, int64_t i, int32_t *low, grvi_side *side)
{
    const int64_t triangle = i / 3, corner = i % 3;
    const int32_t from = t->triangles[i], to = t->triangles[3 * triangle + (corner + 1) % 3];
    *low = from < to ? from : to;
    *side = (grvi_side){.high = from < to ? to : from,
                        .triangle = (int32_t)triangle,
                        .corner = (int8_t)corner,
                        .ascends = from < to};
    return from != to;
}

grv_status grvi_sides_create(const grv_triangles *t, grvi_sides *s)
{
    grv_status status = GRV_OK;
    const int64_t n_sides = 3 * t->n_triangles;
    int32_t low = 0;
    grvi_side side;
    *s = (grvi_sides){0};
    GRV_TRY_GOTO(GRVI_CALLOC(&s->begins, t->n_points + 2));
    GRV_TRY_GOTO(GRVI_ALLOC(&s->sides, n_sides));
    /* counted two places on, so that filling moves each begin to its place */
    for (int64_t i = 0; i < n_sides; i++)
        if (side_of(t, i, &low, &side)) s->begins[low + 2]++;
    for (int64_t p = 0; p < t->n_points; p++) s->begins[p + 2] += s->begins[p + 1];
    for (int64_t i = 0; i < n_sides; i++)
        if (side_of(t, i, &low, &side)) s->sides[s->begins[low + 1]++] = side;
    s->n = s->begins[t->n_points];
    for (int64_t p = 0; p < t->n_points; p++)
        sort_bucket(s->sides + s->begins[p], s->begins[p + 1] - s->begins[p]);
done:
    if (status != GRV_OK) grvi_sides_fini(s);
    return status;
}

void grvi_sides_fini(grvi_sides *s)
{
    grv_free(s->sides);
    grv_free(s->begins);
    *s = (grvi_sides){0};
}
