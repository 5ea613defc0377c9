/* Halving points along the axis on which they extend most; included once per type with REAL, KEY and NAME, after the vectors.
 *
 * The threshold is an order statistic, found by counting: how many numbers are below a pivot that is interpolated between earlier counts, until the
 * count is the one that is wanted. Each count also yields the numbers next to the pivot, so that what is left of the interval begins and ends at points;
 * where interpolation does not get on, the interval is halved by its floating-point numbers, which bounds the passes. One pass then parts the
 * points: those in front stay in place, the others go through scratch. */
#include <math.h>
#include <string.h>

#include "kernels/neighbour_candidates.h"
#include "kernels/neighbour_kernels.h"

GRVI_STEP REAL NAME(smallest_of)(NAME(vec) v)
{
    REAL lane[NAME(LANES)], smallest = (REAL)INFINITY;
    NAME(vec_store)(lane, v);
    for (int i = 0; i < NAME(LANES); i++) smallest = lane[i] < smallest ? lane[i] : smallest;
    return smallest;
}

GRVI_STEP REAL NAME(largest_of)(NAME(vec) v)
{
    return -NAME(smallest_of)(NAME(vec_sub)(NAME(vec_set1)(0), v));
}

/* Integers in the order of the numbers; the way there and back is the same. */
GRVI_STEP KEY NAME(order_key)(KEY bits)
{
    return bits < 0 ? bits ^ KEY_MAX : bits;
}

/* Of longer ranges at most so many leaves are looked at: they show the extent well enough. */
enum { NAME(EXTENT_LEAVES) = 64 };

/* The widest axis, and smallest and largest coordinate along it. */
static int NAME(widest_axis)(const grvi_point_arrays *points, int64_t begin, int64_t end,
                             REAL *lower, REAL *upper)
{
    const int64_t n_blocks = (end - begin) / GRVI_TREE_WIDTH,
                  step = (n_blocks + NAME(EXTENT_LEAVES) - 1) / NAME(EXTENT_LEAVES);
    int widest = 0;
    REAL extent = -1;
    for (int d = 0; d < 3; d++) {
        const REAL *const x = (const REAL *)points->x[d] + begin;
        NAME(vec) low = NAME(vec_set1)((REAL)INFINITY), high = NAME(vec_set1)((REAL)-INFINITY);
        for (int64_t block = 0; block < n_blocks; block += step) {
#pragma GCC unroll 4
            for (int i = 0; i < GRVI_TREE_WIDTH; i += NAME(LANES)) {
                const NAME(vec) v = NAME(vec_load)(x + block * GRVI_TREE_WIDTH + i);
                low = NAME(vec_min)(v, low);
                high = NAME(vec_max)(v, high);
            }
        }
        const REAL smallest = NAME(smallest_of)(low), largest = NAME(largest_of)(high);
        const REAL half = largest / 2 - smallest / 2; /* the whole extent may overflow */
        if (!(half > extent)) continue;
        extent = half;
        widest = d;
        *lower = smallest;
        *upper = largest;
    }
    return widest;
}

typedef struct NAME(pass) {
    int64_t n_below;
    REAL last_below, first_from; /* the numbers on both sides of the pivot */
} NAME(pass);

static NAME(pass) NAME(count_below)(const REAL *x, int64_t n, REAL pivot)
{
    const NAME(vec) p = NAME(vec_set1)(pivot), least = NAME(vec_set1)((REAL)-INFINITY),
                    most = NAME(vec_set1)((REAL)INFINITY);
    NAME(vec) below = least, from = most;
    int64_t count = 0;
    for (int64_t block = 0; block < n; block += GRVI_TREE_WIDTH) {
#pragma GCC unroll 4
        for (int i = 0; i < GRVI_TREE_WIDTH; i += NAME(LANES)) {
            const NAME(vec) v = NAME(vec_load)(x + block + i);
            count += __builtin_popcount(NAME(vec_less)(v, p));
            below = NAME(vec_max)(NAME(vec_choose_less)(v, p, v, least), below);
            from = NAME(vec_min)(NAME(vec_choose_less)(v, p, most, v), from);
        }
    }
    return (NAME(pass)){count, NAME(largest_of)(below), NAME(smallest_of)(from)};
}

