/* Files: whole reads and writes, atomic publication, directories. Internal. Errors name the path and the system's reason. */
#ifndef GRVI_CORE_FS_H
#define GRVI_CORE_FS_H

#include <stdint.h>

#include "core/check.h"

/* Bytes of the file, NUL-terminated one past *n; free with grv_free. Larger than max_bytes is GRV_E_FORMAT. GRV_E_NOT_FOUND if absent. */
grv_status grvi_fs_read(const char *path, int64_t max_bytes, char **data, int64_t *n) GRV_MUST_CHECK;
/* Writes aside and renames: readers see the old file, or the new one, never a part. fsync before the rename if durable. */
grv_status grvi_fs_write_atomic(const char *path, const void *data, int64_t n, bool durable) GRV_MUST_CHECK;
/* Appends and flushes to the system; creates the file. */
grv_status grvi_fs_append(const char *path, const void *data, int64_t n) GRV_MUST_CHECK;
/* mkdir -p. */
grv_status grvi_fs_make_directory(const char *path) GRV_MUST_CHECK;
bool grvi_fs_exists(const char *path);
bool grvi_fs_is_directory(const char *path);
/* rename, replacing a file. */
grv_status grvi_fs_rename(const char *from, const char *to) GRV_MUST_CHECK;
/* rm -r; an absent path is no error. Symbolic links are removed, not followed. */
grv_status grvi_fs_remove_tree(const char *path) GRV_MUST_CHECK;
/* The last line that is not blank of what a regular file holds from an offset on; "" if there is none. line: [size], cut if it is longer */
void grvi_fs_last_line(int fd, int64_t from, char *line, int64_t size);
/* What is behind the last slash. Borrowed from the path. */
const char *grvi_fs_base_name(const char *path);
/* Moves the path there. */
void grvi_fs_skip_folders(char **path);
/* "a/b" into a fresh string; free with grv_free. */
grv_status grvi_fs_join(const char *directory, const char *name, char **out) GRV_MUST_CHECK;

#endif
