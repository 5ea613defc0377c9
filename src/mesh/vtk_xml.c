/* Tags of a VTK XML file: encoding, pieces, and where each array stands. Tags end where appended data begin. */
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/numbers.h"
#include "mesh/vtk_xml.h"

/* what files may have at most; pieces and their arrays are looked for one in the other */
enum {
    MAX_DEPTH = 16,
    MAX_COMPONENTS = 1 << 16,
    MAX_ELEMENTS = 1 << 20,
    MAX_PIECE_ARRAYS = 1 << 14
};

/* ---- attributes ---- */

/* Where the reader is. */
typedef struct xml_reading {
    grvi_vtk_document *document;
    grvi_xml xml;
    grvi_span open[MAX_DEPTH]; /* names of the open elements */
    int depth;
} xml_reading;

static long long byte_of(const xml_reading *r, const grvi_xml_tag *tag)
{
    return (long long)(tag->at - r->xml.begin);
}

/* Integers of an attribute; true if it is there. */
static grv_status get_integers(const xml_reading *r, const grvi_xml_tag *tag, const char *name,
                               int n, int64_t *values, bool *found)
{
    grvi_span span;
    *found = grvi_xml_attribute(tag, name, &span) && span.n > 0;
    if (!*found) return GRV_OK;
    const char *at = span.at, *const end = grvi_span_end(span);
    for (int i = 0; i < n; i++) {
        at = grvi_skip_blanks(at, end);
        GRV_CHECK(grvi_parse_i64(&at, end, &values[i]), GRV_E_FORMAT,
                  "%s: %s=\"%.*s\" at byte %lld: %d integers expected", r->xml.path, name,
                  (int)grvi_min_i64(span.n, 40), span.at, byte_of(r, tag), n);
    }
    return GRV_OK;
}

static grv_status get_doubles(const xml_reading *r, const grvi_xml_tag *tag, const char *name,
                              int n, double *values)
{
    grvi_span span;
    if (!grvi_xml_attribute(tag, name, &span)) return GRV_OK;
    const char *at = span.at, *const end = grvi_span_end(span);
    for (int i = 0; i < n; i++) {
        at = grvi_skip_blanks(at, end);
        GRV_CHECK(grvi_parse_double(&at, end, &values[i]), GRV_E_FORMAT,
                  "%s: %s=\"%.*s\" at byte %lld: %d numbers expected", r->xml.path, name,
                  (int)grvi_min_i64(span.n, 40), span.at, byte_of(r, tag), n);
    }
    return GRV_OK;
}

static grv_status get_count(const xml_reading *r, const grvi_xml_tag *tag, const char *name,
                            int64_t absent, int64_t *value)
{
    bool found = false;
    *value = absent;
    GRV_TRY(get_integers(r, tag, name, 1, value, &found));
    GRV_CHECK(!found || (*value >= 0 && *value <= INT64_MAX / 64), GRV_E_FORMAT,
              "%s: %s=\"%lld\" at byte %lld", r->xml.path, name, (long long)*value,
              byte_of(r, tag));
    return GRV_OK;
}

/* ---- elements ---- */

static grv_status read_root(xml_reading *r, const grvi_xml_tag *tag)
{
    static const struct {
        const char *name;
        grvi_block_kind block;
    } compressors[] = {{"vtkZLibDataCompressor", GRVI_BLOCK_ZLIB},
                       {"vtkLZ4DataCompressor", GRVI_BLOCK_LZ4},
                       {"vtkLZMADataCompressor", GRVI_BLOCK_XZ}};
    grvi_vtk_document *const d = r->document;
    grvi_span value;
    (void)grvi_xml_attribute(tag, "type", &d->type);
    d->encoding.big_endian =
        grvi_xml_attribute(tag, "byte_order", &value) && grvi_span_is(value, "BigEndian");
    d->encoding.word_bytes = 4;
    if (grvi_xml_attribute(tag, "header_type", &value) && value.n > 0) {
        const bool is_wide = grvi_span_is(value, "UInt64");
        GRV_CHECK(is_wide || grvi_span_is(value, "UInt32"), GRV_E_FORMAT,
                  "%s: header_type UInt32 or UInt64 expected, '%.*s' found", r->xml.path,
                  (int)grvi_min_i64(value.n, 40), value.at);
        if (is_wide) d->encoding.word_bytes = 8;
    }
    if (!grvi_xml_attribute(tag, "compressor", &value) || value.n == 0) return GRV_OK;
    d->encoding.compressed = true;
    for (size_t i = 0; i < sizeof compressors / sizeof compressors[0]; i++) {
        d->encoding.block = compressors[i].block;
        if (grvi_span_is(value, compressors[i].name)) return GRV_OK;
    }
    GRV_FAIL(GRV_E_UNSUPPORTED, "%s: compressor '%.*s'", r->xml.path,
             (int)grvi_min_i64(value.n, 60), value.at);
}

