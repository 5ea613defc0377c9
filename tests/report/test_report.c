/* Pictures read back with libpng: sizes, colours at known places, missing values, bad arguments. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <png.h>

#include <cmocka.h>

#include "grove/core.h"
#include "grove/report.h"

static char folder[] = "/tmp/grove-report-XXXXXX";
static char path[64];

static int enter_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/picture.png", folder);
    return 0;
}

static int leave_folder(void **state)
{
    (void)state;
    (void)unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing written aside is left */
    assert_true(grv_memory_get().bytes == 0);
    return 0;
}

typedef struct picture {
    int64_t width, height;
    uint8_t *rgb; /* [height, width, 3], free */
} picture;

static picture read_picture(void)
{
    png_image png;
    memset(&png, 0, sizeof png);
    png.version = PNG_IMAGE_VERSION;
    assert_true(png_image_begin_read_from_file(&png, path));
    png.format = PNG_FORMAT_RGB;
    picture p = {png.width, png.height, malloc(PNG_IMAGE_SIZE(png))};
    assert_non_null(p.rgb);
    assert_true(png_image_finish_read(&png, NULL, p.rgb, 0, NULL));
    return p;
}

static grv_color color_at(const picture *p, int64_t x, int64_t y)
{
    assert_true(x >= 0 && x < p->width && y >= 0 && y < p->height);
    const uint8_t *const c = p->rgb + 3 * (y * p->width + x);
    return (grv_color){c[0], c[1], c[2]};
}

static bool is_same(grv_color a, grv_color b)
{
    return a.r == b.r && a.g == b.g && a.b == b.b;
}

static int64_t count(const picture *p, grv_color color)
{
    int64_t n = 0;
    for (int64_t y = 0; y < p->height; y++)
        for (int64_t x = 0; x < p->width; x++) n += is_same(color_at(p, x, y), color);
    return n;
}

static const grv_color white = {255, 255, 255}, red = {255, 0, 0}, black = {0, 0, 0};

static void test_canvas_round_trip(void **state)
{
    (void)state;
    grv_image *image = NULL;
    assert_int_equal(grv_image_create(37, 23, white, &image), GRV_OK);
    grv_image_fill(image, 3, 4, 5, 6, red);
    grv_image_fill(image, -100, 20, 102, 100, black); /* cut at the border */
    const double x[] = {20.5, 30.5}, y[] = {10.5, 10.5};
    grv_image_polyline(image, 2, x, y, 3, red);
    assert_int_equal(grv_image_write_png(image, path), GRV_OK);
    const picture p = read_picture();
    assert_true(p.width == 37 && p.height == 23 && grv_image_width(image) == 37 &&
                grv_image_height(image) == 23);
    for (int64_t j = 0; j < 23; j++)
        for (int64_t i = 0; i < 37; i++)
            assert_true(is_same(color_at(&p, i, j), grv_image_get(image, i, j)));
    assert_true(is_same(color_at(&p, 3, 4), red) && is_same(color_at(&p, 7, 9), red) &&
                is_same(color_at(&p, 8, 9), white));
    assert_true(is_same(color_at(&p, 1, 22), black) && is_same(color_at(&p, 2, 22), white) &&
                is_same(color_at(&p, 0, 19), white));
    /* the line is three pixels thick and has round ends */
    assert_true(is_same(color_at(&p, 25, 9), red) && is_same(color_at(&p, 25, 11), red) &&
                is_same(color_at(&p, 25, 12), white));
    assert_true(is_same(color_at(&p, 31, 10), red) && is_same(color_at(&p, 33, 10), white));
    assert_true(is_same(grv_image_get(image, -1, 0), black));
    free(p.rgb);
    grv_image_destroy(&image);
    assert_null(image);
    grv_image_destroy(NULL);
}

static void test_line_gaps(void **state)
{
    (void)state;
    grv_image *image = NULL;
    assert_int_equal(grv_image_create(60, 11, white, &image), GRV_OK);
    const double x[] = {2.5, 12.5, NAN, 32.5, 1e6, 52.5}, y[] = {5.5, 5.5, 5.5, 5.5, 5.5, INFINITY};
    grv_image_polyline(image, 6, x, y, 1, black);
    assert_true(is_same(grv_image_get(image, 7, 5), black) &&
                is_same(grv_image_get(image, 22, 5), white));
    assert_true(is_same(grv_image_get(image, 45, 5), black) &&
                is_same(grv_image_get(image, 45, 9), white));
    grv_image_destroy(&image);
}