/* A number > a and <= b, half of the floating-point numbers between away; a < b, no negative zeros. */
static REAL NAME(middle)(REAL a, REAL b)
{
    const KEY low = NAME(order_key)(NAME(bits)(a)), high = NAME(order_key)(NAME(bits)(b));
    const KEY bits =
        NAME(order_key)((low | high) - ((low ^ high) >> 1)); /* rounded up, no overflow */
    REAL number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

typedef struct NAME(threshold) {
    REAL value;
    int64_t n_equal; /* so many of those equal to the value belong in front */
} NAME(threshold);

/* What parts x[0, n), for the most part between lower and upper, into the n_first smallest and the others; 0 < n_first < the number of those not NaN. */
static NAME(threshold)
    NAME(find_threshold)(const REAL *x, int64_t n, int64_t n_first, REAL lower, REAL upper)
{
    REAL a = lower, b = upper; /* interpolate between these, */
    int64_t n_a = 0, n_b = n;  /* with so many below */
    REAL low = (REAL)-INFINITY,
         high = (REAL)INFINITY; /* the number in place n_first is one of [low, high] */
    int64_t n_low = 0;          /* below low */
    for (int pass = 1;; pass++) {
        REAL pivot = a + (b - a) * ((REAL)(n_first - n_a) / (REAL)(n_b - n_a));
        if (pass % 4 == 0 || !(pivot > low && pivot <= high)) pivot = NAME(middle)(low, high);
        const NAME(pass) found = NAME(count_below)(x, n, pivot);
        if (found.n_below <= n_first) {
            low = found.first_from + 0; /* a zero without sign */
            n_low = found.n_below;
            a = pivot;
            n_a = found.n_below;
        } else {
            high = found.last_below + 0;
            b = pivot;
            n_b = found.n_below;
        }
        if (found.n_below == n_first || !(low < high))
            return (NAME(threshold)){low, n_first - n_low};
    }
}

/* Which of a vector's lanes belong in front. */
GRVI_STEP unsigned NAME(front_lanes)(NAME(vec) v, NAME(vec) value, int64_t *n_equal)
{
    unsigned front = NAME(vec_less)(v, value);
    if (*n_equal > 0) {
        for (unsigned equal = NAME(vec_up_to)(v, value) & ~front; equal != 0 && *n_equal > 0;
             equal &= equal - 1, --*n_equal)
            front |= equal & -equal;
    }
    return front;
}

static void NAME(split)(const grvi_point_arrays *points, int64_t begin, int64_t end,
                        int64_t n_first, const grvi_point_arrays *scratch, int64_t scratch_end)
{
    REAL lower = 0, upper = 0, *x[3], *others[3];
    int32_t *const indices = points->indices + begin, *const other_indices = scratch->indices;
    const int axis = NAME(widest_axis)(points, begin, end, &lower, &upper);
    for (int d = 0; d < 3; d++) {
        x[d] = (REAL *)points->x[d] + begin;
        others[d] = scratch->x[d];
    }
    const REAL *const key = x[axis];
    NAME(threshold)
    threshold = NAME(find_threshold)(key, end - begin, n_first, lower, upper);
    const NAME(vec) value = NAME(vec_set1)(threshold.value);
    int64_t front = 0, back = scratch_end;
    for (int64_t i = 0; i < end - begin; i += NAME(LANES)) {
        const unsigned mask = NAME(front_lanes)(NAME(vec_load)(key + i), value, &threshold.n_equal);
        for (int d = 0; d < 3; d++) NAME(vec_part)(x[d] + i, mask, x[d] + front, others[d] + back);
        NAME(part_indices)(indices + i, mask, indices + front, other_indices + back);
        const int n_front = __builtin_popcount(mask);
        front += n_front;
        back -= NAME(LANES) - n_front;
    }
    const size_t n_others = (size_t)(scratch_end - back);
    for (int d = 0; d < 3; d++) memcpy(x[d] + front, others[d] + back, n_others * sizeof(REAL));
    memcpy(indices + front, other_indices + back, n_others * sizeof *indices);
}
