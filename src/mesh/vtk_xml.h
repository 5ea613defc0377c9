/* A VTK XML file, tags read and arrays not: what vtk_xml.c finds and vtk_xml_mesh.c makes a mesh of. Internal. */
#ifndef GRVI_MESH_VTK_XML_H
#define GRVI_MESH_VTK_XML_H

#include "mesh/vtk_payload.h"

/* The element that an array stands in. */
typedef enum grvi_vtk_section {
    GRVI_VTK_NOWHERE,
    GRVI_VTK_POINTS,
    GRVI_VTK_COORDINATES,
    GRVI_VTK_CELLS,
    GRVI_VTK_VERTS,
    GRVI_VTK_LINES,
    GRVI_VTK_POLYS,
    GRVI_VTK_STRIPS,
    GRVI_VTK_POINT_DATA,
    GRVI_VTK_CELL_DATA,
    GRVI_VTK_FIELD_DATA
} grvi_vtk_section;

/* A DataArray (or Array) element. */
typedef struct grvi_vtk_array {
    grvi_vtk_where where;
    grvi_vtk_section section;
    int64_t piece; /* -1: field data */
    grv_store_type type;
    bool is_text, is_ascii, is_appended;
    int n_components;
    int64_t n_tuples; /* as stated; -1: not stated */
    int64_t offset;   /* of appended data */
    grvi_span text;   /* inline data */
} grvi_vtk_array;

/* Counts of a Piece element; -1: not stated. */
typedef struct grvi_vtk_piece {
    int64_t n_points, n_cells;
    int64_t n_listed[4]; /* verts, lines, polys, strips */
    int64_t extent[6];
    int64_t first_array; /* its arrays are those up to the next piece's, field data aside */
} grvi_vtk_piece;

typedef struct grvi_vtk_document {
    const grvi_mesh_file *file;
    grvi_vtk_encoding encoding;
    grvi_span type; /* "PolyData", ... */
    int64_t extent[6];
    double origin[3], spacing[3], direction[9];
    int64_t n_pieces, n_arrays;
    grvi_vtk_piece *pieces; /* owned */
    grvi_vtk_array *arrays; /* owned; in the order of the file */
    int64_t appended_at;    /* byte behind the '_'; -1: no appended data */
    bool appended_base64;
} grvi_vtk_document;

grv_status grvi_vtk_document_read(const grvi_mesh_file *file,
                                  grvi_vtk_document *document) GRV_MUST_CHECK;
void grvi_vtk_document_fini(grvi_vtk_document *document);
/* Numbers of a piece's arrays. */
void grvi_vtk_arrays_of(const grvi_vtk_document *document, int64_t piece, int64_t *begin,
                        int64_t *end);
/* Array of a piece by section and name (NULL: any); NULL if there is none. */
const grvi_vtk_array *grvi_vtk_find(const grvi_vtk_document *document, grvi_vtk_section section,
                                    int64_t piece, const char *name);

/* Does the array hold n_values, or more, which are not looked at then? Nothing is decoded; of text in ASCII only what is impossible is refused. */
grv_status grvi_vtk_array_check(const grvi_vtk_document *document, const grvi_vtk_array *array,
                                int64_t n_values) GRV_MUST_CHECK;
/* How many values there are: by the header, or by counting words. */
grv_status grvi_vtk_array_count(const grvi_vtk_document *document, const grvi_vtk_array *array,
                                int64_t *n_values) GRV_MUST_CHECK;
/* Decodes n_values into out, in the array's type and the machine's byte order. */
grv_status grvi_vtk_array_decode(const grvi_vtk_document *document, const grvi_vtk_array *array,
                                 int n_threads, int64_t n_values, void *out) GRV_MUST_CHECK;
/* The same for an array of integers, into 64 bits. */
grv_status grvi_vtk_array_decode_i64(const grvi_vtk_document *document, const grvi_vtk_array *array,
                                     int n_threads, int64_t n_values, int64_t *out) GRV_MUST_CHECK;

#endif
