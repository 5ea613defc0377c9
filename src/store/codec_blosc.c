/* `blosc` {cname, clevel, shuffle, typesize, blocksize}: Blosc 1 chunks. Only the *_ctx calls are used: they have no global
 * state, are safe in any thread and after fork. Decoding needs no configuration: the chunk's header says all.
 * A chunk is a header of 16 bytes, the offset of each block, the blocks. A block is one stream, or one for each byte of the
 * elements; a stream is its length and its data, which are raw if they are as long as what they stand for.
 * Blocks of LZ4, Zstandard and zlib are decoded here, the wanted ones only: the library would take memory, and for Zstandard a
 * new decoder, for each block (a chunk of 1 MiB in blocks of 16 KiB takes it three times as long). It decodes the rest.
 * For the same reason Zstandard is encoded here; the bytes are those that the library makes. */
#include <string.h>

#include <blosc.h>
#include <lz4.h>
#include <zlib.h>

#include "store/byte_shuffle.h"
#include "store/codec.h"
#include "store/scratch.h"

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

/* ---- the format ---- */

/* Formats in the header's flags. */
enum { FORMAT_LZ4 = 1, FORMAT_ZLIB = 3, FORMAT_ZSTD = 4 };
enum { FLAG_RAW = 2, FLAG_NOT_SPLIT = 16, FORMAT_SHIFT = 5 };
enum { HEADER_BYTES = BLOSC_MIN_HEADER_LENGTH, LENGTH_BYTES = 4 };
enum { MAX_SPLIT_ITEM = 16, MIN_SPLIT_BYTES = 128 }; /* a block is split only within these */

static int64_t load_length(const uint8_t *p)
{
    int32_t value = 0;
    memcpy(&value, p, sizeof value);
    return value;
}

static void store_length(uint8_t *p, int64_t n)
{
    const int32_t value = (int32_t)n;
    memcpy(p, &value, sizeof value);
}

/* ---- encoding ---- */

enum { ZSTD_VERSION_FORMAT = 1, MAX_BLOSC_ITEM = 255, LEAST_OWN_BYTES = MIN_SPLIT_BYTES };
/* Blosc's own choice, by level, unless the block is given: what fits a second-level cache for strong compression */
static const int64_t level_block_bytes[] = {0,       1 << 15, 1 << 16, 1 << 17, 1 << 18,
                                            1 << 18, 1 << 19, 1 << 19, 1 << 19, 1 << 20};

static grv_status encode_by_library(const grvi_codec *codec, const uint8_t *in, int64_t n_in,
                                    uint8_t *out, int64_t capacity, int64_t *n_out)
{
    const int result = blosc_compress_ctx(codec->level, codec->shuffle, (size_t)codec->item_bytes,
                                          (size_t)n_in, in, out, (size_t)capacity,
                                          codec->compressor, (size_t)codec->block_bytes, 1);
    GRV_CHECK(result > 0, GRV_E_IO, "blosc: compressing %lld bytes failed (error %d)",
              (long long)n_in, result);
    *n_out = result;
    return GRV_OK;
}

/* Is it a chunk that is encoded here? */
static bool is_own(const grvi_codec *codec, int64_t n_in)
{
    return strcmp(codec->compressor, "zstd") == 0 && codec->shuffle != BLOSC_BITSHUFFLE &&
           codec->level > 0 && codec->item_bytes <= MAX_BLOSC_ITEM && n_in >= LEAST_OWN_BYTES;
}

/* Decoded bytes of a block: whole elements. */
static int64_t choose_block_bytes(const grvi_codec *codec, int64_t n_in)
{
    int64_t n = codec->block_bytes > 0 ? codec->block_bytes : level_block_bytes[codec->level];
    n = grvi_min_i64(grvi_max_i64(n, MIN_SPLIT_BYTES), n_in);
    return n > codec->item_bytes ? n / codec->item_bytes * codec->item_bytes : n;
}

