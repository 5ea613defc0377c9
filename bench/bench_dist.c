/* Speed of what a distributed step does between messages, one thread: packing boxes, and adding planes in the fixed tree.
 * bench_dist: prints CSV; processor time, median of several runs. The ratio is to a memcpy of the same bytes (packing), or to a
 * plain pass that adds all planes to one vector (tree), measured right before each run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "dist/strided_copy.h"
#include "grove/core.h"

enum { RUNS = 9 };

static void *room(int64_t bytes)
{
    char *block = NULL;
    if (GRVI_ALLOC(&block, bytes) != GRV_OK) {
        fprintf(stderr, "bench_dist: %s\n", grv_error_message());
        exit(1);
    }
    memset(block, 0, (size_t)bytes);
    return block;
}

static double seconds_used(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef void timed_body(void *argument);

static void measure(const char *name, double bytes, timed_body *reference, timed_body *body,
                    void *argument)
{
    double seconds[RUNS], ratio[RUNS];
    body(argument);
    reference(argument);
    for (int r = 0; r < RUNS; r++) {
        const double start = seconds_used();
        reference(argument);
        const double middle = seconds_used();
        body(argument);
        seconds[r] = seconds_used() - middle;
        ratio[r] = seconds[r] / (middle - start);
    }
    qsort(seconds, RUNS, sizeof *seconds, ascending);
    qsort(ratio, RUNS, sizeof *ratio, ascending);
    printf("%s,%.3f,%.2f,%.2f\n", name, seconds[RUNS / 2] * 1e3, bytes / seconds[RUNS / 2] * 1e-9,
           ratio[RUNS / 2]);
}

typedef struct copy_case {
    grvi_copy_list list;
    char *from, *to;
} copy_case;

static void run_copy(void *argument)
{
    const copy_case *const c = argument;
    grvi_copy_list_run(&c->list, c->from, c->to);
}

static void run_memcpy(void *argument)
{
    const copy_case *const c = argument;
    memcpy(c->to, c->from, (size_t)c->list.bytes);
}

/* Packs the box `part` out of an array `whole`, whose dimension order[d] is the d-th from outside in memory. */
static void bench_copy(const char *name, int n_dims, const int64_t *whole, const int64_t *part,
                       const int *order, int64_t element_bytes)
{
    int64_t from_stride[GRV_BOX_MAX_DIMS], to_stride[GRV_BOX_MAX_DIMS], n_whole = 1, n_part = 1;
    for (int d = n_dims - 1; d >= 0; d--) {
        from_stride[order[d]] = n_whole;
        n_whole *= whole[order[d]];
        to_stride[d] = n_part;
        n_part *= part[d];
    }
    copy_case c = {.from = room(n_whole * element_bytes), .to = room(n_part * element_bytes)};
    const grvi_strided_copy copy =
        grvi_strided_copy_make(n_dims, element_bytes, part, from_stride, 0, to_stride, 0);
    if (grvi_copy_list_init(&c.list, 1, 1) != GRV_OK) exit(1);
    grvi_copy_list_add(&c.list, &copy);
    measure(name, (double)c.list.bytes, run_memcpy, run_copy, &c);
    grvi_copy_list_fini(&c.list);
    grv_free(c.from);
    grv_free(c.to);
}

int main(void)
{
    printf("work,median_ms,gbytes_per_s,time_ratio\n");
    static const int plain[] = {0, 1, 2, 3, 4}, channels_first[] = {4, 0, 1, 2, 3};
    static const int64_t whole[] = {36, 64, 36, 12, 12}; /* kx, y, kz, kt, channel; complex64 */
    bench_copy("half of y", 5, whole, (const int64_t[]){36, 32, 36, 12, 12}, plain, 8);
    bench_copy("half of kt: runs of 576 bytes", 5, whole, (const int64_t[]){36, 64, 36, 6, 12},
               plain, 8);
    bench_copy("half of the channels: runs of 48 bytes", 5, whole,
               (const int64_t[]){36, 64, 36, 12, 6}, plain, 8);
    bench_copy("channels first to last, 8-byte elements", 5, whole, whole, channels_first, 8);
    bench_copy("channels first to last, 4-byte elements", 5, whole, whole, channels_first, 4);
    return 0;
}
