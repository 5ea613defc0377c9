/* Legacy VTK files, versions 1.0 to 5.1, text and binary: keywords in any order, each with its reader.
 * Binary values are big-endian and follow the line end of their keyword; blanks may stand behind them. */
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/text.h"
#include "grove/core.h"
#include "mesh/numbers.h"
#include "mesh/vtk_legacy.h"

enum { MAX_COMPONENTS = 1 << 16, MAX_ARRAYS = 1 << 16 };
static const int64_t most_values = INT64_MAX / 64;
static const grvi_legacy_type float_type = {GRV_STORE_F32, GRVI_LEGACY_PLAIN},
                              byte_type = {GRV_STORE_U8, GRVI_LEGACY_PLAIN};

/* What a file is being read into. */
typedef struct legacy_reading {
    grvi_legacy r;
    grv_mesh_arrays *list; /* of the attributes that are being read */
    int64_t n_tuples;      /* of them; -1: any */
    int64_t dimensions[3];
    bool has_dataset;
} legacy_reading;

/* ---- arrays ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Undoes the %-encoding of names; out has room for word.n */
static int64_t decode_name(grvi_span word, char *out)
{
    int64_t n = 0;
    for (int64_t i = 0; i < word.n; i++) {
        const bool is_code = word.at[i] == '%' && i + 2 < word.n &&
                             hex_digit(word.at[i + 1]) >= 0 && hex_digit(word.at[i + 2]) >= 0;
        out[n++] = is_code ? (char)(16 * hex_digit(word.at[i + 1]) + hex_digit(word.at[i + 2]))
                           : word.at[i];
        if (is_code) i += 2;
    }
    return n;
}

static grv_status add_array(legacy_reading *l, grvi_span word, grv_store_type type,
                            int64_t n_components, int64_t n_tuples, grv_mesh_array **array)
{
    char *name = NULL;
    GRV_CHECK(l->list->n < MAX_ARRAYS, GRV_E_UNSUPPORTED, "%s: more than %d arrays", l->r.path,
              MAX_ARRAYS);
    GRV_TRY(GRVI_ALLOC(&name, word.n));
    const int64_t n = decode_name(word, name);
    const grv_status status =
        grvi_mesh_arrays_add(l->list, name, n, type, (int)n_components, n_tuples, array);
    grv_free(name);
    return status;
}

/* Length of a binary string: 1, 2, 4 or 8 bytes, told by the two upper bits. */
static grv_status string_length(grvi_legacy *r, int64_t *n)
{
    uint64_t value = 0;
    const int64_t left = r->end - r->at;
    const int n_bytes = left > 0 ? 1 << (3 - ((uint8_t)*r->at >> 6)) : 1;
    GRV_CHECK(left >= n_bytes, GRV_E_FORMAT, "%s: the length of a string expected at byte %lld",
              r->path, grvi_legacy_byte(r, r->at));
    for (int i = 0; i < n_bytes; i++) value = value << 8 | (uint8_t)r->at[i];
    value &= ~((uint64_t)3 << (8 * n_bytes - 2));
    r->at += n_bytes;
    GRV_CHECK(value <= (uint64_t)(r->end - r->at), GRV_E_FORMAT,
              "%s: a string of %llu bytes at byte %lld", r->path, (unsigned long long)value,
              grvi_legacy_byte(r, r->at));
    *n = (int64_t)value;
    return GRV_OK;
}

