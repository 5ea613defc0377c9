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

/* One past the last byte of the decoded chunk that the part covers. */
static int64_t end_of_part(const grvi_part *part)
{
    int64_t last = 0;
    for (int i = 0; i < part->rank; i++)
        last = last * part->shape[i] + part->start[i] + part->count[i] - 1;
    return (last + 1) * part->item_bytes;
}

/* A single frame of n bytes whose checksum nobody would look at? (RFC 8878 3.1.1.1: bit 2 of the descriptor) */
static bool is_plain_frame(const uint8_t *in, int64_t n_in, int64_t n_decoded)
{
    return n_in > 5 && (in[4] & 4) == 0 &&
           ZSTD_getFrameContentSize(in, (size_t)n_in) == (unsigned long long)n_decoded &&
           ZSTD_findFrameCompressedSize(in, (size_t)n_in) == (size_t)n_in;
}

/* Decodes the first `end` bytes; false if that does not work out: then the frame as a whole tells why. */
static bool decode_begin(ZSTD_DCtx *decoder, const uint8_t *in, int64_t n_in, uint8_t *out,
                         int64_t end)
{
    ZSTD_inBuffer from = {in, (size_t)n_in, 0};
    ZSTD_outBuffer to = {out, (size_t)end, 0};
    if (ZSTD_isError(ZSTD_DCtx_reset(decoder, ZSTD_reset_session_only))) return false;
    while (to.pos < to.size) {
        const size_t taken = from.pos, made = to.pos;
        if (ZSTD_isError(ZSTD_decompressStream(decoder, &to, &from)) ||
            (from.pos == taken && to.pos == made))
            break;
    }
    const bool is_done = to.pos == to.size;
    return !ZSTD_isError(ZSTD_DCtx_reset(decoder, ZSTD_reset_session_only)) && is_done;
}

/* A frame can only be decoded from its beginning, but not beyond the last byte that is wanted. Decoding in steps copies once more, so the end must
 * be some way off. */
static grv_status zstd_decode_part(const grvi_codec *codec, grvi_codec_state *state,
                                   const uint8_t *in, int64_t n_in, const grvi_part *part,
                                   uint8_t *out, int64_t n_decoded, int64_t *n_produced)
{
    int64_t n = 0;
    const int64_t end = end_of_part(part);
    if (state->zstd_decoder == NULL) state->zstd_decoder = ZSTD_createDCtx();
    GRV_CHECK(state->zstd_decoder != NULL, GRV_E_NOMEM, "zstd: no memory for a decompressor");
    *n_produced = end;
    if (end <= n_decoded - n_decoded / 8 && is_plain_frame(in, n_in, n_decoded) &&
        decode_begin(state->zstd_decoder, in, n_in, out, end))
        return GRV_OK;
    GRV_TRY(zstd_decode(codec, state, in, n_in, out, n_decoded, &n));
    GRV_CHECK(n == n_decoded, GRV_E_FORMAT, "%lld bytes expected, %lld decoded",
              (long long)n_decoded, (long long)n);
    *n_produced = n;
    return GRV_OK;
}

void grvi_codec_zstd_fini(grvi_codec_state *state)
{
    (void)ZSTD_freeDCtx(state->zstd_decoder);
    (void)ZSTD_freeCCtx(state->zstd_encoder);
    state->zstd_decoder = state->zstd_encoder = NULL;
}

const grvi_codec_class grvi_codec_zstd = {"zstd",      zstd_parse,       zstd_bound, zstd_encode,
                                          zstd_decode, zstd_decode_part, NULL};
