/* Key-value back end on a zip archive, for reading: a key is the name of an entry.
 * A stored entry is a byte range of the archive, read like a part of a file. A deflated one has no parts: it is inflated when it
 * is first read, whole into the caller's memory where the caller wants all of it, else into memory of the opened object.
 * What is read whole is checked against its CRC-32. The directory is read once; an archive that changes afterwards is an error. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/text.h"
#include "grove/core.h"
#include "store/kv.h"
#include "store/zip_directory.h"

/* most that deflate can expand: 258 bytes out of two bits */
enum { MAX_RATIO = 1032 };

typedef struct kv_zip {
    grvi_kv base;
    int fd;
    struct stat info; /* of the archive when the directory was read */
    char *path;
    int64_t max_inflated_bytes;
    grvi_zip_directory directory;
    int64_t first, last; /* entries below the root of the store */
    int64_t n_root;      /* bytes of their names that the root takes, its slash included */
} kv_zip;

/* A deflated entry that is open. */
typedef struct inflated {
    pthread_mutex_t lock;
    uint8_t *bytes; /* NULL until a part of it is read */
} inflated;

/* ---- looking up ---- */

/* First entry in [first, last) whose key is not before the text's first n bytes and `next`. Keys below "a" lie from
 * ("a", '/') up to ("a", '/' + 1); the key "a" itself is at ("a", 0) if it is there. */
