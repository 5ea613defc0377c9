/* Kernels that treat every point of a field alike: linear maps over channels, two-layer perceptrons, activations, sums, losses,
 * optimiser. Internal.
 *
 * Data are channels-last and contiguous, x [points][c]; any number of points and channels, any alignment, length 0 included.
 * `void` data have the type of the table: float for grvi_point_kernels_for, double for grvi_point_kernels_f64 (the same reference
 * source), so that one operation serves both. Gradients of weights are double in both: partial sums of one plane, which the
 * caller adds over planes in a fixed order. Inputs and outputs must not overlap unless stated.
 *
 * Same table and same lengths give the same bits, whatever the alignment: every order of summation depends on lengths only.
 * Not-a-number and infinity propagate to whatever depends on them. Thread-safe as long as outputs and scratch differ.
 * To split a sum over threads, cut at fixed borders (GRVI_SUM_BLOCK), sum each piece, add the results in order. */
#ifndef GRVI_KERNELS_POINT_KERNELS_H
#define GRVI_KERNELS_POINT_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/activation.h"
#include "kernels/isa.h"

/* Suggested piece of sum_squares and adam for one thread: borders that do not depend on the number of threads. */
enum { GRVI_SUM_BLOCK = 1 << 16 };

/* y = activation(x W + b). */
typedef struct grvi_linear {
    int64_t c_in, c_out;
    const void *weight; /* [c_in][c_out] */
    const void *bias;   /* [c_out] or NULL */
    grvi_activation activation;
} grvi_linear;

/* y = activation2(activation1(x W1 + b1) W2 + b2). */
typedef struct grvi_mlp {
    int64_t c_in, c_hidden, c_out;
    const void *weight1; /* [c_in][c_hidden] */
    const void *bias1;   /* [c_hidden] or NULL */
    const void *weight2; /* [c_hidden][c_out] */
    const void *bias2;   /* [c_out] or NULL */
    grvi_activation activation1, activation2;
} grvi_mlp;

/* Where gradients are added; shapes as the weights'; a NULL is left out. */
typedef struct grvi_mlp_gradients {
    double *weight1, *bias1, *weight2, *bias2;
} grvi_mlp_gradients;

/* Sums of a prediction against a target. If any element is not finite, so is error2 or target2 (float data). */
typedef struct grvi_loss_sums {
    double error2;        /* sum of (p - y)^2 */
    double target2;       /* sum of y^2 */
    double max_abs_error; /* max |p - y|, 0 for no elements; undefined if one is not a number */
} grvi_loss_sums;

/* One step of Adam (Kingma & Ba 2015; AdamW: Loshchilov & Hutter 2019) as PyTorch computes it:
 *   g = gradient_scale * gradient (+ weight_decay * p unless decoupled);   decoupled: p -= learning_rate * weight_decay * p
 *   m += (1 - beta1) (g - m);   v = beta2 v + (1 - beta2) g^2
 *   p -= learning_rate / correction1 * m / (sqrt(v / correction2) + epsilon)
 * Complex numbers are pairs of independent reals. */
typedef struct grvi_adam {
    double learning_rate, beta1, beta2, epsilon, weight_decay;
    double correction1, correction2; /* 1 - beta^t for step t = 1, 2, ... */
    double gradient_scale;           /* 1, or less where the gradient is clipped */
    bool decoupled;                  /* AdamW */
} grvi_adam;

typedef struct grvi_point_kernels {
    const char *name;

    /* Linear maps. scratch: grvi_linear_scratch_bytes(linear), aligned to 64 bytes. */

    /* y [n][c_out]; pre [n][c_out], if not NULL, gets the values before the activation. */
    void (*linear_forward)(const grvi_linear *linear, int64_t n_points, const void *x, void *y,
                           void *pre, void *scratch);
    /* dx [n][c_in] = g W^T; g [n][c_out] is the gradient before the activation. */
    void (*linear_input_gradient)(const grvi_linear *linear, int64_t n_points, const void *g,
                                  void *dx, void *scratch);
    /* dw [c_in][c_out] += sum x_i g_o, db [c_out] += sum g_o (db may be NULL); only the sizes of *linear are read. */
    void (*linear_weight_gradient)(const grvi_linear *linear, int64_t n_points, const void *x,
                                   const void *g, double *dw, double *db, void *scratch);

    /* Perceptrons; the hidden layer is never stored. scratch: grvi_mlp_scratch_bytes(mlp), aligned to 64 bytes. */

    void (*mlp_forward)(const grvi_mlp *mlp, int64_t n_points, const void *x, void *y,
                        void *scratch);
    /* From x and dy: dx (may be NULL), and gradients are added to *gradients. Recomputes the hidden layer. */
    void (*mlp_backward)(const grvi_mlp *mlp, int64_t n_points, const void *x, const void *dy,
                         void *dx, const grvi_mlp_gradients *gradients, void *scratch);

    /* Elementwise over n numbers; the output may be one of the inputs. */

    void (*act_forward)(grvi_activation kind, int64_t n, const void *x, void *y);
    /* g = dy * activation'(pre) */
    void (*act_gradient)(grvi_activation kind, int64_t n, const void *dy, const void *pre, void *g);
    /* y = a + b */
    void (*add)(int64_t n, const void *a, const void *b, void *y);
    /* y = alpha x + beta y; beta = 0 still reads y */
    void (*axpby)(int64_t n, double alpha, const void *x, double beta, void *y);
    /* x = alpha x */
    void (*scale)(int64_t n, double alpha, void *x);
    /* g = scale (prediction - target) */
    void (*loss_gradient)(int64_t n, double scale, const void *prediction, const void *target,
                          void *g);

    /* Sums, in double. */

    grvi_loss_sums (*loss_sums)(int64_t n, const void *prediction, const void *target);
    double (*sum_squares)(int64_t n, const void *x);
    /* Index of the first number that is NaN or infinite; n if all are finite. */
    int64_t (*first_nonfinite)(int64_t n, const void *x);

    /* One step on n parameters p with gradient g and moments m, v. */
    void (*adam)(const grvi_adam *step, int64_t n, const void *g, void *p, void *m, void *v);

    /* For measuring the machine: does n rounds of multiply-add on registers only, returns the floating-point operations done. */
    int64_t (*peak_loop)(int64_t n);
} grvi_point_kernels;

/* Float32 kernels of a usable instruction set; NULL if it is not usable. Built once; thread-safe. */
const grvi_point_kernels *grvi_point_kernels_for(grvi_isa isa);
/* The reference on double data. */
const grvi_point_kernels *grvi_point_kernels_f64(void);

/* Bytes of scratch for any kernel on these sizes, enough for every instruction set. */
int64_t grvi_linear_scratch_bytes(const grvi_linear *linear);
int64_t grvi_mlp_scratch_bytes(const grvi_mlp *mlp);

/* Copies n_rows pieces of row_bytes between strided places (pad, crop, halo); strides in bytes. */
void grvi_copy_rows(int64_t n_rows, int64_t row_bytes, const void *source, int64_t source_stride,
                    void *target, int64_t target_stride);

/* Filled by the instruction sets' files; false where the compiler lacks the set. Used by point_kernels.c only. */
void grvi_point_kernels_fill_ref(grvi_point_kernels *f32, grvi_point_kernels *f64);
bool grvi_point_kernels_fill_avx2(grvi_point_kernels *kernels);
bool grvi_point_kernels_fill_avx512(grvi_point_kernels *kernels);

#endif
