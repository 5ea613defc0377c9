/* Cells of legacy VTK files.
 * Before version 5.1 a list "CELLS n size" holds count and points of each cell, size values in all. From 5.1 on "CELLS n + 1 size" is followed by the arrays
 * OFFSETS (from 0) and CONNECTIVITY. Polyhedra have their stream of faces in place of points, in both. */
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/cells_check.h"
#include "mesh/vtk_legacy.h"

/* Appends room for n cells and n_ids points; *cells and *ids tell where. */
static grv_status extend(grv_mesh *mesh, int64_t n, int64_t n_ids)
{
    const int64_t n_old = mesh->n_cells, n_old_ids = n_old > 0 ? mesh->offsets[n_old] : 0;
    GRV_TRY(GRVI_REALLOC(&mesh->offsets, n_old + n + 1));
    mesh->offsets[0] = 0;
    GRV_TRY(GRVI_REALLOC(&mesh->connectivity, n_old_ids + n_ids));
    return GRVI_REALLOC(&mesh->types, n_old + n);
}

static void set_types(grv_mesh *mesh, const char *keyword, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = mesh->offsets[i + 1] - mesh->offsets[i];
        mesh->types[i] = keyword[0] == 'V'   ? (n == 1 ? GRV_CELL_VERTEX : GRV_CELL_POLY_VERTEX)
                         : keyword[0] == 'L' ? (n == 2 ? GRV_CELL_LINE : GRV_CELL_POLY_LINE)
                         : keyword[0] == 'T' ? GRV_CELL_TRIANGLE_STRIP
                         : keyword[0] == 'P' ? grvi_polygon_type(n)
                                             : 0; /* CELL_TYPES follow */
    }
}

static grv_status unpack_list(grvi_legacy *r, const char *keyword, int64_t n, int64_t size)
{
    grv_mesh *const mesh = r->mesh;
    const int64_t *const values = r->cell_values;
    const int64_t first = mesh->n_cells;
    GRV_TRY(extend(mesh, n, size - n));
    int64_t at = 0, id = mesh->offsets[first];
    for (int64_t i = 0; i < n; i++) {
        /* each of the cells behind takes a value at least */
        const int64_t left = size - at - (n - i);
        GRV_CHECK(left >= 0 && values[at] >= 0 && values[at] <= left, GRV_E_FORMAT,
                  "%s: cell %lld of the %lld %s before byte %lld: %lld points, where %lld of %lld "
                  "values are left",
                  r->path, (long long)i, (long long)n, keyword, grvi_legacy_byte(r, r->at),
                  (long long)(at < size ? values[at] : 0), (long long)left, (long long)size);
        memcpy(mesh->connectivity + id, values + at + 1, (size_t)values[at] * sizeof *values);
        id += values[at];
        at += 1 + values[at];
        mesh->offsets[first + i + 1] = id;
    }
    GRV_CHECK(at == size, GRV_E_FORMAT, "%s: the %lld %s before byte %lld take %lld of %lld values",
              r->path, (long long)n, keyword, grvi_legacy_byte(r, r->at), (long long)at,
              (long long)size);
    mesh->n_cells = first + n;
    return GRV_OK;
}

static grv_status read_old_list(grvi_legacy *r, const char *keyword, int64_t n, int64_t size)
{
    static const grvi_legacy_type type = {GRV_STORE_I32, GRVI_LEGACY_PLAIN};
    GRV_CHECK(n <= size, GRV_E_FORMAT, "%s: %lld %s of %lld values before byte %lld", r->path,
              (long long)n, keyword, (long long)size, grvi_legacy_byte(r, r->at));
    GRV_TRY(grvi_legacy_room(r, type, size, keyword));
    GRV_TRY(GRVI_ALLOC(&r->cell_values, size));
    GRV_TRY(grvi_legacy_integers(r, type, size, keyword, r->cell_values));
    const grv_status status = unpack_list(r, keyword, n, size);
    grv_free(r->cell_values);
    r->cell_values = NULL;
    return status;
}

/* OFFSETS or CONNECTIVITY, and its type */
static grv_status read_heading(grvi_legacy *r, const char *expected, grvi_legacy_type *type)
{
    const grvi_span word = grvi_legacy_word(r);
    GRV_CHECK(grvi_legacy_is(word, expected), GRV_E_FORMAT,
              "%s: %s expected at byte %lld, '%.*s' found", r->path, expected,
              grvi_legacy_byte(r, word.at), (int)grvi_min_i64(word.n, 24), word.at);
    GRV_TRY(grvi_legacy_type_get(r, type));
    grvi_legacy_end_line(r);
    return GRV_OK;
}

