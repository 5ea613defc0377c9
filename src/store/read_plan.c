/* Making a read plan: requests become parts (boxes), and each part a use of every stored object that it touches. Uses are
 * sorted by object, so that an object is opened, and a chunk decoded, once for all that want it.
 * Cost: 32 bytes for each part and 24 for each use. */
#include "grove/read_plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/read_plan_impl.h"

/* reading so much of a file in vain costs less than another call */
static const int64_t file_gap_bytes = 4096;
/* long enough for a disk, and decoded while still in the cache */
static const int64_t file_run_bytes = (int64_t)2 << 20;
/* shorter runs are not made for want of memory */
static const int64_t run_least_bytes = (int64_t)1 << 16;

grv_read_plan_params grv_read_plan_params_default(void)
{
    return (grv_read_plan_params){.n_threads = 0,
                                  .n_io = -1,
                                  .gap_bytes = -1,
                                  .run_bytes = 0,
                                  .memory_bytes = (int64_t)256 << 20,
                                  .max_open = 64};
}

/* ---- parts ---- */

/* An entry of a list of rows: row number, and place in the request's memory. */
typedef struct row_place {
    int64_t row, place;
} row_place;

static int compare_rows(const void *a, const void *b)
{
    const row_place *const p = a, *const q = b;
    if (p->row != q->row) return p->row < q->row ? -1 : 1;
    return (p->place > q->place) - (p->place < q->place);
}

static grv_status sort_rows(grv_read_plan *plan, const grv_read_request *request)
{
    const int64_t n = request->n_rows;
    bool sorted = true;
    GRV_TRY(grvi_buffer_reserve(&plan->rows, n * (int64_t)sizeof(row_place)));
    row_place *const rows = (row_place *)(void *)plan->rows.data;
    for (int64_t i = 0; i < n; i++) {
        rows[i] = (row_place){request->rows[i], i};
        sorted = sorted && (i == 0 || rows[i - 1].row <= rows[i].row);
    }
    if (!sorted) qsort(rows, (size_t)n, sizeof *rows, compare_rows);
    return GRV_OK;
}

static grv_status add_part(grv_read_plan *plan, int64_t request, int64_t start, int64_t count,
                           int64_t place)
{
    const int rank = grvi_plan_requests(plan)[request].array->metadata.desc.rank;
    const int64_t stride = rank > 0 ? grvi_plan_requests(plan)[request].strides[0] : 0;
    const grvi_plan_part part = {request, start, count, place * stride};
    return grvi_buffer_append(&plan->parts, &part, (int64_t)sizeof part);
}

/* Rows that follow each other in the array and in memory are one part. */
static grv_status add_row_parts(grv_read_plan *plan, int64_t number,
                                const grv_read_request *request)
{
    GRV_TRY(sort_rows(plan, request));
    const row_place *const rows = (const row_place *)(const void *)plan->rows.data;
    for (int64_t i = 0, n = 1; i < request->n_rows; i += n, n = 1) {
        while (i + n < request->n_rows && rows[i + n].row == rows[i].row + n &&
               rows[i + n].place == rows[i].place + n)
            n++;
        GRV_TRY(add_part(plan, number, rows[i].row, n, rows[i].place));
    }
    return GRV_OK;
}

/* ---- requests ---- */

static grv_status array_number(grv_read_plan *plan, grv_array *array, int *number)
{
    grv_array *const *const arrays = (grv_array *const *)(void *)plan->arrays.data;
    const int64_t n = plan->arrays.n / (int64_t)sizeof array;
    /* the last ones first: requests of one array usually follow each other */
    for (int64_t i = n - 1; i >= 0; i--) {
        if (arrays[i] != array) continue;
        *number = (int)i;
        return GRV_OK;
    }
    GRV_TRY(grvi_to_int(n, number));
    return grvi_buffer_append(&plan->arrays, &array, (int64_t)sizeof array);
}

