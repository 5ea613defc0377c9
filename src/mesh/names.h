/* Names met in a file, each numbered when it is first seen. Internal. */
#ifndef GRVI_MESH_NAMES_H
#define GRVI_MESH_NAMES_H

#include "core/check.h"
#include "grove/mesh.h"

/* Start from {0}. The names are borrowed: they lie in the file. */
typedef struct grvi_names {
    const char **at;
    int64_t *lengths;
    int64_t n;
    int32_t *table; /* [n_table] numbers, -1: free; n_table is a power of two */
    int64_t n_table;
} grvi_names;

/* Number of a name, a new one if it was not met; at most INT32_MAX. */
grv_status grvi_names_number(grvi_names *names, const char *name, int64_t n_name,
                             int32_t *number) GRV_MUST_CHECK;
/* Adds a name as the next, met or not. */
grv_status grvi_names_add(grvi_names *names, const char *name, int64_t n_name) GRV_MUST_CHECK;
void grvi_names_fini(grvi_names *names);
/* The names as an array of texts in the field data. */
grv_status grvi_names_to_texts(const grvi_names *names, const char *array_name,
                               grv_mesh *mesh) GRV_MUST_CHECK;

#endif
