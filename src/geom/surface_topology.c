/* Corners by hashing coordinates, edges by sorting the half-edges that start at each corner: O(n) but for corners where very many edges meet.
 * An edge is open where not as many of its triangles run along it one way as the other; without open edges the surface is a cycle, and its winding
 * number is whole everywhere, however it overlaps. */
#include "geom/surface_topology.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"

/* Half-edge j of triangle t, number 3 t + j, filed under its lower corner. */
typedef struct half_edge {
    int64_t number;
    int32_t upper;
    int32_t sign; /* 1 from the lower corner to the upper one, else -1 */
} half_edge;

typedef struct edge_lists {
    int64_t *begin; /* [n_corners + 1] into the following */
    half_edge *half_edges;
} edge_lists;

static uint64_t hash_of(const double x[3])
{
    uint64_t h = 0x9e3779b97f4a7c15U, bits[3];
    memcpy(bits, x, sizeof bits);
    for (int k = 0; k < 3; k++) {
        h = (h ^ bits[k]) * 0xbf58476d1ce4e5b9U;
        h ^= h >> 29;
    }
    return h;
}

static grv_status find_corners(int64_t n_vertices, const double *vertices,
                               grvi_surface_topology *out)
{
    int64_t room = 16;
    while (room < 2 * n_vertices) room *= 2;
    int32_t *table = NULL; /* vertex + 1 of the first vertex at a place */
    GRV_TRY(GRVI_CALLOC(&table, room));
    for (int64_t v = 0; v < n_vertices; v++) {
        double x[3];
        for (int k = 0; k < 3; k++) x[k] = vertices[3 * v + k] + 0.0; /* -0 is 0 */
        int64_t at = (int64_t)(hash_of(x) & (uint64_t)(room - 1));
        for (; table[at] != 0; at = (at + 1) & (room - 1)) {
            const double *const other = &vertices[3 * (int64_t)(table[at] - 1)];
            if (other[0] == x[0] && other[1] == x[1] && other[2] == x[2]) break;
        }
        if (table[at] == 0) {
            table[at] = (int32_t)v + 1;
            out->corner[v] = (int32_t)out->n_corners++;
        } else {
            out->corner[v] = out->corner[table[at] - 1];
        }
    }
    grv_free(table);
    return GRV_OK;
}

/* Corners of half-edge j of a triangle. */
static void ends(const grvi_surface_topology *topology, const int32_t triangle[3], int j,
                 int32_t *from, int32_t *to)
{
    *from = topology->corner[triangle[j]];
    *to = topology->corner[triangle[(j + 1) % 3]];
}

/* Files the half-edges under their lower corners, in order of their numbers. */
static void file_half_edges(const grvi_surface_topology *topology, int64_t n_triangles,
                            const int32_t *triangles, edge_lists *lists)
{
    int32_t from = 0, to = 0;
    for (int64_t h = 0; h < 3 * n_triangles; h++) {
        ends(topology, &triangles[h - h % 3], (int)(h % 3), &from, &to);
        if (from != to) lists->begin[(from < to ? from : to) + 1]++;
    }
    for (int64_t c = 0; c < topology->n_corners; c++) lists->begin[c + 1] += lists->begin[c];
    for (int64_t h = 0; h < 3 * n_triangles; h++) {
        ends(topology, &triangles[h - h % 3], (int)(h % 3), &from, &to);
        if (from == to) continue;
        const int32_t lower = from < to ? from : to;
        lists->half_edges[lists->begin[lower]++] =
            (half_edge){h, from < to ? to : from, from < to ? 1 : -1};
    }
    for (int64_t c = topology->n_corners; c > 0; c--) lists->begin[c] = lists->begin[c - 1];
    lists->begin[0] = 0;
}

static int by_upper_corner(const void *a, const void *b)
{
    const half_edge *const p = a, *const q = b;
    if (p->upper != q->upper) return p->upper < q->upper ? -1 : 1;
    return (p->number > q->number) - (p->number < q->number);
}

static void sort_lists(void *argument, int thread, int64_t begin, int64_t end)
{
    const edge_lists *const lists = argument;
    (void)thread;
    for (int64_t c = begin; c < end; c++) {
        const int64_t n = lists->begin[c + 1] - lists->begin[c];
        qsort(lists->half_edges + lists->begin[c], (size_t)n, sizeof *lists->half_edges,
              by_upper_corner);
    }
}

