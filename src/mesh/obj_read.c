/* Wavefront OBJ: vertices (with colours behind them), faces of any number of points, groups, objects and materials. Texture coordinates, normals,
 * lines, points, curves and faces of fewer than three points are passed over. Text in UTF-16 and lines continued by a backslash are made plain first. */
#define _GNU_SOURCE /* memmem */
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "mesh/mesh_impl.h"
#include "mesh/names.h"
#include "mesh/numbers.h"

enum { MAX_NAME = 4096 };

/* The first pass counts, the second stores. */
typedef struct obj_text {
    const char *path, *begin, *at, *end; /* at: of the line that is read */
    int64_t n_points, n_faces, n_corners, n_coloured;
    grvi_names parts, materials;
    int32_t part, material;
    grv_mesh *mesh; /* NULL: counting */
    double *colours;
    int32_t *part_of, *material_of;
} obj_text;

static long long byte_of(const obj_text *t, const char *at)
{
    return (long long)(at - t->begin);
}

/* ---- lines ---- */

/* v x y z, v x y z w, v x y z r g b */
static grv_status read_vertex(obj_text *t, const char *at, const char *end)
{
    double values[6];
    int n = 0;
    for (at = grvi_skip_blanks(at, end); at < end && n < 6; at = grvi_skip_blanks(at, end)) {
        const char *const word = at;
        GRV_CHECK(grvi_parse_double(&at, end, &values[n]) && (at == end || grvi_is_blank(*at)),
                  GRV_E_FORMAT, "%s: a number expected, '%.*s' found at byte %lld", t->path,
                  (int)grvi_min_i64(end - word, 16), word, byte_of(t, word));
        n++;
    }
    GRV_CHECK(n >= 3, GRV_E_FORMAT, "%s: a vertex of %d numbers at byte %lld", t->path, n,
              byte_of(t, at));
    if (t->mesh != NULL)
        memcpy((double *)t->mesh->points.data + 3 * t->n_points, values, 3 * sizeof *values);
    if (t->colours != NULL) memcpy(t->colours + 3 * t->n_points, values + 3, 3 * sizeof *values);
    t->n_coloured += n == 6;
    t->n_points++;
    return GRV_OK;
}

/* One corner "v/vt/vn": the point's number from 0. Forward references are checked at the end, when all points are known. */
static grv_status read_corner(const obj_text *t, const char **at, const char *end, int64_t *point)
{
    const char *const word = *at;
    GRV_CHECK(grvi_parse_i64(at, end, point) && (*at == end || grvi_is_blank(**at) || **at == '/'),
              GRV_E_FORMAT, "%s: the number of a vertex expected, '%.*s' found at byte %lld",
              t->path, (int)grvi_min_i64(end - word, 16), word, byte_of(t, word));
    GRV_CHECK(*point != 0 && *point >= -t->n_points, GRV_E_FORMAT,
              "%s: vertex %lld at byte %lld, where %lld vertices precede", t->path,
              (long long)*point, byte_of(t, word), (long long)t->n_points);
    *point += *point > 0 ? -1 : t->n_points;
    while (*at < end && !grvi_is_blank(**at)) (*at)++;
    return GRV_OK;
}

static grv_status read_face(obj_text *t, const char *at, const char *end)
{
    int64_t n = 0;
    for (at = grvi_skip_blanks(at, end); at < end; at = grvi_skip_blanks(at, end)) {
        int64_t point = 0;
        GRV_TRY(read_corner(t, &at, end, &point));
        /* corners of a face that is passed over are written over by the next */
        if (t->mesh != NULL && t->n_corners + n < t->mesh->offsets[0])
            t->mesh->connectivity[t->n_corners + n] = point;
        n++;
    }
    if (n < 3) return GRV_OK;
    if (t->mesh != NULL) {
        t->mesh->types[t->n_faces] = grvi_polygon_type(n);
        t->mesh->offsets[t->n_faces + 1] = t->n_corners + n;
    }
    if (t->part_of != NULL) t->part_of[t->n_faces] = t->part;
    if (t->material_of != NULL) t->material_of[t->n_faces] = t->material;
    t->n_faces++;
    t->n_corners += n;
    return GRV_OK;
}

