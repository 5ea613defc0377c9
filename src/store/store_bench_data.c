/* Problems of the store's benchmark, and their data: fields that are smooth plus a little noise, and clouds of points in no order.
 * Every value is a function of its index, so that any part can be made anew and compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "grove/core.h"
#include "store/store_bench.h"

static const char *const codec_names[] = {"none", "zstd", "blosc-lz4", "blosc-zstd"};
static const grv_compressor codec_kinds[] = {GRV_COMPRESSOR_NONE, GRV_COMPRESSOR_ZSTD,
                                             GRV_COMPRESSOR_BLOSC_LZ4, GRV_COMPRESSOR_BLOSC_ZSTD};
enum { N_CODECS = sizeof codec_names / sizeof codec_names[0], MAX_TEXT = 256 };

static const int64_t field_points = (int64_t)GRVI_FIELD_SIDE * GRVI_FIELD_SIDE * GRVI_FIELD_SIDE;

/* ---- the problem language ---- */

static bool parse_integer(const char *text, int64_t low, int64_t high, int64_t *value)
{
    char *end = NULL;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && *value >= low && *value <= high;
}

static bool parse_option(const char *word, grvi_store_problem *problem)
{
    int64_t n = 0;
    if (strcmp(word, "cold") == 0) return problem->cold = true;
    if (strcmp(word, "fresh") == 0) return problem->fresh = true;
    if (word[0] == 't' && parse_integer(word + 1, 1, 1024, &n)) {
        problem->n_threads = (int)n;
        return true;
    }
    if (word[0] == 'r' && parse_integer(word + 1, 1, 1000, &n)) {
        problem->n_repetitions = (int)n;
        return true;
    }
    return parse_integer(word, 1, 1 << 20, &problem->mebibytes);
}

static bool parse_word(const char *word, int number, grvi_store_problem *problem)
{
    if (number == 0) {
        problem->points = strcmp(word, "points") == 0;
        return problem->points || strcmp(word, "fields") == 0;
    }
    if (number > 1) return parse_option(word, problem);
    for (int i = 0; i < N_CODECS; i++) {
        if (strcmp(word, codec_names[i]) == 0) problem->codec = codec_names[i];
    }
    return problem->codec != NULL;
}

grv_status grvi_store_problem_parse(const char *text, grvi_store_problem *problem)
{
    char words[MAX_TEXT], *rest = NULL;
    int n = 0;
    *problem = (grvi_store_problem){.mebibytes = 256, .n_threads = 1, .n_repetitions = 3};
    bool known = snprintf(words, sizeof words, "%s", text) < (int)sizeof words;
    const char *word = strtok_r(words, ":", &rest);
    if (word != NULL && strcmp(word, "store") == 0) word = strtok_r(NULL, ":", &rest);
    for (; known && word != NULL; word = strtok_r(NULL, ":", &rest))
        known = parse_word(word, n++, problem);
    GRV_CHECK(known && n >= 2, GRV_E_ARG,
              "store problem '%.80s': <fields|points>:<none|zstd|blosc-lz4|blosc-zstd>"
              "[:<MiB>][:t<threads>][:r<repetitions>][:cold][:fresh] expected, e.g. "
              "store:fields:zstd:1024:t2",
              text);
    return GRV_OK;
}

void grvi_store_problem_print(const grvi_store_problem *problem, char *text, size_t n_text)
{
    (void)snprintf(text, n_text, "store:%s:%s:%lld:t%d:r%d%s%s",
                   problem->points ? "points" : "fields", problem->codec,
                   (long long)problem->mebibytes, problem->n_threads, problem->n_repetitions,
                   problem->cold ? ":cold" : "", problem->fresh ? ":fresh" : "");
}

void grvi_store_problem_array(const grvi_store_problem *problem, char *name, size_t n_name)
{
    (void)snprintf(name, n_name, "%s-%s-%lld", problem->points ? "points" : "fields",
                   problem->codec, (long long)problem->mebibytes);
}

