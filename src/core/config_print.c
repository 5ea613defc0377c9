/* Writing parameters: YAML, JSON, and the table of --help. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/config_impl.h"
#include "core/json.h"
#include "grove/core.h"

static grv_status take_text(grvi_text *text, char **out)
{
    *out = NULL;
    grvi_text_append(text, ""); /* so that nothing written is an empty string, not NULL */
    const grv_status status = grvi_text_status(text);
    if (status == GRV_OK)
        *out = text->data;
    else
        grvi_text_fini(text);
    return status;
}

static const char *part_at(const char *key, int i)
{
    for (; i > 0; i--) key = strchr(key, '.') + 1;
    return key;
}

static int n_groups(const char *key)
{
    int n = 0;
    for (; *key != '\0'; key++) n += *key == '.';
    return n;
}

/* How many groups b shares with the key before it. */
static int n_shared_groups(const char *a, const char *b)
{
    int n = 0;
    for (int i = 0; a[i] != '\0' && a[i] == b[i]; i++) n += a[i] == '.';
    return n;
}

/* ---- YAML ---- */

/* Words that need no quotes and read as text: a letter or a slash first, no YAML word among them. */
static bool is_plain_word(const char *text)
{
    static const char *const reserved[] = {"true", "false", "yes", "no",  "on", "off",
                                           "null", "y",     "n",   "inf", "nan"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char others[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
    if (text[0] == '\0' || (strchr(letters, text[0]) == NULL && text[0] != '/')) return false;
    if (text[strspn(text, others)] != '\0') return false;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcasecmp(text, reserved[i]) == 0) return false;
    return true;
}

/* Code point of valid UTF-8; *n is its length. */
static uint32_t decode(const char *text, int *n)
{
    const unsigned char *const p = (const unsigned char *)text;
    *n = p[0] < 0x80 ? 1 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    uint32_t code = *n == 1 ? p[0] : p[0] & (0xFFU >> (*n + 1));
    for (int i = 1; i < *n; i++) code = code << 6 | (p[i] & 0x3FU);
    return code;
}

static void append_quoted(grvi_text *out, const char *text)
{
    grvi_text_append(out, "\"");
    int n = 0;
    for (const char *p = text; *p != '\0'; p += n) {
        const uint32_t code = decode(p, &n);
        const bool is_break =
            code == 0x2028 || code == 0x2029 || code == 0xFEFF || code == 0xFFFE || code == 0xFFFF;
        if (code == '"' || code == '\\')
            grvi_text_printf(out, "\\%c", (char)code);
        else if (code < 0x20 || (code >= 0x7F && code < 0xA0) || is_break)
            grvi_text_printf(out, "\\u%04x", (unsigned)code);
        else
            grvi_text_append_n(out, p, n);
    }
    grvi_text_append(out, "\"");
}

static void append_yaml_item(grvi_text *out, const grv_option *option, const void *item)
{
    switch (grvi_option_item_type(option)) {
    case GRV_OPTION_BOOL: grvi_text_append(out, *(const bool *)item ? "true" : "false"); break;
    case GRV_OPTION_INT: grvi_text_printf(out, "%d", *(const int *)item); break;
    case GRV_OPTION_I64: grvi_text_printf(out, "%lld", (long long)*(const int64_t *)item); break;
    case GRV_OPTION_CHOICE: grvi_text_append(out, option->choices[*(const int *)item]); break;
    case GRV_OPTION_F64:
        if (isfinite(*(const double *)item))
            grvi_text_append_double(out, *(const double *)item);
        else
            grvi_text_append(out, *(const double *)item > 0 ? ".inf" : "-.inf");
        break;
    default: {
        const char *const text = *(char *const *)item;
        if (is_plain_word(text))
            grvi_text_append(out, text);
        else
            append_quoted(out, text);
    }
    }
}

static bool is_missing(const grv_option *option, const void *params)
{
    return option->type == GRV_OPTION_STRING &&
           *(char *const *)grvi_option_item(option, params, 0) == NULL;
}

static void append_yaml_line(grvi_text *out, const grv_option *option, const void *params)
{
    enum { COMMENT_COLUMN = 36 };
    const int depth = n_groups(option->key);
    const int64_t start = out->n;
    grvi_text_printf(out, "%*s%s: ", 2 * depth, "", part_at(option->key, depth));
    const int n = grvi_option_n_items(option, params);
    if (grvi_option_is_list(option)) grvi_text_append(out, "[");
    for (int i = 0; i < n; i++) {
        if (i > 0) grvi_text_append(out, ", ");
        append_yaml_item(out, option, grvi_option_item(option, params, i));
    }
    if (grvi_option_is_list(option)) grvi_text_append(out, "]");
    if (option->help != NULL || option->unit != NULL) {
        const int blanks = COMMENT_COLUMN - (int)(out->n - start);
        grvi_text_printf(out, "%*s# %s", blanks > 2 ? blanks : 2, "",
                         option->help != NULL ? option->help : "");
        if (option->unit != NULL) grvi_text_printf(out, " [%s]", option->unit);
    }
    grvi_text_append(out, "\n");
}

grv_status grv_config_to_yaml(const grv_option_table *table, const void *params, char **text)
{
    grvi_text out = {0};
    const char *before = "";
    for (int i = 0; i < table->n; i++) {
        const grv_option *const option = &table->options[i];
        if (is_missing(option, params)) continue;
        for (int g = n_shared_groups(before, option->key); g < n_groups(option->key); g++) {
            const char *const part = part_at(option->key, g);
            grvi_text_printf(&out, "%*s%.*s:\n", 2 * g, "", (int)strcspn(part, "."), part);
        }
        append_yaml_line(&out, option, params);
        before = option->key;
    }
    return take_text(&out, text);
}

/* ---- JSON ---- */

static void append_json_item(grvi_json_writer *w, const grv_option *option, const void *item)
{
    switch (grvi_option_item_type(option)) {
    case GRV_OPTION_BOOL: grvi_json_bool(w, *(const bool *)item); break;
    case GRV_OPTION_INT: grvi_json_i64(w, *(const int *)item); break;
    case GRV_OPTION_I64: grvi_json_i64(w, *(const int64_t *)item); break;
    case GRV_OPTION_F64: grvi_json_double(w, *(const double *)item); break;
    case GRV_OPTION_CHOICE: grvi_json_string(w, option->choices[*(const int *)item]); break;
    default:
        if (*(char *const *)item == NULL)
            grvi_json_null(w);
        else
            grvi_json_string(w, *(char *const *)item);
    }
}

grv_status grv_config_to_json(const grv_option_table *table, const void *params, char **text)
{
    grvi_text out = {0};
    grvi_json_writer w = {.out = &out, .pretty = true};
    const char *before = "";
    grvi_json_begin_object(&w);
    for (int i = 0; i < table->n; i++) {
        const grv_option *const option = &table->options[i];
        const int shared = n_shared_groups(before, option->key), depth = n_groups(option->key);
        for (int g = n_groups(before); g > shared; g--) grvi_json_end_object(&w);
        for (int g = shared; g < depth; g++) {
            char group[64];
            const char *const part = part_at(option->key, g);
            (void)snprintf(group, sizeof group, "%.*s", (int)strcspn(part, "."), part);
            grvi_json_key(&w, group);
            grvi_json_begin_object(&w);
        }
        grvi_json_key(&w, part_at(option->key, depth));
        if (grvi_option_is_list(option)) grvi_json_begin_array(&w);
        for (int k = 0; k < grvi_option_n_items(option, params); k++)
            append_json_item(&w, option, grvi_option_item(option, params, k));
        if (grvi_option_is_list(option)) grvi_json_end_array(&w);
        before = option->key;
    }
    for (int g = n_groups(before); g > 0; g--) grvi_json_end_object(&w);
    grvi_json_end_object(&w);
    grvi_text_append(&out, "\n");
    return take_text(&out, text);
}

/* ---- help ---- */

enum { KEY, TYPE, DEFAULT, RANGE, UNIT, HELP, N_COLUMNS, HELP_WIDTH = 100, MIN_HELP_COLUMN = 24 };

static const char *type_name(grv_option_type type)
{
    switch (type) {
    case GRV_OPTION_BOOL: return "bool";
    case GRV_OPTION_INT:
    case GRV_OPTION_I64: return "integer";
    case GRV_OPTION_F64: return "number";
    case GRV_OPTION_STRING: return "text";
    case GRV_OPTION_CHOICE: return "word";
    case GRV_OPTION_I64_LIST: return "integers";
    case GRV_OPTION_F64_LIST: return "numbers";
    case GRV_OPTION_STRING_LIST: return "texts";
    }
    return "";
}

static void set_cell(grvi_text *out, const grv_option *option, int column)
{
    out->n = 0;
    grvi_text_append(out, ""); /* ends the old text, also where nothing follows */
    switch (column) {
    case KEY: grvi_text_append(out, option->key); break;
    case TYPE: grvi_text_append(out, type_name(option->type)); break;
    case DEFAULT:
        grvi_text_append(out, option->fallback == NULL      ? "required"
                              : option->fallback[0] != '\0' ? option->fallback
                                                            : "\"\"");
        break;
    case RANGE:
        for (int i = 0; option->choices != NULL && option->choices[i] != NULL; i++)
            grvi_text_printf(out, "%s%s", i > 0 ? ", " : "", option->choices[i]);
        if (option->min < option->max) grvi_option_append_range(option, out);
        break;
    case UNIT: grvi_text_append(out, option->unit != NULL ? option->unit : ""); break;
    default: grvi_text_append(out, option->help != NULL ? option->help : ""); break;
    }
}

/* Length of the first line of text when wrapped at blanks to width; a longer word stands alone. */
static int wrapped_length(const char *text, int width)
{
    int best = 0;
    for (int i = 0;; i++) {
        if (text[i] != ' ' && text[i] != '\0') continue;
        if (i <= width || best == 0) best = i;
        if (text[i] == '\0' || i > width) return best;
    }
}

/* Narrowest width of a column up to `cap`: what its texts need, wrapped if they are longer than the cap. */
static int column_width(const grv_option_table *table, int column, int cap, grvi_text *cell)
{
    int width = 0;
    for (int i = 0; i < table->n; i++) {
        set_cell(cell, &table->options[i], column);
        for (const char *rest = grvi_text_get(cell); *rest != '\0';) {
            const int n = wrapped_length(rest, cap);
            if (n > width) width = n;
            rest += n;
            rest += strspn(rest, " ");
        }
    }
    return width;
}

/* One option: as many lines as its longest cell needs. */
static void append_row(grvi_text *out, const char *cells[N_COLUMNS], const int width[N_COLUMNS])
{
    bool more = true;
    while (more) {
        more = false;
        int n_pending = 2; /* blanks owed; none are written at the end of a line */
        for (int c = 0; c < N_COLUMNS; c++) {
            if (width[c] == 0) continue;
            const int n = wrapped_length(cells[c], width[c]);
            if (n > 0) grvi_text_printf(out, "%*s%.*s", n_pending, "", n, cells[c]);
            n_pending = (n > 0 ? 0 : n_pending) + width[c] - n + 2;
            cells[c] += n;
            cells[c] += strspn(cells[c], " ");
            more = more || *cells[c] != '\0';
        }
        grvi_text_append(out, "\n");
    }
}

grv_status grv_config_help(const grv_option_table *table, char **text)
{
    static const int cap[HELP] = {40, 8, 16, 16, 10};
    static const char *const titles[N_COLUMNS] = {"key",   "type", "default",
                                                  "range", "unit", "meaning"};
    grvi_text out = {0}, cell[N_COLUMNS] = {{0}};
    int width[N_COLUMNS] = {0}, used = 2;
    for (int c = 0; c < HELP; c++) {
        width[c] = column_width(table, c, cap[c], &cell[c]);
        const int n_title = (int)strlen(titles[c]);
        if (width[c] > 0 && width[c] < n_title) width[c] = n_title;
        used += width[c] > 0 ? width[c] + 2 : 0;
    }
    width[HELP] = HELP_WIDTH - used > MIN_HELP_COLUMN ? HELP_WIDTH - used : MIN_HELP_COLUMN;
    for (int i = -1; i < table->n; i++) { /* -1: the titles */
        const char *cells[N_COLUMNS];
        for (int c = 0; c < N_COLUMNS; c++) {
            if (i >= 0) set_cell(&cell[c], &table->options[i], c);
            cells[c] = i >= 0 ? grvi_text_get(&cell[c]) : titles[c];
        }
        append_row(&out, cells, width);
    }
    for (int c = 0; c < N_COLUMNS; c++) {
        if (cell[c].failed) out.failed = true;
        grvi_text_fini(&cell[c]);
    }
    return take_text(&out, text);
}
