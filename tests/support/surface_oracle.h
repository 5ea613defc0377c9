/* Triangle surfaces made for tests, and slow answers in double by other formulas than the library's. */
#ifndef GRV_TEST_SURFACE_ORACLE_H
#define GRV_TEST_SURFACE_ORACLE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "grove/core.h"

typedef struct test_surface {
    int64_t n_vertices, n_triangles;
    double *vertices;
    int32_t *triangles;
} test_surface;

static inline test_surface surface_alloc(int64_t n_vertices, int64_t n_triangles)
{
    return (test_surface){n_vertices, n_triangles,
                          malloc((size_t)(3 * n_vertices + 1) * sizeof(double)),
                          malloc((size_t)(3 * n_triangles + 1) * sizeof(int32_t))};
}

static inline void surface_free(test_surface *s)
{
    free(s->vertices);
    free(s->triangles);
}

/* Box [lower, upper], twelve triangles, outwards. */
static inline test_surface surface_box(const double lower[3], const double upper[3])
{
    static const int32_t faces[36] = {0, 2, 1, 1, 2, 3, 4, 5, 6, 5, 7, 6, 0, 1, 4, 1, 5, 4,
                                      2, 6, 3, 3, 6, 7, 0, 4, 2, 2, 4, 6, 1, 3, 5, 3, 7, 5};
    test_surface s = surface_alloc(8, 12);
    for (int v = 0; v < 8; v++)
        for (int k = 0; k < 3; k++) s.vertices[3 * v + k] = v >> k & 1 ? upper[k] : lower[k];
    for (int i = 0; i < 36; i++) s.triangles[i] = faces[i];
    return s;
}

/* Closed surface over a periodic (n x m) parameter grid: a torus of radii R and r about the z axis, outwards. */
static inline test_surface surface_torus(int n, int m, double big, double small)
{
    const double two_pi = 6.283185307179586476925;
    test_surface s = surface_alloc((int64_t)n * m, 2 * (int64_t)n * m);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++) {
            const double a = two_pi * i / n, b = two_pi * j / m;
            double *const x = &s.vertices[3 * (i * m + j)];
            x[0] = (big + small * cos(b)) * cos(a), x[1] = (big + small * cos(b)) * sin(a),
            x[2] = small * sin(b);
            const int32_t p = i * m + j, q = (i + 1) % n * m + j, r = (i + 1) % n * m + (j + 1) % m,
                          t = i * m + (j + 1) % m;
            int32_t *const f = &s.triangles[6 * (i * m + j)];
            f[0] = p, f[1] = q, f[2] = r, f[3] = p, f[4] = r, f[5] = t;
        }
    }
    return s;
}

/* Sphere about the origin, n circles of latitude with m points between the poles, outwards. */
static inline test_surface surface_sphere(int n, int m, double radius)
{
    const double pi = 3.14159265358979323846;
    test_surface s = surface_alloc((int64_t)n * m + 2, 2 * (int64_t)n * m);
    int64_t f = 0;
    const int32_t south = n * m, north = n * m + 1;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++) {
            const double a = pi * (i + 1) / (n + 1) - pi / 2, b = 2 * pi * j / m;
            double *const x = &s.vertices[3 * (i * m + j)];
            x[0] = radius * cos(a) * cos(b), x[1] = radius * cos(a) * sin(b),
            x[2] = radius * sin(a);
            const int32_t p = i * m + j, q = i * m + (j + 1) % m;
            const int32_t below[3] = {i == 0 ? south : p - m, q, p},
                          above[3] = {i == n - 1 ? north : q + m, p, q};
            for (int k = 0; k < 3; k++) s.triangles[f++] = below[k];
            for (int k = 0; k < 3; k++) s.triangles[f++] = above[k];
        }
    }
    const double poles[6] = {0, 0, -radius, 0, 0, radius};
    for (int k = 0; k < 6; k++) s.vertices[3 * (int64_t)south + k] = poles[k];
    return s;
}

