/* A network with its parameters, fields and one run: what tests of graphs, plans and ranks share. Header-only; cmocka assertions. */
#ifndef FNO_FIXTURE_H
#define FNO_FIXTURE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grove/core.h"
#include "grove/fno.h"
#include "grove/plan.h"

typedef struct fixture {
    grv_graph *graph;
    grv_plan *plan;
    grv_exec *exec;
    grv_value input, target, output;
    int64_t n_params, n_input, n_output; /* local numbers */
    void *params, *gradients, *fields[2];
    bool is_f64;
} fixture;

static inline double get_number(const void *data, bool is_f64, int64_t i)
{
    return is_f64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static inline void set_number(void *data, bool is_f64, int64_t i, double value)
{
    if (is_f64) ((double *)data)[i] = value;
    else ((float *)data)[i] = (float)value;
}

/* The small configuration of the paper (spec 13), with sizes that divide by nothing. */
static inline grv_fno_params tiny_network(void)
{
    grv_fno_params p = grv_fno_params_default();
    const int64_t n[] = {10, 9, 8, 6}, modes[] = {2, 2, 2, 2};
    memcpy(p.n, n, sizeof n);
    memcpy(p.modes, modes, sizeof modes);
    p.padding[3] = 2;
    p.width = 4;
    p.lift_hidden = 2;
    return p;
}

static inline void fixture_close(fixture *f)
{
    grv_exec_destroy(&f->exec);
    grv_plan_destroy(&f->plan);
    grv_graph_destroy(&f->graph);
    free(f->params);
    free(f->gradients);
    free(f->fields[0]);
    free(f->fields[1]);
}

/* Everything up to the first run; numbers are set by fixture_fill. gradients: differentiate. */
static inline grv_status fixture_open(fixture *f, const grv_fno_params *network, int64_t n_samples, bool fused, bool gradients,
                                      const grv_plan_params *plan_params, grv_comm *comm)
{
    *f = (fixture){.is_f64 = plan_params->dtype == GRV_F64};
    grv_status status = grv_fno_build(network, n_samples, true, &f->graph);
    if (status == GRV_OK && fused) {
        grv_graph *primitive = f->graph;
        status = grv_graph_fuse(primitive, &f->graph);
        grv_graph_destroy(&primitive);
    }
    if (status == GRV_OK && gradients) status = grv_graph_differentiate(f->graph);
    grv_plan_params params = *plan_params;
    params.gradients = gradients;
    if (status == GRV_OK) status = grv_plan_create(f->graph, &params, &f->plan);
    if (status == GRV_OK) status = grv_exec_create(f->plan, comm, &f->exec);
    if (status != GRV_OK) return status;
    f->input = grv_graph_find_input(f->graph, "input");
    f->target = grv_graph_find_input(f->graph, "target");
    f->output = grv_graph_find_output(f->graph, "output");
    f->n_params = grv_plan_summarise(f->plan).param_count;
    f->n_input = grv_plan_field_count(f->plan, f->input);
    f->n_output = grv_plan_field_count(f->plan, f->target);
    f->params = calloc((size_t)f->n_params, 8);
    f->gradients = calloc((size_t)f->n_params, 8);
    f->fields[0] = calloc((size_t)f->n_input, 8);
    f->fields[1] = calloc((size_t)f->n_output, 8);
    return GRV_OK;
}

static inline grv_status fixture_run(fixture *f)
{
    const void *const fields[] = {f->fields[0], f->fields[1]};
    const grv_bindings bindings = {.params = f->params, .gradients = f->gradients, .fields = fields};
    return grv_exec_run(f->exec, &bindings);
}

/* Numbers that depend on their index only; parameters spread so that every term of the network matters. */
static inline void fixture_fill(fixture *f)
{
    for (int64_t i = 0; i < f->n_params; i++) set_number(f->params, f->is_f64, i, (double)(float)(0.6 * grv_random_uniform(5, 1, (uint64_t)i) - 0.3));
    for (int64_t i = 0; i < f->n_input; i++) set_number(f->fields[0], f->is_f64, i, (double)(float)grv_random_normal(5, 2, (uint64_t)i));
    for (int64_t i = 0; i < f->n_output; i++) set_number(f->fields[1], f->is_f64, i, (double)(float)grv_random_normal(5, 3, (uint64_t)i));
}

/* ||a - b|| / ||b|| over [begin, begin + n) */
static inline double relative_difference(const void *a, bool a_f64, const void *b, bool b_f64, int64_t begin, int64_t n)
{
    double error = 0, norm = 0;
    for (int64_t i = begin; i < begin + n; i++) {
        const double x = get_number(a, a_f64, i), y = get_number(b, b_f64, i);
        error += (x - y) * (x - y);
        norm += y * y;
    }
    return norm > 0 ? sqrt(error / norm) : sqrt(error);
}

#endif
