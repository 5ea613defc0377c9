/* Copying nodes from store to store, with another layout if asked for.
 *
 * An array whose description stays the same is copied object by object; any other one block by block (copy_blocks.c says how
 * blocks are chosen and how often a source chunk is decoded at most). Read and write use all threads in turn.
 *
 * While an array is unfinished it has no metadata but a record, `copy.partial.json`: the description of what is being made, and
 * how many steps (objects, or blocks) of the fixed order are complete. The record is published at most every two seconds, after what
 * it tells has been written, so that a killed copy repeats two seconds of work, and chunks of nothing but fill, which leave no
 * object, are not looked at again. A step that is repeated publishes the same objects again. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/copy_blocks.h"
#include "store/store_tools_impl.h"
#include "store/store_type.h"

static const double record_interval_s = 2;
static const int64_t max_record_bytes = (int64_t)64 << 20;

grv_copy_params grv_copy_params_default(void)
{
    return (grv_copy_params){.memory_bytes = (int64_t)1 << 30, .resume = true};
}

typedef struct copier {
    grv_store *source, *target;
    const char *source_path, *target_path;
    const grv_copy_params *params;
    bool resumed;        /* an earlier call was here, and may have left files aside */
    int64_t done, total; /* bytes of elements */
    grv_copy_report report;
} copier;

/* One array on its way. */
typedef struct array_copy {
    copier *copier;
    grv_array *from, *to;
    const char *path;       /* of the new one */
    grv_array_desc desc;    /* of the new one */
    grvi_text codecs, want; /* strings of desc; the record without its progress */
    char *attributes;
    int64_t unit[GRVI_MAX_RANK], block[GRVI_MAX_RANK];
    bool as_bytes;               /* objects are copied as they are, one for each step */
    int64_t n_steps, n_done;     /* in row-major order of `grid` */
    int64_t grid[GRVI_MAX_RANK]; /* steps along each axis */
    int64_t n_bytes;             /* of elements */
    double recorded_s;           /* clock when the record was published */
} array_copy;

/* ---- the record ---- */

static void write_lengths(grvi_json_writer *w, const char *key, int rank, const int64_t *lengths)
{
    grvi_json_key(w, key);
    grvi_json_begin_array(w);
    for (int i = 0; i < rank; i++) grvi_json_i64(w, lengths[i]);
    grvi_json_end_array(w);
}

static void write_text(grvi_json_writer *w, const char *key, const char *text)
{
    grvi_json_key(w, key);
    grvi_json_string(w, text);
}

/* What is to be the same when a copy goes on: where it is from, and the array as it will be read. */
static grv_status write_description(grvi_json_writer *w, const array_copy *c)
{
    const char *const source = c->copier->params->source_name;
    const grv_array_desc *const d = &c->to->metadata.desc;
    write_text(w, "source", source != NULL ? source : "");
    grvi_json_key(w, "zarr_format");
    grvi_json_i64(w, d->zarr_format);
    write_text(w, "type", grv_store_type_name(d->type));
    write_lengths(w, "shape", d->rank, d->shape);
    write_lengths(w, d->sharded ? "shard" : "chunk", d->rank, d->chunk_shape);
    if (d->sharded) write_lengths(w, "chunk", d->rank, d->inner_shape);
    grvi_json_key(w, "fill");
    GRV_TRY(grvi_fill_to_json(w, (grvi_item){d->type, d->item_bytes}, grvi_fill_of(d), 3));
    grvi_json_key(w, "codecs");
    grvi_json_raw(w, d->codecs);
    grvi_json_key(w, "attributes");
    grvi_json_raw(w, c->attributes);
    return GRV_OK;
}

static grv_status put_record(copier *c, const char *path, const grvi_text *members)
{
    grv_status status = GRV_OK;
    grvi_text key = {0};
    grvi_join_key(&key, path, GRVI_COPY_RECORD);
    GRV_TRY_GOTO(grvi_text_status(&key));
    GRV_TRY_GOTO(grv_store_put(c->target, key.data, members->data, members->n));
done:
    grvi_text_fini(&key);
    return status;
}

