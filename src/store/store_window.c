/* Windows of shuffled arrays. A window that reaches past the last row goes on with the first. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/read_plan.h"
#include "store/store_tools_impl.h"

enum { WINDOW_STREAM = 0x77696e64, PICK_STREAM = 0x7069636b };

/* ---- is it shuffled? ---- */

/* Looks into the attributes at the first call. */
static grv_status find_shuffle(grv_array *array)
{
    grv_status status = GRV_OK;
    char *text = NULL;
    grvi_json *attributes = NULL;
    uint64_t seed = 0;
    int64_t rows = 0;
    if (atomic_load(&array->shuffled) != 0) return GRV_OK;
    GRV_TRY(grv_attributes_get(array->store, array->path, &text));
    GRV_TRY_GOTO(grvi_json_parse(text, (int64_t)strlen(text), "attributes", &attributes));
    const grvi_json *const mark = grvi_json_get(attributes, "grove_shuffled");
    const bool is_shuffled = grvi_json_as_u64(grvi_json_get(mark, "seed"), &seed) &&
                             grvi_json_as_i64(grvi_json_get(mark, "rows"), &rows) &&
                             rows == array->metadata.desc.shape[0];
    atomic_store(&array->shuffle_seed, seed);
    atomic_store(&array->shuffled, is_shuffled ? 1 : -1);
done:
    grvi_json_free(attributes);
    grv_free(text);
    return status;
}

static grv_status check_arrays(grv_array *const *arrays, int n, const grv_window_params *params)
{
    GRV_CHECK(n > 0, GRV_E_ARG, "no arrays to read a window of");
    for (int i = 0; i < n; i++)
        GRV_CHECK(arrays[i]->metadata.desc.rank > 0, GRV_E_SHAPE,
                  "'%s' is a scalar and has no rows", grvi_array_name(arrays[i]));
    const int64_t rows = arrays[0]->metadata.desc.shape[0];
    for (int i = 0; i < n; i++) {
        const int64_t here = arrays[i]->metadata.desc.shape[0];
        GRV_CHECK(here == rows, GRV_E_SHAPE, "'%s' has %lld rows, '%s' has %lld",
                  grvi_array_name(arrays[0]), (long long)rows, grvi_array_name(arrays[i]),
                  (long long)here);
        if (params->unshuffled) continue;
        GRV_TRY(find_shuffle(arrays[i]));
        GRV_CHECK(
            atomic_load(&arrays[i]->shuffled) > 0, GRV_E_ARG,
            "'%s' is not shuffled: a contiguous window of it is no random sample; make it with "
            "`grove store shuffle`, or allow it (unshuffled)",
            grvi_array_name(arrays[i]));
        GRV_CHECK(atomic_load(&arrays[i]->shuffle_seed) == atomic_load(&arrays[0]->shuffle_seed),
                  GRV_E_ARG, "'%s' and '%s' were shuffled by different seeds",
                  grvi_array_name(arrays[0]), grvi_array_name(arrays[i]));
    }
    GRV_CHECK(params->window_rows >= 1 && params->window_rows <= rows, GRV_E_ARG,
              "a window of %lld rows; 1 to %lld are possible", (long long)params->window_rows,
              (long long)rows);
    GRV_CHECK(params->n_rows >= 1 && params->n_rows <= params->window_rows, GRV_E_ARG,
              "%lld rows of a window of %lld", (long long)params->n_rows,
              (long long)params->window_rows);
    GRV_CHECK(params->n_rows == params->window_rows || params->n_rows < INT32_MAX, GRV_E_ARG,
              "%lld rows of a window; fewer than 2^31 - 1 can be drawn", (long long)params->n_rows);
    return GRV_OK;
}

/* ---- reading ---- */

/* Row k of the subsample, counted from the start of the window: a uniform draw from the k-th of n equal parts. */
static int64_t picked_row(const grv_window_params *p, int64_t k)
{
    /* floor(k * window / n); the products stay below 2^62 */
    const int64_t whole = p->window_rows / p->n_rows, rest = p->window_rows % p->n_rows;
    const int64_t begin = k * whole + k * rest / p->n_rows;
    const int64_t end = (k + 1) * whole + (k + 1) * rest / p->n_rows;
    const uint64_t bits =
        grv_random_bits(p->seed ^ p->sample * 0x9E3779B97F4A7C15U, PICK_STREAM, (uint64_t)k);
    return begin + (int64_t)(bits % (uint64_t)(end - begin));
}

