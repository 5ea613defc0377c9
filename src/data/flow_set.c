/* The flows of a data set. */
#include "data/flow_set.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/json.h"
#include "grove/core.h"

enum { PLACE_STREAM = 1 };

const char *const grvi_flow_precisions[] = {"float32", "float64", NULL};

static grv_flow_pose pose_of(const grv_generate_config *c, double radius)
{
    return (grv_flow_pose){radius, {c->rotation.at[0], c->rotation.at[1], c->rotation.at[2]}};
}

/* Where the centre may be: on corners of cells, with a cell to spare between body and boundary; the nearest corner where the range holds none. */
static grv_status find_range(grvi_flow_set *set, int64_t *n_places)
{
    const grv_generate_config *const c = set->config;
    const grv_flow_pose pose = pose_of(c, c->radius);
    double lower[3] = {-c->radius, -c->radius, -c->radius},
           upper[3] = {c->radius, c->radius, c->radius};
    if (set->shape != NULL) grv_flow_shape_box(set->shape, &pose, lower, upper);
    *n_places = 1;
    for (int a = 0; a < 3; a++) {
        double low = c->centre_min.at[a] * (double)c->grid.at[a],
               high = c->centre_max.at[a] * (double)c->grid.at[a];
        if (ceil(low) > floor(high)) low = high = round((low + high) / 2); /* a single place */
        set->first[a] = (int64_t)ceil(fmax(low, -lower[a] + 1));
        set->range[a] =
            (int64_t)floor(fmin(high, (double)c->grid.at[a] - upper[a] - 1)) - set->first[a] + 1;
        GRV_CHECK(set->range[a] >= 1, GRV_E_CONFIG,
                  "a body from %g to %g about its centre has no place for that between %g and %g "
                  "of %lld cells (axis %d), with a cell to spare on both sides",
                  lower[a], upper[a], low, high, (long long)c->grid.at[a], a);
        *n_places *= set->range[a];
    }
    return GRV_OK;
}

static grv_status draw_places(grvi_flow_set *set, grv_log *log)
{
    const grv_generate_config *const c = set->config;
    int64_t n_places = 0, *order = NULL;
    GRV_TRY(find_range(set, &n_places));
    GRV_TRY(GRVI_ALLOC(&order, n_places));
    grv_status status = grv_random_permutation((uint64_t)c->seed, PLACE_STREAM, n_places, order);
    if (status == GRV_OK) status = GRVI_ALLOC(&set->places, c->samples);
    for (int64_t i = 0; status == GRV_OK && i < c->samples; i++)
        set->places[i] = order[i % n_places];
    grv_free(order);
    if (status == GRV_OK && c->samples > n_places)
        grv_log_message(log, GRV_LOG_WARN, "only %lld places for %lld flows: some repeat",
                        (long long)n_places, (long long)c->samples);
    return status;
}

grv_status grvi_flow_set_init(const grv_generate_config *c, grv_log *log, grvi_flow_set *set)
{
    *set = (grvi_flow_set){.config = c};
    for (int a = 0; a < 3; a++)
        GRV_CHECK(c->body[0] != '\0' || fabs(c->rotation.at[a]) <= 0, GRV_E_CONFIG,
                  "rotation: a sphere cannot be turned; a body expected");
    GRV_CHECK(!c->has_exit || c->velocity.at[0] > 0, GRV_E_CONFIG,
              "exit: a velocity along x above 0 expected, %g found", c->velocity.at[0]);
    if (c->body[0] != '\0') GRV_TRY(grv_flow_shape_read(c->body, &set->shape));
    return draw_places(set, log);
}

void grvi_flow_set_fini(grvi_flow_set *set)
{
    grv_flow_shape_destroy(&set->shape);
    grv_free(set->places);
    *set = (grvi_flow_set){0};
}

grv_flow_sample_params grvi_flow_set_sample(const grvi_flow_set *set, int64_t sample)
{
    const grv_generate_config *const c = set->config;
    grv_flow_sample_params p = grv_flow_sample_params_default();
    int64_t place = set->places[sample];
    for (int a = 2; a >= 0; a--) {
        p.n[a] = c->grid.at[a];
        p.velocity[a] = c->velocity.at[a];
        p.rotation[a] = c->rotation.at[a];
        p.centre[a] = (double)(set->first[a] + place % set->range[a]);
        place /= set->range[a];
    }
    p.radius = c->radius;
    p.shape = set->shape;
    p.has_exit = c->has_exit;
    p.viscosity = c->radius / c->reynolds;
    p.n_snapshots = c->snapshots;
    p.interval = c->interval;
    p.clip = p.scale = c->clip;
    p.tolerance = c->tolerance;
    p.precision = (grv_flow_precision)c->precision;
    p.n_threads = 1;
    return p;
}

