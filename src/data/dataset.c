/* Data sets of field pairs: opening, samples in and out, states, attributes. The layout is docs/formats/dataset.md's.
 * Reads go straight into the caller's memory when float32 is stored; float64 passes through one buffer that is reused. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "data/dataset_impl.h"
#include "grove/core.h"

static const int64_t max_reason_bytes = 65536;

/* ---- opening ---- */

static grv_status field_from_array(const grv_array *array, const char *name,
                                   grv_dataset_field *field)
{
    const grv_array_desc *const desc = grv_array_get_desc(array);
    GRV_CHECK(desc->rank >= 3 && desc->rank <= GRV_DATASET_MAX_AXES + 2, GRV_E_SHAPE,
              "'%s' of a data set: [sample, 1 to %d axes, channel] expected, %d axes found", name,
              GRV_DATASET_MAX_AXES, desc->rank);
    GRV_CHECK(desc->type == GRV_STORE_F32 || desc->type == GRV_STORE_F64, GRV_E_FORMAT,
              "'%s' of a data set: float32 or float64 expected, %s found", name,
              grv_store_type_name(desc->type));
    field->n_axes = desc->rank - 2;
    field->n_channels = desc->shape[desc->rank - 1];
    for (int i = 0; i < field->n_axes; i++) {
        field->shape[i] = desc->shape[i + 1];
        field->axis_names[i] = desc->dimension_names[i + 1];
    }
    return GRV_OK;
}

static grv_status read_attributes(grv_dataset *dataset)
{
    grv_status status = GRV_OK;
    char *text = NULL;
    grvi_json *root = NULL;
    int64_t version = GRVI_DATASET_VERSION;
    GRV_TRY_GOTO(grv_attributes_get(dataset->store, "", &text));
    GRV_TRY_GOTO(grvi_json_parse(text, (int64_t)strlen(text), "attributes of the data set", &root));
    if (grvi_json_has(root, "grove_dataset"))
        GRV_CHECK_GOTO(grvi_json_as_i64(grvi_json_get(root, "grove_dataset"), &version) &&
                           version == GRVI_DATASET_VERSION,
                       GRV_E_UNSUPPORTED,
                       "attribute grove_dataset: version %d expected, %lld found",
                       GRVI_DATASET_VERSION, (long long)version);
    if (!grvi_json_as_u64(grvi_json_get(root, "seed"), &dataset->desc.seed)) dataset->desc.seed = 0;
done:
    grvi_json_free(root);
    grv_free(text);
    return status;
}

static grv_status check_contract(const grv_dataset *dataset)
{
    const grv_array_desc *const input = grv_array_get_desc(dataset->input),
                                *const target = grv_array_get_desc(dataset->target);
    const grv_array_desc *const status = grv_array_get_desc(dataset->status);
    GRV_CHECK(status->rank == 1 && status->type == GRV_STORE_U8, GRV_E_FORMAT,
              "'status' of a data set: uint8 [sample] expected, %s of %d axes found",
              grv_store_type_name(status->type), status->rank);
    GRV_CHECK(input->shape[0] == status->shape[0] && target->shape[0] == status->shape[0],
              GRV_E_SHAPE,
              "samples of a data set: %lld in 'input', %lld in 'target', %lld in 'status'",
              (long long)input->shape[0], (long long)target->shape[0], (long long)status->shape[0]);
    GRV_CHECK(input->type == target->type, GRV_E_FORMAT, "'input' holds %s, 'target' %s",
              grv_store_type_name(input->type), grv_store_type_name(target->type));
    GRV_CHECK(input->shape[1] == target->shape[1], GRV_E_SHAPE,
              "the split axis has %lld planes in 'input', %lld in 'target'",
              (long long)input->shape[1], (long long)target->shape[1]);
    return GRV_OK;
}

