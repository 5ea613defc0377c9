/* Consolidated metadata: looking nodes up in a copy, and making one. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/consolidated.h"
#include "store/store_impl.h"

void grvi_consolidated_init(grvi_consolidated *copy)
{
    *copy = (grvi_consolidated){.zarr_format = 0};
    (void)pthread_mutex_init(&copy->lock, NULL);
}

void grvi_consolidated_fini(grvi_consolidated *copy)
{
    grvi_json_free(copy->root);
    (void)pthread_mutex_destroy(&copy->lock);
}

/* ---- reading ---- */

static grv_status load_copy(grvi_consolidated *copy, grvi_kv *kv)
{
    if (copy->is_loaded) return GRV_OK;
    GRV_TRY(grvi_metadata_load_json(kv, "", "zarr.json", &copy->root));
    copy->zarr_format = copy->root != NULL ? 3 : 2;
    const grvi_json *inner = grvi_json_get(copy->root, "consolidated_metadata");
    if (copy->root == NULL) {
        GRV_TRY(grvi_metadata_load_json(kv, "", ".zmetadata", &copy->root));
        inner = copy->root;
    }
    copy->documents = grvi_json_get(inner, "metadata");
    copy->is_loaded = true;
    return GRV_OK;
}

static const grvi_json *find(const grvi_consolidated *copy, const char *path, const char *name,
                             grvi_text *key)
{
    if (grvi_metadata_key(path, name, key) != GRV_OK) return NULL;
    return grvi_json_get(copy->documents, key->data);
}

static grv_status load_from_copy(const grvi_consolidated *copy, const char *path,
                                 grvi_json **document, grv_node_kind *kind)
{
    grv_status status = GRV_OK;
    grvi_text text = {0};
    if (copy->zarr_format == 3) {
        const grvi_json *const node =
            path[0] == '\0' ? copy->root : grvi_json_get(copy->documents, path);
        if (node == NULL) return GRV_OK;
        grvi_json_print(node, &text); /* a copy of its own for the caller */
        GRV_TRY_GOTO(grvi_text_status(&text));
        GRV_TRY_GOTO(grvi_json_parse(text.data, text.n, path, document));
        GRV_TRY_GOTO(grvi_metadata_kind(*document, path, kind));
    } else {
        const grvi_json *node = find(copy, path, ".zarray", &text);
        *kind = node != NULL ? GRV_NODE_ARRAY : GRV_NODE_GROUP;
        if (node == NULL) node = find(copy, path, ".zgroup", &text);
        const grvi_json *const attributes = find(copy, path, ".zattrs", &text);
        GRV_TRY_GOTO(grvi_text_status(&text));
        if (node == NULL)
            *kind = GRV_NODE_NONE;
        else
            GRV_TRY_GOTO(
                grvi_v2_read_node(*kind, node, attributes, path[0] != '\0' ? path : "/", document));
    }
done:
    grvi_text_fini(&text);
    return status;
}

grv_status grvi_consolidated_load(grvi_consolidated *copy, grvi_kv *kv, const char *path,
                                  grvi_json **document, grv_node_kind *kind)
{
    *document = NULL;
    *kind = GRV_NODE_NONE;
    (void)pthread_mutex_lock(&copy->lock);
    grv_status status = load_copy(copy, kv);
    if (status == GRV_OK)
        status = load_from_copy(copy, path, document, kind);
    else if (status != GRV_E_NOMEM)
        status =
            GRV_OK; /* none that can be read: the node itself may be, or its own failure tells more */
    (void)pthread_mutex_unlock(&copy->lock);
    if (status != GRV_OK) {
        grvi_json_free(*document);
        *document = NULL;
    }
    return status;
}

typedef struct child_search {
    const char *path;
    int zarr_format;
    grvi_kv_visit *visit;
    void *argument;
} child_search;

