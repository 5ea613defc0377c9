/* grove geom radius: the points within one or several radii of each query, as rows of so many places or as lists of all. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/geom_cli.h"
#include "core/alloc.h"
#include "grove/core.h"

enum { MOST_RADII = 8 };
enum { MODE_ALL, MODE_NEAREST, MODE_GRID_ORDER };
static const char *const modes[] = {"all", "nearest", "grid_order", NULL};
static const int64_t chunk_entries = (int64_t)1 << 20; /* of a list */
static const int64_t batch_entries = (int64_t)1 << 22; /* in memory; a single row may need more */
static const int64_t batch_rows = (int64_t)1 << 20;

typedef struct radius_config {
    grv_f64_list r;
    grv_i64_list max;
    double cell_width;
    int mode, at, threads;
    bool squared, overwrite;
} radius_config;

#define AT(field) offsetof(radius_config, field)
static const grv_option options[] = {
    {.key = "r",
     .type = GRV_OPTION_F64_LIST,
     .offset = AT(r),
     .fallback = "[]",
     .min = 0,
     .max = HUGE_VAL,
     .max_items = MOST_RADII,
     .help = "radius, or several: r=0.1,0.5"},
    {.key = "mode",
     .type = GRV_OPTION_CHOICE,
     .offset = AT(mode),
     .fallback = "all",
     .choices = modes,
     .help = "all: lists; else rows: the nearest ones, or the first ones in DoMINO's order"},
    {.key = "max",
     .type = GRV_OPTION_I64_LIST,
     .offset = AT(max),
     .fallback = "[]",
     .min = 1,
     .max = 16777216,
     .max_items = MOST_RADII,
     .help = "nearest, grid_order: places of a row, one number or one for each radius"},
    {.key = "cell_width",
     .type = GRV_OPTION_F64,
     .offset = AT(cell_width),
     .fallback = "0.5",
     .min = 0,
     .above_min = true,
     .max = HUGE_VAL,
     .help = "grid_order: width of a cell over the radius (DoMINO up to 25.06: 1)"},
    {.key = "squared",
     .type = GRV_OPTION_BOOL,
     .offset = AT(squared),
     .fallback = "false",
     .help = "distances are squared ones"},
    GRVC_OPTION_AT(AT(at)),
    GRVC_OPTION_OVERWRITE(AT(overwrite)),
    GRVC_OPTION_THREADS(AT(threads)),
};
static const grv_option_table table = {options, sizeof options / sizeof *options};

typedef struct radius_job {
    const grvc_session *session;
    const radius_config *config;
    grvc_search search;
    grv_radius_params params;
    char names[MOST_RADII][3][32]; /* paths of indices, distances, and counts or offsets */
    int64_t n_found[MOST_RADII], n_full[MOST_RADII]; /* neighbours; rows without a free place */
} radius_job;

enum { INDICES, DISTANCES, COUNTS };

static grv_status check_config(const radius_config *c)
{
    GRV_CHECK(c->r.n > 0, GRV_E_CONFIG, "r: a radius expected, as in r=0.1");
    if (c->mode == MODE_ALL) {
        GRV_CHECK(c->max.n == 0, GRV_E_CONFIG, "max: for mode=nearest and mode=grid_order only");
        return GRV_OK;
    }
    GRV_CHECK(c->max.n > 0, GRV_E_CONFIG, "max: places of a row expected for mode=%s, as in max=32",
              modes[c->mode]);
    GRV_CHECK(c->max.n == 1 || c->max.n == c->r.n, GRV_E_CONFIG,
              "max: one number or %d, one for each radius, expected, %d found", c->r.n, c->max.n);
    return GRV_OK;
}

static int64_t places(const radius_config *c, int radius)
{
    return c->max.at[c->max.n > 1 ? radius : 0];
}

/* ---- the group ---- */