/* What a window asks of its arrays; the plan copies it. */
typedef struct window_requests {
    grv_read_request *requests; /* at most two for each array */
    int64_t (*starts)[GRVI_MAX_RANK], (*counts)[GRVI_MAX_RANK];
    int64_t n;
} window_requests;

/* n rows from a first one on, or those of a list. */
static void add_request(window_requests *w, grv_array *array, int64_t first, int64_t n,
                        const int64_t *rows, void *out)
{
    int64_t *const start = w->starts[w->n], *const count = w->counts[w->n];
    memset(start, 0, sizeof w->starts[0]);
    memcpy(count, array->metadata.desc.shape, sizeof w->counts[0]);
    start[0] = first;
    count[0] = n;
    w->requests[w->n++] = (grv_read_request){
        .array = array, .start = start, .count = count, .rows = rows, .n_rows = n, .out = out};
}

static void add_array(window_requests *w, grv_array *array, const grv_window_params *p,
                      int64_t first, const int64_t *picked, uint8_t *out)
{
    const grv_array_desc *const desc = &array->metadata.desc;
    const int64_t rows = desc->shape[0];
    const int64_t before_end = grvi_min_i64(p->window_rows, rows - first);
    if (picked != NULL) {
        add_request(w, array, 0, p->n_rows, picked, out);
        return;
    }
    add_request(w, array, first, before_end, NULL, out);
    if (before_end < p->window_rows)
        add_request(w, array, 0, p->window_rows - before_end, NULL,
                    out + before_end *
                              grvi_box_bytes(desc->rank - 1, desc->shape + 1, desc->item_bytes));
}

static grv_status pick_rows(const grv_window_params *p, int64_t first, int64_t n_all,
                            int64_t **picked)
{
    *picked = NULL;
    if (p->n_rows == p->window_rows) return GRV_OK;
    GRV_TRY(GRVI_ALLOC(picked, p->n_rows));
    for (int64_t k = 0; k < p->n_rows; k++) (*picked)[k] = (first + picked_row(p, k)) % n_all;
    return GRV_OK;
}

/* All arrays in one plan, so that its threads have work from each. */
static grv_status read_rows(grv_array *const *arrays, int n, const grv_window_params *params,
                            int64_t first, void *const *out)
{
    grv_status status = GRV_OK;
    window_requests w = {.n = 0};
    grv_read_plan *plan = NULL;
    int64_t *picked = NULL;
    GRV_TRY_GOTO(pick_rows(params, first, arrays[0]->metadata.desc.shape[0], &picked));
    GRV_TRY_GOTO(GRVI_ALLOC(&w.requests, 2 * n));
    GRV_TRY_GOTO(GRVI_ALLOC(&w.starts, 2 * n));
    GRV_TRY_GOTO(GRVI_ALLOC(&w.counts, 2 * n));
    for (int i = 0; i < n; i++) add_array(&w, arrays[i], params, first, picked, out[i]);
    GRV_TRY_GOTO(grv_read_plan_create(w.requests, w.n, NULL, &plan));
    GRV_TRY_GOTO(grv_read_plan_run(plan));
done:
    grv_read_plan_destroy(&plan);
    grv_free(w.requests);
    grv_free(w.starts);
    grv_free(w.counts);
    grv_free(picked);
    return status;
}

grv_status grv_read_window(grv_array *const *arrays, int n, const grv_window_params *params,
                           void *const *out, int64_t *first_row)
{
    GRV_TRY(check_arrays(arrays, n, params));
    const int64_t rows = arrays[0]->metadata.desc.shape[0];
    /* rows are far fewer than 2^64, so that the remainder favours none */
    const int64_t first =
        (int64_t)(grv_random_bits(params->seed, WINDOW_STREAM, params->sample) % (uint64_t)rows);
    GRV_TRY(read_rows(arrays, n, params, first, out));
    if (first_row != NULL) *first_row = first;
    return GRV_OK;
}
