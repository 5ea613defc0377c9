/* Decoding part of a chunk that lies in memory.
 * A whole chunk that is wanted dense is decompressed straight to its destination; everything else goes through one dense chunk. */
#include <string.h>

#include "store/chain.h"

static bool is_whole(const grvi_chain *chain, const grvi_box *stored_box)
{
    for (int i = 0; i < chain->rank; i++) {
        if (stored_box->count[i] != chain->stored_shape[i]) return false;
    }
    return true;
}

/* Undoes the byte codecs from the last to the first. `direct` (or NULL) receives what the first one decodes to; *data
 * tells where the result is: there, in a stage of the scratch, or in the input. Only what `part` (NULL: all) covers need be decoded. */
static grv_status undo_byte_codecs(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                                   const uint8_t *in, int64_t n_in, const grvi_part *part,
                                   uint8_t *direct, const uint8_t **data, int64_t *n_data)
{
    int side = 0;
    *data = in;
    *n_data = n_in;
    for (int i = chain->n_codecs - 1; i >= 0; i--) {
        const grvi_codec *const codec = &chain->codecs[i];
        if (codec->class->check != NULL) {
            GRV_TRY(codec->class->check(codec, *data, *n_data, data, n_data));
            continue;
        }
        uint8_t *target = direct;
        if (i > 0 || direct == NULL) {
            grvi_buffer *const stage = &scratch->stage[depth][side];
            side = 1 - side;
            GRV_TRY(grvi_buffer_reserve(stage, chain->limit[i]));
            target = stage->data;
        }
        if (i == 0 && part != NULL && codec->class->decode_part != NULL) {
            int64_t n_produced = 0;
            GRV_TRY(codec->class->decode_part(codec, &scratch->codecs, *data, *n_data, part, target,
                                              chain->limit[0], &n_produced));
            scratch->bytes_decoded += n_produced - chain->limit[0]; /* the caller adds all */
            *n_data = chain->limit[0];
        } else {
            GRV_TRY(codec->class->decode(codec, &scratch->codecs, *data, *n_data, target,
                                         chain->limit[i], n_data));
        }
        *data = target;
    }
    return GRV_OK;
}

/* Whole, dense at its destination, and in the machine's byte order: nothing is to be moved after the byte codecs. */
static bool is_straight(const grvi_chain *chain, const grvi_box *stored_box,
                        const int64_t *stored_strides)
{
    return chain->swap_bytes == 1 && chain->n_filters == 0 && is_whole(chain, stored_box) &&
           grvi_is_dense(chain->rank, chain->stored_shape, chain->item_bytes, stored_strides);
}

/* Undoes byte order and filters of a whole chunk; *data: filtered before, in a stage of the scratch afterwards. */
static grv_status undo_filters(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                               const uint8_t **data)
{
    const int64_t n = chain->n_bytes / chain->item_bytes;
    int side = 3;
    if (chain->swap_bytes > 1) {
        grvi_buffer *const stage = &scratch->stage[depth][side];
        GRV_TRY(grvi_buffer_reserve(stage, chain->n_filtered_bytes));
        memcpy(stage->data, *data, (size_t)chain->n_filtered_bytes);
        grvi_swap_in_place(stage->data, chain->n_filtered_bytes / chain->swap_bytes,
                           chain->swap_bytes);
        *data = stage->data;
        side = 4;
    }
    for (int i = chain->n_filters - 1; i >= 0; i--) {
        const grvi_filter *const filter = &chain->filters[i];
        grvi_buffer *const stage = &scratch->stage[depth][side];
        GRV_TRY(grvi_buffer_reserve(stage, n * filter->decoded.n_bytes));
        filter->class->decode(filter, *data, n, stage->data);
        *data = stage->data;
        side = 7 - side;
    }
    return GRV_OK;
}

