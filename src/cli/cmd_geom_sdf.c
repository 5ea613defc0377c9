/* grove geom sdf: signed distances to a surface, on a regular grid or at given points. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/geom_cli.h"
#include "core/alloc.h"
#include "grove/core.h"

enum { AXIS_AUTO };
static const char *const signs[] = {"unsigned", "winding", "pseudonormal", NULL};
static const char *const slice_axes[] = {"auto", "x", "y", "z", NULL};
static const char *const axis_names[] = {"x", "y", "z"};

typedef struct sdf_config {
    grv_i64_list grid;
    grv_f64_list box, position;
    grv_string_list fields;
    char *points, *unit, *picture;
    double padding, band, max_distance;
    int sign, type, slice, at, threads;
    bool either_orientation, normalize, overwrite;
} sdf_config;

#define AT(field) offsetof(sdf_config, field)
static const grv_option options[] = {
    {.key = "grid",
     .type = GRV_OPTION_I64_LIST,
     .offset = AT(grid),
     .fallback = "[64]",
     .min = 1,
     .max = 1e9,
     .min_items = 1,
     .max_items = 3,
     .help = "points along x, y, z; one number: along the longest side, the others as far apart"},
    {.key = "box",
     .type = GRV_OPTION_F64_LIST,
     .offset = AT(box),
     .fallback = "[]",
     .max_items = 6,
     .help = "of the grid: x0,y0,z0,x1,y1,z1; empty: that of the surface and padding"},
    {.key = "padding",
     .type = GRV_OPTION_F64,
     .offset = AT(padding),
     .fallback = "0.2",
     .min = 0,
     .max = HUGE_VAL,
     .help = "around the surface's box on each side, in its longest sides"},
    {.key = "points",
     .type = GRV_OPTION_STRING,
     .offset = AT(points),
     .fallback = "",
     .help = "instead of a grid: mesh file, Zarr array or .npy file of points"},
    GRVC_OPTION_AT(AT(at)),
    {.key = "sign",
     .type = GRV_OPTION_CHOICE,
     .offset = AT(sign),
     .fallback = "winding",
     .choices = signs,
     .help = "winding: for any surface; pseudonormal: cheaper, for clean closed ones"},
    {.key = "either_orientation",
     .type = GRV_OPTION_BOOL,
     .offset = AT(either_orientation),
     .fallback = "false",
     .help = "winding: surfaces with normals inwards count too"},
    {.key = "band",
     .type = GRV_OPTION_F64,
     .offset = AT(band),
     .fallback = "0",
     .min = 0,
     .max = HUGE_VAL,
     .help = "grids: exact within this distance, swept beyond it; 0: exact everywhere"},
    {.key = "max_distance",
     .type = GRV_OPTION_F64,
     .offset = AT(max_distance),
     .fallback = ".inf",
     .min = 0,
     .max = HUGE_VAL,
     .help = "what is farther becomes NaN"},
    {.key = "normalize",
     .type = GRV_OPTION_BOOL,
     .offset = AT(normalize),
     .fallback = "false",
     .help = "distances where the box is [-1, 1] along each axis (DoMINO)"},
    {.key = "fields",
     .type = GRV_OPTION_STRING_LIST,
     .offset = AT(fields),
     .fallback = "[]",
     .max_items = 5,
     .help = "also: closest, triangle, barycentric, winding, exact (with a band)"},
    GRVC_OPTION_TYPE(AT(type), "of the grid's values; keep: that of the surface's points"),
    {.key = "unit",
     .type = GRV_OPTION_STRING,
     .offset = AT(unit),
     .fallback = "",
     .help = "of the coordinates, to be noted in the result"},
    {.key = "picture",
     .type = GRV_OPTION_STRING,
     .offset = AT(picture),
     .fallback = "",
     .help = "PNG file: a slice, the surface as a line"},
    {.key = "slice",
     .type = GRV_OPTION_CHOICE,
     .offset = AT(slice),
     .fallback = "auto",
     .choices = slice_axes,
     .help = "axis across the slice; auto: the box's shortest side but one"},
    {.key = "position",
     .type = GRV_OPTION_F64_LIST,
     .offset = AT(position),
     .fallback = "[]",
     .max_items = 1,
     .help = "of the slice on that axis; empty: the middle of the surface"},
    GRVC_OPTION_OVERWRITE(AT(overwrite)),
    GRVC_OPTION_THREADS(AT(threads)),
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

/* What is computed, and what is known of it afterwards. */
typedef struct sdf_job {
    const grvc_session *session;
    const sdf_config *config;
    grv_surface *surface;
    int64_t n_triangles;
    double lower[3], upper[3];         /* of the surface */
    double box_lower[3], box_upper[3]; /* of the grid and of normalize */
    grv_surface_grid grid;
    grvc_points points; /* empty: the grid */
    grv_store_type type;
    grv_surface_query query;
    grvc_slice_plane slice; /* of the picture */
    int64_t n_inside, n_missing;
    double min, max;
} sdf_job;

