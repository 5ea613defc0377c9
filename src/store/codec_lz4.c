/* `numcodecs.lz4` {acceleration}: the number of decoded bytes as a little-endian 32-bit word, then one raw LZ4 block. */
#include <string.h>

#include <lz4.h>

#include "store/codec.h"

enum { SIZE_BYTES = 4 };

static grv_status lz4_parse(const grvi_json *configuration, grvi_codec *codec)
{
    int64_t acceleration = 1;
    GRV_TRY(grvi_codec_integer(configuration, codec->class->name, "acceleration", INT32_MIN,
                               INT32_MAX, &acceleration));
    codec->level = (int)acceleration;
    return GRV_OK;
}

static int64_t lz4_bound(int64_t n)
{
    return n > LZ4_MAX_INPUT_SIZE ? -1 : SIZE_BYTES + (int64_t)LZ4_compressBound((int)n);
}

static grv_status lz4_encode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                             int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    (void)state;
    const uint32_t n = (uint32_t)n_in;
    memcpy(out, &n, SIZE_BYTES);
    const int result =
        LZ4_compress_fast((const char *)in, (char *)out + SIZE_BYTES, (int)n_in,
                          (int)grvi_min_i64(capacity - SIZE_BYTES, INT32_MAX), codec->level);
    GRV_CHECK(result > 0, GRV_E_IO, "lz4: compressing %lld bytes failed", (long long)n_in);
    *n_out = SIZE_BYTES + result;
    return GRV_OK;
}

static grv_status lz4_decode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                             int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    (void)codec;
    (void)state;
    uint32_t n = 0;
    GRV_CHECK(n_in > SIZE_BYTES && n_in <= INT32_MAX, GRV_E_FORMAT,
              "lz4: 5 bytes to 2 GiB expected, %lld found", (long long)n_in);
    memcpy(&n, in, SIZE_BYTES);
    GRV_CHECK(n <= INT32_MAX && (int64_t)n <= capacity, GRV_E_FORMAT,
              "lz4: at most %lld bytes expected, the header says %u", (long long)capacity, n);
    const int result = LZ4_decompress_safe((const char *)in + SIZE_BYTES, (char *)out,
                                           (int)(n_in - SIZE_BYTES), (int)n);
    GRV_CHECK(result == (int)n, GRV_E_FORMAT,
              "lz4: broken data in %lld bytes (%d decoded, the header says %u)", (long long)n_in,
              result, n);
    *n_out = result;
    return GRV_OK;
}

const grvi_codec_class grvi_codec_lz4 = {"numcodecs.lz4", lz4_parse, lz4_bound, lz4_encode,
                                         lz4_decode,      NULL,      NULL};
