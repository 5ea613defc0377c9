/* Boxes that are turned with the surface: one axis along the area-weighted normal of the triangles below, the others along the principal directions of
 * their corners within the plane. Kept where their surface is smaller than that of the upright box. Seen from a distance d, an upright box of size s on a
 * slanted plane reaches nearer than the closest point within sqrt(d s) around it; a turned one has no such thickness. */
#include <math.h>

#include "geom/surface_tree.h"
#include "grove/core.h"

enum { WIDTH = GRVI_SURFACE_WIDTH, LARGEST = 512 }; /* triangles below a turned box */

/* Walks over the blocks below a child. */
typedef void block_body(const grvi_surface_tree *tree, const grvi_surface_block *block,
                        void *argument);

static void for_blocks(const grvi_surface_tree *tree, int32_t child, block_body *body,
                       void *argument)
{
    if (child < 0) {
        body(tree, &tree->blocks[~child], argument);
        return;
    }
    for (int i = 0; i < WIDTH; i++)
        if (tree->nodes[child].child[i] != GRVI_SURFACE_EMPTY)
            for_blocks(tree, tree->nodes[child].child[i], body, argument);
}

static const double *corner_of(const grvi_surface_tree *tree, const grvi_surface_block *block,
                               int triangle, int corner)
{
    return &tree->vertices[3 * (int64_t)tree
                                   ->triangles[3 * (int64_t)block->triangle[triangle] + corner]];
}

typedef struct sums {
    double normal[3], n, first[3], second[3][3]; /* of corners */
} sums;

static void add_to_sums(const grvi_surface_tree *tree, const grvi_surface_block *block,
                        void *argument)
{
    sums *const s = argument;
    for (int t = 0; t < block->count; t++) {
        const double twice_area = block->bx[t] * block->cy[t];
        s->n += 3;
        for (int k = 0; k < 3; k++) s->normal[k] += twice_area * block->normal[k][t];
        for (int j = 0; j < 3; j++) {
            const double *const x = corner_of(tree, block, t, j);
            for (int k = 0; k < 3; k++) {
                s->first[k] += x[k];
                for (int l = 0; l < 3; l++) s->second[k][l] += x[k] * x[l];
            }
        }
    }
}

/* Extent in a frame. */
typedef struct extent {
    float axis[3][3];
    double lo[3], hi[3];
} extent;

static void add_to_extent(const grvi_surface_tree *tree, const grvi_surface_block *block,
                          void *argument)
{
    extent *const e = argument;
    for (int t = 0; t < block->count; t++) {
        for (int j = 0; j < 3; j++) {
            const double *const x = corner_of(tree, block, t, j);
            for (int k = 0; k < 3; k++) {
                const double y = (double)e->axis[k][0] * x[0] + (double)e->axis[k][1] * x[1] +
                                 (double)e->axis[k][2] * x[2];
                e->lo[k] = grvi_min_f64(e->lo[k], y);
                e->hi[k] = grvi_max_f64(e->hi[k], y);
            }
        }
    }
}

/* Frame of the sums; false if the normals cancel. */
static bool frame_of(const sums *s, float axis[3][3])
{
    double n[3], u[3], v[3], uu = 0, uv = 0, vv = 0;
    const double length = sqrt(s->normal[0] * s->normal[0] + s->normal[1] * s->normal[1] +
                               s->normal[2] * s->normal[2]);
    if (!(length > 1e-30)) return false;
    int least = 0;
    for (int k = 0; k < 3; k++) {
        n[k] = s->normal[k] / length;
        if (fabs(n[k]) < fabs(n[least])) least = k;
    }
    const double across = sqrt(1 - n[least] * n[least]);
    for (int k = 0; k < 3; k++) u[k] = ((k == least) - n[least] * n[k]) / across;
    for (int k = 0; k < 3; k++)
        v[k] = n[(k + 1) % 3] * u[(k + 2) % 3] - n[(k + 2) % 3] * u[(k + 1) % 3];
    for (int k = 0; k < 3; k++) {
        for (int l = 0; l < 3; l++) {
            const double covariance = s->second[k][l] - s->first[k] * s->first[l] / s->n;
            uu += u[k] * covariance * u[l];
            uv += u[k] * covariance * v[l];
            vv += v[k] * covariance * v[l];
        }
    }
    const double angle = 0.5 * atan2(2 * uv, uu - vv), c = cos(angle), d = sin(angle);
    for (int k = 0; k < 3; k++) {
        axis[0][k] = (float)(c * u[k] + d * v[k]);
        axis[1][k] = (float)(c * v[k] - d * u[k]);
        axis[2][k] = (float)n[k];
    }
    return true;
}

static double area(double x, double y, double z)
{
    return x * y + y * z + z * x;
}

static void turn_box(const grvi_surface_tree *tree, grvi_surface_node *node, int i)
{
    sums s = {0};
    extent e;
    for_blocks(tree, node->child[i], add_to_sums, &s);
    if (!frame_of(&s, e.axis)) return;
    for (int k = 0; k < 3; k++) {
        e.lo[k] = (double)INFINITY;
        e.hi[k] = -(double)INFINITY;
    }
    for_blocks(tree, node->child[i], add_to_extent, &e);
    const double upright =
        area((double)(node->hi[0][i] - node->lo[0][i]), (double)(node->hi[1][i] - node->lo[1][i]),
             (double)(node->hi[2][i] - node->lo[2][i]));
    if (!(area(e.hi[0] - e.lo[0], e.hi[1] - e.lo[1], e.hi[2] - e.lo[2]) < upright)) return;
    for (int k = 0; k < 3; k++) {
        for (int c = 0; c < 3; c++) node->axis[k][c][i] = e.axis[k][c];
        node->lo[k][i] = nextafterf((float)e.lo[k], -INFINITY);
        node->hi[k][i] = nextafterf((float)e.hi[k], INFINITY);
    }
}

typedef struct turn_call {
    const grvi_surface_tree *tree;
    const int32_t *count;
} turn_call;

static void turn_range(void *argument, int thread, int64_t begin, int64_t end)
{
    const turn_call *const call = argument;
    (void)thread;
    for (int64_t n = begin; n < end; n++) {
        grvi_surface_node *const node = &call->tree->nodes[n];
        for (int i = 0; i < WIDTH; i++) {
            const int32_t child = node->child[i];
            if (child != GRVI_SURFACE_EMPTY && (child < 0 || call->count[child] <= LARGEST))
                turn_box(call->tree, node, i);
        }
    }
}

void grvi_surface_tree_turn_boxes(grvi_surface_tree *tree, int n_threads, int32_t *count)
{
    for (int64_t n = tree->n_nodes; n-- > 0;) { /* children stand behind their parents */
        count[n] = 0;
        for (int i = 0; i < WIDTH; i++) {
            const int32_t child = tree->nodes[n].child[i];
            if (child != GRVI_SURFACE_EMPTY)
                count[n] += child >= 0 ? count[child] : (int32_t)tree->blocks[~child].count;
        }
    }
    turn_call call = {tree, count};
    grv_parallel_for(n_threads, tree->n_nodes, turn_range, &call);
}
