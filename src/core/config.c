/* Values of options: text to field, with type and range checked.
 * Every source (default, file, command line) comes through begin / append / end, so that all of them follow the same rules.
 * A table has tens of keys: searches are linear. Numbers are read in the C locale, which grove never changes. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/config_impl.h"
#include "core/nearest.h"
#include "grove/core.h"

grv_option_type grvi_option_item_type(const grv_option *option)
{
    switch (option->type) {
    case GRV_OPTION_I64_LIST: return GRV_OPTION_I64;
    case GRV_OPTION_F64_LIST: return GRV_OPTION_F64;
    case GRV_OPTION_STRING_LIST: return GRV_OPTION_STRING;
    default: return option->type;
    }
}

bool grvi_option_is_list(const grv_option *option)
{
    return grvi_option_item_type(option) != option->type;
}

/* All three list types start with their count. */
static int *list_count(const grv_option *option, void *params)
{
    return (int *)((char *)params + option->offset);
}

static void *item_address(const grv_option *option, void *params, int i)
{
    char *const field = (char *)params + option->offset;
    switch (option->type) {
    case GRV_OPTION_I64_LIST: return &((grv_i64_list *)field)->at[i];
    case GRV_OPTION_F64_LIST: return &((grv_f64_list *)field)->at[i];
    case GRV_OPTION_STRING_LIST: return &((grv_string_list *)field)->at[i];
    default: return field;
    }
}

int grvi_option_n_items(const grv_option *option, const void *params)
{
    return grvi_option_is_list(option) ? *(const int *)((const char *)params + option->offset) : 1;
}

const void *grvi_option_item(const grv_option *option, const void *params, int i)
{
    return item_address(option, (void *)(uintptr_t)params, i);
}

static int most_items(const grv_option *option)
{
    return option->max_items > 0 ? option->max_items : GRV_LIST_MAX;
}

static bool is_limited(const grv_option *option)
{
    return option->min < option->max;
}

void grvi_option_append_range(const grv_option *option, grvi_text *out)
{
    const bool has_min = is_limited(option) && option->min > -HUGE_VAL;
    const bool has_max = is_limited(option) && option->max < HUGE_VAL;
    if (!has_min && !has_max)
        grvi_text_append(out, "any");
    else if (!has_min)
        grvi_text_printf(out, "at most %.15g", option->max);
    else if (!has_max)
        grvi_text_printf(out, "%s %.15g", option->above_min ? "above" : "at least", option->min);
    else if (option->above_min)
        grvi_text_printf(out, "above %.15g, at most %.15g", option->min, option->max);
    else
        grvi_text_printf(out, "%.15g to %.15g", option->min, option->max);
}

grv_status grvi_config_find(const grv_option_table *table, const char *key, const char *where,
                            int *index)
{
    grvi_nearest search = {.word = key};
    for (int i = 0; i < table->n; i++) {
        if (strcmp(key, table->options[i].key) == 0) {
            *index = i;
            return GRV_OK;
        }
        grvi_nearest_offer(&search, table->options[i].key);
    }
    const char *const nearest = grvi_nearest_get(&search);
    if (nearest == NULL)
        GRV_FAIL(GRV_E_CONFIG, "unknown key '%.80s' (%s); --help lists all keys", key, where);
    GRV_FAIL(GRV_E_CONFIG, "unknown key '%.80s' (%s); did you mean '%s'?", key, where, nearest);
}

/* "key" or "key[2]" for messages. */
typedef struct item_name {
    char text[96];
} item_name;

static item_name name_of(const grv_option *option, int i)
{
    item_name name;
    if (grvi_option_is_list(option))
        (void)snprintf(name.text, sizeof name.text, "%.80s[%d]", option->key, i);
    else
        (void)snprintf(name.text, sizeof name.text, "%.80s", option->key);
    return name;
}

