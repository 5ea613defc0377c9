/* What a server sends: the first byte chooses a request, then come lines of headers, an empty line, and the body in pieces. It answers the
 * request, within the range that was asked for, or is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "grove/core.h"
#include "store/http_exchange.h"

enum { N_OUT = 20, MOST = 1 << 16 };

static const grvi_http_version seen = {.etag = "\"v1\"", .modified = "then", .n_bytes = 100};
static uint8_t out[N_OUT];
static grvi_buffer buffer;

static const grvi_http_request requests[] = {
    {.key = "k", .range = {0, 1}, .buffer = &buffer},
    {.key = "k", .range = {0, MOST}, .buffer = &buffer},
    {.key = "k", .range = {-16, 16}, .buffer = &buffer},
    {.key = "k", .range = {40, N_OUT}, .version = &seen, .out = out},
    {.key = "k", .range = {0, N_OUT}, .version = &seen, .out = out},
};
enum { N_REQUESTS = sizeof requests / sizeof requests[0] };

static void check_answer(const grvi_http_request *request, const grvi_http_answer *answer)
{
    if (!answer->found) return;
    const int64_t total = answer->version.n_bytes;
    if (total < 0 || answer->offset < 0 || answer->n_bytes < 0 ||
        answer->offset + answer->n_bytes > total)
        abort();
    if (request->out != NULL &&
        (answer->n_bytes != request->range.n_bytes || total != seen.n_bytes))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    grvi_http_exchange x;
    grvi_http_answer answer = {0};
    bool again = false;
    if (n == 0) return 0;
    const grvi_http_request *const request = &requests[data[0] % N_REQUESTS];
    const uint8_t *p = data + 1;
    const uint8_t *const end = data + n;
    grvi_http_begin(&x, request, "http://fuzz/k", &answer);
    while (p < end) {
        const uint8_t *const line_end = memchr(p, '\n', (size_t)(end - p));
        const uint8_t *const next = line_end != NULL ? line_end + 1 : end;
        const bool is_last = next - p <= 2;
        grvi_http_take_header(&x, (const char *)p, next - p);
        p = next;
        if (is_last) break;
    }
    grv_status status = GRV_OK;
    while (p < end && status == GRV_OK) {
        const int64_t piece = end - p < 11 ? end - p : 11;
        status = grvi_http_take_body(&x, p, piece);
        p += piece;
    }
    if (status == GRV_OK) status = grvi_http_finish(&x, &again);
    if (status == GRV_OK)
        check_answer(request, &answer);
    else
        grv_error_clear();
    grvi_buffer_fini(&buffer);
    return 0;
}

int fuzz_make_corpus(const char *folder)
{
    static const char *const answers[] = {
        "HTTP/1.1 206 Partial Content\r\nContent-Length: 1\r\nContent-Range: bytes "
        "0-0/100\r\nETag: "
        "\"v1\"\r\nLast-Modified: then\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 21\r\nETag: W/\"v1\"\r\n\r\nabcdefghijklmnopqrstu",
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 84-99/100\r\n\r\n0123456789abcdef",
        "HTTP/1.1 302 Found\r\nLocation: /\r\nHTTP/2 206 \r\ncontent-range: bytes "
        "40-59/100\r\netag: "
        "\"v1\"\r\n\r\n0123456789abcdefghij",
        "HTTP/1.0 200 OK\r\nContent-Encoding: identity\r\n\r\n0123456789abcdefghij0123456789"
        "0123456789abcdefghij01234567890123456789abcdefghij",
        "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */0\r\n\r\n"};
    for (int i = 0; i < 6; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/answer%d", folder, i);
        FILE *const file = fopen(path, "wb");
        if (file == NULL) return 1;
        (void)fputc(i == 5 ? 0 : i, file);
        (void)fputs(answers[i], file);
        if (fclose(file) != 0) return 1;
    }
    return 0;
}
