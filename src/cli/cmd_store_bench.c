/* grove store bench: how fast an array can be read, whole, by a window, by rows. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/store_cli.h"
#include "core/alloc.h"
#include "core/median.h"
#include "grove/core.h"
#include "grove/read_plan.h"
#include "store/page_cache.h"

typedef struct bench_config {
    int threads, repeats;
    bool cold;
    int64_t memory;
} bench_config;

#define AT(field) offsetof(bench_config, field)
static const grv_option options[] = {
    GRVC_OPTION_THREADS(AT(threads)),
    {.key = "repeats", .type = GRV_OPTION_INT, .offset = AT(repeats), .fallback = "3", .min = 1, .max = 64, .help = "of each row; medians are told"},
    {.key = "cold", .type = GRV_OPTION_BOOL, .offset = AT(cold), .fallback = "false", .help = "drop the page cache before each read (folders only)"},
    {.key = "memory", .type = GRV_OPTION_I64, .offset = AT(memory), .fallback = "256", .min = 1, .max = 1e7, .unit = "MiB", .help = "most of what is read in one go"},
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

enum { N_ROWS = 256, N_WINDOWS = 8, MAX_REPEATS = 64, STREAM_PLACES = 31 };

typedef enum bench_row { ROW_FULL, ROW_WINDOW, ROW_ROWS, N_BENCH_ROWS } bench_row;
static const char *const row_names[] = {"full", "window", "rows"};

/* What is measured on. */
typedef struct bench {
    const bench_config *config;
    const char *folder;
    grv_array *array;
    grv_store *store;
    const grv_array_desc *desc;
    int64_t row_bytes;  /* of one index along the first axis */
    int64_t slab;       /* indices that are read in one go */
    uint8_t *memory;    /* [slab * row_bytes], touched */
    grv_read_plan *plan;
} bench;

typedef struct bench_result {
    double seconds;
    int64_t wanted, read, decoded; /* bytes */
} bench_result;

static grv_status read_planes(bench *b, int64_t first, int64_t n)
{
    int64_t start[GRV_STORE_MAX_RANK] = {first}, count[GRV_STORE_MAX_RANK] = {n};
    for (int i = 1; i < b->desc->rank; i++) count[i] = b->desc->shape[i];
    const grv_read_request request = {.array = b->array, .start = start, .count = count, .out = b->memory};
    GRV_TRY(grv_read_plan_set(b->plan, &request, 1));
    return grv_read_plan_run(b->plan);
}

static grv_status read_rows(bench *b, int64_t repeat, int64_t n)
{
    int64_t start[GRV_STORE_MAX_RANK] = {0}, count[GRV_STORE_MAX_RANK] = {0}, rows[N_ROWS];
    for (int i = 1; i < b->desc->rank; i++) count[i] = b->desc->shape[i];
    for (int64_t i = 0; i < n; i++)
        rows[i] = (int64_t)(grv_random_bits(1, STREAM_PLACES, (uint64_t)(repeat * N_ROWS + i)) % (uint64_t)b->desc->shape[0]);
    const grv_read_request request = {.array = b->array, .start = start, .count = count, .rows = rows, .n_rows = n, .out = b->memory};
    GRV_TRY(grv_read_plan_set(b->plan, &request, 1));
    return grv_read_plan_run(b->plan);
}

/* One row of the table, once; *wanted: bytes delivered. */
static grv_status run_row(bench *b, bench_row row, int repeat, int64_t *wanted)
{
    const int64_t n = b->desc->shape[0], window = grvi_min_i64(b->slab, grvi_max_i64(1, n / 100)), rows = grvi_min_i64(b->slab, N_ROWS);
    int64_t n_read = 0;
    switch (row) {
    case ROW_FULL:
        for (int64_t at = 0; at < n; at += b->slab) {
            GRV_CHECK(!grvc_interrupted(), GRV_E_INTERRUPTED, "stopped");
            GRV_TRY(read_planes(b, at, grvi_min_i64(b->slab, n - at)));
        }
        n_read = n;
        break;
    case ROW_WINDOW:
        for (int i = 0; i < N_WINDOWS; i++)
            GRV_TRY(read_planes(b, (int64_t)(grv_random_bits(1, STREAM_PLACES, (uint64_t)(repeat * N_WINDOWS + i)) % (uint64_t)(n - window + 1)), window));
        n_read = N_WINDOWS * window;
        break;
    default:
        GRV_TRY(read_rows(b, repeat, rows));
        n_read = rows;
        break;
    }
    *wanted = n_read * b->row_bytes;
    return GRV_OK;
}

static grv_status drop_pages(const bench *b)
{
    grvi_page_count left;
    GRV_TRY(grvi_page_cache_drop(b->folder, &left));
    GRV_CHECK(left.resident * 100 <= left.total, GRV_E_UNSUPPORTED, "cold: %lld of %lld pages stayed in memory after the system was asked to drop them",
              (long long)left.resident, (long long)left.total);
    return GRV_OK;
}

