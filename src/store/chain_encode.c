/* Encoding a chunk, or changing part of one: the old chunk is decoded only where the new data do not cover it; of a
 * shard, the inner chunks that are not touched keep their encoded bytes. Inner chunks are encoded in parallel, each thread
 * a contiguous range of the inner grid into a buffer of its own. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/chain.h"

static bool covers(int rank, const grvi_box *box, const int64_t *extent)
{
    for (int i = 0; i < rank; i++) {
        if (box->start[i] != 0 || box->count[i] < extent[i]) return false;
    }
    return true;
}

static bool is_nothing(int rank, const int64_t *count)
{
    for (int i = 0; i < rank; i++) {
        if (count[i] == 0) return true;
    }
    return false;
}

/* Applies the byte codecs in order and appends the result to out. */
static grv_status apply_byte_codecs(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                                    const uint8_t *data, int64_t n, grvi_buffer *out)
{
    if (chain->n_codecs == 0) return grvi_buffer_append(out, data, n);
    for (int i = 0; i < chain->n_codecs; i++) {
        const grvi_codec *const codec = &chain->codecs[i];
        const bool is_last = i == chain->n_codecs - 1;
        const int64_t bound = codec->class->bound(n);
        GRV_CHECK(bound >= 0, GRV_E_UNSUPPORTED, "codec '%s' cannot take %lld bytes",
                  codec->class->name, (long long)n);
        grvi_buffer *const target = is_last ? out : &scratch->stage[depth][i % 2];
        const int64_t at = is_last ? out->n : 0;
        int64_t n_encoded = 0;
        GRV_TRY(grvi_buffer_reserve(target, at + bound));
        GRV_TRY(codec->class->encode(codec, &scratch->codecs, data, n, target->data + at, bound,
                                     &n_encoded));
        if (is_last) out->n += n_encoded;
        data = target->data;
        n = n_encoded;
    }
    return GRV_OK;
}

/* The chunk in stored order and the machine's byte order: the input itself where that is what it is, else put together in
 * the scratch from the old chunk or the fill value, and the input. */
static grv_status assemble(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                           const grvi_encode_input *input, bool may_borrow, const uint8_t **dense)
{
    grvi_box stored_box;
    int64_t stored_strides[GRVI_MAX_RANK], dense_strides[GRVI_MAX_RANK],
        array_strides[GRVI_MAX_RANK], first = 0;
    grvi_chain_permute_box(chain, &input->box, input->strides, &stored_box, stored_strides);
    const bool is_whole = covers(chain->rank, &input->box, chain->shape);
    if (may_borrow && is_whole &&
        grvi_is_dense(chain->rank, chain->stored_shape, chain->item_bytes, stored_strides)) {
        *dense = input->data;
        return GRV_OK;
    }
    grvi_buffer *const chunk = &scratch->stage[depth][2];
    GRV_TRY(grvi_buffer_reserve(chunk, chain->n_bytes));
    grvi_dense_strides(chain->rank, chain->stored_shape, chain->item_bytes, dense_strides);
    if (input->old != NULL && !covers(chain->rank, &input->box, input->extent)) {
        grvi_box all = {{0}, {0}};
        for (int i = 0; i < chain->rank; i++) {
            all.count[i] = chain->shape[i];
            array_strides[chain->order[i]] = dense_strides[i];
        }
        GRV_TRY(grvi_chain_decode(chain, scratch, depth, input->old, input->n_old, &all,
                                  chunk->data, array_strides));
    } else if (!is_whole) {
        grvi_region_fill(chain->rank, chain->stored_shape, chain->item_bytes, chain->fill,
                         chunk->data, dense_strides);
    }
    for (int i = 0; i < chain->rank; i++) first += stored_box.start[i] * dense_strides[i];
    grvi_region_copy(chain->rank, stored_box.count, chain->item_bytes, 1, input->data,
                     stored_strides, chunk->data + first, dense_strides);
    *dense = chunk->data;
    return GRV_OK;
}

