/* Checksums in four bytes, little-endian, after the data or before them: `crc32c` {}, and numcodecs' `crc32`, `adler32` {location}
 * and `fletcher32` {}. */
#include <string.h>

#include <zlib.h>

#include "kernels/crc32c.h"
#include "store/codec.h"

enum { SUM_BYTES = 4 };

/* The sum of HDF5's filter: 16-bit words, most significant byte first, in two running sums modulo 65535. */
static uint32_t fletcher32(const uint8_t *data, int64_t n)
{
    uint32_t low = 0, high = 0;
    for (int64_t i = 0; i < n / 2;) {
        /* so many words cannot overflow the sums */
        const int64_t end = grvi_min_i64(i + 360, n / 2);
        for (; i < end; i++) {
            low += (uint32_t)data[2 * i] << 8 | data[2 * i + 1];
            high += low;
        }
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    if (n % 2 != 0) {
        low += (uint32_t)data[n - 1] << 8;
        high += low;
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    return high << 16 | low;
}

static uint32_t sum_of(const grvi_codec *codec, const uint8_t *data, int64_t n)
{
    if (codec->class == &grvi_codec_crc32) return (uint32_t)crc32_z(0, data, (size_t)n);
    if (codec->class == &grvi_codec_adler32) return (uint32_t)adler32_z(1, data, (size_t)n);
    if (codec->class == &grvi_codec_fletcher32) return fletcher32(data, n);
    GRV_ASSERT(codec->class == &grvi_codec_crc32c);
    return grvi_crc32c(data, n);
}

static grv_status checksum_parse(const grvi_json *configuration, grvi_codec *codec)
{
    const grvi_json *const node = grvi_json_get(configuration, "location");
    const char *const location = grvi_json_as_string(node);
    const bool may_be_at_start =
        codec->class == &grvi_codec_crc32 || codec->class == &grvi_codec_adler32;
    codec->at_start = may_be_at_start; /* numcodecs' default */
    if (node == NULL) return GRV_OK;
    GRV_CHECK(location != NULL && (strcmp(location, "end") == 0 || strcmp(location, "start") == 0),
              GRV_E_FORMAT, "codec '%s': location must be start or end", codec->class->name);
    codec->at_start = location[0] == 's';
    return GRV_OK;
}

static int64_t checksum_bound(int64_t n)
{
    return n + SUM_BYTES;
}

static grv_status checksum_encode(const grvi_codec *codec, grvi_codec_state *state,
                                  const uint8_t *in, int64_t n_in, uint8_t *out, int64_t capacity,
                                  int64_t *n_out)
{
    (void)state;
    GRV_ASSERT(capacity >= n_in + SUM_BYTES);
    (void)capacity;
    const uint32_t sum = sum_of(codec, in, n_in);
    memcpy(out + (codec->at_start ? SUM_BYTES : 0), in, (size_t)n_in);
    memcpy(out + (codec->at_start ? 0 : n_in), &sum, SUM_BYTES);
    *n_out = n_in + SUM_BYTES;
    return GRV_OK;
}

static grv_status checksum_check(const grvi_codec *codec, const uint8_t *in, int64_t n_in,
                                 const uint8_t **data, int64_t *n_data)
{
    uint32_t stored = 0;
    const char *const name = codec->class->name;
    const int64_t n = n_in - SUM_BYTES;
    GRV_CHECK(n >= 0, GRV_E_FORMAT, "%s: at least 4 bytes expected, %lld found", name,
              (long long)n_in);
    memcpy(&stored, in + (codec->at_start ? 0 : n), SUM_BYTES);
    *data = in + (codec->at_start ? SUM_BYTES : 0);
    const uint32_t sum = sum_of(codec, *data, n);
    GRV_CHECK(sum == stored, GRV_E_FORMAT,
              "%s: the %lld bytes sum to %08x, their checksum says %08x", name, (long long)n, sum,
              stored);
    *n_data = n;
    return GRV_OK;
}

const grvi_codec_class grvi_codec_crc32c = {
    "crc32c", checksum_parse, checksum_bound, checksum_encode, NULL, NULL, checksum_check};
const grvi_codec_class grvi_codec_crc32 = {
    "numcodecs.crc32", checksum_parse, checksum_bound, checksum_encode, NULL, NULL, checksum_check};
const grvi_codec_class grvi_codec_adler32 = {"numcodecs.adler32", checksum_parse, checksum_bound,
                                             checksum_encode,     NULL,           NULL,
                                             checksum_check};
const grvi_codec_class grvi_codec_fletcher32 = {
    "numcodecs.fletcher32", checksum_parse, checksum_bound, checksum_encode, NULL, NULL,
    checksum_check};
