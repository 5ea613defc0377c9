/* Inside of an executor. Internal to src/graph. */
#ifndef GRVI_EXEC_IMPL_H
#define GRVI_EXEC_IMPL_H

#include "graph/plan_impl.h"

/* A node of some rank's partial sums, and where its numbers arrive. */
typedef struct grvi_arriving_node {
    grvi_tree_node node;
    int64_t offset; /* doubles, in the gathered buckets */
} grvi_arriving_node;

/* The rest of one step's sum, once all ranks' nodes are there: ascending by unit. */
typedef struct grvi_reduction {
    int step;
    int n_nodes;
    grvi_arriving_node *nodes;
} grvi_reduction;

/* What a binding is put into. */
typedef enum grvi_slot_source { GRVI_SLOT_PARAM, GRVI_SLOT_GRADIENT, GRVI_SLOT_INPUT } grvi_slot_source;

/* An operand that lies in the caller's memory, resolved once. */
typedef struct grvi_slot {
    grvi_slot_source source;
    int64_t at; /* bytes in the block; of an input its number */
    const void **in;
    void **out; /* gradients */
} grvi_slot;

struct grv_exec {
    const grv_plan *plan;
    grv_comm *comm;          /* borrowed, or NULL */
    grv_process_mesh *mesh;  /* NULL on a single rank */
    char *arena, *scratch, *messages;
    double *bucket;           /* this rank's partial sums */
    double *gathered;         /* of all ranks; the bucket itself on a single rank */
    int64_t *gathered_bytes;  /* [ranks] */
    int n_reductions;
    grvi_reduction *reductions;
    grvi_tree_stack final;    /* large enough for every reduction */
    void *data_chunk;         /* [n_data][chunk] for the sum of owned gradients over data ranks */
    double *loss_planes;      /* [local samples][local planes][2] */
    double *loss_gathered;    /* the same of all ranks, in rank order */
    double *loss_ordered;     /* [global samples][planes][2] */
    int64_t *loss_bytes;      /* [ranks] */
    double *loss_sums;        /* [global samples][2] */
    double *sample_losses;    /* [global samples] */
    int64_t loss_n_planes;    /* of a sample, globally */
    double loss;
    grvi_step_context *contexts;   /* [n_steps] */
    int n_slots;
    grvi_slot *slots;              /* operands of all steps that the caller binds */
    double *begin, *seconds;       /* [n_steps] */
    int64_t table_bytes;
};

/* Communication of sums, reduce.c. All collective. */
grv_status grvi_reduce_create(grv_exec *exec) GRV_MUST_CHECK;
void grvi_reduce_destroy(grv_exec *exec);
grv_status grvi_reduce_gradients(grv_exec *exec, void *gradients) GRV_MUST_CHECK;

#endif
