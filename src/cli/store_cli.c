/* Locations, progress and JSON of the commands of `grove store`. */
#include "cli/store_cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"
#include "store/store_type.h"

/* Shorter steps show no progress. */
static const double quiet_s = 1;
static const int64_t most_record_bytes = (int64_t)64 << 20;

int grvc_threads(int threads)
{
    return threads > 0 ? threads : grv_threads_available();
}

/* ---- nodes ---- */

static bool is_address(const char *word)
{
    return strstr(word, "://") != NULL;
}

bool grvc_is_zarr_folder(const char *folder)
{
    char path[4096];
    static const char *const names[] = {"zarr.json", ".zgroup", ".zarray"};
    for (int i = 0; i < 3; i++) {
        const int n =
            snprintf(path, sizeof path, "%s/%s", folder[0] != '\0' ? folder : "/", names[i]);
        if (n > 0 && n < (int)sizeof path && grvi_fs_exists(path)) return true;
    }
    return false;
}

/* Length of the topmost folder above the word that belongs to the same tree of groups. Folders that are not there yet
 * are groups to be made if there is a group above them. */
static size_t topmost_length(char *word)
{
    size_t length = strlen(word);
    for (char *slash = strrchr(word, '/'); slash != NULL && slash > word;) {
        *slash = '\0';
        const bool is_group = grvc_is_zarr_folder(word), is_there = grvi_fs_exists(word);
        char *const next = strrchr(word, '/');
        *slash = '/';
        if (is_there && !is_group) break;
        if (is_group) length = (size_t)(slash - word);
        slash = next;
    }
    return length;
}

static grv_status open_node(const char *word, bool is_new, const grv_store_params *params,
                            grvc_node *node)
{
    grv_status status = GRV_OK;
    char *location = NULL;
    *node = (grvc_node){0};
    GRV_CHECK(word[0] != '\0', GRV_E_ARG, "the path of the store is empty");
    GRV_TRY_GOTO(grvi_strdup(word, &location));
    for (size_t n = strlen(location); n > 1 && location[n - 1] == '/'; n--) location[n - 1] = '\0';
    const size_t length = is_new ? topmost_length(location) : strlen(location);
    const char *const rest = location[length] == '/' ? location + length + 1 : "";
    GRV_TRY_GOTO(grvi_strdup(rest, &node->path));
    location[length] = '\0';
    if (is_new && !grvi_fs_exists(location)) GRV_TRY_GOTO(grvi_strdup(location, &node->folder));
    GRV_TRY_GOTO(grv_store_open(location, params, &node->store));
done:
    grv_free(location);
    if (status != GRV_OK) grvc_node_close(node);
    return status;
}

grv_status grvc_node_open(const char *word, int n_threads, grvc_node *node)
{
    grv_store_params params = grv_store_params_default();
    params.n_threads = n_threads;
    return open_node(word, false, &params, node);
}

grv_status grvc_node_open_new(const char *word, int n_threads, grv_store_sync sync, grvc_node *node)
{
    grv_store_params params = grv_store_params_default();
    GRV_CHECK(!is_address(word), GRV_E_UNSUPPORTED, "%s: stores are written to folders only", word);
    params.n_threads = n_threads;
    params.writable = true;
    params.sync = sync;
    return open_node(word, true, &params, node);
}

void grvc_node_close(grvc_node *node)
{
    grv_store_close(&node->store);
    if (node->folder != NULL)
        (void)rmdir(node->folder); /* does nothing to a folder that is not empty */
    grv_free(node->folder);
    grv_free(node->path);
    *node = (grvc_node){0};
}

/* An array that is being copied has no metadata yet. */
static grv_status check_unfinished(const grvc_node *node, const char *word)
{
    grvi_text key = {0};
    char *record = NULL;
    int64_t n = 0;
    grvi_text_printf(&key, "%s%scopy.partial.json", node->path, node->path[0] != '\0' ? "/" : "");
    grv_status status = grvi_text_status(&key);
    if (status == GRV_OK)
        status = grv_store_get(node->store, key.data, most_record_bytes, &record, &n);
    const bool is_unfinished = record != NULL;
    grv_free(record);
    grvi_text_fini(&key);
    GRV_TRY(status);
    GRV_CHECK(!is_unfinished, GRV_E_NOT_FOUND,
              "%s is an unfinished copy; the same copy again goes on with it", word);
    return GRV_OK;
}

grv_status grvc_node_kind(const grvc_node *node, const char *word, grv_node_kind *kind)
{
    GRV_TRY(grv_store_node(node->store, node->path, kind));
    if (*kind == GRV_NODE_NONE) GRV_TRY(check_unfinished(node, word));
    GRV_CHECK(*kind != GRV_NODE_NONE, GRV_E_NOT_FOUND,
              "%s is neither a group nor an array (no zarr.json); `grove store ls` lists what is "
              "in the folder above, if that is a group",
              word);
    return GRV_OK;
}

/* ---- progress ---- */

static void begin_tool(grvc_tool *tool, const grvc_session *session, const char *label,
                       const char *unit, int64_t unit_size)
{
    *tool = (grvc_tool){.log = session->log,
                        .label = label,
                        .unit = unit,
                        .unit_size = unit_size,
                        .start_s = grv_clock_seconds()};
    grvc_interrupt_install();
}

