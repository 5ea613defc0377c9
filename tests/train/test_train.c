/* Training runs on one rank: learning, files, stopping and resuming bit for bit, and what bad data or settings lead to. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_support.h"
#include "train_fixture.h"

enum { N_SAMPLES = 9 };

static int make_data(void **state)
{
    if (make_folder(state) != 0) return 1;
    make_train_data(in_folder("data"), N_SAMPLES, N_SAMPLES);
    return 0;
}

static int64_t held_before;

static int note_memory(void **state)
{
    (void)state;
    held_before = grv_memory_get().bytes;
    return 0;
}

static int check_memory(void **state)
{
    const int64_t kept = grv_memory_get().bytes - held_before;
    (void)state;
    if (kept != 0) print_error("%lld bytes were not given back\n", (long long)kept);
    return kept != 0;
}

static grv_train_config config_of(const char *run)
{
    return tiny_config(in_folder("data"), in_folder(run));
}

static grv_train_result train_ok(grv_train_config *config)
{
    grv_train_result result;
    assert_ok(grv_train(config, NULL, NULL, NULL, NULL, &result));
    free_config(config);
    return result;
}

/* the run fails so; the configuration is freed */
static void train_fails(grv_train_config *config, grv_status expected, const char *text)
{
    grv_train_result result;
    assert_fails(grv_train(config, NULL, NULL, NULL, NULL, &result), expected, text);
    free_config(config);
}

static void test_learns(void **state)
{
    (void)state;
    grv_train_config config = config_of("learns");
    config.epochs = 40;
    config.checkpoint_epochs = 40;
    const grv_train_result result = train_ok(&config);
    grv_train_state history = grv_train_state_init();
    assert_ok(grv_checkpoint_state(in_run("learns", "checkpoint"), &history));
    assert_int_equal(result.epochs, 40);
    assert_int_equal(history.n_history, 40);
    assert_true(history.history[0].train_loss > 0.5);
    if (!(result.train_loss < 0.3 * history.history[0].train_loss && result.validation_loss < 0.5))
        fail_msg("training loss from %g to %g, validation %g", history.history[0].train_loss,
                 result.train_loss, result.validation_loss);
    assert_memory_equal(&history.history[39].train_loss, &result.train_loss, sizeof(double));
    grv_train_state_fini(&history);
}

/* --- files --- */

static void count_lines(const char *path, const char *needle, int *n_lines, int *n_found)
{
    char line[4096];
    FILE *const f = fopen(path, "r");
    assert_non_null(f);
    *n_lines = *n_found = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        assert_int_equal(line[strlen(line) - 1], '\n');
        ++*n_lines;
        *n_found += strstr(line, needle) != NULL;
    }
    assert_int_equal(fclose(f), 0);
}

/* the row of an epoch says what the checkpoint's history says */
static void check_metrics(const char *run)
{
    char line[512];
    grv_train_state history = grv_train_state_init();
    assert_ok(grv_checkpoint_state(in_run(run, "checkpoint"), &history));
    FILE *const f = fopen(in_run(run, "metrics.csv"), "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(
        line, "epoch,step,learning_rate,train_loss,validation_loss,seconds,wait_seconds\n");
    for (int64_t i = 0; i < history.n_history; i++) {
        double rate = 0, train = 0, validation = 0, seconds = 0, wait = 0;
        long long epoch = 0, step = 0;
        assert_non_null(fgets(line, sizeof line, f));
        assert_int_equal(sscanf(line, "%lld,%lld,%lf,%lf,%lf,%lf,%lf", &epoch, &step, &rate, &train,
                                &validation, &seconds, &wait),
                         7);
        assert_int_equal(epoch, i + 1);
        assert_int_equal(step, 3 * (i + 1));
        assert_true(rate > 0.0099 && rate < 0.0101);
        assert_memory_equal(&train, &history.history[i].train_loss, sizeof train);
        assert_memory_equal(&validation, &history.history[i].validation_loss, sizeof validation);
        assert_true(seconds > 0 && wait >= 0 && wait <= seconds);
    }
    assert_null(fgets(line, sizeof line, f));
    assert_int_equal(fclose(f), 0);
    grv_train_state_fini(&history);
}