static grv_status read_grid(xml_reading *r, const grvi_xml_tag *tag)
{
    bool found = false;
    grvi_vtk_document *const d = r->document;
    GRV_TRY(get_integers(r, tag, "WholeExtent", 6, d->extent, &found));
    GRV_TRY(get_doubles(r, tag, "Origin", 3, d->origin));
    GRV_TRY(get_doubles(r, tag, "Spacing", 3, d->spacing));
    return get_doubles(r, tag, "Direction", 9, d->direction);
}

/* Room for one more in a list that doubles. */
static grv_status grow(void **list, size_t size, int64_t n, const xml_reading *r)
{
    GRV_CHECK(n < MAX_ELEMENTS, GRV_E_UNSUPPORTED, "%s: more than %d pieces or arrays", r->xml.path,
              MAX_ELEMENTS);
    if (*list != NULL && (n & (n - 1)) != 0) return GRV_OK;
    return grvi_realloc(n == 0 ? 1 : 2 * n, size, list);
}

static grv_status read_piece(xml_reading *r, const grvi_xml_tag *tag)
{
    static const char *const lists[] = {"NumberOfVerts", "NumberOfLines", "NumberOfPolys",
                                        "NumberOfStrips"};
    grvi_vtk_document *const d = r->document;
    grvi_vtk_piece piece = {.first_array = d->n_arrays};
    bool found = false;
    GRV_TRY(get_count(r, tag, "NumberOfPoints", -1, &piece.n_points));
    GRV_TRY(get_count(r, tag, "NumberOfCells", -1, &piece.n_cells));
    for (int i = 0; i < 4; i++) GRV_TRY(get_count(r, tag, lists[i], 0, &piece.n_listed[i]));
    memcpy(piece.extent, d->extent, sizeof piece.extent);
    GRV_TRY(get_integers(r, tag, "Extent", 6, piece.extent, &found));
    GRV_TRY(grow((void **)&d->pieces, sizeof *d->pieces, d->n_pieces, r));
    d->pieces[d->n_pieces++] = piece;
    return GRV_OK;
}

static grvi_vtk_section section_of(const xml_reading *r)
{
    static const struct {
        const char *name;
        grvi_vtk_section section;
    } sections[] = {{"Points", GRVI_VTK_POINTS},      {"Coordinates", GRVI_VTK_COORDINATES},
                    {"Cells", GRVI_VTK_CELLS},        {"Verts", GRVI_VTK_VERTS},
                    {"Lines", GRVI_VTK_LINES},        {"Polys", GRVI_VTK_POLYS},
                    {"Strips", GRVI_VTK_STRIPS},      {"PointData", GRVI_VTK_POINT_DATA},
                    {"CellData", GRVI_VTK_CELL_DATA}, {"FieldData", GRVI_VTK_FIELD_DATA}};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0] && r->depth > 0; i++)
        if (grvi_span_is(r->open[r->depth - 1], sections[i].name)) return sections[i].section;
    return GRVI_VTK_NOWHERE;
}

static grv_status read_type(const xml_reading *r, const grvi_xml_tag *tag, grvi_vtk_array *a)
{
    static const struct {
        const char *name;
        grv_store_type type;
    } types[] = {{"Int8", GRV_STORE_I8},     {"UInt8", GRV_STORE_U8},   {"Int16", GRV_STORE_I16},
                 {"UInt16", GRV_STORE_U16},  {"Int32", GRV_STORE_I32},  {"UInt32", GRV_STORE_U32},
                 {"Int64", GRV_STORE_I64},   {"UInt64", GRV_STORE_U64}, {"Float32", GRV_STORE_F32},
                 {"Float64", GRV_STORE_F64}, {"String", GRV_STORE_U8}};
    grvi_span value;
    (void)grvi_xml_attribute(tag, "type", &value);
    a->is_text = grvi_span_is(value, "String");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        a->type = types[i].type;
        if (grvi_span_is(value, types[i].name)) return GRV_OK;
    }
    GRV_FAIL(GRV_E_UNSUPPORTED, GRVI_WHERE "type '%.*s' of %s", GRVI_WHERE_OF(&a->where),
             (int)grvi_min_i64(value.n, 40), value.at, r->xml.path);
}

