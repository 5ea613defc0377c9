/* Inside of plans and executors. Internal to graph and ops. */
#ifndef GRVI_PLAN_IMPL_H
#define GRVI_PLAN_IMPL_H

#include "dist/tree.h"
#include "graph/graph_impl.h"
#include "grove/plan.h"

/* What the operation needs by definition, not what the code happens to do (docs/spectral.md). */
typedef struct grvi_cost {
    double flops, read_bytes, written_bytes;
} grvi_cost;

/* A value in one placement. Repartitions make another placement of the same value. */
typedef struct grvi_placed {
    grv_value value;
    int split;           /* axis that is split over the domain ranks, or -1 */
    grv_range range;     /* of the split axis: points, or rows if it is spectral */
    int64_t n_samples;   /* local */
    int64_t n_local[GRV_MAX_AXES]; /* local extents: points, or rows */
    int64_t count;       /* local elements, padding included */
    int64_t offset;      /* bytes in the arena; -1: bound by the caller */
    int first_step, last_step; /* life */
} grvi_placed;

/* Units (planes) of a deterministic sum: unit = global sample * n_planes + plane. */
typedef struct grvi_units {
    int64_t n_planes;      /* of a sample, globally */
    grv_range samples;     /* local, global numbers */
    grv_range planes;      /* local, global numbers */
} grvi_units;

typedef struct grvi_step {
    grvi_node node;
    int in[GRVI_MAX_INPUTS], out[GRVI_MAX_OUTPUTS]; /* placed; -1: none, or not a field */
    grvi_cost cost;
    size_t scratch_per_thread;
    /* parameter gradients: the sum over units */
    grvi_units units;
    int64_t n_sums;        /* doubles of a unit; 0: none */
    int stack_capacity;    /* nodes that a thread may hold */
    int n_nodes;           /* nodes that the rank hands on */
    int64_t bucket_offset; /* doubles, in the bucket of the rank */
    /* repartition */
    int64_t n_messages, sent_bytes;
} grvi_step;

struct grv_plan {
    grv_graph graph; /* a copy */
    grv_plan_params params;
    grv_range samples;
    int n_placed, placed_capacity;
    grvi_placed *placed;
    int n_steps, step_capacity;
    grvi_step *steps;
    grv_param_slice *slices; /* [n_params] */
    int64_t owned_offset;    /* first number of the owned part of the block */
    int64_t param_count;
    int64_t arena_bytes, scratch_per_thread, message_bytes, bucket_count;
};

/* What a step sees when it runs, and when it is planned (then data and exec are NULL). */
typedef struct grvi_step_context {
    const grv_plan *plan;
    const grvi_step *step;
    const grvi_node *node;
    grv_exec *exec;
    const grvi_placed *in[GRVI_MAX_INPUTS], *out[GRVI_MAX_OUTPUTS]; /* NULL where not a field */
    const void *in_data[GRVI_MAX_INPUTS];
    void *out_data[GRVI_MAX_OUTPUTS];
    int n_threads;
    char *scratch; /* n_threads pieces of scratch_stride bytes */
    size_t scratch_stride;
    double *bucket; /* of this step's sums: [n_nodes][n_sums] */
    void *object;   /* made by init */
} grvi_step_context;

static inline size_t grvi_dtype_bytes(grv_dtype dtype) { return dtype == GRV_F64 ? sizeof(double) : sizeof(float); }
static inline const grvi_value *grvi_context_value(const grvi_step_context *c, grv_value v) { return &c->plan->graph.values[v]; }
static inline void *grvi_context_scratch(const grvi_step_context *c, int thread) { return c->scratch + (size_t)thread * c->scratch_stride; }

/* Placement of a value split along an axis (or -1) on domain rank `domain_index`. */
void grvi_placed_init(grvi_placed *placed, const grv_plan *plan, grv_value value, int split, int domain_index);
/* The split of a spectral axis 1 over ranks: magnitudes, and the rows they are. */
grv_range grvi_magnitudes(const grv_plan *plan, const grvi_axis_modes *axis, int domain_index);

/* Runs body over the local units with one tree stack per thread, and leaves the rank's nodes in the step's bucket.
 * body adds nothing up: it WRITES the sums of one unit to `sums` [n_sums].
 * The tail of the thread's scratch is used for the stack; body gets the head. */
typedef void grvi_unit_body(const grvi_step_context *context, int64_t local_sample, int64_t local_plane, void *scratch, double *sums);
void grvi_units_run(const grvi_step_context *context, grvi_unit_body *body);

/* The data movement between two placements of one value: an operation of the plan, not of the graph. */
extern const grvi_op_class grvi_op_repartition;
/* Messages of a repartition step on this rank. */
grv_status grvi_repartition_plan(const grvi_step_context *context, grv_traffic *traffic) GRV_MUST_CHECK;

/* Executor side of the loss: turns the rank's partial sums into the sums of all samples. Collective. */
grv_status grvi_exec_reduce_loss(const grvi_step_context *context);
/* Factor of (p - y) in the gradient of the loss, for a local sample. */
double grvi_exec_loss_scale(const grvi_step_context *context, int64_t local_sample);

#endif
