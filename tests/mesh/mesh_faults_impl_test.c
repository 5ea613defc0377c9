/* Out of memory at every allocation of every reader, writer and repair: an error, nothing leaked, results and surfaces unharmed. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "mesh_support.h"
#include "vtk_maker.h"

/* Runs an operation until it no longer meets the failing allocation; between, it must fail for want of memory. */
typedef grv_status operation(void *argument);

static void check_faults(operation *run, void *argument)
{
    const int64_t bytes_before = grv_memory_get().bytes;
    for (int64_t n = 0; n < 10000; n++) {
        grvi_alloc_fail_after(n);
        const grv_status status = run(argument);
        const bool met = status != GRV_OK;
        grvi_alloc_fail_after(-1);
        assert_int_equal(grv_memory_get().bytes, bytes_before);
        if (!met) return;
        if (status != GRV_E_NOMEM)
            fail_msg("allocation %lld: status %d, %s", (long long)n, (int)status,
                     grv_error_message());
    }
    fail_msg("more than 10000 allocations");
}

static grv_status read_file_once(void *path)
{
    grv_mesh *mesh = NULL;
    const grv_mesh_read_params params = {.n_threads = 2};
    const grv_status status = grv_mesh_read(path, &params, &mesh);
    assert_true((status == GRV_OK) == (mesh != NULL));
    grv_mesh_destroy(&mesh);
    return status;
}

static void check_text(const char *name, const char *text)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s", in_folder(name));
    write_file(path, text, strlen(text));
    check_faults(read_file_once, path);
}

static void test_readers(void **state)
{
    (void)state;
    check_text("a.stl", "solid a b\nfacet\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 "
                        "0\nendfacet\nendsolid\nsolid c\nendsolid\n");
    check_text(
        "a.obj",
        "g x\nv 0 0 0 1 1 1\nv 1 0 0 1 1 1\nv 0 1 0 1 1 1\nusemtl m\nf 1 2 3\ng y\nf 1 2 \\\n3\n");
    check_text(
        "a.vtk",
        "# vtk DataFile Version 3.0\nt\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 4 int\n0 0 0 1 0 "
        "0 0 1 0 0 0 1\nCELLS 1 18\n17 4 3 0 1 2 3 0 1 3 3 0 2 3 3 1 2 3\nCELL_TYPES 1\n42\n"
        "POINT_DATA 4\nSCALARS s int\nLOOKUP_TABLE d\n1 2 3 4\nCELL_DATA 1\nCOLOR_SCALARS c 3\n1 0 "
        "1\nFIELD f 1\nn 1 1 double\n2\n");
    check_text("b.vtk", "# vtk DataFile Version 5.1\nt\nASCII\nDATASET POLYDATA\nFIELD f 1\nnames "
                        "1 2 string\nab\nc%20d\nPOINTS 3 float\n0 0 0 1 0 0 0 1 0\nPOLYGONS 2 "
                        "3\nOFFSETS vtktypeint64\n0 3\n"
                        "CONNECTIVITY vtktypeint64\n0 1 2\nVERTICES 2 1\nOFFSETS vtktypeint64\n0 "
                        "1\nCONNECTIVITY vtktypeint64\n2\n");
    for (int compressor = VTK_NONE; compressor < N_VTK_COMPRESSORS; compressor++) {
        char path[1024];
        vtk_maker m = {.layout = compressor == VTK_NONE ? VTK_WRAPPED : VTK_APPENDED_BASE64,
                       .compressor = compressor,
                       .word_bytes = 8,
                       .block_bytes = 100};
        vtk_begin(&m);
        vtk_put_piece(&m, 20, 1);
        vtk_put_piece(&m, 5, 1);
        vtk_end(&m);
        (void)snprintf(path, sizeof path, "%s", in_folder("made.vtu"));
        write_file(path, m.text, m.n_text);
        vtk_free(&m);
        check_faults(read_file_once, path);
    }
}

static grv_status read_collection(void *path)
{
    grv_mesh_member *members = NULL;
    int64_t n = 0;
    const grv_status status = grv_mesh_collection_read(path, &members, &n);
    grv_mesh_members_free(members, n);
    return status;
}

static void test_collection(void **state)
{
    static const char text[] =
        "<VTKFile type=\"Collection\"><Collection><DataSet timestep=\"1\" file=\"a.vtu\"/><DataSet "
        "file=\"b.vtu\" name=\"n\"/></Collection></VTKFile>";
    (void)state;
    char path[1024];
    (void)snprintf(path, sizeof path, "%s", in_folder("c.pvd"));
    write_file(path, text, sizeof text - 1);
    check_faults(read_collection, path);
}

/* A mesh and where it goes. */
typedef struct writing {
    const grv_mesh *mesh;
    const char *path;
    grv_mesh_write_params params;
} writing;

