/* Loops of point_tree.c; included once per type with REAL and NAME. */

typedef struct NAME(build) {
    const build_input *input;
    const grvi_neighbour_kernels *kernels;
    int level; /* of the boxes being made */
} NAME(build);

static REAL *NAME(boxes)(const NAME(build) * b, int level)
{
    return (REAL *)(void *)((char *)b->input->block + b->input->layout->boxes_at[level]);
}

/* Points into arrays; what is missing to a whole leaf is NaN. */
static void NAME(load)(void *argument, int thread, int64_t begin, int64_t end)
{
    const NAME(build) *const b = argument;
    (void)thread;
    const REAL *const points = b->input->points;
    const int64_t n = b->input->n, n_padded = b->input->layout->n_leaves * GRVI_TREE_WIDTH;
    REAL *const *const sorted = (REAL *const *)b->input->sorted.x;
    REAL *const x = sorted[0], *const y = sorted[1], *const z = sorted[2];
    const int dimension = b->input->dimension;
    for (int64_t i = begin; i < end; i++) {
        x[i] = points[i * dimension];
        y[i] = points[i * dimension + 1];
        z[i] = dimension == 3 ? points[i * dimension + 2] : 0;
        b->input->sorted.indices[i] = (int32_t)i;
    }
    for (int64_t i = n; end == n && i < n_padded; i++) {
        x[i] = y[i] = z[i] = (REAL)NAN;
        b->input->sorted.indices[i] = GRVI_NO_POINT;
    }
}

/* Splits the leaves of a range at the largest power of two below their number, so that nodes of all levels begin where a split is. */
static int64_t NAME(split)(const NAME(build) * b, int thread, leaf_range range)
{
    int64_t half = 1;
    while (2 * half < range.end - range.begin) half *= 2;
    b->kernels->split(&b->input->sorted, range.begin * GRVI_TREE_WIDTH, range.end * GRVI_TREE_WIDTH,
                      half * GRVI_TREE_WIDTH, &b->input->scratch,
                      range.end * GRVI_TREE_WIDTH / 2 + SLACK * (int64_t)(thread + 1));
    return range.begin + half;
}

/* One level of splits: range i becomes ranges 2i and 2i + 1 in the upper half of the array. */
static void NAME(split_ranges)(void *argument, int thread, int64_t begin, int64_t end)
{
    const NAME(build) *const b = argument;
    for (int64_t i = begin; i < end; i++) {
        const leaf_range range = b->input->ranges[i];
        const int64_t middle =
            range.end - range.begin > 1 ? NAME(split)(b, thread, range) : range.end;
        b->input->ranges[MAX_RANGES + 2 * i] = (leaf_range){range.begin, middle};
        b->input->ranges[MAX_RANGES + 2 * i + 1] = (leaf_range){middle, range.end};
    }
}

/* Splits ranges down to leaves. */
static void NAME(finish_ranges)(void *argument, int thread, int64_t begin, int64_t end)
{
    const NAME(build) *const b = argument;
    for (int64_t i = begin; i < end; i++) {
        leaf_range stack[64];
        int depth = 0;
        stack[depth++] = b->input->ranges[i];
        while (depth > 0) {
            const leaf_range range = stack[--depth];
            if (range.end - range.begin < 2) continue;
            const int64_t middle = NAME(split)(b, thread, range);
            stack[depth++] = (leaf_range){middle, range.end};
            stack[depth++] = (leaf_range){range.begin, middle};
        }
    }
}

/* Box of 16 intervals or points along one axis; comparisons leave NaN out. */
static void NAME(enclose)(const REAL *lower, const REAL *upper, REAL *low, REAL *high)
{
    *low = (REAL)INFINITY;
    *high = (REAL)-INFINITY;
    for (int j = 0; j < GRVI_TREE_WIDTH; j++) {
        *low = lower[j] < *low ? lower[j] : *low;
        *high = upper[j] > *high ? upper[j] : *high;
    }
}

/* Boxes of the children of nodes; of those that do not exist NaN. */
static void NAME(make_boxes)(void *argument, int thread, int64_t begin, int64_t end)
{
    const NAME(build) *const b = argument;
    const tree_layout *const layout = b->input->layout;
    const int level = b->level;
    const int64_t n_below = level == 0 ? layout->n_leaves : layout->n_nodes[level - 1];
    (void)thread;
    for (int64_t node = begin; node < end; node++) {
        REAL *const box = NAME(boxes)(b, level) + node * 6 * GRVI_TREE_WIDTH;
        for (int64_t j = 0; j < GRVI_TREE_WIDTH; j++) {
            const int64_t child = node * GRVI_TREE_WIDTH + j;
            for (int d = 0; d < 3; d++) {
                REAL *const low = box + d * GRVI_TREE_WIDTH + j, *const high =
                                                                     low + 3 * GRVI_TREE_WIDTH;
                *low = *high = (REAL)NAN;
                if (child >= n_below) continue;
                const REAL *const lower =
                    level == 0 ? (const REAL *)b->input->sorted.x[d] + child * GRVI_TREE_WIDTH
                               : NAME(boxes)(b, level - 1) + (child * 6 + d) * GRVI_TREE_WIDTH;
                NAME(enclose)(lower, level == 0 ? lower : lower + 3 * GRVI_TREE_WIDTH, low, high);
            }
        }
    }
}

static void NAME(build_tree)(const build_input *input)
{
    const tree_layout *const layout = input->layout;
    NAME(build)
    b = {.input = input,
         .kernels = grvi_neighbour_kernels_for(grvi_isa_chosen(), sizeof(REAL) == sizeof(double))};
    int64_t n_ranges = 1;
    grv_parallel_for(input->n_threads, input->n, NAME(load), &b);
    input->ranges[0] = (leaf_range){0, layout->n_leaves};
    while (input->n_threads > 1 && n_ranges < 8 * (int64_t)input->n_threads &&
           2 * n_ranges <= MAX_RANGES) {
        grv_parallel_for(input->n_threads, n_ranges, NAME(split_ranges), &b);
        n_ranges *= 2;
        memcpy(input->ranges, input->ranges + MAX_RANGES, (size_t)n_ranges * sizeof *input->ranges);
    }
    grv_parallel_for(input->n_threads, n_ranges, NAME(finish_ranges), &b);
    for (b.level = 0; b.level < layout->n_levels; b.level++)
        grv_parallel_for(input->n_threads, layout->n_nodes[b.level], NAME(make_boxes), &b);
}

static void NAME(find_not_finite)(void *argument, int thread, int64_t begin, int64_t end)
{
    finite_check *const check = argument;
    const REAL *const x = check->points;
    (void)thread;
    for (int64_t i = begin * check->dimension; i < end * check->dimension; i++) {
        if (isfinite(x[i])) continue;
        int64_t first = atomic_load(&check->first);
        while (i / check->dimension < first &&
               !atomic_compare_exchange_weak(&check->first, &first, i / check->dimension))
            continue;
        return;
    }
}