/* One block as a stream: its length and data, which are raw if they do not get shorter. *data: where they are. */
static grv_status encode_block(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                               int64_t n, const uint8_t **data, int64_t *n_data)
{
    const grvi_codec zstd = {.level = 2 * codec->level - 1 < 17 ? 2 * codec->level - 1 : 22};
    const int64_t most = grvi_codec_zstd.bound(n), n_items = n / codec->item_bytes;
    const int64_t n_shuffled = n_items * codec->item_bytes;
    GRV_TRY(grvi_buffer_reserve(&state->block, n + most));
    uint8_t *const shuffled = state->block.data, *const stream = shuffled + n;
    *data = in;
    if (codec->shuffle == BLOSC_SHUFFLE && codec->item_bytes > 1) {
        grvi_byte_shuffle(codec->item_bytes, n_items, in, shuffled);
        memcpy(shuffled + n_shuffled, in + n_shuffled, (size_t)(n - n_shuffled));
        *data = shuffled;
    }
    GRV_TRY(grvi_codec_zstd.encode(&zstd, state, *data, n, stream, most, n_data));
    if (*n_data < n)
        *data = stream;
    else
        *n_data = n;
    return GRV_OK;
}

/* All blocks, with their table, after the header; *n_out = 0 if the chunk gets no shorter by that. */
static grv_status encode_blocks(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                                int64_t n_in, int64_t block_bytes, uint8_t *out, int64_t *n_out)
{
    const int64_t n_blocks = grvi_ceil_div(n_in, block_bytes);
    int64_t at = HEADER_BYTES + LENGTH_BYTES * n_blocks;
    *n_out = 0;
    for (int64_t i = 0; i < n_blocks; i++) {
        const int64_t n = grvi_min_i64(block_bytes, n_in - i * block_bytes);
        const uint8_t *data = NULL;
        int64_t n_data = 0;
        GRV_TRY(encode_block(codec, state, in + i * block_bytes, n, &data, &n_data));
        if (at + LENGTH_BYTES + n_data >= HEADER_BYTES + n_in) return GRV_OK;
        store_length(out + HEADER_BYTES + LENGTH_BYTES * i, at);
        store_length(out + at, n_data);
        memcpy(out + at + LENGTH_BYTES, data, (size_t)n_data);
        at += LENGTH_BYTES + n_data;
    }
    *n_out = at;
    return GRV_OK;
}

static grv_status blosc_encode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                               int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    if (!is_own(codec, n_in)) return encode_by_library(codec, in, n_in, out, capacity, n_out);
    const int64_t block_bytes = choose_block_bytes(codec, n_in);
    int flags = FORMAT_ZSTD << FORMAT_SHIFT | FLAG_NOT_SPLIT | codec->shuffle;
    GRV_ASSERT(capacity >= n_in + HEADER_BYTES);
    GRV_TRY(encode_blocks(codec, state, in, n_in, block_bytes, out, n_out));
    if (*n_out == 0) {
        flags |= FLAG_RAW;
        memcpy(out + HEADER_BYTES, in, (size_t)n_in);
        *n_out = HEADER_BYTES + n_in;
    }
    const uint8_t head[] = {BLOSC_VERSION_FORMAT, ZSTD_VERSION_FORMAT, (uint8_t)flags,
                            (uint8_t)codec->item_bytes};
    memcpy(out, head, sizeof head);
    store_length(out + 4, n_in);
    store_length(out + 8, block_bytes);
    store_length(out + 12, *n_out);
    return GRV_OK;
}

/* ---- decoding ---- */

typedef struct blosc_chunk {
    const uint8_t *data;
    int64_t n_data;
    int version, flags, format;
    int64_t item_bytes;
    int64_t n_bytes, block_bytes; /* decoded: all, and a block but the last */
    int64_t n_blocks;
} blosc_chunk;

/* Reads the header and checks that it fits the bytes that are there, and its table of blocks. */
static grv_status open_chunk(const uint8_t *in, int64_t n_in, blosc_chunk *chunk)
{
    size_t n_decoded = 0;
    /* the library trusts the header; this call is what makes it safe */
    GRV_CHECK(blosc_cbuffer_validate(in, (size_t)n_in, &n_decoded) == 0, GRV_E_FORMAT,
              "blosc: the header does not fit the %lld bytes that are there", (long long)n_in);
    *chunk = (blosc_chunk){.data = in,
                           .n_data = n_in,
                           .version = in[0],
                           .flags = in[2],
                           .format = in[2] >> FORMAT_SHIFT,
                           .item_bytes = in[3],
                           .n_bytes = (int64_t)n_decoded,
                           .block_bytes = load_length(in + 8)};
    if (chunk->block_bytes > 0) chunk->n_blocks = grvi_ceil_div(chunk->n_bytes, chunk->block_bytes);
    return GRV_OK;
}

