/* The outer surface of a mesh of cells with a volume: the faces that one cell only has.
 *
 * Two faces are the same if they have the same points, in any order. Faces are put into buckets by their lowest point, sorted there by a hash of all
 * points, and compared: O(n log n) and 24 bytes a face, whatever the order of the cells. Which way a cell numbers its points is not trusted
 * (wedges are written in both): a face is turned so that it looks away from the middle of its cell. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/mesh_impl.h"

enum { MOST_FACES = 6, MOST_CORNERS = 4 };

/* Faces of a type of cell, corners around; a face of three ends in -1. */
typedef struct cell_shape {
    int n_points, n_faces;
    int8_t faces[MOST_FACES][MOST_CORNERS];
} cell_shape;

static const cell_shape *shape_of(uint8_t type)
{
    static const cell_shape
        tetra = {4, 4, {{0, 1, 3, -1}, {1, 2, 3, -1}, {2, 0, 3, -1}, {0, 2, 1, -1}}},
        voxel =
            {8,
             6,
             {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}}},
        hexahedron =
            {8,
             6,
             {{0, 4, 7, 3}, {1, 2, 6, 5}, {0, 1, 5, 4}, {3, 7, 6, 2}, {0, 3, 2, 1}, {4, 5, 6, 7}}},
        wedge = {6, 5, {{0, 1, 2, -1}, {3, 5, 4, -1}, {0, 3, 4, 1}, {1, 4, 5, 2}, {2, 5, 3, 0}}},
        pyramid = {
            5, 5, {{0, 3, 2, 1}, {0, 1, 4, -1}, {1, 2, 4, -1}, {2, 3, 4, -1}, {3, 0, 4, -1}}};
    switch (type) {
    case GRV_CELL_TETRA: return &tetra;
    case GRV_CELL_VOXEL: return &voxel;
    case GRV_CELL_HEXAHEDRON: return &hexahedron;
    case GRV_CELL_WEDGE: return &wedge;
    case GRV_CELL_PYRAMID: return &pyramid;
    default: return NULL;
    }
}

/* ---- faces of a cell, one after the other ---- */

static bool is_polyhedron(const grv_mesh *mesh, int64_t cell)
{
    return mesh->types[cell] == GRV_CELL_POLYHEDRON && mesh->face_offsets != NULL &&
           mesh->face_offsets[cell + 1] > mesh->face_offsets[cell];
}

/* 0 for a cell without a volume, or with another number of points than its type has. */
static int64_t n_faces_of(const grv_mesh *mesh, int64_t cell)
{
    const cell_shape *const shape = shape_of(mesh->types[cell]);
    if (is_polyhedron(mesh, cell)) return mesh->faces[mesh->face_offsets[cell]];
    return shape != NULL && mesh->offsets[cell + 1] - mesh->offsets[cell] == shape->n_points
               ? shape->n_faces
               : 0;
}

/* Place of a face: of a polyhedron, of its number of points in mesh->faces; of other cells, its number. */
static int64_t first_place(const grv_mesh *mesh, int64_t cell)
{
    return is_polyhedron(mesh, cell) ? mesh->face_offsets[cell] + 1 : 0;
}

static int64_t next_place(const grv_mesh *mesh, int64_t cell, int64_t place)
{
    return is_polyhedron(mesh, cell) ? place + 1 + mesh->faces[place] : place + 1;
}

/* Points around a face; ids has room for the longest. */
static int64_t points_of(const grv_mesh *mesh, int64_t cell, int64_t place, int64_t *ids)
{
    int64_t n = 0;
    if (is_polyhedron(mesh, cell)) {
        n = mesh->faces[place];
        memcpy(ids, mesh->faces + place + 1, (size_t)n * sizeof *ids);
        return n;
    }
    const int8_t *const corners = shape_of(mesh->types[cell])->faces[place];
    while (n < MOST_CORNERS && corners[n] >= 0) {
        ids[n] = mesh->connectivity[mesh->offsets[cell] + corners[n]];
        n++;
    }
    return n;
}

