/* The planes are cut into one chunk a thread (a ring is cut at its end as well). First every chunk runs its wavefront and stays clear
 * of its cuts by one plane more at each stage; then the wedges that are left at the cuts are filled, each by one thread. */
#include "sim/wavefront.h"

#include "core/check.h"
#include "grove/core.h"

typedef struct wave {
    int64_t n_planes;
    int n_stages, n_chunks;
    bool is_ring;
    grvi_wavefront_body *body;
    void *argument;
} wave;

static int64_t chunk_start(const wave *w, int64_t chunk)
{
    return w->n_planes * chunk / w->n_chunks;
}

static void run_chunks(void *argument, int thread, int64_t first, int64_t last)
{
    const wave *const w = argument;
    (void)thread;
    for (int64_t chunk = first; chunk < last; chunk++) {
        const int64_t begin = chunk_start(w, chunk), end = chunk_start(w, chunk + 1);
        const bool cut_below = w->is_ring || chunk > 0,
                   cut_above = w->is_ring || chunk + 1 < w->n_chunks;
        for (int64_t front = begin; front < end + w->n_stages; front++) {
            for (int s = 0; s < w->n_stages; s++) {
                const int64_t plane = front - s;
                const int64_t lowest = begin + (cut_below ? s + 1 : 0),
                              highest = end - 1 - (cut_above ? s + 1 : 0);
                if (plane >= lowest && plane <= highest) w->body(w->argument, s, plane);
            }
        }
    }
}

static void run_wedges(void *argument, int thread, int64_t first, int64_t last)
{
    const wave *const w = argument;
    (void)thread;
    for (int64_t cut = first; cut < last; cut++) {
        const int64_t start = chunk_start(w, w->is_ring ? cut : cut + 1);
        for (int s = 0; s < w->n_stages; s++)
            for (int64_t plane = start - 1 - s; plane < start + 1 + s; plane++)
                w->body(w->argument, s, (plane + w->n_planes) % w->n_planes);
    }
}

void grvi_wavefront_run(int n_threads, int64_t n_planes, bool is_ring, int n_stages,
                        grvi_wavefront_body *body, void *argument)
{
    const int64_t shortest =
        2 * n_stages + 2; /* chunk in which the wedges of both cuts keep a plane between them */
    const int64_t chunks = grvi_max_i64(1, grvi_min_i64(n_threads, n_planes / shortest));
    wave w = {n_planes, n_stages, (int)chunks, is_ring, body, argument};
    if (is_ring && n_planes < shortest) { /* too short for a wavefront: stage after stage */
        for (int s = 0; s < n_stages; s++)
            for (int64_t plane = 1; plane <= n_planes; plane++) body(argument, s, plane % n_planes);
        return;
    }
    grv_parallel_for(w.n_chunks, w.n_chunks, run_chunks, &w);
    const int64_t n_cuts = is_ring ? chunks : chunks - 1;
    grv_parallel_for((int)n_cuts, n_cuts, run_wedges, &w);
}
