/* Shuffling arrays in tandem along their first axis, out of core.
 *
 * Pass 1 reads the sources in blocks of rows, in order. The rows of a block, each with its key before it (a record), are grouped by
 * bucket (a range of keys whose rows fit in memory, shuffle_bins.h) and appended to the bucket's place in one temporary file; sizes of
 * buckets are known from counting the keys before. Within a bucket, records stay in the order of their rows.
 * Pass 2 loads one bucket after the other, sorts it, and writes whole target objects; what is left of the last begun object waits for
 * the next bucket. So all reads and writes are long: with blocks and buckets of B bytes and data of D, pass 1 writes pieces of about
 * B^2 / D, and B is chosen so that these are at least 256 KiB, if memory allows.
 *
 * Memory, for rows of R bytes in all arrays together: 2 R + 24 bytes for each row of a block or bucket, plus one target object of each
 * array and what coding takes. The result depends neither on memory nor on threads. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/shuffle_bins.h"
#include "store/store_tools_impl.h"

static const double enough_bytes = 64.0 * 1024 * 1024, piece_bytes = 256.0 * 1024;
enum { KEY_BYTES = 8, BYTES_PER_ROW_BESIDES = 24 };

grv_shuffle_params grv_shuffle_params_default(void)
{
    return (grv_shuffle_params){.memory_bytes = (int64_t)1 << 30};
}

/* One of the arrays. */
typedef struct tandem_array {
    char *name; /* "" for a single array */
    char *path; /* of the new one */
    grv_array *from, *to;
    grv_array_desc desc;
    grvi_text codecs, attributes; /* strings of desc */
    int64_t row_bytes, offset;    /* in a record */
    int64_t object_rows;          /* rows of a target object */
    uint8_t *rows; /* pass 1: of the block; pass 2: those that wait and those of the bucket */
    int64_t n_waiting, next_row;
} tandem_array;

typedef struct shuffler {
    grv_store *source, *target;
    const char *source_path, *target_path;
    const grv_shuffle_params *params;
    tandem_array *arrays;
    int n_arrays, n_threads;
    bool is_group;
    int64_t n_rows, row_bytes, record_bytes;
    int64_t block_rows, bucket_rows; /* that fit in memory */
    grvi_shuffle_buckets buckets;
    int file;     /* of records, bucket after bucket; -1: not open */
    int64_t done; /* bytes of both passes */
} shuffler;

/* ---- what is shuffled ---- */

static grv_status add_array(shuffler *s, const char *name)
{
    grv_status status = GRV_OK;
    grvi_text from = {0}, to = {0};
    GRV_TRY(GRVI_REALLOC(&s->arrays, s->n_arrays + 1));
    tandem_array *const a = &s->arrays[s->n_arrays++];
    *a = (tandem_array){0};
    grvi_join_key(&from, s->source_path, name);
    grvi_join_key(&to, s->target_path, name);
    GRV_TRY_GOTO(grvi_text_status(&from));
    GRV_TRY_GOTO(grvi_text_status(&to));
    GRV_TRY_GOTO(grvi_strdup(name, &a->name));
    GRV_TRY_GOTO(grvi_strdup(grvi_text_get(&to), &a->path));
    GRV_TRY_GOTO(grv_array_open(s->source, grvi_text_get(&from), &a->from));
    const grv_array_desc *const desc = &a->from->metadata.desc;
    GRV_CHECK_GOTO(desc->rank > 0, GRV_E_SHAPE, "'%s' is a scalar and has no rows",
                   grvi_array_name(a->from));
    if (s->n_arrays == 1) s->n_rows = desc->shape[0];
    GRV_CHECK_GOTO(desc->shape[0] == s->n_rows, GRV_E_SHAPE,
                   "'%s' has %lld rows, '%s' has %lld: arrays are shuffled in tandem; name those "
                   "that belong together",
                   grvi_array_name(s->arrays[0].from), (long long)s->n_rows,
                   grvi_array_name(a->from), (long long)desc->shape[0]);
    a->row_bytes =
        grvi_box_bytes(desc->rank - 1, desc->shape + 1, a->from->metadata.chain->item_bytes);
    a->offset = KEY_BYTES + s->row_bytes;
    GRV_CHECK_GOTO(a->row_bytes < INT64_MAX - a->offset, GRV_E_ARG, "'%s': rows of 2^63 bytes",
                   grvi_array_name(a->from));
    s->row_bytes += a->row_bytes;
    s->record_bytes = KEY_BYTES + s->row_bytes;
done:
    grvi_text_fini(&from);
    grvi_text_fini(&to);
    return status;
}

