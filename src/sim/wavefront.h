/* Several stencil stages over the planes of a grid in one pass through memory. Internal to src/sim.
 * Stage s on a plane reads its two neighbours, which must have been through stage s-1 and not through stage s+1. */
#ifndef GRVI_SIM_WAVEFRONT_H
#define GRVI_SIM_WAVEFRONT_H

#include <stdbool.h>
#include <stdint.h>

typedef void grvi_wavefront_body(void *argument, int stage, int64_t plane);

/* Runs stages 0..n_stages-1 on planes 0..n_planes-1, which form a ring where is_ring, with at most n_threads threads.
 * No two threads touch neighbouring planes at the same time. Of two planes that are neighbours around the end, the last one is first in
 * every stage; apart from that, bodies whose stages have no order give the same result for any number of threads. */
void grvi_wavefront_run(int n_threads, int64_t n_planes, bool is_ring, int n_stages,
                        grvi_wavefront_body *body, void *argument);

#endif
