/* Speed of the point kernels on the sizes of the peer network (64x64x64x16 points, width 20), one thread.
 * bench_points [isa [filter]]: prints CSV. Every row is timed plane by plane (64 planes, several runs after one warm-up): the median
 * plane times 64, and the fastest plane times 64 for machines where others disturb. Work is counted as in docs/points.md (multiply-add
 * 2 flop, GELU 18, its derivative 24, whatever is executed); the peak is a loop of multiply-adds on registers, timed between planes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "kernels/point_kernels.h"

enum { PLANES = 64, PLANE_POINTS = 64 * 64 * 16, RUNS = 2 };

static const grvi_point_kernels *kernels;
static const char *filter = "";

static void *room(int64_t n_floats)
{
    float *block;
    if (GRVI_ALLOC(&block, n_floats) != GRV_OK) {
        fprintf(stderr, "bench_points: %s\n", grv_error_message());
        exit(1);
    }
    for (int64_t i = 0; i < n_floats; i++)
        block[i] = (float)((i * 2654435761U % 2001) - 1000) * 1e-3f;
    return block;
}

/* Processor time of this thread: turns that other processes take do not count. */
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

/* Works on one of PLANES planes. */
typedef void timed_body(void *argument, int64_t plane);

static double seconds_of(timed_body *body, void *argument, int64_t plane)
{
    const double start = seconds_used();
    body(argument, plane);
    return seconds_used() - start;
}

/* flops and bytes are those of all planes together. */
static void measure(const char *name, double flops, double bytes, timed_body *body, void *argument)
{
    enum { ROUNDS = 200 * 1000 };
    double seconds[RUNS * PLANES], peak[RUNS * PLANES];
    for (int64_t plane = 0; plane < PLANES; plane++) body(argument, plane);
    for (int i = 0; i < RUNS * PLANES; i++) {
        const double start = seconds_used();
        const int64_t peak_flops = kernels->peak_loop(ROUNDS);
        peak[i] = (double)peak_flops / (seconds_used() - start) * 1e-9;
        seconds[i] = seconds_of(body, argument, i % PLANES);
    }
    qsort(seconds, RUNS * PLANES, sizeof *seconds, ascending);
    qsort(peak, RUNS * PLANES, sizeof *peak, ascending);
    const double median = seconds[RUNS * PLANES / 2] * PLANES, best = seconds[0] * PLANES;
    printf("%s,%s,%.1f,%.1f,%.1f,%.1f,%.2f,%.2f,%.1f\n", name, kernels->name, median * 1e3,
           best * 1e3, flops / median * 1e-9, peak[RUNS * PLANES / 2],
           flops / median * 1e-9 / peak[RUNS * PLANES / 2],
           flops / best * 1e-9 / peak[RUNS * PLANES - 1], bytes / median * 1e-9);
    fflush(stdout);
}

/* ---- perceptrons ---- */

typedef struct mlp_case {
    grvi_mlp mlp;
    grvi_mlp_gradients gradients;
    float *x, *y, *dx;
    void *scratch;
} mlp_case;

static void run_mlp_forward(void *argument, int64_t plane)
{
    const mlp_case *const c = argument;
    const int64_t first = plane * PLANE_POINTS;
    kernels->mlp_forward(&c->mlp, PLANE_POINTS, c->x + first * c->mlp.c_in,
                         c->y + first * c->mlp.c_out, c->scratch);
}

static void run_mlp_backward(void *argument, int64_t plane)
{
    const mlp_case *const c = argument;
    const int64_t first = plane * PLANE_POINTS;
    kernels->mlp_backward(
        &c->mlp, PLANE_POINTS, c->x + first * c->mlp.c_in, c->y + first * c->mlp.c_out,
        c->dx == NULL ? NULL : c->dx + first * c->mlp.c_in, &c->gradients, c->scratch);
}

static void *zeros(int64_t n)
{
    double *block;
    if (GRVI_CALLOC(&block, n) != GRV_OK) exit(1);
    return block;
}