grv_array_desc grvi_store_problem_desc(const grvi_store_problem *problem)
{
    static const int64_t field_chunk[] = {1, GRVI_FIELD_SIDE, GRVI_FIELD_SIDE, GRVI_FIELD_SIDE};
    const int64_t bytes = problem->mebibytes << 20;
    grv_array_desc desc = grv_array_desc_default();
    desc.sharded = true;
    for (int i = 0; i < N_CODECS; i++) {
        if (strcmp(problem->codec, codec_names[i]) == 0) desc.compressor = codec_kinds[i];
    }
    if (problem->points) {
        const int64_t shard_bytes =
            GRVI_POINT_SHARD_ROWS * GRVI_POINT_COLUMNS * (int64_t)sizeof(float);
        desc.rank = 2;
        desc.shape[0] = (bytes + shard_bytes - 1) / shard_bytes * GRVI_POINT_SHARD_ROWS;
        desc.chunk_shape[0] = GRVI_POINT_SHARD_ROWS;
        desc.inner_shape[0] = GRVI_POINT_CHUNK_ROWS;
        desc.shape[1] = desc.chunk_shape[1] = desc.inner_shape[1] = GRVI_POINT_COLUMNS;
        return desc;
    }
    desc.rank = 4;
    for (int i = 0; i < 4; i++)
        desc.shape[i] = desc.chunk_shape[i] = desc.inner_shape[i] = field_chunk[i];
    desc.shape[0] = (bytes + 4 * field_points - 1) / (4 * field_points);
    desc.inner_shape[1] = GRVI_FIELD_PLANES;
    return desc;
}

int64_t grvi_store_problem_place(int64_t i, int64_t count, int64_t n, int factor)
{
    static const uint64_t factors[] = {2654435761U, 2246822519U};
    const uint64_t draw = (uint64_t)(i + 1) * factors[factor] % ((uint64_t)1 << 32);
    return (int64_t)(draw * (uint64_t)(n - count + 1) >> 32);
}

/* ---- the data ---- */

/* Uniform in [-1, 1): a hash of the index (splitmix64's finish), cheap because gigabytes are made of it. */
static float noise(uint64_t i)
{
    i = (i + 1) * 0x9e3779b97f4a7c15U;
    i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9U;
    i ^= i >> 27;
    return (float)(int32_t)(i >> 40) * (1.0F / (1 << 23)) - 1;
}

static void fill_field(int64_t number, float *out)
{
    float waves[3][GRVI_FIELD_SIDE];
    const double turn = 6.283185307179586 / GRVI_FIELD_SIDE;
    for (int axis = 0; axis < 3; axis++) {
        for (int i = 0; i < GRVI_FIELD_SIDE; i++)
            waves[axis][i] =
                (float)sin(turn * (double)(1 + (number + axis) % 5) * i + (double)number);
    }
    const uint64_t first = (uint64_t)(number * field_points);
    for (int64_t i = 0; i < GRVI_FIELD_SIDE; i++) {
        for (int64_t j = 0; j < GRVI_FIELD_SIDE; j++) {
            const int64_t line = (i * GRVI_FIELD_SIDE + j) * GRVI_FIELD_SIDE;
            for (int64_t k = 0; k < GRVI_FIELD_SIDE; k++)
                out[line + k] = waves[0][i] * waves[1][j] + waves[2][k] +
                                1e-3F * noise(first + (uint64_t)(line + k));
        }
    }
}

static void fill_point(int64_t number, float *out)
{
    for (int i = 0; i < 3; i++) out[i] = noise(4 * (uint64_t)number + (uint64_t)i);
    out[3] = out[0] * out[1] - out[2] * out[2];
    out[4] = out[0] + 0.25F * out[2];
    out[5] = 1e-3F * noise(4 * (uint64_t)number + 3);
}

typedef struct rows_call {
    bool points;
    int64_t first_row;
    float *out;
} rows_call;

static void fill_rows(void *argument, int thread, int64_t begin, int64_t end)
{
    const rows_call *const call = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        if (call->points)
            fill_point(call->first_row + i, call->out + i * GRVI_POINT_COLUMNS);
        else
            fill_field(call->first_row + i, call->out + i * field_points);
    }
}

void grvi_store_problem_rows(const grvi_store_problem *problem, int64_t first_row, int64_t n_rows,
                             float *out)
{
    rows_call call = {problem->points, first_row, out};
    grv_parallel_for(problem->n_threads, n_rows, fill_rows, &call);
}

double grvi_processor_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
