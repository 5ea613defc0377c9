/* What the operations on whole stores share: paths, trees, and how much memory reading and writing take. */
#include "store/store_tools_impl.h"

#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"

void grvi_join_key(grvi_text *out, const char *path, const char *name)
{
    grvi_text_printf(out, "%s%s%s", path, path[0] != '\0' && name[0] != '\0' ? "/" : "", name);
}

/* ---- trees ---- */

static grv_status add_node(grvi_tree *tree, const char *path, grv_node_kind kind)
{
    GRV_TRY(GRVI_REALLOC(&tree->nodes, tree->n + 1));
    GRV_TRY(grvi_strdup(path, &tree->nodes[tree->n].path));
    tree->nodes[tree->n++].kind = kind;
    return GRV_OK;
}

static grv_status add_below(grvi_tree *tree, grv_store *store, const char *root, const char *path)
{
    grv_status status = GRV_OK;
    grvi_text full = {0}, below = {0};
    grv_store_child *children = NULL;
    int64_t n = 0;
    grvi_join_key(&full, root, path);
    GRV_TRY_GOTO(grvi_text_status(&full));
    GRV_TRY_GOTO(grv_store_list(store, grvi_text_get(&full), &children, &n));
    for (int64_t i = 0; i < n; i++) {
        below.n = 0;
        grvi_join_key(&below, path, children[i].name);
        GRV_TRY_GOTO(grvi_text_status(&below));
        GRV_TRY_GOTO(add_node(tree, below.data, children[i].kind));
        if (children[i].kind == GRV_NODE_GROUP)
            GRV_TRY_GOTO(add_below(tree, store, root, below.data));
    }
done:
    grv_store_children_free(children, n);
    grvi_text_fini(&below);
    grvi_text_fini(&full);
    return status;
}

/* A node is there; if not, an unfinished copy is named, which has no metadata yet. */
static grv_status check_found(grv_store *store, const char *path, grv_node_kind kind)
{
    grvi_text record = {0};
    bool is_unfinished = false;
    if (kind != GRV_NODE_NONE) return GRV_OK;
    grvi_join_key(&record, path, GRVI_COPY_RECORD);
    grv_status status = grvi_text_status(&record);
    if (status == GRV_OK) status = grvi_kv_exists(store->kv, record.data, &is_unfinished);
    grvi_text_fini(&record);
    GRV_TRY(status);
    GRV_FAIL(GRV_E_NOT_FOUND, "no group or array at '%s%s%s'%s", store->location,
             path[0] != '\0' ? "/" : "", path,
             is_unfinished ? ": an unfinished copy; the same copy again goes on" : "");
}

grv_status grvi_tree_list(grv_store *store, const char *path, grvi_tree *tree)
{
    grv_node_kind kind = GRV_NODE_NONE;
    *tree = (grvi_tree){0};
    GRV_TRY(grv_store_node(store, path, &kind));
    GRV_TRY(check_found(store, path, kind));
    GRV_TRY(add_node(tree, "", kind));
    if (kind == GRV_NODE_GROUP) GRV_TRY(add_below(tree, store, path, ""));
    return GRV_OK;
}

grv_status grvi_check_absent(grv_store *store, const char *path)
{
    grv_node_kind kind = GRV_NODE_NONE;
    GRV_TRY(grv_store_node(store, path, &kind));
    GRV_CHECK(kind == GRV_NODE_NONE, GRV_E_EXISTS, "'%s%s%s' is there already", store->location,
              path[0] != '\0' ? "/" : "", path);
    return GRV_OK;
}

void grvi_tree_fini(grvi_tree *tree)
{
    for (int64_t i = 0; i < tree->n; i++) grv_free(tree->nodes[i].path);
    grv_free(tree->nodes);
    *tree = (grvi_tree){0};
}

/* ---- chunks and memory ---- */

void grvi_decode_unit(const grv_array *array, int64_t *shape)
{
    const grvi_metadata *const m = &array->metadata;
    const bool by_inner = grvi_chain_is_plain_shard(m->chain);
    for (int i = 0; i < m->desc.rank; i++)
        shape[i] = by_inner ? m->desc.inner_shape[i] : m->desc.chunk_shape[i];
}

int64_t grvi_box_bytes(int rank, const int64_t *shape, int64_t item_bytes)
{
    int64_t n = 0;
    if (!grvi_count_elements(rank, shape, &n) || !grvi_mul_i64(n, item_bytes, &n)) return INT64_MAX;
    return n;
}

/* Each thread holds the encoded bytes, which hardly exceed the elements, and up to two stages of decoding. */
enum { CHUNKS_PER_THREAD = 3 };
/* A shard is encoded by all threads into parts, which are then joined; both grow by half. */
enum { SHARDS_AT_ONCE = 4 };
/* runs of small chunks are read at once, up to 2 MiB, and codecs have tables */
static const int64_t slack_bytes = (int64_t)4 << 20;

static int64_t saturating(int64_t n, int64_t factor, int64_t more)
{
    int64_t product = 0;
    if (!grvi_mul_i64(n, factor, &product) || product > INT64_MAX - more) return INT64_MAX;
    return product + more;
}

int64_t grvi_read_overhead(const grv_array *array)
{
    int64_t unit[GRVI_MAX_RANK];
    grvi_decode_unit(array, unit);
    const int64_t n_threads = grvi_max_i64(1, array->store->params.n_threads);
    const int64_t bytes =
        grvi_box_bytes(array->metadata.desc.rank, unit, array->metadata.chain->item_bytes);
    return saturating(saturating(bytes, CHUNKS_PER_THREAD, slack_bytes), n_threads, 0);
}

int64_t grvi_write_overhead(const grv_array *array)
{
    const grv_array_desc *const desc = &array->metadata.desc;
    const int64_t of_leaves = grvi_read_overhead(array);
    if (!desc->sharded) return of_leaves;
    return saturating(
        grvi_box_bytes(desc->rank, desc->chunk_shape, array->metadata.chain->item_bytes),
        SHARDS_AT_ONCE, of_leaves);
}

void grvi_object_region(const grv_array *array, const int64_t *position, int64_t *start,
                        int64_t *count)
{
    const grv_array_desc *const desc = &array->metadata.desc;
    for (int i = 0; i < desc->rank; i++) {
        start[i] = position[i] * desc->chunk_shape[i];
        count[i] = grvi_min_i64(desc->chunk_shape[i], desc->shape[i] - start[i]);
    }
}

void grvi_grid_position(int rank, const int64_t *grid, int64_t number, int64_t *position)
{
    for (int i = rank - 1; i >= 0; i--) {
        position[i] = number % grid[i];
        number /= grid[i];
    }
}

grv_status grvi_open_whole(const grv_array *array, const char *key, grvi_object *object,
                           bool *found)
{
    const grvi_chain *const chain = array->metadata.chain;
    grvi_kv *const kv = array->store->kv;
    /* shards may be larger than memory */
    if (chain->sharding != NULL) return kv->class->open_object(kv, key, object, found);
    const grvi_byte_range ahead = {0, chain->limit[chain->n_codecs]};
    return grvi_kv_open(kv, key, ahead, object, found);
}

grv_status grvi_tool_report(const grv_tool_hooks *hooks, int64_t done, int64_t total)
{
    if (hooks == NULL || hooks->progress == NULL) return GRV_OK;
    GRV_CHECK(hooks->progress(hooks->argument, done, total), GRV_E_INTERRUPTED,
              "stopped after %.1f of %.1f MB", (double)done * 1e-6, (double)total * 1e-6);
    return GRV_OK;
}
