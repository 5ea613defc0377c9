/* Parts of bodies that are thinner than the grid resolves (flow_mesh.h).
 * From points of the surface, several per square cell, a walk goes inward by the distance to the surface, which it cannot cross that way, until
 * it comes out or is deep enough. All walks make a step together, so that each step is one batch of distances. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"
#include "sim/flow_mesh_impl.h"

static const double walks_per_area = 4; /* square cells */
enum { LEAST_WALKS = 1000, MOST_WALKS = 2000000 };
static const double shortest_step = 0.05; /* cells */
static const double deep_enough =
    GRV_FLOW_THIN_CELLS - 1e-6;       /* what is just so thick is not thin */
static const double faces_away = 0.5; /* cosine: edges sharper than 60 degrees count as thin */

typedef struct walks {
    int64_t n_all, n;  /* of them under way */
    double *start;     /* [n][3] on the surface */
    double *inward;    /* [n][3] */
    double *depth;     /* [n] */
    double *point;     /* [n][3] where they are */
    double *distance;  /* [n] there */
    int32_t *triangle; /* [n] the closest one */
    int64_t n_thin;
    double *thin; /* [n_thin][3] the middle of those that came out, the same from both sides */
} walks;

static void walks_fini(walks *w)
{
    grv_free(w->start);
    grv_free(w->inward);
    grv_free(w->depth);
    grv_free(w->point);
    grv_free(w->distance);
    grv_free(w->triangle);
    grv_free(w->thin);
}

static grv_status walks_init(walks *w, const grv_flow_mesh *mesh, int n_threads)
{
    w->n_all = w->n =
        (int64_t)fmin(MOST_WALKS, fmax(LEAST_WALKS, walks_per_area * mesh->info.area));
    GRV_TRY(GRVI_ALLOC(&w->start, 3 * w->n));
    GRV_TRY(GRVI_ALLOC(&w->inward, 3 * w->n));
    GRV_TRY(GRVI_ALLOC(&w->depth, w->n));
    GRV_TRY(GRVI_ALLOC(&w->point, 3 * w->n));
    GRV_TRY(GRVI_ALLOC(&w->distance, w->n));
    GRV_TRY(GRVI_ALLOC(&w->triangle, w->n));
    GRV_TRY(GRVI_ALLOC(&w->thin, 3 * w->n));
    const grv_surface_samples_f64 samples = {.points = w->start, .normals = w->inward};
    GRV_TRY(grv_surface_sampler_draw_f64(mesh->sampler, 0, 0, w->n, n_threads, &samples));
    for (int64_t i = 0; i < 3 * w->n; i++) w->inward[i] *= -mesh->outward;
    for (int64_t i = 0; i < w->n; i++) w->depth[i] = shortest_step;
    return GRV_OK;
}

/* Whether a walk that came out crossed the body, and not just one of its edges: the other side then faces away, or, of a surface without inside,
 * it is the side where it began. */
static bool has_crossed(const walks *w, const grv_flow_mesh *mesh, int64_t i)
{
    double normal[3], cosine = 0;
    grvi_flow_mesh_normal(mesh, w->triangle[i], normal);
    for (int d = 0; d < 3; d++) cosine += normal[d] * w->inward[3 * i + d];
    return fabs(cosine) > faces_away;
}

static void note_thin(walks *w, int64_t i, double *thinnest)
{
    for (int d = 0; d < 3; d++)
        w->thin[3 * w->n_thin + d] = w->start[3 * i + d] + w->depth[i] / 2 * w->inward[3 * i + d];
    w->n_thin++;
    *thinnest = fmin(*thinnest, w->depth[i]);
}

/* Ends those that came out or are deep enough; the others go on. */
static void sort_out(walks *w, const grv_flow_mesh *mesh, double *thinnest)
{
    int64_t n = 0;
    for (int64_t i = 0; i < w->n; i++) {
        const double depth = w->depth[i], distance = w->distance[i];
        if (!(distance < 0)) {
            if (has_crossed(w, mesh, i)) note_thin(w, i, thinnest);
        } else if (depth < deep_enough) {
            memmove(&w->start[3 * n], &w->start[3 * i], 3 * sizeof *w->start);
            memmove(&w->inward[3 * n], &w->inward[3 * i], 3 * sizeof *w->inward);
            w->depth[n++] = fmin(deep_enough, depth + fmax(shortest_step, -distance));
        }
    }
    w->n = n;
}

