/* Checkpoints. The folder is written as <path>.partial, the old one becomes <path>.old, then the new one gets its name: whenever the
 * process dies, <path> or <path>.old is whole. */
#include "grove/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/json.h"
#include "grove/core.h"
#include "train/network_impl.h"

enum { STATE_VERSION = 1, MAX_STATE_BYTES = 64 << 20 };

grv_train_state grv_train_state_init(void) { return (grv_train_state){.best_loss = (double)INFINITY, .best_epoch = -1}; }

void grv_train_state_fini(grv_train_state *state)
{
    grv_free(state->history);
    *state = grv_train_state_init();
}

grv_status grv_train_state_append(grv_train_state *state, const grv_epoch *epoch)
{
    GRV_TRY(GRVI_REALLOC(&state->history, state->n_history + 1));
    state->history[state->n_history++] = *epoch;
    return GRV_OK;
}

/* --- state.json --- */

static void write_number(grvi_json_writer *w, const char *key, double value)
{
    grvi_json_key(w, key);
    grvi_json_double(w, value);
}

static void write_count(grvi_json_writer *w, const char *key, int64_t value)
{
    grvi_json_key(w, key);
    grvi_json_i64(w, value);
}

static grv_status write_state(const char *path, const grv_train_state *s, int64_t optimizer_steps)
{
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    write_count(&w, "version", STATE_VERSION);
    write_count(&w, "epoch", s->epoch);
    write_count(&w, "step_in_epoch", s->step_in_epoch);
    write_count(&w, "optimizer_steps", optimizer_steps);
    write_number(&w, "loss_sum", s->loss_sum);
    write_number(&w, "best_loss", s->best_loss);
    write_count(&w, "best_epoch", s->best_epoch);
    grvi_json_key(&w, "history");
    grvi_json_begin_array(&w);
    for (int64_t i = 0; i < s->n_history; i++) {
        const grv_epoch *const e = &s->history[i];
        grvi_json_begin_object(&w);
        write_count(&w, "epoch", e->epoch);
        write_count(&w, "step", e->step);
        write_number(&w, "learning_rate", e->learning_rate);
        write_number(&w, "train_loss", e->train_loss);
        write_number(&w, "validation_loss", e->validation_loss);
        write_number(&w, "seconds", e->seconds);
        write_number(&w, "wait_seconds", e->wait_seconds);
        grvi_json_end_object(&w);
    }
    grvi_json_end_array(&w);
    grvi_json_end_object(&w);
    grvi_text_append(&text, "\n");
    grv_status status = grvi_text_status(&text);
    if (status == GRV_OK) status = grvi_fs_write_atomic(path, text.data, text.n, true);
    grvi_text_fini(&text);
    return status;
}

/* the writer's "NaN" and "Infinity" are strings */
static grv_status read_number(const grvi_json *object, const char *key, const char *path, double *out)
{
    const grvi_json *const node = grvi_json_get(object, key);
    const char *const text = grvi_json_as_string(node);
    if (text != NULL && strcmp(text, "NaN") == 0) *out = (double)NAN;
    else if (text != NULL && strcmp(text, "Infinity") == 0) *out = (double)INFINITY;
    else GRV_CHECK(grvi_json_as_double(node, out), GRV_E_FORMAT, "%s: '%s' is no number", path, key);
    return GRV_OK;
}

static grv_status read_count(const grvi_json *object, const char *key, const char *path, int64_t *out)
{
    GRV_CHECK(grvi_json_as_i64(grvi_json_get(object, key), out), GRV_E_FORMAT, "%s: '%s' is no whole number", path, key);
    return GRV_OK;
}

static grv_status parse_epoch(const grvi_json *node, const char *path, grv_epoch *e)
{
    GRV_TRY(read_count(node, "epoch", path, &e->epoch));
    GRV_TRY(read_count(node, "step", path, &e->step));
    GRV_TRY(read_number(node, "learning_rate", path, &e->learning_rate));
    GRV_TRY(read_number(node, "train_loss", path, &e->train_loss));
    GRV_TRY(read_number(node, "validation_loss", path, &e->validation_loss));
    GRV_TRY(read_number(node, "seconds", path, &e->seconds));
    return read_number(node, "wait_seconds", path, &e->wait_seconds);
}