/* ---- where ---- */

static grv_status check_config(const sdf_config *c)
{
    static const char *const names[] = {"closest", "triangle", "barycentric", "winding", "exact"};
    GRV_CHECK(c->grid.n != 2, GRV_E_CONFIG, "grid: one or three numbers expected, two found");
    GRV_CHECK(c->box.n == 0 || c->box.n == 6, GRV_E_CONFIG,
              "box: six numbers (x0,y0,z0,x1,y1,z1) expected, %d found", c->box.n);
    GRV_CHECK(c->points[0] != '\0' || c->at == GRVC_AT_POINTS, GRV_E_CONFIG,
              "at: points=FILE expected with it");
    GRV_CHECK(c->points[0] == '\0' || (c->type == GRVC_TYPE_KEEP && c->band == 0), GRV_E_CONFIG,
              "points: type and band are for grids");
    for (int i = 0; i < c->fields.n; i++) {
        bool is_known = false;
        for (int k = 0; k < 5; k++) is_known = is_known || strcmp(c->fields.at[i], names[k]) == 0;
        GRV_CHECK(is_known, GRV_E_CONFIG,
                  "fields: closest, triangle, barycentric, winding or exact expected, '%s' found",
                  c->fields.at[i]);
        for (int k = 0; k < i; k++)
            GRV_CHECK(strcmp(c->fields.at[i], c->fields.at[k]) != 0, GRV_E_CONFIG,
                      "fields: '%s' is there twice", c->fields.at[i]);
        GRV_CHECK(strcmp(c->fields.at[i], "exact") != 0 || c->band > 0, GRV_E_CONFIG,
                  "fields: exact is for grids with a band");
        GRV_CHECK(strcmp(c->fields.at[i], "winding") != 0 || c->sign == GRV_SURFACE_WINDING,
                  GRV_E_CONFIG, "fields: winding expects sign=winding");
    }
    return GRV_OK;
}

static grv_status place_box(sdf_job *job)
{
    const sdf_config *const c = job->config;
    double longest = 0;
    for (int k = 0; k < 3; k++) longest = fmax(longest, job->upper[k] - job->lower[k]);
    for (int k = 0; k < 3; k++) {
        const bool is_given = c->box.n > 0;
        job->box_lower[k] = is_given ? c->box.at[k] : job->lower[k] - c->padding * longest;
        job->box_upper[k] = is_given ? c->box.at[k + 3] : job->upper[k] + c->padding * longest;
        GRV_CHECK(job->box_lower[k] <= job->box_upper[k] && isfinite(job->box_lower[k]) &&
                      isfinite(job->box_upper[k]),
                  GRV_E_CONFIG,
                  "box: a lower end below the upper one expected on axis %s, %g and %g found",
                  axis_names[k], job->box_lower[k], job->box_upper[k]);
    }
    return GRV_OK;
}

