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

#include "kernels/activation.h"
#include "kernels/simd.h"

#define GRVI_GELU_CLAMP 5.7f

GRVI_INLINE vf vf_gelu_magnitude(vf x)
{
    return vf_min(vf_set1(GRVI_GELU_CLAMP), vf_max(vf_sub(vf_zero(), x), x));
}

/* erfc(t/sqrt(2))/2 for t in [0, GRVI_GELU_CLAMP] */
GRVI_INLINE vf vf_normal_tail(vf t)
{
    vf p = vf_set1(7.27168481e-06f);
    p = vf_fma(p, t, vf_set1(-8.34828388e-05f));
    p = vf_fma(p, t, vf_set1(0.000475573208f));
    p = vf_fma(p, t, vf_set1(-0.00137527706f));
    p = vf_fma(p, t, vf_set1(0.00297082425f));
    p = vf_fma(p, t, vf_set1(-0.00134040089f));
    p = vf_fma(p, t, vf_set1(0.00850388221f));
    p = vf_fma(p, t, vf_set1(0.0304728001f));
    p = vf_fma(p, t, vf_set1(0.118437715f));
    p = vf_fma(p, t, vf_set1(0.237202629f));
    p = vf_fma(p, t, vf_set1(1.1892072f));
    p = vf_mul(p, p);
    return vf_div(vf_set1(1.0f), vf_mul(p, p));
}

/* phi(t) / Q(t) for t in [0, GRVI_GELU_CLAMP] */
GRVI_INLINE vf vf_normal_hazard(vf t)
{
    vf p = vf_set1(1.12883736e-05f);
    p = vf_fma(p, t, vf_set1(-0.000144193924f));
    p = vf_fma(p, t, vf_set1(0.000580626074f));
    p = vf_fma(p, t, vf_set1(0.00087377982f));
    p = vf_fma(p, t, vf_set1(-0.0200179443f));
    p = vf_fma(p, t, vf_set1(0.109404147f));
    p = vf_fma(p, t, vf_set1(0.636537015f));
    return vf_fma(p, t, vf_set1(0.797890246f));
}

GRVI_INLINE vf vf_relu(vf x)
{
    return vf_max(vf_zero(), x);
}
GRVI_INLINE vf vf_relu_derivative(vf x)
{
    return vf_select_positive(x, vf_set1(1.0f), vf_zero());
}

GRVI_INLINE vf vf_gelu(vf x)
{
    const vf t = vf_gelu_magnitude(x);
    return vf_fnma(t, vf_normal_tail(t), vf_relu(x));
}

GRVI_INLINE vf vf_gelu_derivative(vf x)
{
    const vf t = vf_gelu_magnitude(x), one = vf_set1(1.0f);
    const vf d = vf_mul(vf_normal_tail(t), vf_fnma(t, vf_normal_hazard(t), one));
    return vf_select_positive(x, vf_sub(one, d), d);
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
