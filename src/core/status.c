/* The thread-local error record: one message and a bounded trace, no allocation, so that it works out of memory. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/check.h"

enum { MESSAGE_BYTES = 2048, TRACE_BYTES = 4096 };

typedef struct error_record {
    char message[MESSAGE_BYTES];
    char trace[TRACE_BYTES];
    size_t n_trace;
} error_record;

static _Thread_local error_record record;

const char *grv_status_text(grv_status status)
{
    switch (status) {
#define GRV_STATUS_CASE(name, value, text)                                                         \
    case name: return text;
        GRV_STATUS_LIST(GRV_STATUS_CASE)
#undef GRV_STATUS_CASE
    }
    return "unknown status";
}

const char *grv_error_message(void) { return record.message; }

const char *grv_error_trace(void) { return record.trace; }

void grv_error_clear(void)
{
    record.message[0] = '\0';
    record.trace[0] = '\0';
    record.n_trace = 0;
}

static void trace_append(const char *text)
{
    const size_t n = strlen(text);
    if (record.n_trace + n + 1 > sizeof record.trace) return;
    memcpy(record.trace + record.n_trace, text, n + 1);
    record.n_trace += n;
}

void grvi_frame(const char *file, int line, const char *function)
{
    const char *const slash = strrchr(file, '/');
    char text[256];
    (void)snprintf(text, sizeof text, "\n  at %s:%d %s()", slash != NULL ? slash + 1 : file, line, function);
    trace_append(text);
}

grv_status grvi_fail(grv_status code, const char *file, int line, const char *function,
                     const char *format, ...)
{
    /* the arguments may point into the record itself, so the text is made aside */
    char text[MESSAGE_BYTES];
    const int n_head = snprintf(text, sizeof text, "%s: ", grv_status_text(code));
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + n_head, sizeof text - (size_t)n_head, format, arguments);
    va_end(arguments);
    (void)grvi_fail_from(code, text);
    grvi_frame(file, line, function);
    return code;
}

grv_status grvi_fail_from(grv_status code, const char *message)
{
    grv_error_clear();
    (void)snprintf(record.message, sizeof record.message, "%s", message);
    trace_append(record.message);
    return code;
}

void grvi_assert_failed(const char *text, const char *file, int line, const char *function)
{
    (void)fprintf(stderr, "grove: internal error: %s, %s:%d %s()\n", text, file, line, function);
    abort();
}