const char *grvi_flow_sample_name(int i)
{
    static const char *const names[] = {"radius",     "reynolds",   "velocity_x", "velocity_y",
                                        "velocity_z", "centre_x",   "centre_y",   "centre_z",
                                        "rotation_x", "rotation_y", "rotation_z", NULL};
    return names[i];
}

bool grvi_flow_sample_set(grv_flow_sample_params *p, const char *name, double value)
{
    const double reynolds = p->radius / p->viscosity;
    int i = 0;
    while (grvi_flow_sample_name(i) != NULL && strcmp(grvi_flow_sample_name(i), name) != 0) i++;
    switch (i) {
    case 0: /* the Reynolds number stays */
        p->radius = value;
        p->viscosity = value / reynolds;
        return true;
    case 1: p->viscosity = p->radius / value; return true;
    case 2:
    case 3:
    case 4: p->velocity[i - 2] = value; return true;
    case 5:
    case 6:
    case 7: p->centre[i - 5] = value; return true;
    case 8:
    case 9:
    case 10: p->rotation[i - 8] = value; return true;
    default: return false;
    }
}

/* ---- the body ---- */

/* Volume of a mesh on the grid, in a domain that just holds it. */
static grv_status find_grid_volume(const grv_flow_mesh *mesh, int n_threads, double *volume)
{
    const grv_flow_mesh_info info = grv_flow_mesh_info_get(mesh);
    grv_flow_params params = grv_flow_params_default();
    grv_flow *flow = NULL;
    for (int d = 0; d < 3; d++) {
        params.mesh_centre[d] = 2 + ceil(-info.lower[d]);
        params.n[d] = (int64_t)(params.mesh_centre[d] + ceil(info.upper[d]) + 2);
    }
    params.mesh = mesh;
    params.n_threads = n_threads;
    GRV_TRY(grv_flow_create(&params, &flow));
    *volume = grv_flow_body_volume(flow);
    grv_flow_destroy(&flow);
    return GRV_OK;
}

typedef struct body_figures {
    grv_flow_mesh_info info;
    grv_flow_thin thin;
    double grid_volume;
} body_figures;

static grv_status find_figures(const grv_flow_shape *shape, const grv_flow_pose *pose,
                               int n_threads, body_figures *f)
{
    grv_flow_mesh *mesh = NULL;
    GRV_TRY(grv_flow_mesh_create(shape, pose, n_threads, &mesh));
    f->info = grv_flow_mesh_info_get(mesh);
    grv_status status = grv_flow_mesh_thin_get(mesh, n_threads, &f->thin);
    if (status == GRV_OK) status = find_grid_volume(mesh, n_threads, &f->grid_volume);
    grv_flow_mesh_destroy(&mesh);
    return status;
}

static void tell_figures(const body_figures *f, const char *name, grv_log *log)
{
    const grv_flow_mesh_info *const i = &f->info;
    grv_log_message(log, GRV_LOG_INFO,
                    "body %s: %lld triangles, %.1f x %.1f x %.1f cells, volume %.4g cells, on the "
                    "grid %.4g",
                    name, (long long)i->n_triangles, i->upper[0] - i->lower[0],
                    i->upper[1] - i->lower[1], i->upper[2] - i->lower[2], i->volume,
                    f->grid_volume);
    if (i->n_open_edges > 0)
        grv_log_message(log, GRV_LOG_WARN,
                        "body %s: %lld edges are open; the winding number closes the holes", name,
                        (long long)i->n_open_edges);
    if (f->thin.n_parts > 0)
        grv_log_message(log, GRV_LOG_WARN,
                        "body %s: %lld parts, %.2g %% of the surface, are thinner than %g cells "
                        "(down to %.2g): the flow leaks through them",
                        name, (long long)f->thin.n_parts, 100 * f->thin.share, GRV_FLOW_THIN_CELLS,
                        f->thin.thinnest);
}

/* Of a data set that is continued. */
static grv_status check_same_body(const body_figures *f, const char *name, grv_dataset *data)
{
    char *text = NULL;
    grvi_json *root = NULL;
    int64_t checksum = 0;
    GRV_TRY(grv_dataset_get_attribute(data, "body", &text));
    if (text == NULL) return GRV_OK;
    grv_status status = grvi_json_parse(text, (int64_t)strlen(text), "attribute 'body'", &root);
    if (status == GRV_OK && grvi_json_as_i64(grvi_json_get(root, "checksum"), &checksum) &&
        checksum != f->info.checksum)
        status = grvi_fail(GRV_E_CONFIG, __FILE__, __LINE__, __func__,
                           "body %s: the surface that the data set was begun with expected "
                           "(checksum %lld), another found (%lld)",
                           name, (long long)checksum, (long long)f->info.checksum);
    grvi_json_free(root);
    grv_free(text);
    return status;
}

