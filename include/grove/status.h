/** @file status.h
 * Error codes and the thread-local error record.
 *
 * Whatever can fail returns a grv_status. 0 is success, negative values are errors, positive values are other
 * normal outcomes. A failing call fills a record of its thread: the message, then one line per level that passed it on.
 */
#ifndef GROVE_STATUS_H
#define GROVE_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks an exported function. */
#define GRV_API __attribute__((visibility("default")))
/** The result must be looked at. */
#define GRV_MUST_CHECK __attribute__((warn_unused_result))

/** The codes: name, value, text. Published values never change; new ones are appended. */
#define GRV_STATUS_LIST(X)                                                                         \
    X(GRV_OK, 0, "success")                                                                        \
    X(GRV_END, 1, "end of data")                                                                   \
    X(GRV_AGAIN, 2, "not ready")                                                                   \
    X(GRV_E_ARG, -1, "invalid argument")                                                           \
    X(GRV_E_SHAPE, -2, "shape mismatch")                                                           \
    X(GRV_E_NOMEM, -3, "out of memory")                                                            \
    X(GRV_E_IO, -4, "input/output failure")                                                        \
    X(GRV_E_FORMAT, -5, "malformed data")                                                          \
    X(GRV_E_UNSUPPORTED, -6, "not supported")                                                      \
    X(GRV_E_CONFIG, -7, "invalid configuration")                                                   \
    X(GRV_E_NOT_FOUND, -8, "not found")                                                            \
    X(GRV_E_NUMERIC, -9, "numerical failure")                                                      \
    X(GRV_E_COMM, -10, "communication failure")                                                    \
    X(GRV_E_INTERRUPTED, -11, "interrupted")                                                       \
    X(GRV_E_EXISTS, -12, "exists already")                                                         \
    X(GRV_E_CANCELLED, -13, "cancelled")

/** Result of every call that can fail. */
typedef enum grv_status {
#define GRV_STATUS_ENUM(name, value, text) name = value,
    GRV_STATUS_LIST(GRV_STATUS_ENUM)
#undef GRV_STATUS_ENUM
} grv_status;

/** Short text of a code; "unknown status" for a value that is not one. Never NULL; a constant. */
GRV_API const char *grv_status_text(grv_status status);

/** Message of the last failure in the calling thread, without the trace; "" if there was none.
 * Borrowed until the next failing call of this thread. */
GRV_API const char *grv_error_message(void);

/** Message and trace ("  at file:line function()" per level) of the last failure in the calling thread.
 * Borrowed until the next failing call of this thread. */
GRV_API const char *grv_error_trace(void);

/** Forgets the record of the calling thread. */
GRV_API void grv_error_clear(void);

#ifdef __cplusplus
}
#endif
#endif