static grv_status remove_record(copier *c, const char *path)
{
    grv_status status = GRV_OK;
    grvi_text key = {0};
    grvi_join_key(&key, path, GRVI_COPY_RECORD);
    GRV_TRY_GOTO(grvi_text_status(&key));
    GRV_TRY_GOTO(grv_store_remove(c->target, key.data));
done:
    grvi_text_fini(&key);
    return status;
}

/* The record at a path; NULL if there is none. */
static grv_status load_record(copier *c, const char *path, grvi_json **record)
{
    grv_status status = GRV_OK;
    grvi_text key = {0};
    char *data = NULL;
    int64_t n = 0;
    *record = NULL;
    grvi_join_key(&key, path, GRVI_COPY_RECORD);
    GRV_TRY_GOTO(grvi_text_status(&key));
    GRV_TRY_GOTO(grv_store_get(c->target, key.data, max_record_bytes, &data, &n));
    if (data != NULL) GRV_TRY_GOTO(grvi_json_parse(data, n, key.data, record));
done:
    grv_free(data);
    grvi_text_fini(&key);
    return status;
}

/* The description, the block and what is done of it. After what it tells is safe. */
static grv_status publish_progress(array_copy *c)
{
    grv_status status = GRV_OK;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    GRV_TRY_GOTO(write_description(&w, c));
    write_lengths(&w, "step", c->desc.rank, c->block);
    grvi_json_key(&w, "steps_done");
    grvi_json_i64(&w, c->n_done);
    grvi_json_end_object(&w);
    GRV_TRY_GOTO(grvi_text_status(&text));
    GRV_TRY_GOTO(grv_store_commit(c->copier->target));
    GRV_TRY_GOTO(put_record(c->copier, c->path, &text));
    c->recorded_s = grv_clock_seconds();
done:
    grvi_text_fini(&text);
    return status;
}

typedef struct record_comparison {
    const grvi_json *found;
    const char *path;
} record_comparison;

static grv_status compare_member(void *argument, const char *key, grvi_json *wanted)
{
    const record_comparison *const c = argument;
    grv_status status = GRV_OK;
    grvi_text want = {0}, have = {0};
    grvi_json_print(wanted, &want);
    grvi_json_print(grvi_json_get(c->found, key), &have);
    GRV_TRY_GOTO(grvi_text_status(&want));
    GRV_TRY_GOTO(grvi_text_status(&have));
    GRV_CHECK_GOTO(strcmp(want.data, have.data) == 0, GRV_E_EXISTS,
                   "'%s' is the unfinished copy of something else: its %s is %.200s, this copy's "
                   "is %.200s; remove it, or copy to another place",
                   c->path, key, have.data, want.data);
done:
    grvi_text_fini(&want);
    grvi_text_fini(&have);
    return status;
}

/* Refuses to go on with what this copy would not make. */
static grv_status compare_record(const array_copy *c, const grvi_json *found)
{
    grv_status status = GRV_OK;
    grvi_text text = {0};
    grvi_json *wanted = NULL;
    grvi_json_writer w = {.out = &text};
    record_comparison comparison = {found, grvi_array_name(c->to)};
    grvi_json_begin_object(&w);
    GRV_TRY_GOTO(write_description(&w, c));
    grvi_json_end_object(&w);
    GRV_TRY_GOTO(grvi_text_status(&text));
    GRV_TRY_GOTO(grvi_json_parse(text.data, text.n, "description", &wanted));
    GRV_TRY_GOTO(grvi_json_for_each(wanted, compare_member, &comparison));
done:
    grvi_json_free(wanted);
    grvi_text_fini(&text);
    return status;
}

/* ---- steps ---- */

