/* Cache of shard indices: a hash table of chains for finding, a list by age for dropping. One lock, held for a few pointer steps. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "store/index_cache.h"

static int64_t cost(const grvi_shard_index *index)
{
    return index->n_bytes + (int64_t)sizeof *index;
}

static grvi_shard_index **bucket_of(grvi_index_cache *cache, uint64_t array_id,
                                    int64_t object_number)
{
    const uint64_t mixed =
        (array_id * 0x9e3779b97f4a7c15U) ^ ((uint64_t)object_number * 0xbf58476d1ce4e5b9U);
    return &cache->buckets[(mixed >> 32) % GRVI_INDEX_BUCKETS];
}

static void unlink_age(grvi_index_cache *cache, grvi_shard_index *index)
{
    *(index->newer != NULL ? &index->newer->older : &cache->newest) = index->older;
    *(index->older != NULL ? &index->older->newer : &cache->oldest) = index->newer;
}

static void link_newest(grvi_index_cache *cache, grvi_shard_index *index)
{
    index->newer = NULL;
    index->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = index;
    cache->newest = index;
}

/* where the pointer to an object's index is kept: &NULL pointer at the end of the chain if it is not there */
static grvi_shard_index **find(grvi_index_cache *cache, uint64_t array_id, int64_t object_number)
{
    grvi_shard_index **place = bucket_of(cache, array_id, object_number);
    while (*place != NULL &&
           ((*place)->array_id != array_id || (*place)->object_number != object_number))
        place = &(*place)->chained;
    return place;
}

static void drop(grvi_index_cache *cache, grvi_shard_index **place)
{
    grvi_shard_index *const index = *place;
    *place = index->chained;
    unlink_age(cache, index);
    cache->n_bytes -= cost(index);
    grvi_shard_index_release(index);
}

void grvi_index_cache_init(grvi_index_cache *cache, int64_t max_bytes)
{
    memset(cache, 0, sizeof *cache);
    (void)pthread_mutex_init(&cache->lock, NULL);
    cache->max_bytes = max_bytes;
}

void grvi_index_cache_fini(grvi_index_cache *cache)
{
    while (cache->oldest != NULL)
        drop(cache, find(cache, cache->oldest->array_id, cache->oldest->object_number));
    (void)pthread_mutex_destroy(&cache->lock);
}

grvi_shard_index *grvi_index_cache_get(grvi_index_cache *cache, uint64_t array_id,
                                       int64_t object_number, const uint64_t identity[3])
{
    (void)pthread_mutex_lock(&cache->lock);
    grvi_shard_index *index = *find(cache, array_id, object_number);
    if (index != NULL && identity != NULL &&
        memcmp(index->identity, identity, sizeof index->identity) != 0)
        index = NULL;
    if (index != NULL) {
        unlink_age(cache, index);
        link_newest(cache, index);
        (void)atomic_fetch_add(&index->n_references, 1);
    }
    (void)pthread_mutex_unlock(&cache->lock);
    return index;
}

void grvi_index_cache_put(grvi_index_cache *cache, grvi_shard_index *index)
{
    if (cost(index) > cache->max_bytes) return;
    (void)pthread_mutex_lock(&cache->lock);
    grvi_shard_index **place = find(cache, index->array_id, index->object_number);
    if (*place != NULL) drop(cache, place);
    while (cache->n_bytes + cost(index) > cache->max_bytes)
        drop(cache, find(cache, cache->oldest->array_id, cache->oldest->object_number));
    place = bucket_of(cache, index->array_id, index->object_number);
    index->chained = *place;
    *place = index;
    link_newest(cache, index);
    cache->n_bytes += cost(index);
    (void)atomic_fetch_add(&index->n_references, 1);
    (void)pthread_mutex_unlock(&cache->lock);
}

void grvi_index_cache_forget(grvi_index_cache *cache, uint64_t array_id, int64_t object_number)
{
    (void)pthread_mutex_lock(&cache->lock);
    grvi_shard_index **const place = find(cache, array_id, object_number);
    if (*place != NULL) drop(cache, place);
    (void)pthread_mutex_unlock(&cache->lock);
}

grv_status grvi_shard_index_create(int64_t n_entries, grvi_shard_index **index)
{
    const int64_t n_bytes = n_entries * (int64_t)sizeof(grvi_shard_entry);
    *index = NULL;
    GRV_TRY(grvi_alloc((int64_t)sizeof **index + n_bytes, 1, (void **)index));
    memset(*index, 0, sizeof **index);
    (*index)->n_references = 1;
    (*index)->n_bytes = n_bytes;
    return GRV_OK;
}

void grvi_shard_index_release(grvi_shard_index *index)
{
    if (index != NULL && atomic_fetch_sub(&index->n_references, 1) == 1) grv_free(index);
}
