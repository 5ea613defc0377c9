/* Benchmark of the store: what reading for training does, on one array, by the public calls.
 *   full      the array once, slab by slab into one buffer
 *   window    1 % of it, contiguous along the first axis, at several places
 *   rows      rows at random, all in one plan
 *   samples   small samples with a reader ahead of a consumer that computes
 *   write     a quarter of it, as a new array
 * and the decompressor by itself as the floor of `full`. Each repetition runs all rows in turn, medians are taken per row.
 * Reused buffers were touched before; with `fresh` each call gets memory that nobody touched. With `cold` the page cache is dropped
 * before each row, and what stayed in it is told. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/median.h"
#include "grove/bench.h"
#include "grove/core.h"
#include "grove/read_plan.h"
#include "store/page_cache.h"
#include "store/store_bench.h"
#include "store/store_impl.h"

enum { N_WINDOWS = 8, N_FIELD_ROWS = 16, N_POINT_ROWS = 256, SLAB_FIELDS = 8, MAX_NAME = 64 };

typedef struct store_bench {
    grvi_store_problem problem;
    const char *folder;
    char name[MAX_NAME];
    char *array_path;
    grv_store *store;
    grv_array *array;
    int64_t n_rows, row_bytes, slab_rows;
    float *slab; /* [slab_rows][...row...] */
    int64_t n_window_rows, n_random_rows;
    double own_seconds;      /* of a row that times itself, because it has to set up; else 0 */
    double waited_seconds;   /* of the last samples row */
    double largest_resident; /* fraction of the array's pages that stayed when they were dropped */
} store_bench;

/* ---- the rows of the table ---- */

static int64_t random_start(const store_bench *bench, int64_t i, int64_t count)
{
    return grvi_store_problem_place(i, count, bench->n_rows, GRVI_PLACE_FACTOR);
}

static grv_status read_rows(store_bench *bench, int64_t first, int64_t n, float *out)
{
    int64_t start[GRV_STORE_MAX_RANK] = {first}, count[GRV_STORE_MAX_RANK];
    memcpy(count, grv_array_get_desc(bench->array)->shape, sizeof count);
    count[0] = n;
    return grv_array_read(bench->array, start, count, out, NULL);
}

/* The destination of one call: the touched slab, or fresh memory that release_out frees. */
static grv_status take_out(store_bench *bench, int64_t n_rows, float **out)
{
    *out = bench->slab;
    if (!bench->problem.fresh) return GRV_OK;
    return grvi_alloc(n_rows * bench->row_bytes, 1, (void **)out);
}

static void release_out(const store_bench *bench, float *out)
{
    if (out != bench->slab) grv_free(out);
}

static grv_status read_full(store_bench *bench)
{
    for (int64_t first = 0; first < bench->n_rows; first += bench->slab_rows) {
        const int64_t n = grvi_min_i64(bench->slab_rows, bench->n_rows - first);
        float *out = NULL;
        GRV_TRY(take_out(bench, n, &out));
        const grv_status status = read_rows(bench, first, n, out);
        release_out(bench, out);
        GRV_TRY(status);
    }
    return GRV_OK;
}

static grv_status read_windows(store_bench *bench)
{
    for (int64_t i = 0; i < N_WINDOWS; i++) {
        float *out = NULL;
        GRV_TRY(take_out(bench, bench->n_window_rows, &out));
        const grv_status status = read_rows(bench, random_start(bench, i, bench->n_window_rows),
                                            bench->n_window_rows, out);
        release_out(bench, out);
        GRV_TRY(status);
    }
    return GRV_OK;
}

