/* Buffered output, base64 on the way, corrections of what was written. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/base64.h"
#include "mesh/mesh_out.h"

enum { BUFFER_BYTES = 1 << 20, LINE_BYTES = 512, STRIP_BYTES = 3072 };

grv_status grvi_out_init(grvi_out *out, int fd, const char *path)
{
    *out = (grvi_out){.fd = fd, .path = path};
    return GRVI_ALLOC(&out->buffer, BUFFER_BYTES);
}

void grvi_out_fini(grvi_out *out)
{
    grv_free(out->buffer);
    out->buffer = NULL;
}

static void write_at(grvi_out *out, int64_t at, const uint8_t *data, int64_t n)
{
    while (n > 0 && out->saved_errno == 0) {
        const ssize_t k =
            pwrite(out->fd, data, (size_t)grvi_min_i64(n, (int64_t)1 << 30), (off_t)at);
        if (k < 0 && errno != EINTR) out->saved_errno = errno;
        if (k == 0) out->saved_errno = EIO;
        if (k <= 0) continue;
        data += k;
        at += k;
        n -= k;
    }
}

static void flush(grvi_out *out)
{
    write_at(out, out->at - out->n_buffered, out->buffer, out->n_buffered);
    out->n_buffered = 0;
}

void grvi_out_put(grvi_out *out, const void *data, int64_t n)
{
    if (n == 0) return; /* data may be NULL */
    if (n > BUFFER_BYTES - out->n_buffered) flush(out);
    if (n > BUFFER_BYTES) {
        write_at(out, out->at, data, n);
    } else {
        memcpy(out->buffer + out->n_buffered, data, (size_t)n);
        out->n_buffered += n;
    }
    out->at += n;
}

void grvi_out_printf(grvi_out *out, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    GRV_ASSERT(n >= 0 && n < LINE_BYTES); /* numbers and short constants only */
    grvi_out_put(out, line, n);
}

void grvi_out_put_base64(grvi_out *out, const void *data, int64_t n)
{
    const uint8_t *in = data;
    uint8_t text[STRIP_BYTES / 3 * 4];
    while (n > 0 && (out->n_pending > 0 || n < 3)) {
        out->pending[out->n_pending++] = *in++;
        n--;
        if (out->n_pending < 3) continue;
        grvi_base64_encode(out->pending, 3, text);
        grvi_out_put(out, text, 4);
        out->n_pending = 0;
    }
    while (n >= 3) {
        const int64_t k = grvi_min_i64(n / 3 * 3, STRIP_BYTES);
        grvi_base64_encode(in, k, text);
        grvi_out_put(out, text, k / 3 * 4);
        in += k;
        n -= k;
    }
    if (n == 0) return;
    memcpy(out->pending, in, (size_t)n);
    out->n_pending = (int)n;
}

void grvi_out_end_base64(grvi_out *out)
{
    uint8_t text[4];
    if (out->n_pending == 0) return;
    grvi_base64_encode(out->pending, out->n_pending, text);
    grvi_out_put(out, text, 4);
    out->n_pending = 0;
}

void grvi_out_patch(grvi_out *out, int64_t at, const void *data, int64_t n)
{
    GRV_ASSERT(at >= 0 && at + n <= out->at);
    flush(out);
    write_at(out, at, data, n);
}

grv_status grvi_out_flush(grvi_out *out)
{
    flush(out);
    GRV_CHECK(out->saved_errno == 0, GRV_E_IO, "write %s: %s", out->path,
              strerror(out->saved_errno));
    return GRV_OK;
}
