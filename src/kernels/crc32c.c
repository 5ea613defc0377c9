/* CRC-32C by eight tables (slicing by 8; Kounavis and Berry, 2005), and the choice between that and the instruction. */
#include <pthread.h>
#include <string.h>

#include "kernels/crc32c.h"

static const uint32_t polynomial = 0x82f63b78U; /* reflected */
static uint32_t tables[8][256];                 /* constant after start-up */
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = (c >> 1) ^ ((c & 1U) != 0 ? polynomial : 0U);
        tables[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int k = 1; k < 8; k++)
            tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xffU];
    }
}

uint32_t grvi_crc32c_ref(const void *data, int64_t n)
{
    (void)pthread_once(&tables_once, fill_tables);
    const uint8_t *p = data;
    uint32_t crc = 0xffffffffU;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word = 0;
        memcpy(&word, p, 8);
        word ^= crc;
        crc = tables[7][word & 0xff] ^ tables[6][(word >> 8) & 0xff] ^
              tables[5][(word >> 16) & 0xff] ^ tables[4][(word >> 24) & 0xff] ^
              tables[3][(word >> 32) & 0xff] ^ tables[2][(word >> 40) & 0xff] ^
              tables[1][(word >> 48) & 0xff] ^ tables[0][word >> 56];
    }
    for (; n > 0; n--, p++) crc = (crc >> 8) ^ tables[0][(crc ^ *p) & 0xffU];
    return crc ^ 0xffffffffU;
}

grvi_crc32c_function *grvi_crc32c_for(grvi_isa isa)
{
    return isa == GRVI_ISA_REF ? grvi_crc32c_ref : grvi_crc32c_avx2;
}

uint32_t grvi_crc32c(const void *data, int64_t n)
{
    return grvi_crc32c_for(grvi_isa_chosen())(data, n);
}
