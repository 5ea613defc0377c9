/* Benchmark of the neighbour searches: build, k nearest of queries in random and in sorted order, all points within a radius, on one cloud.
 * With a folder, points and queries are read from it and results left there, so that others can do the same on the same numbers
 * (bench/peers/neighbours.py). Checked against brute force at some queries. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/median.h"
#include "geom/query_order.h"
#include "grove/bench.h"
#include "grove/core.h"
#include "grove/neighbours.h"

enum { MAX_REPETITIONS = 101, N_CHECKED = 24, TYPICAL_WITHIN = 32 };
static const double pi = 3.14159265358979323846;

typedef struct search_problem {
    char cloud[16]; /* uniform, surface or file */
    int64_t n, k;
    int n_threads, n_repetitions;
    bool is_double;
} search_problem;

/* ---- the problem language ---- */

static bool read_number(const char *text, int64_t most, int64_t *value)
{
    char *end = NULL;
    const long long number = strtoll(text, &end, 10);
    *value = number;
    return end != text && *end == '\0' && number >= 1 && number <= most;
}

static bool read_word(const char *word, search_problem *problem)
{
    int64_t value = 0;
    if (strcmp(word, "f64") == 0) {
        problem->is_double = true;
        return true;
    }
    if (word[0] >= '0' && word[0] <= '9') return read_number(word, 200000000, &problem->n);
    if (word[0] == 'k' && read_number(word + 1, 1024, &problem->k)) return true;
    if (word[0] == 't' && read_number(word + 1, 256, &value))
        return problem->n_threads = (int)value, true;
    if (word[0] == 'r' && read_number(word + 1, MAX_REPETITIONS, &value))
        return problem->n_repetitions = (int)value, true;
    return false;
}

static grv_status parse_problem(const char *text, search_problem *problem)
{
    char words[GRV_BENCH_NAME_BYTES], *rest = NULL;
    *problem = (search_problem){.n = 1000000, .k = 7, .n_threads = 1, .n_repetitions = 3};
    (void)snprintf(words, sizeof words, "%s",
                   strncmp(text, "neighbours:", 11) == 0 ? text + 11 : text);
    const char *const cloud = strtok_r(words, ":", &rest);
    bool is_known = cloud != NULL && (strcmp(cloud, "uniform") == 0 ||
                                      strcmp(cloud, "surface") == 0 || strcmp(cloud, "file") == 0);
    if (is_known) (void)snprintf(problem->cloud, sizeof problem->cloud, "%s", cloud);
    for (const char *word; is_known && (word = strtok_r(NULL, ":", &rest)) != NULL;)
        is_known = read_word(word, problem);
    GRV_CHECK(is_known && strlen(text) < sizeof words, GRV_E_ARG,
              "neighbours problem '%.80s': "
              "<uniform|surface|file>[:<points>][:k<k>][:t<threads>][:r<repetitions>][:f64] "
              "expected, e.g. uniform:1000000:k7:t2",
              text);
    return GRV_OK;
}

/* ---- clouds ---- */

/* Coordinates of point i: of the unit cube, or on a wavy closed surface (a body is two-dimensional in the small). */
static void make_point(const search_problem *problem, uint64_t stream, int64_t i, double *x)
{
    double u[3];
    for (int d = 0; d < 3; d++) u[d] = grv_random_uniform(7, stream, (uint64_t)(3 * i + d));
    if (strcmp(problem->cloud, "uniform") == 0) {
        memcpy(x, u, sizeof u);
        return;
    }
    const double z = 2 * u[0] - 1, angle = 2 * pi * u[1], rim = sqrt(1 - z * z),
                 r = 1 + 0.2 * sin(5 * z) * cos(3 * angle);
    x[0] = 4 * r * rim * cos(angle);
    x[1] = 1.6 * r * rim * sin(angle);
    x[2] = 1.4 * r * z;
}

static void put(const search_problem *problem, void *array, int64_t i, double value)
{
    if (problem->is_double)
        ((double *)array)[i] = value;
    else
        ((float *)array)[i] = (float)value;
}

static double get(const search_problem *problem, const void *array, int64_t i)
{
    return problem->is_double ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

/* Rows of three floats of folder/name; their number. */
static grv_status read_rows(const search_problem *problem, const char *folder, const char *name,
                            void **rows, int64_t *n)
{
    grv_status status = GRV_OK;
    char path[4096];
    float *values = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "rb");
    GRV_CHECK(file != NULL, GRV_E_IO, "'%s': raw float32 [n][3] expected", path);
    *n = fseek(file, 0, SEEK_END) == 0 ? (int64_t)ftell(file) / 12 : 0;
    rewind(file);
    GRV_TRY_GOTO(GRVI_ALLOC(&values, 3 * *n));
    GRV_TRY_GOTO(grvi_alloc(3 * *n, sizeof(double), rows));
    GRV_CHECK_GOTO(fread(values, 12, (size_t)*n, file) == (size_t)*n, GRV_E_IO,
                   "'%s': %lld rows expected", path, (long long)*n);
    for (int64_t i = 0; i < 3 * *n; i++) put(problem, *rows, i, (double)values[i]);
done:
    (void)fclose(file);
    grv_free(values);
    return status;
}

