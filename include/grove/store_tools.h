/** @file store_tools.h
 * Operations on whole stores: copy with another layout, check, shuffle, windows of shuffled arrays.
 *
 * They use the threads of the stores they are given (grv_store_params.n_threads) and hold a bounded amount of memory.
 * Half a result never looks whole: chunks are written first, the metadata that make an array of them last.
 *
 * None of these calls is collective: each process acts for itself.
 */
#ifndef GROVE_STORE_TOOLS_H
#define GROVE_STORE_TOOLS_H

#include "grove/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Told now and then, in the calling thread, how far a long step is. Returns false to end it with GRV_E_INTERRUPTED.
 * @param done, total  bytes of elements */
typedef bool grv_tool_progress(void *argument, int64_t done, int64_t total);

/** Progress callback that is not there is NULL. */
typedef struct grv_tool_hooks {
    grv_tool_progress *progress; /**< may be NULL */
    void *argument;              /**< handed to it */
} grv_tool_hooks;

/** How the arrays that are made differ from those they are made from. Zeroed: in nothing. */
typedef struct grv_store_layout {
    int zarr_format; /**< 3 or 2; 0: keep. Groups become that version too; chunk keys are those usual in it */
    int chunk_rank; /**< axes of chunk; 0: keep. Arrays of another rank keep theirs if they are part of a group */
    int64_t chunk
        [GRV_STORE_MAX_RANK]; /**< shape of the chunks (in a shard: of the inner ones); 0: the whole axis */
    int shard_rank;           /**< axes of shard; 0: keep, rounded up to whole chunks */
    int64_t shard
        [GRV_STORE_MAX_RANK]; /**< shape of the shards, multiples of chunk; 0: the whole axis, rounded up */
    bool unshard;             /**< no shards: each inner chunk becomes an object; not with shard */
    bool
        recode; /**< compressor, level and checksum below instead of the codecs there are, in little-endian order */
    grv_compressor compressor; /**< of the chunks; if recode */
    int level;                 /**< of the compressor; if recode */
    bool checksum; /**< CRC-32C after each chunk; without recode it is added where there is none */
} grv_store_layout;

/** How to copy. */
typedef struct grv_copy_params {
    grv_store_layout layout; /**< of the new arrays. Default: as the old ones */
    int64_t memory_bytes;    /**< most memory for elements and their encoding. Default 2^30 */
    bool resume;             /**< go on with an unfinished copy that is found. Default true */
    bool
        verify; /**< decode every chunk on the way, also where its bytes could be copied as they are. Default false */
    const char *
        source_name; /**< recorded while the copy is unfinished, and compared when it goes on; NULL: "" */
    grv_tool_hooks hooks; /**< progress */
} grv_copy_params;

/** The defaults above. */
GRV_API grv_copy_params grv_copy_params_default(void);

/** What a copy did. */
typedef struct grv_copy_report {
    int64_t n_groups;        /**< groups in the copy */
    int64_t n_arrays;        /**< arrays in the copy */
    int64_t n_bytes;         /**< bytes of their elements */
    int64_t n_bytes_skipped; /**< of these, already there from an earlier call */
    int64_t n_byte_copied;   /**< arrays whose objects were copied as they are, without decoding */
} grv_copy_report;

/** Copies a node: an array, or a group with everything below it, with attributes, dimension names and, of what stays as it
 * is, members of the metadata that grove does not know. Consolidated copies are left out.
 *
 * An array of the same layout is copied object by object, without decoding unless `verify`. Otherwise elements are moved in blocks
 * that fit in memory_bytes and whose edges lie on edges of source chunks where they can: then each source chunk is
 * decoded once; else once for each block that it touches (store_copy.c says how many times at most).
 *
 * Until an array is complete its metadata are not there, and an object `copy.partial.json` beside its chunks says what
 * the copy makes and how far it is; for a group the same object stands in the group. The same call again goes on from
 * there, and refuses where it would make something else.
 * @param source, source_path  the node. The threads of this store read
 * @param target, target_path  where nothing may be but an unfinished copy. The threads of this store write
 * @param params  NULL for the defaults
 * @param report  written on success; may be NULL. Not collective
 * @errors GRV_E_EXISTS, GRV_E_NOT_FOUND, GRV_E_ARG for a layout that cannot be or too little memory (the message says how much is needed),
 *   GRV_E_INTERRUPTED, and those of reading and writing */
GRV_API grv_status grv_store_copy(grv_store *source, const char *source_path, grv_store *target,
                                  const char *target_path, const grv_copy_params *params,
                                  grv_copy_report *report) GRV_MUST_CHECK;

/** Something wrong in a store. */
typedef struct grv_store_problem {
    char *node;   /**< path of the array or group */
    char *object; /**< key of the stored object below the node; "" if the node itself is meant */
    char *reason; /**< what was expected and what was found */
} grv_store_problem;