static int64_t longest_face(const grv_mesh *mesh)
{
    int64_t longest = MOST_CORNERS;
    for (int64_t cell = 0; cell < mesh->n_cells; cell++) {
        if (!is_polyhedron(mesh, cell)) continue;
        int64_t place = first_place(mesh, cell);
        for (int64_t k = 0; k < n_faces_of(mesh, cell); k++) {
            longest = grvi_max_i64(longest, mesh->faces[place]);
            place = next_place(mesh, cell, place);
        }
    }
    return longest;
}

/* ---- which faces are outside ---- */

static int compare_ids(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The different points of a face, ascending: what tells it apart. */
static int64_t key_of(const grv_mesh *mesh, int64_t cell, int64_t place, int64_t *ids)
{
    const int64_t n = points_of(mesh, cell, place, ids);
    int64_t n_kept = 0;
    if (n > MOST_CORNERS) {
        qsort(ids, (size_t)n, sizeof *ids, compare_ids);
    } else {
        for (int64_t i = 1; i < n; i++)
            for (int64_t k = i; k > 0 && ids[k - 1] > ids[k]; k--) {
                const int64_t id = ids[k];
                ids[k] = ids[k - 1];
                ids[k - 1] = id;
            }
    }
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || ids[i] != ids[i - 1]) ids[n_kept++] = ids[i];
    return n_kept;
}

typedef struct face {
    int64_t cell, place;
    uint32_t hash;
    bool is_shared;
} face;

/* What the search goes through. */
typedef struct face_search {
    const grv_mesh *mesh;
    face *faces;     /* by lowest point, later those outside only; owned */
    int64_t *begins; /* [n_points + 1] of the faces by lowest point; owned */
    int64_t n;
    int64_t *key, *other; /* room for the longest face; owned */
} face_search;

/* Goes through all faces: counts them by lowest point, or puts them into their places. */
static void visit_faces(face_search *s, bool is_placing)
{
    const grv_mesh *const mesh = s->mesh;
    for (int64_t cell = 0; cell < mesh->n_cells; cell++) {
        const int64_t n_faces = n_faces_of(mesh, cell);
        int64_t place = first_place(mesh, cell);
        for (int64_t k = 0; k < n_faces; k++, place = next_place(mesh, cell, place)) {
            const int64_t n = key_of(mesh, cell, place, s->key);
            if (n < 3) continue; /* collapsed to an edge */
            if (is_placing) {
                uint64_t hash = (uint64_t)n;
                for (int64_t i = 1; i < n; i++)
                    hash = (hash ^ (uint64_t)s->key[i]) * UINT64_C(0x9e3779b97f4a7c15);
                s->faces[s->begins[s->key[0]]++] =
                    (face){cell, place, (uint32_t)(hash >> 32), false};
            } else {
                s->begins[s->key[0] + 1]++;
            }
        }
    }
}

