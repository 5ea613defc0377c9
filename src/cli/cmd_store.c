/* grove store ls|info: what lies in a Zarr store or a data set. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "core/check.h"
#include "core/json.h"
#include "grove/core.h"
#include "grove/dataset.h"
#include "store/store_type.h"

static const char *kind_name(grv_node_kind kind)
{
    return kind == GRV_NODE_GROUP ? "group" : kind == GRV_NODE_ARRAY ? "array" : "unreadable";
}

static void write_lengths(grvi_json_writer *w, const char *key, int rank, const int64_t *lengths)
{
    grvi_json_key(w, key);
    grvi_json_begin_array(w);
    for (int i = 0; i < rank; i++) grvi_json_i64(w, lengths[i]);
    grvi_json_end_array(w);
}

static void write_string(grvi_json_writer *w, const char *key, const char *value)
{
    grvi_json_key(w, key);
    grvi_json_string(w, value);
}

static void write_integer(grvi_json_writer *w, const char *key, int64_t value)
{
    grvi_json_key(w, key);
    grvi_json_i64(w, value);
}

static bool has_names(const grv_array_desc *desc)
{
    for (int i = 0; i < desc->rank; i++) {
        if (desc->dimension_names[i] != NULL) return true;
    }
    return false;
}

/* Members that tell about an array, into an object that is open. */
static grv_status write_array(grvi_json_writer *w, grv_array *array, bool in_full)
{
    const grv_array_desc *const desc = grv_array_get_desc(array);
    int64_t n_objects = 0, n_bytes = 0;
    write_string(w, "type", grv_store_type_name(desc->type));
    write_lengths(w, "shape", desc->rank, desc->shape);
    if (has_names(desc)) {
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
    const grv_status status = grv_array_stored(array, &n_objects, &n_bytes);
    if (status == GRV_OK) {
        write_integer(w, "stored_objects", n_objects);
        write_integer(w, "stored_bytes", n_bytes);
    } else if (status != GRV_E_UNSUPPORTED) { /* a server has no lists */
        return status;
    }
    if (!in_full) return GRV_OK;
    write_lengths(w, desc->sharded ? "shard" : "chunk", desc->rank, desc->chunk_shape);
    if (desc->sharded) write_lengths(w, "chunk", desc->rank, desc->inner_shape);
    grvi_json_key(w, "fill");
    GRV_TRY(grvi_fill_to_json(w, (grvi_item){desc->type, desc->item_bytes}, grvi_fill_of(desc), 3));
    grvi_json_key(w, "codecs");
    grvi_json_raw(w, desc->codecs);
    return GRV_OK;
}

/* Prints a JSON object as "  key  value" lines, in the order of its members. */
static grv_status print_member(void *argument, const char *key, grvi_json *value)
{
    grvi_text text = {0};
    (void)argument;
    const char *string = grvi_json_as_string(value);
    if (string == NULL) {
        grvi_json_print(value, &text);
        string = grvi_text_get(&text);
    }
    (void)printf("  %-16s %s\n", key, string);
    const grv_status status = grvi_text_status(&text);
    grvi_text_fini(&text);
    return status;
}

static grv_status print_object(const char *json, bool as_json)
{
    grvi_json *root = NULL;
    if (as_json) {
        (void)printf("%s\n", json);
        return GRV_OK;
    }
    GRV_TRY(grvi_json_parse(json, (int64_t)strlen(json), "description", &root));
    const grv_status status = grvi_json_for_each(root, print_member, NULL);
    grvi_json_free(root);
    return status;
}

/* ---- info ---- */

/* The data set's summary, if the group is one. */
static grv_status write_dataset(grvi_json_writer *w, const char *path)
{
    grv_dataset *dataset = NULL;
    char *json = NULL;
    GRV_TRY(grv_dataset_open(path, NULL, &dataset));
    const grv_status status = grv_dataset_describe(dataset, &json);
    if (status == GRV_OK) {
        grvi_json_key(w, "dataset");
        grvi_json_raw(w, json);
    }
    grv_free(json);
    grv_dataset_close(&dataset);
    return status;
}

static grv_status write_group(grvi_json_writer *w, grv_store *store, const char *path,
                              const char *attributes)
{
    grv_store_child *children = NULL;
    int64_t n = 0;
    const grv_status status = grv_store_list(store, "", &children, &n);
    if (status == GRV_OK) {
        grvi_json_key(w, "children");
        grvi_json_begin_array(w);
        for (int64_t i = 0; i < n; i++) grvi_json_string(w, children[i].name);
        grvi_json_end_array(w);
        grv_store_children_free(children, n);
    } else if (status != GRV_E_UNSUPPORTED) { /* a server has no lists */
        return status;
    }
    return strstr(attributes, "\"grove_dataset\"") != NULL ? write_dataset(w, path) : GRV_OK;
}

static grv_status write_node(grvi_json_writer *w, grv_store *store, const char *path)
{
    grv_status status = GRV_OK;
    grv_array *array = NULL;
    char *attributes = NULL;
    grv_node_kind kind = GRV_NODE_NONE;
    GRV_TRY(grv_store_node(store, "", &kind));
    GRV_CHECK(kind != GRV_NODE_NONE, GRV_E_NOT_FOUND,
              "%s is neither a group nor an array (no zarr.json)", path);
    GRV_TRY_GOTO(grv_attributes_get(store, "", &attributes));
    grvi_json_begin_object(w);
    write_string(w, "kind", kind_name(kind));
    if (kind == GRV_NODE_ARRAY) {
        GRV_TRY_GOTO(grv_array_open(store, "", &array));
        GRV_TRY_GOTO(write_array(w, array, true));
    } else {
        GRV_TRY_GOTO(write_group(w, store, path, attributes));
    }
    grvi_json_key(w, "attributes");
    grvi_json_raw(w, attributes);
    grvi_json_end_object(w);
done:
    grv_array_close(&array);
    grv_free(attributes);
    return status;
}

static grv_status run_info(grv_store *store, const char *path, bool as_json)
{
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = as_json};
    grv_status status = write_node(&w, store, path);
    if (status == GRV_OK) status = grvi_text_status(&text);
    if (status == GRV_OK && !as_json) (void)printf("%s\n", path);
    if (status == GRV_OK) status = print_object(text.data, as_json);
    grvi_text_fini(&text);
    return status;
}

