/* Blosc chunks of 1 MiB float32 (a sine with noise), one thread: decoding 4 of 256 rows, the whole by the block decoder of the store, and
 * the whole by the library. bench_blosc: prints CSV, medians of 51 in processor time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <blosc.h>

#include "core/median.h"
#include "grove/core.h"
#include "store/chain.h"

enum { ROWS = 256, COLUMNS = 1024, N_VALUES = ROWS * COLUMNS, RUNS = 51 };

static const int64_t shape[] = {ROWS, COLUMNS}, strides[] = {4 * COLUMNS, 4};
static float values[N_VALUES], out[N_VALUES];

static void must(grv_status status)
{
    if (status == GRV_OK) return;
    fprintf(stderr, "bench_blosc: %s\n", grv_error_message());
    exit(1);
}

static double seconds_used(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static grvi_chain *make_chain(const char *compressor, const char *shuffle, int block_bytes)
{
    static const uint8_t fill[4] = {0};
    const grvi_chain_params params = {2, {GRV_STORE_F32, 4}, fill, INT32_MAX, "bench"};
    char text[512];
    grvi_json *codecs = NULL;
    grvi_chain *chain = NULL;
    (void)snprintf(text, sizeof text,
                   "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":"
                   "\"blosc\",\"configuration\":{\"cname\":\"%s\",\"clevel\":%d,\"shuffle\":\"%s\","
                   "\"typesize\":4,\"blocksize\":%d}}]",
                   compressor, strcmp(compressor, "zstd") == 0 ? 3 : 5, shuffle, block_bytes);
    must(grvi_json_parse(text, (int64_t)strlen(text), "codecs", &codecs));
    must(grvi_chain_create(codecs, shape, &params, &chain));
    grvi_json_free(codecs);
    return chain;
}

static double decode_us(const grvi_chain *chain, grvi_scratch *scratch, const grvi_box *box)
{
    double seconds[RUNS];
    for (int run = 0; run < RUNS; run++) {
        const double start = seconds_used();
        must(grvi_chain_decode(chain, scratch, 0, scratch->encoded.data, scratch->encoded.n, box,
                               (uint8_t *)out, strides));
        seconds[run] = seconds_used() - start;
    }
    return 1e6 * grvi_median(RUNS, seconds);
}

static double library_us(const grvi_scratch *scratch)
{
    double seconds[RUNS];
    for (int run = 0; run < RUNS; run++) {
        const double start = seconds_used();
        if (blosc_decompress_ctx(scratch->encoded.data, out, sizeof out, 1) != (int)sizeof out)
            exit(1);
        seconds[run] = seconds_used() - start;
    }
    return 1e6 * grvi_median(RUNS, seconds);
}

static void measure(grvi_scratch *scratch, const char *compressor, const char *shuffle, int asked)
{
    static const grvi_box all = {{0, 0}, {ROWS, COLUMNS}}, some = {{100, 0}, {4, COLUMNS}};
    const grvi_encode_input input = {
        .box = all, .data = (const uint8_t *)values, .strides = strides, .extent = shape};
    grvi_chain *chain = make_chain(compressor, shuffle, asked);
    int32_t block_bytes = 0;
    bool empty = false;
    scratch->encoded.n = 0;
    must(grvi_chain_encode(chain, scratch, 0, 1, &input, &scratch->encoded, &empty));
    memcpy(&block_bytes, scratch->encoded.data + 8, sizeof block_bytes);
    const double some_us = decode_us(chain, scratch, &some),
                 all_us = decode_us(chain, scratch, &all);
    if (memcmp(out, values, sizeof out) != 0) exit(1);
    (void)printf("%s,%s,%d,%.0f,%.0f,%.0f\n", compressor, shuffle, block_bytes, some_us, all_us,
                 library_us(scratch));
    grvi_chain_destroy(&chain);
}

int main(void)
{
    static const char *const compressors[] = {"lz4", "zstd", "zlib"};
    static const int block_bytes[] = {16384, 65536, 0};
    grvi_scratch_pool pool;
    grvi_scratch *scratch = NULL;
    for (int i = 0; i < N_VALUES; i++)
        values[i] = sinf((float)i * 1e-4f) + 1e-6f * (float)(i * 2654435761U % 1000);
    grvi_scratch_pool_init(&pool);
    must(grvi_scratch_take(&pool, &scratch));
    (void)printf("compressor,shuffle,block_bytes,rows_4_us,whole_us,library_whole_us\n");
    for (int c = 0; c < 3; c++) {
        for (int b = 0; b < 3; b++) measure(scratch, compressors[c], "shuffle", block_bytes[b]);
    }
    measure(scratch, "lz4", "bitshuffle", 65536);
    grvi_scratch_give(scratch);
    grvi_scratch_pool_fini(&pool);
    return 0;
}
