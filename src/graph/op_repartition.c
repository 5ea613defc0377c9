/* Moves a value from one split to another: an operation of the plan. What moves is a box of
 *   plain order  [sample][axis 0][axis 1][the rest]
 *   slab order   [sample][r_1][block number][x][block]
 *   mode order   [sample][r_1][r_0][columns] */
#include "core/alloc.h"
#include "dist/tree.h"
#include "graph/exec_impl.h"
#include "grove/core.h"

enum { MAX_DIMS = 5 };

/* Extents of a placed value as dims of an array, and which dims are axis 0 and axis 1. */
typedef struct array_dims {
    int n_dims, axis_dim[2];
    int64_t extent[MAX_DIMS]; /* local */
} array_dims;

static void dims_of(const grv_plan *plan, const grvi_placed *placed, array_dims *dims)
{
    const grvi_value *const v = &plan->graph.values[placed->value];
    grvi_spectral_layout l = {0};
    if (v->order != GRVI_ORDER_PLAIN) grvi_spectral_columns(&l, v->n_axes, v->axis, v->channels);
    const int64_t n0 = placed->n_local[0], n1 = placed->n_local[1];
    if (v->order == GRVI_ORDER_PLAIN) {
        int64_t rest = v->channels;
        for (int a = 2; a < v->n_axes; a++) rest *= placed->n_local[a];
        *dims = (array_dims){.n_dims = 4, .axis_dim = {1, 2}, .extent = {placed->n_samples, n0, n1, rest}};
    } else if (v->order == GRVI_ORDER_SLAB) {
        *dims = (array_dims){.n_dims = 5, .axis_dim = {3, 1}, .extent = {placed->n_samples, n1, l.n_blocks, n0, l.block}};
    } else {
        *dims = (array_dims){.n_dims = 4, .axis_dim = {2, 1}, .extent = {placed->n_samples, n1, n0, l.n_blocks * l.block}};
    }
}

typedef struct side {
    const grv_plan *plan;
    const grvi_placed *placed;
} side;

static void box_of(void *argument, int rank, grv_box *box)
{
    const side *const s = argument;
    grvi_placed placed;
    grvi_placed_init(&placed, s->plan, s->placed->value, s->placed->split, rank);
    array_dims dims;
    dims_of(s->plan, &placed, &dims);
    for (int d = 0; d < dims.n_dims; d++) {
        box->start[d] = 0;
        box->count[d] = dims.extent[d];
    }
    box->start[dims.axis_dim[placed.split]] = placed.range.start;
}

static void set_strides(const array_dims *dims, int64_t *stride)
{
    int64_t next = 1;
    for (int d = dims->n_dims - 1; d >= 0; d--) {
        stride[d] = next;
        next *= dims->extent[d];
    }
}

static void params_of(const grvi_step_context *c, side sides[2], grv_repartition_params *params)
{
    array_dims in, out;
    sides[0] = (side){c->plan, c->in[0]};
    sides[1] = (side){c->plan, c->out[0]};
    dims_of(c->plan, c->in[0], &in);
    dims_of(c->plan, c->out[0], &out);
    *params = (grv_repartition_params){.n_dims = in.n_dims, .element_bytes = (int64_t)grvi_dtype_bytes(c->plan->params.dtype),
                                       .n_threads = c->n_threads};
    params->source = (grv_layout){.box_of = box_of, .argument = &sides[0]};
    params->destination = (grv_layout){.box_of = box_of, .argument = &sides[1]};
    set_strides(&in, params->source.stride);
    set_strides(&out, params->destination.stride);
}

grv_status grvi_repartition_plan(const grvi_step_context *c, grv_traffic *traffic)
{
    side sides[2];
    grv_repartition_params params;
    grv_repartition *dry = NULL;
    params_of(c, sides, &params);
    const int n_domain = c->plan->params.n_domain;
    GRV_TRY(grv_repartition_create_dry(n_domain, c->plan->params.rank % n_domain, &params, &dry));
    *traffic = grv_repartition_traffic(dry);
    grv_repartition_destroy(&dry);
    return GRV_OK;
}

static grv_status repartition_init(grvi_step_context *c)
{
    side sides[2];
    grv_repartition_params params;
    params_of(c, sides, &params);
    grv_repartition *plan = NULL;
    GRV_TRY(grv_repartition_create(c->exec->mesh->domain_comm, &params, &plan));
    c->object = plan;
    return GRV_OK;
}

static void repartition_fini(grvi_step_context *c)
{
    grv_repartition *plan = c->object;
    grv_repartition_destroy(&plan);
}

static grv_status repartition_run(const grvi_step_context *c)
{
    return grv_repartition_run(c->object, c->in_data[0], c->out_data[0], c->exec->messages);
}

static void repartition_cost(const grvi_step_context *c, grvi_cost *cost)
{
    const double size = (double)grvi_dtype_bytes(c->plan->params.dtype);
    cost->read_bytes = (double)c->in[0]->count * size;
    cost->written_bytes = (double)c->out[0]->count * size;
}

const grvi_op_class grvi_op_repartition = {.name = "repartition", .init = repartition_init, .fini = repartition_fini,
                                           .cost = repartition_cost, .run = repartition_run};
