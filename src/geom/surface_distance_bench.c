/* Benchmark of distances to surfaces: preparation, distances and signed distances of scattered points or of a grid, on a surface given as raw arrays in
 * a folder, where points and answers are left for the peers (bench/peers/surface.py). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/median.h"
#include "grove/bench.h"
#include "grove/core.h"
#include "grove/point_sampling.h"
#include "grove/surface_distance.h"

enum { MAX_REPEATS = 32, N_CHECKED = 64 };
static const int64_t grid_points[3] = {128, 64, 64};
/* Points fill the surface's box, wider by this part of each side on both sides: what a wind tunnel's refinement box is to a car. */
static const double margin = 0.25;

typedef struct sdf_problem {
    bool is_grid;
    int64_t n_points;
    int n_threads, n_repeats;
} sdf_problem;

static grv_status parse_problem(const char *text, sdf_problem *p)
{
    const char *at = strncmp(text, "sdf:", 4) == 0 ? text + 4 : text;
    char *end = NULL;
    *p = (sdf_problem){.n_points = 1000000, .n_threads = 1, .n_repeats = 3};
    p->is_grid = strncmp(at, "grid", 4) == 0;
    bool is_known = p->is_grid || strncmp(at, "points", 6) == 0;
    if (is_known) at += p->is_grid ? 4 : 6;
    if (p->is_grid) p->n_points = grid_points[0] * grid_points[1] * grid_points[2];
    for (; is_known && *at != '\0'; at = end) {
        const char option = *at == ':' ? *++at : '\0';
        const long number = option != '\0' ? strtol(at + 1, &end, 10) : 0;
        is_known = option != '\0' && end != at + 1 && number >= 1 && number <= 1000000000;
        if (option == 't')
            p->n_threads = (int)number;
        else if (option == 'r' && number <= MAX_REPEATS)
            p->n_repeats = (int)number;
        else if (option == 'n' && !p->is_grid)
            p->n_points = number;
        else
            is_known = false;
    }
    GRV_CHECK(is_known, GRV_E_ARG,
              "sdf problem '%s': <points|grid>[:n<points>][:t<threads>][:r<repetitions up to %d>] "
              "expected, e.g. points:n1000000:t2",
              text, (int)MAX_REPEATS);
    return GRV_OK;
}

typedef struct sdf_bench {
    sdf_problem problem;
    const char *folder;
    int64_t n_vertices, n_triangles;
    float *vertices, *points, *distance;
    int32_t *triangles;
    grv_surface_grid grid;
} sdf_bench;

/* ---- files ---- */

static grv_status read_array(const char *folder, const char *name, int64_t row_bytes, void **data,
                             int64_t *n_rows)
{
    char *path = NULL;
    int64_t n = 0;
    GRV_TRY(grvi_fs_join(folder, name, &path));
    grv_status status = grvi_fs_read(path, INT64_MAX - 1, (char **)data, &n);
    if (status == GRV_OK && n % row_bytes != 0)
        status = grvi_fail(GRV_E_FORMAT, __FILE__, __LINE__, __func__,
                           "%s: rows of %lld bytes expected, %lld bytes found", path,
                           (long long)row_bytes, (long long)n);
    *n_rows = n / row_bytes;
    grv_free(path);
    GRV_TRY(status);
    return GRV_OK;
}

static grv_status write_array(const char *folder, const char *name, const void *data,
                              int64_t n_bytes)
{
    char *path = NULL;
    GRV_TRY(grvi_fs_join(folder, name, &path));
    const grv_status status = grvi_fs_write_atomic(path, data, n_bytes, false);
    grv_free(path);
    GRV_TRY(status);
    return GRV_OK;
}

/* ---- the run ---- */

static grv_status create_surface(const sdf_bench *b, grv_surface_sign sign, grv_surface **surface,
                                 double *seconds)
{
    grv_surface_params params = grv_surface_params_default();
    params.sign = sign;
    params.n_threads = b->problem.n_threads;
    const double start = grv_clock_seconds();
    GRV_TRY(grv_surface_create_f32(b->n_vertices, b->vertices, b->n_triangles, b->triangles,
                                   &params, surface));
    *seconds = grv_clock_seconds() - start;
    return GRV_OK;
}

