/* Stores, groups and attributes. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/read_plan_impl.h"

grv_store_params grv_store_params_default(void)
{
    return (grv_store_params){.writable = false,
                              .sync = GRV_STORE_SYNC_NONE,
                              .n_threads = 1,
                              .n_io = -1,
                              .index_cache_bytes = (int64_t)64 << 20,
                              .max_chunk_bytes = INT32_MAX,
                              .zarr_format = 3,
                              .http_retries = 4,
                              .http_timeout_s = 30.0};
}

static grv_status ignore_name(void *argument, const char *name, bool is_prefix)
{
    (void)argument;
    (void)name;
    (void)is_prefix;
    return GRV_OK;
}

grv_status grvi_store_find_lists(grv_store *store)
{
    const grvi_kv_class *const class = store->kv->class;
    store->has_lists = true;
    if (class->put != NULL) return GRV_OK; /* what can be written can be listed */
    const grv_status status = class->list(store->kv, "", ignore_name, NULL);
    store->has_lists = status != GRV_E_UNSUPPORTED;
    if (!store->has_lists) grv_error_clear();
    return store->has_lists ? status : GRV_OK;
}

grv_status grv_store_open(const char *location, const grv_store_params *params, grv_store **out)
{
    grv_status status = GRV_OK;
    grv_store *store = NULL;
    *out = NULL;
    GRV_CHECK(location != NULL, GRV_E_ARG, "no location of the store given");
    GRV_CHECK(params == NULL || params->zarr_format == 2 || params->zarr_format == 3, GRV_E_ARG,
              "Zarr version 2 or 3 expected, %d asked for", params->zarr_format);
    GRV_TRY(GRVI_CALLOC(&store, 1));
    store->params = params != NULL ? *params : grv_store_params_default();
    grvi_scratch_pool_init(&store->scratches);
    grvi_index_cache_init(&store->indices, store->params.index_cache_bytes);
    grvi_consolidated_init(&store->consolidated);
    grvi_workers_init(&store->workers);
    (void)pthread_mutex_init(&store->plan_lock, NULL);
    GRV_TRY_GOTO(grvi_strdup(location, &store->location));
    GRV_TRY_GOTO(grvi_kv_create(location, &store->params, &store->kv));
    GRV_TRY_GOTO(grvi_store_find_lists(store));
    *out = store;
done:
    if (status != GRV_OK) grv_store_close(&store);
    return status;
}

grv_status grv_store_commit(grv_store *store)
{
    return store->kv->class->commit != NULL ? store->kv->class->commit(store->kv) : GRV_OK;
}

void grv_store_close(grv_store **store)
{
    if (store == NULL || *store == NULL) return;
    if ((*store)->kv != NULL && (*store)->params.writable && grv_store_commit(*store) != GRV_OK)
        grv_error_clear();
    grvi_workers_fini(&(*store)->workers);
    grvi_plans_fini(*store);
    grvi_index_cache_fini(&(*store)->indices);
    grvi_consolidated_fini(&(*store)->consolidated);
    grvi_scratch_pool_fini(&(*store)->scratches);
    grvi_kv_destroy(&(*store)->kv);
    grv_free((*store)->location);
    grv_free(*store);
    *store = NULL;
}

grv_store_counters grv_store_counters_get(const grv_store *store)
{
    return (grv_store_counters){.bytes_read = atomic_load(&store->bytes_read),
                                .bytes_decoded = atomic_load(&store->bytes_decoded),
                                .objects_opened = atomic_load(&store->objects_opened),
                                .read_calls = atomic_load(&store->read_calls),
                                .bytes_written = atomic_load(&store->bytes_written),
                                .requests = atomic_load(&store->kv->requests),
                                .retries = atomic_load(&store->kv->retries)};
}

void grvi_store_count_decoded(grv_store *store, grvi_scratch *scratch)
{
    (void)atomic_fetch_add(&store->bytes_decoded, scratch->bytes_decoded);
    scratch->bytes_decoded = 0;
}

