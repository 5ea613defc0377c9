/* From the arrays of a VTK XML file to a mesh. Pieces are joined in their order; every array is decoded straight into its place in the mesh. All sizes are
 * compared with what the file holds before memory is taken. */
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "grove/core.h"
#include "mesh/cells_check.h"
#include "mesh/vtk_polyhedra.h"
#include "mesh/vtk_xml.h"

typedef struct assembly {
    const grvi_vtk_document *document;
    grv_mesh *mesh;
    int n_threads;
} assembly;

static const char *const axis_names[3] = {"x", "y", "z"};

/* ---- counts ---- */

static bool has_list(const assembly *a)
{
    return a->mesh->kind == GRV_MESH_SURFACE || a->mesh->kind == GRV_MESH_CELLS;
}

static int64_t points_of(const assembly *a, int64_t piece)
{
    const grvi_vtk_piece *const p = &a->document->pieces[piece];
    int64_t n_points = 0, n_cells = 0;
    if (has_list(a)) return p->n_points;
    return grvi_mesh_extent_counts(p->extent, &n_points, &n_cells) ? n_points : 0;
}

static int64_t cells_of(const assembly *a, int64_t piece)
{
    const grvi_vtk_piece *const p = &a->document->pieces[piece];
    int64_t n_points = 0, n_cells = 0;
    if (a->mesh->kind == GRV_MESH_SURFACE)
        return p->n_listed[0] + p->n_listed[1] + p->n_listed[2] + p->n_listed[3];
    if (a->mesh->kind == GRV_MESH_CELLS) return p->n_cells;
    return grvi_mesh_extent_counts(p->extent, &n_points, &n_cells) ? n_cells : 0;
}

/* ---- data of points, cells, fields ---- */

/* Values of an array of a piece: its tuples times components, compared with what the file holds. */
static grv_status check_values(const grvi_vtk_document *d, const grvi_vtk_array *a,
                               int64_t n_tuples, int64_t *n_values)
{
    GRV_CHECK(grvi_mul_i64(n_tuples, a->n_components, n_values) && *n_values <= INT64_MAX / 16,
              GRV_E_FORMAT, GRVI_WHERE "%lld tuples of %d components", GRVI_WHERE_OF(&a->where),
              (long long)n_tuples, a->n_components);
    return grvi_vtk_array_check(d, a, *n_values);
}

/* Adds an array of uninitialised values to a list; its name has no entities. */
static grv_status add_array(const grvi_vtk_array *a, int64_t n_tuples, grv_mesh_arrays *list,
                            grv_mesh_array **added)
{
    char *name = NULL;
    GRV_TRY(GRVI_ALLOC(&name, a->where.name.n));
    const int64_t n = grvi_xml_resolve(a->where.name, name);
    const grv_status status = grvi_mesh_arrays_add(
        list, name, n, a->type, a->is_text ? 1 : a->n_components, n_tuples, added);
    grv_free(name);
    return status;
}

/* The array of another piece that continues `first`; pieces without tuples may lack it. */
static grv_status find_continued(const grvi_vtk_document *d, const grvi_vtk_array *first,
                                 int64_t piece, int64_t n_tuples, const grvi_vtk_array **found)
{
    int64_t begin = 0, end = 0, first_begin = 0, first_end = 0;
    grvi_vtk_arrays_of(d, piece, &begin, &end);
    grvi_vtk_arrays_of(d, first->piece, &first_begin, &first_end);
    const int64_t n = end - begin, guess = first - d->arrays - first_begin;
    *found = NULL;
    /* pieces list their arrays in the same order, nearly always */
    for (int64_t i = 0; i < n && *found == NULL; i++) {
        const grvi_vtk_array *const a = &d->arrays[begin + (guess + i) % n];
        if (a->section == first->section && a->where.name.n == first->where.name.n &&
            memcmp(a->where.name.at, first->where.name.at, (size_t)a->where.name.n) == 0)
            *found = a;
    }
    GRV_CHECK(*found != NULL || n_tuples == 0, GRV_E_FORMAT,
              GRVI_WHERE "piece %lld has no such array", GRVI_WHERE_OF(&first->where),
              (long long)piece);
    GRV_CHECK(*found == NULL ||
                  ((*found)->type == first->type && (*found)->n_components == first->n_components &&
                   (*found)->is_text == first->is_text),
              GRV_E_FORMAT, GRVI_WHERE "type or components differ from those of piece %lld",
              GRVI_WHERE_OF(&(*found)->where), (long long)first->piece);
    return GRV_OK;
}

