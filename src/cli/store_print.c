/* Elements of an array as text and JSON. */
#include "cli/store_print.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/store_type.h"

/* More elements than this are summarised by the first and last few along each axis. */
enum { SUMMARY_ABOVE = 1000, SUMMARY_MOST = 200, EDGE = 3, LINE_COLUMNS = 100 };

/* ---- one element ---- */

static int64_t integer_of(grv_store_type type, const uint8_t *p)
{
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint16_t u16;
        uint32_t u32;
    } u;
    memcpy(&u, p, (size_t)grv_store_type_bytes(type));
    switch (type) {
    case GRV_STORE_I8: return u.i8;
    case GRV_STORE_I16: return u.i16;
    case GRV_STORE_I32: return u.i32;
    case GRV_STORE_U16: return u.u16;
    case GRV_STORE_U32: return u.u32;
    case GRV_STORE_I64: return u.i64;
    default: return *p; /* bool, uint8 */
    }
}

/* Shortest decimal text that reads back to the same number of this type; with a point. */
static void append_real(grvi_text *out, grv_store_type type, const uint8_t *p)
{
    double value = 0;
    float single = 0;
    uint16_t half = 0;
    char text[64];
    int first = 17, last = 17;
    switch (type) {
    case GRV_STORE_F16:
        memcpy(&half, p, sizeof half);
        value = grvi_half_to_double(half);
        first = 1;
        last = 5;
        break;
    case GRV_STORE_F32:
        memcpy(&single, p, sizeof single);
        value = (double)single;
        first = 1;
        last = 9;
        break;
    default: memcpy(&value, p, sizeof value);
    }
    if (!isfinite(value) || type == GRV_STORE_F64) {
        if (isfinite(value))
            grvi_text_append_double(out, value);
        else
            grvi_text_append(out, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    for (int digits = first; digits <= last; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        const double back = strtod(text, NULL);
        if (type == GRV_STORE_F32 ? (float)back == single : grvi_half_from_double(back) == half)
            break;
    }
    grvi_text_append(out, text);
    if (strpbrk(text, ".e") == NULL) grvi_text_append(out, ".0");
}

/* An element as text; numbers are JSON numbers if finite. */
static void append_element(grvi_text *out, grv_store_type type, const uint8_t *p)
{
    switch (type) {
    case GRV_STORE_BOOL: grvi_text_append(out, *p != 0 ? "true" : "false"); break;
    case GRV_STORE_U64: {
        uint64_t value = 0;
        memcpy(&value, p, sizeof value);
        grvi_text_printf(out, "%llu", (unsigned long long)value);
        break;
    }
    case GRV_STORE_F16:
    case GRV_STORE_F32:
    case GRV_STORE_F64: append_real(out, type, p); break;
    default: grvi_text_printf(out, "%lld", (long long)integer_of(type, p));
    }
}

/* ---- what is shown ---- */

/* Elements in memory: of each shown axis all, or the first and the last few. */
typedef struct shown {
    grv_store_type type;
    int64_t item_bytes;
    int rank;                             /* shown axes */
    int64_t length[GRV_STORE_MAX_RANK];   /* of the axes in memory */
    bool is_cut[GRV_STORE_MAX_RANK];      /* the middle is left out */
    int64_t edge;
    uint8_t *elements;
} shown;

static bool is_empty(const grvc_slice *slice)
{
    for (int i = 0; i < slice->rank; i++) {
        if (slice->count[i] == 0) return true;
    }
    return false;
}

/* Elements of the region; more than memory can hold counts as the most. */
static double n_elements(const grvc_slice *slice)
{
    double n = 1;
    for (int i = 0; i < slice->rank; i++) n *= (double)slice->count[i];
    return n;
}

/* As many from each end of each axis as keep the summary short. */
static int64_t choose_edge(const grvc_slice *slice)
{
    for (int64_t edge = EDGE; edge > 1; edge--) {
        double n = 1;
        for (int i = 0; i < slice->rank; i++)
            n *= (double)grvi_min_i64(slice->count[i], 2 * edge);
        if (n <= SUMMARY_MOST) return edge;
    }
    return 1;
}

/* Reads the corners of the region (all of it if no axis is cut) into memory. */
static grv_status read_shown(grv_array *array, const grvc_slice *slice, bool all, shown *s)
{
    const grv_array_desc *const desc = grv_array_get_desc(array);
    int64_t length[GRV_STORE_MAX_RANK], strides[GRV_STORE_MAX_RANK], corner[GRV_STORE_MAX_RANK] = {0},
        n_parts[GRV_STORE_MAX_RANK], n = 1;
    *s = (shown){.type = desc->type, .item_bytes = grv_store_type_bytes(desc->type)};
    s->edge = all || n_elements(slice) <= SUMMARY_ABOVE ? INT64_MAX / 2 : choose_edge(slice);
    for (int i = slice->rank - 1; i >= 0; i--) {
        const bool is_cut = slice->count[i] > 2 * s->edge;
        length[i] = is_cut ? 2 * s->edge : slice->count[i];
        n_parts[i] = is_cut ? 2 : 1;
        strides[i] = n;
        GRV_CHECK(grvi_mul_i64(n, length[i], &n), GRV_E_ARG, "the region has more than 2^63 elements");
    }
    for (int i = 0; i < slice->rank; i++) {
        if (slice->is_dropped[i]) continue;
        s->is_cut[s->rank] = n_parts[i] == 2;
        s->length[s->rank++] = length[i];
    }
    GRV_TRY(grvi_alloc(n, (size_t)s->item_bytes, (void **)&s->elements));
    bool more = !is_empty(slice);
    while (more) {
        int64_t start[GRV_STORE_MAX_RANK], count[GRV_STORE_MAX_RANK], offset = 0;
        for (int i = 0; i < slice->rank; i++) {
            const bool is_far = corner[i] == 1;
            count[i] = n_parts[i] == 2 ? s->edge : slice->count[i];
            start[i] = slice->start[i] + (is_far ? slice->count[i] - s->edge : 0);
            offset += is_far ? s->edge * strides[i] : 0;
        }
        GRV_TRY(grv_array_read(array, start, count, s->elements + offset * s->item_bytes, strides));
        int axis = slice->rank - 1;
        while (axis >= 0 && ++corner[axis] == n_parts[axis]) corner[axis--] = 0;
        more = axis >= 0;
    }
    return GRV_OK;
}

/* ---- text ---- */

typedef struct printer {
    const shown *s;
    int width, column, indent;
    grvi_text cell;
} printer;

static void print_cell(printer *p, const uint8_t *element, bool is_first)
{
    p->cell.n = 0;
    append_element(&p->cell, p->s->type, element);
    if (!is_first) {
        (void)printf(",");
        p->column++;
        if (p->column + p->width + 2 > LINE_COLUMNS) {
            (void)printf("\n%*s", p->indent, "");
            p->column = p->indent;
        } else {
            (void)printf(" ");
            p->column++;
        }
    }
    (void)printf("%*s", p->width, grvi_text_get(&p->cell));
    p->column += p->width;
}

/* The list along one axis; element: its first. */
static void print_axis(printer *p, int axis, const uint8_t *element)
{
    const shown *const s = p->s;
    int64_t step = s->item_bytes;
    if (axis == s->rank) {
        print_cell(p, element, true);
        return;
    }
    for (int i = axis + 1; i < s->rank; i++) step *= s->length[i];
    (void)printf("[");
    p->indent = axis + 1;
    if (axis == s->rank - 1) p->column = p->indent;
    for (int64_t i = 0; i < s->length[axis]; i++) {
        const bool is_gap = s->is_cut[axis] && i == s->edge;
        if (axis == s->rank - 1) {
            if (is_gap) {
                (void)printf(", ...");
                p->column += 5;
            }
            print_cell(p, element + i * step, i == 0);
            continue;
        }
        if (i > 0) (void)printf(",\n%*s", axis + 1, "");
        if (is_gap) (void)printf("...,\n%*s", axis + 1, "");
        print_axis(p, axis + 1, element + i * step);
        p->indent = axis + 1;
    }
    (void)printf("]");
}

/* Columns of the widest element. */
static grv_status measure(printer *p)
{
    int64_t n = 1;
    for (int i = 0; i < p->s->rank; i++) n *= p->s->length[i];
    for (int64_t i = 0; i < n; i++) {
        p->cell.n = 0;
        append_element(&p->cell, p->s->type, p->s->elements + i * p->s->item_bytes);
        GRV_TRY(grvi_text_status(&p->cell));
        p->width = (int)grvi_max_i64(p->width, p->cell.n);
    }
    return GRV_OK;
}

grv_status grvc_print_text(grv_array *array, const grvc_slice *slice, bool all)
{
    grv_status status = GRV_OK;
    shown s;
    printer p = {.s = &s};
    GRV_TRY_GOTO(read_shown(array, slice, all, &s));
    GRV_TRY_GOTO(measure(&p));
    print_axis(&p, 0, s.elements);
    (void)printf("\n");
done:
    grvi_text_fini(&p.cell);
    grv_free(s.elements);
    return status;
}

/* ---- JSON ---- */

static void write_axis(grvi_json_writer *w, const shown *s, int axis, const uint8_t *element,
                       grvi_text *cell)
{
    int64_t step = s->item_bytes;
    if (axis == s->rank) {
        cell->n = 0;
        append_element(cell, s->type, element);
        const char *const text = grvi_text_get(cell);
        if (strchr("NI", text[0]) != NULL || strncmp(text, "-I", 2) == 0)
            grvi_json_string(w, text); /* JSON has no such numbers */
        else
            grvi_json_raw(w, text);
        return;
    }
    for (int i = axis + 1; i < s->rank; i++) step *= s->length[i];
    grvi_json_begin_array(w);
    for (int64_t i = 0; i < s->length[axis]; i++)
        write_axis(w, s, axis + 1, element + i * step, cell);
    grvi_json_end_array(w);
}

grv_status grvc_print_json(grvi_json_writer *w, grv_array *array, const grvc_slice *slice)
{
    shown s;
    grvi_text cell = {0};
    grv_status status = read_shown(array, slice, true, &s);
    if (status == GRV_OK) write_axis(w, &s, 0, s.elements, &cell);
    if (status == GRV_OK) status = grvi_text_status(&cell);
    grvi_text_fini(&cell);
    grv_free(s.elements);
    return status;
}
