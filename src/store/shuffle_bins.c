/* The keys of a shuffle. Counting costs one evaluation of the generator per row. Sorting is by distribution: the evenly spread keys of
 * a bucket are counted into cells of about four records, in the order of the records, and each cell is sorted by insertion: linear
 * time, stable, and independent of the number of threads. */
#include "store/shuffle_bins.h"

#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "grove/store_tools.h"

enum { BIN_BITS = 16, N_BINS = 1 << BIN_BITS, KEY_BITS_BELOW = 64 - BIN_BITS, PER_CELL = 4 };

typedef struct count_job {
    uint64_t seed;
    int64_t *counts; /* [n_threads][N_BINS] */
} count_job;

static void count_keys(void *argument, int thread, int64_t begin, int64_t end)
{
    const count_job *const job = argument;
    int64_t *const counts = job->counts + (int64_t)thread * N_BINS;
    for (int64_t i = begin; i < end; i++)
        counts[grv_random_bits(job->seed, GRV_SHUFFLE_STREAM, (uint64_t)i) >> KEY_BITS_BELOW]++;
}

/* Consecutive bins into buckets. */
static grv_status group_bins(grvi_shuffle_buckets *b, const int64_t *counts, int64_t max_rows)
{
    int64_t sum = 0;
    b->n = 0;
    for (int bin = 0; bin < N_BINS; bin++) {
        GRV_CHECK(counts[bin] <= max_rows, GRV_E_ARG,
                  "%lld rows have to be sorted in memory at once, which has room for %lld: give "
                  "more memory",
                  (long long)counts[bin], (long long)max_rows);
        if (bin == 0 || b->rows[b->n - 1] + counts[bin] > max_rows) {
            b->first_bin[b->n] = bin;
            b->first_row[b->n] = sum;
            b->rows[b->n++] = 0;
        }
        b->rows[b->n - 1] += counts[bin];
        b->of_bin[bin] = (int32_t)(b->n - 1);
        sum += counts[bin];
    }
    b->first_bin[b->n] = N_BINS;
    return GRV_OK;
}

grv_status grvi_shuffle_buckets_init(grvi_shuffle_buckets *buckets, uint64_t seed, int64_t n_rows,
                                     int64_t max_rows, int n_threads)
{
    grv_status status = GRV_OK;
    count_job job = {.seed = seed};
    *buckets = (grvi_shuffle_buckets){.seed = seed};
    n_threads = (int)grvi_max_i64(1, n_threads);
    GRV_TRY_GOTO(GRVI_CALLOC(&job.counts, (int64_t)n_threads * N_BINS));
    GRV_TRY_GOTO(GRVI_ALLOC(&buckets->of_bin, N_BINS));
    GRV_TRY_GOTO(GRVI_ALLOC(&buckets->rows, N_BINS));
    GRV_TRY_GOTO(GRVI_ALLOC(&buckets->first_row, N_BINS));
    GRV_TRY_GOTO(GRVI_ALLOC(&buckets->first_bin, N_BINS + 1));
    grv_parallel_for(n_threads, n_rows, count_keys, &job);
    for (int t = 1; t < n_threads; t++) {
        for (int bin = 0; bin < N_BINS; bin++)
            job.counts[bin] += job.counts[(int64_t)t * N_BINS + bin];
    }
    GRV_TRY_GOTO(group_bins(buckets, job.counts, max_rows));
done:
    grv_free(job.counts);
    return status;
}

void grvi_shuffle_buckets_fini(grvi_shuffle_buckets *buckets)
{
    grv_free(buckets->of_bin);
    grv_free(buckets->rows);
    grv_free(buckets->first_row);
    grv_free(buckets->first_bin);
    *buckets = (grvi_shuffle_buckets){0};
}

/* ---- sorting ---- */

static int log2_up(int64_t n)
{
    int bits = 0;
    while (((int64_t)1 << bits) < n) bits++;
    return bits;
}

int64_t grvi_shuffle_sort_cells(int64_t n)
{
    return (int64_t)1 << log2_up(grvi_ceil_div(n, PER_CELL));
}

static uint64_t key_of(const grvi_keyed_records *records, int64_t i)
{
    uint64_t key = 0;
    memcpy(&key, records->data + i * records->record_bytes, sizeof key);
    return key;
}

/* Equal parts of the range of keys; a single one where the range has all 64 bits. */
static uint64_t cell_of(uint64_t key, int shift)
{
    return shift < 64 ? key >> shift : 0;
}

typedef struct sort_job {
    const grvi_keyed_records *records;
    const int64_t *ends; /* [cells] */
    int64_t *order;
} sort_job;

/* Insertion sort of each cell; records of equal keys keep their order. */
static void sort_cells(void *argument, int thread, int64_t begin, int64_t end)
{
    const sort_job *const job = argument;
    (void)thread;
    for (int64_t c = begin; c < end; c++) {
        const int64_t first = c > 0 ? job->ends[c - 1] : 0;
        for (int64_t i = first + 1; i < job->ends[c]; i++) {
            const int64_t moved = job->order[i];
            const uint64_t key = key_of(job->records, moved);
            int64_t k = i;
            for (; k > first && key_of(job->records, job->order[k - 1]) > key; k--)
                job->order[k] = job->order[k - 1];
            job->order[k] = moved;
        }
    }
}

void grvi_shuffle_sort(const grvi_shuffle_buckets *buckets, int64_t bucket,
                       const grvi_keyed_records *records, int n_threads, int64_t *cells,
                       int64_t *order)
{
    const int64_t n_cells = grvi_shuffle_sort_cells(records->n);
    const int64_t n_bins = buckets->first_bin[bucket + 1] - buckets->first_bin[bucket];
    const uint64_t first_key = (uint64_t)buckets->first_bin[bucket] << KEY_BITS_BELOW;
    const int shift = KEY_BITS_BELOW + log2_up(n_bins) - log2_up(n_cells);
    memset(cells, 0, (size_t)n_cells * sizeof *cells);
    for (int64_t i = 0; i < records->n; i++)
        cells[cell_of(key_of(records, i) - first_key, shift)]++;
    for (int64_t c = 0, sum = 0; c < n_cells; c++) {
        const int64_t n = cells[c];
        cells[c] = sum;
        sum += n;
    }
    for (int64_t i = 0; i < records->n; i++)
        order[cells[cell_of(key_of(records, i) - first_key, shift)]++] = i;
    /* now cells[c] is the end of cell c */
    sort_job job = {records, cells, order};
    grv_parallel_for(n_threads, n_cells, sort_cells, &job);
}
