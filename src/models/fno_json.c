/* The description of a network in files: one JSON object, written and read by one table. */
#include <stddef.h>
#include <string.h>

#include "core/json.h"
#include "grove/core.h"
#include "grove/fno.h"

typedef enum field_kind { FIELD_COUNT, FIELD_INT, FIELD_BOOL, FIELD_COUNTS, FIELD_NUMBERS, FIELD_NAMES, FIELD_WORD } field_kind;

static const char *const activations[] = {"none", "relu", "gelu", NULL};
static const char *const coordinates[] = {"none", "periodic", "inclusive", NULL};
static const char *const norms[] = {"backward", "forward", "ortho", NULL};
static const char *const losses[] = {"relative_l2", "mse", NULL};

static const struct field {
    const char *key;
    field_kind kind;
    size_t offset;
    const char *const *words;
    bool is_optional; /* the default is zero */
} fields[] = {
    {"axes", FIELD_NAMES, offsetof(grv_fno_params, axis_names), NULL, true},
    {"n", FIELD_COUNTS, offsetof(grv_fno_params, n), NULL},
    {"modes", FIELD_COUNTS, offsetof(grv_fno_params, modes), NULL},
    {"padding", FIELD_COUNTS, offsetof(grv_fno_params, padding), NULL},
    {"padding_fraction", FIELD_NUMBERS, offsetof(grv_fno_params, padding_fraction), NULL},
    {"width", FIELD_COUNT, offsetof(grv_fno_params, width), NULL},
    {"c_in", FIELD_COUNT, offsetof(grv_fno_params, c_in), NULL},
    {"c_out", FIELD_COUNT, offsetof(grv_fno_params, c_out), NULL},
    {"lift_hidden", FIELD_COUNT, offsetof(grv_fno_params, lift_hidden), NULL},
    {"projection_hidden", FIELD_COUNT, offsetof(grv_fno_params, projection_hidden), NULL},
    {"blocks", FIELD_INT, offsetof(grv_fno_params, n_blocks), NULL},
    {"activation", FIELD_WORD, offsetof(grv_fno_params, activation), activations},
    {"activation_after_last", FIELD_BOOL, offsetof(grv_fno_params, activation_after_last), NULL},
    {"coordinates", FIELD_WORD, offsetof(grv_fno_params, coordinates), coordinates},
    {"static_input", FIELD_BOOL, offsetof(grv_fno_params, static_input), NULL},
    {"norm", FIELD_WORD, offsetof(grv_fno_params, norm), norms, true},
    {"loss", FIELD_WORD, offsetof(grv_fno_params, loss), losses},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

grv_status grv_fno_to_json(const grv_fno_params *params, char **json)
{
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text};
    *json = NULL;
    grvi_json_begin_object(&w);
    for (int i = 0; i < N_FIELDS; i++) {
        const struct field *const f = &fields[i];
        const void *const at = (const char *)params + f->offset;
        grvi_json_key(&w, f->key);
        switch (f->kind) {
        case FIELD_COUNT: grvi_json_i64(&w, *(const int64_t *)at); break;
        case FIELD_INT: grvi_json_i64(&w, *(const int *)at); break;
        case FIELD_BOOL: grvi_json_bool(&w, *(const bool *)at); break;
        case FIELD_WORD: grvi_json_string(&w, f->words[*(const unsigned *)at]); break;
        case FIELD_COUNTS:
        case FIELD_NUMBERS:
        case FIELD_NAMES:
            grvi_json_begin_array(&w);
            for (int a = 0; a < params->n_axes; a++) {
                if (f->kind == FIELD_NAMES) grvi_json_string(&w, grv_fno_axis_name(params, a));
                else if (f->kind == FIELD_COUNTS) grvi_json_i64(&w, ((const int64_t *)at)[a]);
                else grvi_json_double(&w, ((const double *)at)[a]);
            }
            grvi_json_end_array(&w);
            break;
        }
    }
    grvi_json_end_object(&w);
    const grv_status status = grvi_text_status(&text);
    if (status != GRV_OK) grvi_text_fini(&text);
    *json = text.data;
    return status;
}

static bool read_word(const grvi_json *value, const char *const *words, unsigned *out)
{
    const char *const text = grvi_json_as_string(value);
    for (unsigned i = 0; text != NULL && words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0) return *out = i, true;
    return false;
}

static bool read_names(const grvi_json *value, grv_fno_params *params)
{
    if (grvi_json_length(value) != params->n_axes) return false;
    for (int a = 0; a < params->n_axes; a++) {
        const char *const name = grvi_json_as_string(grvi_json_at(value, a));
        if (name == NULL || name[0] == '\0' || strlen(name) >= GRV_AXIS_NAME_BYTES) return false;
        memcpy(params->axis_names[a], name, strlen(name) + 1);
    }
    return true;
}

static bool read_field(const grvi_json *value, const struct field *f, grv_fno_params *params)
{
    void *const at = (char *)params + f->offset;
    int64_t number = 0;
    switch (f->kind) {
    case FIELD_COUNT: return grvi_json_as_i64(value, at);
    case FIELD_INT: return grvi_json_as_i64(value, &number) && number >= 0 && number <= INT_MAX ? (*(int *)at = (int)number, true) : false;
    case FIELD_BOOL: return grvi_json_as_bool(value, at);
    case FIELD_WORD: return read_word(value, f->words, at);
    case FIELD_NAMES: return read_names(value, params);
    case FIELD_COUNTS:
    case FIELD_NUMBERS:
        if (grvi_json_length(value) != params->n_axes) return false;
        for (int a = 0; a < params->n_axes; a++) {
            const grvi_json *const item = grvi_json_at(value, a);
            if (f->kind == FIELD_COUNTS ? !grvi_json_as_i64(item, (int64_t *)at + a) : !grvi_json_as_double(item, (double *)at + a)) return false;
        }
        return true;
    }
    return false;
}

grv_status grv_fno_from_json(const char *json, const char *what, grv_fno_params *params)
{
    grv_status status = GRV_OK;
    grvi_json *root = NULL;
    *params = (grv_fno_params){0};
    GRV_TRY(grvi_json_parse(json, (int64_t)strlen(json), what, &root));
    const int64_t n_axes = grvi_json_length(grvi_json_get(root, "n"));
    GRV_CHECK_GOTO(n_axes >= 1 && n_axes <= GRV_MAX_AXES, GRV_E_FORMAT, "%s: 'n' of 1 to %d axes expected, %lld found", what, GRV_MAX_AXES,
                   (long long)n_axes);
    params->n_axes = (int)n_axes;
    for (int i = 0; i < N_FIELDS; i++) {
        if (fields[i].is_optional && !grvi_json_has(root, fields[i].key)) continue;
        GRV_CHECK_GOTO(read_field(grvi_json_get(root, fields[i].key), &fields[i], params), GRV_E_FORMAT,
                       "%s: '%s' is missing or has a wrong type", what, fields[i].key);
    }
done:
    grvi_json_free(root);
    return status;
}