/* Keys are "path/name" in version 3, "path/name/.zarray" or ".zgroup" in version 2. */
static grv_status visit_child(void *argument, const char *key, grvi_json *value)
{
    const child_search *const search = argument;
    grv_status status = GRV_OK;
    char *name = NULL;
    const size_t n_path = strlen(search->path);
    (void)value;
    if (n_path > 0) {
        if (strncmp(key, search->path, n_path) != 0 || key[n_path] != '/') return GRV_OK;
        key += n_path + 1;
    }
    const size_t n = strcspn(key, "/");
    const char *const rest = key + n;
    const bool is_child = search->zarr_format == 3
                              ? rest[0] == '\0'
                              : strcmp(rest, "/.zarray") == 0 || strcmp(rest, "/.zgroup") == 0;
    if (!is_child) return GRV_OK;
    GRV_TRY(grvi_strdup(key, &name));
    name[n] = '\0';
    status = search->visit(search->argument, name, true);
    grv_free(name);
    return status;
}

/* The names first, then the calls, which may come back here for the nodes. */
typedef struct name_list {
    char **names;
    int64_t n;
} name_list;

static grv_status add_name(void *argument, const char *name, bool is_prefix)
{
    name_list *const list = argument;
    (void)is_prefix;
    GRV_TRY(GRVI_REALLOC(&list->names, list->n + 1));
    GRV_TRY(grvi_strdup(name, &list->names[list->n]));
    list->n++;
    return GRV_OK;
}

static void name_list_fini(name_list *list)
{
    for (int64_t i = 0; i < list->n; i++) grv_free(list->names[i]);
    grv_free(list->names);
}

static grv_status list_names(grvi_consolidated *copy, grvi_kv *kv, const char *path,
                             name_list *list, bool *has_copy)
{
    (void)pthread_mutex_lock(&copy->lock);
    grv_status status = load_copy(copy, kv);
    child_search search = {path, copy->zarr_format, add_name, list};
    if (status == GRV_OK) status = grvi_json_for_each(copy->documents, visit_child, &search);
    *has_copy = copy->documents != NULL;
    (void)pthread_mutex_unlock(&copy->lock);
    return status;
}

grv_status grvi_consolidated_list(grvi_consolidated *copy, grvi_kv *kv, const char *path,
                                  grvi_kv_visit *visit, void *argument)
{
    grv_status status = GRV_OK;
    name_list list = {NULL, 0};
    bool has_copy = false;
    GRV_TRY_GOTO(list_names(copy, kv, path, &list, &has_copy));
    /* without a copy the back end says why it cannot list */
    if (!has_copy) GRV_TRY_GOTO(kv->class->list(kv, path, visit, argument));
    for (int64_t i = 0; i < list.n; i++) GRV_TRY_GOTO(visit(argument, list.names[i], true));
done:
    name_list_fini(&list);
    return status;
}

/* ---- writing ---- */

/* The documents below a group, written into an object that is open. */
typedef struct collector {
    grv_store *store;
    const char *base; /* the group that is consolidated */
    int zarr_format;
    grvi_json_writer w;
} collector;

/* The part of a path below the group. */
static const char *below(const collector *c, const char *path)
{
    const size_t n = strlen(c->base);
    return n == 0 || path[n] == '\0' ? path + n : path + n + 1;
}

static grv_status add_document(collector *c, const char *path, const char *name)
{
    grv_status status = GRV_OK;
    grvi_json *document = NULL;
    grvi_text key = {0}, text = {0};
    GRV_TRY_GOTO(grvi_metadata_load_json(c->store->kv, path, name, &document));
    if (document == NULL) goto done;
    if (c->zarr_format == 3) {
        GRV_TRY_GOTO(grvi_metadata_change(document, NULL, &text)); /* without a copy of its own */
        grvi_text_append(&key, below(c, path));
    } else {
        grvi_json_print(document, &text);
        GRV_TRY_GOTO(grvi_metadata_key(below(c, path), name, &key));
    }
    GRV_TRY_GOTO(grvi_text_status(&text));
    GRV_TRY_GOTO(grvi_text_status(&key));
    grvi_json_key(&c->w, key.data);
    grvi_json_raw(&c->w, text.data);
done:
    grvi_text_fini(&text);
    grvi_text_fini(&key);
    grvi_json_free(document);
    return status;
}

