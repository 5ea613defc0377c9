/* What the files of the read plan share. Internal.
 *   requests -> parts -> uses, sorted by object      read_plan.c, when the plan is made
 *   uses -> opened objects -> pieces -> runs          read_plan_wave.c, while it runs
 *   runs -> bytes -> elements in the caller's memory  read_plan_piece.c, by the threads */
#ifndef GRVI_STORE_READ_PLAN_IMPL_H
#define GRVI_STORE_READ_PLAN_IMPL_H

#include "grove/read_plan.h"
#include "store/store_impl.h"

/* A request, checked and copied. */
typedef struct grvi_plan_request {
    grv_array *array;
    int array_number; /* among the plan's different arrays, by first appearance */
    int64_t start[GRVI_MAX_RANK], count[GRVI_MAX_RANK];
    int64_t strides[GRVI_MAX_RANK]; /* in bytes */
    uint8_t *out;
} grvi_plan_request;

/* A box of a request: all of it, or rows of its list that follow each other in the array and in memory. */
typedef struct grvi_plan_part {
    int64_t request;
    int64_t start, count; /* along axis 0 */
    int64_t offset;       /* of its first element in the request's memory, in bytes */
} grvi_plan_part;

/* A part wants something of a stored object. Sorted by array, object, part. */
typedef struct grvi_plan_use {
    int array_number;
    int64_t object; /* number in the array's grid */
    int64_t part;
} grvi_plan_use;

/* A stored object of the wave that runs. */
typedef struct grvi_plan_object {
    grv_array *array;
    int64_t position[GRVI_MAX_RANK];
    int64_t first_use, n_uses;
    grvi_object object;
    grvi_shard_index *index; /* of an opened shard */
    bool
        opens_early; /* shards and raw chunks: before pieces are made; others where they are read */
    bool is_open;
} grvi_plan_object;

enum { GRVI_WHOLE_OBJECT = -1, GRVI_FILL = -1 };

/* What one use wants of one chunk, or a part of that. */
typedef struct grvi_plan_piece {
    int64_t object; /* in the wave */
    int64_t
        offset; /* of its bytes in the object; GRVI_FILL: there are none, the fill value is wanted */
    int64_t n_bytes;
    int64_t cell; /* number of the inner chunk, or GRVI_WHOLE_OBJECT */
    int64_t use;
    int64_t slice;  /* of a raw chunk: number of the slice (grvi_plan_slices) */
    bool is_direct; /* long, and read straight into the caller's memory: a run of its own */
} grvi_plan_piece;

/* Pieces that one range read brings. All pieces of one chunk are in one run, but for raw ones. */
typedef struct grvi_plan_run {
    int64_t first_piece, n_pieces;
    int64_t offset, n_bytes;
} grvi_plan_run;

struct grv_read_plan {
    grv_read_plan_params params;  /* as given */
    int64_t gap_bytes, run_bytes; /* what they come to */
    grv_store *store;             /* of the first request: its threads do the work */
    int n_workers;
    bool has_gate; /* more threads wait for the back end than may decode */
    grvi_gate gate;
    grvi_buffer arrays, requests, parts, uses; /* when made */
    grvi_buffer objects, pieces, runs;         /* while running */
    grvi_buffer rows;                          /* while being made: a list of rows, sorted */
    int64_t n_requests, n_uses, n_runs;
    grv_read_plan_info info;
    grvi_first_error error;
    _Atomic int64_t next; /* task that is taken next */
    _Atomic int64_t n_chunks, n_reads, bytes_read, bytes_decoded;
    _Atomic bool cancelled;
    struct grv_read_plan *next_free; /* in the store's pool */
};

