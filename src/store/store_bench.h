/* What the files of the store's benchmark share. Internal.
 * The peers (bench/peers/store_peers.py) read the same files and do the same rows: sizes and random numbers here are repeated there. */
#ifndef GRVI_STORE_BENCH_H
#define GRVI_STORE_BENCH_H

#include "core/check.h"
#include "grove/store.h"

enum {
    GRVI_FIELD_SIDE = 128,  /* a field is a cube of so many points a side: 8 MiB, one shard */
    GRVI_FIELD_PLANES = 16, /* of an inner chunk: 1 MiB */
    GRVI_POINT_COLUMNS = 6, /* x, y, z and three values */
    GRVI_POINT_CHUNK_ROWS = 65536, /* of an inner chunk: 1.5 MiB */
    GRVI_POINT_SHARD_ROWS = 16 * GRVI_POINT_CHUNK_ROWS,
    GRVI_SAMPLE_PLANES = 32, /* of a field: 2 MiB */
    GRVI_SAMPLE_ROWS = 16384 /* points: 384 KiB */
};

/* A problem of grv_bench_store. */
typedef struct grvi_store_problem {
    bool points; /* else fields */
    int64_t mebibytes;
    const char *codec; /* a constant */
    int n_threads, n_repetitions;
    bool cold, fresh;
} grvi_store_problem;

grv_status grvi_store_problem_parse(const char *text, grvi_store_problem *problem) GRV_MUST_CHECK;
/* The problem with all defaults written out. */
void grvi_store_problem_print(const grvi_store_problem *problem, char *text, size_t n_text);

/* Name of the problem's array in the folder of the benchmark: what the data depend on. */
void grvi_store_problem_array(const grvi_store_problem *problem, char *name, size_t n_name);
/* Type, shape, chunks and codec of the array. */
grv_array_desc grvi_store_problem_desc(const grvi_store_problem *problem);
/* Rows (fields, or points) as they were written: any part can be made anew.
 * out [n_rows][...row...] */
void grvi_store_problem_rows(const grvi_store_problem *problem, int64_t first_row, int64_t n_rows,
                             float *out);

/* Place number i of `count` among n: the same in bench/peers/store_peers.py, with the same factors. */
enum { GRVI_PLACE_FACTOR = 0, GRVI_PLANE_FACTOR = 1 };
int64_t grvi_store_problem_place(int64_t i, int64_t count, int64_t n, int factor);

/* Small samples, one after the other, to a consumer that computes for a fixed time on each, while a reader goes ahead: seconds for all
 * of them, of which the consumer waited so many. */
grv_status grvi_store_samples(const grvi_store_problem *problem, grv_array *array, double *seconds,
                              double *waited) GRV_MUST_CHECK;

/* Bytes that are made in a second, and in one of a processor's (the second is what it was on a machine that others use too). */
typedef struct grvi_store_rate {
    double per_second, per_cpu_second;
} grvi_store_rate;

/* What the decompressor by itself makes on n_threads threads out of the array's inner chunks, held in memory, into memory of the same
 * size and use as `out`; medians of the repetitions. out: room for n_rows rows, a multiple of a shard's. */
grv_status grvi_store_floor(grv_array *array, int n_threads, int n_repetitions, float *out,
                            int64_t n_rows, grvi_store_rate *rate) GRV_MUST_CHECK;

/* Seconds of processors that this process has used. */
double grvi_processor_seconds(void);

#endif