static grv_status fail_range(const grv_option *option, int i, const char *text, const char *where)
{
    grvi_text range = {0};
    grvi_option_append_range(option, &range);
    const grv_status status = grvi_fail(
        GRV_E_CONFIG, __FILE__, __LINE__, __func__, "%s: %s%s%s expected, %.60s found (%s)",
        name_of(option, i).text, grvi_text_get(&range), option->unit != NULL ? " " : "",
        option->unit != NULL ? option->unit : "", text, where);
    grvi_text_fini(&range);
    return status;
}

static bool in_range(const grv_option *option, double value)
{
    if (!is_limited(option)) return true;
    return (option->above_min ? value > option->min : value >= option->min) && value <= option->max;
}

static bool read_bool(const char *text, bool *out)
{
    static const char *const words[2][3] = {{"false", "no", "off"}, {"true", "yes", "on"}};
    for (int value = 0; value < 2; value++) {
        for (int i = 0; i < 3; i++) {
            if (strcasecmp(text, words[value][i]) != 0) continue;
            *out = value != 0;
            return true;
        }
    }
    return false;
}

/* Decimal numbers and infinities only: strtod alone would take blanks in front, hexadecimal numbers and NaN. */
static bool read_f64(const char *text, double *out)
{
    const char *const magnitude = text + (text[0] == '-' || text[0] == '+');
    if (strcasecmp(magnitude, ".inf") == 0 || strcasecmp(magnitude, "inf") == 0) {
        *out = text[0] == '-' ? -HUGE_VAL : HUGE_VAL;
        return true;
    }
    if (text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0') return false;
    char *end = NULL;
    *out = strtod(text, &end);
    return *end == '\0' && end != text && isfinite(*out);
}

static bool read_i64(const char *text, int64_t *out)
{
    const char *const digits = text + (text[0] == '-' || text[0] == '+');
    if (isdigit((unsigned char)digits[0]) && digits[strspn(digits, "0123456789")] == '\0') {
        errno = 0;
        const long long value = strtoll(text, NULL, 10);
        *out = value;
        return errno == 0;
    }
    /* "1e6": whole numbers up to 2^53 are exact in a double */
    double value = 0;
    if (!read_f64(text, &value) || fabs(value) > 0x1p53 || floor(value) < value) return false;
    *out = (int64_t)value;
    return true;
}

/* UTF-8 without NUL: what a YAML or JSON reader will take back. */
static bool is_utf8(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        const int n = *p < 0x80                 ? 1
                      : *p >= 0xC2 && *p < 0xE0 ? 2
                      : *p >= 0xE0 && *p < 0xF0 ? 3
                      : *p >= 0xF0 && *p < 0xF5 ? 4
                                                : 0;
        if (n == 0) return false;
        for (int i = 1; i < n; i++)
            if ((p[i] & 0xC0) != 0x80) return false;
        const bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
        const bool surrogate = p[0] == 0xED && p[1] >= 0xA0,
                   too_large = p[0] == 0xF4 && p[1] >= 0x90;
        if (overlong || surrogate || too_large) return false;
        p += n;
    }
    return true;
}

static grv_status write_number(const grv_option *option, void *slot, int i, const char *text,
                               bool quoted, const char *where)
{
    const bool whole = grvi_option_item_type(option) != GRV_OPTION_F64;
    int64_t integer = 0;
    double value = 0;
    const bool is_number = !quoted && (whole ? read_i64(text, &integer) : read_f64(text, &value));
    GRV_CHECK(is_number, GRV_E_CONFIG, "%s: %s expected, '%.60s' found (%s)",
              name_of(option, i).text, whole ? "a whole number" : "a number", text, where);
    if (!in_range(option, whole ? (double)integer : value))
        return fail_range(option, i, text, where);
    if (!whole)
        *(double *)slot = value;
    else if (grvi_option_item_type(option) == GRV_OPTION_I64)
        *(int64_t *)slot = integer;
    else
        GRV_TRY(grvi_to_int(integer, (int *)slot));
    return GRV_OK;
}

