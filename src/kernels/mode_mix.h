/* The mode mix of an FNO layer: from the real cos/sin coefficients of all axes to complex modes,
 * one channels x channels complex matrix per mode, and back. Internal.
 *
 * Input and output are the mode order P of spectral_layout.h, restricted to an owned range of
 * |k_1|: local row 0 is row grvi_axis_first_row(axis 1, first) (axis 0 for d = 1). With X the
 * complex coefficients of the modes that are kept,
 *     Y_o(f) = sum_i X_i(f) W_io(f)     and the output rows hold the coefficients of
 *     v(j)   = Re sum_f s(f) Y(f) exp(+2 pi i sum_a f_a j_a / n_a),
 *     s(f)   = c(f_last) / n_points,    c = 1 for f_last = 0 and n/2 (n even), otherwise 2.
 * All scaling of a spectral layer is this s: analysis and synthesis are unscaled and transposes
 * of each other.
 *
 * A group is one combination of magnitudes |k_a|: 2^d rows (fewer where a sine does not exist)
 * of `channels` floats that no other group reads or writes, and up to 2^(d-1) modes. Groups are
 * numbered in the packed order of the weights, so that a range of groups is a contiguous range
 * of modes; callers split [0, n_groups) over threads. Results do not depend on how groups and
 * |k_1| are split; one instruction set gives the same bits every time. */
#ifndef GRVI_KERNELS_MODE_MIX_H
#define GRVI_KERNELS_MODE_MIX_H

#include <stddef.h>

#include "kernels/isa.h"
#include "kernels/spectral_layout.h"

/* What is mixed: const after init, no memory of its own. */
typedef struct grvi_mode_mix {
    grvi_spectral_layout layout;
    int64_t first, count;             /* owned |k_1|: first .. first+count-1 (|k_0| for d = 1) */
    int64_t n_groups;                 /* of the owned range */
    int64_t n_modes;                  /* of the owned range; weights: n_modes * 2 c c floats */
    int64_t n_values;                 /* floats of one sample's local P */
    int order[GRVI_MAX_AXES];         /* axes as the weights are packed, outermost first */
    int64_t stride[GRVI_MAX_AXES];    /* floats of P between two rows of axis a */
    int64_t first_row[GRVI_MAX_AXES]; /* row of axis a that is local row 0 */
} grvi_mode_mix;

/* The part of a mix that one call does. */
typedef struct grvi_mode_mix_work {
    int64_t begin, end;    /* groups */
    int64_t n_samples;     /* at least 1; the weights of a mode are read once for all of them */
    int64_t sample_stride; /* floats (f64: doubles) between the local P of two samples */
} grvi_mode_mix_work;

/* Fills *mix for the owned range of |k_1| (count may be 0). GRV_E_ARG if the range exceeds the
 * magnitudes kept. */
grv_status grvi_mode_mix_init(grvi_mode_mix *mix, const grvi_spectral_layout *layout, int64_t first,
                              int64_t count) GRV_MUST_CHECK;
/* Bytes of scratch that one call (one thread) needs; the caller gives them 64-byte aligned. */
size_t grvi_mode_mix_scratch_bytes(const grvi_mode_mix *mix, int64_t n_samples);
/* Which owned mode is the first of a group; n_groups gives n_modes. To split groups by work. */
int64_t grvi_mode_mix_first_mode(const grvi_mode_mix *mix, int64_t group);

/* Pointers are to the start of what is owned, whatever the groups of the call; the weights (and
 * their gradient) are the packed ones of the owned modes. Every row and column of the groups is
 * written, padding columns are not touched. */
typedef struct grvi_mode_mix_kernels {
    /* out may be in, but must not overlap it otherwise. */
    void (*forward)(const grvi_mode_mix *mix, const grvi_mode_mix_work *work, const float *weights,
                    const float *in, float *out, void *scratch);
    /* The gradients of a loss from grad_out, its gradient by the forward's `out`:
     *   grad_in (NULL: not wanted): by the forward's `in`; may be grad_out, needs weights;
     *   grad_weights (NULL: not wanted): overwritten; needs in, the forward's input; must not
     *     overlap anything else. Written past the cache where it is large and aligned.
     * A complex gradient is dL/dRe + i dL/dIm: with dQ the modes of s * grad_out,
     *   dX_i = sum_o conj(W_io) dQ_o,   dW_io = sum over samples of conj(X_i) dQ_o.
     * The sum over samples is the tree (g_0 + g_1) + (g_2 + g_3) ... of terms rounded to the type
     * of grad_weights, a missing right child passing its sibling on, so that sums over parts
     * that are split at powers of two, added, give the same bits. */
    void (*backward)(const grvi_mode_mix *mix, const grvi_mode_mix_work *work, const float *weights,
                     const float *in, const float *grad_out, float *grad_in, float *grad_weights,
                     void *scratch);
} grvi_mode_mix_kernels;

/* The double form of the reference, for gradient checks; arguments as above. */
typedef struct grvi_mode_mix_kernels_f64 {
    void (*forward)(const grvi_mode_mix *mix, const grvi_mode_mix_work *work, const double *weights,
                    const double *in, double *out, void *scratch);
    void (*backward)(const grvi_mode_mix *mix, const grvi_mode_mix_work *work,
                     const double *weights, const double *in, const double *grad_out,
                     double *grad_in, double *grad_weights, void *scratch);
} grvi_mode_mix_kernels_f64;

/* The kernels of an instruction set; where it is not compiled in, the best ones before it. */
const grvi_mode_mix_kernels *grvi_mode_mix_kernels_for(grvi_isa isa);
const grvi_mode_mix_kernels_f64 *grvi_mode_mix_kernels_f64_ref(void);

/* Canonical order, as in checkpoints: [2 m_0][2 m_1]..[k_last][in][out][re, im], two-sided
 * frequencies 0..m-1, -m..-1. Writes n_modes values: canonical[j] is the place of the owned
 * packed mode j among the modes of the whole layer, [2 m_0][2 m_1]..[k_last]. */
void grvi_mode_mix_canonical(const grvi_mode_mix *mix, int64_t *canonical);
/* The weights of one mode: packed [in][re, im][out] to canonical [in][out][re, im], and back;
 * source and destination must not overlap. */
void grvi_mode_weights_unpack(int64_t channels, const float *packed, float *canonical);
void grvi_mode_weights_pack(int64_t channels, const float *canonical, float *packed);

#endif