/* Every printable character leaves ink, no two look the same, and none leaves its line. */
static void test_font(void **state)
{
    (void)state;
    enum { SIDE = 48 };
    static uint8_t seen['~' + 1][SIDE * SIDE];
    for (char c = '!'; c <= '~'; c++) {
        grv_image *image = NULL;
        const char text[] = {c, '\0'};
        const grv_text_style style = {.size = 32, .anchor = GRV_TEXT_MIDDLE, .color = black};
        assert_int_equal(grv_image_create(SIDE, SIDE, white, &image), GRV_OK);
        grv_image_text(image, SIDE / 2.0, 32, &style, text);
        int ink = 0;
        for (int i = 0; i < SIDE * SIDE; i++) {
            seen[(int)c][i] = grv_image_get(image, i % SIDE, i / SIDE).r;
            ink += seen[(int)c][i] < 128;
        }
        assert_true(ink >= 4);
        for (int i = 0; i < SIDE * 4; i++)
            assert_true(seen[(int)c][i] == 255 && seen[(int)c][SIDE * SIDE - 1 - i] == 255);
        for (char other = '!'; other < c; other++)
            assert_memory_not_equal(seen[(int)c], seen[(int)other], SIDE * SIDE);
        grv_image_destroy(&image);
    }
}

static void test_text_placement(void **state)
{
    (void)state;
    assert_true(grv_text_width(20, "") <= 0);
    assert_true(fabs(grv_text_width(20, "10") - grv_text_width(20, "47")) <
                1e-9); /* figures line up */
    assert_true(fabs(grv_text_width(40, "abc") - 2 * grv_text_width(20, "abc")) < 1e-9);
    assert_true(grv_text_width(20, "10^{-3}") < grv_text_width(20, "10-3"));
    grv_image *image = NULL;
    assert_int_equal(grv_image_create(200, 200, white, &image), GRV_OK);
    const grv_text_style across = {.size = 28, .anchor = GRV_TEXT_END, .color = black};
    grv_text_style up = across;
    up.is_vertical = true;
    up.anchor = GRV_TEXT_START;
    grv_image_text(image, 195.5, 40.5, &across, "H\xC3\xA9");
    grv_image_text(image, 40.5, 195.5, &up, "HI");
    int across_ink = 0, up_ink = 0;
    for (int y = 0; y < 200; y++) {
        for (int x = 0; x < 200; x++) {
            const bool is_ink = grv_image_get(image, x, y).r < 128;
            const bool in_across =
                x > 100 && x < 199 && y > 15 && y<45, in_up = x> 15 && x < 45 && y > 150 && y < 199;
            across_ink += is_ink && in_across;
            up_ink += is_ink && in_up;
            assert_true(!is_ink || in_across || in_up);
        }
    }
    assert_true(across_ink > 60 && up_ink > 60);
    grv_image_destroy(&image);
}

static double lightness(grv_color c)
{
    const double v[] = {c.r, c.g, c.b}, weight[] = {0.2126, 0.7152, 0.0722};
    double y = 0;
    for (int i = 0; i < 3; i++) y += weight[i] * pow((v[i] / 255 + 0.055) / 1.055, 2.4);
    return 116 * cbrt(y) - 16; /* CIE L*: another space than the one the scales are made in */
}

static void test_color_scales(void **state)
{
    (void)state;
    double least_step = 1e9, largest_step = 0;
    for (int i = 0; i < 64; i++) {
        const double a = i / 64.0, b = (i + 1) / 64.0;
        const double step =
            lightness(grv_colormap_sequential(b)) - lightness(grv_colormap_sequential(a));
        least_step = fmin(least_step, step);
        largest_step = fmax(largest_step, step);
        const double rise =
            lightness(grv_colormap_diverging(b)) - lightness(grv_colormap_diverging(a));
        assert_true(i < 32 ? rise > 0 : rise < 0);
    }
    assert_true(least_step > 0 && largest_step < 3 * least_step); /* rises evenly */
    const grv_color blue = grv_colormap_diverging(0), middle = grv_colormap_diverging(0.5),
                    end = grv_colormap_diverging(1);
    assert_true(blue.b > 2 * blue.r && end.r > 2 * end.b && middle.r > 245 && middle.g > 245 &&
                middle.b > 245);
    assert_true(is_same(grv_colormap_diverging(-5), blue) &&
                is_same(grv_colormap_sequential(7), grv_colormap_sequential(1)));
    assert_true(is_same(grv_colormap_sequential(NAN), grv_colormap_missing()) &&
                is_same(grv_colormap_diverging(NAN), grv_colormap_missing()));
}

