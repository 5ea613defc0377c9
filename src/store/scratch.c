/* Working memory, its pool, and errors carried out of parallel loops. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/scratch.h"

void grvi_scratch_pool_init(grvi_scratch_pool *pool)
{
    (void)pthread_mutex_init(&pool->lock, NULL);
    pool->free = NULL;
}

static void scratch_destroy(grvi_scratch *scratch)
{
    grvi_codec_state_fini(&scratch->codecs);
    grvi_buffer_fini(&scratch->encoded);
    for (int d = 0; d < GRVI_MAX_DEPTH; d++) {
        for (int i = 0; i < 5; i++) grvi_buffer_fini(&scratch->stage[d][i]);
        for (int i = 0; i < 2; i++) grvi_buffer_fini(&scratch->entries[d][i]);
    }
    grvi_buffer_fini(&scratch->shared);
    grv_free(scratch);
}

void grvi_scratch_pool_fini(grvi_scratch_pool *pool)
{
    while (pool->free != NULL) {
        grvi_scratch *const scratch = pool->free;
        pool->free = scratch->next;
        scratch_destroy(scratch);
    }
    (void)pthread_mutex_destroy(&pool->lock);
}

grv_status grvi_scratch_take(grvi_scratch_pool *pool, grvi_scratch **scratch)
{
    (void)pthread_mutex_lock(&pool->lock);
    *scratch = pool->free;
    if (*scratch != NULL) pool->free = (*scratch)->next;
    (void)pthread_mutex_unlock(&pool->lock);
    if (*scratch == NULL) GRV_TRY(GRVI_CALLOC(scratch, 1));
    (*scratch)->pool = pool;
    (*scratch)->bytes_decoded = 0;
    (*scratch)->encoded.n = 0;
    return GRV_OK;
}

void grvi_scratch_give(grvi_scratch *scratch)
{
    if (scratch == NULL) return;
    grvi_scratch_pool *const pool = scratch->pool;
    (void)pthread_mutex_lock(&pool->lock);
    scratch->next = pool->free;
    pool->free = scratch;
    (void)pthread_mutex_unlock(&pool->lock);
}

void grvi_first_error_init(grvi_first_error *error)
{
    (void)pthread_mutex_init(&error->lock, NULL);
    error->status = GRV_OK;
    error->task = INT64_MAX;
    error->message[0] = '\0';
}

void grvi_first_error_note(grvi_first_error *error, int64_t task, grv_status status)
{
    if (status == GRV_OK) return;
    (void)pthread_mutex_lock(&error->lock);
    if (error->status == GRV_OK || task < error->task) {
        error->status = status;
        error->task = task;
        (void)snprintf(error->message, sizeof error->message, "%s", grv_error_message());
    }
    (void)pthread_mutex_unlock(&error->lock);
}

bool grvi_first_error_is_set(grvi_first_error *error)
{
    (void)pthread_mutex_lock(&error->lock);
    const bool is_set = error->status != GRV_OK;
    (void)pthread_mutex_unlock(&error->lock);
    return is_set;
}

grv_status grvi_first_error_fini(grvi_first_error *error)
{
    (void)pthread_mutex_destroy(&error->lock);
    return error->status == GRV_OK ? GRV_OK : grvi_fail_from(error->status, error->message);
}

const char *grvi_reason(grv_status status)
{
    const char *const message = grv_error_message(), *const prefix = grv_status_text(status);
    const size_t n = strlen(prefix);
    return strncmp(message, prefix, n) == 0 && strncmp(message + n, ": ", 2) == 0 ? message + n + 2
                                                                                  : message;
}