static grv_status check_rows(const grv_read_request *request)
{
    const grv_array_desc *const desc = grv_array_get_desc(request->array);
    const char *const name = grvi_array_name(request->array);
    GRV_CHECK(desc->rank > 0, GRV_E_ARG, "'%s' has no axis, hence no rows", name);
    GRV_CHECK(request->n_rows >= 0, GRV_E_ARG, "'%s': %lld rows asked for", name,
              (long long)request->n_rows);
    for (int64_t i = 0; i < request->n_rows; i++)
        GRV_CHECK(request->rows[i] >= 0 && request->rows[i] < desc->shape[0], GRV_E_ARG,
                  "'%s': row %lld (entry %lld of the list) asked for, there are %lld", name,
                  (long long)request->rows[i], (long long)i, (long long)desc->shape[0]);
    return GRV_OK;
}

static grv_status copy_request(grv_read_plan *plan, const grv_read_request *request,
                               grvi_plan_request *copy)
{
    const int rank = grv_array_get_desc(request->array)->rank;
    copy->array = request->array;
    copy->out = request->out;
    for (int i = 0; i < rank; i++) {
        copy->start[i] = i == 0 && request->rows != NULL ? 0 : request->start[i];
        copy->count[i] = i == 0 && request->rows != NULL ? 0 : request->count[i];
    }
    GRV_TRY(grvi_array_check_region(request->array, copy->start, copy->count));
    if (request->rows != NULL) {
        GRV_TRY(check_rows(request));
        copy->count[0] = request->n_rows;
    }
    GRV_TRY(grvi_array_byte_strides(request->array, copy->count, request->strides, copy->strides));
    return array_number(plan, request->array, &copy->array_number);
}

static grv_status add_request(grv_read_plan *plan, const grv_read_request *request)
{
    const int64_t number = plan->n_requests;
    grvi_plan_request copy;
    int64_t n_elements = 0;
    GRV_TRY(copy_request(plan, request, &copy));
    GRV_TRY(grvi_buffer_append(&plan->requests, &copy, (int64_t)sizeof copy));
    plan->n_requests++;
    const grvi_metadata *const metadata = &request->array->metadata;
    const int rank = metadata->desc.rank;
    (void)grvi_count_elements(rank, copy.count, &n_elements); /* checked with the strides */
    plan->info.bytes_wanted += n_elements * metadata->chain->item_bytes;
    if (n_elements == 0) return GRV_OK;
    if (request->rows != NULL) return add_row_parts(plan, number, request);
    return add_part(plan, number, rank > 0 ? copy.start[0] : 0, rank > 0 ? copy.count[0] : 1, 0);
}

/* ---- uses ---- */

static int compare_uses(const void *a, const void *b)
{
    const grvi_plan_use *const p = a, *const q = b;
    if (p->array_number != q->array_number) return p->array_number < q->array_number ? -1 : 1;
    if (p->object != q->object) return p->object < q->object ? -1 : 1;
    return (p->part > q->part) - (p->part < q->part);
}

static grv_status add_uses(grv_read_plan *plan, int64_t number)
{
    const grvi_plan_part *const part = &grvi_plan_parts(plan)[number];
    const grvi_plan_request *const request = &grvi_plan_requests(plan)[part->request];
    const grv_array_desc *const desc = grv_array_get_desc(request->array);
    int64_t first[GRVI_MAX_RANK], n[GRVI_MAX_RANK], position[GRVI_MAX_RANK],
        step[GRVI_MAX_RANK] = {0};
    for (int i = 0; i < desc->rank; i++) {
        const int64_t start = i == 0 ? part->start : request->start[i];
        const int64_t count = i == 0 ? part->count : request->count[i];
        first[i] = start / desc->chunk_shape[i];
        n[i] = (start + count - 1) / desc->chunk_shape[i] - first[i] + 1;
    }
    do {
        for (int i = 0; i < desc->rank; i++) position[i] = first[i] + step[i];
        const grvi_plan_use use = {request->array_number,
                                   grvi_array_object_number(request->array, position), number};
        GRV_TRY(grvi_buffer_append(&plan->uses, &use, (int64_t)sizeof use));
        plan->n_uses++;
    } while (grvi_next_index(desc->rank, n, step));
    return GRV_OK;
}