static grv_status keep_figures(const body_figures *f, const char *name, double radius,
                               grv_dataset *data)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"radius", radius},     {"volume", f->info.volume},    {"grid_volume", f->grid_volume},
        {"area", f->info.area}, {"thin_share", f->thin.share}, {"thinnest", f->thin.thinnest}};
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {{"checksum", f->info.checksum},
                  {"triangles", f->info.n_triangles},
                  {"open_edges", f->info.n_open_edges},
                  {"thin_parts", f->thin.n_parts}};
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text};
    grvi_json_begin_object(&w);
    grvi_json_key(&w, "file");
    grvi_json_string(&w, name);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        grvi_json_key(&w, counts[i].key);
        grvi_json_i64(&w, counts[i].value);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        grvi_json_key(&w, numbers[i].key);
        grvi_json_double(&w, numbers[i].value);
    }
    grvi_json_end_object(&w);
    grv_status status = grvi_text_status(&text);
    if (status == GRV_OK) status = grv_dataset_set_attribute(data, "body", text.data);
    grvi_text_fini(&text);
    return status;
}

grv_status grvi_flow_set_inspect(const grvi_flow_set *set, double radius, int n_threads,
                                 grv_log *log, grv_dataset *data)
{
    body_figures figures = {.grid_volume = 0};
    if (set->shape == NULL) return GRV_OK;
    const grv_flow_pose pose = pose_of(set->config, radius);
    const char *const name = grvi_fs_base_name(set->config->body);
    GRV_TRY(find_figures(set->shape, &pose, n_threads, &figures));
    GRV_TRY(check_same_body(&figures, name, data));
    tell_figures(&figures, name, log);
    return keep_figures(&figures, name, radius, data);
}

/* ---- the data set ---- */

grv_status grvi_flow_describe(const grv_generate_config *c, grvi_flow_description *d)
{
    static const char *const input_names[] = {"mu0_x", "mu0_y", "mu0_z"}, *const target_names[] = {
                                                                              "vorticity_z"};
    static const char *const axes[] = {"x", "y", "z", "t"};
    grv_generate_config shown = *c;
    char empty[] = "";
    *d = (grvi_flow_description){.desc = grv_dataset_desc_default()};
    grv_dataset_desc *const desc = &d->desc;
    desc->n_samples = c->samples;
    desc->input = (grv_dataset_field){.n_axes = 3, .n_channels = 3, .channel_names = input_names};
    desc->target = (grv_dataset_field){.n_axes = 4, .n_channels = 1, .channel_names = target_names};
    for (int a = 0; a < 4; a++) {
        desc->target.axis_names[a] = axes[a];
        desc->target.shape[a] = a < 3 ? c->grid.at[a] : c->snapshots;
        if (a == 3) break;
        desc->input.axis_names[a] = axes[a];
        desc->input.shape[a] = c->grid.at[a];
    }
    desc->planes_per_chunk = c->planes_per_chunk;
    desc->seed = (uint64_t)c->seed;
    desc->units = "{\"x\": \"cells\", \"y\": \"cells\", \"z\": \"cells\", \"t\": "
                  "\"radius/|velocity|\", \"vorticity_z\": \"clip\"}";
    (void)snprintf(d->normalization, sizeof d->normalization,
                   "{\"vorticity_z\": {\"clip\": %.17g, \"scale\": %.17g}}", c->clip, c->clip);
    desc->normalization = d->normalization;
    /* where it lies and how many threads made it is not what it is */
    shown.output = shown.picture = empty;
    grvi_fs_skip_folders(&shown.body);
    shown.threads = 0;
    GRV_TRY(grv_config_to_json(grv_generate_options(), &shown, &d->generator));
    desc->generator = d->generator;
    return GRV_OK;
}

void grvi_flow_description_fini(grvi_flow_description *d)
{
    grv_free(d->generator);
    d->generator = NULL;
}

grv_status grvi_simulation_seconds_add(grv_dataset *data, int64_t n, double seconds, double *mean)
{
    char *text = NULL;
    const int64_t n_new = n;
    int64_t n_old = 0;
    double mean_old = 0;
    GRV_TRY(grv_dataset_get_attribute(data, "simulation", &text));
    if (text != NULL) {
        grvi_json *root = NULL;
        const grv_status status =
            grvi_json_parse(text, (int64_t)strlen(text), "attribute 'simulation'", &root);
        if (status == GRV_OK && grvi_json_as_i64(grvi_json_get(root, "flows"), &n_old) &&
            grvi_json_as_double(grvi_json_get(root, "seconds_per_flow"), &mean_old) && n_old > 0) {
            seconds += (double)n_old * mean_old;
            n += n_old;
        }
        grvi_json_free(root);
        grv_free(text);
        GRV_TRY(status);
    }
    *mean = n > 0 ? seconds / (double)n : 0;
    if (n_new == 0) return GRV_OK;
    char attribute[128];
    (void)snprintf(attribute, sizeof attribute,
                   "{\"flows\": %lld, \"seconds_per_flow\": %.6g, \"threads\": 1}", (long long)n,
                   *mean);
    return grv_dataset_set_attribute(data, "simulation", attribute);
}
