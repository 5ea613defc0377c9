/* Small data sets and training configurations: what tests of training share. Include after store_support.h (folders, files, assert_ok). */
#ifndef GRVI_TEST_TRAIN_FIXTURE_H
#define GRVI_TEST_TRAIN_FIXTURE_H

#include <math.h>

#include "grove/dataset.h"
#include "grove/train.h"

/* static inputs [x, y, z] of two channels beside targets [x, y, z, t]; sizes that divide by little */
enum { TRAIN_NX = 8, TRAIN_NY = 6, TRAIN_NZ = 5, TRAIN_NT = 4, TRAIN_IN = 2 };
enum {
    TRAIN_INPUT = TRAIN_NX * TRAIN_NY * TRAIN_NZ * TRAIN_IN,
    TRAIN_TARGET = TRAIN_NX * TRAIN_NY * TRAIN_NZ * TRAIN_NT
};

static inline grv_dataset_desc train_data_desc(int64_t n_samples)
{
    grv_dataset_desc desc = grv_dataset_desc_default();
    desc.n_samples = n_samples;
    desc.input = (grv_dataset_field){.n_axes = 3,
                                     .axis_names = {"x", "y", "z"},
                                     .shape = {TRAIN_NX, TRAIN_NY, TRAIN_NZ},
                                     .n_channels = TRAIN_IN};
    desc.target = (grv_dataset_field){.n_axes = 4,
                                      .axis_names = {"x", "y", "z", "t"},
                                      .shape = {TRAIN_NX, TRAIN_NY, TRAIN_NZ, TRAIN_NT},
                                      .n_channels = 1};
    return desc;
}

/* A field that is easy to learn: a wave of the sample's own phase, which grows with time. */
static inline void train_sample(int64_t sample, float *input, float *target)
{
    const double phase = grv_random_uniform(11, 1, (uint64_t)sample);
    for (int64_t i = 0; i < TRAIN_NX * TRAIN_NY * TRAIN_NZ; i++) {
        const double x = (double)(i / (TRAIN_NY * TRAIN_NZ)) / TRAIN_NX,
                     y = (double)(i / TRAIN_NZ % TRAIN_NY) / TRAIN_NY;
        const double wave = sin(6.283185307179586 * (x + y + phase));
        input[TRAIN_IN * i] = (float)wave;
        input[TRAIN_IN * i + 1] =
            (float)(0.1 * grv_random_normal(11, 2, (uint64_t)(sample * TRAIN_TARGET + i)));
        for (int64_t t = 0; t < TRAIN_NT; t++)
            target[TRAIN_NT * i + t] = (float)(0.5 + wave * (1 + 0.2 * (double)t));
    }
}

/* samples [0, n_made) of a data set of n_samples */
static inline void make_train_data(const char *path, int64_t n_samples, int64_t n_made)
{
    static float input[TRAIN_INPUT], target[TRAIN_TARGET];
    const grv_dataset_desc desc = train_data_desc(n_samples);
    grv_dataset *data = NULL;
    assert_ok(grv_dataset_create(path, &desc, NULL, &data));
    for (int64_t i = 0; i < n_made; i++) {
        train_sample(i, input, target);
        assert_ok(grv_dataset_write_sample(data, i, input, target));
    }
    grv_dataset_close(&data);
}

/* one number of array "input" or "target" of a sample, past the checks of grv_dataset_write_sample */
static inline void spoil_value(const char *path, const char *name, const int64_t *index,
                               float value)
{
    const int64_t one[] = {1, 1, 1, 1, 1, 1};
    grv_store *store = open_writable(path, 1);
    grv_array *array = NULL;
    assert_ok(grv_array_open(store, name, &array));
    assert_ok(grv_array_write(array, index, one, &value, NULL));
    grv_array_close(&array);
    grv_store_close(&store);
}

static inline void set_key(grv_train_config *config, const char *key, const char *value)
{
    char text[1200];
    (void)snprintf(text, sizeof text, "%s=%s", key, value);
    assert_ok(grv_config_set(grv_train_options(), config, text));
}

/* Width 3, two blocks, six samples to train on in batches of two, two to validate on; free with grv_config_fini. */
static inline grv_train_config tiny_config(const char *data, const char *run)
{
    static const char *const settings[] = {"samples.train=6",
                                           "samples.validation=2",
                                           "samples.test=1",
                                           "epochs=2",
                                           "threads=1",
                                           "model.modes=[2, 3, 2, 2]",
                                           "model.width=3",
                                           "model.blocks=2",
                                           "model.padding=[0, 0, 0, 1]",
                                           "model.lift_hidden=2",
                                           "model.projection_hidden=4",
                                           "optimizer.lr=0.01",
                                           "checkpoint.epochs=1"};
    grv_train_config config = {0};
    assert_ok(grv_config_defaults(grv_train_options(), &config));
    set_key(&config, "data", data);
    set_key(&config, "run", run);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        assert_ok(grv_config_set(grv_train_options(), &config, settings[i]));
    return config;
}

static inline void free_config(grv_train_config *config)
{
    grv_config_fini(grv_train_options(), config);
}

/* test_folder/run/name */
static inline const char *in_run(const char *run, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", run, name);
    return in_folder(path);
}

static inline bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static inline void assert_same_files(const char *a, const char *b)
{
    static char bytes[2][1 << 20];
    const size_t n = read_file(a, bytes[0], sizeof bytes[0]),
                 m = read_file(b, bytes[1], sizeof bytes[1]);
    if (n != m || n == sizeof bytes[0] || memcmp(bytes[0], bytes[1], n) != 0)
        fail_msg("%s (%zu bytes) and %s (%zu bytes) differ", a, n, b, m);
}

/* Weights, moments and losses of two runs are the same bits. */
static inline void assert_same_runs(const char *a, const char *b)
{
    static const char *const files[] = {"checkpoint/weights.safetensors",
                                        "checkpoint/optimizer.safetensors",
                                        "best/weights.safetensors"};
    for (int i = 0; i < 3; i++) assert_same_files(in_run(a, files[i]), in_run(b, files[i]));
    grv_train_state x = grv_train_state_init(), y = grv_train_state_init();
    assert_ok(grv_checkpoint_state(in_run(a, "checkpoint"), &x));
    assert_ok(grv_checkpoint_state(in_run(b, "checkpoint"), &y));
    assert_int_equal(x.epoch, y.epoch);
    assert_int_equal(x.best_epoch, y.best_epoch);
    assert_int_equal(x.n_history, y.n_history);
    for (int64_t i = 0; i < x.n_history; i++) {
        assert_int_equal(x.history[i].step, y.history[i].step);
        assert_memory_equal(&x.history[i].train_loss, &y.history[i].train_loss, sizeof(double));
        assert_memory_equal(&x.history[i].validation_loss, &y.history[i].validation_loss,
                            sizeof(double));
        assert_memory_equal(&x.history[i].learning_rate, &y.history[i].learning_rate,
                            sizeof(double));
    }
    grv_train_state_fini(&x);
    grv_train_state_fini(&y);
}

#endif
