/* `crc32c`: the data, then their CRC-32C in four bytes, little-endian. */
#include <string.h>

#include "store/codec.h"
#include "kernels/crc32c.h"

enum { CRC_BYTES = 4 };

static grv_status crc32c_parse(const grvi_json *configuration, grvi_codec *codec)
{
    (void)configuration;
    (void)codec;
    return GRV_OK;
}

static int64_t crc32c_bound(int64_t n)
{
    return n + CRC_BYTES;
}

static grv_status crc32c_encode(const grvi_codec *codec, grvi_codec_state *state, const uint8_t *in,
                                int64_t n_in, uint8_t *out, int64_t capacity, int64_t *n_out)
{
    (void)codec;
    (void)state;
    GRV_ASSERT(capacity >= n_in + CRC_BYTES);
    (void)capacity;
    const uint32_t crc = grvi_crc32c(in, n_in);
    memcpy(out, in, (size_t)n_in);
    memcpy(out + n_in, &crc, CRC_BYTES);
    *n_out = n_in + CRC_BYTES;
    return GRV_OK;
}

static grv_status crc32c_check(const uint8_t *in, int64_t n_in, int64_t *n_data)
{
    uint32_t stored = 0;
    GRV_CHECK(n_in >= CRC_BYTES, GRV_E_FORMAT, "crc32c: at least 4 bytes expected, %lld found",
              (long long)n_in);
    memcpy(&stored, in + n_in - CRC_BYTES, CRC_BYTES);
    const uint32_t crc = grvi_crc32c(in, n_in - CRC_BYTES);
    GRV_CHECK(crc == stored, GRV_E_FORMAT,
              "crc32c: the %lld bytes sum to %08x, their checksum says %08x",
              (long long)(n_in - CRC_BYTES), crc, stored);
    *n_data = n_in - CRC_BYTES;
    return GRV_OK;
}

const grvi_codec_class grvi_codec_crc32c = {"crc32c",      crc32c_parse, crc32c_bound,
                                            crc32c_encode, NULL,         crc32c_check};
