/* What every key-value back end shares: choice by location, key checks, whole-object reads on top of the range interface. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/kv.h"

static bool is_url(const char *location)
{
    return strncmp(location, "http://", 7) == 0 || strncmp(location, "https://", 8) == 0;
}

/* Is the file a zip archive, by its name or its first bytes? */
static bool is_zip(const char *path)
{
    const size_t n = strlen(path);
    char magic[4] = {0};
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    if (n > 4 && strcmp(path + n - 4, ".zip") == 0) return true;
    FILE *const file = fopen(path, "rb");
    if (file == NULL) return false;
    const size_t k = fread(magic, 1, sizeof magic, file);
    (void)fclose(file);
    return k == sizeof magic &&
           (memcmp(magic, "PK\003\004", 4) == 0 || memcmp(magic, "PK\005\006", 4) == 0);
}

/* ARCHIVE or ARCHIVE.zip/INNER: cuts the location in two at the archive's end. Returns INNER, NULL if there is no archive. */
static const char *split_zip(char *location)
{
    if (is_zip(location)) return "";
    for (char *p = strstr(location, ".zip/"); p != NULL; p = strstr(p + 1, ".zip/")) {
        p[4] = '\0';
        if (is_zip(location)) return p + 5;
        p[4] = '/';
    }
    return NULL;
}

grv_status grvi_kv_create(const char *location, const grv_store_params *params, grvi_kv **kv)
{
    grv_status status = GRV_OK;
    char *path = NULL;
    *kv = NULL;
    if (is_url(location)) {
        GRV_TRY_GOTO(grvi_kv_http_create(location, params, kv));
    } else {
        GRV_TRY_GOTO(grvi_strdup(location, &path));
        const char *const inner = split_zip(path);
        if (inner != NULL)
            GRV_TRY_GOTO(grvi_kv_zip_create(path, inner, params->max_chunk_bytes, kv));
        else
            GRV_TRY_GOTO(grvi_kv_fs_create(location, params->writable, params->sync, kv));
    }
    GRV_CHECK_GOTO(!params->writable || (*kv)->class->put != NULL, GRV_E_UNSUPPORTED,
                   "%s: %s can be read only, not written", location, (*kv)->class->name);
done:
    if (status != GRV_OK) grvi_kv_destroy(kv);
    grv_free(path);
    return status;
}

void grvi_kv_destroy(grvi_kv **kv)
{
    if (kv == NULL || *kv == NULL) return;
    (*kv)->class->destroy(*kv);
    *kv = NULL;
}

grv_status grvi_kv_check_key(const char *key)
{
    const char *name = key;
    for (const char *p = key;; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c != '/' && c != '\0') {
            GRV_CHECK(c >= 0x20 && c != '\\', GRV_E_ARG,
                      "name '%s': character 0x%02x at byte %lld is not allowed", key, c,
                      (long long)(p - key));
            continue;
        }
        const int64_t n = p - name;
        GRV_CHECK(n > 0, GRV_E_ARG, "name '%s': empty part at byte %lld", key,
                  (long long)(name - key));
        GRV_CHECK(strspn(name, ".") < (size_t)n, GRV_E_ARG,
                  "name '%s': a part of nothing but dots at byte %lld", key,
                  (long long)(name - key));
        if (c == '\0') return GRV_OK;
        name = p + 1;
    }
}

grv_status grvi_kv_open(grvi_kv *kv, const char *key, grvi_byte_range ahead, grvi_object *object,
                        bool *found)
{
    return kv->class->open_ahead != NULL ? kv->class->open_ahead(kv, key, ahead, object, found)
                                         : kv->class->open_object(kv, key, object, found);
}

grv_status grvi_kv_get(grvi_kv *kv, const char *key, int64_t max_bytes, char **data, int64_t *n)
{
    grv_status status = GRV_OK;
    grvi_object object;
    bool found = false;
    *data = NULL;
    *n = 0;
    GRV_TRY(grvi_kv_open(kv, key, (grvi_byte_range){0, max_bytes}, &object, &found));
    if (!found) return GRV_OK;
    GRV_CHECK_GOTO(object.n_bytes <= max_bytes, GRV_E_FORMAT,
                   "%s: at most %lld bytes expected, %lld found", key, (long long)max_bytes,
                   (long long)object.n_bytes);
    GRV_TRY_GOTO(GRVI_ALLOC(data, object.n_bytes + 1));
    GRV_TRY_GOTO(kv->class->read_object(kv, &object, key, 0, object.n_bytes, *data));
    (*data)[object.n_bytes] = '\0';
    *n = object.n_bytes;
done:
    kv->class->close_object(kv, &object);
    if (status != GRV_OK) {
        grv_free(*data);
        *data = NULL;
    }
    return status;
}

grv_status grvi_kv_exists(grvi_kv *kv, const char *key, bool *exists)
{
    grvi_object object;
    GRV_TRY(kv->class->open_object(kv, key, &object, exists));
    if (*exists) kv->class->close_object(kv, &object);
    return GRV_OK;
}

grv_status grvi_kv_pread(int fd, const char *what, int64_t offset, int64_t n, void *out)
{
    int64_t done = 0;
    while (done < n) {
        const ssize_t k = pread(fd, (char *)out + done, (size_t)(n - done), (off_t)(offset + done));
        if (k < 0 && errno == EINTR) continue;
        GRV_CHECK(k >= 0, GRV_E_IO, "read %s at byte %lld: %s", what, (long long)(offset + done),
                  strerror(errno));
        GRV_CHECK(k > 0, GRV_E_IO, "%s: %lld bytes expected from byte %lld, %lld read", what,
                  (long long)n, (long long)offset, (long long)done);
        done += k;
    }
    return GRV_OK;
}
