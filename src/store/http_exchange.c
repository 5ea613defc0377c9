/* Answers to GET requests for byte ranges. Each is checked: its range against what was asked for, its version against the one that
 * the caller has seen, its length. A server that ignores ranges and sends the whole is put up with while objects are small. */
#include "store/http_exchange.h"

#include <string.h>
#include <strings.h>

/* objects so small are taken whole from a server that ignores ranges */
static const int64_t max_unranged_bytes = (int64_t)8 << 20;
/* of a page that explains an error; it is not kept */
static const int64_t max_error_page_bytes = (int64_t)1 << 20;

/* ---- headers ---- */

/* Digits only; -1 if there are none or too many. */
static int64_t parse_count(const char **text)
{
    int64_t n = 0;
    const char *p = *text;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (n > (INT64_MAX - 9) / 10) return -1;
        n = 10 * n + (*p - '0');
    }
    if (p == *text) return -1;
    *text = p;
    return n;
}

/* "bytes 0-9/100" or "bytes * /100"; what does not fit stays -1. */
static void parse_content_range(const char *value, grvi_http_exchange *x)
{
    x->range_first = x->range_last = x->range_total = -1;
    if (strncasecmp(value, "bytes ", 6) != 0) return;
    const char *p = value + 6;
    int64_t first = -1, last = -1;
    if (*p == '*') {
        p++;
    } else {
        first = parse_count(&p);
        if (first < 0 || *p++ != '-') return;
        last = parse_count(&p);
        if (last < first) return;
    }
    if (*p++ != '/') return;
    x->range_total = parse_count(&p);
    x->range_first = first;
    x->range_last = last;
}

static void reset_answer(grvi_http_exchange *x)
{
    x->code = 0;
    x->content_length = x->range_first = x->range_last = x->range_total = -1;
    x->encoding[0] = '\0';
    x->version = (grvi_http_version){.n_bytes = -1};
}

void grvi_http_begin(grvi_http_exchange *x, const grvi_http_request *request, const char *url,
                     grvi_http_answer *answer)
{
    *x = (grvi_http_exchange){.request = request, .answer = answer, .url = url};
    reset_answer(x);
}

/* A value that is too long counts as absent. */
static void copy_value(const char *value, char *to, size_t n_to)
{
    const size_t n = strlen(value);
    if (n < n_to) memcpy(to, value, n + 1);
}

void grvi_http_take_header(grvi_http_exchange *x, const char *line, int64_t n)
{
    char text[512];
    while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == '\n' || line[n - 1] == ' ')) n--;
    if (n >= (int64_t)sizeof text) return; /* none that matters is so long */
    memcpy(text, line, (size_t)n);
    text[n] = '\0';
    if (strncmp(text, "HTTP/", 5) == 0) {
        const char *code = strchr(text, ' ');
        reset_answer(x);
        if (code != NULL && *++code != '\0') x->code = (long)parse_count(&code);
        return;
    }
    char *value = strchr(text, ':');
    if (value == NULL) return;
    *value++ = '\0';
    value += strspn(value, " \t");
    const char *digits = value;
    if (strcasecmp(text, "Content-Length") == 0)
        x->content_length = parse_count(&digits);
    else if (strcasecmp(text, "Content-Range") == 0)
        parse_content_range(value, x);
    else if (strcasecmp(text, "ETag") == 0)
        copy_value(value, x->version.etag, sizeof x->version.etag);
    else if (strcasecmp(text, "Last-Modified") == 0)
        copy_value(value, x->version.modified, sizeof x->version.modified);
    else if (strcasecmp(text, "Content-Encoding") == 0)
        copy_value(value, x->encoding, sizeof x->encoding);
    return;
}

/* ---- body ---- */

/* The object that the answer speaks of is the one that the caller has opened. */
static grv_status check_version(const grvi_http_exchange *x)
{
    const grvi_http_version *const seen = x->request->version, *const now = &x->version;
    if (seen == NULL) return GRV_OK;
    const bool has_tags = seen->etag[0] != '\0' && now->etag[0] != '\0';
    const bool same = has_tags ? strcmp(seen->etag, now->etag) == 0
                               : seen->modified[0] == '\0' || now->modified[0] == '\0' ||
                                     strcmp(seen->modified, now->modified) == 0;
    GRV_CHECK(same && seen->n_bytes == now->n_bytes, GRV_E_IO,
              "%s has changed while it was being read (%lld bytes before, %lld now)", x->url,
              (long long)seen->n_bytes, (long long)now->n_bytes);
    return GRV_OK;
}

/* Room for n bytes of the body. */
static grv_status make_room(grvi_http_exchange *x, int64_t n)
{
    x->n_room = n;
    x->to = x->request->out;
    if (x->to != NULL) return GRV_OK;
    GRV_TRY(grvi_buffer_reserve(x->request->buffer, n));
    x->to = x->request->buffer->data;
    return GRV_OK;
}

/* 206: the range that was asked for, cut at the object's end. */
static grv_status begin_part(grvi_http_exchange *x)
{
    const grvi_byte_range asked = x->request->range;
    const int64_t total = x->range_total;
    GRV_CHECK(x->range_first >= 0 && total > x->range_last, GRV_E_IO,
              "%s: a part of the object came without a Content-Range that says which", x->url);
    x->version.n_bytes = total;
    GRV_TRY(check_version(x));
    const int64_t first = asked.offset >= 0 ? asked.offset : grvi_max_i64(0, total + asked.offset);
    const int64_t end = first + grvi_min_i64(asked.n_bytes, total - first);
    GRV_CHECK(x->range_first == first && x->range_last + 1 == end &&
                  (x->request->out == NULL || end - first == asked.n_bytes),
              GRV_E_IO,
              "%s: bytes %lld to %lld of %lld came where %lld from byte %lld were asked for",
              x->url, (long long)x->range_first, (long long)x->range_last, (long long)total,
              (long long)asked.n_bytes, (long long)asked.offset);
    x->answer->offset = first;
    return make_room(x, end - first);
}

