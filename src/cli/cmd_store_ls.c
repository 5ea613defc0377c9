/* grove store ls: the groups and arrays in a group, or all below it. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/store_cli.h"
#include "grove/core.h"

typedef struct ls_config {
    bool recursive;
} ls_config;

static const grv_option options[] = {
    {.key = "recursive",
     .type = GRV_OPTION_BOOL,
     .offset = offsetof(ls_config, recursive),
     .fallback = "false",
     .help = "also what is in the groups below"},
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

enum { NAME_COLUMNS = 20 };

/* Where the listing stands. */
typedef struct listing {
    grv_store *store;
    grvi_json_writer *w; /* NULL: lines of text */
    const char *root;    /* path of the group that was asked for */
    bool recursive;
} listing;

static void print_shape(int rank, const int64_t *shape)
{
    (void)printf("[");
    for (int i = 0; i < rank; i++) (void)printf(i == 0 ? "%lld" : ", %lld", (long long)shape[i]);
    (void)printf("]");
}

static grv_status list_array(const listing *l, const char *path, const char *name)
{
    grv_array *array = NULL;
    grv_status status = grv_array_open(l->store, path, &array);
    if (status == GRV_OK && l->w != NULL) status = grvc_json_array(l->w, array, false);
    if (status == GRV_OK && l->w == NULL) {
        const int padding = (int)grvi_max_i64(0, NAME_COLUMNS - (int64_t)strlen(name));
        (void)printf("%*s  %-8s  ", padding, "",
                     grv_store_type_name(grv_array_get_desc(array)->type));
        print_shape(grv_array_get_desc(array)->rank, grv_array_get_desc(array)->shape);
    }
    grv_array_close(&array);
    /* an array that is refused is named with the reason; the others are listed all the same */
    if (status != GRV_E_UNSUPPORTED && status != GRV_E_FORMAT) return status;
    if (l->w != NULL)
        grvc_json_text(l->w, "error", grv_error_message());
    else
        (void)printf("  (%s)", grv_error_message());
    return GRV_OK;
}

/* One line for a child, or one object of the JSON list. name: relative to the root. */
static grv_status list_child(const listing *l, const char *path, const char *name,
                             grv_node_kind kind)
{
    grv_status status = GRV_OK;
    if (l->w != NULL) {
        grvi_json_begin_object(l->w);
        grvc_json_text(l->w, "name", name);
        grvc_json_text(l->w, "kind", grvc_kind_name(kind));
    } else {
        (void)printf("%-10s  %s", grvc_kind_name(kind), name);
    }
    if (kind == GRV_NODE_ARRAY) status = list_array(l, path, name);
    if (l->w != NULL)
        grvi_json_end_object(l->w);
    else
        (void)printf("\n");
    return status;
}

static grv_status list_group(const listing *l, const char *below)
{
    grv_status status = GRV_OK;
    grv_store_child *children = NULL;
    grvi_text path = {0}, name = {0};
    int64_t n = 0;
    grvi_text_printf(&path, "%s%s%s", l->root, l->root[0] != '\0' && below[0] != '\0' ? "/" : "",
                     below);
    GRV_TRY_GOTO(grvi_text_status(&path));
    GRV_TRY_GOTO(grv_store_list(l->store, path.data, &children, &n));
    for (int64_t i = 0; i < n; i++) {
        name.n = path.n = 0;
        grvi_text_printf(&name, "%s%s%s", below, below[0] != '\0' ? "/" : "", children[i].name);
        grvi_text_printf(&path, "%s%s%s", l->root, l->root[0] != '\0' ? "/" : "", name.data);
        GRV_TRY_GOTO(grvi_text_status(&name));
        GRV_TRY_GOTO(grvi_text_status(&path));
        GRV_TRY_GOTO(list_child(l, path.data, name.data, children[i].kind));
        if (l->recursive && children[i].kind == GRV_NODE_GROUP)
            GRV_TRY_GOTO(list_group(l, name.data));
    }
done:
    grv_store_children_free(children, n);
    grvi_text_fini(&path);
    grvi_text_fini(&name);
    return status;
}

static grv_status run(const grvc_session *session, const ls_config *config)
{
    const char *const word = session->words[0];
    grv_status status = GRV_OK;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grv_node_kind kind = GRV_NODE_NONE;
    grvc_node node;
    GRV_TRY(grvc_node_open(word, 1, &node));
    GRV_TRY_GOTO(grvc_node_kind(&node, word, &kind));
    GRV_CHECK_GOTO(kind == GRV_NODE_GROUP, GRV_E_ARG,
                   "%s is an array and has no children; `grove store info` describes it", word);
    const listing l = {node.store, session->json ? &w : NULL, node.path, config->recursive};
    if (session->json) grvi_json_begin_array(&w);
    GRV_TRY_GOTO(list_group(&l, ""));
    if (session->json) {
        grvi_json_end_array(&w);
        GRV_TRY_GOTO(grvc_json_print(&text));
    }
done:
    grvi_text_fini(&text);
    grvc_node_close(&node);
    return status;
}

int grvc_store_ls(int argc, char **argv)
{
    ls_config config = {0};
    grvc_session session = {.name = "grove store ls",
                            .about = "Lists the groups and arrays in a group.",
                            .words_usage = "PATH",
                            .min_words = 1,
                            .max_words = 1,
                            .table = &table,
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session, &config));
}
