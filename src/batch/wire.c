/* Records and values. */
#include "batch/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "kernels/crc32c.h"

void grvi_put_i64(grvi_text *out, int64_t x) { grvi_text_append_n(out, (const char *)&x, sizeof x); }
void grvi_put_f64(grvi_text *out, double x) { grvi_text_append_n(out, (const char *)&x, sizeof x); }

void grvi_put_bytes(grvi_text *out, const void *data, int64_t n)
{
    static const char zeros[8];
    grvi_put_i64(out, n);
    if (n > 0) grvi_text_append_n(out, data, n);
    grvi_text_append_n(out, zeros, grvi_round_up(n, 8) - n);
}

void grvi_put_string(grvi_text *out, const char *text) { grvi_put_bytes(out, text, (int64_t)strlen(text) + 1); }

int64_t grvi_record_begin(grvi_text *out, int64_t kind)
{
    const int64_t begin = out->n;
    grvi_put_i64(out, 0);
    grvi_put_i64(out, kind);
    return begin;
}

void grvi_record_end(grvi_text *out, int64_t begin)
{
    if (out->failed) return;
    const uint32_t n = (uint32_t)(out->n - begin - GRVI_RECORD_HEAD);
    const uint32_t crc = grvi_crc32c(out->data + begin + GRVI_RECORD_HEAD, n);
    memcpy(out->data + begin, &n, sizeof n);
    memcpy(out->data + begin + sizeof n, &crc, sizeof crc);
}

grv_status grvi_records_write(int fd, const char *what, const grvi_text *records)
{
    GRV_TRY(grvi_text_status(records));
    for (int64_t done = 0; done < records->n;) {
        const ssize_t n = write(fd, records->data + done, (size_t)(records->n - done));
        if (n < 0 && errno == EINTR) continue;
        GRV_CHECK(n > 0, GRV_E_IO, "write %s: %s", what, n < 0 ? strerror(errno) : "nothing was taken");
        done += n;
    }
    return GRV_OK;
}

/* ---- reading ---- */

static const void *take(grvi_fields *in, int64_t n)
{
    if (in->failed || n < 0 || n > in->end - in->at) {
        in->failed = true;
        return NULL;
    }
    const void *const p = in->at;
    in->at += n;
    return p;
}

int64_t grvi_get_i64(grvi_fields *in)
{
    int64_t x = 0;
    const void *const p = take(in, sizeof x);
    if (p != NULL) memcpy(&x, p, sizeof x);
    return x;
}

double grvi_get_f64(grvi_fields *in)
{
    double x = 0;
    const void *const p = take(in, sizeof x);
    if (p != NULL) memcpy(&x, p, sizeof x);
    return x;
}

const void *grvi_get_bytes(grvi_fields *in, int64_t *n)
{
    *n = grvi_get_i64(in);
    if (*n < 0 || *n > GRVI_RECORD_MAX) in->failed = true;
    const void *const p = in->failed ? NULL : take(in, grvi_round_up(*n, 8));
    if (p == NULL) *n = 0;
    return p;
}

const char *grvi_get_string(grvi_fields *in)
{
    int64_t n = 0;
    const char *const text = grvi_get_bytes(in, &n);
    if (text != NULL && n > 0 && text[n - 1] == '\0') return text;
    in->failed = true;
    return "";
}

void grvi_record_reader_init(grvi_record_reader *reader, int fd, int64_t offset)
{
    *reader = (grvi_record_reader){.fd = fd, .offset = offset, .start = offset};
}

void grvi_record_reader_fini(grvi_record_reader *reader)
{
    if (reader->fd >= 0) (void)close(reader->fd);
    reader->fd = -1;
    grvi_text_fini(&reader->buffer);
}

/* Makes room at the end of the buffer and reads what there is; *got = 0 at the end of the file. */
static grv_status read_more(grvi_record_reader *r, int64_t want, int64_t *got)
{
    const int64_t used = r->offset - r->start;
    if (used > 0 && used == r->buffer.n) {
        r->buffer.n = 0;
        r->start = r->offset;
    } else if (used > ((int64_t)1 << 20)) {
        memmove(r->buffer.data, r->buffer.data + used, (size_t)(r->buffer.n - used));
        r->buffer.n -= used;
        r->start = r->offset;
    }
    const int64_t room = r->buffer.n + grvi_max_i64(want, (int64_t)1 << 16);
    if (room > r->buffer.capacity) {
        GRV_TRY(GRVI_REALLOC(&r->buffer.data, room));
        r->buffer.capacity = room;
    }
    ssize_t n = 0;
    do n = pread(r->fd, r->buffer.data + r->buffer.n, (size_t)(r->buffer.capacity - r->buffer.n), r->start + r->buffer.n);
    while (n < 0 && errno == EINTR);
    GRV_CHECK(n >= 0, GRV_E_IO, "read records: %s", strerror(errno));
    r->buffer.n += n;
    *got = n;
    return GRV_OK;
}

