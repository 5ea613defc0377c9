/* Making a data set, and telling whether an existing one is what a generator wants to go on with. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "data/dataset_impl.h"
#include "grove/core.h"

grv_dataset_desc grv_dataset_desc_default(void)
{
    return (grv_dataset_desc){.type = GRV_STORE_F32,
                              .planes_per_chunk = 1,
                              .compressor = GRV_COMPRESSOR_BLOSC_ZSTD,
                              .level = 1};
}

static grv_status check_field(const grv_dataset_field *field, const char *which)
{
    GRV_CHECK(field->n_axes >= 1 && field->n_axes <= GRV_DATASET_MAX_AXES, GRV_E_ARG,
              "%s of a data set: 1 to %d axes expected, %d found", which, GRV_DATASET_MAX_AXES,
              field->n_axes);
    GRV_CHECK(field->n_channels >= 1, GRV_E_ARG,
              "%s of a data set: at least one channel expected, %lld found", which,
              (long long)field->n_channels);
    for (int i = 0; i < field->n_axes; i++) {
        GRV_CHECK(field->axis_names[i] != NULL && field->axis_names[i][0] != '\0', GRV_E_ARG,
                  "%s of a data set: axis %d has no name", which, i);
        GRV_CHECK(field->shape[i] >= 1, GRV_E_SHAPE, "%s of a data set: axis '%s' has length %lld",
                  which, field->axis_names[i], (long long)field->shape[i]);
    }
    return GRV_OK;
}

grv_status grvi_dataset_check_desc(const grv_dataset_desc *desc)
{
    const grv_dataset_field *const input = &desc->input, *const target = &desc->target;
    GRV_TRY(check_field(input, "input"));
    GRV_TRY(check_field(target, "target"));
    GRV_CHECK(desc->n_samples >= 0, GRV_E_ARG, "a data set of %lld samples",
              (long long)desc->n_samples);
    GRV_CHECK(desc->type == GRV_STORE_F32 || desc->type == GRV_STORE_F64, GRV_E_ARG,
              "a data set holds float32 or float64, not %s", grv_store_type_name(desc->type));
    GRV_CHECK(desc->planes_per_chunk >= 1, GRV_E_ARG,
              "planes_per_chunk must be at least 1, is %lld", (long long)desc->planes_per_chunk);
    GRV_CHECK(strcmp(input->axis_names[0], target->axis_names[0]) == 0, GRV_E_SHAPE,
              "the split axis is '%s' in the input, '%s' in the target", input->axis_names[0],
              target->axis_names[0]);
    for (int i = 0; i < input->n_axes; i++) {
        for (int j = 0; j < target->n_axes; j++)
            GRV_CHECK(strcmp(input->axis_names[i], target->axis_names[j]) != 0 ||
                          input->shape[i] == target->shape[j],
                      GRV_E_SHAPE, "axis '%s' has %lld elements in the input, %lld in the target",
                      input->axis_names[i], (long long)input->shape[i],
                      (long long)target->shape[j]);
    }
    return GRV_OK;
}

static void write_strings(grvi_json_writer *w, const char *key, int64_t n,
                          const char *const *strings)
{
    if (strings == NULL) return;
    grvi_json_key(w, key);
    grvi_json_begin_array(w);
    for (int64_t i = 0; i < n; i++) grvi_json_string(w, strings[i]);
    grvi_json_end_array(w);
}

static grv_status make_field(grv_store *store, const char *name, const grv_dataset_field *field,
                             const grv_dataset_desc *desc, const char *channel_axis)
{
    grvi_text attributes = {0};
    grvi_json_writer w = {.out = &attributes};
    grv_array_desc array = grv_array_desc_default();
    const int last = field->n_axes + 1;
    array.type = desc->type;
    array.rank = last + 1;
    array.sharded = true;
    array.compressor = desc->compressor;
    array.level = desc->level;
    array.checksum = true;
    /* what is lost reads as NaN, never as a plausible value */
    array.fill = desc->type == GRV_STORE_F32 ? 0x7fc00000U : 0x7ff8000000000000U;
    array.shape[0] = desc->n_samples;
    array.shape[last] = field->n_channels;
    array.dimension_names[0] = "sample";
    array.dimension_names[last] = channel_axis;
    for (int i = 0; i < field->n_axes; i++) {
        array.shape[i + 1] = field->shape[i];
        array.dimension_names[i + 1] = field->axis_names[i];
    }
    for (int i = 0; i < array.rank; i++)
        array.chunk_shape[i] = array.inner_shape[i] = array.shape[i];
    array.chunk_shape[0] = array.inner_shape[0] = 1;
    array.inner_shape[1] = grvi_min_i64(desc->planes_per_chunk, array.shape[1]);
    array.chunk_shape[1] =
        grvi_round_up(array.shape[1], array.inner_shape[1]); /* an inner chunk divides its shard */
    grvi_json_begin_object(&w);
    write_strings(&w, "channels", field->n_channels, field->channel_names);
    write_strings(&w, "units", field->n_channels, field->channel_units);
    grvi_json_end_object(&w);
    grv_status status = grvi_text_status(&attributes);
    array.attributes = attributes.data;
    if (status == GRV_OK) status = grv_array_create(store, name, &array, NULL);
    grvi_text_fini(&attributes);
    return status;
}

