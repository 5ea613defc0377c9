/* grove store info: what one group, data set or array is. */
#include <stdio.h>
#include <string.h>

#include "cli/store_cli.h"
#include "grove/core.h"
#include "grove/dataset.h"

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

/* The data set's summary, if the group is one. */
static grv_status write_dataset(grvi_json_writer *w, const char *word)
{
    grv_dataset *dataset = NULL;
    char *json = NULL;
    GRV_TRY(grv_dataset_open(word, NULL, &dataset));
    const grv_status status = grv_dataset_describe(dataset, &json);
    if (status == GRV_OK) {
        grvi_json_key(w, "dataset");
        grvi_json_raw(w, json);
    }
    grv_free(json);
    grv_dataset_close(&dataset);
    return status;
}

static grv_status write_group(grvi_json_writer *w, const grvc_node *node, const char *word,
                              const char *attributes)
{
    grv_store_child *children = NULL;
    int64_t n = 0;
    const grv_status status = grv_store_list(node->store, node->path, &children, &n);
    if (status == GRV_OK) {
        grvi_json_key(w, "children");
        grvi_json_begin_array(w);
        for (int64_t i = 0; i < n; i++) grvi_json_string(w, children[i].name);
        grvi_json_end_array(w);
        grv_store_children_free(children, n);
    } else if (status != GRV_E_UNSUPPORTED) { /* a server has no lists */
        return status;
    }
    return strstr(attributes, "\"grove_dataset\"") != NULL ? write_dataset(w, word) : GRV_OK;
}

static grv_status write_node(grvi_json_writer *w, const grvc_node *node, const char *word)
{
    grv_status status = GRV_OK;
    grv_array *array = NULL;
    char *attributes = NULL;
    grv_node_kind kind = GRV_NODE_NONE;
    GRV_TRY(grvc_node_kind(node, word, &kind));
    GRV_TRY_GOTO(grv_attributes_get(node->store, node->path, &attributes));
    grvi_json_begin_object(w);
    grvc_json_text(w, "kind", grvc_kind_name(kind));
    if (kind == GRV_NODE_ARRAY) {
        GRV_TRY_GOTO(grv_array_open(node->store, node->path, &array));
        GRV_TRY_GOTO(grvc_json_array(w, array, true));
    } else {
        GRV_TRY_GOTO(write_group(w, node, word, attributes));
    }
    grvi_json_key(w, "attributes");
    grvi_json_raw(w, attributes);
    grvi_json_end_object(w);
done:
    grv_array_close(&array);
    grv_free(attributes);
    return status;
}

static grv_status run(const grvc_session *session)
{
    const char *const word = session->words[0];
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = session->json};
    grvc_node node;
    GRV_TRY(grvc_node_open(word, 1, &node));
    grv_status status = write_node(&w, &node, word);
    if (status == GRV_OK) status = grvi_text_status(&text);
    if (status == GRV_OK && !session->json) (void)printf("%s\n", word);
    if (status == GRV_OK) status = print_object(text.data, session->json);
    grvi_text_fini(&text);
    grvc_node_close(&node);
    return status;
}

int grvc_store_info(int argc, char **argv)
{
    grvc_session session = {
        .name = "grove store info",
        .about = "Describes a group, a data set, or an array: type, shape, chunks, codecs, "
                 "attributes.",
        .words_usage = "PATH",
        .min_words = 1,
        .max_words = 1};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session));
}
