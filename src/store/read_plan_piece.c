/* Pieces of a read plan: where the elements of a chunk go, how a raw chunk is sliced, and reading and decoding a run. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/read_plan_impl.h"

/* a copy of so few bytes costs less than another call */
static const int64_t direct_least_bytes = (int64_t)1 << 16;
/* longer copies out of the page cache care about alignment */
static const int64_t aligned_least_bytes = 4096;
enum { LINE_BYTES = 64 };

/* ---- what went wrong, and where ---- */

grv_status grvi_plan_fail_object(const grvi_plan_object *object, grv_status status)
{
    const grv_array_desc *const desc = grv_array_get_desc(object->array);
    char position[256];
    grvi_position_text(desc->rank, object->position, position, sizeof position);
    GRV_FAIL(status, "%s %s of '%s': %s", desc->sharded ? "shard" : "chunk", position,
             grvi_array_name(object->array), grvi_reason(status));
}

static void cell_position(const grvi_chain *chain, int64_t number, int64_t *cell)
{
    for (int i = chain->rank - 1; i >= 0; i--) {
        cell[i] = number % chain->sharding->grid[i];
        number /= chain->sharding->grid[i];
    }
}

grv_status grvi_plan_fail_piece(const grv_read_plan *plan, const grvi_plan_piece *piece,
                                grv_status status)
{
    const grvi_plan_object *const object = &grvi_plan_objects(plan)[piece->object];
    const grvi_chain *const chain = object->array->metadata.chain;
    char position[256], inner[256];
    int64_t cell[GRVI_MAX_RANK];
    grvi_position_text(chain->rank, object->position, position, sizeof position);
    if (piece->cell == GRVI_WHOLE_OBJECT)
        GRV_FAIL(status, "chunk %s of '%s', %lld bytes at byte %lld: %s", position,
                 grvi_array_name(object->array), (long long)piece->n_bytes,
                 (long long)piece->offset, grvi_reason(status));
    cell_position(chain, piece->cell, cell);
    grvi_position_text(chain->rank, cell, inner, sizeof inner);
    GRV_FAIL(status, "inner chunk %s of shard %s of '%s', %lld bytes at byte %lld: %s", inner,
             position, grvi_array_name(object->array), (long long)piece->n_bytes,
             (long long)piece->offset, grvi_reason(status));
}

/* ---- targets ---- */

void grvi_plan_object_target(const grv_read_plan *plan, const grvi_plan_object *object, int64_t use,
                             grvi_plan_target *target)
{
    const grvi_plan_part *const part = &grvi_plan_parts(plan)[grvi_plan_uses(plan)[use].part];
    const grvi_plan_request *const request = &grvi_plan_requests(plan)[part->request];
    const grv_array_desc *const desc = grv_array_get_desc(object->array);
    target->chain = object->array->metadata.chain;
    target->out = request->out + part->offset;
    for (int i = 0; i < desc->rank; i++) {
        const int64_t start = i == 0 ? part->start : request->start[i];
        const int64_t end = start + (i == 0 ? part->count : request->count[i]);
        const int64_t first = object->position[i] * desc->chunk_shape[i];
        const int64_t low = grvi_max_i64(first, start);
        target->box.start[i] = low - first;
        target->box.count[i] = grvi_min_i64(first + desc->chunk_shape[i], end) - low;
        target->strides[i] = request->strides[i];
        target->out += (low - start) * request->strides[i];
    }
}

void grvi_plan_to_stored(grvi_plan_target *target)
{
    grvi_box box;
    int64_t strides[GRVI_MAX_RANK];
    int axis = 0;
    while (axis < target->chain->rank && target->chain->order[axis] == axis) axis++;
    if (axis == target->chain->rank) return;
    grvi_chain_permute_box(target->chain, &target->box, target->strides, &box, strides);
    for (int i = 0; i < target->chain->rank; i++) {
        target->box.start[i] = box.start[i];
        target->box.count[i] = box.count[i];
        target->strides[i] = strides[i];
    }
}