/* The grid's points reach from one end of the box to the other; with one number, as far as the common spacing allows, and are in its middle. */
static grv_status place_grid(sdf_job *job)
{
    const grv_i64_list *const wanted = &job->config->grid;
    grv_surface_grid *const g = &job->grid;
    double longest = 0;
    for (int k = 0; k < 3; k++) longest = fmax(longest, job->box_upper[k] - job->box_lower[k]);
    GRV_CHECK(longest > 0, GRV_E_CONFIG, "box: it has no size; box=x0,y0,z0,x1,y1,z1 gives one");
    for (int k = 0; k < 3; k++) {
        const double side = job->box_upper[k] - job->box_lower[k];
        if (wanted->n == 1) {
            const int64_t n = wanted->at[0];
            g->spacing[k] = longest / (double)grvi_max_i64(n - 1, 1);
            g->n[k] = n > 1 ? (int64_t)floor(side / g->spacing[k] + 1e-9) + 1 : 1;
        } else {
            g->n[k] = wanted->at[k];
            g->spacing[k] = side > 0 && g->n[k] > 1 ? side / (double)(g->n[k] - 1) : longest;
            GRV_CHECK(side > 0 || g->n[k] == 1, GRV_E_CONFIG,
                      "grid: the box has no size along %s, so one point is expected, %lld found",
                      axis_names[k], (long long)g->n[k]);
        }
        g->origin[k] =
            wanted->n == 3 && g->n[k] > 1
                ? job->box_lower[k]
                : job->box_lower[k] + 0.5 * (side - (double)(g->n[k] - 1) * g->spacing[k]);
    }
    int64_t n = 0;
    GRV_CHECK(grvi_mul_i64(g->n[0], g->n[1], &n) && grvi_mul_i64(n, g->n[2], &n) &&
                  n < (int64_t)1 << 48,
              GRV_E_CONFIG, "grid: %lld x %lld x %lld points are too many", (long long)g->n[0],
              (long long)g->n[1], (long long)g->n[2]);
    return GRV_OK;
}

static grv_status read_points(sdf_job *job, int n_threads)
{
    GRV_TRY(grvc_points_read(job->config->points, job->config->at, n_threads, &job->points));
    GRV_CHECK(job->points.dimension == 3, GRV_E_SHAPE, "%s: points [n, 3] expected, [n, 2] found",
              job->config->points);
    job->type = job->points.type;
    return GRV_OK;
}

static grv_status prepare_surface(sdf_job *job, const char *word, int n_threads)
{
    const sdf_config *const c = job->config;
    grv_triangles *triangles = NULL;
    grv_status status = GRV_OK;
    grv_surface_params params = grv_surface_params_default();
    params.sign = (grv_surface_sign)c->sign;
    params.either_orientation = c->either_orientation;
    params.n_threads = n_threads;
    double since_s = grv_clock_seconds();
    GRV_TRY(grvc_surface_read(word, n_threads, &triangles));
    grvc_tell_step(job->session, "surface read", &since_s);
    job->n_triangles = triangles->n_triangles;
    job->type = grvc_type_of(c->type, triangles->type);
    grv_triangles_box(triangles, job->lower, job->upper);
    GRV_TRY_GOTO(place_box(job));
    if (c->normalize) {
        for (int k = 0; k < 3; k++)
            GRV_CHECK_GOTO(job->box_lower[k] < job->box_upper[k], GRV_E_CONFIG,
                           "normalize: a box with a size along %s expected", axis_names[k]);
        grv_surface_params_normalize(&params, job->box_lower, job->box_upper);
    }
    GRV_TRY_GOTO(grvc_surface_create(triangles, &params, &job->surface));
    grvc_tell_step(job->session, "surface prepared", &since_s);
done:
    grv_triangles_destroy(&triangles);
    return status;
}

/* ---- the table ---- */

static void add_columns(const sdf_job *job, grvc_table *t)
{
    grvc_table_add(t, "distance", job->type, 0);
    for (int i = 0; i < job->config->fields.n; i++) {
        const char *const name = job->config->fields.at[i];
        const bool is_vector = strcmp(name, "closest") == 0 || strcmp(name, "barycentric") == 0;
        const grv_store_type type = strcmp(name, "triangle") == 0 ? GRV_STORE_I32
                                    : strcmp(name, "exact") == 0  ? GRV_STORE_U8
                                                                  : job->type;
        grvc_table_add(t, name, type, is_vector ? 3 : 0);
    }
}

static void count_distances(sdf_job *job, const void *distances, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double d = job->type == GRV_STORE_F32 ? (double)((const float *)distances)[i]
                                                    : ((const double *)distances)[i];
        job->n_inside += d < 0;
        job->n_missing += isnan(d);
        job->min = fmin(job->min, d); /* NaN is passed over */
        job->max = fmax(job->max, d);
    }
}

