/* Copies of boxes between strided memories.
 * The dimensions are sorted by the stride of the target, so that it is written in order, and neighbouring dimensions that
 * continue each other on both sides are merged; what is contiguous becomes one memcpy. */
#include <string.h>

#include "core/alloc.h"
#include "dist/strided_copy.h"
#include "grove/core.h"

/* below this, starting threads costs more than copying */
static const int64_t min_bytes_for_threads = 256 << 10;

static void swap_dims(grvi_strided_copy *c, int a, int b)
{
    int64_t *const fields[] = {c->count, c->from_stride, c->to_stride};
    for (int f = 0; f < 3; f++) {
        const int64_t kept = fields[f][a];
        fields[f][a] = fields[f][b];
        fields[f][b] = kept;
    }
}

grvi_strided_copy grvi_strided_copy_make(int n_dims, int64_t element_bytes, const int64_t *count,
                                         const int64_t *from_stride, int64_t from_offset,
                                         const int64_t *to_stride, int64_t to_offset)
{
    grvi_strided_copy c = {
        .from_offset = from_offset, .to_offset = to_offset, .run_bytes = element_bytes};
    for (int d = 0; d < n_dims; d++) {
        if (count[d] == 1) continue;
        c.count[c.n_dims] = count[d];
        c.from_stride[c.n_dims] = from_stride[d] * element_bytes;
        c.to_stride[c.n_dims] = to_stride[d] * element_bytes;
        for (int k = c.n_dims++; k > 0 && c.to_stride[k - 1] < c.to_stride[k]; k--)
            swap_dims(&c, k - 1, k);
    }
    /* from inside out: a dimension whose stride is the length of what lies inside it continues that */
    int kept = GRV_BOX_MAX_DIMS; /* merged dimensions are [kept, GRV_BOX_MAX_DIMS) */
    grvi_strided_copy merged = c;
    for (int d = c.n_dims - 1; d >= 0; d--) {
        if (kept == GRV_BOX_MAX_DIMS && c.from_stride[d] == merged.run_bytes &&
            c.to_stride[d] == merged.run_bytes) {
            merged.run_bytes *= c.count[d];
        } else if (kept < GRV_BOX_MAX_DIMS &&
                   c.from_stride[d] == merged.count[kept] * merged.from_stride[kept] &&
                   c.to_stride[d] == merged.count[kept] * merged.to_stride[kept]) {
            merged.count[kept] *= c.count[d];
        } else {
            kept--;
            merged.count[kept] = c.count[d];
            merged.from_stride[kept] = c.from_stride[d];
            merged.to_stride[kept] = c.to_stride[d];
        }
    }
    c.run_bytes = merged.run_bytes;
    c.n_dims = GRV_BOX_MAX_DIMS - kept;
    for (int d = 0; d < c.n_dims; d++) {
        c.count[d] = merged.count[kept + d];
        c.from_stride[d] = merged.from_stride[kept + d];
        c.to_stride[d] = merged.to_stride[kept + d];
    }
    if (c.n_dims == 0) c.count[c.n_dims++] = 1;
    return c;
}

bool grvi_strided_copy_is_contiguous(const grvi_strided_copy *copy)
{
    return copy->n_dims == 1 && copy->count[0] == 1;
}

static int64_t row_count(const grvi_strided_copy *c)
{
    int64_t rows = 1;
    for (int d = 0; d < c->n_dims - 1; d++) rows *= c->count[d];
    return rows;
}

/* the length is a constant in each case, so that the compiler makes loads and stores of it */
static void copy_row(const grvi_strided_copy *c, const char *restrict from, char *restrict to)
{
    const int64_t n = c->count[c->n_dims - 1], s = c->from_stride[c->n_dims - 1],
                  t = c->to_stride[c->n_dims - 1];
    switch (c->run_bytes) {
    case 4:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * t, from + i * s, 4);
        break;
    case 8:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * t, from + i * s, 8);
        break;
    case 16:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * t, from + i * s, 16);
        break;
    default:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * t, from + i * s, (size_t)c->run_bytes);
    }
}

static void copy_rows(const grvi_strided_copy *c, int64_t begin, int64_t end, const char *from,
                      char *to)
{
    int64_t index[GRV_BOX_MAX_DIMS] = {0};
    from += c->from_offset;
    to += c->to_offset;
    int64_t rest = begin;
    for (int d = c->n_dims - 2; d >= 0; d--) {
        index[d] = rest % c->count[d];
        rest /= c->count[d];
        from += index[d] * c->from_stride[d];
        to += index[d] * c->to_stride[d];
    }
    for (int64_t row = begin; row < end; row++) {
        copy_row(c, from, to);
        for (int d = c->n_dims - 2; d >= 0; d--) {
            from += c->from_stride[d];
            to += c->to_stride[d];
            if (++index[d] < c->count[d]) break;
            from -= c->count[d] * c->from_stride[d];
            to -= c->count[d] * c->to_stride[d];
            index[d] = 0;
        }
    }
}

grv_status grvi_copy_list_init(grvi_copy_list *list, int64_t capacity, int n_threads)
{
    *list = (grvi_copy_list){.n_threads = n_threads};
    GRV_TRY(GRVI_ALLOC(&list->copies, capacity));
    GRV_TRY(GRVI_CALLOC(&list->first_row, capacity + 1));
    return GRV_OK;
}

void grvi_copy_list_fini(grvi_copy_list *list)
{
    grv_free(list->copies);
    grv_free(list->first_row);
    *list = (grvi_copy_list){0};
}

void grvi_copy_list_add(grvi_copy_list *list, const grvi_strided_copy *copy)
{
    const int64_t rows = row_count(copy);
    list->copies[list->n] = *copy;
    list->first_row[list->n + 1] = list->first_row[list->n] + rows;
    list->bytes += rows * copy->count[copy->n_dims - 1] * copy->run_bytes;
    list->n++;
}

typedef struct list_run {
    const grvi_copy_list *list;
    const void *from;
    void *to;
} list_run;

static void run_rows(void *argument, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const list_run *const run = argument;
    const int64_t *const first_row = run->list->first_row;
    for (int64_t i = 0; i < run->list->n; i++) {
        const int64_t a = grvi_max_i64(begin, first_row[i]),
                      b = grvi_min_i64(end, first_row[i + 1]);
        if (a < b)
            copy_rows(&run->list->copies[i], a - first_row[i], b - first_row[i], run->from,
                      run->to);
    }
}

void grvi_copy_list_run(const grvi_copy_list *list, const void *from, void *to)
{
    if (list->n == 0) return;
    list_run run = {.list = list, .from = from, .to = to};
    const int n_threads = list->bytes < min_bytes_for_threads ? 1 : list->n_threads;
    grv_parallel_for(n_threads, list->first_row[list->n], run_rows, &run);
}