void grvi_plan_cell_target(const grvi_plan_target *shard, const int64_t *cell,
                           grvi_plan_target *target)
{
    int64_t offset = 0;
    grvi_shard_cell_part(shard->chain, &shard->box, shard->strides, cell, &target->box, &offset);
    target->chain = shard->chain->sharding->inner;
    for (int i = 0; i < shard->chain->rank; i++) target->strides[i] = shard->strides[i];
    target->out = shard->out + offset;
}

static void piece_target(const grv_read_plan *plan, const grvi_plan_piece *piece,
                         grvi_plan_target *target)
{
    if (piece->cell == GRVI_WHOLE_OBJECT) {
        grvi_plan_object_target(plan, &grvi_plan_objects(plan)[piece->object], piece->use, target);
        return;
    }
    grvi_plan_target shard;
    int64_t cell[GRVI_MAX_RANK];
    grvi_plan_object_target(plan, &grvi_plan_objects(plan)[piece->object], piece->use, &shard);
    grvi_plan_to_stored(&shard);
    cell_position(shard.chain, piece->cell, cell);
    grvi_plan_cell_target(&shard, cell, target);
}

/* ---- slices of raw chunks ---- */

/* From the last axis on, axes are taken into the span of bytes that is read in one go, as long as the bytes between the wanted
 * ones are few and the span is not too long. */
void grvi_plan_slices(const grv_read_plan *plan, const grvi_plan_target *target,
                      grvi_plan_slicing *slicing)
{
    const grvi_chain *const chain = target->chain;
    const int64_t *const count = target->box.count;
    int64_t stride[GRVI_MAX_RANK], span = chain->item_bytes;
    grvi_dense_strides(chain->rank, chain->stored_shape, chain->item_bytes, stride);
    *slicing = (grvi_plan_slicing){0, 1, 1};
    if (chain->rank == 0) return;
    int axis = chain->rank - 1;
    for (;; axis--) {
        const bool is_joined = count[axis] == 1 || stride[axis] - span <= plan->gap_bytes;
        const int64_t whole = (count[axis] - 1) * stride[axis] + span;
        slicing->axis = axis;
        slicing->step = count[axis];
        if (!is_joined)
            slicing->step = 1;
        else if (whole > plan->run_bytes)
            slicing->step = grvi_max_i64(1, (plan->run_bytes - span) / stride[axis] + 1);
        if (slicing->step < count[axis] || axis == 0) break;
        span = whole;
    }
    slicing->n_slices = grvi_ceil_div(count[axis], slicing->step);
    for (int i = 0; i < axis; i++) slicing->n_slices *= count[i]; /* at most the elements */
}

void grvi_plan_slice(const grvi_plan_target *target, const grvi_plan_slicing *slicing,
                     int64_t number, grvi_plan_target *slice, int64_t *offset, int64_t *n_bytes)
{
    const grvi_chain *const chain = target->chain;
    int64_t stride[GRVI_MAX_RANK];
    *slice = *target;
    *offset = 0;
    *n_bytes = chain->item_bytes;
    grvi_dense_strides(chain->rank, chain->stored_shape, chain->item_bytes, stride);
    for (int i = chain->rank == 0 ? -1 : slicing->axis; i >= 0; i--) {
        const int64_t step = i == slicing->axis ? slicing->step : 1;
        const int64_t n = grvi_ceil_div(target->box.count[i], step);
        const int64_t first = number % n * step;
        number /= n;
        slice->box.start[i] += first;
        slice->box.count[i] = grvi_min_i64(step, target->box.count[i] - first);
        slice->out += first * target->strides[i];
    }
    for (int i = 0; i < chain->rank; i++) {
        *offset += slice->box.start[i] * stride[i];
        *n_bytes += (slice->box.count[i] - 1) * stride[i];
    }
}

/* The chunk's bytes are what belongs into memory, one after the other. */
static bool is_straight(const grvi_plan_target *slice, int64_t n_bytes)
{
    const grvi_chain *const chain = slice->chain;
    int64_t n = 0;
    (void)grvi_count_elements(chain->rank, slice->box.count, &n);
    return n * chain->item_bytes == n_bytes && chain->swap_bytes == 1 &&
           grvi_is_dense(chain->rank, slice->box.count, chain->item_bytes, slice->strides);
}

/* Does the system's copy from this offset of a file to this address run at full speed? Where the address lies 1 to 31 bytes
 * further into its cache line than the byte in the page cache does, it runs at 1.9 instead of 5 GB/s (`rep movsb` on Zen 3). */