grv_status grv_dataset_open(const char *path, const grv_store_params *params, grv_dataset **out)
{
    grv_status status = GRV_OK;
    grv_dataset *dataset = NULL;
    *out = NULL;
    GRV_TRY(GRVI_CALLOC(&dataset, 1));
    dataset->check_finite = true;
    grv_dataset_desc *const desc = &dataset->desc;
    *desc = grv_dataset_desc_default();
    GRV_TRY_GOTO(grv_store_open(path, params, &dataset->store));
    GRV_TRY_GOTO(grv_array_open(dataset->store, "input", &dataset->input));
    GRV_TRY_GOTO(grv_array_open(dataset->store, "target", &dataset->target));
    GRV_TRY_GOTO(grv_array_open(dataset->store, "status", &dataset->status));
    GRV_TRY_GOTO(field_from_array(dataset->input, "input", &desc->input));
    GRV_TRY_GOTO(field_from_array(dataset->target, "target", &desc->target));
    GRV_TRY_GOTO(check_contract(dataset));
    GRV_TRY_GOTO(read_attributes(dataset));
    const grv_array_desc *const target = grv_array_get_desc(dataset->target);
    desc->n_samples = target->shape[0];
    desc->type = target->type;
    desc->planes_per_chunk = target->sharded ? target->inner_shape[1] : target->chunk_shape[1];
    GRV_TRY_GOTO(GRVI_CALLOC(&dataset->done, desc->n_samples));
    *out = dataset;
done:
    if (status == GRV_OK) return GRV_OK;
    grv_dataset_close(&dataset);
    GRV_FAIL(status, "data set %s: %s", path,
             grv_error_message() + strlen(grv_status_text(status)) + 2);
}

void grv_dataset_close(grv_dataset **dataset)
{
    if (dataset == NULL || *dataset == NULL) return;
    grv_array_close(&(*dataset)->input);
    grv_array_close(&(*dataset)->target);
    grv_array_close(&(*dataset)->status);
    grv_store_close(&(*dataset)->store);
    grv_free((*dataset)->done);
    grv_free(atomic_load(&(*dataset)->spare));
    grv_free(*dataset);
    *dataset = NULL;
}

const grv_dataset_desc *grv_dataset_get_desc(const grv_dataset *dataset)
{
    return &dataset->desc;
}
grv_store *grv_dataset_get_store(grv_dataset *dataset)
{
    return dataset->store;
}
void grv_dataset_set_check_finite(grv_dataset *dataset, bool enabled)
{
    dataset->check_finite = enabled;
}

grv_status grvi_dataset_check_sample(const grv_dataset *dataset, int64_t sample)
{
    GRV_CHECK(sample >= 0 && sample < dataset->desc.n_samples, GRV_E_ARG,
              "sample %lld asked for, the data set has %lld", (long long)sample,
              (long long)dataset->desc.n_samples);
    return GRV_OK;
}

/* ---- states ---- */

static grv_status write_status(grv_dataset *dataset, int64_t sample, grv_sample_status value)
{
    const int64_t one = 1;
    const uint8_t byte = (uint8_t)value;
    return grv_array_write(dataset->status, &sample, &one, &byte, NULL);
}

static grv_status read_status(grv_dataset *dataset, int64_t sample, uint8_t *value)
{
    const int64_t one = 1;
    return grv_array_read(dataset->status, &sample, &one, value, NULL);
}

static grv_status reason_key(int64_t sample, grvi_text *key)
{
    grvi_text_printf(key, "status/reasons/%lld.txt", (long long)sample);
    return grvi_text_status(key);
}

grv_status grv_dataset_mark_failed(grv_dataset *dataset, int64_t sample, const char *reason)
{
    grv_status status = GRV_OK;
    grvi_text key = {0};
    GRV_TRY(grvi_dataset_check_sample(dataset, sample));
    GRV_TRY_GOTO(reason_key(sample, &key));
    GRV_TRY_GOTO(grv_store_put(dataset->store, key.data, reason,
                               grvi_min_i64((int64_t)strlen(reason), max_reason_bytes)));
    GRV_TRY_GOTO(write_status(dataset, sample, GRV_SAMPLE_FAILED));
    atomic_store(&dataset->done[sample].is_set, false);
done:
    grvi_text_fini(&key);
    return status;
}

