/* Bytes of journals and mailboxes: framed records, and the fields and values in them. Internal.
 * A record is [u32 bytes of payload][u32 CRC-32C of payload][payload][zeros to a multiple of 8], appended by one write, so that a reader finds
 * it whole or not at all; numbers are little-endian, and tensors lie 8-byte aligned in the file. */
#ifndef GRVI_BATCH_WIRE_H
#define GRVI_BATCH_WIRE_H

#include "core/check.h"
#include "core/text.h"
#include "grove/batch.h"

enum { GRVI_RECORD_HEAD = 8 };
/* longer payloads are taken for damage */
#define GRVI_RECORD_MAX ((int64_t)1 << 30)
/* larger values go to blobs */
#define GRVI_INLINE_MAX ((int64_t)16 << 10)

/* ---- writing ---- */

void grvi_put_i64(grvi_text *out, int64_t x);
void grvi_put_f64(grvi_text *out, double x);
/* length, bytes, zeros to a multiple of 8 */
void grvi_put_bytes(grvi_text *out, const void *data, int64_t n);
void grvi_put_string(grvi_text *out, const char *text);

/* Begins a record of a kind in a buffer that may hold others; returns where, for the end. */
int64_t grvi_record_begin(grvi_text *out, int64_t kind);
void grvi_record_end(grvi_text *out, int64_t begin);
/* Appends whole records with as few writes as the system allows. `what` names the file. */
grv_status grvi_records_write(int fd, const char *what, const grvi_text *records) GRV_MUST_CHECK;

/* ---- reading ---- */

/* Fields of one payload. Reading past its end gives zeros and remembers it. */
typedef struct grvi_fields {
    const uint8_t *at, *end;
    bool failed;
} grvi_fields;

int64_t grvi_get_i64(grvi_fields *in);
double grvi_get_f64(grvi_fields *in);
const void *grvi_get_bytes(grvi_fields *in, int64_t *n);
/* NUL-terminated, borrowed from the payload; "" after damage. */
const char *grvi_get_string(grvi_fields *in);

/* A file of records that grows. */
typedef struct grvi_record_reader {
    int fd;
    int64_t offset;    /* of the next record in the file */
    grvi_text buffer;  /* what was read from `start` on */
    int64_t start;
} grvi_record_reader;

void grvi_record_reader_init(grvi_record_reader *reader, int fd, int64_t offset);
void grvi_record_reader_fini(grvi_record_reader *reader);
/* The next whole record: its kind and the fields after it, borrowed until the next call, and its offset. GRV_AGAIN if there is none yet (or
 * what is there does not have its checksum: half of a write, or damage). */
grv_status grvi_record_next(grvi_record_reader *reader, int64_t *kind, grvi_fields *fields, int64_t *offset) GRV_MUST_CHECK;
/* Does a whole record begin anywhere behind an offset of the file? Then what stands at the offset is damage: a write that was cut off has nothing behind it. */
grv_status grvi_record_is_behind(int fd, const char *what, int64_t offset, bool *is_behind) GRV_MUST_CHECK;
/* The record at an offset, whose payload is kept in `buffer`. */
grv_status grvi_record_at(int fd, const char *what, int64_t offset, grvi_text *buffer, int64_t *kind, grvi_fields *fields) GRV_MUST_CHECK;

/* ---- values ---- */

/* Content address: 128 bits of XXH3 as 32 hex digits. */
enum { GRVI_HASH_BYTES = 33 };
typedef struct grvi_blob {
    char hash[GRVI_HASH_BYTES];
    int64_t n_bytes;
} grvi_blob;

/* A value as it lies in a record: header and either the payload or the blob that holds it. */
typedef struct grvi_wire_value {
    grv_batch_kind kind; /* never GRV_BATCH_SHARED: that is a kind with a blob */
    int64_t i64;         /* whole number, or task of a future */
    int64_t output;      /* of a future */
    double f64;
    const char *text;    /* string, or name of a file */
    grv_store_type type;
    int rank;
    int64_t shape[GRV_BATCH_MAX_RANK];
    const void *data;    /* of tensors, files and strings: here, or NULL and in the blob */
    int64_t n_bytes;
    grvi_blob blob;      /* hash "" if none */
} grvi_wire_value;

void grvi_put_value(grvi_text *out, const grvi_wire_value *value);
/* Borrowed from the fields. Fails the fields if the value makes no sense. */
void grvi_get_value(grvi_fields *in, grvi_wire_value *value);

#endif
