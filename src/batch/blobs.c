/* Blobs, and values between the caller's form and the wire's. */
#include "batch/blobs.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

/* smaller blobs are read: a page's worth of work is not saved by sharing it */
static const int64_t mapped_from = (int64_t)1 << 20;

void grvi_hash(const void *data, int64_t n, char hash[GRVI_HASH_BYTES])
{
    const XXH128_hash_t h = XXH3_128bits(data, (size_t)n);
    (void)snprintf(hash, GRVI_HASH_BYTES, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

grv_status grvi_blob_put(grvi_kv *kv, const void *data, int64_t n, grvi_blob *blob)
{
    grvi_object object;
    bool found = false;
    grvi_hash(data, n, blob->hash);
    blob->n_bytes = n;
    GRV_TRY(kv->class->open_object(kv, blob->hash, &object, &found));
    if (found) {
        const int64_t n_there = object.n_bytes;
        kv->class->close_object(kv, &object);
        if (n_there == n) return GRV_OK;
    }
    return kv->class->put(kv, blob->hash, data, n);
}

static grv_status check_content(const grvi_blob *blob, const void *data, int64_t n)
{
    char hash[GRVI_HASH_BYTES];
    grvi_hash(data, n, hash);
    GRV_CHECK(n == blob->n_bytes && strcmp(hash, blob->hash) == 0, GRV_E_FORMAT,
              "blob %s: %lld bytes of that content expected, %lld bytes with hash %s found", blob->hash, (long long)blob->n_bytes, (long long)n, hash);
    return GRV_OK;
}

grv_status grvi_blob_get(grvi_kv *kv, const grvi_blob *blob, char **data)
{
    int64_t n = 0;
    GRV_TRY(grvi_kv_get(kv, blob->hash, blob->n_bytes, data, &n));
    GRV_CHECK(*data != NULL, GRV_E_NOT_FOUND, "blob %s is not in the job's folder", blob->hash);
    const grv_status status = check_content(blob, *data, n);
    if (status == GRV_OK) return GRV_OK;
    grv_free(*data);
    *data = NULL;
    return status;
}

grv_status grvi_blob_view_open(grvi_kv *kv, const grvi_blob *blob, grvi_blob_view *view)
{
    grvi_object object;
    bool found = false;
    *view = (grvi_blob_view){.n_bytes = blob->n_bytes};
    if (kv->class->map_object != NULL && blob->n_bytes >= mapped_from) GRV_TRY(kv->class->open_object(kv, blob->hash, &object, &found));
    if (found) {
        if (object.n_bytes == blob->n_bytes) view->data = kv->class->map_object(kv, &object);
        kv->class->close_object(kv, &object);
    }
    if (view->data == NULL) {
        GRV_TRY(grvi_blob_get(kv, blob, &view->owned));
        view->data = view->owned;
        return GRV_OK;
    }
    const grv_status status = check_content(blob, view->data, view->n_bytes);
    if (status != GRV_OK) grvi_blob_view_close(kv, view);
    return status;
}

void grvi_blob_view_close(grvi_kv *kv, grvi_blob_view *view)
{
    if (view->owned == NULL && view->data != NULL) kv->class->unmap_object(kv, view->data, view->n_bytes);
    grv_free(view->owned);
    *view = (grvi_blob_view){0};
}

grv_batch_value grv_batch_tensor(grv_store_type type, int rank, const int64_t *shape, const void *data)
{
    grv_batch_value v = {.kind = GRV_BATCH_TENSOR, .type = type, .rank = rank, .data = data};
    for (int a = 0; a < rank && a < GRV_BATCH_MAX_RANK; a++) v.shape[a] = shape[a];
    return v;
}

void grv_batch_value_fini(grv_batch_value *value)
{
    if (value == NULL) return;
    grv_free(value->owned);
    *value = (grv_batch_value){.kind = GRV_BATCH_NONE};
}

static grv_status pack_tensor(const grv_batch_value *value, grvi_wire_value *wire)
{
    int64_t n = grv_store_type_bytes(value->type);
    GRV_CHECK(n > 0, GRV_E_ARG, "a tensor of elements of fixed size expected");
    GRV_CHECK(value->rank >= 0 && value->rank <= GRV_BATCH_MAX_RANK, GRV_E_ARG, "a tensor of 0 to %d axes expected, %d found",
              GRV_BATCH_MAX_RANK, value->rank);
    for (int a = 0; a < value->rank; a++)
        GRV_CHECK(value->shape[a] >= 0 && grvi_mul_i64(n, value->shape[a], &n), GRV_E_SHAPE, "tensor: %lld elements along axis %d",
                  (long long)value->shape[a], a);
    GRV_CHECK(value->data != NULL || n == 0, GRV_E_ARG, "a tensor without data");
    wire->type = value->type;
    wire->rank = value->rank;
    memcpy(wire->shape, value->shape, sizeof wire->shape);
    wire->data = value->data;
    wire->n_bytes = n;
    return GRV_OK;
}

grv_status grvi_value_pack(grvi_kv *kv, const grv_batch_value *value, bool always_blob, grvi_wire_value *wire, char **owned)
{
    *owned = NULL;
    *wire = (grvi_wire_value){.kind = value->kind, .i64 = value->i64, .f64 = value->f64, .output = value->output, .text = value->text};
    switch (value->kind) {
    case GRV_BATCH_I64:
    case GRV_BATCH_F64:
    case GRV_BATCH_FUTURE: return GRV_OK;
    case GRV_BATCH_STRING:
        GRV_CHECK(value->text != NULL, GRV_E_ARG, "a string value without text");
        wire->data = value->text;
        wire->n_bytes = (int64_t)strlen(value->text) + 1;
        break;
    case GRV_BATCH_TENSOR: GRV_TRY(pack_tensor(value, wire)); break;
    case GRV_BATCH_FILE:
        GRV_CHECK(value->text != NULL, GRV_E_ARG, "a file value without path");
        wire->text = grvi_fs_base_name(value->text);
        if (value->data != NULL) {
            wire->data = value->data;
            wire->n_bytes = value->n_bytes;
        } else {
            GRV_TRY(grvi_fs_read(value->text, INT64_MAX / 2, owned, &wire->n_bytes));
            wire->data = *owned;
        }
        break;
    case GRV_BATCH_SHARED: /* made by grv_batch_broadcast: the fields of what was stored, and its hash in `text` */
        wire->kind = (grv_batch_kind)value->i64;
        wire->type = value->type;
        wire->rank = value->rank;
        memcpy(wire->shape, value->shape, sizeof wire->shape);
        wire->text = wire->kind == GRV_BATCH_FILE ? value->data : NULL;
        wire->n_bytes = wire->blob.n_bytes = value->n_bytes;
        memcpy(wire->blob.hash, value->text, GRVI_HASH_BYTES);
        return GRV_OK;
    default: GRV_FAIL(GRV_E_ARG, "a value of no kind");
    }
    if (!always_blob && wire->n_bytes <= GRVI_INLINE_MAX) return GRV_OK;
    const grv_status status = grvi_blob_put(kv, wire->data, wire->n_bytes, &wire->blob);
    wire->data = NULL;
    if (status == GRV_OK && wire->kind != GRV_BATCH_FILE) wire->text = NULL;
    return status;
}

grv_status grvi_value_unpack(grvi_kv *kv, const grvi_wire_value *wire, grv_batch_value *value)
{
    *value = (grv_batch_value){.kind = wire->kind, .i64 = wire->i64, .f64 = wire->f64, .type = wire->type, .rank = wire->rank,
                              .output = (int)wire->output};
    memcpy(value->shape, wire->shape, sizeof value->shape);
    if (wire->kind == GRV_BATCH_I64 || wire->kind == GRV_BATCH_F64) return GRV_OK;
    char *content = NULL;
    const bool is_file = wire->kind == GRV_BATCH_FILE;
    if (wire->blob.hash[0] != '\0') GRV_TRY(grvi_blob_get(kv, &wire->blob, &content));
    /* one block: the content, and behind it the name of a file */
    const int64_t n_content = grvi_round_up(wire->n_bytes + 1, 8), n_name = is_file ? (int64_t)strlen(wire->text) + 1 : 0;
    char *block = NULL;
    const grv_status status = GRVI_ALLOC(&block, n_content + n_name);
    if (status == GRV_OK) {
        if (wire->n_bytes > 0) memcpy(block, content != NULL ? content : wire->data, (size_t)wire->n_bytes);
        block[wire->n_bytes] = '\0';
        if (is_file) memcpy(block + n_content, wire->text, (size_t)n_name);
        value->owned = block;
        value->data = block;
        value->n_bytes = wire->n_bytes;
        value->text = is_file ? block + n_content : block;
    }
    grv_free(content);
    return status;
}
