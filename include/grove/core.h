/** @file core.h
 * Version, memory accounting, threads, random numbers, clock.
 */
#ifndef GROVE_CORE_H
#define GROVE_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version "major.minor.patch" of the library that is linked. A constant. */
GRV_API const char *grv_version(void);
/** Git description of the tree that was built, or "unknown". A constant. */
GRV_API const char *grv_git_hash(void);
/** Compiler name and version. A constant. */
GRV_API const char *grv_compiler(void);
/** "Release", "Debug", ... A constant. */
GRV_API const char *grv_build_type(void);

/** A library that the build found. */
typedef struct grv_library {
    const char *name;    /**< "libyaml" */
    const char *version; /**< at build time; "unknown" if it does not say */
} grv_library;

/** The third-party libraries grove was built with, by name. A constant.
 * @param n  their number, written */
GRV_API const grv_library *grv_libraries(int *n);

/** What grove itself holds, in bytes (allocations of third-party libraries are not seen). */
typedef struct grv_memory {
    int64_t bytes;         /**< held now */
    int64_t peak_bytes;    /**< most held at once since the start */
    int64_t kept_bytes;    /**< freed and kept for later (grv_memory_keep); not among `bytes` */
    int64_t n_allocations; /**< calls that took memory since the start */
} grv_memory;

/** The process's memory accounting. Thread-safe. */
GRV_API grv_memory grv_memory_get(void);

/** Freed blocks of 2 MiB and more stay in the process for later ones of about their size, up to so many bytes; 0, the default, gives all back to the system.
 * For programs that take and release the same sizes again and again, such as to read one mesh after the other: systems clear fresh pages slowly. Thread-safe. */
GRV_API void grv_memory_keep(int64_t bytes);

/** Releases memory that a grove function handed over ("owned by the caller, free with grv_free"). NULL is allowed. */
GRV_API void grv_free(void *pointer);

/** Body of a parallel loop: work on [begin, end) as thread number `thread`. */
typedef void grv_range_body(void *argument, int thread, int64_t begin, int64_t end);

/** Splits [0, n) into at most n_threads contiguous ranges of nearly equal length and runs body on each, one per thread;
 * returns when all are done. The split depends on n and n_threads only. Not to be nested. n_threads < 1 counts as 1. */
GRV_API void grv_parallel_for(int n_threads, int64_t n, grv_range_body *body, void *argument);

/** Threads that this process may use: its affinity mask, and OMP_NUM_THREADS where that is set and smaller. At least 1. */
GRV_API int grv_threads_available(void);

/** Seconds of a clock that never goes back; its origin is arbitrary. Thread-safe. */
GRV_API double grv_clock_seconds(void);

/** Counter-based random numbers (Philox 4x32-10; Salmon et al., SC 2011): the result depends on the arguments only,
 * so that any thread or rank can make any number of the sequence.
 * @param seed  of the run
 * @param stream  what the numbers are for
 * @param index  global index of the number
 * @return 64 random bits. Thread-safe. */
GRV_API uint64_t grv_random_bits(uint64_t seed, uint64_t stream, uint64_t index);

/** Uniform in [0, 1) with 53 random bits; arguments as grv_random_bits. Thread-safe. */
GRV_API double grv_random_uniform(uint64_t seed, uint64_t stream, uint64_t index);

/** Standard normal (Box-Muller, the cosine branch); arguments as grv_random_bits. Thread-safe. */
GRV_API double grv_random_normal(uint64_t seed, uint64_t stream, uint64_t index);

/** A permutation of 0..n-1: the indices sorted by their random key, ties by index, so that it depends on (seed, stream, n) only.
 * @param order [n], written
 * @errors GRV_E_NOMEM */
GRV_API grv_status grv_random_permutation(uint64_t seed, uint64_t stream, int64_t n, int64_t *order) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
