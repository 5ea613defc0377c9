/* Campaigns: a program as simulator, what is made again and what is not, failures with their reasons, and the flow as `grove simulate` makes it. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include "grove/campaign.h"
#include "grove/dataset.h"
#include "grove/sampling.h"
#include "store_support.h"

enum { N_SAMPLES = 6 };

/* make.sh SAMPLE WORD CONTROL: notes that it ran; does what a file CONTROL/SAMPLE says; leaves the sample's number, and the word, as 16 bytes each */
static const char script[] = "echo $1 >> \"$3/ran\"\n"
                             "if [ -e \"$3/$1\" ]; then . \"$3/$1\"; fi\n"
                             "printf '%04d%04d%04d%04d' $1 $1 $1 $1 > input.raw\n"
                             "printf '%.16s' \"$2................\" > target.raw\n";

static void set(grv_campaign_config *config, const char *key, const char *value)
{
    char assignment[2048];
    (void)snprintf(assignment, sizeof assignment, "%s=%s", key, value);
    assert_ok(grv_config_set(grv_campaign_options(), config, assignment));
}

/* A campaign of that script, with a folder for control of its own. */
static grv_campaign_config config_of(const char *name)
{
    grv_campaign_config config = {0};
    char words[1200], control[600];
    (void)snprintf(control, sizeof control, "%s.control", in_folder(name));
    assert_int_equal(mkdir(control, 0700), 0);
    write_file(in_folder("make.sh"), script, sizeof script - 1);
    assert_ok(grv_config_defaults(grv_campaign_options(), &config));
    set(&config, "output", in_folder(name));
    (void)snprintf(words, sizeof words, "[sh, make.sh, \"{sample}\", \"{x}\", \"%s\"]", control);
    set(&config, "simulator", words);
    set(&config, "files", in_folder("make.sh"));
    set(&config, "samples", "6");
    set(&config, "parameters", "x uniform 0 1");
    set(&config, "input.axes", "x");
    set(&config, "input.shape", "2");
    set(&config, "input.channels", "u,v");
    set(&config, "target.axes", "x,y");
    set(&config, "target.shape", "2,2");
    return config;
}

static void free_config(grv_campaign_config *config)
{
    grv_config_fini(grv_campaign_options(), config);
}

static void control(const char *name, int sample, const char *text)
{
    char path[700];
    (void)snprintf(path, sizeof path, "%s.control/%d", in_folder(name), sample);
    if (text == NULL)
        assert_int_equal(unlink(path), 0);
    else
        write_file(path, text, strlen(text));
}

/* Lines of what ran. */
static int n_ran(const char *name)
{
    char path[700], line[64];
    int n = 0;
    (void)snprintf(path, sizeof path, "%s.control/ran", in_folder(name));
    FILE *const file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) n++;
    if (file != NULL) assert_int_equal(fclose(file), 0);
    return n;
}

static grv_batch_params quick(void)
{
    grv_batch_params pool = grv_batch_params_default();
    pool.n_workers = 2;
    pool.max_attempts = 1;
    pool.idle_s = 1;
    return pool;
}

static grv_campaign_result run_ok(const grv_campaign_config *config, bool retry_failed)
{
    grv_campaign_result result;
    const grv_batch_params pool = quick();
    assert_ok(grv_campaign_run(config, &pool, retry_failed, NULL, NULL, &result));
    return result;
}

static bool has_job(const char *name)
{
    char path[700];
    (void)snprintf(path, sizeof path, "%s.job", in_folder(name));
    return access(path, F_OK) == 0;
}