grv_status grvi_store_check_writable(const grv_store *store)
{
    GRV_CHECK(store->params.writable, GRV_E_ARG, "the store was opened for reading only");
    return GRV_OK;
}

grv_status grv_store_put(grv_store *store, const char *key, const void *data, int64_t n_bytes)
{
    GRV_TRY(grvi_store_check_writable(store));
    GRV_TRY(grvi_kv_check_key(key));
    return store->kv->class->put(store->kv, key, data, n_bytes);
}

grv_status grv_store_get(grv_store *store, const char *key, int64_t max_bytes, char **data,
                         int64_t *n_bytes)
{
    *data = NULL;
    GRV_TRY(grvi_kv_check_key(key));
    return grvi_kv_get(store->kv, key, max_bytes, data, n_bytes);
}

grv_status grv_store_remove(grv_store *store, const char *key)
{
    GRV_TRY(grvi_store_check_writable(store));
    GRV_TRY(grvi_kv_check_key(key));
    return store->kv->class->remove(store->kv, key);
}

grv_status grvi_store_load(grv_store *store, const char *path, grvi_json **document,
                           grv_node_kind *kind)
{
    if (!store->has_lists) {
        if (path[0] != '\0') GRV_TRY(grvi_kv_check_key(path));
        GRV_TRY(grvi_consolidated_load(&store->consolidated, store->kv, path, document, kind));
        if (*document != NULL) return GRV_OK;
    }
    return grvi_metadata_load(store->kv, path, document, kind);
}

grv_status grv_store_node(grv_store *store, const char *path, grv_node_kind *kind)
{
    grvi_json *document = NULL;
    GRV_TRY(grvi_store_load(store, path, &document, kind));
    grvi_json_free(document);
    return GRV_OK;
}

static grv_status put_text(grv_store *store, const char *path, const char *name,
                           const grvi_text *text)
{
    grv_status status = GRV_OK;
    grvi_text key = {0};
    GRV_TRY_GOTO(grvi_metadata_key(path, name, &key));
    GRV_TRY_GOTO(text->n > 0 ? store->kv->class->put(store->kv, key.data, text->data, text->n)
                             : store->kv->class->remove(store->kv, key.data));
done:
    grvi_text_fini(&key);
    return status;
}

/* The document comes last: it is what makes the node. */
static grv_status put_node(grv_store *store, const char *path, const grvi_node_text *node)
{
    if (node->zarr_format == 3) return put_text(store, path, "zarr.json", &node->document);
    GRV_TRY(put_text(store, path, ".zattrs", &node->attributes));
    return put_text(store, path, node->kind == GRV_NODE_ARRAY ? ".zarray" : ".zgroup",
                    &node->document);
}

static grv_status put_group(grv_store *store, const char *path, int zarr_format)
{
    grv_status status = GRV_OK;
    grvi_text text = {0};
    grvi_node_text node = {0};
    GRV_TRY_GOTO(grvi_metadata_make_group(zarr_format, NULL, &text));
    GRV_TRY_GOTO(grvi_node_text_make(GRV_NODE_GROUP, &text, path, &node));
    GRV_TRY_GOTO(put_node(store, path, &node));
done:
    grvi_node_text_fini(&node);
    grvi_text_fini(&text);
    return status;
}

/* A consolidated copy of what is below a group is out of date once something below changes. */
static grv_status drop_consolidated(grv_store *store, const char *path, const grvi_json *document)
{
    grv_status status = GRV_OK;
    grvi_text text = {0};
    if (grvi_metadata_version(document) == 2) return put_text(store, path, ".zmetadata", &text);
    if (!grvi_json_has(document, "consolidated_metadata")) return GRV_OK;
    GRV_TRY_GOTO(grvi_metadata_change(document, NULL, &text));
    GRV_TRY_GOTO(put_text(store, path, "zarr.json", &text));
done:
    grvi_text_fini(&text);
    return status;
}

