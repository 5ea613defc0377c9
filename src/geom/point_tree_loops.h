/* Loops of point_tree.c; included once per type with REAL and NAME. */

/* Three coordinates and, in the bits of the fourth number, the index: one vector to move and compare. */
typedef struct NAME(record) {
    REAL x[4];
} NAME(record);

static NAME(record) NAME(make_record)(const REAL *p, int dimension, int32_t index)
{
    NAME(record) record = {{p[0], p[1], dimension == 3 ? p[2] : 0, 0}};
    memcpy(&record.x[3], &index, sizeof index);
    return record;
}

static int32_t NAME(index_of)(const NAME(record) * record)
{
    int32_t index;
    memcpy(&index, &record->x[3], sizeof index);
    return index;
}

typedef struct NAME(build) {
    const build_input *input;
    const grvi_neighbour_kernels *kernels;
    NAME(record) * records; /* [n] in the order of the leaves */
    REAL *leaves;
    int32_t *indices;
    int level; /* of the boxes being made */
} NAME(build);

static REAL *NAME(boxes)(const NAME(build) * b, int level)
{
    return (REAL *)(void *)((char *)b->input->block + b->input->layout->boxes_at[level]);
}

static void NAME(load)(void *argument, int thread, int64_t begin, int64_t end)
{
    const NAME(build) *const b = argument;
    (void)thread;
    const REAL *const points = b->input->points;
    const int dimension = b->input->dimension;
    for (int64_t i = begin; i < end; i++) {
        b->records[i] = NAME(make_record)(points + i * dimension, dimension, (int32_t)i);
    }
}

/* Moves records before (x < pivot, or x <= pivot) to the front; their number. No branch depends on the data. */
static int64_t NAME(part_below)(NAME(record) * a, int64_t n, int axis, REAL pivot)
{
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) {
        const NAME(record) r = a[i];
        a[i] = a[m];
        a[m] = r;
        m += r.x[axis] < pivot;
    }
    return m;
}

static int64_t NAME(part_up_to)(NAME(record) * a, int64_t n, int axis, REAL pivot)
{
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) {
        const NAME(record) r = a[i];
        a[i] = a[m];
        a[m] = r;
        m += r.x[axis] <= pivot;
    }
    return m;
}

/* A coordinate near place nth of n, on the side where more records lie, so that the second part that is looked at is small
 * (Floyd and Rivest 1975): an order statistic of an evenly spaced sample, moved by about a standard deviation. */
static REAL NAME(choose_pivot)(const NAME(record) * a, int64_t n, int64_t nth, int axis)
{
    REAL sample[MAX_SAMPLE];
    const int64_t n_sample = n < 256 ? 3 : n < 4096 ? 15 : MAX_SAMPLE;
    const int64_t shift = n < 256 ? 0 : n < 4096 ? 1 : 6;
    for (int64_t i = 0; i < n_sample; i++) {
        const REAL value = a[(2 * i + 1) * n / (2 * n_sample)].x[axis];
        int64_t j = i;
        for (; j > 0 && sample[j - 1] > value; j--) sample[j] = sample[j - 1];
        sample[j] = value;
    }
    const int64_t place = nth * n_sample / n + (2 * nth > n ? -shift : shift);
    return sample[place < 0 ? 0 : place >= n_sample ? n_sample - 1 : place];
}

/* Reorders a[0, n) so that none of a[0, nth) is larger along the axis than any of a[nth, n). */
static void NAME(select)(NAME(record) * a, int64_t n, int64_t nth, int axis)
{
    while (n > 1 && nth > 0 && nth < n) {
        const REAL pivot = NAME(choose_pivot)(a, n, nth, axis);
        int64_t m = NAME(part_below)(a, n, axis, pivot);
        if (m ==
            0) { /* nothing is smaller: those equal to the pivot come first, which ends with many duplicates too */
            m = NAME(part_up_to)(a, n, axis, pivot);
            if (nth <= m) return;
        }
        if (nth < m) {
            n = m;
        } else {
            a += m;
            n -= m;
            nth -= m;
        }
    }
}

static int NAME(widest_axis)(const grvi_neighbour_kernels *kernels, const NAME(record) * a,
                             int64_t n)
{
    NAME(record) lower, upper;
    kernels->enclose(n, a, &lower, &upper);
    int widest = 0;
    for (int d = 1; d < 3; d++) /* halves: the whole extent may overflow */
        if (upper.x[d] / 2 - lower.x[d] / 2 > upper.x[widest] / 2 - lower.x[widest] / 2) widest = d;
    return widest;
}