/* The group, and one for each radius if there are several. */
static grv_status make_groups(radius_job *job, grvc_output *output)
{
    const radius_config *const c = job->config;
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text};
    grvc_description_begin(&w, "radius");
    grvc_search_describe(&job->search, job->session, &w);
    grvc_json_text(&w, "at", grvc_places[c->at]);
    grvc_json_numbers(&w, "r", c->r.n, c->r.at);
    grvc_json_text(&w, "mode", modes[c->mode]);
    if (c->mode == MODE_GRID_ORDER) grvc_json_number(&w, "cell_width", c->cell_width);
    grvi_json_key(&w, "squared");
    grvi_json_bool(&w, c->squared);
    grvi_json_end_object(&w);
    grvi_json_end_object(&w);
    GRV_TRY(grvc_output_group(output, "", &text));
    for (int i = 0; i < c->r.n; i++) {
        static const char *const names[] = {"indices", "distances", "counts"};
        char prefix[16] = "";
        if (c->r.n > 1) {
            grvi_text attributes = {0};
            (void)snprintf(prefix, sizeof prefix, "r%d", i);
            w = (grvi_json_writer){.out = &attributes};
            grvi_json_begin_object(&w);
            grvc_json_number(&w, "radius", c->r.at[i]);
            grvi_json_end_object(&w);
            GRV_TRY(grvc_output_group(output, prefix, &attributes));
        }
        for (int k = 0; k < 3; k++)
            (void)snprintf(job->names[i][k], sizeof job->names[i][k], "%s%s%s", prefix,
                           prefix[0] != '\0' ? "/" : "",
                           k == COUNTS && c->mode == MODE_ALL ? "offsets" : names[k]);
    }
    return GRV_OK;
}

/* ---- rows ---- */

static grv_status compute_rows(void *argument, const grvc_table *t, int64_t first, int64_t count)
{
    radius_job *const job = argument;
    const radius_config *const c = job->config;
    grv_radius_rows rows[MOST_RADII];
    for (int i = 0; i < c->r.n; i++)
        rows[i] =
            (grv_radius_rows){.radius = c->r.at[i],
                              .max_points = places(c, i),
                              .indices = grvc_table_rows(t, job->names[i][INDICES], first),
                              .distances = grvc_table_rows(t, job->names[i][DISTANCES], first),
                              .counts = grvc_table_rows(t, job->names[i][COUNTS], first)};
    GRV_TRY(grv_neighbours_within(job->search.tree, grvc_search_queries(&job->search, first), count,
                                  &job->params, rows, c->r.n));
    for (int i = 0; i < c->r.n; i++)
        for (int64_t q = 0; q < count; q++) {
            job->n_found[i] += rows[i].counts[q];
            job->n_full[i] += rows[i].counts[q] == rows[i].max_points;
        }
    return GRV_OK;
}

static grv_status write_rows(radius_job *job, grvc_output *output)
{
    grvc_table t = {.rank = 1,
                    .shape = {job->search.n_queries},
                    .axes = {"query"},
                    .components = "neighbour",
                    .output = output};
    for (int i = 0; i < job->config->r.n; i++) {
        grvc_table_add(&t, job->names[i][INDICES], GRV_STORE_I32, places(job->config, i));
        grvc_table_add(&t, job->names[i][DISTANCES], job->search.type, places(job->config, i));
        grvc_table_add(&t, job->names[i][COUNTS], GRV_STORE_I32, 0);
    }
    const grv_status status = grvc_table_run(&t, compute_rows, job, job->session, "queries");
    grvc_table_fini(&t);
    return status;
}

/* ---- lists ---- */

typedef struct list_state {
    int64_t *offsets[MOST_RADII]; /* [n_queries + 1] */
    int64_t *local;               /* [n_radii][rows of a batch + 1] */
    grv_array *indices[MOST_RADII], *distances[MOST_RADII];
    int32_t *found[MOST_RADII]; /* [capacity] of a batch */
    void *how_far[MOST_RADII];  /* [capacity] */
    int64_t capacity[MOST_RADII];
} list_state;

static void lists_fini(list_state *s)
{
    for (int i = 0; i < MOST_RADII; i++) {
        grv_array_close(&s->indices[i]);
        grv_array_close(&s->distances[i]);
        grv_free(s->offsets[i]);
        grv_free(s->found[i]);
        grv_free(s->how_far[i]);
    }
    grv_free(s->local);
}

static grv_status advance(grvc_tool *tool, int64_t done, int64_t total)
{
    GRV_CHECK(grvc_tool_advance(tool, done, total), GRV_E_INTERRUPTED, "stopped; nothing is kept");
    return GRV_OK;
}

