/* Moments of the triangles below each child of the hierarchy, for winding numbers from afar (kernels/surface_kernels.h).
 * Sums in double, from the leaves up: a block's from its triangles, a node's from its children's, moved to the new centre. Nodes are taken from the
 * last to the first, because children stand behind their parents; depends on the tree only. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "geom/surface_tree.h"
#include "grove/core.h"

enum { WIDTH = GRVI_SURFACE_WIDTH };

/* Of a piece of surface: area and its first moment; then about `centre`, with all products written out:
 * first[i] = int n_i, second[i][j] = int n_i y_j, third[i][j][k] = int n_i y_j y_k, where y = x - centre. */
typedef struct moments {
    double area, centre[3], radius;
    double first[3], second[3][3], third[3][3][3];
} moments;

/* ---- of a block ---- */

typedef struct flat_triangle {
    const double *corner[3];
    double centre[3], normal_area[3], area;
} flat_triangle;

static flat_triangle triangle_get(const grvi_surface_tree *tree, int32_t number)
{
    flat_triangle t;
    double ab[3], ac[3];
    for (int j = 0; j < 3; j++)
        t.corner[j] = &tree->vertices[3 * (int64_t)tree->triangles[3 * (int64_t)number + j]];
    for (int k = 0; k < 3; k++) {
        ab[k] = t.corner[1][k] - t.corner[0][k];
        ac[k] = t.corner[2][k] - t.corner[0][k];
        t.centre[k] = (t.corner[0][k] + t.corner[1][k] + t.corner[2][k]) / 3;
    }
    double area2 = 0;
    for (int k = 0; k < 3; k++) {
        const int l = (k + 1) % 3, m = (k + 2) % 3;
        t.normal_area[k] = 0.5 * (ab[l] * ac[m] - ab[m] * ac[l]);
        area2 += t.normal_area[k] * t.normal_area[k];
    }
    t.area = sqrt(area2);
    return t;
}

/* Adds int n y_j and int n y_j y_k of a triangle. The second moment of a flat triangle about its own centre is 1/12 of the sum over its corners. */
static void add_triangle(const flat_triangle *t, moments *m)
{
    double to_centre[3];
    for (int k = 0; k < 3; k++) to_centre[k] = t->centre[k] - m->centre[k];
    for (int j = 0; j < 3; j++) {
        for (int i = 0; i < 3; i++) m->second[i][j] += t->normal_area[i] * to_centre[j];
        for (int k = 0; k < 3; k++) {
            double product = to_centre[j] * to_centre[k];
            for (int c = 0; c < 3; c++)
                product += (t->corner[c][j] - t->centre[j]) * (t->corner[c][k] - t->centre[k]) / 12;
            for (int i = 0; i < 3; i++) m->third[i][j][k] += t->normal_area[i] * product;
        }
    }
    for (int i = 0; i < 3; i++) m->first[i] += t->normal_area[i];
    for (int c = 0; c < 3; c++) {
        double d2 = 0;
        for (int k = 0; k < 3; k++)
            d2 += (t->corner[c][k] - m->centre[k]) * (t->corner[c][k] - m->centre[k]);
        m->radius = grvi_max_f64(m->radius, sqrt(d2));
    }
}

static moments of_block(const grvi_surface_tree *tree, const grvi_surface_block *block)
{
    moments m = {0};
    flat_triangle t[WIDTH];
    for (int i = 0; i < block->count; i++) {
        t[i] = triangle_get(tree, block->triangle[i]);
        m.area += t[i].area;
        for (int k = 0; k < 3; k++) m.centre[k] += t[i].area * t[i].centre[k];
    }
    /* without area the centre does not matter, but the radius must hold the corners */
    for (int k = 0; k < 3; k++) m.centre[k] = m.area > 0 ? m.centre[k] / m.area : t[0].centre[k];
    for (int i = 0; i < block->count; i++) add_triangle(&t[i], &m);
    return m;
}

/* ---- of a node ---- */

/* Adds a child's moments, moved to the sum's centre. */
static void add_moved(const moments *child, moments *sum)
{
    double s[3], distance2 = 0;
    for (int k = 0; k < 3; k++) {
        s[k] = child->centre[k] - sum->centre[k];
        distance2 += s[k] * s[k];
    }
    for (int i = 0; i < 3; i++) {
        sum->first[i] += child->first[i];
        for (int j = 0; j < 3; j++) {
            sum->second[i][j] += child->second[i][j] + child->first[i] * s[j];
            for (int k = 0; k < 3; k++)
                sum->third[i][j][k] += child->third[i][j][k] + child->second[i][j] * s[k] +
                                       child->second[i][k] * s[j] + child->first[i] * s[j] * s[k];
        }
    }
    sum->radius = grvi_max_f64(sum->radius, sqrt(distance2) + child->radius);
}

/* Distance from the centre to the farthest corner of a node's boxes: the other bound of the radius. */
static double box_radius(const grvi_surface_node *node, const double centre[3])
{
    double most = 0;
    for (int i = 0; i < WIDTH; i++) {
        if (node->child[i] == GRVI_SURFACE_EMPTY) continue;
        double d2 = 0;
        for (int k = 0; k < 3; k++) {
            const double y = (double)node->axis[k][0][i] * centre[0] +
                             (double)node->axis[k][1][i] * centre[1] +
                             (double)node->axis[k][2][i] * centre[2];
            const double d = grvi_max_f64((double)node->hi[k][i] - y, y - (double)node->lo[k][i]);
            d2 += d * d;
        }
        most = grvi_max_f64(most, d2);
    }
    return sqrt(most);
}

