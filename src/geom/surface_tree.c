/* Builds the hierarchy over triangles: top down, each node's range split by the surface area heuristic over bins of centroids (Wald 2007) until it
 * has eight parts; parts of at most eight triangles are leaves. Large ranges are split one after the other, their parts built as tasks by
 * all threads. Ranges, and with them the tree, do not depend on the number of threads. O(n log n) time, 36 bytes a triangle of scratch. */
#include "geom/surface_tree.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "grove/core.h"

enum { WIDTH = GRVI_SURFACE_WIDTH, N_BINS = 16, MEDIAN_DEPTH = 40, MIN_TASK = 2048, TASKS = 64 };

/* Bounds; the upper ones negated, so that a union is eight minima. Elements 3 and 7 are unused. */
typedef struct bounds {
    float low[8];
} bounds;

typedef struct part {
    bounds box;
    int32_t triangle;
} part;

typedef struct range {
    int64_t begin, end;
    bounds box;
} range;

/* Nodes and blocks of a subtree, numbered from 0. */
typedef struct subtree {
    grvi_surface_node *nodes;
    grvi_surface_block *blocks;
    int64_t n_nodes, n_blocks, node_room, block_room;
    grv_status status;
} subtree;

/* A subtree that hangs below place `place` of node `parent` of the top. */
typedef struct task {
    range range;
    int64_t parent;
    int place, depth;
    subtree tree;
} task;

typedef struct builder {
    const double *vertices;
    const int32_t *triangles;
    part *parts;
    int64_t task_size; /* ranges of at most this size are tasks */
    task *tasks;
    int64_t n_tasks, task_room;
    atomic_llong next_task;
} builder;

static bounds no_bounds(void)
{
    bounds b;
    for (int k = 0; k < 8; k++) b.low[k] = INFINITY;
    return b;
}

static void include(bounds *b, const bounds *other)
{
    for (int k = 0; k < 8; k++) b->low[k] = other->low[k] < b->low[k] ? other->low[k] : b->low[k];
}

/* Half the surface area; 0 for no bounds. */
static float area(const bounds *b)
{
    const float x = -b->low[4] - b->low[0], y = -b->low[5] - b->low[1], z = -b->low[6] - b->low[2];
    return x < 0 ? 0 : x * y + y * z + z * x;
}

/* Twice the centre of a part's box. */
static float centroid2(const part *p, int axis)
{
    return p->box.low[axis] - p->box.low[axis + 4];
}

/* ---- splitting ---- */

typedef struct binning {
    int axis;
    float low, scale;
} binning;

static int bin_of(const binning *by, const part *p)
{
    const int bin = (int)((centroid2(p, by->axis) - by->low) * by->scale);
    return bin < N_BINS ? bin : N_BINS - 1;
}

/* Bins along the longest axis of the centroids; false if all are in one place. */
static bool choose_binning(const part *parts, const range *r, binning *by)
{
    float low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int64_t i = r->begin; i < r->end; i++) {
        for (int k = 0; k < 3; k++) {
            const float c = centroid2(&parts[i], k);
            low[k] = c < low[k] ? c : low[k];
            high[k] = c > high[k] ? c : high[k];
        }
    }
    by->axis = 0;
    for (int k = 1; k < 3; k++)
        if (high[k] - low[k] > high[by->axis] - low[by->axis]) by->axis = k;
    const float extent = high[by->axis] - low[by->axis];
    by->low = low[by->axis];
    by->scale = (float)N_BINS / extent;
    return extent > 0 && isfinite(by->scale);
}

/* The kernel tries four triangles at once. */
static float cost(const bounds *box, int64_t n)
{
    return area(box) * (float)((n + 3) / 4);
}