/* Each sample holds its own number and its own value. */
static void check_samples(const grv_campaign_config *config, uint64_t seed)
{
    grv_dataset *data = NULL;
    grv_sampling *sampling = NULL;
    const char *const lines[] = {"x uniform 0 1"};
    assert_ok(grv_sampling_create(lines, 1, GRV_SAMPLING_RANDOM, seed, N_SAMPLES, &sampling));
    assert_ok(grv_dataset_open(config->output, NULL, &data));
    for (int64_t i = 0; i < N_SAMPLES; i++) {
        char input[16], target[16], expected[81], text[GRV_SAMPLING_TEXT_BYTES + 16];
        assert_ok(grv_dataset_read(data, i, 0, 2, (float *)(void *)input, (float *)(void *)target));
        (void)snprintf(expected, sizeof expected, "%04lld%04lld%04lld%04lld", (long long)i,
                       (long long)i, (long long)i, (long long)i);
        assert_memory_equal(input, expected, 16);
        grv_sampling_text(sampling, i, 0, text);
        (void)strcat(text, "................");
        assert_memory_equal(target, text, 16);
    }
    grv_dataset_close(&data);
    grv_sampling_destroy(&sampling);
}

static void check_reason(const grv_campaign_config *config, int64_t sample, const char *part)
{
    grv_dataset *data = NULL;
    char *reason = NULL;
    uint8_t states[N_SAMPLES];
    assert_ok(grv_dataset_open(config->output, NULL, &data));
    assert_ok(grv_dataset_status(data, states));
    assert_int_equal(states[sample], GRV_SAMPLE_FAILED);
    assert_ok(grv_dataset_reason(data, sample, &reason));
    assert_non_null(reason);
    if (strstr(reason, part) == NULL) fail_msg("'%s' expected in: %s", part, reason);
    grv_free(reason);
    grv_dataset_close(&data);
}

static void check_parameters(const grv_campaign_config *config)
{
    grv_dataset *data = NULL;
    grv_array *array = NULL;
    grv_sampling *sampling = NULL;
    double values[N_SAMPLES];
    const int64_t start[] = {0, 0}, count[] = {N_SAMPLES, 1};
    assert_ok(grv_sampling_create((const char *const *)config->parameters.at, 1,
                                  GRV_SAMPLING_RANDOM, 1, N_SAMPLES, &sampling));
    assert_ok(grv_dataset_open(config->output, NULL, &data));
    assert_ok(grv_array_open(grv_dataset_get_store(data), "parameters", &array));
    assert_ok(grv_array_read(array, start, count, values, NULL));
    for (int64_t i = 0; i < N_SAMPLES; i++)
        assert_true(values[i] == grv_sampling_number(sampling, i, 0));
    grv_array_close(&array);
    grv_dataset_close(&data);
    grv_sampling_destroy(&sampling);
}

/* Makes what is missing and nothing else; what failed only when asked. */
static void test_what_is_missing(void **state)
{
    (void)state;
    grv_campaign_config config = config_of("missing");
    control("missing", 2, "echo there is no solution; exit 3\n");
    grv_campaign_result r = run_ok(&config, false);
    assert_int_equal(r.n_samples, N_SAMPLES);
    assert_int_equal(r.n_made, N_SAMPLES - 1);
    assert_int_equal(r.n_failed, 1);
    assert_int_equal(n_ran("missing"), N_SAMPLES);
    assert_true(r.seconds_per_sample > 0 && has_job("missing"));
    check_reason(&config, 2, "sh ended with exit code 3: there is no solution");
    check_parameters(&config);
    r = run_ok(&config, false);
    assert_int_equal(r.n_made, 0);
    assert_int_equal(r.n_failed, 1);
    r = run_ok(&config, true);
    assert_int_equal(r.n_failed, 1);
    assert_int_equal(n_ran("missing"), N_SAMPLES + 1);
    control("missing", 2, NULL);
    r = run_ok(&config, true);
    assert_int_equal(r.n_made, 1);
    assert_int_equal(r.n_done, N_SAMPLES);
    assert_false(has_job("missing"));
    check_samples(&config, 1);
    char path[700];
    (void)snprintf(path, sizeof path, "%s/status/c/4", config.output);
    assert_int_equal(unlink(path), 0);
    r = run_ok(&config, false);
    assert_int_equal(r.n_made, 1);
    assert_int_equal(n_ran("missing"), N_SAMPLES + 3);
    check_samples(&config, 1);
    r = run_ok(&config, false);
    assert_int_equal(r.n_made, 0);
    free_config(&config);
}

