/* `zstd` {level, checksum}: standard frames, one or several in a row. */
#include <zstd.h>

#include "store/codec.h"

static grv_status zstd_parse(const grvi_json *configuration, grvi_codec *codec)
{
    int64_t level = 0; /* 0: the library's default level */
    GRV_TRY(grvi_codec_integer(configuration, "zstd", "level", ZSTD_minCLevel(), ZSTD_maxCLevel(),
                               &level));
    codec->level = (int)level;
    const grvi_json *const checksum = grvi_json_get(configuration, "checksum");
    GRV_CHECK(checksum == NULL || grvi_json_as_bool(checksum, &codec->checksum), GRV_E_FORMAT,
              "codec 'zstd': checksum must be true or false");
    return GRV_OK;
}

static int64_t zstd_bound(int64_t n)
{
    return n > (int64_t)1 << 62 ? -1 : (int64_t)ZSTD_compressBound((size_t)n);
}

static grv_status zstd_encode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                              int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    if (state->zstd_encoder == NULL) state->zstd_encoder = ZSTD_createCCtx();
    GRV_CHECK(state->zstd_encoder != NULL, GRV_E_NOMEM, "zstd: no memory for a compressor");
    size_t result =
        ZSTD_CCtx_setParameter(state->zstd_encoder, ZSTD_c_compressionLevel, codec->level);
    if (!ZSTD_isError(result))
        result = ZSTD_CCtx_setParameter(state->zstd_encoder, ZSTD_c_checksumFlag, codec->checksum);
    if (!ZSTD_isError(result))
        result = ZSTD_compress2(state->zstd_encoder, out, (size_t)capacity, in, (size_t)n_in);
    GRV_CHECK(!ZSTD_isError(result), GRV_E_IO, "zstd: compressing %lld bytes: %s", (long long)n_in,
              ZSTD_getErrorName(result));
    *n_out = (int64_t)result;
    return GRV_OK;
}

static grv_status zstd_decode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                              int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    (void)codec;
    if (state->zstd_decoder == NULL) state->zstd_decoder = ZSTD_createDCtx();
    GRV_CHECK(state->zstd_decoder != NULL, GRV_E_NOMEM, "zstd: no memory for a decompressor");
    const size_t result =
        ZSTD_decompressDCtx(state->zstd_decoder, out, (size_t)capacity, in, (size_t)n_in);
    GRV_CHECK(!ZSTD_isError(result), GRV_E_FORMAT, "zstd: %lld bytes into at most %lld: %s",
              (long long)n_in, (long long)capacity, ZSTD_getErrorName(result));
    *n_out = (int64_t)result;
    return GRV_OK;
}

void grvi_codec_zstd_fini(grvi_codec_state *state)
{
    (void)ZSTD_freeDCtx(state->zstd_decoder);
    (void)ZSTD_freeCCtx(state->zstd_encoder);
    state->zstd_decoder = state->zstd_encoder = NULL;
}

const grvi_codec_class grvi_codec_zstd = {"zstd",      zstd_parse, zstd_bound, zstd_encode,
                                          zstd_decode, NULL,       NULL};
