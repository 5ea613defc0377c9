/* grove's stroke font: printable ASCII as lines and curves on a small grid, drawn at any size with smooth edges.
 *
 * A glyph is a list of strokes separated by blanks; a point is a digit, x = 0..9, and a letter, y = -3 ('a') .. 11 ('o'), with the
 * baseline at 'd', small letters up to 'k' (7), capitals up to 'n' (10). A stroke is
 *     "0d3n6d"      a line through its points (one point is a dot),
 *     "(6l6n0n0d"   a curve from the first point to the last, drawn to the ones between (a quadratic spline through the middles
 *                   of neighbouring controls, as in TrueType),
 *     "[0k5k5d0d"   a closed curve of this kind: here the letter o. */
#include <math.h>
#include <string.h>

#include "report/report_impl.h"

static const char *const glyphs['~' - ' ' + 1] = {
    [' ' - ' '] = "",
    ['!' - ' '] = "0n0g 0d",
    ['"' - ' '] = "0n0l 2n2l",
    ['#' - ' '] = "1d2n 4d5n 0g6g 0j6j",
    ['$' - ' '] = "(6l6n0n0i6i6d0d0f 3o3c",
    ['%' - ' '] = "6n0d [0n2n2k0k [4g6g6d4d",
    ['&' - ' '] = "7d1k (1k0n4o4k (4k4i0i0f (0f0d5c7h",
    ['\'' - ' '] = "0n0l",
    ['(' - ' '] = "(2o0l0e2b",
    [')' - ' '] = "(0o2l2e0b",
    ['*' - ' '] = "2m2g 0l4h 0h4l",
    ['+' - ' '] = "3k3e 0h6h",
    [',' - ' '] = "1e0b",
    ['-' - ' '] = "0h4h",
    ['.' - ' '] = "0d",
    ['/' - ' '] = "0c5n",
    ['0' - ' '] = "[0n6n6d0d",
    ['1' - ' '] = "1l3n3d 1d5d",
    ['2' - ' '] = "(0l0n6n6j0d 0d6d",
    ['3' - ' '] = "(0l0n6n6i2i (2i6i6d0d0f",
    ['4' - ' '] = "4d4n0g6g",
    ['5' - ' '] = "6n1n0i (0i1k6k6d0d0f",
    ['6' - ' '] = "(5n0n0d6d6j0j0g",
    ['7' - ' '] = "0n6n2d",
    ['8' - ' '] = "[0n6n6i0i [0i6i6d0d",
    ['9' - ' '] = "(1d6d6n0n0h6h6k",
    [':' - ' '] = "0d 0j",
    [';' - ' '] = "1j 1e0b",
    ['<' - ' '] = "5k0h5e",
    ['=' - ' '] = "0j6j 0f6f",
    ['>' - ' '] = "0k5h0e",
    ['?' - ' '] = "(0l0n4n4i2i2g 2d",
    ['@' - ' '] = "[2j6j6f2f (6i6f8e8n0n0b6b7c",
    ['A' - ' '] = "0d3n6d 1g5g",
    ['B' - ' '] = "3i0i0n3n (3n6n6i3i 0i0d3d (3d6d6i3i",
    ['C' - ' '] = "(6l6n0n0d6d6f",
    ['D' - ' '] = "2d0d0n2n (2n7n7d2d",
    ['E' - ' '] = "5n0n0d5d 0i4i",
    ['F' - ' '] = "5n0n0d 0i4i",
    ['G' - ' '] = "(6l6n0n0d6d6g 6f6h3h",
    ['H' - ' '] = "0d0n 6d6n 0i6i",
    ['I' - ' '] = "0d0n",
    ['J' - ' '] = "4n4g (4g4d0d0f",
    ['K' - ' '] = "0d0n 6n0h 2j6d",
    ['L' - ' '] = "0n0d5d",
    ['M' - ' '] = "0d0n4f8n8d",
    ['N' - ' '] = "0d0n6d6n",
    ['O' - ' '] = "[0n7n7d0d",
    ['P' - ' '] = "0d0n3n (3n6n6h3h 3h0h",
    ['Q' - ' '] = "[0n7n7d0d 4g7c",
    ['R' - ' '] = "0d0n3n (3n6n6i3i 0i3i6d",
    ['S' - ' '] = "(6l6n0n0i6i6d0d0f",
    ['T' - ' '] = "0n6n 3n3d",
    ['U' - ' '] = "0n0g (0g0d6d6g 6g6n",
    ['V' - ' '] = "0n3d6n",
    ['W' - ' '] = "0n2d4l6d8n",
    ['X' - ' '] = "0d6n 0n6d",
    ['Y' - ' '] = "0n3i6n 3i3d",
    ['Z' - ' '] = "0n6n0d6d",
    ['[' - ' '] = "2o0o0b2b",
    ['\\' - ' '] = "0n5c",
    [']' - ' '] = "0o2o2b0b",
    ['^' - ' '] = "0k2n4k",
    ['_' - ' '] = "0c6c",
    ['`' - ' '] = "0n1l",
    ['a' - ' '] = "(0j0k5k5h 5h5d (5h0h0d5d5f",
    ['b' - ' '] = "0n0d (0i0k5k5d0d0f",
    ['c' - ' '] = "(5i5k0k0d5d5f",
    ['d' - ' '] = "5n5d (5i5k0k0d5d5f",
    ['e' - ' '] = "0h5h (5h5k0k0d5d5f",
    ['f' - ' '] = "(4n1n1k 1k1d 0k3k",
    ['g' - ' '] = "5k5d (5i5k0k0d5d5f (5d5a0a0b",
    ['h' - ' '] = "0n0d (0h0k5k5h 5h5d",
    ['i' - ' '] = "0k0d 0n",
    ['j' - ' '] = "2k2d (2d2a0a 2n",
    ['k' - ' '] = "0n0d 4k0g 1h5d",
    ['l' - ' '] = "0n0f (0f0d2d",
    ['m' - ' '] = "0k0d (0h0k4k4h 4h4d (4h4k8k8h 8h8d",
    ['n' - ' '] = "0k0d (0h0k5k5h 5h5d",
    ['o' - ' '] = "[0k5k5d0d",
    ['p' - ' '] = "0k0a (0i0k5k5d0d0f",
    ['q' - ' '] = "5k5a (5i5k0k0d5d5f",
    ['r' - ' '] = "0k0d (0h0k3k",
    ['s' - ' '] = "(5j4k0k0h5g5d1d0e",
    ['t' - ' '] = "1m1f (1f1d4d 0k4k",
    ['u' - ' '] = "0k0g (0g0d5d5g 5k5d",
    ['v' - ' '] = "0k3d6k",
    ['w' - ' '] = "0k2d4j6d8k",
    ['x' - ' '] = "0d5k 0k5d",
    ['y' - ' '] = "0k3d 6k2a",
    ['z' - ' '] = "0k5k0d5d",
    ['{' - ' '] = "(3o1o1h0h (0h1h1b3b",
    ['|' - ' '] = "0o0b",
    ['}' - ' '] = "(0o2o2h3h (3h2h2b0b",
    ['~' - ' '] = "(0g0j3j3g6g6j",
};
static const char unknown_glyph[] = "0d0n6n6d0d";

