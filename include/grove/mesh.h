/** @file mesh.h
 * Meshes in files: STL, OBJ, VTK's XML files and legacy files read into plain arrays; STL and VTK's XML files written.
 *
 * A mesh is a public structure of plain arrays that it owns (grv_free of core.h releases what a caller takes out of it; set the member to
 * NULL then). Nothing here is collective. Files are untrusted: sizes are compared with the file's before memory is taken, offsets must
 * ascend, indices must be in range; messages name file, element and byte. docs/geometry.md lists what is read and what is refused.
 */
#ifndef GROVE_MESH_H
#define GROVE_MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/status.h"
#include "grove/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the points of a mesh are joined to. */
typedef enum grv_mesh_kind {
    GRV_MESH_SURFACE, /**< vertices, lines, polygons, strips, in that order (STL, OBJ, PolyData) */
    GRV_MESH_CELLS,   /**< cells of any type in any order (UnstructuredGrid) */
    GRV_MESH_IMAGE, /**< a regular grid: origin, spacing, extent; no points and no list of cells */
    GRV_MESH_RECTILINEAR, /**< coordinates along three axes, over an extent; no points and no list of cells */
    GRV_MESH_STRUCTURED /**< the points of a grid, x fastest, over an extent; no list of cells */
} grv_mesh_kind;

/** Types of cells: VTK's numbers. Others are kept as they are in the file. */
typedef enum grv_cell_type {
    GRV_CELL_VERTEX = 1,
    GRV_CELL_POLY_VERTEX = 2,
    GRV_CELL_LINE = 3,
    GRV_CELL_POLY_LINE = 4,
    GRV_CELL_TRIANGLE = 5,
    GRV_CELL_TRIANGLE_STRIP = 6,
    GRV_CELL_POLYGON = 7,
    GRV_CELL_PIXEL = 8,
    GRV_CELL_QUAD = 9,
    GRV_CELL_TETRA = 10,
    GRV_CELL_VOXEL = 11,
    GRV_CELL_HEXAHEDRON = 12,
    GRV_CELL_WEDGE = 13,
    GRV_CELL_PYRAMID = 14,
    GRV_CELL_POLYHEDRON = 42
} grv_cell_type;

/** A named array, row-major [n_tuples, n_components]. */
typedef struct grv_mesh_array {
    char *name; /**< UTF-8; owned */
    grv_store_type
        type; /**< an integer of 8 to 64 bits, GRV_STORE_F32 or GRV_STORE_F64; of strings GRV_STORE_U8 */
    bool
        is_text; /**< strings: data are n_tuples texts, each with a final NUL, one after the other; n_components is 1 */
    int n_components; /**< >= 1 */
    int64_t n_tuples; /**< points, cells, or any number of field data */
    int64_t n_bytes;  /**< of data */
    void *data;       /**< owned; in the machine's byte order */
} grv_mesh_array;

/** A list of arrays; names may repeat, as they do in files. */
typedef struct grv_mesh_arrays {
    int64_t n;             /**< arrays in use */
    grv_mesh_array *items; /**< [n]; owned */
} grv_mesh_arrays;

/** A mesh, all of its arrays in memory. Arrays that a kind does not have are NULL, their counts 0. */
typedef struct grv_mesh {
    grv_mesh_kind kind; /**< which of the following are in use */
    const char *
        format; /**< of the file that it was read from: "STL", "STL text", "OBJ", "VTK XML", "VTK legacy"; a constant. NULL if made otherwise */
    grv_mesh_array
        points; /**< [n_points, 3], GRV_STORE_F32 or GRV_STORE_F64 as in the file (integers become GRV_STORE_F64); NaN is kept */
    int64_t n_cells; /**< listed cells (SURFACE, CELLS) */
    int64_t *
        offsets; /**< [n_cells + 1]; cell i has the points connectivity[offsets[i]] to connectivity[offsets[i + 1] - 1]; owned */
    int64_t *connectivity; /**< [offsets[n_cells]], each in [0, n_points); owned */
    uint8_t *types;        /**< [n_cells], grv_cell_type; owned */
    int64_t *
        face_offsets; /**< [n_cells + 1], NULL without polyhedra; cell i has faces[face_offsets[i]] to faces[face_offsets[i + 1] - 1]; owned */
    int64_t *
        faces; /**< [face_offsets[n_cells]]; of a polyhedron: number of faces, then of each face number of points and points; owned */
    int64_t
        extent[6]; /**< first and last point index along x, y, z (IMAGE, RECTILINEAR, STRUCTURED) */
    grv_mesh_array coordinates[3]; /**< along x, y, z, as in the file (RECTILINEAR) */
    double origin[3];              /**< of the point with index 0, 0, 0 (IMAGE) */
    double spacing[3];             /**< between points (IMAGE) */
    double direction
        [9]; /**< row-major matrix from index axes to space (IMAGE); identity if the file says nothing */
    grv_mesh_arrays point_data; /**< arrays of a tuple per point */
    grv_mesh_arrays cell_data;  /**< arrays of a tuple per cell, listed or implied by the extent */
    grv_mesh_arrays field_data; /**< arrays of any length */
    bool has_time;              /**< the file had a time value (field data TimeValue or TIME) */
    double time;                /**< in the file's unit */
} grv_mesh;