static grv_status read_random_rows(store_bench *bench)
{
    grv_status status = GRV_OK;
    int64_t numbers[N_POINT_ROWS], start[GRV_STORE_MAX_RANK] = {0};
    float *out = NULL;
    grv_read_plan *plan = NULL;
    GRV_TRY(take_out(bench, bench->n_random_rows, &out));
    for (int64_t i = 0; i < bench->n_random_rows; i++) numbers[i] = random_start(bench, i, 1);
    const grv_read_request request = {.array = bench->array,
                                      .start = start,
                                      .count = grv_array_get_desc(bench->array)->shape,
                                      .rows = numbers,
                                      .n_rows = bench->n_random_rows,
                                      .out = out};
    GRV_TRY_GOTO(grv_read_plan_create(&request, 1, NULL, &plan));
    GRV_TRY_GOTO(grv_read_plan_run(plan));
done:
    grv_read_plan_destroy(&plan);
    release_out(bench, out);
    return status;
}

static grv_status read_samples(store_bench *bench)
{
    return grvi_store_samples(&bench->problem, bench->array, &bench->own_seconds,
                              &bench->waited_seconds);
}

static grv_status write_slabs(store_bench *bench, const char *name, int64_t n_rows)
{
    grv_status status = GRV_OK;
    grv_array_desc desc = grvi_store_problem_desc(&bench->problem);
    grv_array *array = NULL;
    desc.shape[0] = n_rows;
    GRV_TRY(grv_array_create(bench->store, name, &desc, &array));
    for (int64_t first = 0; first < n_rows; first += bench->slab_rows) {
        const int64_t start[GRV_STORE_MAX_RANK] = {first};
        desc.shape[0] = grvi_min_i64(bench->slab_rows, n_rows - first);
        GRV_TRY_GOTO(grv_array_write(array, start, desc.shape, bench->slab, NULL));
    }
done:
    grv_array_close(&array);
    return status;
}

static const char *const written_name = "written-by-grove";

static grv_status write_quarter(store_bench *bench)
{
    const int64_t unit = grv_array_get_desc(bench->array)->chunk_shape[0];
    return write_slabs(bench, written_name, grvi_max_i64(1, bench->n_rows / unit / 4) * unit);
}

typedef struct bench_row {
    const char *name, *cpu_name; /* of its values: seconds, and those of all threads' processors */
    grv_status (*run)(store_bench *bench);
    int calls;     /* of which the seconds are for one */
    bool is_write; /* needs no dropped pages, but a place that is empty */
} bench_row;

static const bench_row rows[] = {
    {"full_seconds", "full_cpu_seconds", read_full, 1, false},
    {"window_seconds", "window_cpu_seconds", read_windows, N_WINDOWS, false},
    {"rows_seconds", "rows_cpu_seconds", read_random_rows, 1, false},
    {"samples_seconds", "samples_cpu_seconds", read_samples, 1, false},
    {"write_seconds", "write_cpu_seconds", write_quarter, 1, true}};
enum { N_BENCH_ROWS = sizeof rows / sizeof rows[0] };

static grv_status remove_written(const store_bench *bench)
{
    char *path = NULL;
    GRV_TRY(grvi_fs_join(bench->folder, written_name, &path));
    const grv_status status = grvi_fs_remove_tree(path);
    grv_free(path);
    return status;
}

/* Writing does not depend on what is cold, or on whose memory the result goes to. */
static int n_rows_of(const grvi_store_problem *problem)
{
    return problem->cold || problem->fresh ? N_BENCH_ROWS - 1 : N_BENCH_ROWS;
}

/* seconds, cpu: for one call of the row */
static grv_status time_row(store_bench *bench, const bench_row *row, double *seconds, double *cpu)
{
    if (row->is_write) {
        GRV_TRY(remove_written(bench));
        grvi_page_cache_settle();
    } else if (bench->problem.cold) {
        grvi_page_count left;
        GRV_TRY(grvi_page_cache_drop(bench->array_path, &left));
        const double resident = (double)left.resident / (double)left.total;
        if (resident > bench->largest_resident) bench->largest_resident = resident;
    }
    bench->own_seconds = 0;
    const double start = grv_clock_seconds(), cpu_start = grvi_processor_seconds();
    GRV_TRY(row->run(bench));
    *cpu = (grvi_processor_seconds() - cpu_start) / row->calls;
    const double all = bench->own_seconds > 0 ? bench->own_seconds : grv_clock_seconds() - start;
    *seconds = all / row->calls;
    return row->is_write ? remove_written(bench) : GRV_OK;
}