static void write_object(grvi_json_writer *w, const char *key, const char *json)
{
    if (json == NULL) return;
    grvi_json_key(w, key);
    grvi_json_raw(w, json);
}

static grv_status make_group(grv_store *store, const grv_dataset_desc *desc)
{
    grvi_text attributes = {0};
    grvi_json_writer w = {.out = &attributes};
    grvi_json_begin_object(&w);
    grvi_json_key(&w, "grove_dataset");
    grvi_json_i64(&w, GRVI_DATASET_VERSION);
    grvi_json_key(&w, "seed");
    grvi_json_u64(&w, desc->seed);
    write_object(&w, "generator", desc->generator);
    write_object(&w, "units", desc->units);
    write_object(&w, "normalization", desc->normalization);
    grvi_json_end_object(&w);
    grv_status status = grvi_text_status(&attributes);
    if (status == GRV_OK) status = grv_group_create(store, "", attributes.data);
    grvi_text_fini(&attributes);
    return status;
}

grv_status grvi_dataset_make(grv_store *store, const grv_dataset_desc *desc)
{
    /* xarray wants one length per name: the channels share theirs only where they can */
    const bool same_channels = desc->input.n_channels == desc->target.n_channels;
    grv_array_desc status = grv_array_desc_default();
    status.type = GRV_STORE_U8;
    status.rank = 1;
    status.shape[0] = desc->n_samples;
    status.chunk_shape[0] = 1; /* each sample's state is published on its own */
    status.compressor = GRV_COMPRESSOR_NONE;
    status.dimension_names[0] = "sample";
    status.attributes = "{\"flag_values\": [0, 1, 2], \"flag_meanings\": \"missing done failed\"}";
    GRV_TRY(make_group(store, desc));
    GRV_TRY(make_field(store, "input", &desc->input, desc,
                       same_channels ? "channel" : "input_channel"));
    GRV_TRY(make_field(store, "target", &desc->target, desc,
                       same_channels ? "channel" : "target_channel"));
    return grv_array_create(store, "status", &status, NULL);
}

static grv_store_params writable_params(const grv_store_params *params)
{
    grv_store_params result = params != NULL ? *params : grv_store_params_default();
    result.writable = true;
    return result;
}