static int compare_hashes(const void *a, const void *b)
{
    const face *const x = a, *const y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static int compare_places(const void *a, const void *b)
{
    const face *const x = a, *const y = b;
    return x->cell != y->cell ? (x->cell > y->cell) - (x->cell < y->cell)
                              : (x->place > y->place) - (x->place < y->place);
}

static bool is_same(const face_search *s, const face *a, const face *b)
{
    const int64_t n = key_of(s->mesh, a->cell, a->place, s->key);
    return key_of(s->mesh, b->cell, b->place, s->other) == n &&
           memcmp(s->key, s->other, (size_t)n * sizeof *s->key) == 0;
}

/* Marks what is there twice among the faces of one lowest point. */
static void mark_shared(const face_search *s, face *faces, int64_t n)
{
    int64_t first = 0; /* of those with the same hash */
    qsort(faces, (size_t)n, sizeof *faces, compare_hashes);
    for (int64_t i = 1; i < n; i++) {
        if (faces[i].hash != faces[first].hash) first = i;
        for (int64_t k = first; k < i && !faces[i].is_shared; k++)
            if (is_same(s, &faces[i], &faces[k])) faces[i].is_shared = faces[k].is_shared = true;
    }
}

static grv_status find_outside(face_search *s)
{
    const int64_t n_points = s->mesh->points.n_tuples, longest = longest_face(s->mesh);
    int64_t n_outside = 0;
    GRV_TRY(GRVI_ALLOC(&s->key, longest));
    GRV_TRY(GRVI_ALLOC(&s->other, longest));
    GRV_TRY(GRVI_CALLOC(&s->begins, n_points + 1));
    visit_faces(s, false);
    for (int64_t i = 0; i < n_points; i++) s->begins[i + 1] += s->begins[i];
    s->n = s->begins[n_points];
    GRV_TRY(GRVI_ALLOC(&s->faces, s->n));
    visit_faces(s, true); /* begins are ends now */
    for (int64_t i = 0, begin = 0; i < n_points; begin = s->begins[i++])
        if (s->begins[i] > begin) mark_shared(s, s->faces + begin, s->begins[i] - begin);
    for (int64_t i = 0; i < s->n; i++)
        if (!s->faces[i].is_shared) s->faces[n_outside++] = s->faces[i];
    s->n = n_outside;
    if (s->n > 0) qsort(s->faces, (size_t)s->n, sizeof *s->faces, compare_places);
    return GRV_OK;
}

static void search_fini(face_search *s)
{
    grv_free(s->faces);
    grv_free(s->begins);
    grv_free(s->key);
    grv_free(s->other);
}

/* ---- the surface ---- */

static void get_point(const grv_mesh *mesh, int64_t id, double x[3])
{
    for (int k = 0; k < 3; k++) x[k] = grvi_mesh_value(&mesh->points, 3 * id + k);
}

static void find_middle(const grv_mesh *mesh, const int64_t *ids, int64_t n, double middle[3])
{
    double x[3], sum[3] = {0};
    for (int64_t i = 0; i < n; i++) {
        get_point(mesh, ids[i], x);
        for (int k = 0; k < 3; k++) sum[k] += x[k];
    }
    for (int k = 0; k < 3; k++) middle[k] = sum[k] / (double)n;
}

/* Does a face look towards the middle of its cell? Its normal is that of the fan around its own middle. */
static bool looks_inward(const grv_mesh *mesh, int64_t cell, const int64_t *ids, int64_t n)
{
    const int64_t begin = mesh->offsets[cell];
    double inside[3], middle[3], a[3], b[3], dot = 0;
    find_middle(mesh, mesh->connectivity + begin, mesh->offsets[cell + 1] - begin, inside);
    find_middle(mesh, ids, n, middle);
    for (int64_t i = 0; i < n; i++) {
        get_point(mesh, ids[i], a);
        get_point(mesh, ids[(i + 1) % n], b);
        for (int k = 0; k < 3; k++) a[k] -= middle[k], b[k] -= middle[k];
        for (int k = 0; k < 3; k++) {
            const int l = (k + 1) % 3, m = (k + 2) % 3;
            dot += (a[l] * b[m] - a[m] * b[l]) * (middle[k] - inside[k]);
        }
    }
    return dot < 0;
}

/* Cells of the surface, with the point numbers of the mesh; rows [n_cells] are their cells there. */
static grv_status make_cells(const face_search *s, grv_mesh *surface, int64_t *rows)
{
    int64_t n_ids = 0;
    for (int64_t i = 0; i < s->n; i++)
        n_ids += points_of(s->mesh, s->faces[i].cell, s->faces[i].place, s->key);
    GRV_TRY(grvi_mesh_alloc_cells(surface, s->n, n_ids));
    surface->offsets[0] = 0;
    for (int64_t i = 0; i < s->n; i++) {
        int64_t *const ids = surface->connectivity + surface->offsets[i];
        const int64_t n = points_of(s->mesh, s->faces[i].cell, s->faces[i].place, ids);
        if (looks_inward(s->mesh, s->faces[i].cell, ids, n))
            for (int64_t k = 1; k < n - k; k++) {
                const int64_t id = ids[k];
                ids[k] = ids[n - k];
                ids[n - k] = id;
            }
        surface->offsets[i + 1] = surface->offsets[i] + n;
        surface->types[i] = grvi_polygon_type(n);
        rows[i] = s->faces[i].cell;
    }
    return GRV_OK;
}

/* Keeps the points that are used, in order; rows [points of the mesh] become their numbers there. */
static grv_status make_points(const grv_mesh *mesh, grv_mesh *surface, int64_t *rows, int64_t *n)
{
    const int64_t n_points = mesh->points.n_tuples, n_ids = surface->offsets[surface->n_cells];
    const size_t point_bytes = 3 * (size_t)grvi_mesh_item_bytes(mesh->points.type);
    int64_t *numbers = NULL;
    grv_status status = GRV_OK;
    *n = 0;
    GRV_TRY(GRVI_CALLOC(&numbers, n_points));
    for (int64_t i = 0; i < n_ids; i++) numbers[surface->connectivity[i]] = 1;
    for (int64_t i = 0; i < n_points; i++) {
        if (numbers[i] == 0) continue;
        numbers[i] = *n;
        rows[(*n)++] = i;
    }
    for (int64_t i = 0; i < n_ids; i++)
        surface->connectivity[i] = numbers[surface->connectivity[i]];
    grvi_mesh_array_fini(&surface->points);
    GRV_TRY_GOTO(grvi_mesh_array_init("Points", 6, mesh->points.type, 3, *n, &surface->points));
    for (int64_t i = 0; i < *n; i++)
        memcpy((uint8_t *)surface->points.data + (size_t)i * point_bytes,
               (const uint8_t *)mesh->points.data + (size_t)rows[i] * point_bytes, point_bytes);
done:
    grv_free(numbers);
    return status;
}

static grv_status make_surface(const face_search *s, grv_mesh *surface)
{
    const grv_mesh *const mesh = s->mesh;
    int64_t *rows = NULL, n = 0;
    grv_status status = GRV_OK;
    GRV_TRY(GRVI_ALLOC(&rows, grvi_max_i64(s->n, mesh->points.n_tuples)));
    GRV_TRY_GOTO(make_cells(s, surface, rows));
    for (int64_t k = 0; k < mesh->cell_data.n; k++)
        GRV_TRY_GOTO(
            grvi_mesh_copy_rows(&mesh->cell_data.items[k], rows, s->n, &surface->cell_data));
    GRV_TRY_GOTO(make_points(mesh, surface, rows, &n));
    for (int64_t k = 0; k < mesh->point_data.n; k++)
        GRV_TRY_GOTO(
            grvi_mesh_copy_rows(&mesh->point_data.items[k], rows, n, &surface->point_data));
    GRV_TRY_GOTO(grvi_mesh_copy_all_rows(&mesh->field_data, &surface->field_data));
    surface->format = mesh->format;
    surface->has_time = mesh->has_time;
    surface->time = mesh->time;
done:
    grv_free(rows);
    return status;
}

grv_status grv_mesh_extract_surface(const grv_mesh *mesh, grv_mesh **surface, int64_t *n_left_out)
{
    grv_status status = GRV_OK;
    face_search search = {.mesh = mesh};
    int64_t n_without = 0;
    *surface = NULL;
    GRV_CHECK(mesh->kind == GRV_MESH_CELLS, GRV_E_ARG,
              "a mesh of cells (an unstructured grid) expected");
    for (int64_t i = 0; i < mesh->n_cells; i++) n_without += n_faces_of(mesh, i) == 0;
    GRV_TRY_GOTO(find_outside(&search));
    GRV_TRY_GOTO(grv_mesh_create(GRV_MESH_SURFACE, surface));
    GRV_TRY_GOTO(make_surface(&search, *surface));
    if (n_left_out != NULL) *n_left_out = n_without;
done:
    search_fini(&search);
    if (status != GRV_OK) grv_mesh_destroy(surface);
    return status;
}
