/* GET requests for byte ranges (RFC 9110) with libcurl.
 * There is one kind of request: GET with a range. The answer to it tells size and version too, so that nothing is asked twice; a
 * whole object is a range that is long enough. Every answer is checked: its range against what was asked for, its version
 * against the one that the caller has seen (which the server is told to refuse if it has gone: If-Match), its length.
 * A server that ignores ranges is put up with while the objects are small. What may pass is tried again: pauses double
 * and are spread at random. Connections stay open in a list of idle ones, as many as there were requests at one time. */
#include "store/http_client.h"

#include <curl/curl.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "core/alloc.h"
#include "core/text.h"
#include "grove/core.h"
#include "store/scratch.h"

/* objects so small are taken whole from a server that ignores ranges */
static const int64_t max_unranged_bytes = (int64_t)8 << 20;
/* of a page that explains an error; it is not kept */
static const int64_t max_error_page_bytes = (int64_t)1 << 20;
static const double first_pause_s = 0.1, longest_pause_s = 5.0, connect_timeout_s = 10.0;
enum { SLOWEST_BYTES_PER_SECOND = 1000, MAX_REDIRECTS = 5 };

typedef struct connection {
    CURL *easy;
    struct connection *next;
    char reason[CURL_ERROR_SIZE];
} connection;

struct grvi_http_client {
    grvi_kv *kv;
    char *address;     /* without a slash at its end */
    char *query;       /* "?..." that follows the key, or "" */
    char *authorities; /* file of certificates, or NULL */
    int max_retries;
    double timeout_s;
    pthread_mutex_t lock;
    connection *idle;
    _Atomic uint64_t n_pauses;
};

/* One try of one request. */
typedef struct exchange {
    const grvi_http_request *request;
    grvi_http_answer *answer;
    const char *url; /* for messages */
    /* headers of the answer; of the last one, after redirections */
    long code;
    int64_t content_length, range_first, range_last, range_total; /* -1: not told */
    char encoding[32];
    grvi_http_version version;
    /* its body */
    bool is_started;
    bool is_growing;              /* its length is not known */
    int64_t n_skip, n_room, n_in; /* bytes to leave out first, to take then; all that came */
    int64_t n_taken;
    uint8_t *to;
    grv_status status; /* why the body was refused */
} exchange;

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
static void parse_content_range(const char *value, exchange *x)
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

static void reset_answer(exchange *x)
{
    x->code = 0;
    x->content_length = x->range_first = x->range_last = x->range_total = -1;
    x->encoding[0] = '\0';
    x->version = (grvi_http_version){.n_bytes = -1};
}

/* A value that is too long counts as absent. */
static void copy_value(const char *value, char *to, size_t n_to)
{
    const size_t n = strlen(value);
    if (n < n_to) memcpy(to, value, n + 1);
}

static size_t take_header(char *line, size_t size, size_t n_line, void *argument)
{
    exchange *const x = argument;
    char text[512];
    const size_t n_bytes = size * n_line;
    size_t n = n_bytes;
    while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == '\n' || line[n - 1] == ' ')) n--;
    if (n >= sizeof text) return n_bytes; /* none that matters is so long */
    memcpy(text, line, n);
    text[n] = '\0';
    if (strncmp(text, "HTTP/", 5) == 0) {
        const char *code = strchr(text, ' ');
        reset_answer(x);
        if (code != NULL && *++code != '\0') x->code = (long)parse_count(&code);
        return n_bytes;
    }
    char *value = strchr(text, ':');
    if (value == NULL) return n_bytes;
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
    return n_bytes;
}

/* ---- body ---- */

/* The object that the answer speaks of is the one that the caller has opened. */
static grv_status check_version(const exchange *x)
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

/* Room for n bytes of the body, in the caller's memory or in memory of the answer. */
static grv_status make_room(exchange *x, int64_t n)
{
    x->n_room = n;
    x->to = x->request->out;
    if (x->to != NULL) return GRV_OK;
    GRV_TRY(grvi_realloc(n, 1, (void **)&x->answer->data));
    x->to = x->answer->data;
    return GRV_OK;
}