/* Is it one that is decoded here? */
static bool is_known(const blosc_chunk *chunk)
{
    const bool is_format =
        chunk->format == FORMAT_LZ4 || chunk->format == FORMAT_ZSTD || chunk->format == FORMAT_ZLIB;
    return chunk->version == BLOSC_VERSION_FORMAT && is_format && (chunk->flags & FLAG_RAW) == 0 &&
           chunk->item_bytes > 0 && chunk->n_blocks > 0 &&
           chunk->n_blocks <= (chunk->n_data - HEADER_BYTES) / LENGTH_BYTES;
}

static grv_status decode_stream(const blosc_chunk *chunk, grvi_codec_state *state,
                                const uint8_t *in, int64_t n_in, uint8_t *out, int64_t n_out)
{
    int64_t n = -1;
    if (n_in == n_out) {
        memcpy(out, in, (size_t)n_out);
        return GRV_OK;
    }
    if (chunk->format == FORMAT_LZ4) {
        n = LZ4_decompress_safe((const char *)in, (char *)out, (int)n_in, (int)n_out);
    } else if (chunk->format == FORMAT_ZSTD) {
        GRV_TRY(grvi_codec_zstd.decode(NULL, state, in, n_in, out, n_out, &n));
    } else {
        uLongf n_inflated = (uLongf)n_out;
        if (uncompress(out, &n_inflated, in, (uLong)n_in) == Z_OK) n = (int64_t)n_inflated;
    }
    GRV_CHECK(n == n_out, GRV_E_FORMAT, "%lld bytes expected, broken after %lld", (long long)n_out,
              (long long)n);
    return GRV_OK;
}

static void undo_shuffle(const blosc_chunk *chunk, const uint8_t *in, int64_t n, uint8_t *out)
{
    const int64_t n_items = n / chunk->item_bytes, n_shuffled = n_items * chunk->item_bytes;
    const bool by_bytes = (chunk->flags & BLOSC_DOSHUFFLE) != 0 && chunk->item_bytes > 1;
    /* bits are shuffled in groups of eight elements, and not at all where these do not come out even */
    if (by_bytes)
        grvi_byte_unshuffle(chunk->item_bytes, n_items, in, out);
    else if (n_items % 8 == 0)
        grvi_bit_unshuffle(chunk->item_bytes, n_items, in, out);
    else
        memcpy(out, in, (size_t)n_shuffled);
    memcpy(out + n_shuffled, in + n_shuffled, (size_t)(n - n_shuffled));
}

/* Block number i into out, which has room for it. */
static grv_status decode_block(const blosc_chunk *chunk, grvi_codec_state *state, int64_t i,
                               uint8_t *out, int64_t *n_out)
{
    const int64_t n = grvi_min_i64(chunk->block_bytes, chunk->n_bytes - i * chunk->block_bytes);
    const bool is_whole = n == chunk->block_bytes;
    const bool is_split = (chunk->flags & FLAG_NOT_SPLIT) == 0 && is_whole &&
                          chunk->item_bytes <= MAX_SPLIT_ITEM &&
                          n / chunk->item_bytes >= MIN_SPLIT_BYTES;
    const int64_t n_splits = is_split ? chunk->item_bytes : 1, n_split = n / n_splits;
    const bool is_shuffled = ((chunk->flags & BLOSC_DOSHUFFLE) != 0 && chunk->item_bytes > 1) ||
                             (chunk->flags & BLOSC_DOBITSHUFFLE) != 0;
    if (is_shuffled) GRV_TRY(grvi_buffer_reserve(&state->block, n));
    uint8_t *const target = is_shuffled ? state->block.data : out;
    int64_t at = load_length(chunk->data + HEADER_BYTES + LENGTH_BYTES * i);
    GRV_CHECK(n_split * n_splits == n, GRV_E_FORMAT, "blocks of %lld bytes in %lld streams",
              (long long)n, (long long)n_splits);
    for (int64_t j = 0; j < n_splits; j++) {
        GRV_CHECK(at >= HEADER_BYTES && at <= chunk->n_data - LENGTH_BYTES, GRV_E_FORMAT,
                  "stream %lld begins at byte %lld", (long long)j, (long long)at);
        const int64_t n_stream = load_length(chunk->data + at);
        at += LENGTH_BYTES;
        GRV_CHECK(n_stream > 0 && n_stream <= chunk->n_data - at, GRV_E_FORMAT,
                  "stream %lld has %lld bytes at byte %lld", (long long)j, (long long)n_stream,
                  (long long)at);
        GRV_TRY(
            decode_stream(chunk, state, chunk->data + at, n_stream, target + j * n_split, n_split));
        at += n_stream;
    }
    if (is_shuffled) undo_shuffle(chunk, target, n, out);
    *n_out = n;
    return GRV_OK;
}

