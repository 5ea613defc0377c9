/* What a campaign is: its keys, its parameters, its data set, one sample of it. campaign_run.c makes all of them. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/json.h"
#include "data/campaign_impl.h"
#include "data/dataset_impl.h"
#include "grove/core.h"

static const char *const methods[] = {"random", "latin_hypercube", "sobol", NULL};
static const char *const types[] = {"float32", "float64", NULL};

#define AT(field)      offsetof(grv_campaign_config, field)
#define AT_FLOW(field) AT(flow.field)
#define FIELD_OPTIONS(name, of)                                                                \
    {.key = #name ".axes",                                                                     \
     .type = GRV_OPTION_STRING_LIST,                                                           \
     .offset = AT(name.axes),                                                                  \
     .fallback = "[]",                                                                         \
     .help = "names, the split axis first, of " of},                                           \
        {.key = #name ".shape",                                                                \
         .type = GRV_OPTION_I64_LIST,                                                          \
         .offset = AT(name.shape),                                                             \
         .fallback = "[]",                                                                     \
         .min = 1,                                                                             \
         .max = 1e9,                                                                           \
         .help = "elements along each axis"},                                                  \
    {                                                                                          \
        .key = #name ".channels", .type = GRV_OPTION_STRING_LIST, .offset = AT(name.channels), \
        .fallback = "[]", .help = "names; empty: one, without a name"                          \
    }

static const grv_option options[] = {
    {.key = "output",
     .type = GRV_OPTION_STRING,
     .offset = AT(output),
     .help = "data set to make or to complete"},
    {.key = "simulator",
     .type = GRV_OPTION_STRING_LIST,
     .offset = AT(simulator),
     .fallback = "[flow]",
     .min_items = 1,
     .help = "flow, or the words of a program: [python3, solver.py, \"{velocity}\"], or C sources"},
    {.key = "function",
     .type = GRV_OPTION_STRING,
     .offset = AT(function),
     .fallback = "",
     .help = "GRV_TASK(name) in the sources; empty: the simulator is no C function"},
    {.key = "flags",
     .type = GRV_OPTION_STRING,
     .offset = AT(flags),
     .fallback = "-O2 -march=native",
     .help = "for the workers' C compiler"},
    {.key = "samples",
     .type = GRV_OPTION_I64,
     .offset = AT(samples),
     .fallback = "0",
     .min = 0,
     .max = 1e9,
     .help = "how many; 0: each combination of a grid once"},
    {.key = "seed",
     .type = GRV_OPTION_I64,
     .offset = AT(seed),
     .fallback = "1",
     .min = 0,
     .max = 9e15,
     .help = "of the parameters"},
    {.key = "sampling",
     .type = GRV_OPTION_CHOICE,
     .offset = AT(sampling),
     .fallback = "random",
     .choices = methods,
     .help = "how the points lie"},
    {.key = "parameters",
     .type = GRV_OPTION_STRING_LIST,
     .offset = AT(parameters),
     .fallback = "[]",
     .max_items = GRV_SAMPLING_MAX_PARAMETERS,
     .pairs = true,
     .help = "NAME: uniform|log_uniform LOW HIGH, normal MEAN DEVIATION, integer FIRST LAST, list "
             "WORD..., grid FIRST LAST COUNT, each WORD..."},
    GRVI_FLOW_OPTIONS("flow.", AT_FLOW),
    {.key = "files",
     .type = GRV_OPTION_STRING_LIST,
     .offset = AT(files),
     .fallback = "[]",
     .help = "that the program or function needs: linked into its folder"},
    FIELD_OPTIONS(input, "the input that a program or function makes"),
    FIELD_OPTIONS(target, "the target that a program or function makes"),
    {.key = "type",
     .type = GRV_OPTION_CHOICE,
     .offset = AT(type),
     .fallback = "float32",
     .choices = types,
     .help = "of the stored values"},
    {.key = "planes_per_chunk",
     .type = GRV_OPTION_INT,
     .offset = AT(planes_per_chunk),
     .fallback = "1",
     .min = 1,
     .max = 1024,
     .unit = "planes",
     .help = "thickness of the stored pieces"},
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

const grv_option_table *grv_campaign_options(void)
{
    return &table;
}

grv_status grvi_campaign_make_absolute(const char *what, char **path)
{
    char whole[PATH_MAX];
    GRV_CHECK(realpath(*path, whole) != NULL, GRV_E_CONFIG, "%s: %s: %s", what, *path,
              strerror(errno));
    char *copy = NULL;
    GRV_TRY(grvi_strdup(whole, &copy));
    grv_free(*path);
    *path = copy;
    return GRV_OK;
}

static grv_status copy_config(const grv_campaign_config *from, grv_campaign_config *to)
{
    char *text = NULL;
    GRV_TRY(grv_config_to_yaml(&table, from, &text));
    grv_status status = grv_config_defaults(&table, to);
    if (status == GRV_OK)
        status = grv_config_parse(&table, to, text, (int64_t)strlen(text), "the campaign");
    if (status == GRV_OK) status = grv_config_require(&table, to);
    grv_free(text);
    return status;
}

/* ---- the data set ---- */

