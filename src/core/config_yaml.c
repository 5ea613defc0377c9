/* Reading YAML over libyaml's events (the only file that includes it). No tree is built: each value is assigned as it is met.
 * What a configuration does not need is refused: anchors, aliases, tags, several documents, deep nesting, large files. */
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#include "core/alloc.h"
#include "core/config_impl.h"
#include "core/fs.h"
#include "grove/core.h"

enum { MAX_FILE_BYTES = 1 << 20, MAX_DEPTH = 8, WHERE_BYTES = 512 };

/* What has been met, per option: the line that set it, and a bit per depth for each group that starts with it. */
typedef struct seen_key {
    int64_t line;
    unsigned groups;
} seen_key;

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; owned, deleted by next */
    const grv_option_table *table;
    void *params;
    const char *name;        /* of the source */
    const char *fixed_where; /* used instead of name and line if not NULL */
    char where[WHERE_BYTES];
    grvi_text key;  /* dotted key of the current position */
    seen_key *seen; /* [table->n] */
} reader;

static int64_t line_of(const yaml_mark_t *mark)
{
    return (int64_t)mark->line + 1;
}

static const char *where_is(reader *r, const yaml_mark_t *mark)
{
    if (r->fixed_where != NULL) return r->fixed_where;
    (void)snprintf(r->where, sizeof r->where, "%.400s line %lld", r->name,
                   (long long)line_of(mark));
    return r->where;
}

static const char *here(reader *r)
{
    return where_is(r, &r->event.start_mark);
}

static grv_status next(reader *r)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event)) return GRV_OK;
    GRV_CHECK(r->parser.error != YAML_MEMORY_ERROR, GRV_E_NOMEM, "YAML parser for %s", r->name);
    const char *const problem = r->parser.problem != NULL ? r->parser.problem : "unreadable";
    GRV_CHECK(r->parser.error != YAML_READER_ERROR, GRV_E_FORMAT, "%s at byte %zu (%s)", problem,
              r->parser.problem_offset, r->name);
    GRV_FAIL(GRV_E_FORMAT, "%s (%s)", problem, where_is(r, &r->parser.problem_mark));
}

static grv_status check_plain(reader *r)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (r->event.type) {
    case YAML_ALIAS_EVENT:
        GRV_FAIL(GRV_E_CONFIG, "a value expected, alias '*%.60s' found (%s)",
                 (const char *)r->event.data.alias.anchor, here(r));
    case YAML_SCALAR_EVENT:
        anchor = r->event.data.scalar.anchor;
        tag = r->event.data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = r->event.data.sequence_start.anchor;
        tag = r->event.data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = r->event.data.mapping_start.anchor;
        tag = r->event.data.mapping_start.tag;
        break;
    default: break;
    }
    GRV_CHECK(anchor == NULL, GRV_E_CONFIG, "a value expected, anchor '&%.60s' found (%s)",
              (const char *)anchor, here(r));
    GRV_CHECK(tag == NULL, GRV_E_CONFIG, "a value expected, tag '%.60s' found (%s)",
              (const char *)tag, here(r));
    return GRV_OK;
}

/* The text of a scalar event, which may not hide bytes behind a NUL. */
static grv_status scalar_text(reader *r, const char **text)
{
    *text = (const char *)r->event.data.scalar.value;
    GRV_CHECK(strlen(*text) == r->event.data.scalar.length, GRV_E_CONFIG,
              "text expected, a NUL byte found (%s)", here(r));
    return GRV_OK;
}

