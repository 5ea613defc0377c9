/* Area, volume, centres, bounding box and edges of a surface. Coordinates are taken relative to the middle of the bounding box, so that volumes far from the
 * origin keep their digits; sums are taken over groups of triangles first. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/triangles_impl.h"

enum { GROUP = 1024 };

/* Sums over triangles: area, area times three times the centre, six times the volume, 24 times its first moment. */
typedef struct sums {
    double area, area_centre[3], volume, volume_centre[3];
} sums;

static void add(sums *a, const sums *b)
{
    a->area += b->area;
    a->volume += b->volume;
    for (int i = 0; i < 3; i++) {
        a->area_centre[i] += b->area_centre[i];
        a->volume_centre[i] += b->volume_centre[i];
    }
}

static void add_triangle(const grv_triangles *t, int64_t triangle, const double origin[3], sums *s)
{
    double p[3][3], n[3];
    for (int k = 0; k < 3; k++) {
        grvi_point_get(t, t->triangles[3 * triangle + k], p[k]);
        for (int i = 0; i < 3; i++) p[k][i] -= origin[i];
    }
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        n[i] =
            (p[1][j] - p[0][j]) * (p[2][k] - p[0][k]) - (p[1][k] - p[0][k]) * (p[2][j] - p[0][j]);
    }
    const double area = 0.5 * sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    const double volume = p[0][0] * n[0] + p[0][1] * n[1] +
                          p[0][2] * n[2]; /* six times that of the tetrahedron with the origin */
    s->area += area;
    s->volume += volume;
    for (int i = 0; i < 3; i++) {
        const double sum = p[0][i] + p[1][i] + p[2][i];
        s->area_centre[i] += area * sum;
        s->volume_centre[i] += volume * sum;
    }
}

void grv_triangles_box(const grv_triangles *t, double lower[3], double upper[3])
{
    for (int i = 0; i < 3; i++) lower[i] = upper[i] = NAN;
    for (int64_t k = 0; k < 3 * t->n_triangles; k++) {
        double p[3];
        grvi_point_get(t, t->triangles[k], p);
        for (int i = 0; i < 3; i++) {
            /* written so that a NaN, once met, stays */
            if (k == 0 || p[i] < lower[i] || isnan(p[i])) lower[i] = p[i];
            if (k == 0 || p[i] > upper[i] || isnan(p[i])) upper[i] = p[i];
        }
    }
}

static void count_edges(const grv_triangles *t, const grvi_sides *s, grv_triangles_measure *m)
{
    for (int64_t p = 0; p < t->n_points; p++) {
        for (int64_t at = s->begins[p]; at < s->begins[p + 1];) {
            const int64_t n = grvi_sides_equal(s, p, at);
            m->n_edges++;
            m->n_boundary_edges += n == 1;
            m->n_crowded_edges += n > 2;
            m->n_opposed_edges += n == 2 && s->sides[at].ascends == s->sides[at + 1].ascends;
            at += n;
        }
    }
    m->is_watertight = t->n_triangles > 0 && s->n == 3 * t->n_triangles &&
                       m->n_boundary_edges == 0 && m->n_crowded_edges == 0 &&
                       m->n_opposed_edges == 0;
}

grv_status grv_triangles_measure_get(const grv_triangles *t, grv_triangles_measure *measure)
{
    grv_triangles_measure m = {0};
    grvi_sides sides;
    sums all = {0};
    double origin[3];
    grv_triangles_box(t, m.lower, m.upper);
    for (int i = 0; i < 3; i++) origin[i] = 0.5 * (m.lower[i] + m.upper[i]);
    GRV_TRY(grvi_sides_create(t, &sides));
    for (int64_t first = 0; first < t->n_triangles; first += GROUP) {
        sums group = {0};
        const int64_t end = grvi_min_i64(first + GROUP, t->n_triangles);
        for (int64_t i = first; i < end; i++) add_triangle(t, i, origin, &group);
        add(&all, &group);
    }
    m.area = all.area;
    m.volume = all.volume / 6;
    for (int i = 0; i < 3; i++) {
        m.centre[i] = origin[i] + all.area_centre[i] / (3 * all.area);
        m.volume_centre[i] = origin[i] + all.volume_centre[i] / (4 * all.volume);
    }
    count_edges(t, &sides, &m);
    grvi_sides_fini(&sides);
    *measure = m;
    return GRV_OK;
}
