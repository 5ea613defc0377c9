/* Consolidated metadata: one copy of all documents below a group, in that group (version 3, `consolidated_metadata` of zarr.json) or
 * beside it (version 2, `.zmetadata`). Internal.
 * A copy may be stale; it is read only through back ends that cannot list, and there it also spares a round trip for each node. */
#ifndef GRVI_STORE_CONSOLIDATED_H
#define GRVI_STORE_CONSOLIDATED_H

#include <pthread.h>

#include "store/metadata.h"

/* The copy of a store's root, read when first asked for. Thread-safe: the JSON is used under the lock only. */
typedef struct grvi_consolidated {
    pthread_mutex_t lock;
    bool is_loaded;
    int zarr_format;
    grvi_json *root; /* owned; NULL: there is none */
    const grvi_json *documents;
} grvi_consolidated;

void grvi_consolidated_init(grvi_consolidated *copy);
void grvi_consolidated_fini(grvi_consolidated *copy);

/* As grvi_metadata_load, from the copy; *document = NULL if the node is not in it. */
grv_status grvi_consolidated_load(grvi_consolidated *copy, grvi_kv *kv, const char *path,
                                  grvi_json **document, grv_node_kind *kind) GRV_MUST_CHECK;
/* Calls visit with the name of each child of a group, as a back end's list does; without a copy that is called. */
grv_status grvi_consolidated_list(grvi_consolidated *copy, grvi_kv *kv, const char *path,
                                  grvi_kv_visit *visit, void *argument) GRV_MUST_CHECK;

#endif