static inline grvi_plan_request *grvi_plan_requests(const grv_read_plan *plan)
{
    return (grvi_plan_request *)(void *)plan->requests.data;
}
static inline grvi_plan_part *grvi_plan_parts(const grv_read_plan *plan)
{
    return (grvi_plan_part *)(void *)plan->parts.data;
}
static inline grvi_plan_use *grvi_plan_uses(const grv_read_plan *plan)
{
    return (grvi_plan_use *)(void *)plan->uses.data;
}
static inline grvi_plan_object *grvi_plan_objects(const grv_read_plan *plan)
{
    return (grvi_plan_object *)(void *)plan->objects.data;
}
static inline grvi_plan_piece *grvi_plan_pieces(const grv_read_plan *plan)
{
    return (grvi_plan_piece *)(void *)plan->pieces.data;
}
static inline grvi_plan_run *grvi_plan_runs(const grv_read_plan *plan)
{
    return (grvi_plan_run *)(void *)plan->runs.data;
}
static inline int64_t grvi_plan_n_pieces(const grv_read_plan *plan)
{
    return plan->pieces.n / (int64_t)sizeof(grvi_plan_piece);
}

/* Where elements of a chunk go: a box of the chunk of this chain, and the memory for it (strides in bytes). */
typedef struct grvi_plan_target {
    const grvi_chain *chain;
    grvi_box box;
    int64_t strides[GRVI_MAX_RANK];
    uint8_t *out;
} grvi_plan_target;

/* What a use wants of its whole object. */
void grvi_plan_object_target(const grv_read_plan *plan, const grvi_plan_object *object, int64_t use,
                             grvi_plan_target *target);
/* The part of a shard's target that lies in an inner chunk. `shard` in stored axes (grvi_plan_to_stored). */
void grvi_plan_cell_target(const grvi_plan_target *shard, const int64_t *cell,
                           grvi_plan_target *target);
/* Box and strides into the order in which the chain stores axes. */
void grvi_plan_to_stored(grvi_plan_target *target);

/* A target of a raw chunk, cut into slices whose bytes are read in one go: along one axis, at most `step` at a time. */
typedef struct grvi_plan_slicing {
    int axis;
    int64_t step, n_slices;
} grvi_plan_slicing;

/* target in stored axes */
void grvi_plan_slices(const grv_read_plan *plan, const grvi_plan_target *target,
                      grvi_plan_slicing *slicing);
/* The target of a slice, and the bytes of the chunk that span it. */
void grvi_plan_slice(const grvi_plan_target *target, const grvi_plan_slicing *slicing,
                     int64_t number, grvi_plan_target *slice, int64_t *offset, int64_t *n_bytes);

/* Are these n bytes at an offset of the object just what belongs into the slice's memory, and worth a read of their own? */
bool grvi_plan_slice_is_direct(const grvi_plan_target *slice, int64_t offset, int64_t n_bytes);

/* Reads a range of an opened object and counts it for the store. */
grv_status grvi_plan_read(const grvi_plan_object *object, const char *what, int64_t offset,
                          int64_t n, void *out) GRV_MUST_CHECK;
/* Raises an error again with the object's, or the piece's, name and place. */
grv_status grvi_plan_fail_object(const grvi_plan_object *object, grv_status status);
grv_status grvi_plan_fail_piece(const grv_read_plan *plan, const grvi_plan_piece *piece,
                                grv_status status);
/* Reads what a run holds and puts it into place. */
grv_status grvi_plan_do_run(grv_read_plan *plan, const grvi_plan_run *run,
                            grvi_scratch *scratch) GRV_MUST_CHECK;
/* Runs all waves. */
grv_status grvi_plan_do_waves(grv_read_plan *plan) GRV_MUST_CHECK;

/* Ends the pool of plans of a store that is closed. */
void grvi_plans_fini(grv_store *store);
/* A plan of a store's own, for grv_array_read: taken from its pool and given back. */
grv_status grvi_plan_take(grv_store *store, grv_read_plan **plan) GRV_MUST_CHECK;
/* NULL is allowed */
void grvi_plan_give(grv_store *store, grv_read_plan *plan);

#endif
