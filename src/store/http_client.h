/* GET requests for byte ranges, over connections that are kept, with repetitions. Internal. */
#ifndef GRVI_STORE_HTTP_CLIENT_H
#define GRVI_STORE_HTTP_CLIENT_H

#include "store/kv.h"

typedef struct grvi_http_client grvi_http_client;

/* What tells one version of an object from another. */
typedef struct grvi_http_version {
    char etag[192];    /* quotes included; "" if the server sends none, or a longer one */
    char modified[64]; /* Last-Modified; "" if none */
    int64_t n_bytes;   /* of the whole object */
} grvi_http_version;

typedef struct grvi_http_request {
    const char *key;                  /* below the client's address */
    grvi_byte_range range;            /* n_bytes > 0 */
    const grvi_http_version *version; /* any other one is an error; NULL: any will do */
    uint8_t *
        out; /* [range.n_bytes]: the range must come whole and goes here. NULL: what there is of it goes to answer.data */
} grvi_http_request;

typedef struct grvi_http_answer {
    bool found;
    grvi_http_version version;
    uint8_t *data; /* free with grv_free; NULL if the request has `out` */
    int64_t offset,
        n_bytes; /* of the part that came, in the object; may be more than was asked for */
} grvi_http_answer;

/* `kv` gets the counts of requests. Addresses other than http:// and https:// are refused. */
grv_status grvi_http_client_create(const char *url, const grv_store_params *params, grvi_kv *kv,
                                   grvi_http_client **client) GRV_MUST_CHECK;
void grvi_http_client_destroy(grvi_http_client **client);
/* Thread-safe. GRV_E_IO names address and reason. */
grv_status grvi_http_get(grvi_http_client *client, const grvi_http_request *request,
                         grvi_http_answer *answer) GRV_MUST_CHECK;

#endif
