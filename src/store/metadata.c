/* Documents of nodes: finding and resolving them. What is not understood is refused, by name. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/metadata.h"
#include "store/store_type.h"

static const int64_t max_document_bytes = (int64_t)64 << 20;

grv_status grvi_metadata_key(const char *path, const char *name, grvi_text *key)
{
    key->n = 0;
    grvi_text_printf(key, path[0] != '\0' ? "%s/%s" : "%s%s", path, name);
    return grvi_text_status(key);
}

grv_status grvi_metadata_kind(const grvi_json *document, const char *path, grv_node_kind *kind)
{
    int64_t version = 0;
    GRV_CHECK(grvi_json_kind_of(document) == GRVI_JSON_OBJECT, GRV_E_FORMAT,
              "'%s': zarr.json is no JSON object", path);
    GRV_CHECK(grvi_json_as_i64(grvi_json_get(document, "zarr_format"), &version) && version == 3,
              GRV_E_UNSUPPORTED, "'%s': zarr_format 3 expected, found %lld", path,
              (long long)version);
    const char *const type = grvi_json_as_string(grvi_json_get(document, "node_type"));
    GRV_CHECK(type != NULL && (strcmp(type, "array") == 0 || strcmp(type, "group") == 0),
              GRV_E_FORMAT, "'%s': node_type must be array or group, found '%.32s'", path,
              type != NULL ? type : "(nothing)");
    *kind = type[0] == 'a' ? GRV_NODE_ARRAY : GRV_NODE_GROUP;
    return GRV_OK;
}

grv_status grvi_metadata_load_json(grvi_kv *kv, const char *path, const char *name,
                                   grvi_json **json)
{
    grv_status status = GRV_OK;
    grvi_text key = {0};
    char *text = NULL;
    int64_t n = 0;
    *json = NULL;
    GRV_TRY_GOTO(grvi_metadata_key(path, name, &key));
    GRV_TRY_GOTO(grvi_kv_get(kv, key.data, max_document_bytes, &text, &n));
    if (text == NULL) goto done;
    GRV_TRY_GOTO(grvi_json_parse(text, n, key.data, json));
    GRV_TRY_GOTO(grvi_json_check_keys(text, n, key.data));
done:
    if (status != GRV_OK) {
        grvi_json_free(*json);
        *json = NULL;
    }
    grv_free(text);
    grvi_text_fini(&key);
    return status;
}

/* The node of version 2 at a path, in the words of version 3. */
static grv_status load_v2(grvi_kv *kv, const char *path, grvi_json **document, grv_node_kind *kind)
{
    grv_status status = GRV_OK;
    grvi_json *node = NULL, *attributes = NULL;
    const char *const what = path[0] != '\0' ? path : "/";
    *kind = GRV_NODE_ARRAY;
    GRV_TRY_GOTO(grvi_metadata_load_json(kv, path, ".zarray", &node));
    if (node == NULL) {
        *kind = GRV_NODE_GROUP;
        GRV_TRY_GOTO(grvi_metadata_load_json(kv, path, ".zgroup", &node));
    }
    if (node == NULL) {
        *kind = GRV_NODE_NONE;
        goto done;
    }
    GRV_TRY_GOTO(grvi_metadata_load_json(kv, path, ".zattrs", &attributes));
    GRV_TRY_GOTO(grvi_v2_read_node(*kind, node, attributes, what, document));
done:
    grvi_json_free(attributes);
    grvi_json_free(node);
    return status;
}

grv_status grvi_metadata_load(grvi_kv *kv, const char *path, grvi_json **document,
                              grv_node_kind *kind)
{
    grv_status status = GRV_OK;
    *document = NULL;
    *kind = GRV_NODE_NONE;
    if (path[0] != '\0') GRV_TRY(grvi_kv_check_key(path));
    GRV_TRY_GOTO(grvi_metadata_load_json(kv, path, "zarr.json", document));
    if (*document != NULL)
        GRV_TRY_GOTO(grvi_metadata_kind(*document, path, kind));
    else
        GRV_TRY_GOTO(load_v2(kv, path, document, kind));
done:
    if (status != GRV_OK) {
        grvi_json_free(*document);
        *document = NULL;
        *kind = GRV_NODE_NONE;
    }
    return status;
}

int grvi_metadata_version(const grvi_json *document)
{
    int64_t version = 3;
    (void)grvi_json_as_i64(grvi_json_get(document, "zarr_format"), &version);
    return (int)version;
}

