/* `numcodecs.shuffle` {elementsize}: all first bytes of the elements, then all second bytes, and so on. */
#include <string.h>

#include "store/byte_shuffle.h"
#include "store/codec.h"

static grv_status shuffle_parse(const grvi_json *configuration, grvi_codec *codec)
{
    codec->item_bytes = 4;
    return grvi_codec_integer(configuration, codec->class->name, "elementsize", 0, INT32_MAX,
                              &codec->item_bytes);
}

static int64_t shuffle_bound(int64_t n)
{
    return n;
}

static grv_status check_size(const grvi_codec *codec, int64_t n)
{
    GRV_CHECK(codec->item_bytes <= 1 || n % codec->item_bytes == 0, GRV_E_FORMAT,
              "shuffle: %lld bytes are no multiple of elementsize %lld", (long long)n,
              (long long)codec->item_bytes);
    return GRV_OK;
}

static grv_status shuffle_encode(const grvi_codec *codec, grvi_codec_state *state,
                                 const uint8_t *in, int64_t n_in, uint8_t *out, int64_t capacity,
                                 int64_t *n_out)
{
    (void)state;
    (void)capacity;
    GRV_TRY(check_size(codec, n_in));
    if (codec->item_bytes <= 1)
        memcpy(out, in, (size_t)n_in);
    else
        grvi_byte_shuffle(codec->item_bytes, n_in / codec->item_bytes, in, out);
    *n_out = n_in;
    return GRV_OK;
}

static grv_status shuffle_decode(const grvi_codec *codec, grvi_codec_state *state,
                                 const uint8_t *in, int64_t n_in, uint8_t *out, int64_t capacity,
                                 int64_t *n_out)
{
    (void)state;
    GRV_TRY(check_size(codec, n_in));
    GRV_CHECK(n_in <= capacity, GRV_E_FORMAT, "shuffle: at most %lld bytes expected, %lld found",
              (long long)capacity, (long long)n_in);
    if (codec->item_bytes <= 1)
        memcpy(out, in, (size_t)n_in);
    else
        grvi_byte_unshuffle(codec->item_bytes, n_in / codec->item_bytes, in, out);
    *n_out = n_in;
    return GRV_OK;
}

const grvi_codec_class grvi_codec_shuffle = {
    "numcodecs.shuffle", shuffle_parse, shuffle_bound, shuffle_encode, shuffle_decode, NULL, NULL};
