/* Slices of fields side by side, with colour bars.
 * Layout: a title, then rows of panels; under its own title each panel, and after the last of neighbours with one scale their bar. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "report/report_impl.h"

enum {
    MAX_PANELS = 64,
    MARGIN = 22,
    GAP = 18,
    TITLE_ROOM = 44,
    PANEL_TITLE_ROOM = 28,
    BAR_GAP = 12,
    BAR_WIDTH = 16,
    UNIT_ROOM = 26
};
static const double title_size = 22, panel_title_size = 17, label_size = 15;

/* What the panels of one scale share. */
typedef struct color_scale {
    double min, max;
    bool is_diverging;
    const char *unit;
    grvi_ticks ticks;
    double label_width; /* of its widest tick label, pixels */
} color_scale;

typedef struct layout {
    int n_columns, n_rows;
    int64_t panel_width, panel_height;  /* pixels */
    int64_t column_x[MAX_PANELS + 1];   /* left edge of each column; the last is the end */
    int64_t title_room, row_title_room; /* 0 without titles */
    int64_t width, height;
} layout;

static bool has_text(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static int first_of_scale(const grv_slices *s, int panel)
{
    int first = 0;
    while (s->panels[first].scale != s->panels[panel].scale) first++;
    return first;
}

static void widen_to_field(const grv_slices *s, const grv_slice_panel *panel, double *min,
                           double *max)
{
    for (int64_t iy = 0; iy < s->ny; iy++) {
        for (int64_t ix = 0; ix < s->nx; ix++) {
            const double value = (double)panel->field[iy * panel->y_stride + ix * panel->x_stride];
            if (!isfinite(value)) continue;
            *min = fmin(*min, value);
            *max = fmax(*max, value);
        }
    }
}

/* Range of the finite values of all panels of the scale: never empty, symmetric if it is diverging. */
static void find_range(const grv_slices *s, int first, color_scale *scale)
{
    double min = HUGE_VAL, max = -HUGE_VAL;
    for (int p = first; p < s->n_panels; p++)
        if (s->panels[p].scale == s->panels[first].scale)
            widen_to_field(s, &s->panels[p], &min, &max);
    if (min > max) min = 0, max = 1;
    if (scale->is_diverging) {
        const double largest = fmax(fabs(min), fabs(max));
        max = largest > 0 ? largest : 1;
        min = -max;
    } else if (!(min < max)) {
        const double half = fabs(min) > 0 ? fabs(min) / 2 : 0.5;
        min -= half;
        max += half;
    }
    scale->min = min;
    scale->max = max;
}

static void make_scale(const grv_slices *s, int first, int64_t bar_height, color_scale *scale)
{
    const grv_slice_panel *const panel = &s->panels[first];
    *scale = (color_scale){.min = panel->min,
                           .max = panel->max,
                           .is_diverging = panel->is_diverging,
                           .unit = panel->unit};
    if (!(panel->min < panel->max)) find_range(s, first, scale);
    const int64_t wanted = grvi_min_i64(grvi_max_i64(bar_height / 36, 3), 8);
    grvi_ticks_linear(&scale->ticks, scale->min, scale->max, (int)wanted);
    for (int i = 0; i < scale->ticks.n; i++)
        scale->label_width =
            fmax(scale->label_width, grv_text_width(label_size, scale->ticks.label[i]));
}

static grv_color color_of(const color_scale *scale, double value)
{
    if (!isfinite(value)) return grv_colormap_missing();
    const double t = (value - scale->min) / (scale->max - scale->min);
    return scale->is_diverging ? grv_colormap_diverging(t) : grv_colormap_sequential(t);
}

/* Pixels of a side of n cells: whole pixels per cell for small fields, one per cell for large ones, and never a hairline. */
static int64_t panel_side(int64_t n, int64_t longest, int n_columns)
{
    enum { LEAST = 24, MOST = 1024 };
    const int64_t wanted = n_columns > 4 ? 200 : n_columns > 2 ? 300 : 400;
    const int64_t per_cell = grvi_max_i64(1, (wanted + longest / 2) / longest);
    const double shrink = fmin(1, (double)MOST / (double)longest);
    return grvi_max_i64(LEAST, llround((double)(n * per_cell) * shrink));
}

/* A bar stands after a panel whose right neighbour has another scale. */
static bool has_bar(const grv_slices *s, const layout *l, int panel)
{
    const bool is_last = panel + 1 == s->n_panels || (panel + 1) % l->n_columns == 0;
    return is_last || s->panels[panel + 1].scale != s->panels[panel].scale;
}

static int64_t bar_room(const color_scale *scale)
{
    return BAR_GAP + BAR_WIDTH + 10 + (int64_t)ceil(scale->label_width) +
           (has_text(scale->unit) ? UNIT_ROOM : 0);
}

static void make_layout(const grv_slices *s, color_scale *scales, layout *l)
{
    *l = (layout){.n_columns = s->n_columns > 0 ? s->n_columns : s->n_panels};
    l->n_columns = (int)grvi_min_i64(l->n_columns, s->n_panels);
    l->n_rows = (int)grvi_ceil_div(s->n_panels, l->n_columns);
    const int64_t longest = grvi_max_i64(s->nx, s->ny);
    l->panel_width = panel_side(s->nx, longest, l->n_columns);
    l->panel_height = panel_side(s->ny, longest, l->n_columns);
    for (int p = 0; p < s->n_panels; p++) {
        make_scale(s, first_of_scale(s, p), l->panel_height, &scales[p]);
        if (has_text(s->panels[p].title)) l->row_title_room = PANEL_TITLE_ROOM;
    }
    l->column_x[0] = MARGIN;
    for (int c = 0; c < l->n_columns; c++) {
        int64_t room = 0;
        for (int p = c; p < s->n_panels; p += l->n_columns)
            if (has_bar(s, l, p)) room = grvi_max_i64(room, bar_room(&scales[p]));
        l->column_x[c + 1] =
            l->column_x[c] + l->panel_width + room + (c + 1 < l->n_columns ? GAP : 0);
    }
    l->title_room = has_text(s->title) ? TITLE_ROOM : 0;
    l->width = l->column_x[l->n_columns] + MARGIN;
    l->height = MARGIN + l->title_room + l->n_rows * (l->row_title_room + l->panel_height + GAP) -
                GAP + MARGIN;
}

static double at(const grv_slices *s, const grv_slice_panel *panel, int64_t iy, int64_t ix)
{
    iy = grvi_max_i64(0, grvi_min_i64(iy, s->ny - 1));
    ix = grvi_max_i64(0, grvi_min_i64(ix, s->nx - 1));
    return (double)panel->field[iy * panel->y_stride + ix * panel->x_stride];
}

/* Value at cell coordinates, cell centres at whole numbers. Next to a missing value it is that of the nearest cell. */
static double sample(const grv_slices *s, const grv_slice_panel *panel, double y, double x)
{
    const double nearest = at(s, panel, llround(y), llround(x));
    if (!s->is_smooth) return nearest;
    const double fy = floor(y), fx = floor(x), ty = y - fy, tx = x - fx;
    const int64_t iy = (int64_t)fy, ix = (int64_t)fx;
    const double below = at(s, panel, iy, ix) * (1 - tx) + at(s, panel, iy, ix + 1) * tx;
    const double above = at(s, panel, iy + 1, ix) * (1 - tx) + at(s, panel, iy + 1, ix + 1) * tx;
    const double value = below * (1 - ty) + above * ty;
    return isfinite(value) ? value : nearest;
}

/* A corner of marching squares: pixel position of a cell centre, and the value there. */
typedef struct corner {
    double x, y, value;
} corner;

/* The line through one square of neighbouring cell centres a, b, c, d (around it): between the sides on which the sign changes. Of the two ways
 * to join four such sides, either is right where nothing is known of the middle. */
static void mark_square(grvi_stroke *stroke, const corner corners[4])
{
    double x[4], y[4];
    int n = 0;
    for (int k = 0; k < 4; k++) {
        const corner a = corners[k], b = corners[(k + 1) % 4];
        if (!isfinite(a.value)) return;
        if ((a.value < 0) == (b.value < 0)) continue;
        const double t = a.value / (a.value - b.value);
        x[n] = a.x + t * (b.x - a.x);
        y[n++] = a.y + t * (b.y - a.y);
    }
    for (int k = 0; k + 1 < n; k += 2)
        grvi_stroke_segment(stroke, x[k], y[k], x[k + 1], y[k + 1]);
}

static void mark_zero(grv_image *image, const grv_slices *s, const layout *l, int p, int64_t x0,
                      int64_t y0)
{
    static const int8_t around[4][2] = {{0, 0}, {0, 1}, {1, 1}, {1, 0}};
    const double width = (double)l->panel_width / (double)s->nx,
                 height = (double)l->panel_height / (double)s->ny;
    grvi_stroke stroke;
    grvi_stroke_begin(&stroke, image, 2);
    for (int64_t iy = 0; iy + 1 < s->ny; iy++) {
        for (int64_t ix = 0; ix + 1 < s->nx; ix++) {
            corner corners[4];
            for (int k = 0; k < 4; k++) {
                const int64_t jy = iy + around[k][0], jx = ix + around[k][1];
                corners[k].x = (double)x0 + ((double)jx + 0.5) * width;
                corners[k].y = (double)(y0 + l->panel_height) - ((double)jy + 0.5) * height;
                corners[k].value = at(s, &s->panels[p], jy, jx);
            }
            mark_square(&stroke, corners);
        }
    }
    grvi_stroke_end(&stroke, grvi_ink);
}

static void draw_field(grv_image *image, const grv_slices *s, const layout *l, int p,
                       const color_scale *scale, int64_t x0, int64_t y0)
{
    for (int64_t j = 0; j < l->panel_height; j++) {
        const double y =
            ((double)(l->panel_height - 1 - j) + 0.5) * (double)s->ny / (double)l->panel_height -
            0.5;
        for (int64_t i = 0; i < l->panel_width; i++) {
            const double x = ((double)i + 0.5) * (double)s->nx / (double)l->panel_width - 0.5;
            grvi_image_set(image, x0 + i, y0 + j, color_of(scale, sample(s, &s->panels[p], y, x)));
        }
    }
    if (s->panels[p].marks_zero) mark_zero(image, s, l, p, x0, y0);
    grvi_image_frame(image, x0, y0, l->panel_width, l->panel_height, grvi_ink);
}

static void draw_bar(grv_image *image, const color_scale *scale, int64_t x0, int64_t y0,
                     int64_t height)
{
    const double span = scale->max - scale->min;
    for (int64_t j = 0; j < height; j++) {
        const double value = scale->max - span * ((double)j + 0.5) / (double)height;
        grv_image_fill(image, x0, y0 + j, BAR_WIDTH, 1, color_of(scale, value));
    }
    grvi_image_frame(image, x0, y0, BAR_WIDTH, height, grvi_ink);
    const grv_text_style label = {.size = label_size, .color = grvi_ink};
    int64_t last_row = INT64_MAX;
    for (int i = 0; i < scale->ticks.n;
         i++) { /* upwards; a very low bar has no room for all labels */
        const double y = (double)y0 + (scale->max - scale->ticks.at[i]) / span * (double)height;
        const int64_t row = grvi_min_i64(llround(y), y0 + height - 1);
        if (last_row - row < (int64_t)label_size) continue;
        last_row = row;
        grv_image_fill(image, x0 + BAR_WIDTH + 1, row, 4, 1, grvi_ink);
        grv_image_text(image, (double)(x0 + BAR_WIDTH + 9), (double)row + 0.5 + 0.35 * label_size,
                       &label, scale->ticks.label[i]);
    }
    if (!has_text(scale->unit)) return;
    const grv_text_style unit = {.size = grvi_fitting_size(label_size, scale->unit, (double)height),
                                 .anchor = GRV_TEXT_MIDDLE,
                                 .is_vertical = true,
                                 .color = grvi_ink};
    grv_image_text(image, (double)(x0 + BAR_WIDTH + 10) + scale->label_width + 19,
                   (double)y0 + (double)height / 2, &unit, scale->unit);
}

static void draw_panel(grv_image *image, const grv_slices *s, const layout *l, int p,
                       const color_scale *scale)
{
    const int64_t x0 = l->column_x[p % l->n_columns];
    const int64_t y0 = MARGIN + l->title_room + l->row_title_room +
                       (p / l->n_columns) * (l->row_title_room + l->panel_height + GAP);
    if (has_text(s->panels[p].title)) {
        const char *const title = s->panels[p].title;
        const grv_text_style style = {
            .size = grvi_fitting_size(panel_title_size, title, (double)l->panel_width),
            .color = grvi_ink};
        grv_image_text(image, (double)x0, (double)y0 - 10, &style, title);
    }
    draw_field(image, s, l, p, scale, x0, y0);
    if (has_bar(s, l, p))
        draw_bar(image, scale, x0 + l->panel_width + BAR_GAP, y0, l->panel_height);
}

static grv_status check(const grv_slices *s)
{
    GRV_CHECK(s->n_panels >= 1 && s->n_panels <= MAX_PANELS && s->n_columns >= 0, GRV_E_ARG,
              "1 to %d panels and at least 0 columns expected, %d and %d found", MAX_PANELS,
              s->n_panels, s->n_columns);
    GRV_CHECK(s->ny >= 1 && s->nx >= 1 && s->ny <= INT32_MAX && s->nx <= INT32_MAX, GRV_E_ARG,
              "fields of at least 1 x 1 cells expected, %lld x %lld found", (long long)s->ny,
              (long long)s->nx);
    for (int p = 0; p < s->n_panels; p++) {
        const grv_slice_panel *const panel = &s->panels[p];
        GRV_CHECK(panel->field != NULL, GRV_E_ARG, "panel %d: a field expected, none found", p);
        GRV_CHECK(isfinite(panel->min) && isfinite(panel->max) && panel->min <= panel->max,
                  GRV_E_ARG, "panel %d: a finite range expected, %g to %g found", p, panel->min,
                  panel->max);
    }
    return GRV_OK;
}

grv_status grv_report_slices(const grv_slices *slices, const char *path)
{
    grv_status status = GRV_OK;
    layout l;
    color_scale *scales = NULL;
    grv_image *image = NULL;
    GRV_TRY(check(slices));
    GRV_TRY(GRVI_ALLOC(&scales, slices->n_panels));
    make_layout(slices, scales, &l);
    GRV_TRY_GOTO(grv_image_create(l.width, l.height, grvi_paper, &image));
    if (l.title_room > 0) {
        const double room = (double)(l.width - 2 * MARGIN);
        const grv_text_style style = {.size = grvi_fitting_size(title_size, slices->title, room),
                                      .is_bold = true,
                                      .color = grvi_ink};
        grv_image_text(image, MARGIN, MARGIN + 18, &style, slices->title);
    }
    for (int p = 0; p < slices->n_panels; p++) draw_panel(image, slices, &l, p, &scales[p]);
    GRV_TRY_GOTO(grv_image_write_png(image, path));
done:
    grv_image_destroy(&image);
    grv_free(scales);
    return status;
}
