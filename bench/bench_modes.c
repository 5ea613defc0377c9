/* The mode mix at the sizes of two FNO layers, each pass in GB/s of weights against plain loops
 * over as many bytes, in the same run and interleaved with them:
 *   bench_modes [threads=1] [repetitions=9] [samples=1] [isa=avx2] [problem=<end of a name>]
 *   [pass=forward]
 * forward reads the weights and dX as well: compare with 'read'. dW writes as many bytes:
 * compare with 'write'. Prints CSV: problem, isa, threads, samples, pass, best ms, median ms,
 * GB/s of the best, fraction of the plain loop's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "kernels/mode_mix.h"

enum { MAX_REPETITIONS = 101, MAX_THREADS = 64 };

typedef struct problem {
    const char *name;
    int64_t n[4], modes[4], channels;
    int64_t count; /* |k_1| of the slice that one rank owns */
} problem;

static const problem problems[] = {
    {"64x64x64x16 m12.12.12.6 w20", {64, 64, 64, 16}, {12, 12, 12, 6}, 20, 13},
    {"64x64x64x16 m12.12.12.6 w12", {64, 64, 64, 16}, {12, 12, 12, 6}, 12, 13},
    {"64x64x64x16 m12.12.12.6 w8", {64, 64, 64, 16}, {12, 12, 12, 6}, 8, 13},
    {"64x64x64x16 m12.12.12.6 w10", {64, 64, 64, 16}, {12, 12, 12, 6}, 10, 13},
    {"64x64x64x16 m12.12.12.6 w5", {64, 64, 64, 16}, {12, 12, 12, 6}, 5, 13},
    {"64x64x64x16 m12.12.12.6 w3", {64, 64, 64, 16}, {12, 12, 12, 6}, 3, 13},
    {"64x64x64x16 m12.12.12.6 w32 7 of 13", {64, 64, 64, 16}, {12, 12, 12, 6}, 32, 7},
    {"130x130x130x70 m18.18.18.12 w12 8 of 19", {130, 130, 130, 70}, {18, 18, 18, 12}, 12, 8},
};

typedef enum pass {
    READ,
    WRITE,
    FORWARD,
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    BACKWARD_BOTH,
    N_PASSES
} pass;
static const char *const pass_names[N_PASSES] = {"read", "write", "forward",
                                                 "dX",   "dW",    "dX and dW"};

typedef struct run {
    const grvi_mode_mix_kernels *kernels;
    grvi_mode_mix mix;
    int64_t n_samples, n_weights;
    float *weights, *grad_weights, *p, *g;
    char *scratch;
    int64_t scratch_bytes; /* of one thread */
    pass pass;
    float sums[MAX_THREADS];
    double seconds[MAX_THREADS]; /* of processor time in the last pass */
} run;

/* Reads through four streams with prefetch: as fast as one core reads here. */
static float read_all(const float *x, int64_t n)
{
    typedef float lanes __attribute__((vector_size(32), aligned(4)));
    lanes sum[8] = {{0}};
    const int64_t quarter = n / 4 / 16 * 16;
    for (int64_t i = 0; i < quarter; i += 16)
        for (int s = 0; s < 4; s++) {
            const float *const at = x + s * quarter + i;
            __builtin_prefetch(at + 512, 0, 3);
            sum[2 * s] += *(const lanes *)(const void *)at;
            sum[2 * s + 1] += *(const lanes *)(const void *)(at + 8);
        }
    float total = 0;
    for (int s = 0; s < 8; s++)
        for (int i = 0; i < 8; i++) total += sum[s][i];
    return total;
}