/* First pass: how many neighbours each query has. It counts as half of the work. */
static grv_status count_all(radius_job *job, list_state *s, grvc_tool *tool)
{
    const radius_config *const c = job->config;
    const int64_t n = job->search.n_queries;
    GRV_TRY(GRVI_ALLOC(&s->local, c->r.n * (grvi_min_i64(n, batch_rows) + 1)));
    for (int i = 0; i < c->r.n; i++) GRV_TRY(GRVI_CALLOC(&s->offsets[i], n + 1));
    for (int64_t first = 0; first < n; first += batch_rows) {
        const int64_t count = grvi_min_i64(batch_rows, n - first);
        GRV_TRY(grv_neighbours_count(job->search.tree, grvc_search_queries(&job->search, first),
                                     count, c->r.at, c->r.n, job->params.n_threads, s->local));
        for (int i = 0; i < c->r.n; i++)
            for (int64_t q = 1; q <= count; q++)
                s->offsets[i][first + q] = s->offsets[i][first] + s->local[i * (count + 1) + q];
        GRV_TRY(advance(tool, (first + count) / 2, n));
    }
    for (int i = 0; i < c->r.n; i++) job->n_found[i] = s->offsets[i][n];
    return GRV_OK;
}

static grv_status create_arrays(const radius_job *job, list_state *s, grvc_output *output)
{
    static const int64_t start = 0;
    for (int i = 0; i < job->config->r.n; i++) {
        grv_status status = GRV_OK;
        grv_array *offsets = NULL;
        const int64_t n = job->search.n_queries + 1;
        grv_array_desc desc = grv_array_desc_default();
        desc.rank = 1;
        desc.type = GRV_STORE_I64;
        desc.shape[0] = n;
        desc.dimension_names[0] = "offset";
        GRV_TRY(grvc_output_array(output, job->names[i][COUNTS], &desc, chunk_entries, &offsets));
        status = grv_array_write(offsets, &start, &n, s->offsets[i], NULL);
        grv_array_close(&offsets);
        GRV_TRY(status);
        desc.shape[0] = job->n_found[i];
        desc.dimension_names[0] = "neighbour";
        desc.type = GRV_STORE_I32;
        GRV_TRY(grvc_output_array(output, job->names[i][INDICES], &desc, chunk_entries,
                                  &s->indices[i]));
        desc.type = job->search.type;
        GRV_TRY(grvc_output_array(output, job->names[i][DISTANCES], &desc, chunk_entries,
                                  &s->distances[i]));
    }
    return GRV_OK;
}

/* Queries from `first` on whose neighbours fit; at least one. */
static int64_t choose_count(const radius_job *job, const list_state *s, int64_t first)
{
    int64_t count = grvi_min_i64(batch_rows, job->search.n_queries - first);
    for (int i = 0; i < job->config->r.n; i++)
        while (count > 1 && s->offsets[i][first + count] - s->offsets[i][first] > batch_entries)
            count = count / 2;
    return count;
}

static grv_status fill_batch(radius_job *job, list_state *s, int64_t first, int64_t count)
{
    const radius_config *const c = job->config;
    grv_radius_lists lists[MOST_RADII];
    for (int i = 0; i < c->r.n; i++) {
        const int64_t *const global = s->offsets[i] + first;
        int64_t *const local = s->local + i * (count + 1);
        for (int64_t q = 0; q <= count; q++) local[q] = global[q] - global[0];
        if (local[count] > s->capacity[i]) {
            GRV_TRY(GRVI_REALLOC(&s->found[i], local[count]));
            GRV_TRY(grvi_realloc(local[count], (size_t)grv_store_type_bytes(job->search.type),
                                 &s->how_far[i]));
            s->capacity[i] = local[count];
        }
        lists[i] = (grv_radius_lists){.radius = c->r.at[i],
                                      .offsets = local,
                                      .indices = s->found[i],
                                      .distances = s->how_far[i]};
    }
    GRV_TRY(grv_neighbours_fill(job->search.tree, grvc_search_queries(&job->search, first), count,
                                &job->params, lists, c->r.n));
    for (int i = 0; i < c->r.n; i++) {
        const int64_t start = s->offsets[i][first], n = s->offsets[i][first + count] - start;
        if (n == 0) continue;
        GRV_TRY(grv_array_write(s->indices[i], &start, &n, s->found[i], NULL));
        GRV_TRY(grv_array_write(s->distances[i], &start, &n, s->how_far[i], NULL));
    }
    return GRV_OK;
}

static grv_status write_lists(radius_job *job, grvc_output *output)
{
    grv_status status = GRV_OK;
    list_state s = {0};
    grvc_tool tool;
    const int64_t n = job->search.n_queries;
    grvc_tool_begin_counting(&tool, job->session, "radius", "queries");
    GRV_TRY_GOTO(count_all(job, &s, &tool));
    GRV_TRY_GOTO(create_arrays(job, &s, output));
    for (int64_t first = 0; first < n;) {
        const int64_t count = choose_count(job, &s, first);
        GRV_TRY_GOTO(fill_batch(job, &s, first, count));
        first += count;
        GRV_TRY_GOTO(advance(&tool, n / 2 + first / 2, n));
    }
done:
    (void)grvc_tool_end(&tool);
    lists_fini(&s);
    return status;
}