enum { NY = 6, NX = 8 };

/* The panel's pixels are found by its frame; cells are 50 pixels here. */
static void test_slices_cells(void **state)
{
    (void)state;
    float field[NY * NX];
    for (int i = 0; i < NY * NX; i++) field[i] = (float)i;
    field[0] = NAN;           /* lower left */
    field[NX - 1] = INFINITY; /* lower right */
    const grv_slice_panel panel = {
        .title = "one", .field = field, .y_stride = NX, .x_stride = 1, .unit = "speed [m/s]"};
    const grv_slices slices = {
        .title = "title", .panels = &panel, .n_panels = 1, .ny = NY, .nx = NX};
    assert_int_equal(grv_report_slices(&slices, path), GRV_OK);
    const picture p = read_picture();
    const int64_t side = 400 / NX, x0 = 22, y0 = 22 + 44 + 28;
    assert_true(p.width > x0 + NX * side + 40 && p.height == y0 + NY * side + 22);
    for (int y = 0; y < NY; y++) {
        for (int x = 0; x < NX; x++) {
            const float value = field[y * NX + x];
            const grv_color expected =
                isfinite(value) ? grv_colormap_sequential(((double)value - 1) / (NY * NX - 2))
                                : grv_colormap_missing();
            for (int corner = 0; corner < 4; corner++) { /* the whole cell, row 0 at the bottom */
                const int64_t px = x0 + x * side + (corner % 2) * (side - 1),
                              py = y0 + (NY - 1 - y) * side + (corner / 2) * (side - 1);
                assert_true(is_same(color_at(&p, px, py), expected));
            }
        }
    }
    free(p.rgb);
}

static void test_slices_scales(void **state)
{
    (void)state;
    /* simulation and prediction share a range, the error has its own; strided views of one array [y, x, 3] */
    float field[NY * NX * 3];
    for (int i = 0; i < NY * NX; i++) {
        field[3 * i] = i % 2 ? 4 : -4;
        field[3 * i + 1] = i % 2 ? 8 : -2;
        field[3 * i + 2] = i % 2 ? 0.5F : -0.5F;
    }
    grv_slice_panel panels[3];
    for (int i = 0; i < 3; i++)
        panels[i] = (grv_slice_panel){.field = field + i,
                                      .y_stride = 3 * NX,
                                      .x_stride = 3,
                                      .scale = i / 2,
                                      .is_diverging = true};
    grv_slices slices = {.panels = panels, .n_panels = 3, .ny = NY, .nx = NX};
    assert_int_equal(grv_report_slices(&slices, path), GRV_OK);
    picture p = read_picture();
    /* panels are 304 x 228 (38 pixels a cell), the second starts one gap later, the bar of the first two after it */
    const int64_t y = 22 + 38 * NY - 5, width = 38 * NX;
    assert_true(is_same(color_at(&p, 22 + 5, y), grv_colormap_diverging(0.25)));
    assert_true(is_same(color_at(&p, 22 + 38 + 5, y), grv_colormap_diverging(0.75)));
    assert_true(is_same(color_at(&p, 22 + width + 18 + 38 + 5, y), grv_colormap_diverging(1)));
    assert_true(is_same(color_at(&p, 22 + width + 18 + 5, y), grv_colormap_diverging(3 / 8.0)));
    const int64_t bar_x = 22 + 2 * width + 18 + 12 + 8;
    assert_true(color_at(&p, bar_x, 22 + 3).r > 100 &&
                color_at(&p, bar_x, 22 + 3).b < 60); /* red on top */
    assert_true(count(&p, grv_colormap_diverging(1)) >=
                38 * 38 * NY * NX); /* half the cells of two panels */
    const int64_t one_row = p.height;
    free(p.rgb);
    slices.n_columns = 2;
    assert_int_equal(grv_report_slices(&slices, path), GRV_OK);
    p = read_picture();
    assert_true(p.height > 2 * one_row - 60);
    free(p.rgb);
}