/* The folder is filled aside and renamed, so that nobody opens half a data set. */
static grv_status make_folder_aside(const char *path, const grv_dataset_desc *desc,
                                    const grv_store_params *params)
{
    grv_status status = GRV_OK;
    grvi_text aside = {0};
    grv_store *store = NULL;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    grvi_text_printf(&aside, "%.*s.partial-%ld", (int)n, path, (long)getpid());
    GRV_TRY_GOTO(grvi_text_status(&aside));
    GRV_TRY_GOTO(grv_store_open(aside.data, params, &store));
    GRV_TRY_GOTO(grvi_dataset_make(store, desc));
    GRV_TRY_GOTO(grv_store_commit(store));
    GRV_TRY_GOTO(grvi_fs_rename(aside.data, path));
done:
    grv_store_close(&store);
    if (status != GRV_OK && aside.data != NULL) {
        const char *const reason = grv_error_message();
        char kept[1024];
        (void)snprintf(kept, sizeof kept, "%s", reason);
        if (grvi_fs_remove_tree(aside.data) != GRV_OK) grv_error_clear();
        status = grvi_fail_from(status, kept);
    }
    grvi_text_fini(&aside);
    return status;
}

grv_status grv_dataset_create(const char *path, const grv_dataset_desc *desc,
                              const grv_store_params *params, grv_dataset **dataset)
{
    const grv_store_params writable = writable_params(params);
    char *document = NULL;
    if (dataset != NULL) *dataset = NULL;
    GRV_TRY(grvi_dataset_check_desc(desc));
    GRV_TRY(grvi_fs_join(path, "zarr.json", &document));
    const bool exists = grvi_fs_exists(document);
    grv_free(document);
    GRV_CHECK(!exists, GRV_E_EXISTS, "a Zarr group or array at %s", path);
    GRV_TRY(make_folder_aside(path, desc, &writable));
    return dataset != NULL ? grv_dataset_open(path, &writable, dataset) : GRV_OK;
}

static grv_status compare_fields(const char *which, const grv_dataset_field *have,
                                 const grv_dataset_field *want)
{
    GRV_CHECK(have->n_axes == want->n_axes, GRV_E_CONFIG,
              "the data set's %s has %d axes, %d are wanted", which, have->n_axes, want->n_axes);
    for (int i = 0; i < have->n_axes; i++) {
        GRV_CHECK(have->axis_names[i] != NULL &&
                      strcmp(have->axis_names[i], want->axis_names[i]) == 0,
                  GRV_E_CONFIG, "axis %d of the data set's %s is '%s', '%s' is wanted", i, which,
                  have->axis_names[i] != NULL ? have->axis_names[i] : "", want->axis_names[i]);
        GRV_CHECK(have->shape[i] == want->shape[i], GRV_E_CONFIG,
                  "axis '%s' of the data set's %s has %lld elements, %lld are wanted",
                  want->axis_names[i], which, (long long)have->shape[i], (long long)want->shape[i]);
    }
    GRV_CHECK(have->n_channels == want->n_channels, GRV_E_CONFIG,
              "the data set's %s has %lld channels, %lld are wanted", which,
              (long long)have->n_channels, (long long)want->n_channels);
    return GRV_OK;
}

/* A search for the first key that differs: each member of one object is looked for in the other. */
typedef struct comparison {
    const grvi_json *other; /* NULL: nothing is in it */
    bool is_other_wanted;   /* else the other one is what is there */
    const char *group;      /* before the keys, with its dot */
} comparison;

static grv_status compare_member(void *argument, const char *key, grvi_json *value)
{
    const comparison *const c = argument;
    const grvi_json *const other = grvi_json_get(c->other, key);
    grvi_text name = {0}, texts[2] = {{0}, {0}}; /* there, wanted */
    grv_status status = GRV_OK;
    grvi_text_printf(&name, "%s%s", c->group, key);
    grvi_json_print(other, &texts[c->is_other_wanted]);
    grvi_json_print(value, &texts[!c->is_other_wanted]);
    GRV_TRY_GOTO(grvi_text_status(&name));
    GRV_TRY_GOTO(grvi_text_status(&texts[0]));
    GRV_TRY_GOTO(grvi_text_status(&texts[1]));
    if (strcmp(texts[0].data, texts[1].data) == 0) goto done;
    if (grvi_json_kind_of(value) == GRVI_JSON_OBJECT &&
        grvi_json_kind_of(other) == GRVI_JSON_OBJECT) {
        grvi_text_append(&name, ".");
        GRV_TRY_GOTO(grvi_text_status(&name));
        GRV_TRY_GOTO(grvi_json_for_each(value, compare_member,
                                        &(comparison){other, c->is_other_wanted, name.data}));
        goto done; /* the other object has more, or another order */
    }
    GRV_FAIL_GOTO(GRV_E_CONFIG,
                  "the data set was generated with another configuration: %s is %.300s there, "
                  "%.300s is wanted",
                  name.data, texts[0].data, texts[1].data);
done:
    grvi_text_fini(&name);
    grvi_text_fini(&texts[0]);
    grvi_text_fini(&texts[1]);
    return status;
}

