/* metrics.csv: one row per epoch, safe against interruption and repetition.
 * The usual row is one append. Only where rows have to go, those a resumed run repeats or a broken last line, is the file
 * written anew, aside and renamed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "grove/core.h"
#include "grove/report.h"

static const int64_t max_file_bytes = (int64_t)1 << 28;

static void append_value(grvi_text *line, double value)
{
    if (isnan(value))
        grvi_text_append(line, "nan");
    else if (isinf(value))
        grvi_text_append(line, value > 0 ? "inf" : "-inf");
    else if (fabs(value) < 0x1p53 && !(floor(value) < value))
        grvi_text_printf(line, "%.0f", value);
    else
        grvi_text_append_double(line, value);
}

/* Copies to `kept` the complete lines that stay; *is_changed tells whether anything was left out. */
static void keep_rows(const char *text, int64_t n, double before, grvi_text *kept, bool *is_changed)
{
    *is_changed = false;
    for (int64_t start = 0; start < n;) {
        const char *const end = memchr(text + start, '\n', (size_t)(n - start));
        const bool is_header = start == 0;
        const bool stays = end != NULL && (is_header || strtod(text + start, NULL) < before);
        if (stays)
            grvi_text_append_n(kept, text + start, end + 1 - (text + start));
        else
            *is_changed = true;
        if (end == NULL) return;
        start = end + 1 - text;
    }
}

static grv_status add_row(const char *path, const char *old, int64_t n_old, const grvi_text *header,
                          const grvi_text *row, double first)
{
    if (n_old > 0) {
        const char *const newline = memchr(old, '\n', (size_t)n_old);
        const int64_t n_header = newline != NULL ? newline + 1 - old : n_old;
        const bool is_broken_header = newline == NULL; /* interrupted in its very first line */
        GRV_CHECK(is_broken_header ||
                      (n_header == header->n && memcmp(old, header->data, (size_t)n_header) == 0),
                  GRV_E_FORMAT, "%s: header '%.*s' expected, '%.*s' found", path,
                  (int)header->n - 1, header->data, (int)n_header - 1, old);
        if (is_broken_header) n_old = 0;
    }
    grvi_text kept = {0};
    bool is_changed = true;
    if (n_old > 0)
        keep_rows(old, n_old, first, &kept, &is_changed);
    else
        grvi_text_append_n(&kept, header->data, header->n);
    grvi_text_append_n(&kept, row->data, row->n);
    grv_status status = grvi_text_status(&kept);
    if (status == GRV_OK)
        status = is_changed ? grvi_fs_write_atomic(path, kept.data, kept.n, false)
                            : grvi_fs_append(path, row->data, row->n);
    grvi_text_fini(&kept);
    return status;
}

grv_status grv_metrics_append(const char *path, int n, const char *const *names,
                              const double *values)
{
    grv_status status = GRV_OK;
    grvi_text header = {0}, row = {0};
    char *old = NULL;
    int64_t n_old = 0;
    GRV_CHECK(n >= 1, GRV_E_ARG, "at least one column expected, %d found", n);
    for (int i = 0; i < n; i++) {
        GRV_CHECK_GOTO(names[i][0] != '\0' && strpbrk(names[i], ",\"\r\n") == NULL, GRV_E_ARG,
                       "column name without comma, quote and newline expected, '%s' found",
                       names[i]);
        grvi_text_printf(&header, "%s%s", i > 0 ? "," : "", names[i]);
        if (i > 0) grvi_text_append(&row, ",");
        append_value(&row, values[i]);
    }
    grvi_text_append(&header, "\n");
    grvi_text_append(&row, "\n");
    GRV_TRY_GOTO(grvi_text_status(&header));
    GRV_TRY_GOTO(grvi_text_status(&row));
    if (grvi_fs_exists(path)) GRV_TRY_GOTO(grvi_fs_read(path, max_file_bytes, &old, &n_old));
    GRV_TRY_GOTO(add_row(path, old, n_old, &header, &row, values[0]));
done:
    grv_free(old);
    grvi_text_fini(&header);
    grvi_text_fini(&row);
    return status;
}