static grv_status read_strings(legacy_reading *l, grvi_span word, int64_t n)
{
    grvi_legacy *const r = &l->r;
    grv_status status = GRV_OK;
    grvi_text all = {0};
    char *name = NULL;
    for (int64_t i = 0; i < n; i++) {
        int64_t n_bytes = 0;
        if (r->is_binary) {
            GRV_TRY_GOTO(string_length(r, &n_bytes));
            grvi_text_append_n(&all, r->at, n_bytes);
            r->at += n_bytes;
        } else {
            const char *const newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
            n_bytes = (newline == NULL ? r->end : newline) - r->at;
            GRV_TRY_GOTO(GRVI_ALLOC(&name, n_bytes));
            grvi_text_append_n(&all, name, decode_name((grvi_span){r->at, n_bytes}, name));
            grv_free(name);
            name = NULL;
            grvi_legacy_end_line(r);
        }
        grvi_text_append_n(&all, "", 1);
    }
    GRV_TRY_GOTO(grvi_text_status(&all));
    grv_mesh_array *array = NULL;
    GRV_TRY_GOTO(add_array(l, word, GRV_STORE_U8, 1, all.n, &array));
    memcpy(array->data, grvi_text_get(&all), (size_t)all.n);
    for (int64_t i = array->n_tuples = 0; i < all.n; i++) array->n_tuples += all.data[i] == '\0';
    array->is_text = true;
done:
    grv_free(name);
    grvi_text_fini(&all);
    return status;
}

/* Values of an array whose keyword line has been read. */
static grv_status read_array(legacy_reading *l, grvi_span word, grvi_legacy_type type,
                             int64_t n_components, int64_t n_tuples)
{
    int64_t n = 0;
    grv_mesh_array *array = NULL;
    GRV_CHECK(n_components >= 1 && n_components <= MAX_COMPONENTS &&
                  grvi_mul_i64(n_components, n_tuples, &n) && n <= most_values,
              GRV_E_FORMAT, "%s: array '%.*s' of %lld tuples of %lld components", l->r.path,
              (int)grvi_min_i64(word.n, 80), word.at, (long long)n_tuples, (long long)n_components);
    GRV_CHECK(l->n_tuples < 0 || n_tuples == l->n_tuples, GRV_E_FORMAT,
              "%s: array '%.*s': %lld tuples expected, %lld found", l->r.path,
              (int)grvi_min_i64(word.n, 80), word.at, (long long)l->n_tuples, (long long)n_tuples);
    GRV_TRY(grvi_legacy_room(&l->r, type, n, "an array"));
    GRV_CHECK(type.form != GRVI_LEGACY_STRINGS || l->n_tuples < 0, GRV_E_UNSUPPORTED,
              "%s: strings of points or cells, array '%.*s'", l->r.path,
              (int)grvi_min_i64(word.n, 80), word.at);
    if (type.form == GRVI_LEGACY_STRINGS) return read_strings(l, word, n);
    GRV_TRY(add_array(l, word, type.type, n_components, n_tuples, &array));
    return grvi_legacy_values(&l->r, type, n, array->name, array->data);
}

/* METADATA: ends at a line that is empty */
static grv_status skip_metadata(legacy_reading *l)
{
    for (bool more = true; more && l->r.at < l->r.end;) {
        grvi_legacy_end_line(&l->r);
        more = l->r.at < l->r.end && *l->r.at != '\n' && *l->r.at != '\r';
    }
    return GRV_OK;
}

/* FIELD name n, then n times: name, components, tuples, type, values. */
static grv_status read_field(legacy_reading *l)
{
    int64_t n = 0;
    (void)grvi_legacy_word(&l->r);
    GRV_TRY(grvi_legacy_count(&l->r, "a number of arrays", MAX_ARRAYS, &n));
    for (int64_t i = 0; i < n;) {
        grvi_legacy_type type;
        int64_t n_components = 0, n_tuples = 0;
        const grvi_span name = grvi_legacy_word(&l->r);
        if (grvi_legacy_is(name, "METADATA")) {
            GRV_TRY(skip_metadata(l));
            continue;
        }
        GRV_TRY(grvi_legacy_count(&l->r, "a number of components", MAX_COMPONENTS, &n_components));
        GRV_TRY(grvi_legacy_count(&l->r, "a number of tuples", most_values, &n_tuples));
        GRV_TRY(grvi_legacy_type_get(&l->r, &type));
        grvi_legacy_end_line(&l->r);
        GRV_TRY(read_array(l, name, type, grvi_max_i64(n_components, 1),
                           n_components == 0 ? 0 : n_tuples));
        i++;
    }
    return GRV_OK;
}

