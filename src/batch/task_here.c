/* Loading a function of a task outside of a worker: by a worker's code, out of a folder that is there for that long only. */
#include "batch/task_here.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "batch/worker_impl.h"
#include "core/fs.h"

static grv_status load(const char *folder, const char *name, const char *const *paths, int n,
                       const char *flags, void (**call)(struct grv_task *))
{
    const char *const dot = n == 1 ? strrchr(paths[0], '.') : NULL;
    const bool is_object = dot != NULL && strcmp(dot, ".so") == 0;
    grvi_function f = {.kind = is_object ? GRVI_FUNCTION_OBJECT : GRVI_FUNCTION_SOURCE};
    grvi_shared_page page = {0};
    grvi_worker worker = {.folder = folder, .outbox = -1, .output = -1, .page = &page};
    grv_status status = grvi_kv_fs_create(folder, true, GRV_STORE_SYNC_NONE, &worker.blobs);
    if (status == GRV_OK)
        status = grvi_function_read(worker.blobs, name, is_object ? "" : flags, paths, n, &f);
    if (status == GRV_OK) status = grvi_task_code_load(&worker, &f, call);
    grvi_function_fini(&f);
    grvi_kv_destroy(&worker.blobs);
    return status;
}

grv_status grvi_task_here_load(const char *name, const char *const *paths, int n, const char *flags,
                               void (**call)(struct grv_task *))
{
    char folder[] = "/tmp/grove-code-XXXXXX";
    GRV_CHECK(mkdtemp(folder) != NULL, GRV_E_IO, "make %s: %s", folder, strerror(errno));
    const grv_status status = load(folder, name, paths, n, flags, call);
    const grv_status removed = grvi_fs_remove_tree(folder);
    return status != GRV_OK ? status : removed;
}
