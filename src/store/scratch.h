/* Working memory of one thread that encodes or decodes, and the pool that keeps it between calls. Internal.
 * Buffers only grow, so that a steady stream of equal reads allocates nothing. */
#ifndef GRVI_STORE_SCRATCH_H
#define GRVI_STORE_SCRATCH_H

#include <pthread.h>

#include "core/check.h"
#include "store/codec.h"

enum { GRVI_MAX_DEPTH = 4 }; /* nesting of shards */

typedef struct grvi_scratch {
    grvi_codec_state codecs;
    grvi_buffer encoded; /* what was read, or what will be published */
    grvi_buffer stage
        [GRVI_MAX_DEPTH]
        [5]; /* per level of nesting: two in turn between codecs, a dense chunk, two in turn between filters */
    grvi_buffer entries[GRVI_MAX_DEPTH][2]; /* shard indices: old and new */
    grvi_buffer shared; /* read_plan_piece.c: part of a chunk that several requests want */
    int64_t bytes_decoded;                  /* counted here, collected by the caller */
    struct grvi_scratch_pool *pool;
    struct grvi_scratch *next; /* in the pool */
} grvi_scratch;

typedef struct grvi_scratch_pool {
    pthread_mutex_t lock;
    grvi_scratch *free;
} grvi_scratch_pool;

void grvi_scratch_pool_init(grvi_scratch_pool *pool);
void grvi_scratch_pool_fini(grvi_scratch_pool *pool);
grv_status grvi_scratch_take(grvi_scratch_pool *pool, grvi_scratch **scratch) GRV_MUST_CHECK;
/* NULL is allowed */
void grvi_scratch_give(grvi_scratch *scratch);

/* The first failure (lowest task number) of tasks that ran in parallel, carried to the thread that waits. */
typedef struct grvi_first_error {
    pthread_mutex_t lock;
    grv_status status;
    int64_t task;
    char message[1024];
} grvi_first_error;

void grvi_first_error_init(grvi_first_error *error);
/* Notes the calling thread's record if status is a failure. */
void grvi_first_error_note(grvi_first_error *error, int64_t task, grv_status status);
bool grvi_first_error_is_set(grvi_first_error *error);
/* Raises it in the calling thread; ends the object. */
grv_status grvi_first_error_fini(grvi_first_error *error) GRV_MUST_CHECK;

/* Message of the thread's last failure without the words of its status, for use in a message that says more. */
const char *grvi_reason(grv_status status);

#endif