/* 206: the range that was asked for, cut at the object's end. */
static grv_status begin_part(exchange *x)
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
static grv_status begin_whole(exchange *x)
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

static grv_status begin_body(exchange *x)
{
    x->is_started = true;
    if (x->code != 200 && x->code != 206) return GRV_OK;
    GRV_CHECK(x->encoding[0] == '\0' || strcasecmp(x->encoding, "identity") == 0, GRV_E_UNSUPPORTED,
              "%s: Content-Encoding '%s' is not supported", x->url, x->encoding);
    return x->code == 206 ? begin_part(x) : begin_whole(x);
}

static grv_status add_body(exchange *x, const uint8_t *bytes, int64_t n)
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
    memcpy(x->to + x->n_taken, bytes + skipped, (size_t)taken);
    x->n_taken += taken;
    return GRV_OK;
}

static size_t take_body(char *bytes, size_t size, size_t n, void *argument)
{
    exchange *const x = argument;
    x->status = add_body(x, (const uint8_t *)bytes, (int64_t)(size * n));
    return x->status == GRV_OK ? size * n : 0; /* 0 ends the transfer */
}

/* ---- one try ---- */

static bool may_pass(CURLcode result)
{
    switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
    }
}

/* What a complete answer means. */
static grv_status finish_object(exchange *x, bool *again)
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

static grv_status finish(exchange *x, bool *again)
{
    const bool is_open = x->request->version != NULL;
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

/* Headers of the request beside those that curl makes; NULL if there are none. */
static grv_status make_condition(const grvi_http_version *version, struct curl_slist **headers)
{
    char line[256];
    *headers = NULL;
    if (version == NULL) return GRV_OK;
    if (version->etag[0] == '"') /* weak ones do not match anything */
        (void)snprintf(line, sizeof line, "If-Match: %s", version->etag);
    else if (version->modified[0] != '\0')
        (void)snprintf(line, sizeof line, "If-Unmodified-Since: %s", version->modified);
    else
        return GRV_OK;
    *headers = curl_slist_append(NULL, line);
    GRV_CHECK(*headers != NULL, GRV_E_NOMEM, "no memory for a request");
    return GRV_OK;
}

static CURLcode perform(connection *c, const char *full_url, struct curl_slist *headers,
                        exchange *x)
{
    char range[64];
    const grvi_byte_range asked = x->request->range;
    if (asked.offset >= 0)
        (void)snprintf(range, sizeof range, "%lld-%lld", (long long)asked.offset,
                       (long long)(asked.offset + (asked.n_bytes - 1)));
    else
        (void)snprintf(range, sizeof range, "%lld", (long long)asked.offset);
    c->reason[0] = '\0';
    (void)curl_easy_setopt(c->easy, CURLOPT_URL, full_url);
    (void)curl_easy_setopt(c->easy, CURLOPT_RANGE, range);
    (void)curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(c->easy, CURLOPT_HEADERDATA, x);
    (void)curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, x);
    return curl_easy_perform(c->easy);
}

static grv_status try_once(connection *c, const char *full_url, exchange *x, bool *again)
{
    struct curl_slist *headers = NULL;
    *again = false;
    reset_answer(x);
    GRV_TRY(make_condition(x->request->version, &headers));
    const CURLcode result = perform(c, full_url, headers, x);
    (void)curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    if (x->status != GRV_OK) return x->status; /* recorded where it was found */
    *again = may_pass(result);
    GRV_CHECK(result == CURLE_OK, result == CURLE_OUT_OF_MEMORY ? GRV_E_NOMEM : GRV_E_IO, "%s: %s",
              x->url, c->reason[0] != '\0' ? c->reason : curl_easy_strerror(result));
    return finish(x, again);
}

/* ---- connections ---- */

