/* The logger: stream, JSON lines, progress.
 * A bar occupies the last line of the terminal; whatever is printed removes it first and draws it again after.
 * One lock per log, held for the time of a line; no other lock is taken under it. */
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/json.h"
#include "core/text.h"
#include "grove/core.h"
#include "grove/log.h"

struct grv_log {
    grv_log_params params;
    char *name;
    char *path; /* of the JSON lines; NULL without */
    grv_progress *active;
    bool bar_is_shown;
    pthread_mutex_t lock;
};

static const char *const level_names[] = {"error", "warning", "info", "debug"};

grv_log_params grv_log_params_default(void)
{
    return (grv_log_params){.name = "grove",
                            .level = GRV_LOG_INFO,
                            .stream = stderr,
                            .is_terminal = isatty(STDERR_FILENO) == 1,
                            .bar_interval_s = 0.1,
                            .line_interval_s = 10};
}

grv_status grv_log_create(const grv_log_params *params, grv_log **log)
{
    *log = NULL;
    grv_log *fresh = NULL;
    GRV_TRY(GRVI_CALLOC(&fresh, 1));
    fresh->params = *params;
    const grv_status status = grvi_strdup(params->name, &fresh->name);
    if (status != GRV_OK || pthread_mutex_init(&fresh->lock, NULL) != 0) {
        grv_free(fresh->name);
        grv_free(fresh);
        GRV_FAIL(GRV_E_NOMEM, "log '%s'", params->name);
    }
    *log = fresh;
    return GRV_OK;
}

void grv_log_destroy(grv_log **log)
{
    if (log == NULL || *log == NULL) return;
    (void)pthread_mutex_destroy(&(*log)->lock);
    grv_free((*log)->name);
    grv_free((*log)->path);
    grv_free(*log);
    *log = NULL;
}

bool grv_log_passes(const grv_log *log, grv_log_level level)
{
    return log != NULL && level <= log->params.level &&
           (log->params.rank == 0 || level == GRV_LOG_ERROR);
}

/* ---- progress ---- */