static grv_status parse_state(const grvi_json *root, const char *path, grv_train_state *s, int64_t *optimizer_steps)
{
    int64_t version = 0;
    GRV_TRY(read_count(root, "version", path, &version));
    GRV_CHECK(version == STATE_VERSION, GRV_E_UNSUPPORTED, "%s: version %d expected, %lld found", path, (int)STATE_VERSION, (long long)version);
    GRV_TRY(read_count(root, "epoch", path, &s->epoch));
    GRV_TRY(read_count(root, "step_in_epoch", path, &s->step_in_epoch));
    GRV_TRY(read_count(root, "optimizer_steps", path, optimizer_steps));
    GRV_TRY(read_number(root, "loss_sum", path, &s->loss_sum));
    GRV_TRY(read_number(root, "best_loss", path, &s->best_loss));
    GRV_TRY(read_count(root, "best_epoch", path, &s->best_epoch));
    GRV_CHECK(s->epoch >= 0 && s->step_in_epoch >= 0 && *optimizer_steps >= 0, GRV_E_FORMAT, "%s: negative position", path);
    const grvi_json *const history = grvi_json_get(root, "history");
    for (int64_t i = 0; i < grvi_json_length(history); i++) {
        grv_epoch epoch;
        GRV_TRY(parse_epoch(grvi_json_at(history, i), path, &epoch));
        GRV_TRY(grv_train_state_append(s, &epoch));
    }
    return GRV_OK;
}

static grv_status read_state(const char *path, grv_train_state *state, int64_t *optimizer_steps)
{
    char *text = NULL;
    int64_t n = 0;
    grvi_json *root = NULL;
    grv_train_state found = grv_train_state_init();
    GRV_TRY(grvi_fs_read(path, MAX_STATE_BYTES, &text, &n));
    grv_status status = grvi_json_parse(text, n, path, &root);
    grv_free(text);
    if (status == GRV_OK) status = parse_state(root, path, &found, optimizer_steps);
    grvi_json_free(root);
    if (status == GRV_OK && state != NULL) {
        grv_train_state_fini(state);
        *state = found;
    } else {
        grv_train_state_fini(&found);
    }
    return status;
}

/* --- tensors --- */

static grv_status declare_weights(grv_network *network, const char *extra, const char *path, grv_safetensors_writer **w, int64_t *first)
{
    char *model = NULL;
    GRV_TRY(grv_safetensors_writer_create(path, w));
    GRV_TRY(grv_fno_to_json(&network->params.fno, &model));
    grv_status status = grv_safetensors_writer_set_metadata(*w, "format", "grove 1");
    if (status == GRV_OK) status = grv_safetensors_writer_set_metadata(*w, "model", model);
    grv_free(model);
    if (status == GRV_OK && extra != NULL) status = grv_safetensors_writer_set_metadata(*w, "data", extra);
    return status == GRV_OK ? grv_network_declare(network, "", *w, first) : status;
}

static grv_status save_weights(grv_network *network, const char *extra, const char *path, bool is_root, grv_comm *comm)
{
    grv_safetensors_writer *writer = NULL;
    int64_t first = 0;
    grv_status status = is_root ? declare_weights(network, extra, path, &writer, &first) : GRV_OK;
    if (comm != NULL) status = grv_comm_agree(comm, status);
    if (status == GRV_OK) status = grv_network_write(network, network->block, writer, first);
    if (status == GRV_OK && is_root) status = grv_safetensors_writer_publish(writer, true);
    grv_safetensors_writer_destroy(&writer);
    return status;
}

static grv_status declare_moments(const grv_network *network, const char *path, grv_safetensors_writer **w, int64_t first[2])
{
    GRV_TRY(grv_safetensors_writer_create(path, w));
    GRV_TRY(grv_network_declare(network, "m.", *w, &first[0]));
    return grv_network_declare(network, "v.", *w, &first[1]);
}