/* SCALARS name type [components], and the line LOOKUP_TABLE name */
static grv_status read_scalars(legacy_reading *l)
{
    grvi_legacy_type type;
    int64_t n_components = 1;
    const grvi_span name = grvi_legacy_word(&l->r);
    GRV_TRY(grvi_legacy_type_get(&l->r, &type));
    const char *p = l->r.at;
    while (p < l->r.end && (*p == ' ' || *p == '\t')) p++;
    if (p < l->r.end && *p >= '0' && *p <= '9')
        GRV_TRY(grvi_legacy_count(&l->r, "a number of components", MAX_COMPONENTS, &n_components));
    grvi_legacy_end_line(&l->r);
    const char *const values = l->r.at;
    if (grvi_legacy_is(grvi_legacy_word(&l->r), "LOOKUP_TABLE"))
        grvi_legacy_end_line(&l->r);
    else
        l->r.at = values; /* files without the line exist */
    return read_array(l, name, type, n_components, l->n_tuples);
}

/* name type, values of a fixed number of components */
static grv_status read_fixed(legacy_reading *l, int64_t n_components)
{
    grvi_legacy_type type;
    const grvi_span name = grvi_legacy_word(&l->r);
    GRV_TRY(grvi_legacy_type_get(&l->r, &type));
    grvi_legacy_end_line(&l->r);
    return read_array(l, name, type, n_components, l->n_tuples);
}

static grv_status read_texture_coordinates(legacy_reading *l)
{
    grvi_legacy_type type;
    int64_t n_components = 0;
    const grvi_span name = grvi_legacy_word(&l->r);
    GRV_TRY(grvi_legacy_count(&l->r, "a number of components", MAX_COMPONENTS, &n_components));
    GRV_TRY(grvi_legacy_type_get(&l->r, &type));
    grvi_legacy_end_line(&l->r);
    return read_array(l, name, type, n_components, l->n_tuples);
}

/* Colours in text are numbers from 0 to 1; they become bytes, as they are in binary files. */
static grv_status read_colour_text(legacy_reading *l, grv_mesh_array *array)
{
    for (int64_t i = 0; i < array->n_tuples * array->n_components; i++) {
        float value = 0;
        GRV_TRY(grvi_legacy_values(&l->r, float_type, 1, array->name, &value));
        ((uint8_t *)array->data)[i] = value <= 0   ? 0
                                      : value >= 1 ? UINT8_MAX
                                                   : (uint8_t)(255 * value + 0.5F);
    }
    return GRV_OK;
}

/* COLOR_SCALARS name components, and LOOKUP_TABLE name size: four components, of no point or cell. */
static grv_status read_colours(legacy_reading *l, bool is_table)
{
    int64_t n = 0, n_values = 0;
    grv_mesh_array *array = NULL;
    grv_mesh_arrays *const list = l->list;
    const grvi_span name = grvi_legacy_word(&l->r);
    GRV_TRY(grvi_legacy_count(&l->r, "a number of colours or components", MAX_COMPONENTS, &n));
    grvi_legacy_end_line(&l->r);
    const int64_t n_components = is_table ? 4 : grvi_max_i64(n, 1),
                  n_tuples = is_table ? n : l->n_tuples;
    GRV_CHECK(grvi_mul_i64(n_components, n_tuples, &n_values), GRV_E_FORMAT,
              "%s: %lld colours before byte %lld", l->r.path, (long long)n_tuples,
              grvi_legacy_byte(&l->r, l->r.at));
    GRV_TRY(grvi_legacy_room(&l->r, byte_type, n_values, "colours"));
    if (is_table) l->list = &l->r.mesh->field_data;
    grv_status status = add_array(l, name, GRV_STORE_U8, n_components, n_tuples, &array);
    l->list = list;
    if (status == GRV_OK)
        status = l->r.is_binary
                     ? grvi_legacy_values(&l->r, byte_type, n_values, array->name, array->data)
                     : read_colour_text(l, array);
    return status;
}

/* ---- geometry ---- */

