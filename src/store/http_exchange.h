/* What one answer of an HTTP server means for the request that it answers (RFC 9110), apart from how it came. Internal. */
#ifndef GRVI_STORE_HTTP_EXCHANGE_H
#define GRVI_STORE_HTTP_EXCHANGE_H

#include "store/kv.h"
#include "store/scratch.h"

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
    uint8_t *out; /* [range.n_bytes]: the range must come whole, and goes here */
    grvi_buffer *
        buffer; /* if out is NULL: what there is of the range goes here, in place of what it held */
} grvi_http_request;

typedef struct grvi_http_answer {
    bool found;
    grvi_http_version version;
    /* of the part that came, in the object; may be more than was asked for */
    int64_t offset, n_bytes;
} grvi_http_answer;

/* One try of one request: begin, headers, body, finish. */
typedef struct grvi_http_exchange {
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
} grvi_http_exchange;

void grvi_http_begin(grvi_http_exchange *x, const grvi_http_request *request, const char *url,
                     grvi_http_answer *answer);
/* One line of the headers, its end included or not; a status line starts anew, as after a redirection. */
void grvi_http_take_header(grvi_http_exchange *x, const char *line, int64_t n);
/* The next bytes of the body. After an error the rest is of no use. */
grv_status grvi_http_take_body(grvi_http_exchange *x, const uint8_t *bytes,
                               int64_t n) GRV_MUST_CHECK;
/* The answer is complete. On failure *again tells whether another try may do better. */
grv_status grvi_http_finish(grvi_http_exchange *x, bool *again) GRV_MUST_CHECK;

#endif