grv_status grv_dataset_reason(grv_dataset *dataset, int64_t sample, char **reason)
{
    grvi_text key = {0};
    int64_t n = 0;
    *reason = NULL;
    GRV_TRY(grvi_dataset_check_sample(dataset, sample));
    grv_status status = reason_key(sample, &key);
    if (status == GRV_OK)
        status = grv_store_get(dataset->store, key.data, max_reason_bytes, reason, &n);
    grvi_text_fini(&key);
    return status;
}

/* The error for a sample that is not done: what it is, and why. */
static grv_status fail_not_done(grv_dataset *dataset, int64_t sample, uint8_t state)
{
    char *reason = NULL;
    if (state == GRV_SAMPLE_MISSING)
        GRV_FAIL(GRV_E_NOT_FOUND, "sample %lld of the data set is missing", (long long)sample);
    GRV_CHECK(state == GRV_SAMPLE_FAILED, GRV_E_FORMAT,
              "status of sample %lld: 0, 1 or 2 expected, %d found", (long long)sample, state);
    GRV_TRY(grv_dataset_reason(dataset, sample, &reason));
    const grv_status status =
        grvi_fail(GRV_E_NOT_FOUND, __FILE__, __LINE__, __func__,
                  "sample %lld of the data set failed: %.1000s", (long long)sample,
                  reason != NULL ? reason : "no reason was kept");
    grv_free(reason);
    return status;
}

static grv_status require_done(grv_dataset *dataset, int64_t sample)
{
    uint8_t state = 0;
    if (atomic_load_explicit(&dataset->done[sample].is_set, memory_order_relaxed)) return GRV_OK;
    GRV_TRY(read_status(dataset, sample, &state));
    if (state != GRV_SAMPLE_DONE) return fail_not_done(dataset, sample, state);
    atomic_store_explicit(&dataset->done[sample].is_set, true, memory_order_relaxed);
    return GRV_OK;
}

grv_status grv_dataset_status(grv_dataset *dataset, uint8_t *status)
{
    const int64_t zero = 0;
    return grv_array_read(dataset->status, &zero, &dataset->desc.n_samples, status, NULL);
}

grv_status grv_dataset_list(grv_dataset *dataset, grv_sample_status which, int64_t *samples,
                            int64_t *n)
{
    uint8_t *states = NULL;
    *n = 0;
    GRV_TRY(GRVI_ALLOC(&states, dataset->desc.n_samples));
    const grv_status status = grv_dataset_status(dataset, states);
    for (int64_t i = 0; i < dataset->desc.n_samples && status == GRV_OK; i++) {
        if (states[i] == which) samples[(*n)++] = i;
    }
    grv_free(states);
    return status;
}

grv_status grv_dataset_count(grv_dataset *dataset, grv_dataset_counts *counts)
{
    uint8_t *states = NULL;
    *counts = (grv_dataset_counts){0};
    GRV_TRY(GRVI_ALLOC(&states, dataset->desc.n_samples));
    const grv_status status = grv_dataset_status(dataset, states);
    for (int64_t i = 0; i < dataset->desc.n_samples && status == GRV_OK; i++) {
        counts->n_done += states[i] == GRV_SAMPLE_DONE;
        counts->n_failed += states[i] == GRV_SAMPLE_FAILED;
        counts->n_missing += states[i] == GRV_SAMPLE_MISSING;
    }
    grv_free(states);
    return status;
}

/* ---- samples ---- */

static int64_t plane_elements(const grv_dataset_field *field)
{
    int64_t n = field->n_channels;
    for (int i = 1; i < field->n_axes; i++) n *= field->shape[i];
    return n;
}

/* exponents of nothing but ones; written so that compilers make vectors of it */
static bool all_finite_f32(const float *values, int64_t n)
{
    uint32_t any_bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = 0;
        memcpy(&bits, &values[i], sizeof bits);
        any_bad |= (bits & 0x7f800000U) == 0x7f800000U;
    }
    return any_bad == 0;
}

