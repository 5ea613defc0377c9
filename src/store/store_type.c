/* Element types: their names in both versions of the format, and 16-bit floating-point numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_type.h"

/* NumPy's letter of each type, as in the type strings of version 2; 0: NumPy has no such type */
static const char numpy_kinds[] = {
    [GRV_STORE_BOOL] = 'b',  [GRV_STORE_I8] = 'i',  [GRV_STORE_I16] = 'i',  [GRV_STORE_I32] = 'i',
    [GRV_STORE_I64] = 'i',   [GRV_STORE_U8] = 'u',  [GRV_STORE_U16] = 'u',  [GRV_STORE_U32] = 'u',
    [GRV_STORE_U64] = 'u',   [GRV_STORE_F16] = 'f', [GRV_STORE_F32] = 'f',  [GRV_STORE_F64] = 'f',
    [GRV_STORE_BF16] = 0,    [GRV_STORE_C64] = 'c', [GRV_STORE_C128] = 'c', [GRV_STORE_RAW] = 'V',
    [GRV_STORE_BYTES] = 'S', [GRV_STORE_UCS4] = 'U'};

static const struct {
    const char *name;
    int64_t n_bytes;
} types[] = {
#define TYPE_INFO(name, text, bytes) [name] = {text, bytes},
    GRV_STORE_TYPE_LIST(TYPE_INFO)
#undef TYPE_INFO
};
enum { N_TYPES = sizeof types / sizeof types[0] };

static const int64_t character_bytes = 4; /* of GRV_STORE_UCS4 */

const char *grv_store_type_name(grv_store_type type)
{
    return (int)type >= 0 && (int)type < N_TYPES ? types[type].name : "unknown";
}
int64_t grv_store_type_bytes(grv_store_type type)
{
    return (int)type >= 0 && (int)type < N_TYPES ? types[type].n_bytes : 0;
}

bool grvi_item_is_good(grvi_item item)
{
    if ((int)item.type < 0 || (int)item.type >= N_TYPES) return false;
    const int64_t n = types[item.type].n_bytes;
    return n > 0 ? item.n_bytes == n
                 : item.n_bytes > 0 && item.n_bytes <= GRVI_MAX_ITEM_BYTES &&
                       (item.type != GRV_STORE_UCS4 || item.n_bytes % character_bytes == 0);
}

int64_t grvi_item_swap_bytes(grvi_item item)
{
    switch (item.type) {
    case GRV_STORE_C64:
    case GRV_STORE_C128: return item.n_bytes / 2;
    case GRV_STORE_UCS4: return character_bytes;
    case GRV_STORE_RAW:
    case GRV_STORE_BYTES: return 1;
    default: return item.n_bytes;
    }
}

static grv_status check_length(int64_t n_bytes, const char *what, const char *name)
{
    GRV_CHECK(n_bytes >= 1 && n_bytes <= GRVI_MAX_ITEM_BYTES, GRV_E_UNSUPPORTED,
              "'%s': data type '%.64s': an element must have 1 to %lld bytes", what, name,
              (long long)GRVI_MAX_ITEM_BYTES);
    return GRV_OK;
}

/* Digits up to the end of the text (or of `n` characters); -1 if there is anything else, or too much. */
static int64_t length_from_text(const char *text)
{
    const size_t n = strspn(text, "0123456789");
    return n == 0 || n > 9 || text[n] != '\0' ? -1 : strtol(text, NULL, 10);
}

grv_status grvi_item_from_json(const grvi_json *node, const char *what, grvi_item *item)
{
    const char *name = grvi_json_as_string(node);
    if (name == NULL) name = grvi_json_as_string(grvi_json_get(node, "name"));
    GRV_CHECK(name != NULL, GRV_E_FORMAT, "'%s': data_type is missing", what);
    if (name[0] == 'r' && name[1] != '\0' && name[strspn(name + 1, "0123456789") + 1] == '\0') {
        const int64_t n_bits = length_from_text(name + 1);
        GRV_CHECK(n_bits % 8 == 0, GRV_E_FORMAT,
                  "'%s': data type '%.64s': the number of bits must be a multiple of 8", what,
                  name);
        *item = (grvi_item){GRV_STORE_RAW, n_bits / 8};
        return check_length(item->n_bytes, what, name);
    }
    for (int i = 0; i < N_TYPES; i++) {
        if (strcmp(types[i].name, name) != 0) continue;
        *item = (grvi_item){(grv_store_type)i, types[i].n_bytes};
        if (item->n_bytes > 0) return GRV_OK;
        const grvi_json *const length =
            grvi_json_get(grvi_json_get(node, "configuration"), "length_bytes");
        GRV_CHECK(grvi_json_as_i64(length, &item->n_bytes), GRV_E_FORMAT,
                  "'%s': data type '%s' without length_bytes", what, name);
        GRV_CHECK(item->type != GRV_STORE_UCS4 || item->n_bytes % character_bytes == 0,
                  GRV_E_FORMAT, "'%s': data type '%s': length_bytes must be a multiple of 4", what,
                  name);
        return check_length(item->n_bytes, what, name);
    }
    GRV_FAIL(GRV_E_UNSUPPORTED, "'%s': data type '%.64s' is not supported", what, name);
}

