/* The data set: what is written is read, in parts, by planes; states, resumption, refusals. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>

#include "grove/dataset.h"
#include "store_support.h"

enum { N_SAMPLES = 5, NX = 7, NY = 3, NZ = 4, NT = 2, N_IN = 2, N_OUT = 3 };
enum { INPUT_PLANE = NY * NZ * N_IN, TARGET_PLANE = NY * NZ * NT * N_OUT };

static const char *const channels[] = {"u", "v", "w"}, *const units[] = {"m/s", "m/s", "m/s"};

/* static inputs [x, y, z] beside targets [x, y, z, t] */
static grv_dataset_desc flow_desc(void)
{
    grv_dataset_desc desc = grv_dataset_desc_default();
    desc.n_samples = N_SAMPLES;
    desc.input = (grv_dataset_field){
        .n_axes = 3, .axis_names = {"x", "y", "z"}, .shape = {NX, NY, NZ}, .n_channels = N_IN};
    desc.target = (grv_dataset_field){.n_axes = 4,
                                      .axis_names = {"x", "y", "z", "t"},
                                      .shape = {NX, NY, NZ, NT},
                                      .n_channels = N_OUT,
                                      .channel_names = channels,
                                      .channel_units = units};
    desc.planes_per_chunk = 2;
    desc.seed = 18446744073709551615U;
    desc.generator = "{\"problem\": \"sphere\", \"reynolds\": 100.0, \"grid\": [7, 3, 4]}";
    desc.units = "{\"x\": \"m\", \"t\": \"s\"}";
    return desc;
}

static double value_of(int64_t sample, int64_t i, int side)
{
    return (double)sample * 1000 + (double)i * 0.5 + side * 0.25;
}

static void fill_f32(float *values, int64_t n, int64_t sample, int side)
{
    for (int64_t i = 0; i < n; i++) values[i] = (float)value_of(sample, i, side);
}

static void write_f32(grv_dataset *dataset, int64_t sample)
{
    float input[NX * INPUT_PLANE], target[NX * TARGET_PLANE];
    fill_f32(input, NX * INPUT_PLANE, sample, 0);
    fill_f32(target, NX * TARGET_PLANE, sample, 1);
    assert_ok(grv_dataset_write_sample(dataset, sample, input, target));
}

static void check_planes(grv_dataset *dataset, int64_t sample, int64_t first, int64_t n)
{
    float input[NX * INPUT_PLANE + 1], target[NX * TARGET_PLANE + 1];
    input[n * INPUT_PLANE] = target[n * TARGET_PLANE] = -7;
    assert_ok(grv_dataset_read(dataset, sample, first, n, input, target));
    for (int64_t i = 0; i < n * INPUT_PLANE; i++)
        assert_true(fabs((double)input[i] - value_of(sample, first * INPUT_PLANE + i, 0)) < 1e-9);
    for (int64_t i = 0; i < n * TARGET_PLANE; i++)
        assert_true(fabs((double)target[i] - value_of(sample, first * TARGET_PLANE + i, 1)) < 1e-9);
    assert_true(input[n * INPUT_PLANE] < -6 && target[n * TARGET_PLANE] < -6);
}