static int64_t tuples_of(const assembly *a, grvi_vtk_section section, int64_t piece)
{
    return section == GRVI_VTK_CELL_DATA ? cells_of(a, piece) : points_of(a, piece);
}

/* Reads `first` of the first piece that has it and those that continue it into one array of the list. */
static grv_status join_pieces(const assembly *a, const grvi_vtk_array *first, grv_mesh_array *out)
{
    uint8_t *at = out->data;
    for (int64_t piece = 0; piece < a->document->n_pieces; piece++) {
        const grvi_vtk_array *array = NULL;
        const int64_t n_values = tuples_of(a, first->section, piece) * first->n_components;
        GRV_TRY(find_continued(a->document, first, piece, n_values, &array));
        if (n_values == 0) continue;
        GRV_TRY(grvi_vtk_array_decode(a->document, array, a->n_threads, n_values, at));
        at += n_values * grvi_mesh_item_bytes(first->type);
    }
    return GRV_OK;
}

static grv_status check_pieces(const assembly *a, const grvi_vtk_array *first, int64_t *n_tuples)
{
    *n_tuples = 0;
    for (int64_t piece = 0; piece < a->document->n_pieces; piece++) {
        const grvi_vtk_array *array = NULL;
        const int64_t n = tuples_of(a, first->section, piece);
        int64_t n_values = 0;
        GRV_TRY(find_continued(a->document, first, piece, n, &array));
        if (array != NULL) GRV_TRY(check_values(a->document, array, n, &n_values));
        *n_tuples += n;
    }
    return GRV_OK;
}

/* First piece with tuples: its arrays are those of the mesh. -1: no piece has any. */
static int64_t leading_piece(const assembly *a, grvi_vtk_section section)
{
    for (int64_t piece = 0; piece < a->document->n_pieces; piece++)
        if (tuples_of(a, section, piece) > 0) return piece;
    return a->document->n_pieces > 0 ? 0 : -1;
}

static grv_status read_text(const grvi_vtk_document *d, const grvi_vtk_array *a,
                            grv_mesh_arrays *list)
{
    int64_t n_bytes = 0, n_texts = 0;
    grv_mesh_array *array = NULL;
    GRV_TRY(grvi_vtk_array_count(d, a, &n_bytes));
    GRV_TRY(add_array(a, n_bytes, list, &array));
    GRV_TRY(grvi_vtk_array_decode(d, a, 1, n_bytes, array->data));
    const char *const data = array->data;
    for (int64_t i = 0; i < n_bytes; i++) n_texts += data[i] == '\0';
    GRV_CHECK(n_bytes == 0 || data[n_bytes - 1] == '\0', GRV_E_FORMAT,
              GRVI_WHERE "its last string has no end", GRVI_WHERE_OF(&a->where));
    array->is_text = true;
    array->n_tuples = n_texts;
    return GRV_OK;
}

static grv_status read_data(const assembly *a, grvi_vtk_section section, grv_mesh_arrays *list)
{
    const int64_t leading = leading_piece(a, section);
    int64_t begin = 0, end = 0;
    if (leading < 0) return GRV_OK;
    grvi_vtk_arrays_of(a->document, leading, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const grvi_vtk_array *const first = &a->document->arrays[i];
        int64_t n_tuples = 0;
        grv_mesh_array *array = NULL;
        if (first->section != section) continue;
        GRV_CHECK(!first->is_text, GRV_E_UNSUPPORTED, GRVI_WHERE "strings of points or cells",
                  GRVI_WHERE_OF(&first->where));
        GRV_TRY(check_pieces(a, first, &n_tuples));
        GRV_TRY(add_array(first, n_tuples, list, &array));
        GRV_TRY(join_pieces(a, first, array));
    }
    return GRV_OK;
}