static grv_status append_scalar(reader *r, const grv_option *option)
{
    const char *text = NULL;
    GRV_TRY(scalar_text(r, &text));
    const bool quoted = r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    const bool is_null =
        !quoted && (text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
    GRV_CHECK(!is_null, GRV_E_CONFIG, "%s: a value expected, nothing found (%s)", option->key,
              here(r));
    return grvi_config_append(option, r->params, text, quoted, here(r));
}

static grv_status append_pairs(reader *r, const grv_option *option)
{
    grvi_text item = {0};
    grv_status status = GRV_OK;
    for (;;) {
        const char *text = NULL;
        GRV_TRY_GOTO(next(r));
        if (r->event.type == YAML_MAPPING_END_EVENT) break;
        item.n = 0;
        for (int part = 0; part < 2; part++) {
            if (part == 1) GRV_TRY_GOTO(next(r));
            GRV_TRY_GOTO(check_plain(r));
            GRV_CHECK_GOTO(r->event.type == YAML_SCALAR_EVENT, GRV_E_CONFIG,
                           "%s: a mapping of single values expected, a list or mapping in it found (%s)",
                           option->key, here(r));
            GRV_TRY_GOTO(scalar_text(r, &text));
            grvi_text_printf(&item, "%s%s", part == 1 ? " " : "", text);
        }
        GRV_TRY_GOTO(grvi_text_status(&item));
        GRV_TRY_GOTO(grvi_config_append(option, r->params, item.data, true, here(r)));
    }
done:
    grvi_text_fini(&item);
    return status;
}

/* The current event is the start of the value. */
static grv_status read_value(reader *r, const grv_option *option)
{
    char start[WHERE_BYTES];
    (void)snprintf(start, sizeof start, "%s", here(r));
    GRV_TRY(check_plain(r));
    const bool is_list = r->event.type == YAML_SEQUENCE_START_EVENT;
    if (option->pairs && r->event.type == YAML_MAPPING_START_EVENT) {
        GRV_TRY(grvi_config_begin(option, r->params, true, start));
        GRV_TRY(append_pairs(r, option));
        return grvi_config_end(option, r->params, start);
    }
    GRV_CHECK(is_list || r->event.type == YAML_SCALAR_EVENT, GRV_E_CONFIG,
              "%s: %s expected, a mapping found (%s)", option->key,
              grvi_option_is_list(option) ? "a list" : "one value", start);
    GRV_TRY(grvi_config_begin(option, r->params, is_list, start));
    if (!is_list) {
        GRV_TRY(append_scalar(r, option));
    } else {
        for (;;) {
            GRV_TRY(next(r));
            if (r->event.type == YAML_SEQUENCE_END_EVENT) break;
            GRV_TRY(check_plain(r));
            GRV_CHECK(r->event.type == YAML_SCALAR_EVENT, GRV_E_CONFIG,
                      "%s: a list of single values expected, a list or mapping in it found; words that "
                      "begin with { or [ are put in quotes (%s)",
                      option->key, here(r));
            GRV_TRY(append_scalar(r, option));
        }
    }
    return grvi_config_end(option, r->params, start);
}

static grv_status mark_key(reader *r, int index)
{
    seen_key *const seen = &r->seen[index];
    GRV_CHECK(seen->line == 0, GRV_E_CONFIG,
              "key '%s' once expected, again found (%s; first line %lld)",
              r->table->options[index].key, here(r), (long long)seen->line);
    seen->line = line_of(&r->event.start_mark);
    return GRV_OK;
}

/* Whether the key that was read is a group, such as "optimizer" of "optimizer.lr"; then it may appear once. */
static grv_status enter_group(reader *r, bool *is_group)
{
    const char *const key = grvi_text_get(&r->key);
    const size_t n = strlen(key);
    unsigned depth = 0;
    for (size_t i = 0; i < n; i++) depth += key[i] == '.';
    *is_group = false;
    for (int i = 0; i < r->table->n; i++) {
        if (strncmp(r->table->options[i].key, key, n) != 0 || r->table->options[i].key[n] != '.')
            continue;
        GRV_CHECK(!(r->seen[i].groups >> depth & 1U), GRV_E_CONFIG,
                  "key '%s' once expected, again found (%s)", key, here(r));
        r->seen[i].groups |= 1U << depth;
        *is_group = true;
        return GRV_OK;
    }
    return GRV_OK;
}

static grv_status read_mapping(reader *r, int depth);

/* The current event is a key; on return it is the end of its value. */
static grv_status read_pair(reader *r, int depth)
{
    GRV_TRY(check_plain(r));
    GRV_CHECK(r->event.type == YAML_SCALAR_EVENT, GRV_E_CONFIG,
              "a key expected, a list or mapping found (%s)", here(r));
    const char *word = NULL;
    GRV_TRY(scalar_text(r, &word));
    const int64_t n_prefix = r->key.n;
    grvi_text_printf(&r->key, "%s%s", n_prefix > 0 ? "." : "", word);
    GRV_TRY(grvi_text_status(&r->key));
    const char *const key = grvi_text_get(&r->key);

    bool is_group = false;
    GRV_TRY(enter_group(r, &is_group));
    if (is_group) {
        GRV_TRY(next(r));
        GRV_TRY(check_plain(r));
        GRV_CHECK(r->event.type == YAML_MAPPING_START_EVENT, GRV_E_CONFIG,
                  "%s: a mapping of keys expected, a value found (%s)", key, here(r));
        GRV_TRY(read_mapping(r, depth + 1));
    } else {
        int index = 0;
        GRV_TRY(grvi_config_find(r->table, key, here(r), &index));
        GRV_TRY(mark_key(r, index));
        GRV_TRY(next(r));
        GRV_TRY(read_value(r, &r->table->options[index]));
    }
    r->key.n = n_prefix;
    r->key.data[n_prefix] = '\0';
    return GRV_OK;
}

/* The current event is the start of the mapping; on return its end. */
static grv_status read_mapping(reader *r, int depth)
{
    GRV_CHECK(depth < MAX_DEPTH, GRV_E_CONFIG, "at most %d levels expected, more found (%s)",
              MAX_DEPTH, here(r));
    for (;;) {
        GRV_TRY(next(r));
        if (r->event.type == YAML_MAPPING_END_EVENT) return GRV_OK;
        GRV_TRY(read_pair(r, depth));
    }
}

/* The current event is the start of the stream. */
static grv_status read_document(reader *r)
{
    GRV_TRY(next(r));
    if (r->event.type == YAML_STREAM_END_EVENT) return GRV_OK; /* empty: all defaults */
    GRV_TRY(next(r));
    GRV_TRY(check_plain(r));
    const bool is_empty = r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.length == 0;
    if (!is_empty) {
        GRV_CHECK(r->event.type == YAML_MAPPING_START_EVENT, GRV_E_CONFIG,
                  "a mapping \"key: value\" expected, something else found (%s)", here(r));
        GRV_TRY(read_mapping(r, 0));
    }
    GRV_TRY(next(r));
    GRV_TRY(next(r));
    GRV_CHECK(r->event.type == YAML_STREAM_END_EVENT, GRV_E_CONFIG,
              "one document expected, a second found (%s)", here(r));
    return GRV_OK;
}

/* The current event is the start of the stream; reads "value", the whole document. */
static grv_status read_lone_value(reader *r, const grv_option *option)
{
    GRV_TRY(next(r));
    GRV_TRY(next(r));
    GRV_TRY(read_value(r, option));
    GRV_TRY(next(r));
    GRV_TRY(next(r));
    GRV_CHECK(r->event.type == YAML_STREAM_END_EVENT, GRV_E_CONFIG,
              "%s: one list expected, more found (%s)", option->key, here(r));
    return GRV_OK;
}

static grv_status reader_init(reader *r, const char *text, int64_t n_bytes)
{
    memset(&r->event, 0, sizeof r->event);
    GRV_CHECK(yaml_parser_initialize(&r->parser), GRV_E_NOMEM, "YAML parser for %s", r->name);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, (size_t)n_bytes);
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    return GRV_OK;
}

