/** @file log.h
 * Messages on a stream, events as JSON lines in a file, progress of long steps.
 *
 * A library function gets a grv_log from its caller; NULL is allowed everywhere and means silence. Only rank 0 writes, except
 * errors, which every rank prints with its number. Writing never fails the caller: the first failure is reported on the
 * stream and the file is given up. Calls are thread-safe; nothing here is collective.
 */
#ifndef GROVE_LOG_H
#define GROVE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How much a message matters; a log of some level passes this and the ones above. */
typedef enum grv_log_level {
    GRV_LOG_ERROR, /**< the step failed */
    GRV_LOG_WARN,  /**< goes on, but someone should look */
    GRV_LOG_INFO,  /**< what is being done, a few lines a minute */
    GRV_LOG_DEBUG  /**< details for developers */
} grv_log_level;

/** A log. */
typedef struct grv_log grv_log;

/** How to make a log. */
typedef struct grv_log_params {
    const char *name;    /**< put before errors and warnings: "grove train"; copied */
    grv_log_level level; /**< what passes to stream and file */
    int rank;            /**< of this process */
    FILE *stream;        /**< for messages and progress, borrowed */
    bool is_terminal; /**< the stream takes control characters: progress is a bar that is redrawn */
    double bar_interval_s;  /**< least seconds between two drawings of the bar */
    double line_interval_s; /**< least seconds between two progress lines where there is no bar */
} grv_log_params;

/** Name "grove", level info, rank 0, stderr and whether it is a terminal, bar every 0.1 s, line every 10 s. */
GRV_API grv_log_params grv_log_params_default(void);

/** Makes a log.
 * @param log  owned by the caller, free with grv_log_destroy; NULL on failure
 * @errors GRV_E_NOMEM */
GRV_API grv_status grv_log_create(const grv_log_params *params, grv_log **log) GRV_MUST_CHECK;

/** Frees the log and sets it to NULL; NULL and *log == NULL are allowed. */
GRV_API void grv_log_destroy(grv_log **log);

/** From now on writes every message and event also to this file, one JSON object per line with the members time (UTC),
 * level, event and those of the event. Appends; a last line that an interrupted run left unfinished is closed first.
 * Ranks other than 0 do nothing. Each line is one write, so that it is complete or absent.
 * @errors GRV_E_IO, GRV_E_NOMEM */
GRV_API grv_status grv_log_open_file(grv_log *log, const char *path) GRV_MUST_CHECK;

/** Whether messages of this level go anywhere on this rank: to skip costly preparations. */
GRV_API bool grv_log_passes(const grv_log *log, grv_log_level level);

/** A sentence for people; printf-like, without newline. In the file it is the event "message" with the member "text". */
GRV_API void grv_log_message(grv_log *log, grv_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Kind of a grv_log_field. */
typedef enum grv_log_kind { GRV_LOG_KIND_I64, GRV_LOG_KIND_F64, GRV_LOG_KIND_TEXT } grv_log_kind;

/** One member of an event; made by grv_log_i64, grv_log_f64, grv_log_text. */
typedef struct grv_log_field {
    const char *key;   /**< member name; borrowed for the call */
    grv_log_kind kind; /**< which of the following is used */
    int64_t i64;       /**< GRV_LOG_KIND_I64 */
    double f64;        /**< GRV_LOG_KIND_F64 */
    const char *text;  /**< GRV_LOG_KIND_TEXT; borrowed for the call */
} grv_log_field;

/** A whole number. */
static inline grv_log_field grv_log_i64(const char *key, int64_t value)
{
    grv_log_field field = {key, GRV_LOG_KIND_I64, 0, 0, 0};
    field.i64 = value;
    return field;
}

/** A number; non-finite ones become strings in the file. */
static inline grv_log_field grv_log_f64(const char *key, double value)
{
    grv_log_field field = {key, GRV_LOG_KIND_F64, 0, 0, 0};
    field.f64 = value;
    return field;
}

/** A text. */
static inline grv_log_field grv_log_text(const char *key, const char *value)
{
    grv_log_field field = {key, GRV_LOG_KIND_TEXT, 0, 0, 0};
    field.text = value;
    return field;
}

/** An event for programs: on the stream "event: key = value, key = value", in the file a JSON object.
 * @param fields  [n] */
GRV_API void grv_log_event(grv_log *log, grv_log_level level, const char *event,
                           const grv_log_field *fields, int n);

/** Progress of a long step; the caller's storage, opaque fields. */
typedef struct grv_progress {
    grv_log *log;               /**< may be NULL */
    const char *label;          /**< "simulate"; borrowed */
    const char *unit;           /**< "flows"; borrowed */
    int64_t total;              /**< units in the whole step */
    int64_t done;               /**< units done */
    int64_t before;             /**< of these, done before the step began */
    char text[128];             /**< shown in place of the numbers; "": they are shown */
    double start_s;             /**< clock at the start */
    double shown_s;             /**< clock at the last drawing */
    struct grv_progress *outer; /**< the step that this one is part of */
} grv_progress;

/** Starts a step of `total` units. A step inside another one hides the outer one until it ends. Ended in reverse order. */
GRV_API void grv_progress_begin(grv_progress *progress, grv_log *log, const char *label,
                                const char *unit, int64_t total);

/** Right after the begin: `done` units were there already. They count, but say nothing about how fast the step is. */
GRV_API void grv_progress_skip(grv_progress *progress, int64_t done);

/** From the next drawing on shows this text in place of the units done and their rate, before the time left.
 * @param text  copied; what is longer than 127 bytes is cut */
GRV_API void grv_progress_describe(grv_progress *progress, const char *text);

/** `done` units are finished. Cheap: draws at the intervals of the log only; in the thread that began the step. */
GRV_API void grv_progress_update(grv_progress *progress, int64_t done);

/** Ends the step: the bar gives way to one line with the units done and the time taken. */
GRV_API void grv_progress_end(grv_progress *progress);

#ifdef __cplusplus
}
#endif
#endif
