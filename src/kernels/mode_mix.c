/* Plan, walk over groups, dispatch and canonical order of the mode mix. */
#include "kernels/mode_mix_impl.h"

static int split_axis(const grvi_spectral_layout *layout)
{
    return layout->n_axes > 1 ? 1 : 0;
}

/* Magnitudes of axis a that a rank owns. */
static int64_t magnitudes(const grvi_mode_mix *mix, int a)
{
    return a == split_axis(&mix->layout) ? mix->count : grvi_axis_magnitudes(&mix->layout.axis[a]);
}

grv_status grvi_mode_mix_init(grvi_mode_mix *mix, const grvi_spectral_layout *layout, int64_t first,
                              int64_t count)
{
    static const int orders[GRVI_MAX_AXES][GRVI_MAX_AXES] = {{0}, {1, 0}, {1, 0, 2}, {1, 0, 3, 2}};
    const int d = layout->n_axes, split = split_axis(layout);
    const grvi_axis_modes *const axis = &layout->axis[split];
    const int64_t kept = grvi_axis_magnitudes(axis);
    GRV_CHECK(
        first >= 0 && count >= 0 && count <= kept && first <= kept - count, GRV_E_ARG,
        "axis %d keeps the magnitudes 0 to %lld: a range inside it expected, %lld from %lld found",
        split, (long long)(kept - 1), (long long)count, (long long)first);
    *mix = (grvi_mode_mix){.layout = *layout, .first = first, .count = count, .n_groups = 1};
    int64_t stride = layout->channels;
    for (int a = 2; a < d; a++) { /* columns: [r_{d-1}]..[r_2][c] */
        mix->stride[a] = stride;
        stride *= layout->axis[a].n_rows;
    }
    mix->stride[0] = layout->n_blocks * layout->block;
    if (d > 1) mix->stride[1] = layout->axis[0].n_rows * mix->stride[0];
    for (int a = 0; a < d; a++) {
        mix->order[a] = orders[d - 1][a];
        mix->n_groups *= magnitudes(mix, a);
    }
    mix->first_row[split] = grvi_axis_first_row(axis, first);
    mix->n_values =
        (grvi_axis_first_row(axis, first + count) - mix->first_row[split]) * mix->stride[split];
    mix->n_modes = grvi_spectral_modes_before(layout, first + count) -
                   grvi_spectral_modes_before(layout, first);
    return GRV_OK;
}

size_t grvi_mode_mix_scratch_bytes(const grvi_mode_mix *mix, int64_t n_samples)
{
    /* A slot is a complex vector of channels and room for a SIMD vector. The fast kernels keep
     * two of floats a sample and sign, one more a sample, and two more; the reference two of
     * doubles a sample and sign. */
    const int64_t slot = grvi_round_up(2 * mix->layout.channels + 16, 16);
    const int64_t n_signs = 1 << (mix->layout.n_axes - 1);
    return (size_t)(slot * (2 * n_samples * n_signs + 2)) * sizeof(double);
}

/* Rows, signs and scale from the magnitudes. */
static void complete(const grvi_mode_mix *mix, grvi_mode_group *group)
{
    const int d = mix->layout.n_axes;
    group->row[0] = 0;
    group->signs = 1;
    for (int a = 0; a < d; a++) {
        const grvi_axis_modes *const axis = &mix->layout.axis[a];
        const int64_t k = group->k[a], stride = mix->stride[a];
        const int64_t cosine = (grvi_row_cos(k) - mix->first_row[a]) * stride;
        const bool has_sine = k >= 1 && k <= axis->n_sin;
        const int n = 1 << a;
        for (int i = 0; i < n; i++) {
            const int64_t base = group->row[i];
            group->row[i] = base < 0 ? -1 : base + cosine;
            group->row[i + n] = base < 0 || !has_sine ? -1 : base + cosine + stride;
        }
        const int signs = grvi_axis_signs(axis, k);
        const unsigned negative = signs & 2 ? group->signs << n : 0;
        group->signs = (signs & 1 ? group->signs : 0) | negative;
    }
    const grvi_axis_modes *const last = &mix->layout.axis[d - 1];
    const bool alone =
        group->k[d - 1] == 0 || 2 * group->k[d - 1] == last->n; /* no conjugate partner */
    group->scale = (alone ? 1.0 : 2.0) / (double)mix->layout.n_points;
}

