/* Documents of new nodes, in the form that every reader takes: object-form codecs, explicit key encoding, endian always, index
 * checksum at the end. Of version 2, the document is made in the words of version 3 and translated by metadata_v2.c. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/metadata.h"
#include "store/store_type.h"

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

static void begin_document(grvi_json_writer *w, const char *node_type, int zarr_format)
{
    grvi_json_begin_object(w);
    grvi_json_key(w, "zarr_format");
    grvi_json_i64(w, zarr_format);
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

static bool has_keys_v2(const grv_array_desc *desc)
{
    return desc->keys_v2 || desc->zarr_format == 2;
}

static char key_separator_of(const grv_array_desc *desc)
{
    if (desc->key_separator != 0) return desc->key_separator;
    return has_keys_v2(desc) ? '.' : '/';
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
    GRV_CHECK(desc->zarr_format == 3 || desc->zarr_format == 2, GRV_E_ARG,
              "Zarr version 2 or 3 expected, %d asked for", desc->zarr_format);
    const grvi_item item = {desc->type, item_bytes_of(desc)};
    GRV_CHECK(grvi_item_is_good(item), GRV_E_ARG, "no such element: %s of %lld bytes",
              grv_store_type_name(desc->type), (long long)item.n_bytes);
    begin_document(&w, "array", desc->zarr_format);
    write_lengths(&w, "shape", desc->rank, desc->shape);
    grvi_json_key(&w, "data_type");
    grvi_item_to_json(&w, item);
    grvi_json_key(&w, "chunk_grid");
    begin_extension(&w, "regular");
    write_lengths(&w, "chunk_shape", desc->rank, desc->chunk_shape);
    end_extension(&w);
    grvi_json_key(&w, "chunk_key_encoding");
    begin_extension(&w, has_keys_v2(desc) ? "v2" : "default");
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

grv_status grvi_metadata_make_group(int zarr_format, const char *attributes, grvi_text *out)
{
    grvi_json_writer w = {.out = out, .pretty = true};
    begin_document(&w, "group", zarr_format);
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

/* The document up to its last member; the caller goes on, and ends it. */
static grv_status copy_document(const grvi_json *document, member_copy *copy)
{
    grvi_json_begin_object(&copy->w);
    const grv_status status = grvi_json_for_each(document, copy_member, copy);
    grvi_text_fini(&copy->value);
    return status;
}

grv_status grvi_metadata_change(const grvi_json *document, const char *attributes, grvi_text *out)
{
    member_copy copy = {.w = {.out = out, .pretty = true},
                        .replace_attributes = attributes != NULL};
    GRV_TRY(copy_document(document, &copy));
    return end_document(&copy.w, attributes);
}

grv_status grvi_metadata_consolidate(const grvi_json *document, const char *consolidated,
                                     grvi_text *out)
{
    member_copy copy = {.w = {.out = out, .pretty = true}};
    GRV_TRY(copy_document(document, &copy));
    grvi_json_key(&copy.w, "consolidated_metadata");
    grvi_json_raw(&copy.w, consolidated);
    return end_document(&copy.w, NULL);
}

grv_status grvi_node_text_make(grv_node_kind kind, const grvi_text *document, const char *what,
                               grvi_node_text *node)
{
    grv_status status = GRV_OK;
    grvi_json *root = NULL;
    *node = (grvi_node_text){.zarr_format = 3, .kind = kind};
    GRV_TRY_GOTO(grvi_json_parse(document->data, document->n, what, &root));
    if (grvi_metadata_version(root) == 2) {
        GRV_TRY_GOTO(grvi_v2_make_node(root, what, node));
    } else {
        grvi_text_append_n(&node->document, document->data, document->n);
        GRV_TRY_GOTO(grvi_text_status(&node->document));
    }
done:
    grvi_json_free(root);
    if (status != GRV_OK) grvi_node_text_fini(node);
    return status;
}

grv_status grvi_node_text_read(const grvi_node_text *node, const char *what, grvi_json **document)
{
    grv_status status = GRV_OK;
    grvi_json *zarray = NULL, *zattrs = NULL;
    *document = NULL;
    if (node->zarr_format == 3)
        return grvi_json_parse(node->document.data, node->document.n, what, document);
    GRV_TRY_GOTO(grvi_json_parse(node->document.data, node->document.n, what, &zarray));
    if (node->attributes.n > 0)
        GRV_TRY_GOTO(grvi_json_parse(node->attributes.data, node->attributes.n, what, &zattrs));
    GRV_TRY_GOTO(grvi_v2_read_node(node->kind, zarray, zattrs, what, document));
done:
    grvi_json_free(zattrs);
    grvi_json_free(zarray);
    return status;
}

void grvi_node_text_fini(grvi_node_text *node)
{
    grvi_text_fini(&node->document);
    grvi_text_fini(&node->attributes);
}
