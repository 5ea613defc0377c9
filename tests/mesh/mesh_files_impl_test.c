/* Files written by others (shared/data/geometry, vtk, cfd beside the project): each reads to what VTK reads, or is refused for the stated reason.
 * The table is made by make_mesh_files_table.py, which describes the checksums. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/crc32c.h"
#include "mesh_support.h"

typedef struct mesh_file {
    const char *path;
    grv_mesh_kind kind;
    int64_t n_points, n_cells;
    uint32_t points, cells;
    int64_t data;        /* -1: not compared */
    const char *refused; /* part of the message, NULL if it must be read */
} mesh_file;

static const mesh_file table[] = {
#include "mesh_files_table.inc"
};

static const char *data_folder(void)
{
    static char path[1024];
    const char *const shared = getenv("GRVI_TEST_SHARED_DIR");
    (void)snprintf(path, sizeof path, "%s/data", shared != NULL ? shared : GRVI_TEST_SHARED_DIR);
    return path;
}

/* ---- checksums ---- */

/* Bytes that are collected for one checksum. */
typedef struct pile {
    uint8_t *bytes;
    size_t n, room;
} pile;

static void put(pile *p, const void *data, size_t n)
{
    if (p->n + n > p->room) {
        p->room = 2 * (p->n + n);
        p->bytes = realloc(p->bytes, p->room);
        assert_non_null(p->bytes);
    }
    if (n > 0) memcpy(p->bytes + p->n, data, n);
    p->n += n;
}

static uint32_t finish(pile *p)
{
    const uint32_t crc = grvi_crc32c(p->bytes, (int64_t)p->n);
    free(p->bytes);
    return crc;
}

static void put_values(pile *p, const grv_mesh_array *array)
{
    const int64_t n = array->n_tuples * array->n_components;
    for (int64_t i = 0; i < n; i++) {
        const double real = value_of(array, i) + 0.0; /* text loses the sign of zero */
        const int64_t integer = integer_of(array, i);
        const bool is_real = array->type == GRV_STORE_F32 || array->type == GRV_STORE_F64;
        put(p, is_real ? (const void *)&real : (const void *)&integer, 8);
    }
}