static grv_status read_points(legacy_reading *l)
{
    static const char name[] = "Points";
    grvi_legacy_type type;
    int64_t n = 0;
    GRV_TRY(grvi_legacy_count(&l->r, "a number of points", most_values, &n));
    GRV_TRY(grvi_legacy_type_get(&l->r, &type));
    grvi_legacy_end_line(&l->r);
    GRV_CHECK(type.form == GRVI_LEGACY_PLAIN && l->r.mesh->points.data == NULL, GRV_E_FORMAT,
              "%s: POINTS before byte %lld %s", l->r.path, grvi_legacy_byte(&l->r, l->r.at),
              type.form == GRVI_LEGACY_PLAIN ? "are there twice" : "are no numbers");
    GRV_TRY(grvi_legacy_room(&l->r, type, 3 * n, "POINTS"));
    GRV_TRY(grvi_mesh_array_init(name, sizeof name - 1, type.type, 3, n, &l->r.mesh->points));
    GRV_TRY(grvi_legacy_values(&l->r, type, 3 * n, "POINTS", l->r.mesh->points.data));
    return grvi_mesh_points_to_real(&l->r.mesh->points);
}

static grv_status read_axis(legacy_reading *l, int axis)
{
    static const char *const names[3] = {"x", "y", "z"};
    grvi_legacy_type type;
    grv_mesh_array *const array = &l->r.mesh->coordinates[axis];
    int64_t n = 0;
    GRV_TRY(grvi_legacy_count(&l->r, "a number of coordinates", most_values, &n));
    GRV_TRY(grvi_legacy_type_get(&l->r, &type));
    grvi_legacy_end_line(&l->r);
    GRV_CHECK(type.form == GRVI_LEGACY_PLAIN && array->data == NULL && n == l->dimensions[axis],
              GRV_E_FORMAT, "%s: %lld coordinates along %s before byte %lld, DIMENSIONS say %lld",
              l->r.path, (long long)n, names[axis], grvi_legacy_byte(&l->r, l->r.at),
              (long long)l->dimensions[axis]);
    GRV_TRY(grvi_legacy_room(&l->r, type, n, "coordinates"));
    GRV_TRY(grvi_mesh_array_init(names[axis], 1, type.type, 1, n, array));
    return grvi_legacy_values(&l->r, type, n, "coordinates", array->data);
}

static grv_status read_dimensions(legacy_reading *l)
{
    int64_t n_points = 0, n_cells = 0;
    for (int i = 0; i < 3; i++) {
        GRV_TRY(grvi_legacy_count(&l->r, "a dimension", most_values, &l->dimensions[i]));
        l->r.mesh->extent[2 * i + 1] = l->dimensions[i] - 1;
    }
    GRV_CHECK(grvi_mesh_extent_counts(l->r.mesh->extent, &n_points, &n_cells), GRV_E_FORMAT,
              "%s: DIMENSIONS before byte %lld are too large", l->r.path,
              grvi_legacy_byte(&l->r, l->r.at));
    return GRV_OK;
}

static grv_status read_vector(legacy_reading *l, double values[3])
{
    for (int i = 0; i < 3; i++) {
        const grvi_span word = grvi_legacy_word(&l->r);
        const char *at = word.at;
        GRV_CHECK(grvi_parse_double(&at, grvi_span_end(word), &values[i]) &&
                      at == grvi_span_end(word),
                  GRV_E_FORMAT, "%s: three numbers expected, '%.*s' found at byte %lld", l->r.path,
                  (int)grvi_min_i64(word.n, 24), word.at, grvi_legacy_byte(&l->r, word.at));
    }
    return GRV_OK;
}

