/** @file dataset.h
 * Data sets of field pairs: what a generator writes and training reads.
 *
 * A data set is a Zarr v3 group with three arrays (docs/formats/dataset.md has every byte):
 *   input  [sample, axes..., channel]  float32 or float64
 *   target [sample, axes..., channel]  of the same type
 *   status [sample]                    uint8: 0 missing, 1 done, 2 failed
 * One sample is one shard of each array: it appears whole or not at all, and different samples may be written by any
 * number of threads and processes at once. Its inner chunks are whole along all axes but the first (the split axis) and a
 * few planes thick there, so that each rank reads its own planes only.
 *
 * The input may lack axes that the target has (static inputs beside targets in time), but not the first one.
 *
 * Threads: reads are concurrent-safe; writes of different samples are too. None of these calls is collective.
 */
#ifndef GROVE_DATASET_H
#define GROVE_DATASET_H

#include "grove/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most axes of a field, channels and samples not counted. */
#define GRV_DATASET_MAX_AXES 4

/** One side of the pairs. */
typedef struct grv_dataset_field {
    int n_axes; /**< 1 to GRV_DATASET_MAX_AXES */
    const char *axis_names
        [GRV_DATASET_MAX_AXES]; /**< such as "x", "y", "z", "t"; the first one is the split axis */
    int64_t shape[GRV_DATASET_MAX_AXES]; /**< elements along each axis */
    int64_t n_channels;                  /**< values at each point, at least 1 */
    const char *const *channel_names;    /**< [n_channels], or NULL. NULL after opening */
    const char *const
        *channel_units; /**< [n_channels], such as "m/s"; or NULL. NULL after opening */
} grv_dataset_field;

/** Description of a data set. Start from grv_dataset_desc_default. Pointers are copied by grv_dataset_create; those of
 * grv_dataset_get_desc are the data set's. */
typedef struct grv_dataset_desc {
    int64_t n_samples;
    grv_dataset_field input;
    grv_dataset_field target;
    grv_store_type type; /**< GRV_STORE_F32 (default) or GRV_STORE_F64 */
    int64_t
        planes_per_chunk; /**< thickness of an inner chunk along the split axis, 1 (default) to 4 in practice */
    grv_compressor compressor; /**< default GRV_COMPRESSOR_BLOSC_ZSTD */
    int level;                 /**< of the compressor, default 1 */
    uint64_t seed;             /**< of the generator */
    const char *
        generator; /**< the generator's resolved configuration, a JSON object; or NULL. NULL after opening */
    const char
        *units; /**< units of axes and parameters, a JSON object; or NULL. NULL after opening */
    const char *
        normalization; /**< constants to normalise with, a JSON object; or NULL. NULL after opening */
} grv_dataset_desc;

/** The defaults above; sizes are zero. */
GRV_API grv_dataset_desc grv_dataset_desc_default(void);

/** State of a sample. */
typedef enum grv_sample_status {
    GRV_SAMPLE_MISSING = 0,
    GRV_SAMPLE_DONE = 1,
    GRV_SAMPLE_FAILED = 2
} grv_sample_status;

/** How many samples are in which state. */
typedef struct grv_dataset_counts {
    int64_t n_done;
    int64_t n_failed;
    int64_t n_missing;
} grv_dataset_counts;

/** An opened data set. */
typedef struct grv_dataset grv_dataset;

/** Makes an empty data set: the folder appears complete, by rename. Not collective: one process makes it.
 * @param path  of the folder; must be absent or empty
 * @param params  of the store; NULL for the defaults. `writable` is set in any case
 * @param dataset  NULL to create only; close with grv_dataset_close
 * @errors GRV_E_EXISTS if something is there, GRV_E_ARG or GRV_E_SHAPE for a description that cannot be */
GRV_API grv_status grv_dataset_create(const char *path, const grv_dataset_desc *desc,
                                      const grv_store_params *params,
                                      grv_dataset **dataset) GRV_MUST_CHECK;

/** Opens the data set at a path if there is one that this description fits, makes it if there is none: what a generator
 * that may be rerun calls. Not collective.
 * @errors GRV_E_CONFIG naming what differs (sizes, axes, type, seed or generator's configuration) */
GRV_API grv_status grv_dataset_resume(const char *path, const grv_dataset_desc *desc,
                                      const grv_store_params *params,
                                      grv_dataset **dataset) GRV_MUST_CHECK;

