/* The canvas: pixels, rectangles, smooth strokes.
 * A stroke's coverage of a pixel is that of a half plane at the distance of the pixel's centre from the line: 1 inside, 0
 * outside, linear over one pixel at the edge. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "report/report_impl.h"

static const int64_t max_side = 32768;

grv_status grv_image_create(int64_t width, int64_t height, grv_color background, grv_image **image)
{
    grv_status status = GRV_OK;
    grv_image *fresh = NULL;
    *image = NULL;
    GRV_CHECK(width >= 1 && width <= max_side && height >= 1 && height <= max_side, GRV_E_ARG,
              "image of 1 to %lld pixels a side expected, %lld x %lld found", (long long)max_side,
              (long long)width, (long long)height);
    GRV_TRY(GRVI_CALLOC(&fresh, 1));
    GRV_TRY_GOTO(GRVI_ALLOC(&fresh->pixels, 3 * width * height));
    GRV_TRY_GOTO(GRVI_CALLOC(&fresh->coverage, width * height));
    fresh->width = width;
    fresh->height = height;
    grv_image_fill(fresh, 0, 0, width, height, background);
    *image = fresh;
done:
    if (status != GRV_OK) grv_image_destroy(&fresh);
    return status;
}

void grv_image_destroy(grv_image **image)
{
    if (image == NULL || *image == NULL) return;
    grv_free((*image)->pixels);
    grv_free((*image)->coverage);
    grv_free(*image);
    *image = NULL;
}

int64_t grv_image_width(const grv_image *image)
{
    return image->width;
}

int64_t grv_image_height(const grv_image *image)
{
    return image->height;
}

static bool is_inside(const grv_image *image, int64_t x, int64_t y)
{
    return x >= 0 && x < image->width && y >= 0 && y < image->height;
}

grv_color grv_image_get(const grv_image *image, int64_t x, int64_t y)
{
    if (!is_inside(image, x, y)) return (grv_color){0, 0, 0};
    const uint8_t *const p = image->pixels + 3 * (y * image->width + x);
    return (grv_color){p[0], p[1], p[2]};
}

void grvi_image_set(grv_image *image, int64_t x, int64_t y, grv_color color)
{
    if (!is_inside(image, x, y)) return;
    uint8_t *const p = image->pixels + 3 * (y * image->width + x);
    p[0] = color.r;
    p[1] = color.g;
    p[2] = color.b;
}

void grv_image_fill(grv_image *image, int64_t x, int64_t y, int64_t width, int64_t height,
                    grv_color color)
{
    const int64_t x_end = grvi_min_i64(x + width, image->width),
                  y_end = grvi_min_i64(y + height, image->height);
    for (int64_t j = grvi_max_i64(y, 0); j < y_end; j++)
        for (int64_t i = grvi_max_i64(x, 0); i < x_end; i++) grvi_image_set(image, i, j, color);
}

void grvi_image_frame(grv_image *image, int64_t x, int64_t y, int64_t width, int64_t height,
                      grv_color color)
{
    grv_image_fill(image, x - 1, y - 1, width + 2, 1, color);
    grv_image_fill(image, x - 1, y + height, width + 2, 1, color);
    grv_image_fill(image, x - 1, y, 1, height, color);
    grv_image_fill(image, x + width, y, 1, height, color);
}

void grvi_stroke_begin(grvi_stroke *stroke, grv_image *image, double thickness)
{
    *stroke = (grvi_stroke){
        .image = image, .radius = thickness / 2, .x0 = image->width, .y0 = image->height};
}

static int64_t clamp_floor(double value, int64_t max)
{
    return value < 0 ? 0 : value >= (double)max ? max : (int64_t)value;
}

static double distance_to_segment(double x, double y, double xa, double ya, double xb, double yb)
{
    const double dx = xb - xa, dy = yb - ya, length2 = dx * dx + dy * dy;
    double t = length2 > 0 ? ((x - xa) * dx + (y - ya) * dy) / length2 : 0;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return hypot(x - xa - t * dx, y - ya - t * dy);
}

void grvi_stroke_segment(grvi_stroke *stroke, double xa, double ya, double xb, double yb)
{
    if (!isfinite(xa) || !isfinite(ya) || !isfinite(xb) || !isfinite(yb)) return;
    const grv_image *const image = stroke->image;
    const double reach = stroke->radius + 1;
    const int64_t x0 = clamp_floor(fmin(xa, xb) - reach, image->width),
                  x1 = clamp_floor(fmax(xa, xb) + reach + 1, image->width);
    const int64_t y0 = clamp_floor(fmin(ya, yb) - reach, image->height),
                  y1 = clamp_floor(fmax(ya, yb) + reach + 1, image->height);
    for (int64_t y = y0; y < y1; y++) {
        for (int64_t x = x0; x < x1; x++) {
            const double edge =
                stroke->radius + 0.5 -
                distance_to_segment((double)x + 0.5, (double)y + 0.5, xa, ya, xb, yb);
            if (edge <= 0) continue;
            const uint8_t level = edge >= 1 ? 255 : (uint8_t)lround(edge * 255);
            uint8_t *const coverage = image->coverage + y * image->width + x;
            if (level > *coverage) *coverage = level;
        }
    }
    stroke->x0 = grvi_min_i64(stroke->x0, x0);
    stroke->y0 = grvi_min_i64(stroke->y0, y0);
    stroke->x1 = grvi_max_i64(stroke->x1, x1);
    stroke->y1 = grvi_max_i64(stroke->y1, y1);
}

static uint8_t blend(uint8_t below, uint8_t above, unsigned coverage)
{
    return (uint8_t)((below * (255 - coverage) + above * coverage + 127) / 255);
}

void grvi_stroke_end(grvi_stroke *stroke, grv_color color)
{
    grv_image *const image = stroke->image;
    for (int64_t y = stroke->y0; y < stroke->y1; y++) {
        for (int64_t x = stroke->x0; x < stroke->x1; x++) {
            uint8_t *const coverage = image->coverage + y * image->width + x;
            uint8_t *const p = image->pixels + 3 * (y * image->width + x);
            p[0] = blend(p[0], color.r, *coverage);
            p[1] = blend(p[1], color.g, *coverage);
            p[2] = blend(p[2], color.b, *coverage);
            *coverage = 0;
        }
    }
}

void grv_image_polyline(grv_image *image, int64_t n, const double *x, const double *y,
                        double thickness, grv_color color)
{
    grvi_stroke stroke;
    grvi_stroke_begin(&stroke, image, thickness);
    if (n == 1) grvi_stroke_segment(&stroke, x[0], y[0], x[0], y[0]);
    for (int64_t i = 0; i + 1 < n; i++)
        grvi_stroke_segment(&stroke, x[i], y[i], x[i + 1], y[i + 1]);
    grvi_stroke_end(&stroke, color);
}