/* The named arrays, or all of the group. */
static grv_status find_arrays(shuffler *s)
{
    grv_status status = GRV_OK;
    grv_store_child *children = NULL;
    grv_node_kind kind = GRV_NODE_NONE;
    int64_t n = 0;
    GRV_TRY(grv_store_node(s->source, s->source_path, &kind));
    GRV_CHECK(kind != GRV_NODE_NONE, GRV_E_NOT_FOUND, "no group or array at '%s%s%s'",
              s->source->location, s->source_path[0] != '\0' ? "/" : "", s->source_path);
    s->is_group = kind == GRV_NODE_GROUP;
    GRV_CHECK(s->is_group || s->params->n_arrays == 0, GRV_E_ARG,
              "'%s' is an array; names of arrays belong to a group", s->source->location);
    if (!s->is_group) return add_array(s, "");
    for (int i = 0; i < s->params->n_arrays; i++) GRV_TRY(add_array(s, s->params->arrays[i]));
    if (s->n_arrays > 0) return GRV_OK;
    GRV_TRY(grv_store_list(s->source, s->source_path, &children, &n));
    for (int64_t i = 0; i < n; i++) {
        if (children[i].kind == GRV_NODE_ARRAY) GRV_TRY_GOTO(add_array(s, children[i].name));
    }
    GRV_CHECK_GOTO(s->n_arrays > 0, GRV_E_NOT_FOUND, "no arrays in '%s'", s->source->location);
done:
    grv_store_children_free(children, n);
    return status;
}

/* The old attributes and what says that this is shuffled. */
typedef struct attribute_copy {
    grvi_json_writer w;
    grvi_text value;
} attribute_copy;

static grv_status copy_attribute(void *argument, const char *key, grvi_json *value)
{
    attribute_copy *const copy = argument;
    if (strcmp(key, "grove_shuffled") == 0) return GRV_OK;
    copy->value.n = 0;
    grvi_json_print(value, &copy->value);
    GRV_TRY(grvi_text_status(&copy->value));
    grvi_json_key(&copy->w, key);
    grvi_json_raw(&copy->w, copy->value.data);
    return GRV_OK;
}

static grv_status make_attributes(const shuffler *s, const char *path, grvi_text *out)
{
    grv_status status = GRV_OK;
    char *old = NULL;
    grvi_json *root = NULL;
    attribute_copy copy = {.w = {.out = out, .pretty = true}};
    GRV_TRY(grv_attributes_get(s->source, path, &old));
    GRV_TRY_GOTO(grvi_json_parse(old, (int64_t)strlen(old), "attributes", &root));
    grvi_json_begin_object(&copy.w);
    GRV_TRY_GOTO(grvi_json_for_each(root, copy_attribute, &copy));
    grvi_json_key(&copy.w, "grove_shuffled");
    grvi_json_begin_object(&copy.w);
    grvi_json_key(&copy.w, "seed");
    grvi_json_u64(&copy.w, s->params->seed);
    grvi_json_key(&copy.w, "rows");
    grvi_json_i64(&copy.w, s->n_rows);
    grvi_json_key(&copy.w, "source");
    grvi_json_string(&copy.w, s->params->source_name != NULL ? s->params->source_name : "");
    grvi_json_end_object(&copy.w);
    grvi_json_end_object(&copy.w);
    GRV_TRY_GOTO(grvi_text_status(out));
done:
    grvi_text_fini(&copy.value);
    grvi_json_free(root);
    grv_free(old);
    return status;
}