/* A crash, a program that hangs, results that are none: each costs its sample only. */
static void test_failures(void **state)
{
    static const struct {
        const char *does, *reason;
    } cases[N_SAMPLES] = {
        {"kill -SEGV $$\n", "sh crashed: signal 11"},
        {"sleep 60\n", "longer than its limit of 2 s"},
        {"touch other.txt; exit 0\n",
         "sh left no input.npy (or input.raw, float32); in its folder: "},
        {"printf 1234 > input.raw; exit 0\n",
         "input.raw: 4 float32 values of 4 bytes expected, 4 bytes found"},
        {"printf '1234123412341234' > input.raw; printf "
         "'\\000\\000\\300\\177\\000\\000\\300\\177\\000\\000\\300\\177\\000\\000\\300\\177' > "
         "target.raw; exit 0\n",
         "NaN at x 0, y 0"},
        {"", ""},
    };
    (void)state;
    grv_campaign_config config = config_of("failures");
    for (int i = 0; i < N_SAMPLES - 1; i++) control("failures", i, cases[i].does);
    grv_campaign_result r;
    grv_batch_params pool = quick();
    pool.time_limit_s = 2;
    assert_ok(grv_campaign_run(&config, &pool, false, NULL, NULL, &r));
    assert_int_equal(r.n_failed, N_SAMPLES - 1);
    assert_int_equal(r.n_done, 1);
    for (int i = 0; i < N_SAMPLES - 1; i++) check_reason(&config, i, cases[i].reason);
    for (int i = 0; i < N_SAMPLES - 1; i++) control("failures", i, NULL);
    assert_int_equal(run_ok(&config, true).n_made, N_SAMPLES - 1);
    check_samples(&config, 1);
    free_config(&config);
}

static bool stop_at_once(void *argument)
{
    (void)argument;
    return true;
}

