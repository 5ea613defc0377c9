/* Fill values between JSON and the bytes of an element as it lies in memory.
 * Version 3: numbers; "NaN", "Infinity", "-Infinity" or "0x<bits>" for floats; pairs for complex; lists of bytes for raw; base64 for
 * fixed-length bytes; text for UCS-4. Version 2: the same, but base64 for raw too, and null for "none", which reads as zero. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/store_type.h"

static bool is_float(grv_store_type type)
{
    return type == GRV_STORE_F16 || type == GRV_STORE_BF16 || type == GRV_STORE_F32 ||
           type == GRV_STORE_F64;
}
static bool is_complex(grv_store_type type)
{
    return type == GRV_STORE_C64 || type == GRV_STORE_C128;
}
static bool is_signed(grv_store_type type)
{
    return type >= GRV_STORE_I8 && type <= GRV_STORE_I64;
}
/* type of the two parts of a complex number */
static grv_store_type part_type(grv_store_type type)
{
    return type == GRV_STORE_C64 ? GRV_STORE_F32 : GRV_STORE_F64;
}

static uint64_t float_bits(grv_store_type type, double value)
{
    uint64_t bits = 0;
    if (type == GRV_STORE_F16) return grvi_half_from_double(value);
    if (type == GRV_STORE_BF16) return grvi_bfloat_from_double(value);
    if (type == GRV_STORE_F32) {
        const float narrow = (float)value;
        memcpy(&bits, &narrow, sizeof narrow);
    } else {
        memcpy(&bits, &value, sizeof value);
    }
    return bits;
}

