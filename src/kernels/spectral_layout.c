/* Arithmetic of the truncated real spectrum. */
#include "kernels/spectral_layout.h"

grv_status grvi_axis_modes_init(grvi_axis_modes *axis, const char *name, bool two_sided, int64_t n, int64_t modes)
{
    const int64_t most = two_sided ? n / 2 : n / 2 + 1;
    GRV_CHECK(n >= 1, GRV_E_ARG, "axis '%s': at least 1 point expected, %lld found", name, (long long)n);
    GRV_CHECK(modes >= 1 && modes <= most, GRV_E_ARG, "axis '%s' of %lld points: 1 to %lld modes are possible, %lld asked for",
              name, (long long)n, (long long)most, (long long)modes);
    const int64_t highest = two_sided ? modes : modes - 1;
    *axis = (grvi_axis_modes){.n = n, .modes = modes, .two_sided = two_sided};
    axis->n_cos = highest + 1;
    axis->n_sin = 2 * highest == n ? highest - 1 : highest;
    if (axis->n_sin < 0) axis->n_sin = 0;
    axis->n_rows = axis->n_cos + axis->n_sin;
    return GRV_OK;
}

grv_status grvi_spectral_layout_init(grvi_spectral_layout *layout, int n_axes, const int64_t *n, const int64_t *modes,
                                     int64_t channels)
{
    GRV_CHECK(n_axes >= 1 && n_axes <= GRVI_MAX_AXES, GRV_E_ARG, "1 to %d axes expected, %d found", (int)GRVI_MAX_AXES, n_axes);
    GRV_CHECK(channels >= 1, GRV_E_ARG, "at least 1 channel expected, %lld found", (long long)channels);
    *layout = (grvi_spectral_layout){.n_axes = n_axes, .channels = channels, .n_points = 1, .n_modes = 1};
    bool fits = true;
    for (int a = 0; a < n_axes; a++) {
        const bool two_sided = a < n_axes - 1;
        const char number[] = {(char)('0' + a), '\0'};
        GRV_TRY(grvi_axis_modes_init(&layout->axis[a], number, two_sided, n[a], modes[a]));
        fits = fits && grvi_mul_i64(layout->n_points, n[a], &layout->n_points) &&
               grvi_mul_i64(layout->n_modes, two_sided ? 2 * modes[a] : modes[a], &layout->n_modes);
    }
    GRV_CHECK(fits && layout->n_points <= INT64_MAX / 64 / channels && layout->n_modes <= INT64_MAX / 64 / channels / channels,
              GRV_E_ARG, "network of %lld channels is too large for 64-bit sizes", (long long)channels);
    grvi_spectral_columns(layout, n_axes, layout->axis, channels);
    return GRV_OK;
}

void grvi_spectral_columns(grvi_spectral_layout *layout, int n_axes, const grvi_axis_modes *axis, int64_t channels)
{
    /* rows are at most n + 1 each, so the product is bounded by the point count that was checked */
    layout->n_columns = channels;
    for (int a = 2; a < n_axes; a++) layout->n_columns *= axis[a].n_rows;
    layout->block = grvi_min_i64(64, grvi_round_up(layout->n_columns, 16));
    layout->n_blocks = grvi_ceil_div(layout->n_columns, layout->block);
}

int64_t grvi_axis_magnitudes(const grvi_axis_modes *axis) { return axis->n_cos; }

int grvi_axis_signs(const grvi_axis_modes *axis, int64_t k)
{
    if (!axis->two_sided || k == 0) return 1;
    return k == axis->modes ? 2 : 3;
}

int64_t grvi_axis_first_row(const grvi_axis_modes *axis, int64_t k) { return k >= axis->n_cos ? axis->n_rows : grvi_row_cos(k); }

/* modes of axis a with |k| < k */
static int64_t frequencies_before(const grvi_axis_modes *axis, int64_t k)
{
    if (!axis->two_sided || k == 0) return k;
    return grvi_min_i64(2 * k - 1, 2 * axis->modes);
}

static int sign_count(int signs) { return signs == 3 ? 2 : 1; }

int64_t grvi_spectral_modes_before(const grvi_spectral_layout *layout, int64_t k)
{
    const int split = layout->n_axes > 1;
    int64_t others = 1;
    for (int a = 0; a < layout->n_axes; a++)
        if (a != split) others *= layout->axis[a].two_sided ? 2 * layout->axis[a].modes : layout->axis[a].modes;
    return frequencies_before(&layout->axis[split], k) * others;
}

int64_t grvi_spectral_mode_position(const grvi_spectral_layout *layout, const int64_t *f)
{
    /* traversal order of the axes, outermost first */
    static const int orders[GRVI_MAX_AXES][GRVI_MAX_AXES] = {{0}, {1, 0}, {1, 0, 2}, {1, 0, 3, 2}};
    const int d = layout->n_axes, *const order = orders[d - 1];
    int64_t position = 0, multiplicity = 1; /* sign combinations of the magnitudes fixed so far */
    for (int i = 0; i < d; i++) {
        int64_t inner = 1;
        for (int j = i + 1; j < d; j++) {
            const grvi_axis_modes *const axis = &layout->axis[order[j]];
            inner *= axis->two_sided ? 2 * axis->modes : axis->modes;
        }
        const grvi_axis_modes *const axis = &layout->axis[order[i]];
        const int64_t k = f[order[i]] < 0 ? -f[order[i]] : f[order[i]];
        position += multiplicity * frequencies_before(axis, k) * inner;
        multiplicity *= sign_count(grvi_axis_signs(axis, k));
    }
    /* rank of this sign combination among those that exist: bits of axes with one choice contribute nothing */
    int64_t rank = 0, weight = 1;
    for (int a = 0; a < d; a++) {
        const int64_t k = f[a] < 0 ? -f[a] : f[a];
        if (grvi_axis_signs(&layout->axis[a], k) != 3) continue;
        rank += weight * (f[a] < 0);
        weight *= 2;
    }
    return position + rank;
}
