/* Running a read plan in waves. A wave opens a bounded number of stored objects (and gets the indices of shards), turns what is
 * wanted of them into pieces, joins neighbouring pieces into runs of one range read each, and has threads do the runs. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/read_plan_impl.h"

enum {
    MAX_WAVE_OBJECTS = 1024, /* those that are opened where they are read included */
    MAX_PIECES = 16384, /* between two objects: more are read before the next object adds its own */
    MAX_RUN_FILLS = 64,
    RUNS_AHEAD = 4, /* of each thread */
    LEAST_PARALLEL_OPENS = 8
};
/* shorter runs are not made only to busy more threads */
static const int64_t run_least_bytes = (int64_t)1 << 18;
/* less work than this is not worth waking a thread */
static const int64_t parallel_least_bytes = (int64_t)1 << 17;

/* One wave. */
typedef struct wave {
    grv_read_plan *plan;
    int64_t n_objects, n_open_early;
    int64_t work_bytes; /* of the pieces, decoded */
} wave;

/* ---- threads ---- */

static grv_status check_cancelled(const grv_read_plan *plan)
{
    GRV_CHECK(!atomic_load(&plan->cancelled), GRV_E_CANCELLED, "reading was cancelled");
    return GRV_OK;
}

typedef grv_status task_body(grv_read_plan *plan, int64_t task, grvi_scratch *scratch);

typedef struct task_call {
    grv_read_plan *plan;
    int64_t n;
    task_body *body;
} task_call;

static void do_tasks(void *argument)
{
    const task_call *const call = argument;
    grv_read_plan *const plan = call->plan;
    grvi_scratch *scratch = NULL;
    grv_status status = grvi_scratch_take(&plan->store->scratches, &scratch);
    int64_t task = 0;
    while (status == GRV_OK && !grvi_first_error_is_set(&plan->error)) {
        task = atomic_fetch_add(&plan->next, 1);
        if (task >= call->n) break;
        status = check_cancelled(plan);
        if (status == GRV_OK) status = call->body(plan, task, scratch);
    }
    grvi_first_error_note(&plan->error, task, status);
    grvi_scratch_give(scratch);
}

/* Tasks 0..n-1 on n_threads threads; the first error ends them all. */
static grv_status run_tasks(grv_read_plan *plan, int n_threads, int64_t n, task_body *body)
{
    task_call call = {plan, n, body};
    if (n == 0) return GRV_OK;
    grvi_first_error_init(&plan->error);
    atomic_store(&plan->next, 0);
    grvi_workers_run(&plan->store->workers, (int)grvi_min_i64(n_threads, n), do_tasks, &call);
    return grvi_first_error_fini(&plan->error);
}

/* ---- objects ---- */

static void begin_object(const grv_read_plan *plan, int64_t use, int64_t n_uses,
                         grvi_plan_object *object)
{
    const grvi_plan_use *const u = &grvi_plan_uses(plan)[use];
    const grvi_plan_part *const part = &grvi_plan_parts(plan)[u->part];
    grv_array *const array = grvi_plan_requests(plan)[part->request].array;
    const grvi_chain *const chain = array->metadata.chain;
    int64_t rest = u->object;
    memset(object, 0, sizeof *object);
    object->array = array;
    object->first_use = use;
    object->n_uses = n_uses;
    object->opens_early = grvi_chain_is_plain_shard(chain) || grvi_chain_is_raw(chain);
    for (int i = array->metadata.desc.rank - 1; i >= 0; i--) {
        object->position[i] = rest % array->grid[i];
        rest /= array->grid[i];
    }
}