static grv_status read_field_data(const assembly *a)
{
    for (int64_t i = 0; i < a->document->n_arrays; i++) {
        const grvi_vtk_array *const field = &a->document->arrays[i];
        int64_t n_values = 0;
        grv_mesh_array *array = NULL;
        if (field->section != GRVI_VTK_FIELD_DATA) continue;
        if (field->is_text) {
            GRV_TRY(read_text(a->document, field, &a->mesh->field_data));
            continue;
        }
        GRV_TRY(grvi_vtk_array_count(a->document, field, &n_values));
        GRV_CHECK(n_values % field->n_components == 0, GRV_E_FORMAT,
                  GRVI_WHERE "%lld values are no whole number of tuples of %d",
                  GRVI_WHERE_OF(&field->where), (long long)n_values, field->n_components);
        GRV_TRY(add_array(field, n_values / field->n_components, &a->mesh->field_data, &array));
        GRV_TRY(grvi_vtk_array_decode(a->document, field, a->n_threads, n_values, array->data));
    }
    return GRV_OK;
}

/* ---- points ---- */

static grv_status read_points(const assembly *a)
{
    static const char name[] = "Points";
    const grvi_vtk_document *const d = a->document;
    int64_t leading = leading_piece(a, GRVI_VTK_POINTS), n_tuples = 0;
    if (leading < 0) return GRV_OK;
    const grvi_vtk_array *const first = grvi_vtk_find(d, GRVI_VTK_POINTS, leading, NULL);
    if (first == NULL) {
        GRV_CHECK(points_of(a, leading) == 0, GRV_E_FORMAT,
                  "%s: piece %lld of %lld points has no array of points", d->file->path,
                  (long long)leading, (long long)points_of(a, leading));
        return GRV_OK;
    }
    GRV_CHECK(first->n_components == 3 && !first->is_text, GRV_E_FORMAT,
              GRVI_WHERE "points of %d components", GRVI_WHERE_OF(&first->where),
              first->n_components);
    GRV_TRY(check_pieces(a, first, &n_tuples));
    GRV_TRY(
        grvi_mesh_array_init(name, sizeof name - 1, first->type, 3, n_tuples, &a->mesh->points));
    GRV_TRY(join_pieces(a, first, &a->mesh->points));
    return grvi_mesh_points_to_real(&a->mesh->points);
}

/* The three arrays of a rectilinear grid, in the order of the axes. */
static grv_status read_coordinates(const assembly *a)
{
    const grvi_vtk_document *const d = a->document;
    int64_t begin = 0, end = 0, axis = 0;
    grvi_vtk_arrays_of(d, 0, &begin, &end);
    for (int64_t i = begin; i < end && axis < 3; i++) {
        const grvi_vtk_array *const array = &d->arrays[i];
        const int64_t n = d->pieces[0].extent[2 * axis + 1] - d->pieces[0].extent[2 * axis] + 1;
        if (array->section != GRVI_VTK_COORDINATES) continue;
        GRV_TRY(grvi_vtk_array_check(d, array, n));
        GRV_TRY(grvi_mesh_array_init(axis_names[axis], 1, array->type, 1, n,
                                     &a->mesh->coordinates[axis]));
        GRV_TRY(grvi_vtk_array_decode(d, array, a->n_threads, n, a->mesh->coordinates[axis].data));
        axis++;
    }
    GRV_CHECK(axis == 3, GRV_E_FORMAT, "%s: coordinates of three axes expected, of %lld found",
              d->file->path, (long long)axis);
    return GRV_OK;
}

/* ---- cells ---- */