static const double grid_height = 14; /* a line: 10 above the baseline is 0.7 of it */
static const double letter_gap = 2.6; /* between neighbours */
static const double space_width = 3.4;
static const double raised_size = 0.68, raised_by = 5; /* of ^{...} */

/* Where grid coordinates go. */
typedef struct pen {
    grvi_stroke *stroke; /* NULL: only measure */
    double x, y;         /* pixels: start of the glyph on the baseline */
    double scale;        /* pixels per grid unit */
    bool is_vertical;
} pen;

typedef struct point {
    double x, y;
} point;

static point glyph_point(const char *p)
{
    return (point){p[0] - '0', p[1] - 'd'};
}

static point middle(point a, point b)
{
    return (point){(a.x + b.x) / 2, (a.y + b.y) / 2};
}

static point place(const pen *to, point p)
{
    const double along = p.x * to->scale, up = p.y * to->scale;
    return to->is_vertical ? (point){to->x - up, to->y - along}
                           : (point){to->x + along, to->y - up};
}

static void draw_segment(const pen *to, point a, point b)
{
    const point pa = place(to, a), pb = place(to, b);
    grvi_stroke_segment(to->stroke, pa.x, pa.y, pb.x, pb.y);
}

/* Quadratic Bezier curve from a to b, control c. */
static void draw_curve(const pen *to, point a, point c, point b)
{
    enum { PIECES = 10 };
    point before = a;
    for (int i = 1; i <= PIECES; i++) {
        const double t = (double)i / PIECES, s = 1 - t;
        const point now = {s * s * a.x + 2 * s * t * c.x + t * t * b.x,
                           s * s * a.y + 2 * s * t * c.y + t * t * b.y};
        draw_segment(to, before, now);
        before = now;
    }
}

