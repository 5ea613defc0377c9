/* JSON over json-c, and the writer. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "core/json.h"
#include "grove/core.h"

enum { MAX_DEPTH = 64 };

grv_status grvi_json_parse(const char *bytes, int64_t n, const char *what, grvi_json **root)
{
    *root = NULL;
    int n_int = 0;
    GRV_TRY(grvi_to_int(n, &n_int));
    struct json_tokener *const tokener = json_tokener_new_ex(MAX_DEPTH);
    GRV_CHECK(tokener != NULL, GRV_E_NOMEM, "JSON parser for %s", what);
    struct json_object *object = json_tokener_parse_ex(tokener, bytes, n_int);
    enum json_tokener_error error = json_tokener_get_error(tokener);
    size_t offset = json_tokener_get_parse_end(tokener);
    if (error == json_tokener_continue && object == NULL) {
        /* a bare number or word at the end of the text is complete only once its end is seen */
        object = json_tokener_parse_ex(tokener, "", 1);
        error = json_tokener_get_error(tokener);
        offset = (size_t)n;
    }
    json_tokener_free(tokener);
    while (offset < (size_t)n && strchr(" \t\r\n", bytes[offset]) != NULL) offset++;
    if (error != json_tokener_success || offset != (size_t)n) {
        (void)json_object_put(object);
        GRV_FAIL(GRV_E_FORMAT, "%s: JSON broken at byte %zu: %s", what, offset,
                 error == json_tokener_success ? "text after the value" : json_tokener_error_desc(error));
    }
    *root = object;
    return GRV_OK;
}

void grvi_json_free(grvi_json *root) { (void)json_object_put(root); }

grvi_json_kind grvi_json_kind_of(const grvi_json *node)
{
    switch (json_object_get_type(node)) {
    case json_type_boolean: return GRVI_JSON_BOOL;
    case json_type_int: return GRVI_JSON_INTEGER;
    case json_type_double: return GRVI_JSON_NUMBER;
    case json_type_string: return GRVI_JSON_STRING;
    case json_type_array: return GRVI_JSON_ARRAY;
    case json_type_object: return GRVI_JSON_OBJECT;
    case json_type_null: break;
    }
    return GRVI_JSON_NULL;
}

bool grvi_json_has(const grvi_json *object, const char *key)
{
    return grvi_json_kind_of(object) == GRVI_JSON_OBJECT && json_object_object_get_ex(object, key, NULL);
}

grvi_json *grvi_json_get(const grvi_json *object, const char *key)
{
    struct json_object *value = NULL;
    if (grvi_json_kind_of(object) != GRVI_JSON_OBJECT) return NULL;
    return json_object_object_get_ex(object, key, &value) ? value : NULL;
}

int64_t grvi_json_length(const grvi_json *array)
{
    return grvi_json_kind_of(array) == GRVI_JSON_ARRAY ? (int64_t)json_object_array_length(array) : 0;
}

grvi_json *grvi_json_at(const grvi_json *array, int64_t i)
{
    return i >= 0 && i < grvi_json_length(array) ? json_object_array_get_idx(array, (size_t)i) : NULL;
}

grv_status grvi_json_for_each(const grvi_json *object, grvi_json_visit *visit, void *argument)
{
    if (grvi_json_kind_of(object) != GRVI_JSON_OBJECT) return GRV_OK;
    struct json_object_iterator it = json_object_iter_begin((struct json_object *)(uintptr_t)object);
    const struct json_object_iterator end = json_object_iter_end(object);
    for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
        const grv_status status = visit(argument, json_object_iter_peek_name(&it), json_object_iter_peek_value(&it));
        if (status != GRV_OK) return status;
    }
    return GRV_OK;
}

bool grvi_json_as_bool(const grvi_json *node, bool *out)
{
    if (grvi_json_kind_of(node) != GRVI_JSON_BOOL) return false;
    *out = json_object_get_boolean(node) != 0;
    return true;
}

bool grvi_json_as_i64(const grvi_json *node, int64_t *out)
{
    if (grvi_json_kind_of(node) != GRVI_JSON_INTEGER) return false;
    errno = 0;
    *out = json_object_get_int64(node);
    /* json-c saturates: an unsigned number above the range reads as INT64_MAX */
    return !(*out == INT64_MAX && json_object_get_uint64(node) != (uint64_t)INT64_MAX);
}

