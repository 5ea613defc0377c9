/* Copying one array: object by object where its bytes mean the same in the target, else block by block (copy_blocks.c says how
 * blocks are chosen and how often a source chunk is decoded at most). Read and write use all threads in turn.
 *
 * While an array is unfinished it has no metadata but a record (copy_record.c) that says how many steps (objects, or blocks) of the
 * fixed order are complete. It is published at most every two seconds, after what it tells has been written, so that a killed copy
 * repeats two seconds of work, and chunks of nothing but fill, which leave no object, are not looked at again. A step that is
 * repeated publishes the same objects again. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/copy_blocks.h"
#include "store/copy_impl.h"
#include "store/store_type.h"

static const double record_interval_s = 2;

/* ---- steps ---- */

static grv_status tell(grvi_array_copy *c, int64_t n_done)
{
    grvi_copier *const all = c->copier;
    c->n_done = n_done;
    const double part = c->n_steps > 0 ? (double)n_done / (double)c->n_steps : 1;
    const int64_t bytes = grvi_add_bytes(all->done, (int64_t)(part * (double)(c->n_bytes / 2)) * 2);
    const grv_status status = grvi_tool_report(&all->params->hooks, bytes, all->total);
    if (status == GRV_OK && grv_clock_seconds() - c->recorded_s < record_interval_s) return GRV_OK;
    if (status == GRV_OK) return grvi_copy_put_progress(c);
    /* interrupted: what is done is told, and the first message stands */
    char message[256];
    (void)strncpy(message, grv_error_message(), sizeof message - 1);
    message[sizeof message - 1] = '\0';
    GRV_TRY(grvi_copy_put_progress(c));
    return grvi_fail_from(status, message);
}

/* The objects of a range of steps, each by one thread. */
typedef struct byte_job {
    const grvi_array_copy *copy;
    int64_t first;
    grvi_first_error error;
} byte_job;

static grv_status copy_object(const grvi_array_copy *c, const int64_t *position,
                              grvi_buffer *buffer)
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
    const grvi_array_copy *const c = job->copy;
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
static int byte_threads(const grvi_array_copy *c)
{
    const grvi_chain *const chain = c->from->metadata.chain;
    int64_t most = grvi_box_bytes(c->desc.rank, c->desc.chunk_shape, chain->item_bytes);
    if (chain->sharding == NULL) most = chain->limit[chain->n_codecs];
    const int64_t fit = grvi_max_i64(1, c->copier->params->memory_bytes / grvi_max_i64(1, most));
    return (int)grvi_min_i64(fit, c->copier->target->params.n_threads);
}

static grv_status copy_as_bytes(grvi_array_copy *c)
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

static grv_status copy_by_blocks(grvi_array_copy *c)
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

/* ---- is it the same? ---- */

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

/* ---- one array ---- */

static grv_status choose_steps(grvi_array_copy *c)
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
static grv_status find_earlier(grvi_array_copy *c)
{
    grvi_json *record = NULL;
    GRV_TRY(grvi_copy_load_record(c->copier, c->path, &record));
    if (record == NULL) return GRV_OK;
    const grv_status status = grvi_copy_compare_record(c, record);
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

/* The node's own document, with what grove does not know in it, but without the consolidated copy. */
grv_status grvi_copy_publish_document(grvi_copier *c, const char *from_path, const char *to_path)
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
static bool is_as_it_was(const grvi_array_copy *c)
{
    const grv_array_desc *const p = &c->from->metadata.desc, *const q = &c->to->metadata.desc;
    return p->zarr_format == q->zarr_format && p->keys_v2 == q->keys_v2 &&
           p->key_separator == q->key_separator && strcmp(p->codecs, q->codecs) == 0 &&
           is_same_coding(c->from, c->to);
}

static grv_status publish_array(grvi_array_copy *c)
{
    if (c->copier->resumed) GRV_TRY(grvi_copy_clean_array(c));
    GRV_TRY(grv_store_commit(c->copier->target));
    if (is_as_it_was(c))
        GRV_TRY(grvi_copy_publish_document(c->copier, c->from->path, c->path));
    else
        GRV_TRY(grv_array_create(c->copier->target, c->path, &c->desc, NULL));
    return grvi_copy_remove_record(c->copier, c->path);
}

/* An array that stands in the target already: an earlier call finished it, or it is another one. */
static grv_status accept_finished(grvi_array_copy *c)
{
    grv_status status = GRV_OK;
    grv_array *there = NULL;
    grvi_json *found = NULL;
    GRV_TRY_GOTO(grv_array_open(c->copier->target, c->path, &there));
    GRV_TRY_GOTO(grvi_copy_describe(c, there, &found));
    GRV_TRY_GOTO(grvi_copy_compare_record(c, found));
    GRV_TRY_GOTO(grvi_copy_remove_record(c->copier, c->path));
    GRV_TRY_GOTO(grvi_copy_clean_array(c));
    c->copier->report.n_bytes_skipped += c->n_bytes;
done:
    grvi_json_free(found);
    grv_array_close(&there);
    return status;
}

static grv_status copy_new_array(grvi_array_copy *c)
{
    GRV_TRY(grvi_store_check_new(c->copier->target, c->path, c->to->metadata.desc.zarr_format));
    GRV_TRY(choose_steps(c));
    GRV_TRY(find_earlier(c));
    if (c->n_steps > 0)
        c->copier->report.n_bytes_skipped +=
            (int64_t)((double)c->n_done / (double)c->n_steps * (double)c->n_bytes);
    GRV_TRY(grvi_copy_put_progress(c));
    GRV_TRY(c->as_bytes ? copy_as_bytes(c) : copy_by_blocks(c));
    GRV_TRY(publish_array(c));
    c->copier->report.n_byte_copied += c->as_bytes;
    return GRV_OK;
}

grv_status grvi_copy_array(grvi_copier *all, const char *from_path, const char *to_path,
                           bool is_alone)
{
    grv_status status = GRV_OK;
    grvi_array_copy c = {.copier = all, .path = to_path};
    grv_node_kind there = GRV_NODE_NONE;
    GRV_TRY_GOTO(grv_array_open(all->source, from_path, &c.from));
    GRV_TRY_GOTO(grvi_layout_apply(&all->params->layout, c.from, is_alone, &c.desc, &c.codecs));
    GRV_TRY_GOTO(grv_attributes_get(all->source, from_path, &c.attributes));
    if (strcmp(c.attributes, "{}") != 0) c.desc.attributes = c.attributes;
    c.n_bytes = grvi_array_bytes(c.from);
    GRV_TRY_GOTO(grvi_array_prepare(all->target, to_path, &c.desc, &c.to));
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