void grvi_item_to_json(grvi_json_writer *w, grvi_item item)
{
    char text[24];
    if (item.type == GRV_STORE_RAW) {
        (void)snprintf(text, sizeof text, "r%lld", (long long)(8 * item.n_bytes));
        grvi_json_string(w, text);
    } else if (grv_store_type_bytes(item.type) > 0) {
        grvi_json_string(w, grv_store_type_name(item.type));
    } else {
        grvi_json_begin_object(w);
        grvi_json_key(w, "name");
        grvi_json_string(w, grv_store_type_name(item.type));
        grvi_json_key(w, "configuration");
        grvi_json_begin_object(w);
        grvi_json_key(w, "length_bytes");
        grvi_json_i64(w, item.n_bytes);
        grvi_json_end_object(w);
        grvi_json_end_object(w);
    }
}

grv_status grvi_item_from_numpy(const char *text, const char *what, grvi_item *item,
                                bool *big_endian)
{
    GRV_CHECK(text != NULL, GRV_E_UNSUPPORTED,
              "'%s': dtype is no type string; structured types are not supported", what);
    *big_endian = text[0] == '>';
    for (int i = 0; i < N_TYPES; i++) {
        /* NumPy takes the long names too; bfloat16 has no other */
        if (types[i].n_bytes == 0 || strcmp(text, types[i].name) != 0) continue;
        *item = (grvi_item){(grv_store_type)i, types[i].n_bytes};
        return GRV_OK;
    }
    const char *const kind = text + (text[0] != '\0' && strchr("<>|=", text[0]) != NULL);
    const int64_t length = kind[0] != '\0' ? length_from_text(kind + 1) : -1;
    for (int i = 0; i < N_TYPES && length >= 0; i++) {
        if (kind[0] != numpy_kinds[i]) continue;
        const int64_t n_bytes = i == GRV_STORE_UCS4 ? character_bytes * length : length;
        if (types[i].n_bytes != 0 && types[i].n_bytes != n_bytes) continue;
        *item = (grvi_item){(grv_store_type)i, n_bytes};
        GRV_CHECK(text[0] != '|' || grvi_item_swap_bytes(*item) == 1, GRV_E_FORMAT,
                  "'%s': data type '%.64s' has no byte order", what, text);
        return check_length(n_bytes, what, text);
    }
    GRV_FAIL(GRV_E_UNSUPPORTED, "'%s': data type '%.64s' is not supported", what, text);
}

void grvi_item_to_numpy(grvi_item item, bool big_endian, char text[GRVI_NUMPY_TEXT])
{
    const char order = grvi_item_swap_bytes(item) == 1 ? '|' : big_endian ? '>' : '<';
    const int64_t n = item.type == GRV_STORE_UCS4 ? item.n_bytes / character_bytes : item.n_bytes;
    if (item.type == GRV_STORE_BF16)
        (void)snprintf(text, GRVI_NUMPY_TEXT, "%s", grv_store_type_name(item.type));
    else
        (void)snprintf(text, GRVI_NUMPY_TEXT, "%c%c%lld", order, numpy_kinds[item.type],
                       (long long)n);
}

/* ---- floating-point numbers of 16 bits: sign, exponent, `m` bits of mantissa ---- */

static uint16_t small_from_double(double value, int m, int bias)
{
    const unsigned sign = signbit(value) ? 0x8000U : 0U, infinity = (2U * (unsigned)bias + 1) << m;
    const double a = fabs(value);
    if (isnan(value)) return (uint16_t)(infinity | 1U << (m - 1));
    if (!(a > 0)) return (uint16_t)sign;
    if (isinf(value)) return (uint16_t)(sign | infinity);
    int exponent = 0;
    (void)frexp(a, &exponent);
    exponent = exponent < 2 - bias ? 2 - bias : exponent; /* below: subnormal, one spacing */
    /* in units of the last place; rint rounds to even, and a carry moves into the exponent as it should */
    const unsigned units = (unsigned)rint(ldexp(a, m + 1 - exponent));
    const unsigned bits = ((unsigned)(exponent + bias - 2) << m) + units;
    return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

static double small_to_double(uint16_t bits, int m, int bias)
{
    const int exponent = (bits & 0x7fff) >> m, mantissa = bits & ((1 << m) - 1);
    double value = 0;
    if (exponent == 2 * bias + 1)
        value = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - bias - m);
    else
        value = ldexp(mantissa + (1 << m), exponent - bias - m);
    return (bits & 0x8000) != 0 ? -value : value;
}

enum { HALF_MANTISSA = 10, HALF_BIAS = 15, BFLOAT_MANTISSA = 7, BFLOAT_BIAS = 127 };

uint16_t grvi_half_from_double(double value)
{
    return small_from_double(value, HALF_MANTISSA, HALF_BIAS);
}
double grvi_half_to_double(uint16_t bits)
{
    return small_to_double(bits, HALF_MANTISSA, HALF_BIAS);
}
uint16_t grvi_bfloat_from_double(double value)
{
    return small_from_double(value, BFLOAT_MANTISSA, BFLOAT_BIAS);
}
double grvi_bfloat_to_double(uint16_t bits)
{
    return small_to_double(bits, BFLOAT_MANTISSA, BFLOAT_BIAS);
}
