/* `blosc` {cname, clevel, shuffle, typesize, blocksize}: Blosc 1 chunks. Only the *_ctx calls are used: they have no global
 * state, are safe in any thread and after fork. Decoding needs no configuration: the chunk's header says all. */
#include <string.h>

#include <blosc.h>

#include "store/codec.h"

static const char *const shuffles[] = {"noshuffle", "shuffle",
                                       "bitshuffle"}; /* index = Blosc's number */

static grv_status blosc_parse(const grvi_json *configuration, grvi_codec *codec)
{
    int64_t level = 5, item_bytes = codec->item_bytes, block_bytes = 0;
    GRV_TRY(grvi_codec_integer(configuration, "blosc", "clevel", 0, 9, &level));
    GRV_TRY(grvi_codec_integer(configuration, "blosc", "typesize", 1, INT32_MAX, &item_bytes));
    GRV_TRY(grvi_codec_integer(configuration, "blosc", "blocksize", 0, BLOSC_MAX_BUFFERSIZE,
                               &block_bytes));
    const grvi_json *const compressor_node = grvi_json_get(configuration, "cname"),
                           *const shuffle_node = grvi_json_get(configuration, "shuffle");
    const char *const compressor =
        compressor_node != NULL ? grvi_json_as_string(compressor_node) : "lz4";
    const char *const shuffle = grvi_json_as_string(shuffle_node);
    GRV_CHECK(compressor != NULL && strlen(compressor) < sizeof codec->compressor &&
                  blosc_compname_to_compcode(compressor) >= 0,
              GRV_E_UNSUPPORTED, "codec 'blosc': cname '%.32s' is not known",
              compressor != NULL ? compressor : "(not a string)");
    int64_t number = 0;
    codec->shuffle = shuffle_node == NULL ? 0 : -1;
    for (int i = 0; i < 3; i++) {
        if (shuffle != NULL && strcmp(shuffle, shuffles[i]) == 0) codec->shuffle = i;
    }
    /* numcodecs writes Blosc's number, or -1 for "bits of bytes, else bytes" */
    if (shuffle_node != NULL && grvi_json_as_i64(shuffle_node, &number) && number >= -1 &&
        number <= 2)
        codec->shuffle = number >= 0 ? (int)number : item_bytes == 1 ? 2 : 1;
    GRV_CHECK(codec->shuffle >= 0, GRV_E_FORMAT,
              "codec 'blosc': shuffle must be noshuffle, shuffle or bitshuffle");
    codec->level = (int)level;
    codec->item_bytes = item_bytes;
    codec->block_bytes = block_bytes;
    memcpy(codec->compressor, compressor, strlen(compressor) + 1);
    return GRV_OK;
}

static int64_t blosc_bound(int64_t n)
{
    return n > BLOSC_MAX_BUFFERSIZE ? -1 : n + BLOSC_MAX_OVERHEAD;
}

static grv_status blosc_encode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                               int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    (void)state;
    const int result = blosc_compress_ctx(codec->level, codec->shuffle, (size_t)codec->item_bytes,
                                          (size_t)n_in, in, out, (size_t)capacity,
                                          codec->compressor, (size_t)codec->block_bytes, 1);
    GRV_CHECK(result > 0, GRV_E_IO, "blosc: compressing %lld bytes failed (error %d)",
              (long long)n_in, result);
    *n_out = result;
    return GRV_OK;
}

static grv_status blosc_decode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                               int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    (void)codec;
    (void)state;
    size_t n_decoded = 0;
    /* the decompressor trusts the header; this call is what makes it safe */
    GRV_CHECK(blosc_cbuffer_validate(in, (size_t)n_in, &n_decoded) == 0, GRV_E_FORMAT,
              "blosc: the header does not fit the %lld bytes that are there", (long long)n_in);
    GRV_CHECK((int64_t)n_decoded <= capacity, GRV_E_FORMAT,
              "blosc: at most %lld bytes expected, the header says %zu", (long long)capacity,
              n_decoded);
    const int result = n_decoded == 0 ? 0 : blosc_decompress_ctx(in, out, (size_t)capacity, 1);
    GRV_CHECK(result >= 0 && (size_t)result == n_decoded, GRV_E_FORMAT,
              "blosc: broken data in %lld bytes (error %d)", (long long)n_in, result);
    *n_out = result;
    return GRV_OK;
}

const grvi_codec_class grvi_codec_blosc = {"blosc",      blosc_parse,  blosc_bound,
                                           blosc_encode, blosc_decode, NULL};
