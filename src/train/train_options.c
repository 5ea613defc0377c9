/* The keys of a training configuration, and what they say about a data set: its split and its network. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "core/check.h"
#include "grove/train.h"

static const char *const losses[] = {"relative_l2", "mse", NULL};
static const char *const activations[] = {"none", "relu", "gelu", NULL};
static const char *const coordinates[] = {"none", "periodic", "inclusive", NULL};
static const char *const norms[] = {"backward", "forward", "ortho", NULL};
static const char *const optimizers[] = {"adam", "adamw", NULL};
static const char *const schedules[] = {"constant", "step", "cosine", NULL};

#define AT(field) offsetof(grv_train_config, field)
#define COUNT(key_, field_, default_, least, ...)                                                  \
    {.key = key_, .type = GRV_OPTION_I64, .offset = AT(field_), .fallback = default_, .min = least, .max = 9e15, __VA_ARGS__}
#define NUMBER(key_, field_, default_, least, most, ...)                                           \
    {.key = key_, .type = GRV_OPTION_F64, .offset = AT(field_), .fallback = default_, .min = least, .max = most, __VA_ARGS__}
#define CHOICE(key_, field_, default_, words, ...)                                                 \
    {.key = key_, .type = GRV_OPTION_CHOICE, .offset = AT(field_), .fallback = default_, .choices = words, __VA_ARGS__}

static const grv_option options[] = {
    {.key = "data", .type = GRV_OPTION_STRING, .offset = AT(data), .help = "data set to train on"},
    {.key = "run", .type = GRV_OPTION_STRING, .offset = AT(run), .help = "run directory; made if absent"},
    COUNT("samples.train", n_train, "0", 0, .unit = "samples", .help = "for training, from the first on; 0: all that is left"),
    COUNT("samples.validation", n_validation, "0", 0, .unit = "samples", .help = "after those, to choose the best weights by"),
    COUNT("samples.test", n_test, "0", 0, .unit = "samples", .help = "at the end, never seen in training"),
    COUNT("batch", batch, "2", 1, .unit = "samples", .help = "samples of a step, over all ranks"),
    COUNT("epochs", epochs, "50", 0, .help = "passes over the training samples, of all calls together"),
    {.key = "seed", .type = GRV_OPTION_I64, .offset = AT(seed), .fallback = "1", .min = 0, .max = 9e15, .help = "of initial weights and order"},
    {.key = "shuffle", .type = GRV_OPTION_BOOL, .offset = AT(shuffle), .fallback = "true", .help = "a new order of samples every epoch"},
    {.key = "mesh.data", .type = GRV_OPTION_INT, .offset = AT(n_data), .fallback = "1", .min = 1, .max = 1e6, .unit = "ranks",
     .help = "groups of ranks that share the batch"},
    {.key = "mesh.domain", .type = GRV_OPTION_INT, .offset = AT(n_domain), .fallback = "0", .min = 0, .max = 1e6, .unit = "ranks",
     .help = "ranks that share each sample; 0: as many as there are"},
    {.key = "threads", .type = GRV_OPTION_INT, .offset = AT(threads), .fallback = "0", .min = 0, .max = 1024,
     .help = "of each rank; 0: the machine's, divided by its ranks"},
    CHOICE("loss", loss, "relative_l2", losses, .help = "mean of ||p-y||/||y||, or mean square"),
    {.key = "model.modes", .type = GRV_OPTION_I64_LIST, .offset = AT(modes), .fallback = "[5, 5, 5, 3]", .min = 1, .max = 1e9, .min_items = 1,
     .max_items = GRV_MAX_AXES, .help = "kept per axis: -m..m-1, on the last axis 0..k-1"},
    COUNT("model.width", width, "8", 1, .unit = "channels", .help = "channels inside the network"),
    {.key = "model.blocks", .type = GRV_OPTION_INT, .offset = AT(blocks), .fallback = "4", .min = 1, .max = 1000, .help = "spectral blocks"},
    {.key = "model.padding", .type = GRV_OPTION_I64_LIST, .offset = AT(padding), .fallback = "[]", .min = 0, .max = 1e9,
     .max_items = GRV_MAX_AXES, .unit = "points", .help = "zeros appended per axis; empty: none"},
    {.key = "model.padding_fraction", .type = GRV_OPTION_F64_LIST, .offset = AT(padding_fraction), .fallback = "[]", .min = 0, .max = 8,
     .max_items = GRV_MAX_AXES, .help = "the same as a fraction of the axis"},
    COUNT("model.lift_hidden", lift_hidden, "4", 0, .unit = "channels", .help = "hidden layer of the lift; 0: one linear layer"),
    COUNT("model.projection_hidden", projection_hidden, "32", 0, .unit = "channels", .help = "hidden layer of the projection; 0: none"),
    CHOICE("model.activation", activation, "relu", activations, .help = "everywhere in the network"),
    {.key = "model.activation_after_last", .type = GRV_OPTION_BOOL, .offset = AT(activation_after_last), .fallback = "true",
     .help = "also after the last block"},
    CHOICE("model.norm", norm, "backward", norms, .help = "convention of the transforms; weights and results are the same under each (docs/training.md)"),
    CHOICE("model.coordinates", coordinates, "none", coordinates, .help = "coordinate channels: i/n, or i/(n-1)"),
    CHOICE("optimizer.name", optimizer, "adam", optimizers, .help = "adam: decay in the gradient; adamw: decoupled"),
    NUMBER("optimizer.lr", lr, "1e-3", 0, 1e3, .help = "learning rate"),
    NUMBER("optimizer.beta1", beta1, "0.9", 0, 0.9999999, .help = "decay of the first moment"),
    NUMBER("optimizer.beta2", beta2, "0.999", 0, 0.9999999, .help = "decay of the second moment"),
    NUMBER("optimizer.epsilon", epsilon, "1e-8", 0, 1, .above_min = true, .help = "added to the root of the second moment"),
    NUMBER("optimizer.weight_decay", weight_decay, "0", 0, 1e3, .help = "weight decay"),
    NUMBER("optimizer.clip_norm", clip_norm, "0", 0, 1e30, .help = "largest norm of the gradient; 0: not clipped"),
    CHOICE("schedule.name", schedule, "constant", schedules, .help = "of the learning rate"),
    COUNT("schedule.period", schedule_period, "100", 1, .unit = "epochs", .help = "of 'step'"),
    NUMBER("schedule.factor", schedule_factor, "0.5", 0, 1e3, .above_min = true, .help = "of 'step'"),
    NUMBER("schedule.min_lr", schedule_min_lr, "0", 0, 1e3, .help = "end of 'cosine'"),
    COUNT("schedule.warmup", warmup_steps, "0", 0, .unit = "steps", .help = "the rate grows linearly at first"),
    COUNT("checkpoint.epochs", checkpoint_epochs, "5", 1, .unit = "epochs", .help = "between two checkpoints"),
    COUNT("patience", patience, "0", 0, .unit = "epochs", .help = "end after so many without improvement; 0: never"),
    {.key = "resume", .type = GRV_OPTION_BOOL, .offset = AT(resume), .fallback = "true", .help = "go on from the run's checkpoint, if any"},
};

static const grv_option_table table = {options, sizeof options / sizeof *options};

const grv_option_table *grv_train_options(void) { return &table; }

grv_status grv_train_split(const grv_train_config *c, int64_t n_samples, grv_split *out)
{
    const int64_t n_train = c->n_train > 0 ? c->n_train : n_samples - c->n_validation - c->n_test;
    GRV_CHECK(n_train >= 1 && n_train + c->n_validation + c->n_test <= n_samples, GRV_E_CONFIG,
              "samples: %lld training, %lld validation and %lld test samples do not fit into a data set of %lld", (long long)n_train,
              (long long)c->n_validation, (long long)c->n_test, (long long)n_samples);
    *out = (grv_split){.train = {0, n_train}, .validation = {n_train, c->n_validation}, .test = {n_samples - c->n_test, c->n_test}};
    return GRV_OK;
}

/* The data set's names; none unless all axes have one: then the network's own names stand. */
static grv_status name_axes(const char *what, const grv_dataset_field *field, grv_fno_params *out)
{
    for (int a = 0; a < field->n_axes; a++)
        if (field->axis_names[a] == NULL) return GRV_OK;
    for (int a = 0; a < field->n_axes; a++) {
        const size_t n = strlen(field->axis_names[a]);
        GRV_CHECK(n > 0 && n < GRV_AXIS_NAME_BYTES, GRV_E_CONFIG, "data '%s': axis %d: a name of 1 to %d bytes expected, '%s' found", what, a,
                  GRV_AXIS_NAME_BYTES - 1, field->axis_names[a]);
        memcpy(out->axis_names[a], field->axis_names[a], n + 1);
    }
    return GRV_OK;
}

