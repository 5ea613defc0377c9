/* Transpositions of bytes. The usual sizes of elements have loops of their own, in which the compiler sees the stride. */
#include "store/byte_shuffle.h"

static inline void shuffle_loop(int64_t item_bytes, int64_t n, const uint8_t *restrict in,
                                uint8_t *restrict out)
{
    for (int64_t j = 0; j < item_bytes; j++) {
        for (int64_t i = 0; i < n; i++) out[j * n + i] = in[i * item_bytes + j];
    }
}

static inline void unshuffle_loop(int64_t item_bytes, int64_t n, const uint8_t *restrict in,
                                  uint8_t *restrict out)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < item_bytes; j++) out[i * item_bytes + j] = in[j * n + i];
    }
}

void grvi_byte_shuffle(int64_t item_bytes, int64_t n, const uint8_t *in, uint8_t *out)
{
    switch (item_bytes) {
    case 2: shuffle_loop(2, n, in, out); break;
    case 4: shuffle_loop(4, n, in, out); break;
    case 8: shuffle_loop(8, n, in, out); break;
    default: shuffle_loop(item_bytes, n, in, out); break;
    }
}

void grvi_byte_unshuffle(int64_t item_bytes, int64_t n, const uint8_t *in, uint8_t *out)
{
    switch (item_bytes) {
    case 2: unshuffle_loop(2, n, in, out); break;
    case 4: unshuffle_loop(4, n, in, out); break;
    case 8: unshuffle_loop(8, n, in, out); break;
    default: unshuffle_loop(item_bytes, n, in, out); break;
    }
}

/* Transposes a matrix of 8 x 8 bits: rows are bytes, lowest first (Hacker's Delight, 7-3). */
static uint64_t transpose_bits(uint64_t x)
{
    uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aaU;
    x = x ^ t ^ (t << 7);
    t = (x ^ (x >> 14)) & 0x0000cccc0000ccccU;
    x = x ^ t ^ (t << 14);
    t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0U;
    return x ^ t ^ (t << 28);
}

void grvi_bit_unshuffle(int64_t item_bytes, int64_t n, const uint8_t *in, uint8_t *out)
{
    const int64_t row_bytes = n / 8;
    for (int64_t j = 0; j < item_bytes; j++) {
        for (int64_t g = 0; g < row_bytes; g++) {
            uint64_t bits = 0;
            for (int64_t b = 0; b < 8; b++)
                bits |= (uint64_t)in[(8 * j + b) * row_bytes + g] << (8 * b);
            bits = transpose_bits(bits);
            for (int64_t i = 0; i < 8; i++)
                out[(8 * g + i) * item_bytes + j] = (uint8_t)(bits >> (8 * i));
        }
    }
}
