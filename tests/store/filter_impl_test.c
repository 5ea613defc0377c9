/* Filters against numcodecs, bit by bit, for all pairs of numeric types (the table is made by make_filter_table.py); and values that no
 * integer holds. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/crc32c.h"
#include "store/convert.h"
#include "store/filter.h"
#include "store_support.h"

enum { N = 700 }; /* more than one block of conversion */

typedef struct filter_case {
    const char *name, *configuration;
    grv_store_type type;
    uint32_t encoded_crc, decoded_crc;
} filter_case;

static const filter_case table[] = {
#include "filter_table.inc"
};

/* x[i] = 7919 i mod 211, less 100 where no type is unsigned; eighths for floating-point types */
static void make_values(const grvi_filter *filter, uint8_t *out)
{
    const grv_store_type type = filter->decoded.type;
    const bool is_signed =
        type != GRV_STORE_U8 && type != GRV_STORE_U16 && type != GRV_STORE_U32 &&
        type != GRV_STORE_U64 &&
        (filter->encoded.type < GRV_STORE_U8 || filter->encoded.type > GRV_STORE_U64);
    double values[N];
    for (int i = 0; i < N; i++) {
        const double x = i * 7919 % 211 - (is_signed ? 100 : 0);
        values[i] = grvi_is_float(type) ? x / 8 : x;
    }
    grvi_convert(GRV_STORE_F64, (const uint8_t *)values, type, N, out);
}

static void test_table(void **state)
{
    static uint8_t values[8 * N], encoded[8 * N], decoded[8 * N];
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const filter_case *const c = &table[i];
        const grvi_item item = {c->type, grv_store_type_bytes(c->type)};
        grvi_json *configuration = NULL;
        grvi_filter filter;
        assert_ok(grvi_json_parse(c->configuration, (int64_t)strlen(c->configuration), "test",
                                  &configuration));
        assert_non_null(grvi_filter_find(c->name));
        assert_ok(
            grvi_filter_parse(grvi_filter_find(c->name), configuration, item, false, "a", &filter));
        make_values(&filter, values);
        assert_ok(filter.class->encode(&filter, values, N, encoded));
        filter.class->decode(&filter, encoded, N, decoded);
        if (grvi_crc32c(encoded, N * filter.encoded.n_bytes) != c->encoded_crc)
            fail_msg("%s %s of %s: encoded otherwise than by numcodecs", c->name, c->configuration,
                     grv_store_type_name(c->type));
        if (grvi_crc32c(decoded, N * item.n_bytes) != c->decoded_crc)
            fail_msg("%s %s of %s: decoded otherwise than by numcodecs", c->name, c->configuration,
                     grv_store_type_name(c->type));
        grvi_json_free(configuration);
    }
}

/* Conversions that C leaves undefined have a value. */
static void test_out_of_range(void **state)
{
    static const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1e30,
                                    -1e30,       0x1p63,           -0x1p63,           300.75};
    uint64_t as_u64[8];
    int8_t as_i8[8];
    (void)state;
    grvi_convert(GRV_STORE_F64, (const uint8_t *)values, GRV_STORE_U64, 8, (uint8_t *)as_u64);
    grvi_convert(GRV_STORE_F64, (const uint8_t *)values, GRV_STORE_I8, 8, (uint8_t *)as_i8);
    for (int i = 0; i < 7; i++) {
        assert_true(as_u64[i] == (uint64_t)1 << 63);
        assert_int_equal(as_i8[i], 0);
    }
    assert_true(as_u64[7] == 300);
    assert_int_equal(as_i8[7], 44);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_out_of_range)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
