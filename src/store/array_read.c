/* Reading a region.
 * Plan: the region becomes stored objects, those become pieces (a whole chunk, or one inner chunk of a shard: byte range and
 * grid position), neighbouring pieces of one shard become runs: one range read each. Then runs are read and decoded in
 * parallel, each piece straight to its place. A batch holds a bounded number of opened objects; its memory is reused. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/store_impl.h"

enum { MAX_BATCH_OBJECTS = 64, MAX_BATCH_PIECES = 8192 };
/* reading so much in vain costs less than another call */
static const int64_t run_gap_bytes = 4096;
/* long enough for a disk, and decoded while still in the cache */
static const int64_t run_most_bytes = (int64_t)2 << 20;
/* shorter runs are not made only to busy more threads */
static const int64_t run_least_bytes = (int64_t)1 << 18;

enum { WHOLE_OBJECT = -1 };

/* A stored object of the batch. */
typedef struct batch_object {
    int64_t position[GRVI_MAX_RANK];
    grvi_object object; /* opened for plain shards only; chunks are opened where they are read */
    grvi_shard_index *index;
    bool is_open;
} batch_object;

/* One chunk that the region touches. */
typedef struct piece {
    int64_t object; /* in the batch */
    int64_t cell;   /* number of the inner chunk, or WHOLE_OBJECT */
    int64_t offset, n_bytes;
} piece;

/* Pieces that one range read brings. */
typedef struct run {
    int64_t first_piece, n_pieces;
    int64_t offset, n_bytes;
} run;

typedef struct read_plan {
    grv_array *array;
    const int64_t *start, *count;
    int64_t strides[GRVI_MAX_RANK];
    uint8_t *out;
    grvi_scratch *scratch; /* its plan buffers hold the three lists */
    batch_object *objects;
    piece *pieces;
    run *runs;
    int64_t n_objects, n_pieces, n_runs;
    grvi_first_error *error;
} read_plan;

/* ---- what went wrong, and where ---- */

static grv_status fail_in_object(const read_plan *plan, const batch_object *object,
                                 grv_status status)
{
    const grv_array_desc *const desc = grv_array_get_desc(plan->array);
    char position[256];
    grvi_position_text(desc->rank, object->position, position, sizeof position);
    GRV_FAIL(status, "%s %s of '%s': %s", desc->sharded ? "shard" : "chunk", position,
             grvi_array_name(plan->array), grvi_reason(status));
}

static void cell_position(const grvi_chain *chain, int64_t number, int64_t *cell)
{
    for (int i = chain->rank - 1; i >= 0; i--) {
        cell[i] = number % chain->sharding->grid[i];
        number /= chain->sharding->grid[i];
    }
}

static grv_status fail_in_piece(const read_plan *plan, const piece *p, grv_status status)
{
    const grvi_chain *const chain = plan->array->metadata.chain;
    const batch_object *const object = &plan->objects[p->object];
    char position[256], inner[256];
    int64_t cell[GRVI_MAX_RANK];
    cell_position(chain, p->cell, cell);
    grvi_position_text(chain->rank, object->position, position, sizeof position);
    grvi_position_text(chain->rank, cell, inner, sizeof inner);
    GRV_FAIL(status, "inner chunk %s of shard %s of '%s', %lld bytes at byte %lld: %s", inner,
             position, grvi_array_name(plan->array), (long long)p->n_bytes, (long long)p->offset,
             grvi_reason(status));
}

/* ---- reading ---- */

static grv_status read_counted(grv_store *store, const grvi_object *object, const char *what,
                               int64_t offset, int64_t n, void *out)
{
    GRV_TRY(store->kv->class->read_object(store->kv, object, what, offset, n, out));
    (void)atomic_fetch_add(&store->bytes_read, n);
    (void)atomic_fetch_add(&store->read_calls, 1);
    return GRV_OK;
}

