/* Faces of polyhedra in VTK XML files, in both layouts, into one stream. */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/cells_check.h"
#include "mesh/vtk_polyhedra.h"

/* One piece. */
typedef struct piece_faces {
    const grvi_vtk_document *document;
    grv_mesh *mesh;
    int n_threads;
    int64_t piece, n_points, n_cells, first_point, first_cell;
} piece_faces;

/* Reads an array of integers of the piece, all of it; the caller releases it. */
static grv_status read_all(const piece_faces *p, const grvi_vtk_array *array, int64_t **values,
                           int64_t *n)
{
    GRV_TRY(grvi_vtk_array_count(p->document, array, n));
    GRV_TRY(GRVI_ALLOC(values, *n));
    return grvi_vtk_array_decode_i64(p->document, array, p->n_threads, *n, *values);
}

/* Room for n more values of the stream. */
static grv_status extend(grv_mesh *mesh, int64_t n_used, int64_t n)
{
    GRV_CHECK(n <= INT64_MAX / 64 - n_used, GRV_E_FORMAT, "%lld values of faces", (long long)n);
    return GRVI_REALLOC(&mesh->faces, n_used + n);
}

/* ---- faces, faceoffsets ---- */

static grv_status append_stream(const piece_faces *p, const grvi_vtk_array *faces,
                                const int64_t *ends)
{
    grv_mesh *const mesh = p->mesh;
    int64_t *const begins = mesh->face_offsets + p->first_cell, base = begins[0];
    int64_t *values = NULL, n = 0, at = 0;
    grv_status status = read_all(p, faces, &values, &n);
    if (status == GRV_OK) status = extend(mesh, base, n);
    for (int64_t i = 0; i < p->n_cells && status == GRV_OK; i++) {
        const bool is_polyhedron = mesh->types[p->first_cell + i] == GRV_CELL_POLYHEDRON;
        const int64_t end = is_polyhedron ? ends[i] : at;
        if (end < at || end > n ||
            (is_polyhedron &&
             !grvi_check_polyhedron(values + at, end - at, p->n_points, p->first_point)))
            status = grvi_fail(GRV_E_FORMAT, __FILE__, __LINE__, __func__,
                               GRVI_WHERE
                               "the faces of cell %lld, values %lld to %lld of %lld, are broken",
                               GRVI_WHERE_OF(&faces->where), (long long)i, (long long)at,
                               (long long)end, (long long)n);
        begins[i + 1] = base + end;
        at = end;
    }
    if (status == GRV_OK) memcpy(mesh->faces + base, values, (size_t)at * sizeof *values);
    grv_free(values);
    return status;
}

static grv_status read_stream(const piece_faces *p, const grvi_vtk_array *faces,
                              const grvi_vtk_array *faceoffsets)
{
    int64_t *ends = NULL;
    GRV_TRY(grvi_vtk_array_check(p->document, faceoffsets, p->n_cells));
    GRV_TRY(GRVI_ALLOC(&ends, p->n_cells));
    grv_status status =
        grvi_vtk_array_decode_i64(p->document, faceoffsets, p->n_threads, p->n_cells, ends);
    if (status == GRV_OK) status = append_stream(p, faces, ends);
    grv_free(ends);
    return status;
}

/* ---- lists of faces ---- */

/* The four arrays of the newer layout. Lists of offsets begin with 0, or with the end of the first. */
typedef struct face_lists {
    int64_t *ids, *ends, *numbers, *cell_ends;
    int64_t n_ids, n_faces, n_numbers, n_cell_ends;
} face_lists;

static void fini_lists(face_lists *l)
{
    grv_free(l->ids);
    grv_free(l->ends);
    grv_free(l->numbers);
    grv_free(l->cell_ends);
}

static int64_t begin_of(const int64_t *ends, int64_t i)
{
    return i == 0 ? 0 : ends[i - 1];
}

/* Writes the stream of a cell to out; NULL: only counts. -1: broken */
static int64_t put_cell(const face_lists *l, int64_t cell, int64_t *out)
{
    const int64_t begin = begin_of(l->cell_ends, cell), end = l->cell_ends[cell];
    int64_t n = 1;
    if (out != NULL) out[0] = end - begin;
    for (int64_t i = begin; i < end; i++) {
        if (l->numbers[i] < 0 || l->numbers[i] >= l->n_faces) return -1;
        const int64_t first = begin_of(l->ends, l->numbers[i]),
                      n_points = l->ends[l->numbers[i]] - first;
        if (n_points > INT64_MAX / 64 - n) return -1;
        if (out != NULL) {
            out[n] = n_points;
            memcpy(out + n + 1, l->ids + first, (size_t)n_points * sizeof *out);
        }
        n += 1 + n_points;
    }
    return n;
}

