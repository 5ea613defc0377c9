/* Blosc chunks of every compressor, shuffle, element and block size: any box decodes to what was encoded, by the blocks that it
 * touches; broken chunks are refused. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/chain.h"
#include "store_support.h"

enum { ROWS = 64, COLUMNS = 96, ITEM = 4, N_VALUES = ROWS * COLUMNS };

static int32_t values[N_VALUES];
static const int64_t shape[] = {ROWS, COLUMNS}, strides[] = {ITEM * COLUMNS, ITEM};

static grvi_chain *make_chain(const char *compressor, int shuffle, int item_bytes, int block_bytes)
{
    static const uint8_t fill[ITEM] = {0};
    const grvi_chain_params params = {2, {GRV_STORE_I32, ITEM}, fill, INT32_MAX, "test"};
    char text[512];
    grvi_json *codecs = NULL;
    grvi_chain *chain = NULL;
    (void)snprintf(text, sizeof text,
                   "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":"
                   "\"blosc\",\"configuration\":{\"cname\":\"%s\",\"clevel\":5,\"shuffle\":%d,"
                   "\"typesize\":%d,\"blocksize\":%d}}]",
                   compressor, shuffle, item_bytes, block_bytes);
    assert_ok(grvi_json_parse(text, (int64_t)strlen(text), "codecs", &codecs));
    assert_ok(grvi_chain_create(codecs, shape, &params, &chain));
    grvi_json_free(codecs);
    return chain;
}

static void encode(const grvi_chain *chain, grvi_scratch *scratch)
{
    const grvi_encode_input input = {.box = {{0, 0}, {ROWS, COLUMNS}},
                                     .data = (const uint8_t *)values,
                                     .strides = strides,
                                     .extent = shape};
    bool empty = true;
    scratch->encoded.n = 0;
    assert_ok(grvi_chain_encode(chain, scratch, 0, 1, &input, &scratch->encoded, &empty));
    assert_false(empty);
}

/* Bytes of the blocks that a box touches, by going through its elements. */
static int64_t touched_bytes(const grvi_box *box, int64_t block_bytes)
{
    bool touched[ITEM * N_VALUES] = {false};
    int64_t n = 0;
    for (int64_t i = 0; i < box->count[0]; i++) {
        for (int64_t b = 0; b < ITEM * box->count[1]; b++) {
            const int64_t at = ITEM * ((box->start[0] + i) * COLUMNS + box->start[1]) + b;
            touched[at / block_bytes] = true;
        }
    }
    for (int64_t k = 0; k * block_bytes < ITEM * N_VALUES; k++) {
        if (touched[k]) n += grvi_min_i64(block_bytes, ITEM * N_VALUES - k * block_bytes);
    }
    return n;
}

static void check_box(const grvi_chain *chain, grvi_scratch *scratch, const grvi_box *box,
                      bool by_blocks)
{
    static int32_t out[N_VALUES];
    const int64_t out_strides[] = {ITEM * box->count[1], ITEM};
    int32_t block_bytes = 0;
    memset(out, 0xee, sizeof out);
    scratch->bytes_decoded = 0;
    assert_ok(grvi_chain_decode(chain, scratch, 0, scratch->encoded.data, scratch->encoded.n, box,
                                (uint8_t *)out, out_strides));
    for (int64_t i = 0; i < box->count[0]; i++)
        assert_memory_equal(out + i * box->count[1],
                            values + (box->start[0] + i) * COLUMNS + box->start[1],
                            (size_t)(ITEM * box->count[1]));
    memcpy(&block_bytes, scratch->encoded.data + 8, sizeof block_bytes);
    if (by_blocks) assert_int_equal(scratch->bytes_decoded, touched_bytes(box, block_bytes));
}

