/* Frames of triangles: the form in which kernels compute distances (kernels/surface_kernels.h). */
#include <math.h>

#include "geom/surface_tree.h"

/* Triangles thinner than this times their longest edge are taken as that edge: their normal would carry no information. */
static const double thinnest = 1e-7;

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static double inverse(double x)
{
    return x > 0 && isfinite(1 / x) ? 1 / x : 0;
}

/* Some unit vector at right angles to the unit vector u. */
static void any_normal(const double u[3], double normal[3])
{
    int least = 0;
    for (int k = 1; k < 3; k++)
        if (fabs(u[k]) < fabs(u[least])) least = k;
    double length2 = 0;
    for (int k = 0; k < 3; k++) {
        normal[k] = (k == least) - u[least] * u[k];
        length2 += normal[k] * normal[k];
    }
    for (int k = 0; k < 3; k++) normal[k] /= sqrt(length2);
}

/* The corner from which the longest edge starts; the first of equal ones. */
static int longest_edge(const double *corner[3])
{
    int longest = 0;
    double most = -1;
    for (int j = 0; j < 3; j++) {
        double length2 = 0;
        for (int k = 0; k < 3; k++) {
            const double d = corner[(j + 1) % 3][k] - corner[j][k];
            length2 += d * d;
        }
        if (length2 > most) {
            most = length2;
            longest = j;
        }
    }
    return longest;
}

void grvi_surface_block_set(grvi_surface_block *block, int i, const double *vertices,
                            const int32_t triangle[3], int32_t number)
{
    const double *corner[3];
    for (int j = 0; j < 3; j++) corner[j] = &vertices[3 * (int64_t)triangle[j]];
    const int first = longest_edge(corner);
    const double *const a = corner[first], *const b = corner[(first + 1) % 3],
                        *const c = corner[(first + 2) % 3];
    const double ab[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]},
                 ac[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
    const double cross[3] = {ab[1] * ac[2] - ab[2] * ac[1], ab[2] * ac[0] - ab[0] * ac[2],
                             ab[0] * ac[1] - ab[1] * ac[0]};
    const double bx = sqrt(dot(ab, ab)), twice_area = sqrt(dot(cross, cross));
    double u[3] = {1, 0, 0}, normal[3], cx = 0, cy = 0;
    for (int k = 0; k < 3; k++)
        if (bx > 0) u[k] = ab[k] / bx;
    cx = fmin(fmax(dot(ac, u), 0), bx);
    if (twice_area > thinnest * bx * bx) {
        cy = twice_area / bx;
        for (int k = 0; k < 3; k++) normal[k] = cross[k] / twice_area;
    } else {
        any_normal(u, normal);
    }
    for (int k = 0; k < 3; k++) {
        block->a[k][i] = a[k];
        block->u[k][i] = u[k];
        block->normal[k][i] = normal[k];
    }
    block->bx[i] = bx;
    block->cx[i] = cx;
    block->cy[i] = cy;
    block->inv_ac[i] = inverse(cx * cx + cy * cy);
    block->inv_bc[i] = inverse((cx - bx) * (cx - bx) + cy * cy);
    block->triangle[i] = number;
    block->rotation[i] = first;
}
