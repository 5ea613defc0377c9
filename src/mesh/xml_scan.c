/* Scanner of XML tags. */
#define _GNU_SOURCE /* memmem */
#include <string.h>

#include "mesh/numbers.h"
#include "mesh/xml_scan.h"

bool grvi_span_is(grvi_span span, const char *text)
{
    return (int64_t)strlen(text) == span.n && memcmp(span.at, text, (size_t)span.n) == 0;
}

static const char *find(const char *at, const char *end, const char *text)
{
    return memmem(at, (size_t)(end - at), text, strlen(text));
}

/* '>' of a tag; one inside quotes does not count. NULL: there is none. */
static const char *tag_end(const char *at, const char *end)
{
    char quote = '\0';
    for (; at < end; at++) {
        if (quote != '\0') {
            if (*at == quote) quote = '\0';
        } else if (*at == '"' || *at == '\'') {
            quote = *at;
        } else if (*at == '>') {
            return at;
        } else if (*at == '<') {
            return NULL;
        }
    }
    return NULL;
}

static bool starts(const char *at, const char *end, const char *text)
{
    const size_t n = strlen(text);
    return (size_t)(end - at) >= n && memcmp(at, text, n) == 0;
}

/* What is passed over: returns its end, NULL if it has none, `at` if it is a tag. */
static const char *skip_other(const char *at, const char *end)
{
    static const char *const pairs[][2] = {
        {"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}, {"<!", ">"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (!starts(at, end, pairs[i][0])) continue;
        const char *const close = find(at, end, pairs[i][1]);
        return close == NULL ? NULL : close + strlen(pairs[i][1]);
    }
    return at;
}

grv_status grvi_xml_next(grvi_xml *xml, grvi_xml_tag *tag)
{
    *tag = (grvi_xml_tag){.kind = GRVI_XML_END, .at = xml->end};
    const char *at = xml->at;
    for (;;) {
        at = at < xml->end ? memchr(at, '<', (size_t)(xml->end - at)) : NULL;
        if (at == NULL) {
            xml->at = xml->end;
            return GRV_OK;
        }
        const char *const next = skip_other(at, xml->end);
        GRV_CHECK(next != NULL, GRV_E_FORMAT, "%s: what begins at byte %lld has no end", xml->path,
                  (long long)(at - xml->begin));
        if (next == at) break;
        at = next;
    }
    tag->at = at++;
    const char *close = tag_end(at, xml->end);
    GRV_CHECK(close != NULL, GRV_E_FORMAT, "%s: the tag at byte %lld has no end", xml->path,
              (long long)(tag->at - xml->begin));
    xml->at = close + 1;
    tag->kind = at < close && *at == '/' ? GRVI_XML_CLOSE : GRVI_XML_OPEN;
    at += tag->kind == GRVI_XML_CLOSE;
    tag->is_empty = close > at && close[-1] == '/';
    close -= tag->is_empty;
    tag->name.at = at;
    while (at < close && !grvi_is_blank(*at)) at++;
    tag->name.n = at - tag->name.at;
    tag->attributes = (grvi_span){at, close - at};
    GRV_CHECK(tag->name.n > 0, GRV_E_FORMAT, "%s: the tag at byte %lld has no name", xml->path,
              (long long)(tag->at - xml->begin));
    return GRV_OK;
}

/* Next name="value"; false at the end, or at what is no attribute. */
static bool next_attribute(grvi_span *rest, grvi_span *name, grvi_span *value)
{
    const char *const end = grvi_span_end(*rest);
    const char *p = grvi_skip_blanks(rest->at, end);
    name->at = p;
    while (p < end && *p != '=' && !grvi_is_blank(*p)) p++;
    name->n = p - name->at;
    p = grvi_skip_blanks(p, end);
    if (name->n == 0 || p == end || *p != '=') return false;
    p = grvi_skip_blanks(p + 1, end);
    if (p == end || (*p != '"' && *p != '\'')) return false;
    const char *const close = memchr(p + 1, *p, (size_t)(end - p - 1));
    if (close == NULL) return false;
    *value = (grvi_span){p + 1, close - p - 1};
    *rest = (grvi_span){close + 1, end - close - 1};
    return true;
}

bool grvi_xml_attribute(const grvi_xml_tag *tag, const char *name, grvi_span *value)
{
    grvi_span rest = tag->attributes, found_name, found;
    while (next_attribute(&rest, &found_name, &found)) {
        if (!grvi_span_is(found_name, name)) continue;
        const char *const end = grvi_span_end(found);
        value->at = grvi_skip_blanks(found.at, end);
        value->n = end - value->at;
        while (value->n > 0 && grvi_is_blank(value->at[value->n - 1])) value->n--;
        return true;
    }
    *value = (grvi_span){"", 0};
    return false;
}

int64_t grvi_xml_resolve(grvi_span value, char *out)
{
    static const char *const entities[][2] = {
        {"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}, {"&quot;", "\""}, {"&apos;", "'"}};
    const char *const end = grvi_span_end(value);
    int64_t n = 0;
    for (const char *p = value.at; p < end;) {
        size_t i = 0;
        while (i < 5 && !starts(p, end, entities[i][0])) i++;
        out[n++] = i < 5 ? entities[i][1][0] : *p;
        p += i < 5 ? strlen(entities[i][0]) : 1;
    }
    return n;
}