/* Applies the filters to a dense chunk; *data: the result, in a stage of the scratch. */
static grv_status apply_filters(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                                const uint8_t **data)
{
    const int64_t n = chain->n_bytes / chain->item_bytes;
    for (int i = 0; i < chain->n_filters; i++) {
        const grvi_filter *const filter = &chain->filters[i];
        grvi_buffer *const stage = &scratch->stage[depth][3 + i % 2];
        GRV_TRY(grvi_buffer_reserve(stage, n * filter->encoded.n_bytes));
        GRV_TRY(filter->class->encode(filter, *data, n, stage->data));
        *data = stage->data;
    }
    return GRV_OK;
}

static grv_status encode_bytes(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                               const grvi_encode_input *input, grvi_buffer *out, bool *empty)
{
    const bool swap = chain->swap_bytes > 1, is_filtered = chain->n_filters > 0;
    const uint8_t *data = NULL;
    GRV_TRY(assemble(chain, scratch, depth, input, !swap || is_filtered, &data));
    *empty =
        grvi_is_all_fill(data, chain->n_bytes / chain->item_bytes, chain->item_bytes, chain->fill);
    if (*empty) return GRV_OK;
    GRV_TRY(apply_filters(chain, scratch, depth, &data));
    if (swap) {
        /* not the caller's memory: the chunk was put together, or filtered */
        grvi_buffer *const own = &scratch->stage[depth][is_filtered ? 4 - chain->n_filters % 2 : 2];
        GRV_ASSERT(own->data == data);
        grvi_swap_in_place(own->data, chain->n_filtered_bytes / chain->swap_bytes,
                           chain->swap_bytes);
    }
    return apply_byte_codecs(chain, scratch, depth, data, chain->n_filtered_bytes, out);
}

/* Encoding of a shard's inner chunks, shared by the threads. */
typedef struct shard_job {
    const grvi_chain *chain;
    int depth;
    const uint8_t *data;
    grvi_box stored_box;
    int64_t stored_strides[GRVI_MAX_RANK];
    int64_t stored_extent[GRVI_MAX_RANK];
    const uint8_t *old; /* the shard as it is now, its byte codecs undone; NULL if there is none */
    const grvi_shard_entry *old_entries;
    grvi_shard_entry *entries;      /* written; offsets count from the start of the thread's part */
    grvi_scratch **scratches;       /* per thread */
    grvi_buffer **parts;            /* per thread */
    int64_t *part_start;            /* per thread: length of its part before it began */
    int64_t *first_cell, *end_cell; /* per thread: its range */
    grvi_first_error *error;
} shard_job;

static grv_status encode_cell(const shard_job *job, int64_t number, grvi_scratch *scratch,
                              grvi_buffer *part, int64_t part_start)
{
    const grvi_chain *const chain = job->chain;
    const grvi_chain *const inner = chain->sharding->inner;
    const grvi_shard_entry *const old = job->old != NULL ? &job->old_entries[number] : NULL;
    const bool has_old = old != NULL && !grvi_shard_entry_is_empty(old);
    grvi_shard_entry *const entry = &job->entries[number];
    int64_t cell[GRVI_MAX_RANK], extent[GRVI_MAX_RANK], offset = 0, rest = number;
    grvi_encode_input input = {.strides = job->stored_strides, .extent = extent};
    bool empty = true;
    for (int i = chain->rank - 1; i >= 0; i--) {
        cell[i] = rest % chain->sharding->grid[i];
        rest /= chain->sharding->grid[i];
        extent[i] = grvi_max_i64(
            0, grvi_min_i64(inner->shape[i], job->stored_extent[i] - cell[i] * inner->shape[i]));
    }
    grvi_shard_cell_part(chain, &job->stored_box, job->stored_strides, cell, &input.box, &offset);
    const int64_t at = part->n;
    if (is_nothing(chain->rank, input.box.count)) {
        empty = !has_old;
        if (has_old)
            GRV_TRY(grvi_buffer_append(part, job->old + old->offset, (int64_t)old->n_bytes));
    } else {
        input.data = job->data + offset;
        input.old = has_old ? job->old + old->offset : NULL;
        input.n_old = has_old ? (int64_t)old->n_bytes : 0;
        GRV_TRY(grvi_chain_encode(inner, scratch, job->depth + 1, 1, &input, part, &empty));
    }
    *entry = empty ? (grvi_shard_entry){GRVI_SHARD_EMPTY, GRVI_SHARD_EMPTY}
                   : (grvi_shard_entry){(uint64_t)(at - part_start), (uint64_t)(part->n - at)};
    return GRV_OK;
}

