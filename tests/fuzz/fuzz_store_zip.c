/* A file that might be a zip archive: every entry of it is listed and read, or refused. */
#define _GNU_SOURCE /* memfd_create */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../support/zip_maker.h"
#include "fuzz.h"
#include "grove/core.h"
#include "store/kv.h"

enum { MAX_BYTES = 1 << 16, MAX_DEPTH = 8 };

typedef struct walk {
    grvi_kv *kv;
    const char *prefix;
    int depth;
} walk;

static grv_status visit(void *argument, const char *name, bool is_prefix)
{
    const walk *const w = argument;
    char key[1024], *data = NULL;
    int64_t n = 0;
    (void)snprintf(key, sizeof key, w->prefix[0] != '\0' ? "%s/%s" : "%s%s", w->prefix, name);
    if (is_prefix) {
        walk below = {w->kv, key, w->depth + 1};
        return below.depth < MAX_DEPTH ? w->kv->class->list(w->kv, key, visit, &below) : GRV_OK;
    }
    if (grvi_kv_get(w->kv, key, MAX_BYTES, &data, &n) != GRV_OK) grv_error_clear();
    grv_free(data);
    grvi_object object;
    bool found = false;
    char part[2];
    if (w->kv->class->open_object(w->kv, key, &object, &found) != GRV_OK || !found) return GRV_OK;
    if (object.n_bytes > 2 &&
        w->kv->class->read_object(w->kv, &object, key, 1, sizeof part, part) != GRV_OK)
        grv_error_clear();
    w->kv->class->close_object(w->kv, &object);
    return GRV_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[64];
    grvi_kv *kv = NULL;
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n) abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (grvi_kv_zip_create(path, "", MAX_BYTES, &kv) == GRV_OK) {
        walk top = {kv, "", 0};
        if (kv->class->list(kv, "", visit, &top) != GRV_OK) grv_error_clear();
        grvi_kv_destroy(&kv);
    }
    (void)close(fd);
    return 0;
}

static int write_zip(const char *folder, const char *name, const zip_bytes *zip)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "wb");
    if (file == NULL) return 1;
    (void)fwrite(zip->bytes, 1, zip->n, file);
    return fclose(file) != 0;
}

int fuzz_make_corpus(const char *folder)
{
    static zip_bytes zip;
    static char text[300];
    memset(text, 'a', sizeof text);
    const zip_item items[] = {
        {"zarr.json", "{}", 2, 8},         {"a/c/0", text, sizeof text, 8, 8},
        {"a/c/1", "stored", 6, 0, 8, 7},   {"a/c/2", text, sizeof text, 8, 0, 0, 1},
        {"a/c/1", "again", 5, 0, 0, 0, 1}, {"b/", "", 0}};
    const zip_item parent[] = {{"top/", "", 0}, {"top/.zgroup", "{}", 2}, {"top/x/0", "1", 1}};
    make_zip(&zip, items, 6, 0, "");
    if (write_zip(folder, "plain.zip", &zip) != 0) return 1;
    make_zip(&zip, items, 6, 1, "with a comment");
    if (write_zip(folder, "zip64.zip", &zip) != 0) return 1;
    make_zip(&zip, parent, 3, 0, "");
    return write_zip(folder, "parent.zip", &zip);
}
