/* What the files of src/mesh share: building a mesh, files in memory, types of VTK. Internal. */
#ifndef GRVI_MESH_IMPL_H
#define GRVI_MESH_IMPL_H

#include "core/check.h"
#include "grove/mesh.h"

/* ---- files ---- */

/* A file that is mapped, or unpacked from gzip. */
typedef struct grvi_mesh_file {
    const char *path; /* of the caller */
    const uint8_t *data;
    int64_t n_bytes;
    void *map; /* NULL: not mapped */
    size_t n_map;
    uint8_t *unpacked; /* owned; NULL: not packed */
    int fd;            /* of a mapped file, that large parts are read with; else -1 */
} grvi_mesh_file;

grv_status grvi_mesh_file_open(const char *path, grvi_mesh_file *file) GRV_MUST_CHECK;
void grvi_mesh_file_close(grvi_mesh_file *file);
/* Copies n bytes from an offset; they are in the file. Large parts are read rather than copied out of the map. */
grv_status grvi_mesh_file_get(const grvi_mesh_file *file, int64_t offset, int64_t n,
                              void *out) GRV_MUST_CHECK;

/* ---- readers and writers, one pair per format ---- */

typedef grv_status grvi_mesh_reader(const grvi_mesh_file *file, int n_threads, grv_mesh *mesh);
grvi_mesh_reader grvi_stl_read, grvi_obj_read, grvi_vtk_xml_read, grvi_vtk_legacy_read;

/* Does the content look like STL, whatever the name says? */
bool grvi_stl_is(const grvi_mesh_file *file);

typedef grv_status grvi_mesh_writer(const grv_mesh *mesh, const grv_mesh_write_params *params,
                                    int fd, const char *path);
grvi_mesh_writer grvi_stl_write, grvi_vtk_xml_write;

/* GRV_E_SHAPE for named arrays that do not fit the mesh: what is to be written. */
grv_status grvi_mesh_check_data(const grv_mesh *mesh) GRV_MUST_CHECK;

/* ---- arrays ---- */

/* Bytes of an element of a type that meshes have, 0 for others. */
int64_t grvi_mesh_item_bytes(grv_store_type type);
/* Adds an array with uninitialised data; `n_name` bytes of `name` are copied. The data are released with the list. */
grv_status grvi_mesh_arrays_add(grv_mesh_arrays *list, const char *name, int64_t n_name,
                                grv_store_type type, int n_components, int64_t n_tuples,
                                grv_mesh_array **added) GRV_MUST_CHECK;
/* The same for an array that stands by itself (the points). */
grv_status grvi_mesh_array_init(const char *name, int64_t n_name, grv_store_type type,
                                int n_components, int64_t n_tuples,
                                grv_mesh_array *array) GRV_MUST_CHECK;
void grvi_mesh_array_fini(grv_mesh_array *array);
/* Adds a copy of the rows of an array with these numbers [n] to a list; rows NULL: of the first n rows. Texts are copied whole. */
grv_status grvi_mesh_copy_rows(const grv_mesh_array *from, const int64_t *rows, int64_t n,
                               grv_mesh_arrays *to) GRV_MUST_CHECK;
/* Adds copies of all arrays of a list to another. */
grv_status grvi_mesh_copy_all_rows(const grv_mesh_arrays *from, grv_mesh_arrays *to) GRV_MUST_CHECK;
/* Takes offsets [n_cells + 1] and types [n_cells] into an empty mesh; connectivity has room for n_connectivity. */
grv_status grvi_mesh_alloc_cells(grv_mesh *mesh, int64_t n_cells,
                                 int64_t n_connectivity) GRV_MUST_CHECK;
/* Integers become doubles: what points must be. */
grv_status grvi_mesh_points_to_real(grv_mesh_array *points) GRV_MUST_CHECK;
/* One value as a double; index counts components. */
double grvi_mesh_value(const grv_mesh_array *array, int64_t index);
/* Takes the time out of the field data. */
void grvi_mesh_find_time(grv_mesh *mesh);
/* Points and cells that an extent implies; false: an extent that is none, or too large to count. */
bool grvi_mesh_extent_counts(const int64_t extent[6], int64_t *n_points, int64_t *n_cells);
/* Type of a polygon with so many points. */
static inline uint8_t grvi_polygon_type(int64_t n)
{
    return n == 3 ? GRV_CELL_TRIANGLE : n == 4 ? GRV_CELL_QUAD : GRV_CELL_POLYGON;
}

/* Which of PolyData's four lists a cell belongs to: vertices, lines, polygons, strips; -1: none of them. */
static inline int grvi_surface_list(uint8_t type)
{
    switch (type) {
    case GRV_CELL_VERTEX:
    case GRV_CELL_POLY_VERTEX: return 0;
    case GRV_CELL_LINE:
    case GRV_CELL_POLY_LINE: return 1;
    case GRV_CELL_TRIANGLE:
    case GRV_CELL_POLYGON:
    case GRV_CELL_QUAD: return 2;
    case GRV_CELL_TRIANGLE_STRIP: return 3;
    default: return -1;
    }
}

#endif