/* A list of cells of one piece. */
typedef struct cell_list {
    const grvi_vtk_array *offsets, *connectivity, *types;
    int64_t piece, n_cells, first_cell, first_point;
} cell_list;

static const grvi_vtk_section listed_sections[4] = {GRVI_VTK_VERTS, GRVI_VTK_LINES, GRVI_VTK_POLYS,
                                                    GRVI_VTK_STRIPS};

/* Finds the arrays of a list. */
static grv_status find_list(const assembly *a, grvi_vtk_section section, int64_t piece,
                            int64_t n_cells, cell_list *list)
{
    const grvi_vtk_document *const d = a->document;
    *list = (cell_list){.piece = piece, .n_cells = n_cells};
    list->offsets = grvi_vtk_find(d, section, piece, "offsets");
    list->connectivity = grvi_vtk_find(d, section, piece, "connectivity");
    if (section == GRVI_VTK_CELLS) list->types = grvi_vtk_find(d, section, piece, "types");
    GRV_CHECK(list->offsets != NULL && list->connectivity != NULL &&
                  (section != GRVI_VTK_CELLS || list->types != NULL),
              GRV_E_FORMAT, "%s: piece %lld has %lld cells of a kind, but no array '%s' of them",
              d->file->path, (long long)piece, (long long)n_cells,
              list->offsets == NULL        ? "offsets"
              : list->connectivity == NULL ? "connectivity"
                                           : "types");
    GRV_TRY(grvi_vtk_array_check(d, list->offsets, n_cells));
    if (list->types != NULL) GRV_TRY(grvi_vtk_array_check(d, list->types, n_cells));
    return GRV_OK;
}

/* Calls visit for each list of cells that is not empty, in the order of the mesh's cells. */
typedef grv_status visit_list(const assembly *a, grvi_vtk_section section, cell_list *list);

static grv_status for_lists(const assembly *a, visit_list *visit)
{
    int64_t first_cell = 0, first_point = 0;
    for (int64_t piece = 0; piece < a->document->n_pieces; piece++) {
        const bool is_surface = a->mesh->kind == GRV_MESH_SURFACE;
        for (int i = 0; i < (is_surface ? 4 : 1); i++) {
            const grvi_vtk_section section = is_surface ? listed_sections[i] : GRVI_VTK_CELLS;
            const int64_t n_cells =
                is_surface ? a->document->pieces[piece].n_listed[i] : cells_of(a, piece);
            cell_list list;
            if (n_cells == 0) continue;
            GRV_TRY(find_list(a, section, piece, n_cells, &list));
            list.first_cell = first_cell;
            list.first_point = first_point;
            GRV_TRY(visit(a, section, &list));
            first_cell += n_cells;
        }
        first_point += points_of(a, piece);
    }
    return GRV_OK;
}

static grv_status count_cells(const assembly *a, grvi_vtk_section section, cell_list *list)
{
    (void)section;
    a->mesh->n_cells += list->n_cells;
    return GRV_OK;
}

/* Ends of the cells, counted from the start of the mesh's connectivity. */
static grv_status read_offsets(const assembly *a, grvi_vtk_section section, cell_list *list)
{
    int64_t *const begin = a->mesh->offsets + list->first_cell, *const ends = begin + 1,
                   first_id = *begin;
    (void)section;
    GRV_TRY(
        grvi_vtk_array_decode_i64(a->document, list->offsets, a->n_threads, list->n_cells, ends));
    const int64_t bad = grvi_find_bad_end(ends, list->n_cells, INT64_MAX / 64);
    GRV_CHECK(bad < 0, GRV_E_FORMAT, GRVI_WHERE "value %lld is %lld, offsets must ascend",
              GRVI_WHERE_OF(&list->offsets->where), (long long)bad, (long long)ends[bad]);
    GRV_TRY(grvi_vtk_array_check(a->document, list->connectivity, ends[list->n_cells - 1]));
    if (first_id > 0)
        for (int64_t i = 0; i < list->n_cells; i++) ends[i] += first_id;
    return GRV_OK;
}

