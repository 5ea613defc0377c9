/* `gzip` {level}: RFC 1952, and `numcodecs.zlib` {level}: RFC 1950; one member or several in a row. */
#include <string.h>

#include <zlib.h>

#include "store/codec.h"

enum {
    ZLIB_WINDOW = 15,
    GZIP_WINDOW = 15 + 16
}; /* zlib's way to ask for one wrapper or the other */

static const int64_t step_bytes = (int64_t)1 << 30; /* zlib counts in unsigned int */

static int window_of(const grvi_codec *codec)
{
    return codec->class == &grvi_codec_gzip ? GZIP_WINDOW : ZLIB_WINDOW;
}

static grv_status gzip_parse(const grvi_json *configuration, grvi_codec *codec)
{
    int64_t level = codec->class == &grvi_codec_gzip ? 5 : 1;
    GRV_TRY(grvi_codec_integer(configuration, codec->class->name, "level", Z_DEFAULT_COMPRESSION,
                               Z_BEST_COMPRESSION, &level));
    codec->level = (int)level;
    return GRV_OK;
}

/* deflate's worst case is stored blocks, plus wrapper */
static int64_t gzip_bound(int64_t n)
{
    return n > (int64_t)1 << 62 ? -1 : n + (n >> 12) + (n >> 14) + (n >> 25) + 64;
}

/* hands the next stretch of both sides to zlib */
static void feed(z_stream *z, const uint8_t *in, int64_t n_in, uint8_t *out, int64_t capacity)
{
    z->next_in = (Bytef *)(uintptr_t)in; /* zlib does not write through it */
    z->avail_in = (uInt)grvi_min_i64(n_in, step_bytes);
    z->next_out = out;
    z->avail_out = (uInt)grvi_min_i64(capacity, step_bytes);
}

static grv_status gzip_encode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                              int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    (void)state;
    z_stream z;
    memset(&z, 0, sizeof z);
    GRV_CHECK(deflateInit2(&z, codec->level, Z_DEFLATED, window_of(codec), 8, Z_DEFAULT_STRATEGY) ==
                  Z_OK,
              GRV_E_NOMEM, "%s: no memory for a compressor", codec->class->name);
    int64_t consumed = 0, produced = 0;
    int result = Z_OK;
    while (result == Z_OK) {
        feed(&z, in + consumed, n_in - consumed, out + produced, capacity - produced);
        const uInt given = z.avail_in, room = z.avail_out;
        result = deflate(&z, n_in - consumed <= step_bytes ? Z_FINISH : Z_NO_FLUSH);
        consumed += given - z.avail_in;
        produced += room - z.avail_out;
    }
    (void)deflateEnd(&z);
    GRV_CHECK(result == Z_STREAM_END, GRV_E_IO, "%s: compressing %lld bytes failed (zlib error %d)",
              codec->class->name, (long long)n_in, result);
    *n_out = produced;
    return GRV_OK;
}

static grv_status gzip_decode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                              int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    (void)state;
    z_stream z;
    memset(&z, 0, sizeof z);
    GRV_CHECK(inflateInit2(&z, window_of(codec)) == Z_OK, GRV_E_NOMEM,
              "%s: no memory for a decompressor", codec->class->name);
    int64_t consumed = 0, produced = 0;
    int result = Z_OK;
    while (result == Z_OK) {
        feed(&z, in + consumed, n_in - consumed, out + produced, capacity - produced);
        const uInt given = z.avail_in, room = z.avail_out;
        result = inflate(&z, Z_NO_FLUSH);
        consumed += given - z.avail_in;
        produced += room - z.avail_out;
        if (result == Z_STREAM_END && consumed < n_in)
            result = inflateReset(&z); /* another member follows */
    }
    (void)inflateEnd(&z);
    GRV_CHECK(result == Z_STREAM_END, GRV_E_FORMAT,
              "%s: broken after %lld of %lld bytes, %lld decoded into at most %lld",
              codec->class->name, (long long)consumed, (long long)n_in, (long long)produced,
              (long long)capacity);
    *n_out = produced;
    return GRV_OK;
}

const grvi_codec_class grvi_codec_gzip = {"gzip",      gzip_parse, gzip_bound, gzip_encode,
                                          gzip_decode, NULL,       NULL};
const grvi_codec_class grvi_codec_zlib = {"numcodecs.zlib", gzip_parse, gzip_bound, gzip_encode,
                                          gzip_decode,      NULL,       NULL};
