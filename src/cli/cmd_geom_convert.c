/* grove geom convert: a mesh as another format; repaired, scaled, moved. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/geom_cli.h"
#include "grove/core.h"

enum { ORIENT_NO, ORIENT_CONSISTENT, ORIENT_OUTWARD };
static const char *const orientations[] = {"no", "consistent", "outward", NULL};
static const char *const encodings[] = {"binary", "base64", "ascii", NULL}; /* grv_mesh_encoding */

typedef struct convert_config {
    grv_f64_list scale, translate;
    double tolerance;
    bool triangulate, weld, clean, overwrite;
    int orient, encoding, zlib, threads;
} convert_config;

#define AT(field) offsetof(convert_config, field)
static const grv_option options[] = {
    {.key = "scale",
     .type = GRV_OPTION_F64_LIST,
     .offset = AT(scale),
     .fallback = "[1]",
     .min = 0,
     .above_min = true,
     .max = HUGE_VAL,
     .min_items = 1,
     .max_items = 3,
     .help = "of the coordinates: one number or three; scale=0.001 from mm to m"},
    {.key = "translate",
     .type = GRV_OPTION_F64_LIST,
     .offset = AT(translate),
     .fallback = "[0, 0, 0]",
     .min_items = 3,
     .max_items = 3,
     .help = "added after scaling"},
    {.key = "triangulate",
     .type = GRV_OPTION_BOOL,
     .offset = AT(triangulate),
     .fallback = "false",
     .help = "polygons and strips become triangles"},
    {.key = "weld",
     .type = GRV_OPTION_BOOL,
     .offset = AT(weld),
     .fallback = "false",
     .help = "points at one place become one; triangulates"},
    {.key = "tolerance",
     .type = GRV_OPTION_F64,
     .offset = AT(tolerance),
     .fallback = "0",
     .min = 0,
     .max = HUGE_VAL,
     .help = "weld: points so near to each other count as one place"},
    {.key = "clean",
     .type = GRV_OPTION_BOOL,
     .offset = AT(clean),
     .fallback = "false",
     .help = "drop triangles without area and copies, and unused points; welds"},
    {.key = "orient",
     .type = GRV_OPTION_CHOICE,
     .offset = AT(orient),
     .fallback = "no",
     .choices = orientations,
     .help = "turn triangles until neighbours agree, closed parts outward; welds"},
    {.key = "encoding",
     .type = GRV_OPTION_CHOICE,
     .offset = AT(encoding),
     .fallback = "binary",
     .choices = encodings,
     .help = "STL: binary or ascii; VTK: binary or base64"},
    {.key = "zlib",
     .type = GRV_OPTION_INT,
     .offset = AT(zlib),
     .fallback = "0",
     .min = 0,
     .max = 9,
     .help = "VTK: level of compression; 0: none"},
    GRVC_OPTION_OVERWRITE(AT(overwrite)),
    GRVC_OPTION_THREADS(AT(threads)),
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

/* What was done to the mesh. */
typedef struct convert_report {
    int64_t n_joined; /* points */
    int64_t n_volumes,
        n_left_out; /* cells whose outer surface was taken; those without a part in the surface */
    grv_triangles_cleaned cleaned;
    grv_triangles_oriented oriented;
} convert_report;

/* Cells of a mesh by what they have: a surface, a volume. */
typedef struct cell_counts {
    int64_t n_polygons, n_volumes;
} cell_counts;

static cell_counts count_cells(const grv_mesh *mesh)
{
    cell_counts n = {0};
    for (int64_t i = 0; i < mesh->n_cells; i++) {
        const uint8_t type = mesh->types[i];
        n.n_polygons += type >= GRV_CELL_TRIANGLE && type <= GRV_CELL_QUAD;
        n.n_volumes +=
            (type >= GRV_CELL_TETRA && type <= GRV_CELL_PYRAMID) || type == GRV_CELL_POLYHEDRON;
    }
    return n;
}

static void warn_of_cells(const grvc_session *session, const convert_report *report)
{
    if (report->n_left_out > 0)
        grv_log_message(session->log, GRV_LOG_WARN, "%lld cells without a %s: left out",
                        (long long)report->n_left_out,
                        report->n_volumes > 0 ? "volume" : "surface");
}

static void warn_of_point_data(const grvc_session *session, const grv_mesh *from,
                               const grv_mesh *to)
{
    if (to->point_data.n < from->point_data.n)
        grv_log_message(session->log, GRV_LOG_WARN,
                        "points were joined or dropped: their data (%lld array%s) are left out",
                        (long long)from->point_data.n, from->point_data.n == 1 ? "" : "s");
}

/* Cells with a volume become their outer surface. */
static grv_status take_surface(grv_mesh **mesh, int64_t n_volumes, convert_report *report)
{
    grv_mesh *surface = NULL;
    GRV_TRY(grv_mesh_extract_surface(*mesh, &surface, &report->n_left_out));
    report->n_volumes = n_volumes;
    grv_mesh_destroy(mesh);
    *mesh = surface;
    return GRV_OK;
}

/* The mesh becomes triangles, repaired as the keys say. */
static grv_status repair(const grvc_session *session, const convert_config *c, grv_mesh **mesh,
                         convert_report *report)
{
    grv_status status = GRV_OK;
    grv_triangles *triangles = NULL;
    grv_mesh *made = NULL;
    report->n_left_out += (*mesh)->n_cells - count_cells(*mesh).n_polygons;
    GRV_TRY_GOTO(grv_triangles_from_mesh(*mesh, &triangles));
    if (c->weld || c->clean || c->orient != ORIENT_NO)
        GRV_TRY_GOTO(grv_triangles_weld(triangles, c->tolerance, &report->n_joined));
    if (c->clean) GRV_TRY_GOTO(grv_triangles_clean(triangles, &report->cleaned));
    if (c->orient != ORIENT_NO)
        GRV_TRY_GOTO(
            grv_triangles_orient(triangles, c->orient == ORIENT_OUTWARD, &report->oriented));
    GRV_TRY_GOTO(grv_triangles_to_mesh(triangles, &made));
    GRV_TRY_GOTO(grv_triangles_carry_data(triangles, *mesh, made));
    warn_of_point_data(session, *mesh, made);
    grv_mesh_destroy(mesh);
    *mesh = made;
    made = NULL;
done:
    grv_triangles_destroy(&triangles);
    grv_mesh_destroy(&made);
    return status;
}

static grv_status transform(const convert_config *c, grv_mesh *mesh)
{
    double scale[3];
    for (int k = 0; k < 3; k++) scale[k] = c->scale.at[c->scale.n > 1 ? k : 0];
    return grv_mesh_transform(mesh, scale, c->translate.at);
}

/* What is to be a surface becomes one: because of the keys, or because of the file, which holds no cells of other kinds. */
static grv_status make_surface(const grvc_session *session, const convert_config *c,
                               const grvc_output *output, grv_mesh **mesh, convert_report *report)
{
    const bool is_wanted = c->triangulate || c->weld || c->clean || c->orient != ORIENT_NO;
    const bool is_needed =
        (*mesh)->kind == GRV_MESH_CELLS &&
        (grvc_has_ending(output->place, ".stl") || grvc_has_ending(output->place, ".vtp"));
    const cell_counts n = count_cells(*mesh);
    if (!is_wanted && !is_needed) return GRV_OK;
    if (n.n_volumes > 0) GRV_TRY(take_surface(mesh, n.n_volumes, report));
    if (is_wanted || (n.n_volumes == 0 && n.n_polygons > 0))
        GRV_TRY(repair(session, c, mesh, report));
    warn_of_cells(session, report);
    return GRV_OK;
}

static grv_status write(const convert_config *c, const grv_mesh *mesh, grvc_output *output)
{
    const int n_threads = grvc_threads(c->threads);
    if (output->is_file) {
        const grv_mesh_write_params params = {.encoding = (enum grv_mesh_encoding)c->encoding,
                                              .zlib_level = c->zlib,
                                              .n_threads = n_threads};
        return grv_mesh_write(mesh, output->place, &params);
    }
    GRV_TRY(grvc_output_open(output, n_threads));
    GRV_TRY(grv_mesh_store(mesh, output->node.store, output->node.path));
    return grvc_output_publish(output);
}

static grv_status print_result(const grvc_session *session, const grv_mesh *mesh,
                               const convert_report *r, double seconds)
{
    const long long n_points = grv_mesh_n_points(mesh), n_cells = grv_mesh_n_cells(mesh);
    if (!session->json) {
        (void)printf("%s: %lld points, %lld cells", session->words[1], n_points, n_cells);
        if (r->n_volumes > 0) (void)printf(", the outer surface of %lld", (long long)r->n_volumes);
        if (r->n_joined > 0) (void)printf(", %lld points joined", (long long)r->n_joined);
        if (r->cleaned.n_degenerate + r->cleaned.n_duplicate + r->cleaned.n_unused > 0)
            (void)printf(", dropped: %lld triangles without area, %lld copies, %lld points",
                         (long long)r->cleaned.n_degenerate, (long long)r->cleaned.n_duplicate,
                         (long long)r->cleaned.n_unused);
        if (r->oriented.n_components > 0)
            (void)printf(", %lld triangles turned over", (long long)r->oriented.n_flipped);
        if (r->oriented.n_conflicts > 0)
            (void)printf(" (%lld edges cannot agree)", (long long)r->oriented.n_conflicts);
        (void)printf("; %.1f s\n", seconds);
        return GRV_OK;
    }
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    grvc_json_text(&w, "target", session->words[1]);
    grvc_json_integer(&w, "points", n_points);
    grvc_json_integer(&w, "cells", n_cells);
    grvc_json_integer(&w, "volume_cells", r->n_volumes);
    grvc_json_integer(&w, "cells_left_out", r->n_left_out);
    grvc_json_integer(&w, "points_joined", r->n_joined);
    grvc_json_integer(&w, "degenerate_dropped", r->cleaned.n_degenerate);
    grvc_json_integer(&w, "duplicates_dropped", r->cleaned.n_duplicate);
    grvc_json_integer(&w, "points_dropped", r->cleaned.n_unused);
    grvc_json_integer(&w, "turned_over", r->oriented.n_flipped);
    grvc_json_integer(&w, "conflicts", r->oriented.n_conflicts);
    grvc_json_number(&w, "seconds", seconds);
    grvi_json_end_object(&w);
    return grvc_json_print(&text);
}

static grv_status run(const grvc_session *session, const convert_config *c)
{
    grv_status status = GRV_OK;
    grvc_output output = {0};
    const double start_s = grv_clock_seconds();
    grv_mesh *mesh = NULL;
    convert_report report = {0};
    const grv_mesh_read_params params = {.n_threads = grvc_threads(c->threads)};
    GRV_CHECK(c->scale.n != 2, GRV_E_CONFIG, "scale: one or three numbers expected, two found");
    GRV_CHECK(c->tolerance == 0 || c->weld || c->clean || c->orient != ORIENT_NO, GRV_E_CONFIG,
              "tolerance: weld=true, clean=true or orient= expected with it");
    GRV_TRY_GOTO(
        grvc_output_check(session->words[1], " .stl .vtp .vtu .vti", c->overwrite, &output));
    GRV_TRY_GOTO(grv_mesh_read(session->words[0], &params, &mesh));
    GRV_TRY_GOTO(transform(c, mesh));
    GRV_TRY_GOTO(make_surface(session, c, &output, &mesh, &report));
    GRV_TRY_GOTO(write(c, mesh, &output));
    GRV_TRY_GOTO(print_result(session, mesh, &report, grv_clock_seconds() - start_s));
done:
    grvc_output_fini(&output);
    grv_mesh_destroy(&mesh);
    return status;
}

int grvc_geom_convert(int argc, char **argv)
{
    convert_config config = {0};
    grvc_session session = {
        .name = "grove geom convert",
        .about = "Writes a mesh as STL, VTP, VTU, VTI or Zarr, by the ending of OUT (.zarr: a "
                 "folder of arrays). The\n"
                 "coordinates are scaled and moved first, then the surface is repaired. Of cells "
                 "with a volume, .stl, .vtp\n"
                 "and repairs take the outer surface. Cell data follow their cells; point data are "
                 "kept unless points are\n"
                 "joined or dropped.\n"
                 "  grove geom convert part_mm.stl part.vtp scale=0.001 clean=true orient=outward",
        .words_usage = "IN OUT",
        .min_words = 2,
        .max_words = 2,
        .table = &table,
        .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session, &config));
}