/* Inline data: the text up to the next tag, or behind a child that stands before it. */
static grv_status take_text(xml_reading *r, const grvi_xml_tag *tag, grvi_vtk_array *a)
{
    grvi_xml_tag inner;
    int depth = 0;
    if (tag->is_empty) return GRV_OK;
    for (;;) {
        const char *const from = grvi_skip_blanks(r->xml.at, r->xml.end);
        GRV_TRY(grvi_xml_next(&r->xml, &inner));
        GRV_CHECK(inner.kind != GRVI_XML_END, GRV_E_FORMAT, GRVI_WHERE "its element has no end",
                  GRVI_WHERE_OF(&a->where));
        if (depth == 0 && a->text.n == 0 && inner.at > from)
            a->text = (grvi_span){from, inner.at - from};
        if (inner.kind == GRVI_XML_OPEN && !inner.is_empty) depth++;
        if (inner.kind == GRVI_XML_CLOSE && depth-- == 0) return GRV_OK;
    }
}

static grv_status read_format(xml_reading *r, const grvi_xml_tag *tag, grvi_vtk_array *a)
{
    grvi_span value;
    const bool stated = grvi_xml_attribute(tag, "format", &value) && value.n > 0;
    a->is_ascii = !stated || grvi_span_is(value, "ascii");
    a->is_appended = grvi_span_is(value, "appended");
    GRV_CHECK(a->is_ascii || a->is_appended || grvi_span_is(value, "binary"), GRV_E_UNSUPPORTED,
              GRVI_WHERE "format '%.*s'", GRVI_WHERE_OF(&a->where), (int)grvi_min_i64(value.n, 40),
              value.at);
    GRV_TRY(get_count(r, tag, "offset", -1, &a->offset));
    GRV_CHECK(!a->is_appended || a->offset >= 0, GRV_E_FORMAT,
              GRVI_WHERE "no offset of its appended data", GRVI_WHERE_OF(&a->where));
    return GRV_OK;
}

static grv_status read_array(xml_reading *r, const grvi_xml_tag *tag)
{
    grvi_vtk_document *const d = r->document;
    grvi_vtk_array a = {.section = section_of(r),
                        .where = {.path = r->xml.path, .at = tag->at - r->xml.begin},
                        .text = {"", 0}};
    int64_t n_components = 0;
    (void)grvi_xml_attribute(tag, "Name", &a.where.name);
    if (a.section != GRVI_VTK_NOWHERE) {
        GRV_TRY(read_type(r, tag, &a));
        GRV_TRY(read_format(r, tag, &a));
    }
    GRV_TRY(get_count(r, tag, "NumberOfComponents", 1, &n_components));
    GRV_TRY(get_count(r, tag, "NumberOfTuples", -1, &a.n_tuples));
    GRV_CHECK(n_components <= MAX_COMPONENTS, GRV_E_FORMAT, GRVI_WHERE "%lld components",
              GRVI_WHERE_OF(&a.where), (long long)n_components);
    a.n_components = (int)grvi_max_i64(n_components, 1);
    GRV_TRY(take_text(r, tag, &a));
    if (a.section == GRVI_VTK_NOWHERE) return GRV_OK; /* below an element that we do not know */
    a.piece = a.section == GRVI_VTK_FIELD_DATA ? -1 : d->n_pieces - 1;
    GRV_CHECK(a.section == GRVI_VTK_FIELD_DATA || a.piece >= 0, GRV_E_FORMAT,
              GRVI_WHERE "it stands outside a Piece", GRVI_WHERE_OF(&a.where));
    GRV_CHECK(a.piece < 0 || d->n_arrays - d->pieces[a.piece].first_array < MAX_PIECE_ARRAYS,
              GRV_E_UNSUPPORTED, GRVI_WHERE "more than %d arrays of a piece",
              GRVI_WHERE_OF(&a.where), MAX_PIECE_ARRAYS);
    GRV_TRY(grow((void **)&d->arrays, sizeof *d->arrays, d->n_arrays, r));
    d->arrays[d->n_arrays++] = a;
    return GRV_OK;
}

