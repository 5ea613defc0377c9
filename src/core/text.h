/* Growing text: messages, JSON, YAML and HTML are built in it. Internal.
 * A failed append is remembered; grvi_text_status tells at the end, so that callers check once. */
#ifndef GRVI_CORE_TEXT_H
#define GRVI_CORE_TEXT_H

#include <stdint.h>

#include "core/check.h"

typedef struct grvi_text {
    char *data;    /* NUL-terminated after the first append; NULL before */
    int64_t n;     /* bytes without the NUL */
    int64_t capacity;
    bool failed;   /* an append ran out of memory */
} grvi_text;

/* Start from (grvi_text){0}. */
void grvi_text_fini(grvi_text *text);
void grvi_text_append(grvi_text *text, const char *string);
void grvi_text_append_n(grvi_text *text, const char *bytes, int64_t n);
void grvi_text_printf(grvi_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Shortest decimal text that reads back to the same finite double; it keeps a point ("5.0", "1.0e-05"), so that every reader
 * of JSON or YAML sees a number with a fraction. */
void grvi_text_append_double(grvi_text *text, double value);
/* "" if nothing was appended. */
const char *grvi_text_get(const grvi_text *text);
grv_status grvi_text_status(const grvi_text *text) GRV_MUST_CHECK;

#endif
