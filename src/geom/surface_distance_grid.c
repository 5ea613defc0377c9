/* Points of a regular grid, brick by brick, back and forth through each, so that the closest point of one bounds the search of the next.
 * With a band: bricks that the band does not reach are left out, and after that every point without an answer takes the closest point of a neighbour if
 * that is the nearest it knows, line by line along each axis in both directions, twice: the vector distance transform of Danielsson (1980). A point
 * outside the band has no surface between it and its neighbours, which therefore have its sign; with a winding number that is not whole each point
 * computes its own. O(n); 41 bytes a point of scratch with a band. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "geom/surface_impl.h"
#include "grove/core.h"

enum { BRICK = 8, ROUNDS = 2 };

/* What sweeps know of the points; closest is there where source is the point itself. */
typedef struct sweep_state {
    double *distance, *closest; /* tree coordinates; distance: infinite where nothing is known */
    int64_t *source;            /* the computed point whose closest point is taken */
    int8_t *sign;
} sweep_state;

typedef struct grid_call {
    const grv_surface *surface;
    const grv_surface_grid *grid;
    const grvi_surface_sink *sink;
    int64_t n_bricks[3];
    double max_distance,
        brick_radius;   /* tree coordinates; the latter 0 unless bricks may be left out */
    sweep_state *state; /* NULL without a band */
    int axis;           /* of a sweep */
    atomic_llong next, n_found;
} grid_call;

static int64_t number_of(const grv_surface_grid *grid, const int64_t at[3])
{
    return (at[0] * grid->n[1] + at[1]) * grid->n[2] + at[2];
}

static void point_get(const grid_call *call, const int64_t at[3], double x[3])
{
    double point[3];
    for (int k = 0; k < 3; k++)
        point[k] = call->grid->origin[k] + (double)at[k] * call->grid->spacing[k];
    grvi_surface_to_tree(call->surface, point, x);
}

/* ---- computed points ---- */

typedef struct brick {
    int64_t begin[3], end[3];
} brick;

static brick brick_get(const grid_call *call, int64_t number)
{
    const int64_t at[3] = {number / (call->n_bricks[1] * call->n_bricks[2]),
                           number / call->n_bricks[2] % call->n_bricks[1],
                           number % call->n_bricks[2]};
    brick b;
    for (int k = 0; k < 3; k++) {
        b.begin[k] = at[k] * BRICK;
        b.end[k] = grvi_min_i64(b.begin[k] + BRICK, call->grid->n[k]);
    }
    return b;
}

/* Whether anything of the surface is so near to the brick that one of its points may find it. */
static bool is_reached(const grid_call *call, const brick *b)
{
    if (!(call->brick_radius > 0)) return true;
    double first[3], last[3], centre[3];
    const int64_t top[3] = {b->end[0] - 1, b->end[1] - 1, b->end[2] - 1};
    point_get(call, b->begin, first);
    point_get(call, top, last);
    for (int k = 0; k < 3; k++) centre[k] = 0.5 * (first[k] + last[k]);
    grvi_surface_hit hit = {.distance2 = pow(call->max_distance + call->brick_radius, 2),
                            .triangle = -1};
    double reach = 0;
    for (int k = 0; k < 3; k++) reach = fmax(reach, fabs(centre[k]));
    if (!(reach < GRVI_SURFACE_REACH / 2)) return true;
    call->surface->kernels->closest(&call->surface->tree, centre, &hit);
    return hit.triangle >= 0;
}

static void remember(const grid_call *call, int64_t i, const grvi_surface_found *found)
{
    sweep_state *const state = call->state;
    state->source[i] = i;
    state->distance[i] = found->distance;
    state->sign[i] = (int8_t)found->sign;
    memcpy(&state->closest[3 * i], found->closest, sizeof found->closest);
}

static int64_t find_line(const grid_call *call, const brick *b, int64_t at[3], bool backwards,
                         grvi_surface_memory *memory)
{
    int64_t n_found = 0;
    for (int64_t k = b->begin[2]; k < b->end[2]; k++) {
        grvi_surface_found found;
        double x[3];
        at[2] = backwards ? b->end[2] - 1 - (k - b->begin[2]) : k;
        const int64_t i = number_of(call->grid, at);
        point_get(call, at, x);
        grvi_surface_find(call->surface, x, call->max_distance, call->sink->winding != NULL, memory,
                          &found);
        if (call->state == NULL || found.triangle >= 0)
            grvi_surface_put(call->surface, call->sink, i, &found);
        if (found.triangle < 0) continue;
        if (call->state != NULL) remember(call, i, &found);
        n_found++;
    }
    return n_found;
}