static grv_status tell(array_copy *c, int64_t n_done)
{
    copier *const all = c->copier;
    c->n_done = n_done;
    const double part = c->n_steps > 0 ? (double)n_done / (double)c->n_steps : 1;
    const int64_t bytes = grvi_add_bytes(all->done, (int64_t)(part * (double)(c->n_bytes / 2)) * 2);
    const grv_status status = grvi_tool_report(&all->params->hooks, bytes, all->total);
    if (status == GRV_OK && grv_clock_seconds() - c->recorded_s < record_interval_s) return GRV_OK;
    if (status == GRV_OK) return publish_progress(c);
    /* interrupted: what is done is told, and the first message stands */
    char message[256];
    (void)strncpy(message, grv_error_message(), sizeof message - 1);
    message[sizeof message - 1] = '\0';
    GRV_TRY(publish_progress(c));
    return grvi_fail_from(status, message);
}

/* The objects of a range of steps, each by one thread. */
typedef struct byte_job {
    const array_copy *copy;
    int64_t first;
    grvi_first_error error;
} byte_job;

static grv_status copy_object(const array_copy *c, const int64_t *position, grvi_buffer *buffer)
{
    grv_store *const source = c->copier->source, *const target = c->copier->target;
    grv_status status = GRV_OK;
    char from_key[GRVI_KEY_BYTES], to_key[GRVI_KEY_BYTES];
    grvi_object object;
    bool found = false;
    GRV_TRY(grvi_array_key(c->from, position, from_key));
    GRV_TRY(grvi_array_key(c->to, position, to_key));
    GRV_TRY(grvi_open_whole(c->from, from_key, &object, &found));
    if (!found) return target->kv->class->remove(target->kv, to_key);
    GRV_TRY_GOTO(grvi_buffer_reserve(buffer, object.n_bytes));
    GRV_TRY_GOTO(source->kv->class->read_object(source->kv, &object, from_key, 0, object.n_bytes,
                                                buffer->data));
    GRV_TRY_GOTO(target->kv->class->put(target->kv, to_key, buffer->data, object.n_bytes));
    (void)atomic_fetch_add(&source->objects_opened, 1);
    (void)atomic_fetch_add(&source->read_calls, 1);
    (void)atomic_fetch_add(&source->bytes_read, object.n_bytes);
    (void)atomic_fetch_add(&target->bytes_written, object.n_bytes);
done:
    source->kv->class->close_object(source->kv, &object);
    return status;
}

static void copy_objects(void *argument, int thread, int64_t begin, int64_t end)
{
    byte_job *const job = argument;
    const array_copy *const c = job->copy;
    grvi_scratch *scratch = NULL;
    int64_t position[GRVI_MAX_RANK] = {0};
    (void)thread;
    const grv_status status = grvi_scratch_take(&c->copier->target->scratches, &scratch);
    grvi_first_error_note(&job->error, begin, status);
    for (int64_t i = begin; i < end && status == GRV_OK && !grvi_first_error_is_set(&job->error);
         i++) {
        grvi_grid_position(c->desc.rank, c->grid, job->first + i, position);
        grvi_first_error_note(&job->error, i, copy_object(c, position, &scratch->encoded));
    }
    grvi_scratch_give(scratch);
}

/* Threads whose objects fit in memory together, the largest that the codecs may make. */
static int byte_threads(const array_copy *c)
{
    const grvi_chain *const chain = c->from->metadata.chain;
    int64_t most = grvi_box_bytes(c->desc.rank, c->desc.chunk_shape, chain->item_bytes);
    if (chain->sharding == NULL) most = chain->limit[chain->n_codecs];
    const int64_t fit = grvi_max_i64(1, c->copier->params->memory_bytes / grvi_max_i64(1, most));
    return (int)grvi_min_i64(fit, c->copier->target->params.n_threads);
}

static grv_status copy_as_bytes(array_copy *c)
{
    enum { OBJECTS_PER_THREAD = 16 };
    const int n_threads = byte_threads(c);
    while (c->n_done < c->n_steps) {
        byte_job job = {.copy = c, .first = c->n_done};
        const int64_t n =
            grvi_min_i64(c->n_steps - c->n_done, (int64_t)OBJECTS_PER_THREAD * n_threads);
        grvi_first_error_init(&job.error);
        grv_parallel_for(n_threads, n, copy_objects, &job);
        GRV_TRY(grvi_first_error_fini(&job.error));
        GRV_TRY(tell(c, c->n_done + n));
    }
    return GRV_OK;
}

