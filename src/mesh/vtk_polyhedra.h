/* Faces of polyhedra in VTK XML files. Internal. */
#ifndef GRVI_MESH_VTK_POLYHEDRA_H
#define GRVI_MESH_VTK_POLYHEDRA_H

#include "mesh/vtk_xml.h"

/* Fills face_offsets and faces of a mesh whose cells have been read; nothing if there are no polyhedra. Two layouts are read:
 *   faces, faceoffsets: per cell a stream (number of faces, points of each face and their ids) that ends at faceoffsets[cell]; -1: no polyhedron
 *   face_connectivity, face_offsets, polyhedron_to_faces, polyhedron_offsets (VTK 9.4 on): a list of faces, and a list of face numbers per cell */
grv_status grvi_vtk_read_polyhedra(const grvi_vtk_document *document, int n_threads,
                                   grv_mesh *mesh) GRV_MUST_CHECK;

#endif