/* One batch of the grid or of the points. */
static grv_status compute(void *argument, const grvc_table *t, int64_t first, int64_t count)
{
    sdf_job *const job = argument;
    const bool is_grid = job->points.data == NULL, is_float = job->type == GRV_STORE_F32;
    void *const rows[] = {
        grvc_table_rows(t, "distance", first), grvc_table_rows(t, "closest", first),
        grvc_table_rows(t, "triangle", first), grvc_table_rows(t, "barycentric", first),
        grvc_table_rows(t, "winding", first),  grvc_table_rows(t, "exact", first)};
    const grv_surface_result_f32 narrow = {rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]};
    const grv_surface_result_f64 wide = {rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]};
    int64_t n = count;
    if (is_grid) {
        grv_surface_grid part = job->grid;
        part.n[0] = count;
        part.origin[0] += (double)first * part.spacing[0];
        n = count * part.n[1] * part.n[2];
        GRV_TRY(is_float ? grv_surface_grid_f32(job->surface, &part, &job->query, &narrow)
                         : grv_surface_grid_f64(job->surface, &part, &job->query, &wide));
    } else {
        GRV_TRY(is_float ? grv_surface_points_f32(job->surface, n,
                                                  (const float *)job->points.data + 3 * first,
                                                  &job->query, &narrow)
                         : grv_surface_points_f64(job->surface, n,
                                                  (const double *)job->points.data + 3 * first,
                                                  &job->query, &wide));
    }
    count_distances(job, rows[0], n);
    return GRV_OK;
}

/* ---- attributes and coordinates ---- */

static void write_geometry(const sdf_job *job, grvi_json_writer *w)
{
    if (job->points.data == NULL) {
        grvc_json_numbers(w, "origin", 3, job->grid.origin);
        grvc_json_numbers(w, "spacing", 3, job->grid.spacing);
    }
    if (job->config->unit[0] != '\0') grvc_json_text(w, "units", job->config->unit);
}

static grv_status make_group(const sdf_job *job, grvc_output *output)
{
    const sdf_config *const c = job->config;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text};
    grvc_description_begin(&w, "sdf");
    grvc_json_text(&w, "surface", job->session->words[0]);
    grvc_json_text(&w, "sign", signs[c->sign]);
    if (job->points.data != NULL) grvc_json_text(&w, "points", c->points);
    if (c->band > 0) grvc_json_number(&w, "band", c->band);
    if (c->normalize) {
        grvc_json_numbers(&w, "normalized_lower", 3, job->box_lower);
        grvc_json_numbers(&w, "normalized_upper", 3, job->box_upper);
    }
    grvi_json_end_object(&w);
    write_geometry(job, &w);
    grvi_json_end_object(&w);
    return grvc_output_group(output, "", &text);
}

/* Coordinates along an axis, for readers that look for an array of its name. */
static grv_status write_axis(const sdf_job *job, grvc_output *output, int axis)
{
    grv_status status = GRV_OK;
    grv_array *array = NULL;
    double *values = NULL;
    static const int64_t start = 0;
    const int64_t n = job->grid.n[axis];
    grv_array_desc desc = grv_array_desc_default();
    desc.type = GRV_STORE_F64;
    desc.rank = 1;
    desc.shape[0] = n;
    desc.dimension_names[0] = axis_names[axis];
    GRV_TRY_GOTO(GRVI_ALLOC(&values, n));
    for (int64_t i = 0; i < n; i++)
        values[i] = job->grid.origin[axis] + (double)i * job->grid.spacing[axis];
    GRV_TRY_GOTO(grvc_output_array(output, axis_names[axis], &desc, n, &array));
    GRV_TRY_GOTO(grv_array_write(array, &start, &n, values, NULL));
done:
    grv_array_close(&array);
    grv_free(values);
    return status;
}

/* The mesh whose point data a table in memory becomes. Its points are those of the job. */
static grv_status make_mesh(sdf_job *job, grv_mesh **mesh)
{
    if (job->points.data != NULL) {
        void *const points = job->points.data;
        job->points.data = NULL; /* taken in any case */
        GRV_TRY(grvc_cloud_create(job->type, job->points.n, points, mesh));
        job->points.data = points;
        return GRV_OK;
    }
    GRV_TRY(grv_mesh_create(GRV_MESH_IMAGE, mesh));
    for (int k = 0; k < 3; k++) {
        (*mesh)->extent[2 * k + 1] = job->grid.n[k] - 1;
        (*mesh)->origin[k] = job->grid.origin[k];
        (*mesh)->spacing[k] = job->grid.spacing[k];
    }
    return GRV_OK;
}

/* ---- the picture ---- */

