/* Files that lie: refused with one line that says what was expected, what was found and where, and before memory is taken for what they claim. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mesh_support.h"
#include "vtk_maker.h"

enum { MOST_BYTES = 4 << 20 }; /* that any of these small files may take */

static void refuse(const char *name, const char *text, size_t n, grv_status expected,
                   const char *message)
{
    grv_mesh *mesh = NULL;
    write_file(in_folder(name), text, n);
    const int64_t held = grv_memory_get().bytes, peak_before = grv_memory_get().peak_bytes;
    const grv_status status = grv_mesh_read(in_folder(name), NULL, &mesh);
    if (status != expected || strstr(grv_error_message(), message) == NULL ||
        strstr(grv_error_message(), name) == NULL)
        fail_msg("%.300s\n: status %d, \"%s\"; expected %d with \"%s\" and the file's name", text,
                 (int)status, grv_error_message(), (int)expected, message);
    assert_null(mesh);
    assert_int_equal(grv_memory_get().bytes, held);
    assert_true(grv_memory_get().peak_bytes <=
                (peak_before > held + MOST_BYTES ? peak_before : held + MOST_BYTES));
}

static void refuse_text(const char *name, const char *text, const char *message)
{
    refuse(name, text, strlen(text), GRV_E_FORMAT, message);
}

static void test_stl(void **state)
{
    char binary[134] = {0};
    (void)state;
    memcpy(binary + 80, "\2\0\0\0", 4);
    refuse("a.stl", binary, sizeof binary, GRV_E_FORMAT,
           "STL of 2 facets: 184 bytes expected, 134 found");
    memcpy(binary + 80, "\xff\xff\xff\xff", 4);
    refuse("a.stl", binary, sizeof binary, GRV_E_FORMAT, "STL of 4294967295 facets");
    refuse("a.stl", binary, 83, GRV_E_FORMAT, "83 bytes found");
    refuse("a.stl", "", 0, GRV_E_FORMAT, "0 bytes found");
    refuse_text("a.stl", "solid\nfacet\nvertex 0 0 0\nvertex 1 1 x\n",
                "three numbers expected, 'x");
    refuse_text("a.stl", "solid\nfacet\nvertex 0 0 0\nendfacet\n",
                "a facet that ends at byte 25 has 1 vertices");
    refuse_text("a.stl", "solid\nvertex 0 0 0\n", "a vertex outside a facet at byte 6");
    refuse_text("a.stl", "solid\nfacet\nvertex 0 0 0\nvertex 0 0 0\nvertex 0 0 0\nvertex 0 0 0\n",
                "too many of a facet");
    refuse_text("a.stl", "solid\nfacet\nfacet\n", "begins inside another at byte 12");
    refuse_text("a.stl", "solid\nfacet\nvertex 0 0 0\n", "ends inside a facet");
    refuse_text("a.stl", "solid a\nbanana\n", "'banana' found at byte 8");
}

static void test_obj(void **state)
{
    (void)state;
    refuse_text("a.obj", "v 0 0 0\nf 1 2 3\n", "face 1 has vertex 2, there are 1");
    refuse_text("a.obj", "v 0 0 0\nf 1 0 1\n", "vertex 0 at byte 12");
    refuse_text("a.obj", "v 0 0 0\nf 1 1 -2\n", "vertex -2 at byte 14, where 1 vertices precede");
    refuse_text("a.obj", "v 0 0\n", "a vertex of 2 numbers");
    refuse_text("a.obj", "v 0 0 zero\n", "'zero' found at byte 6");
    refuse_text("a.obj", "f 1.5 2 3\n", "the number of a vertex expected, '1.5 2 3'");
    refuse_text("a.obj", "f 99999999999999999999 2 3\n", "the number of a vertex expected");
}

