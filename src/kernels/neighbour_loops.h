/* Loops of neighbour_kernels.h; included once per type, in each instruction set's file, with
 *   REAL, NAME(x)   the type and the suffix of its functions
 *   KEY, KEY_MAX    integer of the same size, and its largest number
 * after the vectors of that type (neighbour_vectors.h, or neighbour_ref_vectors.h with one lane).
 *
 * A node's children carry keys: the bits of the lower bound of their distance, the last four replaced by the child's number. That rounds the
 * bound down, so it stays a lower bound; the smallest key is the nearest child, and a child is left out by comparing integers. Missing children
 * have the bits of NaN and are larger than infinity's. A visited child gets KEY_MAX. */
#include "kernels/neighbour_insert.h"
#include "kernels/neighbour_split_loops.h"
#include "kernels/neighbour_steps.h"

enum { NAME(LANE_MASK) = GRVI_TREE_WIDTH - 1 };

typedef struct NAME(keeper) {
    NAME(candidate) * list; /* few and several: sorted, with bounds at the end; many: collected */
    int64_t k, n, cut;      /* many: n collected; when n >= cut all but the first k go */
    REAL worst;             /* no candidate beyond this is wanted */
} NAME(keeper);

/* Reorders a[0, n) so that a[0, k) are the first k; 0 < k < n. No two are equal. */
static void NAME(cut_to)(NAME(candidate) * a, int64_t n, int64_t k)
{
    while (n > 1) {
        /* median of three */
        NAME(candidate) x = a[0], y = a[n / 2], z = a[n - 1], t;
        if (NAME(candidate_less)(y, x)) t = x, x = y, y = t;
        if (NAME(candidate_less)(z, y)) y = NAME(candidate_less)(z, x) ? x : z;
        int64_t m = 0;
        for (int64_t i = 0; i < n; i++) {
            t = a[i];
            a[i] = a[m];
            a[m] = t;
            m += NAME(candidate_less)(t, y);
        }
        if (m == 0) { /* y is the smallest: bring it to the front and go on behind it */
            for (int64_t i = 0; i < n; i++) {
                if (NAME(candidate_less)(y, a[i])) continue;
                a[i] = a[0];
                a[0] = y;
                break;
            }
            m = 1;
        }
        if (k == m) return;
        if (k < m) {
            n = m;
        } else {
            a += m;
            n -= m;
            k -= m;
        }
    }
}

/* Heap sort: no recursion, no scratch. */
static void NAME(sort)(NAME(candidate) * a, int64_t n)
{
    for (int64_t start = n / 2, end = n; end > 1;) {
        if (start > 0) {
            start--;
        } else {
            end--;
            const NAME(candidate) t = a[0];
            a[0] = a[end];
            a[end] = t;
        }
        const NAME(candidate) moved = a[start];
        int64_t hole = start;
        for (int64_t child; (child = 2 * hole + 1) < end; hole = child) {
            if (child + 1 < end && NAME(candidate_less)(a[child], a[child + 1])) child++;
            if (!NAME(candidate_less)(moved, a[child])) break;
            a[hole] = a[child];
        }
        a[hole] = moved;
    }
}

static void NAME(cut)(NAME(keeper) * keeper)
{
    if (keeper->n > keeper->k) NAME(cut_to)(keeper->list, keeper->n, keeper->k);
    keeper->n = keeper->k;
    REAL worst = 0;
    for (int64_t i = 0; i < keeper->k; i++) {
        const REAL squared = NAME(candidate_squared)(keeper->list[i]);
        worst = squared > worst ? squared : worst;
    }
    keeper->worst = worst;
    keeper->cut = 2 * keeper->k;
}

/* A whole leaf into an empty list: every point goes to the place that says how many are before it. */
GRVI_STEP void NAME(fill_list)(NAME(candidate) * list, const REAL *squared, const int32_t *indices)
{
    int32_t rank[GRVI_TREE_WIDTH] __attribute__((aligned(64))) = {0};
    for (int j = 0; j < GRVI_TREE_WIDTH; j++) {
        const REAL other = squared[j];
        const int32_t other_index = indices[j];
#pragma GCC unroll 1
        for (int i = 0; i < GRVI_TREE_WIDTH; i++)
            rank[i] += (other < squared[i]) | ((other == squared[i]) & (other_index < indices[i]));
    }
    for (int i = 0; i < GRVI_TREE_WIDTH; i++)
        list[rank[i]] = NAME(candidate_make)(squared[i], indices[i]);
}