static grv_status keep_string(grvi_metadata *m, const char *text, const char **kept)
{
    GRV_TRY(GRVI_REALLOC(&m->strings, m->n_strings + 1));
    GRV_TRY(grvi_strdup(text, &m->strings[m->n_strings]));
    *kept = m->strings[m->n_strings++];
    return GRV_OK;
}

static grv_status read_lengths(const grvi_json *list, const char *what, const char *key, int rank,
                               int64_t low, int64_t *out)
{
    GRV_CHECK(grvi_json_kind_of(list) == GRVI_JSON_ARRAY && grvi_json_length(list) == rank,
              GRV_E_FORMAT, "'%s': %s must be a list of %d lengths", what, key, rank);
    for (int i = 0; i < rank; i++)
        GRV_CHECK(grvi_json_as_i64(grvi_json_at(list, i), &out[i]) && out[i] >= low &&
                      out[i] <= GRVI_MAX_LENGTH,
                  GRV_E_FORMAT, "'%s': %s[%d] must be an integer from %lld to 2^60", what, key, i,
                  (long long)low);
    return GRV_OK;
}

static grv_status read_fill(const grvi_json *document, const char *what, grvi_item item,
                            grvi_metadata *m)
{
    GRV_CHECK(grvi_json_has(document, "fill_value"), GRV_E_FORMAT, "'%s': fill_value is missing",
              what);
    GRV_TRY(GRVI_ALLOC(&m->fill, item.n_bytes));
    GRV_TRY(grvi_fill_from_json(grvi_json_get(document, "fill_value"), item, what, m->fill));
    if (item.n_bytes > (int64_t)sizeof m->desc.fill) m->desc.fill_bytes = m->fill;
    memcpy(&m->desc.fill, m->fill,
           (size_t)grvi_min_i64(item.n_bytes, (int64_t)sizeof m->desc.fill));
    return GRV_OK;
}

static grv_status read_grid(const grvi_json *node, const char *what, int rank, int64_t *chunk_shape)
{
    const char *const name = grvi_json_as_string(grvi_json_get(node, "name"));
    GRV_CHECK(name != NULL, GRV_E_FORMAT, "'%s': chunk_grid has no name", what);
    GRV_CHECK(strcmp(name, "regular") == 0, GRV_E_UNSUPPORTED,
              "'%s': chunk grid '%.64s' is not supported", what, name);
    return read_lengths(grvi_json_get(grvi_json_get(node, "configuration"), "chunk_shape"), what,
                        "chunk_shape", rank, 1, chunk_shape);
}

static grv_status read_key_encoding(const grvi_json *node, const char *what, grvi_metadata *m)
{
    const char *name = grvi_json_as_string(node);
    const grvi_json *const separator_node =
        grvi_json_get(grvi_json_get(node, "configuration"), "separator");
    if (name == NULL) name = grvi_json_as_string(grvi_json_get(node, "name"));
    GRV_CHECK(name != NULL, GRV_E_FORMAT, "'%s': chunk_key_encoding is missing", what);
    m->desc.keys_v2 = strcmp(name, "v2") == 0;
    GRV_CHECK(m->desc.keys_v2 || strcmp(name, "default") == 0, GRV_E_UNSUPPORTED,
              "'%s': chunk key encoding '%.64s' is not supported", what, name);
    const char *const separator = separator_node != NULL ? grvi_json_as_string(separator_node)
                                  : m->desc.keys_v2      ? "."
                                                         : "/";
    GRV_CHECK(separator != NULL && (strcmp(separator, ".") == 0 || strcmp(separator, "/") == 0),
              GRV_E_FORMAT, "'%s': chunk key separator must be '.' or '/'", what);
    m->desc.key_separator = separator[0];
    m->has_no_separator = separator_node == NULL;
    return GRV_OK;
}

static grv_status read_dimension_names(const grvi_json *list, const char *what, grvi_metadata *m)
{
    if (list == NULL) return GRV_OK;
    GRV_CHECK(grvi_json_length(list) == m->desc.rank && grvi_json_kind_of(list) == GRVI_JSON_ARRAY,
              GRV_E_FORMAT, "'%s': dimension_names must be a list of %d names", what, m->desc.rank);
    for (int i = 0; i < m->desc.rank; i++) {
        const grvi_json *const node = grvi_json_at(list, i);
        const char *const name = grvi_json_as_string(node);
        GRV_CHECK(name != NULL || node == NULL, GRV_E_FORMAT,
                  "'%s': dimension_names[%d] is neither a string nor null", what, i);
        if (name != NULL) GRV_TRY(keep_string(m, name, &m->desc.dimension_names[i]));
    }
    return GRV_OK;
}