/* All blocks that the part touches (NULL: all). */
static grv_status decode_blocks(const blosc_chunk *chunk, grvi_codec_state *state,
                                const grvi_part *part, uint8_t *out, int64_t *n_produced)
{
    *n_produced = 0;
    for (int64_t i = 0; i < chunk->n_blocks; i++) {
        const int64_t begin = i * chunk->block_bytes;
        int64_t n = 0;
        if (part != NULL && !grvi_part_touches(part, begin, begin + chunk->block_bytes)) continue;
        const grv_status status = decode_block(chunk, state, i, out + begin, &n);
        if (status != GRV_OK)
            GRV_FAIL(status, "blosc: block %lld of %lld in %lld bytes: %s", (long long)i,
                     (long long)chunk->n_blocks, (long long)chunk->n_data, grvi_reason(status));
        *n_produced += n;
    }
    return GRV_OK;
}

static grv_status decode_by_library(const blosc_chunk *chunk, uint8_t *out, int64_t capacity)
{
    const int result =
        chunk->n_bytes == 0 ? 0 : blosc_decompress_ctx(chunk->data, out, (size_t)capacity, 1);
    GRV_CHECK(result == chunk->n_bytes, GRV_E_FORMAT, "blosc: broken data in %lld bytes (error %d)",
              (long long)chunk->n_data, result);
    return GRV_OK;
}

static grv_status blosc_decode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                               int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    (void)codec;
    blosc_chunk chunk = {.n_bytes = 0};
    GRV_TRY(open_chunk(in, n_in, &chunk));
    GRV_CHECK(chunk.n_bytes <= capacity, GRV_E_FORMAT,
              "blosc: at most %lld bytes expected, the header says %lld", (long long)capacity,
              (long long)chunk.n_bytes);
    *n_out = chunk.n_bytes;
    /* the library shuffles bits with vector instructions */
    if (is_known(&chunk) && (chunk.flags & BLOSC_DOBITSHUFFLE) == 0)
        return decode_blocks(&chunk, state, NULL, out, n_out);
    return decode_by_library(&chunk, out, capacity);
}

static grv_status blosc_decode_part(const grvi_codec *codec, grvi_codec_state *state,
                                    const uint8_t *in, int64_t n_in, const grvi_part *part,
                                    uint8_t *out, int64_t n_decoded, int64_t *n_produced)
{
    (void)codec;
    blosc_chunk chunk = {.n_bytes = 0};
    GRV_TRY(open_chunk(in, n_in, &chunk));
    GRV_CHECK(chunk.n_bytes == n_decoded, GRV_E_FORMAT,
              "blosc: %lld bytes expected, the header says %lld", (long long)n_decoded,
              (long long)chunk.n_bytes);
    if (is_known(&chunk)) return decode_blocks(&chunk, state, part, out, n_produced);
    *n_produced = chunk.n_bytes;
    return decode_by_library(&chunk, out, n_decoded);
}

const grvi_codec_class grvi_codec_blosc = {
    "blosc", blosc_parse, blosc_bound, blosc_encode, blosc_decode, blosc_decode_part, NULL};
