/* Times the transforms of one FNO block's forward, pass by pass, without the mode mix.
 *   bench_spectral [N0xN1x..wCmM0,M1,..] [repetitions] [threads]     default 64x64x64x16w20m12,12,12,6, 7, 1
 * Prints one CSV row per pass: medians of wall time and of processor time over all threads (what to compare on a shared machine), flops counted as in docs/spectral.md (what the transforms need, not what is executed). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "kernels/spectral_transform.h"

enum { MAX_REPETITIONS = 101, N_PASSES = 5, N_FORWARD_PASSES = 4 };
static const char *const pass_names[N_PASSES] = {"analysis", "first axis", "first axis back",
                                                 "synthesis", "analysis of gradient"};

typedef struct problem {
    grvi_transform_tables *tables;
    const grvi_spectral_kernels *kernels;
    float *u, *y, *pre, *a, *p, *weight, *bias;
    char *scratch; /* one piece per thread */
    int64_t scratch_bytes;
} problem;

static const grvi_spectral_layout *layout_of(const problem *b)
{
    return &b->tables->layout;
}
static int64_t plane_floats(const problem *b)
{
    return layout_of(b)->n_points / layout_of(b)->axis[0].n * layout_of(b)->channels;
}
static void *scratch_of(const problem *b, int thread)
{
    return b->scratch + thread * b->scratch_bytes;
}

static grvi_slab_plane plane_of(const problem *b, int64_t x)
{
    const grvi_spectral_layout *const l = layout_of(b);
    const int64_t stride_qb = l->axis[0].n * l->block;
    return (grvi_slab_plane){b->a + x * l->block, l->n_blocks * stride_qb, stride_qb};
}

static void analyse(void *argument, int thread, int64_t begin, int64_t end)
{
    const problem *const b = argument;
    for (int64_t x = begin; x < end; x++)
        b->kernels->analyse_plane(b->tables, b->u + x * plane_floats(b), plane_of(b, x),
                                  scratch_of(b, thread));
}

static void analyse_gradient(void *argument, int thread, int64_t begin, int64_t end)
{
    const problem *const b = argument;
    for (int64_t x = begin; x < end; x++) {
        const int64_t at = x * plane_floats(b);
        b->kernels->analyse_gradient_plane(b->tables, b->u + at, b->pre + at, GRVI_ACT_GELU,
                                           b->y + at, plane_of(b, x), scratch_of(b, thread));
    }
}

static void synthesise(void *argument, int thread, int64_t begin, int64_t end)
{
    const problem *const b = argument;
    for (int64_t x = begin; x < end; x++) {
        const int64_t at = x * plane_floats(b);
        const grvi_slab_plane a = plane_of(b, x);
        const grvi_synthesis_end epilogue = {b->u + at, b->weight, b->bias, GRVI_ACT_GELU};
        b->kernels->synthesise_plane(b->tables,
                                     (grvi_slab_plane_const){a.data, a.stride_r1, a.stride_qb},
                                     &epilogue, b->y + at, NULL, scratch_of(b, thread));
    }
}

/* The first axis over units of (r_1, block). */
static void along_first_axis(const problem *b, int thread, int64_t begin, int64_t end, bool forward)
{
    const grvi_spectral_layout *const l = layout_of(b);
    const int64_t a_floats = l->n_blocks * l->axis[0].n * l->block,
                  p_floats = l->axis[0].n_rows * l->n_blocks * l->block;
    while (begin < end) {
        const int64_t r1 = begin / l->n_blocks, first = begin % l->n_blocks,
                      last = grvi_min_i64(l->n_blocks, first + end - begin);
        if (forward)
            b->kernels->first_axis_forward(b->tables, b->a + r1 * a_floats, b->p + r1 * p_floats,
                                           first, last, scratch_of(b, thread));
        else
            b->kernels->first_axis_inverse(b->tables, b->p + r1 * p_floats, b->a + r1 * a_floats,
                                           first, last, scratch_of(b, thread));
        begin += last - first;
    }
}

static void first_axis(void *argument, int thread, int64_t begin, int64_t end)
{
    along_first_axis(argument, thread, begin, end, true);
}
static void first_axis_back(void *argument, int thread, int64_t begin, int64_t end)
{
    along_first_axis(argument, thread, begin, end, false);
}

/* Multiply-adds of one column along an axis. */
static double axis_fma(const grvi_axis_modes *axis)
{
    return (double)(axis->n_cos * (axis->n / 2 + 1) + axis->n_sin * ((axis->n + 1) / 2 - 1));
}

/* GF of the local axes for all planes: the second-to-last axis first, then the last, then upwards. */
static double local_gflop(const grvi_spectral_layout *l)
{
    const int d = l->n_axes;
    double points = (double)l->n_points * (double)l->channels, sum = 0;
    for (int step = 1; step < d; step++) {
        const int a = d == 4 ? 4 - (step == 1 ? 2 : step == 2 ? 1 : 3) : d - step;
        points /= (double)l->axis[a].n;
        sum += 2 * axis_fma(&l->axis[a]) * points;
        points *= (double)l->axis[a].n_rows;
    }
    return sum * 1e-9;
}

static double gflop_of(const problem *b, int pass)
{
    const grvi_spectral_layout *const l = layout_of(b);
    const double values = (double)l->n_points * (double)l->channels,
                 r1 = l->n_axes > 1 ? (double)l->axis[1].n_rows : 1;
    if (pass == 1 || pass == 2) return 2e-9 * axis_fma(&l->axis[0]) * r1 * (double)l->n_columns;
    const double end = pass == 3   ? 1e-9 * values * (2 * (double)l->channels + 18)
                       : pass == 4 ? 24e-9 * values
                                   : 0;
    return local_gflop(l) + end;
}