static bool all_finite_f64(const double *values, int64_t n)
{
    bool good = true;
    for (int64_t i = 0; i < n; i++) good = good && isfinite(values[i]);
    return good;
}

/* The error for element number `at` of planes that start at first_plane. */
static grv_status fail_not_finite(const grv_dataset_field *field, const char *name, int64_t sample,
                                  int64_t first_plane, int64_t at, double value)
{
    grvi_text position = {0};
    int64_t index[GRV_DATASET_MAX_AXES + 1], rest = at;
    index[field->n_axes] = rest % field->n_channels;
    rest /= field->n_channels;
    for (int i = field->n_axes - 1; i > 0; i--) {
        index[i] = rest % field->shape[i];
        rest /= field->shape[i];
    }
    index[0] = rest + first_plane;
    for (int i = 0; i < field->n_axes; i++)
        grvi_text_printf(&position, "%s %lld, ",
                         field->axis_names[i] != NULL ? field->axis_names[i] : "axis",
                         (long long)index[i]);
    const grv_status status = grvi_fail(GRV_E_NUMERIC, __FILE__, __LINE__, __func__,
                                        "sample %lld of '%s': %s at %schannel %lld",
                                        (long long)sample, name, isnan(value) ? "NaN" : "infinity",
                                        grvi_text_get(&position), (long long)index[field->n_axes]);
    grvi_text_fini(&position);
    return status;
}

static grv_status check_finite_f32(const grv_dataset_field *field, const char *name, int64_t sample,
                                   int64_t first_plane, const float *values, int64_t n)
{
    if (all_finite_f32(values, n)) return GRV_OK;
    int64_t at = 0;
    while (isfinite(values[at])) at++;
    return fail_not_finite(field, name, sample, first_plane, at, (double)values[at]);
}

static grv_status check_finite_f64(const grv_dataset_field *field, const char *name, int64_t sample,
                                   const double *values, int64_t n)
{
    if (all_finite_f64(values, n)) return GRV_OK;
    int64_t at = 0;
    while (isfinite(values[at])) at++;
    return fail_not_finite(field, name, sample, 0, at, values[at]);
}

static grv_status take_wide_buffer(grv_dataset *dataset, int64_t n, grvi_wide_buffer **buffer)
{
    *buffer = atomic_exchange(&dataset->spare, NULL);
    if (*buffer != NULL && (*buffer)->n >= n) return GRV_OK;
    grv_free(*buffer);
    int64_t n_bytes = 0;
    GRV_CHECK(grvi_mul_i64(n, (int64_t)sizeof(double), &n_bytes), GRV_E_NOMEM, "%lld values",
              (long long)n);
    GRV_TRY(grvi_alloc(n_bytes + (int64_t)sizeof **buffer, 1, (void **)buffer));
    (*buffer)->n = n;
    return GRV_OK;
}

/* what the store says names a chunk; whoever asked for a sample wants to know which */
static grv_status name_sample(int64_t sample, grv_status status)
{
    if (status == GRV_OK) return GRV_OK;
    GRV_FAIL(status, "sample %lld: %s", (long long)sample,
             grv_error_message() + strlen(grv_status_text(status)) + 2);
}

static grv_status read_field(grv_dataset *dataset, grv_array *array, const char *name,
                             const grv_dataset_field *field, int64_t sample, int64_t first_plane,
                             int64_t n_planes, float *out)
{
    int64_t start[GRV_DATASET_MAX_AXES + 2] = {sample, first_plane},
                                         count[GRV_DATASET_MAX_AXES + 2] = {1, n_planes};
    const int64_t n = n_planes * plane_elements(field);
    bool present = true;
    if (out == NULL || n_planes == 0) return GRV_OK;
    for (int i = 1; i < field->n_axes; i++) count[i + 1] = field->shape[i];
    count[field->n_axes + 1] = field->n_channels;
    if (dataset->desc.type == GRV_STORE_F32) {
        GRV_TRY(name_sample(sample, grv_array_read(array, start, count, out, NULL)));
    } else {
        grvi_wide_buffer *wide = NULL;
        GRV_TRY(take_wide_buffer(dataset, n, &wide));
        const grv_status status = grv_array_read(array, start, count, wide->values, NULL);
        for (int64_t i = 0; i < n && status == GRV_OK; i++) out[i] = (float)wide->values[i];
        grv_free(atomic_exchange(&dataset->spare, wide));
        GRV_TRY(name_sample(sample, status));
    }
    /* a shard that was lost reads as the fill value */
    if (isnan(out[0])) GRV_TRY(grv_array_has_object(array, start, &present));
    GRV_CHECK(present, GRV_E_NOT_FOUND, "sample %lld is marked done, but '%s' does not hold it",
              (long long)sample, name);
    return dataset->check_finite ? check_finite_f32(field, name, sample, first_plane, out, n)
                                 : GRV_OK;
}

