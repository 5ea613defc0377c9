/* A codec chain, resolved once per array: how a chunk of elements becomes bytes, and back. Internal.
 *   elements -> (transpose) -> (filter ...) -> bytes | sharding_indexed -> byte codec -> byte codec ... -> stored bytes
 * Transposition costs nothing: regions and strides are permuted instead of data. Filters change the elements of a dense chunk
 * and their type. A sharding codec holds the chain of its
 * inner chunks, so chains nest. Everything here works on memory; reading parts of a chunk or shard from its file is the read plan's. */
#ifndef GRVI_STORE_CHAIN_H
#define GRVI_STORE_CHAIN_H

#include "store/codec.h"
#include "store/filter.h"
#include "store/region.h"
#include "store/scratch.h"

enum { GRVI_MAX_CODECS = 8, GRVI_MAX_FILTERS = 4 };

typedef struct grvi_chain grvi_chain;

/* sharding_indexed. Shapes are in the order of the axes after the chain's transposition. */
typedef struct grvi_sharding {
    grvi_chain *inner;
    int64_t grid[GRVI_MAX_RANK]; /* inner chunks along each axis */
    int64_t n_inner;
    int64_t index_bytes; /* checksums included */
    int n_index_checksums;
    bool index_big_endian;
    bool index_at_start;
} grvi_sharding;

struct grvi_chain {
    int rank;
    int64_t item_bytes;
    grvi_fill fill;
    int64_t shape[GRVI_MAX_RANK]; /* of the chunk as the array sees it */
    int64_t
        stored_shape[GRVI_MAX_RANK]; /* after transposition: stored_shape[i] = shape[order[i]] */
    int order[GRVI_MAX_RANK];
    int64_t n_bytes; /* decoded; not used for shards, which may exceed memory */
    int n_filters;
    grvi_filter filters[GRVI_MAX_FILTERS];
    int64_t n_filtered_bytes; /* after the filters; n_bytes if there are none */
    bool big_endian;
    int64_t swap_bytes;      /* words of this length are reversed on their way; 1: none */
    grvi_sharding *sharding; /* NULL: the `bytes` codec */
    int n_codecs;
    grvi_codec codecs[GRVI_MAX_CODECS];
    int64_t
        limit[GRVI_MAX_CODECS +
              1]; /* most bytes that are accepted before codec i, and at the end: after the last */
};

/* A rectangular part of a chunk: first element and number of elements along each axis. */
typedef struct grvi_box {
    int64_t start[GRVI_MAX_RANK];
    int64_t count[GRVI_MAX_RANK];
} grvi_box;

/* What a chain needs to know besides the JSON. */
typedef struct grvi_chain_params {
    int rank;
    grvi_item item;
    const uint8_t *fill; /* [item.n_bytes]; borrowed, outlives the chain */
    int64_t max_chunk_bytes;
    const char *what; /* the array's name, for messages */
} grvi_chain_params;

/* Resolves a `codecs` list for chunks of a shape. Destroy with grvi_chain_destroy. */
grv_status grvi_chain_create(const grvi_json *codecs, const int64_t *shape,
                             const grvi_chain_params *params, grvi_chain **chain) GRV_MUST_CHECK;
void grvi_chain_destroy(grvi_chain **chain);

/* Can inner chunks be read from the file one by one: sharding is there and nothing is around it? */
static inline bool grvi_chain_is_plain_shard(const grvi_chain *chain)
{
    return chain->sharding != NULL && chain->n_codecs == 0;
}

/* Is a chunk nothing but its elements, so that any part of it can be read by itself? */
static inline bool grvi_chain_is_raw(const grvi_chain *chain)
{
    return chain->sharding == NULL && chain->n_codecs == 0 && chain->n_filters == 0;
}

/* out[i] = in[order[i]] */
void grvi_chain_permute(const grvi_chain *chain, const int64_t *in, int64_t *out);
/* The box in stored axes, and the strides along them. */
void grvi_chain_permute_box(const grvi_chain *chain, const grvi_box *box, const int64_t *strides,
                            grvi_box *stored_box, int64_t *stored_strides);

/* Decodes the part `box` of one encoded chunk into out (strides in bytes, along the array's axes).
 * Adds to scratch->bytes_decoded. depth: of nesting, 0 for a caller outside chain*.c. */
grv_status grvi_chain_decode(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                             const uint8_t *in, int64_t n_in, const grvi_box *box, uint8_t *out,
                             const int64_t *strides) GRV_MUST_CHECK;

/* What grvi_chain_encode encodes. */
typedef struct grvi_encode_input {
    grvi_box box;           /* part of the chunk that is given */
    const uint8_t *data;    /* its elements */
    const int64_t *strides; /* in bytes, along the array's axes */
    const int64_t *
        extent; /* elements of the chunk that lie inside the array: a box that covers them replaces all */
    const uint8_t *old; /* encoded chunk as it is now, NULL if there is none */
    int64_t n_old;
} grvi_encode_input;

/* Appends the encoded chunk to out; *empty and nothing appended if all of it is the fill value.
 * pool, n_threads: inner chunks are encoded by that many threads (depth 0 only). */
grv_status grvi_chain_encode(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                             int n_threads, const grvi_encode_input *input, grvi_buffer *out,
                             bool *empty) GRV_MUST_CHECK;

/* ---- shard index (shard_index.c) ---- */

typedef struct grvi_shard_entry {
    uint64_t offset, n_bytes; /* both GRVI_SHARD_EMPTY: nothing but fill */
} grvi_shard_entry;

#define GRVI_SHARD_EMPTY UINT64_MAX
static inline bool grvi_shard_entry_is_empty(const grvi_shard_entry *e)
{
    return e->offset == GRVI_SHARD_EMPTY && e->n_bytes == GRVI_SHARD_EMPTY;
}

/* Where the index lies in a shard of n_shard bytes. GRV_E_FORMAT if the shard is shorter than its index. */
grv_status grvi_shard_index_place(const grvi_sharding *sharding, int64_t n_shard,
                                  int64_t *offset) GRV_MUST_CHECK;
/* Decodes and verifies the index: checksum, every entry inside the shard and outside the index. entries [n_inner] */
grv_status grvi_shard_index_decode(const grvi_sharding *sharding, const uint8_t *encoded,
                                   int64_t n_shard, grvi_shard_entry *entries) GRV_MUST_CHECK;
/* The index as stored: index_bytes bytes into out. */
void grvi_shard_index_encode(const grvi_sharding *sharding, const grvi_shard_entry *entries,
                             uint8_t *out);

/* The inner chunks that a box (in stored axes) touches: first cell and number of cells along each axis. */
void grvi_shard_cells(const grvi_chain *chain, const grvi_box *stored_box, grvi_box *cells);
/* The part of a box (in stored axes) that lies in the inner chunk at a grid position: `local` within the inner chunk, and
 * the byte offset of its first element from that of the box. */
void grvi_shard_cell_part(const grvi_chain *chain, const grvi_box *stored_box,
                          const int64_t *stored_strides, const int64_t *cell, grvi_box *local,
                          int64_t *offset);
/* Row-major number of an inner chunk. */
int64_t grvi_shard_cell_number(const grvi_chain *chain, const int64_t *cell);

#endif