static grv_status write_once(void *argument)
{
    const writing *const w = argument;
    return grv_mesh_write(w->mesh, w->path, &w->params);
}

static grv_status extract_once(void *mesh)
{
    grv_mesh *surface = NULL;
    const grv_status status = grv_mesh_extract_surface(mesh, &surface, NULL);
    assert_true((status == GRV_OK) == (surface != NULL));
    grv_mesh_destroy(&surface);
    return status;
}

static void test_writers(void **state)
{
    char path[1024];
    (void)state;
    grv_mesh *grid = make_grid();
    (void)snprintf(path, sizeof path, "%s", in_folder("w.vtu"));
    writing w = {grid, path, {.encoding = GRV_MESH_BASE64, .zlib_level = 1, .n_threads = 2}};
    check_faults(write_once, &w);
    check_faults(extract_once, grid);
    /* reading back what was just written, polyhedra and strings included */
    check_faults(read_file_once, path);
    grv_mesh_destroy(&grid);
    grv_mesh *surface = NULL;
    assert_ok(grv_mesh_read(in_folder("a.stl"), NULL, &surface));
    (void)snprintf(path, sizeof path, "%s", in_folder("w.stl"));
    w = (writing){surface, path, {.encoding = GRV_MESH_ASCII, .n_threads = 1}};
    check_faults(write_once, &w);
    (void)snprintf(path, sizeof path, "%s", in_folder("w.vtp"));
    w.params.encoding = GRV_MESH_BINARY;
    check_faults(write_once, &w);
    grv_mesh_destroy(&surface);
}

static grv_status repair(void *argument)
{
    static const float points[][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0},
                                      {1, 0, 0}, {0, 1, 0}, {1, 1, 0}};
    static const int32_t ids[] = {0, 1, 2, 3, 4, 5};
    grv_triangles *t = NULL;
    grv_mesh *mesh = NULL, *carried = NULL;
    grv_triangles_measure m;
    (void)argument;
    grv_status status = grv_triangles_create(GRV_STORE_F32, 6, points, 2, ids, &t);
    if (status == GRV_OK) {
        status = grv_triangles_weld(t, 0.1, NULL);
        if (status != GRV_OK) assert_memory_equal(t->triangles, ids, sizeof ids); /* unchanged */
    }
    if (status == GRV_OK) status = grv_triangles_clean(t, NULL);
    if (status == GRV_OK) status = grv_triangles_orient(t, true, NULL);
    if (status == GRV_OK) status = grv_triangles_measure_get(t, &m);
    if (status == GRV_OK) status = grv_triangles_to_mesh(t, &mesh);
    grv_triangles_destroy(&t);
    if (status == GRV_OK) status = grv_triangles_from_mesh(mesh, &t);
    if (status == GRV_OK)
        status =
            grv_mesh_add_array(&mesh->cell_data, "c", GRV_STORE_I8, 1, t->n_triangles, NULL, NULL);
    if (status == GRV_OK) status = grv_mesh_add_texts(&mesh->field_data, "t", 1, "x", 2);
    if (status == GRV_OK) status = grv_triangles_to_mesh(t, &carried);
    if (status == GRV_OK) status = grv_triangles_carry_data(t, mesh, carried);
    grv_mesh_destroy(&carried);
    grv_triangles_destroy(&t);
    grv_mesh_destroy(&mesh);
    return status;
}

static grv_status store_once(void *mesh)
{
    grv_store_params params = grv_store_params_default();
    grv_store *store = NULL;
    params.writable = true;
    grv_status status = grv_store_open(in_folder("stored"), &params, &store);
    if (status == GRV_OK) status = grv_mesh_store(mesh, store, "m");
    grv_store_close(&store);
    grvi_alloc_fail_after(-1);
    assert_ok(grvi_fs_remove_tree(in_folder("stored")));
    return status;
}

static void test_store(void **state)
{
    static const float points[9] = {0, 0, 0, 1, 0, 0, 0, 1, 0};
    static const int32_t ids[3] = {0, 1, 2};
    (void)state;
    grv_triangles *t = NULL;
    grv_mesh *mesh = NULL;
    assert_ok(grv_triangles_create(GRV_STORE_F32, 3, points, 1, ids, &t));
    assert_ok(grv_triangles_to_mesh(t, &mesh));
    assert_ok(grv_mesh_add_array(&mesh->cell_data, "c", GRV_STORE_I8, 2, 1, NULL, NULL));
    assert_ok(grv_mesh_add_texts(&mesh->field_data, "t", 1, "x", 2));
    check_faults(store_once, mesh);
    grv_mesh_destroy(&mesh);
    grv_triangles_destroy(&t);
}

static void test_repair(void **state)
{
    (void)state;
    check_faults(repair, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_readers),
                                       cmocka_unit_test(test_collection),
                                       cmocka_unit_test(test_writers), cmocka_unit_test(test_store),
                                       cmocka_unit_test(test_repair)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