static grv_status copy_by_blocks(array_copy *c)
{
    grv_status status = GRV_OK;
    uint8_t *elements = NULL;
    int64_t position[GRVI_MAX_RANK] = {0}, start[GRVI_MAX_RANK], count[GRVI_MAX_RANK];
    const int64_t item_bytes = c->from->metadata.chain->item_bytes;
    for (int i = 0; i < c->desc.rank; i++) count[i] = grvi_min_i64(c->block[i], c->desc.shape[i]);
    GRV_TRY(GRVI_ALLOC(&elements, grvi_box_bytes(c->desc.rank, count, item_bytes)));
    while (c->n_done < c->n_steps) {
        grvi_grid_position(c->desc.rank, c->grid, c->n_done, position);
        for (int i = 0; i < c->desc.rank; i++) {
            start[i] = position[i] * c->block[i];
            count[i] = grvi_min_i64(c->block[i], c->desc.shape[i] - start[i]);
        }
        GRV_TRY_GOTO(grv_array_read(c->from, start, count, elements, NULL));
        GRV_TRY_GOTO(grv_array_write(c->to, start, count, elements, NULL));
        GRV_TRY_GOTO(tell(c, c->n_done + 1));
    }
done:
    grv_free(elements);
    return status;
}

/* ---- one array ---- */

static bool is_same_codec(const grvi_codec *a, const grvi_codec *b)
{
    return a->class == b->class && a->level == b->level && a->shuffle == b->shuffle &&
           a->item_bytes == b->item_bytes && a->block_bytes == b->block_bytes &&
           a->checksum == b->checksum && a->at_start == b->at_start &&
           strcmp(a->compressor, b->compressor) == 0;
}

static bool is_same_filter(const grvi_filter *a, const grvi_filter *b)
{
    return a->class == b->class && a->encoded.type == b->encoded.type &&
           a->encoded.n_bytes == b->encoded.n_bytes && a->scale == b->scale &&
           a->offset == b->offset && a->keep_bits == b->keep_bits;
}

/* Chains as they were resolved, since the versions have different words for the same. */
static bool is_same_chain(const grvi_chain *a, const grvi_chain *b)
{
    if (a->n_filters != b->n_filters || a->n_codecs != b->n_codecs ||
        (a->sharding == NULL) != (b->sharding == NULL) || a->big_endian != b->big_endian ||
        a->swap_bytes != b->swap_bytes || memcmp(a->order, b->order, sizeof a->order) != 0 ||
        memcmp(a->shape, b->shape, sizeof a->shape) != 0)
        return false;
    for (int i = 0; i < a->n_filters; i++) {
        if (!is_same_filter(&a->filters[i], &b->filters[i])) return false;
    }
    for (int i = 0; i < a->n_codecs; i++) {
        if (!is_same_codec(&a->codecs[i], &b->codecs[i])) return false;
    }
    const grvi_sharding *const p = a->sharding, *const q = b->sharding;
    return p == NULL ||
           (p->index_at_start == q->index_at_start && p->index_big_endian == q->index_big_endian &&
            p->n_index_checksums == q->n_index_checksums && is_same_chain(p->inner, q->inner));
}

/* Do the same bytes mean the same elements in both? */
static bool is_same_coding(const grv_array *a, const grv_array *b)
{
    const grv_array_desc *const p = &a->metadata.desc, *const q = &b->metadata.desc;
    return p->type == q->type && p->item_bytes == q->item_bytes &&
           memcmp(grvi_fill_of(p), grvi_fill_of(q), (size_t)p->item_bytes) == 0 &&
           memcmp(p->chunk_shape, q->chunk_shape, sizeof p->chunk_shape) == 0 &&
           is_same_chain(a->metadata.chain, b->metadata.chain);
}

