/* Blocks of known size as VTK and others store them: zlib streams, raw LZ4 blocks, xz streams; gzip files. Internal. */
#ifndef GRVI_STORE_BLOCK_CODEC_H
#define GRVI_STORE_BLOCK_CODEC_H

#include "core/check.h"

typedef enum grvi_block_kind { GRVI_BLOCK_ZLIB, GRVI_BLOCK_LZ4, GRVI_BLOCK_XZ } grvi_block_kind;

/* Third-party state that is worth keeping between calls, one per thread; start from {0}. */
typedef struct grvi_block_state {
    void *inflater, *deflater;
    int level; /* of the deflater */
} grvi_block_state;

void grvi_block_state_fini(grvi_block_state *state);

/* No block of n compressed bytes decodes to more than this: what a header may claim before memory is taken. */
int64_t grvi_block_max_decoded(grvi_block_kind kind, int64_t n);
/* Decodes to exactly n_out bytes, or fails. */
grv_status grvi_block_decode(grvi_block_kind kind, grvi_block_state *state, const uint8_t *in,
                             int64_t n_in, uint8_t *out, int64_t n_out) GRV_MUST_CHECK;
/* Room that encoding n bytes needs at most; zlib only. */
int64_t grvi_block_bound(int64_t n);
/* zlib, level 1 to 9; out has room for grvi_block_bound(n_in). */
grv_status grvi_block_encode(grvi_block_state *state, int level, const uint8_t *in, int64_t n_in,
                             uint8_t *out, int64_t *n_out) GRV_MUST_CHECK;

/* All members of a gzip file; *out is owned by the caller. `path` is for messages. */
grv_status grvi_gzip_unpack(const char *path, const uint8_t *in, int64_t n_in, uint8_t **out,
                            int64_t *n_out) GRV_MUST_CHECK;

#endif