typedef struct search_bench {
    search_problem problem;
    void *points, *queries, *sorted; /* [n][3], [m][3]; sorted: queries along a curve */
    int64_t n, m;
    grv_neighbours *neighbours;
    int32_t *indices; /* [m][k] */
    void *distances;  /* [m][k] */
    double radius;    /* with TYPICAL_WITHIN points in it at the median query */
    int64_t *offsets; /* [m + 1] */
    int32_t *list;    /* all points within the radius */
    void *list_squared;
} search_bench;

static grv_status make_cloud(search_bench *b, const char *folder)
{
    const search_problem *const p = &b->problem;
    if (strcmp(p->cloud, "file") == 0) {
        GRV_CHECK(folder != NULL, GRV_E_ARG, "a folder with points.f32 and queries.f32 expected");
        GRV_TRY(read_rows(p, folder, "points.f32", &b->points, &b->n));
        GRV_TRY(read_rows(p, folder, "queries.f32", &b->queries, &b->m));
        b->problem.n = b->n;
    } else {
        b->n = b->m = p->n;
        GRV_TRY(grvi_alloc(3 * b->n, sizeof(double), &b->points));
        GRV_TRY(grvi_alloc(3 * b->m, sizeof(double), &b->queries));
        for (int64_t i = 0; i < b->n; i++) {
            double x[3];
            for (int which = 0; which < 2; which++) {
                make_point(p, (uint64_t)which, i, x);
                for (int d = 0; d < 3; d++)
                    put(p, which == 0 ? b->points : b->queries, 3 * i + d, x[d]);
            }
        }
    }
    GRV_CHECK(b->n > 0 && b->m > 0 && b->m <= GRVI_QUERY_BATCH * (int64_t)64, GRV_E_ARG,
              "points and queries expected");
    return GRV_OK;
}

/* The queries along a curve through space: as one who cares about locality would send them. */
static grv_status sort_queries(search_bench *b)
{
    uint64_t *order = NULL;
    GRV_TRY(grvi_alloc(3 * b->m, sizeof(double), &b->sorted));
    GRV_TRY(GRVI_ALLOC(&order, grvi_query_order_words(b->m, 1)));
    grvi_query_order(b->queries, b->m, 3, b->problem.is_double, 1, order);
    for (int64_t i = 0; i < b->m; i++) {
        for (int d = 0; d < 3; d++)
            put(&b->problem, b->sorted, 3 * i + d,
                get(&b->problem, b->queries, 3 * (int64_t)order[i] + d));
    }
    grv_free(order);
    return GRV_OK;
}

/* ---- what is timed ---- */

static grv_status build(search_bench *b)
{
    grv_neighbours_destroy(&b->neighbours);
    return grv_neighbours_create(b->points, b->n, 3,
                                 b->problem.is_double ? GRV_NEIGHBOURS_F64 : GRV_NEIGHBOURS_F32,
                                 b->problem.n_threads, &b->neighbours);
}

static grv_status search_nearest(search_bench *b, const void *queries)
{
    grv_nearest_params params = grv_nearest_params_default();
    params.k = b->problem.k;
    params.n_threads = b->problem.n_threads;
    return grv_neighbours_nearest(b->neighbours, queries, b->m, &params, b->indices, b->distances);
}

static grv_status search_random(search_bench *b)
{
    return search_nearest(b, b->queries);
}
static grv_status search_sorted(search_bench *b)
{
    return search_nearest(b, b->sorted);
}

static grv_status count_within(search_bench *b)
{
    return grv_neighbours_count(b->neighbours, b->queries, b->m, &b->radius, 1,
                                b->problem.n_threads, b->offsets);
}

static grv_status fill_within(search_bench *b)
{
    grv_radius_params params = grv_radius_params_default();
    params.squared = true;
    params.n_threads = b->problem.n_threads;
    const grv_radius_lists lists = {.radius = b->radius,
                                    .offsets = b->offsets,
                                    .indices = b->list,
                                    .distances = b->list_squared};
    return grv_neighbours_fill(b->neighbours, b->queries, b->m, &params, &lists, 1);
}