/* ---- set-up, and is the answer right ---- */

/* Makes the array unless an earlier run did. */
static grv_status make_array(store_bench *bench)
{
    grv_node_kind kind = GRV_NODE_NONE;
    bool complete = false;
    const grv_array_desc desc = grvi_store_problem_desc(&bench->problem);
    int64_t last[GRV_STORE_MAX_RANK] = {desc.shape[0] - 1};
    GRV_TRY(grv_store_node(bench->store, bench->name, &kind));
    if (kind == GRV_NODE_NONE)
        GRV_TRY(grv_array_create(bench->store, bench->name, &desc, &bench->array));
    else
        GRV_TRY(grv_array_open(bench->store, bench->name, &bench->array));
    GRV_TRY(grv_array_has_object(bench->array, last, &complete));
    for (int64_t first = 0; first < desc.shape[0] && !complete; first += bench->slab_rows) {
        const int64_t start[GRV_STORE_MAX_RANK] = {first};
        int64_t count[GRV_STORE_MAX_RANK];
        memcpy(count, desc.shape, sizeof count);
        count[0] = grvi_min_i64(bench->slab_rows, desc.shape[0] - first);
        grvi_store_problem_rows(&bench->problem, first, count[0], bench->slab);
        GRV_TRY(grv_array_write(bench->array, start, count, bench->slab, NULL));
    }
    return GRV_OK;
}

static grv_status prepare(store_bench *bench)
{
    grv_store_params params = grv_store_params_default();
    const grv_array_desc desc = grvi_store_problem_desc(&bench->problem);
    params.writable = true;
    params.n_threads = bench->problem.n_threads;
    bench->n_rows = desc.shape[0];
    bench->row_bytes = (int64_t)sizeof(float);
    for (int i = 1; i < desc.rank; i++) bench->row_bytes *= desc.shape[i];
    bench->slab_rows = bench->problem.points ? 2 * GRVI_POINT_SHARD_ROWS : SLAB_FIELDS;
    bench->slab_rows = grvi_min_i64(bench->slab_rows, bench->n_rows);
    bench->n_window_rows = grvi_max_i64(1, bench->n_rows / 100);
    bench->n_random_rows =
        bench->problem.points ? N_POINT_ROWS : grvi_min_i64(N_FIELD_ROWS, bench->n_rows);
    grvi_store_problem_array(&bench->problem, bench->name, sizeof bench->name);
    GRV_TRY(grvi_fs_join(bench->folder, bench->name, &bench->array_path));
    const int64_t most_rows =
        grvi_max_i64(bench->slab_rows, grvi_max_i64(bench->n_window_rows, bench->n_random_rows));
    GRV_TRY(grvi_alloc(most_rows * bench->row_bytes, 1, (void **)&bench->slab));
    memset(bench->slab, 0, (size_t)(most_rows * bench->row_bytes));
    GRV_TRY(grv_store_open(bench->folder, &params, &bench->store));
    return make_array(bench);
}

/* Do the last slab and the random rows read as they were made? */
static grv_status check_values(store_bench *bench, bool *correct)
{
    grv_status status = GRV_OK;
    float *made = NULL;
    const int64_t first = bench->n_rows - bench->slab_rows,
                  row = bench->row_bytes / (int64_t)sizeof *made;
    GRV_TRY(grvi_alloc(bench->slab_rows * bench->row_bytes, 1, (void **)&made));
    grvi_store_problem_rows(&bench->problem, first, bench->slab_rows, made);
    GRV_TRY_GOTO(read_rows(bench, first, bench->slab_rows, bench->slab));
    *correct = memcmp(made, bench->slab, (size_t)(bench->slab_rows * bench->row_bytes)) == 0;
    if (bench->problem.fresh) goto done; /* the rows go to memory that is gone */
    GRV_TRY_GOTO(read_random_rows(bench));
    for (int64_t i = 0; i < bench->n_random_rows; i++) {
        grvi_store_problem_rows(&bench->problem, random_start(bench, i, 1), 1, made);
        *correct = *correct && memcmp(made, bench->slab + i * row, (size_t)bench->row_bytes) == 0;
    }
done:
    grv_free(made);
    return status;
}