static grv_status write_choice(const grv_option *option, int *slot, const char *text,
                               const char *where)
{
    grvi_text words = {0};
    for (int i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(text, option->choices[i]) == 0) {
            *slot = i;
            grvi_text_fini(&words);
            return GRV_OK;
        }
        grvi_text_printf(&words, "%s%s", i > 0 ? ", " : "", option->choices[i]);
    }
    const grv_status status = grvi_fail(GRV_E_CONFIG, __FILE__, __LINE__, __func__,
                                        "%s: one of %s expected, '%.60s' found (%s)", option->key,
                                        grvi_text_get(&words), text, where);
    grvi_text_fini(&words);
    return status;
}

static grv_status write_string(const grv_option *option, char **slot, int i, const char *text,
                               const char *where)
{
    GRV_CHECK(is_utf8(text), GRV_E_CONFIG, "%s: text in UTF-8 expected, other bytes found (%s)",
              name_of(option, i).text, where);
    char *copy = NULL;
    GRV_TRY(grvi_strdup(text, &copy));
    grv_free(*slot);
    *slot = copy;
    return GRV_OK;
}

grv_status grvi_config_begin(const grv_option *option, void *params, bool is_list,
                             const char *where)
{
    if (!grvi_option_is_list(option)) {
        GRV_CHECK(!is_list, GRV_E_CONFIG, "%s: one value expected, a list found (%s)", option->key,
                  where);
        return GRV_OK;
    }
    int *const n = list_count(option, params);
    for (int i = 0; i < *n; i++) {
        void *const slot = item_address(option, params, i);
        if (option->type == GRV_OPTION_STRING_LIST) {
            grv_free(*(char **)slot);
            *(char **)slot = NULL;
        } else {
            memset(slot, 0, sizeof(int64_t)); /* an int64_t or a double */
        }
    }
    *n = 0;
    return GRV_OK;
}

grv_status grvi_config_append(const grv_option *option, void *params, const char *text, bool quoted,
                              const char *where)
{
    const bool is_list = grvi_option_is_list(option);
    const int i = is_list ? *list_count(option, params) : 0;
    GRV_CHECK(i < (is_list ? most_items(option) : 1), GRV_E_CONFIG,
              "%s: at most %d items expected, more found (%s)", option->key, most_items(option),
              where);
    void *const slot = item_address(option, params, i);
    switch (grvi_option_item_type(option)) {
    case GRV_OPTION_BOOL:
        GRV_CHECK(!quoted && read_bool(text, slot), GRV_E_CONFIG,
                  "%s: true or false expected, '%.60s' found (%s)", option->key, text, where);
        break;
    case GRV_OPTION_STRING: GRV_TRY(write_string(option, slot, i, text, where)); break;
    case GRV_OPTION_CHOICE: GRV_TRY(write_choice(option, slot, text, where)); break;
    default: GRV_TRY(write_number(option, slot, i, text, quoted, where)); break;
    }
    if (is_list) *list_count(option, params) = i + 1;
    return GRV_OK;
}

grv_status grvi_config_end(const grv_option *option, const void *params, const char *where)
{
    const int n = grvi_option_n_items(option, params);
    if (!grvi_option_is_list(option)) return GRV_OK;
    GRV_CHECK(n >= option->min_items, GRV_E_CONFIG, "%s: %s %d item%s expected, %d found (%s)",
              option->key, option->min_items == most_items(option) ? "exactly" : "at least",
              option->min_items, option->min_items == 1 ? "" : "s", n, where);
    return GRV_OK;
}

/* A value in the notation of the command line, which is also that of defaults. */
static grv_status assign_text(const grv_option *option, void *params, const char *text,
                              const char *where)
{
    if (!grvi_option_is_list(option)) {
        GRV_TRY(grvi_config_begin(option, params, false, where));
        GRV_TRY(grvi_config_append(option, params, text, false, where));
        return grvi_config_end(option, params, where);
    }
    if (text[0] == '[') return grvi_config_parse_list(option, params, text, where);
    grvi_text list = {0};
    grvi_text_printf(&list, "[%s]", text);
    grv_status status = grvi_text_status(&list);
    if (status == GRV_OK)
        status = grvi_config_parse_list(option, params, grvi_text_get(&list), where);
    grvi_text_fini(&list);
    return status;
}

