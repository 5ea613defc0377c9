/* Key-value back end on a file system: a key is a path below the root, a value is a file.
 * Publication: write aside in the same folder ("<name>.partial-..."), rename. Listings skip such files.
 * The fsync policy: none; one syncfs at commit; or each file before its rename and its folder after.
 * Locks: byte `number` of the empty file ".grove-lock" in the array's folder, as a lock of an open file description, which
 * excludes threads and processes alike and ends when its holder does. Where a file system has no locks, there are none. */
#define _GNU_SOURCE /* syncfs */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"
#include "store/kv.h"

enum { PATH_BYTES = 4096 };
static const char lock_name[] = ".grove-lock";

typedef struct kv_fs {
    grvi_kv base;
    grv_store_sync sync;
    char *root;
} kv_fs;

static grv_status path_of(const kv_fs *fs, const char *key, char path[PATH_BYTES])
{
    const int n = snprintf(path, PATH_BYTES, key[0] != '\0' ? "%s/%s" : "%s", fs->root, key);
    GRV_CHECK(n > 0 && n < PATH_BYTES, GRV_E_ARG, "path of '%s' is longer than %d bytes", key,
              PATH_BYTES - 1);
    return GRV_OK;
}

static grv_status fs_open(grvi_kv *kv, const char *key, grvi_object *object, bool *found)
{
    char path[PATH_BYTES];
    *found = false;
    GRV_TRY(path_of((kv_fs *)kv, key, path));
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe must not block */
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return GRV_OK;
    GRV_CHECK(fd >= 0, GRV_E_IO, "open %s: %s", path, strerror(errno));
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)close(fd);
        GRV_FAIL(GRV_E_IO, "%s is not a regular file", path);
    }
    const uint64_t time_ns =
        (uint64_t)info.st_mtim.tv_sec * 1000000000U + (uint64_t)info.st_mtim.tv_nsec;
    *object = (grvi_object){.n_bytes = info.st_size,
                            .identity = {(uint64_t)info.st_size, time_ns, (uint64_t)info.st_ino},
                            .handle = fd};
    *found = true;
    return GRV_OK;
}

static grv_status fs_read(grvi_kv *kv, const grvi_object *object, const char *key, int64_t offset,
                          int64_t n, void *out)
{
    (void)kv;
    return grvi_kv_pread((int)object->handle, key, offset, n, out);
}

/* of what is in the page cache already this costs a few microseconds; else the disk works on several reads at a time */
static void fs_will_read(grvi_kv *kv, const grvi_object *object, int64_t offset, int64_t n)
{
    (void)kv;
    (void)posix_fadvise((int)object->handle, (off_t)offset, (off_t)n, POSIX_FADV_WILLNEED);
}

static const void *fs_map(grvi_kv *kv, const grvi_object *object)
{
    (void)kv;
    void *const data = object->n_bytes > 0 ? mmap(NULL, (size_t)object->n_bytes, PROT_READ,
                                                  MAP_SHARED, (int)object->handle, 0)
                                           : MAP_FAILED;
    return data != MAP_FAILED ? data : NULL;
}

static void fs_unmap(grvi_kv *kv, const void *data, int64_t n_bytes)
{
    (void)kv;
    (void)munmap((void *)(uintptr_t)data, (size_t)n_bytes);
}

static void fs_close(grvi_kv *kv, grvi_object *object)
{
    (void)kv;
    (void)close((int)object->handle);
    object->handle = -1;
}

static grv_status sync_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    GRV_CHECK(fd >= 0, GRV_E_IO, "open %s: %s", folder, strerror(errno));
    const int result = fsync(fd), reason = errno;
    (void)close(fd);
    GRV_CHECK(result == 0, GRV_E_IO, "fsync %s: %s", folder, strerror(reason));
    return GRV_OK;
}

/* The entry of a file in its folder; where folders were made for it, also their entries in those above, up to the root. */
static grv_status sync_folders(const kv_fs *fs, char *folder, bool is_new)
{
    GRV_TRY(sync_folder(folder));
    while (is_new && strlen(folder) > strlen(fs->root)) {
        *strrchr(folder, '/') = '\0';
        GRV_TRY(sync_folder(folder));
    }
    return GRV_OK;
}

static grv_status fs_put(grvi_kv *kv, const char *key, const void *data, int64_t n)
{
    const kv_fs *const fs = (kv_fs *)kv;
    char path[PATH_BYTES], folder[PATH_BYTES];
    GRV_TRY(path_of(fs, key, path));
    (void)snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    const bool is_new_folder = !grvi_fs_is_directory(folder);
    if (is_new_folder) GRV_TRY(grvi_fs_make_directory(folder));
    const bool durable = fs->sync == GRV_STORE_SYNC_EACH;
    GRV_TRY(grvi_fs_write_atomic(path, data, n, durable));
    return durable ? sync_folders(fs, folder, is_new_folder) : GRV_OK;
}

static grv_status fs_remove(grvi_kv *kv, const char *key)
{
    char path[PATH_BYTES];
    GRV_TRY(path_of((kv_fs *)kv, key, path));
    GRV_CHECK(unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR, GRV_E_IO, "remove %s: %s",
              path, strerror(errno));
    return GRV_OK;
}

static bool is_partial(const char *name)
{
    return strstr(name, ".partial") != NULL;
}