static grv_status find_object(void *argument, const char *name, bool is_prefix);

typedef struct object_search {
    grv_store *store;
    const char *prefix;
} object_search;

static grv_status search_below(grv_store *store, const char *prefix)
{
    object_search search = {store, prefix};
    return store->kv->class->list(store->kv, prefix, find_object, &search);
}

static grv_status find_object(void *argument, const char *name, bool is_prefix)
{
    const object_search *const search = argument;
    grv_status status = GRV_OK;
    grvi_text key = {0};
    grvi_join_key(&key, search->prefix, name);
    GRV_TRY_GOTO(grvi_text_status(&key));
    GRV_CHECK_GOTO(
        is_prefix, GRV_E_EXISTS,
        "the place of the shuffled arrays is not empty: '%s' is there (of a shuffle that "
        "was killed?); remove it, or shuffle to another place",
        key.data);
    status = search_below(search->store, key.data);
done:
    grvi_text_fini(&key);
    return status;
}

static grv_status prepare_targets(shuffler *s)
{
    GRV_TRY(grvi_check_absent(s->target, s->target_path));
    GRV_TRY(search_below(s->target, s->target_path));
    for (int i = 0; i < s->n_arrays; i++) {
        tandem_array *const a = &s->arrays[i];
        GRV_TRY(grvi_layout_apply(&s->params->layout, a->from, !s->is_group, &a->desc, &a->codecs));
        GRV_TRY(make_attributes(s, a->from->path, &a->attributes));
        a->desc.attributes = a->attributes.data;
        GRV_TRY(grvi_array_prepare(s->target, a->path, &a->desc, &a->to));
        GRV_TRY(grvi_store_check_new(s->target, a->path, a->desc.zarr_format));
        a->object_rows = grvi_min_i64(a->to->metadata.desc.chunk_shape[0], s->n_rows);
    }
    return GRV_OK;
}

/* ---- memory ---- */

/* More rows at once bring nothing: sorting is faster in smaller pieces, as long as those that a block leaves in each bucket are long. */
static int64_t enough_rows(const shuffler *s)
{
    const double all = (double)s->n_rows * (double)s->record_bytes;
    const double enough = fmax(enough_bytes, sqrt(all * piece_bytes));
    return (int64_t)fmin(enough / (double)s->record_bytes, (double)s->n_rows) + 1;
}

/* Rows of a block and of a bucket that fit. */
static grv_status divide_memory(shuffler *s)
{
    int64_t coding = 0, waiting = 0, unit_rows = 1;
    for (int i = 0; i < s->n_arrays; i++) {
        const tandem_array *const a = &s->arrays[i];
        int64_t unit[GRVI_MAX_RANK];
        coding = grvi_max_i64(
            coding, grvi_max_i64(grvi_read_overhead(a->from), grvi_write_overhead(a->to)));
        const int64_t object[] = {a->object_rows};
        waiting += grvi_min_i64(grvi_box_bytes(1, object, a->row_bytes), INT64_MAX / 2 - waiting);
        grvi_decode_unit(a->from, unit);
        unit_rows = grvi_max_i64(unit_rows, unit[0]);
    }
    const int64_t besides = grvi_min_i64(coding, INT64_MAX / 2) + waiting;
    const int64_t per_row = 2 * s->row_bytes + BYTES_PER_ROW_BESIDES;
    const int64_t left = s->params->memory_bytes - besides;
    s->bucket_rows = left / per_row;
    GRV_CHECK(
        left > 0 && s->bucket_rows > 0, GRV_E_ARG,
        "%.3f MB of memory are not enough: one object of each new array and their coding take "
        "%.3f MB, a row %.6f MB more",
        (double)s->params->memory_bytes * 1e-6, (double)besides * 1e-6, (double)per_row * 1e-6);
    s->bucket_rows = grvi_min_i64(grvi_min_i64(s->bucket_rows, enough_rows(s)), s->n_rows);
    /* blocks that end with source chunks decode each once */
    s->block_rows = s->bucket_rows;
    if (s->block_rows > unit_rows) s->block_rows -= s->block_rows % unit_rows;
    return GRV_OK;
}