static grv_status read_new_list(grvi_legacy *r, const char *keyword, int64_t n_offsets,
                                int64_t n_ids)
{
    grv_mesh *const mesh = r->mesh;
    grvi_legacy_type type;
    const int64_t first = mesh->n_cells, n = n_offsets - 1;
    GRV_TRY(read_heading(r, "OFFSETS", &type));
    GRV_TRY(grvi_legacy_room(r, type, n_offsets, keyword));
    GRV_TRY(extend(mesh, n, 0));
    int64_t *const offsets = mesh->offsets + first, first_id = offsets[0];
    GRV_TRY(grvi_legacy_integers(r, type, n_offsets, keyword, offsets));
    const int64_t bad = grvi_find_bad_end(offsets, n_offsets, n_ids);
    GRV_CHECK(bad < 0 && offsets[0] == 0 && offsets[n] == n_ids, GRV_E_FORMAT,
              "%s: offsets of %s before byte %lld must ascend from 0 to %lld", r->path, keyword,
              grvi_legacy_byte(r, r->at), (long long)n_ids);
    for (int64_t i = 0; i <= n; i++) offsets[i] += first_id;
    GRV_TRY(read_heading(r, "CONNECTIVITY", &type));
    GRV_TRY(grvi_legacy_room(r, type, n_ids, keyword));
    GRV_TRY(GRVI_REALLOC(&mesh->connectivity, first_id + n_ids));
    mesh->n_cells = first + n;
    return grvi_legacy_integers(r, type, n_ids, keyword, mesh->connectivity + first_id);
}

grv_status grvi_legacy_read_list(grvi_legacy *r, const char *keyword)
{
    const int64_t first = r->mesh->n_cells, most = INT64_MAX / 64;
    int64_t n = 0, size = 0;
    GRV_TRY(grvi_legacy_count(r, "a number of cells", most, &n));
    GRV_TRY(grvi_legacy_count(r, "a number of values", most, &size));
    grvi_legacy_end_line(r);
    const bool is_new = r->major > 5 || (r->major == 5 && r->minor >= 1);
    if (is_new && n == 0) return GRV_OK;
    GRV_TRY(is_new ? read_new_list(r, keyword, n, size) : read_old_list(r, keyword, n, size));
    set_types(r->mesh, keyword, first, r->mesh->n_cells);
    return GRV_OK;
}

grv_status grvi_legacy_read_cell_types(grvi_legacy *r)
{
    static const grvi_legacy_type type = {GRV_STORE_I32, GRVI_LEGACY_PLAIN};
    int64_t n = 0, *types = NULL;
    GRV_TRY(grvi_legacy_count(r, "a number of cells", INT64_MAX / 64, &n));
    grvi_legacy_end_line(r);
    GRV_CHECK(n == r->mesh->n_cells, GRV_E_FORMAT,
              "%s: %lld CELL_TYPES before byte %lld for %lld cells", r->path, (long long)n,
              grvi_legacy_byte(r, r->at), (long long)r->mesh->n_cells);
    GRV_TRY(GRVI_ALLOC(&types, n));
    grv_status status = grvi_legacy_integers(r, type, n, "CELL_TYPES", types);
    for (int64_t i = 0; i < n && status == GRV_OK; i++) {
        if (types[i] < 1 || types[i] > UINT8_MAX)
            status =
                grvi_fail(GRV_E_FORMAT, __FILE__, __LINE__, __func__,
                          "%s: CELL_TYPES before byte %lld: cell %lld is of type %lld", r->path,
                          grvi_legacy_byte(r, r->at), (long long)i, (long long)types[i]);
        r->mesh->types[i] = (uint8_t)types[i];
    }
    grv_free(types);
    return status;
}

/* ---- order ---- */