GRVI_STEP unsigned NAME(leaf_distances)(const grvi_point_tree *tree, int64_t leaf, const REAL *q,
                                        REAL bound, REAL *squared)
{
    const int64_t at = leaf * GRVI_TREE_WIDTH;
    return NAME(block_distances)(q, (const REAL *)tree->points.x[0] + at,
                                 (const REAL *)tree->points.x[1] + at,
                                 (const REAL *)tree->points.x[2] + at, bound, squared);
}

/* Offers the points of a leaf. slots: GRVI_FEW, GRVI_SEVERAL, or 0 for many */
GRVI_STEP void NAME(offer_leaf)(const grvi_point_tree *tree, int64_t leaf, const REAL *q,
                                int32_t excluded, int slots, NAME(keeper) * keeper)
{
    REAL squared[GRVI_TREE_WIDTH] __attribute__((aligned(64)));
    const int32_t *const indices = tree->points.indices + leaf * GRVI_TREE_WIDTH;
    unsigned mask = NAME(leaf_distances)(tree, leaf, q, keeper->worst, squared);
    for (int lane = 0; excluded >= 0 && lane < GRVI_TREE_WIDTH; lane++)
        mask &= ~((unsigned)(indices[lane] == excluded) << lane);
    if (mask == 0) return;
    if (slots == 0) {
        for (; mask != 0; mask &= mask - 1) {
            const int lane = __builtin_ctz(mask);
            keeper->list[keeper->n++] = NAME(candidate_make)(squared[lane], indices[lane]);
        }
        if (keeper->n >= keeper->cut) NAME(cut)(keeper);
        return;
    }
    if (mask == (1U << GRVI_TREE_WIDTH) - 1 &&
        NAME(candidate_index)(keeper->list[0]) == GRVI_NO_POINT)
        NAME(fill_list)(keeper->list, squared, indices);
    else if (slots == GRVI_FEW)
        NAME(insert_few)(keeper->list, mask, squared, indices);
    else
        NAME(insert_marked)(keeper->list, slots, mask, squared, indices);
    keeper->worst = NAME(candidate_squared)(keeper->list[keeper->k - 1]);
}

/* Depth first, the nearest child first. */
GRVI_STEP void NAME(search)(const grvi_point_tree *tree, const REAL *q, int32_t excluded, int slots,
                            NAME(keeper) * keeper)
{
    KEY keys[GRVI_TREE_MAX_LEVELS][GRVI_TREE_WIDTH] __attribute__((aligned(64)));
    int64_t node[GRVI_TREE_MAX_LEVELS];
    int level = tree->n_levels - 1;
    node[level] = 0;
    (void)NAME(block_bounds)(q, (const REAL *)tree->boxes[level], keeper->worst, keys[level]);
    for (;;) {
        const KEY key = NAME(smallest_key)(keys[level]);
        if (key > (NAME(bits)(keeper->worst) | NAME(LANE_MASK))) {
            if (++level == tree->n_levels) return;
            continue;
        }
        const int lane = (int)(key & NAME(LANE_MASK));
        const int64_t child = node[level] * GRVI_TREE_WIDTH + lane;
        keys[level][lane] = KEY_MAX;
        if (level == 0) {
            NAME(offer_leaf)(tree, child, q, excluded, slots, keeper);
        } else {
            level--;
            node[level] = child;
            (void)NAME(block_bounds)(q,
                                     (const REAL *)tree->boxes[level] + child * 6 * GRVI_TREE_WIDTH,
                                     keeper->worst, keys[level]);
        }
    }
}

static int64_t NAME(nearest)(const grvi_point_tree *tree, const void *query, int64_t k,
                             double bound, int32_t excluded, void *scratch, int32_t *indices,
                             void *squared)
{
    if (tree->n_levels == 0) return 0;
    NAME(keeper) keeper = {.list = scratch, .k = k, .cut = k, .worst = (REAL)bound};
    const int slots = k <= GRVI_FEW ? GRVI_FEW : k <= GRVI_SEVERAL ? GRVI_SEVERAL : 0;
    for (int j = 0; j < slots; j++)
        keeper.list[j] = NAME(candidate_make)(keeper.worst, GRVI_NO_POINT);
    if (slots == GRVI_FEW)
        NAME(search)(tree, query, excluded, GRVI_FEW, &keeper);
    else if (slots == GRVI_SEVERAL)
        NAME(search)(tree, query, excluded, GRVI_SEVERAL, &keeper);
    else
        NAME(search)(tree, query, excluded, 0, &keeper);
    int64_t n = k;
    if (slots == 0) {
        if (keeper.n > k) NAME(cut)(&keeper);
        n = keeper.n;
        NAME(sort)(keeper.list, n);
    }
    REAL *const out = squared;
    for (int64_t j = 0; j < n; j++) {
        indices[j] = NAME(candidate_index)(keeper.list[j]);
        out[j] = NAME(candidate_squared)(keeper.list[j]);
        if (indices[j] == GRVI_NO_POINT) return j;
    }
    return n;
}