static void find_bricks(void *argument, int thread, int64_t begin, int64_t end)
{
    grid_call *const call = argument;
    const int64_t n = call->n_bricks[0] * call->n_bricks[1] * call->n_bricks[2];
    grvi_surface_memory memory = {0};
    (void)thread;
    (void)begin;
    (void)end;
    for (int64_t number = atomic_fetch_add(&call->next, 1); number < n;
         number = atomic_fetch_add(&call->next, 1)) {
        const brick b = brick_get(call, number);
        if (!is_reached(call, &b)) continue;
        int64_t n_found = 0, at[3];
        for (int64_t i = 0; i < b.end[0] - b.begin[0]; i++) {
            for (int64_t j = 0; j < b.end[1] - b.begin[1]; j++) {
                at[0] = b.begin[0] + i;
                at[1] = i % 2 == 0 ? b.begin[1] + j : b.end[1] - 1 - j;
                n_found += find_line(call, &b, at, (i * BRICK + j) % 2 != 0, &memory);
            }
        }
        atomic_fetch_add(&call->n_found, n_found);
    }
}

static void find_all(grid_call *call, int n_threads)
{
    atomic_store(&call->next, 0);
    atomic_store(&call->n_found, 0);
    grv_parallel_for(n_threads, n_threads, find_bricks, call);
}

/* ---- swept points ---- */

static void take_over(const grid_call *call, const int64_t at[3], int64_t from)
{
    sweep_state *const s = call->state;
    const int64_t i = number_of(call->grid, at), source = s->source[from];
    if (s->source[i] == i || source < 0) return;
    double x[3], d2 = 0;
    point_get(call, at, x);
    for (int k = 0; k < 3; k++) d2 += pow(x[k] - s->closest[3 * source + k], 2);
    const double d = sqrt(d2);
    if (!(d < s->distance[i])) return;
    s->distance[i] = d;
    s->source[i] = source;
    s->sign[i] = s->sign[from];
}

/* Lines along an axis, there and back. */
static void sweep_lines(void *argument, int thread, int64_t begin, int64_t end)
{
    const grid_call *const call = argument;
    const int axis = call->axis, b = axis == 0 ? 1 : 0, c = axis == 2 ? 1 : 2;
    const int64_t length = call->grid->n[axis];
    const int64_t step = axis == 2   ? 1
                         : axis == 1 ? call->grid->n[2]
                                     : call->grid->n[1] * call->grid->n[2];
    (void)thread;
    for (int64_t line = begin; line < end; line++) {
        int64_t at[3];
        at[b] = line / call->grid->n[c];
        at[c] = line % call->grid->n[c];
        for (int64_t i = 1; i < length; i++) {
            at[axis] = i;
            take_over(call, at, number_of(call->grid, at) - step);
        }
        for (int64_t i = length - 1; i-- > 0;) {
            at[axis] = i;
            take_over(call, at, number_of(call->grid, at) + step);
        }
    }
}

static void write_swept(void *argument, int thread, int64_t begin, int64_t end)
{
    const grid_call *const call = argument;
    const sweep_state *const s = call->state;
    const bool own_sign = call->surface->params.sign == GRV_SURFACE_WINDING &&
                          call->surface->topology.n_open_edges > 0;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        if (s->source[i] == i) continue;
        const int64_t at[3] = {i / (call->grid->n[1] * call->grid->n[2]),
                               i / call->grid->n[2] % call->grid->n[1], i % call->grid->n[2]};
        double x[3];
        point_get(call, at, x);
        const int sign =
            own_sign ? grvi_surface_winding_sign(call->surface, x, s->distance[i]) : s->sign[i];
        grvi_surface_put_swept(call->surface, call->sink, i, s->source[i], s->distance[i], sign);
    }
}