static bool is_fast_copy(const uint8_t *address, int64_t offset)
{
    const uint64_t shift = ((uint64_t)(uintptr_t)address - (uint64_t)offset) % LINE_BYTES;
    return shift == 0 || shift >= LINE_BYTES / 2;
}

bool grvi_plan_slice_is_direct(const grvi_plan_target *slice, int64_t offset, int64_t n_bytes)
{
    return n_bytes >= direct_least_bytes && is_straight(slice, n_bytes) &&
           is_fast_copy(slice->out, offset);
}

static void piece_slice(const grv_read_plan *plan, const grvi_plan_piece *piece,
                        grvi_plan_target *slice)
{
    grvi_plan_target target;
    grvi_plan_slicing slicing;
    int64_t offset = 0, n_bytes = 0;
    piece_target(plan, piece, &target);
    grvi_plan_to_stored(&target);
    grvi_plan_slices(plan, &target, &slicing);
    grvi_plan_slice(&target, &slicing, piece->slice, slice, &offset, &n_bytes);
}

/* ---- decoding ---- */

static void fill_piece(const grv_read_plan *plan, const grvi_plan_piece *piece)
{
    grvi_plan_target t;
    piece_target(plan, piece, &t);
    grvi_region_fill(t.chain->rank, t.box.count, t.chain->item_bytes, t.chain->fill, t.out,
                     t.strides);
}

static void copy_slice(const grvi_plan_target *slice, const uint8_t *data, grvi_scratch *scratch)
{
    const grvi_chain *const chain = slice->chain;
    int64_t stride[GRVI_MAX_RANK], n = 0;
    grvi_dense_strides(chain->rank, chain->stored_shape, chain->item_bytes, stride);
    (void)grvi_count_elements(chain->rank, slice->box.count, &n);
    scratch->bytes_decoded += n * chain->item_bytes;
    grvi_region_copy(chain->rank, slice->box.count, chain->item_bytes, chain->swap_bytes, data,
                     stride, slice->out, slice->strides);
}

/* The smallest box that holds what all pieces want of their chunk. */
static void bounding_box(const grv_read_plan *plan, const grvi_plan_piece *pieces, int64_t n,
                         grvi_plan_target *bounds)
{
    piece_target(plan, &pieces[0], bounds);
    for (int64_t i = 1; i < n; i++) {
        grvi_plan_target t;
        piece_target(plan, &pieces[i], &t);
        for (int a = 0; a < t.chain->rank; a++) {
            const int64_t start = grvi_min_i64(bounds->box.start[a], t.box.start[a]);
            const int64_t end = grvi_max_i64(bounds->box.start[a] + bounds->box.count[a],
                                             t.box.start[a] + t.box.count[a]);
            bounds->box.start[a] = start;
            bounds->box.count[a] = end - start;
        }
    }
}

/* Decodes a chunk that several pieces want once, then copies to each what it wants. */
static grv_status decode_shared(const grv_read_plan *plan, const grvi_plan_piece *pieces, int64_t n,
                                const uint8_t *data, int64_t n_data, grvi_scratch *scratch)
{
    grvi_plan_target bounds;
    bounding_box(plan, pieces, n, &bounds);
    const grvi_chain *const chain = bounds.chain;
    int64_t n_bytes = 0, stride[GRVI_MAX_RANK];
    GRV_CHECK(grvi_count_elements(chain->rank, bounds.box.count, &n_bytes) &&
                  grvi_mul_i64(n_bytes, chain->item_bytes, &n_bytes),
              GRV_E_NOMEM, "a chunk of more than 2^63 bytes");
    GRV_TRY(grvi_buffer_reserve(&scratch->shared, n_bytes));
    grvi_dense_strides(chain->rank, bounds.box.count, chain->item_bytes, stride);
    GRV_TRY(grvi_chain_decode(chain, scratch, 0, data, n_data, &bounds.box, scratch->shared.data,
                              stride));
    for (int64_t i = 0; i < n; i++) {
        grvi_plan_target t;
        int64_t first = 0;
        piece_target(plan, &pieces[i], &t);
        for (int a = 0; a < chain->rank; a++)
            first += (t.box.start[a] - bounds.box.start[a]) * stride[a];
        grvi_region_copy(chain->rank, t.box.count, chain->item_bytes, 1,
                         scratch->shared.data + first, stride, t.out, t.strides);
    }
    return GRV_OK;
}

