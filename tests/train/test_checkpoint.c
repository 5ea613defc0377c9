/* Checkpoints by themselves: what is saved is loaded, bit for bit; what does not fit says so. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "grove/checkpoint.h"
#include "store_support.h"

static grv_network *make_network(int64_t width, uint64_t seed)
{
    grv_network_params p = {.fno = grv_fno_params_default(),
                            .batch = 1,
                            .n_data = 1,
                            .n_domain = 1,
                            .n_threads = 1,
                            .gradients = true,
                            .loss = true};
    p.fno.n_axes = 2;
    p.fno.n[0] = 7;
    p.fno.n[1] = 6;
    p.fno.modes[0] = p.fno.modes[1] = 2;
    p.fno.padding_fraction[1] = 0.3;
    p.fno.width = width;
    p.fno.n_blocks = 2;
    p.fno.activation = GRV_ACTIVATION_GELU;
    p.fno.coordinates = GRV_COORDINATES_INCLUSIVE;
    p.fno.norm = GRV_NORM_ORTHO;
    (void)snprintf(p.fno.axis_names[0], GRV_AXIS_NAME_BYTES, "height");
    (void)snprintf(p.fno.axis_names[1], GRV_AXIS_NAME_BYTES, "time");
    grv_network *network = NULL;
    assert_ok(grv_network_create(&p, NULL, NULL, &network));
    assert_ok(grv_network_initialise(network, seed));
    return network;
}

static size_t parameter_bytes(const grv_network *n)
{
    return sizeof(float) * (size_t)grv_plan_summarise(grv_network_plan(n)).param_count;
}

static grv_optimizer *make_optimizer(grv_network *network)
{
    const grv_optimizer_params params = grv_optimizer_params_default();
    grv_optimizer *optimizer = NULL;
    assert_ok(grv_optimizer_create(&params, network, NULL, &optimizer));
    return optimizer;
}

/* numbers that need all their digits, and some that are not numbers */
static grv_train_state make_state(void)
{
    grv_train_state state = grv_train_state_init();
    for (int64_t i = 0; i < 3; i++) {
        const grv_epoch epoch = {.epoch = i,
                                 .step = 7 * i,
                                 .learning_rate = 0.1 / 3,
                                 .train_loss = 1.0 / (double)(3 + i),
                                 .validation_loss = i == 1 ? (double)NAN : sqrt(2),
                                 .seconds = 1e-9,
                                 .wait_seconds = 1e9 / 7};
        assert_ok(grv_train_state_append(&state, &epoch));
    }
    state.epoch = 3;
    state.step_in_epoch = 5;
    state.loss_sum = 0.1 + 0.2;
    return state;
}

static void test_round_trip(void **state)
{
    (void)state;
    grv_network *saved = make_network(3, 1), *loaded = make_network(3, 2);
    grv_optimizer *optimizers[2] = {make_optimizer(saved), make_optimizer(loaded)};
    grv_train_state out = make_state(), in = grv_train_state_init();
    const size_t bytes = parameter_bytes(saved);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < bytes / sizeof(float); i++)
            grv_optimizer_moments(optimizers[0], k)[i] =
                (float)grv_random_normal(3, (uint64_t)k, i);
    grv_optimizer_set_count(optimizers[0], 19);
    /* twice: the second replaces the first */
    for (int i = 0; i < 2; i++)
        assert_ok(grv_checkpoint_save(in_folder("full"), saved, optimizers[0], &out, NULL, NULL));
    assert_ok(grv_checkpoint_load(in_folder("full"), loaded, optimizers[1], &in, NULL));
    assert_memory_equal(grv_network_parameters(loaded), grv_network_parameters(saved), bytes);
    for (int k = 0; k < 2; k++)
        assert_memory_equal(grv_optimizer_moments(optimizers[1], k),
                            grv_optimizer_moments(optimizers[0], k), bytes);
    assert_int_equal(grv_optimizer_count(optimizers[1]), 19);
    assert_int_equal(in.epoch, 3);
    assert_int_equal(in.step_in_epoch, 5);
    assert_int_equal(in.best_epoch, -1);
    assert_true(isinf(in.best_loss));
    assert_memory_equal(&in.loss_sum, &out.loss_sum, sizeof(double));
    assert_int_equal(in.n_history, 3);
    assert_true(isnan(in.history[1].validation_loss));
    in.history[1].validation_loss = out.history[1].validation_loss = 0;
    assert_memory_equal(in.history, out.history, 3 * sizeof *in.history);
    grv_train_state_fini(&in);
    grv_train_state_fini(&out);
    for (int k = 0; k < 2; k++) grv_optimizer_destroy(&optimizers[k]);
    grv_network_destroy(&saved);
    grv_network_destroy(&loaded);
}