static grv_status list_folder(grvi_kv *kv, const char *prefix, bool partial, grvi_kv_visit *visit,
                              void *argument)
{
    grv_status status = GRV_OK;
    char path[PATH_BYTES];
    GRV_TRY(path_of((kv_fs *)kv, prefix, path));
    DIR *const folder = opendir(path);
    if (folder == NULL && (errno == ENOENT || errno == ENOTDIR)) return GRV_OK;
    GRV_CHECK(folder != NULL, GRV_E_IO, "list %s: %s", path, strerror(errno));
    for (const struct dirent *entry = readdir(folder); entry != NULL && status == GRV_OK;
         entry = readdir(folder)) {
        struct stat info;
        if (entry->d_name[0] == '.' || is_partial(entry->d_name) != partial) continue;
        if (fstatat(dirfd(folder), entry->d_name, &info, 0) != 0) continue; /* removed meanwhile */
        status = visit(argument, entry->d_name, S_ISDIR(info.st_mode));
    }
    (void)closedir(folder);
    return status;
}

static grv_status fs_list(grvi_kv *kv, const char *prefix, grvi_kv_visit *visit, void *argument)
{
    return list_folder(kv, prefix, false, visit, argument);
}

static grv_status fs_list_partial(grvi_kv *kv, const char *prefix, grvi_kv_visit *visit,
                                  void *argument)
{
    return list_folder(kv, prefix, true, visit, argument);
}

static grv_status fs_commit(grvi_kv *kv)
{
    const kv_fs *const fs = (kv_fs *)kv;
    if (fs->sync != GRV_STORE_SYNC_COMMIT) return GRV_OK; /* each: done already; none: not wanted */
    const int fd = open(fs->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    GRV_CHECK(fd >= 0, GRV_E_IO, "open %s: %s", fs->root, strerror(errno));
    const int result = syncfs(fd), reason = errno;
    (void)close(fd);
    GRV_CHECK(result == 0, GRV_E_IO, "syncfs %s: %s", fs->root, strerror(reason));
    return GRV_OK;
}

/* ends with the process: a writer that was killed leaves nothing that stops others */
static grv_status fs_lock(grvi_kv *kv, const char *prefix, int64_t number, grvi_lock *lock)
{
    char path[PATH_BYTES];
    struct flock range = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)number, .l_len = 1};
    lock->handle = -1;
    GRV_TRY(path_of((kv_fs *)kv, prefix, path));
    GRV_CHECK(strlen(path) + sizeof lock_name + 1 <= PATH_BYTES, GRV_E_ARG,
              "path of '%s' is longer than %d bytes", prefix, PATH_BYTES - 1);
    /* the first object of an array may be written before anything else of it */
    if (!grvi_fs_is_directory(path)) GRV_TRY(grvi_fs_make_directory(path));
    (void)snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", lock_name);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    GRV_CHECK(fd >= 0, GRV_E_IO, "open %s: %s", path, strerror(errno));
    int result = -1;
    do result = fcntl(fd, F_OFD_SETLKW, &range);
    while (result != 0 && errno == EINTR);
    const int reason = result == 0 ? 0 : errno;
    if (reason == 0) {
        lock->handle = fd;
        return GRV_OK;
    }
    (void)close(fd);
    const bool has_none =
        reason == ENOLCK || reason == ENOSYS || reason == EOPNOTSUPP || reason == EINVAL;
    GRV_CHECK(has_none, GRV_E_IO, "lock %s: %s", path, strerror(reason));
    return GRV_OK;
}

static void fs_unlock(grvi_kv *kv, grvi_lock *lock)
{
    (void)kv;
    if (lock->handle >= 0) (void)close(lock->handle);
    lock->handle = -1;
}

static void fs_destroy(grvi_kv *kv)
{
    kv_fs *const fs = (kv_fs *)kv;
    grv_free(fs->root);
    grv_free(fs);
}

static const grvi_kv_class fs_class = {.name = "a folder",
                                       .open_object = fs_open,
                                       .read_object = fs_read,
                                       .will_read = fs_will_read,
                                       .map_object = fs_map,
                                       .unmap_object = fs_unmap,
                                       .close_object = fs_close,
                                       .put = fs_put,
                                       .remove = fs_remove,
                                       .list = fs_list,
                                       .list_partial = fs_list_partial,
                                       .commit = fs_commit,
                                       .destroy = fs_destroy,
                                       .lock = fs_lock,
                                       .unlock = fs_unlock};

grv_status grvi_kv_fs_create(const char *root, bool create, grv_store_sync sync, grvi_kv **kv)
{
    grv_status status = GRV_OK;
    kv_fs *fs = NULL;
    *kv = NULL;
    GRV_CHECK(root[0] != '\0', GRV_E_ARG, "the path of a store is empty");
    if (create) GRV_TRY(grvi_fs_make_directory(root));
    GRV_CHECK(grvi_fs_exists(root), GRV_E_NOT_FOUND, "no store at %s: no such folder", root);
    GRV_CHECK(grvi_fs_is_directory(root), GRV_E_UNSUPPORTED,
              "%s is a file; a store is a folder or a zip archive", root);
    GRV_TRY(GRVI_CALLOC(&fs, 1));
    fs->base.class = &fs_class;
    fs->sync = sync;
    GRV_TRY_GOTO(grvi_strdup(root, &fs->root));
    for (size_t n = strlen(fs->root); n > 1 && fs->root[n - 1] == '/'; n--) fs->root[n - 1] = '\0';
    *kv = &fs->base;
done:
    if (status != GRV_OK) grv_free(fs);
    return status;
}
