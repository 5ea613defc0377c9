/* What the files of src/report share. Internal. */
#ifndef GRVI_REPORT_IMPL_H
#define GRVI_REPORT_IMPL_H

#include "core/check.h"
#include "core/text.h"
#include "grove/report.h"

struct grv_image {
    int64_t width, height;
    uint8_t *pixels;   /* [height, width, 3] */
    uint8_t *coverage; /* [height, width] of the stroke being drawn; 0 between calls */
};

/* A stroke is collected as coverage, so that overlapping pieces of it do not add up, and is then blended once. */
typedef struct grvi_stroke {
    grv_image *image;
    double radius;
    int64_t x0, y0, x1, y1; /* touched pixels, [x0, x1) x [y0, y1) */
} grvi_stroke;

void grvi_stroke_begin(grvi_stroke *stroke, grv_image *image, double thickness);
/* Pixels, x to the right, y down. */
void grvi_stroke_segment(grvi_stroke *stroke, double xa, double ya, double xb, double yb);
void grvi_stroke_end(grvi_stroke *stroke, grv_color color);

void grvi_image_set(grv_image *image, int64_t x, int64_t y, grv_color color);
/* Outline of the pixels [x, x + width) x [y, y + height), drawn just outside of them. */
void grvi_image_frame(grv_image *image, int64_t x, int64_t y, int64_t width, int64_t height,
                      grv_color color);

/* `size`, or less if the text would be longer than `room` pixels. */
double grvi_fitting_size(double size, const char *text, double room);

/* Ticks of an axis: the multiples of 1, 2 or 5 times a power of ten, or the powers of ten themselves. */
enum { GRVI_MAX_TICKS = 24 };
typedef struct grvi_ticks {
    int n;
    double at[GRVI_MAX_TICKS];
    char label[GRVI_MAX_TICKS][32]; /* in the notation of grv_image_text */
} grvi_ticks;

/* Ticks within [min, max], about `wanted` of them and at least 3; min < max, both finite. */
void grvi_ticks_linear(grvi_ticks *ticks, double min, double max, int wanted);
/* The same for a logarithmic axis; 0 < min < max. */
void grvi_ticks_logarithmic(grvi_ticks *ticks, double min, double max, int wanted);

/* The colours of all figures. */
static const grv_color grvi_ink = {38, 38, 42}, grvi_faint = {226, 226, 230},
                       grvi_paper = {255, 255, 255};

#endif
