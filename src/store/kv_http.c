/* Key-value back end on an HTTP server, for reading: a key is what follows the store's address.
 * Opening an object costs one request, which brings its size, its version and the bytes that the caller wants first; reads of
 * those bytes cost nothing. Later reads insist on the same version, so that an object that was replaced is an error
 * and never a mixture. A server has no lists. */
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "grove/core.h"
#include "store/http_client.h"

/* Memory of closed objects that is kept for the next ones. */
static const int64_t max_spare_bytes = (int64_t)64 << 20;

/* An object that is open, or a spare one. */
typedef struct http_object {
    struct http_object *next;
    grvi_http_version version;
    grvi_buffer ahead; /* bytes that came with the answer */
    int64_t ahead_offset, n_ahead;
    grvi_text key;
} http_object;

typedef struct kv_http {
    grvi_kv base;
    grvi_http_client *client;
    pthread_mutex_t lock;
    http_object *spare;
    int64_t n_spare_bytes;
} kv_http;

static void destroy_object(http_object *state)
{
    grvi_buffer_fini(&state->ahead);
    grvi_text_fini(&state->key);
    grv_free(state);
}

static grv_status take_object(kv_http *http, const char *key, http_object **out)
{
    (void)pthread_mutex_lock(&http->lock);
    http_object *state = http->spare;
    if (state != NULL) {
        http->spare = state->next;
        http->n_spare_bytes -= state->ahead.capacity;
    }
    (void)pthread_mutex_unlock(&http->lock);
    if (state == NULL) GRV_TRY(GRVI_CALLOC(&state, 1));
    state->key.n = 0;
    grvi_text_append(&state->key, key);
    const grv_status status = grvi_text_status(&state->key);
    if (status != GRV_OK)
        destroy_object(state);
    else
        *out = state;
    return status;
}

static void give_object(kv_http *http, http_object *state)
{
    (void)pthread_mutex_lock(&http->lock);
    const bool keeps = http->n_spare_bytes + state->ahead.capacity <= max_spare_bytes;
    if (keeps) {
        state->next = http->spare;
        http->spare = state;
        http->n_spare_bytes += state->ahead.capacity;
    }
    (void)pthread_mutex_unlock(&http->lock);
    if (!keeps) destroy_object(state);
}

/* FNV-1a */
static uint64_t hash(const char *text)
{
    uint64_t h = 0xcbf29ce484222325U;
    for (; *text != '\0'; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3U;
    return h;
}

static grv_status http_open_ahead(grvi_kv *kv, const char *key, grvi_byte_range ahead,
                                  grvi_object *object, bool *found)
{
    kv_http *const http = (kv_http *)kv;
    http_object *state = NULL;
    grvi_http_answer answer = {0};
    *found = false;
    GRV_TRY(take_object(http, key, &state));
    const grvi_http_request request = {.key = key, .range = ahead, .buffer = &state->ahead};
    const grv_status status = grvi_http_get(http->client, &request, &answer);
    if (!answer.found) {
        give_object(http, state);
        return status;
    }
    state->version = answer.version;
    state->ahead_offset = answer.offset;
    state->n_ahead = answer.n_bytes;
    *object = (grvi_object){.n_bytes = answer.version.n_bytes,
                            .identity = {(uint64_t)answer.version.n_bytes,
                                         hash(answer.version.etag), hash(answer.version.modified)},
                            .state = state};
    *found = true;
    return GRV_OK;
}

/* The first byte: no request for nothing at all is understood by every server and allowed by every signed address. */
static grv_status http_open(grvi_kv *kv, const char *key, grvi_object *object, bool *found)
{
    return http_open_ahead(kv, key, (grvi_byte_range){0, 1}, object, found);
}

static grv_status http_read(grvi_kv *kv, const grvi_object *object, const char *key, int64_t offset,
                            int64_t n, void *out)
{
    const http_object *const state = object->state;
    grvi_http_answer answer;
    GRV_CHECK(offset >= 0 && n >= 0 && offset <= object->n_bytes - n, GRV_E_IO,
              "%s: %lld bytes expected from byte %lld of %lld", key, (long long)n,
              (long long)offset, (long long)object->n_bytes);
    if (n == 0) return GRV_OK;
    if (offset >= state->ahead_offset && offset + n <= state->ahead_offset + state->n_ahead) {
        memcpy(out, state->ahead.data + (offset - state->ahead_offset), (size_t)n);
        return GRV_OK;
    }
    const grvi_http_request request = {
        .key = state->key.data, .range = {offset, n}, .version = &state->version, .out = out};
    return grvi_http_get(((kv_http *)kv)->client, &request, &answer);
}

static void http_close(grvi_kv *kv, grvi_object *object)
{
    give_object((kv_http *)kv, object->state);
    object->state = NULL;
}

static grv_status http_list(grvi_kv *kv, const char *prefix, grvi_kv_visit *visit, void *argument)
{
    (void)kv;
    (void)visit;
    (void)argument;
    GRV_FAIL(GRV_E_UNSUPPORTED,
             "what lies in '/%s' cannot be listed: HTTP has no lists, names must be known or come "
             "from consolidated metadata",
             prefix);
}

static void http_destroy(grvi_kv *kv)
{
    kv_http *const http = (kv_http *)kv;
    grvi_http_client_destroy(&http->client);
    for (http_object *state = http->spare; state != NULL;) {
        http_object *const next = state->next;
        destroy_object(state);
        state = next;
    }
    (void)pthread_mutex_destroy(&http->lock);
    grv_free(http);
}

static const grvi_kv_class http_class = {.name = "an HTTP server",
                                         .n_io = 8,
                                         .gap_bytes = (int64_t)256 << 10,
                                         .run_bytes = (int64_t)8 << 20,
                                         .open_object = http_open,
                                         .open_ahead = http_open_ahead,
                                         .read_object = http_read,
                                         .close_object = http_close,
                                         .list = http_list,
                                         .destroy = http_destroy};

grv_status grvi_kv_http_create(const char *url, const grv_store_params *params, grvi_kv **kv)
{
    grv_status status = GRV_OK;
    kv_http *http = NULL;
    *kv = NULL;
    GRV_TRY(GRVI_CALLOC(&http, 1));
    http->base.class = &http_class;
    (void)pthread_mutex_init(&http->lock, NULL);
    GRV_TRY_GOTO(grvi_http_client_create(url, params, &http->base, &http->client));
    *kv = &http->base;
done:
    if (status != GRV_OK) http_destroy(&http->base);
    return status;
}
