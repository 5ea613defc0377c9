/* STL, binary and text. Each facet has its own three points; normals are not kept, they are often wrong.
 * Binary: 80 bytes of header, number of facets, then 50 bytes a facet: normal, three points (12 floats), 16 bits. Little-endian.
 * A binary file may begin with "solid" like text, so size and NUL bytes decide. */
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/mesh_impl.h"
#include "mesh/names.h"
#include "mesh/numbers.h"

enum {
    HEADER_BYTES = 80,
    PREAMBLE_BYTES = 84,
    FACET_BYTES = 50,
    NORMAL_BYTES = 12,
    POINTS_BYTES = 36,
    MAX_NAME = 4096
};

/* n triangles of points 3 * i, 3 * i + 1, 3 * i + 2 */
static grv_status add_facets(grv_mesh *mesh, grv_store_type type, int64_t n)
{
    static const char name[] = "Points";
    GRV_TRY(grvi_mesh_array_init(name, sizeof name - 1, type, 3, 3 * n, &mesh->points));
    GRV_TRY(grvi_mesh_alloc_cells(mesh, n, 3 * n));
    for (int64_t i = 0; i < n; i++) mesh->offsets[i + 1] = 3 * (i + 1);
    for (int64_t i = 0; i < 3 * n; i++) mesh->connectivity[i] = i;
    memset(mesh->types, GRV_CELL_TRIANGLE, (size_t)n);
    return GRV_OK;
}

/* ---- binary ---- */

static int64_t facets_announced(const grvi_mesh_file *file)
{
    uint32_t n = 0;
    memcpy(&n, file->data + HEADER_BYTES, sizeof n);
    return n;
}

static grv_status read_binary(const grvi_mesh_file *file, grv_mesh *mesh)
{
    const int64_t n = facets_announced(file);
    uint16_t *attributes = NULL, any = 0;
    GRV_CHECK(n <= (file->n_bytes - PREAMBLE_BYTES) / FACET_BYTES, GRV_E_FORMAT,
              "%s: STL of %lld facets: %lld bytes expected, %lld found", file->path, (long long)n,
              (long long)(PREAMBLE_BYTES + n * FACET_BYTES), (long long)file->n_bytes);
    GRV_TRY(add_facets(mesh, GRV_STORE_F32, n));
    GRV_TRY(GRVI_ALLOC(&attributes, n));
    const uint8_t *facet = file->data + PREAMBLE_BYTES;
    uint8_t *points = mesh->points.data;
    for (int64_t i = 0; i < n; i++, facet += FACET_BYTES, points += POINTS_BYTES) {
        memcpy(points, facet + NORMAL_BYTES, POINTS_BYTES);
        memcpy(&attributes[i], facet + NORMAL_BYTES + POINTS_BYTES, sizeof *attributes);
        any |= attributes[i];
    }
    const grv_status status = any == 0 ? GRV_OK
                                       : grv_mesh_add_array(&mesh->cell_data, "attribute",
                                                            GRV_STORE_U16, 1, n, attributes, NULL);
    grv_free(attributes);
    return status;
}

/* ---- text ---- */

/* The first pass counts, the second stores. */
typedef struct stl_text {
    const grvi_mesh_file *file;
    const char *at, *end;
    int64_t n_facets;
    int n_corners; /* of the facet that is open; -1: none is */
    grvi_names *solids;
    double *points; /* NULL: counting */
    int32_t *parts;
} stl_text;

static bool word_is(const char *word, const char *end, const char *expected)
{
    const size_t n = strlen(expected);
    return (size_t)(end - word) == n && strncasecmp(word, expected, n) == 0;
}

static const char *line_end(const stl_text *t)
{
    const char *const newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
    return newline == NULL ? t->end : newline;
}

static grv_status begin_solid(stl_text *t)
{
    const char *end = line_end(t);
    const char *const name = grvi_skip_blanks(t->at, end);
    t->at = end;
    while (end > name && grvi_is_blank(end[-1])) end--;
    return t->points == NULL ? grvi_names_add(t->solids, name, grvi_min_i64(end - name, MAX_NAME))
                             : GRV_OK;
}

static grv_status read_vertex(stl_text *t, const char *word)
{
    GRV_CHECK(t->n_corners >= 0 && t->n_corners < 3, GRV_E_FORMAT, "%s: a vertex %s at byte %lld",
              t->file->path, t->n_corners < 0 ? "outside a facet" : "too many of a facet",
              (long long)(word - (const char *)t->file->data));
    for (int axis = 0; axis < 3; axis++) {
        double value = 0;
        t->at = grvi_skip_blanks(t->at, t->end);
        const char *const number = t->at;
        GRV_CHECK(grvi_parse_double(&t->at, t->end, &value) &&
                      (t->at == t->end || grvi_is_blank(*t->at)),
                  GRV_E_FORMAT, "%s: a vertex of three numbers expected, '%.*s' found at byte %lld",
                  t->file->path, (int)grvi_min_i64(t->end - number, 16), number,
                  (long long)(number - (const char *)t->file->data));
        if (t->points != NULL) t->points[9 * t->n_facets + 3 * t->n_corners + axis] = value;
    }
    t->n_corners++;
    return GRV_OK;
}

