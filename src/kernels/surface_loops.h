/* Distances to surfaces and winding numbers: eight boxes, or all eight triangles of a block or half of them in double, at once; solid angles and
 * moments of eight in float. Included by surface_avx2.c and surface_avx512.c, which differ in the vectors of double: a node's eight children are
 * eight floats in both. */
#include <float.h>
#include <math.h>

#include "kernels/simd.h"
#include "kernels/surface_kernels.h"

/* ---- vectors of double ---- */

/* clang-format off */
#ifdef GRVI_SURFACE_DOUBLES_512
enum { DOUBLES = 8 };
typedef __m512d vd;
GRVI_INLINE vd vd_load(const double *p) { return _mm512_loadu_pd(p); }
GRVI_INLINE void vd_store(double *p, vd a) { _mm512_storeu_pd(p, a); }
GRVI_INLINE vd vd_set1(double a) { return _mm512_set1_pd(a); }
GRVI_INLINE vd vd_sub(vd a, vd b) { return _mm512_sub_pd(a, b); }
GRVI_INLINE vd vd_mul(vd a, vd b) { return _mm512_mul_pd(a, b); }
GRVI_INLINE vd vd_min(vd a, vd b) { return _mm512_min_pd(a, b); }
GRVI_INLINE vd vd_max(vd a, vd b) { return _mm512_max_pd(a, b); }
GRVI_INLINE vd vd_fma(vd a, vd b, vd c) { return _mm512_fmadd_pd(a, b, c); }
GRVI_INLINE vd vd_fms(vd a, vd b, vd c) { return _mm512_fmsub_pd(a, b, c); }
GRVI_INLINE vd vd_fnma(vd a, vd b, vd c) { return _mm512_fnmadd_pd(a, b, c); }
/* the value, but 0 where a, b and c are positive */
GRVI_INLINE vd vd_unless_positive(vd a, vd b, vd c, vd value)
{
    const vd zero = _mm512_setzero_pd();
    const __mmask8 positive = _mm512_cmp_pd_mask(a, zero, _CMP_GT_OQ) &
                              _mm512_cmp_pd_mask(b, zero, _CMP_GT_OQ) &
                              _mm512_cmp_pd_mask(c, zero, _CMP_GT_OQ);
    return _mm512_mask_blend_pd(positive, value, zero);
}
GRVI_INLINE unsigned vd_up_to(vd a, vd b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
#else
enum { DOUBLES = 4 };
typedef __m256d vd;
GRVI_INLINE vd vd_load(const double *p) { return _mm256_loadu_pd(p); }
GRVI_INLINE void vd_store(double *p, vd a) { _mm256_storeu_pd(p, a); }
GRVI_INLINE vd vd_set1(double a) { return _mm256_set1_pd(a); }
GRVI_INLINE vd vd_sub(vd a, vd b) { return _mm256_sub_pd(a, b); }
GRVI_INLINE vd vd_mul(vd a, vd b) { return _mm256_mul_pd(a, b); }
GRVI_INLINE vd vd_min(vd a, vd b) { return _mm256_min_pd(a, b); }
GRVI_INLINE vd vd_max(vd a, vd b) { return _mm256_max_pd(a, b); }
GRVI_INLINE vd vd_fma(vd a, vd b, vd c) { return _mm256_fmadd_pd(a, b, c); }
GRVI_INLINE vd vd_fms(vd a, vd b, vd c) { return _mm256_fmsub_pd(a, b, c); }
GRVI_INLINE vd vd_fnma(vd a, vd b, vd c) { return _mm256_fnmadd_pd(a, b, c); }
GRVI_INLINE vd positive4(vd x) { return _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_GT_OQ); }
/* the value, but 0 where a, b and c are positive */
GRVI_INLINE vd vd_unless_positive(vd a, vd b, vd c, vd value)
{
    return _mm256_andnot_pd(_mm256_and_pd(positive4(a), _mm256_and_pd(positive4(b), positive4(c))), value);
}
GRVI_INLINE unsigned vd_up_to(vd a, vd b)
{
    return (unsigned)_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LE_OQ));
}
#endif
/* clang-format on */

/* ---- closest triangle ---- */

GRVI_INLINE vd clamp(vd x, vd limit)
{
    return vd_min(vd_max(x, vd_set1(0)), limit);
}
GRVI_INLINE vd dot(vd ax, vd ay, vd az, vd bx, vd by, vd bz)
{
    return vd_fma(az, bz, vd_fma(ay, by, vd_mul(ax, bx)));
}
/* a*b - c*d, the second product rounded first */
GRVI_INLINE vd det(vd a, vd b, vd c, vd d)
{
    return vd_fms(a, b, vd_mul(c, d));
}