static uint32_t points_of(const grv_mesh *mesh, bool as_float)
{
    pile p = {0};
    if (mesh->kind == GRV_MESH_RECTILINEAR) {
        for (int i = 0; i < 3; i++) put_values(&p, &mesh->coordinates[i]);
    } else if (as_float) {
        for (int64_t i = 0; i < 3 * mesh->points.n_tuples; i++) {
            const float value = (float)value_of(&mesh->points, i);
            put(&p, &value, sizeof value);
        }
    } else {
        put_values(&p, &mesh->points);
    }
    return finish(&p);
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static uint32_t cells_of(const grv_mesh *mesh)
{
    pile p = {0};
    for (int64_t i = 0; i < mesh->n_cells; i++) {
        const int64_t head[2] = {mesh->types[i], mesh->offsets[i + 1] - mesh->offsets[i]};
        put(&p, head, sizeof head);
        int64_t *const ids = mesh->connectivity + mesh->offsets[i];
        if (head[0] == GRV_CELL_POLYHEDRON) qsort(ids, (size_t)head[1], sizeof *ids, compare_ids);
        put(&p, ids, (size_t)head[1] * sizeof *ids);
        if (mesh->face_offsets == NULL) continue;
        put(&p, mesh->faces + mesh->face_offsets[i],
            (size_t)(mesh->face_offsets[i + 1] - mesh->face_offsets[i]) * sizeof *ids);
    }
    return finish(&p);
}

static uint32_t data_of(const grv_mesh_arrays *list, uint32_t flip)
{
    uint32_t sum = 0;
    for (int64_t i = 0; i < list->n; i++) {
        pile p = {0};
        put(&p, list->items[i].name, strlen(list->items[i].name));
        put_values(&p, &list->items[i]);
        sum += finish(&p) ^ flip;
    }
    return sum;
}

/* ---- tests ---- */

static bool is_stl(const char *path)
{
    return strstr(path, ".stl") != NULL || strstr(path, ".STL") != NULL;
}

/* NULL, or what is wrong. */
static const char *check_mesh(const mesh_file *expected, const grv_mesh *mesh)
{
    const uint32_t data = data_of(&mesh->point_data, 0) + data_of(&mesh->cell_data, UINT32_MAX);
    if (mesh->kind != expected->kind) return "another kind of mesh";
    if (grv_mesh_n_points(mesh) != expected->n_points ||
        grv_mesh_n_cells(mesh) != expected->n_cells)
        return "another number of points or cells";
    if (points_of(mesh, is_stl(expected->path)) != expected->points)
        return "other points than VTK reads";
    if (cells_of(mesh) != expected->cells) return "other cells than VTK reads";
    if (expected->data >= 0 && !is_stl(expected->path) && data != (uint32_t)expected->data)
        return "other data than VTK reads";
    return NULL;
}

/* True if the file is what the table says. */
static bool check_file(const mesh_file *expected, int n_threads)
{
    char path[2048];
    grv_mesh *mesh = NULL;
    const grv_mesh_read_params params = {.n_threads = n_threads};
    (void)snprintf(path, sizeof path, "%s/%s", data_folder(), expected->path);
    const grv_status status = grv_mesh_read(path, &params, &mesh);
    const char *wrong = NULL;
    if (expected->refused != NULL)
        wrong = status != GRV_OK && mesh == NULL &&
                        strstr(grv_error_message(), expected->refused) != NULL
                    ? NULL
                    : "not refused as expected";
    else
        wrong = status == GRV_OK ? check_mesh(expected, mesh) : "not read";
    if (wrong != NULL)
        print_error("%s: %s (%lld points, %lld cells) %s\n", expected->path, wrong,
                    mesh == NULL ? 0LL : (long long)grv_mesh_n_points(mesh),
                    mesh == NULL ? 0LL : (long long)grv_mesh_n_cells(mesh),
                    status == GRV_OK ? "" : grv_error_message());
    grv_mesh_destroy(&mesh);
    return wrong == NULL;
}

static void test_files(void **state)
{
    (void)state;
    int n_wrong = 0;
    if (access(data_folder(), R_OK) != 0) {
        print_message("skipped: no %s\n", data_folder());
        skip();
    }
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        for (int n_threads = 1; n_threads <= 3; n_threads += 2)
            n_wrong += !check_file(&table[i], n_threads);
    assert_int_equal(n_wrong, 0);
}

/* Collections name files that are there. */
static void test_collections(void **state)
{
    static const struct {
        const char *path;
        int64_t n;
        double last_time;
    } collections[] = {{"vtk/vtk_data/pvd/dualSphereAnimation.pvd", 22, 10},
                       {"vtk/openfoam_cavity/VTK/run_cavity_100.vtm", 3, 0},
                       {"vtk/vtkio/hexahedron_parallel.pvtu", 1, 0}};
    (void)state;
    if (access(data_folder(), R_OK) != 0) skip();
    for (size_t i = 0; i < sizeof collections / sizeof collections[0]; i++) {
        char path[2048];
        grv_mesh_member *members = NULL;
        int64_t n = 0;
        (void)snprintf(path, sizeof path, "%s/%s", data_folder(), collections[i].path);
        assert_ok(grv_mesh_collection_read(path, &members, &n));
        assert_int_equal(n, collections[i].n);
        for (int64_t k = 0; k < n; k++)
            if (access(members[k].path, R_OK) != 0)
                fail_msg("%s names %s, which is not there", path, members[k].path);
        assert_true(members[n - 1].time == collections[i].last_time &&
                    members[n - 1].has_time == (i == 0));
        grv_mesh_members_free(members, n);
    }
}

/* What tests of closed bodies know: surfaces that must be watertight after welding, with their volumes from trimesh or by formula. */
static void test_bodies(void **state)
{
    static const struct {
        const char *path;
        bool is_watertight;
        double volume; /* NaN: not known */
        double tolerance;
    } bodies[] = {{"geometry/trimesh/unit_cube.STL", true, 1},
                  {"geometry/trimesh/20mm-xyz-cube.stl", true, NAN},
                  {"geometry/trimesh/featuretype.STL", true, NAN, 1e-5},
                  {"geometry/assimp/sphereWithHole.stl", false, NAN},
                  {"cfd/ahmed/ahmed_25_ascii.stl.gz", true, NAN},
                  {"cfd/ahmed/ahmed_35_binary_solid_header.stl", true, NAN}};
    (void)state;
    if (access(data_folder(), R_OK) != 0) skip();
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char path[2048];
        grv_mesh *mesh = NULL;
        grv_triangles *t = NULL;
        grv_triangles_measure m;
        (void)snprintf(path, sizeof path, "%s/%s", data_folder(), bodies[i].path);
        assert_ok(grv_mesh_read(path, NULL, &mesh));
        assert_ok(grv_triangles_from_mesh(mesh, &t));
        assert_ok(grv_triangles_weld(t, bodies[i].tolerance, NULL));
        assert_ok(grv_triangles_clean(t, NULL));
        assert_ok(grv_triangles_measure_get(t, &m));
        if (m.is_watertight != bodies[i].is_watertight)
            fail_msg("%s: watertight %d, %lld boundary edges", path, m.is_watertight,
                     (long long)m.n_boundary_edges);
        if (bodies[i].volume == bodies[i].volume)
            assert_true(fabs(m.volume - bodies[i].volume) < 1e-6);
        if (m.is_watertight) assert_true(m.volume > 0);
        grv_triangles_destroy(&t);
        grv_mesh_destroy(&mesh);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_collections),
                                       cmocka_unit_test(test_bodies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