static grv_status find_banded(grid_call *call, int n_threads, double band)
{
    grv_status status = GRV_OK;
    sweep_state state = {0};
    const int64_t n_points = call->grid->n[0] * call->grid->n[1] * call->grid->n[2];
    GRV_TRY_GOTO(GRVI_ALLOC(&state.distance, n_points));
    GRV_TRY_GOTO(GRVI_ALLOC(&state.closest, 3 * n_points));
    GRV_TRY_GOTO(GRVI_ALLOC(&state.source, n_points));
    GRV_TRY_GOTO(GRVI_CALLOC(&state.sign, n_points));
    for (int64_t i = 0; i < n_points; i++) {
        state.distance[i] = (double)INFINITY;
        state.source[i] = -1;
    }
    double half = 0;
    for (int k = 0; k < 3; k++)
        half += pow(0.5 * (BRICK - 1) * call->grid->spacing[k] * call->surface->params.scale[k] *
                        call->surface->to_tree,
                    2);
    call->state = &state;
    call->max_distance = band * call->surface->to_tree;
    call->brick_radius = sqrt(half) * (1 + 1e-9) + 1e-9;
    find_all(call, n_threads);
    if (atomic_load(&call->n_found) ==
        0) { /* the band does not reach the grid: nothing to sweep from */
        call->state = NULL;
        call->max_distance = (double)INFINITY;
        call->brick_radius = 0;
        find_all(call, n_threads);
        goto done;
    }
    for (int pass = 0; pass < 3 * ROUNDS; pass++) {
        call->axis = pass % 3;
        grv_parallel_for(n_threads, n_points / call->grid->n[call->axis], sweep_lines, call);
    }
    grv_parallel_for(n_threads, n_points, write_swept, call);
done:
    grv_free(state.distance);
    grv_free(state.closest);
    grv_free(state.source);
    grv_free(state.sign);
    return status;
}

static grv_status check_grid(const grv_surface *surface, const grv_surface_grid *grid,
                             const grv_surface_query *query, const grvi_surface_sink *sink)
{
    double longest = 0;
    int64_t n = 1, n_values = 0;
    for (int k = 0; k < 3; k++) {
        GRV_CHECK(grid->n[k] >= 0 && grvi_mul_i64(n, grid->n[k], &n) &&
                      grvi_mul_i64(n, 64, &n_values),
                  GRV_E_ARG, "grid of %lld x %lld x %lld points", (long long)grid->n[0],
                  (long long)grid->n[1], (long long)grid->n[2]);
        GRV_CHECK(isfinite(grid->origin[k]) && isfinite(grid->spacing[k]) && grid->spacing[k] > 0,
                  GRV_E_ARG,
                  "grid axis %d: a finite origin and a positive spacing expected, %g and %g found",
                  k, grid->origin[k], grid->spacing[k]);
        longest = fmax(longest, grid->spacing[k] * surface->params.scale[k]);
    }
    GRV_CHECK(isinf(query->band) || query->band >= longest, GRV_E_ARG,
              "band: at least the longest spacing, %g, expected, %g found", longest, query->band);
    GRV_CHECK(isinf(query->band) || isinf(query->max_distance), GRV_E_ARG,
              "a band of %g and a largest distance of %g: only one expected", query->band,
              query->max_distance);
    GRV_CHECK(isinf(query->band) || sink->winding == NULL, GRV_E_ARG,
              "winding numbers asked of a grid with a band");
    return GRV_OK;
}

static grv_status find_grid(const grv_surface *surface, const grv_surface_grid *grid,
                            const grv_surface_query *query, const grvi_surface_sink *sink)
{
    const grv_surface_query defaults = grv_surface_query_default();
    if (query == NULL) query = &defaults;
    GRV_TRY(grvi_surface_query_check(surface, query, sink));
    GRV_TRY(check_grid(surface, grid, query, sink));
    const int n_threads = query->n_threads < 1 ? 1 : query->n_threads;
    grid_call call = {.surface = surface,
                      .grid = grid,
                      .sink = sink,
                      .max_distance = query->max_distance * surface->to_tree};
    for (int k = 0; k < 3; k++) call.n_bricks[k] = grvi_ceil_div(grid->n[k], BRICK);
    if (call.n_bricks[0] * call.n_bricks[1] * call.n_bricks[2] == 0) return GRV_OK;
    if (isinf(query->band) || surface->n_triangles == 0)
        find_all(&call, n_threads);
    else
        GRV_TRY(find_banded(&call, n_threads, query->band));
    return GRV_OK;
}

grv_status grv_surface_grid_f64(const grv_surface *surface, const grv_surface_grid *grid,
                                const grv_surface_query *query,
                                const grv_surface_result_f64 *result)
{
    const grvi_surface_sink sink = {true,
                                    result->distance,
                                    result->closest,
                                    result->barycentric,
                                    result->winding,
                                    result->triangle,
                                    result->exact};
    GRV_TRY(find_grid(surface, grid, query, &sink));
    return GRV_OK;
}

grv_status grv_surface_grid_f32(const grv_surface *surface, const grv_surface_grid *grid,
                                const grv_surface_query *query,
                                const grv_surface_result_f32 *result)
{
    const grvi_surface_sink sink = {
        false,           result->distance, result->closest, result->barycentric,
        result->winding, result->triangle, result->exact};
    GRV_TRY(find_grid(surface, grid, query, &sink));
    return GRV_OK;
}