/* What the generator wants must be there, and nothing else. */
static grv_status compare_generator(grv_dataset *dataset, const char *wanted)
{
    grv_status status = GRV_OK;
    grvi_json *there = NULL, *here = NULL;
    char *found = NULL;
    if (wanted == NULL) return GRV_OK;
    GRV_TRY_GOTO(grv_dataset_get_attribute(dataset, "generator", &found));
    if (found != NULL)
        GRV_TRY_GOTO(grvi_json_parse(found, (int64_t)strlen(found), "generator", &there));
    GRV_TRY_GOTO(grvi_json_parse(wanted, (int64_t)strlen(wanted), "generator", &here));
    GRV_TRY_GOTO(grvi_json_for_each(here, compare_member, &(comparison){there, false, ""}));
    GRV_TRY_GOTO(grvi_json_for_each(there, compare_member, &(comparison){here, true, ""}));
done:
    grvi_json_free(here);
    grvi_json_free(there);
    grv_free(found);
    return status;
}

grv_status grvi_dataset_compare(grv_dataset *dataset, const grv_dataset_desc *desc)
{
    const grv_dataset_desc *const have = &dataset->desc;
    GRV_CHECK(have->n_samples == desc->n_samples, GRV_E_CONFIG,
              "the data set has %lld samples, %lld are wanted", (long long)have->n_samples,
              (long long)desc->n_samples);
    GRV_TRY(compare_fields("input", &have->input, &desc->input));
    GRV_TRY(compare_fields("target", &have->target, &desc->target));
    GRV_CHECK(have->type == desc->type, GRV_E_CONFIG, "the data set holds %s, %s is wanted",
              grv_store_type_name(have->type), grv_store_type_name(desc->type));
    GRV_CHECK(have->seed == desc->seed, GRV_E_CONFIG,
              "the data set was generated with seed %llu, %llu is wanted",
              (unsigned long long)have->seed, (unsigned long long)desc->seed);
    return compare_generator(dataset, desc->generator);
}

grv_status grvi_dataset_continue(const char *path, const grv_dataset_desc *desc,
                                 const grv_store_params *params, grv_dataset **dataset)
{
    const grv_store_params writable = writable_params(params);
    GRV_TRY(grv_dataset_open(path, &writable, dataset));
    grv_status status = grvi_dataset_compare(*dataset, desc);
    if (status == GRV_E_CONFIG) {
        char message[1024];
        (void)snprintf(message, sizeof message,
                       "%.800s (what is in %.160s is kept: delete it, or take another output)",
                       grv_error_message(), path);
        status = grvi_fail_from(status, message);
    }
    if (status != GRV_OK) grv_dataset_close(dataset);
    return status;
}

grv_status grv_dataset_resume(const char *path, const grv_dataset_desc *desc,
                              const grv_store_params *params, grv_dataset **dataset)
{
    const grv_store_params writable = writable_params(params);
    char *document = NULL;
    *dataset = NULL;
    GRV_TRY(grvi_dataset_check_desc(desc));
    GRV_TRY(grvi_fs_join(path, "zarr.json", &document));
    const bool exists = grvi_fs_exists(document);
    grv_free(document);
    return exists ? grvi_dataset_continue(path, desc, params, dataset)
                  : grv_dataset_create(path, desc, &writable, dataset);
}
