/* grove geom info: what is in mesh files, and whether their surfaces are sound. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/geom_cli.h"
#include "core/fs.h"
#include "grove/core.h"

typedef struct info_config {
    double tolerance;
    int threads;
} info_config;

#define AT(field) offsetof(info_config, field)
static const grv_option options[] = {
    {.key = "tolerance",
     .type = GRV_OPTION_F64,
     .offset = AT(tolerance),
     .fallback = "0",
     .min = 0,
     .max = HUGE_VAL,
     .help = "points so near to each other count as one when edges are looked at"},
    GRVC_OPTION_THREADS(AT(threads)),
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

/* What is found out about the triangles of a file, in this order: joined, cleaned, measured, turned. */
typedef struct surface_facts {
    int64_t n_triangles, n_points, n_joined; /* triangles of the file; points after joining */
    grv_triangles_cleaned cleaned;
    grv_triangles_measure measure;
    grv_triangles_oriented oriented;
} surface_facts;

enum { N_CELL_TYPES = 256 };

typedef struct mesh_facts {
    const char *word;
    grv_mesh *mesh;
    int64_t n_cells_of[N_CELL_TYPES];
    double lower[3], upper[3];
    int64_t n_not_finite; /* coordinates */
    bool has_surface;
    surface_facts surface;
} mesh_facts;

/* ---- finding out ---- */

static grv_status find_surface(const grv_mesh *mesh, double tolerance, surface_facts *facts)
{
    grv_status status = GRV_OK;
    grv_triangles *t = NULL;
    GRV_TRY(grv_triangles_from_mesh(mesh, &t));
    facts->n_triangles = t->n_triangles;
    GRV_TRY_GOTO(grv_triangles_weld(t, tolerance, &facts->n_joined));
    GRV_TRY_GOTO(grv_triangles_clean(t, &facts->cleaned));
    facts->n_points = t->n_points;
    GRV_TRY_GOTO(grv_triangles_measure_get(t, &facts->measure));
    GRV_TRY_GOTO(grv_triangles_orient(t, false, &facts->oriented));
done:
    grv_triangles_destroy(&t);
    return status;
}

/* Corners of an image. */
static void find_image_box(const grv_mesh *mesh, double lower[3], double upper[3])
{
    for (int corner = 0; corner < 8; corner++)
        for (int k = 0; k < 3; k++) {
            double x = mesh->origin[k];
            for (int i = 0; i < 3; i++)
                x += mesh->direction[3 * k + i] * mesh->spacing[i] *
                     (double)mesh->extent[2 * i + (corner >> i & 1)];
            lower[k] = corner == 0 ? x : fmin(lower[k], x);
            upper[k] = corner == 0 ? x : fmax(upper[k], x);
        }
}

static void find_box(mesh_facts *f)
{
    const grv_mesh *const mesh = f->mesh;
    for (int k = 0; k < 3; k++) {
        int64_t n = 0;
        if (mesh->kind == GRV_MESH_RECTILINEAR)
            grv_mesh_array_range(&mesh->coordinates[k], 0, &f->lower[k], &f->upper[k], &n);
        else if (mesh->kind != GRV_MESH_IMAGE)
            grv_mesh_array_range(&mesh->points, k, &f->lower[k], &f->upper[k], &n);
        f->n_not_finite += n;
    }
    if (mesh->kind == GRV_MESH_IMAGE) find_image_box(mesh, f->lower, f->upper);
}

static grv_status find_facts(const info_config *c, mesh_facts *f)
{
    const grv_mesh_read_params params = {.n_threads = grvc_threads(c->threads)};
    GRV_CHECK(!grvi_fs_is_directory(f->word), GRV_E_ARG,
              "%s: a mesh file (STL, OBJ, VTK) expected, a folder found; `grove store info` tells "
              "about arrays",
              f->word);
    GRV_TRY(grv_mesh_read(f->word, &params, &f->mesh));
    find_box(f);
    const grv_mesh *const mesh = f->mesh;
    for (int64_t i = 0; i < mesh->n_cells; i++) {
        const uint8_t type = mesh->types[i];
        f->n_cells_of[type]++;
        f->has_surface = f->has_surface || (type >= GRV_CELL_TRIANGLE && type <= GRV_CELL_QUAD);
    }
    return f->has_surface ? find_surface(mesh, c->tolerance, &f->surface) : GRV_OK;
}

