/* Curves over a common axis, with ticks, grid and legend. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "report/report_impl.h"

enum {
    WIDTH = 960,
    HEIGHT = 600,
    MARGIN = 22,
    MAX_CURVES = 8,
    MOST_DOTS = 40,
    LEGEND_LINE = 24,
    LEGEND_SAMPLE = 30
};
static const double title_size = 22, axis_size = 17, label_size = 15;

/* Okabe and Ito's colours, told apart by colour-blind readers too, strongest on white first. */
static const grv_color palette[MAX_CURVES] = {{0, 114, 178},   {213, 94, 0},  {0, 158, 115},
                                              {204, 121, 167}, {230, 159, 0}, {86, 180, 233},
                                              {60, 60, 60},    {150, 130, 20}};

typedef struct axis {
    double min, max;   /* in data units */
    double start, end; /* where they are drawn, pixels */
    bool is_logarithmic;
    grvi_ticks ticks;
} axis;

static bool has_text(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static double position(const axis *a, double value)
{
    const double t = a->is_logarithmic ? log(value / a->min) / log(a->max / a->min)
                                       : (value - a->min) / (a->max - a->min);
    return a->start + t * (a->end - a->start);
}

static bool is_drawable(const grv_curves *c, const grv_curve *curve, int64_t i)
{
    return isfinite(curve->x[i]) && isfinite(curve->y[i]) &&
           (!c->is_y_logarithmic || curve->y[i] > 0);
}

/* Range of what can be drawn, and whether every x is a whole number, such as an epoch. */
static void find_ranges(const grv_curves *c, axis *x, axis *y, bool *x_is_whole)
{
    x->min = y->min = HUGE_VAL;
    x->max = y->max = -HUGE_VAL;
    *x_is_whole = true;
    for (int k = 0; k < c->n_curves; k++) {
        const grv_curve *const curve = &c->curves[k];
        for (int64_t i = 0; i < curve->n; i++) {
            if (!is_drawable(c, curve, i)) continue;
            x->min = fmin(x->min, curve->x[i]);
            x->max = fmax(x->max, curve->x[i]);
            y->min = fmin(y->min, curve->y[i]);
            y->max = fmax(y->max, curve->y[i]);
            if (floor(curve->x[i]) < curve->x[i]) *x_is_whole = false;
        }
    }
}

/* An axis is never empty and leaves a little room around the data. */
static void pad(axis *a, double share)
{
    const bool is_empty = a->min > a->max;
    if (is_empty) {
        a->min = a->is_logarithmic ? 0.1 : 0;
        a->max = 1;
    } else if (a->is_logarithmic) {
        const double factor = fmax(pow(a->max / a->min, share), a->max > a->min ? 1 : 2);
        a->min = fmax(a->min / factor, 1e-300);
        a->max = fmin(a->max * factor, 1e300);
    } else {
        const double extra = a->max > a->min    ? (a->max - a->min) * share
                             : fabs(a->min) > 0 ? fabs(a->min) / 2
                                                : 0.5;
        a->min -= extra;
        a->max += extra;
    }
}

static void make_axes(const grv_curves *c, axis *x, axis *y)
{
    bool x_is_whole = false;
    *x = (axis){.is_logarithmic = false};
    *y = (axis){.is_logarithmic = c->is_y_logarithmic};
    find_ranges(c, x, y, &x_is_whole);
    pad(x, 0.015);
    pad(y, 0.05);
    const double x_span = x->max - x->min;
    grvi_ticks_linear(&x->ticks, x->min, x->max, x_is_whole && x_span < 9 ? (int)ceil(x_span) : 9);
    if (c->is_y_logarithmic)
        grvi_ticks_logarithmic(&y->ticks, y->min, y->max, 7);
    else
        grvi_ticks_linear(&y->ticks, y->min, y->max, 7);
    double label_width = 0;
    for (int i = 0; i < y->ticks.n; i++)
        label_width = fmax(label_width, grv_text_width(label_size, y->ticks.label[i]));
    x->start = floor(MARGIN + (has_text(c->y_label) ? 30 : 0) + label_width + 12);
    x->end = WIDTH - MARGIN - 12;
    y->start = HEIGHT - MARGIN - (has_text(c->x_label) ? 30 : 0) - 24;
    y->end = MARGIN + (has_text(c->title) ? 34 : 8);
}

static void draw_axes(grv_image *image, const grv_curves *c, const axis *x, const axis *y)
{
    const int64_t left = llround(x->start), right = llround(x->end), top = llround(y->end),
                  bottom = llround(y->start);
    grv_text_style label = {.size = label_size, .anchor = GRV_TEXT_MIDDLE, .color = grvi_ink};
    double last_end = 0; /* of the labels drawn: one without room is left out */
    for (int i = 0; i < x->ticks.n; i++) {
        const int64_t at = llround(position(x, x->ticks.at[i]));
        const double half = grv_text_width(label_size, x->ticks.label[i]) / 2;
        grv_image_fill(image, at, top, 1, bottom - top, grvi_faint);
        grv_image_fill(image, at, bottom, 1, 6, grvi_ink);
        if ((double)at - half < last_end + 8) continue;
        last_end = (double)at + half;
        grv_image_text(image, (double)at, (double)bottom + 22, &label, x->ticks.label[i]);
    }
    label.anchor = GRV_TEXT_END;
    for (int i = 0; i < y->ticks.n; i++) {
        const int64_t at = llround(position(y, y->ticks.at[i]));
        grv_image_fill(image, left, at, right - left, 1, grvi_faint);
        grv_image_fill(image, left - 5, at, 5, 1, grvi_ink);
        grv_image_text(image, (double)left - 9, (double)at + 0.35 * label_size, &label,
                       y->ticks.label[i]);
    }
    grv_image_fill(image, left, top, 1, bottom - top, grvi_ink);
    grv_image_fill(image, left, bottom, right - left, 1, grvi_ink);

    if (has_text(c->x_label)) {
        const grv_text_style style = {
            .size = grvi_fitting_size(axis_size, c->x_label, x->end - x->start),
            .anchor = GRV_TEXT_MIDDLE,
            .color = grvi_ink};
        grv_image_text(image, (x->start + x->end) / 2, HEIGHT - MARGIN, &style, c->x_label);
    }
    if (has_text(c->y_label)) {
        const grv_text_style style = {
            .size = grvi_fitting_size(axis_size, c->y_label, y->start - y->end),
            .anchor = GRV_TEXT_MIDDLE,
            .is_vertical = true,
            .color = grvi_ink};
        grv_image_text(image, MARGIN + 12, (y->start + y->end) / 2, &style, c->y_label);
    }
    if (has_text(c->title)) {
        const grv_text_style style = {
            .size = grvi_fitting_size(title_size, c->title, x->end - x->start),
            .is_bold = true,
            .color = grvi_ink};
        grv_image_text(image, x->start, MARGIN + 16, &style, c->title);
    }
}

/* A line through neighbours that can both be drawn; dots where there are few points, and where one stands alone. */
static void draw_curve(grv_image *image, const grv_curves *c, int k, const axis *x, const axis *y)
{
    const grv_curve *const curve = &c->curves[k];
    grvi_stroke line;
    grvi_stroke_begin(&line, image, 2.2);
    for (int64_t i = 0; i + 1 < curve->n; i++) {
        if (!is_drawable(c, curve, i) || !is_drawable(c, curve, i + 1)) continue;
        grvi_stroke_segment(&line, position(x, curve->x[i]), position(y, curve->y[i]),
                            position(x, curve->x[i + 1]), position(y, curve->y[i + 1]));
    }
    grvi_stroke_end(&line, palette[k]);
    grvi_stroke dots;
    grvi_stroke_begin(&dots, image, 6.5);
    for (int64_t i = 0; i < curve->n; i++) {
        if (!is_drawable(c, curve, i)) continue;
        const bool is_alone = (i == 0 || !is_drawable(c, curve, i - 1)) &&
                              (i + 1 == curve->n || !is_drawable(c, curve, i + 1));
        const double px = position(x, curve->x[i]), py = position(y, curve->y[i]);
        if (curve->n <= MOST_DOTS || is_alone) grvi_stroke_segment(&dots, px, py, px, py);
    }
    grvi_stroke_end(&dots, palette[k]);
}

typedef struct box {
    double x, y, width, height;
} box;

static int64_t points_in(const grv_curves *c, const axis *x, const axis *y, box area)
{
    int64_t n = 0;
    for (int k = 0; k < c->n_curves; k++) {
        for (int64_t i = 0; i < c->curves[k].n; i++) {
            if (!is_drawable(c, &c->curves[k], i)) continue;
            const double px = position(x, c->curves[k].x[i]), py = position(y, c->curves[k].y[i]);
            n += px >= area.x && px <= area.x + area.width && py >= area.y &&
                 py <= area.y + area.height;
        }
    }
    return n;
}

/* The corner where the legend covers the fewest points, the upper right one first. */
static box place_legend(const grv_curves *c, const axis *x, const axis *y, double width,
                        double height)
{
    enum { INSET = 12 };
    const double left = x->start + INSET, right = x->end - INSET - width, top = y->end + INSET,
                 bottom = y->start - INSET - height;
    const box corners[4] = {{right, top, width, height},
                            {left, top, width, height},
                            {right, bottom, width, height},
                            {left, bottom, width, height}};
    int best = 0;
    int64_t fewest = INT64_MAX;
    for (int i = 0; i < 4; i++) {
        const int64_t n = points_in(c, x, y, corners[i]);
        if (n >= fewest) continue;
        fewest = n;
        best = i;
    }
    return corners[best];
}

static void draw_legend(grv_image *image, const grv_curves *c, const axis *x, const axis *y)
{
    double text_width = 0;
    int n = 0;
    for (int k = 0; k < c->n_curves; k++) {
        if (!has_text(c->curves[k].name)) continue;
        text_width = fmax(text_width, grv_text_width(label_size, c->curves[k].name));
        n++;
    }
    if (n == 0) return;
    const double text_room = fmin(text_width, (x->end - x->start) / 2);
    const box area = place_legend(c, x, y, LEGEND_SAMPLE + text_room + 30, n * LEGEND_LINE + 10);
    const int64_t left = llround(area.x), top = llround(area.y);
    grv_image_fill(image, left, top, llround(area.width), llround(area.height), grvi_paper);
    grvi_image_frame(image, left, top, llround(area.width), llround(area.height), grvi_faint);
    double middle = area.y + 5 + LEGEND_LINE / 2.0;
    for (int k = 0; k < c->n_curves; k++) {
        const char *const name = c->curves[k].name;
        if (!has_text(name)) continue;
        const double sample_x[] = {area.x + 10, area.x + 10 + LEGEND_SAMPLE},
                     sample_y[] = {middle, middle};
        grv_image_polyline(image, 2, sample_x, sample_y, 2.6, palette[k]);
        const grv_text_style style = {.size = grvi_fitting_size(label_size, name, text_room),
                                      .color = grvi_ink};
        grv_image_text(image, area.x + 20 + LEGEND_SAMPLE, middle + 0.35 * style.size, &style,
                       name);
        middle += LEGEND_LINE;
    }
}

static grv_status check(const grv_curves *c)
{
    GRV_CHECK(c->n_curves >= 1 && c->n_curves <= MAX_CURVES, GRV_E_ARG,
              "1 to %d curves expected, %d found", MAX_CURVES, c->n_curves);
    for (int k = 0; k < c->n_curves; k++) {
        const grv_curve *const curve = &c->curves[k];
        GRV_CHECK(curve->n == 0 || (curve->n > 0 && curve->x != NULL && curve->y != NULL),
                  GRV_E_ARG, "curve %d: x and y of %lld points expected", k, (long long)curve->n);
    }
    return GRV_OK;
}

grv_status grv_report_curves(const grv_curves *curves, const char *path)
{
    grv_image *image = NULL;
    axis x, y;
    GRV_TRY(check(curves));
    GRV_TRY(grv_image_create(WIDTH, HEIGHT, grvi_paper, &image));
    make_axes(curves, &x, &y);
    draw_axes(image, curves, &x, &y);
    for (int k = 0; k < curves->n_curves; k++) draw_curve(image, curves, k, &x, &y);
    draw_legend(image, curves, &x, &y);
    const grv_status status = grv_image_write_png(image, path);
    grv_image_destroy(&image);
    return status;
}
