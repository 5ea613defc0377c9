/** @file bench.h
 * Benchmarks: a problem in, a time, a floor and a checked answer out.
 *
 * A floor is the time that the machine needs for the bytes and operations of a good implementation, whatever the code does;
 * bandwidths are measured in the same run. Benchmarks use the threads that their problem names and belong on an idle machine.
 */
#ifndef GROVE_BENCH_H
#define GROVE_BENCH_H

#include <stdbool.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sizes of a result. */
enum {
    GRV_BENCH_NAME_BYTES = 128, /**< of a problem's name, with the final NUL */
    GRV_BENCH_MAX_VALUES = 32   /**< further figures of one result */
};

/** A further figure of a result. */
typedef struct grv_bench_value {
    const char *name; /**< a constant; its unit is part of it */
    double value;     /**< in that unit */
} grv_bench_value;

/** Outcome of a benchmark. */
typedef struct grv_bench_result {
    char problem[GRV_BENCH_NAME_BYTES]; /**< complete, with all defaults written out */
    double median_seconds;              /**< of what the problem repeats */
    double floor_seconds;               /**< 0 where no floor is defined */
    double floor_ratio;                 /**< median / floor; 0 without a floor */
    bool correct;                       /**< the answer was checked and is right */
    int n_values;                       /**< in use of the following */
    grv_bench_value values[GRV_BENCH_MAX_VALUES]; /**< in the order in which they were added */
} grv_bench_result;

/** Adds a figure; ignored beyond GRV_BENCH_MAX_VALUES.
 * @param name  a constant string, borrowed */
GRV_API void grv_bench_result_add(grv_bench_result *result, const char *name, double value);

/** What the machine can do with a number of threads. */
typedef struct grv_machine {
    int n_threads;
    double flops;        /**< per second: peak of multiply-adds, float, with the chosen instruction set */
    double read_bytes;   /**< per second, from memory */
    double write_bytes;  /**< per second, to memory */
} grv_machine;

/** Measures the machine: medians over about a second; memory that is read and written is larger than caches and touched before.
 * @errors GRV_E_NOMEM */
GRV_API grv_status grv_bench_machine(int n_threads, grv_machine *out) GRV_MUST_CHECK;

/** One training step of a Fourier neural operator on one rank: forward, gradients, Adam.
 * Problems: "<n0>x<n1>..w<width>m<m0>,<m1>..[:peer|:paper][k<blocks>][b<batch>][t<threads>][r<repetitions>]", 1 to 4 axes; "peer" (default): the network of
 * bench/peers/fno_torch.py (one-layer lift, GELU but after the last block, width -> 128 -> 1, mean square); "paper": the parallel FNO
 * (two-layer lift, ReLU, projection 32, relative L2). A leading "fno:" is allowed. Defaults: 4 blocks, batch 1, 1 thread, 5 repetitions.
 * The floor is the sum over operations of max(flops / peak, read / bandwidth, written / bandwidth), counts by definition (docs/spectral.md).
 * Values: forward_seconds, block_forward_seconds, optimizer_seconds, the time of each kind of operation, and the machine.
 * Correct: the loss falls along the gradient by what the gradient says.
 * @errors GRV_E_ARG for a problem that is not one, GRV_E_NOMEM */
GRV_API grv_status grv_bench_fno(const char *problem, grv_bench_result *result) GRV_MUST_CHECK;

/** Flow solver: a periodic Taylor-Green vortex in a cube.
 * Problems: "tgv<N>[d][t<threads>][v<cycles>][h<half sweeps>][r<steps>]" with N cells a side, d for double, by default float, 1 thread,
 * 2 multigrid cycles a solve of 4 half sweeps each, and as many timed steps as take about two seconds (5 to 101). A leading "flow:" is allowed.
 * Values: ns_per_cell_step, cycles_per_solve, residual_ratio (mean over the timed steps' last solves), bytes_per_cell (of the floor),
 * copy_bytes_per_second, energy_error (kinetic energy against the exact decay, relative), divergence_ratio.
 * @errors GRV_E_ARG for a problem that is not one, GRV_E_NOMEM */
GRV_API grv_status grv_bench_flow(const char *problem, grv_bench_result *result) GRV_MUST_CHECK;

/** The chunk store on one array that is made in a folder, by the first run, and left there for the next and for other readers of Zarr.
 * Problems: "store:<fields|points>:<none|zstd|blosc-lz4|blosc-zstd>[:<MiB>][:t<threads>][:r<repetitions>][:cold][:fresh]", by default
 * 256 MiB, 1 thread, 3 repetitions, warm, reused buffers. fields: cubes of 128^3 float, a shard each; points: rows of 6 float, shards of 2^20.
 * cold: the page cache is dropped before each row. fresh: results go to memory that was never touched.
 * Values: seconds of each row (docs/store_bench.md says which), bytes, and resident_fraction, what stayed in the page cache when it was dropped.
 * The floor is the decompressor by itself on as many threads. Correct: what was read is what was made.
 * @param folder  made if it is absent; holds the array, and while it runs what the write row writes
 * @errors GRV_E_ARG for a problem that is not one, GRV_E_NOMEM, GRV_E_IO */
GRV_API grv_status grv_bench_store(const char *problem, const char *folder,
                                   grv_bench_result *result) GRV_MUST_CHECK;

/** Reading a mesh: an unstructured grid (VTU) of hexahedra, with data of points and cells, that is made in a folder by the first run and left there.
 * Problems: "mesh:<raw|base64>:<none|zlib>[:<side>][:t<threads>][:r<repetitions>]", by default raw, none, 100 cells a side, 1 thread, 5 repetitions.
 * Values: file_bytes, mesh_bytes (of the arrays), mesh_bytes_per_second, peak_bytes (of the process; it also holds what was made).
 * The floor is reading the bytes of the file into a buffer. Correct: what was read is what was made, bit by bit.
 * @param folder  made if it is absent
 * @errors GRV_E_ARG for a problem that is not one, GRV_E_NOMEM, GRV_E_IO */
