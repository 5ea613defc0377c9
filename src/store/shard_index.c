/* The index of a shard, and the arithmetic of its inner grid.
 * Index: uint64 pairs (offset, bytes) of all inner chunks in row-major order of the inner grid, then a CRC-32C for each
 * crc32c of `index_codecs`; at the end of the shard or at its start. Offsets count from the start of the shard. */
#include <string.h>

#include "store/chain.h"
#include "kernels/crc32c.h"

enum { ENTRY_BYTES = 16 };

grv_status grvi_shard_index_place(const grvi_sharding *sharding, int64_t n_shard, int64_t *offset)
{
    GRV_CHECK(n_shard >= sharding->index_bytes, GRV_E_FORMAT,
              "shard index: %lld bytes expected, the whole shard has %lld",
              (long long)sharding->index_bytes, (long long)n_shard);
    *offset = sharding->index_at_start ? 0 : n_shard - sharding->index_bytes;
    return GRV_OK;
}

static uint64_t load_word(const uint8_t *p, bool big_endian)
{
    uint64_t word = 0;
    memcpy(&word, p, sizeof word);
    return big_endian ? __builtin_bswap64(word) : word;
}

/* An entry must lie inside the shard and not reach into the index. */
static grv_status check_entry(const grvi_sharding *sharding, int64_t n_shard, int64_t i,
                              const grvi_shard_entry *e)
{
    const uint64_t low = sharding->index_at_start ? (uint64_t)sharding->index_bytes : 0;
    const uint64_t high =
        (uint64_t)(sharding->index_at_start ? n_shard : n_shard - sharding->index_bytes);
    GRV_CHECK(e->offset >= low && e->offset <= high && e->n_bytes <= high - e->offset, GRV_E_FORMAT,
              "shard index: entry %lld is %llu bytes at byte %llu, data lie in bytes %llu to %llu",
              (long long)i, (unsigned long long)e->n_bytes, (unsigned long long)e->offset,
              (unsigned long long)low, (unsigned long long)high);
    return GRV_OK;
}

grv_status grvi_shard_index_decode(const grvi_sharding *sharding, const uint8_t *encoded,
                                   int64_t n_shard, grvi_shard_entry *entries)
{
    const grvi_codec checksum = {.class = &grvi_codec_crc32c};
    int64_t n = sharding->index_bytes;
    for (int i = 0; i < sharding->n_index_checksums; i++) {
        const grv_status status = grvi_codec_crc32c.check(&checksum, encoded, n, &encoded, &n);
        if (status != GRV_OK) GRV_FAIL(status, "shard index: %s", grvi_reason(status));
    }
    GRV_ASSERT(n == ENTRY_BYTES * sharding->n_inner);
    for (int64_t i = 0; i < sharding->n_inner; i++) {
        grvi_shard_entry *const e = &entries[i];
        e->offset = load_word(encoded + ENTRY_BYTES * i, sharding->index_big_endian);
        e->n_bytes = load_word(encoded + ENTRY_BYTES * i + 8, sharding->index_big_endian);
        if (!grvi_shard_entry_is_empty(e)) GRV_TRY(check_entry(sharding, n_shard, i, e));
    }
    return GRV_OK;
}

void grvi_shard_index_encode(const grvi_sharding *sharding, const grvi_shard_entry *entries,
                             uint8_t *out)
{
    int64_t n = ENTRY_BYTES * sharding->n_inner;
    memcpy(out, entries, (size_t)n);
    if (sharding->index_big_endian) grvi_swap_in_place(out, 2 * sharding->n_inner, 8);
    for (int i = 0; i < sharding->n_index_checksums; i++) {
        const uint32_t crc = grvi_crc32c(out, n);
        memcpy(out + n, &crc, sizeof crc);
        n += (int64_t)sizeof crc;
    }
    GRV_ASSERT(n == sharding->index_bytes);
}

void grvi_shard_cells(const grvi_chain *chain, const grvi_box *stored_box, grvi_box *cells)
{
    const int64_t *const inner = chain->sharding->inner->shape;
    for (int i = 0; i < chain->rank; i++) {
        const int64_t first = stored_box->start[i], n = stored_box->count[i];
        cells->start[i] = first / inner[i];
        cells->count[i] = n == 0 ? 0 : (first + n - 1) / inner[i] - cells->start[i] + 1;
    }
}

void grvi_shard_cell_part(const grvi_chain *chain, const grvi_box *stored_box,
                          const int64_t *stored_strides, const int64_t *cell, grvi_box *local,
                          int64_t *offset)
{
    const int64_t *const inner = chain->sharding->inner->shape;
    *offset = 0;
    for (int i = 0; i < chain->rank; i++) {
        const int64_t first = cell[i] * inner[i];
        const int64_t low = grvi_max_i64(first, stored_box->start[i]);
        const int64_t high =
            grvi_min_i64(first + inner[i], stored_box->start[i] + stored_box->count[i]);
        local->start[i] = low - first;
        local->count[i] = grvi_max_i64(high - low, 0);
        *offset += (low - stored_box->start[i]) * stored_strides[i];
    }
}

int64_t grvi_shard_cell_number(const grvi_chain *chain, const int64_t *cell)
{
    int64_t number = 0;
    for (int i = 0; i < chain->rank; i++) number = number * chain->sharding->grid[i] + cell[i];
    return number;
}
