/* The keys of a shuffle: which rows go together, and in which order. Internal.
 * Row i has the key grv_random_bits(seed, GRV_SHUFFLE_STREAM, i); the shuffled order is that of the pairs (key, i). Keys are spread
 * evenly, so that ranges of keys (bins, grouped into buckets) hold nearly equal numbers of rows. */
#ifndef GRVI_STORE_SHUFFLE_BINS_H
#define GRVI_STORE_SHUFFLE_BINS_H

#include "core/check.h"

/* Ranges of keys whose rows are sorted in memory together. */
typedef struct grvi_shuffle_buckets {
    uint64_t seed;
    int64_t n;       /* buckets */
    int32_t *of_bin; /* [2^16] bucket of a key by its highest 16 bits */
    int64_t *rows;   /* [n] rows in the bucket */
    int64_t *
        first_row; /* [n] rows in the buckets before it: where its rows stand in the shuffled order */
    int64_t *first_bin; /* [n + 1] */
} grvi_shuffle_buckets;

/* Counts the keys of n_rows rows and groups them into as few buckets of at most max_rows as the bins allow.
 * GRV_E_ARG if one bin has more. Fini in any case. */
grv_status grvi_shuffle_buckets_init(grvi_shuffle_buckets *buckets, uint64_t seed, int64_t n_rows,
                                     int64_t max_rows, int n_threads) GRV_MUST_CHECK;
void grvi_shuffle_buckets_fini(grvi_shuffle_buckets *buckets);

static inline int64_t grvi_shuffle_bucket_of(const grvi_shuffle_buckets *buckets, uint64_t key)
{
    return buckets->of_bin[key >> 48];
}

/* Records of equal size that begin with their key, in the order of their row numbers. */
typedef struct grvi_keyed_records {
    const uint8_t *data;
    int64_t record_bytes;
    int64_t n;
} grvi_keyed_records;

/* Cells that sorting n records takes: the length of its working memory. */
int64_t grvi_shuffle_sort_cells(int64_t n);
/* order[k] = number of the record that comes k-th by (key, number). The keys are those of a bucket.
 * cells [grvi_shuffle_sort_cells(n)] is working memory. */
void grvi_shuffle_sort(const grvi_shuffle_buckets *buckets, int64_t bucket,
                       const grvi_keyed_records *records, int n_threads, int64_t *cells,
                       int64_t *order);

#endif
