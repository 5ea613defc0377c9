/* Activations and their derivatives on vectors of float. For loop files only (see simd.h).
 *
 * With t = |x| and Q(t) = erfc(t/sqrt(2))/2, the upper tail of the normal distribution,
 *   GELU(x)  = max(x, 0) - t Q(t)
 *   GELU'(x) = D for x <= 0, 1 - D for x > 0, where D = Q(t) - t phi(t) = Q(t) (1 - t phi(t)/Q(t)).
 * Q^(-1/4) and the hazard phi/Q are smooth and become polynomials, minimax on [0, 5.7] in the error of the result
 * (tools/fit_gelu.py); t is clamped to 5.7, where t Q = 4e-8. Against libm's erfc in double, over all floats of |x| < 7, the
 * absolute error is at most 2.8e-7 (GELU; beyond |x| = 4 mostly half an ulp) and 3.7e-7 (derivative). GELU costs 11 fma, 2 products, 4 simple operations and one division.
 * max and min return their second operand when one is NaN: the order of operands below keeps NaN. */
#ifndef GRVI_KERNELS_ACTIVATION_SIMD_H
#define GRVI_KERNELS_ACTIVATION_SIMD_H

#include <stddef.h>

#include "kernels/activation.h"
#include "kernels/simd.h"

#define GRVI_GELU_CLAMP 5.7f

GRVI_INLINE vf vf_gelu_magnitude(vf x)
{
    return vf_min(vf_set1(GRVI_GELU_CLAMP), vf_max(vf_sub(vf_zero(), x), x));
}

/* From the highest power down. */
static const float grvi_normal_tail_coefficients[] = {
    7.27168481e-06f, -8.34828388e-05f, 0.000475573208f, -0.00137527706f,
    0.00297082425f,  -0.00134040089f,  0.00850388221f,  0.0304728001f,
    0.118437715f,    0.237202629f,     1.1892072f};
static const float grvi_normal_hazard_coefficients[] = {
    1.12883736e-05f, -0.000144193924f, 0.000580626074f, 0.00087377982f,
    -0.0200179443f,  0.109404147f,     0.636537015f,    0.797890246f};
enum { GRVI_TAIL_DEGREE = 10, GRVI_HAZARD_DEGREE = 7, GRVI_ACTIVATION_GROUP = 3 };

/* The _n functions work on n vectors (n <= GRVI_ACTIVATION_GROUP, a constant) step by step: one vector's chain of dependent
 * operations would leave the units idle half of the time. Any n gives the same bits. */
GRVI_INLINE void vf_polynomial_n(const int n, const int degree, const float *coefficients,
                                 const vf *t, vf *p)
{
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) p[j] = vf_set1(coefficients[0]);
#pragma GCC unroll 16
    for (int d = 1; d <= degree; d++) {
#pragma GCC unroll 3
        for (int j = 0; j < n; j++) p[j] = vf_fma(p[j], t[j], vf_set1(coefficients[d]));
    }
}

/* erfc(t/sqrt(2))/2 for t in [0, GRVI_GELU_CLAMP] */
GRVI_INLINE void vf_normal_tail_n(const int n, const vf *t, vf *tail)
{
    vf_polynomial_n(n, GRVI_TAIL_DEGREE, grvi_normal_tail_coefficients, t, tail);
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) tail[j] = vf_mul(tail[j], tail[j]);
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) tail[j] = vf_div(vf_set1(1.0f), vf_mul(tail[j], tail[j]));
}

GRVI_INLINE vf vf_relu(vf x)
{
    return vf_max(vf_zero(), x);
}
GRVI_INLINE vf vf_relu_derivative(vf x)
{
    return vf_select_positive(x, vf_set1(1.0f), vf_zero());
}

/* GELU'(x) from t = |x| clamped and Q(t) */
GRVI_INLINE void vf_gelu_slope_n(const int n, const vf *x, const vf *t, const vf *tail, vf *slope)
{
    const vf one = vf_set1(1.0f);
    vf hazard[GRVI_ACTIVATION_GROUP];
    vf_polynomial_n(n, GRVI_HAZARD_DEGREE, grvi_normal_hazard_coefficients, t,
                    hazard); /* phi(t) / Q(t) */
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) {
        const vf d = vf_mul(tail[j], vf_fnma(t[j], hazard[j], one));
        slope[j] = vf_select_positive(x[j], vf_sub(one, d), d);
    }
}

/* y = GELU(x) and, if slope is not NULL, slope = GELU'(x). y may be x. */
GRVI_INLINE void vf_gelu_n(const int n, const vf *x, vf *y, vf *slope)
{
    vf t[GRVI_ACTIVATION_GROUP], tail[GRVI_ACTIVATION_GROUP];
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) t[j] = vf_gelu_magnitude(x[j]);
    vf_normal_tail_n(n, t, tail);
    if (slope != NULL) vf_gelu_slope_n(n, x, t, tail, slope);
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) y[j] = vf_fnma(t[j], tail[j], vf_relu(x[j]));
}

/* slope = GELU'(x) */
GRVI_INLINE void vf_gelu_derivative_n(const int n, const vf *x, vf *slope)
{
    vf t[GRVI_ACTIVATION_GROUP], tail[GRVI_ACTIVATION_GROUP];
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) t[j] = vf_gelu_magnitude(x[j]);
    vf_normal_tail_n(n, t, tail);
    vf_gelu_slope_n(n, x, t, tail, slope);
}

GRVI_INLINE vf vf_gelu(vf x)
{
    vf_gelu_n(1, &x, &x, NULL);
    return x;
}

GRVI_INLINE vf vf_gelu_derivative(vf x)
{
    vf slope;
    vf_gelu_derivative_n(1, &x, &slope);
    return slope;
}

/* y[j] = act(x[j]) and slope[j] = act'(x[j]) for n <= GRVI_ACTIVATION_GROUP vectors; y may be x. */
GRVI_INLINE void vf_activation_n(grvi_activation activation, const int n, const vf *x, vf *y)
{
    if (activation == GRVI_ACT_GELU) {
        vf_gelu_n(n, x, y, NULL);
        return;
    }
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) y[j] = activation == GRVI_ACT_RELU ? vf_relu(x[j]) : x[j];
}

GRVI_INLINE void vf_activation_derivative_n(grvi_activation activation, const int n, const vf *x, vf *slope)
{
    if (activation == GRVI_ACT_GELU) {
        vf_gelu_derivative_n(n, x, slope);
        return;
    }
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) slope[j] = activation == GRVI_ACT_RELU ? vf_relu_derivative(x[j]) : vf_set1(1.0f);
}

/* The same by name; `activation` is meant to be a constant where they are inlined, or one that the loop hoists. */
GRVI_INLINE vf vf_activation(grvi_activation activation, vf x)
{
    if (activation == GRVI_ACT_GELU) return vf_gelu(x);
    return activation == GRVI_ACT_RELU ? vf_relu(x) : x;
}

GRVI_INLINE vf vf_activation_derivative(grvi_activation activation, vf x)
{
    if (activation == GRVI_ACT_GELU) return vf_gelu_derivative(x);
    return activation == GRVI_ACT_RELU ? vf_relu_derivative(x) : vf_set1(1.0f);
}

#endif