/** A mesh without points, cells and arrays.
 * @param mesh  owned by the caller, released by grv_mesh_destroy; NULL on failure
 * @errors GRV_E_NOMEM */
GRV_API grv_status grv_mesh_create(grv_mesh_kind kind, grv_mesh **mesh) GRV_MUST_CHECK;
/** Releases a mesh and all its arrays; *mesh may be NULL. */
GRV_API void grv_mesh_destroy(grv_mesh **mesh);
/** Points of a mesh: the tuples of `points`, or those that the extent of an image implies. */
GRV_API int64_t grv_mesh_n_points(const grv_mesh *mesh);
/** Cells of a mesh: those listed, or those that the extent implies (a flat grid has one layer). */
GRV_API int64_t grv_mesh_n_cells(const grv_mesh *mesh);
/** First array of that name in a list, NULL if there is none. Borrowed until the list changes. */
GRV_API const grv_mesh_array *grv_mesh_find(const grv_mesh_arrays *list, const char *name);
/** Adds an array to a list.
 * @param list  of a mesh
 * @param data  [n_tuples, n_components], copied; NULL: zeros
 * @param added  the new array, borrowed until the list changes; may be NULL
 * @errors GRV_E_ARG for a type that meshes do not have, GRV_E_NOMEM */
GRV_API grv_status grv_mesh_add_array(grv_mesh_arrays *list, const char *name, grv_store_type type,
                                      int n_components, int64_t n_tuples, const void *data,
                                      grv_mesh_array **added) GRV_MUST_CHECK;
/** Adds an array of strings: n texts, each with a final NUL, one after the other in `texts`, copied; n_bytes in all. Errors as grv_mesh_add_array. */
GRV_API grv_status grv_mesh_add_texts(grv_mesh_arrays *list, const char *name, int64_t n,
                                      const char *texts, int64_t n_bytes) GRV_MUST_CHECK;
/** Sets the points.
 * @param type  GRV_STORE_F32 or GRV_STORE_F64
 * @param points  [n_points, 3], copied
 * @errors GRV_E_ARG, GRV_E_NOMEM */
GRV_API grv_status grv_mesh_set_points(grv_mesh *mesh, grv_store_type type, int64_t n_points,
                                       const void *points) GRV_MUST_CHECK;
/** Sets the cells of a SURFACE or CELLS mesh; polyhedra are put into the members by hand.
 * @param offsets  [n_cells + 1], from 0, ascending, copied
 * @param connectivity  [offsets[n_cells]], each in [0, points of the mesh), copied
 * @param types  [n_cells], copied
 * @errors GRV_E_ARG, GRV_E_NOMEM */
GRV_API grv_status grv_mesh_set_cells(grv_mesh *mesh, int64_t n_cells, const int64_t *offsets,
                                      const int64_t *connectivity,
                                      const uint8_t *types) GRV_MUST_CHECK;

/** Least and largest value of a component of an array; values that are not finite are left out. Integers beyond 2^53 are rounded.
 * @param component  0 <= component < n_components
 * @param min,max  NaN where no value is finite
 * @param n_not_finite  NaN and infinite values; may be NULL */
GRV_API void grv_mesh_array_range(const grv_mesh_array *array, int component, double *min,
                                  double *max, int64_t *n_not_finite);

/** Centres of the listed cells: the mean of a cell's points, summed in double and rounded once to the type of the points; NaN for a cell without points.
 * @param mesh  SURFACE or CELLS
 * @param centres  [n_cells, 3] of the type of the points, written
 * @errors GRV_E_ARG for an image or structured grid */
GRV_API grv_status grv_mesh_cell_centres(const grv_mesh *mesh, void *centres) GRV_MUST_CHECK;

/** The outer surface of a mesh of cells: the faces of tetrahedra, voxels, hexahedra, wedges, pyramids and polyhedra that no other cell has, as polygons that look
 * outward, in the order of their cells. Two faces are one if they have the same points, by number: where pieces of a file have points of their own, or
 * cells of different size meet, faces between them count as outside. Points that are not used go; point data follow the points, cell data the
 * cell that a face is of, field data and time are copied. About 24 bytes a face while it lasts.
 * @param mesh  CELLS, unchanged
 * @param surface  SURFACE, owned by the caller; NULL on failure
 * @param n_left_out  cells without such faces: points, lines, polygons, curved cells; may be NULL
 * @errors GRV_E_ARG for another kind of mesh, GRV_E_NOMEM */
GRV_API grv_status grv_mesh_extract_surface(const grv_mesh *mesh, grv_mesh **surface,
                                            int64_t *n_left_out) GRV_MUST_CHECK;

/** Scales and moves a mesh: x' = x * scale + translate on each axis, in double, rounded once to the type of the points. Data stay as they are (vectors are not turned).
 * @param scale  [3] finite, > 0; the same on all axes for an image whose axes are turned
 * @param translate  [3] finite
 * @errors GRV_E_ARG; the mesh is unchanged then */