/* The whole record at p of n bytes? *size: its bytes as far as known. */
static bool is_whole(const char *p, int64_t n, int64_t *size, bool *is_damaged)
{
    uint32_t length = 0, crc = 0;
    *size = GRVI_RECORD_HEAD;
    *is_damaged = false;
    if (n < GRVI_RECORD_HEAD) return false;
    memcpy(&length, p, sizeof length);
    memcpy(&crc, p + sizeof length, sizeof crc);
    if (length < 8 || length % 8 != 0 || (int64_t)length > GRVI_RECORD_MAX) {
        *is_damaged = true;
        return false;
    }
    *size = GRVI_RECORD_HEAD + (int64_t)length;
    if (n < *size) return false;
    *is_damaged = grvi_crc32c(p + GRVI_RECORD_HEAD, length) != crc;
    return !*is_damaged;
}

grv_status grvi_record_next(grvi_record_reader *r, int64_t *kind, grvi_fields *fields, int64_t *offset)
{
    bool is_fresh = false; /* the buffer's end was just read again */
    for (;;) {
        int64_t size = 0, got = 0;
        bool is_damaged = false;
        const int64_t at = r->offset - r->start, have = r->buffer.n - at;
        const char *const p = have > 0 ? r->buffer.data + at : NULL; /* an empty buffer has no data to point into */
        if (have > 0 && is_whole(p, have, &size, &is_damaged)) {
            *fields = (grvi_fields){(const uint8_t *)p + GRVI_RECORD_HEAD, (const uint8_t *)p + size, false};
            *kind = grvi_get_i64(fields);
            *offset = r->offset;
            r->offset += size;
            return GRV_OK;
        }
        if (is_damaged && !is_fresh) { /* the bytes may have come between: look at the file again */
            r->buffer.n = r->offset - r->start;
            is_fresh = true;
            GRV_TRY(read_more(r, size, &got));
            if (got > 0) continue;
            return GRV_AGAIN;
        }
        if (is_damaged) return GRV_AGAIN;
        GRV_TRY(read_more(r, size - have, &got));
        if (got > 0) continue;
        r->buffer.n = r->offset - r->start; /* a part of a record is read anew: its writer may have been killed, and another cuts it off */
        return GRV_AGAIN;
    }
}

grv_status grvi_record_is_behind(int fd, const char *what, int64_t offset, bool *is_behind)
{
    struct stat info;
    char *bytes = NULL;
    int64_t n = 0, size = 0;
    bool is_damaged = false;
    grv_status status = GRV_OK;
    *is_behind = false;
    GRV_CHECK(fstat(fd, &info) == 0, GRV_E_IO, "stat %s: %s", what, strerror(errno));
    if (info.st_size <= offset) return GRV_OK;
    GRV_TRY(GRVI_ALLOC(&bytes, info.st_size - offset));
    while (n < info.st_size - offset) {
        const ssize_t got = pread(fd, bytes + n, (size_t)(info.st_size - offset - n), offset + n);
        if (got < 0 && errno == EINTR) continue;
        GRV_CHECK_GOTO(got >= 0, GRV_E_IO, "read %s: %s", what, strerror(errno));
        if (got == 0) break;
        n += got;
    }
    for (int64_t at = 8; at < n && !*is_behind; at += 8) *is_behind = is_whole(bytes + at, n - at, &size, &is_damaged);
done:
    grv_free(bytes);
    return status;
}

grv_status grvi_record_at(int fd, const char *what, int64_t offset, grvi_text *buffer, int64_t *kind, grvi_fields *fields)
{
    int64_t size = GRVI_RECORD_HEAD, have = 0;
    bool is_damaged = false;
    for (;;) {
        const int64_t want = grvi_max_i64(size, 4096);
        if (want > buffer->capacity) {
            GRV_TRY(GRVI_REALLOC(&buffer->data, want));
            buffer->capacity = want;
        }
        const ssize_t n = pread(fd, buffer->data + have, (size_t)(buffer->capacity - have), offset + have);
        if (n < 0 && errno == EINTR) continue;
        GRV_CHECK(n >= 0, GRV_E_IO, "read %s: %s", what, strerror(errno));
        have += n;
        if (is_whole(buffer->data, have, &size, &is_damaged)) break;
        GRV_CHECK(!is_damaged && n > 0, GRV_E_FORMAT, "%s: the record at byte %lld is damaged", what, (long long)offset);
    }
    buffer->n = have;
    *fields = (grvi_fields){(const uint8_t *)buffer->data + GRVI_RECORD_HEAD, (const uint8_t *)buffer->data + size, false};
    *kind = grvi_get_i64(fields);
    return GRV_OK;
}

