/* Encoded chunks and shards: the first byte chooses a chain, the rest is what a file might hold. It decodes or is refused. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "fuzz.h"
#include "store/chain.h"

enum { ROWS = 8, COLUMNS = 6, N_CHAINS = 14 };

#define NUMCODECS(name, configuration) \
    "{\"name\":\"numcodecs." name "\",\"configuration\":{" configuration "}}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

static const char *const lists[N_CHAINS] = {
    "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]",
    "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},{\"name\":\"bytes\","
    "\"configuration\":{\"endian\":\"little\"}},\"zstd\"]",
    "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":\"blosc\","
    "\"configuration\":{\"cname\":\"lz4\",\"shuffle\":\"shuffle\"}}]",
    "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},\"gzip\"]",
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4,3],\"codecs\":[{"
    "\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}],"
    "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]}}]",
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4,6],\"codecs\":[{"
    "\"name\":\"sharding_indexed\",\"configuration\":"
    "{\"chunk_shape\":[2,3],\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":"
    "\"little\"}},\"zstd\"],\"index_codecs\":[{\"name\":\"bytes\","
    "\"configuration\":{\"endian\":\"big\"}}],\"index_location\":\"start\"}}],\"index_codecs\":[{"
    "\"name\":\"bytes\",\"configuration\":"
    "{\"endian\":\"little\"}}]}}]",
    "[" LITTLE "," NUMCODECS("blosc", "\"cname\":\"zstd\",\"shuffle\":2,\"blocksize\":64") "]",
    "[" LITTLE "," NUMCODECS("blosc", "\"cname\":\"zlib\",\"shuffle\":1,\"blocksize\":64") "]",
    "[" LITTLE "," NUMCODECS("lz4", "") "," NUMCODECS("adler32", "") "]",
    "[" NUMCODECS("delta", "\"dtype\":\"<i4\",\"astype\":\"<i2\"") "," LITTLE
                                                                   "," NUMCODECS("bz2", "") "]",
    "[" NUMCODECS("fixedscaleoffset",
                  "\"offset\":1,\"scale\":3,\"dtype\":\"<i4\",\"astype\":\"<f4\"") "," LITTLE
                                                                                   "," NUMCODECS(
                                                                                       "zlib",
                                                                                       "") "]",
    "[" NUMCODECS("astype", "\"encode_dtype\":\"<f8\",\"decode_dtype\":\"<i4\"") "," NUMCODECS(
        "delta", "\"dtype\":\"<f8\"") "," LITTLE "," NUMCODECS("shuffle", "\"elementsize\":8") "]",
    "[" LITTLE "," NUMCODECS("fletcher32", "") "," NUMCODECS("crc32", "") "]",
    "[" LITTLE "," NUMCODECS("blosc", "\"cname\":\"snappy\",\"shuffle\":1") "]"};

static grv_status make_chain(int number, grvi_chain **chain)
{
    static const int64_t shape[] = {ROWS, COLUMNS};
    static const uint8_t fill[4] = {9};
    const grvi_chain_params params = {.rank = 2,
                                      .item = {GRV_STORE_I32, 4},
                                      .fill = fill,
                                      .max_chunk_bytes = 1 << 20,
                                      .what = "fuzz"};
    grvi_json *codecs = NULL;
    GRV_TRY(grvi_json_parse(lists[number], (int64_t)strlen(lists[number]), "codecs", &codecs));
    const grv_status status = grvi_chain_create(codecs, shape, &params, chain);
    grvi_json_free(codecs);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const grvi_box boxes[] = {{{0, 0}, {ROWS, COLUMNS}}, {{3, 1}, {4, 5}}};
    static const int64_t strides[] = {4 * COLUMNS, 4};
    uint8_t out[ROWS * COLUMNS * 4];
    grvi_scratch_pool pool;
    grvi_scratch *scratch = NULL;
    grvi_chain *chain = NULL;
    if (n == 0 || make_chain(data[0] % N_CHAINS, &chain) != GRV_OK) return 0;
    grvi_scratch_pool_init(&pool);
    if (grvi_scratch_take(&pool, &scratch) == GRV_OK) {
        for (int i = 0; i < 2; i++) {
            if (grvi_chain_decode(chain, scratch, 0, data + 1, (int64_t)n - 1, &boxes[i], out,
                                  strides) != GRV_OK)
                break;
        }
    }
    grvi_scratch_give(scratch);
    grvi_scratch_pool_fini(&pool);
    grvi_chain_destroy(&chain);
    return 0;
}

static int write_chunk(const char *folder, int number, const grvi_buffer *encoded)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/chain%d", folder, number);
    FILE *const file = fopen(path, "wb");
    if (file == NULL) return 1;
    (void)fputc(number, file);
    (void)fwrite(encoded->data, 1, (size_t)encoded->n, file);
    return fclose(file) != 0;
}

int fuzz_make_corpus(const char *folder)
{
    static const int64_t strides[] = {4 * COLUMNS, 4}, extent[] = {ROWS, COLUMNS};
    int32_t values[ROWS * COLUMNS];
    grvi_encode_input input = {.box = {{0, 0}, {ROWS, COLUMNS}},
                               .data = (const uint8_t *)values,
                               .strides = strides,
                               .extent = extent};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = i < 12 ? 9 : i; /* an empty inner chunk too */
    for (int number = 0; number < N_CHAINS; number++) {
        grvi_scratch_pool pool;
        grvi_scratch *scratch = NULL;
        grvi_chain *chain = NULL;
        bool empty = false;
        grvi_scratch_pool_init(&pool);
        if (make_chain(number, &chain) != GRV_OK || grvi_scratch_take(&pool, &scratch) != GRV_OK ||
            grvi_chain_encode(chain, scratch, 0, 1, &input, &scratch->encoded, &empty) != GRV_OK ||
            write_chunk(folder, number, &scratch->encoded) != 0)
            return 1;
        grvi_scratch_give(scratch);
        grvi_scratch_pool_fini(&pool);
        grvi_chain_destroy(&chain);
    }
    return 0;
}