grv_status grv_dataset_read(grv_dataset *dataset, int64_t sample, int64_t first_plane,
                            int64_t n_planes, float *input, float *target)
{
    const grv_dataset_desc *const desc = &dataset->desc;
    GRV_TRY(grvi_dataset_check_sample(dataset, sample));
    GRV_CHECK(first_plane >= 0 && n_planes >= 0 && first_plane <= desc->target.shape[0] &&
                  n_planes <= desc->target.shape[0] - first_plane,
              GRV_E_ARG, "planes %lld to %lld asked for, a sample has %lld", (long long)first_plane,
              (long long)first_plane + (long long)n_planes, (long long)desc->target.shape[0]);
    GRV_TRY(require_done(dataset, sample));
    GRV_TRY(read_field(dataset, dataset->input, "input", &desc->input, sample, first_plane,
                       n_planes, input));
    GRV_TRY(read_field(dataset, dataset->target, "target", &desc->target, sample, first_plane,
                       n_planes, target));
    return GRV_OK;
}

static grv_status check_values(const grv_dataset *dataset, const char *name,
                               const grv_dataset_field *field, int64_t sample, const void *values)
{
    const int64_t n = field->shape[0] * plane_elements(field);
    if (dataset->desc.type == GRV_STORE_F32)
        return check_finite_f32(field, name, sample, 0, values, n);
    return check_finite_f64(field, name, sample, values, n);
}

static grv_status write_field(grv_array *array, const grv_dataset_field *field, int64_t sample,
                              const void *values)
{
    int64_t start[GRV_DATASET_MAX_AXES + 2] = {sample}, count[GRV_DATASET_MAX_AXES + 2] = {1};
    for (int i = 0; i < field->n_axes; i++) count[i + 1] = field->shape[i];
    count[field->n_axes + 1] = field->n_channels;
    return grv_array_write(array, start, count, values, NULL);
}

grv_status grv_dataset_write_sample(grv_dataset *dataset, int64_t sample, const void *input,
                                    const void *target)
{
    grv_status status = GRV_OK;
    const grv_dataset_desc *const desc = &dataset->desc;
    grvi_text key = {0};
    uint8_t before = 0;
    GRV_TRY(grvi_dataset_check_sample(dataset, sample));
    GRV_TRY(check_values(dataset, "input", &desc->input, sample, input));
    GRV_TRY(check_values(dataset, "target", &desc->target, sample, target));
    GRV_TRY(read_status(dataset, sample, &before));
    if (before != GRV_SAMPLE_MISSING) {
        /* a new input must never be taken together with an old target */
        GRV_TRY(write_status(dataset, sample, GRV_SAMPLE_MISSING));
        atomic_store(&dataset->done[sample].is_set, false);
    }
    GRV_TRY(write_field(dataset->input, &desc->input, sample, input));
    GRV_TRY(write_field(dataset->target, &desc->target, sample, target));
    GRV_TRY(write_status(dataset, sample, GRV_SAMPLE_DONE));
    if (before != GRV_SAMPLE_FAILED) return GRV_OK;
    GRV_TRY_GOTO(reason_key(sample, &key));
    GRV_TRY_GOTO(grv_store_remove(dataset->store, key.data));
done:
    grvi_text_fini(&key);
    return status;
}
