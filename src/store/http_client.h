/* GET requests for byte ranges, over connections that are kept, with repetitions. Internal. */
#ifndef GRVI_STORE_HTTP_CLIENT_H
#define GRVI_STORE_HTTP_CLIENT_H

#include "store/http_exchange.h"

typedef struct grvi_http_client grvi_http_client;

/* `kv` gets the counts of requests. Addresses other than http:// and https:// are refused. */
grv_status grvi_http_client_create(const char *url, const grv_store_params *params, grvi_kv *kv,
                                   grvi_http_client **client) GRV_MUST_CHECK;
void grvi_http_client_destroy(grvi_http_client **client);
/* Thread-safe. GRV_E_IO names address and reason. */
grv_status grvi_http_get(grvi_http_client *client, const grvi_http_request *request,
                         grvi_http_answer *answer) GRV_MUST_CHECK;

#endif