/* The radius, and room for what lies within it. */
static grv_status prepare_radius(search_bench *b)
{
    double far[1001];
    int32_t indices[TYPICAL_WITHIN];
    double distances[TYPICAL_WITHIN];
    const int64_t n_samples = grvi_min_i64(1001, b->m);
    grv_nearest_params params = grv_nearest_params_default();
    params.k = TYPICAL_WITHIN;
    for (int64_t i = 0; i < n_samples; i++) {
        const int64_t at = 3 * (i * b->m / n_samples) *
                           (int64_t)(b->problem.is_double ? sizeof(double) : sizeof(float));
        GRV_TRY(grv_neighbours_nearest(b->neighbours, (const char *)b->queries + at, 1, &params,
                                       indices, distances));
        far[i] = get(&b->problem, distances, TYPICAL_WITHIN - 1);
    }
    b->radius = (double)(float)grvi_median(n_samples, far);
    GRV_CHECK(isfinite(b->radius), GRV_E_ARG, "at least %d points expected", TYPICAL_WITHIN);
    GRV_TRY(count_within(b));
    GRV_TRY(GRVI_ALLOC(&b->list, b->offsets[b->m]));
    return grvi_alloc(b->offsets[b->m], sizeof(double), &b->list_squared);
}

/* Seconds of processors that this process has used: what a row costs on a machine that others use too. */
static double processor_seconds(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef struct timed_row {
    const char *name, *cpu_name;
    grv_status (*run)(search_bench *);
} timed_row;

static const timed_row timed_rows[] = {
    {"build_seconds", "build_cpu_seconds", build},
    {"nearest_random_seconds", "nearest_random_cpu_seconds", search_random},
    {"nearest_sorted_seconds", "nearest_sorted_cpu_seconds", search_sorted},
    {"count_within_seconds", "count_within_cpu_seconds", count_within},
    {"fill_within_seconds", "fill_within_cpu_seconds", fill_within}};
enum { N_ROWS = sizeof timed_rows / sizeof *timed_rows };

static grv_status time_rows(search_bench *b, double *medians, double *cpu_medians)
{
    double seconds[N_ROWS][MAX_REPETITIONS], cpu_seconds[N_ROWS][MAX_REPETITIONS];
    for (int row = 0; row < N_ROWS; row++)
        GRV_TRY(timed_rows[row].run(b)); /* touches the memory of results */
    for (int repetition = 0; repetition < b->problem.n_repetitions; repetition++) {
        for (int row = 0; row < N_ROWS; row++) {
            const double start = grv_clock_seconds(), cpu_start = processor_seconds();
            GRV_TRY(timed_rows[row].run(b));
            seconds[row][repetition] = grv_clock_seconds() - start;
            cpu_seconds[row][repetition] = processor_seconds() - cpu_start;
        }
    }
    for (int row = 0; row < N_ROWS; row++) {
        medians[row] = grvi_median(b->problem.n_repetitions, seconds[row]);
        cpu_medians[row] = grvi_median(b->problem.n_repetitions, cpu_seconds[row]);
    }
    return GRV_OK;
}

/* ---- the check ---- */

static double squared_distance(const search_bench *b, const void *queries, int64_t query,
                               int64_t point)
{
    double sum64 = 0;
    float sum32 = 0;
    for (int d = 0; d < 3; d++) {
        const double q = get(&b->problem, queries, 3 * query + d),
                     p = get(&b->problem, b->points, 3 * point + d);
        const float difference = (float)q - (float)p;
        sum64 += (q - p) * (q - p);
        sum32 += difference * difference;
    }
    return b->problem.is_double ? sum64 : (double)sum32;
}

/* The sorted queries' rows, by brute force: ascending, and no other point before the last. */
static bool check_row(const search_bench *b, int64_t query)
{
    const int32_t *const row = b->indices + query * b->problem.k;
    const int64_t k = grvi_min_i64(b->problem.k, b->n);
    const double last = squared_distance(b, b->sorted, query, row[k - 1]);
    int64_t n_before = 0;
    for (int64_t j = 1; j < k; j++) {
        const double x = squared_distance(b, b->sorted, query, row[j - 1]),
                     y = squared_distance(b, b->sorted, query, row[j]);
        if (x > y || (!(x < y) && row[j - 1] >= row[j])) return false;
    }
    for (int64_t i = 0; i < b->n; i++) {
        const double squared = squared_distance(b, b->sorted, query, i);
        n_before += squared < last || (squared <= last && i <= row[k - 1]);
    }
    return n_before == k;
}

static bool check_list(const search_bench *b, int64_t query)
{
    const double bound = b->problem.is_double ? b->radius * b->radius
                                              : (double)((float)b->radius * (float)b->radius);
    int64_t at = b->offsets[query];
    for (int64_t i = 0; i < b->n; i++) {
        const double squared = squared_distance(b, b->queries, query, i);
        if (squared > bound) continue;
        if (at == b->offsets[query + 1] || b->list[at] != i ||
            fabs(get(&b->problem, b->list_squared, at) - squared) > 0)
            return false;
        at++;
    }
    return at == b->offsets[query + 1];
}

static bool check(search_bench *b)
{
    bool correct = true;
    for (int64_t i = 0; i < N_CHECKED && correct; i++) {
        const int64_t query = i * (b->m - 1) / (N_CHECKED - 1);
        correct = check_row(b, query) && check_list(b, query);
    }
    return correct;
}

static grv_status write_numbers(const char *folder, const char *name, const int32_t *numbers,
                                int64_t n)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return grvi_fs_write_atomic(path, numbers, n * (int64_t)sizeof *numbers, false);
}

