/* A mesh as a group of arrays in a store. Arrays are written whole, in chunks of about 4 MiB along their first axis; nothing is copied but one chunk a thread.
 * The offsets of polygons are needed to read the connectivity; a surface of nothing but triangles is written as a table of three columns instead. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "grove/core.h"
#include "mesh/mesh_impl.h"

static const int64_t chunk_bytes = (int64_t)4 << 20;
enum { MOST_NAME = 120 };

typedef struct target {
    grv_store *store;
    const char *path;
} target;

/* "group/name" below the target; either may be "" */
static void append_path(const target *t, const char *group, const char *name, grvi_text *out)
{
    const char *const parts[] = {t->path, group, name};
    for (int i = 0; i < 3; i++)
        if (parts[i][0] != '\0') grvi_text_printf(out, "%s%s", out->n > 0 ? "/" : "", parts[i]);
}

static grv_status write_array(const target *t, const char *group, const char *name,
                              grv_array_desc *desc, const void *data)
{
    grv_status status = GRV_OK;
    grvi_text path = {0};
    grv_array *array = NULL;
    int64_t row_bytes = grv_store_type_bytes(desc->type), n = 1;
    static const int64_t origin[GRV_STORE_MAX_RANK] = {0};
    for (int i = 1; i < desc->rank; i++) row_bytes *= grvi_max_i64(desc->shape[i], 1);
    for (int i = 0; i < desc->rank; i++) {
        desc->chunk_shape[i] = grvi_max_i64(desc->shape[i], 1);
        n *= desc->shape[i];
    }
    desc->chunk_shape[0] =
        grvi_min_i64(desc->chunk_shape[0], grvi_max_i64(1, chunk_bytes / row_bytes));
    append_path(t, group, name, &path);
    GRV_TRY_GOTO(grvi_text_status(&path));
    GRV_TRY_GOTO(grv_array_create(t->store, path.data, desc, &array));
    if (n > 0) GRV_TRY_GOTO(grv_array_write(array, origin, desc->shape, data, NULL));
done:
    grv_array_close(&array);
    grvi_text_fini(&path);
    return status;
}

/* [n], or [n, n_columns] */
static grv_status write_table(const target *t, const char *name, grv_store_type type, int64_t n,
                              int64_t n_columns, const void *data)
{
    grv_array_desc desc = grv_array_desc_default();
    desc.type = type;
    desc.rank = n_columns > 0 ? 2 : 1;
    desc.shape[0] = n;
    desc.shape[1] = n_columns;
    return write_array(t, "", name, &desc, data);
}

/* ---- named arrays ---- */

/* A name that a store takes, as near to the array's as it can be, and that no array of the group has yet. */
static grv_status choose_name(const target *t, const char *group, const char *wanted,
                              char name[MOST_NAME + 16])
{
    grv_node_kind kind = GRV_NODE_ARRAY;
    size_t n = 0;
    const bool is_bad = wanted[0] == '\0' || wanted[0] == '.' || wanted[0] == '_' ||
                        wanted[0] == '/' || wanted[0] == '\\' || strcmp(wanted, "zarr.json") == 0;
    if (is_bad) name[n++] = 'x'; /* what begins with dots and underscores may be reserved */
    for (; *wanted != '\0' && n < MOST_NAME; wanted++) {
        const unsigned char c = (unsigned char)*wanted;
        name[n++] = c < ' ' || c == 0x7f || c == '/' || c == '\\' ? '_' : *wanted;
    }
    /* a character is not cut in its middle */
    while (*wanted != '\0' && n > 1 && ((unsigned char)*wanted & 0xc0) == 0x80) n--, wanted--;
    name[n] = '\0';
    for (int number = 2; kind != GRV_NODE_NONE; number++) {
        grvi_text path = {0};
        append_path(t, group, name, &path);
        grv_status status = grvi_text_status(&path);
        if (status == GRV_OK) status = grv_store_node(t->store, path.data, &kind);
        grvi_text_fini(&path);
        GRV_TRY(status);
        if (kind != GRV_NODE_NONE) (void)snprintf(name + n, 16, "_%d", number);
    }
    return GRV_OK;
}

/* shape: of a grid's points or cells, slowest axis first, rank axes; rank 0: a list */
static grv_status write_list(const target *t, const char *group, const grv_mesh_arrays *list,
                             int rank, const int64_t *shape)
{
    static const char *const axes[] = {"z", "y", "x"};
    for (int64_t k = 0; k < list->n; k++) {
        const grv_mesh_array *const a = &list->items[k];
        char name[MOST_NAME + 16];
        grv_array_desc desc = grv_array_desc_default();
        if (a->is_text) continue; /* in the attributes */
        desc.type = a->type;
        desc.rank = rank > 0 ? rank : 1;
        desc.shape[0] = a->n_tuples;
        for (int i = 0; i < rank; i++) {
            desc.shape[i] = shape[i];
            desc.dimension_names[i] = axes[i];
        }
        if (a->n_components > 1) desc.shape[desc.rank++] = a->n_components;
        GRV_TRY(choose_name(t, group, a->name, name));
        GRV_TRY(write_array(t, group, name, &desc, a->data));
    }
    return GRV_OK;
}

/* ---- attributes ---- */

static const char *const kind_names[] = {[GRV_MESH_SURFACE] = "surface",
                                         [GRV_MESH_CELLS] = "cells",
                                         [GRV_MESH_IMAGE] = "image",
                                         [GRV_MESH_RECTILINEAR] = "rectilinear",
                                         [GRV_MESH_STRUCTURED] = "structured"};