static grv_status make_connection(const grvi_http_client *client, connection **out)
{
    connection *c = NULL;
    const bool is_secure = strncmp(client->address, "https:", 6) == 0;
    const double connect_s = fmin(client->timeout_s, connect_timeout_s);
    *out = NULL;
    GRV_TRY(GRVI_CALLOC(&c, 1));
    c->easy = curl_easy_init();
    if (c->easy == NULL) {
        grv_free(c);
        GRV_FAIL(GRV_E_NOMEM, "no memory for a connection");
    }
    CURL *const easy = c->easy;
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->reason);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    /* never from an encrypted connection to a plain one */
    (void)curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, is_secure ? "https" : "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "grove");
    (void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 1L << 18);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)ceil(connect_s * 1e3));
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)SLOWEST_BYTES_PER_SECOND);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)ceil(client->timeout_s));
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    if (client->authorities != NULL)
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, client->authorities);
    *out = c;
    return GRV_OK;
}

static grv_status take_connection(grvi_http_client *client, connection **c)
{
    (void)pthread_mutex_lock(&client->lock);
    *c = client->idle;
    if (*c != NULL) client->idle = (*c)->next;
    (void)pthread_mutex_unlock(&client->lock);
    return *c != NULL ? GRV_OK : make_connection(client, c);
}

static void give_connection(grvi_http_client *client, connection *c)
{
    (void)pthread_mutex_lock(&client->lock);
    c->next = client->idle;
    client->idle = c;
    (void)pthread_mutex_unlock(&client->lock);
}

/* ---- requests ---- */

/* Doubles from try to try, and is spread so that many clients do not come back together; what the server asks for if that is longer. */
static double pause_before(grvi_http_client *client, const connection *c, int n_tries)
{
    curl_off_t asked_s = 0;
    const double longest = fmin(ldexp(first_pause_s, n_tries - 1), longest_pause_s);
    const uint64_t time_ns = (uint64_t)(grv_clock_seconds() * 1e9);
    const double spread = grv_random_uniform(time_ns, 0, atomic_fetch_add(&client->n_pauses, 1));
    (void)curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &asked_s);
    return fmax(longest * (0.5 + 0.5 * spread), (double)asked_s);
}

static void sleep_seconds(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&left, &left) != 0) continue;
}

static grv_status get_with_retries(grvi_http_client *client, connection *c, const char *full_url,
                                   const char *url, const grvi_http_request *request,
                                   grvi_http_answer *answer)
{
    const double begin = grv_clock_seconds();
    for (int n_tries = 1;; n_tries++) {
        bool again = false;
        exchange x = {.request = request, .answer = answer, .url = url};
        (void)atomic_fetch_add(&client->kv->requests, 1);
        const grv_status status = try_once(c, full_url, &x, &again);
        if (status == GRV_OK) return GRV_OK;
        grv_free(answer->data);
        *answer = (grvi_http_answer){0};
        if (!again) return status;
        const double pause = pause_before(client, c, n_tries);
        const double elapsed = grv_clock_seconds() - begin;
        GRV_CHECK(n_tries <= client->max_retries && elapsed + pause <= client->timeout_s, status,
                  "%s (tried %d times in %.1f s)", grvi_reason(status), n_tries, elapsed);
        sleep_seconds(pause);
        (void)atomic_fetch_add(&client->kv->retries, 1);
    }
}

static void append_encoded(grvi_text *url, const char *key)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    for (const char *p = key; *p != '\0'; p++) {
        if (strchr(plain, *p) != NULL)
            grvi_text_append_n(url, p, 1);
        else
            grvi_text_printf(url, "%%%02X", (unsigned)(unsigned char)*p);
    }
}