/* First bin of the upper half of the cheapest split; 0 if there is none. */
static int cheapest_split(const bounds box[N_BINS], const int64_t count[N_BINS])
{
    float upper_cost[N_BINS];
    int64_t n = 0;
    bounds sum = no_bounds();
    for (int b = N_BINS - 1; b > 0; b--) {
        include(&sum, &box[b]);
        n += count[b];
        upper_cost[b] = n > 0 ? cost(&sum, n) : INFINITY;
    }
    float best = INFINITY;
    int split = 0;
    sum = no_bounds();
    n = 0;
    for (int b = 1; b < N_BINS; b++) {
        include(&sum, &box[b - 1]);
        n += count[b - 1];
        const float both = n > 0 ? cost(&sum, n) + upper_cost[b] : INFINITY;
        if (both < best) {
            best = both;
            split = b;
        }
    }
    return split;
}

static range range_of(const part *parts, int64_t begin, int64_t end)
{
    range r = {begin, end, no_bounds()};
    for (int64_t i = begin; i < end; i++) include(&r.box, &parts[i].box);
    return r;
}

/* Cuts a range in two, neither empty. by_number: in the middle, whatever is there. */
static void split_range(part *parts, range whole, bool by_number, range *lower, range *upper)
{
    binning by;
    int split = 0;
    if (!by_number && choose_binning(parts, &whole, &by)) {
        bounds box[N_BINS];
        int64_t count[N_BINS] = {0};
        for (int b = 0; b < N_BINS; b++) box[b] = no_bounds();
        for (int64_t i = whole.begin; i < whole.end; i++) {
            const int b = bin_of(&by, &parts[i]);
            include(&box[b], &parts[i].box);
            count[b]++;
        }
        split = cheapest_split(box, count);
    }
    int64_t middle = whole.begin + (whole.end - whole.begin) / 2;
    if (split > 0) {
        int64_t i = whole.begin, j = whole.end;
        while (i < j) {
            if (bin_of(&by, &parts[i]) < split) {
                i++;
            } else {
                const part swapped = parts[i];
                parts[i] = parts[--j];
                parts[j] = swapped;
            }
        }
        middle = i;
    }
    *lower = range_of(parts, whole.begin, middle);
    *upper = range_of(parts, middle, whole.end);
}

/* Cuts a range into at most eight, always the one of the largest surface (below MEDIAN_DEPTH, where boxes no longer tell triangles apart, of the
 * largest number) that has more than a block's triangles. */
static int split_wide(part *parts, const range *whole, int depth, range out[WIDTH])
{
    int n = 1;
    out[0] = *whole;
    while (n < WIDTH) {
        int chosen = -1;
        double most = -1;
        for (int i = 0; i < n; i++) {
            const int64_t count = out[i].end - out[i].begin;
            const double size = depth >= MEDIAN_DEPTH ? (double)count : (double)area(&out[i].box);
            if (count > WIDTH && size > most) {
                most = size;
                chosen = i;
            }
        }
        if (chosen < 0) break;
        const range split = out[chosen];
        split_range(parts, split, depth >= MEDIAN_DEPTH, &out[chosen], &out[n++]);
    }
    return n;
}

/* ---- nodes ---- */

static grv_status new_node(subtree *tree, int64_t *number)
{
    if (tree->n_nodes == tree->node_room) {
        const int64_t room = 2 * tree->node_room + 16;
        GRV_TRY(GRVI_REALLOC(&tree->nodes, room));
        tree->node_room = room;
    }
    *number = tree->n_nodes++;
    grvi_surface_node *const node = &tree->nodes[*number];
    for (int i = 0; i < WIDTH; i++) {
        node->child[i] = GRVI_SURFACE_EMPTY;
        for (int k = 0; k < 3; k++) {
            node->lo[k][i] = INFINITY;
            node->hi[k][i] = -INFINITY;
            for (int c = 0; c < 3; c++) node->axis[k][c][i] = k == c ? 1 : 0;
        }
    }
    return GRV_OK;
}