static void write_doubles(grvi_json_writer *w, const char *key, int n, const double *values)
{
    grvi_json_key(w, key);
    grvi_json_begin_array(w);
    for (int i = 0; i < n; i++) grvi_json_double(w, values[i]);
    grvi_json_end_array(w);
}

static void write_texts(grvi_json_writer *w, const grv_mesh_arrays *list)
{
    for (int64_t k = 0; k < list->n; k++) {
        const grv_mesh_array *const a = &list->items[k];
        const char *text = a->data;
        if (!a->is_text) continue;
        grvi_json_key(w, a->name);
        grvi_json_begin_array(w);
        for (int64_t i = 0; i < a->n_tuples; i++, text += strlen(text) + 1)
            grvi_json_string(w, text);
        grvi_json_end_array(w);
    }
}

static bool has_extent(const grv_mesh *mesh)
{
    return mesh->kind != GRV_MESH_SURFACE && mesh->kind != GRV_MESH_CELLS;
}

static void write_attributes(const grv_mesh *mesh, grvi_json_writer *w)
{
    grvi_json_begin_object(w);
    grvi_json_key(w, "grove_mesh");
    grvi_json_begin_object(w);
    grvi_json_key(w, "kind");
    grvi_json_string(w, kind_names[mesh->kind]);
    if (has_extent(mesh)) {
        grvi_json_key(w, "extent");
        grvi_json_begin_array(w);
        for (int i = 0; i < 6; i++) grvi_json_i64(w, mesh->extent[i]);
        grvi_json_end_array(w);
    }
    if (mesh->kind == GRV_MESH_IMAGE) {
        write_doubles(w, "origin", 3, mesh->origin);
        write_doubles(w, "spacing", 3, mesh->spacing);
        write_doubles(w, "direction", 9, mesh->direction);
    }
    if (mesh->has_time) {
        grvi_json_key(w, "time");
        grvi_json_double(w, mesh->time);
    }
    grvi_json_key(w, "texts");
    grvi_json_begin_object(w);
    write_texts(w, &mesh->field_data);
    grvi_json_end_object(w);
    grvi_json_end_object(w);
    grvi_json_end_object(w);
}

static grv_status make_group(const target *t, const grv_mesh *mesh)
{
    grvi_text attributes = {0};
    grvi_json_writer w = {.out = &attributes};
    write_attributes(mesh, &w);
    grv_status status = grvi_text_status(&attributes);
    if (status == GRV_OK) status = grv_group_create(t->store, t->path, attributes.data);
    grvi_text_fini(&attributes);
    return status;
}

/* ---- cells ---- */

static bool is_all_triangles(const grv_mesh *mesh)
{
    for (int64_t i = 0; i < mesh->n_cells; i++)
        if (mesh->types[i] != GRV_CELL_TRIANGLE || mesh->offsets[i + 1] - mesh->offsets[i] != 3)
            return false;
    return mesh->n_cells > 0;
}

static grv_status write_cells(const target *t, const grv_mesh *mesh)
{
    const int64_t n = mesh->n_cells, n_ids = n > 0 ? mesh->offsets[n] : 0;
    if (mesh->kind == GRV_MESH_SURFACE && is_all_triangles(mesh))
        return write_table(t, "triangles", GRV_STORE_I64, n, 3, mesh->connectivity);
    if (n > 0) GRV_TRY(write_table(t, "offsets", GRV_STORE_I64, n + 1, 0, mesh->offsets));
    GRV_TRY(write_table(t, "connectivity", GRV_STORE_I64, n_ids, 0, mesh->connectivity));
    GRV_TRY(write_table(t, "types", GRV_STORE_U8, n, 0, mesh->types));
    if (mesh->face_offsets == NULL) return GRV_OK;
    GRV_TRY(write_table(t, "face_offsets", GRV_STORE_I64, n + 1, 0, mesh->face_offsets));
    return write_table(t, "faces", GRV_STORE_I64, mesh->face_offsets[n], 0, mesh->faces);
}

grv_status grv_mesh_store(const grv_mesh *mesh, grv_store *store, const char *path)
{
    static const char *const axes[] = {"x", "y", "z"};
    const target t = {store, path};
    const int rank = has_extent(mesh) ? 3 : 0;
    int64_t points[3] = {0}, cells[3] = {0};
    for (int i = 0; i < rank; i++) { /* slowest axis, z, first */
        const int64_t *const range = mesh->extent + 2 * (2 - i);
        points[i] = range[1] - range[0] + 1;
        cells[i] = grvi_max_i64(1, range[1] - range[0]);
    }
    GRV_TRY(grvi_mesh_check_data(mesh));
    GRV_TRY(make_group(&t, mesh));
    if (mesh->points.data != NULL)
        GRV_TRY(write_table(&t, "points", mesh->points.type, mesh->points.n_tuples, 3,
                            mesh->points.data));
    if (rank == 0) GRV_TRY(write_cells(&t, mesh));
    for (int i = 0; i < 3; i++) {
        const grv_mesh_array *const a = &mesh->coordinates[i];
        if (a->data != NULL) GRV_TRY(write_table(&t, axes[i], a->type, a->n_tuples, 0, a->data));
    }
    GRV_TRY(write_list(&t, "point_data", &mesh->point_data, rank, points));
    GRV_TRY(write_list(&t, "cell_data", &mesh->cell_data, rank, cells));
    return write_list(&t, "field_data", &mesh->field_data, 0, NULL);
}