/* distance2 of surface_ref.c for the places from i on, operation by operation. */
GRVI_INLINE vd distance2(const grvi_surface_block *b, int i, const vd q[3])
{
    const vd px = vd_sub(q[0], vd_load(&b->a[0][i])), py = vd_sub(q[1], vd_load(&b->a[1][i])),
             pz = vd_sub(q[2], vd_load(&b->a[2][i]));
    const vd ux = vd_load(&b->u[0][i]), uy = vd_load(&b->u[1][i]), uz = vd_load(&b->u[2][i]);
    const vd nx = vd_load(&b->normal[0][i]), ny = vd_load(&b->normal[1][i]),
             nz = vd_load(&b->normal[2][i]);
    const vd x = dot(px, py, pz, ux, uy, uz), z = dot(px, py, pz, nx, ny, nz);
    const vd y = dot(px, py, pz, det(ny, uz, nz, uy), det(nz, ux, nx, uz), det(nx, uy, ny, ux));
    const vd bx = vd_load(&b->bx[i]), cx = vd_load(&b->cx[i]), cy = vd_load(&b->cy[i]),
             one = vd_set1(1);

    const vd ab = vd_sub(x, clamp(x, bx));
    const vd to_ab = vd_fma(ab, ab, vd_mul(y, y));
    const vd t = clamp(vd_mul(vd_fma(y, cy, vd_mul(x, cx)), vd_load(&b->inv_ac[i])), one);
    const vd acx = vd_fnma(t, cx, x), acy = vd_fnma(t, cy, y);
    const vd to_ac = vd_fma(acx, acx, vd_mul(acy, acy));
    const vd xb = vd_sub(x, bx), ex = vd_sub(cx, bx);
    const vd s = clamp(vd_mul(vd_fma(y, cy, vd_mul(xb, ex)), vd_load(&b->inv_bc[i])), one);
    const vd bcx = vd_fnma(s, ex, xb), bcy = vd_fnma(s, cy, y);
    const vd to_bc = vd_fma(bcx, bcx, vd_mul(bcy, bcy));

    const vd in_plane = vd_unless_positive(y, det(cy, x, cx, y), det(ex, y, cy, xb),
                                           vd_min(vd_min(to_ab, to_ac), to_bc));
    return vd_fma(z, z, in_plane);
}

GRVI_INLINE void try_block(const grvi_surface_tree *tree, int32_t number, const vd q[3],
                           grvi_surface_hit *hit)
{
    const grvi_surface_block *const block = &tree->blocks[number];
    for (int i = 0; i < block->count; i += DOUBLES) {
        const vd d2 = distance2(block, i, q);
        unsigned mask = vd_up_to(d2, vd_set1(hit->distance2));
        if (mask == 0) continue;
        double value[DOUBLES];
        vd_store(value, d2);
        for (; mask != 0; mask &= mask - 1) {
            const int j = __builtin_ctz(mask);
            const int32_t triangle = block->triangle[i + j];
            if (value[j] > hit->distance2 ||
                (value[j] == hit->distance2 && hit->triangle >= 0 && triangle >= hit->triangle))
                continue;
            *hit = (grvi_surface_hit){value[j], triangle, number, i + j};
        }
    }
}

typedef struct stack_entry {
    float distance2;
    int32_t child;
} stack_entry;

/* Puts the children within the bound on the stack, the nearest on top. */
GRVI_INLINE int push_children(const grvi_surface_node *node, const vf x[3], float bound,
                              stack_entry *stack, int n)
{
    vf d2 = vf_zero();
    for (int k = 0; k < 3; k++) {
        const vf y = vf_fma(
            vf_load(node->axis[k][2]), x[2],
            vf_fma(vf_load(node->axis[k][1]), x[1], vf_mul(vf_load(node->axis[k][0]), x[0])));
        const vf d = vf_max(
            vf_max(vf_sub(vf_load(node->lo[k]), y), vf_sub(y, vf_load(node->hi[k]))), vf_zero());
        d2 = vf_fma(d, d, d2);
    }
    unsigned mask = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(d2, vf_set1(bound), _CMP_LE_OQ));
    if (mask == 0) return n;
    float value[GRVI_SURFACE_WIDTH];
    vf_store(value, d2);
    const int base = n;
    for (; mask != 0; mask &= mask - 1) {
        const int i = __builtin_ctz(mask);
        int at = n++;
        for (; at > base && stack[at - 1].distance2 < value[i]; at--) stack[at] = stack[at - 1];
        stack[at] = (stack_entry){value[i], node->child[i]};
    }
    return n;
}

