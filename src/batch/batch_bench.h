/* Problems of `grove bench batch:...`, for the files that measure them. Internal. */
#ifndef GRVI_BATCH_BATCH_BENCH_H
#define GRVI_BATCH_BATCH_BENCH_H

#include <stdint.h>

#include "core/check.h"
#include "grove/bench.h"

typedef enum grvi_batch_kind {
    GRVI_BATCH_CALL,
    GRVI_BATCH_PROGRAM,
    GRVI_BATCH_SLEEP,
    GRVI_BATCH_BROADCAST,
    GRVI_BATCH_SLURM,
    GRVI_BATCH_CAMPAIGN, /* measured by src/data/campaign_bench.c */
    GRVI_BATCH_N_KINDS
} grvi_batch_kind;

enum { GRVI_BATCH_MAX_REPEATS = 32 };

typedef struct grvi_batch_problem {
    grvi_batch_kind kind;
    int64_t n_tasks;
    int n_workers, n_repeats;
    double seconds;    /* of a sleep */
    int64_t mebibytes; /* of a broadcast */
} grvi_batch_problem;

/* Reads a problem (grove/bench.h), and begins its result with its complete name. */
grv_status grvi_batch_problem_read(const char *text, grvi_batch_problem *problem,
                                   grv_bench_result *result) GRV_MUST_CHECK;

/* A fresh folder in this one, or in /tmp. path: [size], written */
grv_status grvi_bench_make_folder(const char *folder, char *path, int64_t size) GRV_MUST_CHECK;

#endif
