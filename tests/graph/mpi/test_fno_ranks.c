/* Predictions, losses and gradients have the same bits on any mesh of ranks, on sizes that do not divide: every mesh that the number of
 * ranks allows, against a run of the same network on this rank alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "fno_fixture.h"
#include "kernels/spectral_layout.h"

static grv_comm *world;

static void ok(grv_status status)
{
    if (status != GRV_OK) fail_msg("%s", grv_error_trace());
}

/* planes [first, first + count) of every sample of this rank, out of a whole field */
static void cut_field(const float *whole, int64_t n_planes, int64_t plane, grv_range samples, grv_range planes, float *part)
{
    for (int64_t s = 0; s < samples.count; s++)
        memcpy(part + s * planes.count * plane, whole + ((samples.start + s) * n_planes + planes.start) * plane,
               sizeof(float) * (size_t)(planes.count * plane));
}

static int64_t owned_start(const grv_fno_params *p, grv_range magnitudes)
{
    grvi_spectral_layout layout;
    int64_t padded[4];
    for (int a = 0; a < p->n_axes; a++) padded[a] = p->n[a] + p->padding[a];
    ok(grvi_spectral_layout_init(&layout, p->n_axes, padded, p->modes, p->width));
    return grvi_spectral_modes_before(&layout, magnitudes.start) * 2 * p->width * p->width;
}

static void check_mesh(const grv_fno_params *p, int64_t n_samples, int n_data, int n_domain, int n_threads, const fixture *whole)
{
    grv_plan_params plan = grv_plan_params_default();
    plan.n_data = n_data;
    plan.n_domain = n_domain;
    plan.n_threads = n_threads;
    plan.rank = grv_comm_rank(world);
    fixture part;
    ok(fixture_open(&part, p, n_samples, true, true, &plan, world));
    const grv_range samples = grv_plan_samples(part.plan), planes = grv_plan_planes(part.plan, part.input);
    int64_t plane = 1;
    for (int a = 1; a < p->n_axes; a++) plane *= p->n[a];
    cut_field(whole->fields[0], p->n[0], plane * p->c_in, samples, planes, part.fields[0]);
    cut_field(whole->fields[1], p->n[0], plane * p->c_out, samples, planes, part.fields[1]);
    for (int i = 0; i < grv_graph_n_params(part.graph); i++) {
        const grv_param_slice from = grv_plan_param(whole->plan, i), to = grv_plan_param(part.plan, i);
        const int64_t skip = grv_graph_param(part.graph, i).owned ? owned_start(p, to.magnitudes) : 0;
        memcpy((float *)part.params + to.offset, (const float *)whole->params + from.offset + skip, sizeof(float) * (size_t)to.count);
    }
    ok(fixture_run(&part));
    assert_true(grv_exec_loss(part.exec) == grv_exec_loss(whole->exec));
    float *const expected = malloc(sizeof(float) * (size_t)part.n_output);
    cut_field(grv_exec_output(whole->exec, whole->output), p->n[0], plane * p->c_out, samples, planes, expected);
    assert_memory_equal(grv_exec_output(part.exec, part.output), expected, sizeof(float) * (size_t)part.n_output);
    free(expected);
    for (int i = 0; i < grv_graph_n_params(part.graph); i++) {
        const grv_param_slice from = grv_plan_param(whole->plan, i), to = grv_plan_param(part.plan, i);
        const int64_t skip = grv_graph_param(part.graph, i).owned ? owned_start(p, to.magnitudes) : 0;
        const float *const a = (const float *)part.gradients + to.offset, *const b = (const float *)whole->gradients + from.offset + skip;
        for (int64_t k = 0; k < to.count; k++)
            if (memcmp(&a[k], &b[k], sizeof *a) != 0)
                fail_msg("mesh %d x %d, rank %d, gradient of '%s' [%lld]: %.9g, %.9g expected", n_data, n_domain, plan.rank,
                         grv_graph_param(part.graph, i).name, (long long)k, (double)a[k], (double)b[k]);
    }
    fixture_close(&part);
}

static void check_network(const grv_fno_params *p, int64_t n_samples)
{
    const int n_ranks = grv_comm_size(world);
    fixture whole;
    const grv_plan_params single = grv_plan_params_default();
    ok(fixture_open(&whole, p, n_samples, true, true, &single, NULL));
    fixture_fill(&whole);
    ok(fixture_run(&whole));
    for (int n_domain = 1; n_domain <= n_ranks; n_domain++) {
        if (n_ranks % n_domain != 0 || n_samples % (n_ranks / n_domain) != 0) continue;
        for (int threads = 1; threads <= (n_ranks <= 2 ? 2 : 1); threads++) check_mesh(p, n_samples, n_ranks / n_domain, n_domain, threads, &whole);
    }
    fixture_close(&whole);
}

static grv_fno_params ranks_network(void)
{
    grv_fno_params p = tiny_network();
    p.modes[1] = 3; /* four magnitudes: up to four domain ranks */
    return p;
}

static void test_four_axes(void **state)
{
    (void)state;
    const grv_fno_params p = ranks_network();
    check_network(&p, 2);
    check_network(&p, 4);
    check_network(&p, 3);
}

static void test_gelu_and_padded_first_axis(void **state)
{
    (void)state;
    grv_fno_params p = ranks_network();
    p.activation = GRV_ACTIVATION_GELU;
    p.activation_after_last = false;
    p.n[0] = 9;
    p.padding[0] = 2;
    p.lift_hidden = 0;
    p.coordinates = GRV_COORDINATES_PERIODIC;
    p.loss = GRV_LOSS_MSE;
    check_network(&p, 2);
}

static void test_fewer_axes(void **state)
{
    (void)state;
    grv_fno_params p = ranks_network();
    p.n_axes = 3;
    p.padding[3] = 0;
    p.modes[2] = 3;
    check_network(&p, 2);
    p.n_axes = 2;
    p.modes[1] = 4;
    check_network(&p, 4);
}

/* one rank fails in its own way: all return its message */
static void test_error_on_every_rank(void **state)
{
    (void)state;
    const grv_fno_params p = ranks_network();
    grv_graph *g = NULL;
    grv_plan *plan = NULL;
    ok(grv_fno_build(&p, 1, false, &g));
    grv_plan_params params = grv_plan_params_default();
    params.n_domain = grv_comm_size(world);
    params.rank = grv_comm_rank(world);
    ok(grv_plan_create(g, &params, &plan));
    const grv_status mine = grv_comm_rank(world) == grv_comm_size(world) - 1 ? GRV_E_NOMEM : GRV_OK;
    assert_int_equal(grv_comm_agree(world, mine), GRV_E_NOMEM);
    grv_plan_destroy(&plan);
    grv_graph_destroy(&g);
}

int main(void)
{
    if (grv_mpi_start() != GRV_OK || grv_comm_create_world(&world) != GRV_OK) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_four_axes), cmocka_unit_test(test_gelu_and_padded_first_axis),
                                       cmocka_unit_test(test_fewer_axes), cmocka_unit_test(test_error_on_every_rank)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    grv_comm_destroy(&world);
    grv_mpi_stop();
    return failed;
}