static grv_status end_facet(stl_text *t, const char *word)
{
    GRV_CHECK(t->n_corners == 3, GRV_E_FORMAT, "%s: a facet that ends at byte %lld has %d vertices",
              t->file->path, (long long)(word - (const char *)t->file->data),
              t->n_corners < 0 ? 0 : t->n_corners);
    t->n_corners = -1;
    t->n_facets++;
    return GRV_OK;
}

static grv_status begin_facet(stl_text *t, const char *word, int32_t part)
{
    GRV_CHECK(t->n_corners < 0, GRV_E_FORMAT, "%s: a facet begins inside another at byte %lld",
              t->file->path, (long long)(word - (const char *)t->file->data));
    t->n_corners = 0;
    if (t->parts != NULL) t->parts[t->n_facets] = part;
    return GRV_OK;
}

static grv_status read_words(stl_text *t)
{
    static const char *const ignored[] = {"outer", "loop", "endloop", "normal"};
    int32_t part = -1;
    t->at = (const char *)t->file->data;
    t->n_facets = 0;
    t->n_corners = -1;
    for (;;) {
        const char *const word = t->at = grvi_skip_blanks(t->at, t->end);
        if (t->at == t->end) break;
        while (t->at < t->end && !grvi_is_blank(*t->at)) t->at++;
        bool known = t->n_corners == 0; /* whatever is written as normal */
        for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
            known |= word_is(word, t->at, ignored[i]);
        if (word_is(word, t->at, "vertex")) {
            GRV_TRY(read_vertex(t, word));
        } else if (word_is(word, t->at, "facet")) {
            GRV_TRY(begin_facet(t, word, part < 0 ? 0 : part));
        } else if (word_is(word, t->at, "endfacet")) {
            GRV_TRY(end_facet(t, word));
        } else if (word_is(word, t->at, "solid")) {
            part++;
            GRV_TRY(begin_solid(t));
        } else if (word_is(word, t->at, "endsolid")) {
            t->at = line_end(t); /* the name again, or nothing */
        } else {
            GRV_CHECK(known, GRV_E_FORMAT, "%s: a word of STL expected, '%.*s' found at byte %lld",
                      t->file->path, (int)grvi_min_i64(t->at - word, 24), word,
                      (long long)(word - (const char *)t->file->data));
        }
    }
    GRV_CHECK(t->n_corners < 0, GRV_E_FORMAT, "%s: it ends inside a facet", t->file->path);
    return GRV_OK;
}

static grv_status store_text(stl_text *t, grv_mesh *mesh)
{
    const bool has_parts = t->solids->n > 1 || (t->solids->n == 1 && t->solids->lengths[0] > 0);
    grv_mesh_array *parts = NULL;
    GRV_TRY(add_facets(mesh, GRV_STORE_F64, t->n_facets));
    if (has_parts) {
        GRV_TRY(grv_mesh_add_array(&mesh->cell_data, "part", GRV_STORE_I32, 1, t->n_facets, NULL,
                                   &parts));
        GRV_TRY(grvi_names_to_texts(t->solids, "part_names", mesh));
        t->parts = parts->data;
    }
    t->points = mesh->points.data;
    return read_words(t);
}

static grv_status read_text(const grvi_mesh_file *file, grv_mesh *mesh)
{
    grvi_names solids = {0};
    stl_text t = {.file = file, .end = (const char *)file->data + file->n_bytes, .solids = &solids};
    grv_status status = read_words(&t);
    if (status == GRV_OK) status = store_text(&t, mesh);
    grvi_names_fini(&solids);
    return status;
}

/* Is the size that of the facets which a binary file announces? */
static bool fits_binary(const grvi_mesh_file *file)
{
    return file->n_bytes >= PREAMBLE_BYTES &&
           file->n_bytes == PREAMBLE_BYTES + facets_announced(file) * FACET_BYTES;
}

static bool begins_with_solid(const grvi_mesh_file *file)
{
    static const char solid[] = "solid";
    const char *const begin = (const char *)file->data, *const end = begin + file->n_bytes;
    const char *const first = grvi_skip_blanks(begin, end);
    return end - first >= (ptrdiff_t)sizeof solid - 1 &&
           strncasecmp(first, solid, sizeof solid - 1) == 0;
}

bool grvi_stl_is(const grvi_mesh_file *file)
{
    return begins_with_solid(file) || (fits_binary(file) && facets_announced(file) > 0);
}

grv_status grvi_stl_read(const grvi_mesh_file *file, int n_threads, grv_mesh *mesh)
{
    enum { LOOK_BYTES = 1024 };
    (void)n_threads;
    const bool is_text =
        begins_with_solid(file) &&
        memchr(file->data, '\0', (size_t)grvi_min_i64(file->n_bytes, LOOK_BYTES)) == NULL;
    if (is_text && !fits_binary(file)) {
        mesh->format = "STL text";
        return read_text(file, mesh);
    }
    GRV_CHECK(
        file->n_bytes >= PREAMBLE_BYTES, GRV_E_FORMAT,
        "%s: STL text begins with \"solid\", a binary file has %d bytes or more; %lld bytes found",
        file->path, PREAMBLE_BYTES, (long long)file->n_bytes);
    return read_binary(file, mesh);
}