/* ---- names ---- */

static const char *kind_name(const grv_mesh *mesh)
{
    static const char *const names[] = {[GRV_MESH_SURFACE] = "surface",
                                        [GRV_MESH_CELLS] = "cells",
                                        [GRV_MESH_IMAGE] = "image",
                                        [GRV_MESH_RECTILINEAR] = "rectilinear grid",
                                        [GRV_MESH_STRUCTURED] = "structured grid"};
    return names[mesh->kind];
}

static void cell_name(int type, char name[24])
{
    static const char *const names[] = {[GRV_CELL_VERTEX] = "vertex",
                                        [GRV_CELL_POLY_VERTEX] = "poly_vertex",
                                        [GRV_CELL_LINE] = "line",
                                        [GRV_CELL_POLY_LINE] = "poly_line",
                                        [GRV_CELL_TRIANGLE] = "triangle",
                                        [GRV_CELL_TRIANGLE_STRIP] = "triangle_strip",
                                        [GRV_CELL_POLYGON] = "polygon",
                                        [GRV_CELL_PIXEL] = "pixel",
                                        [GRV_CELL_QUAD] = "quad",
                                        [GRV_CELL_TETRA] = "tetra",
                                        [GRV_CELL_VOXEL] = "voxel",
                                        [GRV_CELL_HEXAHEDRON] = "hexahedron",
                                        [GRV_CELL_WEDGE] = "wedge",
                                        [GRV_CELL_PYRAMID] = "pyramid",
                                        [GRV_CELL_POLYHEDRON] = "polyhedron"};
    if (type <= GRV_CELL_POLYHEDRON && names[type] != NULL)
        (void)snprintf(name, 24, "%s", names[type]);
    else
        (void)snprintf(name, 24, "type_%d", type);
}

/* ---- as JSON ---- */

static void write_array(grvi_json_writer *w, const grv_mesh_array *a)
{
    grvi_json_begin_object(w);
    grvc_json_text(w, "name", a->name);
    grvc_json_text(w, "type", a->is_text ? "text" : grv_store_type_name(a->type));
    grvc_json_integer(w, "tuples", a->n_tuples);
    if (a->is_text) {
        const char *text = a->data;
        grvi_json_key(w, "values");
        grvi_json_begin_array(w);
        for (int64_t i = 0; i < a->n_tuples; i++, text += strlen(text) + 1)
            grvi_json_string(w, text);
        grvi_json_end_array(w);
        grvi_json_end_object(w);
        return;
    }
    int64_t n_not_finite = 0;
    grvc_json_integer(w, "components", a->n_components);
    grvi_json_key(w, "ranges");
    grvi_json_begin_array(w);
    for (int i = 0; i < a->n_components; i++) {
        double range[2];
        int64_t n = 0;
        grv_mesh_array_range(a, i, &range[0], &range[1], &n);
        grvi_json_begin_array(w);
        grvi_json_double(w, range[0]);
        grvi_json_double(w, range[1]);
        grvi_json_end_array(w);
        n_not_finite += n;
    }
    grvi_json_end_array(w);
    grvc_json_integer(w, "not_finite", n_not_finite);
    grvi_json_end_object(w);
}

static void write_arrays(grvi_json_writer *w, const char *key, const grv_mesh_arrays *list)
{
    grvi_json_key(w, key);
    grvi_json_begin_array(w);
    for (int64_t i = 0; i < list->n; i++) write_array(w, &list->items[i]);
    grvi_json_end_array(w);
}

static void write_bool(grvi_json_writer *w, const char *key, bool value)
{
    grvi_json_key(w, key);
    grvi_json_bool(w, value);
}