/* ---- ls ---- */

static void print_shape(int rank, const int64_t *shape)
{
    (void)printf("[");
    for (int i = 0; i < rank; i++) (void)printf(i == 0 ? "%lld" : ", %lld", (long long)shape[i]);
    (void)printf("]");
}

/* One line for a child, or one object of the JSON list. */
static grv_status list_child(grvi_json_writer *w, grv_store *store, const grv_store_child *child,
                             bool as_json)
{
    grv_array *array = NULL;
    if (as_json) {
        grvi_json_begin_object(w);
        write_string(w, "name", child->name);
        write_string(w, "kind", kind_name(child->kind));
    } else {
        (void)printf("%-10s  %s", kind_name(child->kind), child->name);
    }
    if (child->kind == GRV_NODE_ARRAY) {
        grv_status status = grv_array_open(store, child->name, &array);
        if (status == GRV_OK && as_json) status = write_array(w, array, false);
        if (status == GRV_OK && !as_json) {
            const int padding = (int)grvi_max_i64(0, 20 - (int64_t)strlen(child->name));
            (void)printf("%*s  %-8s  ", padding, "",
                         grv_store_type_name(grv_array_get_desc(array)->type));
            print_shape(grv_array_get_desc(array)->rank, grv_array_get_desc(array)->shape);
        }
        grv_array_close(&array);
        /* an array that is refused is named with the reason; the others are listed all the same */
        if (status == GRV_E_UNSUPPORTED || status == GRV_E_FORMAT) {
            if (as_json)
                write_string(w, "error", grv_error_message());
            else
                (void)printf("  (%s)", grv_error_message());
        } else if (status != GRV_OK) {
            return status;
        }
    }
    if (as_json)
        grvi_json_end_object(w);
    else
        (void)printf("\n");
    return GRV_OK;
}

static grv_status run_ls(grv_store *store, const char *path, bool as_json)
{
    grv_status status = GRV_OK;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grv_store_child *children = NULL;
    grv_node_kind kind = GRV_NODE_NONE;
    int64_t n = 0;
    GRV_TRY(grv_store_node(store, "", &kind));
    GRV_CHECK(kind != GRV_NODE_NONE, GRV_E_NOT_FOUND,
              "%s is neither a group nor an array (no zarr.json)", path);
    GRV_CHECK(kind == GRV_NODE_GROUP, GRV_E_ARG,
              "%s is an array and has no children; `grove store info` describes it", path);
    GRV_TRY(grv_store_list(store, "", &children, &n));
    if (as_json) grvi_json_begin_array(&w);
    for (int64_t i = 0; i < n; i++) GRV_TRY_GOTO(list_child(&w, store, &children[i], as_json));
    if (as_json) grvi_json_end_array(&w);
    GRV_TRY_GOTO(grvi_text_status(&text));
    if (as_json) (void)printf("%s\n", grvi_text_get(&text));
done:
    grv_store_children_free(children, n);
    grvi_text_fini(&text);
    return status;
}

static grv_status run(const grvc_session *session)
{
    const bool is_ls = strcmp(session->words[0], "ls") == 0;
    const char *const path = session->words[1];
    grv_store *store = NULL;
    GRV_TRY(grv_store_open(path, NULL, &store));
    const grv_status status =
        is_ls ? run_ls(store, path, session->json) : run_info(store, path, session->json);
    grv_store_close(&store);
    return status;
}

int grvc_store(int argc, char **argv)
{
    grvc_session session = {
        .name = "grove store",
        .about = "Looks into a Zarr (version 3) store or a data set.\n"
                 "  ls PATH    the groups and arrays in a group\n"
                 "  info PATH  one group, data set or array: PATH/NAME for an array in a group\n"
                 "PATH is a folder, a zip archive (ARCHIVE.zip/NAME for what is in it) or an address http://...",
        .words_usage = "ls|info PATH",
        .min_words = 2,
        .max_words = 2};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    if (strcmp(session.words[0], "ls") != 0 && strcmp(session.words[0], "info") != 0) {
        if (session.rank == 0)
            (void)fprintf(stderr, "grove store: ls or info expected, '%.80s' found\n",
                          session.words[0]);
        (void)grvc_end(&session, GRV_OK);
        return GRVC_EXIT_USAGE;
    }
    return grvc_end(&session, run(&session));
}