/* ---- the temporary file ---- */

static grv_status open_file(shuffler *s)
{
    grv_status status = GRV_OK;
    grvi_text path = {0};
    grvi_join_key(&path, s->target->location, "shuffle.partial-XXXXXX");
    GRV_TRY_GOTO(grvi_text_status(&path));
    s->file = mkstemp(path.data);
    GRV_CHECK_GOTO(s->file >= 0, GRV_E_IO, "create %s: %s", path.data, strerror(errno));
    /* without a name, nothing is left however this ends */
    (void)unlink(path.data);
done:
    grvi_text_fini(&path);
    return status;
}

static grv_status file_write(const shuffler *s, const uint8_t *data, int64_t n, int64_t offset)
{
    for (int64_t done = 0; done < n;) {
        const ssize_t k = pwrite(s->file, data + done, (size_t)(n - done), (off_t)(offset + done));
        if (k < 0 && errno == EINTR) continue;
        GRV_CHECK(k > 0, GRV_E_IO,
                  "writing rows to a temporary file in %s: %s (it needs %.1f MB in all)",
                  s->target->location, k < 0 ? strerror(errno) : "nothing was written",
                  (double)s->n_rows * (double)s->record_bytes * 1e-6);
        done += k;
    }
    return GRV_OK;
}

static grv_status file_read(const shuffler *s, uint8_t *data, int64_t n, int64_t offset)
{
    for (int64_t done = 0; done < n;) {
        const ssize_t k = pread(s->file, data + done, (size_t)(n - done), (off_t)(offset + done));
        if (k < 0 && errno == EINTR) continue;
        GRV_CHECK(k > 0, GRV_E_IO, "reading rows from a temporary file in %s: %s",
                  s->target->location, k < 0 ? strerror(errno) : "it ends too early");
        done += k;
    }
    return GRV_OK;
}

/* ---- pass 1: rows into buckets ---- */

typedef struct block_job {
    const shuffler *s;
    int64_t first_row;
    uint64_t *keys; /* [block_rows] */
    int64_t *
        places; /* [n_threads][buckets] records of a thread in a bucket, then where its next one goes */
    uint8_t *records; /* [block_rows] grouped by bucket */
} block_job;

static void make_keys(void *argument, int thread, int64_t begin, int64_t end)
{
    const block_job *const job = argument;
    int64_t *const places = job->places + thread * job->s->buckets.n;
    for (int64_t i = begin; i < end; i++) {
        job->keys[i] = grv_random_bits(job->s->params->seed, GRV_SHUFFLE_STREAM,
                                       (uint64_t)(job->first_row + i));
        places[grvi_shuffle_bucket_of(&job->s->buckets, job->keys[i])]++;
    }
}

static void make_records(void *argument, int thread, int64_t begin, int64_t end)
{
    const block_job *const job = argument;
    const shuffler *const s = job->s;
    int64_t *const places = job->places + thread * s->buckets.n;
    for (int64_t i = begin; i < end; i++) {
        const int64_t place = places[grvi_shuffle_bucket_of(&s->buckets, job->keys[i])]++;
        uint8_t *const record = job->records + place * s->record_bytes;
        memcpy(record, &job->keys[i], KEY_BYTES);
        for (int k = 0; k < s->n_arrays; k++) {
            const tandem_array *const a = &s->arrays[k];
            memcpy(record + a->offset, a->rows + i * a->row_bytes, (size_t)a->row_bytes);
        }
    }
}