static void test_boxes(void **state)
{
    static const char *const compressors[] = {"lz4", "zstd", "zlib", "lz4hc", "blosclz", "snappy"};
    static const int item_bytes[] = {1, 2, 3, 4, 8, 16, 20, 255};
    static const int block_bytes[] = {0, 1024, 5000};
    grvi_scratch_pool pool;
    grvi_scratch *scratch = NULL;
    uint64_t counter = 0;
    (void)state;
    grvi_scratch_pool_init(&pool);
    assert_ok(grvi_scratch_take(&pool, &scratch));
    for (int i = 0; i < N_VALUES; i++)
        values[i] = i % 7 == 0 ? (int32_t)grv_random_bits(3, 1, (uint64_t)i) : i / 5;
    for (int c = 0; c < 6; c++) {
        for (int variant = 0; variant < 3 * 8 * 3; variant++) {
            grvi_chain *chain = make_chain(compressors[c], variant % 3, item_bytes[variant / 3 % 8],
                                           block_bytes[variant / 24]);
            encode(chain, scratch);
            const bool is_raw = (scratch->encoded.data[2] & 2) != 0;
            for (int k = 0; k < 6; k++) {
                grvi_box box;
                for (int a = 0; a < 2; a++) {
                    box.start[a] = (int64_t)(grv_random_bits(4, 1, counter++) % (uint64_t)shape[a]);
                    box.count[a] = 1 + (int64_t)(grv_random_bits(4, 1, counter++) %
                                                 (uint64_t)(shape[a] - box.start[a]));
                    if (k == 0) box.count[a] = 1;
                    if (k == 1) box = (grvi_box){{0, 0}, {ROWS, COLUMNS}};
                }
                check_box(chain, scratch, &box, c < 4 && !is_raw);
            }
            grvi_chain_destroy(&chain);
        }
    }
    grvi_scratch_give(scratch);
    grvi_scratch_pool_fini(&pool);
}

/* Header and table of blocks with every byte set to extremes, and every length of the chunk. */
static void test_broken(void **state)
{
    static const uint8_t extremes[] = {0, 1, 0x7f, 0x80, 0xff};
    static int32_t out[N_VALUES];
    const grvi_box all = {{0, 0}, {ROWS, COLUMNS}}, some = {{9, 4}, {3, 50}};
    grvi_scratch_pool pool;
    grvi_scratch *scratch = NULL, *reader = NULL;
    (void)state;
    grvi_scratch_pool_init(&pool);
    assert_ok(grvi_scratch_take(&pool, &scratch));
    assert_ok(grvi_scratch_take(&pool, &reader));
    for (int c = 0; c < 3; c++) {
        static const char *const compressors[] = {"lz4", "zstd", "zlib"};
        grvi_chain *chain = make_chain(compressors[c], c, ITEM, 1024);
        encode(chain, scratch);
        const int64_t n = scratch->encoded.n;
        for (int64_t at = 0; at < 160; at++) {
            for (int e = 0; e < 5; e++) {
                /* of exact size, so that a read past the end is seen */
                uint8_t *const broken = malloc((size_t)n);
                assert_non_null(broken);
                memcpy(broken, scratch->encoded.data, (size_t)n);
                broken[at] = extremes[e];
                for (int whole = 0; whole < 2; whole++) {
                    const grv_status status =
                        grvi_chain_decode(chain, reader, 0, broken, n, whole != 0 ? &all : &some,
                                          (uint8_t *)out, strides);
                    assert_true(status == GRV_OK || status == GRV_E_FORMAT);
                }
                free(broken);
            }
        }
        for (int64_t length = 0; length < n; length += 13) {
            uint8_t *const cut = malloc((size_t)length + 1);
            assert_non_null(cut);
            memcpy(cut, scratch->encoded.data, (size_t)length);
            assert_fails(
                grvi_chain_decode(chain, reader, 0, cut, length, &some, (uint8_t *)out, strides),
                GRV_E_FORMAT, "blosc: the header does not fit");
            free(cut);
        }
        grvi_chain_destroy(&chain);
    }
    grvi_scratch_give(reader);
    grvi_scratch_give(scratch);
    grvi_scratch_pool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_boxes), cmocka_unit_test(test_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