/* Can a node of this version be made below what is at a path? */
static grv_status check_group(const char *path, grv_node_kind kind, const grvi_json *document,
                              int zarr_format)
{
    const char *const name = path[0] != '\0' ? path : "/";
    GRV_CHECK(kind != GRV_NODE_ARRAY, GRV_E_EXISTS, "'%s' is an array and cannot have children",
              name);
    GRV_CHECK(
        grvi_metadata_version(document) == zarr_format, GRV_E_UNSUPPORTED,
        "'%s' is a group of Zarr version %d, and so must all be below it; version %d asked for",
        name, grvi_metadata_version(document), zarr_format);
    return GRV_OK;
}

/* The group at a path exists afterwards, and carries no consolidated copy that would be out of date. */
static grv_status ensure_group(grv_store *store, const char *path, int zarr_format)
{
    grv_status status = GRV_OK;
    grvi_json *document = NULL;
    grv_node_kind kind = GRV_NODE_NONE;
    GRV_TRY_GOTO(grvi_metadata_load(store->kv, path, &document, &kind));
    if (kind == GRV_NODE_NONE) return put_group(store, path, zarr_format);
    GRV_TRY_GOTO(check_group(path, kind, document, zarr_format));
    GRV_TRY_GOTO(drop_consolidated(store, path, document));
done:
    grvi_json_free(document);
    return status;
}

/* Calls visit for all groups above a path, from the top; stops at the first that does not return GRV_OK. */
typedef grv_status visit_parent(grv_store *store, const char *path, int *zarr_format);