static grv_status read_opened_chunk(const read_plan *plan, const grvi_object *object,
                                    const char *key, grvi_scratch *scratch, const grvi_box *box,
                                    uint8_t *out)
{
    const grvi_chain *const chain = plan->array->metadata.chain;
    const int64_t most = chain->limit[chain->n_codecs];
    GRV_CHECK(object->n_bytes <= most, GRV_E_FORMAT, "at most %lld bytes expected, %lld found",
              (long long)most, (long long)object->n_bytes);
    if (grvi_chain_is_raw(chain, box, plan->strides) && object->n_bytes == chain->n_bytes) {
        scratch->bytes_decoded += chain->n_bytes;
        return read_counted(plan->array->store, object, key, 0, object->n_bytes, out);
    }
    GRV_TRY(grvi_buffer_reserve(&scratch->encoded, object->n_bytes));
    GRV_TRY(
        read_counted(plan->array->store, object, key, 0, object->n_bytes, scratch->encoded.data));
    return grvi_chain_decode(chain, scratch, 0, scratch->encoded.data, object->n_bytes, box, out,
                             plan->strides);
}

static grv_status read_chunk(const read_plan *plan, const batch_object *object,
                             grvi_scratch *scratch)
{
    grv_array *const array = plan->array;
    const grvi_chain *const chain = array->metadata.chain;
    char key[GRVI_KEY_BYTES];
    grvi_box box;
    grvi_object opened;
    int64_t offset = 0;
    bool found = false;
    grvi_array_object_part(array, object->position, plan->start, plan->count, plan->strides, &box,
                           &offset);
    GRV_TRY(grvi_array_key(array, object->position, key));
    GRV_TRY(array->store->kv->class->open_object(array->store->kv, key, &opened, &found));
    if (!found) {
        grvi_region_fill(chain->rank, box.count, chain->item_bytes, chain->fill, plan->out + offset,
                         plan->strides);
        return GRV_OK;
    }
    (void)atomic_fetch_add(&array->store->objects_opened, 1);
    const grv_status status =
        read_opened_chunk(plan, &opened, key, scratch, &box, plan->out + offset);
    array->store->kv->class->close_object(array->store->kv, &opened);
    return status == GRV_OK ? GRV_OK : fail_in_object(plan, object, status);
}

/* The region's part of a shard in stored axes, and the caller's memory for it. */
typedef struct shard_part {
    grvi_box box;
    int64_t strides[GRVI_MAX_RANK];
    uint8_t *out;
} shard_part;

static void shard_part_of(const read_plan *plan, const batch_object *object, shard_part *part)
{
    grvi_box box;
    int64_t offset = 0;
    grvi_array_object_part(plan->array, object->position, plan->start, plan->count, plan->strides,
                           &box, &offset);
    grvi_chain_permute_box(plan->array->metadata.chain, &box, plan->strides, &part->box,
                           part->strides);
    part->out = plan->out + offset;
}

static grv_status read_run(const read_plan *plan, const run *r, grvi_scratch *scratch)
{
    const grvi_chain *const chain = plan->array->metadata.chain;
    const piece *const first = &plan->pieces[r->first_piece];
    const batch_object *const object = &plan->objects[first->object];
    if (first->cell == WHOLE_OBJECT) return read_chunk(plan, object, scratch);
    shard_part part;
    shard_part_of(plan, object, &part);
    for (int64_t i = 0; i < r->n_pieces; i++) {
        const piece *const p = first + i;
        int64_t cell[GRVI_MAX_RANK], offset = 0;
        grvi_box local;
        cell_position(chain, p->cell, cell);
        grvi_shard_cell_part(chain, &part.box, part.strides, cell, &local, &offset);
        grv_status status = GRV_OK;
        if (r->n_pieces == 1 && grvi_chain_is_raw(chain->sharding->inner, &local, part.strides) &&
            p->n_bytes == chain->sharding->inner->n_bytes) {
            scratch->bytes_decoded += p->n_bytes;
            status = read_counted(plan->array->store, &object->object, "shard", p->offset,
                                  p->n_bytes, part.out + offset);
            return status == GRV_OK ? GRV_OK : fail_in_piece(plan, p, status);
        }
        if (i == 0) {
            status = grvi_buffer_reserve(&scratch->encoded, r->n_bytes);
            if (status == GRV_OK)
                status = read_counted(plan->array->store, &object->object, "shard", r->offset,
                                      r->n_bytes, scratch->encoded.data);
        }
        if (status == GRV_OK)
            status = grvi_chain_decode(chain->sharding->inner, scratch, 0,
                                       scratch->encoded.data + (p->offset - r->offset), p->n_bytes,
                                       &local, part.out + offset, part.strides);
        if (status != GRV_OK) return fail_in_piece(plan, p, status);
    }
    return GRV_OK;
}