static grv_status make_points(sdf_bench *b, const grv_surface_info *info)
{
    double lower[3], upper[3];
    for (int k = 0; k < 3; k++) {
        const double side = info->upper[k] - info->lower[k];
        lower[k] = info->lower[k] - margin * side;
        upper[k] = info->upper[k] + margin * side;
        b->grid.n[k] = grid_points[k];
        b->grid.origin[k] = lower[k];
        b->grid.spacing[k] = (upper[k] - lower[k]) / (double)(grid_points[k] - 1);
    }
    GRV_TRY(GRVI_ALLOC(&b->points, 3 * b->problem.n_points));
    GRV_TRY(GRVI_ALLOC(&b->distance, b->problem.n_points));
    if (!b->problem.is_grid) {
        GRV_TRY(grv_sample_box_f32(lower, upper, 1, 0, b->problem.n_points, b->points));
        return GRV_OK;
    }
    for (int64_t i = 0; i < b->problem.n_points; i++) {
        const int64_t at[3] = {i / (grid_points[1] * grid_points[2]),
                               i / grid_points[2] % grid_points[1], i % grid_points[2]};
        for (int k = 0; k < 3; k++)
            b->points[3 * i + k] = (float)(lower[k] + (double)at[k] * b->grid.spacing[k]);
    }
    return GRV_OK;
}

/* Median of looking up all points. band: 0 for none. */
static grv_status time_query(sdf_bench *b, const grv_surface *surface, double band, double *median)
{
    double seconds[MAX_REPEATS];
    grv_surface_query query = grv_surface_query_default();
    const grv_surface_result_f32 result = {.distance = b->distance};
    query.n_threads = b->problem.n_threads;
    if (band > 0) query.band = band;
    for (int r = 0; r < b->problem.n_repeats; r++) {
        const double start = grv_clock_seconds();
        if (b->problem.is_grid)
            GRV_TRY(grv_surface_grid_f32(surface, &b->grid, &query, &result));
        else
            GRV_TRY(
                grv_surface_points_f32(surface, b->problem.n_points, b->points, &query, &result));
        seconds[r] = grv_clock_seconds() - start;
    }
    *median = grvi_median(b->problem.n_repeats, seconds);
    return GRV_OK;
}

/* ---- the check: all triangles one by one, by other formulas ---- */

static double to_segment(const double a[3], const double b[3])
{
    double ab2 = 0, along = 0, d2 = 0; /* from the origin */
    for (int k = 0; k < 3; k++) {
        ab2 += (b[k] - a[k]) * (b[k] - a[k]);
        along -= (b[k] - a[k]) * a[k];
    }
    const double t = ab2 > 0 ? fmin(fmax(along / ab2, 0), 1) : 0;
    for (int k = 0; k < 3; k++) d2 += pow(a[k] + t * (b[k] - a[k]), 2);
    return sqrt(d2);
}

static double to_triangle(const double corner[3][3])
{
    double distance = (double)INFINITY, n[3], height = 0, n2 = 0;
    bool is_within = true;
    for (int k = 0; k < 3; k++) {
        const int l = (k + 1) % 3, m = (k + 2) % 3;
        n[k] = (corner[1][l] - corner[0][l]) * (corner[2][m] - corner[0][m]) -
               (corner[1][m] - corner[0][m]) * (corner[2][l] - corner[0][l]);
        height += corner[0][k] * n[k];
        n2 += n[k] * n[k];
    }
    for (int j = 0; j < 3; j++) {
        const double *const p = corner[j], *const q = corner[(j + 1) % 3];
        const double side = n[0] * (p[1] * q[2] - p[2] * q[1]) +
                            n[1] * (p[2] * q[0] - p[0] * q[2]) + n[2] * (p[0] * q[1] - p[1] * q[0]);
        is_within = is_within && side > 0;
        distance = fmin(distance, to_segment(p, q));
    }
    return is_within && n2 > 0 ? fmin(distance, fabs(height) / sqrt(n2)) : distance;
}

static double to_all_triangles(const sdf_bench *b, const double x[3])
{
    double distance = (double)INFINITY;
    for (int64_t t = 0; t < b->n_triangles; t++) {
        double corner[3][3];
        for (int j = 0; j < 9; j++)
            corner[j / 3][j % 3] =
                (double)b->vertices[3 * (int64_t)b->triangles[3 * t + j / 3] + j % 3] - x[j % 3];
        distance = fmin(distance, to_triangle((const double(*)[3])corner));
    }
    return distance;
}