static grv_status measure(bench *b, bench_row row, bench_result *result)
{
    double seconds[MAX_REPEATS];
    int64_t wanted = 0;
    if (!b->config->cold) GRV_TRY(run_row(b, row, 0, &wanted)); /* into the page cache */
    const grv_store_counters before = grv_store_counters_get(b->store);
    for (int r = 0; r < b->config->repeats; r++) {
        if (b->config->cold) GRV_TRY(drop_pages(b));
        const double begin = grv_clock_seconds();
        GRV_TRY(run_row(b, row, r, &wanted));
        seconds[r] = grv_clock_seconds() - begin;
    }
    const grv_store_counters after = grv_store_counters_get(b->store);
    *result = (bench_result){.seconds = grvi_median(b->config->repeats, seconds), .wanted = wanted,
                             .read = (after.bytes_read - before.bytes_read) / b->config->repeats,
                             .decoded = (after.bytes_decoded - before.bytes_decoded) / b->config->repeats};
    return GRV_OK;
}

static void print_row(bench_row row, const bench_result *r)
{
    (void)printf("  %-8s %12.6f s  %8.3f GB/s  %14lld wanted  %14lld read  %14lld decoded\n", row_names[row], r->seconds,
                 (double)r->wanted * 1e-9 / r->seconds, (long long)r->wanted, (long long)r->read, (long long)r->decoded);
}

static void write_row(grvi_json_writer *w, bench_row row, const bench_result *r)
{
    grvi_json_key(w, row_names[row]);
    grvi_json_begin_object(w);
    grvi_json_key(w, "seconds");
    grvi_json_double(w, r->seconds);
    grvi_json_key(w, "gigabytes_per_second");
    grvi_json_double(w, (double)r->wanted * 1e-9 / r->seconds);
    grvc_json_integer(w, "bytes_wanted", r->wanted);
    grvc_json_integer(w, "bytes_read", r->read);
    grvc_json_integer(w, "bytes_decoded", r->decoded);
    grvi_json_end_object(w);
}

static grv_status prepare(bench *b, const char *word)
{
    b->desc = grv_array_get_desc(b->array);
    GRV_CHECK(b->desc->rank >= 1 && b->desc->shape[0] >= 1, GRV_E_ARG, "%s: an array with a first axis of at least 1 expected", word);
    b->row_bytes = b->desc->item_bytes;
    for (int i = 1; i < b->desc->rank; i++)
        GRV_CHECK(grvi_mul_i64(b->row_bytes, b->desc->shape[i], &b->row_bytes), GRV_E_SHAPE, "%s: an index along the first axis has too many bytes", word);
    GRV_CHECK(b->row_bytes > 0, GRV_E_ARG, "%s: the array has no elements", word);
    b->slab = grvi_min_i64(b->desc->shape[0], (b->config->memory << 20) / b->row_bytes);
    GRV_CHECK(b->slab >= 1, GRV_E_ARG, "memory: one index along the first axis of %s takes %lld bytes", word, (long long)b->row_bytes);
    /* whole stored objects at a time, where they fit */
    if (b->slab > b->desc->chunk_shape[0]) b->slab -= b->slab % b->desc->chunk_shape[0];
    GRV_TRY(GRVI_ALLOC(&b->memory, b->slab * b->row_bytes));
    memset(b->memory, 1, (size_t)(b->slab * b->row_bytes));
    return grv_read_plan_create(NULL, 0, NULL, &b->plan);
}

static grv_status run(const grvc_session *session, const bench_config *config)
{
    grv_status status = GRV_OK;
    grvc_node node;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    bench b = {.config = config, .folder = session->words[0]};
    grvc_interrupt_install();
    GRV_TRY(grvc_node_open(session->words[0], grvc_threads(config->threads), &node));
    b.store = node.store;
    GRV_TRY_GOTO(grv_array_open(node.store, node.path, &b.array));
    GRV_TRY_GOTO(prepare(&b, session->words[0]));
    if (session->json) grvi_json_begin_object(&w);
    else (void)printf("%s: %s, %d thread%s\n", session->words[0], config->cold ? "cold" : "warm", grvc_threads(config->threads),
                      grvc_threads(config->threads) == 1 ? "" : "s");
    for (int row = 0; row < N_BENCH_ROWS; row++) {
        bench_result result;
        GRV_TRY_GOTO(measure(&b, (bench_row)row, &result));
        if (session->json) write_row(&w, (bench_row)row, &result);
        else print_row((bench_row)row, &result);
    }
    if (session->json) {
        grvi_json_end_object(&w);
        GRV_TRY_GOTO(grvc_json_print(&text));
    }
done:
    grvi_text_fini(&text);
    grv_read_plan_destroy(&b.plan);
    grv_free(b.memory);
    grv_array_close(&b.array);
    grvc_node_close(&node);
    return status;
}

int grvc_store_bench(int argc, char **argv)
{
    bench_config config = {0};
    grvc_session session = {.name = "grove store bench",
                            .about = "Reads an array whole, by 8 windows of 1 % at random places, and by 256 random indices along its first axis,\n"
                                     "into memory that is used again, and tells seconds, bytes wanted, read and decoded.\n"
                                     "`grove bench store:...` measures on arrays of its own, against the decompressor by itself.",
                            .words_usage = "PATH",
                            .min_words = 1,
                            .max_words = 1,
                            .table = &table,
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session, &config));
}