static void test_round_trip(void **state)
{
    grv_dataset *dataset = NULL;
    grv_dataset_counts counts;
    char *json = NULL;
    int64_t samples[N_SAMPLES], n = 0;
    (void)state;
    const grv_dataset_desc desc = flow_desc();
    assert_ok(grv_dataset_create(in_folder("flow"), &desc, NULL, &dataset));
    write_f32(dataset, 3);
    write_f32(dataset, 0);
    assert_ok(grv_dataset_mark_failed(dataset, 4, "the solver\ndiverged at step 12"));
    grv_dataset_close(&dataset);
    assert_ok(grv_dataset_open(in_folder("flow"), NULL, &dataset));
    const grv_dataset_desc *const found = grv_dataset_get_desc(dataset);
    assert_int_equal(found->n_samples, N_SAMPLES);
    assert_int_equal(found->input.n_axes, 3);
    assert_int_equal(found->target.shape[3], NT);
    assert_string_equal(found->target.axis_names[3], "t");
    assert_int_equal(found->target.n_channels, N_OUT);
    assert_int_equal(found->planes_per_chunk, 2);
    assert_true(found->seed == desc.seed);
    for (int64_t first = 0; first < NX; first++) {
        for (int64_t k = 0; k <= NX - first; k++) check_planes(dataset, 3, first, k);
    }
    check_planes(dataset, 0, 0, NX);
    assert_ok(grv_dataset_count(dataset, &counts));
    assert_int_equal(counts.n_done, 2);
    assert_int_equal(counts.n_failed, 1);
    assert_int_equal(counts.n_missing, 2);
    assert_ok(grv_dataset_list(dataset, GRV_SAMPLE_MISSING, samples, &n));
    assert_int_equal(n, 2);
    assert_int_equal(samples[0], 1);
    assert_int_equal(samples[1], 2);
    assert_ok(grv_dataset_get_attribute(dataset, "generator", &json));
    assert_string_equal(json, "{\"problem\":\"sphere\",\"reynolds\":100.0,\"grid\":[7,3,4]}");
    grv_free(json);
    assert_ok(grv_dataset_describe(dataset, &json));
    assert_non_null(strstr(json, "\"done\": 2"));
    assert_non_null(strstr(json, "\"axes\": [\"x\", \"y\", \"z\", \"t\"]"));
    grv_free(json);
    grv_dataset_close(&dataset);
}

static void test_not_done_is_an_error(void **state)
{
    grv_dataset *dataset = NULL;
    float target[NX * TARGET_PLANE];
    (void)state;
    assert_ok(grv_dataset_open(in_folder("flow"), NULL, &dataset));
    assert_fails(grv_dataset_read(dataset, 1, 0, NX, NULL, target), GRV_E_NOT_FOUND,
                 "sample 1 of the data set is missing");
    assert_fails(grv_dataset_read(dataset, 4, 0, NX, NULL, target), GRV_E_NOT_FOUND,
                 "sample 4 of the data set failed: the solver\ndiverged at step 12");
    assert_fails(grv_dataset_read(dataset, 5, 0, NX, NULL, target), GRV_E_ARG,
                 "sample 5 asked for, the data set has 5");
    assert_fails(grv_dataset_read(dataset, 0, 4, 4, NULL, target), GRV_E_ARG,
                 "planes 4 to 8 asked for, a sample has 7");
    /* the shard was lost although the state says done */
    assert_int_equal(unlink(in_folder("flow/target/c/0/0/0/0/0/0")), 0);
    assert_fails(grv_dataset_read(dataset, 0, 0, NX, NULL, target), GRV_E_NOT_FOUND,
                 "sample 0 is marked done, but 'target' does not hold it");
    grv_dataset_close(&dataset);
}

/* A failed sample can be made after all, a done one replaced; the reason goes away. */
static void test_replace(void **state)
{
    grv_dataset *dataset = NULL;
    uint8_t states[N_SAMPLES];
    (void)state;
    const grv_dataset_desc desc = flow_desc();
    assert_ok(grv_dataset_resume(in_folder("flow"), &desc, NULL, &dataset));
    write_f32(dataset, 4);
    write_f32(dataset, 0);
    assert_ok(grv_dataset_status(dataset, states));
    assert_memory_equal(states, "\1\0\0\1\1", N_SAMPLES);
    check_planes(dataset, 4, 2, 3);
    assert_int_not_equal(access(in_folder("flow/status/reasons/4.txt"), F_OK), 0);
    grv_dataset_close(&dataset);
}