static double float_value(grv_store_type type, uint64_t bits)
{
    float narrow = 0;
    double value = 0;
    if (type == GRV_STORE_F16) return grvi_half_to_double((uint16_t)bits);
    if (type == GRV_STORE_BF16) return grvi_bfloat_to_double((uint16_t)bits);
    if (type == GRV_STORE_F32) {
        memcpy(&narrow, &bits, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* the NaN that the string "NaN" stands for: sign 0, top mantissa bit 1, the rest 0 */
static uint64_t canonical_nan(grv_store_type type)
{
    return type == GRV_STORE_F16    ? 0x7e00U
           : type == GRV_STORE_BF16 ? 0x7fc0U
           : type == GRV_STORE_F32  ? 0x7fc00000U
                                    : 0x7ff8000000000000U;
}

/* "0x" and exactly two digits a byte: the bit pattern, most significant first, whatever the byte order of the file */
static bool hex_bits(const char *text, int64_t n_bytes, uint64_t *fill)
{
    if (text[0] != '0' || text[1] != 'x' || (int64_t)strlen(text) != 2 + 2 * n_bytes) return false;
    for (const char *p = text + 2; *p != '\0'; p++) {
        if (!isxdigit((unsigned char)*p)) return false;
    }
    *fill = strtoull(text + 2, NULL, 16);
    return true;
}

static bool float_from_json(const grvi_json *node, grv_store_type type, uint64_t *fill)
{
    double value = 0;
    const char *const text = grvi_json_as_string(node);
    if (node == NULL) {
        *fill = canonical_nan(type);
        return true;
    }
    if (text != NULL) {
        char *end = NULL;
        if (hex_bits(text, grv_store_type_bytes(type), fill)) return true;
        if (strcmp(text, "Infinity") == 0)
            value = (double)INFINITY;
        else if (strcmp(text, "-Infinity") == 0)
            value = -(double)INFINITY;
        else if (strcmp(text, "NaN") == 0)
            value = (double)NAN;
        else if (strspn(text, "+-.0123456789eE") != strlen(text) || text[0] == '\0')
            return false;
        else {
            value = strtod(text, &end);
            if (*end != '\0') return false;
        }
    } else if (!grvi_json_as_double(node, &value)) {
        return false;
    }
    *fill = isnan(value) ? canonical_nan(type) : float_bits(type, value);
    return true;
}

static bool complex_from_json(const grvi_json *node, grv_store_type type, uint8_t *fill)
{
    const grv_store_type part = part_type(type);
    const bool is_pair = grvi_json_length(node) == 2;
    uint64_t bits[2] = {0, 0};
    /* a single number is a real one */
    if (!is_pair && grvi_json_kind_of(node) == GRVI_JSON_ARRAY) return false;
    if (!float_from_json(is_pair ? grvi_json_at(node, 0) : node, part, &bits[0])) return false;
    if (is_pair && !float_from_json(grvi_json_at(node, 1), part, &bits[1])) return false;
    const size_t n = (size_t)grv_store_type_bytes(part);
    for (size_t i = 0; i < 2; i++) memcpy(fill + i * n, &bits[i], n);
    return true;
}

static bool integer_from_text(const char *text, bool with_sign, int64_t *value_signed,
                              uint64_t *value_unsigned)
{
    char *end = NULL;
    const size_t n_sign = text[0] == '-';
    size_t n = n_sign + strspn(text + n_sign, "0123456789");
    if (n == n_sign) return false;
    errno = 0;
    if (with_sign)
        *value_signed = strtoll(text, &end, 10);
    else if (n_sign != 0)
        return false;
    else
        *value_unsigned = strtoull(text, &end, 10);
    if (text[n] == '.') n += 1 + strspn(text + n + 1, "0");
    return errno == 0 && text[n] == '\0';
}

static bool integer_from_json(const grvi_json *node, grv_store_type type, uint64_t *fill)
{
    const int64_t n_bits = 8 * grv_store_type_bytes(type);
    const char *const text = grvi_json_as_string(node);
    const bool with_sign = is_signed(type);
    int64_t s = 0;
    uint64_t u = 0;
    double d = 0;
    if (text != NULL) {
        if (!integer_from_text(text, with_sign, &s, &u)) return false;
    } else if (grvi_json_kind_of(node) == GRVI_JSON_NUMBER) {
        if (!grvi_json_as_double(node, &d) || !(fabs(d) <= 9007199254740992.0) || floor(d) < d)
            return false;
        if (d < 0 && !with_sign) return false;
        s = (int64_t)d;
        u = (uint64_t)s;
    } else if (with_sign ? !grvi_json_as_i64(node, &s) : !grvi_json_as_u64(node, &u)) {
        return false;
    }
    if (with_sign) {
        const int64_t limit = (int64_t)(((uint64_t)1 << (n_bits - 1)) - 1);
        *fill = (uint64_t)s & (UINT64_MAX >> (64 - n_bits));
        return s >= -limit - 1 && s <= limit;
    }
    *fill = u;
    return u <= UINT64_MAX >> (64 - n_bits);
}

/* ---- fixed strings and raw bytes ---- */

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* At most `capacity` bytes; the rest of out is left as it is. */
static bool base64_decode(const char *text, uint8_t *out, int64_t capacity)
{
    const size_t n_text = strlen(text), n_digits = strcspn(text, "=");
    int64_t n = 0;
    unsigned word = 0;
    int n_bits = 0;
    if (n_text % 4 != 0 || n_text - n_digits > 2 ||
        strspn(text + n_digits, "=") != n_text - n_digits)
        return false;
    for (size_t i = 0; i < n_digits; i++) {
        const char *const digit = strchr(base64_digits, text[i]);
        if (digit == NULL) return false;
        word = (word << 6 | (unsigned)(digit - base64_digits)) & 0xffffU;
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        if (n == capacity) return false;
        out[n++] = (uint8_t)(word >> n_bits);
    }
    return true;
}

static grv_status base64_write(grvi_json_writer *w, const uint8_t *data, int64_t n)
{
    char *text = NULL;
    GRV_TRY(GRVI_ALLOC(&text, 4 * grvi_ceil_div(n, 3) + 1));
    char *p = text;
    for (int64_t i = 0; i < n; i += 3) {
        const int64_t left = n - i;
        const unsigned word = (unsigned)data[i] << 16 |
                              (left > 1 ? (unsigned)data[i + 1] << 8 : 0) |
                              (left > 2 ? data[i + 2] : 0U);
        *p++ = base64_digits[word >> 18];
        *p++ = base64_digits[word >> 12 & 63];
        *p++ = left > 1 ? base64_digits[word >> 6 & 63] : '=';
        *p++ = left > 2 ? base64_digits[word & 63] : '=';
    }
    *p = '\0';
    grvi_json_string(w, text);
    grv_free(text);
    return GRV_OK;
}

static bool byte_list(const grvi_json *node, uint8_t *out, int64_t n)
{
    if (grvi_json_kind_of(node) != GRVI_JSON_ARRAY || grvi_json_length(node) != n) return false;
    for (int64_t i = 0; i < n; i++) {
        int64_t value = 0;
        if (!grvi_json_as_i64(grvi_json_at(node, i), &value) || value < 0 || value > 255)
            return false;
        out[i] = (uint8_t)value;
    }
    return true;
}

/* Next code point of well-formed UTF-8 (surrogates, overlong forms and values above 0x10ffff are none); -1 if it is not. */
static int64_t next_code_point(const uint8_t **text)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const uint8_t *p = *text;
    const int n_more = p[0] < 0x80   ? 0
                       : p[0] < 0xc0 ? -1
                       : p[0] < 0xe0 ? 1
                       : p[0] < 0xf0 ? 2
                       : p[0] < 0xf8 ? 3
                                     : -1;
    if (n_more < 0) return -1;
    uint32_t value = n_more == 0 ? p[0] : p[0] & (0x3fU >> n_more);
    for (int i = 1; i <= n_more; i++) {
        if ((p[i] & 0xc0) != 0x80) return -1;
        value = value << 6 | (p[i] & 0x3fU);
    }
    *text = p + n_more + 1;
    const bool is_surrogate = value >= 0xd800 && value < 0xe000;
    return value < least[n_more] || value > 0x10ffff || is_surrogate ? -1 : (int64_t)value;
}

static bool ucs4_from_text(const char *text, uint8_t *out, int64_t n_bytes)
{
    const uint8_t *p = (const uint8_t *)text;
    for (int64_t at = 0; *p != '\0'; at += 4) {
        const int64_t point = next_code_point(&p);
        if (point < 0 || at + 4 > n_bytes) return false;
        const uint32_t word = (uint32_t)point;
        memcpy(out + at, &word, sizeof word);
    }
    return true;
}

static grv_status ucs4_to_text(const uint8_t *fill, int64_t n_bytes, grvi_text *text)
{
    for (int64_t at = 0; at < n_bytes; at += 4) {
        uint32_t c = 0;
        memcpy(&c, fill + at, sizeof c);
        if (c == 0) break;
        GRV_CHECK(c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000), GRV_E_ARG,
                  "the fill value of a fixed_length_utf32 is no text: character 0x%x", c);
        const char bytes[4] = {(char)(c < 0x80      ? c
                                      : c < 0x800   ? 0xc0U | c >> 6
                                      : c < 0x10000 ? 0xe0U | c >> 12
                                                    : 0xf0U | c >> 18),
                               (char)(0x80U | (c < 0x800     ? c & 63
                                               : c < 0x10000 ? c >> 6 & 63
                                                             : c >> 12 & 63)),
                               (char)(0x80U | (c < 0x10000 ? c & 63 : c >> 6 & 63)),
                               (char)(0x80U | (c & 63))};
        grvi_text_append_n(text, bytes, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
    }
    return grvi_text_status(text);
}

static bool bytes_from_json(const grvi_json *node, grvi_item item, uint8_t *fill)
{
    const char *const text = grvi_json_as_string(node);
    int64_t zero = 1;
    if (text != NULL)
        return item.type == GRV_STORE_UCS4 ? ucs4_from_text(text, fill, item.n_bytes)
                                           : base64_decode(text, fill, item.n_bytes);
    /* "none", and the 0 that some writers give whatever the type */
    if (node == NULL || (grvi_json_as_i64(node, &zero) && zero == 0)) return true;
    return item.type != GRV_STORE_UCS4 && byte_list(node, fill, item.n_bytes);
}

static bool bool_from_json(const grvi_json *node, uint64_t *fill)
{
    bool truth = false;
    if (grvi_json_as_u64(node, fill)) return *fill <= 1;
    if (!grvi_json_as_bool(node, &truth)) return false;
    *fill = truth;
    return true;
}

grv_status grvi_fill_from_json(const grvi_json *node, grvi_item item, const char *what,
                               uint8_t *fill)
{
    bool good = false;
    uint64_t bits = 0;
    memset(fill, 0, (size_t)item.n_bytes);
    if (grv_store_type_bytes(item.type) == 0) {
        good = bytes_from_json(node, item, fill);
    } else if (is_complex(item.type)) {
        good = complex_from_json(node, item.type, fill);
    } else {
        if (is_float(item.type)) {
            good = float_from_json(node, item.type, &bits);
        } else if (item.type == GRV_STORE_BOOL) {
            good = bool_from_json(node, &bits);
        } else {
            good = integer_from_json(node, item.type, &bits);
        }
        memcpy(fill, &bits, (size_t)item.n_bytes);
    }
    if (good) return GRV_OK;
    grvi_text shown = {0};
    grvi_json_print(node, &shown);
    const grv_status status = grvi_fail(GRV_E_FORMAT, __FILE__, __LINE__, __func__,
                                        "'%s': fill_value of a %s expected, %.200s found", what,
                                        grv_store_type_name(item.type), grvi_text_get(&shown));
    grvi_text_fini(&shown);
    return status;
}

static void float_to_json(grvi_json_writer *w, grv_store_type type, uint64_t bits)
{
    const double value = float_value(type, bits);
    char text[24];
    (void)snprintf(text, sizeof text, "0x%0*llx", (int)(2 * grv_store_type_bytes(type)),
                   (unsigned long long)bits);
    if (isnan(value) && bits != canonical_nan(type))
        grvi_json_string(w, text);
    else
        grvi_json_double(w, value);
}

static void complex_to_json(grvi_json_writer *w, grv_store_type type, const uint8_t *fill)
{
    const size_t n = (size_t)grv_store_type_bytes(part_type(type));
    grvi_json_begin_array(w);
    for (size_t i = 0; i < 2; i++) {
        uint64_t bits = 0;
        memcpy(&bits, fill + i * n, n);
        float_to_json(w, part_type(type), bits);
    }
    grvi_json_end_array(w);
}

static grv_status bytes_to_json(grvi_json_writer *w, grvi_item item, const uint8_t *fill,
                                int zarr_format)
{
    if (item.type == GRV_STORE_UCS4) {
        grvi_text text = {0};
        const grv_status status = ucs4_to_text(fill, item.n_bytes, &text);
        if (status == GRV_OK) grvi_json_string(w, grvi_text_get(&text));
        grvi_text_fini(&text);
        return status;
    }
    if (item.type == GRV_STORE_BYTES || zarr_format == 2)
        return base64_write(w, fill, item.n_bytes);
    grvi_json_begin_array(w);
    for (int64_t i = 0; i < item.n_bytes; i++) grvi_json_i64(w, fill[i]);
    grvi_json_end_array(w);
    return GRV_OK;
}

grv_status grvi_fill_to_json(grvi_json_writer *w, grvi_item item, const uint8_t *fill,
                             int zarr_format)
{
    uint64_t bits = 0;
    if (grv_store_type_bytes(item.type) == 0) return bytes_to_json(w, item, fill, zarr_format);
    if (is_complex(item.type)) {
        complex_to_json(w, item.type, fill);
        return GRV_OK;
    }
    memcpy(&bits, fill, (size_t)item.n_bytes);
    if (item.type == GRV_STORE_BOOL) {
        grvi_json_bool(w, bits != 0);
    } else if (is_float(item.type)) {
        float_to_json(w, item.type, bits);
    } else if (is_signed(item.type)) {
        const int64_t unused = 64 - 8 * item.n_bytes;
        grvi_json_i64(w, (int64_t)(bits << unused) >> unused);
    } else {
        grvi_json_u64(w, bits);
    }
    return GRV_OK;
}

const uint8_t *grvi_fill_of(const grv_array_desc *desc)
{
    return desc->fill_bytes != NULL ? desc->fill_bytes : (const uint8_t *)&desc->fill;
}