static grv_status decode_chunk(const grv_read_plan *plan, const grvi_plan_piece *pieces, int64_t n,
                               const uint8_t *data, int64_t n_data, grvi_scratch *scratch)
{
    if (n > 1) return decode_shared(plan, pieces, n, data, n_data, scratch);
    grvi_plan_target t;
    piece_target(plan, &pieces[0], &t);
    return grvi_chain_decode(t.chain, scratch, 0, data, n_data, &t.box, t.out, t.strides);
}

/* ---- reading ---- */

grv_status grvi_plan_read(const grvi_plan_object *object, const char *what, int64_t offset,
                          int64_t n, void *out)
{
    grv_store *const store = object->array->store;
    GRV_TRY(store->kv->class->read_object(store->kv, &object->object, what, offset, n, out));
    (void)atomic_fetch_add(&store->bytes_read, n);
    (void)atomic_fetch_add(&store->read_calls, 1);
    return GRV_OK;
}

static grv_status read_data(grv_read_plan *plan, const grvi_plan_object *object, int64_t offset,
                            int64_t n, void *out)
{
    const char *const what = object->index != NULL ? "shard" : "chunk";
    GRV_TRY(grvi_plan_read(object, what, offset, n, out));
    (void)atomic_fetch_add(&plan->n_reads, 1);
    (void)atomic_fetch_add(&plan->bytes_read, n);
    return GRV_OK;
}

/* Decoding, n_threads at a time where more threads read. */
static void begin_decoding(grv_read_plan *plan)
{
    if (plan->has_gate) grvi_gate_enter(&plan->gate);
}

static void end_decoding(grv_read_plan *plan)
{
    if (plan->has_gate) grvi_gate_leave(&plan->gate);
}

static grv_status read_whole(grv_read_plan *plan, grvi_plan_object *object,
                             const grvi_plan_run *run, grvi_scratch *scratch)
{
    const grvi_chain *const chain = object->array->metadata.chain;
    const int64_t most = chain->limit[chain->n_codecs], n_bytes = object->object.n_bytes;
    GRV_CHECK(n_bytes <= most, GRV_E_FORMAT, "at most %lld bytes expected, %lld found",
              (long long)most, (long long)n_bytes);
    GRV_TRY(grvi_buffer_reserve(&scratch->encoded, n_bytes));
    GRV_TRY(read_data(plan, object, 0, n_bytes, scratch->encoded.data));
    begin_decoding(plan);
    const grv_status status = decode_chunk(plan, &grvi_plan_pieces(plan)[run->first_piece],
                                           run->n_pieces, scratch->encoded.data, n_bytes, scratch);
    end_decoding(plan);
    (void)atomic_fetch_add(&plan->n_chunks, 1);
    return status;
}

static void fill_pieces(const grv_read_plan *plan, const grvi_plan_run *run)
{
    for (int64_t i = 0; i < run->n_pieces; i++)
        fill_piece(plan, &grvi_plan_pieces(plan)[run->first_piece + i]);
}

/* A chunk that is read whole: opened here, so that a plan of many chunks does not hold as many files. */
static grv_status do_whole(grv_read_plan *plan, const grvi_plan_run *run, grvi_scratch *scratch)
{
    const grvi_plan_piece *const piece = &grvi_plan_pieces(plan)[run->first_piece];
    grvi_plan_object *const object = &grvi_plan_objects(plan)[piece->object];
    grv_store *const store = object->array->store;
    char key[GRVI_KEY_BYTES];
    bool found = false;
    GRV_TRY(grvi_array_key(object->array, object->position, key));
    const grvi_chain *const chain = object->array->metadata.chain;
    const grvi_byte_range whole = {0, chain->limit[chain->n_codecs]};
    GRV_TRY(grvi_kv_open(store->kv, key, whole, &object->object, &found));
    if (!found) {
        fill_pieces(plan, run);
        return GRV_OK;
    }
    (void)atomic_fetch_add(&store->objects_opened, 1);
    const grv_status status = read_whole(plan, object, run, scratch);
    store->kv->class->close_object(store->kv, &object->object);
    return status == GRV_OK ? GRV_OK : grvi_plan_fail_object(object, status);
}

