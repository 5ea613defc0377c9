/* GET requests for byte ranges (RFC 9110) with libcurl.
 * There is one kind of request: GET with a range. The answer to it tells size and version too, so that nothing is asked twice; a
 * whole object is a range that is long enough. A request for an object that the caller has seen tells the server to refuse if
 * that version has gone (If-Match). What may pass is tried again: pauses double and are spread at random.
 * Connections stay open in a list of idle ones, as many as there were requests at one time. */
#include "store/http_client.h"

#include <curl/curl.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/text.h"
#include "grove/core.h"
#include "store/scratch.h"

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

/* ---- one try ---- */

/* An exchange that libcurl carries. */
typedef struct transfer {
    grvi_http_exchange exchange;
    grv_status status; /* why the body was refused */
} transfer;

static size_t take_header(char *line, size_t size, size_t n, void *argument)
{
    grvi_http_take_header(&((transfer *)argument)->exchange, line, (int64_t)(size * n));
    return size * n;
}

static size_t take_body(char *bytes, size_t size, size_t n, void *argument)
{
    transfer *const t = argument;
    t->status = grvi_http_take_body(&t->exchange, (const uint8_t *)bytes, (int64_t)(size * n));
    return t->status == GRV_OK ? size * n : 0; /* 0 ends the transfer */
}

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
                        transfer *t)
{
    char range[64];
    const grvi_byte_range asked = t->exchange.request->range;
    if (asked.offset >= 0)
        (void)snprintf(range, sizeof range, "%lld-%lld", (long long)asked.offset,
                       (long long)(asked.offset + (asked.n_bytes - 1)));
    else
        (void)snprintf(range, sizeof range, "%lld", (long long)asked.offset);
    c->reason[0] = '\0';
    (void)curl_easy_setopt(c->easy, CURLOPT_URL, full_url);
    (void)curl_easy_setopt(c->easy, CURLOPT_RANGE, range);
    (void)curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(c->easy, CURLOPT_HEADERDATA, t);
    (void)curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, t);
    return curl_easy_perform(c->easy);
}

static grv_status try_once(connection *c, const char *full_url, transfer *t, bool *again)
{
    struct curl_slist *headers = NULL;
    *again = false;
    GRV_TRY(make_condition(t->exchange.request->version, &headers));
    const CURLcode result = perform(c, full_url, headers, t);
    (void)curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    if (t->status != GRV_OK) return t->status; /* recorded where it was found */
    *again = may_pass(result);
    GRV_CHECK(result == CURLE_OK, result == CURLE_OUT_OF_MEMORY ? GRV_E_NOMEM : GRV_E_IO, "%s: %s",
              t->exchange.url, c->reason[0] != '\0' ? c->reason : curl_easy_strerror(result));
    return grvi_http_finish(&t->exchange, again);
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
        transfer t = {.status = GRV_OK};
        grvi_http_begin(&t.exchange, request, url, answer);
        (void)atomic_fetch_add(&client->kv->requests, 1);
        const grv_status status = try_once(c, full_url, &t, &again);
        if (status == GRV_OK) return GRV_OK;
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
