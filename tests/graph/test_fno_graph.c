/* The network as a graph: gradients against Taylor expansion and finite differences in double, single precision and fusion against
 * double, threads bit for bit, parameter counts, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "fno_fixture.h"

/* Counts what anyone in the process takes from the heap; grove's own large blocks are in grv_memory. Sanitizers have allocators of their own. */
static _Atomic long n_heap_calls;
static const long counts_heap_calls =
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    1;
#else
    0;
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);
GRV_API void *malloc(size_t n)
{
    n_heap_calls++;
    return __libc_malloc(n);
}
GRV_API void *calloc(size_t n, size_t size)
{
    n_heap_calls++;
    return __libc_calloc(n, size);
}
GRV_API void *realloc(void *p, size_t n)
{
    n_heap_calls++;
    return __libc_realloc(p, n);
}
GRV_API void *aligned_alloc(size_t alignment, size_t n)
{
    n_heap_calls++;
    return __libc_memalign(alignment, n);
}
#endif

static void ok(grv_status status)
{
    if (status != GRV_OK) fail_msg("%s", grv_error_trace());
}

/* networks that together use every operation and 1 to 4 axes */
static int networks(grv_fno_params *out)
{
    int n = 0;
    out[n++] = tiny_network();
    grv_fno_params p = tiny_network();
    p.activation = GRV_ACTIVATION_GELU;
    p.activation_after_last = false;
    p.lift_hidden = 0;
    p.projection_hidden = 7;
    p.n_blocks = 2;
    p.loss = GRV_LOSS_MSE;
    p.coordinates = GRV_COORDINATES_PERIODIC;
    out[n++] = p;
    p.coordinates = GRV_COORDINATES_NONE;
    p.static_input = true;
    p.padding[0] = 1;
    out[n++] = p;
    p.static_input = false;
    p.n_axes = 3;
    p.n[2] = 7;
    p.modes[2] = 4;
    p.padding[3] = 0;
    p.padding_fraction[2] = 0.3;
    out[n++] = p;
    p.n_axes = 2;
    p.padding_fraction[2] = 0;
    p.width = 5;
    out[n++] = p;
    p.n_axes = 1;
    p.modes[0] = 6;
    p.width = 3;
    p.coordinates = GRV_COORDINATES_INCLUSIVE;
    out[n++] = p;
    return n;
}

static grv_plan_params plan_of(grv_dtype dtype, int n_threads)
{
    grv_plan_params p = grv_plan_params_default();
    p.dtype = dtype;
    p.n_threads = n_threads;
    return p;
}

static double loss_along(fixture *f, const double *at, const double *direction, double h)
{
    double *const params = f->params;
    for (int64_t i = 0; i < f->n_params; i++) params[i] = at[i] + h * direction[i];
    ok(fixture_run(f));
    return grv_exec_loss(f->exec);
}

/* |L(w + h d) - L(w) - h <g, d>| falls as h^2; central differences agree with single components */
static void test_taylor(void **state)
{
    (void)state;
    grv_fno_params network[8];
    const int n = networks(network);
    for (int k = 0; k < n; k++) {
        /* ReLU has kinks that a finite step may cross */
        network[k].activation = GRV_ACTIVATION_GELU;
        fixture f;
        const grv_plan_params plan = plan_of(GRV_F64, 2);
        ok(fixture_open(&f, &network[k], 2, false, true, &plan, NULL));
        fixture_fill(&f);
        const size_t bytes = sizeof(double) * (size_t)f.n_params;
        double *const at = malloc(bytes), *const direction = malloc(bytes), *const gradient = malloc(bytes);
        memcpy(at, f.params, bytes);
        ok(fixture_run(&f));
        const double loss = grv_exec_loss(f.exec);
        memcpy(gradient, f.gradients, bytes);
        double slope = 0;
        for (int64_t i = 0; i < f.n_params; i++) {
            direction[i] = grv_random_normal(9, 9, (uint64_t)i);
            slope += direction[i] * gradient[i];
        }
        double h = 1e-3, previous = 0;
        for (int i = 0; i < 4; i++, h /= 2) {
            const double remainder = fabs(loss_along(&f, at, direction, h) - loss - h * slope);
            if (i > 0) {
                const double order = log2(previous / remainder);
                if (order < 1.95 || order > 2.05) fail_msg("network %d: Taylor order %.3f at step %d", k, order, i);
            }
            previous = remainder;
        }
        for (int i = 0; i < 16; i++) {
            const int64_t p = (int64_t)(grv_random_bits(3, 3, (uint64_t)i) % (uint64_t)f.n_params);
            memset(direction, 0, bytes);
            direction[p] = 1;
            const double e = 1e-5, numeric = (loss_along(&f, at, direction, e) - loss_along(&f, at, direction, -e)) / (2 * e);
            /* rounding eps L/e and truncation e^2 */
            if (fabs(numeric - gradient[p]) > 1e-9 + 1e-6 * fabs(gradient[p]))
                fail_msg("network %d, parameter %lld: gradient %.12g, difference quotient %.12g", k, (long long)p, gradient[p], numeric);
        }
        free(at);
        free(direction);
        free(gradient);
        fixture_close(&f);
    }
}