static void set_listed_types(grv_mesh *mesh, grvi_vtk_section section, const cell_list *list)
{
    for (int64_t i = list->first_cell; i < list->first_cell + list->n_cells; i++) {
        const int64_t n = mesh->offsets[i + 1] - mesh->offsets[i];
        mesh->types[i] = section == GRVI_VTK_VERTS
                             ? (n == 1 ? GRV_CELL_VERTEX : GRV_CELL_POLY_VERTEX)
                         : section == GRVI_VTK_LINES ? (n == 2 ? GRV_CELL_LINE : GRV_CELL_POLY_LINE)
                         : section == GRVI_VTK_POLYS ? grvi_polygon_type(n)
                                                     : GRV_CELL_TRIANGLE_STRIP;
    }
}

static grv_status read_types(const assembly *a, const cell_list *list)
{
    const grvi_vtk_array *const types = list->types;
    uint8_t *const out = a->mesh->types + list->first_cell;
    int64_t *wide = NULL;
    if (types->type == GRV_STORE_U8 || types->type == GRV_STORE_I8)
        return grvi_vtk_array_decode(a->document, types, a->n_threads, list->n_cells, out);
    GRV_TRY(GRVI_ALLOC(&wide, list->n_cells));
    grv_status status =
        grvi_vtk_array_decode_i64(a->document, types, a->n_threads, list->n_cells, wide);
    for (int64_t i = 0; i < list->n_cells && status == GRV_OK; i++) {
        if (wide[i] < 0 || wide[i] > UINT8_MAX)
            status = grvi_fail(GRV_E_FORMAT, __FILE__, __LINE__, __func__,
                               GRVI_WHERE "value %lld: %lld is no type of cell",
                               GRVI_WHERE_OF(&types->where), (long long)i, (long long)wide[i]);
        out[i] = (uint8_t)wide[i];
    }
    grv_free(wide);
    return status;
}

static grv_status read_connectivity(const assembly *a, grvi_vtk_section section, cell_list *list)
{
    grv_mesh *const mesh = a->mesh;
    int64_t *const ids = mesh->connectivity + mesh->offsets[list->first_cell];
    const int64_t n =
        mesh->offsets[list->first_cell + list->n_cells] - mesh->offsets[list->first_cell];
    const int64_t n_points = points_of(a, list->piece);
    GRV_TRY(grvi_vtk_array_decode_i64(a->document, list->connectivity, a->n_threads, n, ids));
    const int64_t bad = grvi_find_bad_id(ids, n, n_points, list->first_point);
    GRV_CHECK(bad < 0, GRV_E_FORMAT, GRVI_WHERE "value %lld is %lld, there are %lld points",
              GRVI_WHERE_OF(&list->connectivity->where), (long long)bad, (long long)ids[bad],
              (long long)n_points);
    if (section != GRVI_VTK_CELLS) {
        set_listed_types(mesh, section, list);
        return GRV_OK;
    }
    return read_types(a, list);
}

static grv_status read_cells(const assembly *a)
{
    grv_mesh *const mesh = a->mesh;
    GRV_TRY(for_lists(a, count_cells));
    const int64_t n_cells = mesh->n_cells;
    mesh->n_cells = 0; /* until they are there */
    GRV_TRY(GRVI_ALLOC(&mesh->offsets, n_cells + 1));
    mesh->offsets[0] = 0;
    GRV_TRY(for_lists(a, read_offsets));
    GRV_TRY(GRVI_ALLOC(&mesh->connectivity, mesh->offsets[n_cells]));
    GRV_TRY(GRVI_ALLOC(&mesh->types, n_cells));
    GRV_TRY(for_lists(a, read_connectivity));
    mesh->n_cells = n_cells;
    return mesh->kind == GRV_MESH_CELLS ? grvi_vtk_read_polyhedra(a->document, a->n_threads, mesh)
                                        : GRV_OK;
}

/* ---- kinds ---- */