/* Results for whoever compares: of the queries as they were given. */
static grv_status write_results(search_bench *b, const char *folder)
{
    GRV_TRY(search_random(b));
    GRV_TRY(write_numbers(folder, "nearest.i32", b->indices, b->m * b->problem.k));
    for (int64_t i = 0; i < b->m; i++)
        b->indices[i] = (int32_t)(b->offsets[i + 1] - b->offsets[i]); /* k >= 1 a query */
    return write_numbers(folder, "within.i32", b->indices, b->m);
}

typedef struct copy_call {
    const char *from;
    char *to;
} copy_call;

static void copy_part(void *argument, int thread, int64_t begin, int64_t end)
{
    const copy_call *const call = argument;
    (void)thread;
    memcpy(call->to + begin, call->from + begin, (size_t)(end - begin));
}

/* Time for the bytes that any search must move, points and queries in once and results out once, at the speed of the best of some copies. */
static double floor_of(const search_bench *b)
{
    const int64_t real = b->problem.is_double ? 8 : 4, n_bytes = b->m * 3 * real;
    copy_call call = {b->queries, b->sorted};
    double best = INFINITY;
    for (int i = 0; i < 5; i++) {
        const double start = grv_clock_seconds();
        grv_parallel_for(b->problem.n_threads, n_bytes, copy_part, &call);
        best = fmin(best, grv_clock_seconds() - start);
    }
    const double moved = (double)(3 * real * (b->n + b->m) + (real + 4) * b->m * b->problem.k);
    return moved * best / (double)(2 * n_bytes);
}

static grv_status run_bench(search_bench *b, const char *folder, grv_bench_result *result)
{
    double medians[N_ROWS], cpu_medians[N_ROWS];
    GRV_TRY(make_cloud(b, folder));
    GRV_TRY(sort_queries(b));
    GRV_TRY(GRVI_ALLOC(&b->indices, b->m * b->problem.k));
    GRV_TRY(grvi_alloc(b->m * b->problem.k, sizeof(double), &b->distances));
    GRV_TRY(GRVI_ALLOC(&b->offsets, b->m + 1));
    GRV_TRY(build(b));
    GRV_TRY(prepare_radius(b));
    GRV_TRY(time_rows(b, medians, cpu_medians));
    GRV_TRY(search_sorted(b));
    result->correct = check(b);
    if (folder != NULL) GRV_TRY(write_results(b, folder));
    result->floor_seconds = floor_of(b);
    result->median_seconds = medians[0] + medians[1];
    result->floor_ratio = result->median_seconds / result->floor_seconds;
    for (int row = 0; row < N_ROWS; row++)
        grv_bench_result_add(result, timed_rows[row].name, medians[row]);
    for (int row = 0; row < N_ROWS; row++)
        grv_bench_result_add(result, timed_rows[row].cpu_name, cpu_medians[row]);
    grv_bench_result_add(result, "nanoseconds_per_query", 1e9 * medians[1] / (double)b->m);
    grv_bench_result_add(result, "radius", b->radius);
    grv_bench_result_add(result, "points_within", (double)b->offsets[b->m]);
    grv_bench_result_add(result, "structure_bytes", (double)grv_neighbours_bytes(b->neighbours));
    return GRV_OK;
}

grv_status grv_bench_neighbours(const char *problem, const char *folder, grv_bench_result *result)
{
    search_bench b = {0};
    *result = (grv_bench_result){0};
    GRV_TRY(parse_problem(problem, &b.problem));
    const grv_status status = run_bench(&b, folder, result);
    const search_problem *const p = &b.problem;
    (void)snprintf(result->problem, sizeof result->problem, "neighbours:%s:%lld:k%lld:t%d:r%d%s",
                   p->cloud, (long long)p->n, (long long)p->k, p->n_threads, p->n_repetitions,
                   p->is_double ? ":f64" : "");
    grv_neighbours_destroy(&b.neighbours);
    void *const blocks[] = {b.points,    b.queries, b.sorted, b.indices,
                            b.distances, b.offsets, b.list,   b.list_squared};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) grv_free(blocks[i]);
    return status;
}
