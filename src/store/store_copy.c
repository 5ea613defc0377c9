/* Copying nodes from store to store, with another layout if asked for: the tree. copy_array.c copies one array. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/copy_impl.h"

grv_copy_params grv_copy_params_default(void)
{
    return (grv_copy_params){.memory_bytes = (int64_t)1 << 30, .resume = true};
}

/* A group of another version keeps its attributes only: that is all that version 2 has. */
static grv_status convert_group(grvi_copier *c, const char *from_path, const char *to_path)
{
    grv_status status = GRV_OK;
    char *attributes = NULL;
    grvi_text text = {0};
    grvi_node_text node = {0};
    GRV_TRY_GOTO(grv_attributes_get(c->source, from_path, &attributes));
    GRV_TRY_GOTO(grvi_metadata_make_group(c->params->layout.zarr_format, attributes, &text));
    GRV_TRY_GOTO(grvi_node_text_make(GRV_NODE_GROUP, &text, to_path, &node));
    GRV_TRY_GOTO(grvi_store_publish_node(c->target, to_path, &node));
done:
    grvi_node_text_fini(&node);
    grvi_text_fini(&text);
    grv_free(attributes);
    return status;
}

static grv_status copy_group(grvi_copier *c, const char *from_path, const char *to_path)
{
    const int wanted = c->params->layout.zarr_format;
    grvi_json *document = NULL;
    grv_node_kind kind = GRV_NODE_NONE, there = GRV_NODE_NONE;
    c->report.n_groups++;
    GRV_TRY(grv_store_node(c->target, to_path, &there));
    if (there == GRV_NODE_GROUP) return GRV_OK; /* an earlier call made it */
    GRV_TRY(grvi_metadata_load(c->source->kv, from_path, &document, &kind));
    const bool is_kept = wanted == 0 || wanted == grvi_metadata_version(document);
    grvi_json_free(document);
    return is_kept ? grvi_copy_publish_document(c, from_path, to_path)
                   : convert_group(c, from_path, to_path);
}

static grv_status copy_node(grvi_copier *c, const grvi_tree_node *node)
{
    grv_status status = GRV_OK;
    grvi_text from = {0}, to = {0};
    grvi_join_key(&from, c->source_path, node->path);
    grvi_join_key(&to, c->target_path, node->path);
    GRV_TRY_GOTO(grvi_text_status(&from));
    GRV_TRY_GOTO(grvi_text_status(&to));
    if (node->kind == GRV_NODE_GROUP) {
        GRV_TRY_GOTO(copy_group(c, grvi_text_get(&from), grvi_text_get(&to)));
        if (c->resumed) GRV_TRY_GOTO(grvi_copy_clean_folder(c, grvi_text_get(&to)));
    } else {
        GRV_TRY_GOTO(
            grvi_copy_array(c, grvi_text_get(&from), grvi_text_get(&to), node->path[0] == '\0'));
    }
done:
    grvi_text_fini(&from);
    grvi_text_fini(&to);
    return status;
}

/* Everything that is to be copied can be opened; adds up the bytes. */
static grv_status survey(grvi_copier *c, const grvi_tree *tree)
{
    for (int64_t i = 0; i < tree->n; i++) {
        grv_status status = GRV_OK;
        grvi_text path = {0};
        grv_array *array = NULL;
        grv_node_kind kind = GRV_NODE_NONE;
        grvi_join_key(&path, c->source_path, tree->nodes[i].path);
        status = grvi_text_status(&path);
        /* an unreadable one says why */
        if (status == GRV_OK) status = grv_store_node(c->source, grvi_text_get(&path), &kind);
        if (status == GRV_OK && kind == GRV_NODE_ARRAY)
            status = grv_array_open(c->source, grvi_text_get(&path), &array);
        if (array != NULL) c->total = grvi_add_bytes(c->total, grvi_array_bytes(array));
        grv_array_close(&array);
        grvi_text_fini(&path);
        GRV_TRY(status);
    }
    return GRV_OK;
}

/* The target is free, or holds the unfinished copy that is to go on. */
static grv_status check_target(grvi_copier *c)
{
    grv_status status = GRV_OK;
    grvi_json *record = NULL;
    const char *const name = c->params->source_name != NULL ? c->params->source_name : "";
    GRV_TRY(grvi_store_check_writable(c->target));
    GRV_TRY_GOTO(grvi_copy_load_record(c, c->target_path, &record));
    /* a call that was killed while it wrote the record left a part of it aside */
    GRV_TRY_GOTO(grvi_copy_has_leftovers(c, c->target_path, &c->resumed));
    c->resumed = c->resumed || record != NULL;
    if (record == NULL) return grvi_check_absent(c->target, c->target_path);
    GRV_CHECK_GOTO(c->params->resume, GRV_E_EXISTS,
                   "an unfinished copy stands at '%s'; it is not to go on (resume)",
                   c->target->location);
    const char *const source = grvi_json_as_string(grvi_json_get(record, "source"));
    GRV_CHECK_GOTO(source != NULL && strcmp(source, name) == 0, GRV_E_EXISTS,
                   "an unfinished copy of '%s' stands there, this one is of '%s'; remove it, or "
                   "copy to another place",
                   source != NULL ? source : "", name);
done:
    grvi_json_free(record);
    return status;
}

/* The record of a group: an array's is made with the array. */
static grv_status begin_group_record(grvi_copier *c)
{
    grv_status status = GRV_OK;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    grvi_json_key(&w, "source");
    grvi_json_string(&w, c->params->source_name != NULL ? c->params->source_name : "");
    grvi_json_end_object(&w);
    GRV_TRY_GOTO(grvi_text_status(&text));
    GRV_TRY_GOTO(grvi_copy_put_record(c, c->target_path, &text));
done:
    grvi_text_fini(&text);
    return status;
}

grv_status grv_store_copy(grv_store *source, const char *source_path, grv_store *target,
                          const char *target_path, const grv_copy_params *params,
                          grv_copy_report *report)
{
    const grv_copy_params defaults = grv_copy_params_default();
    grvi_copier c = {.source = source,
                     .target = target,
                     .source_path = source_path,
                     .target_path = target_path,
                     .params = params != NULL ? params : &defaults};
    grv_status status = GRV_OK;
    grvi_tree tree = {0};
    GRV_TRY_GOTO(check_target(&c));
    GRV_TRY_GOTO(grvi_tree_list(source, source_path, &tree));
    GRV_TRY_GOTO(survey(&c, &tree));
    const bool is_group = tree.nodes[0].kind == GRV_NODE_GROUP;
    if (is_group) GRV_TRY_GOTO(begin_group_record(&c));
    for (int64_t i = 0; i < tree.n; i++) GRV_TRY_GOTO(copy_node(&c, &tree.nodes[i]));
    GRV_TRY_GOTO(grv_store_commit(target));
    if (is_group) GRV_TRY_GOTO(grvi_copy_remove_record(&c, target_path));
    if (report != NULL) *report = c.report;
done:
    grvi_tree_fini(&tree);
    return status;
}
