/* Base64 (RFC 4648). Four table look-ups a group: 1 to 2 GB/s, which is more than what reads the result does. */
#include <string.h>

#include "core/check.h"
#include "mesh/base64.h"

enum { BAD = 0xff };

#define ROW_BAD BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD
static const uint8_t values[256] = {
    ROW_BAD, ROW_BAD, BAD, BAD, BAD, BAD, BAD, BAD,     BAD,     BAD,     BAD,     BAD,     BAD,
    62,      BAD,     BAD, BAD, 63,  52,  53,  54,      55,      56,      57,      58,      59,
    60,      61,      BAD, BAD, BAD, BAD, BAD, BAD,     BAD,     0,       1,       2,       3,
    4,       5,       6,   7,   8,   9,   10,  11,      12,      13,      14,      15,      16,
    17,      18,      19,  20,  21,  22,  23,  24,      25,      BAD,     BAD,     BAD,     BAD,
    BAD,     BAD,     26,  27,  28,  29,  30,  31,      32,      33,      34,      35,      36,
    37,      38,      39,  40,  41,  42,  43,  44,      45,      46,      47,      48,      49,
    50,      51,      BAD, BAD, BAD, BAD, BAD, ROW_BAD, ROW_BAD, ROW_BAD, ROW_BAD, ROW_BAD, ROW_BAD,
    ROW_BAD, ROW_BAD};
static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* False if one of the four is not of the alphabet. */
static inline bool decode_group(const uint8_t *text, uint32_t *bits)
{
    const uint32_t a = values[text[0]], b = values[text[1]], c = values[text[2]],
                   d = values[text[3]];
    *bits = a << 18 | b << 12 | c << 6 | d;
    return ((a | b | c | d) & 0x80) == 0;
}

static inline void put(uint32_t bits, uint8_t *out)
{
    out[0] = (uint8_t)(bits >> 16);
    out[1] = (uint8_t)(bits >> 8);
    out[2] = (uint8_t)bits;
}

bool grvi_base64_groups(const uint8_t *text, int64_t n_groups, uint8_t *out)
{
    for (int64_t i = 0; i < n_groups; i++) {
        uint32_t bits = 0;
        if (!decode_group(text + 4 * i, &bits)) return false;
        put(bits, out + 3 * i);
    }
    return true;
}

/* The last group, which may be padded; returns its bytes, 0 if it is none. */
static int decode_last(const uint8_t *text, uint8_t out[3])
{
    uint8_t group[4];
    uint32_t bits = 0;
    memcpy(group, text, 4);
    const int n = group[2] == '=' && group[3] == '=' ? 1 : group[3] == '=' ? 2 : 3;
    for (int i = n + 1; i < 4; i++) group[i] = 'A';
    if (!decode_group(group, &bits)) return 0;
    put(bits, out);
    return n;
}

bool grvi_base64_range(const uint8_t *text, int64_t n_text, int64_t first, int64_t n, uint8_t *out)
{
    if (n == 0) return true;
    const int64_t skip = first % 3, group = first / 3;
    if (4 * ((first + n + 2) / 3) > n_text) return false;
    text += 4 * group;
    uint8_t bytes[3];
    if (skip > 0) {
        const int64_t k = grvi_min_i64(3 - skip, n);
        if (decode_last(text, bytes) < skip + k) return false;
        memcpy(out, bytes + skip, (size_t)k);
        text += 4;
        out += k;
        n -= k;
    }
    if (!grvi_base64_groups(text, n / 3, out)) return false;
    const int64_t rest = n % 3, done = n - rest;
    if (rest == 0) return true;
    if (decode_last(text + done / 3 * 4, bytes) < rest) return false;
    memcpy(out + done, bytes, (size_t)rest);
    return true;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Next group, over white space; false at the end or at what is no group. */
static bool next_group(grvi_base64_stream *s)
{
    uint8_t group[4], bytes[3];
    int n = 0;
    const uint8_t *p = s->at;
    for (; p < s->end && n < 4; p++)
        if (!is_space(*p)) group[n++] = *p;
    if (n < 4) return false;
    const int k = decode_last(group, bytes);
    if (k == 0) return false;
    memcpy(s->pending + 3 - k, bytes, (size_t)k);
    s->n_pending = k;
    s->at = p;
    return true;
}

int64_t grvi_base64_read(grvi_base64_stream *s, int64_t n, uint8_t *out)
{
    int64_t done = 0;
    while (done < n) {
        uint32_t bits = 0;
        /* the fast way while nothing is in it */
        while (s->n_pending == 0 && n - done >= 3 && s->end - s->at >= 4 &&
               decode_group(s->at, &bits)) {
            put(bits, out + done);
            s->at += 4;
            done += 3;
        }
        if (done == n || (s->n_pending == 0 && !next_group(s))) break;
        const int64_t k = grvi_min_i64(s->n_pending, n - done);
        memcpy(out + done, s->pending + 3 - s->n_pending, (size_t)k);
        s->n_pending -= (int)k;
        done += k;
    }
    return done;
}

void grvi_base64_encode(const uint8_t *in, int64_t n, uint8_t *out)
{
    for (; n > 0; n -= 3, in += 3, out += 4) {
        const uint32_t bits = (uint32_t)in[0] << 16 | (n > 1 ? (uint32_t)in[1] << 8 : 0) |
                              (n > 2 ? (uint32_t)in[2] : 0);
        out[0] = (uint8_t)alphabet[bits >> 18];
        out[1] = (uint8_t)alphabet[bits >> 12 & 63];
        out[2] = n > 1 ? (uint8_t)alphabet[bits >> 6 & 63] : '=';
        out[3] = n > 2 ? (uint8_t)alphabet[bits & 63] : '=';
    }
}