/* Rows [first, first + n) of an array into its buffer. */
static grv_status read_rows(const tandem_array *a, int64_t first, int64_t n)
{
    int64_t start[GRVI_MAX_RANK] = {0}, count[GRVI_MAX_RANK];
    memcpy(count, a->from->metadata.desc.shape, sizeof count);
    start[0] = first;
    count[0] = n;
    return grv_array_read(a->from, start, count, a->rows, NULL);
}

/* Threads keep their order within each bucket: bucket 0 of thread 0, bucket 0 of thread 1, ... */
static void number_places(const block_job *job)
{
    int64_t sum = 0;
    for (int64_t b = 0; b < job->s->buckets.n; b++) {
        for (int t = 0; t < job->s->n_threads; t++) {
            int64_t *const place = &job->places[t * job->s->buckets.n + b];
            const int64_t n = *place;
            *place = sum;
            sum += n;
        }
    }
}

/* written [buckets]: records of each bucket that are in the file */
static grv_status append_block(const block_job *job, int64_t *written)
{
    const shuffler *const s = job->s;
    int64_t begin = 0;
    for (int64_t b = 0; b < s->buckets.n; b++) {
        /* after make_records, the last thread's place is the end of the bucket's records */
        const int64_t end = job->places[(s->n_threads - 1) * s->buckets.n + b];
        GRV_TRY(file_write(s, job->records + begin * s->record_bytes,
                           (end - begin) * s->record_bytes,
                           (s->buckets.first_row[b] + written[b]) * s->record_bytes));
        written[b] += end - begin;
        begin = end;
    }
    return GRV_OK;
}

static grv_status take_rows_memory(shuffler *s, int64_t n_rows, bool with_object)
{
    for (int i = 0; i < s->n_arrays; i++) {
        tandem_array *const a = &s->arrays[i];
        grv_free(a->rows);
        a->rows = NULL;
        const int64_t rows[] = {n_rows + (with_object ? a->object_rows : 0)};
        GRV_TRY(GRVI_ALLOC(&a->rows, grvi_box_bytes(1, rows, a->row_bytes)));
    }
    return GRV_OK;
}

static grv_status fill_buckets(shuffler *s)
{
    grv_status status = GRV_OK;
    block_job job = {.s = s};
    int64_t *written = NULL;
    GRV_TRY_GOTO(take_rows_memory(s, s->block_rows, false));
    GRV_TRY_GOTO(GRVI_ALLOC(&job.keys, s->block_rows));
    GRV_TRY_GOTO(GRVI_ALLOC(&job.records, s->block_rows * s->record_bytes));
    GRV_TRY_GOTO(GRVI_ALLOC(&job.places, s->n_threads * s->buckets.n));
    GRV_TRY_GOTO(GRVI_CALLOC(&written, s->buckets.n));
    for (; job.first_row < s->n_rows; job.first_row += s->block_rows) {
        const int64_t n = grvi_min_i64(s->block_rows, s->n_rows - job.first_row);
        for (int i = 0; i < s->n_arrays; i++)
            GRV_TRY_GOTO(read_rows(&s->arrays[i], job.first_row, n));
        memset(job.places, 0, (size_t)(s->n_threads * s->buckets.n) * sizeof *job.places);
        grv_parallel_for(s->n_threads, n, make_keys, &job);
        number_places(&job);
        grv_parallel_for(s->n_threads, n, make_records, &job);
        GRV_TRY_GOTO(append_block(&job, written));
        s->done += n * s->row_bytes;
        GRV_TRY_GOTO(grvi_tool_report(&s->params->hooks, s->done, 2 * s->n_rows * s->row_bytes));
    }
done:
    grv_free(written);
    grv_free(job.places);
    grv_free(job.records);
    grv_free(job.keys);
    return status;
}

/* ---- pass 2: buckets into arrays ---- */

typedef struct bucket_job {
    const shuffler *s;
    uint8_t *records; /* [most rows of a bucket] */
    int64_t *order, *cells;
} bucket_job;

