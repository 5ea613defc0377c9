/* Cache of decoded shard indices: bounded in bytes, least recently used out first, each entry valid for one identity
 * (size, time, inode) of its object. Thread-safe. Internal. */
#ifndef GRVI_STORE_INDEX_CACHE_H
#define GRVI_STORE_INDEX_CACHE_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/chain.h"
#include "store/kv.h"

/* One index; shared by the cache and by the reads that use it, freed by the last of them. */
typedef struct grvi_shard_index {
    _Atomic int n_references;
    uint64_t array_id;
    int64_t object_number;
    uint64_t identity[3];
    int64_t n_bytes; /* of entries */
    struct grvi_shard_index *newer, *older, *chained;
    grvi_shard_entry entries[];
} grvi_shard_index;

enum { GRVI_INDEX_BUCKETS = 1024 };

typedef struct grvi_index_cache {
    pthread_mutex_t lock;
    int64_t n_bytes, max_bytes;
    grvi_shard_index *newest, *oldest;
    grvi_shard_index *buckets[GRVI_INDEX_BUCKETS];
} grvi_index_cache;

void grvi_index_cache_init(grvi_index_cache *cache, int64_t max_bytes);
void grvi_index_cache_fini(grvi_index_cache *cache);
/* The index of an object as it is now, retained; NULL if it is not there or of another identity. identity == NULL: any. */
grvi_shard_index *grvi_index_cache_get(grvi_index_cache *cache, uint64_t array_id,
                                       int64_t object_number, const uint64_t identity[3]);
/* Keeps an index (retains it itself), in place of an older one of the same object. Too large ones are not kept. */
void grvi_index_cache_put(grvi_index_cache *cache, grvi_shard_index *index);

/* Drops the index of an object that this process is about to replace. */
void grvi_index_cache_forget(grvi_index_cache *cache, uint64_t array_id, int64_t object_number);

/* A new index with one reference, its entries not yet set. */
grv_status grvi_shard_index_create(int64_t n_entries, grvi_shard_index **index) GRV_MUST_CHECK;
/* NULL is allowed */
void grvi_shard_index_release(grvi_shard_index *index);

#endif