static void draw_spline(const pen *to, const char *points, int n, bool is_closed)
{
    const int first = is_closed ? 0 : 1, last = is_closed ? n : n - 1;
    for (int i = first; i < last; i++) {
        const point before = glyph_point(points + 2 * ((i + n - 1) % n)),
                    control = glyph_point(points + 2 * i);
        const point after = glyph_point(points + 2 * ((i + 1) % n));
        const point start = !is_closed && i == 1 ? before : middle(before, control);
        const point end = !is_closed && i == n - 2 ? after : middle(control, after);
        draw_curve(to, start, control, end);
    }
}

static void draw_glyph(const pen *to, const char *glyph)
{
    for (const char *p = glyph; *p != '\0'; p += strspn(p, " ")) {
        const bool is_curve = *p == '(', is_closed = *p == '[';
        if (is_curve || is_closed) p++;
        const int n = (int)strcspn(p, " ") / 2;
        if (is_curve || is_closed)
            draw_spline(to, p, n, is_closed);
        else if (n == 1)
            draw_segment(to, glyph_point(p), glyph_point(p));
        else
            for (int i = 0; i + 1 < n; i++)
                draw_segment(to, glyph_point(p + 2 * i), glyph_point(p + 2 * i + 2));
        p += 2 * n;
    }
}

static double glyph_width(const char *glyph)
{
    double width = 0;
    for (const char *p = glyph; *p != '\0'; p++)
        if (*p >= '0' && *p <= '9') width = fmax(width, *p - '0');
    return width;
}

static const char *glyph_of(char c)
{
    return c >= ' ' && c <= '~' ? glyphs[c - ' '] : unknown_glyph;
}

/* All digits are as wide as the widest, so that numbers line up. */
static double advance_of(char c)
{
    if (c == ' ') return space_width;
    return (c >= '0' && c <= '9' ? 6 : glyph_width(glyph_of(c))) + letter_gap;
}

/* Draws or measures; returns the length of the baseline in pixels. */
static double run(const pen *from, const char *text)
{
    pen to = *from;
    double length = 0;
    bool is_raised = false;
    for (const char *p = text; *p != '\0'; p++) {
        if (!is_raised && p[0] == '^' && p[1] == '{') {
            is_raised = true;
            p++;
            continue;
        }
        if (is_raised && *p == '}') {
            is_raised = false;
            continue;
        }
        const double up = is_raised ? raised_by * from->scale : 0;
        to.scale = from->scale * (is_raised ? raised_size : 1);
        to.x = from->x + (from->is_vertical ? -up : length);
        to.y = from->y - (from->is_vertical ? length : up);
        if (to.stroke != NULL) draw_glyph(&to, glyph_of(*p));
        length += advance_of(*p) * to.scale;
    }
    return length > 0 ? length - letter_gap * to.scale : 0;
}

double grv_text_width(double size, const char *text)
{
    return run(&(pen){.scale = size / grid_height}, text);
}

double grvi_fitting_size(double size, const char *text, double room)
{
    const double length = grv_text_width(size, text);
    return length > room && room > 0 ? size * room / length : size;
}

void grv_image_text(grv_image *image, double x, double y, const grv_text_style *style,
                    const char *text)
{
    const double length = grv_text_width(style->size, text);
    const double back = style->anchor == GRV_TEXT_START    ? 0
                        : style->anchor == GRV_TEXT_MIDDLE ? length / 2
                                                           : length;
    grvi_stroke stroke;
    grvi_stroke_begin(&stroke, image, style->size * (style->is_bold ? 0.125 : 0.085));
    const pen to = {.stroke = &stroke,
                    .x = style->is_vertical ? x : x - back,
                    .y = style->is_vertical ? y + back : y,
                    .scale = style->size / grid_height,
                    .is_vertical = style->is_vertical};
    (void)run(&to, text);
    grvi_stroke_end(&stroke, style->color);
}