static grv_status read_name(grvi_names *names, const char *at, const char *end, int32_t *number)
{
    at = grvi_skip_blanks(at, end);
    while (end > at && grvi_is_blank(end[-1])) end--;
    return grvi_names_number(names, at, grvi_min_i64(end - at, MAX_NAME), number);
}

static bool word_is(const char *word, const char *end, const char *expected)
{
    const size_t n = strlen(expected);
    return (size_t)(end - word) == n && memcmp(word, expected, n) == 0;
}

static grv_status read_line(obj_text *t, const char *at, const char *end)
{
    const char *const word = at = grvi_skip_blanks(at, end);
    while (at < end && !grvi_is_blank(*at)) at++;
    if (word_is(word, at, "v")) return read_vertex(t, at, end);
    if (word_is(word, at, "f") || word_is(word, at, "fo")) return read_face(t, at, end);
    if (word_is(word, at, "g") || word_is(word, at, "o"))
        return read_name(&t->parts, at, end, &t->part);
    if (word_is(word, at, "usemtl")) return read_name(&t->materials, at, end, &t->material);
    return GRV_OK; /* comments, vt, vn, s, mtllib, ... */
}

static grv_status read_lines(obj_text *t)
{
    t->n_points = t->n_faces = t->n_corners = t->n_coloured = 0;
    t->part = t->material = 0;
    for (const char *at = t->begin; at < t->end;) {
        const char *const newline = memchr(at, '\n', (size_t)(t->end - at));
        const char *const end = newline == NULL ? t->end : newline;
        GRV_TRY(read_line(t, at, end));
        at = end + 1;
    }
    return GRV_OK;
}

/* ---- mesh ---- */

static grv_status add_numbers(grv_mesh *mesh, const char *name, const char *names_name,
                              const grvi_names *names, int64_t n_faces, int32_t **numbers)
{
    grv_mesh_array *array = NULL;
    if (names->n <= 1) return GRV_OK; /* all faces are of the one without a name */
    GRV_TRY(grv_mesh_add_array(&mesh->cell_data, name, GRV_STORE_I32, 1, n_faces, NULL, &array));
    *numbers = array->data;
    return grvi_names_to_texts(names, names_name, mesh);
}

static grv_status check_corners(const obj_text *t)
{
    const grv_mesh *const mesh = t->mesh;
    for (int64_t i = 0; i < t->n_faces; i++) {
        for (int64_t j = mesh->offsets[i]; j < mesh->offsets[i + 1]; j++)
            GRV_CHECK(mesh->connectivity[j] < t->n_points, GRV_E_FORMAT,
                      "%s: face %lld has vertex %lld, there are %lld", t->path, (long long)i + 1,
                      (long long)mesh->connectivity[j] + 1, (long long)t->n_points);
    }
    return GRV_OK;
}

static grv_status store(obj_text *t, grv_mesh *mesh)
{
    static const char name[] = "Points";
    grv_mesh_array *colours = NULL;
    GRV_TRY(
        grvi_mesh_array_init(name, sizeof name - 1, GRV_STORE_F64, 3, t->n_points, &mesh->points));
    GRV_TRY(grvi_mesh_alloc_cells(mesh, t->n_faces, t->n_corners));
    if (t->n_coloured == t->n_points && t->n_points > 0) {
        GRV_TRY(grv_mesh_add_array(&mesh->point_data, "color", GRV_STORE_F64, 3, t->n_points, NULL,
                                   &colours));
        t->colours = colours->data;
    }
    GRV_TRY(add_numbers(mesh, "part", "part_names", &t->parts, t->n_faces, &t->part_of));
    GRV_TRY(add_numbers(mesh, "material", "material_names", &t->materials, t->n_faces,
                        &t->material_of));
    t->mesh = mesh;
    mesh->offsets[0] = t->n_corners; /* room for corners, while they are read */
    GRV_TRY(read_lines(t));
    mesh->offsets[0] = 0;
    return check_corners(t);
}