/* Stopped, and taken up again; a job whose data set was deleted is of no use. */
static void test_stopped(void **state)
{
    (void)state;
    grv_campaign_config config = config_of("stopped");
    grv_campaign_result r;
    const grv_batch_params pool = quick();
    for (int i = 0; i < N_SAMPLES; i++) control("stopped", i, "sleep 0.3\n");
    assert_int_equal(grv_campaign_run(&config, &pool, false, stop_at_once, NULL, &r),
                     GRV_E_INTERRUPTED);
    assert_int_equal(r.n_samples, N_SAMPLES);
    assert_true(has_job("stopped") && r.n_missing > 0);
    r = run_ok(&config, false);
    assert_int_equal(r.n_done, N_SAMPLES);
    assert_int_equal(n_ran("stopped"), N_SAMPLES); /* the workers of the first run went on */
    check_samples(&config, 1);
    set(&config, "seed", "2");
    assert_int_equal(grv_campaign_run(&config, &pool, false, NULL, NULL, &r), GRV_E_CONFIG);
    assert_non_null(strstr(grv_error_message(), "seed 1, 2 is wanted"));
    /* in their sleep, so that nobody writes what is deleted; they must not wake up and do it later */
    for (int i = 0; i < N_SAMPLES; i++) control("stopped", i, "sleep 3\n");
    set(&config, "output", in_folder("stopped2"));
    assert_int_equal(grv_campaign_run(&config, &pool, false, stop_at_once, NULL, &r),
                     GRV_E_INTERRUPTED);
    assert_int_equal(nftw(config.output, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    for (int i = 0; i < N_SAMPLES; i++) control("stopped", i, NULL);
    set(&config, "seed", "3");
    r = run_ok(&config, false);
    assert_int_equal(r.n_made, N_SAMPLES);
    (void)sleep(3);
    check_samples(&config, 3);
    free_config(&config);
}

/* One sample, here. */
static void test_one_sample(void **state)
{
    char path[700];
    (void)state;
    grv_campaign_config config = config_of("one");
    /* where nothing was begun, a worker does not */
    assert_int_equal(grv_campaign_sample(&config, 3, false, in_folder("one.none"), NULL, 0, NULL),
                     GRV_E_NOT_FOUND);
    assert_int_equal(access(in_folder("one/zarr.json"), F_OK), -1);
    (void)snprintf(path, sizeof path, "%s", in_folder("one.here"));
    assert_ok(grv_campaign_sample(&config, 3, true, path, NULL, 0, NULL));
    assert_int_equal(n_ran("one"), 1);
    assert_int_equal(access(in_folder("one.here/input.raw"), F_OK), 0);
    assert_int_equal(grv_campaign_sample(&config, N_SAMPLES, true, path, NULL, 0, NULL), GRV_E_CONFIG);
    assert_fails(grv_campaign_sample(&config, 4, true, path, NULL, 0, NULL), GRV_E_EXISTS,
                 "one.here is not empty");
    control("one", 4, "exit 7\n");
    assert_int_equal(grv_campaign_sample(&config, 4, true, in_folder("one.four"), NULL, 0, NULL),
                     GRV_E_NUMERIC);
    control("one", 4, NULL);
    assert_int_equal(run_ok(&config, false).n_made, N_SAMPLES - 1);
    check_samples(&config, 1);
    free_config(&config);
}

/* A campaign of values.c: x uniform, a word, a whole number. */
static grv_campaign_config function_config(const char *name, const char *ways)
{
    char text[256];
    grv_campaign_config config = config_of(name);
    set(&config, "simulator", GRVI_TEST_SOURCE_DIR "/tests/data/values.c");
    set(&config, "function", "values");
    set(&config, "flags", "-O1 -DSCALE=3");
    (void)snprintf(text, sizeof text, "x uniform 0 1,way each %s,n integer 1 1000000", ways);
    set(&config, "parameters", text);
    set(&config, "input.axes", "x,y");
    set(&config, "input.shape", "2,2");
    set(&config, "input.channels", "[]");
    return config;
}

/* The values that a program has, too, in every way to ask for them. */
static void test_function(void **state)
{
    (void)state;
    grv_campaign_config config = function_config("function", "well");
    assert_int_equal(run_ok(&config, false).n_made, N_SAMPLES);
    grv_dataset *data = NULL;
    grv_sampling *sampling = NULL;
    assert_ok(grv_sampling_create((const char *const *)config.parameters.at, 3, GRV_SAMPLING_RANDOM,
                                  1, N_SAMPLES, &sampling));
    assert_ok(grv_dataset_open(config.output, NULL, &data));
    for (int64_t i = 0; i < N_SAMPLES; i++) {
        float input[4], target[4];
        const uint64_t seed = grv_random_bits(1, 1, (uint64_t)i) >> 33; /* simulator_shared.c */
        assert_ok(grv_dataset_read(data, i, 0, 2, input, target));
        const float x = (float)grv_sampling_number(sampling, i, 0),
                    n = (float)grv_sampling_number(sampling, i, 2);
        assert_true(input[0] == x && input[1] == x && input[2] == n && input[3] == 3);
        assert_true(target[0] == x && target[1] == (float)i && target[2] == (float)seed &&
                    target[3] == 3);
    }
    grv_dataset_close(&data);
    grv_sampling_destroy(&sampling);
    assert_int_equal(run_ok(&config, false).n_made, 0);
    free_config(&config);
}

static void test_function_failures(void **state)
{
    static const struct {
        const char *way, *reason;
    } cases[] = {
        {"crash", "values crashed: signal 11, Segmentation fault"},
        {"exit", "values ended its process with exit code 0"},
        {"exit4", "values ended with exit code 4"},
        {"say", "values: there is no solution"},
        {"name", "values: 'wya' is no parameter; did you mean 'way'?"},
        {"word", "values: parameter 'way' is 'word', a number is asked for"},
        {"whole", "a whole number is asked for"},
        {"place", "values: parameter 77 is asked for, the campaign has 3"},
        {"kind", "a tensor is asked for"},
        {"number", "a simulator returns tensors: its input, then its target"},
        {"type", "input: GRV_TASK_F32 or GRV_TASK_F64 expected, type 3 found"},
        {"shape", "input: shape (2, 2, 1) expected (the axes of the campaign, then the channels), "
                  "(4) found"},
        {"none", "two tensors expected, the input and then the target; it returned 0"},
        {"one", "two tensors expected, the input and then the target; it returned 1"},
        {"three", "two tensors expected, the input and then the target; it returned 3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[32], folder[700];
        (void)snprintf(name, sizeof name, "function.%s", cases[i].way);
        grv_campaign_config config = function_config(name, cases[i].way);
        (void)snprintf(folder, sizeof folder, "%s.here", in_folder(name));
        assert_fails(grv_campaign_sample(&config, 1, true, folder, NULL, 0, NULL), GRV_E_NUMERIC,
                     cases[i].reason);
        free_config(&config);
    }
}

/* By workers: a crash and a limit cost their samples; only these are made again. */
static void test_function_again(void **state)
{
    char other[700];
    (void)state;
    grv_campaign_config config = function_config("function.again", "well crash hang");
    grv_campaign_result r;
    grv_batch_params pool = quick();
    pool.time_limit_s = 1;
    assert_ok(grv_campaign_run(&config, &pool, false, NULL, NULL, &r));
    assert_int_equal(r.n_done, 2);
    assert_int_equal(r.n_failed, 4);
    check_reason(&config, 1, "values crashed: signal 11, Segmentation fault: way: crash");
    check_reason(&config, 2, "longer than its limit of 1 s");
    /* the source put right, elsewhere: where it lies is no part of the campaign */
    static char text[8192];
    static const char call[] = "misbehaves(task, way, input)";
    const size_t n = read_file(GRVI_TEST_SOURCE_DIR "/tests/data/values.c", text, sizeof text - 1);
    char *const at = strstr(text, call);
    assert_non_null(at);
    memset(at, ' ', sizeof call - 1);
    *at = '0';
    (void)snprintf(other, sizeof other, "%s", in_folder("values.c"));
    write_file(other, text, n);
    set(&config, "simulator", other);
    assert_int_equal(run_ok(&config, true).n_made, 4);
    free_config(&config);
}

static void flow_config(grv_campaign_config *config, const char *name)
{
    static const char *const settings[] = {"samples=3",
                                           "flow.grid=12,10,8",
                                           "flow.radius=1.5",
                                           "flow.snapshots=2",
                                           "flow.interval=0.5",
                                           "flow.centre.min=0.3,0.3,0.3",
                                           "flow.centre.max=0.7,0.7,0.7"};
    assert_ok(grv_config_defaults(grv_campaign_options(), config));
    set(config, "output", in_folder(name));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        assert_ok(grv_config_set(grv_campaign_options(), config, settings[i]));
}

static void read_flow(const char *path, int64_t sample, float *input, float *target)
{
    grv_dataset *data = NULL;
    assert_ok(grv_dataset_open(path, NULL, &data));
    assert_ok(grv_dataset_read(data, sample, 0, 12, input, target));
    grv_dataset_close(&data);
}

/* The same data set as that of grv_generate, which may go on where this stopped, and the other way round. */
static void test_flow(void **state)
{
    static float input[2][3 * 960], target[2][2 * 960];
    (void)state;
    grv_campaign_config config = {0};
    grv_generate_result made;
    flow_config(&config, "flow");
    assert_int_equal(run_ok(&config, false).n_made, 3);
    grv_generate_config plain = config.flow;
    char other[700];
    (void)snprintf(other, sizeof other, "%s", in_folder("flow.plain"));
    plain.output = other;
    plain.samples = 3;
    plain.seed = config.seed;
    plain.threads = plain.planes_per_chunk = 1;
    assert_ok(grv_generate(&plain, NULL, NULL, NULL, &made));
    for (int64_t i = 0; i < 3; i++) {
        read_flow(config.output, i, input[0], target[0]);
        read_flow(other, i, input[1], target[1]);
        assert_memory_equal(input[0], input[1], sizeof input[0]);
        assert_memory_equal(target[0], target[1], sizeof target[0]);
    }
    plain.output = config.output;
    assert_ok(grv_generate(&plain, NULL, NULL, NULL, &made));
    assert_int_equal(made.n_made, 0);
    set(&config, "output", other);
    assert_int_equal(run_ok(&config, false).n_made, 0);
    /* with a parameter, it is another data set */
    set(&config, "parameters", "radius each 1 1.5");
    set(&config, "samples", "0");
    set(&config, "output", in_folder("flow.radii"));
    assert_int_equal(run_ok(&config, false).n_made, 2);
    for (int64_t i = 0; i < 2; i++) read_flow(config.output, i, input[i], target[i]);
    double fluid[2] = {0};
    for (int i = 0; i < 3 * 960; i++)
        for (int k = 0; k < 2; k++) fluid[k] += (double)input[k][i];
    assert_true(fluid[0] > fluid[1] + 1); /* a smaller sphere leaves more of it */
    free_config(&config);
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *key, *value, *message;
    } cases[] = {
        {"simulator", "[sh, make.sh, '{sampel}']",
         "simulator[2]: '{sampel}' is no parameter; did you mean '{sample}'?"},
        {"simulator", "[sh, '{velocity}']", "'{velocity}' is none of the parameters"},
        {"simulator", "flo",
         "simulator: 'flow', a program on PATH or its path with a '/', or C sources and their "
         "function expected, 'flo' found"},
        {"simulator", "[./values.c, values.h]", "function: the name of the GRV_TASK in ./values.c"},
        {"function", "values", "simulator: sh: No such file"},
        {"parameters", "seed uniform 0 1",
         "parameter 'seed': each sample has a random number of its own already"},
        {"simulator", "[./no/such/program]", "simulator: ./no/such/program: No such file"},
        {"simulator", "[/etc/passwd]", "simulator: /etc/passwd cannot be run: chmod +x it"},
        {"simulator", "['sh make.sh {x}']",
         "simulator: each word by itself expected ([python3, solver.py, \"{x}\"]), 'sh make.sh "
         "{x}' found"},
        {"simulator", "flow", "files, input and target are for a program"},
        {"simulator", "[flow, fast]", "flow takes no further words, 'fast' found"},
        {"files", "no/such/file", "files: no/such/file: No such file"},
        {"samples", "0", "a number of at least 1 expected"},
        {"parameters", "x unifrom 0 1", "did you mean 'uniform'?"},
        {"input.axes", "[]", "input.axes: the names of the axes of each sample's input expected"},
        {"input.axes", "a,b,c,d,e", "at most 4 axes expected, 5 found"},
        {"target.shape", "2", "target.shape: one length for each of the 2 axes expected, 1 found"},
        {"target.axes", "y,x", "the split axis is 'x' in the input, 'y' in the target"},
        {"target.shape", "3,2", "axis 'x' has 2 elements in the input, 3 in the target"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "mistake%zu", i);
        grv_campaign_config config = config_of(name);
        grv_campaign_result r;
        set(&config, cases[i].key, cases[i].value);
        if (grv_campaign_run(&config, NULL, false, NULL, NULL, &r) == GRV_OK)
            fail_msg("%s=%s was taken", cases[i].key, cases[i].value);
        if (strstr(grv_error_message(), cases[i].message) == NULL)
            fail_msg("%s=%s: %s", cases[i].key, cases[i].value, grv_error_message());
        assert_false(has_job(name));
        free_config(&config);
    }
    grv_campaign_config config = {0};
    grv_campaign_result r;
    flow_config(&config, "mistake");
    set(&config, "parameters", "reynold uniform 1 2");
    assert_int_equal(grv_campaign_run(&config, NULL, false, NULL, NULL, &r), GRV_E_CONFIG);
    assert_non_null(strstr(grv_error_message(), "did you mean 'reynolds'?"));
    free_config(&config);
}

/* What is compiled stays here, too. */
static int make_folder_and_cache(void **state)
{
    return make_folder(state) != 0 || setenv("XDG_CACHE_HOME", test_folder, 1) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_missing), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_stopped),         cmocka_unit_test(test_one_sample),
        cmocka_unit_test(test_function),        cmocka_unit_test(test_function_failures),
        cmocka_unit_test(test_function_again),  cmocka_unit_test(test_flow),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, make_folder_and_cache, remove_folder);
}
