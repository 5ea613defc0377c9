/* The flows of a data set: where their bodies are, what each simulation is given, what the data set looks like. Shared by `grove simulate`,
 * which makes them in one process, and by campaigns. Internal. */
#ifndef GRVI_DATA_FLOW_SET_H
#define GRVI_DATA_FLOW_SET_H

#include "core/check.h"
#include "grove/dataset.h"
#include "grove/generate.h"

extern const char *const grvi_flow_precisions[];

/* The keys that say what is simulated, for an option table: prefix "" or "flow.", at(field) the offset of a field of grv_generate_config. */
#define GRVI_FLOW_OPTIONS(prefix, at) \
    {.key = prefix "grid", .type = GRV_OPTION_I64_LIST, .offset = at(grid), .fallback = "[32, 32, 32]", .min = 8, .max = 1e5, .min_items = 3, \
     .max_items = 3, .unit = "cells", .help = "in x, y, z"}, \
    {.key = prefix "radius", .type = GRV_OPTION_F64, .offset = at(radius), .fallback = "3", .min = 0.5, .max = 1e5, .unit = "cells", \
     .help = "of the sphere; of a body half its longest side, before it is turned"}, \
    {.key = prefix "body", .type = GRV_OPTION_STRING, .offset = at(body), .fallback = "", \
     .help = "mesh file (STL, OBJ, VTK; also .gz) of a body in place of the sphere"}, \
    {.key = prefix "rotation", .type = GRV_OPTION_F64_LIST, .offset = at(rotation), .fallback = "[0, 0, 0]", .min = -360, .max = 360, .min_items = 3, \
     .max_items = 3, .unit = "degrees", .help = "of the body about x, then y, then z"}, \
    {.key = prefix "velocity", .type = GRV_OPTION_F64_LIST, .offset = at(velocity), .fallback = "[1, 0.5, 0]", .min = -10, .max = 10, .min_items = 3, \
     .max_items = 3, .help = "on the whole boundary"}, \
    {.key = prefix "exit", .type = GRV_OPTION_BOOL, .offset = at(has_exit), .fallback = "false", .help = "the upper x face lets the flow out"}, \
    {.key = prefix "reynolds", .type = GRV_OPTION_F64, .offset = at(reynolds), .fallback = "200", .min = 0.01, .max = 1e7, \
     .help = "radius / viscosity: of unit velocity"}, \
    {.key = prefix "centre.min", .type = GRV_OPTION_F64_LIST, .offset = at(centre_min), .fallback = "[0.15, 0.15, 0.15]", .min = 0, .max = 1, \
     .min_items = 3, .max_items = 3, .help = "lowest place, as a fraction of the grid"}, \
    {.key = prefix "centre.max", .type = GRV_OPTION_F64_LIST, .offset = at(centre_max), .fallback = "[0.4, 0.85, 0.85]", .min = 0, .max = 1, \
     .min_items = 3, .max_items = 3, .help = "highest place"}, \
    {.key = prefix "snapshots", .type = GRV_OPTION_I64, .offset = at(snapshots), .fallback = "16", .min = 1, .max = 1e6, .help = "times stored"}, \
    {.key = prefix "interval", .type = GRV_OPTION_F64, .offset = at(interval), .fallback = "1", .min = 0, .max = 1e6, .above_min = true, \
     .unit = "radius/|velocity|", .help = "between two of them"}, \
    {.key = prefix "clip", .type = GRV_OPTION_F64, .offset = at(clip), .fallback = "0.3", .min = 0, .max = 1e6, .above_min = true, \
     .help = "vorticity is clipped to +-clip and divided by it"}, \
    {.key = prefix "tolerance", .type = GRV_OPTION_F64, .offset = at(tolerance), .fallback = "1e-3", .min = 0, .max = 0.5, .above_min = true, \
     .help = "of the pressure: divergence after / before"}, \
    {.key = prefix "precision", .type = GRV_OPTION_CHOICE, .offset = at(precision), .fallback = "float32", .choices = grvi_flow_precisions, .help = "of the solver"}

typedef struct grvi_flow_set {
    const grv_generate_config *config; /* borrowed */
    grv_flow_shape *shape;             /* NULL: a sphere */
    int64_t range[3], first[3];        /* places on the grid of cells */
    int64_t *places;                   /* [samples] numbers of places, all different where there are enough */
} grvi_flow_set;

/* Reads the body, draws the places. GRV_E_CONFIG if there are none; errors of grv_flow_shape_read. */
grv_status grvi_flow_set_init(const grv_generate_config *config, grv_log *log, grvi_flow_set *set) GRV_MUST_CHECK;
void grvi_flow_set_fini(grvi_flow_set *set);
/* What simulation `sample` is given: a function of the configuration and the sample only. */
grv_flow_sample_params grvi_flow_set_sample(const grvi_flow_set *set, int64_t sample);
/* Looks at the body, if it is not a sphere, at the size `radius`: refuses what encloses nothing, warns of holes and of parts that are too thin for the grid, and
 * keeps the figures in the data set (attribute "body", docs/formats/dataset.md). */
grv_status grvi_flow_set_inspect(const grvi_flow_set *set, double radius, int n_threads, grv_log *log, grv_dataset *data) GRV_MUST_CHECK;
/* Changes one of its numbers: "radius", "reynolds", "velocity_x" ..., "rotation_z"; false if there is no such name. */
bool grvi_flow_sample_set(grv_flow_sample_params *params, const char *name, double value);
/* The name of number i; NULL behind the last. */
const char *grvi_flow_sample_name(int i);

/* What the data set of these flows is. It stays where it is: desc points into it. */
typedef struct grvi_flow_description {
    grv_dataset_desc desc;
    char *generator;
    char normalization[96];
} grvi_flow_description;
grv_status grvi_flow_describe(const grv_generate_config *config, grvi_flow_description *description) GRV_MUST_CHECK;
void grvi_flow_description_fini(grvi_flow_description *description);

/* Takes n more simulations of so many seconds in all into the mean that the data set keeps (attribute "simulation"). */
grv_status grvi_simulation_seconds_add(grv_dataset *data, int64_t n, double seconds, double *mean) GRV_MUST_CHECK;

#endif
