/* grove batch fetch: the files and tensors that tasks returned, as files of a folder. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/batch_cli.h"
#include "cli/store_print.h"
#include "core/fs.h"
#include "grove/core.h"

/* FOLDER/TASK/NAME; a second result of that name: FOLDER/TASK/NUMBER-NAME. */
static grv_status path_of(const char *folder, const char *name, int output, char **path)
{
    grvi_text other = {0};
    GRV_TRY(grvi_fs_join(folder, name, path));
    if (!grvi_fs_exists(*path)) return GRV_OK;
    grv_free(*path);
    *path = NULL;
    grvi_text_printf(&other, "%d-%s", output, name);
    grv_status status = grvi_text_status(&other);
    if (status == GRV_OK) status = grvi_fs_join(folder, other.data, path);
    grvi_text_fini(&other);
    return status;
}

static grv_status write_tensor(const char *path, const grv_batch_value *value)
{
    const grv_array_desc desc = {.type = value->type,
                                 .item_bytes = grv_store_type_bytes(value->type)};
    grvc_slice slice = {.rank = value->rank};
    for (int a = 0; a < value->rank; a++) slice.count[a] = value->shape[a];
    FILE *const file = fopen(path, "wb");
    GRV_CHECK(file != NULL, GRV_E_IO, "create %s: %s", path, strerror(errno));
    const grv_status status = grvc_write_npy_header(file, path, &desc, &slice);
    const size_t n = status == GRV_OK ? fwrite(value->data, 1, (size_t)value->n_bytes, file) : 0;
    const int closed = fclose(file);
    GRV_TRY(status);
    GRV_CHECK(n == (size_t)value->n_bytes && closed == 0, GRV_E_IO, "write %s: %s", path,
              strerror(errno));
    return GRV_OK;
}

static grv_status fetch_result(grv_batch *batch, int64_t task, int output, const char *folder,
                               int64_t *n_files)
{
    grv_batch_value value;
    char *path = NULL, name[32];
    grv_status status = GRV_OK;
    GRV_TRY(grv_batch_fetch(batch, task, output, &value));
    const bool is_file = value.kind == GRV_BATCH_FILE, is_tensor = value.kind == GRV_BATCH_TENSOR;
    if (!is_file && !is_tensor) goto done; /* numbers and texts: see results= */
    (void)snprintf(name, sizeof name, "%d.npy", output);
    GRV_TRY_GOTO(grvi_fs_make_directory(folder));
    GRV_TRY_GOTO(path_of(folder, is_file ? value.text : name, output, &path));
    GRV_TRY_GOTO(is_file ? grvi_fs_write_atomic(path, value.data, value.n_bytes, false)
                         : write_tensor(path, &value));
    (*n_files)++;
done:
    grv_free(path);
    grv_batch_value_fini(&value);
    return status;
}

static grv_status fetch_task(grv_batch *batch, int64_t task, const char *into, int64_t *n_files)
{
    grv_batch_task info;
    char *folder = NULL, number[32];
    GRV_TRY(grv_batch_task_get(batch, task, &info));
    const int n = info.n_results;
    (void)snprintf(number, sizeof number, "%lld", (long long)task);
    GRV_TRY(grvi_fs_join(into, number, &folder));
    grv_status status = n > 0 ? grvi_fs_remove_tree(folder) : GRV_OK; /* of a call before */
    for (int i = 0; i < n && status == GRV_OK; i++)
        status = fetch_result(batch, task, i, folder, n_files);
    grv_free(folder);
    return status;
}

static grv_status fetch(const grvc_session *session, grv_batch *batch)
{
    int64_t task = -1, n_files = 0;
    const grv_batch_counts counts = grv_batch_counts_get(batch);
    const char *const into = session->words[1];
    if (session->n_words == 3) {
        grv_batch_value value; /* of a task that has none: why */
        GRV_TRY(grvc_batch_task_number(session->words[2], &task));
        GRV_TRY(grv_batch_fetch(batch, task, 0, &value));
        grv_batch_value_fini(&value);
    }
    GRV_TRY(grvi_fs_make_directory(into));
    for (int64_t t = task < 0 ? 0 : task; t < (task < 0 ? counts.n_tasks : task + 1); t++)
        GRV_TRY(fetch_task(batch, t, into, &n_files));
    if (session->json)
        (void)printf("{\"files\": %lld}\n", (long long)n_files);
    else
        (void)printf("%lld files in %s; %lld of %lld tasks are done\n", (long long)n_files, into,
                     (long long)counts.n[GRV_BATCH_DONE], (long long)counts.n_tasks);
    return GRV_OK;
}

int grvc_batch_fetch(int argc, char **argv)
{
    grvc_session session = {
        .name = "grove batch fetch",
        .about =
            "Writes the files and tensors (.npy) that tasks returned into FOLDER/TASK/, of one "
            "task or of all that are done. Also while the\n"
            "job runs. Numbers and texts are in the table that results= of run and resume writes.",
        .words_usage = "JOB FOLDER [TASK]",
        .min_words = 2,
        .max_words = 3};
    return grvc_batch_look_at(&session, argc, argv, fetch);
}
