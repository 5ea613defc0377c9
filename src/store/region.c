/* Boxes of elements in memory. One odometer walks the merged outer axes; the inner loop is a memcpy wherever both sides are dense. */
#include <string.h>

#include "store/region.h"

void grvi_dense_strides(int rank, const int64_t *shape, int64_t item_bytes, int64_t *strides)
{
    int64_t stride = item_bytes;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= grvi_max_i64(shape[i], 1);
    }
}

bool grvi_is_dense(int rank, const int64_t *shape, int64_t item_bytes, const int64_t *strides)
{
    int64_t stride = item_bytes;
    for (int i = rank - 1; i >= 0; i--) {
        if (shape[i] != 1 && strides[i] != stride) return false;
        stride *= shape[i];
    }
    return true;
}

bool grvi_count_elements(int rank, const int64_t *shape, int64_t *n)
{
    *n = 1;
    for (int i = 0; i < rank; i++) {
        /* a zero anywhere makes the box empty, however long the other axes are */
        if (shape[i] == 0) {
            *n = 0;
            return true;
        }
    }
    for (int i = 0; i < rank; i++) {
        if (!grvi_mul_i64(*n, shape[i], n)) return false;
    }
    return true;
}

bool grvi_next_index(int rank, const int64_t *count, int64_t *index)
{
    for (int i = rank - 1; i >= 0; i--) {
        if (++index[i] < count[i]) return true;
        index[i] = 0;
    }
    return false;
}

/* A box with as few axes as possible: axes of one element are dropped, neighbours merged where both sides are dense across them. */
typedef struct merged_box {
    int rank; /* at least 1 */
    int64_t count[GRVI_MAX_RANK], a[GRVI_MAX_RANK], b[GRVI_MAX_RANK];
} merged_box;

/* false if the box is empty */
static bool merge_axes(int rank, const int64_t *count, int64_t item_bytes, const int64_t *a,
                       const int64_t *b, merged_box *box)
{
    int n = 0;
    for (int i = 0; i < rank; i++) {
        if (count[i] == 0) return false;
        if (count[i] == 1) continue;
        if (n > 0 && box->a[n - 1] == count[i] * a[i] && box->b[n - 1] == count[i] * b[i]) {
            box->count[n - 1] *= count[i];
            box->a[n - 1] = a[i];
            box->b[n - 1] = b[i];
            continue;
        }
        box->count[n] = count[i];
        box->a[n] = a[i];
        box->b[n] = b[i];
        n++;
    }
    if (n == 0) {
        box->count[0] = 1;
        box->a[0] = box->b[0] = item_bytes;
        n = 1;
    }
    box->rank = n;
    return true;
}

/* Steps both pointers to the next row; false after the last. */
static bool next_row(const merged_box *box, int64_t *index, int64_t *a, int64_t *b)
{
    for (int i = box->rank - 2; i >= 0; i--) {
        *a += box->a[i];
        *b += box->b[i];
        if (++index[i] < box->count[i]) return true;
        *a -= box->count[i] * box->a[i];
        *b -= box->count[i] * box->b[i];
        index[i] = 0;
    }
    return false;
}

/* With a constant size the copies below are single moves. */
static inline void copy_items(int64_t n, size_t item_bytes, const uint8_t *in, int64_t in_stride,
                              uint8_t *out, int64_t out_stride)
{
    for (int64_t i = 0; i < n; i++) memcpy(out + i * out_stride, in + i * in_stride, item_bytes);
}

static inline void reverse_words(int64_t n, size_t word_bytes, const uint8_t *in, int64_t in_stride,
                                 uint8_t *out, int64_t out_stride)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t value = 0;
        memcpy(&value, in + i * in_stride, word_bytes);
        value = __builtin_bswap64(value) >> (64 - 8 * word_bytes);
        memcpy(out + i * out_stride, &value, word_bytes);
    }
}

static void swap_row(int64_t n, int64_t word_bytes, const uint8_t *in, int64_t in_stride,
                     uint8_t *out, int64_t out_stride)
{
    switch (word_bytes) {
    case 2: reverse_words(n, 2, in, in_stride, out, out_stride); break;
    case 4: reverse_words(n, 4, in, in_stride, out, out_stride); break;
    default:
        GRV_ASSERT(word_bytes == 8);
        reverse_words(n, 8, in, in_stride, out, out_stride);
        break;
    }
}