GRV_API grv_status grv_bench_mesh(const char *problem, const char *folder,
                                  grv_bench_result *result) GRV_MUST_CHECK;

/** The batch engine: tasks without work, programs, tasks that sleep, a large value for all tasks, on local workers; a job on Slurm.
 * Problems: "batch:<call|program|sleep|broadcast|slurm>:<tasks>[:w<workers>][:r<repetitions>][:s<seconds>][:m<MiB>]", by default a worker per core,
 * 3 repetitions (broadcast and slurm: once), sleeps of 2 s, 1024 MiB.
 * call: an in-process C function that returns its number; program: `true`. Values: submit_seconds, milliseconds_per_task, tasks_per_second,
 * efficiency (work over workers times time), driver_peak_bytes. Correct: every task is done and results are their tasks'.
 * broadcast: median is the time that storing the value takes; values: again_seconds (the same once more), tasks_seconds (tasks that add it up),
 * value_bytes, stored_bytes (of all blobs), read_bytes_per_worker and private_bytes_per_worker (the most; what workers map of the store is neither),
 * driver_peak_bytes (the value included).
 * Correct: sums are right and it is stored once.
 * slurm: tasks of call in up to two allocations of that many workers. The median is the time from the submission until Slurm has the first
 * allocation; values: submit_seconds, first_task_seconds, all_tasks_seconds, all from the submission on.
 * @param folder  for the job; NULL: /tmp. slurm: needed, one that all nodes see
 * @errors GRV_E_ARG for a problem that is not one, GRV_E_IO, GRV_E_NOT_FOUND if the program grove, or sbatch, is not there */
GRV_API grv_status grv_bench_batch(const char *problem, const char *folder,
                                   grv_bench_result *result) GRV_MUST_CHECK;

/** A campaign (campaign.h) on local workers, whose simulator, a C function, sleeps.
 * Problems: "batch:campaign:<samples>[:w<workers>][:s<seconds>]", by default a worker per core, sleeps of 2 s. The median is the time of the
 * campaign, the floor that of the sleeps; values: efficiency, seconds_per_sample. Correct: all samples are done.
 * @param folder  for data set and job; NULL: /tmp
 * @errors as grv_bench_batch */
GRV_API grv_status grv_bench_campaign(const char *problem, const char *folder,
                                      grv_bench_result *result) GRV_MUST_CHECK;

/** Distances to a triangle surface that lies in a folder as raw little-endian arrays: vertices.f32 [..][3], triangles.i32 [..][3]
 * (bench/peers/surface.py makes them from a mesh file).
 * Problems: "sdf:<points|grid>[:n<points>][:t<threads>][:r<repetitions>]", by default 1000000 scattered points, 1 thread, 3 repetitions; the grid has
 * 128 x 64 x 64 points; both fill the surface's box with a quarter of it added on each side. Points and signed distances are left in the folder as
 * points.f32 and distance.f32. The median is that of distances without sign; values: seconds of preparing (build) and of looking up, with and
 * without signs by the winding number, for the grid also with a band of two spacings; bytes_per_triangle; error_over_diagonal of a few distances against
 * all triangles one by one. Correct: that is below 1e-6. There is no floor.
 * @param folder  holds the arrays
 * @errors GRV_E_ARG for a problem that is not one, GRV_E_NOT_FOUND, GRV_E_FORMAT, GRV_E_IO, GRV_E_NOMEM */
GRV_API grv_status grv_bench_sdf(const char *problem, const char *folder, grv_bench_result *result) GRV_MUST_CHECK;

/** Neighbour searches: build, k nearest of as many queries as points in random and in sorted order, all points within a radius (32 at the median query).
 * Problems: "neighbours:<uniform|surface|file>[:<points>][:k<k>][:t<threads>][:r<repetitions>][:f64]", by default 10^6 points, k 7, 1 thread,
 * 3 repetitions, float. file: points.f32 and queries.f32 of the folder (raw, [n][3]); nearest.i32 [m][k] is left there.
 * The median is that of building and of the random queries together; values are the seconds of each row, by the clock and of
 * processors, radius, points_within and structure_bytes.
 * The floor copies points, queries and results once. Correct: some queries agree with brute force.
 * @param folder  NULL except for `file`, or to leave nearest.i32 there
 * @errors GRV_E_ARG for a problem that is not one, GRV_E_NOMEM, GRV_E_IO */
GRV_API grv_status grv_bench_neighbours(const char *problem, const char *folder, grv_bench_result *result) GRV_MUST_CHECK;

/** Told about a long run; returns false to stop it.
 * @param done  in [0, 1]
 * @param what  one line */
typedef bool grv_bench_progress(void *user, double done, const char *what);

/** Flow solver against literature: drag of the sphere at Re 100, drag and Strouhal number of the circle at Re 100.
 * Takes minutes. Values: see docs/flow.md; correct: all within the stated bounds (drag 10 %, Strouhal number 5 %).
 * @param cells_per_diameter  resolution of the bodies, 8 to 64; docs/flow.md used 16
 * @param n_threads  >= 1
 * @param progress  may be NULL
 * @errors GRV_E_ARG, GRV_E_NOMEM, GRV_E_NUMERIC, GRV_E_INTERRUPTED */
GRV_API grv_status grv_flow_validate(int cells_per_diameter, int n_threads,
                                     grv_bench_progress *progress, void *user,
                                     grv_bench_result *result) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
