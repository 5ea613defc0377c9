/* JSON: a reader over json-c (the only place that includes it) and a writer. Internal.
 * The reader keeps 64-bit integers exact, accepts the bare NaN and Infinity tokens that others write, and refuses trailing text.
 * The writer never emits them: non-finite numbers become the strings "NaN", "Infinity", "-Infinity". */
#ifndef GRVI_CORE_JSON_H
#define GRVI_CORE_JSON_H

#include <stdint.h>

#include "core/check.h"
#include "core/text.h"

typedef struct json_object grvi_json; /* a node; borrowed from the root that was parsed */

typedef enum grvi_json_kind {
    GRVI_JSON_NULL,
    GRVI_JSON_BOOL,
    GRVI_JSON_INTEGER,
    GRVI_JSON_NUMBER, /* with fraction or exponent */
    GRVI_JSON_STRING,
    GRVI_JSON_ARRAY,
    GRVI_JSON_OBJECT
} grvi_json_kind;

/* Parses n bytes; what = where they are from, for messages, which carry the byte offset. Free the root with grvi_json_free. */
grv_status grvi_json_parse(const char *bytes, int64_t n, const char *what, grvi_json **root) GRV_MUST_CHECK;
/* Refuses a text (that grvi_json_parse takes) in which an object has one key twice: readers do not agree on what it means. */
grv_status grvi_json_check_keys(const char *bytes, int64_t n, const char *what) GRV_MUST_CHECK;
void grvi_json_free(grvi_json *root);

/* NULL is GRVI_JSON_NULL. */
grvi_json_kind grvi_json_kind_of(const grvi_json *node);
/* Member of an object, NULL if absent (or not an object, or JSON null). Borrowed. */
grvi_json *grvi_json_get(const grvi_json *object, const char *key);
bool grvi_json_has(const grvi_json *object, const char *key);
int64_t grvi_json_length(const grvi_json *array); /* 0 if not an array */
grvi_json *grvi_json_at(const grvi_json *array, int64_t i);
/* Visits members in file order; stops at the first status that is not GRV_OK and returns it. */
typedef grv_status grvi_json_visit(void *argument, const char *key, grvi_json *value);
grv_status grvi_json_for_each(const grvi_json *object, grvi_json_visit *visit, void *argument) GRV_MUST_CHECK;

/* Values; false if the node is of another kind or out of range. Numbers: an integer is a number as well. */
bool grvi_json_as_bool(const grvi_json *node, bool *out);
bool grvi_json_as_i64(const grvi_json *node, int64_t *out);
bool grvi_json_as_u64(const grvi_json *node, uint64_t *out);
bool grvi_json_as_double(const grvi_json *node, double *out);
const char *grvi_json_as_string(const grvi_json *node); /* NULL if not a string; borrowed */
/* The node as compact text, appended. */
void grvi_json_print(const grvi_json *node, grvi_text *out);

/* Writer: appends well-formed JSON to a text; commas and indentation are its business. */
typedef struct grvi_json_writer {
    grvi_text *out;
    bool pretty;      /* newlines and two blanks a level */
    int depth;
    uint64_t has_item; /* bit d: level d has an item already */
    bool after_key;
} grvi_json_writer;

void grvi_json_begin_object(grvi_json_writer *w);
void grvi_json_end_object(grvi_json_writer *w);
void grvi_json_begin_array(grvi_json_writer *w);
void grvi_json_end_array(grvi_json_writer *w);
void grvi_json_key(grvi_json_writer *w, const char *key);
void grvi_json_string(grvi_json_writer *w, const char *value);
void grvi_json_i64(grvi_json_writer *w, int64_t value);
void grvi_json_u64(grvi_json_writer *w, uint64_t value);
void grvi_json_double(grvi_json_writer *w, double value); /* shortest text that reads back to the same double */
void grvi_json_bool(grvi_json_writer *w, bool value);
void grvi_json_null(grvi_json_writer *w);
void grvi_json_raw(grvi_json_writer *w, const char *json); /* a value that is JSON already */

#endif
