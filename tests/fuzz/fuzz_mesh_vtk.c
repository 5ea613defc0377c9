/* A file that might be one of VTK's: legacy, XML, or a collection. The first bytes tell the reader, as they do for users. */
#define _GNU_SOURCE /* memfd_create */
#include "../support/vtk_maker.h"
#include "mesh_fuzz.h"

/* Collections are opened by path. */
static void fuzz_collection(const uint8_t *data, size_t n)
{
    char path[64];
    grv_mesh_member *members = NULL;
    int64_t n_members = 0;
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n) abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (grv_mesh_collection_read(path, &members, &n_members) == GRV_OK)
        grv_mesh_members_free(members, n_members);
    grv_error_clear();
    (void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n > 0 && data[0] == '#') {
        fuzz_reader(grvi_vtk_legacy_read, data, n);
        return 0;
    }
    fuzz_reader(grvi_vtk_xml_read, data, n);
    fuzz_collection(data, n);
    return 0;
}

static int make_xml(const char *folder)
{
    int failed = 0;
    for (int i = 0; i < N_VTK_LAYOUTS; i++) {
        char name[64];
        vtk_maker m = {.layout = i,
                       .compressor = i == VTK_ASCII || i == VTK_APART ? VTK_NONE
                                                                      : (i + 1) % N_VTK_COMPRESSORS,
                       .word_bytes = i % 2 ? 8 : 4,
                       .big_endian = i % 3 == 1,
                       .block_bytes = 100};
        vtk_begin(&m);
        vtk_put_piece(&m, 6, 1);
        vtk_put_piece(&m, 4, 1);
        vtk_end(&m);
        (void)snprintf(name, sizeof name, "layout_%d.vtu", i);
        failed += write_corpus(folder, name, m.text, m.n_text);
        vtk_free(&m);
    }
    return failed;
}

/* A tetrahedron as a polyhedron in both layouts of faces; PolyData; a grid; a collection. */
static const char polyhedron[] =
    "<VTKFile type=\"UnstructuredGrid\" version=\"0.1\" "
    "byte_order=\"LittleEndian\"><UnstructuredGrid><FieldData><DataArray type=\"Float64\" "
    "Name=\"TimeValue\" NumberOfTuples=\"1\">2.5</DataArray>"
    "<Array type=\"String\" Name=\"s\" NumberOfTuples=\"1\" format=\"ascii\">65 -61 "
    "0</Array></FieldData>"
    "<Piece NumberOfPoints=\"4\" NumberOfCells=\"1\"><Points><DataArray type=\"Float32\" "
    "NumberOfComponents=\"3\" format=\"ascii\">0 0 0 1 0 0 0 1 0 0 0 1</DataArray></Points><Cells>"
    "<DataArray type=\"Int64\" Name=\"connectivity\" format=\"ascii\">0 1 2 "
    "3</DataArray><DataArray type=\"Int64\" Name=\"offsets\" format=\"ascii\">4</DataArray>"
    "<DataArray type=\"UInt8\" Name=\"types\" "
    "format=\"ascii\">42</DataArray>%s</Cells></Piece></UnstructuredGrid></VTKFile>\n";
static const char old_faces[] =
    "<DataArray type=\"Int64\" Name=\"faces\" format=\"ascii\">4 3 0 1 2 3 0 1 3 3 0 2 3 3 1 2 "
    "3</DataArray><DataArray type=\"Int64\" Name=\"faceoffsets\" format=\"ascii\">17</DataArray>";
static const char new_faces[] =
    "<DataArray type=\"Int64\" Name=\"face_connectivity\" format=\"ascii\">0 1 2 0 1 3 0 2 3 1 2 "
    "3</DataArray><DataArray type=\"Int64\" Name=\"face_offsets\" format=\"ascii\">3 6 9 "
    "12</DataArray>"
    "<DataArray type=\"Int64\" Name=\"polyhedron_to_faces\" format=\"ascii\">0 1 2 "
    "3</DataArray><DataArray type=\"Int64\" Name=\"polyhedron_offsets\" "
    "format=\"ascii\">4</DataArray>";
static const char surface[] =
    "<VTKFile type=\"PolyData\"><PolyData><Piece NumberOfPoints=\"3\" NumberOfVerts=\"1\" "
    "NumberOfPolys=\"1\"><PointData><DataArray type=\"Int8\" Name=\"a&amp;b\" format=\"ascii\">1 "
    "-2 3</DataArray></PointData>"
    "<Points><DataArray type=\"Float64\" NumberOfComponents=\"3\" format=\"ascii\">0 0 0 1 0 0 0 1 "
    "nan</DataArray></Points><Verts><DataArray type=\"Int32\" Name=\"connectivity\">2</DataArray>"
    "<DataArray type=\"Int32\" Name=\"offsets\">1</DataArray></Verts><Polys><DataArray "
    "type=\"Int32\" Name=\"connectivity\">0 1 2</DataArray><DataArray type=\"Int32\" "
    "Name=\"offsets\">3</DataArray></Polys></Piece></PolyData></VTKFile>";