static grv_status choose_steps(array_copy *c)
{
    const grv_array_desc *const d = &c->to->metadata.desc;
    const grv_copy_params *const params = c->copier->params;
    c->as_bytes = !params->verify && is_same_coding(c->from, c->to);
    grvi_decode_unit(c->from, c->unit);
    memcpy(c->block, d->chunk_shape, sizeof c->block);
    bool is_empty = false;
    for (int i = 0; i < d->rank; i++) is_empty = is_empty || d->shape[i] == 0;
    if (!c->as_bytes && !is_empty) {
        const grvi_copy_shapes shapes = {d->rank, c->to->metadata.chain->item_bytes, d->shape,
                                         c->unit, d->chunk_shape};
        const int64_t overhead =
            grvi_max_i64(grvi_read_overhead(c->from), grvi_write_overhead(c->to));
        const grv_status status =
            grvi_copy_choose_block(&shapes, params->memory_bytes - overhead, c->block);
        if (status != GRV_OK)
            GRV_FAIL(status, "'%s': %s; coding takes %.1f MB: give %.0f MB of memory or more",
                     c->path, grvi_reason(status), (double)overhead * 1e-6,
                     1 + ((double)overhead +
                          (double)grvi_box_bytes(d->rank, d->chunk_shape, shapes.item_bytes)) *
                             1e-6);
    }
    c->n_steps = 1;
    for (int i = 0; i < d->rank; i++) {
        c->grid[i] = grvi_ceil_div(d->shape[i], c->block[i]);
        c->n_steps *=
            c->grid[i]; /* at most the number of objects, which array_create has checked */
    }
    return GRV_OK;
}

/* Steps that an earlier call has finished, 0 if it took other steps. */
static grv_status find_earlier(array_copy *c)
{
    grvi_json *record = NULL;
    GRV_TRY(load_record(c->copier, c->path, &record));
    if (record == NULL) return GRV_OK;
    const grv_status status = compare_record(c, record);
    const grvi_json *const step = grvi_json_get(record, "step");
    int64_t n_done = 0;
    bool is_same = grvi_json_as_i64(grvi_json_get(record, "steps_done"), &n_done) &&
                   grvi_json_length(step) == c->desc.rank;
    for (int i = 0; i < c->desc.rank && is_same; i++) {
        int64_t length = 0;
        is_same = grvi_json_as_i64(grvi_json_at(step, i), &length) && length == c->block[i];
    }
    grvi_json_free(record);
    if (status == GRV_OK && is_same) c->n_done = grvi_max_i64(0, grvi_min_i64(n_done, c->n_steps));
    return status;
}

static grv_status collect_partial(void *argument, const char *name, bool is_prefix)
{
    grvi_text *const keys = argument;
    if (is_prefix || strcmp(name, GRVI_COPY_RECORD) == 0) return GRV_OK;
    grvi_text_append_n(keys, name, (int64_t)strlen(name) + 1);
    return grvi_text_status(keys);
}

/* What a killed call left aside in one folder. */
static grv_status clean_folder(copier *c, const char *prefix)
{
    grv_status status = GRV_OK;
    grvi_text names = {0}, key = {0};
    grvi_kv *const kv = c->target->kv;
    if (kv->class->list_partial == NULL) return GRV_OK;
    GRV_TRY_GOTO(kv->class->list_partial(kv, prefix, collect_partial, &names));
    for (int64_t at = 0; at < names.n; at += (int64_t)strlen(names.data + at) + 1) {
        key.n = 0;
        grvi_join_key(&key, prefix, names.data + at);
        GRV_TRY_GOTO(grvi_text_status(&key));
        GRV_TRY_GOTO(kv->class->remove(kv, key.data));
    }
done:
    grvi_text_fini(&key);
    grvi_text_fini(&names);
    return status;
}

typedef struct folder_walk {
    copier *copier;
    const char *prefix;
} folder_walk;

static grv_status clean_tree(void *argument, const char *name, bool is_prefix)
{
    const folder_walk *const walk = argument;
    grv_status status = GRV_OK;
    grvi_text prefix = {0};
    if (!is_prefix) return GRV_OK;
    grvi_join_key(&prefix, walk->prefix, name);
    folder_walk below = {walk->copier, grvi_text_get(&prefix)};
    GRV_TRY_GOTO(grvi_text_status(&prefix));
    GRV_TRY_GOTO(clean_folder(walk->copier, below.prefix));
    GRV_TRY_GOTO(walk->copier->target->kv->class->list(walk->copier->target->kv, below.prefix,
                                                       clean_tree, &below));
done:
    grvi_text_fini(&prefix);
    return status;
}