static moments of_children(const grvi_surface_node *node, const moments child[WIDTH])
{
    moments sum = {0};
    for (int i = 0; i < WIDTH; i++) {
        sum.area += child[i].area;
        for (int k = 0; k < 3; k++) sum.centre[k] += child[i].area * child[i].centre[k];
    }
    for (int k = 0; k < 3; k++)
        sum.centre[k] = sum.area > 0 ? sum.centre[k] / sum.area : child[0].centre[k];
    for (int i = 0; i < WIDTH; i++)
        if (node->child[i] != GRVI_SURFACE_EMPTY) add_moved(&child[i], &sum);
    sum.radius = grvi_min_f64(sum.radius, box_radius(node, sum.centre));
    return sum;
}

/* Child i of a node as the kernels want it: symmetric parts without traces, multiplicities and factors multiplied in. */
static void store_child(const moments *m, grvi_surface_moments *out, int i)
{
    static const int pair[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
    static const int triple[10][3] = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {0, 0, 1}, {0, 0, 2},
                                      {0, 1, 1}, {1, 1, 2}, {0, 2, 2}, {1, 2, 2}, {0, 1, 2}};
    const double third_of_trace = (m->second[0][0] + m->second[1][1] + m->second[2][2]) / 3;
    double symmetric[3][3][3], trace[3];
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            for (int c = 0; c < 3; c++)
                symmetric[a][b][c] =
                    (m->third[a][b][c] + m->third[b][a][c] + m->third[c][a][b]) / 3;
    for (int a = 0; a < 3; a++)
        trace[a] = (symmetric[a][0][0] + symmetric[a][1][1] + symmetric[a][2][2]) / 5;
    for (int k = 0; k < 3; k++) {
        out->centre[k][i] = (float)m->centre[k];
        out->first[k][i] = (float)m->first[k];
    }
    /* the centre's own rounding counts */
    const double radius = m->radius + 1e-6 * (m->radius + 0.1);
    out->radius2[i] = (float)(radius * radius);
    for (int p = 0; p < 6; p++) {
        const int a = pair[p][0], b = pair[p][1];
        const double value =
            a == b ? m->second[a][a] - third_of_trace : m->second[a][b] + m->second[b][a];
        out->second[p][i] = (float)(-3 * value);
    }
    for (int t = 0; t < 10; t++) {
        const int a = triple[t][0], b = triple[t][1], c = triple[t][2];
        const double traceless =
            symmetric[a][b][c] - ((a == b) * trace[c] + (b == c) * trace[a] + (a == c) * trace[b]);
        const double multiplicity = a == b && b == c ? 1 : a == b || b == c ? 3 : 6;
        out->third[t][i] = (float)(7.5 * multiplicity * traceless);
    }
}

/* ---- all of them ---- */

typedef struct call {
    const grvi_surface_tree *tree;
    moments *of_block, *of_node;
    grvi_surface_corners *corners;
} call;

static void fill_blocks(void *argument, int thread, int64_t begin, int64_t end)
{
    const call *const c = argument;
    (void)thread;
    for (int64_t b = begin; b < end; b++) {
        const grvi_surface_block *const block = &c->tree->blocks[b];
        c->of_block[b] = of_block(c->tree, block);
        for (int i = 0; i < WIDTH; i++) {
            const int32_t *const triangle = &c->tree->triangles[3 * (int64_t)block->triangle[i]];
            for (int j = 0; j < 3; j++) {
                const double *const x =
                    &c->tree->vertices[3 * (int64_t)triangle[i < block->count ? j : 0]];
                for (int k = 0; k < 3; k++) c->corners[b].x[j][k][i] = (float)x[k];
            }
        }
    }
}

static void fill_nodes(const call *c, grvi_surface_moments *out)
{
    const grvi_surface_tree *const tree = c->tree;
    for (int64_t n = tree->n_nodes; n-- > 0;) {
        moments child[WIDTH];
        memset(child, 0, sizeof child);
        const grvi_surface_node *const node = &tree->nodes[n];
        for (int i = 0; i < WIDTH; i++) {
            if (node->child[i] != GRVI_SURFACE_EMPTY)
                child[i] =
                    node->child[i] >= 0 ? c->of_node[node->child[i]] : c->of_block[~node->child[i]];
            store_child(&child[i], &out[n], i);
            if (node->child[i] == GRVI_SURFACE_EMPTY) out[n].radius2[i] = INFINITY; /* never far */
        }
        c->of_node[n] = of_children(node, child);
    }
}

grv_status grvi_surface_tree_add_moments(grvi_surface_tree *tree, int n_threads)
{
    grv_status status = GRV_OK;
    call c = {.tree = tree};
    GRV_TRY_GOTO(GRVI_ALLOC(&c.of_block, tree->n_blocks));
    GRV_TRY_GOTO(GRVI_ALLOC(&c.of_node, tree->n_nodes));
    GRV_TRY_GOTO(GRVI_ALLOC(&c.corners, tree->n_blocks));
    GRV_TRY_GOTO(GRVI_ALLOC(&tree->moments, tree->n_nodes));
    grv_parallel_for(n_threads, tree->n_blocks, fill_blocks, &c);
    fill_nodes(&c, tree->moments);
    tree->corners = c.corners;
    c.corners = NULL;
done:
    grv_free(c.of_block);
    grv_free(c.of_node);
    grv_free(c.corners);
    return status;
}