static void test_slab_reads_its_planes(void **state)
{
    grv_dataset *dataset = NULL;
    float input[2 * INPUT_PLANE], target[2 * TARGET_PLANE];
    (void)state;
    assert_ok(grv_dataset_open(in_folder("flow"), NULL, &dataset));
    assert_ok(grv_dataset_read(dataset, 3, 0, 1, input, target)); /* status and indices */
    const grv_store_counters before = grv_store_counters_get(grv_dataset_get_store(dataset));
    const int64_t n_allocations = grv_memory_get().n_allocations;
    assert_ok(grv_dataset_read(dataset, 3, 2, 2, input, target));
    const grv_store_counters after = grv_store_counters_get(grv_dataset_get_store(dataset));
    assert_int_equal(after.bytes_decoded - before.bytes_decoded,
                     2 * (INPUT_PLANE + TARGET_PLANE) * 4);
    assert_int_equal(after.read_calls - before.read_calls, 2);
    assert_int_equal(after.objects_opened - before.objects_opened, 2);
    assert_int_equal(grv_memory_get().n_allocations, n_allocations);
    grv_dataset_close(&dataset);
}

/* float64 is stored as such and read as float32, without an allocation when warm */
static void test_float64(void **state)
{
    double input[NX * INPUT_PLANE], target[NX * TARGET_PLANE];
    float read[NX * TARGET_PLANE];
    int64_t n_allocations = 0;
    grv_dataset *dataset = NULL;
    (void)state;
    grv_dataset_desc desc = flow_desc();
    desc.type = GRV_STORE_F64;
    assert_ok(grv_dataset_create(in_folder("wide"), &desc, NULL, &dataset));
    for (int64_t i = 0; i < NX * INPUT_PLANE; i++) input[i] = value_of(1, i, 0);
    for (int64_t i = 0; i < NX * TARGET_PLANE; i++) target[i] = value_of(1, i, 1);
    assert_ok(grv_dataset_write_sample(dataset, 1, input, target));
    check_planes(dataset, 1, 3, 4);
    assert_ok(grv_dataset_read(dataset, 1, 0, NX, NULL, read));
    n_allocations = grv_memory_get().n_allocations;
    assert_ok(grv_dataset_read(dataset, 1, 0, NX, NULL, read));
    assert_int_equal(grv_memory_get().n_allocations, n_allocations);
    /* finite in float64, not in float32 */
    target[5] = 1e300;
    assert_ok(grv_dataset_write_sample(dataset, 2, input, target));
    assert_fails(grv_dataset_read(dataset, 2, 0, 1, NULL, read), GRV_E_NUMERIC,
                 "sample 2 of 'target': infinity at x 0, y 0, z 0, t 1, channel 2");
    grv_dataset_close(&dataset);
}

static void test_not_finite(void **state)
{
    float input[NX * INPUT_PLANE], target[NX * TARGET_PLANE];
    const int64_t bad = 4 * TARGET_PLANE + (2 * NZ + 1) * NT * N_OUT + 1 * N_OUT + 2;
    const int64_t start[] = {0, 4, 2, 1, 1, 2}, one[] = {1, 1, 1, 1, 1, 1};
    const float nan_value = NAN;
    grv_dataset *dataset = NULL;
    grv_store *store = NULL;
    grv_array *array = NULL;
    uint8_t states[N_SAMPLES];
    (void)state;
    const grv_dataset_desc desc = flow_desc();
    assert_ok(grv_dataset_create(in_folder("nan"), &desc, NULL, &dataset));
    fill_f32(input, NX * INPUT_PLANE, 0, 0);
    fill_f32(target, NX * TARGET_PLANE, 0, 1);
    target[bad] = -INFINITY;
    assert_fails(grv_dataset_write_sample(dataset, 0, input, target), GRV_E_NUMERIC,
                 "sample 0 of 'target': infinity at x 4, y 2, z 1, t 1, channel 2");
    assert_ok(grv_dataset_status(dataset, states));
    assert_int_equal(states[0], GRV_SAMPLE_MISSING);
    write_f32(dataset, 0);
    store = open_writable(in_folder("nan"), 1);
    assert_ok(grv_array_open(store, "target", &array));
    assert_ok(grv_array_write(array, start, one, &nan_value, NULL));
    grv_array_close(&array);
    grv_store_close(&store);
    assert_ok(grv_dataset_read(dataset, 0, 0, 4, NULL, target));
    assert_fails(grv_dataset_read(dataset, 0, 3, 2, NULL, target), GRV_E_NUMERIC,
                 "sample 0 of 'target': NaN at x 4, y 2, z 1, t 1, channel 2");
    grv_dataset_set_check_finite(dataset, false);
    assert_ok(grv_dataset_read(dataset, 0, 3, 2, NULL, target));
    grv_dataset_close(&dataset);
}

