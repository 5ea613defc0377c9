/* What the operations share. Internal to src/ops. */
#ifndef GRVI_OP_SUPPORT_H
#define GRVI_OP_SUPPORT_H

#include "graph/plan_impl.h"
#include "grove/core.h"
#include "kernels/point_kernels.h"

static inline grvi_split_rule grvi_split_axis0(const grvi_node *node) { return (void)node, GRVI_SPLIT_AXIS0; }
static inline grvi_split_rule grvi_split_any(const grvi_node *node) { return (void)node, GRVI_SPLIT_ANY; }

/* Kernels of the plan's element type. */
static inline const grvi_point_kernels *grvi_context_points(const grvi_step_context *c)
{
    return c->plan->params.dtype == GRV_F64 ? grvi_point_kernels_f64() : grvi_point_kernels_for(grvi_isa_chosen());
}

/* A piece of a plain field that is worked on as one: a plane of a sample, or, with one axis, a block of its points.
 * Its size does not depend on ranks or threads, so neither does the result. */
typedef struct grvi_piece {
    int64_t sample, plane; /* local */
    int64_t first_point;   /* local, counted over samples: of the piece */
    int64_t n_points;
} grvi_piece;

typedef void grvi_piece_body(const grvi_step_context *context, const grvi_piece *piece, void *scratch);

/* Runs body on every piece of a field with the placement `placed`, in parallel. */
void grvi_pieces_run(const grvi_step_context *context, const grvi_placed *placed, grvi_piece_body *body);

/* Points (of all local axes) in a plane of the field. */
int64_t grvi_plane_points(const grvi_step_context *context, const grvi_placed *placed);

/* Address of element i of data of the plan's type. */
static inline const void *grvi_at(const grvi_step_context *c, const void *data, int64_t i)
{
    return (const char *)data + (size_t)i * grvi_dtype_bytes(c->plan->params.dtype);
}
static inline void *grvi_at_mut(const grvi_step_context *c, void *data, int64_t i)
{
    return (char *)data + (size_t)i * grvi_dtype_bytes(c->plan->params.dtype);
}

/* Global numbers of a field (points times channels, all samples): what costs count. */
static inline double grvi_local_count(const grvi_placed *placed) { return placed == NULL ? 0 : (double)placed->count; }
static inline double grvi_local_bytes(const grvi_step_context *c, const grvi_placed *placed)
{
    return grvi_local_count(placed) * (double)grvi_dtype_bytes(c->plan->params.dtype);
}

#endif
