/* The picture of a flow: one plane across the third axis, at several times, the body in grey. Reads one plane of the first axis after the other. */
#include <math.h>
#include <stdio.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/dataset.h"
#include "grove/report.h"

enum { MOST_PANELS = 4 };

typedef struct flow_picture {
    grv_dataset *data;
    const char *path;
    int64_t sample, nx, ny, nz, nt;
    float *input, *target; /* [ny][nz][3] and [nt]: one plane */
    int64_t *n_closed;     /* [nz] cells in the body */
    int64_t
        k; /* the plane that is drawn: the one that the body has most of, of equal ones the middle */
    int n_panels;
    float *fields; /* [n_panels][nx][ny] */
} flow_picture;

static int64_t time_of(const flow_picture *f, int panel)
{
    return f->nt * (panel + 1) / f->n_panels - 1;
}

static grv_status open_data(flow_picture *f, const char *data)
{
    GRV_TRY(grv_dataset_open(data, NULL, &f->data));
    const grv_dataset_desc *const desc = grv_dataset_get_desc(f->data);
    GRV_CHECK(
        desc->input.n_axes == 3 && desc->input.n_channels == 3 && desc->target.n_axes == 4 &&
            desc->target.n_channels == 1,
        GRV_E_CONFIG,
        "%s: flows expected, with three values a cell in space and one in space and time; %lld "
        "on %d axes and %lld on %d found",
        data, (long long)desc->input.n_channels, desc->input.n_axes,
        (long long)desc->target.n_channels, desc->target.n_axes);
    f->nx = desc->target.shape[0];
    f->ny = desc->target.shape[1];
    f->nz = desc->target.shape[2];
    f->nt = desc->target.shape[3];
    f->n_panels = (int)grvi_min_i64(MOST_PANELS, f->nt);
    GRV_TRY(GRVI_ALLOC(&f->input, f->ny * f->nz * 3));
    GRV_TRY(GRVI_ALLOC(&f->target, f->ny * f->nz * f->nt));
    GRV_TRY(GRVI_CALLOC(&f->n_closed, f->nz));
    return GRVI_ALLOC(&f->fields, f->n_panels * f->nx * f->ny);
}

/* Walls are closed too, on the first faces of each axis. */
static bool is_body(const flow_picture *f, int64_t i, int64_t j, int64_t k)
{
    const float *const open = &f->input[(j * f->nz + k) * 3];
    return i > 0 && j > 0 && k > 0 && open[0] + open[1] + open[2] < 1.5F;
}

static grv_status choose_plane(flow_picture *f)
{
    for (int64_t i = 0; i < f->nx; i++) {
        GRV_TRY(grv_dataset_read(f->data, f->sample, i, 1, f->input, NULL));
        for (int64_t j = 0; j < f->ny; j++)
            for (int64_t k = 0; k < f->nz; k++) f->n_closed[k] += is_body(f, i, j, k);
    }
    int64_t first = 0, last = 0;
    for (int64_t k = 0; k < f->nz; k++) {
        if (f->n_closed[k] > f->n_closed[first]) first = k;
        if (f->n_closed[k] >= f->n_closed[first]) last = k;
    }
    f->k = (first + last) / 2;
    return GRV_OK;
}

static grv_status cut(flow_picture *f)
{
    for (int64_t i = 0; i < f->nx; i++) {
        GRV_TRY(grv_dataset_read(f->data, f->sample, i, 1, f->input, f->target));
        for (int64_t j = 0; j < f->ny; j++)
            for (int p = 0; p < f->n_panels; p++)
                f->fields[(p * f->nx + i) * f->ny + j] =
                    is_body(f, i, j, f->k) ? NAN
                                           : f->target[(j * f->nz + f->k) * f->nt + time_of(f, p)];
    }
    return GRV_OK;
}

static grv_status draw(const flow_picture *f)
{
    grv_slice_panel panels[MOST_PANELS];
    char titles[MOST_PANELS][48], title[96];
    for (int p = 0; p < f->n_panels; p++) {
        (void)snprintf(titles[p], sizeof titles[p], "snapshot %lld of %lld",
                       (long long)time_of(f, p) + 1, (long long)f->nt);
        panels[p] = (grv_slice_panel){.title = titles[p],
                                      .field = &f->fields[p * f->nx * f->ny],
                                      .y_stride = 1,
                                      .x_stride = f->ny,
                                      .is_diverging = true,
                                      .min = -1,
                                      .max = 1,
                                      .unit = "vorticity / clip"};
    }
    (void)snprintf(title, sizeof title,
                   "flow %lld: vorticity about the third axis, plane %lld of %lld",
                   (long long)f->sample, (long long)f->k + 1, (long long)f->nz);
    const grv_slices slices = {.title = title,
                               .panels = panels,
                               .n_panels = f->n_panels,
                               .n_columns = f->n_panels > 1 ? 2 : 1,
                               .ny = f->ny,
                               .nx = f->nx,
                               .is_smooth = true};
    return grv_report_slices(&slices, f->path);
}

grv_status grv_report_flow(const char *data, int64_t sample, const char *path)
{
    flow_picture f = {.sample = sample, .path = path};
    grv_status status = open_data(&f, data);
    if (status == GRV_OK) status = choose_plane(&f);
    if (status == GRV_OK) status = cut(&f);
    if (status == GRV_OK) status = draw(&f);
    grv_dataset_close(&f.data);
    grv_free(f.input);
    grv_free(f.target);
    grv_free(f.n_closed);
    grv_free(f.fields);
    return status;
}