/* One slice straight into the caller's memory; *done = false if its bytes have to be moved. */
static grv_status try_direct(grv_read_plan *plan, const grvi_plan_object *object,
                             const grvi_plan_piece *piece, grvi_scratch *scratch, bool *done)
{
    grvi_plan_target slice;
    piece_slice(plan, piece, &slice);
    *done = is_straight(&slice, piece->n_bytes) &&
            (piece->n_bytes < aligned_least_bytes || is_fast_copy(slice.out, piece->offset));
    if (!*done) return GRV_OK;
    scratch->bytes_decoded += piece->n_bytes;
    (void)atomic_fetch_add(&plan->n_chunks, 1);
    return read_data(plan, object, piece->offset, piece->n_bytes, slice.out);
}

/* encoded: the run's bytes */
static grv_status decode_run(grv_read_plan *plan, const grvi_plan_run *run, bool is_raw,
                             const uint8_t *encoded, grvi_scratch *scratch)
{
    const grvi_plan_piece *const pieces = &grvi_plan_pieces(plan)[run->first_piece];
    for (int64_t i = 0, n = 1; i < run->n_pieces; i += n, n = 1) {
        const grvi_plan_piece *const p = &pieces[i];
        const uint8_t *const data = encoded + (p->offset - run->offset);
        (void)atomic_fetch_add(&plan->n_chunks, 1);
        if (is_raw) {
            grvi_plan_target slice;
            piece_slice(plan, p, &slice);
            copy_slice(&slice, data, scratch);
            continue;
        }
        while (i + n < run->n_pieces && pieces[i + n].cell == p->cell) n++;
        const grv_status status = decode_chunk(plan, p, n, data, p->n_bytes, scratch);
        if (status != GRV_OK) return grvi_plan_fail_piece(plan, p, status);
    }
    return GRV_OK;
}

/* Ranges of an object that was opened before. */
static grv_status do_ranges(grv_read_plan *plan, const grvi_plan_run *run, grvi_scratch *scratch)
{
    const grvi_plan_piece *const piece = &grvi_plan_pieces(plan)[run->first_piece];
    const grvi_plan_object *const object = &grvi_plan_objects(plan)[piece->object];
    const grvi_chain *const chain = object->array->metadata.chain;
    const bool is_raw = grvi_chain_is_raw(object->index != NULL ? chain->sharding->inner : chain);
    /* as far into a cache line as in the file: see is_fast_copy */
    const int64_t shift = run->offset % LINE_BYTES;
    grv_status status = GRV_OK;
    bool done = false;
    if (is_raw && run->n_pieces == 1) status = try_direct(plan, object, piece, scratch, &done);
    if (status == GRV_OK && !done) {
        status = grvi_buffer_reserve(&scratch->encoded, LINE_BYTES + run->n_bytes);
        if (status == GRV_OK)
            status =
                read_data(plan, object, run->offset, run->n_bytes, scratch->encoded.data + shift);
    }
    if (status != GRV_OK) return grvi_plan_fail_piece(plan, piece, status);
    if (done) return GRV_OK;
    begin_decoding(plan);
    status = decode_run(plan, run, is_raw, scratch->encoded.data + shift, scratch);
    end_decoding(plan);
    return status;
}

grv_status grvi_plan_do_run(grv_read_plan *plan, const grvi_plan_run *run, grvi_scratch *scratch)
{
    const grvi_plan_piece *const piece = &grvi_plan_pieces(plan)[run->first_piece];
    const grvi_plan_object *const object = &grvi_plan_objects(plan)[piece->object];
    grv_status status = GRV_OK;
    if (piece->offset == GRVI_FILL)
        fill_pieces(plan, run);
    else if (object->opens_early)
        status = do_ranges(plan, run, scratch);
    else
        status = do_whole(plan, run, scratch);
    (void)atomic_fetch_add(&plan->bytes_decoded, scratch->bytes_decoded);
    grvi_store_count_decoded(object->array->store, scratch);
    return status;
}