static grv_status read_appended(xml_reading *r, const grvi_xml_tag *tag)
{
    grvi_span value;
    const char *const mark = memchr(r->xml.at, '_', (size_t)(r->xml.end - r->xml.at));
    GRV_CHECK(mark != NULL, GRV_E_FORMAT, "%s: no '_' after the tag AppendedData at byte %lld",
              r->xml.path, byte_of(r, tag));
    r->document->appended_base64 =
        !grvi_xml_attribute(tag, "encoding", &value) || grvi_span_is(value, "base64");
    GRV_CHECK(r->document->appended_base64 || grvi_span_is(value, "raw"), GRV_E_UNSUPPORTED,
              "%s: encoding '%.*s' of the appended data", r->xml.path,
              (int)grvi_min_i64(value.n, 40), value.at);
    r->document->appended_at = mark + 1 - r->xml.begin;
    return GRV_OK;
}

static grv_status open_element(xml_reading *r, const grvi_xml_tag *tag)
{
    if (r->depth == 0) {
        GRV_CHECK(grvi_span_is(tag->name, "VTKFile"), GRV_E_FORMAT,
                  "%s: root element VTKFile expected, '%.*s' found at byte %lld", r->xml.path,
                  (int)grvi_min_i64(tag->name.n, 40), tag->name.at, byte_of(r, tag));
        GRV_TRY(read_root(r, tag));
    }
    if (r->depth == 1 && grvi_span_is(tag->name, "AppendedData")) return read_appended(r, tag);
    if (grvi_span_is(tag->name, "DataArray") || grvi_span_is(tag->name, "Array"))
        return read_array(r, tag);
    if (r->depth == 1) GRV_TRY(read_grid(r, tag));
    if (r->depth == 2 && grvi_span_is(tag->name, "Piece")) GRV_TRY(read_piece(r, tag));
    if (tag->is_empty) return GRV_OK;
    GRV_CHECK(r->depth < MAX_DEPTH, GRV_E_FORMAT,
              "%s: more than %d elements inside each other at byte %lld", r->xml.path, MAX_DEPTH,
              byte_of(r, tag));
    r->open[r->depth++] = tag->name;
    return GRV_OK;
}

static grv_status close_element(xml_reading *r, const grvi_xml_tag *tag)
{
    const grvi_span *const top = r->depth > 0 ? &r->open[r->depth - 1] : NULL;
    GRV_CHECK(top != NULL && top->n == tag->name.n &&
                  memcmp(top->at, tag->name.at, (size_t)top->n) == 0,
              GRV_E_FORMAT, "%s: '</%.*s>' at byte %lld closes nothing", r->xml.path,
              (int)grvi_min_i64(tag->name.n, 40), tag->name.at, byte_of(r, tag));
    r->depth--;
    return GRV_OK;
}

grv_status grvi_vtk_document_read(const grvi_mesh_file *file, grvi_vtk_document *document)
{
    const char *const begin = (const char *)file->data;
    xml_reading r = {.document = document,
                     .xml = {file->path, begin, begin, begin + file->n_bytes}};
    *document = (grvi_vtk_document){.file = file,
                                    .appended_at = -1,
                                    .spacing = {1, 1, 1},
                                    .direction = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    bool is_closed = false;
    while (!is_closed && document->appended_at < 0) {
        grvi_xml_tag tag;
        GRV_TRY(grvi_xml_next(&r.xml, &tag));
        GRV_CHECK(tag.kind != GRVI_XML_END, GRV_E_FORMAT, "%s: it ends inside <%.*s>", file->path,
                  r.depth > 0 ? (int)grvi_min_i64(r.open[r.depth - 1].n, 40) : 0,
                  r.depth > 0 ? r.open[r.depth - 1].at : "");
        GRV_TRY(tag.kind == GRVI_XML_OPEN ? open_element(&r, &tag) : close_element(&r, &tag));
        is_closed = r.depth == 0;
    }
    return GRV_OK;
}

void grvi_vtk_document_fini(grvi_vtk_document *document)
{
    grv_free(document->pieces);
    grv_free(document->arrays);
    *document = (grvi_vtk_document){0};
}

void grvi_vtk_arrays_of(const grvi_vtk_document *document, int64_t piece, int64_t *begin,
                        int64_t *end)
{
    *begin = document->pieces[piece].first_array;
    *end = piece + 1 < document->n_pieces ? document->pieces[piece + 1].first_array
                                          : document->n_arrays;
}

const grvi_vtk_array *grvi_vtk_find(const grvi_vtk_document *document, grvi_vtk_section section,
                                    int64_t piece, const char *name)
{
    int64_t begin = 0, end = 0;
    grvi_vtk_arrays_of(document, piece, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const grvi_vtk_array *const a = &document->arrays[i];
        if (a->section == section && (name == NULL || grvi_span_is(a->where.name, name))) return a;
    }
    return NULL;
}
