/* Files on a POSIX system. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "grove/core.h"

static grv_status write_all(int fd, const char *path, const char *data, int64_t n)
{
    int64_t done = 0;
    while (done < n) {
        const ssize_t k = write(fd, data + done, (size_t)grvi_min_i64(n - done, (int64_t)1 << 30));
        if (k < 0 && errno == EINTR) continue;
        GRV_CHECK(k > 0, GRV_E_IO, "write %s, byte %lld of %lld: %s", path, (long long)done, (long long)n, strerror(errno));
        done += k;
    }
    return GRV_OK;
}

grv_status grvi_fs_read(const char *path, int64_t max_bytes, char **data, int64_t *n)
{
    grv_status status = GRV_OK;
    *data = NULL;
    *n = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) GRV_FAIL(errno == ENOENT ? GRV_E_NOT_FOUND : GRV_E_IO, "open %s: %s", path, strerror(errno));
    struct stat info;
    GRV_CHECK_GOTO(fstat(fd, &info) == 0 && S_ISREG(info.st_mode), GRV_E_IO, "%s is not a regular file", path);
    GRV_CHECK_GOTO(info.st_size <= max_bytes, GRV_E_FORMAT, "%s: at most %lld bytes expected, %lld found", path,
                   (long long)max_bytes, (long long)info.st_size);
    GRV_TRY_GOTO(GRVI_ALLOC(data, info.st_size + 1));
    while (*n < info.st_size) {
        const ssize_t k = read(fd, *data + *n, (size_t)(info.st_size - *n));
        if (k < 0 && errno == EINTR) continue;
        GRV_CHECK_GOTO(k >= 0, GRV_E_IO, "read %s: %s", path, strerror(errno));
        if (k == 0) break; /* the file shrank: what is there is returned */
        *n += k;
    }
    (*data)[*n] = '\0';
done:
    (void)close(fd);
    if (status != GRV_OK) {
        grv_free(*data);
        *data = NULL;
    }
    return status;
}

grv_status grvi_fs_write_atomic(const char *path, const void *data, int64_t n, bool durable)
{
    static _Atomic unsigned counter;
    grv_status status = GRV_OK;
    grvi_text aside = {0};
    /* unique per process and call, so that two writers never share the file that is written aside */
    grvi_text_printf(&aside, "%s.partial-%ld-%u", path, (long)getpid(), atomic_fetch_add(&counter, 1U));
    GRV_TRY(grvi_text_status(&aside));
    const int fd = open(aside.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    GRV_CHECK_GOTO(fd >= 0, GRV_E_IO, "create %s: %s", aside.data, strerror(errno));
    status = write_all(fd, path, data, n);
    if (status == GRV_OK && durable && fsync(fd) != 0)
        status = grvi_fail(GRV_E_IO, __FILE__, __LINE__, __func__, "fsync %s: %s", path, strerror(errno));
    if (close(fd) != 0 && status == GRV_OK)
        status = grvi_fail(GRV_E_IO, __FILE__, __LINE__, __func__, "close %s: %s", path, strerror(errno));
    if (status == GRV_OK) status = grvi_fs_rename(aside.data, path);
    if (status != GRV_OK) (void)unlink(aside.data);
done:
    grvi_text_fini(&aside);
    return status;
}

grv_status grvi_fs_append(const char *path, const void *data, int64_t n)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    GRV_CHECK(fd >= 0, GRV_E_IO, "open %s: %s", path, strerror(errno));
    const grv_status status = write_all(fd, path, data, n);
    (void)close(fd);
    return status;
}

grv_status grvi_fs_make_directory(const char *path)
{
    grv_status status = GRV_OK;
    char *copy = NULL;
    GRV_TRY(grvi_strdup(path, &copy));
    for (char *p = copy + 1; copy[0] != '\0'; p++) {
        const char kept = *p;
        if (kept != '/' && kept != '\0') continue;
        *p = '\0';
        GRV_CHECK_GOTO(mkdir(copy, 0777) == 0 || (errno == EEXIST && grvi_fs_is_directory(copy)), GRV_E_IO,
                       "make directory %s: %s", copy, strerror(errno));
        *p = kept;
        if (kept == '\0') break;
    }
done:
    grv_free(copy);
    return status;
}

bool grvi_fs_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool grvi_fs_is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

grv_status grvi_fs_rename(const char *from, const char *to)
{
    GRV_CHECK(rename(from, to) == 0, GRV_E_IO, "rename %s to %s: %s", from, to, strerror(errno));
    return GRV_OK;
}

grv_status grvi_fs_remove_tree(const char *path)
{
    grv_status status = GRV_OK;
    struct stat info;
    if (lstat(path, &info) != 0) {
        GRV_CHECK(errno == ENOENT, GRV_E_IO, "remove %s: %s", path, strerror(errno));
        return GRV_OK;
    }
    if (!S_ISDIR(info.st_mode)) {
        GRV_CHECK(unlink(path) == 0 || errno == ENOENT, GRV_E_IO, "remove %s: %s", path, strerror(errno));
        return GRV_OK;
    }
    DIR *const directory = opendir(path);
    GRV_CHECK(directory != NULL, GRV_E_IO, "list %s: %s", path, strerror(errno));
    for (const struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char *child = NULL;
        GRV_TRY_GOTO(grvi_fs_join(path, entry->d_name, &child));
        status = grvi_fs_remove_tree(child);
        grv_free(child);
        if (status != GRV_OK) goto done;
    }
    GRV_CHECK_GOTO(rmdir(path) == 0, GRV_E_IO, "remove %s: %s", path, strerror(errno));
done:
    (void)closedir(directory);
    return status;
}

const char *grvi_fs_base_name(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

void grvi_fs_skip_folders(char **path)
{
    *path += grvi_fs_base_name(*path) - *path;
}

grv_status grvi_fs_join(const char *directory, const char *name, char **out)
{
    const size_t n_directory = strlen(directory), n_name = strlen(name);
    const bool slash = n_directory > 0 && directory[n_directory - 1] != '/';
    GRV_TRY(GRVI_ALLOC(out, (int64_t)(n_directory + n_name + 2)));
    memcpy(*out, directory, n_directory);
    if (slash) (*out)[n_directory] = '/';
    memcpy(*out + n_directory + slash, name, n_name + 1);
    return GRV_OK;
}

void grvi_fs_last_line(int fd, int64_t from, char *line, int64_t size)
{
    char tail[4096];
    struct stat info;
    line[0] = '\0';
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= from) return;
    const off_t begin = (off_t)grvi_max_i64(from, (int64_t)info.st_size - (int64_t)sizeof tail);
    ssize_t n = pread(fd, tail, sizeof tail, begin);
    while (n > 0 && (unsigned char)tail[n - 1] <= ' ') n--;
    ssize_t at = n;
    while (at > 0 && tail[at - 1] != '\n') at--;
    if (n > 0) (void)snprintf(line, (size_t)size, "%.*s", (int)(n - at), tail + at);
}
