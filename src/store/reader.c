/* Reading ahead in a ring of slots. Item i uses slot i % n_slots. Two counters only grow within a sequence:
 *   consumed <= begun <= n_items,   begun - consumed <= n_slots.
 * Lock order: there is one lock; `fill` runs without it, `cancel` and `n_bytes` under it. */
#include "grove/reader.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "core/alloc.h"
#include "grove/core.h"

typedef enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_READY } slot_state;

typedef struct slot {
    slot_state state;
    int64_t n_bytes;
} slot;

/* a fill that has not yet begun what can be cancelled is told again after so long */
static const long cancel_again_ns = 5000000;

struct grv_reader {
    grv_reader_source source;
    grv_reader_params params;
    int n_slots, n_started;
    slot *slots;
    pthread_t *threads;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    bool stop;
    bool holds_one; /* the consumer has the slot of item `consumed` */
    int64_t n_items, begun, consumed, held_bytes;
    int n_filling;
    grv_status status;   /* an error: nothing more is begun */
    int64_t failed_item; /* the first in order that failed */
    char message[1024];
    grv_reader_stats stats;
};

grv_reader_params grv_reader_params_default(void)
{
    return (grv_reader_params){.n_ahead = 2, .n_threads = 1, .max_bytes = INT64_MAX};
}

/* May the next item begin? Its weight is set. With the lock held. */
static bool may_begin(const grv_reader *r, int64_t *n_bytes)
{
    if (r->status != GRV_OK || r->begun == r->n_items || r->begun - r->consumed >= r->n_slots)
        return false;
    *n_bytes = r->source.n_bytes != NULL ? r->source.n_bytes(r->source.context, r->begun) : 0;
    return r->begun == r->consumed || *n_bytes <= r->params.max_bytes - r->held_bytes;
}

/* Fills the next item; called and left with the lock held. */
static void fill_next(grv_reader *r, int64_t n_bytes)
{
    const int64_t item = r->begun++;
    const int number = (int)(item % r->n_slots);
    slot *const s = &r->slots[number];
    s->state = SLOT_FILLING;
    s->n_bytes = n_bytes;
    r->held_bytes += n_bytes;
    r->n_filling++;
    (void)pthread_mutex_unlock(&r->lock);
    const double begin = grv_clock_seconds();
    const grv_status status = r->source.fill(r->source.context, item, number);
    const double seconds = grv_clock_seconds() - begin;
    (void)pthread_mutex_lock(&r->lock);
    r->stats.filling_s += seconds;
    r->n_filling--;
    s->state = SLOT_READY;
    if (status != GRV_OK && (r->status == GRV_OK || item < r->failed_item)) {
        r->status = status;
        r->failed_item = item;
        (void)snprintf(r->message, sizeof r->message, "%s", grv_error_message());
    }
    (void)pthread_cond_broadcast(&r->changed);
}

