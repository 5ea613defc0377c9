/* Where a worker's files are, and the one that both sides know the fields of: its settings. */
#include <stdio.h>

#include "batch/batch_impl.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

grv_status grvi_worker_path(const char *folder, int worker, const char *name, char **path)
{
    grvi_text text = {0};
    grvi_text_printf(&text, "%s/workers/%d/%s", folder, worker, name);
    *path = text.data;
    return grvi_text_status(&text);
}

grv_status grvi_settings_write(const char *folder, int worker, const grvi_worker_settings *s)
{
    char *path = NULL;
    grvi_text text = {0};
    grvi_text_printf(&text, "%d %lld %.17g %.17g %d %d\n", s->cores, (long long)s->memory,
                     s->time_limit_s, s->idle_s, s->nodes, s->ranks);
    grv_status status = grvi_text_status(&text);
    if (status == GRV_OK) status = grvi_worker_path(folder, worker, "settings", &path);
    if (status == GRV_OK) status = grvi_fs_write_atomic(path, text.data, text.n, false);
    grv_free(path);
    grvi_text_fini(&text);
    return status;
}

grv_status grvi_settings_read(const char *folder, int worker, grvi_worker_settings *s)
{
    enum { MOST_BYTES = 4096 };
    char *path = NULL, *text = NULL;
    int64_t n = 0;
    long long memory = 0;
    grv_status status = GRV_OK;
    GRV_TRY_GOTO(grvi_worker_path(folder, worker, "settings", &path));
    GRV_TRY_GOTO(grvi_fs_read(path, MOST_BYTES, &text, &n));
    GRV_CHECK_GOTO(sscanf(text, "%d %lld %lf %lf %d %d", &s->cores, &memory, &s->time_limit_s,
                          &s->idle_s, &s->nodes, &s->ranks) == 6,
                   GRV_E_FORMAT, "%s: six numbers expected", path);
    s->memory = memory;
done:
    grv_free(path);
    grv_free(text);
    return status;
}
