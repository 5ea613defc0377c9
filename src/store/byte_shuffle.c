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