static void encode_cells(void *argument, int thread, int64_t begin, int64_t end)
{
    const shard_job *const job = argument;
    job->first_cell[thread] = begin;
    job->end_cell[thread] = end;
    for (int64_t i = begin; i < end && !grvi_first_error_is_set(job->error); i++)
        grvi_first_error_note(job->error, i,
                              encode_cell(job, i, job->scratches[thread], job->parts[thread],
                                          job->part_start[thread]));
}

/* Appends the parts of the other threads to the first, and makes the offsets count from the start of the shard. */
static grv_status join_parts(const shard_job *job, int n_threads, int64_t shard_start,
                             grvi_buffer *out)
{
    int64_t total = out->n;
    for (int t = 1; t < n_threads; t++) total += job->parts[t]->n;
    GRV_TRY(grvi_buffer_reserve(out, total));
    for (int t = 0; t < n_threads; t++) {
        const int64_t base = t == 0 ? job->part_start[0] : out->n;
        if (t > 0) GRV_TRY(grvi_buffer_append(out, job->parts[t]->data, job->parts[t]->n));
        for (int64_t i = job->first_cell[t]; i < job->end_cell[t]; i++) {
            if (!grvi_shard_entry_is_empty(&job->entries[i]))
                job->entries[i].offset += (uint64_t)(base - shard_start);
        }
    }
    return GRV_OK;
}

enum { MAX_ENCODE_THREADS = 256 };

/* Encodes all inner chunks into out, which ends at the first data byte. */
static grv_status run_shard_job(shard_job *job, grvi_scratch *scratch, int n_threads,
                                int64_t shard_start, grvi_buffer *out)
{
    grv_status status = GRV_OK;
    grvi_scratch *scratches[MAX_ENCODE_THREADS] = {NULL};
    grvi_buffer *parts[MAX_ENCODE_THREADS] = {NULL};
    int64_t part_start[MAX_ENCODE_THREADS] = {0}, first_cell[MAX_ENCODE_THREADS] = {0},
            end_cell[MAX_ENCODE_THREADS] = {0};
    grvi_first_error error;
    const int64_t n_inner = job->chain->sharding->n_inner;
    n_threads =
        (int)grvi_max_i64(1, grvi_min_i64(grvi_min_i64(n_threads, MAX_ENCODE_THREADS), n_inner));
    scratches[0] = scratch;
    parts[0] = out;
    part_start[0] = out->n;
    for (int t = 1; t < n_threads; t++) {
        GRV_TRY_GOTO(grvi_scratch_take(scratch->pool, &scratches[t]));
        parts[t] = &scratches[t]->encoded;
    }
    if (job->old == NULL && job->chain->sharding->inner->sharding == NULL) {
        /* what a new shard may need, at once: a buffer that grows by steps is copied, and its pages are fresh, many times */
        const int64_t cells = grvi_ceil_div(n_inner, n_threads), most = (int64_t)64 << 20;
        const int64_t room = grvi_min_i64(most, cells * job->chain->sharding->inner->n_bytes);
        for (int t = 0; t < n_threads; t++)
            GRV_TRY_GOTO(grvi_buffer_reserve(parts[t], parts[t]->n + room));
    }
    job->scratches = scratches;
    job->parts = parts;
    job->part_start = part_start;
    job->first_cell = first_cell;
    job->end_cell = end_cell;
    job->error = &error;
    grvi_first_error_init(&error);
    grv_parallel_for(n_threads, n_inner, encode_cells, job);
    GRV_TRY_GOTO(grvi_first_error_fini(&error));
    GRV_TRY_GOTO(join_parts(job, n_threads, shard_start, out));
done:
    for (int t = 1; t < n_threads; t++) grvi_scratch_give(scratches[t]);
    return status;
}

