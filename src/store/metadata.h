/* Zarr v3 metadata documents (`zarr.json`): reading, making, changing. Internal. */
#ifndef GRVI_STORE_METADATA_H
#define GRVI_STORE_METADATA_H

#include "core/json.h"
#include "store/chain.h"
#include "store/kv.h"

/* longer axes are refused, so that sums of positions cannot overflow */
#define GRVI_MAX_LENGTH ((int64_t)1 << 60)

/* An array's document, resolved. */
typedef struct grvi_metadata {
    grv_array_desc desc; /* strings point into `strings` */
    grvi_chain *chain;
    uint8_t *fill;  /* [desc.item_bytes] owned */
    char **strings; /* [n_strings] owned */
    int n_strings;
} grvi_metadata;

/* Reads the document of the node at a path; *document = NULL (and GRVI_OK) if there is none. Zarr v2 is refused by name.
 * Free with grvi_json_free. */
grv_status grvi_metadata_load(grvi_kv *kv, const char *path, grvi_json **document,
                              grv_node_kind *kind) GRV_MUST_CHECK;

/* Resolves an array's document. what: the array's name in messages. */
grv_status grvi_metadata_parse_array(const grvi_json *document, const char *what,
                                     int64_t max_chunk_bytes,
                                     grvi_metadata *metadata) GRV_MUST_CHECK;
void grvi_metadata_fini(grvi_metadata *metadata);

/* The document of a new array. */
grv_status grvi_metadata_make_array(const grv_array_desc *desc, grvi_text *out) GRV_MUST_CHECK;
/* The document of a new group; attributes may be NULL. */
grv_status grvi_metadata_make_group(const char *attributes, grvi_text *out) GRV_MUST_CHECK;
/* A document with its attributes replaced (attributes != NULL) or its consolidated copy dropped (NULL); all else is kept. */
grv_status grvi_metadata_change(const grvi_json *document, const char *attributes,
                                grvi_text *out) GRV_MUST_CHECK;
/* Is this text a JSON object? */
grv_status grvi_metadata_check_attributes(const char *attributes) GRV_MUST_CHECK;

#endif
