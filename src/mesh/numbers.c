/* Decimal numbers to binary. Short ones exactly by one multiplication or division (Clinger, PLDI 1990: mantissa up to 2^53 and powers up to 10^22 are
 * exact doubles, so that there is one rounding); the others by strtod on a copy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mesh/numbers.h"

enum {
    MAX_EXACT_POWER = 22,
    MAX_DIGITS = 19,      /* that fit a 64-bit mantissa */
    MAX_TOKEN = 800,      /* no double needs more than 767 digits to be rounded correctly */
    MAX_EXPONENT = 100000 /* larger ones are infinite or 0 all the same */
};

static const double powers[MAX_EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* What stands at a place. */
typedef struct decimal {
    const char *end;   /* behind it */
    uint64_t mantissa; /* without its point */
    int n_digits; /* of the mantissa, leading zeros not counted; beyond MAX_DIGITS the mantissa is not complete */
    int64_t exponent; /* of ten */
    bool negative;
} decimal;

static const char *scan_digits(const char *at, const char *end, decimal *d, int64_t exponent_step)
{
    for (; at < end && is_digit(*at); at++) {
        if (d->n_digits > 0 || *at != '0') d->n_digits++;
        if (d->n_digits <= MAX_DIGITS) {
            d->mantissa = 10 * d->mantissa + (uint64_t)(*at - '0');
            d->exponent += exponent_step;
        }
    }
    return at;
}

/* "e-5" behind a mantissa; not there if no digit follows */
static const char *scan_exponent(const char *at, const char *end, int64_t *exponent)
{
    if (at == end || strchr("eEdD", *at) == NULL || *at == '\0') return at;
    const char *p = at + 1;
    const bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end || !is_digit(*p)) return at;
    int64_t value = 0;
    for (; p < end && is_digit(*p); p++)
        if (value < MAX_EXPONENT) value = 10 * value + (*p - '0');
    *exponent += negative ? -value : value;
    return p;
}

static bool scan_decimal(const char *at, const char *end, decimal *d)
{
    *d = (decimal){0};
    if (at < end && (*at == '-' || *at == '+')) d->negative = *at++ == '-';
    const char *const first = at;
    at = scan_digits(at, end, d, 0);
    int64_t n = at - first;
    if (at < end && (*at == '.' || (*at == ',' && end - at > 1 && is_digit(at[1])))) {
        const char *const point = at;
        at = scan_digits(at + 1, end, d, -1);
        n += at - point - 1;
    }
    if (n == 0) return false;
    d->end = scan_exponent(at, end, &d->exponent);
    return true;
}

static bool parse_word(const char **at, const char *end, double *value)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"infinity", HUGE_VAL}, {"inf", HUGE_VAL}, {"nan", NAN}};
    const bool negative = *at < end && **at == '-';
    const char *const p = *at + (*at < end && (**at == '-' || **at == '+'));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i].word);
        if ((size_t)(end - p) < n || strncasecmp(p, words[i].word, n) != 0) continue;
        *value = negative ? -words[i].value : words[i].value;
        *at = p + n;
        return true;
    }
    return false;
}

/* text as C's library reads it */
static double convert(const char *at, const char *end)
{
    char token[MAX_TOKEN];
    size_t n = 0;
    const char *exponent = at;
    while (exponent < end && strchr("eEdD", *exponent) == NULL) exponent++;
    for (const char *p = at; p < end; p++) {
        /* digits without influence are left out: the exponent must fit */
        if (p < exponent && n >= MAX_TOKEN - 32 && is_digit(*p)) continue;
        if (n == MAX_TOKEN - 1) break;
        token[n++] = p == exponent ? 'e' : *p == ',' ? '.' : *p;
    }
    token[n] = '\0';
    return strtod(token, NULL);
}

bool grvi_parse_double(const char **at, const char *end, double *value)
{
    decimal d;
    if (!scan_decimal(*at, end, &d)) return parse_word(at, end, value);
    const bool is_short = d.n_digits <= MAX_DIGITS && d.mantissa <= (uint64_t)1 << 53;
    if (is_short && d.exponent >= -MAX_EXACT_POWER && d.exponent <= MAX_EXACT_POWER) {
        const double mantissa = (double)d.mantissa;
        *value = d.exponent < 0 ? mantissa / powers[-d.exponent] : mantissa * powers[d.exponent];
        if (d.negative) *value = -*value;
    } else {
        *value = convert(*at, d.end);
    }
    *at = d.end;
    return true;
}

static bool is_fraction(const char *at, const char *end)
{
    return at < end && strchr(".,eEdD", *at) != NULL && *at != '\0';
}

bool grvi_parse_u64(const char **at, const char *end, uint64_t *value)
{
    const char *p = *at + (*at < end && **at == '+');
    const char *const first = p;
    uint64_t v = 0;
    for (; p < end && is_digit(*p); p++) {
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    }
    if (p == first || is_fraction(p, end)) return false;
    *value = v;
    *at = p;
    return true;
}

bool grvi_parse_i64(const char **at, const char *end, int64_t *value)
{
    const char *p = *at;
    const bool negative = p < end && *p == '-';
    uint64_t v = 0;
    p += negative;
    if (negative && p < end && *p == '+') return false;
    if (!grvi_parse_u64(&p, end, &v) || v > (uint64_t)INT64_MAX + negative) return false;
    *value = negative ? (int64_t)(0 - v) : (int64_t)v;
    *at = p;
    return true;
}

/* Stores an integer; false if it does not fit. */
static bool store_integer(grv_store_type type, int64_t value, void *out, int64_t i)
{
    switch (type) {
    case GRV_STORE_I8:
        ((int8_t *)out)[i] = (int8_t)value;
        return value >= INT8_MIN && value <= INT8_MAX;
    /* VTK's strings are signed numbers */
    case GRV_STORE_U8:
        ((uint8_t *)out)[i] = (uint8_t)value;
        return value >= INT8_MIN && value <= UINT8_MAX;
    case GRV_STORE_I16:
        ((int16_t *)out)[i] = (int16_t)value;
        return value >= INT16_MIN && value <= INT16_MAX;
    case GRV_STORE_U16:
        ((uint16_t *)out)[i] = (uint16_t)value;
        return value >= 0 && value <= UINT16_MAX;
    case GRV_STORE_I32:
        ((int32_t *)out)[i] = (int32_t)value;
        return value >= INT32_MIN && value <= INT32_MAX;
    case GRV_STORE_U32:
        ((uint32_t *)out)[i] = (uint32_t)value;
        return value >= 0 && value <= UINT32_MAX;
    default: ((int64_t *)out)[i] = value; return true;
    }
}

bool grvi_parse_value(grv_store_type type, const char **at, const char *end, void *out, int64_t i)
{
    double real = 0;
    int64_t integer = 0;
    if (type == GRV_STORE_U64) return grvi_parse_u64(at, end, (uint64_t *)out + i);
    if (type != GRV_STORE_F32 && type != GRV_STORE_F64)
        return grvi_parse_i64(at, end, &integer) && store_integer(type, integer, out, i);
    if (!grvi_parse_double(at, end, &real)) return false;
    if (type == GRV_STORE_F32)
        ((float *)out)[i] = (float)real;
    else
        ((double *)out)[i] = real;
    return true;
}
