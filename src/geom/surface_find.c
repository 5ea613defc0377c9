/* Lookup of one point: closest triangle by the kernels, then its coordinates and the sign. */
#include <math.h>
#include <string.h>

#include "geom/surface_impl.h"

/* Nearer to the surface than this (in tree coordinates) float corners might put a point on the wrong side: winding numbers in double. */
static const double near_surface = 1e-4;
/* Farther than this the winding number of any surface is 0 to double precision. */
static const double beyond = 1e50;
/* A winding number by an opening is trusted to this; the error falls faster than the cube of the opening. */
static const double first_margin = 0.1, margin_factor = 0.125, largest_opening = 40;

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
static double square(double x)
{
    return x * x;
}
static double clamp(double x, double limit)
{
    return fmin(fmax(x, 0), limit);
}

static double distance_of(const double a[3], const double b[3])
{
    const double d[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    return sqrt(dot(d, d));
}

/* ---- closest point of a triangle ---- */

/* Weights of the point of triangle A, B, C (corners as in the frame) closest to (x, y). */
static void weights_in_frame(const grvi_surface_block *b, int i, double x, double y, double w[3])
{
    const double bx = b->bx[i], cx = b->cx[i], cy = b->cy[i], xb = x - bx, ex = cx - bx;
    if (y > 0 && cy * x - cx * y > 0 && ex * y - cy * xb > 0) {
        w[2] = fmin(y / cy, 1);
        w[1] = clamp((x - w[2] * cx) / bx, 1 - w[2]);
        w[0] = 1 - w[1] - w[2];
        return;
    }
    const double r = bx > 0 ? clamp(x / bx, 1) : 0, t = clamp((x * cx + y * cy) * b->inv_ac[i], 1),
                 s = clamp((xb * ex + y * cy) * b->inv_bc[i], 1);
    const double to_ab = square(x - r * bx) + y * y,
                 to_ac = square(x - t * cx) + square(y - t * cy),
                 to_bc = square(xb - s * ex) + square(y - s * cy);
    if (to_ab <= to_ac && to_ab <= to_bc) {
        w[0] = 1 - r, w[1] = r, w[2] = 0;
    } else if (to_ac <= to_bc) {
        w[0] = 1 - t, w[1] = 0, w[2] = t;
    } else {
        w[0] = 0, w[1] = 1 - s, w[2] = s;
    }
}

/* Weights and closest point of the triangle that was hit. */
static void fill_found(const grv_surface *surface, const double x[3], const grvi_surface_hit *hit,
                       grvi_surface_found *found)
{
    const grvi_surface_block *const b = &surface->tree.blocks[hit->block];
    const int i = hit->place;
    double p[3], u[3], n[3], w[3];
    for (int k = 0; k < 3; k++) {
        p[k] = x[k] - b->a[k][i];
        u[k] = b->u[k][i];
        n[k] = b->normal[k][i];
    }
    const double v[3] = {n[1] * u[2] - n[2] * u[1], n[2] * u[0] - n[0] * u[2],
                         n[0] * u[1] - n[1] * u[0]};
    weights_in_frame(b, i, dot(p, u), dot(p, v), w);
    const int32_t *const triangle = &surface->triangles[3 * (int64_t)hit->triangle];
    memset(found->closest, 0, sizeof found->closest);
    for (int j = 0; j < 3; j++) {
        const int corner = (b->rotation[i] + j) % 3;
        found->weight[corner] = w[j];
        for (int k = 0; k < 3; k++)
            found->closest[k] += w[j] * surface->vertices[3 * (int64_t)triangle[corner] + k];
    }
    found->triangle = hit->triangle;
    found->distance = sqrt(hit->distance2);
}

/* ---- the sign ---- */

static bool is_inside(const grv_surface *surface, double winding)
{
    return (surface->params.either_orientation ? fabs(winding) : winding) > 0.5;
}

static double doubt(const grv_surface *surface, double winding)
{
    return fabs((surface->params.either_orientation ? fabs(winding) : winding) - 0.5);
}

static double winding_first(const grv_surface *surface, const double x[3], double distance)
{
    const double reach = sqrt(dot(x, x));
    if (!(reach < beyond)) return 0;
    const bool in_double =
        distance < near_surface || reach > GRVI_SURFACE_REACH || isinf(surface->params.opening);
    const grvi_surface_kernels *const kernels =
        in_double ? grvi_surface_kernels_ref() : surface->kernels;
    return kernels->winding(&surface->tree, x, surface->params.opening);
}

/* -1 inside, 1 outside: by the winding number if that is clear, else by better ones. */
static int sign_of_winding(const grv_surface *surface, const double x[3], double winding)
{
    double margin = first_margin;
    for (double opening = 2 * surface->params.opening;
         doubt(surface, winding) < margin && !isinf(surface->params.opening); opening *= 2) {
        const bool is_last = opening > largest_opening;
        winding = grvi_surface_kernels_ref()->winding(&surface->tree, x,
                                                      is_last ? (double)INFINITY : opening);
        if (is_last) break;
        margin *= margin_factor;
    }
    return is_inside(surface, winding) ? -1 : 1;
}

int grvi_surface_winding_sign(const grv_surface *surface, const double x[3], double distance)
{
    return sign_of_winding(surface, x, winding_first(surface, x, distance));
}

/* The angle-weighted normal of the corner, edge or face that the closest point lies on. */
static int sign_of_normal(const grv_surface *surface, const double x[3],
                          const grvi_surface_hit *hit, const grvi_surface_found *found)
{
    const grvi_surface_topology *const t = &surface->topology;
    int zeros = 0, zero = 0, full = 0;
    for (int j = 0; j < 3; j++) {
        if (found->weight[j] == 0) {
            zeros++;
            zero = j;
        } else {
            full = j;
        }
    }
    double normal[3], away[3];
    const int64_t edge = t->edge[3 * (int64_t)hit->triangle + (zero + 1) % 3];
    const int64_t corner = t->corner[surface->triangles[3 * (int64_t)hit->triangle + full]];
    for (int k = 0; k < 3; k++) {
        away[k] = x[k] - found->closest[k];
        if (zeros == 0)
            normal[k] = surface->tree.blocks[hit->block].normal[k][hit->place];
        else if (zeros == 1 && edge >= 0)
            normal[k] = (double)t->edge_normal[3 * edge + k];
        else
            normal[k] = (double)t->corner_normal[3 * corner + k];
    }
    return dot(away, normal) < 0 ? -1 : 1;
}

static int find_sign(const grv_surface *surface, const double x[3],
                     const grvi_surface_memory *memory, const grvi_surface_hit *hit,
                     const grvi_surface_found *found)
{
    if (surface->params.sign == GRV_SURFACE_UNSIGNED) return 1;
    if (found->distance == 0) return 0;
    if (surface->params.sign == GRV_SURFACE_PSEUDONORMAL)
        return sign_of_normal(surface, x, hit, found);
    /* The ball around the last point that just touches the surface lies on one side: the winding number of a closed surface is constant there. */
    if (surface->topology.n_open_edges == 0 && memory->is_set && memory->sign != 0 &&
        distance_of(x, memory->x) < 0.999 * memory->distance)
        return memory->sign;
    const double winding =
        isnan(found->winding) ? winding_first(surface, x, found->distance) : found->winding;
    return sign_of_winding(surface, x, winding);
}

/* ---- all of it ---- */

void grvi_surface_find(const grv_surface *surface, const double x[3], double max_distance,
                       bool with_winding, grvi_surface_memory *memory, grvi_surface_found *found)
{
    const double none = (double)NAN, reach = sqrt(dot(x, x));
    *found = (grvi_surface_found){.triangle = -1,
                                  .distance = none,
                                  .closest = {none, none, none},
                                  .weight = {none, none, none},
                                  .winding = none};
    if (surface->n_triangles == 0 || !(reach < 1e150)) return;
    /* no triangle is farther than this, and what the last point found gives a bound as well */
    double bound = fmin(reach + 2, max_distance * (1 + 1e-12));
    if (memory->is_set) bound = fmin(bound, distance_of(x, memory->closest) + 1e-8 * (1 + reach));
    grvi_surface_hit hit = {.distance2 = bound * bound, .triangle = -1};
    const grvi_surface_kernels *const kernels =
        reach < GRVI_SURFACE_REACH ? surface->kernels : grvi_surface_kernels_ref();
    kernels->closest(&surface->tree, x, &hit);
    if (hit.triangle < 0 || sqrt(hit.distance2) > max_distance) return;
    fill_found(surface, x, &hit, found);
    if (with_winding) found->winding = winding_first(surface, x, found->distance);
    found->sign = find_sign(surface, x, memory, &hit, found);
    memory->is_set = true;
    memcpy(memory->x, x, sizeof memory->x);
    memcpy(memory->closest, found->closest, sizeof memory->closest);
    memory->distance = found->distance;
    memory->sign = found->sign;
}