static grv_status add_node(collector *c, const char *path, grv_node_kind kind)
{
    if (c->zarr_format == 3) return add_document(c, path, "zarr.json");
    GRV_TRY(add_document(c, path, kind == GRV_NODE_ARRAY ? ".zarray" : ".zgroup"));
    return add_document(c, path, ".zattrs");
}

static grv_status add_children(collector *c, const char *path)
{
    grv_status status = GRV_OK;
    grv_store_child *children = NULL;
    int64_t n = 0;
    grvi_text child = {0};
    GRV_TRY_GOTO(grv_store_list(c->store, path, &children, &n));
    for (int64_t i = 0; i < n; i++) {
        GRV_TRY_GOTO(grvi_metadata_key(path, children[i].name, &child));
        GRV_CHECK_GOTO(children[i].kind != GRV_NODE_UNREADABLE, GRV_E_FORMAT,
                       "'%s' has metadata that are broken or not supported", child.data);
        GRV_TRY_GOTO(add_node(c, child.data, children[i].kind));
        if (children[i].kind == GRV_NODE_GROUP) GRV_TRY_GOTO(add_children(c, child.data));
    }
done:
    grvi_text_fini(&child);
    grv_store_children_free(children, n);
    return status;
}

static grv_status put_copy(grv_store *store, const char *path, const grvi_json *document,
                           const grvi_text *copy)
{
    grv_status status = GRV_OK;
    grvi_text text = {0}, key = {0};
    const bool is_v3 = grvi_metadata_version(document) == 3;
    if (is_v3) GRV_TRY_GOTO(grvi_metadata_consolidate(document, copy->data, &text));
    const grvi_text *const whole = is_v3 ? &text : copy;
    GRV_TRY_GOTO(grvi_metadata_key(path, is_v3 ? "zarr.json" : ".zmetadata", &key));
    GRV_TRY_GOTO(store->kv->class->put(store->kv, key.data, whole->data, whole->n));
done:
    grvi_text_fini(&key);
    grvi_text_fini(&text);
    return status;
}

static void begin_copy(collector *c)
{
    grvi_json_begin_object(&c->w);
    if (c->zarr_format == 3) {
        grvi_json_key(&c->w, "kind");
        grvi_json_string(&c->w, "inline");
        grvi_json_key(&c->w, "must_understand");
        grvi_json_bool(&c->w, false);
    } else {
        grvi_json_key(&c->w, "zarr_consolidated_format");
        grvi_json_i64(&c->w, 1);
    }
    grvi_json_key(&c->w, "metadata");
    grvi_json_begin_object(&c->w);
}

grv_status grv_store_consolidate(grv_store *store, const char *path)
{
    grv_status status = GRV_OK;
    grvi_json *document = NULL;
    grv_node_kind kind = GRV_NODE_NONE;
    grvi_text copy = {0};
    GRV_TRY(grvi_store_check_writable(store));
    GRV_TRY_GOTO(grvi_metadata_load(store->kv, path, &document, &kind));
    GRV_CHECK_GOTO(kind == GRV_NODE_GROUP, GRV_E_NOT_FOUND, "no group '%s'",
                   path[0] != '\0' ? path : "/");
    collector c = {store, path, grvi_metadata_version(document), {.out = &copy}};
    begin_copy(&c);
    if (c.zarr_format == 2) GRV_TRY_GOTO(add_node(&c, path, GRV_NODE_GROUP));
    GRV_TRY_GOTO(add_children(&c, path));
    grvi_json_end_object(&c.w);
    grvi_json_end_object(&c.w);
    GRV_TRY_GOTO(grvi_text_status(&copy));
    GRV_TRY_GOTO(put_copy(store, path, document, &copy));
done:
    grvi_text_fini(&copy);
    grvi_json_free(document);
    return status;
}