grv_status grvi_http_get(grvi_http_client *client, const grvi_http_request *request,
                         grvi_http_answer *answer)
{
    grv_status status = GRV_OK;
    connection *c = NULL;
    grvi_text url = {0}, full_url = {0};
    *answer = (grvi_http_answer){0};
    grvi_text_printf(&url, "%s/", client->address);
    append_encoded(&url, request->key);
    GRV_TRY_GOTO(grvi_text_status(&url));
    grvi_text_printf(&full_url, "%s%s", url.data, client->query);
    GRV_TRY_GOTO(grvi_text_status(&full_url));
    GRV_TRY_GOTO(take_connection(client, &c));
    status = get_with_retries(client, c, full_url.data, url.data, request, answer);
    give_connection(client, c);
done:
    grvi_text_fini(&url);
    grvi_text_fini(&full_url);
    return status;
}

/* ---- client ---- */

static CURLcode library_result;

static void start_library(void)
{
    library_result = curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* A location is an address, and perhaps a query that goes with every request (as signed addresses have). */
static grv_status take_location(const char *location, grvi_http_client *client)
{
    grv_status status = GRV_OK;
    char *user = NULL;
    CURLU *const url = curl_url();
    GRV_CHECK(url != NULL, GRV_E_NOMEM, "no memory for an address");
    const CURLUcode result = curl_url_set(url, CURLUPART_URL, location, 0);
    const bool has_user = curl_url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK;
    curl_free(user);
    curl_url_cleanup(url);
    GRV_CHECK(!has_user, GRV_E_UNSUPPORTED,
              "an address with a user's name in it is not supported: it would be seen in logs");
    GRV_CHECK(result == CURLUE_OK && strchr(location, '#') == NULL, GRV_E_ARG,
              "'%s' is no address of a store: %s", location,
              result != CURLUE_OK ? curl_url_strerror(result) : "it has a '#'");
    size_t n = strcspn(location, "?");
    GRV_TRY_GOTO(grvi_strdup(location + n, &client->query));
    GRV_TRY_GOTO(grvi_strdup(location, &client->address));
    while (n > 0 && location[n - 1] == '/') n--;
    client->address[n] = '\0';
done:
    return status;
}

grv_status grvi_http_client_create(const char *url, const grv_store_params *params, grvi_kv *kv,
                                   grvi_http_client **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    grv_status status = GRV_OK;
    grvi_http_client *client = NULL;
    const char *const authorities = getenv("CURL_CA_BUNDLE"); /* as the program curl does */
    *out = NULL;
    GRV_CHECK(params->http_retries >= 0, GRV_E_ARG, "http_retries is %d, at least 0 expected",
              params->http_retries);
    GRV_CHECK(params->http_timeout_s > 0 && params->http_timeout_s <= 86400, GRV_E_ARG,
              "http_timeout_s is %g, more than 0 and at most a day expected",
              params->http_timeout_s);
    (void)pthread_once(&once, start_library);
    GRV_CHECK(library_result == CURLE_OK, GRV_E_IO, "libcurl does not start: %s",
              curl_easy_strerror(library_result));
    GRV_TRY(GRVI_CALLOC(&client, 1));
    (void)pthread_mutex_init(&client->lock, NULL);
    client->kv = kv;
    client->max_retries = params->http_retries;
    client->timeout_s = params->http_timeout_s;
    GRV_TRY_GOTO(take_location(url, client));
    if (authorities != NULL && authorities[0] != '\0')
        GRV_TRY_GOTO(grvi_strdup(authorities, &client->authorities));
    *out = client;
done:
    if (status != GRV_OK) grvi_http_client_destroy(&client);
    return status;
}

void grvi_http_client_destroy(grvi_http_client **client)
{
    if (client == NULL || *client == NULL) return;
    for (connection *c = (*client)->idle; c != NULL;) {
        connection *const next = c->next;
        curl_easy_cleanup(c->easy);
        grv_free(c);
        c = next;
    }
    (void)pthread_mutex_destroy(&(*client)->lock);
    grv_free((*client)->address);
    grv_free((*client)->query);
    grv_free((*client)->authorities);
    grv_free(*client);
    *client = NULL;
}