grv_status grv_train_network(const grv_train_config *c, const grv_dataset_desc *data, grv_fno_params *out)
{
    const int d = data->target.n_axes;
    GRV_CHECK(c->modes.n == d, GRV_E_CONFIG, "model.modes: %d numbers expected, one per axis of '%s', %d found", d, c->data, c->modes.n);
    GRV_CHECK(c->padding.n == 0 || c->padding.n == d, GRV_E_CONFIG, "model.padding: %d numbers expected, %d found", d, c->padding.n);
    GRV_CHECK(c->padding_fraction.n == 0 || c->padding_fraction.n == d, GRV_E_CONFIG, "model.padding_fraction: %d numbers expected, %d found",
              d, c->padding_fraction.n);
    const bool is_static = data->input.n_axes == d - 1;
    GRV_CHECK(is_static || data->input.n_axes == d, GRV_E_CONFIG, "data '%s': an input of %d axes, or %d for a static one, expected, %d found",
              c->data, d, d - 1, data->input.n_axes);
    *out = (grv_fno_params){.n_axes = d, .width = c->width, .c_in = data->input.n_channels, .c_out = data->target.n_channels,
                            .lift_hidden = c->lift_hidden, .projection_hidden = c->projection_hidden, .n_blocks = c->blocks,
                            .activation = (grv_activation)c->activation, .activation_after_last = c->activation_after_last,
                            .coordinates = (grv_coordinates)c->coordinates, .norm = (grv_norm)c->norm, .static_input = is_static, .loss = (grv_loss)c->loss};
    GRV_TRY(name_axes(c->data, &data->target, out));
    for (int a = 0; a < data->input.n_axes; a++)
        GRV_CHECK(data->input.shape[a] == data->target.shape[a], GRV_E_CONFIG, "data '%s': axis '%s' has %lld points in the input, %lld in the target",
                  c->data, grv_fno_axis_name(out, a), (long long)data->input.shape[a], (long long)data->target.shape[a]);
    for (int a = 0; a < d; a++) {
        out->n[a] = data->target.shape[a];
        out->modes[a] = c->modes.at[a];
        out->padding[a] = c->padding.n == 0 ? 0 : c->padding.at[a];
        out->padding_fraction[a] = c->padding_fraction.n == 0 ? 0 : c->padding_fraction.at[a];
    }
    return GRV_OK;
}