static void test_axes_1_to_4(void **state)
{
    char name[16];
    (void)state;
    for (int n_axes = 1; n_axes <= 4; n_axes++) {
        static const char *const names[] = {"x", "y", "z", "t"};
        float values[625], read[625];
        int64_t n = 1;
        grv_dataset *dataset = NULL;
        grv_dataset_desc desc = grv_dataset_desc_default();
        desc.n_samples = 1;
        desc.planes_per_chunk = n_axes;
        desc.input.n_axes = n_axes;
        desc.input.n_channels = 1;
        for (int i = 0; i < n_axes; i++) {
            desc.input.axis_names[i] = names[i];
            n *= desc.input.shape[i] = 5;
        }
        desc.target = desc.input;
        (void)snprintf(name, sizeof name, "axes%d", n_axes);
        assert_ok(grv_dataset_create(in_folder(name), &desc, NULL, &dataset));
        for (int64_t i = 0; i < n; i++) values[i] = (float)i;
        assert_ok(grv_dataset_write_sample(dataset, 0, values, values));
        assert_ok(grv_dataset_read(dataset, 0, 0, 5, NULL, read));
        assert_memory_equal(read, values, (size_t)n * sizeof(float));
        grv_dataset_close(&dataset);
    }
}

static void test_resume(void **state)
{
    grv_dataset *dataset = NULL;
    (void)state;
    grv_dataset_desc desc = flow_desc();
    assert_ok(grv_dataset_resume(in_folder("resume"), &desc, NULL, &dataset));
    write_f32(dataset, 2);
    grv_dataset_close(&dataset);
    assert_ok(grv_dataset_resume(in_folder("resume"), &desc, NULL, &dataset));
    check_planes(dataset, 2, 0, NX);
    grv_dataset_close(&dataset);
    assert_fails(grv_dataset_create(in_folder("resume"), &desc, NULL, &dataset), GRV_E_EXISTS,
                 "a Zarr group or array at");
    desc.generator = "{\"problem\": \"box\"}";
    assert_fails(grv_dataset_resume(in_folder("resume"), &desc, NULL, &dataset), GRV_E_CONFIG,
                 "another configuration: problem is \"sphere\" there, \"box\" is wanted");
    desc.generator = "{\"problem\": \"sphere\", \"grid\": [7, 3, 4]}";
    assert_fails(grv_dataset_resume(in_folder("resume"), &desc, NULL, &dataset), GRV_E_CONFIG,
                 "reynolds is 100.0 there, null is wanted");
    desc = flow_desc();
    desc.seed = 1;
    assert_fails(grv_dataset_resume(in_folder("resume"), &desc, NULL, &dataset), GRV_E_CONFIG,
                 "seed 18446744073709551615, 1 is wanted");
    desc = flow_desc();
    desc.target.shape[3] = 9;
    assert_fails(grv_dataset_resume(in_folder("resume"), &desc, NULL, &dataset), GRV_E_CONFIG,
                 "axis 't' of the data set's target has 2 elements, 9");
    desc = flow_desc();
    desc.n_samples = 6;
    assert_fails(grv_dataset_resume(in_folder("resume"), &desc, NULL, &dataset), GRV_E_CONFIG,
                 "has 5 samples, 6 are wanted");
    assert_null(dataset);
}

static void test_attributes(void **state)
{
    grv_dataset *dataset = NULL;
    char *json = NULL;
    (void)state;
    const grv_dataset_desc desc = flow_desc();
    assert_ok(grv_dataset_resume(in_folder("flow"), &desc, NULL, &dataset));
    assert_ok(
        grv_dataset_set_attribute(dataset, "normalization", "{\"mean\": [0.5], \"scale\": [2.0]}"));
    assert_fails(grv_dataset_set_attribute(dataset, "normalization", "{\"mean\": "), GRV_E_FORMAT,
                 "normalization");
    assert_ok(grv_dataset_get_attribute(dataset, "normalization", &json));
    assert_string_equal(json, "{\"mean\":[0.5],\"scale\":[2.0]}");
    grv_free(json);
    assert_ok(grv_dataset_get_attribute(dataset, "units", &json));
    assert_string_equal(json, "{\"x\":\"m\",\"t\":\"s\"}");
    grv_free(json);
    assert_ok(grv_dataset_get_attribute(dataset, "nothing", &json));
    assert_null(json);
    grv_dataset_close(&dataset);
}

