/* `numcodecs.bz2` {level}: bzip2, one stream or several in a row. */
#include <string.h>

#include <bzlib.h>

#include "store/codec.h"

static const int64_t step_bytes = (int64_t)1 << 30; /* bzlib counts in unsigned int */

static grv_status bz2_parse(const grvi_json *configuration, grvi_codec *codec)
{
    int64_t level = 1;
    GRV_TRY(grvi_codec_integer(configuration, codec->class->name, "level", 1, 9, &level));
    codec->level = (int)level;
    return GRV_OK;
}

/* what bzlib's manual promises */
static int64_t bz2_bound(int64_t n)
{
    return n > (int64_t)1 << 62 ? -1 : n + n / 100 + 600;
}

/* hands the next stretch of both sides to bzlib */
static void feed(bz_stream *z, const uint8_t *in, int64_t n_in, uint8_t *out, int64_t capacity)
{
    z->next_in = (char *)(uintptr_t)in; /* bzlib does not write through it */
    z->avail_in = (unsigned)grvi_min_i64(n_in, step_bytes);
    z->next_out = (char *)out;
    z->avail_out = (unsigned)grvi_min_i64(capacity, step_bytes);
}

static grv_status bz2_encode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                             int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    (void)state;
    bz_stream z;
    memset(&z, 0, sizeof z);
    GRV_CHECK(BZ2_bzCompressInit(&z, codec->level, 0, 0) == BZ_OK, GRV_E_NOMEM,
              "bz2: no memory for a compressor");
    int64_t consumed = 0, produced = 0;
    int result = BZ_RUN_OK;
    bool is_last = false;
    while (result == BZ_RUN_OK || result == BZ_FINISH_OK) {
        feed(&z, in + consumed, n_in - consumed, out + produced, capacity - produced);
        const unsigned given = z.avail_in, room = z.avail_out;
        is_last = is_last || n_in - consumed <= step_bytes;
        if (room == 0) break;
        result = BZ2_bzCompress(&z, is_last ? BZ_FINISH : BZ_RUN);
        consumed += given - z.avail_in;
        produced += room - z.avail_out;
    }
    (void)BZ2_bzCompressEnd(&z);
    GRV_CHECK(result == BZ_STREAM_END, GRV_E_IO, "bz2: compressing %lld bytes failed (error %d)",
              (long long)n_in, result);
    *n_out = produced;
    return GRV_OK;
}

/* One stream; *consumed and *produced go on. */
static grv_status decode_stream(const uint8_t *in, int64_t n_in, uint8_t *out, int64_t capacity,
                                int64_t *consumed, int64_t *produced)
{
    bz_stream z;
    memset(&z, 0, sizeof z);
    GRV_CHECK(BZ2_bzDecompressInit(&z, 0, 0) == BZ_OK, GRV_E_NOMEM,
              "bz2: no memory for a decompressor");
    int result = BZ_OK;
    while (result == BZ_OK) {
        feed(&z, in + *consumed, n_in - *consumed, out + *produced, capacity - *produced);
        const unsigned given = z.avail_in, room = z.avail_out;
        result = BZ2_bzDecompress(&z);
        *consumed += given - z.avail_in;
        *produced += room - z.avail_out;
        const bool is_stuck = given == z.avail_in && room == z.avail_out;
        if (result == BZ_OK && is_stuck) result = BZ_UNEXPECTED_EOF;
    }
    (void)BZ2_bzDecompressEnd(&z);
    GRV_CHECK(result == BZ_STREAM_END, GRV_E_FORMAT,
              "bz2: broken after %lld of %lld bytes, %lld decoded into at most %lld (error %d)",
              (long long)*consumed, (long long)n_in, (long long)*produced, (long long)capacity,
              result);
    return GRV_OK;
}

static grv_status bz2_decode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                             int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    (void)codec;
    (void)state;
    int64_t consumed = 0;
    *n_out = 0;
    do GRV_TRY(decode_stream(in, n_in, out, capacity, &consumed, n_out));
    while (consumed < n_in);
    return GRV_OK;
}

const grvi_codec_class grvi_codec_bz2 = {"numcodecs.bz2", bz2_parse, bz2_bound, bz2_encode,
                                         bz2_decode,      NULL,      NULL};