/* What must be equal for a rerun to go on: not where things lie. */
static grv_status identity(const grvi_campaign *c, char **json)
{
    char empty[] = "";
    grv_campaign_config shown = c->config;
    const int n_paths = c->simulator == &grvi_simulator_function ? shown.simulator.n : 1;
    shown.output = empty;
    for (int i = 0; i < n_paths; i++) grvi_fs_skip_folders(&shown.simulator.at[i]);
    for (int i = 0; i < shown.files.n; i++) grvi_fs_skip_folders(&shown.files.at[i]);
    grvi_fs_skip_folders(&shown.flow.body);
    return grv_config_to_json(&table, &shown, json);
}

static grv_status parameters_attributes(const grv_sampling *s, grvi_text *out)
{
    grvi_json_writer w = {.out = out};
    grvi_json_begin_object(&w);
    grvi_json_key(&w, "names");
    grvi_json_begin_array(&w);
    for (int p = 0; p < grv_sampling_n_parameters(s); p++)
        grvi_json_string(&w, grv_sampling_name(s, p));
    grvi_json_end_array(&w);
    grvi_json_key(&w, "words");
    grvi_json_begin_object(&w);
    for (int p = 0; p < grv_sampling_n_parameters(s); p++) {
        const int n = grv_sampling_n_words(s, p);
        if (n == 0) continue;
        grvi_json_key(&w, grv_sampling_name(s, p));
        grvi_json_begin_array(&w);
        for (int i = 0; i < n; i++) grvi_json_string(&w, grv_sampling_word(s, p, i));
        grvi_json_end_array(&w);
    }
    grvi_json_end_object(&w);
    grvi_json_end_object(&w);
    return grvi_text_status(out);
}

static grv_status open_parameters(grvi_campaign *c, grv_array **array)
{
    grv_store *const store = grv_dataset_get_store(c->data);
    grv_node_kind kind = GRV_NODE_NONE;
    grvi_text attributes = {0};
    GRV_TRY(grv_store_node(store, "parameters", &kind));
    if (kind != GRV_NODE_NONE) return grv_array_open(store, "parameters", array);
    grv_array_desc desc = grv_array_desc_default();
    desc.type = GRV_STORE_F64;
    desc.rank = 2;
    desc.shape[0] = desc.chunk_shape[0] = grv_sampling_n_samples(c->sampling);
    desc.shape[1] = desc.chunk_shape[1] = grv_sampling_n_parameters(c->sampling);
    desc.dimension_names[0] = "sample";
    desc.dimension_names[1] = "parameter";
    grv_status status = parameters_attributes(c->sampling, &attributes);
    desc.attributes = attributes.data;
    if (status == GRV_OK) status = grv_array_create(store, "parameters", &desc, array);
    grvi_text_fini(&attributes);
    return status;
}

/* The array of the parameters' values, docs/formats/dataset.md. */
static grv_status write_parameters(grvi_campaign *c)
{
    const int n = grv_sampling_n_parameters(c->sampling);
    const int64_t n_samples = grv_sampling_n_samples(c->sampling), start[2] = {0, 0},
                  count[2] = {n_samples, n};
    grv_status status = GRV_OK;
    bool is_there = false;
    grv_array *array = NULL;
    double *values = NULL;
    int64_t n_values = 0;
    if (n == 0) return GRV_OK;
    GRV_CHECK(grvi_mul_i64(n_samples, n, &n_values), GRV_E_NOMEM, "%lld samples of %d parameters",
              (long long)n_samples, n);
    GRV_TRY_GOTO(open_parameters(c, &array));
    GRV_TRY_GOTO(grv_array_has_object(array, start, &is_there));
    if (is_there) goto done;
    GRV_TRY_GOTO(GRVI_ALLOC(&values, n_values));
    for (int64_t i = 0; i < n_samples; i++)
        for (int p = 0; p < n; p++) values[i * n + p] = grv_sampling_number(c->sampling, i, p);
    GRV_TRY_GOTO(grv_array_write(array, start, count, values, NULL));
done:
    grv_array_close(&array);
    grv_free(values);
    return status;
}

static grv_status open_data(grvi_campaign *c)
{
    grv_dataset_desc desc;
    char *json = NULL;
    GRV_TRY(c->simulator->describe(c, &desc));
    desc.n_samples = c->config.samples;
    desc.planes_per_chunk = c->config.planes_per_chunk;
    desc.seed = (uint64_t)c->config.seed;
    /* flows without parameters are those of `grove simulate`, which may have begun, or may complete them */
    const bool is_simulate = c->simulator == &grvi_simulator_flow && c->config.parameters.n == 0;
    grv_status status = is_simulate ? GRV_OK : identity(c, &json);
    if (!is_simulate) desc.generator = json;
    if (status == GRV_OK)
        status = (c->only_continues ? grvi_dataset_continue : grv_dataset_resume)(
            c->config.output, &desc, NULL, &c->data);
    if (status == GRV_OK && !c->only_continues) status = write_parameters(c);
    grv_free(json);
    return status;
}

