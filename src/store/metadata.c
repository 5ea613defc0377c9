/* Zarr v3 metadata documents. The reader refuses what it does not understand, by name; the writer makes documents that
 * every v3 reader takes: object-form codecs, explicit key encoding, endian always, index checksum at the end. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/metadata.h"
#include "store/store_type.h"

static const int64_t max_document_bytes = (int64_t)64 << 20;

static grv_status key_of(const char *path, const char *name, grvi_text *key)
{
    key->n = 0;
    grvi_text_printf(key, path[0] != '\0' ? "%s/%s" : "%s%s", path, name);
    return grvi_text_status(key);
}

static grv_status refuse_v2(grvi_kv *kv, const char *path)
{
    static const char *const names[] = {".zarray", ".zgroup"};
    grv_status status = GRV_OK;
    grvi_text key = {0};
    for (int i = 0; i < 2; i++) {
        bool exists = false;
        GRV_TRY_GOTO(key_of(path, names[i], &key));
        GRV_TRY_GOTO(grvi_kv_exists(kv, key.data, &exists));
        GRV_CHECK_GOTO(!exists, GRV_E_UNSUPPORTED,
                       "'%s' is Zarr version 2 (%s); only version 3 (zarr.json) is read",
                       path[0] != '\0' ? path : "/", names[i]);
    }
done:
    grvi_text_fini(&key);
    return status;
}

static grv_status kind_of(const grvi_json *document, const char *path, grv_node_kind *kind)
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

grv_status grvi_metadata_load(grvi_kv *kv, const char *path, grvi_json **document,
                              grv_node_kind *kind)
{
    grv_status status = GRV_OK;
    grvi_text key = {0};
    char *text = NULL;
    int64_t n = 0;
    *document = NULL;
    *kind = GRV_NODE_NONE;
    if (path[0] != '\0') GRV_TRY(grvi_kv_check_key(path));
    GRV_TRY_GOTO(key_of(path, "zarr.json", &key));
    GRV_TRY_GOTO(grvi_kv_get(kv, key.data, max_document_bytes, &text, &n));
    if (text == NULL) {
        GRV_TRY_GOTO(refuse_v2(kv, path));
        goto done;
    }
    GRV_TRY_GOTO(grvi_json_parse(text, n, key.data, document));
    GRV_TRY_GOTO(kind_of(*document, path, kind));
done:
    grv_free(text);
    grvi_text_fini(&key);
    if (status != GRV_OK) {
        grvi_json_free(*document);
        *document = NULL;
    }
    return status;
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

static void write_lengths(grvi_json_writer *w, const char *key, int rank, const int64_t *lengths)
{
    grvi_json_key(w, key);
    grvi_json_begin_array(w);
    for (int i = 0; i < rank; i++) grvi_json_i64(w, lengths[i]);
    grvi_json_end_array(w);
}

/* {"name": name, "configuration": { ... the caller goes on, and ends both */
static void begin_extension(grvi_json_writer *w, const char *name)
{
    grvi_json_begin_object(w);
    grvi_json_key(w, "name");
    grvi_json_string(w, name);
    grvi_json_key(w, "configuration");
    grvi_json_begin_object(w);
}

static void end_extension(grvi_json_writer *w)
{
    grvi_json_end_object(w);
    grvi_json_end_object(w);
}

static void write_bytes_codec(grvi_json_writer *w, bool big_endian)
{
    begin_extension(w, "bytes");
    grvi_json_key(w, "endian");
    grvi_json_string(w, big_endian ? "big" : "little");
    end_extension(w);
}

static void write_crc32c(grvi_json_writer *w)
{
    grvi_json_begin_object(w);
    grvi_json_key(w, "name");
    grvi_json_string(w, "crc32c");
    grvi_json_end_object(w);
}

/* Bytes of an element of a description that has not been opened. */
static int64_t item_bytes_of(const grv_array_desc *desc)
{
    const int64_t n = grv_store_type_bytes(desc->type);
    return n > 0 ? n : desc->item_bytes;
}