static grv_status read_plain(const char *path, const char *begin, int64_t n, grv_mesh *mesh)
{
    obj_text t = {.path = path, .begin = begin, .end = begin + n};
    int32_t none = 0;
    grv_status status = grvi_names_number(&t.parts, "", 0, &none);
    if (status == GRV_OK) status = grvi_names_number(&t.materials, "", 0, &none);
    if (status == GRV_OK) status = read_lines(&t);
    if (status == GRV_OK) status = store(&t, mesh);
    grvi_names_fini(&t.parts);
    grvi_names_fini(&t.materials);
    return status;
}

/* ---- text that is not plain ---- */

/* UTF-16 to UTF-8, three bytes at most for each unit; halves of pairs become '?'. */
static int64_t from_utf16(const uint8_t *in, int64_t n_units, bool big_endian, char *out)
{
    char *p = out;
    for (int64_t i = 0; i < n_units; i++) {
        const unsigned unit = big_endian ? (unsigned)in[2 * i] << 8 | in[2 * i + 1]
                                         : (unsigned)in[2 * i + 1] << 8 | in[2 * i];
        if (unit < 0x80) {
            *p++ = (char)unit;
        } else if (unit < 0x800) {
            *p++ = (char)(0xc0 | unit >> 6);
            *p++ = (char)(0x80 | (unit & 0x3f));
        } else if (unit >= 0xd800 && unit < 0xe000) {
            *p++ = '?';
        } else {
            *p++ = (char)(0xe0 | unit >> 12);
            *p++ = (char)(0x80 | (unit >> 6 & 0x3f));
            *p++ = (char)(0x80 | (unit & 0x3f));
        }
    }
    return p - out;
}

/* Joins lines that end in a backslash, in place. */
static int64_t join_lines(char *text, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        if (text[i] == '\\' && i + 1 < n && text[i + 1] == '\n')
            i++;
        else if (text[i] == '\\' && i + 2 < n && text[i + 1] == '\r' && text[i + 2] == '\n')
            i += 2;
        else
            text[kept++] = text[i];
    }
    return kept;
}

grv_status grvi_obj_read(const grvi_mesh_file *file, int n_threads, grv_mesh *mesh)
{
    enum { UTF8_BYTES = 3, LOOK_BYTES = 1024 };
    char *plain = NULL;
    int64_t n = file->n_bytes;
    (void)n_threads;
    const bool is_big = n >= 2 && memcmp(file->data, "\xfe\xff", 2) == 0,
               is_little = n >= 2 && memcmp(file->data, "\xff\xfe", 2) == 0;
    GRV_CHECK(is_big || is_little ||
                  memchr(file->data, '\0', (size_t)grvi_min_i64(n, LOOK_BYTES)) == NULL,
              GRV_E_FORMAT, "%s: OBJ is text, binary data found", file->path);
    if (!is_big && !is_little && memmem(file->data, (size_t)n, "\\\n", 2) == NULL &&
        memmem(file->data, (size_t)n, "\\\r\n", 3) == NULL)
        return read_plain(file->path, (const char *)file->data, n, mesh);
    if (is_big || is_little) {
        GRV_TRY(grvi_alloc(n / 2, UTF8_BYTES, (void **)&plain));
        n = from_utf16(file->data + 2, n / 2 - 1, is_big, plain);
    } else {
        GRV_TRY(grvi_alloc(n, 1, (void **)&plain));
        memcpy(plain, file->data, (size_t)n);
    }
    const grv_status status = read_plain(file->path, plain, join_lines(plain, n), mesh);
    grv_free(plain);
    return status;
}
