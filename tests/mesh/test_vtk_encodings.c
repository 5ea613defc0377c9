/* The same grid in every encoding of VTK's XML files reads to the same bits: layouts, compressors, sizes of header words, byte orders, one piece or several. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mesh_support.h"
#include "vtk_maker.h"

enum { N_POINTS = 601 };

static void check_mesh(const grv_mesh *mesh, const int32_t *sizes, int n_pieces, const char *what)
{
    const grv_mesh_array *const u = grv_mesh_find(&mesh->point_data, "u"), *const id =
                                                                               grv_mesh_find(
                                                                                   &mesh->cell_data,
                                                                                   "id");
    int64_t point = 0, cell = 0;
    assert_int_equal(mesh->kind, GRV_MESH_CELLS);
    assert_non_null(u);
    assert_non_null(id);
    assert_int_equal(mesh->points.type, GRV_STORE_F32);
    for (int piece = 0; piece < n_pieces; piece++) {
        for (int64_t i = 0; i < 3 * sizes[piece]; i++) {
            if (value_of(&mesh->points, 3 * point + i) !=
                (double)((float)((size_t)i * 7919 % 1009) / 16))
                fail_msg("%s: point value %lld", what, (long long)i);
            if (value_of(u, 3 * point + i) != (double)i / 3 + (i % 5 == 0 ? 1e-7 : 0))
                fail_msg("%s: u value %lld", what, (long long)i);
        }
        for (int64_t i = 0; i < sizes[piece] - 3; i++) {
            assert_int_equal(mesh->offsets[cell + i], 4 * (cell + i));
            assert_int_equal(mesh->types[cell + i], GRV_CELL_TETRA);
            assert_int_equal(integer_of(id, cell + i), 4 * (i + 1));
            for (int64_t k = 0; k < 4; k++)
                if (mesh->connectivity[4 * (cell + i) + k] != point + i + k)
                    fail_msg("%s: connectivity of cell %lld", what, (long long)i);
        }
        point += sizes[piece];
        cell += sizes[piece] - 3;
    }
    assert_int_equal(mesh->points.n_tuples, point);
    assert_int_equal(mesh->n_cells, cell);
}

static void check_encoding(vtk_maker *m, const int32_t *sizes, int n_pieces)
{
    char what[128];
    (void)snprintf(what, sizeof what,
                   "layout %d, compressor %d, words of %d, big endian %d, %d pieces", m->layout,
                   m->compressor, m->word_bytes, m->big_endian, n_pieces);
    vtk_begin(m);
    for (int i = 0; i < n_pieces; i++) vtk_put_piece(m, sizes[i], 1);
    vtk_end(m);
    write_file(in_folder("made.vtu"), m->text, m->n_text);
    vtk_free(m);
    for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
        const grv_mesh_read_params params = {.n_threads = n_threads};
        grv_mesh *mesh = NULL;
        if (grv_mesh_read(in_folder("made.vtu"), &params, &mesh) != GRV_OK)
            fail_msg("%s: %s", what, grv_error_message());
        check_mesh(mesh, sizes, n_pieces, what);
        grv_mesh_destroy(&mesh);
    }
}

static void test_encodings(void **state)
{
    static const int32_t one[] = {N_POINTS}, three[] = {7, N_POINTS, 4};
    (void)state;
    for (int layout = 0; layout < N_VTK_LAYOUTS; layout++)
        for (int compressor = 0; compressor < (layout == VTK_ASCII ? 1 : N_VTK_COMPRESSORS);
             compressor++)
            for (int variant = 0; variant < 8; variant++) {
                /* blocks of 1000 bytes cut values, and do not end where groups of base64 do */
                vtk_maker m = {.layout = layout,
                               .compressor = compressor,
                               .word_bytes = variant & 1 ? 8 : 4,
                               .big_endian = variant >> 1 & 1,
                               .block_bytes = variant & 4 ? 1000 : 4096};
                check_encoding(&m, one, 1);
                if (variant < 4) check_encoding(&m, three, 3);
            }
}

/* Blocks that fill the last one exactly, and arrays without values. */
static void test_edges(void **state)
{
    (void)state;
    for (int compressor = 0; compressor < N_VTK_COMPRESSORS; compressor++) {
        for (int layout = 0; layout < VTK_ASCII; layout++) {
            static const int32_t size[] = {64};
            vtk_maker m = {.layout = layout,
                           .compressor = compressor,
                           .word_bytes = 8,
                           .block_bytes = 64 * 12};
            check_encoding(&m, size, 1);
            vtk_begin(&m);
            vtk_text(&m, "<Piece NumberOfPoints=\"0\" NumberOfCells=\"0\"><Points>");
            vtk_put_array(&m, "Points", "Float64", 3, 8, "", 0);
            vtk_text(&m, "</Points><Cells>");
            vtk_put_array(&m, "connectivity", "Int64", 1, 8, "", 0);
            vtk_put_array(&m, "offsets", "Int64", 1, 8, "", 0);
            vtk_put_array(&m, "types", "UInt8", 1, 1, "", 0);
            vtk_text(&m, "</Cells></Piece>");
            vtk_end(&m);
            write_file(in_folder("empty.vtu"), m.text, m.n_text);
            vtk_free(&m);
            grv_mesh *mesh = NULL;
            assert_ok(grv_mesh_read(in_folder("empty.vtu"), NULL, &mesh));
            assert_int_equal(mesh->points.n_tuples + mesh->n_cells, 0);
            grv_mesh_destroy(&mesh);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_encodings),
                                       cmocka_unit_test(test_edges)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
