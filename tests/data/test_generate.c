/* Making data sets of flows: what a flow depends on, stopping and repeating, failed flows, refusals. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>

#include "grove/dataset.h"
#include "grove/generate.h"
#include "grove/triangles.h"
#include "store_support.h"
#include "surface_oracle.h"

enum { N_FLOWS = 5, N_CELLS = 12 * 10 * 8, N_INPUT = 3 * N_CELLS, N_TARGET = 2 * N_CELLS };

static grv_generate_config config_of(const char *name)
{
    static const char *const settings[] = {"samples=5",
                                           "grid=12,10,8",
                                           "radius=1.5",
                                           "snapshots=2",
                                           "interval=0.5",
                                           "threads=1",
                                           "centre.min=0.3,0.3,0.3",
                                           "centre.max=0.7,0.7,0.7"};
    grv_generate_config config = {0};
    char output[600];
    assert_ok(grv_config_defaults(grv_generate_options(), &config));
    (void)snprintf(output, sizeof output, "output=%s", in_folder(name));
    assert_ok(grv_config_set(grv_generate_options(), &config, output));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        assert_ok(grv_config_set(grv_generate_options(), &config, settings[i]));
    return config;
}

static void free_config(grv_generate_config *config)
{
    grv_config_fini(grv_generate_options(), config);
}

static grv_generate_result generate_ok(grv_generate_config *config)
{
    grv_generate_result result;
    assert_ok(grv_generate(config, NULL, NULL, NULL, &result));
    free_config(config);
    return result;
}

static void assert_same_samples(const char *a, const char *b, int64_t n)
{
    static float input[2][N_INPUT], target[2][N_TARGET];
    grv_dataset *data[2] = {NULL, NULL};
    assert_ok(grv_dataset_open(in_folder(a), NULL, &data[0]));
    assert_ok(grv_dataset_open(in_folder(b), NULL, &data[1]));
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++)
            assert_ok(grv_dataset_read(data[k], i, 0, 12, input[k], target[k]));
        assert_memory_equal(input[0], input[1], sizeof input[0]);
        assert_memory_equal(target[0], target[1], sizeof target[0]);
    }
    grv_dataset_close(&data[0]);
    grv_dataset_close(&data[1]);
}

static void test_result(void **state)
{
    static float input[2][N_INPUT], target[2][N_TARGET];
    grv_dataset *data = NULL;
    (void)state;
    grv_generate_config config = config_of("flows");
    const grv_generate_result result = generate_ok(&config);
    assert_int_equal(result.n_made, N_FLOWS);
    assert_int_equal(result.n_done, N_FLOWS);
    assert_int_equal(result.n_failed, 0);
    assert_true(result.seconds > 0 && result.seconds_per_sample > 0);
    assert_ok(grv_dataset_open(in_folder("flows"), NULL, &data));
    const grv_dataset_desc *const desc = grv_dataset_get_desc(data);
    assert_int_equal(desc->n_samples, N_FLOWS);
    assert_int_equal(desc->input.n_axes, 3);
    assert_int_equal(desc->target.n_axes, 4);
    assert_int_equal(desc->target.shape[3], 2);
    /* clipped and scaled to [-1, 1], something of it everywhere but not nothing; other places, other flows */
    for (int64_t i = 0; i < 2; i++)
        assert_ok(grv_dataset_read(data, i, 0, 12, input[i], target[i]));
    float most = 0;
    for (int64_t i = 0; i < N_TARGET; i++) {
        const float size = target[0][i] < 0 ? -target[0][i] : target[0][i];
        assert_true(size <= 1);
        most = size > most ? size : most;
    }
    assert_true(most > 0.1F);
    assert_true(memcmp(input[0], input[1], sizeof input[0]) != 0);
    grv_dataset_close(&data);
}

static void test_made_once(void **state)
{
    (void)state;
    grv_generate_config config = config_of("flows");
    config.threads = 2; /* and where it runs does not matter */
    const grv_generate_result result = generate_ok(&config);
    assert_int_equal(result.n_made, 0);
    assert_int_equal(result.n_done, N_FLOWS);
    assert_true(result.seconds_per_sample > 0);
    /* threads do not change a flow */
    config = config_of("threads");
    config.threads = 3;
    (void)generate_ok(&config);
    assert_same_samples("flows", "threads", N_FLOWS);
}