static void compare(const fixture *a, const fixture *b, double tolerance, int network)
{
    if (fabs(grv_exec_loss(a->exec) - grv_exec_loss(b->exec)) > tolerance * fabs(grv_exec_loss(b->exec)))
        fail_msg("network %d: loss %.9g, %.9g expected", network, grv_exec_loss(a->exec), grv_exec_loss(b->exec));
    const double output = relative_difference(grv_exec_output(a->exec, a->output), a->is_f64, grv_exec_output(b->exec, b->output), b->is_f64, 0,
                                              b->n_output);
    if (!(output <= tolerance)) fail_msg("network %d: outputs differ by %.2e", network, output);
    for (int i = 0; i < grv_graph_n_params(b->graph); i++) {
        const grv_param_slice slice = grv_plan_param(b->plan, i);
        const double gradient = relative_difference(a->gradients, a->is_f64, b->gradients, b->is_f64, slice.offset, slice.count);
        if (!(gradient <= tolerance)) fail_msg("network %d: gradients of '%s' differ by %.2e", network, grv_graph_param(b->graph, i).name, gradient);
    }
}

/* single precision, primitive and fused, against primitive double: 1e-5 of the norm, per tensor */
static void test_precision_and_fusion(void **state)
{
    (void)state;
    grv_fno_params network[8];
    const int n = networks(network);
    for (int k = 0; k < n; k++) {
        fixture reference;
        const grv_plan_params f64 = plan_of(GRV_F64, 1), f32 = plan_of(GRV_F32, 2);
        ok(fixture_open(&reference, &network[k], 2, false, true, &f64, NULL));
        fixture_fill(&reference);
        ok(fixture_run(&reference));
        for (int fused = 0; fused < 2; fused++) {
            fixture f;
            ok(fixture_open(&f, &network[k], 2, fused, true, &f32, NULL));
            fixture_fill(&f);
            ok(fixture_run(&f));
            compare(&f, &reference, 1e-5, k);
            fixture_close(&f);
        }
        fixture_close(&reference);
    }
}

/* every thread count gives the same bits */
static void test_threads(void **state)
{
    (void)state;
    grv_fno_params network[8];
    const int n = networks(network);
    for (int k = 0; k < n; k++) {
        fixture one;
        const grv_plan_params single = plan_of(GRV_F32, 1);
        ok(fixture_open(&one, &network[k], 3, true, true, &single, NULL));
        fixture_fill(&one);
        ok(fixture_run(&one));
        for (int threads = 2; threads <= 5; threads++) {
            fixture many;
            const grv_plan_params plan = plan_of(GRV_F32, threads);
            ok(fixture_open(&many, &network[k], 3, true, true, &plan, NULL));
            fixture_fill(&many);
            ok(fixture_run(&many));
            assert_memory_equal(many.gradients, one.gradients, sizeof(float) * (size_t)one.n_params);
            assert_memory_equal(grv_exec_output(many.exec, many.output), grv_exec_output(one.exec, one.output),
                                sizeof(float) * (size_t)one.n_output);
            assert_true(grv_exec_loss(many.exec) == grv_exec_loss(one.exec));
            fixture_close(&many);
        }
        fixture_close(&one);
    }
}