static void read_runs(void *argument, int thread, int64_t begin, int64_t end)
{
    const read_plan *const plan = argument;
    grvi_scratch *scratch = NULL;
    (void)thread;
    const grv_status status = grvi_scratch_take(&plan->array->store->scratches, &scratch);
    grvi_first_error_note(plan->error, begin, status);
    for (int64_t i = begin; i < end && status == GRV_OK && !grvi_first_error_is_set(plan->error);
         i++)
        grvi_first_error_note(plan->error, i, read_run(plan, &plan->runs[i], scratch));
    if (scratch != NULL) grvi_store_count_decoded(plan->array->store, scratch);
    grvi_scratch_give(scratch);
}

/* ---- planning ---- */

static grv_status read_index(read_plan *plan, batch_object *object, int64_t number)
{
    grv_status status = GRV_OK;
    grv_store *const store = plan->array->store;
    const grvi_sharding *const sharding = plan->array->metadata.chain->sharding;
    grvi_shard_index *index = NULL;
    int64_t offset = 0;
    GRV_TRY_GOTO(grvi_shard_index_place(sharding, object->object.n_bytes, &offset));
    GRV_TRY_GOTO(grvi_shard_index_create(sharding->n_inner, &index));
    GRV_TRY_GOTO(grvi_buffer_reserve(&plan->scratch->encoded, sharding->index_bytes));
    GRV_TRY_GOTO(read_counted(store, &object->object, "shard index", offset, sharding->index_bytes,
                              plan->scratch->encoded.data));
    GRV_TRY_GOTO(grvi_shard_index_decode(sharding, plan->scratch->encoded.data,
                                         object->object.n_bytes, index->entries));
    index->array_id = plan->array->id;
    index->object_number = number;
    memcpy(index->identity, object->object.identity, sizeof index->identity);
    grvi_index_cache_put(&store->indices, index);
    object->index = index;
    index = NULL;
done:
    grvi_shard_index_release(index);
    return status;
}

static grv_status add_piece(read_plan *plan, int64_t object, int64_t cell, int64_t offset,
                            int64_t n_bytes)
{
    const piece p = {object, cell, offset, n_bytes};
    grvi_buffer *const buffer = &plan->scratch->plan[1];
    GRV_TRY(grvi_buffer_append(buffer, &p, (int64_t)sizeof p));
    plan->pieces = (piece *)(void *)buffer->data;
    plan->n_pieces++;
    return GRV_OK;
}