/* ---- values ---- */

void grvi_put_value(grvi_text *out, const grvi_wire_value *v)
{
    grvi_put_i64(out, (int64_t)v->kind);
    switch (v->kind) {
    case GRV_BATCH_I64: grvi_put_i64(out, v->i64); return;
    case GRV_BATCH_F64: grvi_put_f64(out, v->f64); return;
    case GRV_BATCH_FUTURE:
        grvi_put_i64(out, v->i64);
        grvi_put_i64(out, v->output);
        return;
    case GRV_BATCH_TENSOR:
        grvi_put_i64(out, (int64_t)v->type);
        grvi_put_i64(out, v->rank);
        for (int a = 0; a < v->rank; a++) grvi_put_i64(out, v->shape[a]);
        break;
    case GRV_BATCH_FILE: grvi_put_string(out, v->text); break;
    case GRV_BATCH_STRING: break;
    case GRV_BATCH_NONE:
    case GRV_BATCH_SHARED: GRV_ASSERT(false); return;
    }
    grvi_put_string(out, v->blob.hash);
    if (v->blob.hash[0] != '\0') grvi_put_i64(out, v->blob.n_bytes);
    else grvi_put_bytes(out, v->data, v->n_bytes);
}

static void get_content(grvi_fields *in, grvi_wire_value *v)
{
    const char *const hash = grvi_get_string(in);
    if (strlen(hash) >= GRVI_HASH_BYTES || strspn(hash, "0123456789abcdef") != strlen(hash)) in->failed = true;
    if (in->failed) return;
    memcpy(v->blob.hash, hash, strlen(hash) + 1);
    if (hash[0] != '\0') v->blob.n_bytes = v->n_bytes = grvi_get_i64(in);
    else v->data = grvi_get_bytes(in, &v->n_bytes);
    if (v->n_bytes < 0) in->failed = true;
}

static void get_tensor_head(grvi_fields *in, grvi_wire_value *v, int64_t *n_bytes)
{
    const int64_t type = grvi_get_i64(in), rank = grvi_get_i64(in);
    *n_bytes = type >= 0 && type < INT_MAX ? grv_store_type_bytes((grv_store_type)type) : 0;
    if (*n_bytes == 0 || rank < 0 || rank > GRV_BATCH_MAX_RANK) {
        in->failed = true;
        return;
    }
    v->type = (grv_store_type)type;
    v->rank = (int)rank;
    for (int a = 0; a < v->rank; a++) {
        v->shape[a] = grvi_get_i64(in);
        if (v->shape[a] < 0 || !grvi_mul_i64(*n_bytes, v->shape[a], n_bytes)) in->failed = true;
    }
}

void grvi_get_value(grvi_fields *in, grvi_wire_value *v)
{
    int64_t n_bytes = 0;
    *v = (grvi_wire_value){.kind = GRV_BATCH_NONE};
    const int64_t kind = grvi_get_i64(in);
    if (in->failed) return;
    v->kind = (grv_batch_kind)kind;
    switch (kind) {
    case GRV_BATCH_I64: v->i64 = grvi_get_i64(in); break;
    case GRV_BATCH_F64: v->f64 = grvi_get_f64(in); break;
    case GRV_BATCH_FUTURE:
        v->i64 = grvi_get_i64(in);
        v->output = grvi_get_i64(in);
        break;
    case GRV_BATCH_STRING:
        get_content(in, v);
        v->text = v->data;
        if (v->data != NULL && (v->n_bytes < 1 || v->text[v->n_bytes - 1] != '\0')) in->failed = true;
        break;
    case GRV_BATCH_TENSOR:
        get_tensor_head(in, v, &n_bytes);
        get_content(in, v);
        if (v->n_bytes != n_bytes) in->failed = true;
        break;
    case GRV_BATCH_FILE:
        v->text = grvi_get_string(in);
        get_content(in, v);
        break;
    default: in->failed = true; break;
    }
}