static grv_status check_grid(const assembly *a)
{
    const grvi_vtk_document *const d = a->document;
    int64_t n_points = 0, n_cells = 0;
    GRV_CHECK(d->n_pieces <= 1, GRV_E_UNSUPPORTED, "%s: a grid of %lld pieces", d->file->path,
              (long long)d->n_pieces);
    GRV_CHECK(d->n_pieces == 1, GRV_E_FORMAT, "%s: a grid without a piece", d->file->path);
    GRV_CHECK(grvi_mesh_extent_counts(d->pieces[0].extent, &n_points, &n_cells), GRV_E_FORMAT,
              "%s: the extent is none", d->file->path);
    memcpy(a->mesh->extent, d->pieces[0].extent, sizeof a->mesh->extent);
    memcpy(a->mesh->origin, d->origin, sizeof a->mesh->origin);
    memcpy(a->mesh->spacing, d->spacing, sizeof a->mesh->spacing);
    memcpy(a->mesh->direction, d->direction, sizeof a->mesh->direction);
    return GRV_OK;
}

static grv_status check_counts(const assembly *a)
{
    const grvi_vtk_document *const d = a->document;
    int64_t n_points = 0, n_cells = 0;
    for (int64_t i = 0; i < d->n_pieces; i++) {
        GRV_CHECK(d->pieces[i].n_points >= 0 &&
                      (a->mesh->kind == GRV_MESH_SURFACE || d->pieces[i].n_cells >= 0),
                  GRV_E_FORMAT, "%s: piece %lld does not say how many points or cells it has",
                  d->file->path, (long long)i);
        n_points += d->pieces[i].n_points;
        n_cells += cells_of(a, i);
        GRV_CHECK(n_points < INT64_MAX / 64 && n_cells < INT64_MAX / 64, GRV_E_FORMAT,
                  "%s: %lld points, %lld cells", d->file->path, (long long)n_points,
                  (long long)n_cells);
    }
    return GRV_OK;
}

/* What the kinds of file are made of. */
static grv_status assemble(const assembly *a)
{
    static const struct {
        const char *type;
        grv_mesh_kind kind;
        grv_status (*points)(const assembly *);
    } kinds[] = {{"PolyData", GRV_MESH_SURFACE, read_points},
                 {"UnstructuredGrid", GRV_MESH_CELLS, read_points},
                 {"ImageData", GRV_MESH_IMAGE, NULL},
                 {"StructuredGrid", GRV_MESH_STRUCTURED, read_points},
                 {"RectilinearGrid", GRV_MESH_RECTILINEAR, read_coordinates}};
    const grvi_vtk_document *const d = a->document;
    size_t i = 0;
    while (i < sizeof kinds / sizeof kinds[0] && !grvi_span_is(d->type, kinds[i].type)) i++;
    GRV_CHECK(i < sizeof kinds / sizeof kinds[0], GRV_E_UNSUPPORTED,
              "%s holds %.*s, which is no mesh of one file (collections: grv_mesh_collection_read)",
              d->file->path, (int)grvi_min_i64(d->type.n, 40), d->type.at);
    a->mesh->kind = kinds[i].kind;
    GRV_TRY(has_list(a) ? check_counts(a) : check_grid(a));
    if (kinds[i].points != NULL) GRV_TRY(kinds[i].points(a));
    if (has_list(a)) GRV_TRY(read_cells(a));
    GRV_TRY(read_data(a, GRVI_VTK_POINT_DATA, &a->mesh->point_data));
    GRV_TRY(read_data(a, GRVI_VTK_CELL_DATA, &a->mesh->cell_data));
    return read_field_data(a);
}

grv_status grvi_vtk_xml_read(const grvi_mesh_file *file, int n_threads, grv_mesh *mesh)
{
    grvi_vtk_document document;
    const assembly a = {&document, mesh, n_threads};
    grv_status status = grvi_vtk_document_read(file, &document);
    if (status == GRV_OK) status = assemble(&a);
    grvi_vtk_document_fini(&document);
    return status;
}
