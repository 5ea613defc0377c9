/* Byte codecs: what comes after the `bytes` (or `sharding_indexed`) codec in a chain, bytes in and bytes out. Internal.
 * One file per codec fills a grvi_codec_class; codec.c lists them. */
#ifndef GRVI_STORE_CODEC_H
#define GRVI_STORE_CODEC_H

#include "core/check.h"
#include "core/json.h"
#include "store/buffer.h"
#include "store/region.h"

typedef struct grvi_codec_class grvi_codec_class;

/* A codec with its configuration; a plain value. The fields mean what the codec's file says. */
typedef struct grvi_codec {
    const grvi_codec_class *class;
    int level;
    int shuffle;
    int64_t item_bytes;
    int64_t block_bytes;
    bool checksum;
    bool at_start; /* the checksum stands before the data */
    char compressor[16];
} grvi_codec;

/* Third-party state that is worth keeping between calls; one per scratch, made when first needed. */
typedef struct grvi_codec_state {
    void *zstd_decoder;
    void *zstd_encoder;
    grvi_buffer block; /* codec_blosc.c */
} grvi_codec_state;

struct grvi_codec_class {
    const char *name;
    /* reads `configuration` (NULL if there is none) into codec; item_bytes is set to that of the array */
    grv_status (*parse)(const grvi_json *configuration, grvi_codec *codec);
    /* most bytes that encoding n bytes gives; -1 if n is more than the codec takes */
    int64_t (*bound)(int64_t n);
    /* out has room for bound(n_in) bytes */
    grv_status (*encode)(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                         int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out);
    /* refuses input that decodes to more than `capacity` bytes. NULL: the codec is a checksum, see `check` */
    grv_status (*decode)(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                         int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out);
    /* as decode for input that decodes to exactly n_decoded bytes, but only those bytes of `out` need be set that the part
     * covers; *n_produced: how many were. NULL: the codec decodes as a whole */
    grv_status (*decode_part)(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                              int64_t n_in, const grvi_part *part, uint8_t *out, int64_t n_decoded,
                              int64_t *n_produced);
    /* for codecs that leave the data as they are and put a checksum beside them: verifies, and tells where the data are */
    grv_status (*check)(const grvi_codec *codec, const uint8_t *in, int64_t n_in,
                        const uint8_t **data, int64_t *n_data);
};

extern const grvi_codec_class grvi_codec_zstd, grvi_codec_blosc, grvi_codec_gzip, grvi_codec_zlib,
    grvi_codec_lz4, grvi_codec_bz2, grvi_codec_shuffle, grvi_codec_crc32c, grvi_codec_crc32,
    grvi_codec_adler32, grvi_codec_fletcher32;

/* The class of a name, NULL if there is none. The names that zarr-python gives to codecs of numcodecs are known too. */
const grvi_codec_class *grvi_codec_find(const char *name);
void grvi_codec_state_fini(grvi_codec_state *state);
/* codec_zstd.c's part of it */
void grvi_codec_zstd_fini(grvi_codec_state *state);

/* Optional integer member of a configuration within [low, high]; *value keeps its default if absent. */
grv_status grvi_codec_integer(const grvi_json *configuration, const char *codec, const char *key,
                              int64_t low, int64_t high, int64_t *value) GRV_MUST_CHECK;

#endif
