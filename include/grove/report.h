/** @file report.h
 * Pictures of results as PNG files.
 *
 * Two ready figures, slices of fields side by side and curves over an axis, and the canvas they are drawn on.
 * Files are published atomically. Not collective: one rank calls. Data are read only during the call.
 */
#ifndef GROVE_REPORT_H
#define GROVE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A colour, sRGB. */
typedef struct grv_color {
    uint8_t r; /**< red */
    uint8_t g; /**< green */
    uint8_t b; /**< blue */
} grv_color;

/** A canvas, 8 bits per channel. Coordinates are in pixels from the upper left corner, y downwards; pixel (0, 0) covers
 * [0, 1] x [0, 1]. What lies outside is not drawn. */
typedef struct grv_image grv_image;

/** Makes a canvas of one colour.
 * @param image  owned by the caller, free with grv_image_destroy; NULL on failure
 * @errors GRV_E_ARG a side below 1 or above 32768; GRV_E_NOMEM */
GRV_API grv_status grv_image_create(int64_t width, int64_t height, grv_color background,
                                    grv_image **image) GRV_MUST_CHECK;

/** Frees the canvas and sets it to NULL; NULL and *image == NULL are allowed. */
GRV_API void grv_image_destroy(grv_image **image);

/** Width in pixels. */
GRV_API int64_t grv_image_width(const grv_image *image);

/** Height in pixels. */
GRV_API int64_t grv_image_height(const grv_image *image);

/** Colour of a pixel; black outside. */
GRV_API grv_color grv_image_get(const grv_image *image, int64_t x, int64_t y);

/** Fills the rectangle of pixels [x, x + width) x [y, y + height). */
GRV_API void grv_image_fill(grv_image *image, int64_t x, int64_t y, int64_t width, int64_t height,
                            grv_color color);

/** Draws a line through n points, with round ends and smooth edges. One point is a disc. Non-finite points interrupt it.
 * @param x  [n] and y [n], pixels
 * @param thickness  pixels */
GRV_API void grv_image_polyline(grv_image *image, int64_t n, const double *x, const double *y,
                                double thickness, grv_color color);

/** Where a text stands with respect to its point. */
typedef enum grv_text_anchor {
    GRV_TEXT_START,  /**< the point is the start of the baseline */
    GRV_TEXT_MIDDLE, /**< its middle */
    GRV_TEXT_END     /**< its end */
} grv_text_anchor;

/** How a text is drawn. */
typedef struct grv_text_style {
    double size;            /**< line height in pixels; capital letters are 0.7 of it */
    grv_text_anchor anchor; /**< what the given point is */
    bool is_vertical;       /**< runs upwards */
    bool is_bold;           /**< thicker strokes */
    grv_color color;        /**< of the letters */
} grv_text_style;

/** Draws printable ASCII in grove's own stroke font; other characters show as a box. "^{...}" is raised and smaller.
 * @param x  and y: the point on the baseline that the anchor names */
GRV_API void grv_image_text(grv_image *image, double x, double y, const grv_text_style *style,
                            const char *text);

/** Length of the baseline of a text in pixels. */
GRV_API double grv_text_width(double size, const char *text);

/** Writes the canvas as an RGB PNG file, atomically.
 * @errors GRV_E_IO, GRV_E_NOMEM */
GRV_API grv_status grv_image_write_png(const grv_image *image, const char *path) GRV_MUST_CHECK;

/** Colour scale for a value in [0, 1]: dark violet over green to light yellow, lightness even in t (made in OKLCH).
 * Outside it is clamped; NaN is grey. */
GRV_API grv_color grv_colormap_sequential(double t);

/** Colour scale for signed values, t in [0, 1]: blue, white at 0.5, red. Outside it is clamped; NaN is grey. */
GRV_API grv_color grv_colormap_diverging(double t);

/** The grey of values that are not finite. */
GRV_API grv_color grv_colormap_missing(void);

/** One panel of a grv_slices figure. */
typedef struct grv_slice_panel {
    const char *title; /**< above the panel; NULL for none */
    const float *
        field; /**< field[iy * y_stride + ix * x_stride], iy < ny, ix < nx; row 0 is drawn at the bottom */
    int64_t y_stride; /**< elements from row to row */
    int64_t x_stride; /**< elements from column to column */
    int scale; /**< panels of the same number have the same colours: one range, and one bar where they are neighbours */
    bool is_diverging; /**< signed: blue, white at zero, red; the range is then symmetric */
    double min; /**< range of the colours; min == max: what the finite values of the scale need */
    double max; /**< upper end of the range */
    const char *unit; /**< beside the colour bar, "vorticity [1/s]"; NULL for none */
    bool marks_zero;  /**< a dark line where the field, interpolated between cell centres, is zero */
} grv_slice_panel;

/** Slices side by side: simulation, prediction, error. min, max, unit, is_diverging of a scale are those of its first panel. */
typedef struct grv_slices {
    const char *title;             /**< above all; NULL for none */
    const grv_slice_panel *panels; /**< [n_panels], row by row */
    int n_panels;                  /**< at least 1, at most 64 */
    int n_columns;                 /**< panels in a row; 0 for one row */
    int64_t ny;                    /**< rows of each field */
    int64_t nx;                    /**< columns of each field */
    bool is_smooth;                /**< bilinear between cell centres instead of flat cells */
} grv_slices;

/** Draws slices into a PNG file. Values that are not finite are grey.
 * @errors GRV_E_ARG no panels, no data, sides out of range; GRV_E_IO, GRV_E_NOMEM */
GRV_API grv_status grv_report_slices(const grv_slices *slices, const char *path) GRV_MUST_CHECK;

/** One line of a grv_curves figure. */
typedef struct grv_curve {
    const char *name; /**< in the legend */
    const double *x;  /**< [n] */
    const double *
        y; /**< [n]; values that cannot be drawn (not finite; not positive on a logarithmic axis) leave a gap */
    int64_t n; /**< number of points, may be 0 */
} grv_curve;

/** Curves over a common axis: losses over epochs. */
typedef struct grv_curves {
    const char *title;       /**< above; NULL for none */
    const char *x_label;     /**< below the axis; NULL for none */
    const char *y_label;     /**< beside the axis; NULL for none */
    const grv_curve *curves; /**< [n_curves] */
    int n_curves;            /**< at least 1, at most 8 */
    bool is_y_logarithmic;   /**< decades on the y axis */
} grv_curves;

/** Draws curves into a PNG file.
 * @errors GRV_E_ARG no curves; GRV_E_IO, GRV_E_NOMEM */
GRV_API grv_status grv_report_curves(const grv_curves *curves, const char *path) GRV_MUST_CHECK;

/** Draws a flow of a data set that `grove simulate` or `grove generate` made: the vorticity at up to four times, in the plane across the third
 * axis that the body has most of, the body grey.
 * @param data  path of the data set
 * @param sample  must be done
 * @errors GRV_E_CONFIG if the data set does not hold flows, errors of grv_dataset_read, GRV_E_IO, GRV_E_NOMEM */
GRV_API grv_status grv_report_flow(const char *data, int64_t sample,
                                   const char *path) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