/* Objects for the uses from *use on, as many as a wave may hold. */
static grv_status gather_objects(wave *w, int64_t *use)
{
    grv_read_plan *const plan = w->plan;
    const grvi_plan_use *const uses = grvi_plan_uses(plan);
    w->n_objects = w->n_open_early = 0;
    plan->objects.n = 0;
    while (*use < plan->n_uses && w->n_objects < MAX_WAVE_OBJECTS &&
           w->n_open_early < plan->params.max_open) {
        grvi_plan_object object;
        int64_t n = 1;
        while (*use + n < plan->n_uses && uses[*use + n].object == uses[*use].object &&
               uses[*use + n].array_number == uses[*use].array_number)
            n++;
        begin_object(plan, *use, n, &object);
        GRV_TRY(grvi_buffer_append(&plan->objects, &object, (int64_t)sizeof object));
        w->n_objects++;
        w->n_open_early += object.opens_early;
        *use += n;
    }
    return GRV_OK;
}

static grv_status read_index(grvi_plan_object *object, int64_t number, grvi_scratch *scratch)
{
    grv_status status = GRV_OK;
    grv_store *const store = object->array->store;
    const grvi_sharding *const sharding = object->array->metadata.chain->sharding;
    grvi_shard_index *index = NULL;
    int64_t offset = 0;
    GRV_TRY_GOTO(grvi_shard_index_place(sharding, object->object.n_bytes, &offset));
    GRV_TRY_GOTO(grvi_shard_index_create(sharding->n_inner, &index));
    GRV_TRY_GOTO(grvi_buffer_reserve(&scratch->encoded, sharding->index_bytes));
    GRV_TRY_GOTO(grvi_plan_read(object, "shard index", offset, sharding->index_bytes,
                                scratch->encoded.data));
    GRV_TRY_GOTO(grvi_shard_index_decode(sharding, scratch->encoded.data, object->object.n_bytes,
                                         index->entries));
    index->array_id = object->array->id;
    index->object_number = number;
    memcpy(index->identity, object->object.identity, sizeof index->identity);
    grvi_index_cache_put(&store->indices, index);
    object->index = index;
    index = NULL;
done:
    grvi_shard_index_release(index);
    return status;
}

static grv_status prepare_object(grvi_plan_object *object, grvi_scratch *scratch)
{
    grv_array *const array = object->array;
    const grvi_chain *const chain = array->metadata.chain;
    if (grvi_chain_is_raw(chain)) {
        GRV_CHECK(object->object.n_bytes == chain->n_bytes, GRV_E_FORMAT,
                  "%lld bytes expected, %lld read", (long long)chain->n_bytes,
                  (long long)object->object.n_bytes);
        return GRV_OK;
    }
    const int64_t number = grvi_array_object_number(array, object->position);
    object->index =
        grvi_index_cache_get(&array->store->indices, array->id, number, object->object.identity);
    return object->index != NULL ? GRV_OK : read_index(object, number, scratch);
}

/* What will be read of an object as soon as it is open: a shard's index, unless it is known. */
static grvi_byte_range read_first(const grvi_plan_object *object)
{
    const grv_array *const array = object->array;
    const grvi_sharding *const sharding = array->metadata.chain->sharding;
    if (array->store->kv->class->open_ahead == NULL || sharding == NULL)
        return (grvi_byte_range){0, 1};
    grvi_shard_index *const index = grvi_index_cache_get(
        &array->store->indices, array->id, grvi_array_object_number(array, object->position), NULL);
    grvi_shard_index_release(index);
    if (index != NULL) return (grvi_byte_range){0, 1};
    return (grvi_byte_range){sharding->index_at_start ? 0 : -sharding->index_bytes,
                             sharding->index_bytes};
}

static grv_status open_object(grv_read_plan *plan, int64_t task, grvi_scratch *scratch)
{
    grvi_plan_object *const object = &grvi_plan_objects(plan)[task];
    grv_store *const store = object->array->store;
    char key[GRVI_KEY_BYTES];
    if (!object->opens_early) return GRV_OK;
    GRV_TRY(grvi_array_key(object->array, object->position, key));
    GRV_TRY(grvi_kv_open(store->kv, key, read_first(object), &object->object, &object->is_open));
    if (!object->is_open) return GRV_OK;
    (void)atomic_fetch_add(&store->objects_opened, 1);
    const grv_status status = prepare_object(object, scratch);
    return status == GRV_OK ? GRV_OK : grvi_plan_fail_object(object, status);
}

