/* CRC-32C by the instruction of SSE 4.2, which every processor with AVX2 has: eight bytes in three cycles. */
#include "kernels/crc32c.h"

#ifdef __SSE4_2__
#include <nmmintrin.h>
#include <string.h>

uint32_t grvi_crc32c_avx2(const void *data, int64_t n)
{
    const uint8_t *p = data;
    uint64_t crc = 0xffffffffU;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word = 0;
        memcpy(&word, p, 8);
        crc = _mm_crc32_u64(crc, word);
    }
    uint32_t narrow = (uint32_t)crc;
    for (; n > 0; n--, p++) narrow = _mm_crc32_u8(narrow, *p);
    return narrow ^ 0xffffffffU;
}
#else
uint32_t grvi_crc32c_avx2(const void *data, int64_t n)
{
    return grvi_crc32c_ref(data, n);
}
#endif
