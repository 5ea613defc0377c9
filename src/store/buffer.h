/* Bytes that grow, for working memory that is kept between calls. Internal. */
#ifndef GRVI_STORE_BUFFER_H
#define GRVI_STORE_BUFFER_H

#include "core/check.h"

typedef struct grvi_buffer {
    uint8_t *data;
    int64_t n, capacity;
} grvi_buffer;

/* Room for at least `capacity` bytes; contents are kept. Grows by half at least. */
grv_status grvi_buffer_reserve(grvi_buffer *buffer, int64_t capacity) GRV_MUST_CHECK;
grv_status grvi_buffer_append(grvi_buffer *buffer, const void *data, int64_t n) GRV_MUST_CHECK;
void grvi_buffer_fini(grvi_buffer *buffer);

#endif