/* A killed call may have left files aside anywhere among the chunks. */
static grv_status clean_array(array_copy *c)
{
    folder_walk walk = {c->copier, c->path};
    GRV_TRY(clean_folder(c->copier, c->path));
    return c->copier->target->kv->class->list(c->copier->target->kv, c->path, clean_tree, &walk);
}

/* The node's own document, with what grove does not know in it, but without the consolidated copy. */
static grv_status publish_document(copier *c, const char *from_path, const char *to_path)
{
    grv_status status = GRV_OK;
    grvi_json *document = NULL;
    grvi_text text = {0};
    grvi_node_text node = {0};
    grv_node_kind kind = GRV_NODE_NONE;
    GRV_TRY_GOTO(grvi_metadata_load(c->source->kv, from_path, &document, &kind));
    GRV_TRY_GOTO(grvi_metadata_change(document, NULL, &text));
    GRV_TRY_GOTO(grvi_node_text_make(kind, &text, to_path, &node));
    GRV_TRY_GOTO(grvi_store_publish_node(c->target, to_path, &node));
done:
    grvi_node_text_fini(&node);
    grvi_text_fini(&text);
    grvi_json_free(document);
    return status;
}

/* Is the new array described by the document of the old one? */
static bool is_as_it_was(const array_copy *c)
{
    const grv_array_desc *const p = &c->from->metadata.desc, *const q = &c->to->metadata.desc;
    return p->zarr_format == q->zarr_format && p->keys_v2 == q->keys_v2 &&
           p->key_separator == q->key_separator && is_same_coding(c->from, c->to);
}

static grv_status publish_array(array_copy *c)
{
    if (c->copier->resumed) GRV_TRY(clean_array(c));
    GRV_TRY(grv_store_commit(c->copier->target));
    if (is_as_it_was(c))
        GRV_TRY(publish_document(c->copier, c->from->path, c->path));
    else
        GRV_TRY(grv_array_create(c->copier->target, c->path, &c->desc, NULL));
    return remove_record(c->copier, c->path);
}

/* An array that stands in the target already: an earlier call finished it, or it is another one. */
static grv_status accept_finished(array_copy *c)
{
    grv_status status = GRV_OK;
    grv_array *found = NULL;
    GRV_TRY_GOTO(grv_array_open(c->copier->target, c->path, &found));
    const grv_array_desc *const d = &found->metadata.desc;
    GRV_CHECK_GOTO(d->rank == c->desc.rank && d->type == c->desc.type &&
                       memcmp(d->shape, c->desc.shape, sizeof d->shape) == 0 &&
                       memcmp(d->chunk_shape, c->desc.chunk_shape, sizeof d->chunk_shape) == 0,
                   GRV_E_EXISTS, "'%s' differs in type, shape or chunks from what this copy makes",
                   c->path);
    GRV_TRY_GOTO(remove_record(c->copier, c->path));
    GRV_TRY_GOTO(clean_array(c));
    c->copier->report.n_bytes_skipped += c->n_bytes;
done:
    grv_array_close(&found);
    return status;
}

static grv_status copy_new_array(array_copy *c)
{
    GRV_TRY(grvi_array_prepare(c->copier->target, c->path, &c->desc, &c->to));
    GRV_TRY(choose_steps(c));
    GRV_TRY(find_earlier(c));
    if (c->n_steps > 0)
        c->copier->report.n_bytes_skipped +=
            (int64_t)((double)c->n_done / (double)c->n_steps * (double)c->n_bytes);
    GRV_TRY(publish_progress(c));
    GRV_TRY(c->as_bytes ? copy_as_bytes(c) : copy_by_blocks(c));
    GRV_TRY(publish_array(c));
    c->copier->report.n_byte_copied += c->as_bytes;
    return GRV_OK;
}

