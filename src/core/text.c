/* Growing text. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "grove/core.h"

void grvi_text_fini(grvi_text *text)
{
    grv_free(text->data);
    *text = (grvi_text){0};
}

static bool reserve(grvi_text *text, int64_t n_more)
{
    if (text->failed) return false;
    if (text->n + n_more + 1 <= text->capacity) return true;
    const int64_t capacity = grvi_max_i64(text->n + n_more + 1, 2 * text->capacity + 64);
    if (GRVI_REALLOC(&text->data, capacity) != GRV_OK) {
        text->failed = true;
        return false;
    }
    text->capacity = capacity;
    return true;
}

void grvi_text_append_n(grvi_text *text, const char *bytes, int64_t n)
{
    if (!reserve(text, n)) return;
    if (n > 0) memcpy(text->data + text->n, bytes, (size_t)n);
    text->n += n;
    text->data[text->n] = '\0';
}

void grvi_text_append(grvi_text *text, const char *string) { grvi_text_append_n(text, string, (int64_t)strlen(string)); }

void grvi_text_printf(grvi_text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n >= 0 && reserve(text, n)) {
        (void)vsnprintf(text->data + text->n, (size_t)n + 1, format, again);
        text->n += n;
    }
    va_end(again);
}

void grvi_text_append_double(grvi_text *text, double value)
{
    char digits[40];
    for (int n = 6; n <= 17; n++) {
        (void)snprintf(digits, sizeof digits, "%.*g", n, value);
        const double back = strtod(digits, NULL);
        if (!(back < value) && !(back > value)) break;
    }
    const size_t n_mantissa = strcspn(digits, "e");
    grvi_text_append_n(text, digits, (int64_t)n_mantissa);
    if (memchr(digits, '.', n_mantissa) == NULL) grvi_text_append(text, ".0");
    grvi_text_append(text, digits + n_mantissa);
}

const char *grvi_text_get(const grvi_text *text) { return text->data != NULL ? text->data : ""; }

grv_status grvi_text_status(const grvi_text *text)
{
    GRV_CHECK(!text->failed, GRV_E_NOMEM, "text of %lld bytes cannot grow", (long long)text->n);
    return GRV_OK;
}