static bool stop_soon(void *argument)
{
    return atomic_fetch_add((_Atomic int *)argument, 1) >= 2;
}

static void test_stop_and_repeat(void **state)
{
    (void)state;
    grv_generate_config config = config_of("stopped");
    grv_generate_result result = {0};
    int64_t n_made = 0;
    int calls = 0;
    for (grv_status status = GRV_E_INTERRUPTED; status != GRV_OK; calls++) {
        _Atomic int n_asked = 0;
        assert_true(calls <= N_FLOWS);
        status = grv_generate(&config, NULL, stop_soon, &n_asked, &result);
        if (status != GRV_OK && (status != GRV_E_INTERRUPTED ||
                                 strstr(grv_error_message(), "run it again to go on") == NULL))
            fail_msg("%s", grv_error_trace());
        assert_true(result.n_made >= 1); /* a flow that runs is finished */
        n_made += result.n_made;
        assert_int_equal(result.n_done, n_made);
    }
    free_config(&config);
    assert_int_equal(n_made, N_FLOWS);
    assert_true(calls >= 2);
    assert_same_samples("flows", "stopped", N_FLOWS);
}

/* a failed flow is tried once more; a missing one is made */
static void test_failed_again(void **state)
{
    grv_dataset *data = NULL;
    grv_store_params writable = grv_store_params_default();
    (void)state;
    writable.writable = true;
    assert_ok(grv_dataset_open(in_folder("stopped"), &writable, &data));
    assert_ok(grv_dataset_mark_failed(data, 3, "for the test"));
    grv_dataset_close(&data);
    grv_generate_config config = config_of("stopped");
    const grv_generate_result result = generate_ok(&config);
    assert_int_equal(result.n_made, 1);
    assert_int_equal(result.n_done, N_FLOWS);
    assert_same_samples("flows", "stopped", N_FLOWS);
}

/* the first samples of a larger set are those of a smaller one, another seed gives others */
static void test_sample_depends_on_its_number(void **state)
{
    static float input[2][N_INPUT];
    grv_dataset *data = NULL;
    (void)state;
    grv_generate_config config = config_of("more");
    config.samples = N_FLOWS + 1;
    (void)generate_ok(&config);
    assert_same_samples("flows", "more", N_FLOWS);
    config = config_of("seed");
    config.samples = 1;
    config.seed = 2;
    (void)generate_ok(&config);
    assert_ok(grv_dataset_open(in_folder("seed"), NULL, &data));
    assert_ok(grv_dataset_read(data, 0, 0, 12, input[0], NULL));
    grv_dataset_close(&data);
    assert_ok(grv_dataset_open(in_folder("flows"), NULL, &data));
    assert_ok(grv_dataset_read(data, 0, 0, 12, input[1], NULL));
    grv_dataset_close(&data);
    assert_true(memcmp(input[0], input[1], sizeof input[0]) != 0);
}

static void check_refusal(const char *name, const char *setting, grv_status expected,
                          const char *text)
{
    grv_generate_config config = config_of(name);
    grv_generate_result result;
    assert_ok(grv_config_set(grv_generate_options(), &config, setting));
    assert_fails(grv_generate(&config, NULL, NULL, NULL, &result), expected, text);
    free_config(&config);
}

/* A box of half sides 1.5, 1 and `third`, in another unit and elsewhere. */
static void write_box(const char *path, double third)
{
    const double lower[3] = {70, 80, 90 - 10 * third}, upper[3] = {100, 100, 90 + 10 * third};
    test_surface box = surface_box(lower, upper);
    grv_triangles *triangles = NULL;
    grv_mesh *mesh = NULL;
    assert_ok(grv_triangles_create(GRV_STORE_F64, 8, box.vertices, 12, box.triangles, &triangles));
    assert_ok(grv_triangles_to_mesh(triangles, &mesh));
    assert_ok(grv_mesh_write(mesh, path, NULL));
    grv_mesh_destroy(&mesh);
    grv_triangles_destroy(&triangles);
    surface_free(&box);
}

static void expect_attribute(const char *name, const char *part)
{
    grv_dataset *data = NULL;
    char *text = NULL;
    assert_ok(grv_dataset_open(in_folder(name), NULL, &data));
    assert_ok(grv_dataset_get_attribute(data, "body", &text));
    if (text == NULL || strstr(text, part) == NULL) fail_msg("'%s' expected in: %s", part, text);
    grv_free(text);
    grv_dataset_close(&data);
}

