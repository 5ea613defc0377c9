/* What the files of a copy share: store_copy.c (the tree), copy_array.c (one array), copy_record.c (what an unfinished copy leaves).
 * Internal. */
#ifndef GRVI_STORE_COPY_IMPL_H
#define GRVI_STORE_COPY_IMPL_H

#include "store/store_tools_impl.h"

typedef struct grvi_copier {
    grv_store *source, *target;
    const char *source_path, *target_path;
    const grv_copy_params *params;
    bool resumed;        /* an earlier call was here, and may have left files aside */
    int64_t done, total; /* bytes of elements */
    grv_copy_report report;
} grvi_copier;

/* One array on its way. */
typedef struct grvi_array_copy {
    grvi_copier *copier;
    grv_array *from, *to;
    const char *path;    /* of the new one */
    grv_array_desc desc; /* of the new one */
    grvi_text codecs;    /* strings of desc */
    char *attributes;
    int64_t unit[GRVI_MAX_RANK], block[GRVI_MAX_RANK];
    bool as_bytes;               /* objects are copied as they are, one for each step */
    int64_t n_steps, n_done;     /* in row-major order of `grid` */
    int64_t grid[GRVI_MAX_RANK]; /* steps along each axis */
    int64_t n_bytes;             /* of elements */
    double recorded_s;           /* clock when the record was published */
} grvi_array_copy;

/* ---- copy_record.c ---- */

/* The record at a path of the target; NULL if there is none. */
grv_status grvi_copy_load_record(grvi_copier *c, const char *path,
                                 grvi_json **record) GRV_MUST_CHECK;
grv_status grvi_copy_put_record(grvi_copier *c, const char *path,
                                const grvi_text *text) GRV_MUST_CHECK;
grv_status grvi_copy_remove_record(grvi_copier *c, const char *path) GRV_MUST_CHECK;
/* Publishes the record of an array: its description, the step, and how many are done. What it tells is safe before. */
grv_status grvi_copy_put_progress(grvi_array_copy *c) GRV_MUST_CHECK;
/* The description of what is made; of another array instead of c->to if one is given. */
grv_status grvi_copy_describe(const grvi_array_copy *c, const grv_array *other,
                              grvi_json **description) GRV_MUST_CHECK;
/* Refuses to go on with what this copy would not make. */
grv_status grvi_copy_compare_record(const grvi_array_copy *c,
                                    const grvi_json *found) GRV_MUST_CHECK;
/* Are there files that a killed writer left aside in a folder of the target? */
grv_status grvi_copy_has_leftovers(grvi_copier *c, const char *prefix, bool *has) GRV_MUST_CHECK;
/* Removes them, in one folder, or in all of an array. */
grv_status grvi_copy_clean_folder(grvi_copier *c, const char *prefix) GRV_MUST_CHECK;
grv_status grvi_copy_clean_array(grvi_array_copy *c) GRV_MUST_CHECK;

/* ---- copy_array.c ---- */

/* is_alone: it is the whole copy, so that the layout must fit it. */
grv_status grvi_copy_array(grvi_copier *c, const char *from_path, const char *to_path,
                           bool is_alone) GRV_MUST_CHECK;
/* Publishes a node of the source by its own document, with what grove does not know in it, but without the consolidated copy. */
grv_status grvi_copy_publish_document(grvi_copier *c, const char *from_path,
                                      const char *to_path) GRV_MUST_CHECK;

#endif