/* Triangles of all sizes, some thin, some without area. */
static inline test_surface surface_soup(uint64_t seed, int64_t n_triangles, double size)
{
    test_surface s = surface_alloc(3 * n_triangles, n_triangles);
    for (int64_t t = 0; t < n_triangles; t++) {
        const double scale = size * pow(10, -3 * grv_random_uniform(seed, 1, (uint64_t)t));
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 3; k++) {
                const double centre = grv_random_uniform(seed, 2, (uint64_t)(3 * t + k)) - 0.5;
                s.vertices[9 * t + 3 * j + k] =
                    centre +
                    scale * (grv_random_uniform(seed, 3, (uint64_t)(9 * t + 3 * j + k)) - 0.5);
            }
            s.triangles[3 * t + j] = (int32_t)(3 * t + j);
        }
        double *const v = &s.vertices[9 * t];
        for (int k = 0; k < 3; k++) {
            if (t % 7 == 1)
                v[6 + k] = 0.3 * v[k] + 0.7 * v[3 + k] +
                           (t % 2 == 1 ? 1e-9 : 0) * v[6 + k]; /* thin, or on a line */
            if (t % 31 == 2) v[6 + k] = v[3 + k] = v[k];       /* a point */
        }
    }
    return s;
}

static inline double oracle_segment(const double a[3], const double b[3], const double q[3])
{
    double ab = 0, aq = 0, d2 = 0;
    for (int k = 0; k < 3; k++) {
        ab += (b[k] - a[k]) * (b[k] - a[k]);
        aq += (b[k] - a[k]) * (q[k] - a[k]);
    }
    const double t = ab > 0 ? fmin(fmax(aq / ab, 0), 1) : 0;
    for (int k = 0; k < 3; k++) d2 += pow(q[k] - a[k] - t * (b[k] - a[k]), 2);
    return sqrt(d2);
}

/* Distance to a triangle: to the plane where the foot lies within all three edges, else to the nearest edge. */
static inline double oracle_triangle(const double a[3], const double b[3], const double c[3],
                                     const double q[3])
{
    const double *const corner[3] = {a, b, c};
    double n[3], n2 = 0, height = 0, longest2 = 0, distance = INFINITY;
    int within = 1;
    for (int k = 0; k < 3; k++) {
        const int l = (k + 1) % 3, m = (k + 2) % 3;
        n[k] = (b[l] - a[l]) * (c[m] - a[m]) - (b[m] - a[m]) * (c[l] - a[l]);
        n2 += n[k] * n[k];
    }
    for (int k = 0; k < 3; k++) height += (q[k] - a[k]) * n[k];
    for (int j = 0; j < 3; j++) {
        const double *const p = corner[j], *const r = corner[(j + 1) % 3];
        double side = 0, length2 = 0;
        for (int k = 0; k < 3; k++) {
            const int l = (k + 1) % 3, m = (k + 2) % 3;
            side += n[k] * ((r[l] - p[l]) * (q[m] - p[m]) - (r[m] - p[m]) * (q[l] - p[l]));
            length2 += (r[k] - p[k]) * (r[k] - p[k]);
        }
        within = within && side > 0;
        longest2 = fmax(longest2, length2);
        distance = fmin(distance, oracle_segment(p, r, q));
    }
    return within && n2 > 1e-18 * longest2 * longest2 ? fmin(distance, fabs(height) / sqrt(n2))
                                                      : distance;
}

static inline double oracle_one(const test_surface *s, int64_t t, const double q[3])
{
    const int32_t *const f = &s->triangles[3 * t];
    return oracle_triangle(&s->vertices[3 * (int64_t)f[0]], &s->vertices[3 * (int64_t)f[1]],
                           &s->vertices[3 * (int64_t)f[2]], q);
}