/* An unknown member must not be ignored unless it says that it may be. */
static grv_status check_member(void *argument, const char *key, grvi_json *value)
{
    static const char *const known[] = {
        "zarr_format",        "node_type",  "shape",  "data_type",  "chunk_grid",
        "chunk_key_encoding", "fill_value", "codecs", "attributes", "dimension_names"};
    bool must_understand = true;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(key, known[i]) == 0) return GRV_OK;
    }
    if (strcmp(key, "storage_transformers") == 0 && grvi_json_length(value) == 0 &&
        (value == NULL || grvi_json_kind_of(value) == GRVI_JSON_ARRAY))
        return GRV_OK;
    if (grvi_json_as_bool(grvi_json_get(value, "must_understand"), &must_understand) &&
        !must_understand)
        return GRV_OK;
    GRV_FAIL(GRV_E_UNSUPPORTED, "'%s': metadata member '%.64s' is not supported",
             (const char *)argument, key);
}

/* Shapes of inner chunks are kept in stored order; the description shows them along the array's axes. */
static void describe_sharding(grvi_metadata *m)
{
    const grvi_chain *const chain = m->chain;
    m->desc.sharded = chain->sharding != NULL;
    for (int i = 0; i < chain->rank && m->desc.sharded; i++)
        m->desc.inner_shape[chain->order[i]] = chain->sharding->inner->shape[i];
    const grvi_chain *leaf = chain;
    while (leaf->sharding != NULL) leaf = leaf->sharding->inner;
    m->desc.big_endian = leaf->big_endian;
}

grv_status grvi_metadata_parse_array(const grvi_json *document, const char *what,
                                     int64_t max_chunk_bytes, grvi_metadata *m)
{
    grv_status status = GRV_OK;
    grvi_text codecs = {0};
    memset(m, 0, sizeof *m);
    grv_array_desc *const desc = &m->desc;
    *desc = grv_array_desc_default();
    desc->zarr_format = grvi_metadata_version(document);
    const grvi_json *const shape = grvi_json_get(document, "shape");
    GRV_TRY_GOTO(grvi_json_for_each(document, check_member, (void *)(uintptr_t)what));
    GRV_CHECK_GOTO(grvi_json_kind_of(shape) == GRVI_JSON_ARRAY, GRV_E_FORMAT,
                   "'%s': shape is missing or no list", what);
    GRV_CHECK_GOTO(grvi_json_length(shape) <= GRVI_MAX_RANK, GRV_E_UNSUPPORTED,
                   "'%s': %lld axes; at most %d are supported", what,
                   (long long)grvi_json_length(shape), GRVI_MAX_RANK);
    desc->rank = (int)grvi_json_length(shape);
    GRV_TRY_GOTO(read_lengths(shape, what, "shape", desc->rank, 0, desc->shape));
    grvi_item item;
    GRV_TRY_GOTO(grvi_item_from_json(grvi_json_get(document, "data_type"), what, &item));
    desc->type = item.type;
    desc->item_bytes = item.n_bytes;
    GRV_TRY_GOTO(
        read_grid(grvi_json_get(document, "chunk_grid"), what, desc->rank, desc->chunk_shape));
    GRV_TRY_GOTO(read_key_encoding(grvi_json_get(document, "chunk_key_encoding"), what, m));
    GRV_TRY_GOTO(read_fill(document, what, item, m));
    GRV_TRY_GOTO(read_dimension_names(grvi_json_get(document, "dimension_names"), what, m));
    const grvi_chain_params params = {desc->rank, item, m->fill, max_chunk_bytes, what};
    GRV_TRY_GOTO(grvi_chain_create(grvi_json_get(document, "codecs"), desc->chunk_shape, &params,
                                   &m->chain));
    describe_sharding(m);
    grvi_json_print(grvi_json_get(document, "codecs"), &codecs);
    GRV_TRY_GOTO(grvi_text_status(&codecs));
    GRV_TRY_GOTO(keep_string(m, codecs.data, &desc->codecs));
done:
    grvi_text_fini(&codecs);
    if (status != GRV_OK) grvi_metadata_fini(m);
    return status;
}

void grvi_metadata_fini(grvi_metadata *m)
{
    grvi_chain_destroy(&m->chain);
    for (int i = 0; i < m->n_strings; i++) grv_free(m->strings[i]);
    grv_free(m->strings);
    grv_free(m->fill);
    memset(m, 0, sizeof *m);
}
