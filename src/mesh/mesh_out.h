/* Buffered output to a file that is being written. Internal. A failure is remembered; grvi_out_flush tells. */
#ifndef GRVI_MESH_MESH_OUT_H
#define GRVI_MESH_MESH_OUT_H

#include "core/check.h"

typedef struct grvi_out {
    int fd;
    const char *path;
    uint8_t *buffer; /* owned */
    int64_t n_buffered;
    int64_t at;         /* bytes of the file, those buffered included */
    int saved_errno;    /* of the first failure; 0: none */
    uint8_t pending[3]; /* of base64: not encoded yet */
    int n_pending;
} grvi_out;

grv_status grvi_out_init(grvi_out *out, int fd, const char *path) GRV_MUST_CHECK;
void grvi_out_fini(grvi_out *out);
void grvi_out_put(grvi_out *out, const void *data, int64_t n);
void grvi_out_printf(grvi_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Base64 of a stream of bytes that is given in parts; the end pads it. */
void grvi_out_put_base64(grvi_out *out, const void *data, int64_t n);
void grvi_out_end_base64(grvi_out *out);
/* Writes over bytes that were put before. */
void grvi_out_patch(grvi_out *out, int64_t at, const void *data, int64_t n);
grv_status grvi_out_flush(grvi_out *out) GRV_MUST_CHECK;

#endif