static inline double oracle_distance(const test_surface *s, const double q[3])
{
    double distance = INFINITY;
    for (int64_t t = 0; t < s->n_triangles; t++) distance = fmin(distance, oracle_one(s, t, q));
    return distance;
}

/* Winding number: the sum of the solid angles. */
static inline double oracle_winding(const test_surface *s, const double q[3])
{
    double sum = 0;
    for (int64_t t = 0; t < s->n_triangles; t++) {
        double r[3][3], length[3], dot[3];
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 3; k++)
                r[j][k] = s->vertices[3 * (int64_t)s->triangles[3 * t + j] + k] - q[k];
            length[j] = sqrt(r[j][0] * r[j][0] + r[j][1] * r[j][1] + r[j][2] * r[j][2]);
        }
        for (int j = 0; j < 3; j++)
            dot[j] = r[j][0] * r[(j + 1) % 3][0] + r[j][1] * r[(j + 1) % 3][1] +
                     r[j][2] * r[(j + 1) % 3][2];
        const double volume = r[0][0] * (r[1][1] * r[2][2] - r[1][2] * r[2][1]) -
                              r[0][1] * (r[1][0] * r[2][2] - r[1][2] * r[2][0]) +
                              r[0][2] * (r[1][0] * r[2][1] - r[1][1] * r[2][0]);
        sum += atan2(volume, length[0] * length[1] * length[2] + dot[0] * length[2] +
                                 dot[1] * length[0] + dot[2] * length[1]);
    }
    return sum / 6.283185307179586476925;
}

static inline double surface_diagonal(const test_surface *s)
{
    double sum = 0;
    for (int k = 0; k < 3; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < 3 * s->n_triangles; i++) {
            low = fmin(low, s->vertices[3 * (int64_t)s->triangles[i] + k]);
            high = fmax(high, s->vertices[3 * (int64_t)s->triangles[i] + k]);
        }
        sum += (high - low) * (high - low);
    }
    return sqrt(sum);
}

/* n points: half in a box of `reach` times that of the surface, half at distances of 1e-1 .. 1e-5 diagonals from random places of it. */
static inline double *surface_points(const test_surface *s, uint64_t seed, int64_t n, double reach)
{
    double low[3], high[3], *const points = malloc((size_t)(3 * n + 1) * sizeof(double));
    const double diagonal = surface_diagonal(s);
    for (int k = 0; k < 3; k++) {
        low[k] = INFINITY, high[k] = -INFINITY;
        for (int64_t i = 0; i < 3 * s->n_triangles; i++) {
            low[k] = fmin(low[k], s->vertices[3 * (int64_t)s->triangles[i] + k]);
            high[k] = fmax(high[k], s->vertices[3 * (int64_t)s->triangles[i] + k]);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t t =
            (int64_t)(grv_random_uniform(seed, 10, (uint64_t)i) * (double)s->n_triangles);
        const double a = grv_random_uniform(seed, 11, (uint64_t)i),
                     b = grv_random_uniform(seed, 12, (uint64_t)i) * (1 - a);
        const double size = diagonal * pow(10, -1 - 4 * grv_random_uniform(seed, 13, (uint64_t)i));
        for (int k = 0; k < 3; k++) {
            const double u = grv_random_uniform(seed, 14, (uint64_t)(3 * i + k));
            const int32_t *const f = &s->triangles[3 * t];
            const double on = (1 - a - b) * s->vertices[3 * (int64_t)f[0] + k] +
                              a * s->vertices[3 * (int64_t)f[1] + k] +
                              b * s->vertices[3 * (int64_t)f[2] + k];
            points[3 * i + k] = i % 2 == 0
                                    ? 0.5 * (low[k] + high[k]) +
                                          reach * (u - 0.5) * (high[k] - low[k] + 0.01 * diagonal)
                                    : on + size * 1.7 * (2 * u - 1);
        }
    }
    return points;
}

#endif