static grv_status new_block(const builder *b, const range *r, subtree *tree, int64_t *number)
{
    if (tree->n_blocks == tree->block_room) {
        const int64_t room = 2 * tree->block_room + 16;
        GRV_TRY(GRVI_REALLOC(&tree->blocks, room));
        tree->block_room = room;
    }
    *number = tree->n_blocks++;
    grvi_surface_block *const block = &tree->blocks[*number];
    block->count = r->end - r->begin;
    for (int i = 0; i < WIDTH; i++) {
        const int32_t triangle = b->parts[grvi_min_i64(r->begin + i, r->end - 1)].triangle;
        grvi_surface_block_set(block, i, b->vertices, &b->triangles[3 * (int64_t)triangle],
                               triangle);
    }
    return GRV_OK;
}

static void set_child(grvi_surface_node *node, int place, const bounds *box, int64_t child)
{
    for (int k = 0; k < 3; k++) {
        node->lo[k][place] = box->low[k];
        node->hi[k][place] = -box->low[k + 4];
    }
    node->child[place] = (int32_t)child;
}

static grv_status add_task(builder *b, const range *r, int64_t parent, int place, int depth)
{
    if (b->n_tasks == b->task_room) {
        const int64_t room = 2 * b->task_room + 64;
        GRV_TRY(GRVI_REALLOC(&b->tasks, room));
        b->task_room = room;
    }
    b->tasks[b->n_tasks++] = (task){.range = *r, .parent = parent, .place = place, .depth = depth};
    return GRV_OK;
}

/* Builds a node over a range. `tasks` is NULL while a task is built; at the top, ranges that are small enough become tasks instead. */
static grv_status build_node(const builder *b, builder *tasks, const range *r, int depth,
                             subtree *tree, int64_t *number)
{
    GRV_CHECK(depth < GRVI_SURFACE_MAX_DEPTH, GRV_E_UNSUPPORTED,
              "%lld triangles need a tree deeper than %d", (long long)(r->end - r->begin),
              GRVI_SURFACE_MAX_DEPTH);
    range child[WIDTH];
    GRV_TRY(new_node(tree, number));
    const int n = split_wide(b->parts, r, depth, child);
    for (int i = 0; i < n; i++) {
        const int64_t count = child[i].end - child[i].begin;
        int64_t inner = 0;
        if (count <= WIDTH) {
            GRV_TRY(new_block(b, &child[i], tree, &inner));
            inner = ~inner;
        } else if (tasks != NULL && count <= b->task_size) {
            GRV_TRY(add_task(tasks, &child[i], *number, i, depth + 1));
        } else {
            GRV_TRY(build_node(b, tasks, &child[i], depth + 1, tree, &inner));
        }
        set_child(&tree->nodes[*number], i, &child[i].box, inner);
    }
    return GRV_OK;
}

static void build_tasks(void *argument, int thread, int64_t begin, int64_t end)
{
    builder *const b = argument;
    (void)thread;
    (void)begin;
    (void)end;
    for (int64_t i = atomic_fetch_add(&b->next_task, 1); i < b->n_tasks;
         i = atomic_fetch_add(&b->next_task, 1)) {
        task *const t = &b->tasks[i];
        int64_t root = 0;
        t->tree.status = build_node(b, NULL, &t->range, t->depth, &t->tree, &root);
    }
}

/* Puts the top and the subtrees of the tasks behind each other. A child stands behind its parent. */
static grv_status join(const builder *b, const subtree *top, grvi_surface_tree *out)
{
    int64_t n_nodes = top->n_nodes, n_blocks = top->n_blocks;
    for (int64_t t = 0; t < b->n_tasks; t++) {
        n_nodes += b->tasks[t].tree.n_nodes;
        n_blocks += b->tasks[t].tree.n_blocks;
    }
    GRV_TRY(GRVI_ALLOC(&out->nodes, n_nodes));
    GRV_TRY(GRVI_ALLOC(&out->blocks, n_blocks));
    memcpy(out->nodes, top->nodes, (size_t)top->n_nodes * sizeof *out->nodes);
    if (top->n_blocks > 0) /* all may be in tasks */
        memcpy(out->blocks, top->blocks, (size_t)top->n_blocks * sizeof *out->blocks);
    out->n_nodes = top->n_nodes;
    out->n_blocks = top->n_blocks;
    for (int64_t t = 0; t < b->n_tasks; t++) {
        const task *const of = &b->tasks[t];
        out->nodes[of->parent].child[of->place] = (int32_t)out->n_nodes;
        for (int64_t i = 0; i < of->tree.n_nodes; i++) {
            grvi_surface_node node = of->tree.nodes[i];
            for (int k = 0; k < WIDTH; k++) {
                if (node.child[k] == GRVI_SURFACE_EMPTY) continue;
                node.child[k] +=
                    node.child[k] >= 0 ? (int32_t)out->n_nodes : -(int32_t)out->n_blocks;
            }
            out->nodes[out->n_nodes + i] = node;
        }
        memcpy(out->blocks + out->n_blocks, of->tree.blocks,
               (size_t)of->tree.n_blocks * sizeof *out->blocks);
        out->n_nodes += of->tree.n_nodes;
        out->n_blocks += of->tree.n_blocks;
    }
    return GRV_OK;
}