/* The index of the old shard, into the scratch; undoing byte codecs around a shard is left to chain_decode, which none but exotic files need. */
static grv_status read_old_index(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                                 const grvi_encode_input *input, shard_job *job)
{
    int64_t offset = 0;
    grvi_buffer *const index = &scratch->entries[depth][0];
    GRV_TRY(grvi_shard_index_place(chain->sharding, input->n_old, &offset));
    GRV_TRY(
        grvi_buffer_reserve(index, chain->sharding->n_inner * (int64_t)sizeof(grvi_shard_entry)));
    job->old = input->old;
    job->old_entries = (const grvi_shard_entry *)(const void *)index->data;
    return grvi_shard_index_decode(chain->sharding, input->old + offset, input->n_old,
                                   (grvi_shard_entry *)(void *)index->data);
}

static grv_status encode_shard(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                               int n_threads, const grvi_encode_input *input, grvi_buffer *out,
                               bool *empty)
{
    const grvi_sharding *const sharding = chain->sharding;
    const int64_t shard_start = out->n;
    grvi_buffer *const index = &scratch->entries[depth][1];
    shard_job job = {.chain = chain, .depth = depth, .data = input->data};
    grvi_chain_permute_box(chain, &input->box, input->strides, &job.stored_box, job.stored_strides);
    grvi_chain_permute(chain, input->extent, job.stored_extent);
    GRV_TRY(grvi_buffer_reserve(index, sharding->n_inner * (int64_t)sizeof(grvi_shard_entry)));
    job.entries = (grvi_shard_entry *)(void *)index->data;
    if (input->old != NULL && !covers(chain->rank, &input->box, input->extent))
        GRV_TRY(read_old_index(chain, scratch, depth, input, &job));
    if (sharding->index_at_start) {
        GRV_TRY(grvi_buffer_reserve(out, out->n + sharding->index_bytes));
        out->n += sharding->index_bytes;
    }
    GRV_TRY(run_shard_job(&job, scratch, n_threads, shard_start, out));
    *empty = true;
    for (int64_t i = 0; i < sharding->n_inner && *empty; i++)
        *empty = grvi_shard_entry_is_empty(&job.entries[i]);
    if (*empty) {
        out->n = shard_start;
        return GRV_OK;
    }
    GRV_TRY(grvi_buffer_reserve(out, out->n + sharding->index_bytes));
    grvi_shard_index_encode(sharding, job.entries,
                            out->data + (sharding->index_at_start ? shard_start : out->n));
    if (!sharding->index_at_start) out->n += sharding->index_bytes;
    return GRV_OK;
}

grv_status grvi_chain_encode(const grvi_chain *chain, grvi_scratch *scratch, int depth,
                             int n_threads, const grvi_encode_input *input, grvi_buffer *out,
                             bool *empty)
{
    GRV_ASSERT(depth < GRVI_MAX_DEPTH);
    if (chain->sharding == NULL) return encode_bytes(chain, scratch, depth, input, out, empty);
    if (grvi_chain_is_plain_shard(chain))
        return encode_shard(chain, scratch, depth, n_threads, input, out, empty);
    GRV_FAIL(GRV_E_UNSUPPORTED, "writing shards that have a codec after sharding_indexed ('%s')",
             chain->codecs[0].class->name);
}