static void test_slices_edges(void **state)
{
    (void)state;
    float all_missing[4] = {NAN, NAN, INFINITY, -INFINITY}, constant[4] = {3, 3, 3, 3},
          zero[4] = {0}, huge[4] = {-3e38F, 3e38F, 0, 1};
    const float *const fields[] = {all_missing, constant, zero, huge};
    for (int k = 0; k < 16; k++) {
        const grv_slice_panel panel = {
            .field = fields[k / 4], .y_stride = 2, .x_stride = 1, .is_diverging = k & 1};
        const grv_slices slices = {
            .panels = &panel, .n_panels = 1, .ny = 2, .nx = 2, .is_smooth = k & 2};
        assert_int_equal(grv_report_slices(&slices, path), GRV_OK);
        const picture p = read_picture();
        assert_true((count(&p, grv_colormap_missing()) >= 400 * 400) == (k < 4));
        free(p.rgb);
    }
    /* a column of 3000 cells: as wide as can be seen, not higher than a screen */
    float *const tall = calloc(3000, sizeof *tall);
    assert_non_null(tall);
    const grv_slice_panel panel = {
        .title = "a title longer than the panel", .field = tall, .y_stride = 1, .x_stride = 1};
    const grv_slices slices = {
        .title = "long long title", .panels = &panel, .n_panels = 1, .ny = 3000, .nx = 1};
    assert_int_equal(grv_report_slices(&slices, path), GRV_OK);
    const picture p = read_picture();
    assert_true(p.height < 1200 && p.width < 200);
    free(p.rgb);
    free(tall);
}

/* Between cell centres a smooth picture is linear; at them it has the cell's colour. */
static void test_slices_smooth(void **state)
{
    (void)state;
    float field[2] = {0, 1};
    const grv_slice_panel panel = {.field = field, .y_stride = 2, .x_stride = 1};
    const grv_slices slices = {
        .panels = &panel, .n_panels = 1, .ny = 1, .nx = 2, .is_smooth = true};
    assert_int_equal(grv_report_slices(&slices, path), GRV_OK);
    const picture p = read_picture();
    for (int64_t i = 0; i < 400; i++) {
        const double t = fmin(1, fmax(0, ((double)i + 0.5) / 200 - 0.5));
        assert_true(is_same(color_at(&p, 22 + i, 22 + 100), grv_colormap_sequential(t)));
    }
    free(p.rgb);
}

/* The line of zero is where it is, and nowhere else; it leaves out squares with missing corners. */
static void test_slices_zero(void **state)
{
    (void)state;
    enum { N = 40 }; /* ten pixels a cell */
    static float field[N][N];
    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++) field[y][x] = (float)(hypot(x - 20, y - 12) - 8);
    field[12][28] = NAN; /* to the right of the circle's centre, on the line */
    grv_slice_panel panel = {
        .field = field[0], .y_stride = N, .x_stride = 1, .is_diverging = true, .marks_zero = true};
    const grv_slices slices = {
        .panels = &panel, .n_panels = 1, .ny = N, .nx = N, .is_smooth = true};
    assert_int_equal(grv_report_slices(&slices, path), GRV_OK);
    const picture p = read_picture();
    for (int64_t j = 3; j < 397; j++) {
        for (int64_t i = 3; i < 397; i++) {
            const grv_color c = color_at(&p, 22 + i, 22 + 399 - j);
            const double x = ((double)i + 0.5) / 10 - 0.5, y = ((double)j + 0.5) / 10 - 0.5,
                         distance = hypot(x - 20, y - 12) - 8;
            if (hypot(x - 28, y - 12) < 2) continue;
            if (fabs(distance) < 0.02) assert_true(c.r < 120 && c.g < 120 && c.b < 120);
            if (fabs(distance) > 0.3) assert_true(c.r > 120 || c.g > 120 || c.b > 120);
        }
    }
    assert_true(is_same(color_at(&p, 22 + 285, 22 + 399 - 125), grv_colormap_missing()));
    free(p.rgb);
}

