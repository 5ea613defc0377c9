/* Tables of arguments (CSV, RFC 4180) for `grove batch run`. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/batch_cli.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

/* Cuts the next field out of *at, in place, unquoted; *ends_row: a newline or the end of the text comes after it. */
static char *next_field(char **at, bool *ends_row, bool *is_broken)
{
    char *begin = *at, *out = *at, *p = *at;
    if (*p == '"') {
        for (p++; *p != '\0'; p++) {
            if (*p == '"' && p[1] != '"') break;
            if (*p == '"') p++;
            *out++ = *p;
        }
        *is_broken = *is_broken || *p != '"';
        if (*p == '"') p++;
    } else {
        while (*p != ',' && *p != '\n' && *p != '\0') p++;
        out = p;
        if (out > begin && *p != ',' && out[-1] == '\r') out--;
    }
    if (*p == '\r') p++;
    *is_broken = *is_broken || (*p != ',' && *p != '\n' && *p != '\0');
    *ends_row = *p != ',';
    *at = *p != '\0' ? p + 1 : p;
    *out = '\0';
    return begin;
}

static grv_batch_value value_of(const char *field, bool are_numbers)
{
    char *end = NULL;
    if (strncmp(field, "file:", 5) == 0) return grv_batch_file(field + 5);
    if (!are_numbers || field[0] == '\0' || strspn(field, "+-.0123456789eEinfatyNINFATY") != strlen(field)) return grv_batch_string(field);
    errno = 0;
    const long long whole = strtoll(field, &end, 10);
    if (*end == '\0' && errno == 0) return grv_batch_i64(whole);
    errno = 0;
    const double real = strtod(field, &end);
    const bool is_too_large = isinf(real) && errno == ERANGE;
    return *end == '\0' && !is_too_large ? grv_batch_f64(real) : grv_batch_string(field);
}

static char *skip_blank_lines(char *at)
{
    while (*at == '\n' || (at[0] == '\r' && (at[1] == '\n' || at[1] == '\0'))) at++;
    return at;
}

static grv_status read_rows(const char *path, char *at, int64_t most, bool are_numbers, grvc_batch_table *t)
{
    int64_t row = -1; /* -1: the names */
    for (at = skip_blank_lines(at); *at != '\0'; at = skip_blank_lines(at)) {
        bool ends_row = false, is_broken = false;
        int column = 0;
        for (; !ends_row; column++) {
            char *const field = next_field(&at, &ends_row, &is_broken);
            if (row < 0) {
                GRV_TRY(GRVI_REALLOC(&t->names, column + 1));
                t->names[column] = field;
                t->n_columns = column + 1;
            } else if (column < t->n_columns) {
                t->columns[column * most + row] = value_of(field, are_numbers);
            }
        }
        GRV_CHECK(!is_broken, GRV_E_FORMAT, "%s, row %lld: a quote is not closed, or text follows one", path, (long long)row + 2);
        GRV_CHECK(row < 0 || column == t->n_columns, GRV_E_FORMAT, "%s, row %lld: %d fields expected, as the first row has, %d found", path,
                  (long long)row + 2, t->n_columns, column);
        GRV_CHECK(t->n_columns <= GRV_BATCH_MAX_VALUES, GRV_E_FORMAT, "%s: at most %d columns expected, %d found", path, GRV_BATCH_MAX_VALUES,
                  t->n_columns);
        if (row < 0) GRV_TRY(GRVI_CALLOC(&t->columns, most * t->n_columns));
        row++;
    }
    t->n_rows = grvi_max_i64(row, 0);
    GRV_CHECK(t->n_columns > 0, GRV_E_FORMAT, "%s: a first row with the names of the columns expected", path);
    GRV_CHECK(t->n_rows > 0, GRV_E_FORMAT, "%s: rows below the one with the names of the columns expected, none found", path);
    return GRV_OK;
}

grv_status grvc_batch_table_read(const char *path, bool are_numbers, grvc_batch_table *t)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    int64_t n = 0, most = 1;
    *t = (grvc_batch_table){0};
    GRV_TRY(grvi_fs_read(path, (int64_t)1 << 32, &t->text, &n));
    GRV_CHECK((int64_t)strlen(t->text) == n, GRV_E_FORMAT, "%s: a text file expected, a zero byte found", path);
    for (const char *p = t->text; *p != '\0'; p++) most += *p == '\n';
    const bool has_mark = strncmp(t->text, byte_order_mark, 3) == 0;
    GRV_TRY(read_rows(path, t->text + (has_mark ? 3 : 0), most, are_numbers, t));
    for (int c = 1; c < t->n_columns; c++) /* dense by the rows that there are */
        memmove(t->columns + c * t->n_rows, t->columns + c * most, sizeof *t->columns * (size_t)t->n_rows);
    return GRV_OK;
}

void grvc_batch_table_fini(grvc_batch_table *t)
{
    grv_free(t->columns);
    grv_free(t->names);
    grv_free(t->text);
    *t = (grvc_batch_table){0};
}