static void bench_mlp(const char *name, grvi_mlp mlp, bool input_gradient)
{
    if (strstr(name, filter) == NULL) return;
    const double points = (double)PLANES * PLANE_POINTS, in = (double)mlp.c_in,
                 hidden = (double)mlp.c_hidden, out = (double)mlp.c_out;
    mlp_case c = {.mlp = mlp};
    c.mlp.weight1 = room(mlp.c_in * mlp.c_hidden);
    c.mlp.bias1 = room(mlp.c_hidden);
    c.mlp.weight2 = room(mlp.c_hidden * mlp.c_out);
    c.mlp.bias2 = room(mlp.c_out);
    c.gradients = (grvi_mlp_gradients){zeros(mlp.c_in * mlp.c_hidden), zeros(mlp.c_hidden),
                                       zeros(mlp.c_hidden * mlp.c_out), zeros(mlp.c_out)};
    c.x = room(PLANES * PLANE_POINTS * mlp.c_in);
    c.y = room(PLANES * PLANE_POINTS * mlp.c_out);
    c.dx = input_gradient ? room(PLANES * PLANE_POINTS * mlp.c_in) : NULL;
    c.scratch = zeros(grvi_mlp_scratch_bytes(&mlp) / 8 + 1);
    const double value = mlp.activation1 == GRVI_ACT_GELU ? 18 : 1,
                 slope = mlp.activation1 == GRVI_ACT_GELU ? 24 : 1;
    char row[96];
    snprintf(row, sizeof row, "%s forward", name);
    measure(row, points * (2 * hidden * (in + out) + hidden * value), points * 4 * (in + out),
            run_mlp_forward, &c);
    snprintf(row, sizeof row, "%s backward", name);
    /* hidden layer again, two weight gradients, gradient of the hidden layer, of the input; the output again if it has an activation */
    const double products =
        hidden * (in * (input_gradient ? 3 : 2) + out * (mlp.activation2 == GRVI_ACT_NONE ? 2 : 3));
    measure(row, points * (2 * products + hidden * (value + slope)),
            points * 4 * ((input_gradient ? 2 : 1) * in + out), run_mlp_backward, &c);
    void *blocks[] = {(void *)(uintptr_t)c.mlp.weight1,
                      (void *)(uintptr_t)c.mlp.bias1,
                      (void *)(uintptr_t)c.mlp.weight2,
                      (void *)(uintptr_t)c.mlp.bias2,
                      c.gradients.weight1,
                      c.gradients.bias1,
                      c.gradients.weight2,
                      c.gradients.bias2,
                      c.x,
                      c.y,
                      c.dx,
                      c.scratch};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) grv_free(blocks[i]);
}

/* ---- linear maps ---- */

typedef struct linear_case {
    grvi_linear linear;
    float *x, *y;
    double *dw, *db;
    void *scratch;
} linear_case;

static void run_linear_forward(void *argument, int64_t plane)
{
    const linear_case *const c = argument;
    const int64_t first = plane * PLANE_POINTS;
    kernels->linear_forward(&c->linear, PLANE_POINTS, c->x + first * c->linear.c_in,
                            c->y + first * c->linear.c_out, NULL, c->scratch);
}

static void run_linear_weight_gradient(void *argument, int64_t plane)
{
    const linear_case *const c = argument;
    const int64_t first = plane * PLANE_POINTS;
    kernels->linear_weight_gradient(&c->linear, PLANE_POINTS, c->x + first * c->linear.c_in,
                                    c->y + first * c->linear.c_out, c->dw, c->db, c->scratch);
}

static void bench_linear(int64_t c_in, int64_t c_out)
{
    char row[96];
    snprintf(row, sizeof row, "linear %d->%d", (int)c_in, (int)c_out);
    if (strstr(row, filter) == NULL) return;
    const double points = (double)PLANES * PLANE_POINTS;
    linear_case c = {.linear = {.c_in = c_in, .c_out = c_out, .activation = GRVI_ACT_NONE}};
    float *const weight = room(c_in * c_out);
    c.linear.weight = weight;
    c.x = room(PLANES * PLANE_POINTS * c_in);
    c.y = room(PLANES * PLANE_POINTS * c_out);
    c.dw = zeros(c_in * c_out);
    c.db = zeros(c_out);
    c.scratch = zeros(grvi_linear_scratch_bytes(&c.linear) / 8 + 1);
    snprintf(row, sizeof row, "linear %d->%d forward", (int)c_in, (int)c_out);
    const double flops = points * 2 * (double)(c_in * c_out),
                 bytes = points * 4 * (double)(c_in + c_out);
    measure(row, flops, bytes, run_linear_forward, &c);
    snprintf(row, sizeof row, "linear %d->%d weight gradient", (int)c_in, (int)c_out);
    measure(row, flops, bytes, run_linear_weight_gradient, &c);
    void *blocks[] = {weight, c.x, c.y, c.dw, c.db, c.scratch};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) grv_free(blocks[i]);
}