static grv_status decode_bytes(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                               const uint8_t *in, int64_t n_in, const grvi_box *stored_box,
                               uint8_t *out, const int64_t *stored_strides)
{
    const uint8_t *data = NULL;
    int64_t n = 0, dense[GRVI_MAX_RANK], first = 0;
    uint8_t *const direct = is_straight(chain, stored_box, stored_strides) ? out : NULL;
    const grvi_part part = {chain->rank, chain->item_bytes, chain->stored_shape, stored_box->start,
                            stored_box->count};
    const bool is_partial = chain->n_filters == 0 && !is_whole(chain, stored_box);
    GRV_TRY(undo_byte_codecs(chain, scratch, depth, in, n_in, is_partial ? &part : NULL, direct,
                             &data, &n));
    GRV_CHECK(n == chain->n_filtered_bytes, GRV_E_FORMAT, "%lld bytes expected, %lld %s",
              (long long)chain->n_filtered_bytes, (long long)n,
              chain->n_codecs > 0 ? "decoded" : "read");
    scratch->bytes_decoded += n;
    if (data == out) return GRV_OK;
    if (chain->n_filters > 0) GRV_TRY(undo_filters(chain, scratch, depth, &data));
    const int64_t swap_bytes = chain->n_filters > 0 ? 1 : chain->swap_bytes;
    grvi_dense_strides(chain->rank, chain->stored_shape, chain->item_bytes, dense);
    for (int i = 0; i < chain->rank; i++) first += stored_box->start[i] * dense[i];
    grvi_region_copy(chain->rank, stored_box->count, chain->item_bytes, swap_bytes, data + first,
                     dense, out, stored_strides);
    return GRV_OK;
}

static grv_status decode_shard(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                               const uint8_t *in, int64_t n_in, const grvi_box *stored_box,
                               uint8_t *out, const int64_t *stored_strides)
{
    const grvi_sharding *const sharding = chain->sharding;
    const uint8_t *data = NULL;
    int64_t n = 0, index_offset = 0;
    grvi_box cells;
    GRV_TRY(undo_byte_codecs(chain, scratch, depth, in, n_in, NULL, NULL, &data, &n));
    GRV_TRY(grvi_shard_index_place(sharding, n, &index_offset));
    grvi_buffer *const index = &scratch->entries[depth][0];
    GRV_TRY(grvi_buffer_reserve(index, sharding->n_inner * (int64_t)sizeof(grvi_shard_entry)));
    grvi_shard_entry *const entries = (grvi_shard_entry *)(void *)index->data;
    GRV_TRY(grvi_shard_index_decode(sharding, data + index_offset, n, entries));
    grvi_shard_cells(chain, stored_box, &cells);
    int64_t position[GRVI_MAX_RANK] = {0}, cell[GRVI_MAX_RANK];
    do {
        grvi_box local;
        int64_t offset = 0;
        for (int i = 0; i < chain->rank; i++) cell[i] = cells.start[i] + position[i];
        grvi_shard_cell_part(chain, stored_box, stored_strides, cell, &local, &offset);
        const grvi_shard_entry *const e = &entries[grvi_shard_cell_number(chain, cell)];
        if (grvi_shard_entry_is_empty(e)) {
            grvi_region_fill(chain->rank, local.count, chain->item_bytes, chain->fill, out + offset,
                             stored_strides);
        } else {
            GRV_TRY(grvi_chain_decode(sharding->inner, scratch, depth + 1, data + e->offset,
                                      (int64_t)e->n_bytes, &local, out + offset, stored_strides));
        }
    } while (grvi_next_index(chain->rank, cells.count, position));
    return GRV_OK;
}

grv_status grvi_chain_decode(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                             const uint8_t *in, int64_t n_in, const grvi_box *box, uint8_t *out,
                             const int64_t *strides)
{
    grvi_box stored_box;
    int64_t stored_strides[GRVI_MAX_RANK];
    GRV_ASSERT(depth < GRVI_MAX_DEPTH);
    grvi_chain_permute_box(chain, box, strides, &stored_box, stored_strides);
    for (int i = 0; i < chain->rank; i++) {
        if (box->count[i] == 0) return GRV_OK;
    }
    if (chain->sharding != NULL)
        return decode_shard(chain, scratch, depth, in, n_in, &stored_box, out, stored_strides);
    return decode_bytes(chain, scratch, depth, in, n_in, &stored_box, out, stored_strides);
}