static int64_t find(const kv_zip *zip, int64_t first, int64_t last, const char *text, int64_t n,
                    char next)
{
    while (first < last) {
        const int64_t middle = first + (last - first) / 2;
        const char *const key = zip->directory.entries[middle].name + zip->n_root;
        const int order = strncmp(key, text, (size_t)n);
        if (order < 0 || (order == 0 && (unsigned char)key[n] < (unsigned char)next))
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

static grvi_zip_entry *find_entry(const kv_zip *zip, const char *key)
{
    const int64_t i = find(zip, zip->first, zip->last, key, (int64_t)strlen(key), '\0');
    if (i == zip->last) return NULL;
    grvi_zip_entry *const entry = &zip->directory.entries[i];
    return strcmp(entry->name + zip->n_root, key) == 0 ? entry : NULL;
}

/* A folder below the root becomes the root. */
static void enter(kv_zip *zip, const char *folder, int64_t n)
{
    if (n == 0) return;
    const int64_t first = find(zip, zip->first, zip->last, folder, n, '/');
    zip->last = find(zip, first, zip->last, folder, n, '/' + 1);
    zip->first = first;
    zip->n_root += n + 1;
}

/* Are there metadata of a group or an array at the root, or in a folder below it? */
static bool has_metadata(const kv_zip *zip, const char *folder, int64_t n)
{
    static const char *const names[] = {"zarr.json", ".zgroup", ".zarray"};
    kv_zip view = *zip;
    enter(&view, folder, n);
    for (int i = 0; i < 3; i++) {
        if (view.first < view.last && find_entry(&view, names[i]) != NULL) return true;
    }
    return false;
}

/* An archive of a folder rather than of what is in it: metadata not at the root, but in one folder there. */
static void enter_only_store(kv_zip *zip)
{
    const char *only = NULL;
    int64_t n_only = 0;
    if (has_metadata(zip, "", 0)) return;
    for (int64_t i = zip->first; i < zip->last;) {
        const char *const key = zip->directory.entries[i].name + zip->n_root;
        const int64_t n = (int64_t)strcspn(key, "/");
        if (key[n] == '/' && has_metadata(zip, key, n)) {
            if (only != NULL) return;
            only = key;
            n_only = n;
        }
        i = key[n] == '/' ? find(zip, i, zip->last, key, n, '/' + 1) : i + 1;
    }
    if (only != NULL) enter(zip, only, n_only);
}

/* ---- reading ---- */

static grv_status check_method(const kv_zip *zip, const grvi_zip_entry *entry)
{
    GRV_CHECK(!entry->encrypted, GRV_E_UNSUPPORTED, "%s: '%s' is encrypted", zip->path,
              entry->name);
    if (entry->method == GRVI_ZIP_STORED) return GRV_OK;
    GRV_CHECK(entry->method == GRVI_ZIP_DEFLATED, GRV_E_UNSUPPORTED,
              "%s: '%s' is compressed by method %d%s; stored (0) and deflate (8) are supported",
              zip->path, entry->name, (int)entry->method,
              entry->method == 9    ? " (deflate64)"
              : entry->method == 12 ? " (bzip2)"
              : entry->method == 14 ? " (lzma)"
              : entry->method == 93 ? " (zstd)"
              : entry->method == 95 ? " (xz)"
                                    : "");
    GRV_CHECK(entry->n_bytes / MAX_RATIO <= entry->n_stored, GRV_E_FORMAT,
              "%s: '%s' claims %lld bytes, which %lld deflated bytes cannot be", zip->path,
              entry->name, (long long)entry->n_bytes, (long long)entry->n_stored);
    GRV_CHECK(entry->n_bytes <= zip->max_inflated_bytes, GRV_E_UNSUPPORTED,
              "%s: '%s' is deflated and has %lld bytes, more than %lld; store it uncompressed",
              zip->path, entry->name, (long long)entry->n_bytes,
              (long long)zip->max_inflated_bytes);
    return GRV_OK;
}

static grv_status check_unchanged(const kv_zip *zip)
{
    struct stat info;
    GRV_CHECK(fstat(zip->fd, &info) == 0, GRV_E_IO, "%s: %s", zip->path, strerror(errno));
    GRV_CHECK(info.st_size == zip->info.st_size &&
                  info.st_mtim.tv_sec == zip->info.st_mtim.tv_sec &&
                  info.st_mtim.tv_nsec == zip->info.st_mtim.tv_nsec,
              GRV_E_IO, "%s has changed since it was opened", zip->path);
    return GRV_OK;
}

static grv_status zip_open(grvi_kv *kv, const char *key, grvi_object *object, bool *found)
{
    kv_zip *const zip = (kv_zip *)kv;
    inflated *state = NULL;
    *found = false;
    grvi_zip_entry *const entry = find_entry(zip, key);
    if (entry == NULL) return GRV_OK;
    GRV_TRY(check_unchanged(zip));
    GRV_TRY(check_method(zip, entry));
    GRV_TRY(grvi_zip_entry_locate(zip->fd, zip->path, &zip->directory, entry));
    if (entry->method == GRVI_ZIP_DEFLATED) {
        GRV_TRY(GRVI_CALLOC(&state, 1));
        (void)pthread_mutex_init(&state->lock, NULL);
    }
    *object = (grvi_object){
        .n_bytes = entry->n_bytes,
        .identity = {(uint64_t)entry->n_bytes, entry->crc, (uint64_t)entry->header_offset},
        .handle = entry - zip->directory.entries,
        .state = state};
    *found = true;
    return GRV_OK;
}

static grv_status check_crc(const kv_zip *zip, const grvi_zip_entry *entry, const uint8_t *bytes)
{
    uLong crc = 0;
    for (int64_t at = 0; at < entry->n_bytes;) {
        const int64_t n = grvi_min_i64(entry->n_bytes - at, 1 << 30);
        crc = crc32(crc, bytes + at, (uInt)n);
        at += n;
    }
    GRV_CHECK(crc == entry->crc, GRV_E_FORMAT,
              "%s: '%s' is damaged: CRC-32 %08x expected, %08x found", zip->path, entry->name,
              (unsigned)entry->crc, (unsigned)crc);
    return GRV_OK;
}

/* The entry's bytes through an inflate stream, piece by piece, into out. */
static grv_status run_inflate(const kv_zip *zip, const grvi_zip_entry *entry, z_stream *stream,
                              uint8_t *out)
{
    uint8_t piece[16384];
    int64_t n_in = 0, n_out = 0;
    int result = Z_OK;
    while (result == Z_OK) {
        if (stream->avail_in == 0 && n_in < entry->n_stored) {
            const int64_t n = grvi_min_i64(entry->n_stored - n_in, (int64_t)sizeof piece);
            GRV_TRY(grvi_kv_pread(zip->fd, zip->path, atomic_load(&entry->data_offset) + n_in, n,
                                  piece));
            n_in += n;
            stream->next_in = piece;
            stream->avail_in = (uInt)n;
        }
        const uInt room = (uInt)grvi_min_i64(entry->n_bytes - n_out, 1 << 30);
        stream->next_out = out + n_out;
        stream->avail_out = room;
        result = inflate(stream, Z_NO_FLUSH); /* Z_BUF_ERROR when input or room has run out */
        n_out += room - stream->avail_out;
    }
    GRV_CHECK(result == Z_STREAM_END && n_out == entry->n_bytes && n_in == entry->n_stored &&
                  stream->avail_in == 0,
              result == Z_MEM_ERROR ? GRV_E_NOMEM : GRV_E_FORMAT,
              "%s: '%s': %lld deflated bytes are to become %lld, %lld came (zlib %d)", zip->path,
              entry->name, (long long)entry->n_stored, (long long)entry->n_bytes, (long long)n_out,
              result);
    return GRV_OK;
}

static grv_status inflate_entry(const kv_zip *zip, const grvi_zip_entry *entry, uint8_t *out)
{
    uint8_t nothing; /* zlib wants a place for no bytes too */
    z_stream stream = {0};
    GRV_CHECK(inflateInit2(&stream, -MAX_WBITS) == Z_OK, GRV_E_NOMEM,
              "%s: no memory to inflate '%s'", zip->path, entry->name);
    const grv_status status = run_inflate(zip, entry, &stream, entry->n_bytes > 0 ? out : &nothing);
    (void)inflateEnd(&stream);
    return status == GRV_OK ? check_crc(zip, entry, out) : status;
}

/* A part of a deflated entry; the first caller inflates, others wait. */
static grv_status read_part(const kv_zip *zip, const grvi_zip_entry *entry, inflated *state,
                            int64_t offset, int64_t n, uint8_t *out)
{
    grv_status status = GRV_OK;
    uint8_t *bytes = NULL;
    (void)pthread_mutex_lock(&state->lock);
    if (state->bytes == NULL) {
        GRV_TRY_GOTO(GRVI_ALLOC(&bytes, entry->n_bytes));
        GRV_TRY_GOTO(inflate_entry(zip, entry, bytes));
        state->bytes = bytes;
        bytes = NULL;
    }
    memcpy(out, state->bytes + offset, (size_t)n);
done:
    (void)pthread_mutex_unlock(&state->lock);
    grv_free(bytes);
    return status;
}

static grv_status zip_read(grvi_kv *kv, const grvi_object *object, const char *key, int64_t offset,
                           int64_t n, void *out)
{
    const kv_zip *const zip = (kv_zip *)kv;
    const grvi_zip_entry *const entry = &zip->directory.entries[object->handle];
    const bool whole = offset == 0 && n == entry->n_bytes;
    GRV_CHECK(offset >= 0 && n >= 0 && offset <= entry->n_bytes - n, GRV_E_IO,
              "%s: %lld bytes expected from byte %lld of %lld", key, (long long)n,
              (long long)offset, (long long)entry->n_bytes);
    if (entry->method == GRVI_ZIP_DEFLATED)
        return whole ? inflate_entry(zip, entry, out)
                     : read_part(zip, entry, object->state, offset, n, out);
    GRV_TRY(grvi_kv_pread(zip->fd, zip->path, atomic_load(&entry->data_offset) + offset, n, out));
    return whole ? check_crc(zip, entry, out) : GRV_OK;
}

static void zip_close(grvi_kv *kv, grvi_object *object)
{
    inflated *const state = object->state;
    (void)kv;
    if (state == NULL) return;
    (void)pthread_mutex_destroy(&state->lock);
    grv_free(state->bytes);
    grv_free(state);
    object->state = NULL;
}

/* ---- lists ---- */

static grv_status zip_list(grvi_kv *kv, const char *prefix, grvi_kv_visit *visit, void *argument)
{
    kv_zip view = *(kv_zip *)kv;
    grv_status status = GRV_OK;
    grvi_text name = {0};
    enter(&view, prefix, (int64_t)strlen(prefix));
    for (int64_t i = view.first; i < view.last;) {
        const char *const key = view.directory.entries[i].name + view.n_root;
        const int64_t n = (int64_t)strcspn(key, "/");
        name.n = 0;
        grvi_text_append_n(&name, key, n);
        GRV_TRY_GOTO(grvi_text_status(&name));
        if (key[0] != '.') GRV_TRY_GOTO(visit(argument, name.data, key[n] == '/'));
        i = key[n] == '/' ? find(&view, i, view.last, key, n, '/' + 1) : i + 1;
    }
done:
    grvi_text_fini(&name);
    return status;
}

/* ---- opening ---- */

static void zip_destroy(grvi_kv *kv)
{
    kv_zip *const zip = (kv_zip *)kv;
    if (zip->fd >= 0) (void)close(zip->fd);
    grvi_zip_directory_fini(&zip->directory);
    grv_free(zip->path);
    grv_free(zip);
}

static const grvi_kv_class zip_class = {.name = "a zip archive",
                                        .open_object = zip_open,
                                        .read_object = zip_read,
                                        .close_object = zip_close,
                                        .list = zip_list,
                                        .destroy = zip_destroy};

grv_status grvi_kv_zip_create(const char *path, const char *inner, int64_t max_inflated_bytes,
                              grvi_kv **kv)
{
    grv_status status = GRV_OK;
    kv_zip *zip = NULL;
    int64_t n_inner = (int64_t)strlen(inner);
    *kv = NULL;
    while (n_inner > 0 && inner[n_inner - 1] == '/') n_inner--;
    GRV_TRY(GRVI_CALLOC(&zip, 1));
    zip->base.class = &zip_class;
    zip->max_inflated_bytes = max_inflated_bytes;
    zip->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe must not block */
    GRV_CHECK_GOTO(zip->fd >= 0, GRV_E_IO, "open %s: %s", path, strerror(errno));
    GRV_TRY_GOTO(grvi_strdup(path, &zip->path));
    GRV_CHECK_GOTO(fstat(zip->fd, &zip->info) == 0 && S_ISREG(zip->info.st_mode), GRV_E_IO,
                   "%s is not a regular file", path);
    GRV_TRY_GOTO(grvi_zip_directory_read(zip->fd, zip->info.st_size, path, &zip->directory));
    zip->last = zip->directory.n;
    enter_only_store(zip);
    enter(zip, inner, n_inner);
    GRV_CHECK_GOTO(n_inner == 0 || zip->first < zip->last, GRV_E_NOT_FOUND,
                   "%s: no folder '%s' in the archive", path, inner);
    *kv = &zip->base;
done:
    if (status != GRV_OK) zip_destroy(&zip->base);
    return status;
}