static grv_status copy_array(copier *all, const char *from_path, const char *to_path, bool is_alone)
{
    grv_status status = GRV_OK;
    array_copy c = {.copier = all, .path = to_path};
    grv_node_kind there = GRV_NODE_NONE;
    GRV_TRY_GOTO(grv_array_open(all->source, from_path, &c.from));
    GRV_TRY_GOTO(grvi_layout_apply(&all->params->layout, c.from, is_alone, &c.desc, &c.codecs));
    GRV_TRY_GOTO(grv_attributes_get(all->source, from_path, &c.attributes));
    if (strcmp(c.attributes, "{}") != 0) c.desc.attributes = c.attributes;
    c.n_bytes = grvi_array_bytes(c.from);
    GRV_TRY_GOTO(grv_store_node(all->target, to_path, &there));
    GRV_TRY_GOTO(there == GRV_NODE_ARRAY ? accept_finished(&c) : copy_new_array(&c));
    all->done = grvi_add_bytes(all->done, c.n_bytes);
    all->report.n_bytes = all->done;
    all->report.n_arrays++;
done:
    grv_array_close(&c.from);
    grv_array_close(&c.to);
    grv_free(c.attributes);
    grvi_text_fini(&c.codecs);
    return status;
}

/* ---- the tree ---- */

/* A group of another version keeps its attributes only: that is all that version 2 has. */
static grv_status convert_group(copier *c, const char *from_path, const char *to_path)
{
    grv_status status = GRV_OK;
    char *attributes = NULL;
    grvi_text text = {0};
    grvi_node_text node = {0};
    GRV_TRY_GOTO(grv_attributes_get(c->source, from_path, &attributes));
    GRV_TRY_GOTO(grvi_metadata_make_group(c->params->layout.zarr_format, attributes, &text));
    GRV_TRY_GOTO(grvi_node_text_make(GRV_NODE_GROUP, &text, to_path, &node));
    GRV_TRY_GOTO(grvi_store_publish_node(c->target, to_path, &node));
done:
    grvi_node_text_fini(&node);
    grvi_text_fini(&text);
    grv_free(attributes);
    return status;
}

static grv_status copy_group(copier *c, const char *from_path, const char *to_path)
{
    const int wanted = c->params->layout.zarr_format;
    grvi_json *document = NULL;
    grv_node_kind kind = GRV_NODE_NONE, there = GRV_NODE_NONE;
    c->report.n_groups++;
    GRV_TRY(grv_store_node(c->target, to_path, &there));
    if (there == GRV_NODE_GROUP) return GRV_OK; /* an earlier call made it */
    GRV_TRY(grvi_metadata_load(c->source->kv, from_path, &document, &kind));
    const bool is_kept = wanted == 0 || wanted == grvi_metadata_version(document);
    grvi_json_free(document);
    return is_kept ? publish_document(c, from_path, to_path) : convert_group(c, from_path, to_path);
}

static grv_status copy_node(copier *c, const grvi_tree_node *node)
{
    grv_status status = GRV_OK;
    grvi_text from = {0}, to = {0};
    grvi_join_key(&from, c->source_path, node->path);
    grvi_join_key(&to, c->target_path, node->path);
    GRV_TRY_GOTO(grvi_text_status(&from));
    GRV_TRY_GOTO(grvi_text_status(&to));
    if (node->kind == GRV_NODE_GROUP) {
        GRV_TRY_GOTO(copy_group(c, grvi_text_get(&from), grvi_text_get(&to)));
        if (c->resumed) GRV_TRY_GOTO(clean_folder(c, grvi_text_get(&to)));
    } else {
        GRV_TRY_GOTO(
            copy_array(c, grvi_text_get(&from), grvi_text_get(&to), node->path[0] == '\0'));
    }
done:
    grvi_text_fini(&from);
    grvi_text_fini(&to);
    return status;
}

