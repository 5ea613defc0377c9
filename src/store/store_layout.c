/* The description of an array that is made from another one: other chunks, shards, codecs; all else as it was. */
#include "store/store_tools_impl.h"

#include <string.h>

#include "core/alloc.h"

/* Zero stands for the whole axis. */
static void take_shape(int rank, const int64_t *asked, const int64_t *whole, int64_t *out)
{
    for (int i = 0; i < rank; i++) out[i] = asked[i] == 0 ? grvi_max_i64(1, whole[i]) : asked[i];
}

/* The codecs of the (inner) chunks as JSON text. */
static grv_status leaf_codecs(const char *codecs, const char *what, bool sharded, bool checksum,
                              grvi_text *out)
{
    grv_status status = GRV_OK;
    grvi_json *root = NULL;
    GRV_TRY(grvi_json_parse(codecs, (int64_t)strlen(codecs), what, &root));
    const grvi_json *list = root;
    if (sharded) {
        GRV_CHECK_GOTO(grvi_json_length(root) == 1, GRV_E_UNSUPPORTED,
                       "'%s': codecs around sharding_indexed cannot be kept in another layout; "
                       "give a compressor",
                       what);
        list = grvi_json_get(grvi_json_get(grvi_json_at(root, 0), "configuration"), "codecs");
    }
    const int64_t n = grvi_json_length(list);
    grvi_text_append(out, "[");
    for (int64_t i = 0; i < n; i++) {
        const char *const name = grvi_json_as_string(grvi_json_get(grvi_json_at(list, i), "name"));
        if (i > 0) grvi_text_append(out, ",");
        grvi_json_print(grvi_json_at(list, i), out);
        if (name != NULL && strcmp(name, "crc32c") == 0) checksum = false;
    }
    if (checksum) grvi_text_append(out, ",{\"name\":\"crc32c\"}");
    grvi_text_append(out, "]");
    GRV_TRY_GOTO(grvi_text_status(out));
done:
    grvi_json_free(root);
    return status;
}

/* A shard with these inner codecs, as grv_array_create makes it. */
static grv_status wrap_in_shard(int rank, const int64_t *inner_shape, const char *leaf,
                                grvi_text *out)
{
    grvi_text_append(out, "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[");
    for (int i = 0; i < rank; i++)
        grvi_text_printf(out, i > 0 ? ",%lld" : "%lld", (long long)inner_shape[i]);
    grvi_text_printf(out,
                     "],\"codecs\":%s,\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{"
                     "\"endian\":\"little\"}},{\"name\":\"crc32c\"}],\"index_location\":\"end\"}}]",
                     leaf);
    return grvi_text_status(out);
}

static grv_status choose_shapes(const grv_store_layout *layout, const grv_array_desc *old,
                                const char *what, bool new_chunk, bool new_shard,
                                grv_array_desc *desc)
{
    int64_t chunk[GRVI_MAX_RANK], shard[GRVI_MAX_RANK];
    memcpy(chunk, old->sharded ? old->inner_shape : old->chunk_shape, sizeof chunk);
    memcpy(shard, old->chunk_shape, sizeof shard);
    if (new_chunk) take_shape(old->rank, layout->chunk, old->shape, chunk);
    if (new_shard) take_shape(old->rank, layout->shard, old->shape, shard);
    desc->sharded = new_shard || (old->sharded && !layout->unshard);
    for (int i = 0; i < old->rank; i++) {
        const bool is_asked = new_shard && layout->shard[i] != 0;
        GRV_CHECK(chunk[i] > 0 && shard[i] > 0, GRV_E_ARG,
                  "'%s', axis %d: chunks and shards have at least one element", what, i);
        GRV_CHECK(!desc->sharded || !is_asked || shard[i] % chunk[i] == 0, GRV_E_ARG,
                  "'%s', axis %d: shards of %lld are no multiple of chunks of %lld", what, i,
                  (long long)shard[i], (long long)chunk[i]);
        desc->inner_shape[i] = desc->sharded ? chunk[i] : 0;
        desc->chunk_shape[i] = desc->sharded ? grvi_round_up(shard[i], chunk[i]) : chunk[i];
    }
    return GRV_OK;
}

grv_status grvi_layout_apply(const grv_store_layout *layout, const grv_array *source, bool is_alone,
                             grv_array_desc *desc, grvi_text *codecs)
{
    const grv_array_desc *const old = &source->metadata.desc;
    const char *const what = grvi_array_name(source);
    const bool new_chunk = layout->chunk_rank == old->rank && old->rank > 0,
               new_shard = layout->shard_rank == old->rank && old->rank > 0;
    *desc = *old;
    if (layout->zarr_format != 0 && layout->zarr_format != old->zarr_format) {
        desc->zarr_format = layout->zarr_format;
        desc->keys_v2 = layout->zarr_format == 2;
        desc->key_separator = '\0';
    }
    GRV_CHECK(!is_alone || layout->chunk_rank == 0 || new_chunk, GRV_E_ARG,
              "chunk: %d lengths given, '%s' has %d axes", layout->chunk_rank, what, old->rank);
    GRV_CHECK(!is_alone || layout->shard_rank == 0 || new_shard, GRV_E_ARG,
              "shard: %d lengths given, '%s' has %d axes", layout->shard_rank, what, old->rank);
    GRV_CHECK(layout->shard_rank == 0 || !layout->unshard, GRV_E_ARG,
              "shard and unshard exclude each other");
    if (!new_chunk && !new_shard && !layout->recode && !layout->checksum &&
        !(layout->unshard && old->sharded))
        return GRV_OK;
    GRV_TRY(choose_shapes(layout, old, what, new_chunk, new_shard, desc));
    if (layout->recode) {
        desc->codecs = NULL;
        desc->compressor = layout->compressor;
        desc->level = layout->level;
        desc->checksum = layout->checksum;
        desc->big_endian = false;
        return GRV_OK;
    }
    grvi_text leaf = {0};
    grv_status status = leaf_codecs(old->codecs, what, old->sharded, layout->checksum, &leaf);
    if (status == GRV_OK && desc->sharded)
        status = wrap_in_shard(old->rank, desc->inner_shape, leaf.data, codecs);
    else if (status == GRV_OK)
        grvi_text_append(codecs, leaf.data);
    grvi_text_fini(&leaf);
    GRV_TRY(status);
    GRV_TRY(grvi_text_status(codecs));
    desc->codecs = codecs->data;
    return GRV_OK;
}