void grvc_tool_begin(grvc_tool *tool, const grvc_session *session, const char *label)
{
    enum { MEGA = 1000000 };
    begin_tool(tool, session, label, "MB", MEGA);
}

void grvc_tool_begin_counting(grvc_tool *tool, const grvc_session *session, const char *label,
                              const char *unit)
{
    begin_tool(tool, session, label, unit, 1);
}

bool grvc_tool_advance(grvc_tool *tool, int64_t done, int64_t total)
{
    if (!tool->is_shown && done < total && grv_clock_seconds() - tool->start_s > quiet_s) {
        grv_progress_begin(&tool->progress, tool->log, tool->label, tool->unit,
                           total / tool->unit_size);
        tool->is_shown = true;
    }
    if (tool->is_shown) grv_progress_update(&tool->progress, done / tool->unit_size);
    return !grvc_interrupted();
}

static bool advance_hook(void *argument, int64_t done, int64_t total)
{
    return grvc_tool_advance(argument, done, total);
}

grv_tool_hooks grvc_tool_hooks(grvc_tool *tool)
{
    return (grv_tool_hooks){advance_hook, tool};
}

double grvc_tool_end(grvc_tool *tool)
{
    if (tool->is_shown) grv_progress_end(&tool->progress);
    tool->is_shown = false;
    return grv_clock_seconds() - tool->start_s;
}

/* ---- JSON ---- */

void grvc_json_text(grvi_json_writer *w, const char *key, const char *value)
{
    grvi_json_key(w, key);
    grvi_json_string(w, value);
}

void grvc_json_integer(grvi_json_writer *w, const char *key, int64_t value)
{
    grvi_json_key(w, key);
    grvi_json_i64(w, value);
}

void grvc_json_number(grvi_json_writer *w, const char *key, double value)
{
    grvi_json_key(w, key);
    grvi_json_double(w, value);
}

void grvc_json_numbers(grvi_json_writer *w, const char *key, int n, const double *values)
{
    grvi_json_key(w, key);
    grvi_json_begin_array(w);
    for (int i = 0; i < n; i++) grvi_json_double(w, values[i]);
    grvi_json_end_array(w);
}

void grvc_json_lengths(grvi_json_writer *w, const char *key, int rank, const int64_t *lengths)
{
    grvi_json_key(w, key);
    grvi_json_begin_array(w);
    for (int i = 0; i < rank; i++) grvi_json_i64(w, lengths[i]);
    grvi_json_end_array(w);
}

void grvc_json_reads(grvi_json_writer *w, const grv_store *store, double seconds)
{
    const grv_store_counters counters = grv_store_counters_get(store);
    grvc_json_integer(w, "bytes_read", counters.bytes_read);
    grvc_json_integer(w, "bytes_decoded", counters.bytes_decoded);
    grvc_json_number(w, "seconds", seconds);
}

grv_status grvc_json_print(grvi_text *document)
{
    const grv_status status = grvi_text_status(document);
    if (status == GRV_OK) (void)printf("%s\n", grvi_text_get(document));
    grvi_text_fini(document);
    return status;
}

const char *grvc_kind_name(grv_node_kind kind)
{
    return kind == GRV_NODE_GROUP ? "group" : kind == GRV_NODE_ARRAY ? "array" : "unreadable";
}

static void write_dimensions(grvi_json_writer *w, const grv_array_desc *desc)
{
    bool any = false;
    for (int i = 0; i < desc->rank; i++) any = any || desc->dimension_names[i] != NULL;
    if (!any) return;
    grvi_json_key(w, "dimensions");
    grvi_json_begin_array(w);
    for (int i = 0; i < desc->rank; i++) {
        if (desc->dimension_names[i] != NULL)
            grvi_json_string(w, desc->dimension_names[i]);
        else
            grvi_json_null(w);
    }
    grvi_json_end_array(w);
}

grv_status grvc_json_array(grvi_json_writer *w, grv_array *array, bool in_full)
{
    const grv_array_desc *const desc = grv_array_get_desc(array);
    int64_t n_objects = 0, n_bytes = 0;
    if (in_full) grvc_json_integer(w, "zarr_format", desc->zarr_format);
    grvc_json_text(w, "type", grv_store_type_name(desc->type));
    grvc_json_lengths(w, "shape", desc->rank, desc->shape);
    write_dimensions(w, desc);
    const grv_status status = grv_array_stored(array, &n_objects, &n_bytes);
    if (status == GRV_OK) {
        grvc_json_integer(w, "stored_objects", n_objects);
        grvc_json_integer(w, "stored_bytes", n_bytes);
    } else if (status != GRV_E_UNSUPPORTED) { /* a server has no lists */
        return status;
    }
    if (!in_full) return GRV_OK;
    grvc_json_lengths(w, desc->sharded ? "shard" : "chunk", desc->rank, desc->chunk_shape);
    if (desc->sharded) grvc_json_lengths(w, "chunk", desc->rank, desc->inner_shape);
    grvi_json_key(w, "fill");
    GRV_TRY(grvi_fill_to_json(w, (grvi_item){desc->type, desc->item_bytes}, grvi_fill_of(desc), 3));
    grvi_json_key(w, "codecs");
    grvi_json_raw(w, desc->codecs);
    return GRV_OK;
}