/* Splits the leaves of a range at the largest power of two below their number, so that nodes of all levels begin where a split is. */
static int64_t NAME(split)(const NAME(build) * b, leaf_range range)
{
    int64_t half = 1;
    while (2 * half < range.end - range.begin) half *= 2;
    const int64_t first = range.begin * GRVI_TREE_WIDTH,
                  last = grvi_min_i64(range.end * GRVI_TREE_WIDTH, b->input->n);
    NAME(record) *const a = b->records + first;
    NAME(select)
    (a, last - first, half * GRVI_TREE_WIDTH, NAME(widest_axis)(b->kernels, a, last - first));
    return range.begin + half;
}

/* One level of splits: range i becomes ranges 2i and 2i + 1 in the upper half of the array. */
static void NAME(split_ranges)(void *argument, int thread, int64_t begin, int64_t end)
{
    const NAME(build) *const b = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const leaf_range range = b->input->ranges[i];
        const int64_t middle = range.end - range.begin > 1 ? NAME(split)(b, range) : range.end;
        b->input->ranges[MAX_RANGES + 2 * i] = (leaf_range){range.begin, middle};
        b->input->ranges[MAX_RANGES + 2 * i + 1] = (leaf_range){middle, range.end};
    }
}

/* Splits ranges down to leaves and writes these. */
static void NAME(finish_ranges)(void *argument, int thread, int64_t begin, int64_t end)
{
    const NAME(build) *const b = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        leaf_range stack[64];
        int depth = 0;
        stack[depth++] = b->input->ranges[i];
        while (depth > 0) {
            const leaf_range range = stack[--depth];
            if (range.end - range.begin < 2) continue;
            const int64_t middle = NAME(split)(b, range);
            stack[depth++] = (leaf_range){middle, range.end};
            stack[depth++] = (leaf_range){range.begin, middle};
        }
        for (int64_t leaf = b->input->ranges[i].begin; leaf < b->input->ranges[i].end; leaf++) {
            REAL *const x = b->leaves + leaf * 3 * GRVI_TREE_WIDTH;
            for (int64_t j = 0; j < GRVI_TREE_WIDTH; j++) {
                const int64_t place = leaf * GRVI_TREE_WIDTH + j;
                for (int d = 0; d < 3; d++)
                    x[d * GRVI_TREE_WIDTH + j] =
                        place < b->input->n ? b->records[place].x[d] : (REAL)NAN;
                b->indices[place] =
                    place < b->input->n ? NAME(index_of)(&b->records[place]) : GRVI_NO_POINT;
            }
        }
    }
}

/* Box of 16 intervals or points along one axis. */
static void NAME(enclose)(const REAL *lower, const REAL *upper, REAL *low, REAL *high)
{
    *low = lower[0];
    *high = upper[0];
    for (int j = 1; j < GRVI_TREE_WIDTH;
         j++) { /* comparisons leave NaN out; the first is never missing */
        *low = lower[j] < *low ? lower[j] : *low;
        *high = upper[j] > *high ? upper[j] : *high;
    }
}

static void NAME(make_boxes)(void *argument, int thread, int64_t begin, int64_t end)
{
    const NAME(build) *const b = argument;
    const tree_layout *const layout = b->input->layout;
    const int level = b->level;
    const int64_t n_below = level == 0 ? layout->n_leaves : layout->n_nodes[level - 1];
    const REAL *const below = level == 0 ? b->leaves : NAME(boxes)(b, level - 1);
    const int64_t block = level == 0 ? 3 : 6,
                  upper =
                      level == 0 ? 0 : 3; /* of a child: its rows, and where the upper ones begin */
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
                const REAL *const rows = below + (child * block + d) * GRVI_TREE_WIDTH;
                NAME(enclose)(rows, rows + upper * GRVI_TREE_WIDTH, low, high);
            }
        }
    }
}

static void NAME(build_tree)(const build_input *input)
{
    const tree_layout *const layout = input->layout;
    NAME(build)
    b = {.input = input,
         .kernels = grvi_neighbour_kernels_for(grvi_isa_chosen(), sizeof(REAL) == sizeof(double)),
         .records = input->records,
         .leaves = input->block,
         .indices = (int32_t *)(void *)((char *)input->block + layout->indices_at)};
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