/* The pieces of an opened shard; empty inner chunks are filled at once. */
static grv_status add_shard_pieces(read_plan *plan, int64_t number)
{
    const grvi_chain *const chain = plan->array->metadata.chain;
    const batch_object *const object = &plan->objects[number];
    shard_part part;
    grvi_box cells;
    int64_t step[GRVI_MAX_RANK] = {0}, cell[GRVI_MAX_RANK];
    shard_part_of(plan, object, &part);
    grvi_shard_cells(chain, &part.box, &cells);
    do {
        for (int i = 0; i < chain->rank; i++) cell[i] = cells.start[i] + step[i];
        const int64_t cell_number = grvi_shard_cell_number(chain, cell);
        const grvi_shard_entry *const e = &object->index->entries[cell_number];
        if (!grvi_shard_entry_is_empty(e)) {
            GRV_TRY(add_piece(plan, number, cell_number, (int64_t)e->offset, (int64_t)e->n_bytes));
            continue;
        }
        grvi_box local;
        int64_t offset = 0;
        grvi_shard_cell_part(chain, &part.box, part.strides, cell, &local, &offset);
        grvi_region_fill(chain->rank, local.count, chain->item_bytes, chain->fill,
                         part.out + offset, part.strides);
    } while (grvi_next_index(chain->rank, cells.count, step));
    return GRV_OK;
}

static grv_status add_shard(read_plan *plan, int64_t number)
{
    grv_array *const array = plan->array;
    grv_store *const store = array->store;
    batch_object *const object = &plan->objects[number];
    const int64_t object_number = grvi_array_object_number(array, object->position);
    char key[GRVI_KEY_BYTES];
    GRV_TRY(grvi_array_key(array, object->position, key));
    GRV_TRY(store->kv->class->open_object(store->kv, key, &object->object, &object->is_open));
    if (!object->is_open) {
        shard_part part;
        shard_part_of(plan, object, &part);
        grvi_region_fill(array->metadata.chain->rank, part.box.count,
                         array->metadata.chain->item_bytes, array->metadata.chain->fill, part.out,
                         part.strides);
        return GRV_OK;
    }
    (void)atomic_fetch_add(&store->objects_opened, 1);
    object->index =
        grvi_index_cache_get(&store->indices, array->id, object_number, object->object.identity);
    if (object->index == NULL) {
        const grv_status status = read_index(plan, object, object_number);
        if (status != GRV_OK) return fail_in_object(plan, object, status);
    }
    return add_shard_pieces(plan, number);
}

static int compare_pieces(const void *a, const void *b)
{
    const piece *const p = a, *const q = b;
    if (p->object != q->object) return p->object < q->object ? -1 : 1;
    if (p->offset != q->offset) return p->offset < q->offset ? -1 : 1;
    return (p->cell > q->cell) - (p->cell < q->cell);
}

static int64_t run_limit(const read_plan *plan)
{
    int64_t total = 0;
    const int n_threads = plan->array->store->params.n_threads;
    if (n_threads <= 1) return run_most_bytes;
    for (int64_t i = 0; i < plan->n_pieces; i++) total += plan->pieces[i].n_bytes;
    /* a few runs for each thread, so that all end at about the same time */
    return grvi_min_i64(run_most_bytes, grvi_max_i64(run_least_bytes, total / (4 * n_threads)));
}

static grv_status make_runs(read_plan *plan)
{
    grvi_buffer *const buffer = &plan->scratch->plan[2];
    const int64_t limit = run_limit(plan);
    GRV_TRY(grvi_buffer_reserve(buffer, plan->n_pieces * (int64_t)sizeof(run)));
    plan->runs = (run *)(void *)buffer->data;
    plan->n_runs = 0;
    for (int64_t i = 0; i < plan->n_pieces; i++) {
        const piece *const p = &plan->pieces[i];
        run *const last = plan->n_runs > 0 ? &plan->runs[plan->n_runs - 1] : NULL;
        const int64_t end = p->offset + p->n_bytes;
        if (last != NULL && p->cell != WHOLE_OBJECT && plan->pieces[i - 1].object == p->object &&
            p->offset <= last->offset + last->n_bytes + run_gap_bytes &&
            end - last->offset <= limit) {
            last->n_pieces++;
            last->n_bytes = grvi_max_i64(last->n_bytes, end - last->offset);
        } else {
            plan->runs[plan->n_runs++] = (run){i, 1, p->offset, p->n_bytes};
        }
    }
    return GRV_OK;
}