static void *reader_main(void *argument)
{
    grv_reader *const r = argument;
    int64_t n_bytes = 0;
    (void)pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        if (may_begin(r, &n_bytes))
            fill_next(r, n_bytes);
        else
            (void)pthread_cond_wait(&r->changed, &r->lock);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* timed by a clock that is never set */
static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

static grv_status start(grv_reader *r)
{
    GRV_TRY(GRVI_CALLOC(&r->slots, r->n_slots));
    GRV_TRY(GRVI_CALLOC(&r->threads, r->params.n_threads));
    for (; r->n_started < r->params.n_threads; r->n_started++)
        GRV_CHECK(pthread_create(&r->threads[r->n_started], NULL, reader_main, r) == 0, GRV_E_NOMEM,
                  "reader: no thread to be had");
    return GRV_OK;
}

grv_status grv_reader_create(const grv_reader_source *source, const grv_reader_params *params,
                             grv_reader **out)
{
    const grv_reader_params defaults = grv_reader_params_default();
    grv_reader *r = NULL;
    *out = NULL;
    if (params == NULL) params = &defaults;
    GRV_CHECK(source->fill != NULL, GRV_E_ARG, "reader: no function that fills items");
    GRV_CHECK(params->n_ahead >= 1 && params->n_ahead < INT_MAX, GRV_E_ARG,
              "reader: at least 1 item ahead expected, %d found", params->n_ahead);
    GRV_CHECK(params->n_threads >= 1 && params->n_threads <= params->n_ahead, GRV_E_ARG,
              "reader: 1 to %d threads expected (as many as items ahead), %d found",
              params->n_ahead, params->n_threads);
    GRV_TRY(GRVI_CALLOC(&r, 1));
    r->source = *source;
    r->params = *params;
    r->n_slots = params->n_ahead + 1;
    (void)pthread_mutex_init(&r->lock, NULL);
    init_condition(&r->changed);
    const grv_status status = start(r);
    if (status != GRV_OK) grv_reader_destroy(&r);
    *out = r;
    return status;
}

int grv_reader_slots(const grv_reader *r)
{
    return r->n_slots;
}

static void cancel_fills(grv_reader *r)
{
    struct timespec until;
    for (int i = 0; i < r->n_slots; i++) {
        if (r->slots[i].state == SLOT_FILLING) r->source.cancel(r->source.context, i);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += cancel_again_ns;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&r->changed, &r->lock, &until);
}

/* Nothing is under way afterwards; with the lock held. */
static void stop_filling(grv_reader *r)
{
    r->n_items = r->begun; /* no other item begins */
    while (r->n_filling > 0) {
        if (r->source.cancel != NULL)
            cancel_fills(r);
        else
            (void)pthread_cond_wait(&r->changed, &r->lock);
    }
    for (int i = 0; i < r->n_slots; i++) r->slots[i].state = SLOT_FREE;
    r->n_items = r->begun = r->consumed = r->held_bytes = 0;
    r->holds_one = false;
    r->status = GRV_OK;
}

void grv_reader_stop(grv_reader *r)
{
    (void)pthread_mutex_lock(&r->lock);
    stop_filling(r);
    (void)pthread_mutex_unlock(&r->lock);
}

void grv_reader_begin(grv_reader *r, int64_t n)
{
    (void)pthread_mutex_lock(&r->lock);
    stop_filling(r);
    r->n_items = n;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

/* The consumer is done with the slot that it has; with the lock held. */
static void give_back(grv_reader *r)
{
    slot *const s = &r->slots[r->consumed % r->n_slots];
    if (!r->holds_one) return;
    r->held_bytes -= s->n_bytes;
    s->state = SLOT_FREE;
    r->consumed++;
    r->holds_one = false;
    (void)pthread_cond_broadcast(&r->changed);
}

grv_status grv_reader_next(grv_reader *r, int *number)
{
    const double begin = grv_clock_seconds();
    grv_status status = GRV_END;
    *number = -1;
    (void)pthread_mutex_lock(&r->lock);
    give_back(r);
    if (r->consumed < r->n_items) {
        const int at = (int)(r->consumed % r->n_slots);
        while (r->slots[at].state != SLOT_READY) (void)pthread_cond_wait(&r->changed, &r->lock);
        if (r->status == GRV_OK || r->consumed < r->failed_item) {
            *number = at;
            r->holds_one = true;
            r->stats.n_items++;
            status = GRV_OK;
        } else {
            status = grvi_fail_from(r->status, r->message);
        }
    }
    r->stats.waited_s += grv_clock_seconds() - begin;
    (void)pthread_mutex_unlock(&r->lock);
    return status;
}

grv_reader_stats grv_reader_get_stats(grv_reader *r)
{
    (void)pthread_mutex_lock(&r->lock);
    const grv_reader_stats stats = r->stats;
    (void)pthread_mutex_unlock(&r->lock);
    return stats;
}

void grv_reader_destroy(grv_reader **reader)
{
    if (reader == NULL || *reader == NULL) return;
    grv_reader *const r = *reader;
    (void)pthread_mutex_lock(&r->lock);
    if (r->slots != NULL) stop_filling(r);
    r->stop = true;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < r->n_started; i++) (void)pthread_join(r->threads[i], NULL);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->lock);
    grv_free(r->threads);
    grv_free(r->slots);
    grv_free(r);
    *reader = NULL;
}
