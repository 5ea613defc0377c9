/* Analysis and synthesis of planes and the first axis, for one instruction set (see simd.h).
 *
 * Order of the local axes. d = 4: per y, first z with the long columns (t, c), then runs of c floats are transposed,
 * (z rows, t, c) -> (t, z rows, c), so that t has long columns too and leaves a row of the slab in Q order. (t first costs
 * n_2 f(t) + r_3 f(z) columns instead of n_3 f(z) + r_2 f(t): equal within 4 % for 64 x 16 with 25 and 11 rows.) d = 3: groups of y
 * rows are transposed (y, t, c) -> (t, y, c), t, and back into the slab. Then y, on the slab, a block of Q at a time into A.
 * Synthesis does the same backwards; what the last axis gives stays in cache for skip product, bias and activation.
 * docs/spectral.md draws it and has measured figures. */
#include "core/alloc.h"
#include "kernels/spectral_axis_loops.h"
#include "kernels/spectral_end_loops.h"

enum {
    CHUNK_FLOATS =
        5120, /* of transformed values that wait for the pointwise end in first-level cache: 20 KiB */
    PANEL_PAD = STRIP, /* floats that may be read or rewritten behind a buffer */
};

/* What analysis transforms: v itself, or g = dy * act'(pre), made panel by panel just before it is read. */
typedef struct analysis_input {
    const float *v;  /* the plane to transform; equals g for the gradient */
    const float *dy; /* NULL: v is ready */
    const float *pre;
    float *g;
    grvi_activation activation;
} analysis_input;

static void prepare_input(const analysis_input *input, int64_t begin, int64_t n)
{
    if (!input->dy) return;
    const float *const dy = input->dy + begin, *const pre = input->pre + begin;
    float *const g = input->g + begin;
    switch (input->activation) {
    case GRVI_ACT_NONE: memcpy(g, dy, (size_t)n * sizeof(float)); break;
    case GRVI_ACT_RELU: multiply_derivative(GRVI_ACT_RELU, n, dy, pre, g); break;
    case GRVI_ACT_GELU: multiply_derivative(GRVI_ACT_GELU, n, dy, pre, g); break;
    }
}

/* ---- scratch memory ---- */

/* The sizes of one plane and the pieces of scratch. "Panel" = what the inner axes work on at a time: one y of a 4-d
 * plane, a group of y of a 3-d one. */
typedef struct workspace {
    transform_axis axis[GRVI_MAX_AXES];
    int64_t
        group; /* d = 3: rows y of a panel; d = 4: last-axis points that are finished at a time */
    int64_t slab_stride, wide_stride, long_stride, chunk_stride;
    float *slab;   /* [n_1][slab_stride]: rows in Q order (d >= 3); [n_1][c] (d = 2) */
    float *wide;   /* d = 4: [r_2][n_3 c]                       d = 3: [r_2][group c] */
    float *longer; /* d = 4: [n_3][r_2 c]                       d = 3: [n_2][group c] */
    float *
        chunk; /* d = 4: [n_2][group c]                     d = 3: [group][n_2 c]       d = 1: [c] */
    float *weight, *bias;
    int64_t n_floats; /* of all of them */
} workspace;

/* Rows that are no multiple of 4 KiB apart, so that a column of them does not fall into one cache set; with room for PANEL_PAD. */
static int64_t padded_stride(int64_t n)
{
    return grvi_round_up(n, 16) / 16 % 2 ? grvi_round_up(n, 16) + 32 : grvi_round_up(n, 16) + 16;
}

static float *take(workspace *w, float *base, int64_t n)
{
    float *const piece = base ? base + w->n_floats : NULL;
    w->n_floats += grvi_round_up(n + PANEL_PAD, 16);
    return piece;
}

/* Points of c channels whose columns fill whole strips where that is possible, of n_rows rows about CHUNK_FLOATS, at most n. */
static int64_t group_points(int64_t n, int64_t c, int64_t n_rows)
{
    int64_t unit = STRIP;
    while (unit > 1 && c * (unit / 2) % STRIP == 0) unit /= 2;
    return grvi_min_i64(n, grvi_max_i64(1, CHUNK_FLOATS / (n_rows * c * unit)) * unit);
}