/* The shortest side but one: a car is cut along its length and height, a plate across its thickness. */
static int choose_axis(const sdf_job *job)
{
    double sides[3];
    for (int k = 0; k < 3; k++) sides[k] = job->upper[k] - job->lower[k];
    for (int k = 0; k < 3; k++) {
        int n_longer = 0, n_shorter = 0;
        for (int i = 0; i < 3; i++) {
            n_longer += sides[i] > sides[k] || (sides[i] == sides[k] && i < k);
            n_shorter += sides[i] < sides[k] || (sides[i] == sides[k] && i > k);
        }
        if (n_longer == 1 && n_shorter == 1) return k;
    }
    return 2;
}

static grv_status place_slice(sdf_job *job)
{
    const sdf_config *const c = job->config;
    grvc_slice_plane *const plane = &job->slice;
    *plane = (grvc_slice_plane){.axis = c->slice == AXIS_AUTO ? choose_axis(job) : c->slice - 1};
    memcpy(plane->lower, job->box_lower, sizeof plane->lower);
    memcpy(plane->upper, job->box_upper, sizeof plane->upper);
    plane->position = c->position.n > 0 ? c->position.at[0]
                                        : 0.5 * (job->lower[plane->axis] + job->upper[plane->axis]);
    for (int k = 0; k < 3; k++)
        GRV_CHECK(k == plane->axis || plane->lower[k] < plane->upper[k], GRV_E_CONFIG,
                  "picture: the box has no size along %s, which a slice across %s shows",
                  axis_names[k], axis_names[plane->axis]);
    return GRV_OK;
}

static grv_status draw(const sdf_job *job)
{
    const sdf_config *const c = job->config;
    const char *const word = job->session->words[0], *const slash = strrchr(word, '/');
    grv_surface_query query = job->query;
    query.band = INFINITY;
    return grvc_picture_write(c->picture, slash != NULL ? slash + 1 : word, c->unit, job->surface,
                              &job->slice, &query);
}

/* ---- all of it ---- */

static grv_status write_table(sdf_job *job, grvc_output *output, int n_threads)
{
    grv_status status = GRV_OK;
    grvi_text attributes = {0};
    grvi_json_writer w = {.out = &attributes};
    grvc_table t = {.rank = 1, .shape = {job->points.n}, .axes = {"point"}};
    grv_mesh *mesh = NULL;
    if (job->points.data == NULL) {
        t = (grvc_table){.rank = 3, .axes = {axis_names[0], axis_names[1], axis_names[2]}};
        memcpy(t.shape, job->grid.n, sizeof t.shape);
        if (job->config->band > 0) t.steps_a_batch = t.shape[0]; /* sweeps go through all of it */
    }
    grvi_json_begin_object(&w);
    write_geometry(job, &w);
    grvi_json_end_object(&w);
    GRV_TRY_GOTO(grvi_text_status(&attributes));
    t.attributes = attributes.data;
    add_columns(job, &t);
    t.components = "component";
    if (output->is_file) {
        GRV_TRY_GOTO(make_mesh(job, &mesh));
    } else {
        GRV_TRY_GOTO(grvc_output_open(output, n_threads));
        GRV_TRY_GOTO(make_group(job, output));
        for (int k = 0; k < 3 && job->points.data == NULL; k++)
            GRV_TRY_GOTO(write_axis(job, output, k));
    }
    t.output = output;
    t.mesh = mesh;
    GRV_TRY_GOTO(grvc_table_run(&t, compute, job, job->session, "points"));
    if (job->config->picture[0] != '\0') GRV_TRY_GOTO(draw(job));
    GRV_TRY_GOTO(grvc_output_finish(output, mesh, n_threads));
done:
    grvc_table_fini(&t);
    if (mesh != NULL && job->points.data != NULL) mesh->points.data = NULL; /* the job's */
    grv_mesh_destroy(&mesh);
    grvi_text_fini(&attributes);
    return status;
}

/* ---- the result ---- */

static int64_t n_points_of(const sdf_job *job)
{
    return job->points.data != NULL ? job->points.n
                                    : job->grid.n[0] * job->grid.n[1] * job->grid.n[2];
}

/* What often goes wrong with signs. */
static void warn(const sdf_job *job)
{
    const int64_t n_open = grv_surface_info_get(job->surface).n_open_edges;
    if (job->config->sign == GRV_SURFACE_PSEUDONORMAL && n_open > 0)
        grv_log_message(job->session->log, GRV_LOG_WARN,
                        "%lld open edges: signs by pseudo-normals are not reliable, sign=winding "
                        "is for such surfaces",
                        (long long)n_open);
    if (job->config->sign != GRV_SURFACE_UNSIGNED && job->n_inside == 0 && job->points.data == NULL)
        grv_log_message(job->session->log, GRV_LOG_WARN,
                        "no point is inside: normals inwards (either_orientation=true), an open "
                        "surface, a grid that is too coarse or elsewhere; `grove geom info` "
                        "tells");
}