static void test_curves(void **state)
{
    (void)state;
    enum { N = 100 };
    double x[N], falling[N], flat[N];
    for (int i = 0; i < N; i++) {
        x[i] = i + 1;
        falling[i] = exp(-i / 10.0);
        flat[i] = i == 50 ? (double)NAN : 0.5;
    }
    falling[20] = 0; /* no place on a logarithmic axis: a gap */
    const grv_curve curves[] = {
        {"training", x, falling, N}, {"validation", x, flat, N}, {"none yet", NULL, NULL, 0}};
    static const grv_color blue = {0, 114, 178}, orange = {213, 94, 0};
    int64_t length[2];
    for (int logarithmic = 0; logarithmic < 2; logarithmic++) {
        const grv_curves figure = {"loss", "epoch", "relative error", curves, 3, logarithmic};
        assert_int_equal(grv_report_curves(&figure, path), GRV_OK);
        const picture p = read_picture();
        assert_true(p.width == 960 && p.height == 600 && is_same(color_at(&p, 0, 0), white));
        length[logarithmic] = count(&p, blue);
        assert_true(count(&p, orange) > 1000);
        /* in the gap of the flat line, the column of its missing point has no orange */
        int64_t columns_with_orange = 0;
        for (int64_t i = 100; i < 940; i++) {
            bool has_orange = false;
            for (int64_t j = 60; j < 520 && !has_orange; j++)
                has_orange = is_same(color_at(&p, i, j), orange);
            columns_with_orange += has_orange;
        }
        assert_true(columns_with_orange > 780 && columns_with_orange < 835);
        free(p.rgb);
    }
    assert_true(length[0] > 1000 && length[1] > 1000);
}

static void test_curves_edges(void **state)
{
    (void)state;
    const double x[] = {3}, y[] = {-1}, tiny[] = {1e-310};
    const grv_curve nothing = {"nothing", NULL, NULL, 0}, one = {"one", x, y, 1},
                    small = {NULL, x, tiny, 1};
    const grv_curve *const all[] = {&nothing, &one, &small};
    for (int k = 0; k < 6; k++) {
        const grv_curves figure = {.curves = all[k / 2], .n_curves = 1, .is_y_logarithmic = k & 1};
        assert_int_equal(grv_report_curves(&figure, path), GRV_OK);
        const picture p = read_picture();
        assert_true(count(&p, white) < 960 * 600);
        free(p.rgb);
    }
}

static void test_bad_arguments(void **state)
{
    (void)state;
    grv_image *image = NULL;
    assert_int_equal(grv_image_create(0, 5, white, &image), GRV_E_ARG);
    assert_int_equal(grv_image_create(5, 40000, white, &image), GRV_E_ARG);
    assert_null(image);
    float field[4] = {0};
    grv_slice_panel panel = {.field = field, .y_stride = 2, .x_stride = 1};
    const grv_slices good = {.panels = &panel, .n_panels = 1, .ny = 2, .nx = 2};
    grv_slices slices = good;
    assert_int_equal(grv_report_slices(&slices, "/nonexistent/a.png"), GRV_E_IO);
    slices.n_panels = 0;
    assert_int_equal(grv_report_slices(&slices, path), GRV_E_ARG);
    slices = good;
    slices.nx = 0;
    assert_int_equal(grv_report_slices(&slices, path), GRV_E_ARG);
    slices = good;
    panel.max = NAN;
    assert_int_equal(grv_report_slices(&slices, path), GRV_E_ARG);
    panel = (grv_slice_panel){.y_stride = 2};
    assert_int_equal(grv_report_slices(&slices, path), GRV_E_ARG);
    const grv_curve curve = {.n = 3};
    const grv_curves figure = {.curves = &curve, .n_curves = 1}, none = {.curves = &curve};
    assert_int_equal(grv_report_curves(&figure, path), GRV_E_ARG);
    assert_int_equal(grv_report_curves(&none, path), GRV_E_ARG);
    assert_int_not_equal(access(path, F_OK), 0); /* nothing was written */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_arguments), /* first: it checks that there is no picture yet */
        cmocka_unit_test(test_canvas_round_trip),
        cmocka_unit_test(test_line_gaps),
        cmocka_unit_test(test_font),
        cmocka_unit_test(test_text_placement),
        cmocka_unit_test(test_color_scales),
        cmocka_unit_test(test_slices_cells),
        cmocka_unit_test(test_slices_scales),
        cmocka_unit_test(test_slices_edges),
        cmocka_unit_test(test_slices_smooth),
        cmocka_unit_test(test_slices_zero),
        cmocka_unit_test(test_curves),
        cmocka_unit_test(test_curves_edges)};
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