static grv_status save_moments(grv_network *network, grv_optimizer *optimizer, const char *path, bool is_root, grv_comm *comm)
{
    grv_safetensors_writer *writer = NULL;
    int64_t first[2] = {0, 0};
    grv_status status = is_root ? declare_moments(network, path, &writer, first) : GRV_OK;
    if (comm != NULL) status = grv_comm_agree(comm, status);
    for (int k = 0; k < 2 && status == GRV_OK; k++) status = grv_network_write(network, grv_optimizer_moments(optimizer, k), writer, first[k]);
    if (status == GRV_OK && is_root) status = grv_safetensors_writer_publish(writer, true);
    grv_safetensors_writer_destroy(&writer);
    return status;
}

/* --- the folder --- */

typedef struct folder_paths {
    grvi_text partial, old, weights, optimizer, state;
} folder_paths;

static grv_status folder_paths_init(folder_paths *p, const char *path, const char *inside)
{
    *p = (folder_paths){0};
    grvi_text_printf(&p->partial, "%s.partial", path);
    grvi_text_printf(&p->old, "%s.old", path);
    grvi_text_printf(&p->weights, "%s/weights.safetensors", inside == NULL ? p->partial.data : inside);
    grvi_text_printf(&p->optimizer, "%s/optimizer.safetensors", inside == NULL ? p->partial.data : inside);
    grvi_text_printf(&p->state, "%s/state.json", inside == NULL ? p->partial.data : inside);
    GRV_TRY(grvi_text_status(&p->partial));
    GRV_TRY(grvi_text_status(&p->old));
    GRV_TRY(grvi_text_status(&p->weights));
    GRV_TRY(grvi_text_status(&p->optimizer));
    return grvi_text_status(&p->state);
}

static void folder_paths_fini(folder_paths *p)
{
    grvi_text_fini(&p->partial);
    grvi_text_fini(&p->old);
    grvi_text_fini(&p->weights);
    grvi_text_fini(&p->optimizer);
    grvi_text_fini(&p->state);
}

static grv_status publish(const char *path, const folder_paths *p)
{
    if (grvi_fs_exists(path)) { /* else <path>.old may be the only whole one */
        GRV_TRY(grvi_fs_remove_tree(p->old.data));
        GRV_TRY(grvi_fs_rename(path, p->old.data));
    }
    GRV_TRY(grvi_fs_rename(p->partial.data, path));
    return grvi_fs_remove_tree(p->old.data);
}

/* what a failed save wrote aside; the first failure is the one to tell */
static void remove_partial(const folder_paths *p, grv_status status)
{
    char message[1024];
    (void)snprintf(message, sizeof message, "%s", grv_error_message());
    if (p->partial.data != NULL && grvi_fs_remove_tree(p->partial.data) != GRV_OK) (void)grvi_fail_from(status, message);
}

static grv_status prepare(const folder_paths *p)
{
    GRV_TRY(grvi_fs_remove_tree(p->partial.data));
    return grvi_fs_make_directory(p->partial.data);
}

grv_status grv_checkpoint_save(const char *path, grv_network *network, grv_optimizer *optimizer, const grv_train_state *state, const char *extra,
                               grv_comm *comm)
{
    const bool is_root = comm == NULL || grv_comm_rank(comm) == 0;
    folder_paths p;
    grv_status status = folder_paths_init(&p, path, NULL);
    if (status == GRV_OK && is_root) status = prepare(&p);
    if (comm != NULL) status = grv_comm_agree(comm, status);
    if (status == GRV_OK) status = save_weights(network, extra, p.weights.data, is_root, comm);
    if (comm != NULL) status = grv_comm_agree(comm, status);
    if (status == GRV_OK && optimizer != NULL) {
        status = save_moments(network, optimizer, p.optimizer.data, is_root, comm);
        if (comm != NULL) status = grv_comm_agree(comm, status);
    }
    if (status == GRV_OK && is_root) {
        status = write_state(p.state.data, state, optimizer == NULL ? 0 : grv_optimizer_count(optimizer));
        if (status == GRV_OK) status = publish(path, &p);
    }
    if (status != GRV_OK && is_root) remove_partial(&p, status);
    folder_paths_fini(&p);
    return comm == NULL ? status : grv_comm_agree(comm, status);
}