/* base == NULL: measures only. */
static workspace lay_out(const grvi_transform_tables *tables, float *base)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const int d = l->n_axes;
    const int64_t c = l->channels, padded_c = grvi_round_up(c, GRVI_LANES);
    workspace w = {.group = 1};
    int64_t n_longest = 1;
    for (int a = 0; a < d; a++) n_longest = grvi_max_i64(n_longest, l->axis[a].n);
    float *const strip_in = take(&w, base, n_longest * STRIP), *const strip_out = take(
                                                                   &w, base, n_longest * STRIP);
    for (int a = 0; a < d; a++)
        w.axis[a] = (transform_axis){&l->axis[a], &tables->axis[a], strip_in, strip_out};
    if (d == 4) {
        w.group = group_points(l->axis[3].n, c, l->axis[2].n);
        w.wide_stride = padded_stride(l->axis[3].n * c);
        w.long_stride = padded_stride(l->axis[2].n_rows * c);
        w.chunk_stride = padded_stride(w.group * c);
        w.wide = take(&w, base, l->axis[2].n_rows * w.wide_stride);
        w.longer = take(&w, base, l->axis[3].n * w.long_stride);
        w.chunk = take(&w, base, l->axis[2].n * w.chunk_stride);
    } else if (d == 3) {
        w.group = group_points(l->axis[1].n, c, l->axis[2].n);
        w.wide_stride = w.long_stride = padded_stride(w.group * c);
        w.chunk_stride = l->axis[2].n * c;
        w.wide = take(&w, base, l->axis[2].n_rows * w.wide_stride);
        w.longer = take(&w, base, l->axis[2].n * w.long_stride);
        w.chunk = take(&w, base, w.group * w.chunk_stride);
    } else {
        w.chunk = take(&w, base, c);
    }
    w.slab_stride = d >= 3 ? padded_stride(l->n_columns) : c;
    if (d >= 2) w.slab = take(&w, base, l->axis[1].n * w.slab_stride);
    w.weight = take(&w, base, c * padded_c);
    w.bias = take(&w, base, padded_c);
    return w;
}

static int64_t scratch_bytes(const grvi_transform_tables *tables)
{
    return lay_out(tables, NULL).n_floats * (int64_t)sizeof(float);
}

/* Columns of block qb that are not padding. */
static int64_t block_columns(const grvi_spectral_layout *l, int64_t qb)
{
    return grvi_min_i64(l->block, l->n_columns - qb * l->block);
}

/* ---- analysis ---- */

/* One y of a 4-d plane: v [z][t][c] -> row [t rows][z rows][c] of the slab. */
static void analyse_panel_4d(const workspace *w, int64_t c, const float *v, const float *next,
                             float *slab_row)
{
    const grvi_axis_modes *const z = w->axis[2].modes, *const t = w->axis[3].modes;
    forward_columns(&w->axis[2], v, t->n * c, next, t->n * c, w->wide, w->wide_stride);
    transpose_runs(z->n_rows, t->n, c, w->wide, w->wide_stride, w->longer, w->long_stride);
    forward_columns(&w->axis[3], w->longer, w->long_stride, w->longer, z->n_rows * c, slab_row,
                    z->n_rows * c);
}

/* n_y rows of a 3-d plane: v [y][t][c] -> slab rows [y][t rows][c]. */
static void analyse_panel_3d(const workspace *w, int64_t c, int64_t n_y, const float *v,
                             float *slab_rows)
{
    const grvi_axis_modes *const t = w->axis[2].modes;
    transpose_runs(n_y, t->n, c, v, t->n * c, w->longer, w->long_stride);
    forward_columns(&w->axis[2], w->longer, w->long_stride, w->longer, n_y * c, w->wide,
                    w->wide_stride);
    transpose_runs(t->n_rows, n_y, c, w->wide, w->wide_stride, slab_rows, w->slab_stride);
}

/* slab [n_1][Q] -> a. */
static void analyse_slab(const grvi_spectral_layout *l, const workspace *w, const float *slab,
                         grvi_slab_plane a)
{
    for (int64_t qb = 0; qb < l->n_blocks; qb++) {
        const float *const in = slab + qb * l->block;
        float *const out = a.data + qb * a.stride_qb;
        const int64_t n = block_columns(l, qb);
        forward_columns(&w->axis[1], in, w->slab_stride, in + l->block, n, out, a.stride_r1);
        for (int64_t r = 0; r < w->axis[1].modes->n_rows && n < l->block; r++)
            memset(out + r * a.stride_r1 + n, 0, (size_t)(l->block - n) * sizeof(float));
    }
}

