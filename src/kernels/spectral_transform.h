/* The transforms of an FNO block between physical order and mode order. Internal; memory orders in spectral_layout.h.
 *
 * Analysis takes one plane x of v through the local axes d-1 .. 1 into slab order A; the first axis then goes from A to mode
 * order P when every x of a block is there. Synthesis is the way back and ends with the pointwise part of the block.
 * All of them are sums over basis functions without any scale factor (the mode mix has it), so that synthesis and
 * analysis are adjoint to each other: <analyse v, a> = <v, synthesise a>.
 *
 * The fast kernels compute in float, the reference in double; pointers need no alignment beyond that of float. A result
 * depends on the instruction set, but not on alignment, threads or which planes and blocks a call handles. No buffer may overlap
 * another one. Any n, number of rows and channels. */
#ifndef GRVI_KERNELS_SPECTRAL_TRANSFORM_H
#define GRVI_KERNELS_SPECTRAL_TRANSFORM_H

#include "kernels/activation.h"
#include "kernels/isa.h"
#include "kernels/spectral_layout.h"

/* Cosine and sine tables of one axis. Points j and n-j share a table row: p = floor(n/2)+1 points carry cosines, of which
 * the pairs j = 1 .. q, q = ceil(n/2)-1, carry sines as well. */
typedef struct grvi_axis_tables {
    int64_t n_cos_points;     /* p */
    int64_t n_pairs;          /* q */
    const float *forward_cos; /* [p][n_cos]   cos(2 pi k j/n), j = 0 .. p-1 */
    const float *forward_sin; /* [q][n_sin]   sin(2 pi k j/n), j = 1 .. q, k = 1 .. n_sin */
    const float *inverse_cos; /* [n_cos][p]   the transpose */
    const float *
        inverse_sin; /* [n_sin][p]   the transpose, zero where j has no sine (0, and n/2 of even n) */
    const double *unit_cos; /* [n]          cos(2 pi i/n), for the reference */
    const double *unit_sin; /* [n] */
} grvi_axis_tables;

typedef struct grvi_transform_tables {
    grvi_spectral_layout layout;
    grvi_axis_tables axis[GRVI_MAX_AXES];
    int64_t n_bytes; /* of all tables, in one block of memory */
    void *memory;
} grvi_transform_tables;

/* Tables of a layout, in one 64-byte aligned allocation beside the object's; read-only afterwards, shared by all threads. *out is NULL on
 * failure (GRV_E_NOMEM; GRV_E_ARG for an axis of more than 2^24 points). Owned by the caller. */
grv_status grvi_transform_tables_create(const grvi_spectral_layout *layout,
                                        grvi_transform_tables **out) GRV_MUST_CHECK;
void grvi_transform_tables_destroy(grvi_transform_tables **tables);

/* One plane x of A: the element of row r_1, block qb and column `column` is data[r_1 * stride_r1 + qb * stride_qb + column];
 * for a whole A, data points to x's `block` floats, stride_qb = n_0 * block and stride_r1 = n_blocks * stride_qb. For d = 1 only r_1 = 0. */
typedef struct grvi_slab_plane {
    float *data;
    int64_t stride_r1, stride_qb;
} grvi_slab_plane;

typedef struct grvi_slab_plane_const {
    const float *data;
    int64_t stride_r1, stride_qb;
} grvi_slab_plane_const;

/* What synthesis does after the inverse transforms: y = act(transformed + u W + b). */
typedef struct grvi_synthesis_end {
    const float *skip_input; /* u, a plane [points][c]; NULL: no skip product */
    const float *weight;     /* W [c in][c out]; read only where skip_input is given */
    const float *bias;       /* b [c]; NULL: none */
    grvi_activation activation;
} grvi_synthesis_end;

typedef struct grvi_spectral_kernels {
    /* Bytes of scratch memory, 64-byte aligned, that every thread passes to the functions below; contents do not matter. */
    int64_t (*scratch_bytes)(const grvi_transform_tables *tables);

    /* v [n_1]..[n_{d-1}][c] -> every float of the plane's blocks; padding columns become 0. d = 1: v is [c] and is copied. */
    void (*analyse_plane)(const grvi_transform_tables *tables, const float *v, grvi_slab_plane a,
                          void *scratch);
    /* The first step of the backward pass: g = dy * act'(pre), which is stored, then analyses g. All three are planes like v. */
    void (*analyse_gradient_plane)(const grvi_transform_tables *tables, const float *dy,
                                   const float *pre, grvi_activation activation, float *g,
                                   grvi_slab_plane a, void *scratch);
    /* a -> y [n_1]..[n_{d-1}][c], ended by `end`; pre (NULL: not wanted) receives the plane before the activation. */
    void (*synthesise_plane)(const grvi_transform_tables *tables, grvi_slab_plane_const a,
                             const grvi_synthesis_end *end, float *y, float *pre, void *scratch);

    /* Along axis 0, for the blocks [block_begin, block_end) of one r_1:
     * a [n_blocks][n_0][block] <-> p [r_0][n_blocks * block]. Both point to the first block, whatever the range. */
    void (*first_axis_forward)(const grvi_transform_tables *tables, const float *a, float *p,
                               int64_t block_begin, int64_t block_end, void *scratch);
    void (*first_axis_inverse)(const grvi_transform_tables *tables, const float *p, float *a,
                               int64_t block_begin, int64_t block_end, void *scratch);
} grvi_spectral_kernels;

/* NULL where grvi_isa_usable(isa) is false. A constant. */
const grvi_spectral_kernels *grvi_spectral_kernels_for(grvi_isa isa);

/* The tables of the instruction sets; NULL where the compiler lacks them. Use grvi_spectral_kernels_for. */
const grvi_spectral_kernels *grvi_spectral_kernels_ref(void);
const grvi_spectral_kernels *grvi_spectral_kernels_avx2(void);
const grvi_spectral_kernels *grvi_spectral_kernels_avx512(void);

#endif
