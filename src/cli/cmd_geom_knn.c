/* grove geom knn: the k nearest points of each query. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/geom_cli.h"
#include "core/alloc.h"
#include "grove/core.h"

typedef struct knn_config {
    int64_t k;
    int at, threads;
    bool exclude_self, squared, overwrite;
} knn_config;

#define AT(field) offsetof(knn_config, field)
static const grv_option options[] = {
    {.key = "k",
     .type = GRV_OPTION_I64,
     .offset = AT(k),
     .fallback = "7",
     .min = 1,
     .max = 16777216,
     .help = "neighbours of each query"},
    {.key = "exclude_self",
     .type = GRV_OPTION_BOOL,
     .offset = AT(exclude_self),
     .fallback = "false",
     .help = "without QUERIES: a point is not its own neighbour"},
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

typedef struct knn_job {
    const grvc_search *search;
    grv_nearest_params params;
    int32_t *excluded; /* of a batch: its own points; NULL: none */
} knn_job;

static grv_status compute(void *argument, const grvc_table *t, int64_t first, int64_t count)
{
    const knn_job *const job = argument;
    grv_nearest_params params = job->params;
    if (params.exclude_self) { /* a batch of the queries has other numbers than its points */
        for (int64_t i = 0; i < count; i++) job->excluded[i] = (int32_t)(first + i);
        params.exclude_self = false;
        params.excluded = job->excluded;
    }
    return grv_neighbours_nearest(job->search->tree, grvc_search_queries(job->search, first), count,
                                  &params, grvc_table_rows(t, "indices", first),
                                  grvc_table_rows(t, "distances", first));
}

static grv_status make_group(const grvc_session *session, const grvc_search *search,
                             const knn_config *c, grvc_output *output)
{
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text};
    grvc_description_begin(&w, "knn");
    grvc_search_describe(search, session, &w);
    grvc_json_text(&w, "at", grvc_places[c->at]);
    grvc_json_integer(&w, "k", c->k);
    grvi_json_key(&w, "exclude_self");
    grvi_json_bool(&w, c->exclude_self);
    grvi_json_key(&w, "squared");
    grvi_json_bool(&w, c->squared);
    grvi_json_end_object(&w);
    grvi_json_end_object(&w);
    return grvc_output_group(output, "", &text);
}

static grv_status print_result(const grvc_session *session, const grvc_search *search,
                               const knn_config *c, double seconds)
{
    if (!session->json) {
        (void)printf("%s: %lld nearest of %lld points for %lld queries; %.1f s\n",
                     grvc_search_output(session), (long long)c->k, (long long)search->n_points,
                     (long long)search->n_queries, seconds);
        return GRV_OK;
    }
    grvi_text text = {0};
    grvi_json_writer w = {.out = &text, .pretty = true};
    grvi_json_begin_object(&w);
    grvc_json_text(&w, "target", grvc_search_output(session));
    grvc_json_integer(&w, "points", search->n_points);
    grvc_json_integer(&w, "queries", search->n_queries);
    grvc_json_integer(&w, "k", c->k);
    grvc_json_text(&w, "type", grv_store_type_name(search->type));
    grvc_json_number(&w, "seconds", seconds);
    grvi_json_end_object(&w);
    return grvc_json_print(&text);
}

static grv_status run(const grvc_session *session, const knn_config *c)
{
    grv_status status = GRV_OK;
    grvc_output output = {0};
    grvc_search search = {0};
    const double start_s = grv_clock_seconds();
    grvc_table t = {.rank = 1, .axes = {"query"}, .components = "neighbour"};
    knn_job job = {.search = &search, .params = grv_nearest_params_default()};
    const int n_threads = grvc_threads(c->threads);
    job.params.k = c->k;
    job.params.exclude_self = c->exclude_self;
    job.params.squared = c->squared;
    job.params.n_threads = n_threads;
    GRV_CHECK(!c->exclude_self || session->n_words == 2, GRV_E_CONFIG,
              "exclude_self: queries that are the points themselves expected, QUERIES found");
    GRV_TRY_GOTO(grvc_output_check(grvc_search_output(session), "", c->overwrite, &output));
    GRV_TRY_GOTO(grvc_search_begin(&search, session, c->at, false, n_threads));
    if (c->exclude_self) GRV_TRY_GOTO(GRVI_ALLOC(&job.excluded, search.n_queries));
    GRV_TRY_GOTO(grvc_output_open(&output, n_threads));
    GRV_TRY_GOTO(make_group(session, &search, c, &output));
    t.output = &output;
    t.shape[0] = search.n_queries;
    grvc_table_add(&t, "indices", GRV_STORE_I32, c->k);
    grvc_table_add(&t, "distances", search.type, c->k);
    GRV_TRY_GOTO(grvc_table_run(&t, compute, &job, session, "queries"));
    GRV_TRY_GOTO(grvc_output_publish(&output));
    GRV_TRY_GOTO(print_result(session, &search, c, grv_clock_seconds() - start_s));
done:
    grvc_table_fini(&t);
    grvc_output_fini(&output);
    grvc_search_fini(&search);
    grv_free(job.excluded);
    return status;
}

int grvc_geom_knn(int argc, char **argv)
{
    knn_config config = {0};
    grvc_session session = {
        .name = "grove geom knn",
        .about = "The k nearest of POINTS for each of QUERIES (or of POINTS themselves): exact, by "
                 "distance, ties by\n"
                 "number. Both are a mesh file, a Zarr array [n, 3] or [n, 2] (FOLDER.zarr/NAME), "
                 "or a .npy file, of\n"
                 "float32 or float64. OUT.zarr becomes a group of indices [n, k] and distances [n, "
                 "k] of the points'\n"
                 "type; where there are fewer than k points, -1 and infinity.\n"
                 "  grove geom knn body.vtp body_neighbours.zarr k=8 exclude_self=true",
        .words_usage = "POINTS [QUERIES] OUT",
        .min_words = 2,
        .max_words = 3,
        .table = &table,
        .params = &config};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, run(&session, &config));
}