void grvi_mode_group_begin(const grvi_mode_mix *mix, int64_t index, grvi_mode_group *group)
{
    for (int i = mix->layout.n_axes - 1; i >= 0; i--) {
        const int a = mix->order[i];
        const int64_t n = magnitudes(mix, a),
                      lowest = a == split_axis(&mix->layout) ? mix->first : 0;
        group->k[a] = lowest + index % n;
        index /= n;
    }
    complete(mix, group);
}

void grvi_mode_group_next(const grvi_mode_mix *mix, grvi_mode_group *group)
{
    for (int i = mix->layout.n_axes - 1; i >= 0; i--) {
        const int a = mix->order[i];
        if (++group->k[a] < grvi_axis_magnitudes(&mix->layout.axis[a]) || i == 0) break;
        group->k[a] = 0;
    }
    complete(mix, group);
}

/* Signed frequencies of a sign number. */
static void frequencies(const grvi_mode_mix *mix, const grvi_mode_group *group, unsigned sign,
                        int64_t *f)
{
    for (int a = 0; a < mix->layout.n_axes; a++) f[a] = sign >> a & 1 ? -group->k[a] : group->k[a];
}

int64_t grvi_mode_mix_first_mode(const grvi_mode_mix *mix, int64_t group_index)
{
    if (group_index >= mix->n_groups) return mix->n_modes;
    grvi_mode_group group;
    grvi_mode_group_begin(mix, group_index, &group);
    unsigned sign = 0;
    while (!(group.signs >> sign & 1)) sign++;
    int64_t f[GRVI_MAX_AXES];
    frequencies(mix, &group, sign, f);
    return grvi_spectral_mode_position(&mix->layout, f) -
           grvi_spectral_modes_before(&mix->layout, mix->first);
}

static int64_t canonical_index(const grvi_spectral_layout *layout, const int64_t *f)
{
    int64_t index = 0;
    for (int a = 0; a < layout->n_axes; a++) {
        const grvi_axis_modes *const axis = &layout->axis[a];
        const int64_t length = axis->two_sided ? 2 * axis->modes : axis->modes;
        index = index * length + (f[a] < 0 ? f[a] + length : f[a]);
    }
    return index;
}

void grvi_mode_mix_canonical(const grvi_mode_mix *mix, int64_t *canonical)
{
    grvi_mode_group group;
    if (mix->n_groups == 0) return;
    grvi_mode_group_begin(mix, 0, &group);
    for (int64_t g = 0; g < mix->n_groups; g++, grvi_mode_group_next(mix, &group))
        for (unsigned sign = 0; sign < GRVI_MAX_SIGNS; sign++) {
            if (!(group.signs >> sign & 1)) continue;
            int64_t f[GRVI_MAX_AXES];
            frequencies(mix, &group, sign, f);
            *canonical++ = canonical_index(&mix->layout, f);
        }
}

void grvi_mode_weights_unpack(int64_t channels, const float *packed, float *canonical)
{
    for (int64_t i = 0; i < channels; i++, packed += 2 * channels)
        for (int64_t o = 0; o < channels; o++) {
            *canonical++ = packed[o];
            *canonical++ = packed[channels + o];
        }
}

void grvi_mode_weights_pack(int64_t channels, const float *canonical, float *packed)
{
    for (int64_t i = 0; i < channels; i++, packed += 2 * channels)
        for (int64_t o = 0; o < channels; o++) {
            packed[o] = *canonical++;
            packed[channels + o] = *canonical++;
        }
}

const grvi_mode_mix_kernels *grvi_mode_mix_kernels_for(grvi_isa isa)
{
    const grvi_mode_mix_kernels *kernels = grvi_mode_mix_kernels_ref();
    if (isa >= GRVI_ISA_AVX2 && grvi_mode_mix_kernels_avx2() != NULL)
        kernels = grvi_mode_mix_kernels_avx2();
    if (isa == GRVI_ISA_AVX512 && grvi_mode_mix_kernels_avx512() != NULL)
        kernels = grvi_mode_mix_kernels_avx512();
    return kernels;
}