/* Lists may stand in any order in the file, but cell data belong to vertices, lines, polygons, strips in that order. */
static grv_status sort_lists(grv_mesh *mesh)
{
    grv_mesh sorted = {0};
    int64_t id = 0, place = 0;
    bool is_sorted = true;
    for (int64_t i = 1; i < mesh->n_cells; i++)
        is_sorted &= grvi_surface_list(mesh->types[i]) >= grvi_surface_list(mesh->types[i - 1]);
    if (is_sorted) return GRV_OK;
    grv_status status = grvi_mesh_alloc_cells(&sorted, mesh->n_cells, mesh->offsets[mesh->n_cells]);
    for (int list = 0; list < 4 && status == GRV_OK; list++) {
        for (int64_t i = 0; i < mesh->n_cells; i++) {
            const int64_t n = mesh->offsets[i + 1] - mesh->offsets[i];
            if (grvi_surface_list(mesh->types[i]) != list) continue;
            memcpy(sorted.connectivity + id, mesh->connectivity + mesh->offsets[i],
                   (size_t)n * sizeof *sorted.connectivity);
            sorted.types[place] = mesh->types[i];
            id += n;
            sorted.offsets[++place] = id;
        }
    }
    if (status == GRV_OK) {
        int64_t *const offsets = mesh->offsets, *const connectivity = mesh->connectivity;
        uint8_t *const types = mesh->types;
        mesh->offsets = sorted.offsets;
        mesh->connectivity = sorted.connectivity;
        mesh->types = sorted.types;
        sorted.offsets = offsets;
        sorted.connectivity = connectivity;
        sorted.types = types;
    }
    grv_free(sorted.offsets);
    grv_free(sorted.connectivity);
    grv_free(sorted.types);
    return status;
}

/* ---- polyhedra ---- */

static int compare_ids(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Points of a stream of faces, each once, ascending; returns their number. out has room for n */
static int64_t points_of_faces(const int64_t *faces, int64_t n, int64_t *out)
{
    int64_t n_ids = 0, kept = 0;
    for (int64_t at = 1; at < n; at += 1 + faces[at]) {
        memcpy(out + n_ids, faces + at + 1, (size_t)faces[at] * sizeof *out);
        n_ids += faces[at];
    }
    qsort(out, (size_t)n_ids, sizeof *out, compare_ids);
    for (int64_t i = 0; i < n_ids; i++)
        if (kept == 0 || out[kept - 1] != out[i]) out[kept++] = out[i];
    return kept;
}

/* The streams become faces, and what stands in the connectivity shrinks to the points. */
static grv_status split_faces(grvi_legacy *r)
{
    grv_mesh *const mesh = r->mesh;
    int64_t *points = NULL, n_faces = 0, n_ids = 0;
    GRV_TRY(GRVI_ALLOC(&mesh->face_offsets, mesh->n_cells + 1));
    GRV_TRY(GRVI_ALLOC(&mesh->faces, mesh->offsets[mesh->n_cells]));
    GRV_TRY(GRVI_ALLOC(&points, mesh->offsets[mesh->n_cells]));
    int64_t begin = 0;
    for (int64_t i = 0; i < mesh->n_cells; i++) {
        const int64_t end = mesh->offsets[i + 1], n = end - begin;
        const int64_t *cell = mesh->connectivity + begin;
        int64_t n_points = n;
        mesh->face_offsets[i] = n_faces;
        if (mesh->types[i] == GRV_CELL_POLYHEDRON) {
            memcpy(mesh->faces + n_faces, cell, (size_t)n * sizeof *cell);
            n_faces += n;
            n_points = points_of_faces(cell, n, points);
            cell = points;
        }
        memmove(mesh->connectivity + n_ids, cell, (size_t)n_points * sizeof *cell);
        n_ids += n_points;
        mesh->offsets[i + 1] = n_ids;
        begin = end;
    }
    mesh->face_offsets[mesh->n_cells] = n_faces;
    grv_free(points);
    return GRV_OK;
}

grv_status grvi_legacy_finish_cells(grvi_legacy *r)
{
    grv_mesh *const mesh = r->mesh;
    const int64_t n_points = mesh->points.n_tuples;
    bool has_polyhedra = false;
    if (mesh->kind != GRV_MESH_SURFACE && mesh->kind != GRV_MESH_CELLS) return GRV_OK;
    if (mesh->offsets == NULL) GRV_TRY(extend(mesh, 0, 0));
    for (int64_t i = 0; i < mesh->n_cells; i++) {
        const int64_t n = mesh->offsets[i + 1] - mesh->offsets[i];
        int64_t *const ids = mesh->connectivity + mesh->offsets[i];
        const bool is_polyhedron = mesh->types[i] == GRV_CELL_POLYHEDRON;
        GRV_CHECK(mesh->types[i] != 0, GRV_E_FORMAT, "%s: CELLS without CELL_TYPES", r->path);
        GRV_CHECK(is_polyhedron ? grvi_check_polyhedron(ids, n, n_points, 0)
                                : grvi_find_bad_id(ids, n, n_points, 0) < 0,
                  GRV_E_FORMAT,
                  "%s: cell %lld has a point beyond the %lld there are, or broken faces", r->path,
                  (long long)i, (long long)n_points);
        has_polyhedra |= is_polyhedron;
    }
    if (mesh->kind == GRV_MESH_SURFACE) return sort_lists(mesh);
    return has_polyhedra ? split_faces(r) : GRV_OK;
}
