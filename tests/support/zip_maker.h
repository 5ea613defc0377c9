/* Zip archives made byte by byte, good and bad ones. */
#ifndef GRVI_TEST_ZIP_MAKER_H
#define GRVI_TEST_ZIP_MAKER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* An entry. What is zero is as usual. */
typedef struct zip_item {
    const char *name;
    const void *data;
    size_t n;
    int method;          /* 0 stored, 8 deflated; others: the bytes as they are */
    int flags;           /* general purpose bits; 8: sizes follow in a data descriptor */
    int n_local_extra;   /* bytes of padding in the local header only */
    int zip64;           /* sizes in 64-bit fields */
    uint32_t crc_change; /* xor */
} zip_item;

typedef struct zip_bytes {
    uint8_t bytes[1 << 18];
    size_t n;
    size_t directory, end; /* where they begin */
} zip_bytes;

static inline void put16(zip_bytes *zip, unsigned value)
{
    zip->bytes[zip->n++] = (uint8_t)value;
    zip->bytes[zip->n++] = (uint8_t)(value >> 8);
}

static inline void put32(zip_bytes *zip, uint32_t value)
{
    put16(zip, value & 0xffff);
    put16(zip, value >> 16);
}

static inline void put64(zip_bytes *zip, uint64_t value)
{
    put32(zip, (uint32_t)value);
    put32(zip, (uint32_t)(value >> 32));
}

static inline void put_bytes(zip_bytes *zip, const void *data, size_t n)
{
    if (n > 0) memcpy(zip->bytes + zip->n, data, n);
    zip->n += n;
}

static inline void set16(zip_bytes *zip, size_t at, unsigned value)
{
    const size_t n = zip->n;
    zip->n = at;
    put16(zip, value);
    zip->n = n;
}

static inline void set32(zip_bytes *zip, size_t at, uint32_t value)
{
    set16(zip, at, value & 0xffff);
    set16(zip, at + 2, value >> 16);
}

/* What local header and directory have in common; returns nothing, writes 26 bytes. */
static inline void put_common(zip_bytes *zip, const zip_item *item, uint32_t crc, size_t n_stored,
                              int hide_sizes, int n_extra)
{
    put16(zip, 20);
    put16(zip, (unsigned)item->flags);
    put16(zip, (unsigned)item->method);
    put32(zip, 0x5a215a21); /* time */
    put32(zip, hide_sizes ? 0 : crc ^ item->crc_change);
    put32(zip, hide_sizes ? 0 : item->zip64 ? UINT32_MAX : (uint32_t)n_stored);
    put32(zip, hide_sizes ? 0 : item->zip64 ? UINT32_MAX : (uint32_t)item->n);
    put16(zip, (unsigned)strlen(item->name));
    put16(zip, (unsigned)n_extra);
}

/* The entry's bytes as they lie in the archive; returns their number. */
static inline size_t put_data(zip_bytes *zip, const zip_item *item)
{
    if (item->method != 8) {
        put_bytes(zip, item->data, item->n);
        return item->n;
    }
    z_stream stream = {0};
    if (deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) abort();
    uint8_t *const in = malloc(item->n + 1);
    if (in == NULL) abort();
    if (item->n > 0) memcpy(in, item->data, item->n);
    stream.next_in = in;
    stream.avail_in = (uInt)item->n;
    stream.next_out = zip->bytes + zip->n;
    stream.avail_out = (uInt)(sizeof zip->bytes - zip->n);
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END) abort();
    const size_t n = stream.total_out;
    (void)deflateEnd(&stream);
    free(in);
    zip->n += n;
    return n;
}

static inline void put_zip64_sizes(zip_bytes *zip, const zip_item *item, size_t n_stored)
{
    if (!item->zip64) return;
    put16(zip, 1);
    put16(zip, 16);
    put64(zip, item->n);
    put64(zip, n_stored);
}

/* End record, and its 64-bit form before it if wanted. */
static inline void put_end(zip_bytes *zip, size_t n_items, int zip64, const char *comment)
{
    const size_t n_directory = zip->n - zip->directory, end64 = zip->n;
    if (zip64) {
        put32(zip, 0x06064b50);
        put64(zip, 44);
        put32(zip, 45 | 45U << 16);
        put64(zip, 0); /* disks */
        put64(zip, n_items);
        put64(zip, n_items);
        put64(zip, n_directory);
        put64(zip, zip->directory);
        put32(zip, 0x07064b50);
        put32(zip, 0);
        put64(zip, end64);
        put32(zip, 1);
    }
    zip->end = zip->n;
    put32(zip, 0x06054b50);
    put32(zip, 0); /* disks */
    put16(zip, zip64 ? UINT16_MAX : (unsigned)n_items);
    put16(zip, zip64 ? UINT16_MAX : (unsigned)n_items);
    put32(zip, zip64 ? UINT32_MAX : (uint32_t)n_directory);
    put32(zip, zip64 ? UINT32_MAX : (uint32_t)zip->directory);
    put16(zip, (unsigned)strlen(comment));
    put_bytes(zip, comment, strlen(comment));
}

/* An archive of some entries. */
static inline void make_zip(zip_bytes *zip, const zip_item *items, size_t n_items, int zip64,
                            const char *comment)
{
    size_t offsets[64], n_stored[64];
    memset(zip, 0, sizeof *zip);
    for (size_t i = 0; i < n_items; i++) {
        const zip_item *const item = &items[i];
        const uint32_t crc = (uint32_t)crc32(0, item->data, (uInt)item->n);
        const int hides = (item->flags & 8) != 0, n_zip64 = item->zip64 ? 20 : 0;
        offsets[i] = zip->n;
        put32(zip, 0x04034b50);
        put_common(zip, item, crc, 0, hides, n_zip64 + item->n_local_extra);
        put_bytes(zip, item->name, strlen(item->name));
        const size_t sizes = zip->n;
        put_zip64_sizes(zip, item, 0);
        zip->n += (size_t)item->n_local_extra;
        n_stored[i] = put_data(zip, item);
        if (item->zip64)
            set32(zip, sizes + 12, (uint32_t)n_stored[i]);
        else if (!hides)
            set32(zip, offsets[i] + 18, (uint32_t)n_stored[i]);
        if (hides) {
            put32(zip, 0x08074b50);
            put32(zip, crc);
            put32(zip, (uint32_t)n_stored[i]);
            put32(zip, (uint32_t)item->n);
        }
    }
    zip->directory = zip->n;
    for (size_t i = 0; i < n_items; i++) {
        const zip_item *const item = &items[i];
        put32(zip, 0x02014b50);
        put16(zip, 0x031e);
        put_common(zip, item, (uint32_t)crc32(0, item->data, (uInt)item->n), n_stored[i], 0,
                   item->zip64 ? 20 : 0);
        put16(zip, 0); /* comment */
        put16(zip, 0); /* disk */
        put16(zip, 0);
        put32(zip, 0);
        put32(zip, (uint32_t)offsets[i]);
        put_bytes(zip, item->name, strlen(item->name));
        put_zip64_sizes(zip, item, n_stored[i]);
    }
    put_end(zip, n_items, zip64, comment);
}

/* Offset of the directory's header number i. */
static inline size_t zip_header(const zip_bytes *zip, int i)
{
    size_t at = zip->directory;
    for (; i > 0; i--)
        at += 46 + (size_t)(zip->bytes[at + 28] | zip->bytes[at + 29] << 8) +
              (size_t)(zip->bytes[at + 30] | zip->bytes[at + 31] << 8);
    return at;
}

#endif