/* Numbers the edges and counts the open ones. */
static void number_edges(const edge_lists *lists, grvi_surface_topology *out)
{
    for (int64_t c = 0; c < out->n_corners; c++) {
        for (int64_t i = lists->begin[c]; i < lists->begin[c + 1];) {
            const int32_t upper = lists->half_edges[i].upper;
            int64_t balance = 0;
            for (; i < lists->begin[c + 1] && lists->half_edges[i].upper == upper; i++) {
                balance += lists->half_edges[i].sign;
                out->edge[lists->half_edges[i].number] = (int32_t)out->n_edges;
            }
            out->n_open_edges += balance != 0;
            out->n_edges++;
        }
    }
}

static grv_status find_edges(int64_t n_triangles, const int32_t *triangles, int n_threads,
                             grvi_surface_topology *out)
{
    grv_status status = GRV_OK;
    edge_lists lists = {0};
    GRV_TRY_GOTO(GRVI_CALLOC(&lists.begin, out->n_corners + 1));
    GRV_TRY_GOTO(GRVI_ALLOC(&lists.half_edges, 3 * n_triangles));
    for (int64_t h = 0; h < 3 * n_triangles; h++) out->edge[h] = -1;
    file_half_edges(out, n_triangles, triangles, &lists);
    grv_parallel_for(n_threads, out->n_corners, sort_lists, &lists);
    number_edges(&lists, out);
    GRV_CHECK_GOTO(out->n_edges <= INT32_MAX, GRV_E_UNSUPPORTED,
                   "%lld edges; fewer than 2^31 expected", (long long)out->n_edges);
done:
    grv_free(lists.begin);
    grv_free(lists.half_edges);
    return status;
}

/* ---- normals ---- */

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void add_scaled(float sum[3], double factor, const double x[3])
{
    for (int k = 0; k < 3; k++) sum[k] = (float)((double)sum[k] + factor * x[k]);
}

/* Adds a triangle's unit normal to its edges and, by its angles, to its corners. Triangles without area have no normal. */
static void add_normal(const double *vertices, const int32_t triangle[3], const int32_t edge[3],
                       grvi_surface_topology *out)
{
    double side[3][3], length[3], normal[3];
    for (int j = 0; j < 3; j++) {
        for (int k = 0; k < 3; k++)
            side[j][k] = vertices[3 * (int64_t)triangle[(j + 1) % 3] + k] -
                         vertices[3 * (int64_t)triangle[j] + k];
        length[j] = sqrt(dot(side[j], side[j]));
    }
    for (int k = 0; k < 3; k++) {
        const int l = (k + 1) % 3, m = (k + 2) % 3;
        normal[k] = side[0][l] * side[1][m] - side[0][m] * side[1][l];
    }
    const double twice_area = sqrt(dot(normal, normal));
    if (!(twice_area > 0)) return;
    for (int j = 0; j < 3; j++) {
        const double cosine = -dot(side[j], side[(j + 2) % 3]) / (length[j] * length[(j + 2) % 3]);
        const double angle = acos(fmin(fmax(cosine, -1), 1));
        add_scaled(&out->corner_normal[3 * (int64_t)out->corner[triangle[j]]], angle / twice_area,
                   normal);
        if (edge[j] >= 0)
            add_scaled(&out->edge_normal[3 * (int64_t)edge[j]], 1 / twice_area, normal);
    }
}

grv_status grvi_surface_topology_build(int64_t n_vertices, const double *vertices,
                                       int64_t n_triangles, const int32_t *triangles,
                                       bool with_normals, int n_threads,
                                       grvi_surface_topology *topology)
{
    grv_status status = GRV_OK;
    *topology = (grvi_surface_topology){0};
    GRV_TRY_GOTO(GRVI_ALLOC(&topology->corner, n_vertices));
    GRV_TRY_GOTO(GRVI_ALLOC(&topology->edge, 3 * n_triangles));
    GRV_TRY_GOTO(find_corners(n_vertices, vertices, topology));
    GRV_TRY_GOTO(find_edges(n_triangles, triangles, n_threads, topology));
    if (with_normals) {
        GRV_TRY_GOTO(GRVI_CALLOC(&topology->corner_normal, 3 * topology->n_corners));
        GRV_TRY_GOTO(GRVI_CALLOC(&topology->edge_normal, 3 * topology->n_edges));
        for (int64_t t = 0; t < n_triangles; t++)
            add_normal(vertices, &triangles[3 * t], &topology->edge[3 * t], topology);
    }
done:
    if (status != GRV_OK) grvi_surface_topology_fini(topology);
    return status;
}

void grvi_surface_topology_fini(grvi_surface_topology *topology)
{
    grv_free(topology->corner);
    grv_free(topology->edge);
    grv_free(topology->corner_normal);
    grv_free(topology->edge_normal);
    *topology = (grvi_surface_topology){0};
}
