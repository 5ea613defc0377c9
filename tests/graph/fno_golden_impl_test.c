/* Outputs, loss and the gradient of every parameter against PyTorch in double (tests/golden): primitive double to rounding, single precision,
 * primitive and fused, to 1e-5 of the norm per tensor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/json.h"
#include "fno_fixture.h"
#include "grove/safetensors.h"
#include "kernels/mode_mix.h"

enum { MAX_SHARDS = 8 };

static void ok(grv_status status)
{
    if (status != GRV_OK) fail_msg("%s", grv_error_trace());
}

typedef struct golden {
    int n_shards;
    grv_safetensors *shards[MAX_SHARDS];
    grv_fno_params network;
    int64_t n_samples;
} golden;

static void open_golden(golden *g, const char *name)
{
    char path[512];
    g->n_shards = 0;
    (void)snprintf(path, sizeof path, "%s/tests/golden/%s.safetensors", GRVI_TEST_SOURCE_DIR, name);
    if (grv_safetensors_open(path, &g->shards[0]) == GRV_OK) {
        g->n_shards = 1;
        return;
    }
    for (int of = 2; of <= MAX_SHARDS && g->n_shards == 0; of++)
        for (int i = 1; i <= of; i++) {
            (void)snprintf(path, sizeof path, "%s/tests/golden/%s-%05d-of-%05d.safetensors", GRVI_TEST_SOURCE_DIR, name, i, of);
            if (grv_safetensors_open(path, &g->shards[g->n_shards]) != GRV_OK) break;
            g->n_shards++;
        }
    if (g->n_shards == 0) fail_msg("tests/golden/%s is missing", name);
}

/* a whole tensor as doubles; free it */
static double *tensor(const golden *g, const char *prefix, const char *name, int64_t count)
{
    char full[128];
    (void)snprintf(full, sizeof full, "%s%s", prefix, name);
    for (int i = 0; i < g->n_shards; i++) {
        const grv_safetensors_tensor *const t = grv_safetensors_find(g->shards[i], full);
        if (t == NULL) continue;
        assert_int_equal(t->dtype, GRV_SAFETENSORS_F64);
        if (t->bytes != count * 8) fail_msg("%s: %lld numbers, %lld expected", full, (long long)t->bytes / 8, (long long)count);
        double *const data = malloc((size_t)t->bytes);
        ok(grv_safetensors_read(g->shards[i], t, 0, t->bytes, data));
        return data;
    }
    fail_msg("%s is missing", full);
    return NULL;
}

static int64_t integer(const grvi_json *node, const char *key)
{
    int64_t value = 0;
    if (!grvi_json_as_i64(grvi_json_get(node, key), &value)) fail_msg("config: '%s' is no integer", key);
    return value;
}

static bool truth(const grvi_json *node, const char *key)
{
    bool value = false;
    if (!grvi_json_as_bool(grvi_json_get(node, key), &value)) fail_msg("config: '%s' is no bool", key);
    return value;
}

static bool is_word(const grvi_json *node, const char *key, const char *word)
{
    const char *const text = grvi_json_as_string(grvi_json_get(node, key));
    return text != NULL && strcmp(text, word) == 0;
}

static void read_config(golden *g)
{
    const char *const text = grv_safetensors_metadata(g->shards[0], "config");
    grvi_json *c = NULL;
    assert_non_null(text);
    ok(grvi_json_parse(text, (int64_t)strlen(text), "config", &c));
    grv_fno_params p = {.n_axes = (int)grvi_json_length(grvi_json_get(c, "n"))};
    for (int a = 0; a < p.n_axes; a++) {
        assert_true(grvi_json_as_i64(grvi_json_at(grvi_json_get(c, "n"), a), &p.n[a]));
        assert_true(grvi_json_as_i64(grvi_json_at(grvi_json_get(c, "modes"), a), &p.modes[a]));
        assert_true(grvi_json_as_i64(grvi_json_at(grvi_json_get(c, "pad"), a), &p.padding[a]));
    }
    p.width = integer(c, "width");
    p.c_in = integer(c, "c_in");
    p.c_out = integer(c, "c_out");
    p.n_blocks = (int)integer(c, "blocks");
    (void)grvi_json_as_i64(grvi_json_at(grvi_json_get(c, "lift_hidden"), 0), &p.lift_hidden);
    (void)grvi_json_as_i64(grvi_json_at(grvi_json_get(c, "projection_hidden"), 0), &p.projection_hidden);
    assert_int_equal(truth(c, "lift_last"), p.lift_hidden > 0); /* grove knows these two lifts */
    p.activation = is_word(c, "activation", "relu") ? GRV_ACTIVATION_RELU : GRV_ACTIVATION_GELU;
    p.activation_after_last = truth(c, "block_last");
    p.coordinates = truth(c, "coordinates") ? GRV_COORDINATES_INCLUSIVE : GRV_COORDINATES_NONE;
    p.loss = is_word(c, "loss", "mse") ? GRV_LOSS_MSE : GRV_LOSS_RELATIVE_L2;
    g->n_samples = integer(c, "samples");
    g->network = p;
    grvi_json_free(c);
}

