/* What the commands of `grove geom` write, seen as a whole or not at all. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/geom_cli.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"

/* What follows the last dot of the last part of a path, with the dot; "" if there is none, and for numbers ("run_1.5"). */
static const char *ending_of(const char *path)
{
    const char *const slash = strrchr(path, '/'), *const name = slash != NULL ? slash + 1 : path,
                      *const dot = strrchr(name, '.');
    return dot == NULL || dot == name || (dot[1] >= '0' && dot[1] <= '9') ? "" : dot;
}

/* Is the ending one of those in " .vtp .vtu"? */
static bool is_listed(const char *endings, const char *path)
{
    while (*endings != '\0') {
        char one[8];
        const size_t n = strcspn(endings + 1, " ");
        (void)snprintf(one, sizeof one, "%.*s", (int)n, endings + 1);
        if (grvc_has_ending(path, one)) return true;
        endings += n + 1;
    }
    return false;
}

static grv_status check_free(const char *path, bool overwrite)
{
    if (!grvi_fs_exists(path)) return GRV_OK;
    GRV_CHECK(overwrite, GRV_E_EXISTS, "'%s' is there already; overwrite=true replaces it", path);
    return GRV_OK;
}

grv_status grvc_output_check(const char *word, const char *endings, bool overwrite,
                             grvc_output *output)
{
    *output = (grvc_output){.overwrite = overwrite};
    GRV_CHECK(word[0] != '\0', GRV_E_ARG, "the name of the output is empty");
    GRV_CHECK(strstr(word, "://") == NULL, GRV_E_UNSUPPORTED,
              "%s: only files and folders are written", word);
    GRV_TRY(grvi_strdup(word, &output->place));
    char *const place = output->place;
    for (size_t n = strlen(place); n > 1 && place[n - 1] == '/'; n--) place[n - 1] = '\0';
    const char *const ending = ending_of(place);
    output->is_file = is_listed(endings, place);
    GRV_CHECK(output->is_file || ending[0] == '\0' || grvc_has_ending(ending, ".zarr"), GRV_E_ARG,
              "%s: a name ending in .zarr (a folder of arrays)%s%s expected, '%s' found", place,
              endings[0] != '\0' ? " or" : "", endings, ending);
    if (output->is_file) GRV_TRY(grvc_check_folder_of(place));
    GRV_TRY(check_free(place, overwrite));
    if (!grvi_fs_exists(place)) return GRV_OK;
    if (output->is_file)
        GRV_CHECK(!grvi_fs_is_directory(place), GRV_E_EXISTS, "'%s' is a folder: not replaced",
                  place);
    else
        GRV_CHECK(grvc_is_zarr_folder(place), GRV_E_EXISTS,
                  "'%s' is neither a group nor an array (no zarr.json): not replaced", place);
    return GRV_OK;
}

grv_status grvc_output_open(grvc_output *output, int n_threads)
{
    grvi_text aside = {0};
    grvi_text_printf(&aside, "%s.partial-%ld", output->place, (long)getpid());
    grv_status status = grvi_text_status(&aside);
    if (status == GRV_OK) {
        output->aside = aside.data;
        aside.data = NULL;
        status = grvc_node_open_new(output->aside, n_threads, GRV_STORE_SYNC_NONE, &output->node);
    }
    grvi_text_fini(&aside);
    return status;
}

void grvc_description_begin(grvi_json_writer *w, const char *command)
{
    grvi_json_begin_object(w);
    grvi_json_key(w, "grove_geom");
    grvi_json_begin_object(w);
    grvc_json_text(w, "command", command);
}

grv_status grvc_output_group(const grvc_output *output, const char *name, grvi_text *attributes)
{
    grvi_text path = {0};
    const char *const parent = output->node.path;
    grvi_text_printf(&path, "%s%s%s", parent, parent[0] != '\0' && name[0] != '\0' ? "/" : "",
                     name);
    grv_status status = grvi_text_status(&path);
    if (status == GRV_OK) status = grvi_text_status(attributes);
    if (status == GRV_OK)
        status = grv_group_create(output->node.store, path.data, attributes->data);
    grvi_text_fini(&path);
    grvi_text_fini(attributes);
    return status;
}

/* What was there goes aside first, so that a failure leaves either of the two in its place. */
static grv_status replace(const grvc_output *output)
{
    grvi_text old = {0};
    grvi_text_printf(&old, "%s.partial-old-%ld", output->place, (long)getpid());
    grv_status status = grvi_text_status(&old);
    if (status == GRV_OK) status = grvi_fs_rename(output->place, old.data);
    if (status == GRV_OK) {
        status = grvi_fs_rename(output->aside, output->place);
        if (status == GRV_OK)
            status = grvi_fs_remove_tree(old.data);
        else
            (void)rename(old.data, output->place);
    }
    grvi_text_fini(&old);
    return status;
}

grv_status grvc_output_publish(grvc_output *output)
{
    grvc_node_close(&output->node);
    if (output->overwrite && grvi_fs_exists(output->place))
        GRV_TRY(replace(output));
    else
        GRV_TRY(grvi_fs_rename(output->aside, output->place));
    grv_free(output->aside);
    output->aside = NULL;
    return GRV_OK;
}

grv_status grvc_output_finish(grvc_output *output, const grv_mesh *mesh, int n_threads)
{
    const grv_mesh_write_params params = {.n_threads = n_threads};
    return output->is_file ? grv_mesh_write(mesh, output->place, &params)
                           : grvc_output_publish(output);
}

void grvc_output_fini(grvc_output *output)
{
    grvc_node_close(&output->node);
    if (output->aside != NULL && grvi_fs_remove_tree(output->aside) != GRV_OK)
        (void)fprintf(stderr, "%s is left\n", output->aside);
    grv_free(output->aside);
    grv_free(output->place);
    *output = (grvc_output){0};
}

grv_status grvc_output_array(grvc_output *output, const char *name, grv_array_desc *desc,
                             int64_t chunk_rows, grv_array **array)
{
    grvi_text path = {0};
    for (int i = 0; i < desc->rank; i++) desc->chunk_shape[i] = grvi_max_i64(desc->shape[i], 1);
    desc->chunk_shape[0] = grvi_max_i64(1, grvi_min_i64(chunk_rows, desc->shape[0]));
    grvi_text_printf(&path, "%s%s%s", output->node.path, output->node.path[0] != '\0' ? "/" : "",
                     name);
    grv_status status = grvi_text_status(&path);
    if (status == GRV_OK) status = grv_array_create(output->node.store, path.data, desc, array);
    grvi_text_fini(&path);
    return status;
}

grv_status grvc_picture_check(const char *path, bool overwrite)
{
    GRV_TRY(grvc_check_picture(path));
    return check_free(path, overwrite);
}
