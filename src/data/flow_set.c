/* The flows of a data set. */
#include "data/flow_set.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "grove/core.h"

enum { PLACE_STREAM = 1 };

const char *const grvi_flow_precisions[] = {"float32", "float64", NULL};

grv_status grvi_flow_set_init(const grv_generate_config *c, grv_log *log, grvi_flow_set *set)
{
    int64_t n_places = 1, *order = NULL;
    *set = (grvi_flow_set){.config = c};
    for (int a = 0; a < 3; a++) {
        const double low = c->centre_min.at[a] * (double)c->grid.at[a],
                     high = c->centre_max.at[a] * (double)c->grid.at[a];
        /* a cell to spare on both sides */
        set->first[a] = (int64_t)ceil(fmax(low, c->radius + 1));
        set->range[a] =
            (int64_t)floor(fmin(high, (double)c->grid.at[a] - c->radius - 1)) - set->first[a] + 1;
        GRV_CHECK(set->range[a] >= 1, GRV_E_CONFIG,
                  "a sphere of radius %g has no place between %g and %g of %lld cells (axis %d)",
                  c->radius, low, high, (long long)c->grid.at[a], a);
        n_places *= set->range[a];
    }
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

void grvi_flow_set_fini(grvi_flow_set *set)
{
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
        p.centre[a] = (double)(set->first[a] + place % set->range[a]);
        place /= set->range[a];
    }
    p.radius = c->radius;
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
    static const char *const names[] = {"radius",     "reynolds",   "velocity_x",
                                        "velocity_y", "velocity_z", "centre_x",
                                        "centre_y",   "centre_z",   NULL};
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
    default: return false;
    }
}

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
    shown.output = empty;
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
