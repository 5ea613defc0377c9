/* Distances to surfaces and winding numbers with AVX2: eight boxes, or four triangles in double, at once; solid angles and moments of eight in float. */
#include "kernels/surface_kernels.h"

#include <stddef.h>

#if defined(__AVX2__) && defined(__FMA__)
#include <float.h>
#include <math.h>

#include "kernels/simd.h"

/* ---- closest triangle ---- */

GRVI_INLINE __m256d clamp4(__m256d x, __m256d limit)
{
    return _mm256_min_pd(_mm256_max_pd(x, _mm256_setzero_pd()), limit);
}
GRVI_INLINE __m256d positive4(__m256d x)
{
    return _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_GT_OQ);
}
GRVI_INLINE __m256d dot4(__m256d ax, __m256d ay, __m256d az, __m256d bx, __m256d by, __m256d bz)
{
    return _mm256_fmadd_pd(az, bz, _mm256_fmadd_pd(ay, by, _mm256_mul_pd(ax, bx)));
}
/* a*b - c*d, the second product rounded first */
GRVI_INLINE __m256d det4(__m256d a, __m256d b, __m256d c, __m256d d)
{
    return _mm256_fmsub_pd(a, b, _mm256_mul_pd(c, d));
}

/* distance2 of surface_ref.c for places i .. i+3, operation by operation. */
GRVI_INLINE __m256d distance2_4(const grvi_surface_block *b, int i, const __m256d q[3])
{
    const __m256d px = _mm256_sub_pd(q[0], _mm256_loadu_pd(&b->a[0][i])),
                  py = _mm256_sub_pd(q[1], _mm256_loadu_pd(&b->a[1][i])),
                  pz = _mm256_sub_pd(q[2], _mm256_loadu_pd(&b->a[2][i]));
    const __m256d ux = _mm256_loadu_pd(&b->u[0][i]), uy = _mm256_loadu_pd(&b->u[1][i]),
                  uz = _mm256_loadu_pd(&b->u[2][i]);
    const __m256d nx = _mm256_loadu_pd(&b->normal[0][i]), ny = _mm256_loadu_pd(&b->normal[1][i]),
                  nz = _mm256_loadu_pd(&b->normal[2][i]);
    const __m256d x = dot4(px, py, pz, ux, uy, uz), z = dot4(px, py, pz, nx, ny, nz);
    const __m256d y =
        dot4(px, py, pz, det4(ny, uz, nz, uy), det4(nz, ux, nx, uz), det4(nx, uy, ny, ux));
    const __m256d bx = _mm256_loadu_pd(&b->bx[i]), cx = _mm256_loadu_pd(&b->cx[i]),
                  cy = _mm256_loadu_pd(&b->cy[i]), one = _mm256_set1_pd(1);

    const __m256d ab = _mm256_sub_pd(x, clamp4(x, bx));
    const __m256d to_ab = _mm256_fmadd_pd(ab, ab, _mm256_mul_pd(y, y));
    const __m256d t = clamp4(
        _mm256_mul_pd(_mm256_fmadd_pd(y, cy, _mm256_mul_pd(x, cx)), _mm256_loadu_pd(&b->inv_ac[i])),
        one);
    const __m256d acx = _mm256_fnmadd_pd(t, cx, x), acy = _mm256_fnmadd_pd(t, cy, y);
    const __m256d to_ac = _mm256_fmadd_pd(acx, acx, _mm256_mul_pd(acy, acy));
    const __m256d xb = _mm256_sub_pd(x, bx), ex = _mm256_sub_pd(cx, bx);
    const __m256d s = clamp4(_mm256_mul_pd(_mm256_fmadd_pd(y, cy, _mm256_mul_pd(xb, ex)),
                                           _mm256_loadu_pd(&b->inv_bc[i])),
                             one);
    const __m256d bcx = _mm256_fnmadd_pd(s, ex, xb), bcy = _mm256_fnmadd_pd(s, cy, y);
    const __m256d to_bc = _mm256_fmadd_pd(bcx, bcx, _mm256_mul_pd(bcy, bcy));

    const __m256d inside = _mm256_and_pd(
        positive4(y), _mm256_and_pd(positive4(det4(cy, x, cx, y)), positive4(det4(ex, y, cy, xb))));
    const __m256d in_plane =
        _mm256_andnot_pd(inside, _mm256_min_pd(_mm256_min_pd(to_ab, to_ac), to_bc));
    return _mm256_fmadd_pd(z, z, in_plane);
}

GRVI_INLINE void try_block(const grvi_surface_tree *tree, int32_t number, const __m256d q[3],
                           grvi_surface_hit *hit)
{
    const grvi_surface_block *const block = &tree->blocks[number];
    for (int i = 0; i < block->count; i += 4) {
        const __m256d d2 = distance2_4(block, i, q);
        unsigned mask = (unsigned)_mm256_movemask_pd(
            _mm256_cmp_pd(d2, _mm256_set1_pd(hit->distance2), _CMP_LE_OQ));
        if (mask == 0) continue;
        double value[4];
        _mm256_storeu_pd(value, d2);
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
    const __m256d x4[3] = {_mm256_set1_pd(x[0]), _mm256_set1_pd(x[1]), _mm256_set1_pd(x[2])};
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
            try_block(tree, ~top.child, x4, hit);
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

const grvi_surface_kernels *grvi_surface_kernels_avx2(void)
{
    static const grvi_surface_kernels table = {"avx2", closest, winding};
    return &table;
}
#else
const grvi_surface_kernels *grvi_surface_kernels_avx2(void)
{
    return NULL;
}
#endif