static grv_status read_dataset(legacy_reading *l)
{
    static const struct {
        const char *name;
        grv_mesh_kind kind;
    } kinds[] = {{"POLYDATA", GRV_MESH_SURFACE},
                 {"UNSTRUCTURED_GRID", GRV_MESH_CELLS},
                 {"STRUCTURED_POINTS", GRV_MESH_IMAGE},
                 {"STRUCTURED_GRID", GRV_MESH_STRUCTURED},
                 {"RECTILINEAR_GRID", GRV_MESH_RECTILINEAR}};
    const grvi_span word = grvi_legacy_word(&l->r);
    GRV_CHECK(!l->has_dataset, GRV_E_FORMAT, "%s: a second DATASET at byte %lld", l->r.path,
              grvi_legacy_byte(&l->r, word.at));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!grvi_legacy_is(word, kinds[i].name)) continue;
        l->r.mesh->kind = kinds[i].kind;
        l->has_dataset = true;
        return GRV_OK;
    }
    GRV_FAIL(GRV_E_UNSUPPORTED, "%s: DATASET '%.*s' at byte %lld", l->r.path,
             (int)grvi_min_i64(word.n, 40), word.at, grvi_legacy_byte(&l->r, word.at));
}

/* POINT_DATA n, CELL_DATA n */
static grv_status begin_attributes(legacy_reading *l, grv_mesh_arrays *list)
{
    GRV_TRY(grvi_legacy_count(&l->r, "a number of tuples", most_values, &l->n_tuples));
    l->list = list;
    return GRV_OK;
}

/* ---- keywords ---- */

