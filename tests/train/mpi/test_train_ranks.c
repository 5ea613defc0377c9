/* A run on any mesh of ranks has the bits of a run on one; its checkpoint predicts the same on any number of ranks; an error on one rank
 * ends all with the same message. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "mpi_test.h"
#include "store_support.h"
#include "train_fixture.h"

enum { N_SAMPLES = 9 };

static grv_comm *world;

static bool is_root(void)
{
    return grv_comm_rank(world) == 0;
}
static void wait_for_all(void)
{
    assert_ok(grv_comm_barrier(world));
}

/* rank 0 makes folder and data; all know where */
static int make_data(void **state)
{
    if (is_root()) {
        assert_int_equal(make_folder(state), 0);
        make_train_data(in_folder("data"), N_SAMPLES, N_SAMPLES);
    }
    assert_ok(grv_comm_broadcast(world, 0, test_folder, sizeof test_folder));
    return 0;
}

static int remove_data(void **state)
{
    wait_for_all();
    return is_root() ? remove_folder(state) : 0;
}

/* batches of four: up to four groups of ranks share one. Three validation samples do not divide. */
static grv_train_config config_of(const char *run, int n_data, int n_domain)
{
    grv_train_config config = tiny_config(in_folder("data"), in_folder(run));
    set_key(&config, "batch", "4");
    set_key(&config, "samples.train", "5");
    set_key(&config, "samples.validation", "3");
    set_key(&config, "optimizer.clip_norm", "0.1");
    set_key(&config, "optimizer.weight_decay", "0.01");
    set_key(&config, "epochs", "3");
    config.n_data = n_data;
    config.n_domain = n_domain;
    return config;
}

static void train_alone(const char *run)
{
    grv_train_config config = config_of(run, 1, 1);
    grv_train_result result;
    assert_ok(grv_train(&config, NULL, NULL, NULL, NULL, &result));
    free_config(&config);
}

/* other choices: everything whose sums or order could depend on who has what */
static void choose_otherwise(grv_train_config *config)
{
    static const char *const settings[] = {"loss=mse",
                                           "model.activation=gelu",
                                           "model.activation_after_last=false",
                                           "model.lift_hidden=0",
                                           "model.coordinates=periodic",
                                           "model.padding_fraction=0.2,0,0,0",
                                           "schedule.name=step",
                                           "schedule.period=1",
                                           "optimizer.name=adamw",
                                           "shuffle=false"};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        assert_ok(grv_config_set(grv_train_options(), config, settings[i]));
}

