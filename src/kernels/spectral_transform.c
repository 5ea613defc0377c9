/* Tables of the truncated real transforms, and the choice of kernels. */
#include "kernels/spectral_transform.h"
#include "core/alloc.h"
#include "grove/core.h"

/* Tables grow with the square of n; up to here no size below overflows. */
static const int64_t MAX_POINTS = (int64_t)1 << 24;

/* cos and sin of 2 pi i/n, exact at multiples of a quarter turn. 0 <= i < n. */
static void unit_circle(int64_t i, int64_t n, double *cosine, double *sine)
{
    const double half_pi = 1.57079632679489661923;
    const int64_t quadrant = 4 * i / n;
    const double angle = half_pi * (double)(4 * i % n) / (double)n;
    const double c = cos(angle), s = sin(angle);
    *cosine = quadrant == 0 ? c : quadrant == 1 ? -s : quadrant == 2 ? -c : s;
    *sine = quadrant == 0 ? s : quadrant == 1 ? c : quadrant == 2 ? -s : -c;
}

/* Hands out pieces of one block of memory; with base == NULL it only measures. Pieces start on cache lines. */
typedef struct carver {
    char *base;
    int64_t n_bytes;
} carver;

static void *carve(carver *c, int64_t n, size_t size)
{
    void *const piece = c->base ? c->base + c->n_bytes : NULL;
    c->n_bytes += grvi_round_up(n * (int64_t)size, 64);
    return piece;
}

static void fill_axis(const grvi_axis_modes *axis, const grvi_axis_tables *t, double *unit_cos,
                      double *unit_sin, float *forward_cos, float *forward_sin, float *inverse_cos,
                      float *inverse_sin)
{
    const int64_t n = axis->n, p = t->n_cos_points;
    for (int64_t i = 0; i < n; i++) unit_circle(i, n, &unit_cos[i], &unit_sin[i]);
    for (int64_t k = 0; k < axis->n_cos; k++)
        for (int64_t j = 0; j < p; j++)
            forward_cos[j * axis->n_cos + k] = inverse_cos[k * p + j] = (float)unit_cos[k * j % n];
    for (int64_t k = 1; k <= axis->n_sin; k++)
        for (int64_t j = 0; j < p; j++) {
            const bool paired = j >= 1 && j <= t->n_pairs;
            const float sine = paired ? (float)unit_sin[k * j % n] : 0;
            inverse_sin[(k - 1) * p + j] = sine;
            if (paired) forward_sin[(j - 1) * axis->n_sin + k - 1] = sine;
        }
}

static void lay_out_axis(const grvi_axis_modes *axis, grvi_axis_tables *t, carver *c)
{
    const int64_t n = axis->n, p = n / 2 + 1, q = (n + 1) / 2 - 1;
    t->n_cos_points = p;
    t->n_pairs = q;
    double *const unit_cos = carve(c, n, sizeof(double)), *const unit_sin =
                                                              carve(c, n, sizeof(double));
    float *const forward_cos = carve(c, p * axis->n_cos, sizeof(float));
    float *const forward_sin = carve(c, q * axis->n_sin, sizeof(float));
    float *const inverse_cos = carve(c, axis->n_cos * p, sizeof(float));
    float *const inverse_sin = carve(c, axis->n_sin * p, sizeof(float));
    if (!c->base) return;
    fill_axis(axis, t, unit_cos, unit_sin, forward_cos, forward_sin, inverse_cos, inverse_sin);
    t->unit_cos = unit_cos;
    t->unit_sin = unit_sin;
    t->forward_cos = forward_cos;
    t->forward_sin = forward_sin;
    t->inverse_cos = inverse_cos;
    t->inverse_sin = inverse_sin;
}

grv_status grvi_transform_tables_create(const grvi_spectral_layout *layout,
                                        grvi_transform_tables **out)
{
    grv_status status = GRV_OK;
    grvi_transform_tables *tables = NULL;
    *out = NULL;
    for (int a = 0; a < layout->n_axes; a++)
        GRV_CHECK(layout->axis[a].n <= MAX_POINTS, GRV_E_ARG,
                  "axis %d: at most %lld points expected, found %lld", a, (long long)MAX_POINTS,
                  (long long)layout->axis[a].n);
    GRV_TRY(GRVI_CALLOC(&tables, 1));
    tables->layout = *layout;
    carver c = {NULL, 0};
    for (int a = 0; a < layout->n_axes; a++) lay_out_axis(&layout->axis[a], &tables->axis[a], &c);
    tables->n_bytes = c.n_bytes;
    GRV_TRY_GOTO(grvi_alloc(c.n_bytes, 1, &tables->memory));
    c = (carver){tables->memory, 0};
    for (int a = 0; a < layout->n_axes; a++) lay_out_axis(&layout->axis[a], &tables->axis[a], &c);
    *out = tables;
    return GRV_OK;
done:
    grvi_transform_tables_destroy(&tables);
    return status;
}

void grvi_transform_tables_destroy(grvi_transform_tables **tables)
{
    if (!tables || !*tables) return;
    grv_free((*tables)->memory);
    grv_free(*tables);
    *tables = NULL;
}

const grvi_spectral_kernels *grvi_spectral_kernels_for(grvi_isa isa)
{
    if (!grvi_isa_usable(isa)) return NULL;
    switch (isa) {
    case GRVI_ISA_REF: return grvi_spectral_kernels_ref();
    case GRVI_ISA_AVX2: return grvi_spectral_kernels_avx2();
    case GRVI_ISA_AVX512: return grvi_spectral_kernels_avx512();
    case GRVI_ISA_COUNT: break;
    }
    return NULL;
}