static int terminal_columns(FILE *stream)
{
    struct winsize size;
    const int fd = fileno(stream);
    if (fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
    return 80;
}

/* "12 s", "3:05 min", "1:02:03 h" */
static void append_duration(grvi_text *out, double seconds)
{
    if (!(seconds < 1e9)) {
        grvi_text_append(out, "? s");
        return;
    }
    const long s = lround(seconds);
    if (seconds < 9.95)
        grvi_text_printf(out, "%.1f s", seconds);
    else if (s < 60)
        grvi_text_printf(out, "%ld s", s);
    else if (s < 3600)
        grvi_text_printf(out, "%ld:%02ld min", s / 60, s % 60);
    else
        grvi_text_printf(out, "%ld:%02ld:%02ld h", s / 3600, s / 60 % 60, s % 60);
}

static void append_rate(grvi_text *out, const grv_progress *p, double elapsed)
{
    const double rate = elapsed > 0 ? (double)(p->done - p->before) / elapsed : 0;
    if (rate >= 0.1)
        grvi_text_printf(out, "%.3g %s/s", rate, p->unit);
    else if (rate > 0)
        grvi_text_printf(out, "%.3g s each", 1 / rate);
}

/* "45/96 flows, 3.2 flows/s, 16 s left", or "the text, 16 s left" */
static void append_numbers(grvi_text *out, const grv_progress *p, double elapsed)
{
    const int64_t n = p->done - p->before;
    if (p->text[0] != '\0') grvi_text_append(out, p->text);
    else grvi_text_printf(out, "%lld/%lld %s", (long long)p->done, (long long)p->total, p->unit);
    if (n <= 0) return;
    if (p->text[0] == '\0') {
        grvi_text_append(out, ", ");
        append_rate(out, p, elapsed);
    }
    if (p->done < p->total) {
        grvi_text_append(out, ", ");
        append_duration(out, elapsed * (double)(p->total - p->done) / (double)n);
        grvi_text_append(out, " left");
    }
}

static void draw_bar(grv_log *log, double now)
{
    enum { MAX_BAR = 40, MIN_BAR = 5 };
    const grv_progress *const p = log->active;
    grvi_text numbers = {0}, line = {0};
    append_numbers(&numbers, p, now - p->start_s);
    const int columns = terminal_columns(log->params.stream);
    const int64_t room = columns - 6 - (int64_t)strlen(p->label) - numbers.n;
    const int width = (int)grvi_min_i64(room, MAX_BAR);
    grvi_text_append(&line, p->label);
    if (width >= MIN_BAR) {
        const double share =
            p->total > 0 ? (double)grvi_min_i64(p->done, p->total) / (double)p->total : 1;
        grvi_text_append(&line, " [");
        for (int i = 0; i < width; i++)
            grvi_text_append(&line, i < (int)(share * width) ? "#" : ".");
        grvi_text_append(&line, "]");
    }
    grvi_text_printf(&line, " %s", grvi_text_get(&numbers));
    /* never wider than the terminal: a wrapped line could not be removed again */
    (void)fprintf(log->params.stream, "\r\033[K%.*s", columns - 1, grvi_text_get(&line));
    (void)fflush(log->params.stream);
    log->bar_is_shown = true;
    grvi_text_fini(&line);
    grvi_text_fini(&numbers);
}

static void remove_bar(grv_log *log)
{
    if (log->bar_is_shown) (void)fputs("\r\033[K", log->params.stream);
    log->bar_is_shown = false;
}

static void print_line(grv_log *log, const char *line)
{
    const bool had_bar = log->bar_is_shown;
    remove_bar(log);
    (void)fprintf(log->params.stream, "%s\n", line);
    (void)fflush(log->params.stream);
    if (had_bar && log->active != NULL) draw_bar(log, grv_clock_seconds());
}

void grv_progress_begin(grv_progress *progress, grv_log *log, const char *label, const char *unit,
                        int64_t total)
{
    const double now = grv_clock_seconds();
    *progress = (grv_progress){
        .log = log, .label = label, .unit = unit, .total = total, .start_s = now, .shown_s = now};
    if (!grv_log_passes(log, GRV_LOG_INFO)) return;
    (void)pthread_mutex_lock(&log->lock);
    progress->outer = log->active;
    log->active = progress;
    if (log->params.is_terminal) draw_bar(log, now);
    (void)pthread_mutex_unlock(&log->lock);
}

void grv_progress_skip(grv_progress *progress, int64_t done)
{
    progress->done = progress->before = done;
}

void grv_progress_describe(grv_progress *progress, const char *text)
{
    grv_log *const log = progress->log;
    if (!grv_log_passes(log, GRV_LOG_INFO)) return;
    (void)pthread_mutex_lock(&log->lock); /* a message of another thread draws the bar again */
    (void)snprintf(progress->text, sizeof progress->text, "%s", text);
    (void)pthread_mutex_unlock(&log->lock);
}

static void show_numbers(grv_log *log, const grv_progress *p, double now)
{
    grvi_text line = {0};
    grvi_text_printf(&line, "%s: ", p->label);
    append_numbers(&line, p, now - p->start_s);
    print_line(log, grvi_text_get(&line));
    grvi_text_fini(&line);
}

void grv_progress_update(grv_progress *progress, int64_t done)
{
    grv_log *const log = progress->log;
    progress->done = done;
    if (!grv_log_passes(log, GRV_LOG_INFO)) return;
    const double now = grv_clock_seconds();
    const grv_log_params *const params = &log->params;
    if (now - progress->shown_s <
        (params->is_terminal ? params->bar_interval_s : params->line_interval_s))
        return;
    (void)pthread_mutex_lock(&log->lock);
    progress->shown_s = now;
    if (params->is_terminal)
        draw_bar(log, now);
    else
        show_numbers(log, progress, now);
    (void)pthread_mutex_unlock(&log->lock);
}

void grv_progress_end(grv_progress *progress)
{
    grv_log *const log = progress->log;
    if (!grv_log_passes(log, GRV_LOG_INFO)) return;
    const double elapsed = grv_clock_seconds() - progress->start_s;
    grvi_text line = {0};
    grvi_text_printf(&line, "%s: %lld %s in ", progress->label,
                     (long long)(progress->done - progress->before), progress->unit);
    append_duration(&line, elapsed);
    if (progress->done > progress->before) {
        grvi_text_append(&line, " (");
        append_rate(&line, progress, elapsed);
        grvi_text_append(&line, ")");
    }
    (void)pthread_mutex_lock(&log->lock);
    remove_bar(log);
    log->active = progress->outer;
    log->bar_is_shown = false;
    print_line(log, grvi_text_get(&line));
    if (log->active != NULL && log->params.is_terminal) draw_bar(log, grv_clock_seconds());
    (void)pthread_mutex_unlock(&log->lock);
    grvi_text_fini(&line);
}

/* ---- messages and events ---- */

grv_status grv_log_open_file(grv_log *log, const char *path)
{
    if (log == NULL || log->params.rank != 0) return GRV_OK;
    bool is_unfinished = false;
    FILE *const file = fopen(path, "rb");
    if (file != NULL) {
        is_unfinished = fseek(file, -1, SEEK_END) == 0 && fgetc(file) != '\n';
        (void)fclose(file);
    }
    GRV_TRY(grvi_fs_append(path, "\n", is_unfinished ? 1 : 0));
    char *copy = NULL;
    GRV_TRY(grvi_strdup(path, &copy));
    (void)pthread_mutex_lock(&log->lock);
    grv_free(log->path);
    log->path = copy;
    (void)pthread_mutex_unlock(&log->lock);
    return GRV_OK;
}

static void append_time(grvi_json_writer *w)
{
    struct timespec now;
    struct tm utc;
    char text[64] = "";
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &utc) != NULL) {
        const size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
        (void)snprintf(text + n, sizeof text - n, ".%03ldZ", now.tv_nsec / 1000000);
    }
    grvi_json_key(w, "time");
    grvi_json_string(w, text);
}