static grv_status make_uses(grv_read_plan *plan)
{
    const int64_t n_parts = plan->parts.n / (int64_t)sizeof(grvi_plan_part);
    bool sorted = true;
    for (int64_t i = 0; i < n_parts; i++) GRV_TRY(add_uses(plan, i));
    grvi_plan_use *const uses = grvi_plan_uses(plan);
    for (int64_t i = 1; i < plan->n_uses && sorted; i++)
        sorted = compare_uses(&uses[i - 1], &uses[i]) < 0;
    if (!sorted) qsort(uses, (size_t)plan->n_uses, sizeof *uses, compare_uses);
    for (int64_t i = 0; i < plan->n_uses; i++)
        plan->info.n_objects += i == 0 || uses[i].object != uses[i - 1].object ||
                                uses[i].array_number != uses[i - 1].array_number;
    return GRV_OK;
}

/* ---- threads ---- */

/* What a thread may hold beside the bytes that it has read: a chunk between codecs, twice, and one for several targets. */
static int64_t scratch_bytes(const grv_read_plan *plan)
{
    grv_array *const *const arrays = (grv_array *const *)(void *)plan->arrays.data;
    int64_t most = 0;
    for (int64_t i = 0; i < plan->arrays.n / (int64_t)sizeof *arrays; i++) {
        const grvi_chain *const chain = arrays[i]->metadata.chain;
        const grvi_chain *const unit =
            grvi_chain_is_plain_shard(chain) ? chain->sharding->inner : chain;
        most = grvi_max_i64(most, unit->limit[0]);
    }
    return 3 * most; /* a limit is below 2^61 */
}

/* The first that is not below `least`. */
static int64_t first_given(int64_t least, int64_t a, int64_t b, int64_t c)
{
    return a >= least ? a : b >= least ? b : c;
}

static void set_ranges(grv_read_plan *plan)
{
    const grv_read_plan_params *const params = &plan->params;
    const grvi_kv_class *const class = plan->store->kv->class;
    const int64_t suits = class->gap_bytes > 0 ? class->gap_bytes : file_gap_bytes;
    plan->gap_bytes = params->gap_bytes >= 0 ? params->gap_bytes : suits;
    const int64_t run_bytes = first_given(1, params->run_bytes, class->run_bytes, file_run_bytes);
    plan->run_bytes =
        grvi_max_i64(run_least_bytes, grvi_min_i64(run_bytes, params->memory_bytes / 4));
}

static void set_threads(grv_read_plan *plan)
{
    const grv_read_plan_params *const params = &plan->params;
    const grv_store_params *const defaults = &plan->store->params;
    const int n_threads =
        (int)grvi_max_i64(1, params->n_threads > 0 ? params->n_threads : defaults->n_threads);
    const int n_io =
        (int)first_given(0, params->n_io, defaults->n_io, plan->store->kv->class->n_io);
    const int64_t fit =
        grvi_max_i64(1, params->memory_bytes / (plan->run_bytes + scratch_bytes(plan)));
    plan->n_workers =
        (int)grvi_min_i64(grvi_min_i64((int64_t)n_threads + n_io, GRVI_MAX_WORKERS), fit);
    plan->has_gate = plan->n_workers > n_threads;
    plan->info.n_threads = plan->n_workers;
    grvi_gate_set(&plan->gate, n_threads);
}

/* ---- public ---- */

static void plan_init(grv_read_plan *plan, const grv_read_plan_params *params)
{
    plan->params = *params;
    plan->params.max_open = (int)grvi_max_i64(1, params->max_open);
    grvi_gate_init(&plan->gate);
}

grv_status grv_read_plan_set(grv_read_plan *plan, const grv_read_request *requests, int64_t n)
{
    grv_status status = GRV_OK;
    grvi_buffer *const lists[] = {&plan->arrays, &plan->requests, &plan->parts, &plan->uses};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) lists[i]->n = 0;
    plan->n_requests = plan->n_uses = 0;
    plan->info = (grv_read_plan_info){0};
    if (n == 0) return GRV_OK;
    for (int64_t i = 0; i < n; i++) {
        GRV_CHECK_GOTO(requests[i].array != NULL, GRV_E_ARG, "request %lld: no array",
                       (long long)i);
        GRV_TRY_GOTO(add_request(plan, &requests[i]));
    }
    plan->store = requests[0].array->store;
    plan->info.n_requests = n;
    GRV_TRY_GOTO(make_uses(plan));
    set_ranges(plan);
    set_threads(plan);