/* Processor time of this thread: what others do here counts only through the memory. */
static double processor_seconds(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void body(void *argument, int thread, int64_t begin, int64_t end)
{
    run *const r = argument;
    const double start = processor_seconds();
    const grvi_mode_mix_work work = {begin, end, r->n_samples, r->mix.n_values};
    const int64_t mode_size = 2 * r->mix.layout.channels * r->mix.layout.channels;
    const int64_t first = grvi_mode_mix_first_mode(&r->mix, begin) * mode_size;
    const int64_t size = grvi_mode_mix_first_mode(&r->mix, end) * mode_size - first;
    void *const scratch = r->scratch + thread * r->scratch_bytes;
    switch (r->pass) {
    case READ: r->sums[thread] += read_all(r->weights + first, size); break;
    case WRITE:
        for (int64_t i = 0; i < size; i++)
            r->grad_weights[first + i] = 1.5F; /* ordinary stores: no memset */
        break;
    case FORWARD: r->kernels->forward(&r->mix, &work, r->weights, r->p, r->p, scratch); break;
    case BACKWARD_INPUT:
        r->kernels->backward(&r->mix, &work, r->weights, NULL, r->g, r->g, NULL, scratch);
        break;
    case BACKWARD_WEIGHT:
        r->kernels->backward(&r->mix, &work, NULL, r->p, r->g, NULL, r->grad_weights, scratch);
        break;
    default:
        r->kernels->backward(&r->mix, &work, r->weights, r->p, r->g, r->g, r->grad_weights,
                             scratch);
        break;
    }
    r->seconds[thread] = processor_seconds() - start;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static grv_status run_problem(const problem *chosen, const char *only_pass, grvi_isa isa,
                              int n_threads, int repetitions, int64_t n_samples)
{
    static double seconds[N_PASSES][MAX_REPETITIONS];
    run r = {.kernels = grvi_mode_mix_kernels_for(isa), .n_samples = n_samples};
    grvi_spectral_layout layout;
    GRV_TRY(grvi_spectral_layout_init(&layout, 4, chosen->n, chosen->modes, chosen->channels));
    GRV_TRY(grvi_mode_mix_init(&r.mix, &layout, 0, chosen->count));
    r.n_weights = r.mix.n_modes * 2 * chosen->channels * chosen->channels;
    r.scratch_bytes = grvi_round_up((int64_t)grvi_mode_mix_scratch_bytes(&r.mix, n_samples), 64);
    const int64_t size = n_samples * r.mix.n_values;
    GRV_TRY(GRVI_ALLOC(&r.weights, r.n_weights));
    GRV_TRY(GRVI_ALLOC(&r.grad_weights, r.n_weights));
    GRV_TRY(GRVI_ALLOC(&r.p, size));
    GRV_TRY(GRVI_ALLOC(&r.g, size));
    GRV_TRY(GRVI_ALLOC(&r.scratch, n_threads * r.scratch_bytes));
    for (int64_t i = 0; i < r.n_weights; i++) r.weights[i] = (float)(i % 1021) / 1021 - 0.5F;
    for (int k = 0; k < repetitions + 1; k++) /* the first one warms up */
        for (int p = 0; p < N_PASSES; p++) {
            if (p > WRITE && only_pass != NULL && strcmp(only_pass, pass_names[p]) != 0) continue;
            for (int64_t i = 0; i < size; i++)
                r.p[i] = r.g[i] = (float)(i % 509) / 509 - 0.5F; /* no denormals, no overflow */
            r.pass = (pass)p;
            grv_parallel_for(n_threads, r.mix.n_groups, body, &r);
            double slowest = 0;
            for (int t = 0; t < n_threads; t++)
                slowest = r.seconds[t] > slowest ? r.seconds[t] : slowest;
            if (k > 0) seconds[p][k - 1] = slowest;
        }
    double rate[N_PASSES];
    for (int p = 0; p < N_PASSES; p++) {
        qsort(seconds[p], (size_t)repetitions, sizeof(double), compare);
        const double bytes = (double)r.n_weights * 4 * (p == BACKWARD_BOTH ? 2 : 1);
        rate[p] = bytes / seconds[p][0] * 1e-9;
        if (p > WRITE && only_pass != NULL && strcmp(only_pass, pass_names[p]) != 0) continue;
        const double both = 2 / (1 / rate[READ] + 1 / rate[WRITE]);
        const double plain = p == BACKWARD_BOTH                   ? both
                             : p == WRITE || p == BACKWARD_WEIGHT ? rate[WRITE]
                                                                  : rate[READ];
        printf("%s,%s,%d,%lld,%s,%.3f,%.3f,%.2f,%.2f\n", chosen->name, grvi_isa_name(isa),
               n_threads, (long long)n_samples, pass_names[p], seconds[p][0] * 1e3,
               seconds[p][repetitions / 2] * 1e3, rate[p], p <= WRITE ? 1 : rate[p] / plain);
    }
    float sum = 0;
    for (int t = 0; t < n_threads; t++) sum += r.sums[t];
    if (sum == 0.125F) printf("#\n"); /* the sums are used */
    grv_free(r.weights), grv_free(r.grad_weights), grv_free(r.p), grv_free(r.g),
        grv_free(r.scratch);
    return GRV_OK;
}

/* Value of the argument "key=value", NULL without one. */
static const char *option(int argc, char **argv, const char *key)
{
    const size_t n = strlen(key);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], key, n) == 0 && argv[i][n] == '=') return argv[i] + n + 1;
    return NULL;
}

static int64_t option_number(int argc, char **argv, const char *key, int64_t otherwise,
                             int64_t most)
{
    const char *const text = option(argc, argv, key);
    const int64_t value = text == NULL ? otherwise : strtol(text, NULL, 10);
    return grvi_max_i64(1, grvi_min_i64(value, most));
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

int main(int argc, char **argv)
{
    const int n_threads = (int)option_number(argc, argv, "threads", 1, MAX_THREADS);
    const int repetitions = (int)option_number(argc, argv, "repetitions", 9, MAX_REPETITIONS);
    const int64_t n_samples = option_number(argc, argv, "samples", 1, 64);
    const char *const only = option(argc, argv, "problem"), *const isa_name =
                                                                option(argc, argv, "isa");
    grvi_isa isa = grvi_isa_chosen();
    for (int i = 0; i < GRVI_ISA_COUNT && isa_name != NULL; i++)
        if (strcmp(isa_name, grvi_isa_name((grvi_isa)i)) == 0 && grvi_isa_usable((grvi_isa)i))
            isa = (grvi_isa)i;
    printf("problem,isa,threads,samples,pass,best_ms,median_ms,gb_per_s,fraction_of_plain\n");
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        if (only != NULL && !ends_with(problems[i].name, only)) continue;
        if (run_problem(&problems[i], option(argc, argv, "pass"), isa, n_threads, repetitions,
                        n_samples) != GRV_OK) {
            (void)fprintf(stderr, "%s\n", grv_error_message());
            return 1;
        }
    }
    return 0;
}