static void set(grv_generate_config *config, const char *key, const char *value)
{
    char assignment[700];
    (void)snprintf(assignment, sizeof assignment, "%s=%s", key, value);
    assert_ok(grv_config_set(grv_generate_options(), config, assignment));
}

/* A turned body from a file: the data set is continued with that surface only, wherever its file lies. */
static void test_body(void **state)
{
    static float input[N_INPUT];
    grv_dataset *data = NULL;
    (void)state;
    write_box(in_folder("box.stl"), 1);
    assert_int_equal(mkdir(in_folder("elsewhere"), 0700), 0);
    for (int k = 0; k < 3; k++) {
        _Atomic int n_asked = 0;
        grv_generate_config config = config_of("box");
        grv_generate_result result;
        set(&config, "body", in_folder(k == 0 ? "box.stl" : "elsewhere/box.stl"));
        set(&config, "rotation", "0,0,90");
        set(&config, "exit", "true");
        if (k > 0) write_box(in_folder("elsewhere/box.stl"), k == 1 ? 0.2 : 1);
        if (k == 0)
            assert_fails(grv_generate(&config, NULL, stop_soon, &n_asked, &result),
                         GRV_E_INTERRUPTED, "");
        if (k == 1)
            assert_fails(grv_generate(&config, NULL, NULL, NULL, &result), GRV_E_CONFIG,
                         "body box.stl: the surface that the data set was begun with expected");
        if (k < 2)
            free_config(&config);
        else
            assert_int_equal(generate_ok(&config).n_done, N_FLOWS);
    }
    write_box(in_folder("elsewhere/box.stl"), 0.2);
    expect_attribute("box",
                     "\"triangles\":12,\"open_edges\":0,\"thin_parts\":0");
    /* the longer side is along y now */
    int64_t low[3] = {99, 99, 99}, high[3] = {0, 0, 0};
    assert_ok(grv_dataset_open(in_folder("box"), NULL, &data));
    assert_ok(grv_dataset_read(data, 0, 0, 12, input, NULL));
    grv_dataset_close(&data);
    for (int64_t i = 0; i < N_CELLS; i++) {
        const int64_t at[3] = {i / 80, i / 8 % 10, i % 8};
        if (at[0] == 0 || at[1] == 0 || at[2] == 0 || input[3 * i + 2] > 0.6F) continue;
        for (int a = 0; a < 3; a++) {
            low[a] = at[a] < low[a] ? at[a] : low[a];
            high[a] = at[a] > high[a] ? at[a] : high[a];
        }
    }
    assert_int_equal(high[0] - low[0], 1);
    assert_int_equal(high[1] - low[1], 3);
    grv_generate_config config = config_of("thin");
    set(&config, "body", in_folder("elsewhere/box.stl"));
    (void)generate_ok(&config);
    expect_attribute("thin", "\"thin_parts\":1");
    check_refusal("box", "radius=1.4", GRV_E_CONFIG, "another configuration");
}

static void test_refusals(void **state)
{
    (void)state;
    check_refusal("flows", "reynolds=100", GRV_E_CONFIG, "another configuration");
    check_refusal("flows", "samples=7", GRV_E_CONFIG, "has 5 samples, 7 are wanted");
    check_refusal("flows", "seed=7", GRV_E_CONFIG, "");
    check_refusal("none", "radius=6", GRV_E_CONFIG,
                  "a body from -6 to 6 about its centre has no place");
    check_refusal("none", "rotation=0,0,5", GRV_E_CONFIG, "a sphere cannot be turned");
    check_refusal("none", "body=none.stl", GRV_E_NOT_FOUND, "none.stl");
    assert_int_not_equal(access(in_folder("none"), F_OK), 0);
    write_file(in_folder("file"), "x", 1);
    grv_generate_config config = config_of("file");
    grv_generate_result result;
    assert_true(grv_generate(&config, NULL, NULL, NULL, &result) < 0);
    assert_non_null(strstr(grv_error_message(), "file"));
    free_config(&config);
    assert_int_equal(grv_memory_get().bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_result),
                                       cmocka_unit_test(test_made_once),
                                       cmocka_unit_test(test_stop_and_repeat),
                                       cmocka_unit_test(test_failed_again),
                                       cmocka_unit_test(test_sample_depends_on_its_number),
                                       cmocka_unit_test(test_body),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
