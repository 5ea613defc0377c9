/* The filters that numbers know: delta, fixedscaleoffset, astype, bitround. Their arithmetic is that of numcodecs: each operation is
 * rounded to the type that NumPy would compute it in. */
#include <math.h>
#include <string.h>

#include "grove/core.h"
#include "store/convert.h"
#include "store/filter.h"
#include "store/scratch.h"

/* ---- configurations ---- */

/* A member that names a type; *item keeps its default if it is absent. */
static grv_status read_item(const grvi_json *configuration, const grvi_filter *filter,
                            const char *key, grvi_item *item, bool *big_endian)
{
    const grvi_json *const node = grvi_json_get(configuration, key);
    const char *const name = filter->class->name;
    if (node == NULL) return GRV_OK;
    GRV_CHECK(grvi_json_as_string(node) != NULL, GRV_E_FORMAT,
              "codec '%s': %s must be a type string", name, key);
    const grv_status status =
        grvi_item_from_numpy(grvi_json_as_string(node), key, item, big_endian);
    if (status != GRV_OK) GRV_FAIL(status, "codec '%s': %s", name, grvi_reason(status));
    GRV_CHECK(grvi_is_number(item->type), GRV_E_UNSUPPORTED,
              "codec '%s': %s must be a numeric type, found %s", name, key,
              grv_store_type_name(item->type));
    return GRV_OK;
}

/* The type of the elements, as the filter names it, must be that of the array. */
static grv_status read_decoded_item(const grvi_json *configuration, grvi_filter *filter,
                                    const char *key)
{
    grvi_item item = filter->decoded;
    GRV_TRY(read_item(configuration, filter, key, &item, &filter->decoded_big_endian));
    GRV_CHECK(grvi_is_number(filter->decoded.type), GRV_E_UNSUPPORTED,
              "codec '%s' takes numbers, not %s", filter->class->name,
              grv_store_type_name(filter->decoded.type));
    GRV_CHECK(item.type == filter->decoded.type, GRV_E_FORMAT,
              "codec '%s': %s is %s, the elements are %s", filter->class->name, key,
              grv_store_type_name(item.type), grv_store_type_name(filter->decoded.type));
    filter->encoded_big_endian = filter->decoded_big_endian;
    return GRV_OK;
}

static grv_status read_number(const grvi_json *configuration, const grvi_filter *filter,
                              const char *key, double *value)
{
    GRV_CHECK(grvi_json_as_double(grvi_json_get(configuration, key), value) && isfinite(*value),
              GRV_E_FORMAT, "codec '%s': %s must be a number", filter->class->name, key);
    return GRV_OK;
}

/* ---- delta {dtype, astype}: the first element, then differences; over the chunk in stored order ---- */

static grv_status delta_parse(const grvi_json *configuration, grvi_filter *filter)
{
    GRV_TRY(read_decoded_item(configuration, filter, "dtype"));
    return read_item(configuration, filter, "astype", &filter->encoded,
                     &filter->encoded_big_endian);
}

static grv_status delta_encode(const grvi_filter *filter, const uint8_t *in, int64_t n,
                               uint8_t *out)
{
    const grv_store_type type = filter->decoded.type;
    const int64_t in_bytes = filter->decoded.n_bytes, out_bytes = filter->encoded.n_bytes;
    uint8_t differences[GRVI_CONVERT_BLOCK * sizeof(uint64_t)];
    grvi_words words;
    uint64_t last = 0;
    double last_float = 0;
    for (int64_t i = 0; i < n; i += GRVI_CONVERT_BLOCK) {
        const int64_t k = grvi_min_i64(GRVI_CONVERT_BLOCK, n - i);
        grvi_words_load(type, in + i * in_bytes, k, &words);
        for (int64_t j = 0; j < k; j++) {
            const uint64_t value = words.u[j];
            const double value_float = words.f[j];
            if (words.kind != GRVI_WORDS_FLOAT)
                words.u[j] = value - last; /* integers wrap, in the type when they are stored */
            else if (i + j > 0)
                words.f[j] = value_float - last_float;
            last = value;
            last_float = value_float;
        }
        grvi_words_store(type, &words, k, differences);
        grvi_convert(type, differences, filter->encoded.type, k, out + i * out_bytes);
    }
    return GRV_OK;
}