/* Everything that is to be copied can be opened; adds up the bytes. */
static grv_status survey(copier *c, const grvi_tree *tree)
{
    for (int64_t i = 0; i < tree->n; i++) {
        grv_status status = GRV_OK;
        grvi_text path = {0};
        grv_array *array = NULL;
        grv_node_kind kind = GRV_NODE_NONE;
        grvi_join_key(&path, c->source_path, tree->nodes[i].path);
        status = grvi_text_status(&path);
        /* an unreadable one says why */
        if (status == GRV_OK) status = grv_store_node(c->source, grvi_text_get(&path), &kind);
        if (status == GRV_OK && kind == GRV_NODE_ARRAY)
            status = grv_array_open(c->source, grvi_text_get(&path), &array);
        if (array != NULL) c->total = grvi_add_bytes(c->total, grvi_array_bytes(array));
        grv_array_close(&array);
        grvi_text_fini(&path);
        GRV_TRY(status);
    }
    return GRV_OK;
}

/* A call that was killed while it wrote the record left a part of it aside. */
static grv_status find_leftovers(copier *c)
{
    grvi_kv *const kv = c->target->kv;
    grvi_text names = {0};
    if (kv->class->list_partial == NULL) return GRV_OK;
    const grv_status status = kv->class->list_partial(kv, c->target_path, collect_partial, &names);
    c->resumed = names.n > 0;
    grvi_text_fini(&names);
    return status;
}

/* The target is free, or holds the unfinished copy that is to go on. */
static grv_status check_target(copier *c)
{
    grv_status status = GRV_OK;
    grvi_json *record = NULL;
    const char *const name = c->params->source_name != NULL ? c->params->source_name : "";
    GRV_TRY(grvi_store_check_writable(c->target));
    GRV_TRY_GOTO(load_record(c, c->target_path, &record));
    GRV_TRY_GOTO(find_leftovers(c));
    c->resumed = c->resumed || record != NULL;
    if (record == NULL) return grvi_check_absent(c->target, c->target_path);
    GRV_CHECK_GOTO(c->params->resume, GRV_E_EXISTS,
                   "an unfinished copy stands at '%s'; it is not to go on (resume)",
                   c->target->location);
    const char *const source = grvi_json_as_string(grvi_json_get(record, "source"));
    GRV_CHECK_GOTO(source != NULL && strcmp(source, name) == 0, GRV_E_EXISTS,
                   "an unfinished copy of '%s' stands there, this one is of '%s'; remove it, or "
                   "copy to another place",
                   source != NULL ? source : "", name);
done:
    grvi_json_free(record);
    return status;
}

/* The record of a group: an array's is made with the array. */
static grv_status begin_group_record(copier *c)
{
    grv_status status = GRV_OK;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    write_text(&w, "source", c->params->source_name != NULL ? c->params->source_name : "");
    grvi_json_end_object(&w);
    GRV_TRY_GOTO(grvi_text_status(&text));
    GRV_TRY_GOTO(put_record(c, c->target_path, &text));
done:
    grvi_text_fini(&text);
    return status;
}

grv_status grv_store_copy(grv_store *source, const char *source_path, grv_store *target,
                          const char *target_path, const grv_copy_params *params,
                          grv_copy_report *report)
{
    const grv_copy_params defaults = grv_copy_params_default();
    copier c = {.source = source,
                .target = target,
                .source_path = source_path,
                .target_path = target_path,
                .params = params != NULL ? params : &defaults};
    grv_status status = GRV_OK;
    grvi_tree tree = {0};
    GRV_TRY_GOTO(check_target(&c));
    GRV_TRY_GOTO(grvi_tree_list(source, source_path, &tree));
    GRV_TRY_GOTO(survey(&c, &tree));
    const bool is_group = tree.nodes[0].kind == GRV_NODE_GROUP;
    if (is_group) GRV_TRY_GOTO(begin_group_record(&c));
    for (int64_t i = 0; i < tree.n; i++) GRV_TRY_GOTO(copy_node(&c, &tree.nodes[i]));
    GRV_TRY_GOTO(grv_store_commit(target));
    if (is_group) GRV_TRY_GOTO(remove_record(&c, target_path));
    if (report != NULL) *report = c.report;
done:
    grvi_tree_fini(&tree);
    return status;
}