/** What a check found. */
typedef struct grv_check_report {
    int64_t n_groups;        /**< groups whose metadata are right */
    int64_t n_arrays;        /**< arrays whose metadata are right */
    int64_t n_objects;       /**< stored objects looked at */
    int64_t n_bytes;         /**< of these objects */
    int64_t n_decoded_bytes; /**< elements decoded from them */
    int64_t n_problems;      /**< all that were found */
    int64_t n_kept;          /**< problems in the list: at most 1000 */
    grv_store_problem
        *problems; /**< [n_kept] sorted by node and object, owned: grv_check_report_fini */
} grv_check_report;

/** Checks a node and everything below it: metadata, names, and every chunk by decoding it (checksums, sizes, index entries inside
 * the shard and apart from each other). Names among an array's chunks that are no key of its grid, what killed writers left
 * (`*.partial*`) and unfinished copies are problems too. Goes on after a problem. Objects are decoded in parallel.
 * @param report  fini with grv_check_report_fini, also if problems were found: then the status is GRV_OK. Not collective
 * @errors GRV_E_NOT_FOUND if there is no node, GRV_E_NOMEM, GRV_E_INTERRUPTED: the check itself could not be done */
GRV_API grv_status grv_store_check(grv_store *store, const char *path, const grv_tool_hooks *hooks,
                                   grv_check_report *report) GRV_MUST_CHECK;

/** Frees what the report owns. */
GRV_API void grv_check_report_fini(grv_check_report *report);

/** How to shuffle. */
typedef struct grv_shuffle_params {
    uint64_t seed;           /**< of the permutation. Default 0 */
    grv_store_layout layout; /**< of the new arrays. Default: as the old ones */
    const char *const *
        arrays; /**< [n_arrays] names of arrays in the source group; NULL: all of them. Not for a single array */
    int n_arrays;            /**< number of names */
    int64_t memory_bytes;    /**< most memory. Default 2^30 */
    const char *source_name; /**< recorded in the attributes; NULL: "" */
    grv_tool_hooks hooks;    /**< progress: every row counts twice, once for each pass */
} grv_shuffle_params;

/** The defaults above. */
GRV_API grv_shuffle_params grv_shuffle_params_default(void);

/** Permutes arrays in tandem along their first axis into new arrays: row i of every source array becomes row p(i), where
 * p(i) is the rank of the pair (key of i, i) and the key of i is grv_random_bits(seed, GRV_SHUFFLE_STREAM, i). So the result depends on
 * the seed and the number of rows only, not on memory, threads or chunks.
 *
 * Out of core, in two sequential passes over the data: rows are written to one file beside the target, grouped by ranges of keys
 * that fit in memory; each group is then sorted and written. The file has no name once it is open, so that nothing is left of it.
 * The attribute `grove_shuffled` {"seed", "rows", "source"} is added to the new arrays and to the group. Until everything is written
 * no metadata are there, and after a failure what was written is removed (empty folders stay).
 * @param source, source_path  a group, or one array
 * @param target, target_path  where nothing may be; a store on a file system
 * @param params  NULL for the defaults. Not collective
 * @errors GRV_E_EXISTS, GRV_E_SHAPE if the arrays have different numbers of rows, GRV_E_ARG, GRV_E_INTERRUPTED and those of reading and writing */
GRV_API grv_status grv_store_shuffle(grv_store *source, const char *source_path, grv_store *target,
                                     const char *target_path,
                                     const grv_shuffle_params *params) GRV_MUST_CHECK;

/** Stream of grv_random_bits from which the keys of a shuffle are. */
#define GRV_SHUFFLE_STREAM 0x73687566U

/** A window of shuffled rows. */
typedef struct grv_window_params {
    uint64_t seed;       /**< of the windows: another one than that of the shuffle is not needed */
    uint64_t sample;     /**< number of the window, such as epoch * samples + sample */
    int64_t window_rows; /**< contiguous rows, 1 to all of them; after the last comes the first */
    int64_t
        n_rows; /**< rows taken from the window, 1 to window_rows: one, drawn uniformly, of each of n_rows equal parts, in order */
    bool unshuffled; /**< take arrays that no shuffle made too: then neighbours are what they are */
} grv_window_params;

/** Reads rows of a random window of shuffled arrays, the same rows of each. Because the rows are shuffled, a contiguous window is a
 * random sample, and reads in long runs. The first row is drawn uniformly from all rows, so that each is as likely as any other.
 * Only the chunks that hold wanted rows are read and decoded, those of all arrays in one plan (read_plan.h). Thread-safe. Not
 * collective.
 * @param arrays  [n] of one number of rows, from the same shuffle
 * @param out  [n] memory for n_rows rows of each array, dense
 * @param first_row  first row of the window, written; may be NULL
 * @errors GRV_E_ARG if the arrays were not shuffled (or by different seeds) or counts are out of range, GRV_E_SHAPE for different
 *   numbers of rows, and those of grv_array_read */
GRV_API grv_status grv_read_window(grv_array *const *arrays, int n, const grv_window_params *params,
                                   void *const *out, int64_t *first_row) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
