/* Element types and fill values. A fill value is kept as its bit pattern in the low bytes of a word, as it lies in memory. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_type.h"

typedef struct type_info {
    const char *name;
    int64_t n_bytes;
} type_info;

static const type_info types[] = {
#define TYPE_INFO(name, text, bytes) [name] = {text, bytes},
    GRV_STORE_TYPE_LIST(TYPE_INFO)
#undef TYPE_INFO
};
enum { N_TYPES = sizeof types / sizeof types[0] };

const char *grv_store_type_name(grv_store_type type)
{
    return (int)type >= 0 && (int)type < N_TYPES ? types[type].name : "unknown";
}
int64_t grv_store_type_bytes(grv_store_type type)
{
    return (int)type >= 0 && (int)type < N_TYPES ? types[type].n_bytes : 0;
}

bool grvi_store_type_from_name(const char *name, grv_store_type *type)
{
    for (int i = 0; i < N_TYPES; i++) {
        if (strcmp(types[i].name, name) != 0) continue;
        *type = (grv_store_type)i;
        return true;
    }
    return false;
}

static bool is_float(grv_store_type type)
{
    return type == GRV_STORE_F16 || type == GRV_STORE_F32 || type == GRV_STORE_F64;
}
static bool is_signed(grv_store_type type)
{
    return type >= GRV_STORE_I8 && type <= GRV_STORE_I64;
}

uint16_t grvi_half_from_double(double value)
{
    const unsigned sign = signbit(value) ? 0x8000U : 0U;
    const double a = fabs(value);
    if (isnan(value)) return 0x7e00;
    if (!(a > 0)) return (uint16_t)sign;
    if (a >= 65520.0)
        return (uint16_t)(sign | 0x7c00U); /* half way above the largest finite value */
    int exponent = 0;
    (void)frexp(a, &exponent);
    exponent = exponent < -13 ? -13 : exponent; /* below 2^-14: subnormal, one spacing */
    /* in units of the last place; rint rounds to even, and a carry moves into the exponent as it should */
    const unsigned units = (unsigned)rint(ldexp(a, 11 - exponent));
    const unsigned base = (unsigned)(exponent + 13) << 10;
    return (uint16_t)(sign | (base + units));
}

double grvi_half_to_double(uint16_t bits)
{
    const int exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
    double value = 0;
    if (exponent == 0x1f)
        value = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, -24);
    else
        value = ldexp(mantissa + 1024, exponent - 25);
    return (bits & 0x8000) != 0 ? -value : value;
}

static uint64_t float_bits(grv_store_type type, double value)
{
    uint64_t bits = 0;
    if (type == GRV_STORE_F16) return grvi_half_from_double(value);
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
    return type == GRV_STORE_F16   ? 0x7e00U
           : type == GRV_STORE_F32 ? 0x7fc00000U
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

grv_status grvi_fill_from_json(const grvi_json *node, grv_store_type type, const char *what,
                               uint64_t *fill)
{
    bool truth = false, good = false;
    *fill = 0;
    if (is_float(type)) {
        good = float_from_json(node, type, fill);
    } else if (type == GRV_STORE_BOOL) {
        good = grvi_json_as_bool(node, &truth);
        *fill = truth;
    } else {
        good = integer_from_json(node, type, fill);
    }
    if (good) return GRV_OK;
    grvi_text shown = {0};
    grvi_json_print(node, &shown);
    const grv_status status = grvi_fail(GRV_E_FORMAT, __FILE__, __LINE__, __func__,
                                        "'%s': fill_value of a %s expected, %.200s found", what,
                                        grv_store_type_name(type), grvi_text_get(&shown));
    grvi_text_fini(&shown);
    return status;
}

void grvi_fill_to_json(grvi_json_writer *writer, grv_store_type type, uint64_t fill)
{
    const int64_t n_bytes = grv_store_type_bytes(type);
    if (type == GRV_STORE_BOOL) {
        grvi_json_bool(writer, fill != 0);
    } else if (is_float(type)) {
        const double value = float_value(type, fill);
        char text[24];
        (void)snprintf(text, sizeof text, "0x%0*llx", (int)(2 * n_bytes), (unsigned long long)fill);
        if (isnan(value) && fill != canonical_nan(type))
            grvi_json_string(writer, text);
        else
            grvi_json_double(writer, value);
    } else if (is_signed(type)) {
        const int64_t unused = 64 - 8 * n_bytes;
        grvi_json_i64(writer, (int64_t)(fill << unused) >> unused);
    } else {
        grvi_json_u64(writer, fill);
    }
}
