/* Blocks of known size, and whole gzip files: libdeflate (two to three times as fast as zlib when all input is there), LZ4, liblzma. */
#include <string.h>

#include <libdeflate.h>
#include <lz4.h>
#include <lzma.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/block_codec.h"

/* the best that the formats can do: deflate 258 bytes in 2 bits, LZ4 255 bytes in one, xz measured on zeros */
enum { ZLIB_RATIO = 1032, LZ4_RATIO = 255, XZ_RATIO = 1 << 14, SMALL_BYTES = 1 << 10 };
static const uint64_t xz_memory_limit = (uint64_t)1 << 28; /* preset 9 needs 65 MiB */

void grvi_block_state_fini(grvi_block_state *state)
{
    libdeflate_free_decompressor(state->inflater);
    libdeflate_free_compressor(state->deflater);
    *state = (grvi_block_state){0};
}

int64_t grvi_block_max_decoded(grvi_block_kind kind, int64_t n)
{
    static const int64_t ratio[] = {ZLIB_RATIO, LZ4_RATIO, XZ_RATIO};
    int64_t most = 0;
    return grvi_mul_i64(n, ratio[kind], &most) && most < INT64_MAX - SMALL_BYTES
               ? most + SMALL_BYTES
               : INT64_MAX;
}

static grv_status need_inflater(grvi_block_state *state)
{
    if (state->inflater == NULL) state->inflater = libdeflate_alloc_decompressor();
    GRV_CHECK(state->inflater != NULL, GRV_E_NOMEM, "zlib: no memory for a decompressor");
    return GRV_OK;
}

static bool decode_lz4(const uint8_t *in, int64_t n_in, uint8_t *out, int64_t n_out)
{
    return n_in <= INT32_MAX && n_out <= INT32_MAX &&
           LZ4_decompress_safe((const char *)in, (char *)out, (int)n_in, (int)n_out) == n_out;
}

static bool decode_xz(const uint8_t *in, int64_t n_in, uint8_t *out, int64_t n_out)
{
    uint64_t limit = xz_memory_limit;
    size_t at_in = 0, at_out = 0;
    return lzma_stream_buffer_decode(&limit, 0, NULL, in, &at_in, (size_t)n_in, out, &at_out,
                                     (size_t)n_out) == LZMA_OK &&
           at_out == (size_t)n_out;
}

grv_status grvi_block_decode(grvi_block_kind kind, grvi_block_state *state, const uint8_t *in,
                             int64_t n_in, uint8_t *out, int64_t n_out)
{
    static const char *const names[] = {"zlib", "lz4", "xz"};
    bool good = false;
    if (kind == GRVI_BLOCK_ZLIB) {
        GRV_TRY(need_inflater(state));
        good = libdeflate_zlib_decompress(state->inflater, in, (size_t)n_in, out, (size_t)n_out,
                                          NULL) == LIBDEFLATE_SUCCESS;
    } else {
        good = kind == GRVI_BLOCK_LZ4 ? decode_lz4(in, n_in, out, n_out)
                                      : decode_xz(in, n_in, out, n_out);
    }
    GRV_CHECK(good, GRV_E_FORMAT,
              "%s: a block of %lld bytes does not decode to the %lld bytes expected", names[kind],
              (long long)n_in, (long long)n_out);
    return GRV_OK;
}

int64_t grvi_block_bound(int64_t n)
{
    return (int64_t)libdeflate_zlib_compress_bound(NULL, (size_t)n);
}

grv_status grvi_block_encode(grvi_block_state *state, int level, const uint8_t *in, int64_t n_in,
                             uint8_t *out, int64_t *n_out)
{
    if (state->deflater == NULL || state->level != level) {
        libdeflate_free_compressor(state->deflater);
        state->deflater = libdeflate_alloc_compressor(level);
        state->level = level;
        GRV_CHECK(state->deflater != NULL, GRV_E_NOMEM,
                  "zlib: no memory for a compressor of level %d", level);
    }
    *n_out = (int64_t)libdeflate_zlib_compress(state->deflater, in, (size_t)n_in, out,
                                               (size_t)grvi_block_bound(n_in));
    GRV_CHECK(*n_out > 0, GRV_E_IO, "zlib: compressing %lld bytes failed", (long long)n_in);
    return GRV_OK;
}

/* A gzip file on its way. */
typedef struct gzip_unpacking {
    const char *path;
    const uint8_t *in;
    int64_t n_in, at; /* bytes read so far */
    uint8_t *out;
    int64_t n_out, capacity;
} gzip_unpacking;

/* The member at `at`; the output grows until it fits: a member's own statement of its size is not trusted. */
static grv_status unpack_member(gzip_unpacking *u, grvi_block_state *state)
{
    const int64_t n_left = u->n_in - u->at;
    const int64_t most = u->n_out + grvi_block_max_decoded(GRVI_BLOCK_ZLIB, n_left);
    for (;;) {
        size_t used = 0, made = 0;
        const enum libdeflate_result result = libdeflate_gzip_decompress_ex(
            state->inflater, u->in + u->at, (size_t)n_left, u->out + u->n_out,
            (size_t)(u->capacity - u->n_out), &used, &made);
        if (result == LIBDEFLATE_SUCCESS) {
            u->at += (int64_t)used;
            u->n_out += (int64_t)made;
            return GRV_OK;
        }
        GRV_CHECK(result == LIBDEFLATE_INSUFFICIENT_SPACE && u->capacity < most, GRV_E_FORMAT,
                  "%s: broken gzip member at byte %lld of %lld", u->path, (long long)u->at,
                  (long long)u->n_in);
        u->capacity = grvi_min_i64(2 * u->capacity, most);
        GRV_TRY(GRVI_REALLOC(&u->out, u->capacity));
    }
}

grv_status grvi_gzip_unpack(const char *path, const uint8_t *in, int64_t n_in, uint8_t **out,
                            int64_t *n_out)
{
    grv_status status = GRV_OK;
    grvi_block_state state = {0};
    gzip_unpacking u = {.path = path, .in = in, .n_in = n_in};
    uint32_t claimed = 0;
    *out = NULL;
    *n_out = 0;
    if (n_in > 4) memcpy(&claimed, in + n_in - 4, sizeof claimed);
    u.capacity = grvi_min_i64((int64_t)claimed + 1, grvi_block_max_decoded(GRVI_BLOCK_ZLIB, n_in));
    GRV_TRY_GOTO(need_inflater(&state));
    GRV_TRY_GOTO(GRVI_ALLOC(&u.out, u.capacity));
    do {
        GRV_TRY_GOTO(unpack_member(&u, &state));
        /* what follows the last member (padding of tapes) is no part of the file */
    } while (n_in - u.at >= 2 && in[u.at] == 0x1f && in[u.at + 1] == 0x8b);
    *out = u.out;
    *n_out = u.n_out;
    u.out = NULL;
done:
    grvi_block_state_fini(&state);
    grv_free(u.out);
    return status;
}