/* Upper bound of what push_children computes for a box that holds a triangle of that squared distance: x is rounded to float, then its
 * products and sums with the axes (below 2^-20 of its length together); axes and sum of squares have relative errors below 2^-19; the triangle's own error
 * is that of surface_ref.c. */
GRVI_INLINE float box_bound(double distance2, double reach)
{
    const double d = sqrt(distance2) + 0x1p-20 * reach + 1e-8;
    return (float)(d * d * (1 + 0x1p-19));
}

static void closest(const grvi_surface_tree *tree, const double x[3], grvi_surface_hit *hit)
{
    stack_entry stack[GRVI_SURFACE_STACK];
    const vf x8[3] = {vf_set1((float)x[0]), vf_set1((float)x[1]), vf_set1((float)x[2])};
    const vd point[3] = {vd_set1(x[0]), vd_set1(x[1]), vd_set1(x[2])};
    const double reach = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
    /* empty children have an infinite distance */
    float bound = fminf(box_bound(hit->distance2, reach), FLT_MAX);
    int n = push_children(&tree->nodes[0], x8, bound, stack, 0);
    while (n > 0) {
        const stack_entry top = stack[--n];
        if (top.distance2 > bound) continue;
        if (top.child >= 0) {
            n = push_children(&tree->nodes[top.child], x8, bound, stack, n);
        } else {
            const double before = hit->distance2;
            try_block(tree, ~top.child, point, hit);
            if (hit->distance2 < before) bound = box_bound(hit->distance2, reach);
        }
    }
}

/* ---- winding numbers ---- */

GRVI_INLINE vf dot8(const vf a[3], const vf b[3])
{
    return vf_fma(a[2], b[2], vf_fma(a[1], b[1], vf_mul(a[0], b[0])));
}
GRVI_INLINE vf select8(vf mask, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, mask);
}
GRVI_INLINE vf flip8(vf a, vf sign)
{
    return _mm256_xor_ps(a, _mm256_and_ps(sign, vf_set1(-0.0f)));
}

/* atan2 to 2e-7, 0 for (0, 0): atan on [0, tan(pi/8)] as in the Cephes library, the rest by symmetry. */
GRVI_INLINE vf atan2_8(vf y, vf x)
{
    const vf sign = vf_set1(-0.0f), ax = _mm256_andnot_ps(sign, x), ay = _mm256_andnot_ps(sign, y);
    const vf small = vf_min(ax, ay), large = vf_max(vf_max(ax, ay), vf_set1(FLT_MIN));
    const vf steep = _mm256_cmp_ps(small, vf_mul(large, vf_set1(0.41421356f)), _CMP_GT_OQ);
    const vf t = vf_div(select8(steep, vf_sub(small, large), small),
                        select8(steep, vf_add(small, large), large));
    const vf t2 = vf_mul(t, t);
    vf p = vf_fma(vf_set1(8.05374449538e-2f), t2, vf_set1(-1.38776856032e-1f));
    p = vf_fma(p, t2, vf_set1(1.99777106478e-1f));
    p = vf_fma(p, t2, vf_set1(-3.33329491539e-1f));
    vf angle = vf_fma(vf_mul(p, t2), t, t);
    angle = vf_add(angle, _mm256_and_ps(steep, vf_set1(0.785398163f)));
    angle = select8(_mm256_cmp_ps(ay, ax, _CMP_GT_OQ), vf_sub(vf_set1(1.57079633f), angle), angle);
    angle = select8(_mm256_cmp_ps(x, vf_zero(), _CMP_LT_OQ), vf_sub(vf_set1(3.14159265f), angle),
                    angle);
    return flip8(angle, y);
}