static void delta_decode(const grvi_filter *filter, const uint8_t *in, int64_t n, uint8_t *out)
{
    const grv_store_type type = filter->decoded.type;
    const int64_t in_bytes = filter->encoded.n_bytes, out_bytes = filter->decoded.n_bytes;
    grvi_words words;
    uint64_t sum = 0;
    double sum_float = -0.0; /* so that a first -0.0 stays */
    for (int64_t i = 0; i < n; i += GRVI_CONVERT_BLOCK) {
        const int64_t k = grvi_min_i64(GRVI_CONVERT_BLOCK, n - i);
        grvi_convert(filter->encoded.type, in + i * in_bytes, type, k, out + i * out_bytes);
        grvi_words_load(type, out + i * out_bytes, k, &words);
        for (int64_t j = 0; j < k; j++) {
            if (words.kind != GRVI_WORDS_FLOAT)
                words.u[j] = sum += words.u[j];
            else
                words.f[j] = sum_float = grvi_round_to(type, sum_float + words.f[j]);
        }
        grvi_words_store(type, &words, k, out + i * out_bytes);
    }
}

static const grvi_filter_class delta = {"numcodecs.delta", delta_parse, delta_encode, delta_decode};

/* ---- fixedscaleoffset {offset, scale, dtype, astype}: round((x - offset) * scale) ---- */

static grv_status scale_parse(const grvi_json *configuration, grvi_filter *filter)
{
    GRV_TRY(read_decoded_item(configuration, filter, "dtype"));
    GRV_TRY(
        read_item(configuration, filter, "astype", &filter->encoded, &filter->encoded_big_endian));
    GRV_TRY(read_number(configuration, filter, "offset", &filter->offset));
    return read_number(configuration, filter, "scale", &filter->scale);
}

static void words_as_floats(grvi_words *words, int64_t n)
{
    if (words->kind == GRVI_WORDS_SIGNED)
        for (int64_t i = 0; i < n; i++) words->f[i] = (double)words->s[i];
    else if (words->kind == GRVI_WORDS_UNSIGNED)
        for (int64_t i = 0; i < n; i++) words->f[i] = (double)words->u[i];
    words->kind = GRVI_WORDS_FLOAT;
}

static grv_status scale_encode(const grvi_filter *filter, const uint8_t *in, int64_t n,
                               uint8_t *out)
{
    const grv_store_type type = filter->decoded.type; /* the one to compute in */
    const double offset = grvi_round_to(type, filter->offset),
                 scale = grvi_round_to(type, filter->scale);
    grvi_words words;
    for (int64_t i = 0; i < n; i += GRVI_CONVERT_BLOCK) {
        const int64_t k = grvi_min_i64(GRVI_CONVERT_BLOCK, n - i);
        grvi_words_load(type, in + i * filter->decoded.n_bytes, k, &words);
        words_as_floats(&words, k);
        for (int64_t j = 0; j < k; j++)
            words.f[j] =
                rint(grvi_round_to(type, grvi_round_to(type, words.f[j] - offset) * scale));
        grvi_words_store(filter->encoded.type, &words, k, out + i * filter->encoded.n_bytes);
    }
    return GRV_OK;
}

static void scale_decode(const grvi_filter *filter, const uint8_t *in, int64_t n, uint8_t *out)
{
    const grv_store_type type = filter->encoded.type;
    const double offset = grvi_round_to(type, filter->offset),
                 scale = grvi_round_to(type, filter->scale);
    grvi_words words;
    for (int64_t i = 0; i < n; i += GRVI_CONVERT_BLOCK) {
        const int64_t k = grvi_min_i64(GRVI_CONVERT_BLOCK, n - i);
        grvi_words_load(type, in + i * filter->encoded.n_bytes, k, &words);
        words_as_floats(&words, k);
        for (int64_t j = 0; j < k; j++)
            words.f[j] = grvi_round_to(type, grvi_round_to(type, words.f[j] / scale) + offset);
        grvi_words_store(filter->decoded.type, &words, k, out + i * filter->decoded.n_bytes);
    }
}

static const grvi_filter_class fixedscaleoffset = {"numcodecs.fixedscaleoffset", scale_parse,
                                                   scale_encode, scale_decode};