static void analyse(const grvi_transform_tables *tables, const analysis_input *input,
                    grvi_slab_plane a, void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const workspace w = lay_out(tables, scratch);
    const int64_t c = l->channels, n_plane = l->n_points / l->axis[0].n * c;
    if (l->n_axes < 4) prepare_input(input, 0, n_plane);
    switch (l->n_axes) {
    case 4: {
        const int64_t n_y = l->axis[1].n, panel = n_plane / n_y;
        for (int64_t y = 0; y < n_y; y++) {
            prepare_input(input, y * panel, panel);
            const float *const v = input->v + y * panel, *const next = y + 1 < n_y && !input->dy
                                                                           ? v + panel
                                                                           : v;
            analyse_panel_4d(&w, c, v, next, w.slab + y * w.slab_stride);
        }
        analyse_slab(l, &w, w.slab, a);
        break;
    }
    case 3: {
        const int64_t n_y = l->axis[1].n, row = n_plane / n_y;
        for (int64_t y = 0; y < n_y; y += w.group)
            analyse_panel_3d(&w, c, grvi_min_i64(w.group, n_y - y), input->v + y * row,
                             w.slab + y * w.slab_stride);
        analyse_slab(l, &w, w.slab, a);
        break;
    }
    case 2: analyse_slab(l, &w, input->v, a); break;
    default:
        for (int64_t qb = 0; qb < l->n_blocks; qb++) {
            const int64_t n = block_columns(l, qb);
            memcpy(a.data + qb * a.stride_qb, input->v + qb * l->block, (size_t)n * sizeof(float));
            memset(a.data + qb * a.stride_qb + n, 0, (size_t)(l->block - n) * sizeof(float));
        }
    }
}

static void analyse_plane(const grvi_transform_tables *tables, const float *v, grvi_slab_plane a,
                          void *scratch)
{
    analyse(tables, &(analysis_input){.v = v}, a, scratch);
}

static void analyse_gradient_plane(const grvi_transform_tables *tables, const float *dy,
                                   const float *pre, grvi_activation activation, float *g,
                                   grvi_slab_plane a, void *scratch)
{
    analyse(tables, &(analysis_input){g, dy, pre, g, activation}, a, scratch);
}

/* ---- synthesis ---- */

static pointwise_end pack_end(const workspace *w, int64_t c, const grvi_synthesis_end *end)
{
    const int64_t stride = grvi_round_up(c, GRVI_LANES), rest = c % GRVI_LANES;
    const bool has_skip = end->skip_input != NULL, quads = c % 4 == 0;
    memset(w->bias, 0, (size_t)stride * sizeof(float));
    if (end->bias) memcpy(w->bias, end->bias, (size_t)c * sizeof(float));
    memset(w->weight, 0, (size_t)(c * stride) * sizeof(float));
    for (int64_t i = 0; i < c && has_skip; i++)
        memcpy(w->weight + i * stride, end->weight + i * c, (size_t)c * sizeof(float));
    return (pointwise_end){.channels = c,
                           .n_full = quads ? c / GRVI_LANES : stride / GRVI_LANES,
                           .n_quads = quads ? rest / 4 : 0,
                           .weight_stride = stride,
                           .n_inputs = has_skip ? c : 0,
                           .changes = has_skip || end->bias,
                           .weight = w->weight,
                           .bias = w->bias,
                           .activation = end->activation};
}

/* a -> slab [n_1][slab_stride]. */
static void synthesise_slab(const grvi_spectral_layout *l, const workspace *w,
                            grvi_slab_plane_const a)
{
    for (int64_t qb = 0; qb < l->n_blocks; qb++) {
        const float *const in = a.data + qb * a.stride_qb;
        inverse_columns(&w->axis[1], in, a.stride_r1, in + a.stride_qb, block_columns(l, qb),
                        w->slab + qb * l->block, w->slab_stride);
    }
}