/* The most that a distance is off, of a few, over the diagonal. */
static double check_distances(const sdf_bench *b, const grv_surface_info *info)
{
    double diagonal2 = 0, error = 0;
    for (int k = 0; k < 3; k++) diagonal2 += pow(info->upper[k] - info->lower[k], 2);
    for (int i = 0; i < N_CHECKED; i++) {
        const int64_t point =
            (int64_t)(grv_random_uniform(1, 2, (uint64_t)i) * (double)b->problem.n_points);
        double x[3];
        for (int k = 0; k < 3; k++) x[k] = (double)b->points[3 * point + k];
        error = fmax(error, fabs(fabs((double)b->distance[point]) - to_all_triangles(b, x)));
    }
    return error / sqrt(diagonal2);
}

/* ---- the result ---- */

static grv_status measure(sdf_bench *b, grv_bench_result *result)
{
    grv_status status = GRV_OK;
    grv_surface *plain = NULL, *signed_one = NULL;
    double build = 0, build_signed = 0, unsigned_seconds = 0, signed_seconds = 0, band_seconds = 0;
    GRV_TRY_GOTO(create_surface(b, GRV_SURFACE_UNSIGNED, &plain, &build));
    GRV_TRY_GOTO(create_surface(b, GRV_SURFACE_WINDING, &signed_one, &build_signed));
    const grv_surface_info info = grv_surface_info_get(plain),
                           info_signed = grv_surface_info_get(signed_one);
    GRV_TRY_GOTO(make_points(b, &info));
    if (b->problem.is_grid) {
        const double band =
            2 * fmax(fmax(b->grid.spacing[0], b->grid.spacing[1]), b->grid.spacing[2]);
        GRV_TRY_GOTO(time_query(b, signed_one, band, &band_seconds));
    }
    GRV_TRY_GOTO(time_query(b, plain, 0, &unsigned_seconds));
    GRV_TRY_GOTO(time_query(b, signed_one, 0, &signed_seconds));
    const double error = check_distances(b, &info);
    const int64_t n = b->problem.n_points;
    GRV_TRY_GOTO(write_array(b->folder, "points.f32", b->points, 12 * n));
    GRV_TRY_GOTO(write_array(b->folder, "distance.f32", b->distance, 4 * n));
    result->median_seconds = unsigned_seconds;
    result->correct = error < 1e-6;
    grv_bench_result_add(result, "triangles", (double)b->n_triangles);
    grv_bench_result_add(result, "open_edges", (double)info_signed.n_open_edges);
    grv_bench_result_add(result, "build_seconds", build);
    grv_bench_result_add(result, "build_signed_seconds", build_signed);
    grv_bench_result_add(result, "unsigned_seconds", unsigned_seconds);
    grv_bench_result_add(result, "signed_seconds", signed_seconds);
    if (b->problem.is_grid) grv_bench_result_add(result, "signed_band_seconds", band_seconds);
    grv_bench_result_add(result, "unsigned_ns_per_point", 1e9 * unsigned_seconds / (double)n);
    grv_bench_result_add(result, "signed_ns_per_point", 1e9 * signed_seconds / (double)n);
    grv_bench_result_add(result, "bytes_per_triangle", (double)info.bytes / (double)b->n_triangles);
    grv_bench_result_add(result, "bytes_per_triangle_signed",
                         (double)info_signed.bytes / (double)b->n_triangles);
    grv_bench_result_add(result, "error_over_diagonal", error);
done:
    grv_surface_destroy(&plain);
    grv_surface_destroy(&signed_one);
    return status;
}

grv_status grv_bench_sdf(const char *problem, const char *folder, grv_bench_result *result)
{
    grv_status status = GRV_OK;
    sdf_bench b = {.folder = folder};
    *result = (grv_bench_result){0};
    GRV_TRY(parse_problem(problem, &b.problem));
    if (b.problem.is_grid)
        (void)snprintf(result->problem, sizeof result->problem, "sdf:grid:t%d:r%d",
                       b.problem.n_threads, b.problem.n_repeats);
    else
        (void)snprintf(result->problem, sizeof result->problem, "sdf:points:n%lld:t%d:r%d",
                       (long long)b.problem.n_points, b.problem.n_threads, b.problem.n_repeats);
    GRV_TRY_GOTO(read_array(folder, "vertices.f32", 12, (void **)&b.vertices, &b.n_vertices));
    GRV_TRY_GOTO(read_array(folder, "triangles.i32", 12, (void **)&b.triangles, &b.n_triangles));
    GRV_CHECK_GOTO(b.n_triangles > 0, GRV_E_FORMAT, "%s: no triangles", folder);
    GRV_TRY_GOTO(measure(&b, result));
done:
    grv_free(b.vertices);
    grv_free(b.triangles);
    grv_free(b.points);
    grv_free(b.distance);
    return status;
}