/* ---- astype {encode_dtype, decode_dtype} ---- */

static grv_status astype_parse(const grvi_json *configuration, grvi_filter *filter)
{
    GRV_TRY(read_decoded_item(configuration, filter, "decode_dtype"));
    GRV_CHECK(grvi_json_has(configuration, "encode_dtype"), GRV_E_FORMAT,
              "codec '%s' without encode_dtype", filter->class->name);
    return read_item(configuration, filter, "encode_dtype", &filter->encoded,
                     &filter->encoded_big_endian);
}

static grv_status astype_encode(const grvi_filter *filter, const uint8_t *in, int64_t n,
                                uint8_t *out)
{
    grvi_convert(filter->decoded.type, in, filter->encoded.type, n, out);
    return GRV_OK;
}

static void astype_decode(const grvi_filter *filter, const uint8_t *in, int64_t n, uint8_t *out)
{
    grvi_convert(filter->encoded.type, in, filter->decoded.type, n, out);
}

static const grvi_filter_class astype = {"numcodecs.astype", astype_parse, astype_encode,
                                         astype_decode};

/* ---- bitround {keepbits}: mantissas rounded to so many bits; reading needs nothing ---- */

static grv_status bitround_parse(const grvi_json *configuration, grvi_filter *filter)
{
    double keep_bits = 0;
    GRV_TRY(read_number(configuration, filter, "keepbits", &keep_bits));
    GRV_CHECK(keep_bits >= 0 && keep_bits <= 64, GRV_E_FORMAT,
              "codec '%s': keepbits must be an integer from 0 to 64", filter->class->name);
    filter->keep_bits = (int)keep_bits;
    return GRV_OK;
}

static grv_status bitround_encode(const grvi_filter *filter, const uint8_t *in, int64_t n,
                                  uint8_t *out)
{
    const grv_store_type type = filter->decoded.type;
    const size_t n_bytes = (size_t)filter->decoded.n_bytes;
    const int mantissa_bits = type == GRV_STORE_F16   ? 10
                              : type == GRV_STORE_F32 ? 23
                              : type == GRV_STORE_F64 ? 52
                                                      : 0;
    const int drop = mantissa_bits - filter->keep_bits;
    GRV_CHECK(mantissa_bits > 0 && drop >= 0, GRV_E_UNSUPPORTED,
              "writing through codec '%s' with %d bits of a %s", filter->class->name,
              filter->keep_bits, grv_store_type_name(type));
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        memcpy(&bits, in + (size_t)i * n_bytes, n_bytes);
        if (drop > 0) {
            bits += (bits >> drop & 1) + (((uint64_t)1 << (drop - 1)) - 1); /* to even */
            bits &= UINT64_MAX << drop;
        }
        memcpy(out + (size_t)i * n_bytes, &bits, n_bytes);
    }
    return GRV_OK;
}

static void bitround_decode(const grvi_filter *filter, const uint8_t *in, int64_t n, uint8_t *out)
{
    memcpy(out, in, (size_t)(n * filter->decoded.n_bytes));
}

static const grvi_filter_class bitround = {"numcodecs.bitround", bitround_parse, bitround_encode,
                                           bitround_decode};
static const grvi_filter_class bitround_registered = {"bitround", bitround_parse, bitround_encode,
                                                      bitround_decode};

/* ---- */

static const grvi_filter_class *const classes[] = {&delta, &fixedscaleoffset, &astype, &bitround,
                                                   &bitround_registered};

const grvi_filter_class *grvi_filter_find(const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (strcmp(classes[i]->name, name) == 0) return classes[i];
    }
    return NULL;
}

grv_status grvi_filter_parse(const grvi_filter_class *class, const grvi_json *configuration,
                             grvi_item decoded, bool big_endian, const char *what,
                             grvi_filter *filter)
{
    *filter = (grvi_filter){.class = class,
                            .decoded = decoded,
                            .encoded = decoded,
                            .decoded_big_endian = big_endian,
                            .encoded_big_endian = big_endian};
    const grv_status status = class->parse(configuration, filter);
    if (status != GRV_OK) GRV_FAIL(status, "'%s': %s", what, grvi_reason(status));
    return GRV_OK;
}
