/* The floor of a warm read: what ZSTD_decompressDCtx or blosc_decompress_ctx do by themselves with the chunks of a store, already in
 * memory, on all threads. Nothing else is in the loop: no files, no checks, no places to find. */
#include <string.h>

#include <blosc.h>
#include <zstd.h>

#include "core/alloc.h"
#include "core/median.h"
#include "grove/core.h"
#include "store/store_bench.h"
#include "store/store_impl.h"

enum { KIND_COPY, KIND_ZSTD, KIND_BLOSC };

/* Encoded inner chunks, in the order of their places in memory. */
typedef struct floor_input {
    int kind;
    uint8_t *shards;          /* whole shards, one after the other */
    grvi_shard_entry *chunks; /* offsets into `shards` */
    int64_t n_chunks, chunk_bytes;
    uint8_t *out;
    grvi_first_error *error;
} floor_input;

/* ---- taking the chunks into memory ---- */

static grv_status load_shard(grv_array *array, int64_t number, int64_t room, int64_t *n_used,
                             floor_input *input)
{
    grv_status status = GRV_OK;
    grv_store *const store = array->store;
    const grvi_sharding *const sharding = array->metadata.chain->sharding;
    const int64_t position[GRVI_MAX_RANK] = {number};
    grvi_shard_entry *const entries = input->chunks + number * sharding->n_inner;
    grvi_object object;
    char key[GRVI_KEY_BYTES];
    bool found = false;
    int64_t index_offset = 0;
    GRV_TRY(grvi_array_key(array, position, key));
    GRV_TRY(store->kv->class->open_object(store->kv, key, &object, &found));
    GRV_CHECK(found, GRV_E_NOT_FOUND, "shard %s is absent", key);
    GRV_ASSERT(object.n_bytes <= room - *n_used); /* `room` allows for what no compressor shrinks */
    uint8_t *const data = input->shards + *n_used;
    GRV_TRY_GOTO(store->kv->class->read_object(store->kv, &object, key, 0, object.n_bytes, data));
    GRV_TRY_GOTO(grvi_shard_index_place(sharding, object.n_bytes, &index_offset));
    GRV_TRY_GOTO(grvi_shard_index_decode(sharding, data + index_offset, object.n_bytes, entries));
    for (int64_t i = 0; i < sharding->n_inner; i++) entries[i].offset += (uint64_t)*n_used;
    *n_used += object.n_bytes;
done:
    store->kv->class->close_object(store->kv, &object);
    return status;
}

static int kind_of(const grvi_chain *chain)
{
    if (chain->n_codecs == 0) return KIND_COPY;
    return strcmp(chain->codecs[0].class->name, "zstd") == 0 ? KIND_ZSTD : KIND_BLOSC;
}

/* ---- decoding them ---- */

static grv_status decode_chunk(const floor_input *input, ZSTD_DCtx *context, int64_t i)
{
    const grvi_shard_entry *const e = &input->chunks[i];
    const uint8_t *const in = input->shards + e->offset;
    uint8_t *const out = input->out + i * input->chunk_bytes;
    const size_t n = (size_t)input->chunk_bytes;
    size_t n_out = n;
    if (input->kind == KIND_COPY)
        memcpy(out, in, n);
    else if (input->kind == KIND_ZSTD)
        n_out = ZSTD_decompressDCtx(context, out, n, in, e->n_bytes);
    else
        n_out = (size_t)blosc_decompress_ctx(in, out, n, 1);
    GRV_CHECK(n_out == n, GRV_E_FORMAT, "chunk %lld does not decode", (long long)i);
    return GRV_OK;
}

static void decode_chunks(void *argument, int thread, int64_t begin, int64_t end)
{
    const floor_input *const input = argument;
    ZSTD_DCtx *const context = ZSTD_createDCtx();
    (void)thread;
    for (int64_t i = begin; i < end && context != NULL; i++)
        grvi_first_error_note(input->error, i, decode_chunk(input, context, i));
    (void)ZSTD_freeDCtx(context);
}

static grv_status time_decoding(floor_input *input, int n_threads, double *seconds, double *cpu)
{
    grvi_first_error error;
    grvi_first_error_init(&error);
    input->error = &error;
    const double start = grv_clock_seconds(), cpu_start = grvi_processor_seconds();
    grv_parallel_for(n_threads, input->n_chunks, decode_chunks, input);
    *seconds = grv_clock_seconds() - start;
    *cpu = grvi_processor_seconds() - cpu_start;
    return grvi_first_error_fini(&error);
}

grv_status grvi_store_floor(grv_array *array, int n_threads, int n_repetitions, float *out,
                            int64_t n_rows, grvi_store_rate *rate)
{
    grv_status status = GRV_OK;
    const grvi_chain *const chain = array->metadata.chain;
    const int64_t n_shards = n_rows / chain->shape[0];
    const int64_t room =
        n_shards * (chain->sharding->n_inner * chain->sharding->inner->n_bytes * 5 / 4);
    int64_t n_used = 0;
    double *seconds = NULL, *cpu = NULL;
    floor_input input = {.kind = kind_of(chain->sharding->inner),
                         .n_chunks = n_shards * chain->sharding->n_inner,
                         .chunk_bytes = chain->sharding->inner->n_bytes,
                         .out = (uint8_t *)out};
    const double bytes = (double)(input.n_chunks * input.chunk_bytes);
    GRV_TRY_GOTO(GRVI_ALLOC(&input.shards, room));
    GRV_TRY_GOTO(GRVI_ALLOC(&input.chunks, input.n_chunks));
    GRV_TRY_GOTO(GRVI_ALLOC(&seconds, n_repetitions + 1));
    GRV_TRY_GOTO(GRVI_ALLOC(&cpu, n_repetitions + 1));
    for (int64_t i = 0; i < n_shards; i++)
        GRV_TRY_GOTO(load_shard(array, i, room, &n_used, &input));
    /* the first is for warming up */
    for (int i = 0; i <= n_repetitions; i++)
        GRV_TRY_GOTO(time_decoding(&input, n_threads, &seconds[i], &cpu[i]));
    *rate = (grvi_store_rate){bytes / grvi_median(n_repetitions, seconds + 1),
                              bytes / grvi_median(n_repetitions, cpu + 1)};
done:
    grv_free(cpu);
    grv_free(seconds);
    grv_free(input.chunks);
    grv_free(input.shards);
    return status;
}
