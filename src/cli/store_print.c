/* Regions of an array as text and JSON. */
#include "cli/store_print.h"

#include "cli/store_element.h"
#include "core/alloc.h"
#include "grove/core.h"

/* More elements than this are summarised by the first and last few along each axis. */
enum { SUMMARY_ABOVE = 1000, SUMMARY_MOST = 200, EDGE = 3, LINE_COLUMNS = 100 };

/* ---- what is shown ---- */

/* Elements in memory: of each shown axis all, or the first and the last few. */
typedef struct shown {
    grvi_item item;
    int rank;                           /* shown axes */
    int64_t length[GRV_STORE_MAX_RANK]; /* of the axes in memory */
    bool is_cut[GRV_STORE_MAX_RANK];    /* the middle is left out */
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
        for (int i = 0; i < slice->rank; i++) n *= (double)grvi_min_i64(slice->count[i], 2 * edge);
        if (n <= SUMMARY_MOST) return edge;
    }
    return 1;
}

/* Reads the corners of the region (all of it if no axis is cut) into memory. */
static grv_status read_shown(grv_array *array, const grvc_slice *slice, bool all, shown *s)
{
    const grv_array_desc *const desc = grv_array_get_desc(array);
    int64_t length[GRV_STORE_MAX_RANK], strides[GRV_STORE_MAX_RANK],
        corner[GRV_STORE_MAX_RANK] = {0}, n_parts[GRV_STORE_MAX_RANK], n = 1;
    *s = (shown){.item = {desc->type, desc->item_bytes}};
    s->edge = all || n_elements(slice) <= SUMMARY_ABOVE ? INT64_MAX / 2 : choose_edge(slice);
    for (int i = slice->rank - 1; i >= 0; i--) {
        const bool is_cut = slice->count[i] > 2 * s->edge;
        length[i] = is_cut ? 2 * s->edge : slice->count[i];
        n_parts[i] = is_cut ? 2 : 1;
        strides[i] = n;
        GRV_CHECK(grvi_mul_i64(n, length[i], &n), GRV_E_ARG,
                  "the region has more than 2^63 elements");
    }
    for (int i = 0; i < slice->rank; i++) {
        if (slice->is_dropped[i]) continue;
        s->is_cut[s->rank] = n_parts[i] == 2;
        s->length[s->rank++] = length[i];
    }
    GRV_TRY(grvi_alloc(n, (size_t)s->item.n_bytes, (void **)&s->elements));
    bool more = !is_empty(slice);
    while (more) {
        int64_t start[GRV_STORE_MAX_RANK], count[GRV_STORE_MAX_RANK], offset = 0;
        for (int i = 0; i < slice->rank; i++) {
            const bool is_far = corner[i] == 1;
            count[i] = n_parts[i] == 2 ? s->edge : slice->count[i];
            start[i] = slice->start[i] + (is_far ? slice->count[i] - s->edge : 0);
            offset += is_far ? s->edge * strides[i] : 0;
        }
        GRV_TRY(
            grv_array_read(array, start, count, s->elements + offset * s->item.n_bytes, strides));
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

/* Characters of UTF-8 text. */
static int columns_of(const grvi_text *text)
{
    int n = 0;
    for (const char *c = grvi_text_get(text); *c != '\0'; c++)
        n += ((unsigned char)*c & 0xC0) != 0x80;
    return n;
}

static void print_cell(printer *p, const uint8_t *element, bool is_first)
{
    p->cell.n = 0;
    grvc_element_text(&p->cell, p->s->item, element);
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
    (void)printf("%*s%s", p->width - columns_of(&p->cell), "", grvi_text_get(&p->cell));
    p->column += p->width;
}

/* The list along one axis; element: its first. */
static void print_axis(printer *p, int axis, const uint8_t *element)
{
    const shown *const s = p->s;
    int64_t step = s->item.n_bytes;
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
        grvc_element_text(&p->cell, p->s->item, p->s->elements + i * p->s->item.n_bytes);
        GRV_TRY(grvi_text_status(&p->cell));
        p->width = (int)grvi_max_i64(p->width, columns_of(&p->cell));
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

static void write_axis(grvi_json_writer *w, const shown *s, int axis, const uint8_t *element)
{
    int64_t step = s->item.n_bytes;
    if (axis == s->rank) {
        grvc_element_json(w, s->item, element);
        return;
    }
    for (int i = axis + 1; i < s->rank; i++) step *= s->length[i];
    grvi_json_begin_array(w);
    for (int64_t i = 0; i < s->length[axis]; i++) write_axis(w, s, axis + 1, element + i * step);
    grvi_json_end_array(w);
}

grv_status grvc_print_json(grvi_json_writer *w, grv_array *array, const grvc_slice *slice)
{
    shown s;
    const grv_status status = read_shown(array, slice, true, &s);
    if (status == GRV_OK) write_axis(w, &s, 0, s.elements);
    grv_free(s.elements);
    return status;
}
