/* A slice of signed distances as a picture. */
#include <math.h>
#include <stdio.h>

#include "cli/geom_cli.h"
#include "core/alloc.h"
#include "grove/core.h"
#include "grove/report.h"

enum { LONGEST_SIDE = 480 /* cells, one pixel each */, SHORTEST_SIDE = 24 };

/* Square cells over the rectangle of the box on the two other axes; points are the cells' centres. */
static grv_surface_grid make_grid(const grvc_slice_plane *plane)
{
    grv_surface_grid grid = {.n = {1, 1, 1}, .spacing = {1, 1, 1}};
    double longest = 0;
    for (int k = 0; k < 3; k++)
        if (k != plane->axis) longest = fmax(longest, plane->upper[k] - plane->lower[k]);
    for (int k = 0; k < 3; k++) {
        const double side = plane->upper[k] - plane->lower[k];
        if (k != plane->axis) {
            grid.n[k] = grvi_max_i64(llround(LONGEST_SIDE * side / longest), SHORTEST_SIDE);
            grid.spacing[k] =
                fmax(side, longest * SHORTEST_SIDE / LONGEST_SIDE) / (double)grid.n[k];
        }
        grid.origin[k] =
            k == plane->axis
                ? plane->position
                : (plane->lower[k] + plane->upper[k] - (double)(grid.n[k] - 1) * grid.spacing[k]) /
                      2;
    }
    return grid;
}

/* A coordinate as it is shown: to a ten thousandth of the box. */
static double rounded(double position, const grvc_slice_plane *plane)
{
    double longest = 0;
    for (int k = 0; k < 3; k++) longest = fmax(longest, plane->upper[k] - plane->lower[k]);
    const double step = pow(10, floor(log10(longest)) - 4);
    return round(position / step) * step + 0.0;
}

grv_status grvc_picture_write(const char *path, const char *title, const char *unit,
                              const grv_surface *surface, const grvc_slice_plane *plane,
                              const grv_surface_query *query)
{
    grv_status status = GRV_OK;
    const grv_surface_grid grid = make_grid(plane);
    float *field = NULL;
    char subtitle[128], label[128];
    const int across = plane->axis == 0 ? 1 : 0, up = plane->axis == 2 ? 1 : 2;
    const bool is_signed = grv_surface_info_get(surface).n_open_edges >= 0;
    GRV_TRY(GRVI_ALLOC(&field, grid.n[0] * grid.n[1] * grid.n[2]));
    const grv_surface_result_f32 result = {.distance = field};
    GRV_TRY_GOTO(grv_surface_grid_f32(surface, &grid, query, &result));
    (void)snprintf(subtitle, sizeof subtitle, "%c = %.6g, %c to the right, %c upwards",
                   'x' + plane->axis, rounded(plane->position, plane), 'x' + across, 'x' + up);
    (void)snprintf(label, sizeof label, unit[0] != '\0' ? "%s [%s]" : "%s",
                   is_signed ? "signed distance" : "distance", unit);
    const grv_slice_panel panel = {.title = subtitle,
                                   .field = field,
                                   .y_stride = 1,
                                   .x_stride = grid.n[up],
                                   .is_diverging = is_signed,
                                   .unit = label,
                                   .marks_zero = is_signed};
    const grv_slices slices = {.title = title,
                               .panels = &panel,
                               .n_panels = 1,
                               .ny = grid.n[up],
                               .nx = grid.n[across],
                               .is_smooth = true};
    GRV_TRY_GOTO(grv_report_slices(&slices, path));
done:
    grv_free(field);
    return status;
}