/* What is kept between calls is there afterwards. */
static grv_status warm_up(store_bench *bench)
{
    GRV_TRY(read_rows(bench, 0, bench->slab_rows, bench->slab));
    GRV_TRY(remove_written(bench));
    GRV_TRY(write_slabs(bench, written_name, bench->slab_rows));
    return remove_written(bench);
}

static grv_status fill_result(store_bench *bench, double *seconds, double *cpu,
                              grv_bench_result *result)
{
    const int n = bench->problem.n_repetitions;
    const double bytes = (double)(bench->n_rows * bench->row_bytes);
    grvi_store_rate floor;
    int64_t n_objects = 0, n_stored = 0;
    const int64_t unit = grv_array_get_desc(bench->array)->chunk_shape[0];
    for (int i = 0; i < n_rows_of(&bench->problem); i++) {
        grv_bench_result_add(result, rows[i].name, grvi_median(n, seconds + i * n));
        grv_bench_result_add(result, rows[i].cpu_name, grvi_median(n, cpu + i * n));
    }
    GRV_TRY(grvi_store_floor(bench->array, bench->problem.n_threads, n, bench->slab,
                             bench->slab_rows / unit * unit, &floor));
    GRV_TRY(grv_array_stored(bench->array, &n_objects, &n_stored));
    GRV_TRY(check_values(bench, &result->correct));
    result->median_seconds = result->values[0].value;
    result->floor_seconds = bytes / floor.per_second;
    result->floor_ratio = result->median_seconds / result->floor_seconds;
    grv_bench_result_add(result, "samples_waited_seconds", bench->waited_seconds);
    grv_bench_result_add(result, "decompressor_bytes_per_second", floor.per_second);
    grv_bench_result_add(result, "decompressor_bytes_per_cpu_second", floor.per_cpu_second);
    grv_bench_result_add(result, "full_bytes_per_second", bytes / result->median_seconds);
    grv_bench_result_add(result, "bytes", bytes);
    grv_bench_result_add(result, "stored_bytes", (double)n_stored);
    if (bench->problem.cold)
        grv_bench_result_add(result, "resident_fraction", bench->largest_resident);
    return GRV_OK;
}

grv_status grv_bench_store(const char *text, const char *folder, grv_bench_result *result)
{
    grv_status status = GRV_OK;
    store_bench bench = {.folder = folder};
    double *seconds = NULL, *cpu = NULL;
    *result = (grv_bench_result){0};
    GRV_TRY(grvi_store_problem_parse(text, &bench.problem));
    grvi_store_problem_print(&bench.problem, result->problem, sizeof result->problem);
    const int n = bench.problem.n_repetitions;
    GRV_TRY_GOTO(GRVI_ALLOC(&seconds, (int64_t)N_BENCH_ROWS * n));
    GRV_TRY_GOTO(GRVI_ALLOC(&cpu, (int64_t)N_BENCH_ROWS * n));
    GRV_TRY_GOTO(prepare(&bench));
    GRV_TRY_GOTO(warm_up(&bench));
    for (int repetition = 0; repetition < n; repetition++) {
        for (int i = 0; i < n_rows_of(&bench.problem); i++)
            GRV_TRY_GOTO(
                time_row(&bench, &rows[i], &seconds[i * n + repetition], &cpu[i * n + repetition]));
    }
    GRV_TRY_GOTO(fill_result(&bench, seconds, cpu, result));
done:
    grv_array_close(&bench.array);
    grv_store_close(&bench.store);
    grv_free(bench.slab);
    grv_free(bench.array_path);
    grv_free(cpu);
    grv_free(seconds);
    return status;
}