/* weights alone, the network that they are of, and what a prediction needs to know */
static void test_model(void **state)
{
    (void)state;
    grv_network *network = make_network(3, 1);
    grv_train_state position = grv_train_state_init();
    grv_fno_params model;
    char *extra = NULL, *expected = NULL, *found = NULL;
    assert_ok(grv_checkpoint_save(in_folder("weights"), network, NULL, &position, "{\"scale\": 2}",
                                  NULL));
    assert_ok(grv_checkpoint_model(in_folder("weights"), &model, &extra));
    assert_string_equal(extra, "{\"scale\": 2}");
    grv_free(extra);
    assert_int_equal(model.n_axes, 2);
    assert_int_equal(model.width, 3);
    assert_int_equal(model.activation, GRV_ACTIVATION_GELU);
    assert_int_equal(model.coordinates, GRV_COORDINATES_INCLUSIVE);
    assert_int_equal(model.norm, GRV_NORM_ORTHO);
    assert_string_equal(model.axis_names[0], "height");
    assert_string_equal(model.axis_names[1], "time");
    assert_ok(grv_fno_to_json(&model, &expected));
    assert_ok(grv_checkpoint_save(in_folder("weights"), network, NULL, &position, NULL, NULL));
    assert_ok(grv_checkpoint_model(in_folder("weights"), &model, &extra));
    assert_null(extra);
    assert_ok(grv_fno_to_json(&model, &found));
    assert_string_equal(found, expected);
    grv_free(expected);
    grv_free(found);
    assert_int_not_equal(access(in_folder("weights/optimizer.safetensors"), F_OK), 0);
    grv_optimizer *optimizer = make_optimizer(network);
    assert_fails(grv_checkpoint_load(in_folder("weights"), network, optimizer, NULL, NULL),
                 GRV_E_NOT_FOUND, "optimizer.safetensors");
    grv_optimizer_destroy(&optimizer);
    grv_network_destroy(&network);
}

static void test_does_not_fit(void **state)
{
    (void)state;
    grv_network *wider = make_network(4, 1);
    grv_train_state position = grv_train_state_init();
    grv_fno_params model;
    assert_fails(grv_checkpoint_load(in_folder("full"), wider, NULL, NULL, NULL), GRV_E_SHAPE,
                 "F32 [");
    assert_fails(grv_checkpoint_load(in_folder("nothing"), wider, NULL, NULL, NULL),
                 GRV_E_NOT_FOUND, "nothing does not exist");
    assert_fails(grv_checkpoint_state(in_folder("nothing"), &position), GRV_E_NOT_FOUND, "nothing");
    assert_fails(grv_checkpoint_model(in_folder("nothing"), &model, NULL), GRV_E_NOT_FOUND,
                 "nothing");
    assert_false(grv_checkpoint_exists(in_folder("nothing")));
    /* a file in the way: what is there stays, nothing is left beside it */
    write_file(in_folder("file"), "x", 1);
    assert_true(
        grv_checkpoint_save(in_folder("file/checkpoint"), wider, NULL, &position, NULL, NULL) < 0);
    assert_non_null(strstr(grv_error_message(), "file/checkpoint.partial"));
    grv_network_destroy(&wider);
    assert_int_equal(grv_memory_get().bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_model),
                                       cmocka_unit_test(test_does_not_fit)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
