/* The directory of a zip archive (APPNOTE 6.3.10): end record, its 64-bit form, central directory.
 * The archive is read from its end: end record (found backwards, a comment may follow it), directory, entries. Sizes come from the
 * directory alone, so that data descriptors after the entries do not matter. Of entries with one name the last counts, as
 * writers append a new one when they replace a value. Nothing is believed: what lies outside the file, overlaps, has a
 * name that is no key, or belongs to an archive in several parts refuses the archive. */
#include "store/zip_directory.h"

#include <string.h>
#include <zlib.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/kv.h"
#include "store/scratch.h"

enum {
    LOCAL_BYTES = 30,
    CENTRAL_BYTES = 46,
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    MAX_COMMENT = 0xffff,
    EXTRA_ZIP64 = 0x0001,
    EXTRA_UNICODE_PATH = 0x7075,
    FLAG_ENCRYPTED = 1,
    FLAG_UTF8 = 1 << 11,
};
static const uint32_t local_magic = 0x04034b50, central_magic = 0x02014b50, end_magic = 0x06054b50,
                      locator_magic = 0x07064b50, end64_magic = 0x06064b50;
/* a few million entries; the memory that a hostile archive could claim */
static const int64_t max_directory_bytes = (int64_t)1 << 30;

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
    return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t get64(const uint8_t *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

/* ---- where the directory lies ---- */

typedef struct end_record {
    uint64_t n_entries, n_bytes, offset; /* of the directory */
    int64_t position;                    /* where the directory must end */
} end_record;

/* Fields of the 64-bit record replace those that the plain one has no room for. */
static grv_status read_end64(int fd, const char *what, int64_t end_position, end_record *end)
{
    uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
    const int64_t at = end_position - LOCATOR_BYTES;
    if (at < END64_BYTES) return GRV_OK;
    GRV_TRY(grvi_kv_pread(fd, what, at, LOCATOR_BYTES, locator));
    if (get32(locator) != locator_magic) return GRV_OK;
    const uint64_t record_offset = get64(locator + 8);
    GRV_CHECK(get32(locator + 4) == 0 && get32(locator + 16) <= 1, GRV_E_UNSUPPORTED,
              "%s: archives in several parts are not supported", what);
    GRV_CHECK(record_offset <= (uint64_t)(at - END64_BYTES), GRV_E_FORMAT,
              "%s: zip64 end record at byte %llu, outside the archive", what,
              (unsigned long long)record_offset);
    GRV_TRY(grvi_kv_pread(fd, what, (int64_t)record_offset, END64_BYTES, record));
    GRV_CHECK(get32(record) == end64_magic, GRV_E_FORMAT, "%s: no zip64 end record at byte %llu",
              what, (unsigned long long)record_offset);
    GRV_CHECK(get32(record + 16) == 0 && get32(record + 20) == 0 &&
                  get64(record + 24) == get64(record + 32),
              GRV_E_UNSUPPORTED, "%s: archives in several parts are not supported", what);
    const end_record wide = {get64(record + 32), get64(record + 40), get64(record + 48),
                             (int64_t)record_offset};
    GRV_CHECK((end->n_entries == UINT16_MAX || end->n_entries == wide.n_entries) &&
                  (end->n_bytes == UINT32_MAX || end->n_bytes == wide.n_bytes) &&
                  (end->offset == UINT32_MAX || end->offset == wide.offset),
              GRV_E_FORMAT, "%s: end record and zip64 end record contradict each other", what);
    *end = wide;
    return GRV_OK;
}

static grv_status read_end(int fd, int64_t n_file, const char *what, end_record *end)
{
    grv_status status = GRV_OK;
    uint8_t *tail = NULL;
    const int64_t n_tail = grvi_min_i64(n_file, END_BYTES + MAX_COMMENT);
    int64_t at = n_tail - END_BYTES;
    GRV_CHECK(at >= 0, GRV_E_FORMAT, "%s is no zip archive: it has only %lld bytes", what,
              (long long)n_file);
    GRV_TRY(GRVI_ALLOC(&tail, n_tail));
    GRV_TRY_GOTO(grvi_kv_pread(fd, what, n_file - n_tail, n_tail, tail));
    while (at >= 0 &&
           !(get32(tail + at) == end_magic && get16(tail + at + 20) == n_tail - at - END_BYTES))
        at--;
    GRV_CHECK_GOTO(at >= 0, GRV_E_FORMAT,
                   "%s is no zip archive, or is cut short: no end record in its last %lld bytes",
                   what, (long long)n_tail);
    const uint8_t *const record = tail + at;
    const int64_t position = n_file - n_tail + at;
    *end = (end_record){get16(record + 10), get32(record + 12), get32(record + 16), position};
    GRV_CHECK_GOTO((get16(record + 4) == 0 || get16(record + 4) == UINT16_MAX) &&
                       (get16(record + 6) == 0 || get16(record + 6) == UINT16_MAX) &&
                       get16(record + 8) == get16(record + 10),
                   GRV_E_UNSUPPORTED, "%s: archives in several parts are not supported", what);
    GRV_TRY_GOTO(read_end64(fd, what, position, end));
    GRV_CHECK_GOTO(
        end->n_bytes <= (uint64_t)end->position &&
            end->offset == (uint64_t)end->position - end->n_bytes,
        GRV_E_FORMAT,
        "%s: a directory of %llu bytes at byte %llu does not end at its end record (byte %lld)",
        what, (unsigned long long)end->n_bytes, (unsigned long long)end->offset,
        (long long)end->position);
    GRV_CHECK_GOTO(end->n_bytes <= (uint64_t)max_directory_bytes, GRV_E_UNSUPPORTED,
                   "%s: a directory of %llu bytes, more than %lld", what,
                   (unsigned long long)end->n_bytes, (long long)max_directory_bytes);
    GRV_CHECK_GOTO(end->n_entries <= end->n_bytes / CENTRAL_BYTES, GRV_E_FORMAT,
                   "%s: %llu entries in a directory of %llu bytes", what,
                   (unsigned long long)end->n_entries, (unsigned long long)end->n_bytes);
done:
    grv_free(tail);
    return status;
}

/* ---- entries ---- */

/* A header of the directory, cut up. */
typedef struct central {
    const uint8_t *header, *name, *extra;
    int64_t n_name, n_extra;
    uint64_t n_stored, n_bytes, offset;
} central;

/* An extra field, which holds 64-bit sizes or the name in UTF-8. */
static grv_status take_extra(const char *what, uint16_t id, const uint8_t *field, int64_t n,
                             central *c)
{
    if (id == EXTRA_ZIP64) {
        uint64_t *const wide[] = {&c->n_bytes, &c->n_stored, &c->offset};
        for (int i = 0; i < 3; i++) {
            if (*wide[i] != UINT32_MAX) continue;
            GRV_CHECK(n >= 8, GRV_E_FORMAT, "%s: zip64 field of '%.*s' is too short", what,
                      (int)c->n_name, (const char *)c->name);
            *wide[i] = get64(field);
            field += 8;
            n -= 8;
        }
    } else if (id == EXTRA_UNICODE_PATH && n > 5 && field[0] == 1 &&
               (get16(c->header + 8) & FLAG_UTF8) == 0 &&
               get32(field + 1) == crc32(0, c->name, (uInt)c->n_name)) {
        c->name = field + 5;
        c->n_name = n - 5;
    }
    return GRV_OK;
}

static grv_status read_central(const char *what, const uint8_t *at, int64_t n_left, central *c)
{
    GRV_CHECK(n_left >= CENTRAL_BYTES && get32(at) == central_magic, GRV_E_FORMAT,
              "%s: its directory is damaged, %lld bytes before its end", what, (long long)n_left);
    *c = (central){.header = at,
                   .name = at + CENTRAL_BYTES,
                   .n_name = get16(at + 28),
                   .n_extra = get16(at + 30),
                   .n_stored = get32(at + 20),
                   .n_bytes = get32(at + 24),
                   .offset = get32(at + 42)};
    c->extra = c->name + c->n_name;
    GRV_CHECK(CENTRAL_BYTES + c->n_name + c->n_extra + get16(at + 32) <= n_left, GRV_E_FORMAT,
              "%s: its directory is damaged, %lld bytes before its end", what, (long long)n_left);
    GRV_CHECK(get16(at + 34) == 0, GRV_E_UNSUPPORTED,
              "%s: archives in several parts are not supported", what);
    const uint8_t *field = c->extra;
    const uint8_t *const end = c->extra + c->n_extra;
    while (end - field >= 4) {
        const uint16_t id = get16(field), n = get16(field + 2);
        if (n > end - field - 4) break; /* padding of some writers */
        GRV_TRY(take_extra(what, id, field + 4, n, c));
        field += 4 + n;
    }
    return GRV_OK;
}

/* The name becomes a key behind *names, or is refused; a folder's loses its slash. */
static grv_status take_name(const char *what, const central *c, char **names, bool *is_folder)
{
    int64_t n = c->n_name;
    *is_folder = n > 0 && c->name[n - 1] == '/';
    if (*is_folder) n--;
    GRV_CHECK(memchr(c->name, '\0', (size_t)n) == NULL, GRV_E_FORMAT,
              "%s: the name of an entry holds a zero byte", what);
    memcpy(*names, c->name, (size_t)n);
    (*names)[n] = '\0';
    const grv_status status = grvi_kv_check_key(*names);
    GRV_CHECK(status == GRV_OK, GRV_E_FORMAT, "%s: an entry is refused: %s", what,
              grvi_reason(status));
    *names += n + 1;
    return GRV_OK;
}

static grv_status take_entry(const char *what, const central *c, int64_t end, const char *name,
                             grvi_zip_entry *entry)
{
    const uint16_t flags = get16(c->header + 8);
    GRV_CHECK(c->n_stored <= (uint64_t)end && c->offset <= (uint64_t)end - c->n_stored &&
                  c->offset + c->n_stored + LOCAL_BYTES <= (uint64_t)end,
              GRV_E_FORMAT, "%s: %llu bytes of '%s' at byte %llu lie outside the archive's data",
              what, (unsigned long long)c->n_stored, name, (unsigned long long)c->offset);
    GRV_CHECK(c->n_bytes <= INT64_MAX, GRV_E_FORMAT, "%s: '%s' claims %llu bytes", what, name,
              (unsigned long long)c->n_bytes);
    *entry = (grvi_zip_entry){.name = name,
                              .n_stored = (int64_t)c->n_stored,
                              .n_bytes = (int64_t)c->n_bytes,
                              .header_offset = (int64_t)c->offset,
                              .crc = get32(c->header + 16),
                              .method = get16(c->header + 10),
                              .encrypted = (flags & FLAG_ENCRYPTED) != 0};
    GRV_CHECK(entry->method != GRVI_ZIP_STORED || entry->encrypted ||
                  entry->n_stored == entry->n_bytes,
              GRV_E_FORMAT, "%s: '%s' is stored as it is, but %lld bytes would become %lld", what,
              name, (long long)entry->n_stored, (long long)entry->n_bytes);
    return GRV_OK;
}

static grv_status read_entries(const char *what, const end_record *end, const uint8_t *bytes,
                               grvi_zip_directory *directory)
{
    char *names = directory->names;
    int64_t at = 0;
    for (uint64_t i = 0; i < end->n_entries; i++) {
        central c = {0};
        bool is_folder = false;
        const char *const name = names;
        GRV_TRY(read_central(what, bytes + at, (int64_t)end->n_bytes - at, &c));
        at += CENTRAL_BYTES + get16(c.header + 28) + c.n_extra + get16(c.header + 32);
        GRV_TRY(take_name(what, &c, &names, &is_folder));
        if (is_folder) continue;
        GRV_TRY(take_entry(what, &c, directory->end, name, &directory->entries[directory->n]));
        directory->n++;
    }
    GRV_CHECK((uint64_t)at == end->n_bytes, GRV_E_FORMAT,
              "%s: %llu entries fill %lld bytes of a directory of %llu", what,
              (unsigned long long)end->n_entries, (long long)at, (unsigned long long)end->n_bytes);
    return GRV_OK;
}

/* ---- order ---- */

/* Names lie in the order of the directory, so that their addresses tell which of two equal ones is the later. */
static int compare_entries(const void *a, const void *b)
{
    const grvi_zip_entry *const p = a, *const q = b;
    const int by_name = strcmp(p->name, q->name);
    return by_name != 0 ? by_name : (p->name > q->name) - (p->name < q->name);
}

static void keep_last_of_each(grvi_zip_directory *directory)
{
    grvi_zip_entry *const entries = directory->entries;
    int64_t n = 0;
    for (int64_t i = 0; i < directory->n; i++) {
        if (i + 1 < directory->n && strcmp(entries[i].name, entries[i + 1].name) == 0) continue;
        entries[n++] = entries[i];
    }
    directory->n = n;
}

typedef struct extent {
    int64_t begin, end;
    const char *name;
} extent;

static int compare_extents(const void *a, const void *b)
{
    const extent *const p = a, *const q = b;
    return (p->begin > q->begin) - (p->begin < q->begin);
}

/* Entries that share bytes are how small archives expand without bound. */
static grv_status check_overlap(const char *what, const grvi_zip_directory *directory)
{
    grv_status status = GRV_OK;
    extent *extents = NULL;
    if (directory->n < 2) return GRV_OK;
    GRV_TRY(GRVI_ALLOC(&extents, directory->n));
    for (int64_t i = 0; i < directory->n; i++) {
        const grvi_zip_entry *const e = &directory->entries[i];
        extents[i] =
            (extent){e->header_offset, e->header_offset + LOCAL_BYTES + e->n_stored, e->name};
    }
    qsort(extents, (size_t)directory->n, sizeof *extents, compare_extents);
    for (int64_t i = 1; i < directory->n; i++)
        GRV_CHECK_GOTO(extents[i].begin >= extents[i - 1].end, GRV_E_FORMAT,
                       "%s: entries '%s' and '%s' overlap at byte %lld", what, extents[i - 1].name,
                       extents[i].name, (long long)extents[i].begin);
done:
    grv_free(extents);
    return status;
}

grv_status grvi_zip_directory_read(int fd, int64_t n_file, const char *what,
                                   grvi_zip_directory *directory)
{
    grv_status status = GRV_OK;
    uint8_t *bytes = NULL;
    end_record end = {0};
    *directory = (grvi_zip_directory){0};
    GRV_TRY(read_end(fd, n_file, what, &end));
    directory->end = (int64_t)end.offset;
    GRV_TRY_GOTO(GRVI_ALLOC(&bytes, (int64_t)end.n_bytes));
    GRV_TRY_GOTO(grvi_kv_pread(fd, what, (int64_t)end.offset, (int64_t)end.n_bytes, bytes));
    GRV_TRY_GOTO(GRVI_ALLOC(&directory->entries, (int64_t)end.n_entries));
    /* a name and its zero byte are shorter than its header */
    GRV_TRY_GOTO(GRVI_ALLOC(&directory->names, (int64_t)end.n_bytes));
    GRV_TRY_GOTO(read_entries(what, &end, bytes, directory));
    if (directory->n > 1)
        qsort(directory->entries, (size_t)directory->n, sizeof *directory->entries,
              compare_entries);
    keep_last_of_each(directory);
    GRV_TRY_GOTO(check_overlap(what, directory));
done:
    grv_free(bytes);
    if (status != GRV_OK) grvi_zip_directory_fini(directory);
    return status;
}

void grvi_zip_directory_fini(grvi_zip_directory *directory)
{
    grv_free(directory->entries);
    grv_free(directory->names);
    *directory = (grvi_zip_directory){0};
}

grv_status grvi_zip_entry_locate(int fd, const char *what, const grvi_zip_directory *directory,
                                 grvi_zip_entry *entry)
{
    uint8_t header[LOCAL_BYTES];
    if (atomic_load(&entry->data_offset) != 0) return GRV_OK;
    GRV_TRY(grvi_kv_pread(fd, what, entry->header_offset, LOCAL_BYTES, header));
    GRV_CHECK(get32(header) == local_magic && get16(header + 8) == entry->method, GRV_E_FORMAT,
              "%s: no entry '%s' at byte %lld", what, entry->name, (long long)entry->header_offset);
    const int64_t data_offset =
        entry->header_offset + LOCAL_BYTES + get16(header + 26) + get16(header + 28);
    GRV_CHECK(data_offset <= directory->end - entry->n_stored, GRV_E_FORMAT,
              "%s: %lld bytes of '%s' at byte %lld lie outside the archive's data", what,
              (long long)entry->n_stored, entry->name, (long long)data_offset);
    atomic_store(&entry->data_offset, data_offset);
    return GRV_OK;
}