/* ---- optimiser and sums ---- */

enum { PIECE = 66 * 1000 * 1000 / PLANES };

typedef struct vector_case {
    float *g, *p, *m, *v; /* [PLANES * PIECE] */
    double sink;
} vector_case;

static void run_adam(void *argument, int64_t plane)
{
    const vector_case *const c = argument;
    const grvi_adam step = {.learning_rate = 1e-3,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .epsilon = 1e-8,
                            .weight_decay = 1e-4,
                            .correction1 = 0.1,
                            .correction2 = 0.001,
                            .gradient_scale = 1};
    const int64_t i = plane * PIECE;
    kernels->adam(&step, PIECE, c->g + i, c->p + i, c->m + i, c->v + i);
}

static void run_sum_squares(void *argument, int64_t plane)
{
    vector_case *const c = argument;
    c->sink += kernels->sum_squares(PIECE, c->g + plane * PIECE);
}

static void run_loss_sums(void *argument, int64_t plane)
{
    vector_case *const c = argument;
    c->sink += kernels->loss_sums(PIECE, c->p + plane * PIECE, c->g + plane * PIECE).error2;
}

static void run_first_nonfinite(void *argument, int64_t plane)
{
    vector_case *const c = argument;
    c->sink += (double)kernels->first_nonfinite(PIECE, c->g + plane * PIECE);
}

static void bench_vectors(void)
{
    if (strstr("vectors", filter) == NULL) return;
    enum { N = PLANES * PIECE };
    vector_case c = {.g = room(N), .p = room(N), .m = room(N), .v = room(N)};
    for (int64_t i = 0; i < N; i++) c.v[i] *= c.v[i];
    measure("adam 66M", 12.0 * N, 28.0 * N, run_adam, &c);
    measure("sum of squares 66M", 2.0 * N, 4.0 * N, run_sum_squares, &c);
    measure("loss sums 66M", 5.0 * N, 8.0 * N, run_loss_sums, &c);
    measure("first nonfinite 66M", 2.0 * N, 4.0 * N, run_first_nonfinite, &c);
    grv_free(c.g);
    grv_free(c.p);
    grv_free(c.m);
    grv_free(c.v);
}

static grvi_isa isa_named(const char *name)
{
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        if (strcmp(name, grvi_isa_name((grvi_isa)isa)) == 0) return (grvi_isa)isa;
    }
    return grvi_isa_chosen();
}

int main(int argc, char **argv)
{
    kernels = grvi_point_kernels_for(argc > 1 ? isa_named(argv[1]) : grvi_isa_chosen());
    if (kernels == NULL) {
        fprintf(stderr, "bench_points: instruction set '%s' is not usable here\n", argv[1]);
        return 1;
    }
    if (argc > 2) filter = argv[2];
    printf("kernel,isa,median_ms,best_ms,gflops,peak,fraction_of_peak,best_fraction,gbytes\n");
    bench_mlp("mlp 20->128->1 gelu",
              (grvi_mlp){.c_in = 20, .c_hidden = 128, .c_out = 1, .activation1 = GRVI_ACT_GELU},
              true);
    bench_mlp("mlp 12->32->1 relu",
              (grvi_mlp){.c_in = 12, .c_hidden = 32, .c_out = 1, .activation1 = GRVI_ACT_RELU},
              true);
    bench_mlp("mlp 3->6->12 relu",
              (grvi_mlp){.c_in = 3,
                         .c_hidden = 6,
                         .c_out = 12,
                         .activation1 = GRVI_ACT_RELU,
                         .activation2 = GRVI_ACT_RELU},
              false);
    bench_linear(20, 20);
    bench_linear(12, 12);
    bench_linear(1, 20);
    bench_vectors();
    return 0;
}
