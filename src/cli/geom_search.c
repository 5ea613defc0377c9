/* What `grove geom knn` and `grove geom radius` share: points, queries, and the tree over the points. */
#include "cli/geom_cli.h"
#include "grove/core.h"

const char *grvc_search_output(const grvc_session *session)
{
    return session->words[session->n_words - 1];
}

grv_status grvc_search_begin(grvc_search *search, const grvc_session *session, int at,
                             bool keep_points, int n_threads)
{
    grvc_points *const points = &search->points, *const queries = &search->queries;
    double since_s = grv_clock_seconds();
    GRV_TRY(grvc_points_read(session->words[0], at, n_threads, points));
    if (session->n_words == 3) {
        GRV_TRY(grvc_points_read(session->words[1], at, n_threads, queries));
        GRV_TRY(grvc_points_match(points, queries));
    }
    search->n_points = points->n;
    search->n_queries = queries->data != NULL ? queries->n : points->n;
    search->type = points->type;
    grvc_tell_step(session, "points read", &since_s);
    GRV_TRY(grv_neighbours_create(points->data, points->n, points->dimension,
                                  grvc_points_type(points), n_threads, &search->tree));
    grvc_tell_step(session, "tree built", &since_s);
    if (queries->data != NULL && !keep_points) grvc_points_fini(points);
    return GRV_OK;
}

const void *grvc_search_queries(const grvc_search *search, int64_t first)
{
    const grvc_points *const p = search->queries.data != NULL ? &search->queries : &search->points;
    return (const uint8_t *)p->data + first * p->dimension * grv_store_type_bytes(p->type);
}

void grvc_search_fini(grvc_search *search)
{
    grv_neighbours_destroy(&search->tree);
    grvc_points_fini(&search->points);
    grvc_points_fini(&search->queries);
}

void grvc_search_describe(const grvc_search *search, const grvc_session *session,
                          grvi_json_writer *w)
{
    grvc_json_text(w, "points", session->words[0]);
    grvc_json_integer(w, "n_points", search->n_points);
    if (session->n_words == 3) grvc_json_text(w, "queries", session->words[1]);
}
