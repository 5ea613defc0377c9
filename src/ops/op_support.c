/* Splitting fields into pieces whose size depends on nothing but the field. */
#include "ops/op_support.h"

enum { POINTS_PER_BLOCK = 1024 };

int64_t grvi_plane_points(const grvi_step_context *c, const grvi_placed *placed)
{
    const grvi_value *const v = grvi_context_value(c, placed->value);
    if (v->n_axes == 1) return v->axis[0].n;
    int64_t n = 1;
    for (int a = 1; a < v->n_axes; a++) n *= placed->n_local[a];
    return n;
}

typedef struct pieces_call {
    const grvi_step_context *context;
    grvi_piece_body *body;
    int64_t n_planes, plane_points, blocks;
} pieces_call;

static void run_pieces(void *argument, int thread, int64_t begin, int64_t end)
{
    const pieces_call *const call = argument;
    for (int64_t i = begin; i < end; i++) {
        const int64_t plane = i / call->blocks, block = i % call->blocks;
        const int64_t size = call->blocks == 1 ? call->plane_points : POINTS_PER_BLOCK;
        grvi_piece piece = {.sample = plane / call->n_planes, .plane = plane % call->n_planes};
        piece.first_point = plane * call->plane_points + block * size;
        piece.n_points = grvi_min_i64(size, call->plane_points - block * size);
        call->body(call->context, &piece, grvi_context_scratch(call->context, thread));
    }
}

void grvi_pieces_run(const grvi_step_context *c, const grvi_placed *placed, grvi_piece_body *body)
{
    const grvi_value *const v = grvi_context_value(c, placed->value);
    pieces_call call = {.context = c, .body = body, .plane_points = grvi_plane_points(c, placed), .blocks = 1};
    call.n_planes = v->n_axes == 1 ? 1 : placed->n_local[0];
    if (v->n_axes == 1) call.blocks = grvi_ceil_div(call.plane_points, POINTS_PER_BLOCK);
    grv_parallel_for(c->n_threads, placed->n_samples * call.n_planes * call.blocks, run_pieces, &call);
}
