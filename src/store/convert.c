/* Conversion between numeric types through blocks of 64-bit words: a loop per type to load, a loop per type and kind of word to
 * store, instead of one per pair of types. */
#include <math.h>
#include <string.h>

#include "store/convert.h"

/* enumerator, C type, member of grvi_words, its kind */
#define INTEGER_TYPES(X)                               \
    X(GRV_STORE_I8, int8_t, s, GRVI_WORDS_SIGNED)      \
    X(GRV_STORE_I16, int16_t, s, GRVI_WORDS_SIGNED)    \
    X(GRV_STORE_I32, int32_t, s, GRVI_WORDS_SIGNED)    \
    X(GRV_STORE_I64, int64_t, s, GRVI_WORDS_SIGNED)    \
    X(GRV_STORE_U8, uint8_t, u, GRVI_WORDS_UNSIGNED)   \
    X(GRV_STORE_U16, uint16_t, u, GRVI_WORDS_UNSIGNED) \
    X(GRV_STORE_U32, uint32_t, u, GRVI_WORDS_UNSIGNED) \
    X(GRV_STORE_U64, uint64_t, u, GRVI_WORDS_UNSIGNED)
#define FLOAT_TYPES(X)                           \
    X(GRV_STORE_F32, float, f, GRVI_WORDS_FLOAT) \
    X(GRV_STORE_F64, double, f, GRVI_WORDS_FLOAT)

bool grvi_is_float(grv_store_type type)
{
    return type == GRV_STORE_F16 || type == GRV_STORE_BF16 || type == GRV_STORE_F32 ||
           type == GRV_STORE_F64;
}

bool grvi_is_number(grv_store_type type)
{
    return (type >= GRV_STORE_I8 && type <= GRV_STORE_U64) || grvi_is_float(type);
}

double grvi_round_to(grv_store_type type, double value)
{
    switch (type) {
    case GRV_STORE_F16: return grvi_half_to_double(grvi_half_from_double(value));
    case GRV_STORE_BF16: return grvi_bfloat_to_double(grvi_bfloat_from_double(value));
    case GRV_STORE_F32: return (double)(float)value;
    default: return value;
    }
}

static uint64_t integer_from_double(double value)
{
    if (value >= -0x1p63 && value < 0x1p63) return (uint64_t)(int64_t)value;
    return value >= 0x1p63 && value < 0x1p64 ? (uint64_t)value : (uint64_t)1 << 63;
}

void grvi_words_load(grv_store_type type, const uint8_t *in, int64_t n, grvi_words *words)
{
    uint16_t half = 0;
    switch (type) {
#define LOAD(name, c_type, member, word_kind)                            \
    case name:                                                           \
        words->kind = word_kind;                                         \
        for (int64_t i = 0; i < n; i++) {                                \
            c_type value;                                                \
            memcpy(&value, in + (size_t)i * sizeof value, sizeof value); \
            words->member[i] = value;                                    \
        }                                                                \
        break;
        INTEGER_TYPES(LOAD)
        FLOAT_TYPES(LOAD)
#undef LOAD
    default:
        GRV_ASSERT(type == GRV_STORE_F16 || type == GRV_STORE_BF16);
        words->kind = GRVI_WORDS_FLOAT;
        for (int64_t i = 0; i < n; i++) {
            memcpy(&half, in + 2 * i, sizeof half);
            words->f[i] =
                type == GRV_STORE_F16 ? grvi_half_to_double(half) : grvi_bfloat_to_double(half);
        }
        break;
    }
}

static double word_as_double(const grvi_words *words, int64_t i)
{
    return words->kind == GRVI_WORDS_SIGNED     ? (double)words->s[i]
           : words->kind == GRVI_WORDS_UNSIGNED ? (double)words->u[i]
                                                : words->f[i];
}

void grvi_words_store(grv_store_type type, const grvi_words *words, int64_t n, uint8_t *out)
{
    switch (type) {
#define STORE_INTEGER(name, c_type, member, word_kind)                                      \
    case name:                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                   \
            const c_type value =                                                            \
                (c_type)(words->kind == GRVI_WORDS_FLOAT ? integer_from_double(words->f[i]) \
                                                         : words->u[i]);                    \
            memcpy(out + (size_t)i * sizeof value, &value, sizeof value);                   \
        }                                                                                   \
        break;
#define STORE_FLOAT(name, c_type, member, word_kind)                                         \
    case name:                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                    \
            const c_type value = words->kind == GRVI_WORDS_SIGNED     ? (c_type)words->s[i]  \
                                 : words->kind == GRVI_WORDS_UNSIGNED ? (c_type)words->u[i]  \
                                                                      : (c_type)words->f[i]; \
            memcpy(out + (size_t)i * sizeof value, &value, sizeof value);                    \
        }                                                                                    \
        break;
        INTEGER_TYPES(STORE_INTEGER)
        FLOAT_TYPES(STORE_FLOAT)
#undef STORE_INTEGER
#undef STORE_FLOAT
    default:
        GRV_ASSERT(type == GRV_STORE_F16 || type == GRV_STORE_BF16);
        for (int64_t i = 0; i < n; i++) {
            const double value = word_as_double(words, i);
            const uint16_t half = type == GRV_STORE_F16 ? grvi_half_from_double(value)
                                                        : grvi_bfloat_from_double(value);
            memcpy(out + 2 * i, &half, sizeof half);
        }
        break;
    }
}

void grvi_convert(grv_store_type from, const uint8_t *in, grv_store_type to, int64_t n,
                  uint8_t *out)
{
    const int64_t in_bytes = grv_store_type_bytes(from), out_bytes = grv_store_type_bytes(to);
    grvi_words words;
    if (from == to) {
        memcpy(out, in, (size_t)(n * in_bytes));
        return;
    }
    for (int64_t i = 0; i < n; i += GRVI_CONVERT_BLOCK) {
        const int64_t k = grvi_min_i64(GRVI_CONVERT_BLOCK, n - i);
        grvi_words_load(from, in + i * in_bytes, k, &words);
        grvi_words_store(to, &words, k, out + i * out_bytes);
    }
}