static void test_bad_descriptions(void **state)
{
    grv_dataset *dataset = NULL;
    (void)state;
    grv_dataset_desc desc = flow_desc();
    desc.input.shape[0] = 8;
    assert_fails(grv_dataset_create(in_folder("bad"), &desc, NULL, &dataset), GRV_E_SHAPE,
                 "axis 'x' has 8 elements in the input, 7 in the target");
    desc = flow_desc();
    desc.input.axis_names[0] = "r";
    assert_fails(grv_dataset_create(in_folder("bad"), &desc, NULL, &dataset), GRV_E_SHAPE,
                 "split axis is 'r' in the input");
    desc = flow_desc();
    desc.target.n_axes = 5;
    assert_fails(grv_dataset_create(in_folder("bad"), &desc, NULL, &dataset), GRV_E_ARG,
                 "1 to 4 axes expected, 5 found");
    desc = flow_desc();
    desc.type = GRV_STORE_I32;
    assert_fails(grv_dataset_create(in_folder("bad"), &desc, NULL, &dataset), GRV_E_ARG,
                 "not int32");
    desc = flow_desc();
    desc.generator = "{\"broken\": ";
    assert_fails(grv_dataset_create(in_folder("bad"), &desc, NULL, &dataset), GRV_E_FORMAT,
                 "attributes");
    /* nothing is left behind */
    assert_int_not_equal(access(in_folder("bad"), F_OK), 0);
    assert_fails(grv_dataset_open(in_folder("bad"), NULL, &dataset), GRV_E_NOT_FOUND,
                 "no such folder");
}

/* Several processes fill one data set; none of the samples is lost. */
static void test_processes(void **state)
{
    grv_dataset *dataset = NULL;
    pid_t children[3];
    (void)state;
    const grv_dataset_desc desc = flow_desc();
    assert_ok(grv_dataset_create(in_folder("many"), &desc, NULL, NULL));
    for (int c = 0; c < 3; c++) {
        children[c] = fork();
        assert_true(children[c] >= 0);
        if (children[c] > 0) continue;
        float input[NX * INPUT_PLANE], target[NX * TARGET_PLANE];
        bool good = grv_dataset_resume(in_folder("many"), &desc, NULL, &dataset) == GRV_OK;
        for (int64_t i = c; i < N_SAMPLES && good; i += 3) {
            fill_f32(input, NX * INPUT_PLANE, i, 0);
            fill_f32(target, NX * TARGET_PLANE, i, 1);
            good = grv_dataset_write_sample(dataset, i, input, target) == GRV_OK;
        }
        grv_dataset_close(&dataset);
        _exit(good ? 0 : 1);
    }
    for (int c = 0; c < 3; c++) {
        int result = -1;
        assert_int_equal(waitpid(children[c], &result, 0), children[c]);
        assert_int_equal(result, 0);
    }
    assert_ok(grv_dataset_open(in_folder("many"), NULL, &dataset));
    for (int64_t i = 0; i < N_SAMPLES; i++) check_planes(dataset, i, 0, NX);
    grv_dataset_close(&dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_processes),
                                       cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_not_done_is_an_error),
                                       cmocka_unit_test(test_replace),
                                       cmocka_unit_test(test_slab_reads_its_planes),
                                       cmocka_unit_test(test_float64),
                                       cmocka_unit_test(test_not_finite),
                                       cmocka_unit_test(test_axes_1_to_4),
                                       cmocka_unit_test(test_resume),
                                       cmocka_unit_test(test_attributes),
                                       cmocka_unit_test(test_bad_descriptions)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