/* where the numbers of a canonical tensor lie in the packed one: place[canonical] = packed; free it */
static int64_t *places(const fixture *f, const golden *g, int i)
{
    const grv_param_info info = grv_graph_param(f->graph, i);
    int64_t *const place = malloc(sizeof *place * (size_t)info.count);
    for (int64_t k = 0; k < info.count; k++) place[k] = k;
    if (!info.owned) return place;
    grvi_spectral_layout layout;
    grvi_mode_mix mix;
    int64_t padded[4];
    const int d = g->network.n_axes;
    const int64_t c = g->network.width;
    for (int a = 0; a < d; a++) padded[a] = g->network.n[a] + g->network.padding[a];
    ok(grvi_spectral_layout_init(&layout, d, padded, g->network.modes, c));
    ok(grvi_mode_mix_init(&mix, &layout, 0, grvi_axis_magnitudes(&layout.axis[d > 1])));
    int64_t *const canonical = malloc(sizeof *canonical * (size_t)mix.n_modes);
    grvi_mode_mix_canonical(&mix, canonical);
    for (int64_t j = 0; j < mix.n_modes; j++)
        for (int64_t in = 0; in < c; in++)
            for (int64_t out = 0; out < c; out++)
                for (int64_t part = 0; part < 2; part++)
                    place[((canonical[j] * c + in) * c + out) * 2 + part] = ((j * c + in) * 2 + part) * c + out;
    free(canonical);
    return place;
}

static void check_close(const char *what, double difference, double tolerance)
{
    if (!(difference <= tolerance)) fail_msg("%s differs by %.2e of its norm, %.0e allowed", what, difference, tolerance);
}

static void check_case(const golden *g, bool is_f64, bool fused, double tolerance)
{
    fixture f;
    grv_plan_params plan = grv_plan_params_default();
    plan.dtype = is_f64 ? GRV_F64 : GRV_F32;
    ok(fixture_open(&f, &g->network, g->n_samples, fused, true, &plan, NULL));
    const char *const names[] = {"input", "target"};
    const int64_t counts[] = {f.n_input, f.n_output};
    for (int k = 0; k < 2; k++) {
        double *const field = tensor(g, "", names[k], counts[k]);
        for (int64_t i = 0; i < counts[k]; i++) set_number(f.fields[k], is_f64, i, field[i]);
        free(field);
    }
    const int n_params = grv_graph_n_params(f.graph);
    for (int i = 0; i < n_params; i++) {
        const grv_param_info info = grv_graph_param(f.graph, i);
        double *const values = tensor(g, "param.", info.name, info.count);
        int64_t *const place = places(&f, g, i);
        for (int64_t k = 0; k < info.count; k++) set_number(f.params, is_f64, grv_plan_param(f.plan, i).offset + place[k], values[k]);
        free(values);
        free(place);
    }
    ok(fixture_run(&f));
    double *const output = tensor(g, "", "output", f.n_output), *const loss = tensor(g, "", "loss", 1);
    check_close("output", relative_difference(grv_exec_output(f.exec, f.output), is_f64, output, true, 0, f.n_output), tolerance);
    check_close("loss", fabs(grv_exec_loss(f.exec) - loss[0]) / loss[0], tolerance);
    free(output);
    free(loss);
    for (int i = 0; i < n_params; i++) {
        const grv_param_info info = grv_graph_param(f.graph, i);
        double *const expected = tensor(g, "grad.", info.name, info.count), *const found = malloc(sizeof *found * (size_t)info.count);
        int64_t *const place = places(&f, g, i);
        for (int64_t k = 0; k < info.count; k++) found[k] = get_number(f.gradients, is_f64, grv_plan_param(f.plan, i).offset + place[k]);
        check_close(info.name, relative_difference(found, true, expected, true, 0, info.count), tolerance);
        free(expected);
        free(found);
        free(place);
    }
    fixture_close(&f);
}

static void check_golden(const char *name)
{
    golden g;
    open_golden(&g, name);
    read_config(&g);
    check_case(&g, true, false, 1e-11);
    check_case(&g, false, false, 1e-5);
    check_case(&g, false, true, 1e-5);
    for (int i = 0; i < g.n_shards; i++) grv_safetensors_close(&g.shards[i]);
}

static void test_tiny(void **state) { (void)state, check_golden("fno_tiny"); }
static void test_peer(void **state) { (void)state, check_golden("fno_peer"); }
static void test_one_axis(void **state) { (void)state, check_golden("fno_1d"); }
static void test_two_axes(void **state) { (void)state, check_golden("fno_2d"); }
static void test_three_axes(void **state) { (void)state, check_golden("fno_3d"); }
static void test_every_mode(void **state) { (void)state, check_golden("fno_edge"); }
static void test_every_mode_of_one_axis(void **state) { (void)state, check_golden("fno_edge_1d"); }

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiny),      cmocka_unit_test(test_peer),       cmocka_unit_test(test_one_axis),
                                       cmocka_unit_test(test_two_axes),  cmocka_unit_test(test_three_axes), cmocka_unit_test(test_every_mode),
                                       cmocka_unit_test(test_every_mode_of_one_axis)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
