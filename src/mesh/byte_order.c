/* Byte swaps and widening: simple loops that compilers vectorise. */
#include <string.h>

#include "core/check.h"
#include "mesh/byte_order.h"

void grvi_swap_words(void *data, int64_t n, int64_t word_bytes)
{
    if (word_bytes == 2) {
        uint16_t *const w = data;
        for (int64_t i = 0; i < n; i++) w[i] = __builtin_bswap16(w[i]);
    } else if (word_bytes == 4) {
        uint32_t *const w = data;
        for (int64_t i = 0; i < n; i++) w[i] = __builtin_bswap32(w[i]);
    } else if (word_bytes == 8) {
        uint64_t *const w = data;
        for (int64_t i = 0; i < n; i++) w[i] = __builtin_bswap64(w[i]);
    }
}

enum { STRIP = 1024 };

/* n words to 64 bits; nothing overlaps */
static void widen(const void *in, int64_t n, int64_t word_bytes, int is_signed, int64_t *out)
{
#define GRVI_WIDEN(type)                                            \
    do {                                                            \
        const type *const words = in;                               \
        for (int64_t i = 0; i < n; i++) out[i] = (int64_t)words[i]; \
    } while (0)
    switch (is_signed ? -word_bytes : word_bytes) {
    case -1: GRVI_WIDEN(int8_t); break;
    case -2: GRVI_WIDEN(int16_t); break;
    case -4: GRVI_WIDEN(int32_t); break;
    case 1: GRVI_WIDEN(uint8_t); break;
    case 2: GRVI_WIDEN(uint16_t); break;
    case 4: GRVI_WIDEN(uint32_t); break;
    default: GRVI_WIDEN(int64_t); break;
    }
#undef GRVI_WIDEN
}

void grvi_widen_integers(int64_t *room, int64_t n, int64_t word_bytes, int is_signed)
{
    int64_t strip[STRIP];
    const uint8_t *const narrow = (const uint8_t *)room + n * (8 - word_bytes);
    if (word_bytes == 8) return;
    /* word i stands at n * (8 - w) + i * w >= 8 * i: results never run into words that are still to come */
    for (int64_t first = 0; first < n; first += STRIP) {
        const int64_t k = grvi_min_i64(STRIP, n - first);
        memcpy(strip, narrow + first * word_bytes, (size_t)(k * word_bytes));
        widen(strip, k, word_bytes, is_signed, room + first);
    }
}
