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

/* 1/Q(t) for t in [0, GRVI_GELU_CLAMP]. Even and odd powers apart: half the latency of one Horner chain;
 * the constant last, so that small t cost one rounding. */
GRVI_INLINE vf vf_normal_tail_inverse(vf t)
{
    const vf s = vf_mul(t, t);
    vf even = vf_set1(7.27168481e-06f), odd = vf_set1(-8.34828388e-05f);
    even = vf_fma(even, s, vf_set1(0.000475573208f));
    odd = vf_fma(odd, s, vf_set1(-0.00137527706f));
    even = vf_fma(even, s, vf_set1(0.00297082425f));
    odd = vf_fma(odd, s, vf_set1(-0.00134040089f));
    even = vf_fma(even, s, vf_set1(0.00850388221f));
    odd = vf_fma(odd, s, vf_set1(0.0304728001f));
    even = vf_fma(even, s, vf_set1(0.118437715f));
    odd = vf_fma(odd, s, vf_set1(0.237202629f));
    const vf p = vf_fma(vf_fma(even, t, odd), t, vf_set1(1.1892072f)), p2 = vf_mul(p, p);
    return vf_mul(p2, p2);
}

/* phi(t) / Q(t) for t in [0, GRVI_GELU_CLAMP] */
GRVI_INLINE vf vf_normal_hazard(vf t)
{
    const vf s = vf_mul(t, t);
    vf even = vf_set1(-0.000144193924f), odd = vf_set1(1.12883736e-05f);
    even = vf_fma(even, s, vf_set1(0.00087377982f));
    odd = vf_fma(odd, s, vf_set1(0.000580626074f));
    even = vf_fma(even, s, vf_set1(0.109404147f));
    odd = vf_fma(odd, s, vf_set1(-0.0200179443f));
    odd = vf_fma(odd, s, vf_set1(0.636537015f));
    return vf_fma(vf_fma(even, t, odd), t, vf_set1(0.797890246f));
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
    return vf_sub(vf_relu(x), vf_div(t, vf_normal_tail_inverse(t)));
}

GRVI_INLINE vf vf_gelu_derivative(vf x)
{
    const vf t = vf_gelu_magnitude(x), one = vf_set1(1.0f);
    const vf d = vf_div(vf_fnma(t, vf_normal_hazard(t), one), vf_normal_tail_inverse(t));
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