/* 200: the whole object, of which the caller may want a part. */
static grv_status begin_whole(grvi_http_exchange *x)
{
    const grvi_byte_range asked = x->request->range;
    const int64_t expected =
        x->request->version != NULL ? x->request->version->n_bytes : x->content_length;
    const int64_t most = grvi_max_i64(max_unranged_bytes, asked.offset == 0 ? asked.n_bytes : 0);
    if (x->content_length >= 0) {
        x->version.n_bytes = x->content_length;
        GRV_TRY(check_version(x));
    }
    GRV_CHECK(expected <= most, GRV_E_IO,
              "%s: the server ignores ranges, and the object has %lld bytes (at most %lld are read "
              "whole)",
              x->url, (long long)expected, (long long)most);
    if (x->request->out != NULL) {
        x->n_skip = asked.offset;
        return make_room(x, asked.n_bytes);
    }
    x->is_growing = x->content_length < 0;
    return make_room(x, x->is_growing ? 0 : x->content_length);
}

static grv_status begin_body(grvi_http_exchange *x)
{
    x->is_started = true;
    if (x->code != 200 && x->code != 206) return GRV_OK;
    GRV_CHECK(x->encoding[0] == '\0' || strcasecmp(x->encoding, "identity") == 0, GRV_E_UNSUPPORTED,
              "%s: Content-Encoding '%s' is not supported", x->url, x->encoding);
    return x->code == 206 ? begin_part(x) : begin_whole(x);
}

grv_status grvi_http_take_body(grvi_http_exchange *x, const uint8_t *bytes, int64_t n)
{
    if (!x->is_started) GRV_TRY(begin_body(x));
    x->n_in += n;
    if (x->code != 200 && x->code != 206) {
        GRV_CHECK(x->n_in <= max_error_page_bytes, GRV_E_IO, "%s: HTTP %ld with an endless page",
                  x->url, x->code);
        return GRV_OK;
    }
    if (x->is_growing) {
        GRV_CHECK(x->n_in <= grvi_max_i64(max_unranged_bytes, x->request->range.n_bytes), GRV_E_IO,
                  "%s: the server ignores ranges, and the object has more than %lld bytes", x->url,
                  (long long)max_unranged_bytes);
        if (x->n_in > x->n_room) GRV_TRY(make_room(x, 2 * x->n_in));
    }
    GRV_CHECK(x->code == 200 || x->n_in <= x->n_room, GRV_E_IO,
              "%s: more than the %lld bytes came that were announced", x->url,
              (long long)x->n_room);
    const int64_t skipped = grvi_min_i64(n, x->n_skip);
    const int64_t taken = grvi_min_i64(n - skipped, x->n_room - x->n_taken);
    x->n_skip -= skipped;
    if (taken > 0) memcpy(x->to + x->n_taken, bytes + skipped, (size_t)taken);
    x->n_taken += taken;
    return GRV_OK;
}

/* ---- end ---- */

/* What a complete answer means. */
static grv_status finish_object(grvi_http_exchange *x, bool *again)
{
    if (!x->is_started) GRV_TRY(begin_body(x));
    if (x->is_growing) x->n_room = x->n_taken;
    *again = x->n_taken < x->n_room;
    GRV_CHECK(!*again, GRV_E_IO, "%s: %lld bytes came of %lld", x->url, (long long)x->n_taken,
              (long long)x->n_room);
    if (x->version.n_bytes < 0) {
        x->version.n_bytes = x->n_in;
        GRV_TRY(check_version(x));
    }
    x->answer->found = true;
    x->answer->version = x->version;
    x->answer->n_bytes = x->n_taken;
    return GRV_OK;
}

grv_status grvi_http_finish(grvi_http_exchange *x, bool *again)
{
    const bool is_open = x->request->version != NULL;
    *again = false;
    switch (x->code) {
    case 200:
    case 206: return finish_object(x, again);
    case 404:
    case 410:
        GRV_CHECK(!is_open, GRV_E_IO, "%s has been removed while it was being read", x->url);
        return GRV_OK; /* answer->found stays false */
    case 412: GRV_FAIL(GRV_E_IO, "%s has changed while it was being read", x->url);
    case 416: /* an empty object has no ranges */
        x->version.n_bytes = x->range_total;
        GRV_TRY(check_version(x));
        GRV_CHECK(x->range_total == 0, GRV_E_IO, "%s: HTTP 416, the object lacks the range",
                  x->url);
        x->answer->found = true;
        x->answer->version = x->version;
        return GRV_OK;
    case 401: GRV_FAIL(GRV_E_IO, "%s: HTTP 401, the server wants to know who asks", x->url);
    case 403:
        GRV_FAIL(GRV_E_IO,
                 "%s: HTTP 403, not allowed (S3-like servers answer so for absent objects too if "
                 "lists are not allowed)",
                 x->url);
    default:
        *again = x->code == 408 || x->code == 429 ||
                 (x->code >= 500 && x->code != 501 && x->code != 505);
        GRV_FAIL(GRV_E_IO, "%s: HTTP %ld", x->url, x->code);
    }
}
