/* Bytes that grow. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/buffer.h"

grv_status grvi_buffer_reserve(grvi_buffer *buffer, int64_t capacity)
{
    if (capacity <= buffer->capacity) return GRV_OK;
    const int64_t grown = buffer->capacity + buffer->capacity / 2;
    const int64_t wanted = grvi_round_up(grvi_max_i64(capacity, grown), 64);
    GRV_TRY(GRVI_REALLOC(&buffer->data, wanted));
    buffer->capacity = wanted;
    return GRV_OK;
}

grv_status grvi_buffer_append(grvi_buffer *buffer, const void *data, int64_t n)
{
    GRV_TRY(grvi_buffer_reserve(buffer, buffer->n + n));
    if (n > 0) memcpy(buffer->data + buffer->n, data, (size_t)n);
    buffer->n += n;
    return GRV_OK;
}

void grvi_buffer_fini(grvi_buffer *buffer)
{
    grv_free(buffer->data);
    *buffer = (grvi_buffer){0};
}