static void write_surface(grvi_json_writer *w, const surface_facts *s)
{
    const grv_triangles_measure *const m = &s->measure;
    grvi_json_key(w, "surface");
    grvi_json_begin_object(w);
    grvc_json_integer(w, "triangles", s->n_triangles);
    grvc_json_integer(w, "distinct_points", s->n_points);
    grvc_json_integer(w, "degenerate", s->cleaned.n_degenerate);
    grvc_json_integer(w, "duplicates", s->cleaned.n_duplicate);
    grvc_json_integer(w, "edges", m->n_edges);
    grvc_json_integer(w, "open_edges", m->n_boundary_edges);
    grvc_json_integer(w, "non_manifold_edges", m->n_crowded_edges);
    grvc_json_integer(w, "opposed_edges", m->n_opposed_edges);
    grvc_json_integer(w, "parts", s->oriented.n_components);
    grvc_json_integer(w, "against_their_neighbours", s->oriented.n_flipped);
    grvc_json_integer(w, "orientation_conflicts", s->oriented.n_conflicts);
    write_bool(w, "watertight", m->is_watertight);
    grvc_json_number(w, "area", m->area);
    grvc_json_number(w, "volume", m->volume);
    grvc_json_numbers(w, "centre", 3, m->centre);
    grvc_json_numbers(w, "volume_centre", 3, m->volume_centre);
    grvi_json_end_object(w);
}

static void write_facts(grvi_json_writer *w, const mesh_facts *f)
{
    const grv_mesh *const mesh = f->mesh;
    grvc_json_text(w, "format", mesh->format);
    grvc_json_text(w, "kind", kind_name(mesh));
    grvc_json_integer(w, "points", grv_mesh_n_points(mesh));
    if (mesh->points.data != NULL)
        grvc_json_text(w, "point_type", grv_store_type_name(mesh->points.type));
    grvc_json_integer(w, "not_finite", f->n_not_finite);
    grvc_json_integer(w, "cells", grv_mesh_n_cells(mesh));
    grvi_json_key(w, "cell_types");
    grvi_json_begin_object(w);
    for (int type = 0; type < N_CELL_TYPES; type++) {
        char name[24];
        if (f->n_cells_of[type] == 0) continue;
        cell_name(type, name);
        grvc_json_integer(w, name, f->n_cells_of[type]);
    }
    grvi_json_end_object(w);
    grvc_json_numbers(w, "lower", 3, f->lower);
    grvc_json_numbers(w, "upper", 3, f->upper);
    if (mesh->has_time) grvc_json_number(w, "time", mesh->time);
    write_arrays(w, "point_data", &mesh->point_data);
    write_arrays(w, "cell_data", &mesh->cell_data);
    write_arrays(w, "field_data", &mesh->field_data);
    if (f->has_surface) write_surface(w, &f->surface);
}

/* ---- as text ---- */

static void print_array(const char *label, const grv_mesh_array *a)
{
    enum { MOST = 3 };
    int64_t n_not_finite = 0;
    (void)printf("  %-16s %-20s ", label, a->name);
    if (a->is_text) {
        const char *text = a->data;
        (void)printf("%lld text%s", (long long)a->n_tuples, a->n_tuples == 1 ? "" : "s");
        for (int64_t i = 0; i < a->n_tuples && i < MOST; i++, text += strlen(text) + 1)
            (void)printf("%s %.40s", i == 0 ? ":" : ",", text);
        (void)printf(a->n_tuples > MOST ? ", ...\n" : "\n");
        return;
    }
    char type[32];
    (void)snprintf(type, sizeof type, a->n_components > 1 ? "%s x %d" : "%s",
                   grv_store_type_name(a->type), a->n_components);
    (void)printf("%-12s", type);
    for (int i = 0; i < a->n_components; i++) {
        double min, max;
        int64_t n = 0;
        grv_mesh_array_range(a, i, &min, &max, &n);
        n_not_finite += n;
        if (i < MOST && a->n_tuples > 0)
            (void)printf("%s%.6g to %.6g", i == 0 ? "  " : ", ", min, max);
    }
    if (a->n_components > MOST) (void)printf(", ...");
    if (n_not_finite > 0) (void)printf("; %lld not finite", (long long)n_not_finite);
    (void)printf("\n");
}