static grv_status read_geometry(legacy_reading *l, grvi_span word, bool *known)
{
    static const char *const lists[] = {"VERTICES", "LINES", "POLYGONS", "TRIANGLE_STRIPS",
                                        "CELLS"};
    static const char *const axes[] = {"X_COORDINATES", "Y_COORDINATES", "Z_COORDINATES"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (grvi_legacy_is(word, lists[i])) return grvi_legacy_read_list(&l->r, lists[i]);
    for (int i = 0; i < 3; i++)
        if (grvi_legacy_is(word, axes[i])) return read_axis(l, i);
    if (grvi_legacy_is(word, "DATASET")) return read_dataset(l);
    if (grvi_legacy_is(word, "POINTS")) return read_points(l);
    if (grvi_legacy_is(word, "CELL_TYPES")) return grvi_legacy_read_cell_types(&l->r);
    if (grvi_legacy_is(word, "DIMENSIONS")) return read_dimensions(l);
    if (grvi_legacy_is(word, "ORIGIN")) return read_vector(l, l->r.mesh->origin);
    if (grvi_legacy_is(word, "SPACING") || grvi_legacy_is(word, "ASPECT_RATIO"))
        return read_vector(l, l->r.mesh->spacing);
    *known = false;
    return GRV_OK;
}

static grv_status read_attributes(legacy_reading *l, grvi_span word, bool *known)
{
    static const struct {
        const char *name;
        int64_t n_components;
    } fixed[] = {{"VECTORS", 3},    {"NORMALS", 3},      {"TENSORS", 9},   {"TENSORS6", 6},
                 {"GLOBAL_IDS", 1}, {"PEDIGREE_IDS", 1}, {"EDGE_FLAGS", 1}};
    *known = true;
    if (grvi_legacy_is(word, "POINT_DATA")) return begin_attributes(l, &l->r.mesh->point_data);
    if (grvi_legacy_is(word, "CELL_DATA")) return begin_attributes(l, &l->r.mesh->cell_data);
    if (grvi_legacy_is(word, "FIELD")) return read_field(l);
    if (grvi_legacy_is(word, "METADATA")) return skip_metadata(l);
    if (grvi_legacy_is(word, "LOOKUP_TABLE")) return read_colours(l, true);
    GRV_CHECK(l->n_tuples >= 0 || !grvi_legacy_is(word, "SCALARS"), GRV_E_FORMAT,
              "%s: SCALARS at byte %lld before POINT_DATA or CELL_DATA", l->r.path,
              grvi_legacy_byte(&l->r, word.at));
    if (l->n_tuples >= 0) {
        if (grvi_legacy_is(word, "SCALARS")) return read_scalars(l);
        if (grvi_legacy_is(word, "COLOR_SCALARS")) return read_colours(l, false);
        if (grvi_legacy_is(word, "TEXTURE_COORDINATES")) return read_texture_coordinates(l);
        for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
            if (grvi_legacy_is(word, fixed[i].name)) return read_fixed(l, fixed[i].n_components);
    }
    *known = false;
    return GRV_OK;
}

static grv_status read_heading(legacy_reading *l)
{
    static const char start[] = "# vtk DataFile";
    grvi_legacy *const r = &l->r;
    const char *const line = r->at;
    grvi_legacy_end_line(r);
    for (const char *at = line + sizeof start - 1; at < r->at && *at != '.'; at++)
        if (*at >= '0' && *at <= '9') r->major = 10 * (r->major % 1000) + (*at - '0');
    const char *const point = memchr(line, '.', (size_t)(r->at - line));
    if (point != NULL && point + 1 < r->at && point[1] >= '0' && point[1] <= '9')
        r->minor = point[1] - '0';
    grvi_legacy_end_line(r); /* title */
    const grvi_span word = grvi_legacy_word(r);
    r->is_binary = grvi_legacy_is(word, "BINARY");
    GRV_CHECK(r->is_binary || grvi_legacy_is(word, "ASCII"), GRV_E_FORMAT,
              "%s: ASCII or BINARY expected at byte %lld, '%.*s' found", r->path,
              grvi_legacy_byte(r, word.at), (int)grvi_min_i64(word.n, 24), word.at);
    return GRV_OK;
}

static grv_status check_tuples(const legacy_reading *l, const grv_mesh_arrays *list,
                               const char *what, int64_t n)
{
    for (int64_t i = 0; i < list->n; i++)
        GRV_CHECK(list->items[i].n_tuples == n, GRV_E_FORMAT,
                  "%s: array '%.80s' of %s data: %lld tuples expected, %lld found", l->r.path,
                  list->items[i].name, what, (long long)n, (long long)list->items[i].n_tuples);
    return GRV_OK;
}

static grv_status finish(legacy_reading *l)
{
    grv_mesh *const mesh = l->r.mesh;
    int64_t n_points = 0, n_cells = 0;
    GRV_CHECK(l->has_dataset, GRV_E_FORMAT, "%s: no DATASET", l->r.path);
    for (int i = 0; i < 3 && mesh->kind == GRV_MESH_RECTILINEAR; i++)
        GRV_CHECK(mesh->coordinates[i].data != NULL, GRV_E_FORMAT,
                  "%s: coordinates of three axes expected", l->r.path);
    GRV_TRY(grvi_legacy_finish_cells(&l->r));
    if (mesh->kind == GRV_MESH_STRUCTURED) {
        (void)grvi_mesh_extent_counts(mesh->extent, &n_points, &n_cells);
        GRV_CHECK(mesh->points.n_tuples == n_points, GRV_E_FORMAT,
                  "%s: DIMENSIONS say %lld points, %lld found", l->r.path, (long long)n_points,
                  (long long)mesh->points.n_tuples);
    }
    GRV_TRY(check_tuples(l, &mesh->point_data, "point", grv_mesh_n_points(mesh)));
    return check_tuples(l, &mesh->cell_data, "cell", grv_mesh_n_cells(mesh));
}

static grv_status read_keywords(legacy_reading *l)
{
    GRV_TRY(read_heading(l));
    for (;;) {
        bool known = true;
        const grvi_span word = grvi_legacy_word(&l->r);
        if (word.n == 0) return finish(l);
        GRV_TRY(read_geometry(l, word, &known));
        if (!known) GRV_TRY(read_attributes(l, word, &known));
        GRV_CHECK(known, GRV_E_FORMAT, "%s: a keyword expected at byte %lld, '%.*s' found",
                  l->r.path, grvi_legacy_byte(&l->r, word.at), (int)grvi_min_i64(word.n, 24),
                  word.at);
    }
}

grv_status grvi_vtk_legacy_read(const grvi_mesh_file *file, int n_threads, grv_mesh *mesh)
{
    const char *const begin = (const char *)file->data;
    legacy_reading l = {.r = {.path = file->path,
                              .begin = begin,
                              .at = begin,
                              .end = begin + file->n_bytes,
                              .mesh = mesh},
                        .list = &mesh->field_data,
                        .n_tuples = -1};
    (void)n_threads;
    const grv_status status = read_keywords(&l);
    grv_free(l.r.cell_values);
    return status;
}
