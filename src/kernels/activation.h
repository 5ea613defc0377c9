/* The activations that kernels fuse, and their double reference. Internal; no SIMD (that is activation_simd.h).
 * GELU is the exact form x Phi(x), Phi(x) = erfc(-x/sqrt(2))/2, not the tanh approximation. */
#ifndef GRVI_KERNELS_ACTIVATION_H
#define GRVI_KERNELS_ACTIVATION_H

#include <math.h>

typedef enum grvi_activation { GRVI_ACT_NONE, GRVI_ACT_RELU, GRVI_ACT_GELU } grvi_activation;
enum {
    GRVI_ACT_COUNT = GRVI_ACT_GELU + 1
}; /* apart, so that a switch over the activations is complete without it */

static inline double grvi_normal_cdf(double x)
{
    return 0.5 * erfc(-0.70710678118654752440 * x);
}
static inline double grvi_normal_pdf(double x)
{
    return 0.39894228040143267794 * exp(-0.5 * x * x);
}

/* act(x); NaN stays NaN. */
static inline double grvi_activation_value(grvi_activation activation, double x)
{
    if (activation == GRVI_ACT_GELU) return x * grvi_normal_cdf(x);
    return activation == GRVI_ACT_RELU && x < 0 ? 0 : x;
}

/* act'(x); ReLU'(0) = 0, as in PyTorch. */
static inline double grvi_activation_derivative(grvi_activation activation, double x)
{
    if (activation == GRVI_ACT_GELU) return grvi_normal_cdf(x) + x * grvi_normal_pdf(x);
    return activation == GRVI_ACT_RELU && !(x > 0) ? 0 : 1;
}

#endif