/* The largest float <= x. */
static float round_down(double x)
{
    const float f = (float)x;
    return (double)f > x ? nextafterf(f, -INFINITY) : f;
}

static void make_parts(void *argument, int thread, int64_t begin, int64_t end)
{
    builder *const b = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        part *const p = &b->parts[i];
        p->box = no_bounds();
        p->triangle = (int32_t)i;
        for (int j = 0; j < 3; j++) {
            const double *const x = &b->vertices[3 * (int64_t)b->triangles[3 * i + j]];
            for (int k = 0; k < 3; k++) {
                const float low = round_down(x[k]), high = round_down(-x[k]);
                p->box.low[k] = low < p->box.low[k] ? low : p->box.low[k];
                p->box.low[k + 4] = high < p->box.low[k + 4] ? high : p->box.low[k + 4];
            }
        }
    }
}

grv_status grvi_surface_tree_build(const double *vertices, const int32_t *triangles,
                                   int64_t n_triangles, int n_threads, grvi_surface_tree *tree)
{
    grv_status status = GRV_OK;
    builder b = {.vertices = vertices,
                 .triangles = triangles,
                 .task_size = grvi_max_i64(MIN_TASK, n_triangles / TASKS)};
    subtree top = {0};
    int64_t root = 0;
    int32_t *count = NULL;
    *tree = (grvi_surface_tree){.vertices = vertices, .triangles = triangles};
    GRV_TRY(GRVI_ALLOC(&b.parts, n_triangles));
    grv_parallel_for(n_threads, n_triangles, make_parts, &b);
    const range all = range_of(b.parts, 0, n_triangles);
    GRV_TRY_GOTO(build_node(&b, &b, &all, 0, &top, &root));
    grv_parallel_for(n_threads, n_threads, build_tasks, &b);
    for (int64_t t = 0; t < b.n_tasks; t++) {
        if (b.tasks[t].tree.status == GRV_OK) continue;
        GRV_FAIL_GOTO(
            b.tasks[t].tree.status, "hierarchy over %lld triangles: a part of %lld failed",
            (long long)n_triangles, (long long)(b.tasks[t].range.end - b.tasks[t].range.begin));
    }
    GRV_TRY_GOTO(join(&b, &top, tree));
    GRV_TRY_GOTO(GRVI_ALLOC(&count, tree->n_nodes));
    grvi_surface_tree_turn_boxes(tree, n_threads, count);
done:
    for (int64_t t = 0; t < b.n_tasks; t++) {
        grv_free(b.tasks[t].tree.nodes);
        grv_free(b.tasks[t].tree.blocks);
    }
    grv_free(b.tasks);
    grv_free(top.nodes);
    grv_free(top.blocks);
    grv_free(b.parts);
    grv_free(count);
    if (status != GRV_OK) grvi_surface_tree_fini(tree);
    return status;
}

void grvi_surface_tree_fini(grvi_surface_tree *tree)
{
    grv_free(tree->nodes);
    grv_free(tree->blocks);
    grv_free(tree->moments);
    grv_free(tree->corners);
    *tree = (grvi_surface_tree){0};
}
