/* Dropping files from the page cache: posix_fadvise, which forgets clean pages only, hence fdatasync before; mincore tells what
 * stayed. */
#define _DEFAULT_SOURCE /* mincore */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"
#include "store/page_cache.h"

/* Adds the pages of an opened file of n > 0 bytes. */
static grv_status count_pages(int fd, const char *path, size_t n, grvi_page_count *count)
{
    grv_status status = GRV_OK;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int64_t n_pages = (int64_t)((n + page - 1) / page);
    unsigned char *present = NULL;
    void *const map = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
    GRV_CHECK(map != MAP_FAILED, GRV_E_IO, "map %s: %s", path, strerror(errno));
    GRV_TRY_GOTO(GRVI_CALLOC(&present, n_pages));
    if (mincore(map, n, present) != 0) {
        status = grvi_fail(GRV_E_IO, __FILE__, __LINE__, __func__, "mincore of %s: %s", path,
                           strerror(errno));
        goto done;
    }
    for (int64_t i = 0; i < n_pages; i++) count->resident += present[i] & 1;
    count->total += n_pages;
done:
    grv_free(present);
    (void)munmap(map, n);
    return status;
}

static grv_status drop_file(const char *path, grvi_page_count *left)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    GRV_CHECK(fd >= 0, GRV_E_IO, "open %s: %s", path, strerror(errno));
    grv_status status = GRV_OK;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        (void)fdatasync(fd); /* where these two fail, the count says so */
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        status = count_pages(fd, path, (size_t)info.st_size, left);
    }
    (void)close(fd);
    return status;
}

static grv_status drop_below(const char *path, grvi_page_count *left)
{
    grv_status status = GRV_OK;
    char *child = NULL;
    if (!grvi_fs_is_directory(path)) return drop_file(path, left);
    DIR *const folder = opendir(path);
    GRV_CHECK(folder != NULL, GRV_E_IO, "list %s: %s", path, strerror(errno));
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        GRV_TRY_GOTO(grvi_fs_join(path, entry->d_name, &child));
        GRV_TRY_GOTO(drop_below(child, left));
        grv_free(child);
        child = NULL;
    }
done:
    grv_free(child);
    (void)closedir(folder);
    return status;
}

grv_status grvi_page_cache_drop(const char *folder, grvi_page_count *left)
{
    *left = (grvi_page_count){0};
    return drop_below(folder, left);
}

void grvi_page_cache_settle(void) { sync(); }