static void write_blosc(grvi_json_writer *w, const grv_array_desc *desc)
{
    const int64_t item_bytes = item_bytes_of(desc);
    begin_extension(w, "blosc");
    grvi_json_key(w, "typesize");
    grvi_json_i64(w, item_bytes);
    grvi_json_key(w, "cname");
    grvi_json_string(w, desc->compressor == GRV_COMPRESSOR_BLOSC_LZ4 ? "lz4" : "zstd");
    grvi_json_key(w, "clevel");
    grvi_json_i64(w, desc->level);
    grvi_json_key(w, "shuffle");
    grvi_json_string(w, item_bytes > 1 ? "shuffle" : "bitshuffle");
    grvi_json_key(w, "blocksize");
    grvi_json_i64(w, 0);
    end_extension(w);
}

static void write_compressor(grvi_json_writer *w, const grv_array_desc *desc)
{
    switch (desc->compressor) {
    case GRV_COMPRESSOR_NONE: break;
    case GRV_COMPRESSOR_ZSTD:
        begin_extension(w, "zstd");
        grvi_json_key(w, "level");
        grvi_json_i64(w, desc->level);
        grvi_json_key(w, "checksum");
        grvi_json_bool(w, false);
        end_extension(w);
        break;
    case GRV_COMPRESSOR_BLOSC_LZ4:
    case GRV_COMPRESSOR_BLOSC_ZSTD: write_blosc(w, desc); break;
    case GRV_COMPRESSOR_GZIP:
        begin_extension(w, "gzip");
        grvi_json_key(w, "level");
        grvi_json_i64(w, desc->level);
        end_extension(w);
        break;
    }
}

static void write_chunk_codecs(grvi_json_writer *w, const grv_array_desc *desc)
{
    grvi_json_begin_array(w);
    write_bytes_codec(w, desc->big_endian);
    write_compressor(w, desc);
    if (desc->checksum) write_crc32c(w);
    grvi_json_end_array(w);
}

static void write_codecs(grvi_json_writer *w, const grv_array_desc *desc)
{
    if (desc->codecs != NULL) {
        grvi_json_raw(w, desc->codecs);
        return;
    }
    if (!desc->sharded) {
        write_chunk_codecs(w, desc);
        return;
    }
    grvi_json_begin_array(w);
    begin_extension(w, "sharding_indexed");
    write_lengths(w, "chunk_shape", desc->rank, desc->inner_shape);
    grvi_json_key(w, "codecs");
    write_chunk_codecs(w, desc);
    grvi_json_key(w, "index_codecs");
    grvi_json_begin_array(w);
    write_bytes_codec(w, false);
    write_crc32c(w);
    grvi_json_end_array(w);
    grvi_json_key(w, "index_location");
    grvi_json_string(w, "end");
    end_extension(w);
    grvi_json_end_array(w);
}

static void write_dimension_names(grvi_json_writer *w, const grv_array_desc *desc)
{
    bool any = false;
    for (int i = 0; i < desc->rank; i++) any = any || desc->dimension_names[i] != NULL;
    if (!any) return;
    grvi_json_key(w, "dimension_names");
    grvi_json_begin_array(w);
    for (int i = 0; i < desc->rank; i++) {
        if (desc->dimension_names[i] != NULL)
            grvi_json_string(w, desc->dimension_names[i]);
        else
            grvi_json_null(w);
    }
    grvi_json_end_array(w);
}

static void begin_document(grvi_json_writer *w, const char *node_type)
{
    grvi_json_begin_object(w);
    grvi_json_key(w, "zarr_format");
    grvi_json_i64(w, 3);
    grvi_json_key(w, "node_type");
    grvi_json_string(w, node_type);
}

static grv_status end_document(grvi_json_writer *w, const char *attributes)
{
    if (attributes != NULL) {
        GRV_TRY(grvi_metadata_check_attributes(attributes));
        grvi_json_key(w, "attributes");
        grvi_json_raw(w, attributes);
    }
    grvi_json_end_object(w);
    grvi_text_append(w->out, "\n");
    return grvi_text_status(w->out);
}

static char key_separator_of(const grv_array_desc *desc)
{
    if (desc->key_separator != 0) return desc->key_separator;
    return desc->keys_v2 ? '.' : '/';
}

