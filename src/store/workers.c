/* Pool of threads for reading and decoding. One lock for the list of jobs and all counts; bodies run without it. */
#include "store/workers.h"

#include "core/check.h"

/* Joins the oldest job that has a place open; called and left with the lock held. */
static void help(grvi_workers *workers)
{
    grvi_worker_job *const job = workers->jobs;
    job->n_active++;
    if (--job->n_open == 0) workers->jobs = job->next;
    (void)pthread_mutex_unlock(&workers->lock);
    job->body(job->argument);
    (void)pthread_mutex_lock(&workers->lock);
    if (--job->n_active == 0) (void)pthread_cond_broadcast(&workers->done);
}

static void *worker_main(void *argument)
{
    grvi_workers *const workers = argument;
    (void)pthread_mutex_lock(&workers->lock);
    while (!workers->stop) {
        if (workers->jobs != NULL) {
            help(workers);
            continue;
        }
        workers->n_idle++;
        (void)pthread_cond_wait(&workers->work, &workers->lock);
        workers->n_idle--;
    }
    (void)pthread_mutex_unlock(&workers->lock);
    return NULL;
}

void grvi_workers_init(grvi_workers *workers)
{
    (void)pthread_mutex_init(&workers->lock, NULL);
    (void)pthread_cond_init(&workers->work, NULL);
    (void)pthread_cond_init(&workers->done, NULL);
    workers->jobs = NULL;
    workers->n_threads = workers->n_idle = 0;
    workers->stop = false;
}

void grvi_workers_fini(grvi_workers *workers)
{
    (void)pthread_mutex_lock(&workers->lock);
    GRV_ASSERT(workers->jobs == NULL);
    workers->stop = true;
    (void)pthread_cond_broadcast(&workers->work);
    (void)pthread_mutex_unlock(&workers->lock);
    for (int i = 0; i < workers->n_threads; i++) (void)pthread_join(workers->threads[i], NULL);
    (void)pthread_cond_destroy(&workers->done);
    (void)pthread_cond_destroy(&workers->work);
    (void)pthread_mutex_destroy(&workers->lock);
}

/* Threads for a job of n helpers; fewer if the system has none to give. With the lock held. */
static void start_threads(grvi_workers *workers, int n)
{
    if (n > GRVI_MAX_WORKERS) n = GRVI_MAX_WORKERS;
    while (workers->n_threads < n &&
           pthread_create(&workers->threads[workers->n_threads], NULL, worker_main, workers) == 0)
        workers->n_threads++;
}

static void append_job(grvi_workers *workers, grvi_worker_job *job)
{
    grvi_worker_job **place = &workers->jobs;
    while (*place != NULL) place = &(*place)->next;
    *place = job;
}

static void remove_job(grvi_workers *workers, const grvi_worker_job *job)
{
    for (grvi_worker_job **place = &workers->jobs; *place != NULL; place = &(*place)->next) {
        if (*place == job) {
            *place = job->next;
            return;
        }
    }
}

void grvi_workers_run(grvi_workers *workers, int n_threads, grvi_worker_body *body, void *argument)
{
    grvi_worker_job job = {.body = body, .argument = argument, .n_open = n_threads - 1};
    if (n_threads <= 1) {
        body(argument);
        return;
    }
    (void)pthread_mutex_lock(&workers->lock);
    start_threads(workers, n_threads - 1);
    append_job(workers, &job);
    for (int i = 0; i < workers->n_idle && i < job.n_open; i++)
        (void)pthread_cond_signal(&workers->work);
    (void)pthread_mutex_unlock(&workers->lock);
    body(argument);
    (void)pthread_mutex_lock(&workers->lock);
    remove_job(workers, &job); /* whoever has not joined yet would find nothing to do */
    while (job.n_active > 0) (void)pthread_cond_wait(&workers->done, &workers->lock);
    (void)pthread_mutex_unlock(&workers->lock);
}

void grvi_gate_init(grvi_gate *gate)
{
    (void)pthread_mutex_init(&gate->lock, NULL);
    (void)pthread_cond_init(&gate->left, NULL);
    gate->n_free = 0;
}

void grvi_gate_fini(grvi_gate *gate)
{
    (void)pthread_cond_destroy(&gate->left);
    (void)pthread_mutex_destroy(&gate->lock);
}

void grvi_gate_set(grvi_gate *gate, int n)
{
    gate->n_free = n;
}

void grvi_gate_enter(grvi_gate *gate)
{
    (void)pthread_mutex_lock(&gate->lock);
    while (gate->n_free == 0) (void)pthread_cond_wait(&gate->left, &gate->lock);
    gate->n_free--;
    (void)pthread_mutex_unlock(&gate->lock);
}

void grvi_gate_leave(grvi_gate *gate)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->n_free++;
    (void)pthread_cond_signal(&gate->left);
    (void)pthread_mutex_unlock(&gate->lock);
}