static void print_arrays(const char *label, const grv_mesh_arrays *list)
{
    for (int64_t i = 0; i < list->n; i++) print_array(i == 0 ? label : "", &list->items[i]);
}

static void print_surface(const surface_facts *s)
{
    const grv_triangles_measure *const m = &s->measure;
    const double *const centre = m->is_watertight ? m->volume_centre : m->centre;
    (void)printf("  %-16s %lld, %lld points at different places\n", "triangles",
                 (long long)s->n_triangles, (long long)s->n_points);
    (void)printf("  %-16s %lld without area, %lld copies of others\n", "of these",
                 (long long)s->cleaned.n_degenerate, (long long)s->cleaned.n_duplicate);
    (void)printf("  %-16s %lld: %lld open, %lld of more than two triangles\n", "edges",
                 (long long)m->n_edges, (long long)m->n_boundary_edges,
                 (long long)m->n_crowded_edges);
    (void)printf(
        "  %-16s %lld edges between triangles turned differently, %lld triangles to turn over",
        "orientation", (long long)m->n_opposed_edges, (long long)s->oriented.n_flipped);
    if (s->oriented.n_conflicts > 0)
        (void)printf(", %lld edges cannot agree", (long long)s->oriented.n_conflicts);
    (void)printf("\n  %-16s %lld\n", "parts", (long long)s->oriented.n_components);
    (void)printf("  %-16s %s\n", "watertight", m->is_watertight ? "yes" : "no");
    (void)printf("  %-16s %.9g\n", "area", m->area);
    if (m->is_watertight)
        (void)printf("  %-16s %.9g%s\n", "volume", m->volume,
                     m->volume < 0 ? " (normals point inwards)" : "");
    if (m->area > 0)
        (void)printf("  %-16s %.9g, %.9g, %.9g (of the %s)\n", "centre of mass", centre[0],
                     centre[1], centre[2], m->is_watertight ? "volume" : "surface");
}

static void print_facts(const mesh_facts *f)
{
    const grv_mesh *const mesh = f->mesh;
    bool is_first = true;
    (void)printf("%s\n  %-16s %s\n  %-16s %s\n", f->word, "format", mesh->format, "kind",
                 kind_name(mesh));
    (void)printf("  %-16s %lld", "points", (long long)grv_mesh_n_points(mesh));
    if (mesh->points.data != NULL) (void)printf(", %s", grv_store_type_name(mesh->points.type));
    if (f->n_not_finite > 0)
        (void)printf("; %lld coordinates not finite", (long long)f->n_not_finite);
    (void)printf("\n  %-16s %lld", "cells", (long long)grv_mesh_n_cells(mesh));
    for (int type = 0; type < N_CELL_TYPES; type++) {
        char name[24];
        if (f->n_cells_of[type] == 0) continue;
        cell_name(type, name);
        (void)printf("%s %lld %s", is_first ? ":" : ",", (long long)f->n_cells_of[type], name);
        is_first = false;
    }
    (void)printf("\n  %-16s", "box");
    for (int k = 0; k < 3; k++)
        if (f->lower[k] <= f->upper[k])
            (void)printf("%s %c %.9g to %.9g", k > 0 ? "," : "", 'x' + k, f->lower[k], f->upper[k]);
        else
            (void)printf("%s %c none", k > 0 ? "," : "", 'x' + k);
    (void)printf("\n");
    if (mesh->has_time) (void)printf("  %-16s %.9g\n", "time", mesh->time);
    print_arrays("point data", &mesh->point_data);
    print_arrays("cell data", &mesh->cell_data);
    print_arrays("field data", &mesh->field_data);
    if (f->has_surface) print_surface(&f->surface);
}