static int64_t count_of(const grv_fno_params *p)
{
    grv_graph *g = NULL;
    ok(grv_fno_build(p, 1, false, &g));
    const int64_t count = grv_graph_param_count(g);
    grv_graph_destroy(&g);
    return count;
}

/* spec 4.6 and anchors_users.md 2.2: counts that others published; nothing is allocated */
static void test_parameter_counts(void **state)
{
    (void)state;
    grv_fno_params p = {.n_axes = 4, .n = {130, 130, 130, 64}, .modes = {18, 18, 18, 12}, .padding = {0, 0, 0, 6}, .width = 12, .c_in = 3,
                        .c_out = 1, .lift_hidden = 6, .projection_hidden = 32, .n_blocks = 4, .activation = GRV_ACTIVATION_RELU};
    const int64_t pointwise = (3 * 6 + 6) + (6 * 12 + 12) + 4 * (12 * 12 + 12) + (12 * 32 + 32) + (32 + 1);
    assert_true(count_of(&p) == 4 * 2 * (int64_t)80621568 + pointwise);
    p = (grv_fno_params){.n_axes = 4, .n = {262, 118, 64, 86}, .modes = {16, 16, 12, 10}, .width = 10, .c_in = 4, .c_out = 1, .lift_hidden = 5,
                         .projection_hidden = 32, .n_blocks = 4, .activation = GRV_ACTIVATION_RELU};
    const int64_t sleipner = (4 * 5 + 5) + (5 * 10 + 10) + 4 * (10 * 10 + 10) + (10 * 32 + 32) + (32 + 1);
    assert_true(count_of(&p) == 4 * 2 * (int64_t)24576000 + sleipner);
    /* the FNO paper's networks: a coordinate per axis, one-layer lift, w -> 128 -> 1 */
    p = (grv_fno_params){.n_axes = 1, .n = {1024}, .modes = {16}, .width = 64, .c_in = 1, .c_out = 1, .projection_hidden = 128, .n_blocks = 4,
                         .activation = GRV_ACTIVATION_GELU, .coordinates = GRV_COORDINATES_INCLUSIVE};
    assert_true(count_of(&p) == 549569);
    p.n_axes = 2, p.n[0] = p.n[1] = 85, p.modes[0] = p.modes[1] = 12, p.width = 32;
    assert_true(count_of(&p) == 2368001);
    const int64_t batch_norms = 4 * 2 * 20; /* which those two have and grove has not */
    p.n[0] = p.n[1] = 64, p.modes[0] = p.modes[1] = 8, p.width = 20, p.c_in = 10;
    assert_true(count_of(&p) == 414517 - batch_norms);
    p.n_axes = 3, p.n[2] = 40, p.modes[2] = 8;
    assert_true(count_of(&p) == 6558537 - batch_norms);
}

static void test_errors(void **state)
{
    (void)state;
    grv_graph *g = NULL;
    grv_fno_params p = tiny_network();
    p.modes[1] = 5; /* of 9 points */
    assert_int_equal(grv_fno_build(&p, 1, true, &g), GRV_E_ARG);
    assert_null(g);
    assert_non_null(strstr(grv_error_message(), "axis 'y' of 9 points: 1 to 4 modes are possible, 5 asked for"));
    p = tiny_network();
    ok(grv_fno_build(&p, 3, true, &g));
    grv_plan_params params = grv_plan_params_default();
    grv_plan *plan = NULL;
    params.n_data = 2;
    assert_int_equal(grv_plan_create(g, &params, &plan), GRV_E_ARG);
    assert_non_null(strstr(grv_error_message(), "2 data ranks cannot share a batch of 3 samples"));
    params = grv_plan_params_default();
    params.n_domain = 4; /* axis 1 has the magnitudes 0, 1, 2 */
    assert_int_equal(grv_plan_create(g, &params, &plan), GRV_E_ARG);
    assert_non_null(strstr(grv_error_message(), "at most 3 domain ranks"));
    params.n_domain = 11;
    assert_int_equal(grv_plan_create(g, &params, &plan), GRV_E_ARG);
    assert_non_null(strstr(grv_error_message(), "at most 10 domain ranks"));
    params = grv_plan_params_default();
    params.gradients = true;
    assert_int_equal(grv_plan_create(g, &params, &plan), GRV_E_ARG);
    assert_null(plan);
    grv_graph_destroy(&g);
    p.n_axes = 1;
    p.n[0] = 8;
    p.padding[3] = 0;
    ok(grv_fno_build(&p, 1, true, &g));
    params = grv_plan_params_default();
    params.n_domain = 2;
    assert_int_equal(grv_plan_create(g, &params, &plan), GRV_E_ARG);
    assert_non_null(strstr(grv_error_message(), "one axis cannot be split"));
    grv_graph_destroy(&g);
}

