/* Documents of groups and arrays: reading, making, changing. Internal.
 * Inside the store a document is in the words of version 3 (`zarr.json`), with the `zarr_format` that the files have: metadata_v2.c
 * translates `.zarray`, `.zgroup` and `.zattrs`. */
#ifndef GRVI_STORE_METADATA_H
#define GRVI_STORE_METADATA_H

#include "core/json.h"
#include "store/chain.h"
#include "store/kv.h"

/* longer axes are refused, so that sums of positions cannot overflow */
#define GRVI_MAX_LENGTH ((int64_t)1 << 60)

/* An array's document, resolved. */
typedef struct grvi_metadata {
    grv_array_desc desc; /* strings point into `strings`, fill_bytes to `fill` */
    grvi_chain *chain;
    bool has_no_separator; /* the document names none: what desc tells is the default */
    char **strings;        /* [n_strings] owned */
    int n_strings;
    uint8_t *fill; /* [desc.item_bytes] owned */
} grvi_metadata;

/* What is stored of a node. Free with grvi_node_text_fini. */
typedef struct grvi_node_text {
    int zarr_format;
    grv_node_kind kind;
    grvi_text document;   /* zarr.json, .zarray or .zgroup */
    grvi_text attributes; /* .zattrs; empty if there is none, and in version 3 */
} grvi_node_text;

/* Key of a document: path/name */
grv_status grvi_metadata_key(const char *path, const char *name, grvi_text *key) GRV_MUST_CHECK;

/* The JSON under the key path/name; *json = NULL (and GRV_OK) if there is none. Free with grvi_json_free. */
grv_status grvi_metadata_load_json(grvi_kv *kv, const char *path, const char *name,
                                   grvi_json **json) GRV_MUST_CHECK;
/* Checks that this is a document of version 3, and tells what of. */
grv_status grvi_metadata_kind(const grvi_json *document, const char *path,
                              grv_node_kind *kind) GRV_MUST_CHECK;
/* Reads the document of the node at a path; *document = NULL (and GRV_OK) if there is none. Free with grvi_json_free. */
grv_status grvi_metadata_load(grvi_kv *kv, const char *path, grvi_json **document,
                              grv_node_kind *kind) GRV_MUST_CHECK;
/* Version of the files that a document comes from. */
int grvi_metadata_version(const grvi_json *document);

/* Resolves an array's document. what: the array's name in messages. */
grv_status grvi_metadata_parse_array(const grvi_json *document, const char *what,
                                     int64_t max_chunk_bytes,
                                     grvi_metadata *metadata) GRV_MUST_CHECK;
void grvi_metadata_fini(grvi_metadata *metadata);

/* The document of a new array. */
grv_status grvi_metadata_make_array(const grv_array_desc *desc, grvi_text *out) GRV_MUST_CHECK;
/* The document of a new group; attributes may be NULL. */
grv_status grvi_metadata_make_group(int zarr_format, const char *attributes,
                                    grvi_text *out) GRV_MUST_CHECK;
/* What is to be stored for a document; what: the node's name in messages. */
grv_status grvi_node_text_make(grv_node_kind kind, const grvi_text *document, const char *what,
                               grvi_node_text *node) GRV_MUST_CHECK;
/* The document as it will be read from what is to be stored. Free with grvi_json_free. */
grv_status grvi_node_text_read(const grvi_node_text *node, const char *what,
                               grvi_json **document) GRV_MUST_CHECK;
void grvi_node_text_fini(grvi_node_text *node);
/* A `zarr.json` with its attributes replaced (attributes != NULL) or its consolidated copy dropped (NULL); all else is kept. */
grv_status grvi_metadata_change(const grvi_json *document, const char *attributes,
                                grvi_text *out) GRV_MUST_CHECK;
/* The same with a consolidated copy, which is JSON text. */
grv_status grvi_metadata_consolidate(const grvi_json *document, const char *consolidated,
                                     grvi_text *out) GRV_MUST_CHECK;
/* Is this text a JSON object? */
grv_status grvi_metadata_check_attributes(const char *attributes) GRV_MUST_CHECK;

/* ---- version 2 (metadata_v2.c) ---- */

/* The document of an array (.zarray) or group (.zgroup); zattrs may be NULL. Free with grvi_json_free. */
grv_status grvi_v2_read_node(grv_node_kind kind, const grvi_json *node, const grvi_json *zattrs,
                             const char *what, grvi_json **document) GRV_MUST_CHECK;
/* Fills node (its kind is given) from a document; what version 2 cannot say is refused by name. */
grv_status grvi_v2_make_node(const grvi_json *document, const char *what,
                             grvi_node_text *node) GRV_MUST_CHECK;
/* .zattrs of a document's node with new attributes (may be NULL); its dimension names are kept. */
grv_status grvi_v2_make_attributes(const grvi_json *document, const grvi_json *attributes,
                                   const char *what, grvi_text *out) GRV_MUST_CHECK;

#endif