static grv_status open_objects(const wave *w)
{
    if (w->n_open_early == 0) return GRV_OK;
    const bool alone = !w->plan->has_gate && w->n_open_early < LEAST_PARALLEL_OPENS;
    return run_tasks(w->plan, alone ? 1 : w->plan->n_workers, w->n_objects, open_object);
}

static void close_objects(const wave *w)
{
    for (int64_t i = 0; i < w->n_objects; i++) {
        grvi_plan_object *const object = &grvi_plan_objects(w->plan)[i];
        grvi_kv *const kv = object->array->store->kv;
        grvi_shard_index_release(object->index);
        if (object->is_open) kv->class->close_object(kv, &object->object);
    }
}

/* ---- pieces ---- */

static int64_t target_bytes(const grvi_plan_target *target)
{
    int64_t n = 0;
    (void)grvi_count_elements(target->chain->rank, target->box.count, &n);
    return n * target->chain->item_bytes;
}

static grv_status add_piece(wave *w, const grvi_plan_piece *piece, int64_t work_bytes)
{
    w->work_bytes += work_bytes;
    return grvi_buffer_append(&w->plan->pieces, piece, (int64_t)sizeof *piece);
}

/* The slices of a raw chunk whose first byte is at `offset` of the object; target in the chain's own axes. */
static grv_status add_slices(wave *w, grvi_plan_piece piece, int64_t offset,
                             grvi_plan_target *target)
{
    grvi_plan_slicing slicing;
    grvi_plan_to_stored(target);
    grvi_plan_slices(w->plan, target, &slicing);
    for (piece.slice = 0; piece.slice < slicing.n_slices; piece.slice++) {
        grvi_plan_target slice;
        grvi_plan_slice(target, &slicing, piece.slice, &slice, &piece.offset, &piece.n_bytes);
        piece.offset += offset;
        piece.is_direct = grvi_plan_slice_is_direct(&slice, piece.offset, piece.n_bytes);
        GRV_TRY(add_piece(w, &piece, piece.n_bytes));
    }
    return GRV_OK;
}

static grv_status check_entry(const grv_read_plan *plan, const grvi_plan_piece *piece,
                              const grvi_chain *inner)
{
    const int64_t most = inner->limit[inner->n_codecs];
    if (piece->n_bytes <= most && (!grvi_chain_is_raw(inner) || piece->n_bytes == most))
        return GRV_OK;
    const grv_status status = grvi_fail(
        GRV_E_FORMAT, __FILE__, __LINE__, __func__, "%s%lld bytes expected, %lld found",
        grvi_chain_is_raw(inner) ? "" : "at most ", (long long)most, (long long)piece->n_bytes);
    return grvi_plan_fail_piece(plan, piece, status);
}

static grv_status add_cell(wave *w, grvi_plan_piece piece, const grvi_shard_entry *entry,
                           const grvi_plan_target *shard, const int64_t *cell)
{
    const grvi_chain *const inner = shard->chain->sharding->inner;
    grvi_plan_target target;
    grvi_plan_cell_target(shard, cell, &target);
    if (grvi_shard_entry_is_empty(entry)) {
        piece.offset = GRVI_FILL;
        return add_piece(w, &piece, target_bytes(&target));
    }
    piece.offset = (int64_t)entry->offset;
    piece.n_bytes = (int64_t)entry->n_bytes;
    GRV_TRY(check_entry(w->plan, &piece, inner));
    if (grvi_chain_is_raw(inner)) return add_slices(w, piece, piece.offset, &target);
    return add_piece(w, &piece, inner->limit[0]);
}