static void check_meshes(const char *alone, bool otherwise)
{
    const int n_ranks = grv_comm_size(world);
    char run[64];
    grv_train_result result;
    for (int n_domain = 0; n_domain <= n_ranks; n_domain++) { /* 0: the run on rank 0 alone */
        const int n_data = n_domain == 0 ? 1 : n_ranks / n_domain;
        if (n_domain > 0 && (n_ranks % n_domain != 0 || 4 % n_data != 0)) continue;
        (void)snprintf(run, sizeof run, "%s_%dx%d", alone, n_data, n_domain);
        grv_train_config config = config_of(n_domain == 0 ? alone : run, n_data, n_domain);
        if (otherwise) choose_otherwise(&config);
        config.threads = n_ranks == 1 && n_domain > 0 ? 2 : 1;
        if (n_domain > 0 || is_root())
            assert_ok(grv_train(&config, n_domain == 0 ? NULL : world, NULL, NULL, NULL, &result));
        free_config(&config);
        wait_for_all();
        if (n_domain > 0 && is_root()) assert_same_runs(alone, run);
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    check_meshes("alone", false);
    check_meshes("other", true);
}

/* any rank may ask for the stop; another number of ranks may go on */
static bool last_rank_stops(void *argument)
{
    return grv_comm_rank(world) == grv_comm_size(world) - 1 && --*(int *)argument < 0;
}

static void test_stop_and_resume(void **state)
{
    (void)state;
    int left = 2;
    grv_train_result result;
    grv_train_config config = config_of("stopped", 1, 0);
    assert_int_equal(grv_train(&config, world, NULL, last_rank_stops, &left, &result),
                     GRV_E_INTERRUPTED);
    free_config(&config);
    wait_for_all();
    if (is_root()) {
        train_alone("stopped");
        assert_same_runs("alone", "stopped");
    }
    wait_for_all();
}

/* --- predictions of a checkpoint --- */

static grv_network *load_network(const char *checkpoint, grv_comm *comm)
{
    grv_network_params p = {.batch = 1,
                            .n_data = 1,
                            .n_domain = comm == NULL ? 1 : grv_comm_size(comm),
                            .n_threads = 1};
    grv_network *network = NULL;
    assert_ok(grv_checkpoint_model(checkpoint, &p.fno, NULL));
    assert_ok(grv_network_create(&p, comm, NULL, &network));
    assert_ok(grv_checkpoint_load(checkpoint, network, NULL, NULL, comm));
    return network;
}

static void test_predictions(void **state)
{
    (void)state;
    static float input[TRAIN_INPUT], target[TRAIN_TARGET];
    char run[64];
    (void)snprintf(run, sizeof run, "alone_1x%d", grv_comm_size(world));
    grv_network *whole = load_network(in_run(run, "checkpoint"), NULL),
                *part = load_network(in_run(run, "checkpoint"), world);
    const grv_range planes = grv_network_planes(part);
    for (int64_t sample = 6; sample < N_SAMPLES; sample++) {
        train_sample(sample, input, target);
        assert_ok(grv_network_run(whole, input, NULL));
        assert_ok(grv_network_run(part, input + planes.start * (TRAIN_INPUT / TRAIN_NX), NULL));
        assert_memory_equal(grv_network_output(part),
                            grv_network_output(whole) + planes.start * (TRAIN_TARGET / TRAIN_NX),
                            sizeof(float) * (size_t)grv_network_output_count(part));
    }
    grv_network_destroy(&part);
    grv_network_destroy(&whole);
}

/* --- errors --- */

/* every rank gets the message of the rank concerned, and the checkpoint that was there stays */
static void train_fails(const char *data, const char *run, grv_status expected, int rank,
                        const char *text)
{
    char head[32];
    const bool named = grv_comm_size(world) > 1 && rank >= 0;
    grv_train_config config = config_of(run, 1, 0);
    grv_train_result result;
    set_key(&config, "data", in_folder(data));
    (void)snprintf(head, sizeof head, "rank %d: ", rank);
    assert_fails(grv_train(&config, world, NULL, NULL, NULL, &result), expected, text);
    if (named && strncmp(grv_error_message(), head, strlen(head)) != 0)
        fail_msg("\"%s\" does not start with \"%s\"", grv_error_message(), head);
    free_config(&config);
    wait_for_all();
}

/* one byte of the last stored plane: the chunk before the index of the shard (8 planes of 16 bytes, a checksum) */
static void break_last_plane(const char *path)
{
    char shard[65536];
    const size_t n = read_file(path, shard, sizeof shard);
    assert_true(n > 200 && n < sizeof shard);
    shard[n - (16 * TRAIN_NX + 4) - 8] ^= 1;
    write_file(path, shard, n);
}

static void test_error_on_one_rank(void **state)
{
    (void)state;
    const int last = grv_comm_size(world) - 1;
    const int64_t first_plane[] = {2, 0, 1, 1, 1, 0};
    if (is_root()) {
        make_train_data(in_folder("broken"), N_SAMPLES, N_SAMPLES);
        break_last_plane(in_folder("broken/target/c/1/0/0/0/0/0"));
        make_train_data(in_folder("nan"), N_SAMPLES, N_SAMPLES);
        spoil_value(in_folder("nan"), "target", first_plane, NAN);
        make_train_data(in_folder("part"), N_SAMPLES, 3);
    }
    wait_for_all();
    train_fails("broken", "broken_run", GRV_E_FORMAT, last, "sample 1: ");
    train_fails("nan", "nan_run", GRV_E_NUMERIC, 0,
                "sample 2 of 'target': NaN at x 0, y 1, z 1, t 1");
    train_fails("part", "part_run", GRV_E_NOT_FOUND, 0, "sample 3 of the data set is missing");
    train_fails("nowhere", "nowhere_run", GRV_E_NOT_FOUND, 0, "nowhere");
}

static void setting_fails(const char *key, const char *value, const char *text)
{
    grv_train_config config = config_of("settings", 1, 0);
    grv_train_result result;
    set_key(&config, key, value);
    assert_true(grv_train(&config, world, NULL, NULL, NULL, &result) < 0);
    if (strstr(grv_error_message(), text) == NULL)
        fail_msg("\"%s\" does not hold \"%s\"", grv_error_message(), text);
    free_config(&config);
}

static void test_bad_settings(void **state)
{
    (void)state;
    setting_fails("mesh.domain", "5", "mesh: data 1 x domain 5 is not the number of ranks");
    if (grv_comm_size(world) == 1) return;
    /* two magnitudes of the second axis are too few for more than two ranks; a batch of one for two groups */
    if (grv_comm_size(world) == 4) setting_fails("model.modes", "[2, 1, 2, 2]", "2");
    grv_train_config config = config_of("settings", grv_comm_size(world), 1);
    grv_train_result result;
    set_key(&config, "batch", "1");
    assert_true(grv_train(&config, world, NULL, NULL, NULL, &result) < 0);
    assert_true(grv_error_message()[0] != '\0');
    free_config(&config);
}

/* the checkpoint's folder is damaged: all ranks say so */
static void test_bad_checkpoint(void **state)
{
    (void)state;
    if (is_root()) {
        train_alone("bad");
        assert_int_equal(truncate(in_run("bad", "checkpoint/weights.safetensors"), 1000), 0);
    }
    wait_for_all();
    grv_train_config config = config_of("bad", 1, 0);
    grv_train_result result;
    config.epochs = 5;
    assert_fails(grv_train(&config, world, NULL, NULL, NULL, &result), GRV_E_FORMAT,
                 "weights.safetensors");
    free_config(&config);
    wait_for_all();
}

/* --- out of memory on one rank --- */

enum { N_POINTS = 150 };

/* that rank's allocation number n fails: all say so, all give everything back; false if the run did not get there */
static bool check_failure(grv_train_config *config, int rank, int64_t n)
{
    grv_train_result result;
    if (is_root()) assert_ok(grvi_fs_remove_tree(config->run));
    wait_for_all();
    const int64_t held = grv_memory_get().bytes;
    grv_error_clear();
    if (grv_comm_rank(world) == rank) grvi_alloc_fail_after(n);
    const grv_status status = grv_train(config, world, NULL, NULL, NULL, &result);
    grvi_alloc_fail_after(-1);
    if (status != GRV_OK &&
        (status != GRV_E_NOMEM || strstr(grv_error_message(), "out of memory") == NULL))
        fail_msg("rank %d, allocation %lld of rank %d: status %d, \"%s\"", grv_comm_rank(world),
                 (long long)n, rank, (int)status, grv_error_message());
    assert_int_equal(grv_memory_get().bytes, held);
    wait_for_all();
    assert_false(is_there(in_run("faults", "checkpoint.partial")));
    return status != GRV_OK;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    grv_train_config config = config_of("faults", 1, 0);
    grv_train_result result;
    config.epochs = 1;
    const int64_t before = grv_memory_get().n_allocations;
    assert_ok(grv_train(&config, world, NULL, NULL, NULL, &result));
    int64_t n = grv_memory_get().n_allocations - before;
    assert_ok(grv_comm_all_reduce_i64(world, GRV_REDUCE_MIN, 1, &n));
    int n_failed = 0;
    for (int64_t i = 0; i < N_POINTS; i++)
        n_failed +=
            check_failure(&config, i % 2 == 0 ? 0 : grv_comm_size(world) - 1, i * n / N_POINTS);
    assert_true(n_failed > N_POINTS * 9 / 10);
    free_config(&config);
}

int main(void)
{
    world = mpi_test_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),    cmocka_unit_test(test_stop_and_resume),
        cmocka_unit_test(test_predictions),  cmocka_unit_test(test_error_on_one_rank),
        cmocka_unit_test(test_bad_settings), cmocka_unit_test(test_bad_checkpoint),
        cmocka_unit_test(test_out_of_memory)};
    const int failed = cmocka_run_group_tests(tests, make_data, remove_data);
    return mpi_test_end(&world, failed);
}