static void write_json(grv_log *log, grv_log_level level, const char *event,
                       const grv_log_field *fields, int n)
{
    grvi_text line = {0};
    grvi_json_writer w = {.out = &line};
    grvi_json_begin_object(&w);
    append_time(&w);
    grvi_json_key(&w, "level");
    grvi_json_string(&w, level_names[level]);
    grvi_json_key(&w, "event");
    grvi_json_string(&w, event);
    for (int i = 0; i < n; i++) {
        grvi_json_key(&w, fields[i].key);
        switch (fields[i].kind) {
        case GRV_LOG_KIND_I64: grvi_json_i64(&w, fields[i].i64); break;
        case GRV_LOG_KIND_F64: grvi_json_double(&w, fields[i].f64); break;
        case GRV_LOG_KIND_TEXT: grvi_json_string(&w, fields[i].text); break;
        }
    }
    grvi_json_end_object(&w);
    grvi_text_append(&line, "\n");
    grv_status status = grvi_text_status(&line);
    if (status == GRV_OK) status = grvi_fs_append(log->path, line.data, line.n);
    grvi_text_fini(&line);
    if (status == GRV_OK) return;
    grv_free(log->path);
    log->path = NULL;
    grvi_text notice = {0};
    grvi_text_printf(&notice, "%s: warning: the log file is given up: %s", log->name,
                     grv_error_message());
    print_line(log, grvi_text_get(&notice));
    grvi_text_fini(&notice);
}

/* Errors and warnings carry the program's name, and the rank where there are several. */
static void append_prefix(grvi_text *out, const grv_log *log, grv_log_level level)
{
    if (level <= GRV_LOG_WARN) grvi_text_printf(out, "%s: ", log->name);
    if (log->params.rank != 0) grvi_text_printf(out, "rank %d: ", log->params.rank);
    if (level == GRV_LOG_WARN) grvi_text_append(out, "warning: ");
}

static void emit(grv_log *log, grv_log_level level, const char *line, const char *event,
                 const grv_log_field *fields, int n)
{
    (void)pthread_mutex_lock(&log->lock);
    print_line(log, line);
    if (log->path != NULL) write_json(log, level, event, fields, n);
    (void)pthread_mutex_unlock(&log->lock);
}

void grv_log_message(grv_log *log, grv_log_level level, const char *format, ...)
{
    if (!grv_log_passes(log, level)) return;
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *p = text; *p != '\0'; p++)
        if (*p == '\n' || *p == '\r') *p = ' '; /* one message is one line */
    grvi_text line = {0};
    append_prefix(&line, log, level);
    grvi_text_append(&line, text);
    emit(log, level, grvi_text_get(&line), "message", (grv_log_field[]){grv_log_text("text", text)},
         1);
    grvi_text_fini(&line);
}

void grv_log_event(grv_log *log, grv_log_level level, const char *event,
                   const grv_log_field *fields, int n)
{
    if (!grv_log_passes(log, level)) return;
    grvi_text line = {0};
    append_prefix(&line, log, level);
    grvi_text_printf(&line, "%s:", event);
    for (int i = 0; i < n; i++) {
        grvi_text_printf(&line, "%s %s = ", i > 0 ? "," : "", fields[i].key);
        switch (fields[i].kind) {
        case GRV_LOG_KIND_I64: grvi_text_printf(&line, "%lld", (long long)fields[i].i64); break;
        case GRV_LOG_KIND_F64: grvi_text_printf(&line, "%.6g", fields[i].f64); break;
        case GRV_LOG_KIND_TEXT: grvi_text_append(&line, fields[i].text); break;
        }
    }
    emit(log, level, grvi_text_get(&line), event, fields, n);
    grvi_text_fini(&line);
}
