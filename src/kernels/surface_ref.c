/* Distances to surfaces and winding numbers in plain C and double: the reference, and what serves points that are very far or very near. */
#include <math.h>
#include <stddef.h>

#include "kernels/surface_kernels.h"

static const double two_pi = 6.283185307179586476925;

static double dot3(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static double clamp(double x, double limit)
{
    return fmin(fmax(x, 0), limit);
}

/* The squared distance that decides. The order of operations is part of the result; surface_loops.h repeats it. */
static double distance2(const grvi_surface_block *b, int i, const double q[3])
{
    const double px = q[0] - b->a[0][i], py = q[1] - b->a[1][i], pz = q[2] - b->a[2][i];
    const double ux = b->u[0][i], uy = b->u[1][i], uz = b->u[2][i];
    const double nx = b->normal[0][i], ny = b->normal[1][i], nz = b->normal[2][i];
    const double vx = fma(ny, uz, -(nz * uy)), vy = fma(nz, ux, -(nx * uz)),
                 vz = fma(nx, uy, -(ny * ux));
    const double x = fma(pz, uz, fma(py, uy, px * ux));
    const double y = fma(pz, vz, fma(py, vy, px * vx));
    const double z = fma(pz, nz, fma(py, ny, px * nx));
    const double bx = b->bx[i], cx = b->cx[i], cy = b->cy[i];

    const double ab = x - clamp(x, bx);
    const double to_ab = fma(ab, ab, y * y);
    const double t = clamp(fma(y, cy, x * cx) * b->inv_ac[i], 1);
    const double acx = fma(-t, cx, x), acy = fma(-t, cy, y);
    const double to_ac = fma(acx, acx, acy * acy);
    const double xb = x - bx, ex = cx - bx;
    const double s = clamp(fma(y, cy, xb * ex) * b->inv_bc[i], 1);
    const double bcx = fma(-s, ex, xb), bcy = fma(-s, cy, y);
    const double to_bc = fma(bcx, bcx, bcy * bcy);

    const int inside = y > 0 && fma(cy, x, -(cx * y)) > 0 && fma(ex, y, -(cy * xb)) > 0;
    const double in_plane = inside ? 0 : fmin(fmin(to_ab, to_ac), to_bc);
    return fma(z, z, in_plane);
}

static void try_block(const grvi_surface_tree *tree, int32_t number, const double x[3],
                      grvi_surface_hit *hit)
{
    const grvi_surface_block *const block = &tree->blocks[number];
    for (int i = 0; i < block->count; i++) {
        const double d2 = distance2(block, i, x);
        if (d2 > hit->distance2 ||
            (d2 == hit->distance2 && hit->triangle >= 0 && block->triangle[i] >= hit->triangle))
            continue;
        *hit = (grvi_surface_hit){d2, block->triangle[i], number, i};
    }
}

typedef struct stack_entry {
    double distance2;
    int32_t child;
} stack_entry;

/* Puts the children within the bound on the stack, the nearest on top. */
static int push_children(const grvi_surface_node *node, const double x[3], double bound,
                         stack_entry *stack, int n)
{
    const int base = n;
    for (int i = 0; i < GRVI_SURFACE_WIDTH; i++) {
        if (node->child[i] == GRVI_SURFACE_EMPTY) continue;
        double d2 = 0;
        for (int k = 0; k < 3; k++) {
            const double y = (double)node->axis[k][0][i] * x[0] +
                             (double)node->axis[k][1][i] * x[1] +
                             (double)node->axis[k][2][i] * x[2];
            const double d = fmax(fmax((double)node->lo[k][i] - y, y - (double)node->hi[k][i]), 0);
            d2 += d * d;
        }
        if (d2 > bound) continue;
        int at = n++;
        for (; at > base && stack[at - 1].distance2 < d2; at--) stack[at] = stack[at - 1];
        stack[at] = (stack_entry){d2, node->child[i]};
    }
    return n;
}

/* A triangle at the smallest squared distance may lie in a box whose own comes out larger by rounding: the normal of a triangle that is 1e-7 of its
 * length thick has an error of 5e-9, the axes of boxes are float. */
static double box_bound(double distance2_, double reach)
{
    const double d = sqrt(distance2_) * (1 + 1e-6) + 1e-8 * (reach + 1);
    return d * d;
}

static void closest(const grvi_surface_tree *tree, const double x[3], grvi_surface_hit *hit)
{
    stack_entry stack[GRVI_SURFACE_STACK];
    const double reach = sqrt(dot3(x, x));
    double bound = box_bound(hit->distance2, reach);
    int n = push_children(&tree->nodes[0], x, bound, stack, 0);
    while (n > 0) {
        const stack_entry top = stack[--n];
        if (top.distance2 > bound) continue;
        if (top.child >= 0) {
            n = push_children(&tree->nodes[top.child], x, bound, stack, n);
        } else {
            try_block(tree, ~top.child, x, hit);
            bound = box_bound(hit->distance2, reach);
        }
    }
}

/* ---- winding numbers ---- */

/* Half the solid angle of a triangle (Van Oosterom and Strackee 1983), positive seen from behind. */
static double half_solid_angle(const double *const corner[3], const double x[3])
{
    double a[3], b[3], c[3];
    for (int k = 0; k < 3; k++) {
        a[k] = corner[0][k] - x[k];
        b[k] = corner[1][k] - x[k];
        c[k] = corner[2][k] - x[k];
    }
    const double la = sqrt(dot3(a, a)), lb = sqrt(dot3(b, b)), lc = sqrt(dot3(c, c));
    const double volume = a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
                          a[2] * (b[0] * c[1] - b[1] * c[0]);
    return atan2(volume, la * lb * lc + dot3(a, b) * lc + dot3(b, c) * la + dot3(c, a) * lb);
}

static double block_winding(const grvi_surface_tree *tree, int32_t number, const double x[3])
{
    const grvi_surface_block *const block = &tree->blocks[number];
    double sum = 0;
    for (int i = 0; i < block->count; i++) {
        const int32_t *const t = &tree->triangles[3 * (int64_t)block->triangle[i]];
        const double *const corner[3] = {&tree->vertices[3 * (int64_t)t[0]],
                                         &tree->vertices[3 * (int64_t)t[1]],
                                         &tree->vertices[3 * (int64_t)t[2]]};
        sum += half_solid_angle(corner, x);
    }
    return sum;
}

/* 4 pi times the winding number of what is below child i, by its moments. */
static double far_field(const grvi_surface_moments *m, int i, const double r[3], double r2)
{
    const double inv2 = 1 / r2, inv3 = inv2 * sqrt(inv2);
    const double x = r[0], y = r[1], z = r[2];
    const double one =
        (double)m->first[0][i] * x + (double)m->first[1][i] * y + (double)m->first[2][i] * z;
    const double two = (double)m->second[0][i] * x * x + (double)m->second[1][i] * y * y +
                       (double)m->second[2][i] * z * z + (double)m->second[3][i] * x * y +
                       (double)m->second[4][i] * x * z + (double)m->second[5][i] * y * z;
    const double three =
        x * x *
            ((double)m->third[0][i] * x + (double)m->third[3][i] * y + (double)m->third[4][i] * z) +
        y * y *
            ((double)m->third[1][i] * y + (double)m->third[5][i] * x + (double)m->third[6][i] * z) +
        z * z *
            ((double)m->third[2][i] * z + (double)m->third[7][i] * x + (double)m->third[8][i] * y) +
        (double)m->third[9][i] * x * y * z;
    return inv3 * (one + inv2 * (two + inv2 * three));
}

static double winding(const grvi_surface_tree *tree, const double x[3], double opening)
{
    int32_t stack[GRVI_SURFACE_STACK];
    int n = 0;
    double sum = 0;
    stack[n++] = 0;
    while (n > 0) {
        const int32_t number = stack[--n];
        const grvi_surface_node *const node = &tree->nodes[number];
        const grvi_surface_moments *const m = &tree->moments[number];
        for (int i = 0; i < GRVI_SURFACE_WIDTH; i++) {
            if (node->child[i] == GRVI_SURFACE_EMPTY) continue;
            const double r[3] = {(double)m->centre[0][i] - x[0], (double)m->centre[1][i] - x[1],
                                 (double)m->centre[2][i] - x[2]};
            const double r2 = dot3(r, r);
            if (isfinite(opening) && r2 > opening * opening * (double)m->radius2[i])
                sum += far_field(m, i, r, r2);
            else if (node->child[i] >= 0)
                stack[n++] = node->child[i];
            else
                sum += 2 * block_winding(tree, ~node->child[i], x);
        }
    }
    return sum / (2 * two_pi);
}

const grvi_surface_kernels *grvi_surface_kernels_ref(void)
{
    static const grvi_surface_kernels table = {"ref", closest, winding};
    return &table;
}