/* Length of what two keys share up to and including a dot. */
static size_t shared_group(const char *a, const char *b)
{
    size_t n = 0;
    for (size_t i = 0; a[i] != '\0' && a[i] == b[i]; i++)
        if (a[i] == '.') n = i + 1;
    return n;
}

/* Keys are unique, none is the group of another, and each group stands together, so that the YAML has it once. */
static grv_status check_key(const grv_option_table *table, int i)
{
    const char *const key = table->options[i].key;
    size_t shared = i > 0 ? shared_group(table->options[i - 1].key, key) : 0;
    for (int j = i - 1; j >= 0; j--) {
        const char *const other = table->options[j].key;
        const size_t n = strlen(other), n_key = strlen(key);
        GRV_CHECK(strcmp(other, key) != 0, GRV_E_ARG, "option table has key '%s' twice", key);
        GRV_CHECK(!(strncmp(other, key, n) == 0 && key[n] == '.') &&
                      !(strncmp(other, key, n_key) == 0 && other[n_key] == '.'),
                  GRV_E_ARG, "option table: '%s' and '%s' are a key and its own group", other, key);
        GRV_CHECK(shared_group(other, key) <= shared, GRV_E_ARG,
                  "option table: the group of '%s' does not stand together", key);
    }
    return GRV_OK;
}

grv_status grv_config_defaults(const grv_option_table *table, void *params)
{
    grv_config_fini(table, params);
    for (int i = 0; i < table->n; i++) {
        const grv_option *const option = &table->options[i];
        GRV_TRY(check_key(table, i));
        GRV_CHECK(option->fallback != NULL || option->type == GRV_OPTION_STRING, GRV_E_ARG,
                  "option table: '%s' has no default, which only strings may lack", option->key);
        GRV_CHECK((option->choices != NULL) == (option->type == GRV_OPTION_CHOICE) &&
                      most_items(option) <= GRV_LIST_MAX &&
                      (!option->pairs || option->type == GRV_OPTION_STRING_LIST),
                  GRV_E_ARG,
                  "option table: '%s' has choices, pairs or item counts that its type does not take",
                  option->key);
        if (option->fallback != NULL)
            GRV_TRY(assign_text(option, params, option->fallback, "default"));
    }
    return GRV_OK;
}

grv_status grv_config_set(const grv_option_table *table, void *params, const char *assignment)
{
    const char *const equals = strchr(assignment, '=');
    GRV_CHECK(equals != NULL && equals != assignment, GRV_E_CONFIG,
              "key=value expected, '%.80s' found (command line)", assignment);
    grvi_text key = {0};
    grvi_text_append_n(&key, assignment, equals - assignment);
    grv_status status = grvi_text_status(&key);
    int index = 0;
    if (status == GRV_OK)
        status = grvi_config_find(table, grvi_text_get(&key), "command line", &index);
    if (status == GRV_OK)
        status = assign_text(&table->options[index], params, equals + 1, "command line");
    grvi_text_fini(&key);
    return status;
}

grv_status grv_config_require(const grv_option_table *table, const void *params)
{
    for (int i = 0; i < table->n; i++) {
        const grv_option *const option = &table->options[i];
        if (option->type != GRV_OPTION_STRING || option->fallback != NULL) continue;
        GRV_CHECK(*(char *const *)grvi_option_item(option, params, 0) != NULL, GRV_E_CONFIG,
                  "%s: a value expected (%s), none given", option->key,
                  option->help != NULL ? option->help : "it has no default");
    }
    return GRV_OK;
}

void grv_config_fini(const grv_option_table *table, void *params)
{
    for (int i = 0; i < table->n; i++) {
        const grv_option *const option = &table->options[i];
        if (grvi_option_item_type(option) != GRV_OPTION_STRING) continue;
        for (int k = 0; k < (grvi_option_is_list(option) ? GRV_LIST_MAX : 1); k++) {
            char **const slot = item_address(option, params, k);
            grv_free(*slot);
            *slot = NULL;
        }
        if (grvi_option_is_list(option)) *list_count(option, params) = 0;
    }
}