static void reader_fini(reader *r)
{
    yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
    grvi_text_fini(&r->key);
    grv_free(r->seen);
}

grv_status grvi_config_parse_list(const grv_option *option, void *params, const char *text,
                                  const char *where)
{
    reader r = {.params = params, .name = option->key, .fixed_where = where};
    GRV_TRY(reader_init(&r, text, (int64_t)strlen(text)));
    grv_status status = next(&r);
    if (status == GRV_OK) status = read_lone_value(&r, option);
    reader_fini(&r);
    return status;
}

grv_status grv_config_parse(const grv_option_table *table, void *params, const char *text,
                            int64_t n_bytes, const char *name)
{
    GRV_CHECK(n_bytes <= MAX_FILE_BYTES, GRV_E_FORMAT, "%s: at most %d bytes expected, %lld found",
              name, MAX_FILE_BYTES, (long long)n_bytes);
    reader r = {.table = table, .params = params, .name = name};
    GRV_TRY(reader_init(&r, text, n_bytes));
    grv_status status = GRVI_CALLOC(&r.seen, table->n);
    if (status == GRV_OK) status = next(&r);
    if (status == GRV_OK) status = read_document(&r);
    reader_fini(&r);
    return status;
}

grv_status grv_config_load(const grv_option_table *table, void *params, const char *path)
{
    char *text = NULL;
    int64_t n_bytes = 0;
    GRV_TRY(grvi_fs_read(path, MAX_FILE_BYTES, &text, &n_bytes));
    const grv_status status = grv_config_parse(table, params, text, n_bytes, path);
    grv_free(text);
    return status;
}