bool grvi_json_as_u64(const grvi_json *node, uint64_t *out)
{
    if (grvi_json_kind_of(node) != GRVI_JSON_INTEGER || json_object_get_int64(node) < 0) return false;
    *out = json_object_get_uint64(node);
    return true;
}

bool grvi_json_as_double(const grvi_json *node, double *out)
{
    const grvi_json_kind kind = grvi_json_kind_of(node);
    if (kind != GRVI_JSON_INTEGER && kind != GRVI_JSON_NUMBER) return false;
    *out = json_object_get_double(node);
    return true;
}

const char *grvi_json_as_string(const grvi_json *node)
{
    return grvi_json_kind_of(node) == GRVI_JSON_STRING ? json_object_get_string((struct json_object *)(uintptr_t)node) : NULL;
}

void grvi_json_print(const grvi_json *node, grvi_text *out)
{
    const char *const text = node == NULL ? "null"
        : json_object_to_json_string_ext((struct json_object *)(uintptr_t)node, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    if (text != NULL) grvi_text_append(out, text);
    else out->failed = true;
}

static void before_item(grvi_json_writer *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    const uint64_t bit = (uint64_t)1 << w->depth;
    if (w->has_item & bit) grvi_text_append(w->out, w->pretty ? "," : ", ");
    if (w->pretty && w->depth > 0) grvi_text_printf(w->out, "\n%*s", 2 * w->depth, "");
    w->has_item |= bit;
}

static void open_level(grvi_json_writer *w, const char *bracket)
{
    before_item(w);
    grvi_text_append(w->out, bracket);
    GRV_ASSERT(w->depth < 63);
    w->depth++;
    w->has_item &= ~((uint64_t)1 << w->depth);
}

static void close_level(grvi_json_writer *w, const char *bracket)
{
    const bool had_items = (w->has_item >> w->depth) & 1U;
    w->depth--;
    if (w->pretty && had_items) grvi_text_printf(w->out, "\n%*s", 2 * w->depth, "");
    grvi_text_append(w->out, bracket);
}

void grvi_json_begin_object(grvi_json_writer *w) { open_level(w, "{"); }
void grvi_json_end_object(grvi_json_writer *w) { close_level(w, "}"); }
void grvi_json_begin_array(grvi_json_writer *w) { open_level(w, "["); }
void grvi_json_end_array(grvi_json_writer *w) { close_level(w, "]"); }

static void quoted(grvi_text *out, const char *value)
{
    grvi_text_append(out, "\"");
    for (const char *p = value; *p != '\0'; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\') grvi_text_printf(out, "\\%c", c);
        else if (c == '\n') grvi_text_append(out, "\\n");
        else if (c == '\t') grvi_text_append(out, "\\t");
        else if (c < 0x20) grvi_text_printf(out, "\\u%04x", c);
        else grvi_text_append_n(out, p, 1);
    }
    grvi_text_append(out, "\"");
}

void grvi_json_key(grvi_json_writer *w, const char *key)
{
    before_item(w);
    quoted(w->out, key);
    grvi_text_append(w->out, ": ");
    w->after_key = true;
}

void grvi_json_string(grvi_json_writer *w, const char *value)
{
    before_item(w);
    quoted(w->out, value);
}

void grvi_json_i64(grvi_json_writer *w, int64_t value)
{
    before_item(w);
    grvi_text_printf(w->out, "%lld", (long long)value);
}

void grvi_json_u64(grvi_json_writer *w, uint64_t value)
{
    before_item(w);
    grvi_text_printf(w->out, "%llu", (unsigned long long)value);
}

void grvi_json_double(grvi_json_writer *w, double value)
{
    before_item(w);
    if (isnan(value)) grvi_text_append(w->out, "\"NaN\"");
    else if (isinf(value)) grvi_text_append(w->out, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else grvi_text_append_double(w->out, value);
}

void grvi_json_bool(grvi_json_writer *w, bool value)
{
    before_item(w);
    grvi_text_append(w->out, value ? "true" : "false");
}

void grvi_json_null(grvi_json_writer *w)
{
    before_item(w);
    grvi_text_append(w->out, "null");
}

void grvi_json_raw(grvi_json_writer *w, const char *json)
{
    before_item(w);
    grvi_text_append(w->out, json);
}