/* Half the solid angles of the eight triangles of a block. */
GRVI_INLINE vf half_solid_angles(const grvi_surface_corners *corners, const vf x[3])
{
    vf r[3][3], length[3];
    for (int j = 0; j < 3; j++) {
        for (int k = 0; k < 3; k++) r[j][k] = vf_sub(vf_load(corners->x[j][k]), x[k]);
        length[j] = _mm256_sqrt_ps(dot8(r[j], r[j]));
    }
    vf volume = vf_zero();
    for (int k = 0; k < 3; k++) {
        const int l = (k + 1) % 3, m = (k + 2) % 3;
        volume = vf_fma(r[0][k], vf_fnma(r[1][m], r[2][l], vf_mul(r[1][l], r[2][m])), volume);
    }
    vf other = vf_mul(vf_mul(length[0], length[1]), length[2]);
    for (int j = 0; j < 3; j++)
        other = vf_fma(dot8(r[j], r[(j + 1) % 3]), length[(j + 2) % 3], other);
    return atan2_8(volume, other);
}

/* 4 pi times the winding numbers of eight children by their moments; r2 > 0 where it counts. */
GRVI_INLINE vf far_fields(const grvi_surface_moments *m, const vf r[3], vf r2)
{
    const vf inv2 = vf_div(vf_set1(1), r2), inv3 = vf_mul(inv2, _mm256_sqrt_ps(inv2));
    const vf x = r[0], y = r[1], z = r[2], x2 = vf_mul(x, x), y2 = vf_mul(y, y), z2 = vf_mul(z, z),
             xy = vf_mul(x, y);
    const vf one = vf_fma(vf_load(m->first[2]), z,
                          vf_fma(vf_load(m->first[1]), y, vf_mul(vf_load(m->first[0]), x)));
    vf two = vf_fma(vf_load(m->second[2]), z2,
                    vf_fma(vf_load(m->second[1]), y2, vf_mul(vf_load(m->second[0]), x2)));
    two = vf_fma(vf_load(m->second[3]), xy, two);
    two = vf_fma(z, vf_fma(vf_load(m->second[4]), x, vf_mul(vf_load(m->second[5]), y)), two);
    const vf by_x2 = vf_fma(vf_load(m->third[4]), z,
                            vf_fma(vf_load(m->third[3]), y, vf_mul(vf_load(m->third[0]), x)));
    const vf by_y2 = vf_fma(vf_load(m->third[6]), z,
                            vf_fma(vf_load(m->third[5]), x, vf_mul(vf_load(m->third[1]), y)));
    const vf by_z2 = vf_fma(vf_load(m->third[8]), y,
                            vf_fma(vf_load(m->third[7]), x, vf_mul(vf_load(m->third[2]), z)));
    vf three = vf_fma(x2, by_x2, vf_fma(y2, by_y2, vf_mul(z2, by_z2)));
    three = vf_fma(vf_mul(xy, z), vf_load(m->third[9]), three);
    return vf_mul(inv3, vf_fma(inv2, vf_fma(inv2, three, two), one));
}

static double winding(const grvi_surface_tree *tree, const double x[3], double opening)
{
    int32_t stack[GRVI_SURFACE_STACK];
    int n = 0;
    const vf x8[3] = {vf_set1((float)x[0]), vf_set1((float)x[1]), vf_set1((float)x[2])};
    const vf opening2 = vf_set1((float)(opening * opening));
    vf far_sum = vf_zero(), near_sum = vf_zero();
    stack[n++] = 0;
    while (n > 0) {
        const int32_t number = stack[--n];
        const grvi_surface_node *const node = &tree->nodes[number];
        const grvi_surface_moments *const m = &tree->moments[number];
        vf r[3];
        for (int k = 0; k < 3; k++) r[k] = vf_sub(vf_load(m->centre[k]), x8[k]);
        const vf r2 = dot8(r, r);
        const vf is_far = _mm256_cmp_ps(r2, vf_mul(opening2, vf_load(m->radius2)), _CMP_GT_OQ);
        const unsigned far_mask = (unsigned)_mm256_movemask_ps(is_far);
        if (far_mask != 0) far_sum = vf_add(far_sum, _mm256_and_ps(is_far, far_fields(m, r, r2)));
        for (unsigned mask = ~far_mask & 0xffU; mask != 0; mask &= mask - 1) {
            const int32_t child = node->child[__builtin_ctz(mask)];
            if (child >= 0)
                stack[n++] = child;
            else if (child != GRVI_SURFACE_EMPTY)
                near_sum = vf_add(near_sum, half_solid_angles(&tree->corners[~child], x8));
        }
    }
    float value[GRVI_LANES];
    double sum = 0;
    vf_store(value, vf_fma(near_sum, vf_set1(2), far_sum));
    for (int i = 0; i < GRVI_LANES; i++) sum += (double)value[i];
    return sum / 12.566370614359172954;
}