static grv_status write_fill(grvi_json_writer *w, const grv_array_desc *desc, grvi_item item)
{
    uint8_t *padded = NULL;
    if (desc->fill_bytes != NULL && item.n_bytes > (int64_t)sizeof desc->fill)
        return grvi_fill_to_json(w, item, desc->fill_bytes, 3);
    GRV_TRY(GRVI_CALLOC(&padded, grvi_max_i64(item.n_bytes, (int64_t)sizeof desc->fill)));
    memcpy(padded, &desc->fill, sizeof desc->fill);
    const grv_status status = grvi_fill_to_json(w, item, padded, 3);
    grv_free(padded);
    return status;
}

grv_status grvi_metadata_make_array(const grv_array_desc *desc, grvi_text *out)
{
    grvi_json_writer w = {.out = out, .pretty = true};
    GRV_CHECK(desc->rank >= 0 && desc->rank <= GRVI_MAX_RANK, GRV_E_ARG,
              "an array has 0 to %d axes, %d asked for", GRVI_MAX_RANK, desc->rank);
    GRV_CHECK(desc->zarr_format == 3, GRV_E_UNSUPPORTED, "writing Zarr version %d",
              desc->zarr_format);
    const grvi_item item = {desc->type, item_bytes_of(desc)};
    GRV_CHECK(grvi_item_is_good(item), GRV_E_ARG, "no such element: %s of %lld bytes",
              grv_store_type_name(desc->type), (long long)item.n_bytes);
    begin_document(&w, "array");
    write_lengths(&w, "shape", desc->rank, desc->shape);
    grvi_json_key(&w, "data_type");
    grvi_item_to_json(&w, item);
    grvi_json_key(&w, "chunk_grid");
    begin_extension(&w, "regular");
    write_lengths(&w, "chunk_shape", desc->rank, desc->chunk_shape);
    end_extension(&w);
    grvi_json_key(&w, "chunk_key_encoding");
    begin_extension(&w, desc->keys_v2 ? "v2" : "default");
    grvi_json_key(&w, "separator");
    grvi_json_string(&w, (const char[]){key_separator_of(desc), '\0'});
    end_extension(&w);
    grvi_json_key(&w, "fill_value");
    GRV_TRY(write_fill(&w, desc, item));
    grvi_json_key(&w, "codecs");
    write_codecs(&w, desc);
    write_dimension_names(&w, desc);
    return end_document(&w, desc->attributes);
}

grv_status grvi_metadata_make_group(const char *attributes, grvi_text *out)
{
    grvi_json_writer w = {.out = out, .pretty = true};
    begin_document(&w, "group");
    return end_document(&w, attributes);
}

grv_status grvi_metadata_check_attributes(const char *attributes)
{
    grvi_json *root = NULL;
    GRV_TRY(grvi_json_parse(attributes, (int64_t)strlen(attributes), "attributes", &root));
    const bool is_object = grvi_json_kind_of(root) == GRVI_JSON_OBJECT;
    grvi_json_free(root);
    GRV_CHECK(is_object, GRV_E_FORMAT, "attributes must be a JSON object");
    return GRV_OK;
}

typedef struct member_copy {
    grvi_json_writer w;
    bool replace_attributes;
    grvi_text value;
} member_copy;

static grv_status copy_member(void *argument, const char *key, grvi_json *value)
{
    member_copy *const copy = argument;
    if (strcmp(key, "consolidated_metadata") == 0 ||
        (copy->replace_attributes && strcmp(key, "attributes") == 0))
        return GRV_OK;
    copy->value.n = 0;
    grvi_json_print(value, &copy->value);
    GRV_TRY(grvi_text_status(&copy->value));
    grvi_json_key(&copy->w, key);
    grvi_json_raw(&copy->w, copy->value.data);
    return GRV_OK;
}

grv_status grvi_metadata_change(const grvi_json *document, const char *attributes, grvi_text *out)
{
    member_copy copy = {.w = {.out = out, .pretty = true},
                        .replace_attributes = attributes != NULL};
    grvi_json_begin_object(&copy.w);
    grv_status status = grvi_json_for_each(document, copy_member, &copy);
    grvi_text_fini(&copy.value);
    if (status == GRV_OK) status = end_document(&copy.w, attributes);
    return status;
}