static grv_status add_cells(wave *w, grvi_plan_piece piece, const grvi_shard_index *index,
                            grvi_plan_target *target)
{
    const grvi_chain *const chain = target->chain;
    grvi_box cells;
    int64_t step[GRVI_MAX_RANK] = {0}, cell[GRVI_MAX_RANK];
    grvi_plan_to_stored(target);
    grvi_shard_cells(chain, &target->box, &cells);
    do {
        for (int i = 0; i < chain->rank; i++) cell[i] = cells.start[i] + step[i];
        piece.cell = grvi_shard_cell_number(chain, cell);
        GRV_TRY(add_cell(w, piece, &index->entries[piece.cell], target, cell));
    } while (grvi_next_index(chain->rank, cells.count, step));
    return GRV_OK;
}

static grv_status add_object_pieces(wave *w, int64_t number)
{
    const grvi_plan_object *const object = &grvi_plan_objects(w->plan)[number];
    const grvi_chain *const chain = object->array->metadata.chain;
    for (int64_t i = 0; i < object->n_uses; i++) {
        grvi_plan_target target;
        grvi_plan_piece piece = {
            .object = number, .cell = GRVI_WHOLE_OBJECT, .use = object->first_use + i};
        grvi_plan_object_target(w->plan, object, piece.use, &target);
        if (object->opens_early && !object->is_open) {
            piece.offset = GRVI_FILL;
            GRV_TRY(add_piece(w, &piece, target_bytes(&target)));
        } else if (object->index != NULL) {
            GRV_TRY(add_cells(w, piece, object->index, &target));
        } else if (object->opens_early) {
            GRV_TRY(add_slices(w, piece, 0, &target));
        } else {
            GRV_TRY(add_piece(w, &piece, chain->limit[0]));
        }
    }
    return GRV_OK;
}

/* ---- runs ---- */

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_pieces(const void *a, const void *b)
{
    const grvi_plan_piece *const p = a, *const q = b;
    int order = compare_i64(p->object, q->object);
    if (order == 0) order = compare_i64(p->offset, q->offset);
    if (order == 0) order = compare_i64(p->cell, q->cell);
    if (order == 0) order = compare_i64(p->use, q->use);
    return order != 0 ? order : compare_i64(p->slice, q->slice);
}

static bool same_chunk(const grvi_plan_piece *p, const grvi_plan_piece *q)
{
    return p->object == q->object && p->cell == q->cell && p->offset == q->offset;
}

static int64_t run_limit(const grv_read_plan *plan, int64_t n_pieces)
{
    const grvi_plan_piece *const pieces = grvi_plan_pieces(plan);
    int64_t total = 0;
    if (plan->n_workers <= 1) return plan->run_bytes;
    for (int64_t i = 0; i < n_pieces; i++)
        if (i == 0 || !same_chunk(&pieces[i - 1], &pieces[i])) total += pieces[i].n_bytes;
    /* a few runs for each thread, so that all end at about the same time */
    return grvi_min_i64(plan->run_bytes,
                        grvi_max_i64(run_least_bytes, total / (4 * (int64_t)plan->n_workers)));
}

/* Does a piece go into the run that ends with the piece before it? */
static bool joins(const grv_read_plan *plan, const grvi_plan_run *run, const grvi_plan_piece *last,
                  const grvi_plan_piece *piece, int64_t limit)
{
    if (last->object != piece->object) return false;
    if (last->offset == GRVI_FILL || piece->offset == GRVI_FILL)
        return last->offset == piece->offset && run->n_pieces < MAX_RUN_FILLS;
    if (last->is_direct || piece->is_direct) return false;
    if (same_chunk(last, piece)) return true;
    return piece->offset <= run->offset + run->n_bytes + plan->gap_bytes &&
           piece->offset + piece->n_bytes - run->offset <= limit;
}