static const char rectilinear[] =
    "<VTKFile type=\"RectilinearGrid\"><RectilinearGrid WholeExtent=\"0 1 0 2 0 0\"><Piece "
    "Extent=\"0 1 0 2 0 0\"><Coordinates><DataArray type=\"Float32\">0 1</DataArray><DataArray "
    "type=\"Float32\">0 1 2</DataArray>"
    "<DataArray type=\"Float32\">0</DataArray></Coordinates><CellData><DataArray type=\"UInt16\" "
    "Name=\"c\">1 2</DataArray></CellData></Piece></RectilinearGrid></VTKFile>";
static const char collection[] =
    "<VTKFile type=\"Collection\"><Collection><DataSet timestep=\"0.5\" part=\"0\" "
    "file=\"a/b.vtu\"/><DataSet timestep=\"1\" file='/c.vtp'/></Collection></VTKFile>";
static const char legacy_text[] =
    "# vtk DataFile Version 3.0\ntitle\nASCII\nDATASET UNSTRUCTURED_GRID\nFIELD FieldData 1\nTIME "
    "1 1 double\n0.25\nPOINTS 5 float\n0 0 0 1 0 0 0 1 0 0 0 1 1 1 1\nCELLS 2 23\n"
    "4 0 1 2 3\n17 4 3 0 1 2 3 0 1 3 3 0 2 3 3 1 2 3\nCELL_TYPES 2\n10 42\nPOINT_DATA 5\nSCALARS "
    "s%20t int 1\nLOOKUP_TABLE default\n1 2 3 4 5\nMETADATA\nINFORMATION 0\n\nVECTORS v float\n"
    "1 2 3 1 2 3 1 2 3 1 2 3 1 2 3\nCELL_DATA 2\nCOLOR_SCALARS c 3\n0 0.5 1 1 1 1\nFIELD "
    "attributes 1\np 2 2 double\n1 2 3 4\n";
static const char legacy_new[] =
    "# vtk DataFile Version 5.1\n\nASCII\nDATASET POLYDATA\nPOINTS 3 double\n0 0 0 1 0 0 0 1 "
    "0\nPOLYGONS 2 3\nOFFSETS vtktypeint64\n0 3\nCONNECTIVITY vtktypeint64\n0 1 2\nVERTICES 2 "
    "1\nOFFSETS vtktypeint64\n0 1\n"
    "CONNECTIVITY vtktypeint64\n2\nCELL_DATA 2\nSCALARS b bit 1\nLOOKUP_TABLE default\n1 0\n";
static const char legacy_grid[] =
    "# vtk DataFile Version 2.0\nx\nASCII\nDATASET RECTILINEAR_GRID\nDIMENSIONS 2 1 "
    "1\nX_COORDINATES 2 float\n0 1\nY_COORDINATES 1 float\n0\nZ_COORDINATES 1 float\n0\nPOINT_DATA "
    "2\nTENSORS t float\n1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9\n";

static int make_binary(const char *folder)
{
    static const char head[] =
        "# vtk DataFile Version 4.2\nb\nBINARY\nDATASET STRUCTURED_POINTS\nDIMENSIONS 2 2 "
        "1\nORIGIN 0 0 0\nASPECT_RATIO 1 1 1\nPOINT_DATA 4\nSCALARS u unsigned_char "
        "1\nLOOKUP_TABLE t\n\1\2\3\4\n"
        "FIELD f 2\nw 2 4 short\n0123456789abcdef\nnames 1 1 string\n\302A\303\n";
    return write_corpus(folder, "binary.vtk", head, sizeof head - 1);
}

int fuzz_make_corpus(const char *folder)
{
    char text[2048];
    int n = snprintf(text, sizeof text, polyhedron, old_faces),
        failed = make_xml(folder) + make_binary(folder);
    failed += write_corpus(folder, "old_faces.vtu", text, (size_t)n);
    n = snprintf(text, sizeof text, polyhedron, new_faces);
    failed += write_corpus(folder, "new_faces.vtu", text, (size_t)n);
    failed += write_corpus(folder, "surface.vtp", surface, sizeof surface - 1) +
              write_corpus(folder, "rectilinear.vtr", rectilinear, sizeof rectilinear - 1);
    failed += write_corpus(folder, "collection.pvd", collection, sizeof collection - 1) +
              write_corpus(folder, "old.vtk", legacy_text, sizeof legacy_text - 1);
    return failed + write_corpus(folder, "new.vtk", legacy_new, sizeof legacy_new - 1) +
           write_corpus(folder, "grid.vtk", legacy_grid, sizeof legacy_grid - 1);
}
