/* What the files that read legacy VTK share: words, and values in text or big-endian. Internal. */
#ifndef GRVI_MESH_VTK_LEGACY_H
#define GRVI_MESH_VTK_LEGACY_H

#include "mesh/mesh_impl.h"
#include "mesh/xml_scan.h"

/* Elements as they lie in the file. */
typedef enum grvi_legacy_form {
    GRVI_LEGACY_PLAIN,
    GRVI_LEGACY_BITS,
    GRVI_LEGACY_STRINGS
} grvi_legacy_form;

typedef struct grvi_legacy_type {
    grv_store_type type;
    grvi_legacy_form form;
} grvi_legacy_type;

typedef struct grvi_legacy {
    const char *path, *begin, *at, *end;
    bool is_binary;
    int major; /* of the version */
    int minor;
    grv_mesh *mesh;
    int64_t *cell_values; /* a list of cells before version 5.1: count and points of each; owned */
} grvi_legacy;

static inline long long grvi_legacy_byte(const grvi_legacy *r, const char *at)
{
    return (long long)(at - r->begin);
}

/* Next word, over line ends; length 0 at the end. */
grvi_span grvi_legacy_word(grvi_legacy *r);
/* Passes over the rest of the line: what follows may be binary. */
void grvi_legacy_end_line(grvi_legacy *r);
/* Compares without case. */
bool grvi_legacy_is(grvi_span word, const char *expected);
/* Next word as a number in [0, most]; `what` names it in messages. */
grv_status grvi_legacy_count(grvi_legacy *r, const char *what, int64_t most,
                             int64_t *value) GRV_MUST_CHECK;
/* Next word as a type. */
grv_status grvi_legacy_type_get(grvi_legacy *r, grvi_legacy_type *type) GRV_MUST_CHECK;
/* Can the rest of the file hold n values? Asked before memory is taken for them. */
grv_status grvi_legacy_room(const grvi_legacy *r, grvi_legacy_type type, int64_t n,
                            const char *what) GRV_MUST_CHECK;
/* Reads n values (not strings). */
grv_status grvi_legacy_values(grvi_legacy *r, grvi_legacy_type type, int64_t n, const char *what,
                              void *out) GRV_MUST_CHECK;
/* The same into 64-bit integers. */
grv_status grvi_legacy_integers(grvi_legacy *r, grvi_legacy_type type, int64_t n, const char *what,
                                int64_t *out) GRV_MUST_CHECK;

/* Lists of cells, the keyword has been read. `first_type`: of cells with so few points; see the .c file. */
grv_status grvi_legacy_read_list(grvi_legacy *r, const char *keyword) GRV_MUST_CHECK;
grv_status grvi_legacy_read_cell_types(grvi_legacy *r) GRV_MUST_CHECK;
/* When all is read: indices are checked, polyhedra get their faces. */
grv_status grvi_legacy_finish_cells(grvi_legacy *r) GRV_MUST_CHECK;

#endif