static grv_status walk(walks *w, const grv_flow_mesh *mesh, int n_threads, double *thinnest)
{
    const grv_surface_query query = {
        .max_distance = (double)INFINITY, .band = (double)INFINITY, .n_threads = n_threads};
    const grv_surface_result_f64 result = {.distance = w->distance, .triangle = w->triangle};
    while (w->n > 0) {
        for (int64_t i = 0; i < 3 * w->n; i++)
            w->point[i] = w->start[i] + w->depth[i / 3] * w->inward[i];
        GRV_TRY(grv_surface_points_f64(mesh->surface, w->n, w->point, &query, &result));
        sort_out(w, mesh, thinnest);
    }
    return GRV_OK;
}

/* ---- pieces ---- */

/* A grid of cells around the body, with a layer to spare. */
typedef struct cell_marks {
    int64_t n[3];
    double origin[3];
    uint8_t *is_thin;
    int64_t *pile; /* of cells to be visited: each of the thin ones at most once */
} cell_marks;

static void visit_piece(const cell_marks *m, int64_t first)
{
    int64_t n_pile = 1;
    m->pile[0] = first;
    m->is_thin[first] = 0;
    while (n_pile > 0) {
        const int64_t at = m->pile[--n_pile];
        for (int64_t k = 0; k < 27; k++) {
            const int64_t other =
                at + ((k / 9 - 1) * m->n[1] + k / 3 % 3 - 1) * m->n[2] + k % 3 - 1;
            if (!m->is_thin[other]) continue;
            m->is_thin[other] = 0;
            m->pile[n_pile++] = other;
        }
    }
}

static grv_status count_pieces(const walks *w, const grv_flow_mesh *mesh, int64_t *n_pieces)
{
    grv_status status = GRV_OK;
    cell_marks m = {.is_thin = NULL};
    int64_t n_cells = 1;
    for (int d = 0; d < 3; d++) {
        const double n = floor(mesh->info.upper[d] - mesh->info.lower[d]) + 3;
        m.origin[d] = mesh->info.lower[d] - 1;
        GRV_CHECK(n < 0x1p62 && grvi_mul_i64(n_cells, m.n[d] = (int64_t)n, &n_cells), GRV_E_NOMEM,
                  "a body %g cells long", mesh->info.upper[d] - mesh->info.lower[d]);
    }
    GRV_TRY_GOTO(GRVI_CALLOC(&m.is_thin, n_cells));
    GRV_TRY_GOTO(GRVI_ALLOC(&m.pile, w->n_thin));
    for (int64_t i = 0; i < w->n_thin; i++) {
        int64_t at = 0;
        for (int d = 0; d < 3; d++) at = at * m.n[d] + (int64_t)(w->thin[3 * i + d] - m.origin[d]);
        m.is_thin[at] = 1;
    }
    for (int64_t i = 0; i < n_cells; i++) {
        if (!m.is_thin[i]) continue;
        visit_piece(&m, i);
        ++*n_pieces;
    }
done:
    grv_free(m.is_thin);
    grv_free(m.pile);
    return status;
}

grv_status grv_flow_mesh_thin_get(const grv_flow_mesh *mesh, int n_threads, grv_flow_thin *thin)
{
    walks w = {.n = 0};
    *thin = (grv_flow_thin){.thinnest = GRV_FLOW_THIN_CELLS};
    grv_status status = walks_init(&w, mesh, n_threads);
    if (status == GRV_OK) status = walk(&w, mesh, n_threads, &thin->thinnest);
    if (status == GRV_OK && w.n_thin > 0) {
        thin->share = (double)w.n_thin / (double)w.n_all;
        status = count_pieces(&w, mesh, &thin->n_parts);
    }
    walks_fini(&w);
    return status;
}