static void take_records(void *argument, int thread, int64_t begin, int64_t end)
{
    const bucket_job *const job = argument;
    (void)thread;
    for (int64_t k = begin; k < end; k++) {
        const uint8_t *const record = job->records + job->order[k] * job->s->record_bytes;
        for (int i = 0; i < job->s->n_arrays; i++) {
            const tandem_array *const a = &job->s->arrays[i];
            memcpy(a->rows + (a->n_waiting + k) * a->row_bytes, record + a->offset,
                   (size_t)a->row_bytes);
        }
    }
}

/* Writes the whole objects among the waiting rows, at the end all rows. */
static grv_status write_rows(tandem_array *a, bool is_last)
{
    int64_t start[GRVI_MAX_RANK] = {0}, count[GRVI_MAX_RANK];
    const int64_t n = is_last ? a->n_waiting : a->n_waiting - a->n_waiting % a->object_rows;
    if (n == 0) return GRV_OK;
    memcpy(count, a->to->metadata.desc.shape, sizeof count);
    start[0] = a->next_row;
    count[0] = n;
    GRV_TRY(grv_array_write(a->to, start, count, a->rows, NULL));
    a->next_row += n;
    a->n_waiting -= n;
    memmove(a->rows, a->rows + n * a->row_bytes, (size_t)(a->n_waiting * a->row_bytes));
    return GRV_OK;
}

static grv_status empty_bucket(shuffler *s, const bucket_job *job, int64_t bucket)
{
    const int64_t n = s->buckets.rows[bucket];
    GRV_TRY(file_read(s, job->records, n * s->record_bytes,
                      s->buckets.first_row[bucket] * s->record_bytes));
    const grvi_keyed_records records = {job->records, s->record_bytes, n};
    grvi_shuffle_sort(&s->buckets, bucket, &records, s->n_threads, job->cells, job->order);
    grv_parallel_for(s->n_threads, n, take_records, (void *)(uintptr_t)job);
    for (int i = 0; i < s->n_arrays; i++) {
        s->arrays[i].n_waiting += n;
        GRV_TRY(write_rows(&s->arrays[i], bucket == s->buckets.n - 1));
    }
    s->done += n * s->row_bytes;
    return grvi_tool_report(&s->params->hooks, s->done, 2 * s->n_rows * s->row_bytes);
}

static grv_status empty_buckets(shuffler *s)
{
    grv_status status = GRV_OK;
    bucket_job job = {.s = s};
    int64_t most = 0;
    for (int64_t b = 0; b < s->buckets.n; b++) most = grvi_max_i64(most, s->buckets.rows[b]);
    GRV_TRY_GOTO(take_rows_memory(s, most, true));
    GRV_TRY_GOTO(GRVI_ALLOC(&job.records, most * s->record_bytes));
    GRV_TRY_GOTO(GRVI_ALLOC(&job.order, most));
    GRV_TRY_GOTO(GRVI_ALLOC(&job.cells, grvi_shuffle_sort_cells(most)));
    for (int64_t b = 0; b < s->buckets.n; b++) GRV_TRY_GOTO(empty_bucket(s, &job, b));
done:
    grv_free(job.cells);
    grv_free(job.order);
    grv_free(job.records);
    return status;
}

/* ---- the whole ---- */

static grv_status publish(shuffler *s)
{
    grv_status status = GRV_OK;
    grvi_text attributes = {0};
    GRV_TRY(grv_store_commit(s->target));
    for (int i = 0; i < s->n_arrays; i++)
        GRV_TRY(grv_array_create(s->target, s->arrays[i].path, &s->arrays[i].desc, NULL));
    if (s->is_group) {
        GRV_TRY_GOTO(make_attributes(s, s->source_path, &attributes));
        GRV_TRY_GOTO(grv_attributes_set(s->target, s->target_path, attributes.data));
    }
    GRV_TRY_GOTO(grv_store_commit(s->target));
done:
    grvi_text_fini(&attributes);
    return status;
}

/* Removes an object if it is there. This is clean-up after an error, which stands whatever happens here. */
static void drop_object(grv_store *store, const char *key)
{
    (void)(store->kv->class->remove(store->kv, key) == GRV_OK);
}

