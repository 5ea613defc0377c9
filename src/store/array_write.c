/* Writing a region: each stored object that it touches is encoded in memory and published whole.
 * Of an object that is covered only in part, the old bytes are read first. From there to its publication a lock keeps other
 * writers of the same object out, so that none of their changes is lost. Chunks are written in parallel with each other;
 * of shards, one at a time, the inner chunks are encoded in parallel, so that memory holds one shard. */
#include "core/alloc.h"
#include "grove/core.h"
#include "store/store_impl.h"

typedef struct write_job {
    grv_array *array;
    const int64_t *start, *count;
    int64_t strides[GRVI_MAX_RANK];
    const uint8_t *in;
    int64_t first[GRVI_MAX_RANK], n[GRVI_MAX_RANK]; /* stored objects that the region touches */
    int encode_threads;
    grvi_first_error error;
} write_job;

static bool is_covered(int rank, const grvi_box *box, const int64_t *extent)
{
    for (int i = 0; i < rank; i++) {
        if (box->count[i] != extent[i]) return false;
    }
    return true;
}

/* The object as it is now, into scratch->encoded; *found = false if there is none. */
static grv_status read_old(grv_store *store, const char *key, grvi_scratch *scratch, bool *found)
{
    grvi_object object;
    GRV_TRY(store->kv->class->open_object(store->kv, key, &object, found));
    if (!*found) return GRV_OK;
    grv_status status = grvi_buffer_reserve(&scratch->encoded, object.n_bytes);
    if (status == GRV_OK)
        status = store->kv->class->read_object(store->kv, &object, key, 0, object.n_bytes,
                                               scratch->encoded.data);
    scratch->encoded.n = object.n_bytes;
    store->kv->class->close_object(store->kv, &object);
    return status;
}

static grv_status encode_and_publish(const write_job *job, const int64_t *position, const char *key,
                                     const grvi_encode_input *input, grvi_scratch *scratch)
{
    grv_store *const store = job->array->store;
    bool empty = false;
    scratch->encoded.n = 0;
    GRV_TRY(grvi_chain_encode(job->array->metadata.chain, scratch, 0, job->encode_threads, input,
                              &scratch->encoded, &empty));
    grvi_index_cache_forget(&store->indices, job->array->id,
                            grvi_array_object_number(job->array, position));
    if (empty) return store->kv->class->remove(store->kv, key);
    GRV_TRY(store->kv->class->put(store->kv, key, scratch->encoded.data, scratch->encoded.n));
    (void)atomic_fetch_add(&store->bytes_written, scratch->encoded.n);
    return GRV_OK;
}

static grv_status write_object(const write_job *job, const int64_t *position, grvi_scratch *scratch)
{
    grv_status status = GRV_OK;
    grv_array *const array = job->array;
    const grv_array_desc *const desc = &array->metadata.desc;
    int64_t extent[GRVI_MAX_RANK], offset = 0;
    grvi_encode_input input = {.strides = job->strides, .extent = extent};
    grvi_scratch *old = NULL;
    grvi_kv *const kv = array->store->kv;
    grvi_lock lock = {-1};
    char key[GRVI_KEY_BYTES], text[256];
    grvi_array_object_part(array, position, job->start, job->count, job->strides, &input.box,
                           &offset);
    input.data = job->in + offset;
    for (int i = 0; i < desc->rank; i++)
        extent[i] =
            grvi_min_i64(desc->chunk_shape[i], desc->shape[i] - position[i] * desc->chunk_shape[i]);
    GRV_TRY(grvi_array_key(array, position, key));
    GRV_TRY_GOTO(
        kv->class->lock(kv, array->path, grvi_array_object_number(array, position), &lock));
    if (!is_covered(desc->rank, &input.box, extent)) {
        bool found = false;
        GRV_TRY_GOTO(grvi_scratch_take(&array->store->scratches, &old));
        GRV_TRY_GOTO(read_old(array->store, key, old, &found));
        input.old = found ? old->encoded.data : NULL;
        input.n_old = found ? old->encoded.n : 0;
    }
    GRV_TRY_GOTO(encode_and_publish(job, position, key, &input, scratch));
done:
    kv->class->unlock(kv, &lock);
    grvi_scratch_give(old);
    if (status == GRV_OK) return GRV_OK;
    grvi_position_text(desc->rank, position, text, sizeof text);
    GRV_FAIL(status, "writing %s %s of '%s': %s", desc->sharded ? "shard" : "chunk", text,
             grvi_array_name(array), grvi_reason(status));
}

static void write_objects(void *argument, int thread, int64_t begin, int64_t end)
{
    write_job *const job = argument;
    const int rank = job->array->metadata.desc.rank;
    grvi_scratch *scratch = NULL;
    int64_t position[GRVI_MAX_RANK] = {0};
    (void)thread;
    const grv_status status = grvi_scratch_take(&job->array->store->scratches, &scratch);
    grvi_first_error_note(&job->error, begin, status);
    for (int64_t number = begin;
         number < end && status == GRV_OK && !grvi_first_error_is_set(&job->error); number++) {
        int64_t rest = number;
        for (int i = rank - 1; i >= 0; i--) {
            position[i] = job->first[i] + rest % job->n[i];
            rest /= job->n[i];
        }
        grvi_first_error_note(&job->error, number, write_object(job, position, scratch));
    }
    grvi_scratch_give(scratch);
}

grv_status grv_array_write(grv_array *array, const int64_t *start, const int64_t *count,
                           const void *in, const int64_t *strides)
{
    write_job job = {.array = array, .start = start, .count = count, .in = in, .encode_threads = 1};
    const grv_array_desc *const desc = &array->metadata.desc;
    int64_t n_objects = 1;
    GRV_TRY(grvi_store_check_writable(array->store));
    GRV_TRY(grvi_array_check_region(array, start, count));
    GRV_TRY(grvi_array_byte_strides(array, count, strides, job.strides));
    for (int i = 0; i < desc->rank; i++) {
        if (count[i] == 0) return GRV_OK;
        job.first[i] = start[i] / desc->chunk_shape[i];
        job.n[i] = (start[i] + count[i] - 1) / desc->chunk_shape[i] - job.first[i] + 1;
        n_objects *= job.n[i]; /* at most the elements of the region */
    }
    int n_threads = array->store->params.n_threads;
    if (desc->sharded) {
        job.encode_threads = n_threads;
        n_threads = 1;
    }
    grvi_first_error_init(&job.error);
    grv_parallel_for(n_threads, n_objects, write_objects, &job);
    GRV_TRY(grvi_first_error_fini(&job.error));
    return GRV_OK;
}