static double processor_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int parse_problem(const char *text, int64_t *n, int64_t *modes, int64_t *channels)
{
    int d = 0, n_modes = 0;
    char *end = NULL;
    do {
        if (d == GRVI_MAX_AXES) return 0;
        n[d++] = strtoll(text, &end, 10);
        text = end + 1;
    } while (*end == 'x');
    if (*end != 'w') return 0;
    *channels = strtoll(text, &end, 10);
    if (*end != 'm') return 0;
    do {
        if (n_modes == d) return 0;
        modes[n_modes++] = strtoll(end + 1, &end, 10);
    } while (*end == ',');
    return *end == '\0' && n_modes == d ? d : 0;
}

static grv_status create(problem *b, const char *text, int n_threads)
{
    int64_t n[GRVI_MAX_AXES], modes[GRVI_MAX_AXES], channels;
    grvi_spectral_layout l;
    const int d = parse_problem(text, n, modes, &channels);
    GRV_CHECK(d > 0, GRV_E_ARG, "problem: N0xN1x..wCmM0,M1,.. expected, found '%s'", text);
    GRV_TRY(grvi_spectral_layout_init(&l, d, n, modes, channels));
    GRV_TRY(grvi_transform_tables_create(&l, &b->tables));
    b->kernels = grvi_spectral_kernels_for(grvi_isa_chosen());
    b->scratch_bytes = grvi_round_up(b->kernels->scratch_bytes(b->tables), 64);
    const int64_t values = l.n_points * channels, r1 = d > 1 ? l.axis[1].n_rows : 1,
                  columns = l.n_blocks * l.block;
    GRV_TRY(GRVI_ALLOC(&b->u, values));
    GRV_TRY(GRVI_CALLOC(&b->y, values));
    GRV_TRY(GRVI_ALLOC(&b->pre, values));
    GRV_TRY(GRVI_CALLOC(&b->a, r1 * columns * l.axis[0].n));
    GRV_TRY(GRVI_CALLOC(&b->p, r1 * columns * l.axis[0].n_rows));
    GRV_TRY(GRVI_CALLOC(&b->weight, channels * channels));
    GRV_TRY(GRVI_CALLOC(&b->bias, channels));
    GRV_TRY(grvi_calloc(n_threads, (size_t)b->scratch_bytes, (void **)&b->scratch));
    for (int64_t i = 0; i < values; i++) b->u[i] = b->pre[i] = (float)(i % 1009) * 2e-3f - 1;
    for (int64_t i = 0; i < channels * channels; i++) b->weight[i] = (float)(i % 7) * 0.1f - 0.3f;
    return GRV_OK;
}

static void measure(problem *b, int repetitions, int n_threads)
{
    static grv_range_body *const bodies[N_PASSES] = {analyse, first_axis, first_axis_back,
                                                     synthesise, analyse_gradient};
    static double seconds[N_PASSES][MAX_REPETITIONS], processor[N_PASSES][MAX_REPETITIONS];
    const grvi_spectral_layout *const l = layout_of(b);
    const int64_t units = (l->n_axes > 1 ? l->axis[1].n_rows : 1) * l->n_blocks;
    for (int r = 0; r < repetitions; r++)
        for (int pass = 0; pass < N_PASSES; pass++) {
            const double start = grv_clock_seconds(), processor_start = processor_seconds();
            grv_parallel_for(n_threads, pass == 1 || pass == 2 ? units : l->axis[0].n, bodies[pass],
                             b);
            seconds[pass][r] = grv_clock_seconds() - start;
            processor[pass][r] = processor_seconds() - processor_start;
        }
    double sum = 0, processor_sum = 0;
    printf("pass,wall_ms,processor_ms,gflop,gflop_per_processor_second\n");
    for (int pass = 0; pass < N_PASSES; pass++) {
        qsort(seconds[pass], (size_t)repetitions, sizeof(double), compare);
        qsort(processor[pass], (size_t)repetitions, sizeof(double), compare);
        const double wall = seconds[pass][repetitions / 2], own = processor[pass][repetitions / 2],
                     gflop = gflop_of(b, pass);
        if (pass < N_FORWARD_PASSES) sum += wall, processor_sum += own;
        printf("%s,%.2f,%.2f,%.3f,%.1f\n", pass_names[pass], wall * 1e3, own * 1e3, gflop,
               gflop / own);
    }
    printf("forward without mode mix,%.2f,%.2f,,\n", sum * 1e3, processor_sum * 1e3);
}

int main(int argc, char **argv)
{
    const char *const text = argc > 1 ? argv[1] : "64x64x64x16w20m12,12,12,6";
    const int repetitions = argc > 2 ? atoi(argv[2]) : 7, n_threads = argc > 3 ? atoi(argv[3]) : 1;
    static problem b;
    if (repetitions < 1 || repetitions > MAX_REPETITIONS || n_threads < 1 ||
        create(&b, text, n_threads) != GRV_OK) {
        fprintf(stderr, "bench_spectral: %s\n", grv_error_message());
        return 1;
    }
    printf("# %s, %s, %d thread(s), tables %lld bytes, scratch %lld bytes a thread\n", text,
           grvi_isa_name(grvi_isa_chosen()), n_threads, (long long)b.tables->n_bytes,
           (long long)b.scratch_bytes);
    measure(&b, repetitions, n_threads);
    return 0;
}