/* Nothing was at the path before, so that any document there was made by this call. */
static void drop_documents(grv_store *store, const char *path)
{
    static const char *const names[] = {"zarr.json", ".zarray", ".zgroup", ".zattrs"};
    char key[GRVI_KEY_BYTES];
    for (int i = 0; i < 4; i++) {
        const int n =
            snprintf(key, sizeof key, "%s%s%s", path, path[0] != '\0' ? "/" : "", names[i]);
        if (n > 0 && n < (int)sizeof key) drop_object(store, key);
    }
}

static void drop_chunks(const tandem_array *a)
{
    const grv_array_desc *const desc = &a->to->metadata.desc;
    int64_t count[GRVI_MAX_RANK], position[GRVI_MAX_RANK] = {0};
    char key[GRVI_KEY_BYTES];
    bool any = true;
    memcpy(count, a->to->grid, sizeof count);
    /* those of rows that still wait may have been being written when it failed */
    count[0] =
        grvi_min_i64(count[0], grvi_ceil_div(a->next_row + a->n_waiting, desc->chunk_shape[0]));
    for (int k = 0; k < desc->rank; k++) any = any && count[k] > 0;
    while (any) {
        if (grvi_array_key(a->to, position, key) == GRV_OK) drop_object(a->to->store, key);
        any = grvi_next_index(desc->rank, count, position);
    }
}

/* Documents first, so that no array is seen that is no longer whole. */
static void remove_written(shuffler *s)
{
    for (int i = 0; i < s->n_arrays; i++) drop_documents(s->target, s->arrays[i].path);
    drop_documents(s->target, s->target_path);
    for (int i = 0; i < s->n_arrays; i++) drop_chunks(&s->arrays[i]);
}

static void release(shuffler *s)
{
    for (int i = 0; i < s->n_arrays; i++) {
        tandem_array *const a = &s->arrays[i];
        grv_array_close(&a->from);
        grv_array_close(&a->to);
        grv_free(a->name);
        grv_free(a->path);
        grv_free(a->rows);
        grvi_text_fini(&a->codecs);
        grvi_text_fini(&a->attributes);
    }
    grv_free(s->arrays);
    grvi_shuffle_buckets_fini(&s->buckets);
    if (s->file >= 0) (void)close(s->file);
}

static grv_status shuffle(shuffler *s)
{
    GRV_TRY(fill_buckets(s));
    GRV_TRY(empty_buckets(s));
    return publish(s);
}

grv_status grv_store_shuffle(grv_store *source, const char *source_path, grv_store *target,
                             const char *target_path, const grv_shuffle_params *params)
{
    const grv_shuffle_params defaults = grv_shuffle_params_default();
    grv_status status = GRV_OK;
    shuffler s = {.source = source,
                  .target = target,
                  .source_path = source_path,
                  .target_path = target_path,
                  .params = params != NULL ? params : &defaults,
                  .n_threads = (int)grvi_max_i64(1, target->params.n_threads),
                  .file = -1};
    GRV_TRY_GOTO(grvi_store_check_writable(target));
    GRV_TRY_GOTO(find_arrays(&s));
    GRV_TRY_GOTO(prepare_targets(&s));
    if (s.n_rows > 0) {
        GRV_TRY_GOTO(divide_memory(&s));
        GRV_TRY_GOTO(grvi_shuffle_buckets_init(&s.buckets, s.params->seed, s.n_rows, s.bucket_rows,
                                               s.n_threads));
        GRV_TRY_GOTO(open_file(&s));
        status = shuffle(&s);
        if (status != GRV_OK) {
            char message[1024];
            (void)snprintf(message, sizeof message, "%s", grv_error_message());
            remove_written(&s);
            status = grvi_fail_from(status, message);
        }
    } else {
        GRV_TRY_GOTO(publish(&s));
    }
done:
    release(&s);
    return status;
}
