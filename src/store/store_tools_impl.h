/* What the operations on whole stores (store_copy.c, store_check.c, store_shuffle.c) share. Internal. */
#ifndef GRVI_STORE_TOOLS_IMPL_H
#define GRVI_STORE_TOOLS_IMPL_H

#include "grove/store_tools.h"
#include "store/store_impl.h"

/* Object that says what an unfinished copy makes and how far it is. Lists skip names with ".partial". */
#define GRVI_COPY_RECORD "copy.partial.json"

/* "a/b" appended to an empty text; either part may be "". */
void grvi_join_key(grvi_text *out, const char *path, const char *name);

/* One node below the one that an operation is about; `path` is relative to it, "" for itself. */
typedef struct grvi_tree_node {
    char *path;
    grv_node_kind kind;
} grvi_tree_node;

typedef struct grvi_tree {
    grvi_tree_node *nodes; /* [n] parents before children, by name */
    int64_t n;
} grvi_tree;

/* The nodes at and below a path, unreadable ones included. GRV_E_NOT_FOUND if there is none. Fini in any case. */
grv_status grvi_tree_list(grv_store *store, const char *path, grvi_tree *tree) GRV_MUST_CHECK;
void grvi_tree_fini(grvi_tree *tree);

/* GRV_E_EXISTS if a node is at the path. */
grv_status grvi_check_absent(grv_store *store, const char *path) GRV_MUST_CHECK;

/* Description of a new array by a layout and what it is made from (its strings stay in use). codecs: empty, holds the codec list
 * of the description if one is made. is_alone: a layout of another rank is an error, not ignored. */
grv_status grvi_layout_apply(const grv_store_layout *layout, const grv_array *source, bool is_alone,
                             grv_array_desc *desc, grvi_text *codecs) GRV_MUST_CHECK;

/* Shape of what is decoded at once when a part of the array is read: inner chunk or chunk. */
void grvi_decode_unit(const grv_array *array, int64_t *shape);
/* Elements of a chunk shape in bytes; INT64_MAX on overflow. */
int64_t grvi_box_bytes(int rank, const int64_t *shape, int64_t item_bytes);
/* All elements of an array in bytes. */
static inline int64_t grvi_array_bytes(const grv_array *array)
{
    return grvi_box_bytes(array->metadata.desc.rank, array->metadata.desc.shape,
                          array->metadata.chain->item_bytes);
}
/* a + b of counts, INT64_MAX on overflow */
static inline int64_t grvi_add_bytes(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}
/* Memory that reading (writing) by n threads takes besides the caller's elements: encoded and decoded chunks, or a whole shard. */
int64_t grvi_read_overhead(const grv_array *array);
int64_t grvi_write_overhead(const grv_array *array);

/* Elements [start, start + count) of the stored object at a grid position, inside the shape. */
void grvi_object_region(const grv_array *array, const int64_t *position, int64_t *start,
                        int64_t *count);
/* Grid position of a row-major number. */
void grvi_grid_position(int rank, const int64_t *grid, int64_t number, int64_t *position);

/* Opens a stored object that is about to be read from its start to its end. */
grv_status grvi_open_whole(const grv_array *array, const char *key, grvi_object *object,
                           bool *found) GRV_MUST_CHECK;

/* Calls the hook; GRV_E_INTERRUPTED if it says so. NULL is allowed. */
grv_status grvi_tool_report(const grv_tool_hooks *hooks, int64_t done,
                            int64_t total) GRV_MUST_CHECK;

#endif