static grv_status prepare(grvi_campaign *c, grv_log *log)
{
    grv_campaign_config *const config = &c->config;
    const bool is_flow = strcmp(config->simulator.at[0], "flow") == 0,
               is_function = config->function[0] != '\0';
    GRV_CHECK(config->samples > 0 || config->parameters.n > 0, GRV_E_CONFIG,
              "samples: how many are to be made? A number above 0 expected");
    GRV_TRY(grv_sampling_create((const char *const *)config->parameters.at, config->parameters.n,
                                (grv_sampling_method)config->sampling, (uint64_t)config->seed,
                                config->samples, &c->sampling));
    config->samples = grv_sampling_n_samples(c->sampling);
    c->simulator = is_function ? &grvi_simulator_function
                   : is_flow   ? &grvi_simulator_flow
                               : &grvi_simulator_program;
    GRV_CHECK(c->n_launcher == 0 || c->simulator == &grvi_simulator_program, GRV_E_CONFIG,
              "only a program can be started as several ranks: a program as simulator expected, "
              "'%s' found",
              is_function ? config->function : config->simulator.at[0]);
    GRV_TRY(c->simulator->check(c, log));
    GRV_TRY(open_data(c));
    return grvi_campaign_make_absolute("output", &config->output);
}

grv_status grvi_campaign_open(const grv_campaign_config *config, grv_log *log, grvi_campaign *c)
{
    grv_status status = copy_config(config, &c->config);
    if (status == GRV_OK) status = prepare(c, log);
    if (status != GRV_OK) grvi_campaign_close(c);
    return status;
}

void grvi_campaign_close(grvi_campaign *c)
{
    grv_dataset_close(&c->data);
    grv_sampling_destroy(&c->sampling);
    grvi_flow_set_fini(&c->flows);
    grvi_flow_description_fini(&c->picture);
    grv_config_fini(&table, &c->config);
}

/* ---- one sample ---- */

static grv_status allocate(const grv_dataset_field *f, grv_store_type type, void **values)
{
    int64_t n = f->n_channels;
    bool fits = true;
    for (int a = 0; a < f->n_axes; a++) fits = fits && grvi_mul_i64(n, f->shape[a], &n);
    GRV_CHECK(fits, GRV_E_NOMEM, "a sample is too large");
    return grvi_alloc(n, (int64_t)grv_store_type_bytes(type), values);
}

static grv_status make_sample(grvi_campaign *c, int64_t sample, const char *folder)
{
    const grv_dataset_desc *const desc = grv_dataset_get_desc(c->data);
    void *input = NULL, *target = NULL;
    grv_status status = GRV_OK;
    GRV_TRY_GOTO(allocate(&desc->input, desc->type, &input));
    GRV_TRY_GOTO(allocate(&desc->target, desc->type, &target));
    GRV_TRY_GOTO(c->simulator->make(c, sample, folder, input, target));
    GRV_TRY_GOTO(grv_dataset_write_sample(c->data, sample, input, target));
done:
    grv_free(input);
    grv_free(target);
    return status;
}

static grv_status make_empty(const char *folder)
{
    int n = 0;
    GRV_TRY(grvi_fs_make_directory(folder));
    DIR *const directory = opendir(folder);
    while (directory != NULL && readdir(directory) != NULL) n++;
    if (directory != NULL) (void)closedir(directory);
    GRV_CHECK(n <= 2, GRV_E_EXISTS,
              "%s is not empty: what an earlier try left? Delete it, or take another folder",
              folder);
    return GRV_OK;
}

grv_status grv_campaign_sample(const grv_campaign_config *config, int64_t sample, bool begins,
                               const char *folder, const char *const *launcher, int n_launcher,
                               grv_log *log)
{
    grvi_campaign c = {
        .launcher = launcher, .n_launcher = n_launcher, .only_continues = !begins};
    GRV_TRY(grvi_campaign_open(config, log, &c));
    grv_status status = GRV_OK;
    GRV_CHECK_GOTO(sample >= 0 && sample < c.config.samples, GRV_E_CONFIG,
                   "sample: 0 to %lld expected, %lld found", (long long)c.config.samples - 1,
                   (long long)sample);
    if (c.simulator != &grvi_simulator_flow) GRV_TRY_GOTO(make_empty(folder));
    GRV_TRY_GOTO(make_sample(&c, sample, folder));
done:
    grvi_campaign_close(&c);
    return status;
}