/** Opens a data set, also one that another program wrote, however it is chunked. Not collective.
 * @param params  of the store; NULL for the defaults (reading only, one thread)
 * @errors GRV_E_NOT_FOUND, GRV_E_FORMAT or GRV_E_SHAPE if it does not keep the contract */
GRV_API grv_status grv_dataset_open(const char *path, const grv_store_params *params,
                                    grv_dataset **dataset) GRV_MUST_CHECK;

/** Closes the data set, and commits what was written (grv_store_sync). NULL is allowed. Not collective. */
GRV_API void grv_dataset_close(grv_dataset **dataset);

/** What the data set is. Borrowed until it is closed. Not collective. */
GRV_API const grv_dataset_desc *grv_dataset_get_desc(const grv_dataset *dataset);

/** The store below, for its counters. Borrowed until the data set is closed. Not collective. */
GRV_API grv_store *grv_dataset_get_store(grv_dataset *dataset);

/** Publishes a sample: input, then target, then its status. A sample that is replaced counts as missing meanwhile.
 * One writer per sample. Not collective.
 * @param input, target  [axes..., channel] dense, of the data set's type
 * @errors GRV_E_NUMERIC naming sample and position of a NaN or infinity, and nothing is written; GRV_E_IO */
GRV_API grv_status grv_dataset_write_sample(grv_dataset *dataset, int64_t sample, const void *input,
                                            const void *target) GRV_MUST_CHECK;

/** Notes that a sample could not be made, and why. Not collective.
 * @param reason  a short text; kept as `status/reasons/<sample>.txt` */
GRV_API grv_status grv_dataset_mark_failed(grv_dataset *dataset, int64_t sample,
                                           const char *reason) GRV_MUST_CHECK;

/** Why a sample is marked failed. Not collective.
 * @param reason  owned by the caller, free with grv_free; NULL if no reason is kept */
GRV_API grv_status grv_dataset_reason(grv_dataset *dataset, int64_t sample, char **reason) GRV_MUST_CHECK;

/** Reads planes of a sample, as float32 whatever is stored; only what these planes need is read and decoded. A sample
 * that was once seen done is not asked for again. Thread-safe. Not collective.
 * @param first_plane, n_planes  along the split axis
 * @param input  [n_planes, axes..., channel] dense, written; or NULL
 * @param target  likewise
 * @errors GRV_E_NOT_FOUND naming a missing or failed sample (with the reason), GRV_E_NUMERIC naming sample and position of
 *         a NaN or infinity, GRV_E_FORMAT or GRV_E_IO naming array, chunk and byte */
GRV_API grv_status grv_dataset_read(grv_dataset *dataset, int64_t sample, int64_t first_plane,
                                    int64_t n_planes, float *input, float *target) GRV_MUST_CHECK;

/** Should reads check for NaN and infinity? They do by default. Not while others read. Not collective. */
GRV_API void grv_dataset_set_check_finite(grv_dataset *dataset, bool enabled);

/** State of each sample, as it is on disk now. Not collective.
 * @param status  [n_samples], written */
GRV_API grv_status grv_dataset_status(grv_dataset *dataset, uint8_t *status) GRV_MUST_CHECK;

/** Numbers of samples in each state. Not collective. */
GRV_API grv_status grv_dataset_count(grv_dataset *dataset,
                                     grv_dataset_counts *counts) GRV_MUST_CHECK;

/** The samples in one state, ascending: what a generator has still to do, what training may use. Not collective.
 * @param samples  [n_samples], the first *n are written */
GRV_API grv_status grv_dataset_list(grv_dataset *dataset, grv_sample_status which, int64_t *samples,
                                    int64_t *n) GRV_MUST_CHECK;

/** One attribute of the group as JSON text ("generator", "seed", "units", "normalization", or any other). Not collective.
 * @param json  owned by the caller, free with grv_free; NULL if there is no such attribute */
GRV_API grv_status grv_dataset_get_attribute(grv_dataset *dataset, const char *key,
                                             char **json) GRV_MUST_CHECK;

/** Sets one attribute of the group, such as normalisation constants found after generating. One writer at a time. Not collective.
 * @param json  any JSON value as text */
GRV_API grv_status grv_dataset_set_attribute(grv_dataset *dataset, const char *key,
                                             const char *json) GRV_MUST_CHECK;

/** A summary as a JSON object: samples and their states, fields with axes, shapes and channels, type, bytes stored. Not collective.
 * @param json  owned by the caller, free with grv_free */
GRV_API grv_status grv_dataset_describe(grv_dataset *dataset, char **json) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
