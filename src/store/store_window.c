/* Windows of shuffled arrays. A window that reaches past the last row goes on with the first. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/store_tools_impl.h"

enum { WINDOW_STREAM = 0x77696e64, PICK_STREAM = 0x7069636b };

/* Most bytes of rows that are read at once when only some of them are wanted. */
static const int64_t piece_bytes = (int64_t)4 << 20;

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
        GRV_CHECK(atomic_load(&arrays[i]->shuffled) > 0, GRV_E_ARG,
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
              "%lld rows of a window; fewer than 2^31 - 1 can be drawn",
              (long long)params->n_rows);
    return GRV_OK;
}

/* ---- reading ---- */

static grv_status read_rows(grv_array *array, int64_t first, int64_t n, void *out)
{
    int64_t start[GRVI_MAX_RANK] = {0}, count[GRVI_MAX_RANK];
    memcpy(count, array->metadata.desc.shape, sizeof count);
    start[0] = first;
    count[0] = n;
    return grv_array_read(array, start, count, out, NULL);
}

static int64_t row_bytes_of(const grv_array *array)
{
    const grv_array_desc *const desc = &array->metadata.desc;
    return grvi_box_bytes(desc->rank - 1, desc->shape + 1, array->metadata.chain->item_bytes);
}

/* All rows of the window: one read, or two around the end. */
static grv_status read_whole(grv_array *array, int64_t first, int64_t n, uint8_t *out)
{
    const int64_t rows = array->metadata.desc.shape[0];
    const int64_t before_end = grvi_min_i64(n, rows - first);
    GRV_TRY(read_rows(array, first, before_end, out));
    if (before_end < n)
        GRV_TRY(read_rows(array, 0, n - before_end, out + before_end * row_bytes_of(array)));
    return GRV_OK;
}

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

/* Some rows of the window. Neighbours that lie in one chunk, or in chunks that follow each other, are read together. */
static grv_status read_picked(grv_array *array, int64_t first, const grv_window_params *p,
                              uint8_t *out)
{
    const int64_t rows = array->metadata.desc.shape[0], row_bytes = row_bytes_of(array);
    const int64_t most = grvi_max_i64(1, piece_bytes / grvi_max_i64(1, row_bytes));
    int64_t unit[GRVI_MAX_RANK];
    uint8_t *piece = NULL;
    grv_status status = GRV_OK;
    grvi_decode_unit(array, unit);
    const int64_t longest = grvi_min_i64(p->window_rows, most);
    GRV_TRY(GRVI_ALLOC(&piece, longest * row_bytes));
    for (int64_t k = 0; k < p->n_rows;) {
        const int64_t begin = (first + picked_row(p, k)) % rows;
        int64_t end = begin + 1, n = 1;
        for (; k + n < p->n_rows; n++) {
            const int64_t next = (first + picked_row(p, k + n)) % rows;
            const bool is_near = next >= end && next / unit[0] <= (end - 1) / unit[0] + 1;
            if (!is_near || next + 1 - begin > longest) break;
            end = next + 1;
        }
        GRV_TRY_GOTO(read_rows(array, begin, end - begin, piece));
        for (int64_t i = 0; i < n; i++, k++)
            memcpy(out + k * row_bytes,
                   piece + ((first + picked_row(p, k)) % rows - begin) * row_bytes,
                   (size_t)row_bytes);
    }
done:
    grv_free(piece);
    return status;
}

grv_status grv_read_window(grv_array *const *arrays, int n, const grv_window_params *params,
                           void *const *out, int64_t *first_row)
{
    GRV_TRY(check_arrays(arrays, n, params));
    const int64_t rows = arrays[0]->metadata.desc.shape[0];
    /* rows are far fewer than 2^64, so that the remainder favours none */
    const int64_t first = (int64_t)(grv_random_bits(params->seed, WINDOW_STREAM, params->sample) %
                                    (uint64_t)rows);
    for (int i = 0; i < n; i++)
        GRV_TRY(params->n_rows == params->window_rows
                    ? read_whole(arrays[i], first, params->window_rows, out[i])
                    : read_picked(arrays[i], first, params, out[i]));
    if (first_row != NULL) *first_row = first;
    return GRV_OK;
}
