/* Attributes of a data set, and its summary. */
#include <string.h>

#include "core/alloc.h"
#include "data/dataset_impl.h"
#include "grove/core.h"

static grv_status load_attributes(grv_dataset *dataset, grvi_json **root)
{
    char *text = NULL;
    GRV_TRY(grv_attributes_get(dataset->store, "", &text));
    const grv_status status =
        grvi_json_parse(text, (int64_t)strlen(text), "attributes of the data set", root);
    grv_free(text);
    return status;
}

grv_status grv_dataset_get_attribute(grv_dataset *dataset, const char *key, char **json)
{
    grvi_json *root = NULL;
    grvi_text text = {0};
    *json = NULL;
    GRV_TRY(load_attributes(dataset, &root));
    grv_status status = GRV_OK;
    if (!grvi_json_has(root, key)) goto done;
    grvi_json_print(grvi_json_get(root, key), &text);
    GRV_TRY_GOTO(grvi_text_status(&text));
    *json = text.data;
    text = (grvi_text){0};
done:
    grvi_text_fini(&text);
    grvi_json_free(root);
    return status;
}

typedef struct attribute_copy {
    grvi_json_writer w;
    grvi_text value;
    const char *replaced;
} attribute_copy;

static grv_status copy_attribute(void *argument, const char *key, grvi_json *value)
{
    attribute_copy *const copy = argument;
    if (strcmp(key, copy->replaced) == 0) return GRV_OK;
    copy->value.n = 0;
    grvi_json_print(value, &copy->value);
    GRV_TRY(grvi_text_status(&copy->value));
    grvi_json_key(&copy->w, key);
    grvi_json_raw(&copy->w, copy->value.data);
    return GRV_OK;
}

grv_status grv_dataset_set_attribute(grv_dataset *dataset, const char *key, const char *json)
{
    grv_status status = GRV_OK;
    grvi_json *root = NULL, *value = NULL;
    grvi_text text = {0};
    attribute_copy copy = {.w = {.out = &text}, .replaced = key};
    GRV_TRY(load_attributes(dataset, &root));
    GRV_TRY_GOTO(grvi_json_parse(json, (int64_t)strlen(json), key, &value));
    grvi_json_begin_object(&copy.w);
    GRV_TRY_GOTO(grvi_json_for_each(root, copy_attribute, &copy));
    grvi_json_key(&copy.w, key);
    grvi_json_raw(&copy.w, json);
    grvi_json_end_object(&copy.w);
    GRV_TRY_GOTO(grvi_text_status(&text));
    GRV_TRY_GOTO(grv_attributes_set(dataset->store, "", text.data));
done:
    grvi_text_fini(&copy.value);
    grvi_text_fini(&text);
    grvi_json_free(value);
    grvi_json_free(root);
    return status;
}

static void describe_field(grvi_json_writer *w, const char *name, const grv_dataset_field *field,
                           int64_t n_stored, int64_t n_bytes)
{
    grvi_json_key(w, name);
    grvi_json_begin_object(w);
    grvi_json_key(w, "axes");
    grvi_json_begin_array(w);
    for (int i = 0; i < field->n_axes; i++) {
        if (field->axis_names[i] != NULL)
            grvi_json_string(w, field->axis_names[i]);
        else
            grvi_json_null(w);
    }
    grvi_json_end_array(w);
    grvi_json_key(w, "shape");
    grvi_json_begin_array(w);
    for (int i = 0; i < field->n_axes; i++) grvi_json_i64(w, field->shape[i]);
    grvi_json_end_array(w);
    grvi_json_key(w, "channels");
    grvi_json_i64(w, field->n_channels);
    grvi_json_key(w, "stored_samples");
    grvi_json_i64(w, n_stored);
    grvi_json_key(w, "stored_bytes");
    grvi_json_i64(w, n_bytes);
    grvi_json_end_object(w);
}

grv_status grv_dataset_describe(grv_dataset *dataset, char **json)
{
    grv_status status = GRV_OK;
    const grv_dataset_desc *const desc = &dataset->desc;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text};
    grv_dataset_counts counts;
    int64_t n_inputs = 0, n_targets = 0, input_bytes = 0, target_bytes = 0;
    *json = NULL;
    GRV_TRY(grv_dataset_count(dataset, &counts));
    GRV_TRY(grv_array_stored(dataset->input, &n_inputs, &input_bytes));
    GRV_TRY(grv_array_stored(dataset->target, &n_targets, &target_bytes));
    grvi_json_begin_object(&w);
    grvi_json_key(&w, "samples");
    grvi_json_i64(&w, desc->n_samples);
    grvi_json_key(&w, "done");
    grvi_json_i64(&w, counts.n_done);
    grvi_json_key(&w, "failed");
    grvi_json_i64(&w, counts.n_failed);
    grvi_json_key(&w, "missing");
    grvi_json_i64(&w, counts.n_missing);
    grvi_json_key(&w, "type");
    grvi_json_string(&w, grv_store_type_name(desc->type));
    grvi_json_key(&w, "planes_per_chunk");
    grvi_json_i64(&w, desc->planes_per_chunk);
    grvi_json_key(&w, "seed");
    grvi_json_u64(&w, desc->seed);
    describe_field(&w, "input", &desc->input, n_inputs, input_bytes);
    describe_field(&w, "target", &desc->target, n_targets, target_bytes);
    grvi_json_end_object(&w);
    GRV_TRY_GOTO(grvi_text_status(&text));
    *json = text.data;
    text = (grvi_text){0};
done:
    grvi_text_fini(&text);
    return status;
}