static grv_status make_runs(wave *w)
{
    grv_read_plan *const plan = w->plan;
    const int64_t n_pieces = grvi_plan_n_pieces(plan);
    const int64_t limit = run_limit(plan, n_pieces);
    const grvi_plan_piece *const pieces = grvi_plan_pieces(plan);
    GRV_TRY(grvi_buffer_reserve(&plan->runs, n_pieces * (int64_t)sizeof(grvi_plan_run)));
    grvi_plan_run *const runs = grvi_plan_runs(plan);
    plan->n_runs = 0;
    for (int64_t i = 0; i < n_pieces; i++) {
        const grvi_plan_piece *const p = &pieces[i];
        if (plan->n_runs > 0 && joins(plan, &runs[plan->n_runs - 1], &pieces[i - 1], p, limit)) {
            grvi_plan_run *const run = &runs[plan->n_runs - 1];
            run->n_pieces++;
            run->n_bytes = grvi_max_i64(run->n_bytes, p->offset + p->n_bytes - run->offset);
        } else {
            runs[plan->n_runs++] = (grvi_plan_run){i, 1, p->offset, p->n_bytes};
        }
    }
    return GRV_OK;
}

/* Lets the back end begin with runs that are some way off, so that a cold disk has several to work on. */
static void announce_runs(const grv_read_plan *plan, int64_t first, int64_t end)
{
    for (int64_t i = first; i < grvi_min_i64(end, plan->n_runs); i++) {
        const grvi_plan_run *const run = &grvi_plan_runs(plan)[i];
        const grvi_plan_piece *const piece = &grvi_plan_pieces(plan)[run->first_piece];
        const grvi_plan_object *const object = &grvi_plan_objects(plan)[piece->object];
        grvi_kv *const kv = object->array->store->kv;
        if (object->is_open && run->offset != GRVI_FILL && kv->class->will_read != NULL)
            kv->class->will_read(kv, &object->object, run->offset, run->n_bytes);
    }
}

static grv_status do_run(grv_read_plan *plan, int64_t task, grvi_scratch *scratch)
{
    const int64_t ahead = (int64_t)RUNS_AHEAD * plan->n_workers;
    announce_runs(plan, task == 0 ? 1 : task + ahead, task + ahead + 1);
    return grvi_plan_do_run(plan, &grvi_plan_runs(plan)[task], scratch);
}

/* Reads and decodes the pieces gathered so far. */
static grv_status flush_pieces(wave *w)
{
    grv_read_plan *const plan = w->plan;
    grvi_plan_piece *const pieces = grvi_plan_pieces(plan);
    const int64_t n_pieces = grvi_plan_n_pieces(plan);
    bool sorted = true;
    for (int64_t i = 1; i < n_pieces && sorted; i++)
        sorted = compare_pieces(&pieces[i - 1], &pieces[i]) < 0;
    if (!sorted) qsort(pieces, (size_t)n_pieces, sizeof *pieces, compare_pieces);
    GRV_TRY(make_runs(w));
    const bool alone = !plan->has_gate && w->work_bytes < parallel_least_bytes;
    GRV_TRY(run_tasks(plan, alone ? 1 : plan->n_workers, plan->n_runs, do_run));
    plan->pieces.n = 0;
    w->work_bytes = 0;
    return GRV_OK;
}

static grv_status do_wave(wave *w)
{
    GRV_TRY(open_objects(w));
    w->plan->pieces.n = 0;
    w->work_bytes = 0;
    for (int64_t i = 0; i < w->n_objects; i++) {
        GRV_TRY(add_object_pieces(w, i));
        if (grvi_plan_n_pieces(w->plan) >= MAX_PIECES) GRV_TRY(flush_pieces(w));
    }
    return flush_pieces(w);
}

grv_status grvi_plan_do_waves(grv_read_plan *plan)
{
    wave w = {.plan = plan};
    for (int64_t use = 0; use < plan->n_uses;) {
        GRV_TRY(gather_objects(&w, &use));
        const grv_status status = do_wave(&w);
        close_objects(&w);
        GRV_TRY(status);
    }
    return GRV_OK;
}