static int64_t NAME(within)(const grvi_point_tree *tree, const void *query, double bound,
                            int64_t limit, int32_t *indices, void *squared)
{
    unsigned marked[GRVI_TREE_MAX_LEVELS];
    int64_t node[GRVI_TREE_MAX_LEVELS], n = 0;
    KEY keys[GRVI_TREE_WIDTH] __attribute__((aligned(64)));
    REAL d[GRVI_TREE_WIDTH] __attribute__((aligned(64)));
    const REAL *const q = query;
    const REAL largest = (REAL)bound;
    REAL *const out = squared;
    int level = tree->n_levels - 1;
    if (level < 0) return 0;
    node[level] = 0;
    marked[level] = NAME(block_bounds)(q, (const REAL *)tree->boxes[level], largest, keys);
    for (;;) {
        if (marked[level] == 0) {
            if (++level == tree->n_levels) return n;
            continue;
        }
        const int64_t child = node[level] * GRVI_TREE_WIDTH + __builtin_ctz(marked[level]);
        marked[level] &= marked[level] - 1;
        if (level > 0) {
            level--;
            node[level] = child;
            marked[level] = NAME(block_bounds)(
                q, (const REAL *)tree->boxes[level] + child * 6 * GRVI_TREE_WIDTH, largest, keys);
            continue;
        }
        unsigned mask = NAME(leaf_distances)(tree, child, q, largest, d);
        const int64_t found = __builtin_popcount(mask);
        if (n + found > limit) mask = 0;
        for (int64_t i = n; mask != 0; mask &= mask - 1, i++) {
            const int lane = __builtin_ctz(mask);
            indices[i] = tree->points.indices[child * GRVI_TREE_WIDTH + lane];
            out[i] = d[lane];
        }
        n += found;
    }
}

static int64_t NAME(run)(const void *const *points, int64_t begin, int64_t end, const void *query,
                         double bound, int64_t limit, int32_t *positions, void *squared)
{
    const REAL *const x = points[0], *const y = points[1], *const z = points[2];
    REAL *const out = squared;
    REAL d[GRVI_TREE_WIDTH] __attribute__((aligned(64)));
    int64_t n = 0;
    for (int64_t i = begin; i < end; i += GRVI_TREE_WIDTH) {
        unsigned mask = NAME(block_distances)(query, x + i, y + i, z + i, (REAL)bound, d);
        if (end - i < GRVI_TREE_WIDTH) mask &= (1U << (end - i)) - 1U;
        for (; mask != 0; mask &= mask - 1) {
            if (n == limit) return n;
            const int lane = __builtin_ctz(mask);
            positions[n] = (int32_t)(i + lane);
            out[n++] = d[lane];
        }
    }
    return n;
}

/* Every neighbour goes to the place that says how many are before it: n^2 comparisons, but whole vectors of them and no branch. */
static void NAME(sort_short)(int64_t n, int32_t *indices, void *squared)
{
    enum { STEP_LANES = 8, ROOM = GRVI_SHORT_ROW + STEP_LANES };
    int32_t from[ROOM] __attribute__((aligned(64))), rank[ROOM] __attribute__((aligned(64)));
    REAL old[GRVI_SHORT_ROW];
    REAL *const out = squared;
    const int64_t padded = (n + STEP_LANES - 1) / STEP_LANES * STEP_LANES;
    for (int64_t i = 0; i < padded; i++) {
        from[i] = i < n ? indices[i] : 0;
        rank[i] = 0;
    }
    for (int64_t j = 0; j < n; j++) {
        const int32_t other = from[j];
        for (int64_t i = 0; i < padded; i++) rank[i] += other < from[i];
    }
    memcpy(old, out, (size_t)n * sizeof *old);
    for (int64_t i = 0; i < n; i++) {
        indices[rank[i]] = from[i];
        out[rank[i]] = old[i];
    }
}

static const grvi_neighbour_kernels NAME(table) = {NAME(nearest), NAME(within), NAME(run),
                                                   NAME(sort_short), NAME(split)};