done:
    if (status != GRV_OK) plan->n_requests = plan->n_uses = 0;
    return status;
}

grv_status grv_read_plan_create(const grv_read_request *requests, int64_t n,
                                const grv_read_plan_params *params, grv_read_plan **out)
{
    const grv_read_plan_params defaults = grv_read_plan_params_default();
    grv_read_plan *plan = NULL;
    *out = NULL;
    GRV_TRY(GRVI_CALLOC(&plan, 1));
    plan_init(plan, params != NULL ? params : &defaults);
    const grv_status status = grv_read_plan_set(plan, requests, n);
    if (status != GRV_OK) grv_read_plan_destroy(&plan);
    *out = plan;
    return status;
}

grv_status grv_read_plan_set_out(grv_read_plan *plan, int64_t request, void *out)
{
    GRV_CHECK(request >= 0 && request < plan->n_requests, GRV_E_ARG,
              "request %lld asked for, the plan has %lld", (long long)request,
              (long long)plan->n_requests);
    grvi_plan_requests(plan)[request].out = out;
    return GRV_OK;
}

grv_status grv_read_plan_run(grv_read_plan *plan)
{
    atomic_store(&plan->n_chunks, 0);
    atomic_store(&plan->n_reads, 0);
    atomic_store(&plan->bytes_read, 0);
    atomic_store(&plan->bytes_decoded, 0);
    atomic_store(&plan->cancelled, false);
    const grv_status status = grvi_plan_do_waves(plan);
    plan->info.n_chunks = atomic_load(&plan->n_chunks);
    plan->info.n_reads = atomic_load(&plan->n_reads);
    plan->info.bytes_read = atomic_load(&plan->bytes_read);
    plan->info.bytes_decoded = atomic_load(&plan->bytes_decoded);
    return status;
}

void grv_read_plan_cancel(grv_read_plan *plan)
{
    atomic_store(&plan->cancelled, true);
}

grv_read_plan_info grv_read_plan_get_info(const grv_read_plan *plan)
{
    return plan->info;
}

void grv_read_plan_destroy(grv_read_plan **plan)
{
    if (plan == NULL || *plan == NULL) return;
    grvi_buffer *const lists[] = {&(*plan)->arrays, &(*plan)->requests, &(*plan)->parts,
                                  &(*plan)->uses,   &(*plan)->objects,  &(*plan)->pieces,
                                  &(*plan)->runs,   &(*plan)->rows};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) grvi_buffer_fini(lists[i]);
    grvi_gate_fini(&(*plan)->gate);
    grv_free(*plan);
    *plan = NULL;
}

/* ---- the store's own plans ---- */

grv_status grvi_plan_take(grv_store *store, grv_read_plan **plan)
{
    (void)pthread_mutex_lock(&store->plan_lock);
    *plan = store->free_plans;
    if (*plan != NULL) store->free_plans = (*plan)->next_free;
    (void)pthread_mutex_unlock(&store->plan_lock);
    return *plan != NULL ? GRV_OK : grv_read_plan_create(NULL, 0, NULL, plan);
}

void grvi_plan_give(grv_store *store, grv_read_plan *plan)
{
    if (plan == NULL) return;
    (void)pthread_mutex_lock(&store->plan_lock);
    plan->next_free = store->free_plans;
    store->free_plans = plan;
    (void)pthread_mutex_unlock(&store->plan_lock);
}

void grvi_plans_fini(grv_store *store)
{
    while (store->free_plans != NULL) {
        grv_read_plan *plan = store->free_plans;
        store->free_plans = plan->next_free;
        grv_read_plan_destroy(&plan);
    }
    (void)pthread_mutex_destroy(&store->plan_lock);
}