/* the folder, or the older one if the run died between two renames */
static grv_status find_folder(const char *path, grvi_text *out)
{
    grvi_text_printf(out, "%s", path);
    if (!grvi_fs_is_directory(path)) {
        grvi_text_append(out, ".old");
        GRV_TRY(grvi_text_status(out));
        GRV_CHECK(grvi_fs_is_directory(out->data), GRV_E_NOT_FOUND, "checkpoint %s does not exist (a run has RUN/best and RUN/checkpoint)", path);
    }
    return grvi_text_status(out);
}

bool grv_checkpoint_exists(const char *path)
{
    grvi_text folder = {0};
    const bool exists = find_folder(path, &folder) == GRV_OK;
    grvi_text_fini(&folder);
    return exists;
}

static grv_status load_local(const folder_paths *p, grv_network *network, grv_optimizer *optimizer, grv_train_state *state)
{
    grv_safetensors *file = NULL;
    int64_t steps = 0;
    GRV_TRY(grv_safetensors_open(p->weights.data, &file));
    grv_status status = grv_network_read(network, file, "", network->block);
    grv_safetensors_close(&file);
    GRV_TRY(status);
    if (optimizer != NULL) {
        GRV_TRY(grv_safetensors_open(p->optimizer.data, &file));
        status = grv_network_read(network, file, "m.", grv_optimizer_moments(optimizer, 0));
        if (status == GRV_OK) status = grv_network_read(network, file, "v.", grv_optimizer_moments(optimizer, 1));
        grv_safetensors_close(&file);
        GRV_TRY(status);
    }
    if (optimizer != NULL || state != NULL) GRV_TRY(read_state(p->state.data, state, &steps));
    if (optimizer != NULL) grv_optimizer_set_count(optimizer, steps);
    return GRV_OK;
}

grv_status grv_checkpoint_load(const char *path, grv_network *network, grv_optimizer *optimizer, grv_train_state *state, grv_comm *comm)
{
    grvi_text folder = {0};
    folder_paths p = {0};
    grv_status status = find_folder(path, &folder);
    if (status == GRV_OK) status = folder_paths_init(&p, path, folder.data);
    if (status == GRV_OK) status = load_local(&p, network, optimizer, state);
    folder_paths_fini(&p);
    grvi_text_fini(&folder);
    return comm == NULL ? status : grv_comm_agree(comm, status);
}

static grv_status read_model(const char *weights, grv_fno_params *params, char **extra)
{
    grv_safetensors *file = NULL;
    GRV_TRY(grv_safetensors_open(weights, &file));
    const char *const model = grv_safetensors_metadata(file, "model"), *const data = grv_safetensors_metadata(file, "data");
    grv_status status = GRV_OK;
    GRV_CHECK_GOTO(model != NULL, GRV_E_FORMAT, "%s: metadata 'model' is missing: these are not weights of a grove network", weights);
    GRV_TRY_GOTO(grv_fno_from_json(model, weights, params));
    if (extra != NULL && data != NULL) GRV_TRY_GOTO(grvi_strdup(data, extra));
done:
    grv_safetensors_close(&file);
    return status;
}

grv_status grv_checkpoint_model(const char *path, grv_fno_params *params, char **extra)
{
    grvi_text folder = {0};
    folder_paths p = {0};
    if (extra != NULL) *extra = NULL;
    grv_status status = find_folder(path, &folder);
    if (status == GRV_OK) status = folder_paths_init(&p, path, folder.data);
    if (status == GRV_OK) status = read_model(p.weights.data, params, extra);
    folder_paths_fini(&p);
    grvi_text_fini(&folder);
    return status;
}

grv_status grv_checkpoint_state(const char *path, grv_train_state *state)
{
    grvi_text folder = {0};
    folder_paths p = {0};
    int64_t steps = 0;
    grv_status status = find_folder(path, &folder);
    if (status == GRV_OK) status = folder_paths_init(&p, path, folder.data);
    if (status == GRV_OK) status = read_state(p.state.data, state, &steps);
    folder_paths_fini(&p);
    grvi_text_fini(&folder);
    return status;
}