static grv_status print_result(const sdf_job *job, const char *place, double seconds)
{
    const int64_t n = n_points_of(job), n_open = grv_surface_info_get(job->surface).n_open_edges;
    if (!job->session->json) {
        (void)printf("%s: %lld points", place, (long long)n);
        if (job->points.data == NULL)
            (void)printf(" (%lld x %lld x %lld)", (long long)job->grid.n[0],
                         (long long)job->grid.n[1], (long long)job->grid.n[2]);
        (void)printf(", %lld triangles", (long long)job->n_triangles);
        if (n_open > 0) (void)printf(" (%lld open edges)", (long long)n_open);
        (void)printf("; %lld inside, distances %.6g to %.6g", (long long)job->n_inside, job->min,
                     job->max);
        if (job->n_missing > 0) (void)printf(", %lld without (NaN)", (long long)job->n_missing);
        (void)printf("; %.1f s\n", seconds);
        return GRV_OK;
    }
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    grvc_json_text(&w, "target", place);
    grvc_json_integer(&w, "points", n);
    grvc_json_integer(&w, "triangles", job->n_triangles);
    grvc_json_integer(&w, "open_edges", n_open);
    grvc_json_integer(&w, "inside", job->n_inside);
    grvc_json_integer(&w, "without_distance", job->n_missing);
    if (job->points.data == NULL) grvc_json_lengths(&w, "grid", 3, job->grid.n);
    write_geometry(job, &w);
    grvc_json_number(&w, "min", job->min);
    grvc_json_number(&w, "max", job->max);
    grvc_json_number(&w, "seconds", seconds);
    grvi_json_end_object(&w);
    return grvc_json_print(&text);
}

static grv_status run(const grvc_session *session, const sdf_config *c)
{
    grv_status status = GRV_OK;
    grvc_output output = {0};
    const double start_s = grv_clock_seconds();
    const int n_threads = grvc_threads(c->threads);
    sdf_job job = {.session = session,
                   .config = c,
                   .min = NAN,
                   .max = NAN,
                   .query = grv_surface_query_default()};
    job.query.n_threads = n_threads;
    job.query.max_distance = c->max_distance;
    if (c->band > 0) job.query.band = c->band;
    GRV_TRY_GOTO(check_config(c));
    GRV_TRY_GOTO(grvc_output_check(session->words[1], c->points[0] != '\0' ? " .vtp" : " .vti",
                                   c->overwrite, &output));
    if (c->picture[0] != '\0') GRV_TRY_GOTO(grvc_picture_check(c->picture, c->overwrite));
    GRV_TRY_GOTO(prepare_surface(&job, session->words[0], n_threads));
    if (c->points[0] != '\0')
        GRV_TRY_GOTO(read_points(&job, n_threads));
    else
        GRV_TRY_GOTO(place_grid(&job));
    if (c->picture[0] != '\0') GRV_TRY_GOTO(place_slice(&job));
    GRV_TRY_GOTO(write_table(&job, &output, n_threads));
    warn(&job);
    GRV_TRY_GOTO(print_result(&job, output.place, grv_clock_seconds() - start_s));
done:
    grvc_output_fini(&output);
    grvc_points_fini(&job.points);
    grv_surface_destroy(&job.surface);
    return status;
}

int grvc_geom_sdf(int argc, char **argv)
{
    sdf_config config = {0};
    grvc_session session = {.name = "grove geom sdf",
                            .about =
                                "Distances to a triangle surface, negative inside, on a regular "
                                "grid around it or at points=FILE.\n"
                                "OUT.zarr becomes a group: distance [x, y, z] and its coordinates, "
                                "or distance [n]; OUT.vti (grid)\n"
                                "and OUT.vtp (points) are for ParaView. Grids in Zarr may be "
                                "larger than memory, unless there is a\n"
                                "band.\n"
                                "  grove geom sdf car.stl car.zarr grid=128,64,64 picture=car.png",
                            .words_usage = "SURFACE OUT",
                            .min_words = 2,
                            .max_words = 2,
                            .table = &table,
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session, &config));
}
