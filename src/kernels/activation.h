/* Activation functions known to the kernels, and their values in double. Internal. */
#ifndef GRVI_KERNELS_ACTIVATION_H
#define GRVI_KERNELS_ACTIVATION_H

#include <math.h>

typedef enum grvi_activation {
    GRVI_ACT_NONE, /* x */
    GRVI_ACT_RELU, /* max(x, 0); derivative 0 at 0, as in PyTorch; NaN stays NaN in the reference only */
    GRVI_ACT_GELU, /* x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2: PyTorch's default, not the tanh form */
    GRVI_ACT_COUNT
} grvi_activation;

/* The value at x. */
static inline double grvi_activation_value(grvi_activation kind, double x)
{
    switch (kind) {
    case GRVI_ACT_RELU: return x < 0 ? 0 : x;
    case GRVI_ACT_GELU: return 0.5 * x * erfc(-x * 0.70710678118654752);
    default: return x;
    }
}

/* The derivative at x. GELU: Phi(x) + x phi(x) with the normal density phi. */
static inline double grvi_activation_derivative(grvi_activation kind, double x)
{
    switch (kind) {
    case GRVI_ACT_RELU: return x > 0 ? 1 : 0;
    case GRVI_ACT_GELU:
        return 0.5 * erfc(-x * 0.70710678118654752) + 0.39894228040143268 * x * exp(-0.5 * x * x);
    default: return 1;
    }
}

#endif