/* ---- the command ---- */

static grv_status print_result(const radius_job *job, double seconds)
{
    const radius_config *const c = job->config;
    const char *const place = grvc_search_output(job->session);
    const double n = (double)job->search.n_queries;
    if (!job->session->json) {
        (void)printf("%s: %lld queries in %lld points; %.1f s\n", place,
                     (long long)job->search.n_queries, (long long)job->search.n_points, seconds);
        for (int i = 0; i < c->r.n; i++) {
            (void)printf("  within %.6g: %lld neighbours, %.1f a query", c->r.at[i],
                         (long long)job->n_found[i], (double)job->n_found[i] / n);
            if (c->mode != MODE_ALL) (void)printf("; %lld rows full", (long long)job->n_full[i]);
            (void)printf("\n");
        }
        return GRV_OK;
    }
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    grvc_json_text(&w, "target", place);
    grvc_json_integer(&w, "points", job->search.n_points);
    grvc_json_integer(&w, "queries", job->search.n_queries);
    grvc_json_text(&w, "type", grv_store_type_name(job->search.type));
    grvc_json_numbers(&w, "r", c->r.n, c->r.at);
    grvc_json_lengths(&w, "neighbours", c->r.n, job->n_found);
    if (c->mode != MODE_ALL) grvc_json_lengths(&w, "full_rows", c->r.n, job->n_full);
    grvc_json_number(&w, "seconds", seconds);
    grvi_json_end_object(&w);
    return grvc_json_print(&text);
}

static grv_status run(const grvc_session *session, const radius_config *c)
{
    grv_status status = GRV_OK;
    grvc_output output = {0};
    const double start_s = grv_clock_seconds();
    const int n_threads = grvc_threads(c->threads);
    const bool needs_points = c->mode == MODE_GRID_ORDER;
    radius_job job = {.session = session, .config = c, .params = grv_radius_params_default()};
    job.params.order = needs_points ? GRV_RADIUS_GRID_ORDER : GRV_RADIUS_NEAREST;
    job.params.squared = c->squared;
    job.params.cell_width_factor = c->cell_width;
    job.params.n_threads = n_threads;
    GRV_TRY_GOTO(check_config(c));
    GRV_TRY_GOTO(grvc_output_check(grvc_search_output(session), "", c->overwrite, &output));
    GRV_TRY_GOTO(grvc_search_begin(&job.search, session, c->at, needs_points, n_threads));
    job.params.source_points = job.search.points.data;
    GRV_TRY_GOTO(grvc_output_open(&output, n_threads));
    GRV_TRY_GOTO(make_groups(&job, &output));
    GRV_TRY_GOTO(c->mode == MODE_ALL ? write_lists(&job, &output) : write_rows(&job, &output));
    GRV_TRY_GOTO(grvc_output_publish(&output));
    GRV_TRY_GOTO(print_result(&job, grv_clock_seconds() - start_s));
done:
    grvc_output_fini(&output);
    grvc_search_fini(&job.search);
    return status;
}

int grvc_geom_radius(int argc, char **argv)
{
    radius_config config = {0};
    grvc_session session = {
        .name = "grove geom radius",
        .about =
            "The points of POINTS within a radius of each of QUERIES (or of POINTS themselves); "
            "several radii in\n"
            "one pass. Both are a mesh file, a Zarr array [n, 3] or [n, 2] (FOLDER.zarr/NAME), or "
            "a .npy file, of\n"
            "float32 or float64. OUT.zarr becomes a group, of several radii with a group r0, r1, "
            "... for each:\n"
            "mode=all: offsets [n + 1]; the neighbours of query i, by index, in indices and "
            "distances from\n"
            "offsets[i] to offsets[i + 1] - 1. Other modes: indices [n, max], distances [n, max], "
            "zeros behind\n"
            "the last one, and counts [n].\n"
            "  grove geom radius cells.npy surface.vtp near.zarr r=0.1,0.5 mode=nearest max=16,64",
        .words_usage = "POINTS [QUERIES] OUT",
        .min_words = 2,
        .max_words = 3,
        .table = &table,
        .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session, &config));
}