GRV_API grv_status grv_mesh_transform(grv_mesh *mesh, const double scale[3],
                                      const double translate[3]) GRV_MUST_CHECK;

/** Writes a mesh into a store (Zarr), as a group of arrays: `points` [n, 3]; `offsets`, `connectivity`, `types` (and `face_offsets`, `faces` of polyhedra) as in
 * grv_mesh, or, of a surface of nothing but triangles, `triangles` [n, 3]; coordinates `x`, `y`, `z` of a rectilinear grid; groups `point_data`, `cell_data`
 * and `field_data` with the named arrays, [n] or [n, components], of grids [nz, ny, nx] or [nz, ny, nx, components]. Characters that names in stores cannot have become
 * '_', names that repeat get a number. The attribute `grove_mesh` has kind, extent, origin, spacing, direction, time and the texts.
 * @param store  writable
 * @param path  of the group, where nothing may be
 * @errors GRV_E_EXISTS, GRV_E_IO, GRV_E_NOMEM */
GRV_API grv_status grv_mesh_store(const grv_mesh *mesh, grv_store *store,
                                  const char *path) GRV_MUST_CHECK;

/** How a file is read. */
typedef struct grv_mesh_read_params {
    int n_threads; /**< that decode blocks of VTK's XML files. Default 1 */
} grv_mesh_read_params;

/** The defaults. */
GRV_API grv_mesh_read_params grv_mesh_read_params_default(void);

/** Reads a mesh; the format is told by the content, then by the name (.stl, .obj, .vtp, .vtu, .vti, .vtr, .vts, .vtk; each also with .gz).
 * Of STL, each facet has three points of its own (grv_triangles_weld joins them), cell data "attribute" (binary files that use it) and, of
 * files with several or named solids, "part" (int32), which numbers the field data "part_names"; OBJ has the same for groups, and parts by material in
 * "material", "material_names". Normals in STL files are ignored. Pieces of a file are joined, ghost cells are kept (array vtkGhostType).
 * The file is mapped: it must not be cut short while it is read. Besides the arrays of the mesh it takes a few blocks of memory per thread;
 * files ending in .gz are unpacked into memory as a whole.
 * @param params  NULL: the defaults
 * @param mesh  owned by the caller; NULL on failure
 * @errors GRV_E_NOT_FOUND, GRV_E_IO, GRV_E_FORMAT for what is malformed, GRV_E_UNSUPPORTED for what is refused, GRV_E_NOMEM */
GRV_API grv_status grv_mesh_read(const char *path, const grv_mesh_read_params *params,
                                 grv_mesh **mesh) GRV_MUST_CHECK;

/** A member of a collection file. */
typedef struct grv_mesh_member {
    char *path;    /**< joined to the collection's folder; owned */
    char *name;    /**< of the block or part, "" if it has none; owned */
    bool has_time; /**< a time step was given */
    double time;   /**< of the time step */
} grv_mesh_member;

/** Reads which files a collection names: .pvd, .vtm, .pvtu, .pvtp, .pvti, .pvtr, .pvts (nested .vtm files are members like others). The files are not opened.
 * @param members  [n], owned by the caller, released by grv_mesh_members_free; NULL on failure
 * @errors as grv_mesh_read */
GRV_API grv_status grv_mesh_collection_read(const char *path, grv_mesh_member **members,
                                            int64_t *n) GRV_MUST_CHECK;
/** Releases what grv_mesh_collection_read gave; members may be NULL. */
GRV_API void grv_mesh_members_free(grv_mesh_member *members, int64_t n);

/** How a file is written. */
typedef struct grv_mesh_write_params {
    enum grv_mesh_encoding {
        GRV_MESH_BINARY, /**< STL: binary; VTK: appended raw */
        GRV_MESH_BASE64, /**< VTK: appended base64; not for STL */
        GRV_MESH_ASCII   /**< STL: text; not for VTK, which cannot hold all values in it */
    } encoding;          /**< default GRV_MESH_BINARY */
    int zlib_level;      /**< VTK: 0 (default): not compressed; 1 to 9: blocks of zlib */
    int n_threads;       /**< that compress. Default 1 */
} grv_mesh_write_params;

/** The defaults. */
GRV_API grv_mesh_write_params grv_mesh_write_params_default(void);

/** Writes a mesh, format by the ending of the name: .stl (SURFACE: triangulated, float; parts become solids of a text file), .vtp (SURFACE), .vtu
 * (SURFACE or CELLS), .vti (IMAGE). VTK files have 64-bit headers. The file is written aside and renamed.
 * @param params  NULL: the defaults
 * @errors GRV_E_ARG for a kind or encoding that the format does not take, GRV_E_SHAPE for arrays that do not fit the mesh, GRV_E_IO, GRV_E_NOMEM */
GRV_API grv_status grv_mesh_write(const grv_mesh *mesh, const char *path,
                                  const grv_mesh_write_params *params) GRV_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