static void close_objects(read_plan *plan)
{
    for (int64_t i = 0; i < plan->n_objects; i++) {
        batch_object *const object = &plan->objects[i];
        grvi_shard_index_release(object->index);
        if (object->is_open)
            plan->array->store->kv->class->close_object(plan->array->store->kv, &object->object);
    }
    plan->n_objects = plan->n_pieces = 0;
    plan->scratch->plan[1].n = 0;
}

/* Reads and decodes what the batch holds, and empties it. */
static grv_status run_batch(read_plan *plan)
{
    grv_status status = GRV_OK;
    grvi_first_error error;
    if (plan->n_pieces == 0) goto done;
    if (plan->n_pieces > 1)
        qsort(plan->pieces, (size_t)plan->n_pieces, sizeof *plan->pieces, compare_pieces);
    GRV_TRY_GOTO(make_runs(plan));
    grvi_first_error_init(&error);
    plan->error = &error;
    grv_parallel_for(plan->array->store->params.n_threads, plan->n_runs, read_runs, plan);
    GRV_TRY_GOTO(grvi_first_error_fini(&error));
done:
    close_objects(plan);
    return status;
}

static grv_status add_object(read_plan *plan, const int64_t *position)
{
    const int64_t number = plan->n_objects++;
    batch_object *const object = &plan->objects[number];
    memset(object, 0, sizeof *object);
    for (int i = 0; i < plan->array->metadata.desc.rank; i++) object->position[i] = position[i];
    if (grvi_chain_is_plain_shard(plan->array->metadata.chain)) return add_shard(plan, number);
    return add_piece(plan, number, WHOLE_OBJECT, 0, 0);
}

static grv_status read_all(read_plan *plan)
{
    grv_status status = GRV_OK;
    const grv_array_desc *const desc = &plan->array->metadata.desc;
    int64_t first[GRVI_MAX_RANK], n[GRVI_MAX_RANK], step[GRVI_MAX_RANK] = {0},
                                                    position[GRVI_MAX_RANK];
    grvi_buffer *const objects = &plan->scratch->plan[0];
    GRV_TRY(grvi_buffer_reserve(objects, MAX_BATCH_OBJECTS * (int64_t)sizeof(batch_object)));
    plan->objects = (batch_object *)(void *)objects->data;
    plan->scratch->plan[1].n = 0;
    for (int i = 0; i < desc->rank; i++) {
        if (plan->count[i] == 0) return GRV_OK;
        first[i] = plan->start[i] / desc->chunk_shape[i];
        n[i] = (plan->start[i] + plan->count[i] - 1) / desc->chunk_shape[i] - first[i] + 1;
    }
    do {
        for (int i = 0; i < desc->rank; i++) position[i] = first[i] + step[i];
        GRV_TRY_GOTO(add_object(plan, position));
        if (plan->n_objects == MAX_BATCH_OBJECTS || plan->n_pieces >= MAX_BATCH_PIECES)
            GRV_TRY_GOTO(run_batch(plan));
    } while (grvi_next_index(desc->rank, n, step));
    GRV_TRY_GOTO(run_batch(plan));
done:
    close_objects(plan);
    return status;
}

grv_status grv_array_read(grv_array *array, const int64_t *start, const int64_t *count, void *out,
                          const int64_t *strides)
{
    read_plan plan = {.array = array, .start = start, .count = count, .out = out};
    GRV_TRY(grvi_array_check_region(array, start, count));
    GRV_TRY(grvi_array_byte_strides(array, count, strides, plan.strides));
    GRV_TRY(grvi_scratch_take(&array->store->scratches, &plan.scratch));
    const grv_status status = read_all(&plan);
    grvi_scratch_give(plan.scratch);
    if (status != GRV_OK) grvi_frame(__FILE__, __LINE__, __func__);
    return status;
}