static grv_status check_lists(const piece_faces *p, const grvi_vtk_where *where, face_lists *l)
{
    GRV_CHECK(grvi_find_bad_end(l->ends, l->n_faces, l->n_ids) < 0 &&
                  grvi_find_bad_end(l->cell_ends, l->n_cell_ends, l->n_numbers) < 0 &&
                  grvi_find_bad_id(l->ids, l->n_ids, p->n_points, p->first_point) < 0 &&
                  l->n_cell_ends == p->n_cells,
              GRV_E_FORMAT,
              GRVI_WHERE "the lists of faces do not fit each other, or the cells and points",
              GRVI_WHERE_OF(where));
    return GRV_OK;
}

static grv_status append_lists(const piece_faces *p, const grvi_vtk_where *where,
                               const face_lists *l)
{
    /* hostile files could name one large face again and again */
    const int64_t most = 64 * (l->n_ids + l->n_numbers) + p->n_cells;
    grv_mesh *const mesh = p->mesh;
    int64_t *const begins = mesh->face_offsets + p->first_cell;
    for (int64_t i = 0; i < p->n_cells; i++) {
        const bool is_polyhedron = mesh->types[p->first_cell + i] == GRV_CELL_POLYHEDRON;
        const int64_t n = is_polyhedron ? put_cell(l, i, NULL) : 0;
        GRV_CHECK(n >= 0 && n <= most - (begins[i] - begins[0]), GRV_E_FORMAT,
                  GRVI_WHERE "the faces of cell %lld are broken", GRVI_WHERE_OF(where),
                  (long long)i);
        begins[i + 1] = begins[i] + n;
    }
    GRV_TRY(extend(mesh, begins[0], begins[p->n_cells] - begins[0]));
    for (int64_t i = 0; i < p->n_cells; i++)
        if (begins[i + 1] > begins[i]) (void)put_cell(l, i, mesh->faces + begins[i]);
    return GRV_OK;
}

static grv_status read_lists(const piece_faces *p, const grvi_vtk_array *const arrays[4])
{
    face_lists l = {0};
    grv_status status = read_all(p, arrays[0], &l.ids, &l.n_ids);
    if (status == GRV_OK) status = read_all(p, arrays[1], &l.ends, &l.n_faces);
    if (status == GRV_OK) status = read_all(p, arrays[2], &l.numbers, &l.n_numbers);
    if (status == GRV_OK) status = read_all(p, arrays[3], &l.cell_ends, &l.n_cell_ends);
    if (status == GRV_OK) status = check_lists(p, &arrays[0]->where, &l);
    if (status == GRV_OK) status = append_lists(p, &arrays[0]->where, &l);
    fini_lists(&l);
    return status;
}

/* ---- pieces ---- */

static bool has_polyhedra(const grv_mesh *mesh, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        if (mesh->types[i] == GRV_CELL_POLYHEDRON) return true;
    return false;
}

static grv_status read_piece(const piece_faces *p)
{
    static const char *const names[] = {"face_connectivity", "face_offsets", "polyhedron_to_faces",
                                        "polyhedron_offsets"};
    const grvi_vtk_document *const d = p->document;
    int64_t *const begins = p->mesh->face_offsets + p->first_cell;
    const grvi_vtk_array *const faces = grvi_vtk_find(d, GRVI_VTK_CELLS, p->piece, "faces");
    const grvi_vtk_array *const faceoffsets =
        grvi_vtk_find(d, GRVI_VTK_CELLS, p->piece, "faceoffsets");
    const grvi_vtk_array *lists[4];
    int n_lists = 0;
    if (!has_polyhedra(p->mesh, p->first_cell, p->first_cell + p->n_cells)) {
        for (int64_t i = 0; i < p->n_cells; i++) begins[i + 1] = begins[0];
        return GRV_OK;
    }
    if (faces != NULL && faceoffsets != NULL) return read_stream(p, faces, faceoffsets);
    while (n_lists < 4 &&
           (lists[n_lists] = grvi_vtk_find(d, GRVI_VTK_CELLS, p->piece, names[n_lists])) != NULL)
        n_lists++;
    GRV_CHECK(n_lists == 4, GRV_E_FORMAT,
              "%s: piece %lld has polyhedra, but no array '%s' of their faces", d->file->path,
              (long long)p->piece,
              n_lists > 0     ? names[n_lists]
              : faces == NULL ? "faces"
                              : "faceoffsets");
    return read_lists(p, lists);
}

grv_status grvi_vtk_read_polyhedra(const grvi_vtk_document *document, int n_threads, grv_mesh *mesh)
{
    piece_faces p = {.document = document, .mesh = mesh, .n_threads = n_threads};
    if (!has_polyhedra(mesh, 0, mesh->n_cells)) return GRV_OK;
    GRV_TRY(GRVI_ALLOC(&mesh->face_offsets, mesh->n_cells + 1));
    mesh->face_offsets[0] = 0;
    for (; p.piece < document->n_pieces; p.piece++) {
        p.n_points = document->pieces[p.piece].n_points;
        p.n_cells = document->pieces[p.piece].n_cells;
        GRV_TRY(read_piece(&p));
        p.first_point += p.n_points;
        p.first_cell += p.n_cells;
    }
    return GRV_OK;
}