static void test_files(void **state)
{
    (void)state;
    int n_lines = 0, n_found = 0;
    grv_log *log = NULL;
    grv_log_params quiet = grv_log_params_default();
    quiet.stream = fopen("/dev/null", "w");
    assert_non_null(quiet.stream);
    assert_ok(grv_log_create(&quiet, &log));
    grv_train_config config = config_of("files"), read = {0};
    grv_train_result result;
    assert_ok(grv_train(&config, NULL, log, NULL, NULL, &result));
    /* once more, further: rows are appended, not repeated */
    config.epochs = 3;
    assert_ok(grv_train(&config, NULL, log, NULL, NULL, &result));
    assert_int_equal(result.epochs, 3);
    check_metrics("files");
    count_lines(in_run("files", "log.jsonl"), "\"event\":\"epoch\"", &n_lines, &n_found);
    if (n_found == 0)
        count_lines(in_run("files", "log.jsonl"), "\"event\": \"epoch\"", &n_lines, &n_found);
    assert_int_equal(n_found, 3);
    assert_true(n_lines > n_found);
    count_lines(in_run("files", "plan.txt"), "spectral", &n_lines, &n_found);
    assert_true(n_found >= 2);
    /* config.yaml gives the same configuration again */
    assert_ok(grv_config_defaults(grv_train_options(), &read));
    assert_ok(grv_config_load(grv_train_options(), &read, in_run("files", "config.yaml")));
    char *expected = NULL, *found = NULL;
    assert_ok(grv_config_to_json(grv_train_options(), &config, &expected));
    assert_ok(grv_config_to_json(grv_train_options(), &read, &found));
    assert_string_equal(found, expected);
    grv_free(expected);
    grv_free(found);
    static const char *const files[] = {"trace.json",
                                        "checkpoint/weights.safetensors",
                                        "checkpoint/optimizer.safetensors",
                                        "checkpoint/state.json",
                                        "best/weights.safetensors",
                                        "best/state.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_true(is_there(in_run("files", files[i])));
    static const char *const absent[] = {"checkpoint.partial", "checkpoint.old", "best.partial",
                                         "best.old", "best/optimizer.safetensors"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_false(is_there(in_run("files", absent[i])));
    free_config(&config);
    free_config(&read);
    grv_log_destroy(&log);
    assert_int_equal(fclose(quiet.stream), 0);
}

/* --- stopping and resuming --- */

/* a counter that runs out */
static bool stop_after(void *argument)
{
    return --*(int *)argument < 0;
}

/* a run of 4 epochs with everything that a resumed run must remember */
static grv_train_config long_config(const char *run)
{
    grv_train_config config = config_of(run);
    set_key(&config, "epochs", "4");
    set_key(&config, "schedule.name", "cosine");
    set_key(&config, "schedule.warmup", "3");
    set_key(&config, "optimizer.name", "adamw");
    set_key(&config, "optimizer.weight_decay", "0.01");
    set_key(&config, "optimizer.clip_norm", "0.5");
    return config;
}

/* trains in calls of n_steps steps each; returns their number */
static int train_in_pieces(const char *run, int n_steps)
{
    for (int calls = 1;; calls++) {
        assert_true(calls < 100);
        grv_train_config config = long_config(run);
        grv_train_result result;
        int left = n_steps;
        const grv_status status = grv_train(&config, NULL, NULL, stop_after, &left, &result);
        free_config(&config);
        if (status == GRV_OK) return calls;
        if (status != GRV_E_INTERRUPTED ||
            strstr(grv_error_message(), "run it again to go on") == NULL)
            fail_msg("%s", grv_error_trace());
    }
}

static void test_stop_and_resume(void **state)
{
    (void)state;
    grv_train_config config = long_config("whole");
    (void)train_ok(&config);
    /* 12 steps: borders inside epochs, at their ends, and after every single step */
    static const struct {
        const char *run;
        int n_steps, n_calls;
    } cases[] = {{"pieces5", 5, 3}, {"pieces3", 3, 4}, {"pieces1", 1, 12}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(train_in_pieces(cases[i].run, cases[i].n_steps), cases[i].n_calls);
        assert_same_runs("whole", cases[i].run);
    }
}

static void test_more_epochs(void **state)
{
    (void)state;
    grv_train_config config = config_of("straight");
    config.epochs = 4;
    (void)train_ok(&config);
    for (int epochs = 1; epochs <= 4; epochs++) {
        config = config_of("steps");
        config.epochs = epochs;
        assert_int_equal(train_ok(&config).epochs, epochs);
    }
    assert_same_runs("straight", "steps");
    /* nothing left to do, and nothing done */
    config = config_of("steps");
    config.epochs = 3;
    assert_int_equal(train_ok(&config).epochs, 4);
    assert_same_runs("straight", "steps");
}

/* killed between two renames, or while writing aside */
static void test_left_by_a_killed_run(void **state)
{
    (void)state;
    grv_train_config config = config_of("killed");
    (void)train_ok(&config);
    assert_int_equal(rename(in_run("killed", "checkpoint"), in_run("killed", "checkpoint.old")), 0);
    assert_int_equal(mkdir(in_run("killed", "checkpoint.partial"), 0755), 0);
    write_file(in_run("killed", "checkpoint.partial/weights.safetensors"), "rest", 4);
    assert_true(grv_checkpoint_exists(in_run("killed", "checkpoint")));
    config = config_of("killed");
    config.epochs = 4;
    assert_int_equal(train_ok(&config).epochs, 4);
    config = config_of("not_killed");
    config.epochs = 4;
    (void)train_ok(&config);
    assert_same_runs("not_killed", "killed");
    assert_false(is_there(in_run("killed", "checkpoint.old")));
    assert_false(is_there(in_run("killed", "checkpoint.partial")));
}

static void test_fresh_start(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        grv_train_config config = config_of(i == 0 ? "fresh" : "again");
        (void)train_ok(&config);
    }
    grv_train_config config = config_of("again");
    config.resume = false;
    (void)train_ok(&config);
    assert_same_runs("fresh", "again");
}

/* --- memory --- */

typedef struct allocation_log {
    int n;
    int64_t counts[64]; /* before each step */
} allocation_log;

static bool note_allocations(void *argument)
{
    allocation_log *const log = argument;
    log->counts[log->n++] = grv_memory_get().n_allocations;
    return false;
}

/* when every sample was read once, a step takes no memory, the thread that reads ahead included */
static void test_steps_allocate_nothing(void **state)
{
    (void)state;
    allocation_log log = {.n = 0};
    grv_train_config config = config_of("allocations");
    grv_train_result result;
    set_key(&config, "batch", "1");
    set_key(&config, "optimizer.clip_norm", "0.1");
    config.epochs = config.checkpoint_epochs = 3;
    assert_ok(grv_train(&config, NULL, NULL, note_allocations, &log, &result));
    free_config(&config);
    assert_int_equal(log.n, 18);
    for (int i = 13; i < 18; i++) assert_int_equal(log.counts[i], log.counts[12]);
}

/* --- early end, best weights --- */

static void test_patience(void **state)
{
    (void)state;
    grv_train_config config = config_of("patience");
    config.lr = 0; /* nothing gets better */
    config.epochs = 20;
    config.patience = 2;
    config.checkpoint_epochs = 20;
    const grv_train_result result = train_ok(&config);
    assert_true(result.stopped_early);
    assert_int_equal(result.epochs, 3);
    assert_int_equal(result.best_epoch, 0);
    grv_train_state history = grv_train_state_init();
    assert_ok(grv_checkpoint_state(in_run("patience", "checkpoint"), &history));
    assert_int_equal(history.epoch, 3);
    grv_train_state_fini(&history);
    /* it stays ended */
    config = config_of("patience");
    config.lr = 0;
    config.epochs = 20;
    config.patience = 2;
    assert_int_equal(train_ok(&config).epochs, 3);
}

static void test_best_weights(void **state)
{
    (void)state;
    grv_train_config config = config_of("best");
    config.epochs = 8;
    config.lr = 0.2; /* too fast: the last epoch is not the best one */
    const grv_train_result result = train_ok(&config);
    grv_train_state history = grv_train_state_init();
    assert_ok(grv_checkpoint_state(in_run("best", "checkpoint"), &history));
    int64_t best = 0;
    for (int64_t i = 1; i < history.n_history; i++)
        if (history.history[i].validation_loss < history.history[best].validation_loss) best = i;
    assert_int_equal(result.best_epoch, best);
    assert_memory_equal(&result.best_loss, &history.history[best].validation_loss, sizeof(double));
    grv_train_state_fini(&history);
    config = config_of("until_best");
    config.lr = 0.2;
    config.epochs = best + 1;
    (void)train_ok(&config);
    assert_same_files(in_run("best", "best/weights.safetensors"),
                      in_run("until_best", "checkpoint/weights.safetensors"));
    /* without validation samples the training loss decides */
    config = config_of("no_validation");
    config.n_validation = 0;
    const grv_train_result alone = train_ok(&config);
    assert_true(isnan(alone.validation_loss));
    assert_memory_equal(&alone.best_loss, &alone.train_loss, sizeof(double));
}

/* --- bad data --- */

static void test_nan_in_data(void **state)
{
    const int64_t in_training[] = {4, 5, 2, 1, 3, 0}, in_validation[] = {7, 0, 0, 0, 0, 0};
    (void)state;
    make_train_data(in_folder("nan"), N_SAMPLES, N_SAMPLES);
    spoil_value(in_folder("nan"), "target", in_validation, INFINITY);
    grv_train_config config = tiny_config(in_folder("nan"), in_folder("nan_run"));
    train_fails(&config, GRV_E_NUMERIC, "sample 7 of 'target': infinity at x 0, y 0, z 0, t 0");
    spoil_value(in_folder("nan"), "target", in_training, NAN);
    config = tiny_config(in_folder("nan"), in_folder("nan_run"));
    train_fails(&config, GRV_E_NUMERIC,
                "sample 4 of 'target': NaN at x 5, y 2, z 1, t 3, channel 0");
    assert_false(is_there(in_run("nan_run", "checkpoint")));
}

static void test_samples_not_there(void **state)
{
    grv_dataset *data = NULL;
    const grv_dataset_desc desc = train_data_desc(N_SAMPLES);
    (void)state;
    make_train_data(in_folder("part"), N_SAMPLES, 5);
    grv_train_config config = tiny_config(in_folder("part"), in_folder("part_run"));
    train_fails(&config, GRV_E_NOT_FOUND, "sample 5 of the data set is missing");
    assert_ok(grv_dataset_resume(in_folder("part"), &desc, NULL, &data));
    assert_ok(grv_dataset_mark_failed(data, 2, "the pressure did not converge"));
    grv_dataset_close(&data);
    config = tiny_config(in_folder("part"), in_folder("part_run"));
    train_fails(&config, GRV_E_NOT_FOUND,
                "sample 2 of the data set failed: the pressure did not converge");
    assert_false(is_there(in_folder("part_run"))); /* found before anything is made */
    config = tiny_config(in_folder("nowhere"), in_folder("part_run"));
    train_fails(&config, GRV_E_NOT_FOUND, "nowhere");
}

/* arrays that are not there, or whose axes are not those of a network */
static void test_wrong_arrays(void **state)
{
    (void)state;
    make_train_data(in_folder("arrays"), N_SAMPLES, N_SAMPLES);
    assert_int_equal(rename(in_folder("arrays/target"), in_folder("arrays/elsewhere")), 0);
    grv_train_config config = tiny_config(in_folder("arrays"), in_folder("arrays_run"));
    train_fails(&config, GRV_E_NOT_FOUND, "target");
    grv_dataset_desc desc = train_data_desc(1);
    desc.input.n_axes = 2;
    assert_ok(grv_dataset_create(in_folder("axes"), &desc, NULL, NULL));
    config = tiny_config(in_folder("axes"), in_folder("arrays_run"));
    config.n_train = 1;
    config.n_validation = config.n_test = 0;
    set_key(&config, "batch", "1");
    train_fails(&config, GRV_E_NOT_FOUND, "sample 0");
    static float input[TRAIN_INPUT], target[TRAIN_TARGET];
    grv_dataset *data = NULL;
    train_sample(0, input, target);
    assert_ok(grv_dataset_resume(in_folder("axes"), &desc, NULL, &data));
    assert_ok(grv_dataset_write_sample(data, 0, input, target));
    grv_dataset_close(&data);
    config = tiny_config(in_folder("axes"), in_folder("arrays_run"));
    config.n_train = 1;
    config.n_validation = config.n_test = 0;
    set_key(&config, "batch", "1");
    train_fails(&config, GRV_E_CONFIG,
                "an input of 4 axes, or 3 for a static one, expected, 2 found");
}

static void test_broken_shard(void **state)
{
    (void)state;
    make_train_data(in_folder("broken"), N_SAMPLES, N_SAMPLES);
    assert_int_equal(truncate(in_folder("broken/input/c/3/0/0/0/0"), 50), 0);
    grv_train_config config = tiny_config(in_folder("broken"), in_folder("broken_run"));
    train_fails(&config, GRV_E_FORMAT, "sample 3: ");
}

/* --- losses and weights that leave the numbers --- */

/* the checkpoint of a good first epoch survives a second one with this rate */
static void check_divergence(const char *run, double rate, int64_t n_train, const char *text)
{
    grv_train_config config = config_of(run);
    config.epochs = 1;
    (void)train_ok(&config);
    (void)remove(in_folder("kept"));
    assert_int_equal(link(in_run(run, "checkpoint/weights.safetensors"), in_folder("kept")), 0);
    config = config_of(run);
    config.n_train = n_train;
    config.lr = rate;
    train_fails(&config, GRV_E_NUMERIC, text);
    assert_same_files(in_run(run, "checkpoint/weights.safetensors"), in_folder("kept"));
    assert_same_files(in_run(run, "best/weights.safetensors"), in_folder("kept"));
    assert_false(is_there(in_run(run, "checkpoint.partial")));
    /* and it is good */
    config = config_of(run);
    assert_int_equal(train_ok(&config).epochs, 2);
}

static void test_divergence(void **state)
{
    (void)state;
    check_divergence("loss_overflows", 1e25, 6,
                     "the loss is not finite in epoch 2, step 2, sample ");
    /* one step an epoch: the loss of training never sees it */
    check_divergence("validation_overflows", 1e25, 2,
                     "sample 2: the error of the prediction is not finite");
    check_divergence("weights_overflow", 1e39, 2,
                     "the weights are not finite in epoch 2 after step 1");
}

/* --- bad settings --- */

static void check_setting(const char *key, const char *value, grv_status expected, const char *text)
{
    grv_train_config config = config_of("settings");
    set_key(&config, key, value);
    train_fails(&config, expected, text);
    assert_false(is_there(in_folder("settings")));
}

static void test_bad_settings(void **state)
{
    (void)state;
    check_setting("model.modes", "[2, 2, 2]", GRV_E_CONFIG,
                  "model.modes: 4 numbers expected, one per axis of");
    check_setting("model.padding", "[1]", GRV_E_CONFIG,
                  "model.padding: 4 numbers expected, 1 found");
    check_setting("batch", "7", GRV_E_CONFIG, "batch: at most the 6 training samples, 7 found");
    check_setting("samples.test", "2", GRV_E_CONFIG,
                  "6 training, 2 validation and 2 test samples do not fit into a data set of 9");
    check_setting("samples.train", "100", GRV_E_CONFIG,
                  "100 training, 2 validation and 1 test samples do not fit");
    check_setting("mesh.data", "2", GRV_E_CONFIG, "mesh: data 2 x domain");
    check_setting("mesh.domain", "3", GRV_E_CONFIG,
                  "mesh: data 1 x domain 3 is not the number of ranks, 1");
    grv_train_config config = config_of("settings");
    set_key(&config, "model.modes", "[2, 40, 2, 2]");
    grv_train_result result;
    assert_true(grv_train(&config, NULL, NULL, NULL, NULL, &result) < 0);
    assert_non_null(strstr(grv_error_message(), "40"));
    free_config(&config);
    assert_false(is_there(in_folder("settings")));
}

/* --- bad checkpoints --- */

static void check_bad_checkpoint(const char *text)
{
    grv_train_config config = config_of("bad");
    grv_train_result result;
    config.epochs = 3;
    const grv_status status = grv_train(&config, NULL, NULL, NULL, NULL, &result);
    free_config(&config);
    if (status >= 0 || strstr(grv_error_message(), text) == NULL)
        fail_msg("status %d, \"%s\" does not hold \"%s\"", (int)status, grv_error_message(), text);
}

/* puts a whole file in a broken one's place */
static void with_broken(const char *name, size_t at, const char *bytes, size_t n_kept,
                        const char *text)
{
    static char whole[1 << 20], broken[1 << 20];
    const size_t n = read_file(in_run("bad", name), whole, sizeof whole);
    assert_true(n < sizeof whole);
    memcpy(broken, whole, n);
    memcpy(broken + at, bytes, strlen(bytes));
    write_file(in_run("bad", name), broken, n_kept < n ? n_kept : n);
    check_bad_checkpoint(text);
    write_file(in_run("bad", name), whole, n);
}

static void test_bad_checkpoint(void **state)
{
    (void)state;
    grv_train_config config = config_of("bad");
    (void)train_ok(&config);
    with_broken("checkpoint/weights.safetensors", 0, "", 100, "weights.safetensors");
    with_broken("checkpoint/weights.safetensors", 0, "", 0, "weights.safetensors");
    with_broken("checkpoint/weights.safetensors", 20, "}}}}", SIZE_MAX, "weights.safetensors");
    with_broken("checkpoint/optimizer.safetensors", 0, "", 1000, "optimizer.safetensors");
    with_broken("checkpoint/state.json", 0, "", 30, "state.json");
    with_broken("checkpoint/state.json", 4, "\"version_\"", SIZE_MAX, "state.json");
    assert_int_equal(rename(in_run("bad", "checkpoint/optimizer.safetensors"), in_folder("aside")),
                     0);
    check_bad_checkpoint("optimizer.safetensors");
    assert_int_equal(rename(in_folder("aside"), in_run("bad", "checkpoint/optimizer.safetensors")),
                     0);
    config = config_of("bad");
    config.width = 4;
    train_fails(&config, GRV_E_SHAPE, "F32 [");
    config = config_of("bad");
    config.blocks = 3;
    train_fails(&config, GRV_E_NOT_FOUND, "tensor '");
    /* nothing of this harmed it */
    config = config_of("bad");
    config.epochs = 3;
    assert_int_equal(train_ok(&config).epochs, 3);
}

/* a run that stopped inside an epoch cannot go on with an epoch that is over by then */
static void test_resume_with_another_batch(void **state)
{
    (void)state;
    int left = 2;
    grv_train_config config = config_of("batch");
    grv_train_result result;
    assert_int_equal(grv_train(&config, NULL, NULL, stop_after, &left, &result), GRV_E_INTERRUPTED);
    set_key(&config, "batch", "6");
    train_fails(&config, GRV_E_CONFIG, "it is 2 steps into an epoch that has 1");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, note_memory, check_memory)
    const struct CMUnitTest tests[] = {TEST(test_learns),
                                       TEST(test_files),
                                       TEST(test_stop_and_resume),
                                       TEST(test_more_epochs),
                                       TEST(test_left_by_a_killed_run),
                                       TEST(test_fresh_start),
                                       TEST(test_steps_allocate_nothing),
                                       TEST(test_patience),
                                       TEST(test_best_weights),
                                       TEST(test_nan_in_data),
                                       TEST(test_samples_not_there),
                                       TEST(test_wrong_arrays),
                                       TEST(test_broken_shard),
                                       TEST(test_divergence),
                                       TEST(test_bad_settings),
                                       TEST(test_bad_checkpoint),
                                       TEST(test_resume_with_another_batch)};
    return cmocka_run_group_tests(tests, make_data, remove_folder);
}
