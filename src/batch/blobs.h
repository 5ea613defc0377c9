/* Content-addressed objects of a job, on the key-value layer of the store. Internal. */
#ifndef GRVI_BATCH_BLOBS_H
#define GRVI_BATCH_BLOBS_H

#include "batch/wire.h"
#include "store/kv.h"

void grvi_hash(const void *data, int64_t n, char hash[GRVI_HASH_BYTES]);

/* Stores bytes under their hash; what is there already is not written again. */
grv_status grvi_blob_put(grvi_kv *kv, const void *data, int64_t n, grvi_blob *blob) GRV_MUST_CHECK;
/* The bytes, NUL-terminated one past the end, checked against the hash; free with grv_free. */
grv_status grvi_blob_get(grvi_kv *kv, const grvi_blob *blob, char **data) GRV_MUST_CHECK;
/* The bytes for reading, checked against the hash. All who map them on a machine share one copy; small ones, and where the store cannot map, are read. */
typedef struct grvi_blob_view {
    const void *data;
    int64_t n_bytes;
    char *owned; /* NULL: mapped */
} grvi_blob_view;
grv_status grvi_blob_view_open(grvi_kv *kv, const grvi_blob *blob, grvi_blob_view *view) GRV_MUST_CHECK;
void grvi_blob_view_close(grvi_kv *kv, grvi_blob_view *view);
/* A value ready for a record: files are read, what is larger than GRVI_INLINE_MAX becomes a blob. The wire value borrows from `value`, or
 * from *owned (free with grv_free). Futures and scalars pass. GRV_BATCH_SHARED gives the value that was broadcast. */
grv_status grvi_value_pack(grvi_kv *kv, const grv_batch_value *value, bool always_blob, grvi_wire_value *wire, char **owned) GRV_MUST_CHECK;
/* And back: a value of the caller's own. */
grv_status grvi_value_unpack(grvi_kv *kv, const grvi_wire_value *wire, grv_batch_value *value) GRV_MUST_CHECK;

#endif