static void copy_row(int64_t n, int64_t item_bytes, int64_t swap_bytes, const uint8_t *in,
                     int64_t in_stride, uint8_t *out, int64_t out_stride)
{
    const bool is_dense = in_stride == item_bytes && out_stride == item_bytes;
    if (swap_bytes > 1) {
        const int64_t n_words = item_bytes / swap_bytes;
        if (n_words == 1)
            swap_row(n, swap_bytes, in, in_stride, out, out_stride);
        else if (is_dense)
            swap_row(n * n_words, swap_bytes, in, swap_bytes, out, swap_bytes);
        else
            for (int64_t i = 0; i < n; i++)
                swap_row(n_words, swap_bytes, in + i * in_stride, swap_bytes, out + i * out_stride,
                         swap_bytes);
        return;
    }
    if (is_dense) {
        memcpy(out, in, (size_t)(n * item_bytes));
        return;
    }
    switch (item_bytes) {
    case 1: copy_items(n, 1, in, in_stride, out, out_stride); break;
    case 2: copy_items(n, 2, in, in_stride, out, out_stride); break;
    case 4: copy_items(n, 4, in, in_stride, out, out_stride); break;
    case 8: copy_items(n, 8, in, in_stride, out, out_stride); break;
    case 16: copy_items(n, 16, in, in_stride, out, out_stride); break;
    default: copy_items(n, (size_t)item_bytes, in, in_stride, out, out_stride); break;
    }
}

void grvi_region_copy(int rank, const int64_t *count, int64_t item_bytes, int64_t swap_bytes,
                      const uint8_t *in, const int64_t *in_strides, uint8_t *out,
                      const int64_t *out_strides)
{
    merged_box box;
    if (!merge_axes(rank, count, item_bytes, in_strides, out_strides, &box)) return;
    const int last = box.rank - 1;
    int64_t index[GRVI_MAX_RANK] = {0}, a = 0, b = 0;
    do copy_row(box.count[last], item_bytes, swap_bytes, in + a, box.a[last], out + b, box.b[last]);
    while (next_row(&box, index, &a, &b));
}

static const uint8_t *fill_item(const grvi_fill *fill)
{
    return fill->bytes != NULL ? fill->bytes : (const uint8_t *)&fill->bits;
}

static bool is_one_byte(const uint8_t *item, int64_t item_bytes)
{
    return memcmp(item, item + 1, (size_t)(item_bytes - 1)) == 0;
}

static void fill_row(int64_t n, int64_t item_bytes, const uint8_t *item, uint8_t *out,
                     int64_t stride)
{
    if (stride == item_bytes && is_one_byte(item, item_bytes)) {
        memset(out, item[0], (size_t)(n * item_bytes));
        return;
    }
    if (stride != item_bytes) {
        copy_row(n, item_bytes, 0, item, 0, out, stride);
        return;
    }
    /* what is filled is copied behind itself, twice as much each time */
    memcpy(out, item, (size_t)item_bytes);
    for (int64_t done = 1; done < n;) {
        const int64_t more = grvi_min_i64(done, n - done);
        memcpy(out + done * item_bytes, out, (size_t)(more * item_bytes));
        done += more;
    }
}

void grvi_region_fill(int rank, const int64_t *count, int64_t item_bytes, grvi_fill fill,
                      uint8_t *out, const int64_t *strides)
{
    merged_box box;
    if (!merge_axes(rank, count, item_bytes, strides, strides, &box)) return;
    const int last = box.rank - 1;
    int64_t index[GRVI_MAX_RANK] = {0}, a = 0, b = 0;
    do fill_row(box.count[last], item_bytes, fill_item(&fill), out + a, box.a[last]);
    while (next_row(&box, index, &a, &b));
}

bool grvi_is_all_fill(const uint8_t *data, int64_t n, int64_t item_bytes, grvi_fill fill)
{
    /* all equal: the first is the value, and each equals the one before it */
    return n == 0 || (memcmp(data, fill_item(&fill), (size_t)item_bytes) == 0 &&
                      memcmp(data, data + item_bytes, (size_t)((n - 1) * item_bytes)) == 0);
}

void grvi_swap_in_place(uint8_t *data, int64_t n, int64_t word_bytes)
{
    swap_row(n, word_bytes, data, word_bytes, data, word_bytes);
}

/* The first element of the part at or after position `at` of the dense array; -1 if there is none. */
static int64_t next_in_part(const grvi_part *part, int64_t at)
{
    int64_t index[GRVI_MAX_RANK], position = 0;
    int axis = 0;
    for (int i = part->rank - 1; i >= 0; i--) {
        index[i] = at % part->shape[i];
        at /= part->shape[i];
    }
    if (at > 0) return -1;
    /* the first axis along which the position lies outside */
    while (axis < part->rank && index[axis] >= part->start[axis] &&
           index[axis] < part->start[axis] + part->count[axis])
        axis++;
    if (axis < part->rank && index[axis] >= part->start[axis] + part->count[axis]) {
        /* behind the part: on along the nearest axis before that has a next */
        do axis--;
        while (axis >= 0 && ++index[axis] >= part->start[axis] + part->count[axis]);
        if (axis < 0) return -1;
        axis++;
    }
    for (int i = axis; i < part->rank; i++) index[i] = part->start[i];
    for (int i = 0; i < part->rank; i++) position = position * part->shape[i] + index[i];
    return position;
}

bool grvi_part_touches(const grvi_part *part, int64_t begin, int64_t end)
{
    const int64_t next = next_in_part(part, begin / part->item_bytes);
    return next >= 0 && next * part->item_bytes < end;
}