static grv_status for_each_parent(grv_store *store, const char *path, visit_parent *visit,
                                  int *zarr_format)
{
    grv_status status = GRV_OK;
    char *copy = NULL;
    if (path[0] == '\0') return GRV_OK;
    GRV_TRY_GOTO(visit(store, "", zarr_format));
    GRV_TRY_GOTO(grvi_strdup(path, &copy));
    for (char *slash = strchr(copy, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        GRV_TRY_GOTO(visit(store, copy, zarr_format));
        *slash = '/';
    }
done:
    grv_free(copy);
    return status;
}

static grv_status ensure_parent(grv_store *store, const char *path, int *zarr_format)
{
    return ensure_group(store, path, *zarr_format);
}

static grv_status check_parent(grv_store *store, const char *path, int *zarr_format)
{
    grvi_json *document = NULL;
    grv_node_kind kind = GRV_NODE_NONE;
    GRV_TRY(grvi_metadata_load(store->kv, path, &document, &kind));
    const grv_status status =
        kind == GRV_NODE_NONE ? GRV_OK : check_group(path, kind, document, *zarr_format);
    grvi_json_free(document);
    return status;
}

/* ensure_group for all groups above a path. */
static grv_status ensure_parents(grv_store *store, const char *path, int zarr_format)
{
    return for_each_parent(store, path, ensure_parent, &zarr_format);
}

static grv_status note_version(grv_store *store, const char *path, int *zarr_format)
{
    grvi_json *document = NULL;
    grv_node_kind kind = GRV_NODE_NONE;
    GRV_TRY(grvi_metadata_load(store->kv, path, &document, &kind));
    if (kind != GRV_NODE_NONE) *zarr_format = grvi_metadata_version(document);
    grvi_json_free(document);
    return GRV_OK;
}

/* Names that the specification reserves. */
static grv_status check_names(const char *path)
{
    if (path[0] == '\0') return GRV_OK;
    GRV_TRY(grvi_kv_check_key(path));
    GRV_CHECK(strlen(path) < GRVI_KEY_BYTES / 2, GRV_E_ARG,
              "name '%.64s...' is longer than %d bytes", path, GRVI_KEY_BYTES / 2 - 1);
    for (const char *name = path; name != NULL;
         name = strchr(name, '/') != NULL ? strchr(name, '/') + 1 : NULL) {
        const size_t n = strcspn(name, "/");
        GRV_CHECK(strncmp(name, "__", 2) != 0 && strncmp(name, ".z", 2) != 0 &&
                      !(n == 9 && strncmp(name, "zarr.json", 9) == 0),
                  GRV_E_ARG,
                  "name '%s': a part that starts with '__' or '.z' or is 'zarr.json' is reserved",
                  path);
    }
    return GRV_OK;
}

grv_status grvi_store_check_new(grv_store *store, const char *path, int zarr_format)
{
    grv_node_kind kind = GRV_NODE_NONE;
    GRV_TRY(grvi_store_check_writable(store));
    GRV_TRY(check_names(path));
    GRV_TRY(grv_store_node(store, path, &kind));
    GRV_CHECK(kind == GRV_NODE_NONE, GRV_E_EXISTS, "%s '%s'",
              kind == GRV_NODE_ARRAY ? "array" : "group", path);
    return for_each_parent(store, path, check_parent, &zarr_format);
}

grv_status grvi_store_publish_node(grv_store *store, const char *path, const grvi_node_text *node)
{
    GRV_TRY(grvi_store_check_new(store, path, node->zarr_format));
    GRV_TRY(ensure_parents(store, path, node->zarr_format));
    return put_node(store, path, node);
}

grv_status grv_group_create(grv_store *store, const char *path, const char *attributes)
{
    grv_status status = GRV_OK;
    grvi_text document = {0};
    grvi_node_text node = {0};
    int zarr_format = store->params.zarr_format;
    GRV_TRY_GOTO(check_names(path));
    GRV_TRY_GOTO(for_each_parent(store, path, note_version, &zarr_format));
    GRV_TRY_GOTO(grvi_metadata_make_group(zarr_format, attributes, &document));
    GRV_TRY_GOTO(grvi_node_text_make(GRV_NODE_GROUP, &document, path, &node));
    GRV_TRY_GOTO(grvi_store_publish_node(store, path, &node));
done:
    grvi_node_text_fini(&node);
    grvi_text_fini(&document);
    return status;
}

static grv_status load_existing(grv_store *store, const char *path, grvi_json **document,
                                grv_node_kind *kind)
{
    GRV_TRY(grvi_store_load(store, path, document, kind));
    GRV_CHECK(*kind != GRV_NODE_NONE, GRV_E_NOT_FOUND,
              "no group or array '%s' (neither zarr.json nor .zarray or .zgroup)",
              path[0] != '\0' ? path : "/");
    return GRV_OK;
}

grv_status grv_attributes_get(grv_store *store, const char *path, char **attributes)
{
    grv_status status = GRV_OK;
    grvi_json *document = NULL;
    grvi_text text = {0};
    grv_node_kind kind = GRV_NODE_NONE;
    *attributes = NULL;
    GRV_TRY(load_existing(store, path, &document, &kind));
    const grvi_json *const node = grvi_json_get(document, "attributes");
    if (node != NULL)
        grvi_json_print(node, &text);
    else
        grvi_text_append(&text, "{}");
    GRV_TRY_GOTO(grvi_text_status(&text));
    *attributes = text.data;
    text = (grvi_text){0};
done:
    grvi_text_fini(&text);
    grvi_json_free(document);
    return status;
}

static grv_status set_v2_attributes(grv_store *store, const char *path, const grvi_json *document,
                                    const char *attributes)
{
    grv_status status = GRV_OK;
    grvi_json *parsed = NULL;
    grvi_text text = {0};
    GRV_TRY_GOTO(grvi_metadata_check_attributes(attributes));
    GRV_TRY_GOTO(grvi_json_parse(attributes, (int64_t)strlen(attributes), "attributes", &parsed));
    GRV_TRY_GOTO(grvi_v2_make_attributes(document, parsed, path, &text));
    GRV_TRY_GOTO(put_text(store, path, ".zattrs", &text));
done:
    grvi_text_fini(&text);
    grvi_json_free(parsed);
    return status;
}

grv_status grv_attributes_set(grv_store *store, const char *path, const char *attributes)
{
    grv_status status = GRV_OK;
    grvi_json *document = NULL;
    grvi_text text = {0};
    grv_node_kind kind = GRV_NODE_NONE;
    GRV_TRY(grvi_store_check_writable(store));
    GRV_TRY(load_existing(store, path, &document, &kind));
    const int zarr_format = grvi_metadata_version(document);
    GRV_TRY_GOTO(ensure_parents(store, path, zarr_format));
    if (zarr_format == 2) {
        GRV_TRY_GOTO(drop_consolidated(store, path, document));
        GRV_TRY_GOTO(set_v2_attributes(store, path, document, attributes));
    } else {
        GRV_TRY_GOTO(grvi_metadata_change(document, attributes, &text));
        GRV_TRY_GOTO(put_text(store, path, "zarr.json", &text));
    }
done:
    grvi_text_fini(&text);
    grvi_json_free(document);
    return status;
}

/* Children found so far. */
typedef struct child_list {
    grv_store *store;
    const char *path;
    grv_store_child *children;
    int64_t n;
} child_list;

static grv_status add_child(void *argument, const char *name, bool is_prefix)
{
    child_list *const list = argument;
    grv_status status = GRV_OK;
    grvi_text path = {0};
    grv_node_kind kind = GRV_NODE_NONE;
    if (!is_prefix || strncmp(name, "__", 2) == 0) return GRV_OK;
    grvi_text_printf(&path, list->path[0] != '\0' ? "%s/%s" : "%s%s", list->path, name);
    GRV_TRY_GOTO(grvi_text_status(&path));
    status = grv_store_node(list->store, path.data, &kind);
    if (status == GRV_E_FORMAT || status == GRV_E_UNSUPPORTED || status == GRV_E_ARG) {
        /* one child that cannot be read does not hide the others */
        status = GRV_OK;
        kind = GRV_NODE_UNREADABLE;
    }
    if (status != GRV_OK || kind == GRV_NODE_NONE) goto done;
    GRV_TRY_GOTO(GRVI_REALLOC(&list->children, list->n + 1));
    GRV_TRY_GOTO(grvi_strdup(name, &list->children[list->n].name));
    list->children[list->n++].kind = kind;
done:
    grvi_text_fini(&path);
    return status;
}

static int compare_children(const void *a, const void *b)
{
    return strcmp(((const grv_store_child *)a)->name, ((const grv_store_child *)b)->name);
}

grv_status grv_store_list(grv_store *store, const char *path, grv_store_child **children,
                          int64_t *n)
{
    child_list list = {.store = store, .path = path};
    grvi_json *document = NULL;
    grv_node_kind kind = GRV_NODE_NONE;
    *children = NULL;
    *n = 0;
    GRV_TRY(load_existing(store, path, &document, &kind));
    grvi_json_free(document);
    GRV_CHECK(kind == GRV_NODE_GROUP, GRV_E_ARG, "'%s' is an array and has no children", path);
    const grv_status status =
        store->has_lists
            ? store->kv->class->list(store->kv, path, add_child, &list)
            : grvi_consolidated_list(&store->consolidated, store->kv, path, add_child, &list);
    if (status != GRV_OK) {
        grv_store_children_free(list.children, list.n);
        return status;
    }
    if (list.n > 1) qsort(list.children, (size_t)list.n, sizeof *list.children, compare_children);
    *children = list.children;
    *n = list.n;
    return GRV_OK;
}

void grv_store_children_free(grv_store_child *children, int64_t n)
{
    for (int64_t i = 0; i < n; i++) grv_free(children[i].name);
    grv_free(children);
}