/* What the plan says is what is taken, to the byte, and runs take nothing. What an executor holds beside (tables, the order of partial sums) it
 * tells itself. */
static void test_memory(void **state)
{
    (void)state;
    grv_fno_params network[8];
    const int n = networks(network);
    for (int k = 0; k < n; k++) {
        fixture f;
        const grv_plan_params plan = plan_of(GRV_F32, 2);
        ok(fixture_open(&f, &network[k], 2, true, true, &plan, NULL));
        const grv_plan_summary s = grv_plan_summarise(f.plan);
        const int64_t before = grv_memory_get().bytes;
        grv_exec_destroy(&f.exec);
        const int64_t freed = before - grv_memory_get().bytes;
        assert_true(freed > s.arena_bytes);
        ok(grv_exec_create(f.plan, NULL, &f.exec));
        assert_true(freed == s.arena_bytes + s.scratch_bytes + s.buffer_bytes + grv_exec_table_bytes(f.exec));
        fixture_fill(&f);
        for (int i = 0; i < 2; i++) ok(fixture_run(&f));
        const int64_t allocations = grv_memory_get().n_allocations;
        const long heap_calls = n_heap_calls;
        for (int i = 0; i < 3; i++) ok(fixture_run(&f));
        assert_true(grv_memory_get().n_allocations == allocations);
        assert_true(n_heap_calls == heap_calls);
        char *volatile noticed = malloc(1); /* the count counts */
        free(noticed);
        assert_true(n_heap_calls == heap_calls + counts_heap_calls);
        fixture_close(&f);
    }
}

static int64_t resident_bytes(void)
{
    long long pages[2] = {0, 0};
    FILE *const file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lld %lld", &pages[0], &pages[1]), 2);
    (void)fclose(file);
    return pages[1] * sysconf(_SC_PAGESIZE);
}

/* beyond 1 GB the process holds what the plan says within 5 % */
static void test_resident_memory(void **state)
{
    (void)state;
    if (!counts_heap_calls) skip(); /* sanitizers hold memory of their own */
    grv_fno_params p = tiny_network();
    const int64_t n[] = {48, 48, 48, 16};
    memcpy(p.n, n, sizeof n);
    p.width = 12;
    p.n_blocks = 2;
    p.padding[3] = 0;
    const int64_t before = resident_bytes();
    fixture f;
    const grv_plan_params plan = plan_of(GRV_F32, 2);
    ok(fixture_open(&f, &p, 3, true, true, &plan, NULL));
    fixture_fill(&f);
    ok(fixture_run(&f));
    const grv_plan_summary s = grv_plan_summarise(f.plan);
    /* the fixture's own parameters, gradients and fields: 8 bytes a number are reserved, 4 touched */
    const int64_t expected = s.arena_bytes + s.scratch_bytes + s.buffer_bytes + grv_exec_table_bytes(f.exec) + 2 * s.param_bytes +
                             4 * (f.n_input + f.n_output);
    const int64_t found = resident_bytes() - before;
    assert_true(expected > 1000000000);
    if (fabs((double)(found - expected)) > 0.05 * (double)expected)
        fail_msg("%.1f MB planned, %.1f MB resident", 1e-6 * (double)expected, 1e-6 * (double)found);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_taylor),           cmocka_unit_test(test_precision_and_fusion),
                                       cmocka_unit_test(test_threads),          cmocka_unit_test(test_parameter_counts),
                                       cmocka_unit_test(test_errors),           cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_resident_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