static void synthesise_panel_4d(const workspace *w, const pointwise_end *end, const float *slab_row,
                                const end_planes *planes, int64_t offset)
{
    const grvi_axis_modes *const z = w->axis[2].modes, *const t = w->axis[3].modes;
    const int64_t c = end->channels;
    inverse_columns(&w->axis[3], slab_row, z->n_rows * c, slab_row + w->slab_stride, z->n_rows * c,
                    w->longer, w->long_stride);
    transpose_runs(t->n, z->n_rows, c, w->longer, w->long_stride, w->wide, w->wide_stride);
    for (int64_t it = 0; it < t->n; it += w->group) {
        const int64_t n = grvi_min_i64(w->group, t->n - it);
        const float *const in = w->wide + it * c;
        inverse_columns(&w->axis[2], in, w->wide_stride, in, n * c, w->chunk, w->chunk_stride);
        const int64_t row = t->n * c, ahead = it + n < t->n ? n * c : z->n * row - it * c;
        finish_rows(end,
                    &(point_rows){z->n, n, w->chunk, w->chunk_stride, offset + it * c, row, ahead},
                    planes);
    }
}

static void synthesise_panel_3d(const workspace *w, const pointwise_end *end, int64_t n_y,
                                const float *slab_rows, const end_planes *planes, int64_t offset)
{
    const grvi_axis_modes *const t = w->axis[2].modes;
    const int64_t c = end->channels;
    transpose_runs(n_y, t->n_rows, c, slab_rows, w->slab_stride, w->wide, w->wide_stride);
    inverse_columns(&w->axis[2], w->wide, w->wide_stride, w->wide, n_y * c, w->longer,
                    w->long_stride);
    transpose_runs(t->n, n_y, c, w->longer, w->long_stride, w->chunk, w->chunk_stride);
    const int64_t row = t->n * c;
    finish_rows(end, &(point_rows){n_y, t->n, w->chunk, w->chunk_stride, offset, row, n_y * row},
                planes);
}

static void synthesise_plane(const grvi_transform_tables *tables, grvi_slab_plane_const a,
                             const grvi_synthesis_end *end, float *y, float *pre, void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const workspace w = lay_out(tables, scratch);
    const int64_t c = l->channels, n_plane = l->n_points / l->axis[0].n * c;
    const pointwise_end packed = pack_end(&w, c, end);
    const end_planes planes = {end->skip_input, y, pre};
    if (l->n_axes >= 2) synthesise_slab(l, &w, a);
    switch (l->n_axes) {
    case 4:
        for (int64_t iy = 0; iy < l->axis[1].n; iy++)
            synthesise_panel_4d(&w, &packed, w.slab + iy * w.slab_stride, &planes,
                                iy * (n_plane / l->axis[1].n));
        break;
    case 3:
        for (int64_t iy = 0; iy < l->axis[1].n; iy += w.group)
            synthesise_panel_3d(&w, &packed, grvi_min_i64(w.group, l->axis[1].n - iy),
                                w.slab + iy * w.slab_stride, &planes,
                                iy * (n_plane / l->axis[1].n));
        break;
    case 2:
        finish_rows(&packed, &(point_rows){1, l->axis[1].n, w.slab, 0, 0, 0, 0}, &planes);
        break;
    default:
        for (int64_t qb = 0; qb < l->n_blocks; qb++)
            memcpy(w.chunk + qb * l->block, a.data + qb * a.stride_qb,
                   (size_t)block_columns(l, qb) * sizeof(float));
        finish_rows(&packed, &(point_rows){1, 1, w.chunk, 0, 0, 0, 0}, &planes);
    }
}

/* ---- the first axis ---- */

static void first_axis_forward(const grvi_transform_tables *tables, const float *a, float *p,
                               int64_t block_begin, int64_t block_end, void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const workspace w = lay_out(tables, scratch);
    for (int64_t qb = block_begin; qb < block_end; qb++) {
        const float *const in = a + qb * l->axis[0].n * l->block;
        forward_columns(&w.axis[0], in, l->block, in + l->axis[0].n * l->block, l->block,
                        p + qb * l->block, l->n_blocks * l->block);
    }
}

static void first_axis_inverse(const grvi_transform_tables *tables, const float *p, float *a,
                               int64_t block_begin, int64_t block_end, void *scratch)
{
    const grvi_spectral_layout *const l = &tables->layout;
    const workspace w = lay_out(tables, scratch);
    for (int64_t qb = block_begin; qb < block_end; qb++) {
        const float *const in = p + qb * l->block;
        inverse_columns(&w.axis[0], in, l->n_blocks * l->block, in + l->block, l->block,
                        a + qb * l->axis[0].n * l->block, l->block);
    }
}

static const grvi_spectral_kernels kernels = {scratch_bytes,          analyse_plane,
                                              analyse_gradient_plane, synthesise_plane,
                                              first_axis_forward,     first_axis_inverse};
