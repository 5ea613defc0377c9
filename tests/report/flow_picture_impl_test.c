/* The picture of a flow: which plane it shows, the body in grey, colours of both signs; what it refuses; out of memory. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <png.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "grove/dataset.h"
#include "grove/report.h"
#include "store_support.h"

enum { NX = 8, NY = 6, NZ = 5, NT = 3, CELLS = NX * NY * NZ };

/* Sample 0 of a data set of two; n_channels: 3, as flows have. The body is largest in planes 2 and 3, and one of its cells is in plane 1. */
static void make_data(const char *name, int64_t n_channels)
{
    static float input[CELLS * 3], target[CELLS * NT];
    static const char *const axes[] = {"x", "y", "z", "t"};
    static const int64_t shape[] = {NX, NY, NZ, NT};
    grv_dataset_desc desc = grv_dataset_desc_default();
    grv_dataset *data = NULL;
    desc.n_samples = 2;
    desc.input = (grv_dataset_field){.n_axes = 3, .n_channels = n_channels};
    desc.target = (grv_dataset_field){.n_axes = 4, .n_channels = 1};
    for (int a = 0; a < 4; a++) {
        desc.target.axis_names[a] = axes[a];
        desc.target.shape[a] = shape[a];
        if (a == 3) break;
        desc.input.axis_names[a] = axes[a];
        desc.input.shape[a] = shape[a];
    }
    for (int i = 0; i < CELLS; i++) {
        const int x = i / (NY * NZ), y = i / NZ % NY, z = i % NZ;
        const bool is_body = x >= 3 && x < 5 && y >= 2 && y < 4 && z >= 1 && z < 4;
        for (int c = 0; c < 3; c++)
            input[3 * i + c] = is_body && (z > 1 || (x == 3 && y == 2)) ? 0 : 1;
        /* only the plane and the last time that are to be shown are not pale */
        for (int t = 0; t < NT; t++)
            target[NT * i + t] = z != 2 ? 0.5F : t < NT - 1 ? 0 : y < 3 ? -1 : 1;
    }
    assert_ok(grv_dataset_create(in_folder(name), &desc, NULL, &data));
    assert_ok(grv_dataset_write_sample(data, 0, input, target));
    grv_dataset_close(&data);
}

static int64_t count(const uint8_t *rgb, int64_t n, grv_color c)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++)
        found += rgb[3 * i] == c.r && rgb[3 * i + 1] == c.g && rgb[3 * i + 2] == c.b;
    return found;
}

static void test_picture(void **state)
{
    (void)state;
    png_image png = {.version = PNG_IMAGE_VERSION};
    make_data("flow", 3);
    assert_ok(grv_report_flow(in_folder("flow"), 0, in_folder("flow.png")));
    assert_true(png_image_begin_read_from_file(&png, in_folder("flow.png")));
    png.format = PNG_FORMAT_RGB;
    uint8_t *const rgb = malloc(PNG_IMAGE_SIZE(png));
    assert_non_null(rgb);
    assert_true(png_image_finish_read(&png, NULL, rgb, 0, NULL));
    const int64_t n = (int64_t)png.width * png.height;
    const int64_t grey = count(rgb, n, grv_colormap_missing()),
                  blue = count(rgb, n, grv_colormap_diverging(0)),
                  red = count(rgb, n, grv_colormap_diverging(1)),
                  pale = count(rgb, n, grv_colormap_diverging(0.5)),
                  other = count(rgb, n, grv_colormap_diverging(0.75));
    free(rgb);
    /* three panels of 48 cells, 4 of them grey; one panel red and blue by halves, smooth between */
    assert_true(grey > 0 && blue > grey && red > grey && pale > 2 * blue && other < grey / 4);
}

static void test_refusals(void **state)
{
    (void)state;
    make_data("pairs", 2);
    assert_fails(grv_report_flow(in_folder("pairs"), 0, in_folder("no.png")), GRV_E_CONFIG,
                 "flows expected");
    assert_fails(grv_report_flow(in_folder("flow"), 1, in_folder("no.png")), GRV_E_NOT_FOUND, "1");
    assert_fails(grv_report_flow(in_folder("nothing"), 0, in_folder("no.png")), GRV_E_NOT_FOUND,
                 "nothing");
    assert_int_not_equal(access(in_folder("no.png"), F_OK), 0);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    const int64_t held = grv_memory_get().bytes;
    int n_failed = 0;
    for (grv_status status = GRV_E_NOMEM; status != GRV_OK; n_failed++) {
        grvi_alloc_fail_after(n_failed);
        status = grv_report_flow(in_folder("flow"), 0, in_folder("flow.png"));
        grvi_alloc_fail_after(-1);
        assert_int_equal(grv_memory_get().bytes, held);
        assert_true(status == GRV_OK || status == GRV_E_NOMEM);
        assert_true(n_failed < 2000);
    }
    assert_true(n_failed > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_picture),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
