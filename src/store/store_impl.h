/* What the files of the store share about stores and arrays. Internal. */
#ifndef GRVI_STORE_IMPL_H
#define GRVI_STORE_IMPL_H

#include <stdatomic.h>

#include "store/consolidated.h"
#include "store/index_cache.h"
#include "store/metadata.h"
#include "store/workers.h"

enum { GRVI_KEY_BYTES = 1024 };

struct grv_store {
    grvi_kv *kv;
    char *location; /* as it was opened */
    grv_store_params params;
    grvi_scratch_pool scratches;
    grvi_index_cache indices;
    grvi_consolidated consolidated;
    bool has_lists;       /* the back end can list */
    grvi_workers workers; /* of reads */
    pthread_mutex_t plan_lock;
    struct grv_read_plan *free_plans; /* for grv_array_read */
    _Atomic uint64_t next_array_id;
    _Atomic int64_t bytes_read, bytes_decoded, objects_opened, read_calls, bytes_written;
};

struct grv_array {
    grv_store *store;
    uint64_t id; /* in the index cache */
    char *path;
    grvi_metadata metadata;
    int64_t grid[GRVI_MAX_RANK]; /* stored objects along each axis */
    /* what store_window.c learned from the attributes: 0 not looked yet, 1 shuffled by that seed, -1 not shuffled */
    _Atomic int shuffled;
    _Atomic uint64_t shuffle_seed;
};

/* Makes an array object by a description without publishing anything: chunks may be written to it, and no reader sees an
 * array there until grv_array_create is called with the same description. What is at the path is not looked at:
 * grvi_store_check_new. Errors as grv_array_create. */
grv_status grvi_array_prepare(grv_store *store, const char *path, const grv_array_desc *desc,
                              grv_array **array) GRV_MUST_CHECK;

/* Key of the stored object at a grid position. */
grv_status grvi_array_key(const grv_array *array, const int64_t *position,
                          char key[GRVI_KEY_BYTES]) GRV_MUST_CHECK;
/* Row-major number of the stored object at a grid position (for the index cache; wraps for absurd grids, which is harmless there only
 * because grids beyond 2^63 objects are refused at opening). */
int64_t grvi_array_object_number(const grv_array *array, const int64_t *position);
/* Name in messages: the path, or "/" for the store's own node. */
const char *grvi_array_name(const grv_array *array);
/* Checks a region against the shape. */
grv_status grvi_array_check_region(const grv_array *array, const int64_t *start,
                                   const int64_t *count) GRV_MUST_CHECK;
/* "(3,0,1)" */
void grvi_position_text(int rank, const int64_t *position, char *text, size_t n_text);
/* Strides of the caller's memory in bytes, from strides in elements or NULL. */
grv_status grvi_array_byte_strides(const grv_array *array, const int64_t *count,
                                   const int64_t *strides, int64_t *byte_strides) GRV_MUST_CHECK;
/* The part of a region that lies in the stored object at a grid position: box within the object, byte offset in the caller's memory. */
void grvi_array_object_part(const grv_array *array, const int64_t *position, const int64_t *start,
                            const int64_t *count, const int64_t *byte_strides, grvi_box *box,
                            int64_t *offset);
/* Adds what a scratch counted to the store's counters. */
void grvi_store_count_decoded(grv_store *store, grvi_scratch *scratch);
/* Asks the back end whether it can list. */
grv_status grvi_store_find_lists(grv_store *store) GRV_MUST_CHECK;
/* The document of the node at a path, for reading: as grvi_metadata_load, or out of consolidated metadata. */
grv_status grvi_store_load(grv_store *store, const char *path, grvi_json **document,
                           grv_node_kind *kind) GRV_MUST_CHECK;
/* Writing allowed? */
grv_status grvi_store_check_writable(const grv_store *store) GRV_MUST_CHECK;
/* May a new node of this version be published at a path: writable store, good name, nothing there, groups of this version above? */
grv_status grvi_store_check_new(grv_store *store, const char *path,
                                int zarr_format) GRV_MUST_CHECK;
/* Publishes a new node at a path; makes absent groups above it, drops consolidated copies there. GRV_E_EXISTS if a node is there. */
grv_status grvi_store_publish_node(grv_store *store, const char *path,
                                   const grvi_node_text *node) GRV_MUST_CHECK;

#endif