/* ---- collections ---- */

static bool is_collection(const char *word)
{
    static const char *const endings[] = {".pvd",  ".vtm",  ".pvtu", ".pvtp",
                                          ".pvti", ".pvtr", ".pvts"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (grvc_has_ending(word, endings[i])) return true;
    return false;
}

static void write_members(grvi_json_writer *w, const grv_mesh_member *members, int64_t n)
{
    grvc_json_text(w, "format", "collection");
    grvi_json_key(w, "files");
    grvi_json_begin_array(w);
    for (int64_t i = 0; i < n; i++) {
        grvi_json_begin_object(w);
        grvc_json_text(w, "path", members[i].path);
        grvc_json_text(w, "name", members[i].name);
        if (members[i].has_time) grvc_json_number(w, "time", members[i].time);
        write_bool(w, "exists", grvi_fs_exists(members[i].path));
        grvi_json_end_object(w);
    }
    grvi_json_end_array(w);
}

static void print_members(const char *word, const grv_mesh_member *members, int64_t n)
{
    (void)printf("%s\n  %-16s collection of %lld files\n", word, "format", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        (void)printf("  %-16s ", members[i].name);
        if (members[i].has_time) (void)printf("time %-10.6g ", members[i].time);
        (void)printf("%s%s\n", members[i].path,
                     grvi_fs_exists(members[i].path) ? "" : " (is not there)");
    }
}

/* ---- the command ---- */

/* w: NULL to print text */
static grv_status tell(const char *word, const info_config *c, grvi_json_writer *w)
{
    if (is_collection(word)) {
        grv_mesh_member *members = NULL;
        int64_t n = 0;
        GRV_TRY(grv_mesh_collection_read(word, &members, &n));
        if (w != NULL)
            write_members(w, members, n);
        else
            print_members(word, members, n);
        grv_mesh_members_free(members, n);
        return GRV_OK;
    }
    mesh_facts facts = {.word = word};
    const grv_status status = find_facts(c, &facts);
    if (status == GRV_OK) {
        if (w != NULL)
            write_facts(w, &facts);
        else
            print_facts(&facts);
    }
    grv_mesh_destroy(&facts.mesh);
    return status;
}

/* A file that cannot be read does not keep the others from being looked at. */
static grv_status run(const grvc_session *session, const info_config *c)
{
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grv_status status = GRV_OK;
    int n_failed = 0;
    if (session->json) grvi_json_begin_array(&w);
    for (int i = 0; i < session->n_words; i++) {
        if (session->json) {
            grvi_json_begin_object(&w);
            grvc_json_text(&w, "file", session->words[i]);
        }
        const grv_status one = tell(session->words[i], c, session->json ? &w : NULL);
        if (one != GRV_OK) {
            status = one;
            n_failed++;
            if (session->n_words > 1) grvc_print_error(session->name, session->verbose);
            if (session->json) grvc_json_text(&w, "error", grv_error_message());
        }
        if (session->json) grvi_json_end_object(&w);
    }
    if (session->json) {
        grvi_json_end_array(&w);
        const grv_status printed = grvc_json_print(&text);
        if (status == GRV_OK) status = printed;
    }
    if (n_failed > 0 && session->n_words > 1)
        GRV_FAIL(status, "%d of %d files could not be read", n_failed, session->n_words);
    return status;
}

int grvc_geom_info(int argc, char **argv)
{
    info_config config = {0};
    grvc_session session = {.name = "grove geom info",
                            .about = "Describes mesh files: points, cells, data arrays with their "
                                     "ranges, box; of surfaces what is broken\n"
                                     "(triangles without area, copies, open edges, orientation), "
                                     "whether they are watertight, area,\n"
                                     "volume. Collections (.pvd, .vtm, .pvtu, ...) are listed. "
                                     "--json prints a list, an object a file.",
                            .words_usage = "FILE...",
                            .min_words = 1,
                            .max_words = 100000,
                            .table = &table,
                            .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session, &config));
}