static void test_legacy(void **state)
{
    static const char head[] = "# vtk DataFile Version 3.0\nt\nASCII\nDATASET ";
    static const struct {
        const char *rest, *message;
    } cases[] = {
        {"POLYDATA\nPOINTS 99999999999 float\n0 0 0\n",
         "299999999997 values of POINTS announced before byte"},
        {"POLYDATA\nPOINTS -1 float\n", "a number of points expected"},
        {"POLYDATA\nPOINTS 1 flout\n", "type 'flout'"},
        {"POLYDATA\nPOINTS 1 float\n0 0 x\n", "value 2 of 3 of POINTS"},
        {"POLYDATA\nPOINTS 1 float\n0 0 0\nPOLYGONS 1 4\n3 0 1 2\n",
         "cell 0 has a point beyond the 1 there are"},
        {"POLYDATA\nPOINTS 1 float\n0 0 0\nPOLYGONS 1 4\n9 0 0 0\n",
         "9 points, where 3 of 4 values are left"},
        {"POLYDATA\nPOINTS 1 float\n0 0 0\nPOLYGONS 3 3\n2 0 0\n",
         "cell 0 of the 3 POLYGONS before byte 91: 2 points, where 0 of 3 values are left"},
        {"POLYDATA\nPOINTS 1 float\n0 0 0\nPOLYGONS 1 5\n3 0 0 0 0\n", "take 4 of 5 values"},
        {"UNSTRUCTURED_GRID\nPOINTS 1 float\n0 0 0\nCELLS 1 2\n1 0\n", "CELLS without CELL_TYPES"},
        {"UNSTRUCTURED_GRID\nPOINTS 1 float\n0 0 0\nCELLS 1 2\n1 0\nCELL_TYPES 2\n1 1\n",
         "2 CELL_TYPES before byte"},
        {"UNSTRUCTURED_GRID\nPOINTS 1 float\n0 0 0\nCELLS 1 4\n3 2 1 0\nCELL_TYPES 1\n42\n",
         "broken faces"},
        {"STRUCTURED_POINTS\nDIMENSIONS 99999999 99999999 99999999\n", "DIMENSIONS before byte"},
        {"STRUCTURED_POINTS\nDIMENSIONS 2 2 2\nPOINT_DATA 7\nSCALARS s char\nLOOKUP_TABLE d\n1 2 3 "
         "4 5 6 7\n",
         "8 tuples expected, 7 found"},
        {"STRUCTURED_POINTS\nDIMENSIONS 1 1 1\nSCALARS s char\n", "before POINT_DATA or CELL_DATA"},
        {"STRUCTURED_POINTS\nDIMENSIONS 1 1 1\nPOINT_DATA 1\nSCALARS s char\nLOOKUP_TABLE d\n300\n",
         "'300"},
        {"STRUCTURED_GRID\nDIMENSIONS 2 2 2\nPOINTS 1 float\n0 0 0\n",
         "DIMENSIONS say 8 points, 1 found"},
        {"RECTILINEAR_GRID\nDIMENSIONS 2 1 1\nX_COORDINATES 3 float\n0 1 2\n", "DIMENSIONS say 2"},
        {"RECTILINEAR_GRID\nDIMENSIONS 1 1 1\n", "coordinates of three axes expected"},
        {"POLYDATA\nBANANAS 3\n", "a keyword expected at byte"},
        {"POLYDATA\nDATASET POLYDATA\n", "a second DATASET"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        const char *const message = cases[i].message;
        (void)snprintf(text, sizeof text, "%s%s", head, cases[i].rest);
        refuse("a.vtk", text, strlen(text),
               strstr(message, "flout") != NULL ? GRV_E_UNSUPPORTED : GRV_E_FORMAT, message);
    }
    refuse_text("a.vtk", "# vtk DataFile Version 3.0\nt\nEBCDIC\n",
                "ASCII or BINARY expected at byte 29");
    refuse("a.vtk", "# vtk DataFile Version 3.0\nt\nASCII\nDATASET BANANA\n",
           sizeof "# vtk DataFile Version 3.0\nt\nASCII\nDATASET BANANA\n" - 1, GRV_E_UNSUPPORTED,
           "DATASET 'BANANA' at byte");
    static const char binary[] = "# vtk DataFile Version 5.1\nt\nBINARY\nDATASET POLYDATA\nPOINTS "
                                 "1 float\n0123456789ab\nPOLYGONS 2 1\nOFFSETS "
                                 "vtktypeint64\n\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\nCONNECTIVITY "
                                 "vtktypeint64\n\0\0\0\0\0\0\0\0\n";
    refuse("a.vtk", binary, sizeof binary - 1, GRV_E_FORMAT, "must ascend from 0 to 1");
}

static const char xml_head[] =
    "<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid><Piece NumberOfPoints=\"1\" "
    "NumberOfCells=\"1\"><Points><DataArray type=\"Float32\" Name=\"P\" NumberOfComponents=\"3\">0 "
    "0 0</DataArray></Points>";

static void test_xml(void **state)
{
    static const struct {
        const char *rest, *message;
    } cases[] = {
        {"<Cells>", "ends inside <Cells>"},
        {"<Cells></Piece>", "'</Piece>' at byte"},
        {"<Cells", "the tag at byte 187 has no end"},
        {"<!-- ", "what begins at byte 187 has no end"},
        {"<Cells></Cells></Piece></UnstructuredGrid></VTKFile>", "no array 'offsets'"},
        {"<Cells><DataArray type=\"Int64\" Name=\"offsets\">1</DataArray><DataArray type=\"Int64\" "
         "Name=\"connectivity\">0</DataArray></Cells></Piece></UnstructuredGrid></VTKFile>",
         "no array 'types'"},
        {"<Cells><DataArray type=\"Int64\" Name=\"offsets\">1</DataArray><DataArray type=\"Int64\" "
         "Name=\"connectivity\">1</DataArray><DataArray type=\"UInt8\" "
         "Name=\"types\">1</DataArray></Cells></Piece></UnstructuredGrid></VTKFile>",
         "array 'connectivity' at byte"},
        {"<Cells><DataArray type=\"Int64\" Name=\"offsets\">-1</DataArray><DataArray "
         "type=\"Int64\" Name=\"connectivity\">0</DataArray><DataArray type=\"UInt8\" "
         "Name=\"types\">1</DataArray></Cells></Piece></UnstructuredGrid></VTKFile>",
         "value 0 is -1, offsets must ascend"},
        {"<Cells><DataArray type=\"Int64\" Name=\"offsets\">1</DataArray><DataArray "
         "type=\"Float32\" Name=\"connectivity\">0</DataArray><DataArray type=\"UInt8\" "
         "Name=\"types\">1</DataArray></Cells></Piece></UnstructuredGrid></VTKFile>",
         "integers expected, float32 found"},
        {"<Cells><DataArray type=\"Int64\" Name=\"offsets\">1</DataArray><DataArray type=\"Int64\" "
         "Name=\"connectivity\">0</DataArray><DataArray type=\"UInt8\" "
         "Name=\"types\">42</DataArray></Cells></Piece></UnstructuredGrid></VTKFile>",
         "no array 'faces'"},
        {"<PointData><DataArray type=\"Float32\" Name=\"p\" "
         "format=\"binary\">AAAA</DataArray></PointData></Piece></UnstructuredGrid></VTKFile>",
         "no array 'offsets'"},
        {"<PointData><DataArray type=\"Float32\" Name=\"p\" "
         "format=\"appended\"/></PointData></Piece></UnstructuredGrid></VTKFile>",
         "no offset of its appended data"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[2048];
        (void)snprintf(text, sizeof text, "%s%s", xml_head, cases[i].rest);
        refuse_text("a.vtu", text, cases[i].message);
    }
    refuse("a.vtu", "<VTKFile type=\"UnstructuredGrid\" compressor=\"zip\">",
           sizeof "<VTKFile type=\"UnstructuredGrid\" compressor=\"zip\">" - 1, GRV_E_UNSUPPORTED,
           "compressor 'zip'");
    refuse_text("a.vtu", "<VTKFile header_type=\"UInt16\">",
                "header_type UInt32 or UInt64 expected, 'UInt16' found");
    refuse_text("a.vtu",
                "<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid><Piece "
                "NumberOfPoints=\"1e9\"/></UnstructuredGrid></VTKFile>",
                "NumberOfPoints");
    refuse_text("a.vtu",
                "<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid><Piece "
                "NumberOfPoints=\"999999999999\" NumberOfCells=\"0\"><Points><DataArray "
                "type=\"Float32\" NumberOfComponents=\"3\">0</DataArray></Points>"
                "</Piece></UnstructuredGrid></VTKFile>",
                "2999999999997 values expected in 1 characters");
    refuse("a.vtu", "<VTKFile type=\"Collection\"></VTKFile>",
           sizeof "<VTKFile type=\"Collection\"></VTKFile>" - 1, GRV_E_UNSUPPORTED,
           "grv_mesh_collection_read");
    refuse("a.dat", "PK\3\4", 4, GRV_E_UNSUPPORTED, "zip archive");
    refuse("a.dat", "hello", 5, GRV_E_UNSUPPORTED, "a mesh expected");
    refuse("a.stl.gz", "\x1f\x8b\x08\0\0\0\0\0", 8, GRV_E_FORMAT,
           "broken gzip member at byte 0 of 8");
}

/* Headers of compressed arrays: every word of one made large, small, or negative. */
static void test_headers(void **state)
{
    static const uint64_t values[] = {
        0, 1, 3, 1U << 31, UINT64_MAX, (uint64_t)1 << 62, (uint64_t)1 << 40};
    (void)state;
    for (int compressor = VTK_NONE; compressor < N_VTK_COMPRESSORS; compressor++) {
        vtk_maker m = {.layout = VTK_APPENDED_RAW,
                       .compressor = compressor,
                       .word_bytes = 8,
                       .block_bytes = 64};
        vtk_begin(&m);
        vtk_put_piece(&m, 16, 0);
        vtk_end(&m);
        char *const data =
            strstr(m.text, "AppendedData") +
            32; /* about where the first array begins: every place around it is tried */
        for (long at = -8; at < 80; at++)
            for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
                grv_mesh *mesh = NULL;
                char kept[8];
                if (data + at + 8 > m.text + m.n_text) continue;
                memcpy(kept, data + at, 8);
                memcpy(data + at, &values[i], 8);
                write_file(in_folder("h.vtu"), m.text, m.n_text);
                const int64_t held = grv_memory_get().bytes;
                const grv_status status = grv_mesh_read(in_folder("h.vtu"), NULL, &mesh);
                assert_true(status == GRV_OK || status == GRV_E_FORMAT ||
                            status == GRV_E_UNSUPPORTED);
                assert_true(grv_memory_get().bytes - held < MOST_BYTES);
                grv_mesh_destroy(&mesh);
                assert_int_equal(grv_memory_get().bytes, held);
                memcpy(data + at, kept, 8);
            }
        vtk_free(&m);
    }
}

/* Cut anywhere, a file is refused or, where its last bytes say nothing, read. */
static void test_cut(void **state)
{
    (void)state;
    for (int layout = 0; layout < N_VTK_LAYOUTS; layout++) {
        vtk_maker m = {.layout = layout,
                       .compressor = layout == VTK_ASCII ? VTK_NONE : VTK_ZLIB,
                       .word_bytes = 4,
                       .block_bytes = 200};
        vtk_begin(&m);
        vtk_put_piece(&m, 12, 1);
        vtk_end(&m);
        for (size_t n = 0; n < m.n_text; n += 7) {
            grv_mesh *mesh = NULL;
            write_file(in_folder("cut.vtu"), m.text, n);
            const grv_status status = grv_mesh_read(in_folder("cut.vtu"), NULL, &mesh);
            if (status == GRV_OK && n < m.n_text - 30)
                fail_msg("layout %d cut after %zu of %zu bytes is read", layout, n, m.n_text);
            grv_mesh_destroy(&mesh);
        }
        vtk_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stl),     cmocka_unit_test(test_obj),
                                       cmocka_unit_test(test_legacy),  cmocka_unit_test(test_xml),
                                       cmocka_unit_test(test_headers), cmocka_unit_test(test_cut)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
